"""Gradients of functions that call themselves: beside the eager tape's, to second order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.graph.verify import verify
from tests.autodiff.work import value_and_gradients

F64 = ag.float64
left, right = ag.constant([1, 3, -1, -1, -1]), ag.constant([2, 4, -1, -1, -1])


def real(*numbers: float) -> Any:
    return ag.constant(numbers[0] if len(numbers) == 1 else numbers, F64)


def power(x: Any, n: Any) -> Any:
    if n == 0:
        return ag.ones_like(x)
    return x * power(x, n - 1)


def tree_product(v: Any) -> Any:
    def product(i: Any) -> Any:
        if i < 0:
            return 1.0
        return v[i] * v[i] * product(left[i]) * product(right[i])

    return product(ag.constant(0))


def tree_of_sines(v: Any, i: Any) -> Any:
    if i < 0:
        return ag.constant(1.0, F64)
    return ag.sin(v[i] + tree_of_sines(v, left[i]) * tree_of_sines(v, right[i]))


def simpson(a: Any, b: Any, k: Any) -> Any:
    def f(x: Any) -> Any:
        return ag.sin(k * x) * x

    def part(a: Any, b: Any, fa: Any, fm: Any, fb: Any, whole: Any, tolerance: Any) -> Any:
        m = (a + b) / 2
        low, high = f((a + m) / 2), f((m + b) / 2)
        one, two = (m - a) / 6 * (fa + 4 * low + fm), (b - m) / 6 * (fm + 4 * high + fb)
        error = one + two - whole
        if ag.abs(error) <= 15 * tolerance:
            return one + two + error / 15
        return part(a, m, fa, low, fm, one, tolerance / 2) + part(m, b, fm, high, fb, two, tolerance / 2)

    fa, fm, fb = f(a), f((a + b) / 2), f(b)
    return part(a, b, fa, fm, fb, (b - a) / 6 * (fa + 4 * fm + fb), real(1e-4))


def calls_in_a_loop(x: Any, n: Any) -> Any:
    if n <= 0:
        return x
    total = x * x
    for k in ag.range(n):
        total += calls_in_a_loop(x * ag.cast(k + 1, F64) * 0.5, k)
    return total


def in_a_loop(x: Any, n: Any) -> Any:
    total = x
    for k in ag.range(n):
        total += power(total * 0.7, k)
    return total


def one(x: Any, n: Any) -> Any:
    if n <= 0:
        return x * x
    return ag.sin(x) * other(x * 1.1, n - 1)


def other(x: Any, n: Any) -> Any:
    if n <= 0:
        return x * x * x
    return one(x * x, n - 1) + other(x, n - 2)


def grows_a_list(x: Any, n: Any) -> Any:
    out: list[Any] = []

    def go(x: Any, n: Any) -> None:
        if n > 0:
            out.append(x * x)
            go(ag.sin(x), n - 1)
            out.append(x)

    go(x, n)
    return ag.reduce_sum(ag.stack(out))


def rows(x: Any, n: Any) -> Any:
    if n == 0:
        return ag.reshape(x, [1])
    row, zero = rows(x, n - 1), ag.zeros([1], F64)
    return ag.concat([row, zero], 0) + ag.concat([zero, row * x], 0)


def squares_of_rows(x: Any, n: Any) -> Any:
    return ag.reduce_sum(rows(x, n) ** 2)


def asserts(x: Any, n: Any) -> Any:
    ag.debugging.assert_greater(x, real(0.0))
    if n == 0:
        return x * x
    return asserts(ag.exp(-x), n - 1) * x


CASES = [
    (power, (real(1.5), ag.constant(4))), (power, (real(1.5, 0.5), ag.constant(3))),
    (tree_product, (real(1, 0.5, 2, 3, 1.5),)), (tree_of_sines, (real(1, 0.5, 2, 3, 1.5), ag.constant(0))),
    (simpson, (real(0.1), real(3), real(1.3))), (calls_in_a_loop, (real(1.1), ag.constant(3))),
    (in_a_loop, (real(1.1), ag.constant(4))), (one, (real(0.8), ag.constant(5))),
    (grows_a_list, (real(1.1), ag.constant(3))), (squares_of_rows, (real(1.1), ag.constant(3))),
    (asserts, (real(1.1), ag.constant(3))),
]  # fmt: skip


def gradients(function: Any, arguments: tuple) -> list[Any]:
    """The value, the gradient, and the gradient of that's square sum."""
    sources = [x for x in arguments if x.dtype.is_floating]
    with ag.GradientTape() as outer:
        outer.watch(sources)
        with ag.GradientTape() as inner:
            inner.watch(sources)
            y = function(*arguments)
        first = inner.gradient(y, sources)
        squares = ag.add_n([ag.reduce_sum(d * d) for d in first])
    return [y, *first, *outer.gradient(squares, sources)]


@pytest.mark.parametrize("jit", [False, None, True], ids=["interpreted", "default", "compiled"])
@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(CASES)])
def test_as_of_eager_code(function: Any, arguments: tuple, jit: bool | None) -> None:
    expected = gradients(function, arguments)
    for found in (
        gradients(ag.function(function, jit_compile=jit), arguments),
        ag.function(lambda *given: gradients(function, given), jit_compile=jit)(*arguments),
    ):
        for a, b in zip(found, expected):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(CASES)])
def test_graphs_of_gradients_are_valid(function: Any, arguments: tuple) -> None:
    graph = ag.function(lambda *given: gradients(function, given)).get_concrete_function(*arguments).graph
    verify(graph)
    # A function, its adjoint and the adjoint's adjoint: not a copy of each for each call.
    for node in graph.walk():
        if node.op.name == "letrec":
            assert len(node.regions) <= 3


def chain(x: Any, n: Any) -> Any:
    if n == 0:
        return x
    return ag.sin(x * chain(x, n - 1))


def tree(x: Any, n: Any) -> Any:
    if n < 2:
        return x
    half = n // 2
    return ag.sin(tree(x * 0.9, half) * tree(x * 1.1, n - half))


def branches_on_results(x: Any, n: Any) -> Any:
    if n == 0:
        return x
    y = branches_on_results(x, n - 1)
    if y > 0.5:
        y = y * branches_on_results(x * 0.5, n // 4)
    else:
        y = ag.exp(y)
    return y * x


def even(x: Any, n: Any) -> Any:
    return x if n == 0 else ag.sin(x * odd(x, n - 1))


def odd(x: Any, n: Any) -> Any:
    return x * x if n == 0 else ag.exp(-even(x, n - 1) * x)


def vectors(x: Any, n: Any) -> Any:
    if n == 0:
        return ag.stack([x, 1.0])
    y = vectors(x, n - 1)
    return ag.sin(y * x) + y[::-1]


def sum_of_vectors(x: Any, n: Any) -> Any:
    return ag.reduce_sum(vectors(x, n) ** 2)


@pytest.mark.parametrize("function", [chain, tree, branches_on_results, even, sum_of_vectors])
def test_cost_does_not_grow_with_depth(function: Any) -> None:
    """Results of calls are kept: the gradient runs a number of lines for each line of the value."""

    def program(x: Any) -> Any:
        return function(x[0], x[1])

    ratios = []
    for depth in (8, 64):
        value, gradient = value_and_gradients(program, real(0.8, depth))
        ratios.append(gradient / value)
    assert ratios[1] < 1.3 * ratios[0] < 20.0


@ag.custom_gradient
def halved(x: Any) -> Any:
    return x * 1.0, lambda dy: dy * 0.5


def custom(x: Any, n: Any) -> Any:
    return x if n == 0 else ag.sin(x * halved(custom(x, n - 1)))


@pytest.mark.parametrize("function", [chain, tree, branches_on_results, even, sum_of_vectors, custom])
@pytest.mark.parametrize("jit", [False, True], ids=["interpreted", "compiled"])
def test_gradients_with_kept_results(function: Any, jit: bool) -> None:
    arguments = real(0.8), ag.constant(5)
    expected = gradients(function, arguments)
    found = ag.function(lambda *given: gradients(function, given), jit_compile=jit)(*arguments)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)


def test_variables_have_gradients() -> None:
    scale = ag.Variable(2.0, dtype=F64)

    def scaled(x: Any, n: Any) -> Any:
        if n == 0:
            return x
        return scale * x * scaled(x * scale, n - 1)

    found = []
    for function in (scaled, ag.function(scaled)):
        with ag.GradientTape() as tape:
            x = real(0.3)
            tape.watch(x)
            y = function(x, ag.constant(3))
        found.append([float(d) for d in tape.gradient(y, [x, scale])])
    assert found[0] == pytest.approx(found[1])


def test_a_tape_inside_of_the_function_is_refused() -> None:
    @ag.function
    def inside(x: Any, n: Any) -> Any:
        if n == 0:
            return x
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = inside(x * x, n - 1)
        return tape.gradient(y, x)

    with pytest.raises(ag.errors.UnimplementedError, match="the tape is in the function 'inside' itself"):
        inside(real(2.0), ag.constant(3))


def test_random_numbers_in_a_recursion_have_no_gradient() -> None:
    @ag.function
    def walk(x: Any, n: Any) -> Any:
        if n == 0:
            return x
        return walk(x * ag.random.uniform([], dtype=F64), n - 1)

    x = real(2.0)
    with (
        pytest.raises(ag.errors.UnimplementedError, match="is in a function that calls itself"),
        ag.GradientTape() as tape,
    ):
        tape.watch(x)
        tape.gradient(walk(x, ag.constant(3)), x)
