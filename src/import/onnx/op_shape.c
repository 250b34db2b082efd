/* Rearrangements, and the arithmetic on shapes that decides them. Where the sizes are known at import (constants, or functions of the
 * inputs' sizes) core operators are built; where they are data, an onnx.* operator takes them when the graph runs. */
#include "import/onnx/onnx.h"

static ait_status set_dims(ox_call *c, uint32_t value, int32_t rank, uint32_t count, const ait_dim *dims) {
  ox_known known = {.has_dims = true, .rank = rank, .count = count, .dims = dims};
  return count <= OX_KNOWN_LIMIT ? ox_set_known(c->s, value, &known) : AIT_OK;
}

/* A type of the rank that a tensor of sizes says; sizes that are known in it are known in the result. */
static ait_status info_by_sizes(ox_call *c, ait_dtype dtype, uint32_t sizes, ait_value_info *out) {
  const ait_dim *dims;
  uint32_t n;
  int64_t rank = -1;
  ox_const_dim(c, sizes, 0, &rank);
  AIT_TRY(ox_unknown_info(c, dtype, rank > AIT_MAX_RANK ? -1 : (int32_t)rank, out));
  if (!ox_contents(c, sizes, &dims, &n) || (int64_t)n != rank) return AIT_OK;
  for (uint32_t i = 0; i < n; ++i) {
    int64_t min, max;
    ait_dim_range(c->g, dims[i], &min, &max);
    if (min > 0) ((ait_dim *)(uintptr_t)out->shape)[i] = dims[i]; /* 0 and -1 have meanings of their own */
  }
  return AIT_OK;
}

/* ---- constants -------------------------------------------------------------------------------------------------------------------*/

static ait_status number_list(ox_call *c, ait_dtype dtype, const void *data, int64_t n, int32_t rank) {
  return ox_add_constant(c, dtype, rank, &n, data, &c->outputs[0]);
}

ait_status ox_build_constant(ox_call *c) {
  static const char *const forms[] = {"value", "value_float", "value_floats", "value_int", "value_ints", "sparse_value"};
  const Onnx__AttributeProto *a = NULL;
  size_t form = 0;
  ox_scope *root = c->s;
  for (; form < AIT_COUNT(forms) && !a; ++form) {
    static const int types[] = {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT,
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,   ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR};
    AIT_TRY(ox_attribute(c, forms[form], types[form], &a));
  }
  if (!a) return ox_fail(c, AIT_CODE_UNSUPPORTED, "a constant without a value that can be read (strings cannot)");
  while (root->frame->captures_for) root = root->frame->captures_for;
  switch (form - 1) {
    case 0:
      if (!a->t) return ox_fail(c, AIT_CODE_INVALID_MODEL, "attribute 'value' holds no tensor");
      AIT_TRY(ox_add_weight(root, c->name, a->t, AIT_INPUT_CONSTANT, &c->outputs[0]));
      break;
    case 1: return number_list(c, AIT_F32, &a->f, 1, 0);
    case 2: return number_list(c, AIT_F32, a->floats, (int64_t)a->n_floats, 1);
    case 3: return number_list(c, AIT_I64, &a->i, 1, 0);
    case 4: return number_list(c, AIT_I64, a->ints, (int64_t)a->n_ints, 1);
    default:
      if (!a->sparse_tensor) return ox_fail(c, AIT_CODE_INVALID_MODEL, "attribute 'sparse_value' holds no tensor");
      AIT_TRY(ox_add_sparse(root, c->name, a->sparse_tensor, &c->outputs[0]));
      break;
  }
  return ox_bring_down(c->s, c->outputs[0], &c->outputs[0]);
}

ait_status ox_build_constant_of_shape(ox_call *c) {
  const Onnx__AttributeProto *a;
  uint32_t shape, n;
  const ait_dim *dims;
  ait_arg value = F(0);
  ait_dtype dtype = AIT_F32;
  ait_weight w;
  AIT_TRY(ox_need(c, 0, &shape));
  AIT_TRY(ox_attribute(c, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR, &a));
  if (a && a->t) {
    AIT_TRY(ox_tensor(c->in, a->t, &w));
    if (w.rank > 1 || (w.rank == 1 && w.shape[0] != 1))
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "attribute 'value' holds more than one number");
    const char *p = ait_storage_data(ait_weight_store_storage(c->in->weights, w.storage));
    p += (size_t)w.offset * ait_dtype_size(w.dtype);
    dtype = w.dtype;
    value = dtype == AIT_BOOL             ? B(ait_element_i64(p, dtype) != 0)
            : ait_dtype_is_integer(dtype) ? I(ait_element_i64(p, dtype))
                                          : F(ait_element_f64(p, dtype));
  }
  if (!ox_known_dims(c, shape, &dims, &n)) {
    ait_value_info info;
    AIT_TRY(info_by_sizes(c, dtype, shape, &info));
    return OX_RAW(c, "onnx.ConstantOfShape", &info, &c->outputs[0], V(shape), value, T(dtype));
  }
  AIT_TRY(OX(c, "full", &c->outputs[0], ox_list_dims(c, dims, n), value, T(dtype)));
  const ait_value_info *y = ox_info(c, c->outputs[0]);
  int64_t count = 1;
  if (value.kind != AIT_ARG_INT || y->rank > 1 ||
      (y->rank == 1 && (!ait_dim_is_const(c->g, y->shape[0], &count) || count > OX_KNOWN_LIMIT)))
    return AIT_OK;
  ait_dim *filled;
  AIT_TRY(ox_dims(c, (int32_t)count, &filled));
  for (int64_t i = 0; i < count; ++i) AIT_TRY(ait_dim_const(c->g, value.as.i, &filled[i]));
  return set_dims(c, c->outputs[0], y->rank, (uint32_t)count, filled);
}

/* ---- shapes as values ------------------------------------------------------------------------------------------------------------*/

static int64_t clamp_axis(int64_t v, int32_t rank) {
  if (v < 0) v += rank;
  return v < 0 ? 0 : v > rank ? rank : v;
}

ait_status ox_build_shape(ox_call *c) {
  uint32_t x;
  int64_t start, end;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_int(c, "start", 0, &start));
  AIT_TRY(ox_int(c, "end", INT64_MAX, &end));
  const ait_value_info v = *ox_info(c, x);
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, AIT_I64, 1, &info));
  int64_t count = 0;
  if (v.rank >= 0) {
    start = clamp_axis(start, v.rank);
    end = clamp_axis(end, v.rank);
    count = end > start ? end - start : 0;
    AIT_TRY(ait_dim_const(c->g, count, (ait_dim *)(uintptr_t)info.shape));
  }
  AIT_TRY(OX_RAW(c, "onnx.Shape", &info, &c->outputs[0], V(x), I(start), I(end)));
  return v.rank >= 0 ? set_dims(c, c->outputs[0], 1, (uint32_t)count, v.shape + (count ? start : 0)) : AIT_OK;
}

ait_status ox_build_size(ox_call *c) {
  uint32_t x;
  ait_dim total;
  AIT_TRY(ox_need(c, 0, &x));
  const ait_value_info v = *ox_info(c, x);
  ait_value_info info = ox_tensor_info(AIT_I64, 0, NULL);
  AIT_TRY(OX_RAW(c, "onnx.Size", &info, &c->outputs[0], V(x)));
  if (v.rank < 0) return AIT_OK;
  AIT_TRY(ait_dim_const(c->g, 1, &total));
  for (int32_t d = 0; d < v.rank; ++d) AIT_TRY(ox_dim(c, AIT_DIM_MUL, total, v.shape[d], &total));
  return set_dims(c, c->outputs[0], 0, 1, &total);
}

/* ---- reshape and its kin -----------------------------------------------------------------------------------------------------------*/

/* 0 keeps a size unless allowzero, -1 is what remains. false: a size might be 0 or -1, only data tells. */
static bool reshape_sizes(ox_call *c, uint32_t x, const ait_dim *dims, uint32_t n, bool allow_zero, ait_dim *out) {
  const ait_value_info *v = ox_info(c, x);
  for (uint32_t i = 0; i < n; ++i) {
    int64_t k;
    out[i] = dims[i];
    if (!ait_dim_is_const(c->g, dims[i], &k)) {
      /* a size that a Shape gave is 0 only where the operand's is: then both readings are the same when it keeps its place */
      int64_t min, max;
      ait_dim_range(c->g, dims[i], &min, &max);
      if (min < 0) return false;
      continue;
    }
    if (k != 0 || allow_zero) continue;
    if (v->rank < 0 || i >= (uint32_t)v->rank) return false;
    out[i] = v->shape[i];
  }
  return true;
}

ait_status ox_build_reshape(ox_call *c) {
  uint32_t x, shape, n;
  bool allow_zero;
  const ait_dim *dims;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &shape));
  AIT_TRY(ox_flag(c, "allowzero", false, &allow_zero));
  if (ox_known_dims(c, shape, &dims, &n) && n <= AIT_MAX_RANK) {
    ait_dim sizes[AIT_MAX_RANK];
    if (reshape_sizes(c, x, dims, n, allow_zero, sizes)) {
      const ait_dim *contents;
      uint32_t m;
      AIT_TRY(ox_reshape(c, x, sizes, (int32_t)n, &c->outputs[0]));
      return n <= 1 && ox_contents(c, x, &contents, &m) ? set_dims(c, c->outputs[0], (int32_t)n, m, contents) : AIT_OK;
    }
  }
  ait_value_info info;
  AIT_TRY(info_by_sizes(c, ox_dtype_of(c, x), shape, &info));
  return OX_RAW(c, "onnx.Reshape", &info, &c->outputs[0], V(x), V(shape), B(allow_zero));
}

ait_status ox_build_flatten(ox_call *c) {
  uint32_t x;
  int64_t axis;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_int(c, "axis", 1, &axis));
  const ait_value_info v = *ox_info(c, x);
  if (axis < 0) axis += v.rank;
  if (axis < 0 || axis > v.rank) return ox_fail(c, AIT_CODE_INVALID_MODEL, "axis %lld is outside of rank %d", (long long)axis, (int)v.rank);
  ait_dim sizes[2];
  for (int k = 0; k < 2; ++k) {
    AIT_TRY(ait_dim_const(c->g, 1, &sizes[k]));
    for (int32_t d = k ? (int32_t)axis : 0; d < (k ? v.rank : (int32_t)axis); ++d)
      AIT_TRY(ox_dim(c, AIT_DIM_MUL, sizes[k], v.shape[d], &sizes[k]));
  }
  return ox_reshape(c, x, sizes, 2, &c->outputs[0]);
}

static ait_status axes_set(ox_call *c, const int64_t *axes, uint32_t n, int32_t rank, bool set[AIT_MAX_RANK]) {
  for (int32_t d = 0; d < AIT_MAX_RANK; ++d) set[d] = false;
  for (uint32_t i = 0; i < n; ++i) {
    int32_t a;
    AIT_TRY(ox_axis(c, axes[i], rank, &a));
    if (set[a]) return ox_fail(c, AIT_CODE_INVALID_MODEL, "axis %d is named twice", (int)a);
    set[a] = true;
  }
  return AIT_OK;
}

/* Squeeze and Unsqueeze when the axes are data, or the sizes that decide them. */
static ait_status squeeze_later(ox_call *c, uint32_t x, uint32_t axes, bool insert) {
  int64_t n;
  int32_t rank = ox_info(c, x)->rank;
  bool counted = rank >= 0 && axes != AIT_NO_INDEX && ox_const_dim(c, axes, 0, &n);
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, ox_dtype_of(c, x), !counted ? -1 : insert ? rank + (int32_t)n : rank - (int32_t)n, &info));
  return OX_RAW(c, insert ? "onnx.Unsqueeze" : "onnx.Squeeze", &info, &c->outputs[0], V(x), V(axes));
}

static ait_status keep_contents(ox_call *c, uint32_t from, uint32_t to) {
  const ait_dim *dims;
  uint32_t n;
  int32_t rank = ox_info(c, to)->rank;
  return rank >= 0 && rank <= 1 && ox_contents(c, from, &dims, &n) ? set_dims(c, to, rank, n, dims) : AIT_OK;
}

ait_status ox_build_squeeze(ox_call *c) {
  uint32_t x, n;
  const int64_t *axes;
  bool given, known, drop[AIT_MAX_RANK];
  ait_dim sizes[AIT_MAX_RANK];
  int32_t rank = 0;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_ints_or_input(c, "axes", 1, &axes, &n, &given, &known));
  if (!known) return squeeze_later(c, x, c->inputs[1], false);
  AIT_TRY(ox_need_ranked(c, 0, &x));
  const ait_value_info v = *ox_info(c, x);
  AIT_TRY(axes_set(c, axes, given ? n : 0, v.rank, drop));
  for (int32_t d = 0; d < v.rank; ++d) {
    int64_t size = 0;
    bool is_const = ait_dim_is_const(c->g, v.shape[d], &size);
    if (!given) drop[d] = is_const && size == 1; /* which sizes are 1 decides the rank: it must be known */
    if (!given && !is_const) return squeeze_later(c, x, AIT_NO_INDEX, false);
    if (drop[d] && is_const && size != 1)
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "axis %d has size %lld, not 1", (int)d, (long long)size);
    if (!drop[d]) sizes[rank++] = v.shape[d];
  }
  AIT_TRY(ox_reshape(c, x, sizes, rank, &c->outputs[0]));
  return keep_contents(c, x, c->outputs[0]);
}

ait_status ox_build_unsqueeze(ox_call *c) {
  uint32_t x, n;
  const int64_t *axes;
  bool given, known, added[AIT_MAX_RANK];
  ait_dim sizes[AIT_MAX_RANK];
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_ints_or_input(c, "axes", 1, &axes, &n, &given, &known));
  if (!given) return ox_fail(c, AIT_CODE_INVALID_MODEL, "no axes are given");
  if (!known) return squeeze_later(c, x, c->inputs[1], true);
  AIT_TRY(ox_need_ranked(c, 0, &x));
  const ait_value_info v = *ox_info(c, x);
  if (n > AIT_MAX_RANK || v.rank + (int32_t)n > AIT_MAX_RANK) return ox_fail(c, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  int32_t rank = v.rank + (int32_t)n;
  AIT_TRY(axes_set(c, axes, n, rank, added));
  for (int32_t d = 0, from = 0; d < rank; ++d) {
    if (added[d]) AIT_TRY(ait_dim_const(c->g, 1, &sizes[d]));
    else sizes[d] = v.shape[from++];
  }
  AIT_TRY(ox_reshape(c, x, sizes, rank, &c->outputs[0]));
  return keep_contents(c, x, c->outputs[0]);
}

ait_status ox_build_transpose(ox_call *c) {
  uint32_t x;
  const int64_t *perm;
  int64_t reversed[AIT_MAX_RANK];
  size_t n;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_ints(c, "perm", &perm, &n));
  if (!perm) {
    AIT_TRY(ox_need_ranked(c, 0, &x));
    n = (size_t)ox_info(c, x)->rank;
    for (size_t d = 0; d < n; ++d) reversed[d] = (int64_t)(n - 1 - d);
    perm = reversed;
  }
  if (n > AIT_MAX_RANK) return ox_fail(c, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  AIT_TRY(ox_permute(c, x, perm, (int32_t)n, &c->outputs[0]));
  return keep_contents(c, x, c->outputs[0]);
}

ait_status ox_build_expand(ox_call *c) {
  uint32_t x, shape, n;
  const ait_dim *dims;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &shape));
  const ait_value_info v = *ox_info(c, x);
  bool known = ox_known_dims(c, shape, &dims, &n) && v.rank >= 0 && n <= AIT_MAX_RANK;
  ait_dim sizes[AIT_MAX_RANK];
  int32_t rank = known && (int32_t)n > v.rank ? (int32_t)n : v.rank;
  for (int32_t i = 1; known && i <= rank; ++i) { /* broadcast of the operand and the shape */
    int64_t a = 0, b = 0;
    ait_dim mine = i <= v.rank ? v.shape[v.rank - i] : 0, wanted = i <= (int32_t)n ? dims[n - (uint32_t)i] : 0;
    bool mine_const = mine && ait_dim_is_const(c->g, mine, &a), wanted_const = wanted && ait_dim_is_const(c->g, wanted, &b);
    if (!mine || (mine_const && a == 1 && wanted)) sizes[rank - i] = wanted;
    else if (!wanted || (wanted_const && b == 1) || mine == wanted || mine_const) sizes[rank - i] = mine;
    else if (wanted_const) sizes[rank - i] = wanted;
    else known = false; /* either may be 1 */
  }
  if (known) {
    AIT_TRY(OX(c, "expand", &c->outputs[0], V(x), ox_list_dims(c, sizes, (size_t)rank)));
    const ait_dim *contents;
    uint32_t m;
    int64_t count;
    if (rank > 1 || !ox_contents(c, x, &contents, &m) || m != 1) return AIT_OK;
    if (rank == 0) return set_dims(c, c->outputs[0], 0, 1, contents);
    if (!ait_dim_is_const(c->g, sizes[0], &count) || count > OX_KNOWN_LIMIT || count < 0) return AIT_OK;
    ait_dim *all;
    AIT_TRY(ox_dims(c, (int32_t)count, &all));
    for (int64_t i = 0; i < count; ++i) all[i] = contents[0];
    return set_dims(c, c->outputs[0], 1, (uint32_t)count, all);
  }
  ait_value_info info;
  int64_t length = -1;
  bool counted = ox_const_dim(c, shape, 0, &length) && length <= AIT_MAX_RANK && v.rank >= 0;
  AIT_TRY(ox_unknown_info(c, v.dtype, counted ? (length > v.rank ? (int32_t)length : v.rank) : -1, &info));
  return OX_RAW(c, "onnx.Expand", &info, &c->outputs[0], V(x), V(shape));
}

ait_status ox_build_tile(ox_call *c) {
  uint32_t x, repeats, n;
  const ait_dim *counts;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &repeats));
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, ox_dtype_of(c, x), ox_info(c, x)->rank, &info));
  if (!ox_known_dims(c, repeats, &counts, &n)) return OX_RAW(c, "onnx.Tile", &info, &c->outputs[0], V(x), V(repeats));
  if ((int32_t)n != info.rank) return ox_fail(c, AIT_CODE_INVALID_MODEL, "%u repeats for rank %d", (unsigned)n, (int)info.rank);
  ait_dim *dims;
  AIT_TRY(ox_dims(c, info.rank, &dims));
  for (int32_t d = 0; d < info.rank; ++d) AIT_TRY(ox_dim(c, AIT_DIM_MUL, ox_info(c, x)->shape[d], counts[d], &dims[d]));
  info.shape = dims;
  return OX_RAW(c, "aten.repeat", &info, &c->outputs[0], V(x), ox_list_dims(c, counts, n));
}

/* ---- concat, split, slice ----------------------------------------------------------------------------------------------------------*/

ait_status ox_build_concat(ox_call *c) {
  uint32_t x, total = 0;
  int64_t axis;
  bool follow = true;
  AIT_TRY(ox_int(c, "axis", 1, &axis));
  for (uint32_t i = 0; i < c->input_count; ++i) {
    const ait_dim *dims;
    uint32_t n;
    AIT_TRY(ox_need(c, i, &x));
    follow = follow && ox_info(c, x)->rank == 1 && ox_contents(c, x, &dims, &n);
    if (follow) total += n;
  }
  AIT_TRY(OX(c, "cat", &c->outputs[0], ox_list_values(c, c->inputs, c->input_count), I(axis)));
  if (!follow || total > OX_KNOWN_LIMIT) return AIT_OK;
  ait_dim *all;
  AIT_TRY(ox_dims(c, (int32_t)total, &all));
  for (uint32_t i = 0, at = 0; i < c->input_count; ++i) {
    const ait_dim *dims;
    uint32_t n;
    if (!ox_contents(c, c->inputs[i], &dims, &n)) return AIT_OK;
    if (n) memcpy(all + at, dims, n * sizeof *all);
    at += n;
  }
  return set_dims(c, c->outputs[0], 1, total, all);
}

/* Pieces of the sizes `split`, which may be expressions. */
static ait_status split_known(ox_call *c, uint32_t x, int32_t axis, const ait_dim *split, uint32_t n) {
  ait_dim start, end;
  AIT_TRY(ait_dim_const(c->g, 0, &start));
  for (uint32_t i = 0; i < n && i < OX_MAX_OUTPUTS; ++i) {
    const ait_dim *dims;
    uint32_t m;
    int64_t from, to;
    AIT_TRY(ox_dim(c, AIT_DIM_ADD, start, split[i], &end));
    ait_arg bounds = ox_list_dims(c, (ait_dim[]){start, end}, 2);
    if (bounds.kind == AIT_ARG_NONE) return AIT_OOM();
    AIT_TRY(ox_slice(c, x, axis, bounds.as.list[0], bounds.as.list[1], &c->outputs[i]));
    if (ox_info(c, x)->rank == 1 && ox_contents(c, x, &dims, &m) && ait_dim_is_const(c->g, start, &from) &&
        ait_dim_is_const(c->g, end, &to) && to <= (int64_t)m)
      AIT_TRY(set_dims(c, c->outputs[i], 1, (uint32_t)(to - from), dims + from));
    start = end;
  }
  return AIT_OK;
}

/* Sizes of n equal pieces, the last one smaller where they do not fit. */
static ait_status equal_pieces(ox_call *c, ait_dim size, uint32_t n, ait_dim *out) {
  ait_dim piece, used;
  AIT_TRY(ox_dim_int(c, AIT_DIM_CEILDIV, size, n, &piece));
  for (uint32_t i = 0; i < n; ++i) out[i] = piece;
  AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, piece, (int64_t)n - 1, &used));
  return ox_dim(c, AIT_DIM_SUB, size, used, &out[n - 1]);
}

ait_status ox_build_split(ox_call *c) {
  uint32_t x, n;
  int64_t axis_attribute;
  int32_t axis;
  const ait_dim *split = NULL;
  ait_dim sizes[OX_MAX_OUTPUTS];
  const int64_t *ints;
  size_t count;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_int(c, "axis", 0, &axis_attribute));
  AIT_TRY(ox_axis(c, axis_attribute, ox_info(c, x)->rank, &axis));
  AIT_TRY(ox_ints(c, "split", &ints, &count));
  n = (uint32_t)c->node->n_output;
  if (n == 0 || n > OX_MAX_OUTPUTS) return ox_fail(c, AIT_CODE_LIMIT, "%u pieces, at most %d are possible", (unsigned)n, OX_MAX_OUTPUTS);
  if (ints) {
    if (count > OX_MAX_OUTPUTS) return ox_fail(c, AIT_CODE_LIMIT, "more than %d pieces", OX_MAX_OUTPUTS);
    AIT_TRY(ox_dim_ints(c, ints, (int32_t)count, sizes));
    n = (uint32_t)count;
    split = sizes;
  } else if (!ox_has(c, 1)) {
    AIT_TRY(equal_pieces(c, ox_info(c, x)->shape[axis], n, sizes));
    split = sizes;
  } else if (!ox_known_dims(c, c->inputs[1], &split, &n)) { /* the sizes are data */
    ait_value_info infos[OX_MAX_OUTPUTS];
    for (uint32_t i = 0; i < n; ++i) {
      ait_dim *dims;
      AIT_TRY(ox_dims(c, ox_info(c, x)->rank, &dims));
      infos[i] = ox_like(c, x);
      memcpy(dims, infos[i].shape, (size_t)infos[i].rank * sizeof *dims);
      AIT_TRY(ait_dim_unknown(c->g, &dims[axis]));
      infos[i].shape = dims;
      AIT_TRY(OX_RAW(c, "onnx.SplitPiece", &infos[i], &c->outputs[i], V(x), V(c->inputs[1]), I(axis), I(i)));
    }
    return AIT_OK;
  }
  return split_known(c, x, axis, split, n);
}

/* A bound within the dim: slices follow numpy, which core's slice does for steps forward. */
static ait_status slice_axis(ox_call *c, uint32_t x, int32_t axis, ait_dim start, ait_dim end, int64_t step, uint32_t *out) {
  int64_t s, e, axis_list = axis;
  ait_arg bounds = ox_list_dims(c, (ait_dim[]){start, end}, 2);
  if (bounds.kind == AIT_ARG_NONE) return AIT_OOM();
  if (step > 0) return OX(c, "slice", out, V(x), I(axis), bounds.as.list[0], bounds.as.list[1], I(step));
  /* Backwards: the flipped operand, forwards. Index i becomes size - 1 - i; what lies before the first element is one past the last. */
  if (!ait_dim_is_const(c->g, start, &s) || !ait_dim_is_const(c->g, end, &e))
    return ox_fail(c, AIT_CODE_UNSUPPORTED, "a slice backwards with bounds that are not constant");
  AIT_TRY(OX(c, "flip", out, V(x), ox_list_ints(c, &axis_list, 1)));
  ait_dim size = ox_info(c, x)->shape[axis], from, to;
  int64_t n;
  if (ait_dim_is_const(c->g, size, &n)) { /* clamp by the rules: start to [0, n-1], end to [-1, n-1] */
    if (s < 0) s += n;
    if (e < 0) e += n;
    s = s < -1 ? -1 : s > n - 1 ? n - 1 : s;
    e = e < -1 ? -1 : e > n - 1 ? n - 1 : e;
    return OX(c, "slice", out, V(*out), I(axis), I(n - 1 - s), I(n - 1 - e), I(-step));
  }
  if (s < 0)
    AIT_TRY(ait_dim_const(c->g, s == INT64_MIN ? 0 : -1 - s, &from)); /* counted from the end, that is from the flipped beginning */
  else {
    AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, size, 1, &from));
    AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, from, s < INT32_MAX ? s : INT32_MAX, &from));
    AIT_TRY(ox_dim_int(c, AIT_DIM_MAX, from, 0, &from));
  }
  if (e < 0) AIT_TRY(ait_dim_const(c->g, e <= -INT32_MAX ? INT64_MAX : -1 - e, &to));
  else {
    AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, size, 1, &to));
    AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, to, e < INT32_MAX ? e : INT32_MAX, &to));
    AIT_TRY(ox_dim_int(c, AIT_DIM_MAX, to, 0, &to));
  }
  bounds = ox_list_dims(c, (ait_dim[]){from, to}, 2);
  if (bounds.kind == AIT_ARG_NONE) return AIT_OOM();
  return OX(c, "slice", out, V(*out), I(axis), bounds.as.list[0], bounds.as.list[1], I(-step));
}

static ait_status slice_later(ox_call *c, uint32_t x, const int64_t *axes, uint32_t axis_count, bool axes_known) {
  ait_value_info info = ox_like(c, x), unknown;
  AIT_TRY(ox_unknown_info(c, info.dtype, info.rank, &unknown));
  if (axes_known && info.rank >= 0) { /* other dims keep their sizes */
    bool cut[AIT_MAX_RANK];
    AIT_TRY(axes_set(c, axes, axis_count, info.rank, cut));
    for (int32_t d = 0; d < info.rank; ++d)
      if (!cut[d]) ((ait_dim *)(uintptr_t)unknown.shape)[d] = info.shape[d];
  }
  return OX_RAW(c, "onnx.Slice", &unknown, &c->outputs[0], V(x), V(c->inputs[1]), V(c->inputs[2]),
                V(ox_has(c, 3) ? c->inputs[3] : AIT_NO_INDEX), V(ox_has(c, 4) ? c->inputs[4] : AIT_NO_INDEX));
}

typedef struct slice_spec {
  const ait_dim *starts, *ends;
  const int64_t *axes, *steps; /* NULL: 0, 1, …; ones */
  uint32_t count;
} slice_spec;

static ait_status slice_contents(ox_call *c, uint32_t x, const slice_spec *s) {
  const ait_dim *dims;
  uint32_t n;
  int64_t start, end, step = s->steps ? s->steps[0] : 1;
  if (s->count != 1 || ox_info(c, x)->rank != 1 || !ox_contents(c, x, &dims, &n)) return AIT_OK;
  if (!ait_dim_is_const(c->g, s->starts[0], &start) || !ait_dim_is_const(c->g, s->ends[0], &end) || step <= 0) return AIT_OK;
  start = clamp_axis(start, (int32_t)n);
  end = clamp_axis(end, (int32_t)n);
  ait_dim *kept;
  uint32_t count = 0;
  AIT_TRY(ox_dims(c, (int32_t)n, &kept));
  for (int64_t i = start; i < end && i >= start; i += step) kept[count++] = dims[i];
  return set_dims(c, c->outputs[0], 1, count, kept);
}

static ait_status slice_known(ox_call *c, uint32_t x, const slice_spec *s) {
  uint32_t y = x;
  bool seen[AIT_MAX_RANK];
  if (s->axes) AIT_TRY(axes_set(c, s->axes, s->count, ox_info(c, x)->rank, seen));
  for (uint32_t i = 0; i < s->count; ++i) {
    int32_t axis;
    AIT_TRY(ox_axis(c, s->axes ? s->axes[i] : i, ox_info(c, x)->rank, &axis));
    int64_t step = s->steps ? s->steps[i] : 1;
    if (step == 0 || step == INT64_MIN) return ox_fail(c, AIT_CODE_INVALID_MODEL, "step %lld", (long long)step);
    AIT_TRY(slice_axis(c, y, axis, s->starts[i], s->ends[i], step, &y));
  }
  c->outputs[0] = y;
  return slice_contents(c, x, s);
}

ait_status ox_build_slice(ox_call *c) {
  uint32_t x, n = 0, m = 0, k = 0, j = 0;
  slice_spec s = {0};
  bool known = true, axes_known = true;
  AIT_TRY(ox_need(c, 0, &x));
  if (c->version < 10) {
    const int64_t *starts, *ends, *axes;
    size_t a, b, e;
    ait_dim *dims;
    AIT_TRY(ox_ints(c, "starts", &starts, &a));
    AIT_TRY(ox_ints(c, "ends", &ends, &b));
    AIT_TRY(ox_ints(c, "axes", &axes, &e));
    if (a != b || (axes && e != a) || a > AIT_MAX_RANK) return ox_fail(c, AIT_CODE_INVALID_MODEL, "starts, ends and axes do not fit");
    AIT_TRY(ox_dims(c, (int32_t)(2 * a), &dims));
    AIT_TRY(ox_dim_ints(c, starts, (int32_t)a, dims));
    AIT_TRY(ox_dim_ints(c, ends, (int32_t)a, dims + a));
    AIT_TRY(ox_need_ranked(c, 0, &x));
    s = (slice_spec){dims, dims + a, axes, NULL, (uint32_t)a};
    return slice_known(c, x, &s);
  }
  uint32_t unused;
  AIT_TRY(ox_need(c, 1, &unused));
  AIT_TRY(ox_need(c, 2, &unused));
  known = ox_known_dims(c, c->inputs[1], &s.starts, &n) && ox_known_dims(c, c->inputs[2], &s.ends, &m);
  if (ox_has(c, 3)) axes_known = ox_known_ints(c, c->inputs[3], &s.axes, &k);
  if (ox_has(c, 4)) known = known && ox_known_ints(c, c->inputs[4], &s.steps, &j);
  if (!known || !axes_known || ox_info(c, x)->rank < 0) return slice_later(c, x, s.axes, k, axes_known && s.axes);
  if (n != m || n > AIT_MAX_RANK || (s.axes && k != n) || (s.steps && j != n))
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "starts, ends, axes and steps do not fit");
  s.count = n;
  for (uint32_t i = 0; i < n; ++i) { /* backwards needs constant bounds at import; else the data decide */
    bool constant = ait_dim_is_const(c->g, s.starts[i], NULL) && ait_dim_is_const(c->g, s.ends[i], NULL);
    if (s.steps && s.steps[i] < 0 && !constant) return slice_later(c, x, s.axes, k, s.axes != NULL);
  }
  return slice_known(c, x, &s);
}

/* ---- padding ---------------------------------------------------------------------------------------------------------------------*/

static ait_status pad_amounts(ox_call *c, uint32_t x, const ait_dim **out, bool *known) {
  const int64_t *ints, *axes;
  size_t count;
  uint32_t n, axis_count;
  int32_t rank = ox_info(c, x)->rank;
  ait_dim *all;
  *known = false;
  AIT_TRY(ox_ints(c, "pads", &ints, &count));
  AIT_TRY(ox_dims(c, 2 * rank, &all));
  *out = all;
  if (ints) {
    if (count != 2 * (size_t)rank) return ox_fail(c, AIT_CODE_INVALID_MODEL, "%zu pads for rank %d", count, (int)rank);
    *known = true;
    return ox_dim_ints(c, ints, 2 * rank, all);
  }
  uint32_t pads;
  const ait_dim *dims;
  AIT_TRY(ox_need(c, 1, &pads));
  if (!ox_known_dims(c, pads, &dims, &n)) return AIT_OK;
  for (int32_t i = 0; i < 2 * rank; ++i) AIT_TRY(ait_dim_const(c->g, 0, &all[i]));
  if (ox_has(c, 3) && !ox_known_ints(c, c->inputs[3], &axes, &axis_count)) return AIT_OK;
  if (!ox_has(c, 3)) axes = NULL, axis_count = (uint32_t)rank;
  if (n != 2 * axis_count || axis_count > AIT_MAX_RANK)
    return ox_fail(c, AIT_CODE_INVALID_MODEL, "%u pads for %u axes", (unsigned)n, (unsigned)axis_count);
  for (uint32_t i = 0; i < axis_count; ++i) {
    int32_t axis;
    AIT_TRY(ox_axis(c, axes ? axes[i] : i, rank, &axis));
    all[axis] = dims[i];
    all[rank + axis] = dims[axis_count + i];
  }
  *known = true;
  return AIT_OK;
}

ait_status ox_build_pad(ox_call *c) {
  uint32_t x;
  const char *mode;
  const ait_dim *pads;
  bool known;
  double value = 0;
  ait_arg fill = I(0);
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_string(c, "mode", "constant", &mode));
  AIT_TRY(pad_amounts(c, x, &pads, &known));
  const ait_value_info v = *ox_info(c, x);
  bool constant = strcmp(mode, "constant") == 0, number = true;
  if (c->version < 11) AIT_TRY(ox_float(c, "value", 0, &value));
  else if (ox_has(c, 2)) number = ox_known_number(c, c->inputs[2], &value);
  fill = ait_dtype_is_float(v.dtype) || ait_dtype_is_complex(v.dtype) ? F(value) : I((int64_t)value);
  if (known && constant && number) {
    ait_dim torch_order[2 * AIT_MAX_RANK];
    for (int32_t d = 0; d < v.rank; ++d) {
      torch_order[2 * (v.rank - 1 - d)] = pads[d];
      torch_order[2 * (v.rank - 1 - d) + 1] = pads[v.rank + d];
    }
    return OX(c, "pad", &c->outputs[0], V(x), ox_list_dims(c, torch_order, 2 * (size_t)v.rank), fill);
  }
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, v.dtype, v.rank, &info));
  for (int32_t d = 0; known && d < v.rank; ++d) {
    ait_dim *to = (ait_dim *)(uintptr_t)&info.shape[d];
    AIT_TRY(ox_dim(c, AIT_DIM_ADD, v.shape[d], pads[d], to));
    AIT_TRY(ox_dim(c, AIT_DIM_ADD, *to, pads[v.rank + d], to));
  }
  ait_arg amounts = known ? ox_list_dims(c, pads, 2 * (size_t)v.rank) : NONE;
  return OX_RAW(c, "onnx.Pad", &info, &c->outputs[0], V(x), amounts, V(known ? AIT_NO_INDEX : c->inputs[1]),
                V(known || !ox_has(c, 3) ? AIT_NO_INDEX : c->inputs[3]), number ? fill : V(c->inputs[2]), S(mode));
}

/* ---- blocks ----------------------------------------------------------------------------------------------------------------------*/

/* [n, c, h, w] with c = block² · k, or back. */
ait_status ox_build_depth_to_space(ox_call *c) {
  static const int64_t dcr[6] = {0, 3, 4, 1, 5, 2}, crd[6] = {0, 1, 4, 2, 5, 3}, back[6] = {0, 3, 5, 1, 2, 4};
  bool to_depth = strcmp(c->variant, "depth") == 0;
  uint32_t x;
  int64_t block;
  const char *mode;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_int(c, "blocksize", 0, &block));
  AIT_TRY(ox_string(c, "mode", "DCR", &mode));
  const ait_value_info v = *ox_info(c, x);
  if (block < 1 || block > 65536) return ox_fail(c, AIT_CODE_INVALID_MODEL, "blocksize is %lld", (long long)block);
  if (v.rank != 4) return ox_fail(c, AIT_CODE_INVALID_MODEL, "the operand has rank %d, not 4", (int)v.rank);
  ait_dim b, rows, cols, depth, split[6], merged[4] = {v.shape[0]};
  AIT_TRY(ait_dim_const(c->g, block, &b));
  bool is_dcr = strcmp(mode, "DCR") == 0;
  if (to_depth) {
    AIT_TRY(ox_dim(c, AIT_DIM_FLOORDIV, v.shape[2], b, &rows));
    AIT_TRY(ox_dim(c, AIT_DIM_FLOORDIV, v.shape[3], b, &cols));
    AIT_TRY(ox_dim_int(c, AIT_DIM_MUL, v.shape[1], block * block, &depth));
    memcpy(split, (ait_dim[6]){v.shape[0], v.shape[1], rows, b, cols, b}, sizeof split);
    merged[1] = depth, merged[2] = rows, merged[3] = cols;
  } else {
    AIT_TRY(ox_dim_int(c, AIT_DIM_FLOORDIV, v.shape[1], block * block, &depth));
    AIT_TRY(ox_dim(c, AIT_DIM_MUL, v.shape[2], b, &rows));
    AIT_TRY(ox_dim(c, AIT_DIM_MUL, v.shape[3], b, &cols));
    if (is_dcr) memcpy(split, (ait_dim[6]){v.shape[0], b, b, depth, v.shape[2], v.shape[3]}, sizeof split);
    else memcpy(split, (ait_dim[6]){v.shape[0], depth, b, b, v.shape[2], v.shape[3]}, sizeof split);
    merged[1] = depth, merged[2] = rows, merged[3] = cols;
  }
  AIT_TRY(ox_reshape(c, x, split, 6, &x));
  AIT_TRY(ox_permute(c, x, to_depth ? back : is_dcr ? dcr : crd, 6, &x));
  return ox_reshape(c, x, merged, 4, &c->outputs[0]);
}
