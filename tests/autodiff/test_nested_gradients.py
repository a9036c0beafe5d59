"""Gradients of staged loops that take gradients of loops themselves, to third order: of steps of Newton's method, say.

A trip of the outer loop then reads the residuals of the inner loop in several places, or none, or under a condition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import dtypes
from runtime.graph.builder import Builder
from runtime.graph.interpreter import interpret
from runtime.ops import stack
from runtime.ops.dispatch import apply
from runtime.types import TensorType
from tests.codegen.compare import check

Step = Callable[[Any, Any], Any]


def rows(x: Any, n: Any) -> Any:
    found = ag.TensorArray(ag.float64, size=0, dynamic_size=True, element_shape=[])
    y = x
    for t in ag.range(n):
        y = ag.sin(y) * x
        found = found.write(t, y)
    return ag.reduce_sum(found.stack() ** 2)


def growing_and_shrinking(x: Any, n: Any) -> Any:
    items = [x]
    for _ in ag.range(n):
        items.append(ag.sin(items[-1]) * x)
    total = x * 0.0
    while len(items) > 0:
        total = ag.sin(total) + items.pop() ** 3
    return total


def longer_arrays(x: Any, n: Any) -> Any:
    items = ag.reshape(x, [1])
    for _ in ag.range(n):
        items = ag.concat([items, [ag.sin(ag.reduce_sum(items)) * x]], 0)
    return ag.reduce_sum(items**3)


def nested(x: Any, n: Any) -> Any:
    y = x
    for i in ag.range(n):
        for _ in ag.range(i + 1):
            y = ag.sin(y) * x + 0.1 * y
    return y


def slope_of(f: Step) -> Step:
    def slope(x: Any, n: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = f(x, n)
        return tape.gradient(y, x)

    return slope


def descent(f: Step) -> Step:
    """The value and its slope are taken apart: common subexpressions may make one loop of both."""
    slope = slope_of(f)

    def outer(x: Any, n: Any) -> Any:
        for _ in ag.range(3):
            x = x - 0.1 * (f(x, n) + slope(x, n))
        return x

    return outer


def newton(f: Step) -> Step:
    slope = slope_of(f)
    curvature = slope_of(slope)

    def outer(x: Any, n: Any) -> Any:
        for _ in ag.range(2):
            x = x - 0.1 * slope(x, n) / (2.0 + ag.sin(curvature(x, n)))
        return x

    return outer


def gradient_in_a_branch(f: Step) -> Step:
    def outer(x: Any, n: Any) -> Any:
        for _ in ag.range(3):
            with ag.GradientTape() as tape:
                tape.watch(x)
                y = f(x, n)
            x = x - 0.1 * tape.gradient(y, x) if y > 0.1 else x * 0.9
        return x

    return outer


def list_of_points(f: Step) -> Step:
    slope = slope_of(f)

    def outer(x: Any, n: Any) -> Any:
        points = [x]
        for _ in ag.range(3):
            points.append(points[-1] - 0.1 * slope(points[-1], n))
        return ag.reduce_sum(ag.stack(points) ** 2)

    return outer


@pytest.mark.parametrize("inner", [rows, growing_and_shrinking, longer_arrays, nested])
@pytest.mark.parametrize(
    ("outer", "order"),
    [(newton, 2), *[(outer, order) for outer in (descent, gradient_in_a_branch, list_of_points) for order in (2, 3)]],
)
def test_staged_equals_eager(outer: Callable[[Step], Step], inner: Step, order: int) -> None:
    wanted = outer(inner)
    for _ in range(order):
        wanted = slope_of(wanted)
    x = ag.constant(0.7, ag.float64)
    staged = ag.function(wanted)
    for n in (3, 1):
        expected = wanted(x, n)
        np.testing.assert_allclose(staged(x, ag.constant(n)), expected, rtol=1e-10)


@pytest.mark.parametrize(("outer", "inner"), [(descent, longer_arrays), (gradient_in_a_branch, nested)])
def test_compiled_equals_interpreted(outer: Callable[[Step], Step], inner: Step) -> None:
    wanted = slope_of(outer(inner))
    x, n = ag.constant(0.7, ag.float64), ag.constant(3)
    compiled = ag.function(wanted, jit_compile=True)(x, n)
    np.testing.assert_allclose(compiled, ag.function(wanted, jit_compile=False)(x, n), rtol=1e-10)


def test_a_persistent_tape_reads_a_loop_in_two_ways() -> None:
    """The first gradient reads the inner loop's residuals in one place, the second in two."""

    def values(x: Any, n: Any) -> Any:
        y, z = x, x
        for _ in ag.range(2):
            with ag.GradientTape() as inner:
                inner.watch(z)
                y = growing_and_shrinking(z, n)
            z = z - 0.1 * inner.gradient(y, z)
        return y, z

    def both(x: Any, n: Any) -> Any:
        with ag.GradientTape(persistent=True) as second:
            second.watch(x)
            with ag.GradientTape(persistent=True) as first:
                first.watch(x)
                y, z = values(x, n)
            slopes = first.gradient(y, x), first.gradient(z, x)
        return *slopes, second.gradient(slopes[0], x), second.gradient(slopes[1], x)

    x = ag.constant(0.7, ag.float64)
    for found, expected in zip(ag.function(both)(x, ag.constant(3)), both(x, 3), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [(), (2,), (None, None), None])
def test_stacks_are_joined_and_split(shape: Any) -> None:
    """`split` undoes `join`; the parts are stacks of their own, which may grow."""
    dims = [[2] * k if shape is None else [d or k + i for i, d in enumerate(shape)] for k in range(4)]
    arrays = [np.full(size, float(k)) for k, size in enumerate(dims)]

    def push(pile: Any, values: list[Any]) -> Any:
        for value in values:
            pile = apply(stack.PUSH, [pile, value])
        return pile

    builder = Builder("stacks")
    with builder:
        empty = stack.empty(TensorType(dtypes.float64, shape))
        values = [builder.constant(a) for a in arrays]
        low, high = push(empty, values[:1]), push(empty, values[1:3])
        joined, size = apply(stack.JOIN, [low, high])
        rest, segment = apply(stack.SPLIT, [joined, size])
        longer = push(segment, values[3:])
        summed = apply(stack.ADD, [segment, apply(stack.ADD, [high, apply(stack.ZEROS, [high])])])
        results = [size, apply(stack.SIZE, [joined]), apply(stack.SIZE, [rest])]
        for pile, count in ((longer, 3), (rest, 1), (joined, 3), (summed, 2)):
            for _ in range(count):
                pile, value = apply(stack.POP, [pile])
                results.append(value)
            results.append(apply(stack.SIZE, [pile]))
        builder.graph.outputs = [builder.use(each) for each in results]
    expected = [1, 3, 1, *arrays[:0:-1], 0, arrays[0], 0, *arrays[2::-1], 0, 2 * arrays[2], 2 * arrays[1], 0]
    results = interpret(builder.graph, []) if shape is None else check(builder.graph)
    for found, wanted in zip(results, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
