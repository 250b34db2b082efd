/* One line per kernel, shape and instruction set: GFLOP/s for arithmetic, GB/s for movement. `kernels_bench [isa [part of a
 * name]]`; about 10 seconds.
 * Times are this thread's CPU time, best of the repetitions, so that a busy machine does not spoil them. */
#include "base/base.h"
#include "kernels/kernels.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SECONDS 0.04

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *floats(int64_t count) {
  float *p = aligned_alloc(64, ((size_t)count * sizeof(float) + 127) & ~(size_t)63);
  if (!p) exit(1);
  for (int64_t i = 0; i < count; ++i) p[i] = (float)(i * 2654435761u % 1000) * 0.002f - 1.0f;
  return p;
}

/* bfloat16, also for who reads them as bytes. */
static uint16_t *halves(int64_t count) {
  uint16_t *p = (uint16_t *)(void *)floats(count / 2 + 1);
  for (int64_t i = 0; i < count; ++i) p[i] = (uint16_t)(0x3e00 + i * 2654435761u % 256 + i % 3 * 0x4000);
  return p;
}

static const char *only = ""; /* lines whose name holds this */

static void line(const ait_kernels *k, const char *what, ait_kernel_fn fn, const void *args, int64_t units, size_t scratch_bytes,
                 double work, const char *unit) {
  if (!strstr(what, only)) return;
  void *scratch = scratch_bytes ? floats((int64_t)(scratch_bytes / sizeof(float) + 1)) : NULL;
  double best = 1e9, spent = 0;
  int64_t repeat = 1;
  fn(args, 0, units, scratch); /* makes the pages */
  while (spent < SECONDS) {
    double t = cpu_seconds();
    for (int64_t i = 0; i < repeat; ++i) fn(args, 0, units, scratch);
    t = cpu_seconds() - t;
    spent += t;
    if (t < 1e-4) repeat *= 2;
    else if (t / (double)repeat < best) best = t / (double)repeat;
  }
  printf("%-8s %-44s %10.2f us %8.1f %s\n", k->isa, what, best * 1e6, work / best * 1e-9, unit);
  free(scratch);
}

/* Independent multiply-adds on registers of the table's width: what the arithmetic units give at this moment. */
static void roofline(const ait_kernels *k) {
#if defined(__x86_64__)
  double best = 1e9;
  if (k->width == 4) return; /* no fused multiply-add in the portable table */
  for (int r = 0; r < 20; ++r) {
    double t = cpu_seconds();
#define FMA(r, n) "vfmadd231ps %%" r "13, %%" r "14, %%" r #n "\n"
#define FMA10(r) FMA(r, 0) FMA(r, 1) FMA(r, 2) FMA(r, 3) FMA(r, 4) FMA(r, 5) FMA(r, 6) FMA(r, 7) FMA(r, 8) FMA(r, 9)
    for (int i = 0; i < 10000; ++i) {
      if (k->width == 16) __asm__ volatile(FMA10("zmm")::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9");
      else __asm__ volatile(FMA10("ymm")::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9");
    }
    t = cpu_seconds() - t;
    if (t < best) best = t;
  }
  printf("%-8s %-44s %10s    %8.1f GFLOP/s\n", k->isa, "roofline: multiply-add", "", 10000.0 * 10 * 2 * k->width / best * 1e-9);
#endif
}

static void gemm(const ait_kernels *k, int64_t m, int64_t n, int64_t depth) {
  float *a = floats(m * depth), *b = floats((int64_t)(ait_packed_b_bytes(depth, n) / sizeof(float))), *c = floats(m * n), *bias = floats(n);
  ait_gemm_f32 g = {.m = m,
                    .n = n,
                    .k = depth,
                    .a = a,
                    .a_stride = depth,
                    .b = b,
                    .c = c,
                    .c_stride = n,
                    .batch = {1, 1},
                    .ep = {.bias = bias, .act = AIT_ACT_RELU}};
  ait_gemm_f32_plan(k, &g, 1);
  char what[64];
  snprintf(what, sizeof what, "gemm %d x %d x %d", (int)m, (int)n, (int)depth);
  line(k, what, k->gemm_f32, &g, ait_gemm_f32_units(&g), ait_gemm_f32_scratch(k, &g), 2.0 * (double)(m * n * depth), "GFLOP/s");
  free(a), free(b), free(c), free(bias);
}

/* GB/s of weights when one row is computed, GFLOP/s else. */
static void gemm_weight(const ait_kernels *k, ait_weight_form form, int64_t m, int64_t n, int64_t depth) {
  static const char *const forms[] = {"bf16", "int8", "int4"};
  size_t bytes = ait_packed_weight_bytes(form, depth, n), scale_bytes = ait_packed_scale_bytes(depth / 32, n);
  float *a = floats(m * depth), *c = floats(m * n);
  uint16_t *b = halves((int64_t)bytes / 2), *s = halves((int64_t)scale_bytes / 2);
  ait_gemm_weight_f32 g = {
      .m = m, .n = n, .k = depth, .a = a, .a_stride = depth, .form = form, .group = 32, .b = b, .scales = s, .c = c, .c_stride = n};
  ait_gemm_weight_f32_plan(k, &g, 1);
  char what[64];
  snprintf(what, sizeof what, "gemm %s %d x %d x %d", forms[form], (int)m, (int)n, (int)depth);
  double work = m == 1 ? (double)(bytes + (form == AIT_WEIGHT_BF16 ? 0 : scale_bytes)) : 2.0 * (double)(m * n * depth);
  line(k, what, k->gemm_weight_f32, &g, ait_gemm_weight_f32_units(&g), ait_gemm_weight_f32_scratch(k, &g), work,
       m == 1 ? "GB/s" : "GFLOP/s");
  free(a), free(b), free(s), free(c);
}

static ait_image_dims square(int64_t size, int64_t kernel, int64_t stride) {
  int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  return (ait_image_dims){1, {1, size, size}, {1, out, out}, {1, kernel, kernel}, {1, stride, stride}, {1, 1, 1}, {0, pad, pad}};
}

static void conv(const ait_kernels *k, int64_t size, int64_t ic, int64_t oc, int64_t kernel, int64_t stride) {
  ait_image_dims d = square(size, kernel, stride);
  int64_t out = d.out[1] * d.out[2];
  float *x = floats(size * size * ic), *w = floats((int64_t)(ait_conv_weight_bytes(1, ic, oc, d.kernel) / sizeof(float))),
        *y = floats(out * oc), *bias = floats(oc);
  ait_conv_f32 c = {.d = d,
                    .groups = 1,
                    .ic = ic,
                    .oc = oc,
                    .x = x,
                    .x_stride = ic,
                    .w = w,
                    .y = y,
                    .y_stride = oc,
                    .ep = {.bias = bias, .act = AIT_ACT_RELU}};
  ait_conv_f32_plan(k, &c, 1);
  char what[64];
  snprintf(what, sizeof what, "conv %dx%d %d -> %d, %dx%d / %d", (int)size, (int)size, (int)ic, (int)oc, (int)kernel, (int)kernel,
           (int)stride);
  line(k, what, k->conv_f32, &c, ait_conv_f32_units(&c), ait_conv_f32_scratch(k, &c), 2.0 * (double)(out * oc * ic * kernel * kernel),
       "GFLOP/s");
  free(x), free(w), free(y), free(bias);
}

/* GFLOP/s as a direct convolution would count them, so that the two lines compare. */
static void winograd(const ait_kernels *k, int64_t batch, int64_t size, int64_t ic, int64_t oc) {
  ait_image_dims d = square(size, 3, 1);
  d.batch = batch;
  int64_t pixels = batch * size * size;
  float *x = floats(pixels * ic), *w = floats((int64_t)(ait_winograd_weight_bytes(ic, oc) / sizeof(float))), *y = floats(pixels * oc),
        *bias = floats(oc);
  ait_winograd_f32 c = {
      .d = d, .ic = ic, .oc = oc, .x = x, .x_stride = ic, .w = w, .y = y, .y_stride = oc, .ep = {.bias = bias, .act = AIT_ACT_RELU}};
  ait_winograd_f32_plan(k, &c, 1);
  char what[64];
  snprintf(what, sizeof what, "winograd %d * %dx%d %d -> %d", (int)batch, (int)size, (int)size, (int)ic, (int)oc);
  line(k, what, k->winograd_f32, &c, ait_winograd_f32_units(&c), ait_winograd_f32_scratch(k, &c), 18.0 * (double)(pixels * oc * ic),
       "GFLOP/s");
  free(x), free(w), free(y), free(bias);
}

static void depthwise(const ait_kernels *k, int64_t size, int64_t c, int64_t stride) {
  ait_image_dims d = square(size, 3, stride);
  int64_t out = d.out[1] * d.out[2];
  float *x = floats(size * size * c), *w = floats(9 * c), *y = floats(out * c), *bias = floats(c);
  ait_depthwise_f32 p = {.d = d,
                         .c = c,
                         .multiplier = 1,
                         .x = x,
                         .x_stride = c,
                         .w = w,
                         .y = y,
                         .y_stride = c,
                         .ep = {.bias = bias, .act = AIT_ACT_CLAMP, .q = 6}};
  char what[64];
  snprintf(what, sizeof what, "depthwise %dx%d %d, 3x3 / %d", (int)size, (int)size, (int)c, (int)stride);
  line(k, what, k->depthwise_f32, &p, ait_depthwise_f32_units(&p), 0, 18.0 * (double)(out * c), "GFLOP/s");
  ait_pool_f32 q = {.d = d, .pad_end = {0, 1, 1}, .c = c, .x = x, .x_stride = c, .y = y, .y_stride = c, .max = true};
  snprintf(what, sizeof what, "max pool %dx%d %d, 3x3 / %d", (int)size, (int)size, (int)c, (int)stride);
  line(k, what, k->pool_f32, &q, ait_pool_f32_units(&q), 0, 4.0 * (double)(size * size * c + out * c), "GB/s");
  free(x), free(w), free(y), free(bias);
}

static void rows(const ait_kernels *k, int64_t count, int64_t n) {
  float *x = floats(count * n), *y = floats(count * n), *w = floats(n);
  double bytes = 8.0 * (double)(count * n);
  ait_norm_f32 norm = {.rows = count, .n = n, .x = x, .x_stride = n, .weight = w, .bias = w, .y = y, .y_stride = n, .eps = 1e-5f};
  line(k, "layer norm 128 x 768", k->layer_norm_f32, &norm, count, 0, bytes, "GB/s");
  ait_softmax_f32 soft = {.outer = count, .n = n, .inner = 1, .x = x, .y = y, .scale = 1};
  line(k, "softmax 128 x 768", k->softmax_f32, &soft, count, 0, bytes, "GB/s");
  ait_reduce_f32 sum = {.outer = count, .n = n, .inner = 1, .x = x, .y = y, .op = AIT_REDUCE_SUM};
  line(k, "sum 128 x 768", k->reduce_f32, &sum, count, 0, bytes / 2, "GB/s");
  ait_copy t = {.rank = 2, .element_size = 4, .shape = {n, count}, .src = x, .dst = y, .src_stride = {1, n}, .dst_stride = {count, 1}};
  ait_copy_prepare(&t);
  line(k, "transpose 128 x 768", k->copy, &t, ait_copy_units(&t), 0, bytes, "GB/s");
  ait_copy image = {.rank = 2,
                    .element_size = 4,
                    .shape = {count * n / 3, 3},
                    .src = x,
                    .dst = y,
                    .src_stride = {1, count * n / 3},
                    .dst_stride = {3, 1}};
  ait_copy_prepare(&image);
  line(k, "3 planes of 32768 to channels last", k->copy, &image, ait_copy_units(&image), 0, bytes, "GB/s");
  free(x), free(y), free(w);
}

static void elementwise(const ait_kernels *k, const char *what, ait_ew_op op) {
  const int64_t n = 65536;
  float *x = floats(n), *y = floats(n);
  ait_ew_f32 e = {.rank = 1,
                  .shape = {n},
                  .input_count = 1,
                  .output_count = 1,
                  .instruction_count = 1,
                  .register_count = 2,
                  .inputs = {{x, AIT_F32, {1}}},
                  .outputs = {{y, AIT_F32, 1}},
                  .code = {{(uint8_t)op, 1, 0, 0, 0, 0.5f, 0.5f}}};
  ait_ew_f32_prepare(&e);
  line(k, what, k->elementwise_f32, &e, ait_ew_f32_units(&e), ait_ew_f32_scratch(k, &e), 8.0 * (double)n, "GB/s");
  free(x), free(y);
}

static void attention(const ait_kernels *k, int64_t heads, int64_t queries, int64_t keys, int64_t d) {
  float *q = floats(queries * heads * d), *kv = floats(keys * heads * d), *o = floats(queries * heads * d);
  ait_attention_f32 a = {.batch = 1,
                         .heads = heads,
                         .kv_heads = heads,
                         .q_len = queries,
                         .k_len = keys,
                         .d = d,
                         .dv = d,
                         .q = q,
                         .k = kv,
                         .v = kv,
                         .o = o,
                         .scale = 0.125f,
                         .q_stride = {0, d, heads * d},
                         .k_stride = {0, d, heads * d},
                         .v_stride = {0, d, heads * d},
                         .o_stride = {0, d, heads * d}};
  char what[64];
  snprintf(what, sizeof what, "attention %d heads, %d x %d, d %d", (int)heads, (int)queries, (int)keys, (int)d);
  line(k, what, k->attention_f32, &a, ait_attention_f32_units(&a), ait_attention_f32_scratch(k, &a),
       4.0 * (double)(heads * queries * keys * d), "GFLOP/s");
  free(q), free(kv), free(o);
}

/* The last `count` rows of each sequence over its pages of 32, bfloat16: GB/s of keys and values when decoding, else GFLOP/s. */
static void cached(const ait_kernels *k, int64_t sequences, int64_t count, int64_t heads, int64_t groups, int64_t keys, int64_t d) {
  enum { PAGE = 32 };
  int64_t table = keys / PAGE, pool = sequences * table, rows = sequences * count;
  float *q = floats(rows * heads * d), *kv = floats(rows * groups * d), *o = floats(rows * heads * d);
  uint16_t *pools = halves(pool * groups * PAGE * d);
  int32_t *spans = (int32_t *)(void *)floats(4 * sequences), *pages = (int32_t *)(void *)floats(pool);
  for (int64_t i = 0; i < sequences; ++i)
    spans[4 * i] = (int32_t)(i * count), spans[4 * i + 1] = (int32_t)count, spans[4 * i + 2] = (int32_t)(keys - count);
  for (int64_t i = 0; i < pool; ++i) pages[i] = (int32_t)i;
  ait_cached_attention_f32 a = {.rows = rows,
                                .heads = heads,
                                .groups = groups,
                                .d = d,
                                .dv = d,
                                .q = q,
                                .k = kv,
                                .v = kv,
                                .o = o,
                                .q_stride = {heads * d, d},
                                .k_stride = {groups * d, d},
                                .v_stride = {groups * d, d},
                                .o_stride = {heads * d, d},
                                .spans = spans,
                                .pages = pages,
                                .sequences = sequences,
                                .table = table,
                                .page = PAGE,
                                .pool_pages = pool,
                                .form = AIT_POOL_BF16,
                                .k_pool = pools,
                                .v_pool = pools,
                                .scale = 0.125f};
  char what[64];
  double seen = (double)rows * ((double)keys - (double)(count - 1) / 2);
  snprintf(what, sizeof what, "cached attention %d x %d/%d heads, %d keys", (int)rows, (int)heads, (int)groups, (int)keys);
  line(k, what, k->cached_attention_f32, &a, ait_cached_attention_f32_units(&a), ait_cached_attention_f32_scratch(k, &a),
       count == 1 ? 4.0 * (double)(sequences * groups * keys * d) : 4.0 * seen * (double)(heads * d), count == 1 ? "GB/s" : "GFLOP/s");
  line(k, "cache store", k->cache_store_f32, &a, ait_cache_store_f32_units(&a), 0, 12.0 * (double)(rows * groups * d), "GB/s");
  free(q), free(kv), free(o), free(pools), free(spans), free(pages);
}

/* One sequence of `rows` tokens. GFLOP/s. */
static void cached_conv1d(const ait_kernels *k, int64_t rows, int64_t channels) {
  enum { TAPS = 4 };
  const int32_t span[4] = {0, (int32_t)rows, 0, 0};
  float *x = floats(rows * channels), *w = floats(TAPS * channels), *y = floats(rows * channels), *state = floats((TAPS - 1) * channels);
  ait_cached_conv1d_f32 c = {.rows = rows,
                             .channels = channels,
                             .taps = TAPS,
                             .x = x,
                             .weight = w,
                             .x_stride = channels,
                             .y = y,
                             .y_stride = channels,
                             .spans = {span, 1},
                             .state = state,
                             .act = AIT_ACT_SILU};
  char what[64];
  snprintf(what, sizeof what, "cached conv + silu %d x %d", (int)rows, (int)channels);
  line(k, what, k->cached_conv1d_f32, &c, ait_cached_conv1d_f32_units(&c), 0, 2.0 * TAPS * (double)(rows * channels), "GFLOP/s");
  free(x), free(w), free(y), free(state);
}

/* One sequence. GFLOP/s, five operations for each cell of the state. */
static void cached_scan(const ait_kernels *k, int64_t rows, int64_t heads, int64_t width, int64_t size) {
  const int32_t span[4] = {0, (int32_t)rows, 0, 0};
  bool matrix = width == 1;
  float *u = floats(rows * heads * width), *dt = floats(rows * heads), *a = floats(heads * size), *bc = floats(rows * size),
        *y = floats(rows * heads * width), *state = floats(heads * width * size);
  for (int64_t i = 0; i < rows * heads; ++i) dt[i] = -fabsf(dt[i]);
  for (int64_t i = 0; i < heads * size; ++i) a[i] = fabsf(a[i]);
  ait_cached_scan_f32 p = {.rows = rows,
                           .heads = heads,
                           .width = width,
                           .groups = 1,
                           .size = size,
                           .u = u,
                           .dt = dt,
                           .a = a,
                           .b = bc,
                           .c = bc,
                           .a_matrix = matrix,
                           .u_stride = {heads * width, width},
                           .dt_stride = {heads, 1},
                           .b_stride = {size, size},
                           .c_stride = {size, size},
                           .y_stride = {heads * width, width},
                           .y = y,
                           .spans = {span, 1},
                           .state = state};
  char what[64];
  snprintf(what, sizeof what, "cached scan %d tokens, %d heads, %d x %d", (int)rows, (int)heads, (int)width, (int)size);
  line(k, what, k->cached_scan_f32, &p, ait_cached_scan_f32_units(&p), ait_cached_scan_f32_scratch(&p),
       5.0 * (double)(rows * heads * width * size), "GFLOP/s");
  free(u), free(dt), free(a), free(bc), free(y), free(state);
}

static void rotary(const ait_kernels *k, int64_t count, int64_t heads, int64_t d) {
  float *x = floats(count * heads * d), *y = floats(count * heads * d), *table = floats(count * d);
  ait_rotary_f32 p = {.outer = {1, count, heads},
                      .d = d,
                      .x = x,
                      .cos = table,
                      .sin = table,
                      .y = y,
                      .x_stride = {0, heads * d, d},
                      .cos_stride = {0, d, 0},
                      .sin_stride = {0, d, 0},
                      .y_stride = {0, heads * d, d}};
  char what[64];
  snprintf(what, sizeof what, "rotary %d x %d heads of %d", (int)count, (int)heads, (int)d);
  line(k, what, k->rotary_f32, &p, ait_rotary_f32_units(&p), 0, 8.0 * (double)(count * heads * d), "GB/s");
  free(x), free(y), free(table);
}

/* GB/s of weights. */
static void expert(const ait_kernels *k, int64_t rows, int64_t n, int64_t depth) {
  enum { EXPERTS = 8 };
  float *x = floats(rows * depth), *w = floats(EXPERTS * n * depth), *y = floats(rows * n);
  int64_t *experts = calloc((size_t)rows, sizeof *experts);
  if (!experts) exit(1);
  for (int64_t i = 0; i < rows; ++i) experts[i] = i * 3 % EXPERTS;
  ait_expert_f32 p = {.rows = rows,
                      .n = n,
                      .k = depth,
                      .count = EXPERTS,
                      .x = x,
                      .x_stride = depth,
                      .weight = w,
                      .experts = experts,
                      .index_size = 8,
                      .y = y};
  char what[64];
  snprintf(what, sizeof what, "experts %d rows x %d x %d", (int)rows, (int)n, (int)depth);
  line(k, what, k->expert_f32, &p, ait_expert_f32_units(&p), 0, 4.0 * (double)((rows < EXPERTS ? rows : EXPERTS) * n * depth), "GB/s");
  free(x), free(w), free(y), free(experts);
}

/* Packed. GFLOP/s; with few rows it is the weights that take the time. */
static void expert_gemm(const ait_kernels *k, int form, int64_t rows, int64_t n, int64_t depth) {
  enum { EXPERTS = 8 };
  static const char *const forms[] = {"fp32", "bf16", "int8", "int4"};
  ait_expert_gemm_f32 p = {.rows = rows, .n = n, .k = depth, .count = EXPERTS, .few_bits = form > 0, .group = form > 1 ? 32 : 0};
  p.form = form > 0 ? (ait_weight_form)(form - 1) : AIT_WEIGHT_BF16;
  size_t bytes = form > 0 ? ait_packed_weight_bytes(p.form, depth, n) : ait_packed_b_bytes(depth, n),
         scale_bytes = ait_packed_scale_bytes(depth / 32, n);
  float *x = floats(rows * depth), *w = floats((int64_t)(EXPERTS * bytes / sizeof(float))),
        *s = floats((int64_t)(EXPERTS * scale_bytes / sizeof(float))), *y = floats(rows * n);
  int32_t begin[EXPERTS + 1];
  for (int e = 0; e <= EXPERTS; ++e) begin[e] = (int32_t)(rows * e / EXPERTS);
  p.x = x, p.weight = w, p.scales = (const uint16_t *)(const void *)s, p.y = y, p.begin = begin;
  ait_expert_gemm_f32_plan(k, &p, 1);
  char what[64];
  snprintf(what, sizeof what, "experts %s packed %d rows x %d x %d", forms[form], (int)rows, (int)n, (int)depth);
  line(k, what, k->expert_gemm_f32, &p, ait_expert_gemm_f32_units(&p), ait_expert_gemm_f32_scratch(k, &p), 2.0 * (double)(rows * n * depth),
       "GFLOP/s");
  free(x), free(w), free(s), free(y);
}

static void lstm(const ait_kernels *k, int64_t count, int64_t n) {
  float *g = floats(count * 4 * n), *c = floats(count * n), *h = floats(count * n);
  ait_lstm_cell_f32 p = {.rows = count,
                         .n = n,
                         .gates = g,
                         .gates_stride = 4 * n,
                         .c_in = c,
                         .c_in_stride = n,
                         .c_out = c,
                         .c_out_stride = n,
                         .h_out = h,
                         .h_out_stride = n};
  line(k, "lstm cell 16 x 256", k->lstm_cell_f32, &p, count, 0, 28.0 * (double)(count * n), "GB/s");
  free(g), free(c), free(h);
}

static void bench(const ait_kernels *k) {
  roofline(k);
  gemm(k, 1, 64, 64);
  gemm(k, 1, 768, 768);
  gemm(k, 4, 768, 768);
  gemm(k, 16, 768, 768);
  gemm(k, 128, 768, 768);
  gemm(k, 128, 3072, 768);
  gemm(k, 128, 768, 3072);
  for (int form = 0; form < AIT_WEIGHT_FORM_COUNT; ++form) {
    gemm_weight(k, (ait_weight_form)form, 1, 4096, 4096);
    gemm_weight(k, (ait_weight_form)form, 16, 1024, 1024);
    gemm_weight(k, (ait_weight_form)form, 128, 1024, 1024);
    gemm_weight(k, (ait_weight_form)form, 512, 1024, 4096);
  }
  conv(k, 224, 3, 64, 7, 2);
  conv(k, 56, 64, 64, 3, 1);
  conv(k, 28, 128, 128, 3, 1);
  conv(k, 14, 256, 256, 3, 1);
  conv(k, 7, 512, 512, 3, 1);
  winograd(k, 1, 56, 64, 64);
  winograd(k, 1, 28, 128, 128);
  winograd(k, 1, 14, 256, 256);
  winograd(k, 1, 7, 512, 512);
  winograd(k, 64, 4, 32, 64);
  winograd(k, 64, 2, 64, 96);
  conv(k, 56, 64, 256, 1, 1);
  conv(k, 14, 1024, 256, 1, 1);
  conv(k, 56, 256, 512, 1, 2);
  depthwise(k, 56, 144, 1);
  depthwise(k, 14, 384, 1);
  rows(k, 128, 768);
  elementwise(k, "element-wise add constant 65536", AIT_EW_ADDC);
  elementwise(k, "element-wise exp 65536", AIT_EW_EXP);
  elementwise(k, "element-wise tanh 65536", AIT_EW_TANH);
  elementwise(k, "element-wise gelu 65536", AIT_EW_GELU);
  elementwise(k, "element-wise silu 65536", AIT_EW_SILU);
  attention(k, 12, 128, 128, 64);
  attention(k, 12, 1, 512, 64);
  cached(k, 1, 1, 16, 8, 1024, 64);
  cached(k, 16, 1, 16, 8, 512, 64);
  cached(k, 1, 512, 16, 8, 512, 64);
  rotary(k, 1, 16, 64);
  rotary(k, 512, 16, 64);
  cached_conv1d(k, 1, 1536);
  cached_conv1d(k, 128, 1536);
  cached_scan(k, 1, 1536, 1, 16);
  cached_scan(k, 64, 1536, 1, 16);
  cached_scan(k, 1, 24, 64, 128);
  cached_scan(k, 64, 24, 64, 128);
  expert(k, 2, 1024, 512);
  expert(k, 64, 1024, 512);
  for (int form = 0; form < 4; ++form) {
    expert_gemm(k, form, 2, 1024, 512);
    expert_gemm(k, form, 64, 1024, 512);
    expert_gemm(k, form, 512, 1024, 512);
  }
  lstm(k, 16, 256);
}

int main(int argc, char **argv) {
  uint64_t features;
  if (argc > 2) only = argv[2];
  const ait_kernels *k;
  for (size_t i = 0; (k = ait_kernels_at(i, &features)) != NULL; ++i)
    if ((features & ~ait_cpu_features()) == 0 && (argc < 2 || strcmp(argv[1], k->isa) == 0)) bench(k);
  return 0;
}
