"""What changes of a staged list at its front cost: one pass over the elements behind, as in Python, and no work of the
interpreter for each. Counted in lines that kernels run and in calls of functions, never timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.engine.function import to_run
from runtime.types import StackType
from tests.autodiff.work import lines_run, value_and_gradients
from tests.growth import growth

Program = Callable[[Any, Any], Any]


def filled(n: Any, x: Any) -> list[Any]:
    q = [x]
    for i in ag.range(n):
        q.append(x * ag.cast(i, x.dtype))
    return q


def inserts(n: Any, x: Any) -> Any:
    q = [x]
    for i in ag.range(n):
        q.insert(0, x * ag.cast(i, x.dtype))
    return q[0] + q[-1]


def inserts_in_the_middle(n: Any, x: Any) -> Any:
    q = [x]
    for i in ag.range(n):
        q.insert(len(q) // 2, x * ag.cast(i, x.dtype))
    return q[0] + q[-1]


def lists_before(n: Any, x: Any) -> Any:
    q = [x]
    for i in ag.range(n):
        q = [x * ag.cast(i, x.dtype)] + q  # noqa: RUF005 - this form is what is tested
    return q[0] + q[-1]


def deletes(n: Any, x: Any) -> Any:
    q = filled(n, x)
    for _ in ag.range(n):
        x += q[0]
        del q[0]
    return x


def pops(n: Any, x: Any) -> Any:
    q = filled(n, x)
    for _ in ag.range(n):
        x += q.pop(0)
    return x


def pops_in_the_middle(n: Any, x: Any) -> Any:
    q = filled(n, x)
    for _ in ag.range(n):
        x += q.pop(len(q) // 2)
    return x


def inserts_in_a_branch(n: Any, x: Any) -> Any:
    q = [x]
    for i in ag.range(n):
        q.insert(0, x * ag.cast(i, x.dtype))
        if x * q[0] > 1.0:
            q.insert(0, x)
        else:
            del q[0]
            q.insert(len(q) // 2, x * x)
    return q[0] * q[-1]


def inserts_in_branches(n: Any, x: Any) -> Any:
    q = [x]
    for i in ag.range(n):
        q.insert(0, x * ag.cast(i, x.dtype))
        if x * q[0] > 1.0:
            q.insert(0, x)
            if x > 0.0:
                q.pop(len(q) // 2)
        elif x > 0.1:
            del q[0]
            q.insert(len(q) // 2, x * x)
    return q[0] * q[-1]


PROGRAMS = [inserts, inserts_in_the_middle, lists_before, deletes, pops, pops_in_the_middle]


def queue(n: Any, x: Any) -> Any:
    """Of bounded length: a trip's cost doesn't grow."""
    q = [x, x]
    for _ in ag.range(n):
        first = q.pop(0)
        q.append(first * 0.5)
        x += first
    return x


def lines(program: Program, n: int) -> int:
    specs = ag.TensorSpec([], ag.int32), ag.TensorSpec([], ag.float64)
    concrete = ag.function(program).get_concrete_function(*specs)
    return lines_run(to_run(concrete.graph), np.int32(n), np.float64(0.5))


def calls(function: Callable[[], Any]) -> int:
    """How many functions a call calls, of Python and of C, as NumPy's are."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("program", PROGRAMS)
def test_compiled(program: Program) -> None:
    small, large = lines(program, 100), lines(program, 300)
    # On the average a trip has n / 2 elements to move, each of which is three lines of a loop, and some lines besides.
    assert large - small <= 4.5 * (300**2 - 100**2) / 2 + 60 * (300 - 100)


def test_compiled_queue() -> None:
    assert growth([lines(queue, n) for n in (50, 100, 200)]) < 2.1


@pytest.mark.parametrize("program", [*PROGRAMS, queue])
def test_interpreted(program: Program) -> None:
    """A trip is a number of NumPy's operations that doesn't depend on the length."""
    staged = ag.function(program, jit_compile=False)
    x = ag.constant(0.5, ag.float64)
    _, *counts = [calls(lambda n=n: staged(ag.constant(n), x)) for n in (50, 50, 100, 200)]  # type: ignore[misc]
    assert counts[0] > 50 and growth(counts) < 2.6


@pytest.mark.parametrize("program", [*PROGRAMS, inserts_in_a_branch])
def test_gradients_save_numbers(program: Program) -> None:
    """A trip saves where it inserted and how long the list was, not the list: memory that grows with the length."""
    specs = ag.TensorSpec([], ag.int32), ag.TensorSpec([], ag.float64)
    concrete = ag.function(program).get_concrete_function(*specs)
    forward = concrete.function.gradient((1,)).forward.graph
    saved = [v.type.element for node in forward.walk() for v in node.outputs if isinstance(v.type, StackType)]
    assert saved and all(element.rank == 0 for element in saved)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("program", [inserts_in_a_branch, inserts_in_branches])
def test_gradients_of_inserts_in_branches(program: Program, jit_compile: bool) -> None:
    staged = ag.function(program, jit_compile=jit_compile)
    for number in (0.05, 0.3, 0.9):
        x = ag.constant(number, ag.float64)
        found = []
        for function in (staged, program):
            with ag.GradientTape() as outer:
                outer.watch(x)
                with ag.GradientTape() as inner:
                    inner.watch(x)
                    y = function(ag.constant(9), x)
                slope = inner.gradient(y, x)
            found.append([each.numpy() for each in (y, slope, outer.gradient(slope, x))])
        assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize("program", [*PROGRAMS, queue, inserts_in_a_branch, inserts_in_branches])
def test_gradients(program: Program) -> None:
    x = ag.constant(0.5, ag.float64)
    ratios = []
    for n in (40, 160):
        value, gradient = value_and_gradients(lambda x, n=n: program(ag.constant(n), x), x)  # type: ignore[misc]
        ratios.append(gradient / value)
    assert max(ratios) < 4.0 and ratios[1] <= ratios[0] * 1.1
