/* Element-wise operators: broadcast shapes and torch's type promotion. */
#include "ir/infer_internal.h"

ait_status infer_rule_same(const infer_call *c) {
  const ait_value_info *x;
  AIT_TRY(infer_tensor(c, 0, &x));
  return infer_set_like(c, 0, x->dtype, x);
}

ait_status infer_rule_real(const infer_call *c) {
  const ait_value_info *x;
  AIT_TRY(infer_tensor(c, 0, &x));
  return infer_set_like(c, 0, infer_real_dtype(x->dtype), x);
}

ait_status infer_rule_to_float(const infer_call *c) {
  const ait_value_info *x;
  AIT_TRY(infer_tensor(c, 0, &x));
  return infer_set_like(c, 0, infer_float_dtype(x->dtype), x);
}

ait_status infer_rule_to_bool(const infer_call *c) {
  const ait_value_info *x;
  AIT_TRY(infer_tensor(c, 0, &x));
  return infer_set_like(c, 0, AIT_BOOL, x);
}

ait_status infer_rule_cast(const infer_call *c) {
  const ait_value_info *x;
  AIT_TRY(infer_tensor(c, 0, &x));
  if (c->args[1].kind != AIT_ARG_DTYPE) return infer_error(c, "argument 'dtype' is no dtype");
  return infer_set_like(c, 0, (ait_dtype)c->args[1].as.i, x);
}

/* Arguments first..last, none left out, broadcast and promoted. */
static ait_status broadcast_args(const infer_call *c, uint32_t first, uint32_t last, infer_shape *shape, ait_dtype *dtype) {
  infer_promotion promotion = {0};
  for (uint32_t i = first; i <= last; ++i) {
    if (c->args[i].kind == AIT_ARG_NONE) continue;
    infer_promote_arg(c, &promotion, &c->args[i]);
    const ait_value_info *x = infer_tensor_or_null(c, i);
    if (x) AIT_TRY(infer_broadcast(c, shape, x->rank, x->shape));
  }
  *dtype = infer_promoted(&promotion);
  return AIT_OK;
}

static ait_status binary(const infer_call *c, ait_dtype (*result)(ait_dtype)) {
  infer_shape shape = {.rank = 0};
  ait_dtype dtype;
  AIT_TRY(broadcast_args(c, 0, 1, &shape, &dtype));
  return infer_set(c, 0, result ? result(dtype) : dtype, &shape);
}

static ait_dtype always_bool(ait_dtype dtype) {
  AIT_UNUSED(dtype);
  return AIT_BOOL;
}

ait_status infer_rule_binary(const infer_call *c) { return binary(c, NULL); }
ait_status infer_rule_binary_float(const infer_call *c) { return binary(c, infer_float_dtype); }
ait_status infer_rule_compare(const infer_call *c) { return binary(c, always_bool); }

ait_status infer_rule_clamp(const infer_call *c) {
  infer_shape shape = {.rank = 0};
  ait_dtype dtype;
  AIT_TRY(broadcast_args(c, 0, 2, &shape, &dtype));
  return infer_set(c, 0, dtype, &shape);
}

ait_status infer_rule_where(const infer_call *c) {
  const ait_value_info *cond;
  infer_shape shape;
  ait_dtype dtype;
  AIT_TRY(infer_tensor(c, 0, &cond));
  infer_get_shape(cond, &shape);
  AIT_TRY(broadcast_args(c, 1, 2, &shape, &dtype));
  return infer_set(c, 0, dtype, &shape);
}
