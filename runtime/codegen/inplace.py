"""Which loop carries are worth owning: arrays that the body updates element by element.

A loop may write such a carry in place if nobody else sees the memory; so its first value is copied once before the
loop (unless it is this kernel's own), and every trip's update is then free of copies.
"""

from __future__ import annotations

from runtime.graph.ir import Graph, Node

# Ops whose output may take over the memory of their first input.
UPDATES = frozenset({"row_update", "slice_add", "index_add", "row_add", "array_write"})


def updated_carries(node: Node) -> set[int]:
    """The carries of a `while` that its body updates, directly or in nested control flow."""
    body = node.regions[1]
    updated = updated_inputs(body)
    return {k for k in range(node.attrs["carries"]) if k in updated}


def updated_inputs(graph: Graph) -> set[int]:
    """Positions of the graph's inputs that an update op takes as the array to change."""
    found = set()
    for index, value in enumerate(graph.inputs):
        # Follow the chain of updates only from the input itself: what comes after the first update is owned anyway.
        for node in graph.nodes:
            if value not in node.inputs:
                continue
            if node.op.name in UPDATES and node.inputs[0] is value:
                found.add(index)
            elif node.op.name == "while":
                inner = updated_carries(node)
                if any(k in inner and node.inputs[k] is value for k in range(node.attrs["carries"])):
                    found.add(index)
            elif node.op.name == "cond":
                changed = updated_inputs(node.regions[0]) | updated_inputs(node.regions[1])
                if any(node.inputs[k + 1] is value for k in changed):
                    found.add(index)
    return found
