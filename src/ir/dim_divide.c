/* Division, remainder and their simplification. Rounding is towards minus infinity, the remainder has the divisor's sign (Python). */
#include "ir/dim_internal.h"

static int64_t gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

static ait_status range_of(ait_graph *g, const dim_poly *p, int64_t *out_min, int64_t *out_max) {
  ait_dim d;
  AIT_TRY(dim_build(g, p, &d));
  *out_min = g->root->dim_index->infos[d].min;
  *out_max = g->root->dim_index->infos[d].max;
  return AIT_OK;
}

static bool is_nonzero(const ait_graph *g, ait_dim d) {
  const dim_info *info = &g->root->dim_index->infos[d];
  return info->min > 0 || info->max < 0;
}

/* p = c * quotient + rest, coefficients of rest in [0, c). Terms keep their order. */
static void split(const dim_poly *p, int64_t c, dim_poly *quotient, dim_poly *rest) {
  quotient->count = rest->count = 0;
  for (uint32_t i = 0; i < p->count; ++i) {
    dim_term q = p->terms[i], r = p->terms[i];
    q.coef = dim_floordiv(q.coef, c);
    r.coef = dim_mod(r.coef, c);
    if (q.coef) quotient->terms[quotient->count++] = q;
    if (r.coef) rest->terms[rest->count++] = r;
  }
}

static int64_t term_gcd(const dim_poly *p, int64_t with) {
  for (uint32_t i = 0; i < p->count; ++i) {
    if (p->terms[i].degree) with = gcd(with, p->terms[i].coef);
  }
  return with;
}

/* Divides all coefficients by g; the constant rounds down and gives *out_lost = constant mod g. */
static void divide_coefs(dim_poly *p, int64_t g, int64_t *out_lost) {
  uint32_t kept = 0;
  *out_lost = 0;
  for (uint32_t i = 0; i < p->count; ++i) {
    dim_term t = p->terms[i];
    if (t.degree == 0) *out_lost = dim_mod(t.coef, g);
    t.coef = dim_floordiv(t.coef, g);
    if (t.coef) p->terms[kept++] = t;
  }
  p->count = kept;
}

/* p is "atom" or "atom + constant" with an atom of operator `op` whose second operand is a positive constant. */
static bool single_atom(const ait_graph *g, const dim_poly *p, ait_dim_op op, ait_dim *out_inner, int64_t *out_by, int64_t *out_constant) {
  bool shape = (p->count == 1 || (p->count == 2 && p->terms[1].degree == 0)) && p->terms[0].degree == 1 && p->terms[0].coef == 1;
  if (!shape) return false;
  const ait_dim_expr *e = &g->root->dims[p->terms[0].atoms[0]];
  if (e->op != op || !ait_dim_is_const(g, e->b, out_by) || *out_by <= 0) return false;
  *out_inner = e->a;
  *out_constant = p->count == 2 ? p->terms[1].coef : 0;
  return true;
}

/* (x // c1 + k) // c2 = (x + k*c1) // (c1*c2). false: not of that form, or overflow. */
static bool merge_floordiv(ait_graph *g, const dim_poly *p, int64_t c, dim_poly *out, int64_t *out_c) {
  ait_dim inner;
  int64_t c1, k;
  if (!single_atom(g, p, AIT_DIM_FLOORDIV, &inner, &c1, &k) || ait_mul_overflows(c1, c, out_c) || ait_mul_overflows(k, c1, &k))
    return false;
  dim_get_poly(g, inner, out);
  return dim_poly_add_term(g, out, &(dim_term){.coef = k});
}

/* quotient + rest // c, with rest // c simplified as far as its range and common factors allow. */
static ait_status floordiv_const(ait_graph *g, const dim_poly *p, int64_t c, ait_dim *out) {
  dim_poly quotient, rest, merged;
  int64_t low, high, lost;
  split(p, c, &quotient, &rest);
  AIT_TRY(range_of(g, &rest, &low, &high));
  if (low != INT64_MIN && high != INT64_MAX && dim_floordiv(low, c) == dim_floordiv(high, c)) {
    dim_term constant = {.coef = dim_floordiv(low, c)};
    if (dim_poly_add_term(g, &quotient, &constant)) return dim_build(g, &quotient, out);
  }
  int64_t common = term_gcd(&rest, c);
  if (common > 1) {
    divide_coefs(&rest, common, &lost);
    c /= common;
  }
  ait_dim tail, divisor;
  int64_t merged_c;
  if (merge_floordiv(g, &rest, c, &merged, &merged_c)) {
    AIT_TRY(floordiv_const(g, &merged, merged_c, &tail)); /* the inner division is merged already: one level */
  } else {
    AIT_TRY(dim_build(g, &rest, &tail));
    if (c != 1) {
      AIT_TRY(ait_dim_const(g, c, &divisor));
      AIT_TRY(dim_raw(g, AIT_DIM_FLOORDIV, tail, divisor, &tail));
    }
  }
  ait_dim head;
  AIT_TRY(dim_build(g, &quotient, &head));
  return ait_dim_make(g, AIT_DIM_ADD, head, tail, out);
}

/* false: overflow. */
static bool negate(dim_poly *p) {
  for (uint32_t i = 0; i < p->count; ++i) {
    if (ait_mul_overflows(p->terms[i].coef, (int64_t)-1, &p->terms[i].coef)) return false;
  }
  return true;
}

ait_status dim_make_floordiv(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) {
  dim_poly x, y, quotient;
  int64_t c;
  dim_get_poly(g, a, &x);
  dim_get_poly(g, b, &y);
  if (dim_poly_const(&y, &c)) {
    if (c == 0 || c == INT64_MIN || (c < 0 && !negate(&x))) return dim_raw(g, AIT_DIM_FLOORDIV, a, b, out);
    return floordiv_const(g, &x, c < 0 ? -c : c, out);
  }
  if (is_nonzero(g, b)) {
    const dim_info *n = &g->root->dim_index->infos[a], *d = &g->root->dim_index->infos[b];
    if (d->min > 0 && n->min >= 0 && n->max < d->min) return ait_dim_const(g, 0, out);
    if (dim_poly_divide(g, &x, &y, &quotient)) return dim_build(g, &quotient, out);
  }
  return dim_raw(g, AIT_DIM_FLOORDIV, a, b, out);
}

/* With a constant divisor: (a + c - 1) // c. */
ait_status dim_make_ceildiv(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) {
  dim_poly x, y, quotient;
  int64_t c;
  dim_get_poly(g, a, &x);
  dim_get_poly(g, b, &y);
  if (dim_poly_const(&y, &c) && c != 0 && c != INT64_MIN) {
    bool fits = c > 0 || negate(&x);
    if (c < 0) c = -c;
    if (fits && dim_poly_add_term(g, &x, &(dim_term){.coef = c - 1})) return floordiv_const(g, &x, c, out);
  } else if (is_nonzero(g, b) && dim_poly_divide(g, &x, &y, &quotient)) {
    return dim_build(g, &quotient, out);
  }
  return dim_raw(g, AIT_DIM_CEILDIV, a, b, out);
}

static ait_status mod_const(ait_graph *g, const dim_poly *p, int64_t c, ait_dim *out);

/* rest mod c, rest reduced already. An inner mod by a multiple of c makes no difference. */
static ait_status mod_reduced(ait_graph *g, const dim_poly *rest, int64_t c, ait_dim *out) {
  int64_t inner_by, k;
  ait_dim inner, body, divisor;
  dim_poly direct;
  if (single_atom(g, rest, AIT_DIM_MOD, &inner, &inner_by, &k) && inner_by % c == 0) {
    dim_get_poly(g, inner, &direct);
    if (dim_poly_add_term(g, &direct, &(dim_term){.coef = k})) return mod_const(g, &direct, c, out);
  }
  AIT_TRY(dim_build(g, rest, &body));
  AIT_TRY(ait_dim_const(g, c, &divisor));
  return dim_raw(g, AIT_DIM_MOD, body, divisor, out);
}

/* x mod c with c > 0: coefficients reduced, common factors taken out: (f*x + k) mod f*c = f*((x + k//f) mod c) + k mod f. */
static ait_status mod_const(ait_graph *g, const dim_poly *p, int64_t c, ait_dim *out) {
  dim_poly quotient, rest;
  int64_t low, high, lost;
  split(p, c, &quotient, &rest);
  AIT_TRY(range_of(g, &rest, &low, &high));
  if (low >= 0 && high < c) return dim_build(g, &rest, out);
  int64_t common = term_gcd(&rest, c);
  if (common == 1) return mod_reduced(g, &rest, c, out);
  divide_coefs(&rest, common, &lost);
  ait_dim body;
  AIT_TRY(mod_const(g, &rest, c / common, &body));
  dim_poly scaled;
  dim_get_poly(g, body, &scaled);
  for (uint32_t i = 0; i < scaled.count; ++i) scaled.terms[i].coef *= common; /* body lies in [0, c / common) */
  if (!dim_poly_add_term(g, &scaled, &(dim_term){.coef = lost})) return mod_reduced(g, p, c, out);
  return dim_build(g, &scaled, out);
}

ait_status dim_make_mod(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) {
  dim_poly x, y, quotient;
  int64_t c;
  dim_get_poly(g, a, &x);
  dim_get_poly(g, b, &y);
  if (dim_poly_const(&y, &c)) {
    if (c > 0) return mod_const(g, &x, c, out);
  } else if (is_nonzero(g, b)) {
    const dim_info *n = &g->root->dim_index->infos[a], *d = &g->root->dim_index->infos[b];
    if (d->min > 0 && n->min >= 0 && n->max < d->min) {
      *out = a;
      return AIT_OK;
    }
    if (dim_poly_divide(g, &x, &y, &quotient)) return ait_dim_const(g, 0, out);
  }
  return dim_raw(g, AIT_DIM_MOD, a, b, out);
}
