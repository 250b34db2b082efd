/* A graph as a flat region. Arguments without nested graphs are shared with the graph; the others are copied. */
#include "ir/ir_internal.h"

typedef struct region_block {
  ait_arena arena;
  ait_region region;
} region_block;

static ait_status fill_region(const ait_graph *g, ait_arena *arena, int depth, ait_region *r);

static bool holds_graph(const ait_arg *arg) {
  if (arg->kind == AIT_ARG_GRAPH) return true;
  if (arg->kind != AIT_ARG_LIST) return false;
  for (uint32_t i = 0; i < arg->count; ++i) { /* lists nest at most AIT_ARG_DEPTH_LIMIT deep */
    if (holds_graph(&arg->as.list[i])) return true;
  }
  return false;
}

static ait_status convert_arg(const ait_arg *arg, ait_arena *arena, int depth, ait_arg *out) {
  *out = *arg;
  if (!holds_graph(arg)) return AIT_OK;
  if (arg->kind == AIT_ARG_GRAPH) {
    if (depth == 0) return ait_error(AIT_CODE_LIMIT, "graphs nest deeper than %d", AIT_GRAPH_DEPTH_LIMIT);
    ait_region *nested = AIT_ARENA_NEW(arena, ait_region);
    if (!nested) return AIT_OOM();
    out->as.graph = nested;
    return fill_region(arg->as.graph, arena, depth - 1, nested);
  }
  ait_arg *items = AIT_ARENA_ARRAY(arena, ait_arg, arg->count);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < arg->count; ++i) AIT_TRY(convert_arg(&arg->as.list[i], arena, depth, &items[i]));
  out->as.list = items;
  return AIT_OK;
}

static ait_status fill_values(const ait_graph *g, ait_arena *arena, ait_region *r) {
  ait_region_value *values = AIT_ARENA_ARRAY(arena, ait_region_value, g->value_count ? g->value_count : 1);
  if (!values) return AIT_OOM();
  for (size_t i = 0; i < g->value_count; ++i) {
    const ait_value_info *v = &g->values[i];
    values[i] = (ait_region_value){.name = v->name, .type = v->type, .dtype = v->dtype, .rank = v->rank, .shape = v->shape};
    if (v->type != AIT_TYPE_INT || v->scalar == AIT_NO_INDEX) continue;
    ait_dim *expression = AIT_ARENA_NEW(arena, ait_dim);
    if (!expression) return AIT_OOM();
    *expression = v->scalar;
    values[i].shape = expression;
  }
  r->values = values;
  r->value_count = (uint32_t)g->value_count;
  return AIT_OK;
}

static ait_status fill_node(const ait_node *n, ait_arena *arena, int depth, ait_region_node *out) {
  const ait_graph *root = n->graph->root;
  *out = (ait_region_node){.op = n->op_name,
                           .flags = n->flags,
                           .arg_count = n->arg_count,
                           .args = n->args,
                           .result_count = n->result_count,
                           .results = n->results,
                           .name = n->name,
                           .module = ""};
  if (n->module < root->module_count) out->module = root->modules[n->module].path;
  bool shared = true;
  for (uint32_t i = 0; i < n->arg_count; ++i) shared &= !holds_graph(&n->args[i]);
  if (shared) return AIT_OK;
  ait_arg *args = AIT_ARENA_ARRAY(arena, ait_arg, n->arg_count);
  if (!args) return AIT_OOM();
  for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(convert_arg(&n->args[i], arena, depth, &args[i]));
  out->args = args;
  return AIT_OK;
}

/* Copies, so that later changes of the graph do not show. */
static ait_status copy_array(ait_arena *arena, const void *data, size_t count, size_t size, const void **out) {
  *out = ait_arena_array(arena, count ? count : 1, size, 16);
  if (!*out) return AIT_OOM();
  if (count) memcpy((void *)*out, data, count * size);
  return AIT_OK;
}

static ait_status fill_shared(const ait_graph *root, ait_arena *arena, ait_region *r) {
  AIT_TRY(copy_array(arena, root->symbols, root->symbol_count, sizeof *root->symbols, (const void **)&r->symbols));
  AIT_TRY(copy_array(arena, root->dims, root->dim_count, sizeof *root->dims, (const void **)&r->dims));
  AIT_TRY(copy_array(arena, root->guards, root->guard_count, sizeof *root->guards, (const void **)&r->guards));
  r->symbol_count = (uint32_t)root->symbol_count;
  r->dim_count = (uint32_t)root->dim_count;
  r->guard_count = (uint32_t)root->guard_count;
  return AIT_OK;
}

static void share_with(const ait_region *outer, ait_region *r) {
  r->symbols = outer->symbols;
  r->symbol_count = outer->symbol_count;
  r->dims = outer->dims;
  r->dim_count = outer->dim_count;
}

/* Nested regions point to the symbols and dims of the outermost. */
static void share_in_arg(const ait_region *outer, const ait_arg *arg);

static void share_nested(const ait_region *outer, ait_region *r) {
  for (uint32_t i = 0; i < r->node_count; ++i) {
    for (uint32_t k = 0; k < r->nodes[i].arg_count; ++k) share_in_arg(outer, &r->nodes[i].args[k]);
  }
}

static void share_in_arg(const ait_region *outer, const ait_arg *arg) {
  if (arg->kind == AIT_ARG_LIST) {
    for (uint32_t i = 0; i < arg->count; ++i) share_in_arg(outer, &arg->as.list[i]);
  } else if (arg->kind == AIT_ARG_GRAPH) {
    ait_region *nested = (ait_region *)arg->as.graph;
    share_with(outer, nested);
    share_nested(outer, nested);
  }
}

static ait_status fill_region(const ait_graph *g, ait_arena *arena, int depth, ait_region *r) {
  r->struct_size = sizeof *r;
  r->program = g == g->root && g->dialect == AIT_DIALECT_RAW ? g->program : NULL;
  r->version = AIT_REGION_VERSION;
  r->name = g->name;
  AIT_TRY(fill_values(g, arena, r));
  AIT_TRY(copy_array(arena, g->inputs, g->input_count, sizeof *g->inputs, (const void **)&r->inputs));
  AIT_TRY(copy_array(arena, g->outputs, g->output_count, sizeof *g->outputs, (const void **)&r->outputs));
  r->input_count = (uint32_t)g->input_count;
  r->output_count = (uint32_t)g->output_count;
  ait_region_node *nodes = AIT_ARENA_ARRAY(arena, ait_region_node, g->node_count ? g->node_count : 1);
  if (!nodes) return AIT_OOM();
  r->nodes = nodes;
  for (const ait_node *n = g->first; n; n = n->next) AIT_TRY(fill_node(n, arena, depth, &nodes[r->node_count++]));
  return AIT_OK;
}

ait_status ait_graph_region(const ait_graph *g, ait_allocator a, ait_region **out) {
  region_block *block = ait_alloc_zero(a, sizeof *block, _Alignof(region_block));
  if (!block) return AIT_OOM();
  ait_arena_init(&block->arena, a);
  ait_region *r = &block->region;
  ait_status status = fill_region(g, &block->arena, AIT_GRAPH_DEPTH_LIMIT, r);
  if (status == AIT_OK) status = fill_shared(g->root, &block->arena, r);
  if (status) {
    ait_graph_region_destroy(a, r);
    return status;
  }
  share_nested(r, r);
  *out = r;
  return AIT_OK;
}

void ait_graph_region_destroy(ait_allocator a, ait_region *region) {
  if (!region) return;
  region_block *block = (region_block *)((char *)region - offsetof(region_block, region));
  ait_arena_deinit(&block->arena);
  ait_free(a, block, sizeof *block);
}
