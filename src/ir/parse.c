/* Text to graph: what print.c writes. Values must be defined above their uses. */
#include "ir/scan.h"

typedef struct arg_list {
  ait_arg *items;
  size_t count, capacity;
} arg_list;

static ait_status parse_body(scanner *s, ait_graph *g, int depth);
static ait_status parse_arg(scanner *s, ait_graph *g, int depth, ait_arg *out);

static ait_status push_arg(scanner *s, arg_list *list, ait_arg arg) {
  AIT_TRY(ait_graph_grow(s->graph, (void **)&list->items, &list->capacity, list->count + 1, sizeof arg));
  list->items[list->count++] = arg;
  return AIT_OK;
}

/* A word, or any text in quotes. */
static ait_status parse_name(scanner *s, const char **out) { return scan_peek(s, "\"") ? scan_string(s, out, NULL) : scan_word(s, out); }

/* Index of the word among the names. */
static ait_status parse_choice(scanner *s, const char *const *names, size_t count, const char *what, uint32_t *out) {
  for (uint32_t i = 0; i < count; ++i) {
    if (!scan_accept_word(s, names[i])) continue;
    *out = i;
    return AIT_OK;
  }
  return scan_error(s, "unknown %s", what);
}

/* ---- types ---------------------------------------------------------------------------------------------------------------------------*/

static ait_status parse_tensor_type(scanner *s, const char *dtype, ait_value_info *v) {
  v->type = AIT_TYPE_TENSOR;
  v->dtype = strcmp(dtype, "tensor") == 0 ? AIT_DTYPE_NONE : ait_dtype_from_name(dtype);
  if (v->dtype == AIT_DTYPE_NONE && strcmp(dtype, "tensor") != 0) return scan_error(s, "unknown type '%s'", dtype);
  AIT_TRY(scan_expect(s, "["));
  v->rank = -1;
  if (scan_accept(s, "...")) return scan_expect(s, "]");
  ait_dim *shape = AIT_ARENA_ARRAY(s->graph->arena, ait_dim, AIT_MAX_RANK);
  if (!shape) return AIT_OOM();
  v->rank = 0;
  v->shape = shape;
  while (!scan_accept(s, "]")) {
    if (v->rank && !scan_accept(s, ",")) return scan_error(s, "expected ',' or ']'");
    if (v->rank == AIT_MAX_RANK) return scan_error(s, "rank above %d", AIT_MAX_RANK);
    AIT_TRY(scan_dim(s, &shape[v->rank++]));
  }
  return AIT_OK;
}

static ait_status parse_list_type(scanner *s, ait_value_info *v) {
  v->type = AIT_TYPE_TENSOR_LIST;
  if (scan_accept(s, "*")) {
    int64_t count;
    AIT_TRY(scan_int(s, &count));
    if (count < 0 || count >= AIT_NO_INDEX) return scan_error(s, "list length out of range");
    v->list_count = (uint32_t)count;
    return AIT_OK;
  }
  if (!scan_accept(s, "(")) return AIT_OK;
  ait_value_info *elements = NULL;
  size_t capacity = 0;
  do {
    const char *dtype;
    AIT_TRY(ait_graph_grow(s->graph, (void **)&elements, &capacity, v->list_count + 1u, sizeof *elements));
    elements[v->list_count] = (ait_value_info){0};
    AIT_TRY(scan_word(s, &dtype));
    AIT_TRY(parse_tensor_type(s, dtype, &elements[v->list_count++]));
  } while (scan_accept(s, ","));
  v->elements = elements;
  return scan_expect(s, ")");
}

static ait_status parse_type(scanner *s, ait_value_info *v) {
  *v = (ait_value_info){.scalar = AIT_NO_INDEX};
  static const struct {
    const char *name;
    ait_type type;
  } plain[] = {{"none", AIT_TYPE_NONE}, {"float", AIT_TYPE_FLOAT}, {"string", AIT_TYPE_STRING}};
  for (size_t i = 0; i < AIT_COUNT(plain); ++i) {
    v->type = plain[i].type;
    if (scan_accept_word(s, plain[i].name)) return AIT_OK;
  }
  if (scan_accept_word(s, "int")) {
    v->type = AIT_TYPE_INT;
    if (!scan_accept(s, "(")) return AIT_OK;
    AIT_TRY(scan_dim(s, &v->scalar));
    return scan_expect(s, ")");
  }
  if (scan_accept_word(s, "list")) return parse_list_type(s, v);
  const char *dtype;
  AIT_TRY(scan_word(s, &dtype));
  if (strcmp(dtype, "bool") == 0 && !scan_peek(s, "[")) { /* "bool[2]" is a tensor of dtype bool */
    v->type = AIT_TYPE_BOOL;
    return AIT_OK;
  }
  return parse_tensor_type(s, dtype, v);
}

/* "%name: type" or "_". */
static ait_status parse_definition(scanner *s, ait_graph *g, uint32_t *out) {
  *out = AIT_NO_INDEX;
  if (scan_accept_word(s, "_")) return AIT_OK;
  const char *name;
  ait_value_info info;
  AIT_TRY(scan_expect(s, "%"));
  AIT_TRY(parse_name(s, &name));
  if (ait_graph_find_value(g, name) != AIT_NO_INDEX) return scan_error(s, "value '%s' is defined twice", name);
  AIT_TRY(scan_expect(s, ":"));
  AIT_TRY(parse_type(s, &info));
  return ait_graph_add_value(g, name, &info, out);
}

/* ---- arguments -----------------------------------------------------------------------------------------------------------------------*/

static ait_status parse_complex(scanner *s, ait_arg *out) {
  ait_arg parts[2];
  AIT_TRY(scan_expect(s, "("));
  AIT_TRY(scan_number(s, &parts[0]));
  AIT_TRY(scan_expect(s, ","));
  AIT_TRY(scan_number(s, &parts[1]));
  *out = (ait_arg){.kind = AIT_ARG_COMPLEX};
  for (int i = 0; i < 2; ++i) out->as.complex[i] = parts[i].kind == AIT_ARG_INT ? (double)parts[i].as.i : parts[i].as.f;
  return scan_expect(s, ")");
}

static ait_status parse_list(scanner *s, ait_graph *g, int depth, ait_arg *out) {
  arg_list list = {0};
  AIT_TRY(scan_enter(s));
  while (!scan_accept(s, "]")) {
    ait_arg item;
    if (list.count) AIT_TRY(scan_expect(s, ","));
    AIT_TRY(parse_arg(s, g, depth, &item));
    AIT_TRY(push_arg(s, &list, item));
  }
  --s->depth;
  *out = ait_arg_list(list.items, (uint32_t)list.count);
  return AIT_OK;
}

static ait_status parse_nested(scanner *s, ait_graph *g, int depth, ait_arg *out) {
  if (depth == 0) return scan_error(s, "graphs nest deeper than %d", AIT_GRAPH_DEPTH_LIMIT);
  ait_graph *nested;
  AIT_TRY(ait_graph_create_nested(g, &nested));
  if (scan_peek(s, "\"")) AIT_TRY(scan_string(s, &nested->name, NULL));
  AIT_TRY(scan_expect(s, "{"));
  AIT_TRY(parse_body(s, nested, depth - 1));
  *out = (ait_arg){.kind = AIT_ARG_GRAPH, .as.graph = nested};
  return scan_expect(s, "}");
}

static ait_status parse_word_arg(scanner *s, ait_graph *g, int depth, ait_arg *out) {
  if (scan_accept_word(s, "none")) *out = ait_arg_none();
  else if (scan_accept_word(s, "true")) *out = ait_arg_bool(true);
  else if (scan_accept_word(s, "false")) *out = ait_arg_bool(false);
  else if (scan_accept_word(s, "complex")) return parse_complex(s, out);
  else if (scan_accept_word(s, "graph")) return parse_nested(s, g, depth, out);
  else if (scan_accept_word(s, "dtype")) {
    *out = ait_arg_dtype(AIT_DTYPE_NONE);
    AIT_TRY(scan_expect(s, "("));
    AIT_TRY(scan_int(s, &out->as.i));
    return scan_expect(s, ")");
  } else {
    const char *name;
    AIT_TRY(scan_word(s, &name));
    *out = ait_arg_dtype(ait_dtype_from_name(name));
    if (out->as.i == AIT_DTYPE_NONE) return scan_error(s, "unknown argument '%s'", name);
  }
  return AIT_OK;
}

static ait_status parse_operand(scanner *s, ait_graph *g, ait_arg *out) {
  const char *name;
  AIT_TRY(parse_name(s, &name));
  *out = ait_arg_value(ait_graph_find_value(g, name));
  return out->as.value == AIT_NO_INDEX ? scan_error(s, "value '%s' is not defined here", name) : AIT_OK;
}

static ait_status parse_arg(scanner *s, ait_graph *g, int depth, ait_arg *out) {
  if (scan_accept(s, "%")) return parse_operand(s, g, out);
  if (scan_accept(s, "[")) return parse_list(s, g, depth, out);
  if (scan_accept(s, "{")) {
    *out = ait_arg_dim(0);
    AIT_TRY(scan_dim(s, &out->as.dim));
    return scan_expect(s, "}");
  }
  if (scan_peek(s, "\"")) {
    size_t length;
    *out = (ait_arg){.kind = AIT_ARG_STRING};
    AIT_TRY(scan_string(s, &out->as.string, &length));
    out->count = (uint32_t)length;
    return AIT_OK;
  }
  if (scan_at_digit(s) || scan_peek(s, "-") || scan_peek(s, "inf") || scan_peek(s, "nan")) return scan_number(s, out);
  return parse_word_arg(s, g, depth, out);
}

/* "name=" ahead? Then the parameter's index, else `next`. */
static ait_status parse_position(scanner *s, const ait_op *op, size_t next, size_t *out) {
  *out = next;
  size_t n = scan_word_length(s);
  const char *after = s->at + n;
  if (n == 0 || after == s->end || *after != '=') return next < op->param_count ? AIT_OK : scan_error(s, "too many arguments");
  const char *name;
  AIT_TRY(scan_word(s, &name));
  int32_t index = ait_op_param(op, name);
  if (index < 0) return scan_error(s, "%s has no parameter '%s'", op->name, name);
  *out = (size_t)index;
  return scan_expect(s, "=");
}

static ait_status parse_variadic_args(scanner *s, ait_graph *g, int depth, arg_list *list) {
  while (!scan_accept(s, ")")) {
    ait_arg arg;
    if (list->count) AIT_TRY(scan_expect(s, ","));
    AIT_TRY(parse_arg(s, g, depth, &arg));
    AIT_TRY(push_arg(s, list, arg));
  }
  return AIT_OK;
}

static ait_status parse_args(scanner *s, ait_graph *g, const ait_op *op, int depth, arg_list *list) {
  AIT_TRY(scan_expect(s, "("));
  if (op->variadic) return parse_variadic_args(s, g, depth, list);
  bool given[64] = {0};
  if (op->param_count > AIT_COUNT(given)) return scan_error(s, "%s has too many parameters", op->name);
  for (uint32_t i = 0; i < op->param_count; ++i) AIT_TRY(push_arg(s, list, op->params[i].default_value));
  for (size_t position, count = 0, next = 0; !scan_accept(s, ")"); next = position + 1, ++count) {
    if (count) AIT_TRY(scan_expect(s, ","));
    AIT_TRY(parse_position(s, op, next, &position));
    if (given[position]) return scan_error(s, "argument '%s' is given twice", op->params[position].name);
    given[position] = true;
    AIT_TRY(parse_arg(s, g, depth, &list->items[position]));
  }
  for (uint32_t i = 0; i < op->param_count; ++i) {
    if (!given[i] && !op->params[i].has_default) return scan_error(s, "%s: argument '%s' is missing", op->name, op->params[i].name);
  }
  return AIT_OK;
}

/* ---- statements ----------------------------------------------------------------------------------------------------------------------*/

static ait_status parse_results(scanner *s, ait_graph *g, uint32_t **out, size_t *out_count) {
  size_t capacity = 0;
  *out = NULL;
  *out_count = 0;
  if (scan_accept_word(s, "do")) return AIT_OK;
  do {
    AIT_TRY(ait_graph_grow(s->graph, (void **)out, &capacity, *out_count + 1, sizeof **out));
    AIT_TRY(parse_definition(s, g, &(*out)[*out_count]));
    ++*out_count;
  } while (scan_accept(s, ","));
  return scan_expect(s, "=");
}

static ait_status parse_node(scanner *s, ait_graph *g, int depth) {
  uint32_t *results, flags = 0, module = AIT_NO_INDEX;
  size_t result_count;
  const char *op_name, *shown_name, *name = NULL, *path;
  AIT_TRY(parse_results(s, g, &results, &result_count));
  if (scan_accept_word(s, "inplace")) flags |= AIT_NODE_INPLACE;
  AIT_TRY(scan_word(s, &op_name));
  const ait_op *op = ait_op_find(op_name);
  if (!op) return scan_error(s, "unknown operator '%s'", op_name);
  shown_name = op_name;
  if (scan_peek(s, "\"")) AIT_TRY(scan_string(s, &shown_name, NULL));
  arg_list args = {0};
  AIT_TRY(parse_args(s, g, op, depth, &args));
  if (result_count && results[0] != AIT_NO_INDEX) name = g->values[results[0]].name;
  if (scan_accept_word(s, "name")) AIT_TRY(scan_string(s, &name, NULL));
  if (scan_accept_word(s, "module")) {
    AIT_TRY(scan_string(s, &path, NULL));
    AIT_TRY(ait_graph_add_module(g, path, "", &module));
  }
  return ait_graph_add_node(g, NULL, op, shown_name, flags, args.items, (uint32_t)args.count, results, (uint32_t)result_count, name, module,
                            NULL);
}

static ait_status parse_port_name(scanner *s, int32_t *out_index, const char **out_name) {
  int64_t index;
  AIT_TRY(scan_int(s, &index));
  if (index < INT32_MIN || index > INT32_MAX) return scan_error(s, "index out of range");
  *out_index = (int32_t)index;
  *out_name = NULL;
  return scan_peek(s, "\"") ? scan_string(s, out_name, NULL) : AIT_OK;
}

static ait_status parse_input(scanner *s, ait_graph *g, int depth) {
  static const char *const kinds[] = {"user", "parameter", "buffer", "constant", "token"};
  ait_region_input input = {0};
  uint32_t kind;
  AIT_TRY(parse_definition(s, g, &input.value));
  AIT_TRY(parse_choice(s, kinds, AIT_COUNT(kinds), "kind of input", &kind));
  input.kind = (ait_input_kind)kind;
  AIT_TRY(parse_port_name(s, &input.user_index, &input.name));
  input.mutated = scan_accept_word(s, "mutated");
  if (scan_accept_word(s, "baked")) AIT_TRY(parse_arg(s, g, depth, &input.baked));
  return ait_graph_add_input(g, &input);
}

static ait_status parse_output(scanner *s, ait_graph *g, int depth) {
  static const char *const kinds[] = {"user", "state", "input", "token"};
  ait_region_output output = {0};
  uint32_t kind;
  AIT_TRY(parse_choice(s, kinds, AIT_COUNT(kinds), "kind of output", &kind));
  output.kind = (ait_output_kind)kind;
  AIT_TRY(parse_port_name(s, &output.user_index, &output.name));
  AIT_TRY(scan_expect(s, "="));
  AIT_TRY(parse_arg(s, g, depth, &output.arg));
  return ait_graph_add_output(g, &output);
}

static ait_status parse_body(scanner *s, ait_graph *g, int depth) {
  while (!scan_at_end(s) && !scan_peek(s, "}")) {
    if (scan_accept_word(s, "input")) AIT_TRY(parse_input(s, g, depth));
    else if (scan_accept_word(s, "output")) AIT_TRY(parse_output(s, g, depth));
    else AIT_TRY(parse_node(s, g, depth));
  }
  return AIT_OK;
}

/* ---- head ----------------------------------------------------------------------------------------------------------------------------*/

static ait_status parse_bound(scanner *s, int64_t *out) {
  if (scan_accept(s, "-inf")) *out = INT64_MIN;
  else if (scan_accept(s, "inf")) *out = INT64_MAX;
  else return scan_int(s, out);
  return AIT_OK;
}

static ait_status parse_symbol(scanner *s, ait_graph *g) {
  const char *name;
  ait_dim dim;
  AIT_TRY(parse_name(s, &name));
  if (ait_graph_symbol(g, name)) return scan_error(s, "symbol '%s' is declared twice", name);
  AIT_TRY(ait_dim_symbol(g, name, &dim));
  ait_symbol *symbol = ait_graph_symbol(g, name);
  AIT_TRY(scan_expect(s, "["));
  AIT_TRY(parse_bound(s, &symbol->min));
  AIT_TRY(scan_expect(s, ","));
  AIT_TRY(parse_bound(s, &symbol->max));
  AIT_TRY(scan_expect(s, "]"));
  if (scan_accept_word(s, "hint")) AIT_TRY(scan_int(s, &symbol->hint));
  symbol->backed = scan_accept_word(s, "backed");
  return AIT_OK;
}

static ait_status parse_module(scanner *s, ait_graph *g) {
  const char *path, *type;
  uint32_t index;
  int64_t calls;
  AIT_TRY(scan_string(s, &path, NULL));
  AIT_TRY(scan_string(s, &type, NULL));
  AIT_TRY(scan_expect(s, "calls"));
  AIT_TRY(scan_int(s, &calls));
  AIT_TRY(ait_graph_add_module(g, path, type, &index));
  g->modules[index].calls = (uint32_t)calls;
  return AIT_OK;
}

static ait_status parse_guard(scanner *s, ait_graph *g) {
  static const char *const signs[] = {"==", "!=", "<=", "<"};
  ait_dim left, right;
  const char *text;
  uint32_t op = 0;
  AIT_TRY(scan_dim(s, &left));
  while (op < AIT_COUNT(signs) && !scan_accept(s, signs[op])) ++op;
  if (op == AIT_COUNT(signs)) return scan_error(s, "expected a comparison");
  AIT_TRY(scan_dim(s, &right));
  AIT_TRY(scan_expect(s, "text"));
  AIT_TRY(scan_string(s, &text, NULL));
  return ait_graph_add_guard(g, (ait_guard_op)op, left, right, text);
}

static ait_status parse_signature(scanner *s, ait_graph *g) {
  const char **names = NULL;
  size_t count = 0, capacity = 0;
  AIT_TRY(scan_expect(s, "["));
  while (!scan_accept(s, "]")) {
    if (count) AIT_TRY(scan_expect(s, ","));
    AIT_TRY(ait_graph_grow(g, (void **)&names, &capacity, count + 1, sizeof *names));
    names[count] = NULL;
    if (!scan_accept_word(s, "none")) AIT_TRY(scan_string(s, &names[count], NULL));
    ++count;
  }
  return ait_graph_set_input_spec(g, names, count);
}

static ait_status parse_root(scanner *s, ait_graph *g) {
  static const char *const dialects[] = {"raw", "core", "both"};
  uint32_t dialect;
  AIT_TRY(scan_expect(s, "graph"));
  AIT_TRY(scan_string(s, &g->name, NULL));
  AIT_TRY(parse_choice(s, dialects, AIT_COUNT(dialects), "dialect", &dialect));
  g->dialect = (ait_dialect)(dialect + 1);
  if (scan_accept_word(s, "producer")) AIT_TRY(scan_string(s, &g->producer, NULL));
  for (;;) {
    if (scan_accept_word(s, "symbol")) AIT_TRY(parse_symbol(s, g));
    else if (scan_accept_word(s, "module")) AIT_TRY(parse_module(s, g));
    else if (scan_accept_word(s, "guard")) AIT_TRY(parse_guard(s, g));
    else if (scan_accept_word(s, "signature")) AIT_TRY(parse_signature(s, g));
    else break;
  }
  AIT_TRY(parse_body(s, g, AIT_GRAPH_DEPTH_LIMIT));
  return scan_at_end(s) ? AIT_OK : scan_error(s, "unexpected '}'");
}

ait_status ait_graph_parse(ait_allocator a, const char *text, size_t length, ait_graph **out) {
  ait_graph *g;
  AIT_TRY(ait_graph_create(a, AIT_DIALECT_RAW, &g));
  scanner s = {.start = text, .at = text, .end = text + length, .graph = g};
  ait_status status = parse_root(&s, g);
  if (status) {
    ait_graph_destroy(g);
    return ait_error_context(status, "cannot read the graph");
  }
  *out = g;
  return AIT_OK;
}
