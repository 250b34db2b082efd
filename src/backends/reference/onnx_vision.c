/* ONNX: regions of interest, suppression of overlapping boxes, deformable convolution, patches back to images. */
#include "backends/reference/onnx.h"

/* ---- RoiAlign --------------------------------------------------------------------------------------------------------------------*/

typedef struct roi {
  double start_h, start_w, bin_h, bin_w;
  int64_t grid_h, grid_w;
} roi;

/* The four corners around a place, weighted; false: outside of the image. */
static bool corners(double y, double x, int64_t height, int64_t width, int64_t at[4], double w[4]) {
  if (!(y >= -1 && y <= (double)height && x >= -1 && x <= (double)width)) return false;
  y = y < 0 ? 0 : y;
  x = x < 0 ? 0 : x;
  int64_t y0 = (int64_t)y, x0 = (int64_t)x, y1 = y0 + 1, x1 = x0 + 1;
  if (y0 >= height - 1) y0 = y1 = height - 1, y = (double)y0;
  if (x0 >= width - 1) x0 = x1 = width - 1, x = (double)x0;
  double ly = y - (double)y0, lx = x - (double)x0;
  at[0] = y0 * width + x0, at[1] = y0 * width + x1, at[2] = y1 * width + x0, at[3] = y1 * width + x1;
  w[0] = (1 - ly) * (1 - lx), w[1] = (1 - ly) * lx, w[2] = ly * (1 - lx), w[3] = ly * lx;
  return true;
}

static double align_bin(const roi *r, const double *plane, int64_t height, int64_t width, int64_t ph, int64_t pw, bool max) {
  double sum = 0, largest = 0;
  bool any = false;
  for (int64_t iy = 0; iy < r->grid_h; ++iy) {
    double y = r->start_h + (double)ph * r->bin_h + ((double)iy + 0.5) * r->bin_h / (double)r->grid_h;
    for (int64_t ix = 0; ix < r->grid_w; ++ix) {
      double x = r->start_w + (double)pw * r->bin_w + ((double)ix + 0.5) * r->bin_w / (double)r->grid_w, w[4] = {0};
      int64_t at[4] = {0};
      if (!corners(y, x, height, width, at, w)) memset(w, 0, sizeof w);
      for (int k = 0; k < 4; ++k) {
        double v = w[k] * plane[at[k]];
        sum += v;
        if (!any || v > largest) largest = v;
        any = true;
      }
    }
  }
  int64_t count = r->grid_h * r->grid_w;
  return max ? largest : sum / (double)(count > 1 ? count : 1);
}

/* (x, rois, batch_indices, mode, half_pixel, height, width, sampling_ratio, spatial_scale) */
ait_status ait_ref_onnx_roi_align(ait_ref_call *call) {
  const ait_tensor *x, *rois, *batch;
  const char *mode = ait_ref_string(call, 3);
  bool half;
  int64_t height, width, ratio;
  double scale;
  ait_tensor in = {0}, boxes = {0}, out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &rois));
  AIT_TRY(ait_ref_tensor(call, 2, &batch));
  AIT_TRY(ait_ref_bool(call, 4, &half));
  AIT_TRY(ait_ref_int(call, 5, &height));
  AIT_TRY(ait_ref_int(call, 6, &width));
  AIT_TRY(ait_ref_int(call, 7, &ratio));
  AIT_TRY(ait_ref_float(call, 8, &scale));
  if (x->rank != 4 || rois->rank != 2 || rois->shape[1] != 4 || batch->rank != 1 || batch->shape[0] != rois->shape[0])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "image, regions and batch indices do not fit");
  int64_t shape[4] = {rois->shape[0], x->shape[1], height, width}, h = x->shape[2], w = x->shape[3];
  if (h == 0 || w == 0) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the image is empty");
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, 4, shape, &out));
  ait_status status = ait_ref_to_f64(call, x, &in);
  if (status == AIT_OK) status = ait_ref_to_f64(call, rois, &boxes);
  for (int64_t n = 0; status == AIT_OK && n < shape[0]; ++n) {
    const double *b = (const double *)boxes.data + 4 * n;
    double offset = half ? 0.5 : 0, roi_w = (b[2] - b[0]) * scale, roi_h = (b[3] - b[1]) * scale;
    int64_t image;
    status = ait_ref_wrap_index(call, ait_element_i64(ait_onnx_at(batch, n * batch->strides[0]), batch->dtype), x->shape[0], &image);
    if (status != AIT_OK) break;
    if (!half) roi_w = fmax(roi_w, 1), roi_h = fmax(roi_h, 1);
    if (!(roi_w < 1e6 && roi_h < 1e6)) status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "region %lld is too large", (long long)n);
    roi r = {b[1] * scale - offset, b[0] * scale - offset, roi_h / (double)height, roi_w / (double)width, ratio, ratio};
    if (ratio <= 0) r.grid_h = (int64_t)ceil(r.bin_h), r.grid_w = (int64_t)ceil(r.bin_w);
    for (int64_t c = 0; status == AIT_OK && c < shape[1]; ++c)
      for (int64_t i = 0; i < height * width; ++i) {
        const double *plane = (const double *)in.data + (image * shape[1] + c) * h * w;
        double v = align_bin(&r, plane, h, w, i / width, i % width, mode && strcmp(mode, "max") == 0);
        ait_element_set_f64(ait_onnx_at(&out, (n * shape[1] + c) * height * width + i), out.dtype, v);
      }
  }
  ait_tensor_release(&in);
  ait_tensor_release(&boxes);
  return status;
}

/* (x, rois [n, 5], height, width, spatial_scale): the largest of each bin */
ait_status ait_ref_onnx_max_roi_pool(ait_ref_call *call) {
  const ait_tensor *x, *rois;
  int64_t height, width;
  double scale;
  ait_tensor in = {0}, boxes = {0}, out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &rois));
  AIT_TRY(ait_ref_int(call, 2, &height));
  AIT_TRY(ait_ref_int(call, 3, &width));
  AIT_TRY(ait_ref_float(call, 4, &scale));
  if (x->rank != 4 || rois->rank != 2 || rois->shape[1] != 5)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "image and regions do not fit");
  int64_t shape[4] = {rois->shape[0], x->shape[1], height, width}, h = x->shape[2], w = x->shape[3];
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, 4, shape, &out));
  ait_status status = ait_ref_to_f64(call, x, &in);
  if (status == AIT_OK) status = ait_ref_to_f64(call, rois, &boxes);
  for (int64_t n = 0; status == AIT_OK && n < shape[0]; ++n) {
    const double *b = (const double *)boxes.data + 5 * n;
    int64_t image;
    status = ait_ref_wrap_index(call, (int64_t)b[0], x->shape[0], &image);
    if (status != AIT_OK) break;
    double x0 = round(b[1] * scale), y0 = round(b[2] * scale), bin_w = fmax(round(b[3] * scale) - x0 + 1, 1) / (double)width,
           bin_h = fmax(round(b[4] * scale) - y0 + 1, 1) / (double)height;
    for (int64_t i = 0; i < shape[1] * height * width; ++i) {
      int64_t c = i / (height * width), ph = i / width % height, pw = i % width;
      int64_t top = (int64_t)fmin(fmax(floor((double)ph * bin_h) + y0, 0), (double)h),
              bottom = (int64_t)fmin(fmax(ceil((double)(ph + 1) * bin_h) + y0, 0), (double)h);
      int64_t left = (int64_t)fmin(fmax(floor((double)pw * bin_w) + x0, 0), (double)w),
              right = (int64_t)fmin(fmax(ceil((double)(pw + 1) * bin_w) + x0, 0), (double)w);
      double largest = top < bottom && left < right ? -INFINITY : 0;
      for (int64_t r = top; r < bottom; ++r)
        for (int64_t q = left; q < right; ++q) largest = fmax(largest, ((const double *)in.data)[((image * shape[1] + c) * h + r) * w + q]);
      ait_element_set_f64(ait_onnx_at(&out, n * shape[1] * height * width + i), out.dtype, largest);
    }
  }
  ait_tensor_release(&in);
  ait_tensor_release(&boxes);
  return status;
}

/* ---- NonMaxSuppression -----------------------------------------------------------------------------------------------------------*/

typedef struct nms {
  const double *boxes, *scores;
  int64_t n, limit;
  double iou, least;
  bool center, has_least;
  int64_t *order, *scratch, *kept; /* n each */
} nms;

static void bounds(const nms *s, const double *b, double out[4]) { /* y0, x0, y1, x1 */
  if (s->center) {
    out[0] = b[1] - b[3] / 2, out[1] = b[0] - b[2] / 2, out[2] = b[1] + b[3] / 2, out[3] = b[0] + b[2] / 2;
    return;
  }
  out[0] = fmin(b[0], b[2]), out[1] = fmin(b[1], b[3]), out[2] = fmax(b[0], b[2]), out[3] = fmax(b[1], b[3]);
}

static bool overlaps(const nms *s, const double *first, const double *second) {
  double a[4], b[4];
  bounds(s, first, a);
  bounds(s, second, b);
  double height = fmin(a[2], b[2]) - fmax(a[0], b[0]), width = fmin(a[3], b[3]) - fmax(a[1], b[1]);
  if (height <= 0 || width <= 0) return false;
  double area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]), both = height * width;
  return area_a > 0 && area_b > 0 && both / (area_a + area_b - both) > s->iou;
}

/* By falling score; equal ones in their order: a stable merge sort. */
static void sort_by_score(const nms *s) {
  for (int64_t i = 0; i < s->n; ++i) s->order[i] = i;
  for (int64_t width = 1; width < s->n; width *= 2) {
    for (int64_t low = 0; low < s->n; low += 2 * width) {
      int64_t mid = ait_nn_min(low + width, s->n), high = ait_nn_min(low + 2 * width, s->n), i = low, j = mid;
      for (int64_t k = low; k < high; ++k)
        s->scratch[k] = i < mid && (j >= high || s->scores[s->order[i]] >= s->scores[s->order[j]]) ? s->order[i++] : s->order[j++];
    }
    memcpy(s->order, s->scratch, (size_t)s->n * sizeof *s->order);
  }
}

static int64_t select_boxes(const nms *s) {
  int64_t count = 0;
  sort_by_score(s);
  for (int64_t k = 0; k < s->n && count < s->limit; ++k) {
    int64_t i = s->order[k];
    bool keep = !s->has_least || s->scores[i] > s->least;
    for (int64_t j = 0; j < count && keep; ++j) keep = !overlaps(s, s->boxes + 4 * i, s->boxes + 4 * s->kept[j]);
    if (keep) s->kept[count++] = i;
  }
  return count;
}

/* Batch, class and box of each selected one. */
static ait_status suppress(ait_ref_call *call, nms *s, const ait_tensor *scores) {
  int64_t batches = scores->shape[0], classes = scores->shape[1], *found = NULL;
  size_t count = 0, capacity = 0;
  const double *all_scores = s->scores, *all_boxes = s->boxes;
  ait_status status = AIT_OK;
  for (int64_t i = 0; i < batches * classes && status == AIT_OK && s->n > 0; ++i) {
    s->scores = all_scores + i * s->n;
    s->boxes = all_boxes + i / classes * s->n * 4;
    int64_t n = select_boxes(s);
    void *grown = found;
    status = ait_grow(call->allocator, &grown, &capacity, (count + (size_t)n) * 3, sizeof *found);
    found = grown;
    for (int64_t k = 0; status == AIT_OK && k < n; ++k, ++count) {
      found[3 * count] = i / classes;
      found[3 * count + 1] = i % classes;
      found[3 * count + 2] = s->kept[k];
    }
  }
  ait_tensor out;
  int64_t shape[2] = {(int64_t)count, 3};
  if (status == AIT_OK) status = ait_ref_new(call, 0, AIT_I64, 2, shape, &out);
  if (status == AIT_OK && count) memcpy(out.data, found, count * 3 * sizeof *found);
  ait_free(call->allocator, found, capacity * sizeof *found);
  return status;
}

static ait_status optional_number(const ait_ref_call *call, uint32_t arg, double otherwise, double *out, bool *given) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, arg);
  *given = t && ait_tensor_count(t) > 0;
  *out = otherwise;
  return *given ? ait_onnx_number(call, arg, out) : AIT_OK;
}

/* (boxes [b, n, 4], scores [b, classes, n], max_output_boxes_per_class?, iou_threshold?, score_threshold?, center_point_box) */
ait_status ait_ref_onnx_nms(ait_ref_call *call) {
  const ait_tensor *boxes, *scores;
  nms s = {0};
  double limit;
  bool given;
  ait_tensor b = {0}, v = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &boxes));
  AIT_TRY(ait_ref_tensor(call, 1, &scores));
  AIT_TRY(optional_number(call, 2, 0, &limit, &given));
  AIT_TRY(optional_number(call, 3, 0, &s.iou, &given));
  AIT_TRY(optional_number(call, 4, 0, &s.least, &s.has_least));
  AIT_TRY(ait_ref_bool(call, 5, &s.center));
  if (boxes->rank != 3 || scores->rank != 3 || boxes->shape[2] != 4 || boxes->shape[0] != scores->shape[0] ||
      boxes->shape[1] != scores->shape[2])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "boxes and scores do not fit");
  s.n = boxes->shape[1];
  s.limit = limit < 0 ? 0 : limit > 1e15 ? INT64_MAX : (int64_t)limit;
  size_t bytes = (size_t)(3 * s.n + 1) * sizeof(int64_t);
  s.order = ait_alloc(call->allocator, bytes, _Alignof(int64_t));
  if (!s.order) return AIT_OOM();
  s.scratch = s.order + s.n;
  s.kept = s.order + 2 * s.n;
  ait_status status = ait_ref_to_f64(call, boxes, &b);
  if (status == AIT_OK) status = ait_ref_to_f64(call, scores, &v);
  s.boxes = b.data;
  s.scores = v.data;
  if (status == AIT_OK) status = suppress(call, &s, scores);
  ait_tensor_release(&b);
  ait_tensor_release(&v);
  ait_free(call->allocator, s.order, bytes);
  return status;
}

/* ---- DeformConv ------------------------------------------------------------------------------------------------------------------*/

typedef struct deform {
  ait_tensor x, w, offset, bias, mask; /* doubles; bias and mask may be empty */
  int64_t stride[2], pads[4], dilation[2], groups, offset_groups, out[4];
} deform;

/* Bilinear, zeros outside. */
static double pixel(const double *plane, int64_t height, int64_t width, double y, double x) {
  double low_y = floor(y), low_x = floor(x), sum = 0;
  if (!(y > -1 && y < (double)height && x > -1 && x < (double)width)) return 0;
  for (int k = 0; k < 4; ++k) {
    int64_t r = (int64_t)low_y + (k >> 1), c = (int64_t)low_x + (k & 1);
    double wy = k >> 1 ? y - low_y : 1 - (y - low_y), wx = k & 1 ? x - low_x : 1 - (x - low_x);
    if (r >= 0 && r < height && c >= 0 && c < width) sum += wy * wx * plane[r * width + c];
  }
  return sum;
}

static double deform_element(const deform *d, int64_t n, int64_t oc, int64_t i, int64_t j) {
  int64_t channels = d->x.shape[1], height = d->x.shape[2], width = d->x.shape[3], kh = d->w.shape[2], kw = d->w.shape[3], area = kh * kw;
  int64_t per_group = d->w.shape[1], first = oc / (d->out[1] / d->groups) * per_group, per_offset = channels / d->offset_groups;
  int64_t place = i * d->out[3] + j, places = d->out[2] * d->out[3];
  const double *x = d->x.data, *w = d->w.data, *offset = d->offset.data, *mask = d->mask.data;
  double sum = d->bias.data ? ((const double *)d->bias.data)[oc] : 0;
  for (int64_t c = 0; c < per_group; ++c) {
    int64_t ic = first + c, group = ic / per_offset;
    for (int64_t k = 0; k < area; ++k) {
      const double *move = offset + ((n * d->offset_groups + group) * 2 * area + 2 * k) * places + place;
      double y = (double)(i * d->stride[0] - d->pads[0] + k / kw * d->dilation[0]) + move[0];
      double q = (double)(j * d->stride[1] - d->pads[1] + k % kw * d->dilation[1]) + move[places];
      double v = pixel(x + (n * channels + ic) * height * width, height, width, y, q) * w[(oc * per_group + c) * area + k];
      if (mask) v *= mask[((n * d->offset_groups + group) * area + k) * places + place];
      sum += v;
    }
  }
  return sum;
}

static bool deform_fits(const deform *d, const ait_tensor *offset, const ait_tensor *mask) {
  int64_t area = d->w.shape[2] * d->w.shape[3];
  return d->groups > 0 && d->offset_groups > 0 && d->x.shape[1] == d->w.shape[1] * d->groups && d->w.shape[0] % d->groups == 0 &&
         d->x.shape[1] % d->offset_groups == 0 && offset->shape[0] == d->x.shape[0] && offset->shape[1] == d->offset_groups * 2 * area &&
         (!mask || (mask->rank == 4 && mask->shape[0] == d->x.shape[0] && mask->shape[1] == d->offset_groups * area &&
                    mask->shape[2] == offset->shape[2] && mask->shape[3] == offset->shape[3]));
}

/* (x, weight, offset, bias?, mask?, stride, pads, dilation, groups, offset groups) */
ait_status ait_ref_onnx_deform_conv(ait_ref_call *call) {
  const ait_tensor *x, *w, *offset, *mask = ait_ref_tensor_or_null(call, 4), *bias = ait_ref_tensor_or_null(call, 3);
  deform d = {0};
  ait_tensor out;
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(ait_ref_tensor(call, 1, &w));
  AIT_TRY(ait_ref_tensor(call, 2, &offset));
  AIT_TRY(ait_nn_ints(call, 5, 2, 1, d.stride));
  AIT_TRY(ait_nn_ints(call, 6, 4, 0, d.pads));
  AIT_TRY(ait_nn_ints(call, 7, 2, 1, d.dilation));
  AIT_TRY(ait_ref_int(call, 8, &d.groups));
  AIT_TRY(ait_ref_int(call, 9, &d.offset_groups));
  if (x->rank != 4 || w->rank != 4 || offset->rank != 4 || (bias && ait_tensor_count(bias) != w->shape[0]))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "ranks do not fit");
  memcpy(d.out, (int64_t[]){x->shape[0], w->shape[0], offset->shape[2], offset->shape[3]}, sizeof d.out);
  AIT_TRY(ait_onnx_new(call, 0, x->dtype, 4, d.out, &out));
  ait_status status = ait_ref_to_f64(call, x, &d.x);
  if (status == AIT_OK) status = ait_ref_to_f64(call, w, &d.w);
  if (status == AIT_OK) status = ait_ref_to_f64(call, offset, &d.offset);
  if (status == AIT_OK && bias) status = ait_ref_to_f64(call, bias, &d.bias);
  if (status == AIT_OK && mask) status = ait_ref_to_f64(call, mask, &d.mask);
  if (status == AIT_OK && !deform_fits(&d, offset, mask))
    status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "groups, offsets or mask do not fit");
  for (int64_t i = 0, n = ait_tensor_count(&out), places = d.out[2] * d.out[3]; status == AIT_OK && i < n; ++i)
    ait_element_set_f64(ait_onnx_at(&out, i), out.dtype,
                        deform_element(&d, i / (places * d.out[1]), i / places % d.out[1], i % places / d.out[3], i % d.out[3]));
  ait_tensor *const parts[] = {&d.x, &d.w, &d.offset, &d.bias, &d.mask};
  for (size_t i = 0; i < AIT_COUNT(parts); ++i) ait_tensor_release(parts[i]);
  return status;
}

/* ---- Col2Im ----------------------------------------------------------------------------------------------------------------------*/

typedef struct patches {
  int32_t n;
  int64_t image[AIT_MAX_RANK], kernel[AIT_MAX_RANK], dilation[AIT_MAX_RANK], stride[AIT_MAX_RANK], begin[AIT_MAX_RANK],
      blocks[AIT_MAX_RANK];
  int64_t area, block_count, size; /* elements of a kernel; blocks; elements of the image */
} patches;

static ait_status read_patches(const ait_ref_call *call, const ait_tensor *x, patches *p) {
  int64_t pads[2 * AIT_MAX_RANK] = {0}, *given;
  int32_t m;
  uint32_t pad_count;
  AIT_TRY(ait_onnx_ints(call, 1, p->image, AIT_MAX_RANK - 2, &p->n));
  AIT_TRY(ait_onnx_ints(call, 2, p->kernel, AIT_MAX_RANK - 2, &m));
  if (m != p->n || p->n < 1 || x->rank != 3) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "image and block do not fit");
  AIT_TRY(ait_nn_ints(call, 3, p->n, 1, p->dilation));
  AIT_TRY(ait_nn_ints(call, 5, p->n, 1, p->stride));
  AIT_TRY(ait_ref_int_array(call, 4, &given, &pad_count));
  bool fits = pad_count == 0 || pad_count == 2 * (uint32_t)p->n;
  if (fits && pad_count) memcpy(pads, given, pad_count * sizeof *pads);
  ait_free(call->allocator, given, pad_count * sizeof *given);
  p->area = p->block_count = p->size = 1;
  for (int32_t d = 0; d < p->n && fits; ++d) {
    p->begin[d] = pads[d];
    fits = p->image[d] > 0 && p->kernel[d] > 0 && p->stride[d] > 0 && p->dilation[d] > 0;
    if (!fits) break;
    int64_t span = p->image[d] + pads[d] + pads[p->n + d] - p->dilation[d] * (p->kernel[d] - 1) - 1;
    p->blocks[d] = span / p->stride[d] + 1;
    fits = span >= 0 && !ait_mul_overflows(p->area, p->kernel[d], &p->area) &&
           !ait_mul_overflows(p->block_count, p->blocks[d], &p->block_count) && !ait_mul_overflows(p->size, p->image[d], &p->size);
  }
  if (!fits || x->shape[1] % p->area || x->shape[2] != p->block_count)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "image, block and operand do not fit");
  return AIT_OK;
}

static void add_patches(const patches *p, const double *columns, double *image) {
  int64_t k[AIT_MAX_RANK] = {0}, row = 0;
  do {
    int64_t b[AIT_MAX_RANK] = {0}, col = 0;
    do {
      int64_t at = 0;
      bool inside = true;
      for (int32_t d = 0; d < p->n; ++d) {
        int64_t i = b[d] * p->stride[d] - p->begin[d] + k[d] * p->dilation[d];
        inside = inside && i >= 0 && i < p->image[d];
        at = at * p->image[d] + i;
      }
      if (inside) image[at] += columns[row * p->block_count + col];
      ++col;
    } while (ait_ref_next(p->n, p->blocks, b));
    ++row;
  } while (ait_ref_next(p->n, p->kernel, k));
}

/* (x [n, c * area, blocks], image shape, block shape, dilations?, pads?, strides?) */
ait_status ait_ref_onnx_col2im(ait_ref_call *call) {
  const ait_tensor *x;
  patches p = {0};
  ait_tensor in = {0}, sums = {0};
  int64_t shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensor(call, 0, &x));
  AIT_TRY(read_patches(call, x, &p));
  shape[0] = x->shape[0];
  shape[1] = x->shape[1] / p.area;
  memcpy(shape + 2, p.image, (size_t)p.n * sizeof *shape);
  AIT_TRY(ait_nn_zeros(call, AIT_F64, p.n + 2, shape, &sums));
  ait_status status = ait_ref_to_f64(call, x, &in);
  for (int64_t i = 0; status == AIT_OK && i < shape[0] * shape[1]; ++i)
    add_patches(&p, (const double *)in.data + i * p.area * p.block_count, (double *)sums.data + i * p.size);
  if (status == AIT_OK) status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, x->dtype), &sums);
  ait_tensor_release(&in);
  ait_tensor_release(&sums);
  return status;
}
