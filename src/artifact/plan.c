/* Plans in memory. */
#include "artifact/artifact.h"

uint32_t ait_region_user_inputs(const ait_region *region) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < region->input_count; ++i) n += region->inputs[i].kind == AIT_INPUT_USER;
  return n;
}

uint32_t ait_region_user_outputs(const ait_region *region) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < region->output_count; ++i) n += region->outputs[i].kind == AIT_OUTPUT_USER;
  return n;
}

bool ait_region_input_is_weight(const ait_region_input *in) {
  return in->value != AIT_NO_INDEX && (in->kind == AIT_INPUT_PARAMETER || in->kind == AIT_INPUT_BUFFER || in->kind == AIT_INPUT_CONSTANT);
}

bool ait_region_has_state_output(const ait_region *region, const char *name) {
  for (uint32_t i = 0; i < region->output_count; ++i) {
    if (region->outputs[i].kind == AIT_OUTPUT_STATE && strcmp(region->outputs[i].name, name) == 0) return true;
  }
  return false;
}

ait_status ait_region_interface(ait_allocator a, const ait_region *region, ait_region **out) {
  ait_region interface = *region;
  interface.node_count = interface.guard_count = 0;
  interface.nodes = NULL;
  interface.guards = NULL;
  return ait_region_copy(a, &interface, out);
}

static void free_text(ait_allocator a, char *text) {
  if (text) ait_free(a, text, strlen(text) + 1);
}

static void free_indices(ait_allocator a, uint32_t *indices, uint32_t count) { ait_free(a, indices, (size_t)count * sizeof *indices); }

void ait_plan_step_deinit(ait_allocator a, ait_plan_step *s) {
  free_text(a, s->backend);
  free_text(a, s->options);
  free_text(a, s->needs);
  if (!s->blob_mapped) ait_free(a, s->blob.data, s->blob.size);
  if (s->region) {
    free_indices(a, s->inputs, s->region->input_count);
    free_indices(a, s->outputs, s->region->output_count);
  }
  ait_region_destroy(s->region);
}

void ait_plan_deinit(ait_plan *plan) {
  if (!plan) return;
  for (uint32_t i = 0; i < plan->step_count && plan->steps; ++i) ait_plan_step_deinit(plan->allocator, &plan->steps[i]);
  ait_free(plan->allocator, plan->steps, plan->step_count * sizeof *plan->steps);
  free_indices(plan->allocator, plan->outputs, plan->output_count);
  free_text(plan->allocator, plan->target);
  free_text(plan->allocator, plan->machine);
  ait_plan_buckets_deinit(plan);
  *plan = (ait_plan){.allocator = plan->allocator};
}

/* ---- check -----------------------------------------------------------------------------------------------------------------------*/
static ait_status check_inputs(const ait_plan_step *s, uint32_t value_count, const bool *defined) {
  for (uint32_t i = 0; i < s->region->input_count; ++i) {
    if (s->region->inputs[i].kind != AIT_INPUT_USER) continue;
    uint32_t v = s->inputs[i];
    bool baked = s->region->inputs[i].value == AIT_NO_INDEX;
    if (v == AIT_NO_INDEX && baked) continue;
    if (v >= value_count) return ait_error(AIT_CODE_INVALID_MODEL, "input %u reads value %u of %u", i, v, value_count);
    if (!defined[v]) return ait_error(AIT_CODE_INVALID_MODEL, "input %u reads value %u before it is made", i, v);
  }
  return AIT_OK;
}

static ait_status check_outputs(const ait_plan_step *s, uint32_t value_count, uint32_t user_inputs, bool *defined) {
  for (uint32_t i = 0; i < s->region->output_count; ++i) {
    const ait_region_output *o = &s->region->outputs[i];
    uint32_t v = s->outputs[i];
    if (o->kind == AIT_OUTPUT_INPUT && (o->user_index < 0 || (uint32_t)o->user_index >= user_inputs)) {
      return ait_error(AIT_CODE_INVALID_MODEL, "output %u writes input %d of %u", i, o->user_index, user_inputs);
    }
    if (v == AIT_NO_INDEX) continue;
    if (v >= value_count || v < user_inputs || defined[v]) return ait_error(AIT_CODE_INVALID_MODEL, "output %u cannot be value %u", i, v);
    defined[v] = true;
  }
  return AIT_OK;
}

/* User inputs of a region have the positions 0..n-1, each once: sessions index by them. */
static ait_status check_positions(const ait_region *r, uint32_t users, bool *seen) {
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (in->kind != AIT_INPUT_USER) continue;
    if (in->user_index < 0 || (uint32_t)in->user_index >= users || seen[in->user_index]) {
      return ait_error(AIT_CODE_INVALID_MODEL, "input '%s' has no position of its own", in->name ? in->name : "");
    }
    seen[in->user_index] = true;
  }
  return AIT_OK;
}

static ait_status check_steps(const ait_plan *plan, uint32_t users, bool *defined) {
  for (uint32_t s = 0; s < plan->step_count; ++s) {
    const ait_plan_step *step = &plan->steps[s];
    ait_status status = AIT_OK;
    if (!step->region || !step->backend) status = ait_error(AIT_CODE_INVALID_MODEL, "it is incomplete");
    if (!status) status = check_inputs(step, plan->value_count, defined);
    if (!status) status = check_outputs(step, plan->value_count, users, defined);
    if (status) return ait_error_context(status, "step %u", s);
  }
  return AIT_OK;
}

static ait_status check_results(const ait_plan *plan, const ait_region *portable, const bool *defined) {
  for (uint32_t i = 0, k = 0; i < portable->output_count; ++i) {
    if (portable->outputs[i].kind != AIT_OUTPUT_USER) continue;
    uint32_t v = plan->outputs[k++];
    bool made = v == AIT_NO_INDEX ? portable->outputs[i].arg.kind != AIT_ARG_VALUE : v < plan->value_count && defined[v];
    if (!made) return ait_error(AIT_CODE_INVALID_MODEL, "output %u is value %u, which is not made", k - 1, v);
  }
  return AIT_OK;
}

ait_status ait_plan_check(const ait_plan *plan, const ait_region *portable) {
  uint32_t users = ait_region_user_inputs(portable), results = ait_region_user_outputs(portable);
  if (plan->step_count == 0) return ait_error(AIT_CODE_INVALID_MODEL, "plan has no steps");
  if (plan->value_count < users) return ait_error(AIT_CODE_INVALID_MODEL, "plan has %u values for %u inputs", plan->value_count, users);
  if (plan->output_count != results)
    return ait_error(AIT_CODE_INVALID_MODEL, "plan has %u outputs, the model %u", plan->output_count, results);
  bool *defined = ait_alloc_zero(plan->allocator, plan->value_count, 1);
  if (!defined) return AIT_OOM();
  ait_status status = check_positions(portable, users, defined); /* leaves exactly the user inputs defined */
  if (!status) status = check_steps(plan, users, defined);
  if (!status) status = check_results(plan, portable, defined);
  ait_free(plan->allocator, defined, plan->value_count);
  return status ? status : ait_plan_check_buckets(plan, portable);
}
