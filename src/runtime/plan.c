/* A whole region on one backend, as a plan of one step. */
#include "backends/registry.h"
#include "runtime/runtime.h"

static ait_status copy_text(ait_allocator a, const char *text, char **out) {
  size_t size = strlen(text) + 1;
  *out = ait_alloc(a, size, 1);
  if (!*out) return AIT_OOM();
  memcpy(*out, text, size);
  return AIT_OK;
}

static ait_status new_indices(ait_allocator a, uint32_t count, uint32_t **out) {
  *out = ait_alloc(a, (size_t)count * sizeof **out, _Alignof(uint32_t));
  if (!*out) return AIT_OOM();
  for (uint32_t i = 0; i < count; ++i) (*out)[i] = AIT_NO_INDEX;
  return AIT_OK;
}

/* User inputs are the plan values 0..n-1, user outputs those after them. */
static ait_status number_values(ait_plan *plan, const ait_region *region) {
  ait_plan_step *s = &plan->steps[0];
  AIT_TRY(new_indices(plan->allocator, region->input_count, &s->inputs));
  AIT_TRY(new_indices(plan->allocator, region->output_count, &s->outputs));
  uint32_t results = ait_region_user_outputs(region);
  AIT_TRY(new_indices(plan->allocator, results, &plan->outputs));
  plan->output_count = results;
  plan->value_count = ait_region_user_inputs(region);
  for (uint32_t i = 0; i < region->input_count; ++i) {
    if (region->inputs[i].kind == AIT_INPUT_USER) s->inputs[i] = (uint32_t)region->inputs[i].user_index;
  }
  for (uint32_t i = 0, k = 0; i < region->output_count; ++i) {
    if (region->outputs[i].kind != AIT_OUTPUT_USER) continue;
    plan->outputs[k++] = s->outputs[i] = plan->value_count++;
  }
  return AIT_OK;
}

static ait_status compile_step(ait_plan *plan, ait_plan_step *s, const ait_backend *backend, const char *options, const ait_region *region,
                               ait_weights weights, uint64_t cpu_mask) {
  ait_allocator a = plan->allocator;
  AIT_TRY(ait_region_interface(a, region, &s->region));
  AIT_TRY(copy_text(a, backend->name, &s->backend));
  AIT_TRY(copy_text(a, options ? options : "", &s->options));
  if (AIT_BACKEND_HAS(backend, needs)) AIT_TRY(copy_text(a, backend->needs, &s->needs));
  ait_arena scratch;
  ait_arena_init(&scratch, a);
  ait_compile_options compile = {.struct_size = sizeof compile, .allocator = a, .weights = weights, .cpu_mask = cpu_mask};
  ait_option *parsed;
  ait_status status = ait_options_parse(&scratch, options, &parsed, &compile.option_count);
  compile.options = parsed;
  if (!status) status = backend->compile(region, &compile, &s->blob);
  ait_arena_deinit(&scratch);
  return status;
}

static ait_status find_backend(const char *name, const ait_backend **out) {
  *out = ait_backend_find(name);
  if (*out) return AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "there is no backend '%s'", name), "ait backends lists them");
}

static ait_status new_plan(ait_allocator a, uint32_t steps, const char *target, ait_plan *out) {
  *out = (ait_plan){.allocator = a, .threads = 1, .step_count = steps};
  out->steps = ait_alloc_zero(a, steps * sizeof *out->steps, _Alignof(ait_plan_step));
  if (!out->steps) return AIT_OOM();
  return copy_text(a, target ? target : "", &out->target);
}

ait_status ait_plan_compile(ait_allocator a, const char *backend_name, const char *options, const ait_region *region, ait_weights weights,
                            uint64_t cpu_mask, const char *target, ait_plan *out) {
  const ait_backend *backend;
  ait_plan plan;
  AIT_TRY(find_backend(backend_name, &backend));
  ait_status status = new_plan(a, 1, target, &plan);
  if (!status) status = compile_step(&plan, &plan.steps[0], backend, options, region, weights, cpu_mask);
  if (!status) status = number_values(&plan, region);
  if (status) ait_plan_deinit(&plan);
  else *out = plan;
  return status;
}

ait_status ait_plan_of_blob(ait_allocator a, const char *backend_name, const ait_region *region, const void *data, size_t size,
                            const char *target, ait_plan *out) {
  const ait_backend *backend;
  ait_plan plan;
  AIT_TRY(find_backend(backend_name, &backend));
  ait_status status = new_plan(a, 1, target, &plan);
  ait_plan_step *s = &plan.steps[0];
  if (!status) status = ait_region_interface(a, region, &s->region);
  if (!status) status = copy_text(a, backend->name, &s->backend);
  if (!status) status = copy_text(a, "", &s->options);
  if (!status) s->blob = (ait_blob){(void *)(uintptr_t)data, size}, s->blob_mapped = true;
  if (!status) status = number_values(&plan, region);
  if (status) ait_plan_deinit(&plan);
  else *out = plan;
  return status;
}

static ait_status copy_indices(ait_allocator a, const uint32_t *from, uint32_t count, uint32_t **out) {
  AIT_TRY(new_indices(a, count, out));
  memcpy(*out, from, count * sizeof *from);
  return AIT_OK;
}

static ait_status compile_part(ait_plan *plan, ait_plan_step *s, const ait_plan_part *part, ait_weights weights, uint64_t cpu_mask) {
  const ait_backend *backend;
  AIT_TRY(find_backend(part->backend, &backend));
  AIT_TRY(compile_step(plan, s, backend, part->options, part->region, weights, cpu_mask));
  AIT_TRY(copy_indices(plan->allocator, part->inputs, part->region->input_count, &s->inputs));
  return copy_indices(plan->allocator, part->outputs, part->region->output_count, &s->outputs);
}

ait_status ait_plan_compile_parts(ait_allocator a, const ait_plan_part *parts, uint32_t count, uint32_t value_count,
                                  const uint32_t *results, uint32_t result_count, ait_weights weights, uint64_t cpu_mask,
                                  const char *target, ait_plan *out) {
  ait_plan plan;
  ait_status status = new_plan(a, count, target, &plan);
  plan.value_count = value_count;
  plan.output_count = result_count;
  if (!status) status = copy_indices(a, results, result_count, &plan.outputs);
  for (uint32_t i = 0; !status && i < count; ++i)
    status = ait_error_context(compile_part(&plan, &plan.steps[i], &parts[i], weights, cpu_mask), "part %u on '%s'", i, parts[i].backend);
  if (status) ait_plan_deinit(&plan);
  else *out = plan;
  return status;
}
