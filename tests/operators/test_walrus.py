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


def with_a_plain_test_and_jumps(x):
    while (x := x - 1) > 0:
        if x == 2:
            break
        if x > 20:
            return x * 10
    else:
        x = x - 100
    return x


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
    "function",
    [
        in_and_and_or,
        in_a_while_test,
        with_a_plain_test_and_jumps,
        with_else_and_jumps,
        in_both_sides,
        in_a_chain,
        nested,
    ],
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


def twice(value, *others, **more):
    return value


def in_arguments(n):
    y = 0
    found = twice(n - 1, n > 2 and (y := n + 1) > 4, last=n)
    return found, y


def in_a_keyword(n):
    y = 0
    return twice(y, other=n > 0 and (y := n) > 1), y


def in_tuples_and_dictionaries(n):
    y = z = 0
    pair = (n > 2 and (y := n + 1) > 4, n)
    table = {"a": [n > 0 and (z := n * 2) > 3]}
    return pair, table["a"][0], y, z


def in_arithmetic(n):
    y = 0
    return 1 + (n if n > 2 else (y := 7)), y


def in_the_test_of_a_while(n):
    y = 0
    while twice(n > 0 and (y := n) > 0):
        n -= 1
    return n, y


def in_a_list_comprehension(n):
    i, y = 5, 0
    found = [y for i in range(n) if (y := i * 2) > 3]
    return i, y, sum(found), len(found)


def in_nested_clauses(n):
    y = 0
    found = [(y := i * j) + 1 for i in range(n) for j in range(i) if j != 1]
    return y, sum(found)


@pytest.mark.parametrize(
    "program",
    [
        in_arguments,
        in_a_keyword,
        in_tuples_and_dictionaries,
        in_arithmetic,
        in_the_test_of_a_while,
        in_a_list_comprehension,
        in_nested_clauses,
    ],
)
def test_inside_of_other_expressions(program):
    for n in range(6):
        assert converted(program)(n) == program(n)
        staged = ag.function(program)(ag.constant(n))
        assert [int(each) for each in ag.nest.flatten(staged)] == [int(each) for each in ag.nest.flatten(program(n))]


def test_order_of_evaluation_inside_of_other_expressions():
    def f(log):
        def say(value, *others, **more):
            log.append(value)
            return value

        first = say(say("a"), say(0) or (k := say("")) or say("b"), *say([1]), last=say("c") and (m := say("d")))
        second = {say("k"): say(1) + (say(2) if say(True) else (w := say(3)))}
        third = [say(v) for u in say([1, 2, 3]) if (v := u * 2) > 2], say([7, 8])[say(0) or (z := say(1))]
        return first, second, third, k, v, z

    expected, seen = [], []
    assert converted(f)(seen) == f(expected)
    assert seen == expected
