/* Products, convolution, pooling, resampling. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

enum { CONCAT_LIMIT = 64 }; /* windows of uneven pooling that are written out */

static oe_t mul(ox *x, oe_t a, oe_t b) { return oe_same2(x, "Mul", a, b); }

/* ---- products --------------------------------------------------------------------------------------------------------------------*/
#define PRODUCT_DTYPES (OE_WIDE | OE_BIT(U32) | OE_BIT(U64))

void oe_row_linear(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, given, PRODUCT_DTYPES), w = oe_in_as(x, 1, given.dtype), bias = oe_in_as(x, 2, given.dtype), r;
  w.rank = oe_in(x, 1).rank;
  oe_t wide = oe_cast(x, w, a.dtype);
  bias = oe_cast(x, bias, a.dtype);
  if (given.rank == 2 && w.rank == 2 && ait_dtype_is_float(a.dtype)) {
    r = OE(x, "Gemm", a.dtype, a, wide, bias);
    oe_int(x, "transB", 1);
    oe_set(x, 0, r);
    return;
  }
  if (w.rank == 2) wide = oe_transpose(x, wide, (const int64_t[]){1, 0}, 2);
  r = oe_same2(x, "MatMul", a, wide);
  if (bias.name) r = oe_same2(x, "Add", r, bias);
  oe_set(x, 0, r);
}

void oe_row_matmul(ox *x) {
  ait_dtype d = oe_result_dtype(x, 0), wide = oe_dtype_in(d, PRODUCT_DTYPES);
  oe_set(x, 0, oe_same2(x, "MatMul", oe_cast(x, oe_in_as(x, 0, d), wide), oe_cast(x, oe_in_as(x, 1, d), wide)));
}

/* ---- convolution -----------------------------------------------------------------------------------------------------------------*/
/* A missing batch (and channels, for pools) is put in front. */
static oe_t with_rank(ox *x, oe_t a, int32_t rank) {
  for (int32_t have = a.rank; have >= 0 && have < rank; ++have) a = oe_unsqueeze(x, a, 0);
  return a;
}
static oe_t back_to_rank(ox *x, oe_t a, int32_t from, int32_t rank) {
  for (; from > rank && rank >= 0; --from) a = oe_squeeze(x, a, 0);
  return a;
}

static void both_sides(const int64_t *padding, uint32_t count, int64_t *pads) {
  for (uint32_t i = 0; i < count; ++i) pads[i] = pads[count + i] = padding[i];
}

/* x, weight, bias, stride, padding, dilation, groups, transposed, output_padding */
void oe_row_conv(ox *x) {
  oe_t given = oe_in(x, 0), weight = oe_in(x, 1), a = oe_widen(x, given, OE_FLOATS);
  bool transposed = oe_arg_bool(x, 7);
  if (!ait_dtype_is_float(given.dtype)) oe_fail(x, "ONNX convolves floats only, and this is %s", ait_dtype_name(given.dtype));
  if (given.rank < 0 || weight.rank < 3 || weight.rank > given.rank + 1) oe_fail(x, "the rank of its operand is not known");
  if (oe_failed(x)) return;
  uint32_t n = (uint32_t)weight.rank - 2;
  int64_t stride[AIT_MAX_RANK], padding[AIT_MAX_RANK], dilation[AIT_MAX_RANK], extra[AIT_MAX_RANK], pads[2 * AIT_MAX_RANK];
  oe_arg_spatial(x, 3, n, 1, stride);
  oe_arg_spatial(x, 4, n, 0, padding);
  oe_arg_spatial(x, 5, n, 1, dilation);
  oe_arg_spatial(x, 8, n, 0, extra);
  both_sides(padding, n, pads);
  bool extended = false;
  for (uint32_t i = 0; i < n && transposed; ++i) { /* more output at the end is less cut off there, as far as that goes */
    int64_t less = extra[i] < padding[i] ? extra[i] : padding[i];
    pads[n + i] -= less;
    extra[i] -= less;
    extended |= extra[i] != 0;
  }
  oe_t in = with_rank(x, a, weight.rank);
  oe_t bias = oe_cast(x, oe_in_as(x, 2, given.dtype), a.dtype);
  oe_t r = OE(x, transposed ? "ConvTranspose" : "Conv", a.dtype, in, oe_cast(x, weight, a.dtype), bias);
  oe_ints(x, "strides", stride, n);
  oe_ints(x, "pads", pads, 2 * n);
  oe_ints(x, "dilations", dilation, n);
  oe_int(x, "group", oe_arg_int_or(x, 6, 1));
  if (extended) oe_ints(x, "output_padding", extra, n);
  oe_set(x, 0, back_to_rank(x, r, weight.rank, given.rank));
}

/* ---- pooling ---------------------------------------------------------------------------------------------------------------------*/
typedef struct pool {
  oe_t given, a; /* a: with batch and channels */
  uint32_t n;    /* spatial dims */
  int64_t kernel[AIT_MAX_RANK], stride[AIT_MAX_RANK], padding[AIT_MAX_RANK], dilation[AIT_MAX_RANK];
  bool ceil;
} pool;

static bool take_pool(ox *x, pool *p, uint32_t set, bool dilated, uint32_t ceil_arg) {
  *p = (pool){.given = oe_in(x, 0)};
  p->n = oe_arg_ints(x, 1, p->kernel);
  if (p->given.rank < (int32_t)p->n || p->n < 1) oe_fail(x, "the rank of its operand is not known");
  if (oe_failed(x)) return false;
  oe_arg_spatial(x, 2, p->n, 0, p->stride);
  for (uint32_t i = 0; i < p->n; ++i) p->stride[i] = p->stride[i] ? p->stride[i] : p->kernel[i];
  oe_arg_spatial(x, 3, p->n, 0, p->padding);
  for (uint32_t i = 0; i < p->n; ++i) p->dilation[i] = 1;
  if (dilated) oe_arg_spatial(x, 4, p->n, 1, p->dilation);
  p->ceil = oe_arg_bool(x, ceil_arg);
  ait_dtype d = ait_dtype_is_float(p->given.dtype) || (set & (1u << p->given.dtype)) ? oe_dtype_in(p->given.dtype, set) : AIT_F64;
  p->a = with_rank(x, oe_cast(x, p->given, d), (int32_t)p->n + 2);
  return true;
}

static void pool_attributes(ox *x, const pool *p, const int64_t *padding, bool dilated) {
  int64_t pads[2 * AIT_MAX_RANK];
  both_sides(padding, p->n, pads);
  oe_ints(x, "kernel_shape", p->kernel, p->n);
  oe_ints(x, "strides", p->stride, p->n);
  oe_ints(x, "pads", pads, 2 * p->n);
  if (dilated) oe_ints(x, "dilations", p->dilation, p->n);
}

static ait_dim spatial_dim(const pool *p, const ait_dim *shape, uint32_t i) { return shape[p->given.rank - (int32_t)p->n + (int32_t)i]; }

/* In ceil mode torch leaves out a last window that would begin in the right padding; runtimes do not agree about it. */
static oe_t cut_to_result(ox *x, const pool *p, oe_t r) {
  const ait_region_value *v = oe_result_value(x, 0);
  int64_t axes[AIT_MAX_RANK], zeros[AIT_MAX_RANK] = {0};
  ait_dim ends[AIT_MAX_RANK];
  for (uint32_t i = 0; i < p->n; ++i) {
    axes[i] = 2 + i;
    ends[i] = spatial_dim(p, v->shape, i);
  }
  return OE(x, "Slice", r.dtype, r, oe_list(x, zeros, p->n), oe_dims(x, ends, p->n), oe_list(x, axes, p->n));
}

void oe_row_max_pool(ox *x) {
  pool p;
  if (!take_pool(x, &p, OE_FLOATS | OE_BIT(U8) | OE_BIT(I8), true, 5)) return;
  oe_t r = OE(x, "MaxPool", p.a.dtype, p.a);
  pool_attributes(x, &p, p.padding, true);
  if (p.ceil) {
    oe_int(x, "ceil_mode", 1);
    r = cut_to_result(x, &p, r);
  }
  oe_set(x, 0, back_to_rank(x, r, (int32_t)p.n + 2, p.given.rank));
}

/* How much further than the padded input the last window reaches: max(0, (out - 1) stride + kernel - in - 2 padding), for each dim. */
static oe_t overhang(ox *x, const pool *p) {
  const ait_region_value *v = oe_result_value(x, 0);
  ait_dim in[AIT_MAX_RANK], out[AIT_MAX_RANK];
  int64_t rest[AIT_MAX_RANK], zeros[AIT_MAX_RANK] = {0};
  for (uint32_t i = 0; i < p->n; ++i) {
    in[i] = spatial_dim(p, p->given.shape, i);
    out[i] = spatial_dim(p, v->shape, i);
    rest[i] = p->kernel[i] - p->stride[i] - 2 * p->padding[i];
  }
  oe_t reach = oe_same2(x, "Add", mul(x, oe_dims(x, out, p->n), oe_list(x, p->stride, p->n)), oe_list(x, rest, p->n));
  return oe_same2(x, "Max", oe_same2(x, "Sub", reach, oe_dims(x, in, p->n)), oe_list(x, zeros, p->n));
}

static oe_t pad_spatial(ox *x, const pool *p, oe_t a, oe_t before, oe_t after, double value) {
  oe_t none = oe_list(x, (const int64_t[]){0, 0}, 2);
  oe_t pads = oe_concat(x, (const oe_t[]){none, before, none, after}, 4, 0);
  AIT_UNUSED(p);
  return OE(x, "Pad", a.dtype, a, pads, oe_num(x, a.dtype, value));
}

static oe_t window_sums(ox *x, const pool *p, oe_t padded) {
  static const int64_t none[AIT_MAX_RANK];
  int64_t size = 1;
  for (uint32_t i = 0; i < p->n; ++i) size *= p->kernel[i];
  oe_t mean = OE(x, "AveragePool", padded.dtype, padded);
  pool_attributes(x, p, none, false);
  return mul(x, mean, oe_num(x, padded.dtype, (double)size));
}

/* Sums over explicitly padded windows, divided by what torch divides by. */
static oe_t divided_pool(ox *x, const pool *p, bool include_pad) {
  oe_t padding = oe_list(x, p->padding, p->n), after = padding, extra = oe_none();
  if (p->ceil) {
    extra = overhang(x, p);
    after = oe_same2(x, "Add", padding, extra);
  }
  oe_t sums = window_sums(x, p, pad_spatial(x, p, p->a, padding, after, 0)), counts;
  if (oe_has(x, 6)) return oe_same2(x, "Div", sums, oe_num(x, sums.dtype, oe_arg_float(x, 6)));
  ait_dim dims[AIT_MAX_RANK];
  for (uint32_t i = 0; i < p->n; ++i) dims[i] = spatial_dim(p, p->given.shape, i);
  oe_t shape[2] = {oe_list(x, (const int64_t[]){1, 1}, 2), oe_dims(x, dims, p->n)};
  oe_t ones = oe_expand(x, oe_num(x, sums.dtype, 1), oe_concat(x, shape, 2, 0));
  if (include_pad) {
    ones = pad_spatial(x, p, ones, padding, padding, 1);
    if (p->ceil) ones = pad_spatial(x, p, ones, oe_list(x, (const int64_t[AIT_MAX_RANK]){0}, p->n), extra, 0);
  } else ones = pad_spatial(x, p, ones, padding, after, 0);
  counts = window_sums(x, p, ones);
  return oe_same2(x, "Div", sums, oe_same1(x, "Round", counts));
}

/* x, kernel, stride, padding, ceil_mode, count_include_pad, divisor */
void oe_row_avg_pool(ox *x) {
  pool p;
  if (!take_pool(x, &p, OE_FLOATS, false, 4)) return;
  bool include_pad = !oe_has(x, 5) || oe_arg_bool(x, 5);
  oe_t r;
  if (p.ceil || oe_has(x, 6)) r = divided_pool(x, &p, include_pad);
  else {
    r = OE(x, "AveragePool", p.a.dtype, p.a);
    pool_attributes(x, &p, p.padding, false);
    oe_int(x, "count_include_pad", include_pad);
  }
  oe_set(x, 0, back_to_rank(x, r, (int32_t)p.n + 2, p.given.rank));
}

/* ---- adaptive pooling: window i of n is [floor(i in / n), ceil((i + 1) in / n)) ----*/
static oe_t uneven_windows(ox *x, oe_t a, int64_t axis, int64_t in, int64_t out) {
  oe_t parts[CONCAT_LIMIT];
  for (int64_t i = 0; i < out; ++i) {
    int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;
    parts[i] = oe_reduce(x, "ReduceMean", oe_slice_const(x, a, axis, begin, end), &axis, 1, true);
  }
  return oe_concat(x, parts, (uint32_t)out, axis);
}

/* The same as a product with a matrix of shares. */
static oe_t window_product(ox *x, oe_t a, int32_t rank, int64_t axis, ait_dim in, ait_dim out) {
  oe_t n = oe_dim(x, out), size = oe_dim(x, in), one = oe_list1(x, 1);
  oe_t i = oe_unsqueeze(x, oe_range(x, oe_squeeze(x, n, 0)), 1), j = oe_range(x, oe_squeeze(x, size, 0));
  oe_t begin = oe_same2(x, "Div", mul(x, i, size), n);
  oe_t end = oe_same2(x, "Add", mul(x, oe_same2(x, "Add", i, one), size), oe_same2(x, "Sub", n, one));
  end = oe_same2(x, "Div", end, n);
  oe_t inside = OE(x, "And", AIT_BOOL, oe_bool2(x, "GreaterOrEqual", j, begin), oe_bool2(x, "Less", j, end));
  oe_t shares = oe_same2(x, "Div", oe_cast(x, inside, a.dtype), oe_cast(x, oe_same2(x, "Sub", end, begin), a.dtype));
  int64_t order[AIT_MAX_RANK];
  for (int32_t d = 0; d < rank; ++d) order[d] = d;
  order[axis] = rank - 1;
  order[rank - 1] = axis; /* its own inverse */
  oe_t last = oe_transpose(x, a, order, (uint32_t)rank);
  oe_t r = oe_same2(x, "MatMul", last, oe_transpose(x, shares, (const int64_t[]){1, 0}, 2));
  return oe_transpose(x, r, order, (uint32_t)rank);
}

void oe_row_adaptive_avg_pool(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, given, OE_FLOATS);
  const ait_region_value *v = oe_result_value(x, 0);
  const ait_arg *list;
  int32_t n = (int32_t)oe_arg_list(x, 1, &list), rank = given.rank;
  int64_t ones[AIT_MAX_RANK], in, out;
  uint32_t one_count = 0;
  if (rank < n || v->rank != rank) oe_fail(x, "the rank of its operand is not known");
  if (oe_failed(x)) return;
  for (int64_t d = rank - n; d < rank; ++d)
    if (oe_dim_const(x, v->shape[d], &out) && out == 1) ones[one_count++] = d;
  if (one_count) a = oe_reduce(x, "ReduceMean", a, ones, one_count, true);
  for (int64_t d = rank - n; d < rank; ++d) {
    bool known = oe_dim_const(x, given.shape[d], &in) && oe_dim_const(x, v->shape[d], &out);
    if (oe_dim_same(x, given.shape[d], v->shape[d]) || (oe_dim_const(x, v->shape[d], &out) && out == 1)) continue;
    if (known && out <= CONCAT_LIMIT) a = uneven_windows(x, a, d, in, out);
    else a = window_product(x, a, rank, d, given.shape[d], v->shape[d]);
  }
  oe_set(x, 0, a);
}

/* ---- resampling ------------------------------------------------------------------------------------------------------------------*/
typedef struct resize {
  oe_t a;
  int32_t rank, n;
  const ait_dim *in, *out; /* all dims */
  double scales[AIT_MAX_RANK];
  bool scaled; /* the program gave factors: coordinates are made of them, not of the sizes */
} resize;

static bool whole_factor(const ox *x, const resize *r, int32_t d, int32_t i, double *out) {
  int64_t from, to;
  if (r->scaled) *out = r->scales[i];
  else if (oe_dim_const(x, r->in[d], &from) && oe_dim_const(x, r->out[d], &to) && from > 0) *out = (double)to / (double)from;
  else return false;
  return *out >= 1 && *out == floor(*out);
}

/* torch finds the source of a nearest element in float32: floor(i * in / out). */
static oe_t nearest_along(ox *x, const resize *r, oe_t a, int32_t d, int32_t i, bool exact) {
  oe_t in = oe_squeeze(x, oe_dim(x, r->in[d]), 0), out = oe_squeeze(x, oe_dim(x, r->out[d]), 0), factor;
  if (r->scaled) factor = oe_num(x, AIT_F32, 1 / r->scales[i]);
  else factor = oe_same2(x, "Div", oe_cast(x, in, AIT_F32), oe_cast(x, out, AIT_F32));
  oe_t place = oe_cast(x, oe_range(x, out), AIT_F32);
  if (exact) place = oe_same2(x, "Add", place, oe_num(x, AIT_F32, 0.5));
  place = oe_cast(x, oe_same1(x, "Floor", mul(x, place, factor)), AIT_I64);
  place = oe_same2(x, "Min", place, oe_same2(x, "Sub", in, oe_i64(x, 1)));
  oe_t g = OE(x, "Gather", a.dtype, a, place);
  oe_int(x, "axis", d);
  return g;
}

static void nearest(ox *x, const resize *r, bool exact) {
  double factor;
  bool whole = !exact;
  float scales[AIT_MAX_RANK];
  for (int32_t d = 0; d < r->rank; ++d) scales[d] = 1;
  for (int32_t i = 0; i < r->n; ++i) {
    whole = whole && whole_factor(x, r, r->rank - r->n + i, i, &factor);
    if (whole) scales[r->rank - r->n + i] = (float)factor;
  }
  oe_t a = r->a;
  if (whole) {
    a = oe_widen(x, a, OE_BIT(F16) | OE_BIT(F32) | OE_BIT(F64) | OE_BIT(U8) | OE_BIT(I8));
    a = OE(x, "Resize", a.dtype, a, oe_none(), oe_const(x, AIT_F32, 1, (const int64_t[]){r->rank}, scales));
    oe_string(x, "coordinate_transformation_mode", "asymmetric");
    oe_string(x, "nearest_mode", "floor");
  } else {
    for (int32_t i = 0; i < r->n; ++i) a = nearest_along(x, r, a, r->rank - r->n + i, i, exact);
  }
  oe_set(x, 0, a);
}

static void smooth(ox *x, const resize *r, const char *mode, bool align) {
  oe_t scales = oe_none(), sizes = oe_none(), a = oe_widen(x, r->a, OE_FLOATS);
  if (r->scaled && !align) {
    float all[AIT_MAX_RANK];
    for (int32_t d = 0; d < r->rank; ++d) all[d] = d < r->rank - r->n ? 1 : (float)r->scales[d - (r->rank - r->n)];
    scales = oe_const(x, AIT_F32, 1, (const int64_t[]){r->rank}, all);
  } else sizes = oe_dims(x, r->out, (uint32_t)r->rank);
  a = OE(x, "Resize", a.dtype, a, oe_none(), scales, sizes);
  oe_string(x, "mode", mode);
  oe_string(x, "coordinate_transformation_mode", align ? "align_corners" : "half_pixel");
  if (!strcmp(mode, "cubic")) oe_float(x, "cubic_coeff_a", -0.75);
  oe_set(x, 0, a);
}

/* x, output_size, mode, align_corners, scales */
void oe_row_upsample(ox *x) {
  oe_t a = oe_in(x, 0);
  const ait_region_value *v = oe_result_value(x, 0);
  const ait_arg *sizes, *scales;
  resize r = {.a = a, .rank = a.rank, .n = (int32_t)oe_arg_list(x, 1, &sizes), .in = a.shape, .out = v->shape};
  uint32_t scale_count = oe_arg_list(x, 4, &scales);
  const char *mode = oe_arg_string(x, 2);
  if (a.rank < r.n + 1 || v->rank != a.rank) oe_fail(x, "the rank of its operand is not known");
  r.scaled = scale_count == (uint32_t)r.n && r.n > 0;
  for (int32_t i = 0; i < r.n && r.scaled; ++i) {
    r.scaled = scales[i].kind == AIT_ARG_FLOAT && scales[i].as.f > 0;
    if (r.scaled) r.scales[i] = scales[i].as.f;
  }
  if (oe_failed(x)) return;
  if (!strcmp(mode, "nearest")) nearest(x, &r, false);
  else if (!strcmp(mode, "nearest-exact") || !strcmp(mode, "nearest_exact")) nearest(x, &r, true);
  else if (!strcmp(mode, "linear") || !strcmp(mode, "cubic")) smooth(x, &r, mode, oe_arg_bool(x, 3));
  else oe_fail(x, "its mode is '%s'", mode);
}
