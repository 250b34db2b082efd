/* Models: a plan whose blobs are loaded, or the portable graph when no plan of the file can run here. */
#include "backends/registry.h"
#include "runtime/internal.h"

#define PORTABLE_BACKEND "reference"

void ait_load_options_init(ait_load_options *options) {
  *options = (ait_load_options){.struct_size = sizeof *options, .allocator = ait_allocator_default(), .cpu_mask = UINT64_MAX};
}

/* ---- loading a plan ------------------------------------------------------------------------------------------------------------*/
static void unload_steps(ait_model *m) {
  for (uint32_t s = 0; m->steps && m->plan && s < m->plan->step_count; ++s) {
    if (m->steps[s].loaded) m->steps[s].backend->unload(m->steps[s].loaded);
  }
  m->steps = NULL;
  m->plan = NULL;
}

static ait_status load_step(ait_model *m, const ait_plan_step *plan, uint64_t cpu, ait_model_step *out) {
  out->plan = plan;
  out->backend = ait_backend_find(plan->backend);
  if (!out->backend) return ait_error(AIT_CODE_UNAVAILABLE, "backend '%s' is not here", plan->backend);
  ait_load_context context = {
      .struct_size = sizeof context,
      .allocator = m->allocator,
      .weights = m->weights,
      .blob = plan->blob.data,
      .blob_size = plan->blob.size,
      .cpu_mask = cpu,
  };
  ait_option *options;
  AIT_TRY(ait_options_parse(&m->arena, plan->options, &options, &context.option_count));
  context.options = options;
  /* Weights are the backend's to ask for and to check: those that its blob holds packed need not be in the file. */
  ait_status status = out->backend->load(&context, &out->loaded);
  return ait_error_context(status, "backend '%s'", plan->backend);
}

static ait_status load_plan(ait_model *m, const ait_plan *plan, uint64_t cpu) {
  AIT_TRY(ait_plan_check(plan, m->region));
  m->steps = AIT_ARENA_ARRAY(&m->arena, ait_model_step, plan->step_count);
  if (!m->steps) return AIT_OOM();
  memset(m->steps, 0, plan->step_count * sizeof *m->steps);
  m->plan = plan;
  ait_status status = AIT_OK;
  for (uint32_t s = 0; !status && s < plan->step_count; ++s) status = load_step(m, &plan->steps[s], cpu, &m->steps[s]);
  if (status) unload_steps(m);
  return status;
}

/* What is the same for every plan: memory, the disk, a damaged entry. Other failures send the model to its next plan. */
static bool is_final(ait_code code) { return code == AIT_CODE_OUT_OF_MEMORY || code == AIT_CODE_IO; }

static ait_status try_plans(ait_model *m, const ait_model_parts *parts, ait_text *reason) {
  uint64_t cpu = ait_cpu_features() & parts->cpu_mask;
  for (size_t i = 0; i < parts->plan_count; ++i) {
    const ait_plan *plan = &parts->plans[i];
    if (reason->length) ait_text_append(reason, "; ", 2);
    if (plan->cpu_needed & ~cpu) {
      char missing[128];
      ait_cpu_names(plan->cpu_needed & ~cpu, missing, sizeof missing);
      ait_text_printf(reason, "plan '%s' needs %s, which this CPU lacks or the caller masked", plan->target, missing);
      continue;
    }
    ait_status status = load_plan(m, plan, cpu);
    if (!status) {
      m->target = plan->target;
      return AIT_OK;
    }
    if (is_final(ait_status_code(status)) || (parts->plans_only && parts->plan_count == 1)) return status;
    ait_text_printf(reason, "plan '%s' cannot be loaded: %s", plan->target, ait_status_message(status));
    ait_status_ignore(status);
  }
  if (parts->plans_only && parts->plan_count)
    return ait_error(AIT_CODE_UNAVAILABLE, "no plan can run here: %s", reason->data ? reason->data : "");
  AIT_TRY(ait_plan_compile(m->allocator, PORTABLE_BACKEND, NULL, m->region, m->weights, cpu, NULL, &m->own_plan));
  m->target = "portable";
  return load_plan(m, &m->own_plan, cpu);
}

static ait_status choose_plan(ait_model *m, const ait_model_parts *parts) {
  ait_text reason;
  ait_text_init(&reason, m->allocator);
  ait_status status = try_plans(m, parts, &reason);
  if (status && reason.length) {
    const char *first = ait_status_hint(status);
    status = ait_error_hint(status, "%s%sno plan of the file runs here either: %s", first ? first : "", first ? "; " : "", reason.data);
  } else if (!status) {
    /* A plan further down the file than the first one that this CPU could take is news, too. */
    m->reason = ait_arena_strdup(&m->arena, reason.data ? reason.data : "", reason.length);
    if (!m->reason || reason.failed) status = AIT_OOM();
  }
  ait_text_deinit(&reason);
  return status;
}

/* "native+reference" */
static ait_status name_backends(ait_model *m) {
  char *text = ait_arena_strdup(&m->arena, "", 0);
  for (uint32_t s = 0; text && s < m->plan->step_count; ++s) {
    bool seen = false;
    for (uint32_t t = 0; t < s; ++t) seen |= m->steps[t].backend == m->steps[s].backend;
    if (!seen) text = ait_arena_printf(&m->arena, "%s%s%s", text, *text ? "+" : "", m->steps[s].backend->name);
  }
  m->backends = text;
  return text ? AIT_OK : AIT_OOM();
}

/* ---- life ------------------------------------------------------------------------------------------------------------------------*/
static void destroy(ait_model *m) {
  unload_steps(m);
  if (m->own_plan.steps) ait_plan_deinit(&m->own_plan);
  if (m->owner_release) m->owner_release(m->owner);
  ait_arena_deinit(&m->arena);
  ait_free(m->allocator, m, sizeof *m);
}

ait_status ait_model_build(const ait_model_parts *parts, ait_model **out) {
  *out = NULL;
  ait_model *m = ait_alloc_zero(parts->allocator, sizeof *m, _Alignof(ait_model));
  if (!m) return AIT_OOM();
  m->allocator = parts->allocator;
  atomic_init(&m->references, 1);
  ait_arena_init(&m->arena, parts->allocator);
  m->region = parts->portable;
  m->weights = parts->weights;
  m->manifest = parts->manifest ? parts->manifest : "";
  ait_status status = AIT_OK;
  AIT_GOTO(ait_model_check_weights(m->region, &m->weights));
  AIT_GOTO(choose_plan(m, parts));
  AIT_GOTO(ait_model_describe(m));
  AIT_GOTO(ait_model_find_states(m));
  AIT_GOTO(name_backends(m));
  m->owner = parts->owner;
  m->owner_release = parts->owner_release;
  *out = m;
  return AIT_OK;
cleanup:
  destroy(m);
  return status;
}

ait_status ait_model_create(ait_allocator a, const ait_region *portable, ait_weights weights, const ait_plan *plan, void *owner,
                            void (*owner_release)(void *owner), ait_model **out) {
  ait_model_parts parts = {
      .allocator = a,
      .portable = portable,
      .weights = weights,
      .plans = plan,
      .plan_count = plan != NULL,
      .plans_only = true,
      .cpu_mask = UINT64_MAX,
      .owner = owner,
      .owner_release = owner_release,
  };
  return ait_model_build(&parts, out);
}

ait_model *ait_model_retain(ait_model *model) {
  if (model) atomic_fetch_add_explicit(&model->references, 1, memory_order_relaxed);
  return model;
}

void ait_model_release(ait_model *model) {
  if (model && atomic_fetch_sub_explicit(&model->references, 1, memory_order_acq_rel) == 1) destroy(model);
}

/* ---- questions -------------------------------------------------------------------------------------------------------------------*/
size_t ait_model_input_count(const ait_model *model) { return model->input_count; }
size_t ait_model_output_count(const ait_model *model) { return model->output_count; }

static ait_status port_at(const ait_port *ports, size_t count, size_t index, const char *what, ait_port *out) {
  if (index >= count) return ait_error(AIT_CODE_INVALID_ARGUMENT, "%s %zu of a model with %zu", what, index, count);
  *out = ports[index];
  return AIT_OK;
}

ait_status ait_model_input(const ait_model *model, size_t index, ait_port *out) {
  return port_at(model->inputs, model->input_count, index, "input", out);
}

ait_status ait_model_output(const ait_model *model, size_t index, ait_port *out) {
  return port_at(model->outputs, model->output_count, index, "output", out);
}

const char *ait_model_state_name(const ait_model *model, size_t index) {
  for (size_t i = 0; i < model->state_count; ++i) {
    if (model->states[i].portable && index-- == 0) return model->states[i].name;
  }
  return NULL;
}

const char *ait_model_manifest(const ait_model *model) { return model->manifest; }
const char *ait_model_reason(const ait_model *model) { return model->reason; }
const char *ait_model_target(const ait_model *model) { return model->target; }
const ait_region *ait_model_region(const ait_model *model) { return model->region; }
ait_weights ait_model_weights(const ait_model *model) { return model->weights; }
