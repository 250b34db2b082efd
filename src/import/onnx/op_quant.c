/* Quantisation: integers and their scales, spelled out in core operators. */
#include "import/onnx/onnx.h"

/* Scale or zero point against x: one number, one a slice along `axis`, or one a block of block_size slices. */
static ait_status spread(ox_call *c, uint32_t p, uint32_t x, int64_t axis_attribute, int64_t block, uint32_t *out) {
  const ait_value_info v = *ox_info(c, p), like = *ox_info(c, x);
  ait_dim dims[AIT_MAX_RANK + 1];
  int64_t n;
  int32_t axis;
  *out = p;
  if (v.rank == 0) return AIT_OK;
  if (v.rank == 1 && ait_dim_is_const(c->g, v.shape[0], &n) && n == 1) return ox_reshape(c, p, NULL, 0, out);
  if (like.rank < 0 || v.rank < 0) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a rank is not known");
  AIT_TRY(ox_axis(c, axis_attribute, like.rank, &axis));
  if (block == 0) {
    if (v.rank != 1) return ox_fail(c, AIT_CODE_INVALID_MODEL, "a scale of rank %d without blocks", (int)v.rank);
    for (int32_t d = 0; d < like.rank; ++d) AIT_TRY(ait_dim_const(c->g, 1, &dims[d]));
    dims[axis] = v.shape[0];
    return ox_reshape(c, p, dims, like.rank, out);
  }
  if (v.rank != like.rank || block < 0 || v.rank >= AIT_MAX_RANK)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "blocks of %lld do not fit", (long long)block);
  for (int32_t d = 0; d <= v.rank; ++d) {
    if (d <= axis) dims[d] = v.shape[d];
    else if (d == axis + 1) AIT_TRY(ait_dim_const(c->g, block, &dims[d]));
    else dims[d] = v.shape[d - 1];
  }
  AIT_TRY(ox_unsqueeze(c, p, axis + 1, out));
  AIT_TRY(OX(c, "expand", out, V(*out), ox_list_dims(c, dims, (size_t)v.rank + 1)));
  memcpy(dims, v.shape, (size_t)v.rank * sizeof *dims);
  AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, v.shape[axis], block, &dims[axis]));
  AIT_TRY(ox_reshape(c, *out, dims, v.rank, out));
  if (dims[axis] == like.shape[axis]) return AIT_OK;
  ait_arg end;
  AIT_TRY(ox_size_arg(c, x, axis, &end));
  return ox_slice(c, *out, axis, I(0), end, out); /* the last block is smaller */
}

typedef struct range {
  double low, high;
} range;

/* Of an integer type by its number in the file: 4 and 2 bits are stored in bytes. */
static bool range_of(int32_t onnx, range *out) {
  static const struct {
    int32_t type;
    range r;
  } ranges[] = {{ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, {0, 255}},
                {ONNX__TENSOR_PROTO__DATA_TYPE__INT8, {-128, 127}},
                {ONNX__TENSOR_PROTO__DATA_TYPE__UINT16, {0, 65535}},
                {ONNX__TENSOR_PROTO__DATA_TYPE__INT16, {-32768, 32767}},
                {ONNX__TENSOR_PROTO__DATA_TYPE__UINT4, {0, 15}},
                {ONNX__TENSOR_PROTO__DATA_TYPE__INT4, {-8, 7}},
                {ONNX__TENSOR_PROTO__DATA_TYPE__UINT2, {0, 3}},
                {ONNX__TENSOR_PROTO__DATA_TYPE__UINT2 + 1, {-2, 1}},
                {ONNX__TENSOR_PROTO__DATA_TYPE__INT32, {-2147483648.0, 2147483647.0}}};
  for (size_t i = 0; i < AIT_COUNT(ranges); ++i) {
    if (ranges[i].type != onnx) continue;
    *out = ranges[i].r;
    return true;
  }
  return false;
}

static int32_t plain_type(ait_dtype dtype) {
  for (int32_t i = 1; i < ONNX__TENSOR_PROTO__DATA_TYPE__UINT4; ++i)
    if (ox_dtype(i) == dtype) return i;
  return 0;
}

/* round(x) + zero point, saturated; x is a float already divided by the scale */
static ait_status to_integer(ox_call *c, uint32_t x, uint32_t zero_point, const range *r, ait_dtype dtype, uint32_t *out) {
  uint32_t y;
  AIT_TRY(ox_unary(c, "round", x, &y));
  if (zero_point != AIT_NO_INDEX) {
    uint32_t zp;
    AIT_TRY(ox_cast(c, zero_point, ox_dtype_of(c, y), &zp));
    AIT_TRY(OX(c, "add", &y, V(y), V(zp)));
  }
  AIT_TRY(OX(c, "clamp", &y, V(y), F(r->low), F(r->high)));
  return ox_cast(c, y, dtype, out);
}

ait_status ox_build_quantize(ox_call *c) {
  uint32_t x, scale, zp = AIT_NO_INDEX, y;
  int64_t axis, block, type, precision;
  bool saturate;
  range r;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &scale));
  AIT_TRY(ox_int(c, "axis", 1, &axis));
  AIT_TRY(ox_int(c, "block_size", 0, &block));
  AIT_TRY(ox_int(c, "output_dtype", 0, &type));
  AIT_TRY(ox_int(c, "precision", 0, &precision));
  AIT_TRY(ox_flag(c, "saturate", true, &saturate));
  if (ox_has(c, 2)) {
    int32_t narrow = ox_narrow_type(c, c->inputs[2]);
    if (type == 0) type = narrow ? narrow : plain_type(ox_dtype_of(c, c->inputs[2]));
    AIT_TRY(spread(c, c->inputs[2], x, axis, block, &zp));
  }
  if (type == 0) type = ONNX__TENSOR_PROTO__DATA_TYPE__UINT8;
  AIT_TRY(spread(c, scale, x, axis, block, &scale));
  ait_dtype compute = precision ? ox_dtype((int32_t)precision) : AIT_DTYPE_NONE;
  if (compute != AIT_DTYPE_NONE) {
    AIT_TRY(ox_cast(c, x, compute, &x));
    AIT_TRY(ox_cast(c, scale, compute, &scale));
  } else if (ait_dtype_is_integer(ox_dtype_of(c, x))) {
    AIT_TRY(ox_cast(c, x, AIT_F32, &x));
  }
  AIT_TRY(OX(c, "div", &y, V(x), V(scale)));
  ait_dtype dtype = ox_dtype((int32_t)type);
  if (dtype == AIT_DTYPE_NONE) return ox_fail(c, AIT_CODE_UNSUPPORTED, "quantisation to type %lld", (long long)type);
  if (range_of((int32_t)type, &r)) {
    if (ait_dtype_size(ox_dtype_of(c, y)) < 4) AIT_TRY(ox_cast(c, y, AIT_F32, &y));
    AIT_TRY(to_integer(c, y, zp, &r, dtype, &c->outputs[0]));
    return ox_set_narrow_type(c, c->outputs[0], (int32_t)type);
  }
  ait_value_info info = ox_like(c, y);
  info.dtype = dtype;
  return OX_RAW(c, "onnx.Cast", &info, &c->outputs[0], V(y), I(type), B(saturate), S("up"));
}

ait_status ox_build_dequantize(ox_call *c) {
  uint32_t x, scale, y, zp;
  int64_t axis, block, type;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &scale));
  AIT_TRY(ox_int(c, "axis", 1, &axis));
  AIT_TRY(ox_int(c, "block_size", 0, &block));
  AIT_TRY(ox_int(c, "output_dtype", 0, &type));
  ait_dtype dtype = type ? ox_dtype((int32_t)type) : ox_dtype_of(c, scale);
  AIT_TRY(ox_cast(c, x, AIT_F32, &y));
  if (ox_has(c, 2)) {
    AIT_TRY(ox_cast(c, c->inputs[2], AIT_F32, &zp));
    AIT_TRY(spread(c, zp, x, axis, block, &zp));
    AIT_TRY(OX(c, "sub", &y, V(y), V(zp)));
  }
  AIT_TRY(ox_cast(c, scale, AIT_F32, &scale));
  AIT_TRY(spread(c, scale, x, axis, block, &scale));
  AIT_TRY(OX(c, "mul", &y, V(y), V(scale)));
  return ox_cast(c, y, dtype, &c->outputs[0]);
}

ait_status ox_build_dynamic_quantize(ox_call *c) {
  uint32_t x, high, low, scale, flat, zp, y;
  static const range bytes = {0, 255};
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_reduce(c, "amax", x, NULL, 0, false, &high));
  AIT_TRY(ox_reduce(c, "amin", x, NULL, 0, false, &low));
  AIT_TRY(OX(c, "clamp", &high, V(high), F(0), NONE));
  AIT_TRY(OX(c, "clamp", &low, V(low), NONE, F(0)));
  AIT_TRY(OX(c, "sub", &scale, V(high), V(low)));
  AIT_TRY(OX(c, "eq", &flat, V(scale), F(0)));
  AIT_TRY(OX(c, "where", &scale, V(flat), F(1), V(scale)));
  AIT_TRY(ox_with_float(c, "div", scale, 255, &scale));
  AIT_TRY(OX(c, "div", &zp, V(low), V(scale)));
  AIT_TRY(ox_unary(c, "neg", zp, &zp));
  AIT_TRY(OX(c, "clamp", &zp, V(zp), F(0), F(255)));
  AIT_TRY(ox_unary(c, "round", zp, &zp));
  AIT_TRY(OX(c, "div", &y, V(x), V(scale)));
  AIT_TRY(to_integer(c, y, zp, &bytes, AIT_U8, &c->outputs[0]));
  c->outputs[1] = scale;
  return ox_cast(c, zp, AIT_U8, &c->outputs[2]);
}

/* ---- integer products ------------------------------------------------------------------------------------------------------------*/

/* x as int32, its zero point taken off. column: one zero point a row of a matrix. */
static ait_status centred(ox_call *c, uint32_t x, uint32_t zp_input, bool column, uint32_t *out) {
  uint32_t zp;
  int64_t n;
  AIT_TRY(ox_cast(c, x, AIT_I32, out));
  if (!ox_has(c, zp_input)) return AIT_OK;
  AIT_TRY(ox_cast(c, c->inputs[zp_input], AIT_I32, &zp));
  const ait_value_info v = *ox_info(c, zp);
  if (v.rank == 1 && ait_dim_is_const(c->g, v.shape[0], &n) && n == 1) AIT_TRY(ox_reshape(c, zp, NULL, 0, &zp));
  else if (v.rank == 1 && column) AIT_TRY(ox_unsqueeze(c, zp, 1, &zp));
  return OX(c, "sub", out, V(*out), V(zp));
}

ait_status ox_build_matmul_integer(ox_call *c) {
  uint32_t a, b;
  AIT_TRY(ox_need(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &b));
  AIT_TRY(centred(c, a, 2, true, &a));
  AIT_TRY(centred(c, b, 3, false, &b));
  return OX(c, "matmul", &c->outputs[0], V(a), V(b));
}

/* Sums of products to the result's scale: x * (a_scale * b_scale / y_scale), rounded, saturated. Scales may be one a channel. */
static ait_status requantize(ox_call *c, uint32_t x, const uint32_t scales[3], uint32_t zp, uint32_t *out) {
  uint32_t factor, y;
  range r;
  ait_dtype dtype = ox_dtype_of(c, zp);
  if (!range_of(plain_type(dtype), &r)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "quantisation to %s", ait_dtype_name(dtype));
  AIT_TRY(OX(c, "mul", &factor, V(scales[0]), V(scales[1])));
  AIT_TRY(OX(c, "div", &factor, V(factor), V(scales[2])));
  AIT_TRY(ox_cast(c, factor, AIT_F64, &factor));
  AIT_TRY(ox_cast(c, x, AIT_F64, &y));
  AIT_TRY(OX(c, "mul", &y, V(y), V(factor)));
  uint32_t zero;
  AIT_TRY(ox_cast(c, zp, AIT_F64, &zero));
  AIT_TRY(OX(c, "add", &y, V(y), V(zero)));
  AIT_TRY(ox_unary(c, "round", y, &y));
  AIT_TRY(OX(c, "clamp", &y, V(y), F(r.low), F(r.high)));
  return ox_cast(c, y, dtype, out);
}

/* A scale of one element is a number. */
static ait_status number_or_column(ox_call *c, uint32_t p, bool column, uint32_t *out) {
  const ait_value_info v = *ox_info(c, p);
  int64_t n;
  *out = p;
  if (v.rank == 1 && ait_dim_is_const(c->g, v.shape[0], &n) && n == 1) return ox_reshape(c, p, NULL, 0, out);
  return v.rank == 1 && column ? ox_unsqueeze(c, p, 1, out) : AIT_OK;
}

/* a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point */
ait_status ox_build_qlinear_matmul(ox_call *c) {
  uint32_t in[8], a, b, y, scales[3];
  for (uint32_t i = 0; i < 8; ++i) AIT_TRY(ox_need(c, i, &in[i]));
  AIT_TRY(centred(c, in[0], 2, true, &a));
  AIT_TRY(centred(c, in[3], 5, false, &b));
  AIT_TRY(OX(c, "matmul", &y, V(a), V(b)));
  AIT_TRY(number_or_column(c, in[1], true, &scales[0]));
  AIT_TRY(number_or_column(c, in[4], false, &scales[1]));
  AIT_TRY(number_or_column(c, in[6], true, &scales[2]));
  AIT_TRY(number_or_column(c, in[7], true, &in[7]));
  return requantize(c, y, scales, in[7], &c->outputs[0]);
}

/* [channels] against weights or results of rank `rank`: dims after it are 1 */
static ait_status by_channel(ox_call *c, uint32_t p, int32_t rank, uint32_t *out) {
  const ait_value_info v = *ox_info(c, p);
  ait_dim dims[AIT_MAX_RANK];
  int64_t n;
  *out = p;
  if (v.rank != 1) return AIT_OK;
  if (ait_dim_is_const(c->g, v.shape[0], &n) && n == 1) return ox_reshape(c, p, NULL, 0, out);
  dims[0] = v.shape[0];
  for (int32_t d = 1; d < rank; ++d) AIT_TRY(ait_dim_const(c->g, 1, &dims[d]));
  return ox_reshape(c, p, dims, rank, out);
}

static ait_status integer_conv(ox_call *c, uint32_t x, uint32_t weight, uint32_t x_zp, uint32_t w_zp, uint32_t *out) {
  AIT_TRY(centred(c, x, x_zp, false, &x));
  int32_t rank = ox_info(c, weight)->rank;
  AIT_TRY(ox_cast(c, weight, AIT_I32, &weight));
  if (ox_has(c, w_zp)) {
    uint32_t zp;
    AIT_TRY(ox_cast(c, c->inputs[w_zp], AIT_I32, &zp));
    AIT_TRY(by_channel(c, zp, rank, &zp));
    AIT_TRY(OX(c, "sub", &weight, V(weight), V(zp)));
  }
  return ox_conv(c, x, weight, AIT_NO_INDEX, out);
}

ait_status ox_build_conv_integer(ox_call *c) {
  uint32_t x, weight;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &weight));
  return integer_conv(c, x, weight, 2, 3, &c->outputs[0]);
}

/* x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, bias? */
ait_status ox_build_qlinear_conv(ox_call *c) {
  uint32_t in[8], y, scales[3], bias;
  for (uint32_t i = 0; i < 8; ++i) AIT_TRY(ox_need(c, i, &in[i]));
  AIT_TRY(ox_need_ranked(c, 0, &in[0]));
  AIT_TRY(ox_need_ranked(c, 3, &in[3]));
  int32_t rank = ox_info(c, in[3])->rank;
  AIT_TRY(integer_conv(c, in[0], in[3], 2, 5, &y));
  if (ox_has(c, 8)) {
    AIT_TRY(by_channel(c, c->inputs[8], rank - 1, &bias));
    AIT_TRY(OX(c, "add", &y, V(y), V(bias)));
  }
  AIT_TRY(by_channel(c, in[1], rank - 1, &scales[0]));
  AIT_TRY(by_channel(c, in[4], rank - 1, &scales[1]));
  AIT_TRY(by_channel(c, in[6], rank - 1, &scales[2]));
  AIT_TRY(by_channel(c, in[7], rank - 1, &in[7]));
  return requantize(c, y, scales, in[7], &c->outputs[0]);
}
