"""Built-in functions, ``math`` and logic on symbolic tensors give what Python gives on numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingTypeError
from tests.operators.harness import Staged, Table, check_same_as_python

i32 = np.int32
f32 = np.float32
TABLE = Table()
case = TABLE.case


def vector(*items, dtype=f32):
    return np.array(items, dtype)


def rows(items):
    return np.array(items) if ag.executing_eagerly() else ag.stack(items)


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


@case((f32(1.5), f32(-0.0), i32(3)), (f32(-2), f32(0), i32(-2)))
def signs_and_scales(x, zero, n):
    return math.copysign(x, zero), math.copysign(1.0, zero), math.ldexp(x, int(n)), math.ldexp(1.5, int(n))


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


@case((i32(4), np.array([3, 1, 2], i32)))
def many_items(n, xs):
    return (
        sum(range(n), 100), rows(list(reversed(range(n)))),
        rows([a * b for a, b in list(enumerate(range(n), start=5))]),
        rows(list(map(abs, xs - 2))), max(xs, key=lambda x: -x), min(xs, key=lambda x: abs(x - 2)), max(xs, default=9),
        max([n, 3, n + 1]), max([x for x in xs if x > 7], default=-1), max([n, 2], key=lambda x: -x),
        any([n > 3, False]), all([n > 3, True, n > 9]), len(range(n)), rows([a * b for a, b in list(zip(xs, xs[1:]))]),
        rows(list(filter(None, xs - 1))),
    )  # fmt: skip


@case((i32(4),), (i32(7),))
def powers_with_a_modulus(n):
    n = int(n)
    return pow(n, 30, 1000), pow(3, n, 7), pow(-n, 3, 5), pow(n, 3, -5), round(n * 25, -1), round(n, 2)


@case((i32(4),), (i32(7),))
def powers_whose_products_need_128_bits(n):
    n = int(n)
    large = pow(n + 10**12, 5, 10**15 + 37), pow(-n, 2**40 + n, 2**62 + 1), pow(n, 10**9, -(10**17) - n)
    return (*large, pow(n, -1, 1009), pow(n, -3, 10**12 + 39), pow(n, -1, 1))


@case((np.array([2, -1, 2, 5, -7, 1], i32), i32(2)))
def order(xs, n):
    return rows(sorted(xs, key=lambda x: x * x % 4)), rows(sorted([n, 1, n * 2], reverse=True))


@case((vector(3, -1, 2),), (vector(-1, 5, 2),))
def by_keys_that_are_tensors(xs):
    table = {"a": xs[0], "b": xs[1]}
    places = sorted({0, 1, 2}, key=lambda i: xs[i])
    last = sorted(range(3), key=lambda i: -i)
    return min(range(3), key=lambda i: xs[i]), max(table.values()), places, last, sorted(table, key=len) == ["a", "b"]


@case((f32(3), f32(1), f32(2)), (f32(1), f32(1), f32(0)))
def ordering_of_pairs(a, b, c):
    pairs = [(a, b), (b, c), (c, a), (b, a)]
    by_second = sorted(pairs, key=lambda pair: pair[1], reverse=True)
    found = [(a, 1.0), (c, 2.0)]
    found.sort()
    alone = [a, b, c]
    alone.sort(key=lambda x: -x)
    return sorted(pairs), by_second, found, alone, min(pairs), max((b, 1.0), (b, 2.0), (c, 3.0))


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


_ARGUMENTS = [(2.5,), (-0.3,), (12,), (2.5, -0.7), (12, 3), (-3.5, 2.0), (1.0, 2.0, 3.0), ([2.5, 0.7],), ([1.0], [2.0])]
_NOT_STAGED = {"comb", "factorial", "frexp", "gcd", "lcm", "nextafter", "perm", "sumprod", "ulp"}


@pytest.mark.parametrize(
    "name", [name for name in vars(math) if name[0] != "_" and callable(getattr(math, name)) and name != "nextafter"]
)
def test_every_function_of_math(name):
    function = getattr(math, name)
    staged = ag.function(lambda *arguments: function(*arguments))
    done = 0
    for arguments in _ARGUMENTS:
        try:
            expected = function(*arguments)
        except (TypeError, ValueError, OverflowError):
            continue
        tensors = [ag.constant(each) for each in arguments]
        if name in _NOT_STAGED:
            with pytest.raises(StagingTypeError, match=f"math.{name}"):
                staged(*tensors)
            continue
        for a, b in zip(ag.nest.flatten(staged(*tensors)), ag.nest.flatten(expected), strict=True):
            np.testing.assert_allclose(float(a), b, rtol=1e-4, atol=1e-6)
        done += 1
    assert done or name in _NOT_STAGED | {"sumprod", "fma"}


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda n: list(range(0, 10, n)), "arg 3 must not be zero"),
        (lambda n: list(zip(range(n), range(n + 1), strict=True)), "argument 2 is longer than argument 1"),
        (lambda n: list(zip(range(n + 1), range(n), strict=True)), "argument 2 is shorter than argument 1"),
        (lambda n: max([x for x in range(n)]), "empty"),
        (lambda n: pow(n, 2, n), "cannot be 0"),
        (lambda n: pow(int(n) + 2, -1, 4), "not invertible"),
    ],
)
def test_fails_when_the_program_runs(function, message):
    with pytest.raises(ValueError, match=message):
        ag.function(function)(ag.constant(0))
    assert len(np.shape(ag.function(lambda n: list(range(0, 3, n)))(ag.constant(2)))) == 1


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_power_of_tensors_with_a_large_modulus(jit_compile):
    power = ag.function(pow, jit_compile=jit_compile)
    given = 123456789012345, 2**60 + 5, 2**61 - 1
    assert int(power(*[ag.constant(each, ag.int64) for each in given])) == pow(*given)
    several = ag.constant([2, 3], ag.int64)
    assert power(several, several, several + 5).numpy().tolist() == [4, 3]
    with pytest.raises(ag.errors.InvalidArgumentError, match="needs a modulus below"):
        power(several, several, several + 2**40)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("divide", [lambda n: 7 // n, lambda n: 7 % n, lambda n: divmod(7, n)])
def test_an_integer_division_by_zero_is_pythons_error_too(divide, jit_compile):
    @ag.function(jit_compile=jit_compile)
    def run(t):
        n = 0
        for _ in t:
            n += 1
        return divide(n - 3)

    for error in (ZeroDivisionError, ag.errors.InvalidArgumentError):
        with pytest.raises(error, match="Integer division by zero"):
            run(ag.constant([1.0, 2.0, 3.0]))


def test_the_length_of_a_tuple_must_be_known():
    with pytest.raises(StagingTypeError, match="tuple"):
        ag.function(lambda n: tuple(range(n)))(ag.constant(3))
