/* weights-bf16, weights-int8, weights-int4. */
#include "passes/quantise.h"
#include "passes/rewrite.h"
#include "tensor/half.h"
#include <math.h>

typedef struct quantiser {
  ait_graph *g;
  const ait_pass_context *context;
  ait_quantise_options options;
  bool *leads;    /* by value: a product is made of it, directly or not */
  bool *routes;   /* by value: it decides which experts are taken */
  uint32_t *uses; /* by value */
} quantiser;

/* ---- numbers ---------------------------------------------------------------------------------------------------------------------*/
static const struct {
  ait_dtype dtype;
  int least, most;
} forms[] = {{AIT_DTYPE_NONE, 0, 0}, {AIT_BF16, 0, 0}, {AIT_I8, -127, 127}, {AIT_U8, -8, 7}};

static double squared_error(const float *w, int64_t n, float scale, int least, int most) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    double q = fmin(fmax(nearbyint((double)w[i] / (double)scale), least), most), e = (double)w[i] - q * (double)scale;
    sum += e * e;
  }
  return sum;
}

/* The scale of n weights, a bfloat16. 8 bits: largest magnitude / 127. 4 bits have one more negative step than positive ones: the largest
 * magnitude lies on -8 (the scale may be negative), or a little beyond, whichever leaves the smallest squared error. */
static uint16_t best_scale(const float *w, int64_t n, int least, int most) {
  float extreme = 0;
  for (int64_t i = 0; i < n; ++i)
    if (fabsf(w[i]) > fabsf(extreme)) extreme = w[i];
  if (extreme == 0) return 0;
  if (most == 127) return ait_f32_to_bf16(fabsf(extreme) / 127.0f);
  uint16_t best = 0;
  double best_error = INFINITY;
  for (int step = 0; step < 9; ++step) {
    uint16_t candidate = ait_f32_to_bf16(extreme / (float)least * (1.0f - 0.025f * (float)step));
    float scale = ait_bf16_to_f32(candidate);
    double error = scale == 0 ? INFINITY : squared_error(w, n, scale, least, most);
    if (error < best_error) best_error = error, best = candidate;
  }
  return best;
}

static int rounded(float w, float scale, int least, int most) {
  if (scale == 0) return 0;
  return (int)fmin(fmax(nearbyint((double)w / (double)scale), least), most);
}

static void round_row(const float *w, int64_t k, int64_t group, ait_weight_bits bits, void *out, uint16_t *scales) {
  int least = forms[bits].least, most = forms[bits].most;
  if (bits == AIT_WEIGHTS_BF16) {
    for (int64_t i = 0; i < k; ++i) ((uint16_t *)out)[i] = ait_f32_to_bf16(w[i]);
    return;
  }
  for (int64_t g = 0; g * group < k; ++g) {
    int64_t begin = g * group, n = k - begin < group ? k - begin : group;
    scales[g] = best_scale(w + begin, n, least, most);
    float scale = ait_bf16_to_f32(scales[g]);
    for (int64_t i = begin; i < begin + n; ++i) {
      int q = rounded(w[i], scale, least, most);
      if (bits == AIT_WEIGHTS_INT8) ((int8_t *)out)[i] = (int8_t)q;
      else ((uint8_t *)out)[i / 2] |= (uint8_t)((q + 8) << (i % 2 * 4));
    }
  }
}

/* ---- weights ---------------------------------------------------------------------------------------------------------------------*/
typedef struct rounded_weight {
  ait_tensor weight, scales; /* scales: dtype NONE without */
} rounded_weight;

static void release(rounded_weight *w) {
  ait_tensor_release(&w->weight);
  if (w->scales.dtype != AIT_DTYPE_NONE) ait_tensor_release(&w->scales);
}

static bool all_bf16(const ait_tensor *t) {
  const float *p = t->data;
  for (int64_t i = 0, n = ait_tensor_count(t); i < n; ++i)
    if (!(ait_bf16_to_f32(ait_f32_to_bf16(p[i])) == p[i])) return false; /* NaN neither */
  return true;
}

static bool all_finite(const ait_tensor *t) {
  const float *p = t->data;
  for (int64_t i = 0, n = ait_tensor_count(t); i < n; ++i)
    if (!isfinite(p[i])) return false;
  return true;
}

/* A matrix, or several: rows along the last dimension. */
static ait_status round_weight(const quantiser *q, const ait_tensor *plain, ait_weight_bits bits, rounded_weight *out) {
  ait_allocator a = q->context->allocator;
  const int32_t rank = plain->rank;
  int64_t k = plain->shape[rank - 1], group = q->options.group, groups = k / group + (k % group != 0), n = 1, shape[3];
  int64_t columns = bits == AIT_WEIGHTS_INT4 ? k / 2 + k % 2 : k;
  for (int32_t d = 0; d + 1 < rank; ++d) n *= shape[d] = plain->shape[d];
  shape[rank - 1] = columns;
  *out = (rounded_weight){.scales = {.dtype = AIT_DTYPE_NONE}};
  AIT_TRY(ait_tensor_create(a, forms[bits].dtype, rank, shape, &out->weight));
  memset(out->weight.data, 0, ait_tensor_bytes(&out->weight));
  if (bits != AIT_WEIGHTS_BF16) {
    shape[rank - 1] = groups;
    ait_status status = ait_tensor_create(a, AIT_BF16, rank, shape, &out->scales);
    if (status != AIT_OK) return out->scales.dtype = AIT_DTYPE_NONE, release(out), status;
  }
  size_t row_bytes = (size_t)columns * ait_dtype_size(forms[bits].dtype);
  for (int64_t r = 0; r < n; ++r)
    round_row((const float *)plain->data + r * k, k, group, bits, (char *)out->weight.data + (size_t)r * row_bytes,
              bits == AIT_WEIGHTS_BF16 ? NULL : (uint16_t *)out->scales.data + r * groups);
  return AIT_OK;
}

/* The weight of few bits as constants of the graph; *out_weight AIT_NO_INDEX when the old one does not fit. */
static ait_status few_bits(const quantiser *q, const ait_rewrite *w, uint32_t value, int32_t rank, ait_weight_bits bits,
                           uint32_t *out_weight, ait_arg *out_scales) {
  ait_tensor t, plain;
  rounded_weight made;
  *out_weight = AIT_NO_INDEX;
  *out_scales = ait_arg_none();
  if (!ait_is_constant(q->g, value) || !ait_constant_tensor(q->g, value, &t) || t.rank != rank) {
    ait_note(w, "quantise", "weight-not-constant", "its weight is not constant");
    return AIT_OK;
  }
  AIT_TRY(ait_tensor_cast(q->context->allocator, &t, AIT_F32, &plain));
  if (bits != AIT_WEIGHTS_BF16 && !all_finite(&plain)) {
    ait_tensor_release(&plain);
    ait_note(w, "quantise", "weight-not-finite", "its weight holds NaN or infinity");
    return AIT_OK;
  }
  ait_status status = round_weight(q, &plain, bits, &made);
  ait_tensor_release(&plain);
  if (status != AIT_OK) return status;
  uint32_t scales = AIT_NO_INDEX;
  if (made.scales.dtype != AIT_DTYPE_NONE) status = ait_constant_new(q->g, &made.scales, &scales);
  if (status == AIT_OK) status = ait_constant_new(q->g, &made.weight, out_weight);
  if (scales != AIT_NO_INDEX) *out_scales = ait_arg_value(scales);
  release(&made);
  return status;
}

/* ---- nodes -----------------------------------------------------------------------------------------------------------------------*/
static ait_status replace(const quantiser *q, ait_node *n, uint32_t by, bool *changed) {
  AIT_TRY(ait_replace_value(q->g, n->results[0], by));
  ait_graph_remove_node(q->g, n);
  *changed = true;
  return AIT_OK;
}

static ait_status linear(const quantiser *q, ait_node *n, bool *changed) {
  const ait_value_info *x = ait_value_of(q->g, n->args[0].as.value);
  ait_rewrite w = ait_rewrite_at(q->g, q->context, n);
  ait_weight_bits bits = q->leads[n->results[0]] ? q->options.linear : q->options.head;
  uint32_t weight, out;
  ait_arg scales;
  if (bits == AIT_WEIGHTS_KEEP) return AIT_OK;
  if (q->routes[n->results[0]])
    return ait_note(&w, "quantise", "router", "it chooses experts: one choice weighs more than its weights"), AIT_OK;
  if (x->dtype != AIT_F32) return ait_note(&w, "quantise", "input-not-float32", "its input is %s", ait_dtype_name(x->dtype)), AIT_OK;
  AIT_TRY(few_bits(q, &w, n->args[1].as.value, 2, bits, &weight, &scales));
  if (weight == AIT_NO_INDEX) return AIT_OK;
  int64_t group = bits == AIT_WEIGHTS_BF16 ? 0 : q->options.group;
  AIT_TRY(AIT_EMIT(&w, &out, "weight_linear", n->args[0], ait_arg_value(weight), scales, n->args[2], ait_arg_int(group)));
  return replace(q, n, out, changed);
}

static ait_status experts(const quantiser *q, ait_node *n, bool *changed) {
  ait_rewrite w = ait_rewrite_at(q->g, q->context, n);
  uint32_t weight, out;
  ait_arg scales;
  if (q->options.linear == AIT_WEIGHTS_KEEP || !ait_dtype_is_float(ait_value_of(q->g, n->args[1].as.value)->dtype)) return AIT_OK;
  if (ait_value_of(q->g, n->args[0].as.value)->dtype != AIT_F32)
    return ait_note(&w, "quantise", "input-not-float32", "its input is not float32"), AIT_OK;
  AIT_TRY(few_bits(q, &w, n->args[1].as.value, 3, q->options.linear, &weight, &scales));
  if (weight == AIT_NO_INDEX) return AIT_OK;
  int64_t group = q->options.linear == AIT_WEIGHTS_BF16 ? 0 : q->options.group;
  AIT_TRY(AIT_EMIT(&w, &out, "expert_linear", n->args[0], ait_arg_value(weight), n->args[2], scales, ait_arg_int(group)));
  return replace(q, n, out, changed);
}

/* A kept table as bfloat16? */
static ait_status is_exact(const quantiser *q, const ait_node *n, bool *out) {
  const ait_quantise_options *o = &q->options;
  uint32_t table = n->args[0].as.value;
  ait_tensor t, plain;
  *out = false;
  if (!o->exact_tables || (!o->exact_shared_tables && q->uses[table] > 1)) return AIT_OK;
  if (!ait_is_constant(q->g, table) || !ait_constant_tensor(q->g, table, &t) || t.dtype != AIT_F32) return AIT_OK;
  AIT_TRY(ait_tensor_cast(q->context->allocator, &t, AIT_F32, &plain));
  *out = all_bf16(&plain);
  ait_tensor_release(&plain);
  return AIT_OK;
}

static ait_status embedding(const quantiser *q, ait_node *n, bool *changed) {
  ait_rewrite w = ait_rewrite_at(q->g, q->context, n);
  const ait_value_info *table = ait_value_of(q->g, n->args[0].as.value);
  uint32_t weight, out;
  int64_t features;
  ait_arg scales;
  ait_dtype dtype = table->dtype;
  ait_weight_bits bits = q->options.embedding;
  bool exact;
  if (table->rank != 2 || !ait_dim_is_const(q->g, table->shape[1], &features)) return AIT_OK;
  if (bits == AIT_WEIGHTS_KEEP) {
    AIT_TRY(is_exact(q, n, &exact));
    if (!exact) return AIT_OK;
    bits = AIT_WEIGHTS_BF16;
  }
  AIT_TRY(few_bits(q, &w, n->args[0].as.value, 2, bits, &weight, &scales));
  if (weight == AIT_NO_INDEX) return AIT_OK;
  int64_t group = bits == AIT_WEIGHTS_BF16 ? 0 : q->options.group;
  AIT_TRY(AIT_EMIT(&w, &out, "weight_embedding", ait_arg_value(weight), scales, n->args[1], ait_arg_int(features), ait_arg_int(group),
                   ait_arg_dtype(dtype)));
  return replace(q, n, out, changed);
}

/* ---- the head, and routers
 * --------------------------------------------------------------------------------------------------------------------*/
static void lead(void *ctx, uint32_t v) { ((quantiser *)ctx)->leads[v] = true; }

static void route(void *ctx, uint32_t v) { ((quantiser *)ctx)->routes[v] = true; }

static bool is_product(const ait_node *n) {
  static const char *const names[] = {"linear", "weight_linear", "expert_linear", "matmul", "conv", "attention"};
  for (size_t i = 0; i < AIT_COUNT(names); ++i)
    if (!strcmp(n->op->name, names[i])) return true;
  return false;
}

static void find_leading(quantiser *q) {
  for (ait_node *n = q->g->last; n; n = n->prev) {
    bool leads = is_product(n);
    for (uint32_t i = 0; i < n->result_count && !leads; ++i) leads = n->results[i] != AIT_NO_INDEX && q->leads[n->results[i]];
    if (leads) ait_node_each_operand(n, lead, q);
    bool routes = !strcmp(n->op->name, "topk") || !strcmp(n->op->name, "sort");
    for (uint32_t i = 0; i < n->result_count && !routes && !is_product(n); ++i)
      routes = n->results[i] != AIT_NO_INDEX && q->routes[n->results[i]];
    if (routes) ait_node_each_operand(n, route, q);
  }
}

ait_status ait_graph_quantise(ait_graph *g, const ait_pass_context *context, const ait_quantise_options *options, bool *out_changed) {
  if (g->dialect != AIT_DIALECT_CORE) return AIT_OK;
  quantiser q = {.g = g, .context = context, .options = *options};
  size_t count = g->value_count + 1;
  if (q.options.group <= 0) q.options.group = 32;
  q.leads = ait_alloc_zero(context->allocator, 2 * count, 1);
  if (!q.leads) return AIT_OOM();
  q.routes = q.leads + count;
  find_leading(&q);
  ait_status status = ait_graph_count_uses(g, context->allocator, &q.uses);
  const size_t uses_bytes = g->value_count * sizeof *q.uses; /* rewriting adds values; tables are older */
  for (ait_node *n = g->first, *next; n && status == AIT_OK; n = next) {
    next = n->next;
    if (!strcmp(n->op->name, "linear")) status = linear(&q, n, out_changed);
    else if (!strcmp(n->op->name, "expert_linear")) status = experts(&q, n, out_changed);
    else if (!strcmp(n->op->name, "embedding")) status = embedding(&q, n, out_changed);
  }
  ait_free(context->allocator, q.uses, uses_bytes);
  ait_free(context->allocator, q.leads, 2 * count);
  return status;
}

/* Without a choice of the user: what the format's users do. */
ait_status ait_pass_weights_bf16(ait_graph *g, const ait_pass_context *context, bool *changed) {
  return ait_graph_quantise(g, context, &(ait_quantise_options){.linear = AIT_WEIGHTS_BF16, .head = AIT_WEIGHTS_BF16}, changed);
}
ait_status ait_pass_weights_int8(ait_graph *g, const ait_pass_context *context, bool *changed) {
  return ait_graph_quantise(
      g, context, &(ait_quantise_options){.linear = AIT_WEIGHTS_INT8, .head = AIT_WEIGHTS_INT8, .embedding = AIT_WEIGHTS_INT8}, changed);
}
ait_status ait_pass_weights_int4(ait_graph *g, const ait_pass_context *context, bool *changed) {
  return ait_graph_quantise(
      g, context, &(ait_quantise_options){.linear = AIT_WEIGHTS_INT4, .head = AIT_WEIGHTS_INT8, .embedding = AIT_WEIGHTS_INT8}, changed);
}
