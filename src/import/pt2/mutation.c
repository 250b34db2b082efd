/* Which inputs a raw graph may write into: union-find over values that may share memory, then every writing node marks its class.
 *
 * Nested graphs' values take part: the operands of a higher-order node are the inputs of its graphs, and the graphs' outputs its results.
 */
#include "import/pt2/pt2.h"

typedef struct classes {
  ait_allocator allocator;
  uint32_t *parent; /* of the values of all graphs, one after the other */
  bool *written;    /* by class */
  size_t count;
} classes;

static uint32_t find(classes *c, uint32_t v) {
  while (c->parent[v] != v) v = c->parent[v] = c->parent[c->parent[v]];
  return v;
}

static void join(classes *c, uint32_t a, uint32_t b) {
  a = find(c, a);
  b = find(c, b);
  c->parent[b] = a;
  c->written[a] |= c->written[b];
}

static void write_value(classes *c, uint32_t v) { c->written[find(c, v)] = true; }

/* First value index of each graph, in the order of a walk: nodes in order, nested graphs where they stand. */
static size_t count_values(const ait_graph *g) {
  size_t count = g->value_count;
  for (const ait_node *n = g->first; n; n = n->next) {
    for (uint32_t i = 0; i < n->arg_count; ++i) {
      if (n->args[i].kind == AIT_ARG_GRAPH) count += count_values(n->args[i].as.graph);
    }
  }
  return count;
}

typedef struct visit {
  classes *classes;
  uint32_t base; /* of the graph's values */
} visit;

static void mark_operand(void *ctx, uint32_t value) {
  const visit *v = ctx;
  write_value(v->classes, v->base + value);
}

static void join_values(classes *c, uint32_t base, const ait_arg *arg, uint32_t result) {
  if (arg->kind == AIT_ARG_VALUE) join(c, base + arg->as.value, base + result);
  for (uint32_t i = 0; arg->kind == AIT_ARG_LIST && i < arg->count; ++i) {
    if (arg->as.list[i].kind == AIT_ARG_VALUE) join(c, base + arg->as.list[i].as.value, base + result);
  }
}

static void write_arg(classes *c, uint32_t base, const ait_arg *arg) {
  if (arg->kind == AIT_ARG_VALUE) write_value(c, base + arg->as.value);
  for (uint32_t i = 0; arg->kind == AIT_ARG_LIST && i < arg->count; ++i) {
    if (arg->as.list[i].kind == AIT_ARG_VALUE) write_value(c, base + arg->as.list[i].as.value);
  }
}

/* Normalisation in training mode writes its running statistics, though its schema does not say so. */
static const struct {
  const char *op, *flag;
} training[] = {{"aten.batch_norm", "training"},
                {"aten.native_batch_norm", "training"},
                {"aten.cudnn_batch_norm", "training"},
                {"aten._batch_norm_impl_index", "training"},
                {"aten._native_batch_norm_legit", "training"},
                {"aten.instance_norm", "use_input_stats"}};

static void write_statistics(classes *c, uint32_t base, const ait_node *n) {
  for (size_t i = 0; i < AIT_COUNT(training); ++i) {
    if (strcmp(n->op->name, training[i].op) != 0) continue;
    int32_t flag = ait_op_param(n->op, training[i].flag);
    if (flag >= 0 && n->args[flag].kind == AIT_ARG_BOOL && !n->args[flag].as.b) return;
    for (int32_t p = 0; p < (int32_t)n->op->param_count; ++p) {
      if (ait_starts_with(n->op->params[p].name, "running_")) write_arg(c, base, &n->args[p]);
    }
  }
}

static void visit_plain(classes *c, uint32_t base, const ait_node *n, const ait_op *schema) {
  bool in_place = n->flags & AIT_NODE_INPLACE, views = n->op->traits & (AIT_OP_VIEW | AIT_OP_MAYBE_VIEW);
  for (uint32_t p = 0; p < n->arg_count; ++p) {
    const ait_param *param = &schema->params[p];
    bool written = param->written || (in_place && p == 0);
    bool shared = written || param->aliased || (views && p == 0);
    for (uint32_t r = 0; shared && r < n->result_count; ++r) {
      if (n->results[r] != AIT_NO_INDEX) join_values(c, base, &n->args[p], n->results[r]);
    }
    if (written) write_arg(c, base, &n->args[p]);
  }
  write_statistics(c, base, n);
}

static ait_status visit_graph(classes *c, const ait_graph *g, uint32_t base, uint32_t *next);

/* Position k of a higher-order node's operands: value id, or AIT_NO_INDEX for a constant. */
typedef struct operands {
  uint32_t *values;
  size_t count, capacity;
} operands;

static ait_status flatten(classes *c, const ait_arg *arg, operands *out) {
  if (arg->kind == AIT_ARG_GRAPH) return AIT_OK;
  if (arg->kind == AIT_ARG_LIST) {
    for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(flatten(c, &arg->as.list[i], out));
    return AIT_OK;
  }
  AIT_TRY(ait_grow(c->allocator, (void **)&out->values, &out->capacity, out->count + 1, sizeof *out->values));
  out->values[out->count++] = arg->kind == AIT_ARG_VALUE ? arg->as.value : AIT_NO_INDEX;
  return AIT_OK;
}

/* Inputs of a nested graph are what follows the graphs among the arguments; its outputs are the node's results. */
static ait_status visit_nested(classes *c, const ait_node *n, const ait_graph *nested, uint32_t base, const operands *outer,
                               uint32_t *next) {
  uint32_t inner = *next;
  *next += (uint32_t)nested->value_count;
  AIT_TRY(visit_graph(c, nested, inner, next));
  for (uint32_t i = 0; i < nested->input_count && i < outer->count; ++i) {
    if (nested->inputs[i].value != AIT_NO_INDEX && outer->values[i] != AIT_NO_INDEX)
      join(c, base + outer->values[i], inner + nested->inputs[i].value);
  }
  for (uint32_t i = 0; i < nested->output_count && i < n->result_count; ++i) {
    const ait_arg *arg = &nested->outputs[i].arg;
    if (arg->kind == AIT_ARG_VALUE && n->results[i] != AIT_NO_INDEX) join(c, inner + arg->as.value, base + n->results[i]);
  }
  return AIT_OK;
}

static ait_status visit_higher(classes *c, uint32_t base, const ait_node *n, uint32_t *next) {
  operands found = {0};
  ait_status status = AIT_OK;
  bool after = false;
  for (uint32_t i = 0; i < n->arg_count && !status; ++i) {
    after |= n->args[i].kind == AIT_ARG_GRAPH;
    if (after) status = flatten(c, &n->args[i], &found);
  }
  for (uint32_t i = 0; i < n->arg_count && !status; ++i) {
    if (n->args[i].kind == AIT_ARG_GRAPH) status = visit_nested(c, n, n->args[i].as.graph, base, &found, next);
  }
  ait_free(c->allocator, found.values, found.capacity * sizeof *found.values);
  return status;
}

/* An operator of the application. Of one that is not registered nothing is known: it may write into whatever it gets. One that has a result
 * for each argument it writes is functional. */
static ait_status visit_custom(classes *c, uint32_t base, const ait_node *n) {
  const ait_op *schema;
  AIT_TRY(ait_op_custom(n->op_name, &schema));
  if (!schema || schema->param_count != n->arg_count) {
    visit context = {c, base};
    ait_node_each_operand(n, mark_operand, &context);
  } else if (n->result_count == schema->result_count) {
    visit_plain(c, base, n, schema);
  }
  return AIT_OK;
}

static ait_status visit_graph(classes *c, const ait_graph *g, uint32_t base, uint32_t *next) {
  for (const ait_node *n = g->first; n; n = n->next) {
    if (n->op->traits & AIT_OP_HIGHER) {
      AIT_TRY(visit_higher(c, base, n, next));
    } else if (n->op->variadic) {
      AIT_TRY(visit_custom(c, base, n));
    } else {
      visit_plain(c, base, n, n->op);
    }
  }
  return AIT_OK;
}

ait_status ait_pt2_mark_mutated(ait_graph *g) {
  classes c = {.allocator = g->allocator, .count = count_values(g)};
  ait_status status = AIT_OK;
  if (c.count >= UINT32_MAX) return ait_error(AIT_CODE_LIMIT, "too many values");
  c.parent = ait_alloc(c.allocator, c.count * sizeof *c.parent, _Alignof(uint32_t));
  c.written = ait_alloc_zero(c.allocator, c.count, 1);
  if (!c.parent || !c.written) {
    status = AIT_OOM();
    goto cleanup;
  }
  for (size_t i = 0; i < c.count; ++i) c.parent[i] = (uint32_t)i;
  uint32_t next = (uint32_t)g->value_count;
  AIT_GOTO(visit_graph(&c, g, 0, &next));
  for (size_t i = 0; i < g->input_count; ++i) {
    ait_region_input *input = &g->inputs[i];
    if (input->value != AIT_NO_INDEX && c.written[find(&c, input->value)]) input->mutated = true;
  }
cleanup:
  ait_free(c.allocator, c.parent, c.count * sizeof *c.parent);
  ait_free(c.allocator, c.written, c.count);
  return status;
}
