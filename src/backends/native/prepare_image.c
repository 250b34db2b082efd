/* Convolutions, pooling, resampling and batch norm: images with channels last. */
#include "backends/native/prepare.h"

#include <math.h>

/* ---- images ----------------------------------------------------------------------------------------------------------------------*/
/* A value [N, C, spatial...] (or [C, spatial...]) as kernels see it. */
typedef struct image {
  nat_view view;                     /* rank 2 + spatial, the batch dim present */
  int64_t batch, c, size[3], stride; /* D, H, W; elements from pixel to pixel */
} image;

static void insert_batch(nat_view *v) {
  for (int32_t d = v->rank; d > 0; --d) {
    v->shape[d] = v->shape[d - 1];
    v->strides[d] = v->strides[d - 1];
  }
  v->shape[0] = 1;
  v->strides[0] = 0;
  v->rank++;
}

/* Pixels in row-major order, equally far apart, channels of a pixel side by side. */
static bool image_of(const nat_view *v, image *out) {
  *out = (image){.view = *v, .batch = v->shape[0], .c = v->shape[1], .size = {1, 1, 1}, .stride = v->shape[1]};
  for (int32_t d = 2; d < v->rank; ++d) out->size[3 - v->rank + d] = v->shape[d];
  if (nat_count(v) == 0) return true;
  int64_t inner = 1, stride = 0;
  bool known = false; /* an expanded dim has a stride of 0: not the same as none seen yet */
  for (int32_t k = v->rank - 1; k >= 1; --k) {
    int32_t d = k == 1 ? 0 : k; /* W, H, D, then N */
    if (v->shape[d] == 1) continue;
    if (!known) {
      if (v->strides[d] % inner != 0) return false;
      stride = v->strides[d] / inner;
      known = true;
    }
    if (v->strides[d] != stride * inner) return false;
    inner *= v->shape[d];
  }
  if (!known) stride = v->shape[1];
  out->stride = stride;
  return stride >= v->shape[1] && (v->shape[1] == 1 || v->strides[1] == 1);
}

static ait_status image_in(nat_bind *b, const nat_step *s, uint32_t i, int32_t spatial, image *out) {
  nat_view v, dense;
  AIT_TRY(nat_in_f32(b, s, i, &v));
  if (v.rank == spatial + 1) insert_batch(&v);
  if (spatial < 1 || spatial > 3 || v.rank != spatial + 2) return nat_error(b, AIT_CODE_INVALID_MODEL, "an image of rank %d", v.rank);
  if (image_of(&v, out)) return AIT_OK;
  int32_t order[AIT_MAX_RANK];
  nat_order_channels_last(v.rank, order);
  AIT_TRY(nat_temp(b, v.dtype, v.rank, v.shape, order, &dense));
  AIT_TRY(nat_copy(b, &dense, &v));
  return image_of(&dense, out) ? AIT_OK : nat_error(b, AIT_CODE_INTERNAL, "a copy is no image");
}

/* Result 0 as an image to write; when values are kept row-major, `copy_to` is where it has to be copied afterwards. */
typedef struct image_result {
  image image;
  bool copies;
  nat_view copy_to;
} image_result;

static ait_status image_out(nat_bind *b, const nat_step *s, int32_t spatial, image_result *out) {
  const nat_view *wish = nat_wish(b, s, 0);
  nat_view shape, v;
  int32_t order[AIT_MAX_RANK];
  AIT_TRY(nat_out_shape(b, s, 0, &shape));
  bool unbatched = shape.rank == spatial + 1;
  out->copies = (b->program->flags & NAT_NCHW) != 0 || unbatched;
  if (out->copies) {
    AIT_TRY(nat_out_plain(b, s, 0, &out->copy_to));
    if (unbatched) insert_batch(&out->copy_to);
    if (out->copy_to.rank != spatial + 2) return nat_error(b, AIT_CODE_INVALID_MODEL, "result of rank %d", shape.rank);
    nat_order_channels_last(out->copy_to.rank, order);
    AIT_TRY(nat_temp(b, AIT_F32, out->copy_to.rank, out->copy_to.shape, order, &v));
  } else {
    if (shape.rank != spatial + 2) return nat_error(b, AIT_CODE_INVALID_MODEL, "result of rank %d", shape.rank);
    nat_order_channels_last(shape.rank, order);
    AIT_TRY(nat_out(b, s, 0, order, wish != NULL && image_of(wish, &out->image), &v));
  }
  return image_of(&v, &out->image) ? AIT_OK : nat_error(b, AIT_CODE_INTERNAL, "the result is no image");
}

static ait_status image_done(nat_bind *b, const image_result *r) { return r->copies ? nat_copy(b, &r->copy_to, &r->image.view) : AIT_OK; }

/* A parameter for each spatial dim, right-aligned in D, H, W; one number counts for all of them. */
static ait_status per_dim(nat_bind *b, const nat_step *s, uint32_t arg, int32_t spatial, int64_t missing, int64_t when_none, int64_t low,
                          int64_t out[3]) {
  int64_t list[AIT_MAX_RANK];
  int32_t count;
  AIT_TRY(nat_arg_ints(b, s, arg, list, &count));
  if (count > 1 && count != spatial)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "argument %u has %d numbers for %d dims", arg, count, spatial);
  for (int32_t d = 0; d < 3; ++d) {
    int32_t k = d - (3 - spatial);
    out[d] = k < 0 ? missing : count == 0 ? when_none : count == 1 ? list[0] : list[k];
    if (out[d] < low || out[d] > INT32_MAX) return nat_error(b, AIT_CODE_INVALID_MODEL, "argument %u is out of range", arg);
  }
  return AIT_OK;
}

static void set_sizes(ait_image_dims *d, const image *x, const image *y) {
  d->batch = x->batch;
  memcpy(d->in, x->size, sizeof d->in);
  memcpy(d->out, y->size, sizeof d->out);
}

/* Every window of the result starts inside the padded input: what the kernels rely on. */
static bool windows_fit(const ait_image_dims *d, const int64_t pad_end[3], bool may_hang_over) {
  for (int i = 0; i < 3; ++i) {
    int64_t reach = (d->out[i] - 1) * d->stride[i] + (may_hang_over ? 0 : (d->kernel[i] - 1) * d->dilation[i]);
    if (d->out[i] > 0 && reach >= d->in[i] + d->pad[i] + pad_end[i]) return false;
  }
  return true;
}

/* ---- convolution -----------------------------------------------------------------------------------------------------------------*/
typedef struct conv {
  int32_t spatial;
  image x;
  image_result y;
  nat_view w;
  ait_image_dims d;
  int64_t groups, ic, oc;
  bool transposed, has_bias, has_residual;
  nat_view bias;
  image residual;
  ait_epilogue ep;
} conv;

static ait_status conv_residual(nat_bind *b, const nat_step *s, conv *c) {
  c->has_residual = nat_has_in(b, s, 3);
  if (!c->has_residual) return AIT_OK;
  AIT_TRY(image_in(b, s, 3, c->spatial, &c->residual));
  const image *y = &c->y.image, *r = &c->residual;
  if (r->batch != y->batch || r->c != y->c || memcmp(r->size, y->size, sizeof r->size) != 0) {
    return nat_error(b, AIT_CODE_INVALID_MODEL, "the addend has another shape");
  }
  c->ep.residual_stride = r->stride;
  return AIT_OK;
}

static ait_status conv_arguments(nat_bind *b, const nat_step *s, conv *c) {
  AIT_TRY(nat_in_f32(b, s, 1, &c->w));
  c->spatial = c->w.rank - 2;
  AIT_TRY(image_in(b, s, 0, c->spatial, &c->x));
  AIT_TRY(image_out(b, s, c->spatial, &c->y));
  AIT_TRY(per_dim(b, s, 3, c->spatial, 1, 1, 1, c->d.stride));
  AIT_TRY(per_dim(b, s, 4, c->spatial, 0, 0, 0, c->d.pad));
  AIT_TRY(per_dim(b, s, 5, c->spatial, 1, 1, 1, c->d.dilation));
  AIT_TRY(nat_arg_int(b, s, 6, 1, &c->groups));
  AIT_TRY(nat_arg_bool(b, s, 7, false, &c->transposed));
  for (int32_t d = 0; d < 3; ++d) c->d.kernel[d] = 1;
  for (int32_t d = 0; d < c->spatial; ++d) c->d.kernel[3 - c->spatial + d] = c->w.shape[2 + d];
  set_sizes(&c->d, &c->x, &c->y.image);
  if (c->groups < 1) return nat_error(b, AIT_CODE_INVALID_MODEL, "%lld groups", (long long)c->groups);
  c->ic = c->transposed ? c->w.shape[0] : c->w.shape[1] * c->groups;
  c->oc = c->transposed ? c->w.shape[1] * c->groups : c->w.shape[0];
  bool fits =
      c->ic == c->x.c && c->oc == c->y.image.c && c->ic % c->groups == 0 && c->oc % c->groups == 0 && c->x.batch == c->y.image.batch;
  fits = fits && (c->transposed || windows_fit(&c->d, c->d.pad, false));
  if (!fits) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes of image and weight do not fit");
  AIT_TRY(nat_vector(b, s, 2, c->oc, &c->has_bias, &c->bias));
  c->ep = (ait_epilogue){.act = (ait_act)s->act,
                         .p = s->p,
                         .q = s->q,
                         .residual_after = s->residual_after != NAT_RESIDUAL_BEFORE,
                         .residual_times = s->residual_after == NAT_RESIDUAL_TIMES};
  return conv_residual(b, s, c);
}

static ait_status conv_pointers(nat_bind *b, const conv *c, ait_epilogue *ep) {
  if (c->has_bias) AIT_TRY(NAT_POINTER(b, ep->bias, &c->bias));
  return c->has_residual ? NAT_POINTER(b, ep->residual, &c->residual.view) : AIT_OK;
}

/* Packing at run time, for weights that are computed, and for eager. */
typedef struct pack_args {
  const float *src;
  float *dst;
  ait_tensor shape; /* of the weight */
  nat_pack pack;
  const ait_kernels *kernels;
} pack_args;

void nat_pack_fill(const ait_kernels *k, const nat_pack *pack, const ait_tensor *t, void *dst);

static void pack_weight(const void *args, int64_t begin, int64_t end, void *scratch) {
  const pack_args *a = args;
  ait_tensor t = a->shape;
  AIT_UNUSED(scratch);
  if (begin == end) return;
  t.data = (void *)(uintptr_t)a->src;
  nat_pack_fill(a->kernels, &a->pack, &t, a->dst);
}

static ait_status conv_weight(nat_bind *b, const nat_step *s, const conv *c, nat_pack_kind kind, nat_view *out) {
  int64_t dims[6] = {c->groups, c->ic, c->oc, c->d.kernel[0], c->d.kernel[1], c->d.kernel[2]};
  ait_status status;
  if (nat_packed(b, s, 0, kind, dims, out, &status)) return AIT_OK;
  AIT_TRY(status);
  size_t bytes = nat_pack_bytes(kind, dims);
  if (bytes == 0 && c->ic > 0 && c->oc > 0) return nat_error(b, AIT_CODE_LIMIT, "weight is too large");
  pack_args a = {.shape = {.dtype = AIT_F32, .rank = c->w.rank}, .pack = {.kind = kind, .size = bytes}, .kernels = b->kernels}, *args;
  memcpy(a.pack.dims, dims, sizeof dims);
  memcpy(a.shape.shape, c->w.shape, sizeof a.shape.shape);
  memcpy(a.shape.strides, c->w.strides, sizeof a.shape.strides);
  bool was_static = b->is_static;
  nat_root_kind root = b->roots[c->w.root].kind;
  b->is_static = was_static || ((b->program->flags & NAT_EAGER) == 0 && (root == NAT_ROOT_CONST || root == NAT_ROOT_STATIC));
  nat_work work = {pack_weight, "pack weight", 1, 0, 0};
  status = nat_scratch(b, bytes, out);
  if (status == AIT_OK) status = nat_emit(b, &work, &a, sizeof a, &args);
  if (status == AIT_OK) status = NAT_POINTER(b, args->src, &c->w);
  if (status == AIT_OK) status = NAT_POINTER(b, args->dst, out);
  b->is_static = was_static;
  return status;
}

static double conv_macs(const conv *c, const int64_t pixels[3]) {
  double macs = (double)c->d.batch * (double)c->oc * (double)(c->ic / c->groups);
  for (int i = 0; i < 3; ++i) macs *= (double)pixels[i] * (double)c->d.kernel[i];
  return macs;
}

/* What reading and writing images costs at least: with few channels that is more than the arithmetic. */
static double image_traffic(const image *x, const image *y) { return 0.4 * (double)(nat_count(&x->view) + nat_count(&y->view)); }

static ait_status direct_conv(nat_bind *b, const nat_step *s, const conv *c) {
  nat_view w;
  AIT_TRY(conv_weight(b, s, c, NAT_PACK_CONV, &w));
  ait_conv_f32 k = {.d = c->d,
                    .groups = c->groups,
                    .ic = c->ic,
                    .oc = c->oc,
                    .x_stride = c->x.stride,
                    .y_stride = c->y.image.stride,
                    .ep = c->ep,
                    .row_parts = 1,
                    .column_parts = 1},
               *args;
  ait_conv_f32_plan(b->kernels, &k, b->threads);
  nat_work work = {b->kernels->conv_f32, "conv", ait_conv_f32_units(&k), conv_macs(c, c->d.out) * 0.02 + image_traffic(&c->x, &c->y.image),
                   ait_conv_f32_scratch(b->kernels, &k)};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &c->x.view));
  AIT_TRY(NAT_POINTER(b, args->w, &w));
  AIT_TRY(NAT_POINTER(b, args->y, &c->y.image.view));
  return conv_pointers(b, c, &args->ep);
}

static ait_status winograd_conv(nat_bind *b, const nat_step *s, const conv *c) {
  nat_view w;
  if (!ait_winograd_fits(&c->d, c->groups)) return nat_error(b, AIT_CODE_INVALID_MODEL, "the convolution is none for Winograd");
  AIT_TRY(conv_weight(b, s, c, NAT_PACK_WINOGRAD, &w));
  ait_winograd_f32 k = {.d = c->d, .ic = c->ic, .oc = c->oc, .x_stride = c->x.stride, .y_stride = c->y.image.stride, .ep = c->ep}, *args;
  ait_winograd_f32_plan(b->kernels, &k, b->threads);
  nat_work work = {b->kernels->winograd_f32, "conv, Winograd", ait_winograd_f32_units(&k),
                   conv_macs(c, c->d.out) * 0.012 + image_traffic(&c->x, &c->y.image), ait_winograd_f32_scratch(b->kernels, &k)};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &c->x.view));
  AIT_TRY(NAT_POINTER(b, args->w, &w));
  AIT_TRY(NAT_POINTER(b, args->y, &c->y.image.view));
  return conv_pointers(b, c, &args->ep);
}

static ait_status depthwise_conv(nat_bind *b, const nat_step *s, const conv *c) {
  nat_view w;
  AIT_TRY(conv_weight(b, s, c, NAT_PACK_DEPTHWISE, &w));
  ait_depthwise_f32 k = {.d = c->d,
                         .c = c->oc,
                         .multiplier = c->oc / c->ic,
                         .x_stride = c->x.stride,
                         .y_stride = c->y.image.stride,
                         .ep = c->ep},
                    *args;
  nat_work work = {b->kernels->depthwise_f32, "depthwise conv", ait_depthwise_f32_units(&k),
                   conv_macs(c, c->d.out) * 0.06 + image_traffic(&c->x, &c->y.image), 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &c->x.view));
  AIT_TRY(NAT_POINTER(b, args->w, &w));
  AIT_TRY(NAT_POINTER(b, args->y, &c->y.image.view));
  return conv_pointers(b, c, &args->ep);
}

static void advance(nat_view *v, int64_t elements) { v->offset += elements * (int64_t)sizeof(float); }

/* One product gives what each input pixel adds to each tap, the sum of taps gives the pixels; group after group. */
static ait_status transposed_conv(nat_bind *b, const nat_step *s, const conv *c) {
  nat_view w, columns;
  AIT_TRY(conv_weight(b, s, c, NAT_PACK_TRANSPOSED, &w));
  int64_t ic = c->ic / c->groups, oc = c->oc / c->groups, pixels = c->x.batch, n = oc;
  for (int i = 0; i < 3; ++i) {
    pixels *= c->d.in[i];
    n *= c->d.kernel[i];
  }
  for (int64_t g = 0; g < c->groups; ++g) {
    nat_view x = c->x.view, y = c->y.image.view, wg = w, bias = c->bias, residual = c->residual.view;
    advance(&x, g * ic);
    advance(&y, g * oc);
    advance(&bias, g * oc);
    advance(&residual, g * oc);
    wg.offset += g * (int64_t)ait_packed_b_bytes(ic, n);
    size_t bytes;
    if (ait_mul_overflows((size_t)pixels * sizeof(float), (size_t)n, &bytes)) return nat_error(b, AIT_CODE_LIMIT, "too large");
    AIT_TRY(nat_scratch(b, bytes, &columns));
    nat_product p = {.g = {.m = pixels, .n = n, .k = ic, .a_stride = c->x.stride, .c_stride = n}, .a = &x, .packed = &wg, .c = &columns};
    AIT_TRY(nat_emit_product(b, &p));
    ait_col2im_f32 k = {.d = c->d, .c = oc, .y_stride = c->y.image.stride, .ep = c->ep}, *args;
    nat_work work = {b->kernels->col2im_f32, "col2im", ait_col2im_f32_units(&k), (double)pixels * (double)n * 0.3, 0};
    AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
    AIT_TRY(NAT_POINTER(b, args->columns, &columns));
    AIT_TRY(NAT_POINTER(b, args->y, &y));
    if (c->has_bias) AIT_TRY(NAT_POINTER(b, args->ep.bias, &bias));
    if (c->has_residual) AIT_TRY(NAT_POINTER(b, args->ep.residual, &residual));
  }
  return AIT_OK;
}

ait_status nat_prepare_conv(nat_bind *b, const nat_step *s) {
  conv c = {0};
  AIT_TRY(conv_arguments(b, s, &c));
  if (nat_count(&c.y.image.view) > 0) {
    bool depthwise = !c.transposed && c.groups > 1 && c.ic == c.groups;
    bool winograd = !c.transposed && (s->flags & NAT_STEP_WINOGRAD) != 0;
    AIT_TRY(winograd       ? winograd_conv(b, s, &c)
            : c.transposed ? transposed_conv(b, s, &c)
            : depthwise    ? depthwise_conv(b, s, &c)
                           : direct_conv(b, s, &c));
  }
  return image_done(b, &c.y);
}

/* ---- pooling ---------------------------------------------------------------------------------------------------------------------*/
static ait_status emit_pool(nat_bind *b, ait_pool_f32 *p, const image *x, const image *y) {
  set_sizes(&p->d, x, y);
  p->c = x->c;
  p->x_stride = x->stride;
  p->y_stride = y->stride;
  if (x->batch != y->batch || x->c != y->c || !windows_fit(&p->d, p->pad_end, true))
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes do not fit");
  if (nat_count(&y->view) == 0) return AIT_OK;
  double taps = (double)(p->d.kernel[0] * p->d.kernel[1] * p->d.kernel[2]);
  nat_work work = {b->kernels->pool_f32, p->max ? "max pool" : "avg pool", ait_pool_f32_units(p),
                   (double)nat_count(&y->view) * taps * 0.06 + image_traffic(x, y), 0};
  ait_pool_f32 *args;
  AIT_TRY(nat_emit(b, &work, p, sizeof *p, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x->view));
  return NAT_POINTER(b, args->y, &y->view);
}

static int32_t list_length(const nat_bind *b, const nat_step *s, uint32_t arg) {
  const ait_region_node *n = nat_node(b->program, s);
  return arg < n->arg_count && n->args[arg].kind == AIT_ARG_LIST ? (int32_t)n->args[arg].count : 0;
}

ait_status nat_prepare_pool(nat_bind *b, const nat_step *s) {
  bool max = strcmp(nat_node(b->program, s)->op, "max_pool") == 0;
  int32_t spatial = list_length(b, s, 1);
  ait_pool_f32 p = {.max = max, .d = {.dilation = {1, 1, 1}}};
  image x;
  image_result y;
  AIT_TRY(image_in(b, s, 0, spatial, &x));
  AIT_TRY(image_out(b, s, spatial, &y));
  AIT_TRY(per_dim(b, s, 1, spatial, 1, 1, 1, p.d.kernel));
  AIT_TRY(per_dim(b, s, 2, spatial, 1, 0, 0, p.d.stride));
  AIT_TRY(per_dim(b, s, 3, spatial, 0, 0, 0, p.d.pad));
  for (int i = 0; i < 3; ++i) {
    if (p.d.stride[i] == 0) p.d.stride[i] = p.d.kernel[i]; /* torch: as the kernel when not given */
    p.pad_end[i] = p.d.pad[i];
  }
  if (max) {
    AIT_TRY(per_dim(b, s, 4, spatial, 1, 1, 1, p.d.dilation));
  } else {
    AIT_TRY(nat_arg_bool(b, s, 5, true, &p.include_pad));
    AIT_TRY(nat_arg_int(b, s, 6, 0, &p.divisor));
  }
  AIT_TRY(emit_pool(b, &p, &x, &y.image));
  return image_done(b, &y);
}

/* ---- adaptive average ------------------------------------------------------------------------------------------------------------*/
typedef struct adaptive_args {
  const float *x;
  float *y;
  int64_t x_stride, y_stride, c, in[3], out[3];
} adaptive_args;

/* Cells of any size: cell i covers [floor(i in / out), ceil((i + 1) in / out)). */
static void adaptive_row(const adaptive_args *a, int64_t n, int64_t od, int64_t oh) {
  for (int64_t ow = 0; ow < a->out[2]; ++ow) {
    const int64_t at[3] = {od, oh, ow};
    int64_t from[3], to[3], count = 1;
    for (int i = 0; i < 3; ++i) {
      from[i] = at[i] * a->in[i] / a->out[i];
      to[i] = ((at[i] + 1) * a->in[i] + a->out[i] - 1) / a->out[i];
      count *= to[i] - from[i];
    }
    float *y = a->y + (((n * a->out[0] + od) * a->out[1] + oh) * a->out[2] + ow) * a->y_stride;
    memset(y, 0, (size_t)a->c * sizeof *y);
    for (int64_t d = from[0]; d < to[0]; ++d) {
      for (int64_t h = from[1]; h < to[1]; ++h) {
        for (int64_t w = from[2]; w < to[2]; ++w) {
          const float *x = a->x + (((n * a->in[0] + d) * a->in[1] + h) * a->in[2] + w) * a->x_stride;
          for (int64_t c = 0; c < a->c; ++c) y[c] += x[c];
        }
      }
    }
    float scale = 1.0f / (float)count;
    for (int64_t c = 0; c < a->c; ++c) y[c] *= scale;
  }
}

static void adaptive_pool(const void *args, int64_t begin, int64_t end, void *scratch) {
  const adaptive_args *a = args;
  AIT_UNUSED(scratch);
  for (int64_t i = begin; i < end; ++i) adaptive_row(a, i / (a->out[0] * a->out[1]), i / a->out[1] % a->out[0], i % a->out[1]);
}

static ait_status global_pool(nat_bind *b, const image *x, const image *y) {
  ait_global_pool_f32 p = {.batch = x->batch,
                           .pixels = x->size[0] * x->size[1] * x->size[2],
                           .c = x->c,
                           .x_stride = x->stride,
                           .y_stride = y->stride},
                      *args;
  nat_work work = {b->kernels->global_pool_f32, "global pool", ait_global_pool_f32_units(&p), (double)(p.batch * p.pixels * p.c) * 0.08, 0};
  AIT_TRY(nat_emit(b, &work, &p, sizeof p, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x->view));
  return NAT_POINTER(b, args->y, &y->view);
}

static ait_status cells(nat_bind *b, const image *x, const image *y) {
  adaptive_args a = {.x_stride = x->stride, .y_stride = y->stride, .c = x->c}, *args;
  memcpy(a.in, x->size, sizeof a.in);
  memcpy(a.out, y->size, sizeof a.out);
  nat_work work = {adaptive_pool, "adaptive pool", x->batch * a.out[0] * a.out[1], (double)nat_count(&x->view) * 0.3, 0};
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x->view));
  return NAT_POINTER(b, args->y, &y->view);
}

ait_status nat_prepare_adaptive_pool(nat_bind *b, const nat_step *s) {
  int32_t spatial = list_length(b, s, 1);
  image x;
  image_result y;
  AIT_TRY(image_in(b, s, 0, spatial, &x));
  AIT_TRY(image_out(b, s, spatial, &y));
  bool divides = true, single = true;
  ait_pool_f32 p = {.d = {.dilation = {1, 1, 1}}};
  for (int i = 0; i < 3; ++i) {
    int64_t in = x.size[i], out = y.image.size[i];
    if (in == 0 && out > 0) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "an empty image has no average");
    divides = divides && out > 0 && in % out == 0;
    single = single && out == 1;
    p.d.kernel[i] = p.d.stride[i] = out > 0 ? in / out : 1;
  }
  if (x.batch != y.image.batch || x.c != y.image.c) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes do not fit");
  if (nat_count(&y.image.view) > 0)
    AIT_TRY(single ? global_pool(b, &x, &y.image) : divides ? emit_pool(b, &p, &x, &y.image) : cells(b, &x, &y.image));
  return image_done(b, &y);
}

/* ---- resampling ------------------------------------------------------------------------------------------------------------------*/
/* torch's upsample_nearest2d and upsample_bilinear2d (ATen/native/UpSample.h): positions are computed in float32. */
typedef struct upsample_args {
  const float *x;
  float *y;
  int64_t x_stride, y_stride, c, in[2], out[2];
  float scale[2];
  bool bilinear, corners;
} upsample_args;

static int64_t nearest(float scale, int64_t i, int64_t size) {
  int64_t at = (int64_t)floorf((float)i * scale);
  return at < size - 1 ? at : size - 1;
}

typedef struct tap {
  int64_t low, high;
  float weight; /* of high */
} tap;

static tap linear_tap(const upsample_args *a, int axis, int64_t i) {
  float at = a->corners ? a->scale[axis] * (float)i : a->scale[axis] * ((float)i + 0.5f) - 0.5f;
  if (at < 0) at = 0;
  tap t = {.low = (int64_t)at};
  if (t.low > a->in[axis] - 1) t.low = a->in[axis] - 1;
  t.high = t.low < a->in[axis] - 1 ? t.low + 1 : t.low;
  t.weight = at - (float)t.low;
  if (t.weight > 1) t.weight = 1;
  return t;
}

static const float *pixel(const upsample_args *a, int64_t n, int64_t h, int64_t w) {
  return a->x + ((n * a->in[0] + h) * a->in[1] + w) * a->x_stride;
}

static void upsample_row(const upsample_args *a, int64_t n, int64_t oh) {
  float *y = a->y + (n * a->out[0] + oh) * a->out[1] * a->y_stride;
  for (int64_t ow = 0; ow < a->out[1]; ++ow, y += a->y_stride) {
    if (!a->bilinear) {
      memcpy(y, pixel(a, n, nearest(a->scale[0], oh, a->in[0]), nearest(a->scale[1], ow, a->in[1])), (size_t)a->c * sizeof *y);
      continue;
    }
    tap h = linear_tap(a, 0, oh), w = linear_tap(a, 1, ow);
    const float *p = pixel(a, n, h.low, w.low), *q = pixel(a, n, h.low, w.high), *r = pixel(a, n, h.high, w.low),
                *t = pixel(a, n, h.high, w.high);
    for (int64_t c = 0; c < a->c; ++c) {
      float top = p[c] * (1 - w.weight) + q[c] * w.weight, bottom = r[c] * (1 - w.weight) + t[c] * w.weight;
      y[c] = top * (1 - h.weight) + bottom * h.weight;
    }
  }
}

static void upsample(const void *args, int64_t begin, int64_t end, void *scratch) {
  const upsample_args *a = args;
  AIT_UNUSED(scratch);
  for (int64_t i = begin; i < end; ++i) upsample_row(a, i / a->out[0], i % a->out[0]);
}

static ait_status upsample_scale(nat_bind *b, const nat_step *s, upsample_args *a, int axis) {
  const ait_region_node *n = nat_node(b->program, s);
  const ait_arg *scales = n->arg_count > 4 ? &n->args[4] : NULL;
  float in = (float)a->in[axis], out = (float)a->out[axis];
  if (a->corners) {
    a->scale[axis] = a->out[axis] > 1 ? (float)(a->in[axis] - 1) / (float)(a->out[axis] - 1) : 0;
    return AIT_OK;
  }
  a->scale[axis] = in / out;
  if (scales == NULL || scales->kind != AIT_ARG_LIST || scales->count != 2) return AIT_OK;
  const ait_arg *factor = &scales->as.list[axis];
  double v = factor->kind == AIT_ARG_FLOAT ? factor->as.f : factor->kind == AIT_ARG_INT ? (double)factor->as.i : 0;
  if (v > 0) a->scale[axis] = (float)(1.0 / v);
  return AIT_OK;
}

ait_status nat_prepare_upsample(nat_bind *b, const nat_step *s) {
  const char *mode = nat_arg_string(b, s, 2);
  image x;
  image_result y;
  AIT_TRY(image_in(b, s, 0, 2, &x));
  AIT_TRY(image_out(b, s, 2, &y));
  upsample_args a = {.x_stride = x.stride,
                     .y_stride = y.image.stride,
                     .c = x.c,
                     .in = {x.size[1], x.size[2]},
                     .out = {y.image.size[1], y.image.size[2]}},
                *args;
  a.bilinear = mode != NULL && strcmp(mode, "linear") == 0;
  AIT_TRY(nat_arg_bool(b, s, 3, false, &a.corners));
  a.corners = a.corners && a.bilinear;
  if (x.batch != y.image.batch || x.c != y.image.c) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes do not fit");
  if (nat_count(&y.image.view) == 0) return image_done(b, &y);
  if (nat_count(&x.view) == 0) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "an empty image cannot be resampled");
  for (int axis = 0; axis < 2; ++axis) AIT_TRY(upsample_scale(b, s, &a, axis));
  nat_work work = {upsample, a.bilinear ? "bilinear" : "nearest", x.batch * a.out[0],
                   (double)nat_count(&y.image.view) * (a.bilinear ? 0.6 : 0.15), 0};
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x.view));
  AIT_TRY(NAT_POINTER(b, args->y, &y.image.view));
  return image_done(b, &y);
}

/* ---- batch norm ------------------------------------------------------------------------------------------------------------------*/
typedef struct batch_norm_args {
  const float *weight, *var;
  float *scale;
  float eps;
} batch_norm_args;

static void batch_norm_scale(const void *args, int64_t begin, int64_t end, void *scratch) {
  const batch_norm_args *a = args;
  AIT_UNUSED(scratch);
  for (int64_t c = begin; c < end; ++c)
    a->scale[c] = (float)((a->weight != NULL ? (double)a->weight[c] : 1) / sqrt((double)a->var[c] + (double)a->eps));
}

static bool is_fixed(const nat_bind *b, const nat_view *v) {
  nat_root_kind kind = b->roots[v->root].kind;
  return (b->program->flags & NAT_EAGER) == 0 && (kind == NAT_ROOT_CONST || kind == NAT_ROOT_STATIC);
}

/* weight / sqrt(var + eps) [C], once per plan when both are weights. */
static ait_status batch_norm_factor(nat_bind *b, const nat_step *s, int64_t c, const nat_view *weight, const nat_view *var,
                                    nat_view *scale) {
  batch_norm_args a = {0}, *args;
  double eps;
  bool was_static = b->is_static;
  AIT_TRY(nat_arg_float(b, s, 5, 1e-5, &eps));
  a.eps = (float)eps;
  b->is_static = was_static || (is_fixed(b, var) && (weight == NULL || is_fixed(b, weight)));
  nat_work work = {batch_norm_scale, "batch norm scale", c, 0, 0};
  ait_status status = nat_temp(b, AIT_F32, 1, &c, NULL, scale);
  if (status == AIT_OK) status = nat_emit(b, &work, &a, sizeof a, &args);
  if (status == AIT_OK && weight != NULL) status = NAT_POINTER(b, args->weight, weight);
  if (status == AIT_OK) status = NAT_POINTER(b, args->var, var);
  if (status == AIT_OK) status = NAT_POINTER(b, args->scale, scale);
  b->is_static = was_static;
  return status;
}

/* A vector over dim 1, seen with the shape of the image. */
static nat_view per_channel(const nat_view *x, const nat_view *vector) {
  nat_view wide = *x;
  wide.root = vector->root;
  wide.offset = vector->offset;
  memset(wide.strides, 0, sizeof wide.strides);
  wide.strides[1] = 1;
  return wide;
}

/* (x - mean) * scale + bias: subtracting first keeps the digits when mean and x are large. */
ait_status nat_prepare_batch_norm(nat_bind *b, const nat_step *s) {
  nat_view inputs[4], weight, bias, mean, var, scale, y;
  bool has_weight, has_bias, has_mean, has_var;
  int32_t order[AIT_MAX_RANK];
  AIT_TRY(nat_in_f32(b, s, 0, &inputs[0]));
  nat_view *x = &inputs[0];
  if (x->rank < 2) return nat_error(b, AIT_CODE_INVALID_MODEL, "rank %d", x->rank);
  int64_t c = x->shape[1];
  AIT_TRY(nat_vector(b, s, 1, c, &has_weight, &weight));
  AIT_TRY(nat_vector(b, s, 2, c, &has_bias, &bias));
  AIT_TRY(nat_vector(b, s, 3, c, &has_mean, &mean));
  AIT_TRY(nat_vector(b, s, 4, c, &has_var, &var));
  if (!has_mean || !has_var) return nat_error(b, AIT_CODE_INVALID_MODEL, "statistics are missing");
  AIT_TRY(batch_norm_factor(b, s, c, has_weight ? &weight : NULL, &var, &scale));
  nat_order_of(x, order);
  if ((b->program->flags & NAT_NCHW) || !nat_has_order(x, order)) nat_order_row_major(x->rank, order);
  AIT_TRY(nat_out(b, s, 0, order, false, &y));
  if (!nat_same_shape(x, &y)) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
  inputs[1] = per_channel(x, &mean);
  inputs[2] = per_channel(x, &scale);
  if (has_bias) inputs[3] = per_channel(x, &bias);
  ait_ew_f32 e = {.input_count = has_bias ? 4 : 3, .instruction_count = 2};
  uint8_t t = (uint8_t)e.input_count;
  e.register_count = t + 1;
  e.code[0] = (ait_ew_instruction){.op = AIT_EW_SUB, .dst = t, .a = 0, .b = 1};
  e.code[1] = (ait_ew_instruction){.op = has_bias ? AIT_EW_MULADD : AIT_EW_MUL, .dst = t, .a = t, .b = 2, .c = 3};
  e.outputs[0].reg = t;
  return nat_count(&y) == 0 ? AIT_OK : nat_emit_ew(b, &e, inputs, &y);
}
