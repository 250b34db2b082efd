/* What the passes share: emitting nodes, reading arguments, asking about values. */
#ifndef AIT_SRC_PASSES_REWRITE_H
#define AIT_SRC_PASSES_REWRITE_H

#include "passes/passes.h"

/* Where new nodes go, and whose name and module they take. */
typedef struct ait_rewrite {
  ait_graph *graph;
  const ait_pass_context *context;
  ait_node *at; /* new nodes are inserted before it; NULL: at the end */
  const char *name;
  uint32_t module;
} ait_rewrite;

ait_rewrite ait_rewrite_at(ait_graph *g, const ait_pass_context *context, ait_node *n);
/* One node with one result. args are copied; missing ones take their defaults. */
ait_status ait_emit(const ait_rewrite *w, const char *op, const ait_arg *args, uint32_t count, uint32_t *out) AIT_MUST_USE;
#define AIT_EMIT(w, out, op, ...) \
  ait_emit((w), (op), (const ait_arg[]){__VA_ARGS__}, (uint32_t)(sizeof((const ait_arg[]){__VA_ARGS__}) / sizeof(ait_arg)), (out))
/* `value` cast to dtype; itself when it has it. */
ait_status ait_emit_cast(const ait_rewrite *w, uint32_t value, ait_dtype dtype, uint32_t *out) AIT_MUST_USE;
/* Tells the context's note function. */
void ait_note(const ait_rewrite *w, const char *pass, const char *code, const char *format, ...) AIT_PRINTF(4, 5);

static inline const ait_value_info *ait_value_of(const ait_graph *g, uint32_t v) { return &g->values[v]; }
static inline bool ait_arg_is_tensor(const ait_graph *g, const ait_arg *a) {
  return a->kind == AIT_ARG_VALUE && g->values[a->as.value].type == AIT_TYPE_TENSOR;
}
/* The node that defines the value, when it is of that operator and not in place; else NULL. */
ait_node *ait_def_of(const ait_graph *g, uint32_t value, const char *op);

/* Arguments. Ints come as INT, or as VALUE of a symbolic int: those are turned to DIM when their expression is known.
 * false: not known before running. */
bool ait_arg_as_dim(const ait_graph *g, const ait_arg *a, ait_arg *out);   /* INT or DIM */
bool ait_arg_as_int(const ait_graph *g, const ait_arg *a, int64_t *out);   /* a constant */
bool ait_arg_as_number(const ait_graph *g, const ait_arg *a, double *out); /* constant int, float or bool */
/* A list of ints (an int counts as a list of one), each INT or DIM; at most AIT_MAX_RANK. NONE: count 0. */
bool ait_arg_as_dims(const ait_graph *g, const ait_arg *a, ait_arg out[AIT_MAX_RANK], uint32_t *count);
bool ait_arg_as_ints(const ait_graph *g, const ait_arg *a, int64_t out[AIT_MAX_RANK], uint32_t *count);
bool ait_arg_flag(const ait_arg *a); /* BOOL true */
/* The value's sizes as INT or DIM arguments; false when rank or a size is not known before running. */
bool ait_shape_args(const ait_graph *g, uint32_t value, ait_arg out[AIT_MAX_RANK]);
ait_arg ait_dim_as_arg(const ait_graph *g, ait_dim d);             /* INT for constants, else DIM */
bool ait_shape_known(const ait_graph *g, const ait_value_info *v); /* tensors: rank and every size a function of backed symbols */
bool ait_same_shape(const ait_value_info *a, const ait_value_info *b);
bool ait_wrap_dim(int64_t *dim, int32_t rank); /* negative dims; false when outside */

/* Inputs that never change: parameters, constants, and buffers that nothing writes. *out_input may be NULL. */
bool ait_is_constant(const ait_graph *g, uint32_t value);
/* The contents of a constant input, when its weight is there. Borrowed. */
bool ait_constant_tensor(const ait_graph *g, uint32_t value, ait_tensor *out);
/* A new constant input "folded.<hash of its contents>", with its weight, both once for equal contents: plans for several machines do not
 * clash in one file. The tensor is contiguous; its storage is shared. */
ait_status ait_constant_new(ait_graph *g, const ait_tensor *tensor, uint32_t *out) AIT_MUST_USE;
/* A constant with one element, or a `full` of a number: that number. */
bool ait_scalar_constant(const ait_graph *g, uint32_t value, double *out);

/* Replaces all uses of an old result by a new value, keeping the old name and its (file-given) symbolic shape where ranks agree. */
ait_status ait_replace_value(ait_graph *g, uint32_t old_value, uint32_t new_value) AIT_MUST_USE;

#endif
