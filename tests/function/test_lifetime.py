"""Lifetime of functions and traces, threads, and concrete functions."""

from __future__ import annotations

import functools
import gc
import os
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import locks


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


def _in_threads(count: int, work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


@pytest.mark.parametrize("jit", [False, True, None])
def test_no_assignment_of_another_thread_is_lost(jit: bool | None) -> None:
    count, other = ag.Variable(0), ag.Variable(ag.zeros([2000]))

    @ag.function(jit_compile=jit)
    def add(n: Any) -> Any:
        for _ in ag.range(n):
            count.assign_add(1)
        other.assign(ag.reverse(other, [0]) + 1.0)
        return count.read_value()

    def work() -> None:
        for _ in range(40):
            add(ag.constant(3))
            count.assign_add(2)
            other[:10].assign(other[:10] + 1.0 - 1.0)

    _in_threads(8, work)
    assert int(count) == 8 * 40 * 5
    assert set(other.numpy()[10:-10].tolist()) == {320.0}


def test_a_thread_that_python_code_waits_for_gets_its_turn() -> None:
    """A function that calls Python holds no locks: what it calls may wait for another call of it."""
    count = ag.Variable(0)
    done: list[int] = []

    def wait_for_another(x: Any) -> Any:
        _in_threads(1, lambda: done.append(int(add(ag.constant(1)))))
        return x

    @ag.function
    def add(n: Any) -> Any:
        if n == 0:
            ag.py_function(wait_for_another, [n], n.dtype)
        count.assign_add(n)
        return n

    add(ag.constant(0))
    assert done == [1]


def test_a_forked_child_assigns() -> None:
    count = ag.Variable(0)
    release = threading.Event()
    held = threading.Event()

    def hold() -> None:
        with locks.Held(tuple(range(64))):
            held.set()
            release.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        count.assign_add(1)
        os._exit(int(count))
    release.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


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
