/* Operators of the application in ONNX files: "domain::Op" with a registered schema. Parameters that are tensors are the node's inputs in
 * order (a list takes all that are left); the others are attributes of the same name. */
#include "custom/custom.h"
#include "import/onnx/onnx.h"

static ait_status tensor_argument(ox_call *c, const ait_param *p, uint32_t *next, ait_arg *out) {
  if (p->is_list) {
    uint32_t first = *next < c->input_count ? *next : c->input_count;
    *next = c->input_count;
    for (uint32_t i = first; i < c->input_count; ++i)
      if (c->inputs[i] == AIT_NO_INDEX) return ox_fail(c, AIT_CODE_INVALID_MODEL, "input %u is missing", (unsigned)i);
    *out = ox_list_values(c, c->inputs + first, c->input_count - first);
    return out->kind == AIT_ARG_LIST ? AIT_OK : AIT_OOM();
  }
  uint32_t k = (*next)++;
  *out = ait_arg_none();
  if (!ox_has(c, k) && p->is_optional) return AIT_OK;
  uint32_t value;
  AIT_TRY(ox_need(c, k, &value));
  *out = ait_arg_value(value);
  return AIT_OK;
}

static const Onnx__AttributeProto *find_attribute(const ox_call *c, const char *name) {
  for (size_t i = 0; i < c->node->n_attribute; ++i)
    if (c->node->attribute[i]->name && strcmp(c->node->attribute[i]->name, name) == 0) return c->node->attribute[i];
  return NULL;
}

static ait_status list_attribute(ox_call *c, const ait_param *p, ait_arg *out) {
  size_t n;
  if (p->type == AIT_PARAM_INT) {
    const int64_t *v;
    AIT_TRY(ox_ints(c, p->name, &v, &n));
    *out = ox_list_ints(c, v, n);
  } else if (p->type == AIT_PARAM_FLOAT) {
    const float *v;
    AIT_TRY(ox_floats(c, p->name, &v, &n));
    double *wide = AIT_ARENA_ARRAY(&c->in->arena, double, n + 1);
    if (!wide) return AIT_OOM();
    for (size_t i = 0; i < n; ++i) wide[i] = (double)v[i];
    *out = ox_list_floats(c, wide, n);
  } else {
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "parameter '%s' is of a type that ONNX attributes cannot give", p->name);
  }
  return out->kind == AIT_ARG_LIST ? AIT_OK : AIT_OOM();
}

static ait_status attribute_argument(ox_call *c, const ait_param *p, ait_arg *out) {
  if (!find_attribute(c, p->name)) {
    if (!p->has_default && !p->is_optional) return ox_fail(c, AIT_CODE_INVALID_MODEL, "attribute '%s' is missing", p->name);
    *out = p->has_default ? p->default_value : ait_arg_none();
    return AIT_OK;
  }
  if (p->is_list) return list_attribute(c, p, out);
  int64_t i = 0;
  double f = 0;
  const char *s = NULL;
  switch (p->type) {
    case AIT_PARAM_INT:
    case AIT_PARAM_BOOL:
      AIT_TRY(ox_int(c, p->name, 0, &i));
      *out = p->type == AIT_PARAM_INT ? ait_arg_int(i) : ait_arg_bool(i != 0);
      return AIT_OK;
    case AIT_PARAM_FLOAT:
    case AIT_PARAM_SCALAR:
      AIT_TRY(ox_float(c, p->name, 0, &f));
      *out = ait_arg_float(f);
      return AIT_OK;
    case AIT_PARAM_STRING:
      AIT_TRY(ox_string(c, p->name, "", &s));
      *out = ait_arg_string(s);
      return AIT_OK;
    default: return ox_fail(c, AIT_CODE_UNSUPPORTED, "parameter '%s' is of a type that ONNX attributes cannot give", p->name);
  }
}

/* Numbers, texts and lists of them; tensors are the caller's. */
static ait_status plain_value(ox_call *c, const ait_arg *arg, ait_custom_arg *out) {
  *out = (ait_custom_arg){.kind = AIT_CUSTOM_NONE};
  switch (arg->kind) {
    case AIT_ARG_INT: *out = (ait_custom_arg){.kind = AIT_CUSTOM_INT, .as.i = arg->as.i}; return AIT_OK;
    case AIT_ARG_FLOAT: *out = (ait_custom_arg){.kind = AIT_CUSTOM_FLOAT, .as.f = arg->as.f}; return AIT_OK;
    case AIT_ARG_BOOL: *out = (ait_custom_arg){.kind = AIT_CUSTOM_BOOL, .as.b = arg->as.b}; return AIT_OK;
    case AIT_ARG_STRING: *out = (ait_custom_arg){.kind = AIT_CUSTOM_STRING, .as.string = arg->as.string}; return AIT_OK;
    case AIT_ARG_LIST: break;
    default: return AIT_OK;
  }
  ait_custom_arg *items = AIT_ARENA_ARRAY(&c->in->arena, ait_custom_arg, arg->count + 1u);
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < arg->count; ++i)
    if (arg->as.list[i].kind == AIT_ARG_LIST) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a list of lists");
    else AIT_TRY(plain_value(c, &arg->as.list[i], &items[i]));
  *out = (ait_custom_arg){.kind = AIT_CUSTOM_LIST, .count = arg->count, .as.list = items};
  return AIT_OK;
}

/* What the operator's own rule says where all sizes are constants; else nothing is known before running. */
static ait_status result_infos(ox_call *c, const ait_op *schema, const ait_custom_entry *entry, const ait_arg *args,
                               ait_value_info *infos) {
  ait_custom_arg *values = AIT_ARENA_ARRAY(&c->in->arena, ait_custom_arg, schema->param_count + 1u);
  ait_tensor *tensors = AIT_ARENA_ARRAY(&c->in->arena, ait_tensor, schema->param_count + 1u);
  ait_custom_shape shapes[AIT_CUSTOM_RESULT_LIMIT] = {0};
  bool known = true;
  if (!values || !tensors) return AIT_OOM();
  for (uint32_t i = 0; i < schema->param_count; ++i) {
    AIT_TRY(plain_value(c, &args[i], &values[i]));
    known = known && (args[i].kind != AIT_ARG_LIST || schema->params[i].type != AIT_PARAM_TENSOR);
    if (args[i].kind != AIT_ARG_VALUE) continue;
    const ait_value_info *v = &c->g->values[args[i].as.value];
    tensors[i] = (ait_tensor){.dtype = v->dtype, .rank = v->rank};
    known = known && v->rank >= 0 && v->dtype != AIT_DTYPE_NONE;
    for (int32_t d = 0; known && d < v->rank; ++d) known = ait_dim_is_const(c->g, v->shape[d], &tensors[i].shape[d]);
    if (known) ait_tensor_set_contiguous(&tensors[i]);
    values[i] = (ait_custom_arg){.kind = AIT_CUSTOM_TENSOR, .as.tensor = &tensors[i]};
  }
  ait_custom_call call = {.struct_size = sizeof call,
                          .op = entry->op->name,
                          .node = c->name,
                          .module = "",
                          .ctx = entry->op->ctx,
                          .arg_count = schema->param_count,
                          .result_count = schema->result_count,
                          .args = values,
                          .allocator = c->g->allocator};
  ait_status status = known ? entry->op->infer(&call, shapes) : AIT_OK;
  if (ait_status_code(status) == AIT_CODE_UNSUPPORTED) { /* it needs contents */
    ait_status_ignore(status);
    known = false;
    status = AIT_OK;
  }
  AIT_TRY(ait_error_context(status, "its rule"));
  for (uint32_t k = 0; k < schema->result_count; ++k) {
    infos[k] = (ait_value_info){.type = entry->signature.results[k], .rank = -1, .scalar = AIT_NO_INDEX};
    if (infos[k].type != AIT_TYPE_TENSOR) infos[k].rank = 0;
    if (infos[k].type != AIT_TYPE_TENSOR || !known) continue;
    if (shapes[k].rank < 0 || shapes[k].rank > AIT_MAX_RANK)
      return ox_fail(c, AIT_CODE_INVALID_ARGUMENT, "its rule gives rank %d", (int)shapes[k].rank);
    ait_dim *dims;
    AIT_TRY(ox_dims(c, shapes[k].rank, &dims));
    AIT_TRY(ox_dim_ints(c, shapes[k].shape, shapes[k].rank, dims));
    infos[k] = ox_tensor_info(shapes[k].dtype, shapes[k].rank, dims);
  }
  return AIT_OK;
}

ait_status ox_custom_operator(ox_call *c, const char *domain, bool *out_found) {
  const char *name = ait_arena_printf(&c->in->arena, "%s::%s", domain, c->node->op_type ? c->node->op_type : "");
  const ait_op *schema = NULL, *row = ait_op_find("custom");
  if (!name) return AIT_OOM();
  if (*domain) AIT_TRY(ait_op_custom(name, &schema));
  *out_found = schema != NULL;
  if (!schema) return AIT_OK;
  if (schema->traits & AIT_OP_MUTATES) return ox_fail(c, AIT_CODE_UNSUPPORTED, "custom operator '%s' writes into its inputs", name);
  if (schema->result_count > OX_MAX_OUTPUTS) return ox_fail(c, AIT_CODE_LIMIT, "%u results", (unsigned)schema->result_count);
  ait_arg *args = AIT_ARENA_ARRAY(&c->in->arena, ait_arg, schema->param_count + 1u);
  ait_value_info infos[OX_MAX_OUTPUTS];
  uint32_t next = 0;
  if (!args) return AIT_OOM();
  for (uint32_t i = 0; i < schema->param_count; ++i) {
    const ait_param *p = &schema->params[i];
    if (p->type == AIT_PARAM_TENSOR) AIT_TRY(tensor_argument(c, p, &next, &args[i]));
    else AIT_TRY(attribute_argument(c, p, &args[i]));
  }
  if (next < c->input_count)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "%u inputs, the schema takes %u", (unsigned)c->input_count, (unsigned)next);
  AIT_TRY(result_infos(c, schema, ait_custom_find(name), args, infos));
  for (uint32_t k = 0; k < schema->result_count; ++k) AIT_TRY(ait_graph_add_value(c->g, c->name, &infos[k], &c->outputs[k]));
  return ait_graph_add_node(c->g, NULL, row, name, 0, args, schema->param_count, c->outputs, schema->result_count, c->name, c->module,
                            NULL);
}
