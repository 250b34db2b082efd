/* The fuzzer itself: it knows every core operator, its graphs are the same every time, it finds deliberate faults and makes them small. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "graph_fuzz.h"

static const gf_recipe *recipe_of(const gf_recipe *recipes, const char *op) {
  while (recipes->op && strcmp(recipes->op, op)) ++recipes;
  return recipes->op ? recipes : NULL;
}

static void every_core_operator_has_a_recipe(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < ait_op_count(); ++i) {
    const ait_op *op = ait_op_at(i);
    if (!(op->dialects & AIT_DIALECT_CORE) || op->variadic || (op->traits & AIT_OP_HIGHER)) continue;
    if (op->traits & (AIT_OP_EFFECT | AIT_OP_MADE)) continue; /* writes state, or is made by lossy passes: tests of their own */
    if (!recipe_of(gf_core_recipes, op->name)) fail_msg("core operator '%s' has no row in tests/graphs/recipes_core.c", op->name);
  }
}

static bool holds(const ait_graph *g, const char *op) {
  for (const ait_node *n = g->first; n; n = n->next)
    if (!strcmp(n->op->name, op)) return true;
  return false;
}

/* A recipe that never works would leave its operator untested without a word. */
static void every_recipe_works(void **state) {
  AIT_UNUSED(state);
  for (const gf_recipe *r = gf_core_recipes; r->op; ++r) {
    bool found = false;
    for (uint64_t seed = 1; seed < 60 && !found; ++seed) {
      ait_graph *g = gf_generate(seed, r->op);
      found = holds(g, r->op);
      ait_graph_destroy(g);
    }
    if (!found) fail_msg("'%s' was in none of 60 graphs", r->op);
  }
  for (const gf_recipe *r = gf_raw_recipes; r->op; ++r) {
    const char *op = strncmp(r->op, "inplace ", 8) ? r->op : r->op + 8;
    bool found = false;
    for (uint64_t seed = 1; seed < 400 && !found; ++seed) {
      ait_graph *g = gf_generate(seed, NULL);
      found = holds(g, op);
      ait_graph_destroy(g);
    }
    if (!found) fail_msg("'%s' was in none of 400 graphs", r->op);
  }
}

static void seeds_are_deterministic(void **state) {
  AIT_UNUSED(state);
  for (uint64_t seed = 1; seed < 20; ++seed) {
    ait_graph *a = gf_generate(seed, NULL), *b = gf_generate(seed, NULL);
    char *first = gf_text(a, seed, NULL), *second = gf_text(b, seed, NULL);
    assert_string_equal(first, second);
    free(first);
    free(second);
    ait_graph_destroy(a);
    ait_graph_destroy(b);
  }
}

/* Graphs until the broken check fails; then the small graph fails still, also when read back from its text, and is sound without the fault.
 */
static void finds_and_shrinks(const gf_check *broken, const char *op, size_t most_nodes) {
  for (uint64_t seed = 1; seed < 400; ++seed) {
    ait_graph *g = gf_generate(seed, op);
    gf_result r = gf_examine_apart(g, NULL, broken);
    if (r.verdict != GF_FAILED && r.verdict != GF_CRASHED) {
      ait_graph_destroy(g);
      continue;
    }
    ait_graph *small = gf_shrink(g, &r, broken, NULL);
    char *text = gf_text(small, seed, &r);
    ait_graph *back = gf_parse(text, strlen(text));
    if (small->node_count > most_nodes) fail_msg("%s: not small:\n%s", broken->name, text);
    assert_true(holds(small, op));
    assert_non_null(back);
    assert_int_equal(gf_examine_apart(back, NULL, broken).verdict, r.verdict);
    assert_int_equal(gf_examine_apart(back, "native", NULL).verdict, GF_PASS);
    free(text);
    ait_graph_destroy(back);
    ait_graph_destroy(small);
    ait_graph_destroy(g);
    return;
  }
  fail_msg("%s: not found", broken->name);
}

static void finds_exchanged_operands(void **state) {
  AIT_UNUSED(state);
  finds_and_shrinks(&gf_broken_checks[0], "sub", 1);
}
static void finds_a_forgotten_mask(void **state) {
  AIT_UNUSED(state);
  finds_and_shrinks(&gf_broken_checks[1], "attention", 1);
}
static void finds_a_crash(void **state) {
  AIT_UNUSED(state);
  finds_and_shrinks(&gf_broken_checks[2], "sort", 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_core_operator_has_a_recipe), cmocka_unit_test(every_recipe_works),
      cmocka_unit_test(seeds_are_deterministic),          cmocka_unit_test(finds_exchanged_operands),
      cmocka_unit_test(finds_a_forgotten_mask),           cmocka_unit_test(finds_a_crash),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
