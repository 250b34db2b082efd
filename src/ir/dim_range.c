/* Interval arithmetic on symbolic sizes. INT64_MIN and INT64_MAX stand for the infinities. */
#include "ir/dim_internal.h"

typedef __int128 wide;

typedef struct range {
  int64_t min, max;
} range;

static const range everything = {INT64_MIN, INT64_MAX};

static bool is_infinite(int64_t x) { return x == INT64_MIN || x == INT64_MAX; }

static int64_t saturate(wide x) { return x <= INT64_MIN ? INT64_MIN : x >= INT64_MAX ? INT64_MAX : (int64_t)x; }

/* An infinite operand wins; opposite infinities do not meet in the sums below. */
static int64_t add(int64_t a, int64_t b) {
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  return saturate((wide)a + b);
}

static int64_t negate(int64_t a) { return a == INT64_MIN ? INT64_MAX : a == INT64_MAX ? INT64_MIN : -a; }

static int64_t multiply(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  return saturate((wide)a * b);
}

int64_t dim_floordiv(int64_t a, int64_t b) {
  int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

int64_t dim_mod(int64_t a, int64_t b) { return b == -1 ? 0 : a - b * dim_floordiv(a, b); }

static int64_t divide(int64_t a, int64_t b) {
  if (is_infinite(a)) return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
  if (is_infinite(b)) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  return b == -1 ? negate(a) : dim_floordiv(a, b);
}

static range hull(range r, int64_t x) { return (range){x < r.min ? x : r.min, x > r.max ? x : r.max}; }

static range product(range a, range b) {
  range r = {INT64_MAX, INT64_MIN};
  r = hull(hull(r, multiply(a.min, b.min)), multiply(a.min, b.max));
  return hull(hull(r, multiply(a.max, b.min)), multiply(a.max, b.max));
}

static bool may_be_zero(range r) { return r.min <= 0 && r.max >= 0; }

/* Monotonic in each operand while b keeps its sign: the extremes are at corners. Infinite by infinite lies between the others. */
static range quotient(range a, range b) {
  if (may_be_zero(b)) return everything;
  range r = {INT64_MAX, INT64_MIN};
  const int64_t xs[2] = {a.min, a.max}, ys[2] = {b.min, b.max};
  for (int i = 0; i < 4; ++i) {
    int64_t x = xs[i / 2], y = ys[i % 2];
    if (!is_infinite(x) || !is_infinite(y)) r = hull(r, divide(x, y));
  }
  return r;
}

static range negated(range a) { return (range){negate(a.max), negate(a.min)}; }

static range modulo(range a, range b) {
  if (may_be_zero(b)) return everything;
  if (b.min < 0) return (range){add(b.min, 1), 0};
  range r = {0, add(b.max, -1)};
  if (a.min < 0) return r;
  if (a.max < b.min) return a;
  if (a.max < r.max) r.max = a.max;
  return r;
}

static int64_t power(int64_t base, int64_t exponent) {
  int64_t p = 1;
  for (int64_t i = 0; i < exponent && !is_infinite(p) && p != 0; ++i) {
    p = multiply(p, base);
    if (base <= 1) break;
  }
  return p;
}

static range powers(range a, range b) {
  if (a.min < 1 || b.min < 0) return everything;
  return (range){power(a.min, b.min), power(a.max, b.max)};
}

static range of(const ait_graph *root, ait_dim d) {
  const dim_info *info = &root->dim_index->infos[d];
  return (range){info->min, info->max};
}

static range symbol_range(const ait_graph *root, uint32_t symbol) {
  const ait_symbol *s = &root->symbols[symbol];
  return s->min <= s->max ? (range){s->min, s->max} : everything;
}

static range compute(const ait_graph *root, const ait_dim_expr *e) {
  if (e->op == AIT_DIM_CONST) return (range){e->value, e->value};
  if (e->op == AIT_DIM_SYMBOL) return symbol_range(root, e->a);
  if (e->op == AIT_DIM_UNKNOWN) return everything;
  range a = of(root, e->a), b = of(root, e->b);
  switch (e->op) {
    case AIT_DIM_ADD: return (range){add(a.min, b.min), add(a.max, b.max)};
    case AIT_DIM_SUB: return (range){add(a.min, negate(b.max)), add(a.max, negate(b.min))};
    case AIT_DIM_MUL: return product(a, b);
    case AIT_DIM_FLOORDIV: return quotient(a, b);
    case AIT_DIM_CEILDIV: return negated(quotient(negated(a), b));
    case AIT_DIM_MOD: return modulo(a, b);
    case AIT_DIM_MIN: return (range){a.min < b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
    case AIT_DIM_MAX: return (range){a.min > b.min ? a.min : b.min, a.max > b.max ? a.max : b.max};
    case AIT_DIM_POW: return powers(a, b);
    default: return everything;
  }
}

static bool compute_known(const ait_graph *root, const ait_dim_expr *e) {
  if (e->op == AIT_DIM_CONST) return true;
  if (e->op == AIT_DIM_UNKNOWN) return false;
  if (e->op == AIT_DIM_SYMBOL) return root->symbols[e->a].backed;
  return root->dim_index->infos[e->a].known && root->dim_index->infos[e->b].known;
}

void dim_compute_range(ait_graph *root, ait_dim d) {
  dim_info *info = &root->dim_index->infos[d];
  range r = compute(root, &root->dims[d]);
  info->min = r.min;
  info->max = r.max;
  info->known = compute_known(root, &root->dims[d]);
}

static bool ranges_changed(const ait_graph *root) {
  const dim_ranges *seen = &root->dim_index->ranges;
  if (seen->count != root->symbol_count) return true;
  for (size_t i = 0; i < seen->count; ++i) {
    const ait_symbol *s = &root->symbols[i];
    if (s->min != seen->symbols[i].min || s->max != seen->symbols[i].max || s->backed != seen->symbols[i].backed) return true;
  }
  return false;
}

static void recompute(ait_graph *root) {
  for (size_t i = 0; i < root->symbol_count; ++i) {
    const ait_symbol *s = &root->symbols[i];
    root->dim_index->ranges.symbols[i] = (struct dim_symbol_range){.min = s->min, .max = s->max, .backed = s->backed};
  }
  root->dim_index->ranges.count = root->symbol_count;
  for (ait_dim d = 0; d < root->dim_count; ++d) dim_compute_range(root, d);
}

ait_status dim_refresh_ranges(ait_graph *root) {
  dim_ranges *seen = &root->dim_index->ranges;
  AIT_TRY(ait_graph_grow(root, (void **)&seen->symbols, &seen->capacity, root->symbol_count, sizeof *seen->symbols));
  if (ranges_changed(root)) recompute(root);
  return AIT_OK;
}

/* The table of what was seen has room for all symbols: each got there through ait_dim_symbol, which refreshed it. */
static void refresh(const ait_graph *g) {
  if (ranges_changed(g->root) && g->root->dim_index->ranges.capacity >= g->root->symbol_count) recompute(g->root);
}

void ait_dim_range(const ait_graph *g, ait_dim d, int64_t *out_min, int64_t *out_max) {
  *out_min = INT64_MIN;
  *out_max = INT64_MAX;
  if (d >= g->root->dim_count) return;
  refresh(g);
  *out_min = g->root->dim_index->infos[d].min;
  *out_max = g->root->dim_index->infos[d].max;
}

bool ait_dim_is_known(const ait_graph *g, ait_dim d) {
  if (d >= g->root->dim_count) return false;
  refresh(g);
  return g->root->dim_index->infos[d].known;
}
