/* Cutting graphs for ait_debug. */
#include "tune/debug.h"
#include <stdio.h>

static ait_status add_output(ait_graph *g, uint32_t value, size_t index) {
  char name[24];
  snprintf(name, sizeof name, "%zu", index);
  ait_region_output o = {.arg = ait_arg_value(value), .kind = AIT_OUTPUT_USER, .name = name, .user_index = (int32_t)index};
  return ait_graph_add_output(g, &o);
}

ait_status ait_debug_probe(const ait_graph *g, const ait_node *last, const uint32_t *values, size_t count, ait_graph **out) {
  size_t after = 0;
  for (const ait_node *n = last ? last->next : NULL; n; n = n->next) ++after;
  AIT_TRY(ait_graph_clone(g, out));
  (*out)->output_count = 0;
  for (; after > 0; --after) ait_graph_remove_node(*out, (*out)->last);
  ait_status status = AIT_OK;
  for (size_t i = 0; status == AIT_OK && i < count; ++i) status = add_output(*out, values[i], i);
  if (status == AIT_OK) status = ait_graph_verify(*out);
  if (status == AIT_OK) return AIT_OK;
  ait_graph_destroy(*out);
  *out = NULL;
  return status;
}

typedef struct marker {
  const ait_graph *g;
  bool *reads;
} marker;

static void mark(void *ctx, uint32_t value) { ((marker *)ctx)->reads[value] = true; }

void ait_debug_boundary(const ait_graph *g, const bool *taken, bool *out) {
  marker m = {g, out};
  size_t i = 0;
  memset(out, 0, g->value_count * sizeof *out);
  for (const ait_node *n = g->first; n; n = n->next, ++i)
    if (taken[i]) ait_node_each_operand(n, mark, &m);
  i = 0;
  for (const ait_node *n = g->first; n; n = n->next, ++i)
    for (uint32_t r = 0; taken[i] && r < n->result_count; ++r)
      if (n->results[r] != AIT_NO_INDEX) out[n->results[r]] = false;
}

/* ---- one graph into another ------------------------------------------------------------------------------------------------------*/
enum { DEEPEST_ARGUMENT = 16 };

typedef struct cutter {
  const ait_graph *from;
  const int64_t *symbols;
  const ait_value *known;
  ait_graph *to;
  uint32_t *map; /* value of `from` to value of `to`; AIT_NO_INDEX: none yet */
} cutter;

static ait_status constant(cutter *c, ait_dim dim, ait_dim *out) {
  int64_t size;
  if (!ait_dim_eval(c->from->root->dims, c->symbols, dim, &size))
    return ait_error(AIT_CODE_UNSUPPORTED, "a size depends on data: the node cannot be cut out");
  return ait_dim_const(c->to, size, out);
}

static ait_status add_input(cutter *c, uint32_t value, ait_debug_slice *slice) {
  const ait_value_info *from = &c->from->values[value];
  const ait_value *v = &c->known[value];
  ait_value_info like = {.type = from->type, .dtype = from->dtype, .scalar = AIT_NO_INDEX};
  ait_dim shape[AIT_MAX_RANK];
  if (v->kind == AIT_VALUE_TENSOR && from->type == AIT_TYPE_TENSOR) {
    like.dtype = v->as.tensor.dtype;
    like.rank = v->as.tensor.rank;
    like.shape = shape;
    for (int32_t d = 0; d < like.rank; ++d) AIT_TRY(ait_dim_const(c->to, v->as.tensor.shape[d], &shape[d]));
  } else if (!(v->kind == AIT_VALUE_INT && from->type == AIT_TYPE_INT) && !(v->kind == AIT_VALUE_FLOAT && from->type == AIT_TYPE_FLOAT) &&
             !(v->kind == AIT_VALUE_BOOL && from->type == AIT_TYPE_BOOL)) {
    return ait_error(AIT_CODE_UNSUPPORTED, "operand '%s' is no tensor or number: the node cannot be cut out", from->name);
  }
  AIT_TRY(ait_graph_add_value(c->to, from->name, &like, &c->map[value]));
  ait_region_input in = {.value = c->map[value], .kind = AIT_INPUT_USER, .user_index = (int32_t)slice->input_count};
  in.name = c->to->values[c->map[value]].name;
  slice->inputs[slice->input_count++] = value;
  return ait_graph_add_input(c->to, &in);
}

static ait_status copy_arg(cutter *c, const ait_arg *from, int depth, ait_arg *out) {
  *out = *from;
  if (depth > DEEPEST_ARGUMENT) return ait_error(AIT_CODE_LIMIT, "arguments are nested too deep");
  if (from->kind == AIT_ARG_GRAPH) return ait_error(AIT_CODE_UNSUPPORTED, "an operator with nested graphs cannot be cut out");
  if (from->kind == AIT_ARG_VALUE) out->as.value = c->map[from->as.value];
  if (from->kind == AIT_ARG_DIM) AIT_TRY(constant(c, from->as.dim, &out->as.dim));
  if (from->kind != AIT_ARG_LIST || from->count == 0) return AIT_OK;
  ait_arg *items = AIT_ARENA_ARRAY(c->to->arena, ait_arg, from->count);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < from->count; ++i) AIT_TRY(copy_arg(c, &from->as.list[i], depth + 1, &items[i]));
  out->as.list = items;
  return AIT_OK;
}

static ait_status copy_info(cutter *c, const ait_value_info *from, int depth, ait_value_info *out) {
  *out = (ait_value_info){.type = from->type, .dtype = from->dtype, .rank = from->rank, .list_count = from->list_count};
  out->scalar = AIT_NO_INDEX;
  if (from->type == AIT_TYPE_INT && from->scalar != AIT_NO_INDEX && from->scalar) AIT_TRY(constant(c, from->scalar, &out->scalar));
  if (from->rank > 0 && from->shape) {
    ait_dim *shape = AIT_ARENA_ARRAY(c->to->arena, ait_dim, (size_t)from->rank);
    if (!shape) return AIT_OOM();
    for (int32_t d = 0; d < from->rank; ++d) AIT_TRY(constant(c, from->shape[d], &shape[d]));
    out->shape = shape;
  }
  if (!from->elements || depth > 1) return AIT_OK;
  ait_value_info *elements = AIT_ARENA_ARRAY(c->to->arena, ait_value_info, (size_t)from->list_count + 1);
  if (!elements) return AIT_OOM();
  for (uint32_t i = 0; i < from->list_count; ++i) AIT_TRY(copy_info(c, &from->elements[i], depth + 1, &elements[i]));
  out->elements = elements;
  return AIT_OK;
}

static ait_status copy_node(cutter *c, const ait_node *n) {
  ait_arg *args = AIT_ARENA_ARRAY(c->to->arena, ait_arg, (size_t)n->arg_count + 1);
  uint32_t *results = AIT_ARENA_ARRAY(c->to->arena, uint32_t, (size_t)n->result_count + 1);
  uint32_t module = AIT_NO_INDEX;
  ait_node *copy;
  if (!args || !results) return AIT_OOM();
  for (uint32_t i = 0; i < n->arg_count; ++i) AIT_TRY(copy_arg(c, &n->args[i], 0, &args[i]));
  for (uint32_t r = 0; r < n->result_count; ++r) {
    uint32_t v = n->results[r];
    results[r] = AIT_NO_INDEX;
    if (v == AIT_NO_INDEX) continue;
    ait_value_info like;
    AIT_TRY(copy_info(c, &c->from->values[v], 0, &like));
    AIT_TRY(ait_graph_add_value(c->to, c->from->values[v].name, &like, &c->map[v]));
    results[r] = c->map[v];
  }
  if (n->module != AIT_NO_INDEX) {
    const ait_module_info *m = &c->from->root->modules[n->module];
    AIT_TRY(ait_graph_add_module(c->to, m->path, m->type, &module));
  }
  return ait_graph_add_node(c->to, NULL, n->op, n->op_name, n->flags, args, n->arg_count, results, n->result_count, n->name, module, &copy);
}

static ait_status cut(cutter *c, const bool *taken, const bool *boundary, uint32_t result, ait_debug_slice *out) {
  AIT_TRY(ait_graph_strdup(c->to, "debug", &c->to->name));
  AIT_TRY(ait_graph_strdup(c->to, c->from->root->producer, &c->to->producer));
  for (size_t v = 0; v < c->from->value_count; ++v)
    if (boundary[v]) AIT_TRY(add_input(c, (uint32_t)v, out));
  size_t i = 0;
  for (const ait_node *n = c->from->first; n; n = n->next, ++i)
    if (taken[i]) AIT_TRY(copy_node(c, n));
  ait_region_output o = {.arg = ait_arg_value(c->map[result]), .kind = AIT_OUTPUT_USER};
  o.name = c->to->values[c->map[result]].name;
  AIT_TRY(ait_graph_add_output(c->to, &o));
  AIT_TRY(ait_graph_set_input_spec(c->to, NULL, out->input_count));
  return ait_graph_verify(c->to);
}

ait_status ait_debug_cut(const ait_graph *g, const bool *taken, const ait_value *known, uint32_t result, const int64_t *symbols,
                         ait_debug_slice *out) {
  ait_allocator a = ait_allocator_default();
  size_t n = g->value_count + 1;
  bool *boundary = ait_alloc(a, n * sizeof *boundary, 1);
  cutter c = {.from = g, .symbols = symbols, .known = known, .map = ait_alloc(a, n * sizeof *c.map, _Alignof(uint32_t))};
  *out = (ait_debug_slice){.inputs = ait_alloc(a, n * sizeof *out->inputs, _Alignof(uint32_t))};
  ait_status status = boundary && c.map && out->inputs ? ait_graph_create(a, g->dialect, &out->graph) : AIT_OOM();
  if (status == AIT_OK) {
    c.to = out->graph;
    memset(c.map, 0xff, n * sizeof *c.map);
    ait_debug_boundary(g, taken, boundary);
    status = cut(&c, taken, boundary, result, out);
  }
  ait_free(a, boundary, n * sizeof *boundary);
  ait_free(a, c.map, n * sizeof *c.map);
  if (status != AIT_OK) ait_debug_slice_deinit(g, out);
  return status;
}

void ait_debug_slice_deinit(const ait_graph *g, ait_debug_slice *s) {
  ait_graph_destroy(s->graph);
  ait_free(ait_allocator_default(), s->inputs, (g->value_count + 1) * sizeof *s->inputs);
  *s = (ait_debug_slice){0};
}
