/* Where the token axis lies. A node is right for a flat batch as it stands when each element of its result depends on one token only; the
 * rules below prove that per operator. What they cannot prove is mixing: a matcher must take it, or deploy refuses. */
#include "deploy/internal.h"

enum { LENGTH = 1000003 }; /* stands for T when shapes are compared: a prime that no model has as a size */

static bool mentions(const ait_graph *g, ait_dim d, const char *symbol, int depth) {
  const ait_dim_expr *e = &g->root->dims[d];
  if (e->op == AIT_DIM_SYMBOL) return !strcmp(g->root->symbols[e->a].name, symbol);
  if (e->op == AIT_DIM_CONST || e->op == AIT_DIM_UNKNOWN || depth > 200) return false;
  return mentions(g, e->a, symbol, depth + 1) || mentions(g, e->b, symbol, depth + 1);
}

bool dep_is_sized_dim(const ait_graph *g, ait_dim d, const char *symbol) { return mentions(g, d, symbol, 0); }

/* The value's sizes with LENGTH for T. */
static bool sizes_of(dep_work *w, uint32_t value, int64_t out[AIT_MAX_RANK]) {
  const ait_graph *g = w->g;
  const ait_value_info *v = &g->values[value];
  int64_t symbols[64];
  if (v->type != AIT_TYPE_TENSOR || v->rank < 0 || v->rank > AIT_MAX_RANK || g->symbol_count > AIT_COUNT(symbols)) return false;
  for (size_t i = 0; i < g->symbol_count; ++i) symbols[i] = strcmp(g->symbols[i].name, w->tokens_name) ? 7 : LENGTH;
  for (int32_t d = 0; d < v->rank; ++d)
    if (!ait_dim_eval(g->dims, symbols, v->shape[d], &out[d])) return false;
  return true;
}

/* ---- what a node reads ----------------------------------------------------------------------------------------------------------------*/
typedef struct operands {
  dep_work *w;
  bool tokens, sized, mixed, scores;
  const dep_label *first_mixed;
} operands;

static void look(void *ctx, uint32_t v) {
  operands *o = ctx;
  const dep_label *l = &o->w->labels[v];
  if (l->kind == DEP_MIXED && !o->mixed) o->first_mixed = l;
  o->mixed |= l->kind == DEP_MIXED;
  o->scores |= l->kind == DEP_SCORES;
  o->tokens |= l->kind == DEP_TOKEN;
  o->sized |= l->kind == DEP_SIZED;
}

static bool arg_is_sized(const dep_work *w, const ait_arg *a) {
  if (a->kind == AIT_ARG_DIM) return dep_is_sized_dim(w->g, a->as.dim, w->tokens_name);
  for (uint32_t i = 0; a->kind == AIT_ARG_LIST && i < a->count; ++i)
    if (arg_is_sized(w, &a->as.list[i])) return true;
  return false;
}

static bool node_is_sized(const dep_work *w, const ait_node *n) {
  for (uint32_t i = 0; i < n->arg_count; ++i)
    if (arg_is_sized(w, &n->args[i])) return true;
  return false;
}

typedef struct rule_call {
  dep_work *w;
  const ait_graph *g;
  const ait_node *n;
  dep_label out; /* of every result */
} rule_call;

static bool mix(rule_call *c, const char *why) {
  c->out = (dep_label){.kind = DEP_MIXED, .node = c->n, .why = why};
  return true;
}
static bool token(rule_call *c, int32_t dim, int64_t inner) {
  c->out = (dep_label){.kind = DEP_TOKEN, .dim = dim, .inner = inner};
  return true;
}
static const ait_arg *arg(const rule_call *c, uint32_t i) { return &c->n->args[i]; }
static bool is_tensor(const rule_call *c, uint32_t i) { return i < c->n->arg_count && ait_arg_is_tensor(c->g, arg(c, i)); }
static const dep_label *label(const rule_call *c, uint32_t i) {
  static const dep_label fixed = {.kind = DEP_FIXED};
  return is_tensor(c, i) ? &c->w->labels[arg(c, i)->as.value] : &fixed;
}
static int32_t rank_of(const rule_call *c, uint32_t i) { return is_tensor(c, i) ? c->g->values[arg(c, i)->as.value].rank : 0; }
static int32_t result_rank(const rule_call *c) { return c->g->values[c->n->results[0]].rank; }
static bool dim_arg(const rule_call *c, uint32_t i, int32_t rank, int64_t *out) {
  return ait_arg_as_int(c->g, arg(c, i), out) && ait_wrap_dim(out, rank);
}

/* A value that depends on sizes beside values of tokens: along which dims of a result of that rank does it vary with the length? Bits. */
static uint32_t sized_dims(const rule_call *c, uint32_t value, int32_t rank) {
  int64_t sizes[AIT_MAX_RANK];
  uint32_t bits = 0;
  const ait_value_info *v = &c->g->values[value];
  if (!sizes_of(c->w, value, sizes)) return UINT32_MAX;
  for (int32_t d = 0; d < v->rank; ++d)
    if (sizes[d] >= LENGTH) bits |= 1u << (rank - v->rank + d);
  return bits;
}

/* ---- element by element, with broadcasting --------------------------------------------------------------------------------------------*/
static bool combine(rule_call *c, dep_label *sum, uint32_t value, int32_t rank) {
  dep_label l = c->w->labels[value];
  int32_t shift = rank - c->g->values[value].rank;
  if (l.kind == DEP_FIXED) return true;
  if (l.kind == DEP_SIZED) return true; /* checked when the sum is known */
  l.dim += shift;
  l.keys += shift;
  if (sum->kind == DEP_FIXED) return *sum = l, true;
  if (sum->kind == DEP_TOKEN && l.kind == DEP_TOKEN) return sum->dim == l.dim && sum->inner == l.inner;
  if (sum->kind == DEP_SCORES && l.kind == DEP_SCORES) return sum->dim == l.dim && sum->keys == l.keys;
  if (sum->kind == DEP_TOKEN) { /* the other is scores: a number for each query */
    dep_label t = *sum;
    *sum = l;
    l = t;
  }
  return l.dim == sum->dim && l.inner == 1;
}

static bool fits_sized(rule_call *c, const dep_label *sum, uint32_t value, int32_t rank) {
  if (c->w->labels[value].kind != DEP_SIZED) return true;
  uint32_t bits = sized_dims(c, value, rank), allowed = 1u << sum->dim;
  if (sum->kind == DEP_SCORES) allowed |= 1u << sum->keys;
  return !(bits & ~allowed);
}

static bool rule_values(rule_call *c, const uint32_t *values, uint32_t count, int32_t rank) {
  dep_label sum = {.kind = DEP_FIXED};
  for (uint32_t i = 0; i < count; ++i)
    if (!combine(c, &sum, values[i], rank)) return mix(c, "operands have their tokens along different dimensions");
  for (uint32_t i = 0; i < count; ++i)
    if (!fits_sized(c, &sum, values[i], rank)) return mix(c, "a value of positions stands across the tokens");
  c->out = sum;
  return true;
}

static bool rule_pointwise(rule_call *c) {
  uint32_t values[8], count = 0;
  for (uint32_t i = 0; i < c->n->arg_count && count < AIT_COUNT(values); ++i)
    if (is_tensor(c, i)) values[count++] = arg(c, i)->as.value;
  return rule_values(c, values, count, result_rank(c));
}

/* ---- along a dimension ----------------------------------------------------------------------------------------------------------------*/
static bool crosses(const dep_label *l, int64_t dim) { return dim == l->dim; }

/* The operator works along `dim` and keeps the shape, up to that dimension's size. */
static bool along(rule_call *c, int64_t dim) {
  const dep_label *l = label(c, 0);
  if (l->kind == DEP_SCORES && dim != l->dim) return c->out = *l, true;
  if (l->kind != DEP_TOKEN) return mix(c, "works on a product of tokens");
  if (crosses(l, dim)) return mix(c, "works along the tokens");
  return token(c, l->dim, l->inner);
}

static bool rule_along_1(rule_call *c) {
  int64_t dim;
  return dim_arg(c, 1, rank_of(c, 0), &dim) ? along(c, dim) : mix(c, "works along an unknown dimension");
}
static bool rule_topk(rule_call *c) {
  int64_t dim;
  return dim_arg(c, 2, rank_of(c, 0), &dim) ? along(c, dim) : mix(c, "works along an unknown dimension");
}

static bool reduced(rule_call *c, uint32_t dims, bool keep) {
  const dep_label *l = label(c, 0);
  int32_t before = 0, before_keys = 0;
  if (l->kind == DEP_MIXED || (dims >> l->dim & 1)) return mix(c, "reduces over the tokens");
  for (int32_t d = 0; d < l->dim; ++d) before += dims >> d & 1;
  for (int32_t d = 0; l->kind == DEP_SCORES && d < l->keys; ++d) before_keys += dims >> d & 1;
  if (keep) before = before_keys = 0;
  c->out = *l;
  c->out.dim -= before;
  c->out.keys -= before_keys;
  if (l->kind == DEP_SCORES && (dims >> l->keys & 1)) return token(c, c->out.dim, 1);
  return true;
}

static bool rule_reduce(rule_call *c) {
  int64_t list[AIT_MAX_RANK];
  uint32_t count, bits = 0, last = c->n->arg_count - 1;
  int32_t rank = rank_of(c, 0);
  if (!ait_arg_as_ints(c->g, arg(c, 1), list, &count)) return mix(c, "reduces over unknown dimensions");
  for (uint32_t i = 0; i < count; ++i)
    if (ait_wrap_dim(&list[i], rank)) bits |= 1u << list[i];
  if (!count) bits = (1u << rank) - 1;
  return reduced(c, bits, ait_arg_flag(arg(c, last)));
}

static bool rule_reduce_1(rule_call *c) { /* argmax, max_dim */
  int64_t dim;
  if (arg(c, 1)->kind == AIT_ARG_NONE || !dim_arg(c, 1, rank_of(c, 0), &dim)) return mix(c, "reduces over all tokens");
  return reduced(c, 1u << dim, ait_arg_flag(arg(c, 2)));
}

/* ---- shapes ---------------------------------------------------------------------------------------------------------------------------*/
static bool find_axis(const int64_t *sizes, int32_t rank, int64_t after, int32_t *dim, int64_t *inner) {
  int64_t below = 1;
  for (int32_t d = rank - 1; d >= 0; below *= sizes[d--]) {
    if (below > after || sizes[d] < LENGTH || after % below) continue;
    *inner = after / below;
    *dim = d;
    return sizes[d] % (*inner * LENGTH) == 0;
  }
  return false;
}

static bool rule_reshape(rule_call *c) {
  const dep_label *l = label(c, 0);
  int64_t old[AIT_MAX_RANK], fresh[AIT_MAX_RANK], after = l->inner;
  int32_t rank = rank_of(c, 0);
  if (!sizes_of(c->w, arg(c, 0)->as.value, old) || !sizes_of(c->w, c->n->results[0], fresh)) return mix(c, "has an unknown shape");
  if (l->kind == DEP_SCORES) { /* dimensions before the two axes only */
    int32_t shift = result_rank(c) - rank;
    for (int32_t d = l->dim < l->keys ? l->dim : l->keys; d < rank; ++d)
      if (d + shift < 0 || fresh[d + shift] != old[d]) return mix(c, "reshapes a product of tokens");
    c->out = *l;
    c->out.dim += shift;
    c->out.keys += shift;
    return true;
  }
  for (int32_t d = l->dim + 1; d < rank; ++d) after *= old[d];
  int32_t dim;
  int64_t inner;
  if (!find_axis(fresh, result_rank(c), after, &dim, &inner)) return mix(c, "splits or merges the token axis");
  return token(c, dim, inner);
}

static bool rule_permute(rule_call *c) {
  const dep_label *l = label(c, 0);
  int64_t list[AIT_MAX_RANK];
  uint32_t count;
  if (!ait_arg_as_ints(c->g, arg(c, 1), list, &count)) return mix(c, "permutes unknown dimensions");
  c->out = *l;
  for (uint32_t i = 0; i < count; ++i) {
    if (!ait_wrap_dim(&list[i], (int32_t)count)) return mix(c, "permutes unknown dimensions");
    if (list[i] == l->dim) c->out.dim = (int32_t)i;
    if (l->kind == DEP_SCORES && list[i] == l->keys) c->out.keys = (int32_t)i;
  }
  return true;
}

static bool rule_expand(rule_call *c) {
  int32_t shift = result_rank(c) - rank_of(c, 0);
  c->out = *label(c, 0);
  c->out.dim += shift;
  c->out.keys += shift;
  return true;
}

static bool rule_select(rule_call *c) {
  int64_t dim;
  const dep_label *l = label(c, 0);
  if (!dim_arg(c, 1, rank_of(c, 0), &dim)) return mix(c, "selects along an unknown dimension");
  if (l->kind == DEP_SCORES ? dim == l->dim || dim == l->keys : dim == l->dim) return mix(c, "selects one token");
  c->out = *l;
  c->out.dim -= dim < l->dim;
  c->out.keys -= dim < l->keys;
  return true;
}

static bool rule_cat(rule_call *c) {
  uint32_t values[32], count = 0;
  const ait_arg *list = arg(c, 0);
  int64_t dim;
  int32_t rank = result_rank(c);
  if (list->kind != AIT_ARG_LIST || list->count > AIT_COUNT(values) || !dim_arg(c, 1, rank, &dim)) return mix(c, "joins unknown parts");
  for (uint32_t i = 0; i < list->count; ++i)
    if (ait_arg_is_tensor(c->g, &list->as.list[i])) values[count++] = list->as.list[i].as.value;
  rule_values(c, values, count, rank);
  if (c->out.kind == DEP_TOKEN && dim == c->out.dim) return mix(c, "joins along the tokens");
  return true;
}

static bool rule_pad(rule_call *c) { /* pads: pairs from the last dimension on */
  const dep_label *l = label(c, 0);
  int64_t pads[2 * AIT_MAX_RANK];
  const ait_arg *list = arg(c, 1);
  if (l->kind != DEP_TOKEN || list->kind != AIT_ARG_LIST || list->count > AIT_COUNT(pads)) return mix(c, "pads a product of tokens");
  int32_t at = 2 * (rank_of(c, 0) - 1 - l->dim);
  for (uint32_t i = 0; i < list->count; ++i) {
    if (!ait_arg_as_int(c->g, &list->as.list[i], &pads[i])) {
      if ((int32_t)i == at || (int32_t)i == at + 1) return mix(c, "pads the token axis");
      pads[i] = 1;
    }
  }
  if (at + 1 < (int32_t)list->count && (pads[at] || pads[at + 1])) return mix(c, "pads the token axis");
  return token(c, l->dim, l->inner);
}

static bool rule_dims(rule_call *c, uint32_t which) {
  const dep_label *l = label(c, 0);
  int64_t list[AIT_MAX_RANK];
  uint32_t count;
  if (!ait_arg_as_ints(c->g, arg(c, which), list, &count) || l->kind != DEP_TOKEN) return mix(c, "works along unknown dimensions");
  for (uint32_t i = 0; i < count; ++i)
    if (!ait_wrap_dim(&list[i], rank_of(c, 0)) || list[i] == l->dim) return mix(c, "works along the tokens");
  return token(c, l->dim, l->inner);
}
static bool rule_flip(rule_call *c) { return rule_dims(c, 1); }
static bool rule_roll(rule_call *c) { return rule_dims(c, 2); }

/* ---- tables and indices ---------------------------------------------------------------------------------------------------------------*/
static bool rule_gather(rule_call *c) {
  uint32_t values[2] = {arg(c, 0)->as.value, arg(c, 2)->as.value};
  int64_t dim;
  if (!dim_arg(c, 1, result_rank(c), &dim)) return mix(c, "gathers along an unknown dimension");
  rule_values(c, values, 2, result_rank(c));
  if (c->out.kind == DEP_TOKEN && (dim == c->out.dim || c->out.inner != 1)) return mix(c, "gathers along the tokens");
  return true;
}

static bool rule_scatter(rule_call *c) {
  uint32_t values[3] = {arg(c, 0)->as.value, arg(c, 2)->as.value}, count = 2;
  int64_t dim;
  if (is_tensor(c, 3)) values[count++] = arg(c, 3)->as.value;
  if (!dim_arg(c, 1, result_rank(c), &dim)) return mix(c, "scatters along an unknown dimension");
  rule_values(c, values, count, result_rank(c));
  if (c->out.kind == DEP_TOKEN && (dim == c->out.dim || c->out.inner != 1)) return mix(c, "scatters along the tokens");
  return true;
}

/* slice_scatter, select_scatter: another tensor in the place of a part. */
static bool rule_part(rule_call *c) {
  const dep_label x = *label(c, 0), part = *label(c, 1);
  int32_t lost = result_rank(c) - rank_of(c, 1); /* select_scatter: the part has one dimension less */
  int64_t dim;
  if (!dim_arg(c, 2, result_rank(c), &dim)) return mix(c, "writes along an unknown dimension");
  int32_t at = part.dim + (lost && dim <= part.dim);
  if (x.kind == DEP_SIZED || part.kind == DEP_SIZED) {
    uint32_t bits = sized_dims(c, arg(c, x.kind == DEP_SIZED ? 0 : 1)->as.value, x.kind == DEP_SIZED ? result_rank(c) : rank_of(c, 1));
    if (bits & ~(1u << (x.kind == DEP_SIZED ? at : lost && dim < x.dim ? x.dim - 1 : x.dim)))
      return mix(c, "writes positions across the tokens");
  }
  if (x.kind == DEP_TOKEN && part.kind == DEP_TOKEN && (x.dim != at || x.inner != part.inner)) return mix(c, "writes tokens elsewhere");
  if (x.kind == DEP_TOKEN ? dim == x.dim : part.kind != DEP_TOKEN || dim == at) return mix(c, "writes some of the tokens");
  return x.kind == DEP_TOKEN ? token(c, x.dim, x.inner) : token(c, at, part.inner);
}

static bool rule_index_select(rule_call *c) {
  const dep_label *x = label(c, 0), *i = label(c, 2);
  int64_t dim;
  if (!dim_arg(c, 1, rank_of(c, 0), &dim)) return mix(c, "selects along an unknown dimension");
  if (x->kind == DEP_FIXED && i->kind == DEP_TOKEN) return token(c, (int32_t)dim, i->inner);
  if (x->kind == DEP_TOKEN && i->kind == DEP_FIXED && dim != x->dim) return token(c, x->dim, x->inner);
  return mix(c, "selects tokens");
}

static bool rule_embedding(rule_call *c) {
  const dep_label *i = label(c, 1);
  if (label(c, 0)->kind != DEP_FIXED || i->kind != DEP_TOKEN) return mix(c, "looks up a table made of tokens");
  return token(c, i->dim, i->inner);
}

/* x[..., indices, ...] with adjacent index tensors. */
static bool rule_index(rule_call *c) {
  const ait_arg *list = arg(c, 1);
  uint32_t values[AIT_MAX_RANK], count = 0, first = 0, last = 0;
  int32_t wide = 0;
  if (list->kind != AIT_ARG_LIST || list->count > AIT_MAX_RANK) return mix(c, "indexes in an unknown way");
  for (uint32_t i = 0; i < list->count; ++i) {
    if (!ait_arg_is_tensor(c->g, &list->as.list[i])) continue;
    if (c->g->values[list->as.list[i].as.value].dtype == AIT_BOOL) return mix(c, "picks tokens by a condition");
    if (!count) first = i;
    last = i;
    values[count++] = list->as.list[i].as.value;
    int32_t rank = c->g->values[values[count - 1]].rank;
    if (rank > wide) wide = rank;
  }
  if (count && last - first + 1 != count) return mix(c, "indexes dimensions that are apart");
  const dep_label x = *label(c, 0);
  rule_values(c, values, count, wide);
  if (c->out.kind == DEP_MIXED) return true;
  if (x.kind == DEP_FIXED && c->out.kind == DEP_TOKEN) return token(c, c->out.dim + (int32_t)first, c->out.inner);
  if (x.kind == DEP_TOKEN && c->out.kind == DEP_FIXED) {
    if (x.dim >= (int32_t)first && x.dim <= (int32_t)last) return mix(c, "indexes tokens");
    return token(c, x.dim < (int32_t)first ? x.dim : x.dim - (int32_t)count + wide, x.inner);
  }
  return mix(c, "indexes tokens by tokens");
}

/* ---- products and norms ---------------------------------------------------------------------------------------------------------------*/
static bool rule_linear(rule_call *c) {
  const dep_label *x = label(c, 0);
  if (label(c, 1)->kind != DEP_FIXED || label(c, 2)->kind != DEP_FIXED) return mix(c, "has weights made of tokens");
  if (x->kind != DEP_TOKEN || x->dim == rank_of(c, 0) - 1) return mix(c, "sums over the tokens");
  return token(c, x->dim, x->inner);
}

static bool rule_expert(rule_call *c) {
  const dep_label *x = label(c, 0), *e = label(c, 2);
  if (label(c, 1)->kind != DEP_FIXED || x->kind != DEP_TOKEN || e->kind != DEP_TOKEN || x->dim || e->dim || x->inner != e->inner)
    return mix(c, "chooses matrices for other tokens");
  return token(c, 0, x->inner);
}

/* Each token times a matrix of its position. */
static bool by_position(const rule_call *c, const dep_label *tokens, uint32_t other, int32_t rank) {
  if (tokens->kind != DEP_TOKEN || tokens->inner != 1 || tokens->dim >= rank - 2 || label(c, other)->kind != DEP_SIZED) return false;
  return !(sized_dims(c, arg(c, other)->as.value, rank) & ~(1u << tokens->dim));
}

static bool rule_matmul(rule_call *c) {
  dep_label a = *label(c, 0), b = *label(c, 1);
  int32_t ra = rank_of(c, 0), rb = rank_of(c, 1), rank = ra > rb ? ra : rb;
  if (ra < 2 || rb < 2) { /* a vector */
    if (a.kind == DEP_TOKEN && b.kind == DEP_FIXED && a.dim < ra - 1) return token(c, a.dim, a.inner);
    return mix(c, "is a product with a vector of tokens");
  }
  a.dim += rank - ra, a.keys += rank - ra, b.dim += rank - rb, b.keys += rank - rb;
  bool a_data = a.kind == DEP_TOKEN, b_data = b.kind == DEP_TOKEN;
  if ((a_data && a.dim == rank - 1) || (b_data && b.dim == rank - 2)) return mix(c, "sums over the tokens");
  if (by_position(c, &a, 1, rank)) return token(c, a.dim, 1);
  if (by_position(c, &b, 0, rank)) return token(c, b.dim, 1);
  if (a.kind == DEP_SIZED || b.kind == DEP_SIZED || a.kind == DEP_SCORES || b.kind == DEP_SCORES) return mix(c, "is a product with scores");
  if (a_data && b_data) {
    if (a.dim == b.dim && a.inner == b.inner && a.dim < rank - 2) return token(c, a.dim, a.inner);
    if (a.dim == rank - 2 && b.dim == rank - 1 && a.inner == 1 && b.inner == 1) {
      c->out = (dep_label){.kind = DEP_SCORES, .dim = rank - 2, .keys = rank - 1, .inner = 1};
      return true;
    }
    return mix(c, "multiplies tokens with tokens");
  }
  return a_data ? token(c, a.dim, a.inner) : token(c, b.dim, b.inner);
}

static bool rule_baddbmm(rule_call *c) { /* input + a b */
  const dep_label *a = label(c, 1), *b = label(c, 2);
  if (label(c, 0)->kind == DEP_FIXED || label(c, 0)->kind == DEP_SIZED) {
    if (a->kind == DEP_TOKEN && b->kind == DEP_TOKEN && a->dim == 1 && b->dim == 2 && a->inner == 1 && b->inner == 1) {
      c->out = (dep_label){.kind = DEP_SCORES, .dim = 1, .keys = 2, .inner = 1};
      return true;
    }
  }
  return mix(c, "multiplies tokens with tokens");
}

static bool rule_attention(rule_call *c) {
  const dep_label *q = label(c, 0), *k = label(c, 1), *v = label(c, 2), *m = label(c, 3);
  int32_t rank = rank_of(c, 0);
  bool rows = q->kind == DEP_TOKEN && k->kind == DEP_TOKEN && v->kind == DEP_TOKEN && q->dim == k->dim && q->dim == v->dim;
  if (rows && q->dim < rank - 2 && m->kind == DEP_FIXED) return token(c, q->dim, q->inner);
  bool memory = q->kind == DEP_TOKEN && k->kind == DEP_FIXED && v->kind == DEP_FIXED && !ait_arg_flag(arg(c, 4)) && q->dim < rank - 1;
  if (memory && m->kind == DEP_SIZED) memory = !(sized_dims(c, arg(c, 3)->as.value, rank) & ~(1u << q->dim));
  if (memory && (m->kind == DEP_FIXED || m->kind == DEP_SIZED)) return token(c, q->dim, q->inner);
  return mix(c, "is an attention that was not matched");
}

static bool rule_norm(rule_call *c) {
  const dep_label *x = label(c, 0);
  int64_t over;
  if (x->kind != DEP_TOKEN || !ait_arg_as_int(c->g, arg(c, 1), &over)) return mix(c, "normalises a product of tokens");
  if (x->dim >= rank_of(c, 0) - over) return mix(c, "normalises over the tokens");
  return token(c, x->dim, x->inner);
}

static bool rule_group_norm(rule_call *c) {
  const dep_label *x = label(c, 0);
  return x->kind == DEP_TOKEN && x->dim == 0 ? token(c, 0, x->inner) : mix(c, "normalises over the tokens");
}

static bool rule_batch_norm(rule_call *c) {
  const dep_label *x = label(c, 0);
  return x->kind == DEP_TOKEN && x->dim != 1 ? token(c, x->dim, x->inner) : mix(c, "normalises over the tokens");
}

static bool rule_conv(rule_call *c) {
  const dep_label *x = label(c, 0);
  return x->kind == DEP_TOKEN && x->dim == 0 ? token(c, 0, x->inner) : mix(c, "is a convolution over the tokens");
}

static bool rule_rows(rule_call *c) { return token(c, 0, 1); } /* operators with state */

static const struct {
  const char *op;
  bool (*rule)(rule_call *c);
} rules[] = {
    {"sum", rule_reduce},
    {"mean", rule_reduce},
    {"amax", rule_reduce},
    {"amin", rule_reduce},
    {"prod", rule_reduce},
    {"any", rule_reduce},
    {"all", rule_reduce},
    {"var", rule_reduce},
    {"argmax", rule_reduce_1},
    {"argmin", rule_reduce_1},
    {"max_dim", rule_reduce_1},
    {"min_dim", rule_reduce_1},
    {"cumsum", rule_along_1},
    {"softmax", rule_along_1},
    {"log_softmax", rule_along_1},
    {"topk", rule_topk},
    {"sort", rule_along_1},
    {"reshape", rule_reshape},
    {"permute", rule_permute},
    {"expand", rule_expand},
    {"slice", rule_along_1},
    {"select", rule_select},
    {"cat", rule_cat},
    {"pad", rule_pad},
    {"flip", rule_flip},
    {"roll", rule_roll},
    {"gather", rule_gather},
    {"index", rule_index},
    {"scatter", rule_scatter},
    {"index_select", rule_index_select},
    {"embedding", rule_embedding},
    {"linear", rule_linear},
    {"matmul", rule_matmul},
    {"expert_linear", rule_expert},
    {"attention", rule_attention},
    {"layer_norm", rule_norm},
    {"rms_norm", rule_norm},
    {"group_norm", rule_group_norm},
    {"batch_norm", rule_batch_norm},
    {"slice_scatter", rule_part},
    {"select_scatter", rule_part},
    {"aten.index.Tensor", rule_index},
    {"aten.baddbmm", rule_baddbmm},
    {"conv", rule_conv},
    {"unfold", rule_along_1},
    {"cached_attention", rule_rows},
    {"cross_attention", rule_rows},
    {"cached_conv1d", rule_rows},
    {"cached_scan", rule_rows},
};

ait_status dep_grow_labels(dep_work *w) {
  void *labels = w->labels;
  size_t before = w->label_capacity;
  AIT_TRY(ait_grow(w->a, &labels, &w->label_capacity, w->g->value_count, sizeof *w->labels));
  w->labels = labels;
  memset(w->labels + before, 0, (w->label_capacity - before) * sizeof *w->labels); /* new inputs are fixed until they are labelled */
  return AIT_OK;
}

/* Tokens in a list, or in a branch of a nested graph, are beyond the rules. */
static void apply_rule(rule_call *c) {
  if (c->n->op->traits & AIT_OP_POINTWISE) {
    rule_pointwise(c);
    return;
  }
  for (size_t i = 0; i < AIT_COUNT(rules); ++i)
    if (!strcmp(rules[i].op, c->n->op->name)) {
      rules[i].rule(c);
      return;
    }
  mix(c, "is an operator for which it is not known how it treats tokens");
}

ait_status dep_label_node(dep_work *w, const ait_node *n) {
  AIT_TRY(dep_grow_labels(w));
  operands o = {.w = w};
  rule_call c = {.w = w, .g = w->g, .n = n, .out = {.kind = DEP_FIXED}};
  ait_node_each_operand(n, look, &o);
  bool state = !strncmp(n->op->name, "cached_", 7) || !strcmp(n->op->name, "cross_attention");
  if (o.mixed && !state) c.out = *o.first_mixed;
  else if (o.tokens || o.scores || state) apply_rule(&c);
  else if (o.sized || node_is_sized(w, n)) c.out.kind = DEP_SIZED;
  if (c.out.kind == DEP_FIXED && (o.tokens || o.scores)) c.out = (dep_label){.kind = DEP_MIXED, .node = n, .why = "loses the tokens"};
  for (uint32_t i = 0; i < n->result_count; ++i)
    if (n->results[i] != AIT_NO_INDEX) w->labels[n->results[i]] = c.out;
  return AIT_OK;
}

/* What is matched at which operators. `behind`: those that may stand behind what mixes already, as a convolution behind its padding and
 * sinks behind their attention. */
static const struct matcher {
  const char *op;
  ait_status (*match)(dep_work *w, ait_node *n, bool *out_matched);
  bool behind;
} matchers[] = {
    {"matmul", dep_match_attention, false}, {"attention", dep_match_attention, false},    {"mul", dep_match_attention, true},
    {"conv", dep_match_conv, true},         {"ait.scan", dep_match_scan_operator, false},
};

static ait_status try_matchers(dep_work *w, ait_node *n) {
  const dep_label *l = n->result_count && n->results[0] != AIT_NO_INDEX ? &w->labels[n->results[0]] : NULL;
  bool matched; /* labels say it */
  if (!l || l->kind != DEP_MIXED) return AIT_OK;
  for (size_t i = 0; i < AIT_COUNT(matchers); ++i)
    if (!strcmp(n->op->name, matchers[i].op)) return l->node == n || matchers[i].behind ? matchers[i].match(w, n, &matched) : AIT_OK;
  return AIT_OK;
}

static ait_status begin(dep_work *w) {
  AIT_TRY(dep_grow_labels(w));
  memset(w->labels, 0, w->label_capacity * sizeof *w->labels);
  w->labels[w->tokens] = (dep_label){.kind = DEP_TOKEN, .dim = 1, .inner = 1};
  if (w->positions != AIT_NO_INDEX) w->labels[w->positions] = (dep_label){.kind = DEP_TOKEN, .dim = 0, .inner = 1};
  if (w->places != AIT_NO_INDEX) w->labels[w->places] = (dep_label){.kind = DEP_TOKEN, .dim = 0, .inner = 1};
  return AIT_OK;
}

ait_status dep_label_all(dep_work *w) {
  AIT_TRY(begin(w));
  for (const ait_node *n = w->g->first; n; n = n->next) AIT_TRY(dep_label_node(w, n));
  return AIT_OK;
}

ait_status dep_label_graph(dep_work *w) {
  AIT_TRY(dep_run_passes(w, "dce")); /* what was replaced would match again, and keep a second cache */
  AIT_TRY(begin(w));
  for (ait_node *n = w->g->first, *next; n; n = next) {
    next = n->next;
    AIT_TRY(dep_label_node(w, n));
    AIT_TRY(try_matchers(w, n));
  }
  return AIT_OK;
}
