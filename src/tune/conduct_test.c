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

static void test_slowing(void **state) {
  AIT_UNUSED(state);
  char why[AIT_REASON_SIZE];
  ait_trial_result r = {.outcome = AIT_OUTCOME_VALID, .sample_count = 100};
  for (uint32_t i = 0; i < 100; ++i) r.samples[i] = 1e-3 * (1 + 0.05 * i);
  assert_true(ait_conduct_slows(&r, why));
  r.sample_count = 16; /* too few to tell */
  assert_false(ait_conduct_slows(&r, why));
  r.sample_count = 100;
  for (uint32_t i = 0; i < 100; ++i) r.samples[i] = i % 7 ? 1e-3 : 9e-3;
  assert_false(ait_conduct_slows(&r, why));
}

/* A machine that becomes slower is no member's fault. */
static void test_contest(void **state) {
  AIT_UNUSED(state);
  static ait_contest c;
  c = (ait_contest){.count = 3, .rounds = 80};
  for (uint32_t r = 0; r < 80; ++r)
    for (uint32_t k = 0; k < 3; ++k) c.times[k * AIT_CONTEST_ROUNDS + r] = (k + 1) * (r < 40 ? 1e-3 : 5e-3);
  for (uint32_t k = 0; k < 3; ++k) assert_null(ait_conduct_check_speed(&c, k));
  for (uint32_t r = 0; r < 80; ++r) c.times[AIT_CONTEST_ROUNDS + r] *= 1 + 0.1 * r;
  ait_status status = ait_conduct_check_speed(&c, 1);
  assert_int_equal(ait_status_code(status), AIT_CODE_MISMATCH);
  ait_status_free(status);
  assert_null(ait_conduct_check_speed(&c, 0));
  assert_null(ait_conduct_check_speed(&c, 2));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_growth), cmocka_unit_test(test_memory), cmocka_unit_test(test_slowing),
                                     cmocka_unit_test(test_contest)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
