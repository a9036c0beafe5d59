"""Pruning of a loop's carries.

    %r, %s = while(%x, %w)                     %r = while(%x, %w) {carries=1}
      body(x, w): e = x * w            →         body(x, w): e = x * w
                  return e, w                                return e
                                               ... %s is %w

A carry that each trip hands on as it is becomes a capture; two that start alike and change alike become one. (Those
that reach neither a result nor the test are dead code.)
"""

from __future__ import annotations

from collections.abc import Hashable

from runtime.graph.ir import Graph, Node, Substitution
from runtime.types import TensorType


def prune_carries(graph: Graph) -> None:
    """Prunes in place, in inner loops first."""
    mapping = Substitution()
    for node in graph.nodes:
        if mapping:
            node.inputs = [mapping.get(v, v) for v in node.inputs]
        for region in node.regions:
            prune_carries(region)
        if node.op.name == "while":
            _capture_constant_carries(node, mapping)
            _merge_equal_carries(node, mapping)
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def _capture_constant_carries(node: Node, mapping: Substitution) -> None:
    count = node.attrs["carries"]
    body = node.regions[1]
    constant = [k for k in range(count) if body.outputs[k] is body.inputs[k] and _fits(node, k)]
    if not constant:
        return
    for k in constant:
        mapping[node.outputs[k]] = node.inputs[k]
    changing = [k for k in range(count) if k not in constant]
    order = [*changing, *range(count, len(node.inputs)), *constant]
    node.inputs = [node.inputs[k] for k in order]
    for region in node.regions:
        region.inputs = [region.inputs[k] for k in order]
        region.program = None
    _keep_carries(node, changing)


def _fits(node: Node, k: int) -> bool:
    """Whether the carry may be replaced by its start value, in the loop's regions and after it."""
    return node.inputs[k].type == node.outputs[k].type


def _merge_equal_carries(node: Node, mapping: Substitution) -> None:
    count = node.attrs["carries"]
    test, body = node.regions
    first: dict[int, int] = {}  # a carry -> an earlier one that is always equal to it
    known: dict[Hashable, int] = {}
    for k in range(count):
        key = _course_of(node, k)
        if key is not None and known.setdefault(key, k) != k:
            first[k] = known[key]
    if not first:
        return
    for k, j in first.items():
        mapping[node.outputs[k]] = node.outputs[j]
        for region in (test, body):
            same = Substitution({region.inputs[k]: region.inputs[j]})
            for inner in region.nodes:
                inner.inputs = [same[v] for v in inner.inputs]
            region.outputs = [same[v] for v in region.outputs]
    kept = [k for k in range(count) if k not in first]
    order = [*kept, *range(count, len(node.inputs))]
    node.inputs = [node.inputs[k] for k in order]
    for region in node.regions:
        region.inputs = [region.inputs[k] for k in order]
        region.program = None
    _keep_carries(node, kept)


def _keep_carries(node: Node, kept: list[int]) -> None:
    body = node.regions[1]
    node.outputs = [node.outputs[k] for k in kept]
    body.outputs = [body.outputs[k] for k in kept]
    node.attrs = {**node.attrs, "carries": len(kept)}


def _course_of(node: Node, k: int) -> Hashable | None:
    """What two carries have in common exactly when they start as the same value and take a step of the same form."""
    body = node.regions[1]
    own, step = body.inputs[k], body.outputs[k].node
    if step is None or not isinstance(own.type, TensorType) or step.regions or step.must_stay or len(step.outputs) != 1:
        return None
    operands = tuple([None if v is own else v for v in step.inputs])
    return node.inputs[k], node.outputs[k].type, step.op, frozenset(step.attrs.items()), operands
