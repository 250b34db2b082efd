/* Operators that belong to no family: windows, grids, histograms, trapezoids, quantiles, dense and sparse layouts, matrix views. */
#include "backends/reference/nn.h"

/* ---- windows ----------------------------------------------------------------------------------------------------------------- */
/* 10.25.2 of the DLMF */
static double bessel_i0(double x) {
  double y = x * x / 4, term = 1, sum = 1;
  for (int k = 1; k < 500 && term > sum * 1e-18; ++k) sum += term *= y / ((double)k * k);
  return sum;
}

/* Value i of a window of n; a, b: the window's parameters. A periodic one has one more value than it gives. */
static double window_value(const char *op, int64_t i, int64_t n, double a, double b) {
  double t = (double)i / (double)(n - 1), angle = 2 * M_PI * t;
  if (strstr(op, "hann")) return 0.5 - 0.5 * cos(angle);
  if (strstr(op, "hamming")) return a - b * cos(angle);
  if (strstr(op, "blackman")) return 0.42 - 0.5 * cos(angle) + 0.08 * cos(2 * angle);
  if (strstr(op, "bartlett")) return 1 - fabs(2 * t - 1);
  return bessel_i0(a * sqrt(fmax(0, 1 - (2 * t - 1) * (2 * t - 1)))) / bessel_i0(a); /* Kaiser */
}

/* hann, hamming, blackman, bartlett, kaiser: window_length[, periodic[, parameters]] */
ait_status ait_ref_window(ait_ref_call *call) {
  const char *op = call->node->op;
  bool periodic = true, kaiser = strstr(op, "kaiser") != NULL;
  double a = kaiser ? 12 : 0.54, b = 0.46;
  int64_t n;
  uint32_t at = 1;
  AIT_TRY(ait_ref_int(call, 0, &n));
  if (strchr(op + 5, '.')) AIT_TRY(ait_ref_bool(call, at++, &periodic));
  if (strstr(op, "alpha") || strstr(op, ".beta")) AIT_TRY(ait_ref_float(call, at++, &a));
  if (strstr(op, "_beta")) AIT_TRY(ait_ref_float(call, at++, &b));
  ait_tensor w;
  AIT_TRY(ait_ref_temp(call, AIT_F64, 1, &n, &w));
  for (int64_t i = 0; i < n; ++i) ait_nn_data_mut(&w)[i] = n == 1 ? 1 : window_value(op, i, n + periodic, a, b);
  ait_status status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, ait_ref_dtype(call, at, ait_ref_widen(call, AIT_F32))), &w);
  ait_tensor_release(&w);
  return status;
}

/* fft_fftfreq, fft_rfftfreq: n, d */
ait_status ait_ref_fftfreq(ait_ref_call *call) {
  int64_t n, count;
  double d;
  bool real = ait_nn_is(call, "aten.fft_rfftfreq");
  ait_tensor f;
  AIT_TRY(ait_ref_int(call, 0, &n));
  AIT_TRY(ait_ref_float(call, 1, &d));
  count = real ? n / 2 + 1 : n;
  AIT_TRY(ait_ref_temp(call, AIT_F64, 1, &count, &f));
  for (int64_t i = 0; i < count; ++i) ait_nn_data_mut(&f)[i] = (double)(real || i < (n + 1) / 2 ? i : i - n) / ((double)n * d);
  ait_status status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, ait_ref_dtype(call, 2, ait_ref_widen(call, AIT_F32))), &f);
  ait_tensor_release(&f);
  return status;
}

/* affine_grid_generator(theta [N, d, d + 1], size [N, C, ..], align_corners) -> [N, .., d] */
ait_status ait_ref_affine_grid(ait_ref_call *call) {
  ait_tensor theta = {0}, out = {0};
  int64_t size[AIT_MAX_RANK], shape[5], index[5] = {0};
  int32_t rank;
  bool align;
  ait_status status;
  AIT_TRY(ait_ref_ints(call, 1, size, &rank));
  AIT_TRY(ait_ref_bool(call, 2, &align));
  AIT_GOTO(ait_nn_arg(call, 0, &theta));
  int64_t d = rank - 2;
  if ((d != 2 && d != 3) || ait_tensor_count(&theta) != size[0] * d * (d + 1))
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "shapes"));
  shape[0] = size[0];
  for (int64_t i = 0; i < d; ++i) shape[1 + i] = size[2 + i];
  shape[1 + d] = d;
  AIT_GOTO(ait_ref_temp(call, AIT_F64, (int32_t)d + 2, shape, &out));
  for (int64_t e = 0; e < ait_tensor_count(&out); ++e) {
    const double *row = ait_nn_data(&theta) + (index[0] * d + index[1 + d]) * (d + 1);
    double sum = row[d];
    for (int64_t k = 0; k < d; ++k) { /* coordinate k belongs to the k-th dim from the end */
      int64_t n = shape[d - k], at = index[d - k];
      double x = n <= 1 ? 0 : -1 + 2 * (double)at / (double)(n - 1);
      sum += row[k] * (align || n < 1 ? x : x * (double)(n - 1) / (double)n);
    }
    ait_nn_data_mut(&out)[e] = sum;
    ait_ref_next((int32_t)d + 2, shape, index);
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &out);
cleanup:
  ait_tensor_release(&theta);
  ait_tensor_release(&out);
  return status;
}

/* cov(self, correction, fweights, aweights): rows are variables; corrcoef */
static void covariance(const double *x, int64_t rows, int64_t n, const double *f, const double *a, double correction, double *out) {
  double sum_w = 0, sum_wa = 0;
  for (int64_t k = 0; k < n; ++k) {
    double w = (f ? f[k] : 1) * (a ? a[k] : 1);
    sum_w += w;
    sum_wa += w * (a ? a[k] : 1);
  }
  double norm = correction == 0 || !a ? sum_w - correction : sum_w - correction * sum_wa / sum_w;
  if (norm < 0) norm = 0;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double mi = 0, mj = 0, c = 0;
      for (int64_t k = 0; k < n; ++k) {
        double w = (f ? f[k] : 1) * (a ? a[k] : 1) / sum_w;
        mi += w * x[i * n + k], mj += w * x[j * n + k];
      }
      for (int64_t k = 0; k < n; ++k) c += (f ? f[k] : 1) * (a ? a[k] : 1) * (x[i * n + k] - mi) * (x[j * n + k] - mj);
      out[i * rows + j] = out[j * rows + i] = c / norm;
    }
}

ait_status ait_ref_cov(ait_ref_call *call) {
  bool correlation = ait_nn_is(call, "aten.corrcoef");
  ait_tensor x = {0}, f = {0}, a = {0}, out = {0};
  int64_t correction = 1;
  ait_status status;
  AIT_GOTO(ait_nn_arg(call, 0, &x));
  if (!correlation) AIT_GOTO(ait_ref_int(call, 1, &correction));
  if (!correlation) AIT_GOTO(ait_nn_arg_or_null(call, 2, &f));
  if (!correlation) AIT_GOTO(ait_nn_arg_or_null(call, 3, &a));
  if (x.rank > 2 || x.dtype != AIT_F64) AIT_GOTO(ait_ref_error(call, AIT_CODE_UNSUPPORTED, "covariance of rank %d, or complex", x.rank));
  int64_t rows = x.rank == 2 ? x.shape[0] : 1, n = x.rank == 2 ? x.shape[1] : x.rank == 1 ? x.shape[0] : 1, shape[2] = {rows, rows};
  AIT_GOTO(ait_ref_temp(call, AIT_F64, rows > 1 || rows == 0 ? 2 : 0, shape, &out));
  double *c = out.data;
  covariance(x.data, rows, n, f.data, a.data, (double)correction, c);
  for (int64_t i = 0; correlation && i < rows; ++i)
    for (int64_t j = 0; j < rows; ++j)
      if (i != j) c[i * rows + j] = fmax(-1, fmin(1, c[i * rows + j] / sqrt(c[i * rows + i] * c[j * rows + j])));
  for (int64_t i = 0; correlation && i < rows; ++i) c[i * rows + i] = c[i * rows + i] / c[i * rows + i];
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&f);
  ait_tensor_release(&a);
  ait_tensor_release(&out);
  return status;
}

/* Views of each tensor over the grid of all; "xy" exchanges the first two dims. */
ait_status ait_ref_meshgrid(ait_ref_call *call) {
  ait_tensor *in;
  uint32_t count;
  AIT_TRY(ait_ref_tensors(call, 0, &in, &count));
  const char *order = ait_ref_arg_count(call) > 1 ? ait_ref_string(call, 1) : NULL;
  bool swap = order && strcmp(order, "xy") == 0 && count >= 2;
  ait_tensor *out = NULL;
  ait_status status = AIT_OK;
  if (count > AIT_MAX_RANK) status = ait_ref_error(call, AIT_CODE_LIMIT, "a grid of %u dims", count);
  if (!status && !(out = ait_alloc_zero(call->allocator, count * sizeof *out, 8))) status = AIT_OOM();
  if (!status) {
    int64_t shape[AIT_MAX_RANK];
    for (uint32_t i = 0; i < count; ++i) shape[swap && i < 2 ? 1 - i : i] = ait_tensor_count(&in[i]);
    for (uint32_t i = 0; i < count; ++i) {
      out[i] = ait_tensor_retain(&in[i]);
      int64_t stride = in[i].rank ? in[i].strides[0] : 0;
      out[i].rank = (int32_t)count;
      memcpy(out[i].shape, shape, sizeof shape);
      memset(out[i].strides, 0, sizeof out[i].strides);
      out[i].strides[swap && i < 2 ? 1 - i : i] = stride;
    }
    ait_ref_set_list(call, 0, out, count);
  }
  ait_free(call->allocator, in, count * sizeof *in);
  return status;
}

/* histc(self, bins, min, max): equal bins, the last one closed; min = max: the data's range */
ait_status ait_ref_histc(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor x = {0}, out = {0};
  int64_t bins;
  double low, high;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &bins));
  AIT_TRY(ait_ref_float(call, 2, &low));
  AIT_TRY(ait_ref_float(call, 3, &high));
  if (bins < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld bins", (long long)bins);
  AIT_GOTO(ait_nn_f64(call, t, &x));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 1, &bins, &out));
  const double *v = x.data;
  int64_t n = ait_tensor_count(&x);
  if (low == high && n > 0) {
    low = high = v[0];
    for (int64_t i = 1; i < n; ++i) low = fmin(low, v[i]), high = fmax(high, v[i]);
  }
  if (low == high) low -= 1, high += 1;
  if (!isfinite(low) || !isfinite(high) || low > high) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "range of the histogram"));
  for (int64_t i = 0; i < n; ++i) {
    if (!(v[i] >= low && v[i] <= high)) continue;
    int64_t bin = (int64_t)((v[i] - low) / (high - low) * (double)bins);
    ait_nn_data_mut(&out)[ait_nn_min(bin, bins - 1)] += 1;
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

/* ---- along a dim: [outer, n, inner] ------------------------------------------------------------------------------------------ */
/* trapezoid, trapz, cumulative_trapezoid; .dx: y, dx, dim; .x: y, x, dim */
ait_status ait_ref_trapezoid(ait_ref_call *call) {
  bool cumulative = ait_nn_starts(call, "aten.cumulative"), spaced = ait_ends_with(call->node->op, ".x");
  const ait_tensor *t;
  ait_tensor y = {0}, x = {0}, out = {0};
  double dx = 1;
  ait_dtype whole_x = AIT_DTYPE_NONE; /* of x, where it is an integer */
  int64_t dim, shape[AIT_MAX_RANK];
  int32_t d;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 2, &dim));
  AIT_TRY(ait_ref_dim(call, dim, t->rank, &d));
  if (t->rank == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank 0");
  AIT_GOTO(ait_nn_complex(call, t, &y));
  if (!spaced) {
    AIT_GOTO(ait_ref_float(call, 1, &dx));
  } else {
    const ait_tensor *tx;
    AIT_GOTO(ait_ref_tensor(call, 1, &tx));
    ait_tensor v = *tx;
    if (ait_dtype_is_integer(tx->dtype)) whole_x = tx->dtype;
    if (tx->rank == 1 && t->rank > 1) { /* one spacing for all lines */
      for (int32_t e = 0; e < t->rank; ++e) v.shape[e] = 1, v.strides[e] = 0;
      v.rank = t->rank, v.shape[d] = tx->shape[0], v.strides[d] = tx->strides[0];
    }
    v = ait_ref_expand(&v, t->rank, t->shape);
    AIT_GOTO(ait_nn_complex(call, &v, &x));
  }
  int64_t n = t->shape[d], inner = ait_nn_span(t, d + 1, t->rank), outer = ait_nn_span(t, 0, d), steps = n > 0 ? n - 1 : 0;
  int32_t rank = 0;
  for (int32_t e = 0; e < t->rank; ++e)
    if (e != d || cumulative) shape[rank++] = e == d ? steps : t->shape[e];
  AIT_GOTO(ait_nn_zeros(call, AIT_C128, rank, shape, &out));
  const double _Complex *ys = y.data, *xs = x.data;
  bool whole = ait_dtype_is_integer(t->dtype);
  double _Complex *sums = out.data;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      double _Complex sum = 0;
      if (whole && !spaced && !cumulative && n > 0) { /* torch takes half of the ends from the sum of all: only their sum wraps */
        double ends = __real__(ys[o * n * inner + i] + ys[(o * n + n - 1) * inner + i]);
        sum = (ends - ait_nn_wrap(t->dtype, ends)) / 2 * dx;
      }
      for (int64_t k = 0; k < steps; ++k) {
        int64_t at = (o * n + k) * inner + i;
        double _Complex pair = ys[at] + ys[at + inner], width = spaced ? xs[at + inner] - xs[at] : dx;
        if (whole && (spaced || cumulative)) pair = ait_nn_wrap(t->dtype, __real__(pair));
        if (whole_x) width = ait_nn_wrap(whole_x, __real__(width));
        pair *= width;
        if (whole && whole_x) pair = ait_nn_wrap(ait_dtype_promote(t->dtype, whole_x), __real__(pair));
        sum += pair / 2;
        if (cumulative) sums[(o * steps + k) * inner + i] = sum;
      }
      if (!cumulative) sums[o * inner + i] = sum;
    }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &out);
cleanup:
  ait_tensor_release(&y);
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

static void sort_doubles(double *v, int64_t n) { /* heap sort: no recursion, no extra memory */
  for (int64_t end = n, start = n / 2; end > 1;) {
    if (start > 0) --start;
    else {
      --end;
      double t = v[end];
      v[end] = v[0], v[0] = t;
    }
    for (int64_t root = start, child; (child = 2 * root + 1) < end; root = child) {
      if (child + 1 < end && v[child] < v[child + 1]) ++child;
      if (!(v[root] < v[child])) break;
      double t = v[root];
      v[root] = v[child], v[child] = t;
    }
  }
}

static double quantile_of(double *v, int64_t n, double q, const char *how, bool ignore_nan) {
  int64_t kept = 0;
  bool nan = false;
  for (int64_t i = 0; i < n; ++i) {
    if (isnan(v[i])) nan = true;
    else v[kept++] = v[i];
  }
  if ((nan && !ignore_nan) || kept == 0) return NAN;
  sort_doubles(v, kept);
  double rank = q * (double)(kept - 1), below = floor(rank), above = ceil(rank), w = rank - below;
  if (strcmp(how, "lower") == 0) return v[(int64_t)below];
  if (strcmp(how, "higher") == 0) return v[(int64_t)above];
  if (strcmp(how, "nearest") == 0) return v[(int64_t)nearbyint(rank)];
  if (strcmp(how, "midpoint") == 0) w = 0.5;
  return v[(int64_t)below] + w * (v[(int64_t)above] - v[(int64_t)below]);
}

/* Lines of x along dim d (all of x when d < 0), for each of `count` q: out is [count, lines]. */
static ait_status quantile_lines(const ait_ref_call *call, const ait_tensor *x, int32_t d, const double *q, int64_t count, double *out) {
  bool ignore = ait_nn_starts(call, "aten.nan");
  const char *how = ait_ref_string(call, 4);
  int64_t n = d < 0 || !x->rank ? ait_tensor_count(x) : x->shape[d], inner = d < 0 ? 1 : ait_nn_span(x, d + 1, x->rank);
  int64_t lines = d < 0 || !x->rank ? 1 : ait_nn_span(x, 0, d) * inner;
  double *line = ait_nn_doubles(call, n);
  if (!line) return AIT_OOM();
  for (int64_t i = 0; i < lines; ++i)
    for (int64_t k = 0; k < count; ++k) {
      for (int64_t e = 0; e < n; ++e) line[e] = ait_nn_data(x)[(i / inner * n + e) * inner + i % inner];
      out[k * lines + i] = quantile_of(line, n, q[k], how ? how : "linear", ignore);
    }
  ait_nn_doubles_free(call, line, n);
  return AIT_OK;
}

/* quantile, nanquantile, with a number or a tensor of q: self, q, dim, keepdim, interpolation. A vector of q gives a leading dim. */
ait_status ait_ref_quantile(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor x = {0}, q = {0}, out = {0};
  bool keepdim, all = ait_ref_is_none(call, 2);
  int64_t dim = 0, shape[AIT_MAX_RANK];
  int32_t d = 0, rank = 0;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (!all) AIT_TRY(ait_ref_int(call, 2, &dim));
  AIT_TRY(ait_ref_bool(call, 3, &keepdim));
  AIT_TRY(ait_ref_dim(call, dim, t->rank, &d));
  ait_status status;
  AIT_GOTO(ait_nn_f64(call, t, &x));
  if (ait_ref_is_tensor(call, 1)) {
    AIT_GOTO(ait_nn_arg(call, 1, &q));
  } else {
    AIT_GOTO(ait_ref_temp(call, AIT_F64, 0, NULL, &q));
    AIT_GOTO(ait_ref_float(call, 1, ait_nn_data_mut(&q)));
  }
  if (q.rank > 1 || t->rank + q.rank > AIT_MAX_RANK) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "q of rank %d", q.rank));
  if (q.rank == 1) shape[rank++] = q.shape[0];
  for (int32_t e = 0; e < t->rank; ++e) {
    bool reduced = all || e == d;
    if (!reduced || keepdim) shape[rank++] = reduced ? 1 : t->shape[e];
  }
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, rank, shape, &out));
  AIT_GOTO(quantile_lines(call, &x, all ? -1 : d, q.data, ait_tensor_count(&q), out.data));
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&q);
  ait_tensor_release(&out);
  return status;
}

/* ---- layouts and views ------------------------------------------------------------------------------------------------------- */
/* Every tensor here is dense: a sparse one is the dense one that it stands for. to_sparse, to_dense */
ait_status ait_ref_layout_copy(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_new(call, 0, ait_nn_dtype(call, 0, t->dtype), t->rank, t->shape, &out));
  return ait_tensor_copy(&out, t);
}

/* Real matrices: the conjugate transpose is the transpose, a view. */
ait_status ait_ref_matrix_h(ait_ref_call *call) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (t->rank != 2 && t->rank != 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", t->rank);
  ait_tensor v = *t;
  if (t->rank == 2) v.shape[0] = t->shape[1], v.shape[1] = t->shape[0], v.strides[0] = t->strides[1], v.strides[1] = t->strides[0];
  if (!ait_dtype_is_complex(t->dtype)) {
    ait_ref_set_view(call, 0, t, &v);
    return AIT_OK;
  }
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, t->dtype, v.rank, v.shape, &out));
  AIT_TRY(ait_tensor_copy(&out, &v));
  size_t size = ait_dtype_size(t->dtype);
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) {
    double c[2];
    char *p = (char *)out.data + i * (int64_t)size;
    ait_element_c128(p, out.dtype, c);
    c[1] = -c[1];
    ait_element_set_c128(p, out.dtype, c);
  }
  return AIT_OK;
}

/* linalg_diagonal(A, offset, dim1, dim2): a view */
ait_status ait_ref_linalg_diagonal(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t offset, dims[2];
  int32_t d[2], rank = 0;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &offset));
  for (uint32_t i = 0; i < 2; ++i) {
    AIT_TRY(ait_ref_int(call, 2 + i, &dims[i]));
    AIT_TRY(ait_ref_dim(call, dims[i], t->rank, &d[i]));
  }
  if (d[0] == d[1] || t->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "a diagonal needs two dims");
  ait_tensor v = *t;
  int64_t rows = t->shape[d[0]], cols = t->shape[d[1]], down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
  int64_t n = ait_nn_max(0, ait_nn_min(rows - down, cols - right));
  for (int32_t e = 0; e < t->rank; ++e)
    if (e != d[0] && e != d[1]) v.shape[rank] = t->shape[e], v.strides[rank++] = t->strides[e];
  v.shape[rank] = n, v.strides[rank++] = t->strides[d[0]] + t->strides[d[1]];
  v.rank = rank;
  if (n > 0) v.data = (char *)t->data + (down * t->strides[d[0]] + right * t->strides[d[1]]) * (int64_t)ait_dtype_size(t->dtype);
  ait_ref_set_view(call, 0, t, &v);
  return AIT_OK;
}
