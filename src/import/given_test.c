/* Weights from beside the graph: replaced, provided, tied, widened, and what is refused. */
#include "import/import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* Constant tensors of the shapes that the graph declares, under its names but one. */
typedef struct checkpoint {
  ait_tensor_file file;
  ait_map by_name;
} checkpoint;

static void checkpoint_init(checkpoint *c) {
  ait_tensor_file_init(&c->file, ait_allocator_default());
  ait_map_init(&c->by_name, ait_allocator_default());
}

static void checkpoint_add(checkpoint *c, const char *name, ait_dtype dtype, int32_t rank, const int64_t *shape, double value) {
  ait_tensor t;
  assert_null(ait_tensor_create(ait_allocator_default(), dtype, rank, shape, &t));
  for (int64_t i = 0; i < ait_tensor_count(&t); ++i) ait_element_set_f64((char *)t.data + i * (int64_t)ait_dtype_size(dtype), dtype, value);
  assert_null(ait_tensor_file_add(&c->file, name, &t));
  ait_tensor_release(&t);
}

static const ait_map *checkpoint_map(checkpoint *c) {
  for (size_t i = 0; i < c->file.count; ++i) assert_null(ait_map_put(&c->by_name, c->file.items[i].name, &c->file.items[i].tensor));
  return &c->by_name;
}

static void checkpoint_deinit(checkpoint *c) {
  ait_map_deinit(&c->by_name);
  ait_tensor_file_deinit(&c->file);
}

static ait_status open_model(const char *name, const ait_map *weights, ait_graph **out) {
  char path[512];
  snprintf(path, sizeof path, AIT_TEST_DATA "/pt2/golden/%s.pt2", name);
  ait_import_options options = {.weights = weights};
  *out = NULL;
  AIT_TRY(ait_import_pt2(ait_allocator_default(), path, &options, out));
  ait_status status = ait_import_give_weights(*out, weights);
  if (status) ait_graph_destroy(*out), *out = NULL;
  return status;
}

static double first_element(const ait_graph *g, const char *name) {
  ait_tensor t;
  ait_weights provider = ait_weight_store_provider(g->weights);
  assert_null(provider.get(provider.ctx, name, &t));
  return ait_element_f64(t.data, t.dtype);
}

/* A program that was saved without its data; bfloat16 is widened. */
static void test_provided(void **state) {
  AIT_UNUSED(state);
  static const ait_dtype dtypes[] = {AIT_F32, AIT_BF16, AIT_F16};
  for (size_t i = 0; i < AIT_COUNT(dtypes); ++i) {
    checkpoint c;
    ait_graph *g;
    checkpoint_init(&c);
    checkpoint_add(&c, "weight", dtypes[i], 2, (int64_t[]){4, 3}, 1.5);
    checkpoint_add(&c, "bias", dtypes[i], 1, (int64_t[]){4}, -2);
    checkpoint_add(&c, "not.in.the.model", AIT_F32, 0, NULL, 0);
    assert_null(open_model("meta_t214", checkpoint_map(&c), &g));
    assert_true(first_element(g, "weight") == 1.5 && first_element(g, "bias") == -2);
    assert_null(ait_graph_verify(g));
    ait_graph_destroy(g);
    checkpoint_deinit(&c);
  }
}

static void assert_refused(const char *model, checkpoint *c, const char *says) {
  ait_graph *g;
  ait_status status = open_model(model, checkpoint_map(c), &g);
  if (!status || !strstr(ait_status_message(status), says)) fail_msg("'%s': %s", says, ait_status_message(status));
  assert_int_equal(ait_code_exit(ait_status_code(status)), 3);
  ait_status_free(status);
  checkpoint_deinit(c);
}

static void test_refused(void **state) {
  AIT_UNUSED(state);
  checkpoint c;
  checkpoint_init(&c);
  checkpoint_add(&c, "weight", AIT_F32, 2, (int64_t[]){3, 4}, 1);
  checkpoint_add(&c, "bias", AIT_F32, 1, (int64_t[]){4}, 1);
  assert_refused("meta_t214", &c, "given weight 'weight' is float32 [3, 4], the model declares float32 [4, 3]");
  checkpoint_init(&c);
  checkpoint_add(&c, "weight", AIT_F64, 2, (int64_t[]){4, 3}, 1);
  checkpoint_add(&c, "bias", AIT_F32, 1, (int64_t[]){4}, 1);
  assert_refused("meta_t214", &c, "is float64 [4, 3], the model declares float32 [4, 3]");
  checkpoint_init(&c);
  checkpoint_add(&c, "inp.weight", AIT_F32, 2, (int64_t[]){8, 6}, 1);
  assert_refused("mlp_t29", &c, "lack the model's parameter 'inp.bias'");
  checkpoint_init(&c);
  checkpoint_add(&c, "model.inp.weight", AIT_F32, 2, (int64_t[]){8, 6}, 1);
  assert_refused("mlp_t29", &c, "no tensor of the given weights is a parameter");
}

/* The model's own values stay where nothing is given: buffers. A tied weight follows the name that the checkpoint has. */
static void test_tied(void **state) {
  AIT_UNUSED(state);
  ait_graph *own, *g;
  checkpoint c;
  ait_import_options none = {0};
  assert_null(ait_import_pt2(ait_allocator_default(), AIT_TEST_DATA "/pt2/golden/m_t214.pt2", &none, &own));
  const ait_weight *head = ait_weight_store_find(own->weights, "head.weight");
  assert_int_equal(head->storage, ait_weight_store_find(own->weights, "emb.weight")->storage);
  checkpoint_init(&c);
  for (size_t i = 0; i < own->input_count; ++i) {
    const ait_region_input *in = &own->inputs[i];
    const ait_weight *w = in->kind == AIT_INPUT_PARAMETER ? ait_weight_store_find(own->weights, in->name) : NULL;
    if (w && strcmp(in->name, "head.weight") != 0) checkpoint_add(&c, in->name, w->dtype, w->rank, w->shape, 0.25 + (double)i);
  }
  assert_null(open_model("m_t214", checkpoint_map(&c), &g));
  assert_true(first_element(g, "head.weight") == first_element(g, "emb.weight"));
  assert_true(first_element(g, "emb.weight") != first_element(own, "emb.weight"));
  for (size_t i = 0; i < own->input_count; ++i)
    if (own->inputs[i].kind == AIT_INPUT_BUFFER)
      assert_true(first_element(g, own->inputs[i].name) == first_element(own, own->inputs[i].name));
  ait_graph_destroy(g);
  ait_graph_destroy(own);
  checkpoint_deinit(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_provided), cmocka_unit_test(test_refused), cmocka_unit_test(test_tied)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
