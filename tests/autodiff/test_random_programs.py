"""Gradients of random programs, and of the programs in which they found mistakes.

`RANDOM_PROGRAMS=500 pytest tests/autodiff/test_random_programs.py` tries that many new ones; `python -m
tests.fuzz_gradients --minutes N` goes on for longer, compiled too.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import autograph as ag
from tests.autodiff.random_programs import check, forget, hessian_of, load, point_of, random_program, slope_of
from tests.full import FULL

COUNT = int(os.environ.get("RANDOM_PROGRAMS", "0"))
SETTINGS = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "derandomize": not COUNT,
    "database": None,
    "print_blob": False,
}


@settings(max_examples=COUNT or 12, **SETTINGS)
@given(st.data(), st.integers(0, 4), st.integers(0, 10**6))
def test_gradients_of_random_programs(data: Any, n: int, seed: int) -> None:
    text = random_program(lambda choices: data.draw(st.sampled_from(choices)))
    note(text)
    check(text, point_of(seed), n, second=seed % 2 == 0)
    forget()


@settings(max_examples=max(COUNT // 4, 6), **SETTINGS)
@given(st.data(), st.integers(0, 7), st.integers(0, 10**6), st.sampled_from([64, 256, 1024]))
def test_gradients_from_checkpoints_have_the_same_bits(data: Any, n: int, seed: int, memory: int) -> None:
    text = random_program(lambda choices: data.draw(st.sampled_from(choices)))
    note(text)
    assert_same_bits(text, seed, n, memory, compiled=False)


@pytest.mark.parametrize("compiled", [False, *([True] if FULL else [])])
def test_checkpoints_of_chosen_programs_have_the_same_bits(compiled: bool) -> None:
    for text in CHOSEN:
        assert_same_bits(text, 1, 6, 256, compiled)


def assert_same_bits(text: str, seed: int, n: int, memory: int, compiled: bool) -> None:
    """The gradient in bounded memory is that of the full tape, to the last bit."""
    program, x, count = load(text), ag.constant(point_of(seed)), ag.constant(n)
    whole = slope_of(ag.function(program, jit_compile=compiled))(x, count)
    ag.config.set_gradient_memory(memory)
    try:
        bounded = slope_of(ag.function(program, jit_compile=compiled))(x, count)
    finally:
        ag.config.set_gradient_memory(None)
    for one, other in zip(whole, bounded):
        np.testing.assert_array_equal(one, other)
    forget()


@pytest.mark.parametrize("compiled", [False, *([True] if FULL else [])])
def test_gradients_of_chosen_programs(compiled: bool) -> None:
    """What each statement of the generator does, at least once, without luck."""
    for text in CHOSEN:
        assert check(text, point_of(1), 3, compiled, second=True)
        check(text, point_of(1), 0, second=True)
    forget()


CHOSEN = [
    """\
import autograph as ag

def program(x, n):
    a, v, total = x[0], x * x[1], x[2]
    items = [a, a * a]
    for i in ag.range(n):
        for j in ag.range(i + 1):
            a = ag.sin(a * x[1])
            if a > 0.9:
                break
            v = ag.tensor_scatter_nd_update(v, [[j % 4]], [a * v[i % 4]])
        items.append(a * v[0])
        total *= a
    w = x[:2]
    k = 0
    while k < n and ag.reduce_sum(w) < 5.0:
        w = ag.concat([w * a, [total]], 0)
        k += 1
    if total > 2.0:
        return a
    return total + items.pop() * items[-1] + ag.reduce_sum(ag.stack(items)) + ag.reduce_sum(w * w) + ag.reduce_sum(v)
"""
]


def nested(x: Any, n: Any) -> Any:
    for _ in ag.range(n):
        for _ in ag.range(n):
            x = ag.sin(x)
    return x


def test_two_gradients_of_nested_loops() -> None:
    """The second one met the stacks that the first had added, and popped from an empty one."""

    def twice(x: Any, n: Any) -> Any:
        with ag.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = nested(x, n)
        return tape.gradient(y, x), tape.gradient(y, x), tape.jacobian(y, x)

    x, n = ag.constant([0.5, 0.7], ag.float64), ag.constant(2)
    for found, expected in zip(ag.function(twice)(x, n), twice(x, n)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_hessian_of_nested_loops() -> None:
    def program(x: Any, n: Any) -> Any:
        return ag.reduce_sum(nested(x, n) * nested(x * x, n))

    x, n = ag.constant([0.5, 0.7], ag.float64), ag.constant(3)
    np.testing.assert_allclose(ag.function(hessian_of(program))(x, n), hessian_of(program)(x, n), rtol=1e-12)


def blend(s: Any, t: Any) -> Any:
    if s > t:
        return 0.7 * s + 0.2 * s * t
    return 0.7 * t - ag.sin(s)


def sines(s: Any, t: Any, u: Any) -> Any:
    for _ in ag.range(3):
        s = s * ag.sin(t) + u * t
    return s


@pytest.mark.parametrize("function", [lambda x: blend(x[0], x[0]), lambda x: sines(x[0], x[0], x[0])])
@pytest.mark.parametrize("compiled", [False, True])
def test_common_subexpressions_that_a_branch_or_loop_captures(function: Any, compiled: bool) -> None:
    """They are one value, captured more than once: its cotangent was counted as often."""
    x = ag.constant([0.5, 0.7], ag.float64)

    def slope(f: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(slope(ag.function(function, jit_compile=compiled)), slope(function), rtol=1e-12)


def test_a_slice_that_a_loop_of_no_trips_replaces() -> None:
    """Its cotangent is a constant, which was asked for the slices that it is made of."""

    def program(x: Any, n: Any) -> Any:
        w = x[1:3]
        for _ in ag.range(0):
            w = x[1:3]
            for _ in ag.range(ag.maximum(n - 1, 0)):
                w = ag.concat([w, [x[0]]], 0)
        return ag.reduce_sum(x * x) + ag.reduce_sum(ag.cos(w))

    def slope(x: Any, n: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = program(x, n)
        return tape.gradient(y, x)

    x, n = ag.constant([1.0, 2.0, 3.0, 4.0], ag.float64), ag.constant(1)
    np.testing.assert_allclose(ag.function(slope)(x, n), slope(x, n), rtol=1e-12)
