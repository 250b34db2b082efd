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
  for (uint32_t r = 0; r < m->route_count; ++r) {
    for (uint32_t i = 0; m->routes[r].plan && i < m->routes[r].plan->step_count; ++i) any |= m->routes[r].steps[i].backend->accepts_raw;
  }
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

static ait_status create_steps(ait_session *s, const ait_model_route *code, ait_session_route *route) {
  route->steps = AIT_ARENA_ARRAY(&s->arena, ait_session_step, code->plan->step_count);
  if (!route->steps) return AIT_OOM();
  memset(route->steps, 0, code->plan->step_count * sizeof *route->steps);
  for (uint32_t i = 0; i < code->plan->step_count; ++i) {
    const ait_region *r = code->steps[i].plan->region;
    ait_session_step *step = &route->steps[i];
    ait_value *outputs = AIT_ARENA_ARRAY(&s->arena, ait_value, r->output_count);
    step->inputs = AIT_ARENA_ARRAY(&s->arena, ait_value, r->input_count);
    step->symbols = AIT_ARENA_ARRAY(&s->arena, int64_t, r->symbol_count);
    if (!step->inputs || !step->symbols || !outputs) return AIT_OOM();
    memset(step->inputs, 0, r->input_count * sizeof *step->inputs);
    memset(outputs, 0, r->output_count * sizeof *outputs);
    step->outputs = outputs;
    AIT_TRY(code->steps[i].backend->instance_create(code->steps[i].loaded, s->allocator, &step->instance));
  }
  return AIT_OK;
}

static void find_maker(const ait_model_route *code, uint32_t value, ait_session_route *route, uint32_t result) {
  route->makers[result].step = AIT_NO_INDEX;
  for (uint32_t i = 0; value != AIT_NO_INDEX && i < code->plan->step_count; ++i) {
    for (uint32_t j = 0; j < code->steps[i].plan->region->output_count; ++j) {
      if (code->steps[i].plan->outputs[j] != value) continue;
      route->makers[result].step = i;
      route->makers[result].output = j;
    }
  }
}

static ait_status create_commits(ait_session *s, const ait_model_route *code, ait_session_route *route) {
  size_t most = 0;
  for (uint32_t i = 0; i < code->plan->step_count; ++i) most += code->steps[i].plan->region->output_count;
  route->commits = AIT_ARENA_ARRAY(&s->arena, ait_session_commit, most);
  if (!route->commits) return AIT_OOM();
  for (uint32_t i = 0; i < code->plan->step_count; ++i) {
    const ait_region *r = code->steps[i].plan->region;
    for (uint32_t j = 0; j < r->output_count; ++j) {
      if (r->outputs[j].kind == AIT_OUTPUT_STATE || r->outputs[j].kind == AIT_OUTPUT_INPUT)
        route->commits[route->commit_count++] = (ait_session_commit){.step = i, .output = j};
    }
  }
  return AIT_OK;
}

/* Buckets that take as many threads share them. */
static ait_status find_pool(ait_session *s, int32_t threads, ait_pool **out) {
  *out = NULL;
  if (threads > MAX_THREADS) threads = MAX_THREADS;
  if (threads <= 1) return AIT_OK;
  for (uint32_t i = 0; i < s->pool_count; ++i) {
    if (ait_pool_threads(s->pools[i]) == threads) return *out = s->pools[i], AIT_OK;
  }
  AIT_TRY(ait_pool_create(s->allocator, threads, out));
  s->pools[s->pool_count++] = *out;
  return AIT_OK;
}

static ait_status create_route(ait_session *s, uint32_t index, int32_t threads) {
  const ait_model *m = s->model;
  const ait_model_route *code = &m->routes[index];
  ait_session_route *route = &s->routes[index];
  if (!code->plan) return AIT_OK;
  /* With a number from the caller a bucket takes no more than that, and no more than it was tuned for. */
  int32_t own = threads && (index == 0 || threads < code->plan->threads) ? threads : code->plan->threads;
  AIT_TRY(find_pool(s, own, &route->pool));
  route->values = AIT_ARENA_ARRAY(&s->arena, ait_value, code->plan->value_count);
  route->makers = ait_arena_zero(&s->arena, (m->output_count + 1) * sizeof *route->makers, _Alignof(uint32_t));
  if (!route->values || !route->makers) return AIT_OOM();
  memset(route->values, 0, code->plan->value_count * sizeof *route->values);
  for (uint32_t k = 0; k < m->output_count; ++k) find_maker(code, code->plan->outputs[k], route, k);
  AIT_TRY(create_commits(s, code, route));
  return create_steps(s, code, route);
}

static void take_route(ait_session *s, uint32_t index) {
  const ait_model *m = s->model;
  const ait_session_route *route = &s->routes[index];
  s->uses = index;
  s->plan = m->routes[index].plan;
  s->code = m->routes[index].steps;
  s->pool = route->pool;
  s->steps = route->steps;
  s->values = route->values;
  s->commits = route->commits;
  s->commit_count = route->commit_count;
  for (uint32_t k = 0; k < m->output_count; ++k) {
    s->results[k].step = route->makers[k].step;
    s->results[k].output = route->makers[k].output;
  }
}

static ait_status create_arrays(ait_session *s) {
  const ait_model *m = s->model;
  s->symbols = AIT_ARENA_ARRAY(&s->arena, int64_t, m->region->symbol_count);
  s->input_copies = AIT_ARENA_ARRAY(&s->arena, ait_tensor, m->input_count);
  s->results = AIT_ARENA_ARRAY(&s->arena, ait_session_result, m->output_count);
  s->routes = AIT_ARENA_ARRAY(&s->arena, ait_session_route, m->route_count);
  s->runs = AIT_ARENA_ARRAY(&s->arena, uint64_t, m->route_count);
  s->routed = AIT_ARENA_ARRAY(&s->arena, int64_t, m->routed_count);
  s->pools = AIT_ARENA_ARRAY(&s->arena, ait_pool *, m->route_count);
  if (s->routes) memset(s->routes, 0, m->route_count * sizeof *s->routes); /* destroy looks at it */
  if (!s->symbols || !s->input_copies || !s->results || !s->routes || !s->runs || !s->routed || !s->pools) return AIT_OOM();
  memset(s->input_copies, 0, m->input_count * sizeof *s->input_copies);
  memset(s->results, 0, m->output_count * sizeof *s->results);
  memset(s->runs, 0, m->route_count * sizeof *s->runs);
  for (uint32_t k = 0; k < m->routed_count; ++k) s->routed[k] = INT64_MIN; /* no size */
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
  AIT_GOTO(create_arrays(s));
  for (uint32_t r = 0; r < model->route_count; ++r) AIT_GOTO(create_route(s, r, options->threads));
  AIT_GOTO(create_states(s));
  take_route(s, 0);
  AIT_GOTO(ait_session_reset(s));
  *out = s;
  return AIT_OK;
cleanup:
  ait_session_destroy(s);
  return status;
}

/* Only the route that ran last holds any. */
static void release_outputs(ait_session *s, uint32_t index) {
  const ait_model_route *code = &s->model->routes[index];
  for (uint32_t i = 0; i < code->plan->step_count; ++i) {
    for (uint32_t j = 0; j < code->steps[i].plan->region->output_count; ++j) ait_value_release(&s->routes[index].steps[i].outputs[j]);
  }
}

static void destroy_route(ait_session *s, uint32_t index) {
  const ait_model_route *code = &s->model->routes[index];
  ait_session_route *route = &s->routes[index];
  for (uint32_t i = 0; route->steps && i < code->plan->step_count; ++i) {
    if (route->steps[i].instance) code->steps[i].backend->instance_destroy(route->steps[i].instance);
  }
  for (uint32_t c = 0; c < route->commit_count; ++c) ait_tensor_release(&route->commits[c].copy);
}

void ait_session_destroy(ait_session *s) {
  if (!s) return;
  const ait_model *m = s->model;
  if (s->plan) release_outputs(s, s->uses);
  for (uint32_t r = 0; s->routes && r < m->route_count; ++r) destroy_route(s, r);
  for (uint32_t k = 0; s->plan && k < m->output_count; ++k) ait_tensor_release(&s->results[k].scratch);
  for (uint32_t i = 0; s->plan && i < m->input_count; ++i) ait_tensor_release(&s->input_copies[i]);
  for (size_t g = 0; s->groups && g < m->group_count; ++g) ait_storage_release(s->groups[g]);
  for (size_t g = 0; s->shadows && g < m->group_count; ++g) ait_storage_release(s->shadows[g]);
  for (uint32_t i = 0; i < s->pool_count; ++i) ait_pool_destroy(s->pools[i]);
  ait_arena_deinit(&s->arena);
  ait_free(s->allocator, s, sizeof *s);
  ait_model_release((ait_model *)m);
}

/* ---- state -----------------------------------------------------------------------------------------------------------------------*/
ait_status ait_session_reset(ait_session *s) {
  const ait_model *m = s->model;
  release_outputs(s, s->uses);
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
  const ait_model_step *step = &s->code[index];
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
  const ait_region *r = s->code[index].plan->region;
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
  const ait_model_step *step = &s->code[index];
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
  const ait_model_step *step = &s->code[index];
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
  for (uint32_t i = 0; i < s->plan->step_count; ++i) {
    double start = s->step_seconds ? ait_clock_seconds() : 0;
    AIT_TRY(run_step(s, i, outputs));
    if (s->step_seconds) s->step_seconds[i] += ait_clock_seconds() - start;
  }
  return AIT_OK;
}

void ait_session_time_steps(ait_session *s, double *seconds) { s->step_seconds = seconds; }

double ait_session_transport_seconds(const ait_session *s) {
  double sum = 0;
  for (uint32_t r = 0; r < s->model->route_count; ++r) {
    const ait_session_route *route = &s->routes[r];
    const ait_model_route *code = &s->model->routes[r];
    for (uint32_t i = 0; route->steps && i < code->plan->step_count; ++i) {
      const ait_backend *b = code->steps[i].backend;
      if (AIT_BACKEND_HAS(b, transport_seconds) && route->steps[i].instance) sum += b->transport_seconds(route->steps[i].instance);
    }
  }
  return sum;
}

/* Sizes that were there in the last run take the route of the last run: no look into the table. */
static uint32_t find_route(ait_session *s) {
  const ait_model *m = s->model;
  bool same = true;
  for (uint32_t k = 0; k < m->routed_count; ++k) {
    int64_t v = s->symbols[m->routed[k]];
    same &= v == s->routed[k];
    s->routed[k] = v;
  }
  if (!same) s->route = ait_model_route_for(m, s->symbols);
  return s->route;
}

static ait_status place(ait_session *s, const ait_value *inputs, const ait_value *outputs) {
  AIT_TRY(place_user_inputs(s, inputs));
  return ait_session_check_outputs(s, s->values, outputs);
}

/* What the last run lent, on whatever route, may be among the inputs: it is released when they are in place. */
static ait_status enter_route(ait_session *s, uint32_t uses, const ait_value *inputs, const ait_value *outputs) {
  uint32_t before = s->uses;
  if (uses != before) take_route(s, uses);
  ait_status status = place(s, inputs, outputs);
  if (!status) release_outputs(s, before);
  else if (uses != before) take_route(s, before);
  return status;
}

ait_status ait_session_run(ait_session *s, const ait_value *inputs, size_t input_count, ait_value *outputs, size_t output_count) {
  const ait_model *m = s->model;
  AIT_TRY(ait_bind_inputs(m->region, inputs, input_count, s->symbols));
  if (output_count != m->output_count) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "room for %zu outputs given, the model gives %u", output_count, m->output_count);
  }
  uint32_t route = m->routed_count ? find_route(s) : 0;
  AIT_TRY(enter_route(s, m->routes[route].uses, inputs, outputs));
  if (s->shadows) copy_groups(s, s->shadows, s->groups);
  ait_status status = run_steps(s, outputs);
  if (!status) status = ait_session_finish(s, s->values, outputs);
  if (status && s->shadows) copy_groups(s, s->groups, s->shadows);
  s->runs[route] += status == AIT_OK;
  return status;
}

/* ---- questions -------------------------------------------------------------------------------------------------------------------*/
size_t ait_session_profile(ait_session *s, ait_step_time *out, size_t capacity) {
  const ait_model *m = s->model;
  size_t count = 0;
  for (uint32_t r = 0; s->profile && r < m->route_count; ++r) {
    for (uint32_t i = 0; m->routes[r].plan && i < m->routes[r].plan->step_count; ++i) {
      const ait_backend *b = m->routes[r].steps[i].backend;
      size_t room = count < capacity ? capacity - count : 0;
      if (room > UINT32_MAX) room = UINT32_MAX;
      if (b->profile) count += b->profile(s->routes[r].steps[i].instance, room ? out + count : NULL, (uint32_t)room);
    }
  }
  return count;
}

size_t ait_session_buckets(const ait_session *s, ait_bucket_info *out, size_t capacity) {
  const ait_model *m = s->model;
  for (uint32_t r = 0; r < m->route_count && r < capacity; ++r) {
    const ait_model_route *route = &m->routes[r], *used = &m->routes[route->uses];
    out[r] = (ait_bucket_info){.sizes = route->sizes,
                               .backend = used->backends,
                               .why_not = route->why,
                               .threads = ait_pool_threads(s->routes[route->uses].pool),
                               .own_plan = r > 0 && route->uses == r,
                               .runs = s->runs[r]};
  }
  return m->route_count;
}

const char *ait_session_backend(const ait_session *s) { return s->model->backends; }

static size_t held(const ait_tensor *t) { return t->storage ? ait_storage_bytes(t->storage) : 0; }

static size_t route_bytes(const ait_session *s, uint32_t index) {
  const ait_model_route *code = &s->model->routes[index];
  const ait_session_route *route = &s->routes[index];
  size_t bytes = 0;
  for (uint32_t i = 0; code->plan && i < code->plan->step_count; ++i) {
    const ait_backend *b = code->steps[i].backend;
    if (b->instance_bytes) bytes += b->instance_bytes(route->steps[i].instance);
  }
  for (uint32_t c = 0; c < route->commit_count; ++c) bytes += held(&route->commits[c].copy);
  return bytes;
}

size_t ait_session_bytes(const ait_session *s) {
  size_t bytes = 0;
  for (uint32_t r = 0; r < s->model->route_count; ++r) bytes += route_bytes(s, r);
  for (size_t g = 0; g < s->model->group_count; ++g) bytes += s->model->groups[g].bytes * (s->shadows ? 2 : 1);
  for (uint32_t k = 0; k < s->model->output_count; ++k) bytes += held(&s->results[k].scratch);
  for (uint32_t i = 0; i < s->model->input_count; ++i) bytes += held(&s->input_copies[i]);
  return bytes;
}
