/* Adding a pass, on the example of double-neg: neg(neg(x)) is x. In the tree the part "pass" would be src/passes/double_neg.c, and
 * passes.inc would get the line
 *   AIT_PASS(double_neg, "double-neg", false, "neg of neg is its operand")
 * The rest checks it: the rewritten graph as text, equal numbers before and after on the reference backend, and what must stay. */
#include "backends/reference/reference.h"
#include "passes/rewrite.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

ait_status ait_pass_double_neg(ait_graph *g, const ait_pass_context *context, bool *changed);

/* begin pass */
ait_status ait_pass_double_neg(ait_graph *g, const ait_pass_context *context, bool *changed) {
  if (g->dialect != AIT_DIALECT_CORE) return AIT_OK; /* raw tensors alias: -(-x) is a copy, x may be written later */
  for (ait_node *n = g->first; n; n = n->next) {
    if (strcmp(n->op->name, "neg") != 0 || !ait_arg_is_tensor(g, &n->args[0])) continue;
    ait_node *inner = ait_def_of(g, n->args[0].as.value, "neg");
    if (!inner) continue;
    if (ait_value_of(g, n->results[0])->dtype != ait_value_of(g, inner->args[0].as.value)->dtype) continue;
    ait_rewrite w = ait_rewrite_at(g, context, n);
    ait_note(&w, "double-neg", "double-neg-removed", "'%s' gives back the operand of '%s'", n->name, inner->name);
    AIT_TRY(ait_replace_value(g, n->results[0], inner->args[0].as.value));
    *changed = true; /* the two nodes are unused now: dce removes them */
  }
  return AIT_OK;
}
/* end pass */

/* ---- checks ----------------------------------------------------------------------------------------------------------------------*/
#define HEAD "graph \"m\" core producer \"test\"\nsymbol s0 [1, 64] hint 4 backed\ninput %x: float32[s0, 3] user 0 \"x\"\n"
static const char twice[] =
    HEAD "%a: float32[s0, 3] = neg(%x)\n%b: float32[s0, 3] = neg(%a)\n%c: float32[s0, 3] = exp(%b)\noutput user 0 = %c\n";
static const char once[] =
    HEAD "%a: float32[s0, 3] = neg(%x)\n%b: float32[s0, 3] = abs(%a)\n%c: float32[s0, 3] = neg(%b)\noutput user 0 = %c\n";

static int notes;
static void count_note(void *ctx, const char *pass, const char *code, const char *node, const char *text) {
  AIT_UNUSED(ctx);
  AIT_UNUSED(pass);
  AIT_UNUSED(code);
  AIT_UNUSED(node);
  assert_string_equal(text, "'b' gives back the operand of 'a'");
  ++notes;
}

static ait_graph *parse(const char *text) {
  ait_graph *g;
  ait_status status = ait_graph_parse(ait_allocator_default(), text, strlen(text), &g);
  if (status) fail_msg("%s", ait_status_message(status));
  return g;
}

static bool run_pass(ait_graph *g) {
  bool changed = false, removed = false;
  ait_pass_context context = {.allocator = ait_allocator_default(), .note = count_note};
  assert_null(ait_pass_double_neg(g, &context, &changed));
  assert_null(ait_pass_dce(g, &context, &removed));
  assert_null(ait_graph_verify(g)); /* pipeline.c does this after every pass */
  return changed;
}

/* The graph's one output for the given input, on the reference backend. */
static void compute(const ait_graph *g, const float *x, float *y) {
  ait_allocator a = ait_allocator_default();
  const ait_backend *reference = &ait_backend_reference;
  ait_region *region;
  ait_blob blob;
  void *loaded, *instance;
  const int64_t shape[] = {2, 3};
  ait_compile_options compile = {.struct_size = sizeof compile, .allocator = a, .cpu_mask = UINT64_MAX};
  assert_null(ait_graph_region(g, a, &region));
  assert_null(reference->compile(region, &compile, &blob));
  ait_load_context load = {.struct_size = sizeof load, .allocator = a, .blob = blob.data, .blob_size = blob.size, .cpu_mask = UINT64_MAX};
  assert_null(reference->load(&load, &loaded));
  assert_null(reference->instance_create(loaded, a, &instance));
  ait_value input = ait_value_tensor(ait_tensor_borrow((void *)(uintptr_t)x, AIT_F32, 2, shape)), output = {0};
  ait_run_context run = {.struct_size = sizeof run, .allocator = a, .inputs = &input, .outputs = &output};
  assert_null(reference->run(instance, &run));
  memcpy(y, output.as.tensor.data, 6 * sizeof *y);
  ait_value_release(&output);
  reference->instance_destroy(instance);
  reference->unload(loaded);
  ait_free(a, blob.data, blob.size);
  ait_graph_region_destroy(a, region);
}

static void rewrites(void **state) {
  static const float x[6] = {-1, 0, 1, 2, 0.5f, -3};
  float before[6], after[6];
  AIT_UNUSED(state);
  ait_graph *g = parse(twice);
  compute(g, x, before);
  notes = 0;
  assert_true(run_pass(g));
  assert_int_equal(notes, 1);
  assert_int_equal(g->node_count, 1);
  compute(g, x, after);
  assert_memory_equal(before, after, sizeof before);
  ait_graph_destroy(g);
}

/* What lies between the two must not be dropped. */
static void leaves_alone(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = parse(once);
  assert_false(run_pass(g));
  assert_int_equal(g->node_count, 3);
  ait_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rewrites), cmocka_unit_test(leaves_alone)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
