/* The tuner's search for plans whose parts run on different backends. */
#include "tune/tune_mix.h"
#include "tune/part_key.h"
#include "tune/stats.h"
#include <math.h>
#include <stdio.h>

typedef struct search {
  const ait_trial_context *x;
  ait_candidates *list;
  ait_mix_hooks hooks;
  int32_t threads;
  ait_engine engines[AIT_MIX_ENGINES];
  uint32_t engine_count;
  ait_graph *graph; /* core */
  ait_region *region;
  ait_parts parts;
  uint32_t cuts[AIT_PARTS_MAX], cut_count;
  uint64_t hashes[AIT_PARTS_MAX];
  uint32_t alike[AIT_PARTS_MAX];                  /* the first part with the same hash */
  int pins[AIT_PARTS_MAX], wishes[AIT_PARTS_MAX]; /* an engine; an ait_strategy_kind; -1: none */
  double seconds[AIT_MIX_ENGINES][AIT_PARTS_MAX], saving[AIT_MIX_ENGINES];
} search;

/* ---- pins: "MODULE=BACKEND", "MODULE=STRATEGY" --------------------------------------------------------------------------------- */
enum { PINS_MAX = 32 };
typedef struct pin_list {
  char modules[PINS_MAX][128];
  const char *names[PINS_MAX];
  const char *backends[PINS_MAX]; /* NULL: a strategy */
  ait_strategy_kind strategies[PINS_MAX];
  uint32_t count;
} pin_list;

/* The module's name, and what stands behind the last '='. */
static ait_status read_pin(pin_list *out, const char *text, const char *form, const char **out_value) {
  const char *equals = strrchr(text, '=');
  if (!equals || equals == text || !equals[1] || (size_t)(equals - text) >= sizeof out->modules[0])
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "'%s' names no module and what is wanted for it", text), "%s", form);
  if (out->count == PINS_MAX) return ait_error(AIT_CODE_LIMIT, "more than %d modules with a backend or a strategy", PINS_MAX);
  snprintf(out->modules[out->count], sizeof out->modules[0], "%.*s", (int)(equals - text), text);
  out->names[out->count] = out->modules[out->count];
  *out_value = equals + 1;
  return AIT_OK;
}

static ait_status read_pins(const ait_tune_options *o, pin_list *out) {
  const char *value;
  out->count = 0;
  for (size_t i = 0; o->module_backends && o->module_backends[i]; ++i, ++out->count) {
    AIT_TRY(read_pin(out, o->module_backends[i], "--module encoder.layer.0=native", &value));
    if (!ait_backend_find(value))
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no backend '%s'", value), "'ait backends' lists them");
    out->backends[out->count] = value;
  }
  for (size_t i = 0; o->module_strategies && o->module_strategies[i]; ++i, ++out->count) {
    AIT_TRY(read_pin(out, o->module_strategies[i], "--module-strategy encoder.layer.0=first-wins", &value));
    AIT_TRY(ait_objective_parse_part(value, &out->strategies[out->count]));
    out->backends[out->count] = NULL;
  }
  return AIT_OK;
}

/* ---- engines ----------------------------------------------------------------------------------------------------------------- */
static bool is_engine(const ait_backend *b) { return strcmp(b->name, "null") && strcmp(b->name, "eager") && strcmp(b->name, "reference"); }

static int find_engine(const search *s, const char *name) {
  for (uint32_t e = 0; e < s->engine_count; ++e)
    if (!strcmp(s->engines[e].backend->name, name)) return (int)e;
  return -1;
}

static ait_stats stats_of(const ait_candidate *c) {
  double copy[AIT_TRIAL_SAMPLES];
  memcpy(copy, c->result.samples, sizeof copy);
  return ait_stats_of(copy, c->result.sample_count);
}

/* Not by chance: parts are known under their options, and options that change from run to run would make them unknown. */
static bool is_clearly_faster(const ait_candidate *a, const ait_candidate *b) {
  ait_stats x = stats_of(a), y = stats_of(b);
  return x.high < y.low && x.median < 0.97 * y.median;
}

/* The backend with the options that are best for the whole model at this number of threads: its defaults unless others are clearly faster.
 */
static void add_engine(search *s, const ait_backend *backend) {
  const ait_candidate *best = NULL, *defaults = NULL;
  ait_probe probe = {0};
  backend->probe(&probe);
  if (!probe.available || find_engine(s, backend->name) >= 0 || s->engine_count == AIT_MIX_ENGINES) return;
  for (size_t i = 0; i < s->list->count; ++i) {
    const ait_candidate *c = &s->list->items[i];
    if (c->backend != backend || c->mix || c->threads != s->threads || c->median <= 0) continue;
    if (!best || c->median < best->median) best = c;
    if (!*c->options) defaults = c;
  }
  if (defaults && !is_clearly_faster(best, defaults)) best = defaults;
  ait_engine *e = &s->engines[s->engine_count++];
  *e = (ait_engine){.backend = backend, .whole = best ? best->median : 0};
  if (best) snprintf(e->options, sizeof e->options, "%s", best->options);
  ait_backend_version(backend, &probe, e->version);
}

/* native first: it takes what nobody else takes. */
static ait_status find_engines(search *s, const pin_list *pins) {
  const ait_candidate *best = NULL;
  for (size_t i = 0; i < s->list->count; ++i) {
    const ait_candidate *c = &s->list->items[i];
    if (c->median > 0 && is_engine(c->backend) && (!best || c->median < best->median)) best = c;
  }
  s->threads = best ? best->threads : 1;
  add_engine(s, ait_backend_find("native"));
  for (uint32_t i = 0; i < pins->count; ++i) {
    if (!pins->backends[i]) continue;
    add_engine(s, ait_backend_find(pins->backends[i]));
    if (find_engine(s, pins->backends[i]) < 0)
      return ait_error(AIT_CODE_UNAVAILABLE, "backend '%s' of module '%s' is not here", pins->backends[i], pins->names[i]);
  }
  for (size_t i = 0; i < s->list->count; ++i)
    if (is_engine(s->list->items[i].backend) && !*s->list->items[i].missing) add_engine(s, s->list->items[i].backend);
  return AIT_OK;
}

/* ---- parts ------------------------------------------------------------------------------------------------------------------- */
static ait_status cut_model(search *s, const pin_list *pins) {
  ait_build_request request = {
      .allocator = ait_allocator_default(), .backend = s->engines[0].backend, .pipeline = "core", .cpu_mask = s->x->options->cpu_mask};
  AIT_TRY(ait_plan_lower(s->x->raw, &request, &s->graph));
  AIT_TRY(ait_graph_region(s->graph, ait_allocator_default(), &s->region));
  s->cut_count = ait_parts_find(s->region, pins->names, pins->count, s->cuts);
  return ait_parts_create(ait_allocator_default(), s->region, s->cuts, s->cut_count, &s->parts);
}

static ait_status no_module(const char *name) {
  return ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "no part of the model is module '%s'", name), "ait inspect shows the module tree");
}

static ait_status place_pins(search *s, const pin_list *pins) {
  for (uint32_t p = 0; p < s->parts.count; ++p) s->pins[p] = s->wishes[p] = -1;
  for (uint32_t i = 0; i < pins->count; ++i) {
    bool found = false;
    for (uint32_t p = 0; p < s->parts.count; ++p) {
      if (!*s->parts.items[p].module || !ait_module_within(s->parts.items[p].module, pins->names[i])) continue;
      if (pins->backends[i]) s->pins[p] = find_engine(s, pins->backends[i]);
      else s->wishes[p] = (int)pins->strategies[i];
      found = true;
    }
    if (!found) return no_module(pins->names[i]);
  }
  return AIT_OK;
}

static bool takes(const ait_engine *e, const ait_part *part) {
  ait_status status = ait_region_taken(e->backend, &part->region, part->module, NULL);
  bool yes = status == AIT_OK;
  ait_status_ignore(status);
  return yes;
}

static ait_mix *new_mix(const search *s) {
  ait_mix *m = ait_alloc_zero(ait_allocator_default(), sizeof *m, _Alignof(ait_mix));
  if (!m) return NULL;
  memcpy(m->engines, s->engines, sizeof m->engines);
  memcpy(m->cuts, s->cuts, sizeof m->cuts);
  m->engine_count = s->engine_count;
  m->part_count = s->parts.count;
  for (uint32_t p = 0; p < s->parts.count; ++p) snprintf(m->modules[p], sizeof m->modules[p], "%s", s->parts.items[p].module);
  return m;
}

static ait_status hash_parts(search *s) {
  AIT_TRY(ait_parts_hash(&s->parts, s->x->cases, s->hashes));
  for (uint32_t p = 0; p < s->parts.count; ++p) {
    s->alike[p] = 0;
    while (s->hashes[s->alike[p]] != s->hashes[p]) ++s->alike[p];
  }
  return AIT_OK;
}

/* One trial measures these parts on the engine; the rest of the model runs on native meanwhile. */
static ait_status measure_set(search *s, uint32_t e, const uint32_t *set, uint32_t count, double seconds, ait_trial_parts *out) {
  ait_candidates one = {0};
  ait_mix *m = new_mix(s);
  if (!m) return AIT_OOM();
  uint32_t step[AIT_PARTS_MAX];
  for (uint32_t i = 0; i < count; ++i) {
    m->engine[set[i]] = (uint8_t)e;
    m->alone[set[i]] = true;
  }
  for (uint32_t i = 0; i < count; ++i) step[i] = ait_mix_step(m, set[i]);
  AIT_TRY(ait_candidates_add_mix(&one, m, s->threads));
  ait_trial_parts steps;
  ait_status status = s->hooks.measure(s->hooks.ctx, &one.items[0], seconds, &steps);
  ait_candidates_deinit(&one);
  if (status != AIT_OK) return status;
  *out = steps;
  for (uint32_t i = 0; i < count; ++i) out->seconds[i] = steps.seconds[step[i]];
  return AIT_OK;
}

/* A part that fails costs itself only: where a trial of several fails, each half is tried. */
static ait_status measure_parts(search *s, uint32_t e, const uint32_t *set, uint32_t count, double seconds) {
  ait_trial_parts result;
  AIT_TRY(measure_set(s, e, set, count, seconds, &result));
  if (result.outcome != AIT_OUTCOME_VALID && count > 1) {
    AIT_TRY(measure_parts(s, e, set, count / 2, seconds / 2));
    return measure_parts(s, e, set + count / 2, count - count / 2, seconds / 2);
  }
  for (uint32_t i = 0; i < count; ++i) {
    ait_part_trial trial = {.seconds = result.outcome == AIT_OUTCOME_VALID ? result.seconds[i] : 0};
    snprintf(trial.reason, sizeof trial.reason, "%s", result.reason);
    s->hooks.remember(s->hooks.ctx, s->hashes[set[i]], &s->engines[e], s->threads, &trial);
    s->seconds[e][set[i]] = trial.seconds > 0 ? trial.seconds : INFINITY;
    if (trial.seconds > 0) continue;
    char line[512];
    snprintf(line, sizeof line, "part '%.96s' on %s: %s: %.200s", s->parts.items[set[i]].module, s->engines[e].backend->name,
             ait_outcome_text(result.outcome), result.reason);
    s->hooks.tell(s->hooks.ctx, line);
  }
  return AIT_OK;
}

/* Each kind of part that the engine takes, from the record or measured now. */
static ait_status measure_engine(search *s, uint32_t e, double seconds) {
  uint32_t set[AIT_PARTS_MAX], count = 0, known = 0;
  for (uint32_t p = 0; p < s->parts.count; ++p) {
    ait_part_trial trial;
    s->seconds[e][p] = INFINITY;
    if (s->alike[p] != p || !takes(&s->engines[e], &s->parts.items[p])) continue;
    if (!s->hooks.recall(s->hooks.ctx, s->hashes[p], &s->engines[e], s->threads, &trial)) set[count++] = p;
    else if (++known, trial.seconds > 0) s->seconds[e][p] = trial.seconds;
  }
  if (count && s->hooks.measure) AIT_TRY(measure_parts(s, e, set, count, seconds));
  double sum = 0;
  for (uint32_t p = 0; p < s->parts.count; ++p) {
    s->seconds[e][p] = s->seconds[e][s->alike[p]];
    sum += isfinite(s->seconds[e][p]) ? s->seconds[e][p] : 0;
  }
  if (s->engines[e].whole > 0 && s->parts.count > 1) s->saving[e] = fmax(0, (sum - s->engines[e].whole) / (s->parts.count - 1));
  char line[256];
  const ait_engine *engine = &s->engines[e];
  snprintf(line, sizeof line, "parts on %s%s%.120s: %u of the model, %u measured, %u from the record", engine->backend->name,
           *engine->options ? " " : "", engine->options, s->parts.count, s->hooks.measure ? count : 0, known);
  s->hooks.tell(s->hooks.ctx, line);
  return AIT_OK;
}

/* ---- strategies of modules ------------------------------------------------------------------------------------------------------- */
/* Where the engine stands in the user's order; those that are not in it as they are. */
static uint32_t rank_of(const search *s, uint32_t e) {
  const char *const *order = s->x->options->backends;
  for (uint32_t i = 0; order && order[i]; ++i)
    if (!strcmp(order[i], s->engines[e].backend->name)) return i;
  return order ? UINT32_MAX : e;
}

/* first-wins: the first engine that runs the part; the others: the one that is fastest on it by itself, whatever crossing to it costs. A
 * backend that was asked for by name goes before. */
static ait_status grant_wishes(search *s) {
  for (uint32_t p = 0; p < s->parts.count; ++p) {
    int best = -1;
    for (uint32_t e = 0; s->wishes[p] >= 0 && e < s->engine_count; ++e) {
      if (!isfinite(s->seconds[e][p])) continue;
      bool first = s->wishes[p] == AIT_STRATEGY_FIRST_WINS;
      if (best < 0 || (first ? rank_of(s, e) < rank_of(s, (uint32_t)best) : s->seconds[e][p] < s->seconds[best][p])) best = (int)e;
    }
    if (s->wishes[p] < 0 || s->pins[p] >= 0) continue;
    if (best < 0) return ait_error(AIT_CODE_UNSUPPORTED, "no backend runs module '%s' as a part", s->parts.items[p].module);
    s->pins[p] = best;
  }
  return AIT_OK;
}

/* ---- what comes of it -------------------------------------------------------------------------------------------------------- */
/* share: how much of the saving between neighbours is believed: more than all of it gives fewer, longer parts. */
static ait_status propose(search *s, double share, bool pinned) {
  double saving[AIT_MIX_ENGINES];
  ait_mix *m = new_mix(s);
  if (!m) return AIT_OOM();
  for (uint32_t e = 0; e < s->engine_count; ++e) saving[e] = share * s->saving[e];
  double total = ait_mix_choose(s->seconds, saving, s->engine_count, s->parts.count, s->pins, m->engine);
  bool useful = isfinite(total) && (pinned || !ait_mix_is_single(m));
  for (uint32_t p = 0; p < m->part_count; ++p) m->seconds[p] = s->seconds[m->engine[p]][p];
  char name[256];
  ait_mix_name(m, s->threads, name, sizeof name);
  for (size_t i = 0; useful && i < s->list->count; ++i) useful = strcmp(s->list->items[i].name, name) != 0;
  if (useful) return ait_candidates_add_mix(s->list, m, s->threads);
  ait_free(ait_allocator_default(), m, sizeof *m);
  if (pinned && !isfinite(total)) return ait_error(AIT_CODE_UNSUPPORTED, "no plan has every module on the backend that was asked for it");
  return AIT_OK;
}

static ait_status explore(search *s, const pin_list *pins, double seconds) {
  AIT_TRY(find_engines(s, pins));
  if (s->engine_count < 2 && pins->count == 0) return AIT_OK;
  AIT_TRY(cut_model(s, pins));
  AIT_TRY(place_pins(s, pins));
  if (s->parts.count < 2 && pins->count == 0) return AIT_OK;
  for (uint32_t p = 0; p < s->parts.count; ++p)
    if (!takes(&s->engines[0], &s->parts.items[p])) return AIT_OK; /* a part that nobody could take for sure */
  AIT_TRY(hash_parts(s));
  for (uint32_t e = 0; e < s->engine_count; ++e) AIT_TRY(measure_engine(s, e, seconds / s->engine_count));
  AIT_TRY(grant_wishes(s));
  static const double shares[] = {1, 2, 0.5};
  for (size_t i = 0; i < AIT_COUNT(shares); ++i) AIT_TRY(propose(s, shares[i], pins->count > 0));
  return AIT_OK;
}

ait_status ait_tune_mix_check(const ait_tune_options *options, const ait_region *region) {
  pin_list *pins = ait_alloc_zero(ait_allocator_default(), sizeof *pins, _Alignof(pin_list));
  ait_status status = pins ? read_pins(options, pins) : AIT_OOM();
  for (uint32_t i = 0; status == AIT_OK && i < pins->count; ++i) {
    bool found = false;
    for (uint32_t n = 0; !found && n < region->node_count; ++n)
      found = region->nodes[n].module && ait_module_within(region->nodes[n].module, pins->names[i]);
    if (!found) status = no_module(pins->names[i]);
  }
  ait_free(ait_allocator_default(), pins, sizeof *pins);
  return status;
}

ait_status ait_tune_mix(const ait_trial_context *x, ait_candidates *list, double seconds, const ait_mix_hooks *hooks) {
  pin_list *pins = ait_alloc_zero(ait_allocator_default(), sizeof *pins, _Alignof(pin_list));
  search *s = ait_alloc_zero(ait_allocator_default(), sizeof *s, _Alignof(search));
  ait_status status = pins && s ? read_pins(x->options, pins) : AIT_OOM();
  if (status == AIT_OK) {
    s->x = x;
    s->list = list;
    s->hooks = *hooks;
    status = explore(s, pins, seconds);
    if (status != AIT_OK && ait_status_code(status) == AIT_CODE_UNSUPPORTED && pins->count == 0) { /* no parts: the whole model remains */
      ait_status_free(status);
      status = AIT_OK;
    }
    ait_parts_deinit(&s->parts);
    ait_graph_region_destroy(ait_allocator_default(), s->region);
    ait_graph_destroy(s->graph);
  }
  ait_free(ait_allocator_default(), s, sizeof *s);
  ait_free(ait_allocator_default(), pins, sizeof *pins);
  return status;
}
