/* Views (pure by now), creation, reductions, indexing. */
#include "passes/lower.h"

/* ---- shape -----------------------------------------------------------------------------------------------------------------------*/
static ait_status to_result_shape(ait_lower *l) { /* reshape, expand */
  ait_arg shape[AIT_MAX_RANK];
  uint32_t x, out;
  if (!ait_lower_tensor(l, 0, &x) || !ait_shape_args(l->g, l->n->results[0], shape)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, l->core, ait_arg_value(x), ait_arg_list(shape, (uint32_t)ait_lower_result(l)->rank)));
  return ait_lower_done(l, out);
}

/* An operator whose arguments are core's, in core's order: sizes are INT or DIM already, where they are known. */
static bool known_args(const ait_lower *l, uint32_t count) {
  ait_arg d[AIT_MAX_RANK];
  uint32_t n;
  for (uint32_t i = 0; i < count; ++i) {
    const ait_arg *a = &l->a[i];
    if (a->kind == AIT_ARG_LIST && a->count && a->as.list[0].kind != AIT_ARG_VALUE && !ait_arg_as_dims(l->g, a, d, &n)) return false;
    if (a->kind == AIT_ARG_VALUE && l->g->values[a->as.value].type != AIT_TYPE_TENSOR) return false;
  }
  return true;
}

static ait_status same_args(ait_lower *l) {
  uint32_t out, count = ait_op_find(l->core)->param_count;
  if (count > l->n->arg_count) count = l->n->arg_count;
  if (!known_args(l, count)) return AIT_OK;
  AIT_TRY(ait_emit(&l->w, l->core, l->a, count, &out));
  return ait_lower_done(l, out);
}

/* slice and slice_scatter: what the views pass could not put in range stays raw. */
static ait_status slice_at(ait_lower *l, uint32_t first) {
  ait_arg start, end;
  int64_t low, high;
  const ait_arg *a = l->a + first;
  if (!ait_arg_as_dim(l->g, &a[1], &start) || !ait_arg_as_dim(l->g, &a[2], &end)) return AIT_OK;
  if (end.kind == AIT_ARG_INT && end.as.i == INT64_MAX) return AIT_OK;
  const ait_arg *both[2] = {&start, &end};
  for (int i = 0; i < 2; ++i) {
    if (both[i]->kind == AIT_ARG_INT) low = both[i]->as.i;
    else ait_dim_range(l->g, both[i]->as.dim, &low, &high);
    if (low < 0) return AIT_OK;
  }
  return same_args(l);
}
static ait_status slice(ait_lower *l) { return slice_at(l, 1); }

/* slice_scatter of decomposed files has its bounds as the program wrote them: None, negative, open. */
static ait_status slice_scatter(ait_lower *l) {
  uint32_t x, src, out;
  int64_t dim, step;
  ait_graph *g = l->g;
  if (!ait_lower_tensor(l, 0, &x) || !ait_lower_tensor(l, 1, &src) || !ait_shape_known(g, &g->values[x]) ||
      !ait_arg_as_int(g, &l->a[2], &dim) || !ait_arg_as_int(g, &l->a[5], &step) || !ait_wrap_dim(&dim, g->values[x].rank))
    return AIT_OK;
  ait_dim size = g->values[x].shape[dim], zero, bound[2];
  AIT_TRY(ait_dim_const(g, 0, &zero));
  for (int i = 0; i < 2; ++i) {
    const ait_arg *a = &l->a[3 + i];
    ait_arg d = ait_arg_none();
    int64_t low, high;
    if (a->kind == AIT_ARG_NONE) bound[i] = i ? size : zero;
    else if (!ait_arg_as_dim(g, a, &d)) return AIT_OK;
    if (d.kind == AIT_ARG_NONE) continue;
    if (d.kind == AIT_ARG_INT) AIT_TRY(ait_dim_const(g, d.as.i == INT64_MAX ? 0 : d.as.i, &bound[i]));
    else bound[i] = d.as.dim;
    if (d.kind == AIT_ARG_INT && d.as.i == INT64_MAX) bound[i] = size;
    ait_dim_range(g, bound[i], &low, &high);
    if (high < 0) AIT_TRY(ait_dim_make(g, AIT_DIM_ADD, bound[i], size, &bound[i]));
    else if (low < 0) return AIT_OK;
    AIT_TRY(ait_dim_make(g, AIT_DIM_MIN, bound[i], size, &bound[i]));
  }
  AIT_TRY(ait_emit_cast(&l->w, src, ait_lower_result(l)->dtype, &src));
  AIT_TRY(AIT_EMIT(&l->w, &out, "slice_scatter", ait_arg_value(x), ait_arg_value(src), ait_arg_int(dim), ait_dim_as_arg(g, bound[0]),
                   ait_dim_as_arg(g, bound[1]), ait_arg_int(step)));
  return ait_lower_done(l, out);
}

static ait_status select_scatter(ait_lower *l) {
  ait_arg index;
  if (!ait_arg_as_dim(l->g, &l->a[3], &index) || (index.kind == AIT_ARG_INT && index.as.i < 0)) return AIT_OK;
  return same_args(l);
}

/* Elements of cat and stack have the result's dtype; stack's get the new dimension first. */
static ait_status concatenate(ait_lower *l, bool stack) {
  ait_graph *g = l->g;
  const ait_value_info *result = ait_lower_result(l);
  int64_t dim;
  uint32_t out;
  if (l->a[0].kind != AIT_ARG_LIST || !ait_arg_as_int(g, &l->a[1], &dim) || !ait_wrap_dim(&dim, result->rank) || result->rank < 1)
    return AIT_OK;
  uint32_t count = l->a[0].count, kept = 0;
  ait_arg *list = AIT_ARENA_ARRAY(g->arena, ait_arg, count ? count : 1);
  if (!list) return AIT_OOM();
  int32_t rank = result->rank;
  ait_dtype dtype = result->dtype;
  for (uint32_t i = 0; i < count; ++i) {
    if (!ait_arg_is_tensor(g, &l->a[0].as.list[i])) return AIT_OK;
    uint32_t v = l->a[0].as.list[i].as.value;
    if (!stack && g->values[v].rank == 1 && rank > 1) continue; /* an empty one-dimensional tensor, allowed by torch */
    AIT_TRY(ait_emit_cast(&l->w, v, dtype, &v));
    if (stack) {
      ait_arg shape[AIT_MAX_RANK + 1];
      if (!ait_shape_args(g, v, shape) || rank > AIT_MAX_RANK) return AIT_OK;
      for (int32_t d = rank - 1; d > dim; --d) shape[d] = shape[d - 1];
      shape[dim] = ait_arg_int(1);
      AIT_TRY(AIT_EMIT(&l->w, &v, "reshape", ait_arg_value(v), ait_arg_list(shape, (uint32_t)rank)));
    }
    list[kept++] = ait_arg_value(v);
  }
  if (!kept) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "cat", ait_arg_list(list, kept), ait_arg_int(dim)));
  return ait_lower_done(l, out);
}
static ait_status cat(ait_lower *l) { return concatenate(l, false); }
static ait_status stack(ait_lower *l) { return concatenate(l, true); }

/* repeat: a dimension of ones before each, expanded, merged. */
static ait_status repeat(ait_lower *l) {
  ait_graph *g = l->g;
  ait_arg times[AIT_MAX_RANK], size[AIT_MAX_RANK], wide[2 * AIT_MAX_RANK], expanded[2 * AIT_MAX_RANK], final[AIT_MAX_RANK];
  uint32_t x, n, out;
  if (!ait_lower_tensor(l, 0, &x) || !ait_arg_as_dims(g, &l->a[1], times, &n) || !ait_shape_args(g, x, size) ||
      !ait_shape_args(g, l->n->results[0], final))
    return AIT_OK;
  int32_t rank = ait_lower_result(l)->rank, own = g->values[x].rank;
  if (2 * rank > AIT_MAX_RANK || (int32_t)n > rank) return AIT_OK;
  for (int32_t d = 0; d < rank; ++d) {
    int32_t s = d - (rank - own), t = d - (rank - (int32_t)n);
    wide[2 * d] = ait_arg_int(1);
    wide[2 * d + 1] = expanded[2 * d + 1] = s >= 0 ? size[s] : ait_arg_int(1);
    expanded[2 * d] = t >= 0 ? times[t] : ait_arg_int(1);
  }
  AIT_TRY(AIT_EMIT(&l->w, &out, "reshape", ait_arg_value(x), ait_arg_list(wide, 2 * (uint32_t)rank)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "expand", ait_arg_value(out), ait_arg_list(expanded, 2 * (uint32_t)rank)));
  AIT_TRY(AIT_EMIT(&l->w, &out, "reshape", ait_arg_value(out), ait_arg_list(final, (uint32_t)rank)));
  return ait_lower_done(l, out);
}

/* ---- creation --------------------------------------------------------------------------------------------------------------------*/
static ait_status full_of(ait_lower *l, ait_arg value) {
  ait_arg shape[AIT_MAX_RANK];
  double number;
  uint32_t out;
  if (!ait_shape_args(l->g, l->n->results[0], shape) || ait_dtype_is_complex(ait_lower_result(l)->dtype)) return AIT_OK;
  if (!ait_arg_as_number(l->g, &value, &number) && value.kind != AIT_ARG_DIM) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "full", ait_arg_list(shape, (uint32_t)ait_lower_result(l)->rank), value,
                   ait_arg_dtype(ait_lower_result(l)->dtype)));
  return ait_lower_done(l, out);
}
static ait_status zeros(ait_lower *l) { return full_of(l, ait_arg_int(0)); }
static ait_status ones(ait_lower *l) { return full_of(l, ait_arg_int(1)); }
static ait_status full(ait_lower *l) {
  int32_t at = ait_op_param(l->n->op, "fill_value");
  if (at < 0) at = ait_op_param(l->n->op, "value");
  if (at < 0) at = ait_op_param(l->n->op, "s");
  return at < 0 ? AIT_OK : full_of(l, l->a[at]);
}

static ait_status arange(ait_lower *l) {
  int32_t s = ait_op_param(l->n->op, "start"), e = ait_op_param(l->n->op, "end"), p = ait_op_param(l->n->op, "step");
  ait_arg range[3] = {s < 0 ? ait_arg_int(0) : l->a[s], l->a[e], p < 0 ? ait_arg_int(1) : l->a[p]};
  uint32_t out;
  double number;
  if (!ait_shape_known(l->g, ait_lower_result(l))) return AIT_OK;
  for (int i = 0; i < 3; ++i)
    if (!ait_arg_as_number(l->g, &range[i], &number) && !ait_arg_as_dim(l->g, &range[i], &range[i])) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "arange", range[0], range[1], range[2], ait_arg_dtype(ait_lower_result(l)->dtype)));
  return ait_lower_done(l, out);
}

/* copy(self, src): src in self's shape. */
static ait_status copy(ait_lower *l) {
  ait_arg shape[AIT_MAX_RANK];
  uint32_t src;
  if (!ait_lower_tensor(l, 1, &src) || !ait_shape_args(l->g, l->n->results[0], shape)) return AIT_OK;
  if (ait_dtype_is_complex(l->g->values[src].dtype) != ait_dtype_is_complex(ait_lower_result(l)->dtype)) return AIT_OK;
  AIT_TRY(ait_emit_cast(&l->w, src, ait_lower_result(l)->dtype, &src));
  if (!ait_same_shape(&l->g->values[src], ait_lower_result(l)))
    AIT_TRY(AIT_EMIT(&l->w, &src, "expand", ait_arg_value(src), ait_arg_list(shape, (uint32_t)ait_lower_result(l)->rank)));
  return ait_lower_done(l, src);
}

/* fill.Tensor(self, value): a 0-d tensor everywhere. */
static ait_status fill_tensor(ait_lower *l) { return copy(l); }

/* ---- reductions ------------------------------------------------------------------------------------------------------------------*/
/* Dims of a reduction, wrapped; none or an empty list: all of them. */
static bool reduced_dims(const ait_lower *l, const ait_arg *a, int32_t rank, ait_arg out[AIT_MAX_RANK], uint32_t *count) {
  int64_t dims[AIT_MAX_RANK];
  if (rank < 0 || rank > AIT_MAX_RANK || !ait_arg_as_ints(l->g, a, dims, count)) return false;
  if (*count == 0)
    for (*count = 0; (int32_t)*count < rank; ++*count) dims[*count] = *count;
  for (uint32_t i = 0; i < *count; ++i) {
    if (rank == 0) return *count = 0, true;
    if (!ait_wrap_dim(&dims[i], rank)) return false;
    out[i] = ait_arg_int(dims[i]);
  }
  return true;
}

static ait_status reduce_with(ait_lower *l, const char *op, ait_dtype compute, const ait_arg *dims_arg, bool keepdim,
                              const ait_arg *correction, uint32_t *out) {
  ait_arg x, dims[AIT_MAX_RANK];
  uint32_t v, count;
  *out = AIT_NO_INDEX;
  if (!ait_lower_tensor(l, 0, &v) || ait_dtype_is_complex(compute) || ait_dtype_is_complex(l->g->values[v].dtype)) return AIT_OK;
  if (!reduced_dims(l, dims_arg, l->g->values[v].rank, dims, &count)) return AIT_OK;
  AIT_TRY(ait_lower_cast_arg(l, 0, compute, &x));
  if (correction) return AIT_EMIT(&l->w, out, op, x, ait_arg_list(dims, count), *correction, ait_arg_bool(keepdim));
  return AIT_EMIT(&l->w, out, op, x, ait_arg_list(dims, count), ait_arg_bool(keepdim));
}

static ait_status reduce(ait_lower *l) {
  int32_t dim = ait_op_param(l->n->op, "dim"), keep = ait_op_param(l->n->op, "keepdim");
  ait_arg all = ait_arg_none();
  uint32_t out, x;
  if (!ait_lower_tensor(l, 0, &x)) return AIT_OK;
  bool predicate = !strcmp(l->core, "any") || !strcmp(l->core, "all");
  AIT_TRY(reduce_with(l, l->core, predicate ? AIT_BOOL : ait_lower_result(l)->dtype, dim < 0 ? &all : &l->a[dim],
                      keep >= 0 && ait_arg_flag(&l->a[keep]), NULL, &out));
  return out == AIT_NO_INDEX ? AIT_OK : ait_lower_done(l, out);
}

/* var and std: correction None is 1; the older form has unbiased. */
static ait_status variance(ait_lower *l) {
  int32_t dim = ait_op_param(l->n->op, "dim"), keep = ait_op_param(l->n->op, "keepdim"), c = ait_op_param(l->n->op, "correction"),
          u = ait_op_param(l->n->op, "unbiased");
  ait_arg all = ait_arg_none(), correction = ait_arg_float(1);
  double number;
  uint32_t out;
  bool root = !strcmp(l->core, "std");
  ait_dtype dtype = root ? ait_lower_steps_dtype(ait_lower_result(l)->dtype) : ait_lower_result(l)->dtype;
  if (c >= 0 && l->a[c].kind != AIT_ARG_NONE) {
    if (!ait_arg_as_number(l->g, &l->a[c], &number)) return AIT_OK;
    correction = ait_arg_float(number);
  }
  if (u >= 0) correction = ait_arg_float(ait_arg_flag(&l->a[u]) ? 1 : 0);
  AIT_TRY(reduce_with(l, "var", dtype, dim < 0 ? &all : &l->a[dim], keep >= 0 && ait_arg_flag(&l->a[keep]), &correction, &out));
  if (out == AIT_NO_INDEX) return AIT_OK;
  if (root) AIT_TRY(AIT_EMIT(&l->w, &out, "sqrt", ait_arg_value(out)));
  return ait_lower_done(l, out);
}

static ait_status arg_reduce(ait_lower *l) {
  uint32_t x, out;
  if (!ait_lower_tensor(l, 0, &x)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, l->core, ait_arg_value(x), l->a[1], l->a[2]));
  return ait_lower_done(l, out);
}

/* max.dim, min.dim, sort, topk: two results with the same arguments. */
static ait_status two_results(ait_lower *l) {
  uint32_t count = ait_op_find(l->core)->param_count, out[2], x;
  if (count > l->n->arg_count) count = l->n->arg_count;
  if (l->n->result_count != 2 || !known_args(l, count) || !ait_lower_tensor(l, 0, &x)) return AIT_OK;
  AIT_TRY(ait_build(l->g, l->w.at, l->core, l->w.name, l->w.module, l->a, count, out, 2));
  for (uint32_t i = 0; i < 2; ++i)
    if (l->n->results[i] != AIT_NO_INDEX) AIT_TRY(ait_replace_value(l->g, l->n->results[i], out[i]));
  ait_graph_remove_node(l->g, l->n);
  l->done = true;
  return AIT_OK;
}

static ait_status cumsum(ait_lower *l) {
  ait_arg x;
  uint32_t out;
  if (ait_dtype_is_complex(ait_lower_result(l)->dtype)) return AIT_OK;
  AIT_TRY(ait_lower_cast_arg(l, 0, ait_lower_result(l)->dtype, &x));
  AIT_TRY(AIT_EMIT(&l->w, &out, "cumsum", x, l->a[1]));
  return ait_lower_done(l, out);
}

/* ---- indexing --------------------------------------------------------------------------------------------------------------------*/
static ait_status index_of(ait_lower *l) {
  const ait_arg *list = &l->a[1];
  if (!ait_shape_known(l->g, ait_lower_result(l))) return AIT_OK;
  for (uint32_t i = 0; i < list->count; ++i) /* a boolean mask has a size that depends on data */
    if (ait_arg_is_tensor(l->g, &list->as.list[i]) && l->g->values[list->as.list[i].as.value].dtype == AIT_BOOL) return AIT_OK;
  return same_args(l);
}

static ait_status scatter(ait_lower *l) {
  ait_arg src = l->a[3];
  uint32_t out;
  if (ait_arg_is_tensor(l->g, &src)) AIT_TRY(ait_lower_cast_arg(l, 3, ait_lower_result(l)->dtype, &src));
  AIT_TRY(AIT_EMIT(&l->w, &out, "scatter", l->a[0], l->a[1], l->a[2], src, ait_arg_string(l->core)));
  return ait_lower_done(l, out);
}

static ait_status embedding(ait_lower *l) {
  uint32_t out;
  AIT_TRY(AIT_EMIT(&l->w, &out, "embedding", l->a[0], l->a[1]));
  return ait_lower_done(l, out);
}

static ait_status gather(ait_lower *l) {
  uint32_t out;
  AIT_TRY(AIT_EMIT(&l->w, &out, "gather", l->a[0], l->a[1], l->a[2]));
  return ait_lower_done(l, out);
}

static ait_status roll(ait_lower *l) {
  ait_arg shifts[AIT_MAX_RANK], dims[AIT_MAX_RANK];
  uint32_t n, m, out;
  if (!ait_arg_as_dims(l->g, &l->a[1], shifts, &n) || !ait_arg_as_dims(l->g, &l->a[2], dims, &m) || n != m) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "roll", l->a[0], ait_arg_list(shifts, n), ait_arg_list(dims, m)));
  return ait_lower_done(l, out);
}

static ait_status pad(ait_lower *l) {
  int32_t mode = ait_op_param(l->n->op, "mode"), value = ait_op_param(l->n->op, "value");
  if (mode >= 0 && l->a[mode].kind == AIT_ARG_STRING && strcmp(l->a[mode].as.string, "constant")) return AIT_OK;
  ait_arg pads[AIT_MAX_RANK], fill = value >= 0 && l->a[value].kind != AIT_ARG_NONE ? l->a[value] : ait_arg_int(0);
  uint32_t n, out;
  if (!ait_arg_as_dims(l->g, &l->a[1], pads, &n) || (fill.kind == AIT_ARG_VALUE)) return AIT_OK;
  AIT_TRY(AIT_EMIT(&l->w, &out, "pad", l->a[0], ait_arg_list(pads, n), fill));
  return ait_lower_done(l, out);
}

const ait_lower_row ait_lower_shape_rows[] = {
    {"aten.view", "reshape", to_result_shape},
    {"aten.reshape", "reshape", to_result_shape},
    {"aten._unsafe_view", "reshape", to_result_shape},
    {"aten.expand", "expand", to_result_shape},
    {"aten.permute", "permute", same_args},
    {"aten.slice.Tensor", "slice", slice},
    {"aten.select.int", "select", same_args},
    {"aten.slice_scatter", "slice_scatter", slice_scatter},
    {"aten.select_scatter", "select_scatter", select_scatter},
    {"aten.cat", NULL, cat},
    {"aten.concat", NULL, cat},
    {"aten.concatenate", NULL, cat},
    {"aten.stack", NULL, stack},
    {"aten.repeat", NULL, repeat},
    {"aten.flip", "flip", same_args},
    {"aten.roll", NULL, roll},
    {"aten.tril", "tril", same_args},
    {"aten.triu", "triu", same_args},
    {"aten.unfold", "unfold", same_args},
    {"aten.constant_pad_nd", NULL, pad},
    {"aten.pad", NULL, pad},
    {"aten.copy", NULL, copy},
    {"aten.zeros", NULL, zeros},
    {"aten.zeros_like", NULL, zeros},
    {"aten.new_zeros", NULL, zeros},
    {"aten.zero", NULL, zeros},
    {"aten.empty.memory_format", NULL, zeros},
    {"aten.empty_like", NULL, zeros},
    {"aten.new_empty", NULL, zeros},
    {"aten.ones", NULL, ones},
    {"aten.ones_like", NULL, ones},
    {"aten.new_ones", NULL, ones},
    {"aten.full", NULL, full},
    {"aten.full_like", NULL, full},
    {"aten.new_full", NULL, full},
    {"aten.fill.Scalar", NULL, full},
    {"aten.scalar_tensor", NULL, full},
    {"aten.fill.Tensor", NULL, fill_tensor},
    {"aten.arange", NULL, arange},
    {"aten.arange.start", NULL, arange},
    {"aten.arange.start_step", NULL, arange},
    {"aten.sum", "sum", reduce},
    {"aten.sum.dim_IntList", "sum", reduce},
    {"aten.mean", "mean", reduce},
    {"aten.mean.dim", "mean", reduce},
    {"aten.amax", "amax", reduce},
    {"aten.amin", "amin", reduce},
    {"aten.max", "amax", reduce},
    {"aten.min", "amin", reduce},
    {"aten.prod", "prod", reduce},
    {"aten.prod.dim_int", "prod", reduce},
    {"aten.any", "any", reduce},
    {"aten.any.dim", "any", reduce},
    {"aten.any.dims", "any", reduce},
    {"aten.all", "all", reduce},
    {"aten.all.dim", "all", reduce},
    {"aten.all.dims", "all", reduce},
    {"aten.var.correction", "var", variance},
    {"aten.var.dim", "var", variance},
    {"aten.var", "var", variance},
    {"aten.std.correction", "std", variance},
    {"aten.std.dim", "std", variance},
    {"aten.std", "std", variance},
    {"aten.argmax", "argmax", arg_reduce},
    {"aten.argmin", "argmin", arg_reduce},
    {"aten.max.dim", "max_dim", two_results},
    {"aten.min.dim", "min_dim", two_results},
    {"aten.sort", "sort", two_results},
    {"aten.topk", "topk", two_results},
    {"aten.cumsum", NULL, cumsum},
    {"aten.index.Tensor", "index", index_of},
    {"aten.index_select", "index_select", same_args},
    {"aten.index_put", "index_put", same_args},
    {"aten.gather", NULL, gather},
    {"aten.scatter.src", "none", scatter},
    {"aten.scatter.value", "none", scatter},
    {"aten.scatter_add", "add", scatter},
    {"aten.embedding", NULL, embedding},
    {0},
};
