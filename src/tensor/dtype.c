/* Element types: names, sizes, exact conversions of the small floats, single elements of any type, promotion. */
#include "tensor/half.h"
#include "tensor/tensor.h"

#include <math.h>

static const struct {
  const char *name;
  uint8_t size;
  ait_dtype_kind kind;
} dtype_table[] = {
#define AIT_DTYPE(name, number, text, bytes, kind) [number] = {text, bytes, AIT_KIND_##kind},
#include <ait/dtypes.inc>
#undef AIT_DTYPE
};

static bool dtype_known(ait_dtype d) { return (size_t)d < AIT_COUNT(dtype_table) && dtype_table[d].name; }

const char *ait_dtype_name(ait_dtype d) { return dtype_known(d) ? dtype_table[d].name : "?"; }
size_t ait_dtype_size(ait_dtype d) { return dtype_known(d) ? dtype_table[d].size : 0; }
ait_dtype_kind ait_dtype_kind_of(ait_dtype d) { return dtype_known(d) ? dtype_table[d].kind : AIT_KIND_NONE; }

ait_dtype ait_dtype_from_name(const char *name) {
  for (size_t i = 0; i < AIT_COUNT(dtype_table); i++) {
    if (dtype_table[i].name && strcmp(dtype_table[i].name, name) == 0) return (ait_dtype)i;
  }
  return AIT_DTYPE_NONE;
}

/* ---- float16, bfloat16 -----------------------------------------------------------------------------------------------------------*/
float ait_f16_to_f32(uint16_t h) { return f16_to_f32(h); }
uint16_t ait_f32_to_f16(float f) { return f32_to_f16(f); }
float ait_bf16_to_f32(uint16_t h) { return bf16_to_f32(h); }
uint16_t ait_f32_to_bf16(float f) { return f32_to_bf16(f); }

/* The double as a float whose lowest bit is set when digits were cut off: rounding that float once more gives the correctly rounded result
 * (rounding to odd; Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
static float f64_to_f32_odd(double d) {
  float f = (float)d;
  double back = (double)f;
  if (back == d || isnan(d) || isinf(d)) return f;
  uint32_t bits = f32_bits(f);
  if (fabs(back) > fabs(d)) bits--; /* towards zero; an overflow becomes the largest float */
  return f32_from_bits(bits | 1u);
}
uint16_t ait_f64_to_f16(double d) { return ait_f32_to_f16(f64_to_f32_odd(d)); }
uint16_t ait_f64_to_bf16(double d) { return ait_f32_to_bf16(f64_to_f32_odd(d)); }

/* ---- 8-bit floats (OCP 8-bit Floating Point Specification 1.0; the "fnuz" forms: arXiv 2206.02915) ------------------------------------*/
typedef struct f8_format {
  int32_t mantissa_bits, bias;
  bool fnuz;             /* one NaN (0x80), no infinities, no negative zero */
  uint8_t overflow;      /* what torch gives for magnitudes that round beyond the largest */
  uint8_t first_special; /* magnitudes from here on are no numbers (not fnuz) */
} f8_format;

static f8_format f8_format_of(ait_dtype d) {
  switch (d) {
    case AIT_F8E4M3FN: return (f8_format){3, 7, false, 0x7E, 0x7F};
    case AIT_F8E5M2: return (f8_format){2, 15, false, 0x7C, 0x7C};
    case AIT_F8E4M3FNUZ: return (f8_format){3, 8, true, 0x80, 0x80};
    default: return (f8_format){2, 16, true, 0x80, 0x80}; /* F8E5M2FNUZ */
  }
}

static float e8m0_to_f32(uint8_t v) { return v == 0xFF ? f32_from_bits(0x7FC00000u) : f32_from_bits(v ? (uint32_t)v << 23 : 0x00400000u); }

float ait_f8_to_f32(uint8_t v, ait_dtype dtype) {
  if (dtype == AIT_F8E8M0FNU) return e8m0_to_f32(v);
  f8_format f = f8_format_of(dtype);
  uint32_t sign = (uint32_t)(v & 0x80) << 24, magnitude = v & 0x7F;
  if (f.fnuz ? v == 0x80 : magnitude >= f.first_special) {
    bool infinite = dtype == AIT_F8E5M2 && magnitude == 0x7C;
    return f32_from_bits((f.fnuz ? 0 : sign) | (infinite ? 0x7F800000u : 0x7FC00000u));
  }
  int32_t exponent = (int32_t)(magnitude >> f.mantissa_bits);
  uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  if (exponent == 0) { /* mantissa * 2^(1 - bias - mantissa_bits) */
    float scale = f32_from_bits((uint32_t)(127 + 1 - f.bias - f.mantissa_bits) << 23), value = (float)mantissa * scale;
    return f32_from_bits(f32_bits(value) | sign);
  }
  return f32_from_bits(sign | (uint32_t)(exponent - f.bias + 127) << 23 | mantissa << (23 - f.mantissa_bits));
}

/* Only the exponent is kept; the value is rounded to the nearest power of two, ties up unless the float is subnormal. */
static uint8_t f32_to_e8m0(float v) {
  uint32_t bits = f32_bits(v), exponent = bits >> 23 & 0xFF, rest = bits & 0x7FFFFF;
  if (exponent == 0xFF) return 0xFF;
  bool up = rest > 0x400000 || (rest == 0x400000 && exponent > 0);
  return (uint8_t)(exponent + up);
}

uint8_t ait_f32_to_f8(float v, ait_dtype dtype) {
  if (dtype == AIT_F8E8M0FNU) return f32_to_e8m0(v);
  f8_format f = f8_format_of(dtype);
  uint32_t bits = f32_bits(v), sign = bits >> 24 & 0x80, magnitude = bits & 0x7FFFFFFFu;
  uint8_t nan = f.fnuz ? 0x80 : (uint8_t)(0x7F | sign);
  if (magnitude > 0x7F800000u) return nan;
  int32_t shift = 23 - f.mantissa_bits;
  uint32_t rebias = (uint32_t)(127 - f.bias) << 23, smallest = rebias + (1u << 23), result; /* smallest normal */
  if (magnitude < smallest) { /* round at the last subnormal digit by adding a number whose last digit is that one */
    float magic = f32_from_bits((uint32_t)(127 + 1 - f.bias - f.mantissa_bits + 23) << 23);
    result = f32_bits(f32_from_bits(magnitude) + magic) - f32_bits(magic);
  } else {
    result = (magnitude - rebias + (1u << (shift - 1)) - 1 + (magnitude >> shift & 1u)) >> shift;
  }
  uint32_t limit = f.fnuz ? 0x80u : f.first_special;
  if (result >= limit) return (uint8_t)(f.overflow | (f.fnuz ? 0 : sign));
  return (uint8_t)(result == 0 && f.fnuz ? 0 : result | sign);
}

/* ---- one element ---------------------------------------------------------------------------------------------------------------*/
#define LOAD(type, name, p) \
  type name;                \
  memcpy(&name, p, sizeof name)
#define STORE(type, p, value)            \
  do {                                   \
    type stored_ = (type)(value);        \
    memcpy(p, &stored_, sizeof stored_); \
  } while (0)

static double small_float(const void *p, ait_dtype d) {
  if (ait_dtype_size(d) == 1) return (double)ait_f8_to_f32(*(const uint8_t *)p, d);
  LOAD(uint16_t, h, p);
  return (double)(d == AIT_BF16 ? ait_bf16_to_f32(h) : ait_f16_to_f32(h));
}

ait_dtype ait_dtype_component(ait_dtype d) { return d == AIT_C32 ? AIT_F16 : d == AIT_C64 ? AIT_F32 : d == AIT_C128 ? AIT_F64 : d; }

double ait_element_f64(const void *p, ait_dtype dtype) {
  switch (dtype) {
    case AIT_F64:
    case AIT_C128: {
      LOAD(double, v, p);
      return v;
    }
    case AIT_F32:
    case AIT_C64: {
      LOAD(float, v, p);
      return (double)v;
    }
    case AIT_C32: return small_float(p, AIT_F16);
    case AIT_U64: return (double)(uint64_t)ait_element_i64(p, dtype);
    default: return ait_dtype_is_float(dtype) ? small_float(p, dtype) : (double)ait_element_i64(p, dtype);
  }
}

int64_t ait_element_i64(const void *p, ait_dtype dtype) {
  switch (dtype) {
    case AIT_BOOL: return *(const uint8_t *)p != 0;
    case AIT_U8: return *(const uint8_t *)p;
    case AIT_I8: return *(const int8_t *)p;
    case AIT_U16: {
      LOAD(uint16_t, v, p);
      return v;
    }
    case AIT_I16: {
      LOAD(int16_t, v, p);
      return v;
    }
    case AIT_U32: {
      LOAD(uint32_t, v, p);
      return v;
    }
    case AIT_I32: {
      LOAD(int32_t, v, p);
      return v;
    }
    case AIT_U64:
    case AIT_I64: {
      LOAD(int64_t, v, p);
      return v;
    }
    case AIT_DTYPE_NONE: return 0;
    default: return ait_f64_to_i64(ait_element_f64(p, dtype));
  }
}

void ait_element_c128(const void *p, ait_dtype dtype, double out[2]) {
  ait_dtype part = ait_dtype_component(dtype);
  out[0] = ait_element_f64(p, part);
  out[1] = ait_dtype_is_complex(dtype) ? ait_element_f64((const char *)p + ait_dtype_size(part), part) : 0.0;
}

/* Out of range and NaN give the bits that x86 gives, which is what torch shows: its C++ leaves them undefined. */
int64_t ait_f64_to_i64(double v) { return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN; }
static int32_t f64_to_i32(double v) { return v > -0x1p31 - 1 && v < 0x1p31 ? (int32_t)v : INT32_MIN; }
static uint32_t f64_to_u32(double v) { return v >= 0x1p31 ? (uint32_t)f64_to_i32(v - 0x1p31) ^ 0x80000000u : (uint32_t)f64_to_i32(v); }
static uint64_t f64_to_u64(double v) {
  return v >= 0x1p63 ? (uint64_t)ait_f64_to_i64(v - 0x1p63) ^ (uint64_t)1 << 63 : (uint64_t)ait_f64_to_i64(v);
}

void ait_element_set_f64(void *p, ait_dtype dtype, double v) {
  switch (dtype) {
    case AIT_BOOL: *(uint8_t *)p = v != 0; break;
    case AIT_U8:
    case AIT_I8: STORE(uint8_t, p, f64_to_i32(v)); break;
    case AIT_U16:
    case AIT_I16: STORE(uint16_t, p, f64_to_i32(v)); break;
    case AIT_I32: STORE(int32_t, p, f64_to_i32(v)); break;
    case AIT_U32: STORE(uint32_t, p, f64_to_u32(v)); break;
    case AIT_I64: STORE(int64_t, p, ait_f64_to_i64(v)); break;
    case AIT_U64: STORE(uint64_t, p, f64_to_u64(v)); break;
    case AIT_F16: STORE(uint16_t, p, ait_f32_to_f16((float)v)); break;
    case AIT_BF16: STORE(uint16_t, p, ait_f32_to_bf16((float)v)); break;
    case AIT_F32: STORE(float, p, v); break;
    case AIT_F64: STORE(double, p, v); break;
    case AIT_C32:
    case AIT_C64:
    case AIT_C128: ait_element_set_c128(p, dtype, (const double[2]){v, 0.0}); break;
    case AIT_DTYPE_NONE: break;
    default: *(uint8_t *)p = ait_f32_to_f8((float)v, dtype); break;
  }
}

void ait_element_set_i64(void *p, ait_dtype dtype, int64_t v) {
  switch (dtype) {
    case AIT_BOOL: *(uint8_t *)p = v != 0; break;
    case AIT_U8:
    case AIT_I8: STORE(uint8_t, p, v); break;
    case AIT_U16:
    case AIT_I16: STORE(uint16_t, p, v); break;
    case AIT_U32:
    case AIT_I32: STORE(uint32_t, p, v); break;
    case AIT_U64:
    case AIT_I64: STORE(int64_t, p, v); break;
    case AIT_F64:
    case AIT_C128: ait_element_set_f64(p, dtype, (double)v); break;
    default: ait_element_set_f64(p, dtype, (double)(float)v); break; /* as torch: the small floats through float */
  }
}

void ait_element_set_c128(void *p, ait_dtype dtype, const double v[2]) {
  if (dtype == AIT_BOOL) {
    *(uint8_t *)p = v[0] != 0 || v[1] != 0;
    return;
  }
  ait_dtype part = ait_dtype_component(dtype);
  ait_element_set_f64(p, part, v[0]);
  if (part != dtype) ait_element_set_f64((char *)p + ait_dtype_size(part), part, v[1]);
}

/* ---- promotion -----------------------------------------------------------------------------------------------------------------*/
static bool is_f8(ait_dtype d) { return ait_dtype_is_float(d) && ait_dtype_size(d) == 1; }
static bool is_wide_unsigned(ait_dtype d) { return d == AIT_U16 || d == AIT_U32 || d == AIT_U64; }

static ait_dtype promote_complex(ait_dtype a, ait_dtype b) {
  if (is_wide_unsigned(a) || is_wide_unsigned(b)) return AIT_DTYPE_NONE;
  ait_dtype part_a = ait_dtype_component(a), part_b = ait_dtype_component(b), part = AIT_F16;
  if (part_a == AIT_F64 || part_b == AIT_F64) part = AIT_F64;
  else if (part_a == AIT_F32 || part_b == AIT_F32 || part_a == AIT_BF16 || part_b == AIT_BF16) part = AIT_F32;
  return part == AIT_F64 ? AIT_C128 : part == AIT_F32 ? AIT_C64 : AIT_C32;
}

ait_dtype ait_dtype_promote(ait_dtype a, ait_dtype b) {
  if (!dtype_known(a) || !dtype_known(b)) return AIT_DTYPE_NONE;
  if (a == b) return a;
  if (is_f8(a) || is_f8(b)) return AIT_DTYPE_NONE;
  if (ait_dtype_is_complex(a) || ait_dtype_is_complex(b)) return promote_complex(a, b);
  bool float_a = ait_dtype_is_float(a), float_b = ait_dtype_is_float(b);
  if (float_a != float_b) return float_a ? a : b;
  if (float_a && ait_dtype_size(a) == ait_dtype_size(b)) return AIT_F32; /* float16 with bfloat16 */
  if (!float_a && (is_wide_unsigned(a) || is_wide_unsigned(b))) return AIT_DTYPE_NONE;
  if (a == AIT_BOOL || b == AIT_BOOL) return a == AIT_BOOL ? b : a;
  if (ait_dtype_size(a) == ait_dtype_size(b)) return AIT_I16; /* uint8 with int8 */
  return ait_dtype_size(a) > ait_dtype_size(b) ? a : b;
}
