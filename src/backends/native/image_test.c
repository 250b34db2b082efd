/* Convolutions, pooling, resampling and attention over many shapes, against the reference. */
#include "backends/testing.h"

enum { SHAPES = 120 };

static int64_t pick(region_builder *r, int64_t low, int64_t high) {
  return low + (int64_t)((double)(rb_random(r) + 1) * 0.5 * (double)(high - low + 1)) % (high - low + 1);
}

static ait_arg ints(region_builder *r, const int64_t *v, int32_t n) {
  ait_arg items[3];
  for (int32_t i = 0; i < n; ++i) items[i] = rb_i(v[i]);
  return rb_list(r, items, (uint32_t)n);
}

typedef struct image_shape {
  int32_t spatial;
  int64_t batch, in[3], kernel[3], stride[3], pad[3], dilation[3], extra[3], out[3];
} image_shape;

/* Sizes for which torch would accept the operator. */
static void random_shape(region_builder *r, image_shape *s, bool transposed) {
  s->spatial = (int32_t)pick(r, 1, 3);
  s->batch = pick(r, 0, 3);
  for (int32_t d = 0; d < s->spatial; ++d) {
    s->kernel[d] = pick(r, 1, 4);
    s->dilation[d] = pick(r, 1, 2);
    s->stride[d] = pick(r, 1, 3);
    s->pad[d] = pick(r, 0, s->kernel[d] / 2);
    int64_t reach = (s->kernel[d] - 1) * s->dilation[d] + 1;
    s->in[d] = pick(r, transposed ? 1 : reach, reach + 9);
    s->extra[d] = pick(r, 0, s->stride[d] - 1);
    s->out[d] = (s->in[d] + 2 * s->pad[d] - reach) / s->stride[d] + 1;
    if (!transposed) continue;
    s->out[d] = (s->in[d] - 1) * s->stride[d] - 2 * s->pad[d] + reach + s->extra[d];
    if (s->out[d] < 1) s->pad[d] = 0, s->out[d] = (s->in[d] - 1) * s->stride[d] + reach + s->extra[d];
  }
}

static void image_dims(region_builder *r, const image_shape *s, int64_t channels, const int64_t *size, ait_dim out[5]) {
  out[0] = D(s->batch);
  out[1] = D(channels);
  for (int32_t d = 0; d < s->spatial; ++d) out[2 + d] = D(size[d]);
}

static void one_conv(uint64_t seed, bool transposed, const char *backend) {
  static const int64_t depths[] = {1, 3, 8, 16, 17, 40};
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  r->seed = seed * 7919 + 1;
  for (int i = 0; i < 5; ++i) (void)rb_random(r);
  image_shape s = {0};
  random_shape(r, &s, transposed);
  int64_t groups = pick(r, 0, 2) == 0 ? pick(r, 2, 4) : 1, ic = depths[pick(r, 0, 5)] * groups, oc = depths[pick(r, 0, 5)] * groups;
  if (!transposed && pick(r, 0, 3) == 0) groups = ic, oc = ic * pick(r, 1, 2); /* depthwise */
  ait_dim in[5], out[5], w[5] = {D(transposed ? ic : oc), D(transposed ? oc / groups : ic / groups)};
  image_dims(r, &s, ic, s.in, in);
  image_dims(r, &s, oc, s.out, out);
  for (int32_t d = 0; d < s.spatial; ++d) w[2 + d] = D(s.kernel[d]);
  uint32_t x = rb_input(r, AIT_F32, in, s.spatial + 2), weight = rb_weight(r, 0.3f, 0, w, s.spatial + 2),
           bias = rb_weight(r, 1, 0, SHAPE(D(oc)));
  ait_arg bias_arg = pick(r, 0, 1) ? rb_v(bias) : rb_none();
  uint32_t y = rb_node(r, "conv",
                       ARGS(rb_v(x), rb_v(weight), bias_arg, ints(r, s.stride, s.spatial), ints(r, s.pad, s.spatial),
                            ints(r, s.dilation, s.spatial), rb_i(groups), rb_b(transposed), ints(r, s.extra, s.spatial)),
                       AIT_F32, out, s.spatial + 2);
  if (pick(r, 0, 1)) {
    uint32_t z = rb_input(r, AIT_F32, out, s.spatial + 2);
    y = rb_node(r, "add", ARGS(rb_v(z), rb_v(y)), AIT_F32, out, s.spatial + 2);
  }
  if (pick(r, 0, 1)) y = rb_node(r, "silu", ARGS(rb_v(y)), AIT_F32, out, s.spatial + 2);
  rb_output(r, y);
  char what[128];
  snprintf(what, sizeof what, "%s conv %llu on %s: %d dims, ic %lld oc %lld groups %lld", transposed ? "transposed" : "plain",
           (unsigned long long)seed, backend, s.spatial, (long long)ic, (long long)oc, (long long)groups);
  rb_compare(r, what, backend, (const int64_t[]){0}, 0, 3e-5);
  rb_deinit(r);
  free(r);
}

/* Any image and padding, channels beside multiples of vectors and panels; weights packed in the blob and when first run. */
static void one_winograd(uint64_t seed, const char *knob, const char *value) {
  static const int64_t depths[] = {1, 5, 16, 17, 40, 64};
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  r->seed = seed * 6151 + 1;
  r->option = (ait_option){knob, value};
  int64_t ic = depths[pick(r, 0, 5)], oc = depths[pick(r, 0, 5)], pad[2], size[2], shape[2];
  for (int d = 0; d < 2; ++d) {
    pad[d] = pick(r, 0, 2);
    size[d] = pick(r, pad[d] > 0 ? 1 : 3, 11);
    shape[d] = size[d] + 2 * pad[d] - 2;
  }
  int64_t batch = pick(r, 1, 3), ones[2] = {1, 1}, none[2] = {0, 0};
  ait_dim in[] = {D(batch), D(ic), D(size[0]), D(size[1])}, out[] = {D(batch), D(oc), D(shape[0]), D(shape[1])};
  uint32_t x = rb_input(r, AIT_F32, in, 4), w = rb_weight(r, 0.3f, 0, SHAPE(D(oc), D(ic), D(3), D(3))),
           bias = rb_weight(r, 1, 0, SHAPE(D(oc))), z = rb_input(r, AIT_F32, out, 4);
  uint32_t y = rb_node(
      r, "conv",
      ARGS(rb_v(x), rb_v(w), rb_v(bias), ints(r, ones, 2), ints(r, pad, 2), ints(r, ones, 2), rb_i(1), rb_b(false), ints(r, none, 2)),
      AIT_F32, out, 4);
  if (pick(r, 0, 1)) y = rb_node(r, "add", ARGS(rb_v(z), rb_v(y)), AIT_F32, out, 4);
  if (pick(r, 0, 1)) y = rb_node(r, "silu", ARGS(rb_v(y)), AIT_F32, out, 4);
  rb_output(r, y);
  char what[96];
  snprintf(what, sizeof what, "winograd %llu with %s=%s: ic %lld oc %lld", (unsigned long long)seed, knob, value, (long long)ic,
           (long long)oc);
  rb_compare(r, what, "native", (const int64_t[]){0}, 0, 3e-5);
  rb_deinit(r);
  free(r);
}

static void test_winograd(void **state) {
  AIT_UNUSED(state);
  for (uint64_t i = 0; i < SHAPES; ++i) {
    one_winograd(i, "winograd", i % 8 == 0 ? "off" : "on");
    if (i % 4 == 0) one_winograd(i, "pack", "load");
  }
}

static void test_convolutions(void **state) {
  AIT_UNUSED(state);
  for (uint64_t i = 0; i < SHAPES; ++i) {
    one_conv(i, false, "native");
    one_conv(i, true, "native");
    if (i % 4 == 0) one_conv(i, i % 8 == 0, "eager");
  }
}

/* torch's rule for ceil mode: the last window starts inside the image or its left padding. */
static int64_t pooled(int64_t in, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bool ceil_mode) {
  int64_t room = in + 2 * pad - dilation * (kernel - 1) - 1;
  int64_t out = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  return ceil_mode && (out - 1) * stride >= in + pad ? out - 1 : out;
}

static void one_pool(uint64_t seed, bool max) {
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  r->seed = seed * 104729 + 3;
  for (int i = 0; i < 5; ++i) (void)rb_random(r);
  image_shape s = {0};
  random_shape(r, &s, false);
  if (!max && s.spatial == 1) s.dilation[0] = 1;
  bool ceil_mode = pick(r, 0, 1);
  for (int32_t d = 0; d < s.spatial; ++d) {
    if (!max) s.dilation[d] = 1;
    s.out[d] = pooled(s.in[d], s.kernel[d], s.stride[d], s.pad[d], s.dilation[d], ceil_mode);
  }
  int64_t c = pick(r, 1, 20);
  ait_dim in[5], out[5];
  image_dims(r, &s, c, s.in, in);
  image_dims(r, &s, c, s.out, out);
  uint32_t x = rb_input(r, AIT_F32, in, s.spatial + 2);
  ait_arg kernel = ints(r, s.kernel, s.spatial), stride = ints(r, s.stride, s.spatial), pad = ints(r, s.pad, s.spatial),
          dilation = ints(r, s.dilation, s.spatial);
  ait_arg divisor = pick(r, 0, 2) == 0 ? rb_i(3) : rb_none();
  uint32_t y = max ? rb_node(r, "max_pool", ARGS(rb_v(x), kernel, stride, pad, dilation, rb_b(ceil_mode)), AIT_F32, out, s.spatial + 2)
                   : rb_node(r, "avg_pool", ARGS(rb_v(x), kernel, stride, pad, rb_b(ceil_mode), rb_b(pick(r, 0, 1)), divisor), AIT_F32, out,
                             s.spatial + 2);
  rb_output(r, y);
  char what[96];
  snprintf(what, sizeof what, "%s pool %llu, %d dims, ceil %d", max ? "max" : "avg", (unsigned long long)seed, s.spatial, ceil_mode);
  rb_compare(r, what, "native", (const int64_t[]){0}, 0, 1e-5);
  rb_deinit(r);
  free(r);
}

static void test_pools(void **state) {
  AIT_UNUSED(state);
  for (uint64_t i = 0; i < SHAPES; ++i) {
    one_pool(i, true);
    one_pool(i, false);
  }
}

static void one_upsample(uint64_t seed) {
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  r->seed = seed * 31 + 11;
  for (int i = 0; i < 5; ++i) (void)rb_random(r);
  bool linear = pick(r, 0, 1), corners = linear && pick(r, 0, 1);
  int64_t h = pick(r, 1, 9), w = pick(r, 1, 9), oh = pick(r, 1, 20), ow = pick(r, 1, 20);
  bool scaled = !corners && pick(r, 0, 1);
  if (scaled) oh = h * 2, ow = w * 3;
  uint32_t x = rb_input(r, AIT_F32, SHAPE(D(2), D(5), D(h), D(w)));
  ait_arg scales = scaled ? LIST(rb_f(2), rb_f(3)) : rb_none();
  rb_output(r, rb_node(r, "upsample", ARGS(rb_v(x), LIST(rb_i(oh), rb_i(ow)), rb_s(linear ? "linear" : "nearest"), rb_b(corners), scales),
                       AIT_F32, SHAPE(D(2), D(5), D(oh), D(ow))));
  char what[96];
  snprintf(what, sizeof what, "upsample %llu %lldx%lld to %lldx%lld", (unsigned long long)seed, (long long)h, (long long)w, (long long)oh,
           (long long)ow);
  rb_compare(r, what, "native", (const int64_t[]){0}, 0, 1e-5);
  rb_deinit(r);
  free(r);
}

static void test_upsample(void **state) {
  AIT_UNUSED(state);
  for (uint64_t i = 0; i < SHAPES; ++i) one_upsample(i);
}

static void one_attention(uint64_t seed) {
  region_builder *r = malloc(sizeof *r);
  rb_init(r);
  r->seed = seed * 977 + 5;
  for (int i = 0; i < 5; ++i) (void)rb_random(r);
  int64_t n = pick(r, 1, 2), kv = pick(r, 1, 3), h = kv * pick(r, 1, 3), q = pick(r, 1, 40), k = pick(r, 1, 40), d = pick(r, 1, 40),
          dv = pick(r, 1, 40);
  int64_t mask = pick(r, 0, 3); /* none, causal, float, bool */
  uint32_t qv = rb_input(r, AIT_F32, SHAPE(D(n), D(h), D(q), D(d))), kvv = rb_input(r, AIT_F32, SHAPE(D(n), D(k), D(kv), D(d))),
           vv = rb_input(r, AIT_F32, SHAPE(D(n), D(kv), D(k), D(dv)));
  uint32_t keys = rb_node(r, "permute", ARGS(rb_v(kvv), LIST(rb_i(0), rb_i(2), rb_i(1), rb_i(3))), AIT_F32, SHAPE(D(n), D(kv), D(k), D(d)));
  ait_arg mask_arg = rb_none();
  if (mask == 2) mask_arg = rb_v(rb_input(r, AIT_F32, SHAPE(D(n), D(1), D(q), D(k))));
  if (mask == 3) mask_arg = rb_v(rb_input(r, AIT_BOOL, SHAPE(D(q), D(k))));
  rb_output(r,
            rb_node(r, "attention", ARGS(rb_v(qv), rb_v(keys), rb_v(vv), mask_arg, rb_b(mask == 1), pick(r, 0, 1) ? rb_f(0.3) : rb_none()),
                    AIT_F32, SHAPE(D(n), D(h), D(q), D(dv))));
  char what[96];
  snprintf(what, sizeof what, "attention %llu, mask %lld", (unsigned long long)seed, (long long)mask);
  rb_compare(r, what, "native", (const int64_t[]){0}, 2, 2e-5);
  rb_deinit(r);
  free(r);
}

static void test_attention(void **state) {
  AIT_UNUSED(state);
  for (uint64_t i = 0; i < SHAPES; ++i) one_attention(i);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_winograd), cmocka_unit_test(test_convolutions), cmocka_unit_test(test_pools),
                                     cmocka_unit_test(test_upsample), cmocka_unit_test(test_attention)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
