/* The ExportedProgram: versions, symbols, inputs, nodes, outputs, guards. */
#include "import/pt2/expr.h"
#include "import/pt2/pt2.h"

typedef struct program {
  ait_pt2_import *in;
  ait_pt2_scope scope;
  const ait_json *json, *graph, *signature, *call; /* call: the root's call signature */
  ait_pt2_leaf *leaves;                            /* of the user's arguments; NULL: not known */
  uint32_t leaf_count;
  ait_map user_inputs;   /* placeholder name to user index + 1 */
  ait_map weight_inputs; /* fully qualified name to value id + 1 */
  int32_t user_count;
} program;

static ait_status missing(const char *what) { return ait_error(AIT_CODE_INVALID_MODEL, "the program has no %s", what); }

static ait_status check_version(const ait_json *json) {
  int64_t major;
  const ait_json *version = ait_json_get(json, "schema_version");
  if (json->kind != AIT_JSON_OBJECT) return ait_error(AIT_CODE_INVALID_MODEL, "the program is no JSON object");
  if (!ait_json_get_int(version, "major", &major)) return missing("schema_version");
  if (major != 8) return ait_error(AIT_CODE_UNSUPPORTED, "schema version %lld is not known; torch 2.6 to 2.14 write 8", (long long)major);
  return AIT_OK;
}

/* ---- symbols ---------------------------------------------------------------------------------------------------------------------*/

/* A bound; infinities and null leave it alone. */
static void read_bound(const ait_json *range, const char *key, int64_t *bound) {
  const ait_json *value = ait_json_get(range, key);
  if (value && value->kind == AIT_JSON_INT) *bound = value->as.i;
}

/* "2*s77": a bound of a derived size becomes a guard. */
static ait_status add_derived_range(ait_graph *g, const char *text, int64_t min, int64_t max) {
  ait_dim derived, bound;
  AIT_TRY(ait_expr_parse(g, text, NULL, &derived));
  if (!ait_dim_is_known(g, derived)) return AIT_OK;
  if (min > 0) {
    AIT_TRY(ait_dim_const(g, min, &bound));
    AIT_TRY(ait_graph_add_guard(g, AIT_GUARD_LE, bound, derived, text));
  }
  if (max < INT64_MAX) {
    AIT_TRY(ait_dim_const(g, max, &bound));
    AIT_TRY(ait_graph_add_guard(g, AIT_GUARD_LE, derived, bound, text));
  }
  return AIT_OK;
}

/* Symbols first (guards ask for their ranges), then the derived sizes. */
static ait_status read_ranges(program *p, bool derived) {
  ait_graph *g = p->in->graph;
  const ait_json *ranges = ait_json_get_kind(p->json, "range_constraints", AIT_JSON_OBJECT);
  for (uint32_t i = 0; ranges && i < ranges->count; ++i) {
    const ait_json *range = &ranges->as.items[i];
    ait_symbol *symbol = ait_graph_symbol(g, range->key);
    if (symbol && !derived) {
      read_bound(range, "min_val", &symbol->min);
      read_bound(range, "max_val", &symbol->max);
      if (symbol->min > symbol->max) return ait_error(AIT_CODE_INVALID_MODEL, "the range of '%s' is empty", range->key);
    } else if (!symbol && derived) {
      int64_t min = 0, max = INT64_MAX;
      read_bound(range, "min_val", &min);
      read_bound(range, "max_val", &max);
      AIT_TRY(add_derived_range(g, range->key, min, max));
    }
  }
  return AIT_OK;
}

static void back_symbol(ait_graph *g, ait_dim dim, bool is_size) {
  if (dim == AIT_NO_INDEX || g->dims[dim].op != AIT_DIM_SYMBOL) return;
  ait_symbol *symbol = &g->symbols[g->dims[dim].a];
  symbol->backed = true;
  if (!is_size && symbol->min == 0) symbol->min = INT64_MIN; /* an int argument may be negative, unless its range says otherwise */
}

/* A size like 8*s39 tells its symbol, when the others in it are told elsewhere: tried with any value that the operations allow. */
static bool back_by_solving(ait_graph *g, ait_dim dim, int64_t *symbols) {
  for (uint32_t steps = 0; g->dims[dim].op != AIT_DIM_SYMBOL && steps < 64; ++steps) {
    const ait_dim_expr *e = &g->dims[dim];
    int64_t a, b;
    if (e->op != AIT_DIM_ADD && e->op != AIT_DIM_SUB && e->op != AIT_DIM_MUL) return false;
    bool has_a = ait_dim_eval(g->dims, symbols, e->a, &a), has_b = ait_dim_eval(g->dims, symbols, e->b, &b);
    if (has_a == has_b) return false;
    dim = has_a ? e->b : e->a;
  }
  if (g->dims[dim].op != AIT_DIM_SYMBOL || symbols[g->dims[dim].a] != INT64_MIN) return false;
  symbols[g->dims[dim].a] = 1;
  g->symbols[g->dims[dim].a].backed = true;
  return true;
}

/* A size or int argument of the caller's that is a symbol binds it; then the expressions with one symbol left. */
static ait_status back_symbols(ait_graph *g) {
  for (size_t i = 0; i < g->input_count; ++i) {
    if (g->inputs[i].kind != AIT_INPUT_USER || g->inputs[i].value == AIT_NO_INDEX) continue;
    const ait_value_info *v = &g->values[g->inputs[i].value];
    for (int32_t d = 0; v->type == AIT_TYPE_TENSOR && d < v->rank; ++d) back_symbol(g, v->shape[d], true);
    if (v->type == AIT_TYPE_INT) back_symbol(g, v->scalar, false);
  }
  int64_t *symbols = ait_alloc(g->allocator, (g->symbol_count + 1) * sizeof *symbols, _Alignof(int64_t));
  if (!symbols) return AIT_OOM();
  for (size_t i = 0; i < g->symbol_count; ++i) symbols[i] = g->symbols[i].backed ? 1 : INT64_MIN;
  for (bool progress = true; progress;) {
    progress = false;
    for (size_t i = 0; i < g->input_count; ++i) {
      if (g->inputs[i].kind != AIT_INPUT_USER || g->inputs[i].value == AIT_NO_INDEX) continue;
      const ait_value_info *v = &g->values[g->inputs[i].value];
      for (int32_t d = 0; v->type == AIT_TYPE_TENSOR && d < v->rank; ++d) progress |= back_by_solving(g, v->shape[d], symbols);
    }
  }
  ait_free(g->allocator, symbols, (g->symbol_count + 1) * sizeof *symbols);
  return AIT_OK;
}

/* ---- guards ----------------------------------------------------------------------------------------------------------------------*/

/* Whether the path of a guard is that of a leaf. The arguments that forward takes as *rest are leaves L['rest_0'], L['rest_1'] by their
 * names in the signature, and L['rest'][0], L['rest'][1] in guards. */
static bool same_path(const char *leaf, const char *path, size_t length) {
  if (strlen(leaf) == length && memcmp(leaf, path, length) == 0) return true;
  const char *bracket = memchr(path, ']', length), *end = path + length;
  if (!bracket || bracket + 2 >= end || bracket[-1] != '\'' || bracket[1] != '[' || bracket[2] < '0' || bracket[2] > '9') return false;
  size_t name = (size_t)(bracket - 1 - path), digits = 0;
  while (bracket + 2 + digits < end && bracket[2 + digits] >= '0' && bracket[2 + digits] <= '9') ++digits;
  const char *rest = bracket + 2 + digits; /* "]" and what follows */
  if (rest >= end || *rest != ']' || strlen(leaf) != name + 1 + digits + 1 + (size_t)(end - rest)) return false;
  return memcmp(leaf, path, name) == 0 && leaf[name] == '_' && memcmp(leaf + name + 1, bracket + 2, digits) == 0 &&
         leaf[name + 1 + digits] == '\'' && memcmp(leaf + name + 2 + digits, rest, (size_t)(end - rest)) == 0;
}

/* L['x'].size()[1]: the shape of the user input whose path that is. */
static bool find_local(void *ctx, const char *path, size_t length, int64_t axis, ait_dim *out) {
  const program *p = ctx;
  const ait_graph *g = p->in->graph;
  for (size_t i = 0; i < g->input_count; ++i) {
    const ait_region_input *input = &g->inputs[i];
    if (input->kind != AIT_INPUT_USER || input->value == AIT_NO_INDEX || input->user_index < 0 ||
        (uint32_t)input->user_index >= p->leaf_count)
      continue;
    if (!same_path(p->leaves[input->user_index].path, path, length)) continue;
    const ait_value_info *v = &g->values[input->value];
    if (axis >= 0 && v->type == AIT_TYPE_TENSOR && axis < v->rank) *out = v->shape[axis];
    else if (axis < 0 && v->type == AIT_TYPE_INT && v->scalar != AIT_NO_INDEX) *out = v->scalar;
    else return false;
    return true;
  }
  return false;
}

static ait_status read_guards(program *p) {
  const ait_json *guards = ait_json_get_kind(p->json, "guards_code", AIT_JSON_ARRAY);
  ait_expr_names names = {find_local, p};
  for (uint32_t i = 0; guards && i < guards->count; ++i) {
    if (guards->as.items[i].kind == AIT_JSON_STRING) AIT_TRY(ait_expr_add_guards(p->in->graph, guards->as.items[i].as.string, &names));
  }
  return AIT_OK;
}

/* ---- inputs ----------------------------------------------------------------------------------------------------------------------*/

/* The tensor of the file must be what the graph says of its placeholder. */
static ait_status check_weight(const ait_graph *g, const ait_value_info *v, const ait_pt2_tensor *t) {
  if (v->rank < 0) return AIT_OK;
  bool same = v->dtype == t->dtype && v->rank == t->rank;
  for (int32_t d = 0; same && d < v->rank; ++d) {
    int64_t size;
    same = !ait_dim_is_const(g, v->shape[d], &size) || size == t->shape[d];
  }
  if (same) return AIT_OK;
  return ait_error(AIT_CODE_INVALID_MODEL, "the file's shape or dtype is not the one that the graph states for '%s'", v->name);
}

/* A tensor that the caller gives from elsewhere need not be in the file: *out is NULL for all others. */
static ait_status find_weight(program *p, ait_pt2_table table, const char *name, ait_pt2_tensor *t, const ait_tensor **out) {
  const ait_map *given = p->in->options ? p->in->options->weights : NULL;
  void *tensor = NULL;
  *out = NULL;
  ait_status status = ait_pt2_weights_find(&p->in->weights, table, name, t);
  if (!status && !t->is_subclass) status = ait_pt2_weights_add(&p->in->weights, name, t);
  if (!status || !given || !ait_map_get(given, name, &tensor)) return status;
  ait_status_ignore(status);
  *t = (ait_pt2_tensor){0};
  *out = tensor;
  return AIT_OK;
}

/* Tied parameters may come as two placeholders of one name (torch 2.6): they are one input. */
static ait_status add_weight(program *p, ait_region_input *input, ait_pt2_table table, const char *placeholder) {
  ait_pt2_tensor *t = AIT_ARENA_NEW(&p->in->arena, ait_pt2_tensor);
  void *same;
  if (!t) return AIT_OOM();
  if (ait_map_get(&p->weight_inputs, input->name, &same)) return ait_pt2_remember(&p->scope, placeholder, (uint32_t)((uintptr_t)same - 1));
  const ait_tensor *given = NULL;
  if (!p->in->missing) {
    AIT_TRY(find_weight(p, table, input->name, t, &given));
    t->name = input->name;
    if (t->is_subclass) return ait_map_put(&p->scope.subclasses, placeholder, t);
  }
  AIT_TRY(ait_pt2_define(&p->scope, placeholder, AIT_TYPE_TENSOR, &input->value));
  if (given) {
    AIT_TRY(ait_import_give_weight(p->in->weights.store, p->in->graph, &p->in->graph->values[input->value], input->name, given));
  } else if (!p->in->missing) {
    AIT_TRY(ait_error_context(check_weight(p->in->graph, &p->in->graph->values[input->value], t), "weight '%s'", input->name));
  }
  AIT_TRY(ait_map_put(&p->weight_inputs, input->name, (void *)((uintptr_t)input->value + 1)));
  return ait_graph_add_input(p->in->graph, input);
}

/* The placeholder knows the fields of dataclasses and named tuples; elsewhere the spec's spelling is the user's own. */
static const char *user_name(const program *p, int32_t index, const char *placeholder) {
  return (uint32_t)index < p->leaf_count && *p->leaves[index].path ? p->leaves[index].name : placeholder;
}

static ait_status add_user_input(program *p, ait_region_input *input, const ait_json *argument, const char *placeholder) {
  input->kind = AIT_INPUT_USER;
  input->user_index = p->user_count++;
  AIT_TRY(ait_pt2_define_argument(&p->scope, argument, &input->value));
  if (input->value == AIT_NO_INDEX) AIT_TRY(ait_pt2_argument(&p->scope, argument, NULL, &input->baked));
  else placeholder = p->in->graph->values[input->value].name;
  if (!placeholder) placeholder = ait_arena_printf(&p->in->arena, "input_%d", (int)input->user_index);
  if (!placeholder) return AIT_OOM();
  input->name = user_name(p, input->user_index, placeholder);
  AIT_TRY(ait_map_put(&p->user_inputs, placeholder, (void *)((uintptr_t)input->user_index + 1)));
  return ait_graph_add_input(p->in->graph, input);
}

static ait_status add_token(program *p, ait_region_input *input, const char *name) {
  ait_value_info info = {.type = AIT_TYPE_NONE, .rank = -1, .scalar = AIT_NO_INDEX};
  AIT_TRY(ait_graph_add_value(p->in->graph, name, &info, &input->value));
  AIT_TRY(ait_pt2_remember(&p->scope, name, input->value));
  input->kind = AIT_INPUT_TOKEN;
  input->name = name;
  return ait_graph_add_input(p->in->graph, input);
}

/* The name in an Argument of a tensor or symbolic number; NULL for all others. */
static const char *argument_name(const ait_json *argument) {
  if (!argument || argument->kind != AIT_JSON_OBJECT || argument->count != 1) return NULL;
  const char *name = ait_json_get_string(&argument->as.items[0], "name");
  return name ? name : ait_json_get_string(&argument->as.items[0], "as_name");
}

/* Signature and graph state the inputs and outputs both: they must mean the same values. */
static ait_status check_names(const ait_json *spec, const ait_json *argument) {
  const ait_json *arg = ait_json_get(spec, "arg");
  const char *stated = argument_name(arg), *name = argument_name(argument);
  if (!stated) stated = ait_json_get_string(arg, "name");
  if (!stated || (name && strcmp(stated, name) == 0)) return AIT_OK;
  return ait_error(AIT_CODE_INVALID_MODEL, "the signature says '%s' where the graph says '%s'", stated, name ? name : "something else");
}

static ait_status add_input(program *p, const ait_json *spec_union, const ait_json *argument) {
  static const struct {
    const char *tag, *name_key;
    ait_input_kind kind;
  } weights[] = {{"parameter", "parameter_name", AIT_INPUT_PARAMETER},
                 {"buffer", "buffer_name", AIT_INPUT_BUFFER},
                 {"tensor_constant", "tensor_constant_name", AIT_INPUT_CONSTANT}};
  const ait_json *spec;
  AIT_TRY(ait_pt2_union(spec_union, &spec));
  ait_region_input input = {.value = AIT_NO_INDEX, .user_index = -1};
  const char *placeholder = ait_json_get_string(ait_json_get(spec, "arg"), "name");
  AIT_TRY(check_names(spec, argument));
  for (size_t i = 0; i < AIT_COUNT(weights); ++i) {
    if (strcmp(spec->key, weights[i].tag) != 0) continue;
    const ait_json *persistent = ait_json_get_kind(spec, "persistent", AIT_JSON_BOOL);
    bool constant = weights[i].kind == AIT_INPUT_CONSTANT || (persistent && !persistent->as.b);
    input.kind = weights[i].kind;
    input.name = ait_json_get_string(spec, weights[i].name_key);
    if (!input.name || !placeholder) return ait_error(AIT_CODE_INVALID_MODEL, "an input without a name");
    return add_weight(p, &input, constant ? AIT_PT2_CONSTANTS : AIT_PT2_WEIGHTS, placeholder);
  }
  if (strcmp(spec->key, "user_input") == 0) return add_user_input(p, &input, argument, NULL);
  if (strcmp(spec->key, "constant_input") == 0)
    return add_user_input(p, &input, ait_json_get(spec, "value"), ait_json_get_string(spec, "name"));
  if (strcmp(spec->key, "token") == 0 && placeholder) return add_token(p, &input, placeholder);
  if (strcmp(spec->key, "custom_obj") == 0)
    return ait_error(AIT_CODE_UNSUPPORTED, "input '%s' is an object of a TorchBind class", placeholder ? placeholder : "");
  return ait_error(AIT_CODE_INVALID_MODEL, "an input of unknown kind '%s'", spec->key);
}

static ait_status set_input_spec(program *p) {
  const ait_graph *g = p->in->graph;
  const char **names = AIT_ARENA_ARRAY(&p->in->arena, const char *, (size_t)p->user_count + 1);
  if (!names) return AIT_OOM();
  for (size_t i = 0; i < g->input_count; ++i) {
    if (g->inputs[i].user_index >= 0) names[g->inputs[i].user_index] = g->inputs[i].name;
  }
  return ait_graph_set_input_spec(p->in->graph, names, (size_t)p->user_count);
}

static ait_status read_inputs(program *p) {
  const ait_json *specs = ait_json_get_kind(p->signature, "input_specs", AIT_JSON_ARRAY);
  const ait_json *inputs = ait_json_get_kind(p->graph, "inputs", AIT_JSON_ARRAY);
  if (!specs || !inputs) return missing("inputs or input_specs");
  if (specs->count != inputs->count) {
    return ait_error(AIT_CODE_INVALID_MODEL, "the graph has %u inputs, the signature %u", (unsigned)inputs->count, (unsigned)specs->count);
  }
  uint32_t users = 0;
  for (uint32_t i = 0; i < specs->count; ++i)
    users += ait_json_get(&specs->as.items[i], "user_input") || ait_json_get(&specs->as.items[i], "constant_input");
  AIT_TRY(ait_pt2_input_leaves(&p->in->arena, p->call, &p->leaves, &p->leaf_count));
  if (p->leaf_count != users) p->leaf_count = 0; /* names are a comfort: without them the placeholders' will do */
  for (uint32_t i = 0; i < specs->count; ++i) {
    AIT_TRY(ait_error_context(add_input(p, &specs->as.items[i], &inputs->as.items[i]), "input %u", (unsigned)i));
  }
  return set_input_spec(p);
}

/* ---- outputs ---------------------------------------------------------------------------------------------------------------------*/

static ait_status find_user_input(const program *p, const char *name, int32_t *out) {
  void *index;
  if (!name || !ait_map_get(&p->user_inputs, name, &index))
    return ait_error(AIT_CODE_INVALID_MODEL, "it changes input '%s', which is none of the caller's", name ? name : "");
  *out = (int32_t)((uintptr_t)index - 1);
  return AIT_OK;
}

/* The input whose new contents the output is. */
static ait_status mark_input(ait_graph *g, const ait_region_output *output) {
  bool found = output->kind == AIT_OUTPUT_USER || output->kind == AIT_OUTPUT_TOKEN;
  for (size_t i = 0; i < g->input_count; ++i) {
    ait_region_input *input = &g->inputs[i];
    bool state = output->kind == AIT_OUTPUT_STATE && (input->kind == AIT_INPUT_BUFFER || input->kind == AIT_INPUT_PARAMETER) &&
                 strcmp(input->name, output->name) == 0;
    bool user = output->kind == AIT_OUTPUT_INPUT && input->kind == AIT_INPUT_USER && input->user_index == output->user_index;
    input->mutated |= state || user;
    found |= state || user;
  }
  return found ? AIT_OK : ait_error(AIT_CODE_INVALID_MODEL, "it changes '%s', which is none of the program's buffers", output->name);
}

/* kind, name and user_index of an output. */
static ait_status classify_output(program *p, const ait_json *spec, const ait_pt2_leaf *leaf, ait_region_output *out) {
  if (strcmp(spec->key, "user_output") == 0 || strcmp(spec->key, "loss_output") == 0) {
    out->kind = AIT_OUTPUT_USER;
    out->name = leaf ? leaf->name : ait_arena_printf(&p->in->arena, "output_%d", (int)out->user_index);
    return out->name ? AIT_OK : AIT_OOM();
  }
  out->user_index = -1;
  if (strcmp(spec->key, "token") == 0) {
    out->kind = AIT_OUTPUT_TOKEN;
    out->name = "";
    return AIT_OK;
  }
  if (strcmp(spec->key, "user_input_mutation") == 0) {
    out->kind = AIT_OUTPUT_INPUT;
    out->name = ait_json_get_string(spec, "user_input_name");
    AIT_TRY(find_user_input(p, out->name, &out->user_index));
    out->name = user_name(p, out->user_index, out->name);
    return AIT_OK;
  }
  out->kind = AIT_OUTPUT_STATE;
  if (strcmp(spec->key, "buffer_mutation") == 0) out->name = ait_json_get_string(spec, "buffer_name");
  else if (strcmp(spec->key, "parameter_mutation") == 0) out->name = ait_json_get_string(spec, "parameter_name");
  else return ait_error(AIT_CODE_UNSUPPORTED, "an output of kind '%s'", spec->key);
  return out->name ? AIT_OK : ait_error(AIT_CODE_INVALID_MODEL, "a changed buffer without a name");
}

static ait_status read_outputs(program *p) {
  const ait_json *specs = ait_json_get_kind(p->signature, "output_specs", AIT_JSON_ARRAY);
  const ait_json *outputs = ait_json_get_kind(p->graph, "outputs", AIT_JSON_ARRAY);
  ait_pt2_leaf *leaves;
  uint32_t leaf_count, users = 0, user = 0;
  if (!specs || !outputs) return missing("outputs or output_specs");
  if (specs->count != outputs->count) {
    return ait_error(AIT_CODE_INVALID_MODEL, "the graph has %u outputs, the signature %u", (unsigned)outputs->count,
                     (unsigned)specs->count);
  }
  AIT_TRY(ait_pt2_output_leaves(&p->in->arena, p->call, &leaves, &leaf_count));
  for (uint32_t i = 0; i < specs->count; ++i)
    users += ait_json_get(&specs->as.items[i], "user_output") || ait_json_get(&specs->as.items[i], "loss_output");
  for (uint32_t i = 0; i < specs->count; ++i) {
    ait_region_output output = {.user_index = (int32_t)user};
    const ait_json *spec;
    AIT_TRY(ait_pt2_union(&specs->as.items[i], &spec));
    ait_status status = classify_output(p, spec, users == leaf_count && user < leaf_count ? &leaves[user] : NULL, &output);
    if (!status) status = ait_pt2_argument(&p->scope, &outputs->as.items[i], NULL, &output.arg);
    if (!status) status = check_names(spec, &outputs->as.items[i]);
    if (!status) status = mark_input(p->in->graph, &output);
    if (status) return ait_error_context(status, "output %u", (unsigned)i);
    user += output.kind == AIT_OUTPUT_USER;
    AIT_TRY(ait_graph_add_output(p->in->graph, &output));
  }
  return AIT_OK;
}

/* ---- all -------------------------------------------------------------------------------------------------------------------------*/

static ait_status name_graph(program *p) {
  ait_graph *g = p->in->graph;
  const char *torch = ait_json_get_string(p->json, "torch_version");
  const char *producer = torch ? ait_arena_printf(&p->in->arena, "torch %s", torch) : "torch";
  if (!producer) return AIT_OOM();
  AIT_TRY(ait_graph_strdup(g, p->in->model, &g->name));
  return ait_graph_strdup(g, producer, &g->producer);
}

static ait_status read_graph(program *p) {
  AIT_TRY(name_graph(p));
  AIT_TRY(ait_pt2_add_modules(p->in, ait_json_get(ait_json_get(p->json, "graph_module"), "module_call_graph")));
  AIT_TRY(read_inputs(p));
  AIT_TRY(back_symbols(p->in->graph));
  AIT_TRY(ait_pt2_add_nodes(&p->scope, p->graph));
  AIT_TRY(read_ranges(p, false));
  AIT_TRY(read_outputs(p));
  AIT_TRY(read_ranges(p, true));
  AIT_TRY(read_guards(p));
  return ait_pt2_mark_mutated(p->in->graph);
}

ait_status ait_pt2_read_program(ait_pt2_import *in, const ait_json *json) {
  program p = {.in = in, .json = json};
  AIT_TRY(check_version(json));
  const ait_json *module = ait_json_get(json, "graph_module");
  const ait_json *calls = ait_json_get_kind(module, "module_call_graph", AIT_JSON_ARRAY);
  p.graph = ait_json_get_kind(module, "graph", AIT_JSON_OBJECT);
  p.signature = ait_json_get_kind(module, "signature", AIT_JSON_OBJECT);
  p.call = calls && calls->count ? ait_json_get(&calls->as.items[0], "signature") : NULL;
  if (!p.graph || !p.signature) return missing("graph or signature");
  ait_map_init(&p.user_inputs, in->arena.allocator);
  ait_map_init(&p.weight_inputs, in->arena.allocator);
  ait_status status = ait_pt2_scope_init(&p.scope, in, in->graph, p.graph, 0);
  if (!status) status = read_graph(&p);
  ait_pt2_scope_deinit(&p.scope);
  ait_map_deinit(&p.user_inputs);
  ait_map_deinit(&p.weight_inputs);
  return status;
}
