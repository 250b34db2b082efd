/* What bounds a node, a module, a model: arithmetic on made-up rooflines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/testing.h"
#include "tune/bound.h"
#include "tune/evidence.h"

/* 1 FLOP a nanosecond, 10 bytes from caches, 1 from memory. */
static const ait_roofline machine = {
    .threads = 1, .flops_per_s = 1e9, .cache_bytes_per_s = 1e10, .memory_bytes_per_s = 1e9, .cache_bytes = 1000, .memory_bytes = 1000000};

static void the_larger_of_two(void **state) {
  AIT_UNUSED(state);
  ait_bound bound;
  assert_true(ait_bound_seconds(&machine, 1000, 100, &bound) == 1e-6 && bound == AIT_BOUND_ARITHMETIC);
  assert_true(ait_bound_seconds(&machine, 1, 1000, &bound) == 1e-7 && bound == AIT_BOUND_CACHES);
  assert_true(ait_bound_seconds(&machine, 1, 2000, &bound) == 2e-6 && bound == AIT_BOUND_MEMORY);
  assert_true(ait_bound_seconds(&machine, 0, 0, &bound) == 0 && bound == AIT_BOUND_NOTHING);
}

/* 16 x 8 times 8 x 8, then two element-wise nodes. */
static const char text[] =
    "graph \"m\" core\nmodule \"a\" \"A\" calls 1\nmodule \"b\" \"B\" calls 1\ninput %x: float32[16, 8] user 0 \"x\"\n"
    "input %w: float32[8, 8] user 1 \"w\"\n%m: float32[16, 8] = matmul(%x, %w) module \"a\"\n"
    "%r: float32[16, 8] = relu(%m) module \"b\"\n%t: float32[16, 8] = tanh(%r) module \"b\"\noutput user 0 \"t\" = %t\n";

static void modules_and_fusion(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(text);
  ait_module_bound bounds[3] = {0};
  double fused;
  assert_int_equal(g->module_count, 2);
  ait_bound_modules(g, NULL, &machine, bounds);
  assert_int_equal(ait_bound_main(&bounds[0]), AIT_BOUND_ARITHMETIC);
  assert_true(fabs(ait_bound_total(&bounds[0]) - 2048e-9) < 1e-15); /* 2 * 16 * 8 * 8 FLOP */
  assert_int_equal(ait_bound_main(&bounds[1]), AIT_BOUND_MEMORY);
  assert_true(fabs(ait_bound_total(&bounds[1]) - 2048e-9) < 1e-15); /* twice 512 bytes in and out: more than the caches hold */
  assert_true(fabs(ait_bound_total(&bounds[2]) - 4096e-9) < 1e-15);
  pt_ok(ait_bound_fused(g, NULL, &machine, &fused),
        "fused"); /* 128 FLOP each; relu moves nothing, tanh writes 512 bytes, served by caches */
  assert_true(fabs(fused - (2048e-9 + 128e-9 + 128e-9)) < 1e-15);
  ait_graph_destroy(g);
}

/* The two element-wise nodes belong to the step that is named after the product: its result stays inside. */
static void steps_take_what_was_fused(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(text);
  ait_profile *p = calloc(1, sizeof *p);
  ait_step_cost cost;
  p->step_count = 1;
  snprintf(p->steps[0].name, sizeof p->steps[0].name, "%s", g->first->name);
  pt_ok(ait_step_costs(g, NULL, p, &cost), "costs");
  assert_true(cost.known && cost.flops == 2048 + 2 * 128);
  assert_true(cost.bytes == 512 + 256 + 512); /* x, w, and the result */
  assert_true(cost.live_bytes == 512);
  ait_step_cost two[2];
  p->step_count = 2;
  snprintf(p->steps[1].name, sizeof p->steps[1].name, "%s", g->last->name);
  pt_ok(ait_step_costs(g, NULL, p, two), "costs");
  assert_true(two[0].flops == 2048 + 128 && two[1].flops == 128);
  assert_true(two[0].bytes == 512 + 256 + 512 && two[1].bytes == 1024);
  assert_true(two[1].live_bytes == 1024);
  free(p);
  ait_graph_destroy(g);
}

static void rooflines_are_read(void **state) {
  AIT_UNUSED(state);
  ait_roofline r;
  ait_text t;
  ait_text_init(&t, ait_allocator_default());
  ait_roofline_put(&t, &machine);
  assert_true(ait_roofline_read(t.data, &r));
  assert_true(r.threads == 1 && r.flops_per_s == 1e9 && r.cache_bytes_per_s == 1e10 && r.memory_bytes_per_s == 1e9);
  assert_true(r.cache_bytes == 1000 && r.memory_bytes == 1000000);
  ait_text_deinit(&t);
  assert_false(ait_roofline_read(NULL, &r));
  assert_false(ait_roofline_read("{}", &r));
  assert_false(ait_roofline_read("[1", &r));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_larger_of_two),
      cmocka_unit_test(modules_and_fusion),
      cmocka_unit_test(steps_take_what_was_fused),
      cmocka_unit_test(rooflines_are_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
