"""Loops that push or pop one scalar a trip: whether the stacks have room, or hold so many, is asked outside of them.

Where the trips are counted, once before the loop:

    while i < n:                                    if s_top + (n - i) > s_data.size:
        if s_top + 1 > s_data.size:                     s_data = lib.grown(s_data, s_top, s_top + (n - i))
            s_data = lib.grown(s_data, ...)    →    while i < n:
        s_data[s_top] = x                               s_data[s_top] = x
        ...                                             ...

Else (strip-mining) of pushes once for as many trips as fit:

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

import collections
from collections.abc import Sequence

from runtime.codegen.kernel.values import StackRef
from runtime.codegen.lower.counted_loops import Counter
from runtime.codegen.lower.state import Lowering
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.types import StackType

# Trips between two looks outside of the inner loop, however much room there is (see `interrupt_polls.py`).
LONGEST = 1 << 22


def stacks_of_one_scalar_a_trip(node: Node, op: str) -> set[int]:
    """The carries of a loop that are stacks of scalars with which each trip does one `stack_push`, or one `stack_pop`,
    and that is all."""
    test, body = node.regions
    found: set[int] = set()
    for k, (before, after) in enumerate(zip(body.inputs, body.outputs)):
        if isinstance(before.type, StackType) and before.type.element.rank == 0:
            made = after.node
            if made is not None and made.op.name == op and made.inputs[0] is before:
                found.add(k)
    if not found:
        return set()
    uses = collections.Counter(v for graph in (test, body) for n in graph.nodes for v in n.inputs)
    results = collections.Counter(body.outputs)
    return {
        k
        for k in found
        if uses[body.inputs[k]] == 1 and not uses[body.outputs[k]] and not uses[test.inputs[k]]
        and results[body.outputs[k]] == 1 and not results[body.inputs[k]]
    }  # fmt: skip


def ask_before(
    low: Lowering, node: Node, counter: Counter, pushed: dict[int, StackRef], popped: dict[int, StackRef]
) -> None:
    """Prints what makes room for the pushes of all trips of a counted loop, and the check that all can pop."""
    if not pushed and not popped:
        return
    trips = low.assign(counter.trips, "trips")
    for stack in pushed.values():
        needed = low.assign(f"{stack.top} + {trips}", "needed")
        growth = low.lines(f"{stack.data} = lib.grown({stack.data}, {stack.top}, {needed})")
        low.branch(f"{needed} > {stack.data}.size", growth)
    for k, stack in popped.items():
        pop = node.regions[1].outputs[k].node
        assert pop is not None
        low.fail_when(f"{stack.top} < {trips}", "IndexError", "pop from an empty stack", pop)


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
