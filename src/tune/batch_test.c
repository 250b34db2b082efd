/* The search for a batch size against throughputs that are known: where the peak is, how much was measured, and what the limits did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/batch.h"
#include <math.h>

/* ---- a machine made of formulas --------------------------------------------------------------------------------------------------*/
typedef struct machine {
  double (*seconds)(int64_t size);
  double noise;      /* relative, both ways */
  double bytes_each; /* memory grows by that much a row, */
  bool keeps;        /* and is not given back by a smaller size */
  int64_t fails_at;  /* 0: never */
  uint32_t calls;
  int64_t largest; /* that was ever measured */
  uint64_t random;
} machine;

static double uniform(machine *m) {
  m->random = m->random * 6364136223846793005u + 1442695040888963407u;
  return (double)(m->random >> 11) * 0x1p-53;
}

static ait_status measure(void *ctx, ait_batch_point *p) {
  machine *m = ctx;
  ++m->calls;
  if (m->fails_at && p->size >= m->fails_at) return ait_error(AIT_CODE_OUT_OF_MEMORY, "out of memory");
  m->largest = p->size > m->largest ? p->size : m->largest;
  p->median = m->seconds(p->size) * (1 + m->noise * (2 * uniform(m) - 1));
  p->low = 0.99 * p->median;
  p->high = 1.01 * p->median;
  p->quantile = 1.1 * p->median;
  p->bytes = 1000 + (uint64_t)(m->bytes_each * (double)(m->keeps ? m->largest : p->size));
  p->measurements = 10;
  return AIT_OK;
}

static double saturating(int64_t n) { return 1e-3 * (1 + (double)n / 16); } /* rows/s towards 16000: 90 % of it at 144 */
static double peaked(int64_t n) {
  return n <= 48 ? 1e-3 + 1e-5 * (double)n : 1e-3 + 1e-5 * (double)n + 2e-6 * (double)(n - 48) * (double)(n - 48);
}
static double linear(int64_t n) { return 1e-4 * (double)n; } /* no gain from batches at all */

static const ait_batch_limits no_limits = {.bytes = UINT64_MAX, .seconds = 1e9, .quantile = 0.95};

static double rate(const ait_batch_point *p) { return (double)p->size / p->median; }

static ait_batch_result search(machine *m, const char *sizes, const ait_batch_limits *limits) {
  ait_batch_space space = {0};
  ait_batch_result r;
  assert_true(ait_batch_sizes_parse(sizes, &space) == AIT_OK);
  ait_batch_search(&space, limits, measure, m, &r);
  assert_true(r.count == m->calls || m->fails_at);
  return r;
}

/* ---- tests -----------------------------------------------------------------------------------------------------------------------*/
static void test_saturating(void **state) {
  AIT_UNUSED(state);
  machine m = {.seconds = saturating};
  ait_batch_result r = search(&m, "1..1000000", &no_limits);
  assert_int_equal(r.outcome, AIT_OUTCOME_VALID);
  assert_int_equal(r.stop, AIT_BATCH_STOP_SATURATED);
  double best = rate(&r.points[r.best]);
  assert_true(best > 0.95 * 16000);
  assert_true(r.points[r.best].size < 65536); /* the rival went to 1048576 */
  assert_true(m.calls < 30);
  for (uint32_t i = 0; i < r.count; ++i) /* the smallest of those that tie */
    if (r.points[i].size < r.points[r.best].size) assert_true(rate(&r.points[i]) < 0.991 * best / 0.99);
}

static void test_no_gain(void **state) {
  AIT_UNUSED(state);
  machine m = {.seconds = linear};
  ait_batch_result r = search(&m, "1..1000000", &no_limits);
  assert_int_equal(r.points[r.best].size, 1); /* all tie: the smallest wins */
  assert_int_equal(r.stop, AIT_BATCH_STOP_SATURATED);
  assert_true(m.largest <= 16);
}

static void test_peak(void **state) {
  AIT_UNUSED(state);
  double most = 0;
  for (int64_t n = 1; n < 500; ++n) most = fmax(most, (double)n / peaked(n));
  machine m = {.seconds = peaked};
  ait_batch_result r = search(&m, "1..500", &no_limits);
  assert_true(rate(&r.points[r.best]) > 0.98 * most);
  assert_true(m.calls <= 22);
}

static void test_noisy(void **state) {
  AIT_UNUSED(state);
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    machine m = {.seconds = peaked, .noise = 0.05, .random = seed};
    ait_batch_result r = search(&m, "1..500", &no_limits);
    int64_t size = r.points[r.best].size;
    double most = 0;
    for (int64_t n = 1; n < 500; ++n) most = fmax(most, (double)n / peaked(n));
    assert_true((double)size / peaked(size) > 0.85 * most); /* by the formula, not by what noise said */
    assert_true(r.count <= AIT_BATCH_POINTS);
  }
}

static void test_range(void **state) {
  AIT_UNUSED(state);
  machine m = {.seconds = saturating};
  ait_batch_result r = search(&m, "3..50", &no_limits);
  assert_int_equal(r.stop, AIT_BATCH_STOP_RANGE);
  assert_int_equal(m.largest, 50);
  for (uint32_t i = 0; i < r.count; ++i) assert_in_range(r.points[i].size, 3, 50);
  m = (machine){.seconds = saturating};
  r = search(&m, "7", &no_limits);
  assert_int_equal(r.count, 1);
  assert_int_equal(r.points[r.best].size, 7);
  m = (machine){.seconds = saturating};
  r = search(&m, "32,1,8,8", &no_limits); /* each once, in order */
  assert_int_equal(r.count, 3);
  assert_int_equal(r.points[0].size, 1);
  assert_int_equal(r.points[2].size, 32);
  assert_int_equal(r.points[r.best].size, 32);
}

static void test_memory(void **state) {
  AIT_UNUSED(state);
  ait_batch_limits limits = no_limits;
  limits.bytes = 1000 + 100 * 37; /* 37 rows fit */
  machine m = {.seconds = saturating, .bytes_each = 100};
  ait_batch_result r = search(&m, "1..1000000", &limits);
  assert_int_equal(r.stop, AIT_BATCH_STOP_MEMORY);
  assert_int_equal(m.largest, 37); /* the most that fits was tried, and nothing above, ever */
  assert_int_equal(r.points[r.best].size, 37);
  assert_int_equal(r.refused, 64);
  assert_true(r.refused_bytes > limits.bytes);
  /* Not even the first: what is known of the samples says so. */
  limits.known_size = 4;
  limits.known_bytes = 2000;
  m = (machine){.seconds = saturating, .bytes_each = 100};
  r = search(&m, "4096,8192", &limits);
  assert_int_equal(m.calls, 0);
  assert_int_equal(r.best, -1);
  assert_int_equal(r.outcome, AIT_OUTCOME_FAILED);
  assert_string_equal(r.reason, "no batch size fits into memory");
  /* Nothing was known, and the first took too much: it does not count. */
  limits = no_limits;
  limits.bytes = 500;
  m = (machine){.seconds = saturating, .bytes_each = 100};
  r = search(&m, "1..64", &limits);
  assert_int_equal(r.best, -1);
  assert_int_equal(r.stop, AIT_BATCH_STOP_MEMORY);
  assert_int_equal(m.calls, 1);
}

static void test_foretell(void **state) {
  AIT_UNUSED(state);
  ait_batch_point p[3] = {{.size = 8, .bytes = 1800}, {.size = 2, .bytes = 1200}, {.size = 4, .bytes = 1400}};
  assert_true(ait_batch_foretell(p, 0, 16) == 0);
  assert_true(ait_batch_foretell(p, 1, 16) == 3600); /* one point: in proportion, more than it will be */
  assert_true(ait_batch_foretell(p, 3, 16) == 2600); /* the line through 4 and 8 */
}

/* The peak is at 70 rows or so; 128 are more than fit, and the smaller sizes that are looked at afterwards must not be blamed for them. */
static void test_memory_of_larger_sizes(void **state) {
  AIT_UNUSED(state);
  ait_batch_limits limits = no_limits;
  limits.bytes = 1000 + 1000 * 100;
  machine m = {.seconds = peaked, .bytes_each = 1000, .keeps = true};
  ait_batch_result r = search(&m, "1..500", &limits);
  bool later = false;
  for (uint32_t i = 0; i < r.count; ++i) {
    later |= i > 0 && r.points[i].size < r.points[i - 1].size;
    assert_true(r.points[i].bytes <= 1000 + 1000 * (uint64_t)r.points[i].size);
  }
  assert_true(later);
}

static void test_latency(void **state) {
  AIT_UNUSED(state);
  ait_batch_limits limits = no_limits;
  limits.latency = 3e-3; /* the quantile is 1.1 times the median: size 27 has 2.96 ms, 28 has 3.03 ms */
  machine m = {.seconds = saturating};
  ait_batch_result r = search(&m, "1..1000", &limits);
  assert_int_equal(r.stop, AIT_BATCH_STOP_LATENCY);
  assert_in_range(r.points[r.best].size, 24, 27);
  assert_true(r.points[r.best].quantile <= limits.latency);
  assert_true(m.largest <= 32); /* nothing that is known to be too slow */
  limits.latency = 1e-4;
  m = (machine){.seconds = saturating};
  r = search(&m, "1..1000", &limits);
  assert_int_equal(r.best, -1);
  assert_int_equal(m.calls, 1);
}

static void test_failure_keeps_points(void **state) {
  AIT_UNUSED(state);
  machine m = {.seconds = saturating, .fails_at = 20};
  ait_batch_result r = search(&m, "1..1000", &no_limits);
  assert_int_equal(r.outcome, AIT_OUTCOME_VALID);
  assert_int_equal(r.stop, AIT_BATCH_STOP_FAILED);
  assert_int_equal(r.points[r.best].size, 16);
  assert_string_equal(r.reason, "at batch size 32: out of memory");
  m = (machine){.seconds = saturating, .fails_at = 1};
  r = search(&m, "1..1000", &no_limits);
  assert_int_equal(r.outcome, AIT_OUTCOME_FAILED);
  assert_int_equal(r.best, -1);
}

static void test_time(void **state) {
  AIT_UNUSED(state);
  ait_batch_limits limits = no_limits;
  limits.seconds = 0;
  machine m = {.seconds = saturating};
  ait_batch_result r = search(&m, "2..1000", &limits);
  assert_int_equal(r.count, 1); /* one at least */
  assert_int_equal(r.stop, AIT_BATCH_STOP_TIME);
  assert_int_equal(r.points[r.best].size, 2);
}

static void test_sizes(void **state) {
  AIT_UNUSED(state);
  static const char *const bad[] = {"",   "0", "-1", "a", "1..", "..4", "4..2", "1,,2", "1,2,", "1..4,8", "1 .. 4", "99999999999999999999",
                                    "1.5"};
  ait_batch_space s = {0};
  for (size_t i = 0; i < AIT_COUNT(bad); ++i) {
    ait_status status = ait_batch_sizes_parse(bad[i], &s);
    if (status == AIT_OK) fail_msg("'%s' was taken", bad[i]);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
    ait_status_free(status);
  }
  assert_true(ait_batch_sizes_parse("1..64", &s) == AIT_OK);
  assert_int_equal(s.low, 1);
  assert_int_equal(s.high, 64);
  assert_int_equal(s.list_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_saturating),
      cmocka_unit_test(test_no_gain),
      cmocka_unit_test(test_peak),
      cmocka_unit_test(test_noisy),
      cmocka_unit_test(test_range),
      cmocka_unit_test(test_memory),
      cmocka_unit_test(test_foretell),
      cmocka_unit_test(test_latency),
      cmocka_unit_test(test_memory_of_larger_sizes),
      cmocka_unit_test(test_failure_keeps_points),
      cmocka_unit_test(test_time),
      cmocka_unit_test(test_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
