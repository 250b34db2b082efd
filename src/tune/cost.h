/* Arithmetic and memory traffic of core nodes, at given sizes. */
#ifndef AIT_SRC_TUNE_COST_H
#define AIT_SRC_TUNE_COST_H

#include "ir/ir.h"

typedef struct ait_cost {
  double flops; /* a multiply-add counts two */
  double bytes; /* operands read once, results written once */
} ait_cost;

/* A value for each symbol: what export saw, else the smallest allowed above one. Freed by the caller (root symbol_count + 1 elements). */
int64_t *ait_cost_symbols(const ait_graph *g, ait_allocator a);
/* Zero where a size is not known. */
ait_cost ait_node_cost(const ait_graph *g, const ait_node *n, const int64_t *symbols);

#endif
