"""Rows of windows over images. All convolutions of a kernel share this code: with loops of its own, each would take
LLVM a tenth of a second."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(nogil=True)
def copy_windows(
    x: Any, row: int, length: int, channels: int, out: Any, to: int, step: int, count: int, first: int, stride: int,
    columns: int,
) -> None:  # fmt: skip
    """Copies a row of an image to the windows of a row: its `columns` columns from column `first` on to out[to], those
    from first + stride on to out[to + step], and so on for `count` windows. The row begins at x[row] and has `length`
    columns, which are 0 beyond its ends."""
    size = columns * channels
    for j in range(count):
        column = first + j * stride
        place = to + j * step
        source = row + column * channels
        if column >= 0 and column + columns <= length:
            k = 0
            while k + 8 <= size:  # in registers: LLVM can't know that the arrays are different
                v0, v1, v2, v3 = x[source + k], x[source + k + 1], x[source + k + 2], x[source + k + 3]
                v4, v5, v6, v7 = x[source + k + 4], x[source + k + 5], x[source + k + 6], x[source + k + 7]
                out[place + k] = v0
                out[place + k + 1] = v1
                out[place + k + 2] = v2
                out[place + k + 3] = v3
                out[place + k + 4] = v4
                out[place + k + 5] = v5
                out[place + k + 6] = v6
                out[place + k + 7] = v7
                k = k + 8
            while k < size:
                out[place + k] = x[source + k]
                k = k + 1
        else:
            left = min(max(-column, 0), columns) * channels
            right = max(min(length - column, columns) * channels, left)
            for k in range(size):
                out[place + k] = 0
            for k in range(left, right):
                out[place + k] = x[source + k]
