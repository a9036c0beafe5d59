"""A scalar that chooses between an array and the same with a few elements changed chooses between the elements.

    %2 = tensor_scatter_nd_update(%t, %i, %v)          %2 = gather_nd(%t, %i)
    %3 = select(%c, %2, %t)                      →     %3 = select(%c, %v, %2)
    return %3                                          %4 = tensor_scatter_nd_update(%t, %i, %3)
                                                       return %4

So a trip of a loop costs as much as it changes: the array is updated in place, whatever the scalar is. Several updates
one after the other are chosen one by one.
"""

from __future__ import annotations

from runtime.graph.ir import Node, Value
from runtime.graph.passes.rules.rewriting import Rewrite, Rule
from runtime.types import TensorType

# For each update the position of the new elements among its operands, and the op that reads the old ones; those that
# add to elements add nothing instead.
_NEW = {"tensor_scatter_nd_update": 2, "slice_update": 1, "tensor_scatter_nd_add": 2, "slice_add": 1}
_READS = {"tensor_scatter_nd_update": "gather_nd", "slice_update": "strided_slice"}
_MOST_UPDATES = 8


def _select(rewrite: Rewrite, node: Node) -> Value | None:
    chooser, one, other = node.inputs
    if not isinstance(chooser.type, TensorType) or chooser.shape != () or not one.shape:
        return None
    for changed, array, is_first in ((one, other, True), (other, one, False)):
        updates = _updates(rewrite, changed, array)
        if not updates:
            continue
        result = array
        for update in updates:
            place = _NEW[update.op.name]
            operands = [result, *update.inputs[1:]]
            new = operands[place]
            old = _old(rewrite, update, operands, place)
            operands[place] = rewrite.emit("select", [chooser, new, old] if is_first else [chooser, old, new])
            result = rewrite.emit(update.op.name, operands, update.attrs)
        return result
    return None


def _updates(rewrite: Rewrite, changed: Value, array: Value) -> list[Node]:
    """The updates that lead from an array to a value which nothing else reads, in their order; none if it isn't one."""
    found: list[Node] = []
    while changed is not array:
        update = changed.node
        if update is None or update.op.name not in _NEW or len(found) == _MOST_UPDATES:
            return []
        if not rewrite.is_used_once(changed) or (update.op.joins and changed.dtype.is_complex):
            return []  # no complex number leaves both parts of any other as they are
        found.append(update)
        changed = update.inputs[0]
    return found[::-1]


def _old(rewrite: Rewrite, update: Node, operands: list[Value], place: int) -> Value:
    """An operand for an update under which it leaves the elements unchanged: the elements themselves, or the neutral
    number."""
    read = _READS.get(update.op.name)
    if read is None:
        new = operands[place]
        return rewrite.number(new, -0.0 if new.dtype.is_floating else 0)
    others = [each for k, each in enumerate(operands) if k != place]
    return rewrite.emit(read, others, update.attrs)


RULES: dict[str, Rule] = {"select": _select}
