/* Views: results that share their argument's memory, exactly as torch's do; and their _copy forms. */
#include "backends/reference/shapes.h"

static ait_status give_view(ait_ref_call *call, const ait_tensor *base, ait_tensor view) {
  ait_ref_set_view(call, 0, base, &view);
  return AIT_OK;
}

/* A function whose body sees its tensor argument 0 as t. */
#define VIEW(name, ...)                           \
  ait_status ait_ref_##name(ait_ref_call *call) { \
    const ait_tensor *t;                          \
    AIT_TRY(ait_ref_tensor(call, 0, &t));         \
    __VA_ARGS__                                   \
  }
#define COPY(name, view) \
  ait_status ait_ref_##name(ait_ref_call *call) { return ait_ref_copied(call, ait_ref_##view); }

VIEW(alias, return give_view(call, t, *t);)
COPY(alias_copy, alias)

/* ---- another shape ----------------------------------------------------------------------------------------------------------- */
/* For view, too: a program that torch exported ran there, so its views were possible; where a result of ours lies in memory in another
 * order than torch's (attention, for one), the elements are copied. */
static ait_status reshape_to(ait_ref_call *call, const ait_tensor *t, int32_t rank, int64_t *shape) {
  ait_tensor out;
  AIT_TRY(ait_ref_infer_shape(call, t, shape, rank));
  AIT_TRY(ait_ref_reshaped(call, t, rank, shape, &out));
  ait_ref_set(call, 0, out);
  return AIT_OK;
}

/* view.dtype: the same bytes as another dtype. */
static ait_status view_as_dtype(ait_ref_call *call, const ait_tensor *t) {
  ait_dtype dtype = ait_ref_dtype(call, 1, t->dtype);
  int64_t from = (int64_t)ait_dtype_size(t->dtype), to = (int64_t)ait_dtype_size(dtype);
  ait_tensor view = *t;
  view.dtype = dtype;
  int32_t last = t->rank - 1;
  if (from == to) return give_view(call, t, view);
  if (last < 0 || t->strides[last] != 1 || (from < to && t->shape[last] * from % to != 0))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the tensor cannot be seen as %s", ait_dtype_name(dtype));
  view.shape[last] = t->shape[last] * from / to;
  for (int32_t d = 0; d < last; ++d) {
    if (t->strides[d] * from % to != 0)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the tensor cannot be seen as %s", ait_dtype_name(dtype));
    view.strides[d] = t->strides[d] * from / to;
  }
  return give_view(call, t, view);
}
VIEW(view_dtype, return view_as_dtype(call, t);)

VIEW(view, {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(ait_ref_ints(call, 1, shape, &rank));
  return reshape_to(call, t, rank, shape);
})
COPY(view_copy, view)

VIEW(reshape, {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(ait_ref_ints(call, 1, shape, &rank));
  return reshape_to(call, t, rank, shape);
})
COPY(reshape_copy, reshape)

static ait_status shape_of_arg(const ait_ref_call *call, uint32_t arg, int32_t *rank, int64_t shape[AIT_MAX_RANK]) {
  const ait_tensor *other;
  AIT_TRY(ait_ref_tensor(call, arg, &other));
  *rank = other->rank;
  memcpy(shape, other->shape, sizeof other->shape);
  return AIT_OK;
}

VIEW(view_as, {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(shape_of_arg(call, 1, &rank, shape));
  return reshape_to(call, t, rank, shape);
})

VIEW(reshape_as, {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  AIT_TRY(shape_of_arg(call, 1, &rank, shape));
  return reshape_to(call, t, rank, shape);
})

static ait_status flatten_dims(ait_ref_call *call, const ait_tensor *t, int32_t first, int32_t last) {
  if (first > last) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "start dimension %d lies behind end dimension %d", first, last);
  int64_t shape[AIT_MAX_RANK];
  int64_t product = 1;
  int32_t rank = 0;
  for (int32_t d = 0; d < first && d < t->rank; ++d) shape[rank++] = t->shape[d];
  for (int32_t d = first; d <= last && d < t->rank; ++d) product *= t->shape[d];
  shape[rank++] = product;
  for (int32_t d = last + 1; d < t->rank; ++d) shape[rank++] = t->shape[d];
  return reshape_to(call, t, rank, shape);
}
VIEW(flatten, {
  int32_t first;
  int32_t last;
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &first));
  AIT_TRY(ait_ref_dim_arg(call, 2, -1, t->rank, &last));
  if (first == last && t->rank > 0) return give_view(call, t, *t);
  return flatten_dims(call, t, first, last);
})
VIEW(ravel, {
  ait_tensor whole;
  AIT_TRY(ait_ref_contiguous_of(call, t, &whole));
  whole.shape[0] = ait_tensor_count(t);
  whole.strides[0] = 1;
  whole.rank = 1;
  ait_ref_set(call, 0, whole);
  return AIT_OK;
})

VIEW(unflatten, {
  int64_t sizes[AIT_MAX_RANK];
  int64_t shape[2 * AIT_MAX_RANK];
  int32_t dim;
  int32_t count;
  int32_t rank = 0;
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(ait_ref_ints(call, 2, sizes, &count));
  if (t->rank + count - 1 > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  ait_tensor one = {.rank = 1};
  one.shape[0] = t->rank ? t->shape[dim] : 1;
  AIT_TRY(ait_ref_infer_shape(call, &one, sizes, count));
  for (int32_t d = 0; d < dim; ++d) shape[rank++] = t->shape[d];
  for (int32_t d = 0; d < count; ++d) shape[rank++] = sizes[d];
  for (int32_t d = dim + 1; d < t->rank; ++d) shape[rank++] = t->shape[d];
  return reshape_to(call, t, rank, shape);
})

VIEW(squeeze, {
  ait_tensor v = *t;
  v.rank = 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    if (t->shape[d] == 1) continue;
    v.shape[v.rank] = t->shape[d];
    v.strides[v.rank++] = t->strides[d];
  }
  return give_view(call, t, v);
})
COPY(squeeze_copy, squeeze)

/* One dim or several: those of size 1 go. */
VIEW(squeeze_dims, {
  int64_t dims[AIT_MAX_RANK];
  int32_t count;
  int32_t dim;
  bool drop[AIT_MAX_RANK] = {false};
  AIT_TRY(ait_ref_ints(call, 1, dims, &count));
  for (int32_t i = 0; i < count; ++i) {
    AIT_TRY(ait_ref_dim(call, dims[i], t->rank, &dim));
    drop[dim] = true;
  }
  ait_tensor v = *t;
  v.rank = 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    if (drop[d] && t->shape[d] == 1) continue;
    v.shape[v.rank] = t->shape[d];
    v.strides[v.rank++] = t->strides[d];
  }
  return give_view(call, t, v);
})
COPY(squeeze_dims_copy, squeeze_dims)

VIEW(unsqueeze, {
  int32_t dim;
  if (t->rank == AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank + 1, &dim));
  return give_view(call, t, ait_ref_unsqueezed(t, dim));
})
COPY(unsqueeze_copy, unsqueeze)

/* atleast_nd: 1d appends nothing but the one; 2d puts it first; 3d surrounds vectors and appends to matrices. */
VIEW(atleast_1d, return give_view(call, t, t->rank ? *t : ait_ref_unsqueezed(t, 0));)
static ait_tensor at_least_2d(const ait_tensor *t) {
  ait_tensor v = t->rank ? *t : ait_ref_unsqueezed(t, 0);
  return v.rank == 1 ? ait_ref_unsqueezed(&v, 0) : v;
}
VIEW(atleast_2d, return give_view(call, t, at_least_2d(t));)
static ait_tensor at_least_3d(const ait_tensor *t) {
  ait_tensor v = at_least_2d(t);
  return v.rank == 2 ? ait_ref_unsqueezed(&v, 2) : v;
}
VIEW(atleast_3d, return give_view(call, t, at_least_3d(t));)
/* Of each tensor of a list. */
ait_status ait_ref_atleast_sequence(ait_ref_call *call) {
  ait_tensor *items, *views;
  uint32_t count;
  char rank = call->node->op[strlen("aten.atleast_")];
  AIT_TRY(ait_ref_tensors(call, 0, &items, &count));
  views = ait_alloc_zero(call->allocator, count * sizeof *views, _Alignof(ait_tensor));
  for (uint32_t i = 0; views && i < count; ++i) {
    const ait_tensor *t = &items[i];
    ait_tensor v = rank == '3' ? at_least_3d(t) : rank == '2' ? at_least_2d(t) : t->rank ? *t : ait_ref_unsqueezed(t, 0);
    views[i] = ait_tensor_retain(&v);
  }
  if (views) ait_ref_set_list(call, 0, views, count);
  ait_free(call->allocator, items, count * sizeof *items);
  return views ? AIT_OK : AIT_OOM();
}

/* ---- another order ----------------------------------------------------------------------------------------------------------- */
static ait_status permuted(const ait_ref_call *call, const ait_tensor *t, const int64_t *dims, int32_t count, ait_tensor *out) {
  bool seen[AIT_MAX_RANK] = {false};
  if (count != t->rank)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d dimensions are given for a tensor of rank %d", count, t->rank);
  *out = *t;
  for (int32_t i = 0; i < count; ++i) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, dims[i], t->rank, &d));
    if (seen[d]) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dimension %d is given twice", d);
    seen[d] = true;
    out->shape[i] = t->shape[d];
    out->strides[i] = t->strides[d];
  }
  return AIT_OK;
}
VIEW(permute, {
  int64_t dims[AIT_MAX_RANK];
  int32_t count;
  ait_tensor v;
  AIT_TRY(ait_ref_ints(call, 1, dims, &count));
  AIT_TRY(permuted(call, t, dims, count, &v));
  return give_view(call, t, v);
})
COPY(permute_copy, permute)

VIEW(transpose, {
  int32_t a;
  int32_t b;
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &a));
  AIT_TRY(ait_ref_dim_arg(call, 2, 1, t->rank, &b));
  return give_view(call, t, ait_ref_transposed(t, a, b));
})
COPY(transpose_copy, transpose)

VIEW(t, {
  if (t->rank > 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d is not a matrix", t->rank);
  return give_view(call, t, t->rank == 2 ? ait_ref_transposed(t, 0, 1) : *t);
})
COPY(t_copy, t)

VIEW(mT, {
  if (t->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d is not a matrix", t->rank);
  return give_view(call, t, ait_ref_transposed(t, t->rank - 2, t->rank - 1));
})

/* Conjugation is not lazy here: complex input gives a new tensor. */
ait_status ait_ref_mH(ait_ref_call *call) {
  AIT_TRY(ait_ref_mT(call));
  ait_tensor *t = &call->results[0].as.tensor;
  if (!ait_dtype_is_complex(t->dtype)) return AIT_OK;
  AIT_TRY(ait_ref_copied(call, ait_ref_mT));
  t = &call->results[0].as.tensor;
  double complex block[AIT_REF_BLOCK];
  int64_t count = ait_tensor_count(t);
  for (int64_t at = 0; at < count; at += AIT_REF_BLOCK) {
    int64_t n = count - at < AIT_REF_BLOCK ? count - at : AIT_REF_BLOCK;
    ait_ref_load(t, at, n, AIT_REF_C, block);
    for (int64_t k = 0; k < n; ++k) block[k] = conj(block[k]);
    ait_ref_store(t, at, n, AIT_REF_C, block);
  }
  return AIT_OK;
}

VIEW(numpy_T, {
  ait_tensor v = *t;
  for (int32_t d = 0; d < t->rank; ++d) {
    v.shape[d] = t->shape[t->rank - 1 - d];
    v.strides[d] = t->strides[t->rank - 1 - d];
  }
  return give_view(call, t, v);
})

static ait_status moved_dims(const ait_ref_call *call, const ait_tensor *t, int64_t order[AIT_MAX_RANK]) {
  int64_t from[AIT_MAX_RANK], to[AIT_MAX_RANK];
  int32_t count, to_count, source, target;
  bool moved[AIT_MAX_RANK] = {false};
  AIT_TRY(ait_ref_ints(call, 1, from, &count));
  AIT_TRY(ait_ref_ints(call, 2, to, &to_count));
  if (count != to_count) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d dimensions are moved to %d places", count, to_count);
  for (int32_t d = 0; d < t->rank; ++d) order[d] = -1;
  for (int32_t i = 0; i < count; ++i) {
    AIT_TRY(ait_ref_dim(call, from[i], t->rank, &source));
    AIT_TRY(ait_ref_dim(call, to[i], t->rank, &target));
    if (moved[source] || order[target] >= 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a dimension is given twice");
    moved[source] = true;
    order[target] = source;
  }
  for (int32_t d = 0, at = 0; d < t->rank; ++d) {
    if (moved[d]) continue;
    while (order[at] >= 0) ++at;
    order[at] = d;
  }
  return AIT_OK;
}
VIEW(movedim, {
  int64_t order[AIT_MAX_RANK];
  ait_tensor v;
  if (t->rank == 0) return give_view(call, t, *t);
  AIT_TRY(moved_dims(call, t, order));
  AIT_TRY(permuted(call, t, order, t->rank, &v));
  return give_view(call, t, v);
})

/* ---- parts ------------------------------------------------------------------------------------------------------------------- */
VIEW(select, {
  int32_t dim;
  int64_t index;
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 cannot be indexed");
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(ait_ref_int(call, 2, &index));
  AIT_TRY(ait_ref_wrap_index(call, index, t->shape[dim], &index));
  return give_view(call, t, ait_ref_selected(t, dim, index));
})
COPY(select_copy, select)

VIEW(slice, {
  int32_t dim;
  int64_t start;
  int64_t length;
  int64_t step;
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 cannot be sliced");
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(ait_ref_slice_args(call, 2, t->shape[dim], &start, &length, &step));
  ait_tensor v = ait_ref_narrowed(t, dim, start, length);
  v.strides[dim] *= step;
  return give_view(call, t, v);
})
COPY(slice_copy, slice)

VIEW(narrow, {
  int32_t dim;
  int64_t start;
  int64_t length;
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 cannot be narrowed");
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(ait_ref_int(call, 2, &start));
  AIT_TRY(ait_ref_int(call, 3, &length));
  int64_t size = t->shape[dim];
  if (start < 0) start += size;
  if (start < 0 || length < 0 || start > size || length > size - start)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "start %lld and length %lld exceed size %lld", (long long)start,
                         (long long)length, (long long)size);
  return give_view(call, t, ait_ref_narrowed(t, dim, start, length));
})
COPY(narrow_copy, narrow)

VIEW(diagonal, {
  int64_t offset;
  int64_t dim1;
  int64_t dim2;
  ait_tensor v;
  AIT_TRY(ait_ref_int_or(call, 1, 0, &offset));
  AIT_TRY(ait_ref_int_or(call, 2, 0, &dim1));
  AIT_TRY(ait_ref_int_or(call, 3, 1, &dim2));
  AIT_TRY(ait_ref_diagonal_view(call, t, offset, dim1, dim2, &v));
  return give_view(call, t, v);
})
COPY(diagonal_copy, diagonal)

/* The memory that a view may reach, in elements from its storage's first one; a borrowed tensor owns what its shape covers. */
static void extent(const ait_tensor *t, int64_t *out_own_offset, int64_t *out_elements, char **out_base) {
  int64_t size = (int64_t)ait_dtype_size(t->dtype);
  char *base = t->storage ? ait_storage_data(t->storage) : t->data;
  *out_base = base;
  *out_own_offset = t->data && base ? ((char *)t->data - base) / size : 0;
  if (t->storage) {
    *out_elements = (int64_t)ait_storage_bytes(t->storage) / size;
    return;
  }
  int64_t last = 0;
  for (int32_t d = 0; d < t->rank; ++d)
    if (t->strides[d] > 0 && t->shape[d] > 0) last += (t->shape[d] - 1) * t->strides[d];
  *out_elements = ait_tensor_count(t) ? last + 1 : 0;
}

VIEW(as_strided, {
  ait_tensor v = *t;
  int32_t rank;
  int64_t own;
  int64_t elements;
  int64_t offset;
  char *base;
  AIT_TRY(ait_ref_ints(call, 1, v.shape, &v.rank));
  AIT_TRY(ait_ref_ints(call, 2, v.strides, &rank));
  if (rank != v.rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d sizes but %d strides", v.rank, rank);
  extent(t, &own, &elements, &base);
  AIT_TRY(ait_ref_int_or(call, 3, own, &offset));
  for (int32_t d = 0; d < rank; ++d)
    if (v.shape[d] < 0 || v.strides[d] < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a size or stride is negative");
  if (ait_tensor_count(&v) > 0 && !ait_strides_fit(v.rank, v.shape, v.strides, offset, elements))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the view exceeds its storage of %lld elements", (long long)elements);
  v.data = base ? base + offset * (int64_t)ait_dtype_size(t->dtype) : NULL;
  return give_view(call, t, v);
})
COPY(as_strided_copy, as_strided)

/* ---- expansion --------------------------------------------------------------------------------------------------------------- */
VIEW(expand_to, {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  ait_tensor v;
  AIT_TRY(ait_ref_ints(call, 1, shape, &rank));
  AIT_TRY(ait_ref_expanded(call, t, rank, shape, &v));
  return give_view(call, t, v);
})
COPY(expand_copy, expand_to)

VIEW(expand_as, {
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  ait_tensor v;
  AIT_TRY(shape_of_arg(call, 1, &rank, shape));
  AIT_TRY(ait_ref_expanded(call, t, rank, shape, &v));
  return give_view(call, t, v);
})

ait_status ait_ref_broadcast_tensors(ait_ref_call *call) {
  ait_tensor *items;
  uint32_t count;
  int32_t rank = 0;
  int64_t shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensors(call, 0, &items, &count));
  const ait_tensor **pointers = ait_alloc(call->allocator, count * sizeof *pointers, _Alignof(void *));
  ait_status status = pointers ? AIT_OK : AIT_OOM();
  for (uint32_t i = 0; pointers && i < count; ++i) pointers[i] = &items[i];
  if (status == AIT_OK) status = ait_ref_broadcast(call, pointers, count, &rank, shape);
  ait_free(call->allocator, pointers, count * sizeof *pointers);
  if (status != AIT_OK) {
    ait_free(call->allocator, items, count * sizeof *items);
    return status;
  }
  for (uint32_t i = 0; i < count; ++i) {
    ait_storage *storage = items[i].storage;
    items[i] = ait_ref_expand(&items[i], rank, shape);
    items[i].storage = ait_storage_retain(storage);
  }
  ait_ref_set_list(call, 0, items, count);
  return AIT_OK;
}

/* ---- lists of parts ---------------------------------------------------------------------------------------------------------- */
typedef struct part_list {
  ait_tensor *items;
  uint32_t count, capacity;
} part_list;

static ait_status parts_create(const ait_ref_call *call, int64_t count, part_list *out) {
  size_t bytes;
  if (count < 0 || count > UINT32_MAX || ait_mul_overflows((size_t)count, sizeof(ait_tensor), &bytes))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "cannot be split into %lld parts", (long long)count);
  *out = (part_list){ait_alloc_zero(call->allocator, bytes, _Alignof(ait_tensor)), 0, (uint32_t)count};
  return out->items ? AIT_OK : AIT_OOM();
}

static void parts_add(part_list *list, const ait_tensor *base, ait_tensor view) {
  view.storage = ait_storage_retain(base->storage);
  list->items[list->count++] = view;
}

VIEW(unbind, {
  int32_t dim;
  part_list list;
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 cannot be taken apart");
  AIT_TRY(ait_ref_dim_arg(call, 1, 0, t->rank, &dim));
  AIT_TRY(parts_create(call, t->shape[dim], &list));
  for (int64_t i = 0; i < t->shape[dim]; ++i) parts_add(&list, t, ait_ref_selected(t, dim, i));
  ait_ref_set_list(call, 0, list.items, list.count);
  return AIT_OK;
})
COPY(unbind_copy, unbind)

/* Parts of `each`, the last one shorter; at least one part. */
static ait_status split_equally(ait_ref_call *call, const ait_tensor *t, int32_t dim, int64_t each) {
  int64_t size = t->shape[dim];
  part_list list;
  if (each < 0 || (each == 0 && size > 0)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "parts of size %lld", (long long)each);
  AIT_TRY(parts_create(call, size == 0 ? 1 : (size - 1) / each + 1, &list));
  for (int64_t at = 0; at == 0 || at < size; at += each ? each : 1)
    parts_add(&list, t, ait_ref_narrowed(t, dim, at, size - at < each ? size - at : each));
  ait_ref_set_list(call, 0, list.items, list.count);
  return AIT_OK;
}

/* starts[i]..starts[i+1]; slices are clamped as Python's. */
static ait_status split_at(ait_ref_call *call, const ait_tensor *t, int32_t dim, const int64_t *cuts, uint32_t cut_count) {
  int64_t size = t->shape[dim], from = 0;
  part_list list;
  AIT_TRY(parts_create(call, (int64_t)cut_count + 1, &list));
  for (uint32_t i = 0; i <= cut_count; ++i) {
    int64_t to = i < cut_count ? cuts[i] : size;
    if (to < 0) to += size;
    to = to < 0 ? 0 : to > size ? size : to;
    parts_add(&list, t, ait_ref_narrowed(t, dim, from < size ? from : size, to > from ? to - from : 0));
    from = to;
  }
  ait_ref_set_list(call, 0, list.items, list.count);
  return AIT_OK;
}

/* n parts; the first size % n are one longer. */
static ait_status split_into(ait_ref_call *call, const ait_tensor *t, int32_t dim, int64_t sections) {
  part_list list;
  if (sections <= 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld sections", (long long)sections);
  AIT_TRY(parts_create(call, sections, &list));
  int64_t size = t->shape[dim], from = 0;
  for (int64_t i = 0; i < sections; ++i) {
    int64_t length = size / sections + (i < size % sections);
    parts_add(&list, t, ait_ref_narrowed(t, dim, from, length));
    from += length;
  }
  ait_ref_set_list(call, 0, list.items, list.count);
  return AIT_OK;
}

static ait_status split_dim(const ait_ref_call *call, uint32_t arg, const ait_tensor *t, int32_t *out) {
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank 0 cannot be split");
  return ait_ref_dim_arg(call, arg, 0, t->rank, out);
}

VIEW(split, {
  int32_t dim;
  int64_t each;
  AIT_TRY(split_dim(call, 2, t, &dim));
  AIT_TRY(ait_ref_int(call, 1, &each));
  return split_equally(call, t, dim, each);
})
COPY(split_copy, split)

VIEW(chunk, {
  int32_t dim;
  int64_t chunks;
  AIT_TRY(split_dim(call, 2, t, &dim));
  AIT_TRY(ait_ref_int(call, 1, &chunks));
  if (chunks <= 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld chunks", (long long)chunks);
  int64_t each = (t->shape[dim] + chunks - 1) / chunks;
  return each == 0 ? split_into(call, t, dim, chunks) : split_equally(call, t, dim, each);
})

static ait_status split_by_sizes(ait_ref_call *call, const ait_tensor *t, int32_t dim, const int64_t *sizes, uint32_t count) {
  part_list list;
  int64_t from = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (sizes[i] < 0 || sizes[i] > t->shape[dim] - from) from = INT64_MAX;
    else from += sizes[i];
    if (from == INT64_MAX) break;
  }
  if (from != t->shape[dim])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the sizes of the parts do not add up to %lld", (long long)t->shape[dim]);
  AIT_TRY(parts_create(call, count, &list));
  from = 0;
  for (uint32_t i = 0; i < count; from += sizes[i++]) parts_add(&list, t, ait_ref_narrowed(t, dim, from, sizes[i]));
  ait_ref_set_list(call, 0, list.items, list.count);
  return AIT_OK;
}
VIEW(split_with_sizes, {
  int32_t dim;
  int64_t *sizes;
  uint32_t count;
  AIT_TRY(split_dim(call, 2, t, &dim));
  AIT_TRY(ait_ref_int_array(call, 1, &sizes, &count));
  ait_status status = split_by_sizes(call, t, dim, sizes, count);
  ait_free(call->allocator, sizes, count * sizeof *sizes);
  return status;
})
COPY(split_with_sizes_copy, split_with_sizes)

static ait_status cut_by_array(ait_ref_call *call, const ait_tensor *t, int32_t dim, uint32_t arg) {
  int64_t *cuts;
  uint32_t count;
  AIT_TRY(ait_ref_int_array(call, arg, &cuts, &count));
  ait_status status = split_at(call, t, dim, cuts, count);
  ait_free(call->allocator, cuts, count * sizeof *cuts);
  return status;
}

VIEW(tensor_split_indices, {
  int32_t dim;
  AIT_TRY(split_dim(call, 2, t, &dim));
  return cut_by_array(call, t, dim, 1);
})
VIEW(tensor_split_sections, {
  int32_t dim;
  int64_t sections;
  AIT_TRY(split_dim(call, 2, t, &dim));
  AIT_TRY(ait_ref_int(call, 1, &sections));
  return split_into(call, t, dim, sections);
})
/* The second tensor holds the number of sections (rank 0) or the cuts. */
VIEW(tensor_split, {
  int32_t dim;
  const ait_tensor *where;
  ait_tensor cuts;
  AIT_TRY(split_dim(call, 2, t, &dim));
  AIT_TRY(ait_ref_tensor(call, 1, &where));
  AIT_TRY(ait_ref_as_i64(call, where, &cuts));
  const int64_t *values = cuts.data;
  ait_status status = where->rank == 0 ? split_into(call, t, dim, values[0]) : split_at(call, t, dim, values, (uint32_t)cuts.shape[0]);
  ait_tensor_release(&cuts);
  return status;
})

/* hsplit cuts dim 1 (dim 0 of vectors), vsplit dim 0, dsplit dim 2. */
static ait_status fixed_dim_split(ait_ref_call *call, int32_t least_rank, int32_t dim, bool array) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (t->rank < least_rank)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the tensor has rank %d, fewer than %d", t->rank, least_rank);
  if (dim >= t->rank) dim = 0;
  if (array) return cut_by_array(call, t, dim, 1);
  int64_t sections;
  AIT_TRY(ait_ref_int(call, 1, &sections));
  if (sections <= 0 || t->shape[dim] % sections != 0)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "size %lld cannot be split into %lld equal parts", (long long)t->shape[dim],
                         (long long)sections);
  return split_into(call, t, dim, sections);
}
ait_status ait_ref_hsplit_int(ait_ref_call *call) { return fixed_dim_split(call, 1, 1, false); }
ait_status ait_ref_hsplit_array(ait_ref_call *call) { return fixed_dim_split(call, 1, 1, true); }
ait_status ait_ref_vsplit_int(ait_ref_call *call) { return fixed_dim_split(call, 2, 0, false); }
ait_status ait_ref_vsplit_array(ait_ref_call *call) { return fixed_dim_split(call, 2, 0, true); }
ait_status ait_ref_dsplit_int(ait_ref_call *call) { return fixed_dim_split(call, 3, 2, false); }
ait_status ait_ref_dsplit_array(ait_ref_call *call) { return fixed_dim_split(call, 3, 2, true); }

ait_status ait_ref_getitem(ait_ref_call *call) {
  ait_tensor *items;
  uint32_t count;
  int64_t index;
  AIT_TRY(ait_ref_int(call, 1, &index));
  AIT_TRY(ait_ref_tensors(call, 0, &items, &count));
  ait_status status = ait_ref_wrap_index(call, index, (int64_t)count, &index);
  if (status == AIT_OK && items[index].dtype == AIT_DTYPE_NONE)
    status = ait_ref_error(call, AIT_CODE_INVALID_MODEL, "element %lld of the list is None", (long long)index);
  if (status == AIT_OK) ait_ref_set_view(call, 0, &items[index], &items[index]);
  ait_free(call->allocator, items, count * sizeof *items);
  return status;
}

/* ---- complex ----------------------------------------------------------------------------------------------------------------- */
static ait_dtype real_of(ait_dtype d) { return d == AIT_C128 ? AIT_F64 : d == AIT_C32 ? AIT_F16 : AIT_F32; }

VIEW(view_as_real, {
  if (!ait_dtype_is_complex(t->dtype)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the tensor is not complex");
  if (t->rank == AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  ait_tensor v = *t;
  v.dtype = real_of(t->dtype);
  for (int32_t d = 0; d < t->rank; ++d) v.strides[d] *= 2;
  v.shape[v.rank] = 2;
  v.strides[v.rank++] = 1;
  return give_view(call, t, v);
})
COPY(view_as_real_copy, view_as_real)

VIEW(view_as_complex, {
  bool known = t->dtype == AIT_F64 || t->dtype == AIT_F32 || t->dtype == AIT_F16;
  int32_t last = t->rank - 1;
  if (!known || last < 0 || t->shape[last] != 2 || t->strides[last] != 1)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the last dimension must hold pairs of floats side by side");
  ait_tensor v = *t;
  v.dtype = t->dtype == AIT_F64 ? AIT_C128 : t->dtype == AIT_F16 ? AIT_C32 : AIT_C64;
  v.rank = last;
  for (int32_t d = 0; d < last; ++d) {
    if (t->strides[d] % 2 != 0 && t->shape[d] > 1)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "odd strides cannot hold complex numbers");
    v.strides[d] = t->strides[d] / 2;
  }
  return give_view(call, t, v);
})
COPY(view_as_complex_copy, view_as_complex)

static ait_status part_of_complex(ait_ref_call *call, const ait_tensor *t, int64_t part) {
  ait_tensor v = *t;
  v.dtype = real_of(t->dtype);
  for (int32_t d = 0; d < t->rank; ++d) v.strides[d] *= 2;
  if (part && v.data) v.data = (char *)v.data + ait_dtype_size(v.dtype);
  return give_view(call, t, v);
}
VIEW(real, return ait_dtype_is_complex(t->dtype) ? part_of_complex(call, t, 0) : give_view(call, t, *t);)
/* Real tensors are their own conjugates. */
VIEW(conj, return ait_dtype_is_complex(t->dtype) ? ait_ref_conj_physical(call) : give_view(call, t, *t);)
VIEW(imag, {
  if (!ait_dtype_is_complex(t->dtype)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the tensor is not complex");
  return part_of_complex(call, t, 1);
})

/* ---- copies and casts -------------------------------------------------------------------------------------------------------- */
enum { FORMAT_CONTIGUOUS = 0, FORMAT_PRESERVE = 1, FORMAT_CHANNELS_LAST = 2, FORMAT_CHANNELS_LAST_3D = 3 };

/* Contiguous strides of a memory format; false when the rank does not fit it. */
static bool format_strides(ait_tensor *t, int64_t format) {
  ait_tensor_set_contiguous(t);
  if (format == FORMAT_CONTIGUOUS || format == FORMAT_PRESERVE) return true;
  if (t->rank != (format == FORMAT_CHANNELS_LAST ? 4 : 5)) return false;
  int64_t stride = t->shape[1];
  t->strides[1] = 1;
  for (int32_t d = t->rank; d-- > 2; stride *= t->shape[d]) t->strides[d] = stride;
  t->strides[0] = stride;
  return true;
}

static bool has_format(const ait_tensor *t, int64_t format) {
  if (format == FORMAT_CONTIGUOUS) return ait_tensor_is_contiguous(t);
  ait_tensor want = *t;
  if (!format_strides(&want, format)) return false;
  for (int32_t d = 0; d < t->rank; ++d)
    if (t->shape[d] > 1 && t->strides[d] != want.strides[d]) return false;
  return true;
}

static ait_status new_with_format(ait_ref_call *call, ait_dtype dtype, const ait_tensor *like, int64_t format, ait_tensor *out) {
  if (format == FORMAT_PRESERVE) return ait_ref_new_like(call, 0, dtype, like, out);
  AIT_TRY(ait_ref_temp(call, dtype, like->rank, like->shape, out));
  bool fits = format_strides(out, format);
  ait_ref_set(call, 0, *out);
  return fits ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a tensor of rank %d has no channels-last layout", like->rank);
}

static ait_status copy_with_format(ait_ref_call *call, ait_dtype dtype, const ait_tensor *t, int64_t format) {
  ait_tensor out;
  AIT_TRY(new_with_format(call, dtype, t, format, &out));
  return ait_ref_move(call, &out, t);
}

VIEW(clone, {
  int64_t format;
  AIT_TRY(ait_ref_int_or(call, 1, FORMAT_PRESERVE, &format));
  return copy_with_format(call, t->dtype, t, format);
})
VIEW(lift_fresh_copy, return copy_with_format(call, t->dtype, t, FORMAT_PRESERVE);)

VIEW(contiguous, {
  int64_t format;
  AIT_TRY(ait_ref_int_or(call, 1, FORMAT_CONTIGUOUS, &format));
  if (format == FORMAT_PRESERVE) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "preserve_format is no layout");
  return has_format(t, format) ? give_view(call, t, *t) : copy_with_format(call, t->dtype, t, format);
})

/* The same tensor when nothing changes and no copy is asked for. */
static ait_status convert(ait_ref_call *call, const ait_tensor *t, ait_dtype dtype, bool copy, int64_t format) {
  if (!copy && dtype == t->dtype && (format == FORMAT_PRESERVE || has_format(t, format))) return give_view(call, t, *t);
  return copy_with_format(call, dtype, t, format);
}

static ait_status to_with(ait_ref_call *call, const ait_tensor *t, uint32_t dtype_arg, uint32_t copy_arg, uint32_t format_arg) {
  bool copy;
  int64_t format;
  AIT_TRY(ait_ref_bool_or(call, copy_arg, false, &copy));
  AIT_TRY(ait_ref_int_or(call, format_arg, FORMAT_PRESERVE, &format));
  return convert(call, t, ait_ref_dtype(call, dtype_arg, t->dtype), copy, format);
}
VIEW(to_dtype, return to_with(call, t, 1, 3, 4);)
VIEW(to_device, return to_with(call, t, 2, 4, 5);)
VIEW(to_dtype_layout, return to_with(call, t, 1, 6, 7);)
VIEW(type_as, {
  const ait_tensor *other;
  AIT_TRY(ait_ref_tensor(call, 1, &other));
  return convert(call, t, other->dtype, false, FORMAT_PRESERVE);
})
VIEW(to_other, {
  const ait_tensor *other;
  bool copy;
  AIT_TRY(ait_ref_tensor(call, 1, &other));
  AIT_TRY(ait_ref_bool_or(call, 3, false, &copy));
  return convert(call, t, other->dtype, copy, FORMAT_PRESERVE);
})
VIEW(_to_copy, {
  int64_t format;
  AIT_TRY(ait_ref_int_or(call, 6, FORMAT_PRESERVE, &format));
  return copy_with_format(call, ait_ref_dtype(call, 1, t->dtype), t, format);
})
VIEW(cast, return copy_with_format(call, ait_ref_dtype(call, 1, t->dtype), t, FORMAT_CONTIGUOUS);)
VIEW(chalf, return copy_with_format(call, ait_ref_widen(call, AIT_C32), t, FORMAT_PRESERVE);)

/* self's dtype and layout, src's elements. */
VIEW(copy, {
  const ait_tensor *src;
  ait_tensor out;
  ait_tensor wide;
  AIT_TRY(ait_ref_tensor(call, 1, &src));
  AIT_TRY(ait_ref_expanded(call, src, t->rank, t->shape, &wide));
  AIT_TRY(ait_ref_new_like(call, 0, t->dtype, t, &out));
  return ait_ref_move(call, &out, &wide);
})
