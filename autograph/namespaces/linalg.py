"""`ag.linalg`: products of matrices, diagonals, norms."""

from __future__ import annotations

from runtime.ops.api import (
    eye,
    matmul,
    matrix_transpose,
    matvec,
    norm,
    tensordot,
    trace,
)  # fmt: skip
from runtime.ops.linalg.decompositions import (
    eig,
    eigh_tridiagonal,
    eigvals,
    logm,
    lu,
    lu_matrix_inverse,
    lu_reconstruct,
    lu_solve,
    tridiagonal_matmul,
    tridiagonal_solve,
)
from runtime.ops.linalg.diagonals import (
    diag,
    diag_part,
    set_diag,
)
from runtime.ops.linalg.einsum import (
    einsum,
)
from runtime.ops.linalg.matrices import (
    band_part,
    cross,
    global_norm,
    normalize,
)
from runtime.ops.linalg.matrix_products import (
    adjoint,
)
from runtime.ops.linalg.solvers import (
    cholesky,
    cholesky_solve,
    det,
    inv,
    logdet,
    lstsq,
    pinv,
    slogdet,
    solve,
    triangular_solve,
)
from runtime.ops.linalg.spectral import (
    eigh,
    eigvalsh,
    expm,
    matrix_rank,
    qr,
    sqrtm,
    svd,
    tensor_diag,
    tensor_diag_part,
)
from runtime.ops.nn.nn_ops import (
    l2_normalize,
)

__all__ = [
    "adjoint", "band_part", "cholesky", "cholesky_solve", "cross", "det", "diag", "diag_part", "eig", "eigh",
    "eigh_tridiagonal", "eigvals", "eigvalsh", "einsum", "expm", "eye", "global_norm", "inv", "l2_normalize", "logdet",
    "logm", "lstsq", "lu", "lu_matrix_inverse", "lu_reconstruct", "lu_solve", "matmul", "matrix_rank",
    "matrix_transpose", "matvec", "norm", "normalize", "pinv", "qr", "set_diag", "slogdet", "solve", "sqrtm", "svd",
    "tensor_diag", "tensor_diag_part", "tensordot", "trace", "triangular_solve", "tridiagonal_matmul",
    "tridiagonal_solve",
]  # fmt: skip
