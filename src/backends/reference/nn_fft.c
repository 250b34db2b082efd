/* Discrete Fourier transforms of any length (powers of two directly, others by Bluestein's chirp), real and complex, over any dims;
 * short-time transforms. All in double. */
#include "backends/reference/nn.h"

/* ---- one line of n complex numbers (pairs)
 * ------------------------------------------------------------------------------------------------*/
/* work: work_size(n) doubles. sign -1: forward. */
static int64_t chirp_length(int64_t n) {
  int64_t m = 1;
  while (m < 2 * n - 1) m *= 2;
  return m;
}
static bool is_power_of_two(int64_t n) { return (n & (n - 1)) == 0; }
static int64_t work_size(int64_t n) { return is_power_of_two(n) ? 1 : 4 * chirp_length(n) + 2 * n; }

static void bit_reverse(double *x, int64_t n) {
  for (int64_t i = 1, j = 0; i < n; ++i) {
    int64_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i >= j) continue;
    for (int k = 0; k < 2; ++k) {
      double t = x[2 * i + k];
      x[2 * i + k] = x[2 * j + k], x[2 * j + k] = t;
    }
  }
}

static void radix_two(double *x, int64_t n, int sign) {
  bit_reverse(x, n);
  for (int64_t half = 1; half < n; half *= 2)
    for (int64_t k = 0; k < half; ++k) {
      double angle = sign * M_PI * (double)k / (double)half, wr = cos(angle), wi = sin(angle);
      for (int64_t i = k; i < n; i += 2 * half) {
        double *a = x + 2 * i, *b = a + 2 * half, br = b[0] * wr - b[1] * wi, bi = b[0] * wi + b[1] * wr;
        b[0] = a[0] - br, b[1] = a[1] - bi;
        a[0] += br, a[1] += bi;
      }
    }
}

/* x_k w^(k^2/2) convolved with the conjugate chirp. */
static void bluestein(double *x, int64_t n, int sign, double *work) {
  int64_t m = chirp_length(n);
  double *a = work, *b = a + 2 * m, *w = b + 2 * m;
  for (int64_t k = 0; k < n; ++k) {
    double angle = sign * M_PI * (double)((int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * n))) / (double)n;
    w[2 * k] = cos(angle), w[2 * k + 1] = sin(angle);
  }
  memset(a, 0, (size_t)(4 * m) * sizeof *a);
  for (int64_t k = 0; k < n; ++k) {
    a[2 * k] = x[2 * k] * w[2 * k] - x[2 * k + 1] * w[2 * k + 1];
    a[2 * k + 1] = x[2 * k] * w[2 * k + 1] + x[2 * k + 1] * w[2 * k];
    int64_t mirror = k == 0 ? 0 : m - k;
    b[2 * k] = b[2 * mirror] = w[2 * k];
    b[2 * k + 1] = b[2 * mirror + 1] = -w[2 * k + 1];
  }
  radix_two(a, m, -1);
  radix_two(b, m, -1);
  for (int64_t k = 0; k < m; ++k) {
    double re = a[2 * k] * b[2 * k] - a[2 * k + 1] * b[2 * k + 1], im = a[2 * k] * b[2 * k + 1] + a[2 * k + 1] * b[2 * k];
    a[2 * k] = re, a[2 * k + 1] = im;
  }
  radix_two(a, m, 1);
  for (int64_t k = 0; k < n; ++k) {
    double re = a[2 * k] / (double)m, im = a[2 * k + 1] / (double)m;
    x[2 * k] = re * w[2 * k] - im * w[2 * k + 1];
    x[2 * k + 1] = re * w[2 * k + 1] + im * w[2 * k];
  }
}

static void fft_line(double *x, int64_t n, int sign, double *work) {
  if (n <= 1) return;
  if (is_power_of_two(n)) radix_two(x, n, sign);
  else bluestein(x, n, sign, work);
}

/* ---- one dim of a tensor (C128, contiguous), in place
 * -----------------------------------------------------------------------------------------*/
static ait_status fft_dim(const ait_ref_call *call, ait_tensor *t, int32_t d, int sign, double scale) {
  int64_t n = t->shape[d], inner = ait_nn_span(t, d + 1, t->rank), lines = n ? ait_tensor_count(t) / n : 0, size = 2 * n + work_size(n);
  double *line = ait_nn_doubles(call, size);
  if (!line) return AIT_OOM();
  for (int64_t l = 0; l < lines; ++l) {
    double *x = ait_nn_data_mut(t) + 2 * (l / inner * n * inner + l % inner);
    for (int64_t i = 0; i < n; ++i) line[2 * i] = x[2 * i * inner], line[2 * i + 1] = x[2 * i * inner + 1];
    fft_line(line, n, sign, line + 2 * n);
    for (int64_t i = 0; i < n; ++i) x[2 * i * inner] = line[2 * i] * scale, x[2 * i * inner + 1] = line[2 * i + 1] * scale;
  }
  ait_nn_doubles_free(call, line, size);
  return AIT_OK;
}

/* A copy whose dim d has n elements: cut, or filled with zeros; `hermitian`: the missing second half is the mirrored conjugate of the
 * first. */
static ait_status resize_dim(const ait_ref_call *call, ait_tensor *t, int32_t d, int64_t n, bool hermitian) {
  int64_t old = t->shape[d], inner = ait_nn_span(t, d + 1, t->rank), outer = ait_nn_span(t, 0, d), shape[AIT_MAX_RANK];
  if (n < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "transform of length %lld", (long long)n);
  if (n == old && !hermitian) return AIT_OK;
  ait_tensor out;
  memcpy(shape, t->shape, sizeof shape);
  shape[d] = n;
  AIT_TRY(ait_nn_zeros(call, AIT_C128, t->rank, shape, &out));
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < n; ++i) {
      int64_t from = hermitian && i > n / 2 ? n - i : i;
      if (from >= old) continue;
      for (int64_t k = 0; k < inner; ++k) {
        const double *x = ait_nn_data(t) + 2 * ((o * old + from) * inner + k);
        double *y = ait_nn_data_mut(&out) + 2 * ((o * n + i) * inner + k);
        y[0] = x[0];
        y[1] = from == i ? x[1] : -x[1];
        if (hermitian && (i == 0 || 2 * i == n)) y[1] = 0;
      }
    }
  ait_tensor_release(t);
  *t = out;
  return AIT_OK;
}

static void drop_imaginary(ait_tensor *t) {
  double *x = t->data;
  for (int64_t i = 0; i < ait_tensor_count(t); ++i) x[i] = x[2 * i];
  t->dtype = AIT_F64;
}

static ait_dtype result_dtype(const ait_ref_call *call, const ait_tensor *t, bool complex) {
  bool wide = t->dtype == AIT_F64 || t->dtype == AIT_C128 || call->fp64;
  ait_dtype otherwise = complex ? (wide ? AIT_C128 : AIT_C64) : wide ? AIT_F64 : AIT_F32;
  return ait_nn_dtype(call, 0, otherwise);
}

static ait_status as_complex(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) {
  return ait_tensor_cast(call->allocator, t, AIT_C128, out);
}

/* ---- aten.fft_*
 * ---------------------------------------------------------------------------------------------------------------------------------*/
typedef enum kind { C2C, R2C, C2R } kind;

typedef struct transform {
  kind kind;
  int sign;     /* of the exponent */
  bool inverse; /* for the meaning of norm */
  int32_t count;
  int32_t dims[AIT_MAX_RANK];
  int64_t sizes[AIT_MAX_RANK]; /* -1: as it is */
  double scale_power;          /* each transform is scaled by n ^ -scale_power */
} transform;

/* norm: none "backward" scales inverses by 1/n; "forward" the others; "ortho" both by 1/sqrt(n). */
static double scale_power(const char *norm, bool inverse) {
  if (norm && strcmp(norm, "ortho") == 0) return 0.5;
  bool forward = norm && strcmp(norm, "forward") == 0;
  return forward != inverse ? 1 : 0;
}

/* dims and sizes by torch's rules: s without dim takes the last dims; neither takes all. */
static ait_status shape_args(const ait_ref_call *call, uint32_t s_arg, uint32_t dim_arg, int32_t rank, transform *f) {
  int64_t s[AIT_MAX_RANK], dims[AIT_MAX_RANK];
  int32_t s_count, dim_count;
  AIT_TRY(ait_ref_ints(call, s_arg, s, &s_count));
  AIT_TRY(ait_ref_ints(call, dim_arg, dims, &dim_count));
  bool has_dims = !ait_ref_is_none(call, dim_arg), has_s = !ait_ref_is_none(call, s_arg);
  f->count = has_dims ? dim_count : has_s ? s_count : rank;
  if (f->count > rank || (has_s && s_count != f->count))
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "sizes and dims of the transform");
  for (int32_t i = 0; i < f->count; ++i) {
    AIT_TRY(ait_ref_dim(call, has_dims ? dims[i] : rank - f->count + i, rank, &f->dims[i]));
    f->sizes[i] = has_s ? s[i] : -1;
  }
  return AIT_OK;
}

/* The last dim of the list is the halved one of real transforms. */
static ait_status transform_run(const ait_ref_call *call, const transform *f, ait_tensor *x) {
  for (int32_t i = f->count - 1; i >= 0; --i) {
    int32_t d = f->dims[i];
    bool last = i == f->count - 1;
    if (f->kind == C2R && last) continue;
    if (f->sizes[i] >= 0) AIT_TRY(resize_dim(call, x, d, f->sizes[i], false));
    else if (x->shape[d] < 1) AIT_TRY(resize_dim(call, x, d, 0, false));
    int64_t n = x->shape[d];
    AIT_TRY(fft_dim(call, x, d, f->sign, pow((double)n, -f->scale_power)));
    if (f->kind == R2C && last) AIT_TRY(resize_dim(call, x, d, n / 2 + 1, false));
  }
  if (f->kind == C2R && f->count > 0) {
    int32_t d = f->dims[f->count - 1];
    int64_t n = f->sizes[f->count - 1] >= 0 ? f->sizes[f->count - 1] : 2 * (x->shape[d] - 1);
    AIT_TRY(resize_dim(call, x, d, n, true));
    AIT_TRY(fft_dim(call, x, d, f->sign, pow((double)n, -f->scale_power)));
    drop_imaginary(x);
  }
  return AIT_OK;
}

/* fft_{,i}{,r,h}fft{,2,n}: self, n or s, dim, norm. "hfft" is a complex to real forward transform, "ihfft" a real to complex inverse one.
 */
ait_status ait_ref_fft(ait_ref_call *call) {
  const char *name = call->node->op + strlen("aten.fft_");
  transform f = {.sign = -1};
  if (*name == 'i') f.inverse = true, f.sign = 1, ++name;
  if (*name == 'r') f.kind = f.inverse ? C2R : R2C;
  if (*name == 'h') f.kind = f.inverse ? R2C : C2R;
  const ait_tensor *t;
  ait_tensor x = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  f.scale_power = scale_power(ait_ref_string(call, 3), f.inverse);
  AIT_TRY(shape_args(call, 1, 2, t->rank, &f));
  AIT_GOTO(as_complex(call, t, &x));
  AIT_GOTO(transform_run(call, &f, &x));
  status = ait_nn_result(call, 0, result_dtype(call, t, f.kind != C2R), &x);
cleanup:
  ait_tensor_release(&x);
  return status;
}

/* _fft_r2c(self, dim, normalization, onesided), _fft_c2r(self, dim, normalization, last_dim_size), _fft_c2c(self, dim, normalization,
 * forward). normalization: 0 none, 1 by sqrt(n), 2 by n */
ait_status ait_ref_fft_raw(ait_ref_call *call) {
  static const double powers[] = {0, 0.5, 1};
  const ait_tensor *t;
  int64_t dims[AIT_MAX_RANK], normalization, last_size;
  transform f = {.sign = -1};
  bool flag = true;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, 1, dims, &f.count));
  AIT_TRY(ait_ref_int(call, 2, &normalization));
  if (normalization < 0 || normalization > 2) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "normalization");
  f.scale_power = powers[normalization];
  for (int32_t i = 0; i < f.count; ++i) {
    AIT_TRY(ait_ref_dim(call, dims[i], t->rank, &f.dims[i]));
    f.sizes[i] = -1;
  }
  if (ait_nn_is(call, "aten._fft_c2r")) {
    f.kind = C2R, f.sign = 1;
    AIT_TRY(ait_ref_int(call, 3, &last_size));
    if (f.count > 0) f.sizes[f.count - 1] = last_size;
  } else {
    AIT_TRY(ait_ref_bool(call, 3, &flag));
    if (ait_nn_is(call, "aten._fft_r2c")) f.kind = flag ? R2C : C2C;
    else f.sign = flag ? -1 : 1;
  }
  ait_tensor x = {0};
  ait_status status;
  AIT_GOTO(as_complex(call, t, &x));
  AIT_GOTO(transform_run(call, &f, &x));
  status = ait_nn_result(call, 0, result_dtype(call, t, f.kind != C2R), &x);
cleanup:
  ait_tensor_release(&x);
  return status;
}

/* fftshift moves each given dim by n / 2, ifftshift back */
ait_status ait_ref_fftshift(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t dims[AIT_MAX_RANK], shift[AIT_MAX_RANK] = {0}, index[AIT_MAX_RANK] = {0}, from[AIT_MAX_RANK];
  int32_t count;
  bool back = ait_nn_is(call, "aten.fft_ifftshift");
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, 1, dims, &count));
  bool all = ait_ref_is_none(call, 1);
  for (int32_t i = 0; i < (all ? t->rank : count); ++i) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, all ? i : dims[i], t->rank, &d));
    shift[d] = back ? (t->shape[d] + 1) / 2 : t->shape[d] / 2;
  }
  ait_tensor out;
  AIT_TRY(ait_ref_new(call, 0, t->dtype, t->rank, t->shape, &out));
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  size_t size = ait_dtype_size(t->dtype);
  char *to = out.data;
  do {
    for (int32_t d = 0; d < t->rank; ++d) from[d] = (index[d] + t->shape[d] - shift[d]) % t->shape[d];
    memcpy(to, ait_ref_at(t, from), size);
    to += size;
  } while (ait_ref_next(t->rank, t->shape, index));
  return AIT_OK;
}

/* ---- short-time transforms
 * ------------------------------------------------------------------------------------------------------------------------*/
typedef struct stft {
  int64_t n, hop, win;
  bool normalized, onesided;
  double *window; /* n numbers: centred in the frame, or at its start */
} stft;

/* align_start: the window stands at the frame's start instead of its middle. */
static ait_status stft_window(const ait_ref_call *call, uint32_t arg, stft *s, bool align_start) {
  ait_tensor w = {0};
  if (s->n < 1 || s->hop < 1 || s->win < 1 || s->win > s->n)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "frame, hop or window length");
  AIT_TRY(ait_nn_arg_or_null(call, arg, &w));
  ait_status status = AIT_OK;
  if (w.data && (w.dtype != AIT_F64 || ait_tensor_count(&w) != s->win))
    status = ait_ref_error(call, AIT_CODE_UNSUPPORTED, "window of another length, or complex");
  if (!status && !(s->window = ait_nn_doubles(call, s->n))) status = AIT_OOM();
  if (!status) {
    int64_t left = align_start ? 0 : (s->n - s->win) / 2;
    for (int64_t i = 0; i < s->n; ++i) {
      bool inside = i >= left && i < left + s->win;
      s->window[i] = inside ? (w.data ? ait_nn_data(&w)[i - left] : 1) : 0;
    }
  }
  ait_tensor_release(&w);
  return status;
}

/* x: [batch, length] pairs -> out: [batch, bins, frames] pairs */
static ait_status stft_frames(const ait_ref_call *call, const stft *s, const double *x, int64_t batch, int64_t length, int64_t frames,
                              int64_t bins, double *out) {
  int64_t size = 2 * s->n + work_size(s->n);
  double *line = ait_nn_doubles(call, size), scale = s->normalized ? 1 / sqrt((double)s->n) : 1;
  if (!line) return AIT_OOM();
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t f = 0; f < frames; ++f) {
      const double *from = x + 2 * (b * length + f * s->hop);
      for (int64_t i = 0; i < s->n; ++i) line[2 * i] = from[2 * i] * s->window[i], line[2 * i + 1] = from[2 * i + 1] * s->window[i];
      fft_line(line, s->n, -1, line + 2 * s->n);
      for (int64_t k = 0; k < bins; ++k)
        for (int p = 0; p < 2; ++p) out[2 * ((b * bins + k) * frames + f) + p] = line[2 * k + p] * scale;
    }
  ait_nn_doubles_free(call, line, size);
  return AIT_OK;
}

/* Result 0 as complex, or as real with a last dim of two. */
static ait_status give_complex(ait_ref_call *call, ait_tensor *x, bool complex, const ait_tensor *like) {
  if (complex) return ait_nn_result(call, 0, result_dtype(call, like, true), x);
  x->shape[x->rank++] = 2;
  x->dtype = AIT_F64;
  ait_tensor_set_contiguous(x);
  return ait_nn_result(call, 0, result_dtype(call, like, false), x);
}

/* stft.center: the signal padded by half a frame on both sides first */
static ait_status pad_signal(const ait_ref_call *call, int64_t half, const char *mode, ait_tensor *x) {
  int64_t n = x->shape[x->rank - 1], rows = n ? ait_tensor_count(x) / n : 0, shape[AIT_MAX_RANK];
  bool reflect = !mode || strcmp(mode, "reflect") == 0, constant = mode && strcmp(mode, "constant") == 0,
       edge = mode && strcmp(mode, "replicate") == 0;
  if (!reflect && !constant && !edge) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "padding mode '%s'", mode);
  if (n < 1 || (reflect && half >= n)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the signal is shorter than half a frame");
  ait_tensor out;
  memcpy(shape, x->shape, sizeof shape);
  shape[x->rank - 1] = n + 2 * half;
  AIT_TRY(ait_nn_zeros(call, AIT_C128, x->rank, shape, &out));
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < n + 2 * half; ++i) {
      int64_t from = i - half;
      if (constant && (from < 0 || from >= n)) continue;
      if (from < 0) from = reflect ? -from : 0;
      else if (from >= n) from = reflect ? 2 * (n - 1) - from : n - 1;
      memcpy(ait_nn_data_mut(&out) + 2 * (r * (n + 2 * half) + i), ait_nn_data(x) + 2 * (r * n + from), 2 * sizeof(double));
    }
  ait_tensor_release(x);
  *x = out;
  return AIT_OK;
}

/* aten.stft.center: self, n_fft, hop, win, window, center, pad_mode, ..; aten.stft: self, n_fft, hop, win, window, normalized, onesided,
 * return_complex, align_to_window */
ait_status ait_ref_stft(ait_ref_call *call) {
  const ait_tensor *t;
  stft s = {0};
  bool is_complex, want_complex, align, center = false;
  uint32_t at = ait_nn_is(call, "aten.stft.center") ? 7 : 5;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (at == 7) AIT_TRY(ait_ref_bool(call, 5, &center));
  is_complex = ait_dtype_is_complex(t->dtype);
  AIT_TRY(ait_ref_int(call, 1, &s.n));
  AIT_TRY(ait_ref_int_or(call, 2, s.n / 4, &s.hop));
  AIT_TRY(ait_ref_int_or(call, 3, s.n, &s.win));
  AIT_TRY(ait_ref_bool(call, at, &s.normalized));
  AIT_TRY(ait_ref_bool_or(call, at + 1, !is_complex, &s.onesided));
  AIT_TRY(ait_ref_bool_or(call, at + 2, is_complex, &want_complex));
  AIT_TRY(ait_ref_bool_or(call, at + 3, false, &align));
  if (t->rank < 1 || t->rank > 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "signal of rank %d", t->rank);
  ait_tensor x = {0}, out = {0};
  ait_status status;
  AIT_GOTO(stft_window(call, 4, &s, align));
  AIT_GOTO(as_complex(call, t, &x));
  if (center) AIT_GOTO(pad_signal(call, s.n / 2, ait_ref_string(call, 6), &x));
  int64_t length = x.shape[x.rank - 1], batch = t->rank == 2 ? t->shape[0] : 1, span = align ? s.win : s.n;
  if (length < span) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the signal is shorter than a frame"));
  if (align && span != s.n) AIT_GOTO(ait_ref_error(call, AIT_CODE_UNSUPPORTED, "align_to_window with a window shorter than the frame"));
  int64_t frames = 1 + (length - span) / s.hop, bins = s.onesided ? s.n / 2 + 1 : s.n, shape[3] = {batch, bins, frames};
  AIT_GOTO(ait_ref_temp(call, AIT_C128, t->rank + 1, shape + (t->rank == 1), &out));
  AIT_GOTO(stft_frames(call, &s, x.data, batch, length, frames, bins, out.data));
  status = give_complex(call, &out, want_complex, t);
cleanup:
  ait_nn_doubles_free(call, s.window, s.n);
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

/* Overlap and add of one spectrum [bins, frames] into sum and envelope. `real`: only the first half of the bins counts. */
static void overlap(const stft *s, const double *spectrum, bool real, int64_t frames, double *line, double *sum, double *envelope) {
  double scale = s->normalized ? 1 / sqrt((double)s->n) : 1 / (double)s->n;
  for (int64_t f = 0; f < frames; ++f) {
    for (int64_t k = 0; k < s->n; ++k) {
      bool mirrored = real && 2 * k > s->n;
      const double *x = spectrum + 2 * ((mirrored ? s->n - k : k) * frames + f);
      line[2 * k] = x[0];
      line[2 * k + 1] = mirrored ? -x[1] : x[1];
      if (real && (k == 0 || 2 * k == s->n)) line[2 * k + 1] = 0;
    }
    fft_line(line, s->n, 1, line + 2 * s->n);
    for (int64_t i = 0; i < s->n; ++i) {
      int64_t at = f * s->hop + i;
      sum[2 * at] += line[2 * i] * scale * s->window[i];
      sum[2 * at + 1] += line[2 * i + 1] * scale * s->window[i];
      envelope[at] += s->window[i] * s->window[i];
    }
  }
}

static ait_status istft_run(ait_ref_call *call, const stft *s, const ait_tensor *t, const ait_tensor *x, bool center, int64_t length,
                            bool complex) {
  bool pairs = !ait_dtype_is_complex(t->dtype);
  int32_t rank = x->rank - pairs;
  if (rank < 2 || rank > 3) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "spectrum of rank %d", t->rank);
  int64_t frames = x->shape[rank - 1], bins = x->shape[rank - 2], batch = rank == 3 ? x->shape[0] : 1;
  if (bins != (s->onesided ? s->n / 2 + 1 : s->n)) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld bins", (long long)bins);
  int64_t full = s->n + s->hop * (frames - 1), start = center ? s->n / 2 : 0;
  int64_t end = length >= 0 ? start + length
                : center    ? full - s->n / 2
                            : full,
          n = end - start, size = 3 * full + 2 * s->n + work_size(s->n);
  if (n < 1 || frames < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "nothing is left of the signal");
  double *memory = ait_nn_doubles(call, size);
  if (!memory) return AIT_OOM();
  ait_tensor out;
  int64_t shape[2] = {batch, n};
  ait_status status = ait_nn_zeros(call, AIT_C128, rank - 1, shape + (rank == 2), &out);
  for (int64_t b = 0; !status && b < batch; ++b) {
    memset(memory, 0, (size_t)(3 * full) * sizeof *memory);
    overlap(s, ait_nn_data(x) + 2 * b * bins * frames, !complex, frames, memory + 3 * full, memory, memory + 2 * full);
    for (int64_t i = 0; i < n && start + i < full; ++i)
      for (int p = 0; p < 2; ++p) ait_nn_data_mut(&out)[2 * (b * n + i) + p] = memory[2 * (start + i) + p] / memory[2 * full + start + i];
  }
  ait_nn_doubles_free(call, memory, size);
  if (status) return status;
  if (!complex) drop_imaginary(&out);
  status = ait_nn_result(call, 0, result_dtype(call, t, complex), &out);
  ait_tensor_release(&out);
  return status;
}

/* aten.istft: self, n_fft, hop, win, window, center, normalized, onesided, length, return_complex */
ait_status ait_ref_istft(ait_ref_call *call) {
  const ait_tensor *t;
  stft s = {0};
  bool center, complex;
  int64_t length;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &s.n));
  AIT_TRY(ait_ref_int_or(call, 2, s.n / 4, &s.hop));
  AIT_TRY(ait_ref_int_or(call, 3, s.n, &s.win));
  AIT_TRY(ait_ref_bool(call, 5, &center));
  AIT_TRY(ait_ref_bool(call, 6, &s.normalized));
  AIT_TRY(ait_ref_int_or(call, 8, -1, &length));
  AIT_TRY(ait_ref_bool(call, 9, &complex));
  int32_t rank = t->rank - !ait_dtype_is_complex(t->dtype);
  AIT_TRY(ait_ref_bool_or(call, 7, rank >= 2 && t->shape[rank - 2] != s.n, &s.onesided));
  ait_tensor x = {0};
  ait_status status;
  AIT_GOTO(stft_window(call, 4, &s, false));
  if (ait_dtype_is_complex(t->dtype)) AIT_GOTO(as_complex(call, t, &x));
  else AIT_GOTO(ait_nn_f64(call, t, &x)); /* [.., 2]: pairs already */
  status = istft_run(call, &s, t, &x, center, length, complex);
cleanup:
  ait_nn_doubles_free(call, s.window, s.n);
  ait_tensor_release(&x);
  return status;
}
