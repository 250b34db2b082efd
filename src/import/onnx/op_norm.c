/* Normalisation. */
#include "import/onnx/onnx.h"

/* y = (x - mean) * rsqrt(var + eps) * scale + bias over `axes`; mean and inverse deviation as results, too. */
typedef struct moments {
  uint32_t centred, mean, inverse;
} moments;

static ait_status moments_of(ox_call *c, uint32_t x, const int64_t *axes, uint32_t n, double eps, moments *out) {
  uint32_t square;
  AIT_TRY(ox_reduce(c, "mean", x, axes, n, true, &out->mean));
  AIT_TRY(OX(c, "sub", &out->centred, V(x), V(out->mean)));
  AIT_TRY(OX(c, "mul", &square, V(out->centred), V(out->centred)));
  AIT_TRY(ox_reduce(c, "mean", square, axes, n, true, &square));
  AIT_TRY(ox_with_float(c, "add", square, eps, &square));
  return ox_unary(c, "rsqrt", square, &out->inverse);
}

/* [channels] against [n, channels, …] */
static ait_status per_channel(ox_call *c, uint32_t v, int32_t rank, uint32_t *out) {
  ait_dim dims[AIT_MAX_RANK];
  if (ox_info(c, v)->rank != 1) return ox_fail(c, AIT_CODE_INVALID_MODEL, "a parameter has rank %d, not 1", (int)ox_info(c, v)->rank);
  dims[0] = ox_info(c, v)->shape[0];
  for (int32_t d = 1; d < rank - 1; ++d) AIT_TRY(ait_dim_const(c->g, 1, &dims[d]));
  return ox_reshape(c, v, dims, rank > 1 ? rank - 1 : 1, out);
}

static ait_status train_batch_norm(ox_call *c, uint32_t x, const uint32_t *p, double eps) {
  int64_t axes[AIT_MAX_RANK];
  int32_t rank = ox_info(c, x)->rank;
  uint32_t n = 0, y, var, scale, bias, flat_mean, parts[2];
  double momentum;
  moments m;
  AIT_TRY(ox_float(c, "momentum", 0.9f, &momentum));
  for (int32_t d = 0; d < rank; ++d)
    if (d != 1) axes[n++] = d;
  AIT_TRY(moments_of(c, x, axes, n, eps, &m));
  AIT_TRY(OX(c, "mul", &y, V(m.centred), V(m.inverse)));
  AIT_TRY(per_channel(c, p[0], rank, &scale));
  AIT_TRY(per_channel(c, p[1], rank, &bias));
  AIT_TRY(ox_binary(c, "mul", y, scale, &y));
  AIT_TRY(ox_binary(c, "add", y, bias, &c->outputs[0]));
  AIT_TRY(ox_reduce(c, "mean", x, axes, n, false, &flat_mean));
  AIT_TRY(OX(c, "var", &var, V(x), ox_list_ints(c, axes, n), F(0), B(false)));
  for (int k = 0; k < 2; ++k) { /* running = running * momentum + batch * (1 - momentum) */
    AIT_TRY(ox_with_float(c, "mul", p[2 + k], momentum, &parts[0]));
    AIT_TRY(ox_with_float(c, "mul", k ? var : flat_mean, 1 - momentum, &parts[1]));
    AIT_TRY(ox_binary(c, "add", parts[0], parts[1], &c->outputs[1 + k]));
  }
  return AIT_OK;
}

ait_status ox_build_batch_norm(ox_call *c) {
  uint32_t x, p[4];
  double eps;
  bool training;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  for (uint32_t i = 0; i < 4; ++i) AIT_TRY(ox_need(c, i + 1, &p[i]));
  AIT_TRY(ox_float(c, "epsilon", 1e-5f, &eps));
  AIT_TRY(ox_flag(c, "training_mode", false, &training));
  if (training) return train_batch_norm(c, x, p, eps);
  return OX(c, "batch_norm", &c->outputs[0], V(x), V(p[0]), V(p[1]), V(p[2]), V(p[3]), F(eps));
}

ait_status ox_build_instance_norm(ox_call *c) {
  uint32_t x, scale, bias;
  double eps;
  int64_t channels;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &scale));
  AIT_TRY(ox_need(c, 2, &bias));
  AIT_TRY(ox_float(c, "epsilon", 1e-5f, &eps));
  if (!ox_const_dim(c, x, 1, &channels) && !ox_const_dim(c, scale, 0, &channels))
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "the number of channels is not known");
  return OX(c, "group_norm", &c->outputs[0], V(x), I(channels), V(scale), V(bias), F(eps));
}

/* Before opset 21 scale and bias are one number a group, from then on one a channel. */
ait_status ox_build_group_norm(ox_call *c) {
  uint32_t x, p[2];
  double eps;
  int64_t groups;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &p[0]));
  AIT_TRY(ox_need(c, 2, &p[1]));
  AIT_TRY(ox_float(c, "epsilon", 1e-5f, &eps));
  AIT_TRY(ox_int(c, "num_groups", 0, &groups));
  if (groups < 1) return ox_fail(c, AIT_CODE_INVALID_MODEL, "num_groups is %lld", (long long)groups);
  for (int k = 0; k < 2 && c->version < 21; ++k) {
    ait_dim split[2], each;
    if (ox_info(c, x)->rank < 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operand has no channels");
    ait_dim channels = ox_info(c, x)->shape[1];
    AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, channels, groups, &each));
    AIT_TRY(ait_dim_const(c->g, groups, &split[0]));
    AIT_TRY(ait_dim_const(c->g, 1, &split[1]));
    AIT_TRY(ox_reshape(c, p[k], split, 2, &p[k]));
    split[1] = each;
    AIT_TRY(OX(c, "expand", &p[k], V(p[k]), ox_list_dims(c, split, 2)));
    AIT_TRY(ox_reshape(c, p[k], &channels, 1, &p[k]));
  }
  return OX(c, "group_norm", &c->outputs[0], V(x), I(groups), V(p[0]), V(p[1]), F(eps));
}

/* The parameter has exactly the shape of the normalised dims. */
static bool covers(const ox_call *c, uint32_t x, int32_t axis, uint32_t parameter) {
  const ait_value_info *v = ox_info(c, x), *p = parameter == AIT_NO_INDEX ? NULL : ox_info(c, parameter);
  if (!p) return true;
  if (p->rank != v->rank - axis) return false;
  for (int32_t d = 0; d < p->rank; ++d)
    if (p->shape[d] != v->shape[axis + d]) return false;
  return true;
}

/* Computed in float32 ("stash_type") when the operand is narrower. */
static ait_status general_layer_norm(ox_call *c, uint32_t x, int32_t axis, uint32_t scale, uint32_t bias, double eps) {
  int64_t axes[AIT_MAX_RANK], stash;
  ait_dtype dtype = ox_dtype_of(c, x);
  uint32_t n = 0, y;
  moments m;
  AIT_TRY(ox_int(c, "stash_type", 1, &stash));
  for (int32_t d = axis; d < ox_info(c, x)->rank; ++d) axes[n++] = d;
  if (ox_dtype((int32_t)stash) != AIT_DTYPE_NONE && ait_dtype_size(dtype) < 4) AIT_TRY(ox_cast(c, x, ox_dtype((int32_t)stash), &x));
  AIT_TRY(moments_of(c, x, axes, n, eps, &m));
  AIT_TRY(OX(c, "mul", &y, V(m.centred), V(m.inverse)));
  AIT_TRY(ox_cast(c, y, dtype, &y));
  if (scale != AIT_NO_INDEX) AIT_TRY(ox_binary(c, "mul", y, scale, &y));
  if (bias != AIT_NO_INDEX) AIT_TRY(ox_binary(c, "add", y, bias, &y));
  c->outputs[0] = y;
  c->outputs[1] = m.mean;
  c->outputs[2] = m.inverse;
  return AIT_OK;
}

ait_status ox_build_layer_norm(ox_call *c) {
  uint32_t x, scale = AIT_NO_INDEX, bias = ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX;
  int64_t attribute;
  int32_t axis;
  double eps;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  if (ox_has(c, 1)) scale = c->inputs[1];
  AIT_TRY(ox_int(c, "axis", -1, &attribute));
  AIT_TRY(ox_float(c, "epsilon", 1e-5f, &eps));
  AIT_TRY(ox_axis(c, attribute, ox_info(c, x)->rank, &axis));
  int32_t normalized = ox_info(c, x)->rank - axis;
  bool fits = covers(c, x, axis, scale) && covers(c, x, axis, bias) && !ox_wants(c, 1) && !ox_wants(c, 2);
  if (!fits) return general_layer_norm(c, x, axis, scale, bias, eps);
  return OX(c, "layer_norm", &c->outputs[0], V(x), I(normalized), V(scale), V(bias), F(eps));
}

ait_status ox_build_rms_norm(ox_call *c) {
  uint32_t x, scale, y;
  int64_t attribute, axes[AIT_MAX_RANK];
  int32_t axis;
  double eps;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &scale));
  AIT_TRY(ox_int(c, "axis", -1, &attribute));
  AIT_TRY(ox_float(c, "epsilon", 1e-5f, &eps));
  AIT_TRY(ox_axis(c, attribute, ox_info(c, x)->rank, &axis));
  int32_t rank = ox_info(c, x)->rank;
  if (covers(c, x, axis, scale)) return OX(c, "rms_norm", &c->outputs[0], V(x), I(rank - axis), V(scale), F(eps));
  for (int32_t d = axis; d < rank; ++d) axes[d - axis] = d;
  AIT_TRY(OX(c, "mul", &y, V(x), V(x)));
  AIT_TRY(ox_reduce(c, "mean", y, axes, (uint32_t)(rank - axis), true, &y));
  AIT_TRY(ox_with_float(c, "add", y, eps, &y));
  AIT_TRY(ox_unary(c, "rsqrt", y, &y));
  AIT_TRY(ox_binary(c, "mul", x, y, &y));
  return ox_binary(c, "mul", y, scale, &c->outputs[0]);
}

ait_status ox_build_lrn(ox_call *c) {
  uint32_t x;
  int64_t size;
  double alpha, beta, bias;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_int(c, "size", 0, &size));
  AIT_TRY(ox_float(c, "alpha", 1e-4f, &alpha));
  AIT_TRY(ox_float(c, "beta", 0.75, &beta));
  AIT_TRY(ox_float(c, "bias", 1, &bias));
  if (size < 1) return ox_fail(c, AIT_CODE_INVALID_MODEL, "size is %lld", (long long)size);
  ait_value_info info = ox_like(c, x);
  return OX_RAW(c, "onnx.LRN", &info, &c->outputs[0], V(x), I(size), F(alpha), F(beta), F(bias));
}

ait_status ox_build_lp_normalization(ox_call *c) {
  uint32_t x, norm, zero;
  int64_t attribute, p, axes[1];
  int32_t axis;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_int(c, "axis", -1, &attribute));
  AIT_TRY(ox_int(c, "p", 2, &p));
  AIT_TRY(ox_axis(c, attribute, ox_info(c, x)->rank, &axis));
  if (p != 1 && p != 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "p is %lld, not 1 or 2", (long long)p);
  axes[0] = axis;
  if (p == 1) AIT_TRY(ox_unary(c, "abs", x, &norm));
  else AIT_TRY(OX(c, "mul", &norm, V(x), V(x)));
  AIT_TRY(ox_reduce(c, "sum", norm, axes, 1, true, &norm));
  if (p == 2) AIT_TRY(ox_unary(c, "sqrt", norm, &norm));
  AIT_TRY(OX(c, "eq", &zero, V(norm), F(0))); /* a row of zeros stays */
  AIT_TRY(OX(c, "where", &norm, V(zero), F(1), V(norm)));
  return ox_binary(c, "div", x, norm, &c->outputs[0]);
}

ait_status ox_build_mean_variance_norm(ox_call *c) {
  uint32_t x, mean, square, deviation, y;
  const int64_t *axes;
  static const int64_t usual[3] = {0, 2, 3};
  size_t n;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_ints(c, "axes", &axes, &n));
  if (!axes) axes = usual, n = 3;
  AIT_TRY(ox_reduce(c, "mean", x, axes, (uint32_t)n, true, &mean));
  AIT_TRY(OX(c, "sub", &y, V(x), V(mean)));
  AIT_TRY(OX(c, "mul", &square, V(y), V(y)));
  AIT_TRY(ox_reduce(c, "mean", square, axes, (uint32_t)n, true, &square));
  AIT_TRY(ox_unary(c, "sqrt", square, &deviation));
  AIT_TRY(ox_with_float(c, "add", deviation, 1e-9, &deviation));
  return ox_binary(c, "div", y, deviation, &c->outputs[0]);
}
