"""What lies deep in objects is state of staged code like what lies near."""

from __future__ import annotations

import dataclasses

import pytest

import autograph as ag


@dataclasses.dataclass
class Node:
    inner: object


class Shell:
    def __init__(self, inner):
        self.inner = inner


def wrapped(value):
    for kind in (Node, Shell, Shell, Shell, Node, Shell, Shell):
        value = kind(value)
    return value


def core(shell):
    while isinstance(shell, (Node, Shell)):
        shell = shell.inner
    return shell


def plain(value):
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else round(float(value), 4)


def a_list_grows_in_a_branch(x, y):
    items = [x]
    shell = wrapped(items)
    if x > 0.5:
        core(shell).append(y)
    return items


def a_list_grows_in_a_loop(x, y):
    items = [x]
    shell = wrapped(items)
    for v in ag.stack([x, y]):
        core(shell).append(v)
    return items, len(items)


def an_item_becomes_a_number(x, y):
    items = [0.0, y]
    shell = wrapped(items)
    if x > 0.5:
        core(shell)[0] = 1.0
    return items


def lists_in_lists(x, y):
    items = [x]
    nest = [[[[[[[items]]]]]]]
    if x > 0.5:
        nest[0][0][0][0][0][0][0].append(y)
    return items


@pytest.mark.parametrize("point", [(0.1, 0.3), (0.9, 0.7)])
@pytest.mark.parametrize(
    "program", [a_list_grows_in_a_branch, a_list_grows_in_a_loop, an_item_becomes_a_number, lists_in_lists]
)
def test_as_in_python(program, point):
    x, y = map(ag.constant, point)
    assert plain(ag.function(program)(x, y)) == plain(program(x, y))


def test_near_objects_come_before_far_ones():
    def program(x, y):
        far, near = [[[Shell(None)] for _ in range(40)] for _ in range(40)], Shell(0.0)

        def mark(things, thing):
            thing.inner = 1.0
            return things

        if x > 0.5:
            mark(far, near)
        return near.inner

    function = ag.function(program)
    assert [float(function(ag.constant(x), ag.constant(0.0))) for x in (0.1, 0.9)] == [0.0, 1.0]
