"""Objects whose attributes lie in ``__slots__`` are state of staged code like any other."""

from __future__ import annotations

import dataclasses
import gc
import weakref

import pytest

import autograph as ag
from autograph.operators.attributes import attributes_of
from runtime.engine import background


@dataclasses.dataclass
class Fields:
    __slots__ = ("items", "value")
    value: object
    items: object


class Plain:
    __slots__ = ("__kept", "items", "value")

    def __init__(self, value, items):
        self.value = value
        self.items = items

    def add(self, step):
        self.value = self.value + step
        self.items.append(step)

    def keep(self, value):
        self.__kept = value

    def kept(self):
        return self.__kept


class Wider(Plain):
    def __init__(self, value, items):
        super().__init__(value, items)
        self.more = 0.5


def plain(value):
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else round(float(value), 4)


def bump(thing, step):
    thing.value = thing.value + step


def mark(thing):
    thing.value = 1.0


def a_dataclass_in_a_loop(x, y):
    thing = Fields(x, [y])
    for v in ag.stack([x, y]):
        bump(thing, v)
    return thing.value


def a_python_value_in_a_branch(x, y):
    thing = Fields(0.0, [y])
    if x > 0.2:
        mark(thing)
    return thing.value


def a_method_in_a_branch(x, y):
    thing = Plain(x, [y])
    if x > 0.2:
        thing.add(y)
    return thing.value, thing.items


def a_method_in_a_loop(x, y):
    thing = Plain(x, [y])
    for v in ag.stack([x, y]):
        thing.add(v)
    return thing.value, thing.items


def slots_beside_other_attributes(x, y):
    thing = Wider(x, [y])
    for v in ag.stack([x, y]):
        thing.add(v)
        thing.more = thing.more + v
    return thing.value, thing.items, thing.more


def a_private_slot(x, y):
    thing = Plain(x, [y])
    thing.keep(0.5)
    if x > 0.2:
        thing.keep(y)
    return thing.kept()


def held_by_a_list(x, y):
    thing = Plain(x, [y])
    if x > 0.2:
        for each in [thing]:
            each.add(1.0)
    return thing.value, len(thing.items)


@pytest.mark.parametrize("point", [(0.15, 0.05), (0.9, 0.1)])
@pytest.mark.parametrize(
    "program",
    [
        a_dataclass_in_a_loop,
        a_python_value_in_a_branch,
        a_method_in_a_branch,
        a_method_in_a_loop,
        slots_beside_other_attributes,
        a_private_slot,
        held_by_a_list,
    ],
)
def test_as_in_python(program, point):
    x, y = map(ag.constant, point)
    assert plain(ag.function(program)(x, y)) == plain(program(x, y))


def test_an_unset_slot_is_no_attribute():
    thing = Wider(1.0, [])
    del thing.value
    attributes = attributes_of(thing)
    assert dict(attributes) == {"items": [], "more": 0.5}
    attributes["value"] = 2.0
    del attributes["more"]
    assert thing.value == 2.0 and not hasattr(thing, "more")


def test_classes_are_not_kept_alive():
    background.worker.wait()  # importing the code generator counts all objects as old

    class Passing:
        __slots__ = ("value",)

    assert attributes_of(Passing()) == {}
    gone = weakref.ref(Passing)
    del Passing
    gc.collect()
    assert gone() is None
