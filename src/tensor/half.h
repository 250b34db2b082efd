/* Conversions of the 16-bit floats, inline for loops over many. Inside the tensor room; elsewhere: ait_f16_to_f32 and its like. */
#ifndef AIT_SRC_TENSOR_HALF_H
#define AIT_SRC_TENSOR_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}
static inline float f32_from_bits(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

/* ---- float16, bfloat16 (IEEE 754 binary16; the upper half of binary32) ---------------------------------------------------------------
 * Written without branches and without subnormal operands, so that compilers vectorise them and a host's flush-to-zero mode does no harm.
 */
static inline float f16_to_f32(uint16_t h) {
  uint32_t magnitude = h & 0x7FFFu, sign = (uint32_t)(h & 0x8000u) << 16;
  uint32_t normal = (magnitude << 13) + (112u << 23);                                                       /* exponent bias 15 to 127 */
  uint32_t subnormal = f32_bits(f32_from_bits((113u << 23) | magnitude << 13) - f32_from_bits(113u << 23)); /* 2^-14 * (1.m - 1) */
  uint32_t special = (magnitude << 13) + (224u << 23);                                                      /* infinities and NaNs */
  uint32_t bits = magnitude < 0x0400u ? subnormal : magnitude < 0x7C00u ? normal : special;
  return f32_from_bits(sign | bits);
}

static inline uint16_t f32_to_f16(float f) {
  uint32_t bits = f32_bits(f), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  uint32_t clamped = magnitude < 0x38800000u ? magnitude : 0;                    /* below 2^-14: subnormal in f16 */
  uint32_t subnormal = f32_bits(f32_from_bits(clamped) + 0.5f) - f32_bits(0.5f); /* the addition rounds at 2^-24 */
  uint32_t normal = (magnitude + 0xFFFu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x477FF000u ? 0x7C00u : result; /* 65520 and above round to infinity */
  result = magnitude > 0x7F800000u ? 0x7E00u : result;
  return (uint16_t)(sign | result);
}

static inline float bf16_to_f32(uint16_t h) { return f32_from_bits((uint32_t)h << 16); }

static inline uint16_t f32_to_bf16(float f) {
  uint32_t bits = f32_bits(f), rounded = (bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16;
  return (uint16_t)((bits & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FC0u : rounded);
}

#endif
