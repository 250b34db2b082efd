/* Linear algebra on batches of matrices. Everything is copied to contiguous complex double, done there, and rounded once; of a real
 * result the real parts are kept. */
#include "backends/reference/nn.h"
#include "backends/reference/nn_decompose.h"

typedef ait_nn_cplx cplx;

/* A batch of matrices, C128: [lead.., m, n]. */
typedef struct mats {
  ait_tensor t;
  int64_t count, m, n;
} mats;

static cplx *elements(const ait_tensor *t) { return (cplx *)t->data; }
static cplx *mat(const mats *x, int64_t i) { return elements(&x->t) + i * x->m * x->n; }

static ait_status mats_of(const ait_ref_call *call, const ait_tensor *t, mats *out) {
  if (t->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a matrix has two dims");
  AIT_TRY(ait_nn_complex(call, t, &out->t));
  out->m = t->shape[t->rank - 2];
  out->n = t->shape[t->rank - 1];
  out->count = ait_nn_span(t, 0, t->rank - 2);
  return AIT_OK;
}

static ait_status mats_arg(const ait_ref_call *call, uint32_t arg, mats *out) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, arg, &t));
  return mats_of(call, t, out);
}

static ait_status complex_arg(const ait_ref_call *call, uint32_t arg, ait_tensor *out) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, arg, &t));
  return ait_nn_complex(call, t, out);
}

static ait_status square_arg(const ait_ref_call *call, uint32_t arg, mats *out) {
  AIT_TRY(mats_arg(call, arg, out));
  return out->m == out->n ? AIT_OK : ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the matrix is not square");
}

/* Zeros with the lead dims of `like` and the given matrix dims. */
static ait_status mats_new(const ait_ref_call *call, const mats *like, int64_t m, int64_t n, mats *out) {
  int64_t shape[AIT_MAX_RANK];
  int32_t r = like->t.rank;
  memcpy(shape, like->t.shape, sizeof shape);
  shape[r - 2] = m, shape[r - 1] = n;
  *out = (mats){.count = like->count, .m = m, .n = n};
  return ait_nn_zeros(call, AIT_C128, r, shape, &out->t);
}

/* Lead dims followed by `extra` (0 or 1) dims of `n`. */
static ait_status lead_zeros(const ait_ref_call *call, const mats *like, ait_dtype dtype, int32_t extra, int64_t n, ait_tensor *out) {
  int64_t shape[AIT_MAX_RANK];
  int32_t r = like->t.rank - 2;
  memcpy(shape, like->t.shape, sizeof shape);
  if (extra) shape[r] = n;
  return ait_nn_zeros(call, dtype, r + extra, shape, out);
}

static ait_dtype dtype_of(const ait_ref_call *call, uint32_t k) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, 0);
  return ait_nn_dtype(call, k, t ? t->dtype : AIT_F32);
}

/* Result k from C128 values; integers go through an I32 tensor that is handed over. */
static ait_status give(ait_ref_call *call, uint32_t k, const ait_tensor *values) {
  return ait_nn_result(call, k, dtype_of(call, k), values);
}
static void hand_over(ait_ref_call *call, uint32_t k, ait_tensor *t) {
  if (!ait_nn_wants(call, k)) return;
  ait_ref_set(call, k, *t);
  *t = (ait_tensor){0};
}

static ait_status singular(const ait_ref_call *call) { return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the matrix is singular"); }

/* ---- factorisations -------------------------------------------------------------------------------------------------------------------*/
/* An LU of every matrix of x in place; pivots [.., min(m, n)] and info [..] as I32. */
static ait_status factor(const ait_ref_call *call, mats *x, bool pivot, ait_tensor *pivots, ait_tensor *info) {
  int64_t k = ait_nn_min(x->m, x->n);
  AIT_TRY(lead_zeros(call, x, AIT_I32, 1, k, pivots));
  AIT_TRY(lead_zeros(call, x, AIT_I32, 0, 0, info));
  for (int64_t i = 0; i < x->count; ++i)
    ((int32_t *)info->data)[i] = ait_nn_lu(mat(x, i), x->m, x->n, (int32_t *)pivots->data + i * k, pivot);
  return AIT_OK;
}

static bool any_info(const ait_tensor *info) {
  for (int64_t i = 0; i < ait_tensor_count(info); ++i)
    if (((const int32_t *)info->data)[i]) return true;
  return false;
}

/* linalg_lu_factor(_ex), _lu_with_info: A, pivot */
ait_status ait_ref_lu_factor(ait_ref_call *call) {
  mats x = {0};
  ait_tensor pivots = {0}, info = {0};
  bool pivot;
  ait_status status;
  AIT_GOTO(ait_ref_bool(call, 1, &pivot));
  AIT_GOTO(mats_arg(call, 0, &x));
  AIT_GOTO(factor(call, &x, pivot, &pivots, &info));
  AIT_GOTO(give(call, 0, &x.t));
  hand_over(call, 1, &pivots);
  hand_over(call, 2, &info);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&pivots);
  ait_tensor_release(&info);
  return status;
}

/* P, L and U (m x k, k x n) of a packed LU. */
static void unpack(const mats *lu, int64_t i, const int32_t *pivots, mats *p, mats *l, mats *u) {
  int64_t k = ait_nn_min(lu->m, lu->n), m = lu->m;
  const cplx *a = mat(lu, i);
  cplx *perm = mat(p, i);
  for (int64_t r = 0; r < m; ++r) perm[r * m + r] = 1;
  for (int64_t s = k - 1; pivots && s >= 0; --s) /* P = the exchanges undone, last first */
    for (int64_t c = 0, q = pivots[s] - 1; q != s && c < m; ++c) {
      cplx t = perm[s * m + c];
      perm[s * m + c] = perm[q * m + c];
      perm[q * m + c] = t;
    }
  for (int64_t r = 0; r < m; ++r)
    for (int64_t c = 0; c < k; ++c) mat(l, i)[r * k + c] = r == c ? 1 : r > c ? a[r * lu->n + c] : 0;
  for (int64_t r = 0; r < k; ++r)
    for (int64_t c = r; c < lu->n; ++c) mat(u, i)[r * lu->n + c] = a[r * lu->n + c];
}

static ait_status give_unpacked(ait_ref_call *call, const mats *lu, const ait_tensor *pivots, bool want_p, bool want_lu) {
  mats p = {0}, l = {0}, u = {0};
  int64_t k = ait_nn_min(lu->m, lu->n);
  ait_tensor none = ait_tensor_borrow(NULL, AIT_C128, 1, (int64_t[]){0});
  ait_status status;
  AIT_GOTO(mats_new(call, lu, lu->m, lu->m, &p));
  AIT_GOTO(mats_new(call, lu, lu->m, k, &l));
  AIT_GOTO(mats_new(call, lu, k, lu->n, &u));
  for (int64_t i = 0; i < lu->count; ++i) unpack(lu, i, pivots ? (const int32_t *)pivots->data + i * k : NULL, &p, &l, &u);
  AIT_GOTO(give(call, 0, want_p ? &p.t : &none));
  AIT_GOTO(give(call, 1, want_lu ? &l.t : &none));
  status = give(call, 2, want_lu ? &u.t : &none);
cleanup:
  ait_tensor_release(&p.t);
  ait_tensor_release(&l.t);
  ait_tensor_release(&u.t);
  return status;
}

ait_status ait_ref_linalg_lu(ait_ref_call *call) {
  mats x = {0};
  ait_tensor pivots = {0}, info = {0};
  bool pivot;
  ait_status status;
  AIT_GOTO(ait_ref_bool(call, 1, &pivot));
  AIT_GOTO(mats_arg(call, 0, &x));
  AIT_GOTO(factor(call, &x, pivot, &pivots, &info));
  status = give_unpacked(call, &x, pivot ? &pivots : NULL, pivot, true);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&pivots);
  ait_tensor_release(&info);
  return status;
}

ait_status ait_ref_lu_unpack(ait_ref_call *call) {
  mats x = {0};
  ait_tensor pivots = {0};
  const ait_tensor *p;
  bool want_lu, want_p;
  ait_status status;
  AIT_GOTO(ait_ref_tensor(call, 1, &p));
  AIT_GOTO(ait_ref_bool(call, 2, &want_lu));
  AIT_GOTO(ait_ref_bool(call, 3, &want_p));
  AIT_GOTO(mats_arg(call, 0, &x));
  AIT_GOTO(ait_tensor_cast(call->allocator, p, AIT_I32, &pivots));
  status = give_unpacked(call, &x, &pivots, want_p, want_lu);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&pivots);
  return status;
}

/* linalg_cholesky(_ex) with `upper` second; cholesky */
ait_status ait_ref_cholesky(ait_ref_call *call) {
  mats x = {0}, t = {0};
  ait_tensor info = {0};
  bool upper;
  ait_status status;
  AIT_GOTO(ait_ref_bool(call, 1, &upper));
  AIT_GOTO(square_arg(call, 0, &x));
  AIT_GOTO(lead_zeros(call, &x, AIT_I32, 0, 0, &info));
  AIT_GOTO(mats_new(call, &x, x.n, x.n, &t));
  for (int64_t i = 0; i < x.count; ++i) {
    if (upper) { /* only that triangle is read */
      ait_nn_adjoint(mat(&x, i), x.n, x.n, mat(&t, i));
      memcpy(mat(&x, i), mat(&t, i), (size_t)(x.n * x.n) * sizeof(cplx));
    }
    ((int32_t *)info.data)[i] = ait_nn_cholesky(mat(&x, i), x.n);
    ait_nn_adjoint(mat(&x, i), x.n, x.n, mat(&t, i));
  }
  if (!ait_nn_is(call, "aten.linalg_cholesky_ex") && any_info(&info))
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the matrix is not positive definite"));
  AIT_GOTO(give(call, 0, upper ? &t.t : &x.t));
  hand_over(call, 1, &info);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&t.t);
  ait_tensor_release(&info);
  return status;
}

/* ---- QR -------------------------------------------------------------------------------------------------------------------------------*/
/* linalg_qr(A, mode), qr(self, some) */
ait_status ait_ref_qr(ait_ref_call *call) {
  mats x = {0}, q = {0}, r = {0};
  ait_tensor tau = {0}, none = ait_tensor_borrow(NULL, AIT_C128, 1, (int64_t[]){0});
  const char *mode = ait_ref_string(call, 1);
  bool complete = mode && strcmp(mode, "complete") == 0, only_r = mode && strcmp(mode, "r") == 0, some = true;
  ait_status status;
  if (ait_nn_is(call, "aten.qr")) AIT_GOTO(ait_ref_bool(call, 1, &some));
  complete |= !some;
  AIT_GOTO(mats_arg(call, 0, &x));
  int64_t k = ait_nn_min(x.m, x.n), cols = complete ? x.m : k;
  AIT_GOTO(lead_zeros(call, &x, AIT_C128, 1, k, &tau));
  AIT_GOTO(mats_new(call, &x, x.m, cols, &q));
  AIT_GOTO(mats_new(call, &x, cols, x.n, &r));
  for (int64_t i = 0; i < x.count; ++i) {
    cplx *t = elements(&tau) + i * k;
    ait_nn_qr(mat(&x, i), x.m, x.n, t);
    ait_nn_qr_form(mat(&x, i), x.n, x.m, k, t, mat(&q, i), cols);
    for (int64_t a = 0; a < ait_nn_min(cols, k); ++a)
      for (int64_t b = a; b < x.n; ++b) mat(&r, i)[a * x.n + b] = mat(&x, i)[a * x.n + b];
  }
  AIT_GOTO(give(call, 0, only_r ? &none : &q.t));
  status = give(call, 1, &r.t);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&q.t);
  ait_tensor_release(&r.t);
  ait_tensor_release(&tau);
  return status;
}

ait_status ait_ref_geqrf(ait_ref_call *call) {
  mats x = {0};
  ait_tensor tau = {0};
  ait_status status;
  AIT_GOTO(mats_arg(call, 0, &x));
  int64_t k = ait_nn_min(x.m, x.n);
  AIT_GOTO(lead_zeros(call, &x, AIT_C128, 1, k, &tau));
  for (int64_t i = 0; i < x.count; ++i) ait_nn_qr(mat(&x, i), x.m, x.n, elements(&tau) + i * k);
  AIT_GOTO(give(call, 0, &x.t));
  status = give(call, 1, &tau);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&tau);
  return status;
}

ait_status ait_ref_householder_product(ait_ref_call *call) {
  mats x = {0}, q = {0};
  ait_tensor tau = {0};
  ait_status status;
  AIT_GOTO(mats_arg(call, 0, &x));
  AIT_GOTO(complex_arg(call, 1, &tau));
  int64_t k = tau.rank ? tau.shape[tau.rank - 1] : 0;
  if (k > x.n || x.n > x.m || ait_tensor_count(&tau) != k * x.count) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "shapes"));
  AIT_GOTO(mats_new(call, &x, x.m, x.n, &q));
  for (int64_t i = 0; i < x.count; ++i) ait_nn_qr_form(mat(&x, i), x.n, x.m, k, elements(&tau) + i * k, mat(&q, i), x.n);
  status = give(call, 0, &q.t);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&q.t);
  ait_tensor_release(&tau);
  return status;
}

/* ormqr(a, tau, other, left, transpose): Q other, other Q, or with Q^H */
ait_status ait_ref_ormqr(ait_ref_call *call) {
  mats a = {0}, c = {0}, t = {0};
  ait_tensor tau = {0};
  bool left, flip;
  ait_status status;
  AIT_GOTO(mats_arg(call, 0, &a));
  AIT_GOTO(complex_arg(call, 1, &tau));
  AIT_GOTO(mats_arg(call, 2, &c));
  AIT_GOTO(ait_ref_bool(call, 3, &left));
  AIT_GOTO(ait_ref_bool(call, 4, &flip));
  int64_t k = tau.rank ? tau.shape[tau.rank - 1] : 0;
  if (a.count != c.count || k > a.n || k > a.m || ait_tensor_count(&tau) != k * a.count || a.m != (left ? c.m : c.n))
    AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "shapes"));
  AIT_GOTO(mats_new(call, &c, c.n, c.m, &t));
  for (int64_t i = 0; i < a.count; ++i) {
    const cplx *ti = elements(&tau) + i * k;
    if (left) {
      ait_nn_qr_apply(mat(&a, i), a.n, a.m, k, ti, flip, mat(&c, i), c.n);
      continue;
    }
    ait_nn_adjoint(mat(&c, i), c.m, c.n, mat(&t, i)); /* C Q = (Q^H C^H)^H */
    ait_nn_qr_apply(mat(&a, i), a.n, a.m, k, ti, !flip, mat(&t, i), c.m);
    ait_nn_adjoint(mat(&t, i), c.n, c.m, mat(&c, i));
  }
  status = give(call, 0, &c.t);
cleanup:
  ait_tensor_release(&a.t);
  ait_tensor_release(&c.t);
  ait_tensor_release(&t.t);
  ait_tensor_release(&tau);
  return status;
}

/* ---- determinants ---------------------------------------------------------------------------------------------------------------------*/
typedef struct determinant {
  cplx sign, det; /* sign: of modulus 1, or 0 */
  double log_abs;
} determinant;

static cplx sign_of(cplx v, double size) {
  cplx out = 0;
  if (__imag__ v == 0) __real__ out = copysign(1, __real__ v); /* of an infinite one, too */
  else out = v / size;
  return out;
}

static determinant determinant_of(const cplx *lu, int64_t n, const int32_t *pivots) {
  determinant d = {.sign = 1, .log_abs = 0, .det = 1};
  for (int64_t i = 0; i < n; ++i) {
    cplx v = lu[i * n + i];
    double size = __imag__ v == 0 ? fabs(__real__ v) : hypot(__real__ v, __imag__ v);
    if (pivots[i] != i + 1) d.sign = -d.sign, d.det = -d.det;
    d.det *= v;
    d.log_abs += log(size);
    d.sign *= size > 0 ? sign_of(v, size) : v;
  }
  return d;
}

/* log(det): of a real matrix NaN when det is negative */
static cplx log_of(const determinant *d, bool is_complex) {
  cplx out = d->log_abs;
  if (is_complex) __imag__ out = atan2(__imag__ d->sign, __real__ d->sign);
  else if (__real__ d->sign < 0) out = NAN;
  return out;
}

/* torch factors the transpose when the matrix is row-major: it is what LAPACK reads without a copy. The determinant is the same. */
static ait_status as_torch_factors(const ait_ref_call *call, mats *x) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (!ait_tensor_is_contiguous(t)) return AIT_OK;
  mats flipped;
  AIT_TRY(mats_new(call, x, x->n, x->n, &flipped));
  for (int64_t i = 0; i < x->count; ++i)
    for (int64_t r = 0; r < x->n; ++r)
      for (int64_t c = 0; c < x->n; ++c) mat(&flipped, i)[c * x->n + r] = mat(x, i)[r * x->n + c];
  ait_tensor_release(&x->t);
  *x = flipped;
  return AIT_OK;
}

/* linalg_det, det, linalg_slogdet, slogdet, logdet; _linalg_det and _linalg_slogdet give the factors, too */
ait_status ait_ref_det(ait_ref_call *call) {
  mats x = {0};
  ait_tensor pivots = {0}, info = {0}, first = {0}, second = {0};
  bool slog = strstr(call->node->op, "slogdet") != NULL, log_only = ait_nn_is(call, "aten.logdet");
  ait_status status;
  AIT_GOTO(square_arg(call, 0, &x));
  if (ait_nn_starts(call, "aten._linalg")) AIT_GOTO(as_torch_factors(call, &x));
  AIT_GOTO(factor(call, &x, true, &pivots, &info));
  AIT_GOTO(lead_zeros(call, &x, AIT_C128, 0, 0, &first));
  AIT_GOTO(lead_zeros(call, &x, AIT_C128, 0, 0, &second));
  for (int64_t i = 0; i < x.count; ++i) {
    determinant d = determinant_of(mat(&x, i), x.n, (const int32_t *)pivots.data + i * x.n);
    elements(&first)[i] = slog ? d.sign : log_only ? log_of(&d, ait_dtype_is_complex(dtype_of(call, 0))) : d.det;
    elements(&second)[i] = d.log_abs;
  }
  AIT_GOTO(give(call, 0, &first));
  if (slog) AIT_GOTO(ait_nn_result(call, 1, ait_nn_dtype(call, 1, ait_dtype_component(dtype_of(call, 0))), &second));
  if (ait_nn_starts(call, "aten._linalg")) {
    AIT_GOTO(give(call, slog ? 2 : 1, &x.t));
    hand_over(call, slog ? 3 : 2, &pivots);
  }
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&pivots);
  ait_tensor_release(&info);
  ait_tensor_release(&first);
  ait_tensor_release(&second);
  return status;
}

/* ---- solving --------------------------------------------------------------------------------------------------------------------------*/
/* Lead dims of both broadcast. */
static ait_status broadcast_pair(const ait_ref_call *call, const ait_tensor *a, const ait_tensor *b, mats *out_a, mats *out_b) {
  ait_tensor la = *a, lb = *b;
  int64_t shape[AIT_MAX_RANK];
  int32_t rank;
  if (a->rank < 2 || b->rank < 2) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a matrix has two dims");
  la.rank -= 2, lb.rank -= 2;
  const ait_tensor *leads[2] = {&la, &lb};
  AIT_TRY(ait_ref_broadcast(call, leads, 2, &rank, shape));
  memcpy(shape + rank, a->shape + a->rank - 2, 2 * sizeof *shape);
  ait_tensor va = ait_ref_expand(a, rank + 2, shape);
  AIT_TRY(mats_of(call, &va, out_a));
  memcpy(shape + rank, b->shape + b->rank - 2, 2 * sizeof *shape);
  ait_tensor vb = ait_ref_expand(b, rank + 2, shape);
  return mats_of(call, &vb, out_b);
}

/* X with A X = B, or X A = B as A^H X^H = B^H. adjoint: A^H in place of A. */
static void solve_one(const cplx *lu, int64_t n, const int32_t *pivots, bool left, bool adjoint, cplx *b, int64_t bm, int64_t bn,
                      cplx *work) {
  if (left) {
    ait_nn_lu_solve(lu, n, pivots, adjoint, b, bn);
    return;
  }
  ait_nn_adjoint(b, bm, bn, work);
  ait_nn_lu_solve(lu, n, pivots, !adjoint, work, bm);
  ait_nn_adjoint(work, bn, bm, b);
}

/* A is torch's choice of vector when B has one dim less than A and fits its lead. */
static bool is_vector_rhs(const ait_tensor *a, const ait_tensor *b) {
  if (b->rank == 1) return true;
  if (b->rank != a->rank - 1) return false;
  for (int32_t d = 0; d < b->rank; ++d)
    if (b->shape[d] != a->shape[d]) return false;
  return true;
}

/* linalg_solve, linalg_solve_ex, _linalg_solve_ex */
ait_status ait_ref_solve(ait_ref_call *call) {
  const ait_tensor *ta, *tb;
  bool left;
  AIT_TRY(ait_ref_tensor(call, 0, &ta));
  AIT_TRY(ait_ref_tensor(call, 1, &tb));
  AIT_TRY(ait_ref_bool(call, 2, &left));
  mats a = {0}, b = {0}, work = {0};
  ait_tensor pivots = {0}, info = {0}, rhs = *tb;
  bool vector = is_vector_rhs(ta, tb);
  if (vector) rhs.shape[rhs.rank] = 1, rhs.strides[rhs.rank++] = 1;
  ait_status status;
  AIT_GOTO(broadcast_pair(call, ta, &rhs, &a, &b));
  if (a.m != a.n || (left ? b.m : b.n) != a.n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "shapes"));
  AIT_GOTO(factor(call, &a, true, &pivots, &info));
  if (ait_nn_is(call, "aten.linalg_solve") && any_info(&info)) AIT_GOTO(singular(call));
  AIT_GOTO(mats_new(call, &b, b.n, b.m, &work));
  for (int64_t i = 0; i < a.count; ++i)
    solve_one(mat(&a, i), a.n, (const int32_t *)pivots.data + i * a.n, left, false, mat(&b, i), b.m, b.n, mat(&work, i));
  ait_tensor out = b.t;
  if (vector) out.rank--;
  AIT_GOTO(give(call, 0, &out));
  bool factors = ait_nn_is(call, "aten._linalg_solve_ex"); /* result, LU, pivots, info */
  if (factors) {
    AIT_GOTO(give(call, 1, &a.t));
    hand_over(call, 2, &pivots);
  }
  hand_over(call, factors ? 3 : 1, &info);
cleanup:
  ait_tensor_release(&a.t);
  ait_tensor_release(&b.t);
  ait_tensor_release(&work.t);
  ait_tensor_release(&pivots);
  ait_tensor_release(&info);
  return status;
}

/* linalg_lu_solve(LU, pivots, B, left, adjoint); lu_solve(B, LU, pivots) */
ait_status ait_ref_lu_solve(ait_ref_call *call) {
  bool old = ait_nn_is(call, "aten.lu_solve"), left = true, adjoint = false;
  const ait_tensor *tl, *tp, *tb;
  AIT_TRY(ait_ref_tensor(call, old ? 1 : 0, &tl));
  AIT_TRY(ait_ref_tensor(call, old ? 2 : 1, &tp));
  AIT_TRY(ait_ref_tensor(call, old ? 0 : 2, &tb));
  if (!old) AIT_TRY(ait_ref_bool(call, 3, &left));
  if (!old) AIT_TRY(ait_ref_bool(call, 4, &adjoint));
  mats a = {0}, b = {0}, work = {0};
  ait_tensor pivots = {0};
  int64_t shape[AIT_MAX_RANK];
  ait_status status;
  AIT_GOTO(broadcast_pair(call, tl, tb, &a, &b));
  if (a.m != a.n || (left ? b.m : b.n) != a.n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "shapes"));
  memcpy(shape, a.t.shape, sizeof shape);
  ait_tensor expanded = ait_ref_expand(tp, a.t.rank - 1, shape);
  AIT_GOTO(ait_tensor_cast(call->allocator, &expanded, AIT_I32, &pivots));
  AIT_GOTO(mats_new(call, &b, b.n, b.m, &work));
  for (int64_t i = 0; i < a.count; ++i)
    solve_one(mat(&a, i), a.n, (const int32_t *)pivots.data + i * a.n, left, adjoint, mat(&b, i), b.m, b.n, mat(&work, i));
  status = give(call, 0, &b.t);
cleanup:
  ait_tensor_release(&a.t);
  ait_tensor_release(&b.t);
  ait_tensor_release(&work.t);
  ait_tensor_release(&pivots);
  return status;
}

static ait_status inverse_of(const ait_ref_call *call, mats *x, mats *out, ait_tensor *info) {
  ait_tensor pivots = {0};
  ait_status status;
  AIT_GOTO(factor(call, x, true, &pivots, info));
  AIT_GOTO(mats_new(call, x, x->n, x->n, out));
  for (int64_t i = 0; i < x->count; ++i) {
    cplx *b = mat(out, i);
    for (int64_t j = 0; j < x->n; ++j) b[j * x->n + j] = 1;
    ait_nn_lu_solve(mat(x, i), x->n, (const int32_t *)pivots.data + i * x->n, false, b, x->n);
  }
cleanup:
  ait_tensor_release(&pivots);
  return status;
}

/* linalg_inv, inverse, linalg_inv_ex */
ait_status ait_ref_inv(ait_ref_call *call) {
  mats x = {0}, out = {0};
  ait_tensor info = {0};
  ait_status status;
  AIT_GOTO(square_arg(call, 0, &x));
  AIT_GOTO(inverse_of(call, &x, &out, &info));
  if (!ait_nn_is(call, "aten.linalg_inv_ex") && any_info(&info)) AIT_GOTO(singular(call));
  AIT_GOTO(give(call, 0, &out.t));
  hand_over(call, 1, &info);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&out.t);
  ait_tensor_release(&info);
  return status;
}

ait_status ait_ref_tensorinv(ait_ref_call *call) {
  const ait_tensor *t;
  int64_t split, shape[AIT_MAX_RANK];
  mats x = {0}, out = {0};
  ait_tensor info = {0}, flat = {0};
  ait_status status;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  AIT_TRY(ait_ref_int(call, 1, &split));
  if (split < 1 || split > t->rank) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "ind out of range");
  AIT_GOTO(ait_nn_complex(call, t, &flat));
  int64_t sizes[2] = {ait_nn_span(t, 0, (int32_t)split), ait_nn_span(t, (int32_t)split, t->rank)};
  ait_tensor view = ait_tensor_borrow(flat.data, AIT_C128, 2, sizes);
  if (sizes[0] != sizes[1]) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the tensor is not square"));
  AIT_GOTO(mats_of(call, &view, &x));
  AIT_GOTO(inverse_of(call, &x, &out, &info));
  if (any_info(&info)) AIT_GOTO(singular(call));
  int32_t n = t->rank - (int32_t)split;
  memcpy(shape, t->shape + split, (size_t)n * sizeof *shape);
  memcpy(shape + n, t->shape, (size_t)split * sizeof *shape);
  view = ait_tensor_borrow(out.t.data, AIT_C128, t->rank, shape);
  status = give(call, 0, &view);
cleanup:
  ait_tensor_release(&flat);
  ait_tensor_release(&x.t);
  ait_tensor_release(&out.t);
  ait_tensor_release(&info);
  return status;
}

/* Solves A x = b where A's last dims are x's shape; `dims` of A are moved to its end first. */
ait_status ait_ref_tensorsolve(ait_ref_call *call) {
  const ait_tensor *ta, *tb;
  int64_t dims[AIT_MAX_RANK], n;
  int32_t count, order[AIT_MAX_RANK], at = 0, last = 0;
  bool moved[AIT_MAX_RANK] = {false};
  AIT_TRY(ait_ref_tensor(call, 0, &ta));
  AIT_TRY(ait_ref_tensor(call, 1, &tb));
  AIT_TRY(ait_ref_ints(call, 2, dims, &count));
  int32_t ends[AIT_MAX_RANK];
  for (int32_t i = 0; i < count; ++i) {
    AIT_TRY(ait_ref_dim(call, dims[i], ta->rank, &ends[last]));
    moved[ends[last++]] = true;
  }
  for (int32_t d = 0; d < ta->rank; ++d)
    if (!moved[d]) order[at++] = d;
  for (int32_t i = 0; i < last; ++i) order[at++] = ends[i];
  ait_tensor v = *ta, fa = {0}, fb = {0}, pivots = {0}, info = {0};
  for (int32_t d = 0; d < ta->rank; ++d) v.shape[d] = ta->shape[order[d]], v.strides[d] = ta->strides[order[d]];
  mats a = {0};
  ait_status status;
  n = ait_tensor_count(tb);
  if (ait_tensor_count(ta) != n * n || tb->rank > ta->rank)
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the tensor is not square");
  AIT_GOTO(ait_nn_complex(call, &v, &fa));
  AIT_GOTO(ait_nn_complex(call, tb, &fb));
  ait_tensor square = ait_tensor_borrow(fa.data, AIT_C128, 2, (int64_t[]){n, n});
  AIT_GOTO(mats_of(call, &square, &a));
  AIT_GOTO(factor(call, &a, true, &pivots, &info));
  if (any_info(&info)) AIT_GOTO(singular(call));
  ait_nn_lu_solve(mat(&a, 0), n, pivots.data, false, fb.data, 1);
  ait_tensor out = ait_tensor_borrow(fb.data, AIT_C128, ta->rank - tb->rank, v.shape + tb->rank);
  status = give(call, 0, &out);
cleanup:
  ait_tensor_release(&fa);
  ait_tensor_release(&fb);
  ait_tensor_release(&a.t);
  ait_tensor_release(&pivots);
  ait_tensor_release(&info);
  return status;
}

/* linalg_solve_triangular(A, B, upper, left, unit); triangular_solve(B, A, upper, transpose, unit) -> (solution, clone of A) */
ait_status ait_ref_triangular(ait_ref_call *call) {
  bool old = ait_nn_is(call, "aten.triangular_solve"), upper, left = true, flip = false, unit;
  const ait_tensor *ta, *tb;
  AIT_TRY(ait_ref_tensor(call, old ? 1 : 0, &ta));
  AIT_TRY(ait_ref_tensor(call, old ? 0 : 1, &tb));
  AIT_TRY(ait_ref_bool(call, 2, &upper));
  AIT_TRY(ait_ref_bool(call, 3, old ? &flip : &left));
  AIT_TRY(ait_ref_bool(call, 4, &unit));
  mats a = {0}, b = {0}, work = {0};
  ait_status status;
  AIT_GOTO(broadcast_pair(call, ta, tb, &a, &b));
  if (a.m != a.n || (left ? b.m : b.n) != a.n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "shapes"));
  AIT_GOTO(mats_new(call, &b, b.n, b.m, &work));
  for (int64_t i = 0; i < a.count; ++i) {
    if (left) {
      ait_nn_triangular_solve(mat(&a, i), a.n, upper, flip ? AIT_NN_TRANSPOSE : AIT_NN_PLAIN, unit, mat(&b, i), b.n);
      continue;
    }
    ait_nn_adjoint(mat(&b, i), b.m, b.n, mat(&work, i));
    ait_nn_triangular_solve(mat(&a, i), a.n, upper, AIT_NN_ADJOINT, unit, mat(&work, i), b.m);
    ait_nn_adjoint(mat(&work, i), b.n, b.m, mat(&b, i));
  }
  AIT_GOTO(give(call, 0, &b.t));
  if (old) status = give(call, 1, &a.t);
cleanup:
  ait_tensor_release(&a.t);
  ait_tensor_release(&b.t);
  ait_tensor_release(&work.t);
  return status;
}

/* cholesky_solve(B, L, upper): L L^H X = B; cholesky_inverse(L, upper) */
ait_status ait_ref_cholesky_solve(ait_ref_call *call) {
  bool inverse = ait_nn_is(call, "aten.cholesky_inverse"), upper;
  const ait_tensor *tl, *tb;
  AIT_TRY(ait_ref_tensor(call, inverse ? 0 : 1, &tl));
  AIT_TRY(ait_ref_tensor(call, 0, &tb));
  AIT_TRY(ait_ref_bool(call, inverse ? 1 : 2, &upper));
  mats l = {0}, b = {0};
  ait_status status;
  AIT_GOTO(broadcast_pair(call, tl, tb, &l, &b));
  if (l.m != l.n || b.m != l.n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "shapes"));
  for (int64_t i = 0; i < l.count; ++i) {
    cplx *x = mat(&b, i);
    if (inverse)
      for (int64_t j = 0; j < b.m * b.n; ++j) x[j] = j % (b.n + 1) == 0;
    ait_nn_triangular_solve(mat(&l, i), l.n, upper, upper ? AIT_NN_ADJOINT : AIT_NN_PLAIN, false, x, b.n);
    ait_nn_triangular_solve(mat(&l, i), l.n, upper, upper ? AIT_NN_PLAIN : AIT_NN_ADJOINT, false, x, b.n);
  }
  status = give(call, 0, &b.t);
cleanup:
  ait_tensor_release(&l.t);
  ait_tensor_release(&b.t);
  return status;
}

/* Errors of the *_ex operators, as one statement of the graph. */
ait_status ait_ref_check_errors(ait_ref_call *call) {
  const ait_tensor *info;
  ait_tensor flat;
  AIT_TRY(ait_ref_tensor(call, 0, &info));
  AIT_TRY(ait_tensor_cast(call->allocator, info, AIT_I32, &flat));
  bool bad = any_info(&flat);
  ait_tensor_release(&flat);
  const char *name = ait_ref_string(call, 1);
  return bad ? ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "%s: the matrix is singular or not positive definite", name ? name : "linalg")
             : AIT_OK;
}

/* ---- LDL -------------------------------------------------------------------------------------------------------------------------*/
ait_status ait_ref_ldl_factor(ait_ref_call *call) {
  mats x = {0};
  ait_tensor pivots = {0}, info = {0};
  bool hermitian;
  ait_status status;
  AIT_GOTO(ait_ref_bool(call, 1, &hermitian));
  AIT_GOTO(square_arg(call, 0, &x));
  AIT_GOTO(lead_zeros(call, &x, AIT_I32, 1, x.n, &pivots));
  AIT_GOTO(lead_zeros(call, &x, AIT_I32, 0, 0, &info));
  for (int64_t i = 0; i < x.count; ++i)
    ((int32_t *)info.data)[i] = ait_nn_ldl(mat(&x, i), x.n, hermitian, (int32_t *)pivots.data + i * x.n);
  if (ait_nn_is(call, "aten.linalg_ldl_factor") && any_info(&info)) AIT_GOTO(singular(call));
  AIT_GOTO(give(call, 0, &x.t));
  hand_over(call, 1, &pivots);
  hand_over(call, 2, &info);
cleanup:
  ait_tensor_release(&x.t);
  ait_tensor_release(&pivots);
  ait_tensor_release(&info);
  return status;
}

ait_status ait_ref_ldl_solve(ait_ref_call *call) {
  const ait_tensor *tl, *tp, *tb;
  AIT_TRY(ait_ref_tensor(call, 0, &tl));
  AIT_TRY(ait_ref_tensor(call, 1, &tp));
  AIT_TRY(ait_ref_tensor(call, 2, &tb));
  mats a = {0}, b = {0};
  ait_tensor pivots = {0};
  bool hermitian;
  ait_status status;
  AIT_GOTO(ait_ref_bool(call, 3, &hermitian));
  AIT_GOTO(broadcast_pair(call, tl, tb, &a, &b));
  if (a.m != a.n || b.m != a.n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "shapes"));
  ait_tensor expanded = ait_ref_expand(tp, a.t.rank - 1, a.t.shape);
  AIT_GOTO(ait_tensor_cast(call->allocator, &expanded, AIT_I32, &pivots));
  for (int64_t i = 0; i < ait_tensor_count(&pivots); ++i) {
    int32_t p = ((const int32_t *)pivots.data)[i];
    if (p == 0 || p > a.n || -p > a.n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "pivot out of range"));
  }
  for (int64_t i = 0; i < a.count; ++i)
    ait_nn_ldl_solve(mat(&a, i), a.n, hermitian, (const int32_t *)pivots.data + i * a.n, mat(&b, i), b.n);
  status = give(call, 0, &b.t);
cleanup:
  ait_tensor_release(&a.t);
  ait_tensor_release(&b.t);
  ait_tensor_release(&pivots);
  return status;
}
