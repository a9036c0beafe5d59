"""Sums of cotangents of growable arrays (`runtime.ops.growable`).

A write may make an array longer, and then the cotangent that comes back through the write has more rows than the array
had before: zeros, which nobody reads. Cutting them off would cost a copy at each write, so they stay, until cotangents
of one array meet: there the shorter one gets zeros below.

    l.append(x)   dl has the rows of the array after the write
    stack(l)      dl has the rows of the array at this point
"""

from __future__ import annotations

from typing import Any

from runtime.graph.ir import Node, Value
from runtime.ops.dispatch import apply, call
from runtime.ops.growable import ARRAY_WRITE, RESIZE_ROWS
from runtime.ops.table import OPS
from runtime.types import TensorType


def is_growable(value: Value) -> bool:
    """Whether the value is an array of unknown length that writes have made longer, or may yet."""
    return _is_growable(value, set())


def _is_growable(value: Value, seen: set[Value]) -> bool:
    type_ = value.type
    if value in seen or not isinstance(type_, TensorType) or (type_.shape is not None and type_.shape[:1] != (None,)):
        return False
    seen.add(value)
    node = value.node
    if node is None:
        return any(_grows(user, value, seen) for user in value.graph.nodes if value in user.inputs)
    if node.op is ARRAY_WRITE or node.op is RESIZE_ROWS:
        return True
    index = node.outputs.index(value)
    if node.op.name == "while":
        return _is_growable(node.regions[1].outputs[index], seen)
    return node.op.name == "cond" and any(_is_growable(region.outputs[index], seen) for region in node.regions)


def _grows(user: Node, value: Value, seen: set[Value]) -> bool:
    """Whether a node that takes the value writes to it."""
    if user.op is ARRAY_WRITE:
        return user.inputs[0] is value
    if user.op.name not in ("while", "cond"):
        return False
    inputs = user.inputs if user.op.name == "while" else user.inputs[1:]
    inner = [own for region in user.regions for own, outer in zip(region.inputs, inputs) if outer is value]
    return any(_is_growable(own, seen) for own in inner)


def sum_by_rows(one: Any, other: Any) -> Any:
    """`one + other`, as long as the longer one."""
    count = apply(OPS["maximum"], [call("dim", one, axis=0), call("dim", other, axis=0)])
    attrs = {"static": None, "within": False}
    return apply(OPS["add"], [apply(RESIZE_ROWS, (each, count), attrs) for each in (one, other)])
