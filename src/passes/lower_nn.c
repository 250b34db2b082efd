/* Neural-network operators: products, convolution, pooling, norms, attention, recurrent layers, resampling. */
#include "passes/lower.h"

static ait_status all_casts(ait_lower *l, const uint32_t *at, uint32_t count, ait_arg *out) {
  for (uint32_t i = 0; i < count; ++i) AIT_TRY(ait_lower_cast_arg(l, at[i], ait_lower_result(l)->dtype, &out[i]));
  return AIT_OK;
}

static bool plain(const ait_lower *l) { return ait_dtype_is_float(ait_lower_result(l)->dtype); }

/* ---- products --------------------------------------------------------------------------------------------------------------------*/
static ait_status linear(ait_lower *l) {
  uint32_t out;
  if (!plain(l)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "linear", l->a[0], l->a[1], l->a[2]));
  return ait_lower_done(l, out);
}

/* The transposed of a two-dimensional value: what a permute was made from, else a permute. */
static ait_status transposed(ait_lower *l, uint32_t v, uint32_t *out) {
  ait_node *p = ait_def_of(l->g, v, "permute");
  ait_arg swap[2] = {ait_arg_int(1), ait_arg_int(0)};
  if (p && p->args[1].count == 2 && p->args[1].as.list[0].as.i == 1) return *out = p->args[0].as.value, AIT_OK;
  return AIT_EMIT(&l->w, out, "permute", ait_arg_value(v), ait_arg_list(swap, 2));
}

/* A right operand that is a weight makes the product a linear layer. */
static bool is_weight(const ait_graph *g, uint32_t v) {
  ait_node *p = ait_def_of(g, v, "permute");
  return g->values[v].rank == 2 &&
         (ait_is_constant(g, v) || (p && ait_arg_is_tensor(g, &p->args[0]) && ait_is_constant(g, p->args[0].as.value)));
}

static ait_status matmul(ait_lower *l) {
  uint32_t a, b, out;
  if (!plain(l) || !ait_lower_tensor(l, 0, &a) || !ait_lower_tensor(l, 1, &b)) return AIT_OK;
  if (is_weight(l->g, b) && l->g->values[a].rank >= 1) {
    AIT_TRY(transposed(l, b, &b));
    AIT_TRY(AIT_EMIT(&l->w, &out, "linear", ait_arg_value(a), ait_arg_value(b)));
  } else {
    AIT_TRY(AIT_EMIT(&l->w, &out, "matmul", ait_arg_value(a), ait_arg_value(b)));
  }
  return ait_lower_done(l, out);
}

/* bias * beta + a b * alpha */
static ait_status addmm(ait_lower *l) {
  uint32_t bias, a, b, out;
  double beta, alpha;
  if (!plain(l) || !ait_lower_tensor(l, 0, &bias) || !ait_lower_tensor(l, 1, &a) || !ait_lower_tensor(l, 2, &b)) return AIT_OK;
  if (!ait_arg_as_number(l->g, &l->a[3], &beta) || !ait_arg_as_number(l->g, &l->a[4], &alpha) || beta != 1 || alpha != 1) return AIT_OK;
  if (is_weight(l->g, b) && l->g->values[bias].rank == 1 && l->g->values[bias].shape[0] == l->g->values[b].shape[1]) {
    AIT_TRY(transposed(l, b, &b));
    AIT_TRY(AIT_EMIT(&l->w, &out, "linear", ait_arg_value(a), ait_arg_value(b), ait_arg_value(bias)));
  } else {
    ait_dtype steps = ait_lower_steps_dtype(ait_lower_result(l)->dtype);
    uint32_t *const operands[] = {&a, &b, &bias};
    for (size_t i = 0; i < AIT_COUNT(operands); ++i) AIT_TRY(ait_emit_cast(&l->w, *operands[i], steps, operands[i]));
    AIT_TRY(AIT_EMIT(&l->w, &out, "matmul", ait_arg_value(a), ait_arg_value(b)));
    AIT_TRY(AIT_EMIT(&l->w, &out, "add", ait_arg_value(out), ait_arg_value(bias)));
  }
  return ait_lower_done(l, out);
}

/* ---- convolution -----------------------------------------------------------------------------------------------------------------*/
/* A list of ints of exactly n elements; one element is repeated. */
static bool int_list(const ait_lower *l, int32_t at, uint32_t n, int64_t otherwise, ait_arg *out) {
  int64_t v[AIT_MAX_RANK];
  uint32_t count = 0;
  if (at >= 0 && !ait_arg_as_ints(l->g, &l->a[at], v, &count)) return false;
  for (uint32_t i = 0; i < n; ++i) out[i] = ait_arg_int(count == 0 ? otherwise : count == 1 ? v[0] : v[i]);
  return count <= 1 || count == n;
}

static ait_status emit_conv(ait_lower *l, ait_arg x, uint32_t n, const ait_arg *stride, const ait_arg *padding, const ait_arg *dilation,
                            ait_arg groups, bool transposed_conv, const ait_arg *output_padding, uint32_t *out) {
  return AIT_EMIT(&l->w, out, "conv", x, l->a[1], l->a[2], ait_arg_list(stride, n), ait_arg_list(padding, n), ait_arg_list(dilation, n),
                  groups, ait_arg_bool(transposed_conv), ait_arg_list(output_padding, transposed_conv ? n : 0));
}

/* The operand with a batch dimension in front; *added tells whether it had none. */
static ait_status with_batch(ait_lower *l, uint32_t x, int32_t rank, bool *added, uint32_t *out) {
  ait_arg shape[AIT_MAX_RANK + 1];
  *out = x;
  *added = l->g->values[x].rank == rank - 1;
  if (!*added) return AIT_OK;
  if (!ait_shape_args(l->g, x, shape + 1)) return ait_error(AIT_CODE_UNSUPPORTED, "operand of unknown size");
  shape[0] = ait_arg_int(1);
  return AIT_EMIT(&l->w, out, "reshape", ait_arg_value(x), ait_arg_list(shape, (uint32_t)rank));
}
static ait_status done_without_batch(ait_lower *l, uint32_t value, bool added) {
  ait_arg shape[AIT_MAX_RANK];
  if (added) {
    if (!ait_shape_args(l->g, l->n->results[0], shape)) return ait_error(AIT_CODE_UNSUPPORTED, "result of unknown size");
    AIT_TRY(AIT_EMIT(&l->w, &value, "reshape", ait_arg_value(value), ait_arg_list(shape, (uint32_t)ait_lower_result(l)->rank)));
  }
  return ait_lower_done(l, value);
}

static ait_status convolution(ait_lower *l) {
  uint32_t x, w, out;
  if (!plain(l) || !ait_lower_tensor(l, 0, &x) || !ait_lower_tensor(l, 1, &w) || !ait_shape_known(l->g, &l->g->values[x])) return AIT_OK;
  int32_t rank = l->g->values[w].rank, transposed_at = ait_op_param(l->n->op, "transposed"), groups = ait_op_param(l->n->op, "groups");
  if (rank < 3 || rank > 5 || !ait_shape_known(l->g, ait_lower_result(l))) return AIT_OK;
  uint32_t n = (uint32_t)rank - 2;
  bool is_transposed = transposed_at >= 0 ? ait_arg_flag(&l->a[transposed_at]) : strstr(l->n->op->name, "transpose") != NULL, added;
  ait_arg stride[3], padding[3], dilation[3], output_padding[3];
  if (!int_list(l, ait_op_param(l->n->op, "stride"), n, 1, stride) || !int_list(l, ait_op_param(l->n->op, "padding"), n, 0, padding) ||
      !int_list(l, ait_op_param(l->n->op, "dilation"), n, 1, dilation) ||
      !int_list(l, ait_op_param(l->n->op, "output_padding"), n, 0, output_padding))
    return AIT_OK;
  AIT_TRY(with_batch(l, x, rank, &added, &x));
  AIT_TRY(emit_conv(l, ait_arg_value(x), n, stride, padding, dilation, l->a[groups], is_transposed, output_padding, &out));
  return done_without_batch(l, out, added);
}

/* conv2d.padding: "valid", or "same" (stride 1): total = dilation * (kernel - 1), the odd one at the end. */
static ait_status convolution_same(ait_lower *l) {
  uint32_t x, w, out;
  int64_t kernel;
  int32_t mode = ait_op_param(l->n->op, "padding");
  if (!plain(l) || !ait_lower_tensor(l, 0, &x) || !ait_lower_tensor(l, 1, &w) || l->a[mode].kind != AIT_ARG_STRING) return AIT_OK;
  int32_t rank = l->g->values[w].rank;
  uint32_t n = (uint32_t)rank - 2;
  bool added, same = !strcmp(l->a[mode].as.string, "same"), uneven = false;
  ait_arg stride[3], padding[3], dilation[3], pads[6];
  if (rank < 3 || rank > 5 || !ait_shape_known(l->g, ait_lower_result(l)) || !ait_shape_known(l->g, &l->g->values[x])) return AIT_OK;
  if (!int_list(l, ait_op_param(l->n->op, "stride"), n, 1, stride) || !int_list(l, ait_op_param(l->n->op, "dilation"), n, 1, dilation))
    return AIT_OK;
  for (uint32_t i = 0; i < n; ++i) {
    if (!ait_dim_is_const(l->g, l->g->values[w].shape[2 + i], &kernel)) return AIT_OK;
    int64_t total = same ? dilation[i].as.i * (kernel - 1) : 0;
    padding[i] = ait_arg_int(total / 2);
    pads[2 * (n - 1 - i)] = ait_arg_int(0);
    pads[2 * (n - 1 - i) + 1] = ait_arg_int(total % 2);
    uneven |= total % 2 != 0;
  }
  AIT_TRY(with_batch(l, x, rank, &added, &x));
  if (uneven) AIT_TRY(AIT_EMIT(&l->w, &x, "pad", ait_arg_value(x), ait_arg_list(pads, 2 * n), ait_arg_int(0)));
  AIT_TRY(emit_conv(l, ait_arg_value(x), n, stride, padding, dilation, l->a[ait_op_param(l->n->op, "groups")], false, NULL, &out));
  return done_without_batch(l, out, added);
}

/* ---- pooling ---------------------------------------------------------------------------------------------------------------------*/
static uint32_t spatial_of(const ait_lower *l) { /* "aten.max_pool2d…" -> 2 */
  const char *d = strpbrk(l->n->op->name, "123");
  return d ? (uint32_t)(*d - '0') : 0;
}

static ait_status pool(ait_lower *l) {
  uint32_t x, n = spatial_of(l), out;
  const ait_op *op = l->n->op;
  bool max = !strcmp(l->core, "max_pool"), added;
  for (uint32_t k = 1; k < l->n->result_count; ++k)
    if (!ait_lower_unused(l, k)) return AIT_OK;
  if (!plain(l) || !ait_lower_tensor(l, 0, &x) || !ait_shape_known(l->g, &l->g->values[x]) || !ait_shape_known(l->g, ait_lower_result(l)))
    return AIT_OK;
  ait_arg kernel[3], stride[3], padding[3], dilation[3];
  int32_t ceil_at = ait_op_param(op, "ceil_mode"), pad_at = ait_op_param(op, "count_include_pad"),
          div_at = ait_op_param(op, "divisor_override");
  int32_t stride_at = ait_op_param(op, "stride");
  bool own_stride =
      stride_at >= 0 && !(l->a[stride_at].kind == AIT_ARG_LIST && l->a[stride_at].count == 0) && l->a[stride_at].kind != AIT_ARG_NONE;
  if (!int_list(l, ait_op_param(op, "kernel_size"), n, 1, kernel) ||
      !int_list(l, own_stride ? stride_at : ait_op_param(op, "kernel_size"), n, 1, stride) ||
      !int_list(l, ait_op_param(op, "padding"), n, 0, padding) || !int_list(l, ait_op_param(op, "dilation"), n, 1, dilation))
    return AIT_OK;
  ait_arg ceil_mode = ceil_at >= 0 ? l->a[ceil_at] : ait_arg_bool(false);
  AIT_TRY(with_batch(l, x, (int32_t)n + 2, &added, &x));
  if (max)
    AIT_TRY(AIT_EMIT(&l->w, &out, "max_pool", ait_arg_value(x), ait_arg_list(kernel, n), ait_arg_list(stride, n), ait_arg_list(padding, n),
                     ait_arg_list(dilation, n), ceil_mode));
  else
    AIT_TRY(AIT_EMIT(&l->w, &out, "avg_pool", ait_arg_value(x), ait_arg_list(kernel, n), ait_arg_list(stride, n), ait_arg_list(padding, n),
                     ceil_mode, pad_at >= 0 ? l->a[pad_at] : ait_arg_bool(true), div_at >= 0 ? l->a[div_at] : ait_arg_none()));
  return done_without_batch(l, out, added);
}

static ait_status adaptive_pool(ait_lower *l) {
  uint32_t x, n = spatial_of(l), out;
  ait_arg size[3];
  bool added;
  if (!plain(l) || !ait_lower_tensor(l, 0, &x) || !ait_shape_known(l->g, &l->g->values[x]) || !int_list(l, 1, n, 1, size)) return AIT_OK;
  AIT_TRY(with_batch(l, x, (int32_t)n + 2, &added, &x));
  AIT_TRY(AIT_EMIT(&l->w, &out, "adaptive_avg_pool", ait_arg_value(x), ait_arg_list(size, n)));
  return done_without_batch(l, out, added);
}

/* ---- norms -----------------------------------------------------------------------------------------------------------------------*/
static bool others_unused(const ait_lower *l) {
  for (uint32_t k = 1; k < l->n->result_count; ++k)
    if (!ait_lower_unused(l, k)) return false;
  return true;
}

static ait_status batch_norm(ait_lower *l) {
  const ait_op *op = l->n->op;
  int32_t training = ait_op_param(op, "training"), mean = ait_op_param(op, "running_mean"), var = ait_op_param(op, "running_var");
  uint32_t v, out;
  double eps;
  if (!plain(l) || !others_unused(l) || (training >= 0 && (l->a[training].kind != AIT_ARG_BOOL || l->a[training].as.b))) return AIT_OK;
  if (!ait_lower_tensor(l, (uint32_t)mean, &v) || !ait_lower_tensor(l, (uint32_t)var, &v) ||
      !ait_arg_as_number(l->g, &l->a[ait_op_param(op, "eps")], &eps))
    return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "batch_norm", l->a[0], l->a[1], l->a[2], l->a[mean], l->a[var], ait_arg_float(eps)));
  return ait_lower_done(l, out);
}

static ait_status layer_norm(ait_lower *l) {
  const ait_op *op = l->n->op;
  ait_arg dims[AIT_MAX_RANK];
  uint32_t n, out;
  double eps;
  if (!plain(l) || !others_unused(l) || !ait_arg_as_dims(l->g, &l->a[1], dims, &n) ||
      !ait_arg_as_number(l->g, &l->a[ait_op_param(op, "eps")], &eps))
    return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "layer_norm", l->a[0], ait_arg_int(n), l->a[2], l->a[3], ait_arg_float(eps)));
  return ait_lower_done(l, out);
}

static ait_status rms_norm(ait_lower *l) {
  ait_arg dims[AIT_MAX_RANK];
  uint32_t n, out, x;
  double eps =
      ait_lower_result(l)->dtype == AIT_F64 ? 0x1p-52 : 0x1p-23; /* torch: the dtype's epsilon (half types are computed in float) */
  if (!plain(l) || !ait_lower_tensor(l, 0, &x) || !ait_arg_as_dims(l->g, &l->a[1], dims, &n)) return AIT_OK;
  if (l->a[3].kind != AIT_ARG_NONE && !ait_arg_as_number(l->g, &l->a[3], &eps)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "rms_norm", l->a[0], ait_arg_int(n), l->a[2], ait_arg_float(eps)));
  return ait_lower_done(l, out);
}

static ait_status group_norm(ait_lower *l) {
  const ait_op *op = l->n->op;
  int32_t groups = ait_op_param(op, "num_groups");
  if (groups < 0) groups = ait_op_param(op, "group");
  uint32_t out;
  double eps;
  if (!plain(l) || !others_unused(l) || !ait_arg_as_number(l->g, &l->a[ait_op_param(op, "eps")], &eps)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "group_norm", l->a[0], l->a[groups], l->a[ait_op_param(op, "weight")], l->a[ait_op_param(op, "bias")],
                   ait_arg_float(eps)));
  return ait_lower_done(l, out);
}

static ait_status softmax(ait_lower *l) {
  ait_arg x;
  uint32_t out;
  if (!plain(l)) return AIT_OK;
  AIT_TRY(ait_lower_cast_arg(l, 0, ait_lower_result(l)->dtype, &x));
  AIT_TRY(AIT_EMIT(&l->w, &out, l->core, x, l->a[1]));
  return ait_lower_done(l, out);
}

/* ---- attention and recurrent layers ----------------------------------------------------------------------------------------------*/
static ait_status attention(ait_lower *l) {
  const ait_op *op = l->n->op;
  static const uint32_t qkv[3] = {0, 1, 2};
  ait_arg args[6];
  double dropout = 0, scale;
  uint32_t out;
  int32_t scale_at = ait_op_param(op, "scale");
  if (!plain(l) || !ait_arg_as_number(l->g, &l->a[ait_op_param(op, "dropout_p")], &dropout) || dropout != 0) return AIT_OK;
  AIT_TRY(all_casts(l, qkv, 3, args));
  args[3] = l->a[3];
  args[4] = l->a[ait_op_param(op, "is_causal")];
  args[5] = l->a[scale_at];
  if (args[5].kind != AIT_ARG_NONE) {
    if (!ait_arg_as_number(l->g, &args[5], &scale)) return AIT_OK;
    args[5] = ait_arg_float(scale);
  }
  if (args[3].kind == AIT_ARG_VALUE && l->g->values[args[3].as.value].dtype != AIT_BOOL)
    AIT_TRY(ait_lower_cast_arg(l, 3, ait_lower_result(l)->dtype, &args[3]));
  AIT_TRY(ait_emit(&l->w, "attention", args, 6, &out));
  return ait_lower_done(l, out);
}

/* lstm.input(input, hx[], params[], has_biases, num_layers, dropout, train, bidirectional, batch_first); gru.input has one hx tensor. */
static ait_status recurrent(ait_lower *l) {
  bool is_lstm = !strcmp(l->core, "lstm");
  const ait_arg *a = l->a;
  double dropout;
  if (!plain(l) || ait_arg_flag(&a[6]) || !ait_arg_as_number(l->g, &a[5], &dropout)) return AIT_OK;
  if (is_lstm && (a[1].kind != AIT_ARG_LIST || a[1].count != 2)) return AIT_OK;
  uint32_t count = is_lstm ? 3 : 2, out[3], x;
  if (l->n->result_count != count || !ait_lower_tensor(l, 0, &x) || l->g->values[x].rank != 3) return AIT_OK;
  ait_arg args[8];
  uint32_t n = 0;
  args[n++] = a[0];
  args[n++] = is_lstm ? a[1].as.list[0] : a[1];
  if (is_lstm) args[n++] = a[1].as.list[1];
  args[n++] = a[2];
  args[n++] = a[3];
  args[n++] = a[4];
  args[n++] = a[7];
  args[n++] = a[8];
  AIT_TRY(ait_build(l->g, l->w.at, l->core, l->w.name, l->w.module, args, n, out, count));
  for (uint32_t i = 0; i < count; ++i)
    if (l->n->results[i] != AIT_NO_INDEX) AIT_TRY(ait_replace_value(l->g, l->n->results[i], out[i]));
  ait_graph_remove_node(l->g, l->n);
  l->done = true;
  return AIT_OK;
}

/* ---- resampling ------------------------------------------------------------------------------------------------------------------*/
/* upsample_*.vec(input, output_size?, [align_corners,] scale_factors?): the size is the result's. */
static ait_status upsample(ait_lower *l) {
  const ait_op *op = l->n->op;
  uint32_t x, out, n = spatial_of(l);
  int32_t align = ait_op_param(op, "align_corners"), factors = ait_op_param(op, "scale_factors");
  ait_arg shape[AIT_MAX_RANK], scales = factors >= 0 ? l->a[factors] : ait_arg_none();
  if (!plain(l) || !ait_lower_tensor(l, 0, &x) || !ait_shape_args(l->g, l->n->results[0], shape) || l->g->values[x].rank != (int32_t)n + 2)
    return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "upsample", ait_arg_value(x), ait_arg_list(shape + 2, n), ait_arg_string(l->core),
                   align >= 0 ? l->a[align] : ait_arg_bool(false), scales));
  return ait_lower_done(l, out);
}

const ait_lower_row ait_lower_nn_rows[] = {
    {"aten.linear", NULL, linear},
    {"aten.mm", NULL, matmul},
    {"aten.bmm", NULL, matmul},
    {"aten.matmul", NULL, matmul},
    {"aten.__matmul__", NULL, matmul},
    {"aten.addmm", NULL, addmm},
    {"aten.conv1d", NULL, convolution},
    {"aten.conv2d", NULL, convolution},
    {"aten.conv3d", NULL, convolution},
    {"aten.convolution", NULL, convolution},
    {"aten.conv_transpose1d", NULL, convolution},
    {"aten.conv_transpose2d.input", NULL, convolution},
    {"aten.conv_transpose3d.input", NULL, convolution},
    {"aten.conv1d.padding", NULL, convolution_same},
    {"aten.conv2d.padding", NULL, convolution_same},
    {"aten.conv3d.padding", NULL, convolution_same},
    {"aten.max_pool1d", "max_pool", pool},
    {"aten.max_pool2d", "max_pool", pool},
    {"aten.max_pool3d", "max_pool", pool},
    {"aten.max_pool2d_with_indices", "max_pool", pool},
    {"aten.max_pool3d_with_indices", "max_pool", pool},
    {"aten.avg_pool1d", "avg_pool", pool},
    {"aten.avg_pool2d", "avg_pool", pool},
    {"aten.avg_pool3d", "avg_pool", pool},
    {"aten.adaptive_avg_pool1d", NULL, adaptive_pool},
    {"aten.adaptive_avg_pool2d", NULL, adaptive_pool},
    {"aten.adaptive_avg_pool3d", NULL, adaptive_pool},
    {"aten._adaptive_avg_pool2d", NULL, adaptive_pool},
    {"aten._adaptive_avg_pool3d", NULL, adaptive_pool},
    {"aten.batch_norm", NULL, batch_norm},
    {"aten._native_batch_norm_legit_no_training", NULL, batch_norm},
    {"aten._native_batch_norm_legit_functional", NULL, batch_norm},
    {"aten.layer_norm", NULL, layer_norm},
    {"aten.native_layer_norm", NULL, layer_norm},
    {"aten.rms_norm", NULL, rms_norm},
    {"aten.group_norm", NULL, group_norm},
    {"aten.native_group_norm", NULL, group_norm},
    {"aten.softmax.int", "softmax", softmax},
    {"aten._softmax", "softmax", softmax},
    {"aten.log_softmax.int", "log_softmax", softmax},
    {"aten._log_softmax", "log_softmax", softmax},
    {"aten.scaled_dot_product_attention", NULL, attention},
    {"aten.lstm.input", "lstm", recurrent},
    {"aten.gru.input", "gru", recurrent},
    {"aten.upsample_nearest1d.vec", "nearest", upsample},
    {"aten.upsample_nearest2d.vec", "nearest", upsample},
    {"aten.upsample_nearest3d.vec", "nearest", upsample},
    {"aten.upsample_linear1d.vec", "linear", upsample},
    {"aten.upsample_bilinear2d.vec", "linear", upsample},
    {"aten.upsample_trilinear3d.vec", "linear", upsample},
    {"aten.upsample_bicubic2d.vec", "cubic", upsample},
    {0},
};
