"""Iterators over staged lists and tensors are as lazy as those of Python: `enumerate`, `zip`, generators and others.

They see what has become of the list, and give each item once; what can't be told while tracing is refused.
"""

from __future__ import annotations

import pytest

import autograph as ag
from autograph.errors import StagingError
from runtime.errors import OperatorNotAllowedInGraphError


def fill(x, n):
    L = []
    for i in ag.range(n):
        L.append(x + ag.cast(i, ag.float32))
    return L


def enumerate_of_a_growing_list(x, n):
    L = fill(x, n)
    out = []
    for i, v in enumerate(L):
        out.append(v)
        if len(L) < 6:
            L.append(v * 2.0)
    return out


def zip_of_a_growing_list(x, n):
    L = fill(x, n)
    out = []
    for v, w in zip(L, L):
        out.append(v)
        if len(L) < 6:
            L.append(v * 2.0)
    return out


def reversed_list_that_grows(x, n):
    L = fill(x, n)
    out = []
    for v in reversed(L):
        out.append(v)
        if len(L) < 6:
            L.append(v * 2.0)
    return out


def reversed_list_that_is_cleared(x, n):
    L = fill(x, n)
    out = []
    for v in reversed(L):
        out.append(v)
        L.clear()
    return out


def map_over_a_growing_list(x, n):
    L = fill(x, n)
    out = []
    for v in map(lambda a: a + 1.0, L):
        out.append(v)
        if len(L) < 6:
            L.append(v * 2.0)
    return out


def list_that_is_cleared(x, n):
    L = fill(x, n)
    out = []
    for v in L:
        out.append(v)
        L.clear()
    return out


def enumerate_of_a_shrinking_list(x, n):
    L = fill(x, n)
    out = []
    for i, v in enumerate(L):
        out.append(v)
        L.pop()
    return out


def zip_of_a_shrinking_list(x, n):
    L = fill(x, n)
    out = []
    for v, w in zip(L, L):
        out.append(v)
        L.pop()
    return out


def enumerate_before_the_change(x, n):
    L = fill(x, n)
    g = enumerate(L)
    L.append(x)
    return [v for i, v in g]


def reversed_before_an_append(x, n):
    L = fill(x, n)
    g = reversed(L)
    L.append(x)
    return [v for v in g]


def reversed_before_a_pop(x, n):
    L = fill(x, n)
    g = reversed(L)
    L.pop()
    return [v for v in g]


def zip_before_a_pop(x, n):
    L = fill(x, n)
    g = zip(L, L)
    L.pop()
    return [v for v, w in g]


def map_before_a_pop(x, n):
    L = fill(x, n)
    g = map(lambda a: a + 1.0, L)
    L.pop()
    return [v for v in g]


def generator_before_a_pop(x, n):
    L = fill(x, n)
    g = (a + 1.0 for a in L)
    L.pop()
    return [v for v in g]


def filter_before_a_pop(x, n):
    L = fill(x, n)
    g = filter(lambda a: a > 0.5, L)
    L.pop()
    return [v for v in g]


def zip_before_another_list(x, n):
    L = fill(x, n)
    g = zip(L, reversed(L))
    L = L + [x]
    return [v + w for v, w in g]


def filter_of_a_growing_list(x, n):
    L = fill(x, n)
    out = []
    for v in filter(lambda a: a > 0.1, L):
        out.append(v)
        if len(L) < 6:
            L.append(v * 2.0)
    return out


def reversed_list_that_grows_in_front(x, n):
    L = fill(x, n)
    out = []
    for v in reversed(L):
        out.append(v)
        L.insert(0, v)
    return out


def enumerate_of_reversed_before_an_insert(x, n):
    L = fill(x, n)
    g = enumerate(reversed(L))
    L.insert(0, x)
    return [v for i, v in g]


def reversed_twice(x, n):
    L = fill(x, n)
    g = reversed(L)
    L.append(x)
    L.append(x)
    return sum(g), list(g)


def map_twice(x, n):
    L = fill(x, n)
    g = map(lambda v: v, L)
    L.append(x)
    L.append(x)
    return sum(g), list(g)


def zip_twice(x, n):
    L = fill(x, n)
    g = zip(L, L)
    return list(g), list(g)


def iterator_twice(x, n):
    L = fill(x, n)
    g = iter(L)
    return list(g), list(g)


def reversed_twice_in_comprehensions(x, n):
    L = [x, 0.5]
    if x > 0.1:
        L.append(x)
    g = reversed(L)
    return [v for v in g], [v for v in g]


def generator_twice(x, n):
    L = fill(x, n)
    g = (v * 2.0 for v in L)
    return list(g), sum(g)


def generator_in_three_loops(x, n):
    L = fill(x, n)
    g = (v * 2.0 for v in L)
    t = 0.0
    for v in g:
        t = t + v
    for v in g:
        t = t + v
    return t, sum(g)


def in_a_branch_and_after_it(x, n):
    L = fill(x, n)
    g = enumerate(L)
    if x > 0.1:
        t = sum([v for i, v in g])
    else:
        t = 1.0
    return t, [v for i, v in g]


def in_both_branches(x, n):
    L = fill(x, n)
    g = enumerate(L)
    if x > 0.1:
        t = sum([v for i, v in g])
    else:
        t = 2.0 * sum([v for i, v in g])
    return t


def in_a_loop(x, n):
    L = fill(x, n)
    g = enumerate(L)
    t = 0.0
    for k in ag.range(2):
        t = t + sum([v for i, v in g])
    return t


def after_a_break(x, n):
    L = fill(x, n)
    t = 0.0
    g = enumerate(L)
    for i, v in g:
        t = t + v
        if t > 1.0:
            break
    return t, [v for i, v in g]


def left_and_dropped(x, n):
    L = fill(x, n)
    t = 0.0
    for i, v in enumerate(L):
        t = t + v
        if t > 1.0:
            break
    for i, v in zip(L, reversed(L)):
        t = t + v
        if t > 2.0:
            break
    return t


def iterator_over_a_tensor(x, n):
    L = fill(x, n)
    g = iter(ag.stack([x, x]))
    return list(g), list(g)


def enumerate_of_a_range_twice(x, n):
    t = ag.range(n)
    g = enumerate(t)
    return [i for i, v in g], [i for i, v in g]


def zip_of_a_generator_with_itself(x, n):
    L = fill(x, n)
    g = (v * 2.0 for v in L)
    return zip_sum(g, g)


def zip_sum(g, h):
    t = 0.0
    for a, b in zip(g, h):
        t = t + a * b
    return t


def zip_of_a_map_with_itself(x, n):
    L = fill(x, n)
    g = map(lambda v: v, L)
    return zip_sum(g, g)


def generator_after_next(x, n):
    L = fill(x, n)
    g = (v * 2.0 for v in L)
    a = next(g)
    return a, list(g), list(g)


def filter_after_next(x, n):
    L = fill(x, n)
    g = filter(lambda v: v > 0.5, L)
    a = next(g, 5.0)
    return a, list(g), list(g)


def generator_in_max_and_min(x, n):
    L = fill(x, n)
    g = (v * 2.0 for v in L)
    return max(g), min(g, default=3.0)


def generator_after_any(x, n):
    L = fill(x, n)
    g = (v > 0.5 for v in L)
    return (1.0 if any(g) else 0.0), len(list(g))


def generator_added_to_a_list(x, n):
    L = fill(x, n)
    M = [x]
    M.extend(v for v in L)
    g = (v for v in L)
    M += g
    M += g
    return M


def generator_after_in(x, n):
    L = fill(x, n)
    g = (v for v in L)
    return (1.0 if x + 1.0 in g else 0.0), list(g)


def enumerate_in_a_loop_over_the_list(x, n):
    L = fill(x, n)
    out = []
    for a in L:
        for i, b in enumerate(L):
            out.append(a * b)
    return out


STAGED = [
    enumerate_of_a_growing_list,
    zip_of_a_growing_list,
    reversed_list_that_grows,
    reversed_list_that_is_cleared,
    map_over_a_growing_list,
    list_that_is_cleared,
    enumerate_of_a_shrinking_list,
    zip_of_a_shrinking_list,
    enumerate_before_the_change,
    reversed_before_an_append,
    reversed_before_a_pop,
    zip_before_a_pop,
    map_before_a_pop,
    zip_before_another_list,
    reversed_list_that_grows_in_front,
    enumerate_of_reversed_before_an_insert,
    reversed_twice,
    map_twice,
    zip_twice,
    reversed_twice_in_comprehensions,
    generator_twice,
    generator_in_three_loops,
    in_both_branches,
    left_and_dropped,
    iterator_over_a_tensor,
    enumerate_of_a_range_twice,
    generator_after_next,
    filter_after_next,
    generator_in_max_and_min,
    generator_added_to_a_list,
    enumerate_in_a_loop_over_the_list,
]
REFUSED = [
    generator_before_a_pop,
    filter_before_a_pop,
    filter_of_a_growing_list,
    iterator_twice,
    in_a_branch_and_after_it,
    in_a_loop,
    after_a_break,
    zip_of_a_generator_with_itself,
    zip_of_a_map_with_itself,
    generator_after_any,
    generator_after_in,
]


def plain(value):
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else round(float(value), 4)


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("program", STAGED, ids=lambda program: program.__name__)
def test_as_in_python(program, n):
    x, n = ag.constant(0.25), ag.constant(n)
    try:
        expected = plain(program(x, n))
    except (IndexError, StopIteration, ValueError) as error:
        with pytest.raises((type(error), ag.errors.InvalidArgumentError, IndexError)):
            ag.function(program)(x, n)
        return
    assert plain(ag.function(program)(x, n)) == expected


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_refused(program):
    with pytest.raises((StagingError, OperatorNotAllowedInGraphError)):
        ag.function(program)(ag.constant(0.25), ag.constant(3))
