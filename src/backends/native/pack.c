/* Weights in the form that kernels read, made when compiling. */
#include "backends/native/lower.h"

/* ---- which values are weights ----------------------------------------------------------------------------------------------------*/
static bool const_int(const nat_lower *l, const ait_arg *a, int64_t *out) {
  if (a->kind == AIT_ARG_INT) {
    *out = a->as.i;
    return true;
  }
  if (a->kind != AIT_ARG_DIM || l->region->dims[a->as.dim].op != AIT_DIM_CONST) return false;
  *out = l->region->dims[a->as.dim].value;
  return true;
}

static bool permute_constant(const nat_lower *l, const ait_region_node *n, ait_tensor *t) {
  ait_tensor source = *t;
  if (n->args[1].kind != AIT_ARG_LIST || (int32_t)n->args[1].count != t->rank) return false;
  for (int32_t d = 0; d < t->rank; ++d) {
    int64_t from;
    if (!const_int(l, &n->args[1].as.list[d], &from)) return false;
    if (from < 0) from += t->rank;
    if (from < 0 || from >= t->rank) return false;
    t->shape[d] = source.shape[from];
    t->strides[d] = source.strides[from];
  }
  return true;
}

/* Only the view that weights come through in practice: a transposition, or several. Others are views when shapes are bound. */
static bool constant_of(nat_lower *l, uint32_t value, ait_tensor *out) {
  enum { CHAIN = 8 };
  const ait_region_node *chain[CHAIN];
  int length = 0;
  while (l->input_of[value] == NAT_NONE) {
    uint32_t def = l->def_node[value];
    if (def == NAT_NONE || length == CHAIN) return false;
    const ait_region_node *n = &l->region->nodes[def];
    if (strcmp(n->op, "permute") != 0 || n->args[0].kind != AIT_ARG_VALUE) return false;
    chain[length++] = n;
    value = n->args[0].as.value;
  }
  const ait_region_input *in = &l->region->inputs[l->input_of[value]];
  if (!l->is_static[value] || in->name == NULL || l->options->weights.get == NULL) return false;
  ait_status status = l->options->weights.get(l->options->weights.ctx, in->name, out);
  if (status != AIT_OK) {
    ait_status_ignore(status); /* load says the same when the weight is needed as it is */
    return false;
  }
  while (length > 0) {
    if (!permute_constant(l, chain[--length], out)) return false;
  }
  return true;
}

bool nat_constant(nat_lower *l, uint32_t value, ait_tensor *out) { return constant_of(l, value, out) && out->dtype == AIT_F32; }

/* ---- requests --------------------------------------------------------------------------------------------------------------------*/
/* pack dims of convolutions: groups, IC, OC, KD, KH, KW */
size_t nat_pack_bytes(nat_pack_kind kind, const int64_t dims[6]) {
  size_t product = sizeof(float);
  for (int i = 0; i < 6; ++i) {
    if (dims[i] < 0 || dims[i] > INT32_MAX || ait_mul_overflows(product, (size_t)(dims[i] > 0 ? dims[i] : 1), &product)) return 0;
  }
  if (product > (size_t)1 << 44) return 0;
  int64_t taps = dims[3] * dims[4] * dims[5];
  switch (kind) {
    case NAT_PACK_MATRIX: return (size_t)dims[2] * ait_packed_b_bytes(dims[0], dims[1]);
    case NAT_PACK_CONV: return dims[0] > 0 ? ait_conv_weight_bytes(dims[0], dims[1], dims[2], &dims[3]) : 0;
    case NAT_PACK_WINOGRAD:
      return dims[0] == 1 && dims[3] == 1 && dims[4] == 3 && dims[5] == 3 ? ait_winograd_weight_bytes(dims[1], dims[2]) : 0;
    case NAT_PACK_DEPTHWISE: return (size_t)(taps * dims[2]) * sizeof(float);
    case NAT_PACK_WEIGHT:
      return dims[2] < AIT_WEIGHT_FORM_COUNT ? (size_t)dims[3] * ait_packed_weight_bytes((ait_weight_form)dims[2], dims[0], dims[1]) : 0;
    case NAT_PACK_SCALES: return (size_t)dims[2] * ait_packed_scale_bytes(dims[0], dims[1]);
    case NAT_PACK_TRANSPOSED: return dims[0] > 0 ? (size_t)dims[0] * ait_packed_b_bytes(dims[1] / dims[0], taps * (dims[2] / dims[0])) : 0;
  }
  return 0;
}

static bool same_weight(const ait_tensor *a, const ait_tensor *b) {
  size_t bytes = (size_t)a->rank * sizeof a->strides[0];
  return a->data == b->data && a->rank == b->rank && memcmp(a->strides, b->strides, bytes) == 0;
}

/* A weight that is used twice is packed once. */
static uint32_t packed_before(const nat_lower *l, const nat_pack *pack, const ait_tensor *t) {
  for (size_t i = 0; i < l->job_count; ++i) {
    const nat_pack *p = &l->packs[l->jobs[i].pack];
    if (p->kind == pack->kind && memcmp(p->dims, pack->dims, sizeof p->dims) == 0 && same_weight(&l->jobs[i].tensor, t))
      return l->jobs[i].pack + 1;
  }
  return 0;
}

static ait_status nat_pack_request(nat_lower *l, nat_pack_kind kind, const ait_tensor *t, const int64_t dims[6]) {
  nat_pack pack = {.kind = kind, .size = nat_pack_bytes(kind, dims)};
  memcpy(pack.dims, dims, sizeof pack.dims);
  pack.same_as = packed_before(l, &pack, t);
  void *packs = l->packs, *jobs = l->jobs;
  AIT_TRY(ait_grow(l->allocator, &packs, &l->pack_capacity, l->pack_count + 1, sizeof *l->packs));
  l->packs = packs;
  AIT_TRY(ait_grow(l->allocator, &jobs, &l->job_capacity, l->job_count + 1, sizeof *l->jobs));
  l->jobs = jobs;
  if (pack.same_as == 0) l->jobs[l->job_count++] = (nat_pack_job){(uint32_t)l->pack_count, *t};
  l->packs[l->pack_count++] = pack;
  return AIT_OK;
}

/* ---- packing ---------------------------------------------------------------------------------------------------------------------*/
/* A matrix [K, N], or several [matrices, K, N]. */
static void pack_matrix(const ait_kernels *k, const ait_tensor *t, const int64_t dims[6], float *dst) {
  const int64_t *strides = t->strides + t->rank - 2;
  ait_pack_b_f32 p = {.src = t->data,
                      .dst = dst,
                      .k = dims[0],
                      .n = dims[1],
                      .k_stride = strides[0],
                      .n_stride = strides[1],
                      .batch = {1, dims[2]},
                      .batch_stride = {0, t->rank == 3 ? t->strides[0] : 0}};
  ait_k_pack_b_f32(k, &p, 0, ait_pack_b_f32_units(&p), NULL);
}

/* Strides of a convolution weight as (o, i, kd, kh, kw); spatial dims that it lacks have size 1. */
static void weight_strides(const ait_tensor *t, int64_t strides[5]) {
  int32_t missing = 5 - t->rank;
  strides[0] = t->strides[0];
  strides[1] = t->strides[1];
  for (int32_t d = 2; d < 5; ++d) strides[d] = d - missing >= 2 ? t->strides[d - missing] : 0;
}

static void pack_depthwise(const ait_tensor *t, const int64_t dims[6], float *dst) {
  int64_t s[5], at = 0;
  weight_strides(t, s);
  const float *w = t->data;
  for (int64_t d = 0; d < dims[3]; ++d) {
    for (int64_t h = 0; h < dims[4]; ++h) {
      for (int64_t x = 0; x < dims[5]; ++x) {
        for (int64_t c = 0; c < dims[2]; ++c) dst[at++] = w[c * s[0] + d * s[2] + h * s[3] + x * s[4]];
      }
    }
  }
}

/* Weight of a transposed convolution: [IC][OC/g][KD][KH][KW]. Columns of the product: tap major, channel minor. */
static void pack_transposed(const ait_tensor *t, const int64_t dims[6], float *dst) {
  int64_t s[5], ic = dims[1] / dims[0], oc = dims[2] / dims[0], taps = dims[3] * dims[4] * dims[5], columns = taps * oc;
  weight_strides(t, s);
  const float *w = t->data;
  size_t group_floats = ait_packed_b_bytes(ic, columns) / sizeof(float);
  memset(dst, 0, group_floats * (size_t)dims[0] * sizeof(float));
  for (int64_t g = 0; g < dims[0]; ++g, dst += group_floats) {
    for (int64_t n = 0; n < columns; ++n) {
      int64_t tap = n / oc, o = n % oc;
      int64_t kd = tap / (dims[4] * dims[5]), kh = tap / dims[5] % dims[4], kw = tap % dims[5];
      const float *from = w + g * ic * s[0] + o * s[1] + kd * s[2] + kh * s[3] + kw * s[4];
      float *to = dst + (n / AIT_PANEL) * ic * AIT_PANEL + n % AIT_PANEL;
      for (int64_t k = 0; k < ic; ++k) to[k * AIT_PANEL] = from[k * s[0]];
    }
  }
}

static void pack_weights(const ait_tensor *t, const int64_t dims[6], void *dst) {
  const ait_weight_form form = (ait_weight_form)dims[2];
  size_t from = ait_tensor_bytes(t) / (size_t)(dims[3] > 0 ? dims[3] : 1), to = ait_packed_weight_bytes(form, dims[0], dims[1]);
  for (size_t i = 0; i < (size_t)dims[3]; ++i)
    ait_pack_weight((char *)dst + i * to, form, (const char *)t->data + i * from, dims[0], dims[1]);
}

void nat_pack_fill(const ait_kernels *k, const nat_pack *pack, const ait_tensor *t, void *dst) {
  const int64_t *d = pack->dims;
  int64_t strides[5];
  switch ((nat_pack_kind)pack->kind) {
    case NAT_PACK_MATRIX: pack_matrix(k, t, d, dst); break;
    case NAT_PACK_CONV:
      weight_strides(t, strides);
      ait_pack_conv_weight(dst, t->data, d[0], d[1], d[2], &d[3], strides);
      break;
    case NAT_PACK_WINOGRAD: ait_pack_winograd_weight(dst, t->data, d[1], d[2], t->strides); break;
    case NAT_PACK_DEPTHWISE: pack_depthwise(t, d, dst); break;
    case NAT_PACK_TRANSPOSED: pack_transposed(t, d, dst); break;
    case NAT_PACK_WEIGHT: pack_weights(t, d, dst); break;
    case NAT_PACK_SCALES:
      for (int64_t i = 0; i < d[2]; ++i)
        ait_pack_scales((uint16_t *)dst + (size_t)i * ait_packed_scale_bytes(d[0], d[1]) / sizeof(uint16_t),
                        (const uint16_t *)t->data + i * d[0] * d[1], d[0], d[1]);
      break;
  }
}

/* ---- what a node wants packed ----------------------------------------------------------------------------------------------------*/
static ait_tensor transposed(const ait_tensor *t) {
  ait_tensor r = *t;
  r.shape[0] = t->shape[1];
  r.shape[1] = t->shape[0];
  r.strides[0] = t->strides[1];
  r.strides[1] = t->strides[0];
  return r;
}

static ait_status pack_as_matrix(nat_lower *l, uint32_t value, bool rows_are_outputs) {
  ait_tensor t;
  if (!nat_constant(l, value, &t) || t.rank != 2) return AIT_OK;
  if (rows_are_outputs) t = transposed(&t);
  int64_t dims[6] = {t.shape[0], t.shape[1], 1, 1, 1, 1};
  return nat_pack_request(l, NAT_PACK_MATRIX, &t, dims);
}

ait_weight_form nat_weight_form(ait_dtype dtype) {
  return dtype == AIT_BF16 ? AIT_WEIGHT_BF16 : dtype == AIT_I8 ? AIT_WEIGHT_INT8 : AIT_WEIGHT_INT4;
}

/* The weight, and the scales when there are any; lower.c has checked dtypes and groups. */
static ait_status pack_few_bits(nat_lower *l, const ait_region_node *n, int32_t rank, uint32_t scale_arg) {
  const ait_region_value *x = nat_value(l, n->args[0].as.value);
  ait_tensor w, scales;
  int64_t k;
  if (!constant_of(l, n->args[1].as.value, &w) || w.rank != rank || !ait_tensor_is_contiguous(&w))
    return ait_error(AIT_CODE_INVALID_MODEL, "%s: the weight is not there, or is not dense", n->name);
  const int64_t count = rank == 3 ? w.shape[0] : 1, rows = w.shape[rank - 2], stored = w.shape[rank - 1];
  const ait_dim_expr *last = &l->region->dims[x->shape[x->rank - 1]];
  k = w.dtype != AIT_U8 ? stored : last->op == AIT_DIM_CONST ? last->value : -1;
  if (k < 0 || (w.dtype == AIT_U8 && k / 2 + k % 2 != stored))
    return ait_error(AIT_CODE_INVALID_MODEL, "%s: the weight does not fit the input", n->name);
  AIT_TRY(nat_pack_request(l, NAT_PACK_WEIGHT, &w, (const int64_t[6]){k, rows, nat_weight_form(w.dtype), count, 1, 1}));
  if (w.dtype == AIT_BF16) return AIT_OK;
  int64_t group = n->args[4].as.i, groups = k / group + (k % group != 0);
  if (!constant_of(l, n->args[scale_arg].as.value, &scales) || scales.rank != rank || !ait_tensor_is_contiguous(&scales) ||
      scales.shape[rank - 2] != rows || scales.shape[rank - 1] != groups || (rank == 3 && scales.shape[0] != count) ||
      scales.dtype != AIT_BF16)
    return ait_error(AIT_CODE_INVALID_MODEL, "%s: the scales are not there, or do not fit the weight", n->name);
  return nat_pack_request(l, NAT_PACK_SCALES, &scales, (const int64_t[6]){groups, rows, count, 1, 1, 1});
}

/* One matrix after the other. Weights that are no constants stay where they lie. */
static ait_status pack_experts(nat_lower *l, const ait_region_node *n) {
  ait_tensor t;
  if (nat_value(l, n->args[1].as.value)->dtype != AIT_F32)
    return constant_of(l, n->args[1].as.value, &t) && ait_tensor_is_contiguous(&t) ? pack_few_bits(l, n, 3, 3) : AIT_OK;
  if (!nat_constant(l, n->args[1].as.value, &t) || t.rank != 3) return AIT_OK;
  ait_tensor turned = t;
  turned.shape[1] = t.shape[2], turned.shape[2] = t.shape[1];
  turned.strides[1] = t.strides[2], turned.strides[2] = t.strides[1];
  return nat_pack_request(l, NAT_PACK_MATRIX, &turned, (const int64_t[6]){turned.shape[1], turned.shape[2], turned.shape[0], 1, 1, 1});
}

/* The numbers of argument `arg` are all `want`. */
static bool all_are(const nat_lower *l, const ait_region_node *n, uint32_t arg, int64_t want) {
  if (arg >= n->arg_count) return false;
  const ait_arg *a = &n->args[arg];
  int64_t v;
  if (a->kind != AIT_ARG_LIST) return const_int(l, a, &v) && v == want;
  for (uint32_t i = 0; i < a->count; ++i) {
    if (!const_int(l, &a->as.list[i], &v) || v != want) return false;
  }
  return a->count > 0;
}

/* auto: with few channels the transformations cost more than the products they save; beyond 128 Ki weights per tap their transformed form
 * (16 numbers for 9) streams from memory at batch 1 (measured on Zen 3: 512 -> 512 on 7 x 7 pixels gains nothing, 256 -> 256 on 14 x 14
 * takes half). */
bool nat_takes_winograd(nat_lower *l, const ait_region_node *n) {
  ait_tensor w;
  if (l->winograd == NAT_WINOGRAD_OFF || n->arg_count < 7 || n->args[1].kind != AIT_ARG_VALUE) return false;
  bool reversed = n->arg_count > 7 && (n->args[7].kind != AIT_ARG_BOOL || n->args[7].as.b);
  if (reversed || !all_are(l, n, 3, 1) || !all_are(l, n, 5, 1) || !all_are(l, n, 6, 1)) return false;
  if (!nat_constant(l, n->args[1].as.value, &w) || w.rank != 4 || w.shape[2] != 3 || w.shape[3] != 3) return false;
  int64_t ic = w.shape[1], oc = w.shape[0];
  return l->winograd == NAT_WINOGRAD_ON || (ic >= 16 && oc >= 16 && ic * oc <= (int64_t)1 << 17);
}

static ait_status pack_conv(nat_lower *l, const ait_region_node *n) {
  ait_tensor t;
  uint32_t value = n->args[1].as.value;
  if (!nat_constant(l, value, &t) || t.rank < 3 || t.rank > 5) return AIT_OK;
  int64_t groups = n->arg_count > 6 && n->args[6].kind == AIT_ARG_INT ? n->args[6].as.i : 1;
  bool reversed = n->arg_count > 7 && n->args[7].kind == AIT_ARG_BOOL && n->args[7].as.b;
  if (groups < 1) return AIT_OK;
  int64_t dims[6] = {groups, reversed ? t.shape[0] : t.shape[1] * groups, reversed ? t.shape[1] * groups : t.shape[0], 1, 1, 1};
  for (int32_t d = 2; d < t.rank; ++d) dims[6 - t.rank + d] = t.shape[d];
  bool depthwise = !reversed && groups > 1 && t.shape[1] == 1 && dims[2] % groups == 0;
  if (nat_takes_winograd(l, n)) return nat_pack_request(l, NAT_PACK_WINOGRAD, &t, dims);
  return nat_pack_request(l, reversed ? NAT_PACK_TRANSPOSED : depthwise ? NAT_PACK_DEPTHWISE : NAT_PACK_CONV, &t, dims);
}

/* Per layer and direction: W_ih, W_hh, and biases, as torch orders them; the biases stay as they are. */
static ait_status pack_recurrent(nat_lower *l, const ait_arg *params, bool biases) {
  if (params->kind != AIT_ARG_LIST) return AIT_OK;
  uint32_t per_cell = biases ? 4 : 2, wanted = 0;
  size_t before = l->pack_count, jobs_before = l->job_count;
  for (uint32_t i = 0; i < params->count; ++i) {
    if (i % per_cell > 1 || params->as.list[i].kind != AIT_ARG_VALUE) continue;
    wanted++;
    AIT_TRY(pack_as_matrix(l, params->as.list[i].as.value, true));
  }
  if (l->pack_count - before != wanted) { /* all or none */
    l->job_count = jobs_before;
    l->pack_count = before;
  }
  return AIT_OK;
}

ait_status nat_pack_node(nat_lower *l, const ait_region_node *n, nat_kind kind) {
  bool gru = kind == NAT_GRU;
  switch (kind) {
    case NAT_LINEAR: return pack_as_matrix(l, n->args[1].as.value, true);
    case NAT_WEIGHT_LINEAR: return pack_few_bits(l, n, 2, 2);
    case NAT_EXPERT_LINEAR: return pack_experts(l, n);
    case NAT_MATMUL: return pack_as_matrix(l, n->args[1].as.value, false);
    case NAT_CONV: return pack_conv(l, n);
    case NAT_LSTM:
    case NAT_GRU: return pack_recurrent(l, &n->args[gru ? 2 : 3], n->args[gru ? 3 : 4].kind == AIT_ARG_BOOL && n->args[gru ? 3 : 4].as.b);
    default: return AIT_OK;
  }
}
