/* The final contest, and what it decides. */
#include "tune/sittings.h"
#include "tune/tuner.h"
#include <stdio.h>

/* ---- the contest -----------------------------------------------------------------------------------------------------------------*/
/* A finalist that was right and fast in its trial and fails now: it is out. */
static void disqualify(ait_tuner *t) {
  const ait_contest *contest = &t->decision->contest;
  ait_candidate *c = &t->list.items[t->decision->finalists[contest->culprit]];
  char key[512], line[640];
  c->result = (ait_trial_result){.outcome = contest->outcome};
  snprintf(c->result.reason, sizeof c->result.reason, "in the final contest: %.*s", AIT_REASON_SIZE - 32, contest->reason);
  c->median = 0;
  ait_tuner_trial_key(t, c, key);
  ait_tuner_remember(t, key, c->name, &c->result, sizeof c->result);
  ait_tuner_finished_line(c, line, sizeof line);
  ait_tuner_tell(t, line);
}

static ait_status missing_contest(const ait_tuner *t) {
  char what[400] = "the final contest of";
  for (uint32_t k = 0; k < t->decision->finalist_count; ++k) {
    size_t n = strlen(what);
    snprintf(what + n, sizeof what - n, "%s '%s'", k ? "," : "", t->list.items[t->decision->finalists[k]].name);
  }
  return ait_tuner_not_recorded(t, what);
}

/* ---- sittings --------------------------------------------------------------------------------------------------------------------*/
typedef struct sittings {
  ait_tuner *t;
  ait_trial_context x;
  double end; /* when the contest's time is over */
} sittings;

static ait_candidate *finalist(const sittings *s, uint32_t k) { return &s->t->list.items[s->t->decision->finalists[k]]; }

static double seconds_left(void *ctx) { return ((const sittings *)ctx)->end - ait_clock_seconds(); }
static double rebuild_seconds(void *ctx, uint32_t k) { return ait_tuner_rebuild_seconds(finalist(ctx, k)); }

static void tell_undecided(void *ctx, uint32_t k) {
  const sittings *s = ctx;
  const ait_decision *d = s->t->decision;
  char line[640];
  snprintf(line, sizeof line, "contest: '%s' and '%s' are within noise after %u rounds; they go on", finalist(s, k)->name,
           finalist(s, d->fastest)->name, d->contest.rounds);
  ait_tuner_tell(s->t, line);
}

static ait_status sit(void *ctx, uint32_t sitting, const uint32_t *who, uint32_t count, double seconds, ait_contest *out) {
  sittings *s = ctx;
  s->x.sitting = sitting;
  const ait_candidate *members[AIT_CONTEST_MAX];
  for (uint32_t i = 0; i < count; ++i) members[i] = finalist(s, who[i]);
  AIT_TRY(ait_contest_run(&s->x, members, count, seconds, out));
  ait_tuner_measured(s->t);
  return AIT_OK;
}

/* What is left of the budget: at least a twentieth of it, at most 10 s and a quarter of it. */
static ait_status hold_sittings(ait_tuner *t, const ait_trial_context *x) {
  double left = ait_tuner_left(t, 1), least = 0.05 * t->options.budget_seconds, most = 10 + 0.25 * t->options.budget_seconds;
  left = left < least ? least : left > most ? most : left;
  sittings s = {t, *x, ait_clock_seconds() + left};
  const ait_sitting_hooks hooks = {&s, least, seconds_left, rebuild_seconds, tell_undecided, sit};
  return ait_sittings_hold(&t->list, t->decision, &hooks);
}

/* *out_again: a member failed and is out; the others must meet again. */
static ait_status hold_contest(ait_tuner *t, bool *out_again) {
  ait_decision *d = t->decision;
  char key[512];
  uint64_t names = 0;
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    const ait_candidate *c = &t->list.items[d->finalists[k]];
    names = ait_hash(c->name, strlen(c->name), names);
    names = ait_hash(c->version, strlen(c->version), names);
  }
  snprintf(key, sizeof key, "contest-%s-%016llx-%llu-%lld", t->key, (unsigned long long)names, (unsigned long long)t->options.seed,
           (long long)t->goal.contest_size);
  ait_trial_context x = t->x;
  if (t->goal.contest_size) x.cases = &t->goal.at_size;
  t->phase = "contest";
  ait_tuner_tell(t, NULL);
  ait_tuner_recall(t, key, &d->contest, sizeof d->contest, &d->reused);
  d->reused = d->reused && ait_tuner_plausible_contest(&d->contest, d->finalist_count);
  if (!d->reused) {
    if (t->options.from_record) return missing_contest(t);
    AIT_TRY(hold_sittings(t, &x));
    if (d->contest.failed) return *out_again = true, disqualify(t), AIT_OK;
    ait_tuner_remember(t, key, "contest", &d->contest, sizeof d->contest);
  }
  d->contested = true;
  ait_decide_winner(&t->list, d);
  return AIT_OK;
}

/* The winner is known before: it meets the baseline for the evidence of its speed. */
static void fix(ait_decision *d, int32_t chosen) {
  d->fixed = true;
  d->chosen = chosen;
  d->single = -1; /* it was not the fastest that was wanted */
  d->over_single = (ait_stats){0};
  d->finalist_count = 0;
  if (d->baseline >= 0) d->finalists[d->finalist_count++] = d->baseline;
  if (d->baseline != chosen) d->finalists[d->finalist_count++] = chosen;
}

/* first-wins and one-backend take the first valid candidate in the user's order; one-backend no other. -1: none. */
static int32_t first_of(const ait_tuner *t) {
  int32_t first = -1, best = INT32_MAX;
  for (size_t i = 0; i < t->list.count; ++i) {
    const ait_candidate *c = &t->list.items[i];
    int32_t rank = ait_candidate_rank(&t->options, c);
    bool counts = c->median > 0 && c->threads == t->threads && (first < 0 || rank < best);
    if (!counts || (t->objective.kind == AIT_STRATEGY_ONE_BACKEND && rank == INT32_MAX)) continue;
    first = (int32_t)i;
    best = rank;
  }
  return first;
}

ait_status ait_tuner_decide(ait_tuner *t) {
  ait_decision *d = t->decision;
  bool ordered = t->objective.kind == AIT_STRATEGY_FIRST_WINS || t->objective.kind == AIT_STRATEGY_ONE_BACKEND;
  for (bool again = true; again;) { /* each time with one candidate less */
    again = false;
    AIT_TRY(ait_tuner_aim(t, &again));
    if (again) continue;
    ait_decide_finalists(&t->list, d);
    d->contested = false;
    if (d->finalist_count == 0 || *t->goal.unmet) return AIT_OK;
    if (d->fixed) fix(d, d->chosen);
    if (ordered) {
      int32_t first = first_of(t);
      if (first < 0) return AIT_OK;
      fix(d, first);
    }
    AIT_TRY(hold_contest(t, &again));
    again = again || ait_tuner_missed(t);
  }
  return AIT_OK;
}

/* Nothing valid: with one-backend its own error comes through. */
ait_status ait_tuner_nothing_valid(const ait_tuner *t) {
  if (*t->goal.unmet)
    return ait_error_hint(ait_error(AIT_CODE_MISMATCH, "%s", t->goal.unmet), "the report lists every candidate with its latencies");
  for (size_t i = 0; i < t->list.count; ++i) {
    const ait_candidate *c = &t->list.items[i];
    if (!c->baseline && *c->missing && t->objective.kind == AIT_STRATEGY_ONE_BACKEND)
      return ait_error_hint(ait_error(AIT_CODE_UNAVAILABLE, "backend '%s' is not here", c->backend->name), "'ait backends' says why");
    if (!c->baseline && *c->result.reason)
      return ait_error_hint(ait_error(AIT_CODE_MISMATCH, "no candidate is valid; '%s' %s: %s", c->name, ait_outcome_text(c->result.outcome),
                                      c->result.reason),
                            "the report lists every candidate with its reason");
  }
  return ait_error(AIT_CODE_MISMATCH, "no candidate is valid");
}
