/* Reductions, scans, sorting. */
#include "export/onnx/emit.h"
#include "export/onnx/rows.h"

/* The dims of argument 1, counted from 0; 0: all. A tensor without dims has none to name. */
static uint32_t axes_of(ox *x, ox_t a, int64_t *axes) {
  uint32_t count = ox_arg_ints(x, 1, axes);
  for (uint32_t i = 0; i < count; ++i) axes[i] = ox_axis(x, axes[i], a.rank);
  return a.rank == 0 ? 0 : count;
}

static ox_t reduce_args(ox *x, const char *op, ox_t a, ox_t like, uint32_t keep_arg) {
  int64_t axes[AIT_MAX_RANK];
  uint32_t count = axes_of(x, like, axes);
  return ox_reduce(x, op, a, axes, count, ox_arg_bool(x, keep_arg));
}

void ox_row_reduce(ox *x) {
  ox_t given = ox_in(x, 0), a = ox_widen(x, ox_cast(x, given, ox_result_dtype(x, 0)), OX_WIDE);
  ox_set(x, 0, reduce_args(x, x->with, a, given, 2));
}

/* How many elements one result is made of. */
static ox_t reduced_count(ox *x, ox_t a, const int64_t *axes, uint32_t count) {
  int64_t all[AIT_MAX_RANK];
  ait_dim dims[AIT_MAX_RANK];
  if (count == 0)
    for (int32_t i = 0; i < a.rank; ++i) all[count++] = i;
  else memcpy(all, axes, count * sizeof *axes);
  for (uint32_t i = 0; i < count; ++i) dims[i] = a.shape[all[i]];
  return ox_reduce(x, "ReduceProd", ox_dims(x, dims, count), NULL, 0, false);
}

/* Of nothing it is NaN: ONNX leaves that open, so it is divided where that may be. */
void ox_row_mean(ox *x) {
  int64_t axes[AIT_MAX_RANK];
  ox_t given = ox_in(x, 0), a = ox_widen(x, ox_cast(x, given, ox_result_dtype(x, 0)), OX_WIDE);
  uint32_t count = axes_of(x, given, axes);
  bool positive = given.shape != NULL;
  for (int32_t i = 0; i < given.rank && positive; ++i) positive = ox_dim_positive(x, given.shape[i]);
  if (positive || !given.shape || ox_failed(x)) {
    ox_set(x, 0, ox_reduce(x, "ReduceMean", a, axes, count, ox_arg_bool(x, 2)));
    return;
  }
  ox_t sum = ox_reduce(x, "ReduceSum", a, axes, count, ox_arg_bool(x, 2));
  ox_set(x, 0, ox_same2(x, "Div", sum, reduced_count(x, given, axes, count)));
}

/* NaN among the elements is the result: ONNX leaves that open. */
void ox_row_extreme(ox *x) {
  ox_t given = ox_in(x, 0), a = ox_widen(x, given, OX_WIDE | OX_BIT(U8) | OX_BIT(I8));
  ox_t r = reduce_args(x, x->with, a, given, 2), nan = ox_isnan(x, a);
  if (nan.name) {
    ox_t found = reduce_args(x, "ReduceMax", ox_cast(x, nan, AIT_I32), given, 2);
    r = ox_where(x, ox_cast(x, found, AIT_BOOL), ox_num(x, r.dtype, NAN), r);
  }
  ox_set(x, 0, r);
}

/* By counting, which is right for no elements, too. */
static ox_t count_of(ox *x, bool truth) {
  ox_t given = ox_in(x, 0), is = ox_cast(x, given, AIT_BOOL);
  return reduce_args(x, "ReduceSum", ox_cast(x, truth ? is : ox_not(x, is), AIT_I64), given, 2);
}
void ox_row_any(ox *x) { ox_set(x, 0, ox_bool2(x, "Greater", count_of(x, true), ox_i64(x, 0))); }
void ox_row_all(ox *x) { ox_set(x, 0, ox_bool2(x, "Equal", count_of(x, false), ox_i64(x, 0))); }

/* dims, correction, keepdim */
void ox_row_var(ox *x) {
  int64_t axes[AIT_MAX_RANK];
  ox_t given = ox_in(x, 0), a = ox_widen(x, given, OX_BIT(F32) | OX_BIT(F64));
  uint32_t count = axes_of(x, given, axes);
  double correction = ox_arg_float_or(x, 2, 1);
  if (!given.shape) ox_fail(x, "the rank of its operand is not known");
  if (ox_failed(x)) return;
  ox_t centred = ox_same2(x, "Sub", a, ox_reduce(x, "ReduceMean", a, axes, count, true));
  ox_t sum = ox_reduce(x, "ReduceSum", ox_same2(x, "Mul", centred, centred), axes, count, ox_arg_bool(x, 3));
  ox_t n = ox_cast(x, reduced_count(x, given, axes, count), a.dtype);
  n = ox_same2(x, "Max", ox_same2(x, "Sub", n, ox_num(x, a.dtype, correction)), ox_num(x, a.dtype, 0));
  ox_set(x, 0, ox_same2(x, "Div", sum, n));
}

/* ---- places ----------------------------------------------------------------------------------------------------------------------*/
/* A key that orders as torch does: NaN beyond infinity (or below minus infinity, when the smallest is looked for it comes first, too, so it
 * is put there). Narrower floats fit into double with room for one more value; integers are their own keys. */
static ox_t order_key(ox *x, ox_t a, bool nan_is_high) {
  if (!ait_dtype_is_float(a.dtype))
    return a.dtype == AIT_BOOL || a.dtype == AIT_U8 || a.dtype == AIT_I8 ? ox_cast(x, a, AIT_I32)
                                                                         : ox_cast(x, a, a.dtype == AIT_I32 ? AIT_I32 : AIT_I64);
  if (a.dtype == AIT_F64) return a;
  double sign = nan_is_high ? 1 : -1;
  ox_t wide = ox_cast(x, a, AIT_F64), infinite = ox_num(x, AIT_F64, sign * INFINITY);
  wide = ox_where(x, ox_bool2(x, "Equal", wide, infinite), ox_num(x, AIT_F64, sign * 1e300), wide);
  return ox_where(x, OX(x, "IsNaN", AIT_BOOL, wide), infinite, wide);
}

/* Where the extreme is along an axis: the first of equals, and the first NaN before all. */
static ox_t extreme_place(ox *x, const char *op, ox_t a, int64_t axis, bool keepdim) {
  ox_t key = order_key(x, a, !strcmp(op, "ArgMax")), nan_place, found;
  if (key.dtype == AIT_I64) { /* runtimes have ArgMax of few integers: TopK has them all */
    ox_t out[2] = {ox_tensor(x, AIT_I64), ox_tensor(x, AIT_I64)};
    ox_node_new(x, "TopK", (const ox_t[]){key, ox_list1(x, 1)}, 2, out, 2);
    ox_int(x, "axis", axis);
    if (strcmp(op, "ArgMax")) ox_int(x, "largest", 0);
    return keepdim ? out[1] : ox_squeeze(x, out[1], axis);
  }
  ox_t place = OX(x, op, AIT_I64, key);
  ox_int(x, "axis", axis);
  ox_int(x, "keepdims", keepdim);
  if (key.dtype != AIT_F64 || a.dtype != AIT_F64) return place;
  ox_t nan = ox_cast(x, OX(x, "IsNaN", AIT_BOOL, a), AIT_I32);
  nan_place = OX(x, "ArgMax", AIT_I64, nan);
  ox_int(x, "axis", axis);
  ox_int(x, "keepdims", keepdim);
  found = ox_reduce(x, "ReduceMax", nan, &axis, 1, keepdim);
  return ox_where(x, ox_cast(x, found, AIT_BOOL), nan_place, place);
}

static ox_t with_a_dim(ox *x, ox_t a) { return a.rank == 0 ? ox_reshape_to(x, a, (const int64_t[]){1}, 1) : a; }
static ox_t without_dims(ox *x, ox_t like, ox_t t) { return like.rank == 0 ? ox_reshape_to(x, t, NULL, 0) : t; }

/* dim (none: of all elements), keepdim */
void ox_row_arg_extreme(ox *x) {
  ox_t given = ox_in(x, 0);
  if (ox_has(x, 1) && given.rank != 0) {
    ox_set(x, 0, extreme_place(x, x->with, given, ox_axis(x, ox_arg_int(x, 1), given.rank), ox_arg_bool(x, 2)));
    return;
  }
  ox_t flat = ox_reshape_to(x, given, (const int64_t[]){-1}, 1), place = extreme_place(x, x->with, flat, 0, false);
  int64_t ones[AIT_MAX_RANK];
  for (int32_t i = 0; i < given.rank; ++i) ones[i] = 1;
  if (ox_arg_bool(x, 2) && given.rank > 0) place = ox_reshape_to(x, place, ones, (uint32_t)given.rank);
  ox_set(x, 0, place);
}

void ox_row_extreme_dim(ox *x) {
  ox_t given = ox_in(x, 0), a = with_a_dim(x, given);
  int64_t axis = ox_axis(x, ox_arg_int(x, 1), given.rank);
  bool keep = given.rank != 0 && ox_arg_bool(x, 2);
  ox_t place = extreme_place(x, x->with, a, axis, true), value = OX(x, "GatherElements", a.dtype, a, place);
  ox_int(x, "axis", axis);
  ox_set(x, 0, keep ? value : ox_squeeze(x, value, axis));
  ox_set(x, 1, keep ? place : ox_squeeze(x, place, axis));
}

/* ---- along one dim ---------------------------------------------------------------------------------------------------------------*/
void ox_row_cumsum(ox *x) {
  ox_t given = ox_in(x, 0), a = ox_widen(x, with_a_dim(x, ox_cast(x, given, ox_result_dtype(x, 0))), OX_WIDE);
  ox_t sum = OX(x, "CumSum", a.dtype, a, ox_i64(x, ox_axis(x, ox_arg_int(x, 1), given.rank)));
  ox_set(x, 0, without_dims(x, given, sum));
}

void ox_row_softmax(ox *x) {
  ox_t given = ox_in(x, 0), a = ox_widen(x, with_a_dim(x, given), OX_FLOATS);
  ox_t r = OX(x, x->with, a.dtype, a);
  ox_int(x, "axis", ox_axis(x, ox_arg_int(x, 1), given.rank));
  ox_set(x, 0, without_dims(x, given, r));
}

static ox_t top_places(ox *x, ox_t key, ox_t k, int64_t axis, bool largest) {
  ox_t out[2] = {ox_tensor(x, key.dtype), ox_tensor(x, AIT_I64)};
  ox_node_new(x, "TopK", (const ox_t[]){key, k}, 2, out, 2);
  ox_int(x, "axis", axis);
  if (!largest) ox_int(x, "largest", 0);
  return out[1]; /* of equals the one with the smaller index first: ONNX says so */
}

static ox_t gather_along(ox *x, ox_t a, ox_t places, int64_t axis) {
  ox_t r = OX(x, "GatherElements", a.dtype, a, places);
  ox_int(x, "axis", axis);
  return r;
}

/* Values and places of the first k in order. NaN is the largest. Doubles have no room for it: they are sorted whole, then again by being
 * NaN. */
static void order(ox *x, ox_t k, int64_t axis, bool largest, ox_t given) {
  ox_t a = with_a_dim(x, given), places;
  if (a.dtype == AIT_F64) {
    ox_t all = given.rank > 0 ? ox_dim(x, given.shape[axis]) : ox_list1(x, 1);
    ox_t first = top_places(x, a, all, axis, largest), nan = ox_cast(x, OX(x, "IsNaN", AIT_BOOL, gather_along(x, a, first, axis)), AIT_I32);
    places = gather_along(x, first, top_places(x, nan, k, axis, largest), axis);
  } else places = top_places(x, order_key(x, a, true), k, axis, largest);
  ox_t values = gather_along(x, a, places, axis);
  ox_set(x, 0, without_dims(x, given, values));
  ox_set(x, 1, without_dims(x, given, places));
}

/* k, dim, largest, sorted */
void ox_row_topk(ox *x) {
  ox_t a = ox_in(x, 0);
  order(x, ox_int_tensor(x, ox_arg(x, 1)), ox_axis(x, ox_arg_int_or(x, 2, -1), a.rank), !ox_has(x, 3) || ox_arg_bool(x, 3), a);
}

/* dim, descending, stable */
void ox_row_sort(ox *x) {
  ox_t a = ox_in(x, 0);
  int64_t axis = ox_axis(x, ox_arg_int_or(x, 1, -1), a.rank);
  if (ox_failed(x)) return;
  order(x, a.rank > 0 ? ox_dim(x, a.shape[axis]) : ox_list1(x, 1), axis, ox_arg_bool(x, 2), a);
}
