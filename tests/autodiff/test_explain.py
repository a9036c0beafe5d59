"""`tape.explain`: each way of losing a gradient is named, with the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag


def line_of(function: Callable[..., Any], text: str) -> str:
    """`file.py:12`, of the only line of a function that holds `text`."""
    lines, first = inspect.getsourcelines(function)
    (found,) = [i for i, line in enumerate(lines) if text in line]
    return f"{inspect.getsourcefile(function)}:{first + found}"


def explained(function: Callable[[Any], Any], **options: Any) -> str:
    """What a tape says about a target computed by `function` from a watched number."""
    x = ag.constant(2.0)
    with ag.GradientTape(**options) as tape:
        tape.watch(x)
        y = function(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def traced(function: Callable[[Any], Any]) -> str:
    """The same with the tape inside a function."""
    told: list[str] = []

    @ag.function
    def run(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        told.append(tape.explain(y, x))
        return y

    run(ag.constant(2.0))
    return told[-1]


def called(function: Callable[[Any], Any]) -> str:
    """The same with the function compiled and the tape outside."""
    return explained(ag.function(function))


SIGHTS = [pytest.param(f, id=f.__name__) for f in (explained, traced, called)]


def through_an_integer(x):
    n = ag.cast(x * 3.0, ag.int32)
    m = n + 1
    return ag.cast(m, ag.float32) * 2.0


def through_argmax(x):
    best = ag.argmax(ag.stack([x, x * 2.0]))
    return ag.cast(best, ag.float32)


def stopped(x):
    y = ag.stop_gradient(x * x)
    return y + 1.0


def through_a_comparison(x):
    return ag.cast(x > 1.0, ag.float32)


@pytest.mark.parametrize("see", SIGHTS)
@pytest.mark.parametrize(
    ("function", "line", "cause"),
    [
        (through_an_integer, "n = ag.cast", "the cast to int32 has no gradient"),
        (through_argmax, "ag.argmax", "returns int64, and only floating-point and complex tensors have a gradient"),
        (stopped, "ag.stop_gradient", "stop_gradient cuts it off"),
        (through_a_comparison, "x > 1.0", "returns bool, and only"),
    ],
)
def test_breaks_on_the_way(see: Any, function: Any, line: str, cause: str) -> None:
    text = see(function)
    assert cause in text
    assert line_of(function, line) in text
    assert line in text


def python_function(x):
    (y,) = ag.numpy_function(lambda v: v * 2.0, [x], [ag.float32])
    return y + 1.0


@pytest.mark.parametrize("see", [traced, called])
def test_python_functions(see: Any) -> None:
    text = see(python_function)
    assert "a numpy_function has no gradient" in text
    assert line_of(python_function, "ag.numpy_function") in text


def stepped(x):
    y = ag.round(x * 2.0)
    return y * 3.0


def test_step_functions() -> None:
    text = explained(stepped)
    assert "the gradient of 'Rint' with respect to this is None" in text
    assert line_of(stepped, "ag.round") in text


def around_by_numpy(x):
    y = x * 3.0
    a = np.sin(y.numpy())
    return ag.constant(a) * 2.0


def around_by_float(x):
    return ag.constant(float(x) * 2.0)


@pytest.mark.parametrize(("function", "line"), [(around_by_numpy, "y.numpy()"), (around_by_float, "float(x) *")])
def test_numpy_round_trips(function: Any, line: str) -> None:
    text = explained(function)
    assert "leaves as a NumPy array or Python number" in text
    assert line_of(function, line) in text


@pytest.mark.parametrize("trainable", [True, False])
@pytest.mark.parametrize("method", ["assign", "assign_add"])
def test_assigned_values(trainable: bool, method: str) -> None:
    v = ag.Variable(1.0, trainable=trainable, name="memory")

    def through_a_variable(x):
        getattr(v, method)(x * 2.0)
        return v * 3.0

    text = explained(through_a_variable)
    assert "assigned to the variable 'memory" in text
    assert line_of(through_a_variable, "getattr(v") in text


def test_assigned_values_in_a_function() -> None:
    v = ag.Variable(1.0)

    def through_a_variable(x):
        v.assign(x * 2.0)
        return v * 3.0

    text = traced(through_a_variable)
    assert "assigned to a variable" in text
    assert line_of(through_a_variable, "v.assign") in text


def test_unwatched_sources() -> None:
    x, fixed, free = ag.constant(2.0), ag.Variable(1.0, trainable=False, name="fixed"), ag.Variable(1.0, name="free")
    with ag.GradientTape(persistent=True) as tape:
        y = x * fixed
    assert "the source was never watched" in tape.explain(y, x)
    assert "'fixed" in (text := tape.explain(y, fixed)) and "isn't trainable" in text
    assert "isn't read while the tape is recording" in tape.explain(y, free)
    with ag.GradientTape(watch_accessed_variables=False) as tape:
        y = x * free
    assert "watch_accessed_variables=False" in tape.explain(y, free)
    with ag.GradientTape() as tape:
        tape.watch(fixed)
    assert "is watched, but it isn't read" in tape.explain(y, fixed)


def test_integers_on_either_side() -> None:
    x, n = ag.constant(2.0), ag.constant(2)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = ag.cast(x, ag.int32)
    assert tape.explain(y, x).startswith("No gradient: the target is int32")
    assert tape.explain(x, n).startswith("No gradient: the source is int32")


def test_targets_that_come_from_elsewhere() -> None:
    x = ag.constant(2.0)
    before = x * 3.0
    with ag.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tape.stop_recording():
            paused = x * 4.0
        constant = ag.constant(5.0) * 2.0
    for y in (before, paused, constant):
        assert "the target isn't computed from the source" in tape.explain(y, x)


def test_paths_that_hold() -> None:
    x = ag.constant(2.0)
    with ag.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = ag.stop_gradient(x) * x
        z = ag.function(lambda t: ag.sin(t) if t > 0 else t)(x)
    for target in (y, z, x):
        assert "a gradient flows all the way" in tape.explain(target, x)


def test_an_intermediate_value_behind_a_break() -> None:
    x = ag.constant(2.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        n = ag.cast(ag.cast(x, ag.int32), ag.float32)
        y = n * 2.0
    assert "the source itself is cut off from what the tape watches" in tape.explain(y, n)


def in_a_loop(x):
    s = x * 0.0
    n = ag.cast(x, ag.int32)
    total = ag.constant(0.0)
    while n > 0:
        total += ag.floor(ag.stop_gradient(x)) + 1.0
        n -= 1
    return total


@pytest.mark.parametrize("see", [traced, called])
def test_breaks_inside_loops(see: Any) -> None:
    text = see(in_a_loop)
    assert line_of(in_a_loop, "stop_gradient") in text


def test_a_gradient_of_ones_own_that_is_none() -> None:
    @ag.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: None

    assert "the gradient of 'f' with respect to this is None" in explained(lambda x: f(x) + 1.0)
    assert "its own gradient (custom_gradient) is None" in traced(lambda x: f(x) + 1.0)


def test_an_ordinary_tape_keeps_nothing_alive_that_is_lost() -> None:
    import weakref

    x = ag.constant(2.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        n = ag.cast(ag.cast(x, ag.int32), ag.float32) * 2.0
        gone = weakref.ref(n)
        del n
    assert gone() is None
    assert tape.recorded
