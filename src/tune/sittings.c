#include "tune/sittings.h"

static const double longest = 10, shortest = 0.1; /* seconds of a sitting */
static const double narrow = 1.25;                /* a lead of less is looked at in other builds, */
enum { BUILDS = 3, FEWEST = 5 };                  /* so many; rounds of a sitting */

/* Worth a place in the next sitting: against the fastest it is not decided, or only as they happened to be built this time. */
static bool is_wanted(const ait_decision *d, uint32_t k, uint32_t sittings) {
  return d->open[k] || (sittings < BUILDS && k != d->fastest && d->behind[k] < narrow);
}

static uint32_t next_members(const ait_decision *d, uint32_t sittings, uint32_t *who) {
  uint32_t count = 0, wanted = 0;
  for (uint32_t k = 0; k < d->finalist_count; ++k) {
    bool one = sittings == 0 || is_wanted(d, k, sittings);
    wanted += one;
    if (one || k == d->fastest || d->finalists[k] == d->winner) who[count++] = k;
  }
  return wanted ? count : 0;
}

/* Seconds to measure for; 0: what is left is not worth another sitting. The first leaves half of it to a second. */
static double seconds_of(const ait_decision *d, const ait_sitting_hooks *h, const uint32_t *who, uint32_t count, uint32_t sittings) {
  double left = h->left(h->ctx), build = 0, calls = 0;
  for (uint32_t i = 0; i < count; ++i) {
    build += h->rebuild(h->ctx, who[i]);
    calls += FEWEST * d->medians[who[i]].mean;
  }
  if (sittings > 0 && (left < 2 * build || left - build < shortest || left - build < calls)) return 0;
  double seconds = (left > 2 ? left / 4 : left) - build;
  if (sittings == 0 && seconds < h->least) seconds = h->least;
  if (seconds < shortest) seconds = shortest;
  return seconds < longest ? seconds : longest;
}

static void append(ait_contest *all, const ait_contest *one, const uint32_t *who) {
  for (uint32_t i = 0; i < one->count; ++i)
    memcpy(&all->times[who[i] * AIT_CONTEST_ROUNDS + all->rounds], &one->times[i * AIT_CONTEST_ROUNDS], one->rounds * sizeof *all->times);
  all->rounds += one->rounds;
  all->dropped += one->dropped;
  all->ends[all->sittings++] = all->rounds;
}

static void blame(ait_contest *all, const ait_contest *one, const uint32_t *who) {
  all->failed = true;
  all->culprit = who[one->culprit];
  all->outcome = one->outcome;
  memcpy(all->reason, one->reason, sizeof all->reason);
}

ait_status ait_sittings_hold(const ait_candidates *list, ait_decision *d, const ait_sitting_hooks *h) {
  uint32_t who[AIT_CONTEST_MAX];
  ait_contest one;
  d->contest = (ait_contest){.count = d->finalist_count};
  for (uint32_t sittings = 0; sittings < AIT_SITTINGS; ++sittings) {
    uint32_t count = next_members(d, sittings, who);
    double seconds = count ? seconds_of(d, h, who, count, sittings) : 0;
    if (seconds <= 0) break;
    for (uint32_t k = 0; sittings == BUILDS && k < d->finalist_count; ++k)
      if (d->open[k]) h->undecided(h->ctx, k);
    AIT_TRY(h->sit(h->ctx, sittings, who, count, seconds, &one));
    if (one.failed) return blame(&d->contest, &one, who), AIT_OK;
    append(&d->contest, &one, who);
    ait_decide_winner(list, d);
    if (d->fixed) break;
  }
  return AIT_OK;
}
