# Complex numbers: linear algebra and what models with complex parts hold. Read by nn_cases.py.
C = torch.complex64
c = lambda *shape: r(*shape, dtype=C)
T = (1e-3, 2e-4)
A, B = c(2, 4, 4), c(2, 4, 3)
H = A @ A.mH + torch.eye(4); L = torch.linalg.cholesky(H); U = L.mH
# ---- solving
for x in (c(3, 3), A): case("linalg_inv", x, tol=T); case("linalg_det", x, tol=T); case("linalg_slogdet", x, tol=T); case("logdet", x, tol=T)
case("linalg_solve", A, B, tol=T); case("linalg_solve", A, c(2, 3, 4), left=False, tol=T); case("linalg_solve", A.mH, B, tol=T); case("linalg_solve_ex", A, c(2, 4), tol=T)
case("linalg_tensorinv", c(4, 6, 8, 3), 2, tol=T); case("linalg_tensorsolve", c(2, 3, 6), c(2, 3), tol=T)
case("linalg_cholesky", H, tol=T); case("linalg_cholesky", H, upper=True, tol=T); case("linalg_cholesky_ex", H.tril(), tol=T)
for up, f in ((False, L), (True, U)):
    case("cholesky_solve", B, f, up, tol=T); case("cholesky_inverse", f, up, tol=T)
    case("linalg_solve_triangular", f, B, upper=up, tol=T); case("linalg_solve_triangular", f, c(2, 3, 4), upper=up, left=False, tol=T)
    for flip in (False, True): case("triangular_solve", B, f, up, flip, False, tol=T)
    case("linalg_solve_triangular", f, B, upper=up, unitriangular=True, tol=(1e-2, 1e-2))
lu, p = torch.linalg.lu_factor(A)
case("linalg_lu_factor", A, tol=T); case("linalg_lu", c(2, 3, 5), tol=T); case("linalg_lu", c(5, 3), tol=T); case("lu_unpack", lu, p, tol=T)
for left in (True, False):
    for adj in (False, True): case("linalg_lu_solve", lu, p, c(2, 4, 4), left=left, adjoint=adj, tol=T)
case("lu_solve", B, lu, p, tol=T)
for herm, m in ((False, A + A.mT), (True, A + A.mH)):
    ld, pv = torch.linalg.ldl_factor(m, hermitian=herm)
    case("linalg_ldl_solve", ld, pv, B, hermitian=herm, tol=T)
qa, tau = torch.geqrf(c(5, 3))
case("linalg_householder_product", qa, tau, tol=T)
for left in (True, False):
    for tr in (False, True): case("ormqr", qa, tau, c(5, 2) if left else c(2, 5), left, tr, tol=T)
case("linalg_qr", c(5, 3), tol=T); case("linalg_qr", c(3, 5), "complete", tol=T); case("linalg_qr", c(5, 3), "r", tol=T)
# ---- values that have one answer
case("linalg_svdvals", c(2, 4, 3), tol=T); case("linalg_eigvalsh", A, tol=T); case("linalg_eigvalsh", A, "U", tol=T)
case("linalg_pinv.atol_rtol_tensor", c(3, 5), tol=T); case("linalg_pinv.atol_rtol_tensor", A, hermitian=True, tol=T); case("linalg_pinv.atol_rtol_tensor", A.real.contiguous(), hermitian=True, tol=T)
case("linalg_matrix_rank.atol_rtol_tensor", c(4, 2) @ c(2, 5)); case("linalg_matrix_rank.atol_rtol_tensor", A, hermitian=True)
case("linalg_lstsq", c(5, 3), c(5, 2), tol=T); case("linalg_cond", A, tol=T); case("linalg_cond", A, 1, tol=T); case("linalg_cond.p_str", A, "nuc", tol=T)
case("linalg_matrix_norm.str_ord", c(2, 3, 4), "nuc", tol=T); case("linalg_matrix_norm", c(3, 4), inf, tol=T); case("linalg_matrix_norm.str_ord", c(3, 4), tol=T)
case("matrix_power", A, 3, tol=T); case("matrix_power", A, -2, tol=(1e-2, 1e-2)); case("linalg_matrix_exp", A, tol=T); case("linalg_vander", c(2, 3), N=4)
case("linalg_inv", r(0, 3, 3, dtype=C)); case("linalg_det", c(0, 0)); case("linalg_svdvals", c(0, 3))
# ---- the rest
case("linalg_cross", c(2, 3), c(2, 3)); case("cross", c(3, 2), c(3, 2)); case("trapezoid.dx", c(3, 4), dx=0.5); case("trapezoid.x", c(3, 4), c(4)); case("cumulative_trapezoid.dx", c(3, 4), dx=0.25)
case("logaddexp", c(4), c(4)); case("logsumexp", c(3, 4), [1]); case("logcumsumexp", c(3, 4), 1, tol=(1e-4, 1e-5)); case("silu", c(7)); case("renorm", c(3, 4), 2, 0, 1.0)
for red in (0, 1, 2): case("l1_loss", c(3, 4), c(3, 4), red)
case("pairwise_distance", c(3, 4), c(3, 4)); case("pairwise_distance", c(3, 4), c(4), 1.0, keepdim=True); case("triplet_margin_loss", c(3, 4), c(3, 4), c(3, 4), swap=True)
case("rms_norm", c(3, 4), [4]); case("rms_norm", c(2, 3, 4), [3, 4], c(3, 4), 0.1); case("log_softmax.int", c(3, 4), 1, torch.float64); case("softmax.int", c(3, 4), 0, torch.float32)
