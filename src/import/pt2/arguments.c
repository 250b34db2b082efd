/* Arguments of nodes. torch chooses the tag of an argument by its value, not by the operator's schema: an int may stand where a float is
 * declared. Here everything becomes what the schema says. */
#include "import/pt2/pt2.h"
#include <math.h>

typedef ait_status (*read_fn)(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out);

static ait_status malformed(const ait_json *payload) {
  return ait_error(AIT_CODE_INVALID_MODEL, "its '%s' is malformed", payload->key ? payload->key : "list");
}

static ait_status read_none(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  AIT_UNUSED(scope);
  AIT_UNUSED(payload);
  *out = ait_arg_none();
  return AIT_OK;
}

static ait_status read_tensor(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  *out = ait_arg_value(0);
  return ait_pt2_value(scope, ait_json_get_string(payload, "name"), &out->as.value);
}

static ait_status read_int(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  AIT_UNUSED(scope);
  if (payload->kind != AIT_JSON_INT) return malformed(payload);
  *out = ait_arg_int(payload->as.i);
  return AIT_OK;
}

/* torch 2.6 writes bare NaN and Infinity, later releases texts. */
static ait_status read_float(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  AIT_UNUSED(scope);
  static const struct {
    const char *text;
    double value;
  } texts[] = {{"NaN", NAN}, {"nan", NAN}, {"Infinity", INFINITY}, {"inf", INFINITY}, {"-Infinity", -INFINITY}, {"-inf", -INFINITY}};
  if (payload->kind == AIT_JSON_FLOAT) {
    *out = ait_arg_float(payload->as.f);
    return AIT_OK;
  }
  if (payload->kind == AIT_JSON_INT) {
    *out = ait_arg_float((double)payload->as.i);
    return AIT_OK;
  }
  for (size_t i = 0; payload->kind == AIT_JSON_STRING && i < AIT_COUNT(texts); ++i) {
    if (strcmp(payload->as.string, texts[i].text) != 0) continue;
    *out = ait_arg_float(texts[i].value);
    return AIT_OK;
  }
  return malformed(payload);
}

static ait_status read_bool(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  AIT_UNUSED(scope);
  if (payload->kind != AIT_JSON_BOOL) return malformed(payload);
  *out = ait_arg_bool(payload->as.b);
  return AIT_OK;
}

static ait_status read_string(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  AIT_UNUSED(scope);
  if (payload->kind != AIT_JSON_STRING) return malformed(payload);
  *out = ait_arg_string(payload->as.string);
  return AIT_OK;
}

static ait_status read_complex(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  const ait_json *real = ait_json_get(payload, "real"), *imag = ait_json_get(payload, "imag");
  ait_arg parts[2];
  if (!real || !imag) return malformed(payload);
  AIT_TRY(read_float(scope, real, &parts[0]));
  AIT_TRY(read_float(scope, imag, &parts[1]));
  *out = (ait_arg){.kind = AIT_ARG_COMPLEX};
  out->as.complex[0] = parts[0].as.f;
  out->as.complex[1] = parts[1].as.f;
  return AIT_OK;
}

/* {"as_name": "sym_size_int"} or {"as_int": 3} */
static ait_status read_sym(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  const ait_json *member;
  AIT_TRY(ait_pt2_union(payload, &member));
  if (strcmp(member->key, "as_name") == 0 && member->kind == AIT_JSON_STRING) {
    *out = ait_arg_value(0);
    return ait_pt2_value(scope, member->as.string, &out->as.value);
  }
  if (strcmp(member->key, "as_int") == 0) return read_int(scope, member, out);
  if (strcmp(member->key, "as_float") == 0) return read_float(scope, member, out);
  return strcmp(member->key, "as_bool") == 0 ? read_bool(scope, member, out) : malformed(member);
}

static ait_status read_dtype(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  AIT_UNUSED(scope);
  if (payload->kind != AIT_JSON_INT) return malformed(payload);
  *out = ait_arg_dtype(ait_pt2_dtype(payload->as.i));
  return out->as.i ? AIT_OK : ait_error(AIT_CODE_INVALID_MODEL, "dtype code %lld is not known", (long long)payload->as.i);
}

/* serde: 0 unknown, 1 contiguous, 2 channels_last, 3 channels_last_3d, 4 preserve. ATen: 0 contiguous, 1 preserve, 2, 3. */
static ait_status read_memory_format(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  static const int8_t formats[] = {-1, 0, 2, 3, 1};
  AIT_UNUSED(scope);
  bool known = payload->kind == AIT_JSON_INT && payload->as.i > 0 && payload->as.i < (int64_t)AIT_COUNT(formats);
  if (!known) return malformed(payload);
  *out = ait_arg_int(formats[payload->as.i]);
  return AIT_OK;
}

/* serde: 7 is strided, the others are sparse kinds in ATen's order. ATen: 0 strided, then SparseCoo, SparseCsr, mkldnn, SparseCsc, Bsr,
 * Bsc. */
static ait_status read_layout(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  static const int8_t layouts[] = {-1, 1, 2, 4, 5, 6, 3, 0};
  AIT_UNUSED(scope);
  bool known = payload->kind == AIT_JSON_INT && payload->as.i > 0 && payload->as.i < (int64_t)AIT_COUNT(layouts);
  if (!known) return malformed(payload);
  *out = ait_arg_int(layouts[payload->as.i]);
  return AIT_OK;
}

static ait_status read_device(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  const char *type = ait_json_get_string(payload, "type");
  int64_t index;
  if (!type) return malformed(payload);
  const char *text = type;
  if (ait_json_get_int(payload, "index", &index)) text = ait_arena_printf(&scope->in->arena, "%s:%lld", type, (long long)index);
  if (!text) return AIT_OOM();
  *out = ait_arg_string(text);
  return AIT_OK;
}

static ait_status read_operator(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  ait_pt2_operator operator;
  if (payload->kind != AIT_JSON_STRING) return malformed(payload);
  AIT_TRY(ait_pt2_find_operator(scope->in, payload->as.string, &operator));
  *out = ait_arg_string(operator.name);
  return AIT_OK;
}

static ait_status read_graph(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  ait_graph *nested;
  AIT_TRY(ait_pt2_nested(scope, payload, &nested));
  *out = (ait_arg){.kind = AIT_ARG_GRAPH};
  out->as.graph = nested;
  return AIT_OK;
}

/* {"as_tensor": {name}} or {"as_none": true} */
static ait_status read_optional(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  const ait_json *member;
  AIT_TRY(ait_pt2_union(payload, &member));
  if (strcmp(member->key, "as_tensor") == 0) return read_tensor(scope, member, out);
  return strcmp(member->key, "as_none") == 0 ? read_none(scope, member, out) : malformed(member);
}

static ait_status read_list(ait_pt2_scope *scope, const ait_json *payload, read_fn element, ait_arg *out) {
  if (payload->kind != AIT_JSON_ARRAY) return malformed(payload);
  ait_arg *items = AIT_ARENA_ARRAY(&scope->in->arena, ait_arg, payload->count ? payload->count : 1);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < payload->count; ++i) AIT_TRY(element(scope, &payload->as.items[i], &items[i]));
  *out = ait_arg_list(items, payload->count);
  return AIT_OK;
}

static ait_status read_tensors(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  return read_list(scope, payload, read_tensor, out);
}
static ait_status read_int_list(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  return read_list(scope, payload, read_int, out);
}
static ait_status read_float_list(ait_pt2_scope *scope, const ait_json *payload, ait_arg *out) {
  return read_list(scope, payload, read_float, out);
}

/* Every tag of the Argument union up to schema 8.20. */
static const struct {
  const char *tag;
  read_fn read;
  bool is_list;
} tags[] = {
    {"as_none", read_none, false},
    {"as_tensor", read_tensor, false},
    {"as_tensors", read_tensor, true},
    {"as_optional_tensor", read_optional, false},
    {"as_optional_tensors", read_optional, true},
    {"as_nested_tensors", read_tensors, true},
    {"as_int", read_int, false},
    {"as_ints", read_int, true},
    {"as_int_lists", read_int_list, true},
    {"as_float", read_float, false},
    {"as_floats", read_float, true},
    {"as_float_lists", read_float_list, true},
    {"as_bool", read_bool, false},
    {"as_bools", read_bool, true},
    {"as_string", read_string, false},
    {"as_strings", read_string, true},
    {"as_complex", read_complex, false},
    {"as_sym_int", read_sym, false},
    {"as_sym_ints", read_sym, true},
    {"as_sym_float", read_sym, false},
    {"as_sym_floats", read_sym, true},
    {"as_sym_bool", read_sym, false},
    {"as_sym_bools", read_sym, true},
    {"as_scalar_type", read_dtype, false},
    {"as_memory_format", read_memory_format, false},
    {"as_layout", read_layout, false},
    {"as_device", read_device, false},
    {"as_operator", read_operator, false},
    {"as_graph", read_graph, false},
};

static ait_status read_union(ait_pt2_scope *scope, const ait_json *argument, ait_arg *out) {
  const ait_json *member;
  AIT_TRY(ait_pt2_union(argument, &member));
  for (size_t i = 0; i < AIT_COUNT(tags); ++i) {
    if (strcmp(member->key, tags[i].tag) != 0) continue;
    return tags[i].is_list ? read_list(scope, member, tags[i].read, out) : tags[i].read(scope, member, out);
  }
  static const char *const declined[] = {"as_custom_obj", "as_string_to_argument"};
  for (size_t i = 0; i < AIT_COUNT(declined); ++i) {
    if (strcmp(member->key, declined[i]) == 0) return ait_error(AIT_CODE_UNSUPPORTED, "an argument of kind '%s'", member->key);
  }
  return ait_error(AIT_CODE_INVALID_MODEL, "an argument of unknown kind '%s'", member->key);
}

/* ---- by schema -------------------------------------------------------------------------------------------------------------------*/

static bool is_number(ait_arg_kind kind) {
  return kind == AIT_ARG_INT || kind == AIT_ARG_FLOAT || kind == AIT_ARG_BOOL || kind == AIT_ARG_COMPLEX;
}

/* Whether an argument may stand for a parameter of that type once `coerce` has seen it. A number may stand for a tensor: PyTorch wraps it.
 */
static bool fits(ait_param_type type, ait_arg_kind kind) {
  switch (type) {
    case AIT_PARAM_TENSOR:
    case AIT_PARAM_SCALAR:
    case AIT_PARAM_ANY: return kind == AIT_ARG_VALUE || is_number(kind);
    case AIT_PARAM_INT: return kind == AIT_ARG_VALUE || kind == AIT_ARG_INT;
    case AIT_PARAM_FLOAT: return kind == AIT_ARG_VALUE || kind == AIT_ARG_FLOAT;
    case AIT_PARAM_BOOL: return kind == AIT_ARG_VALUE || kind == AIT_ARG_BOOL;
    case AIT_PARAM_STRING:
    case AIT_PARAM_DEVICE: return kind == AIT_ARG_STRING;
    case AIT_PARAM_DTYPE: return kind == AIT_ARG_DTYPE;
    case AIT_PARAM_LAYOUT:
    case AIT_PARAM_MEMORY_FORMAT: return kind == AIT_ARG_INT;
    case AIT_PARAM_GENERATOR: return false;
    case AIT_PARAM_GRAPH: return kind == AIT_ARG_GRAPH;
  }
  return false;
}

static void coerce(ait_param_type type, ait_arg *arg) {
  if (type == AIT_PARAM_FLOAT && arg->kind == AIT_ARG_INT) *arg = ait_arg_float((double)arg->as.i);
  if (type == AIT_PARAM_FLOAT && arg->kind == AIT_ARG_BOOL) *arg = ait_arg_float(arg->as.b);
  if (type == AIT_PARAM_INT && arg->kind == AIT_ARG_BOOL) *arg = ait_arg_int(arg->as.b);
  if (type == AIT_PARAM_BOOL && arg->kind == AIT_ARG_INT) *arg = ait_arg_bool(arg->as.i != 0);
  if (type == AIT_PARAM_INT && arg->kind == AIT_ARG_FLOAT && floor(arg->as.f) == arg->as.f && fabs(arg->as.f) < 0x1p53)
    *arg = ait_arg_int((int64_t)arg->as.f);
}

/* The whole argument list of the same element, for "int[2]" given as 3 or [3]. */
static ait_status widen(ait_pt2_scope *scope, ait_arg element, uint32_t count, ait_arg *out) {
  ait_arg *items = AIT_ARENA_ARRAY(&scope->in->arena, ait_arg, count);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < count; ++i) items[i] = element;
  *out = ait_arg_list(items, count);
  return AIT_OK;
}

static ait_status fit_list(ait_pt2_scope *scope, const ait_param *param, ait_arg *arg) {
  if (arg->kind != AIT_ARG_LIST) {
    if (arg->kind == AIT_ARG_VALUE && param->type == AIT_PARAM_TENSOR) return AIT_OK; /* a value that is a list */
    AIT_TRY(widen(scope, *arg, param->list_length > 1 ? (uint32_t)param->list_length : 1, arg));
  } else if (arg->count == 1 && param->list_length > 1) {
    AIT_TRY(widen(scope, arg->as.list[0], (uint32_t)param->list_length, arg));
  }
  ait_arg *items = (ait_arg *)(uintptr_t)arg->as.list; /* made here, in the import's arena */
  for (uint32_t i = 0; i < arg->count; ++i) {
    coerce(param->type, &items[i]);
    if (items[i].kind == AIT_ARG_NONE && (param->element_optional || param->type == AIT_PARAM_TENSOR)) continue;
    if (!fits(param->type, items[i].kind)) return ait_error(AIT_CODE_INVALID_MODEL, "element %u has a wrong kind", (unsigned)i);
  }
  return AIT_OK;
}

static ait_status fit(ait_pt2_scope *scope, const ait_param *param, ait_arg *arg) {
  if (arg->kind == AIT_ARG_NONE) {
    if (param->is_optional || param->type == AIT_PARAM_GENERATOR) return AIT_OK;
    if (!param->has_default) return ait_error(AIT_CODE_INVALID_MODEL, "it must not be None");
    *arg = param->default_value;
    return AIT_OK;
  }
  if (param->is_list) return fit_list(scope, param, arg);
  coerce(param->type, arg);
  return fits(param->type, arg->kind) ? AIT_OK : ait_error(AIT_CODE_INVALID_MODEL, "it has a wrong kind");
}

ait_status ait_pt2_argument(ait_pt2_scope *scope, const ait_json *argument, const ait_param *param, ait_arg *out) {
  AIT_TRY(read_union(scope, argument, out));
  return param ? fit(scope, param, out) : AIT_OK;
}

/* The parameter that a NamedArgument is for: by name; unnamed ones by position. The parameters of Python functions have other names in
 * other releases, and an in-place operator's first one is always called self. */
static ait_status find_param(const ait_op *op, const ait_json *input, uint32_t position, uint32_t *out) {
  const char *name = ait_json_get_string(input, "name");
  bool is_python = ait_starts_with(op->name, "_operator.") || ait_starts_with(op->name, "torch.") || ait_starts_with(op->name, "math.");
  int32_t index = name && *name && !is_python ? ait_op_param(op, name) : -1;
  bool by_position = !name || !*name || is_python || (position == 0 && strcmp(name, "self") == 0);
  if (index < 0 && by_position && position < op->param_count) index = (int32_t)position;
  if (index < 0) return ait_error(AIT_CODE_INVALID_MODEL, "there is no argument '%s'", name && *name ? name : "(unnamed)");
  *out = (uint32_t)index;
  return AIT_OK;
}

ait_status ait_pt2_match(ait_pt2_scope *scope, const ait_op *op, const ait_json *inputs, uint32_t first, ait_arg *out) {
  bool *given = ait_arena_zero(&scope->in->arena, op->param_count + 1, 1);
  if (!given) return AIT_OOM();
  for (uint32_t i = first; i < inputs->count; ++i) {
    uint32_t index = 0;
    const ait_json *input = &inputs->as.items[i];
    AIT_TRY(find_param(op, input, i - first, &index));
    const ait_param *param = &op->params[index];
    if (given[index]) return ait_error(AIT_CODE_INVALID_MODEL, "argument '%s' is given twice", param->name);
    given[index] = true;
    AIT_TRY(ait_error_context(ait_pt2_argument(scope, ait_json_get(input, "arg"), param, &out[index]), "argument '%s'", param->name));
  }
  for (uint32_t i = 0; i < op->param_count; ++i) {
    const ait_param *param = &op->params[i];
    if (given[i]) continue;
    if (!param->has_default && !param->is_optional) return ait_error(AIT_CODE_INVALID_MODEL, "argument '%s' is missing", param->name);
    out[i] = param->has_default ? param->default_value : ait_arg_none();
  }
  return AIT_OK;
}
