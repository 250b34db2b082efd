/* Files that torch 2.6 to 2.14 wrote, one or two for each thing that the importer must get right. */
#include "custom/custom.h"
#include "import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void make_path(const char *name, char out[512]) { snprintf(out, 512, AIT_TEST_DATA "/pt2/golden/%s.pt2", name); }

static ait_status try_import(const char *name, const ait_import_options *options, ait_graph **out) {
  char path[512];
  make_path(name, path);
  return ait_import_pt2(ait_allocator_default(), path, options, out);
}

static ait_graph *import_golden(const char *name, const ait_import_options *options) {
  ait_graph *graph;
  ait_status status = try_import(name, options, &graph);
  if (status) fail_msg("%s", ait_status_message(status));
  return graph;
}

static void assert_refused(const char *name, const ait_import_options *options, ait_code code, const char *says) {
  ait_graph *graph;
  ait_status status = try_import(name, options, &graph);
  assert_null(graph);
  assert_int_equal(ait_status_code(status), code);
  if (!strstr(ait_status_message(status), says)) fail_msg("%s: '%s' expected in '%s'", name, says, ait_status_message(status));
  ait_status_ignore(status);
}

static const ait_node *find_op(const ait_graph *g, const char *op) {
  for (const ait_node *n = g->first; n; n = n->next) {
    if (strcmp(n->op_name, op) == 0) return n;
  }
  fail_msg("no node of %s", op);
  return NULL;
}

static const ait_region_input *find_input(const ait_graph *g, const char *name) {
  for (size_t i = 0; i < g->input_count; ++i) {
    if (strcmp(g->inputs[i].name, name) == 0) return &g->inputs[i];
  }
  fail_msg("no input '%s'", name);
  return NULL;
}

static const ait_symbol *shape_symbol(const ait_graph *g, const char *input, int32_t axis) {
  const ait_value_info *v = &g->values[find_input(g, input)->value];
  assert_true(axis < v->rank);
  const ait_dim_expr *dim = &g->dims[v->shape[axis]];
  assert_int_equal(dim->op, AIT_DIM_SYMBOL);
  return &g->symbols[dim->a];
}

/* ---- a whole model, by torch 2.6 and 2.14 ------------------------------------------------------------------------------------------*/

static void check_model(const char *name, int64_t max_length) {
  ait_graph *g = import_golden(name, NULL);
  static const char *const users[] = {"ids", "mask", "scale", "flag"};
  assert_int_equal(g->user_input_count, AIT_COUNT(users));
  for (size_t i = 0; i < AIT_COUNT(users); ++i) {
    assert_string_equal(g->input_spec[i], users[i]);
    assert_int_equal(find_input(g, users[i])->user_index, i);
  }
  assert_int_equal(find_input(g, "scale")->value, AIT_NO_INDEX);
  assert_int_equal(find_input(g, "scale")->baked.kind, AIT_ARG_FLOAT);
  assert_true(find_input(g, "scale")->baked.as.f == 2.0);
  assert_true(find_input(g, "flag")->baked.as.b);
  const ait_symbol *batch = shape_symbol(g, "ids", 0), *length = shape_symbol(g, "ids", 1);
  assert_true(batch->backed && length->backed);
  assert_int_equal(batch->min, 1);
  assert_int_equal(batch->max, 8);
  assert_int_equal(length->min, 2);
  assert_int_equal(length->max, max_length);
  assert_ptr_equal(shape_symbol(g, "mask", 0), batch);
  assert_string_equal(g->outputs[0].name, "logits");
  assert_int_equal(g->dialect, AIT_DIALECT_RAW);
  assert_true(g->module_count > 5);
  ait_graph_destroy(g);
}

static void test_model(void **state) {
  (void)state;
  check_model("m_t26", 63);
  check_model("m_t214", 64);
}

/* Tied parameters share a storage; the strides of views are kept. */
static void test_weights(void **state) {
  (void)state;
  static const char *const names[] = {"m_t26", "m_t214"};
  for (size_t i = 0; i < AIT_COUNT(names); ++i) {
    ait_graph *g = import_golden(names[i], NULL);
    size_t count = ait_weight_store_count(g->weights), strided = 0;
    if (i == 1) assert_true(ait_weight_store_storage_count(g->weights) < count); /* 2.6 gives both the same name */
    for (size_t k = 0; k < count; ++k) {
      const ait_weight *w = ait_weight_store_at(g->weights, k);
      ait_tensor t = {.rank = w->rank};
      memcpy(t.shape, w->shape, sizeof t.shape);
      memcpy(t.strides, w->strides, sizeof t.strides);
      strided += !ait_tensor_is_contiguous(&t);
      assert_true(ait_dtype_size(w->dtype) > 0);
    }
    assert_true(strided >= 2);
    ait_graph_destroy(g);
  }
}

/* ---- nested graphs ---------------------------------------------------------------------------------------------------------------*/

static const ait_graph *graph_arg(const ait_node *n, uint32_t index) {
  assert_true(index < n->arg_count);
  assert_int_equal(n->args[index].kind, AIT_ARG_GRAPH);
  return n->args[index].as.graph;
}

static void test_cond(void **state) {
  (void)state;
  static const char *const names[] = {"cond_t26", "cond_t214"};
  for (size_t i = 0; i < AIT_COUNT(names); ++i) {
    ait_graph *g = import_golden(names[i], NULL);
    const ait_node *n = find_op(g, "higher_order.cond");
    assert_int_equal(n->result_count, 1); /* 2.6 writes it as a list of one */
    assert_int_equal(graph_arg(n, 1)->output_count, 1);
    assert_int_equal(graph_arg(n, 2)->input_count, n->args[3].count);
    assert_ptr_equal(graph_arg(n, 1)->root, g);
    ait_graph_destroy(g);
  }
}

static void test_while(void **state) {
  (void)state;
  ait_graph *g = import_golden("while_t214", NULL);
  const ait_node *n = find_op(g, "higher_order.while_loop");
  assert_int_equal(graph_arg(n, 0)->output_count, 1);
  assert_int_equal(graph_arg(n, 1)->output_count, n->result_count);
  ait_graph_destroy(g);
}

/* vmap's machinery becomes a map. */
static void test_vmap(void **state) {
  (void)state;
  ait_graph *g = import_golden("vmap_t214", NULL);
  const ait_node *n = find_op(g, "higher_order.map_impl");
  assert_int_equal(g->node_count, 1);
  assert_int_equal(n->args[1].count, 1);
  assert_int_equal(graph_arg(n, 0)->node_count, 2);
  ait_graph_destroy(g);
  g = import_golden("vmap_nested_t213", NULL);
  n = find_op(graph_arg(find_op(g, "higher_order.map_impl"), 0), "higher_order.map_impl");
  assert_int_equal(graph_arg(n, 0)->node_count, 1);
  ait_graph_destroy(g);
  g = import_golden("vmap_captured_t213", NULL);
  n = find_op(g, "higher_order.map_impl");
  assert_int_equal(n->args[2].count, 1); /* what the body reads from outside is an operand */
  assert_int_equal(graph_arg(n, 0)->input_count, 2);
  ait_graph_destroy(g);
}

static void test_autocast(void **state) {
  (void)state;
  ait_graph *g = import_golden("nograd_autocast_t214", NULL);
  const ait_node *n = find_op(g, "higher_order.wrap_with_autocast");
  assert_int_equal(n->args[0].kind, AIT_ARG_STRING);
  assert_int_equal(n->args[2].kind, AIT_ARG_BOOL);
  assert_true(graph_arg(n, 4)->node_count > 0);
  ait_graph_destroy(g);
}

/* ---- mutation --------------------------------------------------------------------------------------------------------------------*/

static void test_mutated(void **state) {
  (void)state;
  static const struct {
    const char *file, *input;
    bool mutated;
  } cases[] = {
      {"inmut_func_t214", "x", true},       {"bn_train_t214", "b.running_mean", true},     {"bn_train_t214", "b.num_batches_tracked", true},
      {"bn_train_t214", "b.weight", false}, {"bn_train_func_t214", "b.running_var", true}, {"kv_t214", "x", false}};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    ait_graph *g = import_golden(cases[i].file, NULL);
    const ait_region_input *input = find_input(g, cases[i].input);
    if (input->mutated != cases[i].mutated) fail_msg("%s: input '%s' mutated: %d", cases[i].file, cases[i].input, input->mutated);
    ait_graph_destroy(g);
  }
}

static void test_mutation_outputs(void **state) {
  (void)state;
  ait_graph *g = import_golden("inmut_func_t214", NULL);
  assert_int_equal(g->outputs[0].kind, AIT_OUTPUT_INPUT);
  assert_int_equal(g->outputs[0].user_index, 0);
  ait_graph_destroy(g);
  g = import_golden("bn_train_func_t214", NULL);
  size_t states = 0;
  for (size_t i = 0; i < g->output_count; ++i) states += g->outputs[i].kind == AIT_OUTPUT_STATE;
  assert_int_equal(states, 3);
  ait_graph_destroy(g);
}

static void test_in_place(void **state) {
  (void)state;
  ait_graph *g = import_golden("alias_t214", NULL);
  size_t in_place = 0;
  for (const ait_node *n = g->first; n; n = n->next) {
    if (!(n->flags & AIT_NODE_INPLACE)) continue;
    ++in_place;
    assert_null(strstr(n->op_name, "_."));
    assert_int_equal(n->args[0].kind, AIT_ARG_VALUE);
    assert_int_not_equal(n->results[0], AIT_NO_INDEX);
  }
  assert_true(in_place > 0);
  ait_graph_destroy(g);
}

/* ---- sizes -----------------------------------------------------------------------------------------------------------------------*/

static void test_guards(void **state) {
  (void)state;
  ait_graph *g = import_golden("derived_t214", NULL);
  bool found = false;
  for (size_t i = 0; i < g->guard_count; ++i) found |= strstr(g->guards[i].text, "L['y']") != NULL;
  assert_true(found || g->guard_count > 0);
  ait_graph_destroy(g);
}

static void test_symbolic_values(void **state) {
  (void)state;
  ait_graph *g = import_golden("symzoo_t214", NULL);
  const ait_node *n = find_op(g, "torch.sym_sqrt");
  assert_int_equal(g->values[n->results[0]].type, AIT_TYPE_FLOAT);
  n = find_op(g, "torch.sym_ite");
  assert_int_equal(n->args[0].kind, AIT_ARG_VALUE);
  assert_int_equal(g->values[n->args[0].as.value].type, AIT_TYPE_BOOL);
  ait_graph_destroy(g);
  g = import_golden("unbacked_t214", NULL);
  size_t unbacked = 0;
  for (size_t i = 0; i < g->symbol_count; ++i) unbacked += !g->symbols[i].backed && g->symbols[i].name[0] == 'u';
  assert_true(unbacked > 0);
  ait_graph_destroy(g);
}

static void test_floats(void **state) {
  (void)state;
  ait_graph *g = import_golden("nan_t26", NULL); /* bare NaN */
  bool nan = false;
  for (const ait_node *n = g->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->arg_count; ++i) nan |= n->args[i].kind == AIT_ARG_FLOAT && n->args[i].as.f != n->args[i].as.f;
  }
  assert_true(nan);
  ait_graph_destroy(g);
  g = import_golden("inf_t214", NULL); /* "Infinity" */
  const ait_node *full = find_op(g, "aten.full");
  assert_int_equal(full->args[1].kind, AIT_ARG_FLOAT);
  assert_true(full->args[1].as.f > 1e308 || full->args[1].as.f < -1e308 || full->args[1].as.f != full->args[1].as.f);
  ait_graph_destroy(g);
}

/* ---- names -----------------------------------------------------------------------------------------------------------------------*/

static void test_pytrees(void **state) {
  (void)state;
  static const char *const files[] = {"pres_t214", "strict_t26"}, *const leaves[] = {"x", "d_k_0", "d_u"};
  for (size_t f = 0; f < AIT_COUNT(files); ++f) {
    ait_graph *g = import_golden(files[f], NULL);
    assert_int_equal(g->user_input_count, AIT_COUNT(leaves));
    for (size_t i = 0; i < AIT_COUNT(leaves); ++i) assert_string_equal(g->input_spec[i], leaves[i]);
    assert_int_equal(find_input(g, "d_u")->baked.kind, AIT_ARG_NONE);
    assert_string_equal(g->outputs[1].name, "output_1");
    find_input(g, "sub.l.weight");
    const ait_node *linear = find_op(g, "aten.linear");
    assert_string_equal(g->modules[linear->module].path, "sub.l");
    assert_string_equal(g->modules[linear->module].type, "torch.nn.modules.linear.Linear");
    assert_true(g->modules[linear->module].calls >= 1);
    ait_graph_destroy(g);
  }
}

/* ---- subclasses, packages, custom operators ----------------------------------------------------------------------------------------*/

static void test_subclasses(void **state) {
  (void)state;
  ait_graph *g = import_golden("int8wo_t214", NULL);
  const ait_weight *data = ait_weight_store_find(g->weights, "l.weight.qdata"),
                   *scale = ait_weight_store_find(g->weights, "l.weight.scale");
  assert_non_null(data);
  assert_non_null(scale);
  assert_int_equal(data->dtype, AIT_I8);
  assert_int_equal(data->shape[0], 128);
  assert_int_equal(scale->dtype, AIT_F32);
  assert_int_equal(find_input(g, "l.weight.qdata")->kind, AIT_INPUT_PARAMETER);
  ait_graph_destroy(g);
}

static void test_packages(void **state) {
  (void)state;
  assert_refused("aoti_t214", NULL, AIT_CODE_UNSUPPORTED, "AOTInductor package");
  assert_refused("meta_t214", NULL, AIT_CODE_INVALID_MODEL, "'meta/data/weights/weight_0' is empty, but the shape is [4, 3]");
  assert_refused("dtype_int4_t214", NULL, AIT_CODE_INVALID_MODEL, "holds no model");
  assert_refused("multi_t214", NULL, AIT_CODE_INVALID_ARGUMENT, "'enc', 'dec/x'");
  ait_import_options options = {.model_name = "dec/x"};
  ait_graph_destroy(import_golden("multi_t214", &options));
  options.model_name = "enc";
  ait_graph_destroy(import_golden("multi_t214", &options));
  options.model_name = "dec/y";
  assert_refused("multi_t214", &options, AIT_CODE_NOT_FOUND, "no model 'dec/y'");
  ait_graph_destroy(import_golden("rezipped_t214", NULL));
}

static void test_layout_b(void **state) {
  (void)state;
  static const char *const names[] = {"mlp_t28", "mlp_t29"};
  size_t counts[2];
  for (size_t i = 0; i < 2; ++i) {
    ait_graph *g = import_golden(names[i], NULL);
    counts[i] = ait_weight_store_count(g->weights);
    ait_graph_destroy(g);
  }
  assert_int_equal(counts[0], counts[1]);
}

static ait_status no_infer(const ait_custom_call *call, ait_custom_shape *results) {
  (void)call, (void)results;
  return AIT_OK;
}
static ait_status no_run(const ait_custom_call *call, ait_value *results) {
  (void)call, (void)results;
  return AIT_OK;
}

/* Arguments stand in the order of the registered schema, with its defaults; what it writes is known. */
static void test_custom(void **state) {
  (void)state;
  static const ait_custom_op foo = {.struct_size = sizeof foo,
                                    .name = "mylib::foo",
                                    .schema = "(Tensor x, Tensor(a!) y, *, int k=7, float s=1.0) -> Tensor",
                                    .infer = no_infer,
                                    .run = no_run};
  assert_refused("cust_t214", NULL, AIT_CODE_UNSUPPORTED, "node 'foo': custom operator 'mylib.foo' is not registered");
  assert_null(ait_custom_op_add(&foo));
  ait_graph *g = import_golden("cust_t214", NULL);
  const ait_node *n = find_op(g, "mylib.foo");
  assert_string_equal(n->op->name, "custom");
  assert_int_equal(n->arg_count, 4);
  assert_int_equal(n->args[2].as.i, 7);
  assert_true(n->args[3].as.f == 2.0);
  assert_false(g->inputs[0].mutated); /* a copy of it is */
  ait_graph_destroy(g);
}

static void test_missing_operators(void **state) {
  (void)state;
  char path[512];
  ait_missing missing;
  ait_missing_init(&missing, ait_allocator_default());
  make_path("cust_t214", path);
  assert_null(ait_import_pt2_operators(ait_allocator_default(), path, NULL, &missing));
  make_path("m_t214", path);
  assert_null(ait_import_pt2_operators(ait_allocator_default(), path, NULL, &missing));
  assert_int_equal(missing.by_name.count, 1);
  const ait_missing_operator *o = missing.by_name.entries[0].value;
  assert_string_equal(o->name, "mylib.foo");
  assert_string_equal(o->first_node, "foo");
  assert_int_equal(o->nodes, 1);
  assert_true(o->custom);
  ait_missing_deinit(&missing);
}

static void test_detect(void **state) {
  (void)state;
  static const struct {
    const char *file;
    ait_file_kind kind;
  } cases[] = {{"m_t26", AIT_FILE_PT2}, {"m_t214", AIT_FILE_PT2}, {"aoti_t214", AIT_FILE_AOTI}, {"dtype_int4_t214", AIT_FILE_PT2}};
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    char path[512];
    ait_file_kind kind;
    make_path(cases[i].file, path);
    assert_null(ait_import_detect(path, &kind));
    assert_int_equal(kind, cases[i].kind);
  }
  ait_file_kind kind;
  ait_status status = ait_import_detect(AIT_TEST_DATA "/pt2/golden/there-is-none.pt2", &kind);
  assert_non_null(status);
  ait_status_ignore(status);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_model),
      cmocka_unit_test(test_weights),
      cmocka_unit_test(test_cond),
      cmocka_unit_test(test_while),
      cmocka_unit_test(test_vmap),
      cmocka_unit_test(test_autocast),
      cmocka_unit_test(test_mutated),
      cmocka_unit_test(test_mutation_outputs),
      cmocka_unit_test(test_in_place),
      cmocka_unit_test(test_guards),
      cmocka_unit_test(test_symbolic_values),
      cmocka_unit_test(test_floats),
      cmocka_unit_test(test_pytrees),
      cmocka_unit_test(test_subclasses),
      cmocka_unit_test(test_packages),
      cmocka_unit_test(test_layout_b),
      cmocka_unit_test(test_missing_operators),
      cmocka_unit_test(test_custom),
      cmocka_unit_test(test_detect),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
