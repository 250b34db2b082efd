/* Convolutions and scans with state in slots against plain sums in double, on every instruction set; a sequence gives the same bits alone,
 * in a batch, whole and cut; rows of nobody give zeros; tables that are out of range are found. */
#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/rows.inc"
#include "kernels/template/slots_f32.inc"
#include "kernels/testing.h"

enum { SEQUENCES = 3, SLOTS = 4 };

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] = (test_isa){
      "wide16", {.isa = "wide16", .cached_conv1d_f32 = ait_k_cached_conv1d_f32_wide16, .cached_scan_f32 = ait_k_cached_scan_f32_wide16}};
  return n;
}

/* Rows of three sequences with gaps between them; one may be unused, one begins anew. */
static int32_t make_spans(int32_t spans[SEQUENCES * 4], uint32_t longest) {
  static const int32_t slots[SEQUENCES] = {2, 0, 3};
  int32_t rows = (int32_t)test_random(2);
  for (int32_t i = 0; i < SEQUENCES; ++i) {
    int32_t count = test_random(5) ? 1 + (int32_t)test_random(longest) : 0;
    const int32_t entry[4] = {rows, count, i == 1 ? 0 : 3, slots[i]};
    memcpy(spans + 4 * i, entry, sizeof entry);
    rows += count + (int32_t)test_random(2);
  }
  return rows > 0 ? rows : 1;
}

static bool owner(const int32_t *spans, int64_t row, const int32_t **out) {
  for (int64_t i = 0; i < SEQUENCES; ++i)
    if (row >= spans[4 * i] && row < spans[4 * i] + spans[4 * i + 1]) return *out = spans + 4 * i, true;
  return false;
}

static float *copy_of(const test_buffer *b) {
  float *p = malloc((size_t)b->count * sizeof *p + 1);
  assert_non_null(p);
  memcpy(p, b->data, (size_t)b->count * sizeof *p);
  return p;
}

/* ---- convolution
 * -----------------------------------------------------------------------------------------------------------------------*/
static double conv_input(const ait_cached_conv1d_f32 *p, const float *before, const int32_t *s, int64_t at, int64_t c) {
  if (at >= 0) return (double)p->x[(s[0] + at) * p->x_stride + c];
  return s[2] == 0 ? 0 : (double)before[(s[3] * (p->taps - 1) + at + p->taps - 1) * p->channels + c];
}

static double conv_want(const ait_cached_conv1d_f32 *p, const float *before, int64_t row, int64_t c) {
  const int32_t *s;
  if (!owner(p->spans.at, row, &s)) return 0;
  double sum = p->bias ? (double)p->bias[c] : 0;
  for (int64_t k = 0; k < p->taps; ++k)
    sum += conv_input(p, before, s, row - s[0] - p->taps + 1 + k, c) * (double)p->weight[k * p->channels + c];
  return p->act == AIT_ACT_SILU ? sum / (1 + exp(-sum)) : sum;
}

static void conv_compare(const test_isa *isa, const ait_cached_conv1d_f32 *p, const float *before) {
  for (int64_t r = 0; r < p->rows; ++r)
    for (int64_t c = 0; c < p->channels; ++c)
      TEST_NEAR((double)p->y[r * p->y_stride + c], conv_want(p, before, r, c), 2e-6, "%s conv row %d of %d, channel %d of %d, %d taps",
                isa->name, (int)r, (int)p->rows, (int)c, (int)p->channels, (int)p->taps);
  for (int64_t i = 0; i < SEQUENCES; ++i) {
    const int32_t *s = p->spans.at + 4 * i;
    for (int64_t k = 0; s[1] > 0 && k + 1 < p->taps; ++k)
      for (int64_t c = 0; c < p->channels; ++c)
        assert_true((double)p->state[(s[3] * (p->taps - 1) + k) * p->channels + c] == conv_input(p, before, s, s[1] + k + 1 - p->taps, c));
  }
}

/* The same rows one at a time: state and results must have the same bits. */
static void conv_by_one(const test_isa *isa, const ait_cached_conv1d_f32 *p, float *state) {
  float *y = malloc((size_t)p->channels * sizeof *y);
  assert_non_null(y);
  for (int64_t i = 0; i < SEQUENCES; ++i)
    for (int32_t r = 0; r < p->spans.at[4 * i + 1]; ++r) {
      const int32_t *s = p->spans.at + 4 * i, one[4] = {0, 1, s[2] + r, s[3]};
      ait_cached_conv1d_f32 q = *p;
      q.rows = 1, q.x += (s[0] + r) * p->x_stride, q.y = y, q.state = state, q.spans = (ait_spans){one, 1};
      isa->table.cached_conv1d_f32(&q, 0, ait_cached_conv1d_f32_units(&q), NULL);
      assert_memory_equal(y, p->y + (s[0] + r) * p->y_stride, (size_t)p->channels * sizeof *y);
    }
  assert_memory_equal(state, p->state, (size_t)(SLOTS * (p->taps - 1) * p->channels) * sizeof *state);
  free(y);
}

static void conv_check(const test_isa *isa, int64_t channels, int64_t taps) {
  int32_t spans[SEQUENCES * 4];
  int64_t rows = make_spans(spans, 7), stride = channels + test_random(3);
  test_buffer x = test_buffer_random(rows * stride), w = test_buffer_random(taps * channels), bias = test_buffer_random(channels),
              y = test_buffer_create(rows * channels), state = test_buffer_random(SLOTS * (taps - 1) * channels);
  float *before = copy_of(&state), *again = copy_of(&state);
  ait_cached_conv1d_f32 p = {.rows = rows,
                             .channels = channels,
                             .taps = taps,
                             .x = x.data,
                             .weight = w.data,
                             .bias = test_random(2) ? bias.data : NULL,
                             .x_stride = stride,
                             .y = y.data,
                             .y_stride = channels,
                             .spans = {spans, SEQUENCES},
                             .state = state.data,
                             .act = test_random(2) ? AIT_ACT_SILU : AIT_ACT_NONE};
  int64_t units = ait_cached_conv1d_f32_units(&p), cut = test_random((uint32_t)units + 1);
  assert_true(ait_spans_check(&p.spans, rows, SLOTS));
  isa->table.cached_conv1d_f32(&p, cut, units, NULL);
  isa->table.cached_conv1d_f32(&p, 0, cut, NULL);
  conv_compare(isa, &p, before);
  conv_by_one(isa, &p, again);
  test_buffer_free(&x), test_buffer_free(&w), test_buffer_free(&bias), test_buffer_free(&y), test_buffer_free(&state);
  free(before), free(again);
}

static void convolutions(void **unused) {
  test_isa isas[8];
  size_t count = all_isas(isas);
  AIT_UNUSED(unused);
  for (size_t i = 0; i < count; ++i)
    for (int round = 0; round < 40; ++round) conv_check(&isas[i], 1 + test_random(150), 1 + test_random(5));
}

/* ---- scan
 * ------------------------------------------------------------------------------------------------------------------------------*/
typedef struct scan_case {
  ait_cached_scan_f32 p;
  test_buffer u, dt, a, b, c, y, state;
  int32_t spans[SEQUENCES * 4];
} scan_case;

static void scan_create(scan_case *k, int64_t heads, int64_t width, int64_t groups, int64_t size, bool matrix) {
  int64_t rows = make_spans(k->spans, test_random(4) ? 6 : 150), gap = test_random(3);
  k->u = test_buffer_random(rows * (heads * width + gap)), k->dt = test_buffer_random(rows * heads);
  k->a = test_buffer_random(heads * (matrix ? size : 1));
  k->b = test_buffer_random(rows * groups * size), k->c = test_buffer_random(rows * groups * size);
  k->y = test_buffer_create(rows * heads * width), k->state = test_buffer_random(SLOTS * heads * width * size);
  for (int64_t i = 0; i < k->dt.count; ++i) k->dt.data[i] = fabsf(k->dt.data[i]);
  for (int64_t i = 0; i < k->a.count; ++i) k->a.data[i] = -fabsf(k->a.data[i]) * 3;
  k->p = (ait_cached_scan_f32){.rows = rows,
                               .heads = heads,
                               .width = width,
                               .groups = groups,
                               .size = size,
                               .u = k->u.data,
                               .dt = k->dt.data,
                               .a = k->a.data,
                               .b = k->b.data,
                               .c = k->c.data,
                               .a_matrix = matrix,
                               .u_stride = {heads * width + gap, width},
                               .dt_stride = {heads, 1},
                               .b_stride = {groups * size, size},
                               .c_stride = {groups * size, size},
                               .y_stride = {heads * width, width},
                               .y = k->y.data,
                               .spans = {k->spans, SEQUENCES},
                               .state = k->state.data};
}

static void scan_free(scan_case *k) {
  test_buffer_free(&k->u), test_buffer_free(&k->dt), test_buffer_free(&k->a), test_buffer_free(&k->b), test_buffer_free(&k->c);
  test_buffer_free(&k->y), test_buffer_free(&k->state);
}

/* One row of state through its sequence. h [size]: the state before it, as doubles. */
static void scan_compare_row(const test_isa *isa, const ait_cached_scan_f32 *p, const int32_t *s, int64_t head, int64_t at, double *h) {
  int64_t g = head / (p->heads / p->groups);
  for (int64_t r = s[0]; r < s[0] + s[1]; ++r) {
    double y = 0, dt = (double)p->dt[r * p->dt_stride[0] + head], u = (double)p->u[r * p->u_stride[0] + head * p->width + at];
    for (int64_t n = 0; n < p->size; ++n) {
      h[n] = exp(dt * (double)p->a[p->a_matrix ? head * p->size + n : head]) * h[n] + u * (double)p->b[(r * p->groups + g) * p->size + n];
      y += h[n] * (double)p->c[(r * p->groups + g) * p->size + n];
    }
    TEST_NEAR((double)p->y[r * p->y_stride[0] + head * p->width + at], y, 1e-5 * (double)(8 + p->size), "%s scan row %d head %d", isa->name,
              (int)r, (int)head);
  }
}

static void scan_compare(const test_isa *isa, const ait_cached_scan_f32 *p, const float *before) {
  double h[64];
  for (int64_t i = 0; i < SEQUENCES; ++i)
    for (int64_t q = 0; q < p->heads * p->width; ++q) {
      const int32_t *s = p->spans.at + 4 * i;
      int64_t cell = (s[3] * p->heads * p->width + q) * p->size;
      for (int64_t n = 0; n < p->size; ++n) h[n] = s[2] == 0 ? 0 : (double)before[cell + n];
      scan_compare_row(isa, p, s, q / p->width, q % p->width, h);
      for (int64_t n = 0; s[1] > 0 && n < p->size; ++n) TEST_NEAR((double)p->state[cell + n], h[n], 1e-4, "%s state", isa->name);
    }
  for (int64_t r = 0; r < p->rows; ++r) {
    const int32_t *s;
    for (int64_t q = 0; !owner(p->spans.at, r, &s) && q < p->heads * p->width; ++q) assert_true(p->y[r * p->y_stride[0] + q] == 0);
  }
}

static void scan_by_one(const test_isa *isa, const ait_cached_scan_f32 *p, float *state, float *scratch) {
  int64_t row = p->heads * p->width;
  float *y = malloc((size_t)row * sizeof *y);
  assert_non_null(y);
  for (int64_t i = 0; i < SEQUENCES; ++i)
    for (int32_t r = 0; r < p->spans.at[4 * i + 1]; ++r) {
      const int32_t *s = p->spans.at + 4 * i, one[4] = {0, 1, s[2] + r, s[3]};
      ait_cached_scan_f32 q = *p;
      int64_t at = s[0] + r;
      q.rows = 1, q.u += at * p->u_stride[0], q.dt += at * p->dt_stride[0], q.b += at * p->b_stride[0], q.c += at * p->c_stride[0];
      q.y = y, q.state = state, q.spans = (ait_spans){one, 1};
      isa->table.cached_scan_f32(&q, 0, ait_cached_scan_f32_units(&q), scratch);
      assert_memory_equal(y, p->y + at * p->y_stride[0], (size_t)row * sizeof *y);
    }
  assert_memory_equal(state, p->state, (size_t)(SLOTS * row * p->size) * sizeof *state);
  free(y);
}

static void scan_check(const test_isa *isa, int64_t groups, int64_t width, int64_t size, bool matrix) {
  scan_case k;
  scan_create(&k, groups * (1 + test_random(6)), width, groups, size, matrix);
  float *before = copy_of(&k.state), *again = copy_of(&k.state), *scratch = test_scratch(ait_cached_scan_f32_scratch(&k.p));
  int64_t units = ait_cached_scan_f32_units(&k.p), cut = test_random((uint32_t)units + 1);
  isa->table.cached_scan_f32(&k.p, cut, units, scratch);
  isa->table.cached_scan_f32(&k.p, 0, cut, scratch);
  scan_compare(isa, &k.p, before);
  scan_by_one(isa, &k.p, again, scratch);
  scan_free(&k);
  free(before), free(again), free(scratch);
}

static void scans(void **unused) {
  static const int64_t widths[] = {1, 1, 3, 8, 33};
  test_isa isas[8];
  size_t count = all_isas(isas);
  AIT_UNUSED(unused);
  for (size_t i = 0; i < count; ++i)
    for (int round = 0; round < 40; ++round)
      scan_check(&isas[i], 1 + test_random(3), widths[test_random(5)], test_random(2) ? 16 : 1 + test_random(40), test_random(2));
}

static void bad_tables_are_found(void **unused) {
  static const int32_t bad[][4] = {{0, -1, 0, 0}, {-1, 1, 0, 0}, {3, 2, 0, 0},        {0, 1, -1, 0},
                                   {0, 1, 0, -1}, {0, 1, 0, 4},  {INT32_MAX, 1, 0, 0}};
  static const int32_t good[4] = {3, 1, 9, 3}, unused_entry[4] = {-7, 0, -7, -7};
  AIT_UNUSED(unused);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) assert_false(ait_spans_check(&(ait_spans){bad[i], 1}, 4, 4));
  assert_true(ait_spans_check(&(ait_spans){good, 1}, 4, 4));
  assert_true(ait_spans_check(&(ait_spans){unused_entry, 1}, 4, 4));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(convolutions), cmocka_unit_test(scans), cmocka_unit_test(bad_tables_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
