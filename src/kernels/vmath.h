/* Elementary functions on a vector of floats, after isa.h. Polynomials are near-minimax (Chebyshev) fits made for this file, evaluated in
 * single precision; errors are checked in elementwise_test.c. NaN passes through; overflow, infinities and denormals are those of the C
 * library. */
#ifndef AIT_KERNELS_VMATH_H
#define AIT_KERNELS_VMATH_H

INLINE vf v_c(float x) { return v_set(x); }

/* x to the nearest integer, half to even, by adding 1.5 * 2^23; *n the same as int. |x| < 2^22. */
INLINE vf v_round_small(vf x, vi *n) {
  vf t = x + v_c(12582912.0f);
  *n = (vi)((vu)t - v_setu(0x4B400000u));
  return t - v_c(12582912.0f);
}
/* p * 2^n in two half steps, so that 2^n may be a denormal or n 128. */
INLINE vf v_scale(vf p, vi n) {
  vi half = n >> 1;
  p *= (vf)(((vu)half + v_setu(127)) << 23);
  return p * (vf)(((vu)n - (vu)half + v_setu(127)) << 23);
}
/* exp for x in [-104, 89]. */
INLINE vf v_exp_core(vf x) {
  vi n;
  vf t = v_round_small(x * v_c(1.44269504f), &n), r = x - t * v_c(0.693115234375f);
  r -= t * v_c(3.19461849453e-5f);
  vf p = v_c(0.001393365249f);
  p = p * r + v_c(0.008363181545f);
  p = p * r + v_c(0.0416664649f);
  p = p * r + v_c(0.1666657697f);
  p = p * r + v_c(0.5000000013f);
  p = p * (r * r) + (r + v_c(1.0f));
  return v_scale(p, n);
}
INLINE vf v_exp(vf x) { return v_exp_core(v_max(v_c(-104.0f), v_min(v_c(89.0f), x))); }
/* exp(x) - 1 = 2^n (e^r - 1) + (2^n - 1) */
INLINE vf v_expm1(vf x) {
  vf c = v_max(v_c(-30.0f), v_min(v_c(88.0f), x));
  vi n;
  vf t = v_round_small(c * v_c(1.44269504f), &n), r = c - t * v_c(0.693115234375f);
  r -= t * v_c(3.19461849453e-5f);
  vf p = v_c(0.001393365249f);
  p = p * r + v_c(0.008363181545f);
  p = p * r + v_c(0.0416664649f);
  p = p * r + v_c(0.1666657697f);
  p = p * r + v_c(0.5000000013f);
  p = p * (r * r) + r;
  vf s = (vf)(((vu)n + v_setu(127)) << 23);
  vf y = s * p + (s - v_c(1.0f));
  y = v_sel(x == v_zero(), x, y);
  return v_sel(x > v_c(88.0f), v_exp(x), y);
}
INLINE vf v_exp2(vf x) {
  vi n;
  vf c = v_max(v_c(-151.0f), v_min(v_c(129.0f), x)), f = c - v_round_small(c, &n);
  vf p = v_c(0.0001546144978f);
  p = p * f + v_c(0.001339086965f);
  p = p * f + v_c(0.009618056664f);
  p = p * f + v_c(0.055503571f);
  p = p * f + v_c(0.2402265092f);
  p = p * f + v_c(0.693147188f);
  return v_scale(p * f + v_c(1.0f), n);
}
/* x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt 2); x positive and finite, denormals too. */
INLINE vf v_split(vf x, vf *f) {
  vi tiny = x < v_c(1.17549435e-38f);
  x = v_sel(tiny, x * v_c(8388608.0f), x);
  vi bits = (vi)((vu)x - v_setu(0x3F3504F3u)); /* sqrt(1/2) */
  vi e = bits >> 23;
  *f = (vf)((vu)x - ((vu)e << 23)) - v_c(1.0f);
  return v_from_int(e) - v_sel(tiny, v_c(23.0f), v_zero());
}
/* log(1 + f) - f, |f| as above. */
INLINE vf v_log_tail(vf f) {
  vf p = v_c(0.07149753891f);
  p = p * f + v_c(-0.1157120073f);
  p = p * f + v_c(0.1166151107f);
  p = p * f + v_c(-0.1241105068f);
  p = p * f + v_c(0.1424993653f);
  p = p * f + v_c(-0.1666848024f);
  p = p * f + v_c(0.2000070748f);
  p = p * f + v_c(-0.2499998905f);
  p = p * f + v_c(0.3333333119f);
  vf s = f * f;
  return p * (s * f) - v_c(0.5f) * s;
}
/* Zero, infinity, negative numbers and NaN in place of whatever y is there. */
INLINE vf v_log_edges(vf x, vf y) {
  y = v_sel(x == v_zero(), v_c(-INFINITY), y);
  y = v_sel(x == v_c(INFINITY), x, y);
  y = v_sel(x < v_zero(), v_c(NAN), y);
  return v_sel(x != x, x, y);
}
INLINE vf v_log(vf x) {
  vf f, e = v_split(x, &f), tail = v_log_tail(f) + e * v_c(3.19461849453e-5f);
  return v_log_edges(x, (tail + f) + e * v_c(0.693115234375f));
}
INLINE vf v_log2(vf x) {
  vf f, e = v_split(x, &f), tail = v_log_tail(f);
  /* log2(e) = 1.4427490234 + ... in two parts, so that the product with f keeps its low bits */
  vf y = f * v_c(1.4423828125f) + (f * v_c(3.12228389e-4f) + tail * v_c(1.44269504f));
  return v_log_edges(x, y + e);
}
INLINE vf v_log10(vf x) {
  vf f, e = v_split(x, &f), tail = v_log_tail(f);
  vf y = f * v_c(0.434294482f) + (tail * v_c(0.434294482f) + e * v_c(-2.09206e-6f));
  return v_log_edges(x, y + e * v_c(0.30103207f));
}
INLINE vf v_log1p(vf x) {
  vf u = x + v_c(1.0f), c = (x - (u - v_c(1.0f))) / u;
  vf y = v_log(u) + v_sel((u > v_zero()) & (u < v_c(INFINITY)), c, v_zero());
  return v_sel(x == v_zero(), x, y);
}

/* sin and cos of r + k pi/2, |r| <= pi/4 */
INLINE vf v_sin_poly(vf r, vf s) {
  vf p = v_c(2.724965801e-6f);
  p = p * s + v_c(-0.0001984008473f);
  p = p * s + v_c(0.008333331871f);
  p = p * s + v_c(-0.1666666666f);
  return p * (s * r) + r;
}
INLINE vf v_cos_poly(vf s) {
  vf p = v_c(-2.730073116e-7f);
  p = p * s + v_c(2.480059866e-5f);
  p = p * s + v_c(-0.001388888767f);
  p = p * s + v_c(0.04166666664f);
  return p * (s * s) + (v_c(1.0f) - v_c(0.5f) * s);
}
/* Quarter turns are taken off in four parts (Cody and Waite), each product exact below V_TRIG_MAX; larger arguments go to the C library. */
#define V_TRIG_MAX 4000.0f
INLINE vf v_sincos(vf x, bool cosine) {
  vi quarter;
  vf n = v_round_small(x * v_c(0.636619772f), &quarter);
  vf r = x - n * v_c(1.5703125f);
  r -= n * v_c(0.0004837512969970703125f);
  r -= n * v_c(7.549533620476722717285156e-8f);
  r -= n * v_c(2.56334415159e-12f);
  if (cosine) quarter = (vi)((vu)quarter + v_setu(1));
  vf s = r * r, y = v_sel((quarter & v_seti(1)) != v_seti(0), v_cos_poly(s), v_sin_poly(r, s));
  y = (vf)((vu)y ^ (((vu)quarter & v_setu(2)) << 30));
  vi far = ~(v_abs(x) < v_c(V_TRIG_MAX));
  int any = 0;
  for (int i = 0; i < VL; ++i) any |= far[i];
  if (any)
    for (int i = 0; i < VL; ++i)
      if (far[i]) y[i] = cosine ? cosf(x[i]) : sinf(x[i]);
  return y;
}
INLINE vf v_sin(vf x) { return v_sel(x == v_zero(), x, v_sincos(x, false)); }
INLINE vf v_cos(vf x) { return v_sincos(x, true); }

INLINE vf v_tanh(vf x) {
  vf a = v_abs(x), s = x * x;
  vf e = v_exp_core(v_min(v_c(20.0f), a + a)); /* tanh is 1 from 9.02 on */
  vf big = v_c(1.0f) - v_c(2.0f) / (e + v_c(1.0f));
  vf p = v_c(0.002295841263f);
  p = p * s + v_c(-0.008346980495f);
  p = p * s + v_c(0.02176996092f);
  p = p * s + v_c(-0.05395940591f);
  p = p * s + v_c(0.1333330428f);
  p = p * s + v_c(-0.3333333318f);
  vf y = v_or(v_sel(a < v_c(0.625f), p * s * a + a, big), v_sign_bit(x)); /* -0 gives -0 */
  return v_sel(x != x, x, y);
}
/* |x| < 1: odd polynomial; else 1 - exp(-g(|x|)). */
INLINE vf v_erf(vf x) {
  vf a = v_min(v_c(4.0f), v_abs(x)), s = a * a;
  vf p = v_c(7.88249711e-5f);
  p = p * s + v_c(-0.0008018854993f);
  p = p * s + v_c(0.005189311943f);
  p = p * s + v_c(-0.0268543288f);
  p = p * s + v_c(0.1128359746f);
  p = p * s + v_c(-0.376126269f);
  p = p * s + v_c(0.1283791659f);
  vf g = v_c(1.330939039e-5f);
  g = g * a + v_c(-0.0003175720346f);
  g = g * a + v_c(0.003436867598f);
  g = g * a + v_c(-0.02262198592f);
  g = g * a + v_c(0.10331898f);
  g = g * a + v_c(0.6390933195f);
  g = g * a + v_c(1.125925949f);
  g = g * a + v_c(0.0007569686253f);
  vf big = v_c(1.0f) - v_exp_core(-g);
  return v_sel(a < v_c(1.0f), p * x + x, v_or(big, v_sign_bit(x)));
}
INLINE vf v_sigmoid(vf x) { return v_c(1.0f) / (v_c(1.0f) + v_exp(-x)); }
INLINE vf v_silu(vf x) { return x / (v_c(1.0f) + v_exp(-x)); }
INLINE vf v_gelu(vf x) { return v_c(0.5f) * x * (v_c(1.0f) + v_erf(x * v_c(0.707106781f))); }
INLINE vf v_gelu_tanh(vf x) {
  vf inner = v_c(0.797884561f) * (x + v_c(0.044715f) * x * x * x);
  return v_c(0.5f) * x * (v_c(1.0f) + v_tanh(inner));
}
INLINE vf v_relu(vf x) { return v_max(v_zero(), x); }
INLINE vf v_clamp(vf x, vf low, vf high) { return v_min(high, v_max(low, x)); }
INLINE vf v_hardsigmoid(vf x) { return v_clamp(x + v_c(3.0f), v_zero(), v_c(6.0f)) / v_c(6.0f); }
INLINE vf v_hardswish(vf x) { return x * v_clamp(x + v_c(3.0f), v_zero(), v_c(6.0f)) / v_c(6.0f); }
INLINE vf v_leaky_relu(vf x, vf slope) { return v_sel(x > v_zero(), x, x * slope); }
INLINE vf v_elu(vf x, vf alpha, vf scale) { return v_sel(x > v_zero(), x * scale, alpha * v_expm1(x)); }
/* tanh(log(1 + e^x)) = (u^2 + 2u) / (u^2 + 2u + 2), u = e^x */
INLINE vf v_mish(vf x) {
  vf u = v_exp(v_min(v_c(20.0f), x)), t = u * (u + v_c(2.0f));
  return x * (t / (t + v_c(2.0f)));
}
INLINE vf v_softplus(vf x, vf beta, vf threshold) {
  vf s = x * beta;
  return v_sel(s > threshold, x, v_log1p(v_exp(v_min(v_c(80.0f), s))) / beta);
}

INLINE vf v_trunc_any(vf x) { /* |x| >= 2^23 is an integer already */
  vf big = v_c(8388608.0f), a = v_abs(x), t = v_from_int(v_to_int(v_sel(a < big, x, v_zero())));
  return v_sel(a < big, v_or(t, v_sign_bit(x)), x);
}
INLINE vf v_trunc(vf x) {
#if VL == 8 && defined(__AVX2__)
  return (vf)_mm256_round_ps((__m256)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
#else
  return v_trunc_any(x);
#endif
}
INLINE vf v_floor(vf x) {
#if VL == 8 && defined(__AVX2__)
  return (vf)_mm256_floor_ps((__m256)x);
#else
  vf t = v_trunc_any(x);
  return v_or(t - v_sel(t > x, v_c(1.0f), v_zero()), v_sign_bit(x));
#endif
}
INLINE vf v_ceil(vf x) {
  vf down = v_floor((vf)((vi)x ^ v_seti((int32_t)0x80000000u)));
  return (vf)((vi)down ^ v_seti((int32_t)0x80000000u));
}
INLINE vf v_round(vf x) {
  vf big = v_c(8388608.0f), a = v_abs(x);
  return v_sel(a < big, v_or((a + big) - big, v_sign_bit(x)), x);
}

/* act[i] = f(x[i]) for a row of n; y may be x. */
#define ACT_LOOP(f)                       \
  do {                                    \
    int64_t i_ = 0;                       \
    for (; i_ + VL <= n; i_ += VL) {      \
      vf v = v_load(x + i_);              \
      v_store(y + i_, f);                 \
    }                                     \
    if (i_ < n) {                         \
      vf v = v_load_part(x + i_, n - i_); \
      v_store_part(y + i_, f, n - i_);    \
    }                                     \
  } while (0)
NOINLINE __attribute__((unused)) void act_row(float *y, const float *x, int64_t n, ait_act act, float p, float q) {
  switch (act) {
    case AIT_ACT_RELU: ACT_LOOP(v_relu(v)); break;
    case AIT_ACT_CLAMP: ACT_LOOP(v_clamp(v, v_set(p), v_set(q))); break;
    case AIT_ACT_GELU: ACT_LOOP(v_gelu(v)); break;
    case AIT_ACT_GELU_TANH: ACT_LOOP(v_gelu_tanh(v)); break;
    case AIT_ACT_SILU: ACT_LOOP(v_silu(v)); break;
    case AIT_ACT_SIGMOID: ACT_LOOP(v_sigmoid(v)); break;
    case AIT_ACT_TANH: ACT_LOOP(v_tanh(v)); break;
    case AIT_ACT_HARDSWISH: ACT_LOOP(v_hardswish(v)); break;
    case AIT_ACT_HARDSIGMOID: ACT_LOOP(v_hardsigmoid(v)); break;
    case AIT_ACT_LEAKY_RELU: ACT_LOOP(v_leaky_relu(v, v_set(p))); break;
    case AIT_ACT_ELU: ACT_LOOP(v_elu(v, v_set(p), v_set(q))); break;
    case AIT_ACT_MISH: ACT_LOOP(v_mish(v)); break;
    case AIT_ACT_SOFTPLUS: ACT_LOOP(v_softplus(v, v_set(p), v_set(q))); break;
    case AIT_ACT_NONE:
    case AIT_ACT_COUNT: break;
  }
}
NOINLINE __attribute__((unused)) void times_row(float *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] *= x[i];
}
NOINLINE __attribute__((unused)) void add_row(float *y, const float *x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] += x[i];
}

#endif
