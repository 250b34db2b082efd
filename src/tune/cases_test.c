/* Cases: the user's samples, and the smallest and largest sizes made from them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/testing.h"
#include "tune/cases.h"

static ait_tune_options options_of(void) {
  ait_tune_options o;
  ait_tune_options_init(&o);
  return o;
}

static ait_value matrix(int64_t rows, int64_t columns) {
  int64_t shape[2] = {rows, columns};
  ait_tensor t;
  pt_ok(ait_tensor_create(ait_allocator_default(), AIT_F32, 2, shape, &t), "matrix");
  for (int64_t i = 0; i < rows * columns; ++i) ((float *)t.data)[i] = (float)i;
  return ait_value_tensor(t);
}

static const ait_tune_case *labelled(const ait_tune_cases *cases, const char *label) {
  for (size_t i = 0; i < cases->count; ++i)
    if (!strcmp(cases->items[i].label, label)) return &cases->items[i];
  return NULL;
}

#define MODEL(symbol)                  \
  "graph \"m\" raw\nsymbol s0 " symbol \
  " backed\ninput %x: float32[s0, 2] user 0 \"x\"\n%y: float32[s0, 2] = aten.tanh(%x)\noutput user 0 \"y\" = %y\n"

static void make(const char *text, int64_t rows, ait_tune_cases *out) {
  ait_graph *g = pt_parse(text);
  ait_tune_options options = options_of();
  ait_value x = matrix(rows, 2);
  ait_sample sample = {&x, 1};
  pt_ok(ait_tune_cases_create(g, &sample, 1, NULL, out), "cases");
  pt_ok(ait_tune_cases_answer(out, g, &options, 1), "answers");
  ait_value_release(&x); /* they have copies */
  ait_graph_destroy(g);
}

/* The fourth row: export cannot say that there must be four, and the smallest size has two. */
static void sizes_that_the_model_refuses_are_left_out(void **state) {
  AIT_UNUSED(state);
  ait_tune_cases cases;
  make("graph \"m\" raw\nsymbol s0 [2, 64] hint 4 backed\ninput %x: float32[s0, 2] user 0 \"x\"\n"
       "%y: float32[2] = aten.select.int(%x, 0, 3)\noutput user 0 \"y\" = %y\n",
       5, &cases);
  assert_int_equal(cases.count, 1);
  assert_true(cases.items[0].measured);
  ait_tune_cases_deinit(&cases);
}

static void extremes_repeat_or_cut_the_sample(void **state) {
  AIT_UNUSED(state);
  ait_tune_cases cases;
  make(MODEL("[2, 64] hint 4"), 5, &cases);
  assert_int_equal(cases.count, 3);
  assert_string_equal(cases.items[0].label, "sample 0");
  assert_string_equal(cases.items[0].shapes, "[5, 2]");
  assert_true(cases.items[0].measured && !cases.items[1].measured && !cases.items[2].measured);
  const ait_tune_case *small = labelled(&cases, "smallest"), *large = labelled(&cases, "largest");
  assert_true(small && large);
  assert_string_equal(small->shapes, "[2, 2]");
  assert_string_equal(large->shapes, "[20, 2]");
  for (int i = 0; i < 4; ++i) assert_true(((float *)small->inputs[0].as.tensor.data)[i] == (float)i);
  for (int i = 0; i < 40; ++i) assert_true(((float *)large->inputs[0].as.tensor.data)[i] == (float)(i % 10));
  for (size_t i = 0; i < cases.count; ++i) { /* answers in double */
    const ait_tensor *y = &cases.items[i].expected[0].as.tensor, *x = &cases.items[i].inputs[0].as.tensor;
    assert_int_equal(y->dtype, AIT_F64);
    assert_true(fabs(((double *)y->data)[3] - tanh(((float *)x->data)[3])) < 1e-15);
  }
  assert_true(cases.double_precision && cases.outputs[0].atol > 0 && cases.outputs[0].atol < 1e-5 && !cases.outputs[0].exact);
  ait_tune_cases_deinit(&cases);
  make(MODEL("[2, 6] hint 4"), 5, &cases); /* the model's limit goes before growth */
  assert_string_equal(labelled(&cases, "largest")->shapes, "[6, 2]");
  ait_tune_cases_deinit(&cases);
  make(MODEL("[5, 5] hint 5"), 5, &cases); /* there is one size only */
  assert_int_equal(cases.count, 1);
  ait_tune_cases_deinit(&cases);
  make(MODEL("[0, inf] hint 4"), 1, &cases); /* empty is no size to measure */
  assert_null(labelled(&cases, "smallest"));
  assert_string_equal(labelled(&cases, "largest")->shapes, "[4, 2]");
  ait_tune_cases_deinit(&cases);
}

static void check_growth(int64_t rows, const char *label, const char *shapes) {
  ait_graph *g = pt_parse("graph \"m\" raw\nsymbol s0 [1, inf] hint 4 backed\ninput %x: float32[s0, 2] user 0 \"x\"\n"
                          "%t: float32[2, s0] = aten.t(%x)\n%y: float32[s0, s0] = aten.mm(%x, %t)\noutput user 0 \"y\" = %y\n");
  ait_tune_cases cases;
  ait_value x = matrix(rows, 2);
  ait_sample sample = {&x, 1};
  pt_ok(ait_tune_cases_create(g, &sample, 1, NULL, &cases), "cases");
  assert_int_equal(cases.count, 3);
  assert_non_null(labelled(&cases, label));
  assert_string_equal(labelled(&cases, label)->shapes, shapes);
  ait_tune_cases_deinit(&cases);
  ait_value_release(&x);
  ait_graph_destroy(g);
}

/* Work that grows with the square of a size would keep the oracle busy for minutes: 4 n^2 operations here. */
static void the_largest_is_what_the_oracle_can_afford(void **state) {
  AIT_UNUSED(state);
  check_growth(1000, "largest", "[3999, 2]"); /* odd, since the sample is even */
  check_growth(1001, "largest", "[4004, 2]");
  check_growth(30000, "largest", "[59999, 2]");
  check_growth(40000, "larger", "[40001, 2]");
}

/* An int input that is a size changes with it. */
static void sizes_as_numbers_change(void **state) {
  AIT_UNUSED(state);
  ait_graph *g =
      pt_parse("graph \"m\" raw\nsymbol s0 [2, 64] hint 4 backed\ninput %x: float32[s0, 2] user 0 \"x\"\ninput %n: int(s0) user 1 \"n\"\n"
               "%y: float32[s0*2] = aten.view(%x, [{s0*2}])\noutput user 0 \"y\" = %y\n");
  ait_tune_options options = options_of();
  ait_tune_cases cases;
  ait_value values[2] = {matrix(4, 2), {.kind = AIT_VALUE_INT, .as.i = 4}};
  ait_sample sample = {values, 2};
  pt_ok(ait_tune_cases_create(g, &sample, 1, NULL, &cases), "cases");
  pt_ok(ait_tune_cases_answer(&cases, g, &options, 1), "answers");
  assert_int_equal(cases.count, 3);
  assert_int_equal(labelled(&cases, "smallest")->inputs[1].as.i, 2);
  assert_int_equal(labelled(&cases, "largest")->inputs[1].as.i, 15);
  ait_tune_cases_deinit(&cases);
  pt_release(values, 2);
  ait_graph_destroy(g);
}

static void guards_forbid_sizes(void **state) {
  AIT_UNUSED(state);
  ait_tune_cases cases;
  make("graph \"m\" raw\nsymbol s0 [1, 64] hint 4 backed\nguard s0 % 4 == 0 text \"g\"\ninput %x: float32[s0, 2] user 0 \"x\"\n%y: "
       "float32[s0, 2] = aten.tanh(%x)\n"
       "output user 0 \"y\" = %y\n",
       4, &cases);
  assert_int_equal(cases.count, 2);
  assert_null(labelled(&cases, "smallest")); /* 1 is not a multiple of 4 */
  assert_string_equal(labelled(&cases, "largest")->shapes, "[16, 2]");
  ait_tune_cases_deinit(&cases);
}

static void bad_samples_are_named(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(MODEL("[2, 8] hint 4"));
  ait_tune_cases cases;
  ait_value values[2] = {matrix(4, 2), matrix(9, 2)};
  ait_sample samples[2] = {{&values[0], 1}, {&values[1], 1}};
  ait_status status = ait_tune_cases_create(g, samples, 2, NULL, &cases);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  assert_non_null(strstr(ait_status_message(status), "sample 1"));
  ait_status_free(status);
  status = ait_tune_cases_create(g, samples, 0, NULL, &cases);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  assert_non_null(ait_status_hint(status));
  ait_status_free(status);
  pt_release(values, 2);
  ait_graph_destroy(g);
}

/* What a trial's result depends on changes the hash: contents, shapes, and numbers that are no tensors. */
static void the_hash_sees_every_input(void **state) {
  AIT_UNUSED(state);
  static const char text[] =
      "graph \"m\" raw\nsymbol s0 [2, 64] hint 4 backed\ninput %x: float32[s0, 2] user 0 \"x\"\ninput %f: float user 1 \"f\"\n"
      "%y: float32[s0, 2] = aten.mul.Tensor(%x, %f)\noutput user 0 \"y\" = %y\n";
  uint64_t hashes[4];
  for (int i = 0; i < 4; ++i) {
    ait_graph *g = pt_parse(text);
    ait_tune_options options = options_of();
    ait_tune_cases cases;
    ait_value values[2] = {matrix(i == 1 ? 5 : 4, 2), {.kind = AIT_VALUE_FLOAT, .as.f = i == 2 ? 3.5 : 2}};
    if (i == 3) ((float *)values[0].as.tensor.data)[7] = 0.25f;
    ait_sample sample = {values, 2};
    pt_ok(ait_tune_cases_create(g, &sample, 1, NULL, &cases), "cases");
    pt_ok(ait_tune_cases_answer(&cases, g, &options, 1), "answers");
    hashes[i] = ait_tune_cases_hash(&cases);
    for (int k = 0; k < i; ++k) assert_true(hashes[k] != hashes[i]);
    ait_tune_cases_deinit(&cases);
    pt_release(values, 2);
    ait_graph_destroy(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sizes_that_the_model_refuses_are_left_out),
      cmocka_unit_test(extremes_repeat_or_cut_the_sample),
      cmocka_unit_test(the_largest_is_what_the_oracle_can_afford),
      cmocka_unit_test(guards_forbid_sizes),
      cmocka_unit_test(sizes_as_numbers_change),
      cmocka_unit_test(bad_samples_are_named),
      cmocka_unit_test(the_hash_sees_every_input),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
