"""Tracing changes no object of the program's, whatever a tensor chooses between."""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import enum
import gc
import math
import types
from typing import NamedTuple

import numpy as np
import pytest

import autograph as ag
from autograph.errors import StagingError
from autograph.operators.attributes import twin


class Phase(enum.Enum):
    IDLE = 0
    BUSY = 1


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Size(NamedTuple):
    width: int
    height: int


@dataclasses.dataclass
class Spot:
    x: float


class Screen(Size, enum.Enum):
    SMALL = (1, 2)
    LARGE = (3, 4)


class Corner(Spot, enum.Enum):
    LEFT = 1.0
    RIGHT = 2.0


class Weighed(enum.Enum):
    LIGHT = 1
    HEAVY = 2

    def __init__(self, weight):
        self.weight = weight * 10.0


class Plain:
    def __init__(self, cost):
        self.cost = cost


class Slotted:
    __slots__ = ("cost",)

    def __init__(self, cost):
        self.cost = cost


@dataclasses.dataclass(frozen=True)
class Frozen:
    cost: float


@dataclasses.dataclass(frozen=True, slots=True)
class FrozenSlotted:
    cost: float


class OfTheirOwn:
    """One object for each name, which copies and `__new__` give again."""

    known: dict = {}

    def __new__(cls, name="first"):
        if name not in cls.known:
            cls.known[name] = object.__new__(cls)
            cls.known[name].cost = float(len(name))
        return cls.known[name]


@dataclasses.dataclass
class CopiedAsItself:
    cost: float

    def __copy__(self):
        return self

    def __reduce__(self):
        return "CopiedAsItself"


class Derived(Frozen):
    def __copy__(self):
        return self


class Counted(dict):
    pass


class Failure(Exception):
    def __init__(self, cost):
        super().__init__(cost)
        self.cost = cost


def first(x):
    return x


def second(x):
    return x * 2.0


def pairs():
    return {
        "enum": (Phase.IDLE, Phase.BUSY),
        "int enum": (Level.LOW, Level.HIGH),
        "flag": (Right.READ, Right.WRITE),
        "combined flags": (Right.READ, Right.READ | Right.WRITE),
        "enum of named tuples": (Screen.SMALL, Screen.LARGE),
        "enum of dataclasses": (Corner.LEFT, Corner.RIGHT),
        "enum with attributes": (Weighed.LIGHT, Weighed.HEAVY),
        "members of two enums": (Phase.IDLE, Level.LOW),
        "enum or None": (Phase.IDLE, None),
        "objects": (Plain(1.0), Plain(2.0)),
        "objects with slots": (Slotted(1.0), Slotted(2.0)),
        "frozen": (Frozen(1.0), Frozen(2.0)),
        "frozen with slots": (FrozenSlotted(1.0), FrozenSlotted(2.0)),
        "one for each name": (OfTheirOwn("first"), OfTheirOwn("other")),
        "copied as itself": (CopiedAsItself(1.0), CopiedAsItself(2.0)),
        "derived": (Derived(1.0), Derived(2.0)),
        "named tuples": (Size(1, 2), Size(3, 4)),
        "dictionaries": ({"cost": 1.0}, {"cost": 2.0}),
        "derived dictionaries": (Counted(cost=1.0), Counted(cost=2.0)),
        "lists": ([1.0], [2.0]),
        "classes": (Plain, Slotted),
        "functions": (first, second),
        "methods": (Plain(1.0).__init__, Plain(2.0).__init__),
        "modules": (math, types),
        "errors": (Failure(1.0), Failure(2.0)),
        "strings": ("a", "b"),
    }


PAIRS = pairs()


def in_branch(one, other, t):
    chosen = one
    if t[0] > 1.0:
        chosen = other
    return looked_at(chosen, one)


def in_expression(one, other, t):
    return looked_at(other if t[0] > 1.0 else one, one)


def in_loop(one, other, t):
    chosen, n = one, 0.0
    for v in t:
        n += looked_at(chosen, one)
        chosen = other if v > 1.0 else one
    return n


def in_nested_loop(one, other, t):
    chosen, n = one, 0.0
    for v in t:
        while n < v:
            n += 1.0
            if chosen is one:
                chosen = other
        n += looked_at(chosen, other)
    return n


def in_attribute(one, other, t):
    box = Plain(one)
    for v in t:
        if v > 1.0:
            box.cost = other
    return looked_at(box.cost, one)


def in_item(one, other, t):
    held = {"now": one, "rest": [one, other]}
    for v in t:
        if v > 1.0:
            held["now"] = other
            held["rest"][0] = other
    return looked_at(held["now"], held["rest"][0])


def looked_at(chosen, one):
    n = 1.0 if chosen == one else 0.0
    return n + (chosen.cost if hasattr(chosen, "cost") else 0.0)


def state_of(*roots):
    """What is in everything that can be reached from some objects, by their ids."""
    found, waiting = {}, list(roots)
    while waiting:
        value = waiting.pop()
        if id(value) in found or isinstance(value, types.ModuleType):
            continue
        inside = dict(vars(value)) if hasattr(value, "__dict__") else {}
        inside.pop("__slotnames__", None)  # where `copyreg` remembers what it has found
        for base in type(value).__mro__:
            for name in vars(base).get("__slots__", ()):
                inside[name] = getattr(value, name, None)
        if isinstance(value, dict):
            inside |= {("item", key): item for key, item in value.items()}
        elif isinstance(value, (list, tuple)):
            inside |= {("item", key): item for key, item in enumerate(value)}
        found[id(value)] = {name: (id(item), repr(item)) for name, item in inside.items()}, value
        kind = [type(value)] if type(value).__module__ == __name__ else []
        waiting += [*kind, *[each for each in inside.values() if not isinstance(each, types.BuiltinFunctionType)]]
    return {key: inside for key, (inside, _) in found.items()}


PROGRAMS = [in_branch, in_expression, in_loop, in_nested_loop, in_attribute, in_item]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("name", PAIRS)
def test_objects_are_as_before(program, name):
    one, other = PAIRS[name]
    before = state_of(one, other)

    def chosen(t):
        return program(one, other, t)

    try:
        ag.function(chosen)(ag.constant([0.0, 2.0, 3.0, 0.0, 2.0]))
    except (StagingError, TypeError, AttributeError):
        pass
    assert state_of(one, other) == before
    gc.collect()  # nor does what the trace leaves change them when it goes
    assert state_of(one, other) == before


@pytest.mark.parametrize("name", [name for name, (one, _) in PAIRS.items() if hasattr(one, "cost")])
def test_a_twin_is_another_object(name):
    one, other = pairs()[name]
    made = twin(one)
    assert made is not one and type(made) is type(one) and made.cost == one.cost
    made = twin(one, {"cost": 5.0})
    assert (made.cost, one.cost, other.cost) == (5.0, 1.0 if name != "one for each name" else 5.0, other.cost)


def test_a_twin_has_attributes_of_its_own_even_if_a_copy_shares_them(monkeypatch):
    def copied(attributes):
        made = Failure(0.0)
        made.__dict__ = attributes
        return made

    monkeypatch.setitem(copyreg.dispatch_table, Failure, lambda error: (copied, (error.__dict__,)))
    one = Failure(1.0)
    assert copy.copy(one).__dict__ is one.__dict__
    made = twin(one)
    assert (made.cost, one.cost) == (1.0, 1.0)
    made = twin(one, {"cost": 5.0})
    assert (made.cost, one.cost) == (5.0, 1.0)


def test_a_twin_of_what_cannot_be_copied_is_refused():
    class Only(list):
        def __copy__(self):
            return self

    with pytest.raises(TypeError):
        twin(Only())


def test_copies_are_right_where_a_class_gives_the_object_itself():
    a, b = PAIRS["copied as itself"]
    assert copy.copy(a) is a

    @ag.function
    def chosen(x):
        spot = a if x > 0.0 else b
        return spot.cost

    assert float(chosen(ag.constant(1.0))) == 1.0
    assert float(chosen(ag.constant(-1.0))) == 2.0
    assert (a.cost, b.cost) == (1.0, 2.0)


def test_a_member_is_one_value_among_arguments():
    assert ag.nest.flatten((Screen.SMALL, Corner.LEFT)) == [Screen.SMALL, Corner.LEFT]

    @ag.function
    def wide(screen, x):
        return x * screen.width + (1.0 if screen is Screen.SMALL else 0.0)

    x = ag.constant(2.0)
    np.testing.assert_allclose([wide(Screen.SMALL, x), wide(Screen.LARGE, x)], [3.0, 6.0])
