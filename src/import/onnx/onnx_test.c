/* ONNX files: what is read, how weights lie, and what is refused. Models are packed here; ONNX's own cases are run by
 * tests/cli/onnx_cases_test.sh. */
#include "import/import.h"
#include "tensor/tensor.h"

#include <onnx-ml.pb-c.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/test_support.h"

/* ---- a model: y = op(x [n, 2], w [2]) -----------------------------------------------------------------------------------------------*/

typedef struct model {
  Onnx__ModelProto proto;
  Onnx__GraphProto graph;
  Onnx__NodeProto node;
  Onnx__TensorProto weight;
  Onnx__OperatorSetIdProto opset;
  Onnx__ValueInfoProto x, y;
  Onnx__TypeProto type;
  Onnx__TypeProto__Tensor tensor;
  Onnx__TensorShapeProto shape;
  Onnx__TensorShapeProto__Dimension dims[2];
  Onnx__StringStringEntryProto external[1];
  /* what the pointers of the messages point to */
  Onnx__OperatorSetIdProto *opsets[1];
  Onnx__NodeProto *nodes[1];
  Onnx__TensorProto *weights[1];
  Onnx__ValueInfoProto *inputs[1], *outputs[1];
  Onnx__TensorShapeProto__Dimension *dim_list[2];
  Onnx__StringStringEntryProto *external_list[1];
  char *names[2], *results[1];
  int64_t weight_dims[1];
  float numbers[2];
} model;

static void model_init(model *m, const char *op) {
  memset(m, 0, sizeof *m);
  onnx__model_proto__init(&m->proto);
  onnx__graph_proto__init(&m->graph);
  onnx__node_proto__init(&m->node);
  onnx__tensor_proto__init(&m->weight);
  onnx__operator_set_id_proto__init(&m->opset);
  onnx__value_info_proto__init(&m->x);
  onnx__value_info_proto__init(&m->y);
  onnx__type_proto__init(&m->type);
  onnx__type_proto__tensor__init(&m->tensor);
  onnx__tensor_shape_proto__init(&m->shape);
  for (int i = 0; i < 2; ++i) onnx__tensor_shape_proto__dimension__init(&m->dims[i]);
  onnx__string_string_entry_proto__init(&m->external[0]);
  m->numbers[0] = 1, m->numbers[1] = -2;
  m->weight_dims[0] = 2;
  m->names[0] = "x", m->names[1] = "w", m->results[0] = "y";
  m->proto.has_ir_version = true, m->proto.ir_version = 10;
  m->proto.producer_name = "test";
  m->opset.has_version = true, m->opset.version = 18;
  m->opset.domain = "";
  m->opsets[0] = &m->opset, m->proto.opset_import = m->opsets, m->proto.n_opset_import = 1;
  m->proto.graph = &m->graph;
  m->graph.name = "g";
  m->nodes[0] = &m->node, m->graph.node = m->nodes, m->graph.n_node = 1;
  m->weights[0] = &m->weight, m->graph.initializer = m->weights, m->graph.n_initializer = 1;
  m->inputs[0] = &m->x, m->graph.input = m->inputs, m->graph.n_input = 1;
  m->outputs[0] = &m->y, m->graph.output = m->outputs, m->graph.n_output = 1;
  m->node.op_type = (char *)(uintptr_t)op, m->node.name = "/layer/node";
  m->node.input = m->names, m->node.n_input = 2, m->node.output = m->results, m->node.n_output = 1;
  m->weight.name = "w", m->weight.has_data_type = true, m->weight.data_type = 1;
  m->weight.dims = m->weight_dims, m->weight.n_dims = 1;
  m->weight.has_raw_data = true, m->weight.raw_data = (ProtobufCBinaryData){sizeof m->numbers, (uint8_t *)m->numbers};
  m->x.name = "x", m->x.type = &m->type, m->y.name = "y";
  m->type.value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE, m->type.tensor_type = &m->tensor;
  m->tensor.has_elem_type = true, m->tensor.elem_type = 1, m->tensor.shape = &m->shape;
  m->shape.dim = m->dim_list, m->shape.n_dim = 2;
  m->dim_list[0] = &m->dims[0], m->dim_list[1] = &m->dims[1];
  m->dims[0].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM, m->dims[0].dim_param = "batch size";
  m->dims[1].value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE, m->dims[1].dim_value = 2;
}

typedef struct bytes {
  uint8_t *data;
  size_t size;
} bytes;

static bytes packed(const model *m) {
  bytes b = {.size = onnx__model_proto__get_packed_size(&m->proto)};
  b.data = malloc(b.size + 1);
  assert_non_null(b.data);
  onnx__model_proto__pack(&m->proto, b.data);
  return b;
}

static void external(model *m, const char *location) {
  m->weight.has_raw_data = false;
  m->weight.has_data_location = true;
  m->weight.data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  m->external[0].key = "location";
  m->external[0].value = (char *)(uintptr_t)location;
  m->external_list[0] = &m->external[0];
  m->weight.external_data = m->external_list;
  m->weight.n_external_data = 1;
}

static ait_status import(const model *m, ait_graph **out) {
  bytes b = packed(m);
  ait_status status = ait_import_onnx_memory(ait_allocator_default(), "m.onnx", b.data, b.size, NULL, out);
  free(b.data);
  return status;
}

static void refused(const model *m, ait_code code, const char *says) {
  ait_graph *g;
  ait_status status = import(m, &g);
  if (!status || ait_status_code(status) != code || !strstr(ait_status_message(status), says))
    fail_msg("got '%s' (%s), want '%s'", ait_status_message(status), ait_code_name(ait_status_code(status)), says);
  assert_non_null(strstr(ait_status_message(status), "m.onnx"));
  assert_null(g);
  ait_status_free(status);
}

/* ---- tests -----------------------------------------------------------------------------------------------------------------------*/

static void a_model(void **state) {
  AIT_UNUSED(state);
  model m;
  ait_graph *g;
  model_init(&m, "Add");
  assert_null(import(&m, &g));
  ait_text text;
  ait_text_init(&text, ait_allocator_default());
  ait_status_ignore(ait_graph_print(g, &text));
  assert_non_null(strstr(text.data, "symbol batch_size [0, "));
  assert_non_null(strstr(text.data, "input %x: float32[batch_size, 2] user 0 \"x\""));
  assert_non_null(strstr(text.data, "input %w: float32[2] parameter -1 \"w\""));
  assert_non_null(strstr(text.data, "%y: float32[batch_size, 2] = add(%x, %w) module \"layer\""));
  ait_text_deinit(&text);
  const ait_weight *w = ait_weight_store_find(g->weights, "w");
  assert_non_null(w);
  assert_memory_equal(ait_storage_data(ait_weight_store_storage(g->weights, w->storage)), m.numbers, sizeof m.numbers);
  ait_graph_destroy(g);
}

static void what_is_refused(void **state) {
  AIT_UNUSED(state);
  model m;
  model_init(&m, "Frobnicate");
  refused(&m, AIT_CODE_UNSUPPORTED, "node '/layer/node' (Frobnicate): operator 'Frobnicate' of 'ai.onnx' (opset 18) is not known");
  m.node.domain = "com.example";
  refused(&m, AIT_CODE_INVALID_MODEL, "does not import the operator set 'com.example'");
  model_init(&m, "Swish"); /* from opset 24 */
  refused(&m, AIT_CODE_UNSUPPORTED, "is known from version 24");
  model_init(&m, "Add");
  m.names[1] = "nothing";
  refused(&m, AIT_CODE_INVALID_MODEL, "input 1 ('nothing') is not defined before");
  model_init(&m, "Add");
  m.results[0] = "x";
  refused(&m, AIT_CODE_INVALID_MODEL, "'x' is defined twice");
  model_init(&m, "Add");
  m.y.name = "z";
  refused(&m, AIT_CODE_INVALID_MODEL, "output 0 ('z') is computed nowhere");
  model_init(&m, "Add");
  m.weight_dims[0] = 3;
  refused(&m, AIT_CODE_INVALID_MODEL, "initializer 'w': it holds 8 bytes, its shape and type need 12");
  m.weight_dims[0] = INT64_MAX / 2;
  refused(&m, AIT_CODE_INVALID_MODEL, "its shape is too large");
  m.weight_dims[0] = -1;
  refused(&m, AIT_CODE_INVALID_MODEL, "size 0 is -1");
  model_init(&m, "Add");
  m.weight.data_type = 8;
  refused(&m, AIT_CODE_UNSUPPORTED, "tensors of type string");
  model_init(&m, "Add");
  m.weight.float_data = m.numbers, m.weight.n_float_data = 2;
  refused(&m, AIT_CODE_INVALID_MODEL, "initializer 'w': its data stands twice: as raw_data and as typed numbers");
  model_init(&m, "Add");
  m.opset.version = 1000;
  refused(&m, AIT_CODE_UNSUPPORTED, "operator set 1000 is newer than");
  model_init(&m, "Add");
  m.proto.graph = NULL;
  refused(&m, AIT_CODE_INVALID_MODEL, "it holds no graph");
}

/* Graphs in graphs in graphs: an If in the then branch of an If. */
static void nesting_has_a_limit(void **state) {
  AIT_UNUSED(state);
  enum { LEVELS = 100 };
  static model m[LEVELS];
  static Onnx__AttributeProto attributes[LEVELS];
  static Onnx__AttributeProto *lists[LEVELS][1];
  for (int i = LEVELS - 1; i >= 0; --i) {
    model_init(&m[i], i == LEVELS - 1 ? "Add" : "If");
    if (i == LEVELS - 1) continue;
    onnx__attribute_proto__init(&attributes[i]);
    attributes[i].name = "then_branch";
    attributes[i].g = &m[i + 1].graph;
    lists[i][0] = &attributes[i];
    m[i].node.attribute = lists[i];
    m[i].node.n_attribute = 1;
  }
  refused(&m[0], AIT_CODE_LIMIT, "messages nest deeper than");
}

static void external_data_stays_in_the_folder(void **state) {
  AIT_UNUSED(state);
  static const char *const outside[] = {"../w.bin", "/etc/passwd", "a/../../w.bin", "link.bin", "..", ""};
  char folder[] = "/tmp/ait-onnx-XXXXXX", path[4096];
  model m;
  ait_graph *g;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/link.bin", folder);
  assert_int_equal(symlink("/etc/passwd", path), 0);
  model_init(&m, "Add");
  for (size_t i = 0; i <= AIT_COUNT(outside); ++i) {
    external(&m, i < AIT_COUNT(outside) ? outside[i] : "w.bin");
    bytes b = packed(&m);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    assert_null(ait_file_write_all(ait_allocator_default(), path, b.data, b.size));
    free(b.data);
    snprintf(path, sizeof path, "%s/w.bin", folder);
    assert_null(ait_file_write_all(ait_allocator_default(), path, m.numbers, sizeof m.numbers));
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    ait_status status = ait_import_onnx(ait_allocator_default(), path, NULL, &g);
    if (i < AIT_COUNT(outside)) {
      assert_non_null(status);
      assert_non_null(strstr(ait_status_message(status), "lies outside of the model's folder"));
      ait_status_free(status);
      continue;
    }
    assert_null(status);
    const ait_weight *w = ait_weight_store_find(g->weights, "w");
    assert_memory_equal(ait_storage_data(ait_weight_store_storage(g->weights, w->storage)), m.numbers, sizeof m.numbers);
    ait_graph_destroy(g);
  }
  for (const char *const *name = (const char *const[]){"m.onnx", "w.bin", "link.bin", NULL}; *name; ++name) {
    snprintf(path, sizeof path, "%s/%s", folder, *name);
    unlink(path);
  }
  rmdir(folder);
}

/* Cut anywhere, and with any byte changed: an answer, or an error that names the file. */
static void damaged_files(void **state) {
  AIT_UNUSED(state);
  static const uint8_t changes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  model m;
  model_init(&m, "Add");
  bytes b = packed(&m);
  for (size_t n = 0; n < b.size; ++n) {
    for (size_t k = 0; k <= AIT_COUNT(changes); ++k) {
      ait_graph *g;
      uint8_t old = b.data[n];
      if (k < AIT_COUNT(changes)) b.data[n] = changes[k];
      ait_status status = ait_import_onnx_memory(ait_allocator_default(), "m.onnx", b.data, k < AIT_COUNT(changes) ? b.size : n, NULL, &g);
      b.data[n] = old;
      assert_true(status ? strstr(ait_status_message(status), "m.onnx") != NULL && g == NULL : g != NULL);
      ait_status_ignore(status);
      ait_graph_destroy(g);
    }
  }
  free(b.data);
}

static ait_status import_with(ait_allocator a, void *ctx) {
  const bytes *b = ctx;
  ait_graph *g;
  ait_status status = ait_import_onnx_memory(a, "m.onnx", b->data, b->size, NULL, &g);
  ait_graph_destroy(g);
  return status;
}

static void every_allocation_may_fail(void **state) {
  AIT_UNUSED(state);
  model m;
  model_init(&m, "Gemm");
  m.node.op_type = "Mul";
  bytes b = packed(&m);
  test_every_allocation_fails(import_with, &b);
  free(b.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_model),
      cmocka_unit_test(what_is_refused),
      cmocka_unit_test(nesting_has_a_limit),
      cmocka_unit_test(external_data_stays_in_the_folder),
      cmocka_unit_test(damaged_files),
      cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
