/* softmax(q k^T * scale + mask) v becomes one attention node. The mask stays an operand, whole: it is never recognised away. The fused
 * operator gives zeros for a row in which every key is masked by minus infinity where the spelled-out graph gives NaN, so a mask is taken
 * only when it is proven finite. Declined with a note otherwise. */
#include "passes/rewrite.h"
#include <math.h>

enum { PROOF_DEPTH = 24 };

typedef struct found {
  uint32_t q, k_transposed, v;
  double scale;
  uint32_t mask;         /* additive, or AIT_NO_INDEX */
  const ait_node *where; /* the mask is where(cond, scores, fill): cond and fill */
} found;

/* ---- is it finite? -----------------------------------------------------------------------------------------------------------------
 * Interval arithmetic over the operators that masks are made of. */
typedef struct interval {
  double low, high;
} interval;

static bool prove(const ait_graph *g, uint32_t v, int depth, interval *out);

static bool prove_arg(const ait_graph *g, const ait_arg *a, int depth, interval *out) {
  double number;
  if (ait_arg_is_tensor(g, a)) return prove(g, a->as.value, depth + 1, out);
  if (!ait_arg_as_number(g, a, &number)) return false;
  *out = (interval){number, number};
  return isfinite(number);
}

static bool prove_constant(const ait_graph *g, uint32_t v, interval *out) {
  ait_tensor t, wide;
  if (!ait_constant_tensor(g, v, &t) || ait_dtype_is_complex(t.dtype)) return false;
  ait_status status = ait_tensor_cast(g->allocator, &t, AIT_F64, &wide);
  if (status != AIT_OK) {
    ait_status_ignore(status);
    return false;
  }
  *out = (interval){INFINITY, -INFINITY};
  bool finite = true;
  for (int64_t i = 0, n = ait_tensor_count(&wide); i < n; ++i) {
    double x = ((double *)wide.data)[i];
    finite &= isfinite(x);
    out->low = fmin(out->low, x);
    out->high = fmax(out->high, x);
  }
  bool any = ait_tensor_count(&wide) > 0;
  ait_tensor_release(&wide);
  return finite && any;
}

static bool combine(const char *op, interval a, interval b, interval *out) {
  if (!strcmp(op, "add")) *out = (interval){a.low + b.low, a.high + b.high};
  else if (!strcmp(op, "sub")) *out = (interval){a.low - b.high, a.high - b.low};
  else if (!strcmp(op, "mul")) {
    double p[4] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
    *out = (interval){fmin(fmin(p[0], p[1]), fmin(p[2], p[3])), fmax(fmax(p[0], p[1]), fmax(p[2], p[3]))};
  } else if (!strcmp(op, "maximum")) *out = (interval){fmax(a.low, b.low), fmax(a.high, b.high)};
  else if (!strcmp(op, "minimum")) *out = (interval){fmin(a.low, b.low), fmin(a.high, b.high)};
  else return false;
  return fabs(out->low) <= 3.4028234663852886e38 && fabs(out->high) <= 3.4028234663852886e38;
}

static bool prove(const ait_graph *g, uint32_t v, int depth, interval *out) {
  const ait_value_info *info = &g->values[v];
  const ait_node *n = info->def;
  if (depth > PROOF_DEPTH) return false;
  if (info->dtype == AIT_BOOL) return *out = (interval){0, 1}, true;
  if (!n) return prove_constant(g, v, out);
  static const char *const same[] = {"reshape", "expand", "permute", "slice", "select", "cast", "flip"};
  for (size_t i = 0; i < AIT_COUNT(same); ++i)
    if (!strcmp(n->op->name, same[i])) return prove(g, n->args[0].as.value, depth + 1, out);
  if (!strcmp(n->op->name, "full")) return prove_arg(g, &n->args[1], depth, out);
  interval a, b;
  if (!strcmp(n->op->name, "where")) {
    if (!prove_arg(g, &n->args[1], depth, &a) || !prove_arg(g, &n->args[2], depth, &b)) return false;
    *out = (interval){fmin(a.low, b.low), fmax(a.high, b.high)};
    return true;
  }
  if (n->arg_count < 2) return false;
  return prove_arg(g, &n->args[0], depth, &a) && prove_arg(g, &n->args[1], depth, &b) && combine(n->op->name, a, b, out);
}

/* ---- matching --------------------------------------------------------------------------------------------------------------------*/
static ait_node *def(const ait_graph *g, const ait_arg *a, const char *op) {
  return ait_arg_is_tensor(g, a) ? ait_def_of(g, a->as.value, op) : NULL;
}

/* matmul(q, kT), times or divided by a number. */
static bool match_scores(const ait_graph *g, const ait_arg *a, found *f) {
  double number;
  ait_node *n = def(g, a, "mul"), *d = def(g, a, "div");
  f->scale = 1;
  if (n && ait_arg_as_number(g, &n->args[1], &number)) f->scale = number, a = &n->args[0];
  else if (n && ait_arg_is_tensor(g, &n->args[1]) && ait_scalar_constant(g, n->args[1].as.value, &number))
    f->scale = number, a = &n->args[0];
  else if (d && ait_arg_as_number(g, &d->args[1], &number) && number != 0) f->scale = 1 / number, a = &d->args[0];
  else if (d && ait_arg_is_tensor(g, &d->args[1]) && ait_scalar_constant(g, d->args[1].as.value, &number) && number != 0)
    f->scale = 1 / number, a = &d->args[0];
  ait_node *m = def(g, a, "matmul");
  if (!m) return false;
  f->q = m->args[0].as.value;
  f->k_transposed = m->args[1].as.value;
  return true;
}

static bool match_masked_scores(const ait_graph *g, const ait_arg *a, found *f) {
  f->mask = AIT_NO_INDEX;
  if (match_scores(g, a, f)) return true;
  ait_node *add = def(g, a, "add"), *where = def(g, a, "where");
  for (int i = 0; add && i < 2; ++i)
    if (ait_arg_is_tensor(g, &add->args[1 - i]) && match_scores(g, &add->args[i], f)) {
      f->mask = add->args[1 - i].as.value;
      return true;
    }
  f->where = where;
  return where && match_scores(g, &where->args[1], f);
}

static bool four_dimensional(const ait_graph *g, uint32_t v) { return g->values[v].rank == 4 && ait_shape_known(g, &g->values[v]); }

static ait_status emit_attention(const ait_rewrite *w, const found *f, uint32_t *out) {
  static const int64_t order[4] = {0, 1, 3, 2};
  ait_arg swap[4], mask = ait_arg_none();
  uint32_t k, m;
  for (int i = 0; i < 4; ++i) swap[i] = ait_arg_int(order[i]);
  AIT_TRY(AIT_EMIT(w, &k, "permute", ait_arg_value(f->k_transposed), ait_arg_list(swap, 4)));
  if (f->mask != AIT_NO_INDEX) mask = ait_arg_value(f->mask);
  if (f->where) { /* scores where cond, fill elsewhere: 0 and fill added, since fill is so large that the score vanishes in it */
    AIT_TRY(AIT_EMIT(w, &m, "full", ait_arg_list(NULL, 0), ait_arg_float(0), ait_arg_dtype(w->graph->values[f->q].dtype)));
    AIT_TRY(AIT_EMIT(w, &m, "where", f->where->args[0], ait_arg_value(m), f->where->args[2]));
    mask = ait_arg_value(m);
  }
  return AIT_EMIT(w, out, "attention", ait_arg_value(f->q), ait_arg_value(k), ait_arg_value(f->v), mask, ait_arg_bool(false),
                  ait_arg_float(f->scale));
}

/* In where(cond, scores, fill): fill must be finite, and so large that adding a score to it leaves it. */
static bool fill_absorbs(const ait_graph *g, const ait_node *where) {
  interval fill;
  return prove_arg(g, &where->args[2], 0, &fill) && fill.high <= -1e30;
}

static ait_status try_attention(ait_graph *g, const ait_pass_context *context, ait_node *n, bool *changed) {
  found f = {.mask = AIT_NO_INDEX};
  interval range;
  ait_node *softmax = def(g, &n->args[0], "softmax");
  int64_t dim;
  if (!softmax || !ait_arg_is_tensor(g, &n->args[1]) || !ait_arg_as_int(g, &softmax->args[1], &dim) ||
      !ait_wrap_dim(&dim, g->values[softmax->results[0]].rank))
    return AIT_OK;
  if (dim != g->values[softmax->results[0]].rank - 1 || !match_masked_scores(g, &softmax->args[0], &f)) return AIT_OK;
  f.v = n->args[1].as.value;
  ait_rewrite w = ait_rewrite_at(g, context, n);
  if (!four_dimensional(g, f.q) || !four_dimensional(g, f.k_transposed) || !four_dimensional(g, f.v)) {
    ait_note(&w, "attention", "attention-rank", "q, k and v are not four-dimensional with known sizes");
    return AIT_OK;
  }
  for (int i = 0; i < 2; ++i) /* batch and heads must agree: matmul would broadcast them */
    if (g->values[f.q].shape[i] != g->values[f.k_transposed].shape[i] || g->values[f.q].shape[i] != g->values[f.v].shape[i]) return AIT_OK;
  if (f.where ? !fill_absorbs(g, f.where) : f.mask != AIT_NO_INDEX && !prove(g, f.mask, 0, &range)) {
    ait_note(&w, "attention", "attention-mask-unproven",
             "the mask may be minus infinity for a whole row, which the fused operator treats otherwise");
    return AIT_OK;
  }
  uint32_t out;
  AIT_TRY(emit_attention(&w, &f, &out));
  if (g->values[out].dtype != g->values[n->results[0]].dtype || !ait_same_shape(&g->values[out], &g->values[n->results[0]])) {
    ait_graph_remove_node(g, g->values[out].def);
    return AIT_OK;
  }
  ait_note(&w, "attention", "matched", "scaled dot-product attention");
  AIT_TRY(ait_replace_value(g, n->results[0], out));
  ait_graph_remove_node(g, n);
  *changed = true;
  return AIT_OK;
}

ait_status ait_pass_attention(ait_graph *g, const ait_pass_context *context, bool *changed) {
  if (g->dialect != AIT_DIALECT_CORE) return AIT_OK;
  for (ait_node *n = g->first, *next; n; n = next) {
    next = n->next;
    if (!strcmp(n->op->name, "matmul")) AIT_TRY(try_attention(g, context, n, changed));
  }
  return AIT_OK;
}
