#include "tune/cost.h"
#include <stdio.h>

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
  t->bytes += ait_value_bytes(t->g, value, t->symbols);
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

bool ait_node_is_view(const ait_node *n) {
  static const char *const names[] = {"reshape", "permute", "expand", "slice", "select"};
  for (size_t i = 0; i < AIT_COUNT(names); ++i)
    if (!strcmp(n->op->name, names[i])) return true;
  return (n->op->traits & (AIT_OP_VIEW | AIT_OP_MAYBE_VIEW)) != 0;
}

bool ait_node_reads_rows(const ait_node *n) {
  static const char *const names[] = {"embedding", "gather", "index", "index_select", "aten.embedding"};
  for (size_t i = 0; i < AIT_COUNT(names); ++i)
    if (!strcmp(n->op->name, names[i])) return n->arg_count > 0 && n->args[0].kind == AIT_ARG_VALUE;
  return false;
}

double ait_value_bytes(const ait_graph *g, uint32_t value, const int64_t *symbols) {
  const ait_value_info *v = &g->values[value];
  return count_of(g, v, symbols) * (double)ait_dtype_size(v->dtype);
}

ait_cost ait_node_cost(const ait_graph *g, const ait_node *n, const int64_t *symbols) {
  ait_cost cost = {0};
  traffic t = {.g = g, .symbols = symbols};
  if (n->result_count == 0 || n->results[0] == AIT_NO_INDEX || ait_node_is_view(n)) return cost;
  ait_node_each_operand(n, add_operand, &t);
  for (uint32_t i = 0; i < n->result_count; ++i)
    if (n->results[i] != AIT_NO_INDEX) add_operand(&t, n->results[i]);
  if (ait_node_reads_rows(n)) t.bytes += ait_value_bytes(g, n->results[0], symbols) - ait_value_bytes(g, n->args[0].as.value, symbols);
  cost.flops = flops_of(g, n, symbols);
  cost.bytes = t.bytes;
  return cost;
}

/* ---- modules ---------------------------------------------------------------------------------------------------------------------*/
bool ait_module_inside(const char *path, const char *module) {
  size_t n = strlen(module);
  return n == 0 || (!strncmp(path, module, n) && (path[n] == 0 || path[n] == '.'));
}

static void add_parameters(const ait_graph *g, ait_module_sum *sums) {
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_region_input *in = &g->inputs[i];
    if (in->kind != AIT_INPUT_PARAMETER) continue;
    const ait_weight *w = g->weights ? ait_weight_store_find(g->weights, in->name) : NULL;
    double n = 1;
    for (int32_t d = 0; w && d < w->rank; ++d) n *= (double)w->shape[d];
    if (!w) continue;
    const char *dot = strrchr(in->name, '.');
    char owner[512];
    snprintf(owner, sizeof owner, "%.*s", dot ? (int)(dot - in->name) : 0, in->name);
    for (size_t m = 0; m < g->module_count; ++m) {
      if (!ait_module_inside(owner, g->modules[m].path)) continue;
      sums[m].parameters += n;
      sums[m].parameter_bytes += n * (double)ait_dtype_size(w->dtype);
    }
  }
}

static void add_work(const ait_graph *g, const int64_t *symbols, ait_module_sum *sums, ait_module_sum *total) {
  for (const ait_node *n = g->first; n; n = n->next) {
    ait_cost cost = ait_node_cost(g, n, symbols);
    total->flops += cost.flops;
    total->bytes += cost.bytes;
    ++total->nodes;
    if (n->module == AIT_NO_INDEX) continue;
    for (size_t m = 0; m < g->module_count; ++m) {
      if (!ait_module_inside(g->modules[n->module].path, g->modules[m].path)) continue;
      sums[m].flops += cost.flops;
      sums[m].bytes += cost.bytes;
      ++sums[m].nodes;
    }
  }
}

void ait_module_sums(const ait_graph *g, const int64_t *symbols, ait_module_sum *sums, ait_module_sum *total) {
  add_parameters(g, sums);
  add_work(g, symbols, sums, total);
}

double ait_graph_weight_bytes(const ait_graph *g) {
  double bytes = 0;
  for (size_t i = 0; g->weights && i < ait_weight_store_storage_count(g->weights); ++i)
    bytes += (double)ait_storage_bytes(ait_weight_store_storage(g->weights, (uint32_t)i));
  return bytes;
}
