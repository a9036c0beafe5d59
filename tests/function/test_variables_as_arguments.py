"""Variables passed to functions: one trace for those that the function can't tell apart, one each for those it can."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import autograph as ag


def count_of(function: Any) -> int:
    return function.experimental_get_tracing_count()


@pytest.mark.parametrize("jit_compile", [None, True, False])
def test_one_trace_for_variables_of_a_dtype_and_shape(jit_compile: Any) -> None:
    @ag.function(jit_compile=jit_compile)
    def step(v: Any, g: Any) -> Any:
        v.assign_sub(g)
        return v * 2.0

    first, second = ag.Variable([5.0, 6.0]), ag.Variable([1.0, 1.0], name="other")
    for v in (first, second, first, second):
        step(v, ag.constant([1.0, 2.0]))
    assert count_of(step) == 1
    assert first.numpy().tolist() == [3.0, 2.0] and second.numpy().tolist() == [-1.0, -3.0]
    assert len(step.pretty_printed_concrete_signatures().split("Input Parameters:")) == 2
    step(ag.Variable([[1.0, 2.0]]), ag.constant([[1.0, 2.0]]))
    step(ag.Variable([1.0, 2.0], trainable=False), ag.constant([1.0, 2.0]))
    assert count_of(step) == 3


def test_which_arguments_are_one_variable_counts() -> None:
    @ag.function
    def both(v: Any, w: Any) -> Any:
        v.assign_add(w)
        return v + w

    v, w = ag.Variable(1.0), ag.Variable(10.0)
    assert [float(both(*p)) for p in [(v, v), (v, w), (w, v), (w, w)]] == [4.0, 22.0, 34.0, 88.0]
    assert count_of(both) == 2
    assert float(v) == 12.0 and float(w) == 44.0


def test_structures_and_methods_share_too() -> None:
    class Sgd(ag.Module):
        def __init__(self) -> None:
            self.rate = 0.5
            self.steps = ag.Variable(0)

        @ag.function
        def apply(self, variables: Any, gradients: Any) -> None:
            for name in variables:
                variables[name].assign_sub(self.rate * gradients[name])
            self.steps.assign_add(1)

    optimizer = Sgd()
    for start in (1.0, 2.0, 3.0):
        parts = {"w": ag.Variable([start]), "b": ag.Variable(start)}
        optimizer.apply(parts, {"w": ag.constant([2.0]), "b": ag.constant(4.0)})
        assert parts["w"].numpy().tolist() == [start - 1.0] and float(parts["b"]) == start - 2.0
    assert count_of(optimizer.apply) == 1 and int(optimizer.steps) == 3
    optimizer.rate = 1.0
    v = {"w": ag.Variable([0.0]), "b": ag.Variable(0.0)}
    optimizer.apply(v, {"w": ag.constant([2.0]), "b": ag.constant(4.0)})
    assert v["w"].numpy().tolist() == [-2.0] and count_of(optimizer.apply) == 2


FROZEN = ag.Variable(1.0)
SLOTS: dict[Any, Any] = {}


def test_what_a_function_reaches_otherwise_has_its_own_trace() -> None:
    @ag.function
    def unless_frozen(v: Any) -> Any:
        if v is not FROZEN:
            v.assign_add(1.0)
        return v + 0.0

    a, b = ag.Variable(1.0), ag.Variable(1.0)
    assert [float(unless_frozen(v)) for v in (a, FROZEN, b, FROZEN, a)] == [2.0, 1.0, 2.0, 1.0, 3.0]
    assert count_of(unless_frozen) == 2

    scale = ag.Variable(10.0)

    @ag.function
    def scaled(v: Any) -> Any:
        v.assign_add(1.0)
        return v * scale

    assert float(scaled(a)) == 40.0 and float(scaled(b)) == 30.0 and count_of(scaled) == 1
    assert float(scaled(scale)) == 121.0, "the closure's variable and the argument are the same one"
    assert float(scaled(a)) == 55.0 and count_of(scaled) == 2

    @ag.function
    def with_momentum(v: Any) -> None:
        SLOTS[v.ref()].assign_add(v)

    SLOTS.update({a.ref(): ag.Variable(0.0), b.ref(): ag.Variable(0.0)})
    for v in (a, b, a):
        with_momentum(v)
    assert float(SLOTS[a.ref()]) == 10.0 and float(SLOTS[b.ref()]) == 3.0


def test_names_and_attributes_that_are_read_tell_variables_apart() -> None:
    @ag.function
    def decayed(v: Any) -> Any:
        return v * 0.0 if "bias" in v.name else v * 0.5

    assert float(decayed(ag.Variable(2.0, name="kernel"))) == 1.0
    assert float(decayed(ag.Variable(2.0, name="bias"))) == 0.0
    assert float(decayed(ag.Variable(4.0, name="kernel"))) == 2.0
    assert count_of(decayed) == 2

    @ag.function
    def through(v: Any) -> Any:
        return decayed(v)

    values = [float(through(ag.Variable(2.0, name=name))) for name in ("kernel", "bias", "kernel")]
    assert values == [1.0, 0.0, 1.0] and count_of(through) == 2

    @ag.function
    def rated(v: Any) -> Any:
        return v * v.rate

    slow, fast = ag.Variable(1.0), ag.Variable(1.0)
    slow.rate, fast.rate = 0.1, 3.0  # type: ignore[attr-defined]
    assert float(rated(slow)) == np.float32(0.1) and float(rated(fast)) == 3.0


def test_python_code_in_the_graph_keeps_its_variable() -> None:
    @ag.function
    def bump(v: Any) -> Any:
        ag.py_function(lambda: v.assign_add(1.0), [], ag.float32)
        return v + 0.0

    a, b = ag.Variable(1.0), ag.Variable(5.0)
    bump(a)
    bump(b)
    assert float(a) == 2.0 and float(b) == 6.0


def test_functions_inside_functions_and_gradients() -> None:
    @ag.function
    def square_into(v: Any, x: Any) -> Any:
        v.assign(v * x)
        return v * v

    @ag.function
    def two(v: Any, w: Any, x: Any) -> Any:
        return square_into(v, x) + square_into(w, x)

    a, b, c = ag.Variable(1.0), ag.Variable(2.0), ag.Variable(3.0)
    assert float(two(a, b, 2.0)) == 20.0
    assert float(two(c, a, 2.0)) == 52.0
    assert count_of(two) == 1
    assert [float(v) for v in (a, b, c)] == [4.0, 4.0, 6.0]

    @ag.function
    def loss(v: Any, x: Any) -> Any:
        return v * v * x

    for v, expected in ((a, 24.0), (c, 36.0)):
        x = ag.constant(3.0)
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = loss(v, x)
        gradients = tape.gradient(y, [v, x])
        assert [float(g) for g in gradients] == [expected, float(v) ** 2]
    assert count_of(loss) == 1


def test_assignments_before_an_error_are_those_of_the_given_variable() -> None:
    @ag.function
    def stops(v: Any, x: Any) -> Any:
        v.assign_add(1.0)
        ag.debugging.assert_positive(x)
        return v + x

    @ag.function
    def around(v: Any, x: Any) -> Any:
        return stops(v, x)

    for function in (stops, around):
        for v in (ag.Variable(1.0), ag.Variable(5.0)):
            function(v, ag.constant(1.0))
            before = float(v)
            with pytest.raises(ag.errors.InvalidArgumentError):
                function(v, ag.constant(-1.0))
            assert float(v) == before + 1.0
        assert count_of(function) == 1


def test_a_trace_keeps_no_variable_alive_that_it_was_called_with() -> None:
    @ag.function
    def double(v: Any) -> Any:
        return v * 2.0

    first = ag.Variable(1.0)
    double(first)
    later = [ag.Variable(float(i)) for i in range(5)]
    assert [float(double(v)) for v in later] == [0.0, 2.0, 4.0, 6.0, 8.0]
    references = [weakref.ref(v) for v in later]
    del later
    gc.collect()
    assert not any(r() is not None for r in references)
    for i in range(2000):
        assert float(double(ag.Variable(float(i)))) == 2.0 * i
    assert count_of(double) == 1


def test_concrete_functions_take_other_variables() -> None:
    @ag.function
    def add(v: Any, x: Any) -> Any:
        v.assign_add(x)
        return v + 0.0

    a, b = ag.Variable([1.0]), ag.Variable([10.0])
    concrete = add.get_concrete_function(a, ag.TensorSpec([1], ag.float32))
    assert concrete(b, ag.constant([1.0])).numpy().tolist() == [11.0]
    assert concrete(v=b, x=ag.constant([1.0])).numpy().tolist() == [12.0]
    assert a.numpy().tolist() == [1.0]
    assert concrete(x=ag.constant([1.0])).numpy().tolist() == [2.0], "left out: the one it was traced with"
    assert b.numpy().tolist() == [12.0]
    for wrong in (ag.Variable([1.0, 2.0]), ag.Variable([1]), ag.constant([1.0])):
        with pytest.raises(TypeError, match="'v' must be a variable like"):
            concrete(wrong, ag.constant([1.0]))

    @ag.function
    def reads_both(v: Any) -> Any:
        return v * b

    concrete = reads_both.get_concrete_function(a)
    assert concrete(ag.Variable([3.0])).numpy().tolist() == [36.0]
    with pytest.raises(ValueError, match="can't be called with other variables than it was traced with"):
        concrete(b)
