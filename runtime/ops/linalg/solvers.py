"""Factorisations and solutions of linear systems (`ag.linalg`): kernels from NumPy's LAPACK, batched over leading
dimensions; reverse rules from Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
differentiation" (2008), unless another source is named.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays import creation
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import check_kind, convert_to_tensor, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.compare import where
from runtime.ops.elementwise.complex_numbers import conj, real
from runtime.ops.linalg.cofactors import cofactors
from runtime.ops.linalg.matrix_products import adjoint as conjugate_transpose
from runtime.ops.linalg.matrix_products import diag, diag_part, matmul, matrix_transpose
from runtime.ops.rules import brackets, dims, need_same_dtype
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def wide(kernel: Callable[..., Any], infer: Callable[..., Any] | None = None) -> Callable[..., Any]:
    """LAPACK has no half precision: float16 is computed in float32.

    infer: the type rule, for kernels that would take operands whose shapes don't fit.
    """

    def run(*arrays: Any, **attrs: Any) -> Any:
        if infer is not None:
            infer([TensorType(dtypes.as_dtype(a.dtype), a.shape) for a in arrays], attrs)
        dtype = arrays[0].dtype
        if dtype != np.float16:
            return kernel(*arrays, **attrs)
        result = kernel(*[a.astype(np.float32) for a in arrays], **attrs)
        return (
            tuple(r.astype(dtype) if r.dtype.kind == "f" else r for r in result)
            if isinstance(result, tuple)
            else result.astype(dtype)
        )

    return run


def need_matrices(shape: Any, square: bool, what: str = "input") -> None:
    if shape is None:
        return
    if len(shape) < 2:
        raise ValueError(f"{what} must have rank >= 2, got shape {brackets(shape)}")
    rows, columns = shape[-2:]
    if square and rows is not None and columns is not None and rows != columns:
        raise ValueError(f"Input matrix must be square, got shape {brackets(shape)}")


def _square(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_matrices(inputs[0].shape, True)
    return (inputs[0],)


def _with_diagonal(x: Any, value: float) -> Any:
    """Adds to the diagonal."""
    size = dims(x)[-1]
    return x + creation.eye(size, dtype=x.dtype) * value


# --- determinant and inverse ---------------------------------------------------------------------------------------


def _infer_reduced(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_matrices(inputs[0].shape, True)
    shape = inputs[0].shape
    return (TensorType(inputs[0].dtype, None if shape is None else shape[:-2]),)


def _times_matrix(scalar: Any, matrix: Any) -> Any:
    rank = len(matrix._shape)
    return call("expand_dims", scalar, axis=(rank - 2, rank - 1)) * matrix


def _grad_det(op: Any, dy: Any) -> Sequence[Any]:
    return (_times_matrix(dy, cofactors(op.inputs[0])),)


_SQUARES = tuple(Sample((s,), low=0.2, high=2.0) for s in [(2, 2), (2, 3, 3), (1, 1)])
DET = register(
    OpDef(
        "matrix_determinant", _infer_reduced, wide(np.linalg.det), grad=_grad_det, kinds="fc", doc="The determinant.",
        samples=_SQUARES,
    )
)  # fmt: skip


def _infer_slogdet(inputs: Sequence[Any], attrs: dict) -> tuple:
    return _infer_reduced(inputs, attrs) * 2


def _slogdet_kernel(x: Any) -> tuple:
    sign, size = np.linalg.slogdet(x)
    return sign, size.astype(x.dtype)  # a complex number for complex matrices, as in TensorFlow


def _grad_slogdet(op: Any, dsign: Any, dy: Any) -> Sequence[Any]:
    """log|det| and the angle of det are the real and imaginary parts of log det, whose gradient is the inverse."""
    sign = op.outputs[0]
    if not sign.dtype.is_complex:
        return (None if dy is None else _times_matrix(dy, matrix_transpose(inv(op.inputs[0]))),)
    total = call("zeros_like", sign) if dy is None else call("cast", real(dy), dtype=sign.dtype)
    if dsign is not None:
        i = convert_to_tensor(1j, sign.dtype)
        # The sign moves along i * sign.
        total = total + i * call("cast", real(conj(i * sign) * dsign), dtype=sign.dtype)
    return (_times_matrix(total, conjugate_transpose(inv(op.inputs[0]))),)


SLOGDET = register(
    OpDef(
        "log_matrix_determinant", _infer_slogdet, wide(_slogdet_kernel), grad=_grad_slogdet, complex_rule=True,
        multiple=True, kinds="fc",
        doc="The sign of the determinant, and the logarithm of its absolute value.",
        samples=_SQUARES,
    )
)  # fmt: skip


def _inverse(x: Any) -> Any:
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        raise errors.InvalidArgumentError("Input is not invertible.") from None


def _grad_inverse(op: Any, dy: Any) -> Sequence[Any]:
    transposed = matrix_transpose(op.outputs[0])
    return (-matmul(matmul(transposed, dy), transposed),)


INVERSE = register(
    OpDef(
        "matrix_inverse", _square, wide(_inverse), grad=_grad_inverse, kinds="fc",
        doc="The inverse of square matrices.",
        samples=_SQUARES,
    )
)  # fmt: skip


def _one_matrix(row: OpDef, matrix: Any) -> Tensor:
    x = convert_to_tensor(matrix)
    check_kind(row, x.dtype)
    return apply(row, (x,))


@deferrable
def det(input: TensorLike, name: str | None = None) -> Tensor:
    """The determinant of square matrices in the last two dimensions."""
    return _one_matrix(DET, input)


class LogMatrixDeterminant(NamedTuple):
    """The pair of `slogdet`."""

    sign: Tensor
    log_abs_determinant: Tensor


@deferrable
def slogdet(input: Any, name: str | None = None) -> LogMatrixDeterminant:
    """The sign of the determinant and the logarithm of its absolute value, finite where the determinant overflows."""
    x = convert_to_tensor(input)
    check_kind(SLOGDET, x.dtype)
    return LogMatrixDeterminant(*apply(SLOGDET, (x,)))


@deferrable
def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the determinant of positive definite matrices."""
    factor = cholesky(matrix)
    return reduce_sum(call("log", real(diag_part(factor))), -1) * 2


@deferrable
def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """The inverse of square matrices, or of their conjugate transposes.

    Raises InvalidArgumentError for a singular one.
    """
    x = convert_to_tensor(input)
    return _one_matrix(INVERSE, conjugate_transpose(x) if adjoint else x)


# --- solving -------------------------------------------------------------------------------------------------------


def _infer_solve(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_same_dtype(inputs)
    matrix, rhs = inputs
    need_matrices(matrix.shape, True)
    need_matrices(rhs.shape, False, "rhs")
    if matrix.shape is not None and rhs.shape is not None:
        rows, size = matrix.shape[-1], rhs.shape[-2]
        if rows is not None and size is not None and rows != size:
            raise ValueError(
                f"Input matrix and rhs are incompatible: {brackets(matrix.shape)} and {brackets(rhs.shape)}"
            )
        if len(matrix.shape) != len(rhs.shape):
            raise ValueError(
                f"Input matrix and rhs must have the same batch: {brackets(matrix.shape)}, {brackets(rhs.shape)}"
            )
    return (TensorType(rhs.dtype, rhs.shape),)


def _solve_kernel(matrix: Any, rhs: Any, adjoint: bool) -> Any:
    try:
        return np.linalg.solve(np.swapaxes(matrix, -1, -2) if adjoint else matrix, rhs)
    except np.linalg.LinAlgError:
        raise errors.InvalidArgumentError("Input matrix is not invertible.") from None


def _grad_solve(op: Any, dy: Any) -> Sequence[Any]:
    adjoint = op.attrs["adjoint"]
    x = op.outputs[0]
    d_rhs = call("matrix_solve", op.inputs[0], dy, adjoint=not adjoint)
    d_matrix = -matmul(x, d_rhs, transpose_b=True) if adjoint else -matmul(d_rhs, x, transpose_b=True)
    return d_matrix, d_rhs


SOLVE = register(
    OpDef(
        "matrix_solve", _infer_solve, wide(_solve_kernel), grad=_grad_solve, kinds="fc",
        doc="The solution of systems of linear equations.",
        samples=tuple(
            Sample((a, b), {"adjoint": adjoint}, low=0.2, high=2.0)
            for a, b in [((3, 3), (3, 2)), ((2, 2, 2), (2, 2, 1))] for adjoint in (False, True)
        ),
        attrs=("adjoint",),
    )
)  # fmt: skip


def _triangular_kernel(matrix: Any, rhs: Any, lower: bool, adjoint: bool) -> Any:
    solve_triangular = importlib.import_module("scipy.linalg").solve_triangular
    if matrix.shape[-1] == 0 or rhs.size == 0:
        return np.zeros_like(rhs)
    flat = matrix.reshape(-1, *matrix.shape[-2:])
    sides = rhs.reshape(-1, *rhs.shape[-2:])
    try:
        options = {"trans": int(adjoint), "lower": lower, "check_finite": False}
        found = [solve_triangular(a, b, **options) for a, b in zip(flat, sides)]
    except np.linalg.LinAlgError:
        raise errors.InvalidArgumentError("Input matrix is not invertible.") from None
    return np.stack(found).reshape(rhs.shape).astype(rhs.dtype)


def _grad_triangular(op: Any, dy: Any) -> Sequence[Any]:
    lower, adjoint = op.attrs["lower"], op.attrs["adjoint"]
    x = op.outputs[0]
    d_rhs = call("matrix_triangular_solve", op.inputs[0], dy, lower=lower, adjoint=not adjoint)
    full = -matmul(x, d_rhs, transpose_b=True) if adjoint else -matmul(d_rhs, x, transpose_b=True)
    return triangle(full, lower), d_rhs


def triangle(matrix: Any, lower: bool) -> Tensor:
    """The lower (upper) triangle, zeros elsewhere."""
    rows, columns = dims(matrix)[-2:]
    i = call("expand_dims", creation.range(rows), axis=(1,))
    j = creation.range(columns)
    return where(i >= j if lower else i <= j, matrix, convert_to_tensor(0, matrix.dtype))


TRIANGULAR = register(
    OpDef(
        "matrix_triangular_solve", _infer_solve, wide(_triangular_kernel, _infer_solve),
        grad=_grad_triangular, kinds="fc",
        doc="The solution of systems with triangular matrices; the other triangle is not read.",
        samples=tuple(
            Sample((a, b), {"lower": lower, "adjoint": adjoint}, low=0.5, high=2.0)
            for a, b in [((3, 3), (3, 2)), ((2, 2, 2), (2, 2, 1))] for lower in (False, True)
            for adjoint in (False, True)
        ),
        attrs=("adjoint", "lower",),
    )
)  # fmt: skip


def _batched_pair(label: str, matrix: Any, rhs: Any) -> tuple[Any, Any]:
    """Both operands with the same leading dimensions, broadcast where they differ in rank."""
    a, b = operands(label, matrix, rhs)
    lead_a, lead_b = dims(a)[:-2], dims(b)[:-2]
    known = all(isinstance(d, int) for d in (*lead_a, *lead_b))
    if (known and lead_a == lead_b) or not (lead_a or lead_b) or min(len(dims(a)), len(dims(b))) < 2:
        return a, b
    # The sum of zeros of both batch shapes has the batch shape of the result.
    lead = call("zeros_like", a[..., 0, 0]) + call("zeros_like", b[..., 0, 0])
    spot = lead[..., None, None]
    return a + spot, b + spot


@deferrable
def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """x with matrix @ x = rhs (or the conjugate transpose of matrix). Shapes [..., n, n] and [..., n, k].

    Raises InvalidArgumentError for a singular matrix.
    """
    a, b = _batched_pair("MatrixSolve", matrix, rhs)
    check_kind(SOLVE, a.dtype)
    a = conj(a) if adjoint else a  # the row only transposes
    return apply(SOLVE, (a, b), {"adjoint": bool(adjoint)})


@deferrable
def triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """x with matrix @ x = rhs, where only the lower (upper) triangle of the matrix counts."""
    a, b = _batched_pair("MatrixTriangularSolve", matrix, rhs)
    check_kind(TRIANGULAR, a.dtype)
    a = conj(a) if adjoint else a  # the row only transposes
    return apply(TRIANGULAR, (a, b), {"lower": bool(lower), "adjoint": bool(adjoint)})


# --- Cholesky ------------------------------------------------------------------------------------------------------


def _cholesky_kernel(x: Any) -> Any:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        raise errors.InvalidArgumentError(
            "Cholesky decomposition was not successful. The input might not be valid."
        ) from None


def _half_triangle(x: Any) -> Any:
    """The lower triangle, with half of the diagonal."""
    return triangle(x, True) - diag(diag_part(x)) * 0.5


def _grad_cholesky(op: Any, dy: Any) -> Sequence[Any]:
    """Murray, "Differentiation of the Cholesky decomposition" (2016), in blocked matrix form."""
    factor = op.outputs[0]
    middle = _half_triangle(matmul(factor, triangle(dy, True), adjoint_a=True))
    inner = triangular_solve(factor, conjugate_transpose(middle + conjugate_transpose(middle)), adjoint=True)
    outer = triangular_solve(factor, conjugate_transpose(inner), adjoint=True)
    # Only the lower triangle of the operand is read; the gradient is spread over both, as TensorFlow's is.
    return ((outer + conjugate_transpose(outer)) * 0.25,)


CHOLESKY = register(
    OpDef(
        "cholesky", _square, wide(_cholesky_kernel), grad=_grad_cholesky, kinds="fc", complex_rule=True,
        doc="The lower triangular L with L @ L.T = x, of symmetric positive definite matrices.",
        samples=(
            Sample(((2, 2),), fixed={0: np.array([[4.0, 1.0], [1.0, 3.0]])}, gradient=()),
            Sample(((2, 1, 1),), low=0.5, high=2.0),
        ),
    )
)  # fmt: skip


@deferrable
def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """The lower triangular L with L @ L.T = input. Raises InvalidArgumentError if it isn't positive definite."""
    return _one_matrix(CHOLESKY, input)


@deferrable
def cholesky_solve(chol: Any, rhs: TensorLike, name: str | None = None) -> Tensor:
    """x with A @ x = rhs, given the Cholesky factor of A."""
    return triangular_solve(chol, triangular_solve(chol, rhs), adjoint=True)


@deferrable
def lstsq(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """The x that minimises |matrix @ x - rhs|**2 + l2_regularizer * |x|**2; the one of least norm if there are many.

    fast: by the normal equations (needs full rank), else by the pseudo-inverse.
    """
    a, b = operands("MatrixSolveLs", matrix, rhs)
    rank = known_rank(a, "lstsq")
    if not fast and not l2_regularizer:
        return matmul(pinv(a), b)
    rows, columns = dims(a)[rank - 2 :]
    if isinstance(rows, int) and isinstance(columns, int) and rows < columns:
        gram = _with_diagonal(matmul(a, a, adjoint_b=True), l2_regularizer)
        return matmul(a, cholesky_solve(cholesky(gram), b), adjoint_a=True)
    gram = _with_diagonal(matmul(a, a, adjoint_a=True), l2_regularizer)
    return cholesky_solve(cholesky(gram), matmul(a, b, adjoint_a=True))


# --- pseudo-inverse ------------------------------------------------------------------------------------------------


def _infer_pinv(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_matrices(inputs[0].shape, False)
    shape = inputs[0].shape
    return (TensorType(inputs[0].dtype, None if shape is None else (*shape[:-2], shape[-1], shape[-2])),)


def _pinv_kernel(x: Any, rcond: float | None) -> Any:
    if rcond is None:
        rcond = 10.0 * max(x.shape[-2:]) * float(np.finfo(x.dtype).eps)
    return np.linalg.pinv(x, rcond)


def _grad_pinv(op: Any, dy: Any) -> Sequence[Any]:
    """Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares problems" (1973)."""
    a, p = op.inputs[0], op.outputs[0]
    pt = conjugate_transpose(p)
    dyt = conjugate_transpose(dy)
    first = -matmul(matmul(pt, dy), pt)
    second = matmul(matmul(dyt - matmul(a, matmul(p, dyt)), p), pt)
    third = matmul(matmul(pt, p), dyt - matmul(matmul(dyt, p), a))
    return (first + second + third,)


PINV = register(
    OpDef(
        "pinv", _infer_pinv, wide(_pinv_kernel), grad=_grad_pinv, kinds="fc", complex_rule=True,
        doc="The Moore-Penrose pseudo-inverse.",
        samples=tuple(Sample((s,), {"rcond": None}, low=0.2, high=2.0) for s in [(2, 2), (3, 2), (2, 2, 3)]),
        attrs=("rcond",),
    )
)  # fmt: skip


@deferrable
def pinv(a: TensorLike, rcond: float | None = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The Moore-Penrose pseudo-inverse; singular values below rcond times the largest count as 0."""
    x = convert_to_tensor(a)
    check_kind(PINV, x.dtype)
    return apply(PINV, (x,), {"rcond": None if rcond is None else float(rcond)})
