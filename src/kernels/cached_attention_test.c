/* Attention over pages against plain sums in double, on every instruction set: windows, caps, sinks, slopes, pool forms, rows of nobody; a
 * sequence gives the same bits alone and in a batch, whole and cut; tables that are out of range are found. */
#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/tile_f32.inc"
#include "kernels/template/gemm_f32.inc"
#include "kernels/template/rows.inc"
#include "kernels/template/gemm_weight_f32.inc"
#include "kernels/template/attention_f32.inc"
#include "kernels/template/cached_attention_f32.inc"
#include "kernels/testing.h"

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] = (test_isa){
      "wide16",
      {.isa = "wide16", .cache_store_f32 = ait_k_cache_store_f32_wide16, .cached_attention_f32 = ait_k_cached_attention_f32_wide16}};
  return n;
}

enum { SEQUENCES = 3, TABLE = 6, POOL_PAGES = SEQUENCES * TABLE };

typedef struct batch {
  ait_cached_attention_f32 a;
  test_buffer q, k, v, o, k_pool, v_pool, k_scale, v_scale, sinks, slopes, bias;
  int32_t spans[SEQUENCES * 4], pages[SEQUENCES * TABLE];
} batch;

static void make_batch(batch *b, ait_pool_form form, int64_t page, int64_t heads, int64_t groups, int64_t d, int64_t dv) {
  *b = (batch){0};
  int32_t rows = 1 + (int32_t)test_random(2), longest = (int32_t)(page * TABLE);
  for (int32_t i = 0; i < SEQUENCES; ++i) {
    int32_t count = test_random(5) ? 1 + (int32_t)test_random((uint32_t)longest - 1) : 0;
    const int32_t entry[4] = {rows, count, 0, -1};
    memcpy(b->spans + 4 * i, entry, sizeof entry);
    rows += count + (int32_t)test_random(2);
    for (int32_t p = 0; p < TABLE; ++p) b->pages[i * TABLE + p] = i + p * SEQUENCES; /* interleaved */
  }
  b->q = test_buffer_random(rows * heads * d), b->k = test_buffer_random(rows * groups * d), b->v = test_buffer_random(rows * groups * dv);
  b->o = test_buffer_create(rows * heads * dv);
  b->k_pool = test_buffer_create(POOL_PAGES * groups * page * d), b->v_pool = test_buffer_create(POOL_PAGES * groups * page * dv);
  b->k_scale = test_buffer_create(POOL_PAGES * groups * page), b->v_scale = test_buffer_create(POOL_PAGES * groups * page);
  int64_t distances = 1 + test_random((uint32_t)longest);
  b->bias = test_buffer_random(heads * distances);
  b->sinks = test_buffer_random(heads), b->slopes = test_buffer_random(heads);
  b->a = (ait_cached_attention_f32){.rows = rows,
                                    .heads = heads,
                                    .groups = groups,
                                    .d = d,
                                    .dv = dv,
                                    .q = b->q.data,
                                    .k = b->k.data,
                                    .v = b->v.data,
                                    .o = b->o.data,
                                    .q_stride = {heads * d, d},
                                    .k_stride = {groups * d, d},
                                    .v_stride = {groups * dv, dv},
                                    .o_stride = {heads * dv, dv},
                                    .spans = b->spans,
                                    .pages = b->pages,
                                    .sequences = SEQUENCES,
                                    .table = TABLE,
                                    .page = page,
                                    .pool_pages = POOL_PAGES,
                                    .form = form,
                                    .k_pool = b->k_pool.data,
                                    .v_pool = b->v_pool.data,
                                    .k_scale = b->k_scale.data,
                                    .v_scale = b->v_scale.data,
                                    .scale = 0.4f};
  for (int64_t h = 0; h < heads; ++h) b->slopes.data[h] = fabsf(b->slopes.data[h]); /* as models have them: what is near counts */
  if (test_random(2)) b->a.sinks = b->sinks.data;
  if (test_random(2)) b->a.slopes = b->slopes.data;
  if (test_random(2)) b->a.bias = b->bias.data, b->a.distances = distances;
  if (test_random(2)) b->a.cap = 1.5f;
  if (test_random(2)) b->a.window = 1 + test_random((uint32_t)longest);
}

static void free_batch(batch *b) {
  test_buffer *all[] = {&b->q, &b->k, &b->v, &b->o, &b->k_pool, &b->v_pool, &b->k_scale, &b->v_scale, &b->sinks, &b->slopes, &b->bias};
  for (size_t i = 0; i < AIT_COUNT(all); ++i) test_buffer_free(all[i]);
}

static void run(const test_isa *isa, const ait_cached_attention_f32 *a) {
  void *scratch = test_scratch(ait_cached_attention_f32_scratch(&isa->table, a));
  assert_true(ait_cached_attention_check(a));
  isa->table.cache_store_f32(a, 0, ait_cache_store_f32_units(a), NULL);
  for (int64_t u = ait_cached_attention_f32_units(a); u-- > 0;) isa->table.cached_attention_f32(a, u, u + 1, scratch);
  free(scratch);
}

static double want_at(const batch *b, const int32_t *entry, int64_t row, int64_t h, int64_t e) {
  const ait_cached_attention_f32 *a = &b->a;
  int64_t g = h / (a->heads / a->groups), p = row - entry[0], low = a->window && p >= a->window ? p - a->window + 1 : 0;
  double total = a->sinks ? exp((double)a->sinks[h]) : 0, sum = 0;
  for (int64_t j = low; j <= p; ++j) {
    double s = 0;
    for (int64_t i = 0; i < a->d; ++i)
      s += (double)a->q[row * a->q_stride[0] + h * a->d + i] * (double)a->k[(entry[0] + j) * a->k_stride[0] + g * a->d + i];
    s *= (double)a->scale;
    if (a->cap > 0) s = (double)a->cap * tanh(s / (double)a->cap);
    if (a->slopes) s += (double)a->slopes[h] * (double)(j - p);
    if (a->bias) s += (double)a->bias[h * a->distances + (p - j < a->distances ? p - j : a->distances - 1)];
    total += exp(s);
    sum += exp(s) * (double)a->v[(entry[0] + j) * a->v_stride[0] + g * a->dv + e];
  }
  return sum / total;
}

static void check_numbers(const test_isa *isa, batch *b) {
  static const double tolerance[] = {3e-6, 8e-3, 1.5e-2}; /* of values up to 1; 8 and 7 bits are kept */
  const ait_cached_attention_f32 *a = &b->a;
  run(isa, a);
  for (int64_t r = 0; r < a->rows; ++r) {
    const int32_t *entry = NULL;
    for (int i = 0; i < SEQUENCES; ++i)
      if (r >= b->spans[4 * i] && r < b->spans[4 * i] + b->spans[4 * i + 1]) entry = b->spans + 4 * i;
    for (int64_t h = 0; h < a->heads; ++h)
      for (int64_t e = 0; e < a->dv; ++e) {
        double got = (double)a->o[r * a->o_stride[0] + h * a->dv + e];
        TEST_NEAR(got, entry ? want_at(b, entry, r, h, e) : 0, tolerance[a->form], "%s form %d row %d head %d", isa->name, (int)a->form,
                  (int)r, (int)h);
      }
  }
}

/* The same sequence by itself, in steps of a few rows, gives the same bits. */
static void check_alone(const test_isa *isa, batch *b) {
  ait_cached_attention_f32 a = b->a;
  int64_t row_floats = a.heads * a.dv;
  float *want = malloc((size_t)(a.rows * row_floats + 1) * sizeof(float));
  memcpy(want, a.o, (size_t)(a.rows * row_floats) * sizeof(float));
  for (int i = 0; i < SEQUENCES; ++i) {
    int32_t first = b->spans[4 * i], count = b->spans[4 * i + 1];
    for (int32_t past = 0, n; past < count; past += n) {
      n = 1 + (int32_t)test_random(7);
      if (n > count - past) n = count - past;
      int32_t entry[4] = {0, n, past, 0};
      ait_cached_attention_f32 part = a;
      part.spans = entry, part.pages = b->pages + i * TABLE, part.sequences = 1, part.rows = n;
      part.q += (first + past) * a.q_stride[0], part.k += (first + past) * a.k_stride[0], part.v += (first + past) * a.v_stride[0];
      part.o += (first + past) * a.o_stride[0];
      run(isa, &part);
    }
    assert_memory_equal(a.o + first * row_floats, want + first * row_floats, (size_t)(count * row_floats) * sizeof(float));
  }
  free(want);
}

static void numbers_and_bits(void **state) {
  AIT_UNUSED(state);
  static const int64_t shapes[][5] = {{4, 2, 1, 5, 3}, {16, 4, 2, 16, 32}, {5, 6, 2, 33, 40}, {32, 3, 3, 64, 64}, {1, 2, 2, 8, 8}};
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int form = AIT_POOL_F32; form <= AIT_POOL_INT8; ++form)
      for (size_t s = 0; s < AIT_COUNT(shapes); ++s)
        for (int repeat = 0; repeat < 3; ++repeat) {
          batch b;
          make_batch(&b, (ait_pool_form)form, shapes[s][0], shapes[s][1], shapes[s][2], shapes[s][3], shapes[s][4]);
          check_numbers(&isas[t], &b);
          check_alone(&isas[t], &b);
          free_batch(&b);
        }
}

static void tables_out_of_range_are_found(void **state) {
  AIT_UNUSED(state);
  batch b;
  make_batch(&b, AIT_POOL_F32, 4, 2, 1, 8, 8);
  int32_t good[4] = {0, 1, 9, 0}, pages[TABLE] = {0, 1, 2, 3, 4, 5};
  b.a.sequences = 1, b.a.spans = good, b.a.pages = pages, b.a.window = 0;
  assert_true(ait_cached_attention_check(&b.a));
  const struct {
    int32_t entry[4], pages[TABLE];
    int64_t window;
    bool good;
  } cases[] = {
      {{-1, 1, 0, 0}, {0}, 0, false},
      {{0, -1, 0, 0}, {0}, 0, false},
      {{(int32_t)b.a.rows, 1, 0, 0}, {0}, 0, false},
      {{0, 1, -1, 0}, {0}, 0, false},
      {{0, 1, 4 * TABLE, 0}, {0}, 0, false},
      {{0, 1, INT32_MAX, 0}, {0}, 0, false},
      {{0, 1, 9, 0}, {0, -1, 2}, 0, false},
      {{0, 1, 9, 0}, {0, 1, POOL_PAGES}, 0, false},
      {{0, 1, 9, 0}, {-1, 1, 2}, 4, true}, /* behind the window */
      {{0, 0, -7, 0}, {-1}, 0, true},      /* no rows */
  };
  for (size_t i = 0; i < AIT_COUNT(cases); ++i) {
    b.a.spans = cases[i].entry, b.a.pages = cases[i].pages, b.a.window = cases[i].window;
    assert_int_equal(ait_cached_attention_check(&b.a), cases[i].good);
  }
  free_batch(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_and_bits), cmocka_unit_test(tables_out_of_range_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
