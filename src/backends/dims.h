/* Symbolic sizes as backends need them: below the neck there is no ir, only the region's table of expressions. */
#ifndef AIT_SRC_BACKENDS_DIMS_H
#define AIT_SRC_BACKENDS_DIMS_H

#include "tensor/tensor.h" /* ait_dim_eval */
#include <ait/backend.h>

/* A table from untrusted bytes: known operators, children before parents, symbols that exist. */
bool ait_dims_valid(const ait_dim_expr *dims, uint32_t count, uint32_t symbol_count);
/* d is a function of symbols that the inputs' shapes bind, so its value is known before the region runs. */
bool ait_dims_backed(const ait_region *region, ait_dim d);

#endif
