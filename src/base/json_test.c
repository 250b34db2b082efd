/* JSON as torch writes it, and what must be refused. */
#include "base/json.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static ait_arena arena;

static int setup(void **state) {
  (void)state;
  ait_arena_init(&arena, ait_allocator_default());
  return 0;
}

static int teardown(void **state) {
  (void)state;
  ait_arena_deinit(&arena);
  return 0;
}

static const ait_json *parse(const char *text) {
  const ait_json *json;
  ait_status status = ait_json_parse(&arena, text, strlen(text), &json);
  if (status) fail_msg("%s: %s", text, ait_status_message(status));
  return json;
}

static void refuse(const char *text, size_t length, const char *says) {
  const ait_json *json;
  ait_status status = ait_json_parse(&arena, text, length, &json);
  if (!status) fail_msg("accepted: %s", text);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
  if (!strstr(ait_status_message(status), says)) fail_msg("%s: '%s' expected in '%s'", text, says, ait_status_message(status));
  ait_status_ignore(status);
}

static void test_values(void **state) {
  (void)state;
  const ait_json *json = parse(" {\"a\": [1, -2.5e1, true, false, null], \"b\": {\"c\": \"x\"}, \"n\": null} ");
  const ait_json *a = ait_json_get_kind(json, "a", AIT_JSON_ARRAY);
  assert_int_equal(a->count, 5);
  assert_int_equal(a->as.items[0].as.i, 1);
  assert_true(a->as.items[1].as.f == -25.0);
  assert_true(a->as.items[2].as.b && !a->as.items[3].as.b);
  assert_string_equal(ait_json_get_string(ait_json_get(json, "b"), "c"), "x");
  assert_null(ait_json_get(json, "n")); /* null counts as absent */
  assert_null(ait_json_get(json, "missing"));
  assert_null(ait_json_get(NULL, "x"));
  assert_int_equal(parse("[]")->count, 0);
  assert_int_equal(parse("{}")->kind, AIT_JSON_OBJECT);
  assert_int_equal(parse("7")->as.i, 7);
}

static void test_integers_are_exact(void **state) {
  (void)state;
  assert_true(parse("9223372036854775807")->as.i == INT64_MAX);
  assert_true(parse("-9223372036854775808")->as.i == INT64_MIN);
  assert_true(parse("9007199254740993")->as.i == 9007199254740993);
  refuse("9223372036854775808", 19, "beyond 64 bits");
  refuse("-9223372036854775809", 20, "beyond 64 bits");
  refuse("1000000000000000000000000000000", 31, "beyond 64 bits");
  const ait_json *large; /* beside another library's own integers of any size */
  assert_null(ait_json_parse_with(&arena, "1000000000000000019884624838656", 31, AIT_JSON_LARGE, &large));
  assert_true(large->kind == AIT_JSON_FLOAT && large->as.f == 1e30);
  assert_null(ait_json_parse_with(&arena, "-9223372036854775809", 20, AIT_JSON_LARGE, &large));
  assert_true(large->kind == AIT_JSON_FLOAT && large->as.f == -0x1p63);
  assert_null(ait_json_parse_with(&arena, "9223372036854775807", 19, AIT_JSON_LARGE, &large));
  assert_true(large->kind == AIT_JSON_INT && large->as.i == INT64_MAX);
  assert_int_equal(parse("1.0")->kind, AIT_JSON_FLOAT);
  assert_int_equal(parse("1e3")->kind, AIT_JSON_FLOAT);
}

static void test_floats(void **state) {
  (void)state;
  assert_true(isnan(parse("NaN")->as.f));
  assert_true(parse("[Infinity]")->as.items[0].as.f == INFINITY);
  assert_true(parse("-Infinity")->as.f == -INFINITY);
  assert_true(parse("0.1")->as.f == 0.1);
  assert_true(parse("5e-324")->as.f == 5e-324);
  if (setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
    assert_true(parse("0.5")->as.f == 0.5);
    setlocale(LC_NUMERIC, "C");
  }
}

static void test_strings(void **state) {
  (void)state;
  assert_string_equal(parse("\"a\\n\\\"\\\\\\/\\u00e9\\ud83d\\ude00\"")->as.string, "a\n\"\\/\xc3\xa9\xf0\x9f\x98\x80");
  assert_string_equal(parse("\"\\ud800x\"")->as.string, "\xef\xbf\xbdx"); /* lone surrogates come from undecodable file names */
  assert_string_equal(parse("\"\xc3\xa9\"")->as.string, "\xc3\xa9");
  assert_int_equal(parse("\"\"")->count, 0);
}

static void test_refusals(void **state) {
  (void)state;
  static const struct {
    const char *text, *says;
  } cases[] = {{"", "ends early"},
               {"{", "expected"},
               {"[1", "ends early"},
               {"[1,]", "value expected"},
               {"{\"a\":1,}", "string expected"},
               {"{\"a\" 1}", "':'"},
               {"[1 2]", "','"},
               {"01", "leading zero"},
               {"1.", "point"},
               {"1e", "exponent"},
               {"-", "value expected"},
               {"tru", "value expected"},
               {"\"a", "no end"},
               {"\"\\x\"", "escape"},
               {"\"\\u12\"", "hexadecimal"},
               {"\"\\u0000\"", "NUL"},
               {"\"\n\"", "control"},
               {"1 2", "after the end"},
               {"[1]]", "after the end"},
               {"{\"a\":1,\"a\":2}", "twice"},
               {"\"\xff\"", "UTF-8"},
               {"[1}", "','"},
               {"{1:2}", "string"},
               {"nan", "value expected"},
               {"'a'", "value expected"},
               {"/* x */ 1", "value expected"}};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) refuse(cases[i].text, strlen(cases[i].text), cases[i].says);
  refuse("[1]\0", 4, "after the end");
}

static void test_many_keys(void **state) {
  (void)state;
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  for (int i = 0; i < 5000; ++i) ait_text_printf(&text, "%s\"k%d\": %d", i ? ", " : "{", i, i);
  ait_text_printf(&text, "}");
  assert_int_equal(parse(text.data)->count, 5000);
  text.data[text.length - 1] = ',';
  ait_text_printf(&text, "\"k77\": 0}");
  refuse(text.data, text.length, "twice");
  ait_text_deinit(&text);
}

static void test_depth(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  char *text = malloc(COUNT);
  memset(text, '[', COUNT);
  refuse(text, COUNT, "nested too deeply");
  memset(text, ']', 2 * AIT_JSON_DEPTH);
  memset(text, '[', AIT_JSON_DEPTH);
  text[2 * AIT_JSON_DEPTH] = 0;
  parse(text);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_values, setup, teardown),
      cmocka_unit_test_setup_teardown(test_integers_are_exact, setup, teardown),
      cmocka_unit_test_setup_teardown(test_floats, setup, teardown),
      cmocka_unit_test_setup_teardown(test_strings, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
      cmocka_unit_test_setup_teardown(test_many_keys, setup, teardown),
      cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
