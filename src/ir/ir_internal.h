/* What the files of the ir room share. */
#ifndef AIT_SRC_IR_INTERNAL_H
#define AIT_SRC_IR_INTERNAL_H

#include "ir/ir.h"

/* Lists inside lists, and graphs inside graphs, of arguments: no file needs more. */
enum { AIT_ARG_DEPTH_LIMIT = 16, AIT_GRAPH_DEPTH_LIMIT = 32, AIT_SYMBOL_LIMIT = 4096 };

/* Grows an array in the graph's arena (doubling; the old array stays in the arena). Unchanged on failure. */
ait_status ait_graph_grow(ait_graph *g, void **data, size_t *capacity, size_t needed, size_t element_size) AIT_MUST_USE;
/* Deep copy of an argument into the arena; nested graphs are kept by pointer. */
ait_status ait_graph_copy_arg(ait_graph *g, const ait_arg *arg, ait_arg *out) AIT_MUST_USE;

/* Copies the symbol; its name must be new. */
ait_status ait_graph_add_symbol(ait_graph *g, const ait_symbol *symbol) AIT_MUST_USE;
uint32_t ait_graph_find_symbol(const ait_graph *g, const char *name); /* AIT_NO_INDEX when there is none */

/* dim.c: the side of dims that is not in the region. */
ait_status ait_dims_create(ait_graph *root) AIT_MUST_USE;
ait_status ait_dims_clone(ait_graph *root, const ait_graph *from) AIT_MUST_USE;
/* The unknown with that number, which later calls of ait_dim_unknown avoid. */
ait_status ait_dim_unknown_numbered(ait_graph *g, int64_t number, ait_dim *out) AIT_MUST_USE;

#endif
