"""Cofactors, the slopes of the determinant, for singular matrices too: kernels by the singular value decomposition.

With x = U diag(s) Vh, the cofactors of x are those of the three factors, multiplied: for the unitary ones
conj(U) det(U) and conj(Vh) det(Vh), and for diag(s) the products of all other s, in which nothing is divided by a
vanishing one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.dispatch import call
from runtime.ops.linalg.matrix_products import matmul, matrix_transpose
from runtime.ops.rules import need_same_dtype
from runtime.ops.table import OpDef, Sample, register

# Inverses of matrices with a larger condition lose too many of the 16 digits.
_MOST_CONDITION = 1e6


def _infer_like_first(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_same_dtype(inputs)
    return (inputs[0],)


def _widened(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Computes in 64 bits: LAPACK has no half precision, and products of many singular values leave float32."""

    def run(*arrays: Any) -> Any:
        dtype = arrays[0].dtype
        wide = np.complex128 if dtype.kind == "c" else np.float64
        return kernel(*(a.astype(wide) for a in arrays)).astype(dtype)

    return run


def _inverse_transpose(x: Any) -> Any:
    """None where a matrix is singular, or nearly."""
    try:
        inverse = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return None
    condition = np.linalg.norm(x, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
    return np.swapaxes(inverse, -1, -2) if np.all(condition < _MOST_CONDITION) else None


def _times(scalars: Any, matrices: Any) -> Any:
    return np.asarray(scalars)[..., None, None] * matrices


def _inverses_of_large(s: Any) -> Any:
    """1 / s of all but the two smallest singular values. Where one of these vanishes, so do all products of all but two
    or fewer others: their factor is 0."""
    large = s[..., :-2]
    return np.divide(1, large, out=np.zeros_like(large), where=large != 0)


def _products_of_others(s: Any) -> Any:
    """For each singular value, the product of all others; s falls."""
    most = np.prod(s[..., :-1], -1, keepdims=True)
    inverses = np.divide(1, s[..., :-1], out=np.zeros_like(s[..., :-1]), where=s[..., :-1] != 0)
    return np.concatenate([most * s[..., -1:] * inverses, most], -1)


def _products_without_pairs(s: Any) -> Any:
    """For each pair of different singular values, the product of all others; 0 on the diagonal."""
    size = s.shape[-1]
    result = np.zeros((*s.shape, size))
    if size < 2:
        return result
    most = np.prod(s[..., :-2], -1)
    inverses, second, last = _inverses_of_large(s), s[..., -2], s[..., -1]
    result[..., :-2, :-2] = _times(most * second * last, inverses[..., :, None] * inverses[..., None, :])
    for place, other in ((-2, last), (-1, second)):
        result[..., place, :-2] = result[..., :-2, place] = (most * other)[..., None] * inverses
    result[..., -1, -2] = result[..., -2, -1] = most
    result[..., range(size), range(size)] = 0
    return result


def _cofactors(x: Any) -> Any:
    inverse = _inverse_transpose(x)
    if inverse is not None:
        return _times(np.linalg.det(x), inverse)
    u, s, vh = np.linalg.svd(x)
    middle = np.conj(u) * _products_of_others(s)[..., None, :]
    return _times(np.linalg.det(u) * np.linalg.det(vh), middle @ np.conj(vh))


def _change_of_cofactors(x: Any, change: Any) -> Any:
    inverse = _inverse_transpose(x)
    if inverse is not None:
        inner = np.sum(inverse * change, (-2, -1))
        moved = _times(inner, inverse) - inverse @ np.swapaxes(change, -1, -2) @ inverse
        return _times(np.linalg.det(x), moved)
    u, s, vh = np.linalg.svd(x)
    own = np.conj(np.swapaxes(u, -1, -2)) @ change @ np.conj(np.swapaxes(vh, -1, -2))
    pairs = _products_without_pairs(s)
    middle = -pairs * np.swapaxes(own, -1, -2)
    diagonal = range(s.shape[-1])
    middle[..., diagonal, diagonal] = (pairs @ own[..., diagonal, diagonal][..., None])[..., 0]
    return _times(np.linalg.det(u) * np.linalg.det(vh), np.conj(u) @ middle @ np.conj(vh))


def cofactors(x: Any) -> Any:
    """The slope of the determinant of square matrices."""
    return call("matrix_cofactors", x)


def _grad_change(op: Any, dy: Any) -> Sequence[Any]:
    """The change is symmetric in `change` and dy. By x, it is differentiated as det(x) (<B, C> B - B C^T B), where B is
    the inverse transpose: only of matrices that have an inverse."""
    x, change = op.inputs
    by_change = call("change_of_cofactors", x, dy) if op.wants(1) else None
    if not op.wants(0):
        return None, by_change
    b = matrix_transpose(call("matrix_inverse", x))
    b_c, b_dy = (matmul(b, matmul(each, b, transpose_a=True)) for each in (change, dy))

    def inner(one: Any, other: Any) -> Any:
        return reduce_sum(one * other, (-2, -1), keepdims=True)

    along_c, along_dy = inner(b, change), inner(b, dy)
    crossed = matmul(b_c, matmul(dy, b, transpose_a=True)) + matmul(b_dy, matmul(change, b, transpose_a=True))
    by_x = (along_c * along_dy - inner(dy, b_c)) * b - along_dy * b_c - along_c * b_dy + crossed
    return call("matrix_determinant", x)[..., None, None] * by_x, by_change


_SQUARES = [(2, 2), (2, 3, 3), (1, 1)]
COFACTORS = register(
    OpDef(
        "matrix_cofactors", _infer_like_first, _widened(_cofactors), kinds="fc",
        grad=lambda op, dy: (call("change_of_cofactors", op.inputs[0], dy),),
        doc="The cofactors of square matrices, the slope of the determinant; finite for singular ones.",
        samples=tuple(Sample((shape,), low=0.2, high=2.0) for shape in _SQUARES),
    )
)  # fmt: skip
CHANGE_OF_COFACTORS = register(
    OpDef(
        "change_of_cofactors", _infer_like_first, _widened(_change_of_cofactors), kinds="fc", grad=_grad_change,
        doc="The derivative of the cofactors of the first operand in the direction of the second.",
        samples=tuple(Sample((shape, shape), low=0.2, high=2.0) for shape in _SQUARES),
    )
)  # fmt: skip
