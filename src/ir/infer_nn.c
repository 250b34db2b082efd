/* Products, convolutions, pooling, norms, attention, recurrences. */
#include "ir/infer_internal.h"

static const infer_shape unknown_shape = {.rank = -1};

/* x[..., K] with weight [N, K] or [K]. */
ait_status infer_rule_linear(const infer_call *c) {
  const ait_value_info *x, *weight;
  infer_shape shape;
  ait_dim same;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_tensor(c, 1, &weight));
  if (x->rank < 0 || weight->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (x->rank < 1 || weight->rank < 1 || weight->rank > 2)
    return infer_error(c, "ranks %d and %d do not fit", (int)x->rank, (int)weight->rank);
  AIT_TRY(infer_unify(c, x->shape[x->rank - 1], weight->shape[weight->rank - 1], "input features", &same));
  infer_get_shape(x, &shape);
  if (weight->rank == 1) --shape.rank;
  else shape.dims[shape.rank - 1] = weight->shape[0];
  return infer_set(c, 0, x->dtype, &shape);
}

/* Weights of few bits: bfloat16 [n][k] without scales; int8 [n][k], or int4 as uint8 [n][(k + 1) / 2] with an even k in the low half, and
 * bfloat16 scales [n][ceil(k / group)]. */
static ait_status check_weight_form(const infer_call *c, const ait_value_info *w, const ait_value_info *scales, int64_t group,
                                    int32_t rank) {
  bool integers = w->dtype == AIT_I8 || w->dtype == AIT_U8;
  if (w->rank >= 0 && w->rank != rank) return infer_error(c, "weight of rank %d", (int)w->rank);
  if (!integers && w->dtype != AIT_BF16) return infer_error(c, "weight of dtype %s", ait_dtype_name(w->dtype));
  if (integers != (scales != NULL))
    return infer_error(c, integers ? "integer weights without scales" : "scales of weights that are no integers");
  if (integers && (group < 1 || scales->dtype != AIT_BF16 || (scales->rank >= 0 && scales->rank != rank)))
    return infer_error(c, "scales of dtype %s for each %lld weights", ait_dtype_name(scales->dtype), (long long)group);
  return AIT_OK;
}

ait_status infer_rule_weight_linear(const infer_call *c) {
  const ait_value_info *x, *weight;
  infer_shape shape;
  ait_dim same;
  int64_t group;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_tensor(c, 1, &weight));
  AIT_TRY(infer_int(c, 4, &group));
  AIT_TRY(check_weight_form(c, weight, infer_tensor_or_null(c, 2), group, 2));
  if (x->rank < 0 || weight->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (x->rank < 1) return infer_error(c, "input of rank %d", (int)x->rank);
  if (weight->dtype != AIT_U8) AIT_TRY(infer_unify(c, x->shape[x->rank - 1], weight->shape[1], "input features", &same));
  infer_get_shape(x, &shape);
  shape.dims[shape.rank - 1] = weight->shape[0];
  return infer_set(c, 0, x->dtype, &shape);
}

ait_status infer_rule_weight_embedding(const infer_call *c) {
  const ait_value_info *weight, *indices;
  infer_shape shape;
  int64_t group, features;
  AIT_TRY(infer_tensor(c, 0, &weight));
  AIT_TRY(infer_tensor(c, 2, &indices));
  AIT_TRY(infer_int(c, 3, &features));
  AIT_TRY(infer_int(c, 4, &group));
  AIT_TRY(check_weight_form(c, weight, infer_tensor_or_null(c, 1), group, 2));
  if (c->args[5].kind != AIT_ARG_DTYPE) return infer_error(c, "argument 'dtype' is no dtype");
  if (features < 0) return infer_error(c, "%lld features", (long long)features);
  if (indices->rank == AIT_MAX_RANK) return infer_error(c, "rank above %d", AIT_MAX_RANK);
  if (indices->rank < 0) return infer_set(c, 0, (ait_dtype)c->args[5].as.i, &unknown_shape);
  infer_get_shape(indices, &shape);
  AIT_TRY(ait_dim_const(c->g, features, &shape.dims[shape.rank++]));
  return infer_set(c, 0, (ait_dtype)c->args[5].as.i, &shape);
}

/* torch.matmul: a vector on the left is a row, on the right a column, and its dim goes away. */
ait_status infer_rule_matmul(const infer_call *c) {
  const ait_value_info *a, *b;
  AIT_TRY(infer_tensor(c, 0, &a));
  AIT_TRY(infer_tensor(c, 1, &b));
  if (a->rank < 0 || b->rank < 0) return infer_set(c, 0, a->dtype, &unknown_shape);
  if (a->rank == 0 || b->rank == 0) return infer_error(c, "an operand has no dims");
  ait_dim same;
  AIT_TRY(infer_unify(c, a->shape[a->rank - 1], b->shape[b->rank == 1 ? 0 : b->rank - 2], "inner sizes", &same));
  infer_shape shape = {.rank = a->rank > 2 ? a->rank - 2 : 0};
  for (int32_t d = 0; d < shape.rank; ++d) shape.dims[d] = a->shape[d];
  AIT_TRY(infer_broadcast(c, &shape, b->rank > 2 ? b->rank - 2 : 0, b->shape));
  if (a->rank > 1) shape.dims[shape.rank++] = a->shape[a->rank - 2];
  if (b->rank > 1) shape.dims[shape.rank++] = b->shape[b->rank - 1];
  return infer_set(c, 0, a->dtype, &shape);
}

/* A list over the spatial dims: one element stands for all; an empty list takes `missing`. */
static ait_status spatial_ints(const infer_call *c, uint32_t arg, int32_t spatial, int64_t missing, int64_t out[AIT_MAX_RANK]) {
  int32_t count;
  AIT_TRY(infer_ints(c, arg, out, &count));
  if (count == spatial) return AIT_OK;
  if (count > 1) return infer_error(c, "argument '%s' has %d elements for %d dims", c->op->params[arg].name, (int)count, (int)spatial);
  int64_t fill = count ? out[0] : missing;
  for (int32_t i = 0; i < spatial; ++i) out[i] = fill;
  return AIT_OK;
}

static ait_status positive(const infer_call *c, uint32_t arg, int32_t count, const int64_t *values) {
  for (int32_t i = 0; i < count; ++i) {
    if (values[i] <= 0 || values[i] > INT32_MAX) return infer_error(c, "argument '%s' is not positive", c->op->params[arg].name);
  }
  return AIT_OK;
}

static ait_status not_huge(const infer_call *c, uint32_t arg, int32_t count, const int64_t *values) {
  for (int32_t i = 0; i < count; ++i) {
    if (values[i] < INT32_MIN || values[i] > INT32_MAX) return infer_error(c, "argument '%s' is out of range", c->op->params[arg].name);
  }
  return AIT_OK;
}

/* dilation * (kernel - 1) + 1 */
static ait_status reach(const infer_call *c, ait_dim kernel, int64_t dilation, ait_dim *out) {
  AIT_TRY(infer_make_const(c, AIT_DIM_SUB, kernel, 1, out));
  AIT_TRY(infer_make_const(c, AIT_DIM_MUL, *out, dilation, out));
  return infer_make_const(c, AIT_DIM_ADD, *out, 1, out);
}

/* The (dilated, padded) window must fit at least once. */
static ait_status check_fits(const infer_call *c, ait_dim size) {
  int64_t v;
  return ait_dim_is_const(c->g, size, &v) && v < 1 ? infer_error(c, "output size would be %lld", (long long)v) : AIT_OK;
}

/* (in + 2*padding - reach) // stride + 1 */
static ait_status conv_size(const infer_call *c, ait_dim in, ait_dim kernel, int64_t stride, int64_t padding, int64_t dilation,
                            ait_dim *out) {
  ait_dim extent;
  AIT_TRY(reach(c, kernel, dilation, &extent));
  AIT_TRY(infer_make_const(c, AIT_DIM_ADD, in, 2 * padding, out));
  AIT_TRY(infer_make(c, AIT_DIM_SUB, *out, extent, out));
  AIT_TRY(infer_make_const(c, AIT_DIM_FLOORDIV, *out, stride, out));
  AIT_TRY(infer_make_const(c, AIT_DIM_ADD, *out, 1, out));
  return check_fits(c, *out);
}

/* (in - 1)*stride - 2*padding + reach + output_padding */
static ait_status transposed_size(const infer_call *c, ait_dim in, ait_dim kernel, int64_t stride, int64_t padding, int64_t dilation,
                                  int64_t output_padding, ait_dim *out) {
  ait_dim extent;
  AIT_TRY(reach(c, kernel, dilation, &extent));
  AIT_TRY(infer_make_const(c, AIT_DIM_SUB, in, 1, out));
  AIT_TRY(infer_make_const(c, AIT_DIM_MUL, *out, stride, out));
  AIT_TRY(infer_make(c, AIT_DIM_ADD, *out, extent, out));
  AIT_TRY(infer_make_const(c, AIT_DIM_ADD, *out, output_padding - 2 * padding, out));
  return check_fits(c, *out);
}

enum { CONV_STRIDE = 3, CONV_PADDING, CONV_DILATION, CONV_GROUPS, CONV_TRANSPOSED, CONV_OUTPUT_PADDING };

static ait_status conv_channels(const infer_call *c, ait_dim channels, const ait_value_info *weight, ait_dim *out) {
  int64_t groups;
  ait_dim want, same;
  AIT_TRY(infer_int(c, CONV_GROUPS, &groups));
  AIT_TRY(positive(c, CONV_GROUPS, 1, &groups));
  if (infer_bool(c, CONV_TRANSPOSED)) {
    AIT_TRY(infer_unify(c, channels, weight->shape[0], "input channels", &same));
    return infer_make_const(c, AIT_DIM_MUL, weight->shape[1], groups, out);
  }
  AIT_TRY(infer_make_const(c, AIT_DIM_MUL, weight->shape[1], groups, &want));
  AIT_TRY(infer_unify(c, channels, want, "input channels", &same));
  *out = weight->shape[0];
  return AIT_OK;
}

ait_status infer_rule_conv(const infer_call *c) {
  const ait_value_info *x, *weight;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_tensor(c, 1, &weight));
  if (x->rank < 0 || weight->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  int32_t spatial = weight->rank - 2, batch = x->rank - spatial - 1;
  if (spatial < 1 || batch < 0 || batch > 1) return infer_error(c, "ranks %d and %d do not fit", (int)x->rank, (int)weight->rank);
  int64_t stride[AIT_MAX_RANK], padding[AIT_MAX_RANK], dilation[AIT_MAX_RANK], extra[AIT_MAX_RANK];
  AIT_TRY(spatial_ints(c, CONV_STRIDE, spatial, 1, stride));
  AIT_TRY(spatial_ints(c, CONV_PADDING, spatial, 0, padding));
  AIT_TRY(spatial_ints(c, CONV_DILATION, spatial, 1, dilation));
  AIT_TRY(spatial_ints(c, CONV_OUTPUT_PADDING, spatial, 0, extra));
  AIT_TRY(positive(c, CONV_STRIDE, spatial, stride));
  AIT_TRY(positive(c, CONV_DILATION, spatial, dilation));
  AIT_TRY(not_huge(c, CONV_PADDING, spatial, padding));
  AIT_TRY(not_huge(c, CONV_OUTPUT_PADDING, spatial, extra));
  infer_shape shape;
  infer_get_shape(x, &shape);
  AIT_TRY(conv_channels(c, x->shape[batch], weight, &shape.dims[batch]));
  for (int32_t i = 0; i < spatial; ++i) {
    ait_dim *to = &shape.dims[batch + 1 + i];
    if (infer_bool(c, CONV_TRANSPOSED))
      AIT_TRY(transposed_size(c, *to, weight->shape[2 + i], stride[i], padding[i], dilation[i], extra[i], to));
    else AIT_TRY(conv_size(c, *to, weight->shape[2 + i], stride[i], padding[i], dilation[i], to));
  }
  return infer_set(c, 0, x->dtype, &shape);
}

/* In ceil mode the last window must still begin inside the input or the left padding: the smaller of two counts. */
static ait_status pool_size(const infer_call *c, ait_dim in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation,
                            bool ceil_mode, ait_dim *out) {
  ait_dim k, begins;
  AIT_TRY(ait_dim_const(c->g, kernel, &k));
  if (!ceil_mode) return conv_size(c, in, k, stride, padding, dilation, out);
  AIT_TRY(infer_make_const(c, AIT_DIM_ADD, in, stride - 1, out));
  AIT_TRY(conv_size(c, *out, k, stride, padding, dilation, out));
  AIT_TRY(infer_make_const(c, AIT_DIM_ADD, in, padding, &begins));
  AIT_TRY(infer_make_const(c, AIT_DIM_CEILDIV, begins, stride, &begins));
  return infer_make(c, AIT_DIM_MIN, *out, begins, out);
}

static ait_status pool(const infer_call *c, bool dilated, uint32_t ceil_arg) {
  enum { KERNEL = 1, STRIDE, PADDING, DILATION };
  const ait_value_info *x;
  int64_t kernel[AIT_MAX_RANK], stride[AIT_MAX_RANK], padding[AIT_MAX_RANK], dilation[AIT_MAX_RANK];
  int32_t spatial;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_ints(c, KERNEL, kernel, &spatial));
  if (x->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (spatial < 1 || x->rank < spatial) return infer_error(c, "%d kernel sizes for rank %d", (int)spatial, (int)x->rank);
  AIT_TRY(spatial_ints(c, STRIDE, spatial, 0, stride));
  for (int32_t i = 0; i < spatial; ++i) stride[i] = stride[i] ? stride[i] : kernel[i]; /* not given */
  AIT_TRY(spatial_ints(c, PADDING, spatial, 0, padding));
  for (int32_t i = 0; i < spatial; ++i) dilation[i] = 1;
  if (dilated) AIT_TRY(spatial_ints(c, DILATION, spatial, 1, dilation));
  AIT_TRY(positive(c, KERNEL, spatial, kernel));
  AIT_TRY(positive(c, STRIDE, spatial, stride));
  AIT_TRY(positive(c, DILATION, spatial, dilation));
  AIT_TRY(not_huge(c, PADDING, spatial, padding));
  infer_shape shape;
  infer_get_shape(x, &shape);
  for (int32_t i = 0; i < spatial; ++i) {
    ait_dim *to = &shape.dims[x->rank - spatial + i];
    AIT_TRY(pool_size(c, *to, kernel[i], stride[i], padding[i], dilation[i], infer_bool(c, ceil_arg), to));
  }
  return infer_set(c, 0, x->dtype, &shape);
}

ait_status infer_rule_max_pool(const infer_call *c) { return pool(c, true, 5); }
ait_status infer_rule_avg_pool(const infer_call *c) { return pool(c, false, 4); }

/* The last dims become output_size. */
ait_status infer_rule_resize(const infer_call *c) {
  const ait_value_info *x;
  const ait_arg *sizes = &c->args[1];
  AIT_TRY(infer_tensor(c, 0, &x));
  if (x->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (sizes->kind != AIT_ARG_LIST || sizes->count > (uint32_t)x->rank)
    return infer_error(c, "output_size does not fit rank %d", (int)x->rank);
  infer_shape shape;
  infer_get_shape(x, &shape);
  for (uint32_t i = 0; i < sizes->count; ++i) {
    AIT_TRY(infer_dim(c, &sizes->as.list[i], &shape.dims[(uint32_t)x->rank - sizes->count + i]));
  }
  return infer_set(c, 0, x->dtype, &shape);
}

ait_status infer_rule_batch_norm(const infer_call *c) {
  const ait_value_info *x, *mean;
  ait_dim same;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_tensor(c, 3, &mean));
  if (x->rank >= 0 && x->rank < 2) return infer_error(c, "rank %d has no channels", (int)x->rank);
  if (x->rank >= 2 && mean->rank == 1) AIT_TRY(infer_unify(c, x->shape[1], mean->shape[0], "channels", &same));
  return infer_set_like(c, 0, x->dtype, x);
}

/* q [..., L, E], k [..., S, E], v [..., S, F] -> [..., L, F]; heads of k and v may be shared by groups of q's. */
ait_status infer_rule_attention(const infer_call *c) {
  const ait_value_info *q, *k, *v;
  ait_dim same;
  AIT_TRY(infer_tensor(c, 0, &q));
  AIT_TRY(infer_tensor(c, 1, &k));
  AIT_TRY(infer_tensor(c, 2, &v));
  if (q->rank < 0 || k->rank < 0 || v->rank < 0) return infer_set(c, 0, q->dtype, &unknown_shape);
  if (q->rank < 2 || k->rank < 2 || v->rank < 2) return infer_error(c, "operands need two dims");
  AIT_TRY(infer_unify(c, q->shape[q->rank - 1], k->shape[k->rank - 1], "head sizes of q and k", &same));
  AIT_TRY(infer_unify(c, k->shape[k->rank - 2], v->shape[v->rank - 2], "lengths of k and v", &same));
  infer_shape shape;
  infer_get_shape(q, &shape);
  shape.dims[shape.rank - 1] = v->shape[v->rank - 1];
  return infer_set(c, 0, q->dtype, &shape);
}

/* x [R, K], weight [E, N, K], experts [R] -> [R, N]: each row has a matrix of its own. The weight is of the dtype of x, or of few bits as
 * that of weight_linear with one dimension in front. */
ait_status infer_rule_expert_linear(const infer_call *c) {
  const ait_value_info *x, *weight, *experts;
  infer_shape shape = {.rank = 2};
  ait_dim same;
  int64_t group;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_tensor(c, 1, &weight));
  AIT_TRY(infer_tensor(c, 2, &experts));
  AIT_TRY(infer_int(c, 4, &group));
  if (x->rank != 2 || weight->rank != 3 || experts->rank != 1) return infer_error(c, "ranks are not 2, 3 and 1");
  const ait_value_info *scales = infer_tensor_or_null(c, 3);
  if (scales || !ait_dtype_is_float(weight->dtype)) AIT_TRY(check_weight_form(c, weight, scales, group, 3));
  if (weight->dtype != AIT_U8) AIT_TRY(infer_unify(c, x->shape[1], weight->shape[2], "input features", &same));
  AIT_TRY(infer_unify(c, x->shape[0], experts->shape[0], "rows", &shape.dims[0]));
  shape.dims[1] = weight->shape[1];
  return infer_set(c, 0, x->dtype, &shape);
}

/* q [T, H, d] with keys and values [.., G, .., d] and [.., G, .., dv] of this rank: [T, H, dv]; docs/llm.md. */
static ait_status attention_over(const infer_call *c, uint32_t k_arg, uint32_t v_arg, int32_t rank, const char *ranks) {
  const ait_value_info *q, *k, *v;
  ait_dim same;
  AIT_TRY(infer_tensor(c, 0, &q));
  AIT_TRY(infer_tensor(c, k_arg, &k));
  AIT_TRY(infer_tensor(c, v_arg, &v));
  if (q->rank != 3 || k->rank != rank || v->rank != rank) return infer_error(c, "%s", ranks);
  AIT_TRY(infer_unify(c, q->shape[2], k->shape[rank - 1], "head sizes of q and k", &same));
  AIT_TRY(infer_unify(c, k->shape[1], v->shape[1], "heads of k and v", &same));
  infer_shape shape;
  infer_get_shape(q, &shape);
  shape.dims[2] = v->shape[rank - 1];
  return infer_set(c, 0, q->dtype, &shape);
}

/* k [T, G, d], v [T, G, dv]: of this step. */
ait_status infer_rule_cached_attention(const infer_call *c) { return attention_over(c, 1, 2, 3, "q, k and v need three dims"); }

/* k_pool [units, G, M, d], v_pool [units, G, M, dv]. */
ait_status infer_rule_cross_attention(const infer_call *c) { return attention_over(c, 3, 4, 4, "q needs three dims, the pools four"); }

/* lstm and gru: x [L, N, I] (or [N, L, I], or [L, I]); the output has h's features for each direction, states keep their shapes. */
ait_status infer_rule_recurrent(const infer_call *c) {
  bool lstm = c->result_count == 3;
  uint32_t bidirectional = (uint32_t)ait_op_param(c->op, "bidirectional");
  const ait_value_info *x, *h, *cell;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_tensor(c, 1, &h));
  if (lstm) AIT_TRY(infer_tensor(c, 2, &cell));
  infer_shape shape;
  infer_get_shape(x, &shape);
  if (shape.rank > 0 && h->rank > 0)
    AIT_TRY(infer_make_const(c, AIT_DIM_MUL, h->shape[h->rank - 1], infer_bool(c, bidirectional) ? 2 : 1, &shape.dims[shape.rank - 1]));
  else shape.rank = -1;
  AIT_TRY(infer_set(c, 0, x->dtype, &shape));
  AIT_TRY(infer_set_like(c, 1, h->dtype, h));
  return lstm ? infer_set_like(c, 2, cell->dtype, cell) : AIT_OK;
}
