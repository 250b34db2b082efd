/* Composite ATen operators, written out in core ones. */
#include "passes/lower.h"
#include <float.h>
#include <math.h>

#define V(value) ait_arg_value(value)
#define I(number) ait_arg_int(number)
#define F(number) ait_arg_float(number)

static ait_status emit_dim(ait_graph *g, ait_dim_op op, ait_dim a, int64_t b, ait_dim *out) {
  ait_dim number;
  AIT_TRY(ait_dim_const(g, b, &number));
  return ait_dim_make(g, op, a, number, out);
}

static bool is_float(const ait_lower *l, uint32_t v) { return ait_dtype_is_float(l->g->values[v].dtype); }

/* Argument k as a dim of x, counted from 0. */
static bool dim_arg(const ait_lower *l, uint32_t k, uint32_t x, int64_t *out) {
  return ait_arg_as_int(l->g, &l->a[k], out) && ait_wrap_dim(out, l->g->values[x].rank) && l->g->values[x].rank > 0;
}

/* ---- element-wise ----------------------------------------------------------------------------------------------------------------*/
static double largest(ait_dtype d) {
  switch (d) {
    case AIT_F16: return 65504;
    case AIT_BF16: return 0x1.fep127;
    case AIT_F32: return (double)FLT_MAX;
    default: return DBL_MAX;
  }
}

/* nan, posinf, neginf */
static ait_status nan_to_num(ait_lower *l) {
  uint32_t x, is, out;
  if (!ait_lower_tensor(l, 0, &x)) return AIT_OK;
  if (!is_float(l, x)) return ait_dtype_is_complex(l->g->values[x].dtype) ? AIT_OK : ait_lower_done(l, x);
  double most = largest(l->g->values[x].dtype), by[3] = {0, most, -most};
  for (uint32_t k = 0; k < 3; ++k)
    if (l->a[1 + k].kind != AIT_ARG_NONE && !ait_arg_as_number(l->g, &l->a[1 + k], &by[k])) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &is, "isnan", V(x)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "where", V(is), F(by[0]), V(x)));
  for (int k = 1; k < 3; ++k) {
    AIT_TRY(AIT_EMIT(&l->w, &is, "eq", V(x), F(k == 1 ? INFINITY : -INFINITY)));
    AIT_TRY(AIT_EMIT(&l->w, &out, "where", V(is), F(by[k]), V(out)));
  }
  return ait_lower_done(l, out);
}

/* One slope for each channel, or one for all. */
static ait_status prelu(ait_lower *l) {
  uint32_t x, slope, positive, out;
  if (!ait_lower_tensor(l, 0, &x) || !ait_lower_tensor(l, 1, &slope)) return AIT_OK;
  const ait_value_info *info = &l->g->values[x], *w = &l->g->values[slope];
  int64_t count;
  if (info->rank < 0 || w->rank > 1 || w->rank < 0 || !ait_dtype_is_float(info->dtype)) return AIT_OK;
  if (w->rank == 1 && info->rank >= 2 && !(ait_dim_is_const(l->g, w->shape[0], &count) && count == 1)) {
    ait_arg shape[AIT_MAX_RANK];
    for (int32_t d = 0; d < info->rank - 1; ++d) shape[d] = d == 0 ? ait_dim_as_arg(l->g, w->shape[0]) : I(1);
    AIT_TRY(AIT_EMIT(&l->w, &slope, "reshape", V(slope), ait_arg_list(shape, (uint32_t)info->rank - 1)));
  } else AIT_TRY(AIT_EMIT(&l->w, &slope, "reshape", V(slope), ait_arg_list(NULL, 0)));
  AIT_TRY(AIT_EMIT(&l->w, &positive, "gt", V(x), I(0)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "mul", V(x), V(slope)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "where", V(positive), V(x), V(out)));
  return ait_lower_done(l, out);
}

static ait_status log_sigmoid(ait_lower *l) {
  uint32_t x, out;
  if (!ait_lower_tensor(l, 0, &x) || !is_float(l, x)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "neg", V(x)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "softplus", V(out), F(1), F(INFINITY)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "neg", V(out)));
  return ait_lower_done(l, out);
}

/* max + log(1 + exp(-|a - b|)); equal infinities have no difference. */
static ait_status logaddexp(ait_lower *l) {
  uint32_t a, b, top, gap, same, out;
  ait_dtype dtype = ait_lower_result(l)->dtype;
  if (!ait_lower_tensor(l, 0, &a) || !ait_lower_tensor(l, 1, &b) || !ait_dtype_is_float(dtype)) return AIT_OK;
  AIT_TRY(ait_emit_cast(&l->w, a, dtype, &a));
  AIT_TRY(ait_emit_cast(&l->w, b, dtype, &b));
  AIT_TRY(AIT_EMIT(&l->w, &top, "maximum", V(a), V(b)));
  AIT_TRY(AIT_EMIT(&l->w, &gap, "sub", V(a), V(b)));
  AIT_TRY(AIT_EMIT(&l->w, &gap, "abs", V(gap)));
  AIT_TRY(AIT_EMIT(&l->w, &same, "eq", V(a), V(b)));
  AIT_TRY(AIT_EMIT(&l->w, &gap, "where", V(same), I(0), V(gap)));
  AIT_TRY(AIT_EMIT(&l->w, &gap, "neg", V(gap)));
  AIT_TRY(AIT_EMIT(&l->w, &gap, "exp", V(gap)));
  AIT_TRY(AIT_EMIT(&l->w, &gap, "log1p", V(gap)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "add", V(top), V(gap)));
  return ait_lower_done(l, out);
}

/* Other names of core operators. */
static ait_status binary(ait_lower *l) {
  uint32_t out;
  if (ait_dtype_is_complex(ait_lower_result(l)->dtype)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, l->core, l->a[0], l->a[1]));
  return ait_lower_done(l, out);
}

/* x, threshold, value: x where it is beyond, NaN too. */
static ait_status threshold(ait_lower *l) {
  uint32_t x, low, out;
  double number;
  if (!ait_lower_tensor(l, 0, &x) || !ait_arg_as_number(l->g, &l->a[1], &number) || !ait_arg_as_number(l->g, &l->a[2], &number))
    return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &low, "le", V(x), l->a[1]));
  AIT_TRY(AIT_EMIT(&l->w, &out, "where", V(low), l->a[2], V(x)));
  return ait_lower_done(l, out);
}

static ait_status selu(ait_lower *l) {
  uint32_t x, out;
  if (!ait_lower_tensor(l, 0, &x) || !is_float(l, x)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "elu", V(x), F(1.6732632423543772848170429916717), F(1.0507009873554804934193349852946), F(1)));
  return ait_lower_done(l, out);
}

static ait_status celu(ait_lower *l) {
  uint32_t x, out;
  double alpha;
  if (!ait_lower_tensor(l, 0, &x) || !is_float(l, x) || !ait_arg_as_number(l->g, &l->a[1], &alpha) || alpha == 0) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "elu", V(x), F(alpha), F(1), F(1 / alpha)));
  return ait_lower_done(l, out);
}

/* The two halves of a dim: the first times the sigmoid of the second. */
static ait_status glu(ait_lower *l) {
  uint32_t x, first, second, out;
  int64_t dim;
  if (!ait_lower_tensor(l, 0, &x) || !dim_arg(l, 1, x, &dim) || !is_float(l, x) || ait_lower_result(l)->rank != l->g->values[x].rank)
    return AIT_OK;
  ait_arg half = ait_dim_as_arg(l->g, ait_lower_result(l)->shape[dim]);
  AIT_TRY(AIT_EMIT(&l->w, &first, "slice", V(x), I(dim), I(0), half));
  AIT_TRY(AIT_EMIT(&l->w, &second, "slice", V(x), I(dim), half, I(INT64_MAX)));
  AIT_TRY(AIT_EMIT(&l->w, &second, "sigmoid", V(second)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "mul", V(first), V(second)));
  return ait_lower_done(l, out);
}

/* ---- along dims ------------------------------------------------------------------------------------------------------------------*/
/* n, dim, prepend, append */
static ait_status diff(ait_lower *l) {
  enum { MOST = 8 };
  uint32_t parts[3], count = 0, x, out, later, earlier;
  int64_t n, dim;
  if (!ait_lower_tensor(l, 0, &x) || !ait_arg_as_int(l->g, &l->a[1], &n) || n < 0 || n > MOST || !dim_arg(l, 2, x, &dim)) return AIT_OK;
  ait_dtype dtype = ait_lower_result(l)->dtype;
  if (ait_lower_tensor(l, 3, &parts[count])) ++count;
  parts[count++] = x;
  if (ait_lower_tensor(l, 4, &parts[count])) ++count;
  if (n == 0) return ait_lower_done(l, x);
  ait_arg list[3];
  for (uint32_t i = 0; i < count; ++i) {
    AIT_TRY(ait_emit_cast(&l->w, parts[i], dtype, &parts[i]));
    list[i] = V(parts[i]);
  }
  out = parts[0];
  if (count > 1) AIT_TRY(AIT_EMIT(&l->w, &out, "cat", ait_arg_list(list, count), I(dim)));
  for (; n > 0; --n) {
    AIT_TRY(AIT_EMIT(&l->w, &later, "slice", V(out), I(dim), I(1), I(INT64_MAX)));
    AIT_TRY(AIT_EMIT(&l->w, &earlier, "slice", V(out), I(dim), I(0), I(-1)));
    AIT_TRY(AIT_EMIT(&l->w, &out, dtype == AIT_BOOL ? "ne" : "sub", V(later), V(earlier)));
  }
  return ait_lower_done(l, out);
}

/* stable, dim, descending */
static ait_status sort_stable(ait_lower *l) {
  uint32_t x, out[2];
  if (!ait_lower_tensor(l, 0, &x) || l->n->result_count != 2) return AIT_OK;
  ait_arg args[4] = {V(x), l->a[2], l->a[3], ait_arg_bool(true)};
  AIT_TRY(ait_build(l->g, l->w.at, "sort", l->w.name, l->w.module, args, 4, out, 2));
  for (uint32_t i = 0; i < 2; ++i)
    if (l->n->results[i] != AIT_NO_INDEX) AIT_TRY(ait_replace_value(l->g, l->n->results[i], out[i]));
  ait_graph_remove_node(l->g, l->n);
  l->done = true;
  return AIT_OK;
}

/* dim, descending; or stable, dim, descending */
static ait_status argsort(ait_lower *l) {
  uint32_t x, out[2], first = l->n->arg_count - 2;
  if (!ait_lower_tensor(l, 0, &x)) return AIT_OK;
  ait_arg args[4] = {V(x), l->a[first], l->a[first + 1], ait_arg_bool(true)};
  AIT_TRY(ait_build(l->g, l->w.at, "sort", l->w.name, l->w.module, args, 4, out, 2));
  return ait_lower_done(l, out[1]);
}

/* Each element (along dim; without one, of all) several times over: a new dim, expanded, merged. */
static ait_status repeat_interleave(ait_lower *l) {
  uint32_t x, out;
  ait_arg times, size[AIT_MAX_RANK + 1], wide[AIT_MAX_RANK + 1], final[AIT_MAX_RANK];
  int64_t dim = 0;
  bool flat = l->a[2].kind == AIT_ARG_NONE;
  if (!ait_lower_tensor(l, 0, &x) || !ait_arg_as_dim(l->g, &l->a[1], &times) || !ait_shape_args(l->g, x, size) ||
      !ait_shape_args(l->g, l->n->results[0], final) || (!flat && !dim_arg(l, 2, x, &dim)))
    return AIT_OK;
  uint32_t rank = (uint32_t)l->g->values[x].rank;
  if (rank == AIT_MAX_RANK) return AIT_OK;
  if (flat) dim = (int64_t)rank - 1; /* a row-major tensor's elements in order */
  for (uint32_t i = rank; i > (uint32_t)(dim + 1); --i) size[i] = size[i - 1];
  memcpy(wide, size, sizeof wide);
  size[dim + 1] = I(1);
  wide[dim + 1] = times;
  AIT_TRY(AIT_EMIT(&l->w, &out, "reshape", V(x), ait_arg_list(size, rank + 1)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "expand", V(out), ait_arg_list(wide, rank + 1)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "reshape", V(out), ait_arg_list(final, (uint32_t)ait_lower_result(l)->rank)));
  return ait_lower_done(l, out);
}

/* Which element each place -left .. n + right of a dim of n takes. */
static ait_status pad_places(ait_lower *l, const char *mode, ait_dim size, int64_t left, int64_t right, uint32_t *out) {
  ait_dim end, last;
  AIT_TRY(emit_dim(l->g, AIT_DIM_ADD, size, right, &end));
  AIT_TRY(emit_dim(l->g, AIT_DIM_SUB, size, 1, &last));
  AIT_TRY(AIT_EMIT(&l->w, out, "arange", I(-left), ait_dim_as_arg(l->g, end), I(1), ait_arg_dtype(AIT_I64)));
  if (!strcmp(mode, "circular")) return AIT_EMIT(&l->w, out, "remainder", V(*out), ait_dim_as_arg(l->g, size));
  if (!strcmp(mode, "replicate")) return AIT_EMIT(&l->w, out, "clamp", V(*out), I(0), ait_dim_as_arg(l->g, last));
  AIT_TRY(AIT_EMIT(&l->w, out, "abs", V(*out))); /* reflect: at 0, then at n - 1 */
  AIT_TRY(AIT_EMIT(&l->w, out, "sub", ait_dim_as_arg(l->g, last), V(*out)));
  AIT_TRY(AIT_EMIT(&l->w, out, "abs", V(*out)));
  return AIT_EMIT(&l->w, out, "sub", ait_dim_as_arg(l->g, last), V(*out));
}

static ait_status pad_with(ait_lower *l, const char *mode) {
  uint32_t x, places, count;
  int64_t pads[AIT_MAX_RANK];
  if (!ait_lower_tensor(l, 0, &x) || !ait_arg_as_ints(l->g, &l->a[1], pads, &count) || count % 2) return AIT_OK;
  int32_t rank = l->g->values[x].rank;
  if (!ait_shape_known(l->g, &l->g->values[x]) || (int32_t)count / 2 > rank) return AIT_OK;
  for (uint32_t i = 0; i < count; ++i)
    if (pads[i] < 0) return AIT_OK;
  for (uint32_t i = 0; i < count / 2; ++i) {
    int64_t dim = rank - 1 - (int32_t)i;
    if (pads[2 * i] == 0 && pads[2 * i + 1] == 0) continue;
    AIT_TRY(pad_places(l, mode, l->g->values[x].shape[dim], pads[2 * i], pads[2 * i + 1], &places));
    AIT_TRY(AIT_EMIT(&l->w, &x, "index_select", V(x), I(dim), V(places)));
  }
  return ait_lower_done(l, x);
}

static ait_status pad_reflect(ait_lower *l) { return pad_with(l, "reflect"); }
static ait_status pad_replicate(ait_lower *l) { return pad_with(l, "replicate"); }

static ait_status pad(ait_lower *l) {
  if (l->a[2].kind != AIT_ARG_STRING) return AIT_OK;
  const char *mode = l->a[2].as.string;
  if (!strcmp(mode, "reflect") || !strcmp(mode, "replicate") || !strcmp(mode, "circular")) return pad_with(l, mode);
  ait_arg pads[AIT_MAX_RANK];
  uint32_t count, x, out;
  double value = 0;
  if (strcmp(mode, "constant") || !ait_lower_tensor(l, 0, &x) || !ait_arg_as_dims(l->g, &l->a[1], pads, &count)) return AIT_OK;
  if (l->a[3].kind != AIT_ARG_NONE && !ait_arg_as_number(l->g, &l->a[3], &value)) return AIT_OK;
  if (ait_dtype_is_complex(l->g->values[x].dtype) || l->g->values[x].rank < 0) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "pad", V(x), ait_arg_list(pads, count), is_float(l, x) ? F(value) : I((int64_t)value)));
  return ait_lower_done(l, out);
}

/* ---- reductions ------------------------------------------------------------------------------------------------------------------*/
/* log(sum(exp(x))), the largest taken out; it may be infinite. */
static ait_status logsumexp(ait_lower *l) {
  uint32_t x, top, is, out, back;
  ait_dtype dtype = ait_lower_result(l)->dtype;
  bool keep = ait_arg_flag(&l->a[2]);
  if (!ait_lower_tensor(l, 0, &x) || !ait_dtype_is_float(dtype) || l->g->values[x].rank <= 0) return AIT_OK;
  for (int32_t d = 0; d < l->g->values[x].rank; ++d) {
    int64_t least, most;
    ait_dim_range(l->g, l->g->values[x].shape[d], &least, &most);
    if (least < 1) return AIT_OK; /* the largest of nothing */
  }
  AIT_TRY(ait_emit_cast(&l->w, x, dtype, &x));
  AIT_TRY(AIT_EMIT(&l->w, &top, "amax", V(x), l->a[1], ait_arg_bool(true)));
  AIT_TRY(AIT_EMIT(&l->w, &is, "isinf", V(top)));
  AIT_TRY(AIT_EMIT(&l->w, &top, "where", V(is), I(0), V(top)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "sub", V(x), V(top)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "exp", V(out)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "sum", V(out), l->a[1], ait_arg_bool(keep)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "log", V(out)));
  back = top;
  if (!keep) AIT_TRY(AIT_EMIT(&l->w, &back, "sum", V(top), l->a[1], ait_arg_bool(false))); /* of one element: without the dims */
  AIT_TRY(AIT_EMIT(&l->w, &out, "add", V(out), V(back)));
  return ait_lower_done(l, out);
}

/* ord 0, 1, 2, infinity, or any: (sum |x|^ord)^(1/ord) */
static ait_status vector_norm(ait_lower *l) {
  uint32_t x, out;
  double order;
  ait_dtype dtype = ait_lower_result(l)->dtype;
  ait_arg dims = l->a[2].kind == AIT_ARG_NONE ? ait_arg_list(NULL, 0) : l->a[2], keep = ait_arg_bool(ait_arg_flag(&l->a[3]));
  if (!ait_lower_tensor(l, 0, &x) || !ait_arg_as_number(l->g, &l->a[1], &order) || dims.kind != AIT_ARG_LIST) return AIT_OK;
  if (!is_float(l, x) || !ait_dtype_is_float(dtype) || l->g->values[x].rank < 0 || isinf(order)) return AIT_OK;
  AIT_TRY(ait_emit_cast(&l->w, x, dtype, &x));
  if (order == 2) {
    AIT_TRY(AIT_EMIT(&l->w, &out, "mul", V(x), V(x)));
    AIT_TRY(AIT_EMIT(&l->w, &out, "sum", V(out), dims, keep));
    AIT_TRY(AIT_EMIT(&l->w, &out, "sqrt", V(out)));
    return ait_lower_done(l, out);
  }
  if (order == 0) {
    AIT_TRY(AIT_EMIT(&l->w, &out, "ne", V(x), I(0)));
    AIT_TRY(AIT_EMIT(&l->w, &out, "cast", V(out), ait_arg_dtype(dtype)));
    AIT_TRY(AIT_EMIT(&l->w, &out, "sum", V(out), dims, keep));
    return ait_lower_done(l, out);
  }
  AIT_TRY(AIT_EMIT(&l->w, &out, "abs", V(x)));
  if (order != 1) AIT_TRY(AIT_EMIT(&l->w, &out, "pow", V(out), F(order)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "sum", V(out), dims, keep));
  if (order != 1) AIT_TRY(AIT_EMIT(&l->w, &out, "pow", V(out), F(1 / order)));
  return ait_lower_done(l, out);
}

/* bins, min, max: from how many elements reach each edge. Edges are torch's linspace: from both ends to the middle. */
static ait_status histc(ait_lower *l) {
  enum { MOST = 1024 };
  uint32_t x, edges, high, lower, out, over, reach;
  int64_t bins;
  double min, max;
  if (!ait_lower_tensor(l, 0, &x) || !ait_arg_as_int(l->g, &l->a[1], &bins) || !ait_arg_as_number(l->g, &l->a[2], &min) ||
      !ait_arg_as_number(l->g, &l->a[3], &max) || !(max > min) || bins < 1 || bins > MOST)
    return AIT_OK;
  ait_dtype dtype = l->g->values[x].dtype;
  ait_dim count;
  if ((dtype != AIT_F32 && dtype != AIT_F64) || !ait_shape_known(l->g, &l->g->values[x])) return AIT_OK;
  AIT_TRY(ait_dim_const(l->g, 1, &count));
  for (int32_t d = 0; d < l->g->values[x].rank; ++d) AIT_TRY(ait_dim_make(l->g, AIT_DIM_MUL, count, l->g->values[x].shape[d], &count));
  double step = (max - min) / (double)bins;
  AIT_TRY(AIT_EMIT(&l->w, &edges, "arange", I(0), I(bins), I(1), ait_arg_dtype(dtype)));
  AIT_TRY(AIT_EMIT(&l->w, &lower, "mul", V(edges), F(step)));
  AIT_TRY(AIT_EMIT(&l->w, &lower, "add", V(lower), F(min)));
  AIT_TRY(AIT_EMIT(&l->w, &high, "sub", F((double)bins), V(edges)));
  AIT_TRY(AIT_EMIT(&l->w, &high, "mul", V(high), F(step)));
  AIT_TRY(AIT_EMIT(&l->w, &high, "sub", F(max), V(high)));
  AIT_TRY(AIT_EMIT(&l->w, &over, "lt", V(edges), F((double)(bins + 1) / 2)));
  AIT_TRY(AIT_EMIT(&l->w, &edges, "where", V(over), V(lower), V(high)));
  ait_arg column[2] = {ait_dim_as_arg(l->g, count), I(1)}, zeroth = I(0);
  AIT_TRY(AIT_EMIT(&l->w, &x, "reshape", V(x), ait_arg_list(column, 2)));
  AIT_TRY(AIT_EMIT(&l->w, &reach, "ge", V(x), V(edges)));
  AIT_TRY(AIT_EMIT(&l->w, &reach, "sum", V(reach), ait_arg_list(&zeroth, 1)));
  AIT_TRY(AIT_EMIT(&l->w, &over, "gt", V(x), F(max)));
  AIT_TRY(AIT_EMIT(&l->w, &over, "sum", V(over), ait_arg_list(&zeroth, 1)));
  AIT_TRY(AIT_EMIT(&l->w, &high, "slice", V(reach), I(0), I(1), I(INT64_MAX)));
  ait_arg ends[2] = {V(high), V(over)};
  AIT_TRY(AIT_EMIT(&l->w, &out, "cat", ait_arg_list(ends, 2), I(0)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "sub", V(reach), V(out)));
  return ait_lower_done(l, out);
}

/* ---- layers ----------------------------------------------------------------------------------------------------------------------*/
/* input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps: a group norm with a group for each channel. */
static ait_status instance_norm(ait_lower *l) {
  uint32_t x, out;
  int64_t channels;
  if (!ait_lower_tensor(l, 0, &x) || !is_float(l, x) || l->g->values[x].rank < 3) return AIT_OK;
  bool own = ait_arg_flag(&l->a[5]), running = ait_arg_is_tensor(l->g, &l->a[3]);
  if (own && !running && ait_dim_is_const(l->g, l->g->values[x].shape[1], &channels) && channels > 0)
    AIT_TRY(AIT_EMIT(&l->w, &out, "group_norm", V(x), I(channels), l->a[1], l->a[2], l->a[7]));
  else if (!own && running) AIT_TRY(AIT_EMIT(&l->w, &out, "batch_norm", V(x), l->a[1], l->a[2], l->a[3], l->a[4], l->a[7]));
  else return AIT_OK;
  return ait_lower_done(l, out);
}

typedef struct bags {
  uint32_t rows, keep, ids; /* [N, D] weights; [N, 1] false for padding, AIT_NO_INDEX: none; [N] which bag */
  ait_arg count, width, n;
  ait_dtype dtype;
} bags;

static ait_status bag_ids(ait_lower *l, bags *b, uint32_t offsets, bool last_offset) {
  uint32_t at, starts = offsets;
  if (last_offset) AIT_TRY(AIT_EMIT(&l->w, &starts, "slice", V(offsets), I(0), I(0), I(-1)));
  ait_arg column[2] = {b->n, I(1)}, dim = I(1);
  AIT_TRY(AIT_EMIT(&l->w, &at, "arange", I(0), b->n, I(1), ait_arg_dtype(AIT_I64)));
  AIT_TRY(AIT_EMIT(&l->w, &at, "reshape", V(at), ait_arg_list(column, 2)));
  AIT_TRY(AIT_EMIT(&l->w, &at, "ge", V(at), V(starts)));
  AIT_TRY(AIT_EMIT(&l->w, &at, "sum", V(at), ait_arg_list(&dim, 1)));
  return AIT_EMIT(&l->w, &b->ids, "sub", V(at), I(1));
}

static ait_status bag_sums(ait_lower *l, const bags *b, uint32_t rows, bool counts, uint32_t *out) {
  ait_arg shape[2] = {b->count, counts ? I(1) : b->width}, index = V(b->ids);
  AIT_TRY(AIT_EMIT(&l->w, out, "full", ait_arg_list(shape, 2), F(0), ait_arg_dtype(b->dtype)));
  return AIT_EMIT(&l->w, out, "index_put", V(*out), ait_arg_list(&index, 1), V(rows), ait_arg_bool(true));
}

/* How many elements each bag has, padding left out. */
static ait_status bag_counts(ait_lower *l, const bags *b, uint32_t *out) {
  ait_arg shape[2] = {b->n, I(1)};
  uint32_t ones;
  if (b->keep == AIT_NO_INDEX) AIT_TRY(AIT_EMIT(&l->w, &ones, "full", ait_arg_list(shape, 2), F(1), ait_arg_dtype(b->dtype)));
  else AIT_TRY(AIT_EMIT(&l->w, &ones, "cast", V(b->keep), ait_arg_dtype(b->dtype)));
  return bag_sums(l, b, ones, true, out);
}

static ait_status bag_max(ait_lower *l, const bags *b, uint32_t *out) {
  ait_arg shape[2] = {b->count, b->width}, column[2] = {b->n, I(1)}, wide[2] = {b->n, b->width};
  uint32_t rows = b->rows, index, counts, some;
  if (b->keep != AIT_NO_INDEX) AIT_TRY(AIT_EMIT(&l->w, &rows, "where", V(b->keep), V(rows), F(-INFINITY)));
  AIT_TRY(AIT_EMIT(&l->w, out, "full", ait_arg_list(shape, 2), F(-INFINITY), ait_arg_dtype(b->dtype)));
  AIT_TRY(AIT_EMIT(&l->w, &index, "reshape", V(b->ids), ait_arg_list(column, 2)));
  AIT_TRY(AIT_EMIT(&l->w, &index, "expand", V(index), ait_arg_list(wide, 2)));
  AIT_TRY(AIT_EMIT(&l->w, out, "scatter", V(*out), I(0), V(index), V(rows), ait_arg_string("amax")));
  AIT_TRY(bag_counts(l, b, &counts));
  AIT_TRY(AIT_EMIT(&l->w, &some, "gt", V(counts), I(0)));
  return AIT_EMIT(&l->w, out, "where", V(some), V(*out), I(0));
}

/* weight, indices, offsets, scale_grad, mode (sum, mean, max), sparse, per_sample_weights, include_last_offset, padding_idx */
static ait_status embedding_bag(ait_lower *l) {
  uint32_t weight, indices, offsets, factors, counts, out;
  int64_t mode, padding = -1;
  if (!ait_lower_tensor(l, 0, &weight) || !ait_lower_tensor(l, 1, &indices) || !ait_lower_tensor(l, 2, &offsets) ||
      !ait_arg_as_int(l->g, &l->a[4], &mode) || !ait_lower_unused(l, 1) || !ait_lower_unused(l, 2) || !ait_lower_unused(l, 3))
    return AIT_OK;
  const ait_value_info *result = ait_lower_result(l), *i = &l->g->values[indices];
  bool pads = l->n->arg_count > 8 && l->a[8].kind == AIT_ARG_INT;
  if (i->rank != 1 || result->rank != 2 || !ait_shape_known(l->g, i) || !ait_shape_known(l->g, result) || !is_float(l, weight))
    return AIT_OK;
  bags b = {.keep = AIT_NO_INDEX, .count = ait_dim_as_arg(l->g, result->shape[0]), .width = ait_dim_as_arg(l->g, result->shape[1])};
  b.n = ait_dim_as_arg(l->g, i->shape[0]);
  b.dtype = l->g->values[weight].dtype;
  if (pads) padding = l->a[8].as.i;
  ait_arg column[2] = {b.n, I(1)};
  AIT_TRY(bag_ids(l, &b, offsets, ait_arg_flag(&l->a[7])));
  AIT_TRY(AIT_EMIT(&l->w, &b.rows, "embedding", V(weight), V(indices)));
  if (ait_lower_tensor(l, 6, &factors)) {
    AIT_TRY(AIT_EMIT(&l->w, &factors, "reshape", V(factors), ait_arg_list(column, 2)));
    AIT_TRY(AIT_EMIT(&l->w, &b.rows, "mul", V(b.rows), V(factors)));
  }
  if (pads && padding >= 0) {
    AIT_TRY(AIT_EMIT(&l->w, &b.keep, "ne", V(indices), I(padding)));
    AIT_TRY(AIT_EMIT(&l->w, &b.keep, "reshape", V(b.keep), ait_arg_list(column, 2)));
  }
  if (mode == 2) {
    AIT_TRY(bag_max(l, &b, &out));
    return ait_lower_done(l, out);
  }
  if (b.keep != AIT_NO_INDEX) AIT_TRY(AIT_EMIT(&l->w, &b.rows, "where", V(b.keep), V(b.rows), I(0)));
  AIT_TRY(bag_sums(l, &b, b.rows, false, &out));
  if (mode == 1) {
    AIT_TRY(bag_counts(l, &b, &counts));
    AIT_TRY(AIT_EMIT(&l->w, &counts, "clamp", V(counts), F(1)));
    AIT_TRY(AIT_EMIT(&l->w, &out, "div", V(out), V(counts)));
  }
  return ait_lower_done(l, out);
}

const ait_lower_row ait_lower_composite_rows[] = {
    {"aten.nan_to_num", NULL, nan_to_num},
    {"aten.prelu", NULL, prelu},
    {"aten.einsum", NULL, ait_lower_einsum},
    {"aten.log_sigmoid", NULL, log_sigmoid},
    {"aten.logaddexp", NULL, logaddexp},
    {"aten.divide.Tensor", "div", binary},
    {"aten.__and__.Scalar", "bitwise_and", binary},
    {"aten.__or__.Tensor", "bitwise_or", binary},
    {"aten.__or__.Scalar", "bitwise_or", binary},
    {"aten.__xor__.Tensor", "bitwise_xor", binary},
    {"aten.__xor__.Scalar", "bitwise_xor", binary},
    {"aten.__lshift__.Tensor", "shift_left", binary},
    {"aten.__lshift__.Scalar", "shift_left", binary},
    {"aten.__rshift__.Tensor", "shift_right", binary},
    {"aten.__rshift__.Scalar", "shift_right", binary},
    {"aten.threshold", NULL, threshold},
    {"aten.selu", NULL, selu},
    {"aten.celu", NULL, celu},
    {"aten.glu", NULL, glu},
    {"aten.sort.stable", NULL, sort_stable},
    {"aten.argsort", NULL, argsort},
    {"aten.argsort.stable", NULL, argsort},
    {"aten.diff", NULL, diff},
    {"aten.repeat_interleave.self_int", NULL, repeat_interleave},
    {"aten.pad", NULL, pad},
    {"aten.reflection_pad1d", NULL, pad_reflect},
    {"aten.reflection_pad2d", NULL, pad_reflect},
    {"aten.reflection_pad3d", NULL, pad_reflect},
    {"aten.replication_pad1d", NULL, pad_replicate},
    {"aten.replication_pad2d", NULL, pad_replicate},
    {"aten.replication_pad3d", NULL, pad_replicate},
    {"aten.logsumexp", NULL, logsumexp},
    {"aten.linalg_vector_norm", NULL, vector_norm},
    {"aten.histc", NULL, histc},
    {"aten.instance_norm", NULL, instance_norm},
    {"aten.embedding_bag.padding_idx", NULL, embedding_bag},
    {0},
};
