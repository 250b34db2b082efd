/* Arithmetic on sizes, in the three ways that programs write it. */
#include "import/pt2/expr.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static ait_graph *graph;

static int setup(void **state) {
  (void)state;
  return ait_graph_create(ait_allocator_default(), AIT_DIALECT_RAW, &graph) != NULL;
}

static int teardown(void **state) {
  (void)state;
  ait_graph_destroy(graph);
  return 0;
}

/* The expression with s0 = 7, s1 = 3. false: not known. */
static bool value_of(const char *text, int64_t *out) {
  ait_dim dim;
  int64_t values[16];
  assert_null(ait_expr_parse(graph, text, NULL, &dim));
  for (size_t i = 0; i < AIT_COUNT(values); ++i) values[i] = INT64_MIN;
  for (size_t i = 0; i < graph->symbol_count; ++i) {
    if (strcmp(graph->symbols[i].name, "s0") == 0) values[i] = 7;
    if (strcmp(graph->symbols[i].name, "s1") == 0) values[i] = 3;
  }
  return ait_dim_eval(graph->dims, values, dim, out);
}

static void test_values(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t value;
  } cases[] = {
      {"Symbol('s0', positive=True, integer=True)", 7},
      {"Symbol(\"s0\", integer=True)", 7},
      {"Integer(-5)", -5},
      {"Add(Mul(Integer(2), Symbol('s0', integer=True)), Integer(1))", 15},
      {"Add(Symbol('s0'), Mul(Integer(-1), Symbol('s1')), Integer(4))", 8},
      {"FloorDiv(Symbol('s0'), Integer(2))", 3},
      {"FloorDiv(Mul(Integer(-1), Symbol('s0')), Integer(2))", -4},
      {"CleanDiv(Integer(6), Symbol('s1'))", 2},
      {"CeilDiv(Symbol('s0'), Integer(2))", 4},
      {"Mod(Symbol('s0'), Integer(4))", 3},
      {"PythonMod(Mul(Integer(-1), Symbol('s0')), Integer(4))", 1},
      {"Pow(Symbol('s0'), Integer(2))", 49},
      {"PowByNatural(Integer(2), Integer(10))", 1024},
      {"Max(Integer(1), Symbol('s0'), Symbol('s1'))", 7},
      {"Min(Symbol('s0'), Symbol('s1'))", 3},
      {"ModularIndexing(Symbol('s0'), Integer(2), Integer(2))", 1},
      {"LShift(Symbol('s0'), Integer(2))", 28},
      {"RShift(Symbol('s0'), Integer(1))", 3},
      {"Identity(Symbol('s0'))", 7},
      {"2*s0 + 1", 15},
      {"s0 - s1*2", 1},
      {"(s0 + 1)//2 * 2", 8},
      {"s0 % 4", 3},
      {"s0**2", 49},
      {"-s0 + 10", 3},
      {"Max(1, s1)", 3},
      {"TruncToInt(Mul(Float('0.5', precision=53), ToFloat(Symbol('s0', integer=True))))", 3},
      {"Max(Integer(1), TruncToInt(Mul(Float('1.75', precision=53), ToFloat(Symbol('s0', integer=True)))))", 12},
      {"FloorToInt(Mul(ToFloat(Symbol('s0')), Float('0.25', precision=53)))", 1},
      {"CeilToInt(IntTrueDiv(Symbol('s0'), Integer(3)))", 3},
      {"TruncToInt(IntTrueDiv(Symbol('s0'), Integer(3)))", 2},
      {"((-1) + s0) // 2", 3},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    int64_t got;
    if (!value_of(cases[i].text, &got)) fail_msg("not known: %s", cases[i].text);
    if (got != cases[i].value) fail_msg("%s is %lld", cases[i].text, (long long)got);
  }
}

/* Not integer arithmetic, or no expression: a size that is known when the graph runs. Never an error, never a wrong number. */
static void test_unknown(void **state) {
  (void)state;
  static const char *const texts[] = {
      "Float('0.5', precision=53)",
      "Mul(Float('0.5', precision=53), ToFloat(Symbol('s0', integer=True)))",
      "TruncToInt(Mul(Float('1.3', precision=53), ToFloat(Symbol('s0', integer=True))))",
      "TruncToInt(Mul(Float('-0.5', precision=53), ToFloat(Symbol('s0', integer=True))))",
      "TruncToInt(Mul(Float('1e300', precision=53), ToFloat(Symbol('s0', integer=True))))",
      "TruncToInt(Mul(Float('nan', precision=53), ToFloat(Symbol('s0', integer=True))))",
      "TruncToInt(ToFloat(Add(Symbol('s0'), Integer(-9))))",
      "TruncToInt(Mul(IntTrueDiv(Symbol('s0'), Integer(3)), Float('0.5', precision=53)))",
      "TruncToInt(IntTrueDiv(Symbol('s0'), Integer(0)))",
      "RoundToInt(Mul(Float('0.5', precision=53), ToFloat(Symbol('s0', integer=True))))",
      "IntTrueDiv(Symbol('s0'), Integer(2))",
      "Piecewise(ExprCondPair(Symbol('s0'), StrictGreaterThan(Symbol('s0'), Symbol('s1'))), ExprCondPair(Symbol('s1'), true))",
      "Pow(Symbol('s0'), Integer(-1))",
      "Rational(Integer(1), Integer(2))",
      "Symbol('zf0')",
      "s0/2",
      "0.5*s0",
      "FloorDiv(Symbol('s0'), Integer(0))",
      "Unheard(Symbol('s0'))",
      "oo",
      "",
      "Add(",
      "Add(Integer(1)",
      "Symbol('s0",
      "((((",
      "s0 +",
      ")",
      "99999999999999999999",
      "s0 s1",
  };
  for (size_t i = 0; i < AIT_COUNT(texts); ++i) {
    int64_t got;
    if (value_of(texts[i], &got)) fail_msg("%s counts as %lld", texts[i], (long long)got);
  }
}

static void test_depth(void **state) {
  (void)state;
  ait_text text;
  int64_t got;
  ait_text_init(&text, ait_allocator_default());
  for (int i = 0; i < 100000; ++i) ait_text_append(&text, i % 2 ? "-" : "(", 1);
  assert_false(value_of(text.data, &got));
  ait_text_deinit(&text);
}

/* L['x'] has the shape [s0, s1]; L['n'] is an int. */
static bool find(void *ctx, const char *path, size_t length, int64_t axis, ait_dim *out) {
  ait_dim *dims = ctx;
  if (length == 6 && strncmp(path, "L['x']", 6) == 0 && axis >= 0 && axis < 2) *out = dims[axis];
  else if (length == 11 && strncmp(path, "L['d']['k']", 11) == 0 && axis == 0) *out = dims[0];
  else return false;
  return true;
}

static size_t guards_of(const char *text) {
  ait_dim dims[2];
  ait_expr_names names = {find, dims};
  assert_null(ait_dim_symbol(graph, "s0", &dims[0]));
  assert_null(ait_dim_symbol(graph, "s1", &dims[1]));
  ait_graph_symbol(graph, "s0")->backed = ait_graph_symbol(graph, "s1")->backed = true;
  graph->guard_count = 0;
  assert_null(ait_expr_add_guards(graph, text, &names));
  return graph->guard_count;
}

static void test_guards(void **state) {
  (void)state;
  assert_int_equal(guards_of("L['x'].size()[0] == 4"), 1);
  assert_int_equal(graph->guards[0].op, AIT_GUARD_EQ);
  assert_string_equal(graph->guards[0].text, "L['x'].size()[0] == 4");
  assert_int_equal(guards_of("(2*L['x'].size()[0]) >= L['x'].size()[1]"), 1);
  assert_int_equal(graph->guards[0].op, AIT_GUARD_LE);
  assert_int_equal(guards_of("2 < L['d']['k'].size()[0] <= 8"), 2);
  assert_int_equal(guards_of("L['x'].size()[0] != 1 and L['x'].size()[1] != 2"), 2);
  assert_int_equal(guards_of("(1 + (((-1) + L['x'].size()[0]) // 2)) != 1"), 1);
  assert_int_equal(guards_of("L['x'].size()[0] == L['x'].size()[0]"), 0); /* nothing to check */
}

static void test_guards_left_out(void **state) {
  (void)state;
  static const char *const texts[] = {"L['x'].size()[0] == 1 or L['x'].size()[1] == 1",
                                      "math.trunc(0.5*torch.sym_float(L['x'].size()[0])) != 1",
                                      "L['y'].size()[0] == 3",
                                      "L['x'].size()[7] == 3",
                                      "not L['x'].size()[0] == 3",
                                      "L['x'].size()[0]",
                                      "L['x'].size()[0] == ",
                                      "L[",
                                      "L['x'",
                                      "import os"};
  for (size_t i = 0; i < AIT_COUNT(texts); ++i) {
    if (guards_of(texts[i]) != 0) fail_msg("a guard from %s", texts[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_values, setup, teardown),
      cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
      cmocka_unit_test_setup_teardown(test_depth, setup, teardown),
      cmocka_unit_test_setup_teardown(test_guards, setup, teardown),
      cmocka_unit_test_setup_teardown(test_guards_left_out, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
