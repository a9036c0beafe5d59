"""Loops whose condition changes state: it is evaluated as often as in Python."""

from __future__ import annotations

import pytest

import autograph as ag
from autograph.errors import StagingError

GIVEN = [3.0, 0.0, 2.0, 5.0, 1.0]


class Reader:
    def __init__(self, n):
        self.i, self.n, self.seen = 0, n, []

    def advance(self):
        self.i += 1
        return self.i < self.n

    def take(self):
        self.seen.append(self.i * 1.0)
        return len(self.seen) < self.n


def method(t):
    reader, total = Reader(t[0] * 2.0), 0.0
    while reader.advance():
        total += reader.i
    return total, reader.i


def list_that_grows(t):
    reader, total = Reader(t[0] * 2.0), 0.0
    while reader.take():
        total += 1.0
        if total > 3.0:
            break
    return total, len(reader.seen)


def nonlocal_number(t):
    n = 0.0

    def check(i):
        nonlocal n
        n += t[1] + 1.0
        return i < 5

    i = ag.constant(0)
    while check(i):
        i += 1
    return n, i


def list_that_shrinks(t):
    stack, total = [v for v in t], 0.0
    while stack.pop() < 4.0:
        total += 1.0
    return total, len(stack)


def in_a_loop(t):
    reader, total = Reader(t[0] * 2.0), 0.0
    for v in t:
        reader.i = 0
        while reader.advance():
            total += v
    return total, reader.i


def with_more_conditions(t):
    reader, total = Reader(t[0]), 0.0
    while reader.advance() and total < 100.0:
        total += reader.i * t[3]
        if total > 90.0:
            continue
    else:
        total += 1000.0
    return total, reader.i


def that_never_runs(t):
    reader = Reader(t[1])
    while reader.advance():
        reader.i += 100
    return reader.i


def of_while_loop(t):
    n = 0.0

    def check(i):
        nonlocal n
        n += 1.0
        return i < 5

    (i,) = ag.while_loop(check, lambda i: [i + 1], [ag.constant(0)])
    return n, i


PROGRAMS = [
    method, list_that_grows, nonlocal_number, list_that_shrinks, in_a_loop, with_more_conditions, that_never_runs,
    of_while_loop,
]  # fmt: skip


def with_slope(function):
    t = ag.constant(GIVEN)
    with ag.GradientTape() as tape:
        tape.watch(t)
        found = [ag.cast(each, ag.float32) for each in ag.nest.flatten(function(t))]
        total = ag.add_n(found)
    slope = tape.gradient(total, t, unconnected_gradients="zero")
    return [float(each) for each in found], slope.numpy().tolist()


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_as_in_python(program, jit_compile):
    assert with_slope(ag.function(program, jit_compile=jit_compile)) == with_slope(program)


def test_with_a_limit_it_is_refused():
    @ag.function
    def run(t):
        reader = Reader(t[3])
        return ag.while_loop(lambda x: reader.advance(), lambda x: [x * 2.0], [t[0]], maximum_iterations=3)

    with pytest.raises(StagingError, match="the condition of a loop on tensors changes state") as caught:
        run(ag.constant(GIVEN))
    assert "test_changing_conditions.py" in str(caught.value)
