"""Dead-code elimination.

    %2 = exp(%x)                       %3 = sin(%x)
    %3 = sin(%x)                 →     return %3
    return %3

Nodes with effects stay. A `while` loses the carries that reach neither its results nor its test, a `cond` the outputs
that nobody reads, both, and a `letrec`, the captures that their regions don't use.
"""

from __future__ import annotations

from typing import Any

from runtime.graph.ir import Graph, Node, Value
from runtime.types import TokenType


def remove_dead_code(graph: Graph, builder: Any = None) -> None:
    """Removes what doesn't reach the outputs, in place. With `builder`, also its captures that nothing uses."""
    live = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if live.isdisjoint(node.outputs) and not node.must_stay:
            continue
        if node.op.name == "while":
            _prune_while(node, live)
        elif node.op.name == "cond":
            _prune_cond(node, live)
        elif node.op.name == "letrec":
            _prune_letrec(node)
        live.update(node.inputs)
        kept.append(node)
    graph.nodes = kept[::-1]
    graph.program = None
    if builder is not None:
        builder.forget_captures(live)


def _prune_cond(node: Node, live: set[Value]) -> None:
    keep = [i for i, v in enumerate(node.outputs) if v in live or isinstance(v.type, TokenType)]
    node.outputs = [node.outputs[i] for i in keep]
    node.attrs = {**node.attrs, "types": tuple(v.type for v in node.outputs)}
    for region in node.regions:
        region.outputs = [region.outputs[i] for i in keep]
        remove_dead_code(region)
    _prune_captures(node, 1)


def _prune_while(node: Node, live: set[Value]) -> None:
    test, body = node.regions
    count = node.attrs["carries"]
    remove_dead_code(test)
    used_by_test = _used(test)
    needed = {
        i
        for i in range(count)
        if node.outputs[i] in live or test.inputs[i] in used_by_test or isinstance(node.outputs[i].type, TokenType)
    }
    # A carry is needed too when another needed carry's next value, or an effect in the body, is computed from it.
    reaching = _reaching(body, count, needed)
    keep = [i for i in range(count) if i in needed or body.inputs[i] in reaching]
    rest = list(range(count, len(node.inputs)))
    node.outputs = [node.outputs[i] for i in keep]
    node.inputs = [node.inputs[i] for i in keep + rest]
    for region in node.regions:
        region.inputs = [region.inputs[i] for i in keep + rest]
    body.outputs = [body.outputs[i] for i in keep]
    node.attrs = {**node.attrs, "carries": len(keep)}
    remove_dead_code(body)
    _prune_captures(node, len(keep))


def _prune_letrec(node: Node) -> None:
    """Removes unused nodes from the functions of a `letrec`, and captures that no function uses. Parameters and results
    stay."""
    count = node.attrs["captures"]
    for region in node.regions:
        remove_dead_code(region)
    used = [_used(region) for region in node.regions]
    keep = [k for k in range(-count, 0) if any(region.inputs[k] in use for region, use in zip(node.regions, used))]

    def kept(values: list[Value]) -> list[Value]:
        return [*values[: len(values) - count], *[values[k] for k in keep]]

    node.inputs = kept(node.inputs)
    for region in node.regions:
        region.inputs = kept(region.inputs)
    node.attrs = {**node.attrs, "captures": len(keep)}
    for region in node.regions:
        region.program = None


def _reaching(body: Graph, carries: int, wanted: set[int]) -> set[Value]:
    """The values that the `wanted` carries and the body's effects are computed from, over any number of trips."""
    following = dict(zip(body.inputs[:carries], body.outputs))
    waiting = [body.outputs[i] for i in wanted]
    for node in body.nodes:
        if node.must_stay:
            waiting += node.inputs
    reaching: set[Value] = set()
    while waiting:
        value = waiting.pop()
        if value not in reaching:
            reaching.add(value)
            if value.node is not None:
                waiting += value.node.inputs
            elif value in following:
                waiting.append(following[value])
    return reaching


def _prune_captures(node: Node, first: int) -> None:
    """Drops the inputs from `first` on that no region uses. (A cond's inputs are shifted by its predicate.)"""
    used = [_used(region) for region in node.regions]
    offset = 1 if node.op.name == "cond" else 0
    keep = list(range(first))
    for i in range(first, len(node.inputs)):
        if any(region.inputs[i - offset] in use for region, use in zip(node.regions, used)):
            keep.append(i)
    node.inputs = [node.inputs[i] for i in keep]
    for region in node.regions:
        region.inputs = [region.inputs[i - offset] for i in keep if i >= offset]
        region.program = None


def _used(graph: Graph) -> set[Value]:
    return {v for node in graph.nodes for v in node.inputs} | set(graph.outputs)
