"""Slices, methods and displays of lists in staged loops, and dataclass instances as their state, as in Python."""

from __future__ import annotations

import dataclasses
import typing

import numpy as np
import pytest

import autograph as ag
from tests.operators.harness import Table, check_same_as_python

i32 = np.int32
TABLE = Table()
case = TABLE.case


def rows(items):
    return np.array(items) if ag.executing_eagerly() else ag.stack(items)


class Pair(typing.NamedTuple):
    x: object
    y: object


@dataclasses.dataclass
class State:
    x: object
    y: object = 0


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: object
    inner: object = None


@case((i32(4),), (i32(0),))
def starred(n):
    items = [0]
    for i in range(n):
        items = [*items, i]
    return rows([7, *items, 8, *items]), rows(["a", *range(2)][1:])


@case((i32(4),), (i32(1),))
def slices(n):
    items = [1, 2, 3, 4]
    for i in range(n):
        items[1:3] = [i, i, i]
        items[:1] = []
        items.append(i)
    middle = items[1:-1]
    del items[1:3]
    items[-2:] = middle
    return rows(items), rows(middle), rows(items[::-1]), rows(items[::2])


@case((i32(4),))
def methods(n):
    items = [3, 1, 2]
    for i in range(n):
        items.append(i)
        if i == 1:
            items.remove(3)
    other = items.copy()
    other.sort(reverse=True)
    items.reverse()
    items += other
    where = items.index(2), items.index(2, where_from(items)), items.count(1)
    other.clear()
    items.sort()
    return rows(items), where, len(other), 9 in items


def where_from(items):
    return items.index(2) + 1


@case((i32(3),), (i32(0),))
def repetition(n):
    items = [n]
    for i in range(n):
        items.append(i)
    items = [5, 6] + items * 2
    items *= 2
    return rows(items), rows(items * n + [1])


@case((i32(3),))
def swaps_and_pops(n):
    items = [n] * 3
    for i in range(n):
        items[i % 3], items[0] = items[0], items[i % 3] + 1
        items.pop(0)
        items.append(i)
    return rows(items), items.pop(1), rows(items)


@case((i32(4),))
def in_logic(n):
    todo, done = [n], []
    while todo and len(done) < 7:
        k = todo.pop()
        done.append(k)
        if k > 1:
            todo.extend([k - 1, k - 2])
    return rows(done), len(todo)


@case((i32(4),), (i32(0),))
def named_tuples(n):
    pair = Pair(0, 1)
    for _ in range(n):
        pair = Pair(pair.y, pair.x + pair.y)
    return pair._replace(x=n), pair.x


@case((i32(4),), (i32(0),))
def dataclasses_rebound(n):
    state = State(0, Frozen(1))
    first = state
    for i in range(n):
        state = State(state.x + i, dataclasses.replace(state.y, x=state.y.x * 2))
    return state.x, state.y.x, first.x, first.y.x


@case((i32(4),), (i32(0),))
def dataclasses_changed(n):
    state = State(0, 1)
    alias = state
    while n > 0:
        state.x, state.y = state.y, state.x + state.y
        n -= 1
    return alias.x, alias.y


@case((i32(4),), (i32(-4),))
def dataclasses_in_branches(n):
    state = State(n, Frozen(2, Pair(n, 3)))
    if n > 0:
        state = State(n + 1, Frozen(2, Pair(n * 2, 3)))
    return state.x, state.y.x, state.y.inner.x, state.y.inner.y


@case((i32(3),))
def dataclasses_in_containers(n):
    states = {"a": Frozen(0), "b": [Frozen(1)]}
    for i in range(n):
        states["a"] = Frozen(states["a"].x + i)
        states["b"][0] = Frozen(states["b"][0].x * 2)
    return states["a"].x, states["b"][0].x


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize(("function", "arguments"), TABLE.rows)
def test_same_as_python(function, arguments, dynamic):
    check_same_as_python(function, arguments, dynamic)


@pytest.mark.parametrize(("function", "arguments"), TABLE.rows[::3])
def test_compiled(function, arguments):
    found = ag.function(function, jit_compile=True)(*[ag.constant(a) for a in arguments])
    for a, b in zip(ag.nest.flatten(found), ag.nest.flatten(function(*arguments)), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("method", ["remove", "index"])
def test_what_is_not_there_fails_when_the_program_runs(method):
    @ag.function
    def f(n):
        items = [0]
        for i in range(n):
            items.append(i)
        found = getattr(items, method)(7)
        return len(items) if found is None else found

    with pytest.raises(ValueError, match="not in list"):
        f(ag.constant(3))
    f(ag.constant(8))


def test_a_dataclass_that_refers_to_itself_is_no_state():
    @ag.function
    def f(n):
        state = State(0)
        state.y = state
        while n > 0:
            state.x = state.x + n
            n -= 1
        return state.x

    assert int(f(ag.constant(3))) == 6


@pytest.mark.parametrize("n", [0, 1, 6])
def test_sort_by_a_key(n):
    def f(n):
        numbers, pairs = [], []
        for i in range(n):
            numbers.append((i * 7) % 5)
            pairs.append(((i * 7) % 5, i))
        if n > 0:
            numbers.sort(key=lambda v: v % 3, reverse=True)
        pairs.sort(key=lambda pair: -pair[0])
        return numbers, pairs

    staged = ag.function(f)(ag.constant(n))
    assert [int(each) for each in ag.nest.flatten(staged)] == ag.nest.flatten(f(n))
