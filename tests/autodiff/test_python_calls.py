"""Gradients through `py_function`, and through functions whose effects can't happen twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from tests.full import FULL

calls: list[int] = []


def cube(v: Any) -> Any:
    calls.append(1)
    return v * v * v


def straight(x: Any) -> Any:
    return ag.ensure_shape(ag.py_function(cube, [x], ag.float64), [2])


def looped(x: Any) -> Any:
    for _ in ag.range(3):
        if x[0] > 0.9:
            x = ag.ensure_shape(ag.py_function(cube, [x * 0.5], ag.float64), [2])
    return x


def looped_in_python(x: Any) -> Any:
    for _ in range(3):
        if x[0] > 0.9:
            x = cube(x * 0.5)
    return x


def derivatives(function: Callable[[Any], Any], order: int) -> Callable[[Any], list[Any]]:
    """The function's value and derivatives, each summed over the elements of the one before, under one tape each."""

    def run(x: Any) -> list[Any]:
        tapes = [ag.GradientTape() for _ in range(order)]
        found = []
        for tape in tapes:
            tape.__enter__()
            tape.watch(x)
        found.append(function(x))
        for tape in reversed(tapes):
            tape.__exit__(None, None, None)
            found.append(tape.gradient(found[-1], x))
        return found

    return run


STAGES = [
    pytest.param(lambda f: derivatives(f, 3), id="eager"),
    pytest.param(lambda f: ag.function(derivatives(f, 3), autograph=False), id="tapes in a function"),
    pytest.param(lambda f: derivatives(ag.function(f), 3), id="tapes round a function"),
    pytest.param(lambda f: derivatives(ag.function(f, jit_compile=False), 3), id="round an interpreted function"),
]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("function, reference", [(straight, cube), (looped, looped_in_python)])
def test_python_functions_have_gradients_to_third_order(stage: Any, function: Any, reference: Any) -> None:
    x = ag.constant([2.0, 3.0], ag.float64)
    calls.clear()
    expected = derivatives(reference, 3)(x)
    times = len(calls)
    run = stage(ag.autograph.to_graph(function) if stage is STAGES[1].values[0] else function)
    for _ in range(3):
        calls.clear()
        for one, other in zip(run(x), expected):
            np.testing.assert_allclose(one, other, rtol=1e-12)
        assert len(calls) == times


@pytest.mark.parametrize("stage", [lambda f: f, ag.function])
def test_several_arguments_and_results(stage: Any) -> None:
    def both(v: Any, k: Any, w: Any) -> Any:
        return v * w, k + 1, ag.sin(v), np.float32(4.0)

    def f(v: Any, k: Any, w: Any) -> Any:
        product, following, sine, four = ag.py_function(both, [v, k, w], [ag.float64, ag.int32, ag.float64, ag.float64])
        return product * four + ag.cast(following, ag.float64) + sine

    v, k, w, other = ag.constant(0.5, ag.float64), ag.constant(3), ag.constant(2.0, ag.float64), ag.constant(1.0)
    with ag.GradientTape() as tape:
        tape.watch([v, w, other])
        y = stage(f)(v, k, w)
    assert float(y) == 0.5 * 2.0 * 4.0 + 4 + np.sin(0.5)
    dv, dk, dw, d_other = tape.gradient(y, [v, k, w, other])
    assert (dk, d_other) == (None, None)
    np.testing.assert_allclose([dv, dw], [2.0 * 4.0 + np.cos(0.5), 0.5 * 4.0])


def test_a_cast_result_has_the_gradient_of_what_was_cast() -> None:
    x = ag.constant(3.0)
    for stage in (lambda f: f, ag.function):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = stage(lambda x: ag.py_function(lambda v: v * v, [x], ag.float64) * 2.0)(x)
        slope = tape.gradient(y, x)
        assert slope.dtype is ag.float32 and float(slope) == 12.0


def test_jacobians_through_python_functions() -> None:
    x = ag.constant([2.0, 3.0], ag.float64)

    @ag.function
    def jacobian(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = straight(x)
        return tape.jacobian(y, x)

    np.testing.assert_allclose(jacobian(x), np.diag([12.0, 27.0]))
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.function(straight)(x)
    np.testing.assert_allclose(tape.jacobian(y, x), np.diag([12.0, 27.0]))


def test_what_python_functions_return_wrongly() -> None:
    x = ag.constant(1.0)
    for stage in (lambda f: f, ag.function):
        with pytest.raises(ag.errors.InvalidArgumentError, match="returned 1 values, expected 2"):
            stage(lambda x: ag.py_function(lambda v: v, [x], [ag.float32, ag.float32]))(x)
        with pytest.raises(ag.errors.InvalidArgumentError, match="returned None where Tout has float32"):
            stage(lambda x: ag.py_function(lambda v: (v, None), [x], [ag.float32, ag.float32]))(x)


def random_powers(x: Any) -> Any:
    for _ in ag.range(2):
        x = x * x * (1.0 + ag.random.uniform([], dtype=ag.float64))
    return x


@pytest.mark.parametrize("compiled", [False, *([True] if FULL else [])])
def test_random_numbers_are_drawn_once_for_all_orders(compiled: bool) -> None:
    """The second derivative came from other random numbers than the first."""
    x = ag.constant([2.0, 3.0], ag.float64)
    value, first, second, third = derivatives(ag.function(random_powers, jit_compile=compiled), 3)(x)
    np.testing.assert_allclose(first, 4.0 * value / x, rtol=1e-12)
    np.testing.assert_allclose(second, 12.0 * value / x**2, rtol=1e-12)
    np.testing.assert_allclose(third, 24.0 * value / x**3, rtol=1e-12)


def test_a_persistent_tape_that_sees_its_own_gradient() -> None:
    x = ag.constant([2.0, 3.0], ag.float64)
    with ag.GradientTape(persistent=True) as tape:
        tape.watch(x)
        value = ag.function(random_powers)(x)
        first = tape.gradient(value, x)
        second = tape.gradient(first, x)
        np.testing.assert_allclose(second, 12.0 * value / x**2, rtol=1e-12)
        with pytest.raises(ag.errors.UnimplementedError, match="would have to run a second time. Nest one tape"):
            tape.gradient(second, x)


def test_effects_happen_once_for_all_orders(capsys: Any) -> None:
    @ag.function
    def f(x: Any) -> Any:
        for i in ag.range(2):
            ag.print("trip", i, output_stream="stdout")
            x = x * ag.sin(x)
        return x

    derivatives(f, 3)(ag.constant(0.5))
    assert capsys.readouterr().out == "trip 0\ntrip 1\n"


def test_what_a_branch_could_not_give_again_is_refused_with_a_way_out() -> None:
    def drawn(x: Any, n: Any) -> Any:
        if n > 1:
            for _ in ag.range(n):
                x = x * ag.random.uniform([])
        return x

    def called(x: Any, n: Any) -> Any:
        if n > 1:
            for _ in ag.range(n):
                x = ag.py_function(lambda v: v * v, [x], ag.float32)
        return x

    def without_branch(x: Any, n: Any) -> Any:
        for _ in ag.range(ag.where(n > 1, n, 0)):
            x = ag.py_function(lambda v: v * v, [x], ag.float32)
        return x

    x, n = ag.constant(2.0), ag.constant(3)
    for program, name, way_out in ((drawn, "random_uniform", "Generator"), (called, "py_function", "ag.where")):
        text = f"(?s){name} is in a loop.*{way_out}.*test_python_calls.py:.*\\n"
        with pytest.raises(ag.errors.UnimplementedError, match=text), ag.GradientTape() as tape:
            tape.watch(x)
            tape.gradient(ag.function(program)(x, n), x)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.function(without_branch)(x, n)
    assert tape.gradient(y, x).numpy() == 8 * 2.0**7
