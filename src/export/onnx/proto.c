/* The exporter's graph as protobuf messages, and those as bytes. */
#include "export/onnx/emit.h"
#include <onnx-ml.pb-c.h>
#include <stdio.h>

enum { EXTERNAL_FROM = 1024, PAGE = 4096 }; /* bytes: smaller weights stay in the model; alignment of weights in the data file */
static const uint64_t protobuf_limit = INT32_MAX;

typedef struct writer {
  ox *x;
  bool external;
  const char *data_name; /* of the data file, without folders */
  uint64_t offset;       /* in the data file */
} writer;

/* A message of its type's default, in the arena. */
#define NEW_MESSAGE(x, type, init) ((type *)copy_message((x), &(type)init, sizeof(type)))
static void *copy_message(ox *x, const void *init, size_t size) {
  void *m = oe_new(x, 1, size);
  if (m) memcpy(m, init, size);
  return m;
}

static char *text_of(const char *text) { return (char *)(uintptr_t)(text ? text : ""); } /* protobuf-c does not write into what it packs */

/* ---- types -----------------------------------------------------------------------------------------------------------------------*/
static void dim_text(const ox *x, ait_dim d, ait_text *out, int depth) {
  static const char *const words[] = {
      [AIT_DIM_ADD] = " + ", [AIT_DIM_SUB] = " - ", [AIT_DIM_MUL] = "*",  [AIT_DIM_FLOORDIV] = "//", [AIT_DIM_CEILDIV] = "^/",
      [AIT_DIM_MOD] = "%",   [AIT_DIM_MIN] = ", ",  [AIT_DIM_MAX] = ", ", [AIT_DIM_POW] = "**"};
  const ait_dim_expr *e = &x->frame->region->dims[d];
  if (e->op == AIT_DIM_CONST) {
    ait_text_printf(out, "%lld", (long long)e->value);
    return;
  }
  if (e->op == AIT_DIM_SYMBOL && e->a < x->frame->region->symbol_count) {
    ait_text_printf(out, "%s", x->frame->region->symbols[e->a].name);
    return;
  }
  if (e->op == AIT_DIM_UNKNOWN || e->op == AIT_DIM_SYMBOL || depth == 0) {
    ait_text_printf(out, "?%u", (unsigned)d);
    return;
  }
  ait_text_printf(out, "%s(", e->op == AIT_DIM_MIN ? "min" : e->op == AIT_DIM_MAX ? "max" : "");
  dim_text(x, e->a, out, depth - 1);
  ait_text_printf(out, "%s", words[e->op]);
  dim_text(x, e->b, out, depth - 1);
  ait_text_printf(out, ")");
}

static const char *dim_param(ox *x, ait_dim d) {
  ait_text text;
  ait_text_init(&text, x->allocator);
  dim_text(x, d, &text, 24);
  char *copy = text.failed ? NULL : ait_arena_strdup(&x->arena, text.data, text.length);
  ait_text_deinit(&text);
  if (!copy) oe_set_status(x, AIT_OOM());
  return copy;
}

static Onnx__TensorShapeProto *shape_proto(ox *x, oe_t t) {
  Onnx__TensorShapeProto *shape = NEW_MESSAGE(x, Onnx__TensorShapeProto, ONNX__TENSOR_SHAPE_PROTO__INIT);
  if (!shape || !(shape->dim = oe_new(x, (size_t)t.rank, sizeof *shape->dim))) return NULL;
  shape->n_dim = (size_t)t.rank;
  for (int32_t i = 0; i < t.rank; ++i) {
    Onnx__TensorShapeProto__Dimension *dim = NEW_MESSAGE(x, Onnx__TensorShapeProto__Dimension, ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT);
    if (!(shape->dim[i] = dim)) return NULL;
    int64_t v;
    if (oe_dim_const(x, t.shape[i], &v)) {
      dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
      dim->dim_value = v;
    } else if (x->frame->region->dims[t.shape[i]].op != AIT_DIM_UNKNOWN) {
      dim->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
      dim->dim_param = text_of(dim_param(x, t.shape[i]));
    }
  }
  return shape;
}

static Onnx__ValueInfoProto *port_proto(ox *x, oe_t t) {
  Onnx__ValueInfoProto *info = NEW_MESSAGE(x, Onnx__ValueInfoProto, ONNX__VALUE_INFO_PROTO__INIT);
  Onnx__TypeProto *type = NEW_MESSAGE(x, Onnx__TypeProto, ONNX__TYPE_PROTO__INIT);
  Onnx__TypeProto__Tensor *tensor = NEW_MESSAGE(x, Onnx__TypeProto__Tensor, ONNX__TYPE_PROTO__TENSOR__INIT);
  if (!info || !type || !tensor) return NULL;
  info->name = text_of(t.name->text);
  info->type = type;
  type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
  type->tensor_type = tensor;
  tensor->has_elem_type = true;
  tensor->elem_type = oe_onnx_type(t.dtype);
  if (t.rank == 0 || (t.rank > 0 && t.shape)) tensor->shape = shape_proto(x, t);
  return info;
}

static Onnx__ValueInfoProto **port_protos(ox *x, const oe_t *ports, uint32_t count) {
  Onnx__ValueInfoProto **out = oe_new(x, count, sizeof *out);
  for (uint32_t i = 0; out && i < count && !oe_failed(x); ++i) out[i] = port_proto(x, ports[i]);
  return out;
}

/* ---- weights ---------------------------------------------------------------------------------------------------------------------*/
static const void *packed(ox *x, oe_weight *w) {
  if (w->packed) return w->packed;
  w->packed = w->tensor.data;
  if (ait_tensor_is_contiguous(&w->tensor)) return w->packed;
  void *copy = oe_new(x, ait_tensor_bytes(&w->tensor), 1);
  if (!copy) return NULL;
  ait_tensor target = ait_tensor_borrow(copy, w->tensor.dtype, w->tensor.rank, w->tensor.shape);
  oe_set_status(x, ait_tensor_copy(&target, &w->tensor));
  w->packed = copy;
  return copy;
}

static Onnx__TensorProto *tensor_proto(ox *x, const char *name, ait_dtype dtype, int32_t rank, const int64_t *shape) {
  Onnx__TensorProto *t = NEW_MESSAGE(x, Onnx__TensorProto, ONNX__TENSOR_PROTO__INIT);
  if (!t || !(t->dims = oe_new(x, (size_t)rank, sizeof *t->dims))) return NULL;
  memcpy(t->dims, shape, (size_t)rank * sizeof *shape);
  t->n_dims = (size_t)rank;
  t->name = text_of(name);
  t->has_data_type = true;
  t->data_type = oe_onnx_type(dtype);
  return t;
}

static void raw_data(Onnx__TensorProto *t, const void *data, size_t size) {
  t->has_raw_data = true;
  t->raw_data = (ProtobufCBinaryData){.len = size, .data = (uint8_t *)(uintptr_t)(data ? data : "")};
}

static void external_entry(ox *x, Onnx__TensorProto *t, const char *key, const char *value) {
  Onnx__StringStringEntryProto *e = NEW_MESSAGE(x, Onnx__StringStringEntryProto, ONNX__STRING_STRING_ENTRY_PROTO__INIT);
  if (!e || !value) return;
  e->key = text_of(key);
  e->value = text_of(value);
  t->external_data[t->n_external_data++] = e;
}

static uint64_t align_data(uint64_t offset) { return (offset + PAGE - 1) / PAGE * PAGE; }
static bool goes_outside(const writer *w, const oe_weight *weight) {
  return w->external && ait_tensor_bytes(&weight->tensor) >= EXTERNAL_FROM;
}

static Onnx__TensorProto *weight_proto(writer *w, oe_weight *weight) {
  ox *x = w->x;
  Onnx__TensorProto *t = tensor_proto(x, weight->name->text, weight->tensor.dtype, weight->tensor.rank, weight->tensor.shape);
  size_t size = ait_tensor_bytes(&weight->tensor);
  if (!t) return NULL;
  if (!goes_outside(w, weight)) {
    raw_data(t, packed(x, weight), size);
    return t;
  }
  w->offset = align_data(w->offset);
  if (!(t->external_data = oe_new(x, 3, sizeof *t->external_data))) return NULL;
  t->has_data_location = true;
  t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
  external_entry(x, t, "location", w->data_name);
  external_entry(x, t, "offset", ait_arena_printf(&x->arena, "%llu", (unsigned long long)w->offset));
  external_entry(x, t, "length", ait_arena_printf(&x->arena, "%zu", size));
  w->offset += size;
  return t;
}

static void add_initializers(writer *w, Onnx__GraphProto *g) {
  ox *x = w->x;
  size_t count = 0;
  for (oe_weight *i = x->first_weight; i; i = i->next) ++count;
  for (oe_constant *i = x->first_constant; i; i = i->next) ++count;
  if (!(g->initializer = oe_new(x, count, sizeof *g->initializer))) return;
  for (oe_weight *i = x->first_weight; i && !oe_failed(x); i = i->next)
    if (i->name->used || i->state) g->initializer[g->n_initializer++] = weight_proto(w, i);
  for (oe_constant *i = x->first_constant; i && !oe_failed(x); i = i->next) {
    if (!i->name->used) continue;
    Onnx__TensorProto *t = tensor_proto(x, i->name->text, i->dtype, i->rank, i->shape);
    if (t) raw_data(t, i->data, i->bytes);
    g->initializer[g->n_initializer++] = t;
  }
}

/* ---- nodes -----------------------------------------------------------------------------------------------------------------------*/
static Onnx__GraphProto *graph_proto(ox *x, const oe_frame *f);

static Onnx__AttributeProto *attr_proto(ox *x, const oe_attr *a) {
  Onnx__AttributeProto *p = NEW_MESSAGE(x, Onnx__AttributeProto, ONNX__ATTRIBUTE_PROTO__INIT);
  if (!p) return NULL;
  p->name = text_of(a->name);
  p->has_type = true;
  switch (a->kind) {
    case OE_INT:
      p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
      p->has_i = true;
      p->i = a->i;
      break;
    case OE_FLOAT:
      p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
      p->has_f = true;
      p->f = a->f;
      break;
    case OE_STRING:
      p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
      p->has_s = true;
      p->s = (ProtobufCBinaryData){.len = strlen(a->s), .data = (uint8_t *)text_of(a->s)};
      break;
    case OE_INTS:
      p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
      p->n_ints = a->count;
      p->ints = (int64_t *)(uintptr_t)a->ints;
      break;
    case OE_GRAPH:
      p->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
      p->g = graph_proto(x, a->graph);
      break;
  }
  return p;
}

static Onnx__NodeProto *node_proto(ox *x, const oe_node *n, uint32_t index) {
  Onnx__NodeProto *p = NEW_MESSAGE(x, Onnx__NodeProto, ONNX__NODE_PROTO__INIT);
  if (!p || !(p->input = oe_new(x, n->in_count, sizeof *p->input)) || !(p->output = oe_new(x, n->out_count, sizeof *p->output)))
    return NULL;
  for (uint32_t i = 0; i < n->in_count; ++i) p->input[i] = text_of(n->in[i] ? n->in[i]->text : "");
  for (uint32_t i = 0; i < n->out_count; ++i) p->output[i] = text_of(n->out[i] ? n->out[i]->text : "");
  p->n_input = n->in_count;
  p->n_output = n->out_count;
  p->op_type = text_of(n->op);
  p->name = ait_arena_printf(&x->arena, "%s/%s_%u", n->label ? n->label : "", n->op, (unsigned)index);
  size_t count = 0;
  for (const oe_attr *a = n->attrs; a; a = a->next) ++count;
  if (!p->name || !(p->attribute = oe_new(x, count, sizeof *p->attribute))) return NULL;
  for (const oe_attr *a = n->attrs; a; a = a->next) p->attribute[p->n_attribute++] = attr_proto(x, a);
  return p;
}

/* As deep as bodies nest: BODY_DEPTH_LIMIT of model.c. */
static Onnx__GraphProto *graph_proto(ox *x, const oe_frame *f) {
  Onnx__GraphProto *g = NEW_MESSAGE(x, Onnx__GraphProto, ONNX__GRAPH_PROTO__INIT);
  size_t count = 0;
  for (const oe_node *n = f->first; n; n = n->next) ++count;
  if (!g || !(g->node = oe_new(x, count, sizeof *g->node))) return NULL;
  g->name = text_of(f->name);
  for (const oe_node *n = f->first; n && !oe_failed(x); n = n->next) {
    g->node[g->n_node] = node_proto(x, n, (uint32_t)g->n_node);
    ++g->n_node;
  }
  g->input = port_protos(x, f->inputs, f->input_count);
  g->output = port_protos(x, f->outputs, f->output_count);
  g->n_input = f->input_count;
  g->n_output = f->output_count;
  return g;
}

static Onnx__ModelProto *model_proto(writer *w, const ait_onnx_options *options) {
  static const int64_t ir_versions[] = {8, 9, 9, 10, 10, 11, 12}; /* of opset 18, 19, … */
  ox *x = w->x;
  Onnx__ModelProto *m = NEW_MESSAGE(x, Onnx__ModelProto, ONNX__MODEL_PROTO__INIT);
  Onnx__OperatorSetIdProto *opset = NEW_MESSAGE(x, Onnx__OperatorSetIdProto, ONNX__OPERATOR_SET_ID_PROTO__INIT);
  if (!m || !opset || !(m->opset_import = oe_new(x, 1, sizeof *m->opset_import))) return NULL;
  opset->domain = text_of("");
  opset->has_version = true;
  opset->version = x->opset;
  m->opset_import[0] = opset;
  m->n_opset_import = 1;
  m->has_ir_version = true;
  m->ir_version = ir_versions[x->opset - AIT_ONNX_OPSET_MIN];
  m->producer_name = text_of("ait");
  m->producer_version = text_of(options->producer);
  m->graph = graph_proto(x, x->frame);
  if (!oe_failed(x)) add_initializers(w, m->graph);
  return oe_failed(x) ? NULL : m;
}

/* ---- bytes -----------------------------------------------------------------------------------------------------------------------*/
typedef struct file_buffer {
  ProtobufCBuffer base;
  ait_file_writer *file;
  ait_status status;
} file_buffer;

static void append_to_file(ProtobufCBuffer *buffer, size_t size, const uint8_t *data) {
  file_buffer *b = (file_buffer *)buffer;
  if (b->status == AIT_OK) b->status = ait_file_writer_write(b->file, data, size);
}

static ait_status write_model(ait_allocator a, const Onnx__ModelProto *m, const char *path) {
  file_buffer buffer = {.base = {.append = append_to_file}};
  AIT_TRY(ait_file_writer_create(a, path, &buffer.file));
  protobuf_c_message_pack_to_buffer(&m->base, &buffer.base);
  if (buffer.status == AIT_OK) buffer.status = ait_file_writer_commit(buffer.file);
  ait_file_writer_destroy(buffer.file);
  return buffer.status;
}

static ait_status write_padding(ait_file_writer *file) {
  static const uint8_t zeros[PAGE];
  uint64_t at = ait_file_writer_offset(file);
  return ait_file_writer_write(file, zeros, (size_t)(align_data(at) - at));
}

static ait_status write_data(writer *w, const char *path) {
  ait_file_writer *file;
  AIT_TRY(ait_file_writer_create(w->x->allocator, path, &file));
  ait_status status = AIT_OK;
  for (oe_weight *i = w->x->first_weight; i && status == AIT_OK; i = i->next) {
    if (!(i->name->used || i->state) || !goes_outside(w, i)) continue;
    status = write_padding(file);
    if (status == AIT_OK) status = ait_file_writer_write(file, packed(w->x, i), ait_tensor_bytes(&i->tensor));
  }
  if (status == AIT_OK) status = ait_file_writer_commit(file);
  ait_file_writer_destroy(file);
  return status;
}

static uint64_t weight_bytes(const ox *x) {
  uint64_t total = 0;
  for (const oe_weight *w = x->first_weight; w; w = w->next) total += w->name->used || w->state ? ait_tensor_bytes(&w->tensor) : 0;
  return total;
}

static ait_status write_file(writer *w, const ait_onnx_options *options, const char *path) {
  ox *x = w->x;
  const char *slash = strrchr(path, '/'), *data_path = ait_arena_printf(&x->arena, "%s.data", path);
  if (!data_path) return AIT_OOM();
  w->data_name = data_path + (slash ? slash + 1 - path : 0);
  w->external = options->external_data || weight_bytes(x) > protobuf_limit - protobuf_limit / 16;
  const Onnx__ModelProto *m = model_proto(w, options);
  for (oe_weight *i = x->first_weight; m && i; i = i->next)
    if (i->name->used || i->state) packed(x, i);
  if (oe_failed(x) || !m) return x->status;
  if (protobuf_c_message_get_packed_size(&m->base) > protobuf_limit)
    return ait_error(AIT_CODE_LIMIT, "the model without its weights is larger than the 2 GB that protobuf allows");
  if (w->external) AIT_TRY(write_data(w, data_path));
  return write_model(x->allocator, m, path);
}

ait_status oe_write(ox *x, const ait_onnx_options *options, ait_blob *out_blob, const char *path) {
  writer w = {.x = x};
  if (path) return write_file(&w, options, path);
  if (weight_bytes(x) > protobuf_limit) return ait_error(AIT_CODE_LIMIT, "weights and model are larger than the 2 GB that protobuf allows");
  const Onnx__ModelProto *m = model_proto(&w, options);
  if (!m) return x->status;
  size_t size = protobuf_c_message_get_packed_size(&m->base);
  if (size > protobuf_limit) return ait_error(AIT_CODE_LIMIT, "weights and model are larger than the 2 GB that protobuf allows");
  void *bytes = ait_alloc(x->allocator, size, 64);
  if (!bytes) return AIT_OOM();
  protobuf_c_message_pack(&m->base, bytes);
  *out_blob = (ait_blob){.data = bytes, .size = size};
  return AIT_OK;
}
