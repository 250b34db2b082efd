/* Writes through views become pure values with the same effect; what cannot be told is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/testing.h"

#define HEAD "graph \"m\" raw\nsymbol s0 [2, 64] hint 4 backed\n"
#define X "input %x: float32[s0, 6] user 0 \"x\"\n"
#define XM "input %x: float32[s0, 6] user 0 \"x\" mutated\n"
#define STATE "input %b: float32[4, 6] buffer -1 \"b\" mutated\n"
#define COPY "%c: float32[s0, 6] = aten.clone(%x)\n"

static const char passes[] = "inline,views,functionalise";

/* Pure: nothing in place is left. */
static void check(const char *text) {
  pt_notes notes;
  ait_graph *g = pt_transformed(pt_parse(text), passes, 0, &notes);
  for (const ait_node *n = g->first; n; n = n->next) assert_false(n->flags & AIT_NODE_INPLACE);
  ait_graph_destroy(g);
  g = pt_transformed(pt_parse(text), "eager", 0, NULL);
  ait_graph_destroy(pt_transformed(g, "core", 0, NULL));
}

static void writes_through_views(void **state) {
  AIT_UNUSED(state);
  check(HEAD X COPY "%a: float32[s0, 6] = inplace aten.add.Tensor(%c, 1)\noutput user 0 \"y\" = %a\noutput user 1 \"z\" = %c\n");
  check(HEAD X COPY "%v: float32[s0, 2] = aten.slice.Tensor(%c, 1, 1, 5, 2)\n%a: float32[s0, 2] = inplace aten.mul.Tensor(%v, 3)\n"
                    "output user 0 \"y\" = %c\noutput user 1 \"v\" = %v\n");
  check(HEAD X COPY
        "%v: float32[6] = aten.select.int(%c, 0, -1)\n%a: float32[6] = inplace aten.add.Tensor(%v, %v)\noutput user 0 \"y\" = %c\n");
  check(HEAD X COPY "%v: float32[6, s0] = aten.permute(%c, [1, 0])\n%r: float32[s0] = aten.select.int(%v, 0, 2)\n"
                    "%a: float32[s0] = inplace aten.neg(%r)\noutput user 0 \"y\" = %c\noutput user 1 \"v\" = %v\n");
  check(HEAD X COPY "%v: float32[s0, 2, 3] = aten.view(%c, [{s0}, 2, 3])\n%r: float32[s0, 3] = aten.select.int(%v, 1, 1)\n"
                    "%a: float32[s0, 3] = inplace aten.mul.Tensor(%r, %r)\noutput user 0 \"y\" = %c\n");
  check(HEAD X COPY "%v: float32[6, s0] = aten.t(%c)\n%u: float32[6, 1, s0] = aten.unsqueeze(%v, 1)\n"
                    "%a: float32[6, 1, s0] = inplace aten.sigmoid(%u)\n%q: float32[6, s0] = aten.squeeze.dim(%u, 1)\noutput user 0 \"y\" = "
                    "%c\noutput user 1 \"q\" = %q\n");
}

/* Views of one tensor see each other's writes, in program order. */
static void views_that_overlap(void **state) {
  AIT_UNUSED(state);
  check(HEAD X COPY "%l: float32[s0, 4] = aten.slice.Tensor(%c, 1, 0, 4)\n%r: float32[s0, 4] = aten.slice.Tensor(%c, 1, 2, 6)\n"
                    "%a: float32[s0, 4] = inplace aten.add.Tensor(%l, 1)\n%b: float32[s0, 4] = inplace aten.mul.Tensor(%r, 2)\n"
                    "%d: float32[s0, 4] = inplace aten.add.Tensor(%l, %r)\noutput user 0 \"y\" = %c\noutput user 1 \"l\" = %l\noutput user "
                    "2 \"r\" = %b\n");
  /* the read before the write keeps the old contents */
  check(HEAD X COPY "%v: float32[s0, 4] = aten.slice.Tensor(%c, 1, 0, 4)\n%s: float32[s0, 4] = aten.exp(%v)\n"
                    "%a: float32[s0, 6] = inplace aten.zero(%c)\n%t: float32[s0, 4] = aten.exp(%v)\noutput user 0 \"s\" = %s\noutput user "
                    "1 \"t\" = %t\n");
  check(HEAD X COPY
        "%p: list(float32[s0, 3], float32[s0, 3]) = aten.split.Tensor(%c, 3, 1)\n%l: float32[s0, 3] = _operator.getitem(%p, 0)\n"
        "%a: float32[s0, 3] = inplace aten.fill.Scalar(%l, 7)\n%r: float32[s0, 3] = _operator.getitem(%p, 1)\noutput user 0 \"y\" = "
        "%c\noutput user 1 \"r\" = %r\n");
}

static void diagonals(void **state) {
  AIT_UNUSED(state);
  check(HEAD X "input %k: float32[4, 6] user 1 \"k\"\n%c: float32[4, 6] = aten.clone(%k)\n%d: float32[4] = aten.diagonal(%c, 1)\n"
               "%a: float32[4] = inplace aten.add.Tensor(%d, 7)\n%e: float32[4, 6] = aten.neg(%c)\noutput user 0 \"y\" = %c\n"
               "output user 1 \"e\" = %e\noutput user 2 \"d\" = %d\noutput user 3 \"x\" = %x\n");
}

static void state_and_inputs(void **state) {
  AIT_UNUSED(state);
  check(HEAD X STATE "%a: float32[4, 6] = inplace aten.add.Tensor(%b, 1)\n%v: float32[6] = aten.select.int(%b, 0, 1)\n"
                     "%d: float32[6] = inplace aten.mul.Tensor(%v, 2)\noutput user 0 \"y\" = %v\n");
  check(HEAD XM "%v: float32[6] = aten.select.int(%x, 0, 0)\n%a: float32[6] = inplace aten.add.Tensor(%v, 5)\n%s: float32[s0, 6] = "
                "aten.neg(%x)\noutput user 0 \"y\" = %s\n");
  /* float64 operands into a float32 tensor: the written tensor keeps its dtype */
  check(HEAD X "input %d: float64[6] user 1 \"d\"\n" COPY
               "%a: float32[s0, 6] = inplace aten.add.Tensor(%c, %d)\noutput user 0 \"y\" = %a\n");
  ait_graph *g = pt_parse(HEAD X STATE "%a: float32[4, 6] = inplace aten.add.Tensor(%b, 1)\noutput user 0 \"y\" = %x\n");
  pt_ok(pt_passes(g, passes, NULL), passes);
  assert_int_equal(g->output_count, 2);
  assert_int_equal(g->outputs[1].kind, AIT_OUTPUT_STATE);
  assert_string_equal(g->outputs[1].name, "b");
  ait_graph_destroy(g);
}

static void refusals(void **state) {
  AIT_UNUSED(state);
  pt_refused(HEAD X
             "%c: float32[6] = aten.select.int(%x, 0, 0)\n%k: float32[6] = aten.clone(%c)\n%v: float32[3, 6] = aten.expand(%k, [3, 6])\n"
             "%a: float32[3, 6] = inplace aten.add.Tensor(%v, 1)\noutput user 0 \"y\" = %k\n",
             passes, "no inverse");
  pt_refused(HEAD X COPY "%v: float32[2, 2] = aten.as_strided(%c, [2, 2], [1, 1])\n%a: float32[2, 2] = inplace aten.add.Tensor(%v, "
                         "1)\noutput user 0 \"y\" = %c\n",
             passes, "cannot be made functional");
  /* reshape may or may not alias: the write through it makes the base unreadable */
  pt_refused(HEAD X "%t: float32[6, s0] = aten.permute(%x, [1, 0])\n%v: float32[6*s0] = aten.reshape(%t, [{6*s0}])\n%a: float32[6*s0] = "
                    "inplace aten.add.Tensor(%v, 1)\n"
                    "%s: float32[s0, 6] = aten.neg(%x)\noutput user 0 \"y\" = %s\n",
             passes, "may or may not");
  /* and so does reading it after its base was written */
  pt_refused(HEAD X COPY "%v: float32[s0, 6] = aten.contiguous(%c)\n%a: float32[s0, 6] = inplace aten.add.Tensor(%c, 1)\n%s: float32[s0, "
                         "6] = aten.neg(%v)\noutput user 0 \"y\" = %s\n",
             "functionalise", "may or may not");
}

/* Two names of one storage, one of them written: the other would have to change, too. */
/* Training mode: the statistics of the batch, and new running statistics, which are state of the model and kept between calls. */
static void running_statistics_are_state(void **state) {
  AIT_UNUSED(state);
  const char *head = "graph \"g\" raw\nsymbol s0 [2, 64] hint 4 backed\ninput %x: float32[s0, 3, 2] user 0 \"x\"\n"
                     "input %m: float32[3] buffer -1 \"mean\" mutated\ninput %v: float32[3] buffer -1 \"var\" mutated\n";
  const char *const nodes[] = {
      "%y: float32[s0, 3, 2] = aten.batch_norm(%x, none, none, %m, %v, true, 0.1, 1e-05, true)\n",
      "%y: float32[s0, 3, 2], %a: float32[3], %b: float32[3] = aten.native_batch_norm(%x, none, none, %m, %v, true, 0.1, 1e-05)\n",
      "%y: float32[s0, 3, 2], %a: float32[3], %b: float32[3] = aten._native_batch_norm_legit(%x, none, none, %m, %v, true, 0.1, 1e-05)\n",
      "%y: float32[s0, 3, 2], %a: float32[3], %b: float32[3], %c: uint8[0] = aten._batch_norm_with_update(%x, none, none, %m, %v, 0.1, "
      "1e-05)\n",
      /* out of training it only reads */
      "%y: float32[s0, 3, 2], _, _ = aten._native_batch_norm_legit(%x, none, none, %m, %v, false, 0.1, 1e-05)\n"};
  for (size_t i = 0; i < AIT_COUNT(nodes); ++i) {
    char text[1024];
    /* the result is written, too, and a running statistic is read afterwards */
    snprintf(text, sizeof text,
             "%s%s%%r: float32[s0, 3, 2] = inplace aten.relu(%%y)\n%%n: float32[3] = aten.neg(%%m)\noutput user 0 \"r\" = %%r\n"
             "output user 1 \"n\" = %%n\n%s",
             head, nodes[i], i == 3 ? "output user 2 \"c\" = %c\n" : "");
    ait_graph *g = pt_transformed(pt_parse(text), "functionalise", 0, NULL);
    size_t states = 0;
    for (size_t k = 0; k < g->output_count; ++k) states += g->outputs[k].kind == AIT_OUTPUT_STATE;
    assert_int_equal(states, i < 4 ? 2 : 0);
    ait_graph_destroy(pt_transformed(g, "lower,dce", 0, NULL));
  }
  pt_refused("graph \"g\" raw\ninput %x: float32[2, 3, 2] user 0 \"x\"\ninput %m: float32[3] buffer -1 \"mean\" mutated\n"
             "input %v: float32[3] buffer -1 \"var\" mutated\n"
             "%y: float32[2, 3, 2] = aten.instance_norm(%x, none, none, %m, %v, true, 0.1, 1e-05, true)\noutput user 0 \"y\" = %y\n",
             "functionalise", "running statistics");
}

/* Without running statistics training mode writes nothing. */
static void batch_statistics_alone_are_pure(void **state) {
  AIT_UNUSED(state);
  ait_graph *g =
      pt_parse("graph \"g\" raw\ninput %x: float32[4, 3] user 0 \"x\"\n"
               "%y: float32[4, 3] = aten.batch_norm(%x, none, none, none, none, true, 0.1, 1e-05, true)\noutput user 0 \"y\" = %y\n");
  ait_graph_destroy(pt_transformed(g, "core", 0, NULL));
}

static void other_shapes_in_place(void **state) {
  AIT_UNUSED(state);
  const char *head = "graph \"g\" raw\nsymbol s0 [1, 64] hint 4 backed\ninput %x: float32[s0, 1, 3] user 0 \"x\"\n%c: float32[s0, 1, 3] = "
                     "aten.clone(%x)\n";
  const char *const nodes[] = {
      "%v: float32[s0, 3] = inplace aten.squeeze.dim(%c, 1)\n%w: float32[s0, 3] = inplace aten.add.Tensor(%v, 1)\n"
      "%y: float32[s0, 3] = aten.neg(%v)\noutput user 0 \"y\" = %y\noutput user 1 \"w\" = %w\n",
      "%v: float32[3, 1, s0] = inplace aten.transpose.int(%c, 0, 2)\n%w: float32[3, 1, s0] = inplace aten.relu(%v)\noutput user 0 \"y\" = "
      "%v\n",
      "%v: float32[2, 1] = inplace aten.resize(%c, [2, 1])\n%w: float32[2, 1] = inplace aten.relu(%v)\noutput user 0 \"y\" = %v\n"};
  for (size_t i = 0; i < AIT_COUNT(nodes); ++i) {
    char text[1024];
    snprintf(text, sizeof text, "%s%s", head, nodes[i]);
    ait_graph_destroy(pt_transformed(pt_parse(text), "core", 0, NULL));
  }
}

static void pow_has_its_own_name(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse("graph \"g\" raw\ninput %x: float32[4, 3] user 0 \"x\" mutated\n"
                          "%y: float32[4, 3] = aten.pow_.Scalar(%x, 2)\noutput user 0 \"y\" = %y\n");
  ait_graph_destroy(pt_transformed(g, "functionalise", 0, NULL));
}

static void shared_storage_is_refused(void **state) {
  AIT_UNUSED(state);
  ait_graph *g =
      pt_parse_only(HEAD X STATE "input %o: float32[4, 6] parameter -1 \"other\"\n%a: float32[4, 6] = inplace aten.add.Tensor(%b, 1)\n"
                                 "%s: float32[4, 6] = aten.neg(%o)\noutput user 0 \"y\" = %s\n");
  int64_t shape[2] = {4, 6};
  uint64_t seed = 1;
  ait_tensor t;
  pt_ok(ait_tensor_create(ait_allocator_default(), AIT_F32, 2, shape, &t), "t");
  pt_fill(&t, &seed, false);
  pt_add_weight(g, "b", &t);
  ait_weight shared = *ait_weight_store_find(g->weights, "b");
  shared.name = "other";
  pt_ok(ait_weight_store_add(g->weights, &shared), "shared");
  ait_tensor_release(&t);
  ait_status status = pt_passes(g, passes, NULL);
  assert_int_equal(ait_status_code(status), AIT_CODE_UNSUPPORTED);
  assert_non_null(strstr(ait_status_message(status), "shares its storage"));
  ait_status_free(status);
  ait_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(writes_through_views),
      cmocka_unit_test(views_that_overlap),
      cmocka_unit_test(diagonals),
      cmocka_unit_test(state_and_inputs),
      cmocka_unit_test(refusals),
      cmocka_unit_test(shared_storage_is_refused),
      cmocka_unit_test(running_statistics_are_state),
      cmocka_unit_test(batch_statistics_alone_are_pure),
      cmocka_unit_test(pow_has_its_own_name),
      cmocka_unit_test(other_shapes_in_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
