/* Matrix products: mm, bmm, addmm and kin, linear, matmul, inner and outer products. einsum and tensordot: nn_einsum.c. */
#include "backends/reference/nn.h"

/* result = alpha * A B + beta * C, where A is [batch.., m, k], B [batch.., k, n], C [batch.., m, n] after expansion. */
typedef struct product {
  ait_tensor a, b, c;
  bool has_c;
  ait_ref_scalar alpha, beta;
  int32_t batch_rank;
  int64_t batch, m, n, k;
  ait_tensor out; /* contiguous [batch, m, n], whatever its shape says */
} product;

static const ait_ref_scalar one = {.kind = AIT_KIND_INT, .i = 1, .f = 1};

/* ---- floats: straight from the strided operands --------------------------------------------------------------------------------------*/
static void batch_offsets(const ait_tensor *t, int32_t batch_rank, int64_t batch, int64_t *out) {
  int64_t size = (int64_t)ait_dtype_size(t->dtype);
  for (int64_t i = 0; i < batch; ++i) {
    int64_t rest = i, offset = 0;
    for (int32_t d = batch_rank - 1; d >= 0; --d) {
      offset += rest % t->shape[d] * t->strides[d];
      rest /= t->shape[d];
    }
    out[i] = offset * size;
  }
}

static void sink_row(const product *p, int64_t flat, const int64_t *c_index, double *row, int64_t j0, int64_t cols) {
  if (p->alpha.f != 1)
    for (int64_t j = 0; j < cols; ++j) row[j] *= p->alpha.f;
  if (p->has_c && p->beta.f != 0) {
    double add[AIT_NN_NC];
    const char *from = ait_ref_at(&p->c, c_index);
    ait_nn_load(from, p->c.dtype, p->c.strides[p->c.rank - 1], cols, add);
    for (int64_t j = 0; j < cols; ++j) row[j] += p->beta.f * add[j];
  }
  char *to = (char *)p->out.data + (flat + j0) * (int64_t)ait_dtype_size(p->out.dtype);
  ait_nn_store(to, p->out.dtype, 1, cols, row);
}

static void product_sink(void *ctx, int64_t batch, int64_t i0, int64_t j0, int64_t rows, int64_t cols, const double *tile, int64_t ld) {
  const product *p = ctx;
  double row[AIT_NN_NC];
  for (int64_t i = 0; i < rows; ++i) {
    int64_t index[AIT_MAX_RANK], rest = batch * p->m + i0 + i, flat = rest * p->n;
    if (p->has_c) {
      index[p->c.rank - 1] = j0;
      for (int32_t d = p->c.rank - 2; d >= 0; --d) {
        index[d] = rest % p->c.shape[d];
        rest /= p->c.shape[d];
      }
    }
    memcpy(row, tile + i * ld, (size_t)cols * sizeof *row);
    sink_row(p, flat, index, row, j0, cols);
  }
}

/* The leading dims of `a` and its rows are one dim of a single stride, when B is the same for all. */
static bool rows_merge(const product *p) {
  for (int32_t d = 0; d < p->batch_rank; ++d)
    if (p->b.strides[d] != 0 && p->b.shape[d] != 1) return false;
  int64_t step = p->a.strides[p->batch_rank] * p->m;
  for (int32_t d = p->batch_rank - 1; d >= 0; --d) {
    if (p->a.shape[d] == 1) continue; /* its stride means nothing */
    if (p->a.strides[d] != step) return false;
    step *= p->a.shape[d];
  }
  return true;
}

static ait_status float_product(ait_ref_call *call, product *p) {
  int32_t r = p->batch_rank;
  ait_nn_gemm g = {.batch = p->batch, .m = p->m, .n = p->n, .k = p->k, .sink = product_sink, .sink_ctx = p};
  g.a = (ait_nn_mat){p->a.data, p->a.dtype, p->a.strides[r], p->a.strides[r + 1]};
  g.b = (ait_nn_mat){p->b.data, p->b.dtype, p->b.strides[r], p->b.strides[r + 1]};
  if (p->batch == 1) return ait_nn_gemm_run(call, &g);
  if (rows_merge(p)) {
    /* Row i of the merged matrix is row i of the flat result: the sink counts rows over all batches. */
    int64_t m = p->m, batch = p->batch;
    g.batch = 1;
    g.m = p->m = m * batch;
    ait_status merged = ait_nn_gemm_run(call, &g);
    p->m = m;
    return merged;
  }
  size_t bytes = (size_t)p->batch * 2 * sizeof(int64_t);
  int64_t *offsets = ait_alloc(call->allocator, bytes, 8);
  if (!offsets) return AIT_OOM();
  batch_offsets(&p->a, r, p->batch, offsets);
  batch_offsets(&p->b, r, p->batch, offsets + p->batch);
  g.a_offsets = offsets;
  g.b_offsets = offsets + p->batch;
  ait_status status = ait_nn_gemm_run(call, &g);
  ait_free(call->allocator, offsets, bytes);
  return status;
}

/* ---- integers: exact, wrapping as torch does -----------------------------------------------------------------------------------------*/
static void integer_block(const product *p, const int64_t *a, const int64_t *b, const int64_t *c, int64_t batch) {
  size_t size = ait_dtype_size(p->out.dtype);
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < p->k; ++k) sum += (uint64_t)a[(batch * p->m + i) * p->k + k] * (uint64_t)b[(batch * p->k + k) * p->n + j];
      int64_t flat = (batch * p->m + i) * p->n + j;
      sum *= (uint64_t)p->alpha.i;
      if (c) sum += (uint64_t)p->beta.i * (uint64_t)c[flat];
      ait_element_set_i64((char *)p->out.data + flat * (int64_t)size, p->out.dtype, (int64_t)sum);
    }
}

static ait_status integer_product(ait_ref_call *call, product *p) {
  ait_tensor a = {0}, b = {0}, c = {0};
  ait_status status;
  AIT_GOTO(ait_tensor_cast(call->allocator, &p->a, AIT_I64, &a));
  AIT_GOTO(ait_tensor_cast(call->allocator, &p->b, AIT_I64, &b));
  if (p->has_c) AIT_GOTO(ait_tensor_cast(call->allocator, &p->c, AIT_I64, &c));
  for (int64_t i = 0; i < p->batch; ++i) integer_block(p, a.data, b.data, p->has_c && p->beta.i != 0 ? c.data : NULL, i);
cleanup:
  ait_tensor_release(&a);
  ait_tensor_release(&b);
  ait_tensor_release(&c);
  return status;
}

/* ---- complex ---------------------------------------------------------------------------------------------------------------------*/
static void complex_store(const product *p, const double *sum, const double *add) {
  size_t size = ait_dtype_size(p->out.dtype);
  const ait_ref_scalar *al = &p->alpha, *be = &p->beta;
  for (int64_t i = 0; i < p->batch * p->m * p->n; ++i) {
    double re = sum[2 * i], im = sum[2 * i + 1], v[2] = {al->f * re - al->imag * im, al->f * im + al->imag * re};
    if (add) {
      v[0] += be->f * add[2 * i] - be->imag * add[2 * i + 1];
      v[1] += be->f * add[2 * i + 1] + be->imag * add[2 * i];
    }
    ait_element_set_c128((char *)p->out.data + i * (int64_t)size, p->out.dtype, v);
  }
}

static ait_status complex_product(ait_ref_call *call, product *p) {
  ait_tensor a = {0}, b = {0}, c = {0};
  int64_t count = p->batch * p->m * p->n;
  double *sum = ait_nn_doubles(call, 2 * count);
  ait_status status = sum ? AIT_OK : AIT_OOM();
  if (status) goto cleanup;
  AIT_GOTO(ait_tensor_cast(call->allocator, &p->a, AIT_C128, &a));
  AIT_GOTO(ait_tensor_cast(call->allocator, &p->b, AIT_C128, &b));
  if (p->has_c) AIT_GOTO(ait_tensor_cast(call->allocator, &p->c, AIT_C128, &c));
  AIT_GOTO(ait_nn_multiply(call, true, p->batch, p->m, p->n, p->k, a.data, b.data, sum));
  bool add = p->has_c && (p->beta.f != 0 || p->beta.imag != 0);
  complex_store(p, sum, add ? c.data : NULL);
cleanup:
  ait_nn_doubles_free(call, sum, 2 * count);
  ait_tensor_release(&a);
  ait_tensor_release(&b);
  ait_tensor_release(&c);
  return status;
}

/* ---- the common way ------------------------------------------------------------------------------------------------------------------*/
/* a: [.., m, k], b: [.., k, n]; leading dims broadcast. c: broadcastable to the product, or NULL. drop_m, drop_n: the result lacks that
 * dim (vectors). */
static ait_status run_product(ait_ref_call *call, const ait_tensor *a, const ait_tensor *b, const ait_tensor *c, ait_ref_scalar alpha,
                              ait_ref_scalar beta, bool drop_m, bool drop_n) {
  product p = {.alpha = alpha, .beta = beta, .has_c = c != NULL};
  int64_t shape[AIT_MAX_RANK], out_shape[AIT_MAX_RANK];
  ait_tensor lead_a = *a, lead_b = *b;
  lead_a.rank -= 2;
  lead_b.rank -= 2;
  const ait_tensor *leads[2] = {&lead_a, &lead_b};
  AIT_TRY(ait_ref_broadcast(call, leads, 2, &p.batch_rank, shape));
  int32_t r = p.batch_rank, out_rank = r;
  p.m = a->shape[a->rank - 2], p.k = a->shape[a->rank - 1], p.n = b->shape[b->rank - 1];
  if (b->shape[b->rank - 2] != p.k)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "inner sizes %lld and %lld differ", (long long)p.k,
                         (long long)b->shape[b->rank - 2]);
  p.batch = 1;
  for (int32_t d = 0; d < r; ++d) p.batch *= shape[d];
  memcpy(out_shape, shape, sizeof out_shape);
  if (!drop_m) out_shape[out_rank++] = p.m;
  if (!drop_n) out_shape[out_rank++] = p.n;
  shape[r] = p.m, shape[r + 1] = p.k;
  p.a = ait_ref_expand(a, r + 2, shape);
  shape[r] = p.k, shape[r + 1] = p.n;
  p.b = ait_ref_expand(b, r + 2, shape);
  if (c) {
    shape[r] = p.m, shape[r + 1] = p.n;
    p.c = ait_ref_expand(c, r + 2, shape);
  }
  ait_dtype dtype = ait_nn_dtype(call, 0, ait_dtype_promote(a->dtype, b->dtype));
  AIT_TRY(ait_ref_new(call, 0, dtype, out_rank, out_shape, &p.out));
  if (ait_tensor_count(&p.out) == 0) return AIT_OK;
  if (ait_dtype_is_complex(dtype)) return complex_product(call, &p);
  if (ait_dtype_is_integer(dtype)) return integer_product(call, &p);
  return float_product(call, &p);
}

static ait_tensor with_unit_dim(const ait_tensor *t, int32_t at) {
  ait_tensor v = *t;
  for (int32_t d = v.rank; d > at; --d) {
    v.shape[d] = v.shape[d - 1];
    v.strides[d] = v.strides[d - 1];
  }
  v.rank++;
  v.shape[at] = 1;
  v.strides[at] = 0;
  return v;
}

static ait_status two(const ait_ref_call *call, uint32_t first, const ait_tensor **a, const ait_tensor **b, int32_t min_a, int32_t min_b) {
  AIT_TRY(ait_ref_tensor(call, first, a));
  AIT_TRY(ait_ref_tensor(call, first + 1, b));
  if ((*a)->rank < min_a || (*b)->rank < min_b || (*a)->rank + 1 >= AIT_MAX_RANK || (*b)->rank + 1 >= AIT_MAX_RANK)
    return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "operands of rank %d and %d", (*a)->rank, (*b)->rank);
  return AIT_OK;
}

/* mm, bmm, mv, dot, matmul: a vector on the left is a row, on the right a column. */
ait_status ait_ref_matmul(ait_ref_call *call) {
  const ait_tensor *a, *b;
  AIT_TRY(two(call, 0, &a, &b, 1, 1));
  bool row = a->rank == 1, column = b->rank == 1;
  ait_tensor va = row ? with_unit_dim(a, 0) : *a, vb = column ? with_unit_dim(b, 1) : *b;
  return run_product(call, &va, &vb, NULL, one, one, row, column);
}

static ait_tensor transposed(const ait_tensor *t) {
  ait_tensor v = *t;
  int32_t r = v.rank;
  v.shape[r - 1] = t->shape[r - 2], v.shape[r - 2] = t->shape[r - 1];
  v.strides[r - 1] = t->strides[r - 2], v.strides[r - 2] = t->strides[r - 1];
  return v;
}

/* x [.., k], weight [n, k] or [k], bias [n] */
ait_status ait_ref_linear(ait_ref_call *call) {
  const ait_tensor *x, *w;
  AIT_TRY(two(call, 0, &x, &w, 1, 1));
  return ait_nn_linear(call, x, w, ait_ref_tensor_or_null(call, 2));
}

ait_status ait_nn_linear(ait_ref_call *call, const ait_tensor *x, const ait_tensor *w, const ait_tensor *bias) {
  ait_tensor a = x->rank == 1 ? with_unit_dim(x, 0) : *x, b = w->rank == 1 ? with_unit_dim(w, 1) : transposed(w);
  return run_product(call, &a, &b, bias, one, one, x->rank == 1, w->rank == 1);
}

/* addmm, baddbmm: beta * self + alpha * a b; .dtype: with the result's dtype before the factors */
ait_status ait_ref_addmm(ait_ref_call *call) {
  uint32_t at = ait_ends_with(call->node->op, ".dtype") ? 4 : 3;
  const ait_tensor *c, *a, *b;
  ait_ref_scalar alpha, beta;
  AIT_TRY(ait_ref_tensor(call, 0, &c));
  AIT_TRY(two(call, 1, &a, &b, 2, 2));
  AIT_TRY(ait_ref_scalar_arg(call, at, &beta));
  AIT_TRY(ait_ref_scalar_arg(call, at + 1, &alpha));
  return run_product(call, a, b, c, alpha, beta, false, false);
}

ait_status ait_ref_addmv(ait_ref_call *call) {
  const ait_tensor *c, *a, *b;
  ait_ref_scalar alpha, beta;
  AIT_TRY(ait_ref_tensor(call, 0, &c));
  AIT_TRY(two(call, 1, &a, &b, 2, 1));
  AIT_TRY(ait_ref_scalar_arg(call, 3, &beta));
  AIT_TRY(ait_ref_scalar_arg(call, 4, &alpha));
  ait_tensor vb = with_unit_dim(b, 1), vc = c->rank == 1 ? with_unit_dim(c, 1) : *c;
  return run_product(call, a, &vb, &vc, alpha, beta, false, true);
}

ait_status ait_ref_addr(ait_ref_call *call) {
  const ait_tensor *c, *a, *b;
  ait_ref_scalar alpha, beta;
  AIT_TRY(ait_ref_tensor(call, 0, &c));
  AIT_TRY(two(call, 1, &a, &b, 1, 1));
  AIT_TRY(ait_ref_scalar_arg(call, 3, &beta));
  AIT_TRY(ait_ref_scalar_arg(call, 4, &alpha));
  ait_tensor va = with_unit_dim(a, 1), vb = with_unit_dim(b, 0);
  return run_product(call, &va, &vb, c, alpha, beta, false, false);
}

/* Sum over the batch: [n, p] += sum_b [b, n, m] [b, m, p]: the batch joins the inner dim. */
ait_status ait_ref_addbmm(ait_ref_call *call) {
  const ait_tensor *c, *a, *b;
  ait_ref_scalar alpha, beta;
  AIT_TRY(ait_ref_tensor(call, 0, &c));
  AIT_TRY(two(call, 1, &a, &b, 3, 3));
  AIT_TRY(ait_ref_scalar_arg(call, 3, &beta));
  AIT_TRY(ait_ref_scalar_arg(call, 4, &alpha));
  ait_tensor pa = *a, fa = {0}, fb = {0};
  pa.shape[0] = a->shape[1], pa.shape[1] = a->shape[0];
  pa.strides[0] = a->strides[1], pa.strides[1] = a->strides[0];
  ait_status status;
  AIT_GOTO(ait_tensor_cast(call->allocator, &pa, pa.dtype, &fa));
  AIT_GOTO(ait_tensor_cast(call->allocator, b, b->dtype, &fb));
  ait_tensor va = fa, vb = fb;
  va.rank = vb.rank = 2;
  va.shape[1] = fa.shape[1] * fa.shape[2];
  vb.shape[0] = fb.shape[0] * fb.shape[1], vb.shape[1] = fb.shape[2];
  ait_tensor_set_contiguous(&va);
  ait_tensor_set_contiguous(&vb);
  status = run_product(call, &va, &vb, c, alpha, beta, false, false);
cleanup:
  ait_tensor_release(&fa);
  ait_tensor_release(&fb);
  return status;
}

ait_status ait_ref_outer(ait_ref_call *call) {
  const ait_tensor *a, *b;
  AIT_TRY(two(call, 0, &a, &b, 1, 1));
  ait_tensor va = with_unit_dim(a, 1), vb = with_unit_dim(b, 0);
  return run_product(call, &va, &vb, NULL, one, one, false, false);
}

/* sum_k a[.., k] * b[.., k] for every pair of leading indices; a scalar operand scales the other. */
ait_status ait_ref_inner(ait_ref_call *call) {
  const ait_tensor *a, *b;
  AIT_TRY(two(call, 0, &a, &b, 0, 0));
  ait_tensor fa = {0}, fb = {0};
  ait_status status;
  AIT_GOTO(ait_nn_numbers(call, a, &fa));
  AIT_GOTO(ait_nn_numbers(call, b, &fb));
  bool scale = a->rank == 0 || b->rank == 0;
  int64_t k = scale ? 1 : a->shape[a->rank - 1], shape[AIT_MAX_RANK];
  int32_t rank = 0;
  for (int32_t d = 0; d < a->rank - (scale ? 0 : 1) && rank < AIT_MAX_RANK; ++d) shape[rank++] = a->shape[d];
  for (int32_t d = 0; d < b->rank - (scale ? 0 : 1) && rank < AIT_MAX_RANK; ++d) shape[rank++] = b->shape[d];
  ait_tensor va = fa, vb = fb, out;
  va.rank = vb.rank = 2;
  va.shape[0] = k ? ait_tensor_count(&fa) / k : ait_nn_span(&fa, 0, fa.rank - 1), va.shape[1] = k;
  vb.shape[0] = k ? ait_tensor_count(&fb) / k : ait_nn_span(&fb, 0, fb.rank - 1), vb.shape[1] = k;
  ait_tensor_set_contiguous(&va);
  ait_tensor_set_contiguous(&vb);
  ait_tensor tb = transposed(&vb);
  AIT_GOTO(run_product(call, &va, &tb, NULL, one, one, false, false));
  out = call->results[0].as.tensor;
  if (out.dtype != ait_nn_dtype(call, 0, a->dtype)) {
    status = ait_ref_error(call, AIT_CODE_INTERNAL, "dtype of the product");
    goto cleanup;
  }
  out.rank = rank;
  memcpy(out.shape, shape, (size_t)rank * sizeof *shape);
  ait_tensor_set_contiguous(&out);
  call->results[0].as.tensor = out;
cleanup:
  ait_tensor_release(&fa);
  ait_tensor_release(&fb);
  return status;
}

/* vdot: the left operand conjugated. linalg_vecdot: the same along a dim, broadcast. */
static ait_status dot_rows(ait_ref_call *call, const ait_tensor *x, const ait_tensor *y, bool conjugate) {
  ait_tensor fx = {0}, fy = {0}, out = {0};
  ait_status status;
  bool c = ait_dtype_is_complex(x->dtype) || ait_dtype_is_complex(y->dtype);
  AIT_GOTO(ait_tensor_cast(call->allocator, x, c ? AIT_C128 : AIT_F64, &fx));
  AIT_GOTO(ait_tensor_cast(call->allocator, y, c ? AIT_C128 : AIT_F64, &fy));
  AIT_GOTO(ait_nn_zeros(call, c ? AIT_C128 : AIT_F64, x->rank - 1, x->shape, &out));
  int64_t n = x->shape[x->rank - 1], rows = ait_tensor_count(&out);
  for (int64_t r = 0; r < rows; ++r) {
    const double *p = ait_nn_data(&fx) + r * n * (c ? 2 : 1), *q = ait_nn_data(&fy) + r * n * (c ? 2 : 1);
    double *o = ait_nn_data_mut(&out) + r * (c ? 2 : 1);
    for (int64_t i = 0; i < n; ++i) {
      if (!c) {
        o[0] += p[i] * q[i];
        continue;
      }
      double im = conjugate ? -p[2 * i + 1] : p[2 * i + 1];
      o[0] += p[2 * i] * q[2 * i] - im * q[2 * i + 1];
      o[1] += p[2 * i] * q[2 * i + 1] + im * q[2 * i];
    }
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, ait_dtype_promote(x->dtype, y->dtype)), &out);
cleanup:
  ait_tensor_release(&fx);
  ait_tensor_release(&fy);
  ait_tensor_release(&out);
  return status;
}

ait_status ait_ref_vdot(ait_ref_call *call) {
  const ait_tensor *a, *b;
  AIT_TRY(two(call, 0, &a, &b, 1, 1));
  return dot_rows(call, a, b, true);
}

ait_status ait_ref_linalg_vecdot(ait_ref_call *call) {
  const ait_tensor *operands[2];
  AIT_TRY(two(call, 0, &operands[0], &operands[1], 1, 1));
  int64_t dim, shape[AIT_MAX_RANK];
  int32_t rank, d;
  AIT_TRY(ait_ref_int(call, 2, &dim));
  AIT_TRY(ait_ref_broadcast(call, operands, 2, &rank, shape));
  AIT_TRY(ait_ref_dim(call, dim, rank, &d));
  ait_tensor views[2];
  for (int i = 0; i < 2; ++i) {
    views[i] = ait_ref_expand(operands[i], rank, shape);
    int64_t n = views[i].shape[d], s = views[i].strides[d];
    for (int32_t e = d; e + 1 < rank; ++e) views[i].shape[e] = views[i].shape[e + 1], views[i].strides[e] = views[i].strides[e + 1];
    views[i].shape[rank - 1] = n, views[i].strides[rank - 1] = s;
  }
  return dot_rows(call, &views[0], &views[1], true);
}

/* out[i*p + k, j*q + l] = a[i, j] * b[k, l], over any number of dims; the shorter shape gets leading ones. */
ait_status ait_ref_kron(ait_ref_call *call) {
  const ait_tensor *a, *b;
  AIT_TRY(two(call, 0, &a, &b, 0, 0));
  int32_t rank = a->rank > b->rank ? a->rank : b->rank;
  ait_tensor fa = {0}, fb = {0}, out = {0};
  int64_t shape[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0}, sa[AIT_MAX_RANK], sb[AIT_MAX_RANK];
  ait_status status;
  bool c = ait_dtype_is_complex(a->dtype) || ait_dtype_is_complex(b->dtype);
  for (int32_t d = 0; d < rank; ++d) {
    int32_t da = d - (rank - a->rank), db = d - (rank - b->rank);
    sa[d] = da >= 0 ? a->shape[da] : 1;
    sb[d] = db >= 0 ? b->shape[db] : 1;
    shape[d] = sa[d] * sb[d];
  }
  AIT_GOTO(ait_tensor_cast(call->allocator, a, c ? AIT_C128 : AIT_F64, &fa));
  AIT_GOTO(ait_tensor_cast(call->allocator, b, c ? AIT_C128 : AIT_F64, &fb));
  AIT_GOTO(ait_nn_zeros(call, c ? AIT_C128 : AIT_F64, rank, shape, &out));
  int64_t count = ait_tensor_count(&out);
  for (int64_t o = 0; o < count; ++o) {
    int64_t ia = 0, ib = 0;
    for (int32_t d = 0; d < rank; ++d) {
      ia = ia * sa[d] + index[d] / sb[d];
      ib = ib * sb[d] + index[d] % sb[d];
    }
    const double *x = ait_nn_data(&fa) + ia * (c ? 2 : 1), *y = ait_nn_data(&fb) + ib * (c ? 2 : 1);
    double *z = ait_nn_data_mut(&out) + o * (c ? 2 : 1);
    z[0] = c ? x[0] * y[0] - x[1] * y[1] : x[0] * y[0];
    if (c) z[1] = x[0] * y[1] + x[1] * y[0];
    ait_ref_next(rank, shape, index);
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, ait_dtype_promote(a->dtype, b->dtype)), &out);
cleanup:
  ait_tensor_release(&fa);
  ait_tensor_release(&fb);
  ait_tensor_release(&out);
  return status;
}

/* Rows of input [s, k], sorted by group: rows offs[i-1] .. offs[i] times weight[i] of [groups, k, n]; rows after the last group are zero.
 */
ait_status ait_ref_grouped_mm(ait_ref_call *call) {
  const ait_tensor *x, *w, *offsets;
  AIT_TRY(two(call, 0, &x, &w, 2, 3));
  AIT_TRY(ait_ref_tensor(call, 2, &offsets));
  if (ait_ref_tensor_or_null(call, 3)) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "grouped products with a bias");
  if (x->rank != 2 || w->rank != 3 || offsets->rank != 1 || offsets->shape[0] != w->shape[0] || x->shape[1] != w->shape[1])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input, weight and offsets do not fit together");
  ait_tensor out = {0};
  int64_t shape[2] = {x->shape[0], w->shape[2]}, start = 0, k = x->shape[1];
  ait_status status;
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, 2, shape, &out));
  for (int64_t i = 0; i < offsets->shape[0]; ++i) {
    int64_t end = ait_element_i64(ait_ref_at(offsets, &i), offsets->dtype);
    if (end < start || end > shape[0]) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "offsets are not in order"));
    ait_nn_mat a = {ait_ref_at(x, (int64_t[]){start, 0}), x->dtype, x->strides[0], x->strides[1]};
    ait_nn_mat b = {ait_ref_at(w, (int64_t[]){i, 0, 0}), w->dtype, w->strides[1], w->strides[2]};
    if (end > start) AIT_GOTO(ait_nn_product(call, &a, &b, end - start, shape[1], k, ait_nn_data_mut(&out) + start * shape[1]));
    start = end;
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, x->dtype), &out);
cleanup:
  ait_tensor_release(&out);
  return status;
}
