/* The report's page: everything from models is escaped, whatever is missing, and the numbers have units. */
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
#include <stdlib.h>

static char *page_of(const char *report) {
  char *page = NULL;
  ait_status status = ait_report_html(report, &page);
  if (status != AIT_OK) fail_msg("%s", ait_status_message(status));
  return page;
}

static size_t count(const char *text, const char *what) {
  size_t n = 0;
  for (const char *at = text; (at = strstr(at, what)); at += strlen(what)) ++n;
  return n;
}

/* Every text that a model or a backend chooses. */
#define EVIL "</style><script>alert(1)</script><img src=x onerror=\\\"alert(2)\\\"> ' & \\u0001"
static const char evil_report[] =
    "{\"format\": 1, \"model\": \"" EVIL "\", \"producer\": \"" EVIL "\", \"strategy\": \"" EVIL "\", \"winner\": \"w " EVIL
    "\", \"baseline\": \"b " EVIL "\", \"speedup\": 2, \"speedup_low\": 1.9, \"speedup_high\": 2.1, \"weight_bytes\": 1000,"
    "\"environment\": {\"cpu\": \"" EVIL "\", \"features\": \"" EVIL "\", \"cores\": 2, \"ait\": \"" EVIL "\"},"
    "\"checks\": {\"oracle\": \"" EVIL "\", \"why_not_double\": \"" EVIL "\", \"cases\": [{\"label\": \"" EVIL "\", \"shapes\": \"" EVIL
    "\"}], \"outputs\": [{\"name\": \"" EVIL "\", \"exact\": false, \"noise\": 1e-7, \"max_abs\": 1, \"atol\": 1e-6, \"rtol\": 0}]},"
    "\"candidates\": [{\"name\": \"w " EVIL "\", \"won\": true, \"outcome\": \"valid\", \"reason\": \"\", \"error_over_tolerance\": 0.5, "
    "\"median_s\": 0.001, \"p95_s\": 0.002}, {\"name\": \"b " EVIL "\", \"outcome\": \"valid\", \"median_s\": 0.002}, {\"name\": \"x " EVIL
    "\", \"outcome\": \"" EVIL "\", \"reason\": \"" EVIL "\"}],"
    "\"contest\": {\"rounds\": 2, \"dropped\": 0, \"members\": [{\"name\": \"w " EVIL
    "\", \"median_s\": 0.001, \"seconds\": [0.001, 0.0011]}]},"
    "\"modules\": [{\"path\": \"" EVIL "\", \"type\": \"" EVIL "\"}],"
    "\"roofline\": {\"threads\": 1, \"flops_per_s\": 5e10, \"cache_bytes_per_s\": 5e10, \"memory_bytes_per_s\": 1e10},"
    "\"accuracy\": [{\"candidate\": \"w " EVIL "\", \"case\": \"" EVIL "\", \"output\": \"" EVIL "\", \"error_over_tolerance\": 0.5}],"
    "\"profiles\": [{\"candidate\": \"w " EVIL "\", \"case\": \"" EVIL "\", \"steps\": [{\"node\": \"" EVIL "\", \"op\": \"" EVIL
    "\", \"kernel\": \"k" EVIL "\", \"module\": \"" EVIL "\", \"seconds\": 0.001, \"flops\": 1e6, \"bytes\": 1e5, \"live_bytes\": 100}]}]}";

static void names_are_escaped(void **state) {
  (void)state;
  char *page = page_of(evil_report);
  assert_int_equal(count(page, "<script"), 0);
  assert_int_equal(count(page, "<img"), 0);
  assert_int_equal(count(page, "onerror=\""), 0);
  assert_int_equal(count(page, "</style>"), 1);
  assert_true(count(page, "&lt;script&gt;alert(1)&lt;<wbr>/script&gt;") + count(page, "&lt;script&gt;alert(1)&lt;/script&gt;") >= 20);
  assert_int_equal(count(page, "\x01"), 0);
  ait_string_free(page);
}

static void it_loads_nothing(void **state) {
  (void)state;
  char *page = page_of(evil_report);
  static const char *const fetching[] = {"http://", "https://", "url(", "@import", " src=\""};
  for (size_t i = 0; i < sizeof fetching / sizeof *fetching; ++i) assert_int_equal(count(page, fetching[i]), 0);
  assert_int_equal(count(page, "default-src 'none'"), 1);
  assert_int_equal(count(page, "prefers-color-scheme: dark"), 1);
  assert_int_equal(count(page, "name=\"viewport\""), 1);
  assert_int_equal(count(page, "@media print"), 1);
  ait_string_free(page);
}

static void any_member_may_be_missing(void **state) {
  (void)state;
  struct json_object *whole = json_tokener_parse(evil_report);
  json_object_object_foreach(whole, key, value) {
    (void)value;
    struct json_object *part = json_tokener_parse(evil_report);
    json_object_object_del(part, key);
    char *page = NULL;
    ait_status status = ait_report_html(json_object_to_json_string(part), &page);
    bool needed = !strcmp(key, "candidates");
    if ((status != AIT_OK) != needed) fail_msg("without '%s': %s", key, ait_status_message(status));
    if (page) assert_non_null(strstr(page, "</html>"));
    ait_status_free(status);
    ait_string_free(page);
    json_object_put(part);
  }
  json_object_put(whole);
  char *page = page_of("{\"candidates\": []}");
  assert_non_null(strstr(page, "No candidate is correct"));
  ait_string_free(page);
  page =
      page_of("{\"candidates\": {\"name\": 5}, \"profiles\": 7, \"contest\": [], \"checks\": \"x\", \"modules\": null}"); /* other types */
  ait_string_free(page);
  static const char *const bad[] = {"", "[]", "{", "7", "{}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
    ait_status status = ait_report_html(bad[i], &page);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
    assert_null(page);
    ait_status_free(status);
  }
}

static void equal_reports_give_equal_pages(void **state) {
  (void)state;
  char *a = page_of(evil_report), *b = page_of(evil_report);
  assert_string_equal(a, b);
  ait_string_free(a);
  ait_string_free(b);
}

static void numbers_have_units(void **state) {
  (void)state;
  assert_string_equal(ait_unit_seconds(0.00125).text, "1.25\u00a0ms");
  assert_string_equal(ait_unit_seconds(0.0000125).text, "12.5\u00a0µs");
  assert_string_equal(ait_unit_seconds(12.5).text, "12.5\u00a0s");
  assert_string_equal(ait_unit_seconds(0).text, "–");
  assert_string_equal(ait_unit_bytes(0).text, "0\u00a0B");
  assert_string_equal(ait_unit_bytes(999999).text, "1.00\u00a0MB");
  assert_string_equal(ait_unit_bytes(4.2e15).text, "4200\u00a0TB");
  assert_string_equal(ait_unit_count(75370).text, "75.4\u00a0k");
  assert_string_equal(ait_unit_count(1).text, "1");
  assert_string_equal(ait_unit_rate(5.35e10, "FLOP").text, "53.5\u00a0GFLOP/s");
  assert_string_equal(ait_unit_percent(0.43).text, "43\u00a0%");
  assert_string_equal(ait_unit_percent(0.004).text, "0.4\u00a0%");
  assert_string_equal(ait_unit_times(8.924).text, "8.92×");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_escaped),         cmocka_unit_test(it_loads_nothing),
      cmocka_unit_test(any_member_may_be_missing), cmocka_unit_test(equal_reports_give_equal_pages),
      cmocka_unit_test(numbers_have_units),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
