/* Inputs and weights moved by one unit in the last place: what a model makes of that is what rounding may do to it. */
#ifndef AIT_SRC_TUNE_NUDGE_H
#define AIT_SRC_TUNE_NUDGE_H

#include "tensor/tensor.h"

/* Every finite float32 that is not 0 becomes its neighbour, above or below by a fixed pattern. Contiguous. */
void ait_nudge_floats(float *data, size_t count);
/* The same weights in memory of their own, nudged; storages that hold other dtypes, too, are only copied. */
ait_status ait_nudge_weights(const ait_weight_store *from, ait_weight_store **out) AIT_MUST_USE;

#endif
