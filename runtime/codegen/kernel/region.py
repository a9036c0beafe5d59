"""The region of the graph that is being lowered: the representations of its values, and their users."""

from __future__ import annotations

from collections import Counter
from typing import Any

from runtime.graph.ir import Graph, Node, Value
from runtime.graph.structural import ASSIGN
from runtime.kernel_ir import ir


class Region:
    """What is known about the graph whose nodes are being lowered."""

    def __init__(self, graph: Graph, in_loop: bool = False, small: frozenset[Node] = frozenset()) -> None:
        self.graph = graph
        self.in_loop = in_loop
        self.small = small  # nodes that are lowered element by element
        self.items: dict[Value, Any] = {}  # the elements of small values that have been read from memory
        self.env: dict[Value, Any] = {}
        self.indices: dict[tuple[Value, ir.Var | ir.Const], ir.Expr] = {}  # (index, dimension) -> the checked offset
        self.index = 0
        self.last_use: dict[Value, float] = {}
        self.uses: Counter[Value] = Counter()
        self.users: dict[Value, list[Node]] = {}
        for index, node in enumerate(graph.nodes):
            for value in node.inputs[node.op is ASSIGN :]:  # an assignment doesn't read the value that it replaces
                self.last_use[value] = index
                self.uses[value] += 1
                self.users.setdefault(value, []).append(node)
        self.outputs = set(graph.outputs)
        for value in graph.outputs:
            self.last_use[value] = float("inf")
            self.uses[value] += 1
        self.live = live_nodes(graph)


def live_nodes(graph: Graph) -> set[Node]:
    """The nodes whose results are needed; others aren't lowered."""
    needed = set(graph.outputs)
    live: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.must_stay or any(v in needed for v in node.outputs):
            live.add(node)
            needed.update(node.inputs)
    return live
