/* Norms, softmax, reductions and lookups: work row by row. */
#include "backends/native/prepare.h"

/* ---- norms -----------------------------------------------------------------------------------------------------------------------*/
ait_status nat_prepare_row_norm(nat_bind *b, const nat_step *s) {
  bool rms = strcmp(nat_node(b->program, s)->op, "rms_norm") == 0, has_weight, has_bias = false;
  nat_view x, y, weight, bias;
  nat_matrix from, to;
  int64_t inner;
  double eps;
  AIT_TRY(nat_in_f32(b, s, 0, &x));
  AIT_TRY(nat_arg_int(b, s, 1, 1, &inner));
  AIT_TRY(nat_arg_float(b, s, rms ? 3 : 4, 1e-5, &eps));
  if (inner < 1 || inner > x.rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "norm over %lld of %d dims", (long long)inner, x.rank);
  AIT_TRY(nat_matrix_in(b, &x, (int32_t)inner, &from));
  if (from.view.root == x.root && nat_wish(b, s, 0) == NULL && nat_dies_here(b, s, 0, &x)) {
    AIT_TRY(nat_out_view(b, s, 0, &x));
    to = from;
  } else {
    AIT_TRY(nat_matrix_out(b, s, 0, (int32_t)inner, &y, &to));
  }
  if (from.n != to.n || from.rows != to.rows) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
  AIT_TRY(nat_vector(b, s, 1, from.n, &has_weight, &weight));
  if (!rms) AIT_TRY(nat_vector(b, s, 2, from.n, &has_bias, &bias));
  ait_norm_f32 k = {.rows = from.rows, .n = from.n, .x_stride = from.stride, .y_stride = to.stride, .eps = (float)eps, .rms = rms}, *args;
  nat_work work = {b->kernels->layer_norm_f32, rms ? "rms norm" : "layer norm", k.rows, (double)(k.rows * k.n) * 0.25, 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &from.view));
  AIT_TRY(NAT_POINTER(b, args->y, &to.view));
  if (has_weight) AIT_TRY(NAT_POINTER(b, args->weight, &weight));
  return has_bias ? NAT_POINTER(b, args->bias, &bias) : AIT_OK;
}

/* ---- rotary embedding --------------------------------------------------------------------------------------------------------------*/
/* v as [outer 0][outer 1][outer 2][d] in the order of memory of x; false: more dims than that. */
static bool rotary_strides(const nat_view *v, const int32_t *order, int64_t strides[3]) {
  int32_t at = 3;
  for (int32_t k = v->rank - 2; k >= 0; --k) {
    if (v->shape[order[k]] == 1) continue;
    if (at == 0) return false;
    strides[--at] = v->strides[order[k]];
  }
  while (at > 0) strides[--at] = 0;
  return true;
}

static ait_status rotary_operand(nat_bind *b, const nat_step *s, uint32_t i, const nat_view *shape, nat_view *out) {
  nat_view v, wide;
  AIT_TRY(nat_in_f32(b, s, i, &v));
  if (!nat_broadcast(&v, shape->rank, shape->shape, &wide)) return nat_error(b, AIT_CODE_INVALID_MODEL, "operand %u has another shape", i);
  return nat_rows(b, &wide, out);
}

ait_status nat_prepare_rotary(nat_bind *b, const nat_step *s) {
  nat_view shape, in[3], y;
  int32_t order[AIT_MAX_RANK], last, at = 3;
  AIT_TRY(nat_out_shape(b, s, 0, &shape));
  last = shape.rank - 1;
  if (last < 0 || shape.shape[last] % 2) return nat_error(b, AIT_CODE_INVALID_MODEL, "no halves to turn");
  for (uint32_t i = 0; i < 3; ++i) AIT_TRY(rotary_operand(b, s, i, &shape, &in[i]));
  nat_order_of(&in[0], order);
  if (order[last] != last) nat_order_row_major(shape.rank, order); /* a last dim of 1 element, or none */
  AIT_TRY(nat_out(b, s, 0, order, false, &y));
  if (nat_count(&y) == 0) return AIT_OK;
  ait_rotary_f32 k = {.outer = {1, 1, 1}, .d = shape.shape[last]}, *args;
  bool fits = rotary_strides(&in[0], order, k.x_stride);
  if (!fits) return nat_error(b, AIT_CODE_UNSUPPORTED, "rank %d is too high", shape.rank);
  for (int32_t d = last - 1; d >= 0; --d)
    if (shape.shape[order[d]] != 1) k.outer[--at] = shape.shape[order[d]];
  (void)rotary_strides(&in[1], order, k.cos_stride), (void)rotary_strides(&in[2], order, k.sin_stride);
  (void)rotary_strides(&y, order, k.y_stride);
  nat_work work = {b->kernels->rotary_f32, "rotary embedding", ait_rotary_f32_units(&k), (double)nat_count(&y) * 0.4, 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &in[0]));
  AIT_TRY(NAT_POINTER(b, args->cos, &in[1]));
  AIT_TRY(NAT_POINTER(b, args->sin, &in[2]));
  return NAT_POINTER(b, args->y, &y);
}

static bool dense_in(const nat_view *v, void (*make)(int32_t, int32_t *), int32_t order[AIT_MAX_RANK]) {
  make(v->rank, order);
  return nat_has_order(v, order);
}

ait_status nat_prepare_group_norm(nat_bind *b, const nat_step *s) {
  nat_view x, y, weight, bias;
  int32_t order[AIT_MAX_RANK];
  int64_t groups;
  double eps;
  bool has_weight, has_bias;
  AIT_TRY(nat_in_f32(b, s, 0, &x));
  AIT_TRY(nat_arg_int(b, s, 1, 1, &groups));
  AIT_TRY(nat_arg_float(b, s, 4, 1e-5, &eps));
  if (x.rank < 2 || groups < 1 || x.shape[1] % groups != 0) return nat_error(b, AIT_CODE_INVALID_MODEL, "%lld groups", (long long)groups);
  bool last = !dense_in(&x, nat_order_row_major, order) && dense_in(&x, nat_order_channels_last, order) && !(b->program->flags & NAT_NCHW);
  if (!last) {
    nat_view dense;
    AIT_TRY(nat_dense(b, &x, NULL, &dense));
    x = dense;
    nat_order_row_major(x.rank, order);
  }
  if (nat_wish(b, s, 0) == NULL && nat_dies_here(b, s, 0, &x)) {
    y = x;
    AIT_TRY(nat_out_view(b, s, 0, &x));
  } else {
    AIT_TRY(nat_out(b, s, 0, order, false, &y));
  }
  if (!nat_same_shape(&x, &y)) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
  AIT_TRY(nat_vector(b, s, 1, x.shape[1], &has_weight, &weight));
  AIT_TRY(nat_vector(b, s, 2, x.shape[1], &has_bias, &bias));
  if (nat_count(&x) == 0) return AIT_OK;
  ait_group_norm_f32 k = {.batch = x.shape[0],
                          .groups = groups,
                          .channels = x.shape[1],
                          .pixels = nat_count(&x) / (x.shape[0] * x.shape[1]),
                          .eps = (float)eps},
                     *args;
  k.image_stride = k.channels * k.pixels;
  k.pixel_stride = last ? k.channels : 1;
  k.channel_stride = last ? 1 : k.pixels;
  nat_work work = {b->kernels->group_norm_f32, "group norm", ait_group_norm_f32_units(&k), (double)nat_count(&x) * 0.4, 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  AIT_TRY(NAT_POINTER(b, args->y, &y));
  if (has_weight) AIT_TRY(NAT_POINTER(b, args->weight, &weight));
  return has_bias ? NAT_POINTER(b, args->bias, &bias) : AIT_OK;
}

/* ---- dims in memory order ----------------------------------------------------------------------------------------------------------*/
/* v dense in some order: the order in which it lies, or a row-major copy. */
static ait_status dense_anyhow(nat_bind *b, const nat_view *v, nat_view *out, int32_t order[AIT_MAX_RANK]) {
  nat_order_of(v, order);
  if (nat_has_order(v, order)) {
    *out = *v;
    return AIT_OK;
  }
  nat_order_row_major(v->rank, order);
  return nat_dense(b, v, order, out);
}

ait_status nat_prepare_softmax(nat_bind *b, const nat_step *s) {
  nat_view in, x, y;
  int32_t dim, order[AIT_MAX_RANK];
  AIT_TRY(nat_in_f32(b, s, 0, &in));
  AIT_TRY(nat_arg_dim(b, s, 1, in.rank, &dim));
  AIT_TRY(dense_anyhow(b, &in, &x, order));
  ait_softmax_f32 k = {.outer = 1, .n = 1, .inner = 1, .scale = 1, .log = strcmp(nat_node(b->program, s)->op, "log_softmax") == 0}, *args;
  bool before = true;
  for (int32_t i = 0; i < x.rank; ++i) {
    int64_t size = x.shape[order[i]];
    if (order[i] == dim) {
      k.n = size;
      before = false;
    } else if (before) {
      k.outer *= size;
    } else {
      k.inner *= size;
    }
  }
  if (x.root == in.root && nat_wish(b, s, 0) == NULL && nat_dies_here(b, s, 0, &x)) {
    y = x;
    AIT_TRY(nat_out_view(b, s, 0, &x));
  } else {
    AIT_TRY(nat_out(b, s, 0, order, false, &y));
  }
  if (!nat_same_shape(&x, &y)) return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
  if (nat_count(&x) == 0) return AIT_OK;
  nat_work work = {b->kernels->softmax_f32, "softmax", ait_softmax_f32_units(&k), (double)nat_count(&x) * 0.7, 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  return NAT_POINTER(b, args->y, &y);
}

/* ---- reductions ------------------------------------------------------------------------------------------------------------------*/
typedef struct reduction {
  const char *name;
  ait_reduce_op op;
  int8_t keepdim; /* position of the argument */
  bool one_dim;   /* dim instead of dims */
} reduction;

static const reduction reductions[] = {
    {"sum", AIT_REDUCE_SUM, 2, false},       {"mean", AIT_REDUCE_MEAN, 2, false},     {"amax", AIT_REDUCE_MAX, 2, false},
    {"amin", AIT_REDUCE_MIN, 2, false},      {"prod", AIT_REDUCE_PROD, 2, false},     {"var", AIT_REDUCE_VAR, 3, false},
    {"argmax", AIT_REDUCE_ARG_MAX, 2, true}, {"argmin", AIT_REDUCE_ARG_MIN, 2, true}, {"max_dim", AIT_REDUCE_MAX, 2, true},
    {"min_dim", AIT_REDUCE_MIN, 2, true},
};

static ait_status reduced_dims(nat_bind *b, const nat_step *s, const reduction *r, const nat_view *x, bool reduced[AIT_MAX_RANK]) {
  const ait_region_node *n = nat_node(b->program, s);
  int64_t dims[AIT_MAX_RANK];
  int32_t count = 0;
  memset(reduced, 0, AIT_MAX_RANK * sizeof *reduced);
  if (n->arg_count > 1 && n->args[1].kind != AIT_ARG_NONE) AIT_TRY(nat_arg_ints(b, s, 1, dims, &count));
  if (count == 0) { /* no dims given: all */
    for (int32_t d = 0; d < x->rank; ++d) reduced[d] = true;
    return AIT_OK;
  }
  if (r->one_dim && count != 1) return nat_error(b, AIT_CODE_INVALID_MODEL, "%d dims", count);
  for (int32_t i = 0; i < count; ++i) {
    int64_t d = dims[i] < 0 ? dims[i] + x->rank : dims[i];
    if (x->rank == 0 && (dims[i] == 0 || dims[i] == -1)) continue;
    if (d < 0 || d >= x->rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "dimension out of range");
    reduced[d] = true;
  }
  return AIT_OK;
}

/* Are the reduced dims neighbours in memory? Several of them in argmax are so only in row-major order. */
static bool adjacent(const nat_view *x, const int32_t *order, const bool *reduced) {
  int blocks = 0;
  bool inside = false;
  for (int32_t i = 0; i < x->rank; ++i) {
    if (x->shape[order[i]] == 1) continue;
    if (reduced[order[i]] && !inside) blocks++;
    inside = reduced[order[i]];
  }
  return blocks <= 1;
}

/* x dense with its reduced dims side by side; order: its dims in memory. */
static ait_status arrange(nat_bind *b, nat_view *x, const bool *reduced, bool in_sequence, int32_t order[AIT_MAX_RANK]) {
  nat_view dense;
  nat_order_of(x, order);
  bool good = nat_has_order(x, order) && adjacent(x, order, reduced);
  for (int32_t i = 1; good && in_sequence && i < x->rank; ++i)
    good = order[i] > order[i - 1] || x->shape[order[i]] == 1 || x->shape[order[i - 1]] == 1;
  if (good) return AIT_OK;
  int32_t at = 0;
  for (int pass = 0; pass < 2; ++pass) {
    for (int32_t d = 0; d < x->rank; ++d) {
      if (reduced[d] == (pass == 1)) order[at++] = d;
    }
  }
  AIT_TRY(nat_dense(b, x, order, &dense));
  *x = dense;
  return AIT_OK;
}

static ait_status result_of(nat_bind *b, const nat_step *s, uint32_t i, const nat_view *x, const bool *reduced, const int32_t *order,
                            bool keepdim, nat_view *y) {
  int32_t out_order[AIT_MAX_RANK], at = 0, name[AIT_MAX_RANK], next = 0;
  nat_view shape;
  AIT_TRY(nat_out_shape(b, s, i, &shape));
  for (int32_t d = 0; d < x->rank; ++d) name[d] = keepdim || !reduced[d] ? next++ : -1;
  if (next != shape.rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "result of rank %d", shape.rank);
  for (int32_t d = 0; d < x->rank; ++d) {
    if (name[d] >= 0 && shape.shape[name[d]] != (reduced[d] ? 1 : x->shape[d]))
      return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
  }
  for (int32_t k = 0; k < x->rank; ++k) {
    if (name[order[k]] >= 0) out_order[at++] = name[order[k]];
  }
  return nat_out(b, s, i, out_order, false, y);
}

ait_status nat_prepare_reduce(nat_bind *b, const nat_step *s) {
  const ait_region_node *n = nat_node(b->program, s);
  const reduction *r = NULL;
  for (size_t i = 0; i < AIT_COUNT(reductions); ++i) {
    if (strcmp(reductions[i].name, n->op) == 0) r = &reductions[i];
  }
  if (r == NULL) return nat_error(b, AIT_CODE_INVALID_MODEL, "not a reduction");
  nat_view x, y, where;
  bool reduced[AIT_MAX_RANK], keepdim, before = true, arg = r->op == AIT_REDUCE_ARG_MAX || r->op == AIT_REDUCE_ARG_MIN;
  int32_t order[AIT_MAX_RANK];
  ait_reduce_f32 k = {.outer = 1, .n = 1, .inner = 1, .op = r->op, .correction = 1}, *args;
  AIT_TRY(nat_in_f32(b, s, 0, &x));
  AIT_TRY(nat_arg_bool(b, s, (uint32_t)r->keepdim, false, &keepdim));
  if (r->op == AIT_REDUCE_VAR) AIT_TRY(nat_arg_float(b, s, 2, 1, &k.correction));
  AIT_TRY(reduced_dims(b, s, r, &x, reduced));
  AIT_TRY(arrange(b, &x, reduced, arg, order));
  for (int32_t i = 0; i < x.rank; ++i) {
    int64_t size = x.shape[order[i]];
    if (reduced[order[i]]) {
      k.n *= size;
      before = before && size == 1;
    } else if (before) {
      k.outer *= size;
    } else {
      k.inner *= size;
    }
  }
  AIT_TRY(result_of(b, s, 0, &x, reduced, order, keepdim, &y));
  bool has_where = s->out_count > 1;
  if (has_where) AIT_TRY(result_of(b, s, 1, &x, reduced, order, keepdim, &where));
  if (y.dtype != (arg ? AIT_I64 : AIT_F32) || (has_where && where.dtype != AIT_I64))
    return nat_error(b, AIT_CODE_INVALID_MODEL, "dtype of the result");
  if (nat_count(&y) == 0) return AIT_OK;
  if (k.n == 0 && (arg || r->op == AIT_REDUCE_MAX || r->op == AIT_REDUCE_MIN))
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "nothing has no extreme");
  nat_work work = {b->kernels->reduce_f32, "reduce", ait_reduce_f32_units(&k), (double)nat_count(&x) * 0.15, 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->x, &x));
  AIT_TRY(NAT_POINTER(b, args->y, &y));
  return has_where ? NAT_POINTER(b, args->index, &where) : AIT_OK;
}

/* ---- lookups ---------------------------------------------------------------------------------------------------------------------*/
ait_status nat_prepare_gather_rows(nat_bind *b, const nat_step *s) {
  bool embedding = strcmp(nat_node(b->program, s)->op, "embedding") == 0;
  nat_view table, index, i, y;
  int32_t dim = 0, order[AIT_MAX_RANK];
  nat_order_row_major(AIT_MAX_RANK, order);
  AIT_TRY(nat_in(b, s, 0, &table));
  AIT_TRY(nat_in(b, s, 1, &index));
  if (!embedding) AIT_TRY(nat_arg_dim(b, s, 1, table.rank, &dim));
  if (table.rank < 1 || (index.dtype != AIT_I64 && index.dtype != AIT_I32)) return nat_error(b, AIT_CODE_INVALID_MODEL, "operands");
  if (embedding && table.rank != 2) return nat_error(b, AIT_CODE_INVALID_MODEL, "a table of rank %d", table.rank);
  /* Rows are what lies side by side once dim is outermost. */
  order[0] = dim;
  for (int32_t d = 0, at = 1; d < table.rank; ++d) {
    if (d != dim) order[at++] = d;
  }
  nat_view rows = table;
  int64_t row = 1;
  bool dense = true;
  for (int32_t k = table.rank - 1; k >= 1; --k) {
    dense = dense && (table.shape[order[k]] == 1 || table.strides[order[k]] == row);
    row *= table.shape[order[k]];
  }
  dense = dense && (table.shape[dim] <= 1 || table.strides[dim] >= row);
  if (!dense) AIT_TRY(nat_dense(b, &table, order, &rows));
  AIT_TRY(nat_dense(b, &index, NULL, &i));
  AIT_TRY(nat_out(b, s, 0, embedding ? NULL : order, false, &y));
  if (y.dtype != table.dtype || nat_count(&y) != nat_count(&i) * row)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "result has another shape");
  if (nat_count(&y) == 0) return AIT_OK;
  int64_t size = (int64_t)ait_dtype_size(table.dtype);
  int32_t *flag = nat_keep(b, sizeof *flag);
  if (flag == NULL) return AIT_OOM();
  ait_gather_rows k = {.count = nat_count(&i),
                       .table_rows = table.shape[dim],
                       .index_size = (int32_t)ait_dtype_size(i.dtype),
                       .row_bytes = row * size,
                       .src_stride = (table.shape[dim] > 1 ? rows.strides[dim] : row) * size,
                       .dst_stride = row * size,
                       .out_of_range = flag},
                  *args;
  nat_work work = {b->kernels->gather_rows, "gather rows", k.count, (double)nat_size(&y) * 0.1, 0};
  AIT_TRY(nat_emit(b, &work, &k, sizeof k, &args));
  AIT_TRY(NAT_POINTER(b, args->index, &i));
  AIT_TRY(NAT_POINTER(b, args->src, &rows));
  AIT_TRY(NAT_POINTER(b, args->dst, &y));
  return nat_emit_range_check(b, s, flag, k.table_rows);
}
