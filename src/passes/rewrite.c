#include "passes/rewrite.h"
#include <stdio.h>

ait_rewrite ait_rewrite_at(ait_graph *g, const ait_pass_context *context, ait_node *n) {
  return (ait_rewrite){.graph = g, .context = context, .at = n, .name = n->name, .module = n->module};
}

ait_status ait_emit(const ait_rewrite *w, const char *op, const ait_arg *args, uint32_t count, uint32_t *out) {
  return ait_build(w->graph, w->at, op, w->name, w->module, args, count, out, 1);
}

ait_status ait_emit_cast(const ait_rewrite *w, uint32_t value, ait_dtype dtype, uint32_t *out) {
  *out = value;
  if (w->graph->values[value].dtype == dtype) return AIT_OK;
  return AIT_EMIT(w, out, "cast", ait_arg_value(value), ait_arg_dtype(dtype));
}

void ait_note(const ait_rewrite *w, const char *pass, const char *code, const char *format, ...) {
  if (!w->context || !w->context->note) return;
  char text[256];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  w->context->note(w->context->note_ctx, pass, code, w->name ? w->name : "", text);
}

ait_node *ait_def_of(const ait_graph *g, uint32_t value, const char *op) {
  ait_node *n = g->values[value].def;
  return n && !(n->flags & AIT_NODE_INPLACE) && !strcmp(n->op->name, op) ? n : NULL;
}

/* ---- constants -------------------------------------------------------------------------------------------------------------------*/
static ait_status add_weight(ait_graph *g, const char *name, const ait_tensor *t) {
  ait_weight w = {.name = name, .dtype = t->dtype, .rank = t->rank};
  memcpy(w.shape, t->shape, sizeof w.shape);
  memcpy(w.strides, t->strides, sizeof w.strides);
  AIT_TRY(ait_weight_store_add_storage(g->weights, ait_storage_retain(t->storage), &w.storage));
  return ait_weight_store_add(g->weights, &w);
}

ait_status ait_constant_new(ait_graph *g, const ait_tensor *t, uint32_t *out) {
  char name[32];
  uint64_t h = ait_hash(t->data, ait_tensor_bytes(t), (uint64_t)t->dtype);
  h = ait_hash(t->shape, (size_t)t->rank * sizeof *t->shape, h);
  snprintf(name, sizeof name, "folded.%016llx", (unsigned long long)h);
  for (size_t i = 0; i < g->input_count; ++i)
    if (g->inputs[i].kind == AIT_INPUT_CONSTANT && g->inputs[i].name && !strcmp(g->inputs[i].name, name))
      return *out = g->inputs[i].value, AIT_OK;
  ait_dim shape[AIT_MAX_RANK];
  for (int32_t d = 0; d < t->rank; ++d) AIT_TRY(ait_dim_const(g, t->shape[d], &shape[d]));
  if (!ait_weight_store_find(g->weights, name)) AIT_TRY(add_weight(g, name, t));
  ait_value_info info = {.type = AIT_TYPE_TENSOR, .dtype = t->dtype, .rank = t->rank, .shape = shape, .scalar = AIT_NO_INDEX};
  AIT_TRY(ait_graph_add_value(g, name, &info, out));
  ait_region_input input = {.value = *out, .kind = AIT_INPUT_CONSTANT, .name = name, .user_index = -1};
  return ait_graph_add_input(g, &input);
}

/* ---- arguments -------------------------------------------------------------------------------------------------------------------*/
ait_arg ait_dim_as_arg(const ait_graph *g, ait_dim d) {
  int64_t v;
  return ait_dim_is_const(g, d, &v) ? ait_arg_int(v) : ait_arg_dim(d);
}

bool ait_arg_as_dim(const ait_graph *g, const ait_arg *a, ait_arg *out) {
  *out = *a;
  if (a->kind == AIT_ARG_INT) return true;
  if (a->kind == AIT_ARG_DIM) return *out = ait_dim_as_arg(g, a->as.dim), true;
  if (a->kind != AIT_ARG_VALUE || g->values[a->as.value].type != AIT_TYPE_INT) return false;
  ait_dim d = g->values[a->as.value].scalar;
  if (d == AIT_NO_INDEX || !ait_dim_is_known(g, d)) return false;
  *out = ait_dim_as_arg(g, d);
  return true;
}

bool ait_arg_as_int(const ait_graph *g, const ait_arg *a, int64_t *out) {
  ait_arg v;
  if (!ait_arg_as_dim(g, a, &v) || v.kind != AIT_ARG_INT) return false;
  *out = v.as.i;
  return true;
}

bool ait_arg_as_number(const ait_graph *g, const ait_arg *a, double *out) {
  int64_t i;
  if (a->kind == AIT_ARG_FLOAT) return *out = a->as.f, true;
  if (a->kind == AIT_ARG_BOOL) return *out = a->as.b, true;
  if (ait_arg_as_int(g, a, &i)) return *out = (double)i, true;
  return false;
}

bool ait_arg_as_dims(const ait_graph *g, const ait_arg *a, ait_arg out[AIT_MAX_RANK], uint32_t *count) {
  *count = 0;
  if (a->kind == AIT_ARG_NONE) return true;
  if (a->kind != AIT_ARG_LIST) return *count = 1, ait_arg_as_dim(g, a, &out[0]);
  if (a->count > AIT_MAX_RANK) return false;
  for (uint32_t i = 0; i < a->count; ++i)
    if (!ait_arg_as_dim(g, &a->as.list[i], &out[i])) return false;
  *count = a->count;
  return true;
}

bool ait_arg_as_ints(const ait_graph *g, const ait_arg *a, int64_t out[AIT_MAX_RANK], uint32_t *count) {
  ait_arg dims[AIT_MAX_RANK];
  if (!ait_arg_as_dims(g, a, dims, count)) return false;
  for (uint32_t i = 0; i < *count; ++i) {
    if (dims[i].kind != AIT_ARG_INT) return false;
    out[i] = dims[i].as.i;
  }
  return true;
}

bool ait_arg_flag(const ait_arg *a) { return a->kind == AIT_ARG_BOOL && a->as.b; }

bool ait_shape_args(const ait_graph *g, uint32_t value, ait_arg out[AIT_MAX_RANK]) {
  const ait_value_info *v = &g->values[value];
  if (!ait_shape_known(g, v)) return false;
  for (int32_t d = 0; d < v->rank; ++d) out[d] = ait_dim_as_arg(g, v->shape[d]);
  return true;
}

bool ait_shape_known(const ait_graph *g, const ait_value_info *v) {
  if (v->type != AIT_TYPE_TENSOR || v->rank < 0 || v->rank > AIT_MAX_RANK) return false;
  for (int32_t d = 0; d < v->rank; ++d)
    if (!ait_dim_is_known(g, v->shape[d])) return false;
  return true;
}

bool ait_same_shape(const ait_value_info *a, const ait_value_info *b) {
  if (a->rank != b->rank || a->rank < 0) return false;
  for (int32_t d = 0; d < a->rank; ++d)
    if (a->shape[d] != b->shape[d]) return false;
  return true;
}

bool ait_wrap_dim(int64_t *dim, int32_t rank) {
  if (rank == 0) rank = 1;
  if (*dim < 0) *dim += rank;
  return *dim >= 0 && *dim < rank;
}

/* ---- constants -------------------------------------------------------------------------------------------------------------------*/
static const ait_region_input *input_of(const ait_graph *g, uint32_t value) {
  if (g->values[value].def) return NULL;
  for (size_t i = 0; i < g->input_count; ++i)
    if (g->inputs[i].value == value) return &g->inputs[i];
  return NULL;
}

bool ait_is_constant(const ait_graph *g, uint32_t value) {
  const ait_region_input *in = input_of(g, value);
  if (!in || in->mutated || g->root != g) return false;
  if (in->kind != AIT_INPUT_PARAMETER && in->kind != AIT_INPUT_BUFFER && in->kind != AIT_INPUT_CONSTANT) return false;
  for (size_t i = 0; i < g->output_count; ++i)
    if (g->outputs[i].kind == AIT_OUTPUT_STATE && !strcmp(g->outputs[i].name, in->name)) return false;
  return true;
}

bool ait_constant_tensor(const ait_graph *g, uint32_t value, ait_tensor *out) {
  if (!ait_is_constant(g, value)) return false;
  ait_weights weights = ait_weight_store_provider(g->root->weights);
  ait_status status = weights.get(weights.ctx, input_of(g, value)->name, out);
  bool found = status == AIT_OK;
  ait_status_ignore(status);
  return found;
}

bool ait_scalar_constant(const ait_graph *g, uint32_t value, double *out) {
  ait_node *full = ait_def_of(g, value, "full");
  if (full) return ait_arg_as_number(g, &full->args[1], out);
  ait_tensor t;
  if (!ait_constant_tensor(g, value, &t) || ait_tensor_count(&t) != 1 || ait_dtype_is_complex(t.dtype)) return false;
  *out = ait_element_f64(t.data, t.dtype);
  return true;
}

ait_status ait_replace_value(ait_graph *g, uint32_t old_value, uint32_t new_value) {
  const ait_value_info *old = &g->values[old_value];
  ait_value_info like = g->values[new_value];
  if (like.def && old->type == AIT_TYPE_TENSOR && old->rank == like.rank && old->rank >= 0 && ait_shape_known(g, old)) {
    like.shape = old->shape;
    AIT_TRY(ait_graph_set_metadata(g, new_value, &like));
  }
  ait_graph_replace_uses(g, old_value, new_value);
  return AIT_OK;
}
