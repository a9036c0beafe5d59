"""Simplification of `cond`.

    %r, %s = cond(not %p, %x)                  %r = cond(%p, %x)
      then: return sin(x), x           →         then: return x * 2
      else: return x * 2, x                      else: return sin(x)
                                               ... %s is %x

A negated predicate swaps the branches. A result that both branches take from outside, the same, isn't a result. Inside
a branch the predicate is a constant, which decides a `cond` on the same predicate in there.
"""

from __future__ import annotations

import numpy as np

from runtime.graph.ir import Graph, Node, Substitution, Value
from runtime.graph.node_helpers import constant_node


def simplify_conditionals(graph: Graph) -> None:
    """Simplifies in place, in regions too."""
    mapping = Substitution()
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        node.inputs = [mapping[v] for v in node.inputs]
        if node.op.name == "cond":
            _drop_negation(node)
            _decide_inside(node)
            _drop_common_results(node, mapping)
        for region in node.regions:
            simplify_conditionals(region)
        graph.nodes.append(node)
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def _drop_negation(node: Node) -> None:
    made = node.inputs[0].node
    if made is not None and made.op.name == "logical_not":
        node.inputs[0] = made.inputs[0]
        node.regions = (node.regions[1], node.regions[0])


def _decide_inside(node: Node) -> None:
    """The predicate, captured by a branch, is true in the first and false in the second."""
    for position, value in enumerate(node.inputs[1:]):
        if value is not node.inputs[0]:
            continue
        for region, known in zip(node.regions, (True, False)):
            own = region.inputs[position]
            constant = constant_node(region, np.array(known))
            replaced = Substitution({own: constant.outputs[0]})
            for inner in region.nodes:
                inner.inputs = [replaced[v] for v in inner.inputs]
            region.outputs = [replaced[v] for v in region.outputs]
            region.nodes.insert(0, constant)
            region.program = None


def _drop_common_results(node: Node, mapping: Substitution) -> None:
    then, other = node.regions
    kept = []
    for index, output in enumerate(node.outputs):
        one, two = _outside(node, then, index), _outside(node, other, index)
        if one is not None and one is two and one.type == output.type:
            mapping[output] = one
        else:
            kept.append(index)
    if len(kept) == len(node.outputs):
        return
    node.outputs = [node.outputs[k] for k in kept]
    node.attrs = {**node.attrs, "types": tuple(v.type for v in node.outputs)}
    for region in node.regions:
        region.outputs = [region.outputs[k] for k in kept]
        region.program = None


def _outside(node: Node, region: Graph, index: int) -> Value | None:
    """The value around the cond that a branch hands on as a result."""
    value = region.outputs[index]
    return node.inputs[1 + region.inputs.index(value)] if value.node is None else None
