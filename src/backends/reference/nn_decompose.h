/* Decompositions of one contiguous row-major complex matrix. No allocation, no calls back. ^H: conjugate transpose. */
#ifndef AIT_SRC_BACKENDS_REFERENCE_NN_DECOMPOSE_H
#define AIT_SRC_BACKENDS_REFERENCE_NN_DECOMPOSE_H

#include <stdbool.h>
#include <stdint.h>

typedef double _Complex ait_nn_cplx; /* one element of an AIT_C128 tensor */
typedef enum ait_nn_op { AIT_NN_PLAIN, AIT_NN_TRANSPOSE, AIT_NN_ADJOINT } ait_nn_op;

/* a / b; exactly as real numbers where they are real. */
ait_nn_cplx ait_nn_divide(ait_nn_cplx a, ait_nn_cplx b);
/* out (n x m) = a^H. */
void ait_nn_adjoint(const ait_nn_cplx *a, int64_t m, int64_t n, ait_nn_cplx *out);
/* a (m x n) = P L U in place, as LAPACK's getrf: pivots[i] (1-based) is the row that row i was exchanged with.
 * Returns 0, or the 1-based index of the first diagonal element of U that is zero. */
int32_t ait_nn_lu(ait_nn_cplx *a, int64_t m, int64_t n, int32_t *pivots, bool pivot);
/* b (n x cols) = A^-1 b, or A^-H b, from an LU of the n x n A. */
void ait_nn_lu_solve(const ait_nn_cplx *lu, int64_t n, const int32_t *pivots, bool adjoint, ait_nn_cplx *b, int64_t cols);
/* Solves op(T) x = b in place for a triangular n x n T; b: n x cols. */
void ait_nn_triangular_solve(const ait_nn_cplx *t, int64_t n, bool upper, ait_nn_op op, bool unit, ait_nn_cplx *b, int64_t cols);
/* The lower factor in place, zeros above it. Returns 0, or the order of the first minor that is not positive. */
int32_t ait_nn_cholesky(ait_nn_cplx *a, int64_t n);
/* Householder QR as LAPACK's geqrf: R on and above the diagonal, reflectors below, tau: min(m, n). */
void ait_nn_qr(ait_nn_cplx *a, int64_t m, int64_t n, ait_nn_cplx *tau);
/* q (m x cols) = the first cols columns of the product of k reflectors stored in the columns of a (row stride `ld`). */
void ait_nn_qr_form(const ait_nn_cplx *a, int64_t ld, int64_t m, int64_t k, const ait_nn_cplx *tau, ait_nn_cplx *q, int64_t cols);
/* c (m x cols) = Q c or Q^H c. */
void ait_nn_qr_apply(const ait_nn_cplx *a, int64_t ld, int64_t m, int64_t k, const ait_nn_cplx *tau, bool adjoint, ait_nn_cplx *c,
                     int64_t cols);
/* LDL^T (Hermitian: LDL^H) with the pivoting of Bunch and Kaufman, stored as LAPACK's sytrf and hetrf store it (lower; zeros above).
 * Returns 0, or the 1-based index of the first pivot that is zero. */
int32_t ait_nn_ldl(ait_nn_cplx *a, int64_t n, bool hermitian, int32_t *pivots);
/* b (n x cols) = A^-1 b from an LDL of the n x n A. */
void ait_nn_ldl_solve(const ait_nn_cplx *a, int64_t n, bool hermitian, const int32_t *pivots, ait_nn_cplx *b, int64_t cols);
/* Hermitian a (n x n, destroyed): eigenvalues w ascending, vectors as columns of v (n x n). Cyclic Jacobi. */
void ait_nn_eigh(ait_nn_cplx *a, int64_t n, double *w, ait_nn_cplx *v);
/* a (m x n, m >= n) = U diag(s) V^H by one-sided Jacobi: a becomes U's first n columns (columns of zero s undefined), v: n x n. */
void ait_nn_svd(ait_nn_cplx *a, int64_t m, int64_t n, double *s, ait_nn_cplx *v);
/* Makes columns [from, cols) of q (m x cols) an orthonormal completion of the columns before them. */
void ait_nn_complete_basis(ait_nn_cplx *q, int64_t m, int64_t cols, int64_t from);
/* Eigenvalues of the general a (n x n, destroyed), vectors of unit length as columns of v (n x n) unless NULL. work: n (n + 1) elements.
 * false: no convergence. */
bool ait_nn_eig(ait_nn_cplx *a, int64_t n, ait_nn_cplx *w, ait_nn_cplx *v, ait_nn_cplx *work);

#endif
