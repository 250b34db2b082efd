#include "artifact/json_reader.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static ait_json_reader reader(const char *text) {
  ait_json_reader r;
  ait_json_read_init(&r, text, strlen(text));
  return r;
}

static void test_read(void **state) {
  AIT_UNUSED(state);
  ait_arena arena;
  ait_arena_init(&arena, ait_allocator_default());
  ait_json_reader r = reader(" {\"a\": -9223372036854775808, \"skip\": [1.5e-3, {\"x\": [[], {}]}, null, true, \"\\\"\"],\n"
                             "\"list\":[1 , 2,3], \"s\":\"q\\\"\\u00e9\\ud83d\\ude00\\n\"} ");
  int64_t a = 0, sum = 0;
  char *s = NULL;
  for (ait_json_read_enter(&r, '{'); ait_json_read_next(&r);) {
    if (ait_json_read_key_is(&r, "a")) a = ait_json_read_int(&r);
    else if (ait_json_read_key_is(&r, "s")) s = ait_json_read_string(&r, &arena);
    else if (ait_json_read_key_is(&r, "list"))
      for (ait_json_read_enter(&r, '['); ait_json_read_next(&r);) sum = sum * 10 + ait_json_read_int(&r);
    else ait_json_read_skip(&r);
  }
  ait_json_read_end(&r);
  assert_false(r.failed);
  assert_true(a == INT64_MIN);
  assert_int_equal(sum, 123);
  assert_string_equal(s, "q\"\xc3\xa9\xf0\x9f\x98\x80\n");
  ait_arena_deinit(&arena);
}

static void test_refuse(void **state) {
  AIT_UNUSED(state);
  static const char *const broken[] = {"",      "{",     "[1",       "[1,]",  "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
                                       "{a:1}", "[1 2]", "[\"\n\"]", "[\"\\", "[]]",  "[}",      "[\"a]",    "{\"a\" 1}"};
  for (size_t i = 0; i < AIT_COUNT(broken); ++i) {
    ait_json_reader r = reader(broken[i]);
    ait_json_read_skip(&r);
    ait_json_read_end(&r);
    if (!r.failed) fail_msg("accepted %s", broken[i]);
  }
  static const char *const strings[] = {"\"\\u0000\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\x\"", "\"\\u12\"", "\"\xff\""};
  ait_arena arena;
  ait_arena_init(&arena, ait_allocator_default());
  for (size_t i = 0; i < AIT_COUNT(strings); ++i) {
    ait_json_reader r = reader(strings[i]);
    assert_null(ait_json_read_string(&r, &arena));
    assert_true(r.failed);
  }
  ait_arena_deinit(&arena);
  static const char *const numbers[] = {"9223372036854775808", "-9223372036854775809", "1.5", "1e3", "-", "x", "12x"};
  for (size_t i = 0; i < AIT_COUNT(numbers); ++i) {
    ait_json_reader r = reader(numbers[i]);
    ait_json_read_int(&r);
    assert_true(r.failed);
  }
}

static void test_depth(void **state) {
  AIT_UNUSED(state);
  char deep[200];
  memset(deep, '[', 100);
  memset(deep + 100, ']', 100);
  ait_json_reader r;
  ait_json_read_init(&r, deep, sizeof deep);
  ait_json_read_skip(&r);
  assert_true(r.failed);
  ait_json_read_init(&r, deep + 50, 100);
  ait_json_read_skip(&r);
  ait_json_read_end(&r);
  assert_false(r.failed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_read), cmocka_unit_test(test_refuse), cmocka_unit_test(test_depth)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
