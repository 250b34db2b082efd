/* What a mask is, found by evaluating it: causal, causal within a window, plus a bias that is linear in the distance. Nothing else is
 * taken. */
#include "deploy/internal.h"
#include <math.h>
#include <stdio.h>

enum { MAX_CANDIDATES = 12, LONGEST = 8192 };
static const double MASKED = -1e30;

/* ---- lengths at which something may change: small ones, and just beyond each integer constant that the mask is made of ----------------*/
typedef struct lengths {
  int64_t at[MAX_CANDIDATES + 4];
  uint32_t count;
  int64_t most; /* of a sequence */
} lengths;

static void add_length(lengths *l, int64_t n) {
  if (n > l->most && n < l->most + 8) n = l->most;
  if (n < 2 || n > LONGEST || n > l->most) return;
  for (uint32_t i = 0; i < l->count; ++i)
    if (l->at[i] == n) return;
  if (l->count < AIT_COUNT(l->at)) l->at[l->count++] = n;
}

static void constants_of_arg(const ait_arg *a, lengths *l) {
  if (a->kind == AIT_ARG_INT && a->as.i > 1 && a->as.i < INT32_MAX) add_length(l, a->as.i + 3);
  if (a->kind == AIT_ARG_INT && a->as.i < -1 && a->as.i > -LONGEST) add_length(l, 3 - a->as.i);
  if (a->kind == AIT_ARG_FLOAT && fabs(a->as.f) > 1 && fabs(a->as.f) < LONGEST) add_length(l, (int64_t)fabs(a->as.f) + 3);
}

typedef struct walk {
  dep_work *w;
  lengths *l;
  uint8_t *seen;
  uint32_t *stack;
  size_t count, capacity;
  ait_status status;
} walk;

static void push(void *ctx, uint32_t v) {
  walk *k = ctx;
  double number;
  if (k->status || k->seen[v]) return;
  k->seen[v] = 1;
  if (ait_scalar_constant(k->w->g, v, &number)) {
    ait_arg a = ait_arg_float(number);
    constants_of_arg(&a, k->l);
  }
  void *stack = k->stack;
  k->status = ait_grow(k->w->a, &stack, &k->capacity, k->count + 1, sizeof *k->stack);
  if (!k->status) k->stack = stack, k->stack[k->count++] = v;
}

static ait_status find_lengths(dep_work *w, const uint32_t *terms, uint32_t count, lengths *l) {
  walk k = {.w = w, .l = l, .seen = ait_alloc_zero(w->a, w->g->value_count + 1, 1)};
  if (!k.seen) return AIT_OOM();
  add_length(l, 2), add_length(l, 5), add_length(l, 12);
  for (uint32_t i = 0; i < count; ++i) push(&k, terms[i]);
  while (k.count && !k.status) {
    const ait_node *n = w->g->values[k.stack[--k.count]].def;
    for (uint32_t i = 0; n && i < n->arg_count; ++i) constants_of_arg(&n->args[i], l);
    if (n) ait_node_each_operand(n, push, &k);
  }
  ait_free(w->a, k.stack, k.capacity * sizeof *k.stack);
  ait_free(w->a, k.seen, w->g->value_count + 1);
  return k.status;
}

/* ---- one length -----------------------------------------------------------------------------------------------------------------------*/
typedef struct grid {
  int64_t length, heads;
  float *bias; /* [heads, length, length]; -INFINITY: masked */
  size_t bytes;
} grid;

/* Term t over [heads, q, k]; leading dims are heads, in order. */
static bool add_term(grid *m, const ait_tensor *t, int kind, double factor) {
  int64_t heads = 1, n = m->length;
  int32_t lead = t->rank - 2;
  if (lead < 0 || (t->shape[lead] != 1 && t->shape[lead] != n) || (t->shape[lead + 1] != 1 && t->shape[lead + 1] != n)) return false;
  for (int32_t d = 0; d < lead; ++d) heads *= t->shape[d];
  if (heads != 1 && heads != m->heads) return false;
  for (int64_t h = 0; h < m->heads; ++h) {
    int64_t rest = heads == 1 ? 0 : h, index[AIT_MAX_RANK] = {0};
    for (int32_t d = lead - 1; d >= 0; --d) index[d] = rest % t->shape[d], rest /= t->shape[d];
    const char *base = ait_ref_at(t, index);
    size_t size = ait_dtype_size(t->dtype);
    int64_t row = t->shape[lead] == 1 ? 0 : t->strides[lead], column = t->shape[lead + 1] == 1 ? 0 : t->strides[lead + 1];
    for (int64_t q = 0; q < n; ++q)
      for (int64_t k = 0; k < n; ++k) {
        double v = ait_element_f64(base + (q * row + k * column) * (int64_t)size, t->dtype);
        if (kind == 0) v *= factor;
        float *cell = &m->bias[(h * n + q) * n + k];
        bool masked = kind == 1 ? v == 0 : kind == 2 ? v != 0 : v <= MASKED;
        if (isnan(v)) return false;
        *cell = masked ? -INFINITY : kind == 0 ? *cell + (float)v : *cell;
      }
  }
  return true;
}

static int64_t heads_of(const dep_work *w, const uint32_t *terms, uint32_t count) {
  int64_t most = 1;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_value_info *v = &w->g->values[terms[i]];
    int64_t heads = 1, size;
    for (int32_t d = 0; d < v->rank - 2; ++d)
      if (ait_dim_is_const(w->g, v->shape[d], &size)) heads *= size;
    if (heads > most) most = heads;
  }
  return most;
}

static ait_status evaluate(dep_work *w, const uint32_t *terms, const bool *kinds, const double *factors, uint32_t count, bool causal,
                           grid *m, bool *good) {
  dep_eval e;
  size_t cells;
  *good = true;
  if (ait_mul_overflows((size_t)m->heads, (size_t)(m->length * m->length), &cells)) return AIT_OOM();
  m->bytes = cells * sizeof *m->bias;
  m->bias = ait_alloc_zero(w->a, m->bytes, 64);
  if (!m->bias) return AIT_OOM();
  AIT_TRY(dep_eval_begin(w->g, w->a, false, &e));
  dep_eval_size(&e, w->tokens_name, m->length);
  ait_status status = AIT_OK;
  for (uint32_t i = 0; i < count && !status && *good; ++i) {
    ait_tensor t;
    status = dep_eval_run(&e, terms[i], &t);
    int kind = w->g->values[terms[i]].dtype == AIT_BOOL ? (kinds[i] ? 1 : 2) : 0;
    if (!status) *good = add_term(m, &t, kind, factors[i]);
  }
  dep_eval_end(&e);
  for (int64_t h = 0; causal && h < m->heads; ++h)
    for (int64_t q = 0; q < m->length; ++q)
      for (int64_t k = q + 1; k < m->length; ++k) m->bias[(h * m->length + q) * m->length + k] = -INFINITY;
  return status;
}

/* ---- what it is -----------------------------------------------------------------------------------------------------------------------*/
static bool allowed(int64_t q, int64_t k, int64_t window) { return k <= q && (!window || k > q - window); }

static bool check_shape(const grid *m, int64_t window, char why[160]) {
  for (int64_t h = 0; h < m->heads; ++h)
    for (int64_t q = 0; q < m->length; ++q)
      for (int64_t k = 0; k < m->length; ++k) {
        bool seen = m->bias[(h * m->length + q) * m->length + k] != -INFINITY;
        if (seen == allowed(q, k, window)) continue;
        snprintf(why, 160, "its mask is not causal%s: at length %d query %d %s key %d", window ? " within a window" : "", (int)m->length,
                 (int)q, seen ? "sees" : "does not see", (int)k);
        return false;
      }
  return true;
}

static bool check_bias(const grid *m, int64_t window, const double *slopes, char why[160]) {
  for (int64_t h = 0; h < m->heads; ++h)
    for (int64_t q = 0; q < m->length; ++q) {
      const float *row = &m->bias[(h * m->length + q) * m->length];
      for (int64_t k = 0; k <= q; ++k) {
        if (!allowed(q, k, window)) continue;
        double want = slopes[h] * (double)(k - q), got = (double)row[k] - (double)row[q];
        if (fabs(want - got) <= 1e-6 + 2e-6 * (fabs(want) + fabs((double)row[q]) + fabs((double)row[k]))) continue;
        snprintf(why, 160, "its mask adds a bias that is not linear in the distance (head %d, query %d, key %d: %g)", (int)h, (int)q,
                 (int)k, (double)row[k]);
        return false;
      }
    }
  return true;
}

/* Keys that the last query sees, when fewer than all. */
static int64_t window_of(const grid *m) {
  int64_t n = m->length, seen = 0;
  for (int64_t k = n - 1; k >= 0 && m->bias[(n - 1) * n + k] != -INFINITY; --k) ++seen;
  return seen < n ? seen : 0;
}

static ait_status judge(dep_work *w, dep_mask_memo *memo, const uint32_t *terms, const bool *kinds, const double *factors, uint32_t count,
                        bool causal) {
  lengths l = {.most = w->max_seq};
  AIT_TRY(find_lengths(w, terms, count, &l));
  for (uint32_t i = 0; i + 1 < l.count; ++i) /* longest first: it shows the window */
    for (uint32_t j = i + 1; j < l.count; ++j)
      if (l.at[j] > l.at[i]) {
        int64_t t = l.at[i];
        l.at[i] = l.at[j], l.at[j] = t;
      }
  memo->heads = heads_of(w, terms, count);
  memo->slopes = AIT_ARENA_ARRAY(&w->arena, double, (size_t)memo->heads);
  if (!memo->slopes) return AIT_OOM();
  memo->good = true;
  for (uint32_t i = 0; i < l.count && memo->good; ++i) {
    grid m = {.length = l.at[i], .heads = memo->heads};
    if (memo->heads > 1 && m.length > 1024) m.length = 1024; /* biases of heads: memory */
    ait_status status = evaluate(w, terms, kinds, factors, count, causal, &m, &memo->good);
    if (!memo->good) snprintf(memo->why, sizeof memo->why, "its mask has a shape that is not understood");
    if (!status && memo->good && i == 0) {
      memo->window = window_of(&m);
      for (int64_t h = 0, n = m.length; h < m.heads; ++h) {
        const float *last = &m.bias[(h * n + n - 1) * n];
        double step = memo->window == 1 ? 0 : (double)last[n - 1] - (double)last[n - 2];
        memo->slopes[h] = isfinite(step) ? step : 0;
      }
    }
    memo->good = memo->good && !status && check_shape(&m, memo->window, memo->why) && check_bias(&m, memo->window, memo->slopes, memo->why);
    ait_free(w->a, m.bias, m.bytes);
    AIT_TRY(status);
  }
  return AIT_OK;
}

ait_status dep_read_mask(dep_work *w, const uint32_t *terms, const bool *kinds, const double *factors, uint32_t count, bool causal,
                         dep_mask_memo **out) {
  for (size_t i = 0; i < w->mask_count; ++i) {
    dep_mask_memo *m = &w->masks[i];
    if (m->count == count && m->causal == causal && !memcmp(m->terms, terms, count * sizeof *terms) &&
        !memcmp(m->kinds, kinds, count * sizeof *kinds) && !memcmp(m->factors, factors, count * sizeof *factors)) {
      *out = m;
      return AIT_OK;
    }
  }
  void *masks = w->masks;
  AIT_TRY(ait_grow(w->a, &masks, &w->mask_capacity, w->mask_count + 1, sizeof *w->masks));
  w->masks = masks;
  dep_mask_memo *m = *out = &w->masks[w->mask_count++];
  *m = (dep_mask_memo){.count = count, .causal = causal};
  memcpy(m->terms, terms, count * sizeof *terms);
  memcpy(m->kinds, kinds, count * sizeof *kinds);
  memcpy(m->factors, factors, count * sizeof *factors);
  return judge(w, m, terms, kinds, factors, count, causal);
}
