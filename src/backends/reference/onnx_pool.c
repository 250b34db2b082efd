/* ONNX: pools with padding of any kind, dilation and indices; local response normalisation. */
#include "backends/reference/onnx.h"

enum { SPATIAL = AIT_MAX_RANK - 2 };

typedef enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP } pool_kind;

typedef struct pool {
  ait_tensor x; /* [n, c, …], contiguous doubles, or int64 for integers */
  int32_t spatial;
  int64_t kernel[SPATIAL], stride[SPATIAL], begin[SPATIAL], end[SPATIAL], dilation[SPATIAL];
  bool ceil_mode, include_pad, column_major;
  pool_kind kind;
  double p;
} pool;

static ait_status exact_ints(const ait_ref_call *call, uint32_t arg, int32_t n, int64_t *out) {
  int64_t v[AIT_MAX_RANK];
  int32_t count;
  AIT_TRY(ait_ref_ints(call, arg, v, &count));
  if (count != n) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "argument %u has %d numbers, not %d", arg, count, n);
  memcpy(out, v, (size_t)n * sizeof *out);
  return AIT_OK;
}

static ait_status read_pads(const ait_ref_call *call, pool *p) {
  int64_t *pads;
  uint32_t n;
  AIT_TRY(ait_ref_int_array(call, 3, &pads, &n));
  bool fits = n == 2 * (uint32_t)p->spatial;
  for (int32_t i = 0; fits && i < p->spatial; ++i) {
    p->begin[i] = pads[i];
    p->end[i] = pads[p->spatial + i];
    fits = pads[i] >= 0 && pads[p->spatial + i] >= 0;
  }
  ait_free(call->allocator, pads, n * sizeof *pads);
  return fits ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_MODEL, "paddings do not fit");
}

/* (x, kernel, stride, pads, dilation, ceil_mode, mode, option) */
static ait_status read_pool(const ait_ref_call *call, const ait_tensor *x, pool *p) {
  const char *mode = ait_ref_string(call, 6);
  int64_t option;
  p->spatial = x->rank - 2;
  if (p->spatial < 1 || p->spatial > SPATIAL) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the operand has rank %d", x->rank);
  AIT_TRY(exact_ints(call, 1, p->spatial, p->kernel));
  AIT_TRY(exact_ints(call, 2, p->spatial, p->stride));
  AIT_TRY(read_pads(call, p));
  AIT_TRY(exact_ints(call, 4, p->spatial, p->dilation));
  AIT_TRY(ait_ref_bool(call, 5, &p->ceil_mode));
  AIT_TRY(ait_ref_int(call, 7, &option));
  p->kind = mode && strcmp(mode, "average") == 0 ? POOL_AVERAGE : mode && strcmp(mode, "lp") == 0 ? POOL_LP : POOL_MAX;
  p->include_pad = p->column_major = option != 0;
  p->p = (double)option;
  for (int32_t i = 0; i < p->spatial; ++i)
    if (p->kernel[i] < 1 || p->stride[i] < 1 || p->dilation[i] < 1)
      return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "kernel, stride or dilation is not positive");
  return AIT_OK;
}

static ait_status pooled_size(const ait_ref_call *call, const pool *p, int32_t i, int64_t in, int64_t *out) {
  int64_t reach;
  if (ait_mul_overflows(p->kernel[i] - 1, p->dilation[i], &reach)) reach = INT64_MAX / 2;
  int64_t span = in + p->begin[i] + p->end[i] - reach - 1;
  if (span < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the kernel is larger than dim %d of %lld", i, (long long)in);
  *out = span / p->stride[i] + 1;
  /* one more window for what is left, if it begins inside of the operand or the padding before it */
  if (p->ceil_mode && span % p->stride[i] && *out * p->stride[i] < in + p->begin[i]) ++*out;
  return AIT_OK;
}

typedef struct pooled {
  double value;
  int64_t integer, index, places, inside;
  bool any;
} pooled;

static void take(const pool *p, pooled *r, int64_t at, int64_t index) {
  bool integer = p->x.dtype == AIT_I64;
  int64_t i = integer ? ((const int64_t *)p->x.data)[at] : 0;
  double v = integer ? (double)i : ((const double *)p->x.data)[at];
  ++r->inside;
  if (p->kind == POOL_AVERAGE) r->value += v;
  else if (p->kind == POOL_LP) r->value += pow(fabs(v), p->p);
  else if (!r->any || (integer ? i > r->integer : v > r->value || (isnan(v) && !isnan(r->value)))) {
    r->value = v;
    r->integer = i;
    r->index = index;
  }
  r->any = true;
}

/* One window of plane `base`; place: its output position. */
static pooled pool_window(const pool *p, int64_t base, const int64_t *place) {
  const int64_t *size = p->x.shape + 2;
  int64_t k[SPATIAL] = {0};
  pooled r = {0};
  do {
    int64_t at = 0, index = 0, step = 1;
    bool inside = true, padded = true;
    for (int32_t d = 0; d < p->spatial; ++d) {
      int64_t i = place[d] * p->stride[d] - p->begin[d] + k[d] * p->dilation[d];
      inside = inside && i >= 0 && i < size[d];
      padded = padded && i < size[d] + p->end[d]; /* ceil mode may reach beyond the padding: that counts for nothing */
      at = at * size[d] + i;
    }
    r.places += padded;
    if (!inside) continue;
    index = at;
    if (p->column_major) { /* the first spatial dim changes fastest */
      index = 0;
      for (int32_t d = 0; d < p->spatial; ++d) {
        index += (place[d] * p->stride[d] - p->begin[d] + k[d] * p->dilation[d]) * step;
        step *= size[d];
      }
    }
    take(p, &r, base + at, base + index);
  } while (ait_ref_next(p->spatial, p->kernel, k));
  return r;
}

static ait_status run_pool(ait_ref_call *call, pool *p, const ait_tensor *x, bool indices) {
  int64_t shape[AIT_MAX_RANK], plane = 1, outputs = 1, place[SPATIAL];
  ait_tensor y, at = {0};
  bool integer = ait_dtype_is_integer(x->dtype);
  shape[0] = x->shape[0];
  shape[1] = x->shape[1];
  for (int32_t i = 0; i < p->spatial; ++i) {
    AIT_TRY(pooled_size(call, p, i, x->shape[2 + i], &shape[2 + i]));
    plane *= x->shape[2 + i];
    outputs *= shape[2 + i];
  }
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, x->rank, shape, &y));
  if (indices) AIT_TRY(ait_ref_new(call, 1, AIT_I64, x->rank, shape, &at));
  for (int64_t c = 0, i = 0; c < shape[0] * shape[1]; ++c) {
    for (int32_t d = 0; d < p->spatial; ++d) place[d] = 0;
    for (int64_t k = 0; k < outputs; ++k, ++i) {
      pooled r = pool_window(p, c * plane, place);
      if (p->kind == POOL_AVERAGE) r.value /= (double)(p->include_pad ? r.places : r.inside);
      if (p->kind == POOL_LP) r.value = pow(r.value, 1 / p->p);
      if (integer && p->kind == POOL_MAX) ait_element_set_i64(ait_onnx_at(&y, i), y.dtype, r.integer);
      else ait_element_set_f64(ait_onnx_at(&y, i), y.dtype, p->kind == POOL_MAX && !r.any ? -INFINITY : r.value);
      if (indices) ((int64_t *)at.data)[i] = r.index;
      ait_ref_next(p->spatial, shape + 2, place);
    }
  }
  return AIT_OK;
}

static ait_status pool_operator(ait_ref_call *call, bool indices) {
  const ait_tensor *x;
  pool p = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(read_pool(call, x, &p));
  AIT_TRY(ait_dtype_is_integer(x->dtype) ? ait_ref_as_i64(call, x, &p.x) : ait_ref_to_f64(call, x, &p.x));
  ait_status status = run_pool(call, &p, x, indices);
  ait_tensor_release(&p.x);
  return status;
}

ait_status ait_ref_onnx_pool(ait_ref_call *call) { return pool_operator(call, false); }
ait_status ait_ref_onnx_max_pool(ait_ref_call *call) { return pool_operator(call, true); }

/* (x, indices, shape tensor?, shape, inferred shape): indices are into the tensor of the inferred shape */
ait_status ait_ref_onnx_max_unpool(ait_ref_call *call) {
  const ait_tensor *x, *indices;
  int64_t shape[AIT_MAX_RANK], inferred[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0};
  int32_t n, m;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &indices));
  AIT_TRY(ait_ref_ints(call, 4, inferred, &m));
  if (ait_ref_is_none(call, 2)) AIT_TRY(ait_ref_ints(call, 3, shape, &n));
  else AIT_TRY(ait_onnx_ints(call, 2, shape, AIT_MAX_RANK, &n));
  if (n != x->rank || m != x->rank || !ait_tensor_same_shape(x, indices))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operand, indices and shape do not fit");
  AIT_TRY(ait_ref_new(call, 0, x->dtype, n, shape, &out));
  memset(out.data, 0, ait_tensor_bytes(&out));
  if (ait_tensor_count(x) == 0) return AIT_OK;
  do {
    int64_t flat = ait_element_i64(ait_ref_at(indices, index), indices->dtype), at[AIT_MAX_RANK];
    int64_t left = flat;
    bool fits = flat >= 0;
    for (int32_t d = n - 1; d >= 0 && fits; --d) {
      if (inferred[d] < 1) fits = false;
      else at[d] = d ? left % inferred[d] : left, left /= inferred[d];
      fits = fits && at[d] < shape[d];
    }
    if (!fits) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "index %lld is outside of the result", (long long)flat);
    memcpy(ait_ref_at(&out, at), ait_ref_at(x, index), ait_dtype_size(x->dtype));
  } while (ait_ref_next(x->rank, x->shape, index));
  return AIT_OK;
}

/* (x, size, alpha, beta, bias): x / (bias + alpha / size * sum of squares over the neighbouring channels) ^ beta */
ait_status ait_ref_onnx_lrn(ait_ref_call *call) {
  const ait_tensor *x;
  ait_tensor in, out;
  int64_t size;
  double alpha, beta, bias;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_int(call, 1, &size));
  AIT_TRY(ait_ref_float(call, 2, &alpha));
  AIT_TRY(ait_ref_float(call, 3, &beta));
  AIT_TRY(ait_ref_float(call, 4, &bias));
  if (x->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the operand has rank %d", x->rank);
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, x->rank, x->shape, &out));
  AIT_TRY(ait_ref_to_f64(call, x, &in));
  const double *v = in.data;
  int64_t channels = x->shape[1], plane = ait_nn_span(x, 2, x->rank), before = (size - 1) / 2, after = size / 2;
  for (int64_t i = 0, n = ait_tensor_count(x); i < n; ++i) {
    int64_t k = i / plane % channels, base = i - k * plane;
    double sum = 0;
    for (int64_t j = ait_nn_max(0, k - before); j <= ait_nn_min(channels - 1, k + after); ++j)
      sum += v[base + j * plane] * v[base + j * plane];
    ait_element_set_f64(ait_onnx_at(&out, i), out.dtype, v[i] / pow(bias + alpha / (double)size * sum, beta));
  }
  ait_tensor_release(&in);
  return AIT_OK;
}
