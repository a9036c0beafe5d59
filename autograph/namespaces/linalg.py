"""`ag.linalg`: products of matrices, diagonals, norms."""

from __future__ import annotations

from runtime.ops.api import (
    diag,
    diag_part,
    eye,
    matmul,
    matrix_transpose,
    matvec,
    norm,
    tensordot,
    trace,
)  # fmt: skip

__all__ = [
    "diag", "diag_part", "eye", "matmul", "matrix_transpose", "matvec", "norm", "tensordot", "trace",
]  # fmt: skip
