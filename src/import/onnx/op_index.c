/* Reading and writing by index. */
#include "import/onnx/onnx.h"

/* ---- Gather ----------------------------------------------------------------------------------------------------------------------*/

static ait_status gather_contents(ox_call *c, uint32_t x, uint32_t indices) {
  const ait_dim *dims;
  const int64_t *at;
  uint32_t n, m;
  if (ox_info(c, x)->rank != 1 || ox_info(c, indices)->rank > 1) return AIT_OK;
  if (!ox_contents(c, x, &dims, &n) || !ox_known_ints(c, indices, &at, &m)) return AIT_OK;
  ait_dim *taken;
  AIT_TRY(ox_dims(c, (int32_t)m, &taken));
  for (uint32_t i = 0; i < m; ++i) {
    int64_t k = at[i] < 0 ? at[i] + n : at[i];
    if (k < 0 || k >= (int64_t)n)
      return ox_fail(c, AIT_CODE_INVALID_MODEL, "index %lld is outside of %u elements", (long long)at[i], (unsigned)n);
    taken[i] = dims[k];
  }
  ox_known known = {.has_dims = true, .rank = ox_info(c, indices)->rank, .count = m, .dims = taken};
  return ox_set_known(c->s, c->outputs[0], &known);
}

ait_status ox_build_gather(ox_call *c) {
  uint32_t x, indices, n;
  int64_t attribute;
  int32_t axis;
  const int64_t *at;
  AIT_TRY(ox_need_ranked(c, 0, &x));
  AIT_TRY(ox_need_ranked(c, 1, &indices));
  AIT_TRY(ox_int(c, "axis", 0, &attribute));
  AIT_TRY(ox_axis(c, attribute, ox_info(c, x)->rank, &axis));
  if (ox_info(c, indices)->rank == 0 && ox_known_ints(c, indices, &at, &n) && n == 1) {
    AIT_TRY(OX(c, "select", &c->outputs[0], V(x), I(axis), I(at[0])));
    return gather_contents(c, x, indices);
  }
  ait_arg items[AIT_MAX_RANK];
  for (int32_t d = 0; d < axis; ++d) items[d] = NONE;
  items[axis] = V(indices);
  AIT_TRY(OX(c, "index", &c->outputs[0], V(x), ait_arg_list(items, (uint32_t)axis + 1)));
  return gather_contents(c, x, indices);
}

/* Operators of ONNX's own kind of indexing: the result is like input 0 or input 1. */
ait_status ox_build_gather_elements(ox_call *c) {
  uint32_t x, indices;
  int64_t axis;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &indices));
  AIT_TRY(ox_int(c, "axis", 0, &axis));
  ait_value_info info = ox_like(c, indices);
  info.dtype = ox_dtype_of(c, x);
  return OX_RAW(c, "onnx.GatherElements", &info, &c->outputs[0], V(x), V(indices), I(axis));
}

ait_status ox_build_gather_nd(ox_call *c) {
  uint32_t x, indices;
  int64_t batch, depth;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &indices));
  AIT_TRY(ox_int(c, "batch_dims", 0, &batch));
  const ait_value_info v = *ox_info(c, x), at = *ox_info(c, indices);
  ait_value_info info = ox_tensor_info(v.dtype, -1, NULL);
  if (v.rank >= 0 && at.rank > 0 && ox_const_dim(c, indices, at.rank - 1, &depth) && batch >= 0 && batch < at.rank &&
      batch + depth <= v.rank && depth >= 0) {
    int32_t rest = v.rank - (int32_t)(batch + depth);
    if (at.rank - 1 + rest > AIT_MAX_RANK) return ox_fail(c, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
    ait_dim *dims;
    AIT_TRY(ox_dims(c, at.rank - 1 + rest, &dims));
    for (int32_t d = 0; d < at.rank - 1; ++d) dims[d] = at.shape[d];
    for (int32_t d = 0; d < rest; ++d) dims[at.rank - 1 + d] = v.shape[v.rank - rest + d];
    info = ox_tensor_info(v.dtype, at.rank - 1 + rest, dims);
  }
  return OX_RAW(c, "onnx.GatherND", &info, &c->outputs[0], V(x), V(indices), I(batch));
}

ait_status ox_build_scatter(ox_call *c) { /* Scatter, ScatterElements, ScatterND */
  uint32_t in[3];
  int64_t axis;
  const char *reduction;
  bool nd = strcmp(c->variant, "onnx.ScatterND") == 0;
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(ox_need(c, i, &in[i]));
  AIT_TRY(ox_int(c, "axis", 0, &axis));
  AIT_TRY(ox_string(c, "reduction", "none", &reduction));
  ait_value_info info = ox_like(c, in[0]);
  if (nd) return OX_RAW(c, c->variant, &info, &c->outputs[0], V(in[0]), V(in[1]), V(in[2]), S(reduction));
  return OX_RAW(c, c->variant, &info, &c->outputs[0], V(in[0]), V(in[1]), V(in[2]), I(axis), S(reduction));
}

ait_status ox_build_tensor_scatter(ox_call *c) {
  uint32_t x, update;
  int64_t axis;
  const char *mode;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &update));
  AIT_TRY(ox_int(c, "axis", -2, &axis));
  AIT_TRY(ox_string(c, "mode", "linear", &mode));
  ait_value_info info = ox_like(c, x);
  return OX_RAW(c, "onnx.TensorScatter", &info, &c->outputs[0], V(x), V(update), V(ox_has(c, 2) ? c->inputs[2] : AIT_NO_INDEX), I(axis),
                S(mode));
}

ait_status ox_build_one_hot(ox_call *c) {
  uint32_t indices, depth, values, n;
  int64_t attribute;
  int32_t axis;
  const ait_dim *known;
  AIT_TRY(ox_need_ranked(c, 0, &indices));
  AIT_TRY(ox_need(c, 1, &depth));
  AIT_TRY(ox_need(c, 2, &values));
  AIT_TRY(ox_int(c, "axis", -1, &attribute));
  const ait_value_info v = *ox_info(c, indices);
  if (v.rank >= AIT_MAX_RANK) return ox_fail(c, AIT_CODE_LIMIT, "more than %d dimensions", AIT_MAX_RANK);
  AIT_TRY(ox_axis(c, attribute, v.rank + 1, &axis));
  ait_dim *dims, count;
  const double *number;
  AIT_TRY(ox_dims(c, v.rank + 1, &dims));
  if (ox_contents(c, depth, &known, &n) && n == 1) count = known[0];
  else if (ox_known_floats(c, depth, &number, &n) && n == 1) AIT_TRY(ait_dim_const(c->g, (int64_t)number[0], &count));
  else AIT_TRY(ait_dim_unknown(c->g, &count));
  for (int32_t d = 0, from = 0; d <= v.rank; ++d) dims[d] = d == axis ? count : v.shape[from++];
  ait_value_info info = ox_tensor_info(ox_dtype_of(c, values), v.rank + 1, dims);
  return OX_RAW(c, "onnx.OneHot", &info, &c->outputs[0], V(indices), V(depth), V(values), I(axis));
}

ait_status ox_build_eye_like(ox_call *c) {
  uint32_t x;
  int64_t dtype, k;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_int(c, "dtype", 0, &dtype));
  AIT_TRY(ox_int(c, "k", 0, &k));
  ait_value_info info = ox_like(c, x);
  if (dtype) info.dtype = ox_dtype(dtype > 0 && dtype < 1000 ? (int32_t)dtype : 0);
  if (info.dtype == AIT_DTYPE_NONE) return ox_fail(c, AIT_CODE_UNSUPPORTED, "type %lld", (long long)dtype);
  return OX_RAW(c, "onnx.EyeLike", &info, &c->outputs[0], V(x), I(k), T(info.dtype));
}

/* ---- sizes that depend on data -----------------------------------------------------------------------------------------------------*/

ait_status ox_build_nonzero(ox_call *c) {
  uint32_t x, y;
  static const int64_t swap[2] = {1, 0};
  AIT_TRY(ox_need_ranked(c, 0, &x));
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, AIT_I64, 2, &info));
  AIT_TRY(ait_dim_const(c->g, ox_info(c, x)->rank, (ait_dim *)(uintptr_t)&info.shape[1]));
  AIT_TRY(OX_RAW(c, "aten.nonzero", &info, &y, V(x)));
  return ox_permute(c, y, swap, 2, &c->outputs[0]);
}

ait_status ox_build_compress(ox_call *c) {
  uint32_t x, condition;
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &condition));
  AIT_TRY(ox_attribute(c, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, &a));
  const ait_value_info v = *ox_info(c, x);
  ait_value_info info;
  AIT_TRY(ox_unknown_info(c, v.dtype, a ? v.rank : 1, &info));
  if (a && v.rank >= 0) {
    int32_t axis;
    AIT_TRY(ox_axis(c, a->i, v.rank, &axis));
    for (int32_t d = 0; d < v.rank; ++d)
      if (d != axis) ((ait_dim *)(uintptr_t)info.shape)[d] = v.shape[d];
  }
  return OX_RAW(c, "onnx.Compress", &info, &c->outputs[0], V(x), V(condition), a ? I(a->i) : NONE);
}

ait_status ox_build_unique(ox_call *c) {
  uint32_t x;
  bool sorted;
  const Onnx__AttributeProto *a;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_flag(c, "sorted", true, &sorted));
  AIT_TRY(ox_attribute(c, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, &a));
  const ait_value_info v = *ox_info(c, x);
  ait_value_info infos[4];
  AIT_TRY(ox_unknown_info(c, v.dtype, a ? v.rank : 1, &infos[0]));
  for (int i = 1; i < 4; ++i) AIT_TRY(ox_unknown_info(c, AIT_I64, 1, &infos[i]));
  return ox_raw_args(c, "onnx.Unique", OX_ARGS(V(x), a ? I(a->i) : NONE, B(sorted)), infos, c->outputs, 4);
}

ait_status ox_build_reverse_sequence(ox_call *c) {
  uint32_t x, lengths;
  int64_t time, batch;
  AIT_TRY(ox_need(c, 0, &x));
  AIT_TRY(ox_need(c, 1, &lengths));
  AIT_TRY(ox_int(c, "time_axis", 0, &time));
  AIT_TRY(ox_int(c, "batch_axis", 1, &batch));
  ait_value_info info = ox_like(c, x);
  return OX_RAW(c, "onnx.ReverseSequence", &info, &c->outputs[0], V(x), V(lengths), I(time), I(batch));
}
