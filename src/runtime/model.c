/* Models: a plan whose blobs are loaded, or the portable graph when no plan of the file can run here. */
#include "backends/registry.h"
#include "runtime/internal.h"

#define PORTABLE_BACKEND "reference"

void ait_load_options_init(ait_load_options *options) {
  *options = (ait_load_options){.struct_size = sizeof *options, .allocator = ait_allocator_default(), .cpu_mask = UINT64_MAX};
}

/* ---- loading a plan ------------------------------------------------------------------------------------------------------------*/
static const char *untrusted_text(ait_signature_state state) {
  switch (state) {
    case AIT_SIGNATURE_UNKNOWN: return "its key is not known here";
    case AIT_SIGNATURE_REVOKED: return "its key was revoked";
    default: return "it is not signed";
  }
}

static ait_status load_step(ait_model *m, const ait_plan_step *plan, uint64_t cpu, ait_model_step *out) {
  out->plan = plan;
  out->backend = ait_backend_find(plan->backend);
  if (!out->backend)
    return ait_error(AIT_CODE_UNAVAILABLE, "backend '%s' is not here%s%s", plan->backend, plan->needs ? ": it needs " : "",
                     plan->needs ? plan->needs : "");
  if (out->backend->blob_is_code && !m->code_allowed)
    return ait_error_hint(ait_error(AIT_CODE_UNAVAILABLE, "backend '%s' runs native code of the file only when a trusted key signed it: %s",
                                    plan->backend, untrusted_text(m->signature.state)),
                          "'ait key trust', or tune it here");
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
  ait_step_loader loader = {m, cpu, load_step};
  AIT_TRY(ait_plan_check(plan, m->region));
  return ait_model_load_routes(&loader, plan);
}

/* What is the same for every plan: memory, the disk, a damaged entry. Other failures send the model to its next plan. */
static bool is_final(ait_code code) { return code == AIT_CODE_OUT_OF_MEMORY || code == AIT_CODE_IO; }

static bool made_here(const ait_plan *plan) { return plan->machine && strcmp(plan->machine, ait_cpu_model()) == 0; }

/* How far the threads that a plan was tuned for are from those that are here; more than there are is worst. */
static int32_t threads_off(const ait_plan *plan) {
  int32_t here = ait_cpu_count();
  return plan->threads <= here ? here - plan->threads : 1024 + plan->threads - here;
}

/* The file has those first that need most of a CPU. Among those that need the same: tuned on this kind of CPU, then for as many threads. */
static bool better(const ait_plan *a, const ait_plan *b) {
  if (a->cpu_needed != b->cpu_needed) return a->cpu_needed > b->cpu_needed;
  if (made_here(a) != made_here(b)) return made_here(a);
  return threads_off(a) < threads_off(b);
}

static ait_status order_plans(ait_model *m, const ait_model_parts *parts) {
  m->choices = AIT_ARENA_ARRAY(&m->arena, ait_plan_choice, parts->plan_count);
  if (!m->choices) return AIT_OOM();
  for (size_t i = 0; i < parts->plan_count; ++i) {
    char names[256];
    size_t at = i;
    ait_cpu_names(parts->plans[i].cpu_needed, names, sizeof names);
    ait_plan_choice choice = {&parts->plans[i], ait_arena_strdup(&m->arena, names, strlen(names)), "another plan of the file runs"};
    if (!choice.cpu) return AIT_OOM();
    for (; at > 0 && better(choice.plan, m->choices[at - 1].plan); --at) m->choices[at] = m->choices[at - 1];
    m->choices[at] = choice;
  }
  m->plan_count = parts->plan_count;
  return AIT_OK;
}

/* *out_runs: it does. Else the reason stands in the choice; errors are those that no other plan would be spared. */
static ait_status try_plan(ait_model *m, const ait_model_parts *parts, uint64_t cpu, ait_plan_choice *c, bool *out_runs) {
  *out_runs = false;
  if (c->plan->cpu_needed & ~cpu) {
    char missing[128];
    ait_cpu_names(c->plan->cpu_needed & ~cpu, missing, sizeof missing);
    c->why = ait_arena_printf(&m->arena, "needs %s, which this CPU lacks or the caller masked",
                              *missing ? missing : "a CPU feature that this ait does not know");
    return c->why ? AIT_OK : AIT_OOM();
  }
  ait_status status = load_plan(m, c->plan, cpu);
  if (!status) {
    *out_runs = true;
    c->why = "";
    m->target = c->plan->target;
    return AIT_OK;
  }
  if (is_final(ait_status_code(status)) || (parts->plans_only && parts->plan_count == 1)) return status;
  c->why = ait_arena_printf(&m->arena, "cannot be loaded: %s", ait_status_message(status));
  ait_status_ignore(status);
  return c->why ? AIT_OK : AIT_OOM();
}

static ait_status try_plans(ait_model *m, const ait_model_parts *parts, ait_text *reason) {
  uint64_t cpu = ait_cpu_features() & parts->cpu_mask;
  AIT_TRY(order_plans(m, parts));
  for (size_t i = 0; i < m->plan_count; ++i) {
    bool runs;
    AIT_TRY(try_plan(m, parts, cpu, &m->choices[i], &runs));
    if (runs) return ait_model_name_routes(m, reason);
    ait_text_printf(reason, "%splan '%s' %s", reason->length ? "; " : "", m->choices[i].plan->target, m->choices[i].why);
  }
  if (parts->plans_only && parts->plan_count)
    return ait_error(AIT_CODE_UNAVAILABLE, "no plan can run here: %s", reason->data ? reason->data : "");
  AIT_TRY(ait_plan_compile(m->allocator, PORTABLE_BACKEND, NULL, m->region, m->weights, cpu, NULL, &m->own_plan));
  m->target = "portable";
  AIT_TRY(load_plan(m, &m->own_plan, cpu));
  return ait_model_name_routes(m, reason);
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

/* ---- life ------------------------------------------------------------------------------------------------------------------------*/
static void destroy(ait_model *m) {
  ait_model_unload_routes(m);
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
  m->entry = parts->entry;
  m->inside = parts->inside;
  m->signature = parts->signature;
  m->code_allowed = parts->code_allowed;
  ait_status status = AIT_OK;
  AIT_GOTO(ait_model_check_weights(m->region, parts->sizes.get ? &parts->sizes : &m->weights));
  AIT_GOTO(choose_plan(m, parts));
  AIT_GOTO(ait_model_describe(m));
  AIT_GOTO(ait_model_find_states(m));
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
      .code_allowed = true,
      .signature = {.key_name = "", .fingerprint = ""},
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
const void *ait_model_entry(const ait_model *model, const char *name, size_t *out_size) {
  return model->entry ? model->entry(model->owner, name, out_size) : NULL;
}
ait_status ait_model_load_inside(const ait_model *model, const char *entry, const ait_load_options *options, ait_model **out) {
  *out = NULL;
  if (!model->inside) return ait_error(AIT_CODE_NOT_FOUND, "there is no entry '%s'", entry);
  return model->inside(model->owner, entry, options, out);
}
size_t ait_model_plan_count(const ait_model *model) { return model->plan_count; }

bool ait_model_plan(const ait_model *model, size_t index, ait_plan_info *out) {
  if (index >= model->plan_count) return false;
  const ait_plan_choice *c = &model->choices[index];
  *out = (ait_plan_info){.target = c->plan->target,
                         .machine = c->plan->machine ? c->plan->machine : "",
                         .cpu = c->cpu,
                         .why_not = c->why,
                         .threads = c->plan->threads,
                         .runs = c->plan == model->plan,
                         .made_here = made_here(c->plan),
                         .report = c->plan->report,
                         .report_size = c->plan->report_size};
  return true;
}

ait_signature ait_model_signature(const ait_model *model) { return model->signature; }
const char *ait_model_reason(const ait_model *model) { return model->reason; }
const char *ait_model_target(const ait_model *model) { return model->target; }
const ait_region *ait_model_region(const ait_model *model) { return model->region; }
ait_weights ait_model_weights(const ait_model *model) { return model->weights; }
