/* The kernels again, in plain C and double precision, one element at a time: what the tests compare with. */
#ifndef AIT_KERNELS_REF_H
#define AIT_KERNELS_REF_H

#include "kernels/kernels.h"
#include <math.h>

static inline double ref_act(double x, ait_act act, double p, double q) {
  switch (act) {
    case AIT_ACT_RELU: return x < 0 ? 0 : x;
    case AIT_ACT_CLAMP: return x < p ? p : x > q ? q : x;
    case AIT_ACT_GELU: return 0.5 * x * (1 + erf(x * 0.70710678118654752440));
    case AIT_ACT_GELU_TANH: return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    case AIT_ACT_SILU: return x / (1 + exp(-x));
    case AIT_ACT_SIGMOID: return 1 / (1 + exp(-x));
    case AIT_ACT_TANH: return tanh(x);
    case AIT_ACT_HARDSWISH: return x * fmin(fmax(x + 3, 0), 6) / 6;
    case AIT_ACT_HARDSIGMOID: return fmin(fmax(x + 3, 0), 6) / 6;
    case AIT_ACT_LEAKY_RELU: return x > 0 ? x : x * p;
    case AIT_ACT_ELU: return x > 0 ? x * q : p * expm1(x);
    case AIT_ACT_MISH: return x * tanh(x > 30 ? x : log1p(exp(x)));
    case AIT_ACT_SOFTPLUS: return x * p > q ? x : log1p(exp(x * p)) / p;
    case AIT_ACT_NONE:
    case AIT_ACT_COUNT: break;
  }
  return x;
}
/* residual: the value at this place */
static inline double ref_epilogue(double acc, int64_t column, const ait_epilogue *e, double residual) {
  if (e->bias) acc += (double)e->bias[column];
  if (e->residual && !e->residual_after) acc += residual;
  acc = ref_act(acc, e->act, (double)e->p, (double)e->q);
  if (!e->residual || !e->residual_after) return acc;
  return e->residual_times ? acc * residual : acc + residual;
}

/* One output of a convolution; w in plain order [O][I/groups][KD][KH][KW]. */
static inline double ref_conv_at(const ait_image_dims *d, const float *x, int64_t x_stride, const float *w, int64_t groups, int64_t ic,
                                 int64_t oc, int64_t n, const int64_t out[3], int64_t o, double *magnitude) {
  int64_t icg = ic / groups, g = o / (oc / groups);
  double sum = 0;
  *magnitude = 0;
  for (int64_t i = 0; i < icg; ++i)
    for (int64_t a = 0; a < d->kernel[0]; ++a)
      for (int64_t b = 0; b < d->kernel[1]; ++b)
        for (int64_t c = 0; c < d->kernel[2]; ++c) {
          int64_t z = out[0] * d->stride[0] - d->pad[0] + a * d->dilation[0], y = out[1] * d->stride[1] - d->pad[1] + b * d->dilation[1],
                  q = out[2] * d->stride[2] - d->pad[2] + c * d->dilation[2];
          if (z < 0 || z >= d->in[0] || y < 0 || y >= d->in[1] || q < 0 || q >= d->in[2]) continue;
          double v = (double)x[(((n * d->in[0] + z) * d->in[1] + y) * d->in[2] + q) * x_stride + g * icg + i] *
                     (double)w[(((o * icg + i) * d->kernel[0] + a) * d->kernel[1] + b) * d->kernel[2] + c];
          sum += v;
          *magnitude += fabs(v);
        }
  return sum;
}

/* One output of a pooling window. */
static inline double ref_pool_at(const ait_pool_f32 *p, int64_t n, const int64_t out[3], int64_t c) {
  const ait_image_dims *d = &p->d;
  double acc = p->max ? -INFINITY : 0;
  int64_t inside = 0, counted = 0;
  for (int64_t i = 0; i < d->kernel[0] * d->kernel[1] * d->kernel[2]; ++i) {
    int64_t k[3] = {i / d->kernel[2] / d->kernel[1], i / d->kernel[2] % d->kernel[1], i % d->kernel[2]}, at[3];
    bool in = true, count = true;
    for (int j = 0; j < 3; ++j) {
      at[j] = out[j] * d->stride[j] - d->pad[j] + k[j] * d->dilation[j];
      if (at[j] < 0 || at[j] >= d->in[j]) in = false;
      if (at[j] >= d->in[j] + p->pad_end[j]) count = false;
    }
    counted += count;
    if (!in) continue;
    ++inside;
    double v = (double)p->x[(((n * d->in[0] + at[0]) * d->in[1] + at[1]) * d->in[2] + at[2]) * p->x_stride + c];
    if (!p->max) acc += v;
    else if (isnan(v) || v > acc) acc = isnan(acc) ? acc : v;
  }
  if (p->max) return acc;
  return acc / (double)(p->divisor > 0 ? p->divisor : p->include_pad ? counted : inside);
}

#endif
