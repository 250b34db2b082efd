/* Attention: from the product of probabilities and values back to queries and keys, collecting what the model's own code does to the
 * scores, in its order. What is found is a hypothesis; the mask is read by evaluating it (masks.c), and the whole is proven by running it
 * (proof.c). */
#include "deploy/internal.h"
#include <math.h>
#include <stdio.h>

static const double HIDDEN = -9999; /* scores at or below it are no keys: what people write for minus infinity */

static bool no(dep_work *w, const char *why) {
  snprintf(w->near, sizeof w->near, "%s", why);
  return false;
}

static dep_kind kind_of(const dep_work *w, const ait_arg *a) {
  return ait_arg_is_tensor(w->g, a) ? w->labels[a->as.value].kind : DEP_FIXED;
}

static bool number(const ait_graph *g, const ait_arg *a, double *out) {
  if (ait_arg_as_number(g, a, out)) return true;
  return ait_arg_is_tensor(g, a) && ait_scalar_constant(g, a->as.value, out);
}

static bool is_op(const ait_node *n, const char *op) { return n && !strcmp(n->op->name, op); }

/* ---- scores ---------------------------------------------------------------------------------------------------------------------------*/
typedef struct chain {
  dep_work *w;
  dep_found *f;
  double factor;
  bool capped, gated;
} chain;

static bool keep_term(dep_work *w, dep_found *f, uint32_t value, dep_term_role role, double factor) {
  if (f->term_count == AIT_COUNT(f->terms)) return no(w, "its mask has too many terms");
  f->terms[f->term_count++] = (dep_term){value, role, factor};
  return true;
}

static bool add_term(chain *c, uint32_t term, dep_term_role role) {
  if (c->capped) return no(c->w, "its mask is added before the soft cap");
  if (c->gated) return no(c->w, "its mask is added before its scores are multiplied by another");
  return keep_term(c->w, c->f, term, role, c->factor);
}

/* where(cond, scores, fill) or where(cond, fill, scores). */
static bool take_where(chain *c, const ait_node *n, uint32_t *next) {
  double fill;
  if (data_kind(kind_of(c->w, &n->args[0]))) return no(c->w, "its mask depends on tokens");
  for (uint32_t i = 1; i <= 2; ++i) {
    if (kind_of(c->w, &n->args[i]) != c->f->scores || !number(c->w->g, &n->args[3 - i], &fill)) continue;
    if (!(fill * c->factor <= HIDDEN)) return no(c->w, "masked scores are not minus infinity");
    *next = n->args[i].as.value;
    return add_term(c, n->args[0].as.value, i == 1 ? DEP_TERM_KEEPS : DEP_TERM_ADDED);
  }
  return no(c->w, "its mask is not a number");
}

static bool take_sum(chain *c, const ait_node *n, uint32_t *next) {
  for (uint32_t i = 0; i < 2; ++i) {
    const ait_arg *other = &n->args[1 - i];
    if (kind_of(c->w, &n->args[i]) != c->f->scores) continue;
    if (!ait_arg_is_tensor(c->w->g, other) || data_kind(kind_of(c->w, other)))
      return no(c->w, "what is added to its scores depends on tokens");
    *next = n->args[i].as.value;
    return add_term(c, other->as.value, DEP_TERM_ADDED);
  }
  return no(c->w, "no scores are in the sum");
}

/* scores - term, as far as the term is a mask. */
static bool take_difference(chain *c, const ait_node *n, uint32_t *next) {
  if (kind_of(c->w, &n->args[0]) != DEP_SCORES || !ait_arg_is_tensor(c->w->g, &n->args[1]) || data_kind(kind_of(c->w, &n->args[1])))
    return no(c->w, "what is taken from its scores depends on tokens");
  *next = n->args[0].as.value;
  c->factor = -c->factor;
  bool good = add_term(c, n->args[1].as.value, DEP_TERM_ADDED);
  c->factor = -c->factor;
  return good;
}

/* scores times 1 where keys are seen. */
static bool take_gate(chain *c, const ait_node *n, uint32_t *next) {
  for (uint32_t i = 0; i < 2; ++i) {
    const ait_arg *other = &n->args[1 - i];
    if (kind_of(c->w, &n->args[i]) != DEP_SCORES || !ait_arg_is_tensor(c->w->g, other)) continue;
    if (data_kind(kind_of(c->w, other))) break;
    *next = n->args[i].as.value;
    if (c->capped) return no(c->w, "its scores are masked before the soft cap");
    c->gated = true;
    return keep_term(c->w, c->f, other->as.value, DEP_TERM_UNIT, 1);
  }
  return no(c->w, "its scores are multiplied by what depends on tokens");
}

/* beta * term + alpha * (q k). */
static bool take_baddbmm(chain *c, const ait_node *n) {
  double beta = 1, alpha = 1;
  if (!number(c->w->g, &n->args[3], &beta) || !number(c->w->g, &n->args[4], &alpha)) return no(c->w, "its scale is not a number");
  if (data_kind(kind_of(c->w, &n->args[0]))) return no(c->w, "what is added to its scores depends on tokens");
  double outer = c->factor;
  c->factor = outer * beta;
  if (beta != 0 && !add_term(c, n->args[0].as.value, DEP_TERM_ADDED)) return false;
  c->factor = outer * alpha;
  return true;
}

/* One operator nearer to the product; false: it is not understood. */
static bool step(chain *c, const ait_node *n, uint32_t *next) {
  double x;
  const ait_graph *g = c->w->g;
  *next = n->arg_count && ait_arg_is_tensor(g, &n->args[0]) ? n->args[0].as.value : AIT_NO_INDEX;
  if (is_op(n, "cast") || is_op(n, "reshape") || is_op(n, "expand")) return true;
  if (is_op(n, "add")) return take_sum(c, n, next);
  if (is_op(n, "where")) return take_where(c, n, next);
  if (is_op(n, "sub")) return take_difference(c, n, next);
  if (is_op(n, "mul") && number(g, &n->args[1], &x)) return c->factor *= x, true;
  if (is_op(n, "mul") && number(g, &n->args[0], &x)) return c->factor *= x, *next = n->args[1].as.value, true;
  if (is_op(n, "mul")) return take_gate(c, n, next);
  if (is_op(n, "div") && number(g, &n->args[1], &x) && x != 0) return c->factor /= x, true;
  if (is_op(n, "maximum") && number(g, &n->args[1], &x) && x <= HIDDEN) return true;
  if (is_op(n, "clamp") && number(g, &n->args[1], &x) && x <= HIDDEN && n->args[2].kind == AIT_ARG_NONE) return true;
  if (is_op(n, "tanh") && !c->capped && c->factor > 0) {
    c->f->cap = c->factor;
    c->capped = true;
    c->factor = 1;
    return true;
  }
  snprintf(c->w->near, sizeof c->w->near, "'%s' stands between its scores and the softmax", n->op->name);
  return false;
}

static bool read_scores(dep_work *w, uint32_t value, dep_found *f) {
  chain c = {.w = w, .f = f, .factor = 1};
  for (int i = 0; i < 64; ++i) {
    const ait_node *n = w->g->values[value].def;
    if (!n) return no(w, "its scores come from outside");
    bool sum = is_op(n, "aten.baddbmm");
    if (is_op(n, "matmul") || sum) {
      if (sum && !take_baddbmm(&c, n)) return false;
      f->q = n->args[sum].as.value;
      f->k = n->args[sum + 1].as.value;
      f->k_is_transposed = true;
      f->scale = c.factor * (c.capped ? f->cap : 1);
      return true;
    }
    if (!step(&c, n, &value) || value == AIT_NO_INDEX) return false;
  }
  return no(w, "its scores are too far from the softmax");
}

/* ---- probabilities --------------------------------------------------------------------------------------------------------------------*/
static uint32_t skip(const ait_graph *g, uint32_t value, const char *const *ops, size_t count) {
  for (int i = 0; i < 16; ++i) {
    const ait_node *n = g->values[value].def;
    bool found_one = false;
    for (size_t k = 0; n && k < count; ++k) found_one |= is_op(n, ops[k]);
    if (!found_one) break;
    value = n->args[0].as.value;
  }
  return value;
}

/* x - max(x): softmax does not see it. */
static uint32_t skip_shift(const ait_graph *g, uint32_t value) {
  const ait_node *n = ait_def_of(g, value, "sub");
  if (!n || !ait_arg_is_tensor(g, &n->args[0]) || !ait_arg_is_tensor(g, &n->args[1])) return value;
  const ait_node *m = g->values[n->args[1].as.value].def;
  bool most = is_op(m, "amax") || (is_op(m, "max_dim") && m->results[0] == n->args[1].as.value);
  return most && m->args[0].as.value == n->args[0].as.value ? n->args[0].as.value : value;
}

static bool last_dim(const ait_graph *g, const ait_node *n, uint32_t which) {
  int64_t dim;
  int32_t rank = g->values[n->args[0].kind == AIT_ARG_LIST ? n->args[0].as.list[0].as.value : n->args[0].as.value].rank;
  return ait_arg_as_int(g, &n->args[which], &dim) && ait_wrap_dim(&dim, rank) && dim == rank - 1;
}

/* slice(softmax(cat(scores, sinks))), in this order or the other: one more key without a value. That the slice takes the scores is proven
 * with all else. */
static bool read_sinks(dep_work *w, uint32_t value, dep_found *f, uint32_t *scores) {
  const ait_node *cat = ait_def_of(w->g, skip_shift(w->g, value), "cat");
  if (!cat || cat->args[0].count != 2 || !last_dim(w->g, cat, 1)) return no(w, "a part of its probabilities is cut off");
  bool first = kind_of(w, &cat->args[0].as.list[0]) == f->scores;
  *scores = cat->args[0].as.list[first ? 0 : 1].as.value;
  uint32_t sinks = cat->args[0].as.list[first ? 1 : 0].as.value;
  static const char *const shapes[] = {"expand", "reshape", "cast"};
  sinks = skip(w->g, sinks, shapes, 3);
  if (w->labels[*scores].kind != f->scores || w->labels[sinks].kind != DEP_FIXED)
    return no(w, "what is joined to its scores depends on tokens");
  f->sinks = sinks;
  return true;
}

/* x / sum(x): what x is multiplied by is a mask. *out: x without it. */
static bool read_quotient(dep_work *w, uint32_t value, dep_found *f, uint32_t *out) {
  const ait_graph *g = w->g;
  const ait_node *n = ait_def_of(g, value, "div");
  *out = value;
  if (!n || !ait_arg_is_tensor(g, &n->args[0]) || !ait_arg_is_tensor(g, &n->args[1])) return true;
  const ait_node *sum = ait_def_of(g, n->args[1].as.value, "sum");
  if (!sum || sum->args[0].as.value != n->args[0].as.value) return true;
  *out = n->args[0].as.value;
  for (int i = 0; i < 4; ++i) {
    const ait_node *gate = ait_def_of(g, *out, "mul");
    if (!gate) break;
    uint32_t k = kind_of(w, &gate->args[0]) == f->scores ? 0 : 1;
    if (!ait_arg_is_tensor(g, &gate->args[1 - k]) || data_kind(kind_of(w, &gate->args[1 - k])))
      return no(w, "its probabilities are multiplied by what is no mask");
    if (!keep_term(w, f, gate->args[1 - k].as.value, DEP_TERM_GATE, 1)) return false;
    *out = gate->args[k].as.value;
  }
  return true;
}

static bool read_probabilities(dep_work *w, uint32_t value, dep_found *f) {
  static const char *const shapes[] = {"cast", "reshape", "expand"};
  value = skip(w->g, value, shapes, 3);
  uint32_t quotient = value; /* exp is a softmax only under x / sum(x) */
  if (!read_quotient(w, value, f, &value)) return false;
  const ait_node *cut = ait_def_of(w->g, value, "slice");
  if (cut && last_dim(w->g, cut, 1)) value = skip(w->g, cut->args[0].as.value, shapes, 3);
  const ait_node *softmax = ait_def_of(w->g, value, "softmax");
  const ait_node *power = value == quotient ? NULL : ait_def_of(w->g, value, "exp");
  if (power && !cut) return read_scores(w, skip_shift(w->g, power->args[0].as.value), f);
  if (!softmax || !last_dim(w->g, softmax, 1)) return no(w, "no softmax over the keys stands before the product with the values");
  uint32_t scores = skip_shift(w->g, softmax->args[0].as.value);
  if (cut && !read_sinks(w, softmax->args[0].as.value, f, &scores)) return false;
  return read_scores(w, scores, f);
}

static bool read_fused(dep_work *w, const ait_node *n, dep_found *f) {
  int64_t width;
  const ait_value_info *q = &w->g->values[n->args[0].as.value];
  f->q = n->args[0].as.value, f->k = n->args[1].as.value, f->v = n->args[2].as.value;
  f->causal = ait_arg_flag(&n->args[4]);
  if (n->args[5].kind == AIT_ARG_NONE) {
    if (!ait_dim_is_const(w->g, q->shape[q->rank - 1], &width)) return no(w, "its head size is not fixed");
    f->scale = 1 / sqrt((double)width);
  } else if (!number(w->g, &n->args[5], &f->scale)) return no(w, "its scale is not a number");
  if (n->args[3].kind == AIT_ARG_NONE) return true;
  if (data_kind(kind_of(w, &n->args[3]))) return no(w, "its mask depends on tokens");
  return keep_term(w, f, n->args[3].as.value, DEP_TERM_KEEPS, 1);
}

/* ---- heads ----------------------------------------------------------------------------------------------------------------------------*/
/* Copies of heads that stand one after the other are undone: reshape(expand([.., G, 1, T, d])). */
static uint32_t undo_repeat(dep_work *w, uint32_t value) {
  const ait_graph *g = w->g;
  for (int i = 0; i < 4; ++i) {
    const ait_node *n = g->values[value].def;
    if (!n) return value;
    const ait_node *expand = is_op(n, "expand") ? n : is_op(n, "reshape") ? ait_def_of(g, n->args[0].as.value, "expand") : NULL;
    if (!expand) return value;
    uint32_t base = expand->args[0].as.value;
    const dep_label *l = &w->labels[base];
    int64_t from[AIT_MAX_RANK], to[AIT_MAX_RANK];
    const ait_value_info *in = &g->values[base], *out = &g->values[expand->results[0]];
    if (l->kind != DEP_TOKEN || in->rank != out->rank || l->dim != in->rank - 2 || l->inner != 1) return value;
    if (w->labels[value].kind != DEP_TOKEN || w->labels[value].dim != g->values[value].rank - 2) return value;
    if (!dep_const_sizes(g, base, l->dim, from) || !dep_const_sizes(g, expand->results[0], l->dim, to)) return value;
    int32_t at = -1;
    for (int32_t d = 0; d < in->rank; ++d)
      if (from[d] != to[d]) at = at < 0 ? d : AIT_MAX_RANK;
    if (at >= 0 && (at == AIT_MAX_RANK || at >= l->dim)) return value;
    for (int32_t d = at + 1; at >= 0 && d < l->dim; ++d)
      if (from[d] != 1) return value;
    value = base;
  }
  return value;
}

/* ---- the cached operator --------------------------------------------------------------------------------------------------------------*/
typedef struct parts {
  uint32_t q, k, v, k_base, v_base;
  int64_t heads, k_heads, v_heads, width, value_width;
} parts;

static ait_status make_rows(dep_work *w, const ait_rewrite *r, const dep_found *f, parts *p) {
  ait_graph *g = w->g;
  bool emitted = false;
  p->k_base = f->k;
  if (f->k_is_transposed) {
    ait_arg order[AIT_MAX_RANK];
    int32_t rank = g->values[f->k].rank;
    for (int32_t d = 0; d < rank; ++d) order[d] = ait_arg_int(d < rank - 2 ? d : 2 * rank - 3 - d);
    const ait_node *swap = ait_def_of(g, f->k, "permute");
    bool back = swap != NULL;
    for (int32_t d = 0; back && d < rank; ++d) {
      int64_t from;
      back = ait_arg_as_int(g, &swap->args[1].as.list[d], &from) && ait_wrap_dim(&from, rank) && from == order[d].as.i;
    }
    if (back) p->k_base = swap->args[0].as.value;
    else {
      emitted = true;
      AIT_TRY(AIT_EMIT(r, &p->k_base, "permute", ait_arg_value(f->k), ait_arg_list(order, (uint32_t)rank)));
      AIT_TRY(dep_label_node(w, g->values[p->k_base].def));
    }
  }
  uint32_t turned = p->k_base, k_short = undo_repeat(w, p->k_base), v_short = undo_repeat(w, f->v);
  p->v_base = f->v;
  AIT_TRY(dep_to_rows(w, r, k_short, &p->k, &p->k_heads));
  AIT_TRY(dep_to_rows(w, r, v_short, &p->v, &p->v_heads));
  if (p->k_heads == p->v_heads) p->k_base = k_short, p->v_base = v_short;
  else { /* only one of them is a copy */ AIT_TRY(dep_to_rows(w, r, p->k_base, &p->k, &p->k_heads));
    AIT_TRY(dep_to_rows(w, r, f->v, &p->v, &p->v_heads));
  }
  if (p->k_base == turned && emitted) p->k_base = f->k; /* what the old graph has in common with the new one */
  AIT_TRY(dep_to_rows(w, r, f->q, &p->q, &p->heads));
  if (p->heads < 1 || p->k_heads < 1 || p->v_heads < 1) return AIT_OK;
  (void)ait_dim_is_const(g, g->values[p->k].shape[2], &p->width);
  (void)ait_dim_is_const(g, g->values[p->v].shape[2], &p->value_width);
  return AIT_OK;
}

static ait_status head_vector(dep_work *w, const ait_rewrite *r, uint32_t value, int64_t heads, uint32_t *out) {
  ait_arg n = ait_arg_int(heads);
  AIT_UNUSED(w);
  AIT_TRY(AIT_EMIT(r, out, "reshape", ait_arg_value(value), ait_arg_list(&n, 1)));
  return ait_emit_cast(r, *out, AIT_F32, out);
}

/* [heads, distances] where the bias is not linear in the distance. */
static ait_status bias_weight(dep_work *w, const dep_mask_memo *mask, int64_t heads, uint32_t *out) {
  const int64_t shape[2] = {heads, mask->distances};
  ait_tensor t;
  char name[48];
  *out = AIT_NO_INDEX;
  if (!mask->bias) return AIT_OK;
  AIT_TRY(ait_tensor_create(w->a, AIT_F32, 2, shape, &t));
  for (int64_t h = 0; h < heads; ++h)
    memcpy((float *)t.data + h * shape[1], mask->bias + (mask->heads == 1 ? 0 : h * shape[1]), (size_t)shape[1] * sizeof(float));
  snprintf(name, sizeof name, "bias.%u", w->layers);
  ait_status status = dep_add_weight(w, name, &t, out);
  ait_tensor_release(&t);
  return status;
}

static ait_status slopes_weight(dep_work *w, const dep_mask_memo *mask, int64_t heads, uint32_t *out) {
  ait_tensor t;
  char name[48];
  bool any = false;
  *out = AIT_NO_INDEX;
  for (int64_t h = 0; h < mask->heads; ++h) any |= mask->slopes[h] != 0;
  if (!any) return AIT_OK;
  AIT_TRY(ait_tensor_create(w->a, AIT_F32, 1, &heads, &t));
  for (int64_t h = 0; h < heads; ++h) ((float *)t.data)[h] = (float)mask->slopes[mask->heads == 1 ? 0 : h];
  snprintf(name, sizeof name, "slopes.%u", w->layers);
  ait_status status = dep_add_weight(w, name, &t, out);
  ait_tensor_release(&t);
  return status;
}

static ait_status emit(dep_work *w, const ait_rewrite *r, const dep_found *f, const parts *p, const dep_mask_memo *mask, uint32_t *out) {
  uint32_t group, k_pool, v_pool, sinks, slopes, bias;
  char name[32];
  AIT_TRY(dep_find_group(w, AIT_LM_PAGES, mask->window, &group));
  AIT_TRY(slopes_weight(w, mask, p->heads, &slopes));
  AIT_TRY(bias_weight(w, mask, p->heads, &bias));
  ait_dtype dtype = w->g->values[p->k].dtype;
  const int64_t k_shape[4] = {0, p->k_heads, w->page_size, p->width}, v_shape[4] = {0, p->v_heads, w->page_size, p->value_width};
  snprintf(name, sizeof name, "state.%u.k", w->layers);
  AIT_TRY(dep_add_state(w, name, group, dtype, 4, k_shape, &k_pool));
  snprintf(name, sizeof name, "state.%u.v", w->layers++);
  AIT_TRY(dep_add_state(w, name, group, dtype, 4, v_shape, &v_pool));
  w->groups[group].layers++;
  ait_arg args[15] = {
      ait_arg_value(p->q),   ait_arg_value(p->k),  ait_arg_value(p->v), ait_arg_value(w->sequences), ait_arg_value(w->groups[group].table),
      ait_arg_value(k_pool), ait_arg_value(v_pool)};
  if (f->sinks != AIT_NO_INDEX) {
    AIT_TRY(head_vector(w, r, f->sinks, p->heads, &sinks));
    args[9] = ait_arg_value(sinks);
  }
  if (slopes != AIT_NO_INDEX) args[10] = ait_arg_value(slopes);
  args[11] = ait_arg_float(f->scale), args[12] = ait_arg_float(f->cap), args[13] = ait_arg_int(mask->window);
  if (bias != AIT_NO_INDEX) args[14] = ait_arg_value(bias);
  return ait_emit(r, "cached_attention", args, 15, out);
}

ait_status dep_label_from(dep_work *w, ait_node *after, const ait_node *end) {
  for (const ait_node *n = after ? after->next : w->g->first; n && n != end; n = n->next) AIT_TRY(dep_label_node(w, n));
  return AIT_OK;
}

static ait_status build(dep_work *w, ait_node *n, const dep_found *f, const dep_mask_memo *mask, bool *out_matched) {
  ait_rewrite r = ait_rewrite_at(w->g, &w->context, n);
  ait_node *before = n->prev;
  uint32_t old = n->results[0], fresh, rows;
  const ait_value_info *v = &w->g->values[old];
  parts p = {0};
  AIT_TRY(make_rows(w, &r, f, &p));
  if (p.heads < 1 || p.k_heads < 1 || p.v_heads != p.k_heads || p.heads % p.k_heads || (mask->heads != 1 && mask->heads != p.heads)) {
    no(w, "heads of queries, keys and values do not fit together");
    return AIT_OK;
  }
  AIT_TRY(emit(w, &r, f, &p, mask, &rows));
  AIT_TRY(dep_from_rows(w, &r, rows, old, v->rank - 2, &fresh));
  AIT_TRY(ait_emit_cast(&r, fresh, w->g->values[old].dtype, &fresh));
  const uint32_t operands[3] = {f->q, p.k_base, p.v_base};
  AIT_TRY(dep_prove(w, old, fresh, operands, 3, 0, mask->window && mask->window < 200 ? mask->window + 3 : 0, out_matched));
  if (!*out_matched) return AIT_OK;
  AIT_TRY(ait_replace_value(w->g, old, fresh));
  return dep_label_from(w, before, n);
}

bool dep_read_attention(dep_work *w, const ait_node *n, dep_found *f) {
  f->v = n->args[1].as.value;
  return is_op(n, "attention") ? read_fused(w, n, f) : read_probabilities(w, n->args[0].as.value, f);
}

/* ---- sinks behind the product -----------------------------------------------------------------------------------------------------------
 * softmax(s) v times sigmoid(logsumexp(s) - sink) is softmax over one more key, of score sink, without a value:
 *   sum(exp(s) v) / sum(exp(s)) * sum(exp(s)) / (sum(exp(s)) + exp(sink)).
 * That the sum is over the attention's own scores is proven with all else. */
static const ait_node *behind(const ait_graph *g, const ait_arg *a) {
  static const char *const shapes[] = {"cast", "reshape", "expand"};
  return ait_arg_is_tensor(g, a) ? g->values[skip(g, a->as.value, shapes, 3)].def : NULL;
}

static bool is_log_of_sums(const ait_graph *g, const ait_node *n) {
  for (uint32_t i = 0; is_op(n, "add") && i < 2; ++i) {
    const ait_node *log = behind(g, &n->args[i]), *sum = is_op(log, "log") ? behind(g, &log->args[0]) : NULL;
    if (is_op(sum, "sum") && is_op(behind(g, &sum->args[0]), "exp")) return true;
  }
  return false;
}

/* The product of an attention and of what only its sinks make; *sinks is theirs. NULL: n is none. */
static const ait_node *product_with_sinks(const dep_work *w, const ait_node *n, uint32_t *sinks) {
  const ait_graph *g = w->g;
  for (uint32_t i = 0; is_op(n, "mul") && i < 2; ++i) {
    const ait_node *gate = behind(g, &n->args[1 - i]), *apart = is_op(gate, "sigmoid") ? behind(g, &gate->args[0]) : NULL;
    if (!is_op(apart, "sub") || !ait_arg_is_tensor(g, &apart->args[1]) || kind_of(w, &apart->args[1]) != DEP_FIXED) continue;
    if (!is_log_of_sums(g, behind(g, &apart->args[0]))) continue;
    const ait_node *product = ait_arg_is_tensor(g, &n->args[i]) ? g->values[n->args[i].as.value].def : NULL;
    if (is_op(product, "cast")) product = behind(g, &product->args[0]);
    *sinks = apart->args[1].as.value;
    if (is_op(product, "matmul") || is_op(product, "attention")) return product;
  }
  return NULL;
}

/* Then it is matched there, when all that it is made of has labels. */
static bool sinks_follow(dep_work *w, const ait_node *n) {
  uint32_t sinks;
  for (const ait_node *user = n->next; user; user = user->next)
    if (product_with_sinks(w, user, &sinks) == n) return true;
  return false;
}

static bool is_candidate(const dep_work *w, const ait_node *n) {
  dep_kind a = kind_of(w, &n->args[0]), b = kind_of(w, &n->args[1]);
  if (is_op(n, "attention")) return a == DEP_TOKEN && b == DEP_TOKEN && kind_of(w, &n->args[2]) == DEP_TOKEN;
  return a == DEP_SCORES && b == DEP_TOKEN;
}

ait_status dep_match_attention(dep_work *w, ait_node *n, bool *out_matched) {
  dep_found f = {.scores = DEP_SCORES, .sinks = AIT_NO_INDEX, .q = AIT_NO_INDEX};
  dep_mask_memo *mask;
  *out_matched = false;
  const ait_node *product = is_op(n, "mul") ? product_with_sinks(w, n, &f.sinks) : n;
  if (!product || !is_candidate(w, product) || (product == n && sinks_follow(w, n))) return AIT_OK;
  if (!dep_read_attention(w, product, &f)) return AIT_OK;
  AIT_TRY(dep_read_mask(w, f.terms, f.term_count, f.causal, &mask));
  if (!mask->good) {
    snprintf(w->near, sizeof w->near, "%s", mask->why);
    return AIT_OK;
  }
  return build(w, n, &f, mask, out_matched);
}
