/* Regions through the backend's table: aliasing, in-place nodes, state, branches, loops, sizes, assertions. */
#include "backends/reference/reference.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h> /* needs the headers above */

#define VALUE(v) \
  { .kind = AIT_ARG_VALUE, .as.value = (v) }
#define INT(v) \
  { .kind = AIT_ARG_INT, .as.i = (v) }
#define LIST(items) \
  { .kind = AIT_ARG_LIST, .count = AIT_COUNT(items), .as.list = (items) }
#define NODE(op_, flags_, args_, result_)                                                                                         \
  {                                                                                                                               \
    .op = op_, .flags = flags_, .arg_count = AIT_COUNT(args_), .args = args_, .result_count = 1, .results = result_, .name = "n", \
    .module = "m"                                                                                                                 \
  }
#define OUTPUT(v) \
  { .arg = VALUE(v), .kind = AIT_OUTPUT_USER, .name = "y", .user_index = 0 }
#define F32_VALUE \
  { .name = "x", .type = AIT_TYPE_TENSOR, .dtype = AIT_F32, .rank = -1 }
#define REGION(values_, nodes_, inputs_, outputs_)                                                                             \
  {                                                                                                                            \
    .struct_size = sizeof(ait_region), .version = AIT_REGION_VERSION, .name = "test", .value_count = AIT_COUNT(values_),       \
    .values = values_, .node_count = AIT_COUNT(nodes_), .nodes = nodes_, .input_count = AIT_COUNT(inputs_), .inputs = inputs_, \
    .output_count = AIT_COUNT(outputs_), .outputs = outputs_                                                                   \
  }

static ait_status no_weight(void *ctx, const char *name, ait_tensor *out) {
  AIT_UNUSED(ctx);
  AIT_UNUSED(out);
  return ait_error(AIT_CODE_NOT_FOUND, "no weight '%s'", name);
}

static ait_status run_region(const ait_region *region, bool fp64, const ait_value *inputs, ait_value *outputs) {
  const ait_backend *b = &ait_backend_reference;
  ait_allocator a = ait_allocator_default();
  ait_weights weights = {NULL, no_weight};
  ait_compile_options options = {.struct_size = sizeof options, .allocator = a, .weights = weights};
  ait_option precision = {"precision", fp64 ? "fp64" : "fp32"};
  ait_blob blob = {0};
  void *loaded = NULL, *instance = NULL;
  AIT_TRY(b->compile(region, &options, &blob));
  ait_load_context load = {.struct_size = sizeof load,
                           .allocator = a,
                           .weights = weights,
                           .blob = blob.data,
                           .blob_size = blob.size,
                           .option_count = 1,
                           .options = &precision};
  ait_status status = b->load(&load, &loaded);
  if (status == AIT_OK) status = b->instance_create(loaded, a, &instance);
  ait_run_context run = {.struct_size = sizeof run, .allocator = a, .inputs = inputs, .outputs = outputs};
  if (status == AIT_OK) status = b->run(instance, &run);
  b->instance_destroy(instance);
  b->unload(loaded);
  ait_free(a, blob.data, blob.size);
  return status;
}

static ait_value tensor_of(float *data, int32_t rank, const int64_t *shape) {
  return (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = ait_tensor_borrow(data, AIT_F32, rank, shape)};
}

/* y = x.reshape(4); y[1:3].add_(10); return x.sum() -> the write is seen through the view, and in the caller's tensor. */
static void test_writes_through_views(void **state) {
  AIT_UNUSED(state);
  static const ait_arg four[] = {INT(4)};
  static const ait_arg reshape[] = {VALUE(0), LIST(four)}, slice[] = {VALUE(1), INT(0), INT(1), INT(3), INT(1)};
  static const ait_arg add[] = {VALUE(2), INT(10), INT(1)}, sum[] = {VALUE(0), {.kind = AIT_ARG_NONE}};
  static const uint32_t r1[] = {1}, r2[] = {2}, r3[] = {3}, r4[] = {4};
  static const ait_region_node nodes[] = {NODE("aten.reshape", 0, reshape, r1), NODE("aten.slice.Tensor", 0, slice, r2),
                                          NODE("aten.add.Scalar", AIT_NODE_INPLACE, add, r3), NODE("aten.sum", 0, sum, r4)};
  static const ait_region_value values[] = {F32_VALUE, F32_VALUE, F32_VALUE, F32_VALUE, F32_VALUE};
  static const ait_region_input inputs[] = {{.value = 0, .kind = AIT_INPUT_USER, .name = "x", .mutated = true}};
  static const ait_region_output outputs[] = {OUTPUT(4)};
  const ait_region region = REGION(values, nodes, inputs, outputs);
  for (int fp64 = 0; fp64 < 2; ++fp64) {
    float x[4] = {1, 2, 3, 4};
    ait_value in = tensor_of(x, 2, (int64_t[]){2, 2}), out = {0};
    assert_null(run_region(&region, fp64, &in, &out));
    assert_int_equal(out.as.tensor.dtype, fp64 ? AIT_F64 : AIT_F32);
    assert_float_equal(ait_element_f64(out.as.tensor.data, out.as.tensor.dtype), 30, 0);
    assert_float_equal(x[0], 1, 0);
    assert_float_equal(x[1], 12, 0);
    assert_float_equal(x[2], 13, 0);
    ait_value_release(&out);
  }
}

/* x.squeeze_(0) changes what x is. */
static void test_in_place_view(void **state) {
  AIT_UNUSED(state);
  static const ait_arg clone[] = {VALUE(0), {.kind = AIT_ARG_NONE}}, squeeze[] = {VALUE(1), INT(0)};
  static const uint32_t r1[] = {1}, r2[] = {2};
  static const ait_region_node nodes[] = {NODE("aten.clone", 0, clone, r1), NODE("aten.squeeze.dim", AIT_NODE_INPLACE, squeeze, r2)};
  static const ait_region_value values[] = {F32_VALUE, F32_VALUE, F32_VALUE};
  static const ait_region_input inputs[] = {{.value = 0, .kind = AIT_INPUT_USER, .name = "x"}};
  static const ait_region_output outputs[] = {OUTPUT(1)};
  const ait_region region = REGION(values, nodes, inputs, outputs);
  float x[2] = {1, 2};
  ait_value in = tensor_of(x, 2, (int64_t[]){1, 2}), out = {0};
  assert_null(run_region(&region, false, &in, &out));
  assert_int_equal(out.as.tensor.rank, 1);
  ait_value_release(&out);
}

/* cond(x.shape[0] > 2, x + 1, x - 1), the size by an expression over a symbol and by sym_size. */
static void test_branch_on_size(void **state) {
  AIT_UNUSED(state);
  static const ait_dim shape[] = {0};
  static const ait_dim_expr dims[] = {{.op = AIT_DIM_SYMBOL, .a = 0}};
  static const ait_symbol symbols[] = {{.name = "s0", .max = INT64_MAX, .hint = -1, .backed = true}};
  static const ait_region_value tensor[] = {{.name = "x", .type = AIT_TYPE_TENSOR, .dtype = AIT_F32, .rank = 1, .shape = shape},
                                            {.name = "x", .type = AIT_TYPE_TENSOR, .dtype = AIT_F32, .rank = 1, .shape = shape}};
  static const ait_region_input inputs[] = {{.value = 0, .kind = AIT_INPUT_USER, .name = "x"}};
  static const ait_arg add[] = {VALUE(0), {.kind = AIT_ARG_DIM, .as.dim = 0}, INT(1)}, sub[] = {VALUE(0), INT(1), INT(1)};
  static const uint32_t r1[] = {1}, r2[] = {2}, r3[] = {3};
  static const ait_region_node add_node[] = {NODE("aten.add.Scalar", 0, add, r1)}, sub_node[] = {NODE("aten.sub.Scalar", 0, sub, r1)};
  static const ait_region_output branch_output[] = {OUTPUT(1)}, outputs[] = {OUTPUT(3)};
  ait_region when_true = REGION(tensor, add_node, inputs, branch_output), when_false = REGION(tensor, sub_node, inputs, branch_output);
  const ait_arg size[] = {VALUE(0), INT(0)}, compare[] = {VALUE(1), INT(2)}, operands[] = {VALUE(0)};
  const ait_arg cond[] = {
      VALUE(2), {.kind = AIT_ARG_GRAPH, .as.graph = &when_true}, {.kind = AIT_ARG_GRAPH, .as.graph = &when_false}, LIST(operands)};
  const ait_region_node nodes[] = {NODE("aten.sym_size.int", 0, size, r1), NODE("_operator.gt", 0, compare, r2),
                                   NODE("higher_order.cond", 0, cond, r3)};
  const ait_region_value values[] = {tensor[0], {.name = "n", .type = AIT_TYPE_INT}, {.name = "b", .type = AIT_TYPE_BOOL}, F32_VALUE};
  ait_region region = REGION(values, nodes, inputs, outputs);
  region.symbols = when_true.symbols = when_false.symbols = symbols;
  region.symbol_count = when_true.symbol_count = when_false.symbol_count = 1;
  region.dims = when_true.dims = when_false.dims = dims;
  region.dim_count = when_true.dim_count = when_false.dim_count = 1;
  float x[3] = {1, 2, 3};
  for (int64_t n = 2; n <= 3; ++n) {
    ait_value in = tensor_of(x, 1, &n), out = {0};
    assert_null(run_region(&region, false, &in, &out));
    assert_float_equal(((float *)out.as.tensor.data)[1], n > 2 ? 5 : 1, 0); /* 2 + s0, 2 - 1 */
    ait_value_release(&out);
  }
}

static void test_assertion_names_node_and_module(void **state) {
  AIT_UNUSED(state);
  static const char message[] = "u0 >= 1";
  static const ait_arg check[] = {{.kind = AIT_ARG_BOOL, .as.b = false},
                                  {.kind = AIT_ARG_STRING, .count = sizeof message - 1, .as.string = message}};
  static const ait_region_node nodes[] = {
      {.op = "aten._assert_scalar", .arg_count = 2, .args = check, .name = "check_1", .module = "encoder.layer"}};
  static const ait_region_value values[] = {F32_VALUE};
  static const ait_region_input inputs[] = {{.value = 0, .kind = AIT_INPUT_USER, .name = "x"}};
  static const ait_region_output outputs[] = {OUTPUT(0)};
  const ait_region region = REGION(values, nodes, inputs, outputs);
  float x[1] = {1};
  ait_value in = tensor_of(x, 1, (int64_t[]){1}), out = {0};
  ait_status status = run_region(&region, false, &in, &out);
  assert_non_null(status);
  assert_non_null(strstr(ait_status_message(status), "encoder.layer"));
  assert_non_null(strstr(ait_status_message(status), "check_1"));
  assert_non_null(strstr(ait_status_message(status), "runtime assertion failed: u0 >= 1"));
  ait_status_free(status);
}

static void test_index_errors(void **state) {
  AIT_UNUSED(state);
  static const ait_arg select[] = {VALUE(0), INT(0), INT(-4)};
  static const uint32_t r1[] = {1};
  static const ait_region_node nodes[] = {NODE("aten.select.int", 0, select, r1)};
  static const ait_region_value values[] = {F32_VALUE, F32_VALUE};
  static const ait_region_input inputs[] = {{.value = 0, .kind = AIT_INPUT_USER, .name = "x"}};
  static const ait_region_output outputs[] = {OUTPUT(1)};
  const ait_region region = REGION(values, nodes, inputs, outputs);
  float x[3] = {1, 2, 3};
  ait_value in = tensor_of(x, 1, (int64_t[]){3}), out = {0};
  ait_status status = run_region(&region, false, &in, &out);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  assert_non_null(strstr(ait_status_message(status), "index -4 is out of range for size 3"));
  ait_status_free(status);
}

static void test_missing_operator_is_noted(void **state) {
  AIT_UNUSED(state);
  static const ait_arg args[] = {VALUE(0)};
  static const uint32_t r1[] = {1};
  static const ait_region_node nodes[] = {NODE("aten.relu", 0, args, r1), NODE("mylib.foo", 0, args, r1)};
  static const ait_region_value values[] = {F32_VALUE, F32_VALUE};
  static const ait_region_input inputs[] = {{.value = 0, .kind = AIT_INPUT_USER, .name = "x"}};
  static const ait_region_output outputs[] = {OUTPUT(1)};
  const ait_region region = REGION(values, nodes, inputs, outputs);
  ait_support_note notes[4];
  ait_support support = {.note_capacity = 4, .notes = notes};
  assert_null(ait_backend_reference.supports(&region, &support));
  assert_false(support.supported);
  assert_int_equal(support.note_count, 1);
  assert_int_equal(notes[0].node, 1);
  assert_non_null(strstr(notes[0].reason, "mylib.foo"));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_writes_through_views), cmocka_unit_test(test_in_place_view),
                                     cmocka_unit_test(test_branch_on_size),       cmocka_unit_test(test_assertion_names_node_and_module),
                                     cmocka_unit_test(test_index_errors),         cmocka_unit_test(test_missing_operator_is_noted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
