#include "tune/cost.h"

int64_t *ait_cost_symbols(const ait_graph *g, ait_allocator a) {
  const ait_graph *root = g->root;
  int64_t *values = ait_alloc(a, (root->symbol_count + 1) * sizeof *values, _Alignof(int64_t));
  for (size_t i = 0; values && i < root->symbol_count; ++i) {
    const ait_symbol *s = &root->symbols[i];
    values[i] = s->hint >= 0 ? s->hint : s->min > 2 ? s->min : s->max < 2 ? s->max : 2;
  }
  return values;
}

static double size_of(const ait_graph *g, ait_dim d, const int64_t *symbols) {
  int64_t v;
  return ait_dim_eval(g->root->dims, symbols, d, &v) ? (double)v : 0;
}

static double count_of(const ait_graph *g, const ait_value_info *v, const int64_t *symbols) {
  double n = v->type == AIT_TYPE_TENSOR && v->rank >= 0 ? 1 : 0;
  for (int32_t d = 0; d < v->rank; ++d) n *= size_of(g, v->shape[d], symbols);
  return n;
}

typedef struct traffic {
  const ait_graph *g;
  const int64_t *symbols;
  double bytes;
} traffic;

static void add_operand(void *ctx, uint32_t value) {
  traffic *t = ctx;
  const ait_value_info *v = &t->g->values[value];
  t->bytes += count_of(t->g, v, t->symbols) * (double)ait_dtype_size(v->dtype);
}

static const ait_value_info *tensor(const ait_graph *g, const ait_node *n, uint32_t arg) {
  return arg < n->arg_count && n->args[arg].kind == AIT_ARG_VALUE ? &g->values[n->args[arg].as.value] : NULL;
}

/* Size `from_end` dims before the last (0: the last). */
static double dim_from_end(const ait_graph *g, const ait_value_info *v, int32_t from_end, const int64_t *symbols) {
  return v && v->rank > from_end ? size_of(g, v->shape[v->rank - 1 - from_end], symbols) : 0;
}

static double recurrent_flops(const ait_graph *g, const ait_node *n, const int64_t *symbols) {
  const ait_value_info *x = tensor(g, n, 0);
  const ait_arg *params = &n->args[strcmp(n->op->name, "lstm") ? 2 : 3];
  double steps = x && x->rank == 3 ? size_of(g, x->shape[0], symbols) * size_of(g, x->shape[1], symbols) : 0, weights = 0;
  for (uint32_t i = 0; params->kind == AIT_ARG_LIST && i < params->count; ++i)
    if (params->as.list[i].kind == AIT_ARG_VALUE && g->values[params->as.list[i].as.value].rank == 2)
      weights += count_of(g, &g->values[params->as.list[i].as.value], symbols);
  return 2 * steps * weights;
}

static double flops_of(const ait_graph *g, const ait_node *n, const int64_t *symbols) {
  const char *op = n->op->name;
  const ait_value_info *a = tensor(g, n, 0), *b = tensor(g, n, 1), *out = &g->values[n->results[0]];
  double elements = count_of(g, out, symbols);
  if (!strcmp(op, "linear") || !strcmp(op, "aten.linear")) return 2 * elements * dim_from_end(g, b, 0, symbols);
  if (!strcmp(op, "matmul")) return 2 * elements * dim_from_end(g, a, 0, symbols);
  if (!strcmp(op, "conv")) {
    bool transposed = n->args[7].kind == AIT_ARG_BOOL && n->args[7].as.b;
    double per_output = b ? count_of(g, b, symbols) / size_of(g, b->shape[0], symbols) : 0;
    return 2 * per_output * (transposed ? count_of(g, a, symbols) : elements);
  }
  if (!strcmp(op, "attention"))
    return 2 * count_of(g, a, symbols) * dim_from_end(g, b, 1, symbols) + 2 * elements * dim_from_end(g, b, 1, symbols);
  if (!strcmp(op, "lstm") || !strcmp(op, "gru")) return recurrent_flops(g, n, symbols);
  return n->op->traits & AIT_OP_POINTWISE ? elements : 0;
}

ait_cost ait_node_cost(const ait_graph *g, const ait_node *n, const int64_t *symbols) {
  ait_cost cost = {0};
  traffic t = {.g = g, .symbols = symbols};
  if (n->result_count == 0 || n->results[0] == AIT_NO_INDEX) return cost;
  ait_node_each_operand(n, add_operand, &t);
  for (uint32_t i = 0; i < n->result_count; ++i)
    if (n->results[i] != AIT_NO_INDEX) add_operand(&t, n->results[i]);
  cost.flops = flops_of(g, n, symbols);
  cost.bytes = t.bytes;
  return cost;
}
