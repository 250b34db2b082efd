/* ONNX: Fourier transforms over pairs of numbers, windows, mel weights. */
#include "backends/reference/onnx.h"

static const double PI = 3.14159265358979323846;

/* ---- DFT: each line by its definition ----------------------------------------------------------------------------------------------*/

typedef struct dft {
  int64_t in, length, out; /* elements of the operand's line, of the transform, of the result's line */
  bool inverse, onesided;  /* both: the operand is half of a symmetric spectrum, the result is real */
  double *cosines, *sines; /* of 2 pi k / length */
} dft;

static ait_status dft_tables(const ait_ref_call *call, dft *d) {
  d->cosines = ait_nn_doubles(call, 2 * d->length + 1);
  if (!d->cosines) return AIT_OOM();
  d->sines = d->cosines + d->length;
  for (int64_t k = 0; k < d->length; ++k) {
    double angle = 2 * PI * (double)k / (double)d->length;
    d->cosines[k] = cos(angle);
    d->sines[k] = sin(angle);
  }
  return AIT_OK;
}

/* Element i of the operand's line, zero beyond its end; the other half of a symmetric spectrum is its conjugate. */
static void element(const dft *d, const double *re, const double *im, int64_t stride, int64_t i, double *out_re, double *out_im) {
  bool mirrored = d->inverse && d->onesided && i > d->length / 2;
  int64_t k = mirrored ? d->length - i : i;
  *out_re = k < d->in ? re[k * stride] : 0;
  *out_im = k < d->in && im ? im[k * stride] : 0;
  if (mirrored) *out_im = -*out_im;
  if (d->inverse && d->onesided && (i == 0 || 2 * i == d->length)) *out_im = 0;
}

/* re, im (or NULL) with `stride`; results at y_re, y_im (or NULL) with `y_stride`. */
static void transform_line(const dft *d, const double *re, const double *im, int64_t stride, double *y_re, double *y_im, int64_t y_stride) {
  double scale = d->inverse ? 1 / (double)d->length : 1, sign = d->inverse ? 1 : -1;
  for (int64_t f = 0; f < d->out; ++f) {
    double sum_re = 0, sum_im = 0;
    for (int64_t i = 0, at = 0; i < d->length; ++i, at = at + f >= d->length ? at + f - d->length : at + f) {
      double a, b, c = d->cosines[at], s = sign * d->sines[at];
      element(d, re, im, stride, i, &a, &b);
      sum_re += a * c - b * s;
      sum_im += a * s + b * c;
    }
    y_re[f * y_stride] = sum_re * scale;
    if (y_im) y_im[f * y_stride] = sum_im * scale;
  }
}

/* (x, length?, axis, inverse, onesided); the last dim of x holds real, or real and imaginary parts */
ait_status ait_ref_onnx_dft(ait_ref_call *call) {
  const ait_tensor *x;
  double length, axis;
  dft d = {0};
  int32_t a;
  int64_t shape[AIT_MAX_RANK];
  ait_tensor in = {0}, out = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_number(call, 2, &axis));
  AIT_TRY(ait_ref_bool(call, 3, &d.inverse));
  AIT_TRY(ait_ref_bool(call, 4, &d.onesided));
  AIT_TRY(ait_ref_dim(call, (int64_t)axis, x->rank, &a));
  int64_t parts = x->rank ? x->shape[x->rank - 1] : 0;
  if (x->rank < 2 || a == x->rank - 1 || (parts != 1 && parts != 2))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operand and axis do not fit");
  d.in = x->shape[a];
  d.length = d.inverse && d.onesided ? 2 * (d.in - 1) : d.in;
  if (!ait_ref_is_none(call, 1)) {
    AIT_TRY(ait_onnx_number(call, 1, &length));
    d.length = length >= 1 && length < 1e9 ? (int64_t)length : 0;
  }
  if (d.length < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a transform of %lld elements", (long long)d.length);
  d.out = d.onesided && !d.inverse ? d.length / 2 + 1 : d.length;
  int64_t y_parts = d.inverse && d.onesided ? 1 : 2, inner = ait_nn_span(x, a + 1, x->rank - 1), outer = ait_nn_span(x, 0, a);
  memcpy(shape, x->shape, sizeof shape);
  shape[a] = d.out;
  shape[x->rank - 1] = y_parts;
  ait_status status = dft_tables(call, &d);
  if (status == AIT_OK) status = ait_ref_to_f64(call, x, &in);
  if (status == AIT_OK) status = ait_nn_zeros(call, AIT_F64, x->rank, shape, &out);
  for (int64_t o = 0; status == AIT_OK && o < outer; ++o)
    for (int64_t i = 0; i < inner; ++i) {
      const double *from = (const double *)in.data + (o * d.in * inner + i) * parts;
      double *to = (double *)out.data + (o * d.out * inner + i) * y_parts;
      transform_line(&d, from, parts == 2 ? from + 1 : NULL, inner * parts, to, y_parts == 2 ? to + 1 : NULL, inner * y_parts);
    }
  if (status == AIT_OK) status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, x->dtype), &out);
  if (d.cosines) ait_nn_doubles_free(call, d.cosines, 2 * d.length + 1);
  ait_tensor_release(&in);
  ait_tensor_release(&out);
  return status;
}

/* (x [batch, n, 1 or 2], frame_step, window?, frame_length?, onesided) -> [batch, frames, bins, 2] */
ait_status ait_ref_onnx_stft(ait_ref_call *call) {
  const ait_tensor *x, *window = ait_ref_tensor_or_null(call, 2);
  double step, length;
  dft d = {0};
  ait_tensor in = {0}, weights = {0}, out = {0};
  double *frame = NULL;
  ait_status status = AIT_OK;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_number(call, 1, &step));
  AIT_TRY(ait_ref_bool(call, 4, &d.onesided));
  if (x->rank != 3 && x->rank != 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the signal has rank %d", x->rank);
  int64_t parts = x->rank == 3 ? x->shape[2] : 1, samples = x->shape[1];
  length = window ? (double)ait_tensor_count(window) : (double)samples;
  if (!ait_ref_is_none(call, 3)) AIT_TRY(ait_onnx_number(call, 3, &length));
  if (!(length >= 1 && length <= (double)samples && step >= 1) || parts < 1 || parts > 2 ||
      (window && (double)ait_tensor_count(window) != length))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "signal, window and steps do not fit");
  d.in = d.length = (int64_t)length;
  d.out = d.onesided ? d.length / 2 + 1 : d.length;
  int64_t frames = 1 + (samples - d.length) / (int64_t)step, shape[4] = {x->shape[0], frames, d.out, 2};
  AIT_GOTO(dft_tables(call, &d));
  AIT_GOTO(ait_ref_to_f64(call, x, &in));
  if (window) AIT_GOTO(ait_ref_to_f64(call, window, &weights));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 4, shape, &out));
  frame = ait_nn_doubles(call, 2 * d.length);
  if (!frame) AIT_GOTO(AIT_OOM());
  for (int64_t f = 0; f < shape[0] * frames; ++f) {
    const double *from = (const double *)in.data + (f / frames * samples + f % frames * (int64_t)step) * parts;
    double *to = (double *)out.data + f * d.out * 2;
    for (int64_t i = 0; i < d.length * parts; ++i) frame[i] = from[i] * (window ? ((const double *)weights.data)[i / parts] : 1);
    transform_line(&d, frame, parts == 2 ? frame + 1 : NULL, parts, to, to + 1, 2);
  }
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, x->dtype), &out));
cleanup:
  if (frame) ait_nn_doubles_free(call, frame, 2 * d.length);
  if (d.cosines) ait_nn_doubles_free(call, d.cosines, 2 * d.length + 1);
  ait_tensor_release(&in);
  ait_tensor_release(&weights);
  ait_tensor_release(&out);
  return status;
}

/* (size, periodic, kind, dtype): cosine sums */
ait_status ait_ref_onnx_window(ait_ref_call *call) {
  static const struct {
    const char *name;
    double a[3];
  } kinds[] = {{"hann", {0.5, 0.5, 0}}, {"hamming", {25.0 / 46, 21.0 / 46, 0}}, {"blackman", {0.42, 0.5, 0.08}}};
  const char *kind = ait_ref_string(call, 2);
  double size;
  bool periodic;
  ait_tensor out;
  size_t k = 0;
  AIT_TRY(ait_onnx_number(call, 0, &size));
  AIT_TRY(ait_ref_bool(call, 1, &periodic));
  while (k < AIT_COUNT(kinds) && strcmp(kinds[k].name, kind ? kind : "") != 0) ++k;
  if (k == AIT_COUNT(kinds) || !(size >= 0 && size < 1e12))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a window '%s' of %g", kind ? kind : "", size);
  int64_t n = (int64_t)size;
  AIT_TRY(ait_onnx_new(call, 0, AIT_F32, 1, &n, &out));
  for (int64_t i = 0; i < n; ++i) {
    double angle = 2 * PI * (double)i / (periodic ? size : size - 1);
    double v = n == 1 && !periodic ? 1 : kinds[k].a[0] - kinds[k].a[1] * cos(angle) + kinds[k].a[2] * cos(2 * angle);
    ait_element_set_f64(ait_onnx_at(&out, i), out.dtype, v);
  }
  return AIT_OK;
}

/* (mel bins, dft length, sample rate, lowest, highest, dtype) */
ait_status ait_ref_onnx_mel_weights(ait_ref_call *call) {
  double v[5];
  ait_tensor out;
  for (uint32_t k = 0; k < 5; ++k) AIT_TRY(ait_onnx_number(call, k, &v[k]));
  if (!(v[0] >= 1 && v[0] < 1e6 && v[1] >= 1 && v[1] < 1e7 && v[2] > 0))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%g bins of %g", v[0], v[1]);
  int64_t mels = (int64_t)v[0], bins = (int64_t)v[1] / 2 + 1;
  AIT_TRY(ait_onnx_new(call, 0, AIT_F32, 2, (int64_t[]){bins, mels}, &out));
  memset(out.data, 0, ait_tensor_bytes(&out));
  double low = 2595 * log10(1 + v[3] / 700), high = 2595 * log10(1 + v[4] / 700), step = (high - low) / (double)(mels + 2);
  for (int64_t i = 0; i < mels; ++i) {
    int64_t edge[3];
    for (int k = 0; k < 3; ++k) {
      double hertz = 700 * (pow(10, ((double)(i + k) * step + low) / 2595) - 1);
      edge[k] = (int64_t)floor((v[1] + 1) * hertz / v[2]);
    }
    for (int64_t j = edge[0] < 0 ? 0 : edge[0]; j < bins && j <= edge[2]; ++j) {
      double w = j <= edge[1] ? (edge[1] == edge[0] ? j == edge[1] : (double)(j - edge[0]) / (double)(edge[1] - edge[0])) : 0;
      if (j >= edge[1] && j < edge[2]) w = (double)(edge[2] - j) / (double)(edge[2] - edge[1]);
      ait_element_set_f64(ait_onnx_at(&out, j * mels + i), out.dtype, w);
    }
  }
  return AIT_OK;
}
