/* Helpers of the kernel tests: the list of instruction sets, guarded buffers, comparison with a reference in double precision.
 * A test file sets AIT_ISA wide16 and VL 16, includes isa.h and its templates, then this: the 512-bit code's tiling is so checked on
 * machines without AVX-512, too. */
#ifndef AIT_KERNELS_TESTING_H
#define AIT_KERNELS_TESTING_H

#include "base/base.h"
#include "kernels/kernels.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <cmocka.h>

typedef struct test_isa {
  const char *name;
  ait_kernels table;
} test_isa;

/* Tables that this machine can run; returns how many. The caller adds wide16. */
static inline size_t test_isas(test_isa *out) {
  size_t n = 0;
  uint64_t features;
  const ait_kernels *k;
  for (size_t i = 0; (k = ait_kernels_at(i, &features)) != NULL; ++i)
    if ((features & ~ait_cpu_features()) == 0) out[n++] = (test_isa){k->isa, *k};
  return n;
}

/* A repeatable generator. */
static uint64_t test_seed = 88172645463325252u;
static inline uint32_t test_random(uint32_t below) {
  test_seed ^= test_seed << 13;
  test_seed ^= test_seed >> 7;
  test_seed ^= test_seed << 17;
  return (uint32_t)(test_seed >> 33) % below;
}
static inline float test_float(void) { return (float)((double)test_random(20001) / 10000.0 - 1.0); }

/* Memory with guard words on both sides and everything set to a pattern, so that stray writes show. Data is only 4-byte aligned. */
#define TEST_GUARD 32
typedef struct test_buffer {
  float *block, *data;
  int64_t count;
} test_buffer;
static const uint32_t test_pattern = 0x7fa5a5a5u; /* a NaN: stray reads show, too */
static inline test_buffer test_buffer_create(int64_t count) {
  test_buffer b = {.count = count};
  b.block = malloc((size_t)(count + 2 * TEST_GUARD + 1) * sizeof(float));
  assert_non_null(b.block);
  for (int64_t i = 0; i < count + 2 * TEST_GUARD + 1; ++i) memcpy(b.block + i, &test_pattern, 4);
  b.data = b.block + TEST_GUARD + 1;
  return b;
}
static inline test_buffer test_buffer_random(int64_t count) {
  test_buffer b = test_buffer_create(count);
  for (int64_t i = 0; i < count; ++i) b.data[i] = test_float();
  return b;
}
static inline bool test_is_pattern(const float *p) { return memcmp(p, &test_pattern, 4) == 0; }
static inline void test_buffer_free(test_buffer *b) {
  for (int64_t i = 0; i < TEST_GUARD; ++i) {
    assert_true(test_is_pattern(b->data - 1 - i));
    assert_true(test_is_pattern(b->data + b->count + i));
  }
  free(b->block);
}
static inline void *test_scratch(size_t bytes) { return bytes ? aligned_alloc(64, (bytes + 63) & ~(size_t)63) : NULL; }
static inline float *test_aligned(size_t bytes) {
  void *p = aligned_alloc(64, (bytes + 127) & ~(size_t)63);
  assert_non_null(p);
  return p;
}

#define TEST_NEAR(got, want, tolerance, ...)                                                       \
  do {                                                                                             \
    double got_ = (got), want_ = (want);                                                           \
    if (!(fabs(got_ - want_) <= (tolerance)) && !(isnan(got_) && isnan(want_)) && got_ != want_) { \
      printf(__VA_ARGS__);                                                                         \
      fail_msg(": got %.9g, want %.9g", got_, want_);                                              \
    }                                                                                              \
  } while (0)

#endif
