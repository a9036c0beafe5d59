"""Constant folding: nodes whose operands are all constants become constants.

    %1 = constant() {value=2.0}
    %2 = constant() {value=3.0}        →      %3 = constant() {value=6.0}
    %3 = multiply(%1, %2)                     return %3
    return %3

A `cond` on a constant becomes the branch it takes. Results over a size limit stay computations, so that a graph never
grows by a folded `zeros([10000, 10000])`. A node whose kernel fails (a division by zero, an index out of range) is left
to fail at run time, and only if it runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.graph.ir import Graph, Node, Substitution, Value, copy_nodes
from runtime.graph.node_helpers import constant_node, known_array
from runtime.graph.structural import CONSTANT
from runtime.shapes import element_count
from runtime.types import TensorType

MAX_ELEMENTS = 64


def fold_constants(graph: Graph) -> None:
    """Folds in place, in regions too."""
    mapping = Substitution()
    nodes, graph.nodes = graph.nodes, []
    known: dict[Value, Any] = {}
    for node in nodes:
        if mapping:
            node.inputs = [mapping.get(v, v) for v in node.inputs]
        if node.op is CONSTANT:
            known[node.outputs[0]] = node.attrs["value"].array
        elif node.op.name == "cond" and node.inputs[0] in known and not node.has_effect:
            _take_branch(graph, node, bool(known[node.inputs[0]]), mapping)
            continue
        elif _is_foldable(node, known):
            results = _evaluate(node, known)
            if results is not None:
                for old, array in zip(node.outputs, results):
                    constant = constant_node(graph, array, node.span)
                    graph.nodes.append(constant)
                    (new,) = constant.outputs
                    new.name = old.name
                    mapping[old] = new
                    known[new] = known_array(new)
                continue
        for region in node.regions:
            fold_constants(region)
        graph.nodes.append(node)
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def _take_branch(graph: Graph, node: Node, taken: bool, mapping: Substitution) -> None:
    region = node.regions[0 if taken else 1]
    fold_constants(region)
    inner = Substitution(zip(region.inputs, node.inputs[1:]))
    copy_nodes(region.nodes, graph, inner)
    for old, value in zip(node.outputs, region.outputs):
        mapping[old] = inner[value]


def _is_foldable(node: Node, known: dict[Value, Any]) -> bool:
    op = node.op
    if not node.inputs or node.inputs[0] not in known or node.regions:
        return False
    if op.effect or op.is_collective or op.is_copy_to_device:
        return False
    for value in node.outputs:
        if not isinstance(value.type, TensorType) or (element_count(value.type.shape) or 0) > MAX_ELEMENTS:
            return False
    return all(v in known for v in node.inputs)


def _evaluate(node: Node, known: dict[Value, Any]) -> list[Any] | None:
    try:
        result = node.op.kernel(*[known[v] for v in node.inputs], **node.attrs)
    except Exception:
        return None
    results = [np.asarray(r) for r in (result if node.op.multiple else (result,))]
    return results if all(r.size <= MAX_ELEMENTS for r in results) else None
