/* Lowering ATen operators to core: one row for each operator, in the lower_*.c file of its family. */
#ifndef AIT_SRC_PASSES_LOWER_H
#define AIT_SRC_PASSES_LOWER_H

#include "passes/rewrite.h"

typedef struct ait_lower {
  ait_rewrite w;
  ait_graph *g;
  ait_node *n;
  const ait_arg *a;     /* n->args */
  const uint32_t *uses; /* by value id, for ids below use_count */
  size_t use_count;
  const char *core; /* the row's core operator */
  bool done;
} ait_lower;

typedef ait_status (*ait_lower_fn)(ait_lower *l);

/* A row's function either emits core nodes and calls ait_lower_done, or returns AIT_OK having done nothing: the operator stays as it is. */
typedef struct ait_lower_row {
  const char *op, *core;
  ait_lower_fn run;
} ait_lower_row;

extern const ait_lower_row ait_lower_pointwise_rows[], ait_lower_shape_rows[], ait_lower_nn_rows[],
    ait_lower_composite_rows[]; /* end with a NULL op */

ait_status ait_lower_einsum(ait_lower *l) AIT_MUST_USE; /* lower_einsum.c */

/* Result 0 is `value`, cast to the dtype that the program declares. Other results must be unused. */
ait_status ait_lower_done(ait_lower *l, uint32_t value) AIT_MUST_USE;
bool ait_lower_unused(const ait_lower *l, uint32_t result); /* result k of the node has no use */
static inline const ait_value_info *ait_lower_result(const ait_lower *l) { return &l->g->values[l->n->results[0]]; }
/* What several steps are computed in where torch has one operator and rounds once: half types in float32. */
static inline ait_dtype ait_lower_steps_dtype(ait_dtype d) { return d == AIT_F16 || d == AIT_BF16 ? AIT_F32 : d; }
/* Argument k as a tensor value; false when it is none. */
bool ait_lower_tensor(const ait_lower *l, uint32_t k, uint32_t *out);
/* Argument k (tensor) cast to dtype, as an argument. NONE stays NONE. */
ait_status ait_lower_cast_arg(ait_lower *l, uint32_t k, ait_dtype dtype, ait_arg *out) AIT_MUST_USE;

#endif
