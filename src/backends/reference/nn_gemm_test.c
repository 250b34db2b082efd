/* The matrix product against a plain loop over sizes around its blocks, and the same bits whatever the number of threads. */
#include "backends/reference/nn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h> /* needs the headers above */

static double number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)(*state >> 33) / 0x1p30 - 1;
}

static void multiply(ait_pool *pool, int64_t m, int64_t n, int64_t k, bool flip, double *a, double *b, double *c) {
  ait_ref_call call = {.allocator = ait_allocator_default(), .pool = pool};
  ait_nn_mat ma = flip ? ait_nn_mat_of(a, 1, m) : ait_nn_mat_of(a, k, 1), mb = flip ? ait_nn_mat_of(b, 1, k) : ait_nn_mat_of(b, n, 1);
  assert_null(ait_nn_product(&call, &ma, &mb, m, n, k, c));
}

static void check(ait_pool *pool, int64_t m, int64_t n, int64_t k, bool flip) {
  ait_ref_call call = {.allocator = ait_allocator_default()};
  int64_t count = m * k + k * n + 2 * m * n;
  double *a = ait_nn_doubles(&call, count), *b = a + m * k, *c = b + k * n, *d = c + m * n;
  uint64_t seed = 1;
  for (int64_t i = 0; i < m * k + k * n; ++i) a[i] = number(&seed);
  multiply(NULL, m, n, k, flip, a, b, c);
  multiply(pool, m, n, k, flip, a, b, d);
  assert_memory_equal(c, d, (size_t)(m * n) * sizeof *c);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t q = 0; q < k; ++q) sum += (flip ? a[q * m + i] : a[i * k + q]) * (flip ? b[j * k + q] : b[q * n + j]);
      assert_true(fabs(sum - c[i * n + j]) <= 1e-12 * (double)(k + 1));
    }
  ait_nn_doubles_free(&call, a, count);
}

static void test_sizes(void **state) {
  AIT_UNUSED(state);
  static const int64_t sizes[] = {1, 3, 4, 5, 33, 65, 257, 300};
  ait_pool *pool;
  assert_null(ait_pool_create(ait_allocator_default(), 3, &pool));
  for (size_t i = 0; i < AIT_COUNT(sizes); ++i)
    for (size_t j = 0; j < AIT_COUNT(sizes); j += 2) {
      check(pool, sizes[i], sizes[j], sizes[(i + j) % AIT_COUNT(sizes)], i % 2 != 0);
      check(pool, sizes[j], sizes[i], 7, j % 4 != 0);
    }
  ait_pool_destroy(pool);
}

static void test_empty(void **state) {
  AIT_UNUSED(state);
  double c[4] = {1, 2, 3, 4};
  multiply(NULL, 2, 2, 0, false, c, c, c);
  for (int i = 0; i < 4; ++i) assert_true(c[i] == 0);
  multiply(NULL, 0, 2, 3, false, c, c, c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_empty)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
