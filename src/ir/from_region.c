/* A region (the portable part of an .ait) back into a graph. Value ids stay the same; what a region does not hold is lost: the types of
 * modules, and what is known of the elements of tensor lists. */
#include "ir/ir_internal.h"

#include <stdlib.h>

typedef struct rebuilder {
  ait_graph *root;
  ait_arena scratch;
  const ait_region *outer;
  ait_dim *dims, *symbols; /* of the region, as dims of the graph */
} rebuilder;

static ait_status damaged(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "the portable graph is damaged: %s", what); }

/* ---- sizes -----------------------------------------------------------------------------------------------------------------------*/
static ait_status rebuild_symbols(rebuilder *b) {
  const ait_region *r = b->outer;
  b->symbols = AIT_ARENA_ARRAY(&b->scratch, ait_dim, r->symbol_count + 1u);
  if (!b->symbols) return AIT_OOM();
  for (uint32_t i = 0; i < r->symbol_count; ++i) {
    AIT_TRY(ait_dim_symbol(b->root, r->symbols[i].name, &b->symbols[i]));
    ait_symbol *s = ait_graph_symbol(b->root, r->symbols[i].name);
    s->min = r->symbols[i].min;
    s->max = r->symbols[i].max;
    s->hint = r->symbols[i].hint;
    s->backed = r->symbols[i].backed;
  }
  return AIT_OK;
}

/* Children come first in the table. */
static ait_status rebuild_dims(rebuilder *b) {
  const ait_region *r = b->outer;
  b->dims = AIT_ARENA_ARRAY(&b->scratch, ait_dim, r->dim_count + 1u);
  if (!b->dims) return AIT_OOM();
  for (uint32_t i = 0; i < r->dim_count; ++i) {
    const ait_dim_expr *e = &r->dims[i];
    if (e->op == AIT_DIM_CONST) {
      AIT_TRY(ait_dim_const(b->root, e->value, &b->dims[i]));
    } else if (e->op == AIT_DIM_SYMBOL) {
      if (e->a >= r->symbol_count) return damaged("a size is of no symbol");
      b->dims[i] = b->symbols[e->a];
    } else if (e->op == AIT_DIM_UNKNOWN) {
      AIT_TRY(ait_dim_unknown(b->root, &b->dims[i]));
    } else {
      if (e->a >= i || e->b >= i) return damaged("a size is made of itself");
      AIT_TRY(ait_dim_make(b->root, e->op, b->dims[e->a], b->dims[e->b], &b->dims[i]));
    }
  }
  return AIT_OK;
}

static ait_status rebuild_dim(const rebuilder *b, ait_dim d, ait_dim *out) {
  if (d >= b->outer->dim_count) return damaged("a size is not in its table");
  *out = b->dims[d];
  return AIT_OK;
}

/* ---- values, arguments -----------------------------------------------------------------------------------------------------------*/
static ait_status rebuild_value(rebuilder *b, ait_graph *g, const ait_region_value *v, uint32_t index) {
  ait_value_info info = {.type = v->type, .dtype = v->dtype, .rank = v->rank};
  bool is_int = v->type == AIT_TYPE_INT;
  int32_t count = is_int ? v->shape != NULL : v->rank > 0 ? v->rank : 0;
  ait_dim *shape = AIT_ARENA_ARRAY(&b->scratch, ait_dim, (size_t)count + 1);
  if (!shape) return AIT_OOM();
  for (int32_t d = 0; d < count; ++d) AIT_TRY(rebuild_dim(b, v->shape[d], &shape[d]));
  if (is_int && count) info.scalar = shape[0];
  else info.shape = shape;
  uint32_t id;
  AIT_TRY(ait_graph_add_value(g, v->name ? v->name : "value", &info, &id));
  return id == index ? AIT_OK : damaged("values are not in order");
}

static ait_status rebuild_graph(rebuilder *b, const ait_region *r, ait_graph *g, int depth);

static ait_status rebuild_arg(rebuilder *b, const ait_region *r, ait_graph *g, const ait_arg *arg, int depth, ait_arg *out) {
  *out = *arg;
  if (depth == 0) return ait_error(AIT_CODE_LIMIT, "graphs or lists nest deeper than %d", AIT_GRAPH_DEPTH_LIMIT);
  if (arg->kind == AIT_ARG_VALUE && arg->as.value >= r->value_count) return damaged("an argument is no value");
  if (arg->kind == AIT_ARG_DIM) return rebuild_dim(b, arg->as.dim, &out->as.dim);
  if (arg->kind == AIT_ARG_GRAPH) {
    ait_graph *nested;
    AIT_TRY(ait_graph_create_nested(g, &nested));
    out->as.graph = nested;
    return rebuild_graph(b, arg->as.graph, nested, depth - 1);
  }
  if (arg->kind != AIT_ARG_LIST) return AIT_OK;
  ait_arg *items = AIT_ARENA_ARRAY(&b->scratch, ait_arg, arg->count + 1u);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(rebuild_arg(b, r, g, &arg->as.list[i], depth - 1, &items[i]));
  out->as.list = items;
  return AIT_OK;
}

static ait_status rebuild_node(rebuilder *b, const ait_region *r, ait_graph *g, const ait_region_node *n, int depth) {
  const ait_op *op = ait_op_find(n->op);
  if (!op) op = ait_op_find("custom");
  uint32_t module = AIT_NO_INDEX;
  ait_node *made;
  ait_arg *args = AIT_ARENA_ARRAY(&b->scratch, ait_arg, n->arg_count + 1u);
  if (!args) return AIT_OOM();
  for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(rebuild_arg(b, r, g, &n->args[i], depth, &args[i]));
  if (!op->variadic && n->arg_count != op->param_count) return damaged("a node has the wrong number of arguments");
  if (n->module) AIT_TRY(ait_graph_add_module(g, n->module, "", &module));
  return ait_error_context(
      ait_graph_add_node(g, NULL, op, n->op, n->flags, args, n->arg_count, n->results, n->result_count, n->name, module, &made),
      "node '%s'", n->name ? n->name : "?");
}

static ait_status rebuild_graph(rebuilder *b, const ait_region *r, ait_graph *g, int depth) {
  AIT_TRY(ait_graph_strdup(g, r->name, &g->name));
  for (uint32_t i = 0; i < r->value_count; ++i) AIT_TRY(rebuild_value(b, g, &r->values[i], i));
  for (uint32_t i = 0; i < r->input_count; ++i) AIT_TRY(ait_graph_add_input(g, &r->inputs[i]));
  for (uint32_t i = 0; i < r->node_count; ++i) AIT_TRY(rebuild_node(b, r, g, &r->nodes[i], depth));
  for (uint32_t i = 0; i < r->output_count; ++i) {
    ait_region_output output = r->outputs[i];
    AIT_TRY(rebuild_arg(b, r, g, &r->outputs[i].arg, depth, &output.arg));
    AIT_TRY(ait_graph_add_output(g, &output));
  }
  return AIT_OK;
}

static ait_status rebuild_signature(rebuilder *b) {
  const ait_region *r = b->outer;
  size_t count = 0;
  for (uint32_t i = 0; i < r->input_count; ++i) count += r->inputs[i].kind == AIT_INPUT_USER;
  const char **names = AIT_ARENA_ARRAY(&b->scratch, const char *, count + 1);
  if (!names) return AIT_OOM();
  memset(names, 0, (count + 1) * sizeof *names);
  for (uint32_t i = 0; i < r->input_count; ++i)
    if (r->inputs[i].kind == AIT_INPUT_USER && r->inputs[i].user_index >= 0 && (size_t)r->inputs[i].user_index < count)
      names[r->inputs[i].user_index] = r->inputs[i].name;
  AIT_TRY(ait_graph_set_input_spec(b->root, names, count));
  for (uint32_t i = 0; i < r->guard_count; ++i) {
    ait_dim left, right;
    AIT_TRY(rebuild_dim(b, r->guards[i].left, &left));
    AIT_TRY(rebuild_dim(b, r->guards[i].right, &right));
    AIT_TRY(ait_graph_add_guard(b->root, r->guards[i].op, left, right, r->guards[i].text));
  }
  return AIT_OK;
}

ait_status ait_graph_from_region(ait_allocator a, const ait_region *region, ait_dialect dialect, ait_weight_store *weights,
                                 ait_graph **out) {
  rebuilder b = {.outer = region};
  *out = NULL;
  AIT_TRY(ait_graph_create(a, dialect, &b.root));
  ait_arena_init(&b.scratch, a);
  ait_status status = rebuild_symbols(&b);
  if (status == AIT_OK) status = rebuild_dims(&b);
  if (status == AIT_OK) status = rebuild_graph(&b, region, b.root, AIT_GRAPH_DEPTH_LIMIT);
  if (status == AIT_OK) status = rebuild_signature(&b);
  if (status == AIT_OK) status = ait_graph_verify(b.root);
  ait_arena_deinit(&b.scratch);
  if (status != AIT_OK) {
    ait_graph_destroy(b.root);
    return status;
  }
  if (weights) b.root->weights = ait_weight_store_retain(weights);
  *out = b.root;
  return AIT_OK;
}
