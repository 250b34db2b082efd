/* Batch normalisation with constant statistics is a multiplication and an addition for each channel. After a convolution or linear layer
 * that nothing else reads it goes into the weights; elsewhere it becomes mul and add. The arithmetic on weights is emitted as nodes: fold
 * computes it. Scale and shift as in Ioffe and Szegedy 2015, section 3.1. */
#include "passes/rewrite.h"

typedef struct batch_norm {
  ait_rewrite w;
  ait_graph *g;
  ait_node *n;
  uint32_t scale; /* [C], double */
  ait_arg channels;
} batch_norm;

static bool optional_constant(const ait_graph *g, const ait_arg *a) {
  return a->kind == AIT_ARG_NONE || (ait_arg_is_tensor(g, a) && ait_is_constant(g, a->as.value));
}

/* A constant in double. */
static ait_status in_double(batch_norm *b, const ait_arg *a, ait_arg *out) {
  uint32_t v;
  AIT_TRY(ait_emit_cast(&b->w, a->as.value, AIT_F64, &v));
  *out = ait_arg_value(v);
  return AIT_OK;
}

/* scale = weight / sqrt(var + eps), in double */
static ait_status emit_scale(batch_norm *b) {
  const ait_arg *a = b->n->args;
  ait_arg var, weight;
  AIT_TRY(in_double(b, &a[4], &var));
  AIT_TRY(AIT_EMIT(&b->w, &b->scale, "add", var, a[5]));
  AIT_TRY(AIT_EMIT(&b->w, &b->scale, "rsqrt", ait_arg_value(b->scale)));
  if (a[1].kind == AIT_ARG_NONE) return AIT_OK;
  AIT_TRY(in_double(b, &a[1], &weight));
  return AIT_EMIT(&b->w, &b->scale, "mul", ait_arg_value(b->scale), weight);
}

/* (layer's bias - mean) * scale + bias, in double */
static ait_status emit_shift(batch_norm *b, const ait_arg *layer_bias, uint32_t *out) {
  const ait_arg *a = b->n->args;
  ait_arg mean, bias;
  AIT_TRY(in_double(b, &a[3], &mean));
  if (layer_bias->kind == AIT_ARG_NONE) {
    AIT_TRY(AIT_EMIT(&b->w, out, "neg", mean));
  } else {
    AIT_TRY(in_double(b, layer_bias, &bias));
    AIT_TRY(AIT_EMIT(&b->w, out, "sub", bias, mean));
  }
  AIT_TRY(AIT_EMIT(&b->w, out, "mul", ait_arg_value(*out), ait_arg_value(b->scale)));
  if (a[2].kind == AIT_ARG_NONE) return AIT_OK;
  AIT_TRY(in_double(b, &a[2], &bias));
  return AIT_EMIT(&b->w, out, "add", ait_arg_value(*out), bias);
}

/* [C] as [1, …, C, …, 1] with `after` ones behind. */
static ait_status emit_shaped(batch_norm *b, uint32_t v, int32_t before, int32_t after, uint32_t *out) {
  ait_arg shape[AIT_MAX_RANK];
  for (int32_t i = 0; i < before + 1 + after; ++i) shape[i] = ait_arg_int(1);
  shape[before] = b->channels;
  return AIT_EMIT(&b->w, out, "reshape", ait_arg_value(v), ait_arg_list(shape, (uint32_t)(before + 1 + after)));
}

static ait_status replace(batch_norm *b, uint32_t value) {
  AIT_TRY(ait_replace_value(b->g, b->n->results[0], value));
  ait_graph_remove_node(b->g, b->n);
  return AIT_OK;
}

/* (x - mean) * scale + bias: the difference first, since mean * scale may cancel with the bias. */
static ait_status as_affine(batch_norm *b) {
  const ait_arg *a = b->n->args;
  uint32_t v;
  int32_t after = b->g->values[a[0].as.value].rank - 2;
  AIT_TRY(emit_shaped(b, a[3].as.value, 0, after, &v));
  uint32_t out;
  AIT_TRY(AIT_EMIT(&b->w, &out, "sub", a[0], ait_arg_value(v)));
  AIT_TRY(ait_emit_cast(&b->w, b->scale, b->g->values[a[0].as.value].dtype, &v));
  AIT_TRY(emit_shaped(b, v, 0, after, &v));
  AIT_TRY(AIT_EMIT(&b->w, &out, "mul", ait_arg_value(out), ait_arg_value(v)));
  if (a[2].kind != AIT_ARG_NONE) {
    AIT_TRY(emit_shaped(b, a[2].as.value, 0, after, &v));
    AIT_TRY(AIT_EMIT(&b->w, &out, "add", ait_arg_value(out), ait_arg_value(v)));
  }
  return replace(b, out);
}

/* The layer with other weights; its output channels are dimension `channel` of the weight. The scale is rounded first and the shift
 * computed from what it became: a result that cancels with the mean then cancels as before. (Large weights are not copied in double for
 * that.) */
static ait_status into_layer(batch_norm *b, const ait_node *layer, int32_t channel) {
  uint32_t scale, shaped, weight, bias, out;
  const ait_value_info *w = &b->g->values[layer->args[1].as.value];
  ait_dtype dtype = w->dtype;
  int32_t after = w->rank - 1 - channel;
  ait_arg args[9];
  AIT_TRY(ait_emit_cast(&b->w, b->scale, dtype, &scale));
  AIT_TRY(emit_shaped(b, scale, channel, after, &shaped));
  AIT_TRY(AIT_EMIT(&b->w, &weight, "mul", layer->args[1], ait_arg_value(shaped)));
  AIT_TRY(ait_emit_cast(&b->w, scale, AIT_F64, &b->scale));
  AIT_TRY(emit_shift(b, &layer->args[2], &bias));
  AIT_TRY(ait_emit_cast(&b->w, bias, dtype, &bias));
  memcpy(args, layer->args, layer->arg_count * sizeof *args);
  args[1] = ait_arg_value(weight);
  args[2] = ait_arg_value(bias);
  AIT_TRY(ait_emit(&b->w, layer->op->name, args, layer->arg_count, &out));
  return replace(b, out);
}

static ait_status fold_norm(batch_norm *b, const uint32_t *uses) {
  uint32_t x = b->n->args[0].as.value;
  ait_node *conv = ait_def_of(b->g, x, "conv"), *linear = ait_def_of(b->g, x, "linear");
  ait_node *layer = conv ? conv : linear;
  int64_t groups = 1;
  AIT_TRY(emit_scale(b));
  if (!layer || uses[x] != 1 || !ait_is_constant(b->g, layer->args[1].as.value) || !optional_constant(b->g, &layer->args[2]))
    return as_affine(b);
  if (linear && b->g->values[x].rank != 2) return as_affine(b); /* channels are dimension 1, which is the last only for matrices */
  bool transposed = conv && ait_arg_flag(&conv->args[7]);
  if (transposed && (!ait_arg_as_int(b->g, &conv->args[6], &groups) || groups != 1)) return as_affine(b);
  return into_layer(b, layer, transposed ? 1 : 0);
}

ait_status ait_pass_conv_bn(ait_graph *g, const ait_pass_context *context, bool *changed) {
  uint32_t *uses;
  if (g->dialect != AIT_DIALECT_CORE) return AIT_OK;
  AIT_TRY(ait_graph_count_uses(g, context->allocator, &uses));
  size_t count = g->value_count;
  ait_status status = AIT_OK;
  for (ait_node *n = g->first, *next; n && status == AIT_OK; n = next) {
    next = n->next;
    if (strcmp(n->op->name, "batch_norm") || !ait_arg_is_tensor(g, &n->args[0])) continue;
    bool constant = true;
    for (int i = 1; i <= 4; ++i) constant &= optional_constant(g, &n->args[i]);
    const ait_value_info *x = &g->values[n->args[0].as.value], *mean = &g->values[n->args[3].as.value];
    if (!constant || x->dtype != mean->dtype || x->rank < 2 || n->args[0].as.value >= count) continue;
    batch_norm b = {.w = ait_rewrite_at(g, context, n), .g = g, .n = n, .channels = ait_dim_as_arg(g, x->shape[1])};
    status = fold_norm(&b, uses);
    *changed = true;
  }
  ait_free(context->allocator, uses, count * sizeof *uses);
  return status;
}
