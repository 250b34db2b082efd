/* A against A: a backend against itself must not have a winner. On series that were recorded on a busy machine, and, with --real, here and
 * now. tune_aa_test                     the recorded series tune_aa_test --real [CONTESTS]   that many contests (100) tune_aa_test
 * --collect           prints series: tests/data/tune/aa.txt is made of this */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/testing.h"
#include "tune/decide.h"

#include <stdio.h>
#include <stdlib.h>

enum { SERIES = 25, RECORDED = 200, PART = 40, PARTS = RECORDED / PART };

static double series[SERIES][2][RECORDED];

/* Does the tuner see a difference between two members, given what it measured of the noise before? */
static bool has_winner(const ait_contest *contest, const ait_contest *noise) {
  static ait_decision d;
  ait_candidate items[2] = {{.threads = 1, .baseline = true, .median = 1}, {.threads = 1, .median = 1}};
  ait_candidates list = {.items = items, .count = 2};
  d = (ait_decision){
      .baseline = 0, .single = 1, .finalists = {0, 1}, .finalist_count = 2, .contest = *contest, .has_noise = true, .noise = *noise};
  ait_decide_winner(&list, &d);
  return !d.tie[0] || !d.tie[1];
}

static void part_of(int s, int part, ait_contest *out) {
  *out = (ait_contest){.count = 2, .rounds = PART, .sittings = 2, .ends = {PART / 2, PART}};
  for (int k = 0; k < 2; ++k) memcpy(&out->times[k * AIT_CONTEST_ROUNDS], &series[s][k][part * PART], PART * sizeof(double));
}

static void read_series(void) {
  FILE *f = fopen(AIT_TEST_DATA "/tune/aa.txt", "r");
  assert_non_null(f);
  for (int s = 0; s < SERIES; ++s)
    for (int r = 0; r < RECORDED; ++r) assert_int_equal(fscanf(f, "%lf %lf", &series[s][0][r], &series[s][1][r]), 2);
  fclose(f);
}

/* Of each series the first part is the noise, the others are contests: 100 in all. */
static void recorded_contests_have_no_winner(void **state) {
  AIT_UNUSED(state);
  static ait_contest noise, contest;
  int winners = 0, contests = 0;
  read_series();
  for (int s = 0; s < SERIES; ++s) {
    part_of(s, 0, &noise);
    for (int part = 1; part < PARTS; ++part, ++contests) {
      part_of(s, part, &contest);
      winners += has_winner(&contest, &noise);
    }
  }
  assert_int_equal(contests, 100);
  print_message("%d of %d\n", winners, contests);
  assert_true(winners <= 5);
}

/* The same series with one side made slower by a tenth: seen in one sitting of few rounds. */
static void recorded_differences_are_seen(void **state) {
  AIT_UNUSED(state);
  static ait_contest noise, contest;
  int seen = 0;
  read_series();
  for (int s = 0; s < SERIES; ++s) {
    part_of(s, 0, &noise);
    for (int part = 1; part < PARTS; ++part) {
      part_of(s, part, &contest);
      for (int r = 0; r < PART; ++r) contest.times[r] *= 1.1;
      seen += has_winner(&contest, &noise);
    }
  }
  print_message("%d of 100\n", seen);
  assert_true(seen >= 80);
}

/* ---- here and now ------------------------------------------------------------------------------------------------------------------*/
static const char model_text[] = "graph \"m\" raw\ninput %x: float32[64, 64] user 0 \"x\"\n%m: float32[64, 64] = aten.mm(%x, %x)\n"
                                 "%t: float32[64, 64] = aten.tanh(%m)\n%n: float32[64, 64] = aten.mm(%t, %x)\n"
                                 "%y: float32[64, 64] = aten.sin(%n)\noutput user 0 \"y\" = %y\n";

/* One sitting after the other, as many as make a series. */
static void print_series(const ait_trial_context *x, const ait_candidate *const *both) {
  static ait_contest sitting;
  for (uint32_t r = 0; r < RECORDED; r += sitting.rounds) {
    pt_ok(ait_contest_run(x, both, 2, 5, &sitting), "sitting");
    for (uint32_t i = 0; i < sitting.rounds && r + i < RECORDED; ++i)
      printf("%.4g %.4g\n", 1e6 * sitting.times[i], 1e6 * sitting.times[AIT_CONTEST_ROUNDS + i]);
  }
}

/* As the tuner's: sittings of builds in another order. */
static void contest_here(ait_trial_context *x, const ait_candidate *const *both, ait_contest *out) {
  static ait_contest one;
  *out = (ait_contest){.count = 2};
  for (x->sitting = 0; x->sitting < 3; ++x->sitting) {
    pt_ok(ait_contest_run(x, both, 2, 0.05, &one), "contest");
    for (uint32_t k = 0; k < 2; ++k)
      memcpy(&out->times[k * AIT_CONTEST_ROUNDS + out->rounds], &one.times[k * AIT_CONTEST_ROUNDS], one.rounds * sizeof(double));
    out->rounds += one.rounds;
    out->ends[out->sittings++] = out->rounds;
  }
}

static int here(int contests, bool print) {
  static ait_contest noise, contest;
  ait_graph *raw = pt_parse(model_text);
  ait_region *region;
  ait_tune_cases cases;
  ait_tune_options options;
  ait_value inputs[PT_MAX];
  size_t input_count;
  int winners = 0;
  pt_ok(ait_graph_region(raw, ait_allocator_default(), &region), "region");
  if (!pt_inputs(region, 0, inputs, &input_count)) return -1;
  ait_sample sample = {inputs, input_count};
  ait_tune_options_init(&options);
  pt_ok(ait_tune_cases_create(raw, &sample, 1, NULL, &cases), "cases");
  ait_trial_context x = {.raw = raw, .region = region, .cases = &cases, .options = &options};
  ait_candidate one = {.backend = ait_backend_find("eager"), .threads = 1}, two = one;
  const ait_candidate *both[] = {&one, &two};
  for (int i = 0; i < contests; ++i) {
    options.seed = (uint64_t)i;
    if (print) {
      print_series(&x, both);
      continue;
    }
    pt_ok(ait_contest_run(&x, both, 2, 0.05, &noise), "noise");
    contest_here(&x, both, &contest);
    winners += has_winner(&contest, &noise);
  }
  ait_tune_cases_deinit(&cases);
  pt_release(inputs, input_count);
  ait_graph_region_destroy(ait_allocator_default(), region);
  ait_graph_destroy(raw);
  return winners;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--collect")) return here(SERIES, true) < 0;
  if (argc > 1 && !strcmp(argv[1], "--real")) {
    int contests = argc > 2 ? atoi(argv[2]) : 100, winners = here(contests, false);
    printf("A against A: %d of %d contests declare a winner\n", winners, contests);
    return winners < 0 || winners > contests / 20;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(recorded_contests_have_no_winner), cmocka_unit_test(recorded_differences_are_seen)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
