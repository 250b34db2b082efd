/* Traces: what is read, what is refused and how; the queue against small examples by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/pareto.h"
#include "tune/replay.h"
#include <math.h>

static void assert_refused(const char *text, const char *says) {
  ait_traffic t;
  ait_status status = ait_traffic_parse("folder/day.jsonl", text, strlen(text), &t);
  if (status == AIT_OK) fail_msg("taken: %s", text);
  if (!strstr(ait_status_message(status), says)) fail_msg("'%s' does not say '%s'", ait_status_message(status), says);
  assert_non_null(strstr(ait_status_message(status), "day.jsonl"));
  ait_status_free(status);
}

static void test_reads(void **state) {
  AIT_UNUSED(state);
  static const char text[] = "{\"t\": 100.5, \"inputs\": {\"x\": [4, 8], \"n\": 3}}\n"
                             "\n"
                             "{\"t\": 100, \"batch\": 2}\r\n"
                             "{\"inputs\": {\"x\": [4, 8], \"n\": 3}, \"t\": 101}\n"
                             "{\"t\": 102, \"dims\": {\"s0\": 7}}\n"
                             "{\"t\": 103, \"data\": \"one.npz\"}\n"
                             "{\"t\": 104}"; /* no newline at the end */
  ait_traffic t;
  assert_true(ait_traffic_parse("folder/day.jsonl", text, strlen(text), &t) == AIT_OK);
  assert_string_equal(t.name, "day.jsonl");
  assert_string_equal(t.folder, "folder/");
  assert_int_equal(t.request_count, 6);
  assert_int_equal(t.kind_count, 5);
  assert_true(t.requests[0].at == 0 && t.requests[1].at == 0.5 && t.requests[5].at == 4); /* in order, from the first */
  assert_int_equal(t.requests[0].line, 3);
  assert_int_equal(t.kinds[t.requests[1].kind].requests, 2);
  assert_int_equal(t.requests[1].kind, t.requests[2].kind);
  char kind[128];
  ait_traffic_kind_text(&t.kinds[t.requests[1].kind], kind, sizeof kind);
  assert_string_equal(kind, "x [4, 8], n 3");
  ait_traffic_kind_text(&t.kinds[t.requests[0].kind], kind, sizeof kind);
  assert_string_equal(kind, "batch 2");
  ait_traffic_kind_text(&t.kinds[t.requests[3].kind], kind, sizeof kind);
  assert_string_equal(kind, "s0 = 7");
  ait_traffic_kind_text(&t.kinds[t.requests[5].kind], kind, 8); /* cut, not beyond */
  assert_string_equal(kind, "as the ");
  ait_traffic_deinit(&t);
}

static void test_refused(void **state) {
  AIT_UNUSED(state);
  assert_refused("", "holds no request");
  assert_refused("\n \n", "holds no request");
  assert_refused("{\"t\": 1}\n{\"t\": 2", "line 2");
  assert_refused("{\"t\": 1}\n[1]\n", "line 2: no JSON object");
  assert_refused("{}", "line 1: no arrival time 't'");
  assert_refused("{\"t\": \"1\"}", "no arrival time");
  assert_refused("{\"t\": -1}", "no time in seconds");
  assert_refused("{\"t\": NaN}", "no time in seconds");
  assert_refused("{\"t\": 1e300}", "no time in seconds");
  assert_refused("{\"t\": 1, \"batch\": 0}", "'batch'");
  assert_refused("{\"t\": 1, \"batch\": \"4\"}", "'batch'");
  assert_refused("{\"t\": 1, \"data\": 3}", "'data'");
  assert_refused("{\"t\": 1, \"inputs\": [1]}", "'inputs'");
  assert_refused("{\"t\": 1, \"inputs\": {\"x\": \"4\"}}", "'x' is no shape");
  assert_refused("{\"t\": 1, \"inputs\": {\"x\": [1.5]}}", "size 0");
  assert_refused("{\"t\": 1, \"inputs\": {\"x\": [4, -1]}}", "size 1");
  assert_refused("{\"t\": 1, \"inputs\": {\"x\": [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}", "'x' is no shape");
  assert_refused("{\"t\": 1, \"dims\": {\"s0\": [4]}}", "'s0' is no whole number");
  assert_refused("{\"t\": 1, \"dims\": {\"s0\": 4}, \"batch\": 4}", "only one of");
  assert_refused("{\"t\": 1, \"shape\": [4]}", "no member 'shape'");
  assert_refused("{\"t\": 1, \"t\": 2}", "line 1");
}

static void test_limits(void **state) {
  AIT_UNUSED(state);
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  for (int i = 1; i <= AIT_TRAFFIC_KINDS + 1; ++i) ait_text_printf(&t, "{\"t\": %d, \"batch\": %d}\n", i, i);
  assert_refused(t.data, "line 1025: more than 1024 different sizes");
  t.length = 0;
  for (int i = 0; i < 70000; ++i) ait_text_append(&t, " ", 1);
  ait_text_printf(&t, "{}");
  assert_refused(t.data, "line 1: longer than");
  ait_text_deinit(&t);
}

/* Arrivals 0, 1, 2, 10; services 3, 1, 1, 2. The first starts at once and ends at 3; the second waits 2, ends at 4; the third waits 2, ends
 * at 5; the fourth finds nobody, ends at 12. */
static void test_queue(void **state) {
  AIT_UNUSED(state);
  static const double arrivals[] = {0, 1, 2, 10}, services[] = {3, 1, 1, 2}, want[] = {0, 2, 2, 0};
  double waits[4], scratch[8];
  assert_true(ait_queue_run(arrivals, services, 4, waits) == 12);
  for (int i = 0; i < 4; ++i) assert_true(waits[i] == want[i]);
  ait_replay_numbers n = ait_replay_judge(arrivals, services, 4, 2.5, 0.5, scratch); /* latencies 3, 3, 3, 2 */
  assert_true(n.p50 == 3 && n.max == 3 && n.quantile == 3);
  assert_true(n.service_mean == 1.75 && n.wait_mean == 1 && n.span == 12);
  assert_true(fabs(n.throughput - 4.0 / 12) < 1e-12);
  assert_true(n.good_share == 0.25 && fabs(n.goodput - 1.0 / 12) < 1e-12);
  assert_true(fabs(n.utilisation - 7.0 / 12) < 1e-12);
  n = ait_replay_judge(arrivals, services, 4, 0, 0.99, scratch);
  assert_true(n.good_share == 1);
  n = ait_replay_judge(arrivals, services, 0, 1, 0.99, scratch);
  assert_true(n.throughput == 0);
}

/* Twice as much work as there is time: the wait grows with every request, nothing is left out. */
static void test_overload(void **state) {
  AIT_UNUSED(state);
  enum { N = 100 };
  double arrivals[N], services[N], waits[N];
  for (int i = 0; i < N; ++i) arrivals[i] = i, services[i] = 2;
  assert_true(ait_queue_run(arrivals, services, N, waits) == 2 * N);
  for (int i = 0; i < N; ++i) assert_true(waits[i] == i);
}

static void test_pareto(void **state) {
  AIT_UNUSED(state);
  ait_pareto_row rows[] = {
      {.axes = {1, 10}}, {.axes = {2, 5}}, {.axes = {2, 10}}, {.axes = {1.001, 10}}, {.axes = {NAN, 4}},
  };
  ait_pareto_mark(rows, AIT_COUNT(rows), 0.02);
  assert_true(rows[0].front);  /* fastest */
  assert_true(rows[1].front);  /* one that is not known to be faster does not beat it */
  assert_false(rows[2].front); /* slower than 0, as large */
  assert_true(rows[3].front);  /* the same as 0, within noise */
  assert_true(rows[4].front);  /* smallest */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_reads), cmocka_unit_test(test_refused),  cmocka_unit_test(test_limits),
      cmocka_unit_test(test_queue), cmocka_unit_test(test_overload), cmocka_unit_test(test_pareto),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
