/* A backend that lies on one operator is found out, by the node's own name, with a reproducer that shows it; so is one that lies only where
 * it may fuse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/reference/reference.h"
#include "passes/testing.h"
#include "tune/html.h"
#include <ait/session.h>
#include <ait/tools.h>
#include <ait/tune.h>

#include <signal.h>
#include <unistd.h>

static char folder[64], prefix[96];

static int make_folder(void **state) {
  AIT_UNUSED(state);
  strcpy(folder, "/tmp/ait-debug-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(prefix, sizeof prefix, "%s/found", folder);
  return 0;
}
static int remove_folder(void **state) {
  AIT_UNUSED(state);
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

/* ---- backends that lie: the reference, on a region in which an operator is another -----------------------------------------------*/
static bool lies_when_fused; /* not where the node's own value is asked for */
static const char *liar_op, *liar_instead, *liar_module;

static bool is_output(const ait_region *region, uint32_t value) {
  for (uint32_t i = 0; i < region->output_count; ++i)
    if (region->outputs[i].arg.kind == AIT_ARG_VALUE && region->outputs[i].arg.as.value == value) return true;
  return false;
}

static ait_status lying_compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  ait_region changed = *region;
  ait_region_node *nodes = malloc((region->node_count + 1) * sizeof *nodes);
  memcpy(nodes, region->nodes, region->node_count * sizeof *nodes);
  for (uint32_t i = 0; i < region->node_count; ++i) {
    if (strcmp(nodes[i].op, liar_op) || (*liar_module && strcmp(nodes[i].module, liar_module))) continue;
    if (lies_when_fused && is_output(region, nodes[i].results[0])) continue;
    nodes[i].op = liar_instead;
  }
  changed.nodes = nodes;
  ait_status status = ait_backend_reference.compile(&changed, options, out);
  free(nodes);
  return status;
}

/* Dies where the operator is in the region, or hangs up with a code of its own. */
static ait_status crashing_compile(const ait_region *region, const ait_compile_options *options, ait_blob *out) {
  for (uint32_t i = 0; i < region->node_count; ++i) {
    if (strcmp(region->nodes[i].op, liar_op) || strcmp(region->nodes[i].module, liar_module)) continue;
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  return ait_backend_reference.compile(region, options, out);
}

static ait_backend liar, crasher;
static void add_liar(void) {
  crasher = ait_backend_reference;
  crasher.name = "crasher";
  crasher.accepts_raw = false;
  crasher.compile = crashing_compile;
  pt_ok(ait_backend_add(&crasher), "add");
  liar = ait_backend_reference;
  liar.name = "liar";
  liar.accepts_raw = false; /* so that it gets what native gets */
  liar.compile = lying_compile;
  pt_ok(ait_backend_add(&liar), "add");
}

/* ---- running ---------------------------------------------------------------------------------------------------------------------*/
static struct json_object *debugged(const char *model, const char *backend, ait_value *inputs, size_t count) {
  ait_load_options load;
  ait_debug_options options;
  char *text = NULL;
  ait_load_options_init(&load);
  ait_debug_options_init(&options);
  load.backend = backend;
  options.output = prefix;
  pt_ok(ait_debug(model, &load, inputs, count, &options, &text), "debug");
  struct json_object *o = json_tokener_parse(text);
  if (!o) fail_msg("no JSON: %s", text);
  ait_string_free(text);
  return o;
}

static ait_value digits_input(void) {
  ait_tensor t;
  uint64_t seed = 5;
  pt_ok(ait_tensor_create(ait_allocator_default(), AIT_F32, 4, (const int64_t[]){2, 1, 8, 8}, &t), "input");
  pt_fill(&t, &seed, false);
  return ait_value_tensor(t);
}

static const char digits[] = AIT_TEST_DATA "/models/digits/digits.pt2";

static void the_lie_is_found(void **state) {
  AIT_UNUSED(state);
  ait_value input = digits_input();
  liar_op = "relu", liar_instead = "abs", liar_module = "middle.2", lies_when_fused = false;
  struct json_object *o = debugged(digits, "liar", &input, 1), *node = ait_member_get(o, "node"), *r = ait_member_get(o, "reproducer");
  assert_false(ait_member_true(o, "agrees"));
  assert_string_equal(ait_member_text(o, "cause"), "node");
  assert_string_equal(ait_member_text(node, "module"), "middle.2");
  assert_string_equal(ait_member_text(node, "op"), "relu");
  assert_int_equal(ait_member_count(o, "operands"), 1);
  assert_string_equal(ait_member_text(ait_member_at(o, "operands", 0), "dtype"), "float32");
  assert_int_equal(json_object_get_int(ait_member_at(ait_member_at(o, "operands", 0), "shape", 1)), 64);
  double got = ait_member_number(ait_member_get(o, "worst"), "got");
  assert_true(got > 0 && ait_member_number(ait_member_get(o, "worst"), "want") == 0);
  assert_int_equal((int)ait_member_number(r, "nodes"), 1);
  assert_true(ait_member_true(r, "reproduces"));
  json_object_put(o);
  o = debugged(digits, "reference", &input, 1);
  assert_true(ait_member_true(o, "agrees"));
  json_object_put(o);
  ait_value_release(&input);
}

/* The reproducer's files are a model and data like others: the lie shows again there. */
static void the_reproducer_stands_alone(void **state) {
  AIT_UNUSED(state);
  char graph[128], data[128], expected[128];
  snprintf(graph, sizeof graph, "%s.txt", prefix);
  snprintf(data, sizeof data, "%s.npz", prefix);
  snprintf(expected, sizeof expected, "%s.expected.npz", prefix);
  ait_data *in, *want;
  pt_ok(ait_data_load(ait_allocator_default(), data, &in), "data");
  pt_ok(ait_data_load(ait_allocator_default(), expected, &want), "expected");
  assert_int_equal(ait_data_count(in), 1);
  for (int honest = 0; honest < 2; ++honest) {
    ait_load_options load;
    ait_model *model;
    ait_session *session;
    ait_value input = {.kind = AIT_VALUE_TENSOR, .as.tensor = *ait_data_tensor(in, 0)}, output = {0};
    ait_compare_rule rule = {.rtol = 1e-6, .atol = 1e-6};
    ait_compare_result compared;
    ait_load_options_init(&load);
    load.backend = honest ? "reference" : "liar";
    pt_ok(ait_model_import(graph, &load, &model), "import");
    pt_ok(ait_session_create(model, NULL, &session), "session");
    pt_ok(ait_session_run(session, &input, 1, &output, 1), "run");
    pt_ok(ait_compare(&output.as.tensor, ait_data_tensor(want, 0), &rule, &compared), "compare");
    assert_int_equal(compared.pass, honest);
    ait_session_destroy(session);
    ait_model_release(model);
  }
  struct json_object *o = debugged(graph, "liar", &(ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = *ait_data_tensor(in, 0)}, 1);
  assert_string_equal(ait_member_text(ait_member_get(o, "node"), "op"), "relu");
  json_object_put(o);
  ait_data_destroy(in);
  ait_data_destroy(want);
}

static void a_lie_in_fusion_is_found(void **state) {
  AIT_UNUSED(state);
  ait_value input = digits_input();
  liar_op = "relu", liar_instead = "abs", liar_module = "middle.2", lies_when_fused = true;
  struct json_object *o = debugged(digits, "liar", &input, 1), *r = ait_member_get(o, "reproducer");
  assert_string_equal(ait_member_text(o, "cause"), "fusion");
  assert_string_equal(ait_member_text(ait_member_get(o, "node"), "op"), "max_pool"); /* the first to show it */
  assert_true(ait_member_true(r, "reproduces"));
  assert_int_equal((int)ait_member_number(r, "nodes"), 2);
  json_object_put(o);
  ait_value_release(&input);
}

static void a_crash_is_a_finding(void **state) {
  AIT_UNUSED(state);
  ait_value input = digits_input();
  liar_op = "relu", liar_module = "middle.2";
  struct json_object *o = debugged(digits, "crasher", &input, 1), *node = ait_member_get(o, "node"), *r = ait_member_get(o, "reproducer");
  assert_false(ait_member_true(o, "agrees"));
  assert_string_equal(ait_member_text(o, "cause"), "crash");
  assert_non_null(strstr(ait_member_text(o, "crash"), "Segmentation fault"));
  assert_string_equal(ait_member_text(node, "module"), "middle.2");
  assert_string_equal(ait_member_text(node, "op"), "relu");
  assert_int_equal(json_object_get_int(ait_member_at(node, "shape", 0)), 2);
  assert_int_equal((int)ait_member_number(r, "nodes"), 1);
  assert_true(ait_member_true(r, "reproduces"));
  json_object_put(o);
  ait_value_release(&input);
}

/* Integers, several operands, a size that depends on the input, an operator without a module. */
static void other_models(void **state) {
  AIT_UNUSED(state);
  static const char text[] = "graph \"m\" raw\nsymbol s0 [2, 64] hint 4 backed\ninput %x: int64[s0, 3] user 0 \"x\"\n"
                             "%a: int64[s0, 3] = aten.add.Tensor(%x, %x)\n%b: int64[s0, 3] = aten.mul.Tensor(%a, %x)\n"
                             "%c: int64[s0, 3] = aten.sub.Tensor(%b, %a)\noutput user 0 \"c\" = %c\n";
  char path[128];
  snprintf(path, sizeof path, "%s/m.txt", folder);
  pt_ok(ait_file_write_all(ait_allocator_default(), path, text, strlen(text)), "write");
  int64_t numbers[6] = {1, 2, 3, 4, 5, 6};
  ait_value input = ait_value_tensor(ait_tensor_borrow(numbers, AIT_I64, 2, (const int64_t[]){2, 3}));
  liar_op = "mul", liar_instead = "maximum", liar_module = "", lies_when_fused = false;
  struct json_object *o = debugged(path, "liar", &input, 1), *worst = ait_member_get(o, "worst");
  assert_string_equal(ait_member_text(ait_member_get(o, "node"), "op"), "mul");
  assert_int_equal(ait_member_count(o, "operands"), 2);
  assert_int_equal((int)ait_member_number(worst, "got"), 12); /* max(12, 6), want 72: the last element */
  assert_int_equal((int)ait_member_number(worst, "want"), 72);
  assert_int_equal(json_object_get_int(ait_member_at(worst, "index", 0)), 1);
  assert_int_equal(json_object_get_int(ait_member_at(worst, "index", 1)), 2);
  json_object_put(o);
}

static void bad_requests_are_refused(void **state) {
  AIT_UNUSED(state);
  ait_value input = digits_input(), wrong = {.kind = AIT_VALUE_INT, .as.i = 1};
  ait_load_options load;
  char *text;
  ait_load_options_init(&load);
  load.backend = "nosuch";
  ait_status status = ait_debug(digits, &load, &input, 1, NULL, &text);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  assert_null(text);
  ait_status_free(status);
  load.backend = "native";
  status = ait_debug(digits, &load, &wrong, 1, NULL, &text);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  ait_status_free(status);
  status = ait_debug("/nowhere.pt2", &load, &input, 1, NULL, &text);
  assert_true(status != AIT_OK);
  ait_status_free(status);
  ait_value_release(&input);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_lie_is_found),
      cmocka_unit_test(the_reproducer_stands_alone),
      cmocka_unit_test(a_lie_in_fusion_is_found),
      cmocka_unit_test(a_crash_is_a_finding),
      cmocka_unit_test(other_models),
      cmocka_unit_test(bad_requests_are_refused),
  };
  add_liar();
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
