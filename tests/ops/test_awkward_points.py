"""Values and gradients at zeros, ties, ends, infinities and of empty tensors are TensorFlow's, in functions too.

Where TensorFlow's are wrong or it has none, `OURS` says what there is instead, and why.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import autograph as ag
from tests.ops.awkward_points import ANSWERS, answer, cases

CASES = cases(ag)
TENSORFLOW = json.loads(ANSWERS.read_text(encoding="utf-8"))
inf = float("inf")

OURS = {
    # The poles' sides; TensorFlow has NaN there.
    "math.lgamma@0": [[inf, inf], [[-inf, inf]]],
    "math.digamma@0": [[-inf, inf], [[inf, inf]]],
    # x ** 0 is 1 for all x; TensorFlow has 0 times infinity.
    "pow 0.0 0.0": [[1], [[0], [0]]],
    # The slopes of 0 log(y) and 0 / y by the first operand, which TensorFlow takes as 0.
    "xlogy": [[0, 0, 2 * np.log(3), 0], [[0, np.log(2), np.log(3), 0], [0, 0, 2 / 3, 0]]],
    "xlog1py": [[0, 0, 2 * np.log(4)], [[0, np.log(3), np.log(4)], [0, 0, 0.5]]],
    "xdivy": [[0, 0, 2 / 3], [[0, 1 / 2, 1 / 3], [0, 0, -2 / 9]]],
    # TensorFlow takes 0 for 0 / 0: its gradients of running products by a zero are wrong.
    "cumprod 1z": [[2, 0, 0], [[1, 10, 0]]],
    "cumprod ex 1z": [[1, 2, 0], [[1, 2, 0]]],
    "cumprod rev 1z": [[0, 0, 4], [[0, 12, 1]]],
    "cumprod 2z": [[0, 0, 0], [[1, 0, 0]]],
    "cumprod ex 2z": [[1, 0, 0], [[1, 0, 0]]],
    "cumprod rev 2z": [[0, 0, 4], [[0, 4, 1]]],
    "cumprod 3z": [[0, 0, 0], [[1, 0, 0]]],
    "cumprod ex 3z": [[1, 0, 0], [[1, 0, 0]]],
    "cumprod rev 3z": [[0, 0, 0], [[0, 0, 1]]],
    # Without a gradient in TensorFlow.
    "truncatemod": [[1, -2], [[1, 1], [-2, 1]]],
    # A step in y doesn't change the result, which TensorFlow says with a 0.
    "nextafter": [[5e-324], [[1], None]],
}


def agree(found: Any, expected: Any) -> None:
    if found is None or expected is None:
        assert found is expected
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-12)
        assert np.shape(found) == np.shape(expected)


@pytest.mark.filterwarnings("ignore")  # NumPy's, about divisions by zero
@pytest.mark.parametrize("stage", ["eager", "function"])
@pytest.mark.parametrize("name", CASES)
def test_answer(name: str, stage: str) -> None:
    f, arguments = CASES[name]
    value, slopes = OURS.get(name) or TENSORFLOW[name]
    found = answer(ag, f if stage == "eager" else ag.function(f, jit_compile=False), arguments)
    agree(found[0], value)
    assert len(found[1]) == len(slopes)
    for one, other in zip(found[1], slopes):
        agree(one, other)


COMPILED = [
    "cumprod 1z", "cumprod ex 2z", "multiply_no_nan", "sig xent", "where nan", "norm@0", "pow 0.0 0.0", "prod 2z",
    "reduce_max tie", "divide_no_nan", "math.rsqrt@0",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_compiled_answers() -> None:
    @ag.function(jit_compile=True)
    def slopes(points: Any) -> Any:
        with ag.GradientTape(persistent=True) as tape:
            tape.watch(points)
            values = [CASES[name][0](*own) for name, own in zip(COMPILED, points)]
        return values, [tape.gradient(y, own) for y, own in zip(values, points)]

    values, found = slopes([[ag.constant(np.array(a)) for a in CASES[name][1]] for name in COMPILED])
    for name, value, gradients in zip(COMPILED, values, found):
        expected = OURS.get(name) or TENSORFLOW[name]
        agree(value.numpy(), expected[0])
        for one, other in zip(gradients, expected[1]):
            agree(one.numpy(), other)


def test_no_tensorflow_answer_is_forgotten() -> None:
    assert {*CASES} == {*TENSORFLOW, *OURS}


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[2.0, 0.0, 3.0, 4.0], [2.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
def test_running_products_with_zeros_to_second_order(x: list[float], exclusive: bool, reverse: bool) -> None:
    def f(t: Any) -> Any:
        return ag.math.cumprod(t, exclusive=exclusive, reverse=reverse) * [1.0, -2.0, 0.5, 3.0]

    ag.test.check_gradients(f, [np.array(x)], order=2)
    ag.test.check_gradients(lambda t: ag.reduce_prod(t), [np.array(x)], order=2)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("x", [[0.0, 2.0, 0.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.5]])
def test_running_products_with_zeros_to_fourth_order(x: list[float], exclusive: bool, reverse: bool) -> None:
    """Against the derivatives of the polynomial, which has no square in it."""
    weights = [1.0, -2.0, 0.5, 3.0, 7.0]
    order = list(range(5))[:: -1 if reverse else 1]
    factors = [order[: k if exclusive else k + 1] for k in range(5)]

    def derivative(point: Any, by: tuple[int, ...]) -> Any:
        if not by:
            return ag.reduce_sum(ag.math.cumprod(point, exclusive=exclusive, reverse=reverse) * weights)
        with ag.GradientTape() as tape:
            tape.watch(point)
            below = derivative(point, by[:-1])
        return tape.gradient(below, point, unconnected_gradients="zero")[by[-1]]

    for by in [(0,), (4, 2), (0, 2, 4), (4, 0, 2), (1, 2, 3), (0, 1, 2, 3), (3, 1, 0, 2), (4, 3, 2, 1)]:
        terms = [(weights[at], own) for at, own in zip(order, factors) if {*by} <= {*own}]
        expected = sum(weight * np.prod([x[i] for i in own if i not in by]) for weight, own in terms)
        np.testing.assert_allclose(derivative(ag.constant(x, ag.float64), by), expected, rtol=1e-12)
        if by == (0, 1, 2, 3):
            staged = ag.function(lambda point, by=by: derivative(point, by), jit_compile=False)
            np.testing.assert_allclose(staged(ag.constant(x, ag.float64)), expected, rtol=1e-12)


@pytest.mark.parametrize("function", [lambda t: ag.reduce_sum(ag.math.cumprod(t)), ag.reduce_prod])
def test_third_derivatives_of_products_by_three_zeros(function: Any) -> None:
    """The derivative by the third zero was missing."""
    x = ag.constant([0.0, 2.0, 0.0, 3.0, 0.0], ag.float64)
    found = function(x)
    with ag.GradientTape() as third:
        third.watch(x)
        with ag.GradientTape() as second:
            second.watch(x)
            with ag.GradientTape() as first:
                first.watch(x)
                found = function(x)
            found = first.gradient(found, x)[0]
        found = second.gradient(found, x)[2]
    np.testing.assert_allclose(third.gradient(found, x)[4], 6.0, rtol=1e-12)


def test_derivatives_by_a_factor_that_is_zero() -> None:
    """The gradient of sqrt is 0 where nothing arrives, but it still depends on what arrives."""
    x, w = ag.constant([4.0, 9.0], ag.float64), ag.constant([0.0, 0.0], ag.float64)
    for f, slope in (
        (ag.sqrt, [0.25, 1 / 6]),
        (ag.math.rsqrt, [-1 / 16, -1 / 54]),
        (ag.math.reciprocal, [-1 / 16, -1 / 81]),
    ):
        with ag.GradientTape() as outer:
            outer.watch(w)
            with ag.GradientTape() as inner:
                inner.watch(x)
                y = f(x) * w
            by_x = inner.gradient(y, x)
        np.testing.assert_allclose(outer.gradient(by_x, w), slope, rtol=1e-12)


@pytest.mark.parametrize("x", [-1.0, 0.0, 2.0])
def test_cross_entropy_of_logits_to_second_order(x: float) -> None:
    labels = np.array([0.0, 0.3, 1.0])
    point = np.full(3, x)
    ag.test.check_gradients(lambda t: ag.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=t), [point])
    ag.test.check_gradients(lambda t: ag.nn.weighted_cross_entropy_with_logits(labels, t, 2.5), [point])


@pytest.mark.parametrize(
    "slope_is_infinite_at_0", [lambda t: t**0.5, ag.sqrt, lambda t: ag.asin(1.0 - t), lambda t: ag.acosh(1.0 + t)]
)
def test_a_trip_whose_result_is_overwritten_has_no_gradient(slope_is_infinite_at_0: Any) -> None:
    """Its cotangent is 0, whatever the slope: eagerly the result isn't on the way at all."""

    def last(x: Any, n: Any) -> Any:
        y = x
        for i in ag.range(n):
            y = slope_is_infinite_at_0(x * ag.cast(i, ag.float64) * 0.3) ** (x * ag.cast(i, ag.float64))
        return y

    x, n = ag.constant(0.7, ag.float64), ag.constant(3)
    slopes = []
    for function in (last, ag.function(last, jit_compile=False), ag.function(last, jit_compile=True)):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = function(x, n)
        slopes.append(tape.gradient(y, x).numpy())
    assert np.isfinite(slopes[0])
    np.testing.assert_allclose(slopes[1:], [slopes[0]] * 2, rtol=1e-10)
