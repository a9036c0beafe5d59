"""`GradientTape` on eager code, on calls of `ag.function`, and inside `ag.function`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import autograph as ag


def difference(function: Any, x: float, step: float = 1e-6) -> float:
    high, low = (function(ag.constant(x + s, ag.float64)) for s in (step, -step))
    return (float(high) - float(low)) / (2 * step)


# --- programs: plain Python over tensors, run eagerly, staged and compiled --------------------------------------------


def power(x: Any) -> Any:
    y = x
    for _ in ag.range(5):
        y = y * x
    return y


def newton(x: Any) -> Any:
    """A trip count that only the data decides."""
    y = x
    while abs(y * y - x) > 1e-9:
        y = 0.5 * (y + x / y)
    return y


def left_by_break(x: Any) -> Any:
    total = x * 0.0
    i = 0
    while i < 100:
        term = ag.sin(total + x) * 0.9
        if total + term > 2.0:
            break
        total = total + term
        i += 1
    return total * x


def continued(x: Any) -> Any:
    total = x * 0.0
    for i in ag.range(8):
        if i % 3 == 1:
            continue
        total += ag.cast(i, x.dtype) * x**2
    return total


def returned_early(x: Any) -> Any:
    y = x
    while True:
        y = y * 1.5
        if y > 10.0:
            return y * y
        if y < -10.0:
            return -y


def nested(x: Any) -> Any:
    total = x * 0.0
    for i in ag.range(4):
        y = x
        j = 0
        while j < i:
            y = ag.sin(y) + 0.1 * x
            j += 1
        if y > 0.5:
            total += y * y
        else:
            total -= y
    return total


def rows(x: Any) -> Any:
    table = ag.stack([x, x * x, ag.exp(x)])
    total = x * 0.0
    for row in table:
        total = total * 0.5 + row * row
    return total


def array_of_results(x: Any) -> Any:
    results = ag.TensorArray(ag.float64, 5)
    y = x
    for i in ag.range(5):
        y = ag.sin(y) * 1.1
        results = results.write(i, y)
    return ag.reduce_sum(results.stack() * ag.constant([1.0, -2.0, 3.0, 0.5, 2.0], ag.float64))


PROGRAMS = [power, newton, left_by_break, continued, returned_early, nested, rows, array_of_results]


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_of_functions(program: Any, jit_compile: bool) -> None:
    staged = ag.function(program, jit_compile=jit_compile)
    for value in (0.4, 1.7):
        x = ag.constant(value, ag.float64)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = staged(x)
        expected = difference(program, value)
        np.testing.assert_allclose(float(y), float(program(x)), rtol=1e-12)
        np.testing.assert_allclose(float(tape.gradient(y, x)), expected, rtol=2e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_gradients_eagerly_and_inside_functions(program: Any) -> None:
    def gradient(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return tape.gradient(y, x)

    for value in (0.4, 1.7):
        x = ag.constant(value, ag.float64)
        expected = difference(program, value)
        np.testing.assert_allclose(float(gradient(x)), expected, rtol=2e-6)
        np.testing.assert_allclose(float(ag.function(gradient)(x)), expected, rtol=2e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_second_derivatives(program: Any) -> None:
    """Nested tapes: both outside, both inside, and one on each side of `function`."""

    def first(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        return tape.gradient(y, x)

    def second(f: Any, x: Any) -> Any:
        with ag.GradientTape() as outer:
            outer.watch(x)
            dy = f(x)
        return outer.gradient(dy, x)

    staged = ag.function(program)

    def of_calls(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = staged(x)
        return tape.gradient(y, x)

    x = ag.constant(0.9, ag.float64)
    expected = difference(first, 0.9)
    found = {
        "eager": second(first, x),
        "both inside": ag.function(lambda x: second(first, x))(x),
        "one inside": second(ag.function(first), x),
        "both outside": second(of_calls, x),
    }
    for where, value in found.items():
        np.testing.assert_allclose(float(value), expected, rtol=1e-5, atol=1e-7, err_msg=where)


# --- the contract ----------------------------------------------------------------------------------------------------


def test_a_tape_is_used_up() -> None:
    x = ag.constant(3.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0
    with pytest.raises(RuntimeError, match="can only be used to compute one set of gradients"):
        tape.gradient(y, x)


def test_a_persistent_tape_is_not() -> None:
    x = ag.constant(3.0)
    with ag.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0
    assert tape.gradient(y, x).numpy() == 6.0
    assert tape.gradient(z, y).numpy() == 18.0


def test_a_persistent_tape_inside_a_function_with_a_loop() -> None:
    @ag.function
    def f(x: Any) -> Any:
        with ag.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x
            for _ in ag.range(3):
                y = ag.sin(y)
            z = y * y
        return tape.gradient(y, x), tape.gradient(z, x)

    x = 0.7
    one, two = f(ag.constant(x, ag.float64))
    np.testing.assert_allclose(two, 2 * np.sin(np.sin(np.sin(x))) * one.numpy(), rtol=1e-12)


def test_variables_watch_themselves_if_trainable() -> None:
    a, b = ag.Variable(2.0), ag.Variable(3.0, trainable=False)
    with ag.GradientTape() as tape:
        y = a * a * b
    assert tape.watched_variables() == (a,) or [v is a for v in tape.watched_variables()] == [True]
    da, db = tape.gradient(y, [a, b])
    assert da.numpy() == 12.0
    assert db is None


def test_nothing_is_watched_unasked() -> None:
    a = ag.Variable(2.0)
    with ag.GradientTape(watch_accessed_variables=False) as tape:
        y = a * a
    assert tape.gradient(y, a) is None
    with ag.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(a)
        y = a * a
    assert tape.gradient(y, a).numpy() == 4.0


def test_structures_of_sources() -> None:
    a, b, c = (ag.Variable(v) for v in (2.0, 3.0, 5.0))
    with ag.GradientTape() as tape:
        y = a * b
    found = tape.gradient(y, {"a": a, "rest": [b, (c,)]})
    assert found["a"].numpy() == 3.0
    assert found["rest"][0].numpy() == 2.0
    assert found["rest"][1] == (None,)


def test_unconnected_gradients() -> None:
    a, b = ag.Variable(2.0), ag.Variable([1.0, 2.0])
    with ag.GradientTape() as tape:
        y = a * a
    found = tape.gradient(y, [a, b], unconnected_gradients="zero")
    assert found[0].numpy() == 4.0
    np.testing.assert_array_equal(found[1], [0.0, 0.0])
    with pytest.raises(ValueError, match="unconnected_gradients"):
        ag.GradientTape(persistent=True).gradient(y, a, unconnected_gradients="maybe")


def test_targets_are_summed_and_weighted() -> None:
    x = ag.constant([1.0, 2.0, 3.0])
    with ag.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, 3.0 * x
    np.testing.assert_array_equal(tape.gradient([y, z], x), [5.0, 7.0, 9.0])
    np.testing.assert_array_equal(tape.gradient(y, x, output_gradients=ag.constant([1.0, 0.0, -1.0])), [2.0, 0.0, -6.0])


def test_integers_and_constants_have_none() -> None:
    n, x = ag.constant(3), ag.constant(2.0)
    with ag.GradientTape(persistent=True) as tape:
        with pytest.warns(UserWarning, match="must be floating"):
            tape.watch(n)
        y = x * ag.cast(n, ag.float32)
    assert tape.gradient(y, n) is None
    assert tape.gradient(y, x) is None


def test_an_assignment_cuts() -> None:
    """The gradient of a variable is the sum over its reads; it doesn't flow through assignments."""
    v, x = ag.Variable(2.0), ag.constant(3.0)

    def f(x: Any) -> Any:
        y = v * x
        v.assign(y * y)
        return y + v * x

    for run in (f, ag.function(f)):
        v.assign(2.0)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = run(x)
        dv, dx = tape.gradient(y, [v, x])
        assert float(dx) == 2.0 + 36.0, run
        assert float(dv) == 3.0 + 3.0, run


def test_stop_recording_and_reset() -> None:
    x = ag.constant(2.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = y * x
    assert tape.gradient(z, x) is None
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        tape.watch(x)
        z = x * 3.0
    assert tape.gradient(z, x).numpy() == 3.0
    with pytest.raises(RuntimeError, match="Trying to stop recording a tape which is not recording"):
        with tape.stop_recording():
            pass


def test_tapes_on_threads_do_not_meet() -> None:
    found: dict[int, float] = {}
    staged = ag.function(power, jit_compile=False)

    def work(index: int) -> None:
        x = ag.constant(1.0 + index / 10, ag.float64)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = staged(x)
        found[index] = float(tape.gradient(y, x))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    np.testing.assert_allclose([found[i] for i in range(16)], [6 * (1 + i / 10) ** 5 for i in range(16)], rtol=1e-12)


def test_custom_gradient() -> None:
    @ag.custom_gradient
    def log1pexp(x: Any) -> Any:
        e = ag.exp(x)

        def grad(upstream: Any) -> Any:
            return upstream * (1 - 1 / (1 + e))

        return ag.math.log(1 + e), grad

    def slope(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = log1pexp(x)
        return tape.gradient(y, x)

    for run in (slope, ag.function(slope, jit_compile=True)):
        assert run(ag.constant(0.0)).numpy() == 0.5
        # Without a gradient of its own this is exp(100) / (1 + exp(100)) = inf / inf.
        assert run(ag.constant(100.0)).numpy() == 1.0
    x = ag.constant(0.3, ag.float64)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = slope(x)
    sigmoid = 1 / (1 + np.exp(-0.3))
    np.testing.assert_allclose(tape.gradient(y, x), sigmoid * (1 - sigmoid), rtol=1e-12)


def test_custom_gradient_in_a_loop() -> None:
    @ag.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 3.0, lambda dy: ag.clip_by_value(dy * 3.0, -1.0, 1.0)

    @ag.function(jit_compile=True)
    def f(x: Any) -> Any:
        for _ in ag.range(4):
            x = clipped(x)
        return x

    x = ag.constant(2.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y.numpy() == 162.0
    assert tape.gradient(y, x).numpy() == 1.0


def test_a_tape_that_gave_its_gradient_can_be_entered_again() -> None:
    x, tape = ag.constant(2.0), ag.GradientTape()
    for power, expected in ((2, 4.0), (3, 12.0)):
        with tape:
            tape.watch(x)
            y = x**power
        assert float(tape.gradient(y, x)) == expected


def test_watched_variables_stand_in_the_order_of_their_creation() -> None:
    v, w = ag.Variable(1.0), ag.Variable(2.0)
    with ag.GradientTape() as tape:
        w * v
    assert [a is b for a, b in zip(tape.watched_variables(), (v, w))] == [True, True]


def test_a_source_that_is_the_target() -> None:
    x, other = ag.constant([1.0, 2.0]), ag.constant(1.0)
    with ag.GradientTape(persistent=True) as tape:
        pass
    np.testing.assert_array_equal(tape.gradient(x, x), [1.0, 1.0])
    assert tape.gradient(x, other) is None
