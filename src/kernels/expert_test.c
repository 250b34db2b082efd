/* Rows that choose a matrix, against plain double arithmetic, on every instruction set. */
#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/expert_f32.inc"
#include "kernels/testing.h"
#include "tensor/tensor.h"

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] = (test_isa){"wide16", {.isa = "wide16", .expert_f32 = ait_k_expert_f32_wide16}};
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

static void every_isa(void **state) {
  test_isa isas[8];
  size_t count = all_isas(isas);
  AIT_UNUSED(state);
  for (size_t i = 0; i < count; ++i)
    for (int round = 0; round < 80; ++round) check(&isas[i], round % 2, 1 + test_random(20), 1 + test_random(40), 1 + test_random(40));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_isa)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
