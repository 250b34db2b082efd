/* Rows that choose a matrix, against plain double arithmetic, on every instruction set. */
#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/tile_f32.inc"
#include "kernels/template/gemm_f32.inc"
#include "kernels/template/rows.inc"
#include "kernels/template/gemm_weight_f32.inc"
#include "kernels/template/expert_gemm.inc"
#include "kernels/template/expert_f32.inc"
#include "kernels/testing.h"
#include "tensor/tensor.h"

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] =
      (test_isa){"wide16", {.isa = "wide16", .expert_f32 = ait_k_expert_f32_wide16, .expert_gemm_f32 = ait_k_expert_gemm_f32_wide16}};
  return n;
}

static double weight_at(const ait_expert_f32 *p, int64_t i) {
  return p->bf16 ? (double)ait_bf16_to_f32(((const uint16_t *)p->weight)[i]) : (double)((const float *)p->weight)[i];
}

static void check(const test_isa *isa, bool bf16, int64_t rows, int64_t n, int64_t k) {
  int64_t count = 1 + test_random(4), stride = k + test_random(3), experts[32];
  test_buffer x = test_buffer_random(rows * stride), w = test_buffer_random(count * n * k), y = test_buffer_create(rows * n);
  for (int64_t i = 0; bf16 && i < count * n * k; ++i) ((uint16_t *)(void *)w.data)[i] = ait_f32_to_bf16(test_float());
  for (int64_t r = 0; r < rows; ++r) experts[r] = test_random((uint32_t)count);
  ait_expert_f32 p = {.rows = rows,
                      .n = n,
                      .k = k,
                      .count = count,
                      .x = x.data,
                      .x_stride = stride,
                      .weight = w.data,
                      .bf16 = bf16,
                      .experts = experts,
                      .index_size = 8,
                      .y = y.data};
  int64_t units = ait_expert_f32_units(&p), cut = test_random((uint32_t)units + 1);
  isa->table.expert_f32(&p, cut, units, NULL);
  isa->table.expert_f32(&p, 0, cut, NULL);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < n; ++c) {
      double want = 0;
      for (int64_t i = 0; i < k; ++i) want += (double)x.data[r * stride + i] * weight_at(&p, (experts[r] * n + c) * k + i);
      TEST_NEAR((double)y.data[r * n + c], want, 2e-5, "%s rows %d n %d k %d", isa->name, (int)rows, (int)n, (int)k);
    }
  /* alone as in company */
  float alone[64];
  ait_expert_f32 one = p;
  one.rows = 1, one.y = alone;
  isa->table.expert_f32(&one, 0, ait_expert_f32_units(&one), NULL);
  assert_memory_equal(alone, y.data, (size_t)n * sizeof *alone);
  test_buffer_free(&x), test_buffer_free(&w), test_buffer_free(&y);
}

/* ---- packed matrices
 * -------------------------------------------------------------------------------------------------------------------*/
typedef struct packed_case {
  ait_expert_gemm_f32 p;
  int64_t rows, experts[48];
  int32_t order[48], place[48], begin[8];
  test_buffer x, sorted, y;
  double *weight; /* [count][n][k], as the kernel sees them */
  void *packed;
  uint16_t *scales;
} packed_case;

static uint16_t small_scale(void) { return ait_f32_to_bf16(0.01f + 0.01f * fabsf(test_float())); }

/* Plain forms of one matrix into raw and scales; what they mean into w. */
static void make_matrix(const ait_expert_gemm_f32 *p, uint8_t *raw, uint16_t *scales, double *w) {
  int64_t half = (p->k + 1) / 2, groups = p->group ? (p->k + p->group - 1) / p->group : 0;
  for (int64_t i = 0; i < p->n * groups; ++i) scales[i] = small_scale();
  for (int64_t n = 0; n < p->n; ++n)
    for (int64_t i = 0; i < p->k; ++i) {
      double scale = groups ? (double)ait_bf16_to_f32(scales[n * groups + i / p->group]) : 1;
      float x = test_float();
      int q = (int)(x * 7);
      if (!p->few_bits) ((float *)(void *)raw)[n * p->k + i] = x, w[n * p->k + i] = (double)x;
      else if (p->form == AIT_WEIGHT_BF16) {
        uint16_t b = ait_f32_to_bf16(x);
        memcpy(raw + 2 * (n * p->k + i), &b, 2);
        w[n * p->k + i] = (double)ait_bf16_to_f32(b);
      } else {
        if (p->form == AIT_WEIGHT_INT8) ((int8_t *)raw)[n * p->k + i] = (int8_t)q;
        else if (i % 2 == 0) raw[n * half + i / 2] = (uint8_t)(q + 8);
        else raw[n * half + i / 2] |= (uint8_t)((q + 8) << 4);
        w[n * p->k + i] = scale * q;
      }
    }
}

static void pack_matrices(packed_case *c) {
  ait_expert_gemm_f32 *p = &c->p;
  int64_t groups = p->group ? (p->k + p->group - 1) / p->group : 0;
  size_t each = p->few_bits ? ait_packed_weight_bytes(p->form, p->k, p->n) : ait_packed_b_bytes(p->k, p->n),
         each_scales = ait_packed_scale_bytes(groups, p->n);
  c->weight = malloc((size_t)(p->count * p->n * p->k) * sizeof *c->weight);
  c->packed = test_aligned((size_t)p->count * each), c->scales = (uint16_t *)(void *)test_aligned((size_t)p->count * each_scales);
  uint8_t *raw = malloc((size_t)(p->n * p->k) * sizeof(float) + 8);
  uint16_t *scales = malloc((size_t)(p->n * groups) * sizeof *scales + 2);
  assert_true(c->weight && raw && scales);
  for (int64_t e = 0; e < p->count; ++e) {
    void *to = (char *)c->packed + (size_t)e * each;
    make_matrix(p, raw, scales, c->weight + e * p->n * p->k);
    if (p->few_bits) {
      ait_pack_weight(to, p->form, raw, p->k, p->n);
      ait_pack_scales(c->scales + (size_t)e * each_scales / 2, scales, groups, p->n);
    } else {
      ait_pack_b_f32 b = {.src = (float *)(void *)raw, .dst = to, .k = p->k, .n = p->n, .k_stride = 1, .n_stride = p->k, .batch = {1, 1}};
      ait_k_pack_b_f32(ait_kernels_for(0), &b, 0, ait_pack_b_f32_units(&b), NULL);
    }
  }
  free(raw), free(scales);
  p->weight = c->packed, p->scales = c->scales;
}

/* Integers: rows are rounded to 8 bits, so a result is only near. The rounding of a row is at most half a step of its largest element. */
static void packed_compare(const test_isa *isa, const packed_case *c) {
  const ait_expert_gemm_f32 *p = &c->p;
  double tolerance = p->group ? 0.5 / 127 * (double)p->k * 0.02 * 7 + 1e-4 : 3e-5;
  for (int64_t r = 0; r < c->rows; ++r)
    for (int64_t n = 0; n < p->n; ++n) {
      double want = 0;
      const double *w = c->weight + (c->experts[r] * p->n + n) * p->k;
      for (int64_t i = 0; i < p->k; ++i) want += (double)c->x.data[r * p->k + i] * w[i];
      TEST_NEAR((double)c->y.data[c->place[r] * p->n + n], want, tolerance, "%s form %d rows %d n %d k %d", isa->name,
                p->few_bits ? (int)p->form : -1, (int)c->rows, (int)p->n, (int)p->k);
    }
}

static void packed_check(const test_isa *isa, int form, int64_t rows, int64_t n, int64_t k) {
  packed_case c = {.rows = rows};
  c.p = (ait_expert_gemm_f32){
      .rows = rows, .n = n, .k = k, .count = 1 + test_random(6), .few_bits = form >= 0, .column_parts = 1 + test_random(3)};
  c.p.form = form < 0 ? AIT_WEIGHT_BF16 : (ait_weight_form)form;
  c.p.group = form > AIT_WEIGHT_BF16 ? 32 : 0;
  for (int64_t r = 0; r < rows; ++r) c.experts[r] = test_random((uint32_t)c.p.count);
  assert_true(ait_expert_order(c.experts, 8, rows, c.p.count, c.order, c.place, c.begin));
  c.x = test_buffer_random(rows * k), c.sorted = test_buffer_create(rows * k), c.y = test_buffer_create(rows * n);
  for (int64_t i = 0; i < rows; ++i) {
    assert_true(c.experts[c.order[i]] >= c.experts[c.order[i > 0 ? i - 1 : 0]] && c.place[c.order[i]] == i);
    memcpy(c.sorted.data + i * k, c.x.data + c.order[i] * k, (size_t)k * sizeof(float));
  }
  pack_matrices(&c);
  c.p.x = c.sorted.data, c.p.y = c.y.data, c.p.begin = c.begin;
  float *scratch = test_scratch(ait_expert_gemm_f32_scratch(&isa->table, &c.p));
  int64_t units = ait_expert_gemm_f32_units(&c.p), cut = test_random((uint32_t)units + 1);
  isa->table.expert_gemm_f32(&c.p, cut, units, scratch);
  isa->table.expert_gemm_f32(&c.p, 0, cut, scratch);
  packed_compare(isa, &c);
  /* alone as in company */
  float alone[64];
  int32_t one[8];
  for (int64_t e = 0; e <= c.p.count; ++e) one[e] = e > c.experts[0];
  ait_expert_gemm_f32 q = c.p;
  q.rows = 1, q.x = c.x.data, q.y = alone, q.begin = one, q.column_parts = 1;
  isa->table.expert_gemm_f32(&q, 0, 1, scratch);
  assert_memory_equal(alone, c.y.data + c.place[0] * n, (size_t)n * sizeof *alone);
  test_buffer_free(&c.x), test_buffer_free(&c.sorted), test_buffer_free(&c.y);
  free(scratch), free(c.weight), free(c.packed), free(c.scales);
}

static void packed_matrices(void **state) {
  test_isa isas[8];
  size_t count = all_isas(isas);
  AIT_UNUSED(state);
  for (size_t i = 0; i < count; ++i)
    for (int round = 0; round < 64; ++round)
      packed_check(&isas[i], round % 4 - 1, 1 + test_random(48), 1 + test_random(60), 1 + test_random(100));
}

static void experts_out_of_range_are_found(void **state) {
  const int32_t ids[3] = {1, 4, 0}, negative[2] = {-1, 0};
  int32_t order[3], place[3], begin[5];
  AIT_UNUSED(state);
  assert_false(ait_expert_order(ids, 4, 3, 4, order, place, begin));
  assert_false(ait_expert_order(negative, 4, 2, 4, order, place, begin));
  assert_true(ait_expert_order(ids, 4, 1, 4, order, place, begin));
  assert_true(ait_expert_order(ids, 4, 0, 4, order, place, begin) && begin[4] == 0);
}

static void every_isa(void **state) {
  test_isa isas[8];
  size_t count = all_isas(isas);
  AIT_UNUSED(state);
  for (size_t i = 0; i < count; ++i)
    for (int round = 0; round < 80; ++round) check(&isas[i], round % 2, 1 + test_random(20), 1 + test_random(40), 1 + test_random(40));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_isa), cmocka_unit_test(packed_matrices),
                                     cmocka_unit_test(experts_out_of_range_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
