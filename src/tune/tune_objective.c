/* What the objective wants measured of the best candidates beyond times at the samples' sizes, and who may win by it. */
#include "tune/memory_use.h"
#include "tune/tune_mix.h"
#include "tune/tuner.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Looked at more closely: the baseline, the fastest at the samples' sizes, the fastest of each backend and number of threads that is
 * not hopeless there, for other sizes may suit it better, and the defaults beside it. At most twice SHORTLIST. */
enum { SHORTLIST = 6 };
static const double hopeless = 4, barely = 1.5;

void ait_goal_deinit(ait_goal *g) {
  ait_allocator a = ait_allocator_default();
  ait_free(a, g->batches, AIT_GOAL_CANDIDATES * sizeof *g->batches);
  ait_free(a, g->replays, AIT_GOAL_CANDIDATES * sizeof *g->replays);
  ait_tune_cases_deinit(&g->at_size);
  ait_traffic_deinit(&g->traffic);
}

/* ---- the shortlist ---------------------------------------------------------------------------------------------------------------*/
static int32_t place_of(const ait_goal *g, size_t candidate) {
  for (uint32_t k = 0; k < g->count; ++k)
    if (g->who[k] == (int32_t)candidate) return (int32_t)k;
  return -1;
}

static bool same_family(const ait_candidate *a, const ait_candidate *b) {
  return a->backend == b->backend && a->threads == b->threads && !a->mix == !b->mix;
}

/* The fastest that is not in yet; family: none of its kind may be in. -1: none. */
static int32_t next_fastest(const ait_tuner *t, bool family) {
  const ait_goal *g = &t->goal;
  int32_t next = -1;
  for (size_t i = 0; i < t->list.count; ++i) {
    const ait_candidate *c = &t->list.items[i];
    bool out = c->median <= 0 || place_of(g, i) >= 0;
    for (uint32_t k = 0; family && k < g->count; ++k) out |= same_family(c, &t->list.items[g->who[k]]);
    if (!out && (next < 0 || c->median < t->list.items[next].median)) next = (int32_t)i;
  }
  return next;
}

/* The defaults of a family whose fastest may win: an option that was ahead by chance in its trial must not win because they were not asked.
 */
static void add_defaults(ait_tuner *t, const ait_candidate *fastest, double most) {
  ait_goal *g = &t->goal;
  for (size_t i = 0; fastest->median < most && i < t->list.count; ++i) {
    const ait_candidate *c = &t->list.items[i];
    if (same_family(c, fastest) && !*c->options && !c->mix && c->median > 0 && place_of(g, i) < 0) g->who[g->count++] = (int32_t)i;
  }
}

static void make_shortlist(ait_tuner *t) {
  ait_goal *g = &t->goal;
  int32_t fastest = next_fastest(t, false), next;
  if (fastest < 0) return;
  double best = t->list.items[fastest].median;
  g->who[g->count++] = fastest;
  for (size_t i = 0; i < t->list.count; ++i) { /* the baseline: its best */
    const ait_candidate *c = &t->list.items[i];
    if (!c->baseline || c->median <= 0) continue;
    for (size_t k = i + 1; k < t->list.count; ++k)
      if (t->list.items[k].baseline && t->list.items[k].median > 0 && t->list.items[k].median < c->median) c = &t->list.items[k];
    if (place_of(g, (size_t)(c - t->list.items)) < 0) g->who[g->count++] = (int32_t)(c - t->list.items);
    break;
  }
  while (g->count < SHORTLIST && (next = next_fastest(t, true)) >= 0 && t->list.items[next].median < hopeless * best)
    g->who[g->count++] = next;
  for (uint32_t k = 0, count = g->count; k < count; ++k) add_defaults(t, &t->list.items[g->who[k]], barely * best);
  while (g->count < SHORTLIST && (next = next_fastest(t, false)) >= 0 && t->list.items[next].median < barely * best)
    g->who[g->count++] = next;
}

/* Those still to come share what is left for it. */
static double share_of_budget(const ait_tuner *t, uint32_t done, double most) {
  double left = ait_tuner_left(t, 0.85), each = left / (t->goal.count > done ? t->goal.count - done : 1);
  return each > most ? most : each < 0.2 ? 0.2 : each;
}

static void look_key(const ait_tuner *t, const char *what, const ait_candidate *c, char out[1024]) {
  char trial[512];
  ait_tuner_trial_key(t, c, trial);
  snprintf(out, 1024, "%s-%s", what, trial);
}

static ait_status not_recorded(const ait_tuner *t, const char *what, const ait_candidate *c) {
  char text[400];
  snprintf(text, sizeof text, "%.100s of '%.256s'", what, c->name);
  return ait_tuner_not_recorded(t, text);
}

/* ---- batch sizes -----------------------------------------------------------------------------------------------------------------*/
static bool plausible_batches(const ait_batch_result *r) {
  bool good = (uint32_t)r->outcome <= AIT_OUTCOME_SKIPPED && (uint32_t)r->stop < AIT_BATCH_STOP_COUNT && r->count <= AIT_BATCH_POINTS &&
              r->best >= -1 && r->best < (int32_t)r->count && memchr(r->reason, 0, sizeof r->reason);
  for (uint32_t i = 0; good && i < r->count; ++i) {
    const ait_batch_point *p = &r->points[i];
    good = p->size > 0 && p->median > 0 && isfinite(p->median) && isfinite(p->quantile) && p->quantile > 0 && p->low <= p->high;
  }
  return good;
}

/* Bytes that one candidate may take: most of what there is. */
static uint64_t memory_limit(const ait_tuner *t) {
  double room = 0.7 * (double)ait_memory_available("");
  if (t->options.memory_bytes && (double)t->options.memory_bytes < room) room = (double)t->options.memory_bytes;
  if (t->options.trial_bytes && 0.7 * (double)t->options.trial_bytes < room) room = 0.7 * (double)t->options.trial_bytes;
  return room >= 1.8e19 ? UINT64_MAX : (uint64_t)room;
}

static void tell_batches(ait_tuner *t, const ait_candidate *c, const ait_batch_result *r) {
  char line[640];
  if (r->best < 0) snprintf(line, sizeof line, "%s: %s", c->name, *r->reason ? r->reason : "no batch size keeps the limits");
  else
    snprintf(line, sizeof line, "%s: %.4g rows/s at batch size %lld (%u sizes tried; %s)", c->name,
             (double)r->points[r->best].size / r->points[r->best].median, (long long)r->points[r->best].size, r->count,
             ait_batch_stop_text(r->stop));
  ait_tuner_tell(t, line);
}

static ait_status search_one(ait_tuner *t, uint32_t k) {
  ait_goal *g = &t->goal;
  const ait_candidate *c = &t->list.items[g->who[k]];
  char key[1024], what[400];
  bool found;
  snprintf(what, sizeof what, "batch-%s-%s-%g-%llu", t->options.batch_sizes ? t->options.batch_sizes : "",
           t->objective.kind == AIT_STRATEGY_LATENCY_BUDGET ? t->objective.text : "", g->limits.quantile,
           (unsigned long long)t->options.memory_bytes);
  look_key(t, what, c, key);
  ait_tuner_recall(t, key, &g->batches[k], sizeof g->batches[k], &found);
  if (found && plausible_batches(&g->batches[k]) && (t->finished.done || g->batches[k].stop != AIT_BATCH_STOP_TIME)) return AIT_OK;
  if (t->options.from_record) return not_recorded(t, "batch sizes", c);
  if (ait_tuner_cancelled(t)) return ait_error(AIT_CODE_CANCELLED, "tuning was interrupted");
  ait_batch_limits limits = g->limits;
  limits.seconds = share_of_budget(t, k, 6);
  limits.known_bytes = c->result.plan_bytes;
  t->current = c->name;
  ait_tuner_tell(t, NULL);
  AIT_TRY(ait_trial_batches(&t->x, c, &g->space, &limits, &g->batches[k]));
  ait_tuner_measured(t);
  ait_tuner_remember(t, key, c->name, &g->batches[k], sizeof g->batches[k]);
  tell_batches(t, c, &g->batches[k]);
  t->current = NULL;
  return AIT_OK;
}

static ait_status sample_symbols(const ait_tuner *t, int64_t **out) {
  const ait_tune_case *sample = &t->cases.items[0];
  *out = ait_alloc(ait_allocator_default(), (t->region->symbol_count + 1) * sizeof **out, _Alignof(int64_t));
  return *out ? ait_bind_inputs(t->region, sample->inputs, sample->input_count, *out) : AIT_OOM();
}

static void free_symbols(const ait_tuner *t, int64_t *symbols) {
  ait_free(ait_allocator_default(), symbols, (t->region->symbol_count + 1) * sizeof *symbols);
}

/* Finds out whether there is anything to search, and searches for the shortlist. */
static ait_status search_batches(ait_tuner *t) {
  ait_goal *g = &t->goal;
  AIT_TRY(ait_batch_find(t->region, t->options.batch_sizes, &g->space, &g->has_batch));
  if (!g->has_batch) return AIT_OK;
  int64_t *symbols;
  ait_status status = sample_symbols(t, &symbols);
  g->limits = (ait_batch_limits){.latency = t->objective.kind == AIT_STRATEGY_LATENCY_BUDGET ? t->objective.limit_seconds : 0,
                                 .quantile = t->objective.quantile > 0 ? t->objective.quantile : 0.95,
                                 .bytes = memory_limit(t),
                                 .known_size = status == AIT_OK ? symbols[g->space.symbol] : 0};
  free_symbols(t, symbols);
  g->batches = ait_alloc_zero(ait_allocator_default(), AIT_GOAL_CANDIDATES * sizeof *g->batches, _Alignof(ait_batch_result));
  if (status == AIT_OK && !g->batches) status = AIT_OOM();
  AIT_TRY(status);
  t->phase = "batch sizes";
  make_shortlist(t);
  for (uint32_t k = 0; k < g->count; ++k) AIT_TRY(search_one(t, k));
  if (t->objective.kind != AIT_STRATEGY_LATENCY_BUDGET) return AIT_OK;
  /* Nobody is within the budget yet: then all others are asked. That is quick: their first size is too slow or it is not. */
  bool met = false;
  for (uint32_t k = 0; k < g->count; ++k) met |= g->batches[k].best >= 0;
  for (int32_t next; !met && g->count < AIT_GOAL_CANDIDATES && (next = next_fastest(t, false)) >= 0; ++g->count) {
    g->who[g->count] = next;
    AIT_TRY(search_one(t, g->count));
    met = g->batches[g->count].best >= 0;
  }
  return AIT_OK;
}

/* The case of the contest: the first sample at that batch size. */
static ait_status make_contest_case(ait_tuner *t, int64_t size) {
  ait_goal *g = &t->goal;
  int64_t *symbols;
  ait_tune_case c = {0};
  bool possible = false;
  if (g->contest_size == size) return AIT_OK;
  ait_tune_cases_deinit(&g->at_size);
  g->contest_size = 0;
  ait_status status = sample_symbols(t, &symbols);
  if (status == AIT_OK) symbols[g->space.symbol] = size;
  if (status == AIT_OK) status = ait_tune_case_resized(&t->cases, t->region, symbols, "batch", &c, &possible);
  free_symbols(t, symbols);
  if (status == AIT_OK && possible) status = ait_tune_cases_single(t->region, &(ait_sample){c.inputs, c.input_count}, &g->at_size);
  ait_tune_case_release(&t->cases, &c);
  if (status == AIT_OK && possible) g->contest_size = size;
  return status;
}

/* Is the batch size among those at which the candidates were checked, or between them? */
static ait_status within_checked(const ait_tuner *t, int64_t size, bool *out) {
  size_t bytes = (t->region->symbol_count + 1) * sizeof(int64_t);
  int64_t *symbols = ait_alloc(ait_allocator_default(), bytes, _Alignof(int64_t)), low = INT64_MAX, high = 0;
  ait_status status = symbols ? AIT_OK : AIT_OOM();
  for (size_t i = 0; status == AIT_OK && i < t->cases.count; ++i) {
    status = ait_bind_inputs(t->region, t->cases.items[i].inputs, t->cases.items[i].input_count, symbols);
    if (status != AIT_OK) break;
    int64_t v = symbols[t->goal.space.symbol];
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  ait_free(ait_allocator_default(), symbols, bytes);
  *out = size >= low && size <= high;
  return status;
}

static const double oracle_seconds = 20;

/* Candidates were checked at the samples', the smallest and the largest sizes. A batch size beyond those is checked as well, where the
 * oracle can do it in reasonable time: whoever is wrong there is out. *out_again: somebody is. */
static ait_status check_at_size(ait_tuner *t, bool *out_again) {
  ait_goal *g = &t->goal;
  bool within;
  *g->unchecked = 0;
  AIT_TRY(within_checked(t, g->contest_size, &within));
  if (within) return AIT_OK;
  double growth = g->limits.known_size > 0 ? (double)g->contest_size / (double)g->limits.known_size : 1;
  if (3 * t->cases.reference_seconds * growth > oracle_seconds) {
    snprintf(g->unchecked, sizeof g->unchecked, "the oracle would take longer than %.0f s", oracle_seconds);
    return AIT_OK;
  }
  ait_trial_context x = t->x;
  x.cases = &g->at_size;
  bool answered = false;
  for (uint32_t k = 0; k < g->count; ++k) {
    ait_candidate *c = &t->list.items[g->who[k]];
    char key[1024], what[400];
    ait_trial_result result;
    bool found;
    if (c->median <= 0 || c->barred) continue;
    snprintf(what, sizeof what, "at-%lld", (long long)g->contest_size);
    look_key(t, what, c, key);
    ait_tuner_recall(t, key, &result, sizeof result, &found);
    if (!found || !ait_tuner_plausible_trial(&result)) {
      if (t->options.from_record) return not_recorded(t, what, c);
      double start = ait_clock_seconds();
      if (!answered) AIT_TRY(ait_tune_cases_answer(&g->at_size, t->raw, &t->options, t->threads));
      t->start += answered ? 0 : ait_clock_seconds() - start; /* as the oracle at the samples: not of the budget */
      answered = true;
      AIT_TRY(ait_trial_run(&x, c, 0.02, &result));
      ait_tuner_remember(t, key, c->name, &result, sizeof result);
    }
    if (result.outcome == AIT_OUTCOME_VALID) continue;
    c->result.outcome = result.outcome;
    snprintf(c->result.reason, sizeof c->result.reason, "at batch size %lld: %.200s", (long long)g->contest_size, result.reason);
    c->median = 0;
    *out_again = true;
  }
  return AIT_OK;
}

/* Does it keep the limits at this size? Where that was not measured: at a larger one, or between two. */
static bool holds_at(const ait_batch_result *r, const ait_batch_limits *limits, int64_t size) {
  for (uint32_t i = 0; i < r->count; ++i)
    if (r->points[i].size >= size && ait_batch_keeps(&r->points[i], limits)) return true;
  if (limits->latency > 0) return false;
  double bytes = ait_batch_foretell(r->points, r->count, size); /* its search ended earlier, for there was nothing to gain */
  return bytes <= (double)limits->bytes;
}

static void say_unmet(ait_tuner *t) {
  ait_goal *g = &t->goal;
  if (g->limits.latency <= 0) {
    snprintf(g->unmet, sizeof g->unmet, "no batch size fits into %.4g MB of memory", 1e-6 * (double)g->limits.bytes);
    return;
  }
  const char *who = NULL;
  double least = INFINITY;
  int64_t size = 0;
  for (uint32_t k = 0; k < g->count; ++k)
    for (uint32_t i = 0; t->list.items[g->who[k]].median > 0 && i < g->batches[k].count; ++i) {
      if (g->batches[k].points[i].quantile >= least) continue;
      least = g->batches[k].points[i].quantile;
      size = g->batches[k].points[i].size;
      who = t->list.items[g->who[k]].name;
    }
  if (!who) return;
  snprintf(g->unmet, sizeof g->unmet, "nothing meets the latency budget of %g ms (p%g); closest is %s with %.3g ms at batch size %lld",
           1e3 * g->limits.latency, 100 * g->limits.quantile, who, 1e3 * least, (long long)size);
}

static ait_status aim_at_batches(ait_tuner *t, bool *out_again) {
  ait_goal *g = &t->goal;
  int32_t best = -1;
  *g->unmet = 0;
  for (size_t i = 0; i < t->list.count; ++i) {
    ait_candidate *c = &t->list.items[i];
    int32_t k = place_of(g, i), at = k < 0 ? -1 : ait_batch_best(g->batches[k].points, g->batches[k].count, &g->limits);
    c->barred = NULL;
    c->score = 0;
    if (c->median <= 0) continue;
    if (k < 0) c->barred = "not among the fastest at the samples' sizes";
    else if (at < 0) c->barred = *g->batches[k].reason ? g->batches[k].reason : "no batch size keeps the limits";
    if (c->barred) continue;
    g->batches[k].best = at;
    c->score = g->batches[k].points[at].median / (double)g->batches[k].points[at].size;
    if (best < 0 || c->score < t->list.items[best].score) best = (int32_t)i;
  }
  if (best < 0) return say_unmet(t), AIT_OK;
  const ait_batch_result *winner = &g->batches[place_of(g, (size_t)best)];
  AIT_TRY(make_contest_case(t, winner->points[winner->best].size));
  for (uint32_t k = 0; k < g->count; ++k)
    if (!holds_at(&g->batches[k], &g->limits, g->contest_size) && !t->list.items[g->who[k]].barred)
      t->list.items[g->who[k]].barred = "keeps the limits at smaller batch sizes only";
  return check_at_size(t, out_again);
}

/* The contest is the evidence of its speed only. */
static void choose(ait_tuner *t, int32_t candidate) {
  t->decision->fixed = true;
  t->decision->chosen = candidate;
}

/* ---- without a batch size: the latency at the samples' sizes -----------------------------------------------------------------------*/
static double trial_quantile(const ait_candidate *c, double q) {
  double copy[AIT_TRIAL_SAMPLES];
  memcpy(copy, c->result.samples, sizeof copy);
  uint32_t n = ait_stats_of(copy, c->result.sample_count).count;
  return n ? ait_stats_quantile(copy, n, q) : INFINITY;
}

static void aim_at_latency(ait_tuner *t) {
  const ait_candidate *closest = NULL;
  double least = INFINITY, limit = t->objective.limit_seconds;
  bool met = false;
  *t->goal.unmet = 0;
  for (size_t i = 0; i < t->list.count; ++i) {
    ait_candidate *c = &t->list.items[i];
    if (c->median <= 0) continue;
    double q = trial_quantile(c, t->objective.quantile);
    if (q > limit) c->barred = "slower than the latency budget";
    met |= !c->barred;
    if (q < least) least = q, closest = c;
  }
  if (!met && closest)
    snprintf(t->goal.unmet, sizeof t->goal.unmet, "nothing meets the latency budget of %g ms (p%g); closest is %s with %.3g ms",
             1e3 * limit, 100 * t->objective.quantile, closest->name, 1e3 * least);
}

/* In the contest the winner was slower than the budget: it is out, at this batch size. */
static bool broke_budget(ait_tuner *t) {
  ait_decision *d = t->decision;
  ait_goal *g = &t->goal;
  double times[AIT_CONTEST_ROUNDS];
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    if (d->finalists[k] != d->winner) continue;
    uint32_t n = ait_stats_of(times, ait_contest_times(&d->contest, k, times)).count;
    double q = n ? ait_stats_quantile(times, n, t->objective.quantile) : 0;
    if (q <= t->objective.limit_seconds) return false;
    int32_t place = g->has_batch ? place_of(g, (size_t)d->winner) : -1;
    for (uint32_t i = 0; place >= 0 && i < g->batches[place].count; ++i) {
      ait_batch_point *p = &g->batches[place].points[i];
      if (p->size >= g->contest_size && p->quantile <= q) p->quantile = q;
    }
    if (place < 0) t->list.items[d->winner].barred = "slower than the latency budget in the contest";
    return true;
  }
  return false;
}

/* ---- memory ----------------------------------------------------------------------------------------------------------------------*/
static void aim_at_memory(ait_tuner *t) {
  double least = INFINITY;
  int32_t best = -1;
  for (size_t i = 0; i < t->list.count; ++i) {
    ait_candidate *c = &t->list.items[i];
    if (c->median <= 0) continue;
    c->score = (double)ait_trial_memory(&c->result) + 1; /* a plan of nothing is no score of 0 */
    if (c->score < least) least = c->score;
  }
  for (size_t i = 0; i < t->list.count; ++i) { /* pages come and go: within 2 % it is a tie, and the fastest wins it */
    const ait_candidate *c = &t->list.items[i];
    bool mine = c->median > 0 && c->score <= 1.02 * least && !(t->decision->pinned && c->baseline);
    if (mine && (best < 0 || c->median < t->list.items[best].median)) best = (int32_t)i;
  }
  if (best >= 0) choose(t, best);
}

/* ---- traffic ---------------------------------------------------------------------------------------------------------------------*/
static bool plausible_replay(const ait_replay_result *r) {
  bool good = (uint32_t)r->outcome <= AIT_OUTCOME_SKIPPED && r->passes <= AIT_REPLAY_PASSES && memchr(r->reason, 0, sizeof r->reason);
  for (uint32_t i = 0; good && i < r->passes; ++i) good = r->scores[i] > 0 && isfinite(r->scores[i]);
  return good && (r->outcome != AIT_OUTCOME_VALID || (r->passes > 0 && r->score > 0 && isfinite(r->score)));
}

/* In two rounds, so that a machine that is busy for a while does not decide. */
enum { TRAFFIC_ROUNDS = 2 };

static ait_status replay_one(ait_tuner *t, uint32_t k, uint32_t round, ait_replay_result *out) {
  ait_goal *g = &t->goal;
  const ait_candidate *c = &t->list.items[g->who[k]];
  char key[1024], what[400], line[640];
  bool found;
  snprintf(what, sizeof what, "traffic%u-%016llx-%g-%g", round, (unsigned long long)g->traffic.hash, t->objective.limit_seconds,
           t->objective.quantile);
  look_key(t, what, c, key);
  ait_tuner_recall(t, key, out, sizeof *out, &found);
  if (found && plausible_replay(out)) return AIT_OK;
  if (t->options.from_record) return not_recorded(t, "traffic", c);
  if (ait_tuner_cancelled(t)) return ait_error(AIT_CODE_CANCELLED, "tuning was interrupted");
  ait_replay_request q = {.traffic = &g->traffic,
                          .cases = &t->cases,
                          .region = t->region,
                          .output_count = t->cases.output_count,
                          .seconds = share_of_budget(t, k, 8) / (TRAFFIC_ROUNDS - round),
                          .passes = AIT_REPLAY_PASSES / TRAFFIC_ROUNDS,
                          .limit = t->objective.limit_seconds,
                          .quantile = t->objective.quantile};
  t->current = c->name;
  ait_tuner_tell(t, NULL);
  AIT_TRY(ait_trial_replay(&t->x, c, &q, out));
  ait_tuner_measured(t);
  ait_tuner_remember(t, key, c->name, out, sizeof *out);
  const ait_replay_result *r = out;
  if (r->outcome != AIT_OUTCOME_VALID) snprintf(line, sizeof line, "%s: %s: %s", c->name, ait_outcome_text(r->outcome), r->reason);
  else
    snprintf(line, sizeof line, "%s: traffic p50 %.3g ms, p99 %.3g ms, %.3g good requests/s", c->name, 1e3 * r->numbers.p50,
             1e3 * r->numbers.p99, r->numbers.goodput);
  ait_tuner_tell(t, line);
  t->current = NULL;
  return AIT_OK;
}

static ait_status replay_all(ait_tuner *t) {
  ait_goal *g = &t->goal;
  g->replays = ait_alloc_zero(ait_allocator_default(), AIT_GOAL_CANDIDATES * sizeof *g->replays, _Alignof(ait_replay_result));
  if (!g->replays) return AIT_OOM();
  t->phase = "traffic";
  make_shortlist(t);
  for (uint32_t round = 0; round < TRAFFIC_ROUNDS; ++round)
    for (uint32_t k = 0; k < g->count; ++k) {
      ait_replay_result r;
      if (round > 0 && g->replays[k].outcome != AIT_OUTCOME_VALID) continue;
      AIT_TRY(replay_one(t, k, round, &r));
      if (round == 0) g->replays[k] = r;
      else ait_replay_join(&g->replays[k], &r);
    }
  return AIT_OK;
}

/* The best and the worst pass of a replay: what lies between is noise. */
static double pass_bound(const ait_replay_result *r, bool worst) {
  double bound = r->scores[0];
  for (uint32_t i = 1; i < r->passes; ++i) bound = (r->scores[i] > bound) == worst ? r->scores[i] : bound;
  return bound;
}

/* The lowest score; of those within 2 % of it, or within 10 % with passes that overlap, the one with fewest threads, then the earliest in
 * the list. */
static void aim_at_traffic(ait_tuner *t) {
  ait_goal *g = &t->goal;
  int32_t best = -1, winner;
  for (size_t i = 0; i < t->list.count; ++i) t->list.items[i].barred = "not among the fastest at the samples' sizes";
  for (uint32_t k = 0; k < g->count; ++k) {
    ait_candidate *c = &t->list.items[g->who[k]];
    bool valid = g->replays[k].outcome == AIT_OUTCOME_VALID && c->median > 0;
    c->barred = valid ? NULL : "failed on the traffic";
    c->score = valid ? g->replays[k].score : 0;
    if (valid && !(t->decision->pinned && c->baseline) && (best < 0 || g->replays[k].score < g->replays[best].score)) best = (int32_t)k;
  }
  if (best < 0) return;
  winner = best;
  for (uint32_t k = 0; k < g->count; ++k) {
    const ait_candidate *c = &t->list.items[g->who[k]], *w = &t->list.items[g->who[winner]];
    if (c->barred || (t->decision->pinned && c->baseline)) continue;
    double over = g->replays[k].score / g->replays[best].score;
    if (over > 1.02 && (over > 1.1 || pass_bound(&g->replays[k], false) > pass_bound(&g->replays[best], true))) continue;
    if (c->threads < w->threads || (c->threads == w->threads && g->who[k] < g->who[winner])) winner = (int32_t)k;
  }
  choose(t, g->who[winner]);
}

/* ---- all of them -----------------------------------------------------------------------------------------------------------------*/
ait_status ait_tuner_open_objective(ait_tuner *t) {
  AIT_TRY(ait_objective_parse(t->options.strategy, &t->objective));
  t->goal.objective = &t->objective;
  if (t->options.batch_sizes && !ait_objective_searches(&t->objective))
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "strategy '%s' looks for no batch size", t->objective.text),
                          "batch sizes belong to max-throughput and latency-budget");
  ait_batch_space sizes;
  if (t->options.batch_sizes) AIT_TRY(ait_batch_sizes_parse(t->options.batch_sizes, &sizes));
  return t->objective.kind == AIT_STRATEGY_TRAFFIC ? ait_traffic_open(t->objective.trace, &t->goal.traffic) : AIT_OK;
}

/* Every kind of request is one that the model takes: better to hear it before the tuning. */
static ait_status check_traffic(ait_tuner *t) {
  for (size_t k = 0; k < t->goal.traffic.kind_count; ++k) {
    ait_tune_case c;
    AIT_TRY(ait_traffic_case(&t->goal.traffic, k, &t->cases, t->region, &c));
    ait_tune_case_release(&t->cases, &c);
  }
  return AIT_OK;
}

ait_status ait_tuner_check_objective(ait_tuner *t) {
  ait_batch_space space;
  bool found;
  AIT_TRY(ait_tune_mix_check(&t->options, t->region));
  if (ait_objective_searches(&t->objective)) return ait_batch_find(t->region, t->options.batch_sizes, &space, &found);
  return check_traffic(t);
}

ait_status ait_tuner_pursue(ait_tuner *t) {
  if (ait_objective_searches(&t->objective)) return search_batches(t);
  return t->objective.kind == AIT_STRATEGY_TRAFFIC ? replay_all(t) : AIT_OK;
}

ait_status ait_tuner_aim(ait_tuner *t, bool *out_again) {
  t->decision->fixed = false;
  if (t->goal.has_batch) return aim_at_batches(t, out_again);
  if (t->objective.kind == AIT_STRATEGY_LATENCY_BUDGET) aim_at_latency(t);
  if (t->objective.kind == AIT_STRATEGY_MIN_MEMORY) aim_at_memory(t);
  if (t->objective.kind == AIT_STRATEGY_TRAFFIC) aim_at_traffic(t);
  return AIT_OK;
}

bool ait_tuner_missed(ait_tuner *t) { return t->objective.kind == AIT_STRATEGY_LATENCY_BUDGET && broke_budget(t); }
