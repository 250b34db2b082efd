/* Shared tools of the neural-network operators (nn_*.c): rows of numbers as double, the matrix product, element-wise maps, random numbers.
 *
 * Nearly every operator here reads its operands as contiguous double (complex: pairs), computes in double and rounds once, when the
 * result is stored in the dtype that the program declares. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_NN_H
#define AIT_SRC_BACKENDS_REFERENCE_NN_H

#include "backends/reference/reference.h"
#include <math.h>

static inline bool ait_nn_is(const ait_ref_call *call, const char *op) { return strcmp(call->node->op, op) == 0; }
static inline bool ait_nn_starts(const ait_ref_call *call, const char *prefix) {
  return strncmp(call->node->op, prefix, strlen(prefix)) == 0;
}
/* The value as the integer dtype holds it: 0 - 1 is 255 in uint8. Composite operators of integers compute their parts so. Floats:
 * unchanged. */
static inline double ait_nn_wrap(ait_dtype dtype, double v) {
  if (!ait_dtype_is_integer(dtype) || dtype == AIT_U64) return v;
  int64_t element = 0;
  ait_element_set_i64(&element, dtype, (int64_t)v);
  return (double)ait_element_i64(&element, dtype);
}
static inline int64_t ait_nn_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ait_nn_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline const double *ait_nn_data(const ait_tensor *t) { return (const double *)t->data; }
static inline double *ait_nn_data_mut(const ait_tensor *t) { return (double *)t->data; }

/* ---- numbers (nn_common.c) -------------------------------------------------------------------------------------------------------*/
/* n real elements, `stride` elements apart, to and from double. */
void ait_nn_load(const void *p, ait_dtype dtype, int64_t stride, int64_t n, double *dst);
void ait_nn_store(void *p, ait_dtype dtype, int64_t stride, int64_t n, const double *src);
/* A contiguous F64 (C128 for complex) copy, made in parallel; released by the caller. */
ait_status ait_nn_numbers(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) AIT_MUST_USE;
/* The same for operators that take no complex numbers: unsupported when t is complex. */
ait_status ait_nn_f64(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) AIT_MUST_USE;
/* A contiguous C128 copy of any tensor. */
ait_status ait_nn_complex(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) AIT_MUST_USE;
/* Result 0: x w' + bias, as torch's linear; bias may be NULL. */
ait_status ait_nn_linear(ait_ref_call *call, const ait_tensor *x, const ait_tensor *w, const ait_tensor *bias) AIT_MUST_USE;
/* ait_nn_f64 of argument `arg`. */
ait_status ait_nn_arg(const ait_ref_call *call, uint32_t arg, ait_tensor *out) AIT_MUST_USE;
/* A missing argument leaves *out empty (data NULL). */
ait_status ait_nn_arg_or_null(const ait_ref_call *call, uint32_t arg, ait_tensor *out) AIT_MUST_USE;
/* The same, expanded to a shape. */
ait_status ait_nn_arg_expanded(const ait_ref_call *call, uint32_t arg, int32_t rank, const int64_t *shape, ait_tensor *out) AIT_MUST_USE;
/* As C128, of any dtype. */
ait_status ait_nn_complex_expanded(const ait_ref_call *call, uint32_t arg, int32_t rank, const int64_t *shape,
                                   ait_tensor *out) AIT_MUST_USE;
static inline double ait_nn_modulus(double _Complex z) { return hypot(__real__ z, __imag__ z); }
/* Zero-filled scratch of F64 or C128. */
ait_status ait_nn_zeros(const ait_ref_call *call, ait_dtype dtype, int32_t rank, const int64_t *shape, ait_tensor *out) AIT_MUST_USE;
/* The declared dtype of result k, or `otherwise`. */
ait_dtype ait_nn_dtype(const ait_ref_call *call, uint32_t k, ait_dtype otherwise);
/* The dtype as the user's program has it, before fp64 mode maps it. */
ait_dtype ait_nn_declared_dtype(const ait_ref_call *call, uint32_t k, ait_dtype otherwise);
/* Result k from a contiguous F64 or C128 tensor, rounded to `dtype` (the real parts when that is real). Does nothing when the program
 * does not ask for result k. */
ait_status ait_nn_result(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *values) AIT_MUST_USE;
/* The same, laid out as torch does for operators that keep the memory format: channels last when `like` is. */
ait_status ait_nn_result_format(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *values,
                                const ait_tensor *like) AIT_MUST_USE;
bool ait_nn_is_channels_last(const ait_tensor *t);
/* Result k, same shape as `like`, with the elements in the order of `like`'s strides (preserve_format). */
ait_status ait_nn_result_like(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *values,
                              const ait_tensor *like) AIT_MUST_USE;
static inline bool ait_nn_wants(const ait_ref_call *call, uint32_t k) {
  return k < call->node->result_count && call->node->results[k] != AIT_NO_INDEX;
}
/* Result 0 is argument 0 itself. */
ait_status ait_nn_alias(ait_ref_call *call) AIT_MUST_USE;
/* Product of the sizes of dims [from, to). */
int64_t ait_nn_span(const ait_tensor *t, int32_t from, int32_t to);
/* Arguments as exactly n ints: one given counts for all, none gives `fill`. */
ait_status ait_nn_ints(const ait_ref_call *call, uint32_t arg, int32_t n, int64_t fill, int64_t *out) AIT_MUST_USE;
/* Temporary memory of doubles. */
double *ait_nn_doubles(const ait_ref_call *call, int64_t count);
void ait_nn_doubles_free(const ait_ref_call *call, double *p, int64_t count);

/* ---- element-wise maps (nn_common.c) -----------------------------------------------------------------------------------------------
 * result 0 = fn(x, params) over argument `arg`; of two arguments, broadcast. Runs in double, in parallel. */
typedef double (*ait_nn_fn1)(double x, const double *params);
typedef double (*ait_nn_fn2)(double x, double y, const double *params);
ait_status ait_nn_map1(ait_ref_call *call, uint32_t arg, ait_nn_fn1 fn, const double *params) AIT_MUST_USE;
ait_status ait_nn_map2(ait_ref_call *call, uint32_t arg_x, uint32_t arg_y, ait_nn_fn2 fn, const double *params) AIT_MUST_USE;

/* ---- matrix product (nn_gemm.c) ----------------------------------------------------------------------------------------------------*/
/* rows x cols numbers of any real dtype; strides in elements of `dtype` */
typedef struct ait_nn_mat {
  const void *data;
  ait_dtype dtype;
  int64_t row_stride, col_stride;
} ait_nn_mat;
static inline ait_nn_mat ait_nn_mat_of(const double *p, int64_t row_stride, int64_t col_stride) {
  return (ait_nn_mat){.data = p, .dtype = AIT_F64, .row_stride = row_stride, .col_stride = col_stride};
}
/* Writes row k of B, columns [j0, j0 + n), for operands that are not matrices in memory (im2col). */
typedef void (*ait_nn_fill)(void *ctx, int64_t batch, int64_t k, int64_t j0, int64_t n, double *dst);
/* Receives a finished block of rows x cols of the product. */
typedef void (*ait_nn_sink)(void *ctx, int64_t batch, int64_t i0, int64_t j0, int64_t rows, int64_t cols, const double *tile, int64_t ld);
typedef struct ait_nn_gemm {
  int64_t batch, m, n, k;
  ait_nn_mat a, b; /* of batch 0 */
  /* Byte offsets of a and b of each batch, or NULL: batch * step bytes. */
  const int64_t *a_offsets, *b_offsets;
  int64_t a_step, b_step;
  ait_nn_fill fill_b; /* instead of b */
  void *fill_ctx;
  ait_nn_sink sink;
  void *sink_ctx;
} ait_nn_gemm;
/* All blocks over the pool; the result does not depend on the number of threads. Errors: out-of-memory. */
ait_status ait_nn_gemm_run(const ait_ref_call *call, const ait_nn_gemm *g) AIT_MUST_USE;
/* In the calling thread: C (m x n doubles, ld apart) = A B. scratch: AIT_NN_GEMM_SCRATCH doubles. */
void ait_nn_gemm_serial(const ait_nn_mat *a, const ait_nn_mat *b, int64_t m, int64_t n, int64_t k, double *c, int64_t ld, double *scratch);
enum {
  AIT_NN_MC = 64,
  AIT_NN_NC = 256,
  AIT_NN_KC = 256,
  AIT_NN_GEMM_SCRATCH = AIT_NN_MC * AIT_NN_KC + AIT_NN_KC * AIT_NN_NC + 2 * AIT_NN_NC * 4
};
/* C = A B in parallel; C is contiguous m x n doubles. */
ait_status ait_nn_product(const ait_ref_call *call, const ait_nn_mat *a, const ait_nn_mat *b, int64_t m, int64_t n, int64_t k,
                          double *c) AIT_MUST_USE;
/* c [batch, m, n] = a [batch, m, k] b [batch, k, n], contiguous F64 or C128. */
ait_status ait_nn_multiply(const ait_ref_call *call, bool is_complex, int64_t batch, int64_t m, int64_t n, int64_t k, const double *a,
                           const double *b, double *c) AIT_MUST_USE;

/* ---- linear algebra on contiguous complex matrices (nn_spectral.c) -----------------------------------------------------------------*/
/* Singular values of the m x n matrix a, largest first: min(m, n) of them. */
ait_status ait_nn_singular_values(const ait_ref_call *call, const double _Complex *a, int64_t m, int64_t n, double *out) AIT_MUST_USE;

/* ---- random numbers (nn_random.c) --------------------------------------------------------------------------------------------------*/
/* Philox-4x32-10, keyed by the session's seed and the draw's number: the same program draws the same numbers in each new session. */
typedef struct ait_nn_random {
  uint32_t key[2], counter[4], block[4], used;
} ait_nn_random;
void ait_nn_random_init(ait_ref_call *call, ait_nn_random *r);
uint32_t ait_nn_random_u32(ait_nn_random *r);
double ait_nn_random_uniform(ait_nn_random *r); /* [0, 1), 53 bits */
double ait_nn_random_normal(ait_nn_random *r);

#endif
