#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/norm_f32.inc"
#include "kernels/template/reduce_f32.inc"
#include "kernels/template/copy.inc"
#include "kernels/template/rotary_f32.inc"
#include "kernels/ref/ref.h"
#include "kernels/testing.h"

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] = (test_isa){"wide16",
                        {.isa = "wide16",
                         .layer_norm_f32 = ait_k_layer_norm_f32_wide16,
                         .group_norm_f32 = ait_k_group_norm_f32_wide16,
                         .softmax_f32 = ait_k_softmax_f32_wide16,
                         .rotary_f32 = ait_k_rotary_f32_wide16,
                         .reduce_f32 = ait_k_reduce_f32_wide16,
                         .copy = ait_k_copy_wide16,
                         .gather_rows = ait_k_gather_rows_wide16,
                         .lstm_cell_f32 = ait_k_lstm_cell_f32_wide16,
                         .gru_cell_f32 = ait_k_gru_cell_f32_wide16}};
  return n;
}
#define FOR_EACH_ISA(isa)              \
  test_isa isas_[8];                   \
  size_t isa_count_ = all_isas(isas_); \
  AIT_UNUSED(state);                   \
  for (const test_isa *isa = isas_; isa < isas_ + isa_count_; ++isa)

/* Runs [0, units) as two ranges, the second first. */
static void run_cut(ait_kernel_fn fn, const void *args, int64_t units) {
  int64_t cut = test_random((uint32_t)units + 1);
  fn(args, cut, units, NULL);
  fn(args, 0, cut, NULL);
}

static void layer_norm(void **state) {
  FOR_EACH_ISA(isa)
  for (int64_t n = 1; n <= 200; n += n < 66 ? 1 : 37)
    for (int variant = 0; variant < 12; ++variant) {
      int64_t rows = 1 + test_random(4), xs = n + test_random(3), ys = n + test_random(3);
      test_buffer x = test_buffer_random(rows * xs), y = test_buffer_create(rows * ys), w = test_buffer_random(n),
                  b = test_buffer_random(n), add = test_buffer_random(rows * n), sum = test_buffer_create(rows * n);
      for (int64_t i = 0; i < rows * xs; ++i) x.data[i] += variant % 5 ? 0 : 100.0f; /* a mean far from 0 */
      ait_norm_f32 p = {.rows = rows, .n = n, .x = x.data, .x_stride = xs, .y = y.data, .y_stride = ys, .eps = 1e-5f, .rms = variant % 2};
      if (variant % 3) p.weight = w.data;
      if (variant % 3 == 1 && !p.rms) p.bias = b.data;
      if (variant >= 6) p.addend = add.data, p.addend_stride = n;
      if (variant >= 9) p.sum = sum.data, p.sum_stride = n;
      run_cut(isa->table.layer_norm_f32, &p, ait_norm_f32_units(&p));
      for (int64_t r = 0; r < rows; ++r) {
        double mean = 0, var = 0, row[256];
        for (int64_t i = 0; i < n; ++i) row[i] = (double)(p.addend ? x.data[r * xs + i] + add.data[r * n + i] : x.data[r * xs + i]);
        for (int64_t i = 0; i < n; ++i) mean += row[i] / (double)n;
        if (p.rms) mean = 0;
        for (int64_t i = 0; i < n; ++i) var += (row[i] - mean) * (row[i] - mean) / (double)n;
        for (int64_t i = 0; i < ys; ++i) {
          if (i >= n) {
            assert_true(test_is_pattern(y.data + r * ys + i));
            continue;
          }
          double want = (row[i] - mean) / sqrt(var + 1e-5) * (p.weight ? (double)w.data[i] : 1) + (p.bias ? (double)b.data[i] : 0);
          /* of a mean of 100 the last bit is worth 4e-6; a single element has no variance but that */
          TEST_NEAR((double)y.data[r * ys + i], want,
                    (variant % 5 ? 1e-5
                     : n < 4     ? 3e-2
                                 : 2e-4),
                    "%s norm n %d variant %d", isa->name, (int)n, variant);
          if (p.sum) assert_true((double)sum.data[r * n + i] == row[i]);
        }
      }
      test_buffer_free(&x), test_buffer_free(&y), test_buffer_free(&w), test_buffer_free(&b), test_buffer_free(&add),
          test_buffer_free(&sum);
    }
}

static void group_norm(void **state) {
  FOR_EACH_ISA(isa)
  for (int r = 0; r < 300; ++r) {
    int64_t batch = 1 + test_random(2), groups = 1 + test_random(4), per = 1 + test_random(20), channels = groups * per,
            pixels = 1 + test_random(40);
    int layout = (int)test_random(3); /* NHWC, NCHW, neither */
    int64_t gap = layout == 2 ? 2 : 1;
    ait_group_norm_f32 p = {.batch = batch,
                            .groups = groups,
                            .channels = channels,
                            .pixels = pixels,
                            .image_stride = channels * pixels * gap,
                            .pixel_stride = layout == 1 ? 1 : channels * gap,
                            .channel_stride = layout == 0   ? 1
                                              : layout == 1 ? pixels
                                                            : 2,
                            .eps = 1e-5f};
    test_buffer x = test_buffer_random(batch * p.image_stride), y = test_buffer_create(batch * p.image_stride),
                w = test_buffer_random(channels), b = test_buffer_random(channels);
    p.x = x.data;
    p.y = y.data;
    if (test_random(2)) p.weight = w.data;
    if (test_random(2)) p.bias = b.data;
    p.act = test_random(2) ? AIT_ACT_SILU : AIT_ACT_NONE;
    run_cut(isa->table.group_norm_f32, &p, ait_group_norm_f32_units(&p));
    for (int64_t u = 0; u < batch * groups; ++u) {
      double mean = 0, var = 0, count = (double)(per * pixels);
      for (int pass = 0; pass < 3; ++pass)
        for (int64_t c = u % groups * per; c < (u % groups + 1) * per; ++c)
          for (int64_t i = 0; i < pixels; ++i) {
            int64_t at = u / groups * p.image_stride + i * p.pixel_stride + c * p.channel_stride;
            double v = (double)x.data[at];
            if (pass == 0) mean += v / count;
            else if (pass == 1) var += (v - mean) * (v - mean) / count;
            else {
              double want = (v - mean) / sqrt(var + 1e-5) * (p.weight ? (double)w.data[c] : 1) + (p.bias ? (double)b.data[c] : 0);
              TEST_NEAR((double)y.data[at], ref_act(want, p.act, 0, 0), 1e-4, "%s group norm per %d pixels %d layout %d", isa->name,
                        (int)per, (int)pixels, layout);
            }
          }
    }
    test_buffer_free(&x), test_buffer_free(&y), test_buffer_free(&w), test_buffer_free(&b);
  }
}

static void softmax(void **state) {
  FOR_EACH_ISA(isa)
  for (int64_t n = 1; n <= 33; ++n)
    for (int64_t inner = 1; inner <= 33; inner += inner == 1 ? 1 : 3)
      for (int take_log = 0; take_log < 2; ++take_log) {
        int64_t outer = 1 + test_random(3);
        float scale = test_random(2) ? 1.0f : -3.5f;
        test_buffer x = test_buffer_random(outer * n * inner), y = test_buffer_create(outer * n * inner);
        for (int64_t i = 0; i < outer * n * inner; ++i)
          if (n > 3 && test_random(9) == 0) x.data[i] = scale > 0 ? -INFINITY : INFINITY;
        ait_softmax_f32 p = {.outer = outer, .n = n, .inner = inner, .x = x.data, .y = y.data, .log = take_log, .scale = scale};
        run_cut(isa->table.softmax_f32, &p, ait_softmax_f32_units(&p));
        for (int64_t u = 0; u < outer * inner; ++u) {
          int64_t base = u / inner * n * inner + u % inner;
          double top = -INFINITY, sum = 0;
          for (int64_t i = 0; i < n; ++i) top = fmax(top, (double)x.data[base + i * inner] * (double)scale);
          for (int64_t i = 0; i < n; ++i) sum += exp((double)x.data[base + i * inner] * (double)scale - top);
          for (int64_t i = 0; i < n; ++i) {
            double d = (double)x.data[base + i * inner] * (double)scale - top;
            if (top == -INFINITY) d = NAN;
            TEST_NEAR((double)y.data[base + i * inner], take_log ? d - log(sum) : exp(d) / sum, 2e-6, "%s softmax n %d inner %d log %d",
                      isa->name, (int)n, (int)inner, take_log);
          }
        }
        test_buffer_free(&x), test_buffer_free(&y);
      }
}

static double ref_reduce(const ait_reduce_f32 *r, const float *x, int64_t *at) {
  double sum = 0, prod = 1, squares = 0, n = (double)r->n, best = (double)x[0];
  *at = 0;
  bool max = r->op == AIT_REDUCE_MAX || r->op == AIT_REDUCE_ARG_MAX;
  for (int64_t i = 0; i < r->n; ++i) {
    double v = (double)x[i * r->inner];
    sum += v;
    prod *= v;
    if (!isnan(best) && (isnan(v) || (max ? v > best : v < best))) {
      best = v;
      *at = i;
    }
  }
  for (int64_t i = 0; i < r->n; ++i) squares += ((double)x[i * r->inner] - sum / n) * ((double)x[i * r->inner] - sum / n);
  switch (r->op) {
    case AIT_REDUCE_SUM: return sum;
    case AIT_REDUCE_MEAN: return sum / n;
    case AIT_REDUCE_PROD: return prod;
    case AIT_REDUCE_VAR: return squares / fmax(n - r->correction, 0);
    case AIT_REDUCE_ARG_MAX:
    case AIT_REDUCE_ARG_MIN: return (double)*at;
    default: return best;
  }
}

static void reduce(void **state) {
  FOR_EACH_ISA(isa)
  for (int op = 0; op <= AIT_REDUCE_ARG_MIN; ++op)
    for (int64_t n = 1; n <= 34; ++n)
      for (int64_t inner = 1; inner <= 33; inner += inner == 1 ? 1 : 5) {
        int64_t outer = 1 + test_random(3), count = n == 34 ? 1500 : n;
        bool args = op >= AIT_REDUCE_ARG_MAX, extremes = args || op == AIT_REDUCE_MAX || op == AIT_REDUCE_MIN;
        test_buffer x = test_buffer_random(outer * count * inner), y = test_buffer_create(outer * inner);
        int64_t *index = malloc((size_t)(outer * inner) * sizeof *index), *places = malloc((size_t)(outer * inner) * sizeof *places);
        if (extremes && test_random(5) == 0) x.data[test_random((uint32_t)(outer * count * inner))] = NAN;
        ait_reduce_f32 r = {.outer = outer,
                            .n = count,
                            .inner = inner,
                            .x = x.data,
                            .y = args ? (void *)places : y.data,
                            .op = (ait_reduce_op)op,
                            .correction = test_random(2)};
        if (extremes && !args && test_random(2)) r.index = index;
        run_cut(isa->table.reduce_f32, &r, ait_reduce_f32_units(&r));
        for (int64_t u = 0; u < outer * inner; ++u) {
          int64_t at;
          double want = ref_reduce(&r, x.data + u / inner * count * inner + u % inner, &at),
                 got = args ? (double)places[u] : (double)y.data[u];
          TEST_NEAR(got, want, extremes ? 0 : 2e-5, "%s reduce op %d n %d inner %d", isa->name, op, (int)count, (int)inner);
          if (r.index) assert_int_equal(index[u], at);
        }
        free(index);
        free(places);
        test_buffer_free(&x), test_buffer_free(&y);
      }
}

static void copies(void **state) {
  static const int32_t sizes[] = {1, 2, 4, 8, 16};
  FOR_EACH_ISA(isa)
  for (int r = 0; r < 1500; ++r) {
    ait_copy c = {.rank = 1 + (int32_t)test_random(5), .element_size = sizes[test_random(5)]};
    int32_t order[AIT_MAX_RANK], source[AIT_MAX_RANK];
    int64_t count = 1, span = 1;
    for (int32_t d = 0; d < c.rank; ++d) {
      c.shape[d] = 1 + test_random(r % 3 ? 6 : c.rank < 3 ? 40 : 12);
      count *= c.shape[d];
      order[d] = source[d] = d;
    }
    for (int32_t d = c.rank - 1; d > 0; --d) {
      int32_t j = (int32_t)test_random((uint32_t)d + 1), t = order[d];
      order[d] = order[j];
      order[j] = t;
    }
    int64_t at = 1;
    for (int32_t d = c.rank - 1; d >= 0; --d) { /* src: a permutation, sometimes with gaps or broadcast; dst: row-major */
      int64_t gap = test_random(5) == 0 ? 2 : 1;
      bool broadcast = test_random(8) == 0;
      c.src_stride[order[d]] = broadcast ? 0 : at * gap;
      if (!broadcast) at *= c.shape[order[d]] * gap;
    }
    span = at;
    at = 1;
    for (int32_t d = c.rank - 1; d >= 0; --d) {
      c.dst_stride[d] = at;
      at *= c.shape[d];
    }
    unsigned char *src = malloc((size_t)(span * c.element_size)), *dst = malloc((size_t)(count * c.element_size));
    for (int64_t i = 0; i < span * c.element_size; ++i) src[i] = (unsigned char)test_random(256);
    c.src = src;
    c.dst = dst;
    ait_copy plain = c;
    ait_copy_prepare(&c);
    run_cut(isa->table.copy, &c, ait_copy_units(&c));
    for (int64_t i = 0; i < count; ++i) {
      int64_t left = i, from = 0;
      for (int32_t d = plain.rank - 1; d >= 0; --d) {
        from += left % plain.shape[d] * plain.src_stride[d];
        left /= plain.shape[d];
      }
      assert_memory_equal(dst + i * c.element_size, src + from * c.element_size, (size_t)c.element_size);
    }
    free(src);
    free(dst);
  }
}

static void gather(void **state) {
  FOR_EACH_ISA(isa) {
    const int64_t index[] = {0, 4, -1, 2, 5, -6};
    const int32_t small[] = {0, 4, -1, 2, 5, -6};
    float table[5 * 3], out[6 * 4];
    int32_t bad = 0;
    for (int i = 0; i < 15; ++i) table[i] = (float)i;
    for (int size = 4; size <= 8; size += 4) {
      for (int i = 0; i < 24; ++i) out[i] = -7;
      bad = 0;
      ait_gather_rows g = {.count = 6,
                           .table_rows = 5,
                           .index = size == 8 ? (const void *)index : small,
                           .index_size = size,
                           .src = table,
                           .dst = out,
                           .row_bytes = 12,
                           .src_stride = 12,
                           .dst_stride = 16,
                           .out_of_range = &bad};
      run_cut(isa->table.gather_rows, &g, 4);
      assert_int_equal(bad, 0);
      run_cut(isa->table.gather_rows, &g, 6);
      assert_int_equal(bad, 1);
      const int want[] = {0, 4, 4, 2};
      for (int i = 0; i < 6; ++i) {
        for (int j = 0; j < 3; ++j) assert_true(out[i * 4 + j] == (i < 4 ? (float)(want[i] * 3 + j) : 0));
        assert_true(out[i * 4 + 3] == -7);
      }
    }
  }
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

static void cells(void **state) {
  FOR_EACH_ISA(isa)
  for (int64_t n = 1; n <= 33; ++n) {
    const int64_t rows = 3;
    test_buffer g = test_buffer_random(rows * 4 * n), x = test_buffer_random(rows * 3 * n), c = test_buffer_random(rows * n),
                c2 = test_buffer_create(rows * n), h = test_buffer_create(rows * n), h2 = test_buffer_create(rows * n);
    for (int64_t i = 0; i < rows * 4 * n; ++i) g.data[i] *= 5;
    ait_lstm_cell_f32 l = {.rows = rows,
                           .n = n,
                           .gates = g.data,
                           .gates_stride = 4 * n,
                           .c_in = c.data,
                           .c_in_stride = n,
                           .c_out = c2.data,
                           .c_out_stride = n,
                           .h_out = h.data,
                           .h_out_stride = n};
    run_cut(isa->table.lstm_cell_f32, &l, rows);
    ait_gru_cell_f32 u = {.rows = rows,
                          .n = n,
                          .gates_x = x.data,
                          .gates_h = g.data,
                          .gates_x_stride = 3 * n,
                          .gates_h_stride = 4 * n,
                          .h_in = c.data,
                          .h_in_stride = n,
                          .h_out = h2.data,
                          .h_out_stride = n};
    run_cut(isa->table.gru_cell_f32, &u, rows);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < n; ++j) {
        const float *gr = g.data + r * 4 * n + j, *xr = x.data + r * 3 * n + j;
        double c0 = (double)c.data[r * n + j];
        double c1 = sigmoid((double)gr[n]) * c0 + sigmoid((double)gr[0]) * tanh((double)gr[2 * n]);
        TEST_NEAR((double)c2.data[r * n + j], c1, 1e-6, "%s lstm c", isa->name);
        TEST_NEAR((double)h.data[r * n + j], sigmoid((double)gr[3 * n]) * tanh(c1), 1e-6, "%s lstm h", isa->name);
        double rg = sigmoid((double)xr[0] + (double)gr[0]), z = sigmoid((double)xr[n] + (double)gr[n]),
               t = tanh((double)xr[2 * n] + rg * (double)gr[2 * n]);
        TEST_NEAR((double)h2.data[r * n + j], (1 - z) * t + z * c0, 1e-6, "%s gru h", isa->name);
      }
    test_buffer_free(&g), test_buffer_free(&x), test_buffer_free(&c), test_buffer_free(&c2), test_buffer_free(&h), test_buffer_free(&h2);
  }
}

/* Rows of heads whose tables are shared by heads, and one table for all rows. */
static void rotary(void **state) {
  FOR_EACH_ISA(isa)
  for (int64_t half = 1; half <= 40; ++half) {
    int64_t rows = 1 + test_random(4), heads = 1 + test_random(3), d = 2 * half, gap = d + test_random(3), table = test_random(2) ? d : 0;
    test_buffer x = test_buffer_random(rows * heads * gap), y = test_buffer_create(rows * heads * d), c = test_buffer_random(rows * d),
                s = test_buffer_random(rows * d);
    ait_rotary_f32 p = {.outer = {1, heads, rows}, /* heads outside: another order than memory's */
                        .d = d,
                        .x = x.data,
                        .cos = c.data,
                        .sin = s.data,
                        .y = y.data,
                        .x_stride = {0, gap, heads * gap},
                        .cos_stride = {0, 0, table},
                        .sin_stride = {0, 0, table},
                        .y_stride = {0, d, heads * d}};
    run_cut(isa->table.rotary_f32, &p, ait_rotary_f32_units(&p));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t j = 0; j < d; ++j) {
          const float *row = x.data + (r * heads + h) * gap;
          double turned = j < half ? -(double)row[j + half] : (double)row[j - half];
          double want = (double)row[j] * (double)c.data[r * table + j] + turned * (double)s.data[r * table + j];
          TEST_NEAR((double)y.data[(r * heads + h) * d + j], want, 3e-7, "%s rotary %d at %d", isa->name, (int)d, (int)j);
        }
    test_buffer_free(&x), test_buffer_free(&y), test_buffer_free(&c), test_buffer_free(&s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layer_norm), cmocka_unit_test(group_norm), cmocka_unit_test(softmax),
                                     cmocka_unit_test(reduce),     cmocka_unit_test(copies),     cmocka_unit_test(gather),
                                     cmocka_unit_test(cells),      cmocka_unit_test(rotary)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
