/* Convolution in one to three dims, plain and transposed, grouped, dilated: a matrix product whose right operand, the unfolded input, is
 * made block by block. Fewer dims are three with leading ones. */
#include "backends/reference/nn.h"

enum { DIMS = 3 };

typedef struct conv {
  int64_t batch, in_channels, out_channels, groups;
  int64_t in[DIMS], kernel[DIMS], out[DIMS], stride[DIMS], pad[DIMS], dilation[DIMS]; /* pad: before the first element */
  bool transposed;
  const double *x;    /* [batch, in_channels, in] */
  const double *bias; /* or NULL; complex: pairs */
  ait_tensor result;
  double *sum; /* complex: receives the product instead of `result` */
} conv;

/* Input coordinate that output o meets with kernel tap t; false: outside. */
static inline bool source(const conv *c, int32_t d, int64_t o, int64_t t, int64_t *out) {
  int64_t i;
  if (c->transposed) {
    i = o + c->pad[d] - t * c->dilation[d];
    if (i < 0 || i % c->stride[d] != 0) return false;
    i /= c->stride[d];
  } else {
    i = o * c->stride[d] - c->pad[d] + t * c->dilation[d];
  }
  *out = i;
  return i >= 0 && i < c->in[d];
}

static void fill_line(const conv *c, const double *x, int64_t o0, int64_t n, int64_t tap, double *dst) {
  int64_t i, first = o0 * c->stride[2] - c->pad[2] + tap * c->dilation[2];
  if (!c->transposed && c->stride[2] == 1 && first >= 0 && first + n <= c->in[2]) {
    memcpy(dst, x + first, (size_t)n * sizeof *dst);
    return;
  }
  for (int64_t o = 0; o < n; ++o) dst[o] = source(c, 2, o0 + o, tap, &i) ? x[i] : 0;
}

/* Row k = (channel, tap) of the unfolded input of one batch and group; columns are output positions. */
static void fill_row(void *ctx, int64_t batch, int64_t k, int64_t j0, int64_t n, double *dst) {
  const conv *c = ctx;
  int64_t group = batch % c->groups, sample = batch / c->groups, channels = c->in_channels / c->groups;
  int64_t tap2 = k % c->kernel[2], tap1 = k / c->kernel[2] % c->kernel[1], tap0 = k / (c->kernel[2] * c->kernel[1]) % c->kernel[0];
  int64_t channel = k / (c->kernel[2] * c->kernel[1] * c->kernel[0]);
  const double *x = c->x + (sample * c->in_channels + group * channels + channel) * c->in[0] * c->in[1] * c->in[2];
  for (int64_t j = j0; j < j0 + n;) {
    int64_t o2 = j % c->out[2], o1 = j / c->out[2] % c->out[1], o0 = j / (c->out[2] * c->out[1]), i0, i1;
    int64_t run = ait_nn_min(c->out[2] - o2, j0 + n - j);
    if (source(c, 0, o0, tap0, &i0) && source(c, 1, o1, tap1, &i1)) fill_line(c, x + (i0 * c->in[1] + i1) * c->in[2], o2, run, tap2, dst);
    else memset(dst, 0, (size_t)run * sizeof *dst);
    dst += run;
    j += run;
  }
}

static void store_block(void *ctx, int64_t batch, int64_t i0, int64_t j0, int64_t rows, int64_t cols, const double *tile, int64_t ld) {
  const conv *c = ctx;
  int64_t positions = c->out[0] * c->out[1] * c->out[2], per_group = c->out_channels / c->groups;
  double row[AIT_NN_NC];
  for (int64_t i = 0; i < rows; ++i) {
    int64_t channel = batch % c->groups * per_group + i0 + i, at = (batch / c->groups * c->out_channels + channel) * positions + j0;
    if (c->sum) {
      memcpy(c->sum + at, tile + i * ld, (size_t)cols * sizeof *row);
      continue;
    }
    double bias = c->bias ? c->bias[channel] : 0;
    for (int64_t j = 0; j < cols; ++j) row[j] = tile[i * ld + j] + bias;
    ait_nn_store((char *)c->result.data + at * (int64_t)ait_dtype_size(c->result.dtype), c->result.dtype, 1, cols, row);
  }
}

/* weight: [groups][out_channels / groups, (in_channels / groups) * taps] doubles. */
static ait_status run_real(const ait_ref_call *call, conv *c, const double *weight) {
  int64_t taps = c->kernel[0] * c->kernel[1] * c->kernel[2], k = c->in_channels / c->groups * taps, m = c->out_channels / c->groups;
  ait_nn_gemm g = {.batch = c->batch * c->groups, .m = m, .n = c->out[0] * c->out[1] * c->out[2], .k = k};
  g.a = ait_nn_mat_of(weight, k, 1);
  g.fill_b = fill_row, g.fill_ctx = c, g.sink = store_block, g.sink_ctx = c;
  if (c->groups == 1) return ait_nn_gemm_run(call, &g);
  size_t bytes = (size_t)g.batch * sizeof(int64_t);
  int64_t *offsets = ait_alloc(call->allocator, bytes, 8);
  if (!offsets) return AIT_OOM();
  for (int64_t b = 0; b < g.batch; ++b) offsets[b] = b % c->groups * m * k * (int64_t)sizeof(double);
  g.a_offsets = offsets;
  ait_status status = ait_nn_gemm_run(call, &g);
  ait_free(call->allocator, offsets, bytes);
  return status;
}

/* Complex: the halves of x and weight multiplied pairwise. */
static ait_status run_complex(const ait_ref_call *call, conv *c, const double *x, int64_t x_count, const double *weight, int64_t w_count) {
  int64_t count = ait_tensor_count(&c->result);
  double *memory = ait_nn_doubles(call, x_count + w_count + 3 * count);
  if (!memory) return AIT_OOM();
  double *px = memory, *pw = px + x_count, *total = pw + w_count;
  ait_status status = AIT_OK;
  memset(total, 0, (size_t)(2 * count) * sizeof *total);
  c->sum = total + 2 * count;
  c->x = px;
  for (int part = 0; part < 4 && !status; ++part) {
    int xi = part & 1, wi = part >> 1;
    for (int64_t i = 0; i < x_count; ++i) px[i] = x[2 * i + xi];
    for (int64_t i = 0; i < w_count; ++i) pw[i] = weight[2 * i + wi];
    status = run_real(call, c, pw);
    for (int64_t i = 0; i < count && !status; ++i) total[2 * i + (xi ^ wi)] += (xi && wi ? -1 : 1) * c->sum[i];
  }
  int64_t positions = c->out[0] * c->out[1] * c->out[2];
  for (int64_t i = 0; i < count && !status; ++i) {
    int64_t channel = i / positions % c->out_channels;
    double v[2] = {total[2 * i] + (c->bias ? c->bias[2 * channel] : 0), total[2 * i + 1] + (c->bias ? c->bias[2 * channel + 1] : 0)};
    ait_element_set_c128((char *)c->result.data + i * (int64_t)ait_dtype_size(c->result.dtype), c->result.dtype, v);
  }
  ait_nn_doubles_free(call, memory, x_count + w_count + 3 * count);
  return status;
}

/* ---- shapes
 * ----------------------------------------------------------------------------------------------------------------------------*/
typedef struct conv_args {
  int32_t dims;
  int64_t stride[DIMS], pad[DIMS], dilation[DIMS], out_pad[DIMS]; /* of the `dims` dims */
  bool same;
  bool transposed;
  int64_t groups;
} conv_args;

static ait_status out_size(const ait_ref_call *call, conv *c, const conv_args *a, int32_t i, int32_t d) {
  int64_t reach = (c->kernel[d] - 1) * c->dilation[d] + 1;
  if (c->stride[d] <= 0 || c->dilation[d] <= 0 || c->kernel[d] < 0 || c->pad[d] < 0)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "stride, dilation or padding out of range");
  if (a->transposed) {
    c->out[d] = (c->in[d] - 1) * c->stride[d] - 2 * c->pad[d] + reach + a->out_pad[i];
  } else if (a->same) {
    c->pad[d] = (reach - 1) / 2; /* an odd rest is padded at the end */
    c->out[d] = (c->in[d] - 1) / c->stride[d] + 1;
  } else {
    int64_t room = c->in[d] + 2 * c->pad[d] - reach;
    if (room < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the kernel is larger than the padded input");
    c->out[d] = room / c->stride[d] + 1;
  }
  if (c->out[d] < 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "negative output size");
  return AIT_OK;
}

static ait_status set_shapes(const ait_ref_call *call, conv *c, const conv_args *a, const ait_tensor *x, const ait_tensor *w) {
  bool batched = x->rank == a->dims + 2;
  if ((!batched && x->rank != a->dims + 1) || w->rank != a->dims + 2 || a->groups < 1)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d with weight of rank %d", x->rank, w->rank);
  c->transposed = a->transposed;
  c->groups = a->groups;
  c->batch = batched ? x->shape[0] : 1;
  c->in_channels = x->shape[batched];
  c->out_channels = a->transposed ? w->shape[1] * a->groups : w->shape[0];
  int64_t want_in = a->transposed ? w->shape[0] : w->shape[1] * a->groups;
  if (want_in != c->in_channels || c->out_channels % a->groups != 0)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "weight takes %lld channels, input has %lld", (long long)want_in,
                         (long long)c->in_channels);
  for (int32_t d = 0; d < DIMS; ++d) {
    int32_t i = d - (DIMS - a->dims);
    c->in[d] = c->kernel[d] = c->out[d] = c->stride[d] = c->dilation[d] = 1;
    if (i < 0) continue;
    c->in[d] = x->shape[1 + batched + i], c->kernel[d] = w->shape[2 + i];
    c->stride[d] = a->stride[i], c->pad[d] = a->pad[i], c->dilation[d] = a->dilation[i];
    AIT_TRY(out_size(call, c, a, i, d));
  }
  return AIT_OK;
}

/* Transposed weights are [in, out / groups, taps]; the product wants [group][out / groups][in / groups, taps]. */
static ait_tensor weight_view(const conv *c, const ait_tensor *w) {
  if (!c->transposed) return *w;
  ait_tensor v = *w;
  int64_t per_group = c->in_channels / c->groups;
  v.rank = w->rank + 1;
  v.shape[0] = c->groups, v.strides[0] = per_group * w->strides[0];
  v.shape[1] = w->shape[1], v.strides[1] = w->strides[1];
  v.shape[2] = per_group, v.strides[2] = w->strides[0];
  for (int32_t d = 2; d < w->rank; ++d) v.shape[d + 1] = w->shape[d], v.strides[d + 1] = w->strides[d];
  return v;
}

/* Channels last when an operand is, as torch's CPU backends do. */
static ait_status give_result(ait_ref_call *call, ait_tensor *result, const ait_tensor *x, const ait_tensor *w) {
  bool by_x = ait_nn_is_channels_last(x);
  if (result->rank == x->rank && result->rank == w->rank && (by_x || ait_nn_is_channels_last(w)))
    return ait_nn_result_format(call, 0, result->dtype, result, by_x ? x : w);
  ait_ref_set(call, 0, *result);
  *result = (ait_tensor){0};
  return AIT_OK;
}

static ait_status run(ait_ref_call *call, const conv_args *a) {
  const ait_tensor *x, *w;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &w));
  conv c = {0};
  AIT_TRY(set_shapes(call, &c, a, x, w));
  int64_t shape[AIT_MAX_RANK];
  int32_t rank = 0;
  if (x->rank == a->dims + 2) shape[rank++] = c.batch;
  shape[rank++] = c.out_channels;
  for (int32_t d = DIMS - a->dims; d < DIMS; ++d) shape[rank++] = c.out[d];
  AIT_TRY(ait_ref_temp(call, ait_nn_dtype(call, 0, x->dtype), rank, shape, &c.result));
  ait_tensor fx = {0}, fw = {0}, fb = {0}, view = weight_view(&c, w);
  ait_status status;
  AIT_GOTO(ait_nn_numbers(call, x, &fx));
  AIT_GOTO(ait_nn_numbers(call, &view, &fw));
  const ait_tensor *bias = ait_ref_tensor_or_null(call, 2);
  if (bias) AIT_GOTO(ait_nn_numbers(call, bias, &fb));
  c.x = fx.data;
  c.bias = fb.data;
  if (ait_dtype_is_complex(x->dtype)) status = run_complex(call, &c, fx.data, ait_tensor_count(&fx), fw.data, ait_tensor_count(&fw));
  else status = run_real(call, &c, fw.data);
  if (!status) status = give_result(call, &c.result, x, w);
cleanup:
  ait_tensor_release(&c.result);
  ait_tensor_release(&fx);
  ait_tensor_release(&fw);
  ait_tensor_release(&fb);
  return status;
}

static ait_status geometry(const ait_ref_call *call, conv_args *a, uint32_t stride, uint32_t pad, uint32_t dilation) {
  AIT_TRY(ait_nn_ints(call, stride, a->dims, 1, a->stride));
  if (pad != AIT_NO_INDEX) AIT_TRY(ait_nn_ints(call, pad, a->dims, 0, a->pad));
  AIT_TRY(ait_nn_ints(call, dilation, a->dims, 1, a->dilation));
  return AIT_OK;
}

static ait_status dims_of_weight(const ait_ref_call *call, conv_args *a) {
  const ait_tensor *w;
  AIT_TRY(ait_ref_tensor(call, 1, &w));
  a->dims = w->rank - 2;
  if (a->dims < 1 || a->dims > DIMS) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "convolution in %d dims", a->dims);
  return AIT_OK;
}

/* aten.conv1d, conv2d, conv3d, and their .padding forms with "same" or "valid"; _convolution_mode */
ait_status ait_ref_conv_nd(ait_ref_call *call) {
  conv_args a = {0};
  AIT_TRY(dims_of_weight(call, &a));
  const char *mode = ait_ref_string(call, 4);
  AIT_TRY(geometry(call, &a, 3, mode ? AIT_NO_INDEX : 4, 5));
  a.same = mode && strcmp(mode, "same") == 0;
  AIT_TRY(ait_ref_int(call, 6, &a.groups));
  return run(call, &a);
}

ait_status ait_ref_conv_transpose(ait_ref_call *call) {
  conv_args a = {.transposed = true};
  AIT_TRY(dims_of_weight(call, &a));
  AIT_TRY(geometry(call, &a, 3, 4, 7));
  AIT_TRY(ait_nn_ints(call, 5, a.dims, 0, a.out_pad));
  AIT_TRY(ait_ref_int(call, 6, &a.groups));
  return run(call, &a);
}

/* aten.convolution, _convolution: transposed, output_padding, groups */
ait_status ait_ref_convolution(ait_ref_call *call) {
  conv_args a = {0};
  AIT_TRY(dims_of_weight(call, &a));
  AIT_TRY(geometry(call, &a, 3, 4, 5));
  AIT_TRY(ait_ref_bool(call, 6, &a.transposed));
  AIT_TRY(ait_nn_ints(call, 7, a.dims, 0, a.out_pad));
  AIT_TRY(ait_ref_int(call, 8, &a.groups));
  return run(call, &a);
}

/* core conv: groups, transposed, output_padding */
ait_status ait_ref_core_conv(ait_ref_call *call) {
  conv_args a = {0};
  AIT_TRY(dims_of_weight(call, &a));
  AIT_TRY(geometry(call, &a, 3, 4, 5));
  AIT_TRY(ait_ref_int(call, 6, &a.groups));
  AIT_TRY(ait_ref_bool(call, 7, &a.transposed));
  AIT_TRY(ait_nn_ints(call, 8, a.dims, 0, a.out_pad));
  return run(call, &a);
}
