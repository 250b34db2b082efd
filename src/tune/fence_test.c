/* Fences are seen to be broken, on either side, in blocks that are there and in blocks that are gone; honest blocks are what they are asked
 * to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tune/fence.h"

static void expect(ait_fence *f, const char *text) {
  ait_status status = ait_fence_check(f);
  if (!text) {
    if (status) fail_msg("%s", ait_status_message(status));
    return;
  }
  assert_int_equal(ait_status_code(status), AIT_CODE_MISMATCH);
  if (!strstr(ait_status_message(status), text)) fail_msg("%s", ait_status_message(status));
  ait_status_free(status);
}

static void honest_blocks_are_left_alone(void **state) {
  AIT_UNUSED(state);
  ait_fence *f;
  assert_true(ait_fence_create(&f) == AIT_OK);
  ait_allocator a = ait_fence_allocator(f);
  unsigned char *blocks[40];
  for (size_t i = 0; i < 40; ++i) {
    size_t align = (size_t)1 << (i % 13), size = i * i;
    blocks[i] = ait_alloc(a, size, align);
    assert_non_null(blocks[i]);
    assert_int_equal((uintptr_t)blocks[i] % align, 0);
    for (size_t k = 0; k < size; ++k) assert_int_equal(blocks[i][k], 0xFF); /* no number */
    memset(blocks[i], 1, size);
  }
  expect(f, NULL);
  for (size_t i = 0; i < 40; i += 2) ait_free(a, blocks[i], i * i);
  expect(f, NULL);
  for (size_t i = 1; i < 40; i += 2) ait_free(a, blocks[i], i * i);
  expect(f, NULL);
  assert_null(ait_alloc(a, SIZE_MAX - 8, 64));
  ait_fence_destroy(f);
}

static void broken_fences_are_seen(void **state) {
  AIT_UNUSED(state);
  static const struct {
    int at;
    bool freed;
    const char *text;
  } cases[] = {{100, false, "past the end of its memory (a block of 100 bytes)"},
               {163, true, "past the end"},
               {-1, false, "before the begin of its memory"},
               {-64, true, "before the begin"}};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_fence *f;
    assert_true(ait_fence_create(&f) == AIT_OK);
    ait_allocator a = ait_fence_allocator(f);
    unsigned char *other = ait_alloc(a, 10, 8), *p = ait_alloc(a, 100, 64);
    unsigned char before = p[cases[i].at];
    ((volatile unsigned char *)p)[cases[i].at] = (unsigned char)~before;
    if (cases[i].freed) ait_free(a, p, 100);
    expect(f, cases[i].text);
    if (!cases[i].freed) ait_free(a, p, 100);
    expect(f, cases[i].text); /* it stays known */
    ait_free(a, other, 10);
    ait_fence_destroy(f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(honest_blocks_are_left_alone), cmocka_unit_test(broken_fences_are_seen)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
