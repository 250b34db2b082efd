/* One graph for each kind of fault: the verifier names the node and the fault. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static ait_graph *parse(const char *text) {
  ait_graph *g;
  ait_status status = ait_graph_parse(ait_allocator_default(), text, strlen(text), &g);
  if (status) fail_msg("%s", ait_status_message(status));
  return g;
}

/* An error whose message holds both words. */
static void check_fault(const ait_graph *g, const char *node, const char *fault) {
  ait_status status = ait_graph_verify(g);
  if (!status) fail_msg("no fault found, want '%s'", fault);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
  const char *message = ait_status_message(status);
  if (!strstr(message, node) || !strstr(message, fault)) fail_msg("'%s' lacks '%s' or '%s'", message, node, fault);
  ait_status_free(status);
}

static const char valid_core[] =
    "graph \"good\" core\nsymbol s0 [2, 64] backed\nmodule \"m\" \"M\" calls 1\n"
    "input %x: float32[s0, 3] user 0 \"x\"\ninput %w: float32[4, 3] parameter -1 \"w\"\ninput %q: bool user 1\ninput _ user 2 baked 3\n"
    "%y: float32[s0, 4] = linear(%x, %w) module \"m\"\n"
    "%z: float32[s0, 4] = mul(%y, 2.0)\n"
    "%r: float32[4*s0] = reshape(%z, [-1])\n"
    "%h: float32[4*s0] = higher_order.cond(%q, graph {\n  input %a: float32[4*s0] user 0\n  %b: float32[4*s0] = relu(%a)\n"
    "  output user 0 = %b\n}, graph {\n  input %a: float32[4*s0] user 0\n  output user 0 = %a\n}, [%r])\n"
    "%e: float32[4*s0] = aten.special_i0(%h)\n"
    "output user 0 = %e\noutput user 1 = 5\n";

static void valid_graphs_pass(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse(valid_core);
  ait_status status = ait_graph_verify(g);
  if (status) fail_msg("%s", ait_status_message(status));
  ait_graph_destroy(g);
  g = parse(
      "graph \"g\" raw\ninput %x: float32[2] user 0\n%y: float32[2] = aten.add.Tensor(%x, 1)\n%z: float32[2] = inplace aten.relu(%y)\n"
      "%v: float32[1, 2] = aten.unsqueeze(%z, 0)\noutput user 0 = %v\n");
  assert_null(ait_graph_verify(g));
  ait_graph_destroy(g);
}

#define CORE "graph \"g\" core\nsymbol s0 [2, 64]\ninput %x: float32[s0, 3] user 0\ninput %i: int user 1\n"
#define RAW "graph \"g\" raw\ninput %x: float32[2, 3] user 0\ninput %i: int user 1\n"

static const struct {
  const char *text, *node, *fault;
} faults[] = {
    {CORE "%n: float32[s0, 3] = aten.normal_(%x)", "node 'n' (aten.normal_)", "does not belong to the core dialect"},
    {CORE "%n: float32[s0, 3] = inplace relu(%x)", "'n'", "in-place node in a core graph"},
    {RAW "%n: float32[2, 3] = inplace relu(%x)", "'n'", "does not belong to the raw dialect"},
    {CORE "%n: float32[s0, 3] = relu(%i)", "'n' (relu)", "argument 'x' is of the wrong kind"},
    {CORE "%n: float32[s0, 3] = relu(none)", "'n'", "argument 'x' is missing"},
    {CORE "%n: float32[s0, 3] = gelu(%x, approximate=3)", "'n'", "argument 'approximate' is of the wrong kind"},
    {CORE "%n: float32[s0, 3] = permute(%x, [1, \"a\"])", "'n'", "argument 'dims' is of the wrong kind"},
    {CORE "%n: float32[s0, 3] = cat([%x, none])", "'n'", "argument 'xs' is of the wrong kind"},
    {CORE "%n: float32[s0, 3] = cast(%x, dtype(99))", "'n'", "argument 'dtype' is of the wrong kind"},
    {CORE "%n: float32[s0, 3], %m: int64[s0] = relu(%x)", "'n'", "2 results, 1 wanted"},
    {CORE "%n: int = relu(%x)", "'n'", "result 0 ('n') is of the wrong type"},
    {CORE "%n: float64[s0, 3] = relu(%x)", "'n'", "is float64, its operator gives float32"},
    {CORE "%n: float32[s0] = relu(%x)", "'n'", "has rank 1, its operator gives 2"},
    {CORE "%n: float32[s0, 4] = relu(%x)", "'n'", "size 1 of result 'n' is 4, its operator gives 3"},
    {CORE "%n: float32[s0 + 1, 3] = relu(%x)", "'n'", "size 0 of result 'n' is s0 + 1, its operator gives s0"},
    {CORE "%n: float32[s0, 3] = softmax(%x, 2)", "'n'", "dim 2 is outside rank 2"},
    {CORE "%n: float32[-1] = aten.special_i0(%x)", "'n'", "negative size"},
    {CORE "do relu(%x) name \"quiet\"", "'quiet'", "0 results, 1 wanted"},
    {RAW "%n: float32[2, 3] = inplace aten.full([2], 1.0)", "'n'", "argument 0 is no value"},
    {CORE "input %w: float32[2] parameter -1\n", "graph 'g'", "weight without a name"},
    {CORE "input _ parameter -1 \"w\"\n", "graph 'g'", "input 'w' has no value"},
    {CORE "output state -1 = %x\n", "graph 'g'", "names no state"},
    {CORE "output user 0 = graph {}\n", "graph 'g'", "output 0 is a graph"},
    {CORE "%n: float32[1] = higher_order.cond(%x, graph { %k: float32[1] = relu(none) })", "'k'", "argument 'x' is missing"},
};

static void faults_are_named(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(faults); ++i) {
    ait_graph *g = parse(faults[i].text);
    check_fault(g, faults[i].node, faults[i].fault);
    ait_graph_destroy(g);
  }
}

/* What text cannot express. */
static void broken_structures(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse(valid_core), *other = parse(valid_core);
  ait_node *first = g->first, *second = first->next;
  ait_graph_move_node(second, first);
  check_fault(g, "'z'", "value 'y' is used before it is defined");
  ait_graph_move_node(second, first->next);
  assert_null(ait_graph_verify(g));

  first->args[0].as.value = 12345;
  check_fault(g, "'y'", "operand 12345 does not exist");
  first->args[0].as.value = g->inputs[0].value;

  first->module = 7;
  check_fault(g, "'y'", "module 7 does not exist");
  first->module = 0;

  first->arg_count = 2;
  check_fault(g, "'y'", "2 arguments, 3 wanted");
  first->arg_count = 3;

  ait_arg *nested = &g->first->next->next->next->args[1];
  const void *kept = nested->as.graph;
  nested->as.graph = other;
  check_fault(g, "'h'", "nested graph of another root");
  nested->as.graph = kept;

  g->values[first->results[0]].def = second;
  check_fault(g, "'y'", "value 'y' names another definition");
  g->values[first->results[0]].def = first;

  uint32_t result = first->results[0];
  first->results[0] = g->inputs[0].value;
  check_fault(g, "'y'", "value 'x' is defined twice");
  first->results[0] = result;

  ait_dim shape[1] = {9999999};
  const ait_dim *old = g->values[result].shape;
  g->values[result].shape = shape;
  g->values[result].rank = 1;
  check_fault(g, "'y'", "has a size that does not exist");
  g->values[result].shape = old;
  g->values[result].rank = 2;

  ++g->node_count;
  check_fault(g, "graph 'good'", "nodes in the list");
  --g->node_count;
  assert_null(ait_graph_verify(g));
  ait_graph_destroy(g);
  ait_graph_destroy(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(valid_graphs_pass),
      cmocka_unit_test(faults_are_named),
      cmocka_unit_test(broken_structures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
