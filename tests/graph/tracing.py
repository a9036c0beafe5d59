"""Graphs as they were traced, and what passes make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import autograph as ag
from runtime.graph.ir import Graph, copy_graph
from runtime.graph.passes import options
from runtime.graph.passes.dead_code import remove_dead_code
from runtime.graph.passes.pipeline import simplify
from runtime.graph.verify import verify

F32 = ag.TensorSpec([], ag.float32)
I32 = ag.TensorSpec([], ag.int32)
MATRIX = ag.TensorSpec([2, 3], ag.float32)


def traced(function: Callable, *specs: Any) -> Graph:
    """The graph as it was traced, but for dead code."""
    options.set_options({"disable_meta_optimizer": True})
    try:
        return ag.function(function).get_concrete_function(*specs).graph
    finally:
        options._chosen.clear()


def ops(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.walk() if node.op.name != "constant"]


def simplified(graph: Graph, *passes: Callable) -> Graph:
    result = copy_graph(graph)
    for run in passes or (simplify, remove_dead_code):
        run(result)
    verify(result)
    return result
