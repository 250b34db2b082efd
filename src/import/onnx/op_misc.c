/* Losses, recurrent networks, signals, random numbers, optional values, optimisers, classical machine learning. */
#include "import/onnx/onnx.h"

#include <math.h>

/* ---- losses ----------------------------------------------------------------------------------------------------------------------*/

static ait_status emit_nll(ox_call *c, uint32_t log_prob, uint32_t *out) {
  uint32_t target, weight = ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX;
  const char *reduction;
  const Onnx__AttributeProto *ignore;
  AIT_TRY(ox_need(c, 1, &target));
  AIT_TRY(ox_string(c, "reduction", "mean", &reduction));
  AIT_TRY(ox_attribute(c, "ignore_index", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, &ignore));
  bool none = strcmp(reduction, "none") == 0;
  if (!none && strcmp(reduction, "mean") != 0 && strcmp(reduction, "sum") != 0)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "reduction is '%s'", reduction);
  ait_value_info info = none ? ox_like(c, target) : ox_tensor_info(AIT_F32, 0, NULL);
  info.dtype = ox_dtype_of(c, log_prob);
  return OX_RAW(c, "onnx.NLLLoss", &info, out, V(log_prob), V(target), V(weight), S(reduction), ignore ? I(ignore->i) : NONE);
}

ait_status ox_build_nll_loss(ox_call *c) {
  uint32_t x;
  AIT_TRY(ox_need(c, 0, &x));
  return emit_nll(c, x, &c->outputs[0]);
}

ait_status ox_build_softmax_loss(ox_call *c) {
  uint32_t x;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(OX(c, "log_softmax", &c->outputs[1], V(x), I(1)));
  return emit_nll(c, c->outputs[1], &c->outputs[0]);
}

/* ---- recurrent networks ------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_recurrent(ox_call *c) {
  uint32_t in[8];
  const char *direction, **activations;
  const float *alpha, *beta;
  size_t n, alpha_count, beta_count;
  int64_t hidden, reset_after, input_forget, layout, known;
  const Onnx__AttributeProto *clip;
  bool lstm = strcmp(c->variant, "lstm") == 0;
  for (uint32_t i = 0; i < 8; ++i) in[i] = ox_has(c, i) ? c->inputs[i] : AIT_NO_INDEX;
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(ox_need_ranked(c, i, &in[i]));
  AIT_TRY(ox_string(c, "direction", "forward", &direction));
  AIT_TRY(ox_strings(c, "activations", &activations, &n));
  AIT_TRY(ox_floats(c, "activation_alpha", &alpha, &alpha_count));
  AIT_TRY(ox_floats(c, "activation_beta", &beta, &beta_count));
  AIT_TRY(ox_int(c, "hidden_size", 0, &hidden));
  AIT_TRY(ox_int(c, "linear_before_reset", 0, &reset_after));
  AIT_TRY(ox_int(c, "input_forget", 0, &input_forget));
  AIT_TRY(ox_int(c, "layout", 0, &layout));
  AIT_TRY(ox_attribute(c, "clip", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, &clip));
  if (ox_const_dim(c, in[2], 2, &known)) hidden = known;
  if (hidden < 1 || ox_info(c, in[0])->rank != 3)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "hidden_size or the operand's rank does not fit");
  const char *names = "";
  for (size_t i = 0; i < n; ++i) {
    names = ait_arena_printf(&c->in->arena, "%s%s%s", names, i ? "," : "", activations[i]);
    if (!names) return AIT_OOM();
  }
  int64_t directions = strcmp(direction, "bidirectional") == 0 ? 2 : 1;
  const ait_value_info x = *ox_info(c, in[0]);
  ait_dim d, h, steps = x.shape[layout ? 1 : 0], batch = x.shape[layout ? 0 : 1];
  AIT_TRY(ait_dim_const(c->g, directions, &d));
  AIT_TRY(ait_dim_const(c->g, hidden, &h));
  ait_dim *y, *last;
  AIT_TRY(ox_dims(c, 4, &y));
  AIT_TRY(ox_dims(c, 3, &last));
  memcpy(y, layout ? (ait_dim[]){batch, steps, d, h} : (ait_dim[]){steps, d, batch, h}, 4 * sizeof *y);
  memcpy(last, layout ? (ait_dim[]){batch, d, h} : (ait_dim[]){d, batch, h}, 3 * sizeof *last);
  ait_value_info infos[3] = {ox_tensor_info(x.dtype, 4, y), ox_tensor_info(x.dtype, 3, last), ox_tensor_info(x.dtype, 3, last)};
  double a[16], b[16];
  for (size_t i = 0; i < alpha_count && i < 16; ++i) a[i] = (double)alpha[i];
  for (size_t i = 0; i < beta_count && i < 16; ++i) b[i] = (double)beta[i];
  if (alpha_count > 16 || beta_count > 16) return ox_fail(c, AIT_CODE_INVALID_MODEL, "more activations than there are gates");
  return ox_raw_args(c, "onnx.Recurrent",
                     OX_ARGS(V(in[0]), V(in[1]), V(in[2]), V(in[3]), V(in[4]), V(in[5]), V(lstm ? in[6] : AIT_NO_INDEX),
                             V(lstm ? in[7] : AIT_NO_INDEX), S(c->variant), S(direction), S(names), ox_list_floats(c, a, alpha_count),
                             ox_list_floats(c, b, beta_count), clip ? F((double)clip->f) : NONE, B(reset_after != 0), B(input_forget != 0),
                             B(layout != 0)),
                     infos, c->outputs, 3);
}

/* ---- signals ---------------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_dft(ox_call *c) {
  uint32_t x, length = ox_has(c, 1) ? c->inputs[1] : AIT_NO_INDEX, n;
  const int64_t *ints;
  int64_t axis, parts = 0;
  int32_t d;
  bool inverse, onesided, known = true;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_flag(c, "inverse", false, &inverse));
  AIT_TRY(ox_flag(c, "onesided", false, &onesided));
  AIT_TRY(ox_int(c, "axis", c->version < 20 ? 1 : -2, &axis));
  if (c->version >= 20 && ox_has(c, 2)) {
    known = ox_known_ints(c, c->inputs[2], &ints, &n) && n == 1;
    if (known) axis = ints[0];
  }
  const ait_value_info v = *ox_info(c, x);
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, v.dtype, v.rank, &info));
  ait_dim *dims = (ait_dim *)(uintptr_t)info.shape;
  if (v.rank < 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operand has rank %d", (int)v.rank);
  ox_const_dim(c, x, v.rank - 1, &parts);
  AIT_TRY(ait_dim_const(c->g, inverse && onesided ? 1 : 2, &dims[v.rank - 1]));
  if (known) {
    ait_dim size;
    const ait_dim *given;
    AIT_TRY(ox_axis(c, axis, v.rank, &d));
    for (int32_t i = 0; i < v.rank - 1; ++i) dims[i] = v.shape[i];
    size = v.shape[d];
    if (inverse && onesided) {
      AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, size, 1, &size));
      AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, size, 2, &size));
    }
    if (length != AIT_NO_INDEX) {
      if (ox_contents(c, length, &given, &n) && n == 1) size = given[0];
      else AIT_TRY(ait_dim_unknown(c->g, &size));
    }
    if (onesided && !inverse) {
      AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, size, 2, &size));
      AIT_TRY(ox_dim_int(c, AIT_DIM_ADD, size, 1, &size));
    }
    dims[d] = size;
  }
  return OX_RAW(c, "onnx.DFT", &info, &c->outputs[0], V(x), V(length), known ? I(axis) : V(c->inputs[2]), B(inverse), B(onesided));
}

ait_status ox_build_stft(ox_call *c) {
  uint32_t x, step;
  bool onesided;
  ait_value_info info;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &step));
  AIT_TRY(ox_flag(c, "onesided", true, &onesided));
  AIT_TRY(ox_unknown_info(c, ox_dtype_of(c, x), 4, &info));
  ((ait_dim *)(uintptr_t)info.shape)[0] = ox_info(c, x)->shape[0];
  AIT_TRY(ait_dim_const(c->g, 2, (ait_dim *)(uintptr_t)&info.shape[3]));
  return OX_RAW(c, "onnx.STFT", &info, &c->outputs[0], V(x), V(step), V(ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX),
                V(ox_has(c, 3) ? c->inputs[3] : AIT_NO_INDEX), B(onesided));
}

static ait_status output_type(ox_call *c, const char *attribute, ait_dtype *out) {
  int64_t type;
  AIT_TRY(ox_int(c, attribute, 1, &type));
  *out = ox_dtype(type > 0 && type < 1000 ? (int32_t)type : 0);
  return *out == AIT_DTYPE_NONE ? ox_fail(c, AIT_CODE_UNSUPPORTED, "type %lld", (long long)type) : AIT_OK;
}

ait_status ox_build_window(ox_call *c) {
  uint32_t size, n;
  bool periodic;
  ait_dtype dtype;
  ait_value_info info;
  const ait_dim *dims;
  AIT_TRY(ox_need(c, 0, &size));
  AIT_TRY(ox_flag(c, "periodic", true, &periodic));
  AIT_TRY(output_type(c, "output_datatype", &dtype));
  AIT_TRY(ox_unknown_info(c, dtype, 1, &info));
  if (ox_contents(c, size, &dims, &n) && n == 1) ((ait_dim *)(uintptr_t)info.shape)[0] = dims[0];
  return OX_RAW(c, "onnx.Window", &info, &c->outputs[0], V(size), B(periodic), S(c->variant), T(dtype));
}

ait_status ox_build_mel_weights(ox_call *c) {
  uint32_t in[5];
  ait_dtype dtype;
  ait_value_info info;
  for (uint32_t i = 0; i < 5; ++i) AIT_TRY(ox_need(c, i, &in[i]));
  AIT_TRY(output_type(c, "output_datatype", &dtype));
  AIT_TRY(ox_unknown_info(c, dtype, 2, &info));
  return OX_RAW(c, "onnx.MelWeightMatrix", &info, &c->outputs[0], V(in[0]), V(in[1]), V(in[2]), V(in[3]), V(in[4]), T(dtype));
}

/* ---- random numbers --------------------------------------------------------------------------------------------------------------*/

static ait_status like_input_or_shape(ox_call *c, uint32_t *out) {
  int64_t type;
  const int64_t *shape;
  size_t n;
  ait_dtype dtype;
  AIT_TRY(ox_int(c, "dtype", 0, &type));
  AIT_TRY(ox_ints(c, "shape", &shape, &n));
  if (c->node->n_input > 0) {
    AIT_TRY(ox_need(c, 0, out));
    dtype = type ? ox_dtype((int32_t)type) : ox_dtype_of(c, *out);
    if (!ait_dtype_is_float(dtype)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "random numbers of type %lld", (long long)type);
    return ox_cast(c, *out, dtype, out);
  }
  dtype = type ? ox_dtype((int32_t)type) : AIT_F32;
  if (!shape || !ait_dtype_is_float(dtype)) return ox_fail(c, AIT_CODE_INVALID_MODEL, "shape or dtype is missing or of no use");
  return OX(c, "full", out, ox_list_ints(c, shape, n), F(0), T(dtype));
}

ait_status ox_build_random(ox_call *c) {
  uint32_t x;
  double a, b;
  bool normal = strcmp(c->variant, "normal") == 0;
  AIT_TRY(like_input_or_shape(c, &x));
  AIT_TRY(ox_float(c, normal ? "mean" : "low", 0, &a));
  AIT_TRY(ox_float(c, normal ? "scale" : "high", 1, &b));
  ait_value_info info = ox_like(c, x);
  return OX_RAW(c, normal ? "aten.normal_functional" : "aten.uniform", &info, &c->outputs[0], V(x), F(a), F(b));
}

ait_status ox_build_bernoulli(ox_call *c) {
  uint32_t x, y;
  int64_t type;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_int(c, "dtype", 0, &type));
  ait_value_info info = ox_like(c, x);
  AIT_TRY(OX_RAW(c, "aten.bernoulli", &info, &y, V(x)));
  ait_dtype dtype = type ? ox_dtype((int32_t)type) : info.dtype;
  if (dtype == AIT_DTYPE_NONE) return ox_fail(c, AIT_CODE_UNSUPPORTED, "type %lld", (long long)type);
  return ox_cast(c, y, dtype, &c->outputs[0]);
}

ait_status ox_build_multinomial(ox_call *c) {
  uint32_t x, y;
  int64_t type, samples;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_int(c, "dtype", ONNX__TENSOR_PROTO__DATA_TYPE__INT32, &type));
  AIT_TRY(ox_int(c, "sample_size", 1, &samples));
  AIT_TRY(OX(c, "softmax", &x, V(x), I(-1))); /* the operand holds unnormalised log-probabilities */
  ait_dim *dims;
  AIT_TRY(ox_dims(c, 2, &dims));
  if (ox_info(c, x)->rank != 2 || samples < 1)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "%lld samples of rank %d", (long long)samples, (int)ox_info(c, x)->rank);
  dims[0] = ox_info(c, x)->shape[0];
  AIT_TRY(ait_dim_const(c->g, samples, &dims[1]));
  ait_value_info info = ox_tensor_info(AIT_I64, 2, dims);
  AIT_TRY(OX_RAW(c, "aten.multinomial", &info, &y, V(x), I(samples), B(true)));
  return ox_cast(c, y, ox_dtype((int32_t)type), &c->outputs[0]);
}

/* ---- optional values -------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_optional_has(ox_call *c) {
  bool has = ox_has(c, 0);
  return ox_add_constant(c, AIT_BOOL, 0, NULL, &has, &c->outputs[0]);
}

/* ---- linear algebra --------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_det(ox_call *c) {
  uint32_t x;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  const ait_value_info v = *ox_info(c, x);
  if (v.rank < 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operand has rank %d", (int)v.rank);
  ait_value_info info = ox_tensor_info(v.dtype, v.rank - 2, v.shape);
  return OX_RAW(c, "aten.linalg_det", &info, &c->outputs[0], V(x));
}

/* ---- optimisers ------------------------------------------------------------------------------------------------------------------*/

/* a * x */
static ait_status scaled(ox_call *c, double a, uint32_t x, uint32_t *out) { return ox_with_float(c, "mul", x, a, out); }

/* gradient + norm_coefficient * x */
static ait_status regularised(ox_call *c, uint32_t x, uint32_t g, uint32_t *out) {
  double norm;
  uint32_t part;
  AIT_TRY(ox_float(c, "norm_coefficient", 0, &norm));
  AIT_TRY(scaled(c, norm, x, &part));
  return ox_binary(c, "add", part, g, out);
}

/* inputs: rate, step, then n tensors of each of `kinds` sorts; outputs: n of each but the gradients */
static ait_status optimised(ox_call *c, uint32_t kinds, uint32_t *out_n) {
  if (c->input_count < 2 + kinds || (c->input_count - 2) % kinds)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "%u inputs", (unsigned)c->input_count);
  *out_n = (c->input_count - 2) / kinds;
  for (uint32_t i = 0, unused; i < c->input_count; ++i) AIT_TRY(ox_need(c, i, &unused));
  return *out_n * (kinds - 1) <= OX_MAX_OUTPUTS ? AIT_OK : ox_fail(c, AIT_CODE_LIMIT, "more than %d results", OX_MAX_OUTPUTS);
}

ait_status ox_build_adagrad(ox_call *c) {
  uint32_t n, rate, g, h, t;
  double decay, eps;
  AIT_TRY(optimised(c, 3, &n));
  AIT_TRY(ox_float(c, "decay_factor", 0, &decay));
  AIT_TRY(ox_float(c, "epsilon", 0, &eps));
  AIT_TRY(ox_cast(c, c->inputs[1], ox_dtype_of(c, c->inputs[0]), &t));
  AIT_TRY(scaled(c, decay, t, &t));
  AIT_TRY(ox_with_float(c, "add", t, 1, &t));
  AIT_TRY(ox_binary(c, "div", c->inputs[0], t, &rate));
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t x = c->inputs[2 + i];
    AIT_TRY(regularised(c, x, c->inputs[2 + n + i], &g));
    AIT_TRY(ox_binary(c, "mul", g, g, &h));
    AIT_TRY(ox_binary(c, "add", c->inputs[2 + 2 * n + i], h, &h));
    c->outputs[n + i] = h;
    AIT_TRY(ox_unary(c, "sqrt", h, &h));
    AIT_TRY(ox_with_float(c, "add", h, eps, &h));
    AIT_TRY(OX(c, "mul", &g, V(rate), V(g)));
    AIT_TRY(ox_binary(c, "div", g, h, &g));
    AIT_TRY(ox_binary(c, "sub", x, g, &c->outputs[i]));
  }
  return AIT_OK;
}

/* 1 - a^t */
static ait_status bias_correction(ox_call *c, double a, uint32_t t, uint32_t *out) {
  AIT_TRY(OX(c, "pow", out, F(a), V(t)));
  AIT_TRY(OX(c, "sub", out, F(1), V(*out)));
  return AIT_OK;
}

ait_status ox_build_adam(ox_call *c) {
  uint32_t n, t, rate, first, second, corrected, started;
  double alpha, beta, eps, post;
  AIT_TRY(optimised(c, 4, &n));
  AIT_TRY(ox_float(c, "alpha", 0.9f, &alpha));
  AIT_TRY(ox_float(c, "beta", 0.999f, &beta));
  AIT_TRY(ox_float(c, "epsilon", 1e-6f, &eps));
  AIT_TRY(ox_float(c, "norm_coefficient_post", 0, &post));
  ait_dtype dtype = ox_dtype_of(c, c->inputs[0]);
  AIT_TRY(ox_cast(c, c->inputs[1], dtype, &t));
  AIT_TRY(bias_correction(c, beta, t, &second));
  AIT_TRY(ox_unary(c, "sqrt", second, &second));
  AIT_TRY(bias_correction(c, alpha, t, &first));
  AIT_TRY(ox_binary(c, "mul", c->inputs[0], second, &corrected));
  AIT_TRY(ox_binary(c, "div", corrected, first, &corrected));
  AIT_TRY(OX(c, "gt", &started, V(c->inputs[1]), I(0)));
  AIT_TRY(OX(c, "where", &rate, V(started), V(corrected), V(c->inputs[0])));
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t x = c->inputs[2 + i], g, v, h, a, b, y;
    AIT_TRY(regularised(c, x, c->inputs[2 + n + i], &g));
    AIT_TRY(scaled(c, alpha, c->inputs[2 + 2 * n + i], &a));
    AIT_TRY(scaled(c, 1 - alpha, g, &b));
    AIT_TRY(ox_binary(c, "add", a, b, &v));
    AIT_TRY(scaled(c, beta, c->inputs[2 + 3 * n + i], &a));
    AIT_TRY(ox_binary(c, "mul", g, g, &b));
    AIT_TRY(scaled(c, 1 - beta, b, &b));
    AIT_TRY(ox_binary(c, "add", a, b, &h));
    c->outputs[n + i] = v;
    c->outputs[2 * n + i] = h;
    AIT_TRY(ox_unary(c, "sqrt", h, &h));
    AIT_TRY(ox_with_float(c, "add", h, eps, &h));
    AIT_TRY(OX(c, "mul", &y, V(rate), V(v)));
    AIT_TRY(ox_binary(c, "div", y, h, &y));
    AIT_TRY(ox_binary(c, "sub", x, y, &y));
    AIT_TRY(scaled(c, 1 - post, y, &c->outputs[i]));
  }
  return AIT_OK;
}

ait_status ox_build_momentum(ox_call *c) {
  uint32_t n;
  double alpha, beta;
  const char *mode;
  AIT_TRY(optimised(c, 3, &n));
  AIT_TRY(ox_float(c, "alpha", 0, &alpha));
  AIT_TRY(ox_float(c, "beta", 0, &beta));
  AIT_TRY(ox_string(c, "mode", "standard", &mode));
  uint32_t started, factor;
  AIT_TRY(OX(c, "gt", &started, V(c->inputs[1]), I(0)));
  AIT_TRY(OX(c, "where", &factor, V(started), F(beta), F(1)));
  for (uint32_t i = 0; i < n; ++i) {
    uint32_t x = c->inputs[2 + i], g, v, part, y;
    AIT_TRY(regularised(c, x, c->inputs[2 + n + i], &g));
    AIT_TRY(scaled(c, alpha, c->inputs[2 + 2 * n + i], &v));
    AIT_TRY(ox_binary(c, "mul", g, factor, &part));
    AIT_TRY(ox_binary(c, "add", v, part, &v));
    c->outputs[n + i] = v;
    if (strcmp(mode, "nesterov") == 0) {
      AIT_TRY(scaled(c, alpha, v, &part));
      AIT_TRY(ox_binary(c, "add", g, part, &y));
    } else {
      y = v;
    }
    AIT_TRY(OX(c, "mul", &y, V(c->inputs[0]), V(y)));
    AIT_TRY(ox_binary(c, "sub", x, y, &c->outputs[i]));
  }
  return AIT_OK;
}

/* ---- ai.onnx.ml ------------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_array_feature(ox_call *c) {
  uint32_t x, y;
  ait_arg items[AIT_MAX_RANK];
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &y));
  int32_t rank = ox_info(c, x)->rank, y_rank = ox_info(c, y)->rank;
  if (rank < 1) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operand has no dims");
  if (y_rank != 1) AIT_TRY(OX(c, "reshape", &y, V(y), ox_list_ints(c, (int64_t[]){-1}, 1)));
  for (int32_t d = 0; d < rank - 1; ++d) items[d] = NONE;
  items[rank - 1] = V(y);
  AIT_TRY(OX(c, "index", &c->outputs[0], V(x), ait_arg_list(items, (uint32_t)rank)));
  return rank == 1 ? ox_unsqueeze(c, c->outputs[0], 0, &c->outputs[0]) : AIT_OK;
}

ait_status ox_build_binarizer(ox_call *c) {
  uint32_t x, y;
  double threshold;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_float(c, "threshold", 0, &threshold));
  AIT_TRY(OX(c, "gt", &y, V(x), F(threshold)));
  return ox_cast(c, y, ox_dtype_of(c, x), &c->outputs[0]);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_tfidf(ox_call *c) {
  uint32_t x;
  const char *mode;
  const int64_t *counts, *indexes, *pool;
  const float *weights;
  size_t count_n, index_n, pool_n, weight_n;
  int64_t max_length, min_length, max_skip, width = 0;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_string(c, "mode", "TF", &mode));
  AIT_TRY(ox_int(c, "max_gram_length", 1, &max_length));
  AIT_TRY(ox_int(c, "min_gram_length", 1, &min_length));
  AIT_TRY(ox_int(c, "max_skip_count", 0, &max_skip));
  AIT_TRY(ox_ints(c, "ngram_counts", &counts, &count_n));
  AIT_TRY(ox_ints(c, "ngram_indexes", &indexes, &index_n));
  AIT_TRY(ox_ints(c, "pool_int64s", &pool, &pool_n));
  AIT_TRY(ox_floats(c, "weights", &weights, &weight_n));
  if (!pool) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a pool of strings");
  for (size_t i = 0; i < index_n; ++i) width = indexes[i] + 1 > width ? indexes[i] + 1 : width;
  if (width < 1 || width > INT32_MAX || (weights && weight_n != index_n))
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "ngram_indexes or weights do not fit");
  double *w = AIT_ARENA_ARRAY(&c->in->arena, double, weight_n + 1);
  if (!w) return AIT_OOM();
  for (size_t i = 0; i < weight_n; ++i) w[i] = (double)weights[i];
  const ait_value_info v = *ox_info(c, x);
  ait_dim dims[2];
  if (v.rank < 1 || v.rank > 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operand has rank %d", (int)v.rank);
  dims[0] = v.shape[0];
  AIT_TRY(ait_dim_const(c->g, width, &dims[v.rank - 1]));
  ait_value_info info = ox_tensor_info(AIT_F32, v.rank, dims);
  return OX_RAW(c, "onnx.TfIdfVectorizer", &info, &c->outputs[0], V(x), S(mode), I(min_length), I(max_length), I(max_skip),
                ox_list_ints(c, counts, count_n), ox_list_ints(c, indexes, index_n), ox_list_ints(c, pool, pool_n),
                ox_list_floats(c, w, weight_n));
}
