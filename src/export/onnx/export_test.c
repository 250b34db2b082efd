/* Structure of exported models. Numbers are compared with ONNX Runtime by tests/python/test_onnx_export.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/test_support.h"
#include "export/export.h"
#include <onnx-ml.pb-c.h>
#include <stdio.h>
#include <unistd.h>

static const char linear_text[] = "graph \"model\" core producer \"test\"\n"
                                  "symbol s0 [0, 8] hint 2 backed\n"
                                  "input %x: float32[s0, 3] user 0 \"x\"\n"
                                  "input %w: float32[4, 3] parameter -1 \"head.weight\"\n"
                                  "input %n: float32[4] buffer -1 \"seen\" mutated\n"
                                  "%y: float32[s0, 4] = linear(%x, %w) name \"head\"\n"
                                  "%z: float32[s0, 4] = relu(%y)\n"
                                  "%m: float32[4] = add(%n, 1)\n"
                                  "output user 0 \"scores\" = %z\n"
                                  "output state -1 \"seen\" = %m\n";

static void assert_ok(ait_status status) {
  if (status != AIT_OK) fail_msg("%s", ait_status_message(status));
}

typedef struct fixture {
  ait_graph *graph;
  ait_region *region;
  ait_weight_store *store;
} fixture;

static void add_weight(ait_weight_store *store, const char *name, int32_t rank, int64_t a, int64_t b) {
  ait_storage *storage;
  ait_weight w = {.name = name, .dtype = AIT_F32, .rank = rank, .shape = {a, b}, .strides = {rank == 2 ? b : 1, 1}};
  size_t count = (size_t)(rank == 2 ? a * b : a);
  assert_ok(ait_storage_create(ait_allocator_default(), count * sizeof(float), &storage));
  for (size_t i = 0; i < count; ++i) ((float *)ait_storage_data(storage))[i] = (float)i;
  assert_ok(ait_weight_store_add_storage(store, storage, &w.storage));
  assert_ok(ait_weight_store_add(store, &w));
}

static void open_text(const char *text, fixture *f) {
  assert_ok(ait_graph_parse(ait_allocator_default(), text, strlen(text), &f->graph));
  assert_ok(ait_graph_region(f->graph, ait_allocator_default(), &f->region));
  assert_ok(ait_weight_store_create(ait_allocator_default(), &f->store));
  add_weight(f->store, "head.weight", 2, 4, 3);
  add_weight(f->store, "seen", 1, 4, 0);
}

static void close_text(fixture *f) {
  ait_graph_region_destroy(ait_allocator_default(), f->region);
  ait_graph_destroy(f->graph);
  ait_weight_store_release(f->store);
}

static ait_status export_text(fixture *f, const ait_onnx_options *options, ait_blob *out) {
  return ait_export_onnx(ait_allocator_default(), f->region, ait_weight_store_provider(f->store), options, out);
}

static void free_blob(ait_blob *b) { ait_free(ait_allocator_default(), b->data, b->size); }

static void test_structure(void **state) {
  AIT_UNUSED(state);
  fixture f;
  ait_blob blob, again;
  open_text(linear_text, &f);
  assert_ok(export_text(&f, NULL, &blob));
  assert_ok(export_text(&f, NULL, &again));
  assert_int_equal(blob.size, again.size);
  assert_memory_equal(blob.data, again.data, blob.size);
  Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, blob.size, blob.data);
  assert_non_null(m);
  assert_int_equal(m->opset_import[0]->version, AIT_ONNX_OPSET_DEFAULT);
  Onnx__GraphProto *g = m->graph;
  assert_int_equal(g->n_input, 2); /* x, and the state */
  assert_string_equal(g->input[0]->name, "x");
  assert_string_equal(g->input[0]->type->tensor_type->shape->dim[0]->dim_param, "s0");
  assert_int_equal(g->input[0]->type->tensor_type->shape->dim[1]->dim_value, 3);
  assert_string_equal(g->input[1]->name, "seen");
  assert_int_equal(g->n_output, 2);
  assert_string_equal(g->output[0]->name, "scores");
  assert_string_equal(g->output[1]->name, "next.seen");
  assert_int_equal(g->n_node, 3);
  assert_string_equal(g->node[0]->op_type, "Gemm");
  assert_string_equal(g->node[0]->input[1], "head.weight");
  assert_string_equal(g->node[1]->op_type, "Relu");
  assert_string_equal(g->node[1]->output[0], "scores");
  int found = 0;
  for (size_t i = 0; i < g->n_initializer; ++i) {
    if (strcmp(g->initializer[i]->name, "head.weight") && strcmp(g->initializer[i]->name, "seen")) continue;
    ++found;
    assert_float_equal(((const float *)g->initializer[i]->raw_data.data)[3], 3, 0);
  }
  assert_int_equal(found, 2);
  onnx__model_proto__free_unpacked(m, NULL);
  free_blob(&blob);
  free_blob(&again);
  close_text(&f);
}

static void test_every_core_operator_has_a_row(void **state) {
  AIT_UNUSED(state);
  for (size_t i = 0; i < ait_op_count(); ++i) {
    const ait_op *op = ait_op_at(i);
    if (op->traits & (AIT_OP_EFFECT | AIT_OP_MADE)) continue; /* made by ait deploy: refused by name */
    if (op->dialects == AIT_DIALECT_CORE && !ait_onnx_has_row(op->name)) fail_msg("no row for the core operator '%s'", op->name);
  }
}

static void test_refusals(void **state) {
  AIT_UNUSED(state);
  static const char random[] = "graph \"model\" core producer \"test\"\n"
                               "input %x: float32[2] user 0 \"x\"\n"
                               "%r: float32[2] = aten.rand_like(%x) name \"noise\"\n"
                               "output user 0 \"y\" = %r\n";
  fixture f;
  ait_blob blob;
  open_text(random, &f);
  ait_status status = export_text(&f, NULL, &blob);
  assert_int_equal(ait_status_code(status), AIT_CODE_UNSUPPORTED);
  assert_non_null(strstr(ait_status_message(status), "node 'noise' (aten.rand_like)"));
  assert_non_null(strstr(ait_status_message(status), "random"));
  ait_status_free(status);
  close_text(&f);
  open_text(linear_text, &f);
  status = export_text(&f, &(ait_onnx_options){.opset = 17}, &blob);
  assert_int_equal(ait_status_code(status), AIT_CODE_INVALID_ARGUMENT);
  assert_non_null(strstr(ait_status_message(status), "opset 17"));
  ait_status_free(status);
  close_text(&f);
}

static const char big_text[] = "graph \"model\" core producer \"test\"\n"
                               "input %x: float32[1, 300] user 0 \"x\"\n"
                               "input %w: float32[300, 300] parameter -1 \"big\"\n"
                               "%y: float32[1, 300] = linear(%x, %w)\n"
                               "output user 0 \"y\" = %y\n";

static void test_external_data(void **state) {
  AIT_UNUSED(state);
  char path[256], data_path[300], *text, *data;
  size_t size, data_size;
  fixture f;
  snprintf(path, sizeof path, "%s/export_test_%d.onnx", AIT_BINARY_DIR, (int)getpid());
  snprintf(data_path, sizeof data_path, "%s.data", path);
  open_text(big_text, &f);
  add_weight(f.store, "big", 2, 300, 300);
  assert_ok(ait_export_onnx_file(ait_allocator_default(), f.region, ait_weight_store_provider(f.store),
                                 &(ait_onnx_options){.external_data = true}, path));
  assert_ok(ait_file_read(ait_allocator_default(), path, 1 << 20, &text, &size));
  assert_ok(ait_file_read(ait_allocator_default(), data_path, 1 << 20, &data, &data_size));
  assert_int_equal(data_size, 300 * 300 * sizeof(float));
  assert_float_equal(((const float *)data)[301], 301, 0);
  Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, size, (const uint8_t *)text);
  assert_non_null(m);
  Onnx__TensorProto *t = m->graph->initializer[0];
  assert_string_equal(t->name, "big");
  assert_int_equal(t->data_location, ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL);
  assert_string_equal(t->external_data[0]->key, "location");
  assert_string_equal(t->external_data[0]->value, strrchr(data_path, '/') + 1);
  onnx__model_proto__free_unpacked(m, NULL);
  ait_free(ait_allocator_default(), text, size + 1);
  ait_free(ait_allocator_default(), data, data_size + 1);
  unlink(path);
  unlink(data_path);
  close_text(&f);
}

static ait_status export_with(ait_allocator a, void *ctx) {
  fixture *f = ctx;
  ait_blob blob;
  AIT_TRY(ait_export_onnx(a, f->region, ait_weight_store_provider(f->store), NULL, &blob));
  ait_free(a, blob.data, blob.size);
  return AIT_OK;
}

static void test_out_of_memory(void **state) {
  AIT_UNUSED(state);
  fixture f;
  open_text(linear_text, &f);
  test_every_allocation_fails(export_with, &f);
  close_text(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_structure), cmocka_unit_test(test_every_core_operator_has_a_row),
                                     cmocka_unit_test(test_refusals), cmocka_unit_test(test_external_data),
                                     cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
