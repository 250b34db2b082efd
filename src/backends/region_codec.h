/* Regions as bytes: the portable graph of a .ait, and the blob of backends that keep the region (reference).
 *
 * Versioned little-endian encoding of an ait_region with its nested regions; docs/format.md is its specification. Nested regions that
 * share their parent's symbols and dims on encoding share them after decoding, too. */
#ifndef AIT_SRC_BACKENDS_REGION_CODEC_H
#define AIT_SRC_BACKENDS_REGION_CODEC_H

#include "base/base.h"
#include <ait/backend.h>

/* Appends to `out`. Errors: invalid-argument (a region that decode would refuse, named by place), out-of-memory. */
ait_status ait_region_encode(const ait_region *region, ait_text *out) AIT_MUST_USE;
/* *out owns all its memory (strings included: `data` may go). Takes hostile bytes: every kind, count and index is checked, nesting and
 * memory are limited. What is not checked: that values are defined before use, that operators exist, that arguments fit their schema.
 * Errors: invalid-model, incompatible (newer encoding), out-of-memory. */
ait_status ait_region_decode(ait_allocator a, const void *data, size_t size, ait_region **out) AIT_MUST_USE;
void ait_region_destroy(ait_region *region); /* of decode and copy; takes NULL */
ait_status ait_region_copy(ait_allocator a, const ait_region *region, ait_region **out) AIT_MUST_USE;

#endif
