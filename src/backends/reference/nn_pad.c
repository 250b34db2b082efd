/* Padding by a constant or by the input itself; unfolding of patches. Works on elements of any dtype as bytes. */
#include "backends/reference/nn.h"

typedef enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_REPLICATE, PAD_CIRCULAR } pad_mode;

/* Source coordinate for output coordinate o of a dim of n elements padded by `before`; -1: the constant. */
static int64_t source(pad_mode mode, int64_t o, int64_t before, int64_t n) {
  int64_t i = o - before;
  if (i >= 0 && i < n) return i;
  switch (mode) {
    case PAD_REFLECT: return i < 0 ? -i : 2 * (n - 1) - i;
    case PAD_REPLICATE: return i < 0 ? 0 : n - 1;
    case PAD_CIRCULAR: return (i % n + n) % n;
    default: return -1;
  }
}

static void scalar_bytes(const ait_ref_scalar *s, ait_dtype dtype, char out[16]) {
  if (ait_dtype_is_complex(dtype)) {
    double v[2] = {s->f, s->imag};
    ait_element_set_c128(out, dtype, v);
  } else if (s->kind == AIT_KIND_FLOAT || ait_dtype_is_float(dtype)) {
    ait_element_set_f64(out, dtype, s->f);
  } else {
    ait_element_set_i64(out, dtype, s->i);
  }
}

/* Circular padding repeats what is left of a cropped dim: cropped here, the negative paddings become zero. */
static void crop(ait_tensor *x, int64_t *pads, int32_t count) {
  for (int32_t p = 0; p < count / 2; ++p) {
    int32_t d = x->rank - 1 - p;
    for (int side = 0; side < 2; ++side) {
      int64_t cut = ait_nn_min(-pads[2 * p + side], x->shape[d]);
      if (cut <= 0) continue;
      if (side == 0) x->data = (char *)x->data + cut * x->strides[d] * (int64_t)ait_dtype_size(x->dtype);
      x->shape[d] -= cut;
      pads[2 * p + side] += cut;
    }
  }
}

/* pads: pairs (before, after) from the last dim backwards, as torch has them; negative ones crop. */
static ait_status pad_run(ait_ref_call *call, int64_t *pads, int32_t count, pad_mode mode, const ait_ref_scalar *value) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  ait_tensor view = *t, *x = &view;
  if (count % 2 != 0 || count / 2 > x->rank) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "%d paddings for rank %d", count, x->rank);
  if (mode == PAD_CIRCULAR) crop(x, pads, count);
  int64_t before[AIT_MAX_RANK] = {0}, shape[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0};
  for (int32_t d = 0; d < x->rank; ++d) {
    int32_t p = x->rank - 1 - d;
    bool padded = p < count / 2;
    before[d] = padded ? pads[2 * p] : 0;
    shape[d] = x->shape[d] + before[d] + (padded ? pads[2 * p + 1] : 0);
    int64_t reach = padded ? ait_nn_max(before[d], pads[2 * p + 1]) : 0, n = x->shape[d];
    bool outside = mode == PAD_REFLECT    ? reach >= n && reach > 0
                   : mode == PAD_CIRCULAR ? reach > n
                                          : mode == PAD_REPLICATE && n == 0 && reach > 0;
    if (shape[d] < 0 || outside)
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "padding %lld of a dim of %lld", (long long)reach, (long long)n);
  }
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, x->dtype, x->rank, shape, &out));
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  size_t size = ait_dtype_size(x->dtype);
  char fill[16] = {0}, *to = out.data;
  scalar_bytes(value, x->dtype, fill);
  do {
    int64_t offset = 0;
    bool inside = true;
    for (int32_t d = 0; d < x->rank && inside; ++d) {
      int64_t i = source(mode, index[d], before[d], x->shape[d]);
      inside = i >= 0;
      offset += i * x->strides[d];
    }
    memcpy(to, inside ? (const char *)x->data + offset * (int64_t)size : fill, size);
    to += size;
  } while (ait_ref_next(x->rank, shape, index));
  return AIT_OK;
}

/* aten.constant_pad_nd and core pad, whose paddings stand in the same order */
ait_status ait_ref_constant_pad(ait_ref_call *call) {
  int64_t *pads;
  uint32_t count;
  ait_ref_scalar value;
  AIT_TRY(ait_ref_scalar_arg(call, 2, &value));
  AIT_TRY(ait_ref_int_array(call, 1, &pads, &count));
  ait_status status = pad_run(call, pads, (int32_t)count, PAD_CONSTANT, &value);
  ait_free(call->allocator, pads, count * sizeof *pads);
  return status;
}

ait_status ait_ref_pad(ait_ref_call *call) {
  static const char *const names[] = {"constant", "reflect", "replicate", "circular"};
  const char *name = ait_ref_string(call, 2);
  int mode = -1;
  for (int i = 0; i < (int)AIT_COUNT(names); ++i)
    if (!name ? i == 0 : strcmp(name, names[i]) == 0) mode = i;
  if (mode < 0) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "padding mode '%s'", name);
  ait_ref_scalar value = {.kind = AIT_KIND_FLOAT};
  AIT_TRY(ait_ref_float_or(call, 3, 0, &value.f));
  int64_t *pads;
  uint32_t count;
  AIT_TRY(ait_ref_int_array(call, 1, &pads, &count));
  ait_status status = pad_run(call, pads, (int32_t)count, (pad_mode)mode, &value);
  ait_free(call->allocator, pads, count * sizeof *pads);
  return status;
}

/* reflection_pad{1,2,3}d, replication_pad{1,2,3}d, _pad_circular; _pad_enum(self, pad, mode, value) */
ait_status ait_ref_pad_like(ait_ref_call *call) {
  ait_ref_scalar value = {.kind = AIT_KIND_FLOAT};
  int64_t mode = ait_nn_starts(call, "aten.reflection")    ? PAD_REFLECT
                 : ait_nn_starts(call, "aten.replication") ? PAD_REPLICATE
                                                           : PAD_CIRCULAR;
  if (ait_nn_is(call, "aten._pad_enum")) {
    AIT_TRY(ait_ref_int(call, 2, &mode));
    AIT_TRY(ait_ref_float_or(call, 3, 0, &value.f));
    if (mode < 0 || mode > PAD_CIRCULAR) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "padding mode %lld", (long long)mode);
  }
  int64_t *pads;
  uint32_t count;
  AIT_TRY(ait_ref_int_array(call, 1, &pads, &count));
  ait_status status = pad_run(call, pads, (int32_t)count, (pad_mode)mode, &value);
  ait_free(call->allocator, pads, count * sizeof *pads);
  return status;
}

/* ---- patches ----------------------------------------------------------------------------------------------------------------- */
/* [N, C, H, W] -> [N, C * kh * kw, positions] */
ait_status ait_ref_im2col(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t kernel[2], dilation[2], pad[2], stride[2], positions[2];
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_nn_ints(call, 1, 2, 1, kernel));
  AIT_TRY(ait_nn_ints(call, 2, 2, 1, dilation));
  AIT_TRY(ait_nn_ints(call, 3, 2, 0, pad));
  AIT_TRY(ait_nn_ints(call, 4, 2, 1, stride));
  if (x->rank != 3 && x->rank != 4) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", x->rank);
  ait_tensor v = *x, out;
  if (x->rank == 3) {
    for (int32_t d = 3; d > 0; --d) v.shape[d] = x->shape[d - 1], v.strides[d] = x->strides[d - 1];
    v.shape[0] = 1, v.strides[0] = 0, v.rank = 4;
  }
  for (int32_t d = 0; d < 2; ++d) {
    int64_t room = v.shape[2 + d] + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1;
    if (room < 0 || stride[d] < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the patch is larger than the padded input");
    positions[d] = room / stride[d] + 1;
  }
  int64_t full[6] = {v.shape[0], v.shape[1], kernel[0], kernel[1], positions[0], positions[1]}, index[6] = {0};
  int64_t shape[3] = {v.shape[0], v.shape[1] * kernel[0] * kernel[1], positions[0] * positions[1]};
  AIT_TRY(ait_ref_new(call, 0, x->dtype, x->rank == 3 ? 2 : 3, shape + (x->rank == 3), &out));
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  size_t size = ait_dtype_size(x->dtype);
  char *to = out.data;
  do {
    int64_t i = index[4] * stride[0] - pad[0] + index[2] * dilation[0], j = index[5] * stride[1] - pad[1] + index[3] * dilation[1];
    if (i < 0 || j < 0 || i >= v.shape[2] || j >= v.shape[3]) memset(to, 0, size);
    else memcpy(to, ait_ref_at(&v, (int64_t[]){index[0], index[1], i, j}), size);
    to += size;
  } while (ait_ref_next(6, full, index));
  return AIT_OK;
}

/* [N, C * kh * kw, positions] -> [N, C, H, W]: what im2col took apart is summed up. self, output_size, kernel, dilation, padding, stride */
ait_status ait_ref_col2im(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t size[2], kernel[2], dilation[2], pad[2], stride[2], positions[2];
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_nn_ints(call, 1, 2, 1, size));
  AIT_TRY(ait_nn_ints(call, 2, 2, 1, kernel));
  AIT_TRY(ait_nn_ints(call, 3, 2, 1, dilation));
  AIT_TRY(ait_nn_ints(call, 4, 2, 0, pad));
  AIT_TRY(ait_nn_ints(call, 5, 2, 1, stride));
  for (int32_t d = 0; d < 2; ++d) {
    int64_t room = size[d] + 2 * pad[d] - dilation[d] * (kernel[d] - 1) - 1;
    if (room < 0 || stride[d] < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the patch is larger than the padded output");
    positions[d] = room / stride[d] + 1;
  }
  int32_t lead = x->rank - 2;
  int64_t taps = kernel[0] * kernel[1];
  if (lead < 0 || lead > 1 || x->shape[lead] % taps != 0 || x->shape[lead + 1] != positions[0] * positions[1])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "columns do not fit the output size");
  int64_t batch = lead ? x->shape[0] : 1, channels = x->shape[lead] / taps, shape[4] = {batch, channels, size[0], size[1]};
  ait_tensor v = {0}, out = {0};
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, x, &v));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 3 + lead, shape + !lead, &out));
  int64_t full[6] = {batch, channels, kernel[0], kernel[1], positions[0], positions[1]}, index[6] = {0};
  const double *from = v.data;
  for (int64_t e = 0; e < ait_tensor_count(&v); ++e) {
    int64_t i = index[4] * stride[0] - pad[0] + index[2] * dilation[0], j = index[5] * stride[1] - pad[1] + index[3] * dilation[1];
    if (i >= 0 && j >= 0 && i < size[0] && j < size[1])
      ait_nn_data_mut(&out)[((index[0] * channels + index[1]) * size[0] + i) * size[1] + j] += from[e];
    ait_ref_next(6, full, index);
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, x->dtype), &out);
cleanup:
  ait_tensor_release(&v);
  ait_tensor_release(&out);
  return status;
}

/* Windows along a dim become a last dim: a view. */
static ait_status unfold_view(ait_ref_call *call, const ait_tensor **base, ait_tensor *v) {
  int64_t dim, size, step;
  int32_t d;
  AIT_TRY(ait_ref_tensor(call, 0, base));
  AIT_TRY(ait_ref_int(call, 1, &dim));
  AIT_TRY(ait_ref_int(call, 2, &size));
  AIT_TRY(ait_ref_int(call, 3, &step));
  AIT_TRY(ait_ref_dim(call, dim, (*base)->rank, &d));
  *v = **base;
  int64_t n = v->rank ? v->shape[d] : 1, stride = v->rank ? v->strides[d] : 1;
  if (size < 0 || size > n || step < 1 || v->rank + 1 > AIT_MAX_RANK)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "windows of %lld in a dim of %lld", (long long)size, (long long)n);
  if (v->rank > 0) {
    v->shape[d] = (n - size) / step + 1;
    v->strides[d] = stride * step;
  }
  v->shape[v->rank] = size;
  v->strides[v->rank] = stride;
  v->rank++;
  return AIT_OK;
}

ait_status ait_ref_unfold(ait_ref_call *call) {
  const ait_tensor *base;
  ait_tensor v;
  AIT_TRY(unfold_view(call, &base, &v));
  ait_ref_set_view(call, 0, base, &v);
  return AIT_OK;
}

/* core unfold is a value, not a view; so is unfold_copy */
ait_status ait_ref_unfold_copy(ait_ref_call *call) {
  const ait_tensor *base;
  ait_tensor v, out;
  AIT_TRY(unfold_view(call, &base, &v));
  AIT_TRY(ait_ref_new(call, 0, v.dtype, v.rank, v.shape, &out));
  return ait_tensor_copy(&out, &v);
}
