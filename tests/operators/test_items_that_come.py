"""Items that a list doesn't have yet when a staged loop or branch names them."""

from __future__ import annotations

import pytest

import autograph as ag


def plain(value):
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else round(float(value), 4)


def deleted_before_the_list_grows(x, y):
    items = []
    for v in ag.stack([x, y]):
        if x > 0.3:
            del items[0]
        items.extend([v, x])
    return items


def deleted_from_a_list_in_a_dictionary(x, y):
    table = {"items": []}
    for v in ag.stack([x, y]):
        if v > 0.5:
            del table["items"][0]
        table["items"].append(v)
    return table["items"]


def set_after_the_list_has_grown(x, y):
    items, last = [], 0
    for v in ag.stack([x, y]):
        if v > 0.2:
            items.append(v)
            items[last] = items[last] + 1.0
    return items


def set_in_a_list_of_lists(x, y):
    rows = [[]]
    for v in ag.stack([x, y]):
        rows[0].append(v)
        rows[0][0] = x + y
    return rows


def set_in_a_new_list(x, y):
    items = []
    if x > 0.2:
        items = [y]
        items[0] = x
    else:
        items.append(y)
    return items


def outcome(program, *arguments):
    try:
        return plain(program(*arguments))
    except IndexError:
        return IndexError


@pytest.mark.parametrize("point", [(0.15, 0.05), (0.1, 0.4), (0.9, 0.1), (0.1, 0.9)])
@pytest.mark.parametrize(
    "program",
    [
        deleted_before_the_list_grows,
        deleted_from_a_list_in_a_dictionary,
        set_after_the_list_has_grown,
        set_in_a_list_of_lists,
        set_in_a_new_list,
    ],
)
def test_as_in_python(program, point):
    x, y = map(ag.constant, point)
    assert outcome(ag.function(program), x, y) == outcome(program, x, y)
