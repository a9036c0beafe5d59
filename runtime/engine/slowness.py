"""Warnings about what keeps a program from being fast: loops that were unrolled, or that the interpreter runs.

What kernels call Python for warns by itself (`codegen/kernel/call_outs.py`), and so do loops in eager code that take a
tensor apart (`ops/eager_loops.py`).
"""

from __future__ import annotations

from runtime import performance
from runtime.codegen.lower.lower_graph import why_interpreted
from runtime.errors import describe_span
from runtime.graph.ir import Graph, Node
from runtime.graph.passes.pipeline import rewrite
from runtime.graph.unrolled import Unrolled, costliest_in

_LENGTH = "takes long"  # its key in `warned`
_STAGE = (
    "loop over `ag.range(n)` or over a tensor (`ag.stack` makes one of a list), or let a `while` test a tensor: that "
    "is one loop in native code, however often it runs"
)
_SELDOM = "jit_compile=False keeps a function that is called seldom on the interpreter"


def warn_of_unrolling(function: str, loop: Unrolled, seconds: float) -> None:
    """Warns that tracing and compiling a function took long, because a loop was unrolled."""
    message = f"tracing and compiling '{function}' has taken {seconds:.1f} s, because a loop in it was unrolled"
    _warn_of_loop(function, loop, message, _STAGE)


def _warn_of_loop(function: str, loop: Unrolled, message: str, fix: str) -> None:
    cause = (
        f"the loop ran {loop.trips} times while the function was traced, which left {loop.operations} operations: a "
        "copy of its body for each iteration"
    )
    performance.warn_once("unrolled", function, loop.span, message, cause, fix)


def warn_of_length(graph: Graph, operations: int, warned: set[str]) -> None:
    """Warns once per function that its compilation takes long, and says what to do."""
    if _LENGTH in warned:
        return
    warned.add(_LENGTH)
    message = (
        f"compiling '{graph.name}' to native code takes about {operations // 100} s: it has {operations} different "
        "operations on arrays. Until the code is ready, calls are interpreted, or wait for it with jit_compile=True"
    )
    loop = costliest_in(graph)
    if loop is not None:
        _warn_of_loop(graph.name, loop, message, f"{_STAGE}; {_SELDOM}")
        return
    span = next((node.span for node in graph.nodes if node.span), None) or (__file__, 1, graph.name)
    performance.warn_once(_LENGTH, graph.name, span, message, "equal operations share code, these don't", _SELDOM)


def why_loop_is_interpreted(node: Node) -> tuple[str, Node] | None:
    """Why a loop, with complex numbers as pairs, can't be compiled, and which node causes that; None if it can.

    Where the loop carries something that has no native form, that is the first operation in it that has none either.
    """
    why = why_interpreted(node)
    if why is None or why[1] is not node:
        return why
    inside = (inner for region in reversed(node.regions) for inner in region.nodes)
    return next((found for inner in inside if (found := why_interpreted(inner)) is not None), why)


def warn_of_interpretation(node: Node, loop: Graph, seconds: float) -> None:
    """Warns that the interpreter runs a loop (`loop` is its node as a graph of its own), unless it can be compiled."""
    compiled = (rewrite("complex parts", loop) or loop).nodes
    why = next((found for each in compiled if (found := why_loop_is_interpreted(each)) is not None), None)
    if why is None or not node.span:
        return
    reason, culprit = why
    where = describe_span(culprit.span).replace("\n", "\n  ")
    performance.warn_once(
        "interpreted",
        node.span[2],
        node.span,
        f"the interpreter has run this loop for {seconds:.1f} s, because it can't be compiled as a whole",
        f"{reason}{f', at {where}' if where else ''}",
        "do that before the loop or after it, or in operations on numbers; `explain` of the function lists what has no "
        "native code",
    )
