/* Aliasing operators become one of aten.view, aten.reshape, aten.permute, aten.slice.Tensor, aten.select.int, aten.expand, aten.alias, with
 * their sizes as dims. Still raw: results alias as before. What has sizes that are not known before running stays as it is. */
#include "passes/rewrite.h"

typedef struct views {
  ait_rewrite w;
  ait_node *n;
  bool changed;
} views;

typedef ait_status (*view_fn)(views *v, bool *done);

/* ---- sizes become dims -----------------------------------------------------------------------------------------------------------*/
static ait_status dims_in_arg(ait_graph *g, ait_arg *a, bool *changed) {
  ait_arg d;
  if (a->kind == AIT_ARG_VALUE && g->values[a->as.value].type == AIT_TYPE_INT && ait_arg_as_dim(g, a, &d)) {
    *a = d;
    *changed = true;
  }
  if (a->kind != AIT_ARG_LIST) return AIT_OK;
  bool any = false;
  for (uint32_t i = 0; i < a->count; ++i) any |= a->as.list[i].kind == AIT_ARG_VALUE && ait_arg_as_dim(g, &a->as.list[i], &d);
  if (!any) return AIT_OK;
  ait_arg *list = AIT_ARENA_ARRAY(g->arena, ait_arg, a->count);
  if (!list) return AIT_OOM();
  for (uint32_t i = 0; i < a->count; ++i)
    if (!ait_arg_as_dim(g, &a->as.list[i], &list[i])) list[i] = a->as.list[i];
  a->as.list = list;
  *changed = true;
  return AIT_OK;
}

static ait_status dims_in_node(ait_graph *g, ait_node *n, bool *changed) {
  if (n->op->traits & (AIT_OP_SYMBOLIC | AIT_OP_HIGHER | AIT_OP_EFFECT)) return AIT_OK;
  for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(dims_in_arg(g, &n->args[i], changed));
  return AIT_OK;
}

/* ---- replacing -------------------------------------------------------------------------------------------------------------------*/
/* A view operator of one result that has the metadata of `like`. */
static ait_status emit_view(views *v, const char *op, const ait_arg *args, uint32_t count, const ait_value_info *like, uint32_t *out) {
  const ait_op *row = ait_op_find(op);
  ait_value_info info = *like;
  ait_node *n;
  ait_arg full[AIT_MAX_RANK];
  for (uint32_t i = 0; i < row->param_count && i < AIT_MAX_RANK; ++i) full[i] = i < count ? args[i] : row->params[i].default_value;
  AIT_TRY(ait_graph_add_value(v->w.graph, v->w.name ? v->w.name : op, &info, out));
  return ait_graph_add_node(v->w.graph, v->w.at, row, row->name, 0, full, row->param_count, out, 1, v->w.name, v->w.module, &n);
}

static ait_status replace_with_view(views *v, const char *op, const ait_arg *args, uint32_t count) {
  ait_graph *g = v->w.graph;
  uint32_t old = v->n->results[0], fresh;
  ait_value_info like = g->values[old];
  AIT_TRY(emit_view(v, op, args, count, &like, &fresh));
  ait_graph_replace_uses(g, old, fresh);
  ait_graph_remove_node(g, v->n);
  v->changed = true;
  return AIT_OK;
}

static ait_status to_shape(views *v, const char *op, bool *done) {
  ait_arg shape[AIT_MAX_RANK];
  uint32_t result = v->n->results[0];
  if (result == AIT_NO_INDEX || !ait_shape_args(v->w.graph, result, shape) || !ait_arg_is_tensor(v->w.graph, &v->n->args[0])) return AIT_OK;
  *done = true;
  ait_arg args[2] = {v->n->args[0], ait_arg_list(shape, (uint32_t)v->w.graph->values[result].rank)};
  return replace_with_view(v, op, args, 2);
}
static ait_status to_view(views *v, bool *done) { return to_shape(v, "aten.view", done); }
static ait_status to_reshape(views *v, bool *done) { return to_shape(v, "aten.reshape", done); }
static ait_status to_expand(views *v, bool *done) { return to_shape(v, "aten.expand", done); }
static ait_status to_alias(views *v, bool *done) {
  *done = true;
  return replace_with_view(v, "aten.alias", v->n->args, 1);
}

static ait_status replace_with_permute(views *v, const int64_t *order, int32_t rank) {
  ait_arg list[AIT_MAX_RANK];
  for (int32_t i = 0; i < rank; ++i) list[i] = ait_arg_int(order[i]);
  ait_arg args[2] = {v->n->args[0], ait_arg_list(list, (uint32_t)rank)};
  return replace_with_view(v, "aten.permute", args, 2);
}

/* Rank of argument 0, or -1. */
static int32_t rank_of(const views *v) {
  const ait_arg *a = &v->n->args[0];
  return ait_arg_is_tensor(v->w.graph, a) ? v->w.graph->values[a->as.value].rank : -1;
}

static ait_status to_transpose(views *v, bool *done) {
  int64_t order[AIT_MAX_RANK], a = -2, b = -1;
  int32_t rank = rank_of(v);
  if (rank < 0 || rank > AIT_MAX_RANK) return AIT_OK;
  if (v->n->arg_count >= 3) {
    if (!ait_arg_as_int(v->w.graph, &v->n->args[1], &a) || !ait_arg_as_int(v->w.graph, &v->n->args[2], &b)) return AIT_OK;
  } else if (rank < 2) { /* t of a vector, mT does not exist below 2 */
    return to_alias(v, done);
  }
  if (!ait_wrap_dim(&a, rank) || !ait_wrap_dim(&b, rank)) return AIT_OK;
  for (int32_t i = 0; i < rank; ++i) order[i] = i;
  if (rank) order[a] = b, order[b] = a;
  *done = true;
  return replace_with_permute(v, order, rank);
}

static ait_status to_reverse(views *v, bool *done) {
  int64_t order[AIT_MAX_RANK];
  int32_t rank = rank_of(v);
  if (rank < 0 || rank > AIT_MAX_RANK) return AIT_OK;
  for (int32_t i = 0; i < rank; ++i) order[i] = rank - 1 - i;
  *done = true;
  return replace_with_permute(v, order, rank);
}

static ait_status to_permute(views *v, bool *done) {
  int64_t order[AIT_MAX_RANK];
  uint32_t count;
  int32_t rank = rank_of(v);
  if (!ait_arg_as_ints(v->w.graph, &v->n->args[1], order, &count) || (int32_t)count != rank) return AIT_OK;
  for (int32_t i = 0; i < rank; ++i)
    if (!ait_wrap_dim(&order[i], rank)) return AIT_OK;
  *done = true;
  return replace_with_permute(v, order, rank);
}

static ait_status to_movedim(views *v, bool *done) {
  int64_t from[AIT_MAX_RANK], to[AIT_MAX_RANK], order[AIT_MAX_RANK];
  bool used[AIT_MAX_RANK] = {false}, filled[AIT_MAX_RANK] = {false};
  uint32_t n, m;
  int32_t rank = rank_of(v);
  const ait_graph *g = v->w.graph;
  if (rank < 1 || rank > AIT_MAX_RANK || !ait_arg_as_ints(g, &v->n->args[1], from, &n) || !ait_arg_as_ints(g, &v->n->args[2], to, &m) ||
      n != m)
    return AIT_OK;
  for (uint32_t i = 0; i < n; ++i) {
    if (!ait_wrap_dim(&from[i], rank) || !ait_wrap_dim(&to[i], rank)) return AIT_OK;
    order[to[i]] = from[i];
    filled[to[i]] = used[from[i]] = true;
  }
  for (int32_t i = 0, next = 0; i < rank; ++i) {
    if (filled[i]) continue;
    while (used[next]) ++next;
    order[i] = next++;
  }
  *done = true;
  return replace_with_permute(v, order, rank);
}

/* ---- slices ----------------------------------------------------------------------------------------------------------------------*/
/* A Python index into [0, size], as a dim: negative counts from the end, then clamped. false when its sign is not known. */
static ait_status clamp_index(ait_graph *g, const ait_arg *a, ait_dim size, bool *ok, ait_dim *out) {
  ait_arg d;
  *ok = ait_arg_as_dim(g, a, &d);
  if (!*ok) return AIT_OK;
  ait_dim zero, i;
  AIT_TRY(ait_dim_const(g, 0, &zero));
  if (d.kind == AIT_ARG_INT) {
    if (d.as.i == INT64_MAX) return *out = size, AIT_OK;
    AIT_TRY(ait_dim_const(g, d.as.i, &i));
  } else {
    i = d.as.dim;
  }
  int64_t low, high;
  ait_dim_range(g, i, &low, &high);
  if (high < 0) AIT_TRY(ait_dim_make(g, AIT_DIM_ADD, i, size, &i));
  else if (low < 0) return *ok = false, AIT_OK;
  AIT_TRY(ait_dim_make(g, AIT_DIM_MAX, i, zero, &i));
  return ait_dim_make(g, AIT_DIM_MIN, i, size, out);
}

static ait_status emit_slice(views *v, uint32_t x, int64_t dim, ait_dim start, ait_dim end, int64_t step, const ait_value_info *like,
                             uint32_t *out) {
  const ait_graph *g = v->w.graph;
  ait_arg args[5] = {ait_arg_value(x), ait_arg_int(dim), ait_dim_as_arg(g, start), ait_dim_as_arg(g, end), ait_arg_int(step)};
  return emit_view(v, "aten.slice.Tensor", args, 5, like, out);
}

static ait_status slice_of(views *v, const ait_arg *dim_arg, const ait_arg *start, const ait_arg *end, int64_t step, bool *done) {
  ait_graph *g = v->w.graph;
  int64_t dim;
  const ait_arg *x = &v->n->args[0];
  if (!ait_arg_is_tensor(g, x) || !ait_shape_known(g, &g->values[x->as.value]) || !ait_arg_as_int(g, dim_arg, &dim)) return AIT_OK;
  ait_value_info from = g->values[x->as.value];
  if (!ait_wrap_dim(&dim, from.rank) || from.rank == 0 || step < 1 || !ait_shape_known(g, &g->values[v->n->results[0]])) return AIT_OK;
  bool ok;
  ait_dim a, b;
  AIT_TRY(clamp_index(g, start, from.shape[dim], &ok, &a));
  if (ok) AIT_TRY(clamp_index(g, end, from.shape[dim], &ok, &b));
  if (!ok) return AIT_OK;
  AIT_TRY(ait_dim_make(g, AIT_DIM_MAX, a, b, &b)); /* end before start: empty */
  ait_value_info like = g->values[v->n->results[0]];
  uint32_t fresh;
  *done = true;
  AIT_TRY(emit_slice(v, x->as.value, dim, a, b, step, &like, &fresh));
  ait_graph_replace_uses(g, v->n->results[0], fresh);
  ait_graph_remove_node(g, v->n);
  v->changed = true;
  return AIT_OK;
}

static ait_status to_slice(views *v, bool *done) {
  const ait_arg *a = v->n->args;
  ait_arg start = a[2].kind == AIT_ARG_NONE ? ait_arg_int(0) : a[2], end = a[3].kind == AIT_ARG_NONE ? ait_arg_int(INT64_MAX) : a[3];
  int64_t step;
  if (!ait_arg_as_int(v->w.graph, &a[4], &step)) return AIT_OK;
  return slice_of(v, &a[1], &start, &end, step, done);
}

static ait_status to_narrow(views *v, bool *done) {
  ait_graph *g = v->w.graph;
  int64_t start, length;
  if (!ait_arg_as_int(g, &v->n->args[2], &start) || !ait_arg_as_int(g, &v->n->args[3], &length) || start < 0) return AIT_OK;
  ait_arg a = ait_arg_int(start), b = ait_arg_int(start + length);
  return slice_of(v, &v->n->args[1], &a, &b, 1, done);
}

/* An index in range, as an argument: negative ones count from the end. */
static ait_status select_index(ait_graph *g, const ait_arg *a, ait_dim size, bool *ok, ait_arg *out) {
  *ok = ait_arg_as_dim(g, a, out);
  if (!*ok) return AIT_OK;
  ait_dim i;
  int64_t low, high;
  if (out->kind == AIT_ARG_INT) AIT_TRY(ait_dim_const(g, out->as.i, &i));
  else i = out->as.dim;
  ait_dim_range(g, i, &low, &high);
  if (high < 0) AIT_TRY(ait_dim_make(g, AIT_DIM_ADD, i, size, &i));
  else if (low < 0) *ok = false;
  *out = ait_dim_as_arg(g, i);
  return AIT_OK;
}

static ait_status to_select(views *v, bool *done) {
  ait_graph *g = v->w.graph;
  int64_t dim;
  const ait_arg *x = &v->n->args[0];
  if (!ait_arg_is_tensor(g, x) || !ait_shape_known(g, &g->values[x->as.value]) || !ait_arg_as_int(g, &v->n->args[1], &dim)) return AIT_OK;
  const ait_value_info *from = &g->values[x->as.value];
  if (from->rank == 0 || !ait_wrap_dim(&dim, from->rank)) return AIT_OK;
  bool ok;
  ait_arg index;
  AIT_TRY(select_index(g, &v->n->args[2], from->shape[dim], &ok, &index));
  if (!ok) return AIT_OK;
  ait_arg args[3] = {*x, ait_arg_int(dim), index};
  *done = true;
  return replace_with_view(v, "aten.select.int", args, 3);
}

/* ---- lists: each getitem becomes its own view -----------------------------------------------------------------------------------*/
static bool only_getitems(const ait_graph *g, uint32_t list) {
  for (const ait_node *u = g->first; u; u = u->next)
    for (uint32_t i = 0; i < u->arg_count; ++i) {
      if (u->args[i].kind == AIT_ARG_LIST)
        for (uint32_t k = 0; k < u->args[i].count; ++k)
          if (u->args[i].as.list[k].kind == AIT_ARG_VALUE && u->args[i].as.list[k].as.value == list) return false;
      if (u->args[i].kind == AIT_ARG_VALUE && u->args[i].as.value == list && strcmp(u->op->name, "_operator.getitem")) return false;
    }
  for (size_t i = 0; i < g->output_count; ++i)
    if (g->outputs[i].arg.kind == AIT_ARG_VALUE && g->outputs[i].arg.as.value == list) return false;
  return true;
}

typedef ait_status (*element_fn)(views *v, uint32_t x, int64_t dim, int64_t k, const ait_value_info *like, uint32_t *out);

/* Element k of split, chunk, tensor_split: the slice after the elements before it. */
static ait_status split_element(views *v, uint32_t x, int64_t dim, int64_t k, const ait_value_info *like, uint32_t *out) {
  ait_graph *g = v->w.graph;
  ait_value_info list = g->values[v->n->results[0]];
  ait_dim start, end;
  AIT_TRY(ait_dim_const(g, 0, &start));
  for (int64_t i = 0; i < k; ++i) AIT_TRY(ait_dim_make(g, AIT_DIM_ADD, start, list.elements[i].shape[dim], &start));
  AIT_TRY(ait_dim_make(g, AIT_DIM_ADD, start, list.elements[k].shape[dim], &end));
  return emit_slice(v, x, dim, start, end, 1, like, out);
}

static ait_status unbind_element(views *v, uint32_t x, int64_t dim, int64_t k, const ait_value_info *like, uint32_t *out) {
  ait_arg args[3] = {ait_arg_value(x), ait_arg_int(dim), ait_arg_int(k)};
  return emit_view(v, "aten.select.int", args, 3, like, out);
}

static bool elements_known(const ait_graph *g, const ait_value_info *list, int32_t rank, int64_t dim) {
  if (list->type != AIT_TYPE_TENSOR_LIST || !list->elements) return false;
  for (uint32_t i = 0; i < list->list_count; ++i)
    if (!ait_shape_known(g, &list->elements[i]) || list->elements[i].rank != rank || dim >= (rank ? rank : 1)) return false;
  return true;
}

static ait_status replace_elements(views *v, int64_t dim, int32_t element_rank, element_fn element, bool *done) {
  ait_graph *g = v->w.graph;
  uint32_t list = v->n->results[0], x = v->n->args[0].as.value;
  if (!only_getitems(g, list) || !elements_known(g, &g->values[list], element_rank, element_rank == g->values[x].rank ? dim : 0))
    return AIT_OK;
  for (ait_node *u = v->n->next, *next; u; u = next) {
    next = u->next;
    int64_t k;
    if (strcmp(u->op->name, "_operator.getitem") || u->args[0].kind != AIT_ARG_VALUE || u->args[0].as.value != list) continue;
    if (!ait_arg_as_int(g, &u->args[1], &k) || k < 0 || k >= g->values[list].list_count)
      return ait_error(AIT_CODE_INVALID_MODEL, "node '%s': element %lld of a list of %u", u->name, (long long)k,
                       g->values[list].list_count);
    ait_value_info like = g->values[u->results[0]];
    uint32_t fresh;
    v->w.name = u->name;
    AIT_TRY(element(v, x, dim, k, &like, &fresh));
    ait_graph_replace_uses(g, u->results[0], fresh);
    ait_graph_remove_node(g, u);
  }
  ait_graph_remove_node(g, v->n);
  *done = v->changed = true;
  return AIT_OK;
}

static ait_status list_of(views *v, uint32_t dim_arg, int32_t lost_rank, element_fn element, bool *done) {
  int64_t dim;
  int32_t rank = rank_of(v);
  if (rank < 1 || !ait_arg_as_int(v->w.graph, &v->n->args[dim_arg], &dim) || !ait_wrap_dim(&dim, rank)) return AIT_OK;
  v->w.at = v->n; /* where the base is surely as the list saw it */
  return replace_elements(v, dim, rank - lost_rank, element, done);
}
static ait_status split_list(views *v, bool *done) { return list_of(v, 2, 0, split_element, done); }
static ait_status unbind_list(views *v, bool *done) { return list_of(v, 1, 1, unbind_element, done); }

/* ---- to: the same tensor, or a copy ---------------------------------------------------------------------------------------------*/
static ait_status to_same(views *v, bool *done) {
  const ait_graph *g = v->w.graph;
  int32_t copy = ait_op_param(v->n->op, "copy");
  if (copy >= 0 && ait_arg_flag(&v->n->args[copy])) return AIT_OK;
  if (!ait_arg_is_tensor(g, &v->n->args[0]) || g->values[v->n->args[0].as.value].dtype != g->values[v->n->results[0]].dtype) return AIT_OK;
  int32_t format = ait_op_param(v->n->op, "memory_format");
  if (format >= 0 && v->n->args[format].kind == AIT_ARG_INT && v->n->args[format].as.i > 1) return AIT_OK;
  return to_alias(v, done);
}

static ait_status eval_dropout(views *v, bool *done) {
  int32_t train = ait_op_param(v->n->op, "train");
  if (train < 0 || v->n->args[train].kind != AIT_ARG_BOOL || v->n->args[train].as.b) return AIT_OK;
  return to_alias(v, done);
}

static const struct {
  const char *op;
  view_fn run;
} rows[] = {
    {"aten.unsqueeze", to_view},
    {"aten.squeeze", to_view},
    {"aten.squeeze.dim", to_view},
    {"aten.squeeze.dims", to_view},
    {"aten.view", to_view},
    {"aten.view_as", to_view},
    {"aten.unflatten.int", to_view},
    {"aten._unsafe_view", to_reshape},
    {"aten.reshape", to_reshape},
    {"aten.reshape_as", to_reshape},
    {"aten.flatten.using_ints", to_reshape},
    {"aten.ravel", to_reshape},
    {"aten.expand", to_expand},
    {"aten.expand_as", to_expand},
    {"aten.broadcast_to", to_expand},
    {"aten.alias", to_alias},
    {"aten.detach", to_alias},
    {"aten.lift_fresh", to_alias},
    {"aten.positive", to_alias},
    {"aten.transpose.int", to_transpose},
    {"aten.swapaxes", to_transpose},
    {"aten.swapdims", to_transpose},
    {"aten.t", to_transpose},
    {"aten.mT", to_transpose},
    {"aten.numpy_T", to_reverse},
    {"aten.permute", to_permute},
    {"aten.movedim.int", to_movedim},
    {"aten.movedim.intlist", to_movedim},
    {"aten.moveaxis.int", to_movedim},
    {"aten.moveaxis.intlist", to_movedim},
    {"aten.slice.Tensor", to_slice},
    {"aten.narrow", to_narrow},
    {"aten.select.int", to_select},
    {"aten.split.Tensor", split_list},
    {"aten.split_with_sizes", split_list},
    {"aten.split.sizes", split_list},
    {"aten.chunk", split_list},
    {"aten.tensor_split.sections", split_list},
    {"aten.tensor_split.indices", split_list},
    {"aten.unsafe_chunk", split_list},
    {"aten.unsafe_split.Tensor", split_list},
    {"aten.unbind.int", unbind_list},
    {"aten.to.dtype", to_same},
    {"aten.to.dtype_layout", to_same},
    {"aten.to.device", to_same},
    {"aten.to.other", to_same},
    {"aten.type_as", to_same},
    {"aten.dropout", eval_dropout},
    {"aten.alpha_dropout", eval_dropout},
    {"aten.feature_dropout", eval_dropout},
};

/* An in-place operator that only changes metadata (detach_, squeeze_): its result is the view. */
static void drop_inplace_of_views(ait_node *n) {
  int32_t train = ait_op_param(n->op, "train"); /* dropout_ in eval mode */
  bool identity = train >= 0 && n->args[train].kind == AIT_ARG_BOOL && !n->args[train].as.b;
  if ((n->op->traits & AIT_OP_VIEW) || identity) n->flags &= ~(uint32_t)AIT_NODE_INPLACE;
}

static ait_status run_graph(ait_graph *g, const ait_pass_context *context, bool *changed, int depth) {
  if (depth > 32) return ait_error(AIT_CODE_LIMIT, "graphs are nested more than 32 deep");
  for (ait_node *n = g->first, *next; n; n = next) {
    next = n->next;
    for (uint32_t i = 0; i < n->arg_count; ++i)
      if (n->args[i].kind == AIT_ARG_GRAPH) AIT_TRY(run_graph((ait_graph *)(uintptr_t)n->args[i].as.graph, context, changed, depth + 1));
    drop_inplace_of_views(n);
    if (n->flags & AIT_NODE_INPLACE) continue;
    AIT_TRY(dims_in_node(g, n, changed));
    views v = {.w = ait_rewrite_at(g, context, n), .n = n};
    ait_node *prev = n->prev;
    bool done = false;
    for (size_t r = 0; r < AIT_COUNT(rows) && !done; ++r)
      if (!strcmp(rows[r].op, n->op->name) && n->result_count == 1) AIT_TRY(rows[r].run(&v, &done));
    if (next && next->removed) next = prev ? prev->next : g->first; /* lists remove the getitems behind them */
    *changed |= v.changed;
  }
  return AIT_OK;
}

/* A size that is returned needs no node to compute it. */
static void dims_in_outputs(ait_graph *g) {
  for (size_t i = 0; i < g->output_count; ++i) {
    ait_arg *a = &g->outputs[i].arg, dim;
    if (a->kind == AIT_ARG_VALUE && g->values[a->as.value].type == AIT_TYPE_INT && ait_arg_as_dim(g, a, &dim)) *a = dim;
  }
}

ait_status ait_pass_views(ait_graph *g, const ait_pass_context *context, bool *changed) {
  AIT_TRY(run_graph(g, context, changed, 0));
  dims_in_outputs(g);
  return AIT_OK;
}
