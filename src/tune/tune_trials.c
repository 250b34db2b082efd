/* Trials of candidates, whole and mixed, with the record and the budget around them. */
#include "tune/tune_mix.h"
#include "tune/tuner.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- trials ----------------------------------------------------------------------------------------------------------------------*/
void ait_tuner_finished_line(const ait_candidate *c, char *out, size_t size) {
  if (c->median > 0)
    snprintf(out, size, "%s: %.3g ms, error %.2g of tolerance%s", c->name, c->median * 1e3, c->result.worst_error,
             c->reused ? " (from the record)" : "");
  else
    snprintf(out, size, "%s: %s%s%s%s", c->name, ait_outcome_text(c->result.outcome), *c->result.reason ? ": " : "", c->result.reason,
             c->reused ? " (from the record)" : "");
}

static void set_median(ait_candidate *c) {
  double copy[AIT_TRIAL_SAMPLES];
  memcpy(copy, c->result.samples, sizeof copy);
  c->median = c->result.outcome == AIT_OUTCOME_VALID ? ait_stats_of(copy, c->result.sample_count).median : 0;
}

void ait_tuner_trial_key(const ait_tuner *t, const ait_candidate *c, char out[512]) {
  snprintf(out, 512, "trial-%s-%s-%s", t->key, c->version, c->name);
}

/* The oracle runs when the first trial needs it: not at all when the record knows everything. */
ait_status ait_tuner_need_answers(ait_tuner *t) {
  if (t->answered) return AIT_OK;
  const char *phase = t->phase;
  double start = ait_clock_seconds();
  char key[256];
  ait_tune_summary summary;
  t->phase = "reference";
  ait_tuner_tell(t, NULL);
  AIT_TRY(ait_tune_cases_answer(&t->cases, t->raw, &t->options, t->threads));
  snprintf(key, sizeof key, "oracle-%s", t->key);
  if (ait_tune_cases_summarise(&t->cases, &summary)) ait_tuner_remember(t, key, "oracle", &summary, sizeof summary);
  t->answered = true;
  t->phase = phase;
  t->start += ait_clock_seconds() - start; /* the budget is for candidates: the oracle takes what it takes */
  return AIT_OK;
}

/* What the oracle found in an earlier run; without it nothing in the record can be judged, and the oracle runs. */
ait_status ait_tuner_recall_oracle(ait_tuner *t) {
  char key[256];
  ait_tune_summary summary;
  bool found = false;
  snprintf(key, sizeof key, "oracle-%s", t->key);
  ait_tuner_recall(t, key, &summary, sizeof summary, &found);
  if (found && ait_tune_cases_recall(&t->cases, &summary)) return AIT_OK;
  if (t->options.from_record) return ait_tuner_not_recorded(t, "the oracle's answers");
  return ait_tuner_need_answers(t);
}

ait_status ait_tuner_try_one(ait_tuner *t, ait_candidate *c, double seconds) {
  char key[512], line[640];
  if (c->result.outcome != AIT_OUTCOME_NONE) return AIT_OK; /* the baseline, for the noise floor */
  ait_tuner_trial_key(t, c, key);
  t->current = c->name;
  ait_tuner_recall(t, key, &c->result, sizeof c->result, &c->reused);
  c->reused = c->reused && ait_tuner_plausible_trial(&c->result);
  if (!c->reused) {
    snprintf(line, sizeof line, "the trial of '%s'", c->name);
    if (t->options.from_record) return ait_tuner_not_recorded(t, line);
    AIT_TRY(ait_tuner_need_answers(t));
    ait_tuner_tell(t, NULL);
    double start = ait_clock_seconds();
    AIT_TRY(ait_trial_run(&t->x, c, seconds, &c->result));
    c->result.wall_seconds = ait_clock_seconds() - start;
    ait_tuner_measured(t);
    ait_tuner_remember(t, key, c->name, &c->result, sizeof c->result);
  }
  set_median(c);
  c->rounds = c->median > 0;
  ++t->done;
  ait_tuner_finished_line(c, line, sizeof line);
  ait_tuner_tell(t, line);
  return AIT_OK;
}

static void skip(ait_tuner *t, ait_candidate *c, const char *why) {
  c->result.outcome = AIT_OUTCOME_SKIPPED;
  snprintf(c->result.reason, sizeof c->result.reason, "%s", why);
  ++t->done;
}

/* Default options on all threads: tried whatever the budget says, so that a small one cannot leave the baseline alone. */
static bool is_essential(const ait_tuner *t, const ait_candidate *c) { return c->threads == t->threads && !*c->options; }

static bool any_valid(const ait_tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i)
    if (t->list.items[i].median > 0) return true;
  return false;
}

/* A run that went to its end with these candidates and this budget has decided what was not worth trying: the same run again decides the
 * same. */
static void finish_key(ait_tuner *t, char *key, size_t size) {
  uint64_t names = 0;
  for (size_t i = 0; i < t->list.count; ++i) {
    names = ait_hash(t->list.items[i].name, strlen(t->list.items[i].name), names);
    names = ait_hash(t->list.items[i].version, strlen(t->list.items[i].version), names);
  }
  t->candidates = names;
  snprintf(key, size, "finished-%s-%s-%g-%016llx", t->key, t->objective.text, t->options.budget_seconds, (unsigned long long)names);
}

static bool is_recorded(ait_tuner *t, const ait_candidate *c) {
  char key[512];
  ait_trial_result result;
  bool found;
  ait_tuner_trial_key(t, c, key);
  ait_tuner_recall(t, key, &result, sizeof result, &found);
  return found && ait_tuner_plausible_trial(&result);
}

/* first-wins: a valid one that stands before it. The baseline is measured anyhow. */
static bool comes_too_late(const ait_tuner *t, const ait_candidate *c) {
  for (size_t i = 0; !c->baseline && t->objective.kind == AIT_STRATEGY_FIRST_WINS && i < t->list.count; ++i) {
    const ait_candidate *other = &t->list.items[i];
    int32_t mine = ait_candidate_rank(&t->options, c), its = ait_candidate_rank(&t->options, other);
    if (other->median > 0 && (its < mine || (its == mine && other < c))) return true;
  }
  return false;
}

static ait_status try_or_skip(ait_tuner *t, ait_candidate *c) {
  bool slow = !strcmp(c->backend->name, "reference"), recorded = is_recorded(t, c), essential = is_essential(t, c);
  if (ait_tuner_cancelled(t)) return ait_error(AIT_CODE_CANCELLED, "tuning was interrupted");
  if (*c->missing) skip(t, c, c->missing);
  else if (comes_too_late(t, c)) skip(t, c, "an earlier candidate was valid, and the first wins");
  else if (slow && any_valid(t) && (!t->options.backends || t->options.reference_last))
    skip(t, c, "the oracle is no contestant where another candidate is valid");
  else if (!recorded && !essential && ait_tuner_is_behind_in_kin(t, c) && any_valid(t))
    skip(t, c, "it was far behind on a model with mostly the same parts");
  else if (!recorded && !essential && (t->finished.done || ait_tuner_left(t, 0.6) < 0) && any_valid(t))
    skip(t, c, "the budget was used up");
  else if (!recorded && !essential && t->options.from_record) skip(t, c, "the record does not hold it");
  else AIT_TRY(ait_tuner_try_one(t, c, AIT_TRIAL_SECONDS));
  return AIT_OK;
}

double ait_tuner_rebuild_seconds(const ait_candidate *c) {
  double warm_up = 10 * c->median;
  return c->result.build_seconds + c->result.load_seconds + (warm_up < 0.2 ? warm_up : 0.2);
}

/* ---- the order of the first measurements ----------------------------------------------------------------------------------------*/
/* Default options on all threads, default options on fewer, then single knobs: those of what is fastest with its defaults come first, since
 * the budget may not last for all. */
static int stage_of(const ait_tuner *t, const ait_candidate *c) { return *c->options ? 2 : is_essential(t, c) ? 0 : 1; }

static double default_median(const ait_tuner *t, const ait_candidate *c) {
  for (size_t i = 0; i < t->list.count; ++i) {
    const ait_candidate *d = &t->list.items[i];
    if (d->backend == c->backend && d->threads == c->threads && !*d->options && !d->mix) return d->median > 0 ? d->median : INFINITY;
  }
  return INFINITY;
}

static ait_candidate *next_knob(const ait_tuner *t) {
  ait_candidate *best = NULL;
  for (size_t i = 0; i < t->list.count; ++i) {
    ait_candidate *c = &t->list.items[i];
    if (c->result.outcome == AIT_OUTCOME_NONE && (!best || default_median(t, c) < default_median(t, best))) best = c;
  }
  return best;
}

static ait_status measure_first(ait_tuner *t) {
  for (int stage = 0; stage < 2; ++stage)
    for (size_t i = 0; i < t->list.count; ++i)
      if (stage_of(t, &t->list.items[i]) == stage) AIT_TRY(try_or_skip(t, &t->list.items[i]));
  for (ait_candidate *c = next_knob(t); c; c = next_knob(t)) AIT_TRY(try_or_skip(t, c));
  return AIT_OK;
}

/* ---- successive halving ---------------------------------------------------------------------------------------------------------*/
/* The better half is measured again, for twice the time, until those that are left fit into the contest or the budget's share is used up.
 */
static int compare_medians(const void *a, const void *b) {
  const ait_candidate *x = *(ait_candidate *const *)a, *y = *(ait_candidate *const *)b;
  if (x->median != y->median) return x->median < y->median ? -1 : 1;
  return x < y ? -1 : 1;
}

static void again_key(const ait_tuner *t, const ait_candidate *c, uint32_t round, char out[560]) {
  char key[512];
  ait_tuner_trial_key(t, c, key);
  snprintf(out, 560, "again%u-%s", round, key);
}

static bool recall_again(ait_tuner *t, const ait_candidate *c, uint32_t round, ait_trial_result *out) {
  char key[560];
  bool found;
  again_key(t, c, round, key);
  ait_tuner_recall(t, key, out, sizeof *out, &found);
  return found && ait_tuner_plausible_trial(out);
}

static ait_status measure_again(ait_tuner *t, ait_candidate *c, uint32_t round, double seconds) {
  ait_trial_result r;
  char key[560], line[640];
  t->current = c->name;
  if (!recall_again(t, c, round, &r)) {
    if (ait_tuner_cancelled(t)) return ait_error(AIT_CODE_CANCELLED, "tuning was interrupted");
    ait_tuner_tell(t, NULL);
    AIT_TRY(ait_trial_again(&t->x, c, seconds, &r));
    ait_tuner_measured(t);
    again_key(t, c, round, key);
    ait_tuner_remember(t, key, c->name, &r, sizeof r);
  }
  if (r.outcome == AIT_OUTCOME_VALID) {
    memcpy(c->result.samples, r.samples, sizeof r.samples);
    c->result.sample_count = r.sample_count;
    c->result.dropped = r.dropped;
  } else {
    c->result.outcome = r.outcome;
    snprintf(c->result.reason, sizeof c->result.reason, "when measured again: %.*s", AIT_REASON_SIZE - 32, r.reason);
  }
  set_median(c);
  c->rounds = round + 1;
  if (c->median > 0) return AIT_OK;
  ait_tuner_finished_line(c, line, sizeof line);
  ait_tuner_tell(t, line);
  return AIT_OK;
}

/* Those that came through all rounds so far, the fastest first. */
static size_t survivors(ait_tuner *t, uint32_t round, ait_candidate **out) {
  size_t count = 0;
  for (size_t i = 0; i < t->list.count; ++i)
    if (t->list.items[i].median > 0 && t->list.items[i].rounds == round) out[count++] = &t->list.items[i];
  qsort(out, count, sizeof *out, compare_medians);
  return count;
}

/* All of a round or nothing: half of one would prefer those that happened to be measured. */
static bool round_fits(ait_tuner *t, ait_candidate *const *list, size_t count, uint32_t round, double seconds) {
  double need = 0;
  ait_trial_result r;
  for (size_t i = 0; i < count; ++i) {
    if (recall_again(t, list[i], round, &r)) continue;
    if (t->finished.done || t->options.from_record) return false;
    need += ait_tuner_rebuild_seconds(list[i]) + (seconds > list[i]->median ? seconds : list[i]->median);
  }
  return need == 0 || need < ait_tuner_left(t, 0.6);
}

static ait_status halve(ait_tuner *t) {
  ait_candidate **list = ait_alloc(ait_allocator_default(), (t->list.count + 1) * sizeof *list, _Alignof(ait_candidate *));
  ait_status status = list ? AIT_OK : AIT_OOM();
  double seconds = AIT_TRIAL_SECONDS;
  for (uint32_t round = 1; status == AIT_OK && round < AIT_TRIAL_ROUNDS; ++round) {
    size_t count = survivors(t, round, list);
    if (count < AIT_CONTEST_MAX) break;
    count = count / 2 > AIT_CONTEST_MAX - 1 ? count / 2 : AIT_CONTEST_MAX - 1;
    seconds *= 2;
    if (!round_fits(t, list, count, round, seconds)) break;
    for (size_t i = 0; status == AIT_OK && i < count; ++i) status = measure_again(t, list[i], round, seconds);
  }
  ait_free(ait_allocator_default(), list, (t->list.count + 1) * sizeof *list);
  return status;
}

ait_status ait_tuner_try_all(ait_tuner *t) {
  t->phase = "trials";
  t->total = (uint32_t)t->list.count;
  AIT_TRY(measure_first(t));
  AIT_TRY(halve(t));
  t->current = NULL;
  return AIT_OK;
}

/* ---- mixed plans -----------------------------------------------------------------------------------------------------------------*/
/* Not the model's: parts are known wherever they were measured on this machine by this build. */
static void part_key(const ait_tuner *t, uint64_t part, const ait_engine *e, int32_t threads, char out[512]) {
  snprintf(out, 512, "part-%016llx-%016llx-%s-%s-%s-%d", (unsigned long long)part, (unsigned long long)t->machine, e->version,
           e->backend->name, e->options, threads);
}

static bool recall_part(void *ctx, uint64_t part, const ait_engine *e, int32_t threads, ait_part_trial *out) {
  char key[512];
  bool found;
  part_key(ctx, part, e, threads, key);
  ait_tuner_recall(ctx, key, out, sizeof *out, &found);
  return found && out->seconds >= 0 && isfinite(out->seconds) && memchr(out->reason, 0, sizeof out->reason);
}

static void remember_part(void *ctx, uint64_t part, const ait_engine *e, int32_t threads, const ait_part_trial *trial) {
  char key[512], label[160];
  part_key(ctx, part, e, threads, key);
  snprintf(label, sizeof label, "a part on %s threads=%d", e->backend->name, threads);
  ait_tuner_remember(ctx, key, label, trial, sizeof *trial);
}

static ait_status measure_parts(void *ctx, const ait_candidate *c, double seconds, ait_trial_parts *out) {
  ait_tuner *t = ctx;
  if (ait_tuner_cancelled(t)) return ait_error(AIT_CODE_CANCELLED, "tuning was interrupted");
  t->current = c->name;
  ait_tuner_tell(t, NULL);
  AIT_TRY(ait_trial_measure_parts(&t->x, c, seconds, out));
  ait_tuner_measured(t);
  return AIT_OK;
}

static void tell_line(void *ctx, const char *line) { ait_tuner_tell(ctx, line); }

static bool has_any(const char *const *list) { return list && list[0]; }

/* With modules pinned to backends only plans that obey compete. */
static void drop_unpinned(ait_tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i) {
    ait_candidate *c = &t->list.items[i];
    if (c->mix || c->baseline || c->median <= 0) continue;
    c->median = 0;
    c->result.outcome = AIT_OUTCOME_SKIPPED;
    snprintf(c->result.reason, sizeof c->result.reason, "a module was given a backend or a strategy of its own");
  }
}

/* About what mixed plans and the contest cost: each backend builds the model as parts and in a mixed plan or two, the finalists once more.
 */
static double mixing_seconds(const ait_tuner *t) {
  double seconds = 0.1 * t->options.budget_seconds;
  for (size_t i = 0; i < t->list.count; ++i) {
    const ait_candidate *c = &t->list.items[i];
    if (c->median > 0 && !*c->options && c->threads == t->threads) seconds += 3 * ait_tuner_rebuild_seconds(c);
  }
  return seconds;
}

/* The first is always tried: the others where the budget allows what it took. */
static ait_status try_mix(ait_tuner *t, ait_candidate *c, bool must) {
  bool recorded = is_recorded(t, c);
  const ait_candidate *first = c;
  while (first > t->list.items && first[-1].mix) --first;
  if (!must && !recorded && (t->finished.done || ait_tuner_left(t, 0.85) < first->result.wall_seconds))
    skip(t, c, "the budget was used up");
  else if (!recorded && t->options.from_record) skip(t, c, "the record does not hold it");
  else AIT_TRY(ait_tuner_try_one(t, c, 4 * AIT_TRIAL_SECONDS));
  return AIT_OK;
}

ait_status ait_tuner_try_mixed(ait_tuner *t) {
  const char *regions = t->options.regions ? t->options.regions : "auto";
  bool pinned = has_any(t->options.module_backends) || has_any(t->options.module_strategies);
  bool ordered = t->objective.kind == AIT_STRATEGY_FIRST_WINS || t->objective.kind == AIT_STRATEGY_ONE_BACKEND;
  if (!pinned && (ordered || !strcmp(regions, "whole"))) return AIT_OK;
  bool must = pinned || !strcmp(regions, "modules"), late = ait_tuner_left(t, 1) < mixing_seconds(t);
  if (!must && (t->finished.done ? !t->finished.mixed : late)) return AIT_OK;
  t->finished.mixed = true;
  double left = ait_tuner_left(t, 0.85);
  size_t before = t->list.count;
  const ait_mix_hooks hooks = {t, recall_part, remember_part, t->options.from_record ? NULL : measure_parts, tell_line};
  t->phase = "parts";
  AIT_TRY(ait_tune_mix(&t->x, &t->list, left > 1 ? 0.5 * left : 0.5, &hooks));
  t->total = (uint32_t)t->list.count;
  t->phase = "trials";
  for (size_t i = before; i < t->list.count; ++i) AIT_TRY(try_mix(t, &t->list.items[i], must || i == before));
  t->current = NULL;
  t->decision->pinned = pinned;
  if (pinned) drop_unpinned(t);
  return AIT_OK;
}

/* ---- all candidates ------------------------------------------------------------------------------------------------------------------*/
void ait_tuner_recall_finished(ait_tuner *t) {
  bool found;
  finish_key(t, t->finish_key, sizeof t->finish_key);
  ait_tuner_recall(t, t->finish_key, &t->finished, sizeof t->finished, &found);
  if (!found || *(const uint8_t *)&t->finished.mixed > 1) t->finished = (ait_tuner_finish){0};
}

void ait_tuner_remember_finished(ait_tuner *t) {
  if (t->finished.done || t->options.from_record) return;
  ait_tuner_finish finish = {.done = 1, .mixed = t->finished.mixed};
  ait_tuner_remember(t, t->finish_key, "finished", &finish, sizeof finish);
}
