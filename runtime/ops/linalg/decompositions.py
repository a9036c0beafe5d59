"""`ag.linalg`: eigenvalues of any square matrix, LU, tridiagonal systems, the matrix logarithm."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.arrays import creation
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.convert import check_kind, convert_to_tensor, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.complex_numbers import conj, real
from runtime.ops.linalg.diagonals import diag, set_diag
from runtime.ops.linalg.matrix_products import adjoint, diag_part, matmul, matrix_transpose
from runtime.ops.linalg.solvers import need_matrices, solve, triangle, triangular_solve, wide
from runtime.ops.linalg.spectral import eigvalsh, gaps
from runtime.ops.rules import dims
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_COMPLEX = {"float16": "complex64", "bfloat16": "complex64", "float32": "complex64", "float64": "complex128"}


def _zero_if_none(cotangent: Any, output: Any) -> Any:
    return call("zeros_like", output) if cotangent is None else cotangent


# --- eigenvalues ---------------------------------------------------------------------------------------------------


def _infer_eig(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,) = inputs
    need_matrices(x.shape, True)
    dtype = dtypes.as_dtype(_COMPLEX.get(x.dtype.name, x.dtype.name))
    vectors = TensorType(dtype, x.shape)
    return TensorType(dtype, None if x.shape is None else x.shape[:-1]), vectors


def _eig_kernel(x: Any) -> tuple:
    values, vectors = np.linalg.eig(x.astype(np.float32) if x.dtype == np.float16 else x)
    wanted = np.result_type(vectors.dtype, np.complex64)
    return values.astype(wanted), vectors.astype(wanted)


def _grad_eig(op: Any, de: Any, dv: Any) -> Sequence[Any]:
    """Boeddeker et al., "On the computation of complex-valued gradients with application to statistically optimum
    beamforming" (2017), section 4.6, for eigenvectors of length 1."""
    values, vectors = op.outputs
    middle = diag(_zero_if_none(de, values))
    flipped = adjoint(vectors)
    if dv is not None:
        along = matmul(flipped, dv)
        line = call("cast", real(diag_part(along)), dtype=along.dtype)
        inner = along - matmul(flipped, vectors) * call("expand_dims", line, axis=(len(line._shape) - 1,))
        middle = middle + conj(gaps(values)) * inner
    found = solve(flipped, matmul(middle, flipped))
    source = op.inputs[0].dtype
    return (found if source.is_complex else call("cast", real(found), dtype=source),)


_EIG = register(
    OpDef(
        "eig", _infer_eig, _eig_kernel, grad=_grad_eig, multiple=True, kinds="fc", complex_rule=True,
        doc="Eigenvalues and eigenvectors (columns) of square matrices; both are complex.",
        samples=(Sample(((3, 3),), low=0.2, high=2.0, gradient=()), Sample(((2, 2, 2),), low=0.2, gradient=())),
    )
)  # fmt: skip


class Lu(NamedTuple):
    """The pair of `lu`."""

    lu: Tensor
    p: Tensor


@deferrable
def eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues (in no order) and eigenvectors (columns of length 1) of square matrices; both are complex."""
    x = convert_to_tensor(tensor)
    check_kind(_EIG, x.dtype)
    return apply(_EIG, (x,))


@deferrable
def eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """The eigenvalues of square matrices, complex, in no order."""
    return eig(tensor)[0]


@deferrable
def eigh_tridiagonal(
    alpha: Any, beta: Any, eigvals_only: bool = True, select: str = "a", select_range: Any = None, tol: Any = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The eigenvalues of the Hermitian matrix with `alpha` on its diagonal and `beta` above (conjugated below) it.

    Only all eigenvalues: raises NotImplementedError for eigenvectors, as TensorFlow does, and for a selection.
    """
    if not eigvals_only or select != "a":
        raise NotImplementedError(
            "eigh_tridiagonal computes eigenvalues only, and all of them; use eigh for eigenvectors."
        )
    a, b = operands("EighTridiagonal", alpha, beta)
    return real(eigvalsh(diag(a) + diag(b, k=1) + diag(conj(b), k=-1)))


# --- LU ------------------------------------------------------------------------------------------------------------


def _infer_lu(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,) = inputs
    need_matrices(x.shape, True)
    return x, TensorType(attrs["dtype"], None if x.shape is None else x.shape[:-1])


def _lu_kernel(x: Any, dtype: Any) -> tuple:
    need_matrices(x.shape, True)
    factor = importlib.import_module("scipy.linalg").lu_factor
    packed, orders = np.zeros_like(x), np.zeros(x.shape[:-1], dtype.np)
    for place in np.ndindex(*x.shape[:-2]):
        packed[place], pivots = factor(x[place], check_finite=False)
        if not np.diagonal(packed[place]).all():
            raise errors.InvalidArgumentError("Input is not invertible.")
        order = np.arange(len(pivots))
        for i, j in enumerate(pivots):
            order[[i, j]] = order[[j, i]]
        orders[place] = order
    return packed, orders


def _unit_lower(packed: Any) -> Any:
    line = diag_part(packed)
    return set_diag(triangle(packed, True), call("ones_like", line))


def _grad_lu(op: Any, dy: Any, _: Any) -> Sequence[Any]:
    packed, order = op.outputs
    lower, upper = _unit_lower(packed), triangle(packed, False)
    d_lower = triangle(dy, True) - diag(diag_part(dy))
    left = triangle(matmul(lower, d_lower, adjoint_a=True), True)
    left = left - diag(diag_part(left))
    middle = left + triangle(matmul(triangle(dy, False), upper, adjoint_b=True), False)
    # lower ** -H @ middle @ upper ** -H
    inner = triangular_solve(lower, middle, adjoint=True)
    outer = adjoint(triangular_solve(upper, adjoint(inner), lower=False))
    return (gather(outer, _inverse_order(order), axis=-2, batch_dims=len(order._shape) - 1),)


def _inverse_order(order: Any) -> Any:
    return call("argsort", order, axis=len(order._shape) - 1, descending=False)


_LU = register(
    OpDef(
        "lu", _infer_lu, wide(_lu_kernel), grad=_grad_lu, multiple=True, kinds="fc", complex_rule=True,
        doc="The LU factors of square matrices, packed into one matrix, and the order of their rows.",
        samples=tuple(Sample((s,), {"dtype": dtypes.int32}, low=0.2, high=2.0) for s in [(2, 2), (2, 3, 3)]),
        attrs=("dtype",),
    )
)  # fmt: skip


@deferrable
def lu(input: Any, output_idx_type: DTypeLike = dtypes.int32, name: str | None = None) -> Lu:
    """(lu, p): the strict lower triangle of lu is L (with ones on its diagonal), the rest U, and L @ U = input[p].

    Raises InvalidArgumentError for a singular matrix.
    """
    x = convert_to_tensor(input)
    check_kind(_LU, x.dtype)
    return Lu(*apply(_LU, (x,), {"dtype": dtypes.as_dtype(output_idx_type)}))


@deferrable
def lu_solve(
    lower_upper: Any, perm: Any, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """x with A @ x = rhs, given the result of `lu(A)`."""
    packed, right = operands("LuSolve", lower_upper, rhs)
    order = convert_to_tensor(perm)
    ordered = gather(right, order, axis=-2, batch_dims=len(order._shape or (None,)) - 1)
    return triangular_solve(packed, triangular_solve(_unit_lower(packed), ordered), lower=False)


@deferrable
def lu_matrix_inverse(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """The inverse of A, given the result of `lu(A)`."""
    packed = convert_to_tensor(lower_upper)
    *batch, size, _ = dims(packed)
    return lu_solve(packed, perm, creation.eye(size, batch_shape=batch or None, dtype=packed.dtype))


@deferrable
def lu_reconstruct(lower_upper: Any, perm: Any, validate_args: bool = False, name: str | None = None) -> Tensor:
    """A, given the result of `lu(A)`."""
    packed, order = convert_to_tensor(lower_upper), convert_to_tensor(perm)
    product = matmul(_unit_lower(packed), triangle(packed, False))
    return gather(product, _inverse_order(order), axis=-2, batch_dims=len(order._shape or (None,)) - 1)


# --- tridiagonal matrices ------------------------------------------------------------------------------------------


def _infer_tridiagonal(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (inputs[1],)


def _tridiagonal_kernel(diagonals: Any, rhs: Any) -> Any:
    function = importlib.import_module("scipy.linalg").solve_banded
    result = np.zeros_like(rhs)
    for place in np.ndindex(*rhs.shape[:-2]):
        above, middle, below = diagonals[place]
        # SciPy wants the part above shifted to the right, the part below to the left.
        band = np.stack([np.roll(above, 1), middle, np.roll(below, -1)])
        try:
            result[place] = function((1, 1), band, rhs[place], check_finite=False)
        except np.linalg.LinAlgError:
            raise errors.InvalidArgumentError("The tridiagonal matrix is not invertible.") from None
    return result


def _shifted(x: Any, by: int) -> Any:
    """Along the last dimension by one place, with a zero at the end that becomes free."""
    zero = call("zeros_like", x[..., :1])
    return concat([zero, x[..., :-1]], -1) if by > 0 else concat([x[..., 1:], zero], -1)


def _grad_tridiagonal(op: Any, dy: Any) -> Sequence[Any]:
    diagonals, x = op.inputs[0], op.outputs[0]
    above, middle, below = (diagonals[..., i, :] for i in range(3))
    transposed = call("stack", _shifted(below, -1), middle, _shifted(above, 1), axis=len(middle._shape) - 1)
    d_rhs = call("tridiagonal_solve", transposed, dy)
    # Row by row: -d_rhs[i] . x[j] for the three columns j.
    flat = matrix_transpose(x)
    neighbours = (matrix_transpose(_shifted(flat, -1)), x, matrix_transpose(_shifted(flat, 1)))
    lines = [-reduce_sum(d_rhs * column, -1) for column in neighbours]
    return call("stack", *lines, axis=len(middle._shape) - 1), d_rhs


_TRIDIAGONAL = register(
    OpDef(
        "tridiagonal_solve", _infer_tridiagonal, wide(_tridiagonal_kernel), grad=_grad_tridiagonal, kinds="fc",
        doc="The solution of tridiagonal systems; the upper, main and lower diagonals are rows of n elements.",
        samples=(
            Sample(((3, 4), (4, 2)), low=0.3, high=1.0, fixed={0: np.array(
                [[0.5, 0.2, 0.3, 9.0], [2.0, 3.0, 2.5, 2.0], [9.0, 0.4, 0.1, 0.6]])}),
            Sample(((2, 3, 1), (2, 1, 3)), low=0.5, high=2.0),
        ),
    )
)  # fmt: skip


def _compact(diagonals: Any, form: str) -> Tensor:
    """The three diagonals as rows of n elements."""
    if form == "compact":
        return convert_to_tensor(diagonals)
    if form == "sequence":
        above, middle, below = operands("TridiagonalSolve", *diagonals)
        size = dims(middle)[-1]
        if dims(above)[-1] != size:
            above = concat([above, call("zeros_like", middle[..., :1])], -1)
            below = concat([call("zeros_like", middle[..., :1]), below], -1)
        return call("stack", above, middle, below, axis=len(middle._shape or ()) - 1)
    if form == "matrix":
        matrix = convert_to_tensor(diagonals)
        zero = call("zeros_like", matrix[..., 0, :1])
        above = concat([diag_part(matrix[..., :-1, 1:]), zero], -1)
        below = concat([zero, diag_part(matrix[..., 1:, :-1])], -1)
        return call("stack", above, diag_part(matrix), below, axis=len(zero._shape) - 1)
    raise ValueError(f"Unrecognized diagonals_format: {form}")


@deferrable
def tridiagonal_solve(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", transpose_rhs: bool = False,
    conjugate_rhs: bool = False, name: str | None = None, partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:  # fmt: skip
    """x with A @ x = rhs for a tridiagonal A, in time linear in its size.

    diagonals: "compact" [..., 3, n] (above, middle, below; the last of the first and the first of the last are not
    read), "sequence" (the three of them) or "matrix". Raises InvalidArgumentError for a singular matrix.
    """
    band, right = operands("TridiagonalSolve", _compact(diagonals, diagonals_format), rhs)
    check_kind(_TRIDIAGONAL, band.dtype)
    if conjugate_rhs:
        right = conj(right)
    if transpose_rhs:
        right = matrix_transpose(right)
    vector = len(right._shape or ()) == len(band._shape or ()) - 1
    if vector:
        right = call("expand_dims", right, axis=(len(right._shape or ()),))
    x = apply(_TRIDIAGONAL, (band, right))
    return call("squeeze", x, axis=(len(x._shape) - 1,)) if vector else x


@deferrable
def tridiagonal_matmul(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """A @ rhs for a tridiagonal A; see `tridiagonal_solve` for its forms."""
    band, right = operands("TridiagonalMatMul", _compact(diagonals, diagonals_format), rhs)
    above, middle, below = (call("expand_dims", band[..., i, :], axis=(len(band._shape or ()) - 1,)) for i in range(3))
    flat = matrix_transpose(right)
    after, before = matrix_transpose(_shifted(flat, -1)), matrix_transpose(_shifted(flat, 1))
    return above * after + middle * right + below * before


# --- logarithm -----------------------------------------------------------------------------------------------------


def _logm_kernel(x: Any) -> Any:
    need_matrices(x.shape, True)
    if not x.size:
        return x
    function = importlib.import_module("scipy.linalg").logm
    flat = [function(m) for m in x.reshape(-1, *x.shape[-2:])]
    return np.array(flat).reshape(x.shape).astype(x.dtype)


def _infer_square(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_matrices(inputs[0].shape, True)
    return (inputs[0],)


_LOGM = register(
    OpDef(
        "matrix_logarithm", _infer_square, _logm_kernel, kinds="c", doc="The logarithm of square matrices.",
        samples=(Sample(((2, 2),), fixed={0: np.array([[4.0, 1.0], [1.0, 3.0]], complex)}),),
    )
)  # fmt: skip


@deferrable
def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """The principal logarithm of complex square matrices: X with expm(X) = input. As in TensorFlow, no gradient."""
    x = convert_to_tensor(input)
    check_kind(_LOGM, x.dtype)
    return apply(_LOGM, (x,))
