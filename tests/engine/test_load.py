"""Many threads over one function, and many calls: one trace, one compilation, right results, no growth."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.engine import kernel_counters, wait_for_background
from tests.soak.calls import run


@pytest.mark.parametrize("jit", [None, True, False], ids=["aside", "compiled", "interpreted"])
def test_sixteen_threads_trace_once_and_compile_once(jit: bool | None) -> None:
    constant = {None: 0.1234567, True: 0.2345678, False: 0.3456789}[jit]  # a kernel that no other test has

    @ag.function(jit_compile=jit)
    def f(x: Any, n: Any) -> Any:
        for _ in ag.range(n):
            x = ag.sin(x) + constant
        return x, ag.reduce_sum(x)

    x = ag.constant(np.linspace(0.0, 1.0, 50))
    expected = x.numpy()
    for _ in range(5):
        expected = np.sin(expected) + constant
    assert wait_for_background(60)  # for kernels of tests before
    before = kernel_counters().compiled + kernel_counters().loaded
    barrier = threading.Barrier(16)
    failures: list[Any] = []

    def work() -> None:
        try:
            barrier.wait()
            for _ in range(30):
                result, total = f(x, ag.constant(5))
                np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)
                np.testing.assert_allclose(float(total), expected.sum(), rtol=1e-12)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]
    assert f.experimental_get_tracing_count() == 1
    assert wait_for_background(60)
    assert kernel_counters().compiled + kernel_counters().loaded == before + (jit is not False)


def test_calls_leave_nothing() -> None:
    """A short slice of `python -m tests.soak.calls`."""
    told: list[str] = []
    assert run(4_000, 4, told.append), "\n".join(told)


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    """Everything is deterministic: there is no mode to switch on."""
    x = ag.constant(np.random.default_rng(0).normal(size=(1030, 1025)).astype(np.float32))

    @ag.function(jit_compile=True)
    def f(x: Any) -> Any:
        y = ag.tanh(x) * 2.0 + x
        return y, ag.reduce_sum(y), ag.reduce_sum(y, 0), ag.reduce_mean(y, 1), ag.nn.softmax(y)

    results = []
    try:
        for count in (1, 2, 3, 7, 2, 1):
            ag.config.threading.set_intra_op_parallelism_threads(count)
            results.append([r.numpy() for r in f(x)])
    finally:
        ag.config.threading.set_intra_op_parallelism_threads(0)
    for other in results[1:]:
        for first, second in zip(results[0], other):
            np.testing.assert_array_equal(first, second)
