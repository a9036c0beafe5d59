"""Jacobians, forward mode, and the other functions about gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag

X = np.array([0.3, -0.7, 1.2])


def program(x: Any) -> Any:
    """R³ → R², through a loop and a branch."""
    a, b = x[0], x[1] * x[2]
    for i in ag.range(3):
        if a > 0.5:
            a = ag.sin(a) * b + x[2]
        else:
            a = a * a + ag.cast(i, x.dtype) * b
    return ag.stack([a, a * b])


def numerical(f: Any, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    columns = []
    for i in range(x.size):
        high, low = x.copy(), x.copy()
        high[i] += step
        low[i] -= step
        columns.append((f(ag.constant(high)).numpy() - f(ag.constant(low)).numpy()) / (2 * step))
    return np.stack(columns, axis=-1)


def jacobian(f: Any, x: Any, **options: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x, **options)


@pytest.mark.parametrize("f", [program, ag.function(program)], ids=["eager", "staged"])
def test_jacobian(f: Any) -> None:
    expected = numerical(program, X)
    x = ag.constant(X)
    np.testing.assert_allclose(jacobian(f, x), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(jacobian(f, x, experimental_use_pfor=False), expected, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(ag.function(lambda x: jacobian(f, x))(x), expected, rtol=1e-6, atol=1e-8)


def test_jacobian_shapes_and_sources() -> None:
    v, w = ag.Variable(np.ones((3, 2))), ag.Variable(2.0)
    with ag.GradientTape(persistent=True) as tape:
        y = ag.matmul(ag.constant(np.arange(12.0).reshape(4, 3)), v)
    found, none = tape.jacobian(y, [v, w])
    assert found.shape == [4, 2, 3, 2]
    assert none is None
    np.testing.assert_array_equal(found.numpy()[3, 1, :, 1], [9.0, 10.0, 11.0])
    np.testing.assert_array_equal(found.numpy()[3, 1, :, 0], [0.0, 0.0, 0.0])
    assert tape.jacobian(y, w, unconnected_gradients="zero").shape == [4, 2]


def test_batch_jacobian() -> None:
    x = ag.constant(np.stack([X, X + 0.1, X * 2, -X]))
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x * x * ag.reduce_sum(x, axis=1, keepdims=True)
    found = tape.batch_jacobian(y, x)
    assert found.shape == [4, 3, 3]
    for row, expected_at in zip(found.numpy(), x.numpy()):
        expected = numerical(lambda r: r * r * ag.reduce_sum(r), expected_at)
        np.testing.assert_allclose(row, expected, rtol=1e-6, atol=1e-8)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x[:2]
    with pytest.raises(ValueError, match="first dimension"):
        tape.batch_jacobian(y, x)


def test_a_hessian_is_a_jacobian_of_a_gradient() -> None:
    def gradient(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.reduce_sum(program(x))
        return tape.gradient(y, x)

    x = ag.constant(X)
    expected = numerical(gradient, X)
    for g in (gradient, ag.function(gradient)):
        np.testing.assert_allclose(jacobian(g, x), expected, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ag.function(lambda x: jacobian(gradient, x))(x), expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("f", [program, ag.function(program)], ids=["eager", "staged"])
def test_forward_mode(f: Any) -> None:
    x, v = ag.constant(X), np.array([1.0, -2.0, 0.5])
    with ag.autodiff.ForwardAccumulator(x, ag.constant(v)) as accumulator:
        y = f(x)
    np.testing.assert_allclose(accumulator.jvp(y), numerical(program, X) @ v, rtol=1e-6)


def test_forward_over_reverse() -> None:
    """A Hessian-vector product without the Hessian."""
    x, v = ag.constant(X), np.array([1.0, -2.0, 0.5])
    with ag.autodiff.ForwardAccumulator(x, ag.constant(v)) as accumulator:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.reduce_sum(program(x))
        slope = tape.gradient(y, x)

    def gradient(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.reduce_sum(program(x))
        return tape.gradient(y, x)

    np.testing.assert_allclose(accumulator.jvp(slope), numerical(gradient, X) @ v, rtol=1e-5)


def test_forward_mode_of_variables_and_unconnected() -> None:
    v = ag.Variable(3.0)
    with ag.autodiff.ForwardAccumulator(v, ag.constant(2.0)) as accumulator:
        y, z = v * v, ag.constant(1.0) * 2.0
    assert float(accumulator.jvp(y)) == 12.0
    assert accumulator.jvp(z) is None
    assert float(accumulator.jvp(z, unconnected_gradients=ag.UnconnectedGradients.ZERO)) == 0.0
    with pytest.raises(ValueError, match="tangent of shape"):
        ag.autodiff.ForwardAccumulator(v, ag.constant([1.0, 2.0]))


def test_gradients_in_a_graph() -> None:
    @ag.function
    def f(x: Any) -> Any:
        y = x * x
        z = ag.sin(y) + x
        return ag.gradients(z, [x, y]), ag.gradients([y, z], x, grad_ys=[ag.constant(2.0), ag.constant(0.5)])

    (dx, dy), (both,) = f(ag.constant(0.5))
    np.testing.assert_allclose(float(dx), np.cos(0.25) + 1, rtol=1e-6)
    np.testing.assert_allclose(float(dy), np.cos(0.25), rtol=1e-6)
    np.testing.assert_allclose(float(both), 2.0 + 0.5 * (np.cos(0.25) + 1), rtol=1e-6)
    with pytest.raises(RuntimeError, match="Use ag.GradientTape"):
        ag.gradients(ag.constant(1.0), ag.constant(1.0))


@pytest.mark.parametrize("stage", [lambda f: f, ag.function], ids=["eager", "staged"])
def test_recompute_and_pass_through(stage: Any) -> None:
    runs: list[int] = []

    def block(x: Any) -> Any:
        runs.append(1)
        return ag.tanh(x) * x

    def slope(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.recompute_grad(block)(x)
        return tape.gradient(y, x)

    x = ag.constant(0.7, ag.float64)
    np.testing.assert_allclose(float(stage(slope)(x)), np.tanh(0.7) + 0.7 / np.cosh(0.7) ** 2, rtol=1e-12)
    assert len(runs) == 2

    def rounded(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = ag.grad_pass_through(ag.round)(x) * 3.0
        return tape.gradient(y, x)

    assert float(stage(rounded)(x)) == 3.0


def test_checking_tools() -> None:
    theoretical, numeric = ag.test.compute_gradient(lambda x, y: ag.sin(x) * y, [X, X + 1.0])
    assert ag.test.max_error(theoretical, numeric) < 1e-5
    assert [j.shape for j in theoretical] == [(3, 3), (3, 3)]
    report = ag.test.check_gradients(ag.function(program), [X], order=2)
    assert report.passed
    assert set(report.errors) == {(1, 0), (2, 0)}

    @ag.custom_gradient
    def wrong(x: Any) -> Any:
        return x * x, lambda dy: dy * 3.0 * x

    with pytest.raises(AssertionError, match="order 1, argument 0: WRONG"):
        ag.test.check_gradients(wrong, [X], order=1)


def _recorded(x: Any) -> tuple[Any, Any]:
    with ag.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x
        for i in ag.range(3):
            for _ in ag.range(i + 1):
                y = ag.sin(y) * x
    return tape, y


def in_a_branch(x: Any, often: Any) -> Any:
    tape, y = _recorded(x)
    g = tape.gradient(y, x) if often > 1 else x
    return ag.reduce_sum(g * g * y)


def in_a_loop(x: Any, often: Any) -> Any:
    tape, y = _recorded(x)
    total = x
    for k in ag.range(often):
        total += tape.gradient(y, x, output_gradients=y * ag.cast(k + 1, ag.float64))
    return ag.reduce_sum(total * total)


def in_a_jacobian(x: Any, often: Any) -> Any:
    tape, y = _recorded(x)
    found = tape.jacobian(y, x)
    return ag.reduce_sum(found * found) * ag.cast(often, ag.float64)


@pytest.mark.parametrize("often", [0, 3])
@pytest.mark.parametrize("program", [in_a_branch, in_a_loop, in_a_jacobian])
def test_a_gradient_taken_in_control_flow_is_differentiated_again(program: Any, often: int) -> None:
    """The residuals of the loop outside are popped in the branch or loop, never, once or several times."""
    x, often = ag.constant([0.9, -0.4], ag.float64), ag.constant(often)

    def first_and_second(f: Any) -> Any:
        with ag.GradientTape() as outer:
            outer.watch(x)
            with ag.GradientTape() as inner:
                inner.watch(x)
                y = f(x, often)
            g = inner.gradient(y, x)
            s = ag.reduce_sum(g * x)
        return [g, outer.gradient(s, x)]

    # Eagerly there are no stacks; a call of the function has them.
    for found, expected in zip(first_and_second(ag.function(program, jit_compile=False)), first_and_second(program)):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize(
    ("shape", "compiled"), [((3, 2), False), ((None, 2), False), ((None, None), False), ((None, None), True)]
)
def test_jacobians_of_shapes_known_when_it_runs(shape: Any, compiled: bool) -> None:
    def jacobians(x: Any) -> Any:
        with ag.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x
            for _ in ag.range(2):
                y = y * x * ag.reduce_sum(x, 1, keepdims=True)
            z = ag.concat([y, y], 0)
        return tape.jacobian(z, x), tape.batch_jacobian(y, x)

    x = ag.constant(np.arange(1.0, 7.0).reshape(3, 2))
    staged = ag.function(jacobians, input_signature=[ag.TensorSpec(shape, ag.float64)], jit_compile=compiled)
    for found, expected in zip(staged(x), jacobians(x)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_jacobians_without_connection() -> None:
    x, z = ag.constant([[1.0, 2.0], [3.0, 4.0]]), ag.constant([[1.0], [2.0]])
    with ag.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        y = x * x
    assert tape.jacobian(y, z) is None
    np.testing.assert_array_equal(tape.batch_jacobian(y, z), np.zeros((2, 2, 1)))
    with pytest.raises(ValueError, match=r"first dimension of target shape .* to match"):
        tape.batch_jacobian(y[:1], z)


def test_gradients_stop_where_they_are_told() -> None:
    @ag.function
    def partial(x: Any) -> Any:
        y = x * x
        z = y * x
        both = ag.gradients([z, y], [x, y], grad_ys=[None, ag.constant(2.0)], stop_gradients=[x, y])
        return [*both, *ag.gradients(z, x, stop_gradients=y), *ag.gradients(z, x)]

    assert [float(g) for g in partial(ag.constant(3.0))] == [9.0, 5.0, 9.0, 27.0]
