"""`custom_gradient` and `recompute_grad` with variables, nested, inside functions and in staged loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag

STAGES = [
    pytest.param(lambda f: f, id="eager"),
    pytest.param(lambda f: ag.function(f, jit_compile=False), id="interpreted"),
    pytest.param(lambda f: ag.function(f, jit_compile=True), id="compiled"),
]


def number(value: float) -> Any:
    return ag.constant(value, ag.float64)


def scaled_by(v: Any, factor: float = 10.0) -> Any:
    """x v, whose gradients are `factor` times too large."""

    @ag.custom_gradient
    def scaled(x: Any) -> Any:
        w = v.read_value()

        def grad(dy: Any, variables: Any = None) -> Any:
            assert [u is v for u in variables] == [True]
            return factor * dy * w, [factor * dy * x]

        return x * w, grad

    return scaled


@pytest.mark.parametrize("stage", STAGES)
def test_variables_get_their_own_gradients(stage: Any) -> None:
    v = ag.Variable(3.0, dtype=ag.float64)
    scaled = scaled_by(v)

    @stage
    def f(x: Any) -> Any:
        return scaled(x) * 2.0 + v  # the variable also counts by itself

    x = number(5.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(y) == 33.0
    dx, dv = tape.gradient(y, [x, v])
    assert (float(dx), float(dv)) == (60.0, 101.0)


@pytest.mark.parametrize("stage", STAGES)
def test_variables_in_a_loop(stage: Any) -> None:
    v = ag.Variable(0.5, dtype=ag.float64)
    scaled = scaled_by(v, 1.0)

    @stage
    def f(x: Any, n: Any) -> Any:
        for _ in ag.range(n):
            x = scaled(x)
        return x

    x = number(2.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x, ag.constant(4))
    dx, dv = tape.gradient(y, [x, v])
    np.testing.assert_allclose([float(dx), float(dv)], [0.5**4, 2.0 * 4 * 0.5**3])


@pytest.mark.parametrize("stage", STAGES)
def test_a_tape_inside(stage: Any) -> None:
    v = ag.Variable(3.0, dtype=ag.float64)
    scaled = scaled_by(v)

    @stage
    def slopes(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = scaled(x)
        return tape.gradient(y, [x, v])

    assert [float(g) for g in slopes(number(5.0))] == [30.0, 50.0]


@pytest.mark.parametrize("stage", STAGES)
def test_nested(stage: Any) -> None:
    """The gradient of the outer function uses one that has a gradient of its own."""

    @ag.custom_gradient
    def inner(x: Any) -> Any:
        return x * x, lambda dy: dy * 100.0 * x

    @ag.custom_gradient
    def outer(x: Any) -> Any:
        return inner(x) + 1.0, lambda dy: dy * inner(x)

    f = stage(outer)
    x = number(3.0)
    with ag.GradientTape() as second:
        second.watch(x)
        with ag.GradientTape() as first:
            first.watch(x)
            y = f(x)
        dx = first.gradient(y, x)
    assert (float(y), float(dx), float(second.gradient(dx, x))) == (10.0, 9.0, 300.0)


@pytest.mark.parametrize("stage", STAGES)
def test_a_variable_read_by_the_gradient_only(stage: Any) -> None:
    v = ag.Variable(7.0, dtype=ag.float64)

    @ag.custom_gradient
    def f(x: Any) -> Any:
        return x + 0.0, lambda dy: dy * v

    @stage
    def g(x: Any) -> Any:
        return f(x) * 2.0

    x = number(1.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = g(x)
    assert float(tape.gradient(y, x)) == 14.0


@pytest.mark.parametrize("stage", STAGES)
def test_a_gradient_that_knows_nothing_of_variables(stage: Any) -> None:
    v = ag.Variable(2.0, name="weight")

    @ag.custom_gradient
    def f(x: Any) -> Any:
        return x * v, lambda dy: dy

    with pytest.raises(TypeError, match="must accept keyword argument 'variables'.*weight"):
        stage(lambda x: f(x))(ag.constant(1.0))


def test_variables_that_dont_train_are_constants() -> None:
    v = ag.Variable(2.0, trainable=False)

    @ag.custom_gradient
    def f(x: Any) -> Any:
        return x * v, lambda dy: dy * 5.0

    x = ag.constant(1.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(tape.gradient(y, x)) == 5.0


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (lambda dy: dy, TypeError, "must return a pair"),
        (lambda dy: (dy, [dy, dy]), ValueError, "expected to return 1 gradients of variables, but returned 2"),
        (lambda dy: ([dy, dy], [dy]), ValueError, "expected to return 1 gradients, but returned 2"),
    ],
)
def test_what_a_gradient_must_return(returned: Any, error: type[Exception], message: str) -> None:
    v = ag.Variable(2.0)

    @ag.custom_gradient
    def f(x: Any) -> Any:
        return x * v, lambda dy, variables=None: returned(dy)

    x = ag.constant(1.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pytest.raises(error, match=message):
        tape.gradient(y, x)


def test_a_gradient_with_effects_inside_a_function() -> None:
    count = ag.Variable(0.0, trainable=False)

    @ag.custom_gradient
    def f(x: Any) -> Any:
        def grad(dy: Any) -> Any:
            count.assign_add(1.0)
            return dy

        return x * 2.0, grad

    with pytest.raises(ag.errors.UnimplementedError, match="gradient of 'f' assigns variables"):
        ag.function(lambda x: f(x))(ag.constant(1.0))


@pytest.mark.parametrize("stage", STAGES)
def test_recompute_grad_with_variables(stage: Any) -> None:
    w = ag.Variable([[0.5, -0.2], [0.1, 0.9]], dtype=ag.float64)
    b = ag.Variable([0.1, 0.2], dtype=ag.float64)

    def layer(x: Any) -> Any:
        return ag.tanh(ag.linalg.matmul(x, w) + b)

    def run(block: Any) -> list[np.ndarray]:
        @stage
        def f(x: Any) -> Any:
            return ag.reduce_sum(block(block(x)) ** 2)

        x = ag.constant([[0.3, 0.4], [1.0, -1.0]], ag.float64)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return [g.numpy() for g in tape.gradient(y, [x, w, b])]

    for found, expected in zip(run(ag.recompute_grad(layer)), run(layer)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_recompute_grad_in_a_loop() -> None:
    v = ag.Variable(0.7, dtype=ag.float64)

    def run(block: Any) -> Any:
        @ag.function(jit_compile=True)
        def f(x: Any, n: Any) -> Any:
            for _ in ag.range(n):
                x = block(x)
            return x

        x = number(0.4)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = f(x, ag.constant(5))
        return [float(g) for g in tape.gradient(y, [x, v])]

    def step(x: Any) -> Any:
        return ag.sin(x * v) + v

    np.testing.assert_allclose(run(ag.recompute_grad(step)), run(step), rtol=1e-12)


def test_grad_pass_through_with_a_variable() -> None:
    v = ag.Variable(2.0)
    x = ag.constant(3.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.grad_pass_through(lambda t: ag.round(t * v))(x)
    assert [None if g is None else float(g) for g in tape.gradient(y, [x, v])] == [1.0, None]


def newton(a: Any) -> Any:
    x = a
    while ag.abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


@ag.custom_gradient
def root(a: Any) -> Any:
    x = newton(a)

    def grad(dy: Any) -> Any:
        if x < 1.0:
            dy = dy * 1.0
        return dy / (2.0 * x)

    return x, grad


def test_what_is_behind_the_decorators_is_converted_in_a_trace() -> None:
    @ag.function
    def slopes(a: Any) -> Any:
        with ag.GradientTape(persistent=True) as tape:
            tape.watch(a)
            ys = root(a), ag.recompute_grad(newton)(a), ag.grad_pass_through(newton)(a)
        return ys, [tape.gradient(y, a) for y in ys]

    values, found = slopes(ag.constant(2.0, ag.float64))
    np.testing.assert_allclose([float(v) for v in values], [2.0**0.5] * 3, rtol=1e-12)
    np.testing.assert_allclose([float(g) for g in found], [8.0**-0.5, 8.0**-0.5, 1.0], rtol=1e-11)


def test_a_gradient_that_calls_its_own_function():
    """It is traced three times, one in another, not forever."""

    @ag.custom_gradient
    def doubling(x):
        return ag.exp(x), lambda dy: dy * doubling(x) * 2.0

    def derivative(order):
        def f(x):
            if order == 0:
                return doubling(x)
            with ag.GradientTape() as tape:
                tape.watch(x)
                y = derivative(order - 1)(x)
            return tape.gradient(y, x)

        return f

    x = ag.constant(1.0)
    for order in range(4):
        expected = 2.0**order * np.exp(1.0)
        assert float(ag.function(derivative(order))(x)) == pytest.approx(expected, rel=1e-5)
    assert float(derivative(5)(x)) == pytest.approx(32 * np.exp(1.0), rel=1e-5)
    with pytest.raises(ag.errors.UnimplementedError, match="has 3 derivatives in a traced function"):
        ag.function(derivative(4))(x)
