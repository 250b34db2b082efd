/* Spelled-out attention becomes one node with its mask; where the mask may be minus infinity for a whole row, it stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/testing.h"

/* q, k^T and v as inputs; `mask` declares what `scores` uses; `scores` turns %qk into %s; softmax over `dim`. */
static ait_graph *model(const char *mask, const char *scores, int dim) {
  char text[2000];
  snprintf(text, sizeof text,
           "graph \"m\" core\nsymbol s0 [2, 64] hint 5 backed\n"
           "input %%q: float32[2, 3, s0, 8] user 0 \"q\"\ninput %%k: float32[2, 3, 8, s0] user 1 \"k\"\ninput %%v: float32[2, 3, s0, 8] "
           "user 2 \"v\"\n%s"
           "%%qk: float32[2, 3, s0, s0] = matmul(%%q, %%k)\n%s"
           "%%p: float32[2, 3, s0, s0] = softmax(%%s, %d)\n%%y: float32[2, 3, s0, 8] = matmul(%%p, %%v)\noutput user 0 \"y\" = %%y\n",
           mask, scores, dim);
  return pt_parse(text);
}

static ait_graph *fused(const char *mask, const char *scores, bool has_mask, double scale) {
  pt_notes notes;
  ait_graph *g = pt_transformed(model(mask, scores, -1), "attention,dce", 1e-5, &notes);
  const ait_node *n = pt_find(g, "attention");
  if (!n) fail_msg("no attention: %s%s", mask, scores);
  assert_int_equal(pt_count(g, "softmax"), 0);
  assert_int_equal(n->args[3].kind == AIT_ARG_VALUE, has_mask);
  assert_true(fabs(n->args[5].as.f - scale) < 1e-9);
  return g;
}

static void declined(const char *mask, const char *scores, int dim, const char *note) {
  pt_notes notes;
  ait_graph *g = pt_transformed(model(mask, scores, dim), "attention,dce", 0, &notes);
  assert_int_equal(pt_count(g, "attention"), 0);
  assert_int_equal(pt_count(g, "softmax"), 1);
  if (note && !pt_noted(&notes, note)) fail_msg("no note '%s': %s%s", note, mask, scores);
  ait_graph_destroy(g);
}

static void scales(void **state) {
  AIT_UNUSED(state);
  ait_graph_destroy(fused("", "%s: float32[2, 3, s0, s0] = mul(%qk, 0.25)\n", false, 0.25));
  ait_graph_destroy(fused("", "%s: float32[2, 3, s0, s0] = div(%qk, 4)\n", false, 0.25));
  declined("", "%s: float32[2, 3, s0, s0] = div(4, %qk)\n", -1, NULL);
  declined("", "%s: float32[2, 3, s0, s0] = div(%qk, 0)\n", -1, NULL);
  declined("", "%s: float32[2, 3, s0, s0] = add(%qk, 1)\n", -1, NULL);
}

static const char where_mask[] =
    "input %b: bool[2, 1, 1, s0] user 3 \"b\"\ninput %z: float32[] constant -1 \"z\"\ninput %l: float32[] constant -1 \"l\"\n";

static void masks_from_constants(void **state) {
  AIT_UNUSED(state);
  ait_graph_destroy(fused(where_mask, "%m: float32[2, 1, 1, s0] = where(%b, %z, %l)\n%s: float32[2, 3, s0, s0] = add(%qk, %m)\n", true, 1));
  ait_graph_destroy(fused("input %b: bool[2, 1, 1, s0] user 3 \"b\"\n",
                          "%f: float32[2, 1, 1, s0] = cast(%b, float32)\n%i: float32[2, 1, 1, s0] = sub(1, %f)\n%m: float32[2, 1, 1, s0] = "
                          "mul(%i, -3.4028234663852886e+38)\n"
                          "%s: float32[2, 3, s0, s0] = add(%m, %qk)\n",
                          true, 1));
}

static void where_over_scores(void **state) {
  AIT_UNUSED(state);
  static const char bool_mask[] = "input %b: bool[2, 1, s0, s0] user 3 \"b\"\n";
  ait_graph_destroy(fused(bool_mask,
                          "%h: float32[2, 3, s0, s0] = mul(%qk, 0.5)\n%s: float32[2, 3, s0, s0] = where(%b, %h, -3.4028234663852886e+38)\n",
                          true, 0.5));
  declined(bool_mask, "%s: float32[2, 3, s0, s0] = where(%b, %qk, -inf)\n", -1, "attention-mask-unproven");
  declined(bool_mask, "%s: float32[2, 3, s0, s0] = where(%b, %qk, -10000.0)\n", -1, "attention-mask-unproven");
  declined(bool_mask, "%s: float32[2, 3, s0, s0] = where(%b, -3.4028234663852886e+38, %qk)\n", -1, NULL);
}

static void unproven_masks_are_declined(void **state) {
  AIT_UNUSED(state);
  declined("input %m: float32[2, 1, s0, s0] user 3 \"m\"\n", "%s: float32[2, 3, s0, s0] = add(%qk, %m)\n", -1, "attention-mask-unproven");
  declined("input %b: bool[s0, s0] user 3 \"b\"\n",
           "%m: float32[s0, s0] = where(%b, 0.0, -inf)\n%s: float32[2, 3, s0, s0] = add(%qk, %m)\n", -1, "attention-mask-unproven");
  /* a buffer that the model writes may hold anything */
  declined("input %m: float32[1, 1, 1, 1] buffer -1 \"m\" mutated\n", "%s: float32[2, 3, s0, s0] = add(%qk, %m)\n", -1,
           "attention-mask-unproven");
  /* finite numbers that add up to infinity */
  declined("input %b: bool[s0, s0] user 3 \"b\"\n",
           "%m: float32[s0, s0] = where(%b, 0.0, -3.4028234663852886e+38)\n%n: float32[s0, s0] = add(%m, %m)\n%s: float32[2, 3, s0, s0] = "
           "add(%qk, %n)\n",
           -1, "attention-mask-unproven");
}

static void constant_masks(void **state) {
  AIT_UNUSED(state);
  for (int infinite = 0; infinite < 2; ++infinite) {
    char text[600];
    snprintf(text, sizeof text,
             "graph \"m\" core\ninput %%q: float32[1, 2, 1, 4] user 0 \"q\"\ninput %%k: float32[1, 2, 4, 1] user 1 \"k\"\ninput %%v: "
             "float32[1, 2, 1, 4] user 2 \"v\"\n"
             "input %%m: float32[1, 1] constant -1 \"m\"\n%%qk: float32[1, 2, 1, 1] = matmul(%%q, %%k)\n%%s: float32[1, 2, 1, 1] = "
             "add(%%qk, %%m)\n"
             "%%p: float32[1, 2, 1, 1] = softmax(%%s, -1)\n%%y: float32[1, 2, 1, 4] = matmul(%%p, %%v)\noutput user 0 \"y\" = %%y\n");
    ait_graph *g = pt_parse_only(text);
    pt_weight_number(g, "m", infinite ? -INFINITY : -1e9, 2);
    pt_notes notes;
    g = pt_transformed(g, "attention,dce", 1e-6, &notes);
    assert_int_equal(pt_count(g, "attention"), !infinite);
    assert_int_equal(pt_noted(&notes, "attention-mask-unproven"), infinite);
    ait_graph_destroy(g);
  }
}

static void other_shapes_are_declined(void **state) {
  AIT_UNUSED(state);
  declined("", "%s: float32[2, 3, s0, s0] = mul(%qk, 1)\n", 2, NULL); /* softmax over queries */
  /* batch of k is broadcast */
  static const char text[] =
      "graph \"m\" core\ninput %q: float32[2, 3, 5, 8] user 0 \"q\"\ninput %k: float32[1, 3, 8, 5] user 1 \"k\"\ninput %v: float32[2, 3, "
      "5, 8] user 2 \"v\"\n"
      "%qk: float32[2, 3, 5, 5] = matmul(%q, %k)\n%p: float32[2, 3, 5, 5] = softmax(%qk, -1)\n%y: float32[2, 3, 5, 8] = matmul(%p, %v)\n"
      "output user 0 \"y\" = %y\n";
  ait_graph *g = pt_transformed(pt_parse(text), "attention,dce", 0, NULL);
  assert_int_equal(pt_count(g, "attention"), 0);
  ait_graph_destroy(g);
  /* three dimensions */
  pt_notes notes;
  g = pt_transformed(pt_parse("graph \"m\" core\ninput %q: float32[3, 5, 8] user 0 \"q\"\ninput %k: float32[3, 8, 5] user 1 \"k\"\ninput "
                              "%v: float32[3, 5, 8] user 2 \"v\"\n"
                              "%qk: float32[3, 5, 5] = matmul(%q, %k)\n%p: float32[3, 5, 5] = softmax(%qk, -1)\n%y: float32[3, 5, 8] = "
                              "matmul(%p, %v)\noutput user 0 \"y\" = %y\n"),
                     "attention,dce", 0, &notes);
  assert_int_equal(pt_count(g, "attention"), 0);
  assert_true(pt_noted(&notes, "attention-rank"));
  ait_graph_destroy(g);
}

/* The mask makes the batch: q, k and v alone would give one row of it. */
static void mask_that_widens_is_declined(void **state) {
  AIT_UNUSED(state);
  static const char *const masks[] = {"%s: float32[4, 3, 5, 5] = add(%qk, %m)\n",
                                      "%s: float32[4, 3, 5, 5] = where(%b, %qk, -3.4028234663852886e+38)\n"};
  for (size_t i = 0; i < AIT_COUNT(masks); ++i) {
    char text[1200];
    snprintf(text, sizeof text,
             "graph \"m\" core\ninput %%q: float32[1, 3, 5, 8] user 0 \"q\"\ninput %%k: float32[1, 3, 8, 5] user 1 \"k\"\ninput %%v: "
             "float32[1, 3, 5, 8] user 2 \"v\"\n"
             "input %%b: bool[4, 1, 5, 5] user 3 \"b\"\n%%m: float32[4, 1, 5, 5] = cast(%%b, float32)\n%%qk: float32[1, 3, 5, 5] = "
             "matmul(%%q, %%k)\n%s"
             "%%p: float32[4, 3, 5, 5] = softmax(%%s, -1)\n%%y: float32[4, 3, 5, 8] = matmul(%%p, %%v)\noutput user 0 \"y\" = %%y\n",
             masks[i]);
    ait_graph *g = pt_transformed(pt_parse(text), "attention,dce", 0, NULL);
    assert_int_equal(pt_count(g, "attention"), 0);
    ait_graph_destroy(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scales),
      cmocka_unit_test(masks_from_constants),
      cmocka_unit_test(where_over_scores),
      cmocka_unit_test(unproven_masks_are_declined),
      cmocka_unit_test(constant_masks),
      cmocka_unit_test(other_shapes_are_declined),
      cmocka_unit_test(mask_that_widens_is_declined),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
