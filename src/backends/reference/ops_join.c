/* Tensors put together, repeated, turned round; and copies with a part replaced. */
#include "backends/reference/shapes.h"

static const ait_ref_scalar zero = {.kind = AIT_KIND_INT};

/* ---- concatenation ----------------------------------------------------------------------------------------------------------- */
/* torch ignores tensors of shape [0] when the others have another rank. */
static bool is_legacy_empty(const ait_tensor *t) { return t->rank == 1 && t->shape[0] == 0; }

static ait_status cat_shape(const ait_ref_call *call, const ait_tensor *items, uint32_t count, int64_t dim, int32_t *out_dim,
                            int32_t *out_rank, int64_t *shape) {
  const ait_tensor *first = NULL;
  for (uint32_t i = 0; i < count; ++i) {
    if (first == NULL || (is_legacy_empty(first) && !is_legacy_empty(&items[i]))) first = &items[i];
  }
  if (!first) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "no tensors");
  if (first->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "tensors of rank 0 cannot be concatenated");
  AIT_TRY(ait_ref_dim(call, dim, first->rank, out_dim));
  memcpy(shape, first->shape, sizeof first->shape);
  *out_rank = first->rank;
  shape[*out_dim] = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_tensor *t = &items[i];
    if (is_legacy_empty(t) && first->rank != 1) continue;
    if (t->rank != first->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "ranks %d and %d", first->rank, t->rank);
    for (int32_t d = 0; d < t->rank; ++d)
      if (d != *out_dim && t->shape[d] != shape[d])
        return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "sizes %lld and %lld of dimension %d differ", (long long)shape[d],
                             (long long)t->shape[d], d);
    shape[*out_dim] += t->shape[*out_dim];
  }
  return AIT_OK;
}

static ait_status cat(ait_ref_call *call, const ait_tensor *items, uint32_t count, int64_t dim) {
  int32_t d = 0, rank = 0;
  int64_t shape[AIT_MAX_RANK], at = 0;
  ait_tensor out;
  AIT_TRY(cat_shape(call, items, count, dim, &d, &rank, shape));
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  for (uint32_t i = 0; dtype == AIT_DTYPE_NONE && i < count; ++i) dtype = items[i].dtype;
  AIT_TRY(ait_ref_new(call, 0, dtype, rank, shape, &out));
  for (uint32_t i = 0; i < count; ++i) {
    if (items[i].rank != rank) continue;
    ait_tensor part = ait_ref_narrowed(&out, d, at, items[i].shape[d]);
    AIT_TRY(ait_ref_move(call, &part, &items[i]));
    at += items[i].shape[d];
  }
  return AIT_OK;
}

/* Applies `change` to each tensor of the list before they are concatenated. */
static ait_status cat_changed(ait_ref_call *call, int64_t dim, ait_status (*change)(const ait_ref_call *call, ait_tensor *t, int64_t dim)) {
  ait_tensor *items;
  uint32_t count;
  AIT_TRY(ait_ref_tensors(call, 0, &items, &count));
  ait_status status = AIT_OK;
  for (uint32_t i = 0; change && i < count && status == AIT_OK; ++i) status = change(call, &items[i], dim);
  if (status == AIT_OK) status = cat(call, items, count, dim);
  ait_free(call->allocator, items, count * sizeof *items);
  return status;
}

static ait_status insert_dim(const ait_ref_call *call, ait_tensor *t, int64_t dim) {
  int32_t d;
  if (t->rank == AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  AIT_TRY(ait_ref_dim(call, dim, t->rank + 1, &d));
  *t = ait_ref_unsqueezed(t, d);
  return AIT_OK;
}
static ait_status to_1d(const ait_ref_call *call, ait_tensor *t, int64_t dim) { return t->rank ? AIT_OK : insert_dim(call, t, dim); }
static ait_status to_2d(const ait_ref_call *call, ait_tensor *t, int64_t dim) {
  AIT_UNUSED(dim);
  AIT_TRY(to_1d(call, t, 0));
  return t->rank == 1 ? insert_dim(call, t, 0) : AIT_OK;
}
static ait_status to_3d(const ait_ref_call *call, ait_tensor *t, int64_t dim) {
  AIT_TRY(to_2d(call, t, dim));
  return t->rank == 2 ? insert_dim(call, t, 2) : AIT_OK;
}
static ait_status to_column(const ait_ref_call *call, ait_tensor *t, int64_t dim) {
  AIT_UNUSED(dim);
  AIT_TRY(to_1d(call, t, 0));
  return t->rank == 1 ? insert_dim(call, t, 1) : AIT_OK;
}

ait_status ait_ref_cat(ait_ref_call *call) {
  int64_t dim;
  AIT_TRY(ait_ref_int_or(call, 1, 0, &dim));
  return cat_changed(call, dim, NULL);
}
ait_status ait_ref_stack(ait_ref_call *call) {
  int64_t dim;
  AIT_TRY(ait_ref_int_or(call, 1, 0, &dim));
  return cat_changed(call, dim, insert_dim);
}
ait_status ait_ref_vstack(ait_ref_call *call) { return cat_changed(call, 0, to_2d); }
ait_status ait_ref_dstack(ait_ref_call *call) { return cat_changed(call, 2, to_3d); }
ait_status ait_ref_column_stack(ait_ref_call *call) { return cat_changed(call, 1, to_column); }
ait_status ait_ref_hstack(ait_ref_call *call) {
  ait_tensor *items;
  uint32_t count;
  AIT_TRY(ait_ref_tensors(call, 0, &items, &count));
  bool vectors = count > 0 && items[0].rank <= 1;
  ait_free(call->allocator, items, count * sizeof *items);
  return cat_changed(call, vectors ? 0 : 1, to_1d);
}

ait_status ait_ref_block_diag(ait_ref_call *call) {
  ait_tensor *items, out;
  uint32_t count;
  int64_t shape[2] = {0, 0}, at[2] = {0, 0};
  AIT_TRY(ait_ref_tensors(call, 0, &items, &count));
  ait_status status = AIT_OK;
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  for (uint32_t i = 0; i < count; ++i) {
    AIT_GOTO(to_2d(call, &items[i], 0));
    if (items[i].rank != 2) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d", items[i].rank));
    if (dtype == AIT_DTYPE_NONE) dtype = items[i].dtype;
    for (int d = 0; d < 2; ++d) shape[d] += items[i].shape[d];
  }
  AIT_GOTO(ait_ref_new(call, 0, dtype == AIT_DTYPE_NONE ? AIT_F32 : dtype, 2, shape, &out));
  AIT_GOTO(ait_ref_set_all(call, &out, &zero));
  for (uint32_t i = 0; i < count; ++i) {
    ait_tensor part = ait_ref_narrowed(&out, 0, at[0], items[i].shape[0]);
    part = ait_ref_narrowed(&part, 1, at[1], items[i].shape[1]);
    AIT_GOTO(ait_ref_move(call, &part, &items[i]));
    for (int d = 0; d < 2; ++d) at[d] += items[i].shape[d];
  }
cleanup:
  ait_free(call->allocator, items, count * sizeof *items);
  return status;
}

/* ---- repetition -------------------------------------------------------------------------------------------------------------- */
/* out[.., r * size + i, ..] = t[.., i, ..]: the result seen as [repeat, size] pairs of dims is the expanded tensor. */
static ait_status repeat(ait_ref_call *call, const ait_tensor *t, const int64_t *times, int32_t rank) {
  if (rank < t->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d repeats for a tensor of rank %d", rank, t->rank);
  if (2 * rank > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK / 2);
  int64_t shape[AIT_MAX_RANK];
  ait_tensor out, pairs = {.rank = 2 * rank}, source = {.data = t->data, .dtype = t->dtype, .rank = 2 * rank};
  int32_t lead = rank - t->rank;
  for (int32_t d = 0; d < rank; ++d) {
    int64_t own = d < lead ? 1 : t->shape[d - lead];
    if (times[d] < 0 || ait_mul_overflows(own, times[d], &shape[d]))
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld repeats", (long long)times[d]);
    pairs.shape[2 * d] = source.shape[2 * d] = times[d];
    pairs.shape[2 * d + 1] = source.shape[2 * d + 1] = own;
    source.strides[2 * d + 1] = d < lead ? 0 : t->strides[d - lead];
  }
  AIT_TRY(ait_ref_new(call, 0, t->dtype, rank, shape, &out));
  pairs.data = out.data;
  pairs.dtype = out.dtype;
  ait_tensor_set_contiguous(&pairs);
  return ait_ref_move(call, &pairs, &source);
}
ait_status ait_ref_repeat(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t times[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, 1, times, &rank));
  return repeat(call, t, times, rank);
}
/* Like repeat, missing leading repeats are ones. */
ait_status ait_ref_tile(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t given[AIT_MAX_RANK], times[AIT_MAX_RANK];
  int32_t count;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, 1, given, &count));
  int32_t rank = count > t->rank ? count : t->rank;
  for (int32_t d = 0; d < rank; ++d) times[d] = d < rank - count ? 1 : given[d - (rank - count)];
  return repeat(call, t, times, rank);
}

/* Element i of dim `dim` counts[i] times (counts of one element: for all). */
static ait_status repeat_each(ait_ref_call *call, const ait_tensor *t, int32_t dim, const int64_t *counts, bool same) {
  int64_t shape[AIT_MAX_RANK], total = 0, at = 0;
  ait_tensor out;
  for (int64_t i = 0; i < t->shape[dim]; ++i) {
    int64_t n = counts[same ? 0 : i];
    if (n < 0 || ait_add_overflows(total, n, &total)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld repeats", (long long)n);
  }
  memcpy(shape, t->shape, sizeof t->shape);
  shape[dim] = total;
  AIT_TRY(ait_ref_new(call, 0, t->dtype, t->rank, shape, &out));
  for (int64_t i = 0; i < t->shape[dim]; ++i) {
    int64_t n = counts[same ? 0 : i];
    ait_tensor to = ait_ref_narrowed(&out, dim, at, n), from = ait_ref_narrowed(t, dim, i, 1);
    from = ait_ref_expand(&from, to.rank, to.shape);
    AIT_TRY(ait_ref_move(call, &to, &from));
    at += n;
  }
  return AIT_OK;
}
static ait_status repeat_interleave(ait_ref_call *call, const int64_t *counts, int64_t count, bool same) {
  const ait_tensor *t;
  ait_tensor flat;
  int32_t dim = 0;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (ait_ref_is_none(call, 2) || t->rank == 0) {
    int64_t all = ait_tensor_count(t);
    AIT_TRY(ait_ref_reshaped(call, t, 1, &all, &flat));
  } else {
    AIT_TRY(ait_ref_dim_arg(call, 2, 0, t->rank, &dim));
    flat = ait_tensor_retain(t);
  }
  ait_status status = same || count == flat.shape[dim] ? repeat_each(call, &flat, dim, counts, same)
                                                       : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld repeats for size %lld",
                                                                       (long long)count, (long long)flat.shape[dim]);
  ait_tensor_release(&flat);
  return status;
}
ait_status ait_ref_repeat_interleave_int(ait_ref_call *call) {
  int64_t times;
  AIT_TRY(ait_ref_int(call, 1, &times));
  return repeat_interleave(call, &times, 1, true);
}
ait_status ait_ref_repeat_interleave_tensor(ait_ref_call *call) {
  const ait_tensor *repeats;
  ait_tensor counts;
  AIT_TRY(ait_ref_tensor(call, 1, &repeats));
  AIT_TRY(ait_ref_as_i64(call, repeats, &counts));
  int64_t count = ait_tensor_count(&counts);
  ait_status status = repeat_interleave(call, counts.data, count, count == 1);
  ait_tensor_release(&counts);
  return status;
}
/* repeat_interleave(repeats): index i repeats[i] times. */
ait_status ait_ref_repeat_interleave(ait_ref_call *call) {
  const ait_tensor *repeats;
  ait_tensor counts, out;
  int64_t total = 0, at = 0;
  AIT_TRY(ait_ref_tensor(call, 0, &repeats));
  AIT_TRY(ait_ref_as_i64(call, repeats, &counts));
  const int64_t *n = counts.data;
  ait_status status = AIT_OK;
  for (int64_t i = 0; i < ait_tensor_count(&counts); ++i)
    if (n[i] < 0 || ait_add_overflows(total, n[i], &total))
      AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld repeats", (long long)n[i]));
  AIT_GOTO(ait_ref_new(call, 0, repeats->dtype, 1, &total, &out));
  for (int64_t i = 0; i < ait_tensor_count(&counts); ++i)
    for (int64_t k = 0; k < n[i]; ++k) ait_ref_store(&out, at++, 1, AIT_REF_I, &i);
cleanup:
  ait_tensor_release(&counts);
  return status;
}

/* ---- turning and shifting ---------------------------------------------------------------------------------------------------- */
/* A view with the dim read backwards; only for reading. */
static void reverse_dim(ait_tensor *t, int32_t d) {
  if (t->shape[d] > 0 && t->data) t->data = (char *)t->data + (t->shape[d] - 1) * t->strides[d] * (int64_t)ait_dtype_size(t->dtype);
  t->strides[d] = -t->strides[d];
}
static ait_status flip_dims(ait_ref_call *call, const int64_t *dims, int32_t count) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  ait_tensor v = *t;
  for (int32_t i = 0; i < count; ++i) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, dims[i], t->rank, &d));
    if (t->rank) reverse_dim(&v, d);
  }
  return ait_ref_copy_result(call, 0, t->dtype, &v);
}
ait_status ait_ref_flip(ait_ref_call *call) {
  int64_t dims[AIT_MAX_RANK];
  int32_t count;
  AIT_TRY(ait_ref_ints(call, 1, dims, &count));
  return flip_dims(call, dims, count);
}
ait_status ait_ref_fliplr(ait_ref_call *call) { return flip_dims(call, (int64_t[1]){1}, 1); }
ait_status ait_ref_flipud(ait_ref_call *call) { return flip_dims(call, (int64_t[1]){0}, 1); }

ait_status ait_ref_rot90(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t k, dims[AIT_MAX_RANK];
  int32_t count, a, b;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int_or(call, 1, 1, &k));
  AIT_TRY(ait_ref_ints(call, 2, dims, &count));
  if (count != 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d dimensions of rotation", count);
  AIT_TRY(ait_ref_dim(call, dims[0], t->rank, &a));
  AIT_TRY(ait_ref_dim(call, dims[1], t->rank, &b));
  if (a == b) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the dimensions of rotation are the same");
  int64_t turns = (k % 4 + 4) % 4;
  ait_tensor v = *t;
  if (turns == 1 || turns == 2) reverse_dim(&v, b);
  if (turns == 2 || turns == 3) reverse_dim(&v, a);
  if (turns % 2) v = ait_ref_transposed(&v, a, b);
  return ait_ref_copy_result(call, 0, t->dtype, &v);
}

static ait_status roll_dim(const ait_ref_call *call, const ait_tensor *dst, const ait_tensor *src, int32_t d, int64_t shift) {
  int64_t size = src->shape[d], at = size ? (shift % size + size) % size : 0;
  ait_tensor to = ait_ref_narrowed(dst, d, at, size - at), from = ait_ref_narrowed(src, d, 0, size - at);
  AIT_TRY(ait_ref_move(call, &to, &from));
  to = ait_ref_narrowed(dst, d, 0, at);
  from = ait_ref_narrowed(src, d, size - at, at);
  return ait_ref_move(call, &to, &from);
}
/* Without dims the flattened tensor is rolled. */
static ait_status roll_flat(ait_ref_call *call, const ait_tensor *t, int64_t shift) {
  ait_tensor out, flat;
  int64_t count = ait_tensor_count(t);
  AIT_TRY(ait_ref_new(call, 0, t->dtype, t->rank, t->shape, &out));
  AIT_TRY(ait_ref_reshaped(call, t, 1, &count, &flat));
  ait_tensor flat_out = ait_tensor_borrow(out.data, out.dtype, 1, &count);
  ait_status status = roll_dim(call, &flat_out, &flat, 0, shift);
  ait_tensor_release(&flat);
  return status;
}
ait_status ait_ref_roll(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t shifts[AIT_MAX_RANK], dims[AIT_MAX_RANK];
  int32_t count, dim_count, d;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, 1, shifts, &count));
  AIT_TRY(ait_ref_ints(call, 2, dims, &dim_count));
  if (dim_count == 0 && count == 1) return roll_flat(call, t, shifts[0]);
  if (dim_count != count) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d shifts for %d dimensions", count, dim_count);
  ait_tensor from = ait_tensor_retain(t);
  ait_status status = AIT_OK;
  for (int32_t i = 0; i < count && status == AIT_OK; ++i) {
    ait_tensor to;
    status = ait_ref_dim(call, dims[i], t->rank, &d);
    if (status != AIT_OK || t->rank == 0) break;
    status = ait_ref_temp(call, t->dtype, t->rank, t->shape, &to);
    if (status != AIT_OK) break;
    status = roll_dim(call, &to, &from, d, shifts[i]);
    ait_tensor_release(&from);
    from = to;
  }
  if (status == AIT_OK && (count == 0 || t->rank == 0)) status = ait_ref_copy_result(call, 0, t->dtype, t);
  else if (status == AIT_OK) {
    ait_ref_set(call, 0, from);
    return AIT_OK;
  }
  ait_tensor_release(&from);
  return status;
}

/* ---- a part replaced --------------------------------------------------------------------------------------------------------- */
/* Result 0 becomes a copy of argument 0; *out_copy is a borrowed view of it. */
static ait_status copy_of_self(ait_ref_call *call, const ait_tensor **out_self, ait_tensor *out_copy) {
  AIT_TRY(ait_ref_tensor(call, 0, out_self));
  AIT_TRY(ait_ref_new_like(call, 0, (*out_self)->dtype, *out_self, out_copy));
  return ait_ref_move(call, out_copy, *out_self);
}
static ait_status put_part(ait_ref_call *call, const ait_tensor *part) {
  const ait_tensor *src;
  AIT_TRY(ait_ref_tensor(call, 1, &src));
  ait_tensor wide;
  AIT_TRY(ait_ref_expanded(call, src, part->rank, part->shape, &wide));
  return ait_ref_move(call, part, &wide);
}

ait_status ait_ref_slice_scatter(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor copy;
  int32_t dim;
  int64_t start, length, step;
  AIT_TRY(copy_of_self(call, &t, &copy));
  AIT_TRY(ait_ref_dim_arg(call, 2, 0, t->rank, &dim));
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 cannot be sliced");
  AIT_TRY(ait_ref_slice_args(call, 3, t->shape[dim], &start, &length, &step));
  ait_tensor part = ait_ref_narrowed(&copy, dim, start, length);
  part.strides[dim] *= step;
  return put_part(call, &part);
}
ait_status ait_ref_select_scatter(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor copy;
  int32_t dim;
  int64_t index;
  AIT_TRY(copy_of_self(call, &t, &copy));
  AIT_TRY(ait_ref_dim_arg(call, 2, 0, t->rank, &dim));
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 cannot be indexed");
  AIT_TRY(ait_ref_int(call, 3, &index));
  AIT_TRY(ait_ref_wrap_index(call, index, t->shape[dim], &index));
  ait_tensor part = ait_ref_selected(&copy, dim, index);
  return put_part(call, &part);
}
ait_status ait_ref_diagonal_scatter(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor copy, part;
  int64_t offset, dim1, dim2;
  AIT_TRY(copy_of_self(call, &t, &copy));
  AIT_TRY(ait_ref_int_or(call, 2, 0, &offset));
  AIT_TRY(ait_ref_int_or(call, 3, 0, &dim1));
  AIT_TRY(ait_ref_int_or(call, 4, 1, &dim2));
  AIT_TRY(ait_ref_diagonal_view(call, &copy, offset, dim1, dim2, &part));
  return put_part(call, &part);
}
ait_status ait_ref_as_strided_scatter(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor copy, part;
  int64_t offset;
  int32_t count;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_copy_result(call, 0, t->dtype, t));
  copy = call->results[0].as.tensor;
  part = copy;
  AIT_TRY(ait_ref_ints(call, 2, part.shape, &part.rank));
  AIT_TRY(ait_ref_ints(call, 3, part.strides, &count));
  AIT_TRY(ait_ref_int_or(call, 4, 0, &offset));
  if (count != part.rank || !ait_strides_fit(part.rank, part.shape, part.strides, offset, ait_tensor_count(&copy)))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the view exceeds the tensor");
  part.data = (char *)copy.data + offset * (int64_t)ait_dtype_size(copy.dtype);
  return put_part(call, &part);
}

/* The first elements stay, what is new is zero. In place, what fits into the tensor's memory stays there. */
static ait_status resized(ait_ref_call *call, int32_t rank, const int64_t *shape) {
  const ait_tensor *t;
  ait_tensor out, flat;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (call->node->flags & AIT_NODE_INPLACE && ait_tensor_is_contiguous(t)) {
    out = ait_tensor_borrow(t->data, t->dtype, rank, shape);
    if (ait_tensor_count(&out) <= ait_tensor_count(t)) {
      ait_ref_set_view(call, 0, t, &out);
      return AIT_OK;
    }
  }
  AIT_TRY(ait_ref_new(call, 0, t->dtype, rank, shape, &out));
  AIT_TRY(ait_ref_set_all(call, &out, &zero));
  int64_t have = ait_tensor_count(t), want = ait_tensor_count(&out), kept = have < want ? have : want;
  AIT_TRY(ait_ref_reshaped(call, t, 1, &have, &flat));
  ait_tensor to = ait_tensor_borrow(out.data, out.dtype, 1, &kept), from = ait_ref_narrowed(&flat, 0, 0, kept);
  ait_status status = ait_ref_move(call, &to, &from);
  ait_tensor_release(&flat);
  return status;
}
ait_status ait_ref_resize(ait_ref_call *call) {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(ait_ref_ints(call, 1, shape, &rank));
  return resized(call, rank, shape);
}
ait_status ait_ref_resize_as(ait_ref_call *call) {
  const ait_tensor *like;
  AIT_TRY(ait_ref_tensor(call, 1, &like));
  return resized(call, like->rank, like->shape);
}
