/* Element-wise operators: operands are cast to the dtype in which PyTorch computes, so that core operators see equal dtypes. */
#include "passes/lower.h"

/* ---- one operand -----------------------------------------------------------------------------------------------------------------*/
static ait_status unary(ait_lower *l) {
  uint32_t x, out;
  if (!ait_lower_tensor(l, 0, &x)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, l->core, ait_arg_value(x)));
  return ait_lower_done(l, out);
}

/* exp of integers is float: the operand is cast first. */
static ait_status unary_float(ait_lower *l) {
  ait_arg x;
  uint32_t out;
  if (!ait_lower_tensor(l, 0, &out)) return AIT_OK;
  AIT_TRY(ait_lower_cast_arg(l, 0, ait_lower_result(l)->dtype, &x));
  AIT_TRY(AIT_EMIT(&l->w, &out, l->core, x));
  return ait_lower_done(l, out);
}

static ait_status gelu(ait_lower *l) {
  uint32_t x, out;
  if (!ait_lower_tensor(l, 0, &x)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "gelu", ait_arg_value(x), l->a[1]));
  return ait_lower_done(l, out);
}

/* elu(alpha, scale, input_scale), leaky_relu(slope), softplus(beta, threshold): numbers as floats. */
static ait_status with_numbers(ait_lower *l) {
  ait_arg args[4];
  uint32_t out, count = l->n->arg_count < 4 ? l->n->arg_count : 4;
  double number;
  args[0] = l->a[0];
  for (uint32_t i = 1; i < count; ++i) {
    if (!ait_arg_as_number(l->g, &l->a[i], &number)) return AIT_OK;
    args[i] = ait_arg_float(number);
  }
  AIT_TRY(ait_emit(&l->w, l->core, args, count, &out));
  return ait_lower_done(l, out);
}

static ait_status square(ait_lower *l) {
  uint32_t out;
  AIT_TRY(AIT_EMIT(&l->w, &out, "mul", l->a[0], l->a[0]));
  return ait_lower_done(l, out);
}

static ait_status identity(ait_lower *l) {
  uint32_t x;
  if (!ait_lower_tensor(l, 0, &x)) return AIT_OK;
  return ait_lower_done(l, x);
}

static ait_status clamp_to(ait_lower *l, ait_arg low, ait_arg high) {
  uint32_t x, out;
  if (!ait_lower_tensor(l, 0, &x)) return AIT_OK;
  ait_dtype dtype = ait_lower_result(l)->dtype;
  AIT_TRY(ait_emit_cast(&l->w, x, dtype, &x));
  ait_arg *bounds[2] = {&low, &high};
  for (int i = 0; i < 2; ++i)
    if (ait_arg_is_tensor(l->g, bounds[i])) {
      uint32_t v;
      AIT_TRY(ait_emit_cast(&l->w, bounds[i]->as.value, dtype, &v));
      *bounds[i] = ait_arg_value(v);
    }
  AIT_TRY(AIT_EMIT(&l->w, &out, "clamp", ait_arg_value(x), low, high));
  return ait_lower_done(l, out);
}
static ait_status clamp(ait_lower *l) { return clamp_to(l, l->a[1], l->a[2]); }
static ait_status clamp_min(ait_lower *l) { return clamp_to(l, l->a[1], ait_arg_none()); }
static ait_status clamp_max(ait_lower *l) { return clamp_to(l, ait_arg_none(), l->a[1]); }
static ait_status relu6(ait_lower *l) { return clamp_to(l, ait_arg_float(0), ait_arg_float(6)); }

/* ---- two operands ----------------------------------------------------------------------------------------------------------------*/
static bool is_operand(const ait_graph *g, const ait_arg *a) {
  return ait_arg_is_tensor(g, a) || a->kind == AIT_ARG_INT || a->kind == AIT_ARG_FLOAT || a->kind == AIT_ARG_BOOL || a->kind == AIT_ARG_DIM;
}

static ait_status cast_operand(ait_lower *l, ait_arg *a, ait_dtype dtype) {
  uint32_t v;
  if (!ait_arg_is_tensor(l->g, a)) return AIT_OK;
  AIT_TRY(ait_emit_cast(&l->w, a->as.value, dtype, &v));
  *a = ait_arg_value(v);
  return AIT_OK;
}

/* Complex results stay raw: no fast path computes them. */
static bool fast_dtype(ait_dtype d) { return d != AIT_DTYPE_NONE && !ait_dtype_is_complex(d); }

static ait_status emit_binary(ait_lower *l, const char *op, ait_arg a, ait_arg b, ait_dtype compute) {
  uint32_t out;
  if (!is_operand(l->g, &a) || !is_operand(l->g, &b) || !fast_dtype(compute)) return AIT_OK;
  if (!ait_arg_is_tensor(l->g, &a) && !ait_arg_is_tensor(l->g, &b)) return AIT_OK;
  AIT_TRY(cast_operand(l, &a, compute));
  AIT_TRY(cast_operand(l, &b, compute));
  AIT_TRY(AIT_EMIT(&l->w, &out, op, a, b));
  return ait_lower_done(l, out);
}

/* Arithmetic: computed in the result's dtype. */
static ait_status arithmetic(ait_lower *l) { return emit_binary(l, l->core, l->a[0], l->a[1], ait_lower_result(l)->dtype); }

/* other * alpha, for add, sub, rsub. */
static ait_status scaled(ait_lower *l, ait_arg *other, ait_dtype dtype, bool *ok) {
  double alpha = 1;
  uint32_t v;
  *ok = l->n->arg_count < 3 || ait_arg_as_number(l->g, &l->a[2], &alpha);
  if (!*ok || alpha == 1) return AIT_OK;
  if (!ait_arg_is_tensor(l->g, other)) {
    double number;
    *ok = ait_arg_as_number(l->g, other, &number);
    if (other->kind == AIT_ARG_INT && l->a[2].kind == AIT_ARG_INT)
      *other = ait_arg_int((int64_t)((uint64_t)other->as.i * (uint64_t)l->a[2].as.i)); /* wraps, as torch's */
    else if (*ok) *other = ait_arg_float(number * alpha);
    return AIT_OK;
  }
  AIT_TRY(cast_operand(l, other, dtype));
  AIT_TRY(AIT_EMIT(&l->w, &v, "mul", *other, l->a[2]));
  *other = ait_arg_value(v);
  return AIT_OK;
}

/* With a factor there are two steps. */
static ait_dtype scaled_dtype(const ait_lower *l) {
  double alpha = 1;
  ait_dtype dtype = ait_lower_result(l)->dtype;
  bool one = l->n->arg_count < 3 || (ait_arg_as_number(l->g, &l->a[2], &alpha) && alpha == 1);
  return one ? dtype : ait_lower_steps_dtype(dtype);
}

static ait_status add_sub(ait_lower *l) {
  ait_arg other = l->a[1];
  ait_dtype dtype = scaled_dtype(l);
  bool ok;
  if (!fast_dtype(dtype)) return AIT_OK;
  AIT_TRY(scaled(l, &other, dtype, &ok));
  return ok ? emit_binary(l, l->core, l->a[0], other, dtype) : AIT_OK;
}

static ait_status rsub(ait_lower *l) {
  ait_arg first = l->a[0];
  ait_dtype dtype = scaled_dtype(l);
  bool ok;
  if (!fast_dtype(dtype)) return AIT_OK;
  AIT_TRY(scaled(l, &first, dtype, &ok));
  return ok ? emit_binary(l, "sub", l->a[1], first, dtype) : AIT_OK;
}

static ait_status div_mode(ait_lower *l) {
  const ait_arg *mode = &l->a[2];
  const char *op = mode->kind != AIT_ARG_STRING ? "div" : !strcmp(mode->as.string, "floor") ? "floor_divide" : "trunc_divide";
  return emit_binary(l, op, l->a[0], l->a[1], ait_lower_result(l)->dtype);
}

/* Comparisons: computed in the promotion of the operands. A Python number does not widen a tensor of its own kind (torch's rule). */
static ait_dtype compare_dtype(const ait_lower *l, const ait_arg *a, const ait_arg *b) {
  bool at = ait_arg_is_tensor(l->g, a), bt = ait_arg_is_tensor(l->g, b);
  if (at && bt) {
    const ait_value_info *x = &l->g->values[a->as.value], *y = &l->g->values[b->as.value];
    bool same_kind = ait_dtype_is_integer(x->dtype) == ait_dtype_is_integer(y->dtype);
    if (same_kind && x->rank > 0 && y->rank == 0 && x->dtype != AIT_BOOL) return x->dtype;
    if (same_kind && y->rank > 0 && x->rank == 0 && y->dtype != AIT_BOOL) return y->dtype;
    return ait_dtype_promote(x->dtype, y->dtype);
  }
  ait_dtype t = l->g->values[at ? a->as.value : b->as.value].dtype;
  const ait_arg *number = at ? b : a;
  if (number->kind == AIT_ARG_FLOAT && ait_dtype_is_integer(t)) return AIT_F32;
  if (number->kind != AIT_ARG_BOOL && t == AIT_BOOL) return AIT_I64;
  return t;
}
static ait_status compare(ait_lower *l) {
  if (!is_operand(l->g, &l->a[0]) || !is_operand(l->g, &l->a[1])) return AIT_OK;
  if (!ait_arg_is_tensor(l->g, &l->a[0]) && !ait_arg_is_tensor(l->g, &l->a[1])) return AIT_OK;
  return emit_binary(l, l->core, l->a[0], l->a[1], compare_dtype(l, &l->a[0], &l->a[1]));
}
static ait_status logical(ait_lower *l) { return emit_binary(l, l->core, l->a[0], l->a[1], AIT_BOOL); }

static ait_status pow_number(ait_lower *l) {
  static const struct {
    double exponent;
    const char *op;
  } special[] = {{0.5, "sqrt"}, {-0.5, "rsqrt"}, {-1.0, "reciprocal"}};
  double e;
  uint32_t x, out;
  ait_dtype dtype = ait_lower_result(l)->dtype;
  if (!ait_arg_as_number(l->g, &l->a[1], &e) || !ait_dtype_is_float(dtype) || !ait_lower_tensor(l, 0, &x)) return arithmetic(l);
  AIT_TRY(ait_emit_cast(&l->w, x, e == 3 ? ait_lower_steps_dtype(dtype) : dtype, &x));
  if (e == 2 || e == 3) {
    AIT_TRY(AIT_EMIT(&l->w, &out, "mul", ait_arg_value(x), ait_arg_value(x)));
    if (e == 3) AIT_TRY(AIT_EMIT(&l->w, &out, "mul", ait_arg_value(out), ait_arg_value(x)));
    return ait_lower_done(l, out);
  }
  for (size_t i = 0; i < AIT_COUNT(special); ++i)
    if (special[i].exponent == e) {
      AIT_TRY(AIT_EMIT(&l->w, &out, special[i].op, ait_arg_value(x)));
      return ait_lower_done(l, out);
    }
  return arithmetic(l);
}

/* self + value * t1 * t2, self + value * t1 / t2 */
static ait_status addcmul(ait_lower *l) {
  ait_dtype dtype = ait_lower_steps_dtype(ait_lower_result(l)->dtype);
  ait_arg t[3];
  uint32_t v;
  double value;
  if (!fast_dtype(dtype) || !ait_arg_as_number(l->g, &l->a[3], &value)) return AIT_OK;
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(ait_lower_cast_arg(l, i, dtype, &t[i]));
  AIT_TRY(AIT_EMIT(&l->w, &v, l->core, t[1], t[2]));
  if (value != 1) AIT_TRY(AIT_EMIT(&l->w, &v, "mul", ait_arg_value(v), l->a[3]));
  AIT_TRY(AIT_EMIT(&l->w, &v, "add", t[0], ait_arg_value(v)));
  return ait_lower_done(l, v);
}

/* ---- choosing --------------------------------------------------------------------------------------------------------------------*/
static ait_status where_of(ait_lower *l, ait_arg cond, ait_arg a, ait_arg b) {
  uint32_t out;
  ait_dtype dtype = ait_lower_result(l)->dtype;
  if (!ait_arg_is_tensor(l->g, &cond) || !is_operand(l->g, &a) || !is_operand(l->g, &b) || !fast_dtype(dtype)) return AIT_OK;
  AIT_TRY(cast_operand(l, &cond, AIT_BOOL));
  AIT_TRY(cast_operand(l, &a, dtype));
  AIT_TRY(cast_operand(l, &b, dtype));
  if (!ait_arg_is_tensor(l->g, &a) && !ait_arg_is_tensor(l->g, &b)) { /* the dtype must come from somewhere */
    AIT_TRY(AIT_EMIT(&l->w, &out, "full", ait_arg_list(NULL, 0), a, ait_arg_dtype(dtype)));
    a = ait_arg_value(out);
  }
  AIT_TRY(AIT_EMIT(&l->w, &out, "where", cond, a, b));
  return ait_lower_done(l, out);
}
static ait_status where(ait_lower *l) { return where_of(l, l->a[0], l->a[1], l->a[2]); }
static ait_status masked_fill(ait_lower *l) { return where_of(l, l->a[1], l->a[2], l->a[0]); }

static ait_status cast(ait_lower *l) {
  uint32_t x;
  if (!ait_lower_tensor(l, 0, &x) || ait_dtype_is_complex(l->g->values[x].dtype) != ait_dtype_is_complex(ait_lower_result(l)->dtype))
    return AIT_OK;
  return ait_lower_done(l, x);
}

const ait_lower_row ait_lower_pointwise_rows[] = {
#define SAME(name) \
  { "aten." #name, #name, unary }
    SAME(neg),
    SAME(abs),
    SAME(sign),
    SAME(ceil),
    SAME(floor),
    SAME(round),
    SAME(trunc),
    SAME(relu),
    SAME(logical_not),
    SAME(bitwise_not),
    SAME(isnan),
    SAME(isinf),
#undef SAME
#define FLOAT(name) \
  { "aten." #name, #name, unary_float }
    FLOAT(sqrt),
    FLOAT(rsqrt),
    FLOAT(reciprocal),
    FLOAT(exp),
    FLOAT(exp2),
    FLOAT(expm1),
    FLOAT(log),
    FLOAT(log2),
    FLOAT(log10),
    FLOAT(log1p),
    FLOAT(sin),
    FLOAT(cos),
    FLOAT(tan),
    FLOAT(asin),
    FLOAT(acos),
    FLOAT(atan),
    FLOAT(sinh),
    FLOAT(cosh),
    FLOAT(tanh),
    FLOAT(asinh),
    FLOAT(acosh),
    FLOAT(atanh),
    FLOAT(erf),
    FLOAT(erfc),
    FLOAT(sigmoid),
    FLOAT(silu),
    FLOAT(hardswish),
    FLOAT(hardsigmoid),
    FLOAT(mish),
#undef FLOAT
    {"aten.gelu", "gelu", gelu},
    {"aten.elu", "elu", with_numbers},
    {"aten.leaky_relu", "leaky_relu", with_numbers},
    {"aten.softplus", "softplus", with_numbers},
    {"aten.square", NULL, square},
    {"aten.relu6", NULL, relu6},
    {"aten.hardtanh", NULL, clamp},
    {"aten.clamp", NULL, clamp},
    {"aten.clamp.Tensor", NULL, clamp},
    {"aten.clip", NULL, clamp},
    {"aten.clamp_min", NULL, clamp_min},
    {"aten.clamp_max", NULL, clamp_max},
    {"aten.add.Tensor", "add", add_sub},
    {"aten.add.Scalar", "add", add_sub},
    {"aten.sub.Tensor", "sub", add_sub},
    {"aten.sub.Scalar", "sub", add_sub},
    {"aten.rsub.Tensor", NULL, rsub},
    {"aten.rsub.Scalar", NULL, rsub},
    {"aten.mul.Tensor", "mul", arithmetic},
    {"aten.mul.Scalar", "mul", arithmetic},
    {"aten.div.Tensor", "div", arithmetic},
    {"aten.div.Scalar", "div", arithmetic},
    {"aten.true_divide.Tensor", "div", arithmetic},
    {"aten.div.Tensor_mode", NULL, div_mode},
    {"aten.div.Scalar_mode", NULL, div_mode},
    {"aten.floor_divide", "floor_divide", arithmetic},
    {"aten.floor_divide.Scalar", "floor_divide", arithmetic},
    {"aten.remainder.Tensor", "remainder", arithmetic},
    {"aten.remainder.Scalar", "remainder", arithmetic},
    {"aten.fmod.Tensor", "fmod", arithmetic},
    {"aten.fmod.Scalar", "fmod", arithmetic},
    {"aten.pow.Tensor_Scalar", "pow", pow_number},
    {"aten.pow.Tensor_Tensor", "pow", arithmetic},
    {"aten.pow.Scalar", "pow", arithmetic},
    {"aten.atan2", "atan2", arithmetic},
    {"aten.maximum", "maximum", arithmetic},
    {"aten.max.other", "maximum", arithmetic},
    {"aten.minimum", "minimum", arithmetic},
    {"aten.min.other", "minimum", arithmetic},
#define COMPARE(name) \
  {"aten." #name ".Tensor", #name, compare}, { "aten." #name ".Scalar", #name, compare }
    COMPARE(eq),
    COMPARE(ne),
    COMPARE(lt),
    COMPARE(le),
    COMPARE(gt),
    COMPARE(ge),
#undef COMPARE
#define BITS(name) \
  {"aten.bitwise_" #name ".Tensor", "bitwise_" #name, arithmetic}, { "aten.bitwise_" #name ".Scalar", "bitwise_" #name, arithmetic }
    BITS(and),
    BITS(or),
    BITS(xor),
#undef BITS
    {"aten.__and__.Tensor", "bitwise_and", arithmetic},
    {"aten.__or__.Tensor", "bitwise_or", arithmetic},
    {"aten.logical_and", "logical_and", logical},
    {"aten.logical_or", "logical_or", logical},
    {"aten.logical_xor", "logical_xor", logical},
    {"aten.addcmul", "mul", addcmul},
    {"aten.addcdiv", "div", addcmul},
    {"aten.where.self", NULL, where},
    {"aten.where.ScalarOther", NULL, where},
    {"aten.where.ScalarSelf", NULL, where},
    {"aten.where.Scalar", NULL, where},
    {"aten.masked_fill.Scalar", NULL, masked_fill},
    {"aten.masked_fill.Tensor", NULL, masked_fill},
    {"aten._to_copy", NULL, cast},
    {"aten.to.dtype", NULL, cast},
    {"aten.to.dtype_layout", NULL, cast},
    {"aten.to.device", NULL, cast},
    {"aten.to.other", NULL, cast},
    {"aten.type_as", NULL, cast},
    {"aten.alias", NULL, identity},
    {"aten.clone", NULL, identity},
    {"aten.contiguous", NULL, identity},
    {"aten.lift_fresh_copy", NULL, identity},
    {"aten.detach", NULL, identity},
    {0},
};
