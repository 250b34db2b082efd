#include "tune/candidate.h"
#include "tune/code_id.h"
#include "tune/mix.h"
#include <stdio.h>

const char *ait_outcome_text(ait_outcome outcome) {
  static const char *const texts[] = {"not tried", "valid", "wrong", "unsupported", "failed", "crashed", "timed out", "skipped"};
  return (size_t)outcome < AIT_COUNT(texts) ? texts[outcome] : "?";
}

void ait_backend_version(const ait_backend *backend, const ait_probe *probe, char out[64]) {
  uint64_t code = ait_code_id((void (*)(void))backend->compile);
  int n = snprintf(out, 64, "%.40s", probe->version);
  if (code) snprintf(out + n, 64 - (size_t)n, "@%016llx", (unsigned long long)code);
}

uint64_t ait_trial_memory(const ait_trial_result *r) {
  return r->blob_bytes + r->read_bytes + (r->load_bytes > r->plan_bytes ? r->load_bytes : r->plan_bytes);
}

static ait_status add(ait_candidates *list, const ait_backend *backend, const ait_probe *probe, const char *key, const char *value,
                      int32_t threads, bool baseline) {
  void *items = list->items;
  AIT_TRY(ait_grow(ait_allocator_default(), &items, &list->capacity, list->count + 1, sizeof *list->items));
  list->items = items;
  ait_candidate *c = &list->items[list->count++];
  *c = (ait_candidate){.backend = backend, .threads = threads, .baseline = baseline};
  ait_backend_version(backend, probe, c->version);
  /* no details: they may hold paths, which are no part of a report */
  if (!probe->available && (!*probe->detail || strchr(probe->detail, '/')))
    snprintf(c->missing, sizeof c->missing, "not here: 'ait backends' says why");
  else if (!probe->available) snprintf(c->missing, sizeof c->missing, "not here: %.240s", probe->detail);
  if (key) snprintf(c->options, sizeof c->options, "%s=%s", key, value);
  snprintf(c->name, sizeof c->name, "%s%s%s threads=%d", backend->name, key ? " " : "", c->options, threads);
  return AIT_OK;
}

static ait_status add_backend(ait_candidates *list, const ait_backend *backend, int32_t threads, bool with_knobs) {
  bool baseline = !strcmp(backend->name, "eager"), slow = !strcmp(backend->name, "reference");
  ait_probe probe = {0};
  backend->probe(&probe);
  if (!probe.available) return add(list, backend, &probe, NULL, NULL, threads, baseline);
  for (int32_t t = 1; t <= threads; t = t == 1 && threads > 1 ? threads : threads + 1) {
    if (slow && t != threads) continue;
    AIT_TRY(add(list, backend, &probe, NULL, NULL, t, baseline));
    for (const ait_knob *k = backend->knobs; with_knobs && !slow && k && k->name; ++k)
      for (const char *const *v = k->values; v && *v; ++v)
        if (strcmp(*v, k->default_value ? k->default_value : "")) AIT_TRY(add(list, backend, &probe, k->name, *v, t, false));
  }
  return AIT_OK;
}

static ait_status add_named(ait_candidates *list, const char *name, int32_t threads, bool with_knobs) {
  const ait_backend *b = ait_backend_find(name);
  if (!b) return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no backend '%s'", name), "'ait backends' lists them");
  return add_backend(list, b, threads, with_knobs);
}

ait_status ait_candidates_create(const ait_tune_options *options, ait_strategy_kind strategy, int32_t threads, ait_candidates *out) {
  *out = (ait_candidates){0};
  ait_status status = AIT_OK;
  bool first_only = strategy == AIT_STRATEGY_ONE_BACKEND, simple = first_only || strategy == AIT_STRATEGY_FIRST_WINS;
  if (ait_backend_find("eager")) status = add_named(out, "eager", threads, false);
  if (options->backends) {
    for (size_t i = 0; status == AIT_OK && options->backends[i] && !(first_only && i); ++i)
      if (strcmp(options->backends[i], "eager")) status = add_named(out, options->backends[i], threads, !simple);
  } else {
    size_t baselines = out->count;
    for (size_t i = 0; status == AIT_OK && i < ait_backend_count() && !(first_only && out->count > baselines); ++i) {
      const ait_backend *b = ait_backend_at(i);
      if (!strcmp(b->name, "null") || !strcmp(b->name, "eager") || !strcmp(b->name, "reference")) continue;
      status = add_backend(out, b, threads, !simple);
    }
    if (status == AIT_OK && !first_only) status = add_named(out, "reference", threads, false); /* the last resort: always right */
  }
  if (status != AIT_OK) ait_candidates_deinit(out);
  return status;
}

int32_t ait_candidate_rank(const ait_tune_options *options, const ait_candidate *c) {
  for (int32_t i = 0; options->backends && options->backends[i]; ++i)
    if (!strcmp(options->backends[i], c->backend->name)) return i;
  return options->backends || c->baseline ? INT32_MAX : 0;
}

ait_status ait_candidates_add_mix(ait_candidates *list, ait_mix *mix, int32_t threads) {
  const ait_engine *first = &mix->engines[mix->engine[0]];
  ait_probe probe = {.available = true};
  ait_status status = add(list, first->backend, &probe, NULL, NULL, threads, false);
  if (status != AIT_OK) {
    ait_free(ait_allocator_default(), mix, sizeof *mix);
    return status;
  }
  ait_candidate *c = &list->items[list->count - 1];
  c->mix = mix;
  ait_mix_name(mix, threads, c->name, sizeof c->name);
  uint64_t versions = 0; /* trials depend on those of all */
  for (uint32_t e = 0; e < mix->engine_count; ++e) versions = ait_hash(mix->engines[e].version, strlen(mix->engines[e].version), versions);
  snprintf(c->version, sizeof c->version, "%016llx", (unsigned long long)versions);
  return AIT_OK;
}

void ait_candidates_deinit(ait_candidates *list) {
  for (size_t i = 0; i < list->count; ++i) ait_free(ait_allocator_default(), list->items[i].mix, sizeof *list->items[i].mix);
  ait_free(ait_allocator_default(), list->items, list->capacity * sizeof *list->items);
  *list = (ait_candidates){0};
}
