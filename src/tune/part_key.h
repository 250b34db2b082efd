/* What a part is, whatever its weights are called and hold: parts that are alike are measured once, and a part that was measured in another
 * model, or before another layer changed, is known. */
#ifndef AIT_SRC_TUNE_PART_KEY_H
#define AIT_SRC_TUNE_PART_KEY_H

#include "tune/cases.h"
#include "tune/regions.h"

/* Operators, arguments, how values flow, dtypes, and sizes under each of `set_count` sets of the symbols' values: an order for each region
 * that the samples can give. Names, modules and contents of weights are no part of it. */
uint64_t ait_part_hash(const ait_region *part, const int64_t *const *symbols, size_t set_count);
/* Of each part, under the sizes of the measured samples (of 16 at most). Errors: as ait_bind_inputs. */
ait_status ait_parts_hash(const ait_parts *parts, const ait_tune_cases *cases, uint64_t hashes[AIT_PARTS_MAX]) AIT_MUST_USE;

#endif
