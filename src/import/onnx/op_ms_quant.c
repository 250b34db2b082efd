/* The domain com.microsoft: operators on quantised tensors. Each is written as what it means: numbers, the operator, numbers rounded again.
 */
#include "import/onnx/onnx.h"

/* One number for all, or one for each place of `axis`: [n] becomes [n, 1, ..]. */
static ait_status along(ox_call *c, uint32_t v, int32_t axis, int32_t rank, uint32_t *out) {
  ait_dim dims[AIT_MAX_RANK];
  *out = v;
  const ait_value_info *info = ox_info(c, v);
  int64_t count;
  if (info->rank != 1) return AIT_OK;
  if (ox_const_dim(c, v, 0, &count) && count == 1) return ox_reshape(c, v, NULL, 0, out);
  int32_t n = rank - axis;
  dims[0] = info->shape[0];
  for (int32_t d = 1; d < n; ++d) AIT_TRY(ait_dim_const(c->g, 1, &dims[d]));
  return n > 1 ? ox_reshape(c, v, dims, n, out) : AIT_OK;
}

/* (x - zero) * scale */
static ait_status numbers(ox_call *c, uint32_t x, uint32_t scale, uint32_t zero, int32_t axis, uint32_t *out) {
  int32_t rank = ox_info(c, x)->rank;
  AIT_TRY(along(c, scale, axis, rank, &scale));
  ait_dtype dtype = ox_dtype_of(c, scale);
  AIT_TRY(ox_cast(c, x, dtype, &x));
  if (zero != AIT_NO_INDEX) {
    AIT_TRY(along(c, zero, axis, rank, &zero));
    AIT_TRY(ox_cast(c, zero, dtype, &zero));
    AIT_TRY(OX(c, "sub", &x, V(x), V(zero)));
  }
  return OX(c, "mul", out, V(x), V(scale));
}

static ait_status rounded(ox_call *c, uint32_t y, uint32_t scale, uint32_t zero, ait_dtype dtype, int32_t axis, uint32_t *out) {
  int32_t rank = ox_info(c, y)->rank;
  double low = dtype == AIT_I8 ? -128 : dtype == AIT_I16 ? -32768 : 0;
  double high = dtype == AIT_I8 ? 127 : dtype == AIT_I16 ? 32767 : dtype == AIT_U16 ? 65535 : 255;
  AIT_TRY(along(c, scale, axis, rank, &scale));
  AIT_TRY(OX(c, "div", &y, V(y), V(scale)));
  AIT_TRY(OX(c, "round", &y, V(y)));
  if (zero != AIT_NO_INDEX) {
    AIT_TRY(along(c, zero, axis, rank, &zero));
    AIT_TRY(ox_cast(c, zero, ox_dtype_of(c, y), &zero));
    AIT_TRY(OX(c, "add", &y, V(y), V(zero)));
  }
  AIT_TRY(OX(c, "clamp", &y, V(y), F(low), F(high)));
  return ox_cast(c, y, dtype, out);
}

static uint32_t given(const ox_call *c, uint32_t k) { return ox_has(c, k) ? c->inputs[k] : AIT_NO_INDEX; }

/* The operand at k with its scale and zero point behind it. */
static ait_status operand(ox_call *c, uint32_t k, uint32_t *out) {
  uint32_t x, scale;
  AIT_TRY(ox_need_ranked(c, k, &x));
  AIT_TRY(ox_need(c, k + 1, &scale));
  return numbers(c, x, scale, given(c, k + 2), 0, out);
}

/* The result's scale and zero point are at k; it has the dtype of input `like`. */
static ait_status finish(ox_call *c, uint32_t y, uint32_t k, uint32_t like) {
  uint32_t scale, typed;
  AIT_TRY(ox_need(c, k, &scale));
  AIT_TRY(ox_need(c, like, &typed));
  return rounded(c, y, scale, given(c, k + 1), ox_dtype_of(c, typed), 0, &c->outputs[0]);
}

/* QLinearAdd, QLinearMul: A, scale, zero, B, scale, zero, scale, zero */
ait_status ox_build_ms_q_binary(ox_call *c) {
  uint32_t a, b;
  AIT_TRY(operand(c, 0, &a));
  AIT_TRY(operand(c, 3, &b));
  AIT_TRY(OX(c, c->variant, &a, V(a), V(b)));
  return finish(c, a, 6, 0);
}

/* X, scale, zero, scale, zero */
ait_status ox_build_ms_q_unary(ox_call *c) {
  uint32_t x;
  AIT_TRY(operand(c, 0, &x));
  if (!strcmp(c->variant, "leaky_relu")) {
    double alpha;
    AIT_TRY(ox_float(c, "alpha", 0.01f, &alpha));
    AIT_TRY(OX(c, "leaky_relu", &x, V(x), F(alpha)));
  } else if (!strcmp(c->variant, "softmax")) {
    int64_t attribute;
    int32_t axis;
    AIT_TRY(ox_int(c, "axis", -1, &attribute));
    AIT_TRY(ox_axis(c, attribute, ox_info(c, x)->rank, &axis));
    AIT_TRY(OX(c, "softmax", &x, V(x), I(axis)));
  } else AIT_TRY(OX(c, c->variant, &x, V(x)));
  return finish(c, x, 3, 0);
}

static ait_status refuse_channels_last(ox_call *c) {
  bool last;
  AIT_TRY(ox_flag(c, "channels_last", false, &last));
  return last ? ox_fail(c, AIT_CODE_UNSUPPORTED, "images with channels last") : AIT_OK;
}

ait_status ox_build_ms_q_pool(ox_call *c) {
  uint32_t x, first, count = c->input_count;
  AIT_TRY(refuse_channels_last(c));
  AIT_TRY(operand(c, 0, &x));
  first = c->inputs[0];
  c->inputs[0] = x; /* AveragePool's builder sees the numbers */
  c->input_count = 1;
  ait_status status = ox_build_average_pool(c);
  c->inputs[0] = first;
  c->input_count = count;
  AIT_TRY(status);
  return finish(c, c->outputs[0], 3, 0);
}

ait_status ox_build_ms_q_global_pool(ox_call *c) {
  uint32_t x, n = 0;
  int64_t axes[AIT_MAX_RANK];
  AIT_TRY(refuse_channels_last(c));
  AIT_TRY(operand(c, 0, &x));
  for (int32_t d = 2; d < ox_info(c, x)->rank; ++d) axes[n++] = d;
  if (n) AIT_TRY(ox_reduce(c, "mean", x, axes, n, true, &x));
  return finish(c, x, 3, 0);
}

/* scale, zero, then X, scale, zero of each operand */
ait_status ox_build_ms_q_concat(ox_call *c) {
  enum { MOST = 256 };
  uint32_t parts[MOST], count = 0, y;
  int64_t attribute;
  int32_t axis;
  for (uint32_t k = 2; k < c->input_count; k += 3) {
    if (count == MOST) return ox_fail(c, AIT_CODE_LIMIT, "more than %d operands", MOST);
    AIT_TRY(operand(c, k, &parts[count++]));
  }
  if (!count) return ox_fail(c, AIT_CODE_INVALID_MODEL, "it has no operands");
  AIT_TRY(ox_int(c, "axis", 0, &attribute));
  AIT_TRY(ox_axis(c, attribute, ox_info(c, parts[0])->rank, &axis));
  AIT_TRY(OX(c, "cat", &y, ox_list_values(c, parts, count), I(axis)));
  return finish(c, y, 0, 2);
}

static ait_status quantisation_axis(ox_call *c, uint32_t x, int32_t *out) {
  int64_t attribute;
  AIT_TRY(ox_int(c, "axis", 1, &attribute));
  *out = 0;
  return ox_info(c, x)->rank > 1 ? ox_axis(c, attribute, ox_info(c, x)->rank, out) : AIT_OK;
}

/* QuantizeLinear(x, scale, zero?) */
ait_status ox_build_ms_quantize(ox_call *c) {
  uint32_t x, scale, zero = given(c, 2);
  int32_t axis;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &scale));
  AIT_TRY(quantisation_axis(c, x, &axis));
  return rounded(c, x, scale, zero, zero == AIT_NO_INDEX ? AIT_U8 : ox_dtype_of(c, zero), axis, &c->outputs[0]);
}

ait_status ox_build_ms_dequantize(ox_call *c) {
  uint32_t x, scale;
  int32_t axis;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &scale));
  AIT_TRY(quantisation_axis(c, x, &axis));
  return numbers(c, x, scale, given(c, 2), axis, &c->outputs[0]);
}

/* ---- products --------------------------------------------------------------------------------------------------------------------*/
static ait_status with_bias(ox_call *c, uint32_t y, uint32_t k) {
  if (!ox_has(c, k)) return ox_identity(c, y);
  return OX(c, "add", &c->outputs[0], V(y), V(c->inputs[k]));
}

/* MatMulIntegerToFloat(A, B, a_scale, b_scale, a_zero?, b_zero?, bias?); b's may be one for each column. */
ait_status ox_build_ms_integer_product(ox_call *c) {
  uint32_t a, b, scales[2], zeros[2] = {given(c, 4), given(c, 5)}, y;
  AIT_TRY(ox_need_ranked(c, 0, &a));
  AIT_TRY(ox_need_ranked(c, 1, &b));
  AIT_TRY(ox_need(c, 2, &scales[0]));
  AIT_TRY(ox_need(c, 3, &scales[1]));
  AIT_TRY(numbers(c, a, scales[0], zeros[0], ox_info(c, a)->rank - 1, &a));
  AIT_TRY(numbers(c, b, scales[1], zeros[1], ox_info(c, b)->rank - 1, &b));
  AIT_TRY(OX(c, "matmul", &y, V(a), V(b)));
  return with_bias(c, y, 6);
}

/* A rounded to 256 steps between its extremes (and 0), as DynamicQuantizeLinear does. */
static ait_status dynamically_rounded(ox_call *c, uint32_t a, uint32_t *out) {
  uint32_t low, high, scale, zero;
  AIT_TRY(ox_reduce(c, "amin", a, NULL, 0, false, &low));
  AIT_TRY(ox_reduce(c, "amax", a, NULL, 0, false, &high));
  AIT_TRY(OX(c, "clamp", &low, V(low), NONE, F(0)));
  AIT_TRY(OX(c, "clamp", &high, V(high), F(0)));
  AIT_TRY(OX(c, "sub", &scale, V(high), V(low)));
  AIT_TRY(ox_with_float(c, "div", scale, 255, &scale));
  AIT_TRY(OX(c, "eq", &zero, V(scale), F(0)));
  AIT_TRY(OX(c, "where", &scale, V(zero), F(1), V(scale))); /* all zeros */
  AIT_TRY(OX(c, "div", &zero, V(low), V(scale)));
  AIT_TRY(OX(c, "neg", &zero, V(zero)));
  AIT_TRY(OX(c, "clamp", &zero, V(zero), F(0), F(255)));
  AIT_TRY(OX(c, "round", &zero, V(zero)));
  AIT_TRY(rounded(c, a, scale, zero, AIT_U8, 0, &a));
  return numbers(c, a, scale, zero, 0, out);
}

/* DynamicQuantizeMatMul(A, B, b_scale, b_zero?, bias?) */
ait_status ox_build_ms_dynamic_product(ox_call *c) {
  uint32_t a, b, scale, y;
  AIT_TRY(ox_need_ranked(c, 0, &a));
  AIT_TRY(ox_need_ranked(c, 1, &b));
  AIT_TRY(ox_need(c, 2, &scale));
  AIT_TRY(dynamically_rounded(c, a, &a));
  AIT_TRY(numbers(c, b, scale, given(c, 3), ox_info(c, b)->rank - 1, &b));
  AIT_TRY(OX(c, "matmul", &y, V(a), V(b)));
  return with_bias(c, y, 4);
}

/* QAttention(input, weight, bias, input_scale, weight_scale, mask?, input_zero?, weight_zero?, past?) is Attention on their numbers. */
ait_status ox_build_ms_q_attention(ox_call *c) {
  uint32_t x, weight, inputs[5], count = c->input_count, *all = c->inputs;
  uint32_t scales[2];
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &weight));
  AIT_TRY(ox_need(c, 3, &scales[0]));
  AIT_TRY(ox_need(c, 4, &scales[1]));
  AIT_TRY(numbers(c, x, scales[0], given(c, 6), 0, &inputs[0]));
  AIT_TRY(numbers(c, weight, scales[1], given(c, 7), ox_info(c, weight)->rank - 1, &inputs[1]));
  inputs[2] = given(c, 2);
  inputs[3] = given(c, 5);
  inputs[4] = given(c, 8);
  c->inputs = inputs;
  c->input_count = 5;
  ait_status status = ox_build_ms_attention(c);
  c->inputs = all;
  c->input_count = count;
  return status;
}
