/* Random valid graphs: nodes from the recipes until there are enough, then outputs for whatever nothing reads. */
#include "graph_fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const ait_value_info *gf_info(const gf_gen *g, const gf_value *v) { return &g->g->values[v->id]; }

ait_dim gf_const(gf_gen *g, int64_t n) {
  ait_dim d;
  gf_must(ait_dim_const(g->g, n, &d), "size");
  return d;
}

int64_t gf_some_size(gf_gen *g) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 1, 2, 3, 4, 33, 0};
  int64_t n = sizes[gf_below(&g->random, AIT_COUNT(sizes))];
  return n == 0 && gf_chance(&g->random, 70) ? 2 : n;
}

ait_dim gf_some_dim(gf_gen *g) {
  if (g->symbol_count && gf_chance(&g->random, 35)) return g->symbols[gf_below(&g->random, g->symbol_count)];
  return gf_const(g, gf_some_size(g));
}

bool gf_size(const gf_gen *g, const gf_value *v, int32_t dim, int64_t *out) {
  return ait_dim_is_const(g->g, gf_info(g, v)->shape[dim], out);
}

int64_t gf_least(const gf_gen *g, const gf_value *v, int32_t dim) {
  int64_t min, max;
  ait_dim_range(g->g, gf_info(g, v)->shape[dim], &min, &max);
  return min > 0 ? min : 0;
}

ait_dtype gf_float_dtype(gf_gen *g) {
  static const ait_dtype other[] = {AIT_F32, AIT_F64, AIT_F16, AIT_BF16};
  return gf_chance(&g->random, 92) ? g->main : other[gf_below(&g->random, AIT_COUNT(other))];
}

/* At most so many elements for every value of the symbols: 0 when that is not known. */
static bool small_enough(const gf_gen *g, const ait_value_info *v) {
  double most = 1;
  for (int32_t d = 0; d < v->rank; ++d) {
    int64_t min, max;
    ait_dim_range(g->g, v->shape[d], &min, &max);
    if (!ait_dim_is_known(g->g, v->shape[d])) return false;
    most *= (double)(max > 0 ? max : 1);
  }
  return most <= 12000 && v->rank >= 0 && v->rank <= 6;
}

/* ---- values --------------------------------------------------------------------------------------------------------------------------*/
gf_value *gf_add(gf_gen *g, uint32_t id) {
  gf_value *v = &g->values[g->count++];
  *v = (gf_value){.id = id, .lo = -1e9, .hi = 1e9, .contiguous = true, .root = g->count - 1};
  return v;
}

void gf_range(gf_value *v, double lo, double hi, bool exact) {
  v->lo = lo;
  v->hi = hi;
  v->exact = exact;
}

static void domain_range(gf_value *v, char domain, int64_t limit) {
  switch (domain) {
    case 'p': gf_range(v, 0.5, 2, false); break;
    case 'g':
    case 'w': gf_range(v, -3, 3.25, true); break;
    case 'i': gf_range(v, -9, 9, true); break;
    case 'n': gf_range(v, 0, (double)limit - 1, true); break;
    case 'b': gf_range(v, 0, 1, true); break;
    default: gf_range(v, -1, 1, false);
  }
}

gf_value *gf_input(gf_gen *g, char domain, int64_t limit, ait_dtype dtype, int32_t rank, const ait_dim *shape, bool may_be_weight) {
  if (g->count + 8 >= GF_MAX_VALUES || g->g->input_count >= GF_MAX_INPUTS) return NULL;
  char name[32];
  if (domain == 'n') snprintf(name, sizeof name, "n%lld_%u", (long long)limit, (unsigned)g->g->input_count);
  else snprintf(name, sizeof name, "%c%u", domain, (unsigned)g->g->input_count);
  ait_value_info info = {.type = AIT_TYPE_TENSOR, .dtype = dtype, .rank = rank, .shape = shape};
  bool fixed = true;
  int64_t n;
  for (int32_t d = 0; d < rank; ++d) fixed &= ait_dim_is_const(g->g, shape[d], &n);
  uint32_t id;
  gf_must(ait_graph_add_value(g->g, name, &info, &id), name);
  ait_region_input in = {.value = id, .kind = AIT_INPUT_USER, .name = name, .user_index = (int32_t)g->input_count};
  if (may_be_weight && fixed) {
    in.kind = gf_chance(&g->random, 70) ? AIT_INPUT_PARAMETER : gf_chance(&g->random, 50) ? AIT_INPUT_BUFFER : AIT_INPUT_CONSTANT;
    in.user_index = -1;
  } else {
    ++g->input_count;
  }
  gf_must(ait_graph_add_input(g->g, &in), name);
  gf_value *v = gf_add(g, id);
  v->writable = in.kind == AIT_INPUT_USER || in.kind == AIT_INPUT_BUFFER;
  domain_range(v, domain, limit);
  return v;
}

gf_value *gf_weight(gf_gen *g, char domain, ait_dtype dtype, int32_t rank, const int64_t *shape) {
  ait_dim dims[AIT_MAX_RANK];
  for (int32_t d = 0; d < rank; ++d) dims[d] = gf_const(g, shape[d]);
  return gf_input(g, domain, 0, dtype, rank, dims, gf_chance(&g->random, 80));
}

bool gf_fits(const gf_gen *g, const gf_value *v, uint32_t want, int32_t min_rank, int32_t max_rank) {
  const ait_value_info *i = gf_info(g, v);
  if (i->type != AIT_TYPE_TENSOR || i->rank < min_rank || i->rank > max_rank) return false;
  bool is_float = ait_dtype_is_float(i->dtype), is_bool = i->dtype == AIT_BOOL;
  uint32_t kind = is_float ? GF_FLOAT : is_bool ? GF_BOOL : ait_dtype_is_integer(i->dtype) ? GF_INT : 0;
  if (!(want & kind)) return false;
  if ((want & GF_EXACT) && is_float && !v->exact) return false;
  if ((want & GF_MODERATE) && is_float && !g->wild && !(v->lo >= -1e3 && v->hi <= 1e3)) return false;
  int64_t n;
  for (int32_t d = 0; d < i->rank; ++d) {
    if ((want & GF_CONST_SHAPE) && !ait_dim_is_const(g->g, i->shape[d], &n)) return false;
    if ((want & GF_NONEMPTY) && gf_least(g, v, d) < 1) return false;
  }
  return true;
}

static gf_value *fresh(gf_gen *g, uint32_t want, int32_t min_rank, int32_t max_rank) {
  ait_dim shape[AIT_MAX_RANK];
  int32_t top = max_rank > 4 ? 4 : max_rank;
  int32_t rank = min_rank + (top > min_rank ? (int32_t)gf_below(&g->random, (uint32_t)(top - min_rank + 1)) : 0);
  for (int32_t d = 0; d < rank; ++d) {
    shape[d] = want & GF_CONST_SHAPE ? gf_const(g, gf_some_size(g)) : gf_some_dim(g);
    int64_t min, max;
    ait_dim_range(g->g, shape[d], &min, &max);
    if ((want & GF_NONEMPTY) && min < 1) shape[d] = gf_const(g, 3);
  }
  uint32_t kinds = want & GF_ANY;
  uint32_t kind = (kinds & GF_FLOAT) && (kinds == GF_FLOAT || gf_chance(&g->random, 80)) ? GF_FLOAT : kinds & ~(uint32_t)GF_FLOAT;
  if (kind == (GF_INT | GF_BOOL)) kind = gf_chance(&g->random, 75) ? GF_INT : GF_BOOL;
  static const ait_dtype ints[] = {AIT_I64, AIT_I64, AIT_I32, AIT_I16, AIT_I8, AIT_U8};
  if (kind == GF_BOOL) return gf_input(g, 'b', 0, AIT_BOOL, rank, shape, false);
  if (kind == GF_INT) return gf_input(g, 'i', 0, ints[gf_below(&g->random, AIT_COUNT(ints))], rank, shape, gf_chance(&g->random, 20));
  char domain = want & GF_EXACT || gf_chance(&g->random, 20) ? 'g' : gf_chance(&g->random, 15) ? 'p' : 's';
  if (g->wild && domain != 'p') domain = 'w';
  return gf_input(g, domain, 0, gf_float_dtype(g), rank, shape, gf_chance(&g->random, 20));
}

gf_value *gf_pick(gf_gen *g, uint32_t want, int32_t min_rank, int32_t max_rank) {
  if (g->count && !gf_chance(&g->random, 12)) {
    for (int attempt = 0; attempt < 8; ++attempt) {
      /* the later ones more often, so that graphs become deep */
      uint32_t a = gf_below(&g->random, g->count), b = gf_below(&g->random, g->count);
      gf_value *v = &g->values[a > b ? a : b];
      if (gf_fits(g, v, want, min_rank, max_rank)) return v;
    }
  }
  return fresh(g, want, min_rank, max_rank);
}

/* ---- broadcasting --------------------------------------------------------------------------------------------------------------------*/
bool gf_broadcasts(const gf_gen *g, const gf_value *a, const gf_value *b, bool within) {
  const ait_value_info *x = gf_info(g, a), *y = gf_info(g, b);
  if (within && y->rank > x->rank) return false;
  for (int32_t i = 1; i <= x->rank && i <= y->rank; ++i) {
    ait_dim p = x->shape[x->rank - i], q = y->shape[y->rank - i];
    int64_t n;
    bool one = ait_dim_is_const(g->g, q, &n) && n == 1, other = ait_dim_is_const(g->g, p, &n) && n == 1;
    if (p != q && !one && !(other && !within)) return false;
  }
  return true;
}

gf_value *gf_partner(gf_gen *g, const gf_value *v, uint32_t want, bool within) {
  for (int attempt = 0; attempt < 10; ++attempt) {
    gf_value *p = &g->values[gf_below(&g->random, g->count)];
    if (gf_fits(g, p, want, 0, AIT_MAX_RANK) && gf_broadcasts(g, v, p, within)) return p;
  }
  const ait_value_info *x = gf_info(g, v);
  ait_dim shape[AIT_MAX_RANK];
  int32_t drop = gf_chance(&g->random, 30) ? (int32_t)gf_below(&g->random, (uint32_t)x->rank + 1) : 0, rank = x->rank - drop;
  for (int32_t d = 0; d < rank; ++d) shape[d] = gf_chance(&g->random, 20) ? gf_const(g, 1) : x->shape[d + drop];
  bool is_bool = !(want & (GF_FLOAT | GF_INT)), is_int = !(want & GF_FLOAT) || (want & GF_INT && ait_dtype_is_integer(x->dtype));
  if (is_bool) return gf_input(g, 'b', 0, AIT_BOOL, rank, shape, gf_chance(&g->random, 30));
  if (is_int) return gf_input(g, 'i', 0, x->dtype == AIT_BOOL || !ait_dtype_is_integer(x->dtype) ? AIT_I64 : x->dtype, rank, shape, false);
  char domain = g->wild ? 'w' : want & GF_EXACT || gf_chance(&g->random, 20) ? 'g' : 's';
  return gf_input(g, domain, 0, ait_dtype_is_float(x->dtype) ? x->dtype : g->main, rank, shape, gf_chance(&g->random, 30));
}

/* ---- nodes ---------------------------------------------------------------------------------------------------------------------------*/
gf_value *gf_emit(gf_gen *g, const char *op, const ait_arg *args, uint32_t count) {
  const ait_op *row = ait_op_find(op);
  uint32_t ids[4];
  ait_value_info infos[4];
  if (!row || row->result_count > 4 || g->count + row->result_count >= GF_MAX_VALUES) return NULL;
  ait_status status = ait_infer(g->g, row, args, count, infos, row->result_count);
  for (uint32_t i = 0; status == AIT_OK && i < row->result_count; ++i)
    if (infos[i].type == AIT_TYPE_TENSOR && !small_enough(g, &infos[i])) return NULL;
  if (status == AIT_OK) status = ait_build(g->g, NULL, op, op, AIT_NO_INDEX, args, count, ids, row->result_count);
  if (status != AIT_OK) {
    ait_status_ignore(status);
    return NULL;
  }
  gf_value *first = &g->values[g->count];
  for (uint32_t i = 0; i < row->result_count; ++i) gf_add(g, ids[i]);
  return first;
}

gf_value *gf_bounded(gf_gen *g, gf_value *v, double lo, double hi) {
  if (!v || g->wild || (v->lo >= lo && v->hi <= hi)) return v;
  gf_value from = *v;
  gf_value *c = gf_emit(g, "clamp", GF_ARGS(gf_v(v), ait_arg_float(lo), ait_arg_float(hi)));
  if (c) gf_range(c, fmax(lo, fmin(from.lo, hi)), fmin(hi, fmax(from.hi, lo)), from.exact);
  return c;
}

/* ---- whole graphs --------------------------------------------------------------------------------------------------------------------*/
static const gf_recipe *some_recipe(gf_gen *g, const char *only) {
  const gf_recipe *recipes = g->raw ? gf_raw_recipes : gf_core_recipes;
  uint32_t total = 0;
  for (const gf_recipe *r = recipes; r->op; ++r) {
    total += r->weight;
    if (only && !strcmp(r->op, only) && gf_chance(&g->random, 50)) return r;
  }
  uint32_t at = gf_below(&g->random, total);
  for (const gf_recipe *r = recipes;; ++r) {
    if (at < r->weight) return r;
    at -= r->weight;
  }
}

static void add_symbols(gf_gen *g) {
  static const int64_t least[] = {0, 1, 2}, most[] = {9, 12, 20};
  g->symbol_count = gf_chance(&g->random, 65) ? 1 + gf_below(&g->random, 3) : 0;
  for (uint32_t i = 0; i < g->symbol_count; ++i) {
    char name[16];
    snprintf(name, sizeof name, "s%u", (unsigned)i);
    gf_must(ait_dim_symbol(g->g, name, &g->symbols[i]), name);
    ait_symbol *s = ait_graph_symbol(g->g, name);
    s->min = least[gf_below(&g->random, 3)];
    s->max = most[gf_below(&g->random, 3)];
    s->hint = s->min + 1 + gf_below(&g->random, 6);
    s->backed = true;
    ait_dim shape[] = {g->symbols[i], gf_const(g, 1 + gf_below(&g->random, 8))}; /* an input that binds it */
    gf_input(g, g->wild ? 'w' : gf_chance(&g->random, 50) ? 's' : 'g', 0, g->main, 2, shape, false);
  }
}

static void add_outputs(gf_gen *g) {
  uint32_t *uses, made = 0;
  gf_must(ait_graph_count_uses(g->g, ait_allocator_default(), &uses), "uses");
  for (uint32_t i = 0; i < g->count; ++i) {
    const ait_value_info *v = gf_info(g, &g->values[i]);
    if (!v->def || v->type != AIT_TYPE_TENSOR) continue;
    if (uses[g->values[i].id] && !gf_chance(&g->random, 8) && i + 1 < g->count) continue;
    ait_region_output out = {.arg = gf_v(&g->values[i]), .kind = AIT_OUTPUT_USER, .name = v->name, .user_index = (int32_t)made++};
    gf_must(ait_graph_add_output(g->g, &out), "output");
  }
  ait_free(ait_allocator_default(), uses, g->g->value_count * sizeof *uses);
}

ait_graph *gf_generate(uint64_t seed, const char *only) {
  gf_gen g = {.random = {seed * 0x9E3779B9u + 12345}, .main = AIT_F32};
  gf_next(&g.random);
  uint32_t kind = gf_below(&g.random, 100);
  g.raw = only ? !strncmp(only, "aten.", 5) : kind < 30;
  g.wild = !g.raw && kind >= 90;
  if (gf_chance(&g.random, 15)) g.main = gf_chance(&g.random, 30) ? AIT_F64 : gf_chance(&g.random, 50) ? AIT_F16 : AIT_BF16;
  gf_must(ait_graph_create(ait_allocator_default(), g.raw ? AIT_DIALECT_RAW : AIT_DIALECT_CORE, &g.g), "graph");
  g.g->name = g.raw ? "fuzz" : g.wild ? "fuzz strided wild" : gf_chance(&g.random, 50) ? "fuzz strided" : "fuzz";
  g.g->producer = "ait_graph_fuzz";
  add_symbols(&g);
  uint32_t nodes = 1 + gf_below(&g.random, gf_chance(&g.random, 30) ? 30 : 8);
  for (uint32_t attempt = 0; attempt < 4 * nodes && g.g->node_count < nodes && g.count + 12 < GF_MAX_VALUES; ++attempt) {
    const gf_recipe *r = some_recipe(&g, only);
    r->make(&g, r->op);
  }
  add_outputs(&g);
  gf_must(ait_graph_set_input_spec(g.g, NULL, 0), "signature");
  gf_fill_weights(g.g, false);
  return g.g;
}
