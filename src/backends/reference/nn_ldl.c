/* LDL with the pivoting of Bunch and Kaufman, lower triangle (Golub and Van Loan, Matrix Computations, 4th edition, 4.4.4). */
#include "backends/reference/nn_decompose.h"

#include <math.h>

typedef ait_nn_cplx cplx;

static double size_of(cplx z) { return fabs(__real__ z) + fabs(__imag__ z); }
static cplx conjugate_if(bool yes, cplx z) { return yes ? ~z : z; }

static void exchange(cplx *a, cplx *b) {
  cplx t = *a;
  *a = *b;
  *b = t;
}

/* Exchanges rows and columns k and p of the matrix whose lower triangle is given; columns before k stay. */
static void swap_symmetric(cplx *a, int64_t n, bool hermitian, int64_t k, int64_t p) {
  for (int64_t i = p + 1; i < n; ++i) exchange(&a[i * n + k], &a[i * n + p]);
  for (int64_t j = k + 1; j < p; ++j) { /* what crosses the diagonal */
    cplx t = a[j * n + k];
    a[j * n + k] = conjugate_if(hermitian, a[p * n + j]);
    a[p * n + j] = conjugate_if(hermitian, t);
  }
  a[p * n + k] = conjugate_if(hermitian, a[p * n + k]);
  exchange(&a[k * n + k], &a[p * n + p]);
}

static int64_t largest_below(const cplx *a, int64_t n, int64_t k) {
  int64_t best = k + 1;
  for (int64_t i = k + 2; i < n; ++i)
    if (size_of(a[i * n + k]) > size_of(a[best * n + k])) best = i;
  return best;
}

/* Largest off-diagonal element of row r of the trailing matrix from k on. */
static double largest_in_row(const cplx *a, int64_t n, int64_t k, int64_t r) {
  double best = 0;
  for (int64_t j = k; j < r; ++j) best = fmax(best, size_of(a[r * n + j]));
  for (int64_t i = r + 1; i < n; ++i) best = fmax(best, size_of(a[i * n + r]));
  return best;
}

static void eliminate_one(cplx *a, int64_t n, bool hermitian, int64_t k) {
  cplx d = ait_nn_divide(1, a[k * n + k]);
  for (int64_t j = k + 1; j < n; ++j)
    for (int64_t i = j; i < n; ++i) a[i * n + j] -= d * a[i * n + k] * conjugate_if(hermitian, a[j * n + k]);
  for (int64_t i = k + 1; i < n; ++i) a[i * n + k] *= d;
}

/* Columns k and k + 1 become L = A D^-1, where D = [[p, q*], [q, r]] (q* is q when symmetric). */
static void eliminate_two(cplx *a, int64_t n, bool hermitian, int64_t k) {
  cplx p = a[k * n + k], q = a[(k + 1) * n + k], r = a[(k + 1) * n + k + 1], above = conjugate_if(hermitian, q);
  cplx pq = ait_nn_divide(p, above), rq = ait_nn_divide(r, q), scale = pq * rq - 1; /* det D = scale * q * q*, without overflow */
  for (int64_t j = k + 2; j < n; ++j) {
    cplx u = a[j * n + k], v = a[j * n + k + 1];
    cplx first = ait_nn_divide(ait_nn_divide(rq * u - v, scale), above), second = ait_nn_divide(ait_nn_divide(pq * v - u, scale), q);
    for (int64_t i = j; i < n; ++i)
      a[i * n + j] -= a[i * n + k] * conjugate_if(hermitian, first) + a[i * n + k + 1] * conjugate_if(hermitian, second);
    a[j * n + k] = first;
    a[j * n + k + 1] = second;
  }
}

int32_t ait_nn_ldl(cplx *a, int64_t n, bool hermitian, int32_t *pivots) {
  const double alpha = 0.6403882032022076; /* (1 + sqrt(17)) / 8 */
  int32_t info = 0;
  for (int64_t i = 0; hermitian && i < n; ++i) a[i * n + i] = __real__ a[i * n + i];
  for (int64_t k = 0; k < n;) {
    int64_t step = 1, p = k, big = k + 1 < n ? largest_below(a, n, k) : k;
    double diagonal = size_of(a[k * n + k]), column = k + 1 < n ? size_of(a[big * n + k]) : 0;
    if (fmax(diagonal, column) == 0) {
      if (!info) info = (int32_t)k + 1;
    } else {
      if (diagonal < alpha * column) {
        double row = largest_in_row(a, n, k, big);
        if (diagonal >= alpha * column * (column / row)) p = k;
        else if (size_of(a[big * n + big]) >= alpha * row) p = big;
        else p = big, step = 2;
      }
      int64_t at = k + step - 1;
      if (p != at) {
        swap_symmetric(a, n, hermitian, at, p);
        if (step == 2) exchange(&a[at * n + k], &a[p * n + k]);
      }
      if (step == 1) eliminate_one(a, n, hermitian, k);
      else eliminate_two(a, n, hermitian, k);
    }
    for (int64_t s = 0; s < step; ++s) pivots[k + s] = step == 1 ? (int32_t)p + 1 : -((int32_t)p + 1);
    k += step;
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = 0;
  return info;
}

static void swap_rows(cplx *b, int64_t cols, int64_t i, int64_t j) {
  for (int64_t c = 0; i != j && c < cols; ++c) exchange(&b[i * cols + c], &b[j * cols + c]);
}

/* Rows k (and k + 1) of b by the inverse of D's block there. */
static void solve_block(const cplx *a, int64_t n, bool hermitian, int64_t k, int64_t step, cplx *b, int64_t cols) {
  cplx p = a[k * n + k];
  for (int64_t c = 0; step == 1 && c < cols; ++c) b[k * cols + c] = ait_nn_divide(b[k * cols + c], p);
  if (step == 1) return;
  cplx q = a[(k + 1) * n + k], r = a[(k + 1) * n + k + 1], above = conjugate_if(hermitian, q), det = p * r - q * above;
  for (int64_t c = 0; c < cols; ++c) {
    cplx u = b[k * cols + c], v = b[(k + 1) * cols + c];
    b[k * cols + c] = ait_nn_divide(r * u - above * v, det);
    b[(k + 1) * cols + c] = ait_nn_divide(p * v - q * u, det);
  }
}

void ait_nn_ldl_solve(const cplx *a, int64_t n, bool hermitian, const int32_t *pivots, cplx *b, int64_t cols) {
  for (int64_t k = 0; k < n;) { /* L y = P b, D z = y */
    int64_t step = pivots[k] > 0 || k + 1 == n ? 1 : 2, other = (pivots[k] > 0 ? pivots[k] : -pivots[k]) - 1;
    swap_rows(b, cols, k + step - 1, other);
    for (int64_t i = k + step; i < n; ++i)
      for (int64_t s = 0; s < step; ++s)
        for (int64_t c = 0; c < cols; ++c) b[i * cols + c] -= a[i * n + k + s] * b[(k + s) * cols + c];
    solve_block(a, n, hermitian, k, step, b, cols);
    k += step;
  }
  for (int64_t k = n - 1; k >= 0;) { /* L^T x = z, exchanges undone */
    int64_t step = pivots[k] > 0 || k == 0 ? 1 : 2, first = k - step + 1, other = (pivots[k] > 0 ? pivots[k] : -pivots[k]) - 1;
    for (int64_t s = 0; s < step; ++s)
      for (int64_t i = k + 1; i < n; ++i)
        for (int64_t c = 0; c < cols; ++c) b[(first + s) * cols + c] -= conjugate_if(hermitian, a[i * n + first + s]) * b[i * cols + c];
    swap_rows(b, cols, k, other);
    k -= step;
  }
}
