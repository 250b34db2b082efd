/* Norms and distances: vector and matrix norms, cdist, pdist, pairwise distances, cosine similarity, cross product. */
#include "backends/reference/nn.h"

/* A running p-norm: add numbers, then finish. */
typedef struct norm {
  double p, sum;
  bool started;
} norm;

static void norm_add(norm *n, double v) {
  v = fabs(v);
  if (n->p == INFINITY || n->p == -INFINITY) {
    bool better = n->p > 0 ? v > n->sum : v < n->sum;
    if (!n->started || better || isnan(v)) n->sum = isnan(n->sum) && n->started ? n->sum : v;
  } else if (n->p == 2) {
    n->sum += v * v;
  } else if (n->p == 1) {
    n->sum += v;
  } else {
    n->sum += n->p == 0 ? v != 0 : pow(v, n->p);
  }
  n->started = true;
}

static double norm_finish(const norm *n) {
  if (isinf(n->p) || n->p == 0 || n->p == 1) return n->sum;
  return n->p == 2 ? sqrt(n->sum) : pow(n->sum, 1 / n->p);
}

/* ---- vector norms ------------------------------------------------------------------------------------------------------------ */
/* Moduli of complex numbers replace them. */
static ait_status moduli(const ait_ref_call *call, const ait_tensor *t, ait_tensor *out) {
  AIT_TRY(ait_nn_numbers(call, t, out));
  if (out->dtype != AIT_C128) return AIT_OK;
  double *v = out->data;
  for (int64_t i = 0; i < ait_tensor_count(out); ++i) v[i] = hypot(v[2 * i], v[2 * i + 1]);
  out->dtype = AIT_F64;
  return AIT_OK;
}

/* Dims that are reduced; none given: all of them. */
static ait_status reduced_dims(const ait_ref_call *call, uint32_t arg, int32_t rank, bool out[AIT_MAX_RANK]) {
  int64_t dims[AIT_MAX_RANK];
  int32_t count;
  AIT_TRY(ait_ref_ints(call, arg, dims, &count));
  for (int32_t d = 0; d < AIT_MAX_RANK; ++d) out[d] = count == 0;
  for (int32_t i = 0; i < count; ++i) {
    int32_t d;
    AIT_TRY(ait_ref_dim(call, dims[i], rank, &d));
    out[d] = true;
  }
  return AIT_OK;
}

static ait_status vector_norm(ait_ref_call *call, double p, const bool *reduce, bool keepdim) {
  const ait_tensor *t;
  ait_tensor x = {0}, out = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  ait_status status;
  int64_t kept[AIT_MAX_RANK], index[AIT_MAX_RANK] = {0}, step[AIT_MAX_RANK], n = 1;
  for (int32_t d = t->rank - 1; d >= 0; --d) {
    kept[d] = reduce[d] ? 1 : t->shape[d];
    step[d] = reduce[d] ? 0 : n;
    n *= kept[d];
  }
  norm *norms = ait_alloc_zero(call->allocator, (size_t)n * sizeof *norms, 8);
  if (!norms) return AIT_OOM();
  AIT_GOTO(moduli(call, t, &x));
  AIT_GOTO(ait_ref_temp(call, AIT_F64, t->rank, kept, &out));
  for (int64_t i = 0; i < n; ++i) norms[i].p = p;
  for (int64_t i = 0; i < ait_tensor_count(&x); ++i) {
    int64_t at = 0;
    for (int32_t d = 0; d < t->rank; ++d) at += index[d] * step[d];
    norm_add(&norms[at], ait_nn_data(&x)[i]);
    ait_ref_next(t->rank, t->shape, index);
  }
  for (int64_t i = 0; i < n; ++i) ait_nn_data_mut(&out)[i] = norm_finish(&norms[i]);
  if (!keepdim) {
    out.rank = 0;
    for (int32_t d = 0; d < t->rank; ++d)
      if (!reduce[d]) out.shape[out.rank++] = t->shape[d];
    ait_tensor_set_contiguous(&out);
  }
  ait_dtype otherwise = t->dtype == AIT_C64 ? AIT_F32 : t->dtype == AIT_C128 ? AIT_F64 : t->dtype;
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, otherwise), &out);
cleanup:
  ait_free(call->allocator, norms, (size_t)n * sizeof *norms);
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

ait_status ait_ref_vector_norm(ait_ref_call *call) {
  const ait_tensor *t;
  ait_ref_scalar p;
  bool reduce[AIT_MAX_RANK], keepdim;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_scalar_arg(call, 1, &p));
  AIT_TRY(reduced_dims(call, 2, t->rank, reduce));
  AIT_TRY(ait_ref_bool(call, 3, &keepdim));
  return vector_norm(call, p.f, reduce, keepdim);
}

/* ---- matrix norms ------------------------------------------------------------------------------------------------------------ */

typedef enum matrix_ord { ORD_FRO, ORD_NUC, ORD_ROW_SUM, ORD_COLUMN_SUM, ORD_SPECTRAL } matrix_ord;

static ait_status one_matrix(const ait_ref_call *call, const double _Complex *a, int64_t m, int64_t n, matrix_ord ord, bool least,
                             double *out) {
  int64_t k = m < n ? m : n;
  double total = 0, best = 0;
  if (ord == ORD_FRO) {
    for (int64_t i = 0; i < m * n; ++i) total += __real__ a[i] * __real__ a[i] + __imag__ a[i] * __imag__ a[i];
    *out = sqrt(total);
    return AIT_OK;
  }
  if (ord == ORD_ROW_SUM || ord == ORD_COLUMN_SUM) {
    int64_t outer = ord == ORD_ROW_SUM ? m : n, inner = ord == ORD_ROW_SUM ? n : m;
    for (int64_t i = 0; i < outer; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < inner; ++j) sum += ait_nn_modulus(ord == ORD_ROW_SUM ? a[i * n + j] : a[j * n + i]);
      if (i == 0 || (least ? sum < best : sum > best) || isnan(sum)) best = sum;
    }
    *out = best;
    return AIT_OK;
  }
  double *s = ait_nn_doubles(call, k + 1);
  if (!s) return AIT_OOM();
  ait_status status = ait_nn_singular_values(call, a, m, n, s);
  for (int64_t i = 0; !status && i < k; ++i) total += s[i];
  if (!status) *out = k == 0 ? 0 : ord == ORD_NUC ? total : least ? s[k - 1] : s[0];
  ait_nn_doubles_free(call, s, k + 1);
  return status;
}

static ait_status matrix_norm(ait_ref_call *call, matrix_ord ord, bool least, const int64_t given[2], bool keepdim) {
  const ait_tensor *t;
  int32_t dims[2];
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  for (int i = 0; i < 2; ++i) AIT_TRY(ait_ref_dim(call, given[i], t->rank, &dims[i]));
  if (dims[0] == dims[1] || t->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_MODEL, "a matrix norm needs two dims");
  ait_tensor v = *t, x = {0}, out = {0};
  int64_t shape[AIT_MAX_RANK];
  int32_t rank = 0, lead = 0;
  for (int32_t d = 0; d < t->rank; ++d) {
    bool matrix = d == dims[0] || d == dims[1];
    if (!matrix) v.shape[lead] = t->shape[d], v.strides[lead++] = t->strides[d];
    if (!matrix || keepdim) shape[rank++] = matrix ? 1 : t->shape[d];
  }
  for (int i = 0; i < 2; ++i) v.shape[lead + i] = t->shape[dims[i]], v.strides[lead + i] = t->strides[dims[i]];
  ait_status status;
  AIT_GOTO(ait_nn_complex(call, &v, &x));
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, rank, shape, &out));
  int64_t m = v.shape[lead], n = v.shape[lead + 1];
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i)
    AIT_GOTO(one_matrix(call, (const double _Complex *)x.data + i * m * n, m, n, ord, least, ait_nn_data_mut(&out) + i));
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, ait_dtype_component(t->dtype)), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

/* linalg_matrix_norm.str_ord(self, ord, dim, keepdim) */
ait_status ait_ref_matrix_norm(ait_ref_call *call) {
  const char *ord = ait_ref_string(call, 1);
  int64_t dims[2];
  bool keepdim;
  AIT_TRY(ait_nn_ints(call, 2, 2, 0, dims));
  AIT_TRY(ait_ref_bool(call, 3, &keepdim));
  return matrix_norm(call, ord && strcmp(ord, "nuc") == 0 ? ORD_NUC : ORD_FRO, false, dims, keepdim);
}

/* norm.Scalar(self, p), norm.ScalarOpt_dim(self, p, dim, keepdim) and their dtype forms, frobenius_norm.dim(self, dim, keepdim) */
ait_status ait_ref_norm(ait_ref_call *call) {
  const ait_tensor *t;
  bool reduce[AIT_MAX_RANK], keepdim = false, frobenius = ait_nn_starts(call, "aten.frobenius"),
                             has_dims = frobenius || strstr(call->node->op, "_dim");
  uint32_t at = frobenius ? 1 : 2;
  ait_ref_scalar p = {.f = 2};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (!frobenius && !ait_ref_is_none(call, 1)) AIT_TRY(ait_ref_scalar_arg(call, 1, &p));
  for (int32_t d = 0; d < AIT_MAX_RANK; ++d) reduce[d] = true;
  if (has_dims) {
    AIT_TRY(reduced_dims(call, at, t->rank, reduce));
    AIT_TRY(ait_ref_bool(call, at + 1, &keepdim));
  }
  return vector_norm(call, p.f, reduce, keepdim);
}

/* A norm of matrices by number or by name */
static ait_status matrix_norm_by(ait_ref_call *call, const char *name, double p, const int64_t *dims, bool keepdim) {
  if (name && strcmp(name, "nuc") == 0) return matrix_norm(call, ORD_NUC, false, dims, keepdim);
  if (name) return matrix_norm(call, ORD_FRO, false, dims, keepdim);
  double a = fabs(p);
  if (a != 1 && a != 2 && a != INFINITY) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "matrix norm of order %g", p);
  return matrix_norm(call, a == 1 ? ORD_COLUMN_SUM : a == 2 ? ORD_SPECTRAL : ORD_ROW_SUM, p < 0, dims, keepdim);
}

/* linalg_matrix_norm(self, ord, dim, keepdim), linalg_norm.ord_str; nuclear_norm(self, keepdim), nuclear_norm.dim(self, dim, keepdim) */
ait_status ait_ref_matrix_norm_ord(ait_ref_call *call) {
  bool nuclear = ait_nn_starts(call, "aten.nuclear_norm"), has_dims = !ait_nn_is(call, "aten.nuclear_norm"), keepdim;
  uint32_t at = nuclear ? 1 : 2;
  int64_t dims[AIT_MAX_RANK] = {-2, -1};
  int32_t count = 0;
  const char *name = nuclear ? "nuc" : ait_nn_is(call, "aten.linalg_norm.ord_str") ? ait_ref_string(call, 1) : NULL;
  ait_ref_scalar p = {.f = 2};
  if (!name) AIT_TRY(ait_ref_scalar_arg(call, 1, &p));
  if (has_dims) AIT_TRY(ait_ref_ints(call, at++, dims, &count));
  if (count == 0) dims[0] = -2, dims[1] = -1;
  AIT_TRY(ait_ref_bool(call, at, &keepdim));
  return matrix_norm_by(call, name, p.f, dims, keepdim);
}

/* linalg_norm: one dim (or none, without an order) a vector norm, two dims a matrix norm */
ait_status ait_ref_linalg_norm(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t dims[AIT_MAX_RANK] = {-2, -1};
  int32_t count;
  bool keepdim, has_ord = !ait_ref_is_none(call, 1), reduce[AIT_MAX_RANK];
  ait_ref_scalar ord = {.f = 2};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_ints(call, 2, dims, &count));
  AIT_TRY(ait_ref_bool(call, 3, &keepdim));
  if (has_ord) AIT_TRY(ait_ref_scalar_arg(call, 1, &ord));
  if (!has_ord || count == 1 || (count == 0 && t->rank < 2)) {
    AIT_TRY(reduced_dims(call, 2, t->rank, reduce));
    return vector_norm(call, ord.f, reduce, keepdim);
  }
  if (count == 0) dims[0] = -2, dims[1] = -1;
  return matrix_norm_by(call, NULL, ord.f, dims, keepdim);
}

/* ---- distances --------------------------------------------------------------------------------------------------------------- */
static double distance(const double *x, const double *y, int64_t n, double p) {
  norm s = {.p = p};
  for (int64_t i = 0; i < n; ++i) norm_add(&s, x[i] - y[i]);
  return norm_finish(&s);
}

typedef struct cdist_job {
  const double *x, *y;
  double *out;
  int64_t rows, cols, n;
  double p;
} cdist_job;

static void cdist_rows(void *ctx, int64_t begin, int64_t end) {
  const cdist_job *j = ctx;
  for (int64_t r = begin; r < end; ++r) {
    int64_t batch = r / j->rows;
    for (int64_t c = 0; c < j->cols; ++c)
      j->out[r * j->cols + c] = distance(j->x + r * j->n, j->y + (batch * j->cols + c) * j->n, j->n, j->p);
  }
}

/* cdist, _cdist_forward, _euclidean_dist: [.., P, M], [.., R, M] -> [.., P, R] */
ait_status ait_ref_cdist(ait_ref_call *call) {
  const ait_tensor *t[2];
  double p;
  AIT_TRY(ait_ref_tensor(call, 0, &t[0]));
  AIT_TRY(ait_ref_tensor(call, 1, &t[1]));
  if (ait_nn_is(call, "aten._euclidean_dist")) p = 2;
  else AIT_TRY(ait_ref_float(call, 2, &p));
  if (t[0]->rank < 2 || t[1]->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "operands need two dims");
  ait_tensor lead[2] = {*t[0], *t[1]}, x = {0}, y = {0}, out = {0};
  lead[0].rank -= 2, lead[1].rank -= 2;
  const ait_tensor *leads[2] = {&lead[0], &lead[1]};
  int64_t shape[AIT_MAX_RANK], n = t[0]->shape[t[0]->rank - 1];
  int32_t rank;
  AIT_TRY(ait_ref_broadcast(call, leads, 2, &rank, shape));
  cdist_job job = {.rows = t[0]->shape[t[0]->rank - 2], .cols = t[1]->shape[t[1]->rank - 2], .n = n, .p = p};
  ait_status status;
  shape[rank + 1] = n;
  shape[rank] = job.rows;
  AIT_GOTO(ait_nn_arg_expanded(call, 0, rank + 2, shape, &x));
  shape[rank] = job.cols;
  AIT_GOTO(ait_nn_arg_expanded(call, 1, rank + 2, shape, &y));
  shape[rank] = job.rows, shape[rank + 1] = job.cols;
  AIT_GOTO(ait_ref_temp(call, AIT_F64, rank + 2, shape, &out));
  job.x = x.data, job.y = y.data, job.out = out.data;
  if (ait_tensor_count(&out) > 0) ait_ref_parallel(call, ait_nn_span(&out, 0, rank + 1), job.cols * (n + 1) * 4, cdist_rows, &job);
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t[0]->dtype), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&y);
  ait_tensor_release(&out);
  return status;
}

/* Distances of the rows of one matrix, each pair once. */
ait_status ait_ref_pdist(ait_ref_call *call) {
  double p;
  ait_tensor x, out = {0};
  AIT_TRY(ait_ref_float(call, 1, &p));
  AIT_TRY(ait_nn_arg(call, 0, &x));
  ait_status status;
  if (x.rank != 2) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", x.rank));
  int64_t n = x.shape[0], m = x.shape[1], count = n * (n - 1) / 2, at = 0;
  AIT_GOTO(ait_ref_temp(call, AIT_F64, 1, &count, &out));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) ait_nn_data_mut(&out)[at++] = distance(ait_nn_data(&x) + i * m, ait_nn_data(&x) + j * m, m, p);
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

/* Two operands broadcast, dim moved to the end: rows of n. C128 where one of them is complex. */
static ait_status row_pairs(const ait_ref_call *call, int64_t dim, ait_tensor *x, ait_tensor *y, int32_t *out_dim, int64_t *shape,
                            int32_t *rank) {
  const ait_tensor *t[2];
  AIT_TRY(ait_ref_tensor(call, 0, &t[0]));
  AIT_TRY(ait_ref_tensor(call, 1, &t[1]));
  AIT_TRY(ait_ref_broadcast(call, t, 2, rank, shape));
  AIT_TRY(ait_ref_dim(call, dim, *rank, out_dim));
  ait_tensor *to[2] = {x, y};
  bool is_complex = ait_dtype_is_complex(t[0]->dtype) || ait_dtype_is_complex(t[1]->dtype);
  for (int i = 0; i < 2; ++i) {
    ait_tensor v = ait_ref_expand(t[i], *rank, shape);
    int64_t n = v.shape[*out_dim], s = v.strides[*out_dim];
    for (int32_t d = *out_dim; d + 1 < *rank; ++d) v.shape[d] = v.shape[d + 1], v.strides[d] = v.strides[d + 1];
    if (*rank > 0) v.shape[*rank - 1] = n, v.strides[*rank - 1] = s;
    AIT_TRY(is_complex ? ait_nn_complex(call, &v, to[i]) : ait_nn_f64(call, &v, to[i]));
  }
  return AIT_OK;
}

/* The norm of x - y + eps. */
static double complex_distance(const double _Complex *x, const double _Complex *y, int64_t n, double eps, double p) {
  norm s = {.p = p};
  for (int64_t i = 0; i < n; ++i) norm_add(&s, ait_nn_modulus(x[i] - y[i] + eps));
  return norm_finish(&s);
}

static double cosine(const double *x, const double *y, int64_t n, double eps) {
  double xy = 0, xx = 0, yy = 0;
  for (int64_t i = 0; i < n; ++i) xy += x[i] * y[i], xx += x[i] * x[i], yy += y[i] * y[i];
  return xy / (fmax(sqrt(xx), eps) * fmax(sqrt(yy), eps));
}

/* cosine_similarity(x1, x2, dim, eps); pairwise_distance(x1, x2, p, eps, keepdim), along the last dim */
ait_status ait_ref_row_distance(ait_ref_call *call) {
  bool is_cosine = ait_nn_is(call, "aten.cosine_similarity"), keepdim = false;
  int64_t dim = -1, shape[AIT_MAX_RANK];
  double eps, p = 2;
  int32_t d, rank;
  if (is_cosine) AIT_TRY(ait_ref_int(call, 2, &dim));
  else AIT_TRY(ait_ref_float(call, 2, &p));
  AIT_TRY(ait_ref_float(call, 3, &eps));
  if (!is_cosine) AIT_TRY(ait_ref_bool(call, 4, &keepdim));
  ait_tensor x = {0}, y = {0}, out = {0};
  ait_status status;
  AIT_GOTO(row_pairs(call, dim, &x, &y, &d, shape, &rank));
  const ait_tensor *first, *second;
  AIT_GOTO(ait_ref_tensor(call, 0, &first));
  AIT_GOTO(ait_ref_tensor(call, 1, &second));
  ait_dtype dtype = ait_dtype_promote(first->dtype, second->dtype);
  bool whole = ait_dtype_is_integer(dtype);
  int64_t n = rank ? shape[d] : 1, kept[AIT_MAX_RANK];
  int32_t out_rank = 0;
  for (int32_t e = 0; e < rank; ++e)
    if (e != d || keepdim) kept[out_rank++] = e == d ? 1 : shape[e];
  AIT_GOTO(ait_nn_zeros(call, AIT_F64, out_rank, kept, &out));
  bool is_complex = x.dtype == AIT_C128;
  if (is_complex && is_cosine) AIT_GOTO(ait_ref_error(call, AIT_CODE_UNSUPPORTED, "complex numbers"));
  for (int64_t r = 0; is_complex && r < ait_tensor_count(&out); ++r)
    ait_nn_data_mut(&out)[r] = complex_distance((double _Complex *)x.data + r * n, (double _Complex *)y.data + r * n, n, eps, p);
  for (int64_t r = 0; !is_complex && r < ait_tensor_count(&out); ++r) {
    double *a = ait_nn_data_mut(&x) + r * n;
    double *b = ait_nn_data_mut(&y) + r * n;
    for (int64_t i = 0; !is_cosine && i < n; ++i) { /* pairwise_distance adds eps to the difference */
      if (whole) a[i] = ait_nn_wrap(dtype, a[i] - b[i]), b[i] = 0;
      a[i] += eps;
    }
    ait_nn_data_mut(&out)[r] = is_cosine ? cosine(a, b, n, eps) : distance(a, b, n, p);
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, AIT_F32), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&y);
  ait_tensor_release(&out);
  return status;
}

/* cross: dim given, or the first of size three; linalg_cross: the last by default */
ait_status ait_ref_cross(ait_ref_call *call) {
  const ait_tensor *t[2];
  int64_t shape[AIT_MAX_RANK], dim = -1;
  int32_t rank, d;
  AIT_TRY(ait_ref_tensor(call, 0, &t[0]));
  AIT_TRY(ait_ref_tensor(call, 1, &t[1]));
  AIT_TRY(ait_ref_broadcast(call, t, 2, &rank, shape));
  bool search = ait_ref_is_none(call, 2);
  for (int32_t e = rank - 1; search && e >= 0; --e)
    if (shape[e] == 3) dim = e;
  if (!search) AIT_TRY(ait_ref_int(call, 2, &dim));
  AIT_TRY(ait_ref_dim(call, dim, rank, &d));
  if (rank == 0 || shape[d] != 3) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "no dim of size three");
  ait_tensor x = {0}, y = {0}, out = {0};
  ait_status status;
  AIT_GOTO(ait_nn_complex_expanded(call, 0, rank, shape, &x));
  AIT_GOTO(ait_nn_complex_expanded(call, 1, rank, shape, &y));
  AIT_GOTO(ait_ref_temp(call, AIT_C128, rank, shape, &out));
  int64_t s = ait_nn_span(&x, d + 1, rank);
  for (int64_t i = 0; i < ait_tensor_count(&out); ++i) {
    int64_t k = i / s % 3, base = i - k * s, k1 = (k + 1) % 3 * s + base, k2 = (k + 2) % 3 * s + base;
    const double _Complex *a = x.data, *b = y.data;
    ((double _Complex *)out.data)[i] = a[k1] * b[k2] - a[k2] * b[k1];
  }
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, ait_dtype_promote(t[0]->dtype, t[1]->dtype)), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&y);
  ait_tensor_release(&out);
  return status;
}
