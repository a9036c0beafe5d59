"""The contract of `ag.function`: when it traces, what its keys are, what it guards, and what it refuses."""

from __future__ import annotations

import functools
import gc
import threading
import warnings
import weakref
from collections import namedtuple
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import autograph as ag

RATE = 0.5
CONFIG = SimpleNamespace(rate=2.0, nested=SimpleNamespace(flag=True))
CALLS = 0


def count_of(function: Any) -> int:
    return function.experimental_get_tracing_count()


# --- keys ------------------------------------------------------------------------------------------------------------


def test_traces_by_dtype_shape_and_python_value() -> None:
    @ag.function
    def f(x: Any, n: Any = 2) -> Any:
        return x * n

    for args, traces in [
        ((ag.constant(1.0),), 1), ((ag.constant(2.0),), 1), ((ag.constant(1),), 2), ((ag.constant([1.0]),), 3),
        ((ag.constant([1.0, 2.0]),), 4), ((ag.constant(1.0), 2), 4), ((ag.constant(1.0), 3), 5),
        ((np.float32(3.0),), 5), ((ag.constant(1.0), 2.0), 6), ((1.0,), 7),
    ]:  # fmt: skip
        f(*args)
        assert count_of(f) == traces, args
    f(x=ag.constant(1.0), n=3)
    assert count_of(f) == 7, "the same call by keyword"


def test_structures_of_arguments_and_results() -> None:
    Pair = namedtuple("Pair", "a b")

    @dataclass
    class Point:
        x: Any
        y: Any

    @ag.function
    def f(pair: Any, point: Any, table: Any) -> Any:
        return {"sum": pair.a + pair.b, "rest": (Point(point.y, point.x), [table["k"], None])}

    one, two = ag.constant(1.0), ag.constant(2.0)
    for _ in range(2):
        result = f(Pair(one, two), Point(one, two), {"k": 3})
    assert float(result["sum"]) == 3.0
    swapped, (k, none) = result["rest"]
    assert (float(swapped.x), float(swapped.y), int(k), none) == (2.0, 1.0, 3, None)
    assert count_of(f) == 1
    f(Pair(one, two), Point(one, two), {"k": 4})
    assert count_of(f) == 2


def test_objects_count_by_identity() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

    @ag.function
    def f(model: Any, x: Any) -> Any:
        return x * model.scale

    a, b = Model(2.0), Model(3.0)
    x = ag.constant(1.0)
    assert [float(f(m, x)) for m in (a, b, a)] == [2.0, 3.0, 2.0]
    assert count_of(f) == 2


def test_a_wrong_call_is_worded_as_python_does() -> None:
    @ag.function
    def f(x: Any, *, scale: Any) -> Any:
        return x * scale

    with pytest.raises(TypeError, match="missing a required argument: 'scale'"):
        f(1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        f(1.0, scale=2.0, size=3)
    assert float(f(1.0, scale=2.0)) == 2.0


def test_unknown_options_are_refused() -> None:
    with pytest.raises(TypeError, match="jit_compiled"):
        ag.function(jit_compiled=True)


# --- guards ----------------------------------------------------------------------------------------------------------


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


# --- variables -------------------------------------------------------------------------------------------------------


def test_variables_created_on_the_first_call() -> None:
    class Layer:
        def __init__(self) -> None:
            self.w: Any = None

        @ag.function
        def __call__(self, x: Any) -> Any:
            if self.w is None:
                self.w = ag.Variable(ag.random.normal([2, 3]))
                self.b = ag.Variable(lambda: ag.ones([3]))
            return ag.matmul(x, self.w) + self.b

    layer = Layer()
    x = ag.ones([4, 2])
    first, second = layer(x), layer(x)
    expected = np.ones((4, 2), np.float32) @ layer.w.numpy() + 1.0
    np.testing.assert_allclose(first, expected, rtol=1e-6)
    np.testing.assert_array_equal(first, second)
    layer.w.assign(ag.zeros([2, 3]))
    np.testing.assert_array_equal(layer(x), np.ones((4, 3)))


def test_a_variable_created_on_every_call_is_refused() -> None:
    @ag.function
    def f(x: Any) -> Any:
        return ag.Variable(1.0) * x

    with pytest.raises(ValueError, match="create variables on a call that is not its first"):
        f(ag.constant(1.0))


def test_an_initial_value_from_an_argument_is_refused() -> None:
    kept: list[Any] = []

    @ag.function
    def f(x: Any) -> Any:
        if not kept:
            kept.append(ag.Variable(x * 2.0))
        return kept[0] * x

    with pytest.raises(ValueError, match="depends on 'x'"):
        f(ag.constant(1.0))


def test_assignments_keep_program_order() -> None:
    v = ag.Variable(1.0)

    @ag.function(jit_compile=True)
    def f(x: Any) -> Any:
        a = v * 10.0
        v.assign_add(x)
        b = v * 10.0
        for _ in ag.range(3):
            v.assign(v * 2.0)
        return a, b, v.read_value()

    assert [float(t) for t in f(ag.constant(2.0))] == [10.0, 30.0, 24.0]
    assert float(v) == 24.0


# --- functions of functions ------------------------------------------------------------------------------------------


def test_inner_functions_trace_once_and_see_outer_tensors() -> None:
    traced: list[str] = []

    @ag.function
    def inner(x: Any) -> Any:
        traced.append("inner")
        return x * 2.0

    @ag.function
    def outer(x: Any) -> Any:
        traced.append("outer")

        @ag.function
        def local(y: Any) -> Any:
            return y + x

        return local(inner(x) + inner(x))

    assert float(outer(ag.constant(1.0))) == 5.0
    assert float(outer(ag.constant(2.0))) == 10.0
    assert traced == ["outer", "inner"]


def test_recursion_on_a_tensor_raises_at_once() -> None:
    @ag.function
    def f(x: Any) -> Any:
        if x > 0.0:
            return f(x - 1.0)
        return x

    with pytest.raises(RecursionError, match="calls itself with arguments of the same signature"):
        f(ag.constant(3.0))


def test_recursion_on_a_python_number_unrolls() -> None:
    @ag.function
    def power(x: Any, n: int) -> Any:
        return x * power(x, n - 1) if n > 0 else ag.ones_like(x)

    assert float(power(ag.constant(2.0), 5)) == 32.0


def test_a_leaked_tensor_says_where_it_comes_from() -> None:
    leaked: list[Any] = []

    @ag.function
    def culprit(x: Any) -> Any:
        leaked.append(x * 2.0)
        return x

    culprit(ag.constant(1.0))
    with pytest.raises(ValueError, match="'culprit'"):
        leaked[0] + 1.0
    with pytest.raises(ValueError, match="'culprit'"):
        ag.function(lambda x: x + leaked[0])(ag.constant(1.0))


def test_an_error_while_tracing_leaves_nothing_behind() -> None:
    fail = [True]

    @ag.function
    def f(x: Any) -> Any:
        if fail:
            raise KeyError("not now")
        return x + 1.0

    with pytest.raises(KeyError):
        f(ag.constant(1.0))
    assert ag.executing_eagerly()
    fail.clear()
    assert float(f(ag.constant(1.0))) == 2.0


# --- life and threads ------------------------------------------------------------------------------------------------


def test_methods_have_their_own_traces_which_go_with_the_instance() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = ag.Variable(scale)

        @ag.function
        def __call__(self, x: Any) -> Any:
            return x * self.scale

    a, b = Model(2.0), Model(3.0)
    assert (float(a(ag.constant(1.0))), float(b(ag.constant(1.0)))) == (2.0, 3.0)
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None


def test_traces_are_bounded() -> None:
    @ag.function
    def f(n: int) -> Any:
        return n + 1

    f._cache.limit = 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(40):
            assert int(f(n)) == n + 1
    assert len(f._cache) <= 8


def test_fresh_closures_as_arguments_do_not_pile_up() -> None:
    @ag.function
    def apply(function: Any, x: Any) -> Any:
        return function(x)

    apply._cache.limit = 16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(60):
            assert float(apply(functools.partial(lambda k, x: x + k, float(n)), ag.constant(1.0))) == n + 1.0
    assert len(apply._cache) <= 16


def test_one_trace_per_signature_on_many_threads() -> None:
    traces: list[int] = []

    @ag.function
    def f(x: Any) -> Any:
        traces.append(1)
        return ag.reduce_sum(x * 2.0)

    results: list[float] = []
    barrier = threading.Barrier(16)

    def work() -> None:
        barrier.wait()
        for _ in range(20):
            results.append(float(f(ag.ones([3]))))

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [6.0] * 320
    assert len(traces) == 1


def test_run_functions_eagerly() -> None:
    seen: list[Any] = []

    @ag.function
    def f(x: Any) -> Any:
        seen.append(x)
        return x * 2.0

    ag.config.run_functions_eagerly(True)
    try:
        assert float(f(ag.constant(1.0))) == 2.0
        assert float(seen[-1]) == 1.0
    finally:
        ag.config.run_functions_eagerly(False)


# --- concrete functions ----------------------------------------------------------------------------------------------


def test_concrete_functions() -> None:
    v = ag.Variable(2.0)

    @ag.function
    def f(x: Any, n: Any, scale: Any = 3.0) -> Any:
        return {"y": x * v + n, "n": scale}

    concrete = f.get_concrete_function(ag.TensorSpec([None], ag.float32), ag.constant(1.0))
    np.testing.assert_array_equal(concrete(ag.constant([1.0, 2.0]), ag.constant(1.0))["y"], [3.0, 5.0])
    np.testing.assert_array_equal(concrete(x=ag.constant([4.0]), n=ag.constant(0.0))["y"], [8.0])
    assert [v is w for w in concrete.variables] == [True]
    args, kwargs = concrete.structured_input_signature
    assert args == (ag.TensorSpec([None], ag.float32, "x"), ag.TensorSpec([], ag.float32, "n"), 3.0)
    assert kwargs == {}
    assert concrete.structured_outputs["y"].shape == [None]
    f(ag.constant([1.0, 2.0, 3.0]), ag.constant(1.0))
    assert count_of(f) == 1, "a call finds the trace that was made from a spec"
    with pytest.raises(TypeError, match=r"was expected to have shape \(None,\) but has shape \(\)"):
        concrete(ag.constant(1.0), ag.constant(1.0))
    with pytest.raises(
        ag.errors.InvalidArgumentError, match="was expected to be a float32 tensor but is a int32 tensor"
    ):
        concrete(ag.constant([1]), ag.constant(1.0))
    with pytest.raises(TypeError, match="missing the argument 'n'"):
        concrete(ag.constant([1.0]))
