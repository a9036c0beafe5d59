"""Strip-mining of loops that push one scalar a trip: the room on the stacks is checked once for as many trips as fit.

    while i < n:                                    while True:
        if s_top + 1 > s_data.size:                     room = min(s_data.size - s_top, 4194304)
            s_data = lib.grown(s_data, ...)             while room > 0 and i < n:
        s_data[s_top] = x                    →              s_data[s_top] = x
        ...                                                 ...
                                                            room = room - 1
                                                        if room > 0:
                                                            break
                                                        s_data = lib.grown(s_data, s_top, s_top + 1)

A buffer that may be replaced inside the loop costs two nanoseconds a trip, as much as a short loop body: its address
and size are loaded again and again. In the inner loop it is fixed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from runtime.codegen.kernel.values import StackRef
from runtime.codegen.lower.state import Lowering
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.types import StackType

# Trips between two looks outside of the inner loop, however much room there is (see `interrupt_polls.py`).
LONGEST = 1 << 22


def stacks_of_one_scalar_a_trip(node: Node) -> set[int]:
    """The carries of a loop that are stacks of scalars on which each trip pushes one value, and that is all."""
    test, body = node.regions
    pushes: set[int] = set()
    for k, (before, after) in enumerate(zip(body.inputs, body.outputs)):
        if isinstance(before.type, StackType) and before.type.element.rank == 0:
            push = after.node
            if push is not None and push.op.name == "stack_push" and push.inputs[0] is before:
                pushes.add(k)
    if not pushes:
        return set()
    uses = Counter(v for graph in (test, body) for n in graph.nodes for v in n.inputs)
    results = Counter(body.outputs)
    return {
        k
        for k in pushes
        if uses[body.inputs[k]] == 1 and not uses[body.outputs[k]] and not uses[test.inputs[k]]
        and results[body.outputs[k]] == 1 and not results[body.inputs[k]]
    }  # fmt: skip


def in_chunks(low: Lowering, loop: ir.While, stacks: Sequence[StackRef]) -> ir.While:
    """`loop` inside a loop that makes room on `stacks`."""
    room = low.names.fresh("room")
    free = [f"{s.data}.size - {s.top}" for s in stacks]
    has_room = low.expr(f"{room} > 0")
    test = has_room if loop.test == ir.TRUE else ir.Logic("and", (has_room, loop.test))
    inner = ir.While(test, [*loop.body, *low.lines(f"{room} = {room} - 1")])
    smallest = f"min({', '.join([*free, str(LONGEST)])})"
    outer = [*low.lines(f"{room} = {smallest}"), inner, ir.If(has_room, [ir.Break()])]
    for s in stacks:
        growth = low.lines(f"{s.data} = lib.grown({s.data}, {s.top}, {s.top} + 1)")
        outer.append(ir.If(low.expr(f"{s.top} == {s.data}.size"), growth))
    return ir.While(ir.TRUE, outer)
