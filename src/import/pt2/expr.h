/* Texts of arithmetic on sizes, as programs hold them: sympy's srepr ("Add(Integer(1), Symbol('s77', integer=True))"), its infix form
 * ("2*s77 + 1"), and the Python expressions of guards_code. */
#ifndef AIT_SRC_IMPORT_PT2_EXPR_H
#define AIT_SRC_IMPORT_PT2_EXPR_H

#include "ir/ir.h"

/* What a guard's L['x']… stands for. `path` is the text from L up to (not with) the accessor; axis -1: the value itself.
 * false: not known. */
typedef struct ait_expr_names {
  bool (*find)(void *ctx, const char *path, size_t length, int64_t axis, ait_dim *out);
  void *ctx;
} ait_expr_names;

/* What is not integer arithmetic, or no expression at all, becomes AIT_DIM_UNKNOWN. names may be NULL. Errors: out-of-memory. */
ait_status ait_expr_parse(ait_graph *graph, const char *text, const ait_expr_names *names, ait_dim *out) AIT_MUST_USE;

/* Adds the comparisons of one guard to the graph. A guard that is not a conjunction of comparisons of known sizes is left out.
 * Errors: out-of-memory. */
ait_status ait_expr_add_guards(ait_graph *graph, const char *text, const ait_expr_names *names) AIT_MUST_USE;

#endif
