/* What every template needs from the thin file that includes it: AIT_ISA (suffix of its functions) and VL (floats in a vector: 4, 8, 16).
 * One source, several instruction sets: the compiler's vector extension does the arithmetic, a few primitives have a better spelling in
 * intrinsics. VL 16 also compiles without AVX-512 (the tests do so, to check its tiling on any machine). */
#ifndef AIT_KERNELS_ISA_H
#define AIT_KERNELS_ISA_H

#include "kernels/kernels.h"
#pragma GCC diagnostic ignored "-Wpsabi" /* wide vectors never cross a call */
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define AIT_PASTE_(a, b) a##_##b
#define AIT_PASTE(a, b) AIT_PASTE_(a, b)
#define AIT_KERNEL_NAME(name) AIT_PASTE(ait_k_##name, AIT_ISA)

#define AIT_KERNEL(name, args, unit, text) void AIT_KERNEL_NAME(name)(const void *args_, int64_t begin, int64_t end, void *scratch);
#include "kernels/kernels.inc"
#undef AIT_KERNEL

/* Before every loop over a register tile: without it gcc may unroll too late and keep the accumulators in memory; clang has its own
 * spelling and ignores the other. Where speed is not asked for (sanitizers, 512-bit code without AVX-512) nothing is unrolled
 * or forced inline: such code would take minutes to compile. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define AIT_SLOW_BUILD
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || (VL == 16 && !defined(__AVX512F__))
#define AIT_SLOW_BUILD
#endif
#define NOINLINE static __attribute__((noinline))
#if defined(AIT_SLOW_BUILD)
#if defined(__clang__)
#define INLINE static __attribute__((unused, noinline))
#else
#define INLINE static __attribute__((unused, noinline, noclone))
#endif
#define UNROLL
#define NO_UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#endif
#if defined(__clang__) && !defined(AIT_SLOW_BUILD)
#define UNROLL _Pragma("clang loop unroll(full)")
#define NO_UNROLL _Pragma("clang loop unroll(disable)")
#elif !defined(AIT_SLOW_BUILD)
#define UNROLL _Pragma("GCC unroll 32")
#define NO_UNROLL _Pragma("GCC unroll 1")
#endif

typedef float vf __attribute__((vector_size(VL * 4), may_alias));
typedef float vfu __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef int32_t vi __attribute__((vector_size(VL * 4), may_alias));
typedef uint32_t vu __attribute__((vector_size(VL * 4), may_alias)); /* bit patterns: wraps, where vi would overflow */

INLINE vf v_load(const float *p) { return *(const vfu *)p; }
INLINE void v_store(float *p, vf v) { *(vfu *)p = v; }
/* Keeps v in a register: else a compiler may load it again for each use. */
INLINE void v_pin(vf *v) {
#if (VL == 8 && defined(__AVX2__)) || (VL == 16 && defined(__AVX512F__))
  __asm__("" : "+v"(*v));
#else
  (void)v;
#endif
}
INLINE vf v_zero(void) { return (vf){0}; }
INLINE vf v_set(float x) { return x - (vf){0}; } /* exact for every x, and folded */
INLINE vi v_seti(int32_t x) { return x - (vi){0}; }
INLINE vu v_setu(uint32_t x) { return x - (vu){0}; }
/* The first n < VL floats; the rest is 0. */
INLINE vf v_load_part(const float *p, int64_t n) {
  vf v = v_zero();
  memcpy(&v, p, (size_t)n * sizeof(float));
  return v;
}
INLINE void v_store_part(float *p, vf v, int64_t n) { memcpy(p, &v, (size_t)n * sizeof(float)); }

INLINE vf v_sel(vi mask, vf yes, vf no) { /* mask lanes are 0 or -1 */
#if VL == 8 && defined(__AVX2__)
  return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#elif VL == 16 && defined(__AVX512DQ__)
  return (vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)mask), (__m512)no, (__m512)yes);
#else
  return (vf)((mask & (vi)yes) | (~mask & (vi)no));
#endif
}
/* The second operand when either is NaN: v_max(bound, x) keeps the NaN of x. */
INLINE vf v_max(vf bound, vf x) {
#if VL == 4 && defined(__SSE2__)
  return (vf)_mm_max_ps((__m128)bound, (__m128)x);
#elif VL == 8 && defined(__AVX2__)
  return (vf)_mm256_max_ps((__m256)bound, (__m256)x);
#elif VL == 16 && defined(__AVX512F__)
  return (vf)_mm512_max_ps((__m512)bound, (__m512)x);
#else
  return v_sel(bound > x, bound, x);
#endif
}
INLINE vf v_min(vf bound, vf x) {
#if VL == 4 && defined(__SSE2__)
  return (vf)_mm_min_ps((__m128)bound, (__m128)x);
#elif VL == 8 && defined(__AVX2__)
  return (vf)_mm256_min_ps((__m256)bound, (__m256)x);
#elif VL == 16 && defined(__AVX512F__)
  return (vf)_mm512_min_ps((__m512)bound, (__m512)x);
#else
  return v_sel(bound < x, bound, x);
#endif
}
INLINE vf v_abs(vf x) { return (vf)((vi)x & v_seti(0x7fffffff)); }
INLINE vf v_sign_bit(vf x) { return (vf)((vi)x & v_seti((int32_t)0x80000000u)); }
INLINE vf v_or(vf a, vf b) { return (vf)((vi)a | (vi)b); }
INLINE vf v_sqrt(vf x) {
#if VL == 4 && defined(__SSE2__)
  return (vf)_mm_sqrt_ps((__m128)x);
#elif VL == 8 && defined(__AVX2__)
  return (vf)_mm256_sqrt_ps((__m256)x);
#elif VL == 16 && defined(__AVX512F__)
  return (vf)_mm512_sqrt_ps((__m512)x);
#else
  for (int i = 0; i < VL; ++i) x[i] = sqrtf(x[i]);
  return x;
#endif
}
INLINE vf v_from_int(vi x) { return __builtin_convertvector(x, vf); }
/* Truncates; |x| < 2^31. */
INLINE vi v_to_int(vf x) { return __builtin_convertvector(x, vi); }
INLINE float v_sum(vf v) {
  float s[VL] __attribute__((aligned(VL * 4)));
  *(vf *)s = v;
  for (int w = VL / 2; w > 0; w /= 2)
    for (int i = 0; i < w; ++i) s[i] += s[i + w];
  return s[0];
}
/* Sums over lanes of four vectors. */
INLINE void v_sum4(vf a, vf b, vf c, vf d, float *out) {
#if VL == 8 && defined(__AVX2__)
  __m256 ab = _mm256_hadd_ps((__m256)a, (__m256)b), cd = _mm256_hadd_ps((__m256)c, (__m256)d), all = _mm256_hadd_ps(ab, cd);
  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
#else
  out[0] = v_sum(a), out[1] = v_sum(b), out[2] = v_sum(c), out[3] = v_sum(d);
#endif
}
INLINE float v_max_lane(vf v) {
  float m = v[0];
  for (int i = 1; i < VL; ++i) m = v[i] > m ? v[i] : m;
  return m;
}

#endif
