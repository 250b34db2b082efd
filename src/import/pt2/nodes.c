/* Nodes, in program order, and graphs nested in them. */
#include "import/pt2/pt2.h"

/* What one node of the file becomes, while it is read. Arrays lie in the import's arena. */
typedef struct node_build {
  const ait_json *json, *inputs, *outputs;
  const char *name;
  ait_pt2_operator operator;
  ait_arg *args;
  uint32_t arg_count;
  uint32_t *results;
  uint32_t result_count;
  const ait_json *list; /* the elements' names, when a result is a tensor list */
  uint32_t list_at;     /* which result that is */
} node_build;

/* ---- arguments -------------------------------------------------------------------------------------------------------------------*/

/* with_effects(token, operator, its arguments…): the inner arguments get the inner schema's order and defaults. */
static ait_status read_effects(ait_pt2_scope *scope, node_build *b) {
  ait_pt2_operator inner;
  const ait_json *operator= b->inputs->count<2 ? NULL : ait_json_get(&b->inputs->as.items[1], "arg");
  const char *target = ait_json_get_string(operator, "as_operator");
  if (!target) return ait_error(AIT_CODE_INVALID_MODEL, "no operator among its arguments");
  AIT_TRY(ait_pt2_find_operator(scope->in, target, &inner));
  if (inner.op->variadic) return ait_error(AIT_CODE_UNSUPPORTED, "effects around '%s'", inner.name);
  b->arg_count = 2 + inner.op->param_count;
  b->args = AIT_ARENA_ARRAY(&scope->in->arena, ait_arg, b->arg_count);
  if (!b->args) return AIT_OOM();
  AIT_TRY(ait_pt2_argument(scope, ait_json_get(&b->inputs->as.items[0], "arg"), NULL, &b->args[0]));
  b->args[1] = ait_arg_string(inner.name);
  return ait_pt2_match(scope, inner.op, b->inputs, 2, b->args + 2);
}

/* Higher-order operators and those of the application: as they stand. */
static ait_status read_positional(ait_pt2_scope *scope, node_build *b) {
  b->arg_count = b->inputs->count;
  b->args = AIT_ARENA_ARRAY(&scope->in->arena, ait_arg, b->arg_count ? b->arg_count : 1);
  if (!b->args) return AIT_OOM();
  for (uint32_t i = 0; i < b->arg_count; ++i) {
    AIT_TRY(ait_error_context(ait_pt2_argument(scope, ait_json_get(&b->inputs->as.items[i], "arg"), NULL, &b->args[i]), "argument %u",
                              (unsigned)i));
  }
  return AIT_OK;
}

static ait_status read_arguments(ait_pt2_scope *scope, node_build *b) {
  const ait_op *op = b->operator.schema ? b->operator.schema : b->operator.op;
  if (strcmp(op->name, "higher_order.with_effects") == 0) return read_effects(scope, b);
  if (op->variadic) return read_positional(scope, b);
  b->arg_count = op->param_count;
  b->args = AIT_ARENA_ARRAY(&scope->in->arena, ait_arg, b->arg_count ? b->arg_count : 1);
  if (!b->args) return AIT_OOM();
  return ait_pt2_match(scope, op, b->inputs, 0, b->args);
}

/* ---- results ---------------------------------------------------------------------------------------------------------------------*/

static bool gives_list(const ait_op *op, uint32_t result) {
  return !op->variadic && result < op->result_count && op->result_types[result] == AIT_TYPE_TENSOR_LIST;
}

/* The value of a tensor list; its elements are taken out of it afterwards. */
static ait_status define_list(ait_pt2_scope *scope, node_build *b, const ait_json *names) {
  ait_value_info info = {.type = AIT_TYPE_TENSOR_LIST, .rank = -1, .list_count = names->count, .scalar = AIT_NO_INDEX};
  ait_value_info *elements = AIT_ARENA_ARRAY(&scope->in->arena, ait_value_info, names->count ? names->count : 1);
  const char *name = ait_arena_printf(&scope->in->arena, "%s.list", b->name);
  if (!elements || !name) return AIT_OOM();
  for (uint32_t i = 0; i < names->count; ++i) {
    const char *element = ait_json_get_string(&names->as.items[i], "name");
    if (!element) return ait_error(AIT_CODE_INVALID_MODEL, "a result without a name");
    AIT_TRY(ait_pt2_tensor_info(scope, element, &elements[i]));
  }
  info.elements = elements;
  b->list = names;
  b->list_at = b->result_count;
  return ait_graph_add_value(scope->graph, name, &info, &b->results[b->result_count++]);
}

static ait_status define_names(ait_pt2_scope *scope, node_build *b, const ait_json *names) {
  for (uint32_t i = 0; i < names->count; ++i) {
    const char *name = ait_json_get_string(&names->as.items[i], "name");
    if (!name) return ait_error(AIT_CODE_INVALID_MODEL, "a result without a name");
    AIT_TRY(ait_pt2_define(scope, name, AIT_TYPE_TENSOR, &b->results[b->result_count++]));
  }
  return AIT_OK;
}

/* Room for all results: those that the file names, and those that the schema declares. */
static ait_status reserve_results(ait_pt2_scope *scope, node_build *b) {
  size_t count = b->operator.schema ? b->operator.schema->result_count : b->operator.op->result_count;
  for (uint32_t i = 0; i < b->outputs->count; ++i) {
    const ait_json *tensors = ait_json_get_kind(&b->outputs->as.items[i], "as_tensors", AIT_JSON_ARRAY);
    count += tensors ? tensors->count + 1 : 1;
  }
  b->results = AIT_ARENA_ARRAY(&scope->in->arena, uint32_t, count ? count : 1);
  return b->results ? AIT_OK : AIT_OOM();
}

/* A result that nothing uses is not named in the file: an in-place node's gets a value all the same, others are not produced. */
static ait_status fill_results(ait_pt2_scope *scope, node_build *b) {
  const ait_op *op = b->operator.schema ? b->operator.schema : b->operator.op;
  if (op->variadic) return AIT_OK;
  if (b->result_count > op->result_count) {
    return ait_error(AIT_CODE_INVALID_MODEL, "it has %u results, the operator gives %u", (unsigned)b->result_count,
                     (unsigned)op->result_count);
  }
  bool writes = !b->operator.schema &&(b->operator.flags & AIT_NODE_INPLACE ||(op->param_count && op->params[0].written));
  while (b->result_count < op->result_count) {
    uint32_t *result = &b->results[b->result_count++];
    *result = AIT_NO_INDEX;
    if (b->result_count > 1 || !writes || b->args[0].kind != AIT_ARG_VALUE) continue;
    ait_value_info like = scope->graph->values[b->args[0].as.value];
    const char *name = ait_arena_printf(&scope->in->arena, "%s.unused", b->name);
    if (!name) return AIT_OOM();
    AIT_TRY(ait_graph_add_value(scope->graph, name, &like, result));
  }
  return AIT_OK;
}

static ait_status read_results(ait_pt2_scope *scope, node_build *b) {
  AIT_TRY(reserve_results(scope, b));
  for (uint32_t i = 0; i < b->outputs->count; ++i) {
    const ait_json *output = &b->outputs->as.items[i];
    const ait_json *tensors = ait_json_get_kind(output, "as_tensors", AIT_JSON_ARRAY);
    bool is_list = tensors && (gives_list(b->operator.op, b->result_count) || strcmp(b->operator.op->name, "custom") == 0);
    if (is_list && b->list) return ait_error(AIT_CODE_UNSUPPORTED, "two results that are tensor lists");
    if (is_list) AIT_TRY(define_list(scope, b, tensors));
    else if (tensors) AIT_TRY(define_names(scope, b, tensors)); /* a higher-order operator of torch 2.6 */
    else AIT_TRY(ait_pt2_define_argument(scope, output, &b->results[b->result_count++]));
  }
  return fill_results(scope, b);
}

/* ---- nodes -----------------------------------------------------------------------------------------------------------------------*/

static ait_status add_getitems(ait_pt2_scope *scope, const node_build *b, uint32_t list, uint32_t module) {
  const ait_op *getitem = ait_op_find("_operator.getitem");
  if (!getitem) return ait_error(AIT_CODE_INTERNAL, "ops.inc has no row '_operator.getitem'");
  for (uint32_t i = 0; i < b->list->count; ++i) {
    const char *name = ait_json_get_string(&b->list->as.items[i], "name");
    uint32_t element;
    AIT_TRY(ait_pt2_define(scope, name, AIT_TYPE_TENSOR, &element));
    ait_arg args[] = {ait_arg_value(list), ait_arg_int(i)};
    AIT_TRY(ait_graph_add_node(scope->graph, NULL, getitem, getitem->name, 0, args, 2, &element, 1, name, module, NULL));
  }
  return AIT_OK;
}

/* Reading a part of a tensor subclass: the part becomes a weight of its own, and no node is needed. */
static ait_status add_part(ait_pt2_scope *scope, const node_build *b, const ait_pt2_tensor *whole, const char *whole_name) {
  const ait_json *attribute = b->inputs->count == 2 ? ait_json_get(&b->inputs->as.items[1], "arg") : NULL;
  const ait_json *output = b->outputs->count == 1 ? ait_json_get(&b->outputs->as.items[0], "as_tensor") : NULL;
  const char *part = ait_json_get_string(attribute, "as_string"), *name = ait_json_get_string(output, "name");
  if (!part || !name) return ait_error(AIT_CODE_INVALID_MODEL, "it does not name a part of a tensor subclass");
  ait_pt2_tensor *tensor = AIT_ARENA_NEW(&scope->in->arena, ait_pt2_tensor);
  const char *full = ait_arena_printf(&scope->in->arena, "%s.%s", whole_name, part);
  if (!tensor || !full) return AIT_OOM();
  AIT_TRY(ait_pt2_weights_part(&scope->in->weights, whole, part, tensor));
  tensor->name = full;
  if (tensor->is_subclass) return ait_map_put(&scope->subclasses, name, tensor);
  ait_region_input input = {.kind = AIT_INPUT_PARAMETER, .name = full, .user_index = -1};
  AIT_TRY(ait_pt2_weights_add(&scope->in->weights, full, tensor));
  AIT_TRY(ait_pt2_define(scope, name, AIT_TYPE_TENSOR, &input.value));
  return ait_graph_add_input(scope->graph, &input);
}

/* true in *out_done: the node was a part of a subclass. */
static ait_status try_part(ait_pt2_scope *scope, const node_build *b, bool *out_done) {
  void *whole;
  *out_done = false;
  if (strcmp(b->operator.name, "export.access_subclass_inner_tensor") != 0 || b->inputs->count == 0) return AIT_OK;
  const char *name = ait_json_get_string(ait_json_get(ait_json_get(&b->inputs->as.items[0], "arg"), "as_tensor"), "name");
  if (!name || !ait_map_get(&scope->subclasses, name, &whole)) return AIT_OK;
  *out_done = true;
  return add_part(scope, b, whole, ((const ait_pt2_tensor *)whole)->name);
}

/* A node is named by its row in ops.inc; one of the application's by its own name. */
static const char *row_name(const node_build *b) {
  const char *row = b->operator.op->name;
  return strcmp(row, "custom") == 0 ? b->operator.name : row;
}

static ait_status build_node(ait_pt2_scope *scope, node_build *b) {
  bool done;
  uint32_t module;
  if (!b->inputs || !b->outputs) return ait_error(AIT_CODE_INVALID_MODEL, "its inputs or outputs are missing");
  AIT_TRY(try_part(scope, b, &done));
  if (done) return AIT_OK;
  AIT_TRY(read_arguments(scope, b));
  AIT_TRY(read_results(scope, b));
  AIT_TRY(ait_pt2_module_of(scope->in, ait_json_get(b->json, "metadata"), &module));
  AIT_TRY(ait_graph_add_node(scope->graph, NULL, b->operator.op, row_name(b), b->operator.flags, b->args, b->arg_count, b->results,
                             b->result_count, b->name, module, NULL));
  return b->list ? add_getitems(scope, b, b->results[b->list_at], module) : AIT_OK;
}

/* torch 2.9 and before do not name nodes: then the first result does. */
static const char *name_of(const ait_json *node, const char *target) {
  const char *name = ait_json_get_string(node, "name");
  const ait_json *outputs = ait_json_get_kind(node, "outputs", AIT_JSON_ARRAY);
  if (!name && outputs && outputs->count) name = ait_json_get_string(ait_json_get(&outputs->as.items[0], "as_tensor"), "name");
  if (name) return name;
  const char *last = strrchr(target, '.');
  return last && last[1] ? last + 1 : target;
}

static ait_status add_node(ait_pt2_scope *scope, const ait_json *json) {
  const char *target = ait_json_get_string(json, "target");
  if (!target) return ait_error(AIT_CODE_INVALID_MODEL, "a node without a target");
  node_build b = {.json = json,
                  .inputs = ait_json_get_kind(json, "inputs", AIT_JSON_ARRAY),
                  .outputs = ait_json_get_kind(json, "outputs", AIT_JSON_ARRAY),
                  .name = name_of(json, target)};
  scope->in->node = b.name;
  if (ait_pt2_is_functional(target)) {
    uint32_t module;
    AIT_TRY(ait_pt2_module_of(scope->in, ait_json_get(json, "metadata"), &module));
    return ait_error_context(ait_pt2_add_functional(scope, json, b.name, module), "node '%s'", b.name);
  }
  ait_status status = ait_pt2_find_operator(scope->in, target, &b.operator);
  if (status) return ait_error_context(status, "node '%s'", b.name);
  status = build_node(scope, &b);
  return status ? ait_error_context(status, "node '%s' (%s)", b.name, b.operator.name) : AIT_OK;
}

ait_status ait_pt2_add_node_range(ait_pt2_scope *scope, const ait_json *nodes, uint32_t begin, uint32_t end) {
  for (uint32_t i = begin; i < end; ++i) {
    if (ait_pt2_is_vmap(&nodes->as.items[i])) AIT_TRY(ait_pt2_add_vmap(scope, nodes, &i));
    else AIT_TRY(add_node(scope, &nodes->as.items[i]));
  }
  return AIT_OK;
}

ait_status ait_pt2_add_nodes(ait_pt2_scope *scope, const ait_json *graph_json) {
  const ait_json *nodes = ait_json_get_kind(graph_json, "nodes", AIT_JSON_ARRAY);
  if (!nodes) return ait_error(AIT_CODE_INVALID_MODEL, "the graph has no nodes");
  return ait_pt2_add_node_range(scope, nodes, 0, nodes->count);
}

/* ---- nested graphs ---------------------------------------------------------------------------------------------------------------*/

static ait_status add_nested_inputs(ait_pt2_scope *scope, const ait_json *inputs) {
  for (uint32_t i = 0; inputs && i < inputs->count; ++i) {
    ait_region_input input = {.kind = AIT_INPUT_USER, .name = "", .user_index = (int32_t)i};
    AIT_TRY(ait_pt2_define_argument(scope, &inputs->as.items[i], &input.value));
    if (input.value == AIT_NO_INDEX) AIT_TRY(ait_pt2_argument(scope, &inputs->as.items[i], NULL, &input.baked));
    else input.name = scope->graph->values[input.value].name;
    AIT_TRY(ait_graph_add_input(scope->graph, &input));
  }
  return AIT_OK;
}

static ait_status add_nested_output(ait_pt2_scope *scope, const ait_arg *arg) {
  ait_region_output output = {.arg = *arg, .kind = AIT_OUTPUT_USER, .name = "", .user_index = (int32_t)scope->graph->output_count};
  return ait_graph_add_output(scope->graph, &output);
}

static ait_status add_nested_outputs(ait_pt2_scope *scope, const ait_json *outputs) {
  for (uint32_t i = 0; outputs && i < outputs->count; ++i) {
    ait_arg arg;
    AIT_TRY(ait_pt2_argument(scope, &outputs->as.items[i], NULL, &arg));
    if (arg.kind != AIT_ARG_LIST) AIT_TRY(add_nested_output(scope, &arg));
    for (uint32_t k = 0; arg.kind == AIT_ARG_LIST && k < arg.count; ++k) AIT_TRY(add_nested_output(scope, &arg.as.list[k]));
  }
  return AIT_OK;
}

static ait_status read_nested(ait_pt2_scope *inner, const ait_json *graph_json) {
  AIT_TRY(add_nested_inputs(inner, ait_json_get_kind(graph_json, "inputs", AIT_JSON_ARRAY)));
  AIT_TRY(ait_pt2_add_nodes(inner, graph_json));
  return add_nested_outputs(inner, ait_json_get_kind(graph_json, "outputs", AIT_JSON_ARRAY));
}

ait_status ait_pt2_nested(ait_pt2_scope *scope, const ait_json *as_graph, ait_graph **out) {
  const ait_json *graph_json = ait_json_get_kind(as_graph, "graph", AIT_JSON_OBJECT);
  const char *name = ait_json_get_string(as_graph, "name");
  ait_pt2_scope inner;
  AIT_TRY(ait_graph_create_nested(scope->graph, out));
  ait_status status = ait_pt2_scope_init(&inner, scope->in, *out, graph_json, scope->depth + 1);
  if (!status) status = ait_graph_strdup(scope->graph, name ? name : "graph", &(*out)->name);
  if (!status) status = read_nested(&inner, graph_json);
  ait_pt2_scope_deinit(&inner);
  return status ? ait_error_context(status, "in graph '%s'", name ? name : "graph") : AIT_OK;
}
