"""Linear algebra: the main functions and the extension `linalg` of the array API standard."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes
from runtime.array_api.manipulation import _axes, moveaxis, stack
from runtime.array_api.statistics import sum as _sum
from runtime.ops.arrays import reduce, shape_ops
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.elementwise import arithmetic, compare, complex_numbers, elementary
from runtime.ops.linalg import decompositions, matrices, solvers, spectral
from runtime.ops.linalg import matrix_products as ops
from runtime.ops.numpy.array_functions import matrix_power as _np_matrix_power
from runtime.ops.numpy.ufuncs import common, find
from runtime.tensor import Tensor


class eigh_result(NamedTuple):
    """`eigenvalues` in ascending order, and `eigenvectors` as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class eig_result(NamedTuple):
    """Complex `eigenvalues`, and `eigenvectors` as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class qr_result(NamedTuple):
    """`Q` with orthonormal columns, and the upper triangular `R`."""

    Q: Tensor
    R: Tensor


class slogdet_result(NamedTuple):
    """The `sign` of a determinant, and `logabsdet`, the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


class svd_result(NamedTuple):
    """`U`, the singular values `S` in descending order, and the adjoint `Vh` of the right singular vectors."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """The matrix product of the last two axes; a vector is a row on the left and a column on the right."""
    a, b = common(convert_to_tensor(x1), convert_to_tensor(x2))
    if a.dtype.kind in "iu" and (known_rank(a, "matmul"), known_rank(b, "matmul")) == (1, 1):
        return _sum(a * b, dtype=a.dtype)
    product: Any = find(np.matmul, "__call__")
    return product(a, b)


def matrix_transpose(x: Any, /) -> Tensor:
    """`x` with its last two axes exchanged."""
    tensor = convert_to_tensor(x)
    if known_rank(tensor, "matrix_transpose") < 2:
        raise ValueError(f"matrix_transpose takes arrays of at least two dimensions, not of shape {tensor.shape}.")
    return moveaxis(tensor, -1, -2)


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over axes. `axes`: how many of the last of `x1` and first of `x2`, or a pair of sequences."""
    a, b = common(convert_to_tensor(x1), convert_to_tensor(x2))
    return ops.tensordot(a, b, axes if isinstance(axes, int) else [list(axes[0]), list(axes[1])])


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The sum of products along `axis`, the elements of `x1` conjugated; other dimensions broadcast."""
    a, b = common(convert_to_tensor(x1), convert_to_tensor(x2))
    rank = min(known_rank(a, "vecdot"), known_rank(b, "vecdot"))
    if not -rank <= axis < 0 and not (axis >= 0 and known_rank(a, "vecdot") == known_rank(b, "vecdot") > axis):
        raise IndexError(f"vecdot: axis {axis} is out of bounds; it counts from the end, from -{rank} to -1.")
    if a.shape[axis] != b.shape[axis] and None not in (a.shape[axis], b.shape[axis]):
        raise ValueError(f"vecdot: lengths {a.shape[axis]} and {b.shape[axis]} along axis {axis} differ.")
    left = complex_numbers.conj(a) if a.dtype.is_complex else a
    return reduce.reduce_sum(moveaxis(left, axis, -1) * moveaxis(b, axis, -1), -1)


def outer(x1: Any, x2: Any, /) -> Tensor:
    """The products of each element of the vector `x1` with each of the vector `x2`."""
    a, b = common(convert_to_tensor(x1), convert_to_tensor(x2))
    if known_rank(a, "outer") != 1 or known_rank(b, "outer") != 1:
        raise ValueError(f"outer takes vectors, not arrays of shapes {a.shape} and {b.shape}.")
    return shape_ops.expand_dims(a, 1) * b


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The cross product of arrays of length 3 along `axis`."""
    a, b = common(convert_to_tensor(x1), convert_to_tensor(x2))
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"cross takes vectors of length 3 along axis {axis}, got {a.shape} and {b.shape}.")
    first, second = moveaxis(a, axis, -1), moveaxis(b, axis, -1)

    def part(i: int, j: int) -> Tensor:
        return first[..., i] * second[..., j] - first[..., j] * second[..., i]

    return moveaxis(stack([part(1, 2), part(2, 0), part(0, 1)], axis=-1), -1, axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The elements on a diagonal of the last two axes, above the main one for a positive `offset`."""
    tensor = convert_to_tensor(x)
    rows, columns = tensor.shape[-2], tensor.shape[-1]
    if rows is not None and columns is not None and not -rows < offset < columns:
        return tensor[..., :0, 0] if rows and columns else shape_ops.reshape(tensor, [*tensor.shape[:-2], 0])
    return matrices.diagonal_of(tensor, offset)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum of a diagonal of the last two axes."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def det(x: Any, /) -> Tensor:
    """The determinants of square matrices."""
    return solvers.det(x)


def slogdet(x: Any, /) -> slogdet_result:
    """The signs of determinants and the logarithms of their absolute values."""
    found = solvers.slogdet(x)
    # Of complex numbers the logarithm has an imaginary part of 0.
    size = found.log_abs_determinant
    return slogdet_result(found.sign, complex_numbers.real(size) if size.dtype.is_complex else size)


def inv(x: Any, /) -> Tensor:
    """The inverses of square matrices. Raises InvalidArgumentError for a singular one."""
    return solvers.inv(x)


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The Moore-Penrose inverse; singular values below `rtol` times the largest count as 0."""
    tensor = convert_to_tensor(x)
    u, s, vh = svd(tensor, full_matrices=False)
    cut = _cutoff(tensor, s, rtol, "pinv")
    inverse = compare.where(s > cut, arithmetic.reciprocal(s), call("zeros_like", s))
    v = ops.adjoint(vh) if tensor.dtype.is_complex else matrix_transpose(vh)
    uh = ops.adjoint(u) if tensor.dtype.is_complex else matrix_transpose(u)
    scaled = v * elementary.cast(shape_ops.expand_dims(inverse, -2), v.dtype)
    return ops.matmul(scaled, uh)


def _cutoff(x: Tensor, s: Tensor, rtol: Any, what: str) -> Tensor:
    if rtol is None:
        longest = max(int(x.shape[-2] or 0), int(x.shape[-1] or 0))
        rtol = longest * _epsilon(x)
    limit = convert_to_tensor(rtol, None if isinstance(rtol, Tensor) else s.dtype)
    limit = elementary.cast(limit, s.dtype)
    if known_rank(limit, what):
        limit = shape_ops.expand_dims(limit, -1)
    if s.shape[-1] == 0:
        return limit
    return limit * reduce.reduce_max(s, -1, keepdims=True)


def _epsilon(x: Tensor) -> float:
    return float(np.finfo(x.dtype.np).eps)


def solve(x1: Any, x2: Any, /) -> Tensor:
    """The solution of `x1 @ x = x2`; `x2` is a vector, or matrices whose columns are right-hand sides."""
    matrix, rhs = common(convert_to_tensor(x1), convert_to_tensor(x2))
    if known_rank(rhs, "solve") == 1:
        return shape_ops.squeeze(_solve(matrix, shape_ops.expand_dims(rhs, -1)), [-1])
    return _solve(matrix, rhs)


def _solve(matrix: Tensor, rhs: Tensor) -> Tensor:
    batch = np.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(rhs.shape[:-2]))

    def widened(value: Tensor) -> Tensor:
        shape = (*batch, *value.shape[-2:])
        return value if tuple(value.shape) == shape else call("broadcast_to", value, shape=shape)

    return solvers.solve(widened(matrix), widened(rhs))


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of `x`: the lower triangular L with L @ L^H = x, or if `upper` the upper triangular L^H."""
    made = solvers.cholesky(x)
    if not upper:
        return made
    return ops.adjoint(made) if made.dtype.is_complex else matrix_transpose(made)


def eigh(x: Any, /) -> eigh_result:
    """Eigenvalues and eigenvectors of symmetric or Hermitian matrices."""
    values, vectors = spectral.eigh(x)
    return eigh_result(_real(values), vectors)


def eigvalsh(x: Any, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices, in ascending order."""
    return _real(spectral.eigvalsh(x))


def eig(x: Any, /) -> eig_result:
    """Complex eigenvalues and eigenvectors of square matrices."""
    return eig_result(*decompositions.eig(x))


def eigvals(x: Any, /) -> Tensor:
    """Complex eigenvalues of square matrices."""
    return decompositions.eigvals(x)


def _real(values: Tensor) -> Tensor:
    return complex_numbers.real(values) if values.dtype.is_complex else values


def qr(x: Any, /, *, mode: str = "reduced") -> qr_result:
    """The factors `Q` and `R` of matrices; `Q` is square for mode 'complete'."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr(mode={mode!r}): mode must be 'reduced' or 'complete'.")
    return qr_result(*spectral.qr(x, mode == "complete"))


def svd(x: Any, /, *, full_matrices: bool = True) -> svd_result:
    """The singular value decomposition of matrices."""
    s, u, v = spectral.svd(x, full_matrices)
    return svd_result(u, _real(s), ops.adjoint(v) if v.dtype.is_complex else matrix_transpose(v))


def svdvals(x: Any, /) -> Tensor:
    """The singular values of matrices, in descending order."""
    return _real(spectral.svd(x, compute_uv=False))


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The rank as int64: the number of singular values above `rtol` times the largest."""
    tensor = convert_to_tensor(x)
    s = svdvals(tensor)
    return reduce.reduce_sum(elementary.cast(s > _cutoff(tensor, s, rtol, "matrix_rank"), dtypes.int64), -1)


def matrix_power(x: Any, n: int, /) -> Tensor:
    """Square matrices to the power `n`, by repeated squaring; a negative power is one of the inverse."""
    return _np_matrix_power(convert_to_tensor(x), int(n))


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """The norm of order `ord` over `axis`, or of all elements; ord=0 counts the nonzero elements."""
    tensor = convert_to_tensor(x)
    rank = known_rank(tensor, "vector_norm")
    places = tuple(range(rank)) if axis is None else _axes(axis, rank, "vector_norm")
    size = arithmetic.abs(tensor)
    if not places:
        return size if ord != 0 else elementary.cast(tensor != 0, size.dtype)
    if ord == 2:
        return elementary.sqrt(reduce.reduce_sum(size * size, places, keepdims))
    if ord == math.inf:
        return reduce.reduce_max(size, places, keepdims)
    if ord == -math.inf:
        return reduce.reduce_min(size, places, keepdims)
    if ord == 0:
        return reduce.reduce_sum(elementary.cast(tensor != 0, size.dtype), places, keepdims)
    if ord == 1:
        return reduce.reduce_sum(size, places, keepdims)
    return arithmetic.pow(reduce.reduce_sum(arithmetic.pow(size, ord), places, keepdims), 1.0 / ord)


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices: 'fro', 'nuc', 1, 2, inf, or -1, -2, -inf."""
    tensor = convert_to_tensor(x)
    size = arithmetic.abs(tensor)
    if ord == "fro":
        found = elementary.sqrt(reduce.reduce_sum(size * size, (-2, -1)))
    elif ord == "nuc":
        found = reduce.reduce_sum(svdvals(tensor), -1)
    elif ord in (2, -2):
        found = (reduce.reduce_max if ord == 2 else reduce.reduce_min)(svdvals(tensor), -1)
    elif ord in (1, -1, math.inf, -math.inf):
        sums = reduce.reduce_sum(size, -2 if ord in (1, -1) else -1)
        found = (reduce.reduce_max if ord in (1, math.inf) else reduce.reduce_min)(sums, -1)
    else:
        raise ValueError(f"matrix_norm(ord={ord!r}): ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.")
    return shape_ops.expand_dims(shape_ops.expand_dims(found, -1), -1) if keepdims else found


__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
