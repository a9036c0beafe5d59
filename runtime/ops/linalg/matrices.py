"""Bands and diagonals of matrices, norms, cross products: written with other ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays import creation
from runtime.ops.arrays.joining import stack, static_axis
from runtime.ops.arrays.reduce import reduce_max, reduce_sum
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import check_kind, convert_to_tensor, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import call
from runtime.ops.elementwise.arithmetic import abs as absolute
from runtime.ops.elementwise.compare import logical_and, logical_or, where
from runtime.ops.elementwise.complex_numbers import conj
from runtime.ops.linalg.matrix_products import diag, diag_part
from runtime.ops.linalg.spectral import svd
from runtime.ops.rules import brackets, dims
from runtime.ops.table import OPS
from runtime.tensor import Tensor, TensorLike


def _distance(matrix: Any) -> Tensor:
    """Column minus row at each place of matrices, int32."""
    rows, columns = dims(matrix)[-2:]
    return creation.range(columns) - call("expand_dims", creation.range(rows), axis=(1,))


@deferrable
def band_part(input: TensorLike, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """The diagonal with `num_lower` bands below and `num_upper` bands above it, zeros elsewhere; negative: all
    bands."""
    x = convert_to_tensor(input)
    if known_rank(x, "band_part") < 2:
        raise errors.InvalidArgumentError(
            f"input must be at least 2-dim, received shape: {brackets(x._shape)} [Op:MatrixBandPart]"
        )
    offset = _distance(x)
    lower = call("cast", convert_to_tensor(num_lower), dtype=dtypes.int32)
    upper = call("cast", convert_to_tensor(num_upper), dtype=dtypes.int32)
    keep = logical_and(
        logical_or(lower < 0, offset >= -lower), logical_or(upper < 0, offset <= upper)
    )  # fmt: skip
    return where(keep, x, convert_to_tensor(0 if x.dtype.kind != "b" else False, x.dtype))


def set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: int = 0) -> Tensor:
    """Matrices with other numbers on their main diagonal. Raises NotImplementedError for other diagonals."""
    if k != 0:
        raise NotImplementedError("set_diag sets the main diagonal; other values of k are not implemented")
    x, line = operands("MatrixSetDiag", input, diagonal)
    rank = known_rank(x, "set_diag")
    rows, columns = dims(x)[-2:]
    count = dims(line)[-1]
    if all(isinstance(d, int) for d in (rows, columns, count)) and min(rows, columns) != count:
        raise errors.InvalidArgumentError(
            f"diagonal must have {min(rows, columns)} elements per matrix, got shape {line.shape} [Op:MatrixSetDiag]"
        )
    # Each row takes its element: the diagonal spread over columns, with padding for rows beyond it.
    spread = call("expand_dims", line, axis=(known_rank(line, "set_diag"),))
    if not (isinstance(rows, int) and rows == count):
        places = call("minimum", creation.range(rows), convert_to_tensor(count, dtypes.int32) - 1)
        spread = call("gather", spread, places, axis=rank - 2)
    return where(call("equal", _distance(x), convert_to_tensor(0)), spread, x)


@deferrable
def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """The cross product of vectors of 3 elements along the last dimension. Raises InvalidArgumentError for others."""
    x, y = operands("Cross", a, b)
    for tensor in (x, y):
        if (tensor._shape or (None,))[-1] not in (3, None):
            raise errors.InvalidArgumentError(f"Cross-products are only for 3-element vectors, got {tensor.shape}")
    first = [x[..., i] for i in range(3)]
    second = [y[..., i] for i in range(3)]
    parts = [first[(i + 1) % 3] * second[(i + 2) % 3] - first[(i + 2) % 3] * second[(i + 1) % 3] for i in range(3)]
    return stack(parts, -1)


@deferrable
def norm(
    tensor: TensorLike, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None, name: str | None = None
) -> Tensor:
    """The norm of vectors along `axis` (an int), of matrices over two axes, or of all elements.

    ord: "euclidean", 1, 2, inf or another positive number for vectors; "euclidean", "fro", 1, 2, inf for matrices.
    Raises ValueError for a norm that isn't supported.
    """
    x = convert_to_tensor(tensor)
    check_kind(OPS["sqrt"], x.dtype)
    keep = bool(keepdims)
    if isinstance(axis, (list, tuple)) and len(axis) == 1:
        axis = axis[0]
    if isinstance(axis, (list, tuple)):
        if len(axis) != 2:
            raise ValueError("'axis' must be None, an integer, or a tuple of 2 unique integers")
        return _matrix_norm(x, ord, tuple(axis), keep)
    if ord in ("euclidean", 2, 2.0) or (ord == "fro" and axis is None):
        return _root_of_squares(x, axis, keep)
    if isinstance(ord, str):
        raise ValueError(f"'ord' must be a supported vector norm, got {ord!r}")
    size = absolute(x)
    if ord == np.inf:
        return reduce_max(size, axis, keep)
    if ord == 1:
        return reduce_sum(size, axis, keep)
    if ord > 0:
        return reduce_sum(size**ord, axis, keep) ** (1.0 / ord)
    raise ValueError(f"'ord' must be a supported vector norm, got {ord}")


def _root_of_squares(x: Tensor, axis: Any, keep: bool) -> Tensor:
    return call("sqrt", reduce_sum(x * conj(x), axis, keep))


def _matrix_norm(x: Tensor, ord: Any, axis: tuple, keep: bool) -> Tensor:
    rank = known_rank(x, "norm")
    rows, columns = (static_axis(a, rank, "norm") for a in axis)
    if ord in ("euclidean", "fro"):
        return _root_of_squares(x, [rows, columns], keep)
    if ord in (1, np.inf):
        inner, outer = (rows, columns) if ord == 1 else (columns, rows)
        total = reduce_max(reduce_sum(absolute(x), inner, True), outer, True)
    elif ord == 2:
        order = (*[i for i in range(rank) if i not in (rows, columns)], rows, columns)
        top = reduce_max(svd(call("transpose", x, perm=order), compute_uv=False), -1)
        if not keep:
            return top
        return call("expand_dims", top, axis=tuple(sorted((rows, columns))))
    else:
        raise ValueError(f"'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], got {ord}")
    return total if keep else call("squeeze", total, axis=tuple(sorted((rows, columns))))


@deferrable
def normalize(
    tensor: TensorLike, ord: Any = "euclidean", axis: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """tensor / norm, and the norm."""
    x = convert_to_tensor(tensor)
    size = norm(x, ord, axis, keepdims=True)
    return x / size, size


# --- clipping by norm ----------------------------------------------------------------------------------------------


@deferrable
def clip_by_norm(t: TensorLike, clip_norm: Any, axes: Any = None, name: str | None = None) -> Tensor:
    """t, scaled down to the Euclidean norm `clip_norm` (over `axes`) if its norm is larger."""
    x = convert_to_tensor(t)
    squares = reduce_sum(x * x, axes, keepdims=True)
    long = squares > 0
    one = convert_to_tensor(1, x.dtype)
    # The square root of 0 has no derivative.
    length = where(long, call("sqrt", where(long, squares, one)), squares)
    limit = convert_to_tensor(clip_norm, x.dtype)
    return x * limit / call("maximum", length, limit)


@deferrable
def global_norm(t_list: Sequence[Any], name: str | None = None) -> Tensor:
    """The Euclidean norm of all elements of several tensors; None entries don't count, and of `IndexedSlices` the
    values."""
    if not isinstance(t_list, (list, tuple)):
        raise TypeError(f"`t_list` should be a sequence of tensors. Received {type(t_list)}.")
    parts = [convert_to_tensor(t.values if isinstance(t, IndexedSlices) else t) for t in t_list if t is not None]
    if not parts:
        raise ValueError("global_norm needs at least one tensor")
    total: Any = None
    for part in parts:
        squares = reduce_sum(part * part)
        total = squares if total is None else total + squares
    return call("sqrt", total)


@deferrable
def clip_by_global_norm(
    t_list: Sequence[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """The tensors (or `IndexedSlices`), scaled down so that their common norm (see `global_norm`) is at most
    `clip_norm`, and their norm before that.

    If the norm is infinite or NaN, all results are NaN, so that it doesn't go unnoticed.
    """
    total = global_norm(t_list) if use_norm is None else convert_to_tensor(use_norm)
    limit = convert_to_tensor(clip_norm, total.dtype)
    scale = limit * call("minimum", 1 / total, 1 / limit)
    finite = call("is_finite", total)
    scale = where(finite, scale, convert_to_tensor(float("nan"), total.dtype))

    def scaled(t: Any) -> Any:
        return t.with_values(t.values * scale) if isinstance(t, IndexedSlices) else convert_to_tensor(t) * scale

    return [None if t is None else scaled(t) for t in t_list], total


def tril(m: Any, k: int = 0) -> Tensor:
    """`np.tril`: the lower triangle up to diagonal k."""
    return _triangle(m, lambda offset: offset <= k)


def triu(m: Any, k: int = 0) -> Tensor:
    """`np.triu`: the upper triangle from diagonal k on."""
    return _triangle(m, lambda offset: offset >= k)


def _triangle(m: Any, keep: Any) -> Tensor:
    x = convert_to_tensor(m)
    return where(keep(_distance(x)), x, convert_to_tensor(0, x.dtype))


def diagonal_of(x: Any, offset: int = 0) -> Tensor:
    """The diagonal `offset` places above the main one, of matrices in the last two dimensions."""
    matrix = convert_to_tensor(x)
    if offset:
        matrix = matrix[..., :, offset:] if offset > 0 else matrix[..., -offset:, :]
    return diag_part(matrix)


def diagonal_matrix(v: Any, offset: int = 0) -> Tensor:
    """A matrix with a vector on the diagonal `offset` places above the main one."""
    matrix = diag(v)
    if not offset:
        return matrix
    borders = ((0, offset), (offset, 0)) if offset > 0 else ((-offset, 0), (0, -offset))
    return call("pad", matrix, paddings=borders, constant_values=0)
