/* Running a region, and the regions nested in it, node by node. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_INTERP_H
#define AIT_SRC_BACKENDS_REFERENCE_INTERP_H

#include "backends/reference/reference.h"

#define AIT_REF_MAX_DEPTH 64

/* What load prepares for a region: the function of each node and the values to drop after it. */
typedef struct ait_ref_plan {
  ait_ref_fn *functions; /* node_count */
  uint32_t *last_use;    /* value_count: node after which the value is dropped; AIT_NO_INDEX: kept to the end */
} ait_ref_plan;
/* Errors: unsupported, naming the first node without a function. */
ait_status ait_ref_plan_create(ait_allocator a, const ait_region *region, ait_ref_plan *out) AIT_MUST_USE;
void ait_ref_plan_destroy(ait_allocator a, const ait_region *region, ait_ref_plan *plan);

typedef struct ait_ref_frame {
  const ait_region *region;
  const ait_ref_plan *plan;
  ait_ref_value *values;  /* value_count, inputs filled in; what remains is the caller's to release */
  const int64_t *symbols; /* symbol_count */
  ait_allocator allocator;
  ait_pool *pool;
  bool fp64;
  int32_t depth;
  bool autocast;   /* an enabled autocast region: operands are cast to the dtype that a node's result declares */
  double *seconds; /* per node, added to; NULL: no profile */
  uint64_t *draws; /* see ait_ref_run; may be NULL */
} ait_ref_frame;
ait_status ait_ref_execute(ait_ref_frame *frame) AIT_MUST_USE;

/* Calls a nested region: inputs[i] goes to its input i (borrowed), outputs[i] comes from its output i (owned by the caller, who gives
 * room for region->output_count). Symbols are taken over by name and bound from the inputs' shapes. */
ait_status ait_ref_call_region(const ait_ref_call *call, const ait_region *region, const ait_ref_value *inputs, uint32_t input_count,
                               bool autocast, ait_ref_value *outputs) AIT_MUST_USE;

/* symbols[i] for every symbol that is, bare, a size of an input's declared shape (or the declared value of an int input). */
void ait_ref_bind_symbols(const ait_region *region, const ait_ref_value *values, int64_t *symbols);

/* A copy of the value that holds its own references; strings stay borrowed. */
ait_status ait_ref_value_retain(ait_allocator a, const ait_ref_value *v, ait_ref_value *out) AIT_MUST_USE;

/* After a functional operator: its result 0 goes into the memory of argument 0, and result 0 is argument 0 from then on. */
ait_status ait_ref_write_in_place(ait_ref_call *call) AIT_MUST_USE;

/* The value of an argument, as a value of its own (release it). */
ait_status ait_ref_arg_value(const ait_ref_call *call, const ait_arg *arg, ait_ref_value *out) AIT_MUST_USE;

#endif
