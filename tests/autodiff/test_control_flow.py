"""Adjoints of `while` and `cond`, to third order, against finite differences, at the level of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import runtime.ops.arrays.shape_ops
import runtime.ops.elementwise.elementary
import runtime.ops.operators  # noqa: F401 - installs + and * on tensors
from runtime.ops.dispatch import call
from runtime.types import StackType
from tests.autodiff.graphs import (
    F64,
    I32,
    build,
    cond,
    differences,
    gradient,
    integer,
    number,
    run,
    vector,
    while_loop,
)


def sin(x: Any) -> Any:
    return call("sin", x)


def exp(x: Any) -> Any:
    return call("exp", x)


def power(x: Any, n: Any) -> Any:
    return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, y * x), [integer(0), number(1)])[1]


def logistic(x: Any, n: Any) -> Any:
    return while_loop(lambda i, y: i < n, lambda i, y: (i + 1, 3.7 * y * (1.0 - y)), [integer(0), x])[1]


def accumulation(x: Any, n: Any) -> Any:
    return while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + sin(x)), [integer(0), number(0)])[1]


def left_by_value(x: Any, n: Any) -> Any:
    """A trip count that depends on the data, as after a `break`."""
    return while_loop(lambda y: y < 50.0, lambda y: [y * y * 0.9 + x], [x * x + 1.0])[0]


def swap(x: Any, n: Any) -> Any:
    """Carries that change places."""
    return while_loop(lambda i, a, b: i < n, lambda i, a, b: (i + 1, b * x, a + b), [integer(0), x, x * x])[1]


def counting_down(x: Any, n: Any) -> Any:
    return while_loop(
        lambda i, y: i > 0, lambda i, y: (i - 1, y + sin(x * call("cast", i, dtype=x.dtype))), [n, number(0)]
    )[1]


def nested(x: Any, n: Any) -> Any:
    def outer(i: Any, s: Any) -> Any:
        inner = while_loop(lambda j, y: j < i, lambda j, y: (j + 1, 0.8 * sin(y + x)), [integer(0), s + x])[1]
        return i + 1, s + inner

    return while_loop(lambda i, s: i < n, outer, [integer(0), x])[1]


def three_deep(x: Any, n: Any) -> Any:
    def middle(j: Any, y: Any) -> Any:
        z = while_loop(lambda k, z: k < j + 1, lambda k, z: (k + 1, sin(z) * x + 0.5 * z), [integer(0), y])[1]
        return j + 1, z * y

    def outer(i: Any, s: Any) -> Any:
        return i + 1, while_loop(lambda j, y: j < i + 1, middle, [integer(0), s])[1] + x

    return while_loop(lambda i, s: i < n, outer, [integer(0), x])[1]


def branch_in_loop(x: Any, n: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return i + 1, cond(y > 1.0, lambda: y * 0.5 * x, lambda: exp(y * 0.3) + x)

    return while_loop(lambda i, y: i < n, body, [integer(0), x])[1]


def loop_in_branch(x: Any, n: Any) -> Any:
    return cond(n > 2, lambda: power(sin(x), n), lambda: x * x * x)


def loop_in_branch_in_loop(x: Any, n: Any) -> Any:
    def body(i: Any, y: Any) -> Any:
        return i + 1, cond(i % 2 == 0, lambda: power(y * 0.7, i), lambda: sin(y) + x)

    return while_loop(lambda i, y: i < n, body, [integer(0), x])[1]


def unused_carry(x: Any, n: Any) -> Any:
    return while_loop(lambda i, y, z: i < n, lambda i, y, z: (i + 1, y * x, z + y * y), [integer(0), x, x])[1]


PROGRAMS = [
    power, logistic, accumulation, left_by_value, swap, counting_down, nested, three_deep, branch_in_loop,
    loop_in_branch, loop_in_branch_in_loop, unused_carry,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradient_to_third_order(program: Any) -> None:
    graph = build(program, [F64, I32])
    for order in range(1, 4):
        derivative = gradient(graph)
        for trips in (0, 1, 2, 5):
            exact = run(derivative, 0.43, trips)
            approximate = differences(graph, 0.43, trips)
            np.testing.assert_allclose(
                exact, approximate, rtol=2e-6, atol=2e-6, err_msg=f"order {order}, {trips} trips"
            )
        graph = derivative


def rows(x: Any, n: Any) -> Any:
    """Reads rows of an invariant by a counter."""
    return while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * 0.5 + sin(x[i]) * x[i]), [integer(0), number(0)])[1]


def vectors(x: Any, n: Any) -> Any:
    y = while_loop(lambda i, y: i < n, lambda i, y: (i + 1, sin(y * x) + y), [integer(0), x])[1]
    return call("reduce_sum", y, axis=(0,), keepdims=False)


@pytest.mark.parametrize("size", [3, None])
@pytest.mark.parametrize("program", [rows, vectors], ids=lambda p: p.__name__)
def test_gradient_of_arrays(program: Any, size: int | None) -> None:
    graph = build(program, [vector(size), I32])
    derivative = gradient(graph)
    x = np.array([0.3, -0.8, 1.1])
    for trips in (0, 1, 3):
        np.testing.assert_allclose(run(derivative, x, trips), differences(graph, x, trips), rtol=1e-6, atol=1e-8)


def saved_per_trip(program: Any) -> list[str]:
    """The stacks that the gradient of a loop pushes on."""
    graph = gradient(build(program, [F64, I32]))
    return [
        str(v.type) for n in graph.nodes if n.op.name == "while" for v in n.outputs if isinstance(v.type, StackType)
    ]


def test_an_accumulation_saves_nothing() -> None:
    assert saved_per_trip(accumulation) == []
    assert saved_per_trip(counting_down) == []


def test_a_loop_saves_its_needed_carries_only() -> None:
    # One stack, which both the forward and the backward loop carry.
    assert saved_per_trip(power) == ["stack<float64[]>"] * 2
    assert saved_per_trip(logistic) == ["stack<float64[]>"] * 2


def test_rows_are_added_in_place() -> None:
    """The gradient of reading rows adds a row a trip; it doesn't form a whole matrix of zeros."""
    graph = gradient(build(rows, [vector(None), I32]))
    names = [n.op.name for n in graph.walk()]
    assert "slice_add" in names and "slice_grad" not in names
