/* Nodes, constants and casts of the model that is being written. */
#include "export/onnx/emit.h"
#include <stdio.h>

/* ---- errors and memory -----------------------------------------------------------------------------------------------------------*/
void oe_set_status(ox *x, ait_status status) { x->status = ait_status_join(x->status, status); }

void oe_fail(ox *x, const char *format, ...) {
  char text[256];
  va_list args;
  if (oe_failed(x)) return;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (x->node) oe_set_status(x, ait_error(AIT_CODE_UNSUPPORTED, "node '%s' (%s) has no ONNX form: %s", x->node->name, x->node->op, text));
  else oe_set_status(x, ait_error(AIT_CODE_UNSUPPORTED, "%s", text));
}

void *oe_new(ox *x, size_t count, size_t size) {
  void *p = ait_arena_array(&x->arena, count ? count : 1, size, 16);
  if (!p) {
    oe_set_status(x, AIT_OOM());
    return NULL;
  }
  memset(p, 0, (count ? count : 1) * size);
  return p;
}

/* ---- nodes -----------------------------------------------------------------------------------------------------------------------*/
oe_t oe_none(void) { return (oe_t){.rank = -1}; }

oe_t oe_tensor(ox *x, ait_dtype dtype) { return (oe_t){.name = oe_new(x, 1, sizeof(oe_name)), .dtype = dtype, .rank = -1}; }

void oe_node_new(ox *x, const char *op, const oe_t *in, uint32_t in_count, oe_t *out, uint32_t out_count) {
  if (oe_failed(x)) return;
  while (in_count && !in[in_count - 1].name) --in_count; /* optional operands at the end are left out */
  oe_node *n = oe_new(x, 1, sizeof *n);
  oe_name **names = oe_new(x, in_count + out_count, sizeof *names);
  if (!n || !names) return;
  *n = (oe_node){.op = op,
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
  oe_frame *f = x->frame->into;
  if (f->last) f->last->next = n;
  else f->first = n;
  f->last = n;
}

oe_t oe_op(ox *x, const char *op, ait_dtype dtype, const oe_t *in, uint32_t in_count) {
  oe_t out = oe_tensor(x, dtype);
  oe_node_new(x, op, in, in_count, &out, 1);
  return out;
}

oe_t oe_same1(ox *x, const char *op, oe_t a) { return OE(x, op, a.dtype, a); }
oe_t oe_same2(ox *x, const char *op, oe_t a, oe_t b) { return OE(x, op, a.dtype, a, oe_cast(x, b, a.dtype)); }
oe_t oe_bool2(ox *x, const char *op, oe_t a, oe_t b) { return OE(x, op, AIT_BOOL, a, oe_cast(x, b, a.dtype)); }

static oe_attr *add_attr(ox *x, const char *name, oe_attr_kind kind) {
  static oe_attr nowhere;
  oe_attr *a = oe_failed(x) ? NULL : oe_new(x, 1, sizeof *a);
  oe_node *n = x->frame->into->last;
  if (!a || !n) return &nowhere;
  *a = (oe_attr){.name = name, .kind = kind};
  if (n->last_attr) n->last_attr->next = a;
  else n->attrs = a;
  n->last_attr = a;
  return a;
}

void oe_int(ox *x, const char *name, int64_t v) { add_attr(x, name, OE_INT)->i = v; }
void oe_float(ox *x, const char *name, double v) { add_attr(x, name, OE_FLOAT)->f = (float)v; }
void oe_string(ox *x, const char *name, const char *v) { add_attr(x, name, OE_STRING)->s = v; }
void oe_graph(ox *x, const char *name, const oe_frame *body) { add_attr(x, name, OE_GRAPH)->graph = body; }

void oe_ints(ox *x, const char *name, const int64_t *v, uint32_t count) {
  int64_t *copy = oe_new(x, count, sizeof *copy);
  if (!copy) return;
  memcpy(copy, v, count * sizeof *v);
  oe_attr *a = add_attr(x, name, OE_INTS);
  a->ints = copy;
  a->count = count;
}

/* ---- constants -------------------------------------------------------------------------------------------------------------------*/
static char *constant_key(ox *x, ait_dtype dtype, int32_t rank, const int64_t *shape, const void *data, size_t bytes) {
  static const char hex[] = "0123456789abcdef";
  char *key = oe_new(x, 24 + (size_t)rank * 21 + 2 * bytes, 1);
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

oe_t oe_const(ox *x, ait_dtype dtype, int32_t rank, const int64_t *shape, const void *data) {
  oe_t t = {.dtype = dtype, .rank = rank == 0 ? 0 : -1};
  size_t bytes = ait_dtype_size(dtype);
  void *known;
  for (int32_t i = 0; i < rank; ++i) bytes *= (size_t)shape[i];
  char *key = oe_failed(x) ? NULL : constant_key(x, dtype, rank, shape, data, bytes);
  if (!key) return oe_none();
  if (ait_map_get(&x->constants, key, &known)) {
    t.name = ((oe_constant *)known)->name;
    return t;
  }
  oe_constant *c = oe_new(x, 1, sizeof *c);
  void *copy = oe_new(x, bytes, 1);
  t.name = oe_tensor(x, dtype).name;
  if (!c || !copy || !t.name) return oe_none();
  if (bytes) memcpy(copy, data, bytes);
  *c = (oe_constant){.name = t.name, .dtype = dtype, .rank = rank, .data = copy, .bytes = bytes};
  memcpy(c->shape, shape, (size_t)rank * sizeof *shape);
  if (x->last_constant) x->last_constant->next = c;
  else x->first_constant = c;
  x->last_constant = c;
  oe_set_status(x, ait_map_put(&x->constants, key, c));
  return t;
}

oe_t oe_num(ox *x, ait_dtype dtype, double v) {
  uint8_t element[16];
  ait_element_set_f64(element, dtype, v);
  return oe_const(x, dtype, 0, (const int64_t[1]){0}, element);
}

oe_t oe_i64(ox *x, int64_t v) { return oe_const(x, AIT_I64, 0, (const int64_t[1]){0}, &v); }
oe_t oe_list(ox *x, const int64_t *v, uint32_t count) { return oe_const(x, AIT_I64, 1, (const int64_t[1]){count}, v); }
oe_t oe_list1(ox *x, int64_t v) { return oe_list(x, &v, 1); }

/* ---- dtypes ----------------------------------------------------------------------------------------------------------------------*/
/* The numbers of TensorProto.DataType; 0: ONNX has no such type. */
int32_t oe_onnx_type(ait_dtype dtype) {
  static const int32_t types[] = {
      [AIT_BOOL] = 9,    [AIT_U8] = 2,          [AIT_I8] = 3,         [AIT_U16] = 4,       [AIT_I16] = 5,
      [AIT_U32] = 12,    [AIT_I32] = 6,         [AIT_U64] = 13,       [AIT_I64] = 7,       [AIT_F16] = 10,
      [AIT_BF16] = 16,   [AIT_F32] = 1,         [AIT_F64] = 11,       [AIT_F8E4M3FN] = 17, [AIT_F8E4M3FNUZ] = 18,
      [AIT_F8E5M2] = 19, [AIT_F8E5M2FNUZ] = 20, [AIT_F8E8M0FNU] = 24, [AIT_C64] = 14,      [AIT_C128] = 15};
  return (size_t)dtype < AIT_COUNT(types) ? types[dtype] : 0;
}

oe_t oe_cast(ox *x, oe_t a, ait_dtype dtype) {
  if (!a.name || a.dtype == dtype || dtype == AIT_DTYPE_NONE) return a;
  bool narrow = dtype == AIT_U8 || dtype == AIT_I8 || dtype == AIT_U16 || dtype == AIT_I16 || dtype == AIT_U32;
  if (ait_dtype_is_float(a.dtype) && narrow) a = oe_cast(x, a, AIT_I64); /* then it wraps, where C leaves it open */
  oe_t out = OE(x, "Cast", dtype, a);
  oe_int(x, "to", oe_onnx_type(dtype));
  if (ait_dtype_size(dtype) == 1 && ait_dtype_is_float(dtype) && dtype != AIT_F8E4M3FN)
    oe_int(x, "saturate", 0); /* infinity or NaN, as torch */
  out.rank = a.rank;
  out.shape = a.shape;
  return out;
}

ait_dtype oe_dtype_in(ait_dtype dtype, uint32_t set) {
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
oe_t oe_reshape(ox *x, oe_t a, oe_t shape) {
  oe_t out = OE(x, "Reshape", a.dtype, a, shape);
  return out;
}
oe_t oe_reshape_to(ox *x, oe_t a, const int64_t *shape, uint32_t rank) { return oe_reshape(x, a, oe_list(x, shape, rank)); }
oe_t oe_unsqueeze(ox *x, oe_t a, int64_t axis) { return OE(x, "Unsqueeze", a.dtype, a, oe_list1(x, axis)); }
oe_t oe_squeeze(ox *x, oe_t a, int64_t axis) { return OE(x, "Squeeze", a.dtype, a, oe_list1(x, axis)); }

oe_t oe_transpose(ox *x, oe_t a, const int64_t *order, uint32_t rank) {
  bool identity = true;
  for (uint32_t i = 0; i < rank; ++i) identity &= order[i] == i;
  if (identity) return a;
  oe_t out = OE(x, "Transpose", a.dtype, a);
  oe_ints(x, "perm", order, rank);
  return out;
}

oe_t oe_slice(ox *x, oe_t a, int64_t axis, oe_t start, oe_t end, int64_t step) {
  return OE(x, "Slice", a.dtype, a, start, end, oe_list1(x, axis), step == 1 ? oe_none() : oe_list1(x, step));
}
oe_t oe_slice_const(ox *x, oe_t a, int64_t axis, int64_t start, int64_t end) {
  return oe_slice(x, a, axis, oe_list1(x, start), oe_list1(x, end), 1);
}

oe_t oe_concat(ox *x, const oe_t *parts, uint32_t count, int64_t axis) {
  if (count == 1) return parts[0];
  oe_t out = oe_op(x, "Concat", count ? parts[0].dtype : AIT_DTYPE_NONE, parts, count);
  oe_int(x, "axis", axis);
  return out;
}

oe_t oe_expand(ox *x, oe_t a, oe_t shape) {
  oe_t wide = a.dtype == AIT_BF16 ? oe_cast(x, a, AIT_F32) : a;
  return oe_cast(x, OE(x, "Expand", wide.dtype, wide, shape), a.dtype);
}

oe_t oe_where(ox *x, oe_t condition, oe_t a, oe_t b) {
  oe_t wide = oe_widen(x, a, OE_MOVE);
  return oe_cast(x, OE(x, "Where", wide.dtype, condition, wide, oe_cast(x, b, wide.dtype)), a.dtype);
}

oe_t oe_reduce(ox *x, const char *op, oe_t a, const int64_t *axes, uint32_t count, bool keepdim) {
  oe_t out = OE(x, op, a.dtype, a, count ? oe_list(x, axes, count) : oe_none());
  if (!keepdim) oe_int(x, "keepdims", 0);
  return out;
}

oe_t oe_shape_of(ox *x, oe_t a) { return OE(x, "Shape", AIT_I64, a); }
oe_t oe_range(ox *x, oe_t count) { return OE(x, "Range", AIT_I64, oe_i64(x, 0), count, oe_i64(x, 1)); }
oe_t oe_not(ox *x, oe_t a) { return OE(x, "Not", AIT_BOOL, a); }

oe_t oe_isnan(ox *x, oe_t a) {
  if (!ait_dtype_is_float(a.dtype)) return oe_none();
  return OE(x, "IsNaN", AIT_BOOL, oe_widen(x, a, OE_FLOATS));
}
