"""Special methods and setters of the user's classes: converted where converted code applies operators."""

from __future__ import annotations

from types import FunctionType

import pytest

import autograph as ag


class Number:
    """Signs are looked at in every method, so that each has to be staged."""

    def __init__(self, x):
        self.x = x

    def __add__(self, other):
        if not isinstance(other, Number):
            return NotImplemented
        if self.x > 0:
            return Number(self.x + other.x)
        return Number(self.x - other.x)

    def __radd__(self, other):
        if self.x > 0:
            return Number(other + self.x * 10)
        return Number(other - self.x)

    def __imul__(self, other):
        if self.x > 0:
            self.x = self.x * other
        return self

    def __neg__(self):
        if self.x > 0:
            return Number(-self.x)
        return Number(self.x * 3)

    def __lt__(self, other):
        if self.x > 0:
            return self.x < other.x
        return self.x < -other.x

    def __eq__(self, other):
        if self.x > 0:
            return self.x == other.x
        return self.x == -other.x

    __hash__ = None

    def __getitem__(self, k):
        if self.x > 0:
            return self.x * k
        return self.x + k

    def __setitem__(self, k, value):
        if value > 0:
            self.x = value * k

    def __enter__(self):
        if self.x > 0:
            self.x = self.x + 100
        return self

    def __exit__(self, *error):
        if self.x > 0:
            self.x = self.x - 50

    @property
    def size(self):
        return self.x

    @size.setter
    def size(self, value):
        if value > 0:
            self.x = value
        else:
            self.x = value * -2


class Special(Number):
    def __radd__(self, other):
        if other.x > 1:
            return Number(other.x * 1000)
        return Number(other.x * 2000)


def arithmetic(x):
    a, b = Number(x), Number(x + 2)
    c = a + b
    d = 2 + a
    e = a + Special(x)
    c *= 3
    return c.x, d.x, (-a).x, e.x


def comparisons(x):
    a, b = Number(x), Number(x + 2)
    return a < b, a > b, a == b, a != b, a == Number(x), 1 if a < b else 2


def items(x):
    a = Number(x)
    total = a[2]
    a[3] = x + 1
    return total, a[1]


def setters(x):
    a = Number(x)
    a.size = x - 1
    if x > 0:
        a.size = a.size + 5
    return a.size


def managers(x):
    with Number(x) as a:
        inside = a.x
    return inside, a.x


def of_a_local_class(x):
    class Pair:
        def __init__(self, x):
            self.x = x

        def __sub__(self, other):
            return Pair(self.x - other) if self.x > 1 else Pair(self.x)

        def twice(self):
            return self - 1 - 1

    return Pair(x).twice().x


def in_a_loop(x):
    a = Number(x)
    for k in ag.range(3):
        a = a + Number(k)
        if a[1] > 5:
            a[2] = k
    return a.x


@pytest.mark.parametrize(
    "program",
    [arithmetic, comparisons, items, setters, managers, of_a_local_class, in_a_loop],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("x", [-4, 0, 1, 3])
def test_as_in_python(program, x):
    x = ag.constant(x)
    expected = [int(each) for each in ag.nest.flatten(program(x))]
    assert [int(each) for each in ag.nest.flatten(ag.function(program, jit_compile=False)(x))] == expected


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Number(1) + "x",
        lambda: "x" * Number(1),
        lambda: Number(1) <= Number(2),
        lambda: [1] - Number(1),
        lambda: Number(1) @ 2,
    ],
)
def test_operands_that_no_method_knows_raise_what_python_raises(wrong):
    with pytest.raises(TypeError) as expected:
        wrong()
    with pytest.raises(TypeError) as found:
        ag.function(lambda x: wrong())(ag.constant(1))
    assert str(found.value) == str(expected.value)


def test_only_what_a_class_in_sight_has_is_rewritten():
    class Scaled:
        def __mul__(self, other):
            return other

    def f(x, y):
        Scaled()
        return x * y + -x[0]

    f = FunctionType(f.__code__, {"__name__": "programs"}, "f", None, f.__closure__)
    assert "return ag__.operate(x, '*', y) + -x[0]" in ag.autograph.to_code(f)
