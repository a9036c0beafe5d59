"""Comparisons of tuples and lists that hold tensors follow Python's order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import autograph as ag
from autograph.convert.api import converted
from tests.operators.harness import run_staged


def all_comparisons(a, b, c, d):
    p, q = (a, b), (c, d)
    ordered = p < q, p <= q, p > q, (a, b) >= (c, d)
    equal = p == q, p != q, [a, b] == [c, d], (a, b) == [c, d], (a,) < q, q == (c, d)
    found = p in [q, (1, 2)], a in [c, d], (a, b) not in ((1, 1), q)
    return ordered, equal, found


@pytest.mark.parametrize("numbers", list(itertools.product((0, 1), (0, 2), (0, 1), (0, 2))))
def test_same_as_python(numbers):
    expected = all_comparisons(*numbers)
    assert converted(all_comparisons)(*numbers) == expected
    staged = run_staged(all_comparisons, *map(np.int32, numbers))
    assert [bool(each) for each in ag.nest.flatten(staged)] == ag.nest.flatten(expected)


def test_a_pair_as_the_state_of_a_loop():
    def largest(xs):
        best = (-1, -1)
        for i in range(len(xs)):
            if (xs[i], i) > best:
                best = (xs[i], i)
        return best

    xs = np.array([1, 5, 2, 5], np.int32)
    assert [int(each) for each in run_staged(largest, xs)] == [5, 3]


def test_later_items_are_compared_only_when_asked_for():
    def f(log):
        class Item:
            def __init__(self, name):
                self.name = name

            def __eq__(self, other):
                log.append(self.name + other.name)
                return self.name == other.name

            def __lt__(self, other):
                log.append(self.name + "<" + other.name)
                return "a value of its own"

        return (Item("a"), Item("b")) < (Item("a"), Item("c"), Item("d")), [Item("a")] == [Item("b")]

    expected, seen = [], []
    assert converted(f)(seen) == f(expected)
    assert seen == expected


def test_a_comparison_of_tuples_that_does_not_look_like_one():
    def pair(n):
        return n, n + 1

    def hidden(n):
        return 1 if pair(n) < pair(2) else 0

    def said(n):
        return 1 if tuple(pair(n)) < tuple(pair(2)) else 0

    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match="write `tuple.a. < tuple.b.`"):
        ag.function(hidden)(ag.constant(1))
    assert [int(ag.function(said)(ag.constant(n))) for n in (1, 2, 3)] == [1, 0, 0]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("value", [2.0, 3.0, 7.0])
def test_a_python_value_among_tensors(value, jit):
    def found(x):
        k = 0.0
        while k < x:
            k += 1.0
        items = [x, x * 2.0]
        return (
            4.0 in items, 6.0 not in (1.0, x * 2.0), value in [items[1], value], 7.0 in (k, x), None in items,
            k in (2.0, 3.0),
        )  # fmt: skip

    x = ag.constant(value)
    assert [bool(each) for each in ag.function(found, jit_compile=jit)(x)] == [bool(each) for each in found(x)]
