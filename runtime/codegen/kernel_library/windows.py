"""Rows of windows over images. All convolutions of a kernel share this code: with loops of its own, each would take
LLVM a tenth of a second."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(nogil=True, inline="never")
def fill_places(
    table: Any, first: int, n0: int, step0: int, n1: int, step1: int, n2: int, step2: int, n3: int, step3: int
) -> None:
    """Writes first + i * step0 + j * step1 + k * step2 + l * step3 for all indices of a row-major array of n0 x n1 x n2
    x n3."""
    at = 0
    for i in range(n0):
        for j in range(n1):
            for k in range(n2):
                place = first + i * step0 + j * step1 + k * step2
                for m in range(n3):
                    table[at + m] = place + m * step3
                at = at + n3


@njit(nogil=True, inline="never")
def rows_of_strip(
    most: int, row: int, span: int, stride: int, images: int, rows: int, windows: int, least: int, parts: int
) -> int:
    """The rows of windows, `windows` each, over a part of an image of at most `most` elements: so many that there are
    some `parts` parts of all images, and at least `least` windows in each. row: elements of a row of the image, of
    which windows have `span`. images, rows: their number, and the rows of windows over each."""
    room = max(most // row - span, 0) // stride + 1
    share = max((images * rows + parts - 1) // parts, (least + windows - 1) // windows)
    return min(min(room, share), rows)


@njit(nogil=True, inline="never")
def images_of_strip(most: int, size: int, images: int, windows: int, least: int, parts: int) -> int:
    """The number of whole images, of `size` elements and with so many windows each, that are taken together: 1 if
    parts of an image are."""
    share = max((images + parts - 1) // parts, (least + windows - 1) // windows)
    return max(min(min(most // size, share), images), 1)


@njit(nogil=True, inline="never")
def pad_rows(
    x: Any, begin: int, top: int, rows: int, count: int, length: int, channels: int, out: Any, to: int, before: int,
    width: int,
) -> None:  # fmt: skip
    """Copies the rows of an image from number `top` on to out[to]: `count` rows of `width` columns, the first `before`
    of which the image lacks. The image has `rows` rows, of which the first is row `begin` of x, of `length` columns.
    What it lacks is 0."""
    for i in range(count):
        row = top + i
        columns = length if row >= 0 and row < rows else 0
        from_ = (begin + row) * length * channels
        copy_windows(x, from_, columns, channels, out, to + i * width * channels, 0, 1, -before, 1, width)


@njit(nogil=True, inline="never")
def transpose_matrix(a: Any, a0: int, out: Any, out0: int, rows: int, columns: int) -> None:
    """out = the transposed matrix, both flat and row-major, from the given places on."""
    for first in range(0, columns, 8):  # lines of so many rows of `out` stay in the first-level cache
        last = min(first + 8, columns)
        for i in range(rows):
            for j in range(first, last):
                out[out0 + j * rows + i] = a[a0 + i * columns + j]


@njit(nogil=True, inline="never")
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
        left, right = 0, size
        if column < 0 or column + columns > length:
            left = min(max(-column, 0), columns) * channels
            right = max(min(length - column, columns) * channels, left)
            for k in range(left):
                out[place + k] = 0
            for k in range(right, size):
                out[place + k] = 0
        k = left
        while k + 8 <= right:  # in registers: LLVM can't know that the arrays are different
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
        while k < right:
            out[place + k] = x[source + k]
            k = k + 1
