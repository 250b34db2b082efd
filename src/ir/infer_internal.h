/* What the inference rules share. A rule fills call->out from call->args (schema order, defaults filled in). */
#ifndef AIT_SRC_IR_INFER_INTERNAL_H
#define AIT_SRC_IR_INFER_INTERNAL_H

#include "ir/ir_internal.h"

typedef struct infer_call {
  ait_graph *g;
  const ait_op *op;
  const ait_arg *args;
  ait_value_info *out;
  uint32_t result_count;
} infer_call;

typedef ait_status (*infer_rule)(const infer_call *c);

/* A shape being worked on; rank -1: unknown. */
typedef struct infer_shape {
  int32_t rank;
  ait_dim dims[AIT_MAX_RANK];
} infer_shape;

/* "conv: …" (invalid-model). */
ait_status infer_error(const infer_call *c, const char *format, ...) AIT_PRINTF(2, 3) AIT_MUST_USE;

/* ---- arguments -----------------------------------------------------------------------------------------------------------------------*/
ait_status infer_tensor(const infer_call *c, uint32_t arg, const ait_value_info **out) AIT_MUST_USE;
const ait_value_info *infer_tensor_or_null(const infer_call *c, uint32_t arg); /* NULL: none, or a scalar */
/* Element i of a tensor list argument (LIST of values, or a list value); NULL for none or when the list is not known. */
const ait_value_info *infer_list_item(const infer_call *c, uint32_t arg, uint32_t i);
uint32_t infer_list_count(const infer_call *c, uint32_t arg);
ait_status infer_int(const infer_call *c, uint32_t arg, int64_t *out) AIT_MUST_USE; /* constant */
bool infer_bool(const infer_call *c, uint32_t arg);
/* Constant ints; a single one counts as a list. */
ait_status infer_ints(const infer_call *c, uint32_t arg, int64_t out[AIT_MAX_RANK], int32_t *out_count) AIT_MUST_USE;
/* An int as an expression; a value of which nothing is known is a new unknown. */
ait_status infer_dim(const infer_call *c, const ait_arg *arg, ait_dim *out) AIT_MUST_USE;
ait_status infer_dims(const infer_call *c, uint32_t arg, infer_shape *out) AIT_MUST_USE;
/* Wraps a negative dim; rank 0 counts as 1. */
ait_status infer_axis(const infer_call *c, int64_t dim, int32_t rank, int32_t *out) AIT_MUST_USE;
ait_status infer_axis_arg(const infer_call *c, uint32_t arg, int32_t rank, int32_t *out) AIT_MUST_USE;

/* ---- sizes ---------------------------------------------------------------------------------------------------------------------------*/
/* Like ait_dim_make, but an expression that grows too large becomes unknown. */
ait_status infer_make(const infer_call *c, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) AIT_MUST_USE;
ait_status infer_make_const(const infer_call *c, ait_dim_op op, ait_dim a, int64_t b, ait_dim *out) AIT_MUST_USE;
bool infer_surely_differ(const infer_call *c, ait_dim a, ait_dim b);
bool infer_is(const infer_call *c, ait_dim d, int64_t value);
/* Two sizes that the program needs to be equal: the better known one; error when they cannot be. `what` names them. */
ait_status infer_unify(const infer_call *c, ait_dim a, ait_dim b, const char *what, ait_dim *out) AIT_MUST_USE;
ait_status infer_broadcast_dim(const infer_call *c, ait_dim a, ait_dim b, ait_dim *out) AIT_MUST_USE;
/* out = broadcast of out and the shape. */
ait_status infer_broadcast(const infer_call *c, infer_shape *out, int32_t rank, const ait_dim *shape) AIT_MUST_USE;
void infer_get_shape(const ait_value_info *v, infer_shape *out);
ait_status infer_product(const infer_call *c, const ait_dim *dims, int32_t count, ait_dim *out) AIT_MUST_USE;

/* ---- results -------------------------------------------------------------------------------------------------------------------------*/
ait_status infer_set(const infer_call *c, uint32_t k, ait_dtype dtype, const infer_shape *shape) AIT_MUST_USE;
ait_status infer_set_like(const infer_call *c, uint32_t k, ait_dtype dtype, const ait_value_info *like) AIT_MUST_USE;

/* ---- dtypes --------------------------------------------------------------------------------------------------------------------------*/
/* torch.result_type over tensors, 0-d tensors and numbers. */
typedef struct infer_promotion {
  ait_dtype dimensioned, zero_dim, number;
} infer_promotion;
void infer_promote_arg(const infer_call *c, infer_promotion *p, const ait_arg *arg);
ait_dtype infer_promoted(const infer_promotion *p);
ait_dtype infer_float_dtype(ait_dtype dtype); /* ints and bool become float32 */
ait_dtype infer_sum_dtype(ait_dtype dtype);   /* ints and bool become int64 */
ait_dtype infer_real_dtype(ait_dtype dtype);  /* complex64 becomes float32 */

/* Declared once for each operator that uses it. */
#define AIT_RULE(op, rule) ait_status infer_rule_##rule(const infer_call *c) AIT_MUST_USE;
#include "ir/rules.inc"
#undef AIT_RULE

#endif
