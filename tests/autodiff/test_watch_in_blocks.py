"""`tape.watch()` in staged loops and branches: from there on, where the run comes there, as in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from tests.autodiff.tape_modes import MODES, assert_as_in_plain_python

X = np.array([0.5, 1.0, 2.0])
W = ag.Variable(3.0, dtype=ag.float64)
W2 = ag.Variable(2.0, dtype=ag.float64)
SLOT = ag.Variable(2.0, dtype=ag.float64)
TABLE = ag.Variable(np.arange(6.0).reshape(3, 2))


def late():
    return ag.GradientTape(watch_accessed_variables=False)


def watch_a_variable(x):
    with late() as tape:
        s = ag.constant(0.0, ag.float64)
        for v in x:
            if v > 0.7:
                tape.watch(W)
            s += W * v
        s = s * W
    return tape.gradient(s, W)


def watch_a_tensor(x):
    w = x[2] * 1.0
    with late() as tape:
        s = ag.constant(0.0, ag.float64)
        for v in x:
            if v > 0.7:
                tape.watch(w)
            s += w * v
        s = s * w
    return tape.gradient(s, w)


def watch_what_is_recorded_for_others(x):
    """What is computed from something watched is recorded for all operands."""
    w = x[2] * 1.0
    with late() as tape:
        tape.watch(x)
        s = ag.constant(0.0, ag.float64)
        for v in x:
            if v > 0.7:
                tape.watch([w, W])
            s += w * v * W
            c = w * w
            s += c
    return tape.gradient(s, [x, w, W])


def never_reached(x):
    w = x[2] * 1.0
    with late() as tape:
        tape.watch(x)
        s = x[0] * 1.0
        for v in x:
            if v > 7.0:
                tape.watch([w, W])
            s += w * v * W
    return tape.gradient(s, [x, w, W], unconnected_gradients="zero")


def before_and_after(x):
    with late() as tape:
        tape.watch(x)
        before = x * W
        if x[0] > 0.0:
            tape.watch(W)
        after = x * W * W
        if x[0] > 100.0:
            tape.watch(W2)
        else:
            after = after * W
        y = ag.reduce_sum(before + after * W2)
    return tape.gradient(y, [x, W])


def in_both_branches(x):
    with late() as tape:
        y = x * W
        if x[0] > 1.0:
            tape.watch(W)
            y = y * W
        else:
            y = y * W
            tape.watch(W)
            y = y * 2.0 * W
        y = y * W
    return tape.gradient(y, W)


def at_the_end_of_a_trip(x):
    with late() as tape:
        s = ag.constant(1.0, ag.float64)
        i = ag.constant(0)
        while i < 4:
            if i % 2 == 0:
                s = s + W * x[0]
            else:
                s = s * W
                tape.watch(W)
            i += 1
    return tape.gradient(s, W)


def nested(x):
    w = x[1] * 3.0
    with late() as tape:
        s = ag.constant(0.0, ag.float64)
        for v in x:
            for u in x:
                s += w * u * W
                if u * v > 0.9:
                    if u > 0.7:
                        tape.watch(w)
                    else:
                        s -= W * u
                        tape.watch(W)
                s += s * 0.1
            for u in x:
                s += u * w
        t = s * 1.0
        for v in x:
            t = t * v + W
    return tape.gradient(t, [w, W], unconnected_gradients="zero")


def twice(x):
    w = x[1] * 3.0
    with late() as tape:
        s = ag.constant(0.0, ag.float64)
        for v in x:
            if v > 1.5:
                tape.watch(w)
            s += w * v
            if v > 0.7:
                tape.watch(w)
            s += w * w
        for v in x:
            if v > 0.7:
                tape.watch([w])
            s = s * w + v * W
        tape.watch(w)
        s = s * w
    return tape.gradient(s, [w])


def of_two_persistent_tapes(x):
    with ag.GradientTape(persistent=True, watch_accessed_variables=False) as outer:
        outer.watch(x)
        with ag.GradientTape(persistent=True, watch_accessed_variables=False) as inner:
            y = x * 1.0
            for v in x:
                if v > 0.7:
                    inner.watch([W2, W])
                elif v > 0.6:
                    outer.watch(W)
                y = y * W2 * W * x
            y = y * W * x
        first = inner.gradient(y, [W2, W])
        again = inner.gradient(y * 1.0, W)
    return first, outer.gradient(y, x), outer.gradient(first, x)


def a_jacobian(x):
    w = x * 2.0
    with late() as tape:
        y = ag.zeros_like(x)
        for v in x:
            if v > 0.7:
                tape.watch(w)
            y += w * w * v
        y = y * w
    return tape.jacobian(y, w)


def after_a_reset(x):
    with late() as tape:
        s = x[0] * 1.0
        for v in x:
            tape.watch(W)
            s = s * W
        tape.reset()
        t = s * W
        for v in x:
            if v > 1.5:
                tape.watch(W)
            t = t * W
    return tape.gradient(t, W)


def with_pauses(x):
    with late() as tape:
        s = x[0] * 1.0
        for v in x:
            with tape.stop_recording():
                if v > 0.7:
                    tape.watch(W)
                c = W * v
            s += c * W
        with tape.stop_recording():
            for v in x:
                tape.watch(W2)
            c = x * W
        s = s * c * W2
    return tape.gradient(s, [W, W2])


def an_assigned_variable(x):
    local = SLOT
    local.assign(2.0)
    with late() as tape:
        s = x[0] * 1.0
        for v in x:
            s = s * local
            if v > 0.7:
                tape.watch(local)
            s += local * v
            local.assign_add(1.0)
            s += local * local
        s = s * local
    return tape.gradient(s, local)


def helper_watch(tape, v):
    if v > 0.7:
        tape.watch(W)


def watch_in_a_helper(x):
    with late() as tape:
        s = x[0] * 0.0
        for v in x:
            helper_watch(tape, v)
            s += W * v
    return tape.gradient(s, W)


def a_tape_in_a_loop(x):
    total = x * 0.0
    for v in x:
        with late() as tape:
            if v > 0.7:
                tape.watch(x)
            y = x * v
            for u in x:
                if u > v:
                    tape.watch(x)
                y = y * x
        total += tape.gradient(y, x, unconnected_gradients="zero")
    return total


def rows(x):
    m = TABLE
    with late() as tape:
        s = x[0] * 1.0
        if x[0] > 0.0:
            tape.watch(m)
        s += ag.reduce_sum(ag.gather(m, [0, 2]) ** 2)
    return ag.convert_to_tensor(tape.gradient(s, m))


def beside_something_watched_late(x):
    w, u = x[0] * 1.0, x[1] * 2.0
    with late() as tape:
        s = x[1] * 1.0
        for v in x:
            s = s * w * W + w * u
            c = w * v
            if v > 1.5:
                tape.watch([w, W])
            elif v > 0.7:
                tape.watch(u)
                c = c * 2.0
            s += c * u * w
        t = s * 1.0
        if x[0] > 0.0:
            tape.watch(SLOT)
            t = t * W2 * SLOT
        for v in x:
            if v > 0.7:
                tape.watch(W2)
            t = t * u * v
    return tape.gradient(t, [w, u, W, SLOT, W2], unconnected_gradients="zero")


def parameters_together(x):
    w, b = x[0] * 1.0, x[1] * 2.0
    with late() as tape:
        s = ag.constant(0.0, ag.float64)
        for v in x:
            if v > 0.7:
                tape.watch([w, b])
            s += w * v + b
    return tape.gradient(s, [w, b])


def outside_of_blocks(x):
    """What was read, or recorded for the sake of others, before a plain watch."""
    w = x[0] * 1.0
    with late() as tape:
        tape.watch(x)
        s = x[0] * W + x[1] * w
        for v in x:
            s = s * W
            if v > 7.0:
                tape.watch(W2)
        c = W2 * w * 3.0
        tape.watch([W, w])
        s = s + c * W + w * W
    return tape.gradient(s, [x, w, W])


def with_a_break(x):
    with late() as tape:
        s = x[0] * 1.0
        for v in x:
            if v > 0.7:
                tape.watch(W)
                if v > 1.5:
                    break
            s += W * v
    return tape.gradient(s, W)


def of_a_complex_tensor(x):
    z = ag.complex(x, x * 2.0)
    with late() as tape:
        s = z[0] * 1.0
        for v in x:
            if v > 0.7:
                tape.watch(z)
            s += z[0] * z[1] * ag.cast(v, ag.complex128)
    return tape.gradient(s, z)


def as_a_starting_value(x):
    w = x[2] * 1.0
    with late() as tape:
        if x[0] > 0.0:
            tape.watch(w)
        s = w
        for v in x:
            s = s * v
    return tape.gradient(s, w)


PROGRAMS = [
    watch_a_variable, watch_a_tensor, watch_what_is_recorded_for_others, never_reached, before_and_after,
    in_both_branches, at_the_end_of_a_trip, nested, twice, of_two_persistent_tapes, a_jacobian, after_a_reset,
    with_pauses, an_assigned_variable, watch_in_a_helper, a_tape_in_a_loop, rows, outside_of_blocks, with_a_break,
    beside_something_watched_late, parameters_together, of_a_complex_tensor, as_a_starting_value,
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_as_in_plain_python(program: Any, mode: str) -> None:
    assert_as_in_plain_python(program, mode, ag.constant(X))


def test_runs_that_do_not_come_there_give_zeros() -> None:
    """One graph serves all runs: it can't give None in some of them."""

    @ag.function
    def slope(x):
        with late() as tape:
            if x > 0.0:
                tape.watch(W)
            y = x * W
        return tape.gradient(y, W)

    assert [float(slope(ag.constant(v, ag.float64))) for v in (2.0, -2.0, 5.0)] == [2.0, 0.0, 5.0]


def test_rows_of_a_variable_stay_rows() -> None:
    @ag.function
    def slope(x):
        with late() as tape:
            if x > 0.0:
                tape.watch(TABLE)
            y = ag.reduce_sum(ag.gather(TABLE, [0, 2]))
        gradient = tape.gradient(y, TABLE)
        assert isinstance(gradient, ag.IndexedSlices)
        return ag.convert_to_tensor(gradient)

    np.testing.assert_array_equal(slope(ag.constant(1.0)), [[1, 1], [0, 0], [1, 1]])
    np.testing.assert_array_equal(slope(ag.constant(-1.0)), np.zeros((3, 2)))


def test_other_tapes_see_what_they_saw_before() -> None:
    @ag.function
    def value_and_slope(x, w):
        with late() as tape:
            s = x[0] * 1.0
            for v in x:
                if v > 0.7:
                    tape.watch(w)
                s = s * w * v
        return s, tape.gradient(s, w)

    x, w = ag.constant(X), ag.constant(3.0, ag.float64)
    with ag.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        value, slope = value_and_slope(x, w)
    # s = 0.25 w (w 1) (2 w), of which the last two count: the slope is 0.5 w (2 w), the first w kept.
    np.testing.assert_allclose(slope, 9.0)
    np.testing.assert_allclose(tape.gradient(value, w), 13.5)
    np.testing.assert_allclose(tape.gradient(slope, w), 6.0)


def test_watched_variables_has_what_a_block_watches() -> None:
    @ag.function
    def names(x):
        with late() as tape:
            if x > 0.0:
                tape.watch(W)
            y = x * W
        assert [v.ref() for v in tape.watched_variables()] == [W.ref()]
        return y

    assert float(names(ag.constant(2.0, ag.float64))) == 6.0


def what_the_loop_changes(x):
    with ag.GradientTape() as tape:
        y = x * 1.0
        for v in x:
            tape.watch(y)
            y = y * v
    return tape.gradient(y, x)


def what_the_branch_makes(x):
    with ag.GradientTape() as tape:
        y = x
        if x[0] > 0.0:
            y = x * 2.0
            tape.watch(y)
        z = y * y
    return tape.gradient(z, y)


def the_starting_value_of_a_carry(x):
    w = x[0] * 1.0
    with late() as tape:
        s = w
        for v in x:
            if v > 0.7:
                tape.watch(w)
            s = s * v
    return tape.gradient(s, w)


def what_a_branch_chooses(x):
    w = x[0] * 1.0
    with late() as tape:
        s = x[1] * 1.0
        for v in x:
            if v > 0.7:
                c = w
            else:
                c = v
            tape.watch(w)
            s = s * c
    return tape.gradient(s, w)


def what_may_be_known(x):
    with late() as tape:
        if x[0] > 1.0:
            tape.watch(W)
        y = x * W
        z = y * 1.0
        for v in x:
            if v > 0.7:
                tape.watch(y)
            z += y * v
        z += y * W
    return tape.gradient(z, [y, W], unconnected_gradients="zero")


def what_an_earlier_loop_has_used(x):
    with late() as tape:
        tape.watch(W)
        s = x[0] * 1.0
        for v in x:
            s = s * W * v
        if x[0] > 0.0:
            tape.watch(x)
        s = s * x[1]
    return tape.gradient(s, x)


def what_a_loop_has_used_and_is_watched_after_it(x):
    with late() as tape:
        tape.watch(W)
        s = x[0] * 1.0
        for v in x:
            s = s * W * v
        tape.watch(x)
        s = s * x[1]
    return tape.gradient(s, x)


def beside_an_item_of_a_list(x):
    w = x[0] * 1.0
    with late() as tape:
        tape.watch(x)
        items = []
        for v in x:
            items.append(v)
            items.append(ag.constant(2.0, ag.float64))
        s = x[1] * 1.0
        for v in x:
            s += items[1] * w
            if v > 0.7:
                tape.watch(w)
    return tape.gradient(s, w)


def in_a_list(x):
    w = x[0] * 1.0
    with late() as tape:
        items = []
        for v in x:
            items.append(w)
            if v > 0.7:
                tape.watch(w)
        s = items[0] * items[1]
    return tape.gradient(s, w)


def in_a_recursion(x):
    with late() as tape:

        def power(n):
            if n > 0:
                tape.watch(W)
                return W * power(n - 1)
            return ag.constant(1.0, ag.float64)

        y = power(ag.cast(x[2], ag.int32))
    return tape.gradient(y, W)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (
            what_the_loop_changes,
            r"watch\(\) of a tensor that the staged loop or branch changes or makes; watch it before",
        ),
        (
            what_the_branch_makes,
            r"watch\(\) of a tensor that the staged loop or branch changes or makes; watch it before",
        ),
        (the_starting_value_of_a_carry, r"may be the very tensor that is watched in it .*; watch it before"),
        (what_a_branch_chooses, r"may be the very tensor that is watched in it .*; watch it before"),
        (beside_an_item_of_a_list, r"with an item of a list, .* may know or not .*; watch it before"),
        (what_may_be_known, r"computed from what the tape watches in some runs only; watch it where"),
        (what_an_earlier_loop_has_used, r"an earlier staged loop or branch has used .*; watch it before that"),
        (what_a_loop_has_used_and_is_watched_after_it, r"an earlier staged loop or branch has used; watch it before"),
        (in_a_list, r"what is put into a list, .* is watched later on, .*; watch it before"),
        (in_a_recursion, r"watch\(\) in a function that calls itself .*; watch it before the call"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_what_a_graph_cannot_say_is_refused(program: Any, message: str) -> None:
    with pytest.raises(ag.errors.UnimplementedError, match=message) as caught:
        ag.function(program)(ag.constant(X))
    assert __file__ in str(caught.value)


def test_a_tape_from_outside_is_refused_in_a_function() -> None:
    x = ag.constant(X)
    with late() as tape:

        @ag.function
        def watching(t):
            tape.watch(W)
            return t * W

        with pytest.raises(ag.errors.UnimplementedError, match=r"opened outside of, .* watch it before the call"):
            watching(x)
        tape.watch(W)
        y = watching(x)
    np.testing.assert_allclose(tape.gradient(y, W), 3.5)
