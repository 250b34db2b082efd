/* Matrix products and what is made of them: linear, matmul, attention, recurrent layers. */
#include "backends/native/prepare.h"

#include <math.h>

/* ---- matrices --------------------------------------------------------------------------------------------------------------------*/
bool nat_matrix_of(const nat_view *v, int32_t inner, nat_matrix *out) {
  int64_t shape[2] = {1, 1}, strides[2];
  for (int32_t d = 0; d < v->rank; ++d) shape[d >= v->rank - inner] *= v->shape[d];
  *out = (nat_matrix){.view = *v, .rows = shape[0], .n = shape[1], .stride = shape[1]};
  if (nat_count(v) == 0) return true;
  if (!nat_reshape_strides(v, 2, shape, strides)) return false;
  if (shape[1] > 1 && strides[1] != 1) return false;
  if (shape[0] > 1 && strides[0] < shape[1]) return false; /* rows that overlap, or run backwards */
  if (shape[0] > 1) out->stride = strides[0];
  return true;
}

ait_status nat_matrix_in(nat_bind *b, const nat_view *v, int32_t inner, nat_matrix *out) {
  if (nat_matrix_of(v, inner, out)) return AIT_OK;
  nat_view copy;
  AIT_TRY(nat_temp(b, v->dtype, v->rank, v->shape, NULL, &copy));
  AIT_TRY(nat_copy(b, &copy, v));
  return nat_matrix_of(&copy, inner, out) ? AIT_OK : nat_error(b, AIT_CODE_INTERNAL, "a copy is no matrix");
}

ait_status nat_matrix_out(nat_bind *b, const nat_step *s, uint32_t i, int32_t inner, nat_view *out, nat_matrix *out_matrix) {
  const nat_view *wish = nat_wish(b, s, i);
  nat_matrix m;
  bool takes_wish = wish != NULL && nat_matrix_of(wish, inner, &m);
  AIT_TRY(nat_out(b, s, i, NULL, takes_wish, out));
  return nat_matrix_of(out, inner, out_matrix) ? AIT_OK : nat_error(b, AIT_CODE_INTERNAL, "the result is no matrix");
}

ait_status nat_vector(nat_bind *b, const nat_step *s, uint32_t i, int64_t n, bool *has, nat_view *out) {
  *has = nat_has_in(b, s, i);
  if (!*has) return AIT_OK;
  nat_view v;
  AIT_TRY(nat_in_f32(b, s, i, &v));
  if (nat_count(&v) != n)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "operand %u has %lld elements, not %lld", i, (long long)nat_count(&v), (long long)n);
  return nat_dense(b, &v, NULL, out);
}

bool nat_packed(nat_bind *b, const nat_step *s, uint32_t i, uint32_t kind, const int64_t dims[6], nat_view *out, ait_status *status) {
  *status = AIT_OK;
  if (i >= s->pack_count) return false;
  const nat_pack *p = &b->program->packs[s->pack_begin + i];
  if (p->kind != kind || memcmp(p->dims, dims, sizeof p->dims) != 0 || p->size != nat_pack_bytes((nat_pack_kind)kind, dims)) {
    *status = nat_error(b, AIT_CODE_INVALID_MODEL, "packed weight does not fit");
    return false;
  }
  *out = (nat_view){.bound = true, .dtype = AIT_F32, .rank = 0};
  *status = nat_const(b, b->program->data + p->offset, p->size, &out->root);
  return *status == AIT_OK;
}

static bool never_changes(const nat_bind *b, const nat_view *v) {
  nat_root_kind kind = b->roots[v->root].kind;
  return kind == NAT_ROOT_CONST || kind == NAT_ROOT_STATIC;
}

ait_status nat_pack_now(nat_bind *b, const nat_view *w, nat_view *out) {
  ait_pack_b_f32 p = {.k = w->shape[0], .n = w->shape[1], .k_stride = w->strides[0], .n_stride = w->strides[1], .batch = {1, 1}}, *args;
  bool was_static = b->is_static;
  b->is_static = was_static || ((b->program->flags & NAT_EAGER) == 0 && never_changes(b, w));
  ait_status status = nat_scratch(b, ait_packed_b_bytes(p.k, p.n), out);
  nat_work work = {b->kernels->pack_b_f32, "pack weight", ait_pack_b_f32_units(&p), (double)p.k * (double)p.n * 0.4, 0};
  if (status == AIT_OK) status = nat_emit(b, &work, &p, sizeof p, &args);
  if (status == AIT_OK) status = NAT_POINTER(b, args->src, w);
  if (status == AIT_OK) status = NAT_POINTER(b, args->dst, out);
  b->is_static = was_static;
  return status;
}

ait_status nat_emit_product(nat_bind *b, const nat_product *p) {
  ait_gemm_f32 g = p->g, *args;
  if (g.batch[0] == 0) g.batch[0] = 1;
  if (g.batch[1] == 0) g.batch[1] = 1;
  g.row_parts = g.column_parts = 1;
  ait_gemm_f32_plan(b->kernels, &g, b->threads);
  double macs = (double)g.m * (double)g.n * (double)g.k * (double)g.batch[0] * (double)g.batch[1];
  nat_work work = {b->kernels->gemm_f32, "gemm", ait_gemm_f32_units(&g), macs * 0.02 + (double)g.n * (double)g.k * 0.02,
                   ait_gemm_f32_scratch(b->kernels, &g)};
  AIT_TRY(nat_emit(b, &work, &g, sizeof g, &args));
  AIT_TRY(NAT_POINTER(b, args->a, p->a));
  AIT_TRY(NAT_POINTER(b, args->b, p->packed));
  AIT_TRY(NAT_POINTER(b, args->c, p->c));
  if (p->bias != NULL) AIT_TRY(NAT_POINTER(b, args->ep.bias, p->bias));
  if (p->residual != NULL) AIT_TRY(NAT_POINTER(b, args->ep.residual, p->residual));
  return AIT_OK;
}

static void set_epilogue(const nat_step *s, ait_epilogue *ep) {
  ep->act = (ait_act)s->act;
  ep->p = s->p;
  ep->q = s->q;
  ep->residual_after = s->residual_after != NAT_RESIDUAL_BEFORE;
  ep->residual_times = s->residual_after == NAT_RESIDUAL_TIMES;
}

/* ---- linear ----------------------------------------------------------------------------------------------------------------------*/
/* y[rows][n] = x[rows][k] w, w seen as [k][n] through `w`; operands 2 and 3 of the step are bias and residual. */
static ait_status product_2d(nat_bind *b, const nat_step *s, const nat_view *x, const nat_view *w, nat_view *y, const nat_matrix *to) {
  nat_matrix from, residual;
  nat_view packed, bias, r;
  bool has_bias, has_residual = nat_has_in(b, s, 3);
  AIT_TRY(nat_matrix_in(b, x, 1, &from));
  int64_t k = w->shape[0], n = w->shape[1], dims[6] = {k, n, 1, 1, 1, 1};
  if (from.n != k || to->n != n || from.rows != to->rows) return nat_error(b, AIT_CODE_INVALID_MODEL, "shapes of the product do not fit");
  ait_status status;
  if (!nat_packed(b, s, 0, NAT_PACK_MATRIX, dims, &packed, &status)) {
    AIT_TRY(status);
    AIT_TRY(nat_pack_now(b, w, &packed));
  }
  AIT_TRY(nat_vector(b, s, 2, n, &has_bias, &bias));
  nat_product p = {.g = {.m = to->rows, .n = n, .k = k, .a_stride = from.stride, .c_stride = to->stride},
                   .a = &from.view,
                   .packed = &packed,
                   .c = &to->view,
                   .bias = has_bias ? &bias : NULL};
  set_epilogue(s, &p.g.ep);
  if (has_residual) {
    AIT_TRY(nat_in_f32(b, s, 3, &r));
    if (!nat_same_shape(&r, y)) return nat_error(b, AIT_CODE_INVALID_MODEL, "the addend has another shape");
    AIT_TRY(nat_matrix_in(b, &r, 1, &residual));
    p.g.ep.residual_stride = residual.stride;
    p.residual = &residual.view;
  }
  return to->rows == 0 || n == 0 ? AIT_OK : nat_emit_product(b, &p);
}

static nat_view transposed(const nat_view *v) {
  nat_view t = *v;
  t.shape[0] = v->shape[1];
  t.shape[1] = v->shape[0];
  t.strides[0] = v->strides[1];
  t.strides[1] = v->strides[0];
  return t;
}

ait_status nat_prepare_linear(nat_bind *b, const nat_step *s) {
  nat_view x, w, y;
  nat_matrix to;
  AIT_TRY(nat_in_f32(b, s, 0, &x));
  AIT_TRY(nat_in_f32(b, s, 1, &w));
  if (w.rank == 1) { /* torch takes a vector, too: one output, no dim for it */
    w.rank = 2;
    w.shape[1] = w.shape[0];
    w.strides[1] = w.strides[0];
    w.shape[0] = 1;
    AIT_TRY(nat_matrix_out(b, s, 0, 0, &y, &to));
  } else {
    AIT_TRY(nat_matrix_out(b, s, 0, 1, &y, &to));
  }
  if (w.rank != 2 || x.rank < 1) return nat_error(b, AIT_CODE_INVALID_MODEL, "weight of rank %d", w.rank);
  w = transposed(&w);
  return product_2d(b, s, &x, &w, &y, &to);
}

/* ---- weights of few bits -----------------------------------------------------------------------------------------------------------*/
static ait_status emit_weight_product(nat_bind *b, const nat_step *s, ait_gemm_weight_f32 *g, const nat_matrix *from, const nat_matrix *to,
                                      const nat_view *y) {
  nat_view packed, scales, bias, r;
  nat_matrix residual;
  ait_status status;
  bool has_bias, has_residual = nat_has_in(b, s, 3);
  int64_t groups = g->group ? g->k / g->group + (g->k % g->group != 0) : 0;
  if (!nat_packed(b, s, 0, NAT_PACK_WEIGHT, (const int64_t[6]){g->k, g->n, g->form, 1, 1, 1}, &packed, &status) ||
      (groups && !nat_packed(b, s, 1, NAT_PACK_SCALES, (const int64_t[6]){groups, g->n, 1, 1, 1, 1}, &scales, &status)))
    return status != AIT_OK ? status : nat_error(b, AIT_CODE_INVALID_MODEL, "the packed weight is missing");
  AIT_TRY(nat_vector(b, s, 2, g->n, &has_bias, &bias));
  if (has_residual) {
    AIT_TRY(nat_in_f32(b, s, 3, &r));
    if (!nat_same_shape(&r, y)) return nat_error(b, AIT_CODE_INVALID_MODEL, "the addend has another shape");
    AIT_TRY(nat_matrix_in(b, &r, 1, &residual));
    g->ep.residual_stride = residual.stride;
  }
  set_epilogue(s, &g->ep);
  if (g->m == 0 || g->n == 0) return AIT_OK;
  g->row_parts = g->column_parts = 1;
  ait_gemm_weight_f32_plan(b->kernels, g, b->threads);
  /* 12 GB/s, and 50 billion multiply-adds */
  double fetch = (double)ait_packed_weight_bytes(g->form, g->k, g->n) * 0.08, macs = (double)g->n * (double)g->k * (double)g->m;
  nat_work work = {b->kernels->gemm_weight_f32, "gemm, few bits", ait_gemm_weight_f32_units(g), fetch + macs * 0.02,
                   ait_gemm_weight_f32_scratch(b->kernels, g)};
  ait_gemm_weight_f32 *args;
  AIT_TRY(nat_emit(b, &work, g, sizeof *g, &args));
  AIT_TRY(NAT_POINTER(b, args->a, &from->view));
  AIT_TRY(NAT_POINTER(b, args->b, &packed));
  if (groups) AIT_TRY(NAT_POINTER(b, args->scales, &scales));
  AIT_TRY(NAT_POINTER(b, args->c, &to->view));
  if (has_bias) AIT_TRY(NAT_POINTER(b, args->ep.bias, &bias));
  if (has_residual) AIT_TRY(NAT_POINTER(b, args->ep.residual, &residual.view));
  return AIT_OK;
}

ait_status nat_prepare_weight_linear(nat_bind *b, const nat_step *s) {
  nat_view x, y;
  nat_matrix from, to;
  const ait_region_node *n = nat_node(b->program, s);
  AIT_TRY(nat_in_f32(b, s, 0, &x));
  if (x.rank < 1) return nat_error(b, AIT_CODE_INVALID_MODEL, "input of rank %d", x.rank);
  AIT_TRY(nat_matrix_in(b, &x, 1, &from));
  AIT_TRY(nat_matrix_out(b, s, 0, 1, &y, &to));
  ait_dtype dtype = b->program->region->values[n->args[1].as.value].dtype;
  ait_gemm_weight_f32 g = {.m = to.rows,
                           .n = to.n,
                           .k = from.n,
                           .a_stride = from.stride,
                           .c_stride = to.stride,
                           .form = nat_weight_form(dtype),
                           .group = dtype == AIT_BF16 ? 0 : n->args[4].as.i};
  if (from.rows != to.rows) return nat_error(b, AIT_CODE_INVALID_MODEL, "shapes of the product do not fit");
  if (dtype != AIT_BF16 && (g.group < AIT_QUANT_GROUP || g.group % AIT_QUANT_GROUP))
    return nat_error(b, AIT_CODE_INVALID_MODEL, "groups of %lld", (long long)g.group);
  return emit_weight_product(b, s, &g, &from, &to, &y);
}

/* ---- matmul ----------------------------------------------------------------------------------------------------------------------*/
static void insert_dim(nat_view *v, int32_t at) {
  for (int32_t d = v->rank; d > at; --d) {
    v->shape[d] = v->shape[d - 1];
    v->strides[d] = v->strides[d - 1];
  }
  v->shape[at] = 1;
  v->strides[at] = 0;
  v->rank++;
}

/* The batch dims of all operands merged into at most two; false when the strides do not allow that. */
typedef struct batches {
  int64_t size[2], stride[4][2]; /* a, b, c, residual */
} batches;

static bool merge_batches(const nat_view *const operands[4], int32_t rank, batches *out) {
  int64_t size[AIT_MAX_RANK], stride[4][AIT_MAX_RANK];
  int32_t count = 0;
  for (int32_t d = 0; d < rank; ++d) {
    int64_t n = operands[2]->shape[d];
    if (n == 1) continue;
    bool merges = count > 0;
    for (int i = 0; merges && i < 4; ++i) merges = operands[i] == NULL || stride[i][count - 1] == operands[i]->strides[d] * n;
    if (!merges) count++;
    size[count - 1] = merges ? size[count - 1] * n : n;
    for (int i = 0; i < 4; ++i) stride[i][count - 1] = operands[i] != NULL ? operands[i]->strides[d] : 0;
  }
  if (count > 2) return false;
  for (int32_t level = 0; level < 2; ++level) {
    int32_t from = level - (2 - count);
    out->size[level] = from < 0 ? 1 : size[from];
    for (int i = 0; i < 4; ++i) out->stride[i][level] = from < 0 ? 0 : stride[i][from];
  }
  return true;
}

/* Rows whose elements lie side by side; anything else is copied. */
static ait_status side_by_side(nat_bind *b, nat_view *v) {
  int32_t last = v->rank - 1;
  if ((v->shape[last] <= 1 || v->strides[last] == 1) && (v->shape[last - 1] <= 1 || v->strides[last - 1] >= v->shape[last])) return AIT_OK;
  nat_view copy;
  AIT_TRY(nat_temp(b, v->dtype, v->rank, v->shape, NULL, &copy));
  AIT_TRY(nat_copy(b, &copy, v));
  *v = copy;
  return AIT_OK;
}

static ait_status pack_batches(nat_bind *b, const nat_view *w, const batches *m, nat_view *out, int64_t stride[2]) {
  int32_t r = w->rank;
  ait_pack_b_f32 p = {.k = w->shape[r - 2], .n = w->shape[r - 1], .k_stride = w->strides[r - 2], .n_stride = w->strides[r - 1]}, *args;
  int64_t one = (int64_t)(ait_packed_b_bytes(p.k, p.n) / sizeof(float));
  for (int level = 0; level < 2; ++level) { /* a matrix that is shared is packed once */
    p.batch[level] = m->stride[1][level] == 0 ? 1 : m->size[level];
    p.batch_stride[level] = m->stride[1][level];
  }
  stride[1] = p.batch[1] == 1 ? 0 : one;
  stride[0] = p.batch[0] == 1 ? 0 : one * p.batch[1];
  AIT_TRY(nat_scratch(b, (size_t)(one * p.batch[0] * p.batch[1]) * sizeof(float), out));
  nat_work work = {b->kernels->pack_b_f32, "pack", ait_pack_b_f32_units(&p), (double)(p.k * p.n * p.batch[0] * p.batch[1]) * 0.4, 0};
  AIT_TRY(nat_emit(b, &work, &p, sizeof p, &args));
  AIT_TRY(NAT_POINTER(b, args->src, w));
  return NAT_POINTER(b, args->dst, out);
}

static ait_status product_batched(nat_bind *b, const nat_step *s, nat_view *x, nat_view *w, nat_view *y) {
  int32_t rank = y->rank;
  nat_view residual, bias, packed;
  bool has_bias, has_residual = nat_has_in(b, s, 3);
  if (has_residual) AIT_TRY(nat_in_f32(b, s, 3, &residual));
  if (has_residual && (!nat_same_shape(&residual, y) || residual.rank != rank))
    return nat_error(b, AIT_CODE_INVALID_MODEL, "the addend has another shape");
  AIT_TRY(side_by_side(b, x));
  if (has_residual) AIT_TRY(side_by_side(b, &residual));
  const nat_view *all[4] = {x, w, y, has_residual ? &residual : NULL};
  batches m;
  if (!merge_batches(all, rank - 2, &m)) {
    nat_view *copies[] = {x, w, &residual};
    for (int i = 0; i < 2 + has_residual; ++i) {
      nat_view copy;
      AIT_TRY(nat_temp(b, AIT_F32, copies[i]->rank, copies[i]->shape, NULL, &copy));
      AIT_TRY(nat_copy(b, &copy, copies[i]));
      *copies[i] = copy;
    }
    if (!merge_batches(all, rank - 2, &m)) return nat_error(b, AIT_CODE_INTERNAL, "batch dims do not merge");
  }
  nat_product p = {.g = {.m = x->shape[rank - 2],
                         .n = w->shape[rank - 1],
                         .k = w->shape[rank - 2],
                         .a_stride = x->strides[rank - 2],
                         .c_stride = y->strides[rank - 2]},
                   .a = x,
                   .packed = &packed,
                   .c = y,
                   .residual = has_residual ? &residual : NULL};
  AIT_TRY(nat_vector(b, s, 2, p.g.n, &has_bias, &bias));
  p.bias = has_bias ? &bias : NULL;
  set_epilogue(s, &p.g.ep);
  if (has_residual) p.g.ep.residual_stride = residual.strides[rank - 2];
  memcpy(p.g.batch, m.size, sizeof p.g.batch);
  memcpy(p.g.a_batch_stride, m.stride[0], sizeof m.stride[0]);
  memcpy(p.g.c_batch_stride, m.stride[2], sizeof m.stride[2]);
  memcpy(p.g.residual_batch_stride, m.stride[3], sizeof m.stride[3]);
  if (nat_count(y) == 0) return AIT_OK;
  AIT_TRY(pack_batches(b, w, &m, &packed, p.g.b_batch_stride));
  return nat_emit_product(b, &p);
}

/* One matrix on the right for all batches, and a left side that is one tall matrix. */
static bool is_one_product(const nat_view *x, const nat_view *w, const nat_view *y) {
  nat_matrix m;
  for (int32_t d = 0; d < y->rank - 2; ++d) {
    if (y->shape[d] != 1 && w->strides[d] != 0) return false;
  }
  return nat_matrix_of(x, 1, &m) && nat_matrix_of(y, 1, &m);
}

ait_status nat_prepare_matmul(nat_bind *b, const nat_step *s) {
  nat_view x, w, y;
  AIT_TRY(nat_in_f32(b, s, 0, &x));
  AIT_TRY(nat_in_f32(b, s, 1, &w));
  bool row = x.rank == 1, column = w.rank == 1;
  nat_view shape;
  AIT_TRY(nat_out_shape(b, s, 0, &shape));
  if (x.rank < 1 || w.rank < 1 || x.rank >= AIT_MAX_RANK || w.rank >= AIT_MAX_RANK || shape.rank + 2 > AIT_MAX_RANK)
    return nat_error(b, AIT_CODE_INVALID_MODEL, "ranks %d and %d", x.rank, w.rank);
  const nat_view *wish = nat_wish(b, s, 0);
  nat_matrix m;
  AIT_TRY(nat_out(b, s, 0, NULL, wish != NULL && nat_matrix_of(wish, column ? 0 : 1, &m), &y));
  if (row) insert_dim(&x, 0);
  if (column) insert_dim(&w, 1);
  if (row) insert_dim(&y, column ? y.rank : y.rank - 1);
  if (column) insert_dim(&y, y.rank);
  if (row && column) y.strides[0] = y.strides[1] = 1;
  if (column) y.strides[y.rank - 1] = 1;
  int32_t rank = y.rank;
  if (rank < 2 || x.rank > rank || w.rank > rank) return nat_error(b, AIT_CODE_INVALID_MODEL, "result of rank %d", y.rank);
  int64_t left[AIT_MAX_RANK], right[AIT_MAX_RANK], k = x.shape[x.rank - 1];
  memcpy(left, y.shape, sizeof left);
  memcpy(right, y.shape, sizeof right);
  left[rank - 1] = right[rank - 2] = k;
  nat_view wx, ww;
  if (!nat_broadcast(&x, rank, left, &wx) || !nat_broadcast(&w, rank, right, &ww) || w.shape[w.rank - 2] != k ||
      x.shape[x.rank - 2] != y.shape[rank - 2] || w.shape[w.rank - 1] != y.shape[rank - 1]) {
    return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes of the product do not fit");
  }
  /* Broadcasting is for batch dims only: the matrices keep their strides. */
  for (int i = 1; i <= 2; ++i) {
    wx.strides[rank - i] = x.strides[x.rank - i];
    ww.strides[rank - i] = w.strides[w.rank - i];
  }
  if (s->pack_count > 0 || is_one_product(&wx, &ww, &y)) {
    nat_view one = ww;
    one.rank = 2;
    for (int i = 0; i < 2; ++i) {
      one.shape[i] = ww.shape[rank - 2 + i];
      one.strides[i] = ww.strides[rank - 2 + i];
    }
    nat_matrix to;
    if (w.rank == 2 || is_one_product(&wx, &ww, &y)) {
      if (nat_matrix_of(&y, 1, &to)) return product_2d(b, s, &wx, &one, &y, &to);
    }
  }
  return product_batched(b, s, &wx, &ww, &y);
}

/* ---- attention -------------------------------------------------------------------------------------------------------------------*/
/* [batch, heads, rows, d], rows side by side. */
static ait_status heads_of(nat_bind *b, const nat_step *s, uint32_t i, int64_t batch, nat_view *v) {
  AIT_TRY(nat_in_f32(b, s, i, v));
  if (v->rank == 3) insert_dim(v, 1);
  if (v->rank != 4 || (v->shape[0] != batch && v->shape[0] != 1))
    return nat_error(b, AIT_CODE_INVALID_MODEL, "operand %u has not the shape of heads", i);
  if (v->shape[3] > 1 && v->strides[3] != 1) {
    static const int32_t order[] = {0, 2, 1, 3};
    nat_view copy;
    AIT_TRY(nat_temp(b, AIT_F32, 4, v->shape, order, &copy));
    AIT_TRY(nat_copy(b, &copy, v));
    *v = copy;
  }
  if (v->shape[0] != batch) v->strides[0] = 0;
  v->shape[0] = batch;
  return AIT_OK;
}

static ait_status mask_of(nat_bind *b, const nat_step *s, int32_t rank, ait_attention_f32 *a, nat_view *mask) {
  nat_view v;
  AIT_TRY(nat_in(b, s, 3, &v));
  if (rank == 3 && v.rank == 3) insert_dim(&v, 1);
  int64_t shape[4] = {a->batch, a->heads, a->q_len, a->k_len};
  if (!nat_broadcast(&v, 4, shape, mask)) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "the mask has another shape");
  if (mask->dtype != AIT_F32 && mask->dtype != AIT_BOOL) return nat_error(b, AIT_CODE_INVALID_MODEL, "dtype of the mask");
  a->mask_kind = mask->dtype == AIT_BOOL ? AIT_MASK_BOOL : AIT_MASK_FLOAT;
  memcpy(a->mask_stride, mask->strides, sizeof a->mask_stride);
  return AIT_OK;
}

static ait_status attention_out(nat_bind *b, const nat_step *s, nat_view *o) {
  const nat_view *wish = nat_wish(b, s, 0);
  static const int32_t by_rows[] = {0, 2, 1, 3};
  nat_view shape;
  AIT_TRY(nat_out_shape(b, s, 0, &shape));
  bool takes_wish = wish != NULL && (wish->shape[wish->rank - 1] <= 1 || wish->strides[wish->rank - 1] == 1);
  bool heads_inside = shape.rank == 4 && (b->program->flags & NAT_EAGER) == 0;
  AIT_TRY(nat_out(b, s, 0, heads_inside ? by_rows : NULL, takes_wish, o));
  if (o->rank == 3) insert_dim(o, 1);
  return AIT_OK;
}

ait_status nat_prepare_attention(nat_bind *b, const nat_step *s) {
  nat_view q, k, v, o, mask;
  double scale;
  AIT_TRY(nat_in_f32(b, s, 0, &q));
  int32_t rank = q.rank;
  if (rank != 3 && rank != 4) return nat_error(b, AIT_CODE_INVALID_MODEL, "rank %d", rank);
  int64_t batch = q.shape[0];
  AIT_TRY(heads_of(b, s, 0, batch, &q));
  AIT_TRY(heads_of(b, s, 1, batch, &k));
  AIT_TRY(heads_of(b, s, 2, batch, &v));
  AIT_TRY(attention_out(b, s, &o));
  ait_attention_f32 a = {.batch = batch,
                         .heads = q.shape[1],
                         .kv_heads = k.shape[1],
                         .q_len = q.shape[2],
                         .k_len = k.shape[2],
                         .d = q.shape[3],
                         .dv = v.shape[3]};
  bool fits = k.shape[3] == a.d && v.shape[1] == a.kv_heads && v.shape[2] == a.k_len &&
              (a.kv_heads > 0 ? a.heads % a.kv_heads == 0 : a.heads == 0) && o.rank == 4 && o.shape[0] == batch && o.shape[1] == a.heads &&
              o.shape[2] == a.q_len && o.shape[3] == a.dv;
  if (!fits) return nat_error(b, AIT_CODE_INVALID_ARGUMENT, "shapes of query, key and value do not fit");
  memcpy(a.q_stride, q.strides, sizeof a.q_stride);
  memcpy(a.k_stride, k.strides, sizeof a.k_stride);
  memcpy(a.v_stride, v.strides, sizeof a.v_stride);
  memcpy(a.o_stride, o.strides, sizeof a.o_stride);
  bool has_mask = nat_has_in(b, s, 3);
  if (has_mask) AIT_TRY(mask_of(b, s, rank, &a, &mask));
  AIT_TRY(nat_arg_bool(b, s, 4, false, &a.causal));
  AIT_TRY(nat_arg_float(b, s, 5, a.d > 0 ? 1 / sqrt((double)a.d) : 1, &scale));
  a.scale = (float)scale;
  if (nat_count(&o) == 0) return AIT_OK;
  double macs = (double)a.batch * (double)a.heads * (double)a.q_len * (double)a.k_len * (double)(a.d + a.dv);
  nat_work work = {b->kernels->attention_f32, "attention", ait_attention_f32_units(&a), macs * 0.03,
                   ait_attention_f32_scratch(b->kernels, &a)};
  ait_attention_f32 *args;
  AIT_TRY(nat_emit(b, &work, &a, sizeof a, &args));
  AIT_TRY(NAT_POINTER(b, args->q, &q));
  AIT_TRY(NAT_POINTER(b, args->k, &k));
  AIT_TRY(NAT_POINTER(b, args->v, &v));
  AIT_TRY(NAT_POINTER(b, args->o, &o));
  return has_mask ? NAT_POINTER(b, args->mask, &mask) : AIT_OK;
}
