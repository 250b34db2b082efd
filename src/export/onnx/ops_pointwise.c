/* Element-wise operators. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

/* ---- of one operand --------------------------------------------------------------------------------------------------------------*/
static ox_t float_operand(ox *x) { return ox_widen(x, ox_in_as(x, 0, ox_result_dtype(x, 0)), OX_FLOATS); }
static ox_t like(ox *x, ox_t t, double v) { return ox_num(x, t.dtype, v); }
static ox_t add(ox *x, ox_t a, ox_t b) { return ox_same2(x, "Add", a, b); }
static ox_t sub(ox *x, ox_t a, ox_t b) { return ox_same2(x, "Sub", a, b); }
static ox_t mul(ox *x, ox_t a, ox_t b) { return ox_same2(x, "Mul", a, b); }
static ox_t divide(ox *x, ox_t a, ox_t b) { return ox_same2(x, "Div", a, b); }
static ox_t less(ox *x, ox_t a, ox_t b) { return ox_bool2(x, "Less", a, b); }
static ox_t both(ox *x, ox_t a, ox_t b) { return OX(x, "And", AIT_BOOL, a, b); }
static ox_t either(ox *x, ox_t a, ox_t b) { return OX(x, "Or", AIT_BOOL, a, b); }
static ox_t differ(ox *x, ox_t a, ox_t b) { return OX(x, "Xor", AIT_BOOL, a, b); }
static ox_t equal(ox *x, ox_t a, ox_t b) { return ox_bool2(x, "Equal", a, b); }

void ox_row_unary(ox *x) { ox_set(x, 0, ox_same1(x, x->with, float_operand(x))); }

/* Integers are whole already. */
void ox_row_rounding(ox *x) {
  ox_t a = ox_in(x, 0);
  ox_set(x, 0, ait_dtype_is_float(a.dtype) ? ox_same1(x, x->with, float_operand(x)) : a);
}

void ox_row_trunc(ox *x) {
  ox_t a = ox_in(x, 0);
  if (ait_dtype_is_float(a.dtype)) {
    a = float_operand(x);
    a = mul(x, ox_same1(x, "Sign", a), ox_same1(x, "Floor", ox_same1(x, "Abs", a)));
  }
  ox_set(x, 0, a);
}

/* ONNX negates signed numbers only; unsigned ones wrap. */
void ox_row_neg(ox *x) {
  ox_t a = ox_widen(x, ox_in(x, 0), OX_ARITH);
  bool is_unsigned = ait_dtype_kind_of(a.dtype) == AIT_KIND_UINT;
  ox_set(x, 0, is_unsigned ? sub(x, like(x, a, 0), a) : ox_same1(x, "Neg", a));
}

void ox_row_abs(ox *x) {
  ox_t a = ox_widen(x, ox_in_as(x, 0, ox_result_dtype(x, 0)), OX_ARITH);
  ox_set(x, 0, ox_same1(x, "Abs", a));
}

/* NaN has no sign: 0, as torch. */
void ox_row_sign(ox *x) {
  ox_t a = ox_widen(x, ox_in(x, 0), OX_ARITH), zero = like(x, a, 0);
  ox_t positive = ox_cast(x, ox_bool2(x, "Greater", a, zero), AIT_I32), negative = ox_cast(x, less(x, a, zero), AIT_I32);
  ox_set(x, 0, sub(x, positive, negative));
}

void ox_row_rsqrt(ox *x) { ox_set(x, 0, ox_same1(x, "Reciprocal", ox_same1(x, "Sqrt", float_operand(x)))); }

void ox_row_exp2(ox *x) {
  ox_t a = float_operand(x);
  ox_set(x, 0, OX(x, "Pow", a.dtype, like(x, a, 2), a));
}

/* exp(a) - 1, and for small a 2t / (1 - t) with t = tanh(a/2), which keeps the small difference. */
static ox_t expm1_of(ox *x, ox_t a) {
  ox_t t = ox_same1(x, "Tanh", mul(x, a, like(x, a, 0.5)));
  ox_t small = divide(x, add(x, t, t), sub(x, like(x, a, 1), t));
  ox_t large = sub(x, ox_same1(x, "Exp", a), like(x, a, 1));
  return ox_where(x, less(x, ox_same1(x, "Abs", a), like(x, a, 0.5)), small, large);
}
void ox_row_expm1(ox *x) { ox_set(x, 0, expm1_of(x, float_operand(x))); }

/* log(u) a / (u - 1) with u = 1 + a (the HP-15C handbook's): exact where u is 1 or infinite is taken apart. */
void ox_row_log1p(ox *x) {
  ox_t a = float_operand(x), one = like(x, a, 1), u = add(x, one, a);
  ox_t log = ox_same1(x, "Log", u), ratio = divide(x, mul(x, log, a), sub(x, u, one));
  ox_t huge = ox_bool2(x, "Greater", a, like(x, a, 1e6));
  ox_set(x, 0, ox_where(x, equal(x, u, one), a, ox_where(x, huge, log, ratio)));
}

static void logarithm(ox *x, double base) {
  ox_t a = float_operand(x);
  ox_set(x, 0, divide(x, ox_same1(x, "Log", a), like(x, a, base)));
}
void ox_row_log2(ox *x) { logarithm(x, 0.69314718055994530942); }
void ox_row_log10(ox *x) { logarithm(x, 2.30258509299404568402); }

void ox_row_erfc(ox *x) {
  ox_t a = float_operand(x);
  ox_set(x, 0, sub(x, like(x, a, 1), ox_same1(x, "Erf", a)));
}

static ox_t max_of(ox *x, ox_t a, ox_t b) {
  a = ox_widen(x, a, OX_MINMAX);
  return ox_same2(x, "Max", a, b);
}
static ox_t min_of(ox *x, ox_t a, ox_t b) {
  a = ox_widen(x, a, OX_MINMAX);
  return ox_same2(x, "Min", a, b);
}

void ox_row_relu(ox *x) {
  ox_t a = ox_widen(x, ox_in(x, 0), OX_WIDE);
  ox_set(x, 0, ox_same1(x, "Relu", a));
}

void ox_row_silu(ox *x) {
  ox_t a = float_operand(x);
  ox_set(x, 0, mul(x, a, ox_same1(x, "Sigmoid", a)));
}

static ox_t hard_gate(ox *x, ox_t a) {
  return divide(x, min_of(x, max_of(x, add(x, a, like(x, a, 3)), like(x, a, 0)), like(x, a, 6)), like(x, a, 6));
}
void ox_row_hardsigmoid(ox *x) { ox_set(x, 0, hard_gate(x, float_operand(x))); }
void ox_row_hardswish(ox *x) {
  ox_t a = float_operand(x);
  ox_set(x, 0, mul(x, a, hard_gate(x, a)));
}

void ox_row_mish(ox *x) {
  ox_t a = float_operand(x);
  ox_set(x, 0, mul(x, a, ox_same1(x, "Tanh", ox_same1(x, "Softplus", a))));
}

void ox_row_gelu(ox *x) {
  ox_t a = float_operand(x), half = mul(x, a, like(x, a, 0.5)), inner;
  if (!strcmp(ox_arg_string(x, 1), "tanh")) {
    ox_t cube = mul(x, mul(x, a, a), a);
    inner = ox_same1(x, "Tanh", mul(x, add(x, a, mul(x, cube, like(x, a, 0.044715))), like(x, a, 0.79788456080286535588)));
  } else inner = ox_same1(x, "Erf", mul(x, a, like(x, a, 0.70710678118654752440)));
  ox_set(x, 0, mul(x, half, add(x, inner, like(x, a, 1))));
}

void ox_row_softplus(ox *x) {
  ox_t a = float_operand(x), scaled = a, soft;
  double beta = ox_arg_float_or(x, 1, 1), threshold = ox_arg_float_or(x, 2, 20);
  if (beta != 1) scaled = mul(x, a, like(x, a, beta));
  soft = ox_same1(x, "Softplus", scaled);
  if (beta != 1) soft = divide(x, soft, like(x, a, beta));
  ox_set(x, 0, ox_where(x, ox_bool2(x, "Greater", scaled, like(x, a, threshold)), a, soft));
}

/* alpha, scale, input_scale */
void ox_row_elu(ox *x) {
  ox_t a = float_operand(x), scaled = a;
  double alpha = ox_arg_float_or(x, 1, 1), scale = ox_arg_float_or(x, 2, 1), input_scale = ox_arg_float_or(x, 3, 1);
  if (input_scale != 1) scaled = mul(x, a, like(x, a, input_scale));
  ox_t negative = mul(x, expm1_of(x, scaled), like(x, a, alpha * scale)), positive = scale == 1 ? a : mul(x, a, like(x, a, scale));
  ox_set(x, 0, ox_where(x, ox_bool2(x, "Greater", a, like(x, a, 0)), positive, negative));
}

void ox_row_leaky_relu(ox *x) {
  ox_t a = float_operand(x), zero = like(x, a, 0);
  ox_set(x, 0, ox_where(x, ox_bool2(x, "Greater", a, zero), a, mul(x, a, like(x, a, ox_arg_float_or(x, 1, 0.01)))));
}

void ox_row_logical_not(ox *x) { ox_set(x, 0, ox_not(x, ox_cast(x, ox_in(x, 0), AIT_BOOL))); }

void ox_row_bitwise_not(ox *x) {
  ox_t a = ox_in(x, 0);
  ox_set(x, 0, ox_same1(x, a.dtype == AIT_BOOL ? "Not" : "BitwiseNot", a));
}

void ox_row_isnan(ox *x) {
  ox_t a = ox_in(x, 0);
  ox_set(x, 0, ox_isnan(x, ait_dtype_is_float(a.dtype) ? a : ox_cast(x, a, AIT_F32)));
}
void ox_row_isinf(ox *x) {
  ox_t a = ox_in(x, 0);
  ox_set(x, 0, OX(x, "IsInf", AIT_BOOL, a.dtype == AIT_F64 ? a : ox_cast(x, a, AIT_F32)));
}

void ox_row_cast(ox *x) {
  ox_t a = ox_in(x, 0);
  if (ox_onnx_type(ox_result_dtype(x, 0)) == 0) ox_fail(x, "ONNX has no dtype %s", ait_dtype_name(ox_result_dtype(x, 0)));
  ox_set(x, 0, a);
}

void ox_row_clamp(ox *x) {
  ait_dtype d = ox_result_dtype(x, 0);
  ox_t a = ox_in_as(x, 0, d), low = ox_in_as(x, 1, d), high = ox_in_as(x, 2, d);
  if (low.name) a = max_of(x, a, low);
  if (high.name) a = min_of(x, a, high);
  ox_set(x, 0, a);
}

/* ---- of two operands -------------------------------------------------------------------------------------------------------------*/
/* Both in the result's dtype, or a wider one. bool computes as 0 and 1. */
static ait_dtype operands(ox *x, uint32_t set, ox_t *a, ox_t *b) {
  ait_dtype d = ox_result_dtype(x, 0), wide = d == AIT_BOOL ? AIT_I32 : ox_dtype_in(d, set);
  *a = ox_cast(x, ox_in_as(x, 0, d), wide);
  *b = ox_cast(x, ox_in_as(x, 1, d), wide);
  return wide;
}

void ox_row_arith(ox *x) {
  ox_t a, b;
  operands(x, OX_ARITH, &a, &b);
  ox_set(x, 0, ox_same2(x, x->with, a, b));
}

void ox_row_minmax(ox *x) {
  ox_t a, b;
  operands(x, OX_MINMAX, &a, &b);
  ox_set(x, 0, ox_same2(x, x->with, a, b));
}

/* fmod: the sign of a. */
static ox_t c_mod(ox *x, ox_t a, ox_t b) {
  ox_t m = ox_same2(x, "Mod", a, b);
  ox_int(x, "fmod", 1);
  return m;
}

void ox_row_fmod(ox *x) {
  ox_t a, b;
  operands(x, OX_ARITH, &a, &b);
  ox_set(x, 0, c_mod(x, a, b));
}

/* Python's: the sign of b. */
static ox_t signs_clash(ox *x, ox_t m, ox_t b) {
  ox_t zero = like(x, m, 0);
  return both(x, ox_not(x, equal(x, m, zero)), differ(x, less(x, m, zero), less(x, b, zero)));
}

void ox_row_remainder(ox *x) {
  ox_t a, b, m;
  operands(x, OX_ARITH, &a, &b);
  if (ait_dtype_is_float(a.dtype)) {
    m = c_mod(x, a, b);
    m = ox_where(x, signs_clash(x, m, b), add(x, m, b), m);
  } else m = ox_same2(x, "Mod", a, b);
  ox_set(x, 0, m);
}

/* torch's div_floor: from the exact remainder, so that 1 // 0.1 is 9. */
static ox_t floor_divide_floats(ox *x, ox_t a, ox_t b) {
  ox_t m = c_mod(x, a, b), q = divide(x, sub(x, a, m), b);
  q = ox_where(x, signs_clash(x, m, b), sub(x, q, like(x, q, 1)), q);
  q = ox_same1(x, "Round", q); /* it is whole but for rounding */
  return ox_where(x, equal(x, b, like(x, b, 0)), divide(x, a, b), q);
}

void ox_row_floor_divide(ox *x) {
  ox_t a, b;
  operands(x, OX_ARITH, &a, &b);
  if (ait_dtype_is_float(a.dtype)) ox_set(x, 0, floor_divide_floats(x, a, b));
  else ox_set(x, 0, divide(x, sub(x, a, ox_same2(x, "Mod", a, b)), b));
}

void ox_row_trunc_divide(ox *x) {
  ox_t a, b, q;
  operands(x, OX_ARITH, &a, &b);
  q = divide(x, a, b);
  if (ait_dtype_is_float(a.dtype)) q = mul(x, ox_same1(x, "Sign", q), ox_same1(x, "Floor", ox_same1(x, "Abs", q)));
  ox_set(x, 0, q);
}

static ox_t whole_power(ox *x, ox_t base, int64_t exponent) {
  ox_t result = ox_none();
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = result.name ? mul(x, result, base) : base;
    if (exponent > 1) base = mul(x, base, base);
  }
  return result;
}

void ox_row_pow(ox *x) {
  ox_t a, b;
  int64_t exponent;
  bool known = ox_int_const(x, ox_arg(x, 1), &exponent);
  if (ox_arg(x, 1)->kind == AIT_ARG_FLOAT && ox_arg(x, 1)->as.f == 2) known = true, exponent = 2;
  ait_dtype d = operands(x, OX_WIDE, &a, &b);
  bool multiply = known && exponent >= 1 && (ait_dtype_is_float(d) ? exponent == 2 : exponent < 1024);
  ox_set(x, 0, multiply ? whole_power(x, a, exponent) : OX(x, "Pow", d, a, b));
}

/* atan(|b|/|a|) moved into the quadrant; signs of zeros count. */
static ox_t negative_sign(ox *x, ox_t a) {
  ox_t zero = like(x, a, 0);
  return either(x, less(x, a, zero), both(x, equal(x, a, zero), less(x, ox_same1(x, "Reciprocal", a), zero)));
}

void ox_row_atan2(ox *x) {
  ox_t y, a;
  operands(x, OX_FLOATS, &y, &a);
  ox_t up = ox_same1(x, "Abs", y), right = ox_same1(x, "Abs", a), zero = like(x, y, 0);
  ox_t angle = ox_same1(x, "Atan", divide(x, up, right));
  ox_t same = equal(x, up, right); /* both zero, both infinite, or 45 degrees */
  angle = ox_where(x, same, ox_where(x, equal(x, up, zero), zero, like(x, y, 0.78539816339744830962)), angle);
  angle = ox_where(x, negative_sign(x, a), sub(x, like(x, y, 3.14159265358979323846), angle), angle);
  ox_set(x, 0, ox_where(x, negative_sign(x, y), ox_same1(x, "Neg", angle), angle));
}

/* ---- comparisons and bits --------------------------------------------------------------------------------------------------------*/
void ox_row_compare(ox *x) {
  bool unequal = !strcmp(x->with, "NotEqual"), equality = unequal || !strcmp(x->with, "Equal");
  ait_dtype d = ox_common_dtype(x, 0, 1), wide = d == AIT_BOOL ? (equality ? AIT_BOOL : AIT_U8) : ox_dtype_in(d, OX_ARITH);
  ox_t a = ox_cast(x, ox_in_as(x, 0, d), wide), b = ox_cast(x, ox_in_as(x, 1, d), wide);
  ox_t r = ox_bool2(x, unequal ? "Equal" : x->with, a, b);
  ox_set(x, 0, unequal ? ox_not(x, r) : r);
}

void ox_row_logical(ox *x) { ox_set(x, 0, OX(x, x->with, AIT_BOOL, ox_in_as(x, 0, AIT_BOOL), ox_in_as(x, 1, AIT_BOOL))); }

void ox_row_bitwise(ox *x) {
  ait_dtype d = ox_result_dtype(x, 0);
  ox_t a = ox_in_as(x, 0, d), b = ox_in_as(x, 1, d);
  ox_set(x, 0, OX(x, d == AIT_BOOL ? x->with + strlen("Bitwise") : x->with, d, a, b)); /* "BitwiseAnd", "And" */
}

/* ONNX shifts unsigned numbers, by less than their width. A negative number keeps its sign: ~(~a >> b). */
static ox_t shift_bits(ox *x, ox_t a, ox_t b, bool left) {
  ox_t r = OX(x, "BitShift", AIT_U64, ox_cast(x, a, AIT_U64), ox_cast(x, b, AIT_U64));
  ox_string(x, "direction", left ? "LEFT" : "RIGHT");
  return ox_cast(x, r, a.dtype);
}

void ox_row_shift(ox *x) {
  ait_dtype d = ox_result_dtype(x, 0);
  bool left = !strcmp(x->with, "left"), is_signed = ait_dtype_kind_of(d) == AIT_KIND_INT;
  int64_t width = (int64_t)ait_dtype_size(d) * 8;
  ox_t a = ox_cast(x, ox_in_as(x, 0, d), d == AIT_U64 ? AIT_U64 : AIT_I64), b = ox_cast(x, ox_in_as(x, 1, d), AIT_I64), r;
  ox_t outside = either(x, less(x, b, ox_i64(x, 0)), ox_bool2(x, "GreaterOrEqual", b, ox_i64(x, left || !is_signed ? width : width - 1)));
  b = ox_where(x, outside, ox_i64(x, left || !is_signed ? 0 : width - 1), b);
  if (left || !is_signed) {
    r = ox_where(x, outside, ox_num(x, a.dtype, 0), shift_bits(x, a, b, left));
  } else {
    ox_t complement = ox_same1(x, "BitwiseNot", shift_bits(x, ox_same1(x, "BitwiseNot", a), b, false));
    r = ox_where(x, less(x, a, ox_i64(x, 0)), complement, shift_bits(x, a, b, false));
  }
  ox_set(x, 0, r);
}

void ox_row_where(ox *x) {
  ait_dtype d = ox_result_dtype(x, 0);
  ox_set(x, 0, ox_where(x, ox_cast(x, ox_in(x, 0), AIT_BOOL), ox_in_as(x, 1, d), ox_in_as(x, 2, d)));
}
