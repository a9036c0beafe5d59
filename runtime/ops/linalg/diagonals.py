"""Diagonals of matrices, one or a band of them: `ag.linalg.diag`, `diag_part` and `set_diag` with k and align.

A band k = (low, high) of diagonals is held as rows of the length of the longest, the highest diagonal first; shorter
ones stand at the left or the right of their row, as `align` says. Each function is one gather of a table of positions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor, int_list, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import call
from runtime.ops.elementwise.compare import where
from runtime.ops.linalg import matrices, matrix_products
from runtime.ops.rules import brackets, dims, shape_attr
from runtime.tensor import Tensor, TensorLike

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def _band(k: Any) -> tuple[int, int]:
    entries = int_list(k, "k")
    if len(entries) not in (1, 2) or not all(isinstance(e, int) for e in entries):
        raise ValueError(f"k must be one integer or two that are known while tracing, got {k!r}")
    low, high = int(entries[0]), int(entries[-1])  # type: ignore[arg-type]
    if low > high:
        raise errors.InvalidArgumentError(f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}")
    return low, high


def _static(x: Tensor, what: str) -> tuple[int, int]:
    rows, columns = dims(x)[-2:]
    if not (isinstance(rows, int) and isinstance(columns, int)):
        raise ValueError(f"{what} with k needs matrices of known size, got shape {brackets(x._shape)}")
    return rows, columns


def _places(rows: int, columns: int, low: int, high: int, align: str) -> np.ndarray:
    """For each place of the band its position in a matrix, row by row, or -1 for filling."""
    if align not in _ALIGNMENTS:
        raise ValueError(f"align must be one of {', '.join(_ALIGNMENTS)}, got {align!r}")
    if not (-rows < low <= high < columns or rows == columns == 0 or low == high == 0):
        raise errors.InvalidArgumentError(
            f"Diagonals {low} to {high} don't lie in a matrix of shape [{rows},{columns}]: k must be in "
            f"({-rows}, {columns})"
        )
    longest = min(rows + min(high, 0), columns + min(-low, 0))
    above, below = (part == "LEFT" for part in align.split("_"))
    table = np.full((high - low + 1, longest), -1)
    for row, offset in enumerate(range(high, low - 1, -1)):
        length = min(rows + min(offset, 0), columns - max(offset, 0))
        left = (offset >= 0 and above) or (offset <= 0 and below)
        start = 0 if left else longest - length
        i = np.arange(length) - min(offset, 0)
        table[row, start : start + length] = i * columns + i + offset
    return table


def _taken(x: Tensor, axes: int, table: np.ndarray, filling: Any) -> Tensor:
    """The last `axes` dimensions of x, as one, read at a table of positions; `filling` where it says -1."""
    sizes = dims(x)
    count = 1
    for size in sizes[len(sizes) - axes :]:
        count *= size
    shape, extra = shape_attr([*sizes[: len(sizes) - axes], count])
    flat = call("reshape", x, *extra, shape=shape)
    if not count:
        flat = call("pad", flat, paddings=((0, 0),) * (len(shape) - 1) + ((0, 1),), constant_values=0)
    found = call("gather", flat, convert_to_tensor(np.maximum(table, 0).astype(np.int32)), axis=len(shape) - 1)
    return found if (table >= 0).all() else where(table >= 0, found, filling)


@deferrable
def diag_part(
    input: TensorLike, name: str | None = "diag_part", k: Any = 0, padding_value: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """The diagonal k of matrices in the last two dimensions, or the band of diagonals k = (low, high).

    A band has shape [..., high - low + 1, length of the longest]; shorter diagonals are padded with `padding_value`.
    Raises InvalidArgumentError for diagonals out of range.
    """
    x = convert_to_tensor(input)
    low, high = _band(k)
    if low == high == 0:
        return matrix_products.diag_part(x)
    if known_rank(x, "diag_part") < 2:
        raise errors.InvalidArgumentError(f"input must be at least 2-dim, received shape: {brackets(x._shape)}")
    table = _places(*_static(x, "diag_part"), low, high, align)
    return _taken(x, 2, table[0] if low == high else table, _filling(padding_value, x))


@deferrable
def diag(
    diagonal: TensorLike,
    name: str | None = "diag",
    k: Any = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Matrices with `diagonal` (or a band of diagonals) at k and `padding_value` elsewhere, as small as possible by

    default. Raises InvalidArgumentError for sizes that the diagonal doesn't fit.
    """
    x = convert_to_tensor(diagonal)
    if x._shape == ():
        raise errors.InvalidArgumentError("diagonal must be at least 1-dim, received shape: [] [Op:MatrixDiagV3]")
    low, high = _band(k)
    if low == high == 0 and num_rows == num_cols == -1 and padding_value in (0, False):
        if x.dtype.is_numeric:
            return matrix_products.diag(x)
        if x.dtype is dtypes.bool_:
            return call("cast", matrix_products.diag(call("cast", x, dtype=dtypes.int8)), dtype=dtypes.bool_)
    longest = dims(x)[-1]
    if not isinstance(longest, int):
        raise ValueError(f"diag with k needs a diagonal of known length, got shape {brackets(x._shape)}")
    if low < high and dims(x)[-2] != high - low + 1:
        raise errors.InvalidArgumentError(f"{high - low + 1} diagonals need as many rows, got {brackets(x._shape)}")
    least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
    if num_rows == -1 and num_cols == -1:
        num_rows = num_cols = max(least_rows, least_columns)
    rows = least_rows if num_rows == -1 else int(num_rows)
    columns = least_columns if num_cols == -1 else int(num_cols)
    if rows < least_rows or columns < least_columns or (rows != least_rows and columns != least_columns):
        raise errors.InvalidArgumentError(
            f"A diagonal of {longest} elements at k = {k} needs {least_rows} rows and {least_columns} columns (one of "
            f"them may be more), got {rows} and {columns}"
        )
    table = _inverse(_places(rows, columns, low, high, align), rows, columns)
    return _taken(x, 2 if low < high else 1, table, _filling(padding_value, x))


def _filling(value: Any, x: Tensor) -> Tensor:
    """A padding value as a tensor; the default, 0, is False among booleans and empty among strings."""
    if isinstance(value, int) and value == 0 and not x.dtype.is_numeric:
        value = False if x.dtype is dtypes.bool_ else b""
    return convert_to_tensor(value, x.dtype)


def _inverse(table: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """For each place of a matrix its position in the band, or -1."""
    result = np.full(rows * columns, -1)
    flat = table.reshape(-1)
    result[flat[flat >= 0]] = np.flatnonzero(flat >= 0)
    return result.reshape(rows, columns)


@deferrable
def set_diag(
    input: TensorLike, diagonal: TensorLike, name: str | None = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Replaces the diagonal k of matrices, or the band of diagonals k = (low, high).

    Raises InvalidArgumentError for a diagonal of another shape.
    """
    low, high = _band(k)
    if low == high == 0:
        return matrices.set_diag(input, diagonal)
    x, line = operands("MatrixSetDiag", input, diagonal)
    rows, columns = _static(x, "set_diag")
    table = _places(rows, columns, low, high, align)
    wanted = (*(x._shape or ())[:-2], *(table.shape if low < high else table.shape[1:]))
    if line._shape is None or len(line._shape) != len(wanted) or any(
        d is not None and w is not None and d != w for d, w in zip(line._shape, wanted)
    ):  # fmt: skip
        raise errors.InvalidArgumentError(
            f"diagonal must have shape {brackets(wanted)} for k = {k}, got {brackets(line._shape)} [Op:MatrixSetDiag]"
        )
    return _taken(line, 2 if low < high else 1, _inverse(table, rows, columns), x)
