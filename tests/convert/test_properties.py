"""Properties of the user's classes: converted when converted code reads them."""

from __future__ import annotations

import dataclasses
from types import FunctionType, ModuleType

import pytest

import autograph as ag


class Box:
    def __init__(self, x):
        self.x = x

    @property
    def size(self):
        return self.x if self.x > 0 else -self.x

    @property
    def twice(self):
        total = self.size
        if total > 4:
            return total
        return total * 2

    def grown(self, n):
        while n > 0 and self.size < 100:
            self.x = self.x * 2
            n -= 1
        return self.twice


class Special(Box):
    @property
    def size(self):
        return super().size + (1 if self.x > 2 else 0)


def program(x, n):
    box, special = Box(x), Special(x)
    return box.size, special.twice, box.grown(n), special.grown(n)


@pytest.mark.parametrize(("x", "n"), [(3, 2), (-3, 2), (1, 0), (50, 5)])
def test_properties_stage(x, n):
    staged = ag.function(program)(ag.constant(x), ag.constant(n))
    assert [int(each) for each in staged] == list(program(x, n))


def test_a_class_of_the_function_around():
    class Local:
        def __init__(self, x):
            self.x = x

        @property
        def sign(self):
            if self.x > 0:
                return 1
            return -1

    @ag.function
    def f(x):
        return Local(x).sign

    assert int(f(ag.constant(-3))) == -1


def test_a_class_that_the_function_defines():
    def f(x):
        class Local:
            @property
            def sign(self):
                if x > 0:
                    return 1
                return -1

        return Local().sign

    assert int(ag.function(f)(ag.constant(-2))) == -1


def test_a_class_of_a_module_that_the_function_can_see():
    module = ModuleType("models")
    module.__file__ = "models.py"
    module.Box = Box

    def f(x, n):
        box = module.Box(x)
        return box.size, box.twice

    f = FunctionType(f.__code__, {"__name__": "programs"}, "f", None, f.__closure__)
    assert [int(each) for each in ag.function(f)(ag.constant(-2), 0)] == [2, 4]


def test_a_class_out_of_sight_is_refused_at_the_line_of_its_getter():
    found = {"class": [Box]}

    def f(x):
        return found["class"][0](x).size

    f = FunctionType(f.__code__, {"__name__": "programs"}, "f", None, f.__closure__)
    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError) as caught:
        ag.function(f)(ag.constant(-2))
    message = str(caught.value)
    assert "in size\n      return self.x if self.x > 0 else -self.x\n" in message
    assert "the getter of the property 'size' isn't converted" in message
    assert "fix: make it a method" in message


def test_a_special_method_is_refused_at_its_line():
    class Vector:
        def __init__(self, x):
            self.x = x

        def __len__(self):
            if self.x > 0:
                return 1
            return 2

    with pytest.raises(ag.errors.OperatorNotAllowedInGraphError, match="special method '__len__' itself"):
        ag.function(lambda x: len(Vector(x)))(ag.constant(1))


def test_other_attributes_stay():
    def f(box, other):
        box.x = other.y
        return box.size + box.x

    text = ag.autograph.to_code(f)
    assert "ag__.attribute(box, 'size') + box.x" in text
    assert "box.x = other.y" in text


def test_an_attribute_error_in_a_property_reaches_getattr():
    class Odd:
        @property
        def size(self):
            return self.missing

        def __getattr__(self, name):
            return f"no {name}"

    def f(odd):
        return odd.size

    assert ag.function(lambda x: (x, len(f(Odd()))))(ag.constant(1))[1].numpy() == len(f(Odd()))


@pytest.mark.parametrize("frozen", [False, True])
def test_what_a_dataclass_does_after_it_is_made(frozen):
    @dataclasses.dataclass(frozen=frozen)
    class Range:
        low: object
        high: object = 0

        def __post_init__(self):
            if self.low > self.high:
                low, high = self.high, self.low
                object.__setattr__(self, "low", low)
                object.__setattr__(self, "high", high)

    @ag.function
    def f(x):
        made = Range(x, 3)
        assert set(vars(made)) == {"low", "high"}
        return made.low, made.high

    assert [[int(each) for each in f(ag.constant(x))] for x in (1, 5)] == [[1, 3], [3, 5]]
