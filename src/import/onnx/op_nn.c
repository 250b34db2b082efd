/* Products, convolutions and pools. */
#include "import/onnx/onnx.h"

/* ---- products --------------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_matmul(ox_call *c) {
  uint32_t a, b;
  AIT_TRY(ox_need(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &b));
  return OX(c, "matmul", &c->outputs[0], V(a), V(b));
}

/* alpha * A' * B' + beta * C. The common case is linear. */
ait_status ox_build_gemm(ox_call *c) {
  uint32_t a, b, y, bias = ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX;
  double alpha, beta;
  bool trans_a, trans_b;
  AIT_TRY(ox_need_ranked(c, 0, &a));
  AIT_TRY(ox_need_ranked(c, 1, &b));
  AIT_TRY(ox_float(c, "alpha", 1, &alpha));
  AIT_TRY(ox_float(c, "beta", 1, &beta));
  AIT_TRY(ox_flag(c, "transA", false, &trans_a));
  AIT_TRY(ox_flag(c, "transB", false, &trans_b));
  if (ox_info(c, a)->rank != 2 || ox_info(c, b)->rank != 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operands are no matrices");
  if (trans_a) AIT_TRY(ox_transpose_last(c, a, &a));
  bool row_bias =
      bias == AIT_NO_INDEX || (ox_info(c, bias)->rank == 1 && ox_info(c, bias)->shape[0] == ox_info(c, b)->shape[trans_b ? 0 : 1]);
  bool constant = ox_get_known(c->s, b) != NULL; /* a weight: its transpose is computed once */
  if (alpha == 1 && beta == 1 && row_bias && (trans_b || constant) && ait_dtype_is_float(ox_dtype_of(c, a))) {
    if (!trans_b) AIT_TRY(ox_transpose_last(c, b, &b));
    return OX(c, "linear", &c->outputs[0], V(a), V(b), V(bias));
  }
  if (trans_b) AIT_TRY(ox_transpose_last(c, b, &b));
  AIT_TRY(OX(c, "matmul", &y, V(a), V(b)));
  if (alpha != 1) AIT_TRY(ox_with_float(c, "mul", y, alpha, &y));
  if (bias == AIT_NO_INDEX) return ox_identity(c, y);
  if (beta != 1) AIT_TRY(ox_with_float(c, "mul", bias, beta, &bias));
  return OX(c, "add", &c->outputs[0], V(y), V(bias));
}

ait_status ox_build_einsum(ox_call *c) {
  const char *equation;
  uint32_t x;
  AIT_TRY(ox_string(c, "equation", "", &equation));
  AIT_TRY(ox_need(c, 0, &x));
  /* Sizes of the result by its letters, where every one names a dim of an operand. */
  ait_value_info info = ox_tensor_info(ox_dtype_of(c, x), -1, NULL);
  const char *arrow = strstr(equation, "->");
  ait_dim *dims;
  AIT_TRY(ox_dims(c, AIT_MAX_RANK, &dims));
  int32_t rank = 0;
  bool plain = arrow && !strchr(equation, '.');
  for (const char *p = plain ? arrow + 2 : ""; *p && plain; ++p) {
    if (*p == ' ') continue;
    bool found = false;
    const char *q = equation;
    for (uint32_t i = 0; i < c->input_count && q < arrow; ++i) {
      int32_t axis = 0;
      for (; q < arrow && *q != ','; ++q) {
        if (*q == ' ') continue;
        if (*q == *p && !found && ox_has(c, i) && axis < ox_info(c, c->inputs[i])->rank && rank < AIT_MAX_RANK) {
          dims[rank] = ox_info(c, c->inputs[i])->shape[axis];
          found = true;
        }
        ++axis;
      }
      ++q;
    }
    plain = found;
    rank += found;
  }
  if (plain) info = ox_tensor_info(info.dtype, rank, dims);
  return OX_RAW(c, "aten.einsum", &info, &c->outputs[0], S(equation), ox_list_values(c, c->inputs, c->input_count));
}

/* ---- windows ---------------------------------------------------------------------------------------------------------------------*/

typedef struct window {
  int32_t spatial;
  int64_t kernel[AIT_MAX_RANK], stride[AIT_MAX_RANK], dilation[AIT_MAX_RANK];
  ait_dim begin[AIT_MAX_RANK], end[AIT_MAX_RANK]; /* padding */
} window;

/* auto_pad SAME: out = ceil(in / stride); what is left over goes to the end (UPPER) or the beginning. */
static ait_status same_padding(ox_call *c, uint32_t x, bool upper, window *w) {
  for (int32_t i = 0; i < w->spatial; ++i) {
    ait_dim in = ox_info(c, x)->shape[2 + i], total, half, rest;
    AIT_TRY(ox_dim_int(c, AIT_DIM_CEILDIV, in, w->stride[i], &total));
    AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, total, 1, &total));
    AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, total, w->stride[i], &total));
    AIT_TRY(ox_dim_int(c, AIT_DIM_ADD, total, (w->kernel[i] - 1) * w->dilation[i] + 1, &total));
    AIT_TRY(ox_dim(c, AIT_DIM_SUB, total, in, &total));
    AIT_TRY(ox_dim_int(c, AIT_DIM_MAX, total, 0, &total));
    AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, total, 2, &half));
    AIT_TRY(ox_dim(c, AIT_DIM_SUB, total, half, &rest));
    w->begin[i] = upper ? half : rest;
    w->end[i] = upper ? rest : half;
  }
  return AIT_OK;
}

static ait_status read_window(ox_call *c, uint32_t x, window *w) {
  int64_t pads[2 * AIT_MAX_RANK];
  const char *auto_pad;
  int32_t n = w->spatial;
  AIT_TRY(ox_n_ints(c, "strides", n, 1, w->stride));
  AIT_TRY(ox_n_ints(c, "dilations", n, 1, w->dilation));
  AIT_TRY(ox_string(c, "auto_pad", "NOTSET", &auto_pad));
  for (int32_t i = 0; i < n; ++i) {
    bool fits = w->kernel[i] > 0 && w->stride[i] > 0 && w->dilation[i] > 0 && w->kernel[i] < INT32_MAX && w->stride[i] < INT32_MAX &&
                w->dilation[i] < INT32_MAX;
    if (!fits) return ox_fail(c, AIT_CODE_INVALID_MODEL, "kernel, stride or dilation of axis %d is not positive, or huge", (int)i);
  }
  if (strcmp(auto_pad, "SAME_UPPER") == 0 || strcmp(auto_pad, "SAME_LOWER") == 0) return same_padding(c, x, auto_pad[5] == 'U', w);
  AIT_TRY(ox_n_ints(c, "pads", 2 * n, 0, pads));
  for (int32_t i = 0; i < n; ++i) {
    if (strcmp(auto_pad, "VALID") == 0) pads[i] = pads[n + i] = 0;
    if (pads[i] < 0 || pads[n + i] < 0 || pads[i] > INT32_MAX || pads[n + i] > INT32_MAX)
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "padding of axis %d is negative or huge", (int)i);
  }
  AIT_TRY(ox_dim_ints(c, pads, n, w->begin));
  return ox_dim_ints(c, pads + n, n, w->end);
}

/* Padding that is constant and the same on both sides: out[i]. */
static bool symmetric(const ox_call *c, const window *w, int64_t out[AIT_MAX_RANK]) {
  for (int32_t i = 0; i < w->spatial; ++i)
    if (w->begin[i] != w->end[i] || !ait_dim_is_const(c->g, w->begin[i], &out[i])) return false;
  return true;
}

static ait_status pad_by(ox_call *c, uint32_t x, const window *w, ait_arg fill, uint32_t *out) {
  ait_dim pads[2 * AIT_MAX_RANK];
  for (int32_t i = 0; i < w->spatial; ++i) {
    pads[2 * (w->spatial - 1 - i)] = w->begin[i];
    pads[2 * (w->spatial - 1 - i) + 1] = w->end[i];
  }
  return OX(c, "pad", out, V(x), ox_list_dims(c, pads, 2 * (size_t)w->spatial), fill);
}

/* ---- convolutions ----------------------------------------------------------------------------------------------------------------*/

static ait_status conv_window(ox_call *c, uint32_t x, uint32_t weight, window *w) {
  int32_t rank = ox_info(c, weight)->rank;
  if (ox_info(c, x)->rank != rank || rank < 3)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "operand and weight have ranks %d and %d", (int)ox_info(c, x)->rank, (int)rank);
  w->spatial = rank - 2;
  const int64_t *kernel;
  size_t n;
  AIT_TRY(ox_ints(c, "kernel_shape", &kernel, &n));
  for (int32_t i = 0; i < w->spatial; ++i) {
    bool is_const = ox_const_dim(c, weight, 2 + i, &w->kernel[i]);
    if (kernel && (n != (size_t)w->spatial || (is_const && w->kernel[i] != kernel[i])))
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "kernel_shape is not the shape of the weight");
    if (!is_const && !kernel) return ox_fail(c, AIT_CODE_UNSUPPORTED, "the size of the kernel is not known");
    if (kernel) w->kernel[i] = kernel[i];
  }
  return read_window(c, x, w);
}

ait_status ox_conv(ox_call *c, uint32_t x, uint32_t weight, uint32_t bias, uint32_t *out) {
  window w;
  int64_t groups, padding[AIT_MAX_RANK] = {0};
  AIT_TRY(ox_int(c, "group", 1, &groups));
  AIT_TRY(conv_window(c, x, weight, &w));
  size_t n = (size_t)w.spatial;
  if (!symmetric(c, &w, padding)) {
    AIT_TRY(pad_by(c, x, &w, ait_dtype_is_float(ox_dtype_of(c, x)) ? F(0) : I(0), &x));
    memset(padding, 0, sizeof padding);
  }
  return OX(c, "conv", out, V(x), V(weight), V(bias), ox_list_ints(c, w.stride, n), ox_list_ints(c, padding, n),
            ox_list_ints(c, w.dilation, n), I(groups));
}

ait_status ox_build_conv(ox_call *c) {
  uint32_t x, weight;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &weight));
  return ox_conv(c, x, weight, ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX, &c->outputs[0]);
}

/* What a transposed convolution without padding gives, cut (or padded) to what is asked for. */
typedef struct transposed {
  window w;
  int64_t output_padding[AIT_MAX_RANK];
  ait_dim cut_begin[AIT_MAX_RANK], cut_end[AIT_MAX_RANK];
} transposed;

static ait_status transposed_cuts(ox_call *c, uint32_t x, transposed *t) {
  const int64_t *shape;
  size_t n;
  const char *auto_pad;
  AIT_TRY(ox_string(c, "auto_pad", "NOTSET", &auto_pad));
  AIT_TRY(ox_ints(c, "output_shape", &shape, &n));
  bool same = strcmp(auto_pad, "SAME_UPPER") == 0 || strcmp(auto_pad, "SAME_LOWER") == 0;
  if (shape && n != (size_t)t->w.spatial && n != (size_t)t->w.spatial + 2)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "output_shape has %zu sizes", n);
  if (shape && n == (size_t)t->w.spatial + 2) shape += 2;
  for (int32_t i = 0; i < t->w.spatial; ++i) {
    ait_dim in = ox_info(c, x)->shape[2 + i], full, wanted;
    t->cut_begin[i] = t->w.begin[i];
    t->cut_end[i] = t->w.end[i];
    if (!shape && !same) continue;
    AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, in, 1, &full));
    AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, full, t->w.stride[i], &full));
    AIT_TRY(ox_dim_int(c, AIT_DIM_ADD, full, (t->w.kernel[i] - 1) * t->w.dilation[i] + 1 + t->output_padding[i], &full));
    if (shape) AIT_TRY(ait_dim_const(c->g, shape[i], &wanted));
    else AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, in, t->w.stride[i], &wanted));
    ait_dim total, half, rest;
    AIT_TRY(ox_dim(c, AIT_DIM_SUB, full, wanted, &total));
    AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, total, 2, &half));
    AIT_TRY(ox_dim(c, AIT_DIM_SUB, total, half, &rest));
    bool lower = strcmp(auto_pad, "SAME_UPPER") != 0; /* the specification's own rule for output_shape: the larger half at the beginning */
    t->cut_begin[i] = lower ? rest : half;
    t->cut_end[i] = lower ? half : rest;
  }
  return AIT_OK;
}

static ait_status negated(ox_call *c, ait_dim d, ait_dim *out) {
  ait_dim zero;
  AIT_TRY(ait_dim_const(c->g, 0, &zero));
  return ox_dim(c, AIT_DIM_SUB, zero, d, out);
}

ait_status ox_build_conv_transpose(ox_call *c) {
  uint32_t x, weight, y, bias = ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX;
  int64_t groups, padding[AIT_MAX_RANK] = {0}, zero[AIT_MAX_RANK] = {0};
  transposed t;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &weight));
  AIT_TRY(ox_int(c, "group", 1, &groups));
  AIT_TRY(conv_window(c, x, weight, &t.w));
  AIT_TRY(ox_n_ints(c, "output_padding", t.w.spatial, 0, t.output_padding));
  AIT_TRY(transposed_cuts(c, x, &t));
  size_t n = (size_t)t.w.spatial;
  window cuts = {.spatial = t.w.spatial};
  memcpy(cuts.begin, t.cut_begin, sizeof cuts.begin);
  memcpy(cuts.end, t.cut_end, sizeof cuts.end);
  bool direct = symmetric(c, &cuts, padding);
  for (int32_t i = 0; i < t.w.spatial; ++i) {
    int64_t largest = t.w.stride[i] > t.w.dilation[i] ? t.w.stride[i] : t.w.dilation[i];
    direct = direct && padding[i] >= 0 && t.output_padding[i] >= 0 && t.output_padding[i] < largest;
  }
  if (direct)
    return OX(c, "conv", &c->outputs[0], V(x), V(weight), V(bias), ox_list_ints(c, t.w.stride, n), ox_list_ints(c, padding, n),
              ox_list_ints(c, t.w.dilation, n), I(groups), B(true), ox_list_ints(c, t.output_padding, n));
  AIT_TRY(OX(c, "conv", &y, V(x), V(weight), NONE, ox_list_ints(c, t.w.stride, n), ox_list_ints(c, zero, n),
             ox_list_ints(c, t.w.dilation, n), I(groups), B(true), ox_list_ints(c, zero, n)));
  for (int32_t i = 0; i < t.w.spatial; ++i) { /* negative padding cuts */
    ait_dim end;
    AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, cuts.end[i], t.output_padding[i], &end));
    AIT_TRY(negated(c, cuts.begin[i], &cuts.begin[i]));
    AIT_TRY(negated(c, end, &cuts.end[i]));
  }
  AIT_TRY(pad_by(c, y, &cuts, F(0), &y));
  if (bias == AIT_NO_INDEX) return ox_identity(c, y);
  ait_dim *shape;
  AIT_TRY(ox_dims(c, t.w.spatial + 1, &shape));
  shape[0] = ox_info(c, bias)->shape[0];
  for (int32_t i = 0; i < t.w.spatial; ++i) AIT_TRY(ait_dim_const(c->g, 1, &shape[i + 1]));
  AIT_TRY(ox_reshape(c, bias, shape, t.w.spatial + 1, &bias));
  return OX(c, "add", &c->outputs[0], V(y), V(bias));
}

/* ---- pools -----------------------------------------------------------------------------------------------------------------------*/

static ait_status pool_window(ox_call *c, uint32_t x, window *w) {
  const int64_t *kernel;
  size_t n;
  AIT_TRY(ox_ints(c, "kernel_shape", &kernel, &n));
  w->spatial = ox_info(c, x)->rank - 2;
  if (!kernel || w->spatial < 1 || n != (size_t)w->spatial)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "kernel_shape has %zu sizes for rank %d", n, (int)ox_info(c, x)->rank);
  for (int32_t i = 0; i < w->spatial; ++i) w->kernel[i] = kernel[i];
  return read_window(c, x, w);
}

/* Windows that fit; in ceil mode one more, which must begin inside of the operand or the padding before it. */
static ait_status pooled_size(ox_call *c, ait_dim in, const window *w, int32_t i, bool ceil_mode, ait_dim *out) {
  ait_dim span, begins;
  AIT_TRY(ox_dim(c, AIT_DIM_ADD, in, w->begin[i], &begins));
  AIT_TRY(ox_dim(c, AIT_DIM_ADD, begins, w->end[i], &span));
  AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, span, (w->kernel[i] - 1) * w->dilation[i] + 1, &span));
  AIT_TRY(ox_dim_int(c, ceil_mode ? AIT_DIM_CEILDIV : AIT_DIM_FLOORDIV, span, w->stride[i], out));
  AIT_TRY(ox_dim_int(c, AIT_DIM_ADD, *out, 1, out));
  if (!ceil_mode) return AIT_OK;
  AIT_TRY(ox_dim_int(c, AIT_DIM_CEILDIV, begins, w->stride[i], &begins));
  return ox_dim(c, AIT_DIM_MIN, *out, begins, out);
}

static ait_status pooled_info(ox_call *c, uint32_t x, const window *w, bool ceil_mode, ait_value_info *out) {
  const ait_value_info v = *ox_info(c, x);
  ait_dim *dims;
  AIT_TRY(ox_dims(c, v.rank, &dims));
  dims[0] = v.shape[0];
  dims[1] = v.shape[1];
  for (int32_t i = 0; i < w->spatial; ++i) AIT_TRY(pooled_size(c, v.shape[2 + i], w, i, ceil_mode, &dims[2 + i]));
  *out = ox_tensor_info(v.dtype, v.rank, dims);
  return AIT_OK;
}

static ait_status emit_pool(ox_call *c, uint32_t x, const window *w, bool ceil_mode, const char *mode, int64_t option, uint32_t results) {
  ait_value_info infos[2];
  size_t n = (size_t)w->spatial;
  ait_dim pads[2 * AIT_MAX_RANK];
  memcpy(pads, w->begin, n * sizeof *pads);
  memcpy(pads + n, w->end, n * sizeof *pads);
  AIT_TRY(pooled_info(c, x, w, ceil_mode, &infos[0]));
  infos[1] = infos[0];
  infos[1].dtype = AIT_I64;
  return ox_raw_args(c, results == 2 ? "onnx.MaxPool" : "onnx.Pool",
                     OX_ARGS(V(x), ox_list_ints(c, w->kernel, n), ox_list_ints(c, w->stride, n), ox_list_dims(c, pads, 2 * n),
                             ox_list_ints(c, w->dilation, n), B(ceil_mode), S(mode), I(option)),
                     infos, c->outputs, results);
}

/* PyTorch's pools pad at most half of the kernel, alike on both sides. */
static bool fits_core_pool(const ox_call *c, uint32_t x, const window *w, int64_t padding[AIT_MAX_RANK]) {
  if (!symmetric(c, w, padding) || !ait_dtype_is_float(ox_dtype_of(c, x)) || w->spatial > 3) return false;
  for (int32_t i = 0; i < w->spatial; ++i)
    if (padding[i] > w->kernel[i] / 2) return false;
  return true;
}

ait_status ox_build_max_pool(ox_call *c) {
  uint32_t x;
  window w;
  bool ceil_mode, storage_order;
  int64_t padding[AIT_MAX_RANK];
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(pool_window(c, x, &w));
  AIT_TRY(ox_flag(c, "ceil_mode", false, &ceil_mode));
  AIT_TRY(ox_flag(c, "storage_order", false, &storage_order));
  size_t n = (size_t)w.spatial;
  if (ox_wants(c, 1)) return emit_pool(c, x, &w, ceil_mode, "max", storage_order, 2);
  if (!fits_core_pool(c, x, &w, padding)) return emit_pool(c, x, &w, ceil_mode, "max", 0, 1);
  return OX(c, "max_pool", &c->outputs[0], V(x), ox_list_ints(c, w.kernel, n), ox_list_ints(c, w.stride, n), ox_list_ints(c, padding, n),
            ox_list_ints(c, w.dilation, n), B(ceil_mode));
}

ait_status ox_build_average_pool(ox_call *c) {
  uint32_t x;
  window w;
  bool ceil_mode, include, dilated = false;
  int64_t padding[AIT_MAX_RANK];
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(pool_window(c, x, &w));
  AIT_TRY(ox_flag(c, "ceil_mode", false, &ceil_mode));
  AIT_TRY(ox_flag(c, "count_include_pad", false, &include));
  size_t n = (size_t)w.spatial;
  for (size_t i = 0; i < n; ++i) dilated |= w.dilation[i] != 1;
  if (dilated || ceil_mode || !fits_core_pool(c, x, &w, padding)) return emit_pool(c, x, &w, ceil_mode, "average", include, 1);
  return OX(c, "avg_pool", &c->outputs[0], V(x), ox_list_ints(c, w.kernel, n), ox_list_ints(c, w.stride, n), ox_list_ints(c, padding, n),
            B(false), B(include));
}

ait_status ox_build_lp_pool(ox_call *c) {
  uint32_t x;
  window w;
  bool ceil_mode;
  int64_t p;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(pool_window(c, x, &w));
  AIT_TRY(ox_flag(c, "ceil_mode", false, &ceil_mode));
  AIT_TRY(ox_int(c, "p", 2, &p));
  if (p < 1) return ox_fail(c, AIT_CODE_INVALID_MODEL, "p is %lld", (long long)p);
  return emit_pool(c, x, &w, ceil_mode, "lp", p, 1);
}

ait_status ox_build_global_pool(ox_call *c) {
  uint32_t x;
  int64_t axes[AIT_MAX_RANK], p = 2;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  int32_t rank = ox_info(c, x)->rank;
  if (rank < 3) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operand has rank %d", (int)rank);
  for (int32_t d = 2; d < rank; ++d) axes[d - 2] = d;
  if (strcmp(c->variant, "lp") != 0) return ox_reduce(c, c->variant, x, axes, (uint32_t)rank - 2, true, &c->outputs[0]);
  AIT_TRY(ox_int(c, "p", 2, &p));
  if (p < 1) return ox_fail(c, AIT_CODE_INVALID_MODEL, "p is %lld", (long long)p);
  AIT_TRY(ox_unary(c, "abs", x, &x));
  AIT_TRY(OX(c, "pow", &x, V(x), F((double)p)));
  AIT_TRY(ox_reduce(c, "sum", x, axes, (uint32_t)rank - 2, true, &x));
  return OX(c, "pow", &c->outputs[0], V(x), F(1.0 / (double)p));
}

ait_status ox_build_max_unpool(ox_call *c) {
  uint32_t x, indices;
  window w;
  ait_value_info info;
  const ait_dim *shape;
  uint32_t n;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &indices));
  AIT_TRY(pool_window(c, x, &w));
  const ait_value_info v = *ox_info(c, x);
  ait_dim *dims;
  AIT_TRY(ox_dims(c, v.rank, &dims));
  dims[0] = v.shape[0];
  dims[1] = v.shape[1];
  for (int32_t i = 0; i < w.spatial; ++i) {
    AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, v.shape[2 + i], 1, &dims[2 + i]));
    AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, dims[2 + i], w.stride[i], &dims[2 + i]));
    AIT_TRY(ox_dim_int(c, AIT_DIM_ADD, dims[2 + i], w.kernel[i], &dims[2 + i]));
    AIT_TRY(ox_dim(c, AIT_DIM_SUB, dims[2 + i], w.begin[i], &dims[2 + i]));
    AIT_TRY(ox_dim(c, AIT_DIM_SUB, dims[2 + i], w.end[i], &dims[2 + i]));
  }
  info = ox_tensor_info(v.dtype, v.rank, dims);
  ait_arg inferred = ox_list_dims(c, dims, (size_t)v.rank), wanted = inferred;
  uint32_t later = AIT_NO_INDEX;
  if (ox_has(c, 2)) {
    if (ox_known_dims(c, c->inputs[2], &shape, &n)) {
      if ((int32_t)n != v.rank)
        return ox_fail(c, AIT_CODE_INVALID_MODEL, "output_shape has %u sizes for rank %d", (unsigned)n, (int)v.rank);
      info.shape = shape;
      wanted = ox_list_dims(c, shape, n);
    } else {
      AIT_TRY(ox_unknown_info(c, v.dtype, v.rank, &info));
      later = c->inputs[2];
    }
  }
  return OX_RAW(c, "onnx.MaxUnpool", &info, &c->outputs[0], V(x), V(indices), V(later), wanted, inferred);
}
