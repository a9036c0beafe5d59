"""Iterators that staged code takes items from give what they give in Python, or are refused with their place."""

from __future__ import annotations

import io
import itertools
import sys

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError

GIVEN = [3.0, 0.0, 2.0, 5.0, 1.0]
shared = itertools.count()


class Numbered:
    def __init__(self):
        self.numbers = itertools.count(5)

    def next(self):
        return next(self.numbers)


class Steps:
    def __init__(self):
        self.k = 0

    def __next__(self):
        self.k += 1
        return self.k


def count_in_a_loop(t):
    ids, total = itertools.count(), 0
    for _ in t:
        total += next(ids)
    return total


def count_in_branches(t):
    ids, total = itertools.count(1), 0
    for k in range(5):
        if t[k] > 1.0:
            total += next(ids)
    return total


def count_in_nested_loops(t):
    ids, total = itertools.count(1, 2), 0
    for v in t:
        for w in t:
            if w > v:
                total += next(ids)
    return total


def count_of_floats(t):
    ids, total = itertools.count(0.5, step=0.25), 0.0
    for _ in t:
        total += next(ids)
    return total


def count_beside_a_tensor(t):
    ids, total = itertools.count(1, 2), 0
    for number, _ in zip(ids, t):
        total += number
    return total + next(ids)


def count_in_an_object(t):
    box, total = Numbered(), 0
    for v in t:
        if v > 1.0:
            total += box.next()
    return total


def cycle_in_a_branch(t):
    weights, total = itertools.cycle([1.5, 2.5]), 0.0
    for v in t:
        if v > 1.0:
            total += v * next(weights)
    return total + next(weights)


def cycle_of_letters(t):
    names, total = itertools.cycle("ab"), 0
    for _ in t:
        if next(names) == "a":
            total += 1
    return total


def chain(t):
    rest, total = itertools.chain([1, 2, 3], [4, 5, 6]), 0
    for _ in t:
        total += next(rest)
    return total


def chain_with_a_default(t):
    rest, total = itertools.chain([1, 2, 3], (4,)), 0
    for _ in t:
        total += next(rest, 100)
    return total


def repeat(t):
    ones, total = itertools.repeat(2), 0
    for _ in t:
        total += next(ones)
    return total


def pairs(t):
    found, total = itertools.product([1, 2], [3, 4, 5]), 0
    for _ in t:
        a, b = next(found)
        total += a * b
    return total


def own_iterator(t):
    steps, total = Steps(), 0
    for _ in t:
        total += next(steps)
    return total


def taken_before_the_branch_ends(t):
    rows, total = iter([1, 2, 3]), 0
    if t[0] > 0.0:
        total += next(rows)
    return total


@pytest.mark.parametrize(
    "program",
    [
        count_in_a_loop,
        count_in_branches,
        count_in_nested_loops,
        count_of_floats,
        count_beside_a_tensor,
        count_in_an_object,
        cycle_in_a_branch,
        cycle_of_letters,
        chain,
        chain_with_a_default,
        repeat,
        pairs,
        own_iterator,
        taken_before_the_branch_ends,
    ],
)
def test_as_in_python(program):
    assert float(ag.function(program)(ag.constant(GIVEN))) == float(program(GIVEN))


def test_an_iterator_that_ends_raises_when_the_program_runs():
    def program(t):
        rest, total = itertools.chain([1, 2], [4]), 0
        for _ in t:
            total += next(rest)
        return total

    made = ag.function(program, reduce_retracing=True)
    assert int(made(ag.constant(GIVEN[:3]))) == 7
    with pytest.raises(StopIteration, match="the iterator has no further item"):
        made(ag.constant(GIVEN))


def of_a_generator(t):
    def numbers():
        k = 0
        while True:
            yield k
            k += 1

    found = numbers()
    return sum_of(t, lambda: next(found))


def of_a_generator_by_send(t):
    def numbers():
        k = 0
        while True:
            yield k
            k += 1

    found = numbers()
    return sum_of(t, lambda: found.send(None))


def of_a_generator_expression(t):
    found = (k for k in range(10))
    return sum_of(t, lambda: next(found))


def of_a_list(t):
    found = iter([1, 2, 3, 4, 5])
    return sum_of(t, lambda: next(found))


def by_islice(t):
    found = iter(range(10))
    return sum_of(t, lambda: list(itertools.islice(found, 1))[0])


def by_unpacking(t):
    found = iter(range(10))

    def pair():
        a, b = itertools.islice(found, 2)
        return a * b

    return sum_of(t, pair)


def by_its_method(t):
    found = zip([1, 2, 3, 4, 5], [5, 4, 3, 2, 1])
    return sum_of(t, lambda: found.__next__()[0])


def by_in(t):
    found = iter(range(10))
    return sum_of(t, lambda: 1 if 3 in found else 0)


def of_a_global(t):
    return sum_of(t, lambda: next(shared))


def of_lines(t):
    found = io.StringIO("1\n2\n3\n4\n5\n")
    return sum_of(t, lambda: int(next(found)))


def of_items(t):
    found = iter({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}.values())
    return sum_of(t, lambda: next(found))


def of_enumerate(t):
    found = enumerate([5, 6, 7, 8, 9])
    return sum_of(t, lambda: next(found)[1])


def of_accumulate(t):
    found = itertools.accumulate([5, 6, 7, 8, 9])
    return sum_of(t, lambda: next(found))


def sum_of(t, take):
    total = 0
    for v in t:
        if v > 1.0:
            total += take()
    return total


@pytest.mark.parametrize(
    "program",
    [
        of_a_generator,
        of_a_generator_by_send,
        of_a_generator_expression,
        of_a_list,
        by_islice,
        by_unpacking,
        by_its_method,
        by_in,
        of_a_global,
        of_lines,
        of_items,
        of_enumerate,
        of_accumulate,
    ],
)
def test_refused_with_its_place(program):
    with pytest.raises(StagingError, match="an iterator from outside of a branch or loop on tensors") as caught:
        ag.function(program)(ag.constant(GIVEN))
    assert caught.value.location.filename == __file__
    assert "fix: " in str(caught.value)


def test_a_list_that_changes_under_its_iterator_is_refused():
    def program(t):
        rows = [1, 2]
        found, total = itertools.cycle(rows), 0
        rows.append(3)
        for _ in t:
            total += next(found)
        return total

    with pytest.raises(StagingError, match="runs over a list that has changed since"):
        ag.function(program)(ag.constant(GIVEN))


# --- generator expressions that read what changes --------------------------------------------------------------------


def extend(x, t):
    y = [x, x]
    y.extend(v + y[-1] for v in t if v > 1.0)
    return ag.stack(y)


def add(x, t):
    y = [x, x]
    y += (v + y[-1] for v in t)
    return ag.stack(y)


def add_to_an_attribute(x, t):
    box = Steps()
    box.y = [x]
    box.y += (v + box.y[-1] for v in t)
    return ag.stack(box.y)


def extend_in_a_helper(x, t):
    def grow(rows):
        rows.extend(v + rows[-1] for v in t)

    y = [x]
    grow(y)
    return ag.stack(y)


def extend_in_a_loop(x, t):
    y = [x]
    for _ in t:
        y.extend(w + y[-1] for w in t)
    return ag.stack(y)


def extend_with_map(x, t):
    y = [x]
    y.extend(map(lambda v: v + y[-1], t))
    return ag.stack(y)


@pytest.mark.parametrize(
    "program", [extend, add, add_to_an_attribute, extend_in_a_helper, extend_in_a_loop, extend_with_map]
)
def test_elements_see_those_before_them(program):
    given = ag.constant(1.0), ag.constant(GIVEN)
    np.testing.assert_array_equal(ag.function(program)(*given), program(*given))


def kept_extend(x, t):
    y = [x]
    grow = y.extend
    grow(v + y[-1] for v in t)
    return ag.stack(y)


def filled_in_a_loop(x, t):
    y = [x]
    for each in (v + y[-1] for v in t):
        y.append(each)
    return ag.stack(y)


def variable_set_before_use(x, t):
    found = (v * x for v in t)
    x = x + 1.0
    return sum(found)


def variable_set_in_a_loop(x, t):
    total = 0.0
    for each in (v * x for v in t):
        x = x + 1.0
        total += each
    return total


@pytest.mark.parametrize("program", [kept_extend, filled_in_a_loop, variable_set_before_use, variable_set_in_a_loop])
def test_a_change_that_the_elements_would_see_is_refused(program):
    with pytest.raises(StagingError, match="generator expression") as caught:
        ag.function(program)(ag.constant(1.0), ag.constant(GIVEN))
    assert caught.value.location.filename == __file__
    assert "in Python" in caught.value.cause


# --- places ----------------------------------------------------------------------------------------------------------


def test_a_comprehension_for_its_effect_is_a_loop():
    @ag.function
    def run(t):
        log = []
        [log.append(v) for v in t if v > 1.0]
        return ag.stack(log)

    np.testing.assert_array_equal(run(ag.constant(GIVEN)), [3.0, 2.0, 5.0])


def test_errors_in_a_comprehension_name_what_the_user_wrote():
    def listed(t):
        log = []
        nothing = [log.append(v) for v in t if v > 1.0]
        return nothing

    def tested(t):
        log = []
        return any(log.append(v) for v in t)

    for program in (listed, tested):
        with pytest.raises(StagingError, match="^'comprehension' gets or loses elements") as caught:
            ag.function(program)(ag.constant(GIVEN))
        assert caught.value.location.line == program.__code__.co_firstlineno + 2
        if sys.version_info >= (3, 11):  # before, code doesn't know the function around it
            assert "<lambda>" not in str(caught.value)


def test_a_method_of_a_set_names_its_owner():
    def program(t):
        seen = set()
        add = seen.add
        for _ in t:
            add(1)
        return len(seen)

    with pytest.raises(StagingError, match="^'add.__self__', a set, is changed in a branch or loop"):
        ag.function(program)(ag.constant(GIVEN))
