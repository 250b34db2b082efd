/* From a raw graph to a plan of one step on one backend. */
#include "tune/tune.h"

ait_status ait_option_list_parse(ait_allocator a, const char *text, ait_option_list *out) {
  *out = (ait_option_list){.allocator = a};
  if (!text || !*text) return AIT_OK;
  uint32_t capacity = 1;
  for (const char *p = text; *p; ++p) capacity += *p == ',';
  out->text_size = strlen(text) + 1;
  out->text = ait_alloc(a, out->text_size, 1);
  out->items = ait_alloc(a, capacity * sizeof *out->items, _Alignof(ait_option));
  out->count = capacity; /* for the release of `items` */
  if (!out->text || !out->items) {
    ait_option_list_deinit(out);
    return AIT_OOM();
  }
  memcpy(out->text, text, out->text_size);
  uint32_t n = 0;
  for (char *save = NULL, *item = strtok_r(out->text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
    char *equals = strchr(item, '=');
    if (!equals || equals == item) {
      ait_status status = ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "backend option '%s' is not KEY=VALUE", item), "separate options by commas");
      ait_option_list_deinit(out);
      return status;
    }
    *equals = 0;
    out->items[n++] = (ait_option){.key = item, .value = equals + 1};
  }
  for (uint32_t i = n; i < capacity; ++i) out->items[i] = (ait_option){0};
  return AIT_OK;
}

static uint32_t used_options(const ait_option_list *list) {
  uint32_t n = 0;
  while (n < list->count && list->items[n].key) ++n;
  return n;
}

void ait_option_list_deinit(ait_option_list *list) {
  ait_free(list->allocator, list->text, list->text_size);
  ait_free(list->allocator, list->items, list->count * sizeof *list->items);
  *list = (ait_option_list){.allocator = list->allocator};
}

/* A key that the backend does not list is a user's mistake, not a silent nothing. */
static ait_status check_options(const ait_backend *backend, const ait_option_list *list) {
  for (uint32_t i = 0; i < used_options(list); ++i) {
    bool known = false;
    for (const ait_knob *k = backend->knobs; k && k->name; ++k) known |= !strcmp(k->name, list->items[i].key);
    if (!known)
      return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "backend '%s' has no option '%s'", backend->name, list->items[i].key),
                            "'ait backends -v' lists them");
  }
  return AIT_OK;
}

ait_status ait_plan_lower(const ait_graph *raw, const ait_build_request *request, ait_graph **out) {
  *out = NULL;
  ait_graph *graph;
  AIT_TRY(ait_graph_clone(raw, &graph));
  const char *pipeline = request->pipeline;
  if (!pipeline && !request->backend->accepts_raw) pipeline = strcmp(request->backend->name, "eager") ? "core" : "eager";
  if (pipeline) {
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

/* The step keeps inputs and outputs of its region, not its nodes: the blob has those. */
static ait_status keep_signature(ait_allocator a, const ait_region *region, ait_region **out) {
  ait_region signature = *region;
  signature.node_count = 0;
  signature.nodes = NULL;
  return ait_region_copy(a, &signature, out);
}

/* Plan values: the model's user inputs first, then the region's outputs. */
static ait_status wire_step(ait_allocator a, const ait_region *region, ait_plan *plan) {
  ait_plan_step *step = &plan->steps[0];
  uint32_t users = 0;
  step->inputs = ait_alloc(a, region->input_count * sizeof *step->inputs, _Alignof(uint32_t));
  step->outputs = ait_alloc(a, region->output_count * sizeof *step->outputs, _Alignof(uint32_t));
  if (!step->inputs || !step->outputs) return AIT_OOM();
  for (uint32_t i = 0; i < region->input_count; ++i) {
    bool user = region->inputs[i].kind == AIT_INPUT_USER;
    step->inputs[i] = user ? (uint32_t)region->inputs[i].user_index : AIT_NO_INDEX;
    if (user && (uint32_t)region->inputs[i].user_index + 1 > users) users = (uint32_t)region->inputs[i].user_index + 1;
  }
  plan->output_count = ait_region_user_outputs(region);
  plan->outputs = ait_alloc(a, plan->output_count * sizeof *plan->outputs, _Alignof(uint32_t));
  if (!plan->outputs) return AIT_OOM();
  for (uint32_t i = 0, k = 0; i < region->output_count; ++i) {
    step->outputs[i] = users + i;
    if (region->outputs[i].kind == AIT_OUTPUT_USER) plan->outputs[k++] = users + i;
  }
  plan->value_count = users + region->output_count;
  return AIT_OK;
}

static char *copy_text(ait_allocator a, const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = ait_alloc(a, size, 1);
  if (copy) memcpy(copy, text, size);
  return copy;
}

static ait_status first_reason(const ait_backend *backend, const ait_support *support) {
  const char *reason = support->note_count ? support->notes[0].reason : "no reason given";
  return ait_error(AIT_CODE_UNSUPPORTED, "backend '%s' does not take this model: %s", backend->name, reason);
}

static ait_status build_step(const ait_graph *graph, const ait_region *region, const ait_build_request *request, const ait_option_list *options,
                             ait_support *notes, ait_plan *plan) {
  ait_allocator a = request->allocator;
  ait_support_note local[4];
  ait_support support = {.notes = local, .note_capacity = AIT_COUNT(local)};
  if (!notes) notes = &support;
  AIT_TRY(request->backend->supports(region, notes));
  if (!notes->supported) return first_reason(request->backend, notes);
  plan->steps = ait_alloc_zero(a, sizeof *plan->steps, _Alignof(ait_plan_step));
  if (!plan->steps) return AIT_OOM();
  plan->step_count = 1;
  ait_plan_step *step = &plan->steps[0];
  step->backend = copy_text(a, request->backend->name);
  step->options = copy_text(a, request->options ? request->options : "");
  if (!step->backend || !step->options) return AIT_OOM();
  AIT_TRY(keep_signature(a, region, &step->region));
  AIT_TRY(wire_step(a, region, plan));
  ait_compile_options compile = {.struct_size = sizeof compile,
                                 .allocator = a,
                                 .weights = ait_weight_store_provider(graph->weights),
                                 .option_count = used_options(options),
                                 .options = options->items,
                                 .cpu_mask = request->cpu_mask};
  return request->backend->compile(region, &compile, &step->blob);
}

ait_status ait_plan_build(const ait_graph *raw, const ait_build_request *request, ait_support *notes, ait_plan *out) {
  ait_allocator a = request->allocator;
  ait_graph *graph = NULL;
  ait_region *region = NULL;
  ait_option_list options = {.allocator = a};
  ait_plan plan = {.allocator = a, .threads = 1};
  ait_status status = ait_option_list_parse(a, request->options, &options);
  if (status != AIT_OK) goto cleanup;
  AIT_GOTO(check_options(request->backend, &options));
  AIT_GOTO(ait_plan_lower(raw, request, &graph));
  AIT_GOTO(ait_graph_region(graph, a, &region));
  AIT_GOTO(build_step(graph, region, request, &options, notes, &plan));
  plan.cpu_needed = request->cpu_mask & ait_cpu_features();
  char names[128];
  ait_cpu_names(plan.cpu_needed, names, sizeof names);
  plan.target = copy_text(a, names);
  if (!plan.target) status = AIT_OOM();
cleanup:
  ait_graph_region_destroy(a, region);
  ait_graph_destroy(graph);
  ait_option_list_deinit(&options);
  if (status != AIT_OK) ait_plan_deinit(&plan);
  else *out = plan;
  return status;
}
