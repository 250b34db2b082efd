/* Inference rules: results as text; and with symbols the same as with their values. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char head[] = "graph \"g\" core\n"
                           "symbol s0 [2, 64] backed\nsymbol s1 [2, 512] backed\nsymbol u0 [0, inf]\n";
static const char inputs[] =
    "input %x: float32[s0, 3, s1, 24] user 0\ninput %y: float32[s0, s1] user 1\ninput %h: float16[s1] user 2\n"
    "input %z: float64[] user 3\ninput %iz: int64[] user 4\ninput %i: int64[s0, 2] user 5\ninput %b: bool[s0, s1] user 6\n"
    "input %u: float32[u0, 5] user 7\ninput %c: complex64[4] user 8\ninput %b8: uint8[3] user 9\ninput %i32: int32[4] user 10\n"
    "input %w: float32[8, 3, 3, 5] user 11\ninput %n: int(s0 + 1) user 12\ninput %k: int user 13\ninput %f: float user 14\n"
    "input %q: float32[s0, 8, s1, 64] user 15\ninput %kv: float32[s0, 2, s1 + 7, 64] user 16\ninput %m: float32[10, 24] user 17\n"
    "input %v: float32[24] user 18\ninput %any: float32[...] user 19\ninput %e: float32[0] user 20\ninput %one: float32[1, s1] user 21\n"
    "input %seq: float32[s1, s0, 16] user 22\ninput %h0: float32[4, s0, 32] user 23\ninput %idx: int64[7] user 24\ninput %bf: bfloat16[4] "
    "user 25\n"
    "input %l: list(float32[2, s0], float32[3, s0]) user 26\ninput %half: float32[s0, 6, s1//2, 10] user 27\ninput %u2: float32[u0, 1] "
    "user 28\n";

static const struct {
  const char *call, *types;
} cases[] = {
    {"neg(%x)", "float32[s0, 3, s1, 24]"},
    {"exp(%i)", "float32[s0, 2]"},
    {"exp(%h)", "float16[s1]"},
    {"abs(%c)", "float32[4]"},
    {"isnan(%x)", "bool[s0, 3, s1, 24]"},
    {"cast(%y, int64)", "int64[s0, s1]"},
    {"relu(%any)", "float32[...]"},
    {"add(%y, %h)", "float32[s0, s1]"},
    {"add(%h, %z)", "float16[s1]"},
    {"add(%i, %z)", "float64[s0, 2]"},
    {"add(%h, 2.5)", "float16[s1]"},
    {"add(%i32, 2.5)", "float32[4]"},
    {"add(%i32, 7)", "int32[4]"},
    {"add(%b8, 7)", "uint8[3]"},
    {"add(%b, 7)", "int64[s0, s1]"},
    {"add(%b, true)", "bool[s0, s1]"},
    {"add(%i32, complex(0.0, 1.0))", "complex64[4]"},
    {"add(%z, complex(0.0, 1.0))", "complex128[]"},
    {"add(%i32, %iz)", "int32[4]"},
    {"add(%bf, %i32)", "bfloat16[4]"},
    {"add(%iz, 1.5)", "float32[]"},
    {"add(%i, %k)", "int64[s0, 2]"},
    {"mul(%i, %f)", "float32[s0, 2]"},
    {"add(%one, %y)", "float32[s0, s1]"},
    {"add(%u, %u2)", "float32[u0, 5]"},
    {"add(%any, %y)", "float32[...]"},
    {"div(%i, 2)", "float32[s0, 2]"},
    {"floor_divide(%i, 2)", "int64[s0, 2]"},
    {"pow(2.0, %i)", "float32[s0, 2]"},
    {"lt(%y, 0)", "bool[s0, s1]"},
    {"logical_and(%y, %b)", "bool[s0, s1]"},
    {"where(%b, %y, 0.0)", "float32[s0, s1]"},
    {"where(%b, %z, 1)", "float64[s0, s1]"},
    {"clamp(%y, min=0.0)", "float32[s0, s1]"},
    {"clamp(%i32, max=2.5)", "float32[4]"},

    {"sum(%x, [1, -1])", "float32[s0, s1]"},
    {"sum(%i, [0], keepdim=true)", "int64[1, 2]"},
    {"sum(%i32, [])", "int64[]"},
    {"mean(%x, [])", "float32[]"},
    {"amax(%x, [2], keepdim=true)", "float32[s0, 3, 1, 24]"},
    {"any(%y, [])", "bool[]"},
    {"all(%b8, [0])", "uint8[]"},
    {"var(%x, [2, 3], correction=0.0)", "float32[s0, 3]"},
    {"argmax(%x)", "int64[]"},
    {"argmax(%x, dim=1, keepdim=true)", "int64[s0, 1, s1, 24]"},
    {"max_dim(%x, 2)", "float32[s0, 3, 24], int64[s0, 3, 24]"},
    {"cumsum(%b, 0)", "int64[s0, s1]"},
    {"softmax(%x, -1)", "float32[s0, 3, s1, 24]"},
    {"topk(%x, 2, dim=2)", "float32[s0, 3, 2, 24], int64[s0, 3, 2, 24]"},
    {"sort(%y)", "float32[s0, s1], int64[s0, s1]"},

    {"reshape(%x, [{s0}, -1])", "float32[s0, 72*s1]"},
    {"reshape(%x, [-1, 24])", "float32[3*s0*s1, 24]"},
    {"reshape(%x, [{s0}, {s1}, -1])", "float32[s0, s1, 72]"},
    {"reshape(%u, [-1])", "float32[5*u0]"},
    {"reshape(%u, [-1, {u0}])", "float32[5, u0]"},
    {"reshape(%u, [-1, 2])", "float32[2*u0 + u0//2, 2]"},
    {"reshape(%z, [1, 1])", "float64[1, 1]"},
    {"reshape(%y, [%n, -1])", "float32[s0 + 1, (s0*s1)//(s0 + 1)]"},
    {"reshape(%any, [2, -1])", "float32[2, ?1]"},
    {"permute(%x, [0, 2, -1, 1])", "float32[s0, s1, 24, 3]"},
    {"expand(%one, [{s0}, -1])", "float32[s0, s1]"},
    {"expand(%z, [2, 3])", "float64[2, 3]"},
    {"expand(%y, [5, -1, -1])", "float32[5, s0, s1]"},
    {"slice(%x, 2, 0, 9223372036854775807)", "float32[s0, 3, s1, 24]"},
    {"slice(%x, 2, 1, 9223372036854775807)", "float32[s0, 3, s1 - 1, 24]"},
    {"slice(%x, 2, 0, 9223372036854775807, step=2)", "float32[s0, 3, (s1 + 1)//2, 24]"},
    {"slice(%x, 2, 0, -1)", "float32[s0, 3, s1 - 1, 24]"},
    {"slice(%x, 2, 0, 3)", "float32[s0, 3, min(3, s1), 24]"},
    {"slice(%x, 3, 5, 100)", "float32[s0, 3, s1, 19]"},
    {"slice(%x, 3, 20, 10)", "float32[s0, 3, s1, 0]"},
    {"slice(%x, 3, -7, -2, step=3)", "float32[s0, 3, s1, 2]"},
    {"slice(%x, 3, 0, {s0//4})", "float32[s0, 3, s1, s0//4]"},
    {"select(%x, 1, -3)", "float32[s0, s1, 24]"},
    {"cat([%y, %one])", "float32[s0 + 1, s1]"},
    {"cat([%e, %v, %h])", "float32[s1 + 24]"},
    {"cat(%l)", "float32[5, s0]"},
    {"cat([%i32, %c])", "complex64[8]"},
    {"pad(%x, [1, 2, -1, 0])", "float32[s0, 3, s1 - 1, 27]"},
    {"gather(%y, 1, %i)", "float32[s0, 2]"},
    {"index(%x, [none, %idx])", "float32[s0, 7, s1, 24]"},
    {"index(%x, [none, %idx, none, %idx])", "float32[7, s0, s1]"},
    {"index(%x, [none, %i, %i])", "float32[s0, s0, 2, 24]"},
    {"index(%y, [%b])", "float32[?1]"},
    {"index(%y, [%i, %iz])", "float32[s0, 2]"},
    {"index_select(%x, 3, %idx)", "float32[s0, 3, s1, 7]"},
    {"index_put(%y, [%i], %z)", "float32[s0, s1]"},
    {"embedding(%m, %i)", "float32[s0, 2, 24]"},
    {"arange(0, 10, 3, int64)", "int64[4]"},
    {"arange(0, {s0}, 1, float32)", "float32[s0]"},
    {"arange(1, %n, 2, int64)", "int64[(s0 + 1)//2]"},
    {"arange(0.0, 1.0, 0.3, float32)", "float32[4]"},
    {"arange(10, 0, -3, int64)", "int64[4]"},
    {"arange(5, 0, 1, int64)", "int64[0]"},
    {"full([{s0}, 2, %n], 1.5, float16)", "float16[s0, 2, s0 + 1]"},
    {"unfold(%x, 3, 4, 2)", "float32[s0, 3, s1, 11, 4]"},

    {"linear(%x, %m)", "float32[s0, 3, s1, 10]"},
    {"linear(%x, %v)", "float32[s0, 3, s1]"},
    {"matmul(%v, %v)", "float32[]"},
    {"matmul(%m, %v)", "float32[10]"},
    {"matmul(%x, %v)", "float32[s0, 3, s1]"},
    {"conv(%x, %w, none, [1, 1], [1, 2], [1, 1])", "float32[s0, 8, s1, 24]"},
    {"conv(%x, %w, none, [2], [1], [1])", "float32[s0, 8, (s1 + 1)//2, 11]"},
    {"conv(%x, %w, none, [1, 1], [0, 0], [1, 3])", "float32[s0, 8, s1 - 2, 12]"},
    {"conv(%q, %w, none, [2, 1], [1, 0], [1, 1], transposed=true, output_padding=[1, 0])", "float32[s0, 3, 2*s1, 68]"},
    {"conv(%half, %w, none, [2, 1], [0, 0], [1, 1], groups=2)", "float32[s0, 8, (s1 + 2)//4 - 1, 6]"},
    {"max_pool(%x, [2, 2], [2, 2], [0, 0], [1, 1])", "float32[s0, 3, s1//2, 12]"},
    {"max_pool(%x, [3, 3], [], [1, 1], [1, 1])", "float32[s0, 3, (s1 + 2)//3, 8]"},
    {"max_pool(%x, [2, 3], [2], [0], [1], ceil_mode=true)", "float32[s0, 3, (s1 + 1)//2, 12]"},
    {"max_pool(%seq, [2], [2], [0], [1])", "float32[s1, s0, 8]"},
    {"avg_pool(%x, [3, 3], [2, 2], [1, 1], ceil_mode=true)", "float32[s0, 3, s1//2 + 1, 13]"},
    {"adaptive_avg_pool(%x, [1, 7])", "float32[s0, 3, 1, 7]"},
    {"upsample(%x, [{2*s1}, 48], \"nearest\")", "float32[s0, 3, 2*s1, 48]"},
    {"layer_norm(%x, 1, none, none, 1e-05)", "float32[s0, 3, s1, 24]"},
    {"attention(%q, %kv, %kv)", "float32[s0, 8, s1, 64]"},
    {"lstm(%seq, %h0, %h0, [], true, 2, true, false)", "float32[s1, s0, 64], float32[4, s0, 32], float32[4, s0, 32]"},
    {"gru(%seq, %h0, [], true, 4, false, false)", "float32[s1, s0, 32], float32[4, s0, 32]"},
};

static const struct {
  const char *call, *message;
} errors[] = {
    {"add(%y, %m)", "sizes to be broadcast differ"},
    {"add(%v, %idx)", "sizes to be broadcast differ: 24 and 7"},
    {"reshape(%m, [7, -1])", "240 elements are no multiple of 7"},
    {"reshape(%m, [5, 5])", "numbers of elements differ: 240 and 25"},
    {"reshape(%m, [-1, -1])", "two sizes are -1"},
    {"reshape(%m, [-2, 5])", "size -2 is negative"},
    {"reshape(%e, [0, -1])", "ambiguous"},
    {"permute(%m, [0, 0])", "used twice"},
    {"permute(%m, [0])", "1 dims for rank 2"},
    {"expand(%m, [10, 25])", "sizes differ"},
    {"expand(%m, [24])", "1 sizes for rank 2"},
    {"slice(%m, 0, 0, 1, step=0)", "step is not positive"},
    {"slice(%m, 2, 0, 1)", "dim 2 is outside rank 2"},
    {"select(%m, 0, 10)", "index 10 is outside a dim of 10"},
    {"cat([%m, %v])", "ranks 2 and 1"},
    {"pad(%v, [1, 1, 1, 1])", "pads do not fit rank 1"},
    {"sum(%m, [0, -2])", "reduced twice"},
    {"topk(%m, 25)", "k is larger than dim 1"},
    {"index(%v, [%idx, %idx])", "more indices than rank 1"},
    {"embedding(%v, %idx)", "weight has rank 1"},
    {"linear(%x, %one)", "input features differ"},
    {"matmul(%m, %m)", "inner sizes differ: 24 and 10"},
    {"conv(%q, %w, none, [1], [0], [1])", "input channels differ: 8 and 3"},
    {"conv(%x, %w, none, [0], [0], [1])", "'stride' is not positive"},
    {"conv(%x, %w, none, [1, 1, 1], [0], [1])", "'stride' has 3 elements for 2 dims"},
    {"conv(%v, %w, none, [1], [0], [1])", "ranks 1 and 4"},
    {"conv(%x, %w, none, [1], [0], [100])", "output size would be"},
    {"max_pool(%v, [2, 2], [], [], [])", "2 kernel sizes for rank 1"},
    {"attention(%q, %x, %x)", "head sizes of q and k differ"},
    {"arange(0, 10, 0, int64)", "step is 0"},
    {"arange(0.0, 1.0, -0.5, float32)", "bounds and step do not fit"},
};

/* The head and inputs with each symbol replaced by its value. */
static void substitute(ait_text *out, const char *text, const int64_t *values) {
  for (const char *p = text; *p; ++p) {
    bool symbol = (p[0] == 's' || p[0] == 'u') && (p[1] == '0' || p[1] == '1') && (p == text || strchr("[ {*(", p[-1]));
    if (!symbol || !values) {
      ait_text_append(out, p, 1);
      continue;
    }
    ait_text_printf(out, "%lld", (long long)values[p[0] == 'u' ? 2 : p[1] - '0']);
    ++p;
  }
}

/* The graph with one node, "%r0: none, … = call". */
static ait_graph *graph_of(const char *call, size_t results, const int64_t *values) {
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  ait_text_append(&text, head, sizeof head - 1);
  substitute(&text, inputs, values);
  for (size_t i = 0; i < results; ++i) ait_text_printf(&text, "%s%%r%zu: none", i ? ", " : "", i);
  ait_text_printf(&text, " = ");
  substitute(&text, call, values);
  ait_graph *g;
  ait_status status = ait_graph_parse(ait_allocator_default(), text.data, text.length, &g);
  if (status) fail_msg("%s: %s", call, ait_status_message(status));
  ait_text_deinit(&text);
  return g;
}

static size_t result_count(const char *call) {
  char name[32];
  snprintf(name, sizeof name, "%.*s", (int)strcspn(call, "("), call);
  return ait_op_find(name)->result_count;
}

static ait_status infer(ait_graph *g, ait_value_info *out) {
  const ait_node *n = g->last;
  return ait_infer(g, n->op, n->args, n->arg_count, out, n->result_count);
}

/* Types of all results as the printer writes them. */
static void describe(ait_graph *g, const ait_value_info *infos, char *out, size_t size) {
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  for (uint32_t i = 0; i < g->last->result_count; ++i) assert_null(ait_graph_set_metadata(g, g->last->results[i], &infos[i]));
  assert_null(ait_graph_print(g, &text));
  *out = '\0';
  char *line = strstr(text.data, "%r0: "), *end = strstr(line, " = ");
  *end = '\0';
  for (char *part = line; part; part = strstr(part, ", %r")) {
    if (part != line) {
      strncat(out, ", ", size - strlen(out) - 1);
      part += 2;
    }
    char *next = strstr(part, ", %r");
    size_t skip = strlen("%r0: "), n = next ? (size_t)(next - part) : strlen(part);
    strncat(out, part + skip, n - skip < size - strlen(out) - 1 ? n - skip : size - strlen(out) - 1);
  }
  ait_text_deinit(&text);
}

static void results_as_text(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_graph *g = graph_of(cases[i].call, result_count(cases[i].call), NULL);
    ait_value_info infos[4];
    char text[512];
    ait_status status = infer(g, infos);
    if (status) fail_msg("%s: %s", cases[i].call, ait_status_message(status));
    describe(g, infos, text, sizeof text);
    if (strcmp(text, cases[i].types) != 0) fail_msg("%s\ngot  %s\nwant %s", cases[i].call, text, cases[i].types);
    status = ait_graph_verify(g);
    if (status) fail_msg("%s: %s", cases[i].call, ait_status_message(status));
    ait_graph_destroy(g);
  }
}

/* Evaluated, the symbolic result is what the rule gives for numbers. */
static void check_values(const char *call, const int64_t *values) {
  size_t results = result_count(call);
  ait_graph *symbolic = graph_of(call, results, NULL), *concrete = graph_of(call, results, values);
  ait_value_info want[4], got[4];
  assert_null(infer(symbolic, got));
  ait_status status = infer(concrete, want);
  if (status) fail_msg("%s: %s", call, ait_status_message(status));
  for (size_t r = 0; r < results; ++r) {
    assert_int_equal(got[r].dtype, want[r].dtype);
    assert_int_equal(got[r].rank, want[r].rank);
    for (int32_t d = 0; d < got[r].rank; ++d) {
      int64_t x, y;
      if (!ait_dim_eval(symbolic->dims, values, got[r].shape[d], &x)) continue; /* depends on data */
      assert_true(ait_dim_is_const(concrete, want[r].shape[d], &y));
      if (x != y)
        fail_msg("%s: dim %d is %lld by symbols, %lld by numbers (%lld, %lld)", call, (int)d, (long long)x, (long long)y,
                 (long long)values[0], (long long)values[1]);
    }
  }
  ait_graph_destroy(symbolic);
  ait_graph_destroy(concrete);
}

static void symbols_mean_their_values(void **state) {
  AIT_UNUSED(state);
  static const int64_t points[][3] = {{2, 6, 4}, {3, 7, 2}, {7, 11, 8}, {8, 300, 6}};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    bool may_not_fit = strstr(cases[i].call, "reshape(%y") || strstr(cases[i].call, "reshape(%any");
    for (size_t p = 0; !may_not_fit && p < AIT_COUNT(points); ++p) check_values(cases[i].call, points[p]);
  }
}

static void errors_say_why(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(errors); ++i) {
    static const int64_t values[3] = {2, 6, 0};
    ait_graph *g = graph_of(errors[i].call, result_count(errors[i].call), values);
    ait_value_info infos[4];
    ait_status status = infer(g, infos);
    if (!status) fail_msg("%s was taken", errors[i].call);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
    if (!strstr(ait_status_message(status), errors[i].message)) fail_msg("%s: %s", errors[i].call, ait_status_message(status));
    ait_status_free(status);
    ait_graph_destroy(g);
  }
}

static void every_core_operator_has_a_rule(void **state) {
  AIT_UNUSED(state);
  ait_graph *g;
  assert_null(ait_graph_create(ait_allocator_default(), AIT_DIALECT_CORE, &g));
  for (size_t i = 0; i < ait_op_count(); ++i) {
    const ait_op *op = ait_op_at(i);
    if (op->dialects != AIT_DIALECT_CORE) continue;
    ait_arg args[32] = {0};
    ait_value_info infos[4];
    ait_status status = ait_infer(g, op, args, op->param_count, infos, op->result_count); /* nothing fits, and nothing crashes */
    if (ait_status_code(status) == AIT_CODE_UNSUPPORTED) fail_msg("%s has no rule", op->name);
    ait_status_free(status);
  }
  ait_graph_destroy(g);
}

static void build_adds_nodes(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = graph_of("neg(%x)", 1, NULL);
  uint32_t x = ait_graph_find_value(g, "x"), y, pair[2];
  ait_arg args[] = {ait_arg_value(x), ait_arg_int(2)};
  assert_null(ait_build(g, g->first, "max_dim", "best", AIT_NO_INDEX, args, 2, pair, 2));
  assert_string_equal(g->first->op->name, "max_dim");
  assert_int_equal(g->first->arg_count, 3);
  assert_string_equal(g->values[pair[0]].name, "best");
  assert_string_equal(g->values[pair[1]].name, "best_1");
  assert_int_equal(g->values[pair[1]].dtype, AIT_I64);
  ait_arg bad[] = {ait_arg_value(x), ait_arg_int(9)};
  ait_status status = ait_build(g, NULL, "softmax", "p", AIT_NO_INDEX, bad, 2, &y, 1);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
  assert_non_null(strstr(ait_status_message(status), "cannot build 'p'"));
  ait_status_free(status);
  status = ait_build(g, NULL, "aten.sgn", "p", AIT_NO_INDEX, args, 1, &y, 1);
  assert_non_null(status);
  ait_status_free(status);

  uint32_t *uses;
  assert_null(ait_graph_count_uses(g, ait_allocator_default(), &uses));
  assert_int_equal(uses[x], 2);
  ait_free(ait_allocator_default(), uses, g->value_count * sizeof *uses);
  ait_graph_replace_uses(g, x, ait_graph_find_value(g, "q"));
  ait_graph_remove_node(g, g->first);
  assert_int_equal(g->node_count, 1);
  assert_null(g->values[pair[0]].def);
  assert_int_equal(g->first->args[0].as.value, ait_graph_find_value(g, "q"));
  ait_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(results_as_text),  cmocka_unit_test(symbols_mean_their_values),      cmocka_unit_test(errors_say_why),
      cmocka_unit_test(build_adds_nodes), cmocka_unit_test(every_core_operator_has_a_rule),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
