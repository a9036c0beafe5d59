"""Lists and objects with two names: staged as Python means it, or refused; never changed under one name only."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError

VALUES = ([], [2.0], [1.0, -2.0, 3.5], [-1.0, 2.0, 3.0])


@dataclasses.dataclass
class Box:
    a: float


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return float(value)


def two_lists_change_places(xs):
    before, now = [0.0] * 3, [0.0] * 3
    for v in xs:
        for j in range(3):
            now[j] = before[j] + v * j
        before, now = now, before
    return before


def two_names_from_the_start(xs):
    one = [0.0]
    other = one
    for v in xs:
        one[0] += v
    return one, other


def two_names_of_a_list_that_grows(xs):
    one = [0.0]
    other = one
    for v in xs:
        one += [v]
    one.append(1.0)
    return one, other


def in_a_dictionary_too(xs):
    table = {"p": [0.0]}
    row = table["p"]
    for v in xs:
        row[0] += v
    return table, row


def a_new_list_in_a_branch(xs):
    found = [0.0]
    for v in xs:
        if v > 0:
            found = [v]
        found[0] += 1
    return found


def a_new_list_in_a_branch_of_a_branch(xs):
    found = [0.0]
    for i in range(2):
        for v in xs:
            if v > 0:
                if v > 1:
                    found = [v]
                found[0] += i
                found.append(v)
    return found


def a_copy_of_the_best(xs):
    best, current = [0.0, 0.0], [0.0, 0.0]
    for v in xs:
        current[0] = v
        if v > best[0]:
            best = list(current)
    return best


def returned_by_a_function(xs):
    def choose(v):
        one, other = [1.0], [2.0]
        if v > 0:
            return one
        return other

    found = []
    for v in xs:
        chosen = choose(v)
        chosen[0] += 1
        found.append(chosen[0])
    return found


def lists_in_a_list_that_branches_change(xs):
    parts = [[], []]
    for v in xs:
        if v > 0:
            parts[0].append(v)
        else:
            parts[1].append(v)
    return parts


def lists_in_a_dictionary_that_branches_change(xs):
    parts = {"above": [], "below": []}
    for v in xs:
        if v > 0:
            parts["above"].append(v)
        else:
            parts["below"].append(v)
    return parts


def a_new_list_in_a_loop_beside_the_old_one(xs):
    now = [0.0]
    first = now
    for v in xs:
        now = now + [v]
    return len(now), len(first), now[0], first[0]


def a_new_list_in_a_loop_whose_old_one_is_not_needed_any_more(xs):
    first = [0.0]
    now = first
    for v in xs:
        now = now + [v]
    now.append(1.0)
    first = [2.0]
    return now, first


def a_new_list_in_a_loop_that_grows_afterwards(xs):
    def ready(values):
        return values + [3.0]

    now = ready([0.0])
    for v in xs:
        now.append(v)
        now = now + [v]
    now[0] += 1.0
    return now


@pytest.mark.parametrize(
    "program",
    [
        a_new_list_in_a_loop_beside_the_old_one,
        a_new_list_in_a_loop_whose_old_one_is_not_needed_any_more,
        a_new_list_in_a_loop_that_grows_afterwards,
        two_lists_change_places,
        two_names_from_the_start,
        two_names_of_a_list_that_grows,
        in_a_dictionary_too,
        a_new_list_in_a_branch,
        a_new_list_in_a_branch_of_a_branch,
        a_copy_of_the_best,
        returned_by_a_function,
        lists_in_a_list_that_branches_change,
        lists_in_a_dictionary_that_branches_change,
    ],
)
def test_as_in_python(program):
    for values in VALUES:
        xs = ag.constant(values, ag.float32)
        np.testing.assert_equal(plain(ag.function(program)(xs)), plain(program(xs)))


def chosen_by_a_conditional_expression(xs):
    above, below = [], []
    for v in xs:
        (above if v > 0 else below).append(v)
    return above, below


def chosen_by_a_branch(xs):
    above, below = [0.0], [1.0]
    for v in xs:
        if v > 0:
            chosen = above
        else:
            chosen = below
        chosen[0] += v
    return above, below


def a_name_for_a_list_from_outside(xs):
    before, now = [0.0] * 3, [0.0] * 3
    for v in xs:
        now[0] = before[2] + v
        before = now
    return before, now


def the_original_changes_in_the_next_iteration(xs):
    best, current = [0.0, 0.0], [0.0, 0.0]
    for v in xs:
        current[0] = v
        if v > best[0]:
            best = current
    return best


def an_object_that_changes_in_the_next_iteration(xs):
    best, current = Box(0.0), Box(0.0)
    for v in xs:
        current.a = v
        if v > best.a:
            best = current
    return best.a


def an_object_that_changes_afterwards(xs):
    best = Box(0.0)
    for v in xs:
        current = Box(v)
        if v > best.a:
            best = current
        current.a += 1
    return best.a


def a_new_list_in_a_loop_changes_afterwards(xs):
    now = [0.0]
    first = now
    for v in xs:
        now = now + [v]
    now.append(9.0)
    return len(now), len(first)


def the_old_list_of_a_loop_changes_afterwards(xs):
    now = [0.0]
    first = now
    for v in xs:
        now = now + [v]
    first.append(9.0)
    return len(now), len(first)


def a_list_changes_before_the_loop_exchanges_it(xs):
    now = [0.0]
    first = now
    for v in xs:
        now[0] += 1.0
        now = [now[0] + v]
    return now, first


def a_list_changes_between_loops_that_exchange_it(xs):
    one, other = [xs[0]], [xs[1]]
    now = one
    for _ in xs:
        for _ in ag.range(2):
            now[0] = 5.0
            for _ in ag.range(2):
                now, other = other, now
    return one, now


def a_new_dictionary_in_a_loop_changes_afterwards(xs):
    now = {"k": 0.0}
    first = now
    for v in xs:
        now = {"k": now["k"] + v}
    now["k"] += 1.0
    return now, first


def a_new_list_in_a_branch_changes_afterwards(xs):
    now = [xs[0]]
    first = now
    if xs[0] > 0:
        now = now + [1.0]
    now.append(2.0)
    return len(now), len(first)


def chosen_and_changed_at_the_top(xs):
    one, other = [xs[0]], [xs[1]]
    if xs[0] > 0:
        found = one
    else:
        found = other
    one[0] = xs[1] * 5.0
    return found[0]


def chosen_in_a_branch_and_changed_after_it(xs):
    one, other = [xs[0]], [xs[1]]
    found = one
    if xs[0] > 0:
        if xs[1] > 0:
            found = other
    found[0] = 5.0
    return one[0] + other[0]


@pytest.mark.parametrize(
    "program",
    [
        a_new_list_in_a_loop_changes_afterwards,
        the_old_list_of_a_loop_changes_afterwards,
        a_list_changes_before_the_loop_exchanges_it,
        a_list_changes_between_loops_that_exchange_it,
        a_new_dictionary_in_a_loop_changes_afterwards,
        a_new_list_in_a_branch_changes_afterwards,
        chosen_and_changed_at_the_top,
        chosen_in_a_branch_and_changed_after_it,
        chosen_by_a_conditional_expression,
        chosen_by_a_branch,
        a_name_for_a_list_from_outside,
        the_original_changes_in_the_next_iteration,
        an_object_that_changes_in_the_next_iteration,
        an_object_that_changes_afterwards,
    ],
)
def test_refused(program):
    with pytest.raises(StagingError, match="also has another name") as caught:
        ag.function(program)(ag.constant([1.0, -2.0]))
    line = str(caught.value).split("test_aliases.py:")[1].split(",")[0]
    assert program.__code__.co_firstlineno < int(line) <= program.__code__.co_firstlineno + 6


class Point:
    def __init__(self, x, count):
        self.x = x
        self.count = count

    def moved(self, by):
        return Point(self.x + by, self.count + 1)


class Link:
    def __init__(self, value, rest):
        self.value = value
        self.rest = rest


def objects_take_turns(xs):
    state = Point(xs[0] * 0.0, 0)
    for v in xs:
        state = state.moved(v)
    if state.x > 1.0:
        state = state.moved(-1.0)
    return state.x, state.count


def the_best_object(xs):
    best = Point(0.0, -1)
    for i, v in enumerate(xs):
        now = Point(v, i)
        if now.x > best.x:
            best = now
    return best.x, best.count


def objects_in_objects(xs):
    pair = Link(Point(xs[0], 0), 1.0)
    for v in xs:
        pair = Link(pair.value.moved(v), pair.rest * 2.0)
        if v > 2.0:
            pair.value.x = pair.value.x + 10.0
    return pair.value.x, pair.value.count, pair.rest


@pytest.mark.parametrize("program", [objects_take_turns, the_best_object, objects_in_objects])
def test_objects_are_exchanged_by_their_attributes(program):
    for values in VALUES[1:]:
        xs = ag.constant(values, ag.float32)
        np.testing.assert_allclose(plain(ag.function(program)(xs)), plain(program(xs)))


def test_objects_have_the_same_attributes_in_every_iteration():
    @ag.function
    def f(xs):
        state = Link(xs[0], Link(xs[1], None))
        for v in xs:
            state = state.rest
        return state.value

    with pytest.raises(
        StagingError, match="same nested structure.*a Link of 3 values before, a Link of 2 values after"
    ):
        f(ag.constant([1.0, 2.0]))


def test_an_object_with_two_names_is_not_exchanged_and_changed():
    @ag.function
    def f(xs):
        state = Point(xs[0], 0)
        first = state
        for v in xs:
            state = state.moved(v)
        first.x = xs[1]
        return state.x

    with pytest.raises(StagingError, match="also has another name"):
        f(ag.constant([1.0, 2.0]))
