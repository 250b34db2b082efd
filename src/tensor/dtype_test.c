/* Conversions, against values computed from the definition of each format in double precision. */
#include "tensor/tensor.h"

#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

/* The value of a small float by definition: sign, exponent, mantissa. NaN where it is one. */
typedef struct format {
  ait_dtype dtype;
  int exponent_bits, mantissa_bits, bias;
  bool infinities, fnuz;
} format;

static const format formats[] = {
    {AIT_F16, 5, 10, 15, true, false},   {AIT_BF16, 8, 7, 127, true, false},     {AIT_F8E4M3FN, 4, 3, 7, false, false},
    {AIT_F8E5M2, 5, 2, 15, true, false}, {AIT_F8E4M3FNUZ, 4, 3, 8, false, true}, {AIT_F8E5M2FNUZ, 5, 2, 16, false, true},
};

static int format_bits(const format *f) { return 1 + f->exponent_bits + f->mantissa_bits; }

static double by_definition(const format *f, uint32_t code) {
  uint32_t sign = code >> (format_bits(f) - 1), top = (1u << f->exponent_bits) - 1;
  uint32_t exponent = code >> f->mantissa_bits & top, mantissa = code & ((1u << f->mantissa_bits) - 1);
  if (f->fnuz && sign && !exponent && !mantissa) return NAN;
  if (f->infinities && exponent == top) return mantissa ? NAN : sign ? -INFINITY : INFINITY;
  if (!f->infinities && !f->fnuz && exponent == top && mantissa == (1u << f->mantissa_bits) - 1) return NAN;
  double value =
      exponent ? ldexp(1.0 + ldexp(mantissa, -f->mantissa_bits), (int)exponent - f->bias) : ldexp(mantissa, 1 - f->bias - f->mantissa_bits);
  return sign ? -value : value;
}

static bool same_value(double a, double b) { return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)); }

static uint32_t encode(const format *f, float v) {
  uint16_t code = 0;
  ait_element_set_f64(&code, f->dtype, (double)v);
  return code;
}

static void all_codes_decode(void **state) {
  AIT_UNUSED(state);
  for (size_t k = 0; k < AIT_COUNT(formats); k++) {
    const format *f = &formats[k];
    for (uint32_t code = 0; code < 1u << format_bits(f); code++) {
      uint16_t stored = (uint16_t)code;
      assert_true(same_value(ait_element_f64(&stored, f->dtype), by_definition(f, code)));
    }
  }
}

static void all_codes_survive_a_round_trip(void **state) {
  AIT_UNUSED(state);
  for (size_t k = 0; k < AIT_COUNT(formats); k++) {
    const format *f = &formats[k];
    for (uint32_t code = 0; code < 1u << format_bits(f); code++) {
      double v = by_definition(f, code);
      uint32_t back = encode(f, (float)v);
      if (isnan(v)) assert_true(isnan(by_definition(f, back)));
      else assert_int_equal(back, code);
    }
  }
}

/* Between two neighbours: below the middle down, above it up, the middle itself to the even one. */
static void all_middles_round_to_even(void **state) {
  AIT_UNUSED(state);
  for (size_t k = 0; k < AIT_COUNT(formats); k++) {
    const format *f = &formats[k];
    uint32_t half = 1u << (format_bits(f) - 1);
    for (uint32_t code = 0; code + 1 < half; code++) {
      double low = by_definition(f, code), high = by_definition(f, code + 1);
      if (!isfinite(low) || !isfinite(high)) continue;
      float middle = (float)((low + high) / 2);
      assert_true((double)middle == (low + high) / 2);
      assert_int_equal(encode(f, middle), code & 1 ? code + 1 : code);
      assert_int_equal(encode(f, nextafterf(middle, 0)), code);
      assert_int_equal(encode(f, nextafterf(middle, INFINITY)), code + 1);
      if (f->fnuz && code == 0) continue; /* no negative zero */
      assert_int_equal(encode(f, -middle), half | (code & 1 ? code + 1 : code));
    }
  }
}

static void overflow_is_torchs(void **state) {
  AIT_UNUSED(state);
  assert_int_equal(ait_f32_to_f16(65519.99f), 0x7BFF);
  assert_int_equal(ait_f32_to_f16(65520.f), 0x7C00);
  assert_int_equal(ait_f32_to_f16(-3e38f), 0xFC00);
  assert_int_equal(ait_f32_to_bf16(3.4028235e38f), 0x7F80);
  assert_int_equal(ait_f32_to_f8(1e9f, AIT_F8E4M3FN), 0x7E);
  assert_int_equal(ait_f32_to_f8(-INFINITY, AIT_F8E4M3FN), 0xFE);
  assert_int_equal(ait_f32_to_f8(1e9f, AIT_F8E5M2), 0x7C);
  assert_int_equal(ait_f32_to_f8(1e9f, AIT_F8E4M3FNUZ), 0x80);
  assert_int_equal(ait_f32_to_f8(-1e-9f, AIT_F8E5M2FNUZ), 0);
}

static void e8m0_is_an_exponent(void **state) {
  AIT_UNUSED(state);
  for (uint32_t code = 0; code < 255; code++) {
    float v = ait_f8_to_f32((uint8_t)code, AIT_F8E8M0FNU);
    assert_true((double)v == ldexp(1, (int)code - 127));
    assert_int_equal(ait_f32_to_f8(v, AIT_F8E8M0FNU), code);
  }
  assert_true(isnan(ait_f8_to_f32(255, AIT_F8E8M0FNU)));
  assert_int_equal(ait_f32_to_f8(1.5f, AIT_F8E8M0FNU), 128); /* ties up */
  assert_int_equal(ait_f32_to_f8(1.49f, AIT_F8E8M0FNU), 127);
  assert_int_equal(ait_f32_to_f8(NAN, AIT_F8E8M0FNU), 255);
}

/* A double just above a middle of f16, so close that float rounding lands on it. */
static void doubles_round_once(void **state) {
  AIT_UNUSED(state);
  double middle = 1.0 + ldexp(1, -11), above = middle + ldexp(1, -40);
  assert_int_equal(ait_f32_to_f16((float)above), 0x3C00); /* twice rounded */
  assert_int_equal(ait_f64_to_f16(above), 0x3C01);
  assert_int_equal(ait_f64_to_f16(middle), 0x3C00);
  assert_int_equal(ait_f64_to_f16(-above), 0xBC01);
  assert_int_equal(ait_f64_to_bf16(1.0 + ldexp(1, -8) + ldexp(1, -45)), 0x3F81);
  assert_int_equal(ait_f64_to_f16(1e300), 0x7C00);
  assert_true(isnan(ait_f16_to_f32(ait_f64_to_f16(NAN))));
  for (uint32_t code = 0; code < 0x7C00; code++) assert_int_equal(ait_f64_to_f16(by_definition(&formats[0], code)), code);
}

static int64_t to_int(ait_dtype dtype, double v) {
  int64_t bits = 0;
  ait_element_set_f64(&bits, dtype, v);
  return ait_element_i64(&bits, dtype);
}

/* Values taken from torch 2.13 on x86. */
static void floats_become_integers(void **state) {
  AIT_UNUSED(state);
  assert_int_equal(to_int(AIT_I32, -1.9), -1);
  assert_int_equal(to_int(AIT_I32, 3e9), INT32_MIN);
  assert_int_equal(to_int(AIT_I8, 300), 44);
  assert_int_equal(to_int(AIT_U8, -300), 212);
  assert_int_equal(to_int(AIT_I16, 70000), 4464);
  assert_int_equal(to_int(AIT_U32, 3e9), 3000000000);
  assert_int_equal(to_int(AIT_U32, -1.5), 4294967295);
  assert_int_equal(to_int(AIT_I64, 1e19), INT64_MIN);
  assert_int_equal((uint64_t)to_int(AIT_U64, 1e19), UINT64_C(10000000000000000000));
  assert_int_equal(to_int(AIT_I64, NAN), INT64_MIN);
  assert_int_equal(to_int(AIT_BOOL, NAN), 1);
  assert_int_equal(to_int(AIT_BOOL, 0.25), 1);
  assert_int_equal(to_int(AIT_BOOL, -0.0), 0);
}

static void integers_wrap(void **state) {
  AIT_UNUSED(state);
  uint8_t u8;
  ait_element_set_i64(&u8, AIT_U8, 300);
  assert_int_equal(u8, 44);
  float f;
  ait_element_set_i64(&f, AIT_F32, 16777217);
  assert_true(f == 16777216.f);
  uint64_t big = UINT64_MAX;
  assert_true(ait_element_f64(&big, AIT_U64) == 0x1p64);
}

static void complex_parts(void **state) {
  AIT_UNUSED(state);
  double v[2], stored[2];
  ait_element_set_c128(stored, AIT_C64, (const double[2]){1.5, -2});
  ait_element_c128(stored, AIT_C64, v);
  assert_true(v[0] == 1.5 && v[1] == -2);
  assert_true(ait_element_f64(stored, AIT_C64) == 1.5);
  uint8_t truth;
  ait_element_set_c128(&truth, AIT_BOOL, (const double[2]){0, 1});
  assert_int_equal(truth, 1);
}

static void names_and_promotion(void **state) {
  AIT_UNUSED(state);
  for (int d = -1; d < 30; d++) {
    ait_dtype dtype = (ait_dtype)d;
    if (ait_dtype_size(dtype)) assert_int_equal(ait_dtype_from_name(ait_dtype_name(dtype)), dtype);
    else assert_string_equal(ait_dtype_name(dtype), "?");
  }
  assert_int_equal(ait_dtype_from_name("float"), AIT_DTYPE_NONE);
  static const struct {
    ait_dtype a, b, result;
  } cases[] = {
      {AIT_U8, AIT_I8, AIT_I16},
      {AIT_U8, AIT_I32, AIT_I32},
      {AIT_BOOL, AIT_U8, AIT_U8},
      {AIT_I64, AIT_F16, AIT_F16},
      {AIT_F16, AIT_BF16, AIT_F32},
      {AIT_BF16, AIT_F64, AIT_F64},
      {AIT_C32, AIT_F32, AIT_C64},
      {AIT_C64, AIT_F64, AIT_C128},
      {AIT_I64, AIT_C32, AIT_C32},
      {AIT_BF16, AIT_C32, AIT_C64},
      {AIT_U16, AIT_I16, AIT_DTYPE_NONE},
      {AIT_U16, AIT_F16, AIT_F16},
      {AIT_F8E5M2, AIT_F32, AIT_DTYPE_NONE},
      {AIT_F8E5M2, AIT_F8E5M2, AIT_F8E5M2},
      {AIT_U32, AIT_C64, AIT_DTYPE_NONE},
  };
  for (size_t i = 0; i < AIT_COUNT(cases); i++) {
    assert_int_equal(ait_dtype_promote(cases[i].a, cases[i].b), cases[i].result);
    assert_int_equal(ait_dtype_promote(cases[i].b, cases[i].a), cases[i].result);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_codes_decode),
      cmocka_unit_test(all_codes_survive_a_round_trip),
      cmocka_unit_test(all_middles_round_to_even),
      cmocka_unit_test(overflow_is_torchs),
      cmocka_unit_test(e8m0_is_an_exponent),
      cmocka_unit_test(doubles_round_once),
      cmocka_unit_test(floats_become_integers),
      cmocka_unit_test(integers_wrap),
      cmocka_unit_test(complex_parts),
      cmocka_unit_test(names_and_promotion),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
