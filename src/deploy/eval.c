/* Values of a graph by the reference interpreter: only what the wanted value needs is run, and dropped when nothing needs it any more. */
#include "deploy/internal.h"
#include <math.h>

enum { ABSENT = 0, GIVEN = 1, COMPUTED = 2 };

ait_status dep_eval_begin(const ait_graph *g, ait_allocator a, bool fp64, dep_eval *out) {
  *out = (dep_eval){.g = g, .a = a, .fp64 = fp64};
  ait_status status = ait_graph_region(g, a, &out->region);
  if (status) return status;
  out->symbols = ait_alloc(a, (g->root->symbol_count + 1) * sizeof *out->symbols, 8);
  out->values = ait_alloc_zero(a, (g->value_count + 1) * sizeof *out->values, 16);
  out->state = ait_alloc_zero(a, g->value_count + 1, 1);
  if (!out->symbols || !out->values || !out->state) {
    dep_eval_end(out);
    return AIT_OOM();
  }
  for (size_t i = 0; i < g->root->symbol_count; ++i) out->symbols[i] = INT64_MIN;
  return AIT_OK;
}

void dep_eval_forget(dep_eval *e) {
  for (size_t i = 0; e->values && e->state && i < e->g->value_count; ++i) {
    if (e->state[i]) ait_ref_value_release(e->a, &e->values[i]);
    e->state[i] = ABSENT;
    e->values[i] = (ait_ref_value){0};
  }
}

void dep_eval_end(dep_eval *e) {
  dep_eval_forget(e);
  ait_free(e->a, e->symbols, (e->g->root->symbol_count + 1) * sizeof *e->symbols);
  ait_free(e->a, e->values, (e->g->value_count + 1) * sizeof *e->values);
  ait_free(e->a, e->state, e->g->value_count + 1);
  ait_graph_region_destroy(e->a, e->region);
}

void dep_eval_size(dep_eval *e, const char *symbol, int64_t value) {
  for (size_t i = 0; i < e->g->root->symbol_count; ++i)
    if (!strcmp(e->g->root->symbols[i].name, symbol)) e->symbols[i] = value;
}

bool dep_eval_shape(const dep_eval *e, uint32_t value, int64_t out[AIT_MAX_RANK]) {
  const ait_value_info *v = &e->g->values[value];
  if (v->type != AIT_TYPE_TENSOR || v->rank < 0 || v->rank > AIT_MAX_RANK) return false;
  for (int32_t d = 0; d < v->rank; ++d)
    if (!ait_dim_eval(e->g->root->dims, e->symbols, v->shape[d], &out[d]) || out[d] < 0) return false;
  return true;
}

ait_status dep_eval_give(dep_eval *e, uint32_t value, const ait_tensor *tensor) {
  if (e->state[value]) ait_ref_value_release(e->a, &e->values[value]);
  e->values[value] = (ait_ref_value){.type = AIT_TYPE_TENSOR, .as.tensor = ait_tensor_retain(tensor)};
  e->state[value] = GIVEN;
  return AIT_OK;
}

static double next_random(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 11) * 0x1p-52 - 1;
}

ait_status dep_eval_give_random(dep_eval *e, uint32_t value, uint64_t seed, double scale, bool negative) {
  const ait_value_info *v = &e->g->values[value];
  int64_t shape[AIT_MAX_RANK];
  ait_tensor t;
  if (!dep_eval_shape(e, value, shape)) return ait_error(AIT_CODE_UNSUPPORTED, "the shape of '%s' is not known", v->name);
  ait_dtype dtype = e->fp64 && ait_dtype_is_float(v->dtype) ? AIT_F64 : v->dtype;
  AIT_TRY(ait_tensor_create(e->a, dtype, v->rank, shape, &t));
  for (int64_t i = 0, n = ait_tensor_count(&t); i < n; ++i) {
    double x = scale * next_random(&seed);
    ait_element_set_f64((char *)t.data + (size_t)i * ait_dtype_size(dtype), dtype, negative ? -fabs(x) : x);
  }
  ait_status status = dep_eval_give(e, value, &t);
  ait_tensor_release(&t);
  return status;
}

/* ---- which nodes ----------------------------------------------------------------------------------------------------------------------*/
typedef struct walk {
  dep_eval *e;
  uint32_t *uses; /* by value: reads by nodes that will run */
  uint32_t *stack;
  size_t count, capacity;
  ait_status status;
} walk;

static void want(void *ctx, uint32_t v) {
  walk *w = ctx;
  if (w->status) return;
  if (w->uses[v]++ || w->e->state[v]) return;
  void *stack = w->stack;
  w->status = ait_grow(w->e->a, &stack, &w->capacity, w->count + 1, sizeof *w->stack);
  if (!w->status) w->stack = stack, w->stack[w->count++] = v;
}

static ait_status load_input(dep_eval *e, uint32_t v) {
  ait_tensor t;
  if (!ait_constant_tensor(e->g, v, &t)) return ait_error(AIT_CODE_UNSUPPORTED, "input '%s' has no contents", e->g->values[v].name);
  e->values[v] = (ait_ref_value){.type = AIT_TYPE_TENSOR, .as.tensor = ait_tensor_retain(&t)};
  e->state[v] = COMPUTED;
  return AIT_OK;
}

/* Marks every result of the needed nodes; loads constants. */
static ait_status mark(walk *w, uint8_t *needed) {
  dep_eval *e = w->e;
  while (w->count && !w->status) {
    uint32_t v = w->stack[--w->count];
    const ait_node *n = e->g->values[v].def;
    if (!n) {
      if (e->g->values[v].type == AIT_TYPE_TENSOR) AIT_TRY(load_input(e, v));
      continue;
    }
    bool seen = false;
    for (uint32_t i = 0; i < n->result_count; ++i) {
      uint32_t r = n->results[i];
      if (r == AIT_NO_INDEX) continue;
      seen |= needed[r];
      needed[r] = 1;
    }
    if (!seen) ait_node_each_operand(n, want, w);
  }
  return w->status;
}

static void drop_operand(void *ctx, uint32_t v) {
  walk *w = ctx;
  if (w->uses[v] == 0 || --w->uses[v] || w->e->state[v] != COMPUTED) return;
  ait_ref_value_release(w->e->a, &w->e->values[v]);
  w->e->values[v] = (ait_ref_value){0};
  w->e->state[v] = ABSENT;
}

static ait_status run_nodes(walk *w, const uint8_t *needed) {
  dep_eval *e = w->e;
  uint32_t index = 0;
  for (const ait_node *n = e->g->first; n; n = n->next, ++index) {
    bool wanted = false;
    for (uint32_t i = 0; i < n->result_count; ++i) wanted |= n->results[i] != AIT_NO_INDEX && needed[n->results[i]];
    if (!wanted) continue;
    ait_ref_value results[64] = {0};
    if (n->result_count > AIT_COUNT(results)) return ait_error(AIT_CODE_LIMIT, "node '%s' has %u results", n->name, n->result_count);
    AIT_TRY(ait_error_context(ait_ref_run_node(e->region, &e->region->nodes[index], e->a, NULL, e->fp64, e->symbols, e->values, results),
                              "node '%s'", n->name));
    for (uint32_t i = 0; i < n->result_count; ++i) {
      uint32_t r = n->results[i];
      if (r == AIT_NO_INDEX || e->state[r] || !w->uses[r]) {
        ait_ref_value_release(e->a, &results[i]);
        continue;
      }
      e->values[r] = results[i];
      e->state[r] = COMPUTED;
    }
    ait_node_each_operand(n, drop_operand, w);
  }
  return AIT_OK;
}

ait_status dep_eval_run(dep_eval *e, uint32_t value, ait_tensor *out) {
  ait_status status = AIT_OK;
  size_t count = e->g->value_count + 1;
  walk w = {.e = e, .uses = ait_alloc_zero(e->a, count * sizeof *w.uses, 4)};
  uint8_t *needed = ait_alloc_zero(e->a, count, 1);
  if (!w.uses || !needed) AIT_GOTO(AIT_OOM());
  want(&w, value);
  AIT_GOTO(mark(&w, needed));
  AIT_GOTO(run_nodes(&w, needed));
  if (!e->state[value] || e->values[value].type != AIT_TYPE_TENSOR)
    AIT_GOTO(ait_error(AIT_CODE_UNSUPPORTED, "'%s' is not a tensor", e->g->values[value].name));
  *out = e->values[value].as.tensor;
cleanup:
  ait_free(e->a, w.stack, w.capacity * sizeof *w.stack);
  ait_free(e->a, w.uses, count * sizeof *w.uses);
  ait_free(e->a, needed, count);
  return status;
}

double dep_difference(const ait_tensor *a, const ait_tensor *b) {
  if (!ait_tensor_same_shape(a, b)) return INFINITY;
  int64_t index[AIT_MAX_RANK] = {0};
  double worst = 0, most = 1e-30;
  if (ait_tensor_count(b) == 0) return 0;
  do {
    double x = ait_element_f64(ait_ref_at(a, index), a->dtype), y = ait_element_f64(ait_ref_at(b, index), b->dtype);
    if (isnan(x) != isnan(y)) return INFINITY;
    if (isnan(x) || x == y) continue;
    worst = fmax(worst, fabs(x - y));
    if (isfinite(y)) most = fmax(most, fabs(y));
  } while (ait_ref_next(b->rank, b->shape, index));
  return worst / most;
}
