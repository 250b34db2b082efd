/* Region to graph: damaged regions are refused, and every failed allocation is reported. */
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/test_support.h"

static const char text[] =
    "graph \"m\" raw\nsymbol s0 [2, 64] hint 4 backed\nguard s0 <= 60 text \"g\"\nsignature [\"x\", \"n\"]\n"
    "input %x: float32[s0, 2] user 0 \"x\"\ninput %n: int(s0 + 1) user 1 \"n\"\n%y: float32[2*s0] = aten.view(%x, [{2*s0}]) module \"\"\n"
    "%q: bool = _operator.eq(%n, 3) module \"\"\n%c: float32[2*s0] = higher_order.cond(%q, graph \"t\" {\n  input %x: float32[2*s0] user "
    "0\n  output user 0 = %x\n}, graph \"f\" {\n"
    "  input %x: float32[2*s0] user 0\n  %z: float32[2*s0] = aten.neg(%x) module \"\"\n  output user 0 = %z\n}, [%y]) module \"\"\noutput "
    "user 0 \"y\" = %c\n";

static ait_graph *parse(void) {
  ait_graph *g;
  ait_status status = ait_graph_parse(ait_allocator_default(), text, sizeof text - 1, &g);
  if (status) fail_msg("%s", ait_status_message(status));
  return g;
}

static void print(const ait_graph *g, ait_text *out) {
  ait_text_init(out, ait_allocator_default());
  assert_null(ait_graph_print(g, out));
}

static void there_and_back(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse(), *again;
  ait_region *region;
  ait_text before, after;
  assert_null(ait_graph_region(g, ait_allocator_default(), &region));
  assert_null(ait_graph_from_region(ait_allocator_default(), region, AIT_DIALECT_RAW, NULL, &again));
  print(g, &before);
  ait_graph_region_destroy(ait_allocator_default(), region);
  ait_graph_destroy(g);
  print(again, &after);
  assert_string_equal(after.data, before.data);
  ait_text_deinit(&before);
  ait_text_deinit(&after);
  ait_graph_destroy(again);
}

static ait_status rebuild(ait_allocator a, void *region) {
  ait_graph *g;
  AIT_TRY(ait_graph_from_region(a, region, AIT_DIALECT_RAW, NULL, &g));
  ait_graph_destroy(g);
  return AIT_OK;
}

static void failed_allocations(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse();
  ait_region *region;
  assert_null(ait_graph_region(g, ait_allocator_default(), &region));
  test_every_allocation_fails(rebuild, region);
  ait_graph_region_destroy(ait_allocator_default(), region);
  ait_graph_destroy(g);
}

static void refused(const ait_region *region) {
  ait_graph *g;
  ait_status status = ait_graph_from_region(ait_allocator_default(), region, AIT_DIALECT_RAW, NULL, &g);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_MODEL);
  assert_null(g);
  ait_status_free(status);
}

static void damaged_regions(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse();
  ait_region *region;
  assert_null(ait_graph_region(g, ait_allocator_default(), &region));
  ait_region bad = *region;
  ait_dim_expr dims[64];
  assert_true(region->dim_count < 64);
  for (uint32_t i = 0; i < region->dim_count; ++i) { /* each size made of itself, or of no symbol */
    memcpy(dims, region->dims, region->dim_count * sizeof *dims);
    dims[i] = (ait_dim_expr){.op = AIT_DIM_ADD, .a = i, .b = i};
    bad.dims = dims;
    refused(&bad);
    dims[i] = (ait_dim_expr){.op = AIT_DIM_SYMBOL, .a = 99};
    refused(&bad);
  }
  bad = *region;
  bad.dim_count = 1;
  refused(&bad);
  ait_region_node nodes[8];
  assert_true(region->node_count < 8);
  memcpy(nodes, region->nodes, region->node_count * sizeof *nodes);
  nodes[0].arg_count = 1;
  bad = *region;
  bad.nodes = nodes;
  refused(&bad);
  memcpy(nodes, region->nodes, region->node_count * sizeof *nodes);
  const ait_arg outside[2] = {{.kind = AIT_ARG_VALUE, .as.value = 1000}, region->nodes[0].args[1]};
  nodes[0].args = outside;
  refused(&bad);
  ait_graph_region_destroy(ait_allocator_default(), region);
  ait_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(failed_allocations),
                                     cmocka_unit_test(damaged_regions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
