/* Composite operators written out: the answers of the operators themselves, and nothing of them left. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "passes/testing.h"

#define X(shape) "input %x: float32[" shape "] user 0 \"x\"\n"

static const struct {
  const char *op, *inputs, *type, *call;
} cases[] = {
    {"aten.nan_to_num", X("s0, 4"), "float32[s0, 4]", "%x, 0.5, none, -3.0"},
    {"aten.prelu", X("s0, 3, 4") "input %w: float32[3] parameter -1 \"w\"\n", "float32[s0, 3, 4]", "%x, %w"},
    {"aten.prelu", X("s0, 3") "input %w: float32[1] parameter -1 \"w\"\n", "float32[s0, 3]", "%x, %w"},
    {"aten.einsum", X("s0, 2, 5, 4") "input %w: float32[s0, 2, 3, 4] user 1 \"w\"\n", "float32[s0, 2, 5, 3]",
     "\"bhqd,bhkd->bhqk\", [%x, %w]"},
    {"aten.einsum", X("s0, 5, 2, 4") "input %w: float32[s0, 3, 2, 4] user 1 \"w\"\n", "float32[s0, 2, 5, 3]",
     "\"bqhd,bkhd->bhqk\", [%x, %w]"},
    {"aten.einsum", X("s0, 2, 5, 3") "input %w: float32[s0, 3, 2, 4] user 1 \"w\"\n", "float32[s0, 5, 2, 4]",
     "\"bhqk, bkhd -> bqhd\", [%x, %w]"},
    {"aten.einsum", X("s0, 2, 3, 4") "input %w: float32[s0, 2, 5, 4] user 1 \"w\"\n", "float32[s0, 2, 3, 5]",
     "\"bhkd,bhqd->bhkq\", [%x, %w]"},
    {"aten.einsum", X("s0, 5, 2, 4") "input %w: float32[2, 4, 3] user 1 \"w\"\n", "float32[s0, 5, 3]", "\"bthd,hdo->bto\", [%x, %w]"},
    {"aten.einsum", X("s0, 5, 4") "input %w: float32[4, 2, 3] user 1 \"w\"\n", "float32[s0, 5, 2, 3]", "\"btd,dhk->bthk\", [%x, %w]"},
    {"aten.einsum", X("3, 4") "input %w: float32[s0, 5, 4] user 1 \"w\"\n", "float32[s0, 5, 3]", "\"oi,bti->bto\", [%x, %w]"},
    {"aten.einsum", X("s0, 2, 3, 5, 4") "input %w: float32[s0, 2, 6, 4] user 1 \"w\"\n", "float32[s0, 2, 3, 5, 6]",
     "\"bghqd,bgkd->bghqk\", [%x, %w]"},
    {"aten.einsum", X("5, 2, 3, 3") "input %w: float32[s0, 4, 5, 2, 3] user 1 \"w\"\n", "float32[s0, 4, 5, 2, 3]",
     "\"sdij,bhsdj->bhsdi\", [%x, %w]"},
    {"aten.einsum", X("s0, 4") "input %w: float32[4, 3] user 1 \"w\"\n", "float32[s0, 3]", "\"ij,jk\", [%x, %w]"},
    {"aten.einsum", X("s0, 4") "input %w: float32[s0, 4] user 1 \"w\"\n", "float32[s0]", "\"bi,bi->b\", [%x, %w]"},
    {"aten.einsum", X("s0") "input %w: float32[3] user 1 \"w\"\n", "float32[s0, 3]", "\"i,j->ij\", [%x, %w]"},
    {"aten.log_sigmoid", X("s0, 4"), "float32[s0, 4]", "%x"},
    {"aten.logaddexp", X("s0, 4") "input %w: float32[4] parameter -1 \"w\"\n", "float32[s0, 4]", "%x, %w"},
    {"aten.divide.Tensor", X("s0, 4") "input %w: float32[4] parameter -1 \"w\"\n", "float32[s0, 4]", "%x, %w"},
    {"aten.threshold", X("s0, 4"), "float32[s0, 4]", "%x, 0.1, 7.0"},
    {"aten.selu", X("s0, 4"), "float32[s0, 4]", "%x"},
    {"aten.celu", X("s0, 4"), "float32[s0, 4]", "%x, 2.0"},
    {"aten.glu", X("s0, 6"), "float32[s0, 3]", "%x, 1"},
    {"aten.diff", X("s0, 5"), "float32[s0, 4]", "%x, 1, -1"},
    {"aten.diff", X("s0, 5") "input %w: float32[s0, 2] user 1 \"w\"\n", "float32[s0, 5]", "%x, 2, 1, none, %w"},
    {"aten.argsort", X("s0, 5"), "int64[s0, 5]", "%x, 1, true"},
    {"aten.repeat_interleave.self_int", X("s0, 2, 3"), "float32[s0, 6, 3]", "%x, 3, 1"},
    {"aten.repeat_interleave.self_int", X("s0, 2"), "float32[6*s0]", "%x, 3"},
    {"aten.pad", X("s0, 3, 5"), "float32[s0, 5, 8]", "%x, [2, 1, 1, 1], \"reflect\""},
    {"aten.pad", X("s0, 3, 5"), "float32[s0, 5, 8]", "%x, [2, 1, 1, 1], \"replicate\""},
    {"aten.pad", X("s0, 3, 5"), "float32[s0, 5, 8]", "%x, [2, 1, 1, 1], \"circular\""},
    {"aten.pad", X("s0, 3, 5"), "float32[s0, 2, 8]", "%x, [2, 1, -1, 0], \"constant\", 2.5"},
    {"aten.reflection_pad1d", X("s0, 3, 5"), "float32[s0, 3, 8]", "%x, [2, 1]"},
    {"aten.replication_pad2d", X("s0, 3, 5"), "float32[s0, 3, 8]", "%x, [2, 1, 0, 0]"},
    {"aten.logsumexp", X("s0, 3, 5"), "float32[s0, 3]", "%x, [2]"},
    {"aten.logsumexp", X("s0, 3, 5"), "float32[s0, 1, 1]", "%x, [1, 2], true"},
    {"aten.linalg_vector_norm", X("s0, 3, 5"), "float32[s0, 3]", "%x, 2, [2]"},
    {"aten.linalg_vector_norm", X("s0, 3"), "float32[]", "%x, 3.0"},
    {"aten.linalg_vector_norm", X("s0, 3"), "float32[s0]", "%x, 0, [1]"},
    {"aten.histc", X("s0, 3"), "float32[5]", "%x, 5, -1, 1"},
    {"aten.instance_norm", X("s0, 3, 5") "input %w: float32[3] parameter -1 \"w\"\n", "float32[s0, 3, 5]",
     "%x, %w, none, none, none, true, 0.1, 1e-05, false"},
};

static void same_answers(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    char text[1024];
    snprintf(text, sizeof text, "graph \"m\" raw\nsymbol s0 [1, 64] hint 2 backed\n%s%%y: %s = %s(%s)\noutput user 0 \"y\" = %%y\n",
             cases[i].inputs, cases[i].type, cases[i].op, cases[i].call);
    ait_graph *g = pt_transformed(pt_parse(text), "eager", 2e-5, NULL);
    if (pt_count(g, cases[i].op)) fail_msg("case %zu: '%s' is still there", i, cases[i].op);
    ait_graph_destroy(g);
  }
}

/* Two bags begin at 0, so the first is empty; element 1 of the weight is padding. */
static void bags(void **state) {
  AIT_UNUSED(state);
  static const char *const modes[] = {"0, false, none, false, 1", "1, false, none, false, 1", "2, false, none, false, 1",
                                      "0, false, %f, false, none"};
  for (size_t i = 0; i < AIT_COUNT(modes); ++i) {
    char text[1024];
    snprintf(
        text, sizeof text,
        "graph \"m\" raw\nsymbol s0 [1, 64] hint 2 backed\ninput %%w: float32[3, 2] parameter -1 \"w\"\n"
        "input %%x: float32[s0] user 0 \"x\"\ninput %%f: float32[s0] user 1 \"f\"\n%%p: bool[s0] = aten.gt.Scalar(%%x, 0)\n"
        "%%i: int64[s0] = aten._to_copy(%%p, dtype=int64)\n%%o: int64[3] = aten.arange(3, dtype=int64)\n%%z: int64[3] = aten.clamp(%%o, 0, "
        "1)\n"
        "%%b: int64[3] = aten.sub.Tensor(%%o, %%z)\n"
        "%%y: float32[3, 2], %%y1: int64[0], %%y2: int64[3], %%y3: int64[3] = aten.embedding_bag.padding_idx(%%w, %%i, %%b, false, %s)\n"
        "output user 0 \"y\" = %%y\n",
        modes[i]);
    ait_graph *g = pt_transformed(pt_parse(text), "eager", 2e-5, NULL);
    assert_int_equal(pt_count(g, "aten.embedding_bag.padding_idx"), 0);
    ait_graph_destroy(g);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_answers), cmocka_unit_test(bags)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
