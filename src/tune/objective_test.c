/* The table of strategies is what is parsed, and what errors list. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/objective.h"

static void assert_refused(const char *text, const char *says) {
  ait_objective o;
  ait_status status = ait_objective_parse(text, &o);
  assert_true(status != AIT_OK);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  if (!strstr(ait_status_message(status), says)) fail_msg("'%s' does not say '%s'", ait_status_message(status), says);
  for (int i = 0; i < AIT_STRATEGY_COUNT; ++i) assert_non_null(strstr(ait_status_hint(status), ait_strategies[i].name));
  ait_status_free(status);
}

static void test_names(void **state) {
  AIT_UNUSED(state);
  ait_objective o;
  assert_true(ait_objective_parse(NULL, &o) == AIT_OK);
  assert_int_equal(o.kind, AIT_STRATEGY_MAX_THROUGHPUT);
  assert_string_equal(o.text, "max-throughput");
  for (int i = 0; i < AIT_STRATEGY_COUNT; ++i) {
    if (ait_strategies[i].argument) continue;
    assert_true(ait_objective_parse(ait_strategies[i].name, &o) == AIT_OK);
    assert_int_equal(o.kind, i);
    assert_string_equal(o.text, ait_strategies[i].name);
  }
  assert_true(ait_objective_parse("highest-throughput", &o) == AIT_OK);
  assert_string_equal(o.text, "max-throughput");
}

static void test_arguments(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *text, *canonical;
    double limit, quantile;
    const char *trace;
  } rows[] = {
      {"latency-budget=5", "latency-budget=5ms,p95", 5e-3, 0.95, ""},
      {"latency-budget=0.5ms", "latency-budget=0.5ms,p95", 5e-4, 0.95, ""},
      {"latency-budget=2s,p99.9", "latency-budget=2000ms,p99.9", 2, 0.999, ""},
      {"traffic=a/day.jsonl", "traffic=day.jsonl,p99", 0, 0.99, "a/day.jsonl"},
      {"traffic=day,2.jsonl,p50", "traffic=day,2.jsonl,p50", 0, 0.5, "day,2.jsonl"},
      {"traffic=day.jsonl,goodput=20", "traffic=day.jsonl,goodput=20ms", 20e-3, 0.99, "day.jsonl"},
  };
  for (size_t i = 0; i < AIT_COUNT(rows); ++i) {
    ait_objective o;
    assert_true(ait_objective_parse(rows[i].text, &o) == AIT_OK);
    assert_string_equal(o.text, rows[i].canonical);
    assert_true(o.limit_seconds >= rows[i].limit * 0.999999 && o.limit_seconds <= rows[i].limit * 1.000001);
    assert_true(o.quantile > rows[i].quantile - 1e-9 && o.quantile < rows[i].quantile + 1e-9);
    assert_string_equal(o.trace, rows[i].trace);
    ait_objective again; /* what it is called is what it is */
    if (!*rows[i].trace) assert_true(ait_objective_parse(o.text, &again) == AIT_OK && again.limit_seconds == o.limit_seconds);
  }
}

static void test_modules(void **state) {
  AIT_UNUSED(state);
  ait_strategy_kind kind;
  assert_true(ait_objective_parse_part("first-wins", &kind) == AIT_OK);
  assert_int_equal(kind, AIT_STRATEGY_FIRST_WINS);
  ait_status status = ait_objective_parse_part("min-memory", &kind);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  assert_non_null(strstr(ait_status_hint(status), "first-wins"));
  assert_null(strstr(ait_status_hint(status), "min-memory"));
  ait_status_free(status);
}

static void test_refused(void **state) {
  AIT_UNUSED(state);
  static const char *const bad[] = {"latency-budget=",       "latency-budget=x",    "latency-budget=0",    "latency-budget=-3",
                                    "latency-budget=5m",     "latency-budget=5,95", "latency-budget=5,p0", "latency-budget=5,p100",
                                    "latency-budget=5,p95x", "latency-budget=nan",  "latency-budget=inf",  "traffic=",
                                    "traffic=,p99",          "traffic=a,goodput=0"};
  for (size_t i = 0; i < AIT_COUNT(bad); ++i) assert_refused(bad[i], "is not");
  assert_refused("latency-budget", "needs =MS");
  assert_refused("traffic", "needs =TRACE");
  assert_refused("nosuch", "no strategy 'nosuch'");
  assert_refused("", "no strategy ''");
  assert_refused("max-throughput=3", "'max-throughput' takes no argument");
  assert_refused("max-through", "no strategy");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_arguments), cmocka_unit_test(test_modules),
                                     cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
