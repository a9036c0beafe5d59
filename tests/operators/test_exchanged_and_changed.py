"""Containers that one way through a program exchanges and another changes in place: as eager Python, or refused."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError
from autograph.operators import aliases

POINTS = [(0.9, 0.8), (0.1, 0.2), (0.9, 0.1), (0.1, 0.7)]


@dataclasses.dataclass
class Pair:
    v: object
    w: object


class Box:
    def __init__(self, v, items):
        self.v = v
        self.items = items


def plain(value):
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    return float(value)


def agree(found, expected):
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(agree, found, expected))
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(agree(found[key], each) for key, each in expected.items())
    return abs(found - expected) < 1e-5


def a_new_list_or_a_longer_one(x, y):
    items = [1.0]
    if y > 0.5:
        items = [y]
    else:
        items.append(x)
    return items


def a_new_list_or_a_shorter_one(x, y):
    items, first = [x, y], 0.0
    if x > 0.5:
        items = [1.0]
    else:
        first = items.pop(0)
    return items, first, len(items)


def a_new_list_or_another_item(x, y):
    items = [x, y]
    if x > 0.5:
        items = [1.0, 2.0]
    else:
        items[0] = 7.0 * y
    return items


def changed_and_then_exchanged(x, y):
    items = [x, y, 0.5]
    if x > 0.5:
        items.extend([0.5, x])
        items = [1.0]
    return items


def a_list_that_is_staged_already(x, y):
    items = [1.0]
    if x > 0.05:
        items.append(x)
    if y > 0.5:
        items = [y]
    else:
        items.append(y)
    return items


def a_second_name_sees_its_own_list(x, y):
    items = [1.0]
    other = items
    if y > 0.5:
        items = [y]
    else:
        items.append(x)
    return items, other


def two_names_for_a_new_list(x, y):
    if x > 0.5:
        one = other = [x]
    else:
        one = other = [1.0]
    one[0] = y
    return other


def a_new_dictionary_or_another_value(x, y):
    table = {"k": x, "items": [x]}
    if x > 0.5:
        table = {"k": 1.0, "items": [y]}
    else:
        table["k"] = y
        table["items"].append(x * y)
    return table


def a_new_dataclass_or_another_field(x, y):
    pair = Pair(x, 0.5)
    if x > 0.5:
        pair = Pair(y, x)
    else:
        pair.v = 3.0 * y
    return pair.v, pair.w


def a_new_object_or_other_attributes(x, y):
    box = Box(x, [x])
    if x > 0.5:
        box = Box(y, [y])
    else:
        box.v = 3.0 * y
        box.items.append(y)
    return box.v, box.items


def an_attribute(x, y):
    box = Box(x, [1.0])
    if x > 0.5:
        box.items = [x]
    else:
        box.items.append(y)
    return box.items


def a_list_in_a_list(x, y):
    rows = [[1.0], [2.0]]
    if x > 0.5:
        rows[0] = [x]
    else:
        rows[0].append(y)
    return rows


def rows_that_take_turns(x, y):
    rows = [[x], [y, x]]
    if y > 0.5:
        rows = [rows[1], rows[0]]
    else:
        rows[0].append(x)
    return rows


def in_a_loop(x, y):
    items = [1.0]
    for i in ag.range(4):
        if i > 2 and y > 0.5:
            items = [x]
        else:
            items.append(y)
    return items


def at_an_item_that_may_move(x, y):
    items = [x, y, 0.5]
    if x > 0.3:
        items.append(y)
    elif len(items) > 0:
        items[0] = 7.0
    return items


def beside_a_branch_that_raises(x, y):
    pair, items = Pair(x, y), [x]
    same = items
    if x > 10.0:
        raise ValueError("no")
    else:
        pair.v = y
        items.append(y)
    same.append(2.0)
    return pair.v, items, same


def in_a_match(x, y):
    items = [x]
    match ag.cast(x * 4.0, ag.int32) % 3:
        case 0:
            items.append(0.5)
        case 1:
            items = items[1:]
    return items, len(items)


def what_a_function_returns(x, y):
    def changed(items, value):
        if value > 0.3:
            return items
        return [value, value * 0.5]

    return changed([x], y)


def list_of_the_same_length_from_an_outer_variable(x, y):
    items = [x, 0.5]

    def change():
        nonlocal items
        items = [y, 1.0]

    if x > 0.5:
        change()
    else:
        items[1] = y
    return items


def an_object_made_beside_a_branch_that_raises(x, y):
    box = Box(0.25, [x])
    if y < 0.0:
        y = y + 1.0
    elif x < 10.0:
        box = Box(y - x, [y])
    else:
        raise ValueError("no")
    return box.v, box.items


def a_staged_list_gets_a_list_of_python_in_a_loop(x, y):
    items = [x]
    if y > 0.5:
        items.append(y)
    for i in ag.range(3):
        if i % 2 == 0:
            items = [x * y]
        else:
            items = items + [y]
    return items


def lists_in_things_that_a_loop_exchanges(x, y):
    table, box = {"k": x, "items": [y]}, Box(y, [x])
    for i in ag.range(3):
        table = {"k": table["k"] * x, "items": table["items"] + [x]}
        if y > 0.5:
            table["items"] = [x * y]
        box = Box(box.v * x, box.items[1:] + [x, y])
    return table, box.v, box.items


def names_that_take_turns(x, y):
    one, other = [x], [y]
    if x > 0.5:
        one, other = other, one
    if y > 0.5:
        one = [x, y]
    one.append(1.0)
    return one, other


def an_attribute_whose_list_nobody_else_needs(x, y):
    items, box = [], Box(0.5, [])
    if x > 0.5:
        box = box
        box.v = y
    else:
        box.items = items
    box.items.append(y)
    return box.v, box.items


def empty_lists_that_are_two(x, y):
    table = {"k": []}
    if x > 0.5:
        table["k"] = []
    else:
        table["k"].append(x)
    table["k"].append(y)
    return table


def lists_in_a_queue(x, y):
    items = [x]
    queue = collections.deque([items])

    def push():
        queue[0].append(y)

    if x > 0.5:
        push()
    for v in ag.stack([x, y]):
        queue[-1].append(v)
    return items, len(queue[0])


SAME = [
    lists_in_a_queue,
    an_object_made_beside_a_branch_that_raises,
    a_staged_list_gets_a_list_of_python_in_a_loop,
    lists_in_things_that_a_loop_exchanges,
    names_that_take_turns,
    an_attribute_whose_list_nobody_else_needs,
    empty_lists_that_are_two,
    a_new_list_or_a_longer_one,
    a_new_list_or_a_shorter_one,
    a_new_list_or_another_item,
    changed_and_then_exchanged,
    a_list_that_is_staged_already,
    a_second_name_sees_its_own_list,
    two_names_for_a_new_list,
    a_new_dictionary_or_another_value,
    a_new_dataclass_or_another_field,
    a_new_object_or_other_attributes,
    an_attribute,
    a_list_in_a_list,
    rows_that_take_turns,
    in_a_loop,
    at_an_item_that_may_move,
    beside_a_branch_that_raises,
    in_a_match,
    what_a_function_returns,
    list_of_the_same_length_from_an_outer_variable,
]


def value_and_slopes(function, x, y):
    with ag.GradientTape() as tape:
        tape.watch([x, y])
        result = function(x, y)
        tensors = [each for each in ag.nest.flatten(result) if isinstance(each, ag.Tensor) and each.dtype.is_floating]
        target = ag.add_n([each * (k + 1.0) for k, each in enumerate(tensors)])
    return plain(result), plain(tape.gradient(target, [x, y], unconnected_gradients="zero"))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("program", SAME)
def test_as_in_python(program, compiled):
    function = ag.function(program, jit_compile=compiled)
    for point in POINTS:
        x, y = map(ag.constant, point)
        expected = plain(program(x, y))
        found, slopes = value_and_slopes(function, x, y)
        assert agree(found, expected), (point, found, expected)
        step = 1e-3
        for position in range(2):
            moved = [list(point), list(point)]
            moved[0][position] += step
            moved[1][position] -= step
            sides = [np.hstack(flat(plain(program(*map(ag.constant, each))))) for each in moved]
            results = flat(plain(program(x, y)))
            weights = weights_of(program(x, y), function(x, y))
            assert len(weights) == len(results)
            slope = float(((sides[0] - sides[1]) / (2 * step) * weights).sum())
            assert abs(slopes[position] - slope) < 2e-2, (point, position, slopes, slope)


def flat(value):
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in flat(value[key])]
    if isinstance(value, list):
        return [leaf for each in value for leaf in flat(each)]
    return [value]


def weights_of(eager, staged):
    """The weight that `value_and_slopes` gives each number of a result: lengths are no floats and have none."""
    weights, count = [], 0
    for each in ag.nest.flatten(staged):
        is_float = isinstance(each, ag.Tensor) and each.dtype.is_floating
        count += is_float
        weights.append(float(count) if is_float else 0.0)
    return np.array(weights)


def the_new_name_is_changed_too(x, y):
    items = [x]
    other = items
    if y > 0.5:
        items = [y]
    else:
        items.append(x)
    items.append(1.0)
    return items, other


def new_lists_with_one_name_on_one_way(x, y):
    if x > 0.5:
        one = other = [x]
    else:
        one, other = [1.0], [2.0]
    one[0] = y
    return other


def held_by_an_object(x, y):
    items = [0.5, x]
    box = Box(y, items)
    if x > 0.5:
        items = [v for v in items if v > 0.1]
    items.append(y)
    return items, box.items


def chosen_in_a_branch_of_a_branch(x, y):
    one, other = [y], [x]
    if x > 0.5:
        one = one[1:]
    else:
        if y > 0.5:
            other.append(x)
            one = other
    one.clear()
    return one, other


def chosen_in_an_earlier_iteration(x, y):
    one, other = [y], [x]
    for i in ag.range(3):
        one.append(x)
        if i > 1:
            one = other
    return one, other


def one_name_grows_while_the_other_is_exchanged(x, y):
    other = [0.0]
    items = other
    for v in ag.stack([x, y]):
        items.append(v)
        other = other + [v]
    return items, other


def a_dictionary_is_exchanged_and_its_list_grows(x, y):
    items = [0.0]
    table = {"items": items}
    for v in ag.stack([x, y]):
        items.append(v)
        table = {"items": table["items"]}
    return items, table


def both_lists_have_lost_their_names(x, y):
    first, second = [x], [y]
    one = first if x > 0.5 else second
    other = first if y > 0.5 else second
    first = second = None
    other.append(1.0)
    return one


def what_a_function_chose_changes_under_another_name(x, y):
    def chosen(items, value):
        if value > 0.3:
            return items
        return [value]

    items = [x]
    found = chosen(items, y)
    items += [1.0]
    return found


def an_empty_list_that_another_attribute_gets(x, y):
    items, box = [], Box(0.5, [])
    if x > 0.5:
        box.v = y
    else:
        box.items = items
    box.items.append(y)
    return items


def by_way_of_another_choice(x, y):
    one = [y, 0.5]
    other = one
    if x > 0.5:
        other = other + [x]
    elif y < 0.2:
        one = [x]
    other += [1.0]
    return one


def whose_last_use_is_a_conditional_expression(x, y):
    items = [1.0]
    table = {"items": items}
    if x > 0.5:
        items = [0.5]
    (items if y > 0.5 else items).append(x)
    return table


def a_set(x, y):
    one = {1}
    other = one
    if x > 0.5:
        other = {1}
    other.add(2)
    return one


@pytest.mark.parametrize(
    "program",
    [
        both_lists_have_lost_their_names,
        what_a_function_chose_changes_under_another_name,
        an_empty_list_that_another_attribute_gets,
        by_way_of_another_choice,
        whose_last_use_is_a_conditional_expression,
        a_set,
        the_new_name_is_changed_too,
        new_lists_with_one_name_on_one_way,
        held_by_an_object,
        chosen_in_a_branch_of_a_branch,
        chosen_in_an_earlier_iteration,
        one_name_grows_while_the_other_is_exchanged,
        a_dictionary_is_exchanged_and_its_list_grows,
    ],
)
def test_refused_where_names_would_part(program):
    with pytest.raises(StagingError, match="also has another name"):
        ag.function(program)(ag.constant(0.9), ag.constant(0.8))


def test_a_handler_does_not_swallow_what_cannot_be_staged():
    def program(x):
        parts = [x]
        try:
            if x > 0.5:
                parts = {"k": x}
        except TypeError:
            parts = [x * 2.0]
        return parts

    with pytest.raises(StagingError, match="'parts' is"):
        ag.function(program)(ag.constant(0.9))


def test_a_function_in_a_handler_that_becomes_a_clause():
    @ag.function
    def program(x):
        found = [x]
        try:
            if x > 0.5:
                raise ValueError("no")
        except ValueError:

            def note(value):
                found.append(value)

            note(x * 2.0)
        return found

    assert plain(program(ag.constant(0.75))) == [0.75, 1.5]
    assert plain(program(ag.constant(0.25))) == [0.25]


@pytest.mark.parametrize("n", [0, 1, 4])
def test_objects_exchanged_in_a_branch_of_a_loop(n):
    def program(x, n):
        box = Box(x, [1.0])
        for _ in ag.range(n):
            if n > 1:
                box = Box(box.v * 0.5, box.items)
        return box.v

    assert plain(ag.function(program)(ag.constant(0.5), ag.constant(n))) == plain(program(ag.constant(0.5), n))


@pytest.mark.parametrize("n", [1, 2])
def test_a_python_list_takes_the_items_of_a_staged_one(n):
    def program(x, n):
        items, other = [x], [0.5]
        for i in ag.range(n):
            items.append(x * 2.0)
        kept = other
        other.extend(items)
        kept.extend([1.0])
        return other

    x = ag.constant(0.25)
    assert plain(ag.function(program)(x, ag.constant(n))) == plain(program(x, n))


def test_what_may_be_one_is_looked_up_in_proportion_to_the_program(monkeypatch):
    def program(x, k):
        one, other, rows = [x], [x + 1.0], {"a": [x]}
        for i in range(k):
            if x > i:
                one, other = other, one
            else:
                rows = {"a": [x * i]}
        return one, other, rows

    steps = []
    before = aliases._Derivations._before
    monkeypatch.setattr(aliases._Derivations, "_before", lambda self, *pair: steps.append(pair) or before(self, *pair))
    counts = []
    for k in (10, 20, 40):
        steps.clear()
        ag.function(program).get_concrete_function(ag.constant(1.0), k)
        counts.append(len(steps))
    assert counts[2] < 2.5 * counts[1] < 7 * counts[0]
