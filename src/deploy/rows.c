/* Between the shapes of a model and the rows [T, heads, width] of operators with state. */
#include "deploy/internal.h"

bool dep_const_sizes(const ait_graph *g, uint32_t v, int32_t skip_dim, int64_t out[AIT_MAX_RANK]) {
  const ait_value_info *info = &g->values[v];
  for (int32_t d = 0; d < info->rank; ++d)
    if (d == skip_dim) out[d] = 1;
    else if (!ait_dim_is_const(g, info->shape[d], &out[d])) return false;
  return true;
}

ait_status dep_to_rows(dep_work *w, const ait_rewrite *r, uint32_t value, uint32_t *out, int64_t *heads) {
  ait_graph *g = w->g;
  const dep_label l = w->labels[value];
  int32_t rank = g->values[value].rank, k = 0;
  int64_t sizes[AIT_MAX_RANK];
  ait_arg order[AIT_MAX_RANK], shape[3];
  *heads = -1;
  if (l.kind != DEP_TOKEN || l.inner != 1 || l.dim >= rank - 1 || !dep_const_sizes(g, value, l.dim, sizes)) return AIT_OK;
  *heads = 1;
  order[k++] = ait_arg_int(l.dim);
  for (int32_t d = 0; d < rank; ++d) {
    if (d != l.dim) order[k++] = ait_arg_int(d);
    if (d != l.dim && d < rank - 1) *heads *= sizes[d];
  }
  shape[0] = ait_dim_as_arg(g, g->values[value].shape[l.dim]);
  shape[1] = ait_arg_int(*heads), shape[2] = ait_arg_int(sizes[rank - 1]);
  AIT_TRY(AIT_EMIT(r, out, "permute", ait_arg_value(value), ait_arg_list(order, (uint32_t)rank)));
  return AIT_EMIT(r, out, "reshape", ait_arg_value(*out), ait_arg_list(shape, 3));
}

ait_status dep_from_rows(dep_work *w, const ait_rewrite *r, uint32_t rows, uint32_t like, int32_t dim, uint32_t *out) {
  ait_graph *g = w->g;
  const ait_value_info *v = &g->values[like];
  ait_arg shape[AIT_MAX_RANK], order[AIT_MAX_RANK];
  int32_t k = 0;
  shape[k++] = ait_dim_as_arg(g, v->shape[dim]);
  for (int32_t d = 0; d < v->rank; ++d) {
    if (d == dim) order[d] = ait_arg_int(0);
    else order[d] = ait_arg_int(k), shape[k++] = ait_dim_as_arg(g, v->shape[d]);
  }
  AIT_TRY(AIT_EMIT(r, out, "reshape", ait_arg_value(rows), ait_arg_list(shape, (uint32_t)k)));
  return AIT_EMIT(r, out, "permute", ait_arg_value(*out), ait_arg_list(order, (uint32_t)k));
}
