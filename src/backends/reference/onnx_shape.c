/* ONNX: shapes as data. */
#include "backends/reference/onnx.h"

/* ---- helpers ---------------------------------------------------------------------------------------------------------------------*/

ait_status ait_onnx_ints(const ait_ref_call *call, uint32_t arg, int64_t *out, int32_t max, int32_t *out_count) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  int64_t index[AIT_MAX_RANK] = {0}, n = t ? ait_tensor_count(t) : 0;
  *out_count = -1;
  if (!t) return AIT_OK;
  if (n > max)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "argument %u holds %lld numbers, at most %d are possible", arg, (long long)n,
                         max);
  *out_count = 0;
  if (n == 0) return AIT_OK;
  do out[(*out_count)++] = ait_element_i64(ait_ref_at(t, index), t->dtype);
  while (ait_ref_next(t->rank, t->shape, index));
  return AIT_OK;
}

ait_status ait_onnx_axes(const ait_ref_call *call, uint32_t arg, int32_t rank, bool set[AIT_MAX_RANK], int32_t *out_count) {
  int64_t axes[AIT_MAX_RANK];
  AIT_TRY(ait_onnx_ints(call, arg, axes, AIT_MAX_RANK, out_count));
  for (int32_t d = 0; d < AIT_MAX_RANK; ++d) set[d] = false;
  for (int32_t i = 0; i < *out_count; ++i) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, axes[i], rank, &d));
    if (set[d]) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "axis %d is named twice", d);
    set[d] = true;
  }
  return AIT_OK;
}

ait_status ait_onnx_number(const ait_ref_call *call, uint32_t arg, double *out) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  ait_ref_scalar s;
  if (t) {
    if (ait_tensor_count(t) != 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "argument %u is not one number", arg);
    *out = ait_element_f64(t->data, t->dtype);
    return AIT_OK;
  }
  AIT_TRY(ait_ref_scalar_arg(call, arg, &s));
  *out = s.kind == AIT_KIND_FLOAT ? s.f : (double)s.i;
  return AIT_OK;
}

ait_status ait_onnx_delegate(ait_ref_call *call, const char *op, const ait_arg *args, uint32_t count) {
  ait_ref_fn fn = ait_ref_find(op);
  if (!fn) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "the reference backend has no operator '%s'", op);
  ait_region_node inner = *call->node;
  ait_ref_call inner_call = *call;
  inner.op = op;
  inner.args = args;
  inner.arg_count = count;
  inner_call.node = &inner;
  return fn(&inner_call);
}

ait_status ait_onnx_new(ait_ref_call *call, uint32_t k, ait_dtype otherwise, int32_t rank, const int64_t *shape, ait_tensor *out) {
  return ait_ref_new(call, k, ait_nn_dtype(call, k, otherwise), rank, shape, out);
}

static ait_arg int_list(ait_arg *items, const int64_t *v, int32_t n) {
  for (int32_t i = 0; i < n; ++i) items[i] = (ait_arg){.kind = AIT_ARG_INT, .as.i = v[i]};
  return (ait_arg){.kind = AIT_ARG_LIST, .count = (uint32_t)n, .as.list = items};
}

static ait_status delegate_shape(ait_ref_call *call, const char *op, const int64_t *shape, int32_t n) {
  ait_arg items[AIT_MAX_RANK];
  ait_arg args[2] = {call->node->args[0], int_list(items, shape, n)};
  return ait_onnx_delegate(call, op, args, 2);
}

/* ---- shape and size --------------------------------------------------------------------------------------------------------------*/

static int64_t clamped(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }

/* (x, start, end) */
ait_status ait_ref_onnx_shape(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t start, end;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_int(call, 1, &start));
  AIT_TRY(ait_ref_int(call, 2, &end));
  start = clamped(start < 0 ? start + x->rank : start, 0, x->rank);
  end = clamped(end < 0 ? end + x->rank : end, start, x->rank);
  AIT_TRY(ait_ref_new(call, 0, AIT_I64, 1, &(int64_t){end - start}, &out));
  memcpy(out.data, x->shape + start, (size_t)(end - start) * sizeof(int64_t));
  return AIT_OK;
}

ait_status ait_ref_onnx_size(ait_ref_call *call) {
  const ait_tensor *x;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_new(call, 0, AIT_I64, 0, NULL, &out));
  *(int64_t *)out.data = ait_tensor_count(x);
  return AIT_OK;
}

/* ---- reshape and its kin -----------------------------------------------------------------------------------------------------------*/

/* (x, shape, allowzero): 0 keeps the size of the operand, -1 is what remains. */
ait_status ait_ref_onnx_reshape(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t shape[AIT_MAX_RANK];
  int32_t n;
  bool allow_zero;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_ints(call, 1, shape, AIT_MAX_RANK, &n));
  AIT_TRY(ait_ref_bool(call, 2, &allow_zero));
  for (int32_t d = 0; d < n; ++d) {
    if (shape[d] != 0 || allow_zero) continue;
    if (d >= x->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "size %d is 0, but the operand has no dim %d", d, d);
    shape[d] = x->shape[d];
  }
  return delegate_shape(call, "reshape", shape, n);
}

/* (x, axes) */
ait_status ait_ref_onnx_squeeze(ait_ref_call *call) {
  const ait_tensor *x;
  bool drop[AIT_MAX_RANK];
  int64_t shape[AIT_MAX_RANK];
  int32_t n, rank = 0;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_axes(call, 1, x->rank, drop, &n));
  for (int32_t d = 0; d < x->rank; ++d) {
    if (n < 0) drop[d] = x->shape[d] == 1;
    if (drop[d] && x->shape[d] != 1)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "axis %d has size %lld, not 1", d, (long long)x->shape[d]);
    if (!drop[d]) shape[rank++] = x->shape[d];
  }
  return delegate_shape(call, "reshape", shape, rank);
}

/* (x, axes): axes of the result */
ait_status ait_ref_onnx_unsqueeze(ait_ref_call *call) {
  const ait_tensor *x, *axes;
  bool added[AIT_MAX_RANK];
  int64_t shape[AIT_MAX_RANK];
  int32_t n;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &axes));
  int64_t rank = x->rank + ait_tensor_count(axes);
  if (rank > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  AIT_TRY(ait_onnx_axes(call, 1, (int32_t)rank, added, &n));
  for (int32_t d = 0, from = 0; d < rank; ++d) shape[d] = added[d] ? 1 : x->shape[from++];
  return delegate_shape(call, "reshape", shape, (int32_t)rank);
}

/* (x, shape): broadcast both ways */
ait_status ait_ref_onnx_expand(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t wanted[AIT_MAX_RANK], shape[AIT_MAX_RANK];
  int32_t n;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_ints(call, 1, wanted, AIT_MAX_RANK, &n));
  int32_t rank = n > x->rank ? n : x->rank;
  for (int32_t i = 1; i <= rank; ++i) {
    int64_t mine = i <= x->rank ? x->shape[x->rank - i] : 1, other = i <= n ? wanted[n - i] : 1;
    if (mine != other && mine != 1 && other != 1)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "size %lld cannot be expanded to %lld", (long long)mine, (long long)other);
    shape[rank - i] = mine == 1 ? other : mine;
  }
  return delegate_shape(call, "expand", shape, rank);
}

/* (x, repeats) */
ait_status ait_ref_onnx_tile(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t repeats[AIT_MAX_RANK];
  int32_t n;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_ints(call, 1, repeats, AIT_MAX_RANK, &n));
  if (n != x->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d repeats for rank %d", n, x->rank);
  return delegate_shape(call, "aten.repeat", repeats, n);
}

/* ---- pieces ----------------------------------------------------------------------------------------------------------------------*/

/* (x, sizes, axis, i): piece i */
ait_status ait_ref_onnx_split_piece(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t sizes[256], axis, piece, start = 0;
  int32_t n, d;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_ints(call, 1, sizes, 256, &n));
  AIT_TRY(ait_ref_int(call, 2, &axis));
  AIT_TRY(ait_ref_int(call, 3, &piece));
  AIT_TRY(ait_ref_dim(call, axis, x->rank, &d));
  if (piece >= n) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "piece %lld of %d", (long long)piece, n);
  for (int32_t i = 0; i <= piece; ++i) {
    if (sizes[i] < 0 || sizes[i] > x->shape[d] - start)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the pieces are larger than the dim of %lld", (long long)x->shape[d]);
    if (i < piece) start += sizes[i];
  }
  ait_tensor view = ait_ref_narrowed(x, d, start, sizes[piece]);
  return ait_ref_copy_result(call, 0, x->dtype, &view);
}

/* numpy's start, end and step of one dim, as first element and count. */
static void slice_bounds(int64_t size, int64_t start, int64_t end, int64_t step, int64_t *out_start, int64_t *out_count) {
  if (start < 0) start += size;
  if (end < 0) end = end < -size ? -1 : end + size;
  start = step > 0 ? clamped(start, 0, size) : clamped(start, 0, size - 1);
  end = step > 0 ? clamped(end, 0, size) : clamped(end, -1, size - 1);
  int64_t span = step > 0 ? end - start : start - end, by = step > 0 ? step : -step;
  *out_start = start;
  *out_count = size > 0 && span > 0 ? (span - 1) / by + 1 : 0;
}

/* (x, starts, ends, axes?, steps?) */
ait_status ait_ref_onnx_slice(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t v[4][AIT_MAX_RANK];
  int32_t n[4];
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  for (uint32_t k = 0; k < 4; ++k) AIT_TRY(ait_onnx_ints(call, k + 1, v[k], AIT_MAX_RANK, &n[k]));
  if (n[0] != n[1] || (n[2] >= 0 && n[2] != n[0]) || (n[3] >= 0 && n[3] != n[0]))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "starts, ends, axes and steps do not fit");
  ait_tensor view = *x;
  for (int32_t i = 0; i < n[0]; ++i) {
    int32_t d;
    int64_t start, count, step = n[3] >= 0 ? v[3][i] : 1;
    AIT_TRY(ait_ref_dim(call, n[2] >= 0 ? v[2][i] : i, x->rank, &d));
    if (step == 0 || step < -INT64_MAX || x->rank == 0)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "step %lld on rank %d", (long long)step, x->rank);
    slice_bounds(view.shape[d], v[0][i], v[1][i], step, &start, &count);
    if (count > 0) view.data = ait_onnx_at(&view, start * view.strides[d]);
    view.shape[d] = count;
    if (count > 1) view.strides[d] *= step;
  }
  return ait_ref_copy_result(call, 0, x->dtype, &view);
}

/* ---- padding ---------------------------------------------------------------------------------------------------------------------*/

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP } pad_mode;

/* Where element i of the padded dim comes from; -1: the constant. i counts from the operand's first element. */
static int64_t source_of(pad_mode mode, int64_t i, int64_t n) {
  if (i >= 0 && i < n) return i;
  if (mode == PAD_CONSTANT || n == 0) return -1;
  if (mode == PAD_EDGE) return i < 0 ? 0 : n - 1;
  if (mode == PAD_WRAP) return (i % n + n) % n;
  if (n == 1) return 0;
  int64_t period = 2 * (n - 1), k = (i % period + period) % period;
  return k < n ? k : period - k;
}

static ait_status pad_amounts(const ait_ref_call *call, int32_t rank, int64_t pads[2 * AIT_MAX_RANK]) {
  int64_t given[2 * AIT_MAX_RANK], axes[AIT_MAX_RANK], *constant;
  int32_t n, axis_count;
  uint32_t constant_count;
  for (int32_t i = 0; i < 2 * AIT_MAX_RANK; ++i) pads[i] = 0;
  if (!ait_ref_is_none(call, 1)) {
    AIT_TRY(ait_ref_int_array(call, 1, &constant, &constant_count));
    bool fits = constant_count == 2 * (uint32_t)rank;
    if (fits) memcpy(pads, constant, constant_count * sizeof *pads);
    ait_free(call->allocator, constant, constant_count * sizeof *constant);
    return fits ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%u pads for rank %d", constant_count, rank);
  }
  AIT_TRY(ait_onnx_ints(call, 2, given, 2 * AIT_MAX_RANK, &n));
  AIT_TRY(ait_onnx_ints(call, 3, axes, AIT_MAX_RANK, &axis_count));
  if (axis_count < 0) {
    axis_count = rank;
    for (int32_t d = 0; d < rank; ++d) axes[d] = d;
  }
  if (n != 2 * axis_count) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d pads for %d axes", n, axis_count);
  for (int32_t i = 0; i < axis_count; ++i) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, axes[i], rank, &d));
    pads[d] = given[i];
    pads[rank + d] = given[axis_count + i];
  }
  return AIT_OK;
}

static ait_status padded_shape(const ait_ref_call *call, const ait_tensor *x, const int64_t *pads, pad_mode mode, int64_t *shape) {
  for (int32_t d = 0; d < x->rank; ++d) {
    bool overflow = ait_add_overflows(x->shape[d], pads[d], &shape[d]) || ait_add_overflows(shape[d], pads[x->rank + d], &shape[d]);
    if (overflow || shape[d] < 0)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dim %d cannot be padded by %lld and %lld", d, (long long)pads[d],
                           (long long)pads[x->rank + d]);
    if (mode != PAD_CONSTANT && x->shape[d] == 0 && shape[d] > 0)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "dim %d has nothing to be padded with", d);
  }
  return AIT_OK;
}

static ait_status fill_bytes(const ait_ref_call *call, ait_dtype dtype, char out[16]) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, 4);
  ait_ref_scalar s;
  memset(out, 0, 16);
  if (t) {
    if (ait_tensor_count(t) < 1) return AIT_OK;
    if (ait_dtype_is_integer(dtype)) ait_element_set_i64(out, dtype, ait_element_i64(t->data, t->dtype));
    else ait_element_set_f64(out, dtype, ait_element_f64(t->data, t->dtype));
    return AIT_OK;
  }
  AIT_TRY(ait_ref_scalar_arg(call, 4, &s));
  if (ait_dtype_is_integer(dtype)) ait_element_set_i64(out, dtype, s.i);
  else ait_element_set_f64(out, dtype, s.f);
  return AIT_OK;
}

/* (x, pads?, pads tensor?, axes?, value, mode) */
ait_status ait_ref_onnx_pad(ait_ref_call *call) {
  static const char *const names[] = {"constant", "reflect", "edge", "wrap"};
  const ait_tensor *x;
  int64_t pads[2 * AIT_MAX_RANK], shape[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0};
  char fill[16];
  ait_tensor out;
  const char *mode_name = ait_ref_string(call, 5);
  int mode = 0;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  while (mode < 4 && strcmp(names[mode], mode_name ? mode_name : "") != 0) ++mode;
  if (mode == 4) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "mode '%s' is not known", mode_name ? mode_name : "");
  AIT_TRY(pad_amounts(call, x->rank, pads));
  AIT_TRY(padded_shape(call, x, pads, (pad_mode)mode, shape));
  AIT_TRY(fill_bytes(call, x->dtype, fill));
  AIT_TRY(ait_ref_new(call, 0, x->dtype, x->rank, shape, &out));
  size_t size = ait_dtype_size(x->dtype);
  char *to = out.data;
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  do {
    int64_t at = 0;
    bool inside = true;
    for (int32_t d = 0; d < x->rank && inside; ++d) {
      int64_t i = source_of((pad_mode)mode, index[d] - pads[d], x->shape[d]);
      inside = i >= 0;
      at += i * x->strides[d];
    }
    memcpy(to, inside ? ait_onnx_at(x, at) : fill, size);
    to += size;
  } while (ait_ref_next(x->rank, shape, index));
  return AIT_OK;
}

/* ---- creation --------------------------------------------------------------------------------------------------------------------*/

/* (shape, value, dtype) */
ait_status ait_ref_onnx_constant_of_shape(ait_ref_call *call) {
  int64_t shape[AIT_MAX_RANK];
  int32_t n;
  ait_arg items[AIT_MAX_RANK];
  AIT_TRY(ait_onnx_ints(call, 0, shape, AIT_MAX_RANK, &n));
  ait_arg args[3] = {int_list(items, shape, n < 0 ? 0 : n), call->node->args[1], call->node->args[2]};
  return ait_onnx_delegate(call, "full", args, 3);
}

/* (start, limit, delta): max(ceil((limit - start) / delta), 0) numbers */
ait_status ait_ref_onnx_range(ait_ref_call *call) {
  double v[3];
  const ait_tensor *t;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  for (uint32_t k = 0; k < 3; ++k) AIT_TRY(ait_onnx_number(call, k, &v[k]));
  double count = v[2] == 0 ? NAN : ceil((v[1] - v[0]) / v[2]);
  if (isnan(count) || count > 1e15)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "from %g to %g by %g is no range", v[0], v[1], v[2]);
  int64_t n = count > 0 ? (int64_t)count : 0;
  AIT_TRY(ait_onnx_new(call, 0, t->dtype, 1, &n, &out));
  for (int64_t i = 0; i < n; ++i) {
    double value = v[0] + (double)i * v[2];
    if (ait_dtype_is_integer(out.dtype)) ait_element_set_i64(ait_onnx_at(&out, i), out.dtype, (int64_t)value);
    else ait_element_set_f64(ait_onnx_at(&out, i), out.dtype, value);
  }
  return AIT_OK;
}

/* (x, k, dtype) */
ait_status ait_ref_onnx_eye_like(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t k;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_int(call, 1, &k));
  if (x->rank != 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the operand has rank %d, not 2", x->rank);
  AIT_TRY(ait_ref_new(call, 0, ait_ref_dtype(call, 2, x->dtype), 2, x->shape, &out));
  memset(out.data, 0, ait_tensor_bytes(&out));
  for (int64_t i = 0; i < x->shape[0]; ++i) {
    int64_t j;
    if (ait_add_overflows(i, k, &j) || j < 0 || j >= x->shape[1]) continue;
    ait_element_set_f64(ait_onnx_at(&out, i * x->shape[1] + j), out.dtype, 1);
  }
  return AIT_OK;
}
