/* auto_functionalized(operator, arguments by name …): how torch writes a custom operator that changes its arguments once a program is
 * decomposed. The results are the operator's, then the new contents of what it changed. Here it becomes the operator's own node in the
 * functional form (one more result for each written argument), with views of the second version spelled out around it. */
#include "import/pt2/pt2.h"
#include <stdio.h>

enum { WRITTEN_LIMIT = 64 };

typedef struct functional {
  ait_pt2_scope *scope;
  const ait_json *inputs, *outputs;
  const ait_op *schema;
  const char *name;
  uint32_t module;
  bool bases;                               /* second version: arguments are views of `base`s */
  uint32_t base[WRITTEN_LIMIT], base_count; /* current contents */
  uint32_t base_of[WRITTEN_LIMIT];          /* by written argument, in schema order: index into base */
  const char *written[WRITTEN_LIMIT];       /* names */
  ait_arg view[WRITTEN_LIMIT][4];           /* arguments of its view after the base */
  enum { WHOLE, SLICE, STRIDED } kind[WRITTEN_LIMIT];
  uint32_t written_count;
} functional;

bool ait_pt2_is_functional(const char *target) {
  return ait_ends_with(target, "higher_order.auto_functionalized") || ait_ends_with(target, "higher_order.auto_functionalized_v2");
}

static ait_status malformed(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "auto_functionalized: %s", what); }

/* The argument of that name; a NULL suffix: the parameter's own. */
static const ait_json *find_input(const functional *f, const char *param, const char *suffix) {
  char name[256];
  snprintf(name, sizeof name, suffix ? "_%s_%s" : "%s", param, suffix);
  for (uint32_t i = 1; i < f->inputs->count; ++i) {
    const char *have = ait_json_get_string(&f->inputs->as.items[i], "name");
    if (have && strcmp(have, name) == 0) return ait_json_get(&f->inputs->as.items[i], "arg");
  }
  return NULL;
}

static ait_status read_bases(functional *f) {
  ait_arg list;
  const ait_json *all = NULL;
  for (uint32_t i = 1; i < f->inputs->count && !all; ++i) {
    const char *have = ait_json_get_string(&f->inputs->as.items[i], "name");
    if (have && strcmp(have, "_all_bases") == 0) all = ait_json_get(&f->inputs->as.items[i], "arg");
  }
  f->bases = all != NULL;
  if (!all) return AIT_OK;
  AIT_TRY(ait_pt2_argument(f->scope, all, NULL, &list));
  if (list.kind != AIT_ARG_LIST || list.count > WRITTEN_LIMIT) return malformed("'_all_bases' is no list, or too long");
  for (uint32_t i = 0; i < list.count; ++i) {
    if (list.as.list[i].kind != AIT_ARG_VALUE) return malformed("a base is no tensor");
    f->base[f->base_count++] = list.as.list[i].as.value;
  }
  return AIT_OK;
}

static ait_status emit(functional *f, const char *op, const ait_arg *args, uint32_t count, const ait_value_info *like, uint32_t *out) {
  const ait_op *row = ait_op_find(op);
  if (!row || row->param_count != count)
    return ait_error(AIT_CODE_INTERNAL, "ops.inc has no row '%s' of %u arguments", op, (unsigned)count);
  AIT_TRY(ait_graph_add_value(f->scope->graph, f->name, like, out));
  return ait_graph_add_node(f->scope->graph, NULL, row, row->name, 0, args, count, out, 1, f->name, f->module, NULL);
}

/* Metadata of a slice of known size; else its rank is not known. */
static ait_status slice_info(functional *f, const ait_value_info *base, const ait_arg *view, ait_value_info *out) {
  ait_graph *g = f->scope->graph;
  int64_t size, begin = view[1].as.i, end = view[2].as.i, dim = view[0].as.i;
  *out = (ait_value_info){.type = AIT_TYPE_TENSOR, .dtype = base->dtype, .rank = -1, .scalar = AIT_NO_INDEX};
  bool known = view[0].kind == AIT_ARG_INT && view[1].kind == AIT_ARG_INT && view[2].kind == AIT_ARG_INT && dim >= 0 && dim < base->rank &&
               ait_dim_is_const(g->root, base->shape[dim], &size) && begin >= 0 && end >= begin;
  if (!known) return AIT_OK;
  ait_dim *shape = AIT_ARENA_ARRAY(g->arena, ait_dim, (size_t)base->rank);
  if (!shape) return AIT_OOM();
  memcpy(shape, base->shape, (size_t)base->rank * sizeof *shape);
  end = end < size ? end : size;
  AIT_TRY(ait_dim_const(g->root, end > begin ? end - begin : 0, &shape[dim]));
  out->rank = base->rank;
  out->shape = shape;
  return AIT_OK;
}

/* What the argument reads of its base; none of the keys: all of it. */
static ait_status read_view(functional *f, uint32_t w, const char *param) {
  static const char *const slice[] = {"slice_dim", "slice_start", "slice_end"}, *const strided[] = {"size", "stride", "storage_offset"};
  f->kind[w] = find_input(f, param, slice[0]) ? SLICE : find_input(f, param, strided[0]) ? STRIDED : WHOLE;
  for (uint32_t i = 0; f->kind[w] != WHOLE && i < 3; ++i) {
    const ait_json *json = find_input(f, param, f->kind[w] == SLICE ? slice[i] : strided[i]);
    if (!json) return malformed("a view lacks one of its numbers");
    AIT_TRY(ait_pt2_argument(f->scope, json, NULL, &f->view[w][i]));
  }
  return AIT_OK;
}

static ait_status written_argument(functional *f, const ait_param *param, ait_arg *out) {
  uint32_t w = f->written_count++;
  ait_graph *g = f->scope->graph;
  if (w == WRITTEN_LIMIT) return malformed("too many written arguments");
  f->written[w] = param->name;
  if (!f->bases) { /* first version: the tensor itself */
    const ait_json *json = find_input(f, param->name, NULL);
    if (!json || f->base_count == WRITTEN_LIMIT) return malformed("a written argument is missing");
    AIT_TRY(ait_pt2_argument(f->scope, json, param, out));
    if (out->kind != AIT_ARG_VALUE) return malformed("a written argument is no tensor");
    f->base_of[w] = f->base_count;
    f->base[f->base_count++] = out->as.value;
    return AIT_OK;
  }
  ait_arg index = ait_arg_none();
  const ait_json *json = find_input(f, param->name, "base_index");
  if (json) AIT_TRY(ait_pt2_argument(f->scope, json, NULL, &index));
  if (index.kind != AIT_ARG_INT || index.as.i < 0 || index.as.i >= f->base_count)
    return ait_error(AIT_CODE_UNSUPPORTED, "auto_functionalized: argument '%s' has no base", param->name);
  f->base_of[w] = (uint32_t)index.as.i;
  AIT_TRY(read_view(f, w, param->name));
  uint32_t base = f->base[f->base_of[w]];
  const ait_arg *v = f->view[w];
  ait_value_info info;
  *out = ait_arg_value(base);
  if (f->kind[w] == SLICE) {
    AIT_TRY(slice_info(f, &g->values[base], v, &info));
    ait_arg args[] = {ait_arg_value(base), v[0], v[1], v[2], ait_arg_int(1)};
    return emit(f, "aten.slice.Tensor", args, AIT_COUNT(args), &info, &out->as.value);
  }
  if (f->kind[w] == STRIDED) {
    info = (ait_value_info){.type = AIT_TYPE_TENSOR, .dtype = g->values[base].dtype, .rank = -1, .scalar = AIT_NO_INDEX};
    ait_arg args[] = {ait_arg_value(base), v[0], v[1], v[2]};
    return emit(f, "aten.as_strided", args, AIT_COUNT(args), &info, &out->as.value);
  }
  return AIT_OK;
}

/* The base after the call. */
static ait_status write_back(functional *f, uint32_t w, uint32_t value) {
  uint32_t *base = &f->base[f->base_of[w]];
  ait_value_info info = f->scope->graph->values[*base];
  const ait_arg *v = f->view[w];
  if (f->kind[w] == SLICE) {
    ait_arg args[] = {ait_arg_value(*base), ait_arg_value(value), v[0], v[1], v[2], ait_arg_int(1)};
    return emit(f, "aten.slice_scatter", args, AIT_COUNT(args), &info, base);
  }
  if (f->kind[w] == STRIDED) {
    ait_arg args[] = {ait_arg_value(*base), ait_arg_value(value), v[0], v[1], v[2]};
    return emit(f, "aten.as_strided_scatter", args, AIT_COUNT(args), &info, base);
  }
  *base = value;
  return AIT_OK;
}

static ait_status read_args(functional *f, ait_arg *args) {
  for (uint32_t i = 0; i < f->schema->param_count; ++i) {
    const ait_param *param = &f->schema->params[i];
    if (param->written) {
      AIT_TRY(ait_error_context(written_argument(f, param, &args[i]), "argument '%s'", param->name));
      continue;
    }
    const ait_json *json = find_input(f, param->name, NULL);
    if (!json && !param->has_default && !param->is_optional)
      return ait_error(AIT_CODE_INVALID_MODEL, "argument '%s' is missing", param->name);
    if (json) AIT_TRY(ait_error_context(ait_pt2_argument(f->scope, json, param, &args[i]), "argument '%s'", param->name));
    else args[i] = param->has_default ? param->default_value : ait_arg_none();
  }
  return AIT_OK;
}

static ait_status add_call(functional *f, const char *op_name) {
  const ait_op *schema = f->schema, *row = ait_op_find("custom");
  ait_graph *g = f->scope->graph;
  ait_arena *arena = &f->scope->in->arena;
  ait_arg *args = AIT_ARENA_ARRAY(arena, ait_arg, schema->param_count + 1u);
  uint32_t *results = AIT_ARENA_ARRAY(arena, uint32_t, schema->result_count + WRITTEN_LIMIT), count = schema->result_count;
  if (!args || !results || !row) return AIT_OOM();
  AIT_TRY(read_args(f, args));
  /* An operator without results gives None first. */
  uint32_t first_base = count ? count : 1;
  for (uint32_t i = 0; i < count; ++i) {
    results[i] = AIT_NO_INDEX;
    if (i < f->outputs->count) AIT_TRY(ait_pt2_define_argument(f->scope, &f->outputs->as.items[i], &results[i]));
  }
  for (uint32_t w = 0, p = 0; p < schema->param_count; ++p) {
    if (!schema->params[p].written) continue;
    ait_value_info info = g->values[args[p].as.value];
    AIT_TRY(ait_graph_add_value(g, f->name, &info, &results[count + w++]));
  }
  AIT_TRY(
      ait_graph_add_node(g, NULL, row, op_name, 0, args, schema->param_count, results, count + f->written_count, f->name, f->module, NULL));
  for (uint32_t w = 0; w < f->written_count; ++w) AIT_TRY(write_back(f, w, results[count + w]));
  for (uint32_t i = 0; i < f->base_count && first_base + i < f->outputs->count; ++i) {
    const char *name = ait_json_get_string(ait_json_get(&f->outputs->as.items[first_base + i], "as_tensor"), "name");
    if (name) AIT_TRY(ait_pt2_remember(f->scope, name, f->base[i]));
  }
  return AIT_OK;
}

ait_status ait_pt2_add_functional(ait_pt2_scope *scope, const ait_json *node, const char *name, uint32_t module) {
  functional f = {.scope = scope,
                  .inputs = ait_json_get_kind(node, "inputs", AIT_JSON_ARRAY),
                  .outputs = ait_json_get_kind(node, "outputs", AIT_JSON_ARRAY),
                  .name = name,
                  .module = module};
  const char *target = f.inputs && f.inputs->count ? ait_json_get_string(ait_json_get(&f.inputs->as.items[0], "arg"), "as_operator") : NULL;
  ait_pt2_operator operator;
  if (!target || !f.outputs) return malformed("no operator among its arguments");
  AIT_TRY(ait_pt2_find_operator(scope->in, target, &operator));
  if (!operator.schema) { /* only while unknown operators are counted */
    for (uint32_t i = 0; i < f.outputs->count; ++i) {
      uint32_t value;
      AIT_TRY(ait_pt2_define_argument(scope, &f.outputs->as.items[i], &value));
    }
    return scope->in->missing ? AIT_OK
                              : ait_error(AIT_CODE_UNSUPPORTED, "auto_functionalized of '%s', which is no custom operator", operator.name);
  }
  f.schema = operator.schema;
  AIT_TRY(read_bases(&f));
  return ait_error_context(add_call(&f, operator.name), "'%s'", operator.name);
}
