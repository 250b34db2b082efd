/* Front door of the runtime room: models and sessions (the public functions of model.h and session.h live here), built from plans. */
#ifndef AIT_SRC_RUNTIME_H
#define AIT_SRC_RUNTIME_H

#include "artifact/artifact.h"
#include <ait/model.h>
#include <ait/session.h>

/* A model from parts that stay in memory: `owner` is released with owner_release when the model goes. plan may be NULL: the portable region
 * runs on the reference backend. The importer, the tuner and the tests make models this way. */
ait_status ait_model_create(ait_allocator a, const ait_region *portable, ait_weights weights, const ait_plan *plan, void *owner,
                            void (*owner_release)(void *owner), ait_model **out) AIT_MUST_USE;

/* Checks user inputs against the region's declared kinds, dtypes, ranks, fixed sizes, symbol ranges, baked values and guards, and binds the
 * symbols. symbol_values: region->symbol_count, INT64_MIN where unbound. Errors name input, dimension, value and range. */
ait_status ait_bind_inputs(const ait_region *region, const ait_value *inputs, size_t input_count, int64_t *symbol_values) AIT_MUST_USE;

#endif
