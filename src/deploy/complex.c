/* Rotations as products of complex numbers, in real numbers: pairs of tokens' values times a table of positions. */
#include "deploy/internal.h"

enum { DEEPEST = 8 }; /* products and reshapes between view_as_complex and view_as_real */

static ait_status pairs_of(const ait_rewrite *r, uint32_t value, int depth, uint32_t *out);

/* Half `which` of pairs [.., 2], [..]. */
static ait_status half(const ait_rewrite *r, uint32_t pairs, int64_t which, uint32_t *out) {
  return AIT_EMIT(r, out, "select", ait_arg_value(pairs), ait_arg_int(-1), ait_arg_int(which));
}

static ait_status join(const ait_rewrite *r, uint32_t a, uint32_t b, uint32_t c, uint32_t d, const char *op, uint32_t *out) {
  uint32_t x, y;
  AIT_TRY(AIT_EMIT(r, &x, "mul", ait_arg_value(a), ait_arg_value(b)));
  AIT_TRY(AIT_EMIT(r, &y, "mul", ait_arg_value(c), ait_arg_value(d)));
  return AIT_EMIT(r, out, op, ait_arg_value(x), ait_arg_value(y));
}

/* Sizes of the value and `last` behind them. */
static bool sizes(const ait_graph *g, uint32_t value, int64_t last, ait_arg out[AIT_MAX_RANK], uint32_t *count) {
  int32_t rank = g->values[value].rank;
  if (rank < 0 || rank >= AIT_MAX_RANK || !ait_shape_args(g, value, out)) return false;
  out[rank] = ait_arg_int(last);
  *count = (uint32_t)rank + 1;
  return true;
}

static ait_status product(const ait_rewrite *r, const ait_node *mul, int depth, uint32_t *out) {
  uint32_t x[2], re[2], im[2], parts[2], count;
  ait_arg shape[AIT_MAX_RANK], list[2];
  for (int i = 0; i < 2; ++i) {
    AIT_TRY(pairs_of(r, mul->args[i].as.value, depth + 1, &x[i]));
    AIT_TRY(half(r, x[i], 0, &re[i]));
    AIT_TRY(half(r, x[i], 1, &im[i]));
  }
  AIT_TRY(join(r, re[0], re[1], im[0], im[1], "sub", &parts[0]));
  AIT_TRY(join(r, re[0], im[1], im[0], re[1], "add", &parts[1]));
  for (int i = 0; i < 2; ++i) {
    if (!sizes(r->graph, parts[i], 1, shape, &count)) return ait_error(AIT_CODE_UNSUPPORTED, "a product of complex numbers has no shape");
    AIT_TRY(AIT_EMIT(r, &parts[i], "reshape", ait_arg_value(parts[i]), ait_arg_list(shape, count)));
    list[i] = ait_arg_value(parts[i]);
  }
  return AIT_EMIT(r, out, "cat", ait_arg_list(list, 2), ait_arg_int(-1));
}

/* aten.view_as_real of what is no product. */
static ait_status view(const ait_rewrite *r, uint32_t value, uint32_t *out) {
  ait_graph *g = r->graph;
  const ait_value_info *v = &g->values[value];
  ait_dim shape[AIT_MAX_RANK];
  if (v->rank < 0 || v->rank >= AIT_MAX_RANK) return ait_error(AIT_CODE_LIMIT, "'%s' has too many dimensions", v->name);
  memcpy(shape, v->shape, (size_t)v->rank * sizeof *shape);
  AIT_TRY(ait_dim_const(g, 2, &shape[g->values[value].rank]));
  ait_value_info pairs = {
      .type = AIT_TYPE_TENSOR, .dtype = AIT_F32, .rank = g->values[value].rank + 1, .shape = shape, .scalar = AIT_NO_INDEX};
  AIT_TRY(ait_graph_add_value(g, r->name, &pairs, out));
  ait_arg arg = ait_arg_value(value);
  return ait_graph_add_node(g, r->at, ait_op_find("aten.view_as_real"), NULL, 0, &arg, 1, out, 1, g->values[*out].name, r->module, NULL);
}

static bool is_complex(const ait_graph *g, const ait_arg *a) { return ait_arg_is_tensor(g, a) && g->values[a->as.value].dtype == AIT_C64; }

static bool is_product(const ait_graph *g, const ait_node *n) {
  return n && (!strcmp(n->op->name, "mul") || !strcmp(n->op->name, "aten.mul.Tensor")) && is_complex(g, &n->args[0]) &&
         is_complex(g, &n->args[1]);
}

/* [.., 2]: real and imaginary parts. */
static ait_status pairs_of(const ait_rewrite *r, uint32_t value, int depth, uint32_t *out) {
  ait_graph *g = r->graph;
  const ait_node *n = g->values[value].def;
  ait_arg shape[AIT_MAX_RANK];
  uint32_t count;
  if (n && !strcmp(n->op->name, "aten.view_as_complex")) {
    *out = n->args[0].as.value;
    return AIT_OK;
  }
  if (depth < DEEPEST && is_product(g, n)) return product(r, n, depth, out);
  if (depth < DEEPEST && n && !strcmp(n->op->name, "reshape") && sizes(g, value, 2, shape, &count)) {
    AIT_TRY(pairs_of(r, n->args[0].as.value, depth + 1, out));
    return AIT_EMIT(r, out, "reshape", ait_arg_value(*out), ait_arg_list(shape, count));
  }
  return view(r, value, out);
}

ait_status dep_spell_complex(dep_work *w) {
  for (ait_node *n = w->g->first, *next; n; n = next) {
    uint32_t fresh;
    next = n->next;
    if (strcmp(n->op->name, "aten.view_as_real") || !is_complex(w->g, &n->args[0])) continue;
    const ait_node *from = w->g->values[n->args[0].as.value].def;
    if (!is_product(w->g, from) && !(from && !strcmp(from->op->name, "reshape"))) continue;
    ait_rewrite r = ait_rewrite_at(w->g, &w->context, n);
    AIT_TRY(pairs_of(&r, n->args[0].as.value, 0, &fresh));
    AIT_TRY(ait_replace_value(w->g, n->results[0], fresh));
  }
  return AIT_OK;
}
