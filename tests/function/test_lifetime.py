"""Lifetime of functions and traces, threads, and concrete functions."""

from __future__ import annotations

import functools
import gc
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import autograph as ag


def count_of(function: Any) -> int:
    return function.experimental_get_tracing_count()


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


def test_a_method_whose_object_is_gone_says_so() -> None:
    class Model:
        def __init__(self) -> None:
            self.scale = 3.0

        @ag.function
        def scaled(self, x: Any) -> Any:
            return x * self.scale

    with pytest.raises(ReferenceError, match=r"'.*Model\.scaled' is called, but the object .* Give the object a name"):
        Model().scaled(ag.constant(1.0))
    model = Model()
    assert float(model.scaled(ag.constant(2.0))) == 6.0


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
