/* Normalisation and attention. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

static ox_t mul(ox *x, ox_t a, ox_t b) { return ox_same2(x, "Mul", a, b); }
static ox_t add(ox *x, ox_t a, ox_t b) { return ox_same2(x, "Add", a, b); }

static ox_t ones_like(ox *x, ox_t t, double v) { return ox_expand(x, ox_num(x, t.dtype, v), ox_shape_of(x, t)); }

/* x, weight, bias, mean, var, eps */
void ox_row_batch_norm(ox *x) {
  ox_t given = ox_in(x, 0), a = ox_widen(x, given, OX_BIT(F32) | OX_BIT(F64));
  ox_t mean = ox_in_as(x, 3, a.dtype), var = ox_in_as(x, 4, a.dtype), weight = ox_in_as(x, 1, a.dtype), bias = ox_in_as(x, 2, a.dtype);
  if (!weight.name) weight = ones_like(x, mean, 1);
  if (!bias.name) bias = ones_like(x, mean, 0);
  ox_t r = OX(x, "BatchNormalization", a.dtype, a, weight, bias, mean, var);
  ox_float(x, "epsilon", ox_arg_float(x, 5));
  ox_set(x, 0, r);
}

/* x, normalized_rank, weight, bias, eps */
void ox_row_layer_norm(ox *x) {
  ox_t given = ox_in(x, 0), a = ox_widen(x, given, OX_FLOATS);
  int64_t count = ox_arg_int(x, 1);
  ox_t weight = ox_in_as(x, 2, a.dtype), bias = ox_in_as(x, 3, a.dtype);
  if (!given.shape || count < 1 || count > given.rank) ox_fail(x, "the rank of its operand is not known");
  if (ox_failed(x)) return;
  if (!weight.name) weight = ox_expand(x, ox_num(x, a.dtype, 1), ox_dims(x, given.shape + given.rank - count, (uint32_t)count));
  ox_t r = OX(x, "LayerNormalization", a.dtype, a, weight, bias);
  ox_int(x, "axis", -count);
  ox_float(x, "epsilon", ox_arg_float(x, 4));
  ox_set(x, 0, r);
}

/* x, normalized_rank, weight, eps */
void ox_row_rms_norm(ox *x) {
  ox_t a = ox_widen(x, ox_in(x, 0), OX_BIT(F32) | OX_BIT(F64)), weight = ox_in_as(x, 2, a.dtype);
  int64_t count = ox_arg_int(x, 1), axes[AIT_MAX_RANK];
  for (int64_t i = 0; i < count && i < AIT_MAX_RANK; ++i) axes[i] = i - count;
  ox_t mean = ox_reduce(x, "ReduceMean", mul(x, a, a), axes, (uint32_t)count, true);
  ox_t scale = ox_same1(x, "Reciprocal", ox_same1(x, "Sqrt", add(x, mean, ox_num(x, a.dtype, ox_arg_float(x, 3)))));
  ox_t r = mul(x, a, scale);
  ox_set(x, 0, weight.name ? mul(x, r, weight) : r);
}

/* [C] as [C, 1, ..] beside x [N, C, ..] */
static ox_t per_channel(ox *x, ox_t t, int32_t rank) {
  int64_t shape[AIT_MAX_RANK] = {-1};
  for (int32_t i = 1; i < rank - 1; ++i) shape[i] = 1;
  return rank <= 2 ? t : ox_reshape_to(x, t, shape, (uint32_t)rank - 1);
}

/* x, groups, weight, bias, eps: each group of a sample has mean 0 and variance 1. */
void ox_row_group_norm(ox *x) {
  ox_t given = ox_in(x, 0), a = ox_widen(x, given, OX_BIT(F32) | OX_BIT(F64)), r;
  int64_t groups = ox_arg_int(x, 1), axis = 2;
  ox_t grouped = ox_reshape_to(x, a, (const int64_t[]){0, groups, -1}, 3);
  if (a.dtype == AIT_F32) {
    ox_t shape = ox_list1(x, groups);
    r = OX(x, "InstanceNormalization", a.dtype, grouped, ox_expand(x, ox_num(x, a.dtype, 1), shape),
           ox_expand(x, ox_num(x, a.dtype, 0), shape));
    ox_float(x, "epsilon", ox_arg_float(x, 4));
  } else {
    ox_t centred = ox_same2(x, "Sub", grouped, ox_reduce(x, "ReduceMean", grouped, &axis, 1, true));
    ox_t var = ox_reduce(x, "ReduceMean", mul(x, centred, centred), &axis, 1, true);
    r = ox_same2(x, "Div", centred, ox_same1(x, "Sqrt", add(x, var, ox_num(x, a.dtype, ox_arg_float(x, 4)))));
  }
  r = ox_reshape(x, r, ox_shape_of(x, a));
  ox_t weight = ox_in_as(x, 2, a.dtype), bias = ox_in_as(x, 3, a.dtype);
  if (weight.name) r = mul(x, r, per_channel(x, weight, given.rank));
  if (bias.name) r = add(x, r, per_channel(x, bias, given.rank));
  ox_set(x, 0, r);
}

/* ---- attention -------------------------------------------------------------------------------------------------------------------*/
/* Heads of k (or v) that several heads of q share are repeated. */
static ox_t repeat_heads(ox *x, ox_t like, ox_t t) {
  int64_t want, have;
  if (like.rank < 3 || t.rank < 3 || ox_dim_same(x, like.shape[like.rank - 3], t.shape[t.rank - 3])) return t;
  if (!ox_dim_const(x, t.shape[t.rank - 3], &have) || have == 1) return t; /* broadcasts */
  if (!ox_dim_const(x, like.shape[like.rank - 3], &want) || have < 1 || want % have) {
    ox_fail(x, "the numbers of heads are not known");
    return t;
  }
  ait_arg spread[AIT_MAX_RANK + 1], joined[AIT_MAX_RANK];
  uint32_t lead = (uint32_t)t.rank - 2;
  for (uint32_t i = 0; i < (uint32_t)t.rank; ++i) {
    ait_arg size = {.kind = AIT_ARG_DIM, .as.dim = t.shape[i]};
    spread[i < lead ? i : i + 1] = joined[i] = size;
  }
  spread[lead] = ait_arg_int(want / have);
  joined[lead - 1] = ait_arg_int(want);
  ox_t wide = ox_expand(x, ox_unsqueeze(x, t, lead), ox_ints_tensor(x, spread, (uint32_t)t.rank + 1));
  return ox_reshape(x, wide, ox_ints_tensor(x, joined, (uint32_t)t.rank));
}

static ox_t causal_mask(ox *x, ox_t q, ox_t k) {
  ox_t rows = ox_range(x, ox_squeeze(x, ox_dim(x, q.shape[q.rank - 2]), 0)),
       columns = ox_range(x, ox_squeeze(x, ox_dim(x, k.shape[k.rank - 2]), 0));
  return ox_bool2(x, "GreaterOrEqual", ox_unsqueeze(x, rows, 1), columns);
}

/* A row in which no key may be seen gives zeros. */
static ox_t blind_rows(ox *x, ox_t mask) {
  int64_t last = -1;
  if (mask.dtype == AIT_BOOL) return ox_not(x, ox_cast(x, ox_reduce(x, "ReduceMax", ox_cast(x, mask, AIT_I32), &last, 1, true), AIT_BOOL));
  return ox_bool2(x, "Equal", ox_reduce(x, "ReduceMax", mask, &last, 1, true), ox_num(x, mask.dtype, -INFINITY));
}

static ox_t transpose_last(ox *x, ox_t t, int32_t rank) {
  int64_t order[AIT_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) order[i] = i;
  order[rank - 1] = rank - 2;
  order[rank - 2] = rank - 1;
  return ox_transpose(x, t, order, (uint32_t)rank);
}

static ox_t attention_scale(ox *x, ox_t q, ait_dtype d) {
  if (ox_has(x, 5)) return ox_num(x, d, ox_arg_float(x, 5));
  int64_t width;
  if (ox_dim_const(x, q.shape[q.rank - 1], &width)) return ox_num(x, d, 1 / sqrt((double)width));
  ox_t w = ox_cast(x, ox_squeeze(x, ox_dim(x, q.shape[q.rank - 1]), 0), d);
  return ox_same1(x, "Reciprocal", ox_same1(x, "Sqrt", w));
}

/* q, k, v, mask, causal, scale */
void ox_row_attention(ox *x) {
  ox_t q = ox_in(x, 0), k = ox_in(x, 1), v = ox_in(x, 2), mask = ox_in_as(x, 3, AIT_DTYPE_NONE);
  if (!q.shape || !k.shape || !v.shape || q.rank < 2 || k.rank < 2 || v.rank < 2) ox_fail(x, "the rank of its operand is not known");
  if (ox_failed(x)) return;
  ait_dtype d = ox_dtype_in(q.dtype, OX_FLOATS);
  ox_t keys = ox_cast(x, repeat_heads(x, q, k), d), values = ox_cast(x, repeat_heads(x, q, v), d);
  ox_t scores = ox_same2(x, "MatMul", mul(x, ox_cast(x, q, d), attention_scale(x, q, d)), transpose_last(x, keys, k.rank));
  if (mask.name && mask.rank == 0) mask = ox_reshape_to(x, mask, (const int64_t[]){1}, 1);
  if (mask.name && mask.dtype != AIT_BOOL) mask = ox_cast(x, mask, d);
  if (ox_arg_bool(x, 4)) {
    ox_t causal = causal_mask(x, q, k);
    if (!mask.name) mask = causal;
    else if (mask.dtype == AIT_BOOL) mask = OX(x, "And", AIT_BOOL, mask, causal);
    else mask = ox_where(x, causal, mask, ox_num(x, d, -INFINITY));
  }
  if (mask.name && mask.dtype == AIT_BOOL) scores = ox_where(x, mask, scores, ox_num(x, d, -INFINITY));
  else if (mask.name) scores = add(x, scores, mask);
  ox_t shares = OX(x, "Softmax", d, scores);
  ox_int(x, "axis", -1);
  if (ox_has(x, 3)) shares = ox_where(x, blind_rows(x, mask), ox_num(x, d, 0), shares);
  ox_set(x, 0, ox_same2(x, "MatMul", shares, values));
}
