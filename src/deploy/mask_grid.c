/* A mask evaluated at pairs of positions: all of a short sequence, or a few of a long one where every value is a function of the two
 * positions alone. */
#include "deploy/internal.h"
#include <math.h>

/* Added numbers at or below the first are minus infinity to a softmax. Numbers at or below the second are when they are all the same, as
 * -10000 is; a bias that falls with the distance passes it in a long sequence. */
static const double MASKED = -1e8, PERHAPS_MASKED = -9999;

/* ---- down to the values of one position
 * -------------------------------------------------------------------------------------------------*/
typedef struct search {
  dep_work *w;
  uint8_t *seen;
  uint32_t *stack;
  size_t count, capacity;
  bool good;
  dep_eval *give, *longest; /* values of one position get what they are in the longest sequence at the grid's positions */
  const dep_grid *grid;
  ait_status status;
} search;

static void push(void *ctx, uint32_t v) {
  search *s = ctx;
  if (s->status || s->seen[v]) return;
  s->seen[v] = 1;
  void *stack = s->stack;
  s->status = ait_grow(s->w->a, &stack, &s->capacity, s->count + 1, sizeof *s->stack);
  if (!s->status) s->stack = stack, s->stack[s->count++] = v;
}

static bool is_length(const dep_work *w, const ait_arg *a) {
  if (a->kind != AIT_ARG_DIM) return false;
  const ait_dim_expr *e = &w->g->dims[a->as.dim];
  return e->op == AIT_DIM_SYMBOL && !strcmp(w->g->symbols[e->a].name, w->tokens_name);
}

/* How many dimensions are T; -1: some size is neither T nor a number. *dim: the last one. */
static int32_t count_lengths(const dep_work *w, uint32_t v, int32_t *dim) {
  const ait_value_info *info = &w->g->values[v];
  int32_t lengths = 0;
  int64_t size;
  *dim = -1;
  for (int32_t d = 0; d < info->rank; ++d) {
    ait_arg a = ait_dim_as_arg(w->g, info->shape[d]);
    if (is_length(w, &a)) ++lengths, *dim = d;
    else if (!ait_dim_is_const(w->g, info->shape[d], &size)) return -1;
  }
  return lengths;
}

/* Only dimensions of one element come and go. */
static bool keeps_order(const ait_graph *g, const ait_node *n) {
  const ait_value_info *a = &g->values[n->args[0].as.value], *b = &g->values[n->results[0]];
  int32_t i = 0, k = 0;
  int64_t size;
  for (;;) {
    while (i < a->rank && ait_dim_is_const(g, a->shape[i], &size) && size == 1) ++i;
    while (k < b->rank && ait_dim_is_const(g, b->shape[k], &size) && size == 1) ++k;
    if (i == a->rank || k == b->rank) return i == a->rank && k == b->rank;
    if (a->shape[i++] != b->shape[k++]) return false;
  }
}

static bool reads_numbers_of_sizes(const dep_work *w, const ait_node *n) {
  for (uint32_t i = 0; i < n->arg_count; ++i) {
    const ait_arg *a = &n->args[i];
    if (a->kind == AIT_ARG_DIM || (a->kind == AIT_ARG_VALUE && w->g->values[a->as.value].type != AIT_TYPE_TENSOR)) return true;
  }
  return false;
}

/* Element by element in the positions. */
static bool is_local(const dep_work *w, const ait_node *n) {
  const char *op = n->op->name;
  double number;
  if (n->op->traits & AIT_OP_POINTWISE) return !reads_numbers_of_sizes(w, n);
  if (!strcmp(op, "expand") || !strcmp(op, "permute")) return true;
  if (!strcmp(op, "reshape")) return keeps_order(w->g, n);
  if (!strcmp(op, "full")) return ait_arg_as_number(w->g, &n->args[1], &number);
  bool looks_up = !strcmp(op, "index") || !strcmp(op, "embedding");
  return looks_up && w->labels[n->args[0].as.value].kind == DEP_FIXED;
}

/* The value in the longest sequence, at the grid's positions along dim; whole where dim is -1. */
static ait_status give(search *s, uint32_t v, int32_t dim) {
  ait_tensor all, some;
  int64_t shape[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0}, from[AIT_MAX_RANK];
  AIT_TRY(dep_eval_run(s->longest, v, &all));
  memcpy(shape, all.shape, sizeof shape);
  if (dim >= 0) shape[dim] = s->grid->points;
  AIT_TRY(ait_tensor_create(s->w->a, all.dtype, all.rank, shape, &some));
  size_t size = ait_dtype_size(all.dtype), at = 0;
  if (ait_tensor_count(&some) > 0) do {
      memcpy(from, index, sizeof from);
      if (dim >= 0) from[dim] = s->grid->at[index[dim]];
      memcpy((char *)some.data + size * at++, ait_ref_at(&all, from), size);
    } while (ait_ref_next(some.rank, shape, index));
  ait_status status = dep_eval_give(s->give, v, &some);
  ait_tensor_release(&some);
  return status;
}

static ait_status visit(search *s, uint32_t v) {
  const ait_node *n = s->w->g->values[v].def;
  int32_t dim, lengths;
  if (!n || s->w->labels[v].kind == DEP_FIXED) return AIT_OK;
  if (s->w->g->values[v].type != AIT_TYPE_TENSOR || s->w->labels[v].kind != DEP_SIZED || (lengths = count_lengths(s->w, v, &dim)) < 0)
    return s->good = false, AIT_OK;
  if (lengths <= 1) return s->give ? give(s, v, dim) : AIT_OK;
  s->good = is_local(s->w, n);
  if (s->good) ait_node_each_operand(n, push, s);
  return AIT_OK;
}

static ait_status walk(search *s, const dep_term *terms, uint32_t count) {
  s->seen = ait_alloc_zero(s->w->a, s->w->g->value_count + 1, 1);
  if (!s->seen) return AIT_OOM();
  s->good = true;
  for (uint32_t i = 0; i < count; ++i) push(s, terms[i].value);
  while (s->count && s->good && !s->status) s->status = visit(s, s->stack[--s->count]);
  ait_free(s->w->a, s->stack, s->capacity * sizeof *s->stack);
  ait_free(s->w->a, s->seen, s->w->g->value_count + 1);
  return s->status;
}

ait_status dep_grid_can_sample(dep_work *w, const dep_term *terms, uint32_t count, bool *out) {
  search s = {.w = w};
  AIT_TRY(walk(&s, terms, count));
  *out = s.good;
  return AIT_OK;
}

static ait_status give_positions(dep_work *w, dep_eval *e, const dep_term *terms, uint32_t count, const dep_grid *m) {
  dep_eval longest;
  AIT_TRY(dep_eval_begin(w->g, w->a, false, &longest));
  dep_eval_size(&longest, w->tokens_name, w->max_seq);
  search s = {.w = w, .give = e, .longest = &longest, .grid = m};
  ait_status status = walk(&s, terms, count);
  dep_eval_end(&longest);
  return status;
}

/* ---- values ---------------------------------------------------------------------------------------------------------------------------*/
/* Number below which what is added hides a key. */
static double threshold(const ait_tensor *t, double factor) {
  int64_t index[AIT_MAX_RANK] = {0};
  double first = 0;
  if (!ait_tensor_count(t)) return MASKED;
  do {
    double v = factor * ait_element_f64(ait_ref_at(t, index), t->dtype);
    if (!(v <= PERHAPS_MASKED) || v <= MASKED) continue;
    if (first == 0) first = v;
    if (fabs(v - first) > 1e-6 * fabs(first)) return MASKED;
  } while (ait_ref_next(t->rank, t->shape, index));
  return PERHAPS_MASKED;
}

/* *cell: the sum so far; false: the value is not one that this role has. */
static bool put(float *cell, double v, dep_term_role role, bool truth, double factor, double masked) {
  if (isnan(v)) return false;
  if (role == DEP_TERM_UNIT) return *cell == -INFINITY || v == 1;
  if (role == DEP_TERM_GATE && v != 0 && v != 1) return false;
  bool hides = role == DEP_TERM_GATE ? v == 0 : truth ? (v == 0) == (role == DEP_TERM_KEEPS) : factor * v <= masked;
  if (hides) *cell = -INFINITY;
  else if (!truth && role != DEP_TERM_GATE) *cell += (float)(factor * v);
  return true;
}

/* The term over [heads, queries, keys]; leading dims are heads, in order. */
static bool add_term(dep_grid *m, const ait_tensor *t, const dep_term *term) {
  int64_t heads = 1, n = m->points;
  int32_t lead = t->rank - 2;
  if (lead < 0 || (t->shape[lead] != 1 && t->shape[lead] != n) || (t->shape[lead + 1] != 1 && t->shape[lead + 1] != n)) return false;
  for (int32_t d = 0; d < lead; ++d) heads *= t->shape[d];
  if (heads != 1 && heads != m->heads) return false;
  bool truth = t->dtype == AIT_BOOL;
  double factor = term->role == DEP_TERM_UNIT || term->role == DEP_TERM_GATE ? 1 : term->factor, masked = threshold(t, factor);
  for (int64_t h = 0; h < m->heads; ++h) {
    int64_t rest = heads == 1 ? 0 : h, index[AIT_MAX_RANK] = {0};
    for (int32_t d = lead - 1; d >= 0; --d) index[d] = rest % t->shape[d], rest /= t->shape[d];
    const char *base = ait_ref_at(t, index);
    int64_t row = t->shape[lead] == 1 ? 0 : t->strides[lead], column = t->shape[lead + 1] == 1 ? 0 : t->strides[lead + 1];
    for (int64_t q = 0; q < n; ++q)
      for (int64_t k = 0; k < n; ++k) {
        double v = ait_element_f64(base + (q * row + k * column) * (int64_t)ait_dtype_size(t->dtype), t->dtype);
        if (!put(&m->bias[(h * n + q) * n + k], v, term->role, truth, factor, masked)) return false;
      }
  }
  return true;
}

static void hide_future(dep_grid *m) {
  for (int64_t h = 0; h < m->heads; ++h)
    for (int64_t q = 0; q < m->points; ++q)
      for (int64_t k = q + 1; k < m->points; ++k) m->bias[(h * m->points + q) * m->points + k] = -INFINITY;
}

static ait_status add_terms(dep_work *w, dep_eval *e, const dep_term *terms, uint32_t count, bool unit, dep_grid *m, bool *good) {
  for (uint32_t i = 0; i < count && *good; ++i) {
    ait_tensor t;
    if ((terms[i].role == DEP_TERM_UNIT) != unit) continue;
    AIT_TRY(dep_eval_run(e, terms[i].value, &t));
    *good = add_term(m, &t, &terms[i]);
  }
  AIT_UNUSED(w);
  return AIT_OK;
}

ait_status dep_grid_fill(dep_work *w, const dep_term *terms, uint32_t count, bool causal, dep_grid *m, bool *good) {
  dep_eval e;
  size_t cells;
  *good = true;
  if (ait_mul_overflows((size_t)m->heads, (size_t)(m->points * m->points), &cells)) return AIT_OOM();
  m->bytes = cells * sizeof *m->bias;
  m->bias = ait_alloc_zero(w->a, m->bytes, 64);
  if (!m->bias) return AIT_OOM();
  AIT_TRY(dep_eval_begin(w->g, w->a, false, &e));
  dep_eval_size(&e, w->tokens_name, m->points);
  ait_status status = m->at ? give_positions(w, &e, terms, count, m) : AIT_OK;
  if (causal) hide_future(m);
  if (!status) status = add_terms(w, &e, terms, count, false, m, good);
  if (!status) status = add_terms(w, &e, terms, count, true, m, good); /* they ask what is hidden */
  dep_eval_end(&e);
  return status;
}

/* ---- triangles ------------------------------------------------------------------------------------------------------------------------*/
static ait_status spell(dep_work *w, ait_node *n, bool lower) {
  ait_graph *g = w->g;
  const ait_value_info *v = &g->values[n->results[0]];
  ait_rewrite r = ait_rewrite_at(g, &w->context, n);
  ait_arg length = ait_dim_as_arg(g, v->shape[v->rank - 1]), column[2] = {length, ait_arg_int(1)};
  ait_arg zero = v->dtype == AIT_BOOL ? ait_arg_bool(false) : ait_dtype_is_float(v->dtype) ? ait_arg_float(0) : ait_arg_int(0);
  uint32_t at, down, apart, seen, fresh;
  AIT_TRY(AIT_EMIT(&r, &at, "arange", ait_arg_int(0), length, ait_arg_int(1), ait_arg_dtype(AIT_I64)));
  AIT_TRY(AIT_EMIT(&r, &down, "reshape", ait_arg_value(at), ait_arg_list(column, 2)));
  AIT_TRY(AIT_EMIT(&r, &apart, "sub", ait_arg_value(at), ait_arg_value(down)));
  AIT_TRY(AIT_EMIT(&r, &seen, lower ? "le" : "ge", ait_arg_value(apart), n->args[1]));
  AIT_TRY(AIT_EMIT(&r, &fresh, "where", ait_arg_value(seen), n->args[0], zero));
  return ait_replace_value(g, n->results[0], fresh);
}

ait_status dep_spell_triangles(dep_work *w) {
  for (ait_node *n = w->g->first, *next; n; n = next) {
    next = n->next;
    bool lower = !strcmp(n->op->name, "tril");
    if (!lower && strcmp(n->op->name, "triu")) continue;
    const ait_value_info *v = &w->g->values[n->results[0]];
    if (v->rank < 2 || n->args[1].kind != AIT_ARG_INT) continue;
    ait_arg rows = ait_dim_as_arg(w->g, v->shape[v->rank - 2]), columns = ait_dim_as_arg(w->g, v->shape[v->rank - 1]);
    if (is_length(w, &rows) && is_length(w, &columns)) AIT_TRY(spell(w, n, lower));
  }
  return AIT_OK;
}
