/* The domain com.microsoft, which exporters of transformers write: activations, norms, products, weights of few bits. The specification is
 * docs/ContribOperators.md of ONNX Runtime. */
#include "import/onnx/onnx.h"

/* ---- activations -----------------------------------------------------------------------------------------------------------------*/
/* Gelu(X); BiasGelu(X, bias); FastGelu(X, bias?), by tanh. */
ait_status ox_build_ms_gelu(ox_call *c) {
  uint32_t x;
  AIT_TRY(ox_need(c, 0, &x));
  if (ox_has(c, 1)) AIT_TRY(OX(c, "add", &x, V(x), V(c->inputs[1])));
  return OX(c, "gelu", &c->outputs[0], V(x), S(c->variant));
}

/* x sigmoid(alpha x) */
ait_status ox_build_ms_quick_gelu(ox_call *c) {
  uint32_t x, gate;
  double alpha;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_float(c, "alpha", 1.702f, &alpha));
  AIT_TRY(ox_with_float(c, "mul", x, alpha, &gate));
  AIT_TRY(ox_unary(c, "sigmoid", gate, &gate));
  return OX(c, "mul", &c->outputs[0], V(x), V(gate));
}

/* The activation that FusedConv and FusedGemm name, with its parameters (a list, or one attribute each). */
static ait_status activate(ox_call *c, uint32_t x, const char *one, const char *two) {
  const char *name;
  const float *list;
  size_t n;
  double a, b;
  AIT_TRY(ox_string(c, "activation", "", &name));
  AIT_TRY(ox_floats(c, "activation_params", &list, &n));
  AIT_TRY(ox_float(c, one, 0, &a));
  AIT_TRY(ox_float(c, two, 0, &b));
  if (list && n > 0) a = (double)list[0];
  if (list && n > 1) b = (double)list[1];
  if (!*name) return ox_identity(c, x);
  if (!strcmp(name, "Relu")) return OX(c, "relu", &c->outputs[0], V(x));
  if (!strcmp(name, "Tanh")) return OX(c, "tanh", &c->outputs[0], V(x));
  if (!strcmp(name, "Sigmoid")) return OX(c, "sigmoid", &c->outputs[0], V(x));
  if (!strcmp(name, "LeakyRelu")) return OX(c, "leaky_relu", &c->outputs[0], V(x), F(a));
  if (!strcmp(name, "Clip")) return OX(c, "clamp", &c->outputs[0], V(x), F(a), F(b));
  if (strcmp(name, "HardSigmoid")) return ox_fail(c, AIT_CODE_UNSUPPORTED, "the activation '%s' is not known", name);
  AIT_TRY(ox_with_float(c, "mul", x, a, &x));
  AIT_TRY(ox_with_float(c, "add", x, b, &x));
  return OX(c, "clamp", &c->outputs[0], V(x), F(0), F(1));
}

/* Conv, then (optionally) a sum with input 3, then an activation. */
ait_status ox_build_ms_fused_conv(ox_call *c) {
  uint32_t y, inputs = c->input_count;
  if (c->input_count > 3) c->input_count = 3;
  ait_status status = ox_build_conv(c);
  c->input_count = inputs;
  AIT_TRY(status);
  y = c->outputs[0];
  if (ox_has(c, 3)) AIT_TRY(OX(c, "add", &y, V(y), V(c->inputs[3])));
  return activate(c, y, "activation_alpha", "activation_beta");
}

ait_status ox_build_ms_fused_gemm(ox_call *c) {
  AIT_TRY(ox_build_gemm(c));
  return activate(c, c->outputs[0], "activation_alpha", "activation_beta");
}

/* ---- norms -----------------------------------------------------------------------------------------------------------------------*/
/* SkipLayerNormalization(x, skip, gamma, beta?, bias?), SkipSimplifiedLayerNormalization(x, skip, gamma, bias?): the norm of x + skip +
 * bias. Output 3 is that sum. The mean and the deviation (outputs 1, 2) are for training. */
ait_status ox_build_ms_skip_norm(ox_call *c) {
  bool rms = !strcmp(c->variant, "rms");
  uint32_t x, skip, gamma, beta = AIT_NO_INDEX, bias_at = rms ? 3 : 4;
  double eps;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &skip));
  AIT_TRY(ox_need(c, 2, &gamma));
  AIT_TRY(ox_float(c, "epsilon", 1e-12f, &eps));
  if (!rms && ox_has(c, 3)) beta = c->inputs[3];
  if (ox_wants(c, 1) || ox_wants(c, 2)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "the mean and the deviation are not given out");
  AIT_TRY(OX(c, "add", &x, V(x), V(skip)));
  if (ox_has(c, bias_at)) AIT_TRY(OX(c, "add", &x, V(x), V(c->inputs[bias_at])));
  c->outputs[3] = x;
  if (rms) return OX(c, "rms_norm", &c->outputs[0], V(x), I(1), V(gamma), F(eps));
  return OX(c, "layer_norm", &c->outputs[0], V(x), I(1), V(gamma), V(beta), F(eps));
}

/* SimplifiedLayerNormalization is RMSNormalization under its old name (ONNX Runtime has it in the domain ai.onnx, too). */
ait_status ox_build_ms_rms_norm(ox_call *c) {
  if (ox_wants(c, 1)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "the deviation is not given out");
  return ox_build_rms_norm(c);
}

static ait_status look_up(ox_call *c, uint32_t k, uint32_t ids, uint32_t *out) {
  uint32_t table;
  AIT_TRY(ox_need(c, k, &table));
  AIT_TRY(ox_cast(c, ids, AIT_I64, &ids));
  return OX(c, "embedding", out, V(table), V(ids));
}

/* EmbedLayerNormalization(ids, segments?, words, positions, segment table?, gamma, beta, mask?, position ids?) -> norm of the sum, how many
 * of each row's mask are set, the sum */
ait_status ox_build_ms_embed_norm(ox_call *c) {
  uint32_t ids, sum, part, places, gamma, beta, count;
  double eps;
  AIT_TRY(ox_need_ranked(c, 0, &ids));
  AIT_TRY(ox_need(c, 5, &gamma));
  AIT_TRY(ox_need(c, 6, &beta));
  AIT_TRY(ox_float(c, "epsilon", 1e-12f, &eps));
  if (ox_info(c, ids)->rank != 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "ids have rank %d, not 2", (int)ox_info(c, ids)->rank);
  AIT_TRY(look_up(c, 2, ids, &sum));
  if (ox_has(c, 8)) places = c->inputs[8];
  else AIT_TRY(OX(c, "arange", &places, I(0), ait_arg_dim(ox_info(c, ids)->shape[1]), I(1), T(AIT_I64)));
  AIT_TRY(look_up(c, 3, places, &part));
  AIT_TRY(OX(c, "add", &sum, V(sum), V(part)));
  if (ox_has(c, 1)) {
    AIT_TRY(look_up(c, 4, c->inputs[1], &part));
    AIT_TRY(OX(c, "add", &sum, V(sum), V(part)));
  }
  c->outputs[2] = sum;
  if (ox_wants(c, 1)) {
    ait_arg rows = ait_arg_dim(ox_info(c, ids)->shape[0]);
    if (ox_has(c, 7)) {
      AIT_TRY(OX(c, "ne", &count, V(c->inputs[7]), I(0)));
      AIT_TRY(OX(c, "sum", &count, V(count), ox_list_ints(c, (const int64_t[]){1}, 1)));
      AIT_TRY(ox_cast(c, count, AIT_I32, &c->outputs[1]));
    } else AIT_TRY(OX(c, "full", &c->outputs[1], ait_arg_list(&rows, 1), I(0), T(AIT_I32)));
  }
  return OX(c, "layer_norm", &c->outputs[0], V(sum), I(1), V(gamma), V(beta), F(eps));
}

/* ---- products --------------------------------------------------------------------------------------------------------------------*/
/* transBatch: the first dim goes before the last; trans: the last two change places. */
static ait_status arranged(ox_call *c, uint32_t x, bool trans, bool batch, uint32_t *out) {
  int64_t perm[AIT_MAX_RANK];
  int32_t rank = ox_info(c, x)->rank;
  *out = x;
  if (batch && rank > 2) {
    for (int32_t d = 0; d < rank - 2; ++d) perm[d] = d + 1;
    perm[rank - 2] = 0;
    perm[rank - 1] = rank - 1;
    AIT_TRY(ox_permute(c, x, perm, rank, out));
  }
  return trans ? ox_transpose_last(c, *out, out) : AIT_OK;
}

/* alpha A B */
ait_status ox_build_ms_fused_matmul(ox_call *c) {
  uint32_t a, b, y;
  bool trans[2], batch[2];
  double alpha;
  AIT_TRY(ox_need_ranked(c, 0, &a));
  AIT_TRY(ox_need_ranked(c, 1, &b));
  AIT_TRY(ox_flag(c, "transA", false, &trans[0]));
  AIT_TRY(ox_flag(c, "transB", false, &trans[1]));
  AIT_TRY(ox_flag(c, "transBatchA", false, &batch[0]));
  AIT_TRY(ox_flag(c, "transBatchB", false, &batch[1]));
  AIT_TRY(ox_float(c, "alpha", 1, &alpha));
  AIT_TRY(arranged(c, a, trans[0] && ox_info(c, a)->rank > 1, batch[0], &a));
  AIT_TRY(arranged(c, b, trans[1] && ox_info(c, b)->rank > 1, batch[1], &b));
  AIT_TRY(OX(c, "matmul", &y, V(a), V(b)));
  return alpha == 1 ? ox_identity(c, y) : ox_with_float(c, "mul", y, alpha, &c->outputs[0]);
}

/* ---- weights of few bits ---------------------------------------------------------------------------------------------------------*/
/* [rows, bytes] as [rows, bytes * 8 / bits], the low bits first. */
static ait_status unpacked(ox_call *c, uint32_t x, int64_t bits, int64_t rows, int64_t bytes, uint32_t *out) {
  uint32_t parts[4];
  int64_t each = 8 / bits;
  ait_dim shape[3];
  AIT_TRY(ox_dim_ints(c, (const int64_t[]){rows, bytes, 1}, 3, shape));
  AIT_TRY(ox_reshape(c, x, shape, 3, &x));
  for (int64_t i = 0; i < each; ++i) {
    parts[i] = x;
    if (i) AIT_TRY(OX(c, "shift_right", &parts[i], V(x), I(i * bits)));
    AIT_TRY(OX(c, "bitwise_and", &parts[i], V(parts[i]), I((1 << bits) - 1)));
  }
  if (each > 1) AIT_TRY(OX(c, "cat", &x, ox_list_values(c, parts, (size_t)each), I(2)));
  AIT_TRY(ox_dim_ints(c, (const int64_t[]){rows, bytes * each}, 2, shape));
  return ox_reshape(c, x, shape, 2, out);
}

typedef struct n_bits {
  int64_t k, n, bits, block, blocks;
  ait_dtype dtype;
} n_bits;

/* [n, blocks, 1], as floats */
static ait_status zero_points(ox_call *c, const n_bits *q, uint32_t *out) {
  uint32_t zeros = c->inputs[3];
  ait_dim shape[3];
  AIT_TRY(ox_dim_ints(c, (const int64_t[]){q->n, q->blocks, 1}, 3, shape));
  if (!ait_dtype_is_float(ox_dtype_of(c, zeros))) {
    int64_t bytes = (q->blocks * q->bits + 7) / 8;
    AIT_TRY(unpacked(c, zeros, q->bits, q->n, bytes, &zeros));
    if (bytes * 8 / q->bits != q->blocks) AIT_TRY(ox_slice(c, zeros, 1, I(0), I(q->blocks), &zeros));
  }
  AIT_TRY(ox_reshape(c, zeros, shape, 3, &zeros));
  return ox_cast(c, zeros, q->dtype, out);
}

/* MatMulNBits(A, packed, scales, zero points?, g_idx?, bias?): A W' with W [N, K] in blocks along K, each with a scale and a zero point. */
ait_status ox_build_ms_n_bits(ox_call *c) {
  uint32_t a, packed, scales, w, zeros;
  n_bits q = {0};
  ait_dim shape[3];
  AIT_TRY(ox_need_ranked(c, 0, &a));
  AIT_TRY(ox_need(c, 1, &packed));
  AIT_TRY(ox_need(c, 2, &scales));
  AIT_TRY(ox_int(c, "K", 0, &q.k));
  AIT_TRY(ox_int(c, "N", 0, &q.n));
  AIT_TRY(ox_int(c, "bits", 4, &q.bits));
  AIT_TRY(ox_int(c, "block_size", 0, &q.block));
  if (q.k < 1 || q.n < 1 || q.block < 1 || q.k > INT32_MAX || q.n > INT32_MAX || q.block > INT32_MAX)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "K, N or block_size is out of range");
  if (q.bits != 2 && q.bits != 4 && q.bits != 8) return ox_fail(c, AIT_CODE_UNSUPPORTED, "weights of %lld bits", (long long)q.bits);
  if (q.block * q.bits % 8) return ox_fail(c, AIT_CODE_INVALID_MODEL, "a block has no whole number of bytes");
  if (ox_has(c, 4)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "g_idx is not supported");
  q.blocks = (q.k + q.block - 1) / q.block;
  q.dtype = ox_dtype_of(c, a);
  AIT_TRY(unpacked(c, packed, q.bits, q.n, q.blocks * q.block * q.bits / 8, &w));
  AIT_TRY(ox_dim_ints(c, (const int64_t[]){q.n, q.blocks, q.block}, 3, shape));
  AIT_TRY(ox_reshape(c, w, shape, 3, &w));
  AIT_TRY(ox_cast(c, w, q.dtype, &w));
  if (ox_has(c, 3)) {
    AIT_TRY(zero_points(c, &q, &zeros));
    AIT_TRY(OX(c, "sub", &w, V(w), V(zeros)));
  } else AIT_TRY(ox_with_float(c, "sub", w, (double)(1 << (q.bits - 1)), &w));
  AIT_TRY(ox_dim_ints(c, (const int64_t[]){q.n, q.blocks, 1}, 3, shape));
  AIT_TRY(ox_reshape(c, scales, shape, 3, &scales));
  AIT_TRY(ox_cast(c, scales, q.dtype, &scales));
  AIT_TRY(OX(c, "mul", &w, V(w), V(scales)));
  AIT_TRY(ox_dim_ints(c, (const int64_t[]){q.n, q.blocks * q.block}, 2, shape));
  AIT_TRY(ox_reshape(c, w, shape, 2, &w));
  if (q.blocks * q.block != q.k) AIT_TRY(ox_slice(c, w, 1, I(0), I(q.k), &w));
  return OX(c, "linear", &c->outputs[0], V(a), V(w), ox_has(c, 5) ? V(c->inputs[5]) : NONE);
}
