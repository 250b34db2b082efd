/* Copying with a cast, for any strides and any pair of dtypes.
 *
 * A copy is brought to a normal form (no dimensions of size 1, neighbours that step alike merged, the best dimension innermost) and done
 * row by row. A row of equal dtypes moves bytes; any other goes, in pieces that stay in the L1 cache, through one of four intermediate
 * types (int64, uint64, float, double), which hold every value of the source exactly. So there are two small loops for each dtype instead
 * of one for each pair. Complex numbers are two rows of their parts. */
#include "tensor/half.h"
#include "tensor/tensor.h"

enum { PIECE = 256, TILE = 32 };

/* ---- rows ----------------------------------------------------------------------------------------------------------------------*/
typedef union piece {
  int64_t i64[PIECE];
  uint64_t u64[PIECE];
  float f32[PIECE];
  double f64[PIECE];
} piece;

#define LOADER(name, middle, type, expression)                                  \
  static void load_##name(piece *out, const char *p, int64_t step, int64_t n) { \
    if (step == (int64_t)sizeof(type)) {                                        \
      for (int64_t k = 0; k < n; k++) {                                         \
        type v;                                                                 \
        memcpy(&v, p + (size_t)k * sizeof v, sizeof v);                         \
        out->middle[k] = (expression);                                          \
      }                                                                         \
      return;                                                                   \
    }                                                                           \
    for (int64_t k = 0; k < n; k++, p += step) {                                \
      type v;                                                                   \
      memcpy(&v, p, sizeof v);                                                  \
      out->middle[k] = (expression);                                            \
    }                                                                           \
  }
LOADER(truth, i64, uint8_t, v != 0)
LOADER(u8, i64, uint8_t, v)
LOADER(i8, i64, int8_t, v)
LOADER(u16, i64, uint16_t, v)
LOADER(i16, i64, int16_t, v)
LOADER(u32, i64, uint32_t, v)
LOADER(i32, i64, int32_t, v)
LOADER(i64, i64, int64_t, v)
LOADER(u64, u64, uint64_t, v)
LOADER(f16, f32, uint16_t, f16_to_f32(v))
LOADER(bf16, f32, uint16_t, bf16_to_f32(v))
LOADER(f32, f32, float, v)
LOADER(f64, f64, double, v)
LOADER(f8e4m3fn, f32, uint8_t, ait_f8_to_f32(v, AIT_F8E4M3FN))
LOADER(f8e5m2, f32, uint8_t, ait_f8_to_f32(v, AIT_F8E5M2))
LOADER(f8e4m3fnuz, f32, uint8_t, ait_f8_to_f32(v, AIT_F8E4M3FNUZ))
LOADER(f8e5m2fnuz, f32, uint8_t, ait_f8_to_f32(v, AIT_F8E5M2FNUZ))
LOADER(f8e8m0fnu, f32, uint8_t, ait_f8_to_f32(v, AIT_F8E8M0FNU))

#define STORER(name, middle, type, expression)                                             \
  static void store_##name##_##middle(const piece *in, char *p, int64_t step, int64_t n) { \
    if (step == (int64_t)sizeof(type)) {                                                   \
      for (int64_t k = 0; k < n; k++) {                                                    \
        __typeof__(in->middle[0]) v = in->middle[k];                                       \
        type stored = (type)(expression);                                                  \
        memcpy(p + (size_t)k * sizeof stored, &stored, sizeof stored);                     \
      }                                                                                    \
      return;                                                                              \
    }                                                                                      \
    for (int64_t k = 0; k < n; k++, p += step) {                                           \
      __typeof__(in->middle[0]) v = in->middle[k];                                         \
      type stored = (type)(expression);                                                    \
      memcpy(p, &stored, sizeof stored);                                                   \
    }                                                                                      \
  }
/* The same cast from all four intermediate types; floats to integers by the rules of ait_element_set_f64. */
#define STORERS(name, type, from_int, from_float) \
  STORER(name, i64, type, from_int)               \
  STORER(name, u64, type, from_int)               \
  STORER(name, f32, type, from_float)             \
  STORER(name, f64, type, from_float)
static inline int64_t as_integer(double v, ait_dtype dtype) {
  int64_t bits = 0;
  ait_element_set_f64(&bits, dtype, v);
  return bits;
}
STORERS(truth, uint8_t, v != 0, v != 0)
STORERS(w8, uint8_t, v, as_integer((double)v, AIT_I8))
STORERS(w16, uint16_t, v, as_integer((double)v, AIT_I16))
STORERS(i32, int32_t, v, as_integer((double)v, AIT_I32))
STORERS(u32, uint32_t, v, as_integer((double)v, AIT_U32))
STORERS(i64, int64_t, v, as_integer((double)v, AIT_I64))
STORERS(u64, uint64_t, v, as_integer((double)v, AIT_U64))
STORERS(f16, uint16_t, f32_to_f16((float)v), f32_to_f16((float)v))
STORERS(bf16, uint16_t, f32_to_bf16((float)v), f32_to_bf16((float)v))
STORERS(f32, float, v, v)
STORERS(f64, double, v, v)
#define STORERS_F8(name, dtype) STORERS(name, uint8_t, ait_f32_to_f8((float)v, dtype), ait_f32_to_f8((float)v, dtype))
STORERS_F8(f8e4m3fn, AIT_F8E4M3FN)
STORERS_F8(f8e5m2, AIT_F8E5M2)
STORERS_F8(f8e4m3fnuz, AIT_F8E4M3FNUZ)
STORERS_F8(f8e5m2fnuz, AIT_F8E5M2FNUZ)
STORERS_F8(f8e8m0fnu, AIT_F8E8M0FNU)

typedef enum middle_type { MIDDLE_I64, MIDDLE_U64, MIDDLE_F32, MIDDLE_F64 } middle_type;
typedef void (*load_fn)(piece *out, const char *p, int64_t step, int64_t n);
typedef void (*store_fn)(const piece *in, char *p, int64_t step, int64_t n);

#define ROW(load, middle, store)                                                                                         \
  {                                                                                                                      \
    load_##load, MIDDLE_##middle, { store_##store##_i64, store_##store##_u64, store_##store##_f32, store_##store##_f64 } \
  }
static const struct {
  load_fn load;
  middle_type middle;
  store_fn store[4];
} row_table[] = {
    [AIT_BOOL] = ROW(truth, I64, truth),
    [AIT_U8] = ROW(u8, I64, w8),
    [AIT_I8] = ROW(i8, I64, w8),
    [AIT_U16] = ROW(u16, I64, w16),
    [AIT_I16] = ROW(i16, I64, w16),
    [AIT_U32] = ROW(u32, I64, u32),
    [AIT_I32] = ROW(i32, I64, i32),
    [AIT_U64] = ROW(u64, U64, u64),
    [AIT_I64] = ROW(i64, I64, i64),
    [AIT_F16] = ROW(f16, F32, f16),
    [AIT_BF16] = ROW(bf16, F32, bf16),
    [AIT_F32] = ROW(f32, F32, f32),
    [AIT_F64] = ROW(f64, F64, f64),
    [AIT_F8E4M3FN] = ROW(f8e4m3fn, F32, f8e4m3fn),
    [AIT_F8E5M2] = ROW(f8e5m2, F32, f8e5m2),
    [AIT_F8E4M3FNUZ] = ROW(f8e4m3fnuz, F32, f8e4m3fnuz),
    [AIT_F8E5M2FNUZ] = ROW(f8e5m2fnuz, F32, f8e5m2fnuz),
    [AIT_F8E8M0FNU] = ROW(f8e8m0fnu, F32, f8e8m0fnu),
};

#define MOVER(bytes, type)                                                                              \
  static void move_##bytes(char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n) { \
    for (int64_t k = 0; k < n; k++, dst += dst_step, src += src_step) {                                 \
      type v;                                                                                           \
      memcpy(&v, src, sizeof v);                                                                        \
      memcpy(dst, &v, sizeof v);                                                                        \
    }                                                                                                   \
  }
typedef struct wide16 {
  uint64_t half[2];
} wide16;
MOVER(1, uint8_t)
MOVER(2, uint16_t)
MOVER(4, uint32_t)
MOVER(8, uint64_t)
MOVER(16, wide16)

/* ---- normal form ---------------------------------------------------------------------------------------------------------------*/
typedef struct copy_plan {
  ait_dtype dst_dtype, src_dtype;
  int64_t dst_size, src_size; /* bytes of an element */
  int32_t rank;
  int64_t shape[AIT_MAX_RANK], dst_step[AIT_MAX_RANK], src_step[AIT_MAX_RANK]; /* bytes; last dimension innermost */
} copy_plan;

static int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

static void plan_swap(copy_plan *p, int32_t i, int32_t j) {
  int64_t *arrays[] = {p->shape, p->dst_step, p->src_step};
  for (size_t k = 0; k < AIT_COUNT(arrays); k++) {
    int64_t t = arrays[k][i];
    arrays[k][i] = arrays[k][j];
    arrays[k][j] = t;
  }
}

/* Largest step of the destination first; the order of equal ones is kept. */
static void plan_sort(copy_plan *p) {
  for (int32_t i = 1; i < p->rank; i++) {
    for (int32_t j = i; j > 0 && magnitude(p->dst_step[j]) > magnitude(p->dst_step[j - 1]); j--) plan_swap(p, j, j - 1);
  }
}

static void plan_merge(copy_plan *p) {
  int32_t kept = 0;
  for (int32_t i = 0; i < p->rank; i++) {
    int32_t last = kept - 1;
    if (kept && p->dst_step[last] == p->dst_step[i] * p->shape[i] && p->src_step[last] == p->src_step[i] * p->shape[i]) {
      p->shape[last] *= p->shape[i];
      p->dst_step[last] = p->dst_step[i];
      p->src_step[last] = p->src_step[i];
    } else {
      p->shape[kept] = p->shape[i];
      p->dst_step[kept] = p->dst_step[i];
      p->src_step[kept++] = p->src_step[i];
    }
  }
  p->rank = kept;
}

/* A transposition reads along one dimension and writes along another: those two belong innermost, to be done in tiles. */
static void plan_place_source(copy_plan *p) {
  int32_t best = p->rank - 1;
  for (int32_t i = p->rank - 2; i >= 0; i--) {
    if (p->src_step[i] != 0 && magnitude(p->src_step[i]) < magnitude(p->src_step[best])) best = i;
  }
  for (int32_t i = best; i + 1 < p->rank - 1; i++) plan_swap(p, i, i + 1);
}

static copy_plan plan_make(const ait_tensor *dst, const ait_tensor *src) {
  copy_plan p = {.dst_dtype = dst->dtype, .src_dtype = src->dtype};
  p.dst_size = (int64_t)ait_dtype_size(dst->dtype);
  p.src_size = (int64_t)ait_dtype_size(src->dtype);
  for (int32_t i = 0; i < dst->rank; i++) {
    if (dst->shape[i] == 1) continue;
    p.shape[p.rank] = dst->shape[i];
    p.dst_step[p.rank] = dst->strides[i] * p.dst_size;
    p.src_step[p.rank++] = src->strides[i] * p.src_size;
  }
  plan_sort(&p);
  plan_merge(&p);
  if (p.rank == 0) { /* one element */
    p.rank = 1;
    p.shape[0] = 1;
  }
  if (p.rank > 1) plan_place_source(&p);
  return p;
}

/* ---- running -------------------------------------------------------------------------------------------------------------------*/
static void row_move(const copy_plan *p, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n) {
  if (dst_step == p->dst_size && src_step == p->dst_size) {
    memcpy(dst, src, (size_t)(n * p->dst_size));
    return;
  }
  switch (p->dst_size) {
    case 1: move_1(dst, dst_step, src, src_step, n); break;
    case 2: move_2(dst, dst_step, src, src_step, n); break;
    case 4: move_4(dst, dst_step, src, src_step, n); break;
    case 8: move_8(dst, dst_step, src, src_step, n); break;
    default: move_16(dst, dst_step, src, src_step, n); break;
  }
}

static void row_real(ait_dtype to, char *dst, int64_t dst_step, ait_dtype from, const char *src, int64_t src_step, int64_t n) {
  piece buffer;
  load_fn load = row_table[from].load;
  store_fn store = row_table[to].store[row_table[from].middle];
  for (int64_t done = 0; done < n; done += PIECE) {
    int64_t count = n - done < PIECE ? n - done : PIECE;
    load(&buffer, src + done * src_step, src_step, count);
    store(&buffer, dst + done * dst_step, dst_step, count);
  }
}

static void row_complex(const copy_plan *p, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n) {
  ait_dtype to = ait_dtype_component(p->dst_dtype), from = ait_dtype_component(p->src_dtype);
  if (p->dst_dtype == AIT_BOOL) { /* true when either part is not zero */
    for (int64_t k = 0; k < n; k++) {
      double v[2];
      ait_element_c128(src + k * src_step, p->src_dtype, v);
      ait_element_set_c128(dst + k * dst_step, AIT_BOOL, v);
    }
    return;
  }
  row_real(to, dst, dst_step, from, src, src_step, n);
  if (to == p->dst_dtype) return;
  char *imaginary = dst + ait_dtype_size(to);
  if (from != p->src_dtype) {
    row_real(to, imaginary, dst_step, from, src + ait_dtype_size(from), src_step, n);
    return;
  }
  for (int64_t k = 0; k < n; k++) memset(imaginary + k * dst_step, 0, ait_dtype_size(to));
}

static void row_copy(const copy_plan *p, char *dst, int64_t dst_step, const char *src, int64_t src_step, int64_t n) {
  if (p->dst_dtype == p->src_dtype) row_move(p, dst, dst_step, src, src_step, n);
  else if (ait_dtype_is_complex(p->dst_dtype) || ait_dtype_is_complex(p->src_dtype)) row_complex(p, dst, dst_step, src, src_step, n);
  else row_real(p->dst_dtype, dst, dst_step, p->src_dtype, src, src_step, n);
}

/* The two innermost dimensions. Square tiles keep the lines of the side that jumps in the cache. */
static void plane_copy(const copy_plan *p, char *dst, const char *src) {
  int32_t y = p->rank - 2, x = p->rank - 1;
  int64_t rows = p->shape[y], columns = p->shape[x];
  int64_t width = magnitude(p->src_step[x]) > magnitude(p->src_step[y]) && p->src_step[y] != 0 ? TILE : columns;
  for (int64_t left = 0; left < columns; left += width) {
    int64_t n = columns - left < width ? columns - left : width;
    for (int64_t row = 0; row < rows; row++) {
      row_copy(p, dst + row * p->dst_step[y] + left * p->dst_step[x], p->dst_step[x], src + row * p->src_step[y] + left * p->src_step[x],
               p->src_step[x], n);
    }
  }
}

static void plan_run(const copy_plan *p, char *dst, const char *src) {
  if (p->rank == 1) {
    row_copy(p, dst, p->dst_step[0], src, p->src_step[0], p->shape[0]);
    return;
  }
  int64_t index[AIT_MAX_RANK] = {0};
  for (;;) {
    plane_copy(p, dst, src);
    int32_t d = p->rank - 3;
    for (; d >= 0; d--) { /* the next index of the outer dimensions, like an odometer */
      dst += p->dst_step[d];
      src += p->src_step[d];
      if (++index[d] < p->shape[d]) break;
      dst -= p->dst_step[d] * p->shape[d];
      src -= p->src_step[d] * p->shape[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

ait_status ait_tensor_copy(const ait_tensor *dst, const ait_tensor *src) {
  if (!ait_tensor_same_shape(dst, src)) {
    char to[256], from[256];
    ait_tensor_shape_text(dst, to, sizeof to);
    ait_tensor_shape_text(src, from, sizeof from);
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "cannot copy a tensor of shape %s into one of shape %s", from, to);
  }
  if (ait_dtype_size(dst->dtype) == 0 || ait_dtype_size(src->dtype) == 0) {
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "cannot copy: unknown dtype %d",
                     ait_dtype_size(dst->dtype) ? (int)src->dtype : (int)dst->dtype);
  }
  if (ait_tensor_count(dst) == 0) return AIT_OK;
  copy_plan plan = plan_make(dst, src);
  plan_run(&plan, dst->data, src->data);
  return AIT_OK;
}

ait_status ait_tensor_cast(ait_allocator a, const ait_tensor *src, ait_dtype dtype, ait_tensor *out) {
  ait_tensor t;
  AIT_TRY(ait_tensor_create(a, dtype, src->rank, src->shape, &t));
  ait_status status = ait_tensor_copy(&t, src);
  if (status) ait_tensor_release(&t);
  else *out = t;
  return status;
}
