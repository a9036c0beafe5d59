"""The connected components of nodes."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.graph.ir import Node, Value


def connected(nodes: Sequence[Node], through_numbers: bool = True) -> list[list[Node]]:
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
            if through_numbers or not is_number(value):
                made[value] = index
    components: dict[int, list[Node]] = {}
    for index, node in enumerate(nodes):
        components.setdefault(root(index), []).append(node)
    return list(components.values())


def is_number(value: Value) -> bool:
    """Whether a value is a scalar tensor."""
    return getattr(value.type, "rank", None) == 0
