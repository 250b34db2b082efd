/* Model files to graphs, and to models that run unoptimised or on one backend. */
#include "custom/custom.h"
#include "tensor/safetensors.h"
#include "tune/tune.h"

ait_status ait_file_context(ait_status status, const char *what, const char *path) {
  if (status == AIT_OK || strstr(ait_status_message(status), path)) return status;
  return ait_error_context(status, "cannot %s '%s'", what, path);
}

static const char *kind_text(ait_file_kind kind) {
  switch (kind) {
    case AIT_FILE_TORCHSCRIPT: return "it is a TorchScript file";
    case AIT_FILE_CHECKPOINT: return "it is a checkpoint (torch.save) without a program";
    case AIT_FILE_AOTI: return "it is an AOTInductor package: compiled code for one machine and no program";
    case AIT_FILE_SAFETENSORS: return "it holds weights without a program";
    default: return "its format is not known";
  }
}

/* The portable part of an .ait: what the user's file said. */
static ait_status open_artifact(const ait_load_options *options, const char *path, ait_graph **out) {
  ait_allocator a = options->allocator;
  ait_artifact *artifact;
  ait_artifact_open_options open = {.keys = options->keys, .require_signature = options->require_signature};
  AIT_TRY(ait_artifact_open(a, path, &open, &artifact));
  ait_weight_store *weights = (ait_weight_store *)(uintptr_t)ait_artifact_weights(artifact); /* it outlives the artifact when retained */
  ait_status status = ait_graph_from_region(a, ait_artifact_region(artifact), AIT_DIALECT_RAW, weights, out);
  const char *names[] = {ait_artifact_producer(artifact), ait_artifact_model_name(artifact)};
  if (status == AIT_OK) status = ait_graph_strdup(*out, names[0], &(*out)->producer);
  if (status == AIT_OK && names[1]) status = ait_graph_strdup(*out, names[1], &(*out)->name);
  ait_artifact_release(artifact);
  if (status == AIT_OK) return AIT_OK;
  ait_graph_destroy(*out);
  *out = NULL;
  return status;
}

/* Text as `ait opt` writes it. It names weights and does not hold them: what needs their contents says so. */
static ait_status open_text(ait_allocator a, const char *path, ait_graph **out) {
  char *text;
  size_t length;
  AIT_TRY(ait_file_read(a, path, (size_t)64 << 20, &text, &length));
  ait_status status = ait_graph_parse(a, text, length, out);
  if (status == AIT_OK) status = ait_graph_verify(*out);
  ait_free(a, text, length + 1);
  if (status == AIT_OK && !(*out)->weights) status = ait_weight_store_create(a, &(*out)->weights);
  if (status == AIT_OK) return AIT_OK;
  ait_graph_destroy(*out);
  *out = NULL;
  return status;
}

static ait_status open_kind(const char *path, const ait_load_options *options, const ait_map *weights, ait_graph **out) {
  ait_file_kind kind;
  AIT_TRY(ait_import_detect(path, &kind));
  ait_import_options import = {.model_name = options->model_name, .weights = weights};
  if (kind == AIT_FILE_PT2 || kind == AIT_FILE_AOTI || kind == AIT_FILE_UNKNOWN) {
    AIT_TRY(ait_import_pt2(options->allocator, path, &import, out));
    bool same = !weights && !options->model_name; /* the file is this graph, no more and no less */
    return same ? ait_graph_strdup(*out, path, &(*out)->program) : AIT_OK;
  }
  if (kind == AIT_FILE_TEXT) return open_text(options->allocator, path, out);
  if (kind == AIT_FILE_ONNX) return ait_import_onnx(options->allocator, path, &import, out);
  if (kind == AIT_FILE_AIT) return open_artifact(options, path, out);
  if (kind == AIT_FILE_SAFETENSORS)
    return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "cannot import '%s': %s", path, kind_text(kind)),
                          "give it beside a program: ait … MODEL --weights %s", path);
  return ait_error_hint(ait_error(AIT_CODE_UNSUPPORTED, "cannot import '%s': %s", path, kind_text(kind)),
                        "save an exported program: torch.export.save(torch.export.export(model, args), \"model.pt2\")");
}

static ait_status open_with_weights(const char *path, const ait_load_options *options, ait_graph **out) {
  ait_tensor_file file;
  ait_map by_name;
  ait_file_kind kind;
  AIT_TRY(ait_import_detect(path, &kind));
  if (kind == AIT_FILE_AIT)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "an .ait holds its weights: none can be given beside it"),
                          "tune the model with the other weights");
  ait_tensor_file_init(&file, options->allocator);
  ait_map_init(&by_name, options->allocator);
  ait_status status = ait_safetensors_open(options->weights, &file);
  for (size_t i = 0; i < file.count && !status; ++i) status = ait_map_put(&by_name, file.items[i].name, &file.items[i].tensor);
  if (!status) status = open_kind(path, options, &by_name, out);
  if (!status) status = ait_error_context(ait_import_give_weights(*out, &by_name), "weights '%s'", options->weights);
  ait_map_deinit(&by_name);
  ait_tensor_file_deinit(&file);
  return status;
}

ait_status ait_graph_open(const char *path, const ait_load_options *options, ait_graph **out) {
  ait_load_options defaults;
  if (!options) ait_load_options_init(&defaults), options = &defaults;
  *out = NULL;
  ait_status status = options->weights ? open_with_weights(path, options, out) : open_kind(path, options, NULL, out);
  if (status) {
    ait_graph_destroy(*out);
    *out = NULL;
  }
  return status;
}

ait_status ait_graph_check_operators(const ait_graph *graph) {
  ait_missing missing;
  ait_missing_init(&missing, graph->allocator);
  ait_status status = ait_missing_of_graph(graph, &missing);
  if (!status && missing.by_name.count) {
    const ait_missing_operator *o = missing.by_name.entries[0].value;
    status = o->custom ? ait_custom_missing(o->first_node, o->name)
                       : ait_error(AIT_CODE_UNSUPPORTED, "node '%s': nothing runs operator '%s'", o->first_node, o->name);
    status = ait_missing_tell(&missing, status);
  }
  ait_missing_deinit(&missing);
  return status;
}

/* What an imported model keeps alive. */
typedef struct imported {
  ait_allocator allocator;
  ait_graph *graph;
  ait_region *region;
  ait_weight_store *weights;
  ait_plan plan;
} imported;

static void imported_release(void *owner) {
  imported *m = owner;
  ait_plan_deinit(&m->plan);
  ait_weight_store_release(m->weights);
  ait_graph_region_destroy(m->allocator, m->region);
  ait_graph_destroy(m->graph);
  ait_free(m->allocator, m, sizeof *m);
}

static ait_status build_model(const char *path, const ait_load_options *options, imported *m, ait_model **out) {
  const ait_backend *backend = ait_backend_find(options->backend ? options->backend : "reference");
  if (!backend)
    return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no backend '%s'", options->backend), "'ait backends' lists them");
  AIT_TRY(ait_graph_open(path, options, &m->graph));
  AIT_TRY(ait_graph_check_operators(m->graph));
  AIT_TRY(ait_graph_region(m->graph, m->allocator, &m->region));
  ait_build_request request = {
      .allocator = m->allocator, .backend = backend, .options = options->knobs, .pipeline = options->passes, .cpu_mask = options->cpu_mask};
  AIT_TRY(ait_plan_build(m->graph, &request, NULL, &m->plan, &m->weights));
  return ait_model_create(m->allocator, m->region, ait_weight_store_provider(m->weights), &m->plan, m, imported_release, out);
}

ait_status ait_model_import(const char *path, const ait_load_options *options, ait_model **out) {
  ait_load_options defaults;
  if (!options) ait_load_options_init(&defaults), options = &defaults;
  *out = NULL;
  ait_file_kind kind;
  ait_status status = ait_import_detect(path, &kind);
  if (status != AIT_OK) return ait_file_context(status, "import", path);
  if (kind == AIT_FILE_AIT && !options->weights) return ait_model_load(path, options, out);
  imported *m = ait_alloc_zero(options->allocator, sizeof *m, _Alignof(imported));
  if (!m) return AIT_OOM();
  m->allocator = options->allocator;
  m->plan.allocator = options->allocator;
  status = build_model(path, options, m, out);
  if (status != AIT_OK) imported_release(m);
  return ait_file_context(status, "import", path);
}
