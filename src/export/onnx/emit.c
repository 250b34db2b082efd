/* Nodes, constants and casts of the model that is being written. */
#include "export/onnx/emit.h"
#include <stdio.h>

/* ---- errors and memory -----------------------------------------------------------------------------------------------------------*/
void ox_set_status(ox *x, ait_status status) { x->status = ait_status_join(x->status, status); }

void ox_fail(ox *x, const char *format, ...) {
  char text[256];
  va_list args;
  if (ox_failed(x)) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (x->node) ox_set_status(x, ait_error(AIT_CODE_UNSUPPORTED, "node '%s' (%s) has no ONNX form: %s", x->node->name, x->node->op, text));
  else ox_set_status(x, ait_error(AIT_CODE_UNSUPPORTED, "%s", text));
}

void *ox_new(ox *x, size_t count, size_t size) {
  void *p = ait_arena_array(&x->arena, count ? count : 1, size, 16);
  if (!p) {
    ox_set_status(x, AIT_OOM());
    return NULL;
  }
  memset(p, 0, (count ? count : 1) * size);
  return p;
}

/* ---- nodes -----------------------------------------------------------------------------------------------------------------------*/
ox_t ox_none(void) { return (ox_t){.rank = -1}; }

ox_t ox_tensor(ox *x, ait_dtype dtype) { return (ox_t){.name = ox_new(x, 1, sizeof(ox_name)), .dtype = dtype, .rank = -1}; }

void ox_node_new(ox *x, const char *op, const ox_t *in, uint32_t in_count, ox_t *out, uint32_t out_count) {
  if (ox_failed(x)) return;
  while (in_count && !in[in_count - 1].name) --in_count; /* optional operands at the end are left out */
  ox_node *n = ox_new(x, 1, sizeof *n);
  ox_name **names = ox_new(x, in_count + out_count, sizeof *names);
  if (!n || !names) return;
  *n = (ox_node){.op = op,
                 .label = x->node ? x->node->name : NULL,
                 .in = names,
                 .out = names + in_count,
                 .in_count = in_count,
                 .out_count = out_count};
  for (uint32_t i = 0; i < in_count; ++i) {
    n->in[i] = in[i].name;
    if (n->in[i]) n->in[i]->used = true;
  }
  for (uint32_t i = 0; i < out_count; ++i) n->out[i] = out[i].name;
  ox_frame *f = x->frame->into;
  if (f->last) f->last->next = n;
  else f->first = n;
  f->last = n;
}

ox_t ox_op(ox *x, const char *op, ait_dtype dtype, const ox_t *in, uint32_t in_count) {
  ox_t out = ox_tensor(x, dtype);
  ox_node_new(x, op, in, in_count, &out, 1);
  return out;
}

ox_t ox_same1(ox *x, const char *op, ox_t a) { return OX(x, op, a.dtype, a); }
ox_t ox_same2(ox *x, const char *op, ox_t a, ox_t b) { return OX(x, op, a.dtype, a, ox_cast(x, b, a.dtype)); }
ox_t ox_bool2(ox *x, const char *op, ox_t a, ox_t b) { return OX(x, op, AIT_BOOL, a, ox_cast(x, b, a.dtype)); }

static ox_attr *add_attr(ox *x, const char *name, ox_attr_kind kind) {
  static ox_attr nowhere;
  ox_attr *a = ox_failed(x) ? NULL : ox_new(x, 1, sizeof *a);
  ox_node *n = x->frame->into->last;
  if (!a || !n) return &nowhere;
  *a = (ox_attr){.name = name, .kind = kind};
  if (n->last_attr) n->last_attr->next = a;
  else n->attrs = a;
  n->last_attr = a;
  return a;
}

void ox_int(ox *x, const char *name, int64_t v) { add_attr(x, name, OX_INT)->i = v; }
void ox_float(ox *x, const char *name, double v) { add_attr(x, name, OX_FLOAT)->f = (float)v; }
void ox_string(ox *x, const char *name, const char *v) { add_attr(x, name, OX_STRING)->s = v; }
void ox_graph(ox *x, const char *name, const ox_frame *body) { add_attr(x, name, OX_GRAPH)->graph = body; }

void ox_ints(ox *x, const char *name, const int64_t *v, uint32_t count) {
  int64_t *copy = ox_new(x, count, sizeof *copy);
  if (!copy) return;
  memcpy(copy, v, count * sizeof *v);
  ox_attr *a = add_attr(x, name, OX_INTS);
  a->ints = copy;
  a->count = count;
}

/* ---- constants -------------------------------------------------------------------------------------------------------------------*/
static char *constant_key(ox *x, ait_dtype dtype, int32_t rank, const int64_t *shape, const void *data, size_t bytes) {
  static const char hex[] = "0123456789abcdef";
  char *key = ox_new(x, 24 + (size_t)rank * 21 + 2 * bytes, 1);
  if (!key) return NULL;
  char *p = key + sprintf(key, "%d:%d", (int)dtype, (int)rank);
  for (int32_t i = 0; i < rank; ++i) p += sprintf(p, ",%lld", (long long)shape[i]);
  *p++ = ':';
  for (size_t i = 0; i < bytes; ++i) {
    unsigned byte = ((const uint8_t *)data)[i];
    *p++ = hex[byte >> 4];
    *p++ = hex[byte & 15];
  }
  return key;
}

ox_t ox_const(ox *x, ait_dtype dtype, int32_t rank, const int64_t *shape, const void *data) {
  ox_t t = {.dtype = dtype, .rank = rank == 0 ? 0 : -1};
  size_t bytes = ait_dtype_size(dtype);
  void *known;
  for (int32_t i = 0; i < rank; ++i) bytes *= (size_t)shape[i];
  char *key = ox_failed(x) ? NULL : constant_key(x, dtype, rank, shape, data, bytes);
  if (!key) return ox_none();
  if (ait_map_get(&x->constants, key, &known)) {
    t.name = ((ox_constant *)known)->name;
    return t;
  }
  ox_constant *c = ox_new(x, 1, sizeof *c);
  void *copy = ox_new(x, bytes, 1);
  t.name = ox_tensor(x, dtype).name;
  if (!c || !copy || !t.name) return ox_none();
  if (bytes) memcpy(copy, data, bytes);
  *c = (ox_constant){.name = t.name, .dtype = dtype, .rank = rank, .data = copy, .bytes = bytes};
  memcpy(c->shape, shape, (size_t)rank * sizeof *shape);
  if (x->last_constant) x->last_constant->next = c;
  else x->first_constant = c;
  x->last_constant = c;
  ox_set_status(x, ait_map_put(&x->constants, key, c));
  return t;
}

ox_t ox_num(ox *x, ait_dtype dtype, double v) {
  uint8_t element[16];
  ait_element_set_f64(element, dtype, v);
  return ox_const(x, dtype, 0, (const int64_t[1]){0}, element);
}

ox_t ox_i64(ox *x, int64_t v) { return ox_const(x, AIT_I64, 0, (const int64_t[1]){0}, &v); }
ox_t ox_list(ox *x, const int64_t *v, uint32_t count) { return ox_const(x, AIT_I64, 1, (const int64_t[1]){count}, v); }
ox_t ox_list1(ox *x, int64_t v) { return ox_list(x, &v, 1); }

/* ---- dtypes ----------------------------------------------------------------------------------------------------------------------*/
/* The numbers of TensorProto.DataType; 0: ONNX has no such type. */
int32_t ox_onnx_type(ait_dtype dtype) {
  static const int32_t types[] = {
      [AIT_BOOL] = 9,    [AIT_U8] = 2,          [AIT_I8] = 3,         [AIT_U16] = 4,       [AIT_I16] = 5,
      [AIT_U32] = 12,    [AIT_I32] = 6,         [AIT_U64] = 13,       [AIT_I64] = 7,       [AIT_F16] = 10,
      [AIT_BF16] = 16,   [AIT_F32] = 1,         [AIT_F64] = 11,       [AIT_F8E4M3FN] = 17, [AIT_F8E4M3FNUZ] = 18,
      [AIT_F8E5M2] = 19, [AIT_F8E5M2FNUZ] = 20, [AIT_F8E8M0FNU] = 24, [AIT_C64] = 14,      [AIT_C128] = 15};
  return (size_t)dtype < AIT_COUNT(types) ? types[dtype] : 0;
}

ox_t ox_cast(ox *x, ox_t a, ait_dtype dtype) {
  if (!a.name || a.dtype == dtype || dtype == AIT_DTYPE_NONE) return a;
  bool narrow = dtype == AIT_U8 || dtype == AIT_I8 || dtype == AIT_U16 || dtype == AIT_I16 || dtype == AIT_U32;
  if (ait_dtype_is_float(a.dtype) && narrow) a = ox_cast(x, a, AIT_I64); /* then it wraps, where C leaves it open */
  ox_t out = OX(x, "Cast", dtype, a);
  ox_int(x, "to", ox_onnx_type(dtype));
  if (ait_dtype_size(dtype) == 1 && ait_dtype_is_float(dtype) && dtype != AIT_F8E4M3FN)
    ox_int(x, "saturate", 0); /* infinity or NaN, as torch */
  out.rank = a.rank;
  out.shape = a.shape;
  return out;
}

ait_dtype ox_dtype_in(ait_dtype dtype, uint32_t set) {
  static const ait_dtype floats[] = {AIT_F32, AIT_F64, AIT_DTYPE_NONE}, ints[] = {AIT_I32, AIT_I64, AIT_DTYPE_NONE},
                         longs[] = {AIT_I64, AIT_DTYPE_NONE}, truths[] = {AIT_U8, AIT_I32, AIT_I64, AIT_DTYPE_NONE};
  if (set & (1u << dtype)) return dtype;
  const ait_dtype *wider = ait_dtype_is_float(dtype)                                  ? floats
                           : dtype == AIT_BOOL                                        ? truths
                           : dtype == AIT_U32 || dtype == AIT_U64 || dtype == AIT_I64 ? longs
                                                                                      : ints;
  for (; *wider != AIT_DTYPE_NONE; ++wider)
    if (set & (1u << *wider)) return *wider;
  return dtype;
}

/* ---- shapes as data --------------------------------------------------------------------------------------------------------------*/
ox_t ox_reshape(ox *x, ox_t a, ox_t shape) {
  ox_t out = OX(x, "Reshape", a.dtype, a, shape);
  return out;
}
ox_t ox_reshape_to(ox *x, ox_t a, const int64_t *shape, uint32_t rank) { return ox_reshape(x, a, ox_list(x, shape, rank)); }
ox_t ox_unsqueeze(ox *x, ox_t a, int64_t axis) { return OX(x, "Unsqueeze", a.dtype, a, ox_list1(x, axis)); }
ox_t ox_squeeze(ox *x, ox_t a, int64_t axis) { return OX(x, "Squeeze", a.dtype, a, ox_list1(x, axis)); }

ox_t ox_transpose(ox *x, ox_t a, const int64_t *order, uint32_t rank) {
  bool identity = true;
  for (uint32_t i = 0; i < rank; ++i) identity &= order[i] == i;
  if (identity) return a;
  ox_t out = OX(x, "Transpose", a.dtype, a);
  ox_ints(x, "perm", order, rank);
  return out;
}

ox_t ox_slice(ox *x, ox_t a, int64_t axis, ox_t start, ox_t end, int64_t step) {
  return OX(x, "Slice", a.dtype, a, start, end, ox_list1(x, axis), step == 1 ? ox_none() : ox_list1(x, step));
}
ox_t ox_slice_const(ox *x, ox_t a, int64_t axis, int64_t start, int64_t end) {
  return ox_slice(x, a, axis, ox_list1(x, start), ox_list1(x, end), 1);
}

ox_t ox_concat(ox *x, const ox_t *parts, uint32_t count, int64_t axis) {
  if (count == 1) return parts[0];
  ox_t out = ox_op(x, "Concat", count ? parts[0].dtype : AIT_DTYPE_NONE, parts, count);
  ox_int(x, "axis", axis);
  return out;
}

ox_t ox_expand(ox *x, ox_t a, ox_t shape) {
  ox_t wide = a.dtype == AIT_BF16 ? ox_cast(x, a, AIT_F32) : a;
  return ox_cast(x, OX(x, "Expand", wide.dtype, wide, shape), a.dtype);
}

ox_t ox_where(ox *x, ox_t condition, ox_t a, ox_t b) {
  ox_t wide = ox_widen(x, a, OX_MOVE);
  return ox_cast(x, OX(x, "Where", wide.dtype, condition, wide, ox_cast(x, b, wide.dtype)), a.dtype);
}

ox_t ox_reduce(ox *x, const char *op, ox_t a, const int64_t *axes, uint32_t count, bool keepdim) {
  ox_t out = OX(x, op, a.dtype, a, count ? ox_list(x, axes, count) : ox_none());
  if (!keepdim) ox_int(x, "keepdims", 0);
  return out;
}

ox_t ox_shape_of(ox *x, ox_t a) { return OX(x, "Shape", AIT_I64, a); }
ox_t ox_range(ox *x, ox_t count) { return OX(x, "Range", AIT_I64, ox_i64(x, 0), count, ox_i64(x, 1)); }
ox_t ox_not(ox *x, ox_t a) { return OX(x, "Not", AIT_BOOL, a); }

ox_t ox_isnan(ox *x, ox_t a) {
  if (!ait_dtype_is_float(a.dtype)) return ox_none();
  return OX(x, "IsNaN", AIT_BOOL, ox_widen(x, a, OX_FLOATS));
}
