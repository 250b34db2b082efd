/* From a raw graph to a plan of one step on one backend. */
#include "tune/tune.h"
#include <stdio.h>

/* A key that the backend does not list is a user's mistake, not a silent nothing. */
static ait_status check_options(const ait_backend *backend, const char *text) {
  ait_arena arena;
  ait_option *options;
  uint32_t count;
  ait_arena_init(&arena, ait_allocator_default());
  ait_status status = ait_options_parse(&arena, text, &options, &count);
  for (uint32_t i = 0; status == AIT_OK && i < count; ++i) {
    bool known = false;
    for (const ait_knob *k = backend->knobs; k && k->name; ++k) known |= !strcmp(k->name, options[i].key);
    if (known) continue;
    status = ait_error(AIT_CODE_INVALID_ARGUMENT, "backend '%s' has no option '%s'", backend->name, options[i].key);
    status = ait_error_hint(status, "'ait backends -v' lists them");
  }
  ait_arena_deinit(&arena);
  return status;
}

/* The same weights over the same storages: what a pass folds joins the copy only. */
static ait_status copy_store(ait_allocator a, const ait_weight_store *from, ait_weight_store **out) {
  ait_weight_store *copy;
  AIT_TRY(ait_weight_store_create(a, &copy));
  ait_status status = AIT_OK;
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_storage_count(from); ++i) {
    uint32_t index;
    status = ait_weight_store_add_storage(copy, ait_storage_retain(ait_weight_store_storage(from, (uint32_t)i)), &index);
  }
  for (size_t i = 0; status == AIT_OK && i < ait_weight_store_count(from); ++i)
    status = ait_weight_store_add(copy, ait_weight_store_at(from, i));
  if (status != AIT_OK) ait_weight_store_release(copy);
  else *out = copy;
  return status;
}

ait_status ait_plan_lower(const ait_graph *raw, const ait_build_request *request, ait_graph **out) {
  *out = NULL;
  ait_graph *graph;
  AIT_TRY(ait_graph_clone(raw, &graph));
  ait_weight_store *weights = NULL;
  ait_status copied = graph->weights ? copy_store(request->allocator, graph->weights, &weights) : AIT_OK;
  if (copied != AIT_OK) {
    ait_graph_destroy(graph);
    return copied;
  }
  if (weights) ait_weight_store_release(graph->weights);
  graph->weights = weights;
  const char *pipeline = request->pipeline;
  if (!pipeline && !request->backend->accepts_raw) pipeline = strcmp(request->backend->name, "eager") ? "core" : "eager";
  if (pipeline) {
    graph->program = NULL; /* passes change it */
    ait_pass_context context = request->passes;
    context.allocator = request->allocator;
    ait_status status = ait_passes_run(graph, pipeline, &context, NULL, NULL);
    if (status != AIT_OK) {
      ait_graph_destroy(graph);
      return status;
    }
  }
  *out = graph;
  return AIT_OK;
}

ait_status ait_region_taken(const ait_backend *backend, const ait_region *region, const char *what, ait_support *notes) {
  ait_support_note local[4];
  ait_support own = {.notes = local, .note_capacity = AIT_COUNT(local)}, *s = notes ? notes : &own;
  AIT_TRY(backend->supports(region, s));
  if (s->supported) return AIT_OK;
  return ait_error(AIT_CODE_UNSUPPORTED, "backend '%s' does not take %s: %s", backend->name, what,
                   s->note_count ? s->notes[0].reason : "no reason given");
}

void ait_plan_target(uint64_t features, char *out, size_t size) {
  ait_cpu_names(features, out, size);
  if (!*out) snprintf(out, size, "scalar");
}

ait_status ait_plan_build(const ait_graph *raw, const ait_build_request *request, ait_support *notes, ait_plan *out_plan,
                          ait_weight_store **out_weights) {
  ait_allocator a = request->allocator;
  ait_graph *graph = NULL;
  ait_region *region = NULL;
  char target[128];
  ait_onnx_bridge_connect();
  ait_status status = check_options(request->backend, request->options);
  if (status != AIT_OK) goto cleanup;
  AIT_GOTO(ait_plan_lower(raw, request, &graph));
  AIT_GOTO(ait_graph_region(graph, a, &region));
  AIT_GOTO(ait_region_taken(request->backend, region, "this model", notes));
  ait_plan_target(request->cpu_mask & ait_cpu_features(), target, sizeof target);
  AIT_GOTO(ait_plan_compile(a, request->backend->name, request->options, region, ait_weight_store_provider(graph->weights),
                            request->cpu_mask, target, out_plan));
  out_plan->cpu_needed = request->cpu_mask & ait_cpu_features();
  *out_weights = ait_weight_store_retain(graph->weights);
cleanup:
  ait_graph_region_destroy(a, region);
  ait_graph_destroy(graph);
  return status;
}
