"""Loops that push one scalar a trip: the room on the stacks is checked once for as many trips as fit.

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

from collections.abc import Sequence

from runtime.codegen.lowering import Lowering
from runtime.codegen.refs import StackRef
from runtime.graph.ir import Node
from runtime.types import StackType

# Trips between two looks outside of the inner loop, however much room there is (see `interrupts.py`).
LONGEST = 1 << 22


def gets_one_scalar_a_trip(node: Node, k: int) -> bool:
    """Whether carry `k` of a loop is a stack of scalars on which each trip pushes one value, and that is all."""
    test, body = node.regions
    before, after = body.inputs[k], body.outputs[k]
    if not isinstance(before.type, StackType) or before.type.element.rank != 0:
        return False
    push = after.node
    if push is None or push.op.name != "stack_push" or push.inputs[0] is not before:
        return False
    uses = sum(v is before for n in body.nodes for v in n.inputs) + sum(
        v is after for n in body.nodes for v in n.inputs
    )
    in_test = any(v is test.inputs[k] for n in test.nodes for v in n.inputs)
    return uses == 1 and not in_test and sum(v is before or v is after for v in body.outputs) == 1


def in_chunks(low: Lowering, loop: list, stacks: Sequence[StackRef]) -> list:
    """`loop` (its head and its block) inside a loop that makes room on `stacks`."""
    head, block = loop
    room = low.names.fresh("room")
    free = [f"{s.data}.size - {s.top}" for s in stacks]
    test = head[len("while ") : -1]
    inner = f"while {room} > 0:" if test == "True" else f"while {room} > 0 and ({test}):"
    smallest = f"min({', '.join([*free, str(LONGEST)])})"
    outer: list = [f"{room} = {smallest}"]
    outer += [inner, [*block, f"{room} = {room} - 1"], f"if {room} > 0:", ["break"]]
    for s in stacks:
        outer += [f"if {s.top} == {s.data}.size:", [f"{s.data} = lib.grown({s.data}, {s.top}, {s.top} + 1)"]]
    return ["while True:", outer]
