/* ONNX: reading and writing by index, where negative indices count from the end. */
#include "backends/reference/onnx.h"

static ait_status wrap(const ait_ref_call *call, int64_t index, int64_t size, int64_t *out) {
  return ait_ref_wrap_index(call, index, size, out);
}

static int64_t int_at(const ait_tensor *t, const int64_t *index) { return ait_element_i64(ait_ref_at(t, index), t->dtype); }

/* ---- gather ----------------------------------------------------------------------------------------------------------------------*/

/* (x, indices, axis) */
ait_status ait_ref_onnx_gather_elements(ait_ref_call *call) {
  const ait_tensor *x, *indices;
  int64_t axis, index[AIT_MAX_RANK] = {0}, from[AIT_MAX_RANK];
  int32_t d;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &indices));
  AIT_TRY(ait_ref_int(call, 2, &axis));
  AIT_TRY(ait_ref_dim(call, axis, x->rank, &d));
  if (indices->rank != x->rank)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operand and indices have ranks %d and %d", x->rank, indices->rank);
  for (int32_t k = 0; k < x->rank; ++k)
    if (k != d && indices->shape[k] > x->shape[k])
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dim %d of the indices is larger than the operand's", k);
  AIT_TRY(ait_ref_new(call, 0, x->dtype, x->rank, indices->shape, &out));
  size_t size = ait_dtype_size(x->dtype);
  char *to = out.data;
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  do {
    memcpy(from, index, sizeof from);
    AIT_TRY(wrap(call, int_at(indices, index), x->shape[d], &from[d]));
    memcpy(to, ait_ref_at(x, from), size);
    to += size;
  } while (ait_ref_next(x->rank, indices->shape, index));
  return AIT_OK;
}

/* Elements [0, depth) of the last dim of `indices` at `index`, as a place in dims [first, first + depth) of x. */
static ait_status place_of(const ait_ref_call *call, const ait_tensor *x, const ait_tensor *indices, int64_t *index, int32_t first,
                           int64_t depth, int64_t *out) {
  for (int64_t k = 0; k < depth; ++k) {
    index[indices->rank - 1] = k;
    AIT_TRY(wrap(call, int_at(indices, index), x->shape[first + k], &out[first + k]));
  }
  return AIT_OK;
}

/* (x, indices, batch_dims) */
ait_status ait_ref_onnx_gather_nd(ait_ref_call *call) {
  const ait_tensor *x, *indices;
  int64_t batch, depth, shape[2 * AIT_MAX_RANK], outer[AIT_MAX_RANK] = {0}, at[AIT_MAX_RANK];
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &indices));
  AIT_TRY(ait_ref_int(call, 2, &batch));
  depth = indices->rank ? indices->shape[indices->rank - 1] : 0;
  if (indices->rank < 1 || depth < 1 || batch < 0 || batch >= indices->rank || batch + depth > x->rank)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld index numbers after %lld batch dims for rank %d", (long long)depth,
                         (long long)batch, x->rank);
  int32_t outer_rank = indices->rank - 1, inner = x->rank - (int32_t)(batch + depth);
  for (int32_t d = 0; d < batch; ++d)
    if (indices->shape[d] != x->shape[d]) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "batch dim %d differs", d);
  for (int32_t d = 0; d < outer_rank; ++d) shape[d] = indices->shape[d];
  for (int32_t d = 0; d < inner; ++d) shape[outer_rank + d] = x->shape[x->rank - inner + d];
  if (outer_rank + inner > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  AIT_TRY(ait_ref_new(call, 0, x->dtype, outer_rank + inner, shape, &out));
  size_t size = ait_dtype_size(x->dtype);
  char *to = out.data;
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  do {
    int64_t index[AIT_MAX_RANK], rest[AIT_MAX_RANK] = {0};
    memcpy(index, outer, sizeof index);
    for (int32_t d = 0; d < batch; ++d) at[d] = outer[d];
    AIT_TRY(place_of(call, x, indices, index, (int32_t)batch, depth, at));
    do {
      for (int32_t d = 0; d < inner; ++d) at[x->rank - inner + d] = rest[d];
      memcpy(to, ait_ref_at(x, at), size);
      to += size;
    } while (ait_ref_next(inner, x->shape + x->rank - inner, rest));
  } while (ait_ref_next(outer_rank, indices->shape, outer));
  return AIT_OK;
}

/* ---- scatter ---------------------------------------------------------------------------------------------------------------------*/

typedef enum combine { REPLACE, ADD, MULTIPLY, MAXIMUM, MINIMUM, COMBINE_COUNT } combine;

static ait_status combine_of(const ait_ref_call *call, uint32_t arg, combine *out) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  const char *name = ait_ref_string(call, arg);
  for (int k = 0; k < COMBINE_COUNT; ++k) {
    *out = (combine)k;
    if (strcmp(name ? name : "none", names[k]) == 0) return AIT_OK;
  }
  return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "reduction '%s' is not known", name);
}

static void combine_float(void *to, ait_dtype dtype, double v, combine how) {
  double old = ait_element_f64(to, dtype);
  if (how == ADD) v += old;
  else if (how == MULTIPLY) v *= old;
  else if (isnan(old) || isnan(v)) v = NAN;
  else if (how == MAXIMUM) v = old > v ? old : v;
  else v = old < v ? old : v;
  ait_element_set_f64(to, dtype, v);
}

static void combine_int(void *to, ait_dtype dtype, int64_t v, combine how) {
  int64_t old = ait_element_i64(to, dtype);
  if (how == ADD) v = (int64_t)((uint64_t)v + (uint64_t)old);
  else if (how == MULTIPLY) v = (int64_t)((uint64_t)v * (uint64_t)old);
  else if (how == MAXIMUM) v = old > v ? old : v;
  else v = old < v ? old : v;
  ait_element_set_i64(to, dtype, v);
}

static void write_element(void *to, const void *from, ait_dtype dtype, ait_dtype from_dtype, combine how) {
  if (how == REPLACE && dtype == from_dtype) memcpy(to, from, ait_dtype_size(dtype));
  else if (how == REPLACE) ait_element_set_f64(to, dtype, ait_element_f64(from, from_dtype));
  else if (ait_dtype_is_integer(dtype)) combine_int(to, dtype, ait_element_i64(from, from_dtype), how);
  else combine_float(to, dtype, ait_element_f64(from, from_dtype), how);
}

static ait_status copy_of_operand(ait_ref_call *call, const ait_tensor **out_x, ait_tensor *out) {
  AIT_TRY(ait_ref_tensor(call, 0, out_x));
  AIT_TRY(ait_ref_new(call, 0, (*out_x)->dtype, (*out_x)->rank, (*out_x)->shape, out));
  return ait_ref_move(call, out, *out_x);
}

/* (x, indices, updates, axis, reduction) */
ait_status ait_ref_onnx_scatter_elements(ait_ref_call *call) {
  const ait_tensor *x, *indices, *updates;
  int64_t axis, index[AIT_MAX_RANK] = {0}, to[AIT_MAX_RANK];
  int32_t d;
  combine how;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 1, &indices));
  AIT_TRY(ait_ref_tensor(call, 2, &updates));
  AIT_TRY(ait_ref_int(call, 3, &axis));
  AIT_TRY(combine_of(call, 4, &how));
  AIT_TRY(copy_of_operand(call, &x, &out));
  AIT_TRY(ait_ref_dim(call, axis, x->rank, &d));
  if (indices->rank != x->rank || !ait_tensor_same_shape(indices, updates))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operand, indices and updates do not fit");
  for (int32_t k = 0; k < x->rank; ++k)
    if (k != d && indices->shape[k] > x->shape[k])
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dim %d of the indices is larger than the operand's", k);
  if (ait_tensor_count(indices) == 0) return AIT_OK;
  do {
    memcpy(to, index, sizeof to);
    AIT_TRY(wrap(call, int_at(indices, index), x->shape[d], &to[d]));
    write_element(ait_ref_at(&out, to), ait_ref_at(updates, index), out.dtype, updates->dtype, how);
  } while (ait_ref_next(x->rank, indices->shape, index));
  return AIT_OK;
}

/* (x, indices, updates, reduction) */
ait_status ait_ref_onnx_scatter_nd(ait_ref_call *call) {
  const ait_tensor *x, *indices, *updates;
  int64_t outer[AIT_MAX_RANK] = {0}, at[AIT_MAX_RANK], depth;
  combine how;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 1, &indices));
  AIT_TRY(ait_ref_tensor(call, 2, &updates));
  AIT_TRY(combine_of(call, 3, &how));
  AIT_TRY(copy_of_operand(call, &x, &out));
  depth = indices->rank ? indices->shape[indices->rank - 1] : 0;
  if (indices->rank < 1 || depth > x->rank)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld index numbers for rank %d", (long long)depth, x->rank);
  int32_t outer_rank = indices->rank - 1, inner = x->rank - (int32_t)depth;
  bool fits = updates->rank == outer_rank + inner;
  for (int32_t d = 0; fits && d < updates->rank; ++d)
    fits = updates->shape[d] == (d < outer_rank ? indices->shape[d] : x->shape[depth + d - outer_rank]);
  if (!fits) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operand, indices and updates do not fit");
  if (ait_tensor_count(updates) == 0) return AIT_OK;
  do {
    int64_t index[AIT_MAX_RANK], rest[AIT_MAX_RANK] = {0}, from[AIT_MAX_RANK];
    memcpy(index, outer, sizeof index);
    memcpy(from, outer, sizeof from);
    AIT_TRY(place_of(call, x, indices, index, 0, depth, at));
    do {
      for (int32_t d = 0; d < inner; ++d) at[depth + d] = from[outer_rank + d] = rest[d];
      write_element(ait_ref_at(&out, at), ait_ref_at(updates, from), out.dtype, updates->dtype, how);
    } while (ait_ref_next(inner, x->shape + depth, rest));
  } while (ait_ref_next(outer_rank, indices->shape, outer));
  return AIT_OK;
}

/* (past, update, write_indices?, axis, mode): the update goes into the cache at the sequence's position, of each batch its own. */
ait_status ait_ref_onnx_tensor_scatter(ait_ref_call *call) {
  const ait_tensor *x, *update, *starts = ait_ref_tensor_or_null(call, 2);
  int64_t axis, index[AIT_MAX_RANK] = {0}, to[AIT_MAX_RANK];
  int32_t d;
  const char *mode = ait_ref_string(call, 4);
  bool circular = mode && strcmp(mode, "circular") == 0;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 1, &update));
  AIT_TRY(ait_ref_int(call, 3, &axis));
  AIT_TRY(copy_of_operand(call, &x, &out));
  AIT_TRY(ait_ref_dim(call, axis, x->rank, &d));
  bool fits = update->rank == x->rank && d > 0 && (!starts || (starts->rank == 1 && starts->shape[0] == x->shape[0]));
  for (int32_t k = 0; fits && k < x->rank; ++k) fits = k == d ? update->shape[k] <= x->shape[k] : update->shape[k] == x->shape[k];
  if (!fits) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "cache, update and positions do not fit");
  if (ait_tensor_count(update) == 0) return AIT_OK;
  size_t size = ait_dtype_size(x->dtype);
  do {
    int64_t start = starts ? ait_element_i64(ait_onnx_at(starts, index[0] * starts->strides[0]), starts->dtype) : 0;
    memcpy(to, index, sizeof to);
    to[d] = start + index[d];
    if (circular) to[d] %= x->shape[d];
    if (start < 0 || to[d] >= x->shape[d])
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "position %lld is outside of the cache of %lld", (long long)to[d],
                           (long long)x->shape[d]);
    memcpy(ait_ref_at(&out, to), ait_ref_at(update, index), size);
  } while (ait_ref_next(x->rank, update->shape, index));
  return AIT_OK;
}

/* ---- one-hot, compress, reverse ------------------------------------------------------------------------------------------------------*/

/* (indices, depth, [off, on], axis) */
ait_status ait_ref_onnx_one_hot(ait_ref_call *call) {
  const ait_tensor *indices, *values;
  double depth;
  int64_t axis, shape[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0}, at[AIT_MAX_RANK];
  int32_t d;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &indices));
  AIT_TRY(ait_onnx_number(call, 1, &depth));
  AIT_TRY(ait_ref_tensor(call, 2, &values));
  AIT_TRY(ait_ref_int(call, 3, &axis));
  if (values->rank != 1 || values->shape[0] != 2 || indices->rank >= AIT_MAX_RANK || !(depth >= 0 && depth < 1e15))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "depth or values do not fit");
  AIT_TRY(ait_ref_dim(call, axis, indices->rank + 1, &d));
  for (int32_t k = 0, from = 0; k <= indices->rank; ++k) shape[k] = k == d ? (int64_t)depth : indices->shape[from++];
  AIT_TRY(ait_ref_new(call, 0, values->dtype, indices->rank + 1, shape, &out));
  size_t size = ait_dtype_size(values->dtype);
  const char *off = values->data, *on = ait_onnx_at(values, values->strides[0]);
  for (int64_t i = 0, n = ait_tensor_count(&out); i < n; ++i) memcpy(ait_onnx_at(&out, i), off, size);
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  do {
    int64_t hot = (int64_t)ait_element_f64(ait_ref_at(indices, index), indices->dtype);
    if (hot < 0) hot += (int64_t)depth;
    if (hot < 0 || hot >= (int64_t)depth) continue; /* nothing is hot */
    for (int32_t k = 0, from = 0; k <= indices->rank; ++k) at[k] = k == d ? hot : index[from++];
    memcpy(ait_ref_at(&out, at), on, size);
  } while (ait_ref_next(indices->rank, indices->shape, index));
  return AIT_OK;
}

/* (x, condition, axis?): without an axis of the flattened operand */
ait_status ait_ref_onnx_compress(ait_ref_call *call) {
  const ait_tensor *x, *condition;
  ait_tensor flat, out;
  int64_t axis, shape[AIT_MAX_RANK], kept = 0;
  int32_t d;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &condition));
  AIT_TRY(ait_ref_int_or(call, 2, 0, &axis));
  if (condition->rank != 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the condition has rank %d, not 1", condition->rank);
  if (ait_ref_is_none(call, 2)) AIT_TRY(ait_ref_reshaped(call, x, 1, &(int64_t){ait_tensor_count(x)}, &flat));
  else flat = ait_tensor_retain(x);
  ait_status status = ait_ref_dim(call, axis, flat.rank, &d);
  int64_t n = !status && condition->shape[0] < flat.shape[d] ? condition->shape[0] : status ? 0 : flat.shape[d];
  for (int64_t i = 0; i < n; ++i) kept += ait_element_i64(ait_onnx_at(condition, i * condition->strides[0]), condition->dtype) != 0;
  memcpy(shape, flat.shape, sizeof shape);
  if (!status) shape[d] = kept;
  if (!status) status = ait_ref_new(call, 0, x->dtype, flat.rank, shape, &out);
  for (int64_t i = 0, at = 0; !status && i < n; ++i) {
    if (!ait_element_i64(ait_onnx_at(condition, i * condition->strides[0]), condition->dtype)) continue;
    ait_tensor from = ait_ref_narrowed(&flat, d, i, 1), to = ait_ref_narrowed(&out, d, at++, 1);
    status = ait_ref_move(call, &to, &from);
  }
  ait_tensor_release(&flat);
  return status;
}

/* (x, lengths, time_axis, batch_axis) */
ait_status ait_ref_onnx_reverse_sequence(ait_ref_call *call) {
  const ait_tensor *x, *lengths;
  int64_t time, batch, index[AIT_MAX_RANK] = {0}, from[AIT_MAX_RANK];
  int32_t t, b;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &lengths));
  AIT_TRY(ait_ref_int(call, 2, &time));
  AIT_TRY(ait_ref_int(call, 3, &batch));
  AIT_TRY(ait_ref_dim(call, time, x->rank, &t));
  AIT_TRY(ait_ref_dim(call, batch, x->rank, &b));
  if (x->rank < 2 || t == b || lengths->rank != 1 || lengths->shape[0] != x->shape[b])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "axes or lengths do not fit");
  AIT_TRY(ait_ref_new(call, 0, x->dtype, x->rank, x->shape, &out));
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  size_t size = ait_dtype_size(x->dtype);
  char *to = out.data;
  do {
    int64_t length = ait_element_i64(ait_onnx_at(lengths, index[b] * lengths->strides[0]), lengths->dtype);
    if (length < 0 || length > x->shape[t])
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "length %lld of %lld steps", (long long)length, (long long)x->shape[t]);
    memcpy(from, index, sizeof from);
    if (index[t] < length) from[t] = length - 1 - index[t];
    memcpy(to, ait_ref_at(x, from), size);
    to += size;
  } while (ait_ref_next(x->rank, x->shape, index));
  return AIT_OK;
}

/* ---- unique ----------------------------------------------------------------------------------------------------------------------*/

typedef struct unique {
  ait_tensor x; /* what is compared: slices along dim 0, each `width` elements, contiguous */
  int64_t n, width;
  int64_t *order, *group, *first, *count; /* order: slices as sorted; group: of each slice; first, count: of each group */
  int64_t groups;
} unique;

static int compare_elements(const void *a, const void *b, ait_dtype dtype) {
  if (ait_dtype_is_integer(dtype) && dtype != AIT_U64) {
    int64_t x = ait_element_i64(a, dtype), y = ait_element_i64(b, dtype);
    return (x > y) - (x < y);
  }
  double x = ait_element_f64(a, dtype), y = ait_element_f64(b, dtype);
  if (isnan(x) || isnan(y)) return isnan(x) - isnan(y); /* NaN is the greatest */
  return (x > y) - (x < y);
}

static int compare_slices(const unique *u, int64_t a, int64_t b) {
  for (int64_t k = 0; k < u->width; ++k) {
    int c = compare_elements(ait_onnx_at(&u->x, a * u->width + k), ait_onnx_at(&u->x, b * u->width + k), u->x.dtype);
    if (c) return c;
  }
  return 0;
}

/* Merge sort: stable, so that the first slice of a group is the first in the operand. */
static void sort_slices(const unique *u, int64_t *order, int64_t *scratch, int64_t n) {
  for (int64_t width = 1; width < n; width *= 2) {
    for (int64_t low = 0; low < n; low += 2 * width) {
      int64_t mid = ait_nn_min(low + width, n), high = ait_nn_min(low + 2 * width, n), i = low, j = mid;
      for (int64_t k = low; k < high; ++k)
        scratch[k] = i < mid && (j >= high || compare_slices(u, order[i], order[j]) <= 0) ? order[i++] : order[j++];
    }
    memcpy(order, scratch, (size_t)n * sizeof *order);
  }
}

/* Groups in sorted order, or in the order of their first slices. */
static void make_groups(unique *u, bool sorted, int64_t *scratch) {
  for (int64_t i = 0; i < u->n; ++i) u->order[i] = i;
  sort_slices(u, u->order, scratch, u->n);
  for (int64_t i = 0; i < u->n; ++i) {
    if (i == 0 || compare_slices(u, u->order[i - 1], u->order[i]) != 0) {
      u->first[u->groups] = u->order[i];
      u->count[u->groups++] = 0;
    }
    u->group[u->order[i]] = u->groups - 1;
    ++u->count[u->groups - 1];
  }
  if (sorted) return;
  int64_t *renamed = scratch, next = 0; /* of a group by its old number */
  for (int64_t g = 0; g < u->groups; ++g) renamed[g] = -1;
  for (int64_t i = 0; i < u->n; ++i)
    if (renamed[u->group[i]] < 0) renamed[u->group[i]] = next++;
  for (int64_t g = 0; g < u->groups; ++g) u->order[renamed[g]] = u->first[g];
  memcpy(u->first, u->order, (size_t)u->groups * sizeof *u->first);
  for (int64_t g = 0; g < u->groups; ++g) u->order[renamed[g]] = u->count[g];
  memcpy(u->count, u->order, (size_t)u->groups * sizeof *u->count);
  for (int64_t i = 0; i < u->n; ++i) u->group[i] = renamed[u->group[i]];
}

static ait_status give_unique(ait_ref_call *call, const unique *u, const ait_tensor *source, int32_t d) {
  int64_t shape[AIT_MAX_RANK];
  ait_tensor out;
  const int64_t *const parts[3] = {u->first, u->group, u->count};
  memcpy(shape, source->shape, sizeof shape);
  shape[d] = u->groups;
  AIT_TRY(ait_ref_new(call, 0, source->dtype, source->rank, shape, &out));
  for (int64_t g = 0; g < u->groups; ++g) {
    ait_tensor from = ait_ref_narrowed(source, d, u->first[g], 1), to = ait_ref_narrowed(&out, d, g, 1);
    AIT_TRY(ait_ref_move(call, &to, &from));
  }
  for (uint32_t k = 0; k < 3; ++k) {
    int64_t n = k == 1 ? u->n : u->groups;
    AIT_TRY(ait_ref_new(call, k + 1, AIT_I64, 1, &n, &out));
    if (n) memcpy(out.data, parts[k], (size_t)n * sizeof(int64_t));
  }
  return AIT_OK;
}

/* (x, axis?, sorted) -> unique slices, where each was first, which one each is, how often */
ait_status ait_ref_onnx_unique(ait_ref_call *call) {
  const ait_tensor *x;
  ait_tensor source = {0}, turned;
  unique u = {0};
  int64_t axis, *memory = NULL;
  bool sorted;
  int32_t d;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_int_or(call, 1, 0, &axis));
  AIT_TRY(ait_ref_bool(call, 2, &sorted));
  if (ait_ref_is_none(call, 1)) AIT_TRY(ait_ref_reshaped(call, x, 1, &(int64_t){ait_tensor_count(x)}, &source));
  else source = ait_tensor_retain(x);
  ait_status status = ait_ref_dim(call, axis, source.rank, &d);
  if (!status && source.rank == 0) status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the operand has no dims");
  size_t bytes = 0;
  if (status) goto cleanup;
  turned = source; /* dim d first, the others in order */
  for (int32_t k = d; k > 0; --k) turned = ait_ref_transposed(&turned, k, k - 1);
  AIT_GOTO(ait_ref_contiguous_of(call, &turned, &u.x));
  u.n = source.shape[d];
  u.width = u.n ? ait_tensor_count(&source) / u.n : 0;
  bytes = (size_t)(u.n * 5 + 1) * sizeof *memory;
  memory = ait_alloc_zero(call->allocator, bytes, _Alignof(int64_t));
  if (!memory) AIT_GOTO(AIT_OOM());
  u.order = memory, u.group = memory + u.n, u.first = memory + 2 * u.n, u.count = memory + 3 * u.n;
  make_groups(&u, sorted, memory + 4 * u.n);
  AIT_GOTO(give_unique(call, &u, &source, d));
cleanup:
  ait_free(call->allocator, memory, bytes);
  ait_tensor_release(&u.x);
  ait_tensor_release(&source);
  return status;
}
