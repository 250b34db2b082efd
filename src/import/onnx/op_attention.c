/* Attention in its several forms, and what models put before it. */
#include "import/onnx/onnx.h"

#include <math.h>

/* [b, s, heads * d] to [b, heads, s, d] */
static ait_status split_heads(ox_call *c, uint32_t x, int64_t heads, uint32_t *out) {
  static const int64_t perm[4] = {0, 2, 1, 3};
  const ait_value_info v = *ox_info(c, x);
  ait_dim sizes[4], each;
  if (v.rank != 3 || heads < 1)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "an operand of rank %d for %lld heads", (int)v.rank, (long long)heads);
  AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, v.shape[2], heads, &each));
  sizes[0] = v.shape[0];
  sizes[1] = v.shape[1];
  AIT_TRY(ait_dim_const(c->g, heads, &sizes[2]));
  sizes[3] = each;
  AIT_TRY(ox_reshape(c, x, sizes, 4, out));
  return ox_permute(c, *out, perm, 4, out);
}

static ait_status merge_heads(ox_call *c, uint32_t x, uint32_t *out) {
  static const int64_t perm[4] = {0, 2, 1, 3};
  const ait_value_info v = *ox_info(c, x);
  ait_dim sizes[3] = {v.shape[0], v.shape[2]};
  AIT_TRY(ox_dim(c, AIT_DIM_MUL, v.shape[1], v.shape[3], &sizes[2]));
  AIT_TRY(ox_permute(c, x, perm, 4, out));
  return ox_reshape(c, *out, sizes, 3, out);
}

/* Each head of keys and values serves several heads of queries: h0, h0, h1, h1, … */
static ait_status repeat_heads(ox_call *c, uint32_t x, int64_t times, uint32_t *out) {
  const ait_value_info v = *ox_info(c, x);
  ait_dim merged[4] = {v.shape[0], 0, v.shape[2], v.shape[3]};
  ait_arg sizes[5];
  *out = x;
  if (times == 1) return AIT_OK;
  AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, v.shape[1], times, &merged[1]));
  for (int32_t d = 0, from = 0; d < 5; ++d) {
    if (d == 2) sizes[d] = I(times);
    else AIT_TRY(ox_size_arg(c, x, from++, &sizes[d]));
  }
  AIT_TRY(ox_unsqueeze(c, x, 2, out));
  AIT_TRY(OX(c, "expand", out, V(*out), ait_arg_list(sizes, 5)));
  return ox_reshape(c, *out, merged, 4, out);
}

typedef struct attention {
  uint32_t q, k, v, mask, present_k, present_v;
  int64_t past_axis;
  uint32_t past;
  double scale, softcap;
  bool causal;
  int64_t softmax_precision, output_mode;
} attention;

static ait_status read_attention(ox_call *c, attention *a) {
  int64_t q_heads, kv_heads, size, hq, hk;
  const Onnx__AttributeProto *scale;
  AIT_TRY(ox_need_ranked(c, 0, &a->q));
  AIT_TRY(ox_need_ranked(c, 1, &a->k));
  AIT_TRY(ox_need_ranked(c, 2, &a->v));
  AIT_TRY(ox_int(c, "q_num_heads", 0, &q_heads));
  AIT_TRY(ox_int(c, "kv_num_heads", 0, &kv_heads));
  AIT_TRY(ox_flag(c, "is_causal", false, &a->causal));
  AIT_TRY(ox_float(c, "softcap", 0, &a->softcap));
  AIT_TRY(ox_int(c, "softmax_precision", 0, &a->softmax_precision));
  AIT_TRY(ox_int(c, "qk_matmul_output_mode", 0, &a->output_mode));
  AIT_TRY(ox_attribute(c, "scale", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, &scale));
  a->mask = ox_has(c, 3) ? c->inputs[3] : AIT_NO_INDEX;
  a->past = ox_has(c, 4) ? c->inputs[4] : AIT_NO_INDEX;
  if (ox_info(c, a->q)->rank == 3) {
    AIT_TRY(split_heads(c, a->q, q_heads, &a->q));
    AIT_TRY(split_heads(c, a->k, kv_heads, &a->k));
    AIT_TRY(split_heads(c, a->v, kv_heads, &a->v));
  }
  if (ox_info(c, a->q)->rank != 4 || ox_info(c, a->k)->rank != 4 || ox_info(c, a->v)->rank != 4)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "query, key or value has rank %d", (int)ox_info(c, a->q)->rank);
  if (scale) a->scale = (double)scale->f;
  else if (ox_const_dim(c, a->q, 3, &size) && size > 0) a->scale = 1 / sqrt((double)size);
  else return ox_fail(c, AIT_CODE_UNSUPPORTED, "the size of a head is not known");
  for (uint32_t i = 0; i < 2; ++i) {
    uint32_t *x = i ? &a->v : &a->k;
    if (ox_has(c, 4 + i)) AIT_TRY(OX(c, "cat", x, ox_list_values(c, (uint32_t[]){c->inputs[4 + i], *x}, 2), I(2)));
  }
  a->present_k = a->k;
  a->present_v = a->v;
  if (ox_info(c, a->q)->shape[1] == ox_info(c, a->k)->shape[1]) return AIT_OK;
  if (!ox_const_dim(c, a->q, 1, &hq) || !ox_const_dim(c, a->k, 1, &hk) || hk < 1 || hq % hk)
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "the numbers of heads do not divide, or are not known");
  AIT_TRY(repeat_heads(c, a->k, hq / hk, &a->k));
  return repeat_heads(c, a->v, hq / hk, &a->v);
}

/* [size] as a row or column of positions. */
static ait_status positions(ox_call *c, uint32_t x, int32_t axis, bool column, uint32_t *out) {
  ait_arg size;
  AIT_TRY(ox_size_arg(c, x, axis, &size));
  AIT_TRY(OX(c, "arange", out, I(0), size, I(1), T(AIT_I64)));
  return ox_unsqueeze(c, *out, column ? 1 : 0, out);
}

/* A mask shorter than the keys counts as closed for the others. */
static ait_status extend_mask(ox_call *c, const attention *a, uint32_t *mask) {
  const ait_value_info m = *ox_info(c, *mask);
  ait_dim have, want = ox_info(c, a->k)->shape[2], missing;
  int64_t least, most;
  if (m.rank < 1) return ox_fail(c, AIT_CODE_UNSUPPORTED, "the rank of the mask is not known, or 0");
  have = m.shape[m.rank - 1];
  if (have == want) return AIT_OK;
  AIT_TRY(ox_dim(c, AIT_DIM_SUB, want, have, &missing));
  ait_dim_range(c->g, missing, &least, &most);
  if (least < 0 || most <= 0 || !ait_dim_is_known(c->g, missing)) return AIT_OK; /* of size 1, or not known: it is broadcast */
  ait_dim pads[2];
  AIT_TRY(ait_dim_const(c->g, 0, &pads[0]));
  pads[1] = missing;
  int64_t one;
  if (ait_dim_is_const(c->g, have, &one) && one == 1 && m.dtype != AIT_BOOL) return AIT_OK;
  return OX(c, "pad", mask, V(*mask), ox_list_dims(c, pads, 2), m.dtype == AIT_BOOL ? B(false) : F(-INFINITY));
}

static ait_status close_where_not(ox_call *c, uint32_t open, ait_dtype dtype, uint32_t *bias) {
  AIT_TRY(OX(c, "where", bias, V(open), *bias == AIT_NO_INDEX ? F(0) : V(*bias), F(-INFINITY)));
  return ox_cast(c, *bias, dtype, bias);
}

/* What is added to the scores: the mask, causality, the padding of keys. AIT_NO_INDEX: nothing. */
static ait_status attention_bias(ox_call *c, const attention *a, uint32_t *bias) {
  ait_dtype dtype = ox_dtype_of(c, a->q);
  uint32_t open, rows, cols;
  *bias = AIT_NO_INDEX;
  if (a->mask != AIT_NO_INDEX) {
    uint32_t mask = a->mask;
    AIT_TRY(extend_mask(c, a, &mask));
    if (ox_dtype_of(c, mask) == AIT_BOOL) AIT_TRY(close_where_not(c, mask, dtype, bias));
    else AIT_TRY(ox_cast(c, mask, dtype, bias));
  }
  if (a->causal) {
    AIT_TRY(positions(c, a->q, 2, true, &rows));
    AIT_TRY(positions(c, a->k, 2, false, &cols));
    if (a->past != AIT_NO_INDEX) {
      ait_arg past;
      AIT_TRY(ox_size_arg(c, a->past, 2, &past));
      AIT_TRY(OX(c, "add", &rows, V(rows), past));
    }
    AIT_TRY(OX(c, "ge", &open, V(rows), V(cols)));
    AIT_TRY(close_where_not(c, open, dtype, bias));
  }
  if (ox_has(c, 6)) { /* keys from nonpad_kv_seqlen on are padding */
    uint32_t lengths = c->inputs[6];
    ait_dim sizes[4] = {ox_info(c, lengths)->shape[0]};
    for (int i = 1; i < 4; ++i) AIT_TRY(ait_dim_const(c->g, 1, &sizes[i]));
    AIT_TRY(ox_reshape(c, lengths, sizes, 4, &lengths));
    AIT_TRY(positions(c, a->k, 2, false, &cols));
    AIT_TRY(OX(c, "lt", &open, V(cols), V(lengths)));
    AIT_TRY(close_where_not(c, open, dtype, bias));
  }
  return AIT_OK;
}

static ait_status spelled_attention(ox_call *c, const attention *a, uint32_t *out) {
  uint32_t q, k, scores, probabilities, bias, shown;
  ait_dtype dtype = ox_dtype_of(c, a->q);
  AIT_TRY(attention_bias(c, a, &bias));
  AIT_TRY(ox_with_float(c, "mul", a->q, sqrt(a->scale), &q));
  AIT_TRY(ox_with_float(c, "mul", a->k, sqrt(a->scale), &k));
  AIT_TRY(ox_transpose_last(c, k, &k));
  AIT_TRY(OX(c, "matmul", &scores, V(q), V(k)));
  shown = scores;
  if (a->softcap > 0) {
    AIT_TRY(ox_with_float(c, "div", scores, a->softcap, &scores));
    AIT_TRY(ox_unary(c, "tanh", scores, &scores));
    AIT_TRY(ox_with_float(c, "mul", scores, a->softcap, &scores));
  }
  if (a->output_mode == 1) shown = scores;
  if (bias != AIT_NO_INDEX) AIT_TRY(OX(c, "add", &scores, V(scores), V(bias)));
  if (a->output_mode == 2) shown = scores;
  ait_dtype precision = ox_dtype((int32_t)a->softmax_precision);
  if (precision != AIT_DTYPE_NONE) AIT_TRY(ox_cast(c, scores, precision, &scores));
  AIT_TRY(OX(c, "softmax", &probabilities, V(scores), I(-1)));
  AIT_TRY(ox_cast(c, probabilities, dtype, &probabilities));
  if (a->output_mode == 3) shown = probabilities;
  c->outputs[3] = shown;
  return OX(c, "matmul", out, V(probabilities), V(a->v));
}

ait_status ox_build_attention(ox_call *c) {
  attention a = {0};
  uint32_t y;
  bool merge = c->input_count > 0 && ox_has(c, 0) && ox_info(c, c->inputs[0])->rank == 3;
  AIT_TRY(read_attention(c, &a));
  bool bool_mask = a.mask != AIT_NO_INDEX && ox_dtype_of(c, a.mask) == AIT_BOOL;
  bool plain = a.softcap == 0 && !ox_wants(c, 3) && !ox_has(c, 6) && a.softmax_precision == 0 && !bool_mask &&
               !(a.causal && (a.past != AIT_NO_INDEX || a.mask != AIT_NO_INDEX));
  if (plain && a.mask != AIT_NO_INDEX) AIT_TRY(extend_mask(c, &a, &a.mask));
  if (plain) AIT_TRY(OX(c, "attention", &y, V(a.q), V(a.k), V(a.v), V(a.mask), B(a.causal), F(a.scale)));
  else AIT_TRY(spelled_attention(c, &a, &y));
  c->outputs[1] = a.present_k;
  c->outputs[2] = a.present_v;
  return merge ? merge_heads(c, y, &c->outputs[0]) : ox_identity(c, y);
}

/* ---- FlexAttention: graphs of the model change scores and probabilities -------------------------------------------------------------*/

static ait_status apply_graph(ox_call *c, const char *name, uint32_t *x) {
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH, &a));
  return a && a->g ? ox_inline_graph(c, a->g, x, 1, x, 1) : AIT_OK;
}

ait_status ox_build_flex_attention(ox_call *c) {
  uint32_t q, k, v, scores;
  int64_t precision, size, hq, hk;
  const Onnx__AttributeProto *attribute;
  AIT_TRY(ox_need_ranked(c, 0, &q));
  AIT_TRY(ox_need_ranked(c, 1, &k));
  AIT_TRY(ox_need_ranked(c, 2, &v));
  AIT_TRY(ox_int(c, "softmax_precision", 0, &precision));
  AIT_TRY(ox_attribute(c, "scale", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, &attribute));
  if (ox_info(c, q)->rank != 4 || !ox_const_dim(c, q, 3, &size) || !ox_const_dim(c, q, 1, &hq) || !ox_const_dim(c, k, 1, &hk) || hk < 1 ||
      hq % hk)
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "heads or their sizes do not fit, or are not known");
  double scale = attribute ? (double)attribute->f : 1 / sqrt((double)size);
  AIT_TRY(repeat_heads(c, k, hq / hk, &k));
  AIT_TRY(repeat_heads(c, v, hq / hk, &v));
  ait_dtype dtype = ox_dtype_of(c, q), compute = precision ? ox_dtype((int32_t)precision) : ait_dtype_size(dtype) < 4 ? AIT_F32 : dtype;
  ait_dtype v_dtype = ox_dtype_of(c, v);
  AIT_TRY(ox_with_float(c, "mul", q, sqrt(scale), &q));
  AIT_TRY(ox_with_float(c, "mul", k, sqrt(scale), &k));
  AIT_TRY(ox_transpose_last(c, k, &k));
  AIT_TRY(OX(c, "matmul", &scores, V(q), V(k)));
  AIT_TRY(ox_cast(c, scores, compute, &scores));
  AIT_TRY(apply_graph(c, "score_mod", &scores));
  AIT_TRY(OX(c, "softmax", &scores, V(scores), I(-1)));
  AIT_TRY(apply_graph(c, "prob_mod", &scores));
  AIT_TRY(ox_cast(c, v, compute, &v));
  AIT_TRY(OX(c, "matmul", &scores, V(scores), V(v)));
  return ox_cast(c, scores, v_dtype, &c->outputs[0]);
}

/* ---- rotary embedding ----------------------------------------------------------------------------------------------------------------*/

static ait_status last_slice(ox_call *c, uint32_t x, int64_t start, int64_t end, int64_t step, uint32_t *out) {
  return OX(c, "slice", out, V(x), I(ox_info(c, x)->rank - 1), I(start), I(end), I(step));
}

/* x: [b, s, heads, d]; cos, sin: [b, s, 1, r / 2] */
static ait_status rotate(ox_call *c, uint32_t x, uint32_t cos, uint32_t sin, int64_t r, bool interleaved, uint32_t *out) {
  uint32_t x1, x2, p, q, real, imag;
  ait_dim sizes[4];
  memcpy(sizes, ox_info(c, x)->shape, sizeof sizes);
  if (interleaved) {
    AIT_TRY(last_slice(c, x, 0, r, 2, &x1));
    AIT_TRY(last_slice(c, x, 1, r, 2, &x2));
  } else {
    AIT_TRY(last_slice(c, x, 0, r / 2, 1, &x1));
    AIT_TRY(last_slice(c, x, r / 2, r, 1, &x2));
  }
  AIT_TRY(OX(c, "mul", &p, V(cos), V(x1)));
  AIT_TRY(OX(c, "mul", &q, V(sin), V(x2)));
  AIT_TRY(OX(c, "sub", &real, V(p), V(q)));
  AIT_TRY(OX(c, "mul", &p, V(sin), V(x1)));
  AIT_TRY(OX(c, "mul", &q, V(cos), V(x2)));
  AIT_TRY(OX(c, "add", &imag, V(p), V(q)));
  if (!interleaved) return OX(c, "cat", out, ox_list_values(c, (uint32_t[]){real, imag}, 2), I(-1));
  AIT_TRY(ox_unsqueeze(c, real, 4, &real));
  AIT_TRY(ox_unsqueeze(c, imag, 4, &imag));
  AIT_TRY(OX(c, "cat", out, ox_list_values(c, (uint32_t[]){real, imag}, 2), I(-1)));
  return ox_reshape(c, *out, sizes, 4, out);
}

ait_status ox_build_rotary(ox_call *c) {
  static const int64_t swap[4] = {0, 2, 1, 3};
  uint32_t x, cos, sin, y, rest;
  bool interleaved;
  int64_t heads, r, size;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &cos));
  AIT_TRY(ox_need_ranked(c, 2, &sin));
  AIT_TRY(ox_flag(c, "interleaved", false, &interleaved));
  AIT_TRY(ox_int(c, "num_heads", 0, &heads));
  AIT_TRY(ox_int(c, "rotary_embedding_dim", 0, &r));
  int32_t rank = ox_info(c, x)->rank;
  const ait_value_info v = *ox_info(c, x);
  if (rank == 4) {
    AIT_TRY(ox_permute(c, x, swap, 4, &x));
  } else {
    AIT_TRY(split_heads(c, x, heads, &x));
    AIT_TRY(ox_permute(c, x, swap, 4, &x));
  }
  if (!ox_const_dim(c, x, 3, &size)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "the size of a head is not known");
  if (r == 0) r = size;
  if (r < 2 || r > size || r % 2)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "rotary_embedding_dim is %lld of %lld", (long long)r, (long long)size);
  for (int k = 0; k < 2; ++k) {
    uint32_t *cache = k ? &sin : &cos;
    if (ox_has(c, 3)) AIT_TRY(OX(c, "index", cache, V(*cache), ox_list_values(c, &c->inputs[3], 1)));
    if (ox_info(c, *cache)->rank != 3)
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "a cache has rank %d, not 3", (int)ox_info(c, *cache)->rank);
    AIT_TRY(ox_unsqueeze(c, *cache, 2, cache));
  }
  uint32_t turned = x;
  if (r < size) AIT_TRY(last_slice(c, x, 0, r, 1, &turned));
  AIT_TRY(rotate(c, turned, cos, sin, r, interleaved, &y));
  if (r < size) {
    AIT_TRY(last_slice(c, x, r, size, 1, &rest));
    AIT_TRY(OX(c, "cat", &y, ox_list_values(c, (uint32_t[]){y, rest}, 2), I(-1)));
  }
  if (rank == 4) return ox_permute(c, y, swap, 4, &c->outputs[0]);
  return ox_reshape(c, y, v.shape, 3, &c->outputs[0]);
}

/* ---- recurrent forms ------------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_linear_attention(ox_call *c) {
  uint32_t q, k, v;
  int64_t q_heads, kv_heads;
  double scale;
  const char *rule;
  AIT_TRY(ox_need_ranked(c, 0, &q));
  AIT_TRY(ox_need_ranked(c, 1, &k));
  AIT_TRY(ox_need_ranked(c, 2, &v));
  AIT_TRY(ox_int(c, "q_num_heads", 0, &q_heads));
  AIT_TRY(ox_int(c, "kv_num_heads", 0, &kv_heads));
  AIT_TRY(ox_float(c, "scale", 0, &scale));
  AIT_TRY(ox_string(c, "update_rule", "gated_delta", &rule));
  const ait_value_info a = *ox_info(c, q), b = *ox_info(c, v);
  if (a.rank != 3 || b.rank != 3 || q_heads < 1 || kv_heads < 1 || q_heads % kv_heads)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "ranks or numbers of heads do not fit");
  ait_dim *y, *state, dk, dv;
  AIT_TRY(ox_dims(c, 3, &y));
  AIT_TRY(ox_dims(c, 4, &state));
  AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, a.shape[2], q_heads, &dk));
  AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, b.shape[2], kv_heads, &dv));
  y[0] = a.shape[0], y[1] = a.shape[1];
  AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, dv, q_heads, &y[2]));
  state[0] = a.shape[0], state[2] = dk, state[3] = dv;
  AIT_TRY(ait_dim_const(c->g, kv_heads, &state[1]));
  ait_value_info infos[2] = {ox_tensor_info(a.dtype, 3, y),
                             ox_tensor_info(ox_has(c, 3) ? ox_dtype_of(c, c->inputs[3]) : a.dtype, 4, state)};
  uint32_t more[3];
  for (uint32_t i = 0; i < 3; ++i) more[i] = ox_has(c, 3 + i) ? c->inputs[3 + i] : AIT_NO_INDEX;
  return ox_raw_args(c, "onnx.LinearAttention",
                     OX_ARGS(V(q), V(k), V(v), V(more[0]), V(more[1]), V(more[2]), I(q_heads), I(kv_heads), F(scale), S(rule)), infos,
                     c->outputs, 2);
}

ait_status ox_build_causal_conv(ox_call *c) {
  uint32_t x, weight, padded, y;
  int64_t channels, kernel, one = 1, zero = 0;
  const char *activation;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &weight));
  AIT_TRY(ox_string(c, "activation", "none", &activation));
  if (ox_info(c, x)->rank != 3 || ox_info(c, weight)->rank != 3 || !ox_const_dim(c, weight, 0, &channels) ||
      !ox_const_dim(c, weight, 2, &kernel) || kernel < 1)
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "ranks do not fit, or the weight's shape is not known");
  if (ox_has(c, 3)) AIT_TRY(OX(c, "cat", &padded, ox_list_values(c, (uint32_t[]){c->inputs[3], x}, 2), I(2)));
  else AIT_TRY(OX(c, "pad", &padded, V(x), ox_list_ints(c, (int64_t[]){kernel - 1, 0}, 2), F(0)));
  AIT_TRY(OX(c, "conv", &y, V(padded), V(weight), V(ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX), ox_list_ints(c, &one, 1),
             ox_list_ints(c, &zero, 1), ox_list_ints(c, &one, 1), I(channels)));
  if (strcmp(activation, "silu") == 0 || strcmp(activation, "swish") == 0) AIT_TRY(ox_unary(c, "silu", y, &y));
  else if (strcmp(activation, "none") != 0) return ox_fail(c, AIT_CODE_INVALID_MODEL, "activation is '%s'", activation);
  c->outputs[0] = y;
  if (kernel == 1) return OX(c, "slice", &c->outputs[1], V(padded), I(2), I(0), I(0), I(1));
  return OX(c, "slice", &c->outputs[1], V(padded), I(2), I(-(kernel - 1)), I(INT64_MAX), I(1));
}
