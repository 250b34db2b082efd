/* Symbolic sizes of a region for people: as text and as ranges. The ir room has the same for graphs; below the neck there is none. */
#include "artifact/region.h"
#include <stdio.h>

/* ---- text ------------------------------------------------------------------------------------------------------------------------*/
#define MAX_TEXT_DEPTH 24 /* expressions share children, so text can be exponentially longer than the table: both are bounded */

typedef struct writer {
  const ait_region *region;
  char *out;
  size_t length, size;
} writer;

static void put(writer *w, const char *text) {
  for (; *text && w->length + 1 < w->size; ++text) w->out[w->length++] = *text;
  w->out[w->length] = 0;
}

typedef enum precedence { SUM = 1, PRODUCT, POWER, ATOM } precedence;

static const struct form {
  precedence binds;
  const char *infix, *function;
} forms[] = {
    [AIT_DIM_ADD] = {SUM, " + ", NULL},           [AIT_DIM_SUB] = {SUM, " - ", NULL},   [AIT_DIM_MUL] = {PRODUCT, "*", NULL},
    [AIT_DIM_FLOORDIV] = {PRODUCT, "//", NULL},   [AIT_DIM_MOD] = {PRODUCT, "%", NULL}, [AIT_DIM_POW] = {POWER, "**", NULL},
    [AIT_DIM_CEILDIV] = {ATOM, ", ", "ceildiv("}, [AIT_DIM_MIN] = {ATOM, ", ", "min("}, [AIT_DIM_MAX] = {ATOM, ", ", "max("},
};

static void write_dim(writer *w, ait_dim d, precedence outer, int depth) {
  const ait_dim_expr *e = &w->region->dims[d];
  if (depth > MAX_TEXT_DEPTH || w->length + 1 >= w->size) {
    put(w, "...");
  } else if (e->op == AIT_DIM_CONST) {
    char number[24];
    snprintf(number, sizeof number, "%lld", (long long)e->value);
    put(w, number);
  } else if (e->op == AIT_DIM_SYMBOL) {
    put(w, w->region->symbols[e->a].name);
  } else if (e->op == AIT_DIM_UNKNOWN) {
    put(w, "?");
  } else {
    const struct form *f = &forms[e->op];
    bool parens = f->function || f->binds < outer;
    if (parens) put(w, f->function ? f->function : "(");
    precedence inner = f->function ? SUM : f->binds;
    write_dim(w, e->a, inner, depth + 1);
    put(w, f->infix);
    /* The right operand of an operator that is not associative needs its parentheses. */
    bool associative = f->function || e->op == AIT_DIM_ADD || e->op == AIT_DIM_MUL;
    write_dim(w, e->b, associative ? inner : inner + 1, depth + 1);
    if (parens) put(w, ")");
  }
}

void ait_region_dim_text(const ait_region *region, ait_dim dim, char *out, size_t size) {
  writer w = {.region = region, .out = out, .size = size};
  if (size == 0) return;
  out[0] = 0;
  write_dim(&w, dim, SUM, 0);
  if (w.length + 1 >= size && size > 4) memcpy(out + size - 4, "...", 4);
}

/* ---- ranges ----------------------------------------------------------------------------------------------------------------------
 * Bounds saturate at INT64_MIN and INT64_MAX, which mean "unbounded". */
typedef struct range {
  int64_t min, max;
} range;

static const range anything = {INT64_MIN, INT64_MAX};

static int64_t add_bound(int64_t a, int64_t b, int64_t unbounded) {
  int64_t sum;
  if (a == unbounded || b == unbounded) return unbounded;
  if (!ait_add_overflows(a, b, &sum)) return sum;
  return a > 0 ? INT64_MAX : INT64_MIN;
}

static int64_t mul_bound(int64_t a, int64_t b) {
  int64_t product;
  if (a == 0 || b == 0) return 0;
  if (!ait_mul_overflows(a, b, &product)) return product;
  return (a > 0) == (b > 0) ? INT64_MAX : INT64_MIN;
}

static int64_t negate(int64_t v) { return v == INT64_MIN ? INT64_MAX : v == INT64_MAX ? INT64_MIN : -v; }

static int64_t lower(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t upper(int64_t a, int64_t b) { return a > b ? a : b; }

static range mul_range(range a, range b) {
  int64_t p = mul_bound(a.min, b.min), q = mul_bound(a.min, b.max), r = mul_bound(a.max, b.min), s = mul_bound(a.max, b.max);
  return (range){lower(lower(p, q), lower(r, s)), upper(upper(p, q), upper(r, s))};
}

/* Only what shapes need: a non-negative number by a positive one. */
static range divide_range(range a, range b, bool ceil) {
  if (a.min < 0 || b.min < 1) return anything;
  int64_t low = a.min / b.max, high = a.max == INT64_MAX ? INT64_MAX : a.max / b.min;
  if (ceil && a.min % b.max) ++low;
  if (ceil && high != INT64_MAX && a.max % b.min) ++high;
  return (range){low, high};
}

static range range_of(const ait_region *region, const ait_dim_expr *e, range a, range b) {
  switch (e->op) {
    case AIT_DIM_CONST: return (range){e->value, e->value};
    case AIT_DIM_SYMBOL: return (range){region->symbols[e->a].min, region->symbols[e->a].max};
    case AIT_DIM_ADD: return (range){add_bound(a.min, b.min, INT64_MIN), add_bound(a.max, b.max, INT64_MAX)};
    case AIT_DIM_SUB: return (range){add_bound(a.min, negate(b.max), INT64_MIN), add_bound(a.max, negate(b.min), INT64_MAX)};
    case AIT_DIM_MUL: return mul_range(a, b);
    case AIT_DIM_FLOORDIV: return divide_range(a, b, false);
    case AIT_DIM_CEILDIV: return divide_range(a, b, true);
    case AIT_DIM_MOD: return b.min > 0 ? (range){0, a.min >= 0 ? lower(a.max, b.max - 1) : b.max - 1} : anything;
    case AIT_DIM_MIN: return (range){lower(a.min, b.min), lower(a.max, b.max)};
    case AIT_DIM_MAX: return (range){upper(a.min, b.min), upper(a.max, b.max)};
    case AIT_DIM_POW:
    case AIT_DIM_UNKNOWN: break;
  }
  return anything;
}

void ait_region_dim_ranges(const ait_region *region, int64_t *out_min, int64_t *out_max) {
  for (uint32_t i = 0; i < region->dim_count; ++i) {
    const ait_dim_expr *e = &region->dims[i];
    bool binary = e->op > AIT_DIM_SYMBOL && e->op < AIT_DIM_UNKNOWN;
    range a = binary ? (range){out_min[e->a], out_max[e->a]} : anything, b = binary ? (range){out_min[e->b], out_max[e->b]} : anything;
    range r = range_of(region, e, a, b);
    out_min[i] = r.min;
    out_max[i] = r.max;
  }
}
