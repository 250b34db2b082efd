/* LU, Cholesky, QR, LDL, Hermitian and general eigenvalues, singular values. Methods: Golub and Van Loan, Matrix Computations, 4th edition.
 * Real matrices go the same way: their imaginary parts stay zero and the real parts see the same arithmetic. */
#include "backends/reference/nn_decompose.h"

#include <math.h>
#include <string.h>

typedef ait_nn_cplx cplx;

static double modulus(cplx z) { return __imag__ z == 0 ? fabs(__real__ z) : hypot(__real__ z, __imag__ z); }
static double size_of(cplx z) { return fabs(__real__ z) + fabs(__imag__ z); } /* LAPACK's cabs1: what its pivots are chosen by */
static double square(cplx z) { return __real__ z * __real__ z + __imag__ z * __imag__ z; }
static cplx conjugate(cplx z) { return ~z; }
static cplx conjugate_if(bool yes, cplx z) { return yes ? ~z : z; }

cplx ait_nn_divide(cplx a, cplx b) {
  if (__imag__ b != 0) return a / b;
  cplx out;
  __real__ out = __real__ a / __real__ b;
  __imag__ out = __imag__ a == 0 ? 0 : __imag__ a / __real__ b; /* 0 / 0 would make a real NaN complex */
  return out;
}

static cplx square_root(cplx z) {
  double r = modulus(z), x = sqrt((r + fabs(__real__ z)) / 2);
  cplx out = 0;
  if (x == 0) return out;
  if (__real__ z >= 0) __real__ out = x, __imag__ out = __imag__ z / (2 * x);
  else __real__ out = fabs(__imag__ z) / (2 * x), __imag__ out = copysign(x, __imag__ z);
  return out;
}

static void identity(cplx *a, int64_t n) {
  memset(a, 0, (size_t)(n * n) * sizeof *a);
  for (int64_t i = 0; i < n; ++i) a[i * n + i] = 1;
}

void ait_nn_adjoint(const cplx *a, int64_t m, int64_t n, cplx *out) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) out[j * m + i] = conjugate(a[i * n + j]);
}

/* ---- triangular ------------------------------------------------------------------------------------------------------------------*/
static void swap_rows(cplx *a, int64_t cols, int64_t i, int64_t j) {
  for (int64_t c = 0; i != j && c < cols; ++c) {
    cplx t = a[i * cols + c];
    a[i * cols + c] = a[j * cols + c];
    a[j * cols + c] = t;
  }
}

int32_t ait_nn_lu(cplx *a, int64_t m, int64_t n, int32_t *pivots, bool pivot) {
  int32_t info = 0;
  int64_t k = m < n ? m : n;
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; pivot && i < m; ++i)
      if (size_of(a[i * n + j]) > size_of(a[best * n + j])) best = i;
    pivots[j] = (int32_t)best + 1;
    swap_rows(a, n, j, best);
    cplx p = a[j * n + j];
    if (p == 0) {
      if (!info) info = (int32_t)j + 1;
      continue;
    }
    for (int64_t i = j + 1; i < m; ++i) {
      cplx f = a[i * n + j] = ait_nn_divide(a[i * n + j], p);
      if (f == 0) continue;
      for (int64_t c = j + 1; c < n; ++c) a[i * n + c] -= f * a[j * n + c];
    }
  }
  return info;
}

void ait_nn_triangular_solve(const cplx *t, int64_t n, bool upper, ait_nn_op op, bool unit, cplx *b, int64_t cols) {
  bool transposed = op != AIT_NN_PLAIN, backward = upper != transposed;
  for (int64_t s = 0; s < n; ++s) {
    int64_t i = backward ? n - 1 - s : s;
    int64_t from = backward ? i + 1 : 0, to = backward ? n : i;
    for (int64_t k = from; k < to; ++k) {
      cplx f = conjugate_if(op == AIT_NN_ADJOINT, transposed ? t[k * n + i] : t[i * n + k]);
      if (f == 0) continue;
      for (int64_t c = 0; c < cols; ++c) b[i * cols + c] -= f * b[k * cols + c];
    }
    cplx d = conjugate_if(op == AIT_NN_ADJOINT, t[i * n + i]);
    for (int64_t c = 0; !unit && c < cols; ++c) b[i * cols + c] = ait_nn_divide(b[i * cols + c], d);
  }
}

void ait_nn_lu_solve(const cplx *lu, int64_t n, const int32_t *pivots, bool adjoint, cplx *b, int64_t cols) {
  if (!adjoint) {
    for (int64_t i = 0; i < n; ++i) swap_rows(b, cols, i, pivots[i] - 1);
    ait_nn_triangular_solve(lu, n, false, AIT_NN_PLAIN, true, b, cols);
    ait_nn_triangular_solve(lu, n, true, AIT_NN_PLAIN, false, b, cols);
  } else {
    ait_nn_triangular_solve(lu, n, true, AIT_NN_ADJOINT, false, b, cols);
    ait_nn_triangular_solve(lu, n, false, AIT_NN_ADJOINT, true, b, cols);
    for (int64_t i = n - 1; i >= 0; --i) swap_rows(b, cols, i, pivots[i] - 1);
  }
}

int32_t ait_nn_cholesky(cplx *a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double d = __real__ a[j * n + j];
    for (int64_t k = 0; k < j; ++k) d -= square(a[j * n + k]);
    if (!(d > 0)) return (int32_t)j + 1;
    a[j * n + j] = d = sqrt(d);
    for (int64_t i = j + 1; i < n; ++i) {
      cplx s = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) s -= a[i * n + k] * conjugate(a[j * n + k]);
      a[i * n + j] = s / d;
    }
    for (int64_t c = j + 1; c < n; ++c) a[j * n + c] = 0;
  }
  return 0;
}

/* ---- QR --------------------------------------------------------------------------------------------------------------------------*/
/* c = (I - tau v v^H) c, where v = (1, column j of a below the diagonal). */
static void reflect(const cplx *a, int64_t ld, int64_t m, int64_t j, cplx tau, cplx *c, int64_t cols, int64_t from) {
  for (int64_t k = from; k < cols && tau != 0; ++k) {
    cplx s = c[j * cols + k];
    for (int64_t i = j + 1; i < m; ++i) s += conjugate(a[i * ld + j]) * c[i * cols + k];
    s *= tau;
    c[j * cols + k] -= s;
    for (int64_t i = j + 1; i < m; ++i) c[i * cols + k] -= s * a[i * ld + j];
  }
}

void ait_nn_qr(cplx *a, int64_t m, int64_t n, cplx *tau) {
  int64_t k = m < n ? m : n;
  for (int64_t j = 0; j < k; ++j) {
    double norm = 0;
    cplx alpha = a[j * n + j];
    for (int64_t i = j + 1; i < m; ++i) norm = hypot(norm, modulus(a[i * n + j]));
    tau[j] = 0;
    if (norm == 0 && __imag__ alpha == 0) continue;
    double beta = -copysign(hypot(modulus(alpha), norm), __real__ alpha);
    tau[j] = (beta - alpha) / beta;
    for (int64_t i = j + 1; i < m; ++i) a[i * n + j] = ait_nn_divide(a[i * n + j], alpha - beta);
    a[j * n + j] = beta;
    reflect(a, n, m, j, conjugate(tau[j]), a, n, j + 1);
  }
}

void ait_nn_qr_apply(const cplx *a, int64_t ld, int64_t m, int64_t k, const cplx *tau, bool adjoint, cplx *c, int64_t cols) {
  for (int64_t s = 0; s < k; ++s) {
    int64_t j = adjoint ? s : k - 1 - s;
    reflect(a, ld, m, j, conjugate_if(adjoint, tau[j]), c, cols, 0);
  }
}

void ait_nn_qr_form(const cplx *a, int64_t ld, int64_t m, int64_t k, const cplx *tau, cplx *q, int64_t cols) {
  memset(q, 0, (size_t)(m * cols) * sizeof *q);
  for (int64_t i = 0; i < m && i < cols; ++i) q[i * cols + i] = 1;
  ait_nn_qr_apply(a, ld, m, k, tau, false, q, cols);
}

/* ---- Jacobi ----------------------------------------------------------------------------------------------------------------------*/
enum { SWEEPS = 60 };

/* The rotation that diagonalises [[p, r], [r, q]], r > 0. */
static void rotation(double p, double q, double r, double *c, double *s) {
  double theta = (q - p) / (2 * r), t = copysign(1, theta) / (fabs(theta) + hypot(theta, 1));
  *c = 1 / hypot(t, 1);
  *s = t * *c;
}

/* Column q times `phase`, then the rotation of columns p and q. */
static void rotate_columns(cplx *a, int64_t rows, int64_t cols, int64_t p, int64_t q, cplx phase, double c, double s) {
  for (int64_t i = 0; i < rows; ++i) {
    cplx x = a[i * cols + p], y = a[i * cols + q] * phase;
    a[i * cols + p] = c * x - s * y;
    a[i * cols + q] = s * x + c * y;
  }
}

static void swap_columns(cplx *a, int64_t rows, int64_t cols, int64_t p, int64_t q) {
  for (int64_t i = 0; p != q && i < rows; ++i) {
    cplx t = a[i * cols + p];
    a[i * cols + p] = a[i * cols + q];
    a[i * cols + q] = t;
  }
}

static bool eigh_sweep(cplx *a, int64_t n, cplx *v) {
  bool any = false;
  for (int64_t p = 0; p < n; ++p)
    for (int64_t q = p + 1; q < n; ++q) {
      double r = modulus(a[p * n + q]), pp = __real__ a[p * n + p], qq = __real__ a[q * n + q], c, s;
      if (!(r > 1e-17 * sqrt(fabs(pp * qq)) + 1e-300)) continue;
      any = true;
      cplx phase = conjugate(a[p * n + q]) / r; /* makes element (p, q) real */
      rotation(pp, qq, r, &c, &s);
      rotate_columns(a, n, n, p, q, phase, c, s);
      for (int64_t k = 0; k < n; ++k) {
        cplx x = a[p * n + k], y = a[q * n + k] * conjugate(phase);
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
      }
      a[p * n + q] = a[q * n + p] = 0;
      rotate_columns(v, n, n, p, q, phase, c, s);
    }
  return any;
}

void ait_nn_eigh(cplx *a, int64_t n, double *w, cplx *v) {
  identity(v, n);
  for (int sweep = 0; sweep < SWEEPS && eigh_sweep(a, n, v); ++sweep) {}
  for (int64_t i = 0; i < n; ++i) w[i] = __real__ a[i * n + i];
  for (int64_t i = 0; i < n; ++i) {
    int64_t least = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (w[j] < w[least]) least = j;
    double t = w[i];
    w[i] = w[least], w[least] = t;
    swap_columns(v, n, n, i, least);
  }
}

static bool svd_sweep(cplx *a, int64_t m, int64_t n, cplx *v) {
  bool any = false;
  for (int64_t p = 0; p < n; ++p)
    for (int64_t q = p + 1; q < n; ++q) {
      double pp = 0, qq = 0, c, s;
      cplx pq = 0;
      for (int64_t i = 0; i < m; ++i) {
        cplx x = a[i * n + p], y = a[i * n + q];
        pp += square(x), qq += square(y), pq += conjugate(x) * y;
      }
      double r = modulus(pq);
      if (!(r > 1e-16 * sqrt(pp * qq)) || r < 1e-300) continue;
      any = true;
      cplx phase = conjugate(pq) / r;
      rotation(pp, qq, r, &c, &s);
      rotate_columns(a, m, n, p, q, phase, c, s);
      rotate_columns(v, n, n, p, q, phase, c, s);
    }
  return any;
}

void ait_nn_svd(cplx *a, int64_t m, int64_t n, double *s, cplx *v) {
  identity(v, n);
  for (int sweep = 0; sweep < SWEEPS && svd_sweep(a, m, n, v); ++sweep) {}
  for (int64_t j = 0; j < n; ++j) {
    s[j] = 0;
    for (int64_t i = 0; i < m; ++i) s[j] = hypot(s[j], modulus(a[i * n + j]));
  }
  for (int64_t j = 0; j < n; ++j) {
    int64_t most = j;
    for (int64_t k = j + 1; k < n; ++k)
      if (s[k] > s[most]) most = k;
    double t = s[j];
    s[j] = s[most], s[most] = t;
    swap_columns(a, m, n, j, most);
    swap_columns(v, n, n, j, most);
    for (int64_t i = 0; s[j] > 0 && i < m; ++i) a[i * n + j] /= s[j];
  }
}

void ait_nn_complete_basis(cplx *q, int64_t m, int64_t cols, int64_t from) {
  int64_t unit = 0;
  for (int64_t j = from; j < cols; ++j) {
    for (double norm = 0; norm < 0.1 && unit < 2 * m; ++unit) {
      for (int64_t i = 0; i < m; ++i) q[i * cols + j] = i == unit % m;
      for (int twice = 0; twice < 2; ++twice)
        for (int64_t k = 0; k < j; ++k) {
          cplx dot = 0;
          for (int64_t i = 0; i < m; ++i) dot += conjugate(q[i * cols + k]) * q[i * cols + j];
          for (int64_t i = 0; i < m; ++i) q[i * cols + j] -= dot * q[i * cols + k];
        }
      norm = 0;
      for (int64_t i = 0; i < m; ++i) norm = hypot(norm, modulus(q[i * cols + j]));
      for (int64_t i = 0; norm > 0 && i < m; ++i) q[i * cols + j] /= norm;
    }
  }
}

/* ---- general eigenvalues: Hessenberg form, shifted QR by Givens rotations, back substitution -----------------------------------------*/
static void hessenberg(cplx *a, int64_t n, cplx *q) {
  for (int64_t j = 0; j + 2 < n; ++j)
    for (int64_t i = n - 1; i > j + 1; --i) { /* rotate rows i-1, i to clear a[i][j] */
      cplx x = a[(i - 1) * n + j], y = a[i * n + j];
      double r = hypot(modulus(x), modulus(y));
      if (modulus(y) == 0) continue;
      cplx c = x / r, s = y / r;
      for (int64_t k = 0; k < n; ++k) {
        cplx u = a[(i - 1) * n + k], w = a[i * n + k];
        a[(i - 1) * n + k] = conjugate(c) * u + conjugate(s) * w;
        a[i * n + k] = c * w - s * u;
      }
      for (int64_t k = 0; k < n; ++k) {
        cplx u = a[k * n + i - 1], w = a[k * n + i];
        a[k * n + i - 1] = u * c + w * s;
        a[k * n + i] = w * conjugate(c) - u * conjugate(s);
        u = q[k * n + i - 1], w = q[k * n + i];
        q[k * n + i - 1] = u * c + w * s;
        q[k * n + i] = w * conjugate(c) - u * conjugate(s);
      }
    }
}

/* The eigenvalue of the trailing 2 x 2 block that is nearer to its last element. */
static cplx shift_of(const cplx *a, int64_t n, int64_t hi) {
  cplx p = a[(hi - 1) * n + hi - 1], q = a[(hi - 1) * n + hi], r = a[hi * n + hi - 1], s = a[hi * n + hi];
  cplx half = (p - s) / 2, root = square_root(half * half + q * r), up = half + root, down = half - root;
  cplx big = modulus(up) > modulus(down) ? up : down;
  return modulus(big) == 0 ? s : s - q * r / big;
}

/* One QR step on rows and columns lo..hi of the Hessenberg a, carried through the whole matrix and q. */
static void qr_step(cplx *a, int64_t n, int64_t lo, int64_t hi, cplx shift, cplx *q) {
  for (int64_t i = lo; i <= hi; ++i) a[i * n + i] -= shift;
  cplx c_prev = 1, s_prev = 0;
  for (int64_t i = lo; i <= hi; ++i) { /* left rotation i, then right rotation i - 1 */
    cplx c = 1, s = 0;
    if (i < hi) {
      cplx x = a[i * n + i], y = a[(i + 1) * n + i];
      double r = hypot(modulus(x), modulus(y));
      if (r > 0) c = x / r, s = y / r;
      for (int64_t k = i; k < n; ++k) {
        cplx u = a[i * n + k], w = a[(i + 1) * n + k];
        a[i * n + k] = conjugate(c) * u + conjugate(s) * w;
        a[(i + 1) * n + k] = c * w - s * u;
      }
    }
    if (i > lo) {
      int64_t j = i - 1;
      for (int64_t k = 0; k < n; ++k) {
        if (k <= i) {
          cplx u = a[k * n + j], w = a[k * n + i];
          a[k * n + j] = u * c_prev + w * s_prev;
          a[k * n + i] = w * conjugate(c_prev) - u * conjugate(s_prev);
        }
        cplx u = q[k * n + j], w = q[k * n + i];
        q[k * n + j] = u * c_prev + w * s_prev;
        q[k * n + i] = w * conjugate(c_prev) - u * conjugate(s_prev);
      }
    }
    c_prev = c, s_prev = s;
  }
  for (int64_t i = lo; i <= hi; ++i) a[i * n + i] += shift;
}

static bool schur(cplx *a, int64_t n, cplx *q) {
  int64_t hi = n - 1, steps = 0;
  while (hi > 0) {
    int64_t lo = hi;
    while (lo > 0) {
      double size = modulus(a[lo * n + lo]) + modulus(a[(lo - 1) * n + lo - 1]);
      if (modulus(a[lo * n + lo - 1]) <= 1e-16 * (size > 0 ? size : 1)) {
        a[lo * n + lo - 1] = 0;
        break;
      }
      --lo;
    }
    if (lo == hi) {
      --hi;
      steps = 0;
      continue;
    }
    if (++steps > 200) return false;
    cplx shift = steps % 11 == 10 ? modulus(a[hi * n + hi - 1]) + a[hi * n + hi] : shift_of(a, n, hi);
    qr_step(a, n, lo, hi, shift, q);
  }
  return true;
}

/* Eigenvector k of the triangular a by back substitution, then into the original basis. */
static void back_vector(const cplx *a, int64_t n, int64_t k, const cplx *q, cplx *x, cplx *v) {
  double norm = 0;
  for (int64_t i = k; i >= 0; --i) {
    cplx sum = i == k ? 1 : 0, d = a[i * n + i] - a[k * n + k];
    for (int64_t j = i + 1; j <= k; ++j) sum -= a[i * n + j] * x[j];
    if (i < k && modulus(d) < 1e-300) d = 1e-16 * (modulus(a[k * n + k]) + 1e-300);
    x[i] = i == k ? 1 : sum / d;
  }
  for (int64_t i = 0; i < n; ++i) {
    cplx sum = 0;
    for (int64_t j = 0; j <= k; ++j) sum += q[i * n + j] * x[j];
    v[i * n + k] = sum;
    norm = hypot(norm, modulus(sum));
  }
  for (int64_t i = 0; norm > 0 && i < n; ++i) v[i * n + k] /= norm;
}

bool ait_nn_eig(cplx *a, int64_t n, cplx *w, cplx *v, cplx *work) {
  cplx *q = work, *x = q + n * n;
  identity(q, n);
  hessenberg(a, n, q);
  if (!schur(a, n, q)) return false;
  for (int64_t i = 0; i < n; ++i) w[i] = a[i * n + i];
  for (int64_t k = 0; v && k < n; ++k) back_vector(a, n, k, q, x, v);
  return true;
}
