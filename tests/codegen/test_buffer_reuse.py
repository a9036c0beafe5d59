"""Elementwise results that take over an operand's memory: not where the same loop reads it in another order too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag

A = np.array([[1.1, -0.4, 2.0], [0.3, 0.7, -1.2], [0.5, 0.2, 0.9]])


def reversed_beside(x: Any) -> Any:
    y = ag.matmul(x, x)
    return y * ag.reverse(y, [1]), y * x


def transposed_beside(x: Any) -> Any:
    y = ag.matmul(x, x)
    return x * ag.transpose(y), x * y


def row_beside(x: Any) -> Any:
    y = ag.matmul(x, x)
    return x - y[1], x - y


def shifted_beside(x: Any) -> Any:
    y = ag.reshape(ag.matmul(x, x), [-1])
    return y[1:] * y[:-1], y[:1] * y[1:]


def in_a_loop(x: Any) -> Any:
    d = x
    for _ in ag.range(3):
        d = d * x + ag.reverse(d * x, [0])
    return d, d


def of_a_gradient(x: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in ag.range(3):
            y = y * ag.reverse(y, [0]) + x
    return tape.gradient(y, x), y


@pytest.mark.parametrize(
    "program", [reversed_beside, transposed_beside, row_beside, shifted_beside, in_a_loop, of_a_gradient]
)
def test_memory_that_is_read_in_another_order_is_not_written_over(program: Any) -> None:
    compiled = ag.function(program, jit_compile=True)
    for found, expected in zip(compiled(ag.constant(A)), program(ag.constant(A))):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
