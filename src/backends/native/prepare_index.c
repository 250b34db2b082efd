/* Advanced indexing, gather and running sums, for any dtype: as cheap as masks and position ids need. */
#include "backends/native/prepare.h"
#include <math.h>

/* ---- out of range ----------------------------------------------------------------------------------------------------------------*/
typedef struct range_check {
  int32_t *flag;
  nat_run_state *state;
  const char *node;
  int64_t size;
} range_check;

static void check_range(const void *args, int64_t begin, int64_t end, void *scratch) {
  const range_check *c = args;
  AIT_UNUSED(scratch);
  if (begin == end || *c->flag == 0) return;
  *c->flag = 0;
  c->state->status = ait_error(AIT_CODE_INVALID_ARGUMENT, "node '%s': an index is out of range for size %lld", c->node, (long long)c->size);
}

ait_status nat_emit_range_check(nat_bind *b, const nat_step *s, int32_t *flag, int64_t size) {
  const ait_region_node *n = nat_node(b->program, s);
  range_check c = {flag, b->state, n->name ? n->name : "", size}, *args;
  nat_work work = {check_range, "range check", 1, 0, 0};
  b->plan->fallible = true;
  return nat_emit(b, &work, &c, sizeof c, &args);
}

static int64_t read_index(const void *data, int64_t at, bool wide) {
  return wide ? ((const int64_t *)data)[at] : ((const int32_t *)data)[at];
}

/* ---- index: x[i, j, :] ---------------------------------------------------------------------------------------------------------------*/
enum { INDEX_MAX = 8 };

typedef struct index_table {
  const void *data;
  bool wide;
  int64_t size, x_stride; /* of the dim that it indexes; bytes */
  int64_t strides[AIT_MAX_RANK];
} index_table;

typedef struct index_args {
  const char *x;
  char *y;
  int32_t *flag;
  int32_t rank, rest_rank, count; /* of the broadcast indices; of what lies beside them; index tensors */
  int64_t shape[AIT_MAX_RANK], y_stride[AIT_MAX_RANK];
  int64_t rest[AIT_MAX_RANK], rest_x[AIT_MAX_RANK], rest_y[AIT_MAX_RANK]; /* bytes */
  size_t piece;                                                           /* bytes that lie side by side in both */
  index_table tables[INDEX_MAX];
} index_args;

static void copy_rest(const index_args *a, const char *x, char *y) {
  int64_t at[AIT_MAX_RANK] = {0};
  for (;;) {
    memcpy(y, x, a->piece);
    int32_t d = a->rest_rank - 1;
    for (; d >= 0; --d) {
      x += a->rest_x[d];
      y += a->rest_y[d];
      if (++at[d] < a->rest[d]) break;
      x -= a->rest_x[d] * a->rest[d];
      y -= a->rest_y[d] * a->rest[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

static void index_kernel(const void *args, int64_t begin, int64_t end, void *scratch) {
  const index_args *a = args;
  AIT_UNUSED(scratch);
  for (int64_t p = begin; p < end; ++p) {
    int64_t at[INDEX_MAX] = {0}, rest = p, x = 0, y = 0;
    for (int32_t d = a->rank - 1; d >= 0; --d) {
      int64_t i = rest % a->shape[d];
      rest /= a->shape[d];
      y += i * a->y_stride[d];
      for (int32_t k = 0; k < a->count; ++k) at[k] += i * a->tables[k].strides[d];
    }
    bool good = true;
    for (int32_t k = 0; k < a->count; ++k) {
      const index_table *t = &a->tables[k];
      int64_t i = read_index(t->data, at[k], t->wide);
      if (i < 0) i += t->size;
      good = good && i >= 0 && i < t->size;
      if (good) x += i * t->x_stride; /* an index from data may be any number */
    }
    if (good) {
      copy_rest(a, a->x + x, a->y + y);
    } else {
      *a->flag = 1;
    }
  }
}

/* The index tensors, and the shape that they have together. */
static ait_status read_tables(nat_bind *b, const nat_step *s, const nat_view *x, index_args *a, nat_view *tables,
                              bool indexed[AIT_MAX_RANK], nat_view *together) {
  int64_t size = (int64_t)ait_dtype_size(x->dtype);
  *together = (nat_view){0};
  if (s->in_count < 2 || (int32_t)s->in_count - 1 > x->rank)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "%u indices for rank %d", s->in_count - 1, x->rank);
  for (uint32_t i = 1; i < s->in_count; ++i) {
    int32_t dim = (int32_t)i - 1;
    indexed[dim] = nat_has_in(b, s, i);
    if (!indexed[dim]) continue;
    nat_view *v = &tables[a->count];
    AIT_TRY(nat_in(b, s, i, v));
    if (a->count == INDEX_MAX || (v->dtype != AIT_I64 && v->dtype != AIT_I32))
      return nat_error(b, AIT_CODE_INVALID_MODEL, "index tensor %d", dim);
    a->tables[a->count++] = (index_table){.wide = v->dtype == AIT_I64, .size = x->shape[dim], .x_stride = x->strides[dim] * size};
    int32_t rank = v->rank > together->rank ? v->rank : together->rank;
    int64_t shape[AIT_MAX_RANK];
    for (int32_t d = 0; d < rank; ++d) {
      int64_t p = d < rank - v->rank ? 1 : v->shape[d - rank + v->rank],
              q = d < rank - together->rank ? 1 : together->shape[d - rank + together->rank];
      shape[d] = p == 1 ? q : p;
    }
    together->rank = rank;
    memcpy(together->shape, shape, (size_t)rank * sizeof *shape);
  }
  return a->count > 0 ? AIT_OK : nat_error(b, AIT_CODE_INVALID_MODEL, "no index tensors");
}

/* torch's rule: the indices' dims stand where the indexed dims stood when those are neighbours, else in front. */
static int32_t first_dim(const bool *indexed, int32_t rank) {
  int32_t first = 0, blocks = 0;
  for (int32_t d = 0; d < rank; ++d) {
    if (!indexed[d] || (d > 0 && indexed[d - 1])) continue;
    if (++blocks == 1) first = d;
  }
  return blocks == 1 ? first : 0;
}

/* Where dim by dim of the result comes from; what lies side by side at the end becomes one piece. */
static ait_status lay_rest(nat_bind *b, const nat_view *x, const nat_view *y, const bool *indexed, int32_t front, index_args *a) {
  int64_t size = (int64_t)ait_dtype_size(x->dtype);
  int32_t out = 0;
  for (int32_t d = 0; d < x->rank; ++d) {
    if (indexed[d]) continue;
    if (out == front) out += a->rank;
    if (out >= y->rank || y->shape[out] != x->shape[d]) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
    a->rest[a->rest_rank] = x->shape[d];
    a->rest_x[a->rest_rank] = x->strides[d] * size;
    a->rest_y[a->rest_rank++] = y->strides[out++] * size;
  }
  if (out == front) out += a->rank;
  if (out != y->rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another rank");
  for (int32_t d = 0; d < a->rank; ++d) {
    if (y->shape[front + d] != a->shape[d]) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
    a->y_stride[d] = y->strides[front + d] * size;
  }
  a->piece = (size_t)size;
  while (a->rest_rank > 0) {
    int32_t last = a->rest_rank - 1;
    bool joined = a->rest_x[last] == (int64_t)a->piece && a->rest_y[last] == (int64_t)a->piece;
    if (!joined && a->rest[last] != 1) break;
    if (joined) a->piece *= (size_t)a->rest[last];
    a->rest_rank--;
  }
  return AIT_OK;
}

ait_status nat_prepare_index(nat_bind *b, const nat_step *s) {
  nat_view x, y, tables[INDEX_MAX], together;
  bool indexed[AIT_MAX_RANK] = {false};
  index_args a = {0}, *args;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(read_tables(b, s, &x, &a, tables, indexed, &together));
  AIT_TRY(nat_out(b, s, 0, NULL, true, &y));
  if (y.dtype != x.dtype) return nat_error(b, AIT_CODE_INVALID_MODEL, "dtype of the result");
  a.rank = together.rank;
  memcpy(a.shape, together.shape, sizeof a.shape);
  AIT_TRY(lay_rest(b, &x, &y, indexed, first_dim(indexed, x.rank), &a));
  int64_t largest = 0;
  for (int32_t k = 0; k < a.count; ++k) {
    nat_view wide;
    if (!nat_broadcast(&tables[k], a.rank, a.shape, &wide))
      return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "index tensors do not fit each other");
    memcpy(a.tables[k].strides, wide.strides, sizeof wide.strides);
    if (a.tables[k].size > largest) largest = a.tables[k].size;
  }
  if (nat_count(&y) == 0) return AIT_OK;
  a.flag = nat_keep(b, sizeof *a.flag);
  if (a.flag == NULL) return AIT_OOM();
  int64_t positions = 1;
  for (int32_t d = 0; d < a.rank; ++d) positions *= a.shape[d];
  nat_work work = {index_kernel, "index", positions, (double)positions * 8 + (double)nat_size(&y) * 0.3, 0};
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  AIT_TRY(NAT_POINTER(b, args->y, &y));
  for (int32_t k = 0; k < a.count; ++k) AIT_TRY(NAT_POINTER(b, args->tables[k].data, &tables[k]));
  return nat_emit_range_check(b, s, a.flag, largest);
}

/* ---- gather --------------------------------------------------------------------------------------------------------------------------*/
typedef struct gather_args {
  const char *x;
  char *y;
  const void *index;
  int32_t *flag;
  bool wide;
  int32_t rank;
  size_t element;
  int64_t size, dim_stride; /* of the gathered dim; bytes */
  int64_t shape[AIT_MAX_RANK], index_stride[AIT_MAX_RANK], x_stride[AIT_MAX_RANK],
      y_stride[AIT_MAX_RANK]; /* index: elements; others: bytes, x 0 at dim */
} gather_args;

static void gather_kernel(const void *args, int64_t begin, int64_t end, void *scratch) {
  const gather_args *a = args;
  AIT_UNUSED(scratch);
  for (int64_t p = begin; p < end; ++p) {
    int64_t rest = p, index = 0, x = 0, y = 0;
    for (int32_t d = a->rank - 1; d >= 0; --d) {
      int64_t i = rest % a->shape[d];
      rest /= a->shape[d];
      index += i * a->index_stride[d];
      x += i * a->x_stride[d];
      y += i * a->y_stride[d];
    }
    int64_t i = read_index(a->index, index, a->wide);
    if (i < 0 || i >= a->size) {
      *a->flag = 1;
      continue;
    }
    memcpy(a->y + y, a->x + x + i * a->dim_stride, a->element);
  }
}

ait_status nat_prepare_gather(nat_bind *b, const nat_step *s) {
  nat_view x, y, index;
  int32_t dim;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_in(b, s, 1, &index));
  AIT_TRY(nat_arg_dim(b, s, 1, x.rank, &dim));
  AIT_TRY(nat_out(b, s, 0, NULL, true, &y));
  bool fits = x.rank > 0 && x.rank == index.rank && nat_same_shape(&index, &y) && x.dtype == y.dtype &&
              (index.dtype == AIT_I64 || index.dtype == AIT_I32);
  for (int32_t d = 0; fits && d < x.rank; ++d) fits = d == dim || index.shape[d] <= x.shape[d];
  if (!fits) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes do not fit");
  if (nat_count(&y) == 0) return AIT_OK;
  int64_t size = (int64_t)ait_dtype_size(x.dtype);
  gather_args a = {.flag = nat_keep(b, sizeof *a.flag),
                   .wide = index.dtype == AIT_I64,
                   .rank = x.rank,
                   .element = (size_t)size,
                   .size = x.shape[dim],
                   .dim_stride = x.strides[dim] * size},
              *args;
  if (a.flag == NULL) return AIT_OOM();
  for (int32_t d = 0; d < x.rank; ++d) {
    a.shape[d] = y.shape[d];
    a.index_stride[d] = index.strides[d];
    a.x_stride[d] = d == dim ? 0 : x.strides[d] * size;
    a.y_stride[d] = y.strides[d] * size;
  }
  nat_work work = {gather_kernel, "gather", nat_count(&y), (double)nat_count(&y) * 6, 0};
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  AIT_TRY(NAT_POINTER(b, args->index, &index));
  AIT_TRY(NAT_POINTER(b, args->y, &y));
  return nat_emit_range_check(b, s, a.flag, a.size);
}

/* ---- cumsum --------------------------------------------------------------------------------------------------------------------------*/
typedef struct cumsum_args {
  const char *x;
  char *y;
  ait_dtype from, to;
  int32_t rank;
  int64_t n, x_step, y_step;                                                   /* along the dim; bytes */
  int64_t shape[AIT_MAX_RANK], x_stride[AIT_MAX_RANK], y_stride[AIT_MAX_RANK]; /* of the other dims; bytes */
} cumsum_args;

static void cumsum_line(const cumsum_args *a, const char *x, char *y) {
  if (a->to == AIT_F32) { /* summed in double, as torch does */
    double sum = 0;
    for (int64_t i = 0; i < a->n; ++i, x += a->x_step, y += a->y_step) *(float *)(void *)y = (float)(sum += ait_element_f64(x, a->from));
    return;
  }
  uint64_t sum = 0;
  for (int64_t i = 0; i < a->n; ++i, x += a->x_step, y += a->y_step) {
    sum += (uint64_t)ait_element_i64(x, a->from);
    ait_element_set_i64(y, a->to, (int64_t)sum);
  }
}

static void cumsum_kernel(const void *args, int64_t begin, int64_t end, void *scratch) {
  const cumsum_args *a = args;
  AIT_UNUSED(scratch);
  for (int64_t p = begin; p < end; ++p) {
    int64_t rest = p, x = 0, y = 0;
    for (int32_t d = a->rank - 1; d >= 0; --d) {
      int64_t i = rest % a->shape[d];
      rest /= a->shape[d];
      x += i * a->x_stride[d];
      y += i * a->y_stride[d];
    }
    cumsum_line(a, a->x + x, a->y + y);
  }
}

ait_status nat_prepare_cumsum(nat_bind *b, const nat_step *s) {
  nat_view x, y;
  int32_t dim;
  AIT_TRY(nat_in(b, s, 0, &x));
  AIT_TRY(nat_arg_dim(b, s, 1, x.rank, &dim));
  AIT_TRY(nat_out(b, s, 0, NULL, true, &y));
  if (!nat_same_shape(&x, &y) || (ait_dtype_is_float(x.dtype) && y.dtype != AIT_F32))
    return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape or dtype");
  if (nat_count(&y) == 0) return AIT_OK;
  int64_t from = (int64_t)ait_dtype_size(x.dtype), to = (int64_t)ait_dtype_size(y.dtype), lines = 1;
  cumsum_args a = {.from = x.dtype, .to = y.dtype, .n = 1}, *args;
  for (int32_t d = 0; d < x.rank; ++d) {
    if (d == dim) {
      a.n = x.shape[d];
      a.x_step = x.strides[d] * from;
      a.y_step = y.strides[d] * to;
      continue;
    }
    lines *= x.shape[d];
    a.shape[a.rank] = x.shape[d];
    a.x_stride[a.rank] = x.strides[d] * from;
    a.y_stride[a.rank++] = y.strides[d] * to;
  }
  nat_work work = {cumsum_kernel, "cumsum", lines, (double)nat_count(&y) * 5, 0};
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  return NAT_POINTER(b, args->y, &y);
}

/* ---- topk ----------------------------------------------------------------------------------------------------------------------------*/
typedef struct topk_args {
  const float *x;
  float *values;
  int64_t *indices;
  bool descending;
  int32_t rank, k;
  int64_t n, x_step, values_step, indices_step; /* along the dim; elements */
  int64_t shape[AIT_MAX_RANK], x_stride[AIT_MAX_RANK], values_stride[AIT_MAX_RANK], indices_stride[AIT_MAX_RANK]; /* of the others */
} topk_args;

/* NaN is the largest of all, as in torch. */
static bool comes_before(float a, float b, bool descending) {
  if (descending) return a > b || (isnan(a) && !isnan(b));
  return a < b || (isnan(b) && !isnan(a));
}

/* Among equals the first in the line comes first, as in the reference. */
static void topk_line(const topk_args *a, const float *x, float *values, int64_t *indices) {
  float best[NAT_TOPK_MOST];
  int64_t where[NAT_TOPK_MOST];
  int32_t count = 0;
  for (int64_t i = 0; i < a->n; ++i, x += a->x_step) {
    if (count == a->k && !comes_before(*x, best[count - 1], a->descending)) continue;
    int32_t at = count < a->k ? count++ : count - 1;
    for (; at > 0 && comes_before(*x, best[at - 1], a->descending); --at) {
      best[at] = best[at - 1];
      where[at] = where[at - 1];
    }
    best[at] = *x;
    where[at] = i;
  }
  for (int32_t i = 0; i < count; ++i) {
    values[i * a->values_step] = best[i];
    indices[i * a->indices_step] = where[i];
  }
}

static void topk_kernel(const void *args, int64_t begin, int64_t end, void *scratch) {
  const topk_args *a = args;
  AIT_UNUSED(scratch);
  for (int64_t p = begin; p < end; ++p) {
    int64_t rest = p, x = 0, values = 0, indices = 0;
    for (int32_t d = a->rank - 1; d >= 0; --d) {
      int64_t i = rest % a->shape[d];
      rest /= a->shape[d];
      x += i * a->x_stride[d];
      values += i * a->values_stride[d];
      indices += i * a->indices_stride[d];
    }
    topk_line(a, a->x + x, a->values + values, a->indices + indices);
  }
}

static bool topk_fits(const nat_view *x, const nat_view *y, int32_t dim, int64_t k) {
  for (int32_t d = 0; d < x->rank; ++d)
    if (y->rank != x->rank || y->shape[d] != (d == dim ? k : x->shape[d])) return false;
  return true;
}

ait_status nat_prepare_topk(nat_bind *b, const nat_step *s) {
  nat_view x, values, indices;
  int32_t dim;
  int64_t k, lines = 1;
  topk_args a = {.n = 1}, *args;
  AIT_TRY(nat_in_f32(b, s, 0, &x));
  AIT_TRY(nat_arg_int(b, s, 1, 1, &k));
  AIT_TRY(nat_arg_dim(b, s, 2, x.rank, &dim));
  AIT_TRY(nat_arg_bool(b, s, 3, true, &a.descending));
  AIT_TRY(nat_out(b, s, 0, NULL, true, &values));
  AIT_TRY(nat_out(b, s, 1, NULL, true, &indices));
  if (x.rank < 1 || k < 1 || k > NAT_TOPK_MOST || values.dtype != AIT_F32 || indices.dtype != AIT_I64)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "operands or results");
  if (k > x.shape[dim])
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "k = %lld is out of range for size %lld", (long long)k, (long long)x.shape[dim]);
  if (!topk_fits(&x, &values, dim, k) || !topk_fits(&x, &indices, dim, k))
    return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
  if (nat_count(&values) == 0) return AIT_OK;
  a.k = (int32_t)k;
  for (int32_t d = 0; d < x.rank; ++d) {
    if (d == dim) {
      a.n = x.shape[d];
      a.x_step = x.strides[d];
      a.values_step = values.strides[d];
      a.indices_step = indices.strides[d];
      continue;
    }
    lines *= x.shape[d];
    a.shape[a.rank] = x.shape[d];
    a.x_stride[a.rank] = x.strides[d];
    a.values_stride[a.rank] = values.strides[d];
    a.indices_stride[a.rank++] = indices.strides[d];
  }
  nat_work work = {topk_kernel, "topk", lines, (double)nat_count(&x) * 2, 0};
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  AIT_TRY(NAT_POINTER(b, args->values, &values));
  return NAT_POINTER(b, args->indices, &indices);
}
