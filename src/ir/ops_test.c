#include "ir/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Every row of ops.inc parses: a row that did not would be variadic without its schema saying so. */
static void every_row_parses(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < ait_op_count(); ++i) {
    const ait_op *op = ait_op_at(i);
    if (op->variadic != (strcmp(op->schema, "(...)") == 0)) fail_msg("%s: %s does not parse", op->name, op->schema);
    assert_int_equal(op->id, i);
    assert_ptr_equal(ait_op_find(op->name), op);
    for (uint32_t k = 0; k < op->param_count; ++k) assert_int_equal(ait_op_param(op, op->params[k].name), k);
  }
}

static const struct {
  const char *name;
  uint32_t params, results;
} samples[] = {
    {"neg", 1, 1},
    {"conv", 9, 1},
    {"lstm", 8, 3},
    {"aten.add.Tensor", 3, 1},
    {"aten._assert_scalar", 2, 0},
    {"aten.max.dim", 3, 2},
    {"aten.as_strided", 4, 1},
    {"aten._unique2", 4, 3},
    {"aten.chunk", 3, 1},
    {"aten._assert_tensor_metadata", 6, 0},
};

static void counts_are_right(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(samples); ++i) {
    const ait_op *op = ait_op_find(samples[i].name);
    assert_non_null(op);
    assert_int_equal(op->param_count, samples[i].params);
    assert_int_equal(op->result_count, samples[i].results);
  }
}

static ait_op parse(const char *schema, const char **error) {
  static ait_param params[32];
  static ait_arg args[32];
  static char text[512];
  ait_schema_pool pool = {.params = params, .args = args, .text = text, .param_capacity = 32, .arg_capacity = 32, .text_capacity = 512};
  ait_op op = {0};
  *error = ait_schema_parse(schema, &pool, &op);
  return op;
}

static void types_and_defaults(void **state) {
  AIT_UNUSED(state);
  const char *error;
  ait_op op =
      parse("(Tensor(a!) self, Tensor?[] indices, SymInt[2]? size=None, *, int[2] pad=1, int[] dims=[-2, -1], float p=2., "
            "Scalar alpha=1, str mode=\"mean\", ScalarType? dtype=4, MemoryFormat f=contiguous_format, bool b=True) -> (Tensor(a!) x, "
            "Tensor[], int, Scalar, Tensor)",
            &error);
  assert_null(error);
  assert_int_equal(op.param_count, 11);
  assert_int_equal(op.result_count, 5);
  const ait_param *p = op.params;
  assert_true(p[0].written && p[0].aliased && !p[0].is_list && !p[0].keyword_only && !p[0].has_default);
  assert_true(p[1].is_list && p[1].element_optional && !p[1].is_optional);
  assert_true(p[2].is_list && p[2].is_optional && p[2].list_length == 2 && p[2].type == AIT_PARAM_INT);
  assert_true(p[2].has_default && p[2].default_value.kind == AIT_ARG_NONE);
  assert_true(p[3].keyword_only && p[3].default_value.count == 2 && p[3].default_value.as.list[1].as.i == 1);
  assert_int_equal(p[4].default_value.as.list[0].as.i, -2);
  assert_true(p[5].default_value.kind == AIT_ARG_FLOAT && p[5].default_value.as.f == 2.0);
  assert_true(p[6].default_value.kind == AIT_ARG_INT && p[6].default_value.as.i == 1);
  assert_string_equal(p[7].default_value.as.string, "mean");
  assert_true(p[8].default_value.kind == AIT_ARG_DTYPE && p[8].default_value.as.i == AIT_I64);
  assert_int_equal(p[9].default_value.as.i, 0);
  assert_true(p[10].default_value.as.b);
  assert_int_equal(op.result_types[1], AIT_TYPE_TENSOR_LIST);
  assert_int_equal(op.result_types[2], AIT_TYPE_INT);
  assert_int_equal(op.result_types[3], AIT_TYPE_NONE);
}

static void faults_are_found(void **state) {
  AIT_UNUSED(state);
  static const char *const bad[] = {
      "",
      "(",
      "(Tensor",
      "(Tensor self",
      "(Tensor self) ->",
      "(Tensor self) -> Foo",
      "(Foo self) -> Tensor",
      "(Tensor self) -> Tensor x y",
      "(Tensor) -> Tensor",
      "(int x=) -> Tensor",
      "(int x=[1) -> Tensor",
      "(str s=\"a) -> Tensor",
      "(ScalarType d=99) -> Tensor",
      "(int[99] x) -> Tensor",
      "(Tensor(a x) -> Tensor",
      "(Tensor self Tensor b) -> Tensor",
      "(Tensor s) -> Device",
  };
  for (size_t i = 0; i < AIT_COUNT(bad); ++i) {
    const char *error;
    parse(bad[i], &error);
    if (!error) fail_msg("'%s' was taken", bad[i]);
  }
}

static void in_place_names(void **state) {
  AIT_UNUSED(state);
  bool inplace;
  assert_string_equal(ait_op_find_inplace("aten.add_.Tensor", &inplace)->name, "aten.add.Tensor");
  assert_true(inplace);
  assert_string_equal(ait_op_find_inplace("aten.relu_", &inplace)->name, "aten.relu");
  assert_true(inplace);
  assert_string_equal(ait_op_find_inplace("aten.normal_", &inplace)->name, "aten.normal_");
  assert_false(inplace);
  assert_string_equal(ait_op_find_inplace("aten.__iand__.Tensor", &inplace)->name, "aten.__and__.Tensor");
  assert_true(inplace);
  assert_string_equal(ait_op_find_inplace("aten.relu", &inplace)->name, "aten.relu");
  assert_false(inplace);
  assert_null(ait_op_find_inplace("aten.frobnicate_", &inplace));
  assert_false(inplace);
  assert_null(ait_op_find("aten.add_.Tensor"));
}

static void markdown_lists_all(void **state) {
  AIT_UNUSED(state);
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  ait_ops_markdown(&text);
  assert_false(text.failed);
  size_t rows = 0;
  for (const char *p = text.data; (p = strstr(p, "\n| `")) != NULL; ++p) ++rows;
  assert_int_equal(rows, ait_op_count());
  ait_text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_row_parses), cmocka_unit_test(counts_are_right), cmocka_unit_test(types_and_defaults),
      cmocka_unit_test(faults_are_found), cmocka_unit_test(in_place_names),   cmocka_unit_test(markdown_lists_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
