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

from runtime.codegen.kernel.source import Interruption
from runtime.codegen.lower.state import Lowering
from runtime.codegen.passes.recorded import note
from runtime.graph.ir import Graph, Node
from runtime.kernel_ir import ir
from runtime.types import TensorType

# Ticks between two questions; a tick is about a nanosecond.
LIMIT = 1 << 24
_ARRAY, _PRODUCT = 256, 4096


def interruptible(low: Lowering, node: Node, block: ir.Block, trips: int = 1) -> None:
    """Adds the question to `block`, which runs `trips` trips of a `while` node."""
    low.prologue["ticks"] = "0"
    polls = [*low.lines(f"ticks = ticks + {trips * ticks_of(node)}"), question(low, node)]
    note("interrupt polls", lambda: ([ir.While(ir.TRUE, block)], [ir.While(ir.TRUE, [*block, *polls])]))
    block += polls


def question(low: Lowering, node: Node) -> ir.If:
    """Asks when the ticks say so."""
    with low.nested() as body:
        low.line("ticks = 0")
        low.leave_when("lib.interrupted()", Interruption("KeyboardInterrupt", "", node.span))
    return ir.If(low.expr(f"ticks > {LIMIT}"), body)


def ticks_of(node: Node) -> int:
    """What a trip of a `while` node costs."""
    return _ticks(node.regions[1])


def _ticks(body: Graph) -> int:
    total = 1
    for node in body.nodes:
        if node.regions:
            total += max(_ticks(region) for region in node.regions)
        elif node.op.name == "matmul":
            total += _PRODUCT
        elif any(isinstance(v.type, TensorType) and v.type.rank for v in node.outputs):
            total += _ARRAY
        elif node.op.name != "constant":
            total += 1
    return total
