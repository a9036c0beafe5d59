"""Matrix products and what is made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops import blas
from runtime.ops.arrays import creation
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import check_kind, convert_to_tensor, mismatch, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.complex_numbers import conj
from runtime.ops.rules import brackets, dims, product, shape_attr, unbroadcast
from runtime.ops.table import OpDef, Sample, register
from runtime.shapes import broadcast
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _infer_matmul(inputs: Sequence[Any], attrs: dict) -> tuple:
    a, b = inputs
    if a.dtype is not b.dtype:
        raise TypeError(f"input #1 has dtype {b.dtype.label}, which does not match type {a.dtype.label} of input #0")
    if a.shape is None or b.shape is None:
        return (TensorType(a.dtype, None),)
    for index, shape in enumerate((a.shape, b.shape)):
        if len(shape) < 2:
            raise ValueError(
                f"In[{index}] ndims must be >= 2; for a matrix and a vector there is ag.linalg.matvec, or let NumPy's "
                "rules hold everywhere: ag.experimental.numpy.experimental_enable_numpy_behavior()"
            )
    rows, inner_a = a.shape[-2:][::-1] if attrs["transpose_a"] else a.shape[-2:]
    inner_b, columns = b.shape[-2:][::-1] if attrs["transpose_b"] else b.shape[-2:]
    if inner_a is not None and inner_b is not None and inner_a != inner_b:
        raise ValueError(f"Matrix size-incompatible: In[0]: {brackets(a.shape)}, In[1]: {brackets(b.shape)}")
    try:
        batch = broadcast(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"In[0] and In[1] must have compatible batch dimensions: {brackets(a.shape)} vs. {brackets(b.shape)}"
        ) from None
    return (TensorType(a.dtype, (*batch, rows, columns)),)  # type: ignore[misc]


def _matmul_kernel(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    if a.ndim < 2 or b.ndim < 2:
        raise ValueError("matmul needs matrices")
    if transpose_a:
        a = a.swapaxes(-1, -2)
    if transpose_b:
        b = b.swapaxes(-1, -2)
    return blas.matmul(a, b)


def _product(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Any:
    return call("matmul", a, b, transpose_a=transpose_a, transpose_b=transpose_b)


def _grad_matmul(op: Any, dy: Any) -> Sequence[Any]:
    a, b = op.inputs
    left, right = op.attrs["transpose_a"], op.attrs["transpose_b"]
    da = db = None
    if op.wants(0):
        da = _unbatch(_product(b, dy, right, True) if left else _product(dy, b, False, not right), a)
    if op.wants(1):
        if not left and b._shape is not None and len(b._shape) == 2:
            # One product adds up the rows of the whole batch, where many products and a sum of them take longer.
            a, dy = _as_matrix(a), _as_matrix(dy)
        db = _unbatch(_product(dy, a, True, left) if right else _product(a, dy, not left, False), b)
    return da, db


def _as_matrix(x: Any) -> Any:
    """A batch of matrices as one, of all of their rows."""
    if x._shape is None or len(x._shape) == 2:
        return x
    sizes = dims(x)
    shape, extra = shape_attr([product(sizes[:-1]), sizes[-1]])
    return call("reshape", x, *extra, shape=shape)


def _unbatch(grad: Any, like: Any) -> Any:
    """Sums over the batch dimensions that were broadcast."""
    if grad._shape is not None and like._shape is not None and len(grad._shape) == len(like._shape) == 2:
        return grad
    return unbroadcast(grad, like)


def _terms(shapes: Sequence[Any], attrs: dict) -> int | None:
    return shapes[0][-2 if attrs["transpose_a"] else -1]


_MATRICES = [
    (((2, 3), (3, 4)), False, False), (((3, 2), (3, 4)), True, False), (((2, 3), (4, 3)), False, True),
    (((3, 2), (4, 3)), True, True), (((2, 2, 3), (2, 3, 1)), False, False), (((2, 2, 3), (3, 2)), False, False),
    (((2, 3), (2, 2, 3)), False, True), (((1, 2, 3), (2, 3, 2)), False, False), (((0, 3), (3, 2)), False, False),
    (((2, 0), (0, 2)), False, False), (((2, 2, 3), (4, 3)), False, True),
]  # fmt: skip
MATMUL = register(
    OpDef(
        "matmul", _infer_matmul, _matmul_kernel, grad=_grad_matmul, kinds="iufc", label="MatMul",
        doc="Products of matrices, batched and broadcast over leading dimensions.",
        samples=tuple(Sample(s, {"transpose_a": a, "transpose_b": b}) for s, a, b in _MATRICES),
        can_fail=False,
        needs_no_constants=True,
        terms=_terms,
    )
)  # fmt: skip


@deferrable
def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices in the last two dimensions; the dimensions before are a batch and broadcast.

    adjoint_a, adjoint_b: the conjugate transpose. a_is_sparse, b_is_sparse, grad_a, grad_b: accepted, without effect.
    output_type: the dtype of the result, to which the operands are cast.
    Raises ValueError if both the transpose and the adjoint of a matrix are requested, InvalidArgumentError for vectors,
    for inner dimensions that differ and for different dtypes.
    """
    x, y = operands("MatMul", a, b)
    if x.dtype is not y.dtype:
        raise mismatch("MatMul", 1, x.dtype, y.dtype)
    check_kind(MATMUL, x.dtype)
    for which, transposed, conjugated in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
        if transposed and conjugated:
            raise ValueError(f"Only one of `transpose_{which}` and `adjoint_{which}` can be True.")
    if output_type is not None:
        x, y = call("cast", x, dtype=dtypes.as_dtype(output_type)), call("cast", y, dtype=dtypes.as_dtype(output_type))
    x, y = conj(x) if adjoint_a else x, conj(y) if adjoint_b else y
    flips = {"transpose_a": bool(transpose_a or adjoint_a), "transpose_b": bool(transpose_b or adjoint_b)}
    return apply(MATMUL, (x, y), flips)


@deferrable
def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of matrices with vectors: shapes [..., m, n] and [..., n] give [..., m]."""
    x, y = operands("MatMul", a, b)
    column = call("expand_dims", y, axis=(known_rank(y, "matvec"),))
    product = matmul(x, column, transpose_a, adjoint_a=adjoint_a)
    return call("squeeze", product, axis=(known_rank(product, "matvec") - 1,))


@deferrable
def matrix_transpose(a: TensorLike, name: str | None = None, conjugate: bool = False) -> Tensor:
    """The last two dimensions swapped, and conjugated if asked. Raises ValueError for a rank below 2."""
    x = convert_to_tensor(a)
    r = known_rank(x, "matrix_transpose")
    if r < 2:
        raise ValueError(f"Argument `a` should be a (batch) matrix with rank >= 2. Received `a` with shape {x.shape}")
    swapped = call("transpose", x, perm=(*range(r - 2), r - 1, r - 2))
    return conj(swapped) if conjugate else swapped


@deferrable
def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """The conjugate transpose of matrices in the last two dimensions. Raises ValueError for a rank below 2."""
    return matrix_transpose(matrix, conjugate=True)


@deferrable
def tensordot(a: TensorLike, b: TensorLike, axes: Any, name: str | None = None) -> Tensor:
    """The sum over pairs of axes: `axes` of a's last and b's first, or two lists of axes.

    Raises ValueError when the numbers of axes differ.
    """
    x, y = operands("MatMul", a, b)
    rank_x, rank_y = known_rank(x, "tensordot"), known_rank(y, "tensordot")
    if isinstance(axes, (int, np.integer)):
        if not 0 <= axes <= min(rank_x, rank_y):
            raise ValueError(f"`axes` must be in [0, {min(rank_x, rank_y)}], got {axes}")
        left, right = list(range(rank_x - axes, rank_x)), list(range(axes))
    else:
        pair = [[int(v) for v in np.reshape(np.asarray(part), -1)] for part in axes]
        if len(pair) != 2 or len(pair[0]) != len(pair[1]):
            raise ValueError(f"Different number of contraction axes in `axes`: {axes!r}")
        left, right = [v % rank_x for v in pair[0]], [v % rank_y for v in pair[1]]
    free_x = [i for i in range(rank_x) if i not in left]
    free_y = [i for i in range(rank_y) if i not in right]
    sizes_x, sizes_y = dims(x), dims(y)

    def flat(tensor: Any, order: list[int], leading: list[Any], trailing: list[Any]) -> Any:
        shape, extra = shape_attr([product(leading), product(trailing)])
        return call("reshape", call("transpose", tensor, perm=tuple(order)), *extra, shape=shape)

    inner = [sizes_x[i] for i in left]
    rows = flat(x, free_x + left, [sizes_x[i] for i in free_x], inner)
    columns = flat(y, right + free_y, [sizes_y[i] for i in right], [sizes_y[i] for i in free_y])
    shape, extra = shape_attr([sizes_x[i] for i in free_x] + [sizes_y[i] for i in free_y])
    return call("reshape", matmul(rows, columns), *extra, shape=shape)


@deferrable
def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the diagonal of matrices in the last two dimensions."""
    matrix = convert_to_tensor(x)
    return call("reduce_sum", diag_part(matrix), axis=(known_rank(matrix, "trace") - 2,), keepdims=False)


def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of matrices in the last two dimensions."""

    x = convert_to_tensor(input)
    r = known_rank(x, "diag_part")
    if r < 2:
        raise errors.InvalidArgumentError(f"input must be at least 2-dim, received shape: {brackets(x._shape)}")
    rows, columns = dims(x)[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        count = min(rows, columns)
        flat, extra = shape_attr([*dims(x)[:-2], rows * columns])
        line = call("reshape", x, *extra, shape=flat)
        return line[..., : (count - 1) * (columns + 1) + 1 : columns + 1] if count else line[..., :0]
    masked = call("select", call("cast", creation.eye(rows, columns), dtype=dtypes.bool_), x, call("zeros_like", x))
    total = call("reduce_sum", masked, axis=(r - 1,), keepdims=False)
    count = call("minimum", convert_to_tensor(rows), convert_to_tensor(columns))
    return call("gather", total, creation.range(count), axis=r - 2)


def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """Matrices with the last dimension of `diagonal` on their diagonal and zeros elsewhere."""
    x = convert_to_tensor(diagonal)
    r = known_rank(x, "diag")
    size = dims(x)[-1]
    return call("expand_dims", x, axis=(r,)) * creation.eye(size, dtype=x.dtype)
