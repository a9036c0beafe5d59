"""``:=`` in operands that may not be evaluated: in Python, converted, and staged."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag
from autograph.convert.api import converted
from tests.operators.harness import assert_equal, run_staged


def in_and_and_or(x):
    z = 0.0
    if x > 0 and (y := x * 2) > 3:
        z = y
    elif x < -5 or (w := x + 1) > 0.5:
        z = -x
    return z


def in_a_while_test(x):
    trips = 0
    while trips < 4 and (half := x / 2) > 1:
        x = half
        trips += 1
    return x, trips


def with_else_and_jumps(x):
    total = 0.0
    while (a := x - 1) > 0 and (b := a * 2) > 1:
        x = x - 1
        if x < 2:
            continue
        if total > 20:
            break
        total = total + b
    else:
        total += 100
    return total, x


def in_both_sides(x):
    v = (y := x + 1) * 2 if x > 0 else (y := -x)
    return v, y


def in_a_chain(x):
    outside = not (x > 0 and (z := x) > 1 and z < 2)
    return 0 < (y := x * 2) < 10, y, outside


def nested(x):
    r = x > 1 and (x < 2 or (y := x) > 2.5) and (y := x * 3) > 0
    if r:
        return y
    return x


@pytest.mark.parametrize("x", [-7.0, -2.0, 0.25, 1.0, 1.5, 3.0, 9.0])
@pytest.mark.parametrize(
    "function", [in_and_and_or, in_a_while_test, with_else_and_jumps, in_both_sides, in_a_chain, nested]
)
def test_same_as_python(function, x):
    expected = function(x)
    assert converted(function)(x) == expected
    assert_equal(run_staged(function, np.float32(x)), expected)


def test_read_where_it_was_not_evaluated():
    def f(x):
        if x > 0 and (y := x) > 1:
            return y
        return y + 1

    assert int(ag.function(f)(ag.constant(1))) == 2
    with pytest.raises(UnboundLocalError, match="'y'"):
        ag.function(f)(ag.constant(-1))


def test_order_of_evaluation():
    def f(log):
        def say(value):
            log.append(value)
            return value

        while say(len(log)) < 9 and (k := say(2)) and not say(0):
            log.append("body")
        else:
            log.append("end")
        return say(0) or (k := say("")) or say("last"), k

    expected, seen = [], []
    assert converted(f)(seen) == f(expected)
    assert seen == expected
