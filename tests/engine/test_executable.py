"""Tiers: the interpreter first, native code as soon as it is there, also in the middle of a running loop."""

from __future__ import annotations

import functools
import math
import threading
import time
from typing import Any

import numpy as np
import pytest

import runtime.ops.operators  # noqa: F401
from runtime import cancellation, errors
from runtime.codegen.backends import driver as kernels
from runtime.dtypes import float32, float64
from runtime.engine import (
    Executable,
    background,
    compile_cost,
    executable,
    kernel_counters,
    partition,
    wait_for_background,
)
from runtime.engine import (
    on_stack_replacement as osr,
)
from runtime.engine.compile_cost import counted, python_seconds, threshold
from runtime.engine.executable import compilation
from runtime.graph.interpreter import interpret
from runtime.graph.passes import pipeline
from runtime.ops.control import assert_op
from runtime.ops.dispatch import call
from tests.autodiff.graphs import I32, integer, while_loop
from tests.codegen.compare import build, typed

F32 = typed(float32)


def logistic(x: Any, n: Any) -> Any:
    return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, 3.7 * x * (1.0 - x)), [integer(0), x])[1]


START, TRIPS = np.float32(0.3), np.int32(50)


def test_compiles_before_the_first_run_when_told_to() -> None:
    run = Executable(build(logistic, [F32, I32]), jit_compile=True)
    expected = interpret(run.graph, [START, TRIPS])
    assert run([START, TRIPS]) == expected
    assert run.is_native


def test_never_compiles_when_told_not_to() -> None:
    run = Executable(build(logistic, [F32, I32]), jit_compile=False)
    run([START, TRIPS])
    assert wait_for_background(60)
    assert not run.is_native


def test_answers_at_once_and_compiles_aside() -> None:
    run = Executable(build(logistic, [F32, I32]))
    expected = run([START, TRIPS])
    assert wait_for_background(60)
    assert run.is_native
    result = run([START, TRIPS])
    assert result == expected
    assert result[0].dtype == np.float32


def test_the_compiler_lets_the_call_that_asks_for_it_finish(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 60.0)
    worker, began = background.Worker(), threading.Event()
    with worker.held_back():
        worker.submit(began.set)
        assert not began.wait(0.05)
    assert began.wait(60.0)
    worker.close()


def test_what_a_running_call_waits_for_is_compiled_first(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 60.0)
    worker, began, urgent = background.Worker(), threading.Event(), threading.Event()
    with worker.held_back():
        worker.submit(began.set)
        assert worker.submit(urgent.set, urgent=True)
        assert urgent.wait(60.0)
        assert not began.is_set()
    assert worker.wait(60.0)
    assert began.is_set()
    worker.close()
    assert not worker.submit(began.set, urgent=True)


def test_the_compiler_lets_the_result_of_that_call_be_used_first(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 60.0)
    monkeypatch.setattr(background, "QUIET", 60.0)
    worker, began = background.Worker(), threading.Event()
    with worker.held_back():
        worker.submit(began.set)
    assert not began.wait(0.05)
    assert worker.wait(60.0)  # nobody has anything else to do
    assert began.is_set()
    worker.close()


def test_call_after_call_does_not_hold_the_compiler_back(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 60.0)
    monkeypatch.setattr(background, "QUIET", 0.05)
    worker, done = background.Worker(), threading.Event()
    jobs = [lambda: None, lambda: None, done.set]
    with worker.held_back():
        for job in jobs:
            worker.submit(job)
    deadline = time.monotonic() + 30.0
    while not done.wait(0.001) and time.monotonic() < deadline:
        with worker.held_back():
            pass
    assert done.is_set()
    worker.close()


def test_the_compiler_lets_no_call_hold_it_back_for_long(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 0.01)
    worker, began = background.Worker(), threading.Event()
    with worker.held_back():
        worker.submit(began.set)
        assert began.wait(60.0)
    worker.close()


def test_of_waiting_jobs_the_one_that_gains_most_goes_first(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 60.0)
    worker, order = background.Worker(), []
    gains = {"seldom": 0.1, "often": 5.0, "sometimes": 1.0}
    with worker.held_back():
        for name in gains:
            worker.submit(functools.partial(order.append, name), gain=functools.partial(gains.get, name))
        gains["seldom"] = 2.0  # what counts is what it would gain when it is chosen
        worker.submit(lambda: order.append("helper"))
    assert worker.wait(60.0)
    assert order == ["helper", "often", "seldom", "sometimes"]
    worker.close()


def test_a_long_job_lets_others_go_between_its_steps() -> None:
    worker, order = background.Worker(), []

    def long() -> bool:
        order.append("long")
        if len(order) == 1:
            worker.submit(lambda: order.append("short"), gain=lambda: 1.0)
            worker.submit(lambda: order.append("unimportant"), gain=lambda: 0.01)
        return order.count("long") < 3

    worker.submit(long, gain=lambda: 0.1)
    assert worker.wait(60.0)
    assert order == ["long", "short", "long", "long", "unimportant"]
    worker.close()


def test_a_job_that_fails_does_not_end_the_others(monkeypatch: Any) -> None:
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: told.append(args.exc_type))
    worker, done = background.Worker(), threading.Event()
    worker.submit(lambda: 1 / 0)
    worker.submit(done.set)
    assert worker.wait(60.0)
    assert done.is_set()
    assert told == [ZeroDivisionError]
    worker.close()


def test_a_short_program_does_not_wait_for_all_kernels_of_a_long_one(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(partition, "SEGMENT_LIMIT", 8)
    order: list[str] = []
    load = partition.load

    def noting(source: Any) -> Any:
        order.append(source.name)
        if len(order) == 1:
            short([np.float32(0.5)])  # somebody calls it while the first kernel is compiled
        return load(source)

    def various(x: Any) -> Any:
        for name in ("sin", "cos", "tan", "exp", "tanh", "sinh", "cosh", "atan") * 4:
            x = call(name, x) * float(len(name))
        return x

    def brief(x: Any) -> Any:
        return call("sin", x) + 1.0

    monkeypatch.setattr(partition, "load", noting)
    monkeypatch.setitem(pipeline.REWRITES, "repetitions", lambda graph, runs: None)
    monkeypatch.setattr(partition.graph_cache, "description", lambda graph: str(id(graph)))  # nothing is shared
    long, short = Executable(build(various, [F32])), Executable(build(brief, [F32]))
    monkeypatch.setattr(Executable, "gain", lambda self: 1.0 if self is short else 0.1)
    long([np.float32(0.5)])
    assert wait_for_background(300)
    assert order[:2] == ["various", "brief"]
    assert order.count("various") == len(partition.segments(long.graph)) > 4
    assert long.is_native
    assert short.is_native


def test_gain_is_time_on_the_interpreter_in_units_of_what_compiling_costs_it() -> None:
    run = Executable(build(lambda x: call("sin", x) + 1.0, [F32]))
    long = Executable(build(lambda x: functools.reduce(lambda x, _: call("sin", x) + x, range(20), x), [F32]))
    assert run.gain() == long.gain() == math.inf  # their kernels may be on disk
    run._work = long._work = compilation(run.graph, None, set())
    for each in (run, long):
        each.spent = threshold(python_seconds(each.graph.nodes))
        assert each.gain() == 1.0
    assert long.spent > run.spent
    run.spent *= 3
    assert run.gain() == pytest.approx(3.0)


def test_gain_of_a_graph_of_many_kernels_counts_repetitions_once(monkeypatch: Any) -> None:
    def repeated(x: Any) -> Any:
        x = functools.reduce(lambda x, _: call("sin", x) + x, range(20), x)
        return functools.reduce(lambda x, _: call("cos", x) + x, range(20), x)

    run = Executable(build(repeated, [F32]))
    run._work, run.spent = compilation(run.graph, None, set()), 1.0
    monkeypatch.setattr(compile_cost, "SEGMENT_LIMIT", 10)
    first = run.graph.nodes[:10]
    assert [node.op.name for node in counted(run.graph.nodes)] == [*(node.op.name for node in first), "cos"]
    assert run.gain() == 1.0 / threshold(python_seconds([*first, first[0]]))


def test_the_exit_does_what_must_be_done_and_drops_the_rest() -> None:
    worker, done = background.Worker(), []
    with worker.held_back():
        worker.submit(lambda: done.append("kernel"))
        worker.submit(lambda: done.append("file"), before_exit=True)
        worker.close()
    assert done == ["file"]
    assert not worker.submit(lambda: done.append("late"), before_exit=True)


def test_the_exit_does_not_interrupt_what_must_be_done() -> None:
    worker, began, done = background.Worker(), threading.Event(), []

    def write() -> None:
        began.set()
        for part in range(20):
            time.sleep(0.01)
            done.append(part)

    worker.submit(write, before_exit=True)
    assert began.wait(60.0)
    worker.close()
    assert done == list(range(20))


def test_the_exit_interrupts_a_job_at_a_cancellation_point_only() -> None:
    worker, began, allocated, freed = background.Worker(), threading.Event(), [], []

    def compile_forever() -> None:
        while True:
            cancellation.point()
            allocated.append(1)
            began.set()
            for _ in range(100):  # where an exception from outside could arrive
                time.sleep(0.0001)
            freed.append(1)

    worker.submit(compile_forever)
    assert began.wait(60.0)
    worker.close()
    assert len(allocated) == len(freed) >= 1
    cancellation.point()  # other threads go on


def test_another_thread_is_interrupted_when_nothing_is_being_compiled() -> None:
    ended, waiting, entered, found = threading.Event(), threading.Event(), threading.Event(), []

    def run() -> None:
        try:
            with kernels.compiling:
                entered.set()
                waiting.wait(60.0)
                found.append("compiled")
            while True:
                time.sleep(0.001)
        except KeyboardInterrupt:
            ended.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert entered.wait(60.0)
    interrupter = threading.Thread(target=lambda: background.interrupt(thread.ident))
    interrupter.start()
    time.sleep(0.05)
    waiting.set()
    assert ended.wait(60.0)
    assert found == ["compiled"]
    interrupter.join()
    thread.join()


def test_what_is_not_due_waits_for_a_pause(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 60.0)
    worker, began = background.Worker(), threading.Event()
    with worker.held_back(only_early=True):
        worker.submit(began.set, gain=lambda: 0.5)
        assert not began.wait(5 * background.QUIET)
    assert began.wait(60.0)
    worker.close()


def test_a_pause_is_one_of_the_calls_of_all_threads(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 60.0)
    worker, began = background.Worker(), threading.Event()
    entered, leave = threading.Event(), threading.Event()

    def call_once() -> None:
        with worker.held_back(only_early=True):
            pass

    def call_for_long() -> None:
        with worker.held_back(only_early=True):
            entered.set()
            leave.wait(60.0)

    threads = [threading.Thread(target=target) for target in (call_for_long, *[call_once] * 4)]
    with worker.held_back(only_early=True):
        for thread in threads:
            thread.start()
        assert entered.wait(60.0)
        worker.submit(began.set, gain=lambda: 0.5)
    for thread in threads[1:]:
        thread.join()
    assert not began.wait(5 * background.QUIET)
    leave.set()
    assert began.wait(60.0)
    threads[0].join()
    worker.close()


def test_what_is_due_does_not_wait_for_a_pause(monkeypatch: Any) -> None:
    monkeypatch.setattr(background, "START_TIMEOUT", 60.0)
    worker, began = background.Worker(), threading.Event()
    gains = [0.5]
    with worker.held_back(only_early=True):
        worker.submit(began.set, gain=lambda: gains[0])
        assert not began.wait(5 * background.QUIET)
        gains[0] = 1.0
        assert began.wait(60.0)
    worker.close()


def test_what_is_not_due_waits_for_no_other_job_and_no_longer_than_the_timeout(monkeypatch: Any) -> None:
    worker, began, due = background.Worker(), threading.Event(), threading.Event()
    with worker.held_back(only_early=True):
        worker.submit(began.set, gain=lambda: 0.5)
        worker.submit(due.set)
        assert due.wait(60.0)
        assert not began.is_set()
        assert worker.wait(60.0)  # somebody waits
        assert began.is_set()
        monkeypatch.setattr(background, "START_TIMEOUT", 0.01)
        again = threading.Event()
        worker.submit(again.set, gain=lambda: 0.5)
        assert again.wait(60.0)
    worker.close()


def test_a_running_loop_jumps_into_native_code(monkeypatch: Any, tmp_path: Any) -> None:
    """The interpreter alone would take minutes for this many trips."""
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))  # or the kernel of an earlier test would be taken
    run = Executable(build(lambda n: while_loop(lambda i: i < n, lambda i: [i + 1], [integer(0)]), [I32]))
    many = np.int32(200_000_000)
    finished = []
    monkeypatch.setattr(osr.TierUp, "finish", _noting(osr.TierUp.finish, finished))
    assert run([many])[0] == many
    assert finished
    assert wait_for_background(60)


def _noting(finish: Any, finished: list) -> Any:
    def noting(self: Any, operands: Any) -> Any:
        result = finish(self, operands)
        if result is not None:
            finished.append(result)
        return result

    return noting


def test_threads_compile_once() -> None:
    # A constant of its own makes this text new to the process.
    run = Executable(build(lambda x: call("exp", x * 0.73219) + x, [typed(float64, None)]), jit_compile=True)
    assert background.worker.wait(60)  # for what the tests before have left it
    before = kernel_counters().compiled + kernel_counters().loaded
    barrier = threading.Barrier(8)
    results: list[Any] = []

    def work() -> None:
        barrier.wait()
        results.append(run([np.arange(4.0)])[0])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 8
    assert all(np.array_equal(r, results[0]) for r in results)
    assert kernel_counters().compiled + kernel_counters().loaded == before + 1


def test_arrays_of_other_layouts_are_taken() -> None:
    run = Executable(build(lambda x: x * 2.0, [typed(float64, None, None)]), jit_compile=True)
    x = np.arange(12.0).reshape(3, 4)
    for array in (x, x.T, x[::-1], x[:, ::2], np.asfortranarray(x), x.astype(">f8")):
        np.testing.assert_array_equal(run([array])[0], array * 2)


def test_results_are_not_the_arguments() -> None:
    run = Executable(
        build(lambda x: [x, x + 0.0, call("reshape", x, shape=(-1,))], [typed(float64, None)]), jit_compile=True
    )
    x = np.arange(3.0)
    same, new, _ = run([x])
    assert new is not x
    np.testing.assert_array_equal(same, x)


def test_a_program_is_split_at_what_has_no_native_form() -> None:
    def mixed(x: Any) -> Any:
        before = call("exp", x) * 2.0
        between = call("bessel_y0", before)
        return call("reduce_sum", call("tanh", between), axis=(0,), keepdims=False), before

    graph = build(mixed, [typed(float64, None)])
    assert [native for native, _ in partition.segments(graph)] == [True, False, True]
    run = Executable(graph, jit_compile=True)
    x = np.linspace(-1, 1, 7)
    for got, want in zip(run([x]), interpret(graph, [x])):
        np.testing.assert_allclose(got, want, rtol=1e-12)
    assert run.is_native


def test_a_program_without_native_parts_is_interpreted() -> None:
    graph = build(lambda x: call("bessel_y0", x), [typed(float64, None)])
    parts = [native for native, _ in partition.segments(graph)]
    run = Executable(graph, jit_compile=True)
    assert run([np.array([0.0, 1.0])])[0].tolist() == [-np.inf, pytest.approx(0.08825696)]
    assert parts == [False]


def test_long_programs_become_several_kernels(monkeypatch: Any) -> None:
    def long(x: Any) -> Any:
        for _ in range(12):
            x = call("sin", x) + 1.0
        return x

    monkeypatch.setattr(partition, "SEGMENT_LIMIT", 8)
    graph = build(long, [typed(float64, None)])
    assert len(partition.segments(graph)) > 2
    x = np.arange(3.0)
    before = kernel_counters().shared
    np.testing.assert_allclose(Executable(graph, jit_compile=True)([x])[0], interpret(graph, [x])[0], rtol=1e-12)
    assert kernel_counters().shared > before, "equal parts of a program share a kernel"


def test_errors_of_the_compiler_become_a_warning(monkeypatch: Any) -> None:
    monkeypatch.delenv("AUTOGRAPH_STRICT", raising=False)
    monkeypatch.setattr(executable, "compilation", _broken)
    run = Executable(build(logistic, [F32, I32]), jit_compile=True)
    with pytest.warns(errors.CompilationWarning, match="stays on the interpreter.*broken on purpose"):
        assert run([START, TRIPS]) == interpret(run.graph, [START, TRIPS])


def test_a_failing_compilation_is_told_once(monkeypatch: Any) -> None:
    """Not again for the graphs of its gradient and its loops on their own, in which it fails for the same cause."""
    import autograph as ag
    from runtime.codegen.lower import state

    def broken_form(low: Any, node: Any) -> Any:
        raise ZeroDivisionError("a mistake")

    @ag.function
    def f(x: Any, n: Any) -> Any:
        for _ in ag.range(n):
            x = ag.cumsum(x) * 0.1
        return x

    monkeypatch.delenv("AUTOGRAPH_STRICT", raising=False)
    monkeypatch.setitem(state.EMITTERS, "cumsum", broken_form)
    monkeypatch.setattr(osr.Loop, "threshold", lambda loop, spent: 0.0)
    x = ag.constant([1.0, 2.0])
    with pytest.warns(errors.CompilationWarning) as caught:
        for _ in range(3):
            f(x, ag.constant(40))
            with ag.GradientTape() as tape:
                tape.watch(x)
                y = f(x, ag.constant(40))
            tape.gradient(y, x)
            assert wait_for_background(300)
    assert len(caught) == 1, [str(each.message) for each in caught]
    assert caught[0].filename == __file__
    text = str(caught[0].message)
    assert "f' stays on the interpreter" in text and "ZeroDivisionError: a mistake" in text and "cumsum" in text
    explained = str(f.explain(x, ag.constant(40)))
    assert explained.count("because the compiler failed") >= 2


@pytest.mark.parametrize("jit", [True, None])
@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [("AUTOGRAPH_COMPILER", "gcc", "AUTOGRAPH_COMPILER=gcc .* the choices are llvm and numba"),
     ("AUTOGRAPH_CACHE_SIZE", "lots", "AUTOGRAPH_CACHE_SIZE must be a number of bytes")],
)  # fmt: skip
def test_a_mistake_in_the_environment_is_a_plain_error(
    monkeypatch: Any, variable: str, value: str, message: str, jit: bool | None
) -> None:
    """Whether or not errors of the compiler are raised: it is none of them, and asks for no report."""
    monkeypatch.delenv("AUTOGRAPH_STRICT", raising=False)
    monkeypatch.setenv(variable, value)
    run = Executable(build(logistic, [F32, I32]), jit_compile=jit)
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            run([START, TRIPS])
    monkeypatch.delenv(variable)
    assert run([START, TRIPS]) == interpret(run.graph, [START, TRIPS])


def test_errors_of_the_compiler_are_raised_in_tests(monkeypatch: Any, tmp_path: Any) -> None:
    monkeypatch.setenv("AUTOGRAPH_STRICT", "1")
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))  # or the kernel of an earlier test would be taken
    monkeypatch.setattr(executable, "compilation", _broken)
    graph = build(logistic, [F32, I32])
    with pytest.raises(errors.KernelError):
        Executable(graph, jit_compile=True)([START, TRIPS])
    run = Executable(graph)
    run([START, TRIPS])
    with pytest.raises(errors.KernelError):
        wait_for_background(60)
    with pytest.raises(errors.KernelError):
        run([START, TRIPS])


def _broken(*arguments: Any, **options: Any) -> Any:
    raise errors.KernelError("broken on purpose")


def test_effects_of_native_parts_keep_their_order() -> None:
    def checked(n: Any) -> Any:
        assert_op(n > 0, "must be positive", error="ValueError")
        return n * 2

    run = Executable(build(checked, [I32]), jit_compile=True)
    assert run([np.int32(3), None])[0] == 6
    with pytest.raises(ValueError, match="must be positive"):
        run([np.int32(0), None])


def test_the_warning_is_a_report(monkeypatch: Any) -> None:
    """Where the form of an op has a mistake, and where numba refuses a text."""
    import autograph as ag
    from runtime.codegen.lower import state
    from runtime.kernel_ir import ir

    monkeypatch.delenv("AUTOGRAPH_STRICT", raising=False)

    def broken_form(self: Any, node: Any) -> Any:
        raise ZeroDivisionError("a mistake")

    @ag.function(jit_compile=True)
    def f(x: Any) -> Any:
        y = ag.cumsum(x)
        return ag.tanh(y) * 0.31415

    x = ag.constant([1.0, 2.0])
    with monkeypatch.context() as patch:
        patch.setitem(state.EMITTERS, "cumsum", lambda low, node: broken_form(low, node))
        with pytest.warns(errors.CompilationWarning) as caught:
            expected = f(x)
    text = str(caught[0].message)
    assert "'f' stays on the interpreter" in text and "ZeroDivisionError: a mistake" in text
    assert "operation: cumsum, at " in text and "y = ag.cumsum(x)" in text
    assert "the compiler failed" in f.explain(x)

    @ag.function(jit_compile=True)
    def g(x: Any) -> Any:
        return ag.tanh(ag.cumsum(x)) * 0.31416

    def unknown(self: Any, node: Any, operands: Any) -> Any:
        return ir.Var(f"no_such_name_{node.op.name}")

    monkeypatch.setattr(state.Lowering, "expression", unknown)
    with pytest.warns(errors.CompilationWarning) as caught:
        np.testing.assert_allclose(g(x).numpy(), expected.numpy(), rtol=1e-4)
    text = str(caught[0].message)
    assert "operation: tanh, at " in text and "return ag.tanh(ag.cumsum(x)) * 0.31416" in text
    assert "kernel text: " in text and ".py" in text
