/* Numbers in and out of double, results, and element-wise maps for the neural-network operators. */
#include "backends/reference/blocks.h"
#include "backends/reference/nn.h"

/* ---- rows of numbers ---------------------------------------------------------------------------------------------------------------*/
#define LOAD_ROW(type, convert)                                                \
  do {                                                                         \
    const type *s = p;                                                         \
    if (stride == 1)                                                           \
      for (int64_t i = 0; i < n; ++i) dst[i] = (double)convert(s[i]);          \
    else                                                                       \
      for (int64_t i = 0; i < n; ++i) dst[i] = (double)convert(s[i * stride]); \
  } while (0)

void ait_nn_load(const void *p, ait_dtype dtype, int64_t stride, int64_t n, double *dst) {
  switch (dtype) {
    case AIT_F32: LOAD_ROW(float, ); break;
    case AIT_F64: LOAD_ROW(double, ); break;
    case AIT_F16: LOAD_ROW(uint16_t, ait_f16_to_f32); break;
    case AIT_BF16: LOAD_ROW(uint16_t, ait_bf16_to_f32); break;
    case AIT_I64: LOAD_ROW(int64_t, ); break;
    case AIT_I32: LOAD_ROW(int32_t, ); break;
    default: {
      size_t size = ait_dtype_size(dtype);
      const char *s = p;
      for (int64_t i = 0; i < n; ++i) dst[i] = ait_element_f64(s + i * stride * (int64_t)size, dtype);
    }
  }
}

static void load_complex(const void *p, ait_dtype dtype, int64_t stride, int64_t n, double *dst) {
  size_t size = ait_dtype_size(dtype);
  const char *s = p;
  for (int64_t i = 0; i < n; ++i) ait_element_c128(s + i * stride * (int64_t)size, dtype, dst + 2 * i);
}

#define STORE_ROW(type, convert)                                             \
  do {                                                                       \
    type *d = p;                                                             \
    if (stride == 1)                                                         \
      for (int64_t i = 0; i < n; ++i) d[i] = (type)convert(src[i]);          \
    else                                                                     \
      for (int64_t i = 0; i < n; ++i) d[i * stride] = (type)convert(src[i]); \
  } while (0)

void ait_nn_store(void *p, ait_dtype dtype, int64_t stride, int64_t n, const double *src) {
  switch (dtype) {
    case AIT_F32: STORE_ROW(float, ); break;
    case AIT_F64: STORE_ROW(double, ); break;
    case AIT_F16: STORE_ROW(uint16_t, ait_f64_to_f16); break;
    case AIT_BF16: STORE_ROW(uint16_t, ait_f64_to_bf16); break;
    default: {
      size_t size = ait_dtype_size(dtype);
      char *d = p;
      for (int64_t i = 0; i < n; ++i) ait_element_set_f64(d + i * stride * (int64_t)size, dtype, src[i]);
    }
  }
}

static void store_complex(void *p, ait_dtype dtype, int64_t n, const double *src) {
  size_t size = ait_dtype_size(dtype);
  char *d = p;
  for (int64_t i = 0; i < n; ++i) ait_element_set_c128(d + i * (int64_t)size, dtype, src + 2 * i);
}

/* ---- tensors -----------------------------------------------------------------------------------------------------------------------*/
typedef struct copy_job {
  const ait_tensor *src;
  double *dst;
  bool pairs;
} copy_job;

enum { CHUNK = 4096 };

static void copy_rows(void *ctx, int64_t begin, int64_t end) {
  const copy_job *job = ctx;
  const ait_tensor *t = job->src;
  int32_t last = t->rank - 1;
  int64_t n = t->shape[last], width = job->pairs ? 2 : 1;
  size_t size = ait_dtype_size(t->dtype);
  for (int64_t r = begin; r < end; ++r) {
    int64_t rest = r, offset = 0;
    for (int32_t d = last - 1; d >= 0; --d) {
      offset += (rest % t->shape[d]) * t->strides[d];
      rest /= t->shape[d];
    }
    const char *p = (const char *)t->data + offset * (int64_t)size;
    if (job->pairs) load_complex(p, t->dtype, t->strides[last], n, job->dst + r * n * width);
    else ait_nn_load(p, t->dtype, t->strides[last], n, job->dst + r * n * width);
  }
}

static void copy_chunks(void *ctx, int64_t begin, int64_t end) {
  const copy_job *job = ctx;
  const ait_tensor *t = job->src;
  int64_t count = ait_tensor_count(t), from = begin * CHUNK, to = ait_nn_min(end * CHUNK, count), width = job->pairs ? 2 : 1;
  const char *p = (const char *)t->data + from * (int64_t)ait_dtype_size(t->dtype);
  if (job->pairs) load_complex(p, t->dtype, 1, to - from, job->dst + from * width);
  else ait_nn_load(p, t->dtype, 1, to - from, job->dst + from * width);
}

ait_status ait_nn_f64(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) {
  if (ait_dtype_is_complex(t->dtype)) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "complex numbers");
  return ait_nn_numbers(call, t, out);
}

ait_status ait_nn_numbers(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) {
  bool is_complex = ait_dtype_is_complex(t->dtype);
  AIT_TRY(ait_ref_temp(call, is_complex ? AIT_C128 : AIT_F64, t->rank, t->shape, out));
  int64_t count = ait_tensor_count(t);
  if (count == 0) return AIT_OK;
  copy_job job = {.src = t, .dst = out->data, .pairs = is_complex};
  if (t->rank == 0 || ait_tensor_is_contiguous(t)) ait_ref_parallel(call, (count + CHUNK - 1) / CHUNK, CHUNK, copy_chunks, &job);
  else ait_ref_parallel(call, count / t->shape[t->rank - 1], t->shape[t->rank - 1], copy_rows, &job);
  return AIT_OK;
}

ait_status ait_nn_complex(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) {
  return ait_dtype_is_complex(t->dtype) ? ait_nn_numbers(call, t, out) : ait_tensor_cast(call->allocator, t, AIT_C128, out);
}

ait_status ait_nn_arg(const ait_ref_call *call, uint32_t arg, ait_tensor *out) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, arg, &t));
  return ait_nn_f64(call, t, out);
}

ait_status ait_nn_arg_or_null(const ait_ref_call *call, uint32_t arg, ait_tensor *out) {
  *out = (ait_tensor){0};
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  return t ? ait_nn_f64(call, t, out) : AIT_OK;
}

ait_status ait_nn_arg_expanded(const ait_ref_call *call, uint32_t arg, int32_t rank, const int64_t *shape, ait_tensor *out) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, arg, &t));
  ait_tensor view = ait_ref_expand(t, rank, shape);
  return ait_nn_f64(call, &view, out);
}

ait_status ait_nn_complex_expanded(const ait_ref_call *call, uint32_t arg, int32_t rank, const int64_t *shape, ait_tensor *out) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, arg, &t));
  ait_tensor view = ait_ref_expand(t, rank, shape);
  return ait_nn_complex(call, &view, out);
}

ait_status ait_nn_zeros(const ait_ref_call *call, ait_dtype dtype, int32_t rank, const int64_t *shape, ait_tensor *out) {
  AIT_TRY(ait_ref_temp(call, dtype, rank, shape, out));
  size_t bytes = ait_tensor_bytes(out);
  if (bytes > 0) memset(out->data, 0, bytes);
  return AIT_OK;
}

ait_dtype ait_nn_dtype(const ait_ref_call *call, uint32_t k, ait_dtype otherwise) {
  ait_dtype d = k < call->node->result_count ? ait_ref_result_dtype(call, k) : AIT_DTYPE_NONE;
  return d != AIT_DTYPE_NONE ? d : otherwise;
}

ait_dtype ait_nn_declared_dtype(const ait_ref_call *call, uint32_t k, ait_dtype otherwise) {
  if (k >= call->node->result_count || call->node->results[k] == AIT_NO_INDEX || !call->region) return otherwise;
  ait_dtype d = call->region->values[call->node->results[k]].dtype;
  return d != AIT_DTYPE_NONE ? d : otherwise;
}

typedef struct store_job {
  const ait_tensor *src;
  ait_tensor dst;
} store_job;

static void store_chunks(void *ctx, int64_t begin, int64_t end) {
  store_job *job = ctx;
  int64_t from = begin * CHUNK, to = ait_nn_min(end * CHUNK, ait_tensor_count(&job->dst));
  char *p = (char *)job->dst.data + from * (int64_t)ait_dtype_size(job->dst.dtype);
  if (job->src->dtype == AIT_F64) ait_nn_store(p, job->dst.dtype, 1, to - from, ait_nn_data(job->src) + from);
  else store_complex(p, job->dst.dtype, to - from, ait_nn_data(job->src) + 2 * from);
}

ait_status ait_nn_result(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *values) {
  if (!ait_nn_wants(call, k)) return AIT_OK;
  store_job job = {.src = values};
  AIT_TRY(ait_ref_new(call, k, dtype, values->rank, values->shape, &job.dst));
  int64_t count = ait_tensor_count(values);
  if (count > 0) ait_ref_parallel(call, (count + CHUNK - 1) / CHUNK, CHUNK, store_chunks, &job);
  return AIT_OK;
}

/* torch's is_channels_last_strides: sizes of one decide nothing, except that a tensor that is both counts as contiguous. */
bool ait_nn_is_channels_last(const ait_tensor *t) {
  static const int32_t orders[2][5] = {{1, 3, 2, 0, -1}, {1, 4, 3, 2, 0}};
  if (t->rank != 4 && t->rank != 5) return false;
  const int32_t *order = orders[t->rank - 4];
  int64_t least = 0;
  if (t->strides[1] == 0) return false;
  for (int32_t i = 0; i < t->rank; ++i) {
    int32_t d = order[i];
    if (t->shape[d] == 0 || t->strides[d] < least) return false;
    if (d == 0 && least == t->strides[1]) return false;
    least = t->strides[d];
    if (t->shape[d] > 1) least *= t->shape[d];
  }
  return true;
}

ait_status ait_nn_result_format(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *values, const ait_tensor *like) {
  if (!ait_nn_wants(call, k) || values->rank != like->rank || !ait_nn_is_channels_last(like)) return ait_nn_result(call, k, dtype, values);
  ait_tensor out;
  AIT_TRY(ait_ref_temp(call, dtype, values->rank, values->shape, &out));
  int64_t stride = 1;
  for (int32_t i = 0; i < out.rank; ++i) { /* channels, then the others from the last, the batch at the end */
    int32_t d = i == 0 ? 1 : i == out.rank - 1 ? 0 : out.rank - i;
    out.strides[d] = stride;
    stride *= ait_nn_max(1, out.shape[d]);
  }
  ait_status status = ait_tensor_count(&out) > 0 ? ait_tensor_copy(&out, values) : AIT_OK;
  if (status) ait_tensor_release(&out);
  else ait_ref_set(call, k, out);
  return status;
}

ait_status ait_nn_result_like(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *values, const ait_tensor *like) {
  if (!ait_nn_wants(call, k) || ait_tensor_is_contiguous(like)) return ait_nn_result(call, k, dtype, values);
  ait_tensor out;
  AIT_TRY(ait_ref_new_like(call, k, dtype, like, &out));
  return ait_tensor_count(&out) > 0 ? ait_tensor_copy(&out, values) : AIT_OK;
}

ait_status ait_nn_alias(ait_ref_call *call) {
  const ait_tensor *x;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  ait_ref_set_view(call, 0, x, x);
  return AIT_OK;
}

int64_t ait_nn_span(const ait_tensor *t, int32_t from, int32_t to) {
  int64_t n = 1;
  for (int32_t d = from; d < to; ++d) n *= t->shape[d];
  return n;
}

ait_status ait_nn_ints(const ait_ref_call *call, uint32_t arg, int32_t n, int64_t fill, int64_t *out) {
  int64_t given[AIT_MAX_RANK];
  int32_t count = 0;
  AIT_TRY(ait_ref_ints(call, arg, given, &count));
  if (count > 1 && count != n) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "argument %u has %d sizes, expected %d", arg, count, n);
  for (int32_t i = 0; i < n; ++i) out[i] = count == 0 ? fill : given[count == 1 ? 0 : i];
  return AIT_OK;
}

double *ait_nn_doubles(const ait_ref_call *call, int64_t count) {
  size_t bytes;
  if (count < 0 || ait_mul_overflows((size_t)count, sizeof(double), &bytes)) return NULL;
  return ait_alloc(call->allocator, bytes, 64);
}

void ait_nn_doubles_free(const ait_ref_call *call, double *p, int64_t count) {
  ait_free(call->allocator, p, (size_t)count * sizeof(double));
}

/* ---- element-wise ------------------------------------------------------------------------------------------------------------------*/
typedef struct map_job {
  double *x;
  const double *y;
  ait_nn_fn1 fn1;
  ait_nn_fn2 fn2;
  const double *params;
  int64_t count;
} map_job;

static void map_chunks(void *ctx, int64_t begin, int64_t end) {
  const map_job *job = ctx;
  int64_t to = ait_nn_min(end * CHUNK, job->count);
  if (job->fn1)
    for (int64_t i = begin * CHUNK; i < to; ++i) job->x[i] = job->fn1(job->x[i], job->params);
  else
    for (int64_t i = begin * CHUNK; i < to; ++i) job->x[i] = job->fn2(job->x[i], job->y[i], job->params);
}

static void map_run(const ait_ref_call *call, map_job *job) {
  if (job->count > 0) ait_ref_parallel(call, (job->count + CHUNK - 1) / CHUNK, CHUNK * 8, map_chunks, job);
}

static ait_dtype float_dtype(const ait_ref_call *call, ait_dtype d) { return ait_dtype_is_float(d) ? d : call->fp64 ? AIT_F64 : AIT_F32; }

ait_status ait_nn_map1(ait_ref_call *call, uint32_t arg, ait_nn_fn1 fn, const double *params) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, arg, &t));
  if (ait_dtype_is_complex(t->dtype)) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "complex operand");
  ait_tensor x;
  AIT_TRY(ait_nn_f64(call, t, &x));
  map_job job = {.x = x.data, .fn1 = fn, .params = params, .count = ait_tensor_count(&x)};
  map_run(call, &job);
  ait_status status = ait_nn_result_like(call, 0, ait_nn_dtype(call, 0, float_dtype(call, t->dtype)), &x, t);
  ait_tensor_release(&x);
  return status;
}

/* The operand's view, or one number in *number behind a tensor without dims. */
static ait_status operand(const ait_ref_call *call, uint32_t arg, double *number, ait_tensor *out) {
  if (ait_ref_is_tensor(call, arg)) {
    const ait_tensor *t;
    AIT_TRY(ait_ref_tensor(call, arg, &t));
    *out = *t;
    return AIT_OK;
  }
  ait_ref_scalar s;
  AIT_TRY(ait_ref_scalar_arg(call, arg, &s));
  *number = s.f;
  *out = ait_tensor_borrow(number, AIT_F64, 0, NULL);
  return AIT_OK;
}

ait_status ait_nn_map2(ait_ref_call *call, uint32_t arg_x, uint32_t arg_y, ait_nn_fn2 fn, const double *params) {
  ait_tensor tx, ty, x = {0}, y = {0};
  double numbers[2];
  AIT_TRY(operand(call, arg_x, &numbers[0], &tx));
  AIT_TRY(operand(call, arg_y, &numbers[1], &ty));
  const ait_tensor *operands[2] = {&tx, &ty};
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(ait_ref_broadcast(call, operands, 2, &rank, shape));
  tx = ait_ref_expand(&tx, rank, shape);
  ty = ait_ref_expand(&ty, rank, shape);
  ait_status status = ait_nn_f64(call, &tx, &x);
  if (!status) status = ait_nn_f64(call, &ty, &y);
  if (!status) {
    map_job job = {.x = x.data, .y = y.data, .fn2 = fn, .params = params, .count = ait_tensor_count(&x)};
    map_run(call, &job);
    ait_dtype promoted = tx.data == &numbers[0] ? ty.dtype : ty.data == &numbers[1] ? tx.dtype : ait_dtype_promote(tx.dtype, ty.dtype);
    status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, float_dtype(call, promoted)), &x);
  }
  ait_tensor_release(&x);
  ait_tensor_release(&y);
  return status;
}
