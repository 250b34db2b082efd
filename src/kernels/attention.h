/* Block sizes and scratch of attention_f32, shared by its template and the planner. */
#ifndef AIT_KERNELS_ATTENTION_H
#define AIT_KERNELS_ATTENTION_H

#include "kernels/kernels.h"

#define AIT_ATTENTION_QUERIES 128
#define AIT_ATTENTION_KEYS 128

static inline int64_t ait_attention_blocks(int64_t q_len) { return (q_len + AIT_ATTENTION_QUERIES - 1) / AIT_ATTENTION_QUERIES; }

/* Byte offsets into scratch. */
typedef struct ait_attention_scratch {
  size_t pieces, rows, state, keys, values, scores, sums, total;
} ait_attention_scratch;
ait_attention_scratch ait_attention_scratch_layout(const ait_attention_f32 *a);

#endif
