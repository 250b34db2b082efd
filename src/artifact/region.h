/* Small questions about regions that artifact and runtime share. */
#ifndef AIT_SRC_ARTIFACT_REGION_H
#define AIT_SRC_ARTIFACT_REGION_H

#include "base/base.h"
#include <ait/backend.h>

uint32_t ait_region_user_inputs(const ait_region *region);
uint32_t ait_region_user_outputs(const ait_region *region);
bool ait_region_input_is_weight(const ait_region_input *input); /* parameter, buffer or constant that is there */
/* Does the region have an output of kind STATE for this weight? */
bool ait_region_has_state_output(const ait_region *region, const char *name);

/* Expressions as people write them ("2*s0 + 1"; long ones end in "..."), and the values they can take. region_dims.c */
void ait_region_dim_text(const ait_region *region, ait_dim dim, char *out, size_t size);
/* out_min and out_max: region->dim_count each; saturating interval arithmetic, INT64_MAX: unbounded. */
void ait_region_dim_ranges(const ait_region *region, int64_t *out_min, int64_t *out_max);

#endif
