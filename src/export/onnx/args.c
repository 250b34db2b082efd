/* Arguments and results of the node that is being written. */
#include "export/onnx/emit.h"

static const ait_arg none_arg = {.kind = AIT_ARG_NONE};

const ait_arg *oe_arg(const ox *x, uint32_t k) { return k < x->node->arg_count ? &x->node->args[k] : &none_arg; }
bool oe_has(const ox *x, uint32_t k) { return oe_arg(x, k)->kind != AIT_ARG_NONE; }

bool oe_int_const(const ox *x, const ait_arg *a, int64_t *out) {
  switch (a->kind) {
    case AIT_ARG_INT: *out = a->as.i; return true;
    case AIT_ARG_BOOL: *out = a->as.b; return true;
    case AIT_ARG_DIM: return oe_dim_const(x, a->as.dim, out);
    default: return false;
  }
}

int64_t oe_arg_int(ox *x, uint32_t k) {
  int64_t v = 0;
  if (!oe_int_const(x, oe_arg(x, k), &v)) oe_fail(x, "argument %u is not known before it runs", (unsigned)k);
  return v;
}
int64_t oe_arg_int_or(ox *x, uint32_t k, int64_t missing) { return oe_has(x, k) ? oe_arg_int(x, k) : missing; }

double oe_arg_float(ox *x, uint32_t k) {
  const ait_arg *a = oe_arg(x, k);
  if (a->kind == AIT_ARG_FLOAT) return a->as.f;
  return (double)oe_arg_int(x, k);
}
double oe_arg_float_or(ox *x, uint32_t k, double missing) { return oe_has(x, k) ? oe_arg_float(x, k) : missing; }
bool oe_arg_bool(ox *x, uint32_t k) { return oe_has(x, k) && oe_arg_int(x, k) != 0; }

const char *oe_arg_string(ox *x, uint32_t k) {
  if (oe_arg(x, k)->kind == AIT_ARG_STRING) return oe_arg(x, k)->as.string;
  oe_fail(x, "argument %u is no text", (unsigned)k);
  return "";
}

uint32_t oe_arg_list(ox *x, uint32_t k, const ait_arg **out) {
  const ait_arg *a = oe_arg(x, k);
  *out = a->kind == AIT_ARG_LIST ? a->as.list : NULL;
  if (a->kind == AIT_ARG_LIST) return a->count;
  if (a->kind != AIT_ARG_NONE) oe_fail(x, "argument %u is no list", (unsigned)k);
  return 0;
}

uint32_t oe_arg_ints(ox *x, uint32_t k, int64_t *out) {
  const ait_arg *list;
  uint32_t count = oe_arg_list(x, k, &list);
  if (count > AIT_MAX_RANK) {
    oe_fail(x, "argument %u is too long", (unsigned)k);
    return 0;
  }
  for (uint32_t i = 0; i < count; ++i) {
    out[i] = 0;
    if (!oe_int_const(x, &list[i], &out[i])) oe_fail(x, "argument %u is not known before it runs", (unsigned)k);
  }
  return count;
}

void oe_arg_spatial(ox *x, uint32_t k, uint32_t count, int64_t missing, int64_t *out) {
  int64_t given[AIT_MAX_RANK];
  uint32_t n = oe_arg_ints(x, k, given);
  for (uint32_t i = 0; i < count; ++i) out[i] = n == 0 ? missing : n == 1 ? given[0] : i < n ? given[i] : missing;
}

/* ---- sizes -----------------------------------------------------------------------------------------------------------------------*/
oe_t oe_int_tensor(ox *x, const ait_arg *a) {
  int64_t v;
  if (oe_int_const(x, a, &v)) return oe_list1(x, v);
  if (a->kind == AIT_ARG_DIM) return oe_dim(x, a->as.dim);
  if (a->kind == AIT_ARG_VALUE) return oe_reshape_to(x, oe_cast(x, oe_value(x, a->as.value), AIT_I64), (const int64_t[]){1}, 1);
  oe_fail(x, "an argument is no integer");
  return oe_none();
}

/* Neighbouring constants are one part. */
oe_t oe_ints_tensor(ox *x, const ait_arg *list, uint32_t count) {
  oe_t parts[AIT_MAX_RANK];
  int64_t run[AIT_MAX_RANK];
  uint32_t part_count = 0, run_count = 0;
  if (count > AIT_MAX_RANK) {
    oe_fail(x, "rank above %d", AIT_MAX_RANK);
    return oe_none();
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (oe_int_const(x, &list[i], &run[run_count])) {
      ++run_count;
      continue;
    }
    if (run_count) parts[part_count++] = oe_list(x, run, run_count);
    run_count = 0;
    parts[part_count++] = oe_int_tensor(x, &list[i]);
  }
  if (run_count || !part_count) parts[part_count++] = oe_list(x, run, run_count);
  return oe_concat(x, parts, part_count, 0);
}

/* ---- operands --------------------------------------------------------------------------------------------------------------------*/
oe_t oe_value(ox *x, uint32_t id) {
  if (id < x->frame->region->value_count && x->frame->values[id].name) return x->frame->values[id];
  oe_fail(x, "an operand is no tensor that ONNX can hold");
  return oe_none();
}

oe_t oe_operand(ox *x, const ait_arg *a, ait_dtype dtype) {
  uint8_t element[16];
  switch (a->kind) {
    case AIT_ARG_NONE: return oe_none();
    case AIT_ARG_VALUE: return oe_cast(x, oe_value(x, a->as.value), dtype);
    case AIT_ARG_DIM: return oe_cast(x, oe_squeeze(x, oe_dim(x, a->as.dim), 0), dtype);
    case AIT_ARG_FLOAT:
      ait_element_set_f64(element, dtype = dtype ? dtype : AIT_F64, a->as.f);
      return oe_const(x, dtype, 0, (const int64_t[1]){0}, element);
    case AIT_ARG_INT:
      ait_element_set_i64(element, dtype = dtype ? dtype : AIT_I64, a->as.i);
      return oe_const(x, dtype, 0, (const int64_t[1]){0}, element);
    case AIT_ARG_BOOL:
      ait_element_set_i64(element, dtype = dtype ? dtype : AIT_BOOL, a->as.b);
      return oe_const(x, dtype, 0, (const int64_t[1]){0}, element);
    case AIT_ARG_COMPLEX: oe_fail(x, "ONNX operators have no complex numbers"); return oe_none();
    default: oe_fail(x, "an operand is neither tensor nor number"); return oe_none();
  }
}

oe_t oe_in(ox *x, uint32_t k) {
  const ait_arg *a = oe_arg(x, k);
  if (a->kind == AIT_ARG_VALUE) return oe_value(x, a->as.value);
  oe_fail(x, "argument %u is no tensor", (unsigned)k);
  return oe_none();
}
oe_t oe_in_as(ox *x, uint32_t k, ait_dtype dtype) { return oe_operand(x, oe_arg(x, k), dtype); }

/* ---- results ---------------------------------------------------------------------------------------------------------------------*/
const ait_region_value *oe_result_value(const ox *x, uint32_t k) {
  static const ait_region_value nothing = {.rank = -1};
  uint32_t id = k < x->node->result_count ? x->node->results[k] : AIT_NO_INDEX;
  return id < x->frame->region->value_count ? &x->frame->region->values[id] : &nothing;
}

ait_dtype oe_value_dtype(const ait_region_value *v) {
  switch (v->type) {
    case AIT_TYPE_TENSOR: return v->dtype;
    case AIT_TYPE_INT: return AIT_I64;
    case AIT_TYPE_FLOAT: return AIT_F64;
    case AIT_TYPE_BOOL: return AIT_BOOL;
    default: return AIT_DTYPE_NONE;
  }
}

ait_dtype oe_result_dtype(const ox *x, uint32_t k) { return oe_value_dtype(oe_result_value(x, k)); }
bool oe_wants(const ox *x, uint32_t k) { return k < x->node->result_count && x->node->results[k] != AIT_NO_INDEX; }

void oe_set(ox *x, uint32_t k, oe_t t) {
  if (!oe_wants(x, k) || oe_failed(x)) return;
  const ait_region_value *v = oe_result_value(x, k);
  t = oe_cast(x, t, oe_value_dtype(v));
  if (t.name && !t.name->hint) t.name->hint = v->name;
  t.rank = v->type == AIT_TYPE_TENSOR ? v->rank : 0;
  t.shape = v->type == AIT_TYPE_TENSOR && v->rank >= 0 ? v->shape : NULL;
  x->frame->values[x->node->results[k]] = t;
  oe_bind_sizes(x, t);
  if (v->type == AIT_TYPE_INT && v->shape) oe_bind_scalar(x, v->shape[0], t);
}

int64_t oe_axis(ox *x, int64_t axis, int32_t rank) {
  int32_t dims = rank > 0 ? rank : 1;
  if (rank < 0) oe_fail(x, "the rank of its operand is not known");
  if (axis < -dims || axis >= dims) oe_fail(x, "dim %lld is out of range", (long long)axis);
  return axis < 0 ? axis + dims : axis;
}

static int category(ait_dtype d) {
  return d == AIT_BOOL ? 1 : ait_dtype_is_integer(d) ? 2 : ait_dtype_is_float(d) ? 3 : ait_dtype_is_complex(d) ? 4 : 0;
}

/* Operands of a higher category (bool, integer, float) decide; within one, tensors with dims before those without, and both before numbers.
 */
ait_dtype oe_common_dtype(ox *x, uint32_t first, uint32_t last) {
  ait_dtype level[3] = {AIT_DTYPE_NONE, AIT_DTYPE_NONE, AIT_DTYPE_NONE}; /* with dims, without, numbers */
  for (uint32_t k = first; k <= last; ++k) {
    const ait_arg *a = oe_arg(x, k);
    ait_dtype d = AIT_I64;
    int at = 2;
    if (a->kind == AIT_ARG_NONE) continue;
    if (a->kind == AIT_ARG_FLOAT) d = AIT_F32;
    if (a->kind == AIT_ARG_BOOL) d = AIT_BOOL;
    if (a->kind == AIT_ARG_VALUE && a->as.value < x->frame->region->value_count) {
      const ait_region_value *v = &x->frame->region->values[a->as.value];
      d = oe_value_dtype(v);
      at = v->type != AIT_TYPE_TENSOR ? 2 : v->rank == 0 ? 1 : 0;
      if (v->type == AIT_TYPE_FLOAT) d = AIT_F32;
    }
    level[at] = level[at] == AIT_DTYPE_NONE ? d : ait_dtype_promote(level[at], d);
  }
  ait_dtype common = level[0];
  for (int at = 1; at < 3; ++at) {
    if (level[at] == AIT_DTYPE_NONE) continue;
    if (category(level[at]) > category(common)) common = level[at];
  }
  return common;
}
