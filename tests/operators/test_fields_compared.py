"""Comparisons that `dataclass` generates, of instances with tensors in their fields: the outcomes are Python's."""

import dataclasses
import operator
import re
import typing

import pytest

import autograph as ag


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


@dataclasses.dataclass(order=True, frozen=True)
class Score:
    value: float
    tie: int = 0


@dataclasses.dataclass(order=True, slots=True)
class Slim:
    value: float


@dataclasses.dataclass
class Line:
    a: Point
    b: Point


class NT(typing.NamedTuple):
    a: float
    b: float


@dataclasses.dataclass(order=True)
class Item:
    priority: float
    name: str = dataclasses.field(compare=False, default="")


def equal(t):
    p, n = Point(0.0), 0
    for v in t:
        if p == Point(3.0):
            n += 1
        p = Point(v)
    return n


def unequal(t):
    p, n = Point(0.0), 0
    for v in t:
        if p != Point(3.0):
            n += 1
        p = Point(v)
    return n


def ordered(t):
    best, n = Score(0.0), 0
    for v in t:
        if best < Score(v):
            best = Score(v)
            n += 1
    return n, best.value


def at_least(t):
    best, n = Slim(0.0), 0
    for v in t:
        if best <= Slim(v):
            n += 1
        best = Slim(v)
    return n


def in_turn(t):
    best, n = Score(0.0, 0), 0
    for i, v in enumerate(t):
        if Score(v, i) > best:
            best = Score(v, i)
    return best.value, best.tie


def nested(t):
    n = 0
    l = Line(Point(0.0), Point(1.0))
    for v in t:
        if l == Line(Point(3.0), Point(3.0)):
            n += 1
        l = Line(Point(v), Point(v, 0.0))
    return n


def in_a_list(t):
    n = 0
    for v in t:
        if Point(v) in [Point(3.0), Point(1.0)]:
            n += 1
    return n


def not_in_a_tuple(t):
    n = 0
    for v in t:
        if Point(v) not in (Point(3.0), Point(1.0)):
            n += 1
    return n


def largest(t):
    best = Score(0.0)
    for v in t:
        best = max(best, Score(v))
    return best.value


def named_tuples_equal(t):
    p, n = NT(0.0, 1.0), 0
    for v in t:
        if p == NT(3.0, 3.0):
            n += 1
        p = NT(v, v)
    return n


def named_tuples_in_order(t):
    p, n = NT(0.0, 1.0), 0
    for v in t:
        if p < NT(v, 3.0):
            n += 1
        p = NT(v, v)
    return n


def tuples(t):
    p, n = (0.0, 1.0), 0
    for v in t:
        q = (v, 3.0)
        if p < q:
            n += 1
        p = q
    return n


def same(a, b):
    return a == b


def in_a_helper(t):
    n = 0
    for v in t:
        if same(Point(v), Point(3.0)):
            n += 1
    return n


def assigned(t):
    n = 0
    for v in t:
        same = Point(v) == Point(3.0)
        n += 1 if same else 0
    return n


def chained(t):
    n = 0
    for v in t:
        if Score(0.5) < Score(v) < Score(4.0):
            n += 1
    return n


def compare_false(t):
    n = 0
    for v in t:
        if Item(v, "a") < Item(3.0, "b"):
            n += 1
    return n


def of_a_local_class(t):
    @dataclasses.dataclass(eq=True, order=True)
    class L:
        v: float

    n = 0
    for v in t:
        if L(v) >= L(3.0):
            n += 1
    return n


PROGRAMS = [
    equal,
    unequal,
    ordered,
    at_least,
    in_turn,
    nested,
    in_a_list,
    not_in_a_tuple,
    largest,
    named_tuples_equal,
    named_tuples_in_order,
    tuples,
    in_a_helper,
    assigned,
    chained,
    compare_false,
    of_a_local_class,
]
VALUES = ag.constant([3.0, 0.0, 3.0, 5.0, 1.0])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_outcomes(program):
    right = [float(v) for v in ag.nest.flatten(program(VALUES))]
    for jit in (None, True):
        found = ag.function(program, jit_compile=jit)(VALUES)
        assert [float(v) for v in ag.nest.flatten(found)] == right


def test_the_place_of_a_comparison_that_python_makes_itself():
    def in_order(t):
        return operator.lt(Score(t[0]), Score(t[1]))

    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match=re.escape("in in_order\n")) as caught:
        ag.function(in_order)(VALUES)
    assert "<string>" not in str(caught.value)
