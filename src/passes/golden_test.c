/* Imported programs give the same answers after every pass of both pipelines as before, at several sizes; and under failing allocations a
 * pipeline ends with an error or a right graph. */
#include "import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/test_support.h"
#include "passes/testing.h"
#include <dirent.h>

/* Programs that cannot become core graphs, and the reason that they must give. */
static const struct {
  const char *file, *why;
} refused[] = {
    {"bn_train_t214.pt2", "training"},
    {"alias_t214.pt2", "may or may not"},
};

static const char *refusal(const char *file) {
  for (size_t i = 0; i < AIT_COUNT(refused); ++i)
    if (!strcmp(refused[i].file, file)) return refused[i].why;
  return NULL;
}

static bool changes_numbers(const char *passes) {
  for (size_t i = 0; i < ait_pass_count(); ++i)
    if (ait_pass_at(i)->changes_numbers && strstr(passes, ait_pass_at(i)->name)) return true;
  return false;
}

static const char core[] = "inline,views,functionalise,lower,dce,fold,simplify,cse,match,attention,conv-bn,fold,simplify,cse,dce";
static const char eager[] = "inline,views,functionalise,lower,dce";

/* Every prefix of the list. */
static int check_prefixes(const char *file, const ait_graph *g, const char *list) {
  char passes[256], label[300];
  int tried = 0;
  for (size_t end = 0; list[end]; ++end) {
    if (list[end + 1] && list[end + 1] != ',') continue;
    snprintf(passes, sizeof passes, "%.*s", (int)end + 1, list);
    snprintf(label, sizeof label, "%s after %s", file, passes);
    ait_graph *after = pt_clone(g);
    ait_status status = pt_passes(after, passes, NULL);
    const char *why = refusal(file);
    if (status != AIT_OK && (!why || !strstr(ait_status_message(status), why))) fail_msg("%s: %s", label, ait_status_message(status));
    if (status == AIT_OK) tried += pt_same_answers(label, g, after, changes_numbers(passes) ? 1e-5 : 0);
    else ++tried;
    ait_status_free(status);
    ait_graph_destroy(after);
  }
  return tried;
}

static ait_graph *import(const char *file) {
  char path[512];
  ait_graph *g = NULL;
  ait_import_options options = {0};
  snprintf(path, sizeof path, AIT_TEST_DATA "/%s", file);
  ait_status status = ait_import_pt2(ait_allocator_default(), path, &options, &g);
  ait_status_free(status); /* refusals are the import room's tests */
  return g;
}

static void golden_programs_keep_their_answers(void **state) {
  AIT_UNUSED(state);
  DIR *folder = opendir(AIT_TEST_DATA "/pt2/golden");
  assert_non_null(folder);
  int programs = 0;
  for (struct dirent *e; (e = readdir(folder));) {
    char file[300];
    if (!strstr(e->d_name, ".pt2")) continue;
    snprintf(file, sizeof file, "pt2/golden/%s", e->d_name);
    ait_graph *g = import(file);
    if (!g) continue;
    int tried = check_prefixes(e->d_name, g, core) + check_prefixes(e->d_name, g, eager);
    if (!tried) print_message("%s: never ran\n", e->d_name);
    programs += tried > 0;
    ait_graph_destroy(g);
  }
  closedir(folder);
  if (programs < 15) fail_msg("only %d programs ran", programs);
}

/* What an .ait keeps of a program is enough to make the graph again. */
static void regions_become_graphs_again(void **state) {
  AIT_UNUSED(state);
  DIR *folder = opendir(AIT_TEST_DATA "/pt2/golden");
  assert_non_null(folder);
  int tried = 0;
  for (struct dirent *e; (e = readdir(folder));) {
    char file[300];
    if (!strstr(e->d_name, ".pt2")) continue;
    snprintf(file, sizeof file, "pt2/golden/%s", e->d_name);
    ait_graph *g = import(file), *again;
    ait_region *region;
    if (!g) continue;
    pt_ok(ait_graph_region(g, ait_allocator_default(), &region), e->d_name);
    pt_ok(ait_graph_from_region(ait_allocator_default(), region, g->dialect, g->weights, &again), e->d_name);
    ait_graph_region_destroy(ait_allocator_default(), region); /* nothing is shared */
    assert_int_equal(again->value_count, g->value_count);
    assert_int_equal(again->node_count, g->node_count);
    assert_int_equal(again->guard_count, g->guard_count);
    tried += pt_same_answers(e->d_name, g, again, 0) > 0;
    ait_graph_destroy(again);
    ait_graph_destroy(g);
  }
  closedir(folder);
  assert_true(tried >= 15);
}

static void digits_keeps_its_answers(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = import("models/digits/digits.pt2");
  assert_non_null(g);
  ait_graph *after = pt_clone(g);
  pt_ok(pt_passes(after, "core", NULL), "core");
  assert_true(pt_same_answers("digits", g, after, 1e-5) > 0);
  assert_int_equal(pt_count(after, "batch_norm"), 0);
  ait_graph_destroy(after);
  ait_graph_destroy(g);
}

/* ---- every allocation fails ------------------------------------------------------------------------------------------------------*/

/* The graph itself is made with the allocator: clones take the original's, so the text is parsed again. */
static void fails_cleanly(const char *text, const char *pipeline) {
  for (int once = 0; once < 2; ++once)
    for (long n = 0;; ++n) {
      test_allocator t = {.fail_at = n, .fail_once = once};
      ait_allocator a = test_allocator_of(&t);
      ait_graph *g = NULL;
      ait_status status = ait_graph_parse(a, text, strlen(text), &g);
      if (status == AIT_OK) {
        pt_random_weights(g, 7);
        ait_pass_context context = {.allocator = a};
        status = ait_passes_run(g, pipeline, &context, NULL, NULL);
        if (status == AIT_OK) status = ait_graph_verify(g);
      }
      ait_graph_destroy(g);
      assert_int_equal(t.live, 0);
      bool done = t.calls <= n;
      if (status != AIT_OK && (done || ait_status_code(status) != AIT_CODE_OUT_OF_MEMORY))
        fail_msg("allocation %ld of %s: %s", n, pipeline, ait_status_message(status));
      ait_status_free(status);
      if (done) break;
    }
}

static const char raw_model[] = "graph \"m\" raw\n"
                                "symbol s0 [2, 64] hint 4 backed\n"
                                "input %x: float32[s0, 3, 6, 6] user 0 \"x\"\n"
                                "input %w: float32[4, 3, 3, 3] parameter -1 \"w\"\n"
                                "input %g: float32[4] parameter -1 \"g\"\n"
                                "input %b: float32[4] parameter -1 \"b\"\n"
                                "input %m: float32[4] buffer -1 \"mean\"\n"
                                "input %v: float32[4] buffer -1 \"var\"\n"
                                "input %count: float32[4] buffer -1 \"count\" mutated\n"
                                "%conv: float32[s0, 4, 4, 4] = aten.conv2d(%x, %w)\n"
                                "%bn: float32[s0, 4, 4, 4] = aten.batch_norm(%conv, %g, %b, %m, %v, false, 0.1, 1e-05, true)\n"
                                "%relu: float32[s0, 4, 4, 4] = inplace aten.relu(%bn)\n"
                                "%one: float32[4] = inplace aten.add.Tensor(%count, 1)\n"
                                "%view: float32[s0, 64] = aten.view(%relu, [{s0}, 64])\n"
                                "%sm: float32[s0, 64] = aten.softmax.int(%view, 1)\n"
                                "output user 0 \"y\" = %sm\n";

static void pipelines_survive_failing_allocations(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(raw_model);
  ait_graph_destroy(pt_transformed(g, "core", 1e-5, NULL));
  fails_cleanly(raw_model, "core");
  fails_cleanly(raw_model, "eager");
}

static void unknown_passes_are_refused(void **state) {
  AIT_UNUSED(state);
  ait_graph *g = pt_parse(raw_model);
  static const char *const lists[] = {"nosuch", "core,nosuch", "dce,,cse", "cor", "functionalise,core "};
  for (size_t i = 0; i < AIT_COUNT(lists); ++i) {
    ait_status status = pt_passes(g, lists[i], NULL);
    assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
    assert_non_null(ait_status_hint(status));
    ait_status_free(status);
  }
  ait_graph_destroy(g);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(golden_programs_keep_their_answers), cmocka_unit_test(regions_become_graphs_again),
      cmocka_unit_test(digits_keeps_its_answers),           cmocka_unit_test(pipelines_survive_failing_allocations),
      cmocka_unit_test(unknown_passes_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
