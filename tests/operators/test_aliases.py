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


@pytest.mark.parametrize(
    "program",
    [
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


@pytest.mark.parametrize(
    "program",
    [
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


def test_an_object_without_fields_is_not_exchanged():
    class Plain:
        def __init__(self, h):
            self.h = h

    @ag.function
    def f(xs):
        state = Plain(0.0)
        for v in xs:
            state = Plain(state.h + v)
        return state.h

    with pytest.raises(StagingError, match="one Plain before a loop.* another one after") as caught:
        f(ag.constant([1.0]))
    assert "set the attributes of 'state' instead of exchanging it, or make Plain a dataclass" in str(caught.value)
