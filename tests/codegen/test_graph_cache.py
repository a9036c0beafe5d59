"""Kernels that are found by their graphs: equal ones alone, whole again, and called as after lowering."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autograph as ag
import runtime.ops.operators  # noqa: F401
from runtime import errors
from runtime.codegen.backends import graph_cache
from runtime.codegen.backends.call_stub import load
from runtime.codegen.lower.lower_graph import lower
from runtime.dtypes import float32, float64
from runtime.engine import executable, partition
from runtime.engine.settings import wait_for_background
from runtime.graph.ir import Graph
from runtime.graph.passes import options
from runtime.ops.dispatch import call
from tests.autodiff.graphs import I32, integer, while_loop
from tests.codegen.compare import build, typed


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AUTOGRAPH_CACHE_DIR", str(tmp_path))


def kept(graph: Graph) -> Graph:
    """The graph, with its kernel on disk."""
    source = lower(graph)
    load(source)
    graph_cache.store(graph, source)
    return graph


def steps(factor: float = 2.0, dtype: Any = float32, first: int = 0) -> Graph:
    def program(x: Any, n: Any) -> Any:
        return while_loop(lambda i, x: i < n, lambda i, x: (i + 1, factor * x), [integer(first), x])[1]

    return build(program, [typed(dtype), I32])


def test_an_equal_graph_finds_the_kernel_and_gives_the_same() -> None:
    assert graph_cache.lookup(steps()) is None
    kept(steps())
    found = graph_cache.lookup(steps())
    assert found is not None
    run = found.load(steps())
    assert run is not None
    assert run([np.float32(1.5), np.int32(4)]) == [np.float32(24.0)]


@pytest.mark.parametrize("other", [steps(3.0), steps(-2.0), steps(dtype=float64), steps(first=1)])
def test_another_graph_finds_nothing(other: Graph) -> None:
    kept(steps())
    assert graph_cache.lookup(other) is None


def test_shapes_and_names_tell_graphs_apart() -> None:
    def graph(*shape: int | None) -> Graph:
        return build(lambda x: call("tanh", x), [typed(float32, *shape)])

    kept(graph(3, 4))
    assert graph_cache.lookup(graph(3, 4)) is not None
    assert graph_cache.lookup(graph(4, 3)) is None
    assert graph_cache.lookup(graph(None, 4)) is None
    renamed = graph(3, 4)
    renamed.name = "another"
    assert graph_cache.lookup(renamed) is None


def test_what_lowering_reads_besides_the_graph_tells_kernels_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(steps())
    with monkeypatch.context() as patch:
        patch.setitem(options._chosen, "remapping", False)
        assert graph_cache.lookup(steps()) is None
        patch.setitem(options._chosen, "remapping", True)
        patch.setenv("AUTOGRAPH_COMPILER", "numba")
        assert graph_cache.lookup(steps()) is None
    assert graph_cache.lookup(steps()) is not None


def test_a_kernel_of_another_machine_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    kept(steps())
    found = graph_cache.lookup(steps())
    assert found is not None
    monkeypatch.setattr(graph_cache.kernel_cache, "machine", lambda: ("0", "abacus", ""))
    assert found.load(steps()) is None


def test_a_graph_with_a_variable_that_failures_commit_is_lowered_each_time() -> None:
    variable = ag.Variable(1.0)

    @ag.function(jit_compile=False)
    def f(x):
        variable.assign(x)
        ag.debugging.assert_greater(x, 0.0)
        return x

    graph = f.get_concrete_function(ag.TensorSpec([], ag.float32)).graph
    assert graph_cache.description(graph) is None


def test_errors_name_the_line_and_the_numbers() -> None:
    def program(x: Any, i: Any) -> Any:
        return call("gather", x, i, axis=0)

    def graph() -> Graph:
        return build(program, [typed(float32, 3), I32])

    texts = []
    for run in (load(lower(graph())), kept(graph()) and graph_cache.lookup(graph()).load(graph())):  # type: ignore[union-attr]
        assert run is not None
        with pytest.raises(errors.InvalidArgumentError) as caught:
            run([np.zeros(3, np.float32), np.int32(7)])
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "7" in texts[0]


def test_nothing_is_lowered_where_the_kernel_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert executable.finished(executable.compilation(steps(), None, set())) is not None
    assert wait_for_background(60)  # it may have to lower what other tests have left
    monkeypatch.setattr(partition, "lower", lambda graph: pytest.fail("lowered"))
    run = executable.finished(executable.compilation(steps(), None, set()))
    assert run is not None
    assert run([np.float32(1.0), np.int32(3)]) == [np.float32(8.0)]


def test_which_variable_is_assigned_means_nothing_to_a_kernel() -> None:
    def graph(variable: ag.Variable) -> Graph:
        @ag.function(jit_compile=False)
        def f(x):
            variable.assign(2.0 * x)
            return x

        return f.get_concrete_function(ag.TensorSpec([], ag.float32)).graph

    one, other = graph(ag.Variable(1.0)), graph(ag.Variable(3.0))
    for node in other.nodes:
        node.span = None
    for node in one.nodes:
        node.span = None
    assert graph_cache.description(one) == graph_cache.description(other) is not None


def test_parts_of_a_graph_are_not_lowered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def graph() -> Graph:
        def program(x: Any) -> Any:
            for _ in range(partition.SEGMENT_LIMIT):
                x = call("tanh", call("sin", x))
            return x

        return build(program, [typed(float32, 4)])

    x = np.linspace(-1, 1, 4, dtype=np.float32)
    first = executable.finished(executable.compilation(graph(), None, set()))
    assert wait_for_background(60)  # it may have to lower what other tests have left
    monkeypatch.setattr(partition, "lower", lambda graph: pytest.fail("lowered"))
    second = executable.finished(executable.compilation(graph(), None, set()))
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first([x])[0], second([x])[0])
