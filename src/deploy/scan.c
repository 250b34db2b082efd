/* Recurrences over the tokens (state space models), found by what they compute and not by how they are spelled: chunks, cumulative sums and
 * masks differ from model to model. A region is all nodes that mix tokens before one value that has one entry a token again. It is run on
 * random entries and compared with  h = exp(g) h + u b,  y = c h + d x  for every way to give its entries these roles. */
#include "deploy/internal.h"
#include <math.h>
#include <stdio.h>

enum { MAX_ENTRIES = 8, PROBE = 13 };

typedef struct entry {
  uint32_t value;
  int64_t heads, width; /* per token; width 0: one number a head */
} entry;

typedef struct region {
  dep_work *w;
  ait_node *exit; /* its result 0 is the candidate */
  entry entries[MAX_ENTRIES];
  uint32_t count;
  int64_t chunk; /* the largest number that sizes are divided by */
} region;

typedef struct roles {
  int g, u, b, c, x; /* indices of entries; x -1: no residual */
  int64_t heads, width, groups, size;
} roles;

/* ---- the region -----------------------------------------------------------------------------------------------------------------------*/
typedef struct walk {
  region *r;
  uint8_t *seen;
  uint32_t *stack;
  size_t count, capacity;
  bool too_many;
  ait_status status;
} walk;

static void find_chunk(region *r, ait_dim d, int depth) {
  const ait_dim_expr *e = &r->w->g->dims[d];
  int64_t by;
  if (e->op == AIT_DIM_CONST || e->op == AIT_DIM_SYMBOL || e->op == AIT_DIM_UNKNOWN || depth > 12) return;
  if ((e->op == AIT_DIM_MOD || e->op == AIT_DIM_FLOORDIV) && ait_dim_is_const(r->w->g, e->b, &by) && by > r->chunk) r->chunk = by;
  find_chunk(r, e->a, depth + 1);
  find_chunk(r, e->b, depth + 1);
}

static void visit(void *ctx, uint32_t v) {
  walk *k = ctx;
  dep_work *w = k->r->w;
  if (k->status || k->seen[v]) return;
  k->seen[v] = 1;
  if (w->labels[v].kind == DEP_TOKEN) {
    if (k->r->count == MAX_ENTRIES) k->too_many = true;
    else k->r->entries[k->r->count++].value = v;
    return;
  }
  if (w->labels[v].kind != DEP_MIXED) return;
  for (int32_t d = 0; w->g->values[v].type == AIT_TYPE_TENSOR && d < w->g->values[v].rank && !k->r->chunk; ++d)
    find_chunk(k->r, w->g->values[v].shape[d], 0);
  void *stack = k->stack;
  k->status = ait_grow(w->a, &stack, &k->capacity, k->count + 1, sizeof *k->stack);
  if (!k->status) k->stack = stack, k->stack[k->count++] = v;
}

static ait_status gather(region *r, bool *out_good) {
  dep_work *w = r->w;
  walk k = {.r = r, .seen = ait_alloc_zero(w->a, w->g->value_count + 1, 1)};
  if (!k.seen) return AIT_OOM();
  visit(&k, r->exit->results[0]);
  while (k.count && !k.status && !k.too_many) {
    const ait_node *n = w->g->values[k.stack[--k.count]].def;
    if (n) ait_node_each_operand(n, visit, &k);
  }
  *out_good = !k.too_many;
  ait_free(w->a, k.stack, k.capacity * sizeof *k.stack);
  ait_free(w->a, k.seen, w->g->value_count + 1);
  return k.status;
}

/* Sizes of one token's part of a value [1.., T, ..]: [heads], [heads, width]. */
static bool per_token(dep_work *w, uint32_t v, int32_t dim, int64_t *heads, int64_t *width) {
  int64_t sizes[AIT_MAX_RANK], parts[2] = {1, 0};
  int count = 0;
  if (!dep_const_sizes(w->g, v, dim, sizes)) return false;
  for (int32_t d = 0; d < w->g->values[v].rank; ++d) {
    if (d == dim || (sizes[d] == 1 && d < dim)) continue;
    if (count == 2 || (d < dim && sizes[d] != 1)) return false;
    parts[count++] = sizes[d];
  }
  *heads = parts[0], *width = parts[1];
  return count > 0;
}

static bool describe(region *r) {
  for (uint32_t i = 0; i < r->count; ++i) {
    entry *e = &r->entries[i];
    const dep_label *l = &r->w->labels[e->value];
    if (l->inner != 1 || !per_token(r->w, e->value, l->dim, &e->heads, &e->width)) return false;
  }
  return r->count >= 4;
}

/* ---- one probe ------------------------------------------------------------------------------------------------------------------------*/
typedef struct probe {
  ait_tensor entries[MAX_ENTRIES], want; /* doubles */
} probe;

static double at(const ait_tensor *t, int64_t index) {
  int64_t multi[AIT_MAX_RANK];
  for (int32_t d = t->rank - 1; d >= 0; --d) multi[d] = index % t->shape[d], index /= t->shape[d];
  return ait_element_f64(ait_ref_at(t, multi), t->dtype);
}

static ait_status run_probe(region *r, probe *p, uint32_t negative) {
  dep_eval e;
  AIT_TRY(dep_eval_begin(r->w->g, r->w->a, true, &e));
  dep_eval_size(&e, r->w->tokens_name, PROBE);
  ait_status status = AIT_OK;
  for (uint32_t i = 0; i < r->count && !status; ++i) {
    status = dep_eval_give_random(&e, r->entries[i].value, 31 + i, 1, negative >> i & 1);
    if (!status) p->entries[i] = ait_tensor_retain(&e.values[r->entries[i].value].as.tensor);
  }
  ait_tensor t;
  if (!status) status = dep_eval_run(&e, r->exit->results[0], &t);
  if (!status) p->want = ait_tensor_retain(&t);
  dep_eval_end(&e);
  return status;
}

static void release(probe *p) {
  for (int i = 0; i < MAX_ENTRIES; ++i) ait_tensor_release(&p->entries[i]);
  ait_tensor_release(&p->want);
}

/* y of the recurrence into out [PROBE, heads, width]; h: room for one head's state. */
static void recur(const probe *p, const roles *s, double *h, double *out) {
  for (int64_t k = 0; k < s->heads; ++k) {
    int64_t group = k / (s->heads / s->groups);
    memset(h, 0, (size_t)(s->width * s->size) * sizeof *h);
    for (int64_t t = 0; t < PROBE; ++t) {
      double decay = exp(at(&p->entries[s->g], t * s->heads + k));
      for (int64_t i = 0; i < s->width; ++i) {
        double u = at(&p->entries[s->u], (t * s->heads + k) * s->width + i), y = 0;
        for (int64_t n = 0; n < s->size; ++n) {
          double *cell = &h[i * s->size + n];
          *cell = decay * *cell + u * at(&p->entries[s->b], (t * s->groups + group) * s->size + n);
          y += *cell * at(&p->entries[s->c], (t * s->groups + group) * s->size + n);
        }
        out[(t * s->heads + k) * s->width + i] = y;
      }
    }
  }
}

/* want = y + d x with one d for each head and column; *d [heads, width] filled when there is an x. */
static bool explains(const probe *p, const roles *s, const double *y, double *d) {
  int64_t row = s->heads * s->width;
  for (int64_t i = 0; i < row; ++i) {
    double xx = 0, xr = 0;
    for (int64_t t = 0; s->x >= 0 && t < PROBE; ++t) {
      double x = at(&p->entries[s->x], t * row + i);
      xx += x * x;
      xr += x * (at(&p->want, t * row + i) - y[t * row + i]);
    }
    d[i] = s->x >= 0 && xx > 0 ? xr / xx : 0;
    for (int64_t t = 0; t < PROBE; ++t) {
      double got = y[t * row + i] + (s->x >= 0 ? d[i] * at(&p->entries[s->x], t * row + i) : 0), want = at(&p->want, t * row + i);
      if (!(fabs(got - want) <= 1e-9 * (1 + fabs(want)))) return false;
    }
  }
  return true;
}

static bool shapes_fit(const region *r, roles *s) {
  const entry *g = &r->entries[s->g], *u = &r->entries[s->u], *b = &r->entries[s->b], *c = &r->entries[s->c];
  if (g->width != 0 || u->width == 0 || b->width == 0 || u->heads != g->heads) return false;
  if (b->heads != c->heads || b->width != c->width || g->heads % b->heads != 0) return false;
  if (s->x >= 0 && (r->entries[s->x].heads != u->heads || r->entries[s->x].width != u->width)) return false;
  s->heads = u->heads, s->width = u->width, s->groups = b->heads, s->size = b->width;
  return true;
}

/* Does this assignment explain the probe? */
static ait_status try_roles(region *r, const probe *p, const roles *s, double *d, bool *out_found) {
  ait_allocator a = r->w->a;
  size_t cells = (size_t)(s->width * s->size), rows = (size_t)(PROBE * s->heads * s->width);
  if (ait_tensor_count(&p->want) != (int64_t)rows) return AIT_OK;
  double *h = ait_alloc(a, cells * sizeof *h, 8), *y = ait_alloc(a, rows * sizeof *y, 8);
  ait_status status = h && y ? AIT_OK : AIT_OOM();
  if (!status) {
    recur(p, s, h, y);
    *out_found = explains(p, s, y, d);
  }
  ait_free(a, h, cells * sizeof *h);
  ait_free(a, y, rows * sizeof *y);
  return status;
}

/* Every assignment with this decay whose shapes fit: four entries, or five with the residual's. */
static ait_status find_others(region *r, const probe *p, int g, roles *out, double **d, bool *out_found) {
  int n = (int)r->count;
  for (int u = 0; u < n; ++u)
    for (int b = 0; b < n; ++b)
      for (int c = 0; c < n; ++c) {
        roles s = {.g = g, .u = u, .b = b, .c = c, .x = n == 5 ? 10 - g - u - b - c : u};
        if (g == u || g == b || g == c || u == b || u == c || b == c || !shapes_fit(r, &s)) continue;
        *d = AIT_ARENA_ARRAY(&r->w->arena, double, (size_t)(s.heads * s.width));
        if (!*d) return AIT_OOM();
        AIT_TRY(try_roles(r, p, &s, *d, out_found));
        *out = s;
        if (*out_found) return AIT_OK;
      }
  return AIT_OK;
}

static ait_status find_roles(region *r, roles *out, double **d, bool *out_found) {
  *out_found = false;
  if (r->count > 5) return AIT_OK;
  for (int g = 0; g < (int)r->count && !*out_found; ++g) {
    probe p = {0};
    if (r->entries[g].width) continue;
    ait_status status = run_probe(r, &p, 1u << g);
    if (!status) status = find_others(r, &p, g, out, d, out_found);
    release(&p);
    AIT_TRY(status);
  }
  return AIT_OK;
}

/* ---- the operator ---------------------------------------------------------------------------------------------------------------------*/
static ait_status constant(dep_work *w, const char *name, int32_t rank, const int64_t *shape, const double *values, uint32_t *out) {
  ait_tensor t;
  char full[48];
  snprintf(full, sizeof full, "scan.%u.%s", w->layers, name);
  AIT_TRY(ait_tensor_create(w->a, AIT_F32, rank, shape, &t));
  for (int64_t i = 0, n = ait_tensor_count(&t); i < n; ++i) ((float *)t.data)[i] = values ? (float)values[i] : 1.0f;
  ait_status status = dep_add_weight(w, full, &t, out);
  ait_tensor_release(&t);
  return status;
}

static ait_status rows_of(dep_work *w, const ait_rewrite *r, const entry *e, uint32_t *out) {
  ait_arg shape[3] = {ait_dim_as_arg(w->g, w->g->values[w->tokens].shape[1]), ait_arg_int(e->heads), ait_arg_int(e->width)};
  return AIT_EMIT(r, out, "reshape", ait_arg_value(e->value), ait_arg_list(shape, e->width ? 3 : 2));
}

static ait_status emit(region *g, const roles *s, const double *d, uint32_t *out) {
  dep_work *w = g->w;
  ait_rewrite r = ait_rewrite_at(w->g, &w->context, g->exit);
  uint32_t group, state, ones, residual, u, dt, b, c, x, y;
  char name[32];
  const int64_t sizes[4] = {0, s->heads, s->width, s->size}, wide[2] = {s->heads, s->width};
  bool any = false;
  AIT_TRY(dep_find_group(w, AIT_LM_SLOTS, 0, &group));
  snprintf(name, sizeof name, "state.%u.scan", w->layers);
  AIT_TRY(dep_add_state(w, name, group, AIT_F32, 4, sizes, &state));
  w->groups[group].layers++;
  AIT_TRY(constant(w, "ones", 1, &s->heads, NULL, &ones));
  AIT_TRY(rows_of(w, &r, &g->entries[s->u], &u));
  AIT_TRY(rows_of(w, &r, &g->entries[s->g], &dt));
  AIT_TRY(rows_of(w, &r, &g->entries[s->b], &b));
  AIT_TRY(rows_of(w, &r, &g->entries[s->c], &c));
  AIT_TRY(AIT_EMIT(&r, &y, "cached_scan", ait_arg_value(u), ait_arg_value(dt), ait_arg_value(ones), ait_arg_value(b), ait_arg_value(c),
                   ait_arg_value(w->sequences), ait_arg_value(state)));
  for (int64_t i = 0; i < s->heads * s->width; ++i) any |= fabs(d[i]) > 1e-12;
  if (any) {
    AIT_TRY(constant(w, "residual", 2, wide, d, &residual));
    AIT_TRY(rows_of(w, &r, &g->entries[s->x], &x));
    AIT_TRY(AIT_EMIT(&r, &x, "mul", ait_arg_value(x), ait_arg_value(residual)));
    AIT_TRY(AIT_EMIT(&r, &y, "add", ait_arg_value(y), ait_arg_value(x)));
  }
  ait_arg shape[AIT_MAX_RANK];
  w->layers++;
  if (!ait_shape_args(w->g, g->exit->results[0], shape)) return ait_error(AIT_CODE_INTERNAL, "the shape of a scan is not known");
  return AIT_EMIT(&r, out, "reshape", ait_arg_value(y), ait_arg_list(shape, (uint32_t)w->g->values[g->exit->results[0]].rank));
}

static ait_status replace(region *g, const roles *s, const double *d, bool *out_matched) {
  dep_work *w = g->w;
  uint32_t old = g->exit->results[0], fresh, operands[MAX_ENTRIES];
  for (uint32_t i = 0; i < g->count; ++i) operands[i] = g->entries[i].value;
  AIT_TRY(emit(g, s, d, &fresh));
  AIT_TRY(dep_prove(w, old, fresh, operands, g->count, 1u << s->g, g->chunk < 1024 ? 2 * g->chunk + 3 : 1027, out_matched));
  return *out_matched ? ait_replace_value(w->g, old, fresh) : AIT_OK;
}

/* One entry a token again: [1, T, ..]. */
static bool is_exit(dep_work *w, const ait_node *n) {
  if (n->result_count != 1 || n->results[0] == AIT_NO_INDEX || w->labels[n->results[0]].kind != DEP_MIXED) return false;
  const ait_value_info *v = &w->g->values[n->results[0]];
  int64_t heads, width;
  return v->type == AIT_TYPE_TENSOR && v->rank >= 3 && v->shape[1] == w->g->values[w->tokens].shape[1] && ait_dtype_is_float(v->dtype) &&
         per_token(w, n->results[0], 1, &heads, &width);
}

ait_status dep_match_scan(dep_work *w, bool *out_matched) {
  *out_matched = false;
  for (ait_node *n = w->g->first; n && !*out_matched; n = n->next) {
    region r = {.w = w, .exit = n};
    roles s;
    double *d;
    bool good = false;
    if (!is_exit(w, n)) continue;
    AIT_TRY(gather(&r, &good));
    if (!good || !describe(&r)) return AIT_OK; /* later values depend on it */
    AIT_TRY(find_roles(&r, &s, &d, &good));
    if (good) return replace(&r, &s, d, out_matched);
  }
  return AIT_OK;
}

/* ---- the operator that the exporter writes for loops over tokens ---- */
ait_status dep_match_scan_operator(dep_work *w, ait_node *n, bool *out_matched) {
  ait_graph *g = w->g;
  ait_rewrite r = ait_rewrite_at(g, &w->context, n);
  ait_node *before = n->prev;
  int64_t heads, size;
  uint32_t in[5], group, state, y;
  char name[32];
  *out_matched = false;
  for (int i = 0; i < 5; ++i) {
    in[i] = n->args[i].as.value;
    const dep_label *l = &w->labels[in[i]];
    if (i == 2 ? l->kind != DEP_FIXED : l->kind != DEP_TOKEN || l->dim != 1 || l->inner != 1) return AIT_OK;
  }
  if (!ait_dim_is_const(g, g->values[in[2]].shape[0], &heads) || !ait_dim_is_const(g, g->values[in[2]].shape[1], &size)) return AIT_OK;
  const entry entries[5] = {{in[0], heads, 1}, {in[1], heads, 0}, {in[2], 0, 0}, {in[3], 1, size}, {in[4], 1, size}};
  const int64_t sizes[4] = {0, heads, 1, size};
  const uint32_t operands[4] = {in[0], in[1], in[3], in[4]};
  ait_arg shape[AIT_MAX_RANK];
  AIT_TRY(dep_find_group(w, AIT_LM_SLOTS, 0, &group));
  snprintf(name, sizeof name, "state.%u.scan", w->layers++);
  AIT_TRY(dep_add_state(w, name, group, AIT_F32, 4, sizes, &state));
  w->groups[group].layers++;
  for (int i = 0; i < 5; ++i)
    if (i != 2) AIT_TRY(rows_of(w, &r, &entries[i], &in[i]));
  AIT_TRY(AIT_EMIT(&r, &y, "cached_scan", ait_arg_value(in[0]), ait_arg_value(in[1]), ait_arg_value(in[2]), ait_arg_value(in[3]),
                   ait_arg_value(in[4]), ait_arg_value(w->sequences), ait_arg_value(state)));
  if (!ait_shape_args(g, n->results[0], shape)) return ait_error(AIT_CODE_INTERNAL, "the shape of a scan is not known");
  AIT_TRY(AIT_EMIT(&r, &y, "reshape", ait_arg_value(y), ait_arg_list(shape, 3)));
  AIT_TRY(dep_prove(w, n->results[0], y, operands, 4, 0, 0, out_matched));
  if (!*out_matched) return AIT_OK;
  AIT_TRY(ait_replace_value(g, n->results[0], y));
  for (const ait_node *m = before ? before->next : g->first; m != n; m = m->next) AIT_TRY(dep_label_node(w, m));
  return AIT_OK;
}
