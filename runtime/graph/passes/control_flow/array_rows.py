"""Rows of arrays that loops write: an array of a fixed size has all its rows from the start.

    %i, %a = while(0, constant [0 rows], %n)        %z = broadcast_to(0.0, %n)
      body(i, a, n):                           →    %i, %a = while(0, %z, %n)
        w = array_write(a, i, x, n) {fixed}           body(i, a, n): w = array_write(a, i, x, n) {fixed}
        return i + 1, w                                              return i + 1, w

A `TensorArray` whose first write is in a loop starts with no rows, since only the write says what an element is. Rows
that were never written are zeros, so the results are the same; but no write has to look whether the array must grow,
and no read whether it has all rows.
"""

from __future__ import annotations

import numpy as np

from runtime.graph.ir import Graph, Node, Value
from runtime.graph.node_helpers import add_op, constant_node, known_array
from runtime.types import TensorType


def reserve_rows(graph: Graph) -> None:
    """Gives the arrays their rows, in place, in regions too."""
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        for region in node.regions:
            reserve_rows(region)
        if node.op.name == "while":
            for k in range(node.attrs["carries"]):
                if _has_no_rows(node, k):
                    size = _outside(node, _size_of_writes(node.regions[1], node.regions[1].inputs[k]))
                    if size is not None:
                        node.inputs[k] = _zeros(graph, node, k, size)
        graph.nodes.append(node)
    graph.program = None


def _has_no_rows(node: Node, k: int) -> bool:
    """Whether a carry starts as a constant of no rows and may get some, of a known shape."""
    start, type_ = known_array(node.inputs[k]), node.outputs[k].type
    if start is None or not start.ndim or len(start) or start.dtype == object:
        return False
    assert isinstance(type_, TensorType)
    return type_.shape is not None and type_.shape[0] is None and None not in type_.shape[1:]


def _size_of_writes(graph: Graph, array: Value) -> Value | None:
    """The number of rows that the first write to an array gives it, in terms of the graph; None if it may grow."""
    for node in graph.nodes:
        if node.op.name == "array_write" and node.inputs[0] is array:
            return node.inputs[3] if node.attrs["fixed"] else None
        if array not in node.inputs or not node.regions:
            continue
        skipped = 1 if node.op.name == "cond" else 0
        k = node.inputs.index(array, skipped) - skipped
        for region in node.regions:
            size = _outside(node, _size_of_writes(region, region.inputs[k]))
            if size is not None:
                return size
    return None


def _outside(node: Node, value: Value | None) -> Value | None:
    """What a value of a node's region is outside of the node; None if there is no such value, or trips change it."""
    if value is None or known_array(value) is not None:
        return value
    for region in node.regions:
        if value in region.inputs:
            k = region.inputs.index(value)
            if node.op.name == "cond":
                return node.inputs[k + 1]
            return node.inputs[k] if k >= node.attrs["carries"] else None
    return None


def _zeros(graph: Graph, node: Node, k: int, size: Value) -> Value:
    """An array of that many rows in front of the loop, whose carry `k` it is to be."""
    type_ = node.outputs[k].type
    assert isinstance(type_, TensorType)
    assert type_.shape is not None
    number = known_array(size)
    if number is not None:
        rows = constant_node(graph, number, node.span)
        graph.nodes.append(rows)
        size = rows.outputs[0]
    zero = constant_node(graph, np.zeros((), type_.dtype.np), node.span)
    graph.nodes.append(zero)
    return add_op(graph, "broadcast_to", [zero.outputs[0], size], {"shape": (None, *type_.shape[1:])}, node.span)
