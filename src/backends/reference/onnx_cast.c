/* ONNX: casts to 8-bit floats and narrower types, whose rules are its own; dropout. */
#include "backends/reference/onnx.h"

/* TensorProto.DataType */
enum { E4M3FN = 17, E4M3FNUZ, E5M2, E5M2FNUZ, UINT4, INT4, E2M1, E8M0, UINT2, INT2 };

static double largest_of(int64_t type) {
  switch (type) {
    case E4M3FN: return 448;
    case E4M3FNUZ: return 240;
    case E2M1: return 6;
    default: return 57344; /* both e5m2 */
  }
}

/* https://onnx.ai/onnx/operators/onnx__Cast.html: saturating, or to infinity (e5m2) and NaN (the others). */
static double to_float8(double v, int64_t type, ait_dtype dtype, bool saturate) {
  double largest = largest_of(type);
  if (isnan(v)) return NAN;
  if (saturate && fabs(v) > largest) return copysign(largest, v);
  if (!saturate && type == E4M3FN && fabs(v) > 464) return NAN; /* what rounds to 480 or more */
  return (double)ait_f8_to_f32(ait_f32_to_f8((float)v, dtype), dtype);
}

/* 0, 0.5, 1, 1.5, 2, 3, 4, 6: the nearest one, ties to the even mantissa */
static double to_e2m1(double v) {
  double a = fabs(v);
  if (isnan(v)) return 6;
  double step = a < 2 ? 0.5 : a < 4 ? 1 : 2;
  a = nearbyint(a / step) * step;
  return copysign(a > 6 ? 6 : a, v);
}

/* A power of two; "up", "down" or "nearest" where v is none. */
static double to_e8m0(double v, const char *mode) {
  int exponent;
  if (isnan(v) || isinf(v) || v < 0) return NAN;
  if (v == 0) return ldexp(1, -127);
  double m = frexp(v, &exponent); /* [0.5, 1) */
  if (m != 0.5) {
    bool up = strcmp(mode, "up") == 0 || (strcmp(mode, "nearest") == 0 && m >= 0.75);
    if (!up) --exponent;
  } else {
    --exponent;
  }
  if (exponent > 127) exponent = 127;
  if (exponent < -127) exponent = -127;
  return ldexp(1, exponent);
}

static int64_t to_bits(int64_t v, int bits, bool is_signed) {
  int64_t mask = ((int64_t)1 << bits) - 1, low = v & mask;
  return is_signed && low >> (bits - 1) ? low - mask - 1 : low;
}

/* (x, to, saturate, round_mode) */
ait_status ait_ref_onnx_cast(ait_ref_call *call) {
  const ait_tensor *x;
  int64_t to, index[AIT_MAX_RANK] = {0};
  bool saturate;
  const char *mode = ait_ref_string(call, 3);
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_int(call, 1, &to));
  AIT_TRY(ait_ref_bool(call, 2, &saturate));
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, x->rank, x->shape, &out));
  ait_dtype narrow = ait_nn_declared_dtype(call, 0, x->dtype);
  if (ait_tensor_count(&out) == 0) return AIT_OK;
  int64_t i = 0;
  do {
    const void *p = ait_ref_at(x, index);
    void *q = ait_onnx_at(&out, i++);
    bool integer = to == UINT4 || to == INT4 || to == UINT2 || to == INT2;
    if (integer) {
      int64_t v = ait_dtype_is_integer(x->dtype) ? ait_element_i64(p, x->dtype) : ait_f64_to_i64(ait_element_f64(p, x->dtype));
      ait_element_set_i64(q, out.dtype, to_bits(v, to == UINT4 || to == INT4 ? 4 : 2, to == INT4 || to == INT2));
      continue;
    }
    double v = ait_element_f64(p, x->dtype);
    ait_element_set_f64(q, out.dtype,
                        to == E2M1   ? to_e2m1(v)
                        : to == E8M0 ? to_e8m0(v, mode ? mode : "up")
                                     : to_float8(v, to, narrow, saturate));
  } while (ait_ref_next(x->rank, x->shape, index));
  return AIT_OK;
}

/* (x, ratio, training_mode) -> y, mask */
ait_status ait_ref_onnx_dropout(ait_ref_call *call) {
  const ait_tensor *x;
  double ratio, training;
  ait_tensor y, mask = {0};
  int64_t index[AIT_MAX_RANK] = {0};
  ait_nn_random random;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_onnx_number(call, 1, &ratio));
  AIT_TRY(ait_onnx_number(call, 2, &training));
  if (!(ratio >= 0 && ratio < 1) && training != 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "ratio is %g", ratio);
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, x->rank, x->shape, &y));
  AIT_TRY(ait_ref_new(call, 1, ait_nn_declared_dtype(call, 1, AIT_BOOL), x->rank, x->shape, &mask));
  ait_nn_random_init(call, &random);
  if (ait_tensor_count(&y) == 0) return AIT_OK;
  int64_t i = 0;
  do {
    bool kept = training == 0 || ait_nn_random_uniform(&random) >= ratio;
    double v = ait_element_f64(ait_ref_at(x, index), x->dtype);
    ait_element_set_f64(ait_onnx_at(&y, i), y.dtype, training == 0 ? v : kept ? v / (1 - ratio) : 0);
    ait_element_set_i64(ait_onnx_at(&mask, i), mask.dtype, kept);
    ++i;
  } while (ait_ref_next(x->rank, x->shape, index));
  return AIT_OK;
}
