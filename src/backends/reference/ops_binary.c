/* Element-wise operators of several operands, tensors or numbers. */
#include "backends/reference/interp.h"
#include "backends/reference/pointwise.h"

#include <math.h>

static ait_status binary(ait_ref_call *call, bool to_bool, const ait_ref_kernels *kernels) {
  return ait_ref_map_args(call, 2, to_bool, kernels, (ait_ref_params){0});
}

#define ANY_DOMAIN(name, real, whole, complex_) \
  AIT_REF_LOOP_F(f_##name, real)                \
  AIT_REF_LOOP_I(i_##name, whole)               \
  AIT_REF_LOOP_C(c_##name, complex_)            \
  static const ait_ref_kernels k_##name = {f_##name, i_##name, c_##name, AIT_REF_F, AIT_REF_I, AIT_REF_C};
#define REAL_AND_WHOLE(name, real, whole) \
  AIT_REF_LOOP_F(f_##name, real)          \
  AIT_REF_LOOP_I(i_##name, whole)         \
  static const ait_ref_kernels k_##name = {.f = f_##name, .i = i_##name, .out_f = AIT_REF_F, .out_i = AIT_REF_I};
#define REAL(name, real)         \
  AIT_REF_LOOP_F(f_##name, real) \
  static const ait_ref_kernels k_##name = {.f = f_##name, .out_f = AIT_REF_F};
#define REAL_AND_COMPLEX(name, real, complex_) \
  AIT_REF_LOOP_F(f_##name, real)               \
  AIT_REF_LOOP_C(c_##name, complex_)           \
  static const ait_ref_kernels k_##name = {.f = f_##name, .c = c_##name, .out_f = AIT_REF_F, .out_c = AIT_REF_C};
#define WHOLE(name, whole)        \
  AIT_REF_LOOP_I(i_##name, whole) \
  static const ait_ref_kernels k_##name = {.i = i_##name, .out_i = AIT_REF_I};
#define PREDICATE(name, real, whole, complex_)              \
  AIT_REF_LOOP(f_##name, double, int64_t, real)             \
  AIT_REF_LOOP(i_##name, int64_t, int64_t, whole)           \
  AIT_REF_LOOP(c_##name, double complex, int64_t, complex_) \
  static const ait_ref_kernels k_##name = {f_##name, i_##name, c_##name, AIT_REF_I, AIT_REF_I, AIT_REF_I};
#define FUNCTION(name) \
  ait_status ait_ref_##name(ait_ref_call *call) { return binary(call, false, &k_##name); }
#define TRUTH(name) \
  ait_status ait_ref_##name(ait_ref_call *call) { return binary(call, true, &k_##name); }

/* Wrapping arithmetic. */
#define ADD(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define SUB(a, b) ((int64_t)((uint64_t)(a) - (uint64_t)(b)))
#define MUL(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))

/* ---- add, sub, mul ------------------------------------------------------------------------------------------------------------------*/
ANY_DOMAIN(add, a + b, ADD(a, b), a + b)
ANY_DOMAIN(add_scaled, a + c * b, ADD(a, MUL(c, b)), a + c * b)
ANY_DOMAIN(sub, a - b, SUB(a, b), a - b)
ANY_DOMAIN(sub_scaled, a - c * b, SUB(a, MUL(c, b)), a - c * b)
ANY_DOMAIN(mul, a *b, MUL(a, b), a *b)
FUNCTION(mul)

/* x OP alpha * y, where the operator has an alpha (argument 2). */
static ait_status with_alpha(ait_ref_call *call, uint32_t first, const ait_ref_kernels *plain, const ait_ref_kernels *scaled) {
  ait_ref_operand operands[3];
  AIT_TRY(ait_ref_operand_at(call, first, &operands[0]));
  AIT_TRY(ait_ref_operand_at(call, 1 - first, &operands[1]));
  operands[2] = ait_ref_operand_number(1);
  if (!ait_ref_is_none(call, 2)) AIT_TRY(ait_ref_operand_at(call, 2, &operands[2]));
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  if (dtype == AIT_DTYPE_NONE) dtype = ait_ref_common_dtype(call, operands, 2);
  bool one = operands[2].scalar.f == 1 && operands[2].scalar.imag == 0;
  return ait_ref_map(call, 0, dtype, dtype, operands, one ? 2 : 3, one ? plain : scaled, (ait_ref_params){0});
}
ait_status ait_ref_add(ait_ref_call *call) { return with_alpha(call, 0, &k_add, &k_add_scaled); }
ait_status ait_ref_sub(ait_ref_call *call) { return with_alpha(call, 0, &k_sub, &k_sub_scaled); }
ait_status ait_ref_rsub(ait_ref_call *call) { return with_alpha(call, 1, &k_sub, &k_sub_scaled); }

/* ---- division ------------------------------------------------------------------------------------------------------------------------
 * Integers: division by zero is an error (checked before the loops run); the smallest int64 by -1 wraps. */
static int64_t int_quotient(int64_t a, int64_t b) { return b == -1 ? SUB(0, a) : b == 0 ? 0 : a / b; }
static int64_t int_fmod(int64_t a, int64_t b) { return b == -1 || b == 0 ? 0 : a % b; }
static int64_t int_floor(int64_t a, int64_t b) {
  int64_t q = int_quotient(a, b);
  return int_fmod(a, b) != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
static int64_t int_remainder(int64_t a, int64_t b) {
  int64_t r = int_fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
/* Python's float floor division (CPython floatobject.c states the rule). */
static double float_floor(double a, double b) {
  if (b == 0) return a / b;
  double mod = fmod(a, b), div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
  if (div == 0) return copysign(0, a / b);
  double floored = floor(div);
  return div - floored > 0.5 ? floored + 1 : floored;
}
static double float_remainder(double a, double b) {
  double mod = fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}
static double float_trunc(double a, double b, ait_dtype dtype) { return trunc(dtype == AIT_F64 ? a / b : (double)((float)a / (float)b)); }

ANY_DOMAIN(div, a / b, int_quotient(a, b), a / b)
REAL_AND_WHOLE(floor_divide, float_floor(a, b), int_floor(a, b))
REAL_AND_WHOLE(trunc_divide, float_trunc(a, b, p->dtype), int_quotient(a, b))
REAL_AND_WHOLE(remainder, float_remainder(a, b), int_remainder(a, b))
REAL_AND_WHOLE(fmod, fmod(a, b), int_fmod(a, b))

static ait_status refuse_zero(const ait_ref_call *call, const ait_ref_operand *divisor) {
  ait_status zero = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "integer division by zero");
  bool found = !divisor->is_tensor && divisor->scalar.i == 0;
  int64_t block[AIT_REF_BLOCK], count = divisor->is_tensor ? ait_tensor_count(&divisor->tensor) : 0;
  for (int64_t at = 0; at < count && !found; at += AIT_REF_BLOCK) {
    int64_t n = count - at < AIT_REF_BLOCK ? count - at : AIT_REF_BLOCK;
    ait_ref_load(&divisor->tensor, at, n, AIT_REF_I, block);
    for (int64_t k = 0; k < n; ++k) found |= block[k] == 0;
  }
  if (found) return zero;
  ait_status_ignore(zero);
  return AIT_OK;
}

static ait_status divide(ait_ref_call *call, const ait_ref_kernels *kernels) {
  ait_dtype declared = ait_ref_result_dtype(call, 0);
  if (declared != AIT_DTYPE_NONE && ait_dtype_is_integer(declared)) {
    ait_ref_operand divisor;
    AIT_TRY(ait_ref_operand_at(call, 1, &divisor));
    AIT_TRY(refuse_zero(call, &divisor));
  }
  return binary(call, false, kernels);
}
ait_status ait_ref_floor_divide(ait_ref_call *call) { return divide(call, &k_floor_divide); }
ait_status ait_ref_trunc_divide(ait_ref_call *call) { return divide(call, &k_trunc_divide); }
ait_status ait_ref_remainder(ait_ref_call *call) { return divide(call, &k_remainder); }
ait_status ait_ref_fmod(ait_ref_call *call) { return divide(call, &k_fmod); }

/* rounding_mode (argument 2) where the operator has one. */
ait_status ait_ref_div(ait_ref_call *call) {
  const char *mode = ait_ref_string(call, 2);
  if (!mode) return divide(call, &k_div);
  if (strcmp(mode, "floor") == 0) return divide(call, &k_floor_divide);
  if (strcmp(mode, "trunc") == 0) return divide(call, &k_trunc_divide);
  return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "unknown rounding mode '%s'", mode);
}

/* ---- powers and other functions of two numbers ---------------------------------------------------------------------------------------*/
static int64_t int_pow(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 ? -1 : 1) : 0;
  uint64_t result = 1, square = (uint64_t)base;
  for (; exponent > 0; exponent >>= 1, square *= square)
    if (exponent & 1) result *= square;
  return (int64_t)result;
}
static double complex c_power(double complex a, double complex b) {
  if (b == 0) return 1;
  return b == 2 ? a * a : cpow(a, b);
}
ANY_DOMAIN(pow, pow(a, b), int_pow(a, b), c_power(a, b))
REAL(pow_half, sqrt(a))
REAL(pow_minus_half, 1 / sqrt(a))
/* torch takes square roots for the exponents that are numbers +-0.5: the sign of -0 and NaN for -inf differ from pow's. */
ait_status ait_ref_pow(ait_ref_call *call) {
  ait_ref_operand exponent;
  AIT_TRY(ait_ref_operand_at(call, 1, &exponent));
  ait_dtype declared = ait_ref_result_dtype(call, 0);
  if (!exponent.is_tensor && ait_dtype_is_float(declared)) {
    if (exponent.scalar.f == 0.5) return binary(call, false, &k_pow_half);
    if (exponent.scalar.f == -0.5) return binary(call, false, &k_pow_minus_half);
  }
  return binary(call, false, &k_pow);
}

/* pow_ with a number: its functional form has another overload's name, so it has a row of its own. */
ait_status ait_ref_pow_(ait_ref_call *call) {
  AIT_TRY(ait_ref_pow(call));
  return ait_ref_write_in_place(call);
}

static int64_t greatest_divisor(int64_t a, int64_t b) {
  uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;
  while (y != 0) {
    uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  return (int64_t)x;
}
static int64_t least_multiple(int64_t a, int64_t b) {
  int64_t divisor = greatest_divisor(a, b), product = divisor == 0 ? 0 : MUL(int_quotient(a, divisor), b);
  return product < 0 ? SUB(0, product) : product;
}
WHOLE(gcd, greatest_divisor(a, b))
WHOLE(lcm, least_multiple(a, b))
FUNCTION(gcd)
FUNCTION(lcm)

static double larger(double a, double b) { return isnan(a) ? a : isnan(b) ? b : a > b ? a : b; }
static double smaller(double a, double b) { return isnan(a) ? a : isnan(b) ? b : a < b ? a : b; }
REAL_AND_WHOLE(maximum, larger(a, b), a > b ? a : b)
REAL_AND_WHOLE(minimum, smaller(a, b), a < b ? a : b)
REAL_AND_WHOLE(fmax, isnan(a) ? b : isnan(b) || a > b ? a : b, a > b ? a : b)
REAL_AND_WHOLE(fmin, isnan(a) ? b : isnan(b) || a < b ? a : b, a < b ? a : b)
FUNCTION(maximum)
FUNCTION(minimum)
FUNCTION(fmax)
FUNCTION(fmin)

static double next_after(double a, double b, ait_dtype dtype) {
  return dtype == AIT_F64 ? nextafter(a, b) : (double)nextafterf((float)a, (float)b);
}
static double log_add_exp(double a, double b) { return a == b && isinf(a) ? a : fmax(a, b) + log1p(exp(-fabs(a - b))); }
double complex ait_ref_log_add_exp(double complex a, double complex b) {
  bool first = creal(a) > creal(b) || isnan(creal(a));
  double complex top = first ? a : b, low = first ? b : a;
  if (isnan(creal(a)) || isnan(creal(b))) return NAN;
  if (creal(low) == -INFINITY) return top;
  return top + clog(1 + cexp(low - top));
}
static double log_add_exp2(double a, double b) { return a == b && isinf(a) ? a : fmax(a, b) + log1p(exp2(-fabs(a - b))) / M_LN2; }
static double x_log_y(double a, double b) { return isnan(b) ? b : a == 0 ? 0 : a * log(b); }
REAL(atan2, atan2(a, b))
REAL(copysign, copysign(a, b))
REAL(hypot, hypot(a, b))
REAL(nextafter, next_after(a, b, p->dtype))
REAL_AND_COMPLEX(logaddexp, isnan(a) || isnan(b) ? NAN : log_add_exp(a, b), ait_ref_log_add_exp(a, b))
REAL(logaddexp2, isnan(a) || isnan(b) ? NAN : log_add_exp2(a, b))
REAL(xlogy, x_log_y(a, b))
ANY_DOMAIN(ldexp, a *exp2(b), MUL(a, int_pow(2, b)), a *cpow(2, b))
ANY_DOMAIN(float_power, pow(a, b), int_pow(a, b), c_power(a, b))
REAL_AND_WHOLE(heaviside, a == 0 ? b : a > 0, a == 0 ? b : a > 0)
FUNCTION(atan2)
FUNCTION(copysign)
FUNCTION(hypot)
FUNCTION(nextafter)
FUNCTION(logaddexp)
FUNCTION(logaddexp2)
FUNCTION(xlogy)
FUNCTION(ldexp)
FUNCTION(float_power)
FUNCTION(heaviside)

/* ---- comparison, logic, bits ----------------------------------------------------------------------------------------------------------*/
PREDICATE(eq, a == b, a == b, a == b)
PREDICATE(ne, a != b, a != b, a != b)
PREDICATE(lt, a < b, a < b, 0)
PREDICATE(le, a <= b, a <= b, 0)
PREDICATE(gt, a > b, a > b, 0)
PREDICATE(ge, a >= b, a >= b, 0)
PREDICATE(logical_and, a != 0 && b != 0, a != 0 && b != 0, a != 0 && b != 0)
PREDICATE(logical_or, a != 0 || b != 0, a != 0 || b != 0, a != 0 || b != 0)
PREDICATE(logical_xor, (a != 0) != (b != 0), (a != 0) != (b != 0), (a != 0) != (b != 0))
TRUTH(eq)
TRUTH(ne)
TRUTH(lt)
TRUTH(le)
TRUTH(gt)
TRUTH(ge)
TRUTH(logical_and)
TRUTH(logical_or)
TRUTH(logical_xor)

WHOLE(bitwise_and, a &b)
WHOLE(bitwise_or, a | b)
WHOLE(bitwise_xor, a ^ b)
FUNCTION(bitwise_and)
FUNCTION(bitwise_or)
FUNCTION(bitwise_xor)

/* A shift by a negative count, or by the width or more, gives what an infinitely wide shift would. */
static int64_t shift_left(int64_t a, int64_t b, ait_dtype dtype) {
  int64_t bits = 8 * (int64_t)ait_dtype_size(dtype);
  return b < 0 || b >= bits ? 0 : (int64_t)((uint64_t)a << b);
}
static int64_t shift_right(int64_t a, int64_t b, ait_dtype dtype) {
  int64_t bits = 8 * (int64_t)ait_dtype_size(dtype);
  return b < 0 || b >= bits ? (a < 0 ? -1 : 0) : a >> b;
}
WHOLE(shift_left, shift_left(a, b, p->dtype))
WHOLE(shift_right, shift_right(a, b, p->dtype))
FUNCTION(shift_left)
FUNCTION(shift_right)

/* ---- choice ------------------------------------------------------------------------------------------------------------------ */
#define CHOICE(name, type)                                                           \
  static void name(int64_t n, void *out, void *const *in, const ait_ref_params *p) { \
    const int64_t *condition = in[0];                                                \
    const type *x = in[1], *y = in[2];                                               \
    type *o = out;                                                                   \
    AIT_UNUSED(p);                                                                   \
    for (int64_t k = 0; k < n; ++k) o[k] = condition[k] ? x[k] : y[k];               \
  }
CHOICE(f_where, double)
CHOICE(i_where, int64_t)
CHOICE(c_where, double complex)
static const ait_ref_kernels k_where = {f_where, i_where, c_where, AIT_REF_F, AIT_REF_I, AIT_REF_C};

static ait_status choose(ait_ref_call *call, uint32_t condition, uint32_t when_true, uint32_t when_false) {
  ait_ref_operand operands[3];
  AIT_TRY(ait_ref_operand_at(call, condition, &operands[0]));
  AIT_TRY(ait_ref_operand_at(call, when_true, &operands[1]));
  AIT_TRY(ait_ref_operand_at(call, when_false, &operands[2]));
  operands[0].condition = true;
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  if (dtype == AIT_DTYPE_NONE) dtype = ait_ref_common_dtype(call, operands, 3);
  return ait_ref_map(call, 0, dtype, dtype, operands, 3, &k_where, (ait_ref_params){0});
}
ait_status ait_ref_where(ait_ref_call *call) { return choose(call, 0, 1, 2); }
ait_status ait_ref_masked_fill(ait_ref_call *call) { return choose(call, 1, 2, 0); }

/* ---- three and more operands ------------------------------------------------------------------------------------------------- */
REAL_AND_WHOLE(clamp, smaller(larger(a, b), c), (a > b ? a : b) < c ? (a > b ? a : b) : c)

/* Bounds are arguments low and high; AIT_NO_INDEX: there is none. */
static ait_status clamp_to(ait_ref_call *call, uint32_t low, uint32_t high) {
  bool has_low = low != AIT_NO_INDEX && !ait_ref_is_none(call, low), has_high = high != AIT_NO_INDEX && !ait_ref_is_none(call, high);
  ait_ref_operand operands[3];
  uint32_t count = 1;
  AIT_TRY(ait_ref_operand_at(call, 0, &operands[0]));
  if (has_low) AIT_TRY(ait_ref_operand_at(call, low, &operands[count++]));
  if (has_high) AIT_TRY(ait_ref_operand_at(call, high, &operands[count++]));
  ait_dtype dtype = ait_ref_result_dtype(call, 0);
  if (dtype == AIT_DTYPE_NONE) dtype = ait_ref_common_dtype(call, operands, count);
  const ait_ref_kernels *kernels = has_low && has_high ? &k_clamp : has_low ? &k_maximum : &k_minimum;
  if (count == 1) operands[count++] = operands[0];
  return ait_ref_map(call, 0, dtype, dtype, operands, count, kernels, (ait_ref_params){0});
}
ait_status ait_ref_clamp(ait_ref_call *call) { return clamp_to(call, 1, 2); }
ait_status ait_ref_clamp_min(ait_ref_call *call) { return clamp_to(call, 1, AIT_NO_INDEX); }
ait_status ait_ref_clamp_max(ait_ref_call *call) { return clamp_to(call, AIT_NO_INDEX, 1); }

/* Argument order of all three: two or three operands, numbers allowed. */
static ait_status ternary(ait_ref_call *call, uint32_t count, const ait_ref_kernels *kernels) {
  return ait_ref_map_args(call, count, false, kernels, (ait_ref_params){0});
}
ANY_DOMAIN(lerp, fabs(c) < 0.5 ? a + c * (b - a) : b - (b - a) * (1 - c), a + c * (b - a),
           cabs(c) < 0.5 ? a + c * (b - a) : b - (b - a) * (1 - c))
ait_status ait_ref_lerp(ait_ref_call *call) { return ternary(call, 3, &k_lerp); }

#define WITH_VALUE(name, type, expression)                                           \
  static void name(int64_t n, void *out, void *const *in, const ait_ref_params *p) { \
    const type *x = in[0], *y = in[1], *z = in[2], *w = in[3];                       \
    type *o = out;                                                                   \
    AIT_UNUSED(p);                                                                   \
    for (int64_t k = 0; k < n; ++k) {                                                \
      const type a = x[k], b = y[k], c = z[k], value = w[k];                         \
      o[k] = (expression);                                                           \
    }                                                                                \
  }
WITH_VALUE(f_addcmul, double, a + value * b * c)
WITH_VALUE(i_addcmul, int64_t, ADD(a, MUL(value, MUL(b, c))))
WITH_VALUE(c_addcmul, double complex, a + value * b * c)
WITH_VALUE(f_addcdiv, double, a + value * (b / c))
WITH_VALUE(c_addcdiv, double complex, a + value * (b / c))
static const ait_ref_kernels k_addcmul = {f_addcmul, i_addcmul, c_addcmul, AIT_REF_F, AIT_REF_I, AIT_REF_C};
static const ait_ref_kernels k_addcdiv = {.f = f_addcdiv, .c = c_addcdiv, .out_f = AIT_REF_F, .out_c = AIT_REF_C};
ait_status ait_ref_addcmul(ait_ref_call *call) { return ternary(call, 4, &k_addcmul); }
ait_status ait_ref_addcdiv(ait_ref_call *call) { return ternary(call, 4, &k_addcdiv); }

static bool close_to(double a, double b, const ait_ref_params *p) {
  if (a == b || (p->i[0] && isnan(a) && isnan(b))) return true;
  double difference = fabs(a - b);
  return isfinite(difference) && difference <= p->f[1] + fabs(p->f[0] * b);
}
static bool c_close_to(double complex a, double complex b, const ait_ref_params *p) {
  double difference = cabs(a - b);
  return a == b || (isfinite(difference) && difference <= p->f[1] + cabs(p->f[0] * b));
}
PREDICATE(isclose, close_to(a, b, p), close_to((double)a, (double)b, p), c_close_to(a, b, p))
ait_status ait_ref_isclose(ait_ref_call *call) {
  ait_ref_params params = {0};
  bool equal_nan;
  AIT_TRY(ait_ref_float_or(call, 2, 1e-5, &params.f[0]));
  AIT_TRY(ait_ref_float_or(call, 3, 1e-8, &params.f[1]));
  AIT_TRY(ait_ref_bool_or(call, 4, false, &equal_nan));
  params.i[0] = equal_nan;
  return ait_ref_map_args(call, 2, true, &k_isclose, params);
}

/* ---- complex numbers from parts ---------------------------------------------------------------------------------------------- */
AIT_REF_LOOP_C(c_complex, __builtin_complex(creal(a), creal(b)))
AIT_REF_LOOP_C(c_polar, __builtin_complex(creal(a) * cos(creal(b)), creal(a) * sin(creal(b))))
static const ait_ref_kernels k_complex = {.c = c_complex, .out_c = AIT_REF_C}, k_polar = {.c = c_polar, .out_c = AIT_REF_C};

static ait_status make_complex(ait_ref_call *call, const ait_ref_kernels *kernels) {
  ait_ref_operand operands[2];
  AIT_TRY(ait_ref_operand_at(call, 0, &operands[0]));
  AIT_TRY(ait_ref_operand_at(call, 1, &operands[1]));
  ait_dtype part = operands[0].is_tensor ? operands[0].tensor.dtype : AIT_F32;
  ait_dtype dtype = part == AIT_F64 ? AIT_C128 : part == AIT_F16 ? AIT_C32 : AIT_C64;
  return ait_ref_map(call, 0, dtype, dtype, operands, 2, kernels, (ait_ref_params){0});
}
ait_status ait_ref_complex(ait_ref_call *call) { return make_complex(call, &k_complex); }
ait_status ait_ref_polar(ait_ref_call *call) { return make_complex(call, &k_polar); }
