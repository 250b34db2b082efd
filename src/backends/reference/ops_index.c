/* Indexing by tensors: gather and scatter kinds, advanced indexing, masks. */
#include "backends/reference/shapes.h"

#include <math.h>

/* ---- indices ----------------------------------------------------------------------------------------------------------------- */
/* A contiguous int64 copy of an index tensor, wrapped and checked against `size`; released by the caller. */
static ait_status checked_index(const ait_ref_call *call, const ait_tensor *t, int64_t size, ait_tensor *out) {
  if (!ait_dtype_is_integer(t->dtype) || t->dtype == AIT_BOOL)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "an index of dtype %s", ait_dtype_name(t->dtype));
  AIT_TRY(ait_ref_as_i64(call, t, out));
  int64_t *index = out->data, count = ait_tensor_count(out);
  for (int64_t i = 0; i < count; ++i) {
    ait_status status = ait_ref_wrap_index(call, index[i], size, &index[i]);
    if (status == AIT_OK) continue;
    ait_tensor_release(out);
    return status;
  }
  return AIT_OK;
}

/* Multi-indices of the elements that are not zero: *out is [count, rank] int64; released by the caller. */
static ait_status nonzero_of(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) {
  int64_t total = ait_tensor_count(t), found = 0, index[AIT_MAX_RANK] = {0};
  ait_tensor truth;
  AIT_TRY(ait_ref_temp(call, AIT_BOOL, t->rank, t->shape, &truth));
  ait_status status = ait_ref_move(call, &truth, t);
  const uint8_t *is = truth.data;
  for (int64_t i = 0; status == AIT_OK && i < total; ++i) found += is[i];
  if (status == AIT_OK) status = ait_ref_temp(call, AIT_I64, 2, (int64_t[2]){found, t->rank}, out);
  if (status == AIT_OK && total > 0) {
    int64_t *to = out->data, at = 0;
    do {
      if (!is[at++]) continue;
      for (int32_t d = 0; d < t->rank; ++d) *to++ = index[d];
    } while (ait_ref_next(t->rank, t->shape, index));
  }
  ait_tensor_release(&truth);
  return status;
}

static void copy_element(char *to, const char *from, size_t size) {
  switch (size) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    case 4: memcpy(to, from, 4); break;
    case 8: memcpy(to, from, 8); break;
    default: memcpy(to, from, size);
  }
}

/* ---- gather ------------------------------------------------------------------------------------------------------------------ */
static ait_status gather(ait_ref_call *call, const ait_tensor *t, int32_t dim, const ait_tensor *index) {
  ait_tensor at, out;
  AIT_TRY(checked_index(call, index, t->rank ? t->shape[dim] : 1, &at));
  ait_status status = ait_ref_new(call, 0, t->dtype, index->rank, index->shape, &out);
  if (status == AIT_OK && ait_tensor_count(&out) > 0) {
    int64_t position[AIT_MAX_RANK] = {0};
    const int64_t *where = at.data;
    char *to = out.data;
    size_t size = ait_dtype_size(t->dtype);
    do {
      int64_t offset = 0;
      for (int32_t d = 0; d < t->rank; ++d) offset += (d == dim ? *where : position[d]) * t->strides[d];
      copy_element(to, (char *)t->data + offset * (int64_t)size, size);
      to += size;
      ++where;
    } while (ait_ref_next(out.rank, out.shape, position));
  }
  ait_tensor_release(&at);
  return status;
}

static ait_status check_index_shape(const ait_ref_call *call, const ait_tensor *t, int32_t dim, const ait_tensor *index, const char *what) {
  bool fits = index->rank == t->rank || (t->rank == 0 && index->rank <= 1) || (index->rank == 0 && t->rank <= 1);
  for (int32_t d = 0; d < t->rank && d < index->rank && fits; ++d) fits = d == dim || index->shape[d] <= t->shape[d];
  if (fits || ait_tensor_count(index) == 0) return AIT_OK;
  char a[128], b[128];
  ait_tensor_shape_text(index, a, sizeof a);
  ait_tensor_shape_text(t, b, sizeof b);
  return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "index of shape %s does not fit %s of shape %s", a, what, b);
}

ait_status ait_ref_gather(ait_ref_call *call) {
  const ait_tensor *t, *index;
  int32_t dim;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(ait_ref_tensor(call, 2, &index));
  AIT_TRY(check_index_shape(call, t, dim, index, "the tensor"));
  ait_tensor as_index = *index;
  if (index->rank == 0 && t->rank == 1) { /* torch takes a lone index for a vector of one */
    ait_tensor one = ait_ref_unsqueezed(index, 0);
    AIT_TRY(gather(call, t, dim, &one));
    call->results[0].as.tensor.rank = 0;
    return AIT_OK;
  }
  return gather(call, t, dim, &as_index);
}

/* Both are broadcast against each other but along dim; without dim both are flattened. */
ait_status ait_ref_take_along_dim(ait_ref_call *call) {
  const ait_tensor *t, *index;
  int32_t dim = 0, rank;
  int64_t shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_tensor(call, 1, &index));
  if (ait_ref_is_none(call, 2)) {
    ait_tensor flat, flat_index;
    int64_t count = ait_tensor_count(t), index_count = ait_tensor_count(index);
    AIT_TRY(ait_ref_reshaped(call, t, 1, &count, &flat));
    ait_status status = ait_ref_reshaped(call, index, 1, &index_count, &flat_index);
    if (status == AIT_OK) {
      status = gather(call, &flat, 0, &flat_index);
      ait_tensor_release(&flat_index);
    }
    ait_tensor_release(&flat);
    return status;
  }
  AIT_TRY(ait_ref_dim_arg(call, 2, 0, t->rank, &dim));
  if (index->rank != t->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "ranks %d and %d", t->rank, index->rank);
  ait_tensor a = *t, b = *index;
  a.shape[dim] = b.shape[dim] = 1;
  AIT_TRY(ait_ref_broadcast(call, (const ait_tensor *const[2]){&a, &b}, 2, &rank, shape));
  shape[dim] = t->shape[dim];
  a = ait_ref_expand(t, rank, shape);
  shape[dim] = index->shape[dim];
  b = ait_ref_expand(index, rank, shape);
  return gather(call, &a, dim, &b);
}

ait_status ait_ref_index_select(ait_ref_call *call) {
  const ait_tensor *t, *index;
  ait_tensor at, out;
  int32_t dim;
  int64_t shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(ait_ref_tensor(call, 2, &index));
  if (index->rank > 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "an index of rank %d", index->rank);
  if (t->rank == 0) {
    AIT_TRY(checked_index(call, index, 1, &at));
    ait_tensor_release(&at);
    return ait_ref_copy_result(call, 0, t->dtype, t);
  }
  AIT_TRY(checked_index(call, index, t->shape[dim], &at));
  memcpy(shape, t->shape, sizeof t->shape);
  shape[dim] = ait_tensor_count(index);
  ait_status status = ait_ref_new(call, 0, t->dtype, t->rank, shape, &out);
  for (int64_t i = 0; i < shape[dim] && status == AIT_OK; ++i) {
    ait_tensor to = ait_ref_selected(&out, dim, i), from = ait_ref_selected(t, dim, ((int64_t *)at.data)[i]);
    status = ait_ref_move(call, &to, &from);
  }
  ait_tensor_release(&at);
  return status;
}

ait_status ait_ref_take(ait_ref_call *call) {
  const ait_tensor *t, *index;
  ait_tensor flat;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_tensor(call, 1, &index));
  int64_t count = ait_tensor_count(t), index_count = ait_tensor_count(index);
  ait_tensor flat_index;
  AIT_TRY(ait_ref_reshaped(call, t, 1, &count, &flat));
  ait_status status = ait_ref_reshaped(call, index, 1, &index_count, &flat_index);
  if (status == AIT_OK) {
    status = gather(call, &flat, 0, &flat_index);
    ait_tensor_release(&flat_index);
  }
  ait_tensor_release(&flat);
  if (status != AIT_OK) return status;
  ait_tensor *out = &call->results[0].as.tensor;
  out->rank = index->rank;
  memcpy(out->shape, index->shape, sizeof index->shape);
  ait_tensor_set_contiguous(out);
  return AIT_OK;
}

/* ---- scatter ----------------------------------------------------------------------------------------------------------------- */
typedef enum scatter_mode { SCATTER_SET, SCATTER_ADD, SCATTER_MULTIPLY, SCATTER_MEAN, SCATTER_MAX, SCATTER_MIN } scatter_mode;

static ait_status parse_mode(const ait_ref_call *call, const char *text, scatter_mode *out) {
  static const struct {
    const char *name;
    scatter_mode mode;
  } modes[] = {{"none", SCATTER_SET},      {"add", SCATTER_ADD},   {"multiply", SCATTER_MULTIPLY}, {"sum", SCATTER_ADD},
               {"prod", SCATTER_MULTIPLY}, {"mean", SCATTER_MEAN}, {"amax", SCATTER_MAX},          {"amin", SCATTER_MIN},
               {"max", SCATTER_MAX},       {"min", SCATTER_MIN}};
  *out = SCATTER_SET;
  if (!text) return AIT_OK;
  for (size_t i = 0; i < AIT_COUNT(modes); ++i)
    if (strcmp(text, modes[i].name) == 0) {
      *out = modes[i].mode;
      return AIT_OK;
    }
  return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "unknown reduction '%s'", text);
}

static double combined_f(scatter_mode mode, double a, double b) {
  switch (mode) {
    case SCATTER_MULTIPLY: return a * b;
    case SCATTER_MAX: return isnan(a) || a > b ? a : b;
    case SCATTER_MIN: return isnan(a) || a < b ? a : b;
    default: return a + b;
  }
}
static int64_t combined_i(scatter_mode mode, int64_t a, int64_t b) {
  switch (mode) {
    case SCATTER_MULTIPLY: return (int64_t)((uint64_t)a * (uint64_t)b);
    case SCATTER_MAX: return a > b ? a : b;
    case SCATTER_MIN: return a < b ? a : b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
  }
}

static void combine_element(scatter_mode mode, char *to, const char *from, ait_dtype dtype) {
  double a[2], b[2];
  switch (ait_ref_domain_of(dtype)) {
    case AIT_REF_F: ait_element_set_f64(to, dtype, combined_f(mode, ait_element_f64(to, dtype), ait_element_f64(from, dtype))); break;
    case AIT_REF_I: ait_element_set_i64(to, dtype, combined_i(mode, ait_element_i64(to, dtype), ait_element_i64(from, dtype))); break;
    case AIT_REF_C: {
      ait_element_c128(to, dtype, a);
      ait_element_c128(from, dtype, b);
      double complex x = __builtin_complex(a[0], a[1]), y = __builtin_complex(b[0], b[1]);
      x = mode == SCATTER_MULTIPLY ? x * y : x + y;
      ait_element_set_c128(to, dtype, (double[2]){creal(x), cimag(x)});
      break;
    }
  }
}

/* What leaves the other operand of the combination as it is. */
static void neutral_element(scatter_mode mode, char *to, ait_dtype dtype) {
  bool is_float = ait_dtype_is_float(dtype);
  int64_t bits = 8 * (int64_t)ait_dtype_size(dtype);
  bool is_signed = ait_dtype_kind_of(dtype) == AIT_KIND_INT;
  int64_t most = dtype == AIT_BOOL ? 1 : bits == 64 && !is_signed ? -1 : (int64_t)((UINT64_C(1) << (bits - is_signed)) - 1);
  if (bits == 64 && is_signed) most = INT64_MAX;
  switch (mode) {
    case SCATTER_MULTIPLY: ait_element_set_i64(to, dtype, 1); break;
    case SCATTER_MAX:
      if (is_float) ait_element_set_f64(to, dtype, -INFINITY);
      else ait_element_set_i64(to, dtype, is_signed ? -most - 1 : 0);
      break;
    case SCATTER_MIN:
      if (is_float) ait_element_set_f64(to, dtype, INFINITY);
      else ait_element_set_i64(to, dtype, most);
      break;
    default: ait_element_set_i64(to, dtype, 0);
  }
}

typedef struct scatter_job {
  const ait_tensor *out, *index, *src; /* index: contiguous int64; src: its shape covers index's; both views may have stride 0 */
  int32_t dim;
  scatter_mode mode;
  bool include_self;
} scatter_job;

static char *target(const scatter_job *job, const int64_t *position, int64_t where) {
  int64_t offset = 0;
  for (int32_t d = 0; d < job->out->rank; ++d) offset += (d == job->dim ? where : position[d]) * job->out->strides[d];
  return (char *)job->out->data + offset * (int64_t)ait_dtype_size(job->out->dtype);
}

static void scatter_elements(const scatter_job *job, const ait_tensor *counts) {
  int64_t position[AIT_MAX_RANK] = {0};
  size_t size = ait_dtype_size(job->out->dtype);
  if (ait_tensor_count(job->index) == 0) return;
  if (job->mode != SCATTER_SET && !job->include_self) {
    do neutral_element(job->mode, target(job, position, *(const int64_t *)(const void *)ait_ref_at(job->index, position)), job->out->dtype);
    while (ait_ref_next(job->index->rank, job->index->shape, position));
    memset(position, 0, sizeof position);
  }
  do {
    char *to = target(job, position, *(const int64_t *)(const void *)ait_ref_at(job->index, position));
    const char *from = ait_ref_at(job->src, position);
    if (job->mode == SCATTER_SET) copy_element(to, from, size);
    else combine_element(job->mode, to, from, job->out->dtype);
    if (counts) ++((int64_t *)counts->data)[(to - (char *)job->out->data) / (int64_t)size];
  } while (ait_ref_next(job->index->rank, job->index->shape, position));
}

/* Means of integers round down. */
static void divide_by_counts(const ait_tensor *out, const ait_tensor *counts) {
  int64_t total = ait_tensor_count(out);
  size_t size = ait_dtype_size(out->dtype);
  for (int64_t i = 0; i < total; ++i) {
    char *at = (char *)out->data + (size_t)i * size;
    int64_t n = ((const int64_t *)counts->data)[i];
    if (n <= 1) continue;
    if (ait_dtype_is_float(out->dtype)) ait_element_set_f64(at, out->dtype, ait_element_f64(at, out->dtype) / (double)n);
    else {
      int64_t v = ait_element_i64(at, out->dtype);
      ait_element_set_i64(at, out->dtype, v / n - (v % n < 0));
    }
  }
}

/* out is contiguous. src may have another dtype. */
static ait_status scatter(const ait_ref_call *call, const ait_tensor *out, int32_t dim, const ait_tensor *index, const ait_tensor *src,
                          scatter_mode mode, bool include_self) {
  ait_tensor at = {0}, same = {0}, counts = {0}, scalar_out = *out, scalar_src = *src;
  ait_status status = AIT_OK;
  scatter_job job = {.dim = dim, .mode = mode, .include_self = include_self};
  AIT_GOTO(checked_index(call, index, out->rank ? out->shape[dim] : 1, &at));
  if (src->dtype != out->dtype) {
    AIT_GOTO(ait_ref_temp(call, out->dtype, src->rank, src->shape, &same));
    AIT_GOTO(ait_ref_move(call, &same, src));
    scalar_src = same;
  }
  if (mode == SCATTER_MEAN) {
    ait_ref_scalar start = {.kind = AIT_KIND_INT, .i = include_self, .f = include_self};
    AIT_GOTO(ait_ref_temp(call, AIT_I64, out->rank, out->shape, &counts));
    AIT_GOTO(ait_ref_set_all(call, &counts, &start));
  }
  if (scalar_out.rank == 0) scalar_out = ait_ref_unsqueezed(out, 0);
  if (at.rank == 0) at = ait_ref_unsqueezed(&at, 0);
  if (scalar_src.rank == 0) scalar_src = ait_ref_unsqueezed(&scalar_src, 0);
  job.out = &scalar_out;
  job.index = &at;
  job.src = &scalar_src;
  scatter_elements(&job, mode == SCATTER_MEAN ? &counts : NULL);
  if (mode == SCATTER_MEAN) divide_by_counts(out, &counts);
cleanup:
  ait_tensor_release(&at);
  ait_tensor_release(&same);
  ait_tensor_release(&counts);
  return status;
}

/* Result 0 becomes a contiguous copy of argument 0. */
static ait_status copy_of_self(ait_ref_call *call, const ait_tensor **out_self, ait_tensor *out) {
  AIT_TRY(ait_ref_tensor(call, 0, out_self));
  AIT_TRY(ait_ref_copy_result(call, 0, (*out_self)->dtype, *out_self));
  *out = call->results[0].as.tensor;
  return AIT_OK;
}

/* A number as a tensor of one element, of the given dtype, in `room`. */
static ait_status number_as_tensor(const ait_ref_call *call, uint32_t arg, ait_dtype dtype, double room[2], ait_tensor *out) {
  ait_ref_scalar value;
  AIT_TRY(ait_ref_scalar_arg(call, arg, &value));
  *out = (ait_tensor){.data = room, .dtype = dtype};
  return ait_ref_set_all(call, out, &value);
}

/* (self, dim, index, src or number, reduce?) */
static ait_status scatter_call(ait_ref_call *call, scatter_mode mode, bool include_self) {
  const ait_tensor *t, *index;
  ait_tensor out, src;
  double room[2];
  int32_t dim;
  AIT_TRY(copy_of_self(call, &t, &out));
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(ait_ref_tensor(call, 2, &index));
  AIT_TRY(check_index_shape(call, t, dim, index, "the tensor"));
  const ait_tensor *given = ait_ref_tensor_or_null(call, 3);
  if (given) {
    AIT_TRY(check_index_shape(call, given, -1, index, "the source"));
    src = *given;
  } else {
    AIT_TRY(number_as_tensor(call, 3, t->dtype, room, &src));
    src = ait_ref_expand(&src, index->rank, index->shape);
  }
  return scatter(call, &out, dim, index, &src, mode, include_self);
}
/* scatter.src, .value, .reduce, .value_reduce and core's scatter: the reduction, if any, is argument 4. */
ait_status ait_ref_scatter(ait_ref_call *call) {
  scatter_mode mode;
  AIT_TRY(parse_mode(call, ait_ref_string(call, 4), &mode));
  return scatter_call(call, mode, true);
}
ait_status ait_ref_scatter_add(ait_ref_call *call) { return scatter_call(call, SCATTER_ADD, true); }
ait_status ait_ref_scatter_reduce(ait_ref_call *call) {
  scatter_mode mode;
  bool include_self;
  AIT_TRY(parse_mode(call, ait_ref_string(call, 4), &mode));
  AIT_TRY(ait_ref_bool_or(call, 5, true, &include_self));
  return scatter_call(call, mode, include_self);
}

/* index_add and its like: (self, dim, index, source): index is a vector along dim; it is spread over the source's other dims. */
static ait_status scatter_slices(ait_ref_call *call, const ait_tensor *source, scatter_mode mode, bool include_self) {
  const ait_tensor *t, *index;
  ait_tensor out, spread = {0};
  int32_t dim;
  AIT_TRY(copy_of_self(call, &t, &out));
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(ait_ref_tensor(call, 2, &index));
  if (index->rank > 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "an index of rank %d", index->rank);
  int64_t count = ait_tensor_count(index);
  spread = *index;
  spread.rank = t->rank;
  int64_t step = index->rank ? index->strides[0] : 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    spread.shape[d] = d == dim ? count : t->shape[d];
    spread.strides[d] = d == dim ? step : 0;
  }
  ait_tensor wide;
  if (source->rank == t->rank - 1 && count == 1) { /* one slice without its dim */
    wide = ait_ref_unsqueezed(source, dim);
    AIT_TRY(ait_ref_expanded(call, &wide, t->rank, spread.shape, &wide));
  } else AIT_TRY(ait_ref_expanded(call, source, t->rank, spread.shape, &wide));
  return scatter(call, &out, dim, &spread, &wide, mode, include_self);
}

ait_status ait_ref_index_copy(ait_ref_call *call) {
  const ait_tensor *source;
  AIT_TRY(ait_ref_tensor(call, 3, &source));
  return scatter_slices(call, source, SCATTER_SET, true);
}
ait_status ait_ref_index_add(ait_ref_call *call) {
  const ait_tensor *source;
  ait_ref_scalar alpha = {.f = 1};
  ait_tensor scaled;
  AIT_TRY(ait_ref_tensor(call, 3, &source));
  if (!ait_ref_is_none(call, 4)) AIT_TRY(ait_ref_scalar_arg(call, 4, &alpha));
  if (alpha.f == 1 && alpha.imag == 0) return scatter_slices(call, source, SCATTER_ADD, true);
  ait_dtype dtype = ait_dtype_is_complex(source->dtype) ? AIT_C128 : ait_dtype_is_float(source->dtype) ? AIT_F64 : AIT_I64;
  AIT_TRY(ait_ref_temp(call, dtype, source->rank, source->shape, &scaled));
  ait_status status = ait_ref_move(call, &scaled, source);
  int64_t count = ait_tensor_count(&scaled);
  for (int64_t i = 0; i < count; ++i) {
    if (dtype == AIT_F64) ((double *)scaled.data)[i] *= alpha.f;
    else if (dtype == AIT_I64) ((int64_t *)scaled.data)[i] *= alpha.i;
    else ((double complex *)scaled.data)[i] *= __builtin_complex(alpha.f, alpha.imag);
  }
  if (status == AIT_OK) status = scatter_slices(call, &scaled, SCATTER_ADD, true);
  ait_tensor_release(&scaled);
  return status;
}
ait_status ait_ref_index_fill(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor value;
  double room[2];
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(number_as_tensor(call, 3, t->dtype, room, &value));
  return scatter_slices(call, &value, SCATTER_SET, true);
}
ait_status ait_ref_index_reduce(ait_ref_call *call) {
  const ait_tensor *source;
  scatter_mode mode;
  bool include_self;
  AIT_TRY(ait_ref_tensor(call, 3, &source));
  AIT_TRY(parse_mode(call, ait_ref_string(call, 4), &mode));
  AIT_TRY(ait_ref_bool_or(call, 5, true, &include_self));
  return scatter_slices(call, source, mode, include_self);
}

ait_status ait_ref_put(ait_ref_call *call) {
  const ait_tensor *t, *index, *source;
  ait_tensor out, flat_index = {0}, flat_source = {0};
  bool accumulate;
  AIT_TRY(copy_of_self(call, &t, &out));
  AIT_TRY(ait_ref_tensor(call, 1, &index));
  AIT_TRY(ait_ref_tensor(call, 2, &source));
  AIT_TRY(ait_ref_bool_or(call, 3, false, &accumulate));
  int64_t count = ait_tensor_count(index), total = ait_tensor_count(&out), source_count = ait_tensor_count(source);
  if (count != source_count)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld indices for %lld values", (long long)count, (long long)source_count);
  ait_tensor flat = ait_tensor_borrow(out.data, out.dtype, 1, &total);
  ait_status status = ait_ref_reshaped(call, index, 1, &count, &flat_index);
  if (status == AIT_OK) status = ait_ref_reshaped(call, source, 1, &count, &flat_source);
  if (status == AIT_OK) status = scatter(call, &flat, 0, &flat_index, &flat_source, accumulate ? SCATTER_ADD : SCATTER_SET, true);
  ait_tensor_release(&flat_index);
  ait_tensor_release(&flat_source);
  return status;
}

/* ---- advanced indexing ------------------------------------------------------------------------------------------------------- */
/* Index tensors, one for each indexed dim, broadcast to one shape: masks have become the positions of their true elements. */
typedef struct index_plan {
  int32_t count;
  int32_t dims[AIT_MAX_RANK];
  ait_tensor index[AIT_MAX_RANK]; /* int64, wrapped, in range; holds a reference */
  int32_t rank;                   /* of the broadcast shape */
  int64_t shape[AIT_MAX_RANK];
  bool adjacent; /* the indexed dims stand side by side: their result dims take that place, else they come first */
} index_plan;

static void plan_release(index_plan *plan) {
  for (int32_t i = 0; i < plan->count; ++i) ait_tensor_release(&plan->index[i]);
}

static ait_status plan_add(const ait_ref_call *call, index_plan *plan, int32_t dim, ait_tensor index) {
  if (plan->count == AIT_MAX_RANK) {
    ait_tensor_release(&index);
    return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d indices", AIT_MAX_RANK);
  }
  plan->dims[plan->count] = dim;
  plan->index[plan->count++] = index;
  return AIT_OK;
}

/* A mask over dims dim.. of t: one index a dim. */
static ait_status plan_add_mask(const ait_ref_call *call, index_plan *plan, const ait_tensor *t, const ait_tensor *mask, int32_t dim) {
  ait_tensor positions;
  for (int32_t d = 0; d < mask->rank; ++d)
    if (dim + d >= t->rank || t->shape[dim + d] != mask->shape[d])
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the shape of a mask does not match the tensor at dimension %d", dim + d);
  AIT_TRY(nonzero_of(call, mask, &positions));
  ait_status status = AIT_OK;
  for (int32_t d = 0; d < mask->rank && status == AIT_OK; ++d) {
    ait_tensor column = ait_ref_selected(&positions, 1, d);
    column.storage = ait_storage_retain(positions.storage);
    status = plan_add(call, plan, dim + d, column);
  }
  ait_tensor_release(&positions);
  return status;
}

static ait_status plan_indices(const ait_ref_call *call, const ait_tensor *t, const ait_tensor *indices, uint32_t count, index_plan *plan) {
  int32_t dim = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_tensor *index = &indices[i];
    if (index->dtype == AIT_DTYPE_NONE) {
      ++dim;
      continue;
    }
    if (index->dtype == AIT_BOOL || index->dtype == AIT_U8) {
      AIT_TRY(plan_add_mask(call, plan, t, index, dim));
      dim += index->rank;
      continue;
    }
    ait_tensor checked;
    if (dim >= t->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "too many indices for a tensor of rank %d", t->rank);
    AIT_TRY(checked_index(call, index, t->shape[dim], &checked));
    AIT_TRY(plan_add(call, plan, dim++, checked));
  }
  if (dim > t->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "too many indices for a tensor of rank %d", t->rank);
  const ait_tensor *all[AIT_MAX_RANK];
  for (int32_t i = 0; i < plan->count; ++i) all[i] = &plan->index[i];
  AIT_TRY(ait_ref_broadcast(call, all, (uint32_t)plan->count, &plan->rank, plan->shape));
  plan->adjacent = true;
  for (int32_t i = 0; i < plan->count; ++i) {
    ait_storage *storage = plan->index[i].storage;
    plan->index[i] = ait_ref_expand(&plan->index[i], plan->rank, plan->shape);
    plan->index[i].storage = storage;
    plan->adjacent &= i == 0 || plan->dims[i] == plan->dims[i - 1] + 1;
  }
  if (plan->rank + t->rank - plan->count > AIT_MAX_RANK)
    return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  return AIT_OK;
}

static ait_status plan_create(const ait_ref_call *call, const ait_tensor *t, uint32_t arg, index_plan *plan) {
  ait_tensor *indices;
  uint32_t count;
  *plan = (index_plan){0};
  AIT_TRY(ait_ref_tensors(call, arg, &indices, &count));
  ait_status status = plan_indices(call, t, indices, count, plan);
  ait_free(call->allocator, indices, count * sizeof *indices);
  if (status != AIT_OK) plan_release(plan);
  return status;
}

static bool is_indexed(const index_plan *plan, int32_t dim) {
  for (int32_t i = 0; i < plan->count; ++i)
    if (plan->dims[i] == dim) return true;
  return false;
}

/* The shape of t[indices], and where in it the broadcast dims begin. */
static int32_t indexed_shape(const index_plan *plan, const ait_tensor *t, int64_t shape[AIT_MAX_RANK], int32_t *out_rank) {
  int32_t lead = plan->adjacent && plan->count ? plan->dims[0] : 0, rank = 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    if (rank == lead)
      for (int32_t b = 0; b < plan->rank; ++b) shape[rank++] = plan->shape[b];
    if (!is_indexed(plan, d)) shape[rank++] = t->shape[d];
  }
  if (rank == lead)
    for (int32_t b = 0; b < plan->rank; ++b) shape[rank++] = plan->shape[b];
  *out_rank = rank;
  return lead;
}

/* Splits a tensor of the result's shape into its broadcast dims (strides only) and the rest. */
static void split_result(const index_plan *plan, const ait_tensor *result, int32_t lead, ait_tensor *broadcast, ait_tensor *rest) {
  *broadcast = *rest = (ait_tensor){.data = result->data, .dtype = result->dtype};
  for (int32_t d = 0; d < result->rank; ++d) {
    ait_tensor *part = d >= lead && d < lead + plan->rank ? broadcast : rest;
    part->shape[part->rank] = result->shape[d];
    part->strides[part->rank++] = result->strides[d];
  }
}

typedef ait_status (*index_visit)(const ait_ref_call *call, const ait_tensor *in_tensor, const ait_tensor *in_result, bool accumulate);

/* Calls visit for every combination of index values with the part of t and the part of the result that belong together. */
static ait_status visit_indexed(const ait_ref_call *call, const index_plan *plan, const ait_tensor *t, const ait_tensor *result,
                                int32_t lead, index_visit visit, bool accumulate) {
  ait_tensor broadcast, there, here = {.dtype = t->dtype};
  split_result(plan, result, lead, &broadcast, &there);
  for (int32_t d = 0; d < t->rank; ++d) {
    if (is_indexed(plan, d)) continue;
    here.shape[here.rank] = t->shape[d];
    here.strides[here.rank++] = t->strides[d];
  }
  if (ait_tensor_count(result) == 0) return AIT_OK;
  int64_t position[AIT_MAX_RANK] = {0};
  int64_t t_size = (int64_t)ait_dtype_size(t->dtype);
  do {
    int64_t offset = 0;
    for (int32_t i = 0; i < plan->count; ++i)
      offset += *(const int64_t *)(const void *)ait_ref_at(&plan->index[i], position) * t->strides[plan->dims[i]];
    here.data = (char *)t->data + offset * t_size;
    there.data = ait_ref_at(&broadcast, position);
    AIT_TRY(visit(call, &here, &there, accumulate));
  } while (ait_ref_next(plan->rank, plan->shape, position));
  return AIT_OK;
}

static ait_status read_part(const ait_ref_call *call, const ait_tensor *in_tensor, const ait_tensor *in_result, bool accumulate) {
  AIT_UNUSED(accumulate);
  if (in_tensor->rank > 0) return ait_ref_move(call, in_result, in_tensor);
  copy_element(in_result->data, in_tensor->data, ait_dtype_size(in_tensor->dtype));
  return AIT_OK;
}

static ait_status write_part(const ait_ref_call *call, const ait_tensor *in_tensor, const ait_tensor *in_result, bool accumulate) {
  if (!accumulate && in_tensor->rank > 0) return ait_ref_move(call, in_tensor, in_result);
  int64_t position[AIT_MAX_RANK] = {0};
  do {
    char *to = ait_ref_at(in_tensor, position);
    const char *from = ait_ref_at(in_result, position);
    if (accumulate) combine_element(SCATTER_ADD, to, from, in_tensor->dtype);
    else copy_element(to, from, ait_dtype_size(in_tensor->dtype));
  } while (ait_ref_next(in_tensor->rank, in_tensor->shape, position));
  return AIT_OK;
}

static ait_status index_into(ait_ref_call *call, const ait_tensor *t, const index_plan *plan) {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank, lead = indexed_shape(plan, t, shape, &rank);
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, t->dtype, rank, shape, &out));
  return visit_indexed(call, plan, t, &out, lead, read_part, false);
}

ait_status ait_ref_index(ait_ref_call *call) {
  const ait_tensor *t;
  index_plan plan;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(plan_create(call, t, 1, &plan));
  ait_status status = index_into(call, t, &plan);
  plan_release(&plan);
  return status;
}

static ait_status put_into(const ait_ref_call *call, const ait_tensor *out, const index_plan *plan, const ait_tensor *values,
                           bool accumulate) {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank, lead = indexed_shape(plan, out, shape, &rank);
  ait_tensor wide, same = {0}, trimmed = *values;
  while (trimmed.rank > rank && trimmed.shape[0] == 1) trimmed = ait_ref_selected(&trimmed, 0, 0);
  AIT_TRY(ait_ref_expanded(call, &trimmed, rank, shape, &wide));
  if (wide.dtype != out->dtype) {
    AIT_TRY(ait_ref_temp(call, out->dtype, rank, shape, &same));
    ait_status status = ait_ref_move(call, &same, &wide);
    if (status != AIT_OK) {
      ait_tensor_release(&same);
      return status;
    }
    wide = same;
  }
  ait_status status = visit_indexed(call, plan, out, &wide, lead, write_part, accumulate);
  ait_tensor_release(&same);
  return status;
}

ait_status ait_ref_index_put(ait_ref_call *call) {
  const ait_tensor *t, *values;
  ait_tensor out;
  index_plan plan;
  bool accumulate;
  AIT_TRY(ait_ref_tensor(call, 2, &values));
  AIT_TRY(ait_ref_bool_or(call, 3, false, &accumulate));
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_new_like(call, 0, t->dtype, t, &out));
  AIT_TRY(ait_ref_move(call, &out, t));
  AIT_TRY(plan_create(call, &out, 1, &plan));
  ait_status status = put_into(call, &out, &plan, values, accumulate);
  plan_release(&plan);
  return status;
}

/* Indices are clamped to be safe where the mask is false; the result there is `fill`. (self, mask, indices, fill) */
static void clamp_indices(const index_plan *plan, const ait_tensor *t, ait_tensor *indices) {
  AIT_UNUSED(plan);
  for (int32_t d = 0; d < t->rank; ++d) {
    int64_t *v = indices[d].data, count = ait_tensor_count(&indices[d]), size = t->shape[d];
    for (int64_t i = 0; v && i < count; ++i) v[i] = v[i] >= size ? (size ? size - 1 : 0) : v[i] < 0 ? 0 : v[i];
  }
}
/* The plan of indices that may be out of range where a mask is false. */
static ait_status plan_clamped(const ait_ref_call *call, const ait_tensor *t, uint32_t arg, index_plan *plan) {
  ait_tensor *indices, safe[AIT_MAX_RANK] = {{0}};
  uint32_t count;
  *plan = (index_plan){0};
  AIT_TRY(ait_ref_tensors(call, arg, &indices, &count));
  ait_status status = count > (uint32_t)t->rank ? ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "too many indices") : AIT_OK;
  for (uint32_t i = 0; i < count && status == AIT_OK; ++i)
    if (indices[i].dtype != AIT_DTYPE_NONE) status = ait_ref_as_i64(call, &indices[i], &safe[i]);
  if (status == AIT_OK) {
    clamp_indices(plan, t, safe);
    status = plan_indices(call, t, safe, count, plan);
    if (status != AIT_OK) plan_release(plan);
  }
  for (int32_t i = 0; i < AIT_MAX_RANK; ++i) ait_tensor_release(&safe[i]);
  ait_free(call->allocator, indices, count * sizeof *indices);
  return status;
}

ait_status ait_ref__unsafe_masked_index(ait_ref_call *call) {
  const ait_tensor *t, *mask;
  ait_ref_scalar fill;
  index_plan plan;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_tensor(call, 1, &mask));
  AIT_TRY(ait_ref_scalar_arg(call, 3, &fill));
  AIT_TRY(plan_clamped(call, t, 2, &plan));
  ait_status status = index_into(call, t, &plan);
  plan_release(&plan);
  AIT_TRY(status);
  ait_tensor *out = &call->results[0].as.tensor, wide;
  double room[2];
  AIT_TRY(ait_ref_expanded(call, mask, out->rank, out->shape, &wide));
  ait_tensor value = {.data = room, .dtype = out->dtype};
  AIT_TRY(ait_ref_set_all(call, &value, &fill));
  int64_t position[AIT_MAX_RANK] = {0};
  if (ait_tensor_count(out) == 0) return AIT_OK;
  do {
    if (!ait_element_i64(ait_ref_at(&wide, position), wide.dtype))
      copy_element(ait_ref_at(out, position), value.data, ait_dtype_size(out->dtype));
  } while (ait_ref_next(out->rank, out->shape, position));
  return AIT_OK;
}

/* Adds values where the mask is true. (self, mask, indices, values) */
ait_status ait_ref__unsafe_masked_index_put_accumulate(ait_ref_call *call) {
  const ait_tensor *t, *mask, *values;
  ait_tensor out, masked, wide;
  index_plan plan;
  AIT_TRY(copy_of_self(call, &t, &out));
  AIT_TRY(ait_ref_tensor(call, 1, &mask));
  AIT_TRY(ait_ref_tensor(call, 3, &values));
  AIT_TRY(ait_ref_temp(call, t->dtype, values->rank, values->shape, &masked));
  ait_status status = ait_ref_move(call, &masked, values);
  if (status == AIT_OK) status = ait_ref_expanded(call, mask, masked.rank, masked.shape, &wide);
  int64_t position[AIT_MAX_RANK] = {0};
  if (status == AIT_OK && ait_tensor_count(&masked) > 0) {
    do {
      if (!ait_element_i64(ait_ref_at(&wide, position), wide.dtype)) memset(ait_ref_at(&masked, position), 0, ait_dtype_size(masked.dtype));
    } while (ait_ref_next(masked.rank, masked.shape, position));
  }
  if (status == AIT_OK) status = plan_clamped(call, &out, 2, &plan);
  if (status == AIT_OK) {
    status = put_into(call, &out, &plan, &masked, true);
    plan_release(&plan);
  }
  ait_tensor_release(&masked);
  return status;
}

/* ---- masks ------------------------------------------------------------------------------------------------------------------- */
static ait_status broadcast_pair(const ait_ref_call *call, ait_tensor *a, ait_tensor *b) {
  int32_t rank;
  int64_t shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_broadcast(call, (const ait_tensor *const[2]){a, b}, 2, &rank, shape));
  *a = ait_ref_expand(a, rank, shape);
  *b = ait_ref_expand(b, rank, shape);
  return AIT_OK;
}

ait_status ait_ref_masked_select(ait_ref_call *call) {
  const ait_tensor *given, *mask;
  ait_tensor positions, out;
  AIT_TRY(ait_ref_tensor(call, 0, &given));
  AIT_TRY(ait_ref_tensor(call, 1, &mask));
  ait_tensor t = *given, m = *mask;
  AIT_TRY(broadcast_pair(call, &t, &m));
  AIT_TRY(nonzero_of(call, &m, &positions));
  int64_t count = positions.shape[0];
  ait_status status = ait_ref_new(call, 0, t.dtype, 1, &count, &out);
  size_t size = ait_dtype_size(t.dtype);
  for (int64_t i = 0; i < count && status == AIT_OK; ++i)
    copy_element((char *)out.data + (size_t)i * size, ait_ref_at(&t, (int64_t *)positions.data + i * t.rank), size);
  ait_tensor_release(&positions);
  return status;
}

ait_status ait_ref_masked_scatter(ait_ref_call *call) {
  const ait_tensor *given, *mask, *source;
  ait_tensor out, positions, same;
  AIT_TRY(ait_ref_tensor(call, 0, &given));
  AIT_TRY(ait_ref_tensor(call, 1, &mask));
  AIT_TRY(ait_ref_tensor(call, 2, &source));
  ait_tensor t = *given, m = *mask;
  AIT_TRY(broadcast_pair(call, &t, &m));
  AIT_TRY(ait_ref_copy_result(call, 0, t.dtype, &t));
  out = call->results[0].as.tensor;
  AIT_TRY(nonzero_of(call, &m, &positions));
  ait_status status = ait_ref_temp(call, t.dtype, source->rank, source->shape, &same);
  if (status == AIT_OK) {
    status = ait_ref_move(call, &same, source);
    size_t size = ait_dtype_size(t.dtype);
    int64_t count = positions.shape[0];
    if (status == AIT_OK && count > ait_tensor_count(&same))
      status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the mask takes %lld elements, the source has %lld", (long long)count,
                             (long long)ait_tensor_count(&same));
    for (int64_t i = 0; i < count && status == AIT_OK; ++i)
      copy_element(ait_ref_at(&out, (int64_t *)positions.data + i * t.rank), (char *)same.data + (size_t)i * size, size);
    ait_tensor_release(&same);
  }
  ait_tensor_release(&positions);
  return status;
}

ait_status ait_ref_nonzero(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor positions;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(nonzero_of(call, t, &positions));
  ait_ref_set(call, 0, positions);
  return AIT_OK;
}

/* One vector of positions a dim. */
ait_status ait_ref_where_nonzero(ait_ref_call *call) {
  const ait_tensor *given;
  ait_tensor positions;
  AIT_TRY(ait_ref_tensor(call, 0, &given));
  ait_tensor t = given->rank ? *given : ait_ref_unsqueezed(given, 0);
  AIT_TRY(nonzero_of(call, &t, &positions));
  ait_tensor *items = ait_alloc_zero(call->allocator, (size_t)t.rank * sizeof *items, _Alignof(ait_tensor));
  for (int32_t d = 0; items && d < t.rank; ++d) {
    items[d] = ait_ref_selected(&positions, 1, d);
    items[d].storage = ait_storage_retain(positions.storage);
  }
  ait_tensor_release(&positions);
  if (!items) return AIT_OOM();
  ait_ref_set_list(call, 0, items, (uint32_t)t.rank);
  return AIT_OK;
}

ait_status ait_ref_nonzero_static(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor positions, out;
  int64_t size, fill;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &size));
  AIT_TRY(ait_ref_int_or(call, 2, -1, &fill));
  AIT_TRY(nonzero_of(call, t, &positions));
  ait_status status = ait_ref_new(call, 0, AIT_I64, 2, (int64_t[2]){size, t->rank}, &out);
  if (status == AIT_OK) {
    int64_t *to = out.data, total = size * t->rank, have = positions.shape[0] * t->rank;
    for (int64_t i = 0; i < total; ++i) to[i] = i < have ? ((int64_t *)positions.data)[i] : fill;
  }
  ait_tensor_release(&positions);
  return status;
}

ait_status ait_ref_one_hot(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor classes, out;
  int64_t count, shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 1, -1, &count));
  if (t->rank == AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  AIT_TRY(ait_ref_as_i64(call, t, &classes));
  const int64_t *value = classes.data;
  int64_t total = ait_tensor_count(t), most = -1;
  ait_status status = AIT_OK;
  for (int64_t i = 0; i < total; ++i) {
    if (value[i] < 0 || (count >= 0 && value[i] >= count))
      AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "index %lld is out of range for size %lld", (long long)value[i],
                             (long long)count));
    if (value[i] > most) most = value[i];
  }
  if (count < 0) count = most + 1;
  memcpy(shape, t->shape, sizeof t->shape);
  shape[t->rank] = count;
  AIT_GOTO(ait_ref_new(call, 0, AIT_I64, t->rank + 1, shape, &out));
  AIT_GOTO(ait_ref_set_all(call, &out, &(ait_ref_scalar){.kind = AIT_KIND_INT}));
  for (int64_t i = 0; i < total; ++i) ((int64_t *)out.data)[i * count + value[i]] = 1;
cleanup:
  ait_tensor_release(&classes);
  return status;
}
