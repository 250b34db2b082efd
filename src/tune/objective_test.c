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

static void test_refused(void **state) {
  AIT_UNUSED(state);
  assert_refused("nosuch", "no strategy 'nosuch'");
  assert_refused("", "no strategy ''");
  assert_refused("max-throughput=3", "'max-throughput' takes no argument");
  assert_refused("max-through", "no strategy");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
