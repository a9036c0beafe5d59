"""Rows at computed places on an (emulated) GPU: the bits of the processor, for each number of threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from tests.device.on_device import gpus

RANDOM = np.random.default_rng(5)
MANY = RANDOM.integers(0, 7, (20, 5)).astype(np.int32)


def _gathered(x: Any, rows: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.gather(x, rows)
        loss = ag.reduce_sum(y * y * y)
    return y, ag.convert_to_tensor(tape.gradient(loss, x))


def _columns(x: Any, rows: Any) -> Any:
    return ag.gather(x, rows, axis=1)


def _segments(x: Any, rows: Any) -> Any:
    values = ag.gather(x, (rows * 5 + 3) % 7)
    math = ag.math
    functions = (math.unsorted_segment_sum, math.unsorted_segment_prod, math.unsorted_segment_max)
    return [each(values, rows - 2, 9) for each in functions]  # negative ids don't count


@pytest.mark.parametrize("program", [_gathered, _columns, _segments])
@pytest.mark.parametrize("shape", [(7, 10), (7,), (7, 8, 3)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
@pytest.mark.parametrize("threads", [(1, 1), (2, 3)])
def test_values(program: Callable[..., Any], shape: Any, dtype: Any, threads: tuple[int, int]) -> None:
    if program is _columns and len(shape) == 1:
        pytest.skip("it has no columns")
    if program is _gathered and dtype is np.int64:
        pytest.skip("integers have no gradients")
    x = (RANDOM.normal(size=shape) * 4).astype(dtype)
    for rows in (MANY, MANY[0], MANY[:0]):
        expected = ag.function(program)(ag.constant(x), ag.constant(rows))
        with gpus(blocks=threads[0], threads=threads[1]):
            found = ag.function(program)(ag.constant(x).gpu(), ag.constant(rows).gpu())
            flat = ag.nest.flatten(found)
            for one, other in zip(flat, ag.nest.flatten(expected), strict=True):
                np.testing.assert_array_equal(one.numpy(), other.numpy())


@pytest.mark.parametrize("count", [3, 100])
def test_the_first_place_that_is_wrong_is_told(count: int) -> None:
    rows = np.zeros(count, np.int32)
    rows[[1, count - 1]] = 7, 9
    x = np.ones((5, 2), np.float32)
    with gpus():
        given = ag.constant(x).gpu(), ag.constant(rows).gpu()
        with pytest.raises(ag.errors.InvalidArgumentError, match=r"indices\[1\] = 7 is not in \[0, 5\)"):
            ag.function(ag.gather)(*given)
        values = ag.ones([count, 2]).gpu()
        with pytest.raises(ag.errors.InvalidArgumentError, match=r"segment_ids\[1\] = 7 is out of range \[0, 5\)"):
            ag.function(lambda v, i: ag.math.unsorted_segment_sum(v, i, 5))(values, given[1])


@pytest.mark.parametrize("sizes", [(37, 5, 50), (None, None, 50)], ids=str)
@pytest.mark.parametrize("k", [0, 1, 4])
def test_rows_are_sorted_together(sizes: tuple[int | None, ...], k: int) -> None:
    """Equal numbers keep their order, and NaN comes last, or first where the largest are wanted."""
    x = RANDOM.normal(size=(37, 5, 50)).astype(np.float32).round(1)
    x[0, 0, 3] = np.nan

    def program(x: Any) -> Any:
        return (*ag.nn.top_k(x, k), ag.argsort(x), ag.sort(x, direction="DESCENDING"))

    signature = [ag.TensorSpec(sizes, ag.float32)]
    expected = ag.function(program, input_signature=signature)(ag.constant(x))
    with gpus(blocks=2, threads=3):
        given, function = ag.constant(x).gpu(), ag.function(program, input_signature=signature)
        for one, other in zip(function(given), expected, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
        text = function.explain(given)
    assert "on one thread" not in text
    assert "in whose trips" not in text
