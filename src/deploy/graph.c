/* The graph that deploy works on: opened, lowered to core, for one flat batch; and what is added to it. */
#include "deploy/internal.h"
#include "tensor/safetensors.h"
#include "tune/tune.h"
#include <stdio.h>

/* ---- opening --------------------------------------------------------------------------------------------------------------------------*/
static ait_status open_checkpoint(ait_allocator a, const dep_source *source, const char *weights, ait_graph **out) {
  ait_tensor_file file;
  ait_map by_name;
  ait_tensor_file_init(&file, a);
  ait_map_init(&by_name, a);
  ait_status status = ait_safetensors_open(weights, &file);
  if (!status && source->extra) status = ait_safetensors_open(source->extra, &file);
  for (size_t i = 0; i < file.count && !status; ++i) status = ait_map_put(&by_name, file.items[i].name, &file.items[i].tensor);
  for (uint32_t i = 0; i < source->rename_count && !status; ++i) {
    void *tensor;
    if (ait_map_get(&by_name, source->renames[i].to, &tensor)) status = ait_map_put(&by_name, source->renames[i].from, tensor);
  }
  ait_import_options import = {.weights = &by_name};
  if (!status) status = ait_import_pt2(a, source->graph, &import, out);
  if (!status) status = ait_error_context(ait_import_give_weights(*out, &by_name), "weights '%s'", weights);
  ait_map_deinit(&by_name);
  ait_tensor_file_deinit(&file);
  return status;
}

ait_status dep_open(ait_allocator a, const ait_deploy_options *options, const dep_source *source, ait_graph **out) {
  const char *weights = options->weights ? options->weights : source->checkpoint;
  ait_load_options load;
  ait_load_options_init(&load);
  load.allocator = a;
  load.weights = options->weights;
  *out = NULL;
  ait_status status = source->checkpoint ? open_checkpoint(a, source, weights, out) : ait_graph_open(source->graph, &load, out);
  if (!status) return AIT_OK;
  ait_graph_destroy(*out);
  *out = NULL;
  return status;
}

/* ---- one size for a symbol ------------------------------------------------------------------------------------------------------------*/
typedef struct binding {
  ait_graph *g;
  ait_dim *to; /* by old dim */
  size_t count;
  int64_t value;
  uint32_t symbol;
} binding;

static ait_status bind_dims(binding *b) {
  ait_graph *g = b->g;
  for (size_t d = 0; d < b->count; ++d) {
    const ait_dim_expr e = g->dims[d];
    b->to[d] = (ait_dim)d;
    if (e.op == AIT_DIM_CONST || e.op == AIT_DIM_UNKNOWN || d == 0) continue;
    if (e.op == AIT_DIM_SYMBOL) {
      if (e.a == b->symbol) AIT_TRY(ait_dim_const(g, b->value, &b->to[d]));
      continue;
    }
    if (b->to[e.a] == e.a && b->to[e.b] == e.b) continue;
    AIT_TRY(ait_dim_make(g, e.op, b->to[e.a], b->to[e.b], &b->to[d]));
  }
  return AIT_OK;
}

static ait_dim mapped(const binding *b, ait_dim d) { return d < b->count ? b->to[d] : d; }

static ait_status bind_arg(const binding *b, ait_arg *a) {
  if (a->kind == AIT_ARG_DIM) *a = ait_dim_as_arg(b->g, mapped(b, a->as.dim));
  if (a->kind != AIT_ARG_LIST || a->count == 0) return AIT_OK;
  ait_arg *items = AIT_ARENA_ARRAY(b->g->arena, ait_arg, a->count);
  if (!items) return AIT_OOM();
  memcpy(items, a->as.list, a->count * sizeof *items);
  for (uint32_t i = 0; i < a->count; ++i) AIT_TRY(bind_arg(b, &items[i]));
  a->as.list = items;
  return AIT_OK;
}

static ait_status bind_value(const binding *b, uint32_t v) {
  ait_value_info like = b->g->values[v];
  ait_dim shape[AIT_MAX_RANK];
  if (like.type == AIT_TYPE_INT && like.scalar != AIT_NO_INDEX) like.scalar = mapped(b, like.scalar);
  else if (like.type != AIT_TYPE_TENSOR || like.rank < 1 || like.rank > AIT_MAX_RANK) return AIT_OK;
  for (int32_t d = 0; d < like.rank; ++d) shape[d] = mapped(b, like.shape[d]);
  like.shape = shape;
  return ait_graph_set_metadata(b->g, v, &like);
}

ait_status dep_bind_symbol(ait_graph *g, const char *symbol, int64_t value) {
  binding b = {.g = g, .count = g->dim_count, .value = value, .symbol = AIT_NO_INDEX};
  for (size_t i = 0; i < g->symbol_count; ++i)
    if (!strcmp(g->symbols[i].name, symbol)) b.symbol = (uint32_t)i;
  b.to = ait_alloc(g->allocator, b.count * sizeof *b.to, 4);
  if (!b.to) return AIT_OOM();
  ait_status status = bind_dims(&b);
  for (size_t v = 0; v < g->value_count && !status; ++v) status = bind_value(&b, (uint32_t)v);
  for (ait_node *n = g->first; n && !status; n = n->next)
    for (uint32_t i = 0; i < n->arg_count && !status; ++i) status = bind_arg(&b, &n->args[i]);
  for (size_t i = 0; i < g->output_count && !status; ++i) status = bind_arg(&b, &g->outputs[i].arg);
  for (size_t i = 0; i < g->guard_count; ++i) {
    g->guards[i].left = mapped(&b, g->guards[i].left);
    g->guards[i].right = mapped(&b, g->guards[i].right);
  }
  ait_free(g->allocator, b.to, b.count * sizeof *b.to);
  return status;
}

/* ---- precision ------------------------------------------------------------------------------------------------------------------------*/
static bool is_small(ait_dtype d) { return d == AIT_BF16 || d == AIT_F16; }

static void widen_arg(ait_arg *a) {
  if (a->kind == AIT_ARG_DTYPE && is_small((ait_dtype)a->as.i)) a->as.i = AIT_F32;
}

static ait_status widen_weights(ait_graph *g) {
  ait_weight_store *store;
  AIT_TRY(ait_weight_store_create(g->allocator, &store));
  ait_weights provider = ait_weight_store_provider(g->weights);
  ait_status status = AIT_OK;
  for (size_t i = 0; i < ait_weight_store_count(g->weights) && !status; ++i) {
    const ait_weight *from = ait_weight_store_at(g->weights, i);
    ait_weight to = *from;
    ait_tensor t, wide;
    if (!is_small(from->dtype)) {
      status = ait_weight_store_add_storage(store, ait_storage_retain(ait_weight_store_storage(g->weights, from->storage)), &to.storage);
    } else {
      status = provider.get(provider.ctx, from->name, &t);
      if (!status) status = ait_tensor_cast(g->allocator, &t, AIT_F32, &wide);
      if (status) break;
      to.dtype = AIT_F32, to.offset = 0;
      memcpy(to.strides, wide.strides, sizeof to.strides);
      status = ait_weight_store_add_storage(store, ait_storage_retain(wide.storage), &to.storage);
      ait_tensor_release(&wide);
    }
    if (!status) status = ait_weight_store_add(store, &to);
  }
  if (status) {
    ait_weight_store_release(store);
    return status;
  }
  ait_weight_store_release(g->weights);
  g->weights = store;
  return AIT_OK;
}

ait_status dep_widen(ait_graph *g) {
  bool any = false;
  for (size_t v = 0; v < g->value_count; ++v) {
    ait_value_info *info = &g->values[v];
    if (info->type != AIT_TYPE_TENSOR || !is_small(info->dtype)) continue;
    info->dtype = AIT_F32;
    any = true;
  }
  if (!any) return AIT_OK;
  for (ait_node *n = g->first; n; n = n->next)
    for (uint32_t i = 0; i < n->arg_count; ++i) widen_arg(&n->args[i]);
  return g->weights ? widen_weights(g) : AIT_OK;
}

/* ---- what is added --------------------------------------------------------------------------------------------------------------------*/
ait_status dep_symbol(dep_work *w, const char *name, ait_dim *out) {
  bool fresh = !ait_graph_symbol(w->g, name);
  if (fresh) {
    AIT_TRY(ait_dim_symbol(w->g, name, out));
    ait_symbol *s = ait_graph_symbol(w->g, name);
    s->min = 1;
    s->max = INT32_MAX;
    s->hint = -1;
    s->backed = true;
    return AIT_OK;
  }
  return ait_dim_symbol(w->g, name, out);
}

ait_status dep_add_input(dep_work *w, const char *name, ait_dtype dtype, int32_t rank, const ait_dim *shape, uint32_t *out) {
  ait_value_info like = {.type = AIT_TYPE_TENSOR, .dtype = dtype, .rank = rank, .shape = shape, .scalar = AIT_NO_INDEX};
  int32_t index = 0;
  AIT_TRY(ait_graph_add_value(w->g, name, &like, out));
  for (size_t i = 0; i < w->g->input_count; ++i) index += w->g->inputs[i].kind == AIT_INPUT_USER;
  ait_region_input input = {.value = *out, .kind = AIT_INPUT_USER, .name = name, .user_index = index};
  return ait_graph_add_input(w->g, &input);
}

ait_status dep_add_weight(dep_work *w, const char *name, ait_tensor *t, uint32_t *out) {
  ait_weight weight = {.name = name, .dtype = t->dtype, .rank = t->rank};
  ait_dim shape[AIT_MAX_RANK];
  memcpy(weight.shape, t->shape, sizeof weight.shape);
  memcpy(weight.strides, t->strides, sizeof weight.strides);
  AIT_TRY(ait_weight_store_add_storage(w->g->weights, ait_storage_retain(t->storage), &weight.storage));
  AIT_TRY(ait_weight_store_add(w->g->weights, &weight));
  for (int32_t d = 0; d < t->rank; ++d) AIT_TRY(ait_dim_const(w->g, t->shape[d], &shape[d]));
  ait_value_info like = {.type = AIT_TYPE_TENSOR, .dtype = t->dtype, .rank = t->rank, .shape = shape, .scalar = AIT_NO_INDEX};
  AIT_TRY(ait_graph_add_value(w->g, name, &like, out));
  ait_region_input input = {.value = *out, .kind = AIT_INPUT_CONSTANT, .name = name, .user_index = -1};
  return ait_graph_add_input(w->g, &input);
}

ait_status dep_find_group(dep_work *w, ait_lm_kind kind, int64_t window, uint32_t *out) {
  char name[32];
  ait_dim shape[2];
  for (*out = 0; *out < w->group_count; ++*out)
    if (w->groups[*out].kind == kind && w->groups[*out].window == window) return AIT_OK;
  if (w->group_count == AIT_LM_MAX_GROUPS)
    return ait_error(AIT_CODE_LIMIT, "the model's layers have more than %d different windows", AIT_LM_MAX_GROUPS);
  dep_group *group = &w->groups[w->group_count++];
  *group = (dep_group){.kind = kind, .window = window, .table = AIT_NO_INDEX};
  if (kind != AIT_LM_PAGES) return AIT_OK;
  snprintf(name, sizeof name, "table%u", *out);
  AIT_TRY(dep_symbol(w, "sequences", &shape[0]));
  AIT_TRY(dep_symbol(w, name, &shape[1]));
  snprintf(name, sizeof name, "pages.%u", *out);
  return dep_add_input(w, name, AIT_I32, 2, shape, &group->table);
}

ait_status dep_add_state(dep_work *w, const char *name, uint32_t group, ait_dtype dtype, int32_t rank, const int64_t *shape,
                         uint32_t *out) {
  char symbol[32];
  ait_dim dims[AIT_MAX_RANK];
  void *states = w->states;
  AIT_TRY(ait_grow(w->a, &states, &w->state_capacity, w->state_count + 1, sizeof *w->states));
  w->states = states;
  char *kept = ait_arena_strdup(&w->arena, name, strlen(name));
  if (!kept) return AIT_OOM();
  w->states[w->state_count++] = (dep_state){kept, group};
  if (w->groups[group].kind == AIT_LM_SLOTS) snprintf(symbol, sizeof symbol, "slots");
  else if (w->groups[group].kind == AIT_LM_MEMORY) snprintf(symbol, sizeof symbol, "units");
  else snprintf(symbol, sizeof symbol, "pages%u", group);
  AIT_TRY(dep_symbol(w, symbol, &dims[0]));
  for (int32_t d = 1; d < rank; ++d) AIT_TRY(ait_dim_const(w->g, shape[d], &dims[d]));
  return dep_add_input(w, name, dtype, rank, dims, out);
}

int64_t dep_rows_of_table(const ait_graph *g, uint32_t ids) {
  int64_t least = INT32_MAX, size;
  for (const ait_node *n = g->first; n; n = n->next) {
    bool table = !strcmp(n->op->name, "embedding"), rows = !strcmp(n->op->name, "index_select");
    if (!table && !rows) continue;
    uint32_t v = n->args[table ? 1 : 2].as.value;
    for (int i = 0; i < 8 && g->values[v].def; ++i) {
      const ait_node *d = g->values[v].def;
      if (strcmp(d->op->name, "reshape") && strcmp(d->op->name, "cast") && strcmp(d->op->name, "expand")) break;
      v = d->args[0].as.value;
    }
    if (v == ids && ait_dim_is_const(g, g->values[n->args[0].as.value].shape[0], &size) && size < least) least = size;
  }
  return least;
}
