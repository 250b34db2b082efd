/* Weights of few bits: which layers, how far the answers move, that native and the reference agree, and what stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/quantise.h"
#include "passes/testing.h"

#define TWO_LAYERS(k)                                                                                                                    \
  "graph \"m\" core\nsymbol s0 [1, 64] hint 3 backed\ninput %ids: int64[s0] user 0 \"ids\"\ninput %table: float32[40, " k "] parameter " \
  "-1 \"table\"\ninput %w: float32[50, " k "] parameter -1 \"w\"\ninput %b: float32[50] parameter -1 \"b\"\n"                            \
  "input %head: float32[40, 50] parameter -1 \"head\"\n%x: float32[s0, " k "] = embedding(%table, %ids)\n"                               \
  "%h: float32[s0, 50] = linear(%x, %w, %b)\n%g: float32[s0, 50] = silu(%h)\n%y: float32[s0, 40] = linear(%g, %head, none)\n"            \
  "output user 0 \"y\" = %y\n"

/* A router that takes the best of four experts for each row. */
#define EXPERTS(k)                                                                                                                        \
  "graph \"m\" core\nsymbol s0 [1, 64] hint 3 backed\ninput %x: float32[s0, " k "] user 0 \"x\"\ninput %router: float32[4, " k            \
  "] parameter -1 \"router\"\ninput %w: float32[4, 50, " k "] parameter -1 \"w\"\ninput %head: float32[40, 50] parameter -1 \"head\"\n"   \
  "%scores: float32[s0, 4] = linear(%x, %router, none)\n%best: float32[s0, 1], %which: int64[s0, 1] = topk(%scores, 1, -1, true, true)\n" \
  "%ids: int64[s0] = select(%which, 1, 0)\n%y: float32[s0, 50] = expert_linear(%x, %w, %ids, none, 0)\n"                                  \
  "%z: float32[s0, 50] = mul(%y, %best)\n%out: float32[s0, 40] = linear(%z, %head, none)\noutput user 0 \"y\" = %out\n"

/* Runs on a backend at three sizes; concatenated results. */
static size_t run_on(const ait_graph *g, const char *backend, float *out, size_t limit) {
  pt_run r = {0};
  size_t count = 0;
  pt_ok(ait_graph_region(g, ait_allocator_default(), &r.region), "region");
  ait_weights weights = ait_weight_store_provider(g->weights);
  pt_ok(ait_plan_compile(ait_allocator_default(), backend, NULL, r.region, weights, UINT64_MAX, "test", &r.plan), "compile");
  pt_ok(ait_model_create(ait_allocator_default(), r.region, weights, &r.plan, NULL, NULL, &r.model), "model");
  ait_session_options options;
  ait_session_options_init(&options);
  pt_ok(ait_session_create(r.model, &options, &r.session), "session");
  r.output_count = ait_model_output_count(r.model);
  for (int variant = 0; variant < 3; ++variant) {
    ait_value x[PT_MAX] = {0};
    size_t n = 0;
    assert_true(pt_inputs(r.region, variant, x, &n));
    pt_ok(pt_call(&r, x, n), "run");
    const ait_tensor *t = &r.outputs[0].as.tensor;
    size_t elements = (size_t)ait_tensor_count(t);
    assert_true(count + elements <= limit);
    memcpy(out + count, t->data, elements * sizeof *out);
    count += elements;
    pt_release(x, n);
  }
  pt_run_close(&r);
  return count;
}

static double distance(const float *got, const float *want, size_t n) { /* relative, in the 2-norm */
  double d = 0, w = 0;
  for (size_t i = 0; i < n; ++i) {
    d += ((double)got[i] - (double)want[i]) * ((double)got[i] - (double)want[i]);
    w += (double)want[i] * (double)want[i];
  }
  return sqrt(d / w);
}

static void answers_move_as_far_as_the_bits_say(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *pass;
    size_t linears, embeddings;
    double reference, native; /* largest relative distances: to the plain graph; between backends */
  } cases[] = {{"weights-bf16", 2, 0, 4e-3, 1e-6}, {"weights-int8", 2, 1, 1e-2, 1e-2}, {"weights-int4", 2, 1, 0.1, 1e-2}};
  static const char *const graphs[] = {TWO_LAYERS("64"), TWO_LAYERS("37")};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i)
    for (size_t k = 0; k < AIT_COUNT(graphs); ++k) {
      float plain[2000], reference[2000], native[2000];
      ait_graph *g = pt_parse(graphs[k]);
      size_t n = run_on(g, "reference", plain, 2000);
      pt_ok(pt_passes(g, cases[i].pass, NULL), cases[i].pass);
      assert_int_equal(pt_count(g, "weight_linear"), cases[i].linears);
      assert_int_equal(pt_count(g, "linear"), 0);
      assert_int_equal(pt_count(g, "weight_embedding"), cases[i].embeddings);
      assert_int_equal(run_on(g, "reference", reference, 2000), n);
      assert_int_equal(run_on(g, "native", native, 2000), n);
      double moved = distance(reference, plain, n), apart = distance(native, reference, n);
      if (!(moved > 1e-5 && moved < cases[i].reference)) fail_msg("%s moves answers by %g", cases[i].pass, moved);
      if (!(apart < cases[i].native)) fail_msg("%s: native differs by %g", cases[i].pass, apart);
      ait_graph_destroy(g);
    }
}

/* Experts are rounded as other products are, each row by itself; the layer that chooses them is not. */
static void experts_are_rounded_and_routers_are_not(void **state) {
  AIT_UNUSED(state);
  static const struct {
    const char *pass;
    ait_dtype dtype;
    double reference, native;
  } cases[] = {{"weights-bf16", AIT_BF16, 4e-3, 1e-6}, {"weights-int8", AIT_I8, 1e-2, 1e-2}, {"weights-int4", AIT_U8, 0.1, 1e-2}};
  static const char *const graphs[] = {EXPERTS("64"), EXPERTS("37")};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i)
    for (size_t k = 0; k < AIT_COUNT(graphs); ++k) {
      float plain[2000], floats[2000], reference[2000], native[2000];
      ait_graph *g = pt_parse(graphs[k]);
      size_t n = run_on(g, "reference", plain, 2000);
      assert_int_equal(run_on(g, "native", floats, 2000), n);
      assert_true(distance(floats, plain, n) < 1e-6);
      pt_ok(pt_passes(g, cases[i].pass, NULL), cases[i].pass);
      assert_int_equal(pt_count(g, "linear"), 1);
      const ait_value_info *w = &g->values[pt_find(g, "expert_linear")->args[1].as.value];
      assert_true(w->rank == 3 && w->dtype == cases[i].dtype);
      pt_ok(ait_graph_verify(g), "verify");
      assert_int_equal(run_on(g, "reference", reference, 2000), n);
      assert_int_equal(run_on(g, "native", native, 2000), n);
      double moved = distance(reference, plain, n), apart = distance(native, reference, n);
      if (!(moved > 1e-5 && moved < cases[i].reference)) fail_msg("%s moves answers by %g", cases[i].pass, moved);
      if (!(apart < cases[i].native)) fail_msg("%s: native differs by %g", cases[i].pass, apart);
      ait_graph_destroy(g);
    }
}

static void cut_to_bf16(ait_graph *g) {
  for (size_t i = 0; i < ait_weight_store_storage_count(g->weights); ++i) {
    ait_storage *s = ait_weight_store_storage(g->weights, (uint32_t)i);
    uint32_t *bits = ait_storage_data(s);
    for (size_t k = 0; k < ait_storage_bytes(s) / 4; ++k) bits[k] &= 0xffff0000u;
  }
}

/* bfloat16 weights are exact in bfloat16: nothing moves. */
static void exact_weights_stay_exact(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(TWO_LAYERS("64"));
  cut_to_bf16(g);
  ait_graph_destroy(pt_transformed(g, "weights-bf16", 0, NULL));
}

/* A table that is kept is stored as bfloat16 where that is exact, and where nobody else needs it in float32. */
static void exact_tables(void **state) {
  AIT_UNUSED(state);
  static const char shared[] = "graph \"m\" core\nsymbol s0 [1, 64] hint 3 backed\ninput %ids: int64[s0] user 0 \"ids\"\n"
                               "input %table: float32[40, 64] parameter -1 \"table\"\n%x: float32[s0, 64] = embedding(%table, %ids)\n"
                               "%y: float32[s0, 40] = linear(%x, %table, none)\noutput user 0 \"y\" = %y\n";
  static const struct {
    const char *text;
    bool cut, others;
    size_t stored;
  } cases[] = {{TWO_LAYERS("64"), true, false, 1}, {TWO_LAYERS("64"), false, true, 0}, {shared, true, false, 0}, {shared, true, true, 1}};
  ait_pass_context context = {.allocator = ait_allocator_default()};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    float before[2000], after[2000];
    bool changed = false;
    ait_quantise_options options = {.exact_tables = true, .exact_shared_tables = cases[i].others};
    ait_graph *g = pt_parse(cases[i].text);
    if (cases[i].cut) cut_to_bf16(g);
    size_t n = run_on(g, "native", before, 2000);
    pt_ok(ait_graph_quantise(g, &context, &options, &changed), "quantise");
    assert_int_equal(changed, cases[i].stored > 0);
    assert_int_equal(pt_count(g, "weight_embedding"), cases[i].stored);
    assert_int_equal(pt_count(g, "weight_linear"), 0);
    pt_ok(ait_graph_verify(g), "verify");
    assert_int_equal(run_on(g, "native", after, 2000), n);
    assert_memory_equal(after, before, n * sizeof *after);
    ait_graph_destroy(g);
  }
}

static void choices_are_obeyed(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(TWO_LAYERS("64"));
  ait_pass_context context = {.allocator = ait_allocator_default()};
  bool changed = false;
  pt_ok(ait_graph_quantise(g, &context, &(ait_quantise_options){.linear = AIT_WEIGHTS_INT4, .group = 128}, &changed), "quantise");
  assert_true(changed);
  assert_int_equal(pt_count(g, "weight_linear"), 1);
  assert_int_equal(pt_count(g, "linear"), 1); /* the head */
  assert_int_equal(pt_count(g, "embedding"), 1);
  const ait_node *n = pt_find(g, "weight_linear");
  assert_int_equal(n->args[4].as.i, 128);
  assert_int_equal(g->values[n->args[1].as.value].dtype, AIT_U8);
  pt_ok(ait_graph_verify(g), "verify");
  ait_graph_destroy(g);
}

static void what_does_not_fit_stays(void **state) {
  AIT_UNUSED(state);
  pt_notes notes;
  ait_graph *g = pt_parse("graph \"m\" core\ninput %x: float32[2, 8] user 0 \"x\"\ninput %w: float32[4, 8] user 1 \"w\"\n"
                          "%y: float32[2, 4] = linear(%x, %w, none)\noutput user 0 \"y\" = %y\n");
  g = pt_transformed(g, "weights-int8", 0, &notes);
  assert_true(pt_noted(&notes, "weight-not-constant"));
  ait_graph_destroy(g);
  g = pt_parse("graph \"m\" core\ninput %x: bfloat16[2, 8] user 0 \"x\"\ninput %w: bfloat16[4, 8] parameter -1 \"w\"\n"
               "%y: bfloat16[2, 4] = linear(%x, %w, none)\noutput user 0 \"y\" = %y\n");
  g = pt_transformed(g, "weights-int8", 0, &notes);
  assert_true(pt_noted(&notes, "input-not-float32"));
  ait_graph_destroy(g);
  g = pt_parse("graph \"m\" core\ninput %x: float32[2, 1] user 0 \"x\"\ninput %w: float32[1, 1] parameter -1 \"w\"\n"
               "%y: float32[2, 1] = linear(%x, %w, none)\noutput user 0 \"y\" = %y\n");
  *(float *)ait_storage_data(ait_weight_store_storage(g->weights, 0)) = INFINITY;
  g = pt_transformed(g, "weights-int8", 0, &notes);
  assert_true(pt_noted(&notes, "weight-not-finite"));
  ait_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_move_as_far_as_the_bits_say),
      cmocka_unit_test(experts_are_rounded_and_routers_are_not),
      cmocka_unit_test(exact_weights_stay_exact),
      cmocka_unit_test(exact_tables),
      cmocka_unit_test(choices_are_obeyed),
      cmocka_unit_test(what_does_not_fit_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
