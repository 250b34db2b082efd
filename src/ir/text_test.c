/* Print, parse, clone, region, verifier, failing allocator: on graphs that hold everything a graph can hold. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Every kind of argument, value type, input, output; nested graphs; symbols, guards, modules, weights by name. */
static const char everything[] =
    "graph \"model \\\"x\\\"\" raw producer \"torch 2.13.0\"\n"
    "symbol s0 [2, 128] hint 8 backed\n"
    "symbol \"odd name\" [-inf, inf]\n"
    "symbol u0 [0, inf]\n"
    "module \"\" \"Model\" calls 1\n"
    "module \"layer.0\" \"torch.nn.modules.linear.Linear\" calls 2\n"
    "guard s0 <= 64 text \"L['x'].size()[0] <= 64\"\n"
    "guard 2*s0 != u0 + 1 text \"\"\n"
    "guard \"odd name\" == s0//2 text \"g\"\n"
    "guard s0 % 3 < 2 text \"h\"\n"
    "signature [\"x\", none, \"flag\"]\n"
    "input %x: float32[s0, 3] user 0 \"x\" mutated\n"
    "input %n: int(s0 + 1) user 1\n"
    "input _ user 2 \"flag\" baked true\n"
    "input %w: float32[3, 3] parameter -1 \"layer.0.weight\"\n"
    "input %\"b/1\": bfloat16[...] buffer -1 \"layer.0.running\\nmean\" mutated\n"
    "input %c: tensor[] constant -1 \"lifted\\x01\\ttensor\"\n"
    "input %t: none token -1 \"token\"\n"
    "input %flag: bool user 3 \"live\"\n"
    "%add: float32[s0, 3] = aten.add.Tensor(%x, 2.5, alpha=-3) name \"add node\" module \"layer.0\"\n"
    "%mul: float32[s0, 3] = inplace aten.mul.Tensor(%add, %add) module \"\"\n"
    "%parts: list(float32[s0, 2], float32[s0, 1]) = aten.split.Tensor(%mul, 2, dim=1)\n"
    "%first: float32[s0, 2] = _operator.getitem(%parts, 0)\n"
    "%some: list*3 = aten.chunk(%mul, {s0//2 + 1})\n"
    "%any: list = aten.unbind.int(%mul)\n"
    "%i: int = aten.sym_size.int(%x, 0)\n"
    "%j: int(2*s0 + 1) = _operator.add(%i, %n)\n"
    "%f: float = _operator.truediv(%i, 1e-300)\n"
    "%q: bool = _operator.eq(%i, %n)\n"
    "%u: int64[?4, ?2, ?4] = aten.nonzero(%x)\n"
    "%view: float32[s0*3] = aten.view(%mul, [-1, %i, {s0}, true])\n"
    "%full: complex128[2] = aten.full([2], complex(1.0, -inf), dtype=complex128, layout=0, device=\"cpu\")\n"
    "%dt: float16[2] = aten.full([], nan, dtype=dtype(77))\n"
    "%ind: float32[...] = aten.index.Tensor(%x, [none, %u])\n"
    "%mx: float32[3], _ = aten.max.dim(%x, 0)\n"
    "do aten._assert_scalar(%q, \"size \\\"matters\\\"\")\n"
    "%cond: float32[s0, 3] = higher_order.cond(%q, graph \"true graph\" {\n"
    "  input %x: float32[s0, 3] user 0\n"
    "  %y: float32[s0, 3] = aten.neg(%x)\n"
    "  %z: float32[s0, 3] = higher_order.cond(true, graph {\n"
    "    output user 0 = 1\n"
    "  }, [graph {\n"
    "  }, none])\n"
    "  output user 0 = %z\n"
    "}, graph \"false\" {\n"
    "  input %x: float32[s0, 3] user 0\n"
    "  output user 0 = %x\n"
    "}, [%x])\n"
    "%custom: string, %k: int = custom \"mylib::op.overload\"(%x, \"arg\", -9223372036854775808, 9223372036854775807)\n"
    "output user 0 \"out\" = %cond\n"
    "output user 1 = none\n"
    "output user 2 = [%u, 3, \"s\"]\n"
    "output state -1 \"layer.0.running\\nmean\" = %\"b/1\"\n"
    "output input 0 \"x\" = %mul\n"
    "output token -1 = %t\n";

static ait_graph *parse(const char *text) {
  ait_graph *g;
  ait_status status = ait_graph_parse(ait_allocator_default(), text, strlen(text), &g);
  if (status) fail_msg("%s", ait_status_message(status));
  return g;
}

static void check_print(const ait_graph *g, const char *want) {
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  assert_null(ait_graph_print(g, &text));
  size_t at = 0;
  while (text.data[at] && text.data[at] == want[at]) ++at;
  while (at > 0 && text.data[at - 1] != '\n') --at;
  if (strcmp(text.data, want) != 0) fail_msg("got  %.150s\nwant %.150s", text.data + at, want + at); /* from the first line that differs */
  ait_text_deinit(&text);
}

static void print_parse_print(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse(everything);
  /* unknown sizes keep their numbers; s0*3 becomes canonical */
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  assert_null(ait_graph_print(g, &text));
  assert_non_null(strstr(text.data, "[?4, ?2, ?4]"));
  assert_non_null(strstr(text.data, "float32[3*s0]"));
  ait_graph *again = parse(text.data);
  check_print(again, text.data);
  ait_text_deinit(&text);
  ait_graph_destroy(again);
  ait_graph_destroy(g);
}

/* All but the one size that is not canonical comes back as it was written. */
static void text_is_canonical(void **state) {
  AIT_UNUSED(state);
  char *want = strdup(everything), *at = strstr(want, "s0*3");
  memcpy(at, "3*s0", 4);
  ait_graph *g = parse(want);
  check_print(g, want);
  ait_graph_destroy(g);
  free(want);
}

static void clone_is_equal(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse(everything), *copy;
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  assert_null(ait_graph_print(g, &text));
  assert_null(ait_graph_clone(g, &copy));
  ait_graph_destroy(g); /* nothing is shared */
  check_print(copy, text.data);
  ait_dim a, b;
  assert_null(ait_dim_parse(copy, "1 + 2*s0", 8, &a));
  assert_null(ait_dim_parse(copy, "s0 + s0 + 1", 11, &b));
  assert_int_equal(a, b);
  ait_graph_destroy(copy);
  ait_text_deinit(&text);
}

static void region_is_flat(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse(everything);
  ait_region *r;
  assert_null(ait_graph_region(g, ait_allocator_default(), &r));
  assert_int_equal(r->node_count, g->node_count);
  assert_int_equal(r->symbol_count, 3);
  assert_int_equal(r->guard_count, 4);
  assert_int_equal(r->input_count, 8);
  assert_int_equal(r->output_count, 6);
  assert_string_equal(r->nodes[0].op, "aten.add.Tensor");
  assert_string_equal(r->nodes[0].module, "layer.0");
  assert_string_equal(r->nodes[0].name, "add node");
  assert_int_equal(r->nodes[1].flags, AIT_NODE_INPLACE);
  const ait_region_value *n = &r->values[ait_graph_find_value(g, "n")];
  assert_true(n->type == AIT_TYPE_INT && n->shape);
  int64_t size, symbols[3] = {7, 0, 0};
  assert_true(ait_dim_eval(r->dims, symbols, n->shape[0], &size));
  assert_int_equal(size, 8);
  const ait_region_node *custom = &r->nodes[r->node_count - 1], *cond = custom - 1;
  assert_string_equal(custom->op, "mylib::op.overload");
  assert_int_equal(cond->args[1].kind, AIT_ARG_GRAPH);
  const ait_region *nested = cond->args[1].as.graph;
  assert_string_equal(nested->name, "true graph");
  assert_int_equal(nested->node_count, 2);
  assert_ptr_equal(nested->dims, r->dims);
  const ait_region *inner = nested->nodes[1].args[2].as.list[0].as.graph;
  assert_int_equal(inner->dim_count, r->dim_count);
  ait_graph_region_destroy(ait_allocator_default(), r);
  ait_graph_region_destroy(ait_allocator_default(), NULL);
  ait_graph_destroy(g);
}

static const struct {
  const char *text, *message;
} unreadable[] = {
    {"", "line 1: expected 'graph'"},
    {"graph \"g\" odd", "unknown dialect"},
    {"graph \"g\" core %x", "expected ':'"},
    {"graph \"g\" core\ninput %x: float32[2] user 0\n%y: float32[2] = frob(%x)", "line 3: unknown operator 'frob'"},
    {"graph \"g\" core %y: float32[2] = neg(%x)", "value 'x' is not defined here"},
    {"graph \"g\" core input %x: float33[2] user 0", "unknown type 'float33'"},
    {"graph \"g\" core input %x: float32[2 user 0", "expected ','"},
    {"graph \"g\" core input %x: float32[2] guest 0", "unknown kind of input"},
    {"graph \"g\" core input %x: float32[2] user 0 input %x: int user 1", "value 'x' is defined twice"},
    {"graph \"g\" core input %x: float32[2] user 0 %y: float32[2] = neg()", "argument 'x' is missing"},
    {"graph \"g\" core input %x: float32[2] user 0 %y: float32[2] = neg(%x, %x)", "too many arguments"},
    {"graph \"g\" core input %x: float32[2] user 0 %y: float32[2] = neg(x=%x, x=%x)", "given twice"},
    {"graph \"g\" core input %x: float32[2] user 0 %y: float32[2] = neg(z=%x)", "no parameter 'z'"},
    {"graph \"g\" core }", "unexpected '}'"},
    {"graph \"g", "unclosed string"},
    {"graph \"\\q\"", "no such escape"},
    {"graph \"g\" core output user 99999999999 = none", "index out of range"},
    {"graph \"g\" core output user 0 = 99999999999999999999", "expected a number"},
    {"graph \"g\" core output user 0 = frob", "unknown argument 'frob'"},
};

static void faults_in_text(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(unreadable); ++i) {
    ait_graph *g;
    ait_status status = ait_graph_parse(ait_allocator_default(), unreadable[i].text, strlen(unreadable[i].text), &g);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
    if (!strstr(ait_status_message(status), unreadable[i].message))
      fail_msg("%s\nlacks: %s", ait_status_message(status), unreadable[i].message);
    ait_status_free(status);
  }
}

/* Cut anywhere, the text is an error or a graph, never a crash. */
static void truncated_text(void **state) {
  AIT_UNUSED(state);
  for (size_t n = 0; n < sizeof everything - 1; ++n) {
    ait_graph *g = NULL;
    char *copy = malloc(n ? n : 1);
    memcpy(copy, everything, n);
    ait_status status = ait_graph_parse(ait_allocator_default(), copy, n, &g);
    if (status == AIT_OK) ait_graph_destroy(g);
    ait_status_free(status);
    free(copy);
  }
}

static void deep_nesting_is_refused(void **state) {
  AIT_UNUSED(state);
  static const char *const opens[] = {"[", "graph { do higher_order.cond(", "{(", "{-"};
  for (size_t i = 0; i < AIT_COUNT(opens); ++i) {
    ait_text text;
    ait_text_init(&text, ait_allocator_default());
    ait_text_printf(&text, "graph \"g\" raw do higher_order.cond(");
    for (int k = 0; k < 5000; ++k) ait_text_printf(&text, "%s", i > 1 && k ? opens[i] + 1 : opens[i]);
    ait_graph *g;
    ait_status status = ait_graph_parse(ait_allocator_default(), text.data, text.length, &g);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
    assert_non_null(strstr(ait_status_message(status), "deeper"));
    ait_status_free(status);
    ait_text_deinit(&text);
  }
}

/* ---- failing allocator ---------------------------------------------------------------------------------------------------------------*/

typedef struct failing {
  int64_t left; /* allocations that succeed */
  int64_t live;
} failing;

static void *failing_alloc(void *ctx, size_t size, size_t align) {
  failing *f = ctx;
  if (f->left-- <= 0) return NULL;
  ++f->live;
  ait_allocator a = ait_allocator_default();
  return a.alloc(a.ctx, size, align);
}

static void failing_free(void *ctx, void *p, size_t size) {
  --((failing *)ctx)->live;
  ait_allocator a = ait_allocator_default();
  a.free(a.ctx, p, size);
}

static ait_status use_everything(ait_allocator a) {
  ait_graph *g, *copy = NULL;
  ait_region *region;
  ait_text text;
  AIT_TRY(ait_graph_parse(a, everything, sizeof everything - 1, &g));
  ait_text_init(&text, a);
  ait_status status = ait_graph_clone(g, &copy);
  if (status == AIT_OK) status = ait_graph_print(copy, &text);
  if (status == AIT_OK) status = ait_graph_region(copy, a, &region);
  if (status == AIT_OK) ait_graph_region_destroy(a, region);
  ait_text_deinit(&text);
  ait_graph_destroy(copy);
  ait_graph_destroy(g);
  return status;
}

/* The arena takes big blocks: with one-byte budgets every block is a point of failure. */
static void every_allocation_may_fail(void **state) {
  AIT_UNUSED(state);
  for (int64_t n = 0;; ++n) {
    failing f = {.left = n};
    ait_allocator a = {.ctx = &f, .alloc = failing_alloc, .free = failing_free};
    ait_status status = use_everything(a);
    assert_int_equal(f.live, 0);
    bool done = status == AIT_OK;
    if (!done) assert_int_equal(ait_status_code(status), AIT_CODE_OUT_OF_MEMORY);
    ait_status_free(status);
    if (done) break;
    assert_true(n < 10000);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(print_parse_print),       cmocka_unit_test(text_is_canonical),
      cmocka_unit_test(clone_is_equal),          cmocka_unit_test(region_is_flat),
      cmocka_unit_test(faults_in_text),          cmocka_unit_test(truncated_text),
      cmocka_unit_test(deep_nesting_is_refused), cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
