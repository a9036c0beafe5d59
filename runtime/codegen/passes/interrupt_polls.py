"""Ctrl-C in native loops: each loop of a kernel asks now and then whether the user wants it to end.

    while i < n:                         while i < n:
        x = x * x                            x = x * x
                                             ticks = ticks + 1
                                   →         if ticks > 16777216:
                                                 ticks = 0
                                                 if lib.interrupted():
                                                     return 1, ...

All loops of a kernel share one counter of ticks. A trip counts for what its body costs, roughly, so that the question
comes some ten times a second: often enough for a person, and rarely enough that taking Python's lock for it costs
nothing. Loops that count ask outside of their trips (see `lower/counted_loops.py`).
"""

from __future__ import annotations

from runtime.codegen import cost_model
from runtime.codegen.passes.kernel import Kernel, loops_inside_out
from runtime.graph.ir import Graph, Node
from runtime.kernel_ir import ir
from runtime.types import TensorType


def run(kernel: Kernel) -> None:
    """Has the loops ask that don't ask yet (see `strip_mine.py`)."""
    for function in kernel.functions:
        for _, item in loops_inside_out(function.body):
            assert item.loop is not None
            spend = ir.assign("ticks", ir.Var("ticks") + item.loop.cost)
            item.body += [spend, kernel.interrupt_poll(function, item.loop.span)]
            item.loop = None


def ticks_of(node: Node) -> int:
    """What a trip of a `while` node costs."""
    return _ticks(node.regions[1])


def _ticks(body: Graph) -> int:
    total = 1
    for node in body.nodes:
        if node.regions:
            total += max(_ticks(region) for region in node.regions)
        elif node.op.name == "matmul":
            total += cost_model.PRODUCT_TICKS
        elif any(isinstance(v.type, TensorType) and v.type.rank for v in node.outputs):
            total += cost_model.ARRAY_TICKS
        elif node.op.name != "constant":
            total += 1
    return total
