/* Mixtures of experts, spelled as a loop: for each expert the tokens that chose it are picked out by a condition, computed, and added back.
 * How many they are depends on the data, so nothing of it could be cached. When the experts differ by their weights only, all become one:
 * every token with every one of its choices is a row, weights are stacked, and expert_linear takes the matrix that a row chose. */
#include "deploy/internal.h"
#include <stdio.h>

enum { MAX_REGION = 48, MAX_EXPERTS = 512 };

typedef struct pick {
  ait_node *where;
  uint32_t mask, coords[2]; /* [T], [k, T] or [T, k]; a value for each of its dimensions, AIT_NO_INDEX when nobody reads it */
  ait_dim picked;           /* how many: a symbol that only data tells */
  ait_node *nodes[MAX_REGION], *sink;
  uint32_t count;
} pick;

typedef struct loop {
  dep_work *w;
  pick *picks;
  uint32_t count;
  int32_t token_axis; /* of the masks */
  int64_t choices;
  ait_dim tokens, rows;
  uint32_t ids, any;          /* [R] int64; [R, 1] bool: whether an expert was chosen at all */
  uint32_t twins[MAX_REGION]; /* of the first pick's nodes */
  ait_rewrite r;
} loop;

/* ---- finding --------------------------------------------------------------------------------------------------------------------------*/
static bool is_pick(const ait_graph *g, const ait_node *n) {
  if ((strcmp(n->op->name, "aten.where") && strcmp(n->op->name, "aten.nonzero_numpy")) || n->arg_count < 1) return false;
  const ait_value_info *v = &g->values[n->args[0].as.value];
  return ait_arg_is_tensor(g, &n->args[0]) && (v->rank == 1 || v->rank == 2) && n->result_count == 1;
}

static bool reads(const ait_graph *g, const ait_arg *a, uint32_t value) {
  if (a->kind == AIT_ARG_VALUE) return a->as.value == value;
  for (uint32_t i = 0; a->kind == AIT_ARG_LIST && i < a->count; ++i)
    if (reads(g, &a->as.list[i], value)) return true;
  return false;
}

static bool node_reads(const ait_node *n, uint32_t value) {
  for (uint32_t i = 0; i < n->arg_count && value != AIT_NO_INDEX; ++i)
    if (reads(n->graph, &n->args[i], value)) return true;
  return false;
}

static bool belongs(const pick *p, const ait_node *n) {
  if (n->result_count != 1 || n->results[0] == AIT_NO_INDEX || n->graph->values[n->results[0]].type != AIT_TYPE_TENSOR) return false;
  if (!ait_dtype_is_float(n->graph->values[n->results[0]].dtype)) return false; /* questions about their number */
  if (node_reads(n, p->coords[0]) || node_reads(n, p->coords[1])) return true;
  for (uint32_t i = 0; i < p->count; ++i)
    if (node_reads(n, p->nodes[i]->results[0])) return true;
  return false;
}

/* acc + what the tokens gave, added at their places. */
static bool is_sink(const ait_graph *g, const pick *p, const ait_node *n, int32_t token_axis) {
  int64_t dim, alpha = 1;
  return !strcmp(n->op->name, "aten.index_add") && ait_arg_as_int(g, &n->args[1], &dim) && dim == 0 && ait_arg_is_tensor(g, &n->args[2]) &&
         n->args[2].as.value == p->coords[token_axis] &&
         (n->arg_count < 5 || n->args[4].kind == AIT_ARG_NONE || (ait_arg_as_int(g, &n->args[4], &alpha) && alpha == 1));
}

static bool read_pick(const ait_graph *g, ait_node *where, int32_t token_axis, pick *p) {
  *p = (pick){.where = where, .mask = where->args[0].as.value, .coords = {AIT_NO_INDEX, AIT_NO_INDEX}};
  for (ait_node *n = where->next; n && !p->sink; n = n->next) {
    int64_t index;
    if (!strcmp(n->op->name, "_operator.getitem") && node_reads(n, where->results[0])) {
      if (!ait_arg_as_int(g, &n->args[1], &index) || index < 0 || index > 1) return false;
      p->coords[index] = n->results[0];
      p->picked = g->values[n->results[0]].shape[0];
    } else if (is_sink(g, p, n, token_axis)) {
      p->sink = n;
    } else if (belongs(p, n)) {
      if (p->count == MAX_REGION) return false;
      p->nodes[p->count++] = n;
    }
  }
  return p->sink && p->count > 0 && p->coords[token_axis] != AIT_NO_INDEX;
}

/* ---- are two of them alike? -----------------------------------------------------------------------------------------------------------*/
/* Place of a value in the pick: its nodes first, then its coordinates; -1: it comes from outside. */
static int32_t place_of(const pick *p, uint32_t value) {
  for (uint32_t i = 0; i < p->count; ++i)
    if (p->nodes[i]->results[0] == value) return (int32_t)i;
  for (int32_t i = 0; i < 2; ++i)
    if (p->coords[i] != AIT_NO_INDEX && p->coords[i] == value) return MAX_REGION + i;
  return -1;
}

static bool same_shape(const ait_graph *g, uint32_t a, uint32_t b) {
  const ait_value_info *x = &g->values[a], *y = &g->values[b];
  int64_t size;
  if (x->type != AIT_TYPE_TENSOR || x->rank != y->rank || x->dtype != y->dtype) return false;
  for (int32_t d = 0; d < x->rank; ++d)
    if (x->shape[d] != y->shape[d] || !ait_dim_is_const(g, x->shape[d], &size)) return false;
  return true;
}

static bool alike_arg(const ait_graph *g, const pick *p, const ait_arg *a, const pick *q, const ait_arg *b) {
  if (a->kind != b->kind) return false;
  if (a->kind == AIT_ARG_DIM) return a->as.dim == b->as.dim || (a->as.dim == p->picked && b->as.dim == q->picked);
  if (a->kind == AIT_ARG_LIST) {
    for (uint32_t i = 0; i < a->count && a->count == b->count; ++i)
      if (!alike_arg(g, p, &a->as.list[i], q, &b->as.list[i])) return false;
    return a->count == b->count;
  }
  if (a->kind != AIT_ARG_VALUE) return ait_arg_equal(a, b);
  int32_t at = place_of(p, a->as.value);
  if (at >= 0 || place_of(q, b->as.value) >= 0) return at == place_of(q, b->as.value);
  return a->as.value == b->as.value ||
         (ait_is_constant(g, a->as.value) && ait_is_constant(g, b->as.value) && same_shape(g, a->as.value, b->as.value));
}

static bool alike(const ait_graph *g, const pick *p, const pick *q) {
  const ait_value_info *a = &g->values[p->mask], *b = &g->values[q->mask];
  if (p->count != q->count || a->rank != b->rank || a->shape[0] != b->shape[0] || (a->rank == 2 && a->shape[1] != b->shape[1]))
    return false;
  for (uint32_t i = 0; i < p->count; ++i) {
    const ait_node *m = p->nodes[i], *n = q->nodes[i];
    if (m->op != n->op || m->arg_count != n->arg_count) return false;
    for (uint32_t k = 0; k < m->arg_count; ++k)
      if (!alike_arg(g, p, &m->args[k], q, &n->args[k])) return false;
  }
  return place_of(p, p->sink->args[3].as.value) == place_of(q, q->sink->args[3].as.value);
}

/* The picks from `first` on whose sums follow each other. */
static ait_status collect(loop *l, ait_node *first) {
  ait_graph *g = l->w->g;
  const ait_value_info *v = &g->values[first->args[0].as.value];
  l->choices = 1, l->token_axis = 0;
  if (v->rank == 2) {
    l->token_axis = ait_dim_is_const(g, v->shape[0], &l->choices) ? 1 : 0;
    if (!ait_dim_is_const(g, v->shape[1 - l->token_axis], &l->choices)) return AIT_OK;
  }
  l->tokens = v->shape[l->token_axis];
  for (ait_node *n = first; n && l->count < MAX_EXPERTS; n = n->next) {
    pick *p = &l->picks[l->count];
    if (!is_pick(g, n) || !read_pick(g, n, l->token_axis, p)) continue;
    if (l->count > 0 && (!alike(g, &l->picks[0], p) || p->sink->args[0].as.value != l->picks[l->count - 1].sink->results[0])) break;
    l->count++;
  }
  return AIT_OK;
}

/* ---- building -------------------------------------------------------------------------------------------------------------------------*/
static ait_arg dim_arg(const loop *l, ait_dim d) { return ait_dim_as_arg(l->w->g, d == l->picks[0].picked ? l->rows : d); }

/* x [.., T, ..] or [.., T, k, ..] or [.., k, T, ..] at dims `at` and on as rows there. */
static ait_status spread(loop *l, uint32_t x, int32_t at, bool both, uint32_t *out) {
  ait_graph *g = l->w->g;
  const ait_value_info *v = &g->values[x];
  ait_arg tall[AIT_MAX_RANK], wide[AIT_MAX_RANK], flat[AIT_MAX_RANK], order[AIT_MAX_RANK];
  int32_t rank = v->rank;
  if (rank + 1 > AIT_MAX_RANK) return ait_error(AIT_CODE_LIMIT, "rows of rank %d", rank);
  for (int32_t d = 0, to = 0; d < rank; ++d) {
    order[d] = ait_arg_int(both && l->token_axis == 1 && d - at < 2 && d >= at ? at + 1 - (d - at) : d);
    if (both && d == at + 1) continue;
    flat[to++] = d == at ? ait_dim_as_arg(g, l->rows) : ait_dim_as_arg(g, v->shape[d]);
  }
  for (int32_t d = 0; d < rank; ++d) tall[d + (d > at)] = wide[d + (d > at)] = ait_dim_as_arg(g, v->shape[d]);
  tall[at + 1] = ait_arg_int(1), wide[at + 1] = ait_arg_int(l->choices);
  *out = x;
  if (!both) {
    AIT_TRY(AIT_EMIT(&l->r, out, "reshape", ait_arg_value(*out), ait_arg_list(tall, (uint32_t)rank + 1)));
    AIT_TRY(AIT_EMIT(&l->r, out, "expand", ait_arg_value(*out), ait_arg_list(wide, (uint32_t)rank + 1)));
  } else if (l->token_axis == 1) AIT_TRY(AIT_EMIT(&l->r, out, "permute", ait_arg_value(*out), ait_arg_list(order, (uint32_t)rank)));
  return AIT_EMIT(&l->r, out, "reshape", ait_arg_value(*out), ait_arg_list(flat, (uint32_t)rank - (both ? 1 : 0)));
}

/* Which expert each row chose, from the masks of all: [T, k] each, side by side. */
static ait_status build_choice(loop *l) {
  ait_graph *g = l->w->g;
  ait_arg *columns = AIT_ARENA_ARRAY(&l->w->arena, ait_arg, l->count), shape[2], axis = ait_arg_int(1);
  uint32_t all, best;
  if (!columns) return AIT_OOM();
  shape[0] = ait_dim_as_arg(g, l->rows), shape[1] = ait_arg_int(1);
  for (uint32_t e = 0; e < l->count; ++e) {
    uint32_t mask = l->picks[e].mask;
    if (g->values[mask].rank == 2) AIT_TRY(spread(l, mask, 0, true, &mask));
    AIT_TRY(AIT_EMIT(&l->r, &mask, "cast", ait_arg_value(mask), ait_arg_dtype(AIT_BOOL)));
    AIT_TRY(AIT_EMIT(&l->r, &mask, "cast", ait_arg_value(mask), ait_arg_dtype(AIT_F32)));
    AIT_TRY(AIT_EMIT(&l->r, &mask, "reshape", ait_arg_value(mask), ait_arg_list(shape, 2)));
    columns[e] = ait_arg_value(mask);
  }
  AIT_TRY(AIT_EMIT(&l->r, &all, "cat", ait_arg_list(columns, l->count), ait_arg_int(1)));
  AIT_TRY(AIT_EMIT(&l->r, &l->ids, "argmax", ait_arg_value(all), ait_arg_int(1)));
  AIT_TRY(AIT_EMIT(&l->r, &best, "amax", ait_arg_value(all), ait_arg_list(&axis, 1), ait_arg_bool(true)));
  return AIT_EMIT(&l->r, &l->any, "cast", ait_arg_value(best), ait_arg_dtype(AIT_BOOL));
}

static bool stacks(const loop *l, uint32_t node, uint32_t arg) {
  const ait_arg *a = &l->picks[0].nodes[node]->args[arg];
  for (uint32_t e = 1; a->kind == AIT_ARG_VALUE && place_of(&l->picks[0], a->as.value) < 0 && e < l->count; ++e)
    if (l->picks[e].nodes[node]->args[arg].as.value != a->as.value) return true;
  return false;
}

/* [E, ..] of an argument that each expert has its own of. */
static ait_status stack(loop *l, uint32_t node, uint32_t arg, uint32_t *out) {
  ait_graph *g = l->w->g;
  ait_arg *parts = AIT_ARENA_ARRAY(&l->w->arena, ait_arg, l->count), shape[AIT_MAX_RANK];
  if (!parts) return AIT_OOM();
  const ait_value_info *v = &g->values[l->picks[0].nodes[node]->args[arg].as.value];
  int32_t rank = v->rank;
  if (rank + 1 > AIT_MAX_RANK) return ait_error(AIT_CODE_LIMIT, "weights of rank %d", rank);
  shape[0] = ait_arg_int(1);
  for (int32_t d = 0; d < rank; ++d) shape[d + 1] = ait_dim_as_arg(g, v->shape[d]);
  for (uint32_t e = 0; e < l->count; ++e) {
    uint32_t part;
    AIT_TRY(AIT_EMIT(&l->r, &part, "reshape", l->picks[e].nodes[node]->args[arg], ait_arg_list(shape, (uint32_t)rank + 1)));
    parts[e] = ait_arg_value(part);
  }
  return AIT_EMIT(&l->r, out, "cat", ait_arg_list(parts, l->count), ait_arg_int(0));
}

/* A vector of each expert as one of each row. */
static ait_status chosen_vector(loop *l, uint32_t node, uint32_t arg, uint32_t *out) {
  AIT_TRY(stack(l, node, arg, out));
  return AIT_EMIT(&l->r, out, "index_select", ait_arg_value(*out), ait_arg_int(0), ait_arg_value(l->ids));
}

static ait_arg mapped(const loop *l, const ait_arg *a) {
  int32_t at = a->kind == AIT_ARG_VALUE ? place_of(&l->picks[0], a->as.value) : -1;
  return at >= 0 && at < MAX_REGION ? ait_arg_value(l->twins[at]) : *a;
}

/* linear(x, w, b) or matmul(x, w') with weights of each expert. */
static ait_status build_product(loop *l, uint32_t node, bool *out_known) {
  ait_graph *g = l->w->g;
  const ait_node *n = l->picks[0].nodes[node];
  bool turned = !strcmp(n->op->name, "matmul");
  uint32_t x = mapped(l, &n->args[0]).as.value, weight, y = 0, bias;
  ait_arg order[3] = {ait_arg_int(0), ait_arg_int(2), ait_arg_int(1)};
  *out_known = g->values[x].rank == 2 && g->values[n->args[1].as.value].rank == 2;
  if (!*out_known) return AIT_OK;
  AIT_TRY(stack(l, node, 1, &weight));
  if (turned) AIT_TRY(AIT_EMIT(&l->r, &weight, "permute", ait_arg_value(weight), ait_arg_list(order, 3)));
  AIT_TRY(AIT_EMIT(&l->r, &y, "expert_linear", ait_arg_value(x), ait_arg_value(weight), ait_arg_value(l->ids)));
  if (!turned && n->arg_count > 2 && n->args[2].kind == AIT_ARG_VALUE) {
    ait_arg b = n->args[2];
    if (stacks(l, node, 2)) {
      AIT_TRY(chosen_vector(l, node, 2, &bias));
      b = ait_arg_value(bias);
    }
    AIT_TRY(AIT_EMIT(&l->r, &y, "add", ait_arg_value(y), b));
  }
  l->twins[node] = y;
  return AIT_OK;
}

/* x[.., token, ..], x[token, choice] or x[choice, token]. */
static ait_status build_index(loop *l, uint32_t node, bool *out_known) {
  const ait_node *n = l->picks[0].nodes[node];
  const ait_arg *list = &n->args[1];
  int32_t axes[2], first = -1, count = 0;
  *out_known = false;
  if (list->kind != AIT_ARG_LIST || n->args[0].kind != AIT_ARG_VALUE || place_of(&l->picks[0], n->args[0].as.value) >= 0) return AIT_OK;
  for (uint32_t i = 0; i < list->count; ++i) {
    if (list->as.list[i].kind == AIT_ARG_NONE) continue;
    int32_t at = list->as.list[i].kind == AIT_ARG_VALUE ? place_of(&l->picks[0], list->as.list[i].as.value) : -1;
    if (at < MAX_REGION || count == 2 || (count == 1 && (int32_t)i != first + 1)) return AIT_OK;
    if (count == 0) first = (int32_t)i;
    axes[count++] = at - MAX_REGION;
  }
  if (count == 0 || (count == 1 && axes[0] != l->token_axis) || (count == 2 && axes[0] == axes[1])) return AIT_OK;
  const loop given = *l;
  if (count == 2) l->token_axis = axes[0] == l->token_axis ? 0 : 1; /* in x, not in the mask */
  ait_status status = spread(l, n->args[0].as.value, first, count == 2, &l->twins[node]);
  l->token_axis = given.token_axis;
  *out_known = status == AIT_OK;
  return status;
}

/* Any other node: the same operator on rows. */
static ait_status build_other(loop *l, uint32_t node, bool *out_known) {
  ait_graph *g = l->w->g;
  const ait_node *n = l->picks[0].nodes[node];
  const ait_value_info *v = &g->values[n->results[0]];
  ait_arg args[16], shape[AIT_MAX_RANK];
  *out_known = false;
  if (strstr(n->op->name, "reshape") || strstr(n->op->name, "view")) {
    for (int32_t d = 0; d < v->rank; ++d) shape[d] = dim_arg(l, v->shape[d]);
    *out_known = true;
    return AIT_EMIT(&l->r, &l->twins[node], "reshape", mapped(l, &n->args[0]), ait_arg_list(shape, (uint32_t)v->rank));
  }
  if (!(n->op->traits & AIT_OP_POINTWISE) && strcmp(n->op->name, "softmax") && strcmp(n->op->name, "rms_norm") &&
      strcmp(n->op->name, "slice") && strcmp(n->op->name, "linear") && strcmp(n->op->name, "layer_norm"))
    return AIT_OK;
  if (n->arg_count > AIT_COUNT(args)) return AIT_OK;
  for (uint32_t i = 0; i < n->arg_count; ++i) {
    args[i] = mapped(l, &n->args[i]);
    if (!stacks(l, node, i)) continue;
    if (!(n->op->traits & AIT_OP_POINTWISE) || g->values[args[i].as.value].rank != 1 || v->rank != 2) return AIT_OK;
    AIT_TRY(chosen_vector(l, node, i, &args[i].as.value));
  }
  *out_known = true;
  return ait_emit(&l->r, n->op->name, args, n->arg_count, &l->twins[node]);
}

static ait_status build_nodes(loop *l, bool *out_known) {
  const pick *p = &l->picks[0];
  *out_known = true;
  for (uint32_t i = 0; i < p->count && *out_known; ++i) {
    const char *op = p->nodes[i]->op->name;
    if (!strcmp(op, "index") || !strcmp(op, "aten.index.Tensor")) AIT_TRY(build_index(l, i, out_known));
    else if ((!strcmp(op, "linear") || !strcmp(op, "matmul")) && stacks(l, i, 1)) AIT_TRY(build_product(l, i, out_known));
    else AIT_TRY(build_other(l, i, out_known));
  }
  return AIT_OK;
}

/* What all choices of a token gave, summed, on what was there. */
static ait_status build_sum(loop *l, uint32_t *out) {
  ait_graph *g = l->w->g;
  const pick *p = &l->picks[0];
  int32_t at = place_of(p, p->sink->args[3].as.value);
  uint32_t y = l->twins[at];
  if (g->values[y].rank != 2) return ait_error(AIT_CODE_INTERNAL, "experts give results of rank %d", g->values[y].rank);
  ait_arg shape[3] = {ait_dim_as_arg(g, l->tokens), ait_arg_int(l->choices), ait_dim_as_arg(g, g->values[y].shape[1])},
          axis = ait_arg_int(1);
  AIT_TRY(AIT_EMIT(&l->r, &y, "where", ait_arg_value(l->any), ait_arg_value(y), ait_arg_float(0)));
  AIT_TRY(AIT_EMIT(&l->r, &y, "reshape", ait_arg_value(y), ait_arg_list(shape, 3)));
  AIT_TRY(AIT_EMIT(&l->r, &y, "sum", ait_arg_value(y), ait_arg_list(&axis, 1)));
  return AIT_EMIT(&l->r, out, "add", p->sink->args[0], ait_arg_value(y));
}

/* Does the number of picked tokens decide it, through numbers only? */
static bool asks_how_many(const loop *l, uint32_t value, int depth) {
  const ait_graph *g = l->w->g;
  const ait_node *n = g->values[value].def;
  for (uint32_t e = 0; e < l->count; ++e)
    if (value == l->picks[e].coords[0] || value == l->picks[e].coords[1]) return true;
  if (!n || depth > 6 || (g->values[value].type == AIT_TYPE_TENSOR && ait_dtype_is_float(g->values[value].dtype))) return false;
  for (uint32_t i = 0; i < n->arg_count; ++i)
    if (n->args[i].kind == AIT_ARG_VALUE && asks_how_many(l, n->args[i].as.value, depth + 1)) return true;
  return false;
}

/* Assertions about it hold, and would keep the picking alive. */
static void drop_assertions(loop *l) {
  for (ait_node *n = l->picks[0].where->next, *next; n; n = next) {
    next = n->next;
    if (strncmp(n->op->name, "aten._assert", 12) || n->arg_count < 1 || n->args[0].kind != AIT_ARG_VALUE) continue;
    if (asks_how_many(l, n->args[0].as.value, 0)) ait_graph_remove_node(l->w->g, n);
  }
}

static ait_status build(loop *l, bool *out_changed) {
  dep_work *w = l->w;
  ait_dim choices;
  uint32_t sum;
  bool known;
  ait_node *last = l->picks[l->count - 1].sink;
  l->r = ait_rewrite_at(w->g, &w->context, last);
  AIT_TRY(ait_dim_const(w->g, l->choices, &choices));
  AIT_TRY(ait_dim_make(w->g, AIT_DIM_MUL, l->tokens, choices, &l->rows));
  AIT_TRY(build_choice(l));
  AIT_TRY(build_nodes(l, &known));
  int32_t at = place_of(&l->picks[0], l->picks[0].sink->args[3].as.value);
  if (!known || at < 0 || w->g->values[l->twins[at]].rank != 2) return AIT_OK; /* what was built is dead */
  AIT_TRY(build_sum(l, &sum));
  *out_changed = true;
  drop_assertions(l);
  return ait_replace_value(w->g, last->results[0], sum);
}

/* one_hot as a comparison: experts are in range. */
static ait_status plain_one_hot(dep_work *w, ait_node *n, bool *out_changed) {
  ait_graph *g = w->g;
  const ait_value_info *v = &g->values[n->args[0].as.value];
  ait_rewrite r = ait_rewrite_at(g, &w->context, n);
  ait_arg shape[AIT_MAX_RANK];
  int64_t classes;
  uint32_t x, range;
  if (!ait_arg_as_int(g, &n->args[1], &classes) || classes < 1 || v->rank + 1 > AIT_MAX_RANK) return AIT_OK;
  for (int32_t d = 0; d < v->rank; ++d) shape[d] = ait_dim_as_arg(g, v->shape[d]);
  shape[v->rank] = ait_arg_int(1);
  AIT_TRY(AIT_EMIT(&r, &x, "reshape", n->args[0], ait_arg_list(shape, (uint32_t)v->rank + 1)));
  AIT_TRY(AIT_EMIT(&r, &range, "arange", ait_arg_int(0), ait_arg_int(classes), ait_arg_int(1), ait_arg_dtype(AIT_I64)));
  AIT_TRY(AIT_EMIT(&r, &x, "eq", ait_arg_value(x), ait_arg_value(range)));
  AIT_TRY(AIT_EMIT(&r, &x, "cast", ait_arg_value(x), ait_arg_dtype(AIT_I64)));
  *out_changed = true;
  return ait_replace_value(g, n->results[0], x);
}

ait_status dep_match_expert_loops(dep_work *w, bool *out_changed) {
  loop l = {.w = w, .picks = ait_alloc(w->a, MAX_EXPERTS * sizeof *l.picks, 8)};
  ait_status status = l.picks ? AIT_OK : AIT_OOM();
  for (ait_node *n = w->g->first, *next; n && !status; n = next) {
    next = n->next;
    if (!strcmp(n->op->name, "aten.one_hot")) status = plain_one_hot(w, n, out_changed);
    if (!is_pick(w->g, n)) continue;
    l.count = 0;
    status = collect(&l, n);
    if (status || l.count < 2) continue;
    status = build(&l, out_changed);
    next = l.picks[l.count - 1].sink->next; /* assertions before it may be gone */
  }
  ait_free(w->a, l.picks, MAX_EXPERTS * sizeof *l.picks);
  return status;
}
