/* Trials of candidates, whole and mixed, with the record and the budget around them. */
#include "tune/tune_mix.h"
#include "tune/tuner.h"
#include <stdio.h>

/* ---- trials ----------------------------------------------------------------------------------------------------------------------*/
void ait_tuner_finished_line(const ait_candidate *c, char *out, size_t size) {
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
  return ait_tuner_need_answers(t);
}

ait_status ait_tuner_try_one(ait_tuner *t, ait_candidate *c, double seconds) {
  char key[512], line[640];
  ait_tuner_trial_key(t, c, key);
  t->current = c->name;
  ait_tuner_recall(t, key, &c->result, sizeof c->result, &c->reused);
  c->reused = c->reused && ait_tuner_plausible_trial(&c->result);
  if (!c->reused) {
    AIT_TRY(ait_tuner_need_answers(t));
    ait_tuner_tell(t, NULL);
    AIT_TRY(ait_trial_run(&t->x, c, seconds, &c->result));
    ait_tuner_remember(t, key, c->name, &c->result, sizeof c->result);
  }
  set_median(c);
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
static bool ait_tuner_is_essential(const ait_tuner *t, const ait_candidate *c) { return c->threads == t->threads && !*c->options; }

static bool ait_tuner_any_valid(const ait_tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i)
    if (t->list.items[i].median > 0) return true;
  return false;
}

/* A run that went to its end with these candidates and this budget has decided what was not worth trying: the same run again decides the
 * same. */
static void finish_key(const ait_tuner *t, char *key, size_t size) {
  uint64_t names = 0;
  for (size_t i = 0; i < t->list.count; ++i) {
    names = ait_hash(t->list.items[i].name, strlen(t->list.items[i].name), names);
    names = ait_hash(t->list.items[i].version, strlen(t->list.items[i].version), names);
  }
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

static ait_status try_or_skip(ait_tuner *t, ait_candidate *c, double seconds) {
  double budget = t->options.budget_seconds;
  bool slow = !strcmp(c->backend->name, "reference"), recorded = is_recorded(t, c);
  if (ait_tuner_cancelled(t)) return ait_error(AIT_CODE_CANCELLED, "tuning was interrupted");
  if (*c->missing) skip(t, c, c->missing);
  else if (comes_too_late(t, c)) skip(t, c, "an earlier candidate was valid, and the first wins");
  else if (slow && ait_tuner_any_valid(t) && !t->options.backends)
    skip(t, c, "the oracle is no contestant where another candidate is valid");
  else if (t->finished_before && !recorded && !ait_tuner_is_essential(t, c)) skip(t, c, "the budget was used up");
  else if (!recorded && !ait_tuner_is_essential(t, c) && ait_tuner_any_valid(t) && ait_clock_seconds() - t->start > 0.7 * budget)
    skip(t, c, "the budget was used up");
  else AIT_TRY(ait_tuner_try_one(t, c, seconds));
  return AIT_OK;
}

ait_status ait_tuner_try_all(ait_tuner *t) {
  double each = 0.5 * t->options.budget_seconds / (double)t->list.count;
  char key[512], done = 1;
  finish_key(t, key, sizeof key);
  ait_tuner_recall(t, key, &done, sizeof done, &t->finished_before);
  each = each > 1 ? 1 : each < 0.05 ? 0.05 : each;
  t->phase = "trials";
  t->total = (uint32_t)t->list.count;
  for (int essential = 1; essential >= 0; --essential)
    for (size_t i = 0; i < t->list.count; ++i)
      if (ait_tuner_is_essential(t, &t->list.items[i]) == (essential == 1)) AIT_TRY(try_or_skip(t, &t->list.items[i], each));
  t->current = NULL;
  if (!t->finished_before) ait_tuner_remember(t, key, "finished", &done, sizeof done);
  return AIT_OK;
}

/* ---- mixed plans -----------------------------------------------------------------------------------------------------------------*/
static ait_status measure_parts(void *ctx, const ait_candidate *c, double seconds, ait_trial_parts *out) {
  ait_tuner *t = ctx;
  char key[512], line[640];
  bool found;
  ait_tuner_trial_key(t, c, key);
  t->current = c->name;
  ait_tuner_recall(t, key, out, sizeof *out, &found);
  if (found && ait_tuner_plausible_parts(out)) return AIT_OK;
  AIT_TRY(ait_tuner_need_answers(t));
  ait_tuner_tell(t, NULL);
  AIT_TRY(ait_trial_measure_parts(&t->x, c, seconds, out));
  ait_tuner_remember(t, key, c->name, out, sizeof *out);
  if (out->outcome != AIT_OUTCOME_VALID) {
    snprintf(line, sizeof line, "%s: %s: %s", c->name, ait_outcome_text(out->outcome), out->reason);
    ait_tuner_tell(t, line);
  }
  return AIT_OK;
}

/* With modules pinned to backends only plans that obey compete. */
static void drop_unpinned(ait_tuner *t) {
  for (size_t i = 0; i < t->list.count; ++i) {
    ait_candidate *c = &t->list.items[i];
    if (c->mix || c->baseline || c->median <= 0) continue;
    c->median = 0;
    c->result.outcome = AIT_OUTCOME_SKIPPED;
    snprintf(c->result.reason, sizeof c->result.reason, "a module was given another backend");
  }
}

ait_status ait_tuner_try_mixed(ait_tuner *t) {
  const char *regions = t->options.regions ? t->options.regions : "auto";
  bool pinned = t->options.module_backends && t->options.module_backends[0];
  bool ordered = t->objective.kind == AIT_STRATEGY_FIRST_WINS || t->objective.kind == AIT_STRATEGY_ONE_BACKEND;
  if (!pinned && (ordered || !strcmp(regions, "whole"))) return AIT_OK;
  double left = t->options.budget_seconds - (ait_clock_seconds() - t->start);
  bool late = left < 0.15 * t->options.budget_seconds && !t->finished_before;
  if (late && !pinned && strcmp(regions, "modules")) return AIT_OK;
  size_t before = t->list.count;
  t->phase = "parts";
  AIT_TRY(ait_tune_mix(&t->x, &t->list, left > 4 ? 0.25 * left : 1, &(ait_mix_hooks){t, measure_parts}));
  t->total = (uint32_t)t->list.count;
  t->phase = "trials";
  for (size_t i = before; i < t->list.count; ++i) AIT_TRY(ait_tuner_try_one(t, &t->list.items[i], 1));
  t->current = NULL;
  t->decision->pinned = pinned;
  if (pinned) drop_unpinned(t);
  return AIT_OK;
}
