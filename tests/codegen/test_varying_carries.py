"""Carries of loops whose sizes change are found before the loops are printed, and each loop is printed once."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import autograph as ag
from runtime.codegen.lower.lower_graph import lower
from runtime.codegen.op_lowerings import control_flow
from runtime.codegen.symbolic.varying_carries import VaryingCarries
from tests.growth import Construct, load
from tests.test_growth import accumulators, growing_array, growing_list, late_variable, nested_loops

X = ag.TensorSpec([None], ag.float32)
N = ag.TensorSpec([], ag.int32)


def appended(x: Any, n: Any) -> Any:
    for _ in ag.range(n):
        x = ag.concat([x, x[:1]], 0)
    return x


def rolled(x: Any, n: Any) -> Any:
    """As long as before, which hangs on arithmetic."""
    for _ in ag.range(n):
        x = ag.concat([x[1:], x[:1]], 0)
    return x


def kept(x: Any, n: Any) -> Any:
    for _ in ag.range(n):
        x = ag.sin(x) * x + 1.0
    return x


def one_behind(x: Any, n: Any) -> Any:
    """The sizes of one carry become those of another."""
    before = x
    for _ in ag.range(n):
        before = x
        x = ag.concat([x, x[:1]], 0)
    return ag.concat([before, x], 0)


def exchanged(x: Any, n: Any) -> Any:
    y = x * 2.0
    for _ in ag.range(n):
        x, y = y, x
    return x - y


def in_a_branch(x: Any, n: Any) -> Any:
    for i in ag.range(n):
        if i % 2 == 0:
            x = ag.concat([x, x[:1]], 0)
        else:
            x = x * 0.5
    return x


def inside(x: Any, n: Any) -> Any:
    for _ in ag.range(n):
        for _ in ag.range(n):
            x = ag.concat([x, x[:1]], 0)
        x = x * 0.5
    return x


def kept_by_a_loop_inside(x: Any, n: Any) -> Any:
    for _ in ag.range(n):
        for _ in ag.range(n):
            x = x * 0.5
    return x


def list_that_grows(x: Any, n: Any) -> Any:
    found = []
    for _ in ag.range(n):
        found.append(x[0])
    return ag.stack(found)


def empty_beside(x: Any, n: Any) -> Any:
    for _ in ag.range(n):
        x = ag.concat([x, ag.zeros([0])], 0)
    return x


# How many carries of the outermost loop vary surely.
PROGRAMS = [
    (appended, 1), (rolled, 0), (kept, 0), (one_behind, 2), (exchanged, 0), (in_a_branch, 1), (inside, 1),
    (kept_by_a_loop_inside, 0), (list_that_grows, 1), (empty_beside, 0),
]  # fmt: skip


def graph_of(function: Any, x: Any = X) -> Any:
    return ag.function(function, jit_compile=False).get_concrete_function(x, N).graph


@pytest.mark.parametrize(("function", "count"), PROGRAMS)
def test_carries_that_are_found(function: Any, count: int) -> None:
    (loop,) = [node for node in graph_of(function).nodes if node.op.name == "while"]
    assert len(VaryingCarries().of(loop)) == count


def graphs_of(function: Any, x: Any = X) -> list[Any]:
    """Those of a function, and of its gradient where it has one."""
    concrete = ag.function(lambda x, n: ag.reduce_sum(function(x, n)), jit_compile=False).get_concrete_function(x, N)
    gradient = concrete.function.gradient((0,))
    return [concrete.graph, gradient.forward.graph, gradient.backward.graph]


@pytest.mark.parametrize("function", [function for function, _ in PROGRAMS])
def test_kernels_are_those_that_printing_finds(function: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for what was assumed in the printing that was dropped."""
    graphs = graphs_of(function)
    found = [lower(graph, assuming=False).text for graph in graphs]
    monkeypatch.setattr(VaryingCarries, "_look_at", lambda self, loop: self._found.setdefault(loop, set()))
    assert found == [lower(graph, assuming=False).text for graph in graphs]


@pytest.mark.parametrize("construct", [nested_loops, accumulators, growing_array, growing_list, late_variable])
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_each_loop_is_printed_once(construct: Construct, depth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    printed = []
    trip, own = control_flow._trip, threading.get_ident()

    def counted(low: Any, node: Any, *arguments: Any) -> Any:
        if threading.get_ident() == own:  # others compile for other tests
            printed.append(node)
        return trip(low, node, *arguments)

    monkeypatch.setattr(control_flow, "_trip", counted)
    for graph in graphs_of(load(construct(depth)), ag.TensorSpec([], ag.float32)):
        printed.clear()
        lower(graph)
        assert len(printed) == len(set(printed)) == depth
