/* Sessions: one timeline of a model. What a run needs is allocated here at creation; a run binds, places pointers, and calls backends. */
#include "runtime/internal.h"

#include "backends/dims.h"

#define MAX_THREADS 1024

void ait_session_options_init(ait_session_options *options) {
  *options = (ait_session_options){.struct_size = sizeof *options, .allocator = ait_allocator_default()};
}

/* ---- creation --------------------------------------------------------------------------------------------------------------------*/
static bool writes_in_place(const ait_model *m) {
  bool any = false;
  for (uint32_t i = 0; i < m->plan->step_count; ++i) any |= m->steps[i].backend->accepts_raw;
  return any;
}

static ait_status create_states(ait_session *s) {
  const ait_model *m = s->model;
  s->groups = AIT_ARENA_ARRAY(&s->arena, ait_storage *, m->group_count);
  s->states = AIT_ARENA_ARRAY(&s->arena, ait_tensor, m->state_count);
  if (!s->groups || !s->states) return AIT_OOM();
  memset(s->groups, 0, m->group_count * sizeof *s->groups);
  for (size_t g = 0; g < m->group_count; ++g) AIT_TRY(ait_storage_create(s->allocator, m->groups[g].bytes, &s->groups[g]));
  for (size_t i = 0; i < m->state_count; ++i) {
    const ait_model_state *state = &m->states[i];
    s->states[i] = state->initial;
    s->states[i].storage = s->groups[state->group]; /* borrowed: backends that keep a view take their own reference */
    s->states[i].data = (char *)ait_storage_data(s->groups[state->group]) + state->offset;
  }
  if (m->group_count == 0 || !writes_in_place(m)) return AIT_OK;
  s->shadows = AIT_ARENA_ARRAY(&s->arena, ait_storage *, m->group_count);
  if (!s->shadows) return AIT_OOM();
  memset(s->shadows, 0, m->group_count * sizeof *s->shadows);
  for (size_t g = 0; g < m->group_count; ++g) AIT_TRY(ait_storage_create(s->allocator, m->groups[g].bytes, &s->shadows[g]));
  return AIT_OK;
}

static ait_status create_steps(ait_session *s) {
  const ait_model *m = s->model;
  s->steps = AIT_ARENA_ARRAY(&s->arena, ait_session_step, m->plan->step_count);
  if (!s->steps) return AIT_OOM();
  memset(s->steps, 0, m->plan->step_count * sizeof *s->steps);
  for (uint32_t i = 0; i < m->plan->step_count; ++i) {
    const ait_region *r = m->steps[i].plan->region;
    ait_session_step *step = &s->steps[i];
    ait_value *outputs = AIT_ARENA_ARRAY(&s->arena, ait_value, r->output_count);
    step->inputs = AIT_ARENA_ARRAY(&s->arena, ait_value, r->input_count);
    step->symbols = AIT_ARENA_ARRAY(&s->arena, int64_t, r->symbol_count);
    if (!step->inputs || !step->symbols || !outputs) return AIT_OOM();
    memset(step->inputs, 0, r->input_count * sizeof *step->inputs);
    memset(outputs, 0, r->output_count * sizeof *outputs);
    step->outputs = outputs;
    AIT_TRY(m->steps[i].backend->instance_create(m->steps[i].loaded, s->allocator, &step->instance));
  }
  return AIT_OK;
}

static void find_producer(const ait_model *m, uint32_t value, ait_session_result *result) {
  for (uint32_t i = 0; i < m->plan->step_count; ++i) {
    for (uint32_t j = 0; j < m->steps[i].plan->region->output_count; ++j) {
      if (m->steps[i].plan->outputs[j] != value) continue;
      result->step = i;
      result->output = j;
    }
  }
}

static ait_status create_results(ait_session *s) {
  const ait_model *m = s->model;
  s->results = AIT_ARENA_ARRAY(&s->arena, ait_session_result, m->output_count);
  if (!s->results) return AIT_OOM();
  for (uint32_t k = 0; k < m->output_count; ++k) {
    s->results[k] = (ait_session_result){.step = AIT_NO_INDEX};
    if (m->plan->outputs[k] != AIT_NO_INDEX) find_producer(m, m->plan->outputs[k], &s->results[k]);
  }
  size_t most = 0;
  for (uint32_t i = 0; i < m->plan->step_count; ++i) most += m->steps[i].plan->region->output_count;
  s->commits = AIT_ARENA_ARRAY(&s->arena, ait_session_commit, most);
  if (!s->commits) return AIT_OOM();
  for (uint32_t i = 0; i < m->plan->step_count; ++i) {
    const ait_region *r = m->steps[i].plan->region;
    for (uint32_t j = 0; j < r->output_count; ++j) {
      if (r->outputs[j].kind == AIT_OUTPUT_STATE || r->outputs[j].kind == AIT_OUTPUT_INPUT) {
        s->commits[s->commit_count++] = (ait_session_commit){.step = i, .output = j};
      }
    }
  }
  return AIT_OK;
}

static ait_status create_arrays(ait_session *s) {
  s->values = AIT_ARENA_ARRAY(&s->arena, ait_value, s->model->plan->value_count);
  s->symbols = AIT_ARENA_ARRAY(&s->arena, int64_t, s->model->region->symbol_count);
  s->input_copies = AIT_ARENA_ARRAY(&s->arena, ait_tensor, s->model->input_count);
  if (!s->values || !s->symbols || !s->input_copies) return AIT_OOM();
  memset(s->values, 0, s->model->plan->value_count * sizeof *s->values);
  memset(s->input_copies, 0, s->model->input_count * sizeof *s->input_copies);
  return AIT_OK;
}

ait_status ait_session_create(ait_model *model, const ait_session_options *options, ait_session **out) {
  *out = NULL;
  ait_session_options known;
  ait_session_options_init(&known);
  if (options) memcpy(&known, options, options->struct_size < sizeof known ? options->struct_size : sizeof known);
  options = &known;
  if (options->threads < 0 || options->threads > MAX_THREADS) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "%d threads: must be 0 to %d", options->threads, MAX_THREADS);
  }
  ait_session *s = ait_alloc_zero(options->allocator, sizeof *s, _Alignof(ait_session));
  if (!s) return AIT_OOM();
  s->allocator = options->allocator;
  s->profile = options->profile;
  s->model = ait_model_retain(model);
  ait_arena_init(&s->arena, options->allocator);
  ait_status status = AIT_OK;
  int32_t threads = options->threads ? options->threads : model->plan->threads;
  if (threads > 1) AIT_GOTO(ait_pool_create(s->allocator, threads < MAX_THREADS ? threads : MAX_THREADS, &s->pool));
  AIT_GOTO(create_arrays(s));
  AIT_GOTO(create_steps(s));
  AIT_GOTO(create_states(s));
  AIT_GOTO(create_results(s));
  AIT_GOTO(ait_session_reset(s));
  *out = s;
  return AIT_OK;
cleanup:
  ait_session_destroy(s);
  return status;
}

static void release_outputs(ait_session *s) {
  for (uint32_t i = 0; s->steps && i < s->model->plan->step_count; ++i) {
    ait_session_step *step = &s->steps[i];
    for (uint32_t j = 0; step->outputs && j < s->model->steps[i].plan->region->output_count; ++j) ait_value_release(&step->outputs[j]);
  }
}

void ait_session_destroy(ait_session *s) {
  if (!s) return;
  const ait_model *m = s->model;
  release_outputs(s);
  for (uint32_t i = 0; s->steps && i < m->plan->step_count; ++i) {
    if (s->steps[i].instance) m->steps[i].backend->instance_destroy(s->steps[i].instance);
  }
  for (uint32_t k = 0; s->results && k < m->output_count; ++k) ait_tensor_release(&s->results[k].scratch);
  for (uint32_t c = 0; c < s->commit_count; ++c) ait_tensor_release(&s->commits[c].copy);
  for (uint32_t i = 0; s->input_copies && i < m->input_count; ++i) ait_tensor_release(&s->input_copies[i]);
  for (size_t g = 0; s->groups && g < m->group_count; ++g) ait_storage_release(s->groups[g]);
  for (size_t g = 0; s->shadows && g < m->group_count; ++g) ait_storage_release(s->shadows[g]);
  ait_pool_destroy(s->pool);
  ait_arena_deinit(&s->arena);
  ait_free(s->allocator, s, sizeof *s);
  ait_model_release((ait_model *)m);
}

/* ---- state -----------------------------------------------------------------------------------------------------------------------*/
ait_status ait_session_reset(ait_session *s) {
  const ait_model *m = s->model;
  release_outputs(s);
  for (size_t g = 0; g < m->group_count; ++g) {
    if (m->groups[g].bytes) memcpy(ait_storage_data(s->groups[g]), m->groups[g].begin, m->groups[g].bytes);
  }
  return AIT_OK;
}

ait_status ait_session_state(ait_session *s, const char *name, ait_tensor *out) {
  const ait_model *m = s->model;
  for (size_t i = 0; i < m->state_count; ++i) {
    if (strcmp(m->states[i].name, name) != 0) continue;
    *out = s->states[i];
    return AIT_OK;
  }
  return m->weights.get(m->weights.ctx, name, out); /* what no run changes is as in the file */
}

static void copy_groups(const ait_session *s, ait_storage *const *to, ait_storage *const *from) {
  for (size_t g = 0; g < s->model->group_count; ++g) {
    size_t bytes = s->model->groups[g].bytes;
    if (bytes) memcpy(ait_storage_data(to[g]), ait_storage_data(from[g]), bytes);
  }
}

/* ---- running ---------------------------------------------------------------------------------------------------------------------*/
static void place_inputs(ait_session *s, uint32_t index) {
  const ait_model_step *step = &s->model->steps[index];
  const ait_region *r = step->plan->region;
  ait_value *inputs = s->steps[index].inputs;
  for (uint32_t i = 0; i < r->input_count; ++i) {
    uint32_t state = step->state_of_input[i], value = step->plan->inputs[i];
    inputs[i].kind = AIT_VALUE_NONE;
    if (state != AIT_NO_INDEX) inputs[i] = (ait_value){.kind = AIT_VALUE_TENSOR, .as.tensor = s->states[state]};
    else if (r->inputs[i].kind == AIT_INPUT_USER && value != AIT_NO_INDEX) inputs[i] = s->values[value];
  }
}

static void place_outputs(ait_session *s, uint32_t index, const ait_value *outputs) {
  const ait_region *r = s->model->steps[index].plan->region;
  for (uint32_t j = 0; j < r->output_count; ++j) s->steps[index].outputs[j] = (ait_value){.kind = AIT_VALUE_NONE};
  for (uint32_t k = 0; k < s->model->output_count; ++k) {
    const ait_session_result *result = &s->results[k];
    if (!result->direct || result->step != index) continue;
    s->steps[index].outputs[result->output] = outputs[k];
    s->steps[index].outputs[result->output].as.tensor.storage = NULL; /* lent for writing: the reference stays the caller's */
  }
}

/* The step's own symbols by the names that the whole model's have. */
static void name_symbols(const ait_session *s, const ait_region *r, int64_t *symbols) {
  const ait_region *whole = s->model->region;
  for (uint32_t i = 0; i < r->symbol_count; ++i) {
    symbols[i] = INT64_MIN;
    for (uint32_t j = 0; j < whole->symbol_count; ++j) {
      if (strcmp(r->symbols[i].name, whole->symbols[j].name) == 0) symbols[i] = s->symbols[j];
    }
  }
}

ait_status ait_session_constant(const ait_region *r, const int64_t *symbols, const ait_arg *arg, ait_value *out) {
  int64_t v;
  switch (arg->kind) {
    case AIT_ARG_INT: *out = (ait_value){.kind = AIT_VALUE_INT, .as.i = arg->as.i}; return AIT_OK;
    case AIT_ARG_FLOAT: *out = (ait_value){.kind = AIT_VALUE_FLOAT, .as.f = arg->as.f}; return AIT_OK;
    case AIT_ARG_BOOL: *out = (ait_value){.kind = AIT_VALUE_BOOL, .as.b = arg->as.b}; return AIT_OK;
    case AIT_ARG_STRING: *out = (ait_value){.kind = AIT_VALUE_STRING, .as.s = arg->as.string}; return AIT_OK;
    case AIT_ARG_NONE: *out = (ait_value){.kind = AIT_VALUE_NONE}; return AIT_OK;
    case AIT_ARG_DIM:
      if (!ait_dim_eval(r->dims, symbols, arg->as.dim, &v)) break;
      *out = (ait_value){.kind = AIT_VALUE_INT, .as.i = v};
      return AIT_OK;
    default: break;
  }
  return ait_error(AIT_CODE_UNSUPPORTED, "an output is neither a value nor a constant");
}

/* Outputs that the region states itself need nothing of the backend. */
static ait_status take_outputs(ait_session *s, uint32_t index) {
  const ait_model_step *step = &s->model->steps[index];
  const ait_region *r = step->plan->region;
  for (uint32_t j = 0; j < r->output_count; ++j) {
    uint32_t value = step->plan->outputs[j];
    if (value == AIT_NO_INDEX) continue;
    if (r->outputs[j].arg.kind == AIT_ARG_VALUE) {
      s->values[value] = s->steps[index].outputs[j];
    } else {
      if (r->outputs[j].arg.kind == AIT_ARG_DIM) name_symbols(s, r, s->steps[index].symbols);
      AIT_TRY(ait_session_constant(r, s->steps[index].symbols, &r->outputs[j].arg, &s->values[value]));
    }
  }
  return AIT_OK;
}

static ait_status run_step(ait_session *s, uint32_t index, const ait_value *outputs) {
  const ait_model_step *step = &s->model->steps[index];
  place_inputs(s, index);
  place_outputs(s, index, outputs);
  ait_run_context context = {
      .struct_size = sizeof context,
      .allocator = s->allocator,
      .pool = s->pool,
      .inputs = s->steps[index].inputs,
      .outputs = s->steps[index].outputs,
      .profile = s->profile,
  };
  AIT_TRY(step->backend->run(s->steps[index].instance, &context));
  return take_outputs(s, index);
}

/* Memory that the session lent out after the last run, and is about to use again. */
static bool is_lent(const ait_session *s, const ait_tensor *t) {
  for (uint32_t k = 0; k < s->model->output_count; ++k) {
    if (s->results[k].lent.dtype != AIT_DTYPE_NONE && ait_tensors_overlap(t, &s->results[k].lent)) return true;
  }
  return false;
}

/* Plan values 0..n-1 are the user inputs. The result of the last run given back as an input (a loop over a recurrent model) is copied. */
static ait_status place_user_inputs(ait_session *s, const ait_value *inputs) {
  for (uint32_t i = 0; i < s->model->input_count; ++i) {
    s->values[i] = inputs[i];
    if (inputs[i].kind != AIT_VALUE_TENSOR || !is_lent(s, &inputs[i].as.tensor)) continue;
    AIT_TRY(ait_session_copy(s, &s->input_copies[i], &inputs[i].as.tensor));
    s->values[i].as.tensor = s->input_copies[i];
  }
  return AIT_OK;
}

static ait_status run_steps(ait_session *s, const ait_value *outputs) {
  for (uint32_t i = 0; i < s->model->plan->step_count; ++i) {
    double start = s->step_seconds ? ait_clock_seconds() : 0;
    AIT_TRY(run_step(s, i, outputs));
    if (s->step_seconds) s->step_seconds[i] += ait_clock_seconds() - start;
  }
  return AIT_OK;
}

void ait_session_time_steps(ait_session *s, double *seconds) { s->step_seconds = seconds; }

ait_status ait_session_run(ait_session *s, const ait_value *inputs, size_t input_count, ait_value *outputs, size_t output_count) {
  const ait_model *m = s->model;
  AIT_TRY(ait_bind_inputs(m->region, inputs, input_count, s->symbols));
  if (output_count != m->output_count) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "room for %zu outputs given, the model gives %u", output_count, m->output_count);
  }
  AIT_TRY(place_user_inputs(s, inputs));
  AIT_TRY(ait_session_check_outputs(s, s->values, outputs));
  release_outputs(s);
  if (s->shadows) copy_groups(s, s->shadows, s->groups);
  ait_status status = run_steps(s, outputs);
  if (!status) status = ait_session_finish(s, s->values, outputs);
  if (status && s->shadows) copy_groups(s, s->groups, s->shadows);
  return status;
}

/* ---- questions -------------------------------------------------------------------------------------------------------------------*/
size_t ait_session_profile(ait_session *s, ait_step_time *out, size_t capacity) {
  size_t count = 0;
  for (uint32_t i = 0; s->profile && i < s->model->plan->step_count; ++i) {
    const ait_backend *b = s->model->steps[i].backend;
    size_t room = count < capacity ? capacity - count : 0;
    if (room > UINT32_MAX) room = UINT32_MAX;
    if (b->profile) count += b->profile(s->steps[i].instance, room ? out + count : NULL, (uint32_t)room);
  }
  return count;
}

const char *ait_session_backend(const ait_session *s) { return s->model->backends; }

static size_t held(const ait_tensor *t) { return t->storage ? ait_storage_bytes(t->storage) : 0; }

size_t ait_session_bytes(const ait_session *s) {
  size_t bytes = 0;
  for (uint32_t i = 0; i < s->model->plan->step_count; ++i) {
    const ait_backend *b = s->model->steps[i].backend;
    if (b->instance_bytes) bytes += b->instance_bytes(s->steps[i].instance);
  }
  for (size_t g = 0; g < s->model->group_count; ++g) bytes += s->model->groups[g].bytes * (s->shadows ? 2 : 1);
  for (uint32_t k = 0; k < s->model->output_count; ++k) bytes += held(&s->results[k].scratch);
  for (uint32_t c = 0; c < s->commit_count; ++c) bytes += held(&s->commits[c].copy);
  for (uint32_t i = 0; i < s->model->input_count; ++i) bytes += held(&s->input_copies[i]);
  return bytes;
}
