/* The file: mapping, unpacking, operator sets, functions, the main graph's inputs and outputs. */
#include "import/onnx/onnx.h"

enum { MEMORY_RATIO = 64, MEMORY_FREE = 160 << 20 };
enum { OPSET_MIN = 1, OPSET_MAX = 27, IR_MAX = 14 };

/* ---- unpacking -------------------------------------------------------------------------------------------------------------------*/

typedef struct unpack_memory {
  ait_arena *arena;
  bool failed; /* protobuf-c says the same for no memory and for damage */
} unpack_memory;

static void *unpack_alloc(void *ctx, size_t size) {
  unpack_memory *m = ctx;
  void *p = ait_arena_alloc(m->arena, size ? size : 1, _Alignof(max_align_t));
  m->failed |= p == NULL;
  return p;
}

static void unpack_free(void *ctx, void *p) {
  AIT_UNUSED(ctx);
  AIT_UNUSED(p); /* the arena is freed as a whole */
}

static ait_status unpack(ox_import *in) {
  unpack_memory memory = {&in->arena, false};
  ProtobufCAllocator allocator = {unpack_alloc, unpack_free, &memory};
  static const uint8_t empty[1];
  AIT_TRY(ox_slim_model(in->arena.allocator, in->data, in->size, &in->slim));
  in->model = onnx__model_proto__unpack(&allocator, in->slim.size, in->slim.data ? in->slim.data : empty);
  if (in->model) return AIT_OK;
  if (memory.failed) return AIT_OOM();
  return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "it does not follow the schema of ONNX"),
                        "the file may be damaged; export it again");
}

/* ---- model -----------------------------------------------------------------------------------------------------------------------*/

ait_status ox_read_opsets(ox_import *in, Onnx__OperatorSetIdProto *const *imports, size_t count, const ox_opset **out) {
  ox_opset *opsets = AIT_ARENA_ARRAY(&in->arena, ox_opset, count + 1);
  if (!opsets) return AIT_OOM();
  for (size_t i = 0; i < count; ++i) {
    const char *domain = imports[i]->domain ? imports[i]->domain : "";
    if (strcmp(domain, "ai.onnx") == 0) domain = "";
    opsets[i] = (ox_opset){domain, imports[i]->version};
    if (*domain) continue;
    if (imports[i]->version < OPSET_MIN)
      return ait_error_hint(
          ait_error(AIT_CODE_UNSUPPORTED, "operator set %lld is no version (%d is the first)", (long long)imports[i]->version, OPSET_MIN),
          "onnx.version_converter.convert_version brings it to a newer one");
    if (imports[i]->version > OPSET_MAX)
      return ait_error_hint(
          ait_error(AIT_CODE_UNSUPPORTED, "operator set %lld is newer than %d", (long long)imports[i]->version, OPSET_MAX),
          "export with opset_version=%d or less", OPSET_MAX);
  }
  *out = opsets;
  return AIT_OK;
}

static ait_status index_functions(ox_import *in) {
  for (size_t i = 0; i < in->model->n_functions; ++i) {
    const Onnx__FunctionProto *f = in->model->functions[i];
    const char *domain = f->domain && strcmp(f->domain, "ai.onnx") ? f->domain : "";
    const char *key = ait_arena_printf(&in->arena, "%s:%s:%s", domain, f->name ? f->name : "", f->overload ? f->overload : "");
    if (!key) return AIT_OOM();
    if (ait_map_get(&in->functions, key, NULL))
      return ait_error(AIT_CODE_INVALID_MODEL, "two functions are named '%s'", f->name ? f->name : "");
    AIT_TRY(ait_map_put(&in->functions, key, (void *)(uintptr_t)f));
  }
  return AIT_OK;
}

ait_status ox_add_initializers(ox_scope *s, const Onnx__GraphProto *graph) {
  for (size_t i = 0; i < graph->n_initializer; ++i) {
    const Onnx__TensorProto *t = graph->initializer[i];
    const char *name = t->name ? t->name : "";
    if (!*name) return ait_error(AIT_CODE_INVALID_MODEL, "initializer %zu has no name", i);
    if (ait_map_get(&s->initializers, name, NULL)) return ait_error(AIT_CODE_INVALID_MODEL, "two initializers are named '%s'", name);
    AIT_TRY(ait_map_put(&s->initializers, name, (void *)(uintptr_t)t));
  }
  for (size_t i = 0; i < graph->n_sparse_initializer; ++i) {
    const Onnx__SparseTensorProto *t = graph->sparse_initializer[i];
    const char *name = t->values && t->values->name ? t->values->name : "";
    uint32_t value;
    ox_scope *root = s;
    while (root->frame->captures_for) root = root->frame->captures_for;
    AIT_TRY(ox_add_sparse(root, name, t, &value));
    AIT_TRY(ox_bring_down(s, value, &value));
    AIT_TRY(ox_define(s, name, value));
  }
  return AIT_OK;
}

/* In old files initializers stand among the inputs, too: they are no inputs then. */
static ait_status add_inputs(ox_scope *s, const Onnx__GraphProto *graph) {
  ox_import *in = s->in;
  const char **names = AIT_ARENA_ARRAY(&in->arena, const char *, graph->n_input + 1);
  int32_t count = 0;
  if (!names) return AIT_OOM();
  for (size_t i = 0; i < graph->n_input; ++i) {
    const Onnx__ValueInfoProto *v = graph->input[i];
    const char *name = v->name ? v->name : "";
    ait_value_info info;
    ait_region_input input = {.kind = AIT_INPUT_USER, .name = name, .user_index = count};
    if (ait_map_get(&s->initializers, name, NULL)) continue;
    if (!*name) return ait_error(AIT_CODE_INVALID_MODEL, "input %zu has no name", i);
    AIT_TRY(ait_error_context(ox_type(in, name, v->type, true, &info), "input %zu", i));
    AIT_TRY(ait_graph_add_value(in->graph, name, &info, &input.value));
    AIT_TRY(ox_define(s, name, input.value));
    AIT_TRY(ait_graph_add_input(in->graph, &input));
    names[count++] = name;
  }
  return ait_graph_set_input_spec(in->graph, names, (size_t)count);
}

static ait_status add_outputs(ox_scope *s, const Onnx__GraphProto *graph) {
  if (graph->n_output == 0) return ait_error(AIT_CODE_INVALID_MODEL, "the graph has no outputs");
  for (size_t i = 0; i < graph->n_output; ++i) {
    const char *name = graph->output[i]->name ? graph->output[i]->name : "";
    uint32_t value;
    AIT_TRY(ox_find(s, name, &value));
    if (value == AIT_NO_INDEX) return ait_error(AIT_CODE_INVALID_MODEL, "output %zu ('%s') is computed nowhere", i, name);
    ait_region_output output = {.arg = ait_arg_value(value), .kind = AIT_OUTPUT_USER, .name = name, .user_index = (int32_t)i};
    AIT_TRY(ait_graph_add_output(s->frame->graph, &output));
  }
  return AIT_OK;
}

static ait_status name_graph(ox_import *in) {
  const Onnx__ModelProto *m = in->model;
  const char *name = m->graph->name && *m->graph->name ? m->graph->name : "model";
  const char *producer = m->producer_name && *m->producer_name ? m->producer_name : "onnx";
  producer = ait_arena_printf(&in->arena, "%s%s%s", producer, m->producer_version && *m->producer_version ? " " : "",
                              m->producer_version ? m->producer_version : "");
  if (!producer) return AIT_OOM();
  AIT_TRY(ait_graph_strdup(in->graph, name, &in->graph->name));
  return ait_graph_strdup(in->graph, producer, &in->graph->producer);
}

static ait_status import_graph(ox_scope *s) {
  const Onnx__GraphProto *graph = s->in->model->graph;
  AIT_TRY(ox_add_initializers(s, graph));
  AIT_TRY(add_inputs(s, graph));
  AIT_TRY(ox_add_nodes(s, graph->node, graph->n_node));
  return add_outputs(s, graph);
}

static ait_status import_model(ox_import *in) {
  ox_frame frame;
  ox_scope scope;
  AIT_TRY(unpack(in));
  if (!in->model->graph)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_MODEL, "it holds no graph"), "the file may be damaged, or no ONNX model");
  if (in->model->ir_version > IR_MAX)
    return ait_error(AIT_CODE_UNSUPPORTED, "IR version %lld is newer than %d", (long long)in->model->ir_version, IR_MAX);
  AIT_TRY(ait_graph_create(in->arena.allocator, AIT_DIALECT_RAW, &in->graph));
  AIT_TRY(ait_weight_store_create(in->arena.allocator, &in->weights));
  in->graph->weights = in->weights;
  AIT_TRY(name_graph(in));
  AIT_TRY(index_functions(in));
  ox_frame_init(&frame, in->graph, in);
  ox_scope_init(&scope, in, &frame, NULL);
  scope.opset_count = in->model->n_opset_import;
  ait_status status = ox_read_opsets(in, in->model->opset_import, in->model->n_opset_import, &scope.opsets);
  if (!status) status = import_graph(&scope);
  ox_scope_deinit(&scope);
  ox_frame_deinit(&frame);
  return status;
}

/* ---- entry -----------------------------------------------------------------------------------------------------------------------*/

static void start(ox_import *in, ait_allocator a, const ait_import_options *options) {
  size_t limit = options ? options->memory_limit : 0, scaled;
  in->options = options;
  ait_arena_init(&in->arena, a);
  if (limit == 0 && (ait_mul_overflows(in->size, (size_t)MEMORY_RATIO, &scaled) || ait_add_overflows(scaled, (size_t)MEMORY_FREE, &limit)))
    limit = SIZE_MAX;
  in->arena.limit_bytes = limit;
  ait_map *const maps[] = {&in->externals, &in->weight_names, &in->functions, &in->dim_names};
  for (size_t i = 0; i < AIT_COUNT(maps); ++i) ait_map_init(maps[i], a);
}

static void finish(ox_import *in) {
  ait_map *const maps[] = {&in->externals, &in->weight_names, &in->functions, &in->dim_names};
  for (size_t i = 0; i < in->externals.count; ++i) ait_file_map_release(in->externals.entries[i].value);
  for (size_t i = 0; i < AIT_COUNT(maps); ++i) ait_map_deinit(maps[i]);
  if (in->slim.allocator.alloc) ox_slim_deinit(&in->slim);
  ait_arena_deinit(&in->arena);
}

/* The arena's own limit shows as no memory; tell the two apart. */
static ait_status explain_limit(const ox_import *in, ait_status status) {
  if (ait_status_code(status) != AIT_CODE_OUT_OF_MEMORY || in->arena.used_bytes < in->arena.limit_bytes / 2) return status;
  ait_status_ignore(status);
  return ait_error(AIT_CODE_LIMIT, "reading it needs more than the limit of %zu MiB", in->arena.limit_bytes >> 20);
}

static ait_status run_import(ox_import *in, ait_allocator a, const ait_import_options *options, ait_graph **out) {
  start(in, a, options);
  ait_status status = explain_limit(in, import_model(in));
  if (!status && !in->missing) status = ait_graph_verify(in->graph);
  if (status || in->missing) {
    ait_graph_destroy(in->graph);
    in->graph = NULL;
  }
  *out = in->graph;
  finish(in);
  return status ? ait_error_context(status, "cannot import '%s'", in->path) : AIT_OK;
}

static ait_status import_file(ait_allocator a, const char *path, const ait_import_options *options, ait_missing *missing, ait_graph **out) {
  ox_import in = {.path = path, .missing = missing};
  *out = NULL;
  ait_status status = ait_file_map_open(a, path, &in.mapping);
  if (status) return ait_error_context(status, "cannot import '%s'", path);
  in.data = ait_file_map_data(in.mapping);
  in.size = ait_file_map_size(in.mapping);
  status = run_import(&in, a, options, out);
  ait_file_map_release(in.mapping);
  return status;
}

ait_status ait_import_onnx(ait_allocator a, const char *path, const ait_import_options *options, ait_graph **out) {
  return import_file(a, path, options, NULL, out);
}

ait_status ait_import_onnx_operators(ait_allocator a, const char *path, const ait_import_options *options, ait_missing *out) {
  ait_graph *none;
  return import_file(a, path, options, out, &none);
}

ait_status ait_import_onnx_memory(ait_allocator a, const char *name, const void *data, size_t size, const ait_import_options *options,
                                  ait_graph **out) {
  ox_import in = {.path = name, .data = data, .size = size};
  *out = NULL;
  return run_import(&in, a, options, out);
}
