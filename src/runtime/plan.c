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

static ait_status compile_step(ait_plan *plan, const ait_backend *backend, const char *options, const ait_region *region,
                               ait_weights weights, uint64_t cpu_mask) {
  ait_allocator a = plan->allocator;
  ait_plan_step *s = &plan->steps[0];
  AIT_TRY(ait_region_interface(a, region, &s->region));
  AIT_TRY(number_values(plan, region));
  AIT_TRY(copy_text(a, backend->name, &s->backend));
  AIT_TRY(copy_text(a, options ? options : "", &s->options));
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

ait_status ait_plan_compile(ait_allocator a, const char *backend_name, const char *options, const ait_region *region, ait_weights weights,
                            uint64_t cpu_mask, const char *target, ait_plan *out) {
  const ait_backend *backend = ait_backend_find(backend_name);
  if (!backend) {
    return ait_error_hint(ait_error(AIT_CODE_NOT_FOUND, "there is no backend '%s'", backend_name), "ait backends lists them");
  }
  ait_plan plan = {.allocator = a, .threads = 1};
  ait_status status = AIT_OK;
  plan.steps = ait_alloc_zero(a, sizeof *plan.steps, _Alignof(ait_plan_step));
  if (!plan.steps) return AIT_OOM();
  plan.step_count = 1;
  AIT_GOTO(copy_text(a, target ? target : "", &plan.target));
  AIT_GOTO(compile_step(&plan, backend, options, region, weights, cpu_mask));
  *out = plan;
  return AIT_OK;
cleanup:
  ait_plan_deinit(&plan);
  return status;
}
