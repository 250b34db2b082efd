/* The machine's roofline, measured: what the fastest dense product and the fastest streams reach here. */
#ifndef AIT_SRC_TUNE_ROOFLINE_H
#define AIT_SRC_TUNE_ROOFLINE_H

#include "base/base.h"

typedef struct ait_roofline {
  int32_t threads;
  double flops_per_s;                           /* a float32 matrix product of `native`, multiply-add as two */
  double cache_bytes_per_s, memory_bytes_per_s; /* an element-wise operator, bytes read and written */
  uint64_t cache_bytes, memory_bytes;           /* what those two went over */
} ait_roofline;

/* Takes about `seconds`, plus set-up; the best of all calls counts. Errors: what building and running say. */
ait_status ait_roofline_measure(int32_t threads, uint64_t cpu_mask, double seconds, ait_roofline *out) AIT_MUST_USE;
void ait_roofline_put(ait_text *t, const ait_roofline *r); /* as a JSON object */

#endif
