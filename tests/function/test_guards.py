"""Guards on the Python values that a trace has baked in, and explanations of retraces."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any

import pytest

import autograph as ag

RATE = 0.5
CONFIG = SimpleNamespace(rate=2.0, nested=SimpleNamespace(flag=True))
CALLS = 0


def count_of(function: Any) -> int:
    return function.experimental_get_tracing_count()


def test_a_changed_global_is_seen() -> None:
    global RATE

    @ag.function
    def f(x: Any) -> Any:
        return x * RATE

    x = ag.constant(10.0)
    try:
        assert float(f(x)) == 5.0
        RATE = 0.25
        assert float(f(x)) == 2.5
        assert count_of(f) == 2
        RATE = 0.5
        assert float(f(x)) == 5.0
        assert count_of(f) == 2, "going back finds the first trace again"
        assert "global 'RATE'" in f.explain_retraces()
        assert "from 0.5 to 0.25" in f.explain_retraces()
    finally:
        RATE = 0.5


def test_a_changed_closure_variable_is_seen() -> None:
    offset = 1.0

    def inner(x: Any) -> Any:
        return x + offset

    @ag.function
    def f(x: Any) -> Any:
        return inner(x) * 2.0

    assert float(f(ag.constant(1.0))) == 4.0
    offset = 2.0
    assert float(f(ag.constant(1.0))) == 6.0


def test_changed_attributes_are_seen() -> None:
    @ag.function
    def f(x: Any) -> Any:
        return x * CONFIG.rate if CONFIG.nested.flag else x

    try:
        assert float(f(ag.constant(3.0))) == 6.0
        CONFIG.rate = 4.0
        assert float(f(ag.constant(3.0))) == 12.0
        CONFIG.nested.flag = False
        assert float(f(ag.constant(3.0))) == 3.0
    finally:
        CONFIG.rate, CONFIG.nested.flag = 2.0, True


def test_changed_attributes_of_self_are_seen_through_helpers() -> None:
    class Optimizer:
        def __init__(self) -> None:
            self.rate = 0.1

        def scaled(self, x: Any) -> Any:
            return x * self.rate

        @ag.function
        def step(self, x: Any) -> Any:
            return self.scaled(x) + 1.0

    optimizer = Optimizer()
    x = ag.constant(10.0)
    assert float(optimizer.step(x)) == 2.0
    optimizer.rate = 0.2
    assert float(optimizer.step(x)) == 3.0


def test_what_a_function_writes_itself_is_not_guarded() -> None:
    global CALLS
    CALLS = 0

    @ag.function
    def f(x: Any) -> Any:
        global CALLS
        CALLS += 1
        return x + 1.0

    for _ in range(3):
        f(ag.constant(1.0))
    assert CALLS == 1
    assert count_of(f) == 1


# --- explanations ----------------------------------------------------------------------------------------------------


def test_retraces_are_explained() -> None:
    @ag.function
    def f(x: Any, n: Any) -> Any:
        return x * n

    assert "has not been traced" in f.explain_retraces()
    f(ag.constant(1.0), 1)
    f(ag.constant([1.0]), 1)
    f(ag.constant([1.0]), 2)
    f(ag.constant([1]), 2)
    text = f.explain_retraces()
    assert "traced 4 times" in text
    assert "trace 2: argument 'x': shape () → (1,)" in text
    assert "trace 3: argument 'n': the Python value 1 → 2; pass it as a tensor" in text
    assert "trace 4: argument 'x': dtype float32 → int32" in text


def test_frequent_retraces_warn() -> None:
    @ag.function
    def f(n: int) -> Any:
        return n + 1

    with pytest.warns(UserWarning, match=r"'f' has been traced 8 times(.|\n)*argument 'n'"):
        for n in range(9):
            f(n)


def test_reduce_retracing() -> None:
    @ag.function(reduce_retracing=True)
    def f(x: Any) -> Any:
        return ag.reduce_sum(x)

    for n in range(1, 6):
        assert float(f(ag.ones([n]))) == n
    assert count_of(f) == 2


class Settings:
    def __init__(self, rate):
        self.rate = rate


def test_an_object_in_the_path_may_be_replaced():
    class Model:
        settings = Settings(2.0)

        @ag.function
        def __call__(self, x):
            return x * self.settings.rate

    model, before = Model(), Model.settings
    assert float(model(ag.constant(1.0))) == 2
    model.settings = Settings(5.0)
    assert float(model(ag.constant(1.0))) == 5, "the object that was read at first still exists and is unchanged"
    model.settings = before
    assert float(model(ag.constant(1.0))) == 2


def test_fields_of_arguments_are_no_guards_but_objects_in_them_are():
    @dataclasses.dataclass
    class Inputs:
        x: object
        scale: float
        settings: object

    @ag.function
    def f(inputs):
        return inputs.x * inputs.scale * inputs.settings.rate

    settings = Settings(2.0)
    for _ in range(3):
        assert float(f(Inputs(ag.constant(1.0), 3.0, settings))) == 6
    assert f.experimental_get_tracing_count() == 1
    settings.rate = 10.0
    assert float(f(Inputs(ag.constant(1.0), 3.0, settings))) == 30
    assert f.experimental_get_tracing_count() == 2
    assert "'inputs.settings.rate' (argument 'inputs') changed from 2.0 to 10.0" in f.explain_retraces()


def test_reasons_are_bounded() -> None:
    with pytest.warns(UserWarning, match="has been traced 256 times"):
        f = ag.function(lambda x, n: x + n)
        for n in range(300):
            f(1.0, n)
    lines = f.explain_retraces().splitlines()
    assert lines[0] == "'<lambda>' has been traced 300 times."
    assert "the reasons of 43 traces before are no longer kept" in lines[1]
    assert "trace 45:" in lines[2] and "trace 300:" in lines[-1] and len(lines) == 258
