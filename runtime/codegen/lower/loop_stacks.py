"""Loops that push or pop one scalar per trip: the capacity or size of the stacks is checked outside the loops.

If the number of trips is known, there is one check before the loop:

    while i < n:                                    if s_top + (n - i) > s_data.size:
        if s_top + 1 > s_data.size:                     s_data = lib.grown(s_data, s_top, s_top + (n - i))
            s_data = lib.grown(s_data, ...)    →    while i < n:
        s_data[s_top] = x                               s_data[s_top] = x
        ...                                             ...

Otherwise the loop is strip-mined (`passes/strip_mine.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from runtime.codegen.kernel.values import StackRef
from runtime.codegen.lower import induction_variables
from runtime.codegen.lower.state import Lowering
from runtime.graph.ir import Node
from runtime.kernel_ir import ir
from runtime.types import StackType


def stacks_of_one_scalar_a_trip(node: Node, op: str) -> list[int]:
    """The carries of a loop that are stacks of scalars and only used for one `stack_push`, or one `stack_pop`, per
    trip."""
    test, body = node.regions
    found: set[int] = set()
    for k, (before, after) in enumerate(zip(body.inputs, body.outputs)):
        if isinstance(before.type, StackType) and before.type.element.rank == 0:
            made = after.node
            if made is not None and made.op.name == op and made.inputs[0] is before:
                found.add(k)
    if not found:
        return []
    uses = Counter(v for graph in (test, body) for n in graph.nodes for v in n.inputs)
    results = Counter(body.outputs)
    return sorted(
        k
        for k in found
        if uses[body.inputs[k]] == 1 and not uses[body.outputs[k]] and not uses[test.inputs[k]]
        and results[body.outputs[k]] == 1 and not results[body.inputs[k]]
    )  # fmt: skip


def check_stacks_before(
    low: Lowering, node: Node, counter: induction_variables.Counter, pushed: Mapping[int, StackRef],
    popped: Mapping[int, StackRef],
) -> None:  # fmt: skip
    """Reserves capacity for the pushes of all trips of a counted loop, and checks that the stacks are large enough for
    all pops."""
    if not pushed and not popped:
        return
    trips = low.assign(counter.trips, "trips")
    for stack in pushed.values():
        data, top = stack.data, stack.top
        needed = low.assign(top + trips, "needed")
        low.branch(needed.compare(">", ir.Size(data)), [ir.assign(stack.data, ir.call("lib.grown", data, top, needed))])
    for k, stack in popped.items():
        pop = node.regions[1].outputs[k].node
        assert pop is not None
        low.fail_when(stack.top.compare("<", trips), "IndexError", "pop from an empty stack", pop)
