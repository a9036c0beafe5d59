"""When running loops leave the interpreter."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime.codegen.backends import graph_cache
from runtime.codegen.backends.call_stub import load
from runtime.codegen.backends.driver import compiling
from runtime.codegen.lower.lower_graph import lower
from runtime.dtypes import float32, float64
from runtime.engine import Executable, wait_for_background
from runtime.engine import on_stack_replacement as osr
from runtime.graph import interpreter
from runtime.llvm import target
from runtime.ops.dispatch import call
from tests.autodiff.graphs import I32, integer, while_loop
from tests.codegen.compare import build, typed

pytestmark = pytest.mark.usefixtures("empty_cache")  # a kernel of the whole graph would be taken at once


class Clock:
    """Seconds that pass by one at each look, and how often somebody looked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(osr.time, "thread_time", self)

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def nested(outer: int, inner: int) -> Any:
    def trip(i: Any, total: Any) -> list:
        start = [integer(0), total]
        total = while_loop(lambda j, total: j < inner, lambda j, total: [j + 1, total + j], start)[1]
        return [i + 1, total]

    return lambda n: while_loop(lambda i, total: i < outer, trip, [integer(0), n])[1]


def taken(monkeypatch: pytest.MonkeyPatch) -> list[osr.Loop]:
    """The loops that leave the interpreter from now on, in order; each waits until it has been compiled."""
    found: list[osr.Loop] = []
    work = osr.Loop._work

    def noting(loop: osr.Loop) -> None:
        found.append(loop)
        work(loop)

    monkeypatch.setattr(osr.Loop, "_work", noting)
    monkeypatch.setattr(osr.Loop, "start_compiling", lambda loop: loop._work())
    return found


def _has_inner(loop: osr.Loop) -> bool:
    return any(node.op.name == "while" for region in loop.node.regions for node in region.walk())


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[osr.Loop]:
    """The loops that leave the interpreter, where all are hot after three looks at the clock."""
    monkeypatch.setattr(osr.Loop, "threshold", lambda loop, spent: 5.0)
    monkeypatch.setattr(osr, "_TRIP_LIMIT", 5.0)
    monkeypatch.setattr(interpreter, "TRIPS_PER_POLL", 1)
    Clock(monkeypatch)
    return taken(monkeypatch)


def test_of_loops_in_one_another_the_outermost_is_compiled(found: list[osr.Loop]) -> None:
    run = Executable(build(nested(50, 3), [I32]))
    assert run([np.int32(0)])[0] == 50 * 3
    assert [_has_inner(loop) for loop in found] == [True]
    wait_for_background(60)


def test_an_inner_loop_is_compiled_where_the_outer_trip_goes_on(found: list[osr.Loop]) -> None:
    run = Executable(build(nested(2, 500), [I32]))
    assert run([np.int32(0)])[0] == 2 * sum(range(500))
    assert [_has_inner(loop) for loop in found] == [True, False]
    wait_for_background(60)


def test_what_begins_with_a_shape_of_its_own_goes_native_with_the_shape_it_has_by_then(
    found: list[osr.Loop],
) -> None:
    @ag.function
    def rows(n: Any, width: Any) -> Any:
        out = ag.TensorArray(ag.int32, size=n)
        grown = ag.zeros([0], ag.int32)
        for i in ag.range(n):
            ag.autograph.experimental.set_loop_options(shape_invariants=[(grown, ag.TensorShape([None]))])
            out = out.write(i, ag.fill([width], i))
            grown = ag.concat([grown, [i]], axis=0)
        return out.stack(), grown

    for _ in range(2):
        stacked, grown = rows(ag.constant(40), ag.constant(3))
        np.testing.assert_array_equal(stacked, np.repeat(np.arange(40, dtype=np.int32)[:, None], 3, axis=1))
        np.testing.assert_array_equal(grown, np.arange(40, dtype=np.int32))
    assert len(found) == 1
    wait_for_background(60)


def test_short_loops_stay_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(osr.Loop, "threshold", lambda loop, spent: 1e9)
    found = taken(monkeypatch)
    run = Executable(build(nested(40, 3), [I32]))
    assert run([np.int32(0)])[0] == 40 * 3
    assert found == []
    wait_for_background(60)


def test_loops_without_a_native_form_are_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(osr.Loop, "threshold", lambda loop, spent: 0.0)
    monkeypatch.setattr(interpreter, "TRIPS_PER_POLL", 1)
    tried: list[Any] = []

    def refuse(warned: Any, graph: Any) -> None:
        tried.append(graph)

    monkeypatch.setattr("runtime.engine.executable._compile_loop", refuse)
    run = Executable(build(nested(10, 3), [I32]))
    assert run([np.int32(0)])[0] == 10 * 3
    assert len(tried) == 2, "the outer loop and the inner one, once each"
    wait_for_background(60)


def test_a_loop_that_would_have_gained_is_there_for_the_next_process(monkeypatch: pytest.MonkeyPatch) -> None:
    found = taken(monkeypatch)
    run = Executable(build(nested(7, 3), [I32]))
    assert run([np.int32(0)])[0] == 7 * 3
    assert wait_for_background(60)
    assert found == [], "far from hot"
    monkeypatch.setattr(osr, "_LOAD_TIME", 0.0)
    run = Executable(build(nested(6, 3), [I32]))
    assert run([np.int32(0)])[0] == 6 * 3
    assert wait_for_background(60)
    assert found == [], "the kernel of the whole graph is there"
    monkeypatch.setattr(graph_cache, "store", lambda graph, source: None)  # as of graphs that are several kernels
    run = Executable(build(nested(8, 3), [I32]))
    assert run([np.int32(0)])[0] == 8 * 3
    assert wait_for_background(60)
    assert [_has_inner(loop) for loop in found] == [True], "what runs in it comes with it"


def test_the_first_call_takes_the_kernel_of_a_loop_that_an_earlier_process_has_left() -> None:
    run = Executable(build(nested(5, 4), [I32]))
    assert run([np.int32(0)])[0] == 5 * 6
    assert not run.is_native
    assert wait_for_background(60)
    again = Executable(build(nested(5, 4), [I32]))
    assert again([np.int32(0)])[0] == 5 * 6
    assert again.is_native and not again._loops
    assert wait_for_background(60)


def test_no_first_call_waits_for_the_compiler_to_take_a_kernel_from_the_disk() -> None:
    run = Executable(build(nested(4, 5), [I32]))
    run([np.int32(0)])
    assert wait_for_background(60)
    again = Executable(build(nested(4, 5), [I32]))
    results: list[Any] = []
    caller = threading.Thread(target=lambda: results.append(again([np.int32(0)])[0]))
    with compiling:  # as while another kernel is compiled
        caller.start()
        caller.join(60)
        assert results == [4 * 10]
        assert not again.is_native
    assert wait_for_background(60)
    assert again.is_native


def test_a_loop_is_interpreted_while_llvm_works_and_native_in_later_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(osr.Loop, "threshold", lambda loop, spent: 0.0)
    monkeypatch.setattr(interpreter, "TRIPS_PER_POLL", 1)
    began, ended = threading.Event(), threading.Event()
    machine_code = target.machine_code

    def slow(*arguments: Any, **options: Any) -> bytes:
        began.set()
        assert ended.wait(60)
        return machine_code(*arguments, **options)

    monkeypatch.setattr(target, "machine_code", slow)
    run = Executable(build(lambda n: while_loop(lambda i: i < n + 7, lambda i: [i + 1], [integer(0)])[0], [I32]))
    assert run([np.int32(50)])[0] == 57
    assert began.is_set() and not ended.is_set(), "the run was over before the compiler was"
    (loop,) = run._loops.values()
    assert loop.call is None and not loop.refused
    ended.set()
    assert wait_for_background(60)
    assert loop.call is not None


def test_a_loop_that_an_earlier_process_has_left_on_disk_goes_native_soon() -> None:
    run = Executable(build(nested(9, 4), [I32]))
    run([np.int32(0)])
    (node,) = [node for node in run.graph.nodes if node.op.name == "while"]
    loop = run._loop_of(node)
    far = loop.threshold(0.0)
    assert loop.threshold(1.0) == far, "there is none yet"
    loop._work()
    assert loop.call is not None
    again = Executable(build(nested(9, 4), [I32]))
    (node,) = [node for node in again.graph.nodes if node.op.name == "while"]
    assert again._loop_of(node).threshold(1.0) < far
    assert wait_for_background(60)


def _roots(count: int) -> Any:
    """Sums of roots by Newton's method: sines, cosines, a loop in lanes."""

    def trip(i: Any, total: Any) -> list:
        start = call("cast", i, dtype=float64) * 0.01
        x = while_loop(
            lambda x, change: call("abs", change) > 1e-10,
            lambda x, change: (lambda step: [x - step, step])(
                (x - 0.3 * call("sin", x) - start) / (1.0 - 0.3 * call("cos", x))
            ),
            [start, start * 0.0 + 1.0],
        )[0]
        return [i + 1, total + x]

    return lambda total: while_loop(lambda i, total: i < count, trip, [integer(0), total])[1]


def test_kernels_that_somebody_waits_for_give_the_same_bits() -> None:
    for program, types, values in (
        (nested(30, 7), [I32], [np.int32(3)]),
        (_roots(40), [typed(float64)], [np.float64(0.5)]),
    ):
        source = lower(build(program, types))
        quick = source.hurried()
        assert quick.quick and quick.key != source.key
        assert load(quick)(values) == load(source)(values)


def test_loops_with_nests_over_arrays_are_compiled_as_others() -> None:
    def program(x: Any, n: Any) -> Any:
        return while_loop(lambda i, x: i < n, lambda i, x: [i + 1, call("tanh", x * 1.5)], [integer(0), x])[1]

    assert not lower(build(program, [typed(float32, None), I32])).hurried().quick
