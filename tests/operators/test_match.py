"""``match`` on tensors gives what the same ``match`` gives on numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import autograph as ag
from autograph.convert.api import converted
from tests.operators.harness import Table, check_same_as_python

i32 = np.int32
TABLE = Table()
case = TABLE.case
PAIRS = [(i32(a), i32(b)) for a, b in ((0, 0), (0, 3), (4, 0), (4, 1), (4, 2), (1, 7))]


class Limit:
    high = 5
    low = 1


@dataclasses.dataclass
class Point:
    x: object
    y: object


@case((i32(0),), (i32(1),), (i32(2),), (i32(3),), (i32(7),))
def values(x):
    match x:
        case 0:
            return 10
        case 1 | 2:
            return 20
        case n if n > 5:
            return n
        case _:
            return -1


@case((i32(1),), (i32(5),), (i32(9),))
def named_values(x):
    match x + 0:
        case Limit.low:
            y = -1
        case Limit.high | 9 as k:
            y = k * 2
    return y


@case(*PAIRS)
def sequences(x, y):
    match (x, y):
        case (0, 0):
            r = 0
        case (0, b):
            r = b * 10
        case (a, 0 | 1) as pair:
            r = a * 100 + pair[1]
        case [a, *rest] if a > rest[0]:
            r = a
        case _:
            r = -1
    return r


@case(*PAIRS)
def classes(x, y):
    match Point(x, y):
        case Point(x=0):
            return y
        case Point(p, 2) if p > 2:
            return p
        case int():
            return x
        case Point():
            return -1


@case(*PAIRS)
def mappings(x, y):
    match {"k": x, "z": y}:
        case {"k": 1, "z": 7}:
            return x
        case {"k": k, **rest}:
            return k + rest["z"]


@case((np.array([1, 0, 3, 5, 9, 4], i32),))
def jumps_in_a_loop(xs):
    total = 0
    for x in xs:
        match x:
            case 0:
                continue
            case 9:
                break
            case 3:
                total += 100
            case _:
                total += 1
        total += x
    return total


@case((i32(3), i32(1)), (i32(0), i32(1)))
def subject_that_a_pattern_rebinds(x, y):
    match x:
        case x if x > 2:
            x = x * 2
        case 0:
            x = y
    return x


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_same_as_python(function, arguments, dynamic):
    check_same_as_python(function, arguments, dynamic)


def test_gradient_through_a_match():
    @ag.function
    def f(x, kind):
        match (kind, x):
            case (0, y):
                r = y * y
            case (1, y):
                r = -y
            case _:
                r = 0.0
        return r

    def gradient(kind):
        x = ag.constant(3.0)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = f(x, ag.constant(kind))
        return tape.gradient(y, x)

    assert [float(gradient(kind)) for kind in (0, 1, 2)] == [6.0, -1.0, 0.0]


def test_captured_only_in_a_case_that_does_not_hold():
    @ag.function
    def f(x):
        match (x, x + 1):
            case (0, after):
                pass
        return after

    assert int(f(ag.constant(0))) == 1
    with pytest.raises(UnboundLocalError, match="'after'"):
        f(ag.constant(5))


def test_python_values_keep_their_order_of_evaluation():
    def f(log):
        class Noisy:
            def __init__(self, name):
                self.name = name

            def __eq__(self, other):
                log.append((self.name, other))
                return self.name == other

        def guard(value):
            log.append(value)
            return value

        found = []
        for subject in (Noisy("a"), [Noisy("b"), Noisy("c")], "text", 1, True, None, {"k": [1, 2]}):
            match subject:
                case "x" | "a":
                    found.append("a")
                case ["b", "d"] | ["b", "c"] if guard(True):
                    found.append("bc")
                case str() if guard(False):
                    found.append("no")
                case str(text):
                    found.append(text)
                case True:
                    found.append("true")
                case 1:
                    found.append("one")
                case None:
                    found.append("none")
                case {"k": [first, *_]}:
                    found.append(first)
        return found

    expected, seen = [], []
    assert converted(f)(seen) == f(expected)
    assert seen == expected
