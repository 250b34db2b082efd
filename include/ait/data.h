/* Tensors on disk, copies and comparison: what a program around a model needs. */
#ifndef AIT_DATA_H
#define AIT_DATA_H

#include <ait/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element-wise copy with torch's cast rules, any strides; shapes must be equal, memory must not overlap. */
AIT_API AIT_MUST_USE ait_status ait_tensor_copy(const ait_tensor *dst, const ait_tensor *src);
/* A contiguous copy of another dtype, or the same; released by the caller. */
AIT_API AIT_MUST_USE ait_status ait_tensor_cast(ait_allocator allocator, const ait_tensor *src, ait_dtype dtype, ait_tensor *out);

typedef struct ait_compare_rule {
  bool exact;        /* equal bits; any NaN equals any NaN, -0 equals 0 */
  double rtol, atol; /* else |got - want| <= atol + rtol * |want|, NaN where NaN, infinities equal */
} ait_compare_rule;

typedef struct ait_compare_result {
  bool pass;
  int64_t count, mismatches;
  double max_abs, max_rel, snr_db, cosine;
  int64_t worst_index; /* flat, row-major; -1: none */
  double worst_got, worst_want;
  int64_t nan_got, nan_want;
  int64_t argmax_agree, argmax_rows; /* argmax over the last dim */
} ait_compare_result;

/* dtypes may differ (compared as double or complex double). Errors: mismatch when the shapes differ. */
AIT_API AIT_MUST_USE ait_status ait_compare(const ait_tensor *got, const ait_tensor *want, const ait_compare_rule *rule,
                                            ait_compare_result *out);

/* A set of named tensors, in order: an .npz, an .npy, or what a program collects. */
typedef struct ait_data ait_data;
AIT_API AIT_MUST_USE ait_status ait_data_create(ait_allocator allocator, ait_data **out);
AIT_API void ait_data_destroy(ait_data *data); /* takes NULL */
/* .npz (names without ".npy"), .npy (one tensor named after the file), .safetensors or the index of its shards. Errors name the file: io,
 * not-found, invalid-model, unsupported. */
AIT_API AIT_MUST_USE ait_status ait_data_load(ait_allocator allocator, const char *path, ait_data **out);
/* .npz, whole or not at all; equal contents give equal bytes. bfloat16 and float8 are written as float32, complex32 as complex64. */
AIT_API AIT_MUST_USE ait_status ait_data_save(const ait_data *data, const char *path);
AIT_API AIT_MUST_USE ait_status ait_data_add(ait_data *data, const char *name, const ait_tensor *tensor); /* copies the contents */
AIT_API size_t ait_data_count(const ait_data *data);
AIT_API const char *ait_data_name(const ait_data *data, size_t index);
AIT_API const ait_tensor *ait_data_tensor(const ait_data *data, size_t index);   /* borrowed */
AIT_API const ait_tensor *ait_data_find(const ait_data *data, const char *name); /* borrowed; NULL when there is none */

#ifdef __cplusplus
}
#endif
#endif
