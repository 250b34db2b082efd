/* Special functions in double: gamma and its kin, error functions, Bessel functions, orthogonal polynomials. Formulas: NIST Digital Library
 * of Mathematical Functions (DLMF); equation numbers stand at the functions. */
#include "backends/reference/interp.h"
#include "backends/reference/nn.h"

/* ---- gamma ------------------------------------------------------------------------------------------------------------------- */
/* 5.11.2 after the recurrence 5.5.2; 5.5.4 reflects negative x */
static double digamma(double x, const double *p) {
  AIT_UNUSED(p);
  if (x == 0) return copysign(INFINITY, -x);
  double shift = 0;
  if (x < 0) {
    if (x == floor(x)) return NAN;
    shift = -M_PI / tan(M_PI * (x - floor(x)));
    x = 1 - x;
  }
  for (; x < 10; ++x) shift -= 1 / x;
  if (!isfinite(x)) return x + shift;
  double y = 1 / (x * x);
  double tail = y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y / 12))))));
  return shift + log(x) - 0.5 / x - tail;
}

/* Hurwitz zeta by Euler and Maclaurin, 25.11.5 */
static double zeta(double s, double q, const double *p) {
  AIT_UNUSED(p);
  static const double bernoulli[] = {1.0 / 12,
                                     -1.0 / 720,
                                     1.0 / 30240,
                                     -1.0 / 1209600,
                                     1.0 / 47900160,
                                     -691.0 / 1307674368000.0,
                                     1.0 / 74724249600.0,
                                     -3617.0 / 10670622842880000.0};
  if (s == 1) return INFINITY;
  if (s < 1) return NAN;
  if (q <= 0) {
    if (q == floor(q)) return INFINITY;
    if (s != floor(s)) return NAN;
  }
  if (isnan(s) || isnan(q) || q == INFINITY) return NAN; /* at infinity as torch, though the limit is 0 */
  double sum = 0, a = q;
  int n = 0;
  for (; n < 12 || a <= 9; ++n, a += 1) sum += pow(a, -s);
  sum += pow(a, 1 - s) / (s - 1) + 0.5 * pow(a, -s);
  double factor = s, power = pow(a, -s - 1);
  for (int k = 0; k < 8; ++k) {
    sum += bernoulli[k] * factor * power;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= a * a;
  }
  return sum;
}

static double log_gamma(double x, const double *p) {
  AIT_UNUSED(p);
  int sign;
  return lgamma_r(x, &sign);
}

/* p[0]: the order; 5.15.2, 25.11.12. p[1]: torch computes in double. Its trigamma reflects (5.5.3), so at the poles it gives the square of
 * what rounding leaves of the sine. */
static double polygamma(double x, const double *p) {
  if (p[0] == 0) return digamma(x, NULL);
  if (p[0] == 1 && x == INFINITY) return 0;
  if (p[0] == 1 && x == -INFINITY) return NAN;
  if (p[0] == 1 && x <= 0 && x == floor(x)) {
    double sine = p[1] != 0 ? sin(M_PI * x) : (double)sinf((float)M_PI * (float)x);
    return M_PI * M_PI / (sine * sine);
  }
  double v = tgamma(p[0] + 1) * zeta(p[0] + 1, x, NULL);
  return fmod(p[0], 2) == 0 ? -v : v;
}

/* p[0]: the dimension; 35.3.5 */
static double multi_log_gamma(double x, const double *p) {
  double sum = p[0] * (p[0] - 1) / 4 * log(M_PI);
  for (int j = 0; j < (int)p[0]; ++j) sum += log_gamma(x - 0.5 * j, NULL);
  return sum;
}

/* Regularised incomplete gamma functions: series 8.11.4 for P, continued fraction 8.9.2 for Q. */
static double gamma_p_series(double a, double x) {
  double term = 1 / a, sum = term;
  for (int k = 1; k < 10000 && fabs(term) > fabs(sum) * 1e-17; ++k) sum += term *= x / (a + k);
  return sum * exp(a * log(x) - x - log_gamma(a, NULL));
}
static double gamma_q_fraction(double a, double x) {
  double b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
  for (int i = 1; i < 10000; ++i) {
    double n = -(double)i * ((double)i - a);
    b += 2;
    d = 1 / (n * d + b);
    c = b + n / c;
    h *= d * c;
    if (fabs(d * c - 1) < 1e-16) break;
  }
  return h * exp(a * log(x) - x - log_gamma(a, NULL));
}
static double incomplete_gamma(double a, double x, bool upper) {
  if (isnan(a) || isnan(x) || x < 0 || a < 0) return NAN;
  if (a == 0) return x > 0 ? !upper : NAN;
  if (x == 0) return upper;
  if (isinf(a)) return isinf(x) ? NAN : upper;
  if (isinf(x)) return !upper;
  bool series = x < a + 1;
  double v = series ? gamma_p_series(a, x) : gamma_q_fraction(a, x);
  return series == upper ? 1 - v : v;
}
static double igamma(double a, double x, const double *p) {
  AIT_UNUSED(p);
  return incomplete_gamma(a, x, false);
}
static double igammac(double a, double x, const double *p) {
  AIT_UNUSED(p);
  return incomplete_gamma(a, x, true);
}

/* ---- error functions --------------------------------------------------------------------------------------------------------- */
/* exp(x^2) erfc(x); 7.12.1 for large x */
static double erfcx(double x, const double *p) {
  AIT_UNUSED(p);
  if (x < 25) return exp(x * x) * erfc(x);
  double y = 1 / (2 * x * x);
  return 1 / (x * sqrt(M_PI)) * (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y))));
}

/* x > 0 with erfc(x) = q, 0 < q <= 1: Winitzki's estimate, then Halley's method */
static double erfc_inverse(double q) {
  double l = log(q * (2 - q)), t = 2 / (M_PI * 0.147) + l / 2, x = sqrt(fmax(0, sqrt(t * t - l / 0.147) - t));
  for (int i = 0; i < 8; ++i) {
    double e = (erfc(x) - q) / (-M_2_SQRTPI * exp(-x * x));
    if (!isfinite(e)) break;
    x -= e / (1 + x * e);
  }
  return x;
}
static double erfinv(double y, const double *p) {
  AIT_UNUSED(p);
  double a = fabs(y);
  if (!(a < 1)) return a == 1 ? copysign(INFINITY, y) : NAN;
  if (a >= 0.5) return copysign(erfc_inverse(1 - a), y);
  double x = y / M_2_SQRTPI;
  for (int i = 0; i < 8; ++i) {
    double e = (erf(x) - y) / (M_2_SQRTPI * exp(-x * x));
    x -= e / (1 + x * e);
  }
  return x;
}
static double ndtr(double x, const double *p) {
  AIT_UNUSED(p);
  return 0.5 * erfc(-x * M_SQRT1_2);
}
static double log_ndtr(double x, const double *p) {
  AIT_UNUSED(p);
  if (x < -1) return log(erfcx(-x * M_SQRT1_2, NULL) / 2) - x * x / 2;
  return log1p(-erfc(x * M_SQRT1_2) / 2);
}
static double ndtri(double y, const double *p) {
  AIT_UNUSED(p);
  if (y == 0) return -INFINITY;
  if (y == 1) return INFINITY;
  if (!(y > 0 && y < 1)) return NAN;
  return y < 0.5 ? -M_SQRT2 * erfc_inverse(2 * y) : M_SQRT2 * erfc_inverse(2 * (1 - y));
}
static double entropy(double x, const double *p) {
  AIT_UNUSED(p);
  return isnan(x) ? x : x > 0 ? -x * log(x) : x == 0 ? 0 : -INFINITY;
}
static double xlog1py(double x, double y, const double *p) {
  AIT_UNUSED(p);
  return isnan(y) ? y : x == 0 ? 0 : x * log1p(y);
}

/* ---- Bessel functions -------------------------------------------------------------------------------------------------------- */
/* exp(-|x|) I_n(x), n = 0 or 1: series 10.25.2, asymptotic 10.40.1 */
static double scaled_i(int n, double x) {
  double a = fabs(x);
  if (isnan(x)) return x;
  if (a > 30) {
    double mu = 4.0 * n * n, term = 1, sum = 1;
    for (int k = 1; k < 30 && fabs(term) > 1e-17; ++k) sum += term *= -(mu - (2.0 * k - 1) * (2.0 * k - 1)) / (k * 8 * a);
    double v = isinf(a) ? 0 : sum / sqrt(2 * M_PI * a);
    return n == 1 && x < 0 ? -v : v;
  }
  double y = a * a / 4, term = n == 1 ? x / 2 : 1, sum = term;
  for (int k = 1; k < 500 && fabs(term) > fabs(sum) * 1e-18; ++k) sum += term *= y / ((double)k * (k + n));
  return sum * exp(-a);
}
static double i0(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? NAN : scaled_i(0, x) * exp(fabs(x)); /* torch's answer at infinity */
}
static double i1(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? NAN : scaled_i(1, x) * exp(fabs(x));
}
static double i0e(double x, const double *p) {
  AIT_UNUSED(p);
  return scaled_i(0, x);
}
static double i1e(double x, const double *p) {
  AIT_UNUSED(p);
  return scaled_i(1, x);
}

/* exp(x) K_v(x) for large x, where the integral's peak is narrower than a step: 10.40.2 */
static double scaled_k_large(double v, double x) {
  double term = 1, sum = 1;
  for (int k = 1; k < 30; ++k) {
    term *= (4 * v * v - (2.0 * k - 1) * (2.0 * k - 1)) / (8 * x * k);
    sum += term;
  }
  return sqrt(M_PI_2 / x) * sum;
}

/* exp(x) K_v(x): the integral 10.32.9 by the trapezoidal rule, whose error falls like exp(-pi^2 / step) */
static double scaled_k(double v, double x) {
  if (isnan(x) || x < 0) return NAN;
  if (x == 0) return INFINITY;
  if (x > 25) return scaled_k_large(v, x);
  const double step = 0.125;
  double sum = 0.5;
  for (int k = 1; k < 4000; ++k) {
    double t = k * step, half = sinh(t / 2), term = exp(-2 * x * half * half) * cosh(v * t);
    sum += term;
    if (!(term > sum * 1e-18)) break;
  }
  return sum * step;
}
static double k0(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? (x > 0 ? 0 : NAN) : scaled_k(0, x) * exp(-x);
}
static double k1(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? (x > 0 ? 0 : NAN) : scaled_k(1, x) * exp(-x);
}
static double k0e(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? (x > 0 ? 0 : NAN) : scaled_k(0, x);
}
static double k1e(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? (x > 0 ? 0 : NAN) : scaled_k(1, x);
}
static double bessel_j0(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? NAN : j0(x);
}
static double bessel_j1(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? NAN : j1(x);
}
static double bessel_y0(double x, const double *p) {
  AIT_UNUSED(p);
  return x < 0 || isinf(x) ? NAN : x == 0 ? -INFINITY : y0(x);
}
static double bessel_y1(double x, const double *p) {
  AIT_UNUSED(p);
  return x < 0 || isinf(x) ? NAN : x == 0 ? -INFINITY : y1(x);
}
static double spherical_j0(double x, const double *p) {
  AIT_UNUSED(p);
  return isinf(x) ? 0 : fabs(x) < 1e-4 ? 1 - x * x / 6 : sin(x) / x;
}

/* 9.7.9, alternating sums of the asymptotic coefficients u_k */
static double airy_oscillating(double x) {
  double z = 2.0 / 3 * x * sqrt(x), u = 1, even = 1, odd = 0;
  for (int k = 1; k < 20; ++k) {
    double next = u * (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2 * k - 1)) / z;
    if (fabs(next) > fabs(u)) break;
    u = next;
    double sign = k / 2 % 2 ? -1 : 1;
    if (k % 2) odd += sign * u;
    else even += sign * u;
  }
  return (cos(z - M_PI_4) * even + sin(z - M_PI_4) * odd) / (sqrt(M_PI) * sqrt(sqrt(x)));
}
static double airy(double x, const double *p) {
  AIT_UNUSED(p);
  if (!isfinite(x)) return NAN;
  if (x > 104) return 0;
  if (x > 1) return sqrt(x / 3) / M_PI * scaled_k(1.0 / 3, 2.0 / 3 * x * sqrt(x)) * exp(-2.0 / 3 * x * sqrt(x)); /* 9.6.2 */
  if (x < -7) return airy_oscillating(-x);
  double f = 1, g = x, tf = 1, tg = x, cube = x * x * x; /* 9.4.1 */
  for (int k = 1; k < 120; ++k) {
    tf *= cube / ((3.0 * k - 1) * (3.0 * k));
    tg *= cube / ((3.0 * k) * (3.0 * k + 1));
    f += tf, g += tg;
  }
  return 0.355028053887817239 * f - 0.258819403792806798 * g;
}

/* ---- orthogonal polynomials -------------------------------------------------------------------------------------------------- */
typedef enum family { CHEBYSHEV_T, CHEBYSHEV_U, CHEBYSHEV_V, CHEBYSHEV_W, HERMITE_H, HERMITE_HE, LAGUERRE, LEGENDRE } family;

/* cos or sin closed forms of the Chebyshev kinds inside (-1, 1): recurrences of high degree lose digits there. */
static double chebyshev_closed(family f, double x, double n) {
  double a = acos(x);
  switch (f) {
    case CHEBYSHEV_T: return cos(n * a);
    case CHEBYSHEV_U: return sin((n + 1) * a) / sin(a);
    case CHEBYSHEV_V: return cos((n + 0.5) * a) / cos(a / 2);
    default: return sin((n + 0.5) * a) / sin(a / 2);
  }
}

static double next_degree(family f, double x, double k, double q, double p) {
  switch (f) {
    case HERMITE_H: return 2 * x * q - 2 * k * p;
    case HERMITE_HE: return x * q - k * p;
    case LAGUERRE: return ((2 * k + 1 - x) * q - k * p) / (k + 1);
    case LEGENDRE: return ((2 * k + 1) * x * q - k * p) / (k + 1);
    default: return 2 * x * q - p;
  }
}

static double polynomial(family f, double x, double degree) {
  double n = trunc(degree), p = 1, q;
  if (!(n >= 0 && n < 0x1p63)) return 0; /* torch makes an int64 of it: NaN and infinity become negative */
  if (n == 0) return 1;
  if (f <= CHEBYSHEV_W && n > 8 && fabs(x) < 1) return chebyshev_closed(f, x, n);
  if (n > 1e5) return NAN;
  switch (f) {
    case CHEBYSHEV_T:
    case HERMITE_HE:
    case LEGENDRE: q = x; break;
    case CHEBYSHEV_U:
    case HERMITE_H: q = 2 * x; break;
    case CHEBYSHEV_V: q = 2 * x - 1; break;
    case CHEBYSHEV_W: q = 2 * x + 1; break;
    default: q = 1 - x;
  }
  for (double k = 1; k < n; ++k) {
    double r = next_degree(f, x, k, q, p);
    p = q;
    q = r;
  }
  return q;
}

/* params: the family, and whether x means 2x - 1 */
static double polynomial_fn(double x, double n, const double *p) { return polynomial((family)p[0], p[1] != 0 ? 2 * x - 1 : x, n); }

/* ---- operators --------------------------------------------------------------------------------------------------------------- */
static const struct {
  const char *name; /* without "aten." and "special_" */
  ait_nn_fn1 fn;
} unary[] = {
    {"digamma", digamma},
    {"lgamma", log_gamma},
    {"erfinv", erfinv},
    {"erfcx", erfcx},
    {"ndtr", ndtr},
    {"log_ndtr", log_ndtr},
    {"ndtri", ndtri},
    {"entr", entropy},
    {"i0", i0},
    {"i1", i1},
    {"i0e", i0e},
    {"i1e", i1e},
    {"modified_bessel_i0", i0},
    {"modified_bessel_i1", i1},
    {"modified_bessel_k0", k0},
    {"modified_bessel_k1", k1},
    {"scaled_modified_bessel_k0", k0e},
    {"scaled_modified_bessel_k1", k1e},
    {"bessel_j0", bessel_j0},
    {"bessel_j1", bessel_j1},
    {"bessel_y0", bessel_y0},
    {"bessel_y1", bessel_y1},
    {"spherical_bessel_j0", spherical_j0},
    {"airy_ai", airy},
};
static const struct {
  const char *name;
  ait_nn_fn2 fn;
} binary[] = {{"igamma", igamma}, {"igammac", igammac}, {"zeta", zeta}, {"xlog1py", xlog1py}};
static const struct {
  const char *name;
  family family;
  bool shifted;
} polynomials[] = {
    {"chebyshev_polynomial_t", CHEBYSHEV_T, false},
    {"chebyshev_polynomial_u", CHEBYSHEV_U, false},
    {"chebyshev_polynomial_v", CHEBYSHEV_V, false},
    {"chebyshev_polynomial_w", CHEBYSHEV_W, false},
    {"shifted_chebyshev_polynomial_t", CHEBYSHEV_T, true},
    {"shifted_chebyshev_polynomial_u", CHEBYSHEV_U, true},
    {"shifted_chebyshev_polynomial_v", CHEBYSHEV_V, true},
    {"shifted_chebyshev_polynomial_w", CHEBYSHEV_W, true},
    {"hermite_polynomial_h", HERMITE_H, false},
    {"hermite_polynomial_he", HERMITE_HE, false},
    {"laguerre_polynomial_l", LAGUERRE, false},
    {"legendre_polynomial_p", LEGENDRE, false},
};

/* Without namespace, "special_" and overload; one name for each function. */
static void bare_name(const ait_ref_call *call, char out[64]) {
  static const char *const same[][2] = {{"gammainc", "igamma"}, {"gammaincc", "igammac"}, {"gammaln", "lgamma"}, {"psi", "digamma"}};
  const char *name = call->node->op;
  if (ait_starts_with(name, "aten.")) name += 5;
  if (ait_starts_with(name, "special_")) name += 8;
  size_t n = strcspn(name, ".");
  n = n < 63 ? n : 63;
  memcpy(out, name, n);
  out[n] = 0;
  for (size_t i = 0; i < AIT_COUNT(same); ++i)
    if (strcmp(out, same[i][0]) == 0) memcpy(out, same[i][1], strlen(same[i][1]) + 1);
}

ait_status ait_ref_special(ait_ref_call *call) {
  char name[64];
  bare_name(call, name);
  for (size_t i = 0; i < AIT_COUNT(unary); ++i)
    if (strcmp(name, unary[i].name) == 0) return ait_nn_map1(call, 0, unary[i].fn, NULL);
  for (size_t i = 0; i < AIT_COUNT(binary); ++i)
    if (strcmp(name, binary[i].name) == 0) return ait_nn_map2(call, 0, 1, binary[i].fn, NULL);
  for (size_t i = 0; i < AIT_COUNT(polynomials); ++i) {
    double params[2] = {polynomials[i].family, polynomials[i].shifted};
    if (strcmp(name, polynomials[i].name) == 0) return ait_nn_map2(call, 0, 1, polynomial_fn, params);
  }
  return ait_ref_error(call, AIT_CODE_INTERNAL, "no such function");
}

/* polygamma(n, self), special_polygamma */
static ait_status polygamma_of(ait_ref_call *call, uint32_t self, uint32_t order) {
  int64_t n;
  const ait_tensor *t;
  AIT_TRY(ait_ref_int(call, order, &n));
  AIT_TRY(ait_ref_tensor(call, self, &t));
  double p[2] = {(double)n, t->dtype == AIT_F64};
  return ait_nn_map1(call, self, polygamma, p);
}
ait_status ait_ref_polygamma(ait_ref_call *call) { return polygamma_of(call, 1, 0); }
/* Its arguments stand the other way round. */
ait_status ait_ref_polygamma_(ait_ref_call *call) {
  AIT_TRY(polygamma_of(call, 0, 1));
  return ait_ref_write_in_place(call);
}

/* mvlgamma(self, p), special_multigammaln */
ait_status ait_ref_mvlgamma(ait_ref_call *call) {
  int64_t dimension;
  AIT_TRY(ait_ref_int(call, 1, &dimension));
  double p = (double)dimension;
  return ait_nn_map1(call, 0, multi_log_gamma, &p);
}
