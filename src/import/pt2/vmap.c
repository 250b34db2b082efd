/* torch.vmap leaves its machinery in exported programs: between _vmap_increment_nesting and _vmap_decrement_nesting every operator works on
 * one element of the batch, _add_batch_dim takes elements from a tensor, _remove_batch_dim stacks results. That is a map: the nodes between
 * become the body of higher_order.map_impl. Outer values that the body reads become its further inputs as they turn up. */
#include "import/pt2/pt2.h"

#define PREFIX "torch._functorch.predispatch."

static bool is_target(const ait_json *node, const char *name) {
  const char *target = ait_json_get_string(node, "target");
  return target && ait_starts_with(target, PREFIX) && strcmp(target + strlen(PREFIX), name) == 0;
}

bool ait_pt2_is_vmap(const ait_json *node) {
  static const char *const names[] = {"lazy_load_decompositions", "_vmap_increment_nesting"};
  return is_target(node, names[0]) || is_target(node, names[1]);
}

/* One vmap, while it is built. */
typedef struct region {
  ait_pt2_scope *outer;
  ait_pt2_scope body;
  const ait_json *nodes;
  uint32_t begin, end; /* of the nodes between increment and decrement */
  ait_arg *mapped;
  uint32_t mapped_count;
} region;

static const ait_json *argument_at(const ait_json *node, uint32_t index) {
  const ait_json *inputs = ait_json_get_kind(node, "inputs", AIT_JSON_ARRAY);
  return inputs && index < inputs->count ? ait_json_get(&inputs->as.items[index], "arg") : NULL;
}

static const char *result_name(const ait_json *node) {
  const ait_json *outputs = ait_json_get_kind(node, "outputs", AIT_JSON_ARRAY);
  return outputs && outputs->count == 1 ? ait_json_get_string(ait_json_get(&outputs->as.items[0], "as_tensor"), "name") : NULL;
}

static ait_status malformed(const ait_json *node) {
  const char *name = ait_json_get_string(node, "name");
  return ait_error(AIT_CODE_UNSUPPORTED, "node '%s': torch.vmap used in an unknown way", name ? name : "");
}

/* The next node with that target that belongs to this vmap, not to one inside it; r->end when there is none. */
static uint32_t next_of(const region *r, uint32_t from, const char *name) {
  int depth = 0;
  for (uint32_t i = from; i < r->end; ++i) {
    const ait_json *node = &r->nodes->as.items[i];
    if (is_target(node, "_vmap_increment_nesting")) ++depth;
    if (is_target(node, "_vmap_decrement_nesting")) --depth;
    if (depth == 0 && is_target(node, name)) return i;
  }
  return r->end;
}

/* aten.movedim.int(x, from, to) in the outer graph, unless it is the identity. */
static ait_status move_dim(ait_pt2_scope *scope, uint32_t x, int64_t from, int64_t to, uint32_t result) {
  const ait_op *op = ait_op_find("aten.movedim.int");
  if (!op) return ait_error(AIT_CODE_INTERNAL, "ops.inc has no row 'aten.movedim.int'");
  ait_arg args[] = {ait_arg_value(x), ait_arg_int(from), ait_arg_int(to)};
  return ait_graph_add_node(scope->graph, NULL, op, op->name, 0, args, 3, &result, 1, scope->graph->values[result].name, AIT_NO_INDEX,
                            NULL);
}

static ait_status unnamed(ait_pt2_scope *scope, uint32_t like, uint32_t *out) {
  ait_value_info info = {.type = AIT_TYPE_TENSOR, .dtype = scope->graph->values[like].dtype, .rank = -1, .scalar = AIT_NO_INDEX};
  return ait_graph_add_value(scope->graph, "vmap.moved", &info, out);
}

/* _add_batch_dim(x, dim, level): x with dim in front is mapped over; the node's result is the body's input. */
static ait_status add_mapped(region *r, const ait_json *node) {
  ait_arg x;
  int64_t dim;
  ait_region_input input = {.kind = AIT_INPUT_USER, .user_index = (int32_t)r->mapped_count};
  const char *name = result_name(node);
  if (!name || !argument_at(node, 0) || !ait_json_get_int(argument_at(node, 1), "as_int", &dim)) return malformed(node);
  AIT_TRY(ait_pt2_argument(r->outer, argument_at(node, 0), NULL, &x));
  if (x.kind != AIT_ARG_VALUE) return malformed(node);
  if (dim != 0) {
    uint32_t moved;
    AIT_TRY(unnamed(r->outer, x.as.value, &moved));
    AIT_TRY(move_dim(r->outer, x.as.value, dim, 0, moved));
    x.as.value = moved;
  }
  r->mapped[r->mapped_count++] = x;
  AIT_TRY(ait_pt2_define(&r->body, name, AIT_TYPE_TENSOR, &input.value));
  input.name = r->body.graph->values[input.value].name;
  return ait_graph_add_input(r->body.graph, &input);
}

static ait_status add_all_mapped(region *r) {
  r->mapped = AIT_ARENA_ARRAY(&r->outer->in->arena, ait_arg, r->end - r->begin + 1);
  if (!r->mapped) return AIT_OOM();
  for (uint32_t i = next_of(r, r->begin, "_add_batch_dim"); i < r->end; i = next_of(r, i + 1, "_add_batch_dim")) {
    AIT_TRY(add_mapped(r, &r->nodes->as.items[i]));
  }
  return AIT_OK;
}

/* The body: what is neither taking elements nor stacking. Runs of plain nodes between those. */
static ait_status add_body(region *r) {
  uint32_t at = r->begin;
  while (at < r->end) {
    uint32_t taken = next_of(r, at, "_add_batch_dim"), stacked = next_of(r, at, "_remove_batch_dim");
    uint32_t stop = taken < stacked ? taken : stacked;
    AIT_TRY(ait_pt2_add_node_range(&r->body, r->nodes, at, stop));
    at = stop + 1;
  }
  return AIT_OK;
}

static ait_status add_body_output(region *r, const ait_json *node) {
  ait_region_output output = {.kind = AIT_OUTPUT_USER, .name = "", .user_index = (int32_t)r->body.graph->output_count};
  if (!argument_at(node, 0)) return malformed(node);
  AIT_TRY(ait_pt2_argument(&r->body, argument_at(node, 0), NULL, &output.arg));
  return ait_graph_add_output(r->body.graph, &output);
}

/* The map itself, and its results with their batch dimension where _remove_batch_dim(y, level, size, dim) wants it. */
static ait_status add_map(region *r, uint32_t *results, uint32_t result_count) {
  const ait_op *op = ait_op_find("higher_order.map_impl");
  if (!op) return ait_error(AIT_CODE_INTERNAL, "ops.inc has no row 'higher_order.map_impl'");
  ait_arg *captured = AIT_ARENA_ARRAY(&r->outer->in->arena, ait_arg, r->body.capture_count + 1);
  if (!captured) return AIT_OOM();
  for (size_t i = 0; i < r->body.capture_count; ++i) captured[i] = ait_arg_value(r->body.captures[i]);
  ait_arg args[] = {
      {.kind = AIT_ARG_GRAPH}, ait_arg_list(r->mapped, r->mapped_count), ait_arg_list(captured, (uint32_t)r->body.capture_count)};
  args[0].as.graph = r->body.graph;
  return ait_graph_add_node(r->outer->graph, NULL, op, op->name, 0, args, 3, results, result_count, "vmap", AIT_NO_INDEX, NULL);
}

static ait_status add_results(region *r) {
  uint32_t *results = AIT_ARENA_ARRAY(&r->outer->in->arena, uint32_t, r->end - r->begin + 1);
  uint32_t *wanted = AIT_ARENA_ARRAY(&r->outer->in->arena, uint32_t, r->end - r->begin + 1);
  int64_t *dims = AIT_ARENA_ARRAY(&r->outer->in->arena, int64_t, r->end - r->begin + 1);
  uint32_t count = 0;
  if (!results || !wanted || !dims) return AIT_OOM();
  for (uint32_t i = next_of(r, r->begin, "_remove_batch_dim"); i < r->end; i = next_of(r, i + 1, "_remove_batch_dim")) {
    const ait_json *node = &r->nodes->as.items[i];
    const char *name = result_name(node);
    if (!name || !ait_json_get_int(argument_at(node, 3), "as_int", &dims[count])) return malformed(node);
    AIT_TRY(add_body_output(r, node));
    AIT_TRY(ait_pt2_define(r->outer, name, AIT_TYPE_TENSOR, &wanted[count]));
    results[count] = wanted[count];
    if (dims[count] != 0) AIT_TRY(unnamed(r->outer, wanted[count], &results[count]));
    ++count;
  }
  AIT_TRY(add_map(r, results, count));
  for (uint32_t i = 0; i < count; ++i) {
    if (dims[i] != 0) AIT_TRY(move_dim(r->outer, results[i], 0, dims[i], wanted[i]));
  }
  return AIT_OK;
}

ait_status ait_pt2_add_vmap(ait_pt2_scope *scope, const ait_json *nodes, uint32_t *index) {
  if (is_target(&nodes->as.items[*index], "lazy_load_decompositions")) return AIT_OK;
  region r = {.outer = scope, .nodes = nodes, .begin = *index + 1, .end = nodes->count};
  uint32_t end = r.begin;
  int depth = 0; /* of vmaps inside this one */
  for (; end < nodes->count; ++end) {
    if (is_target(&nodes->as.items[end], "_vmap_increment_nesting")) ++depth;
    if (is_target(&nodes->as.items[end], "_vmap_decrement_nesting") && depth-- == 0) break;
  }
  if (end == nodes->count) return malformed(&nodes->as.items[*index]);
  r.end = *index = end;
  ait_graph *body;
  AIT_TRY(ait_graph_create_nested(scope->graph, &body));
  ait_status status = ait_pt2_scope_init(&r.body, scope->in, body, scope->json, scope->depth + 1);
  r.body.outer = scope;
  if (!status) status = add_all_mapped(&r);
  if (!status) status = add_body(&r);
  if (!status) status = add_results(&r);
  ait_pt2_scope_deinit(&r.body);
  return status;
}
