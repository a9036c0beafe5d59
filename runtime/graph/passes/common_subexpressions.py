"""Common-subexpression elimination.

    %2 = exp(%x)                       %2 = exp(%x)
    %3 = exp(%x)                 →     %4 = add(%2, %2)
    %4 = add(%2, %3)                   return %4
    return %4

Two nodes are the same when op, attributes and operands are, and neither has an effect or regions. Regions start afresh:
what the outer graph computes would have to be captured, which pays only for costly ops. An assertion of what has been
asserted before in the same region goes too.
"""

from __future__ import annotations

from typing import Any

from runtime.graph.ir import Graph, Node, Substitution, Value
from runtime.types import TensorType


def merge_common_subexpressions(graph: Graph) -> None:
    """Merges in place, in regions too."""
    mapping = Substitution()
    seen: dict[Any, list[Value]] = {}
    asserted: set[Value] = set()
    kept = []
    for node in graph.nodes:
        if mapping:
            node.inputs = [mapping.get(v, v) for v in node.inputs]
        for region in node.regions:
            merge_common_subexpressions(region)
        if node.op.name == "assert":
            if node.inputs[0] in asserted:
                mapping[node.outputs[-1]] = node.inputs[-1]  # the order token
                continue
            asserted.add(node.inputs[0])
        if not node.regions and not node.must_stay and _gives_tensors(node):
            attrs = node.attrs
            key = (node.op, *node.inputs, *(sorted(attrs.items()) if len(attrs) > 1 else attrs.items()))
            earlier = seen.get(key)
            if earlier is not None:
                mapping.update(zip(node.outputs, earlier))
                continue
            seen[key] = node.outputs
        kept.append(node)
    graph.nodes = kept
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def _gives_tensors(node: Node) -> bool:
    outputs = node.outputs
    if len(outputs) == 1:
        return isinstance(outputs[0].type, TensorType)
    return all(isinstance(v.type, TensorType) for v in outputs)
