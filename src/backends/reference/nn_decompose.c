/* LU, Cholesky, QR, symmetric eigenvalues and singular values. Methods: Golub and Van Loan, Matrix Computations, 4th edition. */
#include "backends/reference/nn_decompose.h"

#include <math.h>
#include <string.h>

/* ---- triangular
 * ----------------------------------------------------------------------------------------------------------------------------*/
static void swap_rows(double *a, int64_t cols, int64_t i, int64_t j) {
  for (int64_t c = 0; i != j && c < cols; ++c) {
    double t = a[i * cols + c];
    a[i * cols + c] = a[j * cols + c];
    a[j * cols + c] = t;
  }
}

int32_t ait_nn_lu(double *a, int64_t m, int64_t n, int32_t *pivots, bool pivot) {
  int32_t info = 0;
  int64_t k = m < n ? m : n;
  for (int64_t j = 0; j < k; ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; pivot && i < m; ++i)
      if (fabs(a[i * n + j]) > fabs(a[best * n + j])) best = i;
    pivots[j] = (int32_t)best + 1;
    swap_rows(a, n, j, best);
    double p = a[j * n + j];
    if (p == 0) {
      if (!info) info = (int32_t)j + 1;
      continue;
    }
    for (int64_t i = j + 1; i < m; ++i) {
      double f = a[i * n + j] /= p;
      if (f == 0) continue;
      for (int64_t c = j + 1; c < n; ++c) a[i * n + c] -= f * a[j * n + c];
    }
  }
  return info;
}

void ait_nn_triangular_solve(const double *t, int64_t n, bool upper, bool transposed, bool unit, double *b, int64_t cols) {
  bool backward = upper != transposed;
  for (int64_t s = 0; s < n; ++s) {
    int64_t i = backward ? n - 1 - s : s;
    int64_t from = backward ? i + 1 : 0, to = backward ? n : i;
    for (int64_t k = from; k < to; ++k) {
      double f = transposed ? t[k * n + i] : t[i * n + k];
      if (f == 0) continue;
      for (int64_t c = 0; c < cols; ++c) b[i * cols + c] -= f * b[k * cols + c];
    }
    for (int64_t c = 0; !unit && c < cols; ++c) b[i * cols + c] /= t[i * n + i];
  }
}

void ait_nn_lu_solve(const double *lu, int64_t n, const int32_t *pivots, bool transposed, double *b, int64_t cols) {
  if (!transposed) {
    for (int64_t i = 0; i < n; ++i) swap_rows(b, cols, i, pivots[i] - 1);
    ait_nn_triangular_solve(lu, n, false, false, true, b, cols);
    ait_nn_triangular_solve(lu, n, true, false, false, b, cols);
  } else {
    ait_nn_triangular_solve(lu, n, true, true, false, b, cols);
    ait_nn_triangular_solve(lu, n, false, true, true, b, cols);
    for (int64_t i = n - 1; i >= 0; --i) swap_rows(b, cols, i, pivots[i] - 1);
  }
}

int32_t ait_nn_cholesky(double *a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double d = a[j * n + j];
    for (int64_t k = 0; k < j; ++k) d -= a[j * n + k] * a[j * n + k];
    if (!(d > 0)) return (int32_t)j + 1;
    a[j * n + j] = d = sqrt(d);
    for (int64_t i = j + 1; i < n; ++i) {
      double s = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) s -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = s / d;
    }
    for (int64_t c = j + 1; c < n; ++c) a[j * n + c] = 0;
  }
  return 0;
}

/* ---- QR
 * ------------------------------------------------------------------------------------------------------------------------------------*/
/* c = (I - tau v v^T) c, where v = (1, column j of a below the diagonal). */
static void reflect(const double *a, int64_t ld, int64_t m, int64_t j, double tau, double *c, int64_t cols, int64_t from) {
  for (int64_t k = from; k < cols && tau != 0; ++k) {
    double s = c[j * cols + k];
    for (int64_t i = j + 1; i < m; ++i) s += a[i * ld + j] * c[i * cols + k];
    s *= tau;
    c[j * cols + k] -= s;
    for (int64_t i = j + 1; i < m; ++i) c[i * cols + k] -= s * a[i * ld + j];
  }
}

void ait_nn_qr(double *a, int64_t m, int64_t n, double *tau) {
  int64_t k = m < n ? m : n;
  for (int64_t j = 0; j < k; ++j) {
    double norm = 0, alpha = a[j * n + j];
    for (int64_t i = j + 1; i < m; ++i) norm = hypot(norm, a[i * n + j]);
    tau[j] = 0;
    if (norm == 0) continue;
    double beta = -copysign(hypot(alpha, norm), alpha);
    tau[j] = (beta - alpha) / beta;
    for (int64_t i = j + 1; i < m; ++i) a[i * n + j] /= alpha - beta;
    a[j * n + j] = beta;
    reflect(a, n, m, j, tau[j], a, n, j + 1);
  }
}

void ait_nn_qr_apply(const double *a, int64_t ld, int64_t m, int64_t k, const double *tau, bool transposed, double *c, int64_t cols) {
  for (int64_t s = 0; s < k; ++s) {
    int64_t j = transposed ? s : k - 1 - s;
    reflect(a, ld, m, j, tau[j], c, cols, 0);
  }
}

void ait_nn_qr_form(const double *a, int64_t ld, int64_t m, int64_t k, const double *tau, double *q, int64_t cols) {
  memset(q, 0, (size_t)(m * cols) * sizeof *q);
  for (int64_t i = 0; i < m && i < cols; ++i) q[i * cols + i] = 1;
  ait_nn_qr_apply(a, ld, m, k, tau, false, q, cols);
}

/* ---- Jacobi
 * --------------------------------------------------------------------------------------------------------------------------------*/
enum { SWEEPS = 60 };

/* The rotation that diagonalises [[p, r], [r, q]]. */
static void rotation(double p, double q, double r, double *c, double *s) {
  double theta = (q - p) / (2 * r), t = copysign(1, theta) / (fabs(theta) + hypot(theta, 1));
  *c = 1 / hypot(t, 1);
  *s = t * *c;
}

static void rotate_columns(double *a, int64_t rows, int64_t cols, int64_t p, int64_t q, double c, double s) {
  for (int64_t i = 0; i < rows; ++i) {
    double x = a[i * cols + p], y = a[i * cols + q];
    a[i * cols + p] = c * x - s * y;
    a[i * cols + q] = s * x + c * y;
  }
}

static void swap_columns(double *a, int64_t rows, int64_t cols, int64_t p, int64_t q) {
  for (int64_t i = 0; p != q && i < rows; ++i) {
    double t = a[i * cols + p];
    a[i * cols + p] = a[i * cols + q];
    a[i * cols + q] = t;
  }
}

static bool eigh_sweep(double *a, int64_t n, double *v) {
  bool any = false;
  for (int64_t p = 0; p < n; ++p)
    for (int64_t q = p + 1; q < n; ++q) {
      double r = a[p * n + q], c, s;
      if (!(fabs(r) > 1e-17 * sqrt(fabs(a[p * n + p] * a[q * n + q])) + 1e-300)) continue;
      any = true;
      rotation(a[p * n + p], a[q * n + q], r, &c, &s);
      rotate_columns(a, n, n, p, q, c, s);
      for (int64_t k = 0; k < n; ++k) {
        double x = a[p * n + k], y = a[q * n + k];
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
      }
      a[p * n + q] = a[q * n + p] = 0;
      rotate_columns(v, n, n, p, q, c, s);
    }
  return any;
}

void ait_nn_eigh(double *a, int64_t n, double *w, double *v) {
  memset(v, 0, (size_t)(n * n) * sizeof *v);
  for (int64_t i = 0; i < n; ++i) v[i * n + i] = 1;
  for (int sweep = 0; sweep < SWEEPS && eigh_sweep(a, n, v); ++sweep) {}
  for (int64_t i = 0; i < n; ++i) w[i] = a[i * n + i];
  for (int64_t i = 0; i < n; ++i) {
    int64_t least = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (w[j] < w[least]) least = j;
    double t = w[i];
    w[i] = w[least], w[least] = t;
    swap_columns(v, n, n, i, least);
  }
}

static bool svd_sweep(double *a, int64_t m, int64_t n, double *v) {
  bool any = false;
  for (int64_t p = 0; p < n; ++p)
    for (int64_t q = p + 1; q < n; ++q) {
      double pp = 0, qq = 0, pq = 0, c, s;
      for (int64_t i = 0; i < m; ++i) {
        double x = a[i * n + p], y = a[i * n + q];
        pp += x * x, qq += y * y, pq += x * y;
      }
      if (!(fabs(pq) > 1e-16 * sqrt(pp * qq)) || fabs(pq) < 1e-300) continue;
      any = true;
      rotation(pp, qq, pq, &c, &s);
      rotate_columns(a, m, n, p, q, c, s);
      rotate_columns(v, n, n, p, q, c, s);
    }
  return any;
}

void ait_nn_svd(double *a, int64_t m, int64_t n, double *s, double *v) {
  memset(v, 0, (size_t)(n * n) * sizeof *v);
  for (int64_t i = 0; i < n; ++i) v[i * n + i] = 1;
  for (int sweep = 0; sweep < SWEEPS && svd_sweep(a, m, n, v); ++sweep) {}
  for (int64_t j = 0; j < n; ++j) {
    s[j] = 0;
    for (int64_t i = 0; i < m; ++i) s[j] = hypot(s[j], a[i * n + j]);
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

void ait_nn_complete_basis(double *q, int64_t m, int64_t cols, int64_t from) {
  int64_t unit = 0;
  for (int64_t j = from; j < cols; ++j) {
    for (double norm = 0; norm < 0.1 && unit < 2 * m; ++unit) {
      for (int64_t i = 0; i < m; ++i) q[i * cols + j] = i == unit % m;
      for (int twice = 0; twice < 2; ++twice)
        for (int64_t k = 0; k < j; ++k) {
          double dot = 0;
          for (int64_t i = 0; i < m; ++i) dot += q[i * cols + k] * q[i * cols + j];
          for (int64_t i = 0; i < m; ++i) q[i * cols + j] -= dot * q[i * cols + k];
        }
      norm = 0;
      for (int64_t i = 0; i < m; ++i) norm = hypot(norm, q[i * cols + j]);
      for (int64_t i = 0; norm > 0 && i < m; ++i) q[i * cols + j] /= norm;
    }
  }
}

/* ---- general eigenvalues: complex Hessenberg form, shifted QR by Givens rotations, back substitution
 * -----------------------------------------*/
typedef double _Complex cplx;

static double modulus(cplx z) { return hypot(__real__ z, __imag__ z); }
static cplx conjugate(cplx z) { return ~z; }
static cplx square_root(cplx z) {
  double r = modulus(z), x = sqrt((r + fabs(__real__ z)) / 2);
  cplx out = 0;
  if (x == 0) return out;
  if (__real__ z >= 0) __real__ out = x, __imag__ out = __imag__ z / (2 * x);
  else __real__ out = fabs(__imag__ z) / (2 * x), __imag__ out = copysign(x, __imag__ z);
  return out;
}

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

bool ait_nn_eig(double *a_pairs, int64_t n, double *w, double *v, double *work) {
  cplx *a = (cplx *)(void *)a_pairs, *q = (cplx *)(void *)work, *x = q + n * n;
  memset(q, 0, (size_t)(n * n) * sizeof *q);
  for (int64_t i = 0; i < n; ++i) q[i * n + i] = 1;
  hessenberg(a, n, q);
  if (!schur(a, n, q)) return false;
  for (int64_t i = 0; i < n; ++i) w[2 * i] = __real__ a[i * n + i], w[2 * i + 1] = __imag__ a[i * n + i];
  for (int64_t k = 0; v && k < n; ++k) back_vector(a, n, k, q, x, (cplx *)(void *)v);
  return true;
}
