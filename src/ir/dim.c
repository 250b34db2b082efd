/* Symbolic sizes. Sums and products are kept as polynomials with sorted terms over atoms (symbols, unknowns, divisions, …), so that equal
 * polynomials are the same expression; the tree that the region sees is rebuilt from the polynomial, always in the same way. */
#include "ir/dim_internal.h"

enum { FIRST_SLOTS = 64 };

/* ---- table ---------------------------------------------------------------------------------------------------------------------------*/

static const ait_dim_expr *expr_of(const ait_graph *g, ait_dim d) { return &g->root->dims[d]; }
static dim_info *info_of(const ait_graph *g, ait_dim d) { return &g->root->dim_index->infos[d]; }

static uint64_t hash_expr(const ait_dim_expr *e) {
  uint64_t key[3] = {(uint64_t)e->op, (uint64_t)e->a << 32 | e->b, (uint64_t)e->value};
  return ait_hash(key, sizeof key, 0);
}

static uint32_t *find_slot(const ait_graph *root, const ait_dim_expr *e) {
  const struct ait_dim_index *index = root->dim_index;
  size_t mask = index->slot_count - 1;
  for (size_t i = hash_expr(e) & mask;; i = (i + 1) & mask) {
    uint32_t *slot = &index->slots[i];
    if (*slot == 0) return slot;
    const ait_dim_expr *other = &root->dims[*slot - 1];
    if (other->op == e->op && other->a == e->a && other->b == e->b && other->value == e->value) return slot;
  }
}

static ait_status reserve(ait_graph *root) {
  struct ait_dim_index *index = root->dim_index;
  if (root->dim_count >= AIT_NO_INDEX - 1) return ait_error(AIT_CODE_LIMIT, "too many symbolic sizes");
  AIT_TRY(ait_graph_grow(root, (void **)&root->dims, &root->dim_capacity, root->dim_count + 1, sizeof *root->dims));
  AIT_TRY(ait_graph_grow(root, (void **)&index->infos, &index->info_capacity, root->dim_count + 1, sizeof *index->infos));
  if ((root->dim_count + 1) * 2 <= index->slot_count) return AIT_OK;
  size_t count = index->slot_count ? index->slot_count * 2 : FIRST_SLOTS;
  uint32_t *slots = AIT_ARENA_ARRAY(root->arena, uint32_t, count);
  if (!slots) return AIT_OOM();
  memset(slots, 0, count * sizeof *slots);
  index->slots = slots;
  index->slot_count = count;
  for (uint32_t d = 0; d < root->dim_count; ++d) *find_slot(root, &root->dims[d]) = d + 1;
  return AIT_OK;
}

static bool is_binary(ait_dim_op op) { return op >= AIT_DIM_ADD && op <= AIT_DIM_POW; }

/* The polynomial of a sum or product, or NULL for an atom or constant. */
static ait_status store_poly(ait_graph *root, const dim_poly *poly, dim_poly **out) {
  *out = NULL;
  if (!poly) return AIT_OK;
  size_t bytes = offsetof(dim_poly, terms) + poly->count * sizeof poly->terms[0];
  *out = ait_arena_alloc(root->arena, bytes, _Alignof(dim_poly));
  if (!*out) return AIT_OOM();
  memcpy(*out, poly, bytes);
  return AIT_OK;
}

ait_status dim_intern(ait_graph *g, ait_dim_expr e, const dim_poly *poly, ait_dim *out) {
  ait_graph *root = g->root;
  AIT_TRY(reserve(root));
  uint32_t *slot = find_slot(root, &e);
  if (*slot) {
    *out = *slot - 1;
    return AIT_OK;
  }
  dim_info info = {.size = 1};
  if (is_binary(e.op)) {
    const dim_info *a = info_of(root, e.a), *b = info_of(root, e.b);
    info.depth = 1 + (a->depth > b->depth ? a->depth : b->depth);
    info.size = 1 + a->size + b->size;
    if (info.depth > DIM_DEPTH_LIMIT || info.size > DIM_SIZE_LIMIT)
      return ait_error(AIT_CODE_LIMIT, "symbolic size is too large an expression");
  }
  AIT_TRY(store_poly(root, poly, &info.poly));
  ait_dim d = (ait_dim)root->dim_count++;
  root->dims[d] = e;
  root->dim_index->infos[d] = info;
  dim_compute_range(root, d);
  *slot = d + 1;
  *out = d;
  return AIT_OK;
}

ait_status ait_dims_create(ait_graph *root) {
  root->dim_index = AIT_ARENA_NEW(root->arena, struct ait_dim_index);
  if (!root->dim_index) return AIT_OOM();
  ait_dim unset; /* dim 0, so that zeroed memory is no meaningful size */
  return ait_dim_unknown_numbered(root, 0, &unset);
}

ait_status ait_dims_clone(ait_graph *root, const ait_graph *from) {
  struct ait_dim_index *index = root->dim_index;
  index->ranges.count = 0;
  AIT_TRY(dim_refresh_ranges(root));
  for (ait_dim d = 0; d < from->dim_count; ++d) {
    ait_dim same;
    AIT_TRY(dim_intern(root, from->dims[d], from->dim_index->infos[d].poly, &same));
  }
  index->next_unknown = from->dim_index->next_unknown;
  return AIT_OK;
}

/* ---- leaves --------------------------------------------------------------------------------------------------------------------------*/

ait_status ait_dim_const(ait_graph *g, int64_t value, ait_dim *out) {
  return dim_intern(g, (ait_dim_expr){.op = AIT_DIM_CONST, .value = value}, NULL, out);
}

ait_status ait_dim_symbol(ait_graph *g, const char *name, ait_dim *out) {
  uint32_t symbol = ait_graph_find_symbol(g, name);
  if (symbol == AIT_NO_INDEX) {
    symbol = (uint32_t)g->root->symbol_count;
    AIT_TRY(ait_graph_add_symbol(g, &(ait_symbol){.name = name, .min = 0, .max = INT64_MAX, .hint = -1}));
  }
  AIT_TRY(dim_refresh_ranges(g->root));
  return dim_intern(g, (ait_dim_expr){.op = AIT_DIM_SYMBOL, .a = symbol}, NULL, out);
}

ait_symbol *ait_graph_symbol(ait_graph *g, const char *name) {
  uint32_t symbol = ait_graph_find_symbol(g, name);
  return symbol == AIT_NO_INDEX ? NULL : &g->root->symbols[symbol];
}

ait_status ait_dim_unknown_numbered(ait_graph *g, int64_t number, ait_dim *out) {
  struct ait_dim_index *index = g->root->dim_index;
  AIT_TRY(dim_intern(g, (ait_dim_expr){.op = AIT_DIM_UNKNOWN, .value = number}, NULL, out));
  if (number >= index->next_unknown) index->next_unknown = number + 1;
  return AIT_OK;
}

ait_status ait_dim_unknown(ait_graph *g, ait_dim *out) { return ait_dim_unknown_numbered(g, g->root->dim_index->next_unknown, out); }

bool ait_dim_is_const(const ait_graph *g, ait_dim d, int64_t *out) {
  const ait_dim_expr *e = expr_of(g, d);
  if (e->op != AIT_DIM_CONST) return false;
  if (out) *out = e->value;
  return true;
}

/* ---- polynomials -----------------------------------------------------------------------------------------------------------------------
 * Order of atoms and terms depends on their structure only, not on ids: text that is parsed again gives the same order. */

int dim_compare(const ait_graph *g, ait_dim a, ait_dim b) {
  while (a != b) {
    const ait_dim_expr *x = expr_of(g, a), *y = expr_of(g, b);
    if (x->op != y->op) return x->op < y->op ? -1 : 1;
    if (x->op == AIT_DIM_CONST || x->op == AIT_DIM_UNKNOWN) return x->value < y->value ? -1 : 1;
    if (x->op == AIT_DIM_SYMBOL) return x->a < y->a ? -1 : 1;
    bool left = x->a != y->a; /* equal ids are equal expressions: only one side can decide */
    a = left ? x->a : x->b;
    b = left ? y->a : y->b;
  }
  return 0;
}

/* Graded lexicographic: higher degree first; a monomial order, so that division by leading terms ends. */
static int compare_terms(const ait_graph *g, const dim_term *x, const dim_term *y) {
  if (x->degree != y->degree) return x->degree > y->degree ? -1 : 1;
  for (uint32_t i = 0; i < x->degree; ++i) {
    int c = dim_compare(g, x->atoms[i], y->atoms[i]);
    if (c) return c;
  }
  return 0;
}

void dim_get_poly(const ait_graph *g, ait_dim d, dim_poly *out) {
  const ait_dim_expr *e = expr_of(g, d);
  const dim_poly *stored = info_of(g, d)->poly;
  if (stored) {
    memcpy(out, stored, offsetof(dim_poly, terms) + stored->count * sizeof stored->terms[0]);
  } else if (e->op == AIT_DIM_CONST) {
    out->count = e->value != 0;
    out->terms[0] = (dim_term){.coef = e->value};
  } else {
    out->count = 1;
    out->terms[0] = (dim_term){.coef = 1, .degree = 1, .atoms = {d}};
  }
}

bool dim_poly_const(const dim_poly *p, int64_t *out) {
  if (p->count == 0) *out = 0;
  else if (p->count == 1 && p->terms[0].degree == 0) *out = p->terms[0].coef;
  else return false;
  return true;
}

/* Adds a term in its place. false: too many terms, or overflow; p is as before. */
bool dim_poly_add_term(const ait_graph *g, dim_poly *p, const dim_term *term) {
  if (term->coef == 0) return true;
  uint32_t at = 0;
  int c = 1;
  while (at < p->count && (c = compare_terms(g, term, &p->terms[at])) > 0) ++at;
  if (at < p->count && c == 0) {
    int64_t coef;
    if (ait_add_overflows(p->terms[at].coef, term->coef, &coef)) return false;
    p->terms[at].coef = coef;
    if (coef != 0) return true;
    memmove(&p->terms[at], &p->terms[at + 1], (p->count - at - 1) * sizeof *term);
    --p->count;
    return true;
  }
  if (p->count == DIM_MAX_TERMS) return false;
  memmove(&p->terms[at + 1], &p->terms[at], (p->count - at) * sizeof *term);
  p->terms[at] = *term;
  ++p->count;
  return true;
}

/* p += factor * q */
static bool add_scaled(const ait_graph *g, dim_poly *p, const dim_poly *q, int64_t factor) {
  for (uint32_t i = 0; i < q->count; ++i) {
    dim_term term = q->terms[i];
    if (ait_mul_overflows(term.coef, factor, &term.coef) || !dim_poly_add_term(g, p, &term)) return false;
  }
  return true;
}

static bool multiply_terms(const ait_graph *g, const dim_term *x, const dim_term *y, dim_term *out) {
  if (x->degree + y->degree > DIM_MAX_DEGREE || ait_mul_overflows(x->coef, y->coef, &out->coef)) return false;
  uint32_t i = 0, k = 0;
  out->degree = x->degree + y->degree;
  for (uint32_t n = 0; n < out->degree; ++n) {
    bool from_x = k == y->degree || (i < x->degree && dim_compare(g, x->atoms[i], y->atoms[k]) <= 0);
    out->atoms[n] = from_x ? x->atoms[i++] : y->atoms[k++];
  }
  return true;
}

static bool multiply(const ait_graph *g, const dim_poly *p, const dim_poly *q, dim_poly *out) {
  out->count = 0;
  for (uint32_t i = 0; i < p->count; ++i) {
    for (uint32_t k = 0; k < q->count; ++k) {
      dim_term term = {0};
      if (!multiply_terms(g, &p->terms[i], &q->terms[k], &term) || !dim_poly_add_term(g, out, &term)) return false;
    }
  }
  return true;
}

/* out = x / y, when it is a term with an integer coefficient. */
static bool divide_terms(const dim_term *x, const dim_term *y, dim_term *out) {
  if ((y->coef == -1 && x->coef == INT64_MIN) || x->coef % y->coef != 0 || x->degree < y->degree) return false;
  *out = (dim_term){.coef = x->coef / y->coef};
  uint32_t k = 0;
  for (uint32_t i = 0; i < x->degree; ++i) {
    if (k < y->degree && x->atoms[i] == y->atoms[k]) ++k;
    else if (out->degree < DIM_MAX_DEGREE) out->atoms[out->degree++] = x->atoms[i];
  }
  return k == y->degree;
}

/* Polynomial division without remainder. */
bool dim_poly_divide(const ait_graph *g, const dim_poly *p, const dim_poly *by, dim_poly *out) {
  dim_poly rest = *p;
  out->count = 0;
  if (by->count == 0) return false;
  for (int step = 0; rest.count; ++step) {
    dim_term quotient;
    if (step > DIM_MAX_TERMS || !divide_terms(&rest.terms[0], &by->terms[0], &quotient)) return false;
    if (!dim_poly_add_term(g, out, &quotient)) return false;
    dim_poly one = {.count = 1, .terms = {quotient}}, product;
    if (!multiply(g, by, &one, &product) || !add_scaled(g, &rest, &product, -1)) return false;
  }
  return true;
}

static ait_status build_term(ait_graph *g, const dim_term *term, ait_dim *out) {
  if (term->degree == 0) return ait_dim_const(g, term->coef, out);
  dim_poly partial = {.count = 1, .terms = {{.coef = 1, .degree = 1, .atoms = {term->atoms[0]}}}};
  ait_dim product = term->atoms[0];
  for (uint32_t i = 1; i < term->degree; ++i) {
    partial.terms[0].atoms[partial.terms[0].degree++] = term->atoms[i];
    AIT_TRY(dim_intern(g, (ait_dim_expr){.op = AIT_DIM_MUL, .a = product, .b = term->atoms[i]}, &partial, &product));
  }
  if (term->coef != 1) {
    ait_dim coef;
    AIT_TRY(ait_dim_const(g, term->coef, &coef));
    partial.terms[0].coef = term->coef;
    AIT_TRY(dim_intern(g, (ait_dim_expr){.op = AIT_DIM_MUL, .a = coef, .b = product}, &partial, &product));
  }
  *out = product;
  return AIT_OK;
}

ait_status dim_build(ait_graph *g, const dim_poly *p, ait_dim *out) {
  if (p->count == 0) return ait_dim_const(g, 0, out);
  ait_dim sum;
  AIT_TRY(build_term(g, &p->terms[0], &sum));
  dim_poly partial = {.count = 1, .terms = {p->terms[0]}};
  for (uint32_t i = 1; i < p->count; ++i) {
    ait_dim term;
    AIT_TRY(build_term(g, &p->terms[i], &term));
    partial.terms[partial.count++] = p->terms[i];
    AIT_TRY(dim_intern(g, (ait_dim_expr){.op = AIT_DIM_ADD, .a = sum, .b = term}, &partial, &sum));
  }
  *out = sum;
  return AIT_OK;
}

/* ---- making ------------------------------------------------------------------------------------------------------------------ */

ait_status dim_raw(ait_graph *g, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) {
  return dim_intern(g, (ait_dim_expr){.op = op, .a = a, .b = b}, NULL, out);
}

static ait_status make_sum(ait_graph *g, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) {
  dim_poly sum, other;
  dim_get_poly(g, a, &sum);
  dim_get_poly(g, b, &other);
  if (!add_scaled(g, &sum, &other, op == AIT_DIM_SUB ? -1 : 1)) return dim_raw(g, op, a, b, out);
  return dim_build(g, &sum, out);
}

static ait_status make_product(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) {
  dim_poly x, y, product;
  dim_get_poly(g, a, &x);
  dim_get_poly(g, b, &y);
  if (multiply(g, &x, &y, &product)) return dim_build(g, &product, out);
  bool swap = dim_compare(g, a, b) > 0;
  return dim_raw(g, AIT_DIM_MUL, swap ? b : a, swap ? a : b, out);
}

/* The one that is smaller (larger) wherever the symbols lie. */
static ait_status make_extreme(ait_graph *g, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) {
  dim_poly difference, other;
  dim_get_poly(g, a, &difference);
  dim_get_poly(g, b, &other);
  int64_t low = INT64_MIN, high = INT64_MAX;
  if (add_scaled(g, &difference, &other, -1)) {
    ait_dim d;
    AIT_TRY(dim_build(g, &difference, &d));
    low = info_of(g, d)->min;
    high = info_of(g, d)->max;
  }
  bool is_max = op == AIT_DIM_MAX;
  if (low >= 0) {
    *out = is_max ? a : b;
  } else if (high <= 0) {
    *out = is_max ? b : a;
  } else {
    const ait_dim_expr *x = expr_of(g, a), *y = expr_of(g, b);
    if (x->op == op && (x->a == b || x->b == b)) *out = a;
    else if (y->op == op && (y->a == a || y->b == a)) *out = b;
    else return dim_compare(g, a, b) > 0 ? dim_raw(g, op, b, a, out) : dim_raw(g, op, a, b, out);
  }
  return AIT_OK;
}

/* false: overflow. */
static bool power_of(int64_t base, int64_t exponent, int64_t *out) {
  enum { LONGEST = 63 };
  if (base == 0 || base == 1 || base == -1) { /* any exponent fits; only its parity matters */
    *out = exponent == 0 ? 1 : exponent % 2 ? base : base * base;
    return true;
  }
  if (exponent > LONGEST) return false;
  *out = 1;
  for (int64_t i = 0; i < exponent; ++i) {
    if (ait_mul_overflows(*out, base, out)) return false;
  }
  return true;
}

/* Small constant powers are products. */
static ait_status make_power(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) {
  enum { EXPANDED = 4 };
  int64_t exponent, base, power;
  if (!ait_dim_is_const(g, b, &exponent) || exponent < 0) return dim_raw(g, AIT_DIM_POW, a, b, out);
  if (ait_dim_is_const(g, a, &base)) {
    return power_of(base, exponent, &power) ? ait_dim_const(g, power, out) : dim_raw(g, AIT_DIM_POW, a, b, out);
  }
  if (exponent > EXPANDED) return dim_raw(g, AIT_DIM_POW, a, b, out);
  ait_dim product;
  AIT_TRY(ait_dim_const(g, 1, &product));
  for (int64_t i = 0; i < exponent; ++i) AIT_TRY(make_product(g, product, a, &product));
  *out = product;
  return AIT_OK;
}

ait_status ait_dim_make(ait_graph *g, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) {
  size_t count = g->root->dim_count;
  if (a >= count || b >= count) return ait_error(AIT_CODE_INVALID_ARGUMENT, "symbolic size: operand does not exist");
  AIT_TRY(dim_refresh_ranges(g->root));
  switch (op) {
    case AIT_DIM_ADD:
    case AIT_DIM_SUB: return make_sum(g, op, a, b, out);
    case AIT_DIM_MUL: return make_product(g, a, b, out);
    case AIT_DIM_FLOORDIV: return dim_make_floordiv(g, a, b, out);
    case AIT_DIM_CEILDIV: return dim_make_ceildiv(g, a, b, out);
    case AIT_DIM_MOD: return dim_make_mod(g, a, b, out);
    case AIT_DIM_MIN:
    case AIT_DIM_MAX: return make_extreme(g, op, a, b, out);
    case AIT_DIM_POW: return make_power(g, a, b, out);
    default: return ait_error(AIT_CODE_INVALID_ARGUMENT, "symbolic size: no such operator");
  }
}

bool ait_dim_divides(ait_graph *g, ait_dim a, ait_dim b, ait_dim *out) {
  dim_poly x, y, quotient;
  dim_get_poly(g, a, &x);
  dim_get_poly(g, b, &y);
  if (!dim_poly_divide(g, &x, &y, &quotient)) return false;
  ait_status status = dim_build(g, &quotient, out);
  if (status == AIT_OK) return true;
  ait_status_ignore(status);
  return false;
}
