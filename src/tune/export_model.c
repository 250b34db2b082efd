/* A model as an ONNX file: read, lowered by the core passes, written. */
#include "export/export.h"
#include "tune/tune.h"

static ait_status write_model(const char *model_path, const char *out_path, const ait_load_options *options,
                              const ait_export_options *wanted) {
  ait_graph *raw = NULL, *graph = NULL;
  ait_region *region = NULL;
  ait_allocator a = options->allocator;
  ait_build_request request = {.allocator = a, .pipeline = "core"};
  ait_onnx_options onnx = {.opset = wanted->opset, .external_data = wanted->external_data, .producer = ait_version()};
  ait_status status = AIT_OK;
  AIT_GOTO(ait_graph_open(model_path, options, &raw));
  AIT_GOTO(ait_plan_lower(raw, &request, &graph));
  AIT_GOTO(ait_export_lower(a, graph));
  AIT_GOTO(ait_graph_region(graph, a, &region));
  AIT_GOTO(ait_export_onnx_file(a, region, ait_weight_store_provider(graph->weights), &onnx, out_path));
cleanup:
  ait_graph_region_destroy(a, region);
  ait_graph_destroy(graph);
  ait_graph_destroy(raw);
  return status;
}

ait_status ait_export(const char *model_path, const char *out_path, const ait_load_options *options,
                      const ait_export_options *export_options) {
  ait_load_options defaults;
  ait_export_options none = {.struct_size = sizeof none};
  if (!options) ait_load_options_init(&defaults), options = &defaults;
  return ait_file_context(write_model(model_path, out_path, options, export_options ? export_options : &none), "export", model_path);
}
