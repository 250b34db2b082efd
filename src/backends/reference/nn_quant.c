/* Quantisation as PyTorch's quantized_decomposed and torchao operators define it. Rounding decides the integers, so products of single
 * precision tensors are rounded to single precision first, as torch does. */
#include "backends/reference/nn.h"

/* The dtype that torch computes in. */
static double round_to(ait_dtype compute, double v) { return compute == AIT_F32 ? (double)(float)v : v; }
static ait_dtype compute_dtype(const ait_tensor *t) { return t->dtype == AIT_F64 ? AIT_F64 : AIT_F32; }

typedef struct affine {
  ait_tensor x;                                        /* doubles */
  ait_tensor scale, zero;                              /* doubles; zero may be empty */
  int64_t divisor[AIT_MAX_RANK], blocks[AIT_MAX_RANK]; /* element i of dim d is in block i / divisor; blocks of them along d */
  int64_t low, high;
  ait_dtype compute;
} affine;

static void affine_release(affine *a) {
  ait_tensor_release(&a->x);
  ait_tensor_release(&a->scale);
  ait_tensor_release(&a->zero);
}

/* Flat index of the scale of the element at `index`. */
static int64_t block_of(const affine *a, const int64_t *index) {
  int64_t b = 0;
  for (int32_t d = 0; d < a->x.rank; ++d) b = b * a->blocks[d] + index[d] / a->divisor[d];
  return b;
}

static ait_status check_blocks(const ait_ref_call *call, const affine *a) {
  int64_t n = 1;
  for (int32_t d = 0; d < a->x.rank; ++d) n *= a->blocks[d];
  if (ait_tensor_count(&a->scale) != n || (a->zero.data && ait_tensor_count(&a->zero) != n))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "scales do not fit the tensor's blocks");
  return AIT_OK;
}

static ait_status quantize(ait_ref_call *call, affine *a, ait_dtype dtype) {
  AIT_TRY(check_blocks(call, a));
  int64_t index[AIT_MAX_RANK] = {0};
  double *x = a->x.data;
  for (int64_t i = 0; i < ait_tensor_count(&a->x); ++i) {
    int64_t b = block_of(a, index);
    double inverse = round_to(a->compute, 1 / ait_nn_data(&a->scale)[b]);
    double v = nearbyint(round_to(a->compute, x[i] * inverse)) + (a->zero.data ? ait_nn_data(&a->zero)[b] : 0);
    x[i] = v < (double)a->low ? (double)a->low : v > (double)a->high ? (double)a->high : v;
    ait_ref_next(a->x.rank, a->x.shape, index);
  }
  return ait_nn_result(call, 0, dtype, &a->x);
}

static ait_status dequantize(ait_ref_call *call, affine *a, ait_dtype dtype) {
  AIT_TRY(check_blocks(call, a));
  int64_t index[AIT_MAX_RANK] = {0};
  double *x = a->x.data;
  for (int64_t i = 0; i < ait_tensor_count(&a->x); ++i) {
    int64_t b = block_of(a, index);
    x[i] = (x[i] - (a->zero.data ? ait_nn_data(&a->zero)[b] : 0)) * ait_nn_data(&a->scale)[b];
    ait_ref_next(a->x.rank, a->x.shape, index);
  }
  return ait_nn_result(call, 0, dtype, &a->x);
}

/* A number argument, or a tensor of one. */
static ait_status number(const ait_ref_call *call, uint32_t arg, ait_tensor *out) {
  if (ait_ref_is_tensor(call, arg)) return ait_nn_arg(call, arg, out);
  ait_ref_scalar s;
  AIT_TRY(ait_ref_scalar_arg(call, arg, &s));
  AIT_TRY(ait_ref_temp(call, AIT_F64, 0, NULL, out));
  *ait_nn_data_mut(out) = s.f;
  return AIT_OK;
}

/* Arguments 0 to 2 and the bounds; per tensor: one block, per channel: blocks along `axis`. */
static ait_status decomposed_args(ait_ref_call *call, affine *a, bool per_channel) {
  const ait_tensor *t;
  int64_t axis;
  int32_t d = -1;
  uint32_t at = per_channel ? 4 : 3;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_nn_f64(call, t, &a->x));
  a->compute = compute_dtype(t);
  AIT_TRY(per_channel ? ait_nn_arg(call, 1, &a->scale) : number(call, 1, &a->scale));
  if (!ait_ref_is_none(call, 2)) AIT_TRY(per_channel ? ait_nn_arg(call, 2, &a->zero) : number(call, 2, &a->zero));
  if (per_channel) {
    AIT_TRY(ait_ref_int(call, 3, &axis));
    AIT_TRY(ait_ref_dim(call, axis, t->rank, &d));
  }
  AIT_TRY(ait_ref_int(call, at, &a->low));
  AIT_TRY(ait_ref_int(call, at + 1, &a->high));
  for (int32_t i = 0; i < t->rank; ++i) {
    a->divisor[i] = i == d ? 1 : ait_nn_max(1, t->shape[i]);
    a->blocks[i] = i == d ? t->shape[i] : 1;
  }
  return AIT_OK;
}

/* quantized_decomposed.{de,}quantize_per_{tensor,channel}, with numbers or tensors for scale and zero point */
ait_status ait_ref_decomposed_quant(ait_ref_call *call) {
  bool per_channel = strstr(call->node->op, "per_channel") != NULL, back = strstr(call->node->op, ".dequantize") != NULL;
  uint32_t dtype_arg = per_channel ? 6 : 5;
  affine a = {0};
  ait_status status = decomposed_args(call, &a, per_channel);
  if (!status && back) {
    ait_dtype wanted = ait_ref_dtype(call, dtype_arg + 1, ait_ref_widen(call, AIT_F32));
    status = dequantize(call, &a, ait_nn_dtype(call, 0, wanted));
  } else if (!status) {
    status = quantize(call, &a, ait_ref_dtype(call, dtype_arg, AIT_I8));
  }
  affine_release(&a);
  return status;
}

/* ---- torchao ----------------------------------------------------------------------------------------------------------------- */
static ait_status blocks_of(const ait_ref_call *call, uint32_t arg, affine *a) {
  int64_t block[AIT_MAX_RANK];
  int32_t count;
  AIT_TRY(ait_ref_ints(call, arg, block, &count));
  if (count != a->x.rank) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "block of %d dims for rank %d", count, a->x.rank);
  for (int32_t d = 0; d < count; ++d) {
    int64_t n = a->x.shape[d];
    if (block[d] == -1) block[d] = n;
    if (block[d] < 1 || n % block[d] != 0)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dim of %lld in blocks of %lld", (long long)n, (long long)block[d]);
    a->divisor[d] = block[d];
    a->blocks[d] = n / block[d];
  }
  return AIT_OK;
}

/* Bounds given, or those of the integer dtype. */
static ait_status bounds(const ait_ref_call *call, uint32_t arg, ait_dtype dtype, affine *a) {
  int64_t bits = 8 * (int64_t)ait_dtype_size(dtype);
  bool is_signed = ait_dtype_kind_of(dtype) == AIT_KIND_INT;
  ait_ref_scalar low = {.f = is_signed ? -ldexp(1, (int)bits - 1) : 0}, high = {.f = ldexp(1, (int)bits - is_signed) - 1};
  if (!ait_ref_is_none(call, arg)) AIT_TRY(ait_ref_scalar_arg(call, arg, &low));
  if (!ait_ref_is_none(call, arg + 1)) AIT_TRY(ait_ref_scalar_arg(call, arg + 1, &high));
  a->low = (int64_t)low.f, a->high = (int64_t)high.f;
  return AIT_OK;
}

/* quantize_affine, dequantize_affine: input, block_size, scale, zero_point, dtype, quant_min, quant_max[, output_dtype] */
ait_status ait_ref_torchao_affine(ait_ref_call *call) {
  bool back = ait_nn_is(call, "torchao.dequantize_affine");
  const ait_tensor *t;
  affine a = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  ait_dtype dtype = ait_ref_dtype(call, 4, AIT_I8);
  a.compute = compute_dtype(t);
  AIT_GOTO(ait_nn_f64(call, t, &a.x));
  AIT_GOTO(ait_nn_arg(call, 2, &a.scale));
  AIT_GOTO(ait_nn_arg_or_null(call, 3, &a.zero));
  AIT_GOTO(blocks_of(call, 1, &a));
  if (back) {
    status = dequantize(call, &a, ait_nn_dtype(call, 0, ait_ref_dtype(call, 7, AIT_F32)));
  } else {
    AIT_GOTO(bounds(call, 5, dtype, &a));
    status = quantize(call, &a, ait_nn_dtype(call, 0, dtype));
  }
cleanup:
  affine_release(&a);
  return status;
}

static void choose_one(const affine *a, const char *mapping, double low, double high, double eps, double *scale, double *zero) {
  double span = (double)(a->high - a->low), middle = trunc((double)(a->high + a->low + 1) / 2);
  low = fmin(low, 0), high = fmax(high, 0);
  if (strcmp(mapping, "ASYMMETRIC") == 0) {
    *scale = fmax(round_to(a->compute, (high - low) / span), eps);
    double z = (double)a->low - nearbyint(round_to(a->compute, low / *scale));
    *zero = z < (double)a->low ? (double)a->low : z > (double)a->high ? (double)a->high : z;
    return;
  }
  if (strcmp(mapping, "SYMMETRIC") == 0) *scale = fmax(-low, high) / (span / 2);
  else *scale = fmax(low / (double)a->low, high / (double)a->high); /* SYMMETRIC_NO_CLIPPING_ERR */
  *scale = fmax(round_to(a->compute, *scale), eps);
  *zero = middle;
}

/* The results' shape: whole dims reduced to one, or gone without keepdim. */
static int32_t reduced_shape(const affine *a, bool keepdim, int64_t *shape) {
  int32_t rank = 0;
  for (int32_t d = 0; d < a->x.rank; ++d) {
    bool gone = a->divisor[d] == a->x.shape[d] && a->divisor[d] != 1;
    if (!gone || keepdim) shape[rank++] = a->blocks[d];
  }
  return rank;
}

static ait_status choose(ait_ref_call *call, affine *a, const char *mapping, double eps, bool keepdim) {
  int64_t shape[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0};
  ait_tensor high = {0};
  ait_status status;
  int32_t rank = reduced_shape(a, keepdim, shape);
  AIT_GOTO(ait_ref_temp(call, AIT_F64, rank, shape, &a->scale));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, rank, shape, &a->zero));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, rank, shape, &high));
  int64_t n = ait_tensor_count(&high);
  double *lo = a->zero.data, *hi = high.data;
  for (int64_t i = 0; i < n; ++i) lo[i] = INFINITY, hi[i] = -INFINITY;
  for (int64_t i = 0; i < ait_tensor_count(&a->x); ++i) {
    int64_t b = block_of(a, index);
    double v = ait_nn_data(&a->x)[i];
    if (v < lo[b] || isnan(v)) lo[b] = v;
    if (v > hi[b] || isnan(v)) hi[b] = v;
    ait_ref_next(a->x.rank, a->x.shape, index);
  }
  for (int64_t i = 0; i < n; ++i) choose_one(a, mapping, lo[i], hi[i], eps, ait_nn_data_mut(&a->scale) + i, ait_nn_data_mut(&a->zero) + i);
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &a->scale));
  status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, AIT_I32), &a->zero);
cleanup:
  ait_tensor_release(&high);
  return status;
}

/* choose_qparams_affine: input, mapping_type, block_size, target_dtype, quant_min, quant_max, eps, scale_dtype, zero_point_dtype, keepdim
 */
ait_status ait_ref_choose_qparams(ait_ref_call *call) {
  const ait_tensor *t;
  const char *mapping = ait_ref_string(call, 1);
  affine a = {0};
  double eps;
  bool keepdim;
  ait_status status;
  if (!mapping) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "no mapping type");
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_float_or(call, 6, t->dtype == AIT_F16 ? 0x1p-10 : t->dtype == AIT_BF16 ? 0x1p-7 : 0x1p-23, &eps));
  AIT_TRY(ait_ref_bool(call, 9, &keepdim));
  a.compute = compute_dtype(t);
  AIT_GOTO(ait_nn_f64(call, t, &a.x));
  AIT_GOTO(blocks_of(call, 2, &a));
  AIT_GOTO(bounds(call, 4, ait_ref_dtype(call, 3, AIT_I8), &a));
  status = choose(call, &a, mapping, eps, keepdim);
cleanup:
  affine_release(&a);
  return status;
}

/* quantized_decomposed.choose_qparams.tensor, choose_qparams_symmetric.tensor: input, quant_min, quant_max, eps, dtype; of the whole tensor
 */
ait_status ait_ref_choose_decomposed(ait_ref_call *call) {
  const ait_tensor *t;
  affine a = {0};
  double eps;
  int64_t one = 1;
  ait_status status;
  bool symmetric = strstr(call->node->op, "symmetric") != NULL;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &a.low));
  AIT_TRY(ait_ref_int(call, 2, &a.high));
  AIT_TRY(ait_ref_float(call, 3, &eps));
  a.compute = compute_dtype(t);
  AIT_GOTO(ait_nn_f64(call, t, &a.x));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, 1, &one, &a.scale));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, 1, &one, &a.zero));
  double low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < ait_tensor_count(&a.x); ++i) low = fmin(low, ait_nn_data(&a.x)[i]), high = fmax(high, ait_nn_data(&a.x)[i]);
  choose_one(&a, symmetric ? "SYMMETRIC" : "ASYMMETRIC", low, high, eps, a.scale.data, a.zero.data);
  if (symmetric) *ait_nn_data_mut(&a.zero) = ait_ref_dtype(call, 4, AIT_I8) == AIT_U8 ? 128 : 0;
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F64), &a.scale));
  status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, AIT_I64), &a.zero);
cleanup:
  affine_release(&a);
  return status;
}

/* ---- fake quantisation: rounded to the grid, still a float ------------------------------------------------------------------- */
/* fake_quantize_per_tensor_affine(self, scale, zero_point, min, max), per_channel with axis; _cachemask gives where it did not clip */
ait_status ait_ref_fake_quant(ait_ref_call *call) {
  bool per_channel = strstr(call->node->op, "per_channel") != NULL;
  const ait_tensor *t;
  affine a = {0};
  ait_tensor mask = {0};
  int64_t index[AIT_MAX_RANK] = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_GOTO(decomposed_args(call, &a, per_channel));
  AIT_GOTO(check_blocks(call, &a));
  AIT_GOTO(ait_ref_temp(call, AIT_BOOL, t->rank, t->shape, &mask));
  double *x = a.x.data;
  for (int64_t i = 0; i < ait_tensor_count(&a.x); ++i) {
    int64_t b = block_of(&a, index);
    double scale = round_to(a.compute, ait_nn_data(&a.scale)[b]), zero = a.zero.data ? ait_nn_data(&a.zero)[b] : 0,
           inverse = round_to(a.compute, 1 / scale);
    double q = nearbyint(round_to(a.compute, round_to(a.compute, x[i] * inverse) + zero)), low = (double)a.low, high = (double)a.high;
    ((uint8_t *)mask.data)[i] = q >= low && q <= high;
    x[i] = ((q < low ? low : q > high ? high : q) - zero) * scale;
    ait_ref_next(a.x.rank, a.x.shape, index);
  }
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &a.x));
  if (ait_nn_wants(call, 1)) {
    ait_ref_set(call, 1, mask);
    mask = (ait_tensor){0};
  }
cleanup:
  affine_release(&a);
  ait_tensor_release(&mask);
  return status;
}

/* _weight_int8pack_mm(x [m, k], weight int8 [n, k], scales [n]) */
ait_status ait_ref_int8_mm(ait_ref_call *call) {
  const ait_tensor *x, *w;
  ait_tensor out = {0}, scales = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &w));
  AIT_GOTO(ait_nn_arg(call, 2, &scales));
  if (x->rank != 2 || w->rank != 2 || x->shape[1] != w->shape[1] || ait_tensor_count(&scales) != w->shape[0])
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operands do not fit together"));
  int64_t shape[2] = {x->shape[0], w->shape[0]};
  ait_nn_mat a = {x->data, x->dtype, x->strides[0], x->strides[1]}, b = {w->data, w->dtype, w->strides[1], w->strides[0]};
  AIT_GOTO(ait_ref_temp(call, AIT_F64, 2, shape, &out));
  AIT_GOTO(ait_nn_product(call, &a, &b, shape[0], shape[1], x->shape[1], out.data));
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) ait_nn_data_mut(&out)[i] *= ait_nn_data(&scales)[i % shape[1]];
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, x->dtype), &out);
cleanup:
  ait_tensor_release(&out);
  ait_tensor_release(&scales);
  return status;
}
