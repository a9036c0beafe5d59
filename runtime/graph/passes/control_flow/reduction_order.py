"""Reductions of one tensor along the same axes stand together, so that generated code goes over it once.

    %place = argmax(%x) {axis=0}                 %place = argmax(%x) {axis=0}
    %a = array_write(%a0, %i, %place, %n)   →    %best = reduce_max(%x) {axis=(0,)}
    %best = reduce_max(%x) {axis=(0,)}           %a = array_write(%a0, %i, %place, %n)

Only in loops, where a tensor is small and going over it again counts, and only what can't fail: of two errors the first
still comes first.
"""

from __future__ import annotations

from runtime.graph.ir import Graph, Node, Value
from runtime.graph.passes.rewrites.commits import may_fail


def gather_reductions(graph: Graph, in_loop: bool = False) -> None:
    """Moves the nodes, in place, in regions too."""
    together: dict[tuple[Value, tuple[int, ...]], list[Node]] = {}
    for node in graph.nodes:
        for region in node.regions:
            gather_reductions(region, in_loop or node.op.name == "while")
        key = _operand_and_axes(node)
        if in_loop and key is not None and (key not in together or not may_fail(node)):
            together.setdefault(key, []).append(node)
    later = {node for nodes in together.values() for node in nodes[1:]}
    if not later:
        return
    first = {nodes[0]: nodes for nodes in together.values()}
    graph.nodes = [each for node in graph.nodes if node not in later for each in first.get(node, [node])]
    graph.program = None


def _operand_and_axes(node: Node) -> tuple[Value, tuple[int, ...]] | None:
    """What a reduction reduces, and along which axes."""
    if not node.op.is_reduction:
        return None
    axis = node.attrs["axis"]  # a number for those that give positions
    axes = axis if isinstance(axis, tuple) else (axis,)
    return (node.inputs[0], axes) if axes else None
