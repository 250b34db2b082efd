/* Arguments and results of a call. */
#include "backends/reference/reference.h"

#include "backends/dims.h"

#include <stdio.h>

static const ait_arg none_arg = {.kind = AIT_ARG_NONE};

static const ait_arg *arg_at(const ait_ref_call *call, uint32_t arg) {
  return arg < call->node->arg_count ? &call->node->args[arg] : &none_arg;
}

static const ait_ref_value *value_at(const ait_ref_call *call, uint32_t id) {
  return id < call->region->value_count ? &call->run->values[id] : NULL;
}

ait_status ait_ref_error(const ait_ref_call *call, ait_code code, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return ait_error(code, "node '%s' (%s): %s", call->node->name ? call->node->name : "", call->node->op, text);
}

static ait_status wrong_kind(const ait_ref_call *call, uint32_t arg, const char *want) {
  return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "argument %u is not %s", arg, want);
}

uint32_t ait_ref_arg_count(const ait_ref_call *call) { return call->node->arg_count; }

bool ait_ref_is_none(const ait_ref_call *call, uint32_t arg) {
  const ait_arg *a = arg_at(call, arg);
  if (a->kind != AIT_ARG_VALUE) return a->kind == AIT_ARG_NONE;
  const ait_ref_value *v = value_at(call, a->as.value);
  return !v || v->type == AIT_TYPE_NONE;
}

bool ait_ref_is_tensor(const ait_ref_call *call, uint32_t arg) { return ait_ref_tensor_or_null(call, arg) != NULL; }

const ait_tensor *ait_ref_tensor_or_null(const ait_ref_call *call, uint32_t arg) {
  const ait_arg *a = arg_at(call, arg);
  if (a->kind != AIT_ARG_VALUE) return NULL;
  const ait_ref_value *v = value_at(call, a->as.value);
  return v && v->type == AIT_TYPE_TENSOR ? &v->as.tensor : NULL;
}

ait_status ait_ref_tensor(const ait_ref_call *call, uint32_t arg, const ait_tensor **out) {
  *out = ait_ref_tensor_or_null(call, arg);
  return *out ? AIT_OK : wrong_kind(call, arg, "a tensor");
}

ait_status ait_ref_tensors(const ait_ref_call *call, uint32_t arg, ait_tensor **out, uint32_t *out_count) {
  const ait_arg *a = arg_at(call, arg);
  const ait_ref_value *value = a->kind == AIT_ARG_VALUE ? value_at(call, a->as.value) : NULL;
  bool single = value && value->type == AIT_TYPE_TENSOR;
  uint32_t count;
  if (a->kind == AIT_ARG_LIST) count = a->count;
  else if (value && value->type == AIT_TYPE_TENSOR_LIST) count = value->as.list.count;
  else if (single) count = 1;
  else if (a->kind == AIT_ARG_NONE) count = 0;
  else return wrong_kind(call, arg, "a list of tensors");
  ait_tensor *items = ait_alloc_zero(call->allocator, count * sizeof *items, _Alignof(ait_tensor));
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    if (single) {
      items[i] = value->as.tensor;
      continue;
    }
    if (a->kind != AIT_ARG_LIST) {
      items[i] = value->as.list.items[i];
      continue;
    }
    const ait_arg *e = &a->as.list[i];
    const ait_ref_value *v = e->kind == AIT_ARG_VALUE ? value_at(call, e->as.value) : NULL;
    if (v && v->type == AIT_TYPE_TENSOR) items[i] = v->as.tensor;
    else if (e->kind != AIT_ARG_NONE && !(v && v->type == AIT_TYPE_NONE)) {
      ait_free(call->allocator, items, count * sizeof *items);
      return wrong_kind(call, arg, "a list of tensors");
    }
  }
  *out = items;
  *out_count = count;
  return AIT_OK;
}

/* ---- scalars ---------------------------------------------------------------------------------------------------------------------*/
static ait_ref_scalar scalar_int(int64_t i) { return (ait_ref_scalar){.kind = AIT_KIND_INT, .i = i, .f = (double)i}; }
static ait_ref_scalar scalar_bool(bool b) { return (ait_ref_scalar){.kind = AIT_KIND_BOOL, .i = b, .f = b}; }
static ait_ref_scalar scalar_float(double f) {
  int64_t i = f >= -9.2e18 && f <= 9.2e18 ? (int64_t)f : 0;
  return (ait_ref_scalar){.kind = AIT_KIND_FLOAT, .i = i, .f = f};
}

/* A tensor of one element, where the program passes one for a number. */
static ait_ref_scalar scalar_of_tensor(const ait_tensor *t) {
  ait_dtype_kind kind = ait_dtype_kind_of(t->dtype);
  if (kind == AIT_KIND_COMPLEX) {
    double c[2];
    ait_element_c128(t->data, t->dtype, c);
    ait_ref_scalar s = scalar_float(c[0]);
    s.kind = AIT_KIND_COMPLEX;
    s.imag = c[1];
    return s;
  }
  if (kind == AIT_KIND_FLOAT) return scalar_float(ait_element_f64(t->data, t->dtype));
  int64_t i = ait_element_i64(t->data, t->dtype);
  return kind == AIT_KIND_BOOL ? scalar_bool(i != 0) : scalar_int(i);
}

static bool scalar_of_value(const ait_ref_value *v, ait_ref_scalar *out) {
  if (!v) return false;
  switch (v->type) {
    case AIT_TYPE_INT: *out = scalar_int(v->as.i); return true;
    case AIT_TYPE_BOOL: *out = scalar_bool(v->as.b); return true;
    case AIT_TYPE_FLOAT:
      *out = scalar_float(v->is_complex ? v->as.c[0] : v->as.f);
      if (v->is_complex) {
        out->kind = AIT_KIND_COMPLEX;
        out->imag = v->as.c[1];
      }
      return true;
    case AIT_TYPE_TENSOR:
      if (ait_tensor_count(&v->as.tensor) != 1) return false;
      *out = scalar_of_tensor(&v->as.tensor);
      return true;
    default: return false;
  }
}

static bool scalar_of(const ait_ref_call *call, const ait_arg *a, ait_ref_scalar *out) {
  int64_t i;
  switch (a->kind) {
    case AIT_ARG_INT: *out = scalar_int(a->as.i); return true;
    case AIT_ARG_FLOAT: *out = scalar_float(a->as.f); return true;
    case AIT_ARG_BOOL: *out = scalar_bool(a->as.b); return true;
    case AIT_ARG_COMPLEX:
      *out = scalar_float(a->as.complex[0]);
      out->kind = AIT_KIND_COMPLEX;
      out->imag = a->as.complex[1];
      return true;
    case AIT_ARG_DIM:
      if (!ait_dim_eval(call->region->dims, call->run->symbols, a->as.dim, &i)) return false;
      *out = scalar_int(i);
      return true;
    case AIT_ARG_VALUE: return scalar_of_value(value_at(call, a->as.value), out);
    default: return false;
  }
}

static ait_status scalar_at(const ait_ref_call *call, uint32_t arg, const ait_arg *a, const char *want, ait_ref_scalar *out) {
  if (scalar_of(call, a, out)) return AIT_OK;
  if (a->kind == AIT_ARG_DIM) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "argument %u is a size that no input determines", arg);
  return wrong_kind(call, arg, want);
}

static bool is_whole(const ait_ref_scalar *s) { return s->kind == AIT_KIND_INT || s->kind == AIT_KIND_BOOL; }

ait_status ait_ref_scalar_arg(const ait_ref_call *call, uint32_t arg, ait_ref_scalar *out) {
  return scalar_at(call, arg, arg_at(call, arg), "a number", out);
}

ait_status ait_ref_int(const ait_ref_call *call, uint32_t arg, int64_t *out) {
  ait_ref_scalar s;
  AIT_TRY(scalar_at(call, arg, arg_at(call, arg), "an integer", &s));
  if (!is_whole(&s)) return wrong_kind(call, arg, "an integer");
  *out = s.i;
  return AIT_OK;
}

ait_status ait_ref_int_or(const ait_ref_call *call, uint32_t arg, int64_t when_none, int64_t *out) {
  *out = when_none;
  return ait_ref_is_none(call, arg) ? AIT_OK : ait_ref_int(call, arg, out);
}

ait_status ait_ref_float(const ait_ref_call *call, uint32_t arg, double *out) {
  ait_ref_scalar s;
  AIT_TRY(scalar_at(call, arg, arg_at(call, arg), "a number", &s));
  if (s.kind == AIT_KIND_COMPLEX) return wrong_kind(call, arg, "a real number");
  *out = s.f;
  return AIT_OK;
}

ait_status ait_ref_float_or(const ait_ref_call *call, uint32_t arg, double when_none, double *out) {
  *out = when_none;
  return ait_ref_is_none(call, arg) ? AIT_OK : ait_ref_float(call, arg, out);
}

ait_status ait_ref_bool(const ait_ref_call *call, uint32_t arg, bool *out) {
  ait_ref_scalar s;
  AIT_TRY(scalar_at(call, arg, arg_at(call, arg), "a bool", &s));
  *out = s.f != 0;
  return AIT_OK;
}

ait_status ait_ref_bool_or(const ait_ref_call *call, uint32_t arg, bool when_none, bool *out) {
  *out = when_none;
  return ait_ref_is_none(call, arg) ? AIT_OK : ait_ref_bool(call, arg, out);
}

/* ---- lists of scalars --------------------------------------------------------------------------------------------------------------*/
/* The elements of a list argument; a single number counts as one element, none as zero. */
static const ait_arg *elements_of(const ait_ref_call *call, uint32_t arg, uint32_t *out_count) {
  const ait_arg *a = arg_at(call, arg);
  if (a->kind == AIT_ARG_LIST) {
    *out_count = a->count;
    return a->as.list;
  }
  *out_count = ait_ref_is_none(call, arg) ? 0 : 1;
  return a;
}

static ait_status bounded_elements(const ait_ref_call *call, uint32_t arg, const ait_arg **out, int32_t *out_count) {
  uint32_t count;
  *out = elements_of(call, arg, &count);
  if (count > AIT_MAX_RANK)
    return ait_ref_error(call, AIT_CODE_LIMIT, "argument %u has %u elements, more than %d", arg, count, AIT_MAX_RANK);
  *out_count = (int32_t)count;
  return AIT_OK;
}

static ait_status int_element(const ait_ref_call *call, uint32_t arg, const ait_arg *e, int64_t *out) {
  ait_ref_scalar s;
  AIT_TRY(scalar_at(call, arg, e, "a list of integers", &s));
  if (!is_whole(&s)) return wrong_kind(call, arg, "a list of integers");
  *out = s.i;
  return AIT_OK;
}

ait_status ait_ref_ints(const ait_ref_call *call, uint32_t arg, int64_t out[AIT_MAX_RANK], int32_t *out_count) {
  const ait_arg *e;
  AIT_TRY(bounded_elements(call, arg, &e, out_count));
  for (int32_t i = 0; i < *out_count; ++i) AIT_TRY(int_element(call, arg, &e[i], &out[i]));
  return AIT_OK;
}

ait_status ait_ref_int_array(const ait_ref_call *call, uint32_t arg, int64_t **out, uint32_t *out_count) {
  uint32_t count;
  const ait_arg *e = elements_of(call, arg, &count);
  int64_t *items = ait_alloc(call->allocator, count * sizeof *items, _Alignof(int64_t));
  if (!items) return AIT_OOM();
  for (uint32_t i = 0; i < count; ++i) {
    ait_status status = int_element(call, arg, &e[i], &items[i]);
    if (status == AIT_OK) continue;
    ait_free(call->allocator, items, count * sizeof *items);
    return status;
  }
  *out = items;
  *out_count = count;
  return AIT_OK;
}

ait_status ait_ref_floats(const ait_ref_call *call, uint32_t arg, double out[AIT_MAX_RANK], int32_t *out_count) {
  const ait_arg *e;
  ait_ref_scalar s;
  AIT_TRY(bounded_elements(call, arg, &e, out_count));
  for (int32_t i = 0; i < *out_count; ++i) {
    AIT_TRY(scalar_at(call, arg, &e[i], "a list of numbers", &s));
    out[i] = s.f;
  }
  return AIT_OK;
}

ait_status ait_ref_bools(const ait_ref_call *call, uint32_t arg, bool out[AIT_MAX_RANK], int32_t *out_count) {
  const ait_arg *e;
  ait_ref_scalar s;
  AIT_TRY(bounded_elements(call, arg, &e, out_count));
  for (int32_t i = 0; i < *out_count; ++i) {
    AIT_TRY(scalar_at(call, arg, &e[i], "a list of bools", &s));
    out[i] = s.f != 0;
  }
  return AIT_OK;
}

const char *ait_ref_string(const ait_ref_call *call, uint32_t arg) {
  const ait_arg *a = arg_at(call, arg);
  if (a->kind == AIT_ARG_STRING) return a->as.string;
  const ait_ref_value *v = a->kind == AIT_ARG_VALUE ? value_at(call, a->as.value) : NULL;
  return v && v->type == AIT_TYPE_STRING ? v->as.s : NULL;
}

ait_dtype ait_ref_widen(const ait_ref_call *call, ait_dtype dtype) {
  if (!call->fp64) return dtype;
  if (ait_dtype_is_float(dtype)) return AIT_F64;
  return ait_dtype_is_complex(dtype) ? AIT_C128 : dtype;
}

ait_dtype ait_ref_dtype(const ait_ref_call *call, uint32_t arg, ait_dtype when_none) {
  const ait_arg *a = arg_at(call, arg);
  return a->kind == AIT_ARG_DTYPE ? ait_ref_widen(call, (ait_dtype)a->as.i) : when_none;
}

ait_status ait_ref_dim(const ait_ref_call *call, int64_t dim, int32_t rank, int32_t *out) {
  int64_t r = rank > 0 ? rank : 1;
  if (dim < -r || dim >= r)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dimension %lld is out of range for a tensor of rank %d", (long long)dim, rank);
  *out = (int32_t)(dim < 0 ? dim + r : dim);
  return AIT_OK;
}

/* ---- results ---------------------------------------------------------------------------------------------------------------------*/
ait_dtype ait_ref_result_dtype(const ait_ref_call *call, uint32_t k) {
  if (k >= call->node->result_count || call->node->results[k] >= call->region->value_count) return AIT_DTYPE_NONE;
  return ait_ref_widen(call, call->region->values[call->node->results[k]].dtype);
}

ait_status ait_ref_temp(const ait_ref_call *call, ait_dtype dtype, int32_t rank, const int64_t *shape, ait_tensor *out) {
  for (int32_t d = 0; d < rank; ++d)
    if (shape[d] < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "negative size %lld", (long long)shape[d]);
  ait_status status = ait_tensor_create(call->allocator, dtype, rank, shape, out);
  return status == AIT_OK ? AIT_OK : ait_error_context(status, "node '%s' (%s)", call->node->name ? call->node->name : "", call->node->op);
}

ait_status ait_ref_new(ait_ref_call *call, uint32_t k, ait_dtype dtype, int32_t rank, const int64_t *shape, ait_tensor *out) {
  ait_tensor t;
  AIT_TRY(ait_ref_temp(call, dtype, rank, shape, &t));
  ait_ref_set(call, k, t);
  *out = t;
  if (k >= call->node->result_count) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "the node has no result %u", k);
  return AIT_OK;
}

void ait_ref_value_release(ait_allocator a, ait_ref_value *v) {
  if (v->type == AIT_TYPE_TENSOR) ait_tensor_release(&v->as.tensor);
  if (v->type == AIT_TYPE_TENSOR_LIST) {
    for (uint32_t i = 0; i < v->as.list.count; ++i) ait_tensor_release(&v->as.list.items[i]);
    ait_free(a, v->as.list.items, v->as.list.count * sizeof *v->as.list.items);
  }
  *v = (ait_ref_value){0};
}

/* Where result k goes, emptied; NULL when the node does not produce it. */
static ait_ref_value *result_slot(ait_ref_call *call, uint32_t k) {
  if (k >= call->node->result_count) return NULL;
  ait_ref_value_release(call->allocator, &call->results[k]);
  return &call->results[k];
}

void ait_ref_set(ait_ref_call *call, uint32_t k, ait_tensor t) {
  ait_ref_value *v = result_slot(call, k);
  if (v) *v = (ait_ref_value){.type = AIT_TYPE_TENSOR, .as.tensor = t};
  else ait_tensor_release(&t);
}

void ait_ref_set_view(ait_ref_call *call, uint32_t k, const ait_tensor *base, const ait_tensor *view) {
  ait_tensor t = *view;
  t.storage = ait_storage_retain(base->storage);
  ait_ref_set(call, k, t);
}

void ait_ref_set_int(ait_ref_call *call, uint32_t k, int64_t i) {
  ait_ref_value *v = result_slot(call, k);
  if (v) *v = (ait_ref_value){.type = AIT_TYPE_INT, .as.i = i};
}

void ait_ref_set_float(ait_ref_call *call, uint32_t k, double f) {
  ait_ref_value *v = result_slot(call, k);
  if (v) *v = (ait_ref_value){.type = AIT_TYPE_FLOAT, .as.f = f};
}

void ait_ref_set_bool(ait_ref_call *call, uint32_t k, bool b) {
  ait_ref_value *v = result_slot(call, k);
  if (v) *v = (ait_ref_value){.type = AIT_TYPE_BOOL, .as.b = b};
}

void ait_ref_set_scalar(ait_ref_call *call, uint32_t k, const ait_ref_scalar *s) {
  if (s->kind == AIT_KIND_BOOL) ait_ref_set_bool(call, k, s->i != 0);
  else if (s->kind == AIT_KIND_FLOAT) ait_ref_set_float(call, k, s->f);
  else if (s->kind != AIT_KIND_COMPLEX) ait_ref_set_int(call, k, s->i);
  else {
    ait_ref_value *v = result_slot(call, k);
    if (v) *v = (ait_ref_value){.type = AIT_TYPE_FLOAT, .is_complex = true, .as.c = {s->f, s->imag}};
  }
}

void ait_ref_set_list(ait_ref_call *call, uint32_t k, ait_tensor *items, uint32_t count) {
  ait_ref_value list = {.type = AIT_TYPE_TENSOR_LIST, .as.list = {items, count}};
  ait_ref_value *v = result_slot(call, k);
  if (v) *v = list;
  else ait_ref_value_release(call->allocator, &list);
}
