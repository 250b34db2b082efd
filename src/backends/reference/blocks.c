#include "backends/reference/blocks.h"

#include <math.h>

ait_ref_domain ait_ref_domain_of(ait_dtype dtype) {
  switch (ait_dtype_kind_of(dtype)) {
    case AIT_KIND_FLOAT: return AIT_REF_F;
    case AIT_KIND_COMPLEX: return AIT_REF_C;
    default: return AIT_REF_I;
  }
}

size_t ait_ref_domain_size(ait_ref_domain domain) { return domain == AIT_REF_C ? sizeof(double complex) : sizeof(double); }

/* ---- one run of elements -----------------------------------------------------------------------------------------------------------*/
/* What x86 does: out of range and NaN give the smallest int64. */
static int64_t to_i64(double v) { return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? (int64_t)v : INT64_MIN; }
static uint64_t to_u64(double v) { return v >= 9223372036854775808.0 && v < 18446744073709551616.0 ? (uint64_t)v : (uint64_t)to_i64(v); }

static int32_t to_i32(double v) { return v > -2147483649.0 && v < 2147483648.0 ? (int32_t)v : INT32_MIN; }

static double complex pair(double re, double im) { return __builtin_complex(re, im); }

/* X(dtype, C type, value as double, value as int64) with `v` the stored element; complex dtypes are apart. */
#define REAL_DTYPES(X)                                                                                               \
  X(BOOL, uint8_t, (double)(v != 0), (int64_t)(v != 0))                                                              \
  X(U8, uint8_t, (double)v, (int64_t)v)                                                                              \
  X(I8, int8_t, (double)v, (int64_t)v)                                                                               \
  X(U16, uint16_t, (double)v, (int64_t)v)                                                                            \
  X(I16, int16_t, (double)v, (int64_t)v)                                                                             \
  X(U32, uint32_t, (double)v, (int64_t)v)                                                                            \
  X(I32, int32_t, (double)v, (int64_t)v)                                                                             \
  X(U64, uint64_t, (double)v, (int64_t)v)                                                                            \
  X(I64, int64_t, (double)v, (int64_t)v)                                                                             \
  X(F16, uint16_t, (double)ait_f16_to_f32(v), to_i64((double)ait_f16_to_f32(v)))                                     \
  X(BF16, uint16_t, (double)ait_bf16_to_f32(v), to_i64((double)ait_bf16_to_f32(v)))                                  \
  X(F32, float, (double)v, to_i64((double)v))                                                                        \
  X(F64, double, v, to_i64(v))                                                                                       \
  X(F8E4M3FN, uint8_t, (double)ait_f8_to_f32(v, AIT_F8E4M3FN), to_i64((double)ait_f8_to_f32(v, AIT_F8E4M3FN)))       \
  X(F8E5M2, uint8_t, (double)ait_f8_to_f32(v, AIT_F8E5M2), to_i64((double)ait_f8_to_f32(v, AIT_F8E5M2)))             \
  X(F8E4M3FNUZ, uint8_t, (double)ait_f8_to_f32(v, AIT_F8E4M3FNUZ), to_i64((double)ait_f8_to_f32(v, AIT_F8E4M3FNUZ))) \
  X(F8E5M2FNUZ, uint8_t, (double)ait_f8_to_f32(v, AIT_F8E5M2FNUZ), to_i64((double)ait_f8_to_f32(v, AIT_F8E5M2FNUZ))) \
  X(F8E8M0FNU, uint8_t, (double)ait_f8_to_f32(v, AIT_F8E8M0FNU), to_i64((double)ait_f8_to_f32(v, AIT_F8E8M0FNU)))

#define LOAD_F(name, type, as_f, as_i) \
  case AIT_##name: {                   \
    const type *s = src;               \
    for (int64_t k = 0; k < n; ++k) {  \
      type v = s[k * stride];          \
      dst[k] = as_f;                   \
    }                                  \
    break;                             \
  }
#define LOAD_I(name, type, as_f, as_i) \
  case AIT_##name: {                   \
    const type *s = src;               \
    for (int64_t k = 0; k < n; ++k) {  \
      type v = s[k * stride];          \
      dst[k] = as_i;                   \
    }                                  \
    break;                             \
  }

static double complex complex_at(const void *src, ait_dtype dtype, int64_t index) {
  double c[2];
  ait_element_c128((const char *)src + index * (int64_t)ait_dtype_size(dtype), dtype, c);
  return pair(c[0], c[1]);
}

static void load_f(const void *src, ait_dtype dtype, int64_t stride, int64_t n, double *dst) {
  switch (dtype) {
    REAL_DTYPES(LOAD_F)
    default:
      for (int64_t k = 0; k < n; ++k) dst[k] = creal(complex_at(src, dtype, k * stride));
  }
}

static void load_i(const void *src, ait_dtype dtype, int64_t stride, int64_t n, int64_t *dst) {
  switch (dtype) {
    REAL_DTYPES(LOAD_I)
    default:
      for (int64_t k = 0; k < n; ++k) {
        double complex c = complex_at(src, dtype, k * stride);
        dst[k] = to_i64(creal(c));
      }
  }
}

static void load_c(const void *src, ait_dtype dtype, int64_t stride, int64_t n, double complex *dst) {
  if (ait_dtype_is_complex(dtype)) {
    for (int64_t k = 0; k < n; ++k) dst[k] = complex_at(src, dtype, k * stride);
    return;
  }
  double real[AIT_REF_BLOCK];
  load_f(src, dtype, stride, n, real);
  for (int64_t k = 0; k < n; ++k) dst[k] = pair(real[k], 0);
}

/* X(dtype, C type, from double v, from int64 v) */
#define STORE_DTYPES(X)                                                                                    \
  X(BOOL, uint8_t, (uint8_t)(v != 0), (uint8_t)(v != 0))                                                   \
  X(U8, uint8_t, (uint8_t)to_i32(v), (uint8_t)v)                                                           \
  X(I8, int8_t, (int8_t)to_i32(v), (int8_t)v)                                                              \
  X(U16, uint16_t, (uint16_t)to_i32(v), (uint16_t)v)                                                       \
  X(I16, int16_t, (int16_t)to_i32(v), (int16_t)v)                                                          \
  X(U32, uint32_t, (uint32_t)to_i64(v), (uint32_t)v)                                                       \
  X(I32, int32_t, to_i32(v), (int32_t)v)                                                                   \
  X(U64, uint64_t, to_u64(v), (uint64_t)v)                                                                 \
  X(I64, int64_t, to_i64(v), v)                                                                            \
  X(F16, uint16_t, ait_f32_to_f16((float)v), ait_f32_to_f16((float)v))                                     \
  X(BF16, uint16_t, ait_f32_to_bf16((float)v), ait_f32_to_bf16((float)v))                                  \
  X(F32, float, (float)v, (float)v)                                                                        \
  X(F64, double, v, (double)v)                                                                             \
  X(F8E4M3FN, uint8_t, ait_f32_to_f8((float)v, AIT_F8E4M3FN), ait_f32_to_f8((float)v, AIT_F8E4M3FN))       \
  X(F8E5M2, uint8_t, ait_f32_to_f8((float)v, AIT_F8E5M2), ait_f32_to_f8((float)v, AIT_F8E5M2))             \
  X(F8E4M3FNUZ, uint8_t, ait_f32_to_f8((float)v, AIT_F8E4M3FNUZ), ait_f32_to_f8((float)v, AIT_F8E4M3FNUZ)) \
  X(F8E5M2FNUZ, uint8_t, ait_f32_to_f8((float)v, AIT_F8E5M2FNUZ), ait_f32_to_f8((float)v, AIT_F8E5M2FNUZ)) \
  X(F8E8M0FNU, uint8_t, ait_f32_to_f8((float)v, AIT_F8E8M0FNU), ait_f32_to_f8((float)v, AIT_F8E8M0FNU))

#define STORE_F(name, type, from_f, from_i) \
  case AIT_##name: {                        \
    type *d = dst;                          \
    for (int64_t k = 0; k < n; ++k) {       \
      double v = src[k];                    \
      d[k * stride] = from_f;               \
    }                                       \
    break;                                  \
  }
#define STORE_I(name, type, from_f, from_i) \
  case AIT_##name: {                        \
    type *d = dst;                          \
    for (int64_t k = 0; k < n; ++k) {       \
      int64_t v = src[k];                   \
      d[k * stride] = from_i;               \
    }                                       \
    break;                                  \
  }

static void set_complex(void *dst, ait_dtype dtype, int64_t index, double re, double im) {
  ait_element_set_c128((char *)dst + index * (int64_t)ait_dtype_size(dtype), dtype, (double[2]){re, im});
}

static void store_f(void *dst, ait_dtype dtype, int64_t stride, int64_t n, const double *src) {
  switch (dtype) {
    STORE_DTYPES(STORE_F)
    default:
      for (int64_t k = 0; k < n; ++k) set_complex(dst, dtype, k * stride, src[k], 0);
  }
}

static void store_i(void *dst, ait_dtype dtype, int64_t stride, int64_t n, const int64_t *src) {
  switch (dtype) {
    STORE_DTYPES(STORE_I)
    default:
      for (int64_t k = 0; k < n; ++k) set_complex(dst, dtype, k * stride, (double)src[k], 0);
  }
}

static void store_c(void *dst, ait_dtype dtype, int64_t stride, int64_t n, const double complex *src) {
  if (ait_dtype_is_complex(dtype)) {
    for (int64_t k = 0; k < n; ++k) set_complex(dst, dtype, k * stride, creal(src[k]), cimag(src[k]));
    return;
  }
  double real[AIT_REF_BLOCK];
  for (int64_t k = 0; k < n; ++k) real[k] = dtype == AIT_BOOL ? (double)(src[k] != 0) : creal(src[k]);
  store_f(dst, dtype, stride, n, real);
}

static void load_run(const void *src, ait_dtype dtype, int64_t stride, int64_t n, ait_ref_domain domain, void *dst) {
  if (domain == AIT_REF_F) load_f(src, dtype, stride, n, dst);
  else if (domain == AIT_REF_I) load_i(src, dtype, stride, n, dst);
  else load_c(src, dtype, stride, n, dst);
}

static void store_run(void *dst, ait_dtype dtype, int64_t stride, int64_t n, ait_ref_domain domain, const void *src) {
  if (domain == AIT_REF_F) store_f(dst, dtype, stride, n, src);
  else if (domain == AIT_REF_I) store_i(dst, dtype, stride, n, src);
  else store_c(dst, dtype, stride, n, src);
}

/* ---- walking -----------------------------------------------------------------------------------------------------------------------*/
typedef struct cursor {
  int64_t index[AIT_MAX_RANK];
  char *at;       /* element at index */
  int64_t run;    /* elements left in the innermost dim */
  int64_t stride; /* of the innermost dim, in elements */
} cursor;

static void cursor_start(const ait_tensor *t, int64_t start, cursor *c) {
  int64_t offset = 0;
  for (int32_t d = t->rank; d-- > 0;) {
    c->index[d] = start % t->shape[d];
    start /= t->shape[d];
    offset += c->index[d] * t->strides[d];
  }
  c->at = (char *)t->data + offset * (int64_t)ait_dtype_size(t->dtype);
  c->run = t->rank ? t->shape[t->rank - 1] - c->index[t->rank - 1] : 1;
  c->stride = t->rank ? t->strides[t->rank - 1] : 1;
}

/* Goes n elements on; n does not pass the end of the run. */
static void cursor_advance(const ait_tensor *t, int64_t n, cursor *c) {
  int64_t size = (int64_t)ait_dtype_size(t->dtype);
  c->at += n * c->stride * size;
  c->run -= n;
  if (c->run > 0 || t->rank == 0) return;
  int32_t d = t->rank - 1;
  c->index[d] = 0;
  c->run = t->shape[d];
  c->at -= t->shape[d] * t->strides[d] * size;
  while (d-- > 0) {
    c->at += t->strides[d] * size;
    if (++c->index[d] < t->shape[d]) return;
    c->at -= t->shape[d] * t->strides[d] * size;
    c->index[d] = 0;
  }
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

void ait_ref_load(const ait_tensor *t, int64_t start, int64_t n, ait_ref_domain domain, void *out) {
  cursor c;
  cursor_start(t, start, &c);
  size_t item = ait_ref_domain_size(domain);
  for (char *to = out; n > 0;) {
    int64_t run = smaller(smaller(c.run, n), AIT_REF_BLOCK);
    load_run(c.at, t->dtype, c.stride, run, domain, to);
    to += (size_t)run * item;
    n -= run;
    cursor_advance(t, run, &c);
  }
}

void ait_ref_store(const ait_tensor *t, int64_t start, int64_t n, ait_ref_domain domain, const void *in) {
  cursor c;
  cursor_start(t, start, &c);
  size_t item = ait_ref_domain_size(domain);
  for (const char *from = in; n > 0;) {
    int64_t run = smaller(smaller(c.run, n), AIT_REF_BLOCK);
    store_run(c.at, t->dtype, c.stride, run, domain, from);
    from += (size_t)run * item;
    n -= run;
    cursor_advance(t, run, &c);
  }
}

void ait_ref_round_to(ait_dtype dtype, int64_t n, double *values) {
  switch (dtype) {
    case AIT_F32:
      for (int64_t k = 0; k < n; ++k) values[k] = (double)(float)values[k];
      break;
    case AIT_F16:
      for (int64_t k = 0; k < n; ++k) values[k] = (double)ait_f16_to_f32(ait_f32_to_f16((float)values[k]));
      break;
    case AIT_BF16:
      for (int64_t k = 0; k < n; ++k) values[k] = (double)ait_bf16_to_f32(ait_f32_to_bf16((float)values[k]));
      break;
    default: break;
  }
}

void ait_ref_coalesce(ait_tensor *tensors, uint32_t count) {
  int32_t rank = tensors[0].rank, out = 0;
  for (int32_t d = 0; d < rank; ++d) {
    if (tensors[0].shape[d] == 1) continue;
    bool merge = out > 0;
    for (uint32_t i = 0; i < count && merge; ++i) merge = tensors[i].strides[out - 1] == tensors[i].shape[d] * tensors[i].strides[d];
    for (uint32_t i = 0; i < count; ++i) {
      ait_tensor *t = &tensors[i];
      if (merge) t->shape[out - 1] *= t->shape[d];
      else t->shape[out] = t->shape[d];
      t->strides[merge ? out - 1 : out] = t->strides[d];
    }
    if (!merge) ++out;
  }
  for (uint32_t i = 0; i < count; ++i) tensors[i].rank = out;
}

/* ---- copies ------------------------------------------------------------------------------------------------------------------------*/
static void move_run(char *dst, int64_t dst_stride, const char *src, int64_t src_stride, int64_t n, size_t size) {
  if (dst_stride == 1 && src_stride == 1) {
    memcpy(dst, src, (size_t)n * size);
    return;
  }
#define MOVE(type)                                                         \
  {                                                                        \
    type *d = (type *)(void *)dst;                                         \
    const type *s = (const type *)(const void *)src;                       \
    for (int64_t k = 0; k < n; ++k) d[k * dst_stride] = s[k * src_stride]; \
    break;                                                                 \
  }
  switch (size) {
    case 1: MOVE(uint8_t)
    case 2: MOVE(uint16_t)
    case 4: MOVE(uint32_t)
    case 8: MOVE(uint64_t)
    default: MOVE(double complex)
  }
#undef MOVE
}

typedef struct copy_job {
  ait_tensor t[2]; /* destination, source; coalesced together */
} copy_job;

static void move_range(void *ctx, int64_t begin, int64_t end) {
  const copy_job *job = ctx;
  const ait_tensor *dst = &job->t[0], *src = &job->t[1];
  cursor to, from;
  cursor_start(dst, begin, &to);
  cursor_start(src, begin, &from);
  for (int64_t n = end - begin; n > 0;) {
    int64_t run = smaller(to.run, n);
    move_run(to.at, to.stride, from.at, from.stride, run, ait_dtype_size(dst->dtype));
    n -= run;
    cursor_advance(dst, run, &to);
    cursor_advance(src, run, &from);
  }
}

static void cast_range(void *ctx, int64_t begin, int64_t end) {
  const copy_job *job = ctx;
  ait_dtype from = job->t[1].dtype;
  ait_ref_domain domain = ait_ref_domain_of(from);
  if (from == AIT_U64 && !ait_dtype_is_integer(job->t[0].dtype)) domain = AIT_REF_F;
  ait_ref_block block;
  for (int64_t at = begin; at < end; at += AIT_REF_BLOCK) {
    int64_t n = smaller(end - at, AIT_REF_BLOCK);
    ait_ref_load(&job->t[1], at, n, domain, &block);
    ait_ref_store(&job->t[0], at, n, domain, &block);
  }
}

ait_status ait_ref_move(const ait_ref_call *call, const ait_tensor *dst, const ait_tensor *src) {
  if (!ait_tensor_same_shape(dst, src)) return ait_ref_error(call, AIT_CODE_INTERNAL, "copy between different shapes");
  int64_t count = ait_tensor_count(dst);
  if (count == 0) return AIT_OK;
  copy_job job = {{*dst, *src}};
  ait_ref_coalesce(job.t, 2);
  ait_ref_parallel(call, count, 1, dst->dtype == src->dtype ? move_range : cast_range, &job);
  return AIT_OK;
}

ait_status ait_ref_copy_result(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *src) {
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, k, dtype, src->rank, src->shape, &out));
  return ait_ref_move(call, &out, src);
}

ait_status ait_ref_set_all(const ait_ref_call *call, const ait_tensor *dst, const ait_ref_scalar *value) {
  double complex c[1] = {pair(value->f, value->imag)};
  double element[2]; /* one element of any dtype, aligned */
  if (value->kind == AIT_KIND_INT || value->kind == AIT_KIND_BOOL) store_i(element, dst->dtype, 1, 1, &value->i);
  else if (value->kind == AIT_KIND_COMPLEX) store_c(element, dst->dtype, 1, 1, c);
  else store_f(element, dst->dtype, 1, 1, &value->f);
  ait_tensor one = {.data = element, .dtype = dst->dtype};
  ait_tensor all = ait_ref_expand(&one, dst->rank, dst->shape);
  return ait_ref_move(call, dst, &all);
}

/* Dims by falling stride; false when the order is the row-major one, or the elements do not lie densely. */
static bool stride_order(const ait_tensor *t, int32_t order[AIT_MAX_RANK]) {
  int32_t n = 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    if (t->shape[d] <= 1) continue;
    if (t->strides[d] <= 0) return false;
    int32_t at = n++;
    for (; at > 0 && t->strides[order[at - 1]] < t->strides[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int32_t k = 1; k < n; ++k)
    if (order[k] < order[k - 1]) return true;
  return false;
}

ait_status ait_ref_new_like(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *like, ait_tensor *out) {
  ait_tensor t;
  int32_t order[AIT_MAX_RANK];
  AIT_TRY(ait_ref_temp(call, dtype, like->rank, like->shape, &t));
  if (stride_order(like, order)) {
    int64_t stride = 1;
    int32_t n = 0;
    for (int32_t d = 0; d < t.rank; ++d) n += t.shape[d] > 1;
    for (int32_t i = n; i-- > 0;) {
      t.strides[order[i]] = stride;
      stride *= t.shape[order[i]];
    }
  }
  ait_ref_set(call, k, t);
  *out = t;
  return AIT_OK;
}

static ait_status as_dtype(const ait_ref_call *call, const ait_tensor *t, ait_dtype dtype, ait_tensor *out) {
  AIT_TRY(ait_ref_temp(call, dtype, t->rank, t->shape, out));
  ait_status status = ait_ref_move(call, out, t);
  if (status != AIT_OK) ait_tensor_release(out);
  return status;
}

ait_status ait_ref_as_f64(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) { return as_dtype(call, t, AIT_F64, out); }
ait_status ait_ref_as_i64(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) { return as_dtype(call, t, AIT_I64, out); }
