/* Element-wise operators. */
#include "import/onnx/onnx.h"

/* One operand, a core operator of the same meaning. */
ait_status ox_build_unary(ox_call *c) {
  uint32_t x;
  AIT_TRY(ox_need(c, 0, &x));
  return ox_unary(c, c->variant, x, &c->outputs[0]);
}

ait_status ox_build_identity(ox_call *c) {
  if (!ox_has(c, 0)) return ox_fail(c, AIT_CODE_INVALID_MODEL, "input 0 is missing");
  return ox_identity(c, c->inputs[0]);
}

/* Before opset 7 operand 1 is broadcast only when the node says so, its dims from `axis` on. */
static ait_status old_broadcast(ox_call *c, uint32_t a, uint32_t *b) {
  const Onnx__AttributeProto *attribute;
  bool broadcast;
  ait_dim dims[AIT_MAX_RANK];
  if (c->version >= 7) return AIT_OK;
  AIT_TRY(ox_flag(c, "broadcast", false, &broadcast));
  AIT_TRY(ox_attribute(c, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, &attribute));
  if (!broadcast || !attribute) return AIT_OK;
  int32_t axis, rank = ox_info(c, a)->rank, own = ox_info(c, *b)->rank;
  if (rank < 0 || own < 0) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a rank is not known");
  AIT_TRY(ox_axis(c, attribute->i, rank, &axis));
  if (axis + own > rank)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "rank %d from axis %d on does not fit rank %d", (int)own, (int)axis, (int)rank);
  for (int32_t d = 0; d < rank - axis; ++d) {
    if (d < own) dims[d] = ox_info(c, *b)->shape[d];
    else AIT_TRY(ait_dim_const(c->g, 1, &dims[d]));
  }
  return ox_reshape(c, *b, dims, rank - axis, b);
}

ait_status ox_build_binary(ox_call *c) {
  uint32_t a, b;
  AIT_TRY(ox_need(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &b));
  AIT_TRY(old_broadcast(c, a, &b));
  return OX(c, c->variant, &c->outputs[0], V(a), V(b));
}

/* ---- arithmetic on sizes: programs compute shapes with these -----------------------------------------------------------------------*/

static bool dim_op_of(const char *op, ait_dim_op *out) {
  static const struct {
    const char *op;
    ait_dim_op dim;
  } ops[] = {{"add", AIT_DIM_ADD},     {"sub", AIT_DIM_SUB},     {"mul", AIT_DIM_MUL},      {"div", AIT_DIM_FLOORDIV},
             {"maximum", AIT_DIM_MAX}, {"minimum", AIT_DIM_MIN}, {"remainder", AIT_DIM_MOD}};
  for (size_t i = 0; i < AIT_COUNT(ops); ++i) {
    if (strcmp(ops[i].op, op) != 0) continue;
    *out = ops[i].dim;
    return true;
  }
  return false;
}

/* Sizes may be divided and taken the remainder of only where rounding down is what ONNX does too: no negative operands. */
static bool may_divide(const ox_call *c, ait_dim_op op, ait_dim a, ait_dim b) {
  int64_t a_min, a_max, b_min, b_max;
  if (op != AIT_DIM_FLOORDIV && op != AIT_DIM_MOD) return true;
  ait_dim_range(c->g, a, &a_min, &a_max);
  ait_dim_range(c->g, b, &b_min, &b_max);
  return a_min >= 0 && b_min > 0;
}

static ait_status follow_sizes(ox_call *c, const char *op, uint32_t a, uint32_t b, uint32_t result) {
  const ait_dim *x, *y;
  uint32_t n, m;
  ait_dim_op dim_op;
  const ait_value_info *r = ox_info(c, result);
  if ((r->dtype != AIT_I64 && r->dtype != AIT_I32) || r->rank < 0 || r->rank > 1 || !dim_op_of(op, &dim_op)) return AIT_OK;
  if (!ox_contents(c, a, &x, &n) || !ox_contents(c, b, &y, &m) || (n != m && n != 1 && m != 1)) return AIT_OK;
  uint32_t count = n == 1 ? m : n;
  ait_dim *dims;
  AIT_TRY(ox_dims(c, (int32_t)count, &dims));
  for (uint32_t i = 0; i < count; ++i) {
    ait_dim p = x[n == 1 ? 0 : i], q = y[m == 1 ? 0 : i];
    if (!may_divide(c, dim_op, p, q)) return AIT_OK;
    AIT_TRY(ox_dim(c, dim_op, p, q, &dims[i]));
  }
  ox_known known = {.has_dims = true, .rank = ox_info(c, result)->rank, .count = count, .dims = dims};
  return ox_set_known(c->s, result, &known);
}

ait_status ox_build_arithmetic(ox_call *c) {
  uint32_t a, b;
  const char *op = c->variant;
  AIT_TRY(ox_need(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &b));
  AIT_TRY(old_broadcast(c, a, &b));
  ait_dtype dtype = ox_dtype_of(c, a);
  if (strcmp(op, "div") == 0 && ait_dtype_is_integer(dtype)) op = "trunc_divide";
  AIT_TRY(OX(c, op, &c->outputs[0], V(a), V(b)));
  AIT_TRY(ox_cast(c, c->outputs[0], dtype, &c->outputs[0]));
  return follow_sizes(c, c->variant, a, b, c->outputs[0]);
}

ait_status ox_build_mod(ox_call *c) {
  bool fmod;
  uint32_t a, b;
  AIT_TRY(ox_flag(c, "fmod", false, &fmod));
  AIT_TRY(ox_need(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &b));
  AIT_TRY(OX(c, fmod ? "fmod" : "remainder", &c->outputs[0], V(a), V(b)));
  return fmod ? AIT_OK : follow_sizes(c, "remainder", a, b, c->outputs[0]);
}

/* The result has the base's dtype, whatever the exponent is. */
ait_status ox_build_pow(ox_call *c) {
  uint32_t a, b;
  AIT_TRY(ox_need(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &b));
  AIT_TRY(old_broadcast(c, a, &b));
  ait_dtype dtype = ox_dtype_of(c, a), other = ox_dtype_of(c, b);
  if (ait_dtype_is_integer(dtype) && ait_dtype_is_float(other)) AIT_TRY(ox_cast(c, a, other == AIT_F64 ? AIT_F64 : AIT_F32, &a));
  else if (dtype != other) AIT_TRY(ox_cast(c, b, dtype, &b));
  AIT_TRY(OX(c, "pow", &c->outputs[0], V(a), V(b)));
  return ox_cast(c, c->outputs[0], dtype, &c->outputs[0]);
}

/* Sum, Mean, Max, Min: one operand or more. */
ait_status ox_build_variadic(ox_call *c) {
  uint32_t y, x;
  bool mean = strcmp(c->variant, "mean") == 0;
  const char *op = mean ? "add" : c->variant;
  AIT_TRY(ox_need(c, 0, &y));
  for (uint32_t i = 1; i < c->input_count; ++i) {
    uint32_t before = y;
    AIT_TRY(ox_need(c, i, &x));
    AIT_TRY(OX(c, op, &y, V(before), V(x)));
    if (!mean) AIT_TRY(follow_sizes(c, op, before, x, y));
  }
  if (mean) AIT_TRY(ox_with_float(c, "div", y, c->input_count, &y));
  return ox_identity(c, y);
}

/* ---- comparisons -----------------------------------------------------------------------------------------------------------------*/

/* Equal of known sizes is known where they are equal or cannot be: Where(Equal(shape, -1), …) is how exporters write expand. */
static ait_status follow_comparison(ox_call *c, uint32_t a, uint32_t b, uint32_t result) {
  const ait_dim *x, *y;
  uint32_t n, m;
  if (strcmp(c->variant, "eq") != 0 || ox_info(c, result)->rank > 1 || ox_info(c, result)->rank < 0) return AIT_OK;
  if (!ox_contents(c, a, &x, &n) || !ox_contents(c, b, &y, &m) || (n != m && n != 1 && m != 1)) return AIT_OK;
  uint32_t count = n == 1 ? m : n;
  ait_dim *dims;
  AIT_TRY(ox_dims(c, (int32_t)count, &dims));
  for (uint32_t i = 0; i < count; ++i) {
    ait_dim p = x[n == 1 ? 0 : i], q = y[m == 1 ? 0 : i];
    int64_t p_min, p_max, q_min, q_max;
    ait_dim_range(c->g, p, &p_min, &p_max);
    ait_dim_range(c->g, q, &q_min, &q_max);
    if (p != q && p_max >= q_min && q_max >= p_min) return AIT_OK;
    AIT_TRY(ait_dim_const(c->g, p == q, &dims[i]));
  }
  ox_known known = {.has_dims = true, .rank = ox_info(c, result)->rank, .count = count, .dims = dims};
  return ox_set_known(c->s, result, &known);
}

ait_status ox_build_compare(ox_call *c) {
  uint32_t a, b;
  AIT_TRY(ox_need(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &b));
  AIT_TRY(old_broadcast(c, a, &b));
  AIT_TRY(OX(c, c->variant, &c->outputs[0], V(a), V(b)));
  return follow_comparison(c, a, b, c->outputs[0]);
}

static ait_status follow_where(ox_call *c, const uint32_t *in, uint32_t result) {
  const ait_dim *parts[3];
  uint32_t counts[3], count = 1;
  if (ox_info(c, result)->rank < 0 || ox_info(c, result)->rank > 1) return AIT_OK;
  for (int i = 0; i < 3; ++i) {
    if (!ox_contents(c, in[i], &parts[i], &counts[i])) return AIT_OK;
    if (counts[i] != 1) count = counts[i];
  }
  ait_dim *dims;
  AIT_TRY(ox_dims(c, (int32_t)count, &dims));
  for (uint32_t i = 0; i < count; ++i) {
    int64_t cond;
    for (int k = 0; k < 3; ++k)
      if (counts[k] != 1 && counts[k] != count) return AIT_OK;
    if (!ait_dim_is_const(c->g, parts[0][counts[0] == 1 ? 0 : i], &cond)) return AIT_OK;
    int from = cond ? 1 : 2;
    dims[i] = parts[from][counts[from] == 1 ? 0 : i];
  }
  ox_known known = {.has_dims = true, .rank = ox_info(c, result)->rank, .count = count, .dims = dims};
  return ox_set_known(c->s, result, &known);
}

ait_status ox_build_where(ox_call *c) {
  uint32_t in[3];
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(ox_need(c, i, &in[i]));
  AIT_TRY(OX(c, "where", &c->outputs[0], V(in[0]), V(in[1]), V(in[2])));
  return follow_where(c, in, c->outputs[0]);
}

ait_status ox_build_bit_shift(ox_call *c) {
  const char *direction;
  uint32_t a, b;
  AIT_TRY(ox_string(c, "direction", "", &direction));
  bool left = strcmp(direction, "LEFT") == 0;
  if (!left && strcmp(direction, "RIGHT") != 0) return ox_fail(c, AIT_CODE_INVALID_MODEL, "direction is '%s'", direction);
  AIT_TRY(ox_need(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &b));
  return OX(c, left ? "shift_left" : "shift_right", &c->outputs[0], V(a), V(b));
}

/* ---- casts -----------------------------------------------------------------------------------------------------------------------*/

static bool is_narrow(int32_t onnx) {
  return onnx >= ONNX__TENSOR_PROTO__DATA_TYPE__UINT4 ||
         (onnx >= ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E4M3FN && onnx <= ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E5M2FNUZ);
}

/* The cast core operator follows PyTorch; 8-bit floats and narrower types round and saturate by ONNX's own rules. */
static ait_status cast_to(ox_call *c, uint32_t x, int32_t to) {
  bool saturate;
  const char *round_mode;
  ait_dtype dtype = ox_dtype(to);
  if (dtype == AIT_DTYPE_NONE) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a cast to type %s (%d)", ox_dtype_text(to), (int)to);
  AIT_TRY(ox_flag(c, "saturate", true, &saturate));
  AIT_TRY(ox_string(c, "round_mode", "up", &round_mode));
  if (is_narrow(to)) {
    ait_value_info info = ox_like(c, x);
    info.dtype = dtype;
    AIT_TRY(OX_RAW(c, "onnx.Cast", &info, &c->outputs[0], V(x), I(to), B(saturate), S(round_mode)));
    return ox_set_narrow_type(c, c->outputs[0], to);
  }
  AIT_TRY(OX(c, "cast", &c->outputs[0], V(x), T(dtype)));
  const ait_dim *dims;
  uint32_t n;
  if ((dtype == AIT_I64 || dtype == AIT_I32) && ox_info(c, x)->rank >= 0 && ox_info(c, x)->rank <= 1 && ox_contents(c, x, &dims, &n)) {
    ox_known known = {.has_dims = true, .rank = ox_info(c, x)->rank, .count = n, .dims = dims};
    return ox_set_known(c->s, c->outputs[0], &known);
  }
  return AIT_OK;
}

ait_status ox_build_cast(ox_call *c) {
  uint32_t x;
  int64_t to;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_int(c, "to", 0, &to));
  return cast_to(c, x, to > 0 && to < 1000 ? (int32_t)to : 0);
}

static int32_t onnx_dtype(ait_dtype dtype) {
  for (int32_t i = 1; i < ONNX__TENSOR_PROTO__DATA_TYPE__UINT4; ++i)
    if (ox_dtype(i) == dtype) return i;
  return dtype == AIT_F8E8M0FNU ? ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT8E8M0 : 0;
}

ait_status ox_build_cast_like(ox_call *c) {
  uint32_t x, like;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &like));
  int32_t narrow = ox_narrow_type(c, like);
  return cast_to(c, x, narrow ? narrow : onnx_dtype(ox_dtype_of(c, like)));
}

ait_status ox_build_bit_cast(ox_call *c) {
  uint32_t x;
  int64_t to;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_int(c, "to", 0, &to));
  ait_value_info info = ox_like(c, x);
  ait_dtype dtype = ox_dtype(to > 0 && to < 1000 ? (int32_t)to : 0);
  if (ait_dtype_size(dtype) == 0 || ait_dtype_size(dtype) != ait_dtype_size(info.dtype))
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "%s as the bits of type %lld", ait_dtype_name(info.dtype), (long long)to);
  info.dtype = dtype;
  return OX_RAW(c, "aten.view.dtype", &info, &c->outputs[0], V(x), T(dtype));
}

/* ---- activations -----------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_elu(ox_call *c) { /* Elu, Selu, Celu: scale * (max(0, x) + min(0, alpha * (exp(x * input_scale) - 1))) */
  uint32_t x;
  double alpha, gamma = 1;
  bool selu = strcmp(c->variant, "selu") == 0, celu = strcmp(c->variant, "celu") == 0;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_float(c, "alpha", selu ? 1.67326319217681884765625 : 1, &alpha));
  if (selu) AIT_TRY(ox_float(c, "gamma", 1.05070102214813232421875, &gamma));
  return OX(c, "elu", &c->outputs[0], V(x), F(alpha), F(gamma), F(celu ? 1 / alpha : 1));
}

ait_status ox_build_leaky_relu(ox_call *c) {
  uint32_t x;
  double alpha;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_float(c, "alpha", 0.01f, &alpha));
  return OX(c, "leaky_relu", &c->outputs[0], V(x), F(alpha));
}

ait_status ox_build_gelu(ox_call *c) {
  uint32_t x;
  const char *approximate;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_string(c, "approximate", "none", &approximate));
  if (strcmp(approximate, "none") != 0 && strcmp(approximate, "tanh") != 0)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "approximate is '%s'", approximate);
  return OX(c, "gelu", &c->outputs[0], V(x), S(approximate));
}

ait_status ox_build_hard_sigmoid(ox_call *c) {
  uint32_t x;
  double alpha, beta;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_float(c, "alpha", 0.2f, &alpha));
  AIT_TRY(ox_float(c, "beta", 0.5, &beta));
  AIT_TRY(ox_with_float(c, "mul", x, alpha, &x));
  AIT_TRY(ox_with_float(c, "add", x, beta, &x));
  return OX(c, "clamp", &c->outputs[0], V(x), F(0), F(1));
}

ait_status ox_build_thresholded_relu(ox_call *c) {
  uint32_t x, above;
  double alpha;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_float(c, "alpha", 1, &alpha));
  AIT_TRY(OX(c, "gt", &above, V(x), F(alpha)));
  return OX(c, "where", &c->outputs[0], V(above), V(x), F(0));
}

/* x < -lambd: x + bias; x > lambd: x - bias; else 0 */
ait_status ox_build_shrink(ox_call *c) {
  uint32_t x, low, high, plus, minus, y;
  double bias, lambd;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_float(c, "bias", 0, &bias));
  AIT_TRY(ox_float(c, "lambd", 0.5, &lambd));
  AIT_TRY(OX(c, "lt", &low, V(x), F(-lambd)));
  AIT_TRY(OX(c, "gt", &high, V(x), F(lambd)));
  AIT_TRY(ox_with_float(c, "add", x, bias, &plus));
  AIT_TRY(ox_with_float(c, "sub", x, bias, &minus));
  AIT_TRY(OX(c, "where", &y, V(high), V(minus), ait_dtype_is_float(ox_dtype_of(c, x)) ? F(0) : I(0)));
  return OX(c, "where", &c->outputs[0], V(low), V(plus), V(y));
}

ait_status ox_build_prelu(ox_call *c) {
  uint32_t x, slope, below, scaled;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &slope));
  if (c->version < 7 && ox_info(c, slope)->rank == 1 && ox_info(c, x)->rank > 2) { /* one slope a channel */
    ait_dim dims[AIT_MAX_RANK];
    dims[0] = ox_info(c, slope)->shape[0];
    for (int32_t d = 1; d < ox_info(c, x)->rank - 1; ++d) AIT_TRY(ait_dim_const(c->g, 1, &dims[d]));
    AIT_TRY(ox_reshape(c, slope, dims, ox_info(c, x)->rank - 1, &slope));
  }
  AIT_TRY(OX(c, "lt", &below, V(x), ait_dtype_is_float(ox_dtype_of(c, x)) ? F(0) : I(0)));
  AIT_TRY(OX(c, "mul", &scaled, V(x), V(slope)));
  return OX(c, "where", &c->outputs[0], V(below), V(scaled), V(x));
}

ait_status ox_build_softsign(ox_call *c) {
  uint32_t x, y;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_unary(c, "abs", x, &y));
  AIT_TRY(ox_with_float(c, "add", y, 1, &y));
  return OX(c, "div", &c->outputs[0], V(x), V(y));
}

ait_status ox_build_swish(ox_call *c) {
  uint32_t x, y;
  double alpha;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_float(c, "alpha", 1, &alpha));
  if (alpha == 1) return ox_unary(c, "silu", x, &c->outputs[0]);
  AIT_TRY(ox_with_float(c, "mul", x, alpha, &y));
  AIT_TRY(ox_unary(c, "sigmoid", y, &y));
  return OX(c, "mul", &c->outputs[0], V(x), V(y));
}

ait_status ox_build_clip(ox_call *c) {
  uint32_t x;
  const Onnx__AttributeProto *min = NULL, *max = NULL;
  AIT_TRY(ox_need(c, 0, &x));
  if (c->version < 11) {
    AIT_TRY(ox_attribute(c, "min", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, &min));
    AIT_TRY(ox_attribute(c, "max", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, &max));
  }
  ait_arg low = min ? F((double)min->f) : NONE, high = max ? F((double)max->f) : NONE;
  bool is_int = ait_dtype_is_integer(ox_dtype_of(c, x));
  for (uint32_t k = 1; k <= 2; ++k) {
    double v;
    if (c->version < 11 || !ox_has(c, k)) continue;
    ait_arg *to = k == 1 ? &low : &high;
    const int64_t *ints;
    uint32_t n;
    if (is_int && ox_known_ints(c, c->inputs[k], &ints, &n) && n == 1) *to = I(ints[0]);
    else if (!is_int && ox_known_number(c, c->inputs[k], &v)) *to = F(v);
    else *to = V(c->inputs[k]);
  }
  if (low.kind == AIT_ARG_NONE && high.kind == AIT_ARG_NONE) return ox_identity(c, x);
  if (low.kind == AIT_ARG_VALUE || high.kind == AIT_ARG_VALUE) { /* the limits are tensors */
    uint32_t y = x;
    if (low.kind != AIT_ARG_NONE) AIT_TRY(OX(c, "maximum", &y, V(y), low));
    if (high.kind != AIT_ARG_NONE) AIT_TRY(OX(c, "minimum", &y, V(y), high));
    return ox_identity(c, y);
  }
  return OX(c, "clamp", &c->outputs[0], V(x), low, high);
}

ait_status ox_build_is_inf(ox_call *c) {
  uint32_t x, sign;
  bool negative, positive;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_flag(c, "detect_negative", true, &negative));
  AIT_TRY(ox_flag(c, "detect_positive", true, &positive));
  AIT_TRY(ox_unary(c, "isinf", x, &c->outputs[0]));
  if (negative && positive) return AIT_OK;
  AIT_TRY(OX(c, positive ? "gt" : "lt", &sign, V(x), F(0)));
  if (!negative && !positive) AIT_TRY(OX(c, "logical_and", &sign, V(sign), B(false)));
  return OX(c, "logical_and", &c->outputs[0], V(c->outputs[0]), V(sign));
}

/* Inference passes x on. With training_mode only shapes are promised: the numbers are random. */
ait_status ox_build_dropout(ox_call *c) {
  uint32_t x;
  double ratio = 0.5, training = 0;
  AIT_TRY(ox_need(c, 0, &x));
  if (c->version >= 12) {
    if (ox_has(c, 1) && !ox_known_number(c, c->inputs[1], &ratio)) ratio = -1; /* not known at import */
    if (ox_has(c, 2) && !ox_known_number(c, c->inputs[2], &training)) training = -1;
  }
  ait_value_info infos[2] = {ox_like(c, x), ox_like(c, x)};
  infos[1].dtype = AIT_BOOL;
  if (training == 0) {
    c->outputs[0] = x;
    if (!ox_wants(c, 1)) return AIT_OK;
    if (c->version < 10) infos[1].dtype = infos[0].dtype;
    if (ox_info(c, x)->rank >= 0)
      return OX(c, "full", &c->outputs[1], ox_list_dims(c, infos[1].shape, (size_t)infos[1].rank),
                infos[1].dtype == AIT_BOOL ? B(true) : F(1), T(infos[1].dtype));
  }
  return ox_raw_args(c, "onnx.Dropout",
                     OX_ARGS(V(x), ratio >= 0 ? F(ratio) : V(c->inputs[1]), training >= 0 ? B(training != 0) : V(c->inputs[2])), infos,
                     c->outputs, 2);
}
