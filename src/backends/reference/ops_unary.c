/* Element-wise operators of one tensor. */
#include "backends/reference/pointwise.h"

#include <float.h>
#include <math.h>

static ait_status unary(ait_ref_call *call, bool to_bool, const ait_ref_kernels *kernels, ait_ref_params params) {
  return ait_ref_map_args(call, 1, to_bool, kernels, params);
}

/* Float in, float out; complex where the formula has a meaning there. */
#define REAL_AND_COMPLEX(name, real, complex_)                                                                     \
  AIT_REF_LOOP_F(f_##name, real)                                                                                   \
  AIT_REF_LOOP_C(c_##name, complex_)                                                                               \
  ait_status ait_ref_##name(ait_ref_call *call) {                                                                  \
    static const ait_ref_kernels kernels = {.f = f_##name, .c = c_##name, .out_f = AIT_REF_F, .out_c = AIT_REF_C}; \
    return unary(call, false, &kernels, (ait_ref_params){0});                                                      \
  }
#define REAL(name, real)                                                        \
  AIT_REF_LOOP_F(f_##name, real)                                                \
  ait_status ait_ref_##name(ait_ref_call *call) {                               \
    static const ait_ref_kernels kernels = {.f = f_##name, .out_f = AIT_REF_F}; \
    return unary(call, false, &kernels, (ait_ref_params){0});                   \
  }
/* All three domains, the dtype kept. */
#define ANY_DOMAIN(name, real, whole, complex_)                                                             \
  AIT_REF_LOOP_F(f_##name, real)                                                                            \
  AIT_REF_LOOP_I(i_##name, whole)                                                                           \
  AIT_REF_LOOP_C(c_##name, complex_)                                                                        \
  ait_status ait_ref_##name(ait_ref_call *call) {                                                           \
    static const ait_ref_kernels kernels = {f_##name, i_##name, c_##name, AIT_REF_F, AIT_REF_I, AIT_REF_C}; \
    return unary(call, false, &kernels, (ait_ref_params){0});                                               \
  }
#define REAL_AND_WHOLE(name, real, whole)                                                                          \
  AIT_REF_LOOP_F(f_##name, real)                                                                                   \
  AIT_REF_LOOP_I(i_##name, whole)                                                                                  \
  ait_status ait_ref_##name(ait_ref_call *call) {                                                                  \
    static const ait_ref_kernels kernels = {.f = f_##name, .i = i_##name, .out_f = AIT_REF_F, .out_i = AIT_REF_I}; \
    return unary(call, false, &kernels, (ait_ref_params){0});                                                      \
  }
/* Any domain to a truth value. */
#define PREDICATE(name, real, whole, complex_)                                                              \
  AIT_REF_LOOP(f_##name, double, int64_t, real)                                                             \
  AIT_REF_LOOP(i_##name, int64_t, int64_t, whole)                                                           \
  AIT_REF_LOOP(c_##name, double complex, int64_t, complex_)                                                 \
  ait_status ait_ref_##name(ait_ref_call *call) {                                                           \
    static const ait_ref_kernels kernels = {f_##name, i_##name, c_##name, AIT_REF_I, AIT_REF_I, AIT_REF_I}; \
    return unary(call, true, &kernels, (ait_ref_params){0});                                                \
  }

static int64_t wrapped_negative(int64_t a) { return (int64_t)(0 - (uint64_t)a); }
static int64_t wrapped_product(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
static bool has_nan(double complex a) { return isnan(creal(a)) || isnan(cimag(a)); }
static bool has_inf(double complex a) { return isinf(creal(a)) || isinf(cimag(a)); }
static double complex c_unit(double complex a) { return a == 0 ? 0 : a / cabs(a); }

ANY_DOMAIN(neg, -a, wrapped_negative(a), -a)
ANY_DOMAIN(square, a *a, wrapped_product(a, a), a *a)
ANY_DOMAIN(conj_physical, a, a, conj(a))
ANY_DOMAIN(sgn, (double)((a > 0) - (a < 0)), (a > 0) - (a < 0), c_unit(a))

REAL_AND_WHOLE(sign, (double)((a > 0) - (a < 0)), (a > 0) - (a < 0))
REAL_AND_WHOLE(ceil, ceil(a), a)
REAL_AND_WHOLE(floor, floor(a), a)
REAL_AND_WHOLE(round, rint(a), a)
REAL_AND_WHOLE(trunc, trunc(a), a)

REAL_AND_COMPLEX(sqrt, sqrt(a), csqrt(a))
REAL_AND_COMPLEX(rsqrt, 1 / sqrt(a), 1 / csqrt(a))
REAL_AND_COMPLEX(reciprocal, 1 / a, 1 / a)
REAL_AND_COMPLEX(exp, exp(a), cexp(a))
REAL_AND_COMPLEX(exp2, exp2(a), cexp(a *M_LN2))
REAL_AND_COMPLEX(expm1, expm1(a), cexp(a) - 1)
REAL_AND_COMPLEX(log, log(a), clog(a))
REAL_AND_COMPLEX(log2, log2(a), clog(a) / M_LN2)
REAL_AND_COMPLEX(log10, log10(a), clog(a) / M_LN10)
REAL_AND_COMPLEX(log1p, log1p(a), clog(1 + a))
REAL_AND_COMPLEX(sin, sin(a), csin(a))
REAL_AND_COMPLEX(cos, cos(a), ccos(a))
REAL_AND_COMPLEX(tan, tan(a), ctan(a))
REAL_AND_COMPLEX(asin, asin(a), casin(a))
REAL_AND_COMPLEX(acos, acos(a), cacos(a))
REAL_AND_COMPLEX(atan, atan(a), catan(a))
REAL_AND_COMPLEX(sinh, sinh(a), csinh(a))
REAL_AND_COMPLEX(cosh, cosh(a), ccosh(a))
REAL_AND_COMPLEX(tanh, tanh(a), ctanh(a))
REAL_AND_COMPLEX(asinh, asinh(a), casinh(a))
REAL_AND_COMPLEX(acosh, acosh(a), cacosh(a))
REAL_AND_COMPLEX(atanh, atanh(a), catanh(a))
REAL_AND_COMPLEX(sigmoid, 1 / (1 + exp(-a)), 1 / (1 + cexp(-a)))
REAL(erf, erf(a))
REAL(erfc, erfc(a))
REAL(frac, a - trunc(a))
REAL(deg2rad, a *(M_PI / 180))
REAL(rad2deg, a *(180 / M_PI))

/* The angle is rounded as torch's is. */
static double sinc_of(double a, ait_dtype dtype) {
  double angle = dtype == AIT_F64 ? M_PI * a : (double)(float)(M_PI * a);
  return a == 0 ? 1 : sin(angle) / angle;
}
static double complex csinc_of(double complex a) { return a == 0 ? 1 : csin(M_PI * a) / (M_PI * a); }
REAL_AND_COMPLEX(sinc, sinc_of(a, p->dtype), csinc_of(a))

PREDICATE(logical_not, a == 0, a == 0, a == 0)
PREDICATE(isnan, isnan(a), 0, has_nan(a))
PREDICATE(isinf, isinf(a) != 0, 0, has_inf(a))
PREDICATE(isfinite, isfinite(a), 1, !has_nan(a) && !has_inf(a))
PREDICATE(isposinf, a == INFINITY, 0, 0)
PREDICATE(isneginf, a == -INFINITY, 0, 0)
PREDICATE(isreal, 1, 1, cimag(a) == 0)
PREDICATE(signbit, signbit(a) != 0, a < 0, 0)

/* Magnitude and angle of complex numbers are real. */
AIT_REF_LOOP_F(f_abs, fabs(a))
AIT_REF_LOOP_I(i_abs, a < 0 ? wrapped_negative(a) : a)
AIT_REF_LOOP(c_abs, double complex, double, cabs(a))
ait_status ait_ref_abs(ait_ref_call *call) {
  static const ait_ref_kernels kernels = {f_abs, i_abs, c_abs, AIT_REF_F, AIT_REF_I, AIT_REF_F};
  return unary(call, false, &kernels, (ait_ref_params){0});
}

AIT_REF_LOOP_F(f_angle, isnan(a) ? a : a < 0 ? M_PI : 0)
AIT_REF_LOOP(c_angle, double complex, double, carg(a))
ait_status ait_ref_angle(ait_ref_call *call) {
  static const ait_ref_kernels kernels = {.f = f_angle, .c = c_angle, .out_f = AIT_REF_F, .out_c = AIT_REF_F};
  return unary(call, false, &kernels, (ait_ref_params){0});
}

AIT_REF_LOOP_I(i_bitwise_not, p->dtype == AIT_BOOL ? a == 0 : ~a)
ait_status ait_ref_bitwise_not(ait_ref_call *call) {
  static const ait_ref_kernels kernels = {.i = i_bitwise_not, .out_i = AIT_REF_I};
  return unary(call, false, &kernels, (ait_ref_params){0});
}

static double logit_of(double a, const ait_ref_params *p) {
  double x = p->i[0] ? fmin(fmax(a, p->f[0]), 1 - p->f[0]) : a;
  return isnan(a) ? a : log(x / (1 - x));
}
AIT_REF_LOOP_F(f_logit, logit_of(a, p))
ait_status ait_ref_logit(ait_ref_call *call) {
  static const ait_ref_kernels kernels = {.f = f_logit, .out_f = AIT_REF_F};
  ait_ref_params params = {0};
  params.i[0] = !ait_ref_is_none(call, 1);
  AIT_TRY(ait_ref_float_or(call, 1, 0, &params.f[0]));
  return unary(call, false, &kernels, params);
}

/* torch scales in the tensor's own precision, which decides ties. */
static double round_decimals_of(double a, const ait_ref_params *p) {
  bool single = p->dtype != AIT_F64;
  double scaled = p->i[0] < 0 ? a / p->f[0] : a * p->f[0];
  double whole = rint(single ? (double)(float)scaled : scaled);
  return p->i[0] < 0 ? whole * p->f[0] : whole / p->f[0];
}
AIT_REF_LOOP_F(f_round_decimals, round_decimals_of(a, p))
AIT_REF_LOOP_I(i_identity, a)
ait_status ait_ref_round_decimals(ait_ref_call *call) {
  static const ait_ref_kernels kernels = {.f = f_round_decimals, .i = i_identity, .out_f = AIT_REF_F, .out_i = AIT_REF_I};
  ait_ref_params params = {0};
  AIT_TRY(ait_ref_int(call, 1, &params.i[0]));
  params.f[0] = pow(10, fabs((double)params.i[0]));
  return unary(call, false, &kernels, params);
}

static double largest(ait_dtype dtype) {
  switch (dtype) {
    case AIT_F16: return 65504;
    case AIT_BF16: return 3.38953138925153547590470800371487867e38;
    case AIT_F32: return FLT_MAX;
    default: return DBL_MAX;
  }
}
AIT_REF_LOOP_F(f_nan_to_num, isnan(a) ? p->f[0] : a == INFINITY ? p->f[1] : a == -INFINITY ? p->f[2] : a)
ait_status ait_ref_nan_to_num(ait_ref_call *call) {
  static const ait_ref_kernels kernels = {.f = f_nan_to_num, .i = i_identity, .out_f = AIT_REF_F, .out_i = AIT_REF_I};
  const ait_tensor *x;
  ait_ref_params params = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_float_or(call, 1, 0, &params.f[0]));
  AIT_TRY(ait_ref_float_or(call, 2, largest(x->dtype), &params.f[1]));
  AIT_TRY(ait_ref_float_or(call, 3, -largest(x->dtype), &params.f[2]));
  return unary(call, false, &kernels, params);
}

static double mantissa_of(double a) {
  int e;
  return frexp(a, &e);
}
static int64_t exponent_of(double a) {
  int e = 0;
  if (isfinite(a)) AIT_UNUSED(frexp(a, &e));
  return e;
}
AIT_REF_LOOP_F(f_mantissa, mantissa_of(a))
AIT_REF_LOOP(f_exponent, double, int64_t, exponent_of(a))
ait_status ait_ref_frexp(ait_ref_call *call) {
  static const ait_ref_kernels mantissa = {.f = f_mantissa, .out_f = AIT_REF_F}, exponent = {.f = f_exponent, .out_f = AIT_REF_I};
  const ait_tensor *x;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  ait_ref_operand operand = ait_ref_operand_tensor(x);
  AIT_TRY(ait_ref_map(call, 0, x->dtype, x->dtype, &operand, 1, &mantissa, (ait_ref_params){0}));
  return ait_ref_map(call, 1, x->dtype, AIT_I32, &operand, 1, &exponent, (ait_ref_params){0});
}
