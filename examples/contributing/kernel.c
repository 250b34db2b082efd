/* Adding a kernel, on the example of axpb_f32: the check that every kernel has. Every instruction set that this machine can run, lengths 1
 * to 33, odd strides, unaligned rows, guard words on both sides, work cut into two ranges, against the formula in double precision. */
#include "axpb_f32.h"
#include "kernels/testing.h"

static const struct {
  const char *isa;
  ait_kernel_fn fn;
  uint64_t features;
} kernels[] = {
    {"generic", ait_k_axpb_f32_generic, 0},
#if defined(__x86_64__)
    {"avx2", ait_k_axpb_f32_avx2, AIT_CPU_AVX2},
    {"avx512", ait_k_axpb_f32_avx512, AIT_CPU_AVX512},
#endif
};

/* begin check */
static void check(const char *isa, ait_kernel_fn fn, int64_t rows, int64_t n) {
  int64_t x_stride = n + test_random(3), y_stride = n + test_random(3);
  test_buffer x = test_buffer_random(rows * x_stride), y = test_buffer_create(rows * y_stride);
  ait_axpb_f32 p = {
      .rows = rows, .n = n, .x = x.data, .x_stride = x_stride, .y = y.data, .y_stride = y_stride, .scale = 1.7f, .shift = -0.3f};
  int64_t cut = test_random((uint32_t)rows + 1);
  fn(&p, cut, ait_axpb_f32_units(&p), NULL);
  fn(&p, 0, cut, NULL);
  for (int64_t i = 0; i < rows * y_stride; ++i) {
    if (i % y_stride >= n) { /* between rows nothing is written */
      assert_true(test_is_pattern(y.data + i));
      continue;
    }
    double want = (double)x.data[i / y_stride * x_stride + i % y_stride] * (double)p.scale + (double)p.shift;
    TEST_NEAR((double)y.data[i], want, 3e-7, "%s n %d", isa, (int)n);
  }
  test_buffer_free(&x); /* checks the guards */
  test_buffer_free(&y);
}

static void every_isa(void **state) {
  AIT_UNUSED(state);
  for (size_t k = 0; k < AIT_COUNT(kernels); ++k) {
    if (kernels[k].features & ~ait_cpu_features()) continue;
    for (int64_t n = 1; n <= 33; ++n) check(kernels[k].isa, kernels[k].fn, 1 + test_random(5), n);
    check(kernels[k].isa, kernels[k].fn, 0, 8); /* empty work is fine */
  }
}
/* end check */

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_isa)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
