/* What the operators of ONNX that PyTorch does not have share (onnx_*.c). They take as tensors what ATen takes as numbers, and follow numpy
 * in the details: https://onnx.ai/onnx/operators. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_ONNX_H
#define AIT_SRC_BACKENDS_REFERENCE_ONNX_H

#include "backends/reference/nn.h"
#include "backends/reference/shapes.h"

/* The integers in tensor argument `arg`, at most `max` of them; *out_count -1 when the argument is none. */
ait_status ait_onnx_ints(const ait_ref_call *call, uint32_t arg, int64_t *out, int32_t max, int32_t *out_count) AIT_MUST_USE;
/* Axes in tensor argument `arg`, wrapped and checked to differ. */
ait_status ait_onnx_axes(const ait_ref_call *call, uint32_t arg, int32_t rank, bool set[AIT_MAX_RANK], int32_t *out_count) AIT_MUST_USE;
/* A number that is an argument or the one element of a tensor. */
ait_status ait_onnx_number(const ait_ref_call *call, uint32_t arg, double *out) AIT_MUST_USE;
/* Runs another operator on the given arguments; its results are this node's. */
ait_status ait_onnx_delegate(ait_ref_call *call, const char *op, const ait_arg *args, uint32_t count) AIT_MUST_USE;
/* Result k, contiguous, with the dtype that the program declares (or `otherwise`). */
ait_status ait_onnx_new(ait_ref_call *call, uint32_t k, ait_dtype otherwise, int32_t rank, const int64_t *shape,
                        ait_tensor *out) AIT_MUST_USE;
/* Element at a place of a strided tensor, in bytes. */
static inline char *ait_onnx_at(const ait_tensor *t, int64_t element) {
  return (char *)t->data + element * (int64_t)ait_dtype_size(t->dtype);
}

#endif
