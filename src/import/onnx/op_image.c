/* Images: resizing, sampling, boxes. */
#include "import/onnx/onnx.h"

#include <math.h>

/* ---- Resize ----------------------------------------------------------------------------------------------------------------------*/

typedef struct resize {
  uint32_t x, roi, scales, sizes; /* inputs; AIT_NO_INDEX: not given */
  const double *known_scales;
  const ait_dim *known_sizes;
  uint32_t count; /* of known scales or sizes */
  const int64_t *axes;
  uint32_t axis_count;
  const char *mode, *coordinates, *nearest, *policy;
  double cubic_a, extrapolation;
  bool antialias, exclude_outside;
} resize;

static ait_status read_resize(ox_call *c, resize *r) {
  bool upsample = strcmp(c->variant, "upsample") == 0, old = upsample || c->version < 11;
  size_t n;
  AIT_TRY(ox_need_ranked(c, 0, &r->x));
  AIT_TRY(ox_string(c, "mode", "nearest", &r->mode));
  AIT_TRY(ox_string(c, "coordinate_transformation_mode", old ? "asymmetric" : "half_pixel", &r->coordinates));
  AIT_TRY(ox_string(c, "nearest_mode", old ? "floor" : "round_prefer_floor", &r->nearest));
  AIT_TRY(ox_string(c, "keep_aspect_ratio_policy", "stretch", &r->policy));
  AIT_TRY(ox_float(c, "cubic_coeff_a", -0.75, &r->cubic_a));
  AIT_TRY(ox_float(c, "extrapolation_value", 0, &r->extrapolation));
  AIT_TRY(ox_flag(c, "antialias", false, &r->antialias));
  AIT_TRY(ox_flag(c, "exclude_outside", false, &r->exclude_outside));
  AIT_TRY(ox_ints(c, "axes", &r->axes, &n));
  r->axis_count = r->axes ? (uint32_t)n : (uint32_t)ox_info(c, r->x)->rank;
  if (n > AIT_MAX_RANK) return ox_fail(c, AIT_CODE_INVALID_MODEL, "%zu axes", n);
  r->roi = !old && ox_has(c, 1) ? c->inputs[1] : AIT_NO_INDEX;
  r->scales = old ? (ox_has(c, 1) ? c->inputs[1] : AIT_NO_INDEX) : ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX;
  r->sizes = !old && ox_has(c, 3) ? c->inputs[3] : AIT_NO_INDEX;
  int64_t length;
  /* an empty tensor stands for one that is not given */
  if (r->scales != AIT_NO_INDEX && r->sizes != AIT_NO_INDEX && ox_const_dim(c, r->scales, 0, &length) && length == 0)
    r->scales = AIT_NO_INDEX;
  if (strcmp(r->mode, "bilinear") == 0 || strcmp(r->mode, "trilinear") == 0) r->mode = "linear";
  const float *attribute;
  AIT_TRY(ox_floats(c, "scales", &attribute, &n)); /* Upsample 7 */
  if (attribute && r->scales == AIT_NO_INDEX) {
    double *copy = AIT_ARENA_ARRAY(&c->in->arena, double, n + 1);
    if (!copy) return AIT_OOM();
    for (size_t i = 0; i < n; ++i) copy[i] = (double)attribute[i];
    r->known_scales = copy;
    r->count = (uint32_t)n;
  } else if (r->scales != AIT_NO_INDEX) {
    if (!ox_known_floats(c, r->scales, &r->known_scales, &r->count)) r->known_scales = NULL;
  } else if (r->sizes != AIT_NO_INDEX) {
    if (!ox_contents(c, r->sizes, &r->known_sizes, &r->count)) r->known_sizes = NULL;
  } else {
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "neither scales nor sizes are given");
  }
  if ((r->known_scales || r->known_sizes) && r->count != r->axis_count)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "%u scales or sizes for %u axes", (unsigned)r->count, (unsigned)r->axis_count);
  return AIT_OK;
}

/* Sizes of the result, as far as they are known; *all: every one is. */
static ait_status resized_dims(ox_call *c, const resize *r, ait_dim *dims, bool *all) {
  const ait_value_info v = *ox_info(c, r->x);
  *all = (r->known_scales || r->known_sizes) && strcmp(r->policy, "stretch") == 0;
  for (int32_t d = 0; d < v.rank; ++d) dims[d] = v.shape[d];
  for (uint32_t i = 0; i < r->axis_count; ++i) {
    int32_t axis;
    int64_t size;
    AIT_TRY(ox_axis(c, r->axes ? r->axes[i] : i, v.rank, &axis));
    double scale = r->known_scales ? r->known_scales[i] : 0;
    if (*all && r->known_sizes) dims[axis] = r->known_sizes[i];
    else if (*all && ait_dim_is_const(c->g, v.shape[axis], &size))
      AIT_TRY(ait_dim_const(c->g, (int64_t)floor((double)size * scale), &dims[axis]));
    else if (*all && scale == floor(scale) && scale >= 1 && scale < 1e6)
      AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, v.shape[axis], (int64_t)scale, &dims[axis]));
    else AIT_TRY(ait_dim_unknown(c->g, &dims[axis]));
    *all = *all && ait_dim_is_known(c->g, dims[axis]);
  }
  return AIT_OK;
}

/* PyTorch's upsampling of the dims behind batch and channels: a core operator with kernels of its own. */
static const char *core_mode(ox_call *c, const resize *r, const ait_dim *dims, bool *align) {
  const ait_value_info v = *ox_info(c, r->x);
  bool half = strcmp(r->coordinates, "half_pixel") == 0 || strcmp(r->coordinates, "pytorch_half_pixel") == 0;
  bool asymmetric = strcmp(r->coordinates, "asymmetric") == 0;
  *align = strcmp(r->coordinates, "align_corners") == 0;
  if (v.rank < 3 || v.rank > 5 || r->antialias || r->exclude_outside || dims[0] != v.shape[0] || dims[1] != v.shape[1] ||
      !ait_dtype_is_float(v.dtype))
    return NULL;
  if (strcmp(r->coordinates, "pytorch_half_pixel") == 0) { /* differs where a size becomes 1 */
    for (int32_t d = 2; d < v.rank; ++d) {
      int64_t least, most;
      ait_dim_range(c->g, dims[d], &least, &most);
      if (least < 2) return NULL;
    }
  }
  if (strcmp(r->mode, "nearest") == 0 && asymmetric && strcmp(r->nearest, "floor") == 0) return "nearest";
  if (strcmp(r->mode, "linear") == 0 && (half || *align)) return v.rank == 3 ? "linear" : v.rank == 4 ? "bilinear" : "trilinear";
  if (strcmp(r->mode, "cubic") == 0 && r->cubic_a == -0.75 && v.rank == 4 && (half || *align)) return "bicubic";
  return NULL;
}

ait_status ox_build_resize(ox_call *c) {
  resize r = {0};
  bool all, align;
  ait_dim *dims;
  AIT_TRY(read_resize(c, &r));
  const ait_value_info v = *ox_info(c, r.x);
  AIT_TRY(ox_dims(c, v.rank, &dims));
  AIT_TRY(resized_dims(c, &r, dims, &all));
  const char *core = all ? core_mode(c, &r, dims, &align) : NULL;
  if (core) {
    double scales[AIT_MAX_RANK];
    size_t n = (size_t)v.rank - 2;
    for (int32_t d = 0; d < v.rank; ++d) scales[d] = 1;
    for (uint32_t i = 0; r.known_scales && i < r.axis_count; ++i) {
      int32_t axis;
      AIT_TRY(ox_axis(c, r.axes ? r.axes[i] : i, v.rank, &axis));
      scales[axis] = r.known_scales[i];
    }
    ait_arg factors = r.known_scales && !align ? ox_list_floats(c, scales + 2, n) : NONE;
    return OX(c, "upsample", &c->outputs[0], V(r.x), ox_list_dims(c, dims + 2, n), S(core), B(align), factors);
  }
  ait_value_info info = ox_tensor_info(v.dtype, v.rank, dims);
  ait_arg axes = r.axes ? ox_list_ints(c, r.axes, r.axis_count) : NONE,
          scale_list = r.scales == AIT_NO_INDEX && r.known_scales ? ox_list_floats(c, r.known_scales, r.count) : NONE;
  bool use_roi = strcmp(r.coordinates, "tf_crop_and_resize") == 0;
  return OX_RAW(c, "onnx.Resize", &info, &c->outputs[0], V(r.x), V(use_roi ? r.roi : AIT_NO_INDEX), V(r.scales), V(r.sizes), scale_list,
                axes, S(r.mode), S(r.coordinates), S(r.nearest), S(r.policy), F(r.cubic_a), F(r.extrapolation), B(r.antialias),
                B(r.exclude_outside));
}

/* ---- sampling --------------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_grid_sample(ox_call *c) {
  uint32_t x, grid;
  const char *mode, *padding;
  bool align;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &grid));
  AIT_TRY(ox_string(c, "mode", "linear", &mode));
  AIT_TRY(ox_string(c, "padding_mode", "zeros", &padding));
  AIT_TRY(ox_flag(c, "align_corners", false, &align));
  if (strcmp(mode, "bilinear") == 0) mode = "linear";
  if (strcmp(mode, "bicubic") == 0) mode = "cubic";
  const ait_value_info v = *ox_info(c, x), g = *ox_info(c, grid);
  if (v.rank < 3 || g.rank != v.rank)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "operand and grid have ranks %d and %d", (int)v.rank, (int)g.rank);
  ait_dim *dims;
  AIT_TRY(ox_dims(c, v.rank, &dims));
  dims[0] = v.shape[0];
  dims[1] = v.shape[1];
  for (int32_t d = 2; d < v.rank; ++d) dims[d] = g.shape[d - 1];
  ait_value_info info = ox_tensor_info(v.dtype, v.rank, dims);
  return OX_RAW(c, "onnx.GridSample", &info, &c->outputs[0], V(x), V(grid), S(mode), S(padding), B(align));
}

ait_status ox_build_affine_grid(ox_call *c) {
  uint32_t theta, size, n;
  bool align;
  const ait_dim *sizes;
  AIT_TRY(ox_need_ranked(c, 0, &theta));
  AIT_TRY(ox_need(c, 1, &size));
  AIT_TRY(ox_flag(c, "align_corners", false, &align));
  const ait_value_info t = *ox_info(c, theta);
  int64_t length = 0, spatial = 0;
  if (!ox_const_dim(c, size, 0, &length) && ox_const_dim(c, theta, 1, &spatial)) length = spatial + 2;
  if (length != 4 && length != 5) return ox_fail(c, AIT_CODE_INVALID_MODEL, "size has %lld elements, not 4 or 5", (long long)length);
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, t.dtype, (int32_t)length, &info));
  ait_dim *dims = (ait_dim *)(uintptr_t)info.shape;
  if (ox_contents(c, size, &sizes, &n) && n == length)
    for (int32_t d = 1; d < length - 1; ++d) dims[d] = sizes[d + 1];
  dims[0] = t.shape[0];
  AIT_TRY(ait_dim_const(c->g, length - 2, &dims[length - 1]));
  return OX_RAW(c, "onnx.AffineGrid", &info, &c->outputs[0], V(theta), V(size), B(align));
}

ait_status ox_build_center_crop_pad(ox_call *c) {
  uint32_t x, shape, n;
  const int64_t *axes;
  size_t axis_count;
  const ait_dim *sizes;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &shape));
  AIT_TRY(ox_ints(c, "axes", &axes, &axis_count));
  const ait_value_info v = *ox_info(c, x);
  ait_value_info info = ox_like(c, x), unknown;
  AIT_TRY(ox_unknown_info(c, v.dtype, v.rank, &unknown));
  ait_dim *dims = (ait_dim *)(uintptr_t)unknown.shape;
  for (int32_t d = 0; axes && d < v.rank; ++d) dims[d] = v.shape[d];
  bool known = ox_contents(c, shape, &sizes, &n);
  for (size_t i = 0; i < (axes ? axis_count : (size_t)v.rank); ++i) {
    int32_t axis;
    AIT_TRY(ox_axis(c, axes ? axes[i] : (int64_t)i, v.rank, &axis));
    if (known && i < n) dims[axis] = sizes[i];
    else AIT_TRY(ait_dim_unknown(c->g, &dims[axis]));
  }
  info.shape = dims;
  return OX_RAW(c, "onnx.CenterCropPad", &info, &c->outputs[0], V(x), V(shape), axes ? ox_list_ints(c, axes, axis_count) : NONE);
}

ait_status ox_build_col2im(ox_call *c) {
  uint32_t x, image, block, n, m;
  const int64_t *dilations, *pads, *strides, *kernel;
  const ait_dim *sizes;
  size_t d_count, p_count, s_count;
  int64_t length, area = 1;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &image));
  AIT_TRY(ox_need(c, 2, &block));
  AIT_TRY(ox_ints(c, "dilations", &dilations, &d_count));
  AIT_TRY(ox_ints(c, "pads", &pads, &p_count));
  AIT_TRY(ox_ints(c, "strides", &strides, &s_count));
  if (!ox_const_dim(c, image, 0, &length) || length < 1 || length + 2 > AIT_MAX_RANK)
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "the number of spatial dims is not known");
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, ox_dtype_of(c, x), (int32_t)length + 2, &info));
  ait_dim *dims = (ait_dim *)(uintptr_t)info.shape;
  dims[0] = ox_info(c, x)->shape[0];
  if (ox_contents(c, image, &sizes, &n) && n == length) memcpy(dims + 2, sizes, n * sizeof *dims);
  if (ox_known_ints(c, block, &kernel, &m) && m == length) {
    for (uint32_t i = 0; i < m; ++i) area *= kernel[i] > 0 && kernel[i] < 65536 ? kernel[i] : 1;
    AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, ox_info(c, x)->shape[1], area, &dims[1]));
  }
  return OX_RAW(c, "onnx.Col2Im", &info, &c->outputs[0], V(x), V(image), V(block), dilations ? ox_list_ints(c, dilations, d_count) : NONE,
                pads ? ox_list_ints(c, pads, p_count) : NONE, strides ? ox_list_ints(c, strides, s_count) : NONE);
}

/* ---- regions ---------------------------------------------------------------------------------------------------------------------*/

ait_status ox_build_roi_align(ox_call *c) {
  uint32_t x, rois, batch;
  const char *mode, *coordinates;
  int64_t height, width, ratio;
  double scale;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &rois));
  AIT_TRY(ox_need(c, 2, &batch));
  AIT_TRY(ox_string(c, "mode", "avg", &mode));
  AIT_TRY(ox_string(c, "coordinate_transformation_mode", c->version < 16 ? "output_half_pixel" : "half_pixel", &coordinates));
  AIT_TRY(ox_int(c, "output_height", 1, &height));
  AIT_TRY(ox_int(c, "output_width", 1, &width));
  AIT_TRY(ox_int(c, "sampling_ratio", 0, &ratio));
  AIT_TRY(ox_float(c, "spatial_scale", 1, &scale));
  if (height < 1 || width < 1 || ox_info(c, x)->rank != 4 || ox_info(c, rois)->rank != 2)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "sizes or ranks do not fit");
  ait_dim *dims;
  AIT_TRY(ox_dims(c, 4, &dims));
  dims[0] = ox_info(c, rois)->shape[0];
  dims[1] = ox_info(c, x)->shape[1];
  AIT_TRY(ait_dim_const(c->g, height, &dims[2]));
  AIT_TRY(ait_dim_const(c->g, width, &dims[3]));
  ait_value_info info = ox_tensor_info(ox_dtype_of(c, x), 4, dims);
  return OX_RAW(c, "onnx.RoiAlign", &info, &c->outputs[0], V(x), V(rois), V(batch), S(mode), B(strcmp(coordinates, "half_pixel") == 0),
                I(height), I(width), I(ratio), F(scale));
}

ait_status ox_build_max_roi_pool(ox_call *c) {
  uint32_t x, rois;
  const int64_t *shape;
  size_t n;
  double scale;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &rois));
  AIT_TRY(ox_ints(c, "pooled_shape", &shape, &n));
  AIT_TRY(ox_float(c, "spatial_scale", 1, &scale));
  if (n != 2 || shape[0] < 1 || shape[1] < 1 || ox_info(c, x)->rank != 4 || ox_info(c, rois)->rank != 2)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "sizes or ranks do not fit");
  ait_dim *dims;
  AIT_TRY(ox_dims(c, 4, &dims));
  dims[0] = ox_info(c, rois)->shape[0];
  dims[1] = ox_info(c, x)->shape[1];
  AIT_TRY(ox_dim_ints(c, shape, 2, dims + 2));
  ait_value_info info = ox_tensor_info(ox_dtype_of(c, x), 4, dims);
  return OX_RAW(c, "onnx.MaxRoiPool", &info, &c->outputs[0], V(x), V(rois), I(shape[0]), I(shape[1]), F(scale));
}

ait_status ox_build_nms(ox_call *c) {
  uint32_t boxes, scores, more[3];
  bool center;
  ait_value_info info;
  AIT_TRY(ox_need(c, 0, &boxes));
  AIT_TRY(ox_need(c, 1, &scores));
  AIT_TRY(ox_flag(c, "center_point_box", false, &center));
  for (uint32_t i = 0; i < 3; ++i) more[i] = ox_has(c, 2 + i) ? c->inputs[2 + i] : AIT_NO_INDEX;
  AIT_TRY(ox_unknown_info(c, AIT_I64, 2, &info));
  AIT_TRY(ait_dim_const(c->g, 3, (ait_dim *)(uintptr_t)&info.shape[1]));
  return OX_RAW(c, "onnx.NonMaxSuppression", &info, &c->outputs[0], V(boxes), V(scores), V(more[0]), V(more[1]), V(more[2]), B(center));
}

ait_status ox_build_deform_conv(ox_call *c) {
  uint32_t in[5];
  int64_t groups, offset_groups, v[3][AIT_MAX_RANK], pads[2 * AIT_MAX_RANK];
  for (uint32_t i = 0; i < 5; ++i) {
    in[i] = ox_has(c, i) ? c->inputs[i] : AIT_NO_INDEX;
    if (i < 3) AIT_TRY(ox_need_ranked(c, i, &in[i]));
  }
  AIT_TRY(ox_int(c, "group", 1, &groups));
  AIT_TRY(ox_int(c, "offset_group", 1, &offset_groups));
  const ait_value_info w = *ox_info(c, in[1]), o = *ox_info(c, in[2]);
  if (ox_info(c, in[0])->rank != 4 || w.rank != 4 || o.rank != 4)
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "a deformable convolution of %d dims", (int)w.rank - 2);
  AIT_TRY(ox_n_ints(c, "strides", 2, 1, v[0]));
  AIT_TRY(ox_n_ints(c, "dilations", 2, 1, v[1]));
  AIT_TRY(ox_n_ints(c, "pads", 4, 0, pads));
  ait_dim *dims;
  AIT_TRY(ox_dims(c, 4, &dims));
  dims[0] = o.shape[0], dims[1] = w.shape[0], dims[2] = o.shape[2], dims[3] = o.shape[3];
  ait_value_info info = ox_tensor_info(ox_dtype_of(c, in[0]), 4, dims);
  return OX_RAW(c, "onnx.DeformConv", &info, &c->outputs[0], V(in[0]), V(in[1]), V(in[2]), V(in[3]), V(in[4]), ox_list_ints(c, v[0], 2),
                ox_list_ints(c, pads, 4), ox_list_ints(c, v[1], 2), I(groups), I(offset_groups));
}
