"""What a trip waits for comes last: of the least or greatest of three integers, the one that the trip before made.

    %m = minimum(%up, %left)                 %m = minimum(%up, %corner)
    %v = minimum(%m, %corner)         →      %v = minimum(%m, %left)
    return array_write(%row, %j, %v)         return array_write(%row, %j, %v)

(%left is read from %row, where the trip before has just put it.) All else is computed while that trip is still at work:
a row of an edit distance waits for one comparison an element instead of two. Integers only, of which the order makes no
difference; what is carried as a number LLVM puts in order itself.
"""

from __future__ import annotations

from collections import Counter

from runtime.graph.ir import Graph, Node, Value
from runtime.types import TensorType

_ORDERLESS = frozenset({"minimum", "maximum"})


def put_late_operands_last(graph: Graph) -> None:
    """Exchanges operands, in place, in regions too."""
    for node in graph.nodes:
        for region in node.regions:
            put_late_operands_last(region)
        if node.op.name == "while":
            _in_body(node.regions[1], node.attrs["carries"])


def _in_body(body: Graph, count: int) -> None:
    if not any(node.op.name in _ORDERLESS for node in body.nodes):
        return
    uses = Counter(value for node in body.nodes for value in node.inputs)
    uses.update(body.outputs)
    # A bit for each array that trips hand on.
    carries = {value: 1 << k for k, value in enumerate(body.inputs[:count]) if getattr(value.type, "rank", 0)}
    for node in list(body.nodes):
        if _is_one_of_integers(node):
            for inner in [value.node for value in node.inputs]:
                if inner is not None and inner.graph is body and inner.op is node.op and uses[inner.outputs[0]] == 1:
                    _exchange(body, node, inner, carries, count)
        mask = _mask(node, carries)
        carries.update(dict.fromkeys(node.outputs, mask))


def _is_one_of_integers(node: Node) -> bool:
    if node.op.name not in _ORDERLESS:
        return False
    type_ = node.outputs[0].type
    same = all(value.type == type_ for value in node.inputs)
    return same and isinstance(type_, TensorType) and type_.rank == 0 and type_.dtype.is_integer


def _mask(node: Node, carries: dict[Value, int]) -> int:
    """The carries that a node's results depend on."""
    mask = 0
    for value in node.inputs:
        mask |= carries.get(value, 0)
    return mask


def _exchange(body: Graph, node: Node, inner: Node, carries: dict[Value, int], count: int) -> None:
    """Gives `node` the late operand of `inner`, and that one the other operand of `node`."""
    if not _is_one_of_integers(inner):
        return
    (result,) = inner.outputs
    other = node.inputs[1] if node.inputs[0] is result else node.inputs[0]
    fed = _fed(body, node, count)
    late = [value for value in inner.inputs if carries.get(value, 0) & fed]
    if len(late) != 1 or carries.get(other, 0) & fed:
        return
    early = inner.inputs[1] if inner.inputs[0] is late[0] else inner.inputs[0]
    inner.inputs, node.inputs = [early, other], [result, late[0]]
    inner.name = result.name = None  # it is another number than the program's
    body.nodes.remove(inner)
    body.nodes.insert(body.nodes.index(node), inner)
    carries[result] = _mask(inner, carries)
    body.program = None


def _fed(body: Graph, node: Node, count: int) -> int:
    """The carries that get values which depend on the node."""
    reached = set(node.outputs)
    for later in body.nodes[body.nodes.index(node) + 1 :]:
        if any(value in reached for value in later.inputs):
            reached.update(later.outputs)
    return sum(1 << k for k, value in enumerate(body.outputs[:count]) if value in reached)
