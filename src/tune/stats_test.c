/* Order statistics, intervals that cover, and decisions that do not see winners in noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/decide.h"
#include <math.h>

static uint64_t seed;
static double uniform(void) { /* (0, 1) */
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return ((double)(seed >> 11) + 0.5) * 0x1p-53;
}
static double normal(void) { return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform()); }
/* A running time: never below its floor, a long tail above, now and then a hiccup. */
static double running_time(double floor_seconds) { return floor_seconds * exp(0.03 * fabs(normal())) * (uniform() < 0.02 ? 3 : 1); }

static void close_to(double got, double want) {
  if (fabs(got - want) > 1e-12 * fabs(want)) fail_msg("%.17g, want %.17g", got, want);
}

static void order_statistics(void **state) {
  AIT_UNUSED(state);
  double x[101], one[1] = {3}, two[2] = {5, 1};
  ait_stats s = ait_stats_of(x, 0);
  assert_int_equal(s.count, 0);
  assert_true(s.median == 0 && s.low == 0 && s.high == 0);
  s = ait_stats_of(one, 1);
  assert_true(s.median == 3 && s.low == 3 && s.high == 3 && s.p99 == 3 && s.mean == 3);
  s = ait_stats_of(two, 2);
  assert_true(s.median == 3 && s.low == 1 && s.high == 5 && s.min == 1 && s.max == 5);
  for (int i = 0; i < 101; ++i) x[i] = (i * 37) % 101; /* 0..100 in another order */
  s = ait_stats_of(x, 101);
  assert_int_equal(s.count, 101);
  close_to(s.median, 50);
  close_to(s.p5, 5);
  close_to(s.p95, 95);
  close_to(s.p99, 99);
  close_to(s.mean, 50);
  assert_true(s.min == 0 && s.max == 100);
  assert_true(s.low == 40 && s.high == 60); /* P(at most 40 of 101 below the median) is 2.3 % */
  for (int i = 0; i < 101; ++i) assert_true(x[i] == i);
}

static void intervals_cover_the_median(void **state) {
  AIT_UNUSED(state);
  static const uint32_t counts[] = {6, 9, 10, 17, 20, 50, 100, 200};
  for (size_t c = 0; c < AIT_COUNT(counts); ++c) {
    double x[200];
    int covered = 0, runs = 20000;
    seed = 11 + c;
    for (int r = 0; r < runs; ++r) {
      for (uint32_t i = 0; i < counts[c]; ++i) x[i] = uniform();
      ait_stats s = ait_stats_of(x, counts[c]);
      covered += s.low <= 0.5 && 0.5 <= s.high;
    }
    if (covered < 0.945 * runs || covered > 0.995 * runs) fail_msg("%u samples: %.2f %% covered", counts[c], 100.0 * covered / runs);
  }
}

static void ratios_are_paired(void **state) {
  AIT_UNUSED(state);
  double a[40], b[40], scratch[40];
  seed = 5;
  for (int i = 0; i < 40; ++i) { /* the machine slows down by ten during the run: pairs do not see it */
    b[i] = (1 + 9.0 * i / 40) * running_time(1);
    a[i] = 1.5 * b[i] * exp(0.001 * normal());
  }
  ait_stats s = ait_stats_ratio(a, b, 40, scratch);
  assert_true(s.low > 1.49 && s.high < 1.51 && s.low <= s.median && s.median <= s.high);
  a[3] = 0; /* a round without a time does not count */
  s = ait_stats_ratio(a, b, 40, scratch);
  assert_int_equal(s.count, 39);
}

/* ---- decisions -------------------------------------------------------------------------------------------------------------------*/
static ait_candidates list_of(ait_candidate *items, size_t n) { return (ait_candidates){.items = items, .count = n}; }

static void contest_of(ait_decision *d, const double *seconds, uint32_t members, uint32_t rounds) {
  d->contest.count = members;
  d->contest.rounds = rounds;
  d->contest.sittings = rounds < 20 ? 1 : 4;
  for (uint32_t s = 0; s < d->contest.sittings; ++s) d->contest.ends[s] = (s + 1) * rounds / d->contest.sittings;
  for (uint32_t r = 0; r < rounds; ++r) {
    double weather = exp(0.1 * normal()); /* what all members of a round share */
    for (uint32_t k = 0; k < members; ++k) d->contest.times[k * AIT_CONTEST_ROUNDS + r] = weather * running_time(seconds[k]);
  }
}

static void finalists_are_the_fastest(void **state) {
  AIT_UNUSED(state);
  ait_decision d;
  ait_candidate items[10] = {{.baseline = true, .median = 9, .threads = 1}, {.baseline = true, .median = 8, .threads = 2}};
  for (int i = 2; i < 10; ++i) items[i] = (ait_candidate){.median = i == 5 ? 0 : 1 + 0.04 * (10 - i), .threads = 1};
  ait_candidates list = list_of(items, 10);
  ait_decide_finalists(&list, &d);
  assert_int_equal(d.baseline, 1); /* the better of the two */
  assert_int_equal(d.finalist_count, AIT_CONTEST_MAX);
  static const int32_t want[] = {1, 9, 8, 7, 6, 4}; /* 5 is not valid; 3 and 2 have no room */
  for (int i = 0; i < AIT_CONTEST_MAX; ++i) assert_int_equal(d.finalists[i], want[i]);
  for (int i = 2; i < 9; ++i) items[i].median *= 2; /* far behind: not worth a place */
  ait_decide_finalists(&list, &d);
  assert_int_equal(d.finalist_count, 2);
  items[8].result.sample_count = 20; /* a median behind, but calls as fast as the best: the machine was busy */
  for (int i = 0; i < 20; ++i) items[8].result.samples[i] = i < 4 ? 1 : 2;
  ait_decide_finalists(&list, &d);
  assert_int_equal(d.finalist_count, 3);
  assert_int_equal(d.finalists[2], 8);
  for (int i = 0; i < 10; ++i) items[i].median = 0;
  ait_decide_finalists(&list, &d);
  assert_int_equal(d.finalist_count, 0);
  assert_int_equal(d.baseline, -1);
}

static void ties_keep_the_simpler(void **state) {
  AIT_UNUSED(state);
  static ait_decision d;
  ait_candidate items[3] = {{.baseline = true, .threads = 2}, {.threads = 2}, {.threads = 1}};
  ait_candidates list = list_of(items, 3);
  static const double close[] = {5, 1, 1.002}, apart[] = {5, 1, 1.2}, order[] = {5, 1.002, 1};
  d = (ait_decision){.baseline = 0, .finalist_count = 3, .finalists = {0, 1, 2}};
  seed = 3;
  contest_of(&d, close, 3, 100);
  ait_decide_winner(&list, &d);
  assert_int_equal(d.winner, 2); /* one thread is simpler than two */
  assert_true(d.tie[1] && d.tie[2] && !d.tie[0]);
  assert_true(d.speedup > 4.8 && d.speedup < 5.2 && d.speedup_low <= d.speedup && d.speedup <= d.speedup_high);
  contest_of(&d, apart, 3, 100);
  ait_decide_winner(&list, &d);
  assert_int_equal(d.winner, 1);
  assert_true(!d.tie[2]);
  items[2].threads = 2;
  contest_of(&d, order, 3, 100);
  ait_decide_winner(&list, &d);
  assert_int_equal(d.winner, 1); /* the earlier in the list */
}

/* Equal members: whoever is called slower than another is wrongly so. */
static void noise_makes_no_winners(void **state) {
  AIT_UNUSED(state);
  static ait_decision d;
  static const uint32_t members[] = {2, 3, 6}, rounds[] = {5, 9, 20, 100};
  double same[AIT_CONTEST_MAX] = {1, 1, 1, 1, 1, 1};
  ait_candidate items[AIT_CONTEST_MAX];
  for (int i = 0; i < AIT_CONTEST_MAX; ++i) items[i] = (ait_candidate){.threads = 1, .baseline = i == 0};
  ait_candidates list = list_of(items, AIT_CONTEST_MAX);
  for (size_t m = 0; m < AIT_COUNT(members); ++m)
    for (size_t r = 0; r < AIT_COUNT(rounds); ++r) {
      int wrong = 0, runs = 1000;
      for (int s = 0; s < runs; ++s) {
        d = (ait_decision){.baseline = 0, .finalist_count = members[m], .finalists = {0, 1, 2, 3, 4, 5}};
        seed = 1000 * m + 17 * r + 100000 * (uint64_t)s + 1;
        contest_of(&d, same, members[m], rounds[r]);
        ait_decide_winner(&list, &d);
        bool declared = false;
        for (uint32_t k = 0; k < members[m]; ++k) declared |= !d.tie[k];
        wrong += declared;
      }
      if (wrong > 0.05 * runs) fail_msg("%u equal members, %u rounds: %.1f %% false winners", members[m], rounds[r], 100.0 * wrong / runs);
    }
}

/* And a real difference is seen. */
static void differences_are_found(void **state) {
  AIT_UNUSED(state);
  static ait_decision d;
  static const double seconds[] = {1, 0.93};
  ait_candidate items[2] = {{.threads = 1, .baseline = true}, {.threads = 2}};
  ait_candidates list = list_of(items, 2);
  int found = 0, runs = 500;
  for (int s = 0; s < runs; ++s) {
    d = (ait_decision){.baseline = 0, .finalist_count = 2, .finalists = {0, 1}};
    seed = 7 + (uint64_t)s;
    contest_of(&d, seconds, 2, 60);
    ait_decide_winner(&list, &d);
    found += d.winner == 1;
  }
  assert_true(found > 0.95 * runs);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(order_statistics),          cmocka_unit_test(intervals_cover_the_median), cmocka_unit_test(ratios_are_paired),
      cmocka_unit_test(finalists_are_the_fastest), cmocka_unit_test(ties_keep_the_simpler),      cmocka_unit_test(noise_makes_no_winners),
      cmocka_unit_test(differences_are_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
