/* Adding an operator, on the example of squareplus: (x + sqrt(x^2 + b)) / 2. The two .inc files and the function in "reference" are what
 * the tree would get; the rest checks them, with the machinery that ait_ops, ait_infer and the reference backend use. */
#include "backends/reference/pointwise.h"
#include "ir/infer_internal.h"
#include "ir/schema.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

ait_status ait_ref_squareplus(ait_ref_call *call);

/* begin reference */
/* For each element: a is the element of operand 0 as a double, p holds the numbers. */
AIT_REF_LOOP_F(squareplus, (a + sqrt(a * a + p->f[0])) / 2)

ait_status ait_ref_squareplus(ait_ref_call *call) {
  static const ait_ref_kernels kernels = {.f = squareplus, .out_f = AIT_REF_F};
  ait_ref_params params = {0};
  AIT_TRY(ait_ref_float_or(call, 1, 4.0, &params.f[0]));
  return ait_ref_map_args(call, 1, false, &kernels, params);
}
/* end reference */

/* ---- checks ----------------------------------------------------------------------------------------------------------------------*/
static ait_op op = {
#define AIT_OP(name_, schema_, dialects_, traits_, reference_) \
  .name = (name_), .schema = (schema_), .dialects = (dialects_), .traits = (traits_)
#include "ops.inc"
#undef AIT_OP
};
static const ait_ref_fn function =
#define AIT_OP(name_, schema_, dialects_, traits_, reference_) ait_ref_##reference_;
#include "ops.inc"
#undef AIT_OP
    static const infer_rule rule =
#define AIT_RULE(op_, rule_) infer_rule_##rule_;
#include "rules.inc"
#undef AIT_RULE

        static ait_param params[8];
static ait_arg defaults[8];
static char texts[128];

static void schema_parses(void **state) {
  AIT_UNUSED(state);
  ait_schema_pool pool = {
      .params = params, .args = defaults, .text = texts, .param_capacity = 8, .arg_capacity = 8, .text_capacity = sizeof texts};
  assert_null(ait_schema_parse(op.schema, &pool, &op));
  assert_int_equal(op.param_count, 2);
  assert_int_equal(op.result_count, 1);
  assert_true(op.params[1].default_value.as.f == 4.0);
}

static void rule_keeps_the_shape(void **state) {
  static const char text[] = "graph \"m\" core producer \"test\"\nsymbol s0 [1, 64] hint 4 backed\n"
                             "input %x: float32[s0, 3] user 0 \"x\"\noutput user 0 = %x\n";
  AIT_UNUSED(state);
  ait_graph *g;
  ait_value_info out = {0};
  assert_null(ait_graph_parse(ait_allocator_default(), text, strlen(text), &g));
  ait_arg args[] = {ait_arg_value(g->inputs[0].value), ait_arg_float(4.0)};
  infer_call call = {.g = g, .op = &op, .args = args, .out = &out, .result_count = 1};
  assert_null(rule(&call));
  const ait_value_info *x = &g->values[g->inputs[0].value];
  assert_int_equal(out.dtype, AIT_F32);
  assert_int_equal(out.rank, 2);
  assert_int_equal(out.shape[0], x->shape[0]); /* equal sizes have equal ids */
  ait_graph_destroy(g);
}

/* On a tensor that is not contiguous, in the model's precision and in double. */
static void reference_computes(bool fp64) {
  float data[2][3] = {{-2, 0, 2}, {-1e4f, 1e4f, NAN}};
  ait_tensor x = {.data = data, .dtype = AIT_F32, .rank = 2, .shape = {3, 2}, .strides = {1, 3}};
  ait_region_value values[] = {{.name = "x", .type = AIT_TYPE_TENSOR, .dtype = AIT_F32, .rank = -1},
                               {.name = "y", .type = AIT_TYPE_TENSOR, .dtype = AIT_F32, .rank = -1}};
  ait_arg args[] = {{.kind = AIT_ARG_VALUE, .as.value = 0}, ait_arg_float(4.0)};
  uint32_t results[] = {1};
  ait_region_node node = {.op = op.name, .arg_count = 2, .args = args, .result_count = 1, .results = results, .name = "y", .module = ""};
  ait_region region = {
      .struct_size = sizeof region, .version = AIT_REGION_VERSION, .value_count = 2, .values = values, .node_count = 1, .nodes = &node};
  ait_ref_value table[2] = {{.type = AIT_TYPE_TENSOR, .as.tensor = x}}, got = {0};
  struct ait_ref_run run = {.region = &region, .values = table, .allocator = ait_allocator_default(), .fp64 = fp64};
  ait_ref_call call = {.run = &run, .region = &region, .node = &node, .results = &got, .allocator = run.allocator, .fp64 = fp64};
  assert_null(function(&call));
  assert_int_equal(got.as.tensor.dtype, fp64 ? AIT_F64 : AIT_F32);
  for (int64_t i = 0; i < 6; ++i) { /* the result keeps the operand's memory order, as torch's does */
    int64_t index[] = {i / 2, i % 2};
    double a = (double)data[i % 2][i / 2], want = (a + sqrt(a * a + 4)) / 2;
    const char *at = ait_ref_at(&got.as.tensor, index);
    double value = fp64 ? *(const double *)at : (double)*(const float *)at;
    if (isnan(want)) assert_true(isnan(value));
    else assert_true(value == (fp64 ? want : (double)(float)want));
  }
  ait_ref_value_release(call.allocator, &got);
}

static void reference(void **state) {
  AIT_UNUSED(state);
  reference_computes(false);
  reference_computes(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(schema_parses), cmocka_unit_test(rule_keeps_the_shape), cmocka_unit_test(reference)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
