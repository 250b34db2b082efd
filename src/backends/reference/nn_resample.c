/* Resampling: upsample (nearest, linear, cubic, antialiased linear, cubic and Lanczos), grid_sampler, pixel and channel shuffles. */
#include "backends/reference/blocks.h"
#include "backends/reference/nn.h"

enum { DIMS = 3 };
typedef enum resample_mode { NEAREST, NEAREST_EXACT, LINEAR, CUBIC, LANCZOS } resample_mode;

/* What each output coordinate of one dim reads: `taps` sources with weights. */
typedef struct axis {
  int64_t in, out, taps;
  int64_t *index; /* [out][taps] */
  double *weight; /* [out][taps] */
} axis;

static double cubic_near(double x, double a) { return ((a + 2) * x - (a + 3)) * x * x + 1; }
static double cubic_far(double x, double a) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; }

/* Keys' cubic kernel with a = -0.75, at fraction t: weights of elements -1, 0, 1, 2. */
static void cubic_weights(double t, double w[4]) {
  const double a = -0.75;
  w[0] = cubic_far(t + 1, a);
  w[1] = cubic_near(t, a);
  w[2] = cubic_near(1 - t, a);
  w[3] = cubic_far(2 - t, a);
}

/* PyTorch finds the sources of `nearest` in single precision; the choice must be the same. */
static int64_t nearest_source(resample_mode mode, int64_t o, int64_t in, int64_t out, double factor) {
  float scale = factor > 0 ? (float)(1.0 / factor) : (float)in / (float)out;
  if (mode == NEAREST_EXACT) return ait_nn_min((int64_t)floorf(((float)o + 0.5f) * scale), in - 1);
  if (in == out) return o;
  if (out == 2 * in) return o >> 1;
  return ait_nn_min((int64_t)floorf((float)o * scale), in - 1);
}

static double source_of(int64_t o, int64_t in, int64_t out, bool align, double factor, bool cubic) {
  if (align) return out > 1 ? (double)o * ((double)(in - 1) / (double)(out - 1)) : 0;
  double scale = factor > 0 ? 1 / factor : (double)in / (double)out, x = ((double)o + 0.5) * scale - 0.5;
  return x < 0 && !cubic ? 0 : x;
}

static int64_t clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

static void fill_axis(axis *a, resample_mode mode, bool align, double factor) {
  for (int64_t o = 0; o < a->out; ++o) {
    int64_t *index = a->index + o * a->taps;
    double *w = a->weight + o * a->taps;
    if (mode == NEAREST || mode == NEAREST_EXACT) {
      index[0] = clamp(nearest_source(mode, o, a->in, a->out, factor), a->in);
      w[0] = 1;
      continue;
    }
    double x = source_of(o, a->in, a->out, align, factor, mode == CUBIC), base = floor(x), t = x - base;
    if (mode == LINEAR) {
      int64_t i = ait_nn_min((int64_t)base, a->in - 1);
      t = x - (double)i;
      if (t > 1) t = 1;
      index[0] = i, index[1] = ait_nn_min(i + 1, a->in - 1);
      w[0] = 1 - t, w[1] = t;
      continue;
    }
    cubic_weights(t, w);
    for (int64_t k = 0; k < 4; ++k) index[k] = clamp((int64_t)base - 1 + k, a->in);
  }
}

static double sinc(double x) { return x == 0 ? 1 : sin(M_PI * x) / (M_PI * x); }

static double aa_filter(double x, resample_mode mode) {
  x = fabs(x);
  if (mode == LANCZOS) return x < 3 ? sinc(x) * sinc(x / 3) : 0;
  if (mode != CUBIC) return x < 1 ? 1 - x : 0;
  return x < 1 ? cubic_near(x, -0.5) : x < 2 ? cubic_far(x, -0.5) : 0;
}

/* The filter is stretched when the image shrinks, as in Pillow. */
static double aa_support(const axis *a, bool align, double factor, resample_mode mode, double *scale) {
  if (align) *scale = a->out > 1 ? (double)(a->in - 1) / (double)(a->out - 1) : 0;
  else *scale = factor > 0 ? 1 / factor : (double)a->in / (double)a->out;
  double half = mode == LANCZOS ? 3 : mode == CUBIC ? 2 : 1;
  return *scale >= 1 ? half * *scale : half;
}

static void fill_axis_aa(axis *a, bool align, double factor, resample_mode mode) {
  double scale, support = aa_support(a, align, factor, mode, &scale), inverse = scale >= 1 ? 1 / scale : 1;
  for (int64_t o = 0; o < a->out; ++o) {
    double center = scale * ((double)o + 0.5), total = 0;
    int64_t first = ait_nn_max((int64_t)(center - support + 0.5), 0);
    int64_t n = ait_nn_min(ait_nn_min((int64_t)(center + support + 0.5), a->in) - first, a->taps);
    for (int64_t k = 0; k < a->taps; ++k) {
      a->index[o * a->taps + k] = clamp(first + k, a->in);
      double w = k < n ? aa_filter(((double)(k + first) - center + 0.5) * inverse, mode) : 0;
      a->weight[o * a->taps + k] = w;
      total += w;
    }
    for (int64_t k = 0; k < n && total != 0; ++k) a->weight[o * a->taps + k] /= total;
  }
}

static ait_status axis_alloc(const ait_ref_call *call, axis *a) {
  size_t bytes = (size_t)(a->out * a->taps) * sizeof(double);
  a->index = ait_alloc(call->allocator, bytes, 8);
  a->weight = ait_alloc(call->allocator, bytes, 8);
  return a->index && a->weight ? AIT_OK : AIT_OOM();
}

static void axis_free(const ait_ref_call *call, axis *a) {
  size_t bytes = (size_t)(a->out * a->taps) * sizeof(double);
  ait_free(call->allocator, a->index, bytes);
  ait_free(call->allocator, a->weight, bytes);
}

typedef struct resample_job {
  const axis *a;
  const double *x; /* [outer, in, inner] */
  double *y;       /* [outer, out, inner] */
  int64_t inner;
} resample_job;

static void resample_rows(void *ctx, int64_t begin, int64_t end) {
  const resample_job *j = ctx;
  const axis *a = j->a;
  for (int64_t r = begin; r < end; ++r) {
    int64_t outer = r / a->out, o = r % a->out;
    double *y = j->y + r * j->inner;
    for (int64_t i = 0; i < j->inner; ++i) y[i] = 0;
    for (int64_t k = 0; k < a->taps; ++k) {
      double w = a->weight[o * a->taps + k];
      if (w == 0) continue;
      const double *x = j->x + (outer * a->in + a->index[o * a->taps + k]) * j->inner;
      if (w == 1)
        for (int64_t i = 0; i < j->inner; ++i) y[i] += x[i];
      else
        for (int64_t i = 0; i < j->inner; ++i) y[i] += w * x[i];
    }
  }
}

/* Resamples dim d of *t (double), replacing it. */
static ait_status resample_dim(const ait_ref_call *call, ait_tensor *t, int32_t d, const axis *a) {
  int64_t shape[AIT_MAX_RANK];
  memcpy(shape, t->shape, sizeof shape);
  shape[d] = a->out;
  ait_tensor out;
  AIT_TRY(ait_ref_temp(call, AIT_F64, t->rank, shape, &out));
  resample_job job = {.a = a, .x = t->data, .y = out.data, .inner = ait_nn_span(t, d + 1, t->rank)};
  if (ait_tensor_count(&out) > 0) ait_ref_parallel(call, ait_nn_span(t, 0, d) * a->out, job.inner * a->taps, resample_rows, &job);
  ait_tensor_release(t);
  *t = out;
  return AIT_OK;
}

/* torch keeps images of bytes as bytes between the passes, rounded to the nearest. */
static void round_bytes(ait_tensor *t) {
  double *x = t->data;
  for (int64_t i = 0; i < ait_tensor_count(t); ++i) x[i] = fmin(255, fmax(0, floor(x[i] + 0.5)));
}

/* torch and Pillow hold the weights of byte images in 16 bits: as many binary places as the largest one leaves. Taps that the border maps
 * onto one element count as one. */
static void quantise_weights(axis *a) {
  double largest = 0;
  for (int64_t o = 0; o < a->out; ++o) {
    int64_t *index = a->index + o * a->taps;
    double *w = a->weight + o * a->taps;
    for (int64_t k = 1; k < a->taps; ++k)
      if (index[k] == index[k - 1]) w[k] += w[k - 1], w[k - 1] = 0;
    for (int64_t k = 0; k < a->taps; ++k) largest = fmax(largest, w[k]);
  }
  int places = 0;
  while (places < 22 && floor(0.5 + ldexp(largest, places + 1)) < 32768) ++places;
  for (int64_t i = 0; i < a->out * a->taps; ++i) a->weight[i] = ldexp(round(ldexp(a->weight[i], places)), -places);
}

typedef struct upsample_args {
  resample_mode mode;
  bool align, antialias;
  int32_t dims;
  int64_t size[DIMS];
  double factor[DIMS]; /* 0: not given */
} upsample_args;

static ait_status upsample(ait_ref_call *call, const upsample_args *u) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (t->rank < u->dims) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", t->rank);
  ait_tensor x;
  AIT_TRY(ait_nn_f64(call, t, &x));
  ait_status status = AIT_OK;
  /* from the last dim: as torch's separable kernels go */
  for (int32_t i = u->dims - 1; !status && i >= 0; --i) {
    int32_t d = t->rank - u->dims + i;
    axis a = {.in = t->shape[d], .out = u->size[i], .taps = u->mode == CUBIC ? 4 : u->mode == LINEAR ? 2 : 1};
    double scale;
    if (a.in < 1 || a.out < 1) status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "empty dim");
    else if (u->antialias) a.taps = (int64_t)ceil(aa_support(&a, u->align, u->factor[i], u->mode, &scale)) * 2 + 1;
    if (!status) status = axis_alloc(call, &a);
    if (!status && u->antialias) fill_axis_aa(&a, u->align, u->factor[i], u->mode);
    else if (!status) fill_axis(&a, u->mode, u->align, u->factor[i]);
    if (!status && t->dtype == AIT_U8 && u->dims == 2 && (u->mode == LINEAR || u->mode == CUBIC)) quantise_weights(&a);
    if (!status) status = resample_dim(call, &x, d, &a);
    if (!status && t->dtype == AIT_U8) round_bytes(&x);
    axis_free(call, &a);
  }
  if (!status) status = ait_nn_result_format(call, 0, ait_nn_dtype(call, 0, t->dtype), &x, t);
  ait_tensor_release(&x);
  return status;
}

/* Sizes from output_size, or from scale factors: floor(in * factor). */
static ait_status sizes(const ait_ref_call *call, uint32_t size_arg, uint32_t factor_arg, upsample_args *u) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  int64_t size[AIT_MAX_RANK];
  double factor[AIT_MAX_RANK];
  int32_t sizes_given, factors_given = 0;
  AIT_TRY(ait_ref_ints(call, size_arg, size, &sizes_given));
  if (factor_arg != AIT_NO_INDEX) AIT_TRY(ait_ref_floats(call, factor_arg, factor, &factors_given));
  int32_t n = sizes_given ? sizes_given : factors_given;
  if (u->dims == 0) u->dims = n;
  if (n != u->dims || n < 1 || n > DIMS || t->rank < n) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "%d sizes", n);
  for (int32_t i = 0; i < n; ++i) {
    /* a factor counts for the sources even beside a size; without one, sizes decide */
    u->factor[i] = factors_given == n ? factor[i] : 0;
    u->size[i] = sizes_given ? size[i] : (int64_t)((double)t->shape[t->rank - n + i] * factor[i]);
  }
  return AIT_OK;
}

static int32_t dims_in_name(const ait_ref_call *call) {
  const char *digit = strpbrk(call->node->op, "123");
  return digit ? *digit - '0' : 0;
}

static resample_mode mode_in_name(const char *name) {
  return strstr(name, "nearest_exact") || strstr(name, "nearest-exact") ? NEAREST_EXACT
         : strstr(name, "nearest")                                      ? NEAREST
         : strstr(name, "cubic")                                        ? CUBIC
         : strstr(name, "lanczos")                                      ? LANCZOS
                                                                        : LINEAR;
}

/* aten.*upsample_*.vec: input, output_size, [align_corners,] scale_factors */
ait_status ait_ref_upsample_vec(ait_ref_call *call) {
  upsample_args u = {.mode = mode_in_name(call->node->op), .dims = dims_in_name(call)};
  u.antialias = strstr(call->node->op, "_aa") != NULL;
  bool aligned = u.mode == LINEAR || u.mode == CUBIC || u.mode == LANCZOS;
  if (aligned) AIT_TRY(ait_ref_bool(call, 2, &u.align));
  AIT_TRY(sizes(call, 1, aligned ? 3 : 2, &u));
  return upsample(call, &u);
}

/* The same with one argument per scale: self, output_size, align_corners, scales_h, scales_w */
ait_status ait_ref_upsample_scales(ait_ref_call *call) {
  upsample_args u = {.mode = mode_in_name(call->node->op), .dims = dims_in_name(call)};
  u.antialias = strstr(call->node->op, "_aa") != NULL;
  bool aligned = u.mode == LINEAR || u.mode == CUBIC || u.mode == LANCZOS;
  if (aligned) AIT_TRY(ait_ref_bool(call, 2, &u.align));
  AIT_TRY(sizes(call, 1, AIT_NO_INDEX, &u));
  for (int32_t i = 0; i < u.dims; ++i) AIT_TRY(ait_ref_float_or(call, (aligned ? 3u : 2u) + (uint32_t)i, 0, &u.factor[i]));
  return upsample(call, &u);
}

/* core upsample: x, output_size, mode, align_corners, scales */
ait_status ait_ref_core_upsample(ait_ref_call *call) {
  const char *mode = ait_ref_string(call, 2);
  if (!mode) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "no mode");
  upsample_args u = {.mode = mode_in_name(mode)};
  u.antialias = strstr(mode, "_aa") != NULL || strstr(mode, "-aa") != NULL;
  AIT_TRY(ait_ref_bool(call, 3, &u.align));
  AIT_TRY(sizes(call, 1, 4, &u));
  return upsample(call, &u);
}

/* ---- grid_sampler ------------------------------------------------------------------------------------------------------------ */
enum { PAD_ZEROS, PAD_BORDER, PAD_REFLECTION };
enum { GRID_LINEAR, GRID_NEAREST, GRID_CUBIC };

typedef struct grid {
  int64_t mode, padding;
  bool align, half; /* half: coordinates are float16 or bfloat16 */
  ait_dtype dtype;
  int32_t dims;
  int64_t channels, in[DIMS], points; /* points: per sample */
  const double *x, *g;
  double *y;
} grid;

static double reflect(double x, double low2, double high2) {
  if (low2 == high2) return 0;
  double low = low2 / 2, span = (high2 - low2) / 2;
  x = fabs(x - low);
  double extra = fmod(x, span);
  return fmod(floor(x / span), 2) == 0 ? extra + low : span - extra + low;
}

static double place(const grid *g, double x, int64_t n) {
  if (g->padding == PAD_REFLECTION) x = g->align ? reflect(x, 0, 2.0 * (double)(n - 1)) : reflect(x, -1, 2.0 * (double)n - 1);
  if (g->padding != PAD_ZEROS) x = !(x > 0) ? 0 : x > (double)(n - 1) ? (double)(n - 1) : x; /* NaN: the first element */
  return x;
}

static double in_half(const grid *g, double v) {
  if (g->half) ait_ref_round_to(g->dtype, 1, &v);
  return v;
}

/* The position in a dim of n elements. Halves round after each operation: a pixel is little against their steps, so the sources depend on
 * it. torch's kernel for images multiplies by half the size, that for volumes does not. */
static double position(const grid *g, double coordinate, int64_t n) {
  if (!g->half) return g->align ? (coordinate + 1) / 2 * (double)(n - 1) : ((coordinate + 1) * (double)n - 1) / 2;
  double x = in_half(g, coordinate + 1), size = in_half(g, (double)(g->align ? n - 1 : n));
  if (g->dims == 2) {
    x = in_half(g, x * in_half(g, size / 2));
    return g->align ? x : in_half(g, x - 0.5);
  }
  if (g->align) return in_half(g, in_half(g, x / 2) * size);
  return in_half(g, in_half(g, in_half(g, x * size) - 1) / 2);
}

/* Index and weight of up to 4 sources of one coordinate; index -1: outside, counts as zero. */
static int grid_taps(const grid *g, double coordinate, int64_t n, int64_t *index, double *w) {
  double x = position(g, coordinate, n);
  if (g->mode != GRID_CUBIC) x = place(g, x, n);
  int taps;
  if (!isfinite(x) && g->mode != GRID_NEAREST) {
    index[0] = 0;
    w[0] = NAN;
    return 1;
  }
  if (!(fabs(x) < 1e15)) x = g->mode == GRID_CUBIC && x > 0 ? 1e15 : -1e15; /* far outside; integers hold it */
  if (g->mode == GRID_NEAREST) {
    taps = 1;
    index[0] = (int64_t)nearbyint(x);
    w[0] = 1;
  } else if (g->mode == GRID_LINEAR) {
    taps = 2;
    double base = floor(x);
    index[0] = (int64_t)base, index[1] = index[0] + 1;
    w[1] = in_half(g, x - base), w[0] = in_half(g, 1 - w[1]);
  } else {
    taps = 4;
    double base = floor(x);
    cubic_weights(x - base, w);
    for (int k = 0; k < 4; ++k) index[k] = (int64_t)place(g, base - 1 + k, n);
  }
  for (int k = 0; k < taps; ++k)
    if (index[k] < 0 || index[k] >= n) index[k] = -1;
  return taps;
}

static void sample_points(void *ctx, int64_t begin, int64_t end) {
  const grid *g = ctx;
  int64_t plane = g->in[0] * g->in[1] * g->in[2];
  for (int64_t p = begin; p < end; ++p) {
    int64_t sample = p / g->points, point = p % g->points, index[DIMS][4] = {{0}};
    double w[DIMS][4] = {{1}, {1}, {1}};
    int taps[DIMS] = {1, 1, 1};
    for (int32_t i = 0; i < g->dims; ++i) { /* the grid's first coordinate is the last dim */
      int32_t d = DIMS - 1 - i;
      taps[d] = grid_taps(g, g->g[p * g->dims + i], g->in[d], index[d], w[d]);
    }
    for (int64_t c = 0; c < g->channels; ++c) {
      const double *x = g->x + (sample * g->channels + c) * plane;
      double sum = 0;
      for (int a = 0; a < taps[0]; ++a)
        for (int b = 0; b < taps[1]; ++b)
          for (int e = 0; e < taps[2]; ++e) {
            if (index[0][a] < 0 || index[1][b] < 0 || index[2][e] < 0) continue;
            double value = x[(index[0][a] * g->in[1] + index[1][b]) * g->in[2] + index[2][e]];
            if (g->half) sum = in_half(g, sum + in_half(g, in_half(g, in_half(g, w[2][e] * w[1][b]) * w[0][a]) * value));
            else sum += w[0][a] * w[1][b] * w[2][e] * value;
          }
      g->y[(sample * g->channels + c) * g->points + point] = sum;
    }
  }
}

ait_status ait_ref_grid_sampler(ait_ref_call *call) {
  const ait_tensor *t, *where;
  grid g = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_tensor(call, 1, &where));
  AIT_TRY(ait_ref_int(call, 2, &g.mode));
  AIT_TRY(ait_ref_int(call, 3, &g.padding));
  AIT_TRY(ait_ref_bool(call, 4, &g.align));
  g.dtype = t->dtype;
  g.half = t->dtype == AIT_F16 || t->dtype == AIT_BF16;
  g.dims = t->rank - 2;
  if ((g.dims != 2 && g.dims != 3) || where->rank != t->rank || where->shape[where->rank - 1] != g.dims || where->shape[0] != t->shape[0])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input and grid do not fit together");
  int64_t shape[AIT_MAX_RANK] = {t->shape[0], t->shape[1]};
  g.channels = t->shape[1], g.points = 1;
  for (int32_t d = 0; d < DIMS; ++d) g.in[d] = d < DIMS - g.dims ? 1 : t->shape[2 + d - (DIMS - g.dims)];
  for (int32_t d = 0; d < g.dims; ++d) g.points *= shape[2 + d] = where->shape[1 + d];
  ait_tensor x = {0}, w = {0}, y = {0};
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, t, &x));
  AIT_GOTO(ait_nn_f64(call, where, &w));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, t->rank, shape, &y));
  g.x = x.data, g.g = w.data, g.y = y.data;
  if (ait_tensor_count(&y) > 0) ait_ref_parallel(call, shape[0] * g.points, g.channels * 16, sample_points, &g);
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &y);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&w);
  ait_tensor_release(&y);
  return status;
}

/* ---- shuffles: a reshape, a permutation, a reshape --------------------------------------------------------------------------- */
/* `split`: x seen with `rank` dims of these sizes and strides, already permuted; copied as result 0 of the given shape. */
static ait_status copy_as(ait_ref_call *call, const ait_tensor *permuted, int32_t rank, const int64_t *shape) {
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, permuted->dtype, rank, shape, &out));
  ait_tensor flat = out;
  flat.rank = permuted->rank;
  memcpy(flat.shape, permuted->shape, sizeof flat.shape);
  ait_tensor_set_contiguous(&flat);
  return ait_tensor_count(&out) > 0 ? ait_tensor_copy(&flat, permuted) : AIT_OK;
}

static void push(ait_tensor *v, int64_t size, int64_t stride) {
  v->shape[v->rank] = size;
  v->strides[v->rank++] = stride;
}

ait_status ait_ref_pixel_shuffle(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t r, shape[AIT_MAX_RANK];
  bool down = ait_nn_is(call, "aten.pixel_unshuffle");
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &r));
  int32_t lead = t->rank - 3;
  if (lead < 0 || lead + 6 > AIT_MAX_RANK || r < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", t->rank);
  int64_t c = t->shape[lead], h = t->shape[lead + 1], w = t->shape[lead + 2];
  int64_t sc = t->strides[lead], sh = t->strides[lead + 1], sw = t->strides[lead + 2];
  if (down ? h % r != 0 || w % r != 0 : c % (r * r) != 0)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "sizes are not divisible by the factor");
  ait_tensor v = *t;
  v.rank = lead;
  memcpy(shape, t->shape, sizeof shape);
  if (down) {
    shape[lead] = c * r * r, shape[lead + 1] = h / r, shape[lead + 2] = w / r;
    push(&v, c, sc), push(&v, r, sh), push(&v, r, sw), push(&v, h / r, sh * r), push(&v, w / r, sw * r);
  } else {
    shape[lead] = c / (r * r), shape[lead + 1] = h * r, shape[lead + 2] = w * r;
    push(&v, c / (r * r), sc * r * r), push(&v, h, sh), push(&v, r, sc * r), push(&v, w, sw), push(&v, r, sc);
  }
  return copy_as(call, &v, t->rank, shape);
}

ait_status ait_ref_channel_shuffle(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t groups;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &groups));
  if (t->rank < 3 || t->rank + 1 > AIT_MAX_RANK || groups < 1 || t->shape[1] % groups != 0)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "channels are not divisible into groups");
  ait_tensor v = *t;
  int64_t per = t->shape[1] / groups;
  v.rank = 1;
  push(&v, per, t->strides[1]);
  push(&v, groups, t->strides[1] * per);
  for (int32_t d = 2; d < t->rank; ++d) push(&v, t->shape[d], t->strides[d]);
  return copy_as(call, &v, t->rank, t->shape);
}
