/* Strided tensors and values, as they cross the API.
 *
 * An ait_tensor is a plain view: pointer, dtype, shape, strides (in elements, may be zero or negative). It owns nothing unless
 * `storage` is set; then it holds one reference to counted storage, and ait_tensor_release gives it back. Copying the struct does
 * not take a reference: use ait_tensor_retain for that. Storage counts are atomic; a tensor's contents are not guarded. */
#ifndef AIT_TENSOR_H
#define AIT_TENSOR_H

#include <ait/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AIT_MAX_RANK 16

typedef enum ait_dtype {
  AIT_DTYPE_NONE = 0,
#define AIT_DTYPE(name, number, text, bytes, kind) AIT_##name = number,
#include <ait/dtypes.inc>
#undef AIT_DTYPE
} ait_dtype;

typedef struct ait_storage ait_storage;

typedef struct ait_tensor {
  void *data; /* first element (storage offset applied); may be NULL when the tensor has no elements */
  ait_dtype dtype;
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
  int64_t strides[AIT_MAX_RANK]; /* in elements */
  ait_storage *storage;          /* counted owner of the memory, or NULL for borrowed memory */
} ait_tensor;

/* "float32"; "?" for an unknown number. */
AIT_API const char *ait_dtype_name(ait_dtype dtype);
/* Bytes of one element; 0 for an unknown number. */
AIT_API size_t ait_dtype_size(ait_dtype dtype);
/* AIT_DTYPE_NONE when no dtype has that name. */
AIT_API ait_dtype ait_dtype_from_name(const char *name);

/* A new contiguous tensor, 64-byte aligned, contents undefined. shape may be NULL for rank 0. *out is released by the caller.
 * Errors: invalid-argument (rank, negative size, dtype), limit (size overflow), out-of-memory. */
AIT_API AIT_MUST_USE ait_status ait_tensor_create(ait_allocator allocator, ait_dtype dtype, int32_t rank, const int64_t *shape,
                                                  ait_tensor *out);
/* A view of the caller's memory, contiguous (row-major). The memory must outlive the view. */
AIT_API ait_tensor ait_tensor_borrow(void *data, ait_dtype dtype, int32_t rank, const int64_t *shape);
AIT_API ait_tensor ait_tensor_retain(const ait_tensor *tensor);
/* Gives the reference back, if any, and clears *tensor. Takes NULL. */
AIT_API void ait_tensor_release(ait_tensor *tensor);
AIT_API int64_t ait_tensor_count(const ait_tensor *tensor);
AIT_API bool ait_tensor_is_contiguous(const ait_tensor *tensor);

/* One leaf of the flattened arguments or results of a model. */
typedef enum ait_value_kind {
  AIT_VALUE_NONE = 0, /* Python None, or "not given" */
  AIT_VALUE_TENSOR,
  AIT_VALUE_INT,
  AIT_VALUE_FLOAT,
  AIT_VALUE_BOOL,
  AIT_VALUE_STRING,
} ait_value_kind;

typedef struct ait_value {
  ait_value_kind kind;
  union {
    ait_tensor tensor;
    int64_t i;
    double f;
    bool b;
    const char *s;
  } as;
} ait_value;

AIT_API ait_value ait_value_tensor(ait_tensor tensor); /* takes over the reference */
AIT_API void ait_value_release(ait_value *value);

#ifdef __cplusplus
}
#endif
#endif
