"""Gradients of loops cost a bounded number of times what the loops cost, whatever the size of the arrays that they read
and write element by element. Counted in lines that kernels run, never timed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from benchmarks.scaling import NESTS, bilateral, stencil
from tests.autodiff.work import value_and_gradients

# Sides of the arrays by rank: the larger has about six times as many elements.
SIDES = {1: (40, 240), 2: (8, 20), 3: (4, 7), 4: (3, 5)}
# The gradient's lines over the value's, and how much more of them an element may take in the larger array.
MOST, GROWTH = 8.0, 1.5

Program = Callable[[Any], Any]


def filled(rank: int, side: int) -> Any:
    return ag.constant(np.linspace(0.1, 0.9, side**rank).reshape((side,) * rank))


def check(program: Program, rank: int, orders: int = 1, most: float = MOST) -> None:
    small, large = (value_and_gradients(program, filled(rank, side), orders) for side in SIDES[rank])
    for order in range(1, orders + 1):
        before, after = (lines[order] / lines[0] for lines in (small, large))
        assert after <= most**order
        assert after <= before * GROWTH, f"order {order}: {before:.1f} times the value's lines became {after:.1f} times"


# --- nests of depth 1 to 4 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "depth"), NESTS)
def test_nests(kind: str, depth: int) -> None:
    check(NESTS[kind, depth], depth)


@pytest.mark.parametrize(("kind", "depth"), [(kind, depth) for kind, depth in NESTS if depth < 3])
def test_second_order(kind: str, depth: int) -> None:
    check(NESTS[kind, depth], depth, orders=2)


# --- other ways to read and write ------------------------------------------------------------------------------------


def rows_written(x: Any) -> Any:
    for i in ag.range(1, x.shape[0]):
        x = ag.tensor_scatter_nd_update(x, [[i]], [ag.sin(x[i - 1]) * x[i]])
    return ag.reduce_sum(x * x)


def gathered(x: Any) -> Any:
    total = ag.zeros((), x.dtype)
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            total += ag.gather(ag.gather(x, i), j) * ag.gather_nd(x, [i, j])
    return total


def rows_in_rows(x: Any) -> Any:
    total = ag.zeros((), x.dtype)
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            row = x[i]
            total += row[j] * row[j - 1] + x[i][j] ** 2
    return total


def array_in_nest(x: Any) -> Any:
    n, m = x.shape
    found = ag.TensorArray(x.dtype, n * m)
    for i in ag.range(n):
        for j in ag.range(m):
            found = found.write(i * m + j, x[i, j] * x[i, j])
    total = ag.zeros((), x.dtype)
    for i in ag.range(n):
        for j in ag.range(m):
            total += found.read(i * m + j) * found.read(i * m)
    return total


def array_recurrence(x: Any) -> Any:
    found = ag.TensorArray(x.dtype, x.shape[0], clear_after_read=False).write(0, x[0])
    for i in ag.range(1, x.shape[0]):
        found = found.write(i, ag.sin(found.read(i - 1)) * x[i])
    return ag.reduce_sum(found.stack() ** 2)


def list_recurrence(x: Any) -> Any:
    found = [x[0], x[1]]
    for i in ag.range(2, x.shape[0]):
        found.append(found[i - 1] * found[i - 2] + x[i])
    total = x[0]
    for i in ag.range(x.shape[0]):
        total += found[i] * found[i]
    return total


def branches(x: Any) -> Any:
    made = x
    for i in ag.range(x.shape[0]):
        for j in ag.range(x.shape[1]):
            if x[i, j] > 0.3:
                if made[i, j - 1] > 0.5:
                    made = ag.tensor_scatter_nd_update(made, [[i, j]], [made[i, j] * made[i, j - 1]])
                else:
                    made = ag.tensor_scatter_nd_update(made, [[i, j]], [ag.sin(made[i - 1, j])])
    return ag.reduce_sum(made * made)


def branches_that_read(x: Any) -> Any:
    made = ag.zeros_like(x)
    for i in ag.range(1, x.shape[0]):
        for j in ag.range(1, x.shape[1]):
            if x[i, j] > 0.7:
                value = made[i - 1, j] * x[i, j]
            elif x[i, j] > 0.4:
                value = made[i, j - 1] * x[i, j]
            else:
                value = made[i - 1, j - 1] ** 2 + x[i, j]
            made = ag.tensor_scatter_nd_update(made, [[i, j]], [value])
    return ag.reduce_sum(made * made)


def windows_of_what_is_written(x: Any) -> Any:
    """The inner loop doesn't change the array, but the outer one does."""
    for i in ag.range(3, x.shape[0]):
        total = ag.zeros((), x.dtype)
        for k in ag.range(3):
            total += ag.sin(x[i - k]) ** 2
        x = ag.tensor_scatter_nd_update(x, [[i]], [total])
    return ag.reduce_sum(x * x)


def extremes(x: Any) -> Any:
    made = ag.zeros_like(x)
    for i in ag.range(1, x.shape[0]):
        made = ag.tensor_scatter_nd_max(made, [[i]], [x[i] * x[i - 1]])
        made = ag.tensor_scatter_nd_min(made, [[i], [i - 1]], [x[i] * made[i - 1], x[i]])
    return ag.reduce_sum(made * made)


def extremes_of_rows(x: Any) -> Any:
    made = ag.zeros_like(x)
    for i in ag.range(1, x.shape[0]):
        made = ag.tensor_scatter_nd_max(made, [[i]], [x[i] * made[i - 1] + x[i - 1]])
    return ag.reduce_sum(made * made)


def extremes_in_branches(x: Any) -> Any:
    made = ag.zeros_like(x)
    for i in ag.range(1, x.shape[0]):
        if x[i] > 0.3:
            made = ag.tensor_scatter_nd_max(made, [[i]], [x[i] * x[i - 1]])
            if x[i] < 0.6:
                made = ag.tensor_scatter_nd_min(made, [[i - 1]], [x[i] * made[i]])
    return ag.reduce_sum(made * made)


@pytest.mark.parametrize(
    ("program", "rank"),
    [
        (rows_written, 2), (rows_in_rows, 2), (gathered, 2), (array_in_nest, 2), (array_recurrence, 1),
        (list_recurrence, 1), (stencil, 2), (bilateral, 2), (branches, 2), (branches_that_read, 2),
        (windows_of_what_is_written, 1), (extremes, 1), (extremes_of_rows, 2), (extremes_in_branches, 1),
    ],
)  # fmt: skip
def test_other_accesses(program: Program, rank: int) -> None:
    check(program, rank, most=12.0)
