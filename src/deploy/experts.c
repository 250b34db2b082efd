/* Mixtures of experts: rows that choose a matrix each. Two spellings: the chosen matrices are copied out and multiplied row by row; or rows
 * are sorted by expert, multiplied in groups and brought back into order. Both become expert_linear, in the order of the tokens: what
 * stands between a sort and its way back treats rows one by one. Whether that is so, the proof of the whole shows. */
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

/* ---- sorted ---------------------------------------------------------------------------------------------------------------------------*/
typedef struct sorted {
  uint32_t ids, order, values; /* [R]: experts; where the sorted rows come from; experts in order (AIT_NO_INDEX) */
} sorted;

/* x [R, K] sorted, weight [E, K, N], where the groups end; no bias. */
static bool is_grouped(const ait_node *n) {
  if (!strstr(n->op->name, "grouped_mm") && !(n->op_name && strstr(n->op_name, "grouped_mm"))) return false;
  const ait_graph *g = n->graph;
  return n->arg_count >= 3 && n->result_count == 1 && ait_arg_is_tensor(g, &n->args[0]) && ait_arg_is_tensor(g, &n->args[1]) &&
         g->values[n->args[0].as.value].rank == 2 && g->values[n->args[1].as.value].rank == 3 &&
         (n->arg_count < 4 || n->args[3].kind == AIT_ARG_NONE);
}

/* order, or order // k. */
static bool by_order(const ait_graph *g, uint32_t index, const sorted *s, int64_t *k) {
  *k = 1;
  if (index == s->order) return true;
  const ait_node *n = ait_def_of(g, index, "floor_divide");
  return n && ait_arg_is_tensor(g, &n->args[0]) && n->args[0].as.value == s->order && ait_arg_as_int(g, &n->args[1], k) && *k > 0;
}

/* The way back: zeros with 0, 1, … put where the order says; or a sort of the order. */
static bool is_inverse(const ait_graph *g, uint32_t index, const sorted *s) {
  const ait_node *put = ait_def_of(g, index, "index_put"), *again = g->values[index].def;
  if (put && put->args[1].kind == AIT_ARG_LIST && put->args[1].count == 1 && ait_arg_is_tensor(g, &put->args[1].as.list[0]))
    return put->args[1].as.list[0].as.value == s->order && ait_arg_is_tensor(g, &put->args[2]) &&
           ait_def_of(g, put->args[2].as.value, "arange") != NULL;
  return again && !strcmp(again->op->name, "sort") && again->result_count == 2 && again->results[1] == index &&
         ait_arg_is_tensor(g, &again->args[0]) && again->args[0].as.value == s->order;
}

/* x [n, ..] with each row k times. */
static ait_status repeat_rows(const ait_rewrite *r, uint32_t x, int64_t k, uint32_t like, uint32_t *out) {
  ait_graph *g = r->graph;
  const ait_value_info *v = &g->values[x];
  ait_arg tall[AIT_MAX_RANK], wide[AIT_MAX_RANK], flat[AIT_MAX_RANK];
  if (v->rank + 1 > AIT_MAX_RANK) return ait_error(AIT_CODE_LIMIT, "rows of rank %d", v->rank);
  for (int32_t d = 0; d < v->rank; ++d) tall[d + (d > 0)] = wide[d + (d > 0)] = ait_dim_as_arg(g, v->shape[d]);
  tall[1] = ait_arg_int(1), wide[1] = ait_arg_int(k);
  for (int32_t d = 0; d < v->rank; ++d) flat[d] = ait_dim_as_arg(g, g->values[like].shape[d]);
  AIT_TRY(AIT_EMIT(r, out, "reshape", ait_arg_value(x), ait_arg_list(tall, (uint32_t)v->rank + 1)));
  AIT_TRY(AIT_EMIT(r, out, "expand", ait_arg_value(*out), ait_arg_list(wide, (uint32_t)v->rank + 1)));
  return AIT_EMIT(r, out, "reshape", ait_arg_value(*out), ait_arg_list(flat, (uint32_t)v->rank));
}

static ait_status unsort_node(dep_work *w, ait_node *n, const sorted *s, bool *out_changed) {
  ait_graph *g = w->g;
  uint32_t x, index, y;
  int64_t k;
  ait_rewrite r = ait_rewrite_at(g, &w->context, n);
  if (is_grouped(n)) {
    AIT_TRY(emit_expert(w, &r, n->args[0].as.value, n->args[1].as.value, s->ids, true, &y));
  } else if (n->result_count == 1 && chosen(g, n->results[0], &x, &index)) {
    if (index == s->values) AIT_TRY(AIT_EMIT(&r, &y, "index_select", ait_arg_value(x), ait_arg_int(0), ait_arg_value(s->ids)));
    else if (is_inverse(g, index, s)) y = x;
    else if (!by_order(g, index, s, &k)) return AIT_OK;
    else if (k == 1) y = x;
    else AIT_TRY(repeat_rows(&r, x, k, n->results[0], &y));
  } else return AIT_OK;
  *out_changed = true;
  return ait_replace_value(g, n->results[0], y);
}

/* Is there a grouped product behind the sort? */
static bool serves_groups(const ait_node *sort) {
  const ait_graph *g = sort->graph;
  if (strcmp(sort->op->name, "sort") || sort->result_count != 2 || !ait_arg_is_tensor(g, &sort->args[0])) return false;
  const ait_value_info *v = &g->values[sort->args[0].as.value];
  if (v->rank != 1 || !ait_dtype_is_integer(v->dtype)) return false;
  for (const ait_node *n = sort->next; n && strcmp(n->op->name, "sort"); n = n->next)
    if (is_grouped(n)) return true;
  return false;
}

/* Up to the next sort: each layer has its own. */
static ait_status unsort(dep_work *w, const ait_node *sort, bool *out_changed) {
  const sorted s = {.ids = sort->args[0].as.value, .order = sort->results[1], .values = sort->results[0]};
  for (ait_node *n = sort->next, *next; n && !serves_groups(n); n = next) {
    next = n->next;
    AIT_TRY(unsort_node(w, n, &s, out_changed));
  }
  return AIT_OK;
}

ait_status dep_match_experts(dep_work *w) {
  bool changed = false;
  AIT_TRY(dep_match_expert_loops(w, &changed));
  for (ait_node *n = w->g->first, *next; n; n = next) {
    next = n->next;
    if (serves_groups(n)) AIT_TRY(unsort(w, n, &changed));
    else AIT_TRY(match_copied(w, n, &changed));
  }
  return changed ? ait_passes_run(w->g, "dce,fold,simplify,cse,dce", &w->context, NULL, NULL) : AIT_OK;
}
