/* Random operators give the distributions that they promise, and a session's draws differ from one another. */
#include "backends/reference/nn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h> /* needs the headers above */

enum { COUNT = 20000 };

/* Runs a random operator on one tensor argument and numbers; *out is released by the caller. */
static void draw(const char *op, const ait_tensor *x, const double *numbers, uint32_t count, uint64_t *draws, ait_tensor *out) {
  ait_arg args[6] = {{.kind = AIT_ARG_VALUE, .as.value = 0}};
  for (uint32_t i = 0; i < count; ++i) args[1 + i] = (ait_arg){.kind = AIT_ARG_FLOAT, .as.f = numbers[i]};
  uint32_t result = 1;
  ait_region_value values[2] = {{.name = "x", .type = AIT_TYPE_TENSOR, .dtype = x->dtype, .rank = -1},
                                {.name = "y", .type = AIT_TYPE_TENSOR, .dtype = x->dtype, .rank = -1}};
  ait_region_node node = {.op = op, .arg_count = 1 + count, .args = args, .result_count = 1, .results = &result, .name = "n", .module = ""};
  ait_region region = {.struct_size = sizeof region, .version = AIT_REGION_VERSION, .value_count = 2, .values = values, .node_count = 1};
  region.nodes = &node;
  ait_ref_value table[2] = {{.type = AIT_TYPE_TENSOR, .as.tensor = *x}}, made = {0};
  struct ait_ref_run run = {.region = &region, .values = table, .allocator = ait_allocator_default(), .draws = draws};
  ait_ref_call call = {.run = &run, .region = &region, .node = &node, .results = &made, .allocator = ait_allocator_default()};
  ait_ref_fn fn = ait_ref_find(op);
  assert_non_null(fn);
  assert_null(fn(&call));
  *out = made.as.tensor;
}

static void moments(const ait_tensor *t, double *mean, double *var) {
  const double *v = t->data;
  *mean = *var = 0;
  for (int i = 0; i < COUNT; ++i) *mean += v[i] / COUNT;
  for (int i = 0; i < COUNT; ++i) *var += (v[i] - *mean) * (v[i] - *mean) / COUNT;
}

/* Mean and variance within five standard errors, generously. */
static void check(const char *op, double a, double b, uint32_t count, double want_mean, double want_var) {
  static double data[COUNT];
  for (int i = 0; i < COUNT; ++i) data[i] = a;
  ait_tensor x = ait_tensor_borrow(data, AIT_F64, 1, (int64_t[]){COUNT}), out;
  double numbers[2] = {a, b}, mean, var;
  draw(op, &x, numbers, count, NULL, &out);
  moments(&out, &mean, &var);
  assert_true(fabs(mean - want_mean) < 5 * sqrt(want_var / COUNT));
  assert_true(fabs(var - want_var) < 0.2 * want_var);
  ait_tensor_release(&out);
}

static void test_distributions(void **state) {
  AIT_UNUSED(state);
  check("aten.uniform", -1, 3, 2, 1, 16.0 / 12);
  check("aten.normal_functional", 2, 3, 2, 2, 9);
  check("aten.exponential", 2, 0, 1, 0.5, 0.25);
  check("aten.geometric", 0.25, 0, 1, 4, 12);
  check("aten.log_normal", 0, 0.5, 2, exp(0.125), (exp(0.25) - 1) * exp(0.25));
  check("aten.bernoulli.p", 0.3, 0, 1, 0.3, 0.21);
  check("aten.bernoulli", 0.3, 0, 0, 0.3, 0.21);
  check("aten.poisson", 700, 0, 0, 700, 700);
}

static void test_draws_differ(void **state) {
  AIT_UNUSED(state);
  double data[4] = {0};
  ait_tensor x = ait_tensor_borrow(data, AIT_F64, 1, (int64_t[]){4}), first, second, again;
  uint64_t draws = 0;
  draw("aten.rand_like", &x, NULL, 0, &draws, &first);
  draw("aten.rand_like", &x, NULL, 0, &draws, &second);
  draws = 0; /* a new session */
  draw("aten.rand_like", &x, NULL, 0, &draws, &again);
  assert_memory_not_equal(first.data, second.data, sizeof data);
  assert_memory_equal(first.data, again.data, sizeof data);
  ait_tensor_release(&first);
  ait_tensor_release(&second);
  ait_tensor_release(&again);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_distributions), cmocka_unit_test(test_draws_differ)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
