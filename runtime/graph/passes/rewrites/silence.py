"""Control flow without its effects, to run it a second time.

    %4, %t1 = while(%x, %t0)                   %4 = while(%x)
      body(%x, %t): assert(...) ...     →        body(%x): ...

What has run once has passed its assertions, printed its lines and committed its variables. Effects that give tensors
(random numbers, host calls) can't be left out. Of some, what they give follows from their operands (`OpDef.again`:
sums over replicas): inside of loops and branches these run again, without an order token.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.graph.ir import Graph, Node, Substitution, Value, copy_graph
from runtime.graph.structural import COMMIT
from runtime.types import TokenType


def has_unrepeatable_results(node: Node) -> bool:
    """Whether a node has results of an effect, so that running it again would give others."""
    if node.op.effect:
        return any(not _is_token(v) for v in node.outputs)
    return node.has_effect and any(runs_once(inner) for region in node.regions for inner in region.nodes)


def runs_once(node: Node) -> bool:
    """Whether a node in a loop or branch has such results and no op that gives them a second time (`OpDef.again`)."""
    return has_unrepeatable_results(node) and node.op.again is None


def silenced(nodes: Sequence[Node]) -> list[Node]:
    """The nodes without effects and commits; a loop or branch that holds some becomes a copy that is in no graph.

    None of them may give something by an effect. The copies' outputs are the originals', order tokens left out.
    """
    return [_silent_copy(n) for n in nodes if not n.op.effect and n.op is not COMMIT]


def _silent_copy(node: Node) -> Node:
    if not any(inner.must_stay for region in node.regions for inner in region.nodes):
        return node
    regions = [copy_graph(region) for region in node.regions]
    copy = Node(node.op, node.inputs, dict(node.attrs), (), node.graph, regions, node.span)
    copy.outputs, copy.name = node.outputs, node.name
    _drop_tokens(copy)
    return copy


def _silence(graph: Graph) -> None:
    mapping = Substitution()
    kept = []
    for node in graph.nodes:
        node.inputs = [mapping[v] for v in node.inputs]
        if node.op.effect:
            mapping[node.outputs[-1]] = node.inputs[-1]
            if node.op.again is not None:
                node.op, node.inputs, node.outputs = node.op.again, node.inputs[:-1], node.outputs[:-1]
                kept.append(node)
        elif node.op is not COMMIT:
            if node.has_effect:
                token = next(v for v in node.inputs if _is_token(v))
                mapping.update((v, token) for v in node.outputs if _is_token(v))
            if node.regions or node.op.name == "call":
                _drop_tokens(node)
            kept.append(node)
    graph.nodes = kept
    graph.outputs = [mapping[v] for v in graph.outputs]
    graph.program = None


def _drop_tokens(node: Node) -> None:
    for region in node.regions:
        _silence(region)
        region.inputs = [v for v in region.inputs if not _is_token(v)]
        region.outputs = [v for v in region.outputs if not _is_token(v)]
    node.inputs = [v for v in node.inputs if not _is_token(v)]
    node.outputs = [v for v in node.outputs if not _is_token(v)]
    if node.op.name == "while":
        node.attrs = {**node.attrs, "carries": len(node.outputs)}
    elif "types" in node.attrs:
        node.attrs = {**node.attrs, "types": tuple(v.type for v in node.outputs)}


def _is_token(value: Value) -> bool:
    return isinstance(value.type, TokenType)
