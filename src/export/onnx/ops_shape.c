/* Rearrangements and creation. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

/* Sizes that stay where they are need no arithmetic: 0 keeps them, -1 is the rest when nothing can be empty. */
static bool simple_shape(const ox *x, ox_t from, const ait_dim *to, int32_t rank, int64_t *out) {
  int32_t open = -1;
  bool positive = true;
  for (int32_t i = 0; i < rank; ++i) {
    positive &= ox_dim_positive(x, to[i]);
    if (ox_dim_const(x, to[i], &out[i])) {
      if (out[i] <= 0) return false;
    } else if (i < from.rank && from.shape && ox_dim_same(x, from.shape[i], to[i])) out[i] = 0;
    else if (open >= 0) return false;
    else out[open = i] = -1;
  }
  return open < 0 || positive;
}

void ox_row_reshape(ox *x) {
  ox_t a = ox_in(x, 0);
  const ait_region_value *v = ox_result_value(x, 0);
  int64_t shape[AIT_MAX_RANK];
  const ait_arg *list;
  ox_t r;
  if (v->rank >= 0 && simple_shape(x, a, v->shape, v->rank, shape)) {
    r = ox_reshape_to(x, a, shape, (uint32_t)v->rank);
  } else if (v->rank >= 0) {
    r = ox_reshape(x, a, ox_dims(x, v->shape, (uint32_t)v->rank));
    ox_int(x, "allowzero", 1);
  } else {
    uint32_t count = ox_arg_list(x, 1, &list);
    r = ox_reshape(x, a, ox_ints_tensor(x, list, count));
    ox_int(x, "allowzero", 1);
  }
  ox_set(x, 0, r);
}

void ox_row_permute(ox *x) {
  ox_t a = ox_in(x, 0);
  int64_t order[AIT_MAX_RANK];
  uint32_t count = ox_arg_ints(x, 1, order);
  for (uint32_t i = 0; i < count; ++i) order[i] = ox_axis(x, order[i], a.rank);
  ox_set(x, 0, ox_transpose(x, a, order, count));
}

/* -1 keeps a size, as 1 does in ONNX's broadcasting. */
void ox_row_expand(ox *x) {
  ait_arg sizes[AIT_MAX_RANK];
  const ait_arg *list;
  uint32_t count = ox_arg_list(x, 1, &list);
  for (uint32_t i = 0; i < count && i < AIT_MAX_RANK; ++i) {
    int64_t v;
    sizes[i] = ox_int_const(x, &list[i], &v) && v == -1 ? ait_arg_int(1) : list[i];
  }
  ox_set(x, 0, ox_expand(x, ox_in(x, 0), ox_ints_tensor(x, sizes, count)));
}

/* dim, start, end, step */
void ox_row_slice(ox *x) {
  ox_t a = ox_in(x, 0);
  int64_t axis = ox_axis(x, ox_arg_int(x, 1), a.rank);
  ox_t start = ox_int_tensor(x, ox_arg(x, 2)), end = ox_int_tensor(x, ox_arg(x, 3));
  ox_set(x, 0, ox_slice(x, a, axis, start, end, ox_arg_int_or(x, 4, 1)));
}

static ox_t index_scalar(ox *x, uint32_t k) {
  int64_t v;
  if (ox_int_const(x, ox_arg(x, k), &v)) return ox_i64(x, v);
  return ox_squeeze(x, ox_int_tensor(x, ox_arg(x, k)), 0);
}

void ox_row_select(ox *x) {
  ox_t a = ox_in(x, 0), r = OX(x, "Gather", a.dtype, a, index_scalar(x, 2));
  ox_int(x, "axis", ox_axis(x, ox_arg_int(x, 1), a.rank));
  ox_set(x, 0, r);
}

/* An empty vector among tensors of another rank counts as nothing. */
void ox_row_cat(ox *x) {
  const ait_arg *list;
  uint32_t count = ox_arg_list(x, 0, &list), used = 0;
  ait_dtype d = ox_result_dtype(x, 0);
  int32_t rank = ox_result_value(x, 0)->rank;
  ox_t *parts = ox_new(x, count, sizeof *parts);
  for (uint32_t i = 0; i < count && !ox_failed(x); ++i) {
    ox_t t = ox_operand(x, &list[i], AIT_DTYPE_NONE);
    if (t.rank == rank) parts[used++] = ox_cast(x, t, d);
    else if (t.rank != 1) ox_fail(x, "it joins tensors of rank %d and %d", (int)t.rank, (int)rank);
  }
  if (ox_failed(x)) return;
  if (used == 0) ox_fail(x, "it joins nothing");
  else ox_set(x, 0, ox_concat(x, parts, used, ox_axis(x, ox_arg_int_or(x, 1, 0), rank)));
}

/* ---- writing into a part ---------------------------------------------------------------------------------------------------------*/
/* Rows `places` of dim `axis` of a become those of `part`: the axis goes to the front for ScatterND. */
static ox_t replace_rows(ox *x, ox_t a, ox_t part, ox_t places, int64_t axis) {
  int64_t to_front[AIT_MAX_RANK], back[AIT_MAX_RANK];
  uint32_t rank = (uint32_t)a.rank, at = 0;
  to_front[at++] = axis;
  for (int64_t i = 0; i < a.rank; ++i)
    if (i != axis) to_front[at++] = i;
  for (uint32_t i = 0; i < rank; ++i) back[to_front[i]] = i;
  ox_t front = ox_transpose(x, a, to_front, rank), rows = ox_transpose(x, part, to_front, rank);
  ox_t r = OX(x, "ScatterND", a.dtype, front, ox_unsqueeze(x, places, 1), rows);
  return ox_transpose(x, r, back, rank);
}

static ox_t all_places(ox *x, ox_t a, int64_t axis) { return ox_range(x, ox_squeeze(x, ox_dim(x, a.shape[axis]), 0)); }

/* x, src, dim, start, end, step */
void ox_row_slice_scatter(ox *x) {
  ox_t a = ox_in(x, 0), part = ox_in_as(x, 1, a.dtype);
  int64_t axis = ox_axis(x, ox_arg_int(x, 2), a.rank), start, end, step = ox_arg_int_or(x, 5, 1);
  bool known = ox_int_const(x, ox_arg(x, 3), &start) && ox_int_const(x, ox_arg(x, 4), &end);
  if (ox_failed(x)) return;
  if (known && step == 1 && start == 0 && end == INT64_MAX) {
    ox_set(x, 0, part);
    return;
  }
  ox_t places = ox_slice(x, all_places(x, a, axis), 0, ox_int_tensor(x, ox_arg(x, 3)), ox_int_tensor(x, ox_arg(x, 4)), step);
  ox_set(x, 0, replace_rows(x, a, part, places, axis));
}

void ox_row_select_scatter(ox *x) {
  ox_t a = ox_in(x, 0), part = ox_in_as(x, 1, a.dtype);
  int64_t axis = ox_axis(x, ox_arg_int(x, 2), a.rank);
  if (ox_failed(x)) return;
  ox_t place = OX(x, "Gather", AIT_I64, all_places(x, a, axis), ox_int_tensor(x, ox_arg(x, 3)));
  ox_set(x, 0, replace_rows(x, a, ox_unsqueeze(x, part, axis), place, axis));
}

/* pads: before and after the last dim, then the one before it, …; ONNX wants all befores, then all afters. Negative ones cut in both. */
void ox_row_pad(ox *x) {
  ox_t a = ox_in(x, 0), wide = ox_widen(x, a, OX_MOVE);
  const ait_arg *list;
  ait_arg pads[2 * AIT_MAX_RANK];
  uint32_t count = ox_arg_list(x, 1, &list), rank = (uint32_t)(a.rank < 0 ? 0 : a.rank);
  for (uint32_t i = 0; i < 2 * rank; ++i) pads[i] = ait_arg_int(0);
  for (uint32_t i = 0; i + 1 < count && i / 2 < rank; i += 2) {
    uint32_t d = rank - 1 - i / 2;
    pads[d] = list[i];
    pads[rank + d] = list[i + 1];
  }
  ox_t halves[2] = {ox_ints_tensor(x, pads, rank), ox_ints_tensor(x, pads + rank, rank)};
  int64_t all[2 * AIT_MAX_RANK];
  bool known = true;
  for (uint32_t i = 0; i < 2 * rank; ++i) known &= ox_int_const(x, &pads[i], &all[i]);
  ox_t amounts = known ? ox_list(x, all, 2 * rank) : ox_concat(x, halves, 2, 0);
  ox_set(x, 0, ox_cast(x, OX(x, "Pad", wide.dtype, wide, amounts, ox_cast(x, ox_in_as(x, 2, a.dtype), wide.dtype)), a.dtype));
}

void ox_row_flip(ox *x) {
  ox_t a = ox_in(x, 0);
  int64_t axes[AIT_MAX_RANK], starts[AIT_MAX_RANK], ends[AIT_MAX_RANK];
  uint32_t count = ox_arg_ints(x, 1, axes);
  if (a.rank == 0 || count == 0) {
    ox_set(x, 0, a);
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    axes[i] = ox_axis(x, axes[i], a.rank);
    starts[i] = -1;
    ends[i] = INT64_MIN;
  }
  ox_set(
      x, 0,
      OX(x, "Slice", a.dtype, a, ox_list(x, starts, count), ox_list(x, ends, count), ox_list(x, axes, count), ox_list(x, starts, count)));
}

/* Each dim: its last `shift` (modulo its size) come first. Without dims: the flattened tensor. */
void ox_row_roll(ox *x) {
  ox_t given = ox_in(x, 0), a = given;
  const ait_arg *shifts;
  int64_t axes[AIT_MAX_RANK] = {0};
  uint32_t shift_count = ox_arg_list(x, 1, &shifts), count = ox_arg_ints(x, 2, axes);
  bool flat = count == 0;
  if (flat) a = ox_reshape_to(x, a, (const int64_t[]){-1}, 1);
  for (uint32_t i = 0; i < (flat ? 1 : count) && i < shift_count && !ox_failed(x); ++i) {
    int64_t axis = flat ? 0 : ox_axis(x, axes[i], given.rank);
    ox_t size = flat ? ox_shape_of(x, a) : ox_dim(x, given.shape[axis]);
    size = ox_same2(x, "Max", size, ox_list1(x, 1)); /* nothing to turn in an empty one */
    ox_t at = ox_same2(x, "Mod", ox_same1(x, "Neg", ox_int_tensor(x, &shifts[i])), size);
    ox_t parts[2] = {ox_slice(x, a, axis, at, ox_list1(x, INT64_MAX), 1), ox_slice(x, a, axis, ox_list1(x, 0), at, 1)};
    a = ox_concat(x, parts, 2, axis);
  }
  if (flat) a = ox_reshape(x, a, ox_shape_of(x, given));
  ox_set(x, 0, a);
}

void ox_row_triangle(ox *x) {
  ox_t a = ox_in(x, 0), wide = ox_widen(x, a, OX_WIDE | OX_BIT(BOOL));
  ox_t r = OX(x, "Trilu", wide.dtype, wide, ox_i64(x, ox_arg_int_or(x, 1, 0)));
  ox_int(x, "upper", !strcmp(x->with, "upper"));
  ox_set(x, 0, ox_cast(x, r, a.dtype));
}

/* ---- creation --------------------------------------------------------------------------------------------------------------------*/
/* start, end, step, dtype: start + i * step, floats in double. */
void ox_row_arange(ox *x) {
  const ait_region_value *v = ox_result_value(x, 0);
  ait_dtype d = ox_result_dtype(x, 0), compute = ait_dtype_is_float(d) ? AIT_F64 : AIT_I64;
  if (v->rank != 1 || ox_failed(x)) {
    ox_fail(x, "its length is not known");
    return;
  }
  ox_t start = ox_in_as(x, 0, compute), end = ox_in_as(x, 1, compute), step = ox_in_as(x, 2, compute);
  if (compute == AIT_I64) {
    ox_set(x, 0, OX(x, "Range", AIT_I64, start, end, step));
    return;
  }
  ox_t length = OX(x, "Ceil", AIT_F64, ox_same2(x, "Div", ox_same2(x, "Sub", end, start), step));
  ox_t places = ox_cast(x, ox_range(x, ox_cast(x, length, AIT_I64)), AIT_F64);
  ox_set(x, 0, ox_same2(x, "Add", ox_same2(x, "Mul", places, step), start));
}

void ox_row_full(ox *x) {
  const ait_arg *list;
  uint32_t count = ox_arg_list(x, 0, &list);
  ox_t value = ox_in_as(x, 1, ox_result_dtype(x, 0));
  ox_set(x, 0, count ? ox_expand(x, value, ox_ints_tensor(x, list, count)) : value);
}

/* dim, size, step: windows of a dim, each as a new last dim. */
void ox_row_unfold(ox *x) {
  ox_t a = ox_in(x, 0);
  int64_t axis = ox_axis(x, ox_arg_int(x, 1), a.rank), size = ox_arg_int(x, 2), step = ox_arg_int(x, 3), order[AIT_MAX_RANK];
  const ait_region_value *v = ox_result_value(x, 0);
  if (ox_failed(x)) return;
  if (a.rank == 0) {
    ox_set(x, 0,
           size == 1 ? ox_reshape_to(x, a, (const int64_t[]){1}, 1)
                     : ox_slice_const(x, ox_reshape_to(x, a, (const int64_t[]){1}, 1), 0, 0, 0));
    return;
  }
  ox_t begins = ox_same2(x, "Mul", ox_range(x, ox_squeeze(x, ox_dim(x, v->shape[axis]), 0)), ox_i64(x, step));
  ox_t places = ox_same2(x, "Add", ox_unsqueeze(x, begins, 1), ox_range(x, ox_i64(x, size)));
  ox_t r = OX(x, "Gather", a.dtype, a, places); /* [.., window, size, ..] */
  ox_int(x, "axis", axis);
  uint32_t at = 0;
  for (int64_t i = 0; i <= a.rank; ++i)
    if (i != axis + 1) order[at++] = i;
  order[at++] = axis + 1;
  ox_set(x, 0, ox_transpose(x, r, order, at));
}
