/* Fewer bits: weights by the quantisation pass; keys and values by other pools. */
#include "deploy/internal.h"
#include "passes/quantise.h"
#include <stdio.h>

static ait_status read_bits(const char *option, const char *text, ait_weight_bits absent, ait_weight_bits *out) {
  static const char *const names[] = {
      [AIT_WEIGHTS_KEEP] = "keep", [AIT_WEIGHTS_BF16] = "bf16", [AIT_WEIGHTS_INT8] = "int8", [AIT_WEIGHTS_INT4] = "int4"};
  *out = absent;
  if (!text) return AIT_OK;
  for (size_t i = 0; i < AIT_COUNT(names); ++i)
    if (!strcmp(names[i], text)) return *out = (ait_weight_bits)i, AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "%s '%s' is not known", option, text), "bf16, int8, int4 or keep");
}

static ait_status read_weights(const ait_deploy_options *o, ait_quantise_options *q) {
  *q = (ait_quantise_options){.group = o->group};
  AIT_TRY(read_bits("--quantize", o->quantize, AIT_WEIGHTS_KEEP, &q->linear));
  AIT_TRY(read_bits("--embedding", o->embedding, AIT_WEIGHTS_KEEP, &q->embedding));
  AIT_TRY(read_bits("--head", o->head, q->linear, &q->head));
  if (o->group && o->group != 32 && o->group != 64 && o->group != 128)
    return ait_error(AIT_CODE_INVALID_ARGUMENT, "groups of %lld weights: 32, 64 or 128 are possible", (long long)o->group);
  return AIT_OK;
}

static ait_status read_pools(const ait_deploy_options *o, ait_dtype *out) {
  const char *text = o->kv_dtype;
  *out = AIT_F32;
  if (!text || !strcmp(text, "float32")) return AIT_OK;
  if (!strcmp(text, "bfloat16") || !strcmp(text, "bf16")) return *out = AIT_BF16, AIT_OK;
  if (!strcmp(text, "int8")) return *out = AIT_I8, AIT_OK;
  return ait_error_hint(ait_error(AIT_CODE_INVALID_ARGUMENT, "--kv-dtype '%s' is not known", text), "float32, bfloat16 or int8");
}

ait_status dep_reduce_check(const ait_deploy_options *options) {
  ait_quantise_options weights;
  ait_dtype pools;
  AIT_TRY(read_weights(options, &weights));
  return read_pools(options, &pools);
}

static ait_status reduce_weights(dep_work *w, ait_graph *g, bool *any) {
  ait_quantise_options q;
  bool changed = false;
  AIT_TRY(read_weights(w->options, &q));
  if (g != w->g) q.head = q.linear; /* an encoder has none */
  if (!q.linear && !q.embedding && !q.head) return AIT_OK;
  *any = true;
  AIT_TRY(ait_graph_quantise(g, &w->context, &q, &changed));
  return ait_passes_run(g, "dce", &w->context, NULL, NULL);
}

/* The graph is in float32, whatever the checkpoint is in. */
static ait_status keep_tables(dep_work *w, ait_graph *g) {
  ait_quantise_options q;
  bool changed = false;
  AIT_TRY(read_weights(w->options, &q));
  if (q.embedding) return AIT_OK;
  q = (ait_quantise_options){.exact_tables = true, .exact_shared_tables = q.head != AIT_WEIGHTS_KEEP && g == w->g};
  AIT_TRY(ait_graph_quantise(g, &w->context, &q, &changed));
  return changed ? ait_passes_run(g, "dce", &w->context, NULL, NULL) : AIT_OK;
}

ait_status dep_keep_tables(dep_work *w) {
  AIT_TRY(keep_tables(w, w->g));
  return w->encoder ? keep_tables(w, w->encoder) : AIT_OK;
}

static ait_status set_dtype(dep_work *w, uint32_t value, ait_dtype dtype) {
  ait_value_info like = w->g->values[value];
  like.dtype = dtype;
  return ait_graph_set_metadata(w->g, value, &like);
}

static uint32_t group_of(const dep_work *w, uint32_t pool) {
  for (size_t i = 0; i < w->state_count; ++i)
    if (!strcmp(w->states[i].name, w->g->values[pool].name)) return w->states[i].group;
  return 0;
}

/* One scale for each row of a head in the pool. */
static ait_status add_scales(dep_work *w, uint32_t pool, ait_arg *out) {
  char name[64];
  int64_t shape[3] = {0};
  uint32_t value;
  const ait_value_info *v = &w->g->values[pool];
  for (int32_t d = 1; d < 3; ++d)
    if (!ait_dim_is_const(w->g, v->shape[d], &shape[d])) return ait_error(AIT_CODE_INTERNAL, "the shape of a pool is not known");
  snprintf(name, sizeof name, "%s.scale", v->name);
  AIT_TRY(dep_add_state(w, name, group_of(w, pool), AIT_F32, 3, shape, &value));
  *out = ait_arg_value(value);
  return AIT_OK;
}

static ait_status reduce_pools(dep_work *w, bool *any) {
  ait_dtype dtype;
  AIT_TRY(read_pools(w->options, &dtype));
  if (dtype == AIT_F32) return AIT_OK;
  *any = true;
  for (ait_node *n = w->g->first; n; n = n->next) {
    if (strcmp(n->op->name, "cached_attention")) continue;
    for (uint32_t i = 5; i < 7; ++i) {
      AIT_TRY(set_dtype(w, n->args[i].as.value, dtype));
      if (dtype == AIT_I8) AIT_TRY(add_scales(w, n->args[i].as.value, &n->args[i + 2]));
    }
  }
  return AIT_OK;
}

ait_status dep_reduce(dep_work *w, bool *out_any) {
  *out_any = false;
  AIT_TRY(reduce_weights(w, w->g, out_any));
  if (w->encoder) AIT_TRY(reduce_weights(w, w->encoder, out_any));
  return reduce_pools(w, out_any);
}
