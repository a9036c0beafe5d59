"""What lies deep in objects is state of staged code like what lies near."""

from __future__ import annotations

import dataclasses
import gc
from types import ModuleType

import pytest

import autograph as ag
from autograph.errors import StagingError
from autograph.operators import evaluation_stack, live


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


def one_of_many_objects_changes_in_a_branch(x, y):
    things = [Shell(0.0) for _ in range(700)]
    if x > 0.5:
        things[-1].inner = 1.0
    return [things[-1].inner, things[0].inner]


def one_of_many_objects_changes_in_a_loop(x, y):
    things = {f"key {index}": Node([Shell(0.0)]) for index in range(700)}
    for v in ag.stack([x, y]):
        things["key 699"].inner[0].inner += v
    return [things["key 699"].inner[0].inner, things["key 0"].inner[0].inner]


def one_of_many_lists_grows(x, y):
    rows = [[0.0] for _ in range(700)]
    last = rows[-1]
    for v in ag.stack([x, y]):
        rows[-1].append(v)
    return [last, len(last), rows[0], rows[699]]


def a_number_at_the_end_of_a_long_chain(x, y):
    core = shell = Shell(0.0)
    for _ in range(700):
        shell = Shell(shell)

    def end(shell):
        while isinstance(shell.inner, Shell):
            shell = shell.inner
        return shell

    if x > 0.5:
        end(shell).inner = 1.0
    return [core.inner, end(shell).inner]


@pytest.mark.parametrize("point", [(0.1, 0.3), (0.9, 0.7)])
@pytest.mark.parametrize(
    "program",
    [
        one_of_many_objects_changes_in_a_branch,
        one_of_many_objects_changes_in_a_loop,
        one_of_many_lists_grows,
        a_number_at_the_end_of_a_long_chain,
    ],
)
def test_many_objects_as_in_python(program, point):
    x, y = map(ag.constant, point)
    assert plain(ag.function(program)(x, y)) == plain(program(x, y))


def test_a_list_chosen_far_away_is_watched():
    def program(x, y):
        far = [[index * 1.0] for index in range(700)]
        found = [y]
        if x > 0.5:
            found = far[699]
        found[0] = 5.0
        return far[699][0]

    with pytest.raises(StagingError, match="one of the two is changed"):
        ag.function(program)(ag.constant(0.9), ag.constant(0.0))


def test_looking_at_many_objects_is_linear():
    """Twice the objects are twice the work, for each construct."""

    def looks(count):
        things = [[Shell([0.0])] for _ in range(count)]

        def program(x, y):
            found = [y]
            for v in ag.stack([x, y]):
                if v > 0.5:
                    found = [v, things[-1][0].inner[0]][:1]
                found[0] += 1.0
            return found

        seen = 0

        def counted(value):
            nonlocal seen
            seen += 1
            return places(value)

        places = live.places_of
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(live, "places_of", counted)
            patch.setattr(evaluation_stack, "places_of", counted)
            ag.function(program)(ag.constant(0.9), ag.constant(0.0))
        return seen

    small, large = looks(200), looks(800)
    assert large < 4.5 * small


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


COUNTING = """
ticks = 0

def tick(phase, info):
    global ticks
    ticks += 1

def scale(x):
    return x * 2
"""


def test_what_a_collection_of_garbage_changes_is_no_state():
    """Nor what another thread changes: code that a block reaches changes only the variables that it names."""
    module = ModuleType("counting")
    exec(COUNTING, vars(module))

    @ag.function
    def doubled(t):
        s = 0.0
        for v in t:
            gc.collect()
            s += module.scale(v)
        return s

    gc.callbacks.append(module.tick)
    try:
        assert float(doubled(ag.constant([1.0, 2.0]))) == 6.0
    finally:
        gc.callbacks.remove(module.tick)
    assert type(module.ticks) is int and module.ticks >= 2
