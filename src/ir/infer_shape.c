/* Reductions, rearrangements, indexing, creation. */
#include "ir/infer_internal.h"

static const infer_shape unknown_shape = {.rank = -1};

/* ---- reductions ----------------------------------------------------------------------------------------------------------------------*/

/* An empty list of dims reduces all. */
static ait_status reduced_axes(const infer_call *c, uint32_t arg, int32_t rank, bool axes[AIT_MAX_RANK]) {
  int64_t dims[AIT_MAX_RANK];
  int32_t count;
  AIT_TRY(infer_ints(c, arg, dims, &count));
  for (int32_t d = 0; d < AIT_MAX_RANK; ++d) axes[d] = count == 0;
  for (int32_t i = 0; i < count; ++i) {
    int32_t axis;
    AIT_TRY(infer_axis(c, dims[i], rank, &axis));
    if (axes[axis]) return infer_error(c, "dim %d is reduced twice", (int)axis);
    axes[axis] = true;
  }
  return AIT_OK;
}

static ait_status reduce_to(const infer_call *c, uint32_t k, ait_dtype dtype, const ait_value_info *x, const bool axes[AIT_MAX_RANK],
                            bool keep) {
  infer_shape shape = {.rank = x->rank < 0 ? -1 : 0};
  for (int32_t d = 0; d < x->rank; ++d) {
    if (!axes[d]) shape.dims[shape.rank++] = x->shape[d];
    else if (keep) AIT_TRY(ait_dim_const(c->g, 1, &shape.dims[shape.rank++]));
  }
  return infer_set(c, k, dtype, &shape);
}

static ait_status reduce_dims(const infer_call *c, uint32_t keep_arg, ait_dtype (*result)(ait_dtype)) {
  const ait_value_info *x;
  bool axes[AIT_MAX_RANK];
  AIT_TRY(infer_tensor(c, 0, &x));
  if (x->rank >= 0) AIT_TRY(reduced_axes(c, 1, x->rank, axes));
  return reduce_to(c, 0, result ? result(x->dtype) : x->dtype, x, axes, infer_bool(c, keep_arg));
}

static ait_dtype truth_dtype(ait_dtype dtype) { return dtype == AIT_U8 ? AIT_U8 : AIT_BOOL; }

ait_status infer_rule_sum(const infer_call *c) { return reduce_dims(c, 2, infer_sum_dtype); }
ait_status infer_rule_reduce(const infer_call *c) { return reduce_dims(c, 2, NULL); }
ait_status infer_rule_any(const infer_call *c) { return reduce_dims(c, 2, truth_dtype); }
ait_status infer_rule_var(const infer_call *c) { return reduce_dims(c, 3, infer_real_dtype); }

/* One axis, or all when the argument is none. */
static ait_status one_axis(const infer_call *c, const ait_value_info *x, bool axes[AIT_MAX_RANK]) {
  bool all = c->args[1].kind == AIT_ARG_NONE;
  for (int32_t d = 0; d < AIT_MAX_RANK; ++d) axes[d] = all;
  int32_t axis;
  if (all || x->rank < 0) return AIT_OK;
  AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
  axes[axis] = true;
  return AIT_OK;
}

ait_status infer_rule_argmax(const infer_call *c) {
  const ait_value_info *x;
  bool axes[AIT_MAX_RANK];
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(one_axis(c, x, axes));
  return reduce_to(c, 0, AIT_I64, x, axes, infer_bool(c, 2));
}

ait_status infer_rule_max_dim(const infer_call *c) {
  const ait_value_info *x;
  bool axes[AIT_MAX_RANK];
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(one_axis(c, x, axes));
  AIT_TRY(reduce_to(c, 0, x->dtype, x, axes, infer_bool(c, 2)));
  return reduce_to(c, 1, AIT_I64, x, axes, infer_bool(c, 2));
}

static ait_status along_dim(const infer_call *c, ait_dtype (*result)(ait_dtype)) {
  const ait_value_info *x;
  int32_t axis;
  AIT_TRY(infer_tensor(c, 0, &x));
  if (x->rank >= 0) AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
  return infer_set_like(c, 0, result ? result(x->dtype) : x->dtype, x);
}

ait_status infer_rule_cumsum(const infer_call *c) { return along_dim(c, infer_sum_dtype); }
ait_status infer_rule_along_dim(const infer_call *c) { return along_dim(c, NULL); }

static ait_status values_and_indices(const infer_call *c, ait_dtype dtype, const infer_shape *shape) {
  AIT_TRY(infer_set(c, 0, dtype, shape));
  return infer_set(c, 1, AIT_I64, shape);
}

ait_status infer_rule_topk(const infer_call *c) {
  const ait_value_info *x;
  infer_shape shape;
  int32_t axis;
  ait_dim k;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_dim(c, &c->args[1], &k));
  infer_get_shape(x, &shape);
  if (x->rank >= 0) AIT_TRY(infer_axis_arg(c, 2, x->rank, &axis));
  if (x->rank > 0) {
    ait_dim beyond;
    int64_t min, max;
    AIT_TRY(infer_make(c, AIT_DIM_SUB, k, shape.dims[axis], &beyond));
    ait_dim_range(c->g, beyond, &min, &max);
    if (min > 0) return infer_error(c, "k is larger than dim %d", (int)axis);
    shape.dims[axis] = k;
  }
  return values_and_indices(c, x->dtype, &shape);
}

ait_status infer_rule_sort(const infer_call *c) {
  const ait_value_info *x;
  infer_shape shape;
  int32_t axis;
  AIT_TRY(infer_tensor(c, 0, &x));
  if (x->rank >= 0) AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
  infer_get_shape(x, &shape);
  return values_and_indices(c, x->dtype, &shape);
}

/* ---- rearrangements ------------------------------------------------------------------------------------------------------------------*/

/* The size that -1 stands for: an exact quotient where there is one. */
static ait_status rest_of(const infer_call *c, ait_dim total, ait_dim others, ait_dim *out) {
  int64_t all, known;
  if (ait_dim_is_const(c->g, others, &known) && known == 0) return infer_error(c, "-1 beside a size of 0 is ambiguous");
  if (ait_dim_is_const(c->g, total, &all) && ait_dim_is_const(c->g, others, &known) && all % known != 0)
    return infer_error(c, "%lld elements are no multiple of %lld", (long long)all, (long long)known);
  if (ait_dim_divides(c->g, total, others, out)) return AIT_OK;
  return infer_make(c, AIT_DIM_FLOORDIV, total, others, out);
}

ait_status infer_rule_reshape(const infer_call *c) {
  const ait_value_info *x;
  infer_shape shape;
  int32_t rest = -1;
  ait_dim total, others, same;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_dims(c, 1, &shape));
  for (int32_t d = 0; d < shape.rank; ++d) {
    int64_t size;
    if (!ait_dim_is_const(c->g, shape.dims[d], &size) || size >= 0) continue;
    if (size != -1) return infer_error(c, "size %lld is negative", (long long)size);
    if (rest >= 0) return infer_error(c, "two sizes are -1");
    rest = d;
  }
  if (rest >= 0) AIT_TRY(ait_dim_const(c->g, 1, &shape.dims[rest]));
  AIT_TRY(infer_product(c, shape.dims, shape.rank, &others));
  if (x->rank < 0) {
    if (rest >= 0) AIT_TRY(ait_dim_unknown(c->g, &shape.dims[rest]));
    return infer_set(c, 0, x->dtype, &shape);
  }
  AIT_TRY(infer_product(c, x->shape, x->rank, &total));
  if (rest >= 0) AIT_TRY(rest_of(c, total, others, &shape.dims[rest]));
  else AIT_TRY(infer_unify(c, total, others, "numbers of elements", &same));
  return infer_set(c, 0, x->dtype, &shape);
}

ait_status infer_rule_permute(const infer_call *c) {
  const ait_value_info *x;
  int64_t dims[AIT_MAX_RANK];
  int32_t count;
  bool used[AIT_MAX_RANK] = {0};
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_ints(c, 1, dims, &count));
  if (x->rank >= 0 && count != x->rank) return infer_error(c, "%d dims for rank %d", (int)count, (int)x->rank);
  infer_shape shape = {.rank = x->rank};
  for (int32_t i = 0; i < x->rank; ++i) {
    int32_t axis;
    AIT_TRY(infer_axis(c, dims[i], x->rank, &axis));
    if (used[axis]) return infer_error(c, "dim %d is used twice", (int)axis);
    used[axis] = true;
    shape.dims[i] = x->shape[axis];
  }
  return infer_set(c, 0, x->dtype, &shape);
}

/* A size of 1 becomes any; -1 keeps what is there. */
ait_status infer_rule_expand(const infer_call *c) {
  const ait_value_info *x;
  infer_shape shape;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_dims(c, 1, &shape));
  if (x->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (shape.rank < x->rank) return infer_error(c, "%d sizes for rank %d", (int)shape.rank, (int)x->rank);
  int32_t added = shape.rank - x->rank;
  for (int32_t d = 0; d < shape.rank; ++d) {
    bool keep = infer_is(c, shape.dims[d], -1);
    if (d < added && keep) return infer_error(c, "-1 for a dim that is new");
    if (d < added || infer_is(c, x->shape[d - added], 1)) {
      if (keep) shape.dims[d] = x->shape[d - added];
      continue;
    }
    if (keep) shape.dims[d] = x->shape[d - added];
    else if (!infer_surely_differ(c, x->shape[d - added], shape.dims[d])) continue;
    else {
      int64_t min, max;
      ait_dim_range(c->g, x->shape[d - added], &min, &max);
      if (min > 1 || max < 1) AIT_TRY(infer_unify(c, x->shape[d - added], shape.dims[d], "sizes", &shape.dims[d]));
    }
  }
  return infer_set(c, 0, x->dtype, &shape);
}

/* A slice bound within [0, size], Python's way; unknown when its sign is. */
static ait_status clip(const infer_call *c, ait_dim bound, ait_dim size, ait_dim *out) {
  int64_t min, max;
  ait_dim zero;
  if (infer_is(c, bound, INT64_MAX)) {
    *out = size;
    return AIT_OK;
  }
  ait_dim_range(c->g, bound, &min, &max);
  if (min >= 0) return infer_make(c, AIT_DIM_MIN, bound, size, out);
  if (max >= 0) return ait_dim_unknown(c->g, out);
  AIT_TRY(ait_dim_const(c->g, 0, &zero));
  AIT_TRY(infer_make(c, AIT_DIM_ADD, size, bound, out));
  return infer_make(c, AIT_DIM_MAX, *out, zero, out);
}

static ait_status slice_size(const infer_call *c, ait_dim start, ait_dim end, int64_t step, ait_dim *out) {
  ait_dim zero;
  AIT_TRY(ait_dim_const(c->g, 0, &zero));
  AIT_TRY(infer_make(c, AIT_DIM_SUB, end, start, out));
  AIT_TRY(infer_make_const(c, AIT_DIM_CEILDIV, *out, step, out));
  return infer_make(c, AIT_DIM_MAX, *out, zero, out);
}

ait_status infer_rule_slice(const infer_call *c) {
  const ait_value_info *x;
  infer_shape shape;
  int32_t axis;
  int64_t step;
  ait_dim start, end;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_int(c, 4, &step));
  if (step <= 0) return infer_error(c, "step is not positive");
  if (x->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (x->rank == 0) return infer_error(c, "operand has no dims");
  AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
  AIT_TRY(infer_dim(c, &c->args[2], &start));
  AIT_TRY(infer_dim(c, &c->args[3], &end));
  infer_get_shape(x, &shape);
  AIT_TRY(clip(c, start, x->shape[axis], &start));
  AIT_TRY(clip(c, end, x->shape[axis], &end));
  AIT_TRY(slice_size(c, start, end, step, &shape.dims[axis]));
  return infer_set(c, 0, x->dtype, &shape);
}

ait_status infer_rule_select(const infer_call *c) {
  const ait_value_info *x;
  int32_t axis;
  int64_t index, size;
  AIT_TRY(infer_tensor(c, 0, &x));
  if (x->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (x->rank == 0) return infer_error(c, "operand has no dims");
  AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
  ait_dim at;
  AIT_TRY(infer_dim(c, &c->args[2], &at));
  if (ait_dim_is_const(c->g, at, &index) && ait_dim_is_const(c->g, x->shape[axis], &size) && (index < -size || index >= size))
    return infer_error(c, "index %lld is outside a dim of %lld", (long long)index, (long long)size);
  infer_shape shape = {.rank = 0};
  for (int32_t d = 0; d < x->rank; ++d) {
    if (d != axis) shape.dims[shape.rank++] = x->shape[d];
  }
  return infer_set(c, 0, x->dtype, &shape);
}

/* torch lets an empty vector stand among tensors of any rank. */
static bool is_empty_vector(const infer_call *c, const ait_value_info *x) { return x->rank == 1 && infer_is(c, x->shape[0], 0); }

static ait_status cat_one(const infer_call *c, const ait_value_info *x, int32_t axis, infer_shape *shape) {
  if (x->rank != shape->rank) return infer_error(c, "ranks %d and %d do not fit", (int)shape->rank, (int)x->rank);
  for (int32_t d = 0; d < x->rank; ++d) {
    if (d == axis) AIT_TRY(infer_make(c, AIT_DIM_ADD, shape->dims[d], x->shape[d], &shape->dims[d]));
    else AIT_TRY(infer_unify(c, shape->dims[d], x->shape[d], "sizes beside the joined dim", &shape->dims[d]));
  }
  return AIT_OK;
}

ait_status infer_rule_cat(const infer_call *c) {
  uint32_t count = infer_list_count(c, 0);
  infer_promotion promotion = {0};
  infer_shape shape = unknown_shape;
  int32_t axis = 0;
  bool unknown = count == 0, begun = false;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_value_info *x = infer_list_item(c, 0, i);
    if (!x) return infer_error(c, "element %u is no tensor", (unsigned)i);
    ait_dtype *category = x->rank == 0 ? &promotion.zero_dim : &promotion.dimensioned;
    *category = *category == AIT_DTYPE_NONE || x->dtype == AIT_DTYPE_NONE ? x->dtype : ait_dtype_promote(*category, x->dtype);
    unknown |= x->rank < 0;
    if (unknown || is_empty_vector(c, x)) continue;
    if (begun) {
      AIT_TRY(cat_one(c, x, axis, &shape));
      continue;
    }
    if (x->rank == 0) return infer_error(c, "element %u has no dims", (unsigned)i);
    AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
    infer_get_shape(x, &shape);
    begun = true;
  }
  if (!unknown && !begun) { /* empty vectors only */
    shape.rank = 1;
    AIT_TRY(ait_dim_const(c->g, 0, &shape.dims[0]));
  }
  return infer_set(c, 0, infer_promoted(&promotion), unknown ? &unknown_shape : &shape);
}

/* pads: before and after the last dim, then the one before it, … (negative ones cut). */
ait_status infer_rule_pad(const infer_call *c) {
  const ait_value_info *x;
  infer_shape shape;
  const ait_arg *pads = &c->args[1];
  AIT_TRY(infer_tensor(c, 0, &x));
  if (x->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (pads->kind != AIT_ARG_LIST || pads->count % 2 != 0 || pads->count / 2 > (uint32_t)x->rank)
    return infer_error(c, "pads do not fit rank %d", (int)x->rank);
  infer_get_shape(x, &shape);
  for (uint32_t i = 0; i < pads->count; ++i) {
    ait_dim amount, *size = &shape.dims[(uint32_t)x->rank - 1 - i / 2];
    int64_t v;
    AIT_TRY(infer_dim(c, &pads->as.list[i], &amount));
    AIT_TRY(infer_make(c, AIT_DIM_ADD, *size, amount, size));
    if (i % 2 && ait_dim_is_const(c->g, *size, &v) && v < 0) return infer_error(c, "padded size is %lld", (long long)v);
  }
  return infer_set(c, 0, x->dtype, &shape);
}

ait_status infer_rule_unfold(const infer_call *c) {
  const ait_value_info *x;
  infer_shape shape;
  int32_t axis;
  int64_t size, step, have;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_int(c, 2, &size));
  AIT_TRY(infer_int(c, 3, &step));
  if (size < 0 || step <= 0) return infer_error(c, "size or step out of range");
  if (x->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (x->rank == AIT_MAX_RANK) return infer_error(c, "rank above %d", AIT_MAX_RANK);
  AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
  infer_get_shape(x, &shape);
  if (x->rank > 0) {
    ait_dim *windows = &shape.dims[axis];
    if (ait_dim_is_const(c->g, *windows, &have) && have < size)
      return infer_error(c, "window %lld in a dim of %lld", (long long)size, (long long)have);
    AIT_TRY(infer_make_const(c, AIT_DIM_SUB, *windows, size, windows));
    AIT_TRY(infer_make_const(c, AIT_DIM_FLOORDIV, *windows, step, windows));
    AIT_TRY(infer_make_const(c, AIT_DIM_ADD, *windows, 1, windows));
  }
  AIT_TRY(ait_dim_const(c->g, size, &shape.dims[shape.rank++]));
  return infer_set(c, 0, x->dtype, &shape);
}

/* ---- indexing ------------------------------------------------------------------------------------------------------------------------*/

ait_status infer_rule_gather(const infer_call *c) {
  const ait_value_info *x, *index;
  int32_t axis;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_tensor(c, 2, &index));
  if (x->rank >= 0) AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
  if (x->rank > 0 && index->rank > 0 && x->rank != index->rank)
    return infer_error(c, "ranks %d and %d do not fit", (int)x->rank, (int)index->rank);
  return infer_set_like(c, 0, x->dtype, index);
}

ait_status infer_rule_index_select(const infer_call *c) {
  const ait_value_info *x, *index;
  infer_shape shape;
  int32_t axis;
  AIT_TRY(infer_tensor(c, 0, &x));
  AIT_TRY(infer_tensor(c, 2, &index));
  if (index->rank > 1) return infer_error(c, "index has rank %d", (int)index->rank);
  infer_get_shape(x, &shape);
  if (x->rank > 0) {
    AIT_TRY(infer_axis_arg(c, 1, x->rank, &axis));
    if (index->rank == 1) shape.dims[axis] = index->shape[0];
    else if (index->rank == 0) AIT_TRY(ait_dim_const(c->g, 1, &shape.dims[axis]));
    else AIT_TRY(ait_dim_unknown(c->g, &shape.dims[axis]));
  }
  return infer_set(c, 0, x->dtype, &shape);
}

ait_status infer_rule_embedding(const infer_call *c) {
  const ait_value_info *weight, *indices;
  infer_shape shape;
  AIT_TRY(infer_tensor(c, 0, &weight));
  AIT_TRY(infer_tensor(c, 1, &indices));
  if (weight->rank < 0 || indices->rank < 0) return infer_set(c, 0, weight->dtype, &unknown_shape);
  if (weight->rank != 2) return infer_error(c, "weight has rank %d", (int)weight->rank);
  if (indices->rank == AIT_MAX_RANK) return infer_error(c, "rank above %d", AIT_MAX_RANK);
  infer_get_shape(indices, &shape);
  shape.dims[shape.rank++] = weight->shape[1];
  return infer_set(c, 0, weight->dtype, &shape);
}

/* What advanced indices say of the result: where their broadcast shape goes, and how many dims of x they take. */
typedef struct index_plan {
  infer_shape broadcast;
  bool taken[AIT_MAX_RANK];
  int32_t dims, first, groups; /* of x covered; first indexed dim; runs of neighbouring indexed dims */
  bool unknown;
} index_plan;

static void take_dims(index_plan *p, int32_t count) {
  bool neighbour = p->dims > 0 && p->taken[p->dims - 1];
  if (p->groups == 0) p->first = p->dims;
  if (!neighbour) ++p->groups;
  for (int32_t i = 0; i < count; ++i) p->taken[p->dims++] = true;
}

/* A mask takes as many dims as it has and counts as one vector of unknown length. */
static ait_status plan_index(const infer_call *c, const ait_value_info *x, const ait_value_info *index, index_plan *p) {
  bool mask = index && (index->dtype == AIT_BOOL || index->dtype == AIT_U8);
  if (index && index->rank < 0) {
    p->unknown = true;
    return AIT_OK;
  }
  int32_t count = mask ? index->rank : 1;
  if (p->dims + count > x->rank) return infer_error(c, "more indices than rank %d", (int)x->rank);
  if (!index) {
    ++p->dims;
    return AIT_OK;
  }
  if (count == 0) { /* a mask without dims adds one */
    p->unknown = true;
    return AIT_OK;
  }
  take_dims(p, count);
  ait_dim selected;
  if (!mask) return infer_broadcast(c, &p->broadcast, index->rank, index->shape);
  AIT_TRY(ait_dim_unknown(c->g, &selected));
  return infer_broadcast(c, &p->broadcast, 1, &selected);
}

static ait_status push_dims(const infer_call *c, infer_shape *shape, const ait_dim *dims, int32_t count) {
  if (shape->rank + count > AIT_MAX_RANK) return infer_error(c, "rank above %d", AIT_MAX_RANK);
  for (int32_t i = 0; i < count; ++i) shape->dims[shape->rank++] = dims[i];
  return AIT_OK;
}

/* Indexed dims that stand together are replaced in place; else their common shape comes first. */
ait_status infer_rule_index(const infer_call *c) {
  const ait_value_info *x;
  index_plan p = {0};
  AIT_TRY(infer_tensor(c, 0, &x));
  if (x->rank < 0) return infer_set(c, 0, x->dtype, &unknown_shape);
  if (c->args[1].kind != AIT_ARG_LIST) return infer_set(c, 0, x->dtype, &unknown_shape);
  for (uint32_t i = 0; i < c->args[1].count && !p.unknown; ++i) AIT_TRY(plan_index(c, x, infer_list_item(c, 1, i), &p));
  if (p.unknown) return infer_set(c, 0, x->dtype, &unknown_shape);
  infer_shape shape = {.rank = 0};
  int32_t place = p.groups == 1 ? p.first : 0;
  bool placed = p.groups == 0;
  for (int32_t d = 0; d <= x->rank; ++d) {
    if (!placed && d == place) {
      AIT_TRY(push_dims(c, &shape, p.broadcast.dims, p.broadcast.rank));
      placed = true;
    }
    if (d < x->rank && !p.taken[d]) AIT_TRY(push_dims(c, &shape, &x->shape[d], 1));
  }
  return infer_set(c, 0, x->dtype, &shape);
}

/* ---- creation ------------------------------------------------------------------------------------------------------------------------*/

ait_status infer_rule_full(const infer_call *c) {
  infer_shape shape;
  AIT_TRY(infer_dims(c, 0, &shape));
  if (c->args[2].kind != AIT_ARG_DTYPE) return infer_error(c, "argument 'dtype' is no dtype");
  return infer_set(c, 0, (ait_dtype)c->args[2].as.i, &shape);
}

static bool is_whole(const ait_arg *arg) { return arg->kind == AIT_ARG_INT || arg->kind == AIT_ARG_DIM || arg->kind == AIT_ARG_BOOL; }

static bool as_double(const ait_arg *arg, double *out) {
  if (arg->kind == AIT_ARG_FLOAT) *out = arg->as.f;
  else if (arg->kind == AIT_ARG_INT) *out = (double)arg->as.i;
  else return false;
  return true;
}

/* ceil((end - start) / step) elements. */
static ait_status arange_size(const infer_call *c, ait_dim *out) {
  double start, end, step;
  if (as_double(&c->args[0], &start) && as_double(&c->args[1], &end) && as_double(&c->args[2], &step) &&
      !(is_whole(&c->args[0]) && is_whole(&c->args[1]) && is_whole(&c->args[2]))) {
    double count = step == 0.0 ? -1.0 : __builtin_ceil((end - start) / step);
    if (!(count >= 0.0 && count < 9e18)) return infer_error(c, "bounds and step do not fit");
    return ait_dim_const(c->g, (int64_t)count, out);
  }
  ait_dim from, to, by, zero;
  for (int i = 0; i < 3; ++i) {
    if (c->args[i].kind == AIT_ARG_FLOAT) return ait_dim_unknown(c->g, out);
  }
  AIT_TRY(infer_dim(c, &c->args[0], &from));
  AIT_TRY(infer_dim(c, &c->args[1], &to));
  AIT_TRY(infer_dim(c, &c->args[2], &by));
  if (infer_is(c, by, 0)) return infer_error(c, "step is 0");
  AIT_TRY(ait_dim_const(c->g, 0, &zero));
  AIT_TRY(infer_make(c, AIT_DIM_SUB, to, from, out));
  AIT_TRY(infer_make(c, AIT_DIM_CEILDIV, *out, by, out));
  return infer_make(c, AIT_DIM_MAX, *out, zero, out);
}

ait_status infer_rule_arange(const infer_call *c) {
  infer_shape shape = {.rank = 1};
  AIT_TRY(arange_size(c, &shape.dims[0]));
  if (c->args[3].kind != AIT_ARG_DTYPE) return infer_error(c, "argument 'dtype' is no dtype");
  return infer_set(c, 0, (ait_dtype)c->args[3].as.i, &shape);
}
