/* Names, metadata and sizes of values. */
#include "import/pt2/expr.h"
#include "import/pt2/pt2.h"

static ait_status add_entries(ait_map *map, const ait_json *object) {
  for (uint32_t i = 0; object && object->kind == AIT_JSON_OBJECT && i < object->count; ++i) {
    AIT_TRY(ait_map_put(map, object->as.items[i].key, (void *)(uintptr_t)&object->as.items[i]));
  }
  return AIT_OK;
}

ait_status ait_pt2_scope_init(ait_pt2_scope *scope, ait_pt2_import *in, ait_graph *graph, const ait_json *json, int depth) {
  *scope = (ait_pt2_scope){.in = in, .graph = graph, .json = json, .depth = depth};
  ait_map_init(&scope->tensors, in->arena.allocator);
  ait_map_init(&scope->scalars, in->arena.allocator);
  ait_map_init(&scope->values, in->arena.allocator);
  ait_map_init(&scope->subclasses, in->arena.allocator);
  if (depth > AIT_PT2_GRAPH_DEPTH) return ait_error(AIT_CODE_LIMIT, "graphs nested deeper than %d", AIT_PT2_GRAPH_DEPTH);
  if (!json || json->kind != AIT_JSON_OBJECT) return ait_error(AIT_CODE_INVALID_MODEL, "a graph is missing");
  AIT_TRY(add_entries(&scope->tensors, ait_json_get(json, "tensor_values")));
  AIT_TRY(add_entries(&scope->scalars, ait_json_get(json, "sym_int_values")));
  AIT_TRY(add_entries(&scope->scalars, ait_json_get(json, "sym_float_values")));
  return add_entries(&scope->scalars, ait_json_get(json, "sym_bool_values"));
}

void ait_pt2_scope_deinit(ait_pt2_scope *scope) {
  ait_map_deinit(&scope->tensors);
  ait_map_deinit(&scope->scalars);
  ait_map_deinit(&scope->values);
  ait_map_deinit(&scope->subclasses);
  ait_free(scope->in->arena.allocator, scope->captures, scope->capture_capacity * sizeof *scope->captures);
}

ait_status ait_pt2_union(const ait_json *json, const ait_json **out) {
  if (!json || json->kind != AIT_JSON_OBJECT || json->count != 1) {
    return ait_error(AIT_CODE_INVALID_MODEL, "a union must have exactly one tag; here it has %u",
                     json && json->kind == AIT_JSON_OBJECT ? (unsigned)json->count : 0);
  }
  *out = &json->as.items[0];
  return AIT_OK;
}

/* The value at export, kept for a bare symbol. */
static void keep_hint(ait_graph *g, ait_dim dim, const ait_json *expr) {
  int64_t hint;
  if (g->dims[dim].op != AIT_DIM_SYMBOL || !ait_json_get_int(ait_json_get(expr, "hint"), "as_int", &hint)) return;
  g->symbols[g->dims[dim].a].hint = hint;
}

ait_status ait_pt2_dim(ait_pt2_import *in, const ait_json *sym_int, ait_dim *out) {
  int64_t number;
  if (ait_json_get_int(sym_int, "as_int", &number)) return ait_dim_const(in->graph, number, out);
  const ait_json *expr = ait_json_get(sym_int, "as_expr");
  const char *text = ait_json_get_string(expr, "expr_str");
  if (!text) return ait_error(AIT_CODE_INVALID_MODEL, "a size that is neither a number nor an expression");
  void *known;
  if (ait_map_get(&in->dims, text, &known)) {
    *out = (ait_dim)((uintptr_t)known - 1);
    return AIT_OK;
  }
  AIT_TRY(ait_expr_parse(in->graph, text, NULL, out));
  keep_hint(in->graph, *out, expr);
  if (in->graph->dims[*out].op == AIT_DIM_UNKNOWN) return AIT_OK; /* unknown sizes are equal to nothing, not even to themselves */
  return ait_map_put(&in->dims, text, (void *)((uintptr_t)*out + 1));
}

static ait_status fill_tensor(ait_pt2_scope *scope, const ait_json *meta, ait_value_info *out) {
  int64_t code = -1;
  ait_json_get_int(meta, "dtype", &code);
  out->dtype = ait_pt2_dtype(code);
  if (out->dtype == AIT_DTYPE_NONE) return ait_error(AIT_CODE_INVALID_MODEL, "dtype code %lld is not known", (long long)code);
  const ait_json *sizes = ait_json_get_kind(meta, "sizes", AIT_JSON_ARRAY);
  if (!sizes) return ait_error(AIT_CODE_INVALID_MODEL, "it has no sizes");
  if (sizes->count > AIT_MAX_RANK)
    return ait_error(AIT_CODE_UNSUPPORTED, "it has %u dimensions, more than %d", (unsigned)sizes->count, AIT_MAX_RANK);
  ait_dim *shape = AIT_ARENA_ARRAY(&scope->in->arena, ait_dim, sizes->count ? sizes->count : 1);
  if (!shape) return AIT_OOM();
  for (uint32_t i = 0; i < sizes->count; ++i) {
    int64_t number;
    if (ait_json_get_int(&sizes->as.items[i], "as_int", &number) && number < 0) {
      return ait_error(AIT_CODE_INVALID_MODEL, "its size %lld is negative", (long long)number);
    }
    AIT_TRY(ait_pt2_dim(scope->in, &sizes->as.items[i], &shape[i]));
  }
  out->rank = (int32_t)sizes->count;
  out->shape = shape;
  return AIT_OK;
}

ait_status ait_pt2_tensor_info(ait_pt2_scope *scope, const char *name, ait_value_info *out) {
  void *meta;
  *out = (ait_value_info){.type = AIT_TYPE_TENSOR, .rank = -1, .scalar = AIT_NO_INDEX};
  if (!ait_map_get(&scope->tensors, name, &meta))
    return ait_error(AIT_CODE_INVALID_MODEL, "value '%s' has no entry in tensor_values", name);
  return ait_error_context(fill_tensor(scope, meta, out), "value '%s'", name);
}

static ait_status scalar_info(ait_pt2_scope *scope, const char *name, ait_type type, ait_value_info *out) {
  void *sym;
  *out = (ait_value_info){.type = type, .rank = -1, .scalar = AIT_NO_INDEX};
  if (type != AIT_TYPE_INT || !ait_map_get(&scope->scalars, name, &sym)) return AIT_OK;
  return ait_error_context(ait_pt2_dim(scope->in, sym, &out->scalar), "value '%s'", name);
}

ait_status ait_pt2_remember(ait_pt2_scope *scope, const char *name, uint32_t id) {
  if (ait_map_get(&scope->values, name, NULL)) return ait_error(AIT_CODE_INVALID_MODEL, "value '%s' is defined twice", name);
  return ait_map_put(&scope->values, name, (void *)((uintptr_t)id + 1));
}

ait_status ait_pt2_define(ait_pt2_scope *scope, const char *name, ait_type type, uint32_t *out) {
  ait_value_info info;
  if (type == AIT_TYPE_TENSOR) AIT_TRY(ait_pt2_tensor_info(scope, name, &info));
  else AIT_TRY(scalar_info(scope, name, type, &info));
  AIT_TRY(ait_graph_add_value(scope->graph, name, &info, out));
  return ait_pt2_remember(scope, name, *out);
}

ait_status ait_pt2_define_argument(ait_pt2_scope *scope, const ait_json *argument, uint32_t *out) {
  static const struct {
    const char *tag, *name_key;
    ait_type type;
  } kinds[] = {{"as_tensor", "name", AIT_TYPE_TENSOR},
               {"as_sym_int", "as_name", AIT_TYPE_INT},
               {"as_sym_float", "as_name", AIT_TYPE_FLOAT},
               {"as_sym_bool", "as_name", AIT_TYPE_BOOL}};
  const ait_json *member;
  AIT_TRY(ait_pt2_union(argument, &member));
  *out = AIT_NO_INDEX;
  for (size_t i = 0; i < AIT_COUNT(kinds); ++i) {
    if (strcmp(member->key, kinds[i].tag) != 0) continue;
    const char *name = ait_json_get_string(member, kinds[i].name_key);
    if (name) return ait_pt2_define(scope, name, kinds[i].type, out);
    if (kinds[i].type == AIT_TYPE_TENSOR) return ait_error(AIT_CODE_INVALID_MODEL, "a tensor without a name");
  }
  static const char *const constants[] = {"as_none",   "as_int",     "as_float",     "as_bool",
                                          "as_string", "as_sym_int", "as_sym_float", "as_sym_bool"};
  for (size_t i = 0; i < AIT_COUNT(constants); ++i) {
    if (strcmp(member->key, constants[i]) == 0) return AIT_OK;
  }
  if (strcmp(member->key, "as_custom_obj") == 0) return ait_error(AIT_CODE_UNSUPPORTED, "an object of a TorchBind class");
  return ait_error(AIT_CODE_INVALID_MODEL, "'%s' cannot stand here", member->key);
}

/* A value of the outer graph as an input of this one. */
static ait_status capture(ait_pt2_scope *scope, const char *name, uint32_t *out) {
  uint32_t outer;
  AIT_TRY(ait_pt2_value(scope->outer, name, &outer));
  AIT_TRY(ait_grow(scope->in->arena.allocator, (void **)&scope->captures, &scope->capture_capacity, scope->capture_count + 1,
                   sizeof *scope->captures));
  ait_value_info like = scope->outer->graph->values[outer];
  AIT_TRY(ait_graph_add_value(scope->graph, name, &like, out));
  AIT_TRY(ait_pt2_remember(scope, name, *out));
  scope->captures[scope->capture_count++] = outer;
  ait_region_input input = {
      .value = *out, .kind = AIT_INPUT_USER, .name = scope->graph->values[*out].name, .user_index = (int32_t)scope->graph->input_count};
  return ait_graph_add_input(scope->graph, &input);
}

ait_status ait_pt2_value(ait_pt2_scope *scope, const char *name, uint32_t *out) {
  void *id;
  if (!name) return ait_error(AIT_CODE_INVALID_MODEL, "a value without a name");
  if (ait_map_get(&scope->subclasses, name, NULL))
    return ait_error(AIT_CODE_UNSUPPORTED, "value '%s' is a tensor subclass; only its parts can be read", name);
  bool known = ait_map_get(&scope->values, name, &id);
  if (!known && scope->outer) return capture(scope, name, out);
  if (!known) return ait_error(AIT_CODE_INVALID_MODEL, "value '%s' is used, but nothing before defines it", name);
  *out = (uint32_t)((uintptr_t)id - 1);
  return AIT_OK;
}
