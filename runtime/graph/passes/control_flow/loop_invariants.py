"""Loop-invariant code motion.

    %r = while(%x, %w)                         %e = exp(%w)
      body(x, w): e = exp(w)           →       %r = while(%x, %w, %e)
                  return x * e                   body(x, w, e): return x * e

Moved are nodes that can't fail, since the body may never run, and not those that only look at their operand in another
way or are constants, unless something that moves needs them.
"""

from __future__ import annotations

from runtime.graph.ir import Graph, Node, Substitution, Value
from runtime.graph.passes.rewrites.commits import may_fail
from runtime.graph.structural import CONSTANT
from runtime.types import TensorType


def move_loop_invariants(graph: Graph) -> None:
    """Moves in place, out of inner loops first."""
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        for region in node.regions:
            move_loop_invariants(region)
        if node.op.name == "while":
            for region in node.regions:
                _move(graph, node, region)
        graph.nodes.append(node)
    graph.program = None


def _move(graph: Graph, node: Node, region: Graph) -> None:
    """Moves the invariant nodes of one region of a loop to `graph`, in front of the loop."""
    carries = node.attrs["carries"]
    outside: dict[Value, Value] = dict(zip(region.inputs[carries:], node.inputs[carries:]))
    invariant = set(outside)
    movable: list[Node] = []
    for inner in region.nodes:
        if _is_movable(inner) and all(v in invariant for v in inner.inputs):
            invariant.update(inner.outputs)
            movable.append(inner)
    wanted: set[Node] = set()
    needed: set[Value] = set()
    for inner in reversed(movable):
        if _is_worth_it(inner) or any(v in needed for v in inner.outputs):
            wanted.add(inner)
            needed.update(inner.inputs)
    if not any(_is_worth_it(inner) for inner in wanted):
        return
    replaced = Substitution()
    for inner in movable:
        if inner not in wanted:
            continue
        types = [v.type for v in inner.outputs]
        copy = graph.add_node(inner.op, [outside[v] for v in inner.inputs], inner.attrs, types, (), inner.span)
        copy.name = inner.name
        for old, new in zip(inner.outputs, copy.outputs):
            new.name = old.name
            outside[old] = new
            if _is_worth_it(inner):
                replaced[old] = _add_capture(node, region, new)
    moved = {inner for inner in wanted if _is_worth_it(inner)}
    region.nodes = [inner for inner in region.nodes if inner not in moved]
    for inner in region.nodes:
        inner.inputs = [replaced[v] for v in inner.inputs]
    region.outputs = [replaced[v] for v in region.outputs]
    region.program = None


def _is_movable(node: Node) -> bool:
    if node.regions or node.must_stay or may_fail(node):
        return False
    return all(isinstance(v.type, TensorType) for v in node.outputs)


def _is_worth_it(node: Node) -> bool:
    """Not for what is free in generated code: it would cost memory outside of the loop, and save nothing in it."""
    return node.op is not CONSTANT and not node.op.is_view and node.op.reads_elements(len(node.inputs))


def _add_capture(node: Node, region: Graph, outer: Value) -> Value:
    """Adds `outer` to the captures of a loop, in all its regions; returns the input of `region` for it."""
    node.inputs.append(outer)
    for each in node.regions:
        each.add_input(outer.type, outer.name)
        each.program = None
    return region.inputs[-1]
