"""The part of the library that searches and sorts sequences, factors matrices and solves equations. Imported by kernel
files only."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True)
def place_in(sequence: Any, first: int, count: int, value: Any, right: bool) -> int:
    """The position at which a value is inserted into a sorted sequence of `count` elements from `first` on, before or
    after equal elements. NaN comes after all numbers. The search halves its interval in the same way for every value:
    without branches to mispredict, searches overlap."""
    if count == 0:
        return 0
    place = first
    left = count
    while left > 1:
        half = left // 2
        here = sequence[place + half - 1]
        if right:
            before = not (value < here or (here != here and value == value))
        else:
            before = here < value or (value != value and here == here)
        place = place + half if before else place
        left = left - half
    here = sequence[place]
    if right:
        before = not (value < here or (here != here and value == value))
    else:
        before = here < value or (value != value and here == here)
    return place - first + (1 if before else 0)


@njit(nogil=True)
def top_of_row(x: Any, begin: int, length: int, values: Any, places: Any, at: int, k: int) -> None:
    """The k largest of `length` elements from x[begin] on, in descending order, and their positions. Equal elements
    keep their order, and NaN comes first. Blocks without an element larger than the least of those found are
    skipped."""
    count = 0
    start = 0
    while start < length and k > 0:
        end = min(start + 64, length)
        found = count < k
        if not found:
            least = values[at + k - 1]
            for j in range(start, end):
                here = x[begin + j]
                found = found | (here > least) | (here != here)
        if found:
            for j in range(start, end):
                here = x[begin + j]
                last = values[at + max(count, 1) - 1]
                if count < k or here > last or (here != here and last == last):
                    p = count if count < k else k - 1
                    count = p + 1
                    moving = p > 0
                    while moving:
                        before = values[at + p - 1]
                        if here > before or (here != here and before == before):
                            values[at + p] = before
                            places[at + p] = places[at + p - 1]
                            p = p - 1
                            moving = p > 0
                        else:
                            moving = False
                    values[at + p] = here
                    places[at + p] = j
        start = end


@njit(nogil=True)
def solved(matrix: Any, at: int, size: int, out: Any, to: int, columns: int) -> int:
    """Solves linear equations by elimination with partial pivoting (Golub and Van Loan, "Matrix Computations", 3.4).

    Overwrites the square matrix from `at` on by its triangular factors, and the right sides from `to` on by the
    solutions. Returns the number of row exchanges; -1 for a singular matrix.
    """
    swaps = 0
    for k in range(size):
        own, pivot = at + k * size, at + k * size
        for i in range(k + 1, size):
            row = at + i * size
            pivot = row if abs(matrix[row + k]) > abs(matrix[pivot + k]) else pivot
        if matrix[pivot + k] == 0:
            return -1
        if pivot != own:
            swaps += 1
            for j in range(size):
                kept = matrix[own + j]
                matrix[own + j] = matrix[pivot + j]
                matrix[pivot + j] = kept
            here, there = to + k * columns, to + (pivot - at) // size * columns
            for j in range(columns):
                kept = out[here + j]
                out[here + j] = out[there + j]
                out[there + j] = kept
        for i in range(k + 1, size):
            row = at + i * size
            factor = matrix[row + k] / matrix[own + k]
            for j in range(k + 1, size):
                matrix[row + j] -= factor * matrix[own + j]
            for j in range(columns):
                out[to + i * columns + j] -= factor * out[to + k * columns + j]
    for i in range(size - 1, -1, -1):
        row = at + i * size
        for k in range(size - 1, i, -1):
            for j in range(columns):
                out[to + i * columns + j] -= matrix[row + k] * out[to + k * columns + j]
        for j in range(columns):
            out[to + i * columns + j] /= matrix[row + i]
    return swaps


@njit(nogil=True)
def solve_each(matrices: Any, count: int, size: int, out: Any, columns: int, swaps: Any) -> None:
    """`solved` for each of several matrices; swaps: gets what it returns."""
    for number in range(count):
        swaps[number] = solved(matrices, number * size * size, size, out, number * size * columns, columns)


@njit(nogil=True)
def hash_width(size: int) -> int:
    """The binary logarithm of the number of slots in a hash table for that many elements: at most half are used."""
    width = 4
    while (1 << width) < 2 * size:
        width = width + 1
    return width


@njit(nogil=True)
def distinct(x: Any, keys: Any, size: int, table: Any, width: int, firsts: Any, numbers: Any) -> int:
    """Numbers the distinct ones of `size` elements in the order of their first occurrence. Returns how many there are;
    firsts[number] gets the position of the first one, numbers[i] the number of x[i]. NaN equals nothing.

    keys: an integer for each element, the same for equal ones. table: scratch memory of 2**width elements, for open
    addressing with multiplicative hashing (Knuth, "Sorting and Searching", 6.4).
    """
    for free in range(1 << width):
        table[free] = 0
    last = (1 << width) - 1
    count = 0
    for i in range(size):
        value = x[i]
        slot = np.int64((keys[i] * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - width))
        place = np.int64(table[slot])
        looking = value == value
        while looking:
            looking = place > 0 and x[place - 1] != value
            if looking:
                slot = (slot + 1) & last
                place = np.int64(table[slot])
        if place > 0 and value == value:
            numbers[i] = numbers[place - 1]
        else:
            if value == value:
                table[slot] = i + 1
            firsts[count] = i
            numbers[i] = count
            count = count + 1
    return count


@njit(nogil=True)
def order_of_row(
    x: Any, begin: int, length: int, descending: bool, places: Any, keys: Any, other_keys: Any, other_places: Any
) -> None:
    """The permutation that sorts the `length` elements from x[begin] on. The sort is stable; NaN comes last, or first
    if descending. The arrays of keys and the others are scratch memory, used at the same positions.

    Runs of eight are sorted by insertion, then merged into runs of twice the length (Knuth, "Sorting and Searching",
    5.2.4).
    """
    for i in range(length):
        key = x[begin + i]
        start = begin + i // 8 * 8
        to = begin + i
        moving = to > start
        while moving:
            held = keys[to - 1]
            if descending:
                before = key > held or (key != key and held == held)
            else:
                before = key < held or (held != held and key == key)
            if before:
                keys[to] = held
                places[to] = places[to - 1]
                to = to - 1
                moving = to > start
            else:
                moving = False
        keys[to] = key
        places[to] = i
    width = 8
    swapped = False
    while width < length:
        first = begin
        while first < begin + length:
            middle = min(first + width, begin + length)
            last = min(middle + width, begin + length)
            if swapped:
                merge_runs(other_keys, other_places, first, middle, last, descending, keys, places)
            else:
                merge_runs(keys, places, first, middle, last, descending, other_keys, other_places)
            first = last
        swapped = not swapped
        width = width * 2
    if swapped:
        for to in range(begin, begin + length):
            places[to] = other_places[to]


@njit(nogil=True)
def merge_runs(
    keys: Any, places: Any, first: int, middle: int, last: int, descending: bool, out_keys: Any, out_places: Any
) -> None:
    """Merges the runs that end before `middle` and `last`."""
    left = first
    right = middle
    for to in range(first, last):
        from_right = left >= middle
        if left < middle and right < last:
            key = keys[right]
            held = keys[left]
            if descending:
                from_right = key > held or (key != key and held == held)
            else:
                from_right = key < held or (held != held and key == key)
        source = right if from_right else left
        out_keys[to] = keys[source]
        out_places[to] = places[source]
        if from_right:
            right = right + 1
        else:
            left = left + 1


@njit(nogil=True)
def cholesky(matrix: Any, at: int, size: int) -> bool:
    """Overwrites the square matrix from `at` on by its lower triangular factor, row by row (Golub and Van Loan, "Matrix
    Computations", 4.2). Returns False if it isn't positive definite. The upper triangle isn't read. NaN propagates."""
    for i in range(size):
        row = at + i * size
        for j in range(i + 1):
            other = at + j * size
            total = matrix[row + j]
            for k in range(j):
                total -= matrix[row + k] * matrix[other + k]
            if i == j:
                if total <= 0:
                    return False
                matrix[row + j] = np.sqrt(total)
            else:
                matrix[row + j] = total / matrix[other + j]
        for j in range(i + 1, size):
            matrix[row + j] = 0
    return True


@njit(nogil=True)
def substituted(
    matrix: Any, at: int, size: int, out: Any, to: int, columns: int, lower: bool, transposed: bool
) -> bool:
    """Solves triangular equations: overwrites the right sides from `to` on by the solutions. Returns False for a
    singular matrix. lower: which triangle of the matrix in memory is used; the other one isn't read."""
    forward = lower != transposed
    for step in range(size):
        i = step if forward else size - 1 - step
        pivot = matrix[at + i * size + i]
        if pivot == 0:
            return False
        for earlier in range(step):
            k = earlier if forward else size - 1 - earlier
            factor = matrix[at + k * size + i] if transposed else matrix[at + i * size + k]
            for j in range(columns):
                out[to + i * columns + j] -= factor * out[to + k * columns + j]
        for j in range(columns):
            out[to + i * columns + j] /= pivot
    return True


@njit(nogil=True)
def cholesky_of_each(matrices: Any, count: int, size: int, sound: Any) -> None:
    """`cholesky` for each of several matrices; sound: gets what it returns."""
    for number in range(count):
        sound[number] = cholesky(matrices, number * size * size, size)


@njit(nogil=True)
def substitute_each(
    matrices: Any, count: int, size: int, out: Any, columns: int, lower: bool, transposed: bool, sound: Any
) -> None:
    """`substituted` for each of several matrices; sound: gets what it returns."""
    for number in range(count):
        begin = number * size * size
        sound[number] = substituted(matrices, begin, size, out, number * size * columns, columns, lower, transposed)


@njit(nogil=True)
def share_of_boxes(boxes: Any, one: int, other: int) -> Any:
    """How much of their union the boxes at two places have in common; 0 if one of them has no area."""
    top, bottom = min(boxes[one], boxes[one + 2]), max(boxes[one], boxes[one + 2])
    left, right = min(boxes[one + 1], boxes[one + 3]), max(boxes[one + 1], boxes[one + 3])
    other_top, other_bottom = min(boxes[other], boxes[other + 2]), max(boxes[other], boxes[other + 2])
    other_left, other_right = min(boxes[other + 1], boxes[other + 3]), max(boxes[other + 1], boxes[other + 3])
    area = (bottom - top) * (right - left)
    other_area = (other_bottom - other_top) * (other_right - other_left)
    height = min(bottom, other_bottom) - max(top, other_top)
    width = min(right, other_right) - max(left, other_left)
    apart = height <= 0 or width <= 0 or area <= 0 or other_area <= 0
    return area - area if apart else height * width / (area + other_area - height * width)


@njit(nogil=True)
def suppress_boxes(
    boxes: Any, at: int, scores: Any, begin: int, count: int, limit: int, most: Any, least: Any, sigma: Any,
    overlaps: bool, left: Any, order: Any, kept: Any,
) -> int:  # fmt: skip
    """Chooses at most `limit` of `count` boxes with scores above `least`, the best first, without those that overlap a
    better one by more than `most`; with a positive sigma, lowers the scores of those that do instead. Returns how many;
    order and kept get their numbers and scores from `begin` on, and zeros.

    boxes: from `at` on; overlaps: whether it has the overlaps of all pairs. left: scratch memory like the scores.
    """
    for i in range(begin, begin + count):
        left[i] = scores[i] if scores[i] > least else least
        order[i] = 0
        kept[i] = 0
    chosen = 0
    while chosen < limit:
        best = -1
        highest = least
        for i in range(count):
            if left[begin + i] > highest:
                highest = left[begin + i]
                best = i
        if best < 0:
            limit = chosen
        else:
            order[begin + chosen] = best
            kept[begin + chosen] = highest
            chosen = chosen + 1
            left[begin + best] = least
            for i in range(count):
                if left[begin + i] > least:
                    if overlaps:
                        share = boxes[at + i * count + best]
                    else:
                        share = share_of_boxes(boxes, at + i * 4, at + best * 4)
                    if sigma > 0:
                        lowered = left[begin + i] * math.exp(share * share / (sigma * -2))
                        left[begin + i] = lowered if lowered > least else least
                    elif not share <= most:
                        left[begin + i] = least
    return chosen
