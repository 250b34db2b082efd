/* Pooling in one to three dims: max (with and without indices), average, adaptive, fractional, and max's inverse. Fewer dims are three with
 * leading ones; planes (batch, channel) are independent. */
#include "backends/reference/nn.h"

enum { DIMS = 3 };

typedef struct pool {
  int32_t dims;
  int64_t planes;
  int64_t in[DIMS], out[DIMS], kernel[DIMS], stride[DIMS], pad[DIMS], dilation[DIMS];
  bool ceil_mode, count_include_pad;
  int64_t divisor; /* 0: the window's size */
  bool adaptive, max;
  const double *x;
  double *y;
  int64_t *index; /* flat in the input plane; NULL for averages */
} pool;

/* ---- geometry
 * ----------------------------------------------------------------------------------------------------------------------------*/
static ait_status out_size(const ait_ref_call *call, pool *p, int32_t d) {
  if (p->kernel[d] < 1 || p->stride[d] < 1 || p->dilation[d] < 1 || p->pad[d] < 0 ||
      p->pad[d] * 2 > (p->kernel[d] - 1) * p->dilation[d] + 1)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "kernel, stride, dilation or padding out of range");
  int64_t room = p->in[d] + 2 * p->pad[d] - p->dilation[d] * (p->kernel[d] - 1) - 1;
  if (room < 0 && !p->ceil_mode) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the window is larger than the padded input");
  int64_t up = p->ceil_mode ? p->stride[d] - 1 : 0, n = (room + up) < 0 ? -1 : (room + up) / p->stride[d];
  p->out[d] = n + 1;
  /* the last window must begin inside the input or its left padding */
  if (p->ceil_mode && (p->out[d] - 1) * p->stride[d] >= p->in[d] + p->pad[d]) --p->out[d];
  if (p->out[d] < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "empty output");
  return AIT_OK;
}

static ait_status set_input(const ait_ref_call *call, pool *p, const ait_tensor *x) {
  if (x->rank != p->dims + 1 && x->rank != p->dims + 2)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d for %d dims", x->rank, p->dims);
  p->planes = ait_nn_span(x, 0, x->rank - p->dims);
  for (int32_t d = 0; d < DIMS; ++d) {
    int32_t i = d - (DIMS - p->dims);
    p->in[d] = i < 0 ? 1 : x->shape[x->rank - p->dims + i];
    p->out[d] = p->kernel[d] = p->stride[d] = p->dilation[d] = 1;
    p->pad[d] = 0;
  }
  return AIT_OK;
}

static void out_shape(const pool *p, const ait_tensor *x, int64_t *shape) {
  memcpy(shape, x->shape, sizeof x->shape);
  for (int32_t i = 0; i < p->dims; ++i) shape[x->rank - p->dims + i] = p->out[DIMS - p->dims + i];
}

/* ---- one window
 * --------------------------------------------------------------------------------------------------------------------------*/
/* Input range [from, to) by step of output o along d; *size: how long the window is, padding included where the average counts it. */
static void window(const pool *p, int32_t d, int64_t o, int64_t *from, int64_t *to, int64_t *step, int64_t *size) {
  if (p->adaptive) {
    *from = o * p->in[d] / p->out[d];
    *to = ((o + 1) * p->in[d] + p->out[d] - 1) / p->out[d];
    *step = 1;
    *size = *to - *from;
    return;
  }
  int64_t begin = o * p->stride[d] - p->pad[d], end = begin + (p->kernel[d] - 1) * p->dilation[d] + 1;
  *size = ait_nn_min(end, p->in[d] + p->pad[d]) - begin;
  *step = p->dilation[d];
  *from = begin < 0 ? begin + (-begin + *step - 1) / *step * *step : begin;
  *to = ait_nn_min(end, p->in[d]);
}

typedef struct box {
  int64_t from[DIMS], to[DIMS], step[DIMS], size[DIMS];
} box;

static double window_max(const pool *p, const double *x, const box *b, int64_t *index) {
  double best = -INFINITY;
  *index = (b->from[0] * p->in[1] + b->from[1]) * p->in[2] + b->from[2];
  for (int64_t i = b->from[0]; i < b->to[0]; i += b->step[0])
    for (int64_t j = b->from[1]; j < b->to[1]; j += b->step[1])
      for (int64_t k = b->from[2]; k < b->to[2]; k += b->step[2]) {
        int64_t at = (i * p->in[1] + j) * p->in[2] + k;
        if (x[at] > best || isnan(x[at])) best = x[at], *index = at;
      }
  return best;
}

static double window_mean(const pool *p, const double *x, const box *b) {
  double sum = 0, inside = 1, whole = 1;
  for (int64_t i = b->from[0]; i < b->to[0]; ++i)
    for (int64_t j = b->from[1]; j < b->to[1]; ++j)
      for (int64_t k = b->from[2]; k < b->to[2]; ++k) sum += x[(i * p->in[1] + j) * p->in[2] + k];
  for (int32_t d = 0; d < DIMS; ++d) {
    inside *= (double)(b->to[d] - b->from[d]);
    whole *= (double)b->size[d];
  }
  for (int32_t d = 0; d < DIMS; ++d)
    if (b->to[d] <= b->from[d]) return p->adaptive ? NAN : 0;
  return sum / (p->divisor ? (double)p->divisor : p->count_include_pad || p->adaptive ? whole : inside);
}

static void pool_planes(void *ctx, int64_t begin, int64_t end) {
  const pool *p = ctx;
  int64_t in = p->in[0] * p->in[1] * p->in[2], out = p->out[0] * p->out[1] * p->out[2];
  for (int64_t plane = begin; plane < end; ++plane)
    for (int64_t o = 0; o < out; ++o) {
      int64_t at[DIMS] = {o / (p->out[1] * p->out[2]), o / p->out[2] % p->out[1], o % p->out[2]}, index;
      box b;
      for (int32_t d = 0; d < DIMS; ++d) window(p, d, at[d], &b.from[d], &b.to[d], &b.step[d], &b.size[d]);
      const double *x = p->x + plane * in;
      if (p->max) {
        p->y[plane * out + o] = window_max(p, x, &b, &index);
        if (p->index) p->index[plane * out + o] = index;
      } else {
        p->y[plane * out + o] = window_mean(p, x, &b);
      }
    }
}

/* Result 0 the values, result 1 (when asked for) the indices. */
static ait_status pool_run(ait_ref_call *call, pool *p, const ait_tensor *x) {
  ait_tensor fx = {0}, y = {0};
  int64_t shape[AIT_MAX_RANK], work = 2;
  ait_status status;
  out_shape(p, x, shape);
  AIT_GOTO(ait_nn_f64(call, x, &fx));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, x->rank, shape, &y));
  if (p->max && ait_nn_wants(call, 1)) {
    ait_tensor index;
    AIT_GOTO(ait_ref_new(call, 1, AIT_I64, x->rank, shape, &index));
    p->index = index.data;
  }
  p->x = fx.data;
  p->y = y.data;
  for (int32_t d = 0; d < DIMS; ++d) work *= p->out[d] * (p->adaptive ? p->in[d] / ait_nn_max(1, p->out[d]) + 1 : p->kernel[d]);
  if (ait_tensor_count(&y) > 0) ait_ref_parallel(call, p->planes, work, pool_planes, p);
  status = ait_nn_result_format(call, 0, ait_nn_dtype(call, 0, x->dtype), &y, x);
cleanup:
  ait_tensor_release(&fx);
  ait_tensor_release(&y);
  return status;
}

/* ---- operators
 * -----------------------------------------------------------------------------------------------------------------------------*/
static int32_t dims_in_name(const ait_ref_call *call) {
  const char *digit = strpbrk(call->node->op, "123");
  return digit ? *digit - '0' : 0;
}

/* kernel, stride (none: the kernel), padding, and dilation when `dilation` is an argument. */
static ait_status geometry(const ait_ref_call *call, pool *p, uint32_t dilation) {
  int64_t kernel[DIMS], stride[DIMS], pad[DIMS], dil[DIMS] = {1, 1, 1};
  AIT_TRY(ait_nn_ints(call, 1, p->dims, 1, kernel));
  AIT_TRY(ait_nn_ints(call, 2, p->dims, 0, stride));
  AIT_TRY(ait_nn_ints(call, 3, p->dims, 0, pad));
  if (dilation) AIT_TRY(ait_nn_ints(call, dilation, p->dims, 1, dil));
  for (int32_t i = 0; i < p->dims; ++i) {
    int32_t d = DIMS - p->dims + i;
    p->kernel[d] = kernel[i];
    p->stride[d] = stride[i] == 0 ? kernel[i] : stride[i];
    p->pad[d] = pad[i];
    p->dilation[d] = dil[i];
    AIT_TRY(out_size(call, p, d));
  }
  return AIT_OK;
}

static ait_status start(const ait_ref_call *call, pool *p, const ait_tensor **x) {
  AIT_TRY(ait_ref_tensor(call, 0, x));
  if (p->dims == 0) { /* core: by the kernel's length */
    int64_t kernel[AIT_MAX_RANK];
    AIT_TRY(ait_ref_ints(call, 1, kernel, &p->dims));
    if (p->dims < 1 || p->dims > DIMS) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "pooling in %d dims", p->dims);
  }
  return set_input(call, p, *x);
}

/* aten.max_pool{1,2,3}d, with_indices, core max_pool */
ait_status ait_ref_max_pool(ait_ref_call *call) {
  pool p = {.dims = dims_in_name(call), .max = true};
  const ait_tensor *x;
  AIT_TRY(start(call, &p, &x));
  AIT_TRY(ait_ref_bool(call, 5, &p.ceil_mode));
  AIT_TRY(geometry(call, &p, 4));
  return pool_run(call, &p, x);
}

ait_status ait_ref_avg_pool(ait_ref_call *call) {
  pool p = {.dims = dims_in_name(call)};
  const ait_tensor *x;
  AIT_TRY(start(call, &p, &x));
  AIT_TRY(ait_ref_bool(call, 4, &p.ceil_mode));
  AIT_TRY(ait_ref_bool(call, 5, &p.count_include_pad));
  if (ait_ref_arg_count(call) > 6) AIT_TRY(ait_ref_int_or(call, 6, 0, &p.divisor));
  AIT_TRY(geometry(call, &p, 0));
  return pool_run(call, &p, x);
}

/* adaptive_{avg,max}_pool: output sizes given; none keeps the input's */
ait_status ait_ref_adaptive_pool(ait_ref_call *call) {
  pool p = {.dims = dims_in_name(call), .adaptive = true, .max = strstr(call->node->op, "max") != NULL};
  const ait_tensor *x;
  int64_t size[DIMS];
  AIT_TRY(start(call, &p, &x));
  AIT_TRY(ait_nn_ints(call, 1, p.dims, 0, size));
  for (int32_t i = 0; i < p.dims; ++i) p.out[DIMS - p.dims + i] = size[i];
  return pool_run(call, &p, x);
}

/* ---- inverses
 * --------------------------------------------------------------------------------------------------------------------------------*/
/* out (zeros, planes of `plane` elements) receives values at the given flat indices; `add`: sums up. */
static ait_status scatter_planes(ait_ref_call *call, const ait_tensor *values, const ait_tensor *index, int32_t rank, const int64_t *shape,
                                 int32_t dims, bool add) {
  ait_tensor v = {0}, i = {0}, out = {0};
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, values, &v));
  AIT_GOTO(ait_tensor_cast(call->allocator, index, AIT_I64, &i));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, rank, shape, &out));
  int64_t plane = ait_nn_span(&out, rank - dims, rank), per = ait_nn_span(&v, v.rank - dims, v.rank), count = ait_tensor_count(&v);
  if (ait_tensor_count(&i) != count) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "values and indices differ in number"));
  for (int64_t e = 0; e < count; ++e) {
    int64_t at = ((const int64_t *)i.data)[e];
    if (at < 0 || at >= plane) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "index %lld outside the plane", (long long)at));
    double *p = ait_nn_data_mut(&out) + e / per * plane + at;
    *p = add ? *p + ait_nn_data(&v)[e] : ait_nn_data(&v)[e];
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, values->dtype), &out);
cleanup:
  ait_tensor_release(&v);
  ait_tensor_release(&i);
  ait_tensor_release(&out);
  return status;
}

ait_status ait_ref_max_unpool(ait_ref_call *call) {
  const ait_tensor *x, *index;
  int32_t dims = dims_in_name(call);
  int64_t size[DIMS], shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &index));
  AIT_TRY(ait_nn_ints(call, 2, dims, 1, size));
  if (x->rank < dims) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", x->rank);
  memcpy(shape, x->shape, sizeof shape);
  for (int32_t d = 0; d < dims; ++d) shape[x->rank - dims + d] = size[d];
  return scatter_planes(call, x, index, x->rank, shape, dims, false);
}

ait_status ait_ref_max_pool_backward(ait_ref_call *call) {
  const ait_tensor *grad, *x, *index;
  AIT_TRY(ait_ref_tensor(call, 0, &grad));
  AIT_TRY(ait_ref_tensor(call, 1, &x));
  AIT_TRY(ait_ref_tensor(call, 7, &index));
  return scatter_planes(call, grad, index, x->rank, x->shape, 2, true);
}

/* ---- fractional max pooling (Graham, 2014): windows of one size at pseudo-random starts
 * --------------------------------------------------------*/
static int64_t fractional_start(double sample, int64_t i, int64_t in, int64_t out, int64_t kernel) {
  if (i == out - 1) return in - kernel;
  double alpha = out > 1 ? (double)(in - kernel) / (double)(out - 1) : 0;
  return (int64_t)(((double)i + sample) * alpha) - (int64_t)(sample * alpha);
}

static void fractional_plane(const pool *p, int64_t plane, const double *sample) {
  int64_t in = p->in[0] * p->in[1] * p->in[2], out = p->out[0] * p->out[1] * p->out[2];
  for (int64_t o = 0; o < out; ++o) {
    int64_t at[DIMS] = {o / (p->out[1] * p->out[2]), o / p->out[2] % p->out[1], o % p->out[2]}, index;
    box b;
    for (int32_t d = 0; d < DIMS; ++d) {
      int32_t s = p->dims == 3 ? d : 2 - d; /* 2d samples are (width, height); 3d (time, height, width) */
      b.from[d] = d < DIMS - p->dims ? 0 : fractional_start(sample[s], at[d], p->in[d], p->out[d], p->kernel[d]);
      b.to[d] = b.from[d] + p->kernel[d];
      b.step[d] = 1;
    }
    p->y[plane * out + o] = window_max(p, p->x + plane * in, &b, &index);
    if (p->index) p->index[plane * out + o] = index;
  }
}

ait_status ait_ref_fractional_max_pool(ait_ref_call *call) {
  pool p = {.dims = dims_in_name(call), .max = true};
  const ait_tensor *x;
  ait_tensor fx = {0}, y = {0}, samples = {0}, index;
  int64_t kernel[DIMS], size[DIMS], shape[AIT_MAX_RANK];
  ait_status status;
  AIT_TRY(start(call, &p, &x));
  AIT_TRY(ait_nn_ints(call, 1, p.dims, 1, kernel));
  AIT_TRY(ait_nn_ints(call, 2, p.dims, 1, size));
  for (int32_t i = 0; i < p.dims; ++i) {
    int32_t d = DIMS - p.dims + i;
    p.kernel[d] = kernel[i], p.out[d] = size[i];
    if (size[i] < 1 || kernel[i] + size[i] - 1 > p.in[d])
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "kernel or output too large");
  }
  out_shape(&p, x, shape);
  AIT_GOTO(ait_nn_f64(call, x, &fx));
  AIT_GOTO(ait_nn_arg(call, 3, &samples));
  if (ait_tensor_count(&samples) < p.planes * p.dims) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "too few random samples"));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, x->rank, shape, &y));
  if (ait_nn_wants(call, 1)) {
    AIT_GOTO(ait_ref_new(call, 1, AIT_I64, x->rank, shape, &index));
    p.index = index.data;
  }
  p.x = fx.data, p.y = y.data;
  for (int64_t plane = 0; plane < p.planes; ++plane) fractional_plane(&p, plane, ait_nn_data(&samples) + plane * p.dims);
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, x->dtype), &y);
cleanup:
  ait_tensor_release(&fx);
  ait_tensor_release(&samples);
  ait_tensor_release(&y);
  return status;
}
