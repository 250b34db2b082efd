/* The parts of the npy format that reading and writing archives of it needs. Inside the tensor room. */
#ifndef AIT_SRC_TENSOR_NPY_H
#define AIT_SRC_TENSOR_NPY_H

#include "tensor/tensor.h"

typedef struct ait_npy_header {
  ait_dtype dtype;
  bool swapped, fortran; /* big-endian elements; first index fastest */
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
  size_t header_bytes, data_bytes; /* the elements follow the header */
} ait_npy_header;

enum { AIT_NPY_PREFIX_MAX = 12 };
/* Length of the whole header from its first bytes (AIT_NPY_PREFIX_MAX of them, or the whole file when that is shorter). */
ait_status ait_npy_header_size(const void *data, size_t size, size_t *out) AIT_MUST_USE;
ait_status ait_npy_header_parse(const void *data, size_t size, ait_npy_header *out) AIT_MUST_USE;
/* Memory for the elements in file order; to be filled, then finished (byte order, boolean values). */
ait_status ait_npy_tensor_create(ait_allocator a, const ait_npy_header *h, ait_tensor *out) AIT_MUST_USE;
void ait_npy_finish(const ait_npy_header *h, ait_tensor *t);

/* The dtype that a tensor is written as: float32 for bfloat16 and 8-bit floats, complex64 for complex32. */
ait_dtype ait_npy_dtype(ait_dtype dtype);
/* t itself (one more reference), or a copy that is contiguous and of a dtype that numpy has. */
ait_status ait_npy_contiguous(ait_allocator a, const ait_tensor *t, ait_tensor *out) AIT_MUST_USE;
ait_status ait_npy_header_format(const ait_tensor *contiguous, ait_text *out) AIT_MUST_USE;

#endif
