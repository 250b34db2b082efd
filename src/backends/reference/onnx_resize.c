/* ONNX: Resize, GridSample, AffineGrid, CenterCropPad. */
#include "backends/reference/onnx.h"

/* ---- Resize: separable, one axis after the other -----------------------------------------------------------------------------------*/

typedef struct resize {
  const char *mode, *coordinates, *nearest, *policy;
  double cubic_a, extrapolation;
  bool antialias, exclude_outside;
  double scale[AIT_MAX_RANK], roi_start[AIT_MAX_RANK], roi_end[AIT_MAX_RANK];
  int64_t size[AIT_MAX_RANK];
  bool resized[AIT_MAX_RANK]; /* named by axes */
} resize;

typedef struct taps {
  int64_t first, count;
  double *weights;
  bool outside; /* the extrapolation value */
} taps;

static double cubic(double x, double a) {
  x = fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Coordinate in the operand of element i of the result. */
static double source_of(const resize *r, int32_t axis, int64_t in, int64_t out, int64_t i, bool *outside) {
  double scale = r->scale[axis], x = (double)i, width = scale * (double)in;
  *outside = false;
  if (strcmp(r->coordinates, "align_corners") == 0) return width == 1 ? 0 : x * ((double)in - 1) / (width - 1);
  if (strcmp(r->coordinates, "asymmetric") == 0) return x / scale;
  if (strcmp(r->coordinates, "pytorch_half_pixel") == 0) return width == 1 ? -0.5 : (x + 0.5) / scale - 0.5;
  if (strcmp(r->coordinates, "half_pixel_symmetric") == 0) {
    double adjustment = (double)out / width, centre = (double)in / 2;
    return centre * (1 - adjustment) + (x + 0.5) / scale - 0.5;
  }
  if (strcmp(r->coordinates, "tf_crop_and_resize") == 0) {
    double start = r->roi_start[axis], span = r->roi_end[axis] - start, last = (double)in - 1;
    x = (width == 1 ? span * last / 2 : x * span * last / (width - 1)) + start * last;
    *outside = x < 0 || x > last;
    return x;
  }
  return (x + 0.5) / scale - 0.5;
}

static int64_t nearest_of(const resize *r, double x) {
  double low = floor(x), ratio = x - low;
  if (ratio == 0) return (int64_t)low;
  if (strcmp(r->nearest, "floor") == 0) return (int64_t)low;
  if (strcmp(r->nearest, "ceil") == 0) return (int64_t)low + 1;
  if (strcmp(r->nearest, "round_prefer_ceil") == 0) return (int64_t)low + (ratio >= 0.5);
  return (int64_t)low + (ratio > 0.5);
}

/* How many neighbours count: with antialias the filter is as wide as what is shrunk to one element. */
static int64_t tap_limit(const resize *r, double scale) {
  bool is_cubic = strcmp(r->mode, "cubic") == 0;
  if (strcmp(r->mode, "nearest") == 0) return 1;
  if (!r->antialias || scale >= 1) return is_cubic ? 4 : 2;
  return 2 * (int64_t)ceil((is_cubic ? 2 : 1) / scale) + 2;
}

static void weigh(const resize *r, double x, double scale, int64_t in, taps *t) {
  bool is_cubic = strcmp(r->mode, "cubic") == 0;
  double filter = r->antialias && scale < 1 ? scale : 1, reach = (is_cubic ? 2 : 1) / filter, sum = 0;
  if (strcmp(r->mode, "nearest") == 0) {
    *t = (taps){nearest_of(r, x), 1, t->weights, false};
    t->weights[0] = 1;
    return;
  }
  t->first = (int64_t)floor(x - reach) + 1;
  t->count = (int64_t)ceil(x + reach) - t->first;
  if (t->count < 1) t->count = 1;
  for (int64_t k = 0; k < t->count; ++k) {
    double d = ((double)(t->first + k) - x) * filter;
    double w = is_cubic ? cubic(d, r->cubic_a) : fabs(d) < 1 ? 1 - fabs(d) : 0;
    int64_t at = t->first + k;
    if (r->exclude_outside && (at < 0 || at >= in)) w = 0;
    t->weights[k] = w;
    sum += w;
  }
  bool normalise = r->exclude_outside || (r->antialias && scale < 1);
  for (int64_t k = 0; normalise && sum != 0 && k < t->count; ++k) t->weights[k] /= sum;
}

static ait_status resize_axis(const ait_ref_call *call, const resize *r, int32_t axis, ait_tensor *x) {
  int64_t in = x->shape[axis], out = r->size[axis], inner = ait_nn_span(x, axis + 1, x->rank), outer = ait_nn_span(x, 0, axis),
          shape[AIT_MAX_RANK];
  double scale = r->scale[axis];
  ait_tensor y;
  if (!(scale > 0) || scale < 1e-7) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "scale of axis %d is %g", axis, scale);
  if (in == 0 && out > 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "axis %d is empty", axis);
  memcpy(shape, x->shape, sizeof shape);
  shape[axis] = out;
  AIT_TRY(ait_ref_temp(call, AIT_F64, x->rank, shape, &y));
  int64_t limit = tap_limit(r, scale) + 2;
  double *weights = ait_nn_doubles(call, limit);
  if (!weights) {
    ait_tensor_release(&y);
    return AIT_OOM();
  }
  const double *from = x->data;
  double *to = y.data;
  for (int64_t i = 0; i < out; ++i) {
    taps t = {.weights = weights};
    bool outside;
    double place = source_of(r, axis, in, out, i, &outside);
    weigh(r, place, scale, in, &t);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t k = 0; k < inner; ++k) {
        double sum = 0;
        for (int64_t j = 0; j < t.count; ++j) {
          int64_t at = t.first + j < 0 ? 0 : t.first + j >= in ? in - 1 : t.first + j;
          if (t.weights[j] != 0) sum += t.weights[j] * from[(o * in + at) * inner + k];
        }
        to[(o * out + i) * inner + k] = outside ? r->extrapolation : sum;
      }
    }
  }
  ait_nn_doubles_free(call, weights, limit);
  ait_tensor_release(x);
  *x = y;
  return AIT_OK;
}

/* Numbers in a tensor argument; *out_count -1 when it is none. */
static ait_status numbers(const ait_ref_call *call, uint32_t arg, double *out, int32_t max, int32_t *out_count) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  *out_count = -1;
  if (!t) return AIT_OK;
  if (t->rank != 1 || t->shape[0] > max) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "argument %u is no short vector", arg);
  *out_count = (int32_t)t->shape[0];
  for (int32_t i = 0; i < *out_count; ++i) out[i] = ait_element_f64(ait_onnx_at(t, i * t->strides[0]), t->dtype);
  return AIT_OK;
}

/* (x, roi?, scales?, sizes?, scale list?, axes?, mode, coordinates, nearest, policy, cubic_a, extrapolation, antialias, exclude_outside) */
static ait_status read_resize(const ait_ref_call *call, const ait_tensor *x, resize *r) {
  double scales[AIT_MAX_RANK], sizes[AIT_MAX_RANK], roi[2 * AIT_MAX_RANK], best = 0;
  int64_t axes[AIT_MAX_RANK];
  int32_t scale_count, size_count, roi_count, n;
  AIT_TRY(numbers(call, 1, roi, 2 * AIT_MAX_RANK, &roi_count));
  AIT_TRY(numbers(call, 2, scales, AIT_MAX_RANK, &scale_count));
  AIT_TRY(numbers(call, 3, sizes, AIT_MAX_RANK, &size_count));
  if (scale_count < 0 && !ait_ref_is_none(call, 4)) AIT_TRY(ait_ref_floats(call, 4, scales, &scale_count));
  AIT_TRY(ait_ref_ints(call, 5, axes, &n));
  if (ait_ref_is_none(call, 5)) {
    n = x->rank;
    for (int32_t d = 0; d < n; ++d) axes[d] = d;
  }
  const char **const texts[] = {&r->mode, &r->coordinates, &r->nearest, &r->policy};
  for (uint32_t i = 0; i < 4; ++i) {
    *texts[i] = ait_ref_string(call, 6 + i);
    if (!*texts[i]) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "a mode is missing");
  }
  AIT_TRY(ait_ref_float(call, 10, &r->cubic_a));
  AIT_TRY(ait_ref_float(call, 11, &r->extrapolation));
  AIT_TRY(ait_ref_bool(call, 12, &r->antialias));
  AIT_TRY(ait_ref_bool(call, 13, &r->exclude_outside));
  if (scale_count != n && size_count != n) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "scales or sizes do not fit %d axes", n);
  if (roi_count > 0 && roi_count != 2 * n)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the region has %d numbers for %d axes", roi_count, n);
  for (int32_t d = 0; d < x->rank; ++d) r->scale[d] = 1, r->size[d] = x->shape[d], r->roi_end[d] = 1;
  bool larger = strcmp(r->policy, "not_smaller") == 0, keep = larger || strcmp(r->policy, "not_larger") == 0;
  for (int32_t i = 0; i < n; ++i) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, axes[i], x->rank, &d));
    r->resized[d] = true;
    if (size_count == n) {
      if (!(sizes[i] >= 0 && sizes[i] < 1e15)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "size %g", sizes[i]);
      r->size[d] = (int64_t)sizes[i];
      r->scale[d] = x->shape[d] ? sizes[i] / (double)x->shape[d] : 1;
    } else {
      r->scale[d] = scales[i];
      double size = floor((double)x->shape[d] * scales[i]);
      if (!(size >= 0 && size < 1e15)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "scale %g", scales[i]);
      r->size[d] = (int64_t)size;
    }
    if (i == 0 || (larger ? r->scale[d] > best : r->scale[d] < best)) best = r->scale[d];
    if (roi_count > 0) r->roi_start[d] = roi[i], r->roi_end[d] = roi[n + i];
  }
  for (int32_t d = 0; keep && size_count == n && d < x->rank; ++d) {
    if (!r->resized[d]) continue;
    r->scale[d] = best;
    r->size[d] = (int64_t)floor(best * (double)x->shape[d] + 0.5);
  }
  return AIT_OK;
}

/* Integers: rounded to the nearest even by numpy's rule, saturated. */
static void store_saturated(void *to, ait_dtype dtype, double v) {
  switch (dtype) {
    case AIT_U8: v = v < 0 ? 0 : v > 255 ? 255 : nearbyint(v); break;
    case AIT_I8: v = v < -128 ? -128 : v > 127 ? 127 : nearbyint(v); break;
    default:
      if (ait_dtype_is_integer(dtype)) v = nearbyint(v);
      break;
  }
  ait_element_set_f64(to, dtype, v);
}

ait_status ait_ref_onnx_resize(ait_ref_call *call) {
  const ait_tensor *x;
  resize r = {0};
  ait_tensor work, out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(read_resize(call, x, &r));
  AIT_TRY(ait_ref_to_f64(call, x, &work));
  ait_status status = AIT_OK;
  for (int32_t d = 0; d < x->rank && status == AIT_OK; ++d) {
    bool same = r.scale[d] == 1 && r.size[d] == x->shape[d] && r.roi_start[d] == 0 && r.roi_end[d] == 1;
    if (r.resized[d] && !same) status = resize_axis(call, &r, d, &work);
  }
  if (status == AIT_OK) status = ait_onnx_new(call, 0, x->dtype, x->rank, r.size, &out);
  for (int64_t i = 0, n = ait_tensor_count(&work); status == AIT_OK && i < n; ++i)
    store_saturated(ait_onnx_at(&out, i), out.dtype, ((const double *)work.data)[i]);
  ait_tensor_release(&work);
  return status;
}

/* ---- GridSample ------------------------------------------------------------------------------------------------------------------*/

enum { SPATIAL = AIT_MAX_RANK - 2 };
typedef enum padding { ZEROS, BORDER, REFLECTION } padding;

typedef struct grid {
  int32_t n;
  int64_t size[SPATIAL];
  padding pad;
  bool align;
  int mode; /* 0 nearest, 1 linear, 2 cubic */
} grid;

static double reflect(double x, double low, double high) {
  double range = high - low;
  if (range <= 0) return low;
  if (x < low) {
    double d = low - x, times = trunc(d / range), rest = d - times * range;
    return fmod(times, 2) == 0 ? low + rest : high - rest;
  }
  if (x > high) {
    double d = x - high, times = trunc(d / range), rest = d - times * range;
    return fmod(times, 2) == 0 ? high - rest : low + rest;
  }
  return x;
}

static double low_border(const grid *g) { return g->align ? 0 : -0.5; }
static double high_border(const grid *g, int32_t d) { return (double)g->size[d] - (g->align ? 1 : 0.5); }

/* Index of a tap within the operand, or -1: zero. */
static int64_t tap_index(const grid *g, int32_t d, int64_t i) {
  int64_t n = g->size[d];
  if (i >= 0 && i < n) return i;
  if (g->pad == ZEROS) return -1;
  if (g->pad == REFLECTION) i = (int64_t)reflect((double)i, low_border(g), high_border(g, d));
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* Taps of one coordinate: indices (-1: zero) and weights. */
static int taps_of(const grid *g, int32_t d, double v, int64_t index[4], double weight[4]) {
  double n = (double)g->size[d], x = g->align ? (v + 1) / 2 * (n - 1) : ((v + 1) * n - 1) / 2;
  if (g->mode == 0) x = nearbyint(x);
  if (x < low_border(g) || x > high_border(g, d)) {
    if (g->pad == BORDER) x = x < 0 ? 0 : x > n - 1 ? n - 1 : x;
    else if (g->pad == REFLECTION) x = reflect(x, low_border(g), high_border(g, d));
  }
  if (!(fabs(x) < 1e15)) x = g->pad == ZEROS ? -1e9 : 0;
  int64_t low = (int64_t)floor(x);
  double t = x - (double)low;
  int count = g->mode == 0 ? 1 : g->mode == 1 ? 2 : 4;
  for (int k = 0; k < count; ++k) {
    int64_t i = g->mode == 2 ? low - 1 + k : low + k;
    index[k] = tap_index(g, d, i);
    weight[k] = g->mode == 0 ? 1 : g->mode == 1 ? (k ? t : 1 - t) : cubic((double)i - x, -0.75);
  }
  return count;
}

/* Sum over the product of the dims' taps. */
static double sample(const grid *g, const double *plane, int64_t index[SPATIAL][4], double weight[SPATIAL][4], const int *counts) {
  int64_t shape[SPATIAL], k[SPATIAL] = {0};
  double sum = 0;
  for (int32_t d = 0; d < g->n; ++d) shape[d] = counts[d];
  do {
    double w = 1;
    int64_t at = 0;
    bool inside = true;
    for (int32_t d = 0; d < g->n && inside; ++d) {
      w *= weight[d][k[d]];
      inside = index[d][k[d]] >= 0;
      at = at * g->size[d] + index[d][k[d]];
    }
    if (inside && w != 0) sum += w * plane[at];
  } while (ait_ref_next(g->n, shape, k));
  return sum;
}

static ait_status read_grid(const ait_ref_call *call, const ait_tensor *x, const ait_tensor *points, grid *g) {
  const char *mode = ait_ref_string(call, 2), *pad = ait_ref_string(call, 3);
  AIT_TRY(ait_ref_bool(call, 4, &g->align));
  g->n = x->rank - 2;
  if (!mode || !pad || x->rank < 3 || points->rank != x->rank || points->shape[0] != x->shape[0] || points->shape[x->rank - 1] != g->n)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operand and grid do not fit");
  g->mode = strcmp(mode, "nearest") == 0 ? 0 : strcmp(mode, "linear") == 0 ? 1 : strcmp(mode, "cubic") == 0 ? 2 : -1;
  g->pad = strcmp(pad, "border") == 0 ? BORDER : strcmp(pad, "reflection") == 0 ? REFLECTION : ZEROS;
  if (g->mode < 0) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "mode '%s' is not known", mode);
  for (int32_t d = 0; d < g->n; ++d) {
    g->size[d] = x->shape[2 + d];
    if (g->size[d] == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the operand has no elements");
  }
  return AIT_OK;
}

/* (x, grid, mode, padding, align_corners) */
ait_status ait_ref_onnx_grid_sample(ait_ref_call *call) {
  const ait_tensor *x, *points;
  grid g = {0};
  ait_tensor in = {0}, at = {0}, out;
  int64_t shape[AIT_MAX_RANK], index[SPATIAL][4];
  double weight[SPATIAL][4];
  int counts[SPATIAL];
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &points));
  AIT_TRY(read_grid(call, x, points, &g));
  shape[0] = x->shape[0];
  shape[1] = x->shape[1];
  for (int32_t d = 0; d < g.n; ++d) shape[2 + d] = points->shape[1 + d];
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, x->rank, shape, &out));
  ait_status status = ait_ref_to_f64(call, x, &in);
  if (status == AIT_OK) status = ait_ref_to_f64(call, points, &at);
  int64_t places = ait_nn_span(&out, 2, out.rank), plane = ait_nn_span(x, 2, x->rank);
  for (int64_t n = 0; status == AIT_OK && n < shape[0]; ++n) {
    for (int64_t p = 0; p < places; ++p) {
      const double *v = (const double *)at.data + (n * places + p) * g.n;
      for (int32_t d = 0; d < g.n; ++d)
        counts[d] = taps_of(&g, d, v[g.n - 1 - d], index[d], weight[d]); /* the grid's first number is the last dim */
      for (int64_t c = 0; c < shape[1]; ++c) {
        int64_t image = n * shape[1] + c;
        ait_element_set_f64(ait_onnx_at(&out, image * places + p), out.dtype,
                            sample(&g, (const double *)in.data + image * plane, index, weight, counts));
      }
    }
  }
  ait_tensor_release(&in);
  ait_tensor_release(&at);
  return status;
}

/* (theta, size, align_corners) */
ait_status ait_ref_onnx_affine_grid(ait_ref_call *call) {
  int64_t size[5];
  int32_t n;
  ait_arg items[5];
  AIT_TRY(ait_onnx_ints(call, 1, size, 5, &n));
  for (int32_t i = 0; i < n; ++i) items[i] = (ait_arg){.kind = AIT_ARG_INT, .as.i = size[i]};
  ait_arg args[3] = {
      call->node->args[0], {.kind = AIT_ARG_LIST, .count = (uint32_t)(n < 0 ? 0 : n), .as.list = items}, call->node->args[2]};
  return ait_onnx_delegate(call, "aten.affine_grid_generator", args, 3);
}

/* (x, shape, axes?): the middle of the operand, or zeros around it */
ait_status ait_ref_onnx_center_crop_pad(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t wanted[AIT_MAX_RANK], axes[AIT_MAX_RANK], shape[AIT_MAX_RANK];
  int32_t n, axis_count;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_ints(call, 1, wanted, AIT_MAX_RANK, &n));
  AIT_TRY(ait_ref_ints(call, 2, axes, &axis_count));
  if (ait_ref_is_none(call, 2)) {
    axis_count = x->rank;
    for (int32_t d = 0; d < axis_count; ++d) axes[d] = d;
  }
  if (n != axis_count) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%d sizes for %d axes", n, axis_count);
  memcpy(shape, x->shape, sizeof shape);
  for (int32_t i = 0; i < n; ++i) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, axes[i], x->rank, &d));
    shape[d] = wanted[i];
  }
  AIT_TRY(ait_ref_new(call, 0, x->dtype, x->rank, shape, &out));
  memset(out.data, 0, ait_tensor_bytes(&out));
  ait_tensor from = *x, to = out;
  for (int32_t d = 0; d < x->rank; ++d) {
    int64_t less = x->shape[d] - shape[d];
    if (less > 0) from = ait_ref_narrowed(&from, d, less / 2, shape[d]);
    else if (less < 0) to = ait_ref_narrowed(&to, d, -less / 2, x->shape[d]);
  }
  return ait_ref_move(call, &to, &from);
}
