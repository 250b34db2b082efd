/* What src/kernels/kernels.h would get: the arguments of the kernel, its unit of work, and how many units there are. */
#ifndef AIT_EXAMPLE_AXPB_F32_H
#define AIT_EXAMPLE_AXPB_F32_H

#include "kernels/kernels.h"

/* y = x * scale + shift for `rows` rows of n floats. Unit: a row. y may be x. */
typedef struct ait_axpb_f32 {
  int64_t rows, n;
  const float *x;
  int64_t x_stride; /* between rows */
  float *y;
  int64_t y_stride;
  float scale, shift;
} ait_axpb_f32;
static inline int64_t ait_axpb_f32_units(const ait_axpb_f32 *p) { return p->rows; }

/* Made by kernels.inc in the tree. */
void ait_k_axpb_f32_generic(const void *args, int64_t begin, int64_t end, void *scratch);
void ait_k_axpb_f32_avx2(const void *args, int64_t begin, int64_t end, void *scratch);
void ait_k_axpb_f32_avx512(const void *args, int64_t begin, int64_t end, void *scratch);

#endif
