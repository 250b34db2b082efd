/* How each core operator is called: operands that fit, arguments of every kind. A recipe that finds nothing fitting gives false. */
#include "graph_fuzz.h"

#include <math.h>

#define NEED(x)             \
  do {                      \
    if (!(x)) return false; \
  } while (0)

static uint32_t below(gf_gen *g, int64_t n) { return gf_below(&g->random, (uint32_t)n); }
static bool chance(gf_gen *g, uint32_t percent) { return gf_chance(&g->random, percent); }
static ait_arg ints(const ait_arg *items, int32_t count) { return ait_arg_list(items, (uint32_t)count); }
static ait_arg dim_arg(const gf_gen *g, ait_dim d) {
  int64_t n;
  return ait_dim_is_const(g->g, d, &n) ? ait_arg_int(n) : ait_arg_dim(d);
}
static int32_t rank_of(const gf_gen *g, const gf_value *v) { return gf_info(g, v)->rank; }
static ait_dtype dtype_of(const gf_gen *g, const gf_value *v) { return gf_info(g, v)->dtype; }
static int64_t axis_of(gf_gen *g, const gf_value *v) { /* as a program may spell it: negative, too */
  int32_t rank = rank_of(g, v);
  if (rank == 0) return 0;
  int64_t d = (int64_t)below(g, rank);
  return chance(g, 30) ? d - rank : d;
}
static int64_t wrap(int64_t d, int32_t rank) { return d < 0 ? d + rank : d; }
static double most(const gf_value *v) { return fmax(fabs(v->lo), fabs(v->hi)); }

/* ---- element by element --------------------------------------------------------------------------------------------------------------*/
typedef struct unary {
  const char *op;
  double need_lo, need_hi; /* of the operand */
  double lo, hi;           /* of the result; NAN: grows with the operand's */
  bool jumps, keeps;       /* takes exact operands only; keeps them exact */
  bool ints;               /* takes integers, too */
} unary;
#define BIG 1e3
static const unary unaries[] = {
    {"neg", -1e6, 1e6, NAN, NAN, false, true, true},
    {"abs", -1e6, 1e6, 0, NAN, false, true, true},
    {"sign", -BIG, BIG, -1, 1, true, true, true},
    {"ceil", -BIG, BIG, NAN, NAN, true, true, false},
    {"floor", -BIG, BIG, NAN, NAN, true, true, false},
    {"round", -BIG, BIG, NAN, NAN, true, true, false},
    {"trunc", -BIG, BIG, NAN, NAN, true, true, false},
    {"sqrt", 0.01, BIG, 0, 32, false, false, false},
    {"rsqrt", 0.01, BIG, 0, 10, false, false, false},
    {"reciprocal", 0.05, BIG, 0, 20, false, false, false},
    {"exp", -20, 5, 0, 150, false, false, false},
    {"exp2", -20, 6, 0, 64, false, false, false},
    {"expm1", -20, 5, -1, 150, false, false, false},
    {"log", 0.05, BIG, -3, 7, false, false, false},
    {"log2", 0.05, BIG, -5, 10, false, false, false},
    {"log10", 0.05, BIG, -2, 3, false, false, false},
    {"log1p", -0.9, BIG, -3, 7, false, false, false},
    {"sin", -50, 50, -1, 1, false, false, true},
    {"cos", -50, 50, -1, 1, false, false, true},
    {"tan", -1.2, 1.2, -2.6, 2.6, false, false, false},
    {"asin", -0.95, 0.95, -1.3, 1.3, false, false, false},
    {"acos", -0.95, 0.95, 0, 3, false, false, false},
    {"atan", -BIG, BIG, -1.6, 1.6, false, false, true},
    {"sinh", -5, 5, -75, 75, false, false, false},
    {"cosh", -5, 5, 1, 75, false, false, false},
    {"tanh", -BIG, BIG, -1, 1, false, false, true},
    {"asinh", -BIG, BIG, -8, 8, false, false, false},
    {"acosh", 1.05, BIG, 0, 8, false, false, false},
    {"atanh", -0.95, 0.95, -2, 2, false, false, false},
    {"erf", -BIG, BIG, -1, 1, false, false, true},
    {"erfc", -BIG, 5, 0, 2, false, false, false},
    {"sigmoid", -BIG, BIG, 0, 1, false, false, true},
    {"relu", -1e6, 1e6, 0, NAN, false, true, true},
    {"silu", -BIG, BIG, -0.3, NAN, false, false, false},
    {"hardswish", -BIG, BIG, -0.4, NAN, false, false, false},
    {"hardsigmoid", -BIG, BIG, 0, 1, false, false, false},
    {"mish", -BIG, BIG, -0.4, NAN, false, false, false},
    {"logical_not", -BIG, BIG, 0, 1, true, true, true},
    {"isnan", -1e9, 1e9, 0, 1, true, true, true},
    {"isinf", -1e9, 1e9, 0, 1, true, true, true},
};

static bool make_unary(gf_gen *g, const char *op) {
  const unary *u = unaries;
  while (strcmp(u->op, op)) ++u;
  gf_value *x = gf_pick(g, (u->ints && chance(g, 25) ? GF_ANY : GF_FLOAT) | (u->jumps ? GF_EXACT : 0), 0, 6);
  NEED(x);
  bool is_float = ait_dtype_is_float(dtype_of(g, x));
  if (dtype_of(g, x) == AIT_BOOL && (!strcmp(op, "neg") || !strcmp(op, "relu") || !strcmp(op, "sign") || !strcmp(op, "abs"))) return false;
  if (is_float) NEED(x = gf_bounded(g, x, u->need_lo, u->need_hi));
  gf_value from = *x, *y = gf_emit(g, op, GF_ARGS(gf_v(x)));
  NEED(y);
  bool flips = !strcmp(op, "neg");
  double lo = isnan(u->lo) ? (flips ? -from.hi : from.lo - 1) : u->lo;
  double hi = isnan(u->hi) ? (flips ? -from.lo : most(&from) + 1) : u->hi;
  gf_range(y, lo, hi, from.exact && u->keeps);
  return true;
}

static bool make_bitwise_not(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_INT | GF_BOOL, 0, 6);
  NEED(x);
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(x)));
  NEED(y);
  y->exact = true;
  return true;
}

/* Activations with parameters. */
static bool make_activation(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE, 0, 6);
  NEED(x);
  NEED(x = gf_bounded(g, x, -50, 50));
  gf_value from = *x, *y;
  if (!strcmp(op, "gelu")) y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_string(chance(g, 50) ? "none" : "tanh")));
  else if (!strcmp(op, "leaky_relu")) y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_float(chance(g, 50) ? 0.01 : 0.3)));
  else if (!strcmp(op, "softplus"))
    y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_float(chance(g, 50) ? 1 : 2.5), ait_arg_float(chance(g, 50) ? 20 : 3)));
  else
    y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_float(chance(g, 50) ? 1 : 0.7), ait_arg_float(chance(g, 50) ? 1 : 1.1), ait_arg_float(1)));
  NEED(y);
  gf_range(y, -most(&from) - 1, most(&from) * 1.2 + 2, false);
  return true;
}

static ait_arg scalar_of(gf_gen *g, const gf_value *x, bool small) {
  if (!ait_dtype_is_float(dtype_of(g, x)) || chance(g, 25)) return ait_arg_int((int64_t)below(g, small ? 3 : 7) - (small ? 0 : 2));
  return ait_arg_float((double)below(g, 17) / 4 - (small ? 0 : 2));
}

/* add, sub, mul, maximum, minimum. */
static bool make_arithmetic(gf_gen *g, const char *op) {
  gf_value *a = gf_pick(g, GF_FLOAT | GF_INT | GF_MODERATE, 0, 6);
  NEED(a);
  bool is_float = ait_dtype_is_float(dtype_of(g, a));
  if (is_float) NEED(a = gf_bounded(g, a, -30, 30));
  ait_arg other;
  gf_value right = {.lo = -3, .hi = 5, .exact = true};
  if (chance(g, 25)) {
    other = scalar_of(g, a, false);
  } else {
    gf_value *b = gf_partner(g, a, (is_float ? GF_FLOAT | (chance(g, 15) ? GF_INT : 0) : GF_INT) | GF_MODERATE, false);
    NEED(b);
    if (ait_dtype_is_float(dtype_of(g, b))) NEED(b = gf_bounded(g, b, -30, 30));
    other = gf_v(b);
    right = *b;
  }
  bool swap = chance(g, 30);
  gf_value left = *a, *y = gf_emit(g, op, GF_ARGS(swap ? other : gf_v(a), swap ? gf_v(a) : other));
  NEED(y);
  double bound = !strcmp(op, "mul") ? most(&left) * most(&right) : most(&left) + most(&right);
  bool picks = !strcmp(op, "maximum") || !strcmp(op, "minimum");
  gf_range(y, -bound, bound, left.exact && right.exact && (picks || !is_float));
  return true;
}

static bool make_div(gf_gen *g, const char *op) {
  gf_value *a = gf_pick(g, GF_FLOAT | GF_INT | GF_MODERATE, 0, 6);
  NEED(a);
  bool whole = strcmp(op, "div") && strcmp(op, "atan2"); /* jumps */
  if (whole && ait_dtype_is_float(dtype_of(g, a)) && !a->exact) return false;
  ait_arg other;
  bool is_float = ait_dtype_is_float(dtype_of(g, a));
  double bound = most(a);
  if (chance(g, 40) || !is_float) {
    other = is_float ? ait_arg_float((chance(g, 50) ? 1 : -1) * (0.5 + (double)below(g, 8) / 4))
                     : ait_arg_int((chance(g, 30) ? -1 : 1) * (1 + (int64_t)below(g, 5)));
  } else {
    const ait_value_info *info = gf_info(g, a);
    gf_value *b = whole ? gf_partner(g, a, GF_FLOAT | GF_EXACT, true) : NULL;
    if (!whole) b = gf_input(g, 'p', 0, info->dtype, info->rank, info->shape, chance(g, 50));
    NEED(b);
    if (whole) NEED(b = gf_bounded(g, b, 0.5, 8));
    other = gf_v(b);
  }
  bool exact = a->exact && (whole || !is_float);
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(a), other));
  NEED(y);
  gf_range(y, -2 * bound - 8, 2 * bound + 8, exact);
  return true;
}

static bool make_pow(gf_gen *g, const char *op) {
  static const double exponents[] = {2, 3, 0.5, -1, -0.5, 1, 0, 1.7};
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE, 0, 6);
  NEED(x);
  double e = exponents[below(g, 8)];
  if (e == 2 || e == 3) NEED(x = gf_bounded(g, x, -9, 9));
  else NEED(x = gf_bounded(g, x, 0.1, 9));
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(x), chance(g, 30) && e == floor(e) ? ait_arg_int((int64_t)e) : ait_arg_float(e)));
  NEED(y);
  gf_range(y, -730, 730, false);
  return true;
}

static bool make_compare(gf_gen *g, const char *op) {
  bool logical = !strncmp(op, "logical", 7);
  gf_value *a = gf_pick(g, GF_ANY | GF_EXACT, 0, 6);
  NEED(a);
  uint32_t kind = ait_dtype_is_float(dtype_of(g, a)) ? GF_FLOAT : dtype_of(g, a) == AIT_BOOL ? GF_BOOL : GF_INT;
  ait_arg other;
  if (chance(g, 40) && !logical && kind != GF_BOOL) {
    other = scalar_of(g, a, true);
  } else {
    gf_value *b = gf_partner(g, a, (logical ? GF_ANY : kind) | GF_EXACT, false);
    NEED(b);
    other = gf_v(b);
  }
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(a), other));
  NEED(y);
  gf_range(y, 0, 1, true);
  return true;
}

static bool make_bits(gf_gen *g, const char *op) {
  bool shift = !strncmp(op, "shift", 5);
  gf_value *a = gf_pick(g, shift ? GF_INT : GF_INT | GF_BOOL, 0, 6);
  NEED(a);
  ait_arg other = ait_arg_int(below(g, 7));
  if (!shift && (dtype_of(g, a) == AIT_BOOL || chance(g, 60))) {
    gf_value *b = gf_partner(g, a, dtype_of(g, a) == AIT_BOOL ? GF_BOOL : GF_INT, false);
    NEED(b);
    other = gf_v(b);
  }
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(a), other));
  NEED(y);
  y->exact = true;
  return true;
}

static bool make_where(gf_gen *g, const char *op) {
  gf_value *a = gf_pick(g, GF_FLOAT | GF_INT | GF_MODERATE, 0, 5);
  NEED(a);
  gf_value *c = gf_partner(g, a, GF_BOOL, false);
  NEED(c);
  ait_arg other = scalar_of(g, a, true);
  gf_value right = {.lo = 0, .hi = 4, .exact = true};
  if (chance(g, 60)) {
    gf_value *b = gf_partner(g, a, (ait_dtype_is_float(dtype_of(g, a)) ? GF_FLOAT : GF_INT) | GF_MODERATE, false);
    NEED(b);
    if (!gf_broadcasts(g, c, b, false)) return false;
    other = gf_v(b);
    right = *b;
  }
  gf_value left = *a, *y = gf_emit(g, op, GF_ARGS(gf_v(c), gf_v(a), other));
  NEED(y);
  gf_range(y, fmin(left.lo, right.lo), fmax(left.hi, right.hi), left.exact && right.exact);
  return true;
}

static bool make_clamp(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT | GF_INT, 0, 6);
  NEED(x);
  bool is_float = ait_dtype_is_float(dtype_of(g, x));
  ait_arg lo = is_float ? ait_arg_float(-(double)below(g, 9) / 4) : ait_arg_int(-(int64_t)below(g, 4));
  ait_arg hi = is_float ? ait_arg_float((double)below(g, 9) / 4) : ait_arg_int(below(g, 6));
  if (chance(g, 20)) lo = ait_arg_none();
  else if (chance(g, 25)) hi = ait_arg_none();
  gf_value from = *x;
  if (is_float && chance(g, 20) && from.exact) { /* bounds that are tensors */
    gf_value *b = gf_partner(g, x, GF_FLOAT | GF_EXACT, true);
    NEED(b);
    lo = gf_v(b);
  }
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(x), lo, hi));
  NEED(y);
  gf_range(y, fmin(from.lo, -3), fmax(from.hi, 4), from.exact);
  return true;
}

static bool make_cast(gf_gen *g, const char *op) {
  static const ait_dtype to[] = {AIT_F32, AIT_F32, AIT_F32, AIT_I64, AIT_I32, AIT_BOOL, AIT_F64, AIT_F16, AIT_BF16, AIT_U8, AIT_I8};
  ait_dtype dtype = to[below(g, AIT_COUNT(to))];
  bool whole = ait_dtype_is_integer(dtype);
  gf_value *x = gf_pick(g, GF_ANY | GF_MODERATE | (whole ? GF_EXACT : 0), 0, 6);
  NEED(x);
  if (g->wild && whole) return false; /* a NaN as an integer is anything */
  bool is_float = ait_dtype_is_float(dtype_of(g, x));
  if (whole && is_float) NEED(x = gf_bounded(g, x, 0, 100));
  gf_value from = *x, *y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_dtype(dtype)));
  NEED(y);
  gf_range(y, from.lo - 1, from.hi + 1, from.exact && (whole || most(&from) < 100));
  return true;
}

/* ---- reductions ----------------------------------------------------------------------------------------------------------------------*/
static int32_t some_axes(gf_gen *g, const gf_value *x, ait_arg out[AIT_MAX_RANK]) {
  int32_t rank = rank_of(g, x), n = 0;
  uint32_t chosen = below(g, 1 << rank);
  for (int32_t d = 0; d < rank; ++d)
    if (chosen >> d & 1) out[n++] = ait_arg_int(chance(g, 30) ? d - rank : d);
  if (n > 1 && chance(g, 30)) {
    ait_arg swap = out[0];
    out[0] = out[n - 1];
    out[n - 1] = swap;
  }
  return n;
}

static bool make_reduce(gf_gen *g, const char *op) {
  bool arithmetic = !strcmp(op, "sum") || !strcmp(op, "mean") || !strcmp(op, "var") || !strcmp(op, "prod");
  bool truth = !strcmp(op, "any") || !strcmp(op, "all"), picks = !strcmp(op, "amax") || !strcmp(op, "amin");
  bool no_ints = !strcmp(op, "mean") || !strcmp(op, "var");
  if (g->wild && !strcmp(op, "prod")) return false; /* denormals vanish in one order and not in another, and infinity times 0 is NaN */
  uint32_t want = (no_ints ? GF_FLOAT : truth ? GF_ANY | GF_EXACT : GF_FLOAT | GF_INT) | (picks && !chance(g, 20) ? GF_NONEMPTY : 0);
  gf_value *x = gf_pick(g, want | GF_MODERATE, 0, 5);
  NEED(x);
  bool is_float = ait_dtype_is_float(dtype_of(g, x));
  if (arithmetic && is_float) NEED(x = gf_bounded(g, x, !strcmp(op, "prod") ? -1.5 : -30, !strcmp(op, "prod") ? 1.5 : 30));
  ait_arg axes[AIT_MAX_RANK];
  int32_t n = some_axes(g, x, axes);
  bool keep = chance(g, 50);
  gf_value from = *x, *y;
  if (!strcmp(op, "var")) y = gf_emit(g, op, GF_ARGS(gf_v(x), ints(axes, n), ait_arg_float(chance(g, 50)), ait_arg_bool(keep)));
  else y = gf_emit(g, op, GF_ARGS(gf_v(x), ints(axes, n), ait_arg_bool(keep)));
  NEED(y);
  double bound = !strcmp(op, "sum")    ? most(&from) * 100
                 : !strcmp(op, "prod") ? 1e9
                 : !strcmp(op, "var")  ? 4 * most(&from) * most(&from)
                                       : most(&from);
  gf_range(y, truth ? 0 : -bound, truth ? 1 : bound, from.exact && (picks || truth || !is_float));
  return true;
}

static bool make_arg(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT | GF_INT | GF_EXACT | (chance(g, 80) ? GF_NONEMPTY : 0), 0, 5);
  NEED(x);
  bool all = chance(g, 20);
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(x), all ? ait_arg_none() : ait_arg_int(axis_of(g, x)), ait_arg_bool(chance(g, 50))));
  NEED(y);
  gf_range(y, 0, 60000, true);
  return true;
}

static bool make_with_indices(gf_gen *g, const char *op) { /* max_dim, min_dim, sort, topk */
  gf_value *x = gf_pick(g, GF_FLOAT | GF_INT | GF_EXACT | GF_NONEMPTY, 0, 5);
  NEED(x);
  gf_value from = *x, *y;
  int64_t axis = axis_of(g, x);
  ait_arg dim = ait_arg_int(axis);
  if (!strcmp(op, "sort")) {
    y = gf_emit(g, op, GF_ARGS(gf_v(x), dim, ait_arg_bool(chance(g, 50)), ait_arg_bool(true)));
  } else if (!strcmp(op, "topk")) {
    int64_t least = rank_of(g, x) ? gf_least(g, x, (int32_t)wrap(axis, rank_of(g, x))) : 1;
    y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(1 + (int64_t)below(g, least)), dim, ait_arg_bool(chance(g, 60)), ait_arg_bool(true)));
  } else {
    y = gf_emit(g, op, GF_ARGS(gf_v(x), dim, ait_arg_bool(chance(g, 50))));
  }
  NEED(y);
  gf_range(y, from.lo, from.hi, from.exact);
  gf_range(y + 1, 0, 100, true);
  return true;
}

static bool make_along(gf_gen *g, const char *op) { /* softmax, log_softmax, cumsum */
  bool sums = !strcmp(op, "cumsum");
  gf_value *x = gf_pick(g, GF_FLOAT | (sums ? GF_INT : 0) | GF_MODERATE, 0, 5);
  NEED(x);
  if (ait_dtype_is_float(dtype_of(g, x))) NEED(x = gf_bounded(g, x, -20, 20));
  gf_value from = *x, *y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(axis_of(g, x))));
  NEED(y);
  if (sums) gf_range(y, -40 * most(&from), 40 * most(&from), !ait_dtype_is_float(dtype_of(g, x)));
  else gf_range(y, sums || op[0] == 'l' ? -60 : 0, op[0] == 'l' ? 0 : 1, false);
  return true;
}

/* ---- rearranging ---------------------------------------------------------------------------------------------------------------------*/
static bool moved(gf_value *y, const gf_value *from) {
  if (!y) return false;
  gf_range(y, from->lo, from->hi, from->exact);
  return true;
}

/* Joins neighbouring dims, splits constant ones, adds ones. */
static bool make_reshape(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 0, 5);
  NEED(x);
  const ait_value_info *info = gf_info(g, x);
  ait_arg shape[AIT_MAX_RANK];
  int32_t n = 0;
  for (int32_t d = 0; d < info->rank && n < 6; ++d) {
    int64_t size;
    ait_dim dim = info->shape[d];
    while (d + 1 < info->rank && chance(g, 40)) gf_must(ait_dim_make(g->g, AIT_DIM_MUL, dim, info->shape[++d], &dim), "product");
    if (ait_dim_is_const(g->g, dim, &size) && size > 1 && chance(g, 40)) {
      int64_t part = 1 + below(g, size);
      while (size % part) --part;
      shape[n++] = ait_arg_int(part);
      size /= part;
      shape[n++] = ait_arg_int(size);
    } else {
      shape[n++] = dim_arg(g, dim);
    }
    if (chance(g, 10)) shape[n++] = ait_arg_int(1);
  }
  if (n && info->rank && chance(g, 15)) {
    bool empty = false;
    for (int32_t d = 0; d < info->rank; ++d) empty |= gf_least(g, x, d) == 0;
    if (!empty) shape[below(g, n)] = ait_arg_int(-1);
  }
  gf_value from = *x;
  return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ints(shape, n))), &from);
}

static int32_t shuffled(gf_gen *g, int32_t rank, ait_arg out[AIT_MAX_RANK]) {
  for (int32_t d = 0; d < rank; ++d) out[d] = ait_arg_int(d);
  for (int32_t d = rank - 1; d > 0; --d) {
    uint32_t k = below(g, d + 1);
    ait_arg swap = out[d];
    out[d] = out[k];
    out[k] = swap;
  }
  return rank;
}

static bool make_permute(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 0, 6);
  NEED(x);
  ait_arg dims[AIT_MAX_RANK];
  int32_t n = shuffled(g, rank_of(g, x), dims);
  gf_value from = *x;
  return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ints(dims, n))), &from);
}

static bool make_expand(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 0, 4);
  NEED(x);
  const ait_value_info *info = gf_info(g, x);
  ait_arg shape[AIT_MAX_RANK];
  int32_t n = 0;
  if (chance(g, 40)) shape[n++] = dim_arg(g, gf_some_dim(g));
  for (int32_t d = 0; d < info->rank; ++d) {
    int64_t size;
    bool one = ait_dim_is_const(g->g, info->shape[d], &size) && size == 1;
    shape[n++] = one && chance(g, 70) ? dim_arg(g, gf_some_dim(g)) : chance(g, 20) ? ait_arg_int(-1) : dim_arg(g, info->shape[d]);
  }
  gf_value from = *x;
  return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ints(shape, n))), &from);
}

typedef struct cut {
  int64_t dim, start, end, step;
} cut;
static cut some_cut(gf_gen *g, const gf_value *x) { /* also outside of the tensor, as Python allows */
  cut c = {.dim = axis_of(g, x), .start = (int64_t)below(g, 5), .end = chance(g, 30) ? INT64_MAX : (int64_t)below(g, 12), .step = 1};
  if (chance(g, 25)) c.start = -1 - (int64_t)below(g, 4);
  if (chance(g, 25)) c.end = -1 - (int64_t)below(g, 2);
  if (chance(g, 25)) c.step = 1 + (int64_t)below(g, 3);
  return c;
}

static bool make_slice(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 1, 5);
  NEED(x);
  cut c = some_cut(g, x);
  gf_value from = *x;
  return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(c.dim), ait_arg_int(c.start), ait_arg_int(c.end), ait_arg_int(c.step))), &from);
}

static bool make_slice_scatter(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 1, 5);
  NEED(x);
  cut c = some_cut(g, x);
  gf_value from = *x;
  const ait_op *slice = ait_op_find("slice");
  ait_value_info part;
  ait_status status =
      ait_infer(g->g, slice, GF_ARGS(gf_v(x), ait_arg_int(c.dim), ait_arg_int(c.start), ait_arg_int(c.end), ait_arg_int(c.step)), &part, 1);
  ait_status_ignore(status);
  if (status != AIT_OK) return false;
  for (int32_t d = 0; d < part.rank; ++d)
    if (!ait_dim_is_known(g->g, part.shape[d])) return false;
  bool is_float = ait_dtype_is_float(part.dtype);
  gf_value *src = gf_input(g,
                           is_float                 ? (g->wild ? 'w' : 'g')
                           : part.dtype == AIT_BOOL ? 'b'
                                                    : 'i',
                           0, part.dtype, part.rank, part.shape, false);
  NEED(src);
  gf_value *y =
      gf_emit(g, op, GF_ARGS(gf_v(x), gf_v(src), ait_arg_int(c.dim), ait_arg_int(c.start), ait_arg_int(c.end), ait_arg_int(c.step)));
  NEED(y);
  gf_range(y, fmin(from.lo, -9), fmax(from.hi, 9), from.exact);
  return true;
}

static bool make_select(gf_gen *g, const char *op) {
  bool scatter = !strcmp(op, "select_scatter");
  gf_value *x = gf_pick(g, GF_ANY | (chance(g, 90) ? GF_NONEMPTY : 0), 1, 5);
  NEED(x);
  int64_t dim = axis_of(g, x), least = gf_least(g, x, (int32_t)wrap(dim, rank_of(g, x)));
  int64_t index = below(g, least > 0 ? least : 1);
  if (chance(g, 30)) index = -1 - index;
  gf_value from = *x;
  if (!scatter) return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(dim), ait_arg_int(index))), &from);
  const ait_value_info *info = gf_info(g, x);
  ait_dim shape[AIT_MAX_RANK];
  int32_t n = 0;
  for (int32_t d = 0; d < info->rank; ++d)
    if (d != wrap(dim, info->rank)) shape[n++] = info->shape[d];
  bool is_float = ait_dtype_is_float(info->dtype);
  gf_value *src = gf_input(g, is_float ? 'g' : info->dtype == AIT_BOOL ? 'b' : 'i', 0, info->dtype, n, shape, false);
  NEED(src);
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(x), gf_v(src), ait_arg_int(dim), ait_arg_int(index)));
  NEED(y);
  gf_range(y, fmin(from.lo, -9), fmax(from.hi, 9), from.exact);
  return true;
}

static bool make_cat(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY | GF_MODERATE, 1, 5);
  NEED(x);
  int64_t dim = axis_of(g, x);
  const ait_value_info *info = gf_info(g, x);
  ait_arg items[4] = {gf_v(x)};
  uint32_t n = 1, count = 1 + below(g, 4);
  gf_value all = *x;
  while (n < count) {
    gf_value *y = x;
    if (chance(g, 70)) {
      ait_dim shape[AIT_MAX_RANK];
      for (int32_t d = 0; d < info->rank; ++d) shape[d] = d == wrap(dim, info->rank) ? gf_some_dim(g) : info->shape[d];
      bool is_float = ait_dtype_is_float(info->dtype);
      y = gf_input(g,
                   is_float                  ? (g->wild ? 'w' : 's')
                   : info->dtype == AIT_BOOL ? 'b'
                                             : 'i',
                   0, info->dtype, info->rank, shape, chance(g, 30));
      NEED(y);
    }
    items[n++] = gf_v(y);
    gf_range(&all, fmin(all.lo, y->lo), fmax(all.hi, y->hi), all.exact && y->exact);
  }
  return moved(gf_emit(g, op, GF_ARGS(ait_arg_list(items, n), ait_arg_int(dim))), &all);
}

static bool make_pad(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT | GF_INT | GF_MODERATE, 1, 5);
  NEED(x);
  ait_arg pads[8];
  int32_t dims = 1 + (int32_t)below(g, rank_of(g, x) < 4 ? rank_of(g, x) : 4);
  for (int32_t i = 0; i < 2 * dims; ++i) pads[i] = ait_arg_int((int64_t)below(g, 4) - (chance(g, 20) ? 1 : 0));
  gf_value from = *x, *y = gf_emit(g, op, GF_ARGS(gf_v(x), ints(pads, 2 * dims), chance(g, 50) ? ait_arg_int(0) : scalar_of(g, x, true)));
  NEED(y);
  gf_range(y, fmin(from.lo, 0), fmax(from.hi, 4), from.exact);
  return true;
}

static bool make_flip(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 1, 5);
  NEED(x);
  ait_arg axes[AIT_MAX_RANK], shifts[AIT_MAX_RANK];
  int32_t n = some_axes(g, x, axes);
  gf_value from = *x;
  if (!strcmp(op, "flip")) return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ints(axes, n))), &from);
  if (n == 0 && chance(g, 50))
    return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ints((const ait_arg[]){ait_arg_int(3)}, 1), ints(NULL, 0))), &from);
  if (n == 0) return false;
  for (int32_t i = 0; i < n; ++i) shifts[i] = ait_arg_int((int64_t)below(g, 20) - 10);
  return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ints(shifts, n), ints(axes, n))), &from);
}

static bool make_triangle(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY, 2, 5);
  NEED(x);
  gf_value from = *x, *y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int((int64_t)below(g, 9) - 4)));
  NEED(y);
  gf_range(y, fmin(from.lo, 0), fmax(from.hi, 0), from.exact);
  return true;
}

static bool make_unfold(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY | GF_NONEMPTY, 0, 4);
  NEED(x);
  int64_t dim = axis_of(g, x), least = rank_of(g, x) ? gf_least(g, x, (int32_t)wrap(dim, rank_of(g, x))) : 1;
  gf_value from = *x;
  return moved(
      gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(dim), ait_arg_int(1 + (int64_t)below(g, least)), ait_arg_int(1 + (int64_t)below(g, 3)))),
      &from);
}

/* ---- indexing ------------------------------------------------------------------------------------------------------------------------*/
static gf_value *some_indices(gf_gen *g, int64_t limit, int32_t rank, const ait_dim *shape) {
  return gf_input(g, 'n', limit > 0 ? limit : 1, chance(g, 85) ? AIT_I64 : AIT_I32, rank, shape, chance(g, 30));
}

static bool make_index_select(gf_gen *g, const char *op) { /* embedding, too */
  bool table = !strcmp(op, "embedding");
  gf_value *x = table ? gf_pick(g, GF_FLOAT | GF_NONEMPTY, 2, 2) : gf_pick(g, GF_ANY | GF_NONEMPTY, 1, 4);
  NEED(x);
  int64_t dim = table ? 0 : axis_of(g, x);
  ait_dim shape[] = {gf_some_dim(g), gf_some_dim(g)};
  gf_value *index = some_indices(g, gf_least(g, x, (int32_t)wrap(dim, rank_of(g, x))), table ? (int32_t)below(g, 3) : 1, shape);
  NEED(index);
  gf_value from = *x;
  if (table) return moved(gf_emit(g, op, GF_ARGS(gf_v(x), gf_v(index))), &from);
  return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(dim), gf_v(index))), &from);
}

/* An index of x's rank, no longer than x in the other dims. */
static gf_value *index_like(gf_gen *g, const gf_value *x, int64_t dim) {
  const ait_value_info *info = gf_info(g, x);
  ait_dim shape[AIT_MAX_RANK];
  for (int32_t d = 0; d < info->rank; ++d) {
    int64_t least = gf_least(g, x, d);
    shape[d] = d == wrap(dim, info->rank) ? gf_const(g, 1 + below(g, 5))
               : chance(g, 60)            ? info->shape[d]
                                          : gf_const(g, below(g, least + 1));
  }
  return gf_input(g, 'n', gf_least(g, x, (int32_t)wrap(dim, info->rank)), AIT_I64, info->rank, shape, chance(g, 20));
}

static bool make_gather(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_ANY | GF_NONEMPTY, 1, 4);
  NEED(x);
  int64_t dim = axis_of(g, x);
  gf_value *index = index_like(g, x, dim);
  NEED(index);
  gf_value from = *x;
  return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(dim), gf_v(index))), &from);
}

static bool make_scatter(gf_gen *g, const char *op) {
  static const char *const reduces[] = {"none", "none", "add", "multiply"};
  gf_value *x = gf_pick(g, GF_FLOAT | GF_INT | GF_NONEMPTY | GF_MODERATE, 1, 4);
  NEED(x);
  int64_t dim = axis_of(g, x);
  gf_value *index = index_like(g, x, dim);
  NEED(index);
  const char *reduce = reduces[below(g, 4)];
  ait_arg src = scalar_of(g, x, true);
  if (chance(g, 70)) {
    const ait_value_info *info = gf_info(g, index);
    gf_value *s = gf_input(g, ait_dtype_is_float(dtype_of(g, x)) ? 'g' : 'i', 0, dtype_of(g, x), info->rank, info->shape, false);
    NEED(s);
    src = gf_v(s);
  }
  gf_value from = *x, *y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(dim), gf_v(index), src, ait_arg_string(reduce)));
  NEED(y);
  bool plain = !strcmp(reduce, "none");
  double bound = plain ? fmax(most(&from), 9) : 1e9;
  gf_range(y, -bound, bound, from.exact && plain);
  return true;
}

/* Index tensors that broadcast with each other, for some of the dims. */
static bool make_index(gf_gen *g, const char *op) {
  bool put = !strcmp(op, "index_put");
  gf_value *x = gf_pick(g, (put ? GF_FLOAT | GF_INT | GF_MODERATE : GF_ANY) | GF_NONEMPTY, 1, 4);
  NEED(x);
  int32_t rank = rank_of(g, x);
  ait_arg items[AIT_MAX_RANK];
  ait_dim shape[2] = {gf_some_dim(g), gf_some_dim(g)};
  uint32_t n = 1 + below(g, rank), given = 0;
  int32_t index_rank = (int32_t)below(g, 3);
  for (uint32_t d = 0; d < n; ++d) {
    items[d] = ait_arg_none();
    if (d + 1 < n && chance(g, 40)) continue;
    ait_dim own[2] = {shape[0], shape[1]};
    if (chance(g, 25)) own[0] = gf_const(g, 1);
    gf_value *index = gf_input(g, 'n', gf_least(g, x, (int32_t)d), AIT_I64, index_rank, own, chance(g, 30));
    NEED(index);
    items[d] = gf_v(index);
    ++given;
  }
  gf_value from = *x;
  if (!put) return moved(gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_list(items, n))), &from);
  gf_value *values = gf_input(g, ait_dtype_is_float(dtype_of(g, x)) ? 'g' : 'i', 0, dtype_of(g, x), 0, NULL, false);
  NEED(values);
  bool adds = chance(g, 40);
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_list(items, n), gf_v(values), ait_arg_bool(adds)));
  NEED(y);
  gf_range(y, -1e4, 1e4, from.exact && !adds);
  return true;
}

/* ---- making --------------------------------------------------------------------------------------------------------------------------*/
static bool make_arange(gf_gen *g, const char *op) {
  bool whole = chance(g, 60);
  ait_arg end = whole && g->symbol_count && chance(g, 50) ? ait_arg_dim(g->symbols[0])
                : whole                                   ? ait_arg_int(below(g, 20))
                                                          : ait_arg_float(below(g, 20) / 2.0);
  ait_arg start = whole ? ait_arg_int((int64_t)below(g, 3)) : ait_arg_float(-0.5);
  if (end.kind == AIT_ARG_DIM) start = ait_arg_int(0);
  if (end.kind == AIT_ARG_INT && end.as.i < start.as.i) end.as.i = start.as.i;
  ait_arg step = whole ? ait_arg_int(1 + (int64_t)below(g, 3)) : ait_arg_float(0.25);
  gf_value *y = gf_emit(g, op, GF_ARGS(start, end, step, ait_arg_dtype(whole ? AIT_I64 : AIT_F32)));
  NEED(y);
  gf_range(y, -1, 50, true);
  return true;
}

static bool make_full(gf_gen *g, const char *op) {
  ait_arg shape[3];
  int32_t n = (int32_t)below(g, 4);
  for (int32_t d = 0; d < n; ++d) shape[d] = dim_arg(g, gf_some_dim(g));
  bool whole = chance(g, 30);
  gf_value *y = gf_emit(
      g, op, GF_ARGS(ints(shape, n), whole ? ait_arg_int(2) : ait_arg_float(0.75), ait_arg_dtype(whole ? AIT_I64 : gf_float_dtype(g))));
  NEED(y);
  gf_range(y, 0, 2, true);
  return true;
}

/* ---- products ------------------------------------------------------------------------------------------------------------------------*/
static char smooth(gf_gen *g) { return g->wild && chance(g, 20) ? 'w' : 's'; }

static bool make_linear(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE, 1, 5);
  NEED(x);
  NEED(x = gf_bounded(g, x, -30, 30));
  const ait_value_info *info = gf_info(g, x);
  ait_dim shape[2] = {gf_some_dim(g), info->shape[info->rank - 1]};
  gf_value from = *x, *w = gf_input(g, smooth(g), 0, info->dtype, 2, shape, chance(g, 85)), *b = NULL;
  NEED(w);
  if (chance(g, 60)) NEED(b = gf_input(g, smooth(g), 0, info->dtype, 1, shape, chance(g, 85)));
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(x), gf_v(w), b ? gf_v(b) : ait_arg_none()));
  NEED(y);
  gf_range(y, -40 * most(&from) - 1, 40 * most(&from) + 1, false);
  return true;
}

static bool make_expert_linear(gf_gen *g, const char *op) {
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE, 2, 2);
  NEED(x);
  NEED(x = gf_bounded(g, x, -30, 30));
  const ait_value_info *info = gf_info(g, x);
  int64_t count = 1 + (int64_t)below(g, 4);
  ait_dim rows = info->shape[0], shape[3] = {gf_const(g, count), gf_const(g, gf_some_size(g)), info->shape[1]};
  gf_value from = *x, *w = gf_input(g, smooth(g), 0, info->dtype, 3, shape, chance(g, 85));
  NEED(w);
  gf_value *experts = some_indices(g, count, 1, &rows);
  NEED(experts);
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(x), gf_v(w), gf_v(experts)));
  NEED(y);
  gf_range(y, -40 * most(&from) - 1, 40 * most(&from) + 1, false);
  return true;
}

static bool make_matmul(gf_gen *g, const char *op) {
  gf_value *a = gf_pick(g, GF_FLOAT | GF_MODERATE, 1, 5);
  NEED(a);
  NEED(a = gf_bounded(g, a, -10, 10));
  const ait_value_info *info = gf_info(g, a);
  ait_dim k = info->shape[info->rank - 1], shape[AIT_MAX_RANK];
  int32_t rank = 1 + (int32_t)below(g, info->rank > 2 ? info->rank : 2), n = 0;
  for (int32_t d = 0; d < rank - 2; ++d) {
    int32_t from = info->rank - rank + d;
    shape[n++] = from < 0 ? gf_some_dim(g) : chance(g, 30) ? gf_const(g, 1) : info->shape[from];
  }
  shape[n++] = k;
  if (rank > 1) shape[n++] = gf_some_dim(g);
  gf_value from = *a, *b = gf_input(g, smooth(g), 0, info->dtype, n, shape, chance(g, 40));
  NEED(b);
  gf_value *y = gf_emit(g, op, GF_ARGS(gf_v(a), gf_v(b)));
  NEED(y);
  gf_range(y, -40 * most(&from), 40 * most(&from), false);
  return true;
}

static bool make_attention(gf_gen *g, const char *op) {
  gf_value *q = gf_pick(g, GF_FLOAT | GF_MODERATE, 3, 4);
  NEED(q);
  NEED(q = gf_bounded(g, q, -5, 5));
  const ait_value_info *info = gf_info(g, q);
  int32_t rank = info->rank;
  int64_t heads = 1;
  ait_dim shape[AIT_MAX_RANK], wide[AIT_MAX_RANK], mask_shape[AIT_MAX_RANK];
  memcpy(shape, info->shape, (size_t)rank * sizeof *shape);
  bool causal = chance(g, 30);
  shape[rank - 2] = causal || chance(g, 40) ? info->shape[rank - 2] : gf_some_dim(g);
  int64_t least, max;
  ait_dim_range(g->g, shape[rank - 2], &least, &max);
  if (least < 1) shape[rank - 2] = gf_const(g, 5);
  if (rank == 4 && gf_size(g, q, 1, &heads) && heads > 1 && chance(g, 30)) shape[1] = gf_const(g, heads % 2 ? 1 : heads / 2);
  memcpy(wide, shape, sizeof wide);
  if (chance(g, 30)) wide[rank - 1] = gf_const(g, gf_some_size(g));
  /* never infinite: whether a masked key counts as zero times its value is not promised */
  gf_value *k = gf_input(g, 's', 0, info->dtype, rank, shape, false), *v = gf_input(g, 's', 0, info->dtype, rank, wide, false),
           *mask = NULL;
  NEED(k && v);
  if (!causal && chance(g, 40)) {
    mask_shape[0] = info->shape[rank - 2];
    mask_shape[1] = shape[rank - 2];
    bool truth = chance(g, 40);
    mask = gf_input(g, truth ? 'b' : 'g', 0, truth ? AIT_BOOL : info->dtype, 2, mask_shape, chance(g, 30));
    NEED(mask);
  }
  gf_value *y = gf_emit(g, op,
                        GF_ARGS(gf_v(q), gf_v(k), gf_v(v), mask ? gf_v(mask) : ait_arg_none(), ait_arg_bool(causal),
                                chance(g, 30) ? ait_arg_float(0.3) : ait_arg_none()));
  NEED(y);
  gf_range(y, -1, 1, false);
  return true;
}

/* ---- images --------------------------------------------------------------------------------------------------------------------------*/
static bool make_conv(gf_gen *g, const char *op) {
  int32_t spatial = 1 + (int32_t)below(g, chance(g, 20) ? 3 : 2);
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE | (chance(g, 90) ? GF_NONEMPTY : 0), spatial + 1, spatial + 2);
  NEED(x);
  NEED(x = gf_bounded(g, x, -10, 10));
  const ait_value_info *info = gf_info(g, x);
  int32_t channel = info->rank - spatial - 1;
  int64_t channels, groups = 1, shape[AIT_MAX_RANK];
  if (!gf_size(g, x, channel, &channels) || channels < 1) return false;
  if (chance(g, 30)) groups = chance(g, 50) ? channels : 1 + (int64_t)below(g, channels);
  while (channels % groups) --groups;
  bool transposed = chance(g, 20);
  int64_t out = (1 + (int64_t)below(g, 9)) * groups;
  if (out > 40) out = groups;
  shape[0] = transposed ? channels : out;
  shape[1] = transposed ? out / groups : channels / groups;
  ait_arg stride[3], padding[3], dilation[3], extra[3];
  for (int32_t d = 0; d < spatial; ++d) {
    int64_t least = gf_least(g, x, channel + 1 + d), s = 1 + (int64_t)below(g, 3), p = below(g, 3), dil = chance(g, 20) ? 2 : 1;
    shape[2 + d] = 1 + (int64_t)below(g, 4);
    while (shape[2 + d] > 1 && (shape[2 + d] - 1) * dil + 1 > least + 2 * p) --shape[2 + d];
    stride[d] = ait_arg_int(s);
    padding[d] = ait_arg_int(transposed && p > 0 ? p - 1 : p);
    dilation[d] = ait_arg_int(dil);
    extra[d] = ait_arg_int(transposed && s > 1 && chance(g, 30) ? 1 : 0);
  }
  /* never infinite: whether padding counts as zeros times a weight is not promised */
  gf_value from = *x, *w = gf_weight(g, 's', info->dtype, spatial + 2, shape), *b = NULL;
  NEED(w);
  if (chance(g, 50)) NEED(b = gf_weight(g, smooth(g), info->dtype, 1, &out));
  gf_value *y =
      gf_emit(g, op,
              GF_ARGS(gf_v(x), gf_v(w), b ? gf_v(b) : ait_arg_none(), ints(stride, spatial), ints(padding, spatial),
                      ints(dilation, spatial), ait_arg_int(groups), ait_arg_bool(transposed), ints(extra, transposed ? spatial : 0)));
  NEED(y);
  gf_range(y, -100 * most(&from) - 1, 100 * most(&from) + 1, false);
  return true;
}

static bool make_pool(gf_gen *g, const char *op) {
  int32_t spatial = 1 + (int32_t)below(g, chance(g, 20) ? 3 : 2);
  bool max = !strcmp(op, "max_pool");
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE | GF_NONEMPTY, spatial + 1, spatial + 2);
  NEED(x);
  ait_arg kernel[3], stride[3], padding[3], dilation[3];
  for (int32_t d = 0; d < spatial; ++d) {
    int64_t k = 1 + (int64_t)below(g, 3), least = gf_least(g, x, rank_of(g, x) - spatial + d), p = below(g, k / 2 + 1),
            dil = max && chance(g, 15) ? 2 : 1;
    if ((k - 1) * dil + 1 > least + 2 * p) k = 1, p = 0;
    kernel[d] = ait_arg_int(k);
    stride[d] = ait_arg_int(1 + (int64_t)below(g, 3));
    padding[d] = ait_arg_int(p);
    dilation[d] = ait_arg_int(dil);
  }
  bool ceil_mode = chance(g, 30), no_stride = chance(g, 20);
  gf_value from = *x, *y;
  if (max)
    y = gf_emit(g, op,
                GF_ARGS(gf_v(x), ints(kernel, spatial), ints(stride, no_stride ? 0 : spatial), ints(padding, spatial),
                        ints(dilation, spatial), ait_arg_bool(ceil_mode)));
  else
    y = gf_emit(g, op,
                GF_ARGS(gf_v(x), ints(kernel, spatial), ints(stride, no_stride ? 0 : spatial), ints(padding, spatial),
                        ait_arg_bool(ceil_mode), ait_arg_bool(chance(g, 50)), chance(g, 15) ? ait_arg_int(3) : ait_arg_none()));
  NEED(y);
  gf_range(y, fmin(from.lo, -fabs(from.hi) * 9), fmax(from.hi, 9 * most(&from)), max && from.exact);
  return true;
}

static bool make_resize(gf_gen *g, const char *op) { /* adaptive_avg_pool, upsample */
  static const char *const modes[] = {"nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear"};
  bool up = !strcmp(op, "upsample");
  uint32_t mode = below(g, 5);
  int32_t spatial = !up || mode < 2 ? 1 + (int32_t)below(g, 2) : mode == 2 ? 1 : mode == 5 ? 3 : 2;
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE | GF_NONEMPTY, up ? spatial + 2 : spatial + 1, spatial + 2);
  NEED(x);
  NEED(x = gf_bounded(g, x, -100, 100));
  ait_arg size[3];
  for (int32_t d = 0; d < spatial; ++d) size[d] = ait_arg_int(1 + (int64_t)below(g, 9));
  gf_value from = *x, *y;
  if (up)
    y = gf_emit(
        g, op,
        GF_ARGS(gf_v(x), ints(size, spatial), ait_arg_string(modes[mode]), ait_arg_bool(mode >= 2 && chance(g, 50)), ait_arg_none()));
  else y = gf_emit(g, op, GF_ARGS(gf_v(x), ints(size, spatial)));
  NEED(y);
  gf_range(y, -1.5 * most(&from), 1.5 * most(&from), false);
  return true;
}

/* ---- norms ---------------------------------------------------------------------------------------------------------------------------*/
static gf_value *maybe_weight(gf_gen *g, bool *ok, char domain, ait_dtype dtype, int32_t rank, const ait_dim *shape) {
  if (chance(g, 25)) return NULL;
  gf_value *v = gf_input(g, domain, 0, dtype, rank, shape, chance(g, 85));
  *ok &= v != NULL;
  return v;
}
static ait_arg or_none(const gf_value *v) { return v ? gf_v(v) : ait_arg_none(); }

static bool make_norm(gf_gen *g, const char *op) {
  bool batch = !strcmp(op, "batch_norm"), group = !strcmp(op, "group_norm"), rms = !strcmp(op, "rms_norm"), ok = true;
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE | GF_NONEMPTY, batch || group ? 2 : 1, 5);
  NEED(x);
  NEED(x = gf_bounded(g, x, -30, 30));
  const ait_value_info *info = gf_info(g, x);
  ait_arg eps = ait_arg_float(chance(g, 50) ? 1e-5 : 1e-3);
  gf_value *y;
  int64_t channels = 0;
  if (batch || group) {
    const ait_dim *c = &info->shape[1];
    if (!gf_size(g, x, 1, &channels)) return false;
    gf_value *w = maybe_weight(g, &ok, 'p', info->dtype, 1, c), *b = maybe_weight(g, &ok, 's', info->dtype, 1, c);
    if (batch) {
      gf_value *mean = gf_input(g, 's', 0, info->dtype, 1, c, chance(g, 90)), *var = gf_input(g, 'p', 0, info->dtype, 1, c, chance(g, 90));
      NEED(ok && mean && var);
      y = gf_emit(g, op, GF_ARGS(gf_v(x), or_none(w), or_none(b), gf_v(mean), gf_v(var), eps));
    } else {
      int64_t groups = 1 + below(g, channels);
      while (channels % groups) --groups;
      NEED(ok);
      y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(groups), or_none(w), or_none(b), eps));
    }
  } else {
    int32_t n = 1 + (int32_t)below(g, info->rank < 2 ? info->rank : 2);
    const ait_dim *tail = info->shape + info->rank - n;
    gf_value *w = maybe_weight(g, &ok, 'p', info->dtype, n, tail), *b = rms ? NULL : maybe_weight(g, &ok, 's', info->dtype, n, tail);
    NEED(ok);
    if (rms) y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(n), or_none(w), eps));
    else y = gf_emit(g, op, GF_ARGS(gf_v(x), ait_arg_int(n), or_none(w), or_none(b), eps));
  }
  NEED(y);
  gf_range(y, -100, 100, false);
  return true;
}

/* ---- recurrences ---------------------------------------------------------------------------------------------------------------------*/
static bool make_recurrent(gf_gen *g, const char *op) {
  bool lstm = !strcmp(op, "lstm"), biases = chance(g, 70), both = chance(g, 30), first = chance(g, 50);
  gf_value *x = gf_pick(g, GF_FLOAT | GF_MODERATE | GF_NONEMPTY, 3, 3);
  NEED(x);
  NEED(x = gf_bounded(g, x, -5, 5));
  const ait_value_info *info = gf_info(g, x);
  int64_t in, hidden = 1 + below(g, 7), layers = 1 + below(g, 2), gates = lstm ? 4 : 3;
  if (!gf_size(g, x, 2, &in)) return false;
  ait_arg params[16];
  uint32_t n = 0;
  for (int64_t l = 0; l < layers; ++l)
    for (int d = 0; d < (both ? 2 : 1); ++d)
      for (int k = 0; k < (biases ? 4 : 2); ++k) {
        int64_t shape[2] = {gates * hidden, k == 0 ? (l ? hidden * (both ? 2 : 1) : in) : hidden};
        gf_value *w = gf_weight(g, 's', info->dtype, k < 2 ? 2 : 1, shape);
        NEED(w);
        params[n++] = gf_v(w);
      }
  ait_dim state[3] = {gf_const(g, layers * (both ? 2 : 1)), info->shape[first ? 0 : 1], gf_const(g, hidden)};
  gf_value *h = gf_input(g, 's', 0, info->dtype, 3, state, false), *c = lstm ? gf_input(g, 's', 0, info->dtype, 3, state, false) : h;
  NEED(h && c);
  ait_arg tail[] = {ait_arg_list(params, n), ait_arg_bool(biases), ait_arg_int(layers), ait_arg_bool(both), ait_arg_bool(first)};
  gf_value *y = lstm ? gf_emit(g, op, GF_ARGS(gf_v(x), gf_v(h), gf_v(c), tail[0], tail[1], tail[2], tail[3], tail[4]))
                     : gf_emit(g, op, GF_ARGS(gf_v(x), gf_v(h), tail[0], tail[1], tail[2], tail[3], tail[4]));
  NEED(y);
  for (int i = 0; i < (lstm ? 3 : 2); ++i) gf_range(y + i, -10, 10, false);
  return true;
}

#define UNARY(name) \
  { name, make_unary, 2 }
const gf_recipe gf_core_recipes[] = {
    UNARY("neg"),
    UNARY("abs"),
    UNARY("sign"),
    UNARY("ceil"),
    UNARY("floor"),
    UNARY("round"),
    UNARY("trunc"),
    UNARY("sqrt"),
    UNARY("rsqrt"),
    UNARY("reciprocal"),
    UNARY("exp"),
    UNARY("exp2"),
    UNARY("expm1"),
    UNARY("log"),
    UNARY("log2"),
    UNARY("log10"),
    UNARY("log1p"),
    UNARY("sin"),
    UNARY("cos"),
    UNARY("tan"),
    UNARY("asin"),
    UNARY("acos"),
    UNARY("atan"),
    UNARY("sinh"),
    UNARY("cosh"),
    UNARY("tanh"),
    UNARY("asinh"),
    UNARY("acosh"),
    UNARY("atanh"),
    UNARY("erf"),
    UNARY("erfc"),
    UNARY("sigmoid"),
    UNARY("relu"),
    UNARY("silu"),
    UNARY("hardswish"),
    UNARY("hardsigmoid"),
    UNARY("mish"),
    UNARY("logical_not"),
    UNARY("isnan"),
    UNARY("isinf"),
    {"bitwise_not", make_bitwise_not, 2},
    {"gelu", make_activation, 3},
    {"softplus", make_activation, 2},
    {"elu", make_activation, 2},
    {"leaky_relu", make_activation, 2},
    {"add", make_arithmetic, 9},
    {"sub", make_arithmetic, 6},
    {"mul", make_arithmetic, 9},
    {"maximum", make_arithmetic, 3},
    {"minimum", make_arithmetic, 3},
    {"div", make_div, 5},
    {"floor_divide", make_div, 2},
    {"trunc_divide", make_div, 2},
    {"remainder", make_div, 2},
    {"fmod", make_div, 2},
    {"atan2", make_div, 2},
    {"pow", make_pow, 3},
    {"eq", make_compare, 2},
    {"ne", make_compare, 2},
    {"lt", make_compare, 2},
    {"le", make_compare, 2},
    {"gt", make_compare, 2},
    {"ge", make_compare, 2},
    {"logical_and", make_compare, 2},
    {"logical_or", make_compare, 2},
    {"logical_xor", make_compare, 2},
    {"bitwise_and", make_bits, 2},
    {"bitwise_or", make_bits, 2},
    {"bitwise_xor", make_bits, 2},
    {"shift_left", make_bits, 2},
    {"shift_right", make_bits, 2},
    {"where", make_where, 4},
    {"clamp", make_clamp, 3},
    {"cast", make_cast, 5},
    {"sum", make_reduce, 4},
    {"mean", make_reduce, 4},
    {"amax", make_reduce, 3},
    {"amin", make_reduce, 3},
    {"prod", make_reduce, 2},
    {"any", make_reduce, 2},
    {"all", make_reduce, 2},
    {"var", make_reduce, 3},
    {"argmax", make_arg, 2},
    {"argmin", make_arg, 2},
    {"max_dim", make_with_indices, 2},
    {"min_dim", make_with_indices, 2},
    {"sort", make_with_indices, 2},
    {"topk", make_with_indices, 2},
    {"softmax", make_along, 5},
    {"log_softmax", make_along, 3},
    {"cumsum", make_along, 3},
    {"reshape", make_reshape, 8},
    {"permute", make_permute, 8},
    {"expand", make_expand, 6},
    {"slice", make_slice, 6},
    {"select", make_select, 5},
    {"select_scatter", make_select, 3},
    {"slice_scatter", make_slice_scatter, 3},
    {"cat", make_cat, 5},
    {"pad", make_pad, 4},
    {"flip", make_flip, 3},
    {"roll", make_flip, 3},
    {"tril", make_triangle, 3},
    {"triu", make_triangle, 3},
    {"unfold", make_unfold, 3},
    {"gather", make_gather, 3},
    {"index", make_index, 4},
    {"index_put", make_index, 3},
    {"index_select", make_index_select, 3},
    {"embedding", make_index_select, 3},
    {"scatter", make_scatter, 3},
    {"arange", make_arange, 2},
    {"full", make_full, 2},
    {"linear", make_linear, 10},
    {"expert_linear", make_expert_linear, 3},
    {"matmul", make_matmul, 8},
    {"attention", make_attention, 6},
    {"conv", make_conv, 10},
    {"max_pool", make_pool, 4},
    {"avg_pool", make_pool, 4},
    {"adaptive_avg_pool", make_resize, 3},
    {"upsample", make_resize, 4},
    {"batch_norm", make_norm, 5},
    {"layer_norm", make_norm, 5},
    {"rms_norm", make_norm, 4},
    {"group_norm", make_norm, 4},
    {"lstm", make_recurrent, 3},
    {"gru", make_recurrent, 3},
    {NULL, NULL, 0},
};
