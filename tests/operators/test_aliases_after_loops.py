"""Lists that get two names in a staged loop: as in eager Python, or refused."""

from __future__ import annotations

import pytest

import autograph as ag
from autograph.errors import StagingError


def plain(value):
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else round(float(value), 4)


def a_name_born_in_the_loop(x, y):
    table = {"items": [0.5]}
    other = [x]
    for v in ag.stack([x, y]):
        other = table["items"] if v > 0.2 else other
        born = table["items"]
    born.append(y)
    return len(other)


def a_name_born_in_the_loop_beside_one_from_before(x, y):
    items = [0.5]
    for _ in ag.stack([x, y]):
        born = items
    born.append(y)
    return len(items)


def two_names_born_in_the_loop(x, y):
    for _ in ag.stack([x, y]):
        one = other = [x]
    one.append(y)
    return len(other)


def one_iteration_makes_a_list_with_two_names(x, y):
    one, other = [0.5], [1.0]
    for _ in ag.stack([x, y]):
        one = other = [x]
    one.append(y)
    return len(other)


def an_item_of_a_dictionary(x, y):
    one, table = [x], {"items": [y]}
    for v in ag.stack([x, y]):
        one = [v]
        table["items"] = one
    table["items"][0] = x + y
    return one


def from_the_iteration_before(x, y):
    items, one, other = [x], [y], [0.5]
    for _ in ag.stack([x, y, x]):
        other = one
        one = items
    other.append(y)
    return len(one), len(items)


def from_the_iteration_before_by_item(x, y):
    items, one, other = [x], [y], [0.5]
    for _ in ag.stack([x, y, x]):
        other = one
        one = items
    other[0] = y
    return one, items


def changed_two_iterations_later(x, y):
    items, one, other = [x], [y], [0.5]
    for v in ag.stack([x, y, x]):
        other.append(v)
        other = one
        one = items
    return one, items


def what_another_name_had_before_the_loop(x, y):
    one, other = [x], [y]
    kept = one
    for v in ag.stack([x, y, x]):
        other.append(v)
        other = one
        one = [v]
    return kept, one


def a_choice_of_what_the_iteration_before_took(x, y):
    items, other = [x, y], [0.5]
    for v in ag.stack([x, y]):
        if y < 0.6:
            items = items + [v]
        del items[0]
        items = other
    del items[0]
    return items


def a_choice_that_a_closure_makes(x, y):
    items, other = [x, y], [0.5]
    for v in ag.stack([x, y]):

        def add():
            nonlocal items
            items = items + [v]

        if y < 0.6:
            add()
        del items[0]
        items = other
    del items[0]
    return items


def an_item_that_only_the_other_name_gets(x, y):
    one, other = [], [1.0]
    (one if x > 0.5 else other).append(y)
    one[0] = y
    return one


REFUSED = [
    an_item_that_only_the_other_name_gets,
    a_choice_of_what_the_iteration_before_took,
    a_choice_that_a_closure_makes,
    from_the_iteration_before,
    from_the_iteration_before_by_item,
    changed_two_iterations_later,
    what_another_name_had_before_the_loop,
    a_name_born_in_the_loop,
    a_name_born_in_the_loop_beside_one_from_before,
    two_names_born_in_the_loop,
    one_iteration_makes_a_list_with_two_names,
    an_item_of_a_dictionary,
]


@pytest.mark.parametrize("program", REFUSED)
def test_refused_where_names_would_part(program):
    with pytest.raises(StagingError, match="also has another name"):
        ag.function(program)(ag.constant(0.9), ag.constant(0.8))


def names_that_take_turns(x, y):
    one, other, third = [x], [y], [0.0]
    for v in ag.stack([x, y, x]):
        third, other, one = other, one, [v]
    one[0] = x + 1.0
    return one, other, third


def a_list_and_the_one_before_it(x, y):
    items, before = [x], [y]
    for v in ag.stack([x, y]):
        before = items
        items = items + [v]
    before.append(1.0)
    return items, before


def two_names_that_are_only_read(x, y):
    items = [x]
    for _ in ag.stack([x, y]):
        born = items
    return born, items, len(born)


@pytest.mark.parametrize("program", [names_that_take_turns, a_list_and_the_one_before_it, two_names_that_are_only_read])
def test_as_in_python(program):
    x, y = ag.constant(0.9), ag.constant(0.8)
    assert plain(ag.function(program)(x, y)) == plain(program(x, y))
