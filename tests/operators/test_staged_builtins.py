"""Built-in functions, ``math`` and logic on symbolic tensors give what Python gives on numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import autograph as ag
from tests.operators.harness import Staged, Table, check_same_as_python

i32 = np.int32
f32 = np.float32
TABLE = Table()
case = TABLE.case


def vector(*items, dtype=f32):
    return np.array(items, dtype)


@case((f32(0.5), f32(1.5)))
def math_functions(x, y):
    return (
        math.sin(x) + math.exp(y) * math.sqrt(x),
        math.atan2(x, y),
        math.hypot(x, y),
        math.log(y),
        math.log(y, 2),
        math.pow(x, 2),
        math.degrees(math.pi * x),
        math.copysign(x, -y),
        math.floor(y),
        math.ceil(y),
        math.trunc(float(-y)),
        math.isnan(x),
        math.isfinite(y),
        math.cos(0.5),
    )


@case((i32(7), i32(3)), (i32(-7), i32(3)))
def integer_functions(a, b):
    return divmod(a, b), pow(a, 2), pow(int(a), 2, int(b)), abs(a), math.sqrt(b), int(a), float(a), bool(a)


@case((vector(3, 1, 2),))
def ordering(xs):
    return sorted(xs), sorted(xs, reverse=True), max(xs), min(xs[0], xs[1], 2.5), sum(xs, 1.0)


@case((i32(5), i32(0)), (i32(0), i32(4)), (i32(0), i32(0)))
def numbers_in_logic(a, b):
    return a and b, a or b, a or b or 7, not a, a and b > 1


@case((f32(4.5),), (f32(0),))
def counter_beside_a_float(t):
    i = k = 0
    while i < t:
        i += 1
        k += 2
    return i, k


@case((np.float64(4.5),))
def counter_beside_a_double(t):
    i = 0
    while i * i < t:
        i += 1
    return i


@case((vector(1, 2, 3, 4),))
def mapped(xs):
    total = 0.0
    for y in map(lambda x: x * x if x > 2 else x, xs):
        total += y
    for i, y in enumerate(map(lambda a, b: a * b, xs, xs)):
        total += y
    return total


@case((vector(1, 2, 3, 4),), (vector(1),))
def filtered(xs):
    total = 0.0
    for y in filter(lambda x: x > 2, xs):
        total += y
    return total


@case((f32(1.25),))
def rounding(x):
    return round(x), round(x, 1)


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_same_as_python(function, arguments, dynamic):
    check_same_as_python(function, arguments, dynamic)


@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_compiled(function, arguments):
    found = ag.function(function, jit_compile=True)(*[ag.constant(a) for a in arguments])
    for a, b in zip(ag.nest.flatten(found), ag.nest.flatten(Staged(function, arguments).run())):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5)


def test_math_on_python_numbers_is_pythons():
    @ag.function
    def f(x):
        assert math.sqrt(4) == 2.0
        assert type(math.floor(2.5)) is int
        return x * math.sin(0.5)

    assert float(f(ag.constant(1.0))) == pytest.approx(math.sin(0.5))
