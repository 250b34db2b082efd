/* Elements of strided tensors of any dtype, in blocks of one of three domains: double, int64, complex double. Most operators compute on
 * such blocks, so that one loop serves all dtypes and strides. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_BLOCKS_H
#define AIT_SRC_BACKENDS_REFERENCE_BLOCKS_H

#include "backends/reference/reference.h"

#include <complex.h>

#define AIT_REF_BLOCK 256 /* elements */

typedef enum ait_ref_domain {
  AIT_REF_F, /* double: float dtypes, uint64 */
  AIT_REF_I, /* int64: other integers, bool (0 or 1) */
  AIT_REF_C, /* double complex */
} ait_ref_domain;

typedef union ait_ref_block {
  double f[AIT_REF_BLOCK];
  int64_t i[AIT_REF_BLOCK];
  double complex c[AIT_REF_BLOCK];
} ait_ref_block;

/* The domain in which every element of the dtype is exact (uint64: as two's complement in I). */
ait_ref_domain ait_ref_domain_of(ait_dtype dtype);
size_t ait_ref_domain_size(ait_ref_domain domain);

/* Elements start .. start+n-1 in row-major order. Casts follow torch: floats to ints truncate, to bool compare with zero. float16 and
 * narrower are rounded by way of float32. */
void ait_ref_load(const ait_tensor *t, int64_t start, int64_t n, ait_ref_domain domain, void *out);
void ait_ref_store(const ait_tensor *t, int64_t start, int64_t n, ait_ref_domain domain, const void *in);

/* Rounds doubles to what the dtype can hold (float dtypes; others unchanged). */
void ait_ref_round_to(ait_dtype dtype, int64_t n, double *values);

/* dst = src with cast; shapes equal; src and dst may not overlap unless they are the same view. Parallel. */
ait_status ait_ref_move(const ait_ref_call *call, const ait_tensor *dst, const ait_tensor *src) AIT_MUST_USE;
/* A contiguous copy as result k. */
ait_status ait_ref_copy_result(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *src) AIT_MUST_USE;
/* A new tensor of the shape of `like` as result k, its elements laid out in the order of `like`'s strides as torch's preserve_format does.
 */
ait_status ait_ref_new_like(ait_ref_call *call, uint32_t k, ait_dtype dtype, const ait_tensor *like, ait_tensor *out) AIT_MUST_USE;
/* Sets every element. */
ait_status ait_ref_set_all(const ait_ref_call *call, const ait_tensor *dst, const ait_ref_scalar *value) AIT_MUST_USE;
/* A contiguous tensor with the elements of t as its dtype's domain: double, int64 or complex; released by the caller. */
ait_status ait_ref_as_f64(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) AIT_MUST_USE;
ait_status ait_ref_as_i64(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) AIT_MUST_USE;

/* Merges neighbouring dims that all tensors (of one shape) walk alike; drops dims of size 1. */
void ait_ref_coalesce(ait_tensor *tensors, uint32_t count);

/* log(exp(a) + exp(b)) */
double complex ait_ref_log_add_exp(double complex a, double complex b);

#endif
