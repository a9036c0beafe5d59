"""Gradients with respect to variables that control flow assigns: the sum over all reads, cut at assignments.

Each program runs eagerly (where Python's own control flow gives the answer), with the tape outside of the function, and
inside of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag


def not_taken(v: Any, x: Any) -> Any:
    if x > 100.0:
        v.assign(0.0)
    return v * v


def taken(v: Any, x: Any) -> Any:
    y = v * x
    if x > 0.0:
        v.assign(v * 2.0)
        y += v
    else:
        v.assign(0.0)
    return y + v**3


def in_a_loop(v: Any, x: Any) -> Any:
    for _ in ag.range(3):
        v.assign_add(1.0)
    return v * v


def read_and_assigned_in_a_loop(v: Any, x: Any) -> Any:
    s = x * 0.0
    i = 0
    while i < 3:
        s += v * x
        v.assign(v * x)
        i += 1
    return s + v * 5.0


def nested(v: Any, x: Any) -> Any:
    s = x * 0.0
    for i in ag.range(3):
        if i > 0:
            v.assign(v + x)
            s += v
        s += v * v
    return s * v


@ag.function
def helper(v: Any, x: Any) -> Any:
    y = v * x
    v.assign(y)
    for _ in ag.range(2):
        v.assign_add(x * v)
    return y + v


def through_a_function(v: Any, x: Any) -> Any:
    a = helper(v, x)
    v.assign_add(1.0)
    return a * v + helper(v, x)


PROGRAMS = [not_taken, taken, in_a_loop, read_and_assigned_in_a_loop, nested, through_a_function]


def gradients(run: Any, program: Any) -> list[float]:
    v, x = ag.Variable(2.0, dtype=ag.float64), ag.constant(1.5, ag.float64)
    return [float(g) for g in (*run(program, v, x), v)]


def tape_around(f: Any, v: Any, x: Any) -> Any:
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(v, x)
    return tape.gradient(y, [v, x], unconnected_gradients="zero")


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_reads_are_counted_once(program: Any, jit_compile: bool) -> None:
    ag.config.run_functions_eagerly(True)
    try:
        expected = gradients(tape_around, program)
    finally:
        ag.config.run_functions_eagerly(False)
    staged = ag.function(program, jit_compile=jit_compile)
    outside = gradients(lambda f, v, x: tape_around(staged, v, x), program)
    whole = ag.function(lambda v, x: tape_around(program, v, x), jit_compile=jit_compile)
    inside = gradients(lambda f, v, x: whole(v, x), program)
    np.testing.assert_allclose(inside, expected, rtol=1e-12, err_msg="tape inside")
    np.testing.assert_allclose(outside, expected, rtol=1e-12, err_msg="tape outside")


def test_a_variable_that_is_handed_through_has_gradient_one_for_itself():
    v, w = ag.Variable([1.0, 2.0]), ag.Variable(3.0)
    with ag.GradientTape(persistent=True) as tape:
        result = v if w > 0 else v * w
    assert tape.gradient(result, v).numpy().tolist() == [1, 1]
    assert tape.gradient(result, w) is None

    @ag.function
    def inside():
        with ag.GradientTape() as inner:
            same = v
        return inner.gradient(same, v)

    assert inside().numpy().tolist() == [1, 1]
