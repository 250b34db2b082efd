/* What inputs hold, from their names alone. */
#include "graph_fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

uint64_t gf_next(gf_random *r) { /* splitmix64 */
  uint64_t z = (r->state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void gf_must(ait_status status, const char *what) {
  if (status == AIT_OK) return;
  fprintf(stderr, "ait_graph_fuzz: %s: %s\n", what, ait_status_message(status));
  exit(4);
}

static double special(gf_random *r) {
  static const double some[] = {NAN, INFINITY, -INFINITY, -0.0, 1e-40, -1e-40};
  return some[gf_below(r, AIT_COUNT(some))];
}

static double number(char domain, int64_t limit, gf_random *r) {
  double x = gf_real(r);
  switch (domain) {
    case 'p': return 0.5 + 1.5 * x;
    case 'g': return floor(x * 25) / 4 - 3;
    case 'w': return gf_chance(r, 15) ? special(r) : floor(x * 25) / 4 - 3;
    case 'i': return floor(x * 19) - 9;
    case 'n': return floor(x * (double)limit);
    case 'b': return x < 0.5;
    default: return 2 * x - 1;
  }
}

static void set_element(void *at, ait_dtype dtype, double x, bool nudge, gf_random *r) {
  if (ait_dtype_is_integer(dtype)) {
    ait_element_set_i64(at, dtype, (int64_t)x);
    return;
  }
  ait_element_set_f64(at, dtype, x);
  if (!nudge || dtype != AIT_F32) return;
  float f;
  memcpy(&f, at, sizeof f);
  f = nextafterf(f, gf_chance(r, 50) ? INFINITY : -INFINITY);
  memcpy(at, &f, sizeof f);
}

/* Memory in which the tensor's elements lie with gaps, transposed, or both; the strides that fit it. */
static size_t odd_strides(ait_tensor *t, gf_random *r) {
  int32_t order[AIT_MAX_RANK];
  int64_t step = 1 + gf_below(r, 2);
  for (int32_t d = 0; d < t->rank; ++d) order[d] = d;
  for (int32_t d = t->rank - 1; d > 0; --d) {
    int32_t k = (int32_t)gf_below(r, (uint32_t)d + 1), swap = order[d];
    order[d] = order[k];
    order[k] = swap;
  }
  for (int32_t d = t->rank - 1; d >= 0; --d) {
    t->strides[order[d]] = step;
    step *= t->shape[order[d]] > 0 ? t->shape[order[d]] + gf_below(r, 2) : 1;
  }
  return (size_t)step + 1;
}

ait_tensor gf_contents(const char *name, ait_dtype dtype, int32_t rank, const int64_t *shape, int setting, bool strided, bool nudge) {
  gf_random r = {ait_hash(name, strlen(name), 77 + (uint64_t)setting)}, jitter = {r.state ^ 0x5555};
  ait_tensor t = {.dtype = dtype, .rank = rank};
  memcpy(t.shape, shape, (size_t)rank * sizeof *shape);
  ait_tensor_set_contiguous(&t);
  int64_t count = ait_tensor_count(&t), limit = strtol(name + 1, NULL, 10);
  size_t elements = (size_t)count, size = ait_dtype_size(dtype);
  if (strided && gf_chance(&r, 40)) elements = odd_strides(&t, &r);
  gf_must(ait_storage_create(ait_allocator_default(), elements * size + 64, &t.storage), name);
  t.data = ait_storage_data(t.storage);
  memset(t.data, 0x3f, elements * size);
  int64_t index[AIT_MAX_RANK] = {0};
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (int32_t d = 0; d < rank; ++d) at += index[d] * t.strides[d];
    set_element((char *)t.data + (size_t)at * size, dtype, number(name[0], limit, &r), nudge, &jitter);
    for (int32_t d = rank - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
  return t;
}

void gf_fill_weights(ait_graph *g, bool nudge) {
  ait_weight_store *store;
  gf_must(ait_weight_store_create(ait_allocator_default(), &store), "weights");
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_region_input *in = &g->inputs[i];
    if (in->kind == AIT_INPUT_USER || in->kind == AIT_INPUT_TOKEN || in->value == AIT_NO_INDEX) continue;
    const ait_value_info *v = &g->values[in->value];
    ait_weight w = {.name = in->name, .dtype = v->dtype, .rank = v->rank};
    for (int32_t d = 0; d < v->rank; ++d)
      if (!ait_dim_is_const(g, v->shape[d], &w.shape[d]))
        gf_must(ait_error(AIT_CODE_INVALID_MODEL, "'%s' has no fixed size", in->name), "weights");
    ait_tensor t = gf_contents(in->name, v->dtype, v->rank, w.shape, 0, g->dialect == AIT_DIALECT_CORE, nudge);
    memcpy(w.strides, t.strides, sizeof w.strides);
    gf_must(ait_weight_store_add_storage(store, ait_storage_retain(t.storage), &w.storage), "weights");
    gf_must(ait_weight_store_add(store, &w), "weights");
    ait_tensor_release(&t);
  }
  ait_weight_store_release(g->weights);
  g->weights = store;
}

void gf_symbols(const ait_region *region, int setting, int64_t *out) {
  for (uint32_t i = 0; i < region->symbol_count; ++i) {
    const ait_symbol *s = &region->symbols[i];
    int64_t v = setting == 0 && s->hint >= 0 ? s->hint : setting == 1 ? s->min : s->min + (7 * setting + 5 * (int64_t)i) % 11;
    if (setting == 2 && s->min <= 1) v = 1;
    out[i] = !s->backed ? INT64_MIN : v > s->max ? s->max : v < s->min ? s->min : v;
  }
}

bool gf_inputs(const ait_region *region, int setting, bool nudge, ait_value *out, size_t *out_count) {
  int64_t symbols[64];
  *out_count = 0;
  if (region->symbol_count > AIT_COUNT(symbols)) return false;
  gf_symbols(region, setting, symbols);
  for (uint32_t i = 0; i < region->input_count; ++i) {
    const ait_region_input *in = &region->inputs[i];
    if (in->kind != AIT_INPUT_USER || in->user_index < 0) continue;
    if (in->user_index >= GF_MAX_INPUTS || in->value == AIT_NO_INDEX) return false;
    const ait_region_value *v = &region->values[in->value];
    int64_t shape[AIT_MAX_RANK];
    if (v->type != AIT_TYPE_TENSOR || v->rank < 0) return false;
    for (int32_t d = 0; d < v->rank; ++d)
      if (!ait_dim_eval(region->dims, symbols, v->shape[d], &shape[d]) || shape[d] < 0) return false;
    if ((size_t)in->user_index >= *out_count) *out_count = (size_t)in->user_index + 1;
    /* Exported programs fix how the memory of inputs lies where views are taken of it, so raw graphs get contiguous ones. */
    bool strided = !in->mutated && strstr(region->name, "strided") != NULL;
    out[in->user_index] = ait_value_tensor(gf_contents(in->name, v->dtype, v->rank, shape, setting, strided, nudge));
  }
  return true;
}
