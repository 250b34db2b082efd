/* Views of tensors, as values: the arithmetic on shapes and strides that many operators share. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_SHAPES_H
#define AIT_SRC_BACKENDS_REFERENCE_SHAPES_H

#include "backends/reference/blocks.h"

/* Fills the one -1 of `shape` from the number of elements. Errors when sizes and elements do not agree. */
ait_status ait_ref_infer_shape(const ait_ref_call *call, const ait_tensor *t, int64_t *shape, int32_t rank) AIT_MUST_USE;
/* t with another shape without moving elements; false when its strides do not permit that. The counts agree. */
bool ait_ref_restrided(const ait_tensor *t, int32_t rank, const int64_t *shape, ait_tensor *out);
/* A view where strides permit (retains storage), else a contiguous copy. Released by the caller. */
ait_status ait_ref_reshaped(const ait_ref_call *call, const ait_tensor *t, int32_t rank, const int64_t *shape,
                            ait_tensor *out) AIT_MUST_USE;
/* t itself (retained) when contiguous, else a contiguous copy. Released by the caller. */
ait_status ait_ref_contiguous_of(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) AIT_MUST_USE;

/* Plain views; dims are valid and in range. The storage pointer is copied without a reference. */
ait_tensor ait_ref_transposed(const ait_tensor *t, int32_t a, int32_t b);
ait_tensor ait_ref_selected(const ait_tensor *t, int32_t dim, int64_t index);
ait_tensor ait_ref_narrowed(const ait_tensor *t, int32_t dim, int64_t start, int64_t length);
ait_tensor ait_ref_unsqueezed(const ait_tensor *t, int32_t dim);
/* Dim `dim` moved to the end. */
ait_tensor ait_ref_dim_last(const ait_tensor *t, int32_t dim);
/* The diagonal as last dim. */
ait_status ait_ref_diagonal_view(const ait_ref_call *call, const ait_tensor *t, int64_t offset, int64_t dim1, int64_t dim2,
                                 ait_tensor *out) AIT_MUST_USE;
/* Expansion with ATen's checks: -1 keeps a size, sizes of 1 stretch. */
ait_status ait_ref_expanded(const ait_ref_call *call, const ait_tensor *t, int32_t rank, const int64_t *shape,
                            ait_tensor *out) AIT_MUST_USE;

/* Reads start, end and step of a slice from arguments start_arg.. (none: the whole), wraps and clamps them. */
ait_status ait_ref_slice_args(const ait_ref_call *call, uint32_t start_arg, int64_t size, int64_t *out_start, int64_t *out_length,
                              int64_t *out_step) AIT_MUST_USE;
/* Wraps a negative index; out of range is an error that names index and size. */
ait_status ait_ref_wrap_index(const ait_ref_call *call, int64_t index, int64_t size, int64_t *out) AIT_MUST_USE;
/* Argument `arg` as a dim of a tensor of that rank; none: when_none. */
ait_status ait_ref_dim_arg(const ait_ref_call *call, uint32_t arg, int64_t when_none, int32_t rank, int32_t *out) AIT_MUST_USE;

/* Runs `view`, then replaces the views among its results by contiguous copies. */
ait_status ait_ref_copied(ait_ref_call *call, ait_ref_fn view) AIT_MUST_USE;

#endif
