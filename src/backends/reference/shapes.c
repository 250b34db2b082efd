#include "backends/reference/shapes.h"

ait_status ait_ref_infer_shape(const ait_ref_call *call, const ait_tensor *t, int64_t *shape, int32_t rank) {
  int64_t count = ait_tensor_count(t), known = 1;
  int32_t open = -1;
  for (int32_t d = 0; d < rank; ++d) {
    if (shape[d] == -1 && open < 0) open = d;
    else if (shape[d] < 0 || ait_mul_overflows(known, shape[d], &known))
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "size %lld is not possible", (long long)shape[d]);
  }
  if (open >= 0 && known > 0) {
    shape[open] = count / known;
    known *= shape[open];
  }
  if (known != count || (open >= 0 && shape[open] < 0))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld elements do not fit the new shape", (long long)count);
  return AIT_OK;
}

/* The dims of t as stretches of equally spaced elements, innermost first. */
static int32_t stretches(const ait_tensor *t, int64_t size[AIT_MAX_RANK], int64_t stride[AIT_MAX_RANK]) {
  int32_t n = 0;
  for (int32_t d = t->rank; d-- > 0;) {
    if (t->shape[d] == 1) continue;
    if (n > 0 && t->strides[d] == size[n - 1] * stride[n - 1]) size[n - 1] *= t->shape[d];
    else {
      size[n] = t->shape[d];
      stride[n++] = t->strides[d];
    }
  }
  return n;
}

bool ait_ref_restrided(const ait_tensor *t, int32_t rank, const int64_t *shape, ait_tensor *out) {
  *out = *t;
  out->rank = rank;
  memcpy(out->shape, shape, (size_t)rank * sizeof *shape);
  if (ait_tensor_count(t) == 0) {
    ait_tensor_set_contiguous(out);
    return true;
  }
  int64_t size[AIT_MAX_RANK], stride[AIT_MAX_RANK], filled = 1;
  int32_t count = stretches(t, size, stride), at = 0;
  for (int32_t d = rank; d-- > 0;) {
    bool done = at >= count;
    out->strides[d] = done ? (count ? size[count - 1] * stride[count - 1] : 1) : filled * stride[at];
    if (shape[d] == 1) continue;
    if (done) return false;
    filled *= shape[d];
    if (filled > size[at]) return false;
    if (filled < size[at]) continue;
    ++at;
    filled = 1;
  }
  return at == count;
}

ait_status ait_ref_reshaped(const ait_ref_call *call, const ait_tensor *t, int32_t rank, const int64_t *shape, ait_tensor *out) {
  if (ait_ref_restrided(t, rank, shape, out)) {
    ait_storage_retain(out->storage);
    return AIT_OK;
  }
  AIT_TRY(ait_ref_temp(call, t->dtype, rank, shape, out));
  ait_tensor as_source = ait_tensor_borrow(out->data, t->dtype, t->rank, t->shape);
  ait_status status = ait_ref_move(call, &as_source, t);
  if (status != AIT_OK) ait_tensor_release(out);
  return status;
}

ait_status ait_ref_contiguous_of(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) {
  if (ait_tensor_is_contiguous(t)) {
    *out = ait_tensor_retain(t);
    return AIT_OK;
  }
  AIT_TRY(ait_ref_temp(call, t->dtype, t->rank, t->shape, out));
  ait_status status = ait_ref_move(call, out, t);
  if (status != AIT_OK) ait_tensor_release(out);
  return status;
}

/* ---- plain views ------------------------------------------------------------------------------------------------------------- */
static char *element(const ait_tensor *t, int64_t offset) {
  return t->data ? (char *)t->data + offset * (int64_t)ait_dtype_size(t->dtype) : NULL;
}

static void remove_dim(ait_tensor *t, int32_t dim) {
  for (int32_t d = dim; d + 1 < t->rank; ++d) {
    t->shape[d] = t->shape[d + 1];
    t->strides[d] = t->strides[d + 1];
  }
  --t->rank;
}

static void insert_dim(ait_tensor *t, int32_t dim, int64_t size, int64_t stride) {
  for (int32_t d = t->rank++; d > dim; --d) {
    t->shape[d] = t->shape[d - 1];
    t->strides[d] = t->strides[d - 1];
  }
  t->shape[dim] = size;
  t->strides[dim] = stride;
}

ait_tensor ait_ref_transposed(const ait_tensor *t, int32_t a, int32_t b) {
  ait_tensor v = *t;
  if (t->rank == 0) return v;
  v.shape[a] = t->shape[b];
  v.strides[a] = t->strides[b];
  v.shape[b] = t->shape[a];
  v.strides[b] = t->strides[a];
  return v;
}

ait_tensor ait_ref_selected(const ait_tensor *t, int32_t dim, int64_t index) {
  ait_tensor v = *t;
  v.data = element(t, index * t->strides[dim]);
  remove_dim(&v, dim);
  return v;
}

ait_tensor ait_ref_narrowed(const ait_tensor *t, int32_t dim, int64_t start, int64_t length) {
  ait_tensor v = *t;
  v.data = element(t, start * t->strides[dim]);
  v.shape[dim] = length;
  return v;
}

ait_tensor ait_ref_unsqueezed(const ait_tensor *t, int32_t dim) {
  ait_tensor v = *t;
  insert_dim(&v, dim, 1, dim < t->rank ? t->shape[dim] * t->strides[dim] : 1);
  return v;
}

ait_tensor ait_ref_dim_last(const ait_tensor *t, int32_t dim) {
  ait_tensor v = *t;
  if (t->rank == 0) return v;
  remove_dim(&v, dim);
  insert_dim(&v, v.rank, t->shape[dim], t->strides[dim]);
  return v;
}

ait_status ait_ref_diagonal_view(const ait_ref_call *call, const ait_tensor *t, int64_t offset, int64_t dim1, int64_t dim2,
                                 ait_tensor *out) {
  int32_t a, b;
  AIT_TRY(ait_ref_dim(call, dim1, t->rank, &a));
  AIT_TRY(ait_ref_dim(call, dim2, t->rank, &b));
  if (a == b) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the two dimensions of a diagonal are the same");
  int64_t rows = t->shape[a] + (offset < 0 ? offset : 0), columns = t->shape[b] - (offset > 0 ? offset : 0);
  int64_t length = rows < columns ? rows : columns;
  if (length < 0) length = 0;
  *out = *t;
  if (length > 0) out->data = element(t, offset < 0 ? -offset * t->strides[a] : offset * t->strides[b]);
  remove_dim(out, a > b ? a : b);
  remove_dim(out, a > b ? b : a);
  insert_dim(out, out->rank, length, t->strides[a] + t->strides[b]);
  return AIT_OK;
}

ait_status ait_ref_expanded(const ait_ref_call *call, const ait_tensor *t, int32_t rank, const int64_t *shape, ait_tensor *out) {
  int32_t lead = rank - t->rank;
  if (lead < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d cannot be expanded to rank %d", t->rank, rank);
  *out = *t;
  out->rank = rank;
  for (int32_t d = 0; d < rank; ++d) {
    int64_t own = d < lead ? 1 : t->shape[d - lead];
    int64_t size = shape[d] == -1 && d >= lead ? own : shape[d];
    if (size < 0 || (own != 1 && size != own))
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "size %lld of dimension %d cannot be expanded to %lld", (long long)own, d,
                           (long long)shape[d]);
    out->shape[d] = size;
    out->strides[d] = d < lead || (own == 1 && size != 1) ? 0 : t->strides[d - lead];
  }
  return AIT_OK;
}

/* ---- arguments --------------------------------------------------------------------------------------------------------------- */
static int64_t clamped(int64_t at, int64_t size) {
  if (at < 0) at += size;
  return at < 0 ? 0 : at > size ? size : at;
}

ait_status ait_ref_slice_args(const ait_ref_call *call, uint32_t start_arg, int64_t size, int64_t *out_start, int64_t *out_length,
                              int64_t *out_step) {
  int64_t start, end, step;
  AIT_TRY(ait_ref_int_or(call, start_arg, 0, &start));
  AIT_TRY(ait_ref_int_or(call, start_arg + 1, INT64_MAX, &end));
  AIT_TRY(ait_ref_int_or(call, start_arg + 2, 1, &step));
  if (step <= 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the step of a slice must be positive, not %lld", (long long)step);
  start = clamped(start, size);
  end = clamped(end, size);
  *out_start = start;
  *out_step = step;
  *out_length = end > start ? (end - start - 1) / step + 1 : 0;
  return AIT_OK;
}

ait_status ait_ref_wrap_index(const ait_ref_call *call, int64_t index, int64_t size, int64_t *out) {
  if (index < -size || index >= size)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "index %lld is out of range for size %lld", (long long)index, (long long)size);
  *out = index < 0 ? index + size : index;
  return AIT_OK;
}

ait_status ait_ref_dim_arg(const ait_ref_call *call, uint32_t arg, int64_t when_none, int32_t rank, int32_t *out) {
  int64_t dim;
  AIT_TRY(ait_ref_int_or(call, arg, when_none, &dim));
  return ait_ref_dim(call, dim, rank, out);
}

/* ---- copies of views --------------------------------------------------------------------------------------------------------- */
static ait_status copy_view(const ait_ref_call *call, ait_tensor *t) {
  ait_tensor copy;
  AIT_TRY(ait_ref_temp(call, t->dtype, t->rank, t->shape, &copy));
  ait_status status = ait_ref_move(call, &copy, t);
  ait_tensor_release(status == AIT_OK ? t : &copy);
  if (status == AIT_OK) *t = copy;
  return status;
}

ait_status ait_ref_copied(ait_ref_call *call, ait_ref_fn view) {
  AIT_TRY(view(call));
  if (call->node->result_count == 0) return AIT_OK;
  ait_ref_value *v = &call->results[0];
  if (v->type == AIT_TYPE_TENSOR) return copy_view(call, &v->as.tensor);
  for (uint32_t i = 0; v->type == AIT_TYPE_TENSOR_LIST && i < v->as.list.count; ++i) AIT_TRY(copy_view(call, &v->as.list.items[i]));
  return AIT_OK;
}
