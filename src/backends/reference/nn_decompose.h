/* Decompositions of one contiguous row-major double matrix. No allocation, no calls back. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_NN_DECOMPOSE_H
#define AIT_SRC_BACKENDS_REFERENCE_NN_DECOMPOSE_H

#include <stdbool.h>
#include <stdint.h>

/* a (m x n) = P L U in place, as LAPACK's getrf: pivots[i] (1-based) is the row that row i was exchanged with.
 * Returns 0, or the 1-based index of the first diagonal element of U that is zero. */
int32_t ait_nn_lu(double *a, int64_t m, int64_t n, int32_t *pivots, bool pivot);
/* b (n x cols) = A^-1 b, or A^-T b, from an LU of the n x n A. */
void ait_nn_lu_solve(const double *lu, int64_t n, const int32_t *pivots, bool transposed, double *b, int64_t cols);
/* Solves T x = b in place for a triangular n x n T; b: n x cols. */
void ait_nn_triangular_solve(const double *t, int64_t n, bool upper, bool transposed, bool unit, double *b, int64_t cols);
/* The lower factor in place, zeros above it. Returns 0, or the order of the first minor that is not positive. */
int32_t ait_nn_cholesky(double *a, int64_t n);
/* Householder QR as LAPACK's geqrf: R on and above the diagonal, reflectors below, tau: min(m, n). */
void ait_nn_qr(double *a, int64_t m, int64_t n, double *tau);
/* q (m x cols) = the first cols columns of the product of k reflectors stored in the columns of a (row stride `ld`). */
void ait_nn_qr_form(const double *a, int64_t ld, int64_t m, int64_t k, const double *tau, double *q, int64_t cols);
/* c (m x cols) = Q c or Q^T c. */
void ait_nn_qr_apply(const double *a, int64_t ld, int64_t m, int64_t k, const double *tau, bool transposed, double *c, int64_t cols);
/* Symmetric a (n x n, destroyed): eigenvalues w ascending, vectors as columns of v (n x n). Cyclic Jacobi. */
void ait_nn_eigh(double *a, int64_t n, double *w, double *v);
/* a (m x n, m >= n) = U diag(s) V^T by one-sided Jacobi: a becomes U's first n columns (columns of zero s undefined), v: n x n. */
void ait_nn_svd(double *a, int64_t m, int64_t n, double *s, double *v);
/* Makes columns [from, cols) of q (m x cols) an orthonormal completion of the columns before them. */
void ait_nn_complete_basis(double *q, int64_t m, int64_t cols, int64_t from);
/* Eigenvalues (pairs) of the general a (n x n pairs, complex, destroyed), vectors of unit length as columns of v (n x n pairs) unless NULL.
 * work: 2 n n pairs. false: no convergence. */
bool ait_nn_eig(double *a, int64_t n, double *w, double *v, double *work);

#endif
