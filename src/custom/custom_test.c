/* Registration, names and outlines of schemas; and calls: every kind of argument, copies, double, the functional form. */
#include "custom/custom.h"

#include "backends/reference/interp.h"
#include "backends/testing.h"
#include "ir/ir.h"

static ait_status same_shape(const ait_custom_call *call, ait_custom_shape *results) {
  const ait_tensor *x = call->args[0].as.tensor;
  results[0] = (ait_custom_shape){.dtype = x->dtype, .rank = x->rank};
  memcpy(results[0].shape, x->shape, sizeof results[0].shape);
  return AIT_OK;
}

/* x * s + the sum of the int list; adds 1 to y. Takes floats of both sizes, contiguous. */
static ait_status scale(const ait_custom_call *call, ait_value *results) {
  const ait_tensor *x = call->args[0].as.tensor, *y = call->args[1].as.tensor;
  double s = call->args[2].as.f;
  for (uint32_t i = 0; i < call->args[3].count; ++i) s += (double)call->args[3].as.list[i].as.i;
  assert_true(ait_tensor_is_contiguous(x) && ait_tensor_is_contiguous(y));
  for (int64_t i = 0; i < ait_tensor_count(x); ++i) {
    double v = ait_element_f64((char *)x->data + i * (int64_t)ait_dtype_size(x->dtype), x->dtype);
    ait_element_set_f64((char *)results[0].as.tensor.data + i * (int64_t)ait_dtype_size(x->dtype), x->dtype, v * s);
  }
  for (int64_t i = 0; i < ait_tensor_count(y); ++i) {
    char *p = (char *)y->data + i * (int64_t)ait_dtype_size(y->dtype);
    ait_element_set_f64(p, y->dtype, ait_element_f64(p, y->dtype) + 1);
  }
  *(uint64_t *)call->ctx += x->dtype == AIT_F64;
  return AIT_OK;
}

static uint64_t double_calls;
static const ait_custom_op scale_op = {.struct_size = sizeof(ait_custom_op),
                                       .name = "test::scale",
                                       .schema = "scale(Tensor x, Tensor(a!) y, float s=2.0, *, int[] more=[]) -> Tensor",
                                       .ctx = &double_calls,
                                       .infer = same_shape,
                                       .run = scale};
static const ait_custom_op scale_double = {.struct_size = sizeof(ait_custom_op),
                                           .flags = AIT_CUSTOM_DOUBLE,
                                           .name = "test::scale.double",
                                           .schema = "(Tensor x, Tensor(a!) y, float s=2.0, *, int[] more=[]) -> Tensor",
                                           .ctx = &double_calls,
                                           .infer = same_shape,
                                           .run = scale};

static void assert_refused(ait_custom_op op, ait_code code, const char *text) {
  static const ait_custom_op *kept;
  kept = memcpy(malloc(sizeof op), &op, sizeof op);
  ait_status status = ait_custom_op_add(kept);
  assert_int_equal(ait_status_code(status), code);
  if (!strstr(ait_status_message(status), text)) fail_msg("'%s' is not in: %s", text, ait_status_message(status));
  ait_status_free(status);
  free((void *)(uintptr_t)kept);
}

static void test_registration(void **state) {
  AIT_UNUSED(state);
  ait_custom_op op = scale_op;
  assert_null(ait_custom_op_add(&scale_op));
  assert_null(ait_custom_op_add(&scale_double));
  static const char *const spellings[] = {"test::scale", "test.scale", "test::scale.default", "test.scale.default"};
  for (size_t i = 0; i < AIT_COUNT(spellings); ++i) assert_ptr_equal(ait_custom_op_find(spellings[i]), &scale_op);
  assert_ptr_equal(ait_custom_op_find("test.scale.double"), &scale_double);
  static const char *const others[] = {"test::scal", "test::scale2", "scale", "test::scale.other", "", "test:scale:"};
  for (size_t i = 0; i < AIT_COUNT(others); ++i) assert_null(ait_custom_op_find(others[i]));
  assert_int_equal(ait_custom_op_count(), 2);
  assert_ptr_equal(ait_custom_op_at(1), &scale_double);
  assert_null(ait_custom_op_at(2));
  assert_refused(op, AIT_CODE_INVALID_ARGUMENT, "'test::scale' is registered already");
  op.name = "aten::add.Tensor";
  assert_refused(op, AIT_CODE_INVALID_ARGUMENT, "an operator of ait itself");
  static const char *const bad_names[] = {"scale", "::scale", "test::", "test::a:b", "a b::c", "test..x"};
  for (size_t i = 0; i < AIT_COUNT(bad_names); ++i) {
    op.name = bad_names[i];
    assert_refused(op, AIT_CODE_INVALID_ARGUMENT, "is no name");
  }
  op.name = "test::other";
  op.run = NULL;
  assert_refused(op, AIT_CODE_INVALID_ARGUMENT, "lacks its schema, infer or run");
  op = scale_op;
  op.struct_size = 8;
  assert_refused(op, AIT_CODE_INVALID_ARGUMENT, "struct_size");
}

static void test_signatures(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *schema, *error;
  } cases[] = {
      {"() -> ()", NULL},
      {"(Tensor x) -> Tensor", NULL},
      {"(Tensor x, str s=\"a,)(\", int[2] k=[1, 2], *, Tensor(a!)? y=None) -> (Tensor out, int n, float, bool)", NULL},
      {"(Tensor(a) x) -> Tensor", NULL},
      {"Tensor x -> Tensor", "no '('"},
      {"(Tensor x -> Tensor", "no ')'"},
      {"(Tensor x, , Tensor y) -> Tensor", "an empty parameter"},
      {"(Tensor x) Tensor", "no '->'"},
      {"(Tensor(a!) x) -> Tensor(a!)", "a result that is an argument"},
      {"(Tensor x) -> Tensor[]", "of no type"},
      {"(Tensor x) -> Widget", "of no type"},
      {"(Tensor x) -> (Tensor, Tensor", "no ')' after the results"},
      {"(Tensor x) -> Tensor y z", "text after"},
      {"(Tensor(a!)[] x) -> ()", "only a Tensor can be written"},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_custom_signature s;
    ait_status status = ait_custom_read_signature(cases[i].schema, &s);
    bool right = cases[i].error ? status && strstr(ait_status_message(status), cases[i].error) : !status;
    if (!right) fail_msg("%s: %s", cases[i].schema, ait_status_message(status));
    ait_status_free(status);
  }
  ait_custom_signature s;
  assert_null(ait_custom_read_signature(cases[2].schema, &s));
  assert_int_equal(s.param_count, 4);
  assert_true(s.written[3] && !s.written[0]);
  assert_int_equal(s.result_count, 4);
  assert_int_equal(s.results[1], AIT_TYPE_INT);
}

static void test_full_schema(void **state) {
  AIT_UNUSED(state);
  const ait_op *op;
  assert_null(ait_op_custom("test.scale", &op));
  assert_int_equal(op->param_count, 4);
  assert_true(op->params[1].written && op->params[3].keyword_only && op->params[3].is_list);
  assert_true(op->traits & AIT_OP_MUTATES);
  assert_true(op->params[2].default_value.as.f == 2.0);
  assert_null(ait_op_custom("test.none", &op));
  assert_null(op);
}

/* One node test.scale(x, y, 2.0, [3]) over strided tensors. */
static ait_status run_scale(const char *name, bool functional, bool fp64, ait_dtype dtype, ait_tensor *x, ait_tensor *y,
                            ait_ref_value *results) {
  ait_arg more = {.kind = AIT_ARG_INT, .as.i = 3};
  ait_arg args[] = {{.kind = AIT_ARG_VALUE, .as.value = 0},
                    {.kind = AIT_ARG_VALUE, .as.value = 1},
                    {.kind = AIT_ARG_FLOAT, .as.f = 2},
                    {.kind = AIT_ARG_LIST, .count = 1, .as.list = &more}};
  uint32_t ids[] = {2, 3};
  ait_region_value values[4];
  for (int i = 0; i < 4; ++i) values[i] = (ait_region_value){.name = "v", .type = AIT_TYPE_TENSOR, .dtype = dtype, .rank = -1};
  ait_region_node node = {
      .op = name, .name = "n", .arg_count = 4, .args = args, .result_count = functional ? 2 : 1, .results = ids, .module = ""};
  ait_region region = {.value_count = 4, .values = values, .node_count = 1, .nodes = &node};
  ait_ref_value table[4] = {{.type = AIT_TYPE_TENSOR, .as.tensor = *x}, {.type = AIT_TYPE_TENSOR, .as.tensor = *y}};
  return ait_ref_run_node(&region, &node, ait_allocator_default(), NULL, fp64, NULL, table, results);
}

static void test_strided_in_place(void **state) {
  AIT_UNUSED(state);
  float a[] = {1, 2, 3, 4}, b[] = {10, 20, 30, 40};
  ait_tensor x = ait_tensor_borrow(a, AIT_F32, 1, (int64_t[]){2}), y = ait_tensor_borrow(b + 3, AIT_F32, 1, (int64_t[]){2});
  x.strides[0] = 2;
  y.strides[0] = -2;
  ait_ref_value results[2] = {0};
  assert_null(run_scale("test.scale", false, false, AIT_F32, &x, &y, results));
  const float *got = results[0].as.tensor.data;
  assert_true(got[0] == 5 && got[1] == 15);
  assert_true(b[3] == 41 && b[1] == 21 && b[0] == 10 && b[2] == 30);
  ait_ref_value_release(ait_allocator_default(), &results[0]);
}

static void test_functional(void **state) {
  AIT_UNUSED(state);
  float a[] = {1, 2}, b[] = {10, 20};
  ait_tensor x = ait_tensor_borrow(a, AIT_F32, 1, (int64_t[]){2}), y = ait_tensor_borrow(b, AIT_F32, 1, (int64_t[]){2});
  ait_ref_value results[2] = {0};
  assert_null(run_scale("test.scale", true, false, AIT_F32, &x, &y, results));
  assert_true(b[0] == 10 && b[1] == 20);
  const float *after = results[1].as.tensor.data;
  assert_true(after[0] == 11 && after[1] == 21);
  for (int i = 0; i < 2; ++i) ait_ref_value_release(ait_allocator_default(), &results[i]);
}

/* The oracle: an operator that takes double gets it; another one gets the program's dtype, and what it writes comes back in double. */
static void test_double(void **state) {
  AIT_UNUSED(state);
  double a[] = {1.0 + 1e-12, 2}, b[] = {10, 20};
  ait_tensor x = ait_tensor_borrow(a, AIT_F64, 1, (int64_t[]){2}), y = ait_tensor_borrow(b, AIT_F64, 1, (int64_t[]){2});
  static const char *const names[] = {"test.scale", "test.scale.double"};
  for (int exact = 0; exact < 2; ++exact) {
    ait_ref_value results[2] = {0};
    double_calls = 0;
    assert_null(run_scale(names[exact], false, true, AIT_F32, &x, &y, results));
    assert_int_equal(double_calls, exact);
    assert_int_equal(results[0].as.tensor.dtype, AIT_F64);
    assert_true(*(const double *)results[0].as.tensor.data == (exact ? (1.0 + 1e-12) * 5 : 5.0));
    assert_true(b[0] == 11 + exact);
    ait_ref_value_release(ait_allocator_default(), &results[0]);
  }
}

static void test_missing(void **state) {
  AIT_UNUSED(state);
  float a[] = {1};
  ait_tensor x = ait_tensor_borrow(a, AIT_F32, 1, (int64_t[]){1});
  ait_ref_value results[2] = {0};
  ait_status status = run_scale("other.op", false, false, AIT_F32, &x, &x, results);
  assert_int_equal(ait_status_code(status), AIT_CODE_UNSUPPORTED);
  assert_non_null(strstr(ait_status_message(status), "custom operator 'other.op' is not registered"));
  assert_non_null(strstr(ait_status_hint(status), "ait_custom_op_add"));
  ait_status_free(status);
}

static void test_plugin_errors(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *path;
    ait_code code;
  } cases[] = {{"", AIT_CODE_INVALID_ARGUMENT}, {"/no/such/plugin.so", AIT_CODE_NOT_FOUND}, {AIT_TEST_DATA, AIT_CODE_UNAVAILABLE}};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_status status = ait_plugin_load(cases[i].path);
    assert_int_equal(ait_status_code(status), cases[i].code);
    ait_status_free(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_registration),     cmocka_unit_test(test_signatures),    cmocka_unit_test(test_full_schema),
      cmocka_unit_test(test_strided_in_place), cmocka_unit_test(test_functional),    cmocka_unit_test(test_double),
      cmocka_unit_test(test_missing),          cmocka_unit_test(test_plugin_errors),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
