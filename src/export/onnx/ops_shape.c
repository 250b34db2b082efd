/* Rearrangements and creation. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

/* Sizes that stay where they are need no arithmetic: 0 keeps them, -1 is the rest when nothing can be empty. */
static bool simple_shape(const ox *x, oe_t from, const ait_dim *to, int32_t rank, int64_t *out) {
  int32_t open = -1;
  bool positive = true;
  for (int32_t i = 0; i < rank; ++i) {
    positive &= oe_dim_positive(x, to[i]);
    if (oe_dim_const(x, to[i], &out[i])) {
      if (out[i] <= 0) return false;
    } else if (i < from.rank && from.shape && oe_dim_same(x, from.shape[i], to[i])) out[i] = 0;
    else if (open >= 0) return false;
    else out[open = i] = -1;
  }
  return open < 0 || positive;
}

void oe_row_reshape(ox *x) {
  oe_t a = oe_in(x, 0);
  const ait_region_value *v = oe_result_value(x, 0);
  int64_t shape[AIT_MAX_RANK];
  const ait_arg *list;
  oe_t r;
  if (v->rank >= 0 && simple_shape(x, a, v->shape, v->rank, shape)) {
    r = oe_reshape_to(x, a, shape, (uint32_t)v->rank);
  } else if (v->rank >= 0) {
    r = oe_reshape(x, a, oe_dims(x, v->shape, (uint32_t)v->rank));
    oe_int(x, "allowzero", 1);
  } else {
    uint32_t count = oe_arg_list(x, 1, &list);
    r = oe_reshape(x, a, oe_ints_tensor(x, list, count));
    oe_int(x, "allowzero", 1);
  }
  oe_set(x, 0, r);
}

void oe_row_permute(ox *x) {
  oe_t a = oe_in(x, 0);
  int64_t order[AIT_MAX_RANK];
  uint32_t count = oe_arg_ints(x, 1, order);
  for (uint32_t i = 0; i < count; ++i) order[i] = oe_axis(x, order[i], a.rank);
  oe_set(x, 0, oe_transpose(x, a, order, count));
}

/* -1 keeps a size, as 1 does in ONNX's broadcasting. */
void oe_row_expand(ox *x) {
  ait_arg sizes[AIT_MAX_RANK];
  const ait_arg *list;
  uint32_t count = oe_arg_list(x, 1, &list);
  for (uint32_t i = 0; i < count && i < AIT_MAX_RANK; ++i) {
    int64_t v;
    sizes[i] = oe_int_const(x, &list[i], &v) && v == -1 ? ait_arg_int(1) : list[i];
  }
  oe_set(x, 0, oe_expand(x, oe_in(x, 0), oe_ints_tensor(x, sizes, count)));
}

/* dim, start, end, step */
void oe_row_slice(ox *x) {
  oe_t a = oe_in(x, 0);
  int64_t axis = oe_axis(x, oe_arg_int(x, 1), a.rank);
  oe_t start = oe_int_tensor(x, oe_arg(x, 2)), end = oe_int_tensor(x, oe_arg(x, 3));
  oe_set(x, 0, oe_slice(x, a, axis, start, end, oe_arg_int_or(x, 4, 1)));
}

static oe_t index_scalar(ox *x, uint32_t k) {
  int64_t v;
  if (oe_int_const(x, oe_arg(x, k), &v)) return oe_i64(x, v);
  return oe_squeeze(x, oe_int_tensor(x, oe_arg(x, k)), 0);
}

void oe_row_select(ox *x) {
  oe_t a = oe_in(x, 0), r = OE(x, "Gather", a.dtype, a, index_scalar(x, 2));
  oe_int(x, "axis", oe_axis(x, oe_arg_int(x, 1), a.rank));
  oe_set(x, 0, r);
}

/* An empty vector among tensors of another rank counts as nothing. */
void oe_row_cat(ox *x) {
  const ait_arg *list;
  uint32_t count = oe_arg_list(x, 0, &list), used = 0;
  ait_dtype d = oe_result_dtype(x, 0);
  int32_t rank = oe_result_value(x, 0)->rank;
  oe_t *parts = oe_new(x, count, sizeof *parts);
  for (uint32_t i = 0; i < count && !oe_failed(x); ++i) {
    oe_t t = oe_operand(x, &list[i], AIT_DTYPE_NONE);
    if (t.rank == rank) parts[used++] = oe_cast(x, t, d);
    else if (t.rank != 1) oe_fail(x, "it joins tensors of rank %d and %d", (int)t.rank, (int)rank);
  }
  if (oe_failed(x)) return;
  if (used == 0) oe_fail(x, "it joins nothing");
  else oe_set(x, 0, oe_concat(x, parts, used, oe_axis(x, oe_arg_int_or(x, 1, 0), rank)));
}

/* ---- writing into a part ---------------------------------------------------------------------------------------------------------*/
/* Rows `places` of dim `axis` of a become those of `part`: the axis goes to the front for ScatterND. */
static oe_t replace_rows(ox *x, oe_t a, oe_t part, oe_t places, int64_t axis) {
  int64_t to_front[AIT_MAX_RANK], back[AIT_MAX_RANK];
  uint32_t rank = (uint32_t)a.rank, at = 0;
  to_front[at++] = axis;
  for (int64_t i = 0; i < a.rank; ++i)
    if (i != axis) to_front[at++] = i;
  for (uint32_t i = 0; i < rank; ++i) back[to_front[i]] = i;
  oe_t front = oe_transpose(x, a, to_front, rank), rows = oe_transpose(x, part, to_front, rank);
  oe_t r = OE(x, "ScatterND", a.dtype, front, oe_unsqueeze(x, places, 1), rows);
  return oe_transpose(x, r, back, rank);
}

static oe_t all_places(ox *x, oe_t a, int64_t axis) { return oe_range(x, oe_squeeze(x, oe_dim(x, a.shape[axis]), 0)); }

/* x, src, dim, start, end, step */
void oe_row_slice_scatter(ox *x) {
  oe_t a = oe_in(x, 0), part = oe_in_as(x, 1, a.dtype);
  int64_t axis = oe_axis(x, oe_arg_int(x, 2), a.rank), start, end, step = oe_arg_int_or(x, 5, 1);
  bool known = oe_int_const(x, oe_arg(x, 3), &start) && oe_int_const(x, oe_arg(x, 4), &end);
  if (oe_failed(x)) return;
  if (known && step == 1 && start == 0 && end == INT64_MAX) {
    oe_set(x, 0, part);
    return;
  }
  oe_t places = oe_slice(x, all_places(x, a, axis), 0, oe_int_tensor(x, oe_arg(x, 3)), oe_int_tensor(x, oe_arg(x, 4)), step);
  oe_set(x, 0, replace_rows(x, a, part, places, axis));
}

void oe_row_select_scatter(ox *x) {
  oe_t a = oe_in(x, 0), part = oe_in_as(x, 1, a.dtype);
  int64_t axis = oe_axis(x, oe_arg_int(x, 2), a.rank);
  if (oe_failed(x)) return;
  oe_t place = OE(x, "Gather", AIT_I64, all_places(x, a, axis), oe_int_tensor(x, oe_arg(x, 3)));
  oe_set(x, 0, replace_rows(x, a, oe_unsqueeze(x, part, axis), place, axis));
}

/* pads: before and after the last dim, then the one before it, …; ONNX wants all befores, then all afters. Negative ones cut in both. */
void oe_row_pad(ox *x) {
  oe_t a = oe_in(x, 0), wide = oe_widen(x, a, OE_MOVE);
  const ait_arg *list;
  ait_arg pads[2 * AIT_MAX_RANK];
  uint32_t count = oe_arg_list(x, 1, &list), rank = (uint32_t)(a.rank < 0 ? 0 : a.rank);
  for (uint32_t i = 0; i < 2 * rank; ++i) pads[i] = ait_arg_int(0);
  for (uint32_t i = 0; i + 1 < count && i / 2 < rank; i += 2) {
    uint32_t d = rank - 1 - i / 2;
    pads[d] = list[i];
    pads[rank + d] = list[i + 1];
  }
  oe_t halves[2] = {oe_ints_tensor(x, pads, rank), oe_ints_tensor(x, pads + rank, rank)};
  int64_t all[2 * AIT_MAX_RANK];
  bool known = true;
  for (uint32_t i = 0; i < 2 * rank; ++i) known &= oe_int_const(x, &pads[i], &all[i]);
  oe_t amounts = known ? oe_list(x, all, 2 * rank) : oe_concat(x, halves, 2, 0);
  oe_set(x, 0, oe_cast(x, OE(x, "Pad", wide.dtype, wide, amounts, oe_cast(x, oe_in_as(x, 2, a.dtype), wide.dtype)), a.dtype));
}

void oe_row_flip(ox *x) {
  oe_t a = oe_in(x, 0);
  int64_t axes[AIT_MAX_RANK], starts[AIT_MAX_RANK], ends[AIT_MAX_RANK];
  uint32_t count = oe_arg_ints(x, 1, axes);
  if (a.rank == 0 || count == 0) {
    oe_set(x, 0, a);
    return;
  }
  for (uint32_t i = 0; i < count; ++i) {
    axes[i] = oe_axis(x, axes[i], a.rank);
    starts[i] = -1;
    ends[i] = INT64_MIN;
  }
  oe_set(
      x, 0,
      OE(x, "Slice", a.dtype, a, oe_list(x, starts, count), oe_list(x, ends, count), oe_list(x, axes, count), oe_list(x, starts, count)));
}

/* Each dim: its last `shift` (modulo its size) come first. Without dims: the flattened tensor. */
void oe_row_roll(ox *x) {
  oe_t given = oe_in(x, 0), a = given;
  const ait_arg *shifts;
  int64_t axes[AIT_MAX_RANK] = {0};
  uint32_t shift_count = oe_arg_list(x, 1, &shifts), count = oe_arg_ints(x, 2, axes);
  bool flat = count == 0;
  if (flat) a = oe_reshape_to(x, a, (const int64_t[]){-1}, 1);
  for (uint32_t i = 0; i < (flat ? 1 : count) && i < shift_count && !oe_failed(x); ++i) {
    int64_t axis = flat ? 0 : oe_axis(x, axes[i], given.rank);
    oe_t size = flat ? oe_shape_of(x, a) : oe_dim(x, given.shape[axis]);
    size = oe_same2(x, "Max", size, oe_list1(x, 1)); /* nothing to turn in an empty one */
    oe_t at = oe_same2(x, "Mod", oe_same1(x, "Neg", oe_int_tensor(x, &shifts[i])), size);
    oe_t parts[2] = {oe_slice(x, a, axis, at, oe_list1(x, INT64_MAX), 1), oe_slice(x, a, axis, oe_list1(x, 0), at, 1)};
    a = oe_concat(x, parts, 2, axis);
  }
  if (flat) a = oe_reshape(x, a, oe_shape_of(x, given));
  oe_set(x, 0, a);
}

void oe_row_triangle(ox *x) {
  oe_t a = oe_in(x, 0), wide = oe_widen(x, a, OE_WIDE | OE_BIT(BOOL));
  oe_t r = OE(x, "Trilu", wide.dtype, wide, oe_i64(x, oe_arg_int_or(x, 1, 0)));
  oe_int(x, "upper", !strcmp(x->with, "upper"));
  oe_set(x, 0, oe_cast(x, r, a.dtype));
}

/* ---- creation --------------------------------------------------------------------------------------------------------------------*/
/* start, end, step, dtype: start + i * step, floats in double. */
void oe_row_arange(ox *x) {
  const ait_region_value *v = oe_result_value(x, 0);
  ait_dtype d = oe_result_dtype(x, 0), compute = ait_dtype_is_float(d) ? AIT_F64 : AIT_I64;
  if (v->rank != 1 || oe_failed(x)) {
    oe_fail(x, "its length is not known");
    return;
  }
  oe_t start = oe_in_as(x, 0, compute), end = oe_in_as(x, 1, compute), step = oe_in_as(x, 2, compute);
  if (compute == AIT_I64) {
    oe_set(x, 0, OE(x, "Range", AIT_I64, start, end, step));
    return;
  }
  oe_t length = OE(x, "Ceil", AIT_F64, oe_same2(x, "Div", oe_same2(x, "Sub", end, start), step));
  oe_t places = oe_cast(x, oe_range(x, oe_cast(x, length, AIT_I64)), AIT_F64);
  oe_set(x, 0, oe_same2(x, "Add", oe_same2(x, "Mul", places, step), start));
}

void oe_row_full(ox *x) {
  const ait_arg *list;
  uint32_t count = oe_arg_list(x, 0, &list);
  oe_t value = oe_in_as(x, 1, oe_result_dtype(x, 0));
  oe_set(x, 0, count ? oe_expand(x, value, oe_ints_tensor(x, list, count)) : value);
}

/* dim, size, step: windows of a dim, each as a new last dim. */
void oe_row_unfold(ox *x) {
  oe_t a = oe_in(x, 0);
  int64_t axis = oe_axis(x, oe_arg_int(x, 1), a.rank), size = oe_arg_int(x, 2), step = oe_arg_int(x, 3), order[AIT_MAX_RANK];
  const ait_region_value *v = oe_result_value(x, 0);
  if (oe_failed(x)) return;
  if (a.rank == 0) {
    oe_set(x, 0,
           size == 1 ? oe_reshape_to(x, a, (const int64_t[]){1}, 1)
                     : oe_slice_const(x, oe_reshape_to(x, a, (const int64_t[]){1}, 1), 0, 0, 0));
    return;
  }
  oe_t begins = oe_same2(x, "Mul", oe_range(x, oe_squeeze(x, oe_dim(x, v->shape[axis]), 0)), oe_i64(x, step));
  oe_t places = oe_same2(x, "Add", oe_unsqueeze(x, begins, 1), oe_range(x, oe_i64(x, size)));
  oe_t r = OE(x, "Gather", a.dtype, a, places); /* [.., window, size, ..] */
  oe_int(x, "axis", axis);
  uint32_t at = 0;
  for (int64_t i = 0; i <= a.rank; ++i)
    if (i != axis + 1) order[at++] = i;
  order[at++] = axis + 1;
  oe_set(x, 0, oe_transpose(x, r, order, at));
}
