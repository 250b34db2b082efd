/* Mixtures of experts, spelled as copies: the matrices that rows choose are copied out and multiplied row by row. They become
 * expert_linear, which reads them where they lie. */
#include "deploy/internal.h"
#include <stdio.h>

/* weight[ids] along its first dimension. */
static bool chosen(const ait_graph *g, uint32_t value, uint32_t *weight, uint32_t *ids) {
  const ait_node *n = g->values[value].def;
  if (!n || n->arg_count < 2) return false;
  const ait_arg *index = NULL;
  int64_t dim;
  if ((!strcmp(n->op->name, "index") || !strcmp(n->op->name, "aten.index.Tensor")) && n->args[1].kind == AIT_ARG_LIST &&
      n->args[1].count == 1)
    index = &n->args[1].as.list[0];
  if (!strcmp(n->op->name, "index_select") && ait_arg_as_int(g, &n->args[1], &dim) && dim == 0) index = &n->args[2];
  if (!index || !ait_arg_is_tensor(g, index) || !ait_arg_is_tensor(g, &n->args[0])) return false;
  *weight = n->args[0].as.value;
  *ids = index->as.value;
  return g->values[*ids].rank == 1 && ait_dtype_is_integer(g->values[*ids].dtype) && g->values[*ids].dtype != AIT_BOOL;
}

static bool size_is(const ait_graph *g, uint32_t v, int32_t d, int64_t want) {
  int64_t size;
  return ait_dim_is_const(g, g->values[v].shape[d], &size) && size == want;
}

/* [R, N] of rows [R, K]; `turned`: the matrices are [E, K, N]. */
static ait_status emit_expert(dep_work *w, const ait_rewrite *r, uint32_t x, uint32_t weight, uint32_t ids, bool turned, uint32_t *out) {
  ait_arg order[3] = {ait_arg_int(0), ait_arg_int(2), ait_arg_int(1)};
  AIT_UNUSED(w);
  if (turned) AIT_TRY(AIT_EMIT(r, &weight, "permute", ait_arg_value(weight), ait_arg_list(order, 3)));
  return AIT_EMIT(r, out, "expert_linear", ait_arg_value(x), ait_arg_value(weight), ait_arg_value(ids));
}

/* weight[ids] x or x weight[ids], x one column or row. */
static ait_status match_copied(dep_work *w, ait_node *n, bool *out_changed) {
  ait_graph *g = w->g;
  uint32_t weight, ids, x, y;
  if (strcmp(n->op->name, "matmul")) return AIT_OK;
  bool left = chosen(g, n->args[0].as.value, &weight, &ids);
  if (!left && !chosen(g, n->args[1].as.value, &weight, &ids)) return AIT_OK;
  x = n->args[left ? 1 : 0].as.value;
  const ait_value_info *v = &g->values[x], *o = &g->values[n->results[0]];
  if (g->values[weight].rank != 3 || v->rank != 3 || !ait_is_constant(g, weight) || !size_is(g, x, left ? 2 : 1, 1)) return AIT_OK;
  ait_rewrite r = ait_rewrite_at(g, &w->context, n);
  ait_arg flat[2] = {ait_dim_as_arg(g, v->shape[0]), ait_dim_as_arg(g, v->shape[left ? 1 : 2])}, shape[3];
  for (int32_t d = 0; d < 3; ++d) shape[d] = ait_dim_as_arg(g, o->shape[d]);
  AIT_TRY(AIT_EMIT(&r, &x, "reshape", ait_arg_value(x), ait_arg_list(flat, 2)));
  AIT_TRY(emit_expert(w, &r, x, weight, ids, !left, &y));
  AIT_TRY(AIT_EMIT(&r, &y, "reshape", ait_arg_value(y), ait_arg_list(shape, 3)));
  *out_changed = true;
  return ait_replace_value(g, n->results[0], y);
}

ait_status dep_match_experts(dep_work *w) {
  bool changed = false;
  for (ait_node *n = w->g->first, *next; n; n = next) {
    next = n->next;
    AIT_TRY(match_copied(w, n, &changed));
  }
  return changed ? ait_passes_run(w->g, "dce,fold,simplify,cse,dce", &w->context, NULL, NULL) : AIT_OK;
}
