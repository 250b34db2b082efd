/* Reductions over some dims: one accumulator a result element, fed block by block. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_REDUCE_H
#define AIT_SRC_BACKENDS_REFERENCE_REDUCE_H

#include "backends/reference/shapes.h"

typedef struct ait_ref_accumulator {
  double f, g;
  int64_t i, index, count;
  double complex c;
  bool any;
} ait_ref_accumulator;

typedef struct ait_ref_reduction {
  /* Feeds n elements of the compute domain; `first` is the position of the first one among the reduced elements. */
  void (*step)(ait_ref_accumulator *a, const ait_ref_block *block, int64_t n, int64_t first, const double *params);
  /* Optional second pass over the same elements. */
  void (*again)(ait_ref_accumulator *a, const ait_ref_block *block, int64_t n, int64_t first, const double *params);
  /* Writes the element (double, int64 or complex) of result k. */
  void (*finish)(const ait_ref_accumulator *a, uint32_t k, void *out, const double *params);
  ait_ref_accumulator start;
  bool needs_elements; /* an empty reduction is an error */
} ait_ref_reduction;

/* Which dims go; keepdim leaves ones. No dims: all. */
typedef struct ait_ref_axes {
  bool reduced[AIT_MAX_RANK];
  bool keep;
} ait_ref_axes;
ait_status ait_ref_axes_all(const ait_tensor *t, ait_ref_axes *out) AIT_MUST_USE;
/* dims from argument dims_arg (an int or a list; none or empty: all), keepdim from keep_arg. */
ait_status ait_ref_axes_args(const ait_ref_call *call, const ait_tensor *t, uint32_t dims_arg, uint32_t keep_arg,
                             ait_ref_axes *out) AIT_MUST_USE;

typedef struct ait_ref_reduce_result {
  ait_dtype dtype;
  ait_ref_domain domain; /* of what finish writes */
} ait_ref_reduce_result;
/* Results 0..result_count-1 of one pass over t, read in `domain`. */
ait_status ait_ref_reduce(ait_ref_call *call, const ait_tensor *t, const ait_ref_axes *axes, ait_ref_domain domain,
                          const ait_ref_reduction *reduction, const ait_ref_reduce_result *results, uint32_t result_count,
                          const double *params) AIT_MUST_USE;

#endif
