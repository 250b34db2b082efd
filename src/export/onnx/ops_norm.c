/* Normalisation and attention. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

static oe_t mul(ox *x, oe_t a, oe_t b) { return oe_same2(x, "Mul", a, b); }
static oe_t add(ox *x, oe_t a, oe_t b) { return oe_same2(x, "Add", a, b); }

static oe_t ones_like(ox *x, oe_t t, double v) { return oe_expand(x, oe_num(x, t.dtype, v), oe_shape_of(x, t)); }

/* x, weight, bias, mean, var, eps */
void oe_row_batch_norm(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, given, OE_BIT(F32) | OE_BIT(F64));
  oe_t mean = oe_in_as(x, 3, a.dtype), var = oe_in_as(x, 4, a.dtype), weight = oe_in_as(x, 1, a.dtype), bias = oe_in_as(x, 2, a.dtype);
  if (!weight.name) weight = ones_like(x, mean, 1);
  if (!bias.name) bias = ones_like(x, mean, 0);
  oe_t r = OE(x, "BatchNormalization", a.dtype, a, weight, bias, mean, var);
  oe_float(x, "epsilon", oe_arg_float(x, 5));
  oe_set(x, 0, r);
}

/* x, normalized_rank, weight, bias, eps */
void oe_row_layer_norm(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, given, OE_FLOATS);
  int64_t count = oe_arg_int(x, 1);
  oe_t weight = oe_in_as(x, 2, a.dtype), bias = oe_in_as(x, 3, a.dtype);
  if (!given.shape || count < 1 || count > given.rank) oe_fail(x, "the rank of its operand is not known");
  if (oe_failed(x)) return;
  if (!weight.name) weight = oe_expand(x, oe_num(x, a.dtype, 1), oe_dims(x, given.shape + given.rank - count, (uint32_t)count));
  oe_t r = OE(x, "LayerNormalization", a.dtype, a, weight, bias);
  oe_int(x, "axis", -count);
  oe_float(x, "epsilon", oe_arg_float(x, 4));
  oe_set(x, 0, r);
}

/* x, normalized_rank, weight, eps */
void oe_row_rms_norm(ox *x) {
  oe_t a = oe_widen(x, oe_in(x, 0), OE_BIT(F32) | OE_BIT(F64)), weight = oe_in_as(x, 2, a.dtype);
  int64_t count = oe_arg_int(x, 1), axes[AIT_MAX_RANK];
  for (int64_t i = 0; i < count && i < AIT_MAX_RANK; ++i) axes[i] = i - count;
  oe_t mean = oe_reduce(x, "ReduceMean", mul(x, a, a), axes, (uint32_t)count, true);
  oe_t scale = oe_same1(x, "Reciprocal", oe_same1(x, "Sqrt", add(x, mean, oe_num(x, a.dtype, oe_arg_float(x, 3)))));
  oe_t r = mul(x, a, scale);
  oe_set(x, 0, weight.name ? mul(x, r, weight) : r);
}

/* [C] as [C, 1, ..] beside x [N, C, ..] */
static oe_t per_channel(ox *x, oe_t t, int32_t rank) {
  int64_t shape[AIT_MAX_RANK] = {-1};
  for (int32_t i = 1; i < rank - 1; ++i) shape[i] = 1;
  return rank <= 2 ? t : oe_reshape_to(x, t, shape, (uint32_t)rank - 1);
}

/* x, groups, weight, bias, eps: each group of a sample has mean 0 and variance 1. */
void oe_row_group_norm(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, given, OE_BIT(F32) | OE_BIT(F64)), r;
  int64_t groups = oe_arg_int(x, 1), axis = 2;
  oe_t grouped = oe_reshape_to(x, a, (const int64_t[]){0, groups, -1}, 3);
  if (a.dtype == AIT_F32) {
    oe_t shape = oe_list1(x, groups);
    r = OE(x, "InstanceNormalization", a.dtype, grouped, oe_expand(x, oe_num(x, a.dtype, 1), shape),
           oe_expand(x, oe_num(x, a.dtype, 0), shape));
    oe_float(x, "epsilon", oe_arg_float(x, 4));
  } else {
    oe_t centred = oe_same2(x, "Sub", grouped, oe_reduce(x, "ReduceMean", grouped, &axis, 1, true));
    oe_t var = oe_reduce(x, "ReduceMean", mul(x, centred, centred), &axis, 1, true);
    r = oe_same2(x, "Div", centred, oe_same1(x, "Sqrt", add(x, var, oe_num(x, a.dtype, oe_arg_float(x, 4)))));
  }
  r = oe_reshape(x, r, oe_shape_of(x, a));
  oe_t weight = oe_in_as(x, 2, a.dtype), bias = oe_in_as(x, 3, a.dtype);
  if (weight.name) r = mul(x, r, per_channel(x, weight, given.rank));
  if (bias.name) r = add(x, r, per_channel(x, bias, given.rank));
  oe_set(x, 0, r);
}

/* ---- attention -------------------------------------------------------------------------------------------------------------------*/
/* Heads of k (or v) that several heads of q share are repeated. */
static oe_t repeat_heads(ox *x, oe_t like, oe_t t) {
  int64_t want, have;
  if (like.rank < 3 || t.rank < 3 || oe_dim_same(x, like.shape[like.rank - 3], t.shape[t.rank - 3])) return t;
  if (!oe_dim_const(x, t.shape[t.rank - 3], &have) || have == 1) return t; /* broadcasts */
  if (!oe_dim_const(x, like.shape[like.rank - 3], &want) || have < 1 || want % have) {
    oe_fail(x, "the numbers of heads are not known");
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
  oe_t wide = oe_expand(x, oe_unsqueeze(x, t, lead), oe_ints_tensor(x, spread, (uint32_t)t.rank + 1));
  return oe_reshape(x, wide, oe_ints_tensor(x, joined, (uint32_t)t.rank));
}

static oe_t causal_mask(ox *x, oe_t q, oe_t k) {
  oe_t rows = oe_range(x, oe_squeeze(x, oe_dim(x, q.shape[q.rank - 2]), 0)),
       columns = oe_range(x, oe_squeeze(x, oe_dim(x, k.shape[k.rank - 2]), 0));
  return oe_bool2(x, "GreaterOrEqual", oe_unsqueeze(x, rows, 1), columns);
}

/* A row in which no key may be seen gives zeros. */
static oe_t blind_rows(ox *x, oe_t mask) {
  int64_t last = -1;
  if (mask.dtype == AIT_BOOL) return oe_not(x, oe_cast(x, oe_reduce(x, "ReduceMax", oe_cast(x, mask, AIT_I32), &last, 1, true), AIT_BOOL));
  return oe_bool2(x, "Equal", oe_reduce(x, "ReduceMax", mask, &last, 1, true), oe_num(x, mask.dtype, -INFINITY));
}

static oe_t transpose_last(ox *x, oe_t t, int32_t rank) {
  int64_t order[AIT_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) order[i] = i;
  order[rank - 1] = rank - 2;
  order[rank - 2] = rank - 1;
  return oe_transpose(x, t, order, (uint32_t)rank);
}

static oe_t attention_scale(ox *x, oe_t q, ait_dtype d) {
  if (oe_has(x, 5)) return oe_num(x, d, oe_arg_float(x, 5));
  int64_t width;
  if (oe_dim_const(x, q.shape[q.rank - 1], &width)) return oe_num(x, d, 1 / sqrt((double)width));
  oe_t w = oe_cast(x, oe_squeeze(x, oe_dim(x, q.shape[q.rank - 1]), 0), d);
  return oe_same1(x, "Reciprocal", oe_same1(x, "Sqrt", w));
}

/* q, k, v, mask, causal, scale */
void oe_row_attention(ox *x) {
  oe_t q = oe_in(x, 0), k = oe_in(x, 1), v = oe_in(x, 2), mask = oe_in_as(x, 3, AIT_DTYPE_NONE);
  if (!q.shape || !k.shape || !v.shape || q.rank < 2 || k.rank < 2 || v.rank < 2) oe_fail(x, "the rank of its operand is not known");
  if (oe_failed(x)) return;
  ait_dtype d = oe_dtype_in(q.dtype, OE_FLOATS);
  oe_t keys = oe_cast(x, repeat_heads(x, q, k), d), values = oe_cast(x, repeat_heads(x, q, v), d);
  oe_t scores = oe_same2(x, "MatMul", mul(x, oe_cast(x, q, d), attention_scale(x, q, d)), transpose_last(x, keys, k.rank));
  if (mask.name && mask.rank == 0) mask = oe_reshape_to(x, mask, (const int64_t[]){1}, 1);
  if (mask.name && mask.dtype != AIT_BOOL) mask = oe_cast(x, mask, d);
  if (oe_arg_bool(x, 4)) {
    oe_t causal = causal_mask(x, q, k);
    if (!mask.name) mask = causal;
    else if (mask.dtype == AIT_BOOL) mask = OE(x, "And", AIT_BOOL, mask, causal);
    else mask = oe_where(x, causal, mask, oe_num(x, d, -INFINITY));
  }
  if (mask.name && mask.dtype == AIT_BOOL) scores = oe_where(x, mask, scores, oe_num(x, d, -INFINITY));
  else if (mask.name) scores = add(x, scores, mask);
  oe_t shares = OE(x, "Softmax", d, scores);
  oe_int(x, "axis", -1);
  if (oe_has(x, 3)) shares = oe_where(x, blind_rows(x, mask), oe_num(x, d, 0), shares);
  oe_set(x, 0, oe_same2(x, "MatMul", shares, values));
}
