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
/* Zero where a size is not known, and for views: they move nothing. */
ait_cost ait_node_cost(const ait_graph *g, const ait_node *n, const int64_t *symbols);
bool ait_node_is_view(const ait_node *n);
bool ait_node_reads_rows(const ait_node *n); /* of its first operand only what it gives: embedding, gather */
double ait_value_bytes(const ait_graph *g, uint32_t value, const int64_t *symbols);

/* "a.b" is inside "a" and inside "". */
bool ait_module_inside(const char *path, const char *module);
typedef struct ait_module_sum {
  double parameters, parameter_bytes, flops, bytes;
  uint32_t nodes;
} ait_module_sum;
/* For each of the graph's modules what is in it and inside its children: sums has module_count elements, zero before. */
void ait_module_sums(const ait_graph *g, const int64_t *symbols, ait_module_sum *sums, ait_module_sum *total);
double ait_graph_weight_bytes(const ait_graph *g); /* of all storages */

#endif
