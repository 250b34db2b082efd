/* Element-wise operators. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

/* ---- of one operand --------------------------------------------------------------------------------------------------------------*/
static oe_t float_operand(ox *x) { return oe_widen(x, oe_in_as(x, 0, oe_result_dtype(x, 0)), OE_FLOATS); }
static oe_t like(ox *x, oe_t t, double v) { return oe_num(x, t.dtype, v); }
static oe_t add(ox *x, oe_t a, oe_t b) { return oe_same2(x, "Add", a, b); }
static oe_t sub(ox *x, oe_t a, oe_t b) { return oe_same2(x, "Sub", a, b); }
static oe_t mul(ox *x, oe_t a, oe_t b) { return oe_same2(x, "Mul", a, b); }
static oe_t divide(ox *x, oe_t a, oe_t b) { return oe_same2(x, "Div", a, b); }
static oe_t less(ox *x, oe_t a, oe_t b) { return oe_bool2(x, "Less", a, b); }
static oe_t both(ox *x, oe_t a, oe_t b) { return OE(x, "And", AIT_BOOL, a, b); }
static oe_t either(ox *x, oe_t a, oe_t b) { return OE(x, "Or", AIT_BOOL, a, b); }
static oe_t differ(ox *x, oe_t a, oe_t b) { return OE(x, "Xor", AIT_BOOL, a, b); }
static oe_t equal(ox *x, oe_t a, oe_t b) { return oe_bool2(x, "Equal", a, b); }

void oe_row_unary(ox *x) { oe_set(x, 0, oe_same1(x, x->with, float_operand(x))); }

/* Integers are whole already. */
void oe_row_rounding(ox *x) {
  oe_t a = oe_in(x, 0);
  oe_set(x, 0, ait_dtype_is_float(a.dtype) ? oe_same1(x, x->with, float_operand(x)) : a);
}

void oe_row_trunc(ox *x) {
  oe_t a = oe_in(x, 0);
  if (ait_dtype_is_float(a.dtype)) {
    a = float_operand(x);
    a = mul(x, oe_same1(x, "Sign", a), oe_same1(x, "Floor", oe_same1(x, "Abs", a)));
  }
  oe_set(x, 0, a);
}

/* ONNX negates signed numbers only; unsigned ones wrap. */
void oe_row_neg(ox *x) {
  oe_t a = oe_widen(x, oe_in(x, 0), OE_ARITH);
  bool is_unsigned = ait_dtype_kind_of(a.dtype) == AIT_KIND_UINT;
  oe_set(x, 0, is_unsigned ? sub(x, like(x, a, 0), a) : oe_same1(x, "Neg", a));
}

void oe_row_abs(ox *x) {
  oe_t a = oe_widen(x, oe_in_as(x, 0, oe_result_dtype(x, 0)), OE_ARITH);
  oe_set(x, 0, oe_same1(x, "Abs", a));
}

/* NaN has no sign: 0, as torch. */
void oe_row_sign(ox *x) {
  oe_t a = oe_widen(x, oe_in(x, 0), OE_ARITH), zero = like(x, a, 0);
  oe_t positive = oe_cast(x, oe_bool2(x, "Greater", a, zero), AIT_I32), negative = oe_cast(x, less(x, a, zero), AIT_I32);
  oe_set(x, 0, sub(x, positive, negative));
}

void oe_row_rsqrt(ox *x) { oe_set(x, 0, oe_same1(x, "Reciprocal", oe_same1(x, "Sqrt", float_operand(x)))); }

void oe_row_exp2(ox *x) {
  oe_t a = float_operand(x);
  oe_set(x, 0, OE(x, "Pow", a.dtype, like(x, a, 2), a));
}

/* exp(a) - 1, and for small a 2t / (1 - t) with t = tanh(a/2), which keeps the small difference. */
static oe_t expm1_of(ox *x, oe_t a) {
  oe_t t = oe_same1(x, "Tanh", mul(x, a, like(x, a, 0.5)));
  oe_t small = divide(x, add(x, t, t), sub(x, like(x, a, 1), t));
  oe_t large = sub(x, oe_same1(x, "Exp", a), like(x, a, 1));
  return oe_where(x, less(x, oe_same1(x, "Abs", a), like(x, a, 0.5)), small, large);
}
void oe_row_expm1(ox *x) { oe_set(x, 0, expm1_of(x, float_operand(x))); }

/* log(u) a / (u - 1) with u = 1 + a (the HP-15C handbook's): exact where u is 1 or infinite is taken apart. */
void oe_row_log1p(ox *x) {
  oe_t a = float_operand(x), one = like(x, a, 1), u = add(x, one, a);
  oe_t log = oe_same1(x, "Log", u), ratio = divide(x, mul(x, log, a), sub(x, u, one));
  oe_t huge = oe_bool2(x, "Greater", a, like(x, a, 1e6));
  oe_set(x, 0, oe_where(x, equal(x, u, one), a, oe_where(x, huge, log, ratio)));
}

static void logarithm(ox *x, double base) {
  oe_t a = float_operand(x);
  oe_set(x, 0, divide(x, oe_same1(x, "Log", a), like(x, a, base)));
}
void oe_row_log2(ox *x) { logarithm(x, 0.69314718055994530942); }
void oe_row_log10(ox *x) { logarithm(x, 2.30258509299404568402); }

void oe_row_erfc(ox *x) {
  oe_t a = float_operand(x);
  oe_set(x, 0, sub(x, like(x, a, 1), oe_same1(x, "Erf", a)));
}

static oe_t max_of(ox *x, oe_t a, oe_t b) {
  a = oe_widen(x, a, OE_MINMAX);
  return oe_same2(x, "Max", a, b);
}
static oe_t min_of(ox *x, oe_t a, oe_t b) {
  a = oe_widen(x, a, OE_MINMAX);
  return oe_same2(x, "Min", a, b);
}

void oe_row_relu(ox *x) {
  oe_t a = oe_widen(x, oe_in(x, 0), OE_WIDE);
  oe_set(x, 0, oe_same1(x, "Relu", a));
}

void oe_row_silu(ox *x) {
  oe_t a = float_operand(x);
  oe_set(x, 0, mul(x, a, oe_same1(x, "Sigmoid", a)));
}

static oe_t hard_gate(ox *x, oe_t a) {
  return divide(x, min_of(x, max_of(x, add(x, a, like(x, a, 3)), like(x, a, 0)), like(x, a, 6)), like(x, a, 6));
}
void oe_row_hardsigmoid(ox *x) { oe_set(x, 0, hard_gate(x, float_operand(x))); }
void oe_row_hardswish(ox *x) {
  oe_t a = float_operand(x);
  oe_set(x, 0, mul(x, a, hard_gate(x, a)));
}

void oe_row_mish(ox *x) {
  oe_t a = float_operand(x);
  oe_set(x, 0, mul(x, a, oe_same1(x, "Tanh", oe_same1(x, "Softplus", a))));
}

void oe_row_gelu(ox *x) {
  oe_t a = float_operand(x), half = mul(x, a, like(x, a, 0.5)), inner;
  if (!strcmp(oe_arg_string(x, 1), "tanh")) {
    oe_t cube = mul(x, mul(x, a, a), a);
    inner = oe_same1(x, "Tanh", mul(x, add(x, a, mul(x, cube, like(x, a, 0.044715))), like(x, a, 0.79788456080286535588)));
  } else inner = oe_same1(x, "Erf", mul(x, a, like(x, a, 0.70710678118654752440)));
  oe_set(x, 0, mul(x, half, add(x, inner, like(x, a, 1))));
}

void oe_row_softplus(ox *x) {
  oe_t a = float_operand(x), scaled = a, soft;
  double beta = oe_arg_float_or(x, 1, 1), threshold = oe_arg_float_or(x, 2, 20);
  if (beta != 1) scaled = mul(x, a, like(x, a, beta));
  soft = oe_same1(x, "Softplus", scaled);
  if (beta != 1) soft = divide(x, soft, like(x, a, beta));
  oe_set(x, 0, oe_where(x, oe_bool2(x, "Greater", scaled, like(x, a, threshold)), a, soft));
}

/* alpha, scale, input_scale */
void oe_row_elu(ox *x) {
  oe_t a = float_operand(x), scaled = a;
  double alpha = oe_arg_float_or(x, 1, 1), scale = oe_arg_float_or(x, 2, 1), input_scale = oe_arg_float_or(x, 3, 1);
  if (input_scale != 1) scaled = mul(x, a, like(x, a, input_scale));
  oe_t negative = mul(x, expm1_of(x, scaled), like(x, a, alpha * scale)), positive = scale == 1 ? a : mul(x, a, like(x, a, scale));
  oe_set(x, 0, oe_where(x, oe_bool2(x, "Greater", a, like(x, a, 0)), positive, negative));
}

void oe_row_leaky_relu(ox *x) {
  oe_t a = float_operand(x), zero = like(x, a, 0);
  oe_set(x, 0, oe_where(x, oe_bool2(x, "Greater", a, zero), a, mul(x, a, like(x, a, oe_arg_float_or(x, 1, 0.01)))));
}

void oe_row_logical_not(ox *x) { oe_set(x, 0, oe_not(x, oe_cast(x, oe_in(x, 0), AIT_BOOL))); }

void oe_row_bitwise_not(ox *x) {
  oe_t a = oe_in(x, 0);
  oe_set(x, 0, oe_same1(x, a.dtype == AIT_BOOL ? "Not" : "BitwiseNot", a));
}

void oe_row_isnan(ox *x) {
  oe_t a = oe_in(x, 0);
  oe_set(x, 0, oe_isnan(x, ait_dtype_is_float(a.dtype) ? a : oe_cast(x, a, AIT_F32)));
}
void oe_row_isinf(ox *x) {
  oe_t a = oe_in(x, 0);
  oe_set(x, 0, OE(x, "IsInf", AIT_BOOL, a.dtype == AIT_F64 ? a : oe_cast(x, a, AIT_F32)));
}

void oe_row_cast(ox *x) {
  oe_t a = oe_in(x, 0);
  if (oe_onnx_type(oe_result_dtype(x, 0)) == 0) oe_fail(x, "ONNX has no dtype %s", ait_dtype_name(oe_result_dtype(x, 0)));
  oe_set(x, 0, a);
}

void oe_row_clamp(ox *x) {
  ait_dtype d = oe_result_dtype(x, 0);
  oe_t a = oe_in_as(x, 0, d), low = oe_in_as(x, 1, d), high = oe_in_as(x, 2, d);
  if (low.name) a = max_of(x, a, low);
  if (high.name) a = min_of(x, a, high);
  oe_set(x, 0, a);
}

/* ---- of two operands -------------------------------------------------------------------------------------------------------------*/
/* Both in the result's dtype, or a wider one. bool computes as 0 and 1. */
static ait_dtype operands(ox *x, uint32_t set, oe_t *a, oe_t *b) {
  ait_dtype d = oe_result_dtype(x, 0), wide = d == AIT_BOOL ? AIT_I32 : oe_dtype_in(d, set);
  *a = oe_cast(x, oe_in_as(x, 0, d), wide);
  *b = oe_cast(x, oe_in_as(x, 1, d), wide);
  return wide;
}

void oe_row_arith(ox *x) {
  oe_t a, b;
  operands(x, OE_ARITH, &a, &b);
  oe_set(x, 0, oe_same2(x, x->with, a, b));
}

void oe_row_minmax(ox *x) {
  oe_t a, b;
  operands(x, OE_MINMAX, &a, &b);
  oe_set(x, 0, oe_same2(x, x->with, a, b));
}

/* fmod: the sign of a. */
static oe_t c_mod(ox *x, oe_t a, oe_t b) {
  oe_t m = oe_same2(x, "Mod", a, b);
  oe_int(x, "fmod", 1);
  return m;
}

void oe_row_fmod(ox *x) {
  oe_t a, b;
  operands(x, OE_ARITH, &a, &b);
  oe_set(x, 0, c_mod(x, a, b));
}

/* Python's: the sign of b. */
static oe_t signs_clash(ox *x, oe_t m, oe_t b) {
  oe_t zero = like(x, m, 0);
  return both(x, oe_not(x, equal(x, m, zero)), differ(x, less(x, m, zero), less(x, b, zero)));
}

void oe_row_remainder(ox *x) {
  oe_t a, b, m;
  operands(x, OE_ARITH, &a, &b);
  if (ait_dtype_is_float(a.dtype)) {
    m = c_mod(x, a, b);
    m = oe_where(x, signs_clash(x, m, b), add(x, m, b), m);
  } else m = oe_same2(x, "Mod", a, b);
  oe_set(x, 0, m);
}

/* torch's div_floor: from the exact remainder, so that 1 // 0.1 is 9. */
static oe_t floor_divide_floats(ox *x, oe_t a, oe_t b) {
  oe_t m = c_mod(x, a, b), q = divide(x, sub(x, a, m), b);
  q = oe_where(x, signs_clash(x, m, b), sub(x, q, like(x, q, 1)), q);
  q = oe_same1(x, "Round", q); /* it is whole but for rounding */
  return oe_where(x, equal(x, b, like(x, b, 0)), divide(x, a, b), q);
}

void oe_row_floor_divide(ox *x) {
  oe_t a, b;
  operands(x, OE_ARITH, &a, &b);
  if (ait_dtype_is_float(a.dtype)) oe_set(x, 0, floor_divide_floats(x, a, b));
  else oe_set(x, 0, divide(x, sub(x, a, oe_same2(x, "Mod", a, b)), b));
}

void oe_row_trunc_divide(ox *x) {
  oe_t a, b, q;
  operands(x, OE_ARITH, &a, &b);
  q = divide(x, a, b);
  if (ait_dtype_is_float(a.dtype)) q = mul(x, oe_same1(x, "Sign", q), oe_same1(x, "Floor", oe_same1(x, "Abs", q)));
  oe_set(x, 0, q);
}

static oe_t whole_power(ox *x, oe_t base, int64_t exponent) {
  oe_t result = oe_none();
  for (; exponent; exponent >>= 1) {
    if (exponent & 1) result = result.name ? mul(x, result, base) : base;
    if (exponent > 1) base = mul(x, base, base);
  }
  return result;
}

void oe_row_pow(ox *x) {
  oe_t a, b;
  int64_t exponent;
  bool known = oe_int_const(x, oe_arg(x, 1), &exponent);
  if (oe_arg(x, 1)->kind == AIT_ARG_FLOAT && oe_arg(x, 1)->as.f == 2) known = true, exponent = 2;
  ait_dtype d = operands(x, OE_WIDE, &a, &b);
  bool multiply = known && exponent >= 1 && (ait_dtype_is_float(d) ? exponent == 2 : exponent < 1024);
  oe_set(x, 0, multiply ? whole_power(x, a, exponent) : OE(x, "Pow", d, a, b));
}

/* atan(|b|/|a|) moved into the quadrant; signs of zeros count. */
static oe_t negative_sign(ox *x, oe_t a) {
  oe_t zero = like(x, a, 0);
  return either(x, less(x, a, zero), both(x, equal(x, a, zero), less(x, oe_same1(x, "Reciprocal", a), zero)));
}

void oe_row_atan2(ox *x) {
  oe_t y, a;
  operands(x, OE_FLOATS, &y, &a);
  oe_t up = oe_same1(x, "Abs", y), right = oe_same1(x, "Abs", a), zero = like(x, y, 0);
  oe_t angle = oe_same1(x, "Atan", divide(x, up, right));
  oe_t same = equal(x, up, right); /* both zero, both infinite, or 45 degrees */
  angle = oe_where(x, same, oe_where(x, equal(x, up, zero), zero, like(x, y, 0.78539816339744830962)), angle);
  angle = oe_where(x, negative_sign(x, a), sub(x, like(x, y, 3.14159265358979323846), angle), angle);
  oe_set(x, 0, oe_where(x, negative_sign(x, y), oe_same1(x, "Neg", angle), angle));
}

/* ---- comparisons and bits --------------------------------------------------------------------------------------------------------*/
void oe_row_compare(ox *x) {
  bool unequal = !strcmp(x->with, "NotEqual"), equality = unequal || !strcmp(x->with, "Equal");
  ait_dtype d = oe_common_dtype(x, 0, 1), wide = d == AIT_BOOL ? (equality ? AIT_BOOL : AIT_U8) : oe_dtype_in(d, OE_ARITH);
  oe_t a = oe_cast(x, oe_in_as(x, 0, d), wide), b = oe_cast(x, oe_in_as(x, 1, d), wide);
  oe_t r = oe_bool2(x, unequal ? "Equal" : x->with, a, b);
  oe_set(x, 0, unequal ? oe_not(x, r) : r);
}

void oe_row_logical(ox *x) { oe_set(x, 0, OE(x, x->with, AIT_BOOL, oe_in_as(x, 0, AIT_BOOL), oe_in_as(x, 1, AIT_BOOL))); }

void oe_row_bitwise(ox *x) {
  ait_dtype d = oe_result_dtype(x, 0);
  oe_t a = oe_in_as(x, 0, d), b = oe_in_as(x, 1, d);
  oe_set(x, 0, OE(x, d == AIT_BOOL ? x->with + strlen("Bitwise") : x->with, d, a, b)); /* "BitwiseAnd", "And" */
}

/* ONNX shifts unsigned numbers, by less than their width. A negative number keeps its sign: ~(~a >> b). */
static oe_t shift_bits(ox *x, oe_t a, oe_t b, bool left) {
  oe_t r = OE(x, "BitShift", AIT_U64, oe_cast(x, a, AIT_U64), oe_cast(x, b, AIT_U64));
  oe_string(x, "direction", left ? "LEFT" : "RIGHT");
  return oe_cast(x, r, a.dtype);
}

void oe_row_shift(ox *x) {
  ait_dtype d = oe_result_dtype(x, 0);
  bool left = !strcmp(x->with, "left"), is_signed = ait_dtype_kind_of(d) == AIT_KIND_INT;
  int64_t width = (int64_t)ait_dtype_size(d) * 8;
  oe_t a = oe_cast(x, oe_in_as(x, 0, d), d == AIT_U64 ? AIT_U64 : AIT_I64), b = oe_cast(x, oe_in_as(x, 1, d), AIT_I64), r;
  oe_t outside = either(x, less(x, b, oe_i64(x, 0)), oe_bool2(x, "GreaterOrEqual", b, oe_i64(x, left || !is_signed ? width : width - 1)));
  b = oe_where(x, outside, oe_i64(x, left || !is_signed ? 0 : width - 1), b);
  if (left || !is_signed) {
    r = oe_where(x, outside, oe_num(x, a.dtype, 0), shift_bits(x, a, b, left));
  } else {
    oe_t complement = oe_same1(x, "BitwiseNot", shift_bits(x, oe_same1(x, "BitwiseNot", a), b, false));
    r = oe_where(x, less(x, a, oe_i64(x, 0)), complement, shift_bits(x, a, b, false));
  }
  oe_set(x, 0, r);
}

void oe_row_where(ox *x) {
  ait_dtype d = oe_result_dtype(x, 0);
  oe_set(x, 0, oe_where(x, oe_cast(x, oe_in(x, 0), AIT_BOOL), oe_in_as(x, 1, d), oe_in_as(x, 2, d)));
}
