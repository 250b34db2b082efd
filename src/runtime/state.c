/* Weights that runs may change. In the file they are read-only; each session has its own copy, and tensors that share memory in the file
 * (tied buffers, views) share it in the copy, too. */
#include "runtime/internal.h"
#include <stdlib.h>

void ait_tensor_extent(const ait_tensor *t, const char **out_begin, const char **out_end) {
  int64_t low = 0, high = 1;
  *out_begin = *out_end = NULL;
  for (int32_t d = 0; d < t->rank; ++d) {
    if (t->shape[d] == 0) return;
    int64_t reach = (t->shape[d] - 1) * t->strides[d];
    if (reach < 0) low += reach;
    else high += reach;
  }
  int64_t size = (int64_t)ait_dtype_size(t->dtype);
  *out_begin = (const char *)t->data + low * size;
  *out_end = (const char *)t->data + high * size;
}

bool ait_tensors_overlap(const ait_tensor *a, const ait_tensor *b) {
  const char *a_begin, *a_end, *b_begin, *b_end;
  ait_tensor_extent(a, &a_begin, &a_end);
  ait_tensor_extent(b, &b_begin, &b_end);
  return a_begin < b_end && b_begin < a_end;
}

/* ---- checks ------------------------------------------------------------------------------------------------------------------------*/
static bool fits(const ait_region *r, const ait_region_value *v, const ait_tensor *t) {
  if (v->type != AIT_TYPE_TENSOR || v->dtype != t->dtype || (v->rank >= 0 && v->rank != t->rank)) return false;
  for (int32_t d = 0; d < v->rank; ++d) {
    const ait_dim_expr *e = &r->dims[v->shape[d]];
    if (e->op == AIT_DIM_CONST && e->value != t->shape[d]) return false;
  }
  return true;
}

static ait_status check_fit(const ait_region *r, const ait_region_input *in, const ait_tensor *t) {
  if (fits(r, &r->values[in->value], t)) return AIT_OK;
  char shape[256];
  ait_tensor_shape_text(t, shape, sizeof shape);
  return ait_error(AIT_CODE_INVALID_MODEL, "weight '%s' is %s %s, the graph declares another type", in->name, ait_dtype_name(t->dtype),
                   shape);
}

ait_status ait_model_check_weights(const ait_region *region, const ait_weights *weights) {
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (!ait_region_input_is_weight(in)) continue;
    ait_tensor t;
    AIT_TRY(weights->get(weights->ctx, in->name, &t));
    AIT_TRY(check_fit(region, in, &t));
  }
  return AIT_OK;
}

/* ---- finding -----------------------------------------------------------------------------------------------------------------------*/
static ait_status add_state(ait_model *m, ait_map *names, const char *name, bool portable) {
  void *found;
  if (ait_map_get(names, name, &found)) {
    if (portable) m->states[(uintptr_t)found - 1].portable = true;
    return AIT_OK;
  }
  ait_model_state *s = &m->states[m->state_count];
  *s = (ait_model_state){.name = name, .portable = portable};
  AIT_TRY(m->weights.get(m->weights.ctx, name, &s->initial));
  ++m->state_count;
  return ait_map_put(names, name, (void *)(uintptr_t)m->state_count);
}

static ait_status add_states(ait_model *m, ait_map *names, const ait_region *r, bool portable) {
  for (uint32_t i = 0; i < r->input_count; ++i) {
    const ait_region_input *in = &r->inputs[i];
    if (!ait_region_input_is_weight(in) || !(in->mutated || ait_region_has_state_output(r, in->name))) continue;
    void *found = NULL;
    AIT_TRY(add_state(m, names, in->name, portable));
    if (ait_map_get(names, in->name, &found)) AIT_TRY(check_fit(r, in, &m->states[(uintptr_t)found - 1].initial));
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    if (r->outputs[i].kind == AIT_OUTPUT_STATE) AIT_TRY(add_state(m, names, r->outputs[i].name, portable));
  }
  return AIT_OK;
}

static uint32_t index_of(const ait_map *names, const char *name) {
  void *found;
  return name && ait_map_get(names, name, &found) ? (uint32_t)(uintptr_t)found - 1 : AIT_NO_INDEX;
}

static ait_status fill_step(ait_model *m, const ait_map *names, ait_model_step *step) {
  const ait_region *r = step->plan->region;
  step->state_of_input = AIT_ARENA_ARRAY(&m->arena, uint32_t, r->input_count);
  step->state_of_output = AIT_ARENA_ARRAY(&m->arena, uint32_t, r->output_count);
  if (!step->state_of_input || !step->state_of_output) return AIT_OOM();
  for (uint32_t i = 0; i < r->input_count; ++i) {
    step->state_of_input[i] = ait_region_input_is_weight(&r->inputs[i]) ? index_of(names, r->inputs[i].name) : AIT_NO_INDEX;
  }
  for (uint32_t i = 0; i < r->output_count; ++i) {
    step->state_of_output[i] = r->outputs[i].kind == AIT_OUTPUT_STATE ? index_of(names, r->outputs[i].name) : AIT_NO_INDEX;
  }
  return AIT_OK;
}

/* ---- groups of shared memory ---------------------------------------------------------------------------------------------------------*/
typedef struct extent {
  const char *begin, *end;
  ait_model_state *state;
} extent;

static int by_begin(const void *a, const void *b) {
  const extent *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->state < y->state ? -1 : x->state > y->state;
}

static ait_status group_states(ait_model *m) {
  extent *extents = AIT_ARENA_ARRAY(&m->arena, extent, m->state_count);
  m->groups = AIT_ARENA_ARRAY(&m->arena, ait_state_group, m->state_count);
  if (!extents || !m->groups) return AIT_OOM();
  for (size_t i = 0; i < m->state_count; ++i) {
    extents[i].state = &m->states[i];
    ait_tensor_extent(&m->states[i].initial, &extents[i].begin, &extents[i].end);
  }
  qsort(extents, m->state_count, sizeof *extents, by_begin);
  const char *end = NULL;
  for (size_t i = 0; i < m->state_count; ++i) {
    extent *e = &extents[i];
    if (m->group_count == 0 || e->begin >= end) {
      m->groups[m->group_count++] = (ait_state_group){.begin = e->begin};
      end = e->begin;
    }
    if (e->end > end) end = e->end;
    ait_state_group *g = &m->groups[m->group_count - 1];
    g->bytes = (size_t)(end - g->begin);
    e->state->group = (uint32_t)(m->group_count - 1);
    e->state->offset = e->begin ? (size_t)((const char *)e->state->initial.data - g->begin) : 0;
  }
  return AIT_OK;
}

static size_t most_states(const ait_model *m) {
  size_t n = (size_t)m->region->input_count + m->region->output_count;
  for (uint32_t r = 0; r < m->route_count; ++r) {
    const ait_model_route *route = &m->routes[r];
    for (uint32_t s = 0; route->plan && s < route->plan->step_count; ++s)
      n += (size_t)route->steps[s].plan->region->input_count + route->steps[s].plan->region->output_count;
  }
  return n;
}

ait_status ait_model_find_states(ait_model *m) {
  ait_map names;
  ait_map_init(&names, m->allocator);
  ait_status status = AIT_OK;
  m->states = AIT_ARENA_ARRAY(&m->arena, ait_model_state, most_states(m));
  if (!m->states) AIT_GOTO(AIT_OOM());
  AIT_GOTO(add_states(m, &names, m->region, true));
  for (uint32_t r = 0; r < m->route_count; ++r) {
    const ait_model_route *route = &m->routes[r];
    for (uint32_t s = 0; route->plan && s < route->plan->step_count; ++s)
      AIT_GOTO(add_states(m, &names, route->steps[s].plan->region, false));
  }
  for (uint32_t r = 0; r < m->route_count; ++r) {
    const ait_model_route *route = &m->routes[r];
    for (uint32_t s = 0; route->plan && s < route->plan->step_count; ++s) AIT_GOTO(fill_step(m, &names, &route->steps[s]));
  }
  AIT_GOTO(group_states(m));
cleanup:
  ait_map_deinit(&names);
  return status;
}
