"""Loop-invariant code motion, and the pruning of carries that don't change.

    %r = while(%x, %w)                         %e = exp(%w)
      body(x, w): e = exp(w)           →       %r = while(%x, %w, %e)
                  return x * e                   body(x, w, e): return x * e

Moved are nodes that can't fail, since the body may never run, and not those that only look at their operand in another
way or are constants, unless something that moves needs them. A carry that each trip hands on as it is becomes a
capture; two that start alike and change alike become one.
"""

from __future__ import annotations

from runtime.graph.ir import Graph, Node, Substitution, Value
from runtime.graph.passes.commits import may_fail
from runtime.graph.structural import CONSTANT
from runtime.types import TensorType

# Free in generated code: they would cost memory outside of the loop, and save nothing in it.
_VIEWS = frozenset(
    [
        "reshape", "expand_dims", "squeeze", "broadcast_to", "broadcast_like", "zeros_like", "ones_like", "identity",
        "shape", "size", "rank", "dim", "stop_gradient",
    ]
)  # fmt: skip


def move_loop_invariants(graph: Graph) -> None:
    """Moves in place, out of inner loops first."""
    mapping = Substitution()
    nodes, graph.nodes = graph.nodes, []
    for node in nodes:
        node.inputs = [mapping[v] for v in node.inputs]
        for region in node.regions:
            move_loop_invariants(region)
        if node.op.name == "while":
            _capture_constant_carries(node, mapping)
            _merge_equal_carries(node, mapping)
            for region in node.regions:
                _move(graph, node, region)
        graph.nodes.append(node)
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


# --- code motion ------------------------------------------------------------------------------------------------------


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
    return node.op is not CONSTANT and node.op.name not in _VIEWS


def _add_capture(node: Node, region: Graph, outer: Value) -> Value:
    """Hands `outer` to all regions of the loop; gives the input of `region` that stands for it."""
    node.inputs.append(outer)
    for each in node.regions:
        each.add_input(outer.type, outer.name)
        each.program = None
    return region.inputs[-1]


# --- carries ----------------------------------------------------------------------------------------------------------


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
    """Whether the start value may stand for the carry in its regions and after the loop."""
    return node.inputs[k].type == node.outputs[k].type


def _merge_equal_carries(node: Node, mapping: Substitution) -> None:
    count = node.attrs["carries"]
    test, body = node.regions
    first: dict[int, int] = {}  # a carry -> an earlier one that is always equal to it
    for k in range(count):
        for j in range(k):
            if j not in first and _are_equal(node, j, k):
                first[k] = j
                break
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


def _are_equal(node: Node, j: int, k: int) -> bool:
    """Whether two carries start as the same value and take a step of the same form."""
    body = node.regions[1]
    if node.inputs[j] is not node.inputs[k] or node.outputs[j].type != node.outputs[k].type:
        return False
    if not isinstance(node.outputs[j].type, TensorType):
        return False
    one, other = body.outputs[j].node, body.outputs[k].node
    if one is None or other is None or one is other or one.op is not other.op or one.attrs != other.attrs:
        return False
    if one.regions or one.must_stay or len(one.outputs) != 1:
        return False
    pair = (body.inputs[j], body.inputs[k])
    return all(a is b or (a, b) == pair for a, b in zip(one.inputs, other.inputs))
