/* Two results: each kind of change for the worse is one regression, noise is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/html.h"
#include <ait/tools.h>
#include <ait/tune.h>
#include <stdio.h>

typedef struct result {
  const char *cpu, *winner, *other_outcome;
  double low, high, error, plan_bytes;
  uint64_t file_bytes;
} result;
static const result plain = {"a cpu", "native", "valid", 0.99e-3, 1.01e-3, 0.3, 1e6, 5000000};

static void report_of(const result *r, char out[2048]) {
  snprintf(out, 2048,
           "{\"winner\": \"%s\", \"environment\": {\"cpu\": \"%s\", \"cores\": 2}, \"candidates\": [{\"name\": \"native\", \"outcome\": "
           "\"valid\", \"median_s\": %g, \"low_s\": %g, \"high_s\": %g, \"error_over_tolerance\": %g, \"plan_bytes\": %g}, {\"name\": "
           "\"other\", \"outcome\": \"%s\", \"reason\": \"it is broken\"}]}",
           r->winner, r->cpu, (r->low + r->high) / 2, r->low, r->high, r->error, r->plan_bytes, r->other_outcome);
}

static struct json_object *compared(const result *a, const result *b, double threshold) {
  char x[2048], y[2048], *text = NULL;
  report_of(a, x);
  report_of(b, y);
  ait_compare_options o;
  ait_compare_options_init(&o);
  o.threshold = threshold;
  o.a_file_bytes = a->file_bytes;
  o.b_file_bytes = b->file_bytes;
  ait_status status = ait_compare_reports(x, y, &o, &text);
  if (status != AIT_OK) fail_msg("%s", ait_status_message(status));
  struct json_object *doc = json_tokener_parse(text);
  assert_non_null(doc);
  ait_string_free(text);
  return doc;
}

/* b against plain, and the other way round. */
static void changes(result b, double threshold, int worse, int better) {
  struct json_object *o = compared(&plain, &b, threshold);
  assert_int_equal((int)ait_member_number(o, "regressions"), worse);
  assert_int_equal((int)ait_member_number(o, "improvements"), better);
  json_object_put(o);
}

static void each_loss_counts_once(void **state) {
  (void)state;
  result b = plain;
  changes(b, 0.05, 0, 0);
  b.low = 1.2e-3, b.high = 1.3e-3;
  changes(b, 0.05, 1, 0);
  changes(b, 0.5, 0, 0);
  b.low = 0.9e-3; /* a wide interval that reaches into the other: noise */
  changes(b, 0.05, 0, 0);
  b.low = 1.03e-3, b.high = 1.04e-3; /* apart, and less than the threshold */
  changes(b, 0.05, 0, 0);
  b.low = 0.5e-3, b.high = 0.6e-3;
  changes(b, 0.05, 0, 1);
  b = plain, b.error = 0.9;
  changes(b, 0.05, 1, 0);
  b.error = 0.45; /* larger, and far from the tolerance */
  changes(b, 0.05, 0, 0);
  b = plain, b.plan_bytes = 2e6;
  changes(b, 0.05, 1, 0);
  b = plain, b.file_bytes = 6000000;
  changes(b, 0.05, 1, 0);
  b.file_bytes = 0; /* not known */
  changes(b, 0.05, 0, 0);
  b = plain, b.other_outcome = "crashed";
  changes(b, 0.05, 1, 0);
  b.other_outcome = "skipped";
  changes(b, 0.05, 0, 0);
  b = plain, b.winner = "";
  changes(b, 0.05, 1, 0);
}

static void other_machines_are_not_judged(void **state) {
  (void)state;
  result b = plain;
  b.cpu = "another";
  b.low = 2e-3, b.high = 3e-3;
  changes(b, 0.05, 0, 0);
  struct json_object *o = compared(&plain, &b, 0.05);
  assert_false(ait_member_true(o, "same_machine"));
  assert_string_equal(ait_member_text(ait_member_at(o, "metrics", 0), "verdict"), "unknown");
  json_object_put(o);
}

static void reasons_come_along(void **state) {
  (void)state;
  result b = plain;
  b.other_outcome = "wrong";
  struct json_object *o = compared(&plain, &b, 0.05), *c = ait_member_at(o, "candidates", 1);
  assert_string_equal(ait_member_text(c, "verdict"), "worse");
  assert_string_equal(ait_member_text(c, "reason"), "it is broken");
  json_object_put(o);
}

static void bad_input_is_refused(void **state) {
  (void)state;
  char good[2048], *text;
  report_of(&plain, good);
  ait_compare_options o;
  ait_compare_options_init(&o);
  const char *const pairs[][2] = {{good, "[]"}, {"", good}, {good, "{}"}, {"nonsense", good}};
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; ++i) {
    ait_status status = ait_compare_reports(pairs[i][0], pairs[i][1], &o, &text);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
    assert_null(text);
    ait_status_free(status);
  }
  o.threshold = -1;
  ait_status status = ait_compare_reports(good, good, &o, &text);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_loss_counts_once),
      cmocka_unit_test(other_machines_are_not_judged),
      cmocka_unit_test(reasons_come_along),
      cmocka_unit_test(bad_input_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
