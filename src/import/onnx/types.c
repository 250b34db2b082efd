/* Declared types: dtypes, sizes, symbols. */
#include "import/onnx/onnx.h"

#include <ctype.h>
#include <stdio.h>

/* dim_param is any text; symbols are identifiers. Different texts stay different symbols. */
static ait_status symbol_of(ox_import *in, const char *param, ait_dim *out) {
  void *found;
  if (ait_map_get(&in->dim_names, param, &found)) {
    *out = (ait_dim)(uintptr_t)found;
    return AIT_OK;
  }
  size_t n = strlen(param);
  char *name = ait_arena_alloc(&in->arena, n + 16, 1);
  if (!name) return AIT_OOM();
  for (size_t i = 0; i < n; ++i) name[i] = (char)(isalnum((unsigned char)param[i]) ? param[i] : '_');
  name[n] = '\0';
  if (n == 0 || isdigit((unsigned char)name[0])) {
    memmove(name + 1, name, n + 1);
    name[0] = 'd';
    ++n;
  }
  for (int i = 1; ait_graph_symbol(in->graph, name); ++i) snprintf(name + n, 12, "_%d", i);
  AIT_TRY(ait_dim_symbol(in->graph, name, out));
  ait_symbol *symbol = ait_graph_symbol(in->graph, name);
  symbol->backed = true;
  symbol->hint = -1;
  return ait_map_put(&in->dim_names, param, (void *)(uintptr_t)*out);
}

/* An unnamed size of a model input: a symbol of its own, "x_0". */
static ait_status unnamed_size(ox_import *in, const char *name, int32_t axis, ait_dim *out) {
  char *param = ait_arena_printf(&in->arena, "%s_%d", name, (int)axis);
  if (!param) return AIT_OOM();
  while (ait_map_get(&in->dim_names, param, NULL)) {
    param = ait_arena_printf(&in->arena, "%s_", param);
    if (!param) return AIT_OOM();
  }
  return symbol_of(in, param, out);
}

static ait_status size_of(ox_import *in, const char *name, int32_t axis, const Onnx__TensorShapeProto__Dimension *d, bool symbols,
                          ait_dim *out) {
  if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE && d->dim_value >= 0)
    return ait_dim_const(in->graph, d->dim_value, out);
  if (!symbols) return ait_dim_unknown(in->graph, out);
  if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && d->dim_param && *d->dim_param)
    return symbol_of(in, d->dim_param, out);
  return unnamed_size(in, name, axis, out); /* -1 is how some exporters write an unknown size */
}

static ait_status tensor_type(ox_import *in, const char *name, const Onnx__TypeProto__Tensor *t, bool symbols, ait_value_info *out) {
  *out = (ait_value_info){.type = AIT_TYPE_TENSOR, .dtype = ox_dtype(t->elem_type), .rank = -1, .scalar = AIT_NO_INDEX};
  if (out->dtype == AIT_DTYPE_NONE) {
    return ait_error(t->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING ? AIT_CODE_UNSUPPORTED : AIT_CODE_INVALID_MODEL,
                     "'%s' is a tensor of type %s (%d)", name, ox_dtype_text(t->elem_type), (int)t->elem_type);
  }
  if (!t->shape) return AIT_OK;
  if (t->shape->n_dim > AIT_MAX_RANK)
    return ait_error(AIT_CODE_LIMIT, "'%s' has %zu dimensions, at most %d are possible", name, t->shape->n_dim, AIT_MAX_RANK);
  ait_dim *dims = AIT_ARENA_ARRAY(&in->arena, ait_dim, t->shape->n_dim + 1);
  if (!dims) return AIT_OOM();
  for (size_t d = 0; d < t->shape->n_dim; ++d) AIT_TRY(size_of(in, name, (int32_t)d, t->shape->dim[d], symbols, &dims[d]));
  out->rank = (int32_t)t->shape->n_dim;
  out->shape = dims;
  return AIT_OK;
}

static const char *kind_text(const Onnx__TypeProto *type) {
  switch (type->value_case) {
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: return "a map";
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE: return "a sparse tensor";
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE: return "opaque";
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE: return "a sequence of something that is no tensor";
    default: return "of no known type";
  }
}

ait_status ox_type(ox_import *in, const char *name, const Onnx__TypeProto *type, bool symbols, ait_value_info *out) {
  *out = (ait_value_info){.type = AIT_TYPE_TENSOR, .rank = -1, .scalar = AIT_NO_INDEX};
  if (!type || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) return AIT_OK;
  /* An optional value is the value, or none. */
  if (type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE && type->optional_type->elem_type) type = type->optional_type->elem_type;
  if (type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return tensor_type(in, name, type->tensor_type, symbols, out);
  if (type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
    const Onnx__TypeProto *element = type->sequence_type->elem_type;
    if (element && element->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
      *out = (ait_value_info){
          .type = AIT_TYPE_TENSOR_LIST, .dtype = ox_dtype(element->tensor_type->elem_type), .rank = -1, .scalar = AIT_NO_INDEX};
      return AIT_OK;
    }
  }
  return ait_error(AIT_CODE_UNSUPPORTED, "'%s' is %s", name, kind_text(type));
}
