/* The domain com.microsoft: attention, and rotary positions. q, k and v are brought to [batch, heads, length, size] and attended by the
 * core operator; masks become one additive mask. */
#include "import/onnx/onnx.h"
#include <math.h>

typedef struct heads {
  uint32_t q, k, v; /* [batch, heads, length, size]; k and v with what is kept of earlier calls */
  int64_t count, kv_count;
  ait_dim batch, length, total; /* of q and of k */
} heads;

static ait_arg D(ait_dim d) { return ait_arg_dim(d); }

/* [batch, length, heads * size] to [batch, heads, length, size] */
static ait_status split_heads(ox_call *c, uint32_t x, int64_t count, uint32_t *out) {
  const ait_value_info *v = ox_info(c, x);
  ait_dim dims[4];
  if (v->rank != 3) return ox_fail(c, AIT_CODE_INVALID_MODEL, "an operand has rank %d, not 3", (int)v->rank);
  dims[0] = v->shape[0];
  dims[1] = v->shape[1];
  AIT_TRY(ait_dim_const(c->g, count, &dims[2]));
  AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, v->shape[2], count, &dims[3]));
  AIT_TRY(ox_reshape(c, x, dims, 4, &x));
  return ox_permute(c, x, (const int64_t[]){0, 2, 1, 3}, 4, out);
}

static ait_status join_heads(ox_call *c, uint32_t x, uint32_t *out) {
  ait_dim dims[3];
  AIT_TRY(ox_permute(c, x, (const int64_t[]){0, 2, 1, 3}, 4, &x));
  const ait_value_info *v = ox_info(c, x);
  dims[0] = v->shape[0];
  dims[1] = v->shape[1];
  AIT_TRY(ox_dim(c, AIT_DIM_MUL, v->shape[2], v->shape[3], &dims[2]));
  return ox_reshape(c, x, dims, 3, out);
}

static ait_status head_count(ox_call *c, const char *name, int64_t *out) {
  AIT_TRY(ox_int(c, name, 0, out));
  return *out < 1 || *out > INT32_MAX ? ox_fail(c, AIT_CODE_INVALID_MODEL, "%s is %lld", name, (long long)*out) : AIT_OK;
}

static ait_status measure(const ox_call *c, heads *h) {
  const uint32_t all[3] = {h->q, h->k, h->v};
  for (int i = 0; i < 3; ++i)
    if (ox_info(c, all[i])->rank != 4)
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "operands have rank %d, not 4", (int)ox_info(c, all[i])->rank);
  h->batch = ox_info(c, h->q)->shape[0];
  h->length = ox_info(c, h->q)->shape[2];
  h->total = ox_info(c, h->k)->shape[2];
  return AIT_OK;
}

/* Element k of dim `axis`, which goes away. */
static ait_status taken(ox_call *c, uint32_t x, int32_t axis, int64_t k, uint32_t *out) {
  return OX(c, "select", out, V(x), I(axis), I(k));
}

static ait_status appended(ox_call *c, uint32_t past, uint32_t x, uint32_t *out) {
  return OX(c, "cat", out, ox_list_values(c, (const uint32_t[]){past, x}, 2), I(2));
}

/* ---- masks -----------------------------------------------------------------------------------------------------------------------*/
/* The conditions under which a key may be seen, joined. */
static ait_status also(ox_call *c, uint32_t *mask, uint32_t more) {
  if (*mask == AIT_NO_INDEX) {
    *mask = more;
    return AIT_OK;
  }
  return OX(c, "logical_and", mask, V(*mask), V(more));
}

static ait_status places(ox_call *c, ait_dim count, ait_dim from, bool column, uint32_t *out) {
  ait_dim end, dims[2];
  AIT_TRY(ox_dim(c, AIT_DIM_ADD, from, count, &end));
  AIT_TRY(OX(c, "arange", out, D(from), D(end), I(1), T(AIT_I64)));
  if (!column) return AIT_OK;
  dims[0] = count;
  AIT_TRY(ait_dim_const(c->g, 1, &dims[1]));
  return ox_reshape(c, *out, dims, 2, out);
}

/* [length, total]: key j may be seen by query i when j <= i + total - length */
static ait_status causal(ox_call *c, const heads *h, uint32_t *mask) {
  uint32_t rows, columns;
  ait_dim past, zero;
  AIT_TRY(ox_dim(c, AIT_DIM_SUB, h->total, h->length, &past));
  AIT_TRY(ait_dim_const(c->g, 0, &zero));
  AIT_TRY(places(c, h->length, past, true, &rows));
  AIT_TRY(places(c, h->total, zero, false, &columns));
  AIT_TRY(OX(c, "ge", &rows, V(rows), V(columns)));
  return also(c, mask, rows);
}

/* A vector of batch numbers (or, with `second`, its second half) as [batch, 1]. */
static ait_status batch_column(ox_call *c, const heads *h, uint32_t v, bool second, uint32_t *out) {
  ait_dim dims[2] = {h->batch}, twice;
  AIT_TRY(ait_dim_const(c->g, 1, &dims[1]));
  AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, h->batch, 2, &twice));
  AIT_TRY(ox_slice(c, v, 0, second ? D(h->batch) : I(0), second ? D(twice) : D(h->batch), &v));
  AIT_TRY(ox_cast(c, v, AIT_I64, &v));
  return ox_reshape(c, v, dims, 2, out);
}

/* [batch]: how many keys count; [2 batch]: ends, then beginnings; [batch, total] or [batch, length, total]: 1 where they count;
 * [batch, 1, longest, longest]: the same, of which the rows and columns at hand are taken. */
static ait_status key_mask(ox_call *c, const heads *h, uint32_t given, uint32_t *mask) {
  const ait_value_info *v = ox_info(c, given);
  uint32_t columns, ends, inside;
  ait_dim zero, dims[4];
  int32_t rank = v->rank;
  AIT_TRY(ait_dim_const(c->g, 0, &zero));
  if (rank == 1) {
    AIT_TRY(places(c, h->total, zero, false, &columns));
    AIT_TRY(batch_column(c, h, given, false, &ends));
    AIT_TRY(OX(c, "lt", &inside, V(columns), V(ends)));
    ait_dim twice;
    AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, h->batch, 2, &twice));
    if (v->shape[0] == twice && twice != h->batch) {
      AIT_TRY(batch_column(c, h, given, true, &ends));
      AIT_TRY(OX(c, "ge", &columns, V(columns), V(ends)));
      AIT_TRY(OX(c, "logical_and", &inside, V(inside), V(columns)));
    } else if (v->shape[0] != h->batch) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a mask of this length");
    rank = 2;
  } else {
    AIT_TRY(OX(c, "ne", &inside, V(given), I(0)));
    if (rank == 4) {
      ait_dim past;
      AIT_TRY(ox_dim(c, AIT_DIM_SUB, h->total, h->length, &past));
      AIT_TRY(ox_slice(c, inside, 2, D(past), D(h->total), &inside));
      AIT_TRY(ox_slice(c, inside, 3, I(0), D(h->total), &inside));
    }
  }
  const ait_value_info *m = ox_info(c, inside);
  if (rank != 2 && rank != 3 && rank != 4) return ox_fail(c, AIT_CODE_INVALID_MODEL, "a mask of rank %d", (int)rank);
  if (rank < 4) { /* [batch, 1, rows, total] */
    dims[0] = m->shape[0];
    AIT_TRY(ait_dim_const(c->g, 1, &dims[1]));
    AIT_TRY(ait_dim_const(c->g, 1, &dims[2]));
    if (rank == 3) dims[2] = m->shape[1];
    dims[3] = m->shape[rank - 1];
    AIT_TRY(ox_reshape(c, inside, dims, 4, &inside));
  }
  return also(c, mask, inside);
}

/* 0 where a key counts, `filter` where it does not: a row in which none counts then sees all alike, as in ONNX Runtime. */
static ait_status additive(ox_call *c, uint32_t mask, double filter, ait_dtype dtype, uint32_t *out) {
  AIT_TRY(OX(c, "where", out, V(mask), F(0), F(filter)));
  return ox_cast(c, *out, dtype, out);
}

/* ---- attending -------------------------------------------------------------------------------------------------------------------*/
static ait_status scale_argument(ox_call *c, ait_arg *out) {
  double scale;
  AIT_TRY(ox_float(c, "scale", 0, &scale));
  *out = scale == 0 ? NONE : F(scale);
  return AIT_OK;
}

/* mask: additive, or AIT_NO_INDEX */
static ait_status attend(ox_call *c, const heads *h, uint32_t mask) {
  uint32_t y;
  ait_arg scale;
  AIT_TRY(scale_argument(c, &scale));
  AIT_TRY(OX(c, "attention", &y, V(h->q), V(h->k), V(h->v), V(mask), B(false), scale));
  return join_heads(c, y, &c->outputs[0]);
}

/* The masks of Attention and MultiHeadAttention: a key mask, a bias that is added to the scores, causality. */
static ait_status masked(ox_call *c, const heads *h, uint32_t keys, uint32_t bias, uint32_t *out) {
  uint32_t later = AIT_NO_INDEX, valid = AIT_NO_INDEX, mask;
  ait_dtype dtype = ox_dtype_of(c, h->q);
  double filter;
  bool one_way;
  *out = bias;
  AIT_TRY(ox_float(c, "mask_filter_value", -10000, &filter));
  AIT_TRY(ox_flag(c, "unidirectional", false, &one_way));
  if (keys != AIT_NO_INDEX) {
    AIT_TRY(key_mask(c, h, keys, &valid));
    AIT_TRY(additive(c, valid, filter, dtype, &mask));
    if (*out == AIT_NO_INDEX) *out = mask;
    else AIT_TRY(OX(c, "add", out, V(*out), V(mask)));
  }
  if (!one_way) return AIT_OK;
  AIT_TRY(causal(c, h, &later));
  AIT_TRY(additive(c, later, dtype == AIT_F16 ? -65504.0 : -3.4028234663852886e38, dtype, &mask));
  if (*out == AIT_NO_INDEX) *out = mask;
  else AIT_TRY(OX(c, "add", out, V(*out), V(mask)));
  return AIT_OK;
}

static uint32_t given(const ox_call *c, uint32_t k) { return ox_has(c, k) ? c->inputs[k] : AIT_NO_INDEX; }

static ait_status refuse(ox_call *c, const char *attribute) {
  int64_t v;
  AIT_TRY(ox_int(c, attribute, 0, &v));
  return v ? ox_fail(c, AIT_CODE_UNSUPPORTED, "%s is not supported", attribute) : AIT_OK;
}

/* The parts of the last dim that qkv_hidden_sizes names, or thirds. */
static ait_status projections(ox_call *c, uint32_t x, uint32_t out[3]) {
  const int64_t *sizes;
  size_t n;
  ait_dim third, at, next;
  AIT_TRY(ox_ints(c, "qkv_hidden_sizes", &sizes, &n));
  if (sizes && n != 3) return ox_fail(c, AIT_CODE_INVALID_MODEL, "qkv_hidden_sizes has %zu numbers", n);
  AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, ox_info(c, x)->shape[2], 3, &third));
  AIT_TRY(ait_dim_const(c->g, 0, &at));
  for (int i = 0; i < 3; ++i) {
    if (sizes) AIT_TRY(ox_dim_int(c, AIT_DIM_ADD, at, sizes[i], &next));
    else AIT_TRY(ox_dim(c, AIT_DIM_ADD, at, third, &next));
    AIT_TRY(ox_slice(c, x, 2, D(at), D(next), &out[i]));
    at = next;
  }
  return AIT_OK;
}

/* Attention(input, weights, bias?, mask?, past? [2, batch, heads, past, size], attention bias?) -> output, present */
ait_status ox_build_ms_attention(ox_call *c) {
  uint32_t x, weights, parts[3], past[2], mask, present[2];
  heads h = {0};
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &weights));
  AIT_TRY(head_count(c, "num_heads", &h.count));
  AIT_TRY(refuse(c, "do_rotary"));
  AIT_TRY(refuse(c, "past_present_share_buffer"));
  if (ox_info(c, x)->rank != 3 || ox_info(c, weights)->rank != 2)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "input and weights have ranks %d and %d, not 3 and 2", (int)ox_info(c, x)->rank,
                   (int)ox_info(c, weights)->rank);
  AIT_TRY(OX(c, "matmul", &x, V(x), V(weights)));
  if (ox_has(c, 2)) AIT_TRY(OX(c, "add", &x, V(x), V(c->inputs[2])));
  AIT_TRY(projections(c, x, parts));
  AIT_TRY(split_heads(c, parts[0], h.count, &h.q));
  AIT_TRY(split_heads(c, parts[1], h.count, &h.k));
  AIT_TRY(split_heads(c, parts[2], h.count, &h.v));
  if (ox_has(c, 4)) {
    for (int i = 0; i < 2; ++i) AIT_TRY(taken(c, c->inputs[4], 0, i, &past[i]));
    AIT_TRY(appended(c, past[0], h.k, &h.k));
    AIT_TRY(appended(c, past[1], h.v, &h.v));
  }
  if (ox_wants(c, 1)) {
    AIT_TRY(ox_unsqueeze(c, h.k, 0, &present[0]));
    AIT_TRY(ox_unsqueeze(c, h.v, 0, &present[1]));
    AIT_TRY(OX(c, "cat", &c->outputs[1], ox_list_values(c, present, 2), I(0)));
  }
  AIT_TRY(measure(c, &h));
  AIT_TRY(masked(c, &h, given(c, 3), given(c, 5), &mask));
  return attend(c, &h, mask);
}

/* Part `i` of `count` of a bias over q, k and v: as long as `like`'s last dim, after those before it. */
static ait_status add_bias(ox_call *c, uint32_t bias, ait_dim *at, uint32_t *x) {
  ait_dim next;
  uint32_t part;
  AIT_TRY(ox_dim(c, AIT_DIM_ADD, *at, ox_info(c, *x)->shape[2], &next));
  AIT_TRY(ox_slice(c, bias, 0, D(*at), D(next), &part));
  *at = next;
  return OX(c, "add", x, V(*x), V(part));
}

/* q, k, v of MultiHeadAttention, whichever way they are given. */
static ait_status take_heads(ox_call *c, heads *h) {
  uint32_t q, k = given(c, 1), v = given(c, 2), part[3];
  AIT_TRY(ox_need_ranked(c, 0, &q));
  if (ox_info(c, q)->rank == 5) { /* [batch, length, heads, 3, size] */
    if (ox_has(c, 3)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a bias beside packed operands");
    for (int i = 0; i < 3; ++i) {
      AIT_TRY(taken(c, q, 3, i, &part[i]));
      AIT_TRY(ox_permute(c, part[i], (const int64_t[]){0, 2, 1, 3}, 4, &part[i]));
    }
    h->q = part[0], h->k = part[1], h->v = part[2];
    return AIT_OK;
  }
  if (k == AIT_NO_INDEX || ox_info(c, q)->rank != 3 || ox_info(c, k)->rank < 3)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operands are in no known form");
  ait_dim at;
  AIT_TRY(ait_dim_const(c->g, 0, &at));
  bool apart = ox_info(c, k)->rank == 3 && v != AIT_NO_INDEX && ox_info(c, v)->rank == 3, bias = ox_has(c, 3);
  if (bias) AIT_TRY(add_bias(c, c->inputs[3], &at, &q));
  if (bias && !apart) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a bias beside packed operands");
  AIT_TRY(split_heads(c, q, h->count, &h->q));
  if (apart) {
    if (bias) AIT_TRY(add_bias(c, c->inputs[3], &at, &k));
    if (bias) AIT_TRY(add_bias(c, c->inputs[3], &at, &v));
    AIT_TRY(split_heads(c, k, h->count, &h->k));
    return split_heads(c, v, h->count, &h->v);
  }
  if (ox_info(c, k)->rank == 5) { /* [batch, length, heads, 2, size] */
    for (int i = 0; i < 2; ++i) {
      AIT_TRY(taken(c, k, 3, i, &part[i]));
      AIT_TRY(ox_permute(c, part[i], (const int64_t[]){0, 2, 1, 3}, 4, &part[i]));
    }
    h->k = part[0], h->v = part[1];
    return AIT_OK;
  }
  if (ox_info(c, k)->rank != 4 || v == AIT_NO_INDEX) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operands are in no known form");
  h->k = k, h->v = v;
  return AIT_OK;
}

/* MultiHeadAttention(query, key?, value?, bias?, key mask?, attention bias?, past key?, past value?) -> output, present key, present value
 */
ait_status ox_build_ms_multi_head(ox_call *c) {
  heads h = {0};
  uint32_t mask;
  AIT_TRY(head_count(c, "num_heads", &h.count));
  AIT_TRY(take_heads(c, &h));
  if (ox_has(c, 6) != ox_has(c, 7)) return ox_fail(c, AIT_CODE_INVALID_MODEL, "past key and value belong together");
  if (ox_has(c, 8)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a buffer shared by past and present");
  if (ox_has(c, 6)) {
    AIT_TRY(appended(c, c->inputs[6], h.k, &h.k));
    AIT_TRY(appended(c, c->inputs[7], h.v, &h.v));
  }
  c->outputs[1] = h.k;
  c->outputs[2] = h.v;
  AIT_TRY(measure(c, &h));
  AIT_TRY(masked(c, &h, given(c, 4), given(c, 5), &mask));
  return attend(c, &h, mask);
}

/* ---- rotary positions ------------------------------------------------------------------------------------------------------------*/
/* x [batch, heads, length, size]; cos, sin [.., length, half of what turns], broadcast over heads. */
static ait_status turned(ox_call *c, uint32_t x, uint32_t cos, uint32_t sin, bool interleaved, uint32_t *out) {
  const ait_value_info v = *ox_info(c, x);
  ait_dim half = ox_info(c, cos)->shape[ox_info(c, cos)->rank - 1], turning, dims[5];
  uint32_t a, b, first, second, part, rest = AIT_NO_INDEX, whole = x;
  AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, half, 2, &turning));
  if (turning != v.shape[3]) {
    AIT_TRY(ox_slice(c, x, 3, D(turning), I(INT64_MAX), &rest));
    AIT_TRY(ox_slice(c, x, 3, I(0), D(turning), &whole));
  }
  if (interleaved) {
    memcpy(dims, v.shape, 3 * sizeof *dims);
    dims[3] = half;
    AIT_TRY(ait_dim_const(c->g, 2, &dims[4]));
    AIT_TRY(ox_reshape(c, whole, dims, 5, &whole));
    AIT_TRY(taken(c, whole, 4, 0, &a));
    AIT_TRY(taken(c, whole, 4, 1, &b));
  } else {
    AIT_TRY(ox_slice(c, whole, 3, I(0), D(half), &a));
    AIT_TRY(ox_slice(c, whole, 3, D(half), I(INT64_MAX), &b));
  }
  AIT_TRY(OX(c, "mul", &first, V(a), V(cos)));
  AIT_TRY(OX(c, "mul", &part, V(b), V(sin)));
  AIT_TRY(OX(c, "sub", &first, V(first), V(part)));
  AIT_TRY(OX(c, "mul", &second, V(b), V(cos)));
  AIT_TRY(OX(c, "mul", &part, V(a), V(sin)));
  AIT_TRY(OX(c, "add", &second, V(second), V(part)));
  if (interleaved) {
    AIT_TRY(ox_unsqueeze(c, first, 4, &first));
    AIT_TRY(ox_unsqueeze(c, second, 4, &second));
    AIT_TRY(OX(c, "cat", out, ox_list_values(c, (const uint32_t[]){first, second}, 2), I(4)));
    dims[3] = turning;
    AIT_TRY(ox_reshape(c, *out, dims, 4, out));
  } else AIT_TRY(OX(c, "cat", out, ox_list_values(c, (const uint32_t[]){first, second}, 2), I(3)));
  if (rest == AIT_NO_INDEX) return AIT_OK;
  return OX(c, "cat", out, ox_list_values(c, (const uint32_t[]){*out, rest}, 2), I(3));
}

/* Rows `ids` [batch or 1, length] of a cache, as [batch or 1, 1, length, half] */
static ait_status cache_rows(ox_call *c, uint32_t cache, uint32_t ids, uint32_t *out) {
  AIT_TRY(OX(c, "embedding", out, V(cache), V(ids)));
  return ox_unsqueeze(c, *out, 1, out);
}

/* RotaryEmbedding(input [batch, length, hidden] or [batch, heads, length, size], ids [1] or [batch, length], cos, sin) */
ait_status ox_build_ms_rotary(ox_call *c) {
  uint32_t x, ids, cos, sin;
  int64_t count, size, half;
  bool interleaved;
  ait_dim dims[2], zero;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &ids));
  AIT_TRY(ox_need_ranked(c, 2, &cos));
  AIT_TRY(ox_need_ranked(c, 3, &sin));
  AIT_TRY(ox_int(c, "num_heads", 0, &count));
  AIT_TRY(ox_int(c, "rotary_embedding_dim", 0, &size));
  AIT_TRY(ox_flag(c, "interleaved", false, &interleaved));
  AIT_TRY(refuse(c, "is_packed_batching"));
  int32_t rank = ox_info(c, x)->rank;
  if ((rank != 3 && rank != 4) || ox_info(c, cos)->rank != 2)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operands are in no known form");
  if (rank == 3) {
    int64_t hidden;
    if (count == 0) { /* then all of a head turns */
      if (!ox_const_dim(c, x, 2, &hidden) || !ox_const_dim(c, cos, 1, &half) || half < 1 || hidden % (2 * half))
        return ox_fail(c, AIT_CODE_UNSUPPORTED, "the number of heads is not known");
      count = hidden / (2 * half);
    }
    AIT_TRY(split_heads(c, x, count, &x));
  }
  AIT_TRY(ox_cast(c, ids, AIT_I64, &ids));
  if (ox_info(c, ids)->rank < 2) { /* the first row's place */
    uint32_t steps;
    dims[1] = ox_info(c, x)->shape[2];
    AIT_TRY(ait_dim_const(c->g, 1, &dims[0]));
    AIT_TRY(ait_dim_const(c->g, 0, &zero));
    AIT_TRY(places(c, dims[1], zero, false, &steps));
    AIT_TRY(OX(c, "add", &ids, V(steps), V(ids)));
    AIT_TRY(ox_reshape(c, ids, dims, 2, &ids));
  }
  AIT_TRY(cache_rows(c, cos, ids, &cos));
  AIT_TRY(cache_rows(c, sin, ids, &sin));
  AIT_TRY(turned(c, x, cos, sin, interleaved, &x));
  return rank == 3 ? join_heads(c, x, &c->outputs[0]) : ox_identity(c, x);
}

/* ---- grouped queries -------------------------------------------------------------------------------------------------------------*/
enum { GQA_KEY = 1, GQA_VALUE, GQA_PAST_KEY, GQA_PAST_VALUE, GQA_LENGTHS, GQA_TOTAL, GQA_COS, GQA_SIN, GQA_IDS, GQA_BIAS, GQA_SINK };

typedef struct grouped {
  heads h;
  uint32_t past; /* [batch, 1]: how many kept keys count */
  bool has_past;
} grouped;

static ait_status take_grouped(ox_call *c, heads *h) {
  uint32_t q;
  AIT_TRY(ox_need_ranked(c, 0, &q));
  if (ox_has(c, GQA_KEY)) {
    AIT_TRY(split_heads(c, q, h->count, &h->q));
    AIT_TRY(split_heads(c, c->inputs[GQA_KEY], h->kv_count, &h->k));
    if (!ox_has(c, GQA_VALUE)) return ox_fail(c, AIT_CODE_INVALID_MODEL, "there is a key and no value");
    return split_heads(c, c->inputs[GQA_VALUE], h->kv_count, &h->v);
  }
  AIT_TRY(split_heads(c, q, h->count + 2 * h->kv_count, &q));
  AIT_TRY(ox_slice(c, q, 1, I(0), I(h->count), &h->q));
  AIT_TRY(ox_slice(c, q, 1, I(h->count), I(h->count + h->kv_count), &h->k));
  return ox_slice(c, q, 1, I(h->count + h->kv_count), I(INT64_MAX), &h->v);
}

/* Kept and new rows in one row: place t is kept row t below `past`, else new row t - past. What lies behind a row's end does not count. */
static ait_status kept_and_new(ox_call *c, const grouped *g, uint32_t kept, uint32_t fresh, ait_dim total, uint32_t *out) {
  const ait_value_info k = *ox_info(c, kept);
  uint32_t both, index, shifted, is_kept;
  ait_dim zero, dims[4] = {k.shape[0], k.shape[1], total, k.shape[3]}, shape[4], extra, last;
  AIT_TRY(ait_dim_const(c->g, 0, &zero));
  AIT_TRY(appended(c, kept, fresh, &both));
  AIT_TRY(places(c, total, zero, false, &index));
  AIT_TRY(OX(c, "lt", &is_kept, V(index), V(g->past)));
  AIT_TRY(OX(c, "sub", &shifted, V(index), V(g->past)));
  AIT_TRY(OX(c, "add", &shifted, V(shifted), D(k.shape[2])));
  AIT_TRY(OX(c, "where", &index, V(is_kept), V(index), V(shifted))); /* [batch, total] */
  AIT_TRY(ox_dim(c, AIT_DIM_ADD, k.shape[2], ox_info(c, fresh)->shape[2], &extra));
  AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, extra, 1, &last));
  AIT_TRY(OX(c, "clamp", &index, V(index), NONE, D(last)));
  shape[0] = k.shape[0];
  shape[2] = total;
  AIT_TRY(ait_dim_const(c->g, 1, &shape[1]));
  AIT_TRY(ait_dim_const(c->g, 1, &shape[3]));
  AIT_TRY(ox_reshape(c, index, shape, 4, &index));
  AIT_TRY(OX(c, "expand", &index, V(index), ox_list_dims(c, dims, 4)));
  return OX(c, "gather", out, V(both), I(2), V(index));
}

/* Query i stands at past + i: it sees keys up to there, and at most `window` of them. */
static ait_status grouped_mask(ox_call *c, const grouped *g, int64_t window, uint32_t *out) {
  uint32_t rows, columns, near;
  ait_dim zero, dims[4];
  AIT_TRY(ait_dim_const(c->g, 0, &zero));
  AIT_TRY(places(c, g->h.length, zero, false, &rows));
  AIT_TRY(places(c, g->h.total, zero, false, &columns));
  AIT_TRY(OX(c, "add", &rows, V(g->past), V(rows))); /* [batch, length] */
  dims[0] = g->h.batch;
  dims[2] = g->h.length;
  AIT_TRY(ait_dim_const(c->g, 1, &dims[1]));
  AIT_TRY(ait_dim_const(c->g, 1, &dims[3]));
  AIT_TRY(ox_reshape(c, rows, dims, 4, &rows));
  AIT_TRY(OX(c, "le", out, V(columns), V(rows)));
  if (window < 0) return AIT_OK;
  AIT_TRY(OX(c, "sub", &near, V(rows), V(columns)));
  AIT_TRY(OX(c, "lt", &near, V(near), I(window)));
  return OX(c, "logical_and", out, V(*out), V(near));
}

/* softmax(cap tanh(q k' scale / cap) + mask) v: heads of k and v are repeated by hand, for the core operator has no cap. */
static ait_status capped(ox_call *c, const grouped *g, uint32_t mask, uint32_t bias, double cap) {
  uint32_t k = g->h.k, v = g->h.v, scores, *each[2] = {&k, &v};
  double scale;
  int64_t size;
  AIT_TRY(ox_float(c, "scale", 0, &scale));
  if (!ox_const_dim(c, g->h.q, 3, &size)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "the size of a head is not known");
  if (scale == 0) scale = 1 / sqrt((double)size);
  for (int i = 0; i < 2; ++i) {
    const ait_value_info info = *ox_info(c, *each[i]);
    ait_dim wide[5] = {info.shape[0], info.shape[1], 0, info.shape[2], info.shape[3]},
            joined[4] = {info.shape[0], 0, info.shape[2], info.shape[3]};
    AIT_TRY(ait_dim_const(c->g, g->h.count / g->h.kv_count, &wide[2]));
    AIT_TRY(ait_dim_const(c->g, g->h.count, &joined[1]));
    AIT_TRY(ox_unsqueeze(c, *each[i], 2, each[i]));
    AIT_TRY(OX(c, "expand", each[i], V(*each[i]), ox_list_dims(c, wide, 5)));
    AIT_TRY(ox_reshape(c, *each[i], joined, 4, each[i]));
  }
  AIT_TRY(ox_transpose_last(c, k, &k));
  AIT_TRY(OX(c, "matmul", &scores, V(g->h.q), V(k)));
  AIT_TRY(ox_with_float(c, "mul", scores, scale / cap, &scores));
  AIT_TRY(ox_unary(c, "tanh", scores, &scores));
  AIT_TRY(ox_with_float(c, "mul", scores, cap, &scores));
  if (bias != AIT_NO_INDEX) AIT_TRY(OX(c, "add", &scores, V(scores), V(bias)));
  AIT_TRY(OX(c, "where", &scores, V(mask), V(scores), F(-INFINITY)));
  AIT_TRY(OX(c, "softmax", &scores, V(scores), I(-1)));
  AIT_TRY(OX(c, "matmul", &scores, V(scores), V(v)));
  return join_heads(c, scores, &c->outputs[0]);
}

static ait_status rotate_grouped(ox_call *c, grouped *g) {
  uint32_t ids, cos, sin;
  bool turn, interleaved;
  ait_dim zero;
  AIT_TRY(ox_flag(c, "do_rotary", false, &turn));
  AIT_TRY(ox_flag(c, "rotary_interleaved", false, &interleaved));
  if (!turn) return AIT_OK;
  if (!ox_has(c, GQA_COS) || !ox_has(c, GQA_SIN)) return ox_fail(c, AIT_CODE_INVALID_MODEL, "there are no rotary caches");
  if (ox_has(c, GQA_IDS)) AIT_TRY(ox_cast(c, c->inputs[GQA_IDS], AIT_I64, &ids));
  else {
    int64_t rows;
    if (!ox_const_dim(c, c->inputs[GQA_COS], 0, &rows))
      return ox_fail(c, AIT_CODE_UNSUPPORTED, "the length of the rotary caches is not known");
    AIT_TRY(ait_dim_const(c->g, 0, &zero));
    AIT_TRY(places(c, ox_info(c, g->h.q)->shape[2], zero, false, &ids));
    AIT_TRY(OX(c, "add", &ids, V(g->past), V(ids)));
    AIT_TRY(OX(c, "clamp", &ids, V(ids), I(0), I(rows - 1)));
  }
  AIT_TRY(cache_rows(c, c->inputs[GQA_COS], ids, &cos));
  AIT_TRY(cache_rows(c, c->inputs[GQA_SIN], ids, &sin));
  AIT_TRY(turned(c, g->h.q, cos, sin, interleaved, &g->h.q));
  return turned(c, g->h.k, cos, sin, interleaved, &g->h.k);
}

/* past [batch, 1] = keys of the row, less the new ones; in a first call shorter rows have none. */
static ait_status past_lengths(ox_call *c, grouped *g) {
  uint32_t lengths;
  ait_dim dims[2] = {ox_info(c, g->h.q)->shape[0]};
  AIT_TRY(ox_need(c, GQA_LENGTHS, &lengths));
  AIT_TRY(ait_dim_const(c->g, 1, &dims[1]));
  AIT_TRY(ox_cast(c, lengths, AIT_I64, &lengths));
  AIT_TRY(ox_reshape(c, lengths, dims, 2, &lengths));
  AIT_TRY(OX(c, "add", &lengths, V(lengths), I(1)));
  AIT_TRY(OX(c, "sub", &lengths, V(lengths), D(ox_info(c, g->h.q)->shape[2])));
  return OX(c, "clamp", &g->past, V(lengths), I(0));
}

/* GroupQueryAttention(query, key?, value?, past key?, past value?, lengths - 1 [batch], longest, cos?, sin?, ids?, bias?) -> output,
 * present key, present value. Past and present are separate: the present is as long as the past and the new rows together. */
ait_status ox_build_ms_grouped(ox_call *c) {
  grouped g = {0};
  uint32_t mask;
  int64_t window;
  double cap;
  AIT_TRY(head_count(c, "num_heads", &g.h.count));
  AIT_TRY(head_count(c, "kv_num_heads", &g.h.kv_count));
  AIT_TRY(refuse(c, "smooth_softmax"));
  AIT_TRY(ox_int(c, "local_window_size", -1, &window));
  AIT_TRY(ox_float(c, "softcap", 0, &cap));
  if (ox_has(c, GQA_SINK)) return ox_fail(c, AIT_CODE_UNSUPPORTED, "head_sink is not supported");
  if (g.h.count % g.h.kv_count) return ox_fail(c, AIT_CODE_INVALID_MODEL, "num_heads is no multiple of kv_num_heads");
  AIT_TRY(take_grouped(c, &g.h));
  AIT_TRY(past_lengths(c, &g));
  AIT_TRY(rotate_grouped(c, &g));
  if (ox_has(c, GQA_PAST_KEY) && ox_has(c, GQA_PAST_VALUE)) {
    ait_dim total;
    if (ox_info(c, c->inputs[GQA_PAST_KEY])->rank != 4 || ox_info(c, c->inputs[GQA_PAST_VALUE])->rank != 4)
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "the past has no four dims");
    AIT_TRY(ox_dim(c, AIT_DIM_ADD, ox_info(c, c->inputs[GQA_PAST_KEY])->shape[2], ox_info(c, g.h.k)->shape[2], &total));
    AIT_TRY(kept_and_new(c, &g, c->inputs[GQA_PAST_KEY], g.h.k, total, &g.h.k));
    AIT_TRY(kept_and_new(c, &g, c->inputs[GQA_PAST_VALUE], g.h.v, total, &g.h.v));
  }
  c->outputs[1] = g.h.k;
  c->outputs[2] = g.h.v;
  AIT_TRY(measure(c, &g.h));
  AIT_TRY(grouped_mask(c, &g, window, &mask));
  if (cap > 0) return capped(c, &g, mask, given(c, GQA_BIAS), cap);
  if (ox_has(c, GQA_BIAS)) AIT_TRY(OX(c, "where", &mask, V(mask), V(c->inputs[GQA_BIAS]), F(-INFINITY)));
  return attend(c, &g.h, mask);
}
