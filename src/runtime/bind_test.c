#include "artifact/toy_models.h"
#include "runtime/runtime.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static float memory[4096];

static ait_value tensor(ait_dtype dtype, int32_t rank, int64_t a, int64_t b) {
  return (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(memory, dtype, rank, (int64_t[]){a, b})};
}

static ait_value number(int64_t i) { return (ait_value){.kind = AIT_VALUE_INT, .as.i = i}; }

static void accept(const ait_region *r, const ait_value *inputs, size_t count, int64_t *symbols) {
  ait_status status = ait_bind_inputs(r, inputs, count, symbols);
  if (status) fail_msg("%s", ait_status_message(status));
}

static void refuse(const ait_region *r, const ait_value *inputs, size_t count, const char *message) {
  int64_t symbols[8];
  ait_status status = ait_bind_inputs(r, inputs, count, symbols);
  assert_non_null(status);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  assert_string_equal(ait_status_message(status), message);
  ait_status_free(status);
}

static void test_sizes(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_sizes();
  int64_t s[3];
  ait_value in[4] = {tensor(AIT_F32, 2, 5, 3), tensor(AIT_F32, 1, 10, 0), tensor(AIT_F32, 1, 7, 0), number(9)};
  accept(&r, in, 4, s);
  assert_int_equal(s[0], 5);
  assert_int_equal(s[1], 9);
  assert_int_equal(s[2], 2); /* solved from 2*free + 3 == 7 */

  in[0] = tensor(AIT_F32, 2, 65, 3);
  refuse(&r, in, 4, "input 'x': dimension 0 is 65, outside its range 2 to 64 (symbol s0)");
  in[0] = tensor(AIT_F32, 2, 1, 3);
  refuse(&r, in, 4, "input 'x': dimension 0 is 1, outside its range 2 to 64 (symbol s0)");
  in[0] = tensor(AIT_F32, 2, 5, 4);
  refuse(&r, in, 4, "input 'x': dimension 1 is 4, but export fixed it at 3");
  in[0] = tensor(AIT_F32, 2, 6, 3);
  refuse(&r, in, 4, "input 'y': dimension 0 is 10, must be 12 (2*s0; s0 is 6 from dimension 0 of input 'x')");
  in[0] = tensor(AIT_F32, 2, 5, 3);
  in[2] = tensor(AIT_F32, 1, 8, 0);
  refuse(&r, in, 4, "input 'z': dimension 0 is 8, which cannot be 2*free + 3");
  in[2] = tensor(AIT_F32, 1, 23, 0);
  refuse(&r, in, 4, "input 'z': dimension 0 is 23, so free is 10, outside its range 1 to 9 (symbol free)");
  in[2] = tensor(AIT_F32, 1, 7, 0);
  in[3] = number(101);
  refuse(&r, in, 4, "input 'n': is 101, outside its range 0 to 100 (symbol n)");
  in[3] = number(5);
  refuse(&r, in, 4,
         "the model requires n != s0, but these inputs give 5 and 5; n is 5 from input 'n'; s0 is 5 from dimension 0 of input 'x' (guard: "
         "Ne(n, s0))");
  refuse(&r, in, 3, "3 inputs given, the model takes 4");
}

static void test_kinds(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_sizes();
  ait_value in[4] = {tensor(AIT_F64, 2, 5, 3), tensor(AIT_F32, 1, 10, 0), tensor(AIT_F32, 1, 7, 0), number(9)};
  refuse(&r, in, 4, "input 'x': dtype is float64, must be float32");
  in[0] = tensor(AIT_F32, 1, 5, 3);
  refuse(&r, in, 4, "input 'x': has 1 dimensions, must have 2");
  in[0] = number(5);
  refuse(&r, in, 4, "input 'x': is an int, must be a tensor");
  in[0] = tensor(AIT_F32, 2, 5, 3);
  in[0].as.tensor.data = NULL;
  refuse(&r, in, 4, "input 'x': tensor has no memory");
  in[0] = tensor(AIT_F32, 2, -5, 3);
  refuse(&r, in, 4, "input 'x': dimension 0 is negative (-5)");
}

static void test_baked(void **state) {
  AIT_UNUSED(state);
  ait_region r = toy_scalars();
  int64_t s[3];
  ait_value in[5] = {
      number(3), tensor(AIT_F32, 1, 3, 0), {.kind = AIT_VALUE_FLOAT, .as.f = 2.0}, {.kind = AIT_VALUE_NONE}, {.kind = AIT_VALUE_BOOL}};
  accept(&r, in, 5, s);
  in[2].as.f = 2.5;
  refuse(&r, in, 5, "input 'scale': export fixed it at the float 2");
  in[2] = number(2);
  refuse(&r, in, 5, "input 'scale': export fixed it at the float 2");
  in[2] = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = 2.0};
  in[3] = number(1);
  refuse(&r, in, 5, "input 'mask': is an int, but export fixed it at none");
  in[3] = (ait_value){.kind = AIT_VALUE_NONE};
  in[1] = tensor(AIT_F32, 1, 4, 0);
  refuse(&r, in, 5, "input 'x': dimension 0 is 4, must be 3 (n from input 'n')");
}

static void test_text(void **state) {
  AIT_UNUSED(state);
  static const ait_symbol symbols[] = {{.name = "a", .min = 0, .max = 10}, {.name = "b", .min = 1, .max = INT64_MAX}};
  static const ait_dim_expr dims[] = {
      {.op = AIT_DIM_SYMBOL, .a = 0},           {.op = AIT_DIM_SYMBOL, .a = 1},
      {.op = AIT_DIM_CONST, .value = 3},        {.op = AIT_DIM_ADD, .a = 0, .b = 1},
      {.op = AIT_DIM_MUL, .a = 2, .b = 3},      {.op = AIT_DIM_SUB, .a = 4, .b = 3},
      {.op = AIT_DIM_FLOORDIV, .a = 5, .b = 2}, {.op = AIT_DIM_MIN, .a = 6, .b = 3},
      {.op = AIT_DIM_MOD, .a = 0, .b = 2},      {.op = AIT_DIM_UNKNOWN},
  };
  ait_region r = {.symbols = symbols, .symbol_count = 2, .dims = dims, .dim_count = AIT_COUNT(dims)};
  char text[128];
  ait_region_dim_text(&r, 7, text, sizeof text);
  assert_string_equal(text, "min((3*(a + b) - (a + b))//3, a + b)");
  ait_region_dim_text(&r, 7, text, 12);
  assert_string_equal(text, "min((3*(...");
  int64_t min[AIT_COUNT(dims)], max[AIT_COUNT(dims)];
  ait_region_dim_ranges(&r, min, max);
  assert_int_equal(min[3], 1);
  assert_int_equal(max[3], INT64_MAX);
  assert_int_equal(min[4], 3);
  assert_int_equal(min[8], 0);
  assert_int_equal(max[8], 2);
  assert_int_equal(min[9], INT64_MIN);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_kinds), cmocka_unit_test(test_baked),
                                     cmocka_unit_test(test_text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
