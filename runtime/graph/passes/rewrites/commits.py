"""Commits: what a variable holds is written down before something that may fail.

    %2 = assign(%v, %1) {variable=v}         %2 = assign(%v, %1) {variable=v}
    assert(%c)                          →    commit(%2) {variable=v}
                                             assert(%c)

A graph gives the new values of variables when it ends. When it fails before that, the assignments that have run count
all the same, as they do in eager code. A commit hands the value to whoever runs the graph (`ctx.commits`). Assignments
after which nothing can fail need none, so that an ordinary training step has no commits at all.
"""

from __future__ import annotations

from typing import Any

from runtime.graph.ir import Graph, Node
from runtime.graph.structural import ASSIGN, COMMIT
from runtime.shapes import element_count
from runtime.types import TensorType


def insert_commits(graph: Graph) -> bool:
    """Adds commits in place, in place of those that are there; says whether there are any."""
    remove_commits(graph)
    return _insert(graph, False)


def remove_commits(graph: Graph) -> None:
    """Takes the commits out again, in place."""
    for node in graph.nodes:
        for region in node.regions:
            remove_commits(region)
    graph.nodes = [n for n in graph.nodes if n.op is not COMMIT]
    graph.program = None


def _insert(graph: Graph, fails_after: bool) -> bool:
    nodes: list[Node] = []  # from the last to the first
    found = False
    committed: set[Any] = set()  # variables that get a later value before anything fails
    # What fails before the first assignment means nothing to any.
    first = next((k for k, node in enumerate(graph.nodes) if node.op is ASSIGN or node.regions), len(graph.nodes))
    for node in reversed(graph.nodes[first:]):
        if node.regions and node.op.name in ("while", "cond", "letrec"):
            again = node.op.name == "letrec" or (node.op.name == "while" and may_fail(node))
            for region in node.regions:
                found |= _insert(region, fails_after or again)
        variable = node.attrs.get("variable") if node.op is ASSIGN else None
        if variable is not None and fails_after and variable not in committed:
            nodes.append(Node(COMMIT, node.outputs, {"variable": variable}, (), graph, (), node.span))
            committed.add(variable)
            found = True
        if may_fail(node):
            fails_after = True
            committed.clear()
        nodes.append(node)
    graph.nodes[first:] = nodes[::-1]
    graph.program = None
    return found


def may_fail(node: Node) -> bool:
    """Whether running the node can raise for some values of its operands."""
    op = node.op
    if op.name in ("while", "cond"):
        return any(may_fail(inner) for region in node.regions for inner in region.nodes)
    if op.is_elementwise:
        if op.checks_numbers(node.outputs[0].dtype):
            return True
        arrays = [v for v in node.inputs if isinstance(v.type, TensorType) and v.type.rank != 0]
        return len(arrays) > 1 and not all(map(_is_known, arrays))
    return op.can_fail or not all(map(_is_known, (*node.inputs, *node.outputs)))


def _is_known(value: Any) -> bool:
    return not isinstance(value.type, TensorType) or element_count(value.type.shape) is not None
