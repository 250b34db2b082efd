/* Parts of a lowered model: runs of its nodes, each a region of its own, that together do what the whole does. */
#ifndef AIT_SRC_TUNE_REGIONS_H
#define AIT_SRC_TUNE_REGIONS_H

#include "base/base.h"
#include <ait/backend.h>

enum { AIT_PARTS_MAX = 24 };

typedef struct ait_part {
  uint32_t begin, end;        /* nodes */
  const char *module;         /* common path of their modules; "" */
  ait_region region;          /* its nodes and tables are the whole's; inputs and outputs are its own */
  uint32_t *inputs, *outputs; /* plan values (ait_plan_step) */
} ait_part;

typedef struct ait_parts {
  ait_arena arena;
  const ait_region *whole; /* must outlive the parts */
  ait_part items[AIT_PARTS_MAX];
  uint32_t count, value_count;
  uint32_t *results, result_count; /* plan values of the user outputs (ait_plan) */
} ait_parts;

/* Where modules meet: first nodes of parts but the first, rising. `pins`: module paths that must have parts of their own (may be NULL).
 * Cuts as deep in the module tree as AIT_PARTS_MAX allows. Returns how many; 0: the model is one part. */
uint32_t ait_parts_find(const ait_region *whole, const char *const *pins, uint32_t pin_count, uint32_t cuts[AIT_PARTS_MAX]);
/* Errors: out-of-memory, unsupported (the model orders effects by tokens, which parts would lose). */
ait_status ait_parts_create(ait_allocator a, const ait_region *whole, const uint32_t *cuts, uint32_t cut_count,
                            ait_parts *out) AIT_MUST_USE;
void ait_parts_deinit(ait_parts *parts);
/* true when the module is `path` or lies below it. */
bool ait_module_within(const char *module, const char *path);

#endif
