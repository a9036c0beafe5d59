"""Cuts a long straight run of nodes into pieces of the same shape, so that they share kernels.

    matmul add tanh matmul add tanh ...      →      [matmul add tanh] [matmul add tanh] ...

A compiler's time grows faster than a kernel's length, and sixty layers of a network, or the trips of an unrolled loop,
repeat the same few patterns. A piece starts at each costly node (a product, a loop, a branch: the anchors), and what
isn't connected inside a piece comes apart: the updates of a hundred variables are a hundred small pieces with the same
text. Where a pattern without anchors recurs (`graph/passes/repetition.py`), a piece is one repetition, or a few short
ones. Names are left out of the pieces, because the text must not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.graph.ir import Node, Value
from runtime.graph.passes.repetition import is_constant, stretches

ANCHORS = frozenset({"matmul", "while", "cond"})
# Short repetitions share a piece up to so many nodes: a call costs as much as some small operations.
_ENOUGH = 16


def pieces(nodes: Sequence[Node], limit: int) -> list[list[Node]]:
    """The nodes, constants left out (each piece gets its own), in an order that keeps definitions before uses.

    limit: how many nodes a piece may have (those in regions don't count: a loop can't be cut).
    """
    nodes = [node for node in nodes if not is_constant(node)]
    # What has run when something fails must be what comes before it in the program.
    in_order = any(node.op.name == "commit" for node in nodes)
    found: list[list[Node]] = []
    at = 0
    for stretch in stretches(nodes):
        if any(node.op.name in ANCHORS for node in nodes[stretch.start : stretch.start + stretch.period]):
            continue  # it is cut at these, at the same places of each repetition
        step = stretch.period * max(1, min(_ENOUGH, limit) // stretch.period)
        if stretch.stop - stretch.start < 2 * step:
            continue  # nothing would be shared
        found += _groups(nodes[at : stretch.start], in_order)
        at = stretch.start + (stretch.stop - stretch.start) // step * step
        found += [nodes[start : start + step] for start in range(stretch.start, at, step)]
    found += _groups(nodes[at:], in_order)
    return [part[start : start + limit] for part in found for start in range(0, len(part), limit)]


def _groups(nodes: Sequence[Node], in_order: bool) -> list[list[Node]]:
    """Nodes cut at the anchors and into what is connected."""
    groups: list[list[Node]] = [[]]
    for node in nodes:
        if node.op.name in ANCHORS:
            groups.append([])
        groups[-1].append(node)
    return (
        [group for group in groups if group] if in_order else [part for group in groups for part in _connected(group)]
    )


def _connected(nodes: Sequence[Node]) -> list[list[Node]]:
    """The connected components of a run of nodes, each in program order, ordered by their first node."""
    parent = list(range(len(nodes)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    made: dict[Value, int] = {}
    for index, node in enumerate(nodes):
        for value in node.inputs:
            if value in made:
                parent[root(index)] = root(made[value])
        for value in node.outputs:
            made[value] = index
    components: dict[int, list[Node]] = {}
    for index, node in enumerate(nodes):
        components.setdefault(root(index), []).append(node)
    return list(components.values())
