/* ait_tune: oracle, trials, contest, file. */
#include "artifact/signature.h"
#include "tune/tune_mix.h"
#include "tune/decide.h"
#include "tune/put_json.h"
#include "tune/record.h"
#include "tune/report.h"
#include "tune/seal.h"
#include <stdio.h>

void ait_tune_options_init(ait_tune_options *options) {
  *options = (ait_tune_options){.struct_size = sizeof *options,
                                .allocator = ait_allocator_default(),
                                .budget_seconds = 60,
                                .trial_seconds = 120,
                                .cpu_mask = UINT64_MAX};
}

typedef struct tuner {
  ait_tune_options options;
  const char *phase;
  ait_graph *raw;
  ait_region *region;
  ait_tune_cases cases;
  ait_candidates list;
  ait_decision *decision;
  ait_evidence evidence;
  ait_record *record;
  ait_artifact *base; /* --append: the file as it is */
  ait_trial_context x;
  int32_t threads;
  char key[128];    /* what all trials of this run share: model, data, machine, build */
  uint64_t machine; /* the last two of these */
  double start;
  bool answered;        /* the oracle has run */
  bool finished_before; /* the record holds a whole run with this budget */
  uint32_t done, total;
  const char *current;
} tuner;

/* ---- progress --------------------------------------------------------------------------------------------------------------------*/
static void tell(tuner *t, const char *line) {
  if (!t->options.progress) return;
  ait_tune_progress p = {.phase = t->phase,
                         .candidate = t->current ? t->current : "",
                         .done = t->done,
                         .total = t->total,
                         .seconds = ait_clock_seconds() - t->start,
                         .budget_seconds = t->options.budget_seconds,
                         .line = line};
  t->options.progress(t->options.progress_ctx, &p);
}
static void idle(void *ctx) { tell(ctx, NULL); }

static bool cancelled(const tuner *t) { return t->options.cancel && *t->options.cancel; }

/* ---- keys ------------------------------------------------------------------------------------------------------------------------*/
/* Everything that a trial's result depends on but the candidate itself. */
static ait_status make_key(tuner *t) {
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  ait_status status = ait_graph_print(t->raw, &text);
  uint64_t model = status == AIT_OK ? ait_hash(text.data, text.length, 1) : 0;
  ait_text_deinit(&text);
  for (size_t i = 0; t->raw->weights && i < ait_weight_store_storage_count(t->raw->weights); ++i) {
    ait_storage *s = ait_weight_store_storage(t->raw->weights, (uint32_t)i);
    model = ait_hash(ait_storage_data(s), ait_storage_bytes(s), model);
  }
  char machine[600], names[256];
  ait_cpu_names(ait_cpu_features() & t->options.cpu_mask, names, sizeof names);
  snprintf(machine, sizeof machine, "%s|%s|%d|%s|%g|%g|%g|%llu", ait_cpu_model(), names, ait_cpu_count(), ait_build_id(), t->options.rtol,
           t->options.atol, t->options.trial_seconds, (unsigned long long)t->options.trial_bytes);
  t->machine = ait_hash(machine, strlen(machine), 2);
  snprintf(t->key, sizeof t->key, "%016llx-%016llx-%016llx", (unsigned long long)model, (unsigned long long)ait_tune_cases_hash(&t->cases),
           (unsigned long long)t->machine);
  return status;
}

/* ---- trials ----------------------------------------------------------------------------------------------------------------------*/
static void finished_line(const ait_candidate *c, char *out, size_t size) {
  if (c->median > 0)
    snprintf(out, size, "%s: %.3g ms, error %.2g of tolerance%s", c->name, c->median * 1e3, c->result.worst_error,
             c->reused ? " (from the record)" : "");
  else snprintf(out, size, "%s: %s%s%s", c->name, ait_outcome_text(c->result.outcome), *c->result.reason ? ": " : "", c->result.reason);
}

static void set_median(ait_candidate *c) {
  double copy[AIT_TRIAL_SAMPLES];
  memcpy(copy, c->result.samples, sizeof copy);
  c->median = c->result.outcome == AIT_OUTCOME_VALID ? ait_stats_of(copy, c->result.sample_count).median : 0;
}

/* A record that cannot be had, or not any more, is a loss of time, not of the answer. */
static void without_record(tuner *t, ait_status status) {
  char line[512];
  snprintf(line, sizeof line, "warning: nothing will be recorded: %s", ait_status_message(status));
  tell(t, line);
  ait_status_free(status);
  ait_record_close(t->record);
  t->record = NULL;
}

static void recall(tuner *t, const char *key, void *out, size_t size, bool *out_found) {
  *out_found = false;
  ait_status status = t->record ? ait_record_get(t->record, key, out, size, out_found) : AIT_OK;
  if (status != AIT_OK) without_record(t, status);
}

static void remember(tuner *t, const char *key, const char *label, const void *value, size_t size) {
  ait_status status = t->record ? ait_record_put(t->record, key, label, ait_build_id(), value, size) : AIT_OK;
  if (status != AIT_OK) without_record(t, status);
}

/* A record may come from elsewhere: what indexes and lengths say is checked before anything goes by it. */
static bool is_finite(double v) { return v - v == 0; }

static bool plausible_trial(const ait_trial_result *r) {
  bool good = (uint32_t)r->outcome <= AIT_OUTCOME_SKIPPED && r->sample_count <= AIT_TRIAL_SAMPLES && memchr(r->reason, 0, sizeof r->reason);
  for (uint32_t i = 0; good && i < r->sample_count; ++i) good = r->samples[i] > 0 && is_finite(r->samples[i]);
  return good && (r->outcome != AIT_OUTCOME_VALID || r->sample_count > 0);
}

static bool plausible_contest(const ait_contest *c, uint32_t members) {
  bool good = *(const uint8_t *)&c->failed == 0 && c->count == members && c->rounds > 0 && c->rounds <= AIT_CONTEST_ROUNDS;
  for (uint32_t k = 0; good && k < c->count; ++k) {
    const double *times = &c->times[k * AIT_CONTEST_ROUNDS];
    for (uint32_t r = 0; good && r < c->rounds; ++r) good = times[r] > 0 && is_finite(times[r]);
  }
  return good;
}

static bool is_text(const char *text, size_t size) { return memchr(text, 0, size) != NULL; }

static bool plausible_parts(const ait_trial_parts *p) {
  bool good = (uint32_t)p->outcome <= AIT_OUTCOME_SKIPPED && is_text(p->reason, sizeof p->reason);
  for (uint32_t i = 0; good && i < AIT_TRIAL_PARTS; ++i) good = p->seconds[i] >= 0 && is_finite(p->seconds[i]);
  return good;
}

static bool plausible_profile(const ait_profile *p, const ait_tune_cases *cases) {
  bool good = is_text(p->why, sizeof p->why) && p->step_count <= AIT_PROFILE_STEPS && p->row_count <= AIT_PROFILE_ROWS;
  for (uint32_t i = 0; good && i < p->step_count; ++i) {
    const ait_profile_step *s = &p->steps[i];
    good = is_text(s->name, sizeof s->name) && is_text(s->op, sizeof s->op) && is_text(s->kernel, sizeof s->kernel) &&
           is_text(s->module, sizeof s->module) && is_finite(s->seconds);
  }
  for (uint32_t i = 0; good && i < p->row_count; ++i)
    good = p->rows[i].case_index < cases->count && p->rows[i].output_index < cases->output_count;
  return good;
}

static void trial_key(const tuner *t, const ait_candidate *c, char out[512]) {
  snprintf(out, 512, "trial-%s-%s-%s", t->key, c->version, c->name);
}

/* The oracle runs when the first trial needs it: not at all when the record knows everything. */
static ait_status need_answers(tuner *t) {
  if (t->answered) return AIT_OK;
  const char *phase = t->phase;
  double start = ait_clock_seconds();
  char key[256];
  ait_tune_summary summary;
  t->phase = "reference";
  tell(t, NULL);
  AIT_TRY(ait_tune_cases_answer(&t->cases, t->raw, &t->options, t->threads));
  snprintf(key, sizeof key, "oracle-%s", t->key);
  if (ait_tune_cases_summarise(&t->cases, &summary)) remember(t, key, "oracle", &summary, sizeof summary);
  t->answered = true;
  t->phase = phase;
  t->start += ait_clock_seconds() - start; /* the budget is for candidates: the oracle takes what it takes */
  return AIT_OK;
}

/* What the oracle found in an earlier run; without it nothing in the record can be judged, and the oracle runs. */
static ait_status recall_oracle(tuner *t) {
  char key[256];
  ait_tune_summary summary;
  bool found = false;
  snprintf(key, sizeof key, "oracle-%s", t->key);
  recall(t, key, &summary, sizeof summary, &found);
  if (found && ait_tune_cases_recall(&t->cases, &summary)) return AIT_OK;
  return need_answers(t);
}

static ait_status try_one(tuner *t, ait_candidate *c, double seconds) {
  char key[512], line[640];
  trial_key(t, c, key);
  t->current = c->name;
  recall(t, key, &c->result, sizeof c->result, &c->reused);
  c->reused = c->reused && plausible_trial(&c->result);
  if (!c->reused) {
    AIT_TRY(need_answers(t));
    tell(t, NULL);
    AIT_TRY(ait_trial_run(&t->x, c, seconds, &c->result));
    remember(t, key, c->name, &c->result, sizeof c->result);
  }
  set_median(c);
  ++t->done;
  finished_line(c, line, sizeof line);
  tell(t, line);
  return AIT_OK;
}

static void skip(tuner *t, ait_candidate *c, const char *why) {
  c->result.outcome = AIT_OUTCOME_SKIPPED;
  snprintf(c->result.reason, sizeof c->result.reason, "%s", why);
  ++t->done;
}

static bool strategy_is(const tuner *t, const char *name) { return t->options.strategy && !strcmp(t->options.strategy, name); }

/* Default options on all threads: tried whatever the budget says, so that a small one cannot leave the baseline alone. */
static bool is_essential(const tuner *t, const ait_candidate *c) { return c->threads == t->threads && !*c->options; }

static bool any_valid(const tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i)
    if (t->list.items[i].median > 0) return true;
  return false;
}

/* A run that went to its end with these candidates and this budget has decided what was not worth trying: the same run again decides the
 * same. */
static void finish_key(const tuner *t, char *key, size_t size) {
  uint64_t names = 0;
  for (size_t i = 0; i < t->list.count; ++i) {
    names = ait_hash(t->list.items[i].name, strlen(t->list.items[i].name), names);
    names = ait_hash(t->list.items[i].version, strlen(t->list.items[i].version), names);
  }
  snprintf(key, size, "finished-%s-%s-%g-%016llx", t->key, t->options.strategy ? t->options.strategy : "", t->options.budget_seconds,
           (unsigned long long)names);
}

static bool is_recorded(tuner *t, const ait_candidate *c) {
  char key[512];
  ait_trial_result result;
  bool found;
  trial_key(t, c, key);
  recall(t, key, &result, sizeof result, &found);
  return found && plausible_trial(&result);
}

static ait_status try_or_skip(tuner *t, ait_candidate *c, double seconds, bool *won) {
  double budget = t->options.budget_seconds;
  bool slow = !strcmp(c->backend->name, "reference"), recorded = is_recorded(t, c);
  if (cancelled(t)) return ait_error(AIT_CODE_CANCELLED, "tuning was interrupted");
  if (*c->missing) skip(t, c, c->missing);
  else if (*won) skip(t, c, "an earlier candidate was valid, and the first wins");
  else if (slow && any_valid(t) && !t->options.backends) skip(t, c, "the oracle is no contestant where another candidate is valid");
  else if (t->finished_before && !recorded && !is_essential(t, c)) skip(t, c, "the budget was used up");
  else if (!recorded && !is_essential(t, c) && any_valid(t) && ait_clock_seconds() - t->start > 0.7 * budget)
    skip(t, c, "the budget was used up");
  else AIT_TRY(try_one(t, c, seconds));
  *won |= strategy_is(t, "first-wins") && !c->baseline && c->median > 0;
  return AIT_OK;
}

static ait_status try_all(tuner *t) {
  double each = 0.5 * t->options.budget_seconds / (double)t->list.count;
  bool won = false;
  char key[512], done = 1;
  finish_key(t, key, sizeof key);
  recall(t, key, &done, sizeof done, &t->finished_before);
  each = each > 1 ? 1 : each < 0.05 ? 0.05 : each;
  t->phase = "trials";
  t->total = (uint32_t)t->list.count;
  for (int essential = 1; essential >= 0; --essential)
    for (size_t i = 0; i < t->list.count; ++i)
      if (is_essential(t, &t->list.items[i]) == (essential == 1)) AIT_TRY(try_or_skip(t, &t->list.items[i], each, &won));
  t->current = NULL;
  if (!t->finished_before) remember(t, key, "finished", &done, sizeof done);
  return AIT_OK;
}

/* ---- mixed plans -----------------------------------------------------------------------------------------------------------------*/
static ait_status measure_parts(void *ctx, const ait_candidate *c, double seconds, ait_trial_parts *out) {
  tuner *t = ctx;
  char key[512], line[640];
  bool found;
  trial_key(t, c, key);
  t->current = c->name;
  recall(t, key, out, sizeof *out, &found);
  if (found && plausible_parts(out)) return AIT_OK;
  AIT_TRY(need_answers(t));
  tell(t, NULL);
  AIT_TRY(ait_trial_measure_parts(&t->x, c, seconds, out));
  remember(t, key, c->name, out, sizeof *out);
  if (out->outcome != AIT_OUTCOME_VALID) {
    snprintf(line, sizeof line, "%s: %s: %s", c->name, ait_outcome_text(out->outcome), out->reason);
    tell(t, line);
  }
  return AIT_OK;
}

/* With modules pinned to backends only plans that obey compete. */
static void drop_unpinned(tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i) {
    ait_candidate *c = &t->list.items[i];
    if (c->mix || c->baseline || c->median <= 0) continue;
    c->median = 0;
    c->result.outcome = AIT_OUTCOME_SKIPPED;
    snprintf(c->result.reason, sizeof c->result.reason, "a module was given another backend");
  }
}

static ait_status try_mixed(tuner *t) {
  const char *regions = t->options.regions ? t->options.regions : "auto";
  bool pinned = t->options.module_backends && t->options.module_backends[0];
  if (!pinned && (!strcmp(regions, "whole") || strategy_is(t, "first-wins") || strategy_is(t, "one-backend"))) return AIT_OK;
  double left = t->options.budget_seconds - (ait_clock_seconds() - t->start);
  bool late = left < 0.15 * t->options.budget_seconds && !t->finished_before;
  if (late && !pinned && strcmp(regions, "modules")) return AIT_OK;
  size_t before = t->list.count;
  t->phase = "parts";
  AIT_TRY(ait_tune_mix(&t->x, &t->list, left > 4 ? 0.25 * left : 1, &(ait_mix_hooks){t, measure_parts}));
  t->total = (uint32_t)t->list.count;
  t->phase = "trials";
  for (size_t i = before; i < t->list.count; ++i) AIT_TRY(try_one(t, &t->list.items[i], 1));
  t->current = NULL;
  t->decision->pinned = pinned;
  if (pinned) drop_unpinned(t);
  return AIT_OK;
}

/* ---- the contest -----------------------------------------------------------------------------------------------------------------*/
/* A finalist that was right and fast in its trial and fails now: it is out. */
static void disqualify(tuner *t) {
  const ait_contest *contest = &t->decision->contest;
  ait_candidate *c = &t->list.items[t->decision->finalists[contest->culprit]];
  char key[512], line[640];
  c->result = (ait_trial_result){.outcome = contest->outcome};
  snprintf(c->result.reason, sizeof c->result.reason, "in the final contest: %.*s", AIT_REASON_SIZE - 32, contest->reason);
  c->median = 0;
  trial_key(t, c, key);
  remember(t, key, c->name, &c->result, sizeof c->result);
  finished_line(c, line, sizeof line);
  tell(t, line);
}

/* *out_again: a member failed and is out; the others must meet again. */
static ait_status hold_contest(tuner *t, bool *out_again) {
  ait_decision *d = t->decision;
  const ait_candidate *members[AIT_CONTEST_MAX];
  char key[512];
  uint64_t names = 0;
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    members[k] = &t->list.items[d->finalists[k]];
    names = ait_hash(members[k]->name, strlen(members[k]->name), names);
  }
  snprintf(key, sizeof key, "contest-%s-%016llx", t->key, (unsigned long long)names);
  t->phase = "contest";
  tell(t, NULL);
  recall(t, key, &d->contest, sizeof d->contest, &d->reused);
  d->reused = d->reused && plausible_contest(&d->contest, d->finalist_count);
  if (!d->reused) {
    double left = t->options.budget_seconds - (ait_clock_seconds() - t->start), seconds = 0.3 * t->options.budget_seconds;
    if (seconds > left) seconds = left > 1 ? left : 1;
    if (seconds > 5) seconds = 5;
    AIT_TRY(ait_contest_run(&t->x, members, d->finalist_count, seconds, &d->contest));
    if (d->contest.failed) return *out_again = true, disqualify(t), AIT_OK;
    remember(t, key, "contest", &d->contest, sizeof d->contest);
  }
  d->contested = true;
  ait_decide_winner(&t->list, d);
  return AIT_OK;
}

/* first-wins and one-backend take the first valid candidate that is not the baseline; the contest is the evidence of its speed. */
static void keep_first(tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i) {
    const ait_candidate *c = &t->list.items[i];
    if (c->baseline || c->median <= 0 || c->threads != t->threads) continue;
    ait_decision *d = t->decision;
    d->finalist_count = 0;
    if (d->baseline >= 0) d->finalists[d->finalist_count++] = d->baseline;
    d->finalists[d->finalist_count++] = (int32_t)i;
    return;
  }
}

static ait_status decide(tuner *t) {
  ait_decision *d = t->decision;
  bool fixed = strategy_is(t, "first-wins") || strategy_is(t, "one-backend");
  for (bool again = true; again;) { /* each time with one candidate less */
    again = false;
    ait_decide_finalists(&t->list, d);
    if (fixed) keep_first(t);
    if (d->finalist_count == 0) return AIT_OK;
    AIT_TRY(hold_contest(t, &again));
  }
  if (fixed) d->winner = d->finalists[d->finalist_count - 1];
  return AIT_OK;
}

/* ---- evidence --------------------------------------------------------------------------------------------------------------------*/
static ait_status profile_one(tuner *t, const ait_candidate *c, ait_profile *out) {
  char key[512];
  bool found;
  snprintf(key, sizeof key, "profile-%s-%s", t->key, c->name);
  recall(t, key, out, sizeof *out, &found);
  if (found && plausible_profile(out, &t->cases)) return AIT_OK;
  AIT_TRY(need_answers(t));
  t->current = c->name;
  tell(t, NULL);
  AIT_TRY(ait_profile_run(&t->x, c, 0.3, out));
  t->current = NULL;
  remember(t, key, c->name, out, sizeof *out);
  return AIT_OK;
}

/* What the report shows of the winner and of the baseline: not part of the decision, and not of the budget. */
static ait_status gather_evidence(tuner *t) {
  ait_evidence *e = &t->evidence;
  const int32_t both[2] = {t->decision->winner, t->decision->baseline};
  if (both[0] < 0) return AIT_OK;
  t->phase = "evidence";
  e->profiles = ait_alloc_zero(ait_allocator_default(), 2 * sizeof *e->profiles, _Alignof(ait_profile));
  if (!e->profiles) return AIT_OOM();
  for (int i = 0; i < 2; ++i) {
    if (both[i] < 0 || (i && both[1] == both[0])) continue;
    e->candidates[e->count] = both[i];
    AIT_TRY(profile_one(t, &t->list.items[both[i]], &e->profiles[e->count]));
    ++e->count;
  }
  char key[128];
  int32_t threads = t->list.items[both[0]].threads;
  snprintf(key, sizeof key, "roofline-%016llx-%d", (unsigned long long)t->machine, threads);
  recall(t, key, &e->roofline, sizeof e->roofline, &e->has_roofline);
  if (e->has_roofline) return AIT_OK;
  AIT_TRY(ait_evidence_roofline(&t->x, threads, &e->roofline, &e->has_roofline));
  if (e->has_roofline) remember(t, key, "roofline", &e->roofline, sizeof e->roofline);
  return AIT_OK;
}

/* Nothing valid: with one-backend its own error comes through. */
static ait_status nothing_valid(const tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i) {
    const ait_candidate *c = &t->list.items[i];
    if (!c->baseline && *c->result.reason)
      return ait_error_hint(ait_error(AIT_CODE_MISMATCH, "no candidate is valid; '%s' %s: %s", c->name, ait_outcome_text(c->result.outcome),
                                      c->result.reason),
                            "the report lists every candidate with its reason");
  }
  return ait_error(AIT_CODE_MISMATCH, "no candidate is valid");
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------------*/
static bool known_strategy(const char *s) {
  static const char *const names[] = {"max-throughput", "highest-throughput", "min-latency", "first-wins", "one-backend"};
  for (size_t i = 0; i < AIT_COUNT(names); ++i)
    if (!s || !strcmp(s, names[i])) return true;
  return false;
}

static ait_status open_record(tuner *t) {
  if (!t->options.record_path) return AIT_OK;
  ait_status status = ait_record_open(t->options.record_path, &t->record);
  if (status == AIT_OK || ait_status_code(status) != AIT_CODE_IO) return status;
  without_record(t, status);
  return AIT_OK;
}

/* Better to hear it before the tuning than after. */
static ait_status check_writable(const char *path) {
  ait_file_writer *writer;
  AIT_TRY(ait_file_writer_create(ait_allocator_default(), path, &writer));
  ait_file_writer_destroy(writer); /* the file is as it was */
  return AIT_OK;
}

static ait_status check_signer(const ait_tune_options *options) {
  ait_private_key key;
  if (!options->sign_key) return AIT_OK;
  AIT_TRY(ait_private_key_find(options->keys, options->sign_key, &key));
  ait_private_key_wipe(&key);
  return AIT_OK;
}

static ait_status run(tuner *t, const char *model_path, const char *out_path, const ait_sample *samples, size_t sample_count,
                      char **out_report) {
  ait_load_options load;
  ait_load_options_init(&load);
  load.model_name = t->options.model_name;
  load.weights = t->options.weights;
  if (!known_strategy(t->options.strategy))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no strategy '%s'", t->options.strategy),
                          "max-throughput, min-latency, first-wins, one-backend");
  if (t->options.regions && strcmp(t->options.regions, "auto") && strcmp(t->options.regions, "modules") &&
      strcmp(t->options.regions, "whole"))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there are no regions '%s'", t->options.regions), "auto, modules, whole");
  AIT_TRY(ait_candidates_create(&t->options, t->threads, &t->list));
  t->phase = "import";
  AIT_TRY(ait_graph_open(model_path, &load, &t->raw));
  AIT_TRY(ait_graph_check_operators(t->raw));
  AIT_TRY(ait_graph_region(t->raw, ait_allocator_default(), &t->region));
  if (out_path) AIT_TRY(check_writable(out_path));
  AIT_TRY(check_signer(&t->options));
  if (t->options.append) AIT_TRY(ait_append_open(out_path, t->options.keys, t->raw, t->region, &t->base));
  if (t->base && ait_artifact_signature(t->base).state != AIT_SIGNATURE_UNSIGNED && !t->options.sign_key)
    tell(t, "note: the file was signed; with another plan in it, it is not (--sign KEY signs it again)");
  AIT_TRY(open_record(t));
  AIT_TRY(ait_tune_cases_create(t->raw, samples, sample_count, &t->cases));
  AIT_TRY(make_key(t));
  t->start = ait_clock_seconds();
  AIT_TRY(recall_oracle(t));
  t->x = (ait_trial_context){.raw = t->raw, .region = t->region, .cases = &t->cases, .options = &t->options, .idle = idle, .idle_ctx = t};
  AIT_TRY(try_all(t));
  AIT_TRY(try_mixed(t));
  AIT_TRY(decide(t));
  AIT_TRY(gather_evidence(t));
  ait_text report;
  ait_text_init(&report, ait_allocator_default());
  ait_status status = ait_report_json(&t->x, &t->list, t->decision, &t->evidence, &report);
  t->phase = "seal";
  tell(t, NULL);
  if (status == AIT_OK && t->decision->winner >= 0 && out_path)
    status = ait_seal(&t->x, &t->list.items[t->decision->winner], report.data, t->base, out_path);
  if (status == AIT_OK && t->decision->winner < 0) status = nothing_valid(t);
  if (!out_report) return ait_text_deinit(&report), status;
  return ait_status_join(status, ait_put_finish(&report, out_report));
}

ait_status ait_tune(const char *model_path, const char *out_path, const ait_sample *samples, size_t sample_count,
                    const ait_tune_options *options, char **out_report) {
  tuner t = {.phase = "start", .start = ait_clock_seconds()};
  ait_tune_options_init(&t.options);
  if (options) memcpy(&t.options, options, options->struct_size < sizeof t.options ? options->struct_size : sizeof t.options);
  if (t.options.budget_seconds <= 0) t.options.budget_seconds = 60;
  if (t.options.trial_seconds <= 0) t.options.trial_seconds = 120;
  if (out_report) *out_report = NULL;
  t.threads = t.options.threads > 0 ? t.options.threads : ait_cpu_count();
  t.decision = ait_alloc_zero(ait_allocator_default(), sizeof *t.decision, _Alignof(ait_decision));
  ait_status status = t.decision ? run(&t, model_path, out_path, samples, sample_count, out_report) : AIT_OOM();
  ait_free(ait_allocator_default(), t.decision, sizeof *t.decision);
  ait_evidence_deinit(&t.evidence);
  ait_record_close(t.record);
  ait_artifact_release(t.base);
  ait_candidates_deinit(&t.list);
  ait_tune_cases_deinit(&t.cases);
  ait_graph_region_destroy(ait_allocator_default(), t.region);
  ait_graph_destroy(t.raw);
  return ait_file_context(status, "tune", model_path);
}
