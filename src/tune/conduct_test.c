/* Growth and slowing: what is found out, and what an honest candidate does. */
#include "tune/conduct.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static bool found(const ait_growth *g, bool end) {
  ait_status status = ait_growth_check(g, end);
  bool bad = status != AIT_OK;
  if (bad) assert_int_equal(ait_status_code(status), AIT_CODE_MISMATCH);
  ait_status_free(status);
  return bad;
}

static void test_growth(void **state) {
  AIT_UNUSED(state);
  if (SANITIZED) skip(); /* what was freed stays: nothing is said of them */
  for (uint64_t calls = 20; calls < 5000; calls = calls * 3 / 2) {
    ait_growth steady = {.base = 1}, settling = {.base = 1}, jump = {.base = 1}, little = {.base = 1};
    for (uint64_t i = 0; i < calls; ++i) {
      ait_growth_add(&steady, 1, (int64_t)(100 << 20) / (int64_t)calls);
      ait_growth_add(&settling, 1, i < calls / 3 ? (int64_t)(100 << 20) / (int64_t)calls : 0);
      ait_growth_add(&jump, 1, i == 1 ? 200 << 20 : i % 2 ? 4096 : -4096);
      ait_growth_add(&little, 1, 100);
    }
    assert_true(found(&steady, true));
    assert_false(found(&steady, false)); /* too little to stop it before its end */
    assert_false(found(&settling, true));
    assert_false(found(&jump, true));
    assert_false(found(&little, true));
  }
  ait_growth huge = {.base = 1};
  ait_growth_add(&huge, 10, 300 << 20);
  assert_true(found(&huge, false));
  ait_growth few = {.base = 1}, first = {.base = 1}; /* slow models are called a few times only */
  for (int i = 0; i < 4; ++i) ait_growth_add(&few, 1, 100 << 20), ait_growth_add(&first, 1, i == 0 ? 400 << 20 : 0);
  assert_true(found(&few, false));
  assert_true(ait_growth_open(&few)); /* a trial does not end before it is told */
  assert_false(ait_growth_open(&huge));
  assert_false(found(&first, true));
}

static void test_memory(void **state) {
  AIT_UNUSED(state);
  size_t before = ait_conduct_memory(), bytes = 32u << 20;
  assert_true(before > 0);
  volatile char *p = malloc(bytes);
  assert_non_null((void *)(uintptr_t)p);
  for (size_t i = 0; i < bytes; i += 1024) p[i] = 1;
  assert_true(ait_conduct_memory() >= before + bytes / 2);
  free((void *)(uintptr_t)p);
}

static ait_pace pace_of(uint32_t count, double from, double to, bool noise) {
  ait_pace p = {0};
  for (uint32_t i = 0; i < count; ++i) ait_pace_add(&p, (from + (to - from) * i / count) * (noise && i % 3 ? 20 : 1));
  return p;
}

static void test_pace(void **state) {
  AIT_UNUSED(state);
  ait_pace p = pace_of(100, 1, 5, false);
  assert_true(ait_pace_slowdown(&p) > 4);
  p = pace_of(15, 1, 5, false); /* too few to tell */
  assert_true(ait_pace_slowdown(&p) == 1);
  p = pace_of(100, 1, 1, true); /* two of three measurements disturbed */
  assert_true(ait_pace_slowdown(&p) <= 1);
  p = pace_of(100, 5, 1, false);
  assert_true(ait_pace_slowdown(&p) < 1);
}

/* A machine that becomes slower is no member's fault. */
static void test_pace_of_members(void **state) {
  AIT_UNUSED(state);
  ait_pace p[3] = {pace_of(80, 1, 5, false), pace_of(80, 2, 10, false), pace_of(80, 3, 15, false)};
  for (uint32_t k = 0; k < 3; ++k) assert_null(ait_pace_check(p, 3, k));
  p[1] = pace_of(80, 2, 30, false);
  ait_status status = ait_pace_check(p, 3, 1);
  assert_int_equal(ait_status_code(status), AIT_CODE_MISMATCH);
  ait_status_free(status);
  assert_null(ait_pace_check(p, 3, 0));
  assert_null(ait_pace_check(p, 3, 2));
  p[1] = pace_of(80, 2, 2, false);
  p[0] = p[2] = pace_of(80, 5, 1, false); /* the others became faster */
  assert_null(ait_pace_check(p, 3, 1));
  assert_null(ait_pace_check(&p[1], 1, 0)); /* alone there is nothing to compare with */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_growth), cmocka_unit_test(test_memory), cmocka_unit_test(test_pace),
                                     cmocka_unit_test(test_pace_of_members)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
