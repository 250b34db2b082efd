#include "tune/decide.h"

/* Finalists beyond the baseline: those within this factor of the best median of the first round. */
static const double within = 1.25;

static double score_of(const ait_candidate *c) { return c->score > 0 ? c->score : c->median; }

/* Finalist k may be the winner. The baseline is among the finalists whether it may or not; alone, it must do. */
static bool may_win(const ait_candidates *list, const ait_decision *d, uint32_t k) {
  if (d->finalist_count == 1) return true;
  return !list->items[d->finalists[k]].barred && !(d->pinned && d->finalists[k] == d->baseline);
}

void ait_decide_finalists(const ait_candidates *list, ait_decision *d) {
  d->winner = d->baseline = -1;
  d->finalist_count = 0;
  for (size_t i = 0; i < list->count; ++i) {
    const ait_candidate *c = &list->items[i];
    if (c->baseline && c->median > 0 && (d->baseline < 0 || c->median < list->items[d->baseline].median)) d->baseline = (int32_t)i;
  }
  if (d->baseline >= 0) d->finalists[d->finalist_count++] = d->baseline;
  double best = 0;
  while (d->finalist_count < AIT_CONTEST_MAX) {
    int32_t next = -1;
    for (size_t i = 0; i < list->count; ++i) {
      bool chosen = list->items[i].median <= 0 || list->items[i].barred;
      for (uint32_t k = 0; k < d->finalist_count; ++k) chosen |= d->finalists[k] == (int32_t)i;
      if (!chosen && (next < 0 || score_of(&list->items[i]) < score_of(&list->items[next]))) next = (int32_t)i;
    }
    if (next < 0) return;
    if (best == 0) best = score_of(&list->items[next]);
    if (score_of(&list->items[next]) > within * best) return;
    d->finalists[d->finalist_count++] = next;
  }
}

static bool simpler(const ait_candidates *list, int32_t a, int32_t b) {
  const ait_candidate *x = &list->items[a], *y = &list->items[b];
  if (x->threads != y->threads) return x->threads < y->threads;
  return a < b;
}

void ait_decide_winner(const ait_candidates *list, ait_decision *d) {
  double scratch[AIT_CONTEST_ROUNDS];
  const ait_contest *c = &d->contest;
  uint32_t fastest = UINT32_MAX, winner;
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    memcpy(scratch, &c->times[k * AIT_CONTEST_ROUNDS], c->rounds * sizeof *scratch);
    d->medians[k] = ait_stats_of(scratch, c->rounds);
    if (!may_win(list, d, k)) continue;
    if (fastest == UINT32_MAX || d->medians[k].median < d->medians[fastest].median) fastest = k;
  }
  winner = fastest;
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    ait_stats ratio = ait_stats_ratio(&c->times[k * AIT_CONTEST_ROUNDS], &c->times[fastest * AIT_CONTEST_ROUNDS], c->rounds, scratch);
    d->tie[k] = k == fastest || ratio.low <= 1.01; /* slower by less than 1 %, or not surely slower: within noise */
    if (!may_win(list, d, k)) d->tie[k] = false;
    if (d->tie[k] && simpler(list, d->finalists[k], d->finalists[winner])) winner = k;
  }
  for (uint32_t k = 0; d->fixed && k < d->finalist_count; ++k)
    if (d->finalists[k] == d->chosen) winner = k;
  d->winner = d->finalists[winner];
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    d->against_winner[k] = ait_stats_ratio(&c->times[k * AIT_CONTEST_ROUNDS], &c->times[winner * AIT_CONTEST_ROUNDS], c->rounds, scratch);
    if (d->finalists[k] != d->baseline) continue;
    d->speedup = d->against_winner[k].median;
    d->speedup_low = d->against_winner[k].low;
    d->speedup_high = d->against_winner[k].high;
  }
}
