"""`tape.stop_recording()` and `reset` in staged loops and branches: as in plain Python, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from tests.autodiff.tape_modes import MODES, assert_as_in_plain_python

X = np.array([0.5, 1.0, 2.0])
W = ag.Variable(3.0, dtype=ag.float64)


def in_a_loop(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        s = ag.constant(1.0, ag.float64)
        for v in x:
            with tape.stop_recording():
                c = s * v
            s = s + c * v
    return tape.gradient(s, x)


def in_a_while_loop(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y, i = x * 1.0, ag.constant(0)
        while ag.reduce_sum(y) < 100.0:
            same = y * y
            with tape.stop_recording():
                z = y * y
                if i > 1:
                    z = z * x
            y = y * 2.0 + z - 0.5 * same
            i += 1
    return tape.gradient(y, x)


def in_a_branch(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        if x[0] > 0.0:
            with tape.stop_recording():
                c = x * x
            y = c * x
        else:
            y = x
    return tape.gradient(y, x)


def around_a_loop_in_a_loop(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        s = x[0] * 1.0
        for v in x:
            with tape.stop_recording():
                t = s
                for u in x:
                    t = t * u + v
            for u in x:
                with tape.stop_recording():
                    t += u * v
                s += t * u
    return tape.gradient(s, x)


def of_a_variable(x):
    with ag.GradientTape() as tape:
        s = x[0] * 0.0
        for v in x:
            with tape.stop_recording():
                c = W * W * v
            s += c * W
    return tape.gradient(s, W)


def helper(tape, s, v):
    with tape.stop_recording():
        return s * v


def by_a_helper(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        s = ag.constant(1.0, ag.float64)
        for v in x:
            s = s + helper(tape, s, v) * v
    return tape.gradient(s, x)


def of_the_inner_tape(x):
    with ag.GradientTape() as outer:
        outer.watch(x)
        with ag.GradientTape() as inner:
            inner.watch(x)
            y = x * 1.0
            for v in x:
                with inner.stop_recording():
                    c = y * y
                y = c * y * v
        first = inner.gradient(y, x)
    return first, outer.gradient(first, x)


def of_one_tape_outside_of_blocks(x):
    with ag.GradientTape() as outer:
        outer.watch(x)
        with ag.GradientTape(persistent=True) as inner:
            inner.watch(x)
            with inner.stop_recording():
                c = x * x
                for v in x:
                    c = c * v * powers(x)
            with outer.stop_recording():
                d = x * x if x[0] > 0.0 else x
            y = c * d * x
    return inner.gradient(y, x), outer.gradient(y, x)


def of_the_outer_tape(x):
    with ag.GradientTape() as outer:
        outer.watch(x)
        with ag.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = x * 1.0
            for v in x:
                with outer.stop_recording():
                    c = y * y
                y = c * y * v
        first = inner.gradient(y, x)
    return first, outer.gradient(y, x)


def jacobian(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x * 1.0
        for v in x:
            with tape.stop_recording():
                c = y * v
            y = c * x
    return tape.jacobian(y, x)


def items_of_lists(x):
    """Lists hold the tensors that the tape knows."""
    with ag.GradientTape() as tape:
        tape.watch(x)
        items, s = [], x[0] * 1.0
        for v in x:
            square = v * v
            with tape.stop_recording():
                items.append(square)
                items.append(square * v)
                c = items[-2]
            s += c * v
        for v in x:
            with tape.stop_recording():
                c = items.pop()
                d = items.pop()
            s += c * d * v
        with tape.stop_recording():
            items += [s, s * s]
            c, d = items[-1], items[0]
        s = s * c * d
    return tape.gradient(s, x)


@ag.function
def powers(x):
    total = x
    for v in x:
        total = total * x + v
    return total


@ag.custom_gradient
def tripled(x):
    return x * 3.0, lambda dy: dy * 5.0


def calls(x):
    """Of a function with a loop in it, and of one with a gradient of its own."""
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x * 1.0
        for v in x:
            with tape.stop_recording():
                c = powers(x) + tripled(x * v) + tripled(y)
            y = y * c * tripled(v)
        with tape.stop_recording():
            c = powers(x) * tripled(y)
        y = y * c
    return tape.gradient(y, x)


def choices(x):
    """A choice among tensors is no operation."""
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        for v in x:
            with tape.stop_recording():
                if v > 0.7:
                    c = y
                else:
                    c = y * v
                d = y if v < 0.7 else x * v
                e = y
                while ag.reduce_sum(e) < v:
                    e = e * 2.0
            y = y + c * d * e
        with tape.stop_recording():
            if x[0] > 0.0:
                c = x
            else:
                c = y
        y = y * c
    return tape.gradient(y, x)


def watched_already(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        s = x[0] * 0.0
        for v in x:
            tape.watch([x, W])
            s += v * v * W
    return tape.gradient(s, [x, W])


PROGRAMS = [
    in_a_loop, in_a_while_loop, in_a_branch, around_a_loop_in_a_loop, of_a_variable, by_a_helper, of_the_inner_tape,
    of_one_tape_outside_of_blocks, of_the_outer_tape, jacobian, items_of_lists, calls, choices, watched_already,
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_plain_python(program: Any, mode: str) -> None:
    assert_as_in_plain_python(program, mode, ag.constant(X))


def test_a_tape_outside_of_the_function_sees_what_the_inner_one_does_not() -> None:
    @ag.function
    def value_and_slope(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = x * 1.0
            for _ in ag.range(3):
                with tape.stop_recording():
                    c = y * y
                y = c * y
        return y, tape.gradient(y, x)

    x = ag.constant(1.5, ag.float64)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y, slope = value_and_slope(x)
    # y = x ** 27, and the slope is c c' c'' = x ** 2 x ** 6 x ** 18.
    np.testing.assert_allclose(slope, 1.5**26, rtol=1e-12)
    np.testing.assert_allclose(tape.gradient([y, slope], x), 27 * 1.5**26 + 26 * 1.5**25, rtol=1e-12)


def test_what_is_computed_before_the_block_is_recorded() -> None:
    @ag.function
    def slope(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            if x > 0.0:
                before = x * x
                with tape.stop_recording():
                    same = x * x
                y = before + same
            else:
                y = x
        return tape.gradient(y, x)

    assert float(slope(ag.constant(3.0))) == 6.0


def reset_in_a_loop(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        for v in x:
            tape.reset()
            y = v * v
    return tape.gradient(y, x)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (reset_in_a_loop, r"reset\(\) in a staged loop or branch .* call it before"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_what_cannot_be_staged_is_refused(program: Any, message: str) -> None:
    with pytest.raises(ag.errors.UnimplementedError, match=message):
        ag.function(program)(ag.constant(X))


def test_a_tape_from_outside_is_refused_in_a_function() -> None:
    x = ag.constant(X)
    with ag.GradientTape(watch_accessed_variables=False) as tape:

        @ag.function
        def paused(t):
            with tape.stop_recording():
                return t * t

        with pytest.raises(
            ag.errors.UnimplementedError, match=r"opened outside of the traced function; open it inside"
        ):
            paused(x)
