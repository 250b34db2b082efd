#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/tile_f32.inc"
#include "kernels/template/gemm_f32.inc"
#include "kernels/template/rows.inc"
#include "kernels/template/gemm_weight_f32.inc"
#include "kernels/template/conv_f32.inc"
#include "kernels/template/winograd_f32.inc"
#include "kernels/ref/ref.h"
#include "kernels/testing.h"

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] = (test_isa){"wide16",
                        {.isa = "wide16",
                         .width = 16,
                         .tile_rows = MR,
                         .tile_columns = NR * VL,
                         .pack_b_f32 = ait_k_pack_b_f32_wide16,
                         .gemm_f32 = ait_k_gemm_f32_wide16,
                         .gemm_weight_f32 = ait_k_gemm_weight_f32_wide16,
                         .conv_f32 = ait_k_conv_f32_wide16,
                         .winograd_f32 = ait_k_winograd_f32_wide16}};
  return n;
}

static ait_epilogue random_epilogue(const test_buffer *bias, const test_buffer *residual, int64_t residual_stride) {
  ait_epilogue e = {.act = (ait_act)(test_random(3) ? test_random(3) : test_random(AIT_ACT_COUNT)), .p = 0.25f, .q = 0.75f};
  if (e.act == AIT_ACT_SOFTPLUS) e.p = 1.0f, e.q = 20.0f;
  if (test_random(2)) e.bias = bias->data;
  if (test_random(2)) {
    e.residual = residual->data;
    e.residual_stride = residual_stride;
    e.residual_after = test_random(2);
    e.residual_times = e.residual_after && test_random(2);
  }
  return e;
}

/* Runs every unit, in one call or one by one. */
static void run_units(ait_kernel_fn fn, const void *args, int64_t units, size_t scratch_bytes) {
  void *scratch = test_scratch(scratch_bytes);
  if (test_random(2)) fn(args, 0, units, scratch);
  else
    for (int64_t u = units - 1; u >= 0; --u) fn(args, u, u + 1, scratch);
  free(scratch);
}

static void check_gemm(const test_isa *isa, int64_t m, int64_t n, int64_t k, int64_t b0, int64_t b1, bool transposed) {
  const int64_t as = k + test_random(4), cs = n + test_random(4), rs = n + test_random(3), batch = b0 * b1;
  test_buffer a = test_buffer_random(batch * m * as), w = test_buffer_random(batch * k * n), c = test_buffer_create(batch * m * cs),
              bias = test_buffer_random(n), residual = test_buffer_random(batch * m * rs);
  float *packed = test_aligned(ait_packed_b_bytes(k, n) * (size_t)batch);
  ait_pack_b_f32 pack = {.src = w.data,
                         .dst = packed,
                         .k = k,
                         .n = n,
                         .k_stride = transposed ? 1 : n,
                         .n_stride = transposed ? k : 1,
                         .batch = {b0, b1},
                         .batch_stride = {b1 * k * n, k * n}};
  run_units(isa->table.pack_b_f32, &pack, ait_pack_b_f32_units(&pack), 0);
  const int64_t packed_floats = (int64_t)(ait_packed_b_bytes(k, n) / sizeof(float));
  ait_gemm_f32 g = {.m = m,
                    .n = n,
                    .k = k,
                    .a = a.data,
                    .a_stride = as,
                    .b = packed,
                    .c = c.data,
                    .c_stride = cs,
                    .batch = {b0, b1},
                    .a_batch_stride = {b1 * m * as, m * as},
                    .b_batch_stride = {b1 * packed_floats, packed_floats},
                    .c_batch_stride = {b1 * m * cs, m * cs},
                    .residual_batch_stride = {b1 * m * rs, m * rs},
                    .ep = random_epilogue(&bias, &residual, rs)};
  ait_gemm_f32_plan(&isa->table, &g, 1 + (int32_t)test_random(4));
  if (test_random(2)) g.row_parts = 1 + test_random(3), g.column_parts = 1 + test_random(3);
  run_units(isa->table.gemm_f32, &g, ait_gemm_f32_units(&g), ait_gemm_f32_scratch(&isa->table, &g));
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < cs; ++j) {
        const float *got = c.data + (b * m + i) * cs + j;
        if (j >= n) {
          assert_true(test_is_pattern(got));
          continue;
        }
        double sum = 0, magnitude = 1;
        for (int64_t x = 0; x < k; ++x) {
          double v = (double)a.data[(b * m + i) * as + x] * (double)w.data[b * k * n + x * pack.k_stride + j * pack.n_stride];
          sum += v;
          magnitude += fabs(v);
        }
        double want = ref_epilogue(sum, j, &g.ep, (double)residual.data[(b * m + i) * rs + j]);
        TEST_NEAR((double)*got, want, 1e-6 * magnitude + 1e-6 * fabs(want), "%s gemm %d x %d x %d at %d, %d act %d", isa->name, (int)m,
                  (int)n, (int)k, (int)i, (int)j, (int)g.ep.act);
      }
  free(packed);
  test_buffer_free(&a), test_buffer_free(&w), test_buffer_free(&c), test_buffer_free(&bias), test_buffer_free(&residual);
}

static uint16_t bf16_of(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
static float of_bf16(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

typedef struct weights {
  void *rows, *packed; /* [n][k] in the form; as the kernel reads them */
  uint16_t *scales, *packed_scales;
  double *value; /* [n][k] */
} weights;
static weights random_weights(ait_weight_form form, int64_t k, int64_t n, int64_t group) {
  int64_t groups = (k + group - 1) / group, half = (k + 1) / 2;
  weights w = {calloc((size_t)(n * k) + 1, 2), test_aligned(ait_packed_weight_bytes(form, k, n)), calloc((size_t)(n * groups) + 1, 2),
               (uint16_t *)(void *)test_aligned(ait_packed_scale_bytes(groups, n)), calloc((size_t)(n * k) + 1, sizeof(double))};
  for (int64_t i = 0; i < n * groups; ++i) w.scales[i] = bf16_of(0.01f + 0.02f * fabsf(test_float()));
  for (int64_t r = 0; r < n; ++r)
    for (int64_t i = 0; i < k; ++i) {
      double scale = (double)of_bf16(w.scales[groups ? r * groups + i / group : 0]);
      int q = form == AIT_WEIGHT_INT8 ? (int)test_random(255) - 127 : (int)test_random(16) - 8;
      if (form == AIT_WEIGHT_BF16) {
        uint16_t bits = bf16_of(test_float());
        ((uint16_t *)w.rows)[r * k + i] = bits;
        w.value[r * k + i] = (double)of_bf16(bits);
      } else if (form == AIT_WEIGHT_INT8) ((int8_t *)w.rows)[r * k + i] = (int8_t)q;
      else ((uint8_t *)w.rows)[r * half + i / 2] |= (uint8_t)((q + 8) << (i % 2 * 4));
      if (form != AIT_WEIGHT_BF16) w.value[r * k + i] = q * scale;
    }
  ait_pack_weight(w.packed, form, w.rows, k, n);
  ait_pack_scales(w.packed_scales, w.scales, groups, n);
  return w;
}
static void weights_free(weights *w) { free(w->rows), free(w->packed), free(w->scales), free(w->packed_scales), free(w->value); }

/* What the kernel makes of a[i]: itself, or its 8 bits times their scale. */
static double left_value(ait_weight_form form, const float *row, int64_t k, int64_t i) {
  if (form == AIT_WEIGHT_BF16) return (double)row[i];
  float most = 0;
  for (int64_t j = i / AIT_QUANT_GROUP * AIT_QUANT_GROUP; j < k && j < (i / AIT_QUANT_GROUP + 1) * AIT_QUANT_GROUP; ++j)
    most = fmaxf(most, fabsf(row[j]));
  return most == 0 ? 0 : (double)(most / 127.0f) * round((double)(row[i] * (127.0f / most)));
}

static void check_gemm_weight(const test_isa *isa, ait_weight_form form, int64_t m, int64_t n, int64_t k, int64_t group) {
  const int64_t as = k + test_random(4), cs = n + test_random(4), rs = n + test_random(3);
  test_buffer a = test_buffer_random(m * as), c = test_buffer_create(m * cs), bias = test_buffer_random(n),
              residual = test_buffer_random(m * rs);
  weights w = random_weights(form, k, n, group);
  ait_gemm_weight_f32 g = {.m = m,
                           .n = n,
                           .k = k,
                           .a = a.data,
                           .a_stride = as,
                           .form = form,
                           .group = group,
                           .b = w.packed,
                           .scales = w.packed_scales,
                           .c = c.data,
                           .c_stride = cs,
                           .ep = random_epilogue(&bias, &residual, rs)};
  ait_gemm_weight_f32_plan(&isa->table, &g, 1 + (int32_t)test_random(4));
  if (test_random(2)) g.row_parts = 1 + test_random(3), g.column_parts = 1 + test_random(3);
  run_units(isa->table.gemm_weight_f32, &g, ait_gemm_weight_f32_units(&g), ait_gemm_weight_f32_scratch(&isa->table, &g));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < cs; ++j) {
      const float *got = c.data + i * cs + j;
      if (j >= n) {
        assert_true(test_is_pattern(got));
        continue;
      }
      double sum = 0, magnitude = 1;
      for (int64_t x = 0; x < k; ++x) {
        double v = left_value(form, a.data + i * as, k, x) * w.value[j * k + x];
        sum += v;
        magnitude += fabs(v);
      }
      double want = ref_epilogue(sum, j, &g.ep, (double)residual.data[i * rs + j]);
      TEST_NEAR((double)*got, want, 1e-6 * magnitude + 1e-6 * fabs(want), "%s form %d: %d x %d x %d at %d, %d act %d", isa->name, (int)form,
                (int)m, (int)n, (int)k, (int)i, (int)j, (int)g.ep.act);
    }
  /* each row by itself gives the same bits: what a sequence gets does not depend on its batch */
  float *row = calloc((size_t)n + 1, sizeof(float));
  for (int64_t i = 0; i < m; ++i) {
    ait_gemm_weight_f32 one = g;
    one.m = one.row_parts = one.column_parts = 1;
    one.a += i * as;
    one.c = row;
    if (one.ep.residual) one.ep.residual += i * rs;
    run_units(isa->table.gemm_weight_f32, &one, 1, ait_gemm_weight_f32_scratch(&isa->table, &one));
    assert_memory_equal(row, c.data + i * cs, (size_t)n * sizeof(float));
  }
  free(row);
  weights_free(&w);
  test_buffer_free(&a), test_buffer_free(&c), test_buffer_free(&bias), test_buffer_free(&residual);
}

static void gemm_weight(void **state) {
  AIT_UNUSED(state);
  static const int64_t shapes[][3] = {{1, 300, 700}, {2, 130, 333}, {3, 129, 65}, {4, 200, 500}, {29, 100, 641}, {67, 70, 330},
                                      {1, 17, 2000}, {7, 100, 1},   {5, 1, 320},  {600, 33, 64}, {6, 43, 2500}};
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int form = 0; form < AIT_WEIGHT_FORM_COUNT; ++form) {
      for (int64_t m = 0; m <= 9; ++m)
        for (int64_t n = 1; n <= 33; n += 2) check_gemm_weight(&isas[t], (ait_weight_form)form, m, n, (m * 17 + n * 5) % 103, 32);
      for (size_t s = 0; s < AIT_COUNT(shapes); ++s)
        check_gemm_weight(&isas[t], (ait_weight_form)form, shapes[s][0], shapes[s][1], shapes[s][2], 32 << test_random(3));
    }
}

/* Largest magnitudes everywhere, zeros, and what is not finite. */
static void gemm_weight_extremes(void **state) {
  AIT_UNUSED(state);
  enum { K = 64, N = 16 };
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int form = AIT_WEIGHT_INT8; form < AIT_WEIGHT_FORM_COUNT; ++form) {
      int8_t rows[N * K];
      uint16_t scales[N * 2], packed_scales[N * 2];
      float a[3 * K], c[3 * N];
      void *packed = test_aligned(ait_packed_weight_bytes((ait_weight_form)form, K, N));
      memset(rows, form == AIT_WEIGHT_INT8 ? -127 : 0xff, sizeof rows); /* int4: 15, that is 7 */
      for (int i = 0; i < N * 2; ++i) scales[i] = bf16_of(1);
      for (int i = 0; i < K; ++i) a[i] = -127, a[K + i] = 0, a[2 * K + i] = i == 40 ? INFINITY : 1;
      ait_pack_weight(packed, (ait_weight_form)form, rows, K, N);
      ait_pack_scales(packed_scales, scales, 2, N);
      ait_gemm_weight_f32 g = {.m = 3,
                               .n = N,
                               .k = K,
                               .a = a,
                               .a_stride = K,
                               .form = (ait_weight_form)form,
                               .group = 32,
                               .b = packed,
                               .scales = packed_scales,
                               .c = c,
                               .c_stride = N,
                               .row_parts = 1,
                               .column_parts = 1};
      run_units(isas[t].table.gemm_weight_f32, &g, 1, ait_gemm_weight_f32_scratch(&isas[t].table, &g));
      for (int j = 0; j < N; ++j) {
        TEST_NEAR((double)c[j], form == AIT_WEIGHT_INT8 ? 127.0 * 127 * K : -127.0 * 7 * K, 1e-3, "%s extremes", isas[t].name);
        assert_true(c[N + j] == 0);
        assert_true(isnan(c[2 * N + j]));
      }
      free(packed);
    }
}

static void gemm_small(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int64_t m = 0; m <= 33; ++m)
      for (int64_t n = 1; n <= 33; ++n) check_gemm(&isas[t], m, n, (m * 7 + n * 5) % 34, 1, 1, test_random(2));
}

static void gemm_large(void **state) {
  AIT_UNUSED(state);
  static const int64_t shapes[][3] = {{1, 300, 700}, {2, 130, 333},  {3, 129, 65},  {4, 200, 500},   {29, 100, 641}, {200, 70, 330},
                                      {600, 40, 20}, {64, 256, 256}, {15, 520, 96}, {181, 320, 512}, {1, 17, 2000},  {7, 1000, 1}};
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (size_t s = 0; s < AIT_COUNT(shapes); ++s)
      for (int r = 0; r < 3; ++r) check_gemm(&isas[t], shapes[s][0], shapes[s][1], shapes[s][2], 1, 1, r % 2);
}

static void gemm_batched(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int r = 0; r < 40; ++r)
      check_gemm(&isas[t], 1 + test_random(20), 1 + test_random(40), 1 + test_random(40), 1 + test_random(3), 1 + test_random(3), r % 2);
}

static int64_t out_size(int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t pad) {
  int64_t reach = (kernel - 1) * dilation + 1;
  return in + 2 * pad < reach ? 0 : (in + 2 * pad - reach) / stride + 1;
}

static void check_conv(const test_isa *isa, ait_image_dims d, int64_t groups, int64_t ic, int64_t oc) {
  for (int i = 0; i < 3; ++i) {
    if (d.out[i] == 0) d.out[i] = out_size(d.in[i], d.kernel[i], d.stride[i], d.dilation[i], d.pad[i]);
    if (d.out[i] <= 0) return;
  }
  const int64_t in_pixels = d.batch * d.in[0] * d.in[1] * d.in[2], out_pixels = d.batch * d.out[0] * d.out[1] * d.out[2];
  const int64_t xs = ic + (test_random(3) ? 0 : 3), ys = oc + (test_random(3) ? 0 : 5), rs = oc + test_random(2), icg = ic / groups,
                taps = d.kernel[0] * d.kernel[1] * d.kernel[2];
  test_buffer x = test_buffer_random(in_pixels * xs), w = test_buffer_random(oc * icg * taps), y = test_buffer_create(out_pixels * ys),
              bias = test_buffer_random(oc), residual = test_buffer_random(out_pixels * rs);
  float *packed = test_aligned(ait_conv_weight_bytes(groups, ic, oc, d.kernel));
  const int64_t strides[5] = {icg * taps, taps, d.kernel[1] * d.kernel[2], d.kernel[2], 1};
  ait_pack_conv_weight(packed, w.data, groups, ic, oc, d.kernel, strides);
  ait_conv_f32 c = {.d = d,
                    .groups = groups,
                    .ic = ic,
                    .oc = oc,
                    .x = x.data,
                    .x_stride = xs,
                    .w = packed,
                    .y = y.data,
                    .y_stride = ys,
                    .ep = random_epilogue(&bias, &residual, rs)};
  ait_conv_f32_plan(&isa->table, &c, 1 + (int32_t)test_random(4));
  if (test_random(2)) c.row_parts = 1 + test_random(3), c.column_parts = 1 + test_random(3);
  run_units(isa->table.conv_f32, &c, ait_conv_f32_units(&c), ait_conv_f32_scratch(&isa->table, &c));
  for (int64_t p = 0; p < out_pixels; ++p) {
    int64_t at[3] = {p / d.out[2] / d.out[1] % d.out[0], p / d.out[2] % d.out[1], p % d.out[2]}, n = p / d.out[2] / d.out[1] / d.out[0];
    for (int64_t o = 0; o < ys; ++o) {
      const float *got = y.data + p * ys + o;
      if (o >= oc) {
        assert_true(test_is_pattern(got));
        continue;
      }
      double magnitude, acc = ref_conv_at(&d, x.data, xs, w.data, groups, ic, oc, n, at, o, &magnitude);
      double want = ref_epilogue(acc, o, &c.ep, (double)residual.data[p * rs + o]);
      TEST_NEAR((double)*got, want, 1e-6 * (magnitude + 1), "%s conv %dx%dx%d k %dx%dx%d ic %d oc %d g %d pixel %d channel %d", isa->name,
                (int)d.in[0], (int)d.in[1], (int)d.in[2], (int)d.kernel[0], (int)d.kernel[1], (int)d.kernel[2], (int)ic, (int)oc,
                (int)groups, (int)p, (int)o);
    }
  }
  free(packed);
  test_buffer_free(&x), test_buffer_free(&w), test_buffer_free(&y), test_buffer_free(&bias), test_buffer_free(&residual);
}

/* A 4 x 4 input patch takes part in each output, and the transformations add up to four of its values. */
static void check_winograd(const test_isa *isa, int64_t batch, int64_t h, int64_t w, int64_t pad, int64_t ic, int64_t oc) {
  ait_image_dims d = {batch, {1, h, w}, {1, h + 2 * pad - 2, w + pad - 1}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, pad, pad}};
  if (d.out[1] < 1 || d.out[2] < 1) return;
  assert_true(ait_winograd_fits(&d, 1));
  const int64_t in_pixels = batch * h * w, out_pixels = batch * d.out[1] * d.out[2];
  const int64_t xs = ic + (test_random(3) ? 0 : 3), ys = oc + (test_random(3) ? 0 : 5), rs = oc + test_random(2),
                strides[4] = {ic * 9, 9, 3, 1};
  test_buffer x = test_buffer_random(in_pixels * xs), weight = test_buffer_random(oc * ic * 9), y = test_buffer_create(out_pixels * ys),
              bias = test_buffer_random(oc), residual = test_buffer_random(out_pixels * rs);
  float *packed = test_aligned(ait_winograd_weight_bytes(ic, oc));
  ait_pack_winograd_weight(packed, weight.data, ic, oc, strides);
  ait_winograd_f32 c = {.d = d,
                        .ic = ic,
                        .oc = oc,
                        .x = x.data,
                        .x_stride = xs,
                        .w = packed,
                        .y = y.data,
                        .y_stride = ys,
                        .ep = random_epilogue(&bias, &residual, rs)};
  ait_winograd_f32_plan(&isa->table, &c, 1 + (int32_t)test_random(4));
  if (test_random(2)) c.row_parts = 1 + test_random(3), c.column_parts = 1 + test_random(3);
  run_units(isa->table.winograd_f32, &c, ait_winograd_f32_units(&c), ait_winograd_f32_scratch(&isa->table, &c));
  for (int64_t p = 0; p < out_pixels; ++p) {
    int64_t at[3] = {0, p / d.out[2] % d.out[1], p % d.out[2]}, n = p / d.out[2] / d.out[1];
    for (int64_t o = 0; o < ys; ++o) {
      const float *got = y.data + p * ys + o;
      if (o >= oc) {
        assert_true(test_is_pattern(got));
        continue;
      }
      double magnitude, acc = ref_conv_at(&d, x.data, xs, weight.data, 1, ic, oc, n, at, o, &magnitude);
      TEST_NEAR((double)*got, ref_epilogue(acc, o, &c.ep, (double)residual.data[p * rs + o]), 1e-6 * (4 * (double)ic + magnitude + 1),
                "%s winograd %dx%d pad %d ic %d oc %d pixel %d channel %d", isa->name, (int)h, (int)w, (int)pad, (int)ic, (int)oc, (int)p,
                (int)o);
    }
  }
  free(packed);
  test_buffer_free(&x), test_buffer_free(&weight), test_buffer_free(&y), test_buffer_free(&bias), test_buffer_free(&residual);
}

static void winograd(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t) {
    for (int64_t n = 1; n <= 33; ++n)
      check_winograd(&isas[t], 1 + test_random(3), 1 + test_random(9), 1 + test_random(9), test_random(3), n, 34 - n);
    check_winograd(&isas[t], 2, 17, 21, 1, 64, 96); /* several blocks */
    check_winograd(&isas[t], 1, 7, 7, 1, 330, 40);  /* the reduction in two blocks */
  }
}

static void conv_random(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int r = 0; r < 600; ++r) {
      int64_t groups = test_random(4) ? 1 : 1 + test_random(4), dims = 1 + test_random(3);
      ait_image_dims d = {.batch = 1 + test_random(3)};
      for (int i = 0; i < 3; ++i) {
        bool used = i >= 3 - dims;
        d.in[i] = used ? 1 + test_random(dims == 3 ? 7 : 17) : 1;
        d.kernel[i] = used ? 1 + test_random(4) : 1;
        d.stride[i] = used ? 1 + test_random(3) : 1;
        d.dilation[i] = used && test_random(4) == 0 ? 1 + test_random(3) : 1;
        d.pad[i] = used ? test_random(3) : 0;
      }
      check_conv(&isas[t], d, groups, groups * (1 + test_random(20)), groups * (1 + test_random(40)));
    }
}

/* Shapes that take each way through the kernel: packed tiles over row ends, long rows, blocks of several images, one-sided padding. */
static void conv_shapes(void **state) {
  AIT_UNUSED(state);
  static const struct {
    ait_image_dims d;
    int64_t groups, ic, oc;
  } cases[] = {
      {{1, {1, 7, 7}, {0}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}}, 1, 40, 160},
      {{5, {1, 7, 7}, {0}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}}, 1, 16, 130},
      {{9, {1, 3, 3}, {0}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}}, 1, 8, 140},
      {{2, {1, 8, 8}, {0}, {1, 1, 1}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}}, 1, 70, 128},
      {{1, {1, 1, 1300}, {0}, {1, 1, 5}, {1, 1, 2}, {1, 1, 1}, {0, 0, 2}}, 1, 5, 20},
      {{2, {1, 1, 1100}, {0}, {1, 1, 3}, {1, 1, 1}, {1, 1, 4}, {0, 0, 4}}, 1, 3, 17},
      {{1, {1, 30, 30}, {0}, {1, 7, 7}, {1, 2, 2}, {1, 1, 1}, {0, 3, 3}}, 1, 3, 64},
      {{1, {1, 20, 20}, {0}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}}, 1, 400, 33},
      {{3, {2, 5, 6}, {0}, {2, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, 1, 6, 130},
      {{1, {1, 9, 9}, {1, 10, 10}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}}, 1, 12, 16}, /* pads only before */
      {{1, {1, 9, 9}, {1, 9, 9}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}}, 1, 12, 16},   /* pads only behind */
      {{2, {1, 6, 6}, {0}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}}, 8, 32, 32},
      {{1, {1, 12, 12}, {0}, {1, 3, 3}, {1, 1, 1}, {1, 3, 3}, {0, 3, 3}}, 1, 330, 20},
  };
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (size_t i = 0; i < AIT_COUNT(cases); ++i)
      for (int r = 0; r < 3; ++r) check_conv(&isas[t], cases[i].d, cases[i].groups, cases[i].ic, cases[i].oc);
}

/* NaN and infinity are not lost in relu and clamps, nor in padding. */
static void gemm_not_finite(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int act = 0; act <= AIT_ACT_CLAMP; ++act) {
      float a[3] = {NAN, INFINITY, -INFINITY}, c[3 * 20], *packed = test_aligned(ait_packed_b_bytes(1, 20)), ones[20];
      for (int i = 0; i < 20; ++i) ones[i] = 1;
      ait_pack_b_f32 pack = {.src = ones, .dst = packed, .k = 1, .n = 20, .k_stride = 20, .n_stride = 1, .batch = {1, 1}};
      run_units(isas[t].table.pack_b_f32, &pack, 2, 0);
      ait_gemm_f32 g = {.m = 3,
                        .n = 20,
                        .k = 1,
                        .a = a,
                        .a_stride = 1,
                        .b = packed,
                        .c = c,
                        .c_stride = 20,
                        .batch = {1, 1},
                        .row_parts = 1,
                        .column_parts = 1,
                        .ep = {.act = (ait_act)act, .p = -2, .q = 6}};
      run_units(isas[t].table.gemm_f32, &g, 1, ait_gemm_f32_scratch(&isas[t].table, &g));
      for (int j = 0; j < 20; ++j) {
        assert_true(isnan(c[j]));
        assert_true(c[20 + j] == (act == AIT_ACT_CLAMP ? 6.0f : INFINITY));
        assert_true(c[40 + j] == (act == AIT_ACT_CLAMP ? -2.0f : act == AIT_ACT_RELU ? 0.0f : -INFINITY));
      }
      free(packed);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gemm_small),  cmocka_unit_test(gemm_weight),  cmocka_unit_test(gemm_weight_extremes),
      cmocka_unit_test(gemm_large),  cmocka_unit_test(gemm_batched), cmocka_unit_test(winograd),
      cmocka_unit_test(conv_random), cmocka_unit_test(conv_shapes),  cmocka_unit_test(gemm_not_finite),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
