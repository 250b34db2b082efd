/* Mixed plans: where models are cut, and which engine each part gets. That parts together do what the whole does is checked on random
 * graphs (tests/graphs, checks "parts"). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "passes/testing.h"
#include "tune/mix.h"

/* ---- choosing: against all assignments ---- */
static uint64_t seed = 7;
static double random_seconds(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(seed >> 40) / (double)(1 << 24);
}

static double cost_of(double seconds[AIT_MIX_ENGINES][AIT_PARTS_MAX], const double *saving, uint32_t parts, const int *pins,
                      const uint8_t *choice) {
  double total = 0;
  for (uint32_t p = 0; p < parts; ++p) {
    if (pins[p] >= 0 && pins[p] != choice[p]) return INFINITY;
    total += seconds[choice[p]][p] - (p && choice[p] == choice[p - 1] ? saving[choice[p]] : 0);
  }
  return total;
}

static void chooses_the_cheapest(void **state) {
  AIT_UNUSED(state);
  enum { ENGINES = 3, PARTS = 6, ALL = 729 };
  for (int round = 0; round < 200; ++round) {
    double seconds[AIT_MIX_ENGINES][AIT_PARTS_MAX], saving[AIT_MIX_ENGINES], best = INFINITY;
    int pins[AIT_PARTS_MAX];
    uint8_t choice[AIT_PARTS_MAX], tried[AIT_PARTS_MAX];
    for (int e = 0; e < ENGINES; ++e) {
      saving[e] = 0.5 * random_seconds();
      for (int p = 0; p < PARTS; ++p) seconds[e][p] = e > 0 && random_seconds() < 0.2 ? INFINITY : random_seconds() + 0.5;
    }
    for (int p = 0; p < PARTS; ++p) pins[p] = random_seconds() < 0.1 ? (int)(random_seconds() * ENGINES) : -1;
    for (int code = 0; code < ALL; ++code) {
      for (int p = 0, rest = code; p < PARTS; ++p, rest /= ENGINES) tried[p] = (uint8_t)(rest % ENGINES);
      best = fmin(best, cost_of(seconds, saving, PARTS, pins, tried));
    }
    double total = ait_mix_choose(seconds, saving, ENGINES, PARTS, pins, choice);
    if (isinf(best)) {
      assert_true(isinf(total));
      continue;
    }
    assert_true(fabs(total - best) < 1e-9);
    assert_true(fabs(cost_of(seconds, saving, PARTS, pins, choice) - best) < 1e-9);
  }
}

/* ---- cutting ----------------------------------------------------------------------------------------------------------------- */
#define NODE(out, in, module) "%" out ": float32[s0, 2] = tanh(%" in ") module \"" module "\"\n"
#define HEAD                                                                                                                           \
  "graph \"m\" core\nsymbol s0 [1, 64] hint 4 backed\nmodule \"a\" \"A\" calls 1\nmodule \"a.x\" \"X\" calls 1\nmodule \"a.y\" \"Y\" " \
  "calls 1\n"                                                                                                                          \
  "module \"b\" \"B\" calls 1\ninput %x: float32[s0, 2] user 0 \"x\"\n"

static void cut(const char *text, const char *const *pins, uint32_t pin_count, const char *want) {
  ait_graph *g = pt_parse(text);
  ait_region *r;
  ait_parts parts;
  uint32_t cuts[AIT_PARTS_MAX], count;
  char got[256] = "";
  pt_ok(ait_graph_region(g, ait_allocator_default(), &r), "region");
  count = ait_parts_find(r, pins, pin_count, cuts);
  pt_ok(ait_parts_create(ait_allocator_default(), r, cuts, count, &parts), "parts");
  for (uint32_t p = 0; p < parts.count; ++p) {
    size_t n = strlen(got);
    snprintf(got + n, sizeof got - n, "%s%s:%u", p ? " " : "", parts.items[p].module, parts.items[p].end - parts.items[p].begin);
  }
  assert_string_equal(got, want);
  ait_parts_deinit(&parts);
  ait_graph_region_destroy(ait_allocator_default(), r);
  ait_graph_destroy(g);
}

static void cuts_where_modules_meet(void **state) {
  AIT_UNUSED(state);
  static const char *const pin[] = {"a"};
  cut(HEAD NODE("p", "x", "a.x") NODE("q", "p", "a.y") NODE("r", "q", "b") "output user 0 \"r\" = %r\n", NULL, 0, "a.x:1 a.y:1 b:1");
  cut(HEAD NODE("p", "x", "a.x") NODE("q", "p", "a.x") NODE("r", "q", "b") "output user 0 \"r\" = %r\n", NULL, 0, "a.x:2 b:1");
  /* nodes of the root stay with what came before */
  cut(HEAD NODE("p", "x", "a.x") NODE("q", "p", "") NODE("r", "q", "b") "output user 0 \"r\" = %r\n", NULL, 0, "a.x:2 b:1");
  cut(HEAD NODE("p", "x", "b") NODE("q", "p", "b") "output user 0 \"q\" = %q\n", NULL, 0, "b:2");
  cut(HEAD NODE("p", "x", "a") NODE("q", "p", "b") "output user 0 \"q\" = %q\n", pin, 1, "a:1 b:1");
  assert_true(ait_module_within("a.x", "a") && ait_module_within("a", "a") && !ait_module_within("ab", "a") && ait_module_within("a", ""));
}

static void parts_know_what_crosses(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(HEAD NODE("p", "x", "a")
                              NODE("q", "p", "b") "%s: float32[s0, 2] = add(%q, %p) module \"b\"\n"
                                                  "output user 0 \"p\" = %p\noutput user 1 \"x\" = %x\noutput user 2 \"s\" = %s\n");
  ait_region *r;
  ait_parts parts;
  pt_ok(ait_graph_region(g, ait_allocator_default(), &r), "region");
  pt_ok(ait_parts_create(ait_allocator_default(), r, (const uint32_t[]){1}, 1, &parts), "parts");
  assert_int_equal(parts.value_count, 3); /* x, p, s */
  const ait_part *a = &parts.items[0], *b = &parts.items[1];
  assert_int_equal(a->region.input_count, 1);
  assert_int_equal(a->inputs[0], 0);
  assert_int_equal(a->region.output_count, 1);
  assert_int_equal(b->region.input_count, 1); /* p once, though two nodes read it */
  assert_int_equal(b->inputs[0], a->outputs[0]);
  assert_int_equal(b->region.output_count, 1);
  assert_int_equal(parts.results[0], a->outputs[0]);
  assert_int_equal(parts.results[1], 0); /* the input itself */
  assert_int_equal(parts.results[2], b->outputs[0]);
  ait_parts_deinit(&parts);
  ait_graph_region_destroy(ait_allocator_default(), r);
  ait_graph_destroy(g);
}

/* A size and a number among the results are made by the last part. */
static void sizes_are_results(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(HEAD NODE("p", "x", "a")
                              NODE("q", "p", "b") "output user 0 \"n\" = {s0*2}\noutput user 1 \"q\" = %q\noutput user 2 \"k\" = 7\n"
                                                  "output user 3 \"none\" = none\n");
  ait_region *r;
  ait_parts parts;
  pt_ok(ait_graph_region(g, ait_allocator_default(), &r), "region");
  pt_ok(ait_parts_create(ait_allocator_default(), r, (const uint32_t[]){1}, 1, &parts), "parts");
  const ait_part *b = &parts.items[1];
  assert_int_equal(b->region.output_count, 3);
  assert_int_equal(parts.results[1], b->outputs[0]);
  assert_int_equal(parts.results[0], b->outputs[1]);
  assert_int_equal(parts.results[2], b->outputs[2]);
  assert_int_equal(parts.results[3], AIT_NO_INDEX);
  ait_parts_deinit(&parts);
  ait_graph_region_destroy(ait_allocator_default(), r);
  ait_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(chooses_the_cheapest), cmocka_unit_test(cuts_where_modules_meet),
                                     cmocka_unit_test(parts_know_what_crosses), cmocka_unit_test(sizes_are_results)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
