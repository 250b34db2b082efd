#define AIT_ISA wide16
#define VL 16
#include "kernels/isa.h"
#include "kernels/template/rows.inc"
#include "kernels/template/depthwise_f32.inc"
#include "kernels/template/pool_f32.inc"
#include "kernels/ref/ref.h"
#include "kernels/testing.h"

static size_t all_isas(test_isa *out) {
  size_t n = test_isas(out);
  out[n++] = (test_isa){"wide16",
                        {.isa = "wide16",
                         .width = 16,
                         .depthwise_f32 = ait_k_depthwise_f32_wide16,
                         .pool_f32 = ait_k_pool_f32_wide16,
                         .global_pool_f32 = ait_k_global_pool_f32_wide16,
                         .col2im_f32 = ait_k_col2im_f32_wide16}};
  return n;
}

static bool random_dims(ait_image_dims *d, bool pooling) {
  int64_t dims = 1 + test_random(3);
  *d = (ait_image_dims){.batch = 1 + test_random(3)};
  for (int i = 0; i < 3; ++i) {
    bool used = i >= 3 - dims;
    d->in[i] = used ? 1 + test_random(dims == 3 ? 7 : 15) : 1;
    d->kernel[i] = used ? 1 + test_random(7) : 1;
    d->stride[i] = used ? 1 + test_random(3) : 1;
    d->dilation[i] = used && test_random(4) == 0 ? 1 + test_random(2) : 1;
    d->pad[i] = used ? test_random((uint32_t)(pooling ? d->kernel[i] / 2 + 1 : 4)) : 0;
    int64_t reach = (d->kernel[i] - 1) * d->dilation[i] + 1, room = d->in[i] + 2 * d->pad[i] - reach;
    if (room < 0) return false;
    d->out[i] = room / d->stride[i] + 1;
  }
  return true;
}

static void pixel_of(const ait_image_dims *d, int64_t p, int64_t *n, int64_t at[3]) {
  at[2] = p % d->out[2];
  at[1] = p / d->out[2] % d->out[1];
  at[0] = p / d->out[2] / d->out[1] % d->out[0];
  *n = p / d->out[2] / d->out[1] / d->out[0];
}

static void depthwise(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int r = 0; r < 900; ++r) {
      ait_image_dims d;
      if (!random_dims(&d, false)) continue;
      int64_t multiplier = test_random(6) ? 1 : 1 + test_random(3), c = (1 + test_random(35)) * multiplier, ic = c / multiplier;
      int64_t xs = ic + test_random(3), ys = c + test_random(3), taps = d.kernel[0] * d.kernel[1] * d.kernel[2];
      int64_t in = d.batch * d.in[0] * d.in[1] * d.in[2], out = d.batch * d.out[0] * d.out[1] * d.out[2];
      test_buffer x = test_buffer_random(in * xs), w = test_buffer_random(c * taps), plain = test_buffer_create(c * taps),
                  y = test_buffer_create(out * ys), bias = test_buffer_random(c), residual = test_buffer_random(out * c);
      for (int64_t i = 0; i < taps; ++i)
        for (int64_t j = 0; j < c; ++j) plain.data[j * taps + i] = w.data[i * c + j];
      ait_depthwise_f32 p = {
          .d = d, .c = c, .multiplier = multiplier, .x = x.data, .x_stride = xs, .w = w.data, .y = y.data, .y_stride = ys};
      p.ep = (ait_epilogue){.bias = test_random(2) ? bias.data : NULL,
                            .residual = test_random(3) ? NULL : residual.data,
                            .residual_stride = c,
                            .residual_after = test_random(2),
                            .act = (ait_act)test_random(AIT_ACT_SOFTPLUS),
                            .p = -0.3f,
                            .q = 0.6f};
      int64_t units = ait_depthwise_f32_units(&p), cut = test_random((uint32_t)units + 1);
      isas[t].table.depthwise_f32(&p, cut, units, NULL);
      isas[t].table.depthwise_f32(&p, 0, cut, NULL);
      for (int64_t i = 0; i < out; ++i)
        for (int64_t ch = 0; ch < ys; ++ch) {
          if (ch >= c) {
            assert_true(test_is_pattern(y.data + i * ys + ch));
            continue;
          }
          int64_t n, at[3];
          pixel_of(&d, i, &n, at);
          double magnitude, acc = ref_conv_at(&d, x.data, xs, plain.data, ic, ic, c, n, at, ch, &magnitude);
          TEST_NEAR((double)y.data[i * ys + ch], ref_epilogue(acc, ch, &p.ep, (double)residual.data[i * c + ch]), 1e-6 * (magnitude + 1),
                    "%s depthwise c %d x%d kernel %dx%dx%d pixel %d channel %d", isas[t].name, (int)c, (int)multiplier, (int)d.kernel[0],
                    (int)d.kernel[1], (int)d.kernel[2], (int)i, (int)ch);
        }
      test_buffer_free(&x), test_buffer_free(&w), test_buffer_free(&plain), test_buffer_free(&y), test_buffer_free(&bias),
          test_buffer_free(&residual);
    }
}

static void pooling(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int r = 0; r < 900; ++r) {
      ait_image_dims d;
      if (!random_dims(&d, true)) continue;
      int64_t c = 1 + test_random(35), xs = c + test_random(3), ys = c + test_random(3);
      bool ceil_mode = test_random(2), max = test_random(2);
      ait_pool_f32 p = {
          .c = c, .x_stride = xs, .y_stride = ys, .max = max, .include_pad = test_random(2), .divisor = test_random(5) ? 0 : 7};
      for (int i = 0; i < 3; ++i) {
        if (!max) d.dilation[i] = 1;
        int64_t room = d.in[i] + 2 * d.pad[i] - (d.kernel[i] - 1) * d.dilation[i] - 1;
        d.out[i] = (room + (ceil_mode ? d.stride[i] - 1 : 0)) / d.stride[i] + 1;
        if ((d.out[i] - 1) * d.stride[i] >= d.in[i] + d.pad[i]) --d.out[i];
        p.pad_end[i] = d.pad[i];
      }
      p.d = d;
      int64_t in = d.batch * d.in[0] * d.in[1] * d.in[2], out = d.batch * d.out[0] * d.out[1] * d.out[2];
      test_buffer x = test_buffer_random(in * xs), y = test_buffer_create(out * ys);
      if (max && test_random(4) == 0) x.data[test_random((uint32_t)(in * xs))] = NAN;
      p.x = x.data;
      p.y = y.data;
      isas[t].table.pool_f32(&p, 0, ait_pool_f32_units(&p), NULL);
      for (int64_t i = 0; i < out; ++i)
        for (int64_t ch = 0; ch < ys; ++ch) {
          if (ch >= c) {
            assert_true(test_is_pattern(y.data + i * ys + ch));
            continue;
          }
          int64_t n, at[3];
          pixel_of(&d, i, &n, at);
          double want = ref_pool_at(&p, n, at, ch);
          TEST_NEAR((double)y.data[i * ys + ch], want, 1e-5, "%s pool max %d channel %d of %d", isas[t].name, p.max, (int)ch, (int)c);
        }
      test_buffer_free(&x), test_buffer_free(&y);
    }
}

static void global_pooling(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int64_t c = 1; c <= 33; ++c)
      for (int max = 0; max < 2; ++max) {
        int64_t pixels = 1 + test_random(100), batch = 1 + test_random(3), xs = c + test_random(2), ys = c + test_random(2);
        test_buffer x = test_buffer_random(batch * pixels * xs), y = test_buffer_create(batch * ys);
        ait_global_pool_f32 p = {
            .batch = batch, .pixels = pixels, .c = c, .x = x.data, .x_stride = xs, .y = y.data, .y_stride = ys, .max = max};
        isas[t].table.global_pool_f32(&p, 0, batch, NULL);
        for (int64_t n = 0; n < batch; ++n)
          for (int64_t ch = 0; ch < c; ++ch) {
            double acc = max ? -INFINITY : 0;
            for (int64_t i = 0; i < pixels; ++i) {
              double v = (double)x.data[(n * pixels + i) * xs + ch];
              acc = max ? fmax(acc, v) : acc + v;
            }
            TEST_NEAR((double)y.data[n * ys + ch], max ? acc : acc / (double)pixels, 1e-6, "%s global pool", isas[t].name);
          }
        test_buffer_free(&x), test_buffer_free(&y);
      }
}

/* Scatters columns into pixels, the other way round than the kernel gathers them. */
static void transposed(void **state) {
  AIT_UNUSED(state);
  test_isa isas[8];
  size_t count = all_isas(isas);
  for (size_t t = 0; t < count; ++t)
    for (int r = 0; r < 300; ++r) {
      ait_image_dims d = {.batch = 1 + test_random(2)};
      bool empty = false;
      for (int i = 0; i < 3; ++i) {
        bool used = i > 0;
        d.in[i] = used ? 1 + test_random(6) : 1;
        d.kernel[i] = used ? 1 + test_random(4) : 1;
        d.stride[i] = used ? 1 + test_random(3) : 1;
        d.dilation[i] = used ? 1 + test_random(2) : 1;
        d.pad[i] = used ? test_random(3) : 0;
        d.out[i] = (d.in[i] - 1) * d.stride[i] - 2 * d.pad[i] + (d.kernel[i] - 1) * d.dilation[i] + 1 +
                   (used ? test_random((uint32_t)d.stride[i]) : 0);
        empty |= d.out[i] <= 0;
      }
      if (empty) continue;
      int64_t c = 1 + test_random(20), ys = c + test_random(2), taps = d.kernel[1] * d.kernel[2], in = d.batch * d.in[1] * d.in[2],
              out = d.batch * d.out[1] * d.out[2];
      test_buffer columns = test_buffer_random(in * taps * c), y = test_buffer_create(out * ys), bias = test_buffer_random(c);
      double *want = calloc((size_t)(out * c), sizeof *want);
      assert_non_null(want);
      for (int64_t i = 0; i < in; ++i)
        for (int64_t k = 0; k < taps; ++k) {
          int64_t n = i / d.in[1] / d.in[2], oh = i / d.in[2] % d.in[1] * d.stride[1] - d.pad[1] + k / d.kernel[2] * d.dilation[1],
                  ow = i % d.in[2] * d.stride[2] - d.pad[2] + k % d.kernel[2] * d.dilation[2];
          if (oh < 0 || ow < 0 || oh >= d.out[1] || ow >= d.out[2]) continue;
          for (int64_t ch = 0; ch < c; ++ch)
            want[((n * d.out[1] + oh) * d.out[2] + ow) * c + ch] += (double)columns.data[(i * taps + k) * c + ch];
        }
      ait_col2im_f32 p = {
          .d = d, .c = c, .columns = columns.data, .y = y.data, .y_stride = ys, .ep = {.bias = bias.data, .act = AIT_ACT_RELU}};
      isas[t].table.col2im_f32(&p, 0, ait_col2im_f32_units(&p), NULL);
      for (int64_t i = 0; i < out; ++i)
        for (int64_t ch = 0; ch < c; ++ch)
          TEST_NEAR((double)y.data[i * ys + ch], ref_epilogue(want[i * c + ch], ch, &p.ep, 0), 1e-5, "%s col2im", isas[t].name);
      free(want);
      test_buffer_free(&columns), test_buffer_free(&y), test_buffer_free(&bias);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(depthwise), cmocka_unit_test(pooling), cmocka_unit_test(global_pooling),
                                     cmocka_unit_test(transposed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
