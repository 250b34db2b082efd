/* What builders work with: attributes, inputs, and the emitters of nodes. */
#include "import/onnx/onnx.h"

#include <stdio.h>

ait_status ox_fail(const ox_call *c, ait_code code, const char *format, ...) {
  char message[400];
  va_list list;
  AIT_UNUSED(c);
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  return ait_error(code, "%s", message);
}

/* ---- attributes ------------------------------------------------------------------------------------------------------------------*/

static const Onnx__AttributeProto *find_in(Onnx__AttributeProto *const *attributes, size_t count, const char *name) {
  for (size_t i = 0; i < count; ++i)
    if (attributes[i]->name && strcmp(attributes[i]->name, name) == 0) return attributes[i];
  return NULL;
}

/* The attribute of a node in a scope; one that refers to an attribute of the function that holds the node is looked up in its call. */
static const Onnx__AttributeProto *resolve(const ox_scope *s, const Onnx__NodeProto *node, const char *name) {
  const Onnx__AttributeProto *a = find_in(node->attribute, node->n_attribute, name);
  for (int depth = 0; a && a->ref_attr_name && *a->ref_attr_name; ++depth) {
    while (s && !s->call) s = s->outer;
    if (!s || depth > OX_GRAPH_DEPTH) return NULL;
    const char *wanted = a->ref_attr_name;
    a = find_in(s->call->attribute, s->call->n_attribute, wanted);
    if (!a) return find_in(s->function->attribute_proto, s->function->n_attribute_proto, wanted);
    s = s->call_scope;
  }
  return a;
}

ait_status ox_attribute(const ox_call *c, const char *name, int type, const Onnx__AttributeProto **out) {
  *out = resolve(c->s, c->node, name);
  if (!*out || !(*out)->has_type || (int)(*out)->type == type) return AIT_OK;
  return ox_fail(c, AIT_CODE_INVALID_MODEL, "attribute '%s' is of the wrong type (%d, not %d)", name, (int)(*out)->type, type);
}

ait_status ox_int(const ox_call *c, const char *name, int64_t otherwise, int64_t *out) {
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, &a));
  *out = a ? a->i : otherwise;
  return AIT_OK;
}

ait_status ox_flag(const ox_call *c, const char *name, bool otherwise, bool *out) {
  int64_t v;
  AIT_TRY(ox_int(c, name, otherwise, &v));
  *out = v != 0;
  return AIT_OK;
}

ait_status ox_float(const ox_call *c, const char *name, double otherwise, double *out) {
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT, &a));
  *out = a ? (double)a->f : otherwise;
  return AIT_OK;
}

static ait_status text_of(const ox_call *c, const ProtobufCBinaryData *s, const char **out) {
  *out = ait_arena_strdup(&c->in->arena, s->data ? (const char *)s->data : "", s->len);
  return *out ? AIT_OK : AIT_OOM();
}

ait_status ox_string(const ox_call *c, const char *name, const char *otherwise, const char **out) {
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING, &a));
  *out = otherwise;
  return a ? text_of(c, &a->s, out) : AIT_OK;
}

ait_status ox_ints(const ox_call *c, const char *name, const int64_t **out, size_t *out_count) {
  static const int64_t none;
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS, &a));
  *out = a ? (a->n_ints ? a->ints : &none) : NULL;
  *out_count = a ? a->n_ints : 0;
  return AIT_OK;
}

ait_status ox_floats(const ox_call *c, const char *name, const float **out, size_t *out_count) {
  static const float none;
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS, &a));
  *out = a ? (a->n_floats ? a->floats : &none) : NULL;
  *out_count = a ? a->n_floats : 0;
  return AIT_OK;
}

ait_status ox_strings(const ox_call *c, const char *name, const char ***out, size_t *out_count) {
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS, &a));
  *out = NULL;
  *out_count = 0;
  if (!a) return AIT_OK;
  *out = AIT_ARENA_ARRAY(&c->in->arena, const char *, a->n_strings + 1);
  if (!*out) return AIT_OOM();
  for (size_t i = 0; i < a->n_strings; ++i) AIT_TRY(text_of(c, &a->strings[i], &(*out)[i]));
  *out_count = a->n_strings;
  return AIT_OK;
}

ait_status ox_graph(const ox_call *c, const char *name, const Onnx__GraphProto **out) {
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_attribute(c, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH, &a));
  *out = a ? a->g : NULL;
  return *out ? AIT_OK : ox_fail(c, AIT_CODE_INVALID_MODEL, "attribute '%s' (a graph) is missing", name);
}

ait_status ox_n_ints(const ox_call *c, const char *name, int32_t n, int64_t otherwise, int64_t *out) {
  const int64_t *v;
  size_t count;
  AIT_TRY(ox_ints(c, name, &v, &count));
  if (v && count != (size_t)n) return ox_fail(c, AIT_CODE_INVALID_MODEL, "attribute '%s' has %zu numbers, not %d", name, count, (int)n);
  for (int32_t i = 0; i < n; ++i) out[i] = v ? v[i] : otherwise;
  return AIT_OK;
}

/* ---- inputs ----------------------------------------------------------------------------------------------------------------------*/

ait_status ox_need(const ox_call *c, uint32_t k, uint32_t *out) {
  if (!ox_has(c, k)) return ox_fail(c, AIT_CODE_INVALID_MODEL, "input %u is missing", (unsigned)k);
  *out = c->inputs[k];
  if (ox_info(c, *out)->type == AIT_TYPE_TENSOR) return AIT_OK;
  return ox_fail(c, AIT_CODE_INVALID_MODEL, "input %u ('%s') is no tensor", (unsigned)k, c->node->input[k]);
}

ait_status ox_need_ranked(const ox_call *c, uint32_t k, uint32_t *out) {
  AIT_TRY(ox_need(c, k, out));
  if (ox_info(c, *out)->rank >= 0) return AIT_OK;
  return ox_fail(c, AIT_CODE_UNSUPPORTED, "the rank of input %u ('%s') is not known", (unsigned)k, c->node->input[k]);
}

ait_status ox_axis(const ox_call *c, int64_t axis, int32_t rank, int32_t *out) {
  int32_t limit = rank > 0 ? rank : 1;
  if (axis < -limit || axis >= limit)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "axis %lld is outside of rank %d", (long long)axis, (int)rank);
  *out = (int32_t)(axis < 0 ? axis + limit : axis);
  return AIT_OK;
}

static const ox_known *small_tensor(ox_call *c, uint32_t value) {
  const ox_known *k = value == AIT_NO_INDEX ? NULL : ox_get_known(c->s, value);
  return k && k->has_tensor && ait_tensor_count(&k->tensor) <= OX_KNOWN_LIMIT ? k : NULL;
}

static const char *element_at(const ait_tensor *t, int64_t i) { /* contiguous */
  return (const char *)t->data + (size_t)i * ait_dtype_size(t->dtype);
}

bool ox_contents(ox_call *c, uint32_t value, const ait_dim **out, uint32_t *out_count) {
  const ox_known *k = value == AIT_NO_INDEX ? NULL : ox_get_known(c->s, value);
  if (k && k->has_dims) {
    *out = k->dims;
    *out_count = k->count;
    return true;
  }
  k = small_tensor(c, value);
  if (!k || !ait_dtype_is_integer(k->tensor.dtype)) return false;
  int64_t n = ait_tensor_count(&k->tensor);
  ait_dim *dims = AIT_ARENA_ARRAY(&c->in->arena, ait_dim, (size_t)n + 1);
  if (!dims) return false;
  for (int64_t i = 0; i < n; ++i) {
    ait_status status = ait_dim_const(c->g, ait_element_i64(element_at(&k->tensor, i), k->tensor.dtype), &dims[i]);
    ait_status_ignore(status);
    if (status) return false;
  }
  *out = dims;
  *out_count = (uint32_t)n;
  return true;
}

bool ox_known_dims(ox_call *c, uint32_t value, const ait_dim **out, uint32_t *out_count) {
  if (!ox_contents(c, value, out, out_count)) return false;
  for (uint32_t i = 0; i < *out_count; ++i)
    if (!ait_dim_is_known(c->g, (*out)[i])) return false;
  return true;
}

bool ox_known_ints(ox_call *c, uint32_t value, const int64_t **out, uint32_t *out_count) {
  const ait_dim *dims;
  if (!ox_known_dims(c, value, &dims, out_count)) return false;
  int64_t *ints = AIT_ARENA_ARRAY(&c->in->arena, int64_t, (size_t)*out_count + 1);
  if (!ints) return false;
  for (uint32_t i = 0; i < *out_count; ++i)
    if (!ait_dim_is_const(c->g, dims[i], &ints[i])) return false;
  *out = ints;
  return true;
}

bool ox_known_floats(ox_call *c, uint32_t value, const double **out, uint32_t *out_count) {
  const ox_known *k = small_tensor(c, value);
  if (!k || ait_dtype_is_complex(k->tensor.dtype)) return false;
  int64_t n = ait_tensor_count(&k->tensor);
  double *numbers = AIT_ARENA_ARRAY(&c->in->arena, double, (size_t)n + 1);
  if (!numbers) return false;
  for (int64_t i = 0; i < n; ++i) numbers[i] = ait_element_f64(element_at(&k->tensor, i), k->tensor.dtype);
  *out = numbers;
  *out_count = (uint32_t)n;
  return true;
}

bool ox_known_number(ox_call *c, uint32_t value, double *out) {
  const double *v;
  const int64_t *i;
  uint32_t n;
  if (ox_known_floats(c, value, &v, &n) && n == 1) {
    *out = v[0];
    return true;
  }
  if (!ox_known_ints(c, value, &i, &n) || n != 1) return false;
  *out = (double)i[0];
  return true;
}

ait_status ox_ints_or_input(ox_call *c, const char *name, uint32_t k, const int64_t **out, uint32_t *out_count, bool *given, bool *known) {
  size_t n;
  *known = true;
  AIT_TRY(ox_ints(c, name, out, &n));
  *given = *out != NULL;
  *out_count = (uint32_t)n;
  if (*given || !ox_has(c, k)) return AIT_OK;
  *given = true;
  *known = ox_known_ints(c, c->inputs[k], out, out_count);
  return AIT_OK;
}

bool ox_const_dim(const ox_call *c, uint32_t value, int32_t axis, int64_t *out) {
  const ait_value_info *v = ox_info(c, value);
  return axis < v->rank && ait_dim_is_const(c->g, v->shape[axis], out);
}

int32_t ox_narrow_type(const ox_call *c, uint32_t value) {
  const ox_known *k = ox_get_known(c->s, value);
  return k ? k->narrow : 0;
}

static bool is_narrow(int32_t type) {
  return (type >= ONNX__TENSOR_PROTO__DATA_TYPE__UINT4 && type <= ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT4E2M1) ||
         type >= ONNX__TENSOR_PROTO__DATA_TYPE__UINT2;
}

ait_status ox_set_narrow_type(ox_call *c, uint32_t value, int32_t type) {
  ox_known known = {.narrow = type};
  return is_narrow(type) ? ox_set_known(c->s, value, &known) : AIT_OK;
}

/* ---- emitting --------------------------------------------------------------------------------------------------------------------*/

ait_status ox_emit_args(ox_call *c, const char *op, const ait_arg *args, uint32_t count, uint32_t *out, uint32_t out_count) {
  return ait_build(c->g, NULL, op, c->name, c->module, args, count, out, out_count);
}

ait_status ox_raw_args(ox_call *c, const char *op_name, const ait_arg *args, uint32_t count, const ait_value_info *infos, uint32_t *out,
                       uint32_t out_count) {
  enum { MAX_PARAMS = 32 };
  ait_arg filled[MAX_PARAMS];
  const ait_op *op = ait_op_find(op_name);
  if (!op || op->param_count > MAX_PARAMS) return ait_error(AIT_CODE_INVALID_ARGUMENT, "there is no operator '%s'", op_name);
  if (!op->variadic) {
    for (uint32_t i = 0; i < op->param_count; ++i) filled[i] = i < count ? args[i] : op->params[i].default_value;
    args = filled;
    count = op->param_count;
  }
  for (uint32_t i = 0; i < out_count; ++i) AIT_TRY(ait_graph_add_value(c->g, c->name, &infos[i], &out[i]));
  const char *name = out_count ? c->g->values[out[0]].name : c->name;
  return ait_graph_add_node(c->g, NULL, op, NULL, 0, args, count, out, out_count, name, c->module, NULL);
}

static ait_arg *list_of(ox_call *c, size_t n) { return AIT_ARENA_ARRAY(&c->in->arena, ait_arg, n + 1); }

ait_arg ox_list_ints(ox_call *c, const int64_t *v, size_t n) {
  ait_arg *items = list_of(c, n);
  for (size_t i = 0; items && i < n; ++i) items[i] = I(v[i]);
  return items ? ait_arg_list(items, (uint32_t)n) : NONE;
}

ait_arg ox_list_dims(ox_call *c, const ait_dim *v, size_t n) {
  ait_arg *items = list_of(c, n);
  for (size_t i = 0; items && i < n; ++i) {
    int64_t k;
    items[i] = ait_dim_is_const(c->g, v[i], &k) ? I(k) : ait_arg_dim(v[i]);
  }
  return items ? ait_arg_list(items, (uint32_t)n) : NONE;
}

ait_arg ox_list_floats(ox_call *c, const double *v, size_t n) {
  ait_arg *items = list_of(c, n);
  for (size_t i = 0; items && i < n; ++i) items[i] = F(v[i]);
  return items ? ait_arg_list(items, (uint32_t)n) : NONE;
}

ait_arg ox_list_values(ox_call *c, const uint32_t *v, size_t n) {
  ait_arg *items = list_of(c, n);
  for (size_t i = 0; items && i < n; ++i) items[i] = V(v[i]);
  return items ? ait_arg_list(items, (uint32_t)n) : NONE;
}

ait_value_info ox_like(const ox_call *c, uint32_t value) {
  ait_value_info info = c->g->values[value];
  info.def = NULL;
  return info;
}

ait_value_info ox_tensor_info(ait_dtype dtype, int32_t rank, const ait_dim *dims) {
  return (ait_value_info){.type = AIT_TYPE_TENSOR, .dtype = dtype, .rank = rank, .shape = dims, .scalar = AIT_NO_INDEX};
}

ait_status ox_unknown_info(ox_call *c, ait_dtype dtype, int32_t rank, ait_value_info *out) {
  ait_dim *dims = NULL;
  if (rank > AIT_MAX_RANK) return ox_fail(c, AIT_CODE_LIMIT, "%d dimensions, at most %d are possible", (int)rank, AIT_MAX_RANK);
  if (rank > 0) AIT_TRY(ox_dims(c, rank, &dims));
  for (int32_t d = 0; d < rank; ++d) AIT_TRY(ait_dim_unknown(c->g, &dims[d]));
  *out = ox_tensor_info(dtype, rank, dims);
  return AIT_OK;
}

ait_status ox_dims(ox_call *c, int32_t n, ait_dim **out) {
  *out = AIT_ARENA_ARRAY(&c->in->arena, ait_dim, (size_t)n + 1);
  return *out ? AIT_OK : AIT_OOM();
}

ait_status ox_dim_ints(ox_call *c, const int64_t *v, int32_t n, ait_dim *out) {
  for (int32_t i = 0; i < n; ++i) AIT_TRY(ait_dim_const(c->g, v[i], &out[i]));
  return AIT_OK;
}

ait_status ox_dim(ox_call *c, ait_dim_op op, ait_dim a, ait_dim b, ait_dim *out) {
  ait_status status = ait_dim_make(c->g, op, a, b, out);
  if (ait_status_code(status) != AIT_CODE_LIMIT) return status;
  ait_status_ignore(status);
  return ait_dim_unknown(c->g, out);
}

ait_status ox_dim_int(ox_call *c, ait_dim_op op, ait_dim a, int64_t b, ait_dim *out) {
  ait_dim k;
  AIT_TRY(ait_dim_const(c->g, b, &k));
  return ox_dim(c, op, a, k, out);
}

/* ---- common steps ----------------------------------------------------------------------------------------------------------------*/

ait_status ox_cast(ox_call *c, uint32_t x, ait_dtype dtype, uint32_t *out) {
  *out = x;
  return ox_dtype_of(c, x) == dtype ? AIT_OK : OX(c, "cast", out, V(x), T(dtype));
}

ait_status ox_binary(ox_call *c, const char *op, uint32_t a, uint32_t b, uint32_t *out) {
  ait_dtype dtype = ox_dtype_of(c, a);
  AIT_TRY(OX(c, op, out, V(a), V(b)));
  return ox_cast(c, *out, dtype, out);
}

ait_status ox_with_float(ox_call *c, const char *op, uint32_t x, double v, uint32_t *out) {
  ait_dtype dtype = ox_dtype_of(c, x);
  AIT_TRY(OX(c, op, out, V(x), ait_dtype_is_float(dtype) ? F(v) : I((int64_t)v)));
  return ox_cast(c, *out, dtype, out);
}

ait_status ox_unary(ox_call *c, const char *op, uint32_t x, uint32_t *out) { return OX(c, op, out, V(x)); }

/* A size that only data tell: taken from the operand when the graph runs, where it is one of its sizes. */
static ait_status size_at_run(ox_call *c, uint32_t x, ait_dim d, ait_arg *out) {
  const ait_value_info v = *ox_info(c, x);
  for (int32_t axis = 0; axis < v.rank; ++axis) {
    ait_value_info info = {.type = AIT_TYPE_INT, .scalar = d};
    uint32_t size;
    if (v.shape[axis] != d) continue;
    AIT_TRY(OX_RAW(c, "aten.sym_size.int", &info, &size, V(x), I(axis)));
    *out = V(size);
  }
  return AIT_OK;
}

ait_status ox_size_arg(ox_call *c, uint32_t x, int32_t axis, ait_arg *out) {
  ait_dim d = ox_info(c, x)->shape[axis];
  int64_t k;
  if (ait_dim_is_const(c->g, d, &k)) *out = I(k);
  else if (ait_dim_is_known(c->g, d)) *out = ait_arg_dim(d);
  else return size_at_run(c, x, d, out);
  return AIT_OK;
}

ait_status ox_reshape(ox_call *c, uint32_t x, const ait_dim *dims, int32_t rank, uint32_t *out) {
  ait_arg items[AIT_MAX_RANK];
  int32_t rest = -1;
  for (int32_t i = 0; i < rank; ++i) {
    int64_t k;
    items[i] = ait_dim_is_const(c->g, dims[i], &k) ? I(k) : ait_arg_dim(dims[i]);
    if (ait_dim_is_known(c->g, dims[i])) continue;
    items[i] = NONE;
    AIT_TRY(size_at_run(c, x, dims[i], &items[i]));
    if (items[i].kind != AIT_ARG_NONE) continue;
    if (rest >= 0) return ox_fail(c, AIT_CODE_UNSUPPORTED, "two sizes of the result depend on data");
    items[i] = I(-1);
    rest = i;
  }
  return OX(c, "reshape", out, V(x), ait_arg_list(items, (uint32_t)rank));
}

ait_status ox_permute(ox_call *c, uint32_t x, const int64_t *perm, int32_t rank, uint32_t *out) {
  return OX(c, "permute", out, V(x), ox_list_ints(c, perm, (size_t)rank));
}

ait_status ox_transpose_last(ox_call *c, uint32_t x, uint32_t *out) {
  int64_t perm[AIT_MAX_RANK];
  int32_t rank = ox_info(c, x)->rank;
  if (rank < 2) return ox_fail(c, AIT_CODE_INVALID_MODEL, "a matrix has rank %d", (int)rank);
  for (int32_t d = 0; d < rank; ++d) perm[d] = d;
  perm[rank - 2] = rank - 1;
  perm[rank - 1] = rank - 2;
  return ox_permute(c, x, perm, rank, out);
}

ait_status ox_unsqueeze(ox_call *c, uint32_t x, int32_t axis, uint32_t *out) {
  ait_dim dims[AIT_MAX_RANK];
  const ait_value_info *v = ox_info(c, x);
  if (v->rank >= AIT_MAX_RANK) return ox_fail(c, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  int32_t rank = v->rank + 1;
  for (int32_t d = 0, from = 0; d < rank; ++d) {
    if (d == axis) AIT_TRY(ait_dim_const(c->g, 1, &dims[d]));
    else dims[d] = ox_info(c, x)->shape[from++];
  }
  return ox_reshape(c, x, dims, rank, out);
}

ait_status ox_slice(ox_call *c, uint32_t x, int32_t axis, ait_arg start, ait_arg end, uint32_t *out) {
  return OX(c, "slice", out, V(x), I(axis), start, end, I(1));
}

ait_status ox_reduce(ox_call *c, const char *op, uint32_t x, const int64_t *axes, uint32_t count, bool keep, uint32_t *out) {
  ait_dtype dtype = ox_dtype_of(c, x);
  AIT_TRY(OX(c, op, out, V(x), ox_list_ints(c, axes, count), B(keep)));
  return ox_cast(c, *out, dtype, out);
}

ait_status ox_identity(ox_call *c, uint32_t x) {
  c->outputs[0] = x;
  return AIT_OK;
}
