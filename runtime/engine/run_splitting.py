"""Splits a long straight run of nodes into subgraphs of equal shape, so that they share kernels.

    matmul add tanh matmul add tanh ...      →      [matmul add tanh] [matmul add tanh] ...

Compile time grows faster than the length of a kernel, and the layers of a network, or the trips of an unrolled loop,
repeat a small number of patterns. A subgraph starts at each costly node (a product, a loop, a branch: the anchors) and
is then split into its connected components: the updates of a hundred variables are a hundred small subgraphs with the
same text. Where a pattern without anchors repeats (`graph/passes/repetition.py`), a subgraph is one repetition, or
several short ones. Subgraphs have no names of values, since the kernel's text must not depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.graph.ir import Node, Value
from runtime.graph.passes.repetition import is_constant, stretches

ANCHORS = frozenset({"matmul", "while", "cond"})
# Short repetitions are merged up to so many nodes: the call of a kernel costs as much as several small operations.
_ENOUGH = 16


def split_run(nodes: Sequence[Node], limit: int) -> list[list[Node]]:
    """The subgraphs' nodes without constants (each subgraph gets its own), definitions before uses.

    limit: the most nodes of a subgraph. (Nodes in regions don't count: a loop can't be split.)
    """
    nodes = [node for node in nodes if not is_constant(node)]
    # When a node fails, exactly the nodes before it in the program must have run.
    in_order = any(node.op.name == "commit" for node in nodes)
    found: list[list[Node]] = []
    at = 0
    for stretch in stretches(nodes):
        if any(node.op.name in ANCHORS for node in nodes[stretch.start : stretch.start + stretch.period]):
            continue  # split at the anchors, which every repetition has
        step = stretch.period * max(1, min(_ENOUGH, limit) // stretch.period)
        if stretch.stop - stretch.start < 2 * step:
            continue  # nothing would be shared
        found += _groups(nodes[at : stretch.start], in_order)
        at = stretch.start + (stretch.stop - stretch.start) // step * step
        found += [nodes[start : start + step] for start in range(stretch.start, at, step)]
    found += _groups(nodes[at:], in_order)
    return [part[start : start + limit] for part in found for start in range(0, len(part), limit)]


def _groups(nodes: Sequence[Node], in_order: bool) -> list[list[Node]]:
    """Nodes split at the anchors and, unless they must stay in order, into connected components."""
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
