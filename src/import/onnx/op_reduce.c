/* Reductions, softmax, positions of extremes, running sums, sorting. */
#include "import/onnx/onnx.h"

/* ---- reductions ------------------------------------------------------------------------------------------------------------------*/

typedef struct reduction {
  uint32_t x;
  const int64_t *axes; /* NULL and known: all */
  uint32_t axis_count;
  bool known, all, none /* nothing is reduced */, keep;
  bool set[AIT_MAX_RANK];
} reduction;

static ait_status read_reduction(ox_call *c, reduction *r) {
  bool given, noop;
  AIT_TRY(ox_need(c, 0, &r->x));
  AIT_TRY(ox_flag(c, "keepdims", true, &r->keep));
  AIT_TRY(ox_flag(c, "noop_with_empty_axes", false, &noop));
  AIT_TRY(ox_ints_or_input(c, "axes", 1, &r->axes, &r->axis_count, &given, &r->known));
  bool empty = !given || (r->known && r->axis_count == 0);
  r->all = empty && !noop;
  r->none = empty && noop;
  int32_t rank = ox_info(c, r->x)->rank;
  if (rank < 0) r->known = false; /* when the graph runs the rank is there */
  for (int32_t d = 0; d < AIT_MAX_RANK; ++d) r->set[d] = r->all;
  for (uint32_t i = 0; r->known && i < r->axis_count; ++i) {
    int32_t axis;
    AIT_TRY(ox_axis(c, r->axes[i], rank, &axis));
    r->set[axis] = true;
  }
  return AIT_OK;
}

static ait_status reduced_info(ox_call *c, const reduction *r, ait_value_info *out) {
  const ait_value_info v = *ox_info(c, r->x);
  ait_dim *dims;
  int32_t rank = 0;
  int64_t axis_count;
  if (v.rank >= 0 && r->known) {
    AIT_TRY(ox_dims(c, v.rank, &dims));
    for (int32_t d = 0; d < v.rank; ++d) {
      if (!r->set[d]) dims[rank++] = v.shape[d];
      else if (r->keep) AIT_TRY(ait_dim_const(c->g, 1, &dims[rank++]));
    }
    *out = ox_tensor_info(v.dtype, rank, dims);
    return AIT_OK;
  }
  rank = v.rank >= 0 && r->keep ? v.rank : -1;
  if (v.rank >= 0 && !r->keep && ox_has(c, 1) && ox_const_dim(c, c->inputs[1], 0, &axis_count) && axis_count > 0 && axis_count <= v.rank)
    rank = v.rank - (int32_t)axis_count;
  return ox_unknown_info(c, v.dtype, rank, out);
}

/* Core reductions refuse what has no value in PyTorch: extremes of nothing. */
static bool may_be_empty(const ox_call *c, const reduction *r) {
  const ait_value_info *v = ox_info(c, r->x);
  for (int32_t d = 0; d < v->rank; ++d) {
    int64_t size;
    if (r->set[d] && (!ait_dim_is_const(c->g, v->shape[d], &size) ? false : size == 0)) return true;
  }
  return false;
}

static ait_status reduce_later(ox_call *c, const reduction *r) {
  ait_value_info info;
  AIT_TRY(reduced_info(c, r, &info));
  int64_t axes[AIT_MAX_RANK];
  uint32_t n = 0;
  for (int32_t d = 0; r->known && d < ox_info(c, r->x)->rank; ++d)
    if (r->set[d]) axes[n++] = d;
  bool dynamic = !r->known && ox_has(c, 1);
  bool noop = r->none;
  if (dynamic) AIT_TRY(ox_flag(c, "noop_with_empty_axes", false, &noop));
  return OX_RAW(c, "onnx.Reduce", &info, &c->outputs[0], V(r->x), V(dynamic ? c->inputs[1] : AIT_NO_INDEX),
                r->known ? ox_list_ints(c, axes, n) : NONE, B(r->keep), B(noop), S(c->variant));
}

/* What comes before and after the reduction proper; for floats. */
static ait_status reduce_known(ox_call *c, reduction *r) {
  static const struct {
    const char *name, *before, *op, *after;
  } kinds[] = {{"sum", NULL, "sum", NULL},       {"mean", NULL, "mean", NULL},    {"max", NULL, "amax", NULL},
               {"min", NULL, "amin", NULL},      {"prod", NULL, "prod", NULL},    {"l1", "abs", "sum", NULL},
               {"l2", "square", "sum", "sqrt"},  {"log_sum", NULL, "sum", "log"}, {"sum_square", "square", "sum", NULL},
               {"log_sum_exp", NULL, NULL, NULL}};
  int64_t axes[AIT_MAX_RANK];
  uint32_t n = 0, y = r->x;
  size_t k = 0;
  while (strcmp(kinds[k].name, c->variant) != 0) ++k;
  for (int32_t d = 0; d < ox_info(c, r->x)->rank; ++d)
    if (r->set[d]) axes[n++] = d;
  if (!kinds[k].op) { /* logsumexp keeps large numbers from overflowing */
    ait_value_info info;
    AIT_TRY(reduced_info(c, r, &info));
    return OX_RAW(c, "aten.logsumexp", &info, &c->outputs[0], V(y), ox_list_ints(c, axes, n), B(r->keep));
  }
  if (kinds[k].before && strcmp(kinds[k].before, "square") == 0) AIT_TRY(ox_binary(c, "mul", y, y, &y));
  else if (kinds[k].before) AIT_TRY(ox_unary(c, kinds[k].before, y, &y));
  AIT_TRY(ox_reduce(c, kinds[k].op, y, axes, n, r->keep, &y));
  if (kinds[k].after) AIT_TRY(ox_unary(c, kinds[k].after, y, &y));
  c->outputs[0] = y;
  return AIT_OK;
}

ait_status ox_build_reduce(ox_call *c) {
  reduction r = {0};
  AIT_TRY(read_reduction(c, &r));
  ait_dtype dtype = ox_dtype_of(c, r.x);
  bool integer = ait_dtype_is_integer(dtype);
  bool plain =
      strcmp(c->variant, "sum") == 0 || strcmp(c->variant, "prod") == 0 || strcmp(c->variant, "max") == 0 || strcmp(c->variant, "min") == 0;
  if (r.none && plain) return ox_identity(c, r.x);
  bool extreme = strcmp(c->variant, "max") == 0 || strcmp(c->variant, "min") == 0;
  bool nothing = ox_info(c, r.x)->rank == 0; /* a core list without dims means all, which is right for a scalar */
  if (!r.known || r.none || (integer && !plain) || (extreme && may_be_empty(c, &r)) ||
      (strcmp(c->variant, "log_sum_exp") == 0 && (nothing || integer)) || (strcmp(c->variant, "mean") == 0 && integer))
    return reduce_later(c, &r);
  return reduce_known(c, &r);
}

ait_status ox_build_arg_extreme(ox_call *c) {
  uint32_t x, y;
  int64_t axis_attribute, axis_list;
  int32_t axis;
  bool keep, last;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_int(c, "axis", 0, &axis_attribute));
  AIT_TRY(ox_flag(c, "keepdims", true, &keep));
  AIT_TRY(ox_flag(c, "select_last_index", false, &last));
  AIT_TRY(ox_axis(c, axis_attribute, ox_info(c, x)->rank, &axis));
  axis_list = axis;
  if (!last) return OX(c, c->variant, &c->outputs[0], V(x), I(axis), B(keep));
  /* the last one is the first of the flipped dim */
  AIT_TRY(OX(c, "flip", &y, V(x), ox_list_ints(c, &axis_list, 1)));
  AIT_TRY(OX(c, c->variant, &y, V(y), I(axis), B(keep)));
  ait_dim before;
  AIT_TRY(ox_dim_int(c, AIT_DIM_SUB, ox_info(c, x)->shape[axis], 1, &before));
  ait_arg last_index = ox_list_dims(c, &before, 1);
  if (last_index.kind == AIT_ARG_NONE) return AIT_OOM();
  return OX(c, "sub", &c->outputs[0], last_index.as.list[0], V(y));
}

/* ---- softmax ---------------------------------------------------------------------------------------------------------------------*/

/* Before opset 13 the operand counts as a matrix: dims from `axis` on are one. */
static ait_status as_matrix(ox_call *c, uint32_t x, int32_t axis, uint32_t *out) {
  const ait_value_info v = *ox_info(c, x);
  ait_dim sizes[2];
  for (int k = 0; k < 2; ++k) {
    AIT_TRY(ait_dim_const(c->g, 1, &sizes[k]));
    for (int32_t d = k ? axis : 0; d < (k ? v.rank : axis); ++d) AIT_TRY(ox_dim(c, AIT_DIM_MUL, sizes[k], v.shape[d], &sizes[k]));
  }
  return ox_reshape(c, x, sizes, 2, out);
}

/* 1 where the first largest of the row is, else 0. */
static ait_status hardmax(ox_call *c, uint32_t x, int32_t axis, uint32_t *out) {
  const ait_value_info v = *ox_info(c, x);
  uint32_t at, places;
  ait_dim sizes[AIT_MAX_RANK];
  ait_arg size = ox_list_dims(c, &v.shape[axis], 1);
  if (size.kind == AIT_ARG_NONE) return AIT_OOM();
  AIT_TRY(OX(c, "argmax", &at, V(x), I(axis), B(true)));
  AIT_TRY(OX(c, "arange", &places, I(0), size.as.list[0], I(1), T(AIT_I64)));
  for (int32_t d = 0; d < v.rank; ++d) AIT_TRY(ait_dim_const(c->g, 1, &sizes[d]));
  sizes[axis] = v.shape[axis];
  AIT_TRY(ox_reshape(c, places, sizes, v.rank, &places));
  AIT_TRY(OX(c, "eq", out, V(at), V(places)));
  return ox_cast(c, *out, v.dtype, out);
}

ait_status ox_build_softmax(ox_call *c) {
  uint32_t x, y;
  int64_t attribute;
  int32_t axis;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_int(c, "axis", c->version < 13 ? 1 : -1, &attribute));
  const ait_value_info v = *ox_info(c, x);
  bool matrix = c->version < 13, hard = strcmp(c->variant, "hardmax") == 0;
  if (matrix && attribute == v.rank) axis = v.rank;
  else AIT_TRY(ox_axis(c, attribute, v.rank, &axis));
  if (matrix && axis == v.rank - 1) matrix = false; /* the same thing */
  y = x;
  if (matrix) {
    AIT_TRY(as_matrix(c, x, axis, &y));
    axis = 1;
  }
  if (hard) AIT_TRY(hardmax(c, y, axis, &y));
  else AIT_TRY(OX(c, c->variant, &y, V(y), I(axis)));
  return matrix ? ox_reshape(c, y, v.shape, v.rank, &c->outputs[0]) : ox_identity(c, y);
}

/* ---- running sums, triangles, the largest k ---------------------------------------------------------------------------------- */

ait_status ox_build_cumulative(ox_call *c) {
  uint32_t x, axis_input, n;
  bool exclusive, reverse, product = strcmp(c->variant, "prod") == 0;
  const int64_t *axis_ints;
  int32_t axis;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &axis_input));
  AIT_TRY(ox_flag(c, "exclusive", false, &exclusive));
  AIT_TRY(ox_flag(c, "reverse", false, &reverse));
  ait_value_info info = ox_like(c, x);
  bool known = info.rank >= 0 && ox_known_ints(c, axis_input, &axis_ints, &n) && n == 1;
  if (product || exclusive || reverse || !known)
    return OX_RAW(c, "onnx.Cumulative", &info, &c->outputs[0], V(x), V(axis_input), B(exclusive), B(reverse), B(product));
  AIT_TRY(ox_axis(c, axis_ints[0], info.rank, &axis));
  AIT_TRY(OX(c, "cumsum", &c->outputs[0], V(x), I(axis)));
  return ox_cast(c, c->outputs[0], info.dtype, &c->outputs[0]);
}

/* An int from a tensor of one element: known now, or taken when the graph runs. */
static ait_status int_of(ox_call *c, uint32_t value, ait_arg *out) {
  const ait_dim *dims;
  uint32_t n, item;
  if (ox_known_dims(c, value, &dims, &n) && n == 1) {
    ait_arg list = ox_list_dims(c, dims, 1);
    if (list.kind == AIT_ARG_NONE) return AIT_OOM();
    *out = list.as.list[0];
    return AIT_OK;
  }
  ait_value_info info = {.type = AIT_TYPE_INT, .scalar = AIT_NO_INDEX};
  AIT_TRY(OX_RAW(c, "aten._local_scalar_dense", &info, &item, V(value)));
  *out = V(item);
  return AIT_OK;
}

ait_status ox_build_trilu(ox_call *c) {
  uint32_t x;
  bool upper;
  ait_arg k = I(0);
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_flag(c, "upper", true, &upper));
  if (ox_has(c, 1)) AIT_TRY(int_of(c, c->inputs[1], &k));
  return OX(c, upper ? "triu" : "tril", &c->outputs[0], V(x), k);
}

ait_status ox_build_top_k(ox_call *c) {
  uint32_t x;
  int64_t axis, k_attribute;
  bool largest, sorted;
  ait_arg k;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_int(c, "axis", -1, &axis));
  AIT_TRY(ox_int(c, "k", -1, &k_attribute));
  AIT_TRY(ox_flag(c, "largest", true, &largest));
  AIT_TRY(ox_flag(c, "sorted", true, &sorted));
  if (ox_has(c, 1)) AIT_TRY(int_of(c, c->inputs[1], &k));
  else k = I(k_attribute);
  return ox_emit_args(c, "topk", OX_ARGS(V(x), k, I(axis), B(largest), B(sorted)), c->outputs, 2);
}

ait_status ox_build_range(ox_call *c) {
  uint32_t in[3];
  ait_arg args[3];
  bool known = true;
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(ox_need(c, i, &in[i]));
  ait_dtype dtype = ox_dtype_of(c, in[0]);
  int64_t constants[3];
  bool constant = true;
  for (uint32_t i = 0; i < 3 && known; ++i) {
    const ait_dim *dims;
    uint32_t n;
    double v;
    if (ait_dtype_is_integer(dtype) && ox_known_dims(c, in[i], &dims, &n) && n == 1) {
      ait_arg list = ox_list_dims(c, dims, 1);
      if (list.kind == AIT_ARG_NONE) return AIT_OOM();
      args[i] = list.as.list[0];
      constant = constant && ait_dim_is_const(c->g, dims[0], &constants[i]);
    } else if (!ait_dtype_is_integer(dtype) && ox_known_number(c, in[i], &v)) {
      args[i] = F(v);
      constant = false;
    } else {
      known = false;
    }
  }
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, dtype, 1, &info));
  if (!known || (args[2].kind != AIT_ARG_INT && args[2].kind != AIT_ARG_FLOAT))
    return OX_RAW(c, "onnx.Range", &info, &c->outputs[0], V(in[0]), V(in[1]), V(in[2]));
  AIT_TRY(OX(c, "arange", &c->outputs[0], args[0], args[1], args[2], T(dtype)));
  if (!constant || constants[2] == 0) return AIT_OK;
  int64_t count = (constants[1] - constants[0] + constants[2] - (constants[2] > 0 ? 1 : -1)) / constants[2];
  if (count < 0) count = 0;
  if (count > OX_KNOWN_LIMIT) return AIT_OK;
  ait_dim *dims;
  AIT_TRY(ox_dims(c, (int32_t)count, &dims));
  for (int64_t i = 0; i < count; ++i) AIT_TRY(ait_dim_const(c->g, constants[0] + i * constants[2], &dims[i]));
  ox_known contents = {.has_dims = true, .rank = 1, .count = (uint32_t)count, .dims = dims};
  return ox_set_known(c->s, c->outputs[0], &contents);
}
