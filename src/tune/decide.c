#include "tune/decide.h"

#include <math.h>

/* A difference that is worth deciding by; what counts as equally fast; how sure (deviates of the standard normal distribution, see
 * ait_stats_slower): 3 since a contest looks at several pairs, many times. */
static const double matters = 0.01, as_fast = 0.03, surely = 3, probably = 1.28, rather = 0.67;

/* Finalists beyond the baseline: those within this factor of the best median of the first measurements. */
static const double within = 1.5;

static double score_of(const ait_candidate *c) { return c->score > 0 ? c->score : c->median; }

/* Finalist k may be the winner. The baseline is among the finalists whether it may or not; alone, it must do. */
static bool may_win(const ait_candidates *list, const ait_decision *d, uint32_t k) {
  if (d->finalist_count == 1) return true;
  return !list->items[d->finalists[k]].barred && !(d->pinned && d->finalists[k] == d->baseline);
}

static bool is_finalist(const ait_decision *d, int32_t i) {
  for (uint32_t k = 0; k < d->finalist_count; ++k)
    if (d->finalists[k] == i) return true;
  return false;
}

/* The best that `take` accepts and that is no finalist yet; -1: none. */
static int32_t best_of(const ait_candidates *list, const ait_decision *d, bool (*take)(const ait_candidate *c)) {
  int32_t best = -1;
  for (size_t i = 0; i < list->count; ++i) {
    const ait_candidate *c = &list->items[i];
    if (c->median <= 0 || !take(c) || is_finalist(d, (int32_t)i)) continue;
    if (best < 0 || score_of(c) < score_of(&list->items[best])) best = (int32_t)i;
  }
  return best;
}

/* Near the best, or as fast as it in its fastest calls: on a busy machine a median tells little. */
static bool may_be_best(const ait_candidate *c, const ait_candidate *best) {
  double samples[AIT_TRIAL_SAMPLES];
  if (score_of(c) <= within * score_of(best)) return true;
  if (c->score > 0 || best->score > 0 || c->result.sample_count == 0) return false;
  memcpy(samples, c->result.samples, sizeof samples);
  return ait_stats_of(samples, c->result.sample_count).p5 <= best->median;
}

static bool is_single(const ait_candidate *c) { return !c->baseline && !c->mix && !c->barred; }
static bool is_any(const ait_candidate *c) { return !c->barred; }

/* By its time, whatever the objective ranks. */
static int32_t fastest_baseline(const ait_candidates *list) {
  int32_t best = -1;
  for (size_t i = 0; i < list->count; ++i) {
    const ait_candidate *c = &list->items[i];
    if (c->baseline && c->median > 0 && (best < 0 || c->median < list->items[best].median)) best = (int32_t)i;
  }
  return best;
}

static void join(ait_decision *d, int32_t i) {
  if (i >= 0 && d->finalist_count < AIT_CONTEST_MAX && !is_finalist(d, i)) d->finalists[d->finalist_count++] = i;
}

/* With its simpler relatives, the defaults of its backend with as many threads and with one: among what is within noise they win, in every
 * run, whichever option was ahead by chance in this one. */
static void add_finalist(const ait_candidates *list, ait_decision *d, int32_t i, int32_t best) {
  join(d, i);
  if (i < 0 || list->items[i].mix) return;
  const ait_candidate *c = &list->items[i];
  for (size_t k = 0; k < list->count; ++k) {
    const ait_candidate *r = &list->items[k];
    bool simpler_one = r->backend == c->backend && !r->mix && !*r->options && (*c->options || r->threads < c->threads);
    if (simpler_one && (r->threads == c->threads || r->threads == 1) && r->median > 0 && !r->barred &&
        score_of(r) <= 2 * score_of(&list->items[best]))
      join(d, (int32_t)k);
  }
}

void ait_decide_finalists(const ait_candidates *list, ait_decision *d) {
  d->winner = -1;
  d->finalist_count = 0;
  d->baseline = fastest_baseline(list);
  d->single = best_of(list, d, is_single);
  if (d->baseline >= 0) d->finalists[d->finalist_count++] = d->baseline;
  int32_t best = best_of(list, d, is_any);
  add_finalist(list, d, d->single, best);
  while (best >= 0 && d->finalist_count < AIT_CONTEST_MAX) {
    int32_t next = -1;
    for (size_t i = 0; i < list->count; ++i) {
      const ait_candidate *c = &list->items[i];
      bool better = next < 0 || score_of(c) < score_of(&list->items[next]);
      if (c->median > 0 && !c->barred && better && !is_finalist(d, (int32_t)i) && may_be_best(c, &list->items[best])) next = (int32_t)i;
    }
    if (next < 0) return;
    add_finalist(list, d, next, best);
  }
}

double ait_noise_floor(const ait_contest *same, uint32_t rounds) {
  static const double most = 0.1;
  double ratios[AIT_CONTEST_ROUNDS];
  ait_stats s = ait_stats_ratio(&same->times[0], &same->times[AIT_CONTEST_ROUNDS], same->rounds, ratios); /* sorted ratios */
  if (s.count == 0 || s.median <= 0) return 0;
  double systematic = fabs(s.median - 1);
  for (uint32_t i = 0; i < s.count; ++i) ratios[i] = fabs(ratios[i] - s.median);
  double deviation = 1.4826 * ait_stats_of(ratios, s.count).median, count = fmax(s.count, rounds);
  return fmin(most, fmax(systematic, 1.96 * 1.2533 * deviation / sqrt(count)));
}

double ait_noise_bias(const ait_contest *same) {
  static const double most = 0.1;
  const double *a = &same->times[0], *b = &same->times[AIT_CONTEST_ROUNDS];
  double scratch[AIT_CONTEST_ROUNDS];
  if (fabs(ait_stats_slower(a, b, same->rounds, 1, scratch)) < surely) return 0;
  return fmin(most, fabs(ait_stats_ratio(a, b, same->rounds, scratch).median - 1));
}

static bool simpler(const ait_candidates *list, int32_t a, int32_t b) {
  const ait_candidate *x = &list->items[a], *y = &list->items[b];
  if (x->threads != y->threads) return x->threads < y->threads;
  if (!x->mix != !y->mix) return !x->mix;
  return a < b;
}

/* ---- the contest ---------------------------------------------------------------------------------------------------------------------*/
static const double *times_of(const ait_decision *d, uint32_t k) { return &d->contest.times[k * AIT_CONTEST_ROUNDS]; }

static uint32_t build_medians(const ait_decision *d, uint32_t slow, uint32_t fast, double out[AIT_SITTINGS]) {
  double scratch[AIT_CONTEST_ROUNDS];
  uint32_t n = 0, begin = 0;
  for (uint32_t s = 0; s < d->contest.sittings; begin = d->contest.ends[s++]) {
    ait_stats r = ait_stats_ratio(times_of(d, slow) + begin, times_of(d, fast) + begin, d->contest.ends[s] - begin, scratch);
    if (r.count) out[n++] = log(r.median);
  }
  return n;
}

/* Rounds with a deviate above `sure`, and builds with one above `by_builds`, say that k takes more (sign 1) or less (-1) than `factor`
 * times as long as another. */
static bool is_sure(const ait_decision *d, uint32_t k, uint32_t other, double factor, double sign, double sure, double by_builds) {
  double scratch[AIT_CONTEST_ROUNDS], medians[AIT_SITTINGS];
  if (sign * ait_stats_slower_by_builds(medians, build_medians(d, k, other, medians), factor) <= by_builds) return false;
  return sign * ait_stats_slower(times_of(d, k), times_of(d, other), d->contest.rounds, factor, scratch) > sure;
}

static ait_stats ratio_of(const ait_decision *d, uint32_t k, uint32_t to) {
  double scratch[AIT_CONTEST_ROUNDS];
  return ait_stats_ratio(times_of(d, k), times_of(d, to), d->contest.rounds, scratch);
}

/* By how much more than what does not matter k takes longer than another, as far as that is sure. */
static bool is_slower(const ait_decision *d, uint32_t k, uint32_t than, double sure, double by_builds) {
  return is_sure(d, k, than, 1 + matters, 1, sure, by_builds) && ratio_of(d, k, than).median > 1 + d->bias;
}

/* Of those that may win and are not out, by ratios paired by round; UINT32_MAX: none. */
static uint32_t fastest_of(const ait_candidates *list, const ait_decision *d, const bool *out) {
  uint32_t best = UINT32_MAX;
  for (uint32_t k = 0; k < d->finalist_count; ++k)
    if (may_win(list, d, k) && !out[k] && (best == UINT32_MAX || ratio_of(d, k, best).median < 1)) best = k;
  return best;
}

/* Slower by more than another run of the tuner may find otherwise: each run builds anew, and finds equal plans to differ by so much. */
static bool is_beaten(const ait_decision *d, uint32_t k, uint32_t by) {
  return is_slower(d, k, by, surely, surely) && ratio_of(d, k, by).median > 1 + fmax(as_fast, d->floor);
}

/* Who is out, who is within noise; the fastest. */
static uint32_t judge(const ait_candidates *list, ait_decision *d) {
  bool out[AIT_CONTEST_MAX] = {false};
  for (uint32_t k = 0; k < d->finalist_count; ++k)
    for (uint32_t j = 0; j < d->finalist_count && !out[k]; ++j) out[k] = j != k && may_win(list, d, j) && is_beaten(d, k, j);
  uint32_t first = fastest_of(list, d, out);
  if (first == UINT32_MAX) { /* each is slower than another: nobody is out */
    memset(out, 0, sizeof out);
    first = fastest_of(list, d, out);
  }
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    bool rival = k != first && may_win(list, d, k) && !out[k];
    d->behind[k] = may_win(list, d, k) ? ratio_of(d, k, first).median : INFINITY;
    d->tie[k] = k == first || rival;
    d->probably_slower[k] = rival && is_slower(d, k, first, probably, rather);
    d->open[k] = rival && !is_slower(d, k, first, surely, surely) && !is_sure(d, k, first, 1 + as_fast, -1, surely, surely);
  }
  return d->fastest = first;
}

void ait_decide_winner(const ait_candidates *list, ait_decision *d) {
  double scratch[AIT_CONTEST_ROUNDS];
  const ait_contest *c = &d->contest;
  d->floor = d->has_noise ? ait_noise_floor(&d->noise, c->rounds) : 0;
  d->bias = d->has_noise ? ait_noise_bias(&d->noise) : 0;
  for (uint32_t k = 0; k < d->finalist_count; ++k) d->medians[k] = ait_stats_of(scratch, ait_contest_times(c, k, scratch));
  uint32_t winner = judge(list, d);
  for (uint32_t k = 0; k < d->finalist_count; ++k)
    if (d->tie[k] && !d->probably_slower[k] && simpler(list, d->finalists[k], d->finalists[winner])) winner = k;
  for (uint32_t k = 0; d->fixed && k < d->finalist_count; ++k)
    if (d->finalists[k] == d->chosen) winner = k;
  d->winner = d->finalists[winner];
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    d->against_winner[k] = ratio_of(d, k, winner);
    if (d->finalists[k] == d->single) d->over_single = ratio_of(d, winner, k);
    if (d->finalists[k] != d->baseline) continue;
    d->speedup = d->against_winner[k].median;
    d->speedup_low = d->against_winner[k].low;
    d->speedup_high = d->against_winner[k].high;
    d->speedup_rounds = d->against_winner[k].count;
  }
}
