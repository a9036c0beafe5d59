"""Nested loops whose tests are Python flags at first, staged from their start or peeled: as in Python."""

from __future__ import annotations

import pytest

import autograph as ag
from autograph.errors import StagingError


def flags(x):
    outer = True
    while outer:
        inner = True
        while inner:
            x = x * 0.9 - 0.05
            inner = x > 2.0
        x -= 0.3
        outer = x > 0.5
    return x


def breaks(x):
    count = 0
    while True:
        x = x * 0.8
        while True:
            x -= 0.11
            count += 1
            if x < 1.0:
                break
            if x < 3.0:
                x *= 0.5
        if x < 0.2:
            break
    return x, count


def breaks_in_three_levels(x):
    total = x
    while True:
        while True:
            while True:
                x -= 0.35
                if x < 3.0:
                    break
                total += x
            x -= 0.45
            if x < 2.0:
                break
            total *= 0.9
        x -= 0.55
        if x < 1.0:
            break
    return x, total


def first_is_special(x):
    """What only Python values decide in the first trip."""
    first, found = True, None
    going = True
    while going:
        inner = True
        while inner:
            if first:
                found, first = {"scale": x * 2.0}, False
            x -= found["scale"] * 0.1
            inner = x > 2.0
        x -= 0.5
        going = x > 0.0
    return x, found["scale"]


def a_list_grows(x):
    found = []
    while True:
        while True:
            x -= 0.4
            found.append(x)
            if x < 2.0:
                break
        if x < 1.0:
            break
    return len(found), sum(found), found[-1]


def objects_change(x):
    class Box:
        pass

    box = Box()
    box.sum, box.parts = 0.0, {"a": x}
    going = True
    while going:
        again = True
        while again:
            box.sum += x
            box.parts["a"] = box.parts["a"] * 0.5
            x -= 0.7
            again = x > 2.0
        x -= 0.2
        going = x > 0.0
    return x, box.sum, box.parts["a"]


def an_iterator_is_used(x):
    items = iter([0.1, 0.2, 0.3, 0.4])
    step = next(items)
    going = True
    while going:
        again = True
        while again:
            x -= step
            again = x > 2.0
        x -= 1.0
        going = x > 0.0
    return x, next(items)


def python_decides_the_outer(x):
    going, trips = True, 0
    while going:
        again = True
        while again:
            x -= 0.3
            again = x > 2.0
        trips += 1
        going = trips < 3
    return x, trips


def in_a_function(x):
    def reduced(v, limit):
        while True:
            v -= 0.3
            if v < limit:
                return v

    while True:
        x = reduced(x, 3.0)
        x = reduced(x, 2.0) + 0.1
        if x < 2.0:
            break
    return x


def a_variable_is_set_within(x):
    while True:
        while True:
            x -= 0.4
            last = x * 2.0
            if x < 2.0:
                break
        end = last + x
        if x < 1.0:
            break
    return end, last


PROGRAMS = [
    flags, breaks, breaks_in_three_levels, first_is_special, a_list_grows, objects_change, an_iterator_is_used,
    python_decides_the_outer, in_a_function, a_variable_is_set_within,
]  # fmt: skip


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_like_python(program, jit):
    staged = ag.function(program, jit_compile=jit)
    for value in (5.0, 2.4, 0.1, -1.0):
        x = ag.constant(value)
        with ag.GradientTape(persistent=True) as tape:
            tape.watch(x)
            found, wanted = ag.nest.flatten(staged(x)), ag.nest.flatten(program(x))
        assert [float(each) for each in found] == pytest.approx([float(each) for each in wanted], rel=1e-5)
        for one, other in zip(found, wanted):
            if ag.is_tensor(other) and other.dtype.is_floating:
                slopes = [tape.gradient(each, x, unconnected_gradients="zero").numpy() for each in (one, other)]
                assert slopes[0] == pytest.approx(slopes[1], rel=1e-4)


@pytest.mark.parametrize("jit", [False, True])
def test_an_iterator_in_the_loop_is_used_once_for_each_trip(jit):
    """Its items can't be taken back: the loop stays as it is after its first trip, and that is refused."""
    taken = []

    def items():
        for each in (0.1, 0.2, 0.3):
            taken.append(each)
            yield each

    @ag.function(jit_compile=jit)
    def f(x):
        steps = items()
        while True:
            step = next(steps)
            while True:
                x -= step
                if x < 2.0:
                    break
            if x < 1.0:
                break
        return x

    with pytest.raises(StagingError, match="iterator"):
        f(ag.constant(5.0))
    assert taken == [0.1]


def test_with_a_tape_within():
    @ag.function
    def slope(x):
        with ag.GradientTape() as tape:
            tape.watch(x)
            y, _ = breaks(x)
        return tape.gradient(y, x)

    x = ag.constant(5.0)
    with ag.GradientTape() as tape:
        tape.watch(x)
        y, _ = breaks(x)
    assert float(slope(x)) == pytest.approx(float(tape.gradient(y, x)))
