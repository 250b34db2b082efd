/* Operators of torchvision: suppression of overlapping boxes, pooling of regions, deformable convolution.
 *
 * Where a number decides which elements are read (rounding of a box, a threshold), it is rounded to the operand's precision as torchvision
 * rounds it, so that the decision is the same. */
#include "backends/reference/nn.h"

#include <stdlib.h>

/* ---- non-maximum suppression -------------------------------------------------------------------------------------------------------*/
typedef struct ranked_box {
  double score;
  int64_t index;
} ranked_box;

static int by_score(const void *a, const void *b) {
  const ranked_box *x = a, *y = b;
  if (x->score != y->score) return x->score > y->score || isnan(x->score) ? -1 : 1;
  return x->index < y->index ? -1 : 1; /* stable */
}

static double rounded(bool single, double v) { return single ? (double)(float)v : v; }

static double area(const double *b, bool single) { return rounded(single, rounded(single, b[2] - b[0]) * rounded(single, b[3] - b[1])); }

static double overlap(const double *a, const double *b, bool single) {
  double w = fmax(0, rounded(single, fmin(a[2], b[2]) - fmax(a[0], b[0])));
  double h = fmax(0, rounded(single, fmin(a[3], b[3]) - fmax(a[1], b[1])));
  double both = rounded(single, w * h);
  return rounded(single, both / rounded(single, rounded(single, area(a, single) + area(b, single)) - both));
}

/* In *order the boxes by falling score; those that are kept move to its front. Returns how many. */
static int64_t suppress(const double *boxes, ranked_box *order, bool *gone, int64_t n, double threshold, bool single) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (gone[i]) continue;
    for (int64_t j = i + 1; j < n; ++j) gone[j] |= overlap(boxes + 4 * order[i].index, boxes + 4 * order[j].index, single) > threshold;
    order[kept++] = order[i];
  }
  return kept;
}

/* nms(dets [n, 4], scores [n], iou_threshold) -> indices of the boxes that stay */
ait_status ait_ref_nms(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor boxes = {0}, scores = {0}, out;
  double threshold;
  ranked_box *order = NULL;
  bool *gone = NULL;
  size_t n = 0;
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_float(call, 2, &threshold));
  AIT_GOTO(ait_nn_f64(call, t, &boxes));
  AIT_GOTO(ait_nn_arg(call, 1, &scores));
  if (boxes.rank != 2 || boxes.shape[1] != 4 || scores.rank != 1 || scores.shape[0] != boxes.shape[0])
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "boxes are [n, 4], scores [n]"));
  n = (size_t)boxes.shape[0];
  order = ait_alloc(call->allocator, (n + 1) * sizeof *order, _Alignof(ranked_box));
  gone = ait_alloc_zero(call->allocator, n + 1, 1);
  if (!order || !gone) AIT_GOTO(AIT_OOM());
  for (size_t i = 0; i < n; ++i) order[i] = (ranked_box){ait_nn_data(&scores)[i], (int64_t)i};
  qsort(order, n, sizeof *order, by_score);
  int64_t kept = suppress(boxes.data, order, gone, (int64_t)n, threshold, t->dtype != AIT_F64 && !call->fp64);
  AIT_GOTO(ait_ref_new(call, 0, AIT_I64, 1, &kept, &out));
  for (int64_t i = 0; i < kept; ++i) ((int64_t *)out.data)[i] = order[i].index;
cleanup:
  ait_free(call->allocator, order, (n + 1) * sizeof *order);
  ait_free(call->allocator, gone, n + 1);
  ait_tensor_release(&boxes);
  ait_tensor_release(&scores);
  return status;
}

/* ---- bilinear reading --------------------------------------------------------------------------------------------------------------*/
/* Outside the image by less than one pixel the border counts (regions), or only the part that is inside (deformable convolution). */
static double bilinear(const double *x, int64_t height, int64_t width, double v, double u, bool border) {
  if (!(v > -1 || (border && v == -1)) || !(u > -1 || (border && u == -1)) || v > (double)height || u > (double)width) return 0;
  if (!border && (v >= (double)height || u >= (double)width)) return 0;
  if (border) v = fmin(fmax(v, 0), (double)(height - 1)), u = fmin(fmax(u, 0), (double)(width - 1));
  double top = floor(v), left = floor(u), fv = v - top, fu = u - left, sum = 0;
  for (int k = 0; k < 4; ++k) {
    int64_t i = (int64_t)top + (k >> 1), j = (int64_t)left + (k & 1);
    double w = (k >> 1 ? fv : 1 - fv) * (k & 1 ? fu : 1 - fu);
    if (w != 0 && i >= 0 && i < height && j >= 0 && j < width) sum += w * x[i * width + j];
  }
  return sum;
}

/* ---- regions -----------------------------------------------------------------------------------------------------------------------*/
typedef struct regions {
  ait_tensor x, rois, out, second; /* second: arg max of roi_pool, channels of the ps forms */
  int64_t pooled_h, pooled_w, sampling;
  double scale;
  bool align, position, single; /* align: averaged samples, else whole pixels; position: a channel for each cell */
  bool half_pixel;
} regions;

/* One region: its batch entry, origin and the size of a cell. */
typedef struct region {
  int64_t batch;
  double y, x, cell_h, cell_w;
  int64_t grid_h, grid_w;
} region;

static double scaled(const regions *r, double v, bool whole) {
  double s = rounded(r->single, v * rounded(r->single, r->scale));
  return whole ? round(s) : rounded(r->single, s - (r->half_pixel ? 0.5 : 0));
}

static region region_of(const regions *r, const double *roi) {
  bool whole = !r->align;
  region g = {.batch = (int64_t)roi[0], .x = scaled(r, roi[1], whole), .y = scaled(r, roi[2], whole)};
  double extra = whole && !r->position ? 1 : 0;
  double w = rounded(r->single, scaled(r, roi[3], whole) - g.x + extra), h = rounded(r->single, scaled(r, roi[4], whole) - g.y + extra);
  if (!r->half_pixel) w = fmax(w, r->align ? 1 : r->position ? 0.1 : 1), h = fmax(h, r->align ? 1 : r->position ? 0.1 : 1);
  g.cell_h = rounded(r->single, h / (double)r->pooled_h), g.cell_w = rounded(r->single, w / (double)r->pooled_w);
  g.grid_h = r->sampling > 0 ? r->sampling : (int64_t)ceil(g.cell_h);
  g.grid_w = r->sampling > 0 ? r->sampling : (int64_t)ceil(g.cell_w);
  return g;
}

static double average(const regions *r, const region *g, const double *plane, int64_t ph, int64_t pw) {
  double sum = 0;
  for (int64_t i = 0; i < g->grid_h; ++i)
    for (int64_t j = 0; j < g->grid_w; ++j) {
      double y = g->y + (double)ph * g->cell_h + ((double)i + 0.5) * g->cell_h / (double)g->grid_h;
      double x = g->x + (double)pw * g->cell_w + ((double)j + 0.5) * g->cell_w / (double)g->grid_w;
      sum += bilinear(plane, r->x.shape[2], r->x.shape[3], y, x, true);
    }
  int64_t count = g->grid_h * g->grid_w;
  return r->position ? sum / (double)count : sum / (double)ait_nn_max(count, 1);
}

static int64_t edge(const regions *r, double origin, double at, bool end, int64_t limit) {
  at = rounded(r->single, at);
  return ait_nn_min(ait_nn_max((int64_t)(end ? ceil(at) : floor(at)) + (int64_t)origin, 0), limit);
}

/* The largest pixel of a cell and where it is, or the mean (position). */
static double whole_pixels(const regions *r, const region *g, const double *plane, int64_t ph, int64_t pw, double *out_at) {
  int64_t height = r->x.shape[2], width = r->x.shape[3], last = r->position ? 1 : 0;
  int64_t y0 = edge(r, g->y, (double)ph * g->cell_h, false, height - last),
          y1 = edge(r, g->y, (double)(ph + 1) * g->cell_h, true, height - last);
  int64_t x0 = edge(r, g->x, (double)pw * g->cell_w, false, width - last),
          x1 = edge(r, g->x, (double)(pw + 1) * g->cell_w, true, width - last);
  double best = 0, sum = 0;
  *out_at = -1;
  for (int64_t y = y0; y < y1; ++y)
    for (int64_t x = x0; x < x1; ++x) {
      double v = plane[y * width + x];
      sum += v;
      if (*out_at < 0 || v > best) best = v, *out_at = (double)(y * width + x);
    }
  if (!r->position) return best;
  return y1 > y0 && x1 > x0 ? sum / (double)((y1 - y0) * (x1 - x0)) : 0;
}

static ait_status pool_regions(const ait_ref_call *call, regions *r) {
  int64_t channels = r->x.shape[1], planes = r->out.shape[1], cells = r->pooled_h * r->pooled_w, plane = r->x.shape[2] * r->x.shape[3];
  double *out = r->out.data, *second = r->second.data;
  for (int64_t n = 0; n < r->out.shape[0]; ++n) {
    region g = region_of(r, ait_nn_data(&r->rois) + 5 * n);
    if (g.batch < 0 || g.batch >= r->x.shape[0])
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "region %lld is of image %lld of %lld", (long long)n, (long long)g.batch,
                           (long long)r->x.shape[0]);
    if (g.grid_h > 1 << 16 || g.grid_w > 1 << 16) return ait_ref_error(call, AIT_CODE_LIMIT, "region %lld is too large", (long long)n);
    for (int64_t k = 0; k < planes * cells; ++k) {
      int64_t cell = k % cells, channel = r->position ? k : k / cells, at = n * planes * cells + k;
      const double *p = ait_nn_data(&r->x) + (g.batch * channels + channel) * plane;
      double where = (double)channel;
      if (r->align) out[at] = average(r, &g, p, cell / r->pooled_w, cell % r->pooled_w);
      else out[at] = whole_pixels(r, &g, p, cell / r->pooled_w, cell % r->pooled_w, &where);
      second[at] = r->position ? (double)channel : where;
    }
  }
  return AIT_OK;
}

/* roi_align, roi_pool, ps_roi_align, ps_roi_pool (input, rois [n, 5], spatial_scale, pooled_height, pooled_width, ...) */
ait_status ait_ref_roi(ait_ref_call *call) {
  const ait_tensor *t;
  regions r = {.position = strstr(call->node->op, "ps_") != NULL, .align = ait_ends_with(call->node->op, "align"), .sampling = -1};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_float(call, 2, &r.scale));
  AIT_TRY(ait_ref_int(call, 3, &r.pooled_h));
  AIT_TRY(ait_ref_int(call, 4, &r.pooled_w));
  if (r.align) AIT_TRY(ait_ref_int(call, 5, &r.sampling));
  if (r.align && r.position) r.half_pixel = true;
  else if (r.align) AIT_TRY(ait_ref_bool(call, 6, &r.half_pixel));
  r.single = t->dtype != AIT_F64 && !call->fp64;
  AIT_GOTO(ait_nn_f64(call, t, &r.x));
  AIT_GOTO(ait_nn_arg(call, 1, &r.rois));
  if (r.x.rank != 4 || r.rois.rank != 2 || r.rois.shape[1] != 5 || r.pooled_h < 1 || r.pooled_w < 1)
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the input is [n, c, h, w], regions are [n, 5]"));
  if (r.position && r.x.shape[1] % (r.pooled_h * r.pooled_w))
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%lld channels do not divide into cells", (long long)r.x.shape[1]));
  int64_t planes = r.position ? r.x.shape[1] / (r.pooled_h * r.pooled_w) : r.x.shape[1];
  int64_t shape[4] = {r.rois.shape[0], planes, r.pooled_h, r.pooled_w};
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 4, shape, &r.out));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 4, shape, &r.second));
  AIT_GOTO(pool_regions(call, &r));
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &r.out));
  status = ait_nn_result(call, 1, AIT_I32, &r.second);
cleanup:
  ait_tensor_release(&r.x);
  ait_tensor_release(&r.rois);
  ait_tensor_release(&r.out);
  ait_tensor_release(&r.second);
  return status;
}

/* ---- deformable convolution (Dai et al., 2017; with a mask Zhu et al., 2018) ------------------------------------------------- */
typedef struct deform {
  ait_tensor x, weight, offset, mask, bias, out;
  int64_t stride[2], pad[2], dilation[2], groups, offset_groups;
  bool use_mask;
} deform;

static void deform_row(void *ctx, int64_t begin, int64_t end) {
  const deform *d = ctx;
  int64_t channels = d->x.shape[1], height = d->x.shape[2], width = d->x.shape[3], outs = d->out.shape[1], oh = d->out.shape[2],
          ow = d->out.shape[3], kh = d->weight.shape[2], kw = d->weight.shape[3], taps = kh * kw, per_group = d->weight.shape[1];
  for (int64_t r = begin; r < end; ++r) { /* one output row of one channel */
    int64_t y = r % oh, o = r / oh % outs, n = r / oh / outs, first = o / (outs / d->groups) * per_group;
    for (int64_t x = 0; x < ow; ++x) {
      double sum = ait_nn_data(&d->bias)[o];
      for (int64_t c = 0; c < per_group; ++c)
        for (int64_t k = 0; k < taps; ++k) {
          int64_t tap = (first + c) / (channels / d->offset_groups) * taps + k, spot = y * ow + x, sets = d->offset_groups * taps;
          const double *move = ait_nn_data(&d->offset) + (n * sets + tap) * 2 * oh * ow + spot;
          double v = (double)(y * d->stride[0] - d->pad[0] + k / kw * d->dilation[0]) + move[0];
          double u = (double)(x * d->stride[1] - d->pad[1] + k % kw * d->dilation[1]) + move[oh * ow];
          double m = d->use_mask ? ait_nn_data(&d->mask)[(n * sets + tap) * oh * ow + spot] : 1;
          double value = bilinear(ait_nn_data(&d->x) + (n * channels + first + c) * height * width, height, width, v, u, false);
          sum += ait_nn_data(&d->weight)[(o * per_group + c) * taps + k] * m * value;
        }
      ait_nn_data_mut(&d->out)[r * ow + x] = sum;
    }
  }
}

static ait_status deform_check(const ait_ref_call *call, const deform *d, int64_t shape[4]) {
  const ait_tensor *w = &d->weight;
  if (d->x.rank != 4 || w->rank != 4 || d->offset.rank != 4 || (d->use_mask && d->mask.rank != 4) || d->groups < 1 || d->offset_groups < 1)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operands have four dims");
  shape[0] = d->x.shape[0], shape[1] = w->shape[0];
  for (int i = 0; i < 2; ++i) {
    if (d->stride[i] < 1) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a stride below one");
    shape[2 + i] = (d->x.shape[2 + i] + 2 * d->pad[i] - d->dilation[i] * (w->shape[2 + i] - 1) - 1) / d->stride[i] + 1;
  }
  int64_t taps = w->shape[2] * w->shape[3], spots = shape[0] * shape[2] * shape[3] * taps * d->offset_groups;
  if (d->x.shape[1] != w->shape[1] * d->groups || w->shape[0] % d->groups || d->x.shape[1] % d->offset_groups || shape[2] < 1 ||
      shape[3] < 1 || ait_tensor_count(&d->offset) != 2 * spots || (d->use_mask && ait_tensor_count(&d->mask) != spots) ||
      ait_tensor_count(&d->bias) != w->shape[0])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the sizes of the operands do not fit");
  return AIT_OK;
}

/* deform_conv2d(input, weight, offset, mask, bias, stride, pad, dilation (h and w each), groups, offset_groups, use_mask) */
ait_status ait_ref_deform_conv2d(ait_ref_call *call) {
  const ait_tensor *t;
  deform d = {.groups = 1};
  ait_tensor *operands[5] = {&d.x, &d.weight, &d.offset, &d.mask, &d.bias};
  int64_t *numbers[8] = {&d.stride[0], &d.stride[1], &d.pad[0], &d.pad[1], &d.dilation[0], &d.dilation[1], &d.groups, &d.offset_groups};
  int64_t shape[4];
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  for (uint32_t i = 0; i < 8; ++i) AIT_TRY(ait_ref_int(call, 5 + i, numbers[i]));
  AIT_TRY(ait_ref_bool(call, 13, &d.use_mask));
  for (uint32_t i = 0; i < 5; ++i) AIT_GOTO(ait_nn_arg(call, i, operands[i]));
  AIT_GOTO(deform_check(call, &d, shape));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 4, shape, &d.out));
  if (ait_tensor_count(&d.out) > 0)
    ait_ref_parallel(call, shape[0] * shape[1] * shape[2], shape[3] * d.weight.shape[1] * d.weight.shape[2] * d.weight.shape[3] * 16,
                     deform_row, &d);
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &d.out);
cleanup:
  for (int i = 0; i < 5; ++i) ait_tensor_release(operands[i]);
  ait_tensor_release(&d.out);
  return status;
}
