/* Operators along one dim: each line is a one-dimensional strided view. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_LINES_H
#define AIT_SRC_BACKENDS_REFERENCE_LINES_H

#include "backends/reference/shapes.h"

#define AIT_REF_LINE_TENSORS 3

typedef struct ait_ref_lines {
  ait_tensor tensors[AIT_REF_LINE_TENSORS]; /* inputs and outputs, the dim last; other dims equal */
  uint32_t count;
  const ait_ref_call *call;
  const void *params;
} ait_ref_lines;

/* Line o of tensor k. */
ait_tensor ait_ref_line(const ait_ref_lines *lines, uint32_t k, int64_t o);
int64_t ait_ref_line_count(const ait_ref_lines *lines);
/* Any tensor (not a view that is retained) with dim `dim` last; a tensor of rank 0 becomes a line of one. */
ait_tensor ait_ref_lines_view(const ait_tensor *t, int32_t dim);

typedef ait_status (*ait_ref_line_fn)(const ait_ref_lines *lines, int64_t o);
/* Runs fn for every line, in parallel; work is that of one line. */
ait_status ait_ref_each_line(const ait_ref_lines *lines, int64_t work, ait_ref_line_fn fn) AIT_MUST_USE;

/* Order of a line's elements, stable: order[i] is the position of the i-th. NaN counts as the greatest. keys: double or int64. */
void ait_ref_sort_order(ait_ref_domain domain, const void *keys, int64_t n, bool descending, int64_t *order, int64_t *scratch);

#endif
