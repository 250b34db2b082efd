/* Counts the bytes of the weights that a plan asks for: of each once. */
#ifndef AIT_SRC_TUNE_WEIGHT_METER_H
#define AIT_SRC_TUNE_WEIGHT_METER_H

#include "base/base.h"
#include <ait/backend.h>

typedef struct ait_weight_meter ait_weight_meter;
ait_status ait_weight_meter_create(ait_weights inner, ait_weight_meter **out) AIT_MUST_USE;
void ait_weight_meter_destroy(ait_weight_meter *meter);         /* takes NULL */
ait_weights ait_weight_meter_provider(ait_weight_meter *meter); /* the inner one's answers; thread-safe */
uint64_t ait_weight_meter_bytes(ait_weight_meter *meter);

#endif
