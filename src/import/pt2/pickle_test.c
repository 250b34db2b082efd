/* The pickle machine: it builds values, calls nothing, and stops at what is malformed. */
#include "import/pt2/pickle.h"

#include <setjmp.h>
#include <stdarg.h>

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

#define PARSE(text) parse((text), sizeof(text) - 1)
#define REFUSE(text, says) refuse((text), sizeof(text) - 1, (says))

static const ait_pickle *parse(const char *data, size_t size) {
  const ait_pickle *value;
  ait_status status = ait_pickle_parse(&arena, (const uint8_t *)data, size, &value);
  if (status) fail_msg("%s", ait_status_message(status));
  return value;
}

static void refuse(const char *data, size_t size, const char *says) {
  const ait_pickle *value;
  ait_status status = ait_pickle_parse(&arena, (const uint8_t *)data, size, &value);
  if (!status) fail_msg("accepted, though '%s' was expected", says);
  if (!strstr(ait_status_message(status), says)) fail_msg("'%s' expected in '%s'", says, ait_status_message(status));
  ait_status_ignore(status);
}

static void test_scalars(void **state) {
  (void)state;
  assert_int_equal(PARSE("\x80\x02N.")->kind, AIT_PICKLE_NONE);
  assert_true(PARSE("\x80\x02\x88.")->as.b);
  assert_int_equal(PARSE("K\xff.")->as.i, 255);
  assert_int_equal(PARSE("M\x01\x02.")->as.i, 513);
  assert_int_equal(PARSE("J\xfe\xff\xff\xff.")->as.i, -2);
  assert_true(PARSE("\x8a\x08\0\0\0\0\0\0\0\x80.")->as.i == INT64_MIN);
  assert_int_equal(PARSE("\x8a\x01\xff.")->as.i, -1);
  assert_int_equal(PARSE("\x8a\0.")->as.i, 0);
  assert_true(PARSE("G\x3f\xe0\0\0\0\0\0\0.")->as.f == 0.5);
  assert_string_equal(PARSE("X\3\0\0\0abc.")->as.string, "abc");
}

static void test_containers(void **state) {
  (void)state;
  const ait_pickle *list = PARSE("](K\1K\2e.");
  assert_int_equal(list->kind, AIT_PICKLE_LIST);
  assert_int_equal(list->count, 2);
  const ait_pickle *dict = PARSE("}(X\1\0\0\0aK\1X\1\0\0\0bK\2u.");
  assert_int_equal(ait_pickle_get(dict, "b")->as.i, 2);
  assert_null(ait_pickle_get(dict, "c"));
  assert_int_equal(PARSE("(K\1K\2K\3t.")->count, 3);
  assert_int_equal(PARSE("ccollections\nOrderedDict\n)R(X\1\0\0\0aK\7u.")->kind, AIT_PICKLE_DICT);
  assert_int_equal(PARSE("]q\0h\0a.")->as.items[0]->count, 1); /* a list that contains itself */
}

static void test_calls_are_records(void **state) {
  (void)state;
  const ait_pickle *call = PARSE("cos\nsystem\n(X\2\0\0\0lstR.");
  char text[64];
  assert_int_equal(call->kind, AIT_PICKLE_CALL);
  assert_non_null(ait_pickle_call(call, "os system"));
  assert_null(ait_pickle_call(call, "os remove"));
  assert_string_equal(ait_pickle_describe(call, text, sizeof text), "a call of 'os system'");
  assert_int_equal(PARSE("cm\nC\n)\x81}b.")->count, 3); /* NEWOBJ, BUILD */
  assert_int_equal(PARSE("X\7\0\0\0storageQ.")->kind, AIT_PICKLE_PERSISTENT);
  assert_int_equal(PARSE("\x8c\2os\x8c\6system\x93.")->kind, AIT_PICKLE_GLOBAL); /* protocol 4 */
}

static void test_refusals(void **state) {
  (void)state;
  REFUSE("", "ends early");
  REFUSE(".", "one value");
  REFUSE("K", "ends early");
  REFUSE("NN.", "one value");
  REFUSE("(.", "one value");
  REFUSE("t.", "no mark");
  REFUSE("}NNu.", "no mark");
  REFUSE("}(Nu.", "without a value");
  REFUSE("N(NNu.", "no dict");
  REFUSE("N(e.", "no list");
  REFUSE("(0.", "stack is empty");
  REFUSE("\x85.", "stack is empty");
  REFUSE("N\x86.", "stack is empty");
  REFUSE("h\0.", "memo number");
  REFUSE("j\0\0\0\x80.", "memo number");
  REFUSE("Nr\xff\xff\xff\x7f.", "memo number");
  REFUSE("NNR.", "argument tuple");
  REFUSE("NNb.", "state");
  REFUSE("X\xff\xff\xff\xff.", "ends early");
  REFUSE("X\1\0\0\0\xff.", "UTF-8");
  REFUSE("X\1\0\0\0\0.", "NUL");
  REFUSE("cos\nsystem", "ends early");
  REFUSE("\x8a\x09\0\0\0\0\0\0\0\0\1.", "64 bits");
  REFUSE("\x82\1.", "opcode 0x82");
  REFUSE("\x93.", "stack is empty");
  REFUSE("NN\x93.", "without a name");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_scalars, setup, teardown),
      cmocka_unit_test_setup_teardown(test_containers, setup, teardown),
      cmocka_unit_test_setup_teardown(test_calls_are_records, setup, teardown),
      cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
