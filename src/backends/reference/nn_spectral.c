/* Eigenvalues, singular values, and what is made of them: pseudo-inverse, rank, condition; powers and the exponential of matrices. */
#include "backends/reference/nn.h"
#include "backends/reference/nn_decompose.h"

typedef ait_nn_cplx cplx;

static cplx *elements(const ait_tensor *t) { return (cplx *)t->data; }

/* [lead.., m, n] as C128; of a real result the real parts are kept */
static ait_status matrices(const ait_ref_call *call, uint32_t arg, bool square, ait_tensor *x, int64_t *count, int64_t *m, int64_t *n) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, arg, &t));
  if (t->rank < 2 || (square && t->shape[t->rank - 1] != t->shape[t->rank - 2]))
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, square ? "a square matrix is needed" : "a matrix has two dims");
  *m = t->shape[t->rank - 2], *n = t->shape[t->rank - 1];
  *count = ait_nn_span(t, 0, t->rank - 2);
  return ait_nn_complex(call, t, x);
}

/* Zeros: lead dims of x, then `extra` given dims. */
static ait_status lead_new(const ait_ref_call *call, const ait_tensor *x, ait_dtype dtype, int32_t extra, int64_t a, int64_t b,
                           ait_tensor *out) {
  int64_t shape[AIT_MAX_RANK];
  memcpy(shape, x->shape, sizeof shape);
  if (extra > 0) shape[x->rank - 2] = a;
  if (extra > 1) shape[x->rank - 1] = b;
  return ait_nn_zeros(call, dtype, x->rank - 2 + extra, shape, out);
}

static ait_dtype dtype_of(const ait_ref_call *call, uint32_t k) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, 0);
  return ait_nn_dtype(call, k, t ? t->dtype : AIT_F32);
}

/* ---- symmetric and general eigenvalues ------------------------------------------------------------------------------------------------*/
/* Makes the matrix Hermitian from one of its triangles. */
static void symmetrise(cplx *a, int64_t n, bool upper) {
  for (int64_t i = 0; i < n; ++i) {
    a[i * n + i] = __real__ a[i * n + i];
    for (int64_t j = 0; j < i; ++j) {
      if (upper) a[i * n + j] = ~a[j * n + i];
      else a[j * n + i] = ~a[i * n + j];
    }
  }
}

static ait_dtype real_dtype_of(const ait_ref_call *call, uint32_t k) {
  const ait_tensor *t = ait_ref_tensor_or_null(call, 0);
  return ait_nn_dtype(call, k, t ? ait_dtype_component(t->dtype) : AIT_F32);
}

/* linalg_eigh, linalg_eigvalsh, _linalg_eigh(A, UPLO, compute_v) */
ait_status ait_ref_eigh(ait_ref_call *call) {
  ait_tensor x = {0}, w = {0}, v = {0};
  int64_t count, m, n;
  const char *which = ait_ref_string(call, 1);
  bool upper = which && (which[0] == 'U' || which[0] == 'u');
  ait_status status;
  AIT_GOTO(matrices(call, 0, true, &x, &count, &m, &n));
  AIT_GOTO(lead_new(call, &x, AIT_F64, 1, n, 0, &w));
  AIT_GOTO(lead_new(call, &x, AIT_C128, 2, n, n, &v));
  for (int64_t i = 0; i < count; ++i) {
    symmetrise(elements(&x) + i * n * n, n, upper);
    ait_nn_eigh(elements(&x) + i * n * n, n, ait_nn_data_mut(&w) + i * n, elements(&v) + i * n * n);
  }
  AIT_GOTO(ait_nn_result(call, 0, real_dtype_of(call, 0), &w));
  bool vectors = true;
  if (ait_nn_is(call, "aten._linalg_eigh")) AIT_GOTO(ait_ref_bool(call, 2, &vectors));
  if (!vectors) v.rank = 1, v.shape[0] = 0;
  status = ait_nn_result(call, 1, dtype_of(call, 1), &v);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&w);
  ait_tensor_release(&v);
  return status;
}

static ait_status eig_all(const ait_ref_call *call, const ait_tensor *a, int64_t count, int64_t n, cplx *w, cplx *v, cplx *work) {
  for (int64_t i = 0; i < count; ++i)
    if (!ait_nn_eig(elements(a) + i * n * n, n, w + i * n, v + i * n * n, work))
      return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the eigenvalues did not converge");
  return AIT_OK;
}

/* Temporary memory. */
static cplx *complexes(const ait_ref_call *call, int64_t count) {
  size_t bytes;
  if (count < 0 || ait_mul_overflows((size_t)count, sizeof(cplx), &bytes)) return NULL;
  return ait_alloc(call->allocator, ait_nn_max(1, (int64_t)bytes), 64);
}
static void complexes_free(const ait_ref_call *call, cplx *p, int64_t count) {
  ait_free(call->allocator, p, ait_nn_max(1, count * (int64_t)sizeof(cplx)));
}

/* linalg_eig, linalg_eigvals: complex results */
ait_status ait_ref_eig(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor a = {0}, w = {0}, v = {0};
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  if (t->rank < 2 || t->shape[t->rank - 1] != t->shape[t->rank - 2])
    return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a square matrix is needed");
  int64_t n = t->shape[t->rank - 1], count = ait_nn_span(t, 0, t->rank - 2);
  cplx *work = complexes(call, n * n + n);
  if (!work) return AIT_OOM();
  ait_status status;
  AIT_GOTO(ait_tensor_cast(call->allocator, t, AIT_C128, &a));
  AIT_GOTO(lead_new(call, &a, AIT_C128, 1, n, 0, &w));
  AIT_GOTO(lead_new(call, &a, AIT_C128, 2, n, n, &v));
  AIT_GOTO(eig_all(call, &a, count, n, w.data, v.data, work));
  ait_dtype otherwise = t->dtype == AIT_F64 || t->dtype == AIT_C128 ? AIT_C128 : AIT_C64;
  AIT_GOTO(ait_nn_result(call, 0, ait_nn_dtype(call, 0, otherwise), &w));
  if (ait_nn_is(call, "aten.linalg_eig")) status = ait_nn_result(call, 1, ait_nn_dtype(call, 1, otherwise), &v);
cleanup:
  complexes_free(call, work, n * n + n);
  ait_tensor_release(&a);
  ait_tensor_release(&w);
  ait_tensor_release(&v);
  return status;
}

/* ---- singular values ------------------------------------------------------------------------------------------------------------------*/
static void widen_columns(const cplx *a, int64_t m, int64_t from, cplx *out, int64_t to) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < to; ++j) out[i * to + j] = j < from ? a[i * from + j] : 0;
}

/* a (m x n) = u (m x ucols) diag(s) vh (vrows x n); ucols, vrows: min(m, n) or the full size. work: 3 * (m + n)^2 elements. */
static void full_svd(const cplx *a, int64_t m, int64_t n, double *s, cplx *u, int64_t ucols, cplx *vh, int64_t vrows, cplx *work) {
  int64_t k = m < n ? m : n, big = m < n ? n : m;
  cplx *x = work, *v = x + big * k, *wide = v + k * k;
  bool flip = m < n;
  if (flip) ait_nn_adjoint(a, m, n, x);
  else memcpy(x, a, (size_t)(m * n) * sizeof *x);
  ait_nn_svd(x, big, k, s, v);
  int64_t rank = k;
  while (rank > 0 && s[rank - 1] == 0) --rank;
  ait_nn_complete_basis(x, big, k, rank);
  int64_t big_cols = flip ? vrows : ucols;
  widen_columns(x, big, k, wide, big_cols);
  ait_nn_complete_basis(wide, big, big_cols, k);
  if (flip) { /* A^H = X S V^H, so A = V S X^H */
    memcpy(u, v, (size_t)(k * k) * sizeof *u);
    ait_nn_adjoint(wide, big, vrows, vh);
  } else {
    memcpy(u, wide, (size_t)(m * ucols) * sizeof *u);
    ait_nn_adjoint(v, k, k, vh);
  }
}

ait_status ait_nn_singular_values(const ait_ref_call *call, const cplx *a, int64_t m, int64_t n, double *out) {
  int64_t k = m < n ? m : n, big = m < n ? n : m, size = big * k + k * k;
  cplx *work = complexes(call, size);
  if (!work) return AIT_OOM();
  if (m < n) ait_nn_adjoint(a, m, n, work);
  else memcpy(work, a, (size_t)(m * n) * sizeof *work);
  ait_nn_svd(work, big, k, out, work + big * k);
  complexes_free(call, work, size);
  return AIT_OK;
}

/* linalg_svd(A, full_matrices), svd(self, some, compute_uv): the latter gives V, not its transpose */
ait_status ait_ref_svd(ait_ref_call *call) {
  bool old = ait_nn_is(call, "aten.svd"), flag, vectors = true;
  ait_tensor x = {0}, u = {0}, s = {0}, vh = {0};
  int64_t count, m, n;
  ait_status status;
  cplx *work = NULL;
  AIT_TRY(ait_ref_bool(call, 1, &flag));
  if (old || ait_nn_is(call, "aten._linalg_svd")) AIT_TRY(ait_ref_bool(call, 2, &vectors));
  bool full = old ? !flag : flag;
  AIT_TRY(matrices(call, 0, false, &x, &count, &m, &n));
  int64_t k = m < n ? m : n, ucols = full || !vectors ? m : k, vrows = full || !vectors ? n : k, size = 3 * (m + n) * (m + n);
  if (!(work = complexes(call, size))) AIT_GOTO(AIT_OOM());
  AIT_GOTO(lead_new(call, &x, AIT_C128, 2, m, ucols, &u));
  AIT_GOTO(lead_new(call, &x, AIT_F64, 1, k, 0, &s));
  AIT_GOTO(lead_new(call, &x, AIT_C128, 2, vrows, n, &vh));
  for (int64_t i = 0; i < count; ++i)
    full_svd(elements(&x) + i * m * n, m, n, ait_nn_data_mut(&s) + i * k, elements(&u) + i * m * ucols, ucols,
             elements(&vh) + i * vrows * n, vrows, work);
  if (!vectors && old) {
    memset(u.data, 0, ait_tensor_bytes(&u));
    memset(vh.data, 0, ait_tensor_bytes(&vh));
  } else if (!vectors) {
    u.rank = vh.rank = 1, u.shape[0] = vh.shape[0] = 0;
  }
  AIT_GOTO(ait_nn_result(call, 0, dtype_of(call, 0), &u));
  AIT_GOTO(ait_nn_result(call, 1, real_dtype_of(call, 1), &s));
  if (!old) {
    status = ait_nn_result(call, 2, dtype_of(call, 2), &vh);
    goto cleanup;
  }
  ait_tensor v;
  AIT_GOTO(lead_new(call, &x, AIT_C128, 2, n, vrows, &v));
  for (int64_t i = 0; i < count; ++i) ait_nn_adjoint(elements(&vh) + i * vrows * n, vrows, n, elements(&v) + i * n * vrows);
  status = ait_nn_result(call, 2, dtype_of(call, 2), &v);
  ait_tensor_release(&v);
cleanup:
  complexes_free(call, work, size);
  ait_tensor_release(&x);
  ait_tensor_release(&u);
  ait_tensor_release(&s);
  ait_tensor_release(&vh);
  return status;
}

ait_status ait_ref_svdvals(ait_ref_call *call) {
  ait_tensor x = {0}, s = {0};
  int64_t count, m, n;
  ait_status status;
  AIT_GOTO(matrices(call, 0, false, &x, &count, &m, &n));
  int64_t k = m < n ? m : n;
  AIT_GOTO(lead_new(call, &x, AIT_F64, 1, k, 0, &s));
  for (int64_t i = 0; i < count; ++i) AIT_GOTO(ait_nn_singular_values(call, elements(&x) + i * m * n, m, n, ait_nn_data_mut(&s) + i * k));
  status = ait_nn_result(call, 0, real_dtype_of(call, 0), &s);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&s);
  return status;
}

/* ---- what is small: tolerances --------------------------------------------------------------------------------------------------------*/
static double epsilon_of(ait_dtype d) { return d == AIT_F64 || d == AIT_C128 ? 0x1p-52 : 0x1p-23; }

/* max(m, n) * eps of the dtype in the user's program */
static double default_rtol(const ait_ref_call *call, const ait_tensor *t, int64_t m, int64_t n) {
  return (double)ait_nn_max(m, n) * epsilon_of(ait_nn_declared_dtype(call, 0, t->dtype) == AIT_F64 ? AIT_F64 : t->dtype);
}

/* The tolerance of each matrix: lead dims of x. A tensor argument is broadcast. */
static ait_status tolerance(const ait_ref_call *call, uint32_t arg, const ait_tensor *x, double otherwise, ait_tensor *out) {
  AIT_TRY(lead_new(call, x, AIT_F64, 0, 0, 0, out));
  ait_tensor filled = ait_tensor_borrow(&otherwise, AIT_F64, 0, NULL);
  if (arg != AIT_NO_INDEX && ait_ref_is_tensor(call, arg)) {
    const ait_tensor *t;
    AIT_TRY(ait_ref_tensor(call, arg, &t));
    const ait_tensor *both[2] = {t, out};
    int64_t shape[AIT_MAX_RANK];
    int32_t rank;
    AIT_TRY(ait_ref_broadcast(call, both, 2, &rank, shape));
    if (rank != out->rank) return ait_ref_error(call, AIT_CODE_UNSUPPORTED, "more tolerances than matrices");
    filled = *t;
  } else if (arg != AIT_NO_INDEX && !ait_ref_is_none(call, arg)) {
    AIT_TRY(ait_ref_float(call, arg, &otherwise));
  }
  ait_tensor wide = ait_ref_expand(&filled, out->rank, out->shape);
  return ait_tensor_copy(out, &wide);
}

/* atol and rtol arguments; rtol defaults to max(m, n) * eps unless atol is given and above zero. */
static ait_status tolerances(const ait_ref_call *call, uint32_t atol_arg, uint32_t rtol_arg, const ait_tensor *x, int64_t big,
                             ait_tensor *atol, ait_tensor *rtol) {
  const ait_tensor *t;
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  double eps = default_rtol(call, t, big, 0);
  bool given = rtol_arg != AIT_NO_INDEX && !ait_ref_is_none(call, rtol_arg);
  AIT_TRY(tolerance(call, atol_arg, x, 0, atol));
  AIT_TRY(tolerance(call, rtol_arg, x, eps, rtol));
  for (int64_t i = 0; !given && i < ait_tensor_count(atol); ++i)
    if (ait_nn_data(atol)[i] > 0) ait_nn_data_mut(rtol)[i] = 0;
  return AIT_OK;
}

static double limit_of(const ait_tensor *atol, const ait_tensor *rtol, int64_t i, double largest) {
  return fmax(ait_nn_data(atol)[i], ait_nn_data(rtol)[i] * largest);
}

/* The argument `hermitian`: only the lower triangle counts. */
static ait_status lower_only(const ait_ref_call *call, uint32_t arg, const ait_tensor *x, int64_t count, int64_t m, int64_t n) {
  bool hermitian = false;
  if (arg < ait_ref_arg_count(call)) AIT_TRY(ait_ref_bool(call, arg, &hermitian));
  if (hermitian && m != n) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a square matrix is needed");
  for (int64_t i = 0; hermitian && i < count; ++i) symmetrise(elements(x) + i * n * n, n, false);
  return AIT_OK;
}

/* linalg_matrix_rank: input, atol, rtol or one absolute tolerance: how many singular values are above the tolerance */
ait_status ait_ref_matrix_rank(ait_ref_call *call) {
  ait_tensor x = {0}, out = {0};
  int64_t count, m, n;
  ait_tensor atol = {0}, rtol = {0};
  double *s = NULL;
  ait_status status;
  AIT_TRY(matrices(call, 0, false, &x, &count, &m, &n));
  int64_t k = m < n ? m : n;
  if (!(s = ait_nn_doubles(call, k + 1))) AIT_GOTO(AIT_OOM());
  bool one = ait_nn_is(call, "aten.linalg_matrix_rank") || ait_nn_is(call, "aten.linalg_matrix_rank.tol_tensor");
  AIT_GOTO(tolerances(call, 1, one ? AIT_NO_INDEX : 2, &x, one ? 0 : m > n ? m : n, &atol, &rtol));
  AIT_GOTO(lower_only(call, one ? 2 : 3, &x, count, m, n));
  AIT_GOTO(lead_new(call, &x, AIT_F64, 0, 0, 0, &out));
  for (int64_t i = 0; i < count; ++i) {
    AIT_GOTO(ait_nn_singular_values(call, elements(&x) + i * m * n, m, n, s));
    double limit = k ? limit_of(&atol, &rtol, i, s[0]) : 0;
    for (int64_t j = 0; j < k; ++j) ait_nn_data_mut(&out)[i] += s[j] > limit;
  }
  status = ait_nn_result(call, 0, AIT_I64, &out);
cleanup:
  ait_nn_doubles_free(call, s, k + 1);
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  ait_tensor_release(&atol);
  ait_tensor_release(&rtol);
  return status;
}

/* For full_svd with k columns and rows: u, vh, its work, and the singular values. */
static int64_t svd_memory(int64_t m, int64_t n) {
  int64_t k = m < n ? m : n;
  return m * k + k * n + 3 * (m + n) * (m + n) + k;
}

/* linalg_pinv (atol, rtol), or with rcond as pinverse: V S^+ U^H */
ait_status ait_ref_pinv(ait_ref_call *call) {
  bool old = strstr(call->node->op, ".atol_rtol") == NULL;
  ait_tensor x = {0}, out = {0}, atol = {0}, rtol = {0};
  int64_t count, m, n;
  cplx *memory = NULL;
  ait_status status;
  AIT_TRY(matrices(call, 0, false, &x, &count, &m, &n));
  int64_t k = m < n ? m : n, size = svd_memory(m, n);
  if (!(memory = complexes(call, size))) AIT_GOTO(AIT_OOM());
  AIT_GOTO(tolerances(call, old ? AIT_NO_INDEX : 1, old ? 1 : 2, &x, m > n ? m : n, &atol, &rtol));
  AIT_GOTO(lower_only(call, old ? 2 : 3, &x, count, m, n));
  AIT_GOTO(lead_new(call, &x, AIT_C128, 2, n, m, &out));
  cplx *u = memory, *vh = u + m * k, *work = vh + k * n;
  double *s = (double *)(work + 3 * (m + n) * (m + n));
  for (int64_t i = 0; i < count; ++i) {
    full_svd(elements(&x) + i * m * n, m, n, s, u, k, vh, k, work);
    double limit = k ? limit_of(&atol, &rtol, i, s[0]) : 0;
    cplx *o = elements(&out) + i * n * m;
    for (int64_t j = 0; j < k; ++j)
      for (int64_t a = 0; s[j] > limit && a < n; ++a)
        for (int64_t b = 0; b < m; ++b) o[a * m + b] += ~(vh[j * n + a] * u[b * k + j]) / s[j];
  }
  status = ait_nn_result(call, 0, dtype_of(call, 0), &out);
cleanup:
  complexes_free(call, memory, size);
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  ait_tensor_release(&atol);
  ait_tensor_release(&rtol);
  return status;
}

/* ---- powers ---------------------------------------------------------------------------------------------------------------------------*/
static ait_status invert(const ait_ref_call *call, const cplx *a, int64_t n, cplx *out) {
  size_t pivot_bytes = (size_t)n * sizeof(int32_t);
  cplx *lu = complexes(call, n * n);
  int32_t *pivots = ait_alloc(call->allocator, pivot_bytes, 8);
  ait_status status = lu && pivots ? AIT_OK : AIT_OOM();
  if (!status) {
    memcpy(lu, a, (size_t)(n * n) * sizeof *lu);
    memset(out, 0, (size_t)(n * n) * sizeof *out);
    for (int64_t i = 0; i < n; ++i) out[i * n + i] = 1;
    if (ait_nn_lu(lu, n, n, pivots, true)) status = ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the matrix is singular");
    else ait_nn_lu_solve(lu, n, pivots, false, out, n);
  }
  complexes_free(call, lu, n * n);
  ait_free(call->allocator, pivots, pivot_bytes);
  return status;
}

/* out = a b, n x n */
static ait_status multiply(const ait_ref_call *call, int64_t n, const cplx *a, const cplx *b, cplx *out) {
  return ait_nn_multiply(call, true, 1, n, n, n, (const double *)a, (const double *)b, (double *)out);
}

/* out = a^e; t, base: n x n scratch */
static ait_status power(const ait_ref_call *call, const cplx *a, int64_t n, int64_t e, cplx *out, cplx *base, cplx *t) {
  size_t bytes = (size_t)(n * n) * sizeof *out;
  if (e < 0) AIT_TRY(invert(call, a, n, base));
  else memcpy(base, a, bytes);
  uint64_t left = e < 0 ? 0 - (uint64_t)e : (uint64_t)e;
  memset(out, 0, bytes);
  for (int64_t i = 0; i < n; ++i) out[i * n + i] = 1;
  for (; left; left >>= 1) {
    if (left & 1) {
      AIT_TRY(multiply(call, n, out, base, t));
      memcpy(out, t, bytes);
    }
    AIT_TRY(multiply(call, n, base, base, t));
    memcpy(base, t, bytes);
  }
  return AIT_OK;
}

ait_status ait_ref_matrix_power(ait_ref_call *call) {
  ait_tensor x = {0}, out = {0};
  int64_t count, m, n, e;
  cplx *memory = NULL;
  ait_status status;
  AIT_TRY(ait_ref_int(call, 1, &e));
  AIT_TRY(matrices(call, 0, true, &x, &count, &m, &n));
  if (!(memory = complexes(call, 2 * n * n))) AIT_GOTO(AIT_OOM());
  AIT_GOTO(ait_ref_temp(call, AIT_C128, x.rank, x.shape, &out));
  for (int64_t i = 0; i < count; ++i)
    AIT_GOTO(power(call, elements(&x) + i * n * n, n, e, elements(&out) + i * n * n, memory, memory + n * n));
  status = ait_nn_result(call, 0, dtype_of(call, 0), &out);
cleanup:
  complexes_free(call, memory, 2 * n * n);
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

static double size_of(cplx v) { return hypot(__real__ v, __imag__ v); }

/* Scaling and squaring with a Taylor series: the norm is brought below 1/2, where 20 terms reach double precision. */
static ait_status exponential(const ait_ref_call *call, const cplx *a, int64_t n, cplx *out, cplx *scaled, cplx *term, cplx *t) {
  size_t bytes = (size_t)(n * n) * sizeof *out;
  double norm = 0;
  for (int64_t i = 0; i < n; ++i) {
    double row = 0;
    for (int64_t j = 0; j < n; ++j) row += size_of(a[i * n + j]);
    norm = fmax(norm, row);
  }
  int squarings = isfinite(norm) && norm > 0.5 ? ilogb(norm) + 2 : 0;
  double scale = ldexp(1, -squarings);
  for (int64_t i = 0; i < n * n; ++i) scaled[i] = a[i] * scale;
  memset(out, 0, bytes);
  for (int64_t i = 0; i < n; ++i) out[i * n + i] = 1;
  memcpy(term, out, bytes);
  for (int k = 1; k <= 20; ++k) {
    AIT_TRY(multiply(call, n, term, scaled, t));
    for (int64_t i = 0; i < n * n; ++i) out[i] += term[i] = t[i] / k;
  }
  for (int s = 0; s < squarings; ++s) {
    AIT_TRY(multiply(call, n, out, out, t));
    memcpy(out, t, bytes);
  }
  return AIT_OK;
}

ait_status ait_ref_matrix_exp(ait_ref_call *call) {
  ait_tensor x = {0}, out = {0};
  int64_t count, m, n;
  cplx *w = NULL;
  ait_status status;
  AIT_TRY(matrices(call, 0, true, &x, &count, &m, &n));
  if (!(w = complexes(call, 3 * n * n))) AIT_GOTO(AIT_OOM());
  AIT_GOTO(ait_ref_temp(call, AIT_C128, x.rank, x.shape, &out));
  for (int64_t i = 0; i < count; ++i)
    AIT_GOTO(exponential(call, elements(&x) + i * n * n, n, elements(&out) + i * n * n, w, w + n * n, w + 2 * n * n));
  status = ait_nn_result(call, 0, dtype_of(call, 0), &out);
cleanup:
  complexes_free(call, w, 3 * n * n);
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

/* ---- condition ------------------------------------------------------------------------------------------------------------------------*/
static double entry_norm(const cplx *a, int64_t n, double p) {
  double best = p < 0 ? INFINITY : 0;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += size_of(isinf(p) ? a[i * n + j] : a[j * n + i]);
    best = p < 0 ? fmin(best, sum) : fmax(best, sum);
  }
  return best;
}

/* Frobenius or nuclear norm */
static ait_status named_norm(const ait_ref_call *call, const cplx *a, int64_t n, bool nuclear, double *s, double *out) {
  *out = 0;
  if (!nuclear) {
    for (int64_t i = 0; i < n * n; ++i) *out = hypot(*out, size_of(a[i]));
    return AIT_OK;
  }
  AIT_TRY(ait_nn_singular_values(call, a, n, n, s));
  for (int64_t i = 0; i < n; ++i) *out += s[i];
  return AIT_OK;
}

/* linalg_cond.p_str: |A| |A^-1| with a norm that has a name */
static ait_status named_cond(const ait_ref_call *call, const cplx *a, int64_t n, const char *p, cplx *inverted, double *s, double *out) {
  double norm, inverse;
  bool nuclear = strcmp(p, "nuc") == 0;
  ait_status status = invert(call, a, n, inverted);
  if (status) {
    ait_status_ignore(status);
    *out = INFINITY;
    return AIT_OK;
  }
  AIT_TRY(named_norm(call, a, n, nuclear, s, &norm));
  AIT_TRY(named_norm(call, inverted, n, nuclear, s, &inverse));
  *out = norm * inverse;
  return AIT_OK;
}

/* linalg_cond(self, p): 2 and -2 by singular values, others as |A| |A^-1| */
ait_status ait_ref_cond(ait_ref_call *call) {
  ait_tensor x = {0}, out = {0};
  int64_t count, m, n;
  ait_ref_scalar p = {.f = 2};
  const char *name = ait_nn_is(call, "aten.linalg_cond.p_str") ? ait_ref_string(call, 1) : NULL;
  if (!name && !ait_ref_is_none(call, 1)) AIT_TRY(ait_ref_scalar_arg(call, 1, &p));
  ait_status status;
  cplx *inverted = NULL;
  AIT_TRY(matrices(call, 0, false, &x, &count, &m, &n));
  int64_t k = m < n ? m : n, size = m * n + k;
  if (!(inverted = complexes(call, size))) AIT_GOTO(AIT_OOM());
  double *s = (double *)(inverted + m * n);
  AIT_GOTO(lead_new(call, &x, AIT_F64, 0, 0, 0, &out));
  for (int64_t i = 0; i < count; ++i) {
    const cplx *a = elements(&x) + i * m * n;
    double *o = ait_nn_data_mut(&out) + i;
    if (!name && fabs(p.f) == 2) {
      AIT_GOTO(ait_nn_singular_values(call, a, m, n, s));
      *o = k == 0 ? 0 : p.f > 0 ? s[0] / s[k - 1] : s[k - 1] / s[0];
      continue;
    }
    if (m != n) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "a square matrix is needed"));
    if (name) {
      AIT_GOTO(named_cond(call, a, n, name, inverted, s, o));
      continue;
    }
    ait_status inverse = invert(call, a, n, inverted);
    *o = inverse ? INFINITY : entry_norm(a, n, p.f) * entry_norm(inverted, n, p.f);
    ait_status_ignore(inverse);
  }
  status = ait_nn_result(call, 0, real_dtype_of(call, 0), &out);
cleanup:
  complexes_free(call, inverted, size);
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

/* linalg_vander(x, N): powers 0 .. N-1 along a new last dim */
ait_status ait_ref_vander(ait_ref_call *call) {
  const ait_tensor *t;
  ait_tensor x = {0}, out = {0};
  int64_t n, shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensor(call, 0, &t));
  ait_tensor line = *t; /* a number counts as a vector of one */
  if (t->rank == 0) line.rank = 1, line.shape[0] = 1, line.strides[0] = 1;
  t = &line;
  if (t->rank + 1 > AIT_MAX_RANK) return ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "input of rank %d", t->rank);
  AIT_TRY(ait_ref_int_or(call, 1, t->shape[t->rank - 1], &n));
  memcpy(shape, t->shape, sizeof shape);
  shape[t->rank] = n;
  ait_status status;
  AIT_GOTO(ait_nn_complex(call, t, &x));
  AIT_GOTO(ait_ref_temp(call, AIT_C128, t->rank + 1, shape, &out));
  for (int64_t i = 0; i < ait_tensor_count(&x); ++i)
    for (int64_t j = 0; j < n; ++j) elements(&out)[i * n + j] = j == 0 ? 1 : elements(&out)[i * n + j - 1] * elements(&x)[i];
  status = ait_nn_result(call, 0, ait_nn_dtype(call, 0, t->dtype), &out);
cleanup:
  ait_tensor_release(&x);
  ait_tensor_release(&out);
  return status;
}

/* The least-squares solution of least norm. */
static void lstsq_one(const cplx *a, int64_t m, int64_t n, const cplx *b, int64_t cols, double rcond, cplx *memory, double *s,
                      cplx *solution, double *residual) {
  int64_t k = m < n ? m : n;
  cplx *u = memory, *vh = u + m * k, *work = vh + k * n;
  double limit;
  full_svd(a, m, n, s, u, k, vh, k, work);
  limit = k ? rcond * s[0] : 0;
  for (int64_t j = 0; j < k; ++j)
    for (int64_t c = 0; s[j] > limit && c < cols; ++c) {
      cplx dot = 0;
      for (int64_t i = 0; i < m; ++i) dot += ~u[i * k + j] * b[i * cols + c];
      for (int64_t i = 0; i < n; ++i) solution[i * cols + c] += ~vh[j * n + i] * dot / s[j];
    }
  for (int64_t c = 0; c < cols; ++c) {
    residual[c] = 0;
    for (int64_t i = 0; i < m; ++i) {
      cplx r = -b[i * cols + c];
      for (int64_t j = 0; j < n; ++j) r += a[i * n + j] * solution[j * cols + c];
      residual[c] += __real__ r * __real__ r + __imag__ r * __imag__ r;
    }
  }
}

/* linalg_lstsq(A, B, rcond, driver): solution, residuals, rank, singular values. Which of the last three a driver gives, and which stay
 * empty, is torch's choice. */
ait_status ait_ref_lstsq(ait_ref_call *call) {
  const char *driver = ait_ref_string(call, 3);
  bool gelsy = !driver || strcmp(driver, "gelsy") == 0, gels = driver && strcmp(driver, "gels") == 0;
  ait_tensor x = {0}, b = {0}, out = {0}, residual = {0}, rank = {0}, values = {0},
             none = ait_tensor_borrow(NULL, AIT_F64, 1, (int64_t[]){0});
  int64_t count, m, n;
  double rcond;
  cplx *memory = NULL;
  ait_status status;
  const ait_tensor *ta, *tb;
  int64_t shape[AIT_MAX_RANK];
  AIT_TRY(ait_ref_tensor(call, 1, &tb));
  AIT_TRY(matrices(call, 0, false, &x, &count, &m, &n));
  AIT_GOTO(ait_ref_tensor(call, 0, &ta));
  AIT_GOTO(ait_ref_float_or(call, 2, default_rtol(call, ta, m, n), &rcond));
  bool vector = tb->rank == x.rank - 1;
  int64_t k = m < n ? m : n, size = svd_memory(m, n), cols = vector || tb->rank == 0 ? 1 : tb->shape[tb->rank - 1];
  memcpy(shape, x.shape, sizeof shape);
  shape[x.rank - 1] = cols; /* the right side's lead dims of one are stretched */
  bool fits = vector || tb->rank == x.rank;
  for (int32_t d = 0; fits && d < tb->rank; ++d) fits = tb->shape[d] == shape[d] || (tb->shape[d] == 1 && d < x.rank - 2);
  if (!fits) AIT_GOTO(ait_ref_error(call, AIT_CODE_INVALID_ARGUMENT, "the right side does not fit the matrices"));
  if (!(memory = complexes(call, size))) AIT_GOTO(AIT_OOM());
  ait_tensor wide = ait_ref_expand(tb, tb->rank, shape);
  AIT_GOTO(ait_nn_complex(call, &wide, &b));
  AIT_GOTO(lead_new(call, &x, AIT_C128, 2, n, cols, &out));
  AIT_GOTO(lead_new(call, &x, AIT_F64, 1, cols, 0, &residual));
  AIT_GOTO(lead_new(call, &x, AIT_I64, 0, 0, 0, &rank));
  AIT_GOTO(lead_new(call, &x, AIT_F64, 1, k, 0, &values));
  for (int64_t i = 0; i < count; ++i) {
    double *s = ait_nn_data_mut(&values) + i * k;
    lstsq_one(elements(&x) + i * m * n, m, n, elements(&b) + i * m * cols, cols, rcond, memory, s, elements(&out) + i * n * cols,
              ait_nn_data_mut(&residual) + i * cols);
    for (int64_t j = 0; j < k; ++j) ((int64_t *)rank.data)[i] += s[j] > rcond * s[0];
  }
  if (vector) out.rank--, residual.rank--;
  AIT_GOTO(ait_nn_result(call, 0, dtype_of(call, 0), &out));
  bool full = true;
  for (int64_t i = 0; i < count; ++i) full &= ((const int64_t *)rank.data)[i] == n;
  AIT_GOTO(ait_nn_result(call, 1, real_dtype_of(call, 1), m > n && !gelsy && full ? &residual : &none));
  if (gels) rank.rank = 1, rank.shape[0] = 0;
  if (ait_nn_wants(call, 2)) ait_ref_set(call, 2, ait_tensor_retain(&rank));
  status = ait_nn_result(call, 3, real_dtype_of(call, 3), gelsy || gels ? &none : &values);
cleanup:
  ait_tensor_release(&values);
  complexes_free(call, memory, size);
  ait_tensor_release(&x);
  ait_tensor_release(&b);
  ait_tensor_release(&out);
  ait_tensor_release(&residual);
  ait_tensor_release(&rank);
  return status;
}
