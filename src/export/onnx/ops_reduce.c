/* Reductions, scans, sorting. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

/* The dims of argument 1, counted from 0; 0: all. A tensor without dims has none to name. */
static uint32_t axes_of(ox *x, oe_t a, int64_t *axes) {
  uint32_t count = oe_arg_ints(x, 1, axes);
  for (uint32_t i = 0; i < count; ++i) axes[i] = oe_axis(x, axes[i], a.rank);
  return a.rank == 0 ? 0 : count;
}

static oe_t reduce_args(ox *x, const char *op, oe_t a, oe_t like, uint32_t keep_arg) {
  int64_t axes[AIT_MAX_RANK];
  uint32_t count = axes_of(x, like, axes);
  return oe_reduce(x, op, a, axes, count, oe_arg_bool(x, keep_arg));
}

void oe_row_reduce(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, oe_cast(x, given, oe_result_dtype(x, 0)), OE_WIDE);
  oe_set(x, 0, reduce_args(x, x->with, a, given, 2));
}

/* How many elements one result is made of. */
static oe_t reduced_count(ox *x, oe_t a, const int64_t *axes, uint32_t count) {
  int64_t all[AIT_MAX_RANK];
  ait_dim dims[AIT_MAX_RANK];
  if (count == 0)
    for (int32_t i = 0; i < a.rank; ++i) all[count++] = i;
  else memcpy(all, axes, count * sizeof *axes);
  for (uint32_t i = 0; i < count; ++i) dims[i] = a.shape[all[i]];
  return oe_reduce(x, "ReduceProd", oe_dims(x, dims, count), NULL, 0, false);
}

/* Of nothing it is NaN: ONNX leaves that open, so it is divided where that may be. */
void oe_row_mean(ox *x) {
  int64_t axes[AIT_MAX_RANK];
  oe_t given = oe_in(x, 0), a = oe_widen(x, oe_cast(x, given, oe_result_dtype(x, 0)), OE_WIDE);
  uint32_t count = axes_of(x, given, axes);
  bool positive = given.shape != NULL;
  for (int32_t i = 0; i < given.rank && positive; ++i) positive = oe_dim_positive(x, given.shape[i]);
  if (positive || !given.shape || oe_failed(x)) {
    oe_set(x, 0, oe_reduce(x, "ReduceMean", a, axes, count, oe_arg_bool(x, 2)));
    return;
  }
  oe_t sum = oe_reduce(x, "ReduceSum", a, axes, count, oe_arg_bool(x, 2));
  oe_set(x, 0, oe_same2(x, "Div", sum, reduced_count(x, given, axes, count)));
}

/* NaN among the elements is the result: ONNX leaves that open. */
void oe_row_extreme(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, given, OE_WIDE | OE_BIT(U8) | OE_BIT(I8));
  oe_t r = reduce_args(x, x->with, a, given, 2), nan = oe_isnan(x, a);
  if (nan.name) {
    oe_t found = reduce_args(x, "ReduceMax", oe_cast(x, nan, AIT_I32), given, 2);
    r = oe_where(x, oe_cast(x, found, AIT_BOOL), oe_num(x, r.dtype, NAN), r);
  }
  oe_set(x, 0, r);
}

/* By counting, which is right for no elements, too. */
static oe_t count_of(ox *x, bool truth) {
  oe_t given = oe_in(x, 0), is = oe_cast(x, given, AIT_BOOL);
  return reduce_args(x, "ReduceSum", oe_cast(x, truth ? is : oe_not(x, is), AIT_I64), given, 2);
}
void oe_row_any(ox *x) { oe_set(x, 0, oe_bool2(x, "Greater", count_of(x, true), oe_i64(x, 0))); }
void oe_row_all(ox *x) { oe_set(x, 0, oe_bool2(x, "Equal", count_of(x, false), oe_i64(x, 0))); }

/* dims, correction, keepdim */
void oe_row_var(ox *x) {
  int64_t axes[AIT_MAX_RANK];
  oe_t given = oe_in(x, 0), a = oe_widen(x, given, OE_BIT(F32) | OE_BIT(F64));
  uint32_t count = axes_of(x, given, axes);
  double correction = oe_arg_float_or(x, 2, 1);
  if (!given.shape) oe_fail(x, "the rank of its operand is not known");
  if (oe_failed(x)) return;
  oe_t centred = oe_same2(x, "Sub", a, oe_reduce(x, "ReduceMean", a, axes, count, true));
  oe_t sum = oe_reduce(x, "ReduceSum", oe_same2(x, "Mul", centred, centred), axes, count, oe_arg_bool(x, 3));
  oe_t n = oe_cast(x, reduced_count(x, given, axes, count), a.dtype);
  n = oe_same2(x, "Max", oe_same2(x, "Sub", n, oe_num(x, a.dtype, correction)), oe_num(x, a.dtype, 0));
  oe_set(x, 0, oe_same2(x, "Div", sum, n));
}

/* ---- places ----------------------------------------------------------------------------------------------------------------------*/
/* A key that orders as torch does: NaN beyond infinity (or below minus infinity, when the smallest is looked for it comes first, too, so it
 * is put there). Narrower floats fit into double with room for one more value; integers are their own keys. */
static oe_t order_key(ox *x, oe_t a, bool nan_is_high) {
  if (!ait_dtype_is_float(a.dtype))
    return a.dtype == AIT_BOOL || a.dtype == AIT_U8 || a.dtype == AIT_I8 ? oe_cast(x, a, AIT_I32)
                                                                         : oe_cast(x, a, a.dtype == AIT_I32 ? AIT_I32 : AIT_I64);
  if (a.dtype == AIT_F64) return a;
  double sign = nan_is_high ? 1 : -1;
  oe_t wide = oe_cast(x, a, AIT_F64), infinite = oe_num(x, AIT_F64, sign * INFINITY);
  wide = oe_where(x, oe_bool2(x, "Equal", wide, infinite), oe_num(x, AIT_F64, sign * 1e300), wide);
  return oe_where(x, OE(x, "IsNaN", AIT_BOOL, wide), infinite, wide);
}

/* Where the extreme is along an axis: the first of equals, and the first NaN before all. */
static oe_t extreme_place(ox *x, const char *op, oe_t a, int64_t axis, bool keepdim) {
  oe_t key = order_key(x, a, !strcmp(op, "ArgMax")), nan_place, found;
  if (key.dtype == AIT_I64) { /* runtimes have ArgMax of few integers: TopK has them all */
    oe_t out[2] = {oe_tensor(x, AIT_I64), oe_tensor(x, AIT_I64)};
    oe_node_new(x, "TopK", (const oe_t[]){key, oe_list1(x, 1)}, 2, out, 2);
    oe_int(x, "axis", axis);
    if (strcmp(op, "ArgMax")) oe_int(x, "largest", 0);
    return keepdim ? out[1] : oe_squeeze(x, out[1], axis);
  }
  oe_t place = OE(x, op, AIT_I64, key);
  oe_int(x, "axis", axis);
  oe_int(x, "keepdims", keepdim);
  if (key.dtype != AIT_F64 || a.dtype != AIT_F64) return place;
  oe_t nan = oe_cast(x, OE(x, "IsNaN", AIT_BOOL, a), AIT_I32);
  nan_place = OE(x, "ArgMax", AIT_I64, nan);
  oe_int(x, "axis", axis);
  oe_int(x, "keepdims", keepdim);
  found = oe_reduce(x, "ReduceMax", nan, &axis, 1, keepdim);
  return oe_where(x, oe_cast(x, found, AIT_BOOL), nan_place, place);
}

static oe_t with_a_dim(ox *x, oe_t a) { return a.rank == 0 ? oe_reshape_to(x, a, (const int64_t[]){1}, 1) : a; }
static oe_t without_dims(ox *x, oe_t like, oe_t t) { return like.rank == 0 ? oe_reshape_to(x, t, NULL, 0) : t; }

/* dim (none: of all elements), keepdim */
void oe_row_arg_extreme(ox *x) {
  oe_t given = oe_in(x, 0);
  if (oe_has(x, 1) && given.rank != 0) {
    oe_set(x, 0, extreme_place(x, x->with, given, oe_axis(x, oe_arg_int(x, 1), given.rank), oe_arg_bool(x, 2)));
    return;
  }
  oe_t flat = oe_reshape_to(x, given, (const int64_t[]){-1}, 1), place = extreme_place(x, x->with, flat, 0, false);
  int64_t ones[AIT_MAX_RANK];
  for (int32_t i = 0; i < given.rank; ++i) ones[i] = 1;
  if (oe_arg_bool(x, 2) && given.rank > 0) place = oe_reshape_to(x, place, ones, (uint32_t)given.rank);
  oe_set(x, 0, place);
}

void oe_row_extreme_dim(ox *x) {
  oe_t given = oe_in(x, 0), a = with_a_dim(x, given);
  int64_t axis = oe_axis(x, oe_arg_int(x, 1), given.rank);
  bool keep = given.rank != 0 && oe_arg_bool(x, 2);
  oe_t place = extreme_place(x, x->with, a, axis, true), value = OE(x, "GatherElements", a.dtype, a, place);
  oe_int(x, "axis", axis);
  oe_set(x, 0, keep ? value : oe_squeeze(x, value, axis));
  oe_set(x, 1, keep ? place : oe_squeeze(x, place, axis));
}

/* ---- along one dim ---------------------------------------------------------------------------------------------------------------*/
void oe_row_cumsum(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, with_a_dim(x, oe_cast(x, given, oe_result_dtype(x, 0))), OE_WIDE);
  oe_t sum = OE(x, "CumSum", a.dtype, a, oe_i64(x, oe_axis(x, oe_arg_int(x, 1), given.rank)));
  oe_set(x, 0, without_dims(x, given, sum));
}

void oe_row_softmax(ox *x) {
  oe_t given = oe_in(x, 0), a = oe_widen(x, with_a_dim(x, given), OE_FLOATS);
  oe_t r = OE(x, x->with, a.dtype, a);
  oe_int(x, "axis", oe_axis(x, oe_arg_int(x, 1), given.rank));
  oe_set(x, 0, without_dims(x, given, r));
}

static oe_t top_places(ox *x, oe_t key, oe_t k, int64_t axis, bool largest) {
  oe_t out[2] = {oe_tensor(x, key.dtype), oe_tensor(x, AIT_I64)};
  oe_node_new(x, "TopK", (const oe_t[]){key, k}, 2, out, 2);
  oe_int(x, "axis", axis);
  if (!largest) oe_int(x, "largest", 0);
  return out[1]; /* of equals the one with the smaller index first: ONNX says so */
}

static oe_t gather_along(ox *x, oe_t a, oe_t places, int64_t axis) {
  oe_t r = OE(x, "GatherElements", a.dtype, a, places);
  oe_int(x, "axis", axis);
  return r;
}

/* Values and places of the first k in order. NaN is the largest. Doubles have no room for it: they are sorted whole, then again by being
 * NaN. */
static void order(ox *x, oe_t k, int64_t axis, bool largest, oe_t given) {
  oe_t a = with_a_dim(x, given), places;
  if (a.dtype == AIT_F64) {
    oe_t all = given.rank > 0 ? oe_dim(x, given.shape[axis]) : oe_list1(x, 1);
    oe_t first = top_places(x, a, all, axis, largest), nan = oe_cast(x, OE(x, "IsNaN", AIT_BOOL, gather_along(x, a, first, axis)), AIT_I32);
    places = gather_along(x, first, top_places(x, nan, k, axis, largest), axis);
  } else places = top_places(x, order_key(x, a, true), k, axis, largest);
  oe_t values = gather_along(x, a, places, axis);
  oe_set(x, 0, without_dims(x, given, values));
  oe_set(x, 1, without_dims(x, given, places));
}

/* k, dim, largest, sorted */
void oe_row_topk(ox *x) {
  oe_t a = oe_in(x, 0);
  order(x, oe_int_tensor(x, oe_arg(x, 1)), oe_axis(x, oe_arg_int_or(x, 2, -1), a.rank), !oe_has(x, 3) || oe_arg_bool(x, 3), a);
}

/* dim, descending, stable */
void oe_row_sort(ox *x) {
  oe_t a = oe_in(x, 0);
  int64_t axis = oe_axis(x, oe_arg_int_or(x, 1, -1), a.rank);
  if (oe_failed(x)) return;
  order(x, a.rank > 0 ? oe_dim(x, a.shape[axis]) : oe_list1(x, 1), axis, oe_arg_bool(x, 2), a);
}
