#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/tile_f32.inc"
#include "kernels/template/gemm_f32.inc"
#include "kernels/template/attention_f32.inc"
#include "kernels/testing.h"

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] = (test_isa){"wide16", {.isa = "wide16", .attention_f32 = ait_k_attention_f32_wide16}};
  return n;
}

typedef struct sizes {
  int64_t batch, heads, kv_heads, q_len, k_len, d, dv;
} sizes;

static double score(const ait_attention_f32 *a, int64_t b, int64_t h, int64_t i, int64_t j) {
  if (a->causal && j > i + a->causal_offset) return -INFINITY;
  const float *q = a->q + b * a->q_stride[0] + h * a->q_stride[1] + i * a->q_stride[2],
              *k = a->k + b * a->k_stride[0] + h / (a->heads / a->kv_heads) * a->k_stride[1] + j * a->k_stride[2];
  double s = 0;
  for (int64_t c = 0; c < a->d; ++c) s += (double)q[c] * (double)k[c];
  s *= (double)a->scale;
  int64_t at = b * a->mask_stride[0] + h * a->mask_stride[1] + i * a->mask_stride[2] + j * a->mask_stride[3];
  if (a->mask_kind == AIT_MASK_FLOAT) return s + (double)((const float *)a->mask)[at];
  if (a->mask_kind == AIT_MASK_BOOL && !((const uint8_t *)a->mask)[at]) return -INFINITY;
  return s;
}

static void check(const test_isa *isa, sizes z) {
  const bool row_major = test_random(2); /* [batch][len][heads][d], as projections leave it, or [batch][heads][len][d] */
  const int64_t qs = z.d + test_random(3), ks = z.d, vs = z.dv + test_random(2), os = z.dv;
  test_buffer q = test_buffer_random(z.batch * z.heads * z.q_len * qs), k = test_buffer_random(z.batch * z.kv_heads * z.k_len * ks),
              v = test_buffer_random(z.batch * z.kv_heads * z.k_len * vs), o = test_buffer_create(z.batch * z.heads * z.q_len * os),
              mask = test_buffer_create(z.batch * z.heads * z.q_len * z.k_len);
  ait_attention_f32 a = {.batch = z.batch,
                         .heads = z.heads,
                         .kv_heads = z.kv_heads,
                         .q_len = z.q_len,
                         .k_len = z.k_len,
                         .d = z.d,
                         .dv = z.dv,
                         .q = q.data,
                         .k = k.data,
                         .v = v.data,
                         .o = o.data,
                         .scale = 1.7f / sqrtf((float)z.d),
                         .causal = test_random(3) == 0,
                         .mask_kind = (ait_mask_kind)test_random(3),
                         .mask = mask.data};
  if (a.causal) a.causal_offset = test_random(2) ? 0 : z.k_len - z.q_len;
  if (row_major) {
    memcpy(a.q_stride, (int64_t[3]){z.q_len * z.heads * qs, qs, z.heads * qs}, sizeof a.q_stride);
    memcpy(a.k_stride, (int64_t[3]){z.k_len * z.kv_heads * ks, ks, z.kv_heads * ks}, sizeof a.k_stride);
    memcpy(a.v_stride, (int64_t[3]){z.k_len * z.kv_heads * vs, vs, z.kv_heads * vs}, sizeof a.v_stride);
    memcpy(a.o_stride, (int64_t[3]){z.q_len * z.heads * os, os, z.heads * os}, sizeof a.o_stride);
  } else {
    memcpy(a.q_stride, (int64_t[3]){z.heads * z.q_len * qs, z.q_len * qs, qs}, sizeof a.q_stride);
    memcpy(a.k_stride, (int64_t[3]){z.kv_heads * z.k_len * ks, z.k_len * ks, ks}, sizeof a.k_stride);
    memcpy(a.v_stride, (int64_t[3]){z.kv_heads * z.k_len * vs, z.k_len * vs, vs}, sizeof a.v_stride);
    memcpy(a.o_stride, (int64_t[3]){z.heads * z.q_len * os, z.q_len * os, os}, sizeof a.o_stride);
  }
  bool by_head = test_random(2), by_row = test_random(4) != 0;
  memcpy(a.mask_stride,
         (int64_t[4]){by_row ? z.q_len * z.k_len * (by_head ? z.heads : 1) : z.k_len, by_head && by_row ? z.q_len * z.k_len : 0,
                      by_row ? z.k_len : 0, 1},
         sizeof a.mask_stride);
  for (int64_t i = 0; i < mask.count; ++i) {
    if (a.mask_kind == AIT_MASK_BOOL) ((uint8_t *)mask.data)[i] = i % z.k_len % 5 != 1 && test_random(3) != 0;
    else mask.data[i] = test_random(4) ? test_float() : -INFINITY;
  }
  if (a.mask_kind != AIT_MASK_NONE && by_row) /* a row that sees nothing */
    for (int64_t j = 0; j < z.k_len; ++j) {
      if (a.mask_kind == AIT_MASK_BOOL) ((uint8_t *)mask.data)[j] = 0;
      else mask.data[j] = -INFINITY;
    }
  void *scratch = test_scratch(ait_attention_f32_scratch(&isa->table, &a));
  int64_t units = ait_attention_f32_units(&a), cut = test_random((uint32_t)units + 1);
  isa->table.attention_f32(&a, cut, units, scratch);
  isa->table.attention_f32(&a, 0, cut, scratch);
  free(scratch);
  double *s = malloc((size_t)z.k_len * sizeof *s);
  for (int64_t r = 0; r < z.batch * z.heads * z.q_len; ++r) {
    int64_t i = r % z.q_len, h = r / z.q_len % z.heads, b = r / z.q_len / z.heads;
    double top = -INFINITY, sum = 0;
    for (int64_t j = 0; j < z.k_len; ++j) top = fmax(top, s[j] = score(&a, b, h, i, j));
    for (int64_t j = 0; j < z.k_len; ++j) sum += s[j] = top == -INFINITY ? 0 : exp(s[j] - top);
    for (int64_t c = 0; c < z.dv; ++c) {
      double want = 0;
      for (int64_t j = 0; j < z.k_len; ++j)
        want += s[j] * (double)v.data[b * a.v_stride[0] + h / (z.heads / z.kv_heads) * a.v_stride[1] + j * a.v_stride[2] + c];
      TEST_NEAR((double)o.data[b * a.o_stride[0] + h * a.o_stride[1] + i * a.o_stride[2] + c], sum == 0 ? 0 : want / sum, 3e-6,
                "%s attention q %d k %d d %d dv %d row %d mask %d causal %d", isa->name, (int)z.q_len, (int)z.k_len, (int)z.d, (int)z.dv,
                (int)i, (int)a.mask_kind, a.causal);
    }
  }
  free(s);
  test_buffer_free(&q), test_buffer_free(&k), test_buffer_free(&v), test_buffer_free(&o), test_buffer_free(&mask);
}

static void small(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int64_t n = 1; n <= 33; ++n)
      for (int r = 0; r < 8; ++r) {
        int64_t kv = 1 + test_random(2);
        check(&isas[t],
              (sizes){1 + test_random(2), kv * (1 + test_random(3)), kv, n, 1 + test_random(40), 1 + test_random(33), 1 + test_random(33)});
      }
}

static void large(void **state) {
  AIT_UNUSED(state);
  static const sizes cases[] = {{1, 2, 1, 130, 300, 64, 64},
                                {1, 1, 1, 1, 400, 64, 64},
                                {1, 1, 1, 260, 130, 33, 70},
                                {1, 2, 2, 128, 128, 64, 64},
                                {1, 1, 1, 5, 129, 400, 16}};
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (size_t i = 0; i < AIT_COUNT(cases); ++i)
      for (int r = 0; r < 4; ++r) check(&isas[t], cases[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(small), cmocka_unit_test(large)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
