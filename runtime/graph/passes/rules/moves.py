"""Moves of data sink: reshapes and transposes meet, and go where they cost nothing.

    %2 = transpose(%x)                          %3 = exp(%x)
    %3 = exp(%2)                                %4 = multiply(%3, 2.0)
    %4 = multiply(%3, 2.0)             →        %6 = matmul(%4, %w, transpose_a=True)
    %6 = matmul(%4, %w)                         return %6
    return %6

A move of a move is one move or none; a transposed operand of a product becomes the product's attribute. Between two
moves there may be elementwise ops that nothing else reads: they are computed on the elements as they lay before. Moves
that change nothing go.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime.graph.ir import Node, Value
from runtime.graph.passes.rules.rewriting import Rewrite, Rule, made_by
from runtime.shapes import element_count
from runtime.types import TensorType

# What a value was made of by a move, and how it was moved; None where it wasn't.
Moved = Callable[[Value], "tuple[Value, Any] | None"]
_BETWEEN = 8  # elementwise ops, at most, that are looked through from one move to another


def _unchanged(rewrite: Rewrite, node: Node) -> Value | None:
    """For ops that give their operand where the type says that nothing is to be done."""
    type_ = node.inputs[0].type
    return node.inputs[0] if _is_static(node.inputs[0]) and type_ == node.outputs[0].type else None


def _reshape(rewrite: Rewrite, node: Node) -> Value | None:
    if (same := _unchanged(rewrite, node)) is not None:
        return same
    if node.attrs.get("shape") == (-1,) and node.inputs[0].type.rank == 1:  # type: ignore[union-attr]
        return node.inputs[0]
    # Only a first operand with all elements, and a shape that doesn't depend on the operand's.
    if len(node.inputs) != 1 or not _is_static(node.outputs[0]):
        return None
    inner = node.inputs[0].node
    if inner is not None and inner.op.is_reshape:
        return rewrite.emit("reshape", [inner.inputs[0]], node.attrs)
    if _common_move(rewrite, node.inputs[0], _reshaped) is None:
        return None
    before = _before(rewrite, node.inputs[0], _reshaped)
    return before if before.type == node.outputs[0].type else rewrite.emit("reshape", [before], node.attrs)


def _reshape_like(rewrite: Rewrite, node: Node) -> Value | None:
    """An expand_dims or squeeze, which goes if it undoes what came before."""
    if (same := _unchanged(rewrite, node)) is not None:
        return same
    if len(node.inputs) != 1 or not _is_static(node.outputs[0]) or not _is_static(node.inputs[0]):
        return None
    undone = (node.outputs[0].type.shape, node.inputs[0].type.shape)  # type: ignore[union-attr]
    if _common_move(rewrite, node.inputs[0], _reshaped) != undone:
        return None
    return _before(rewrite, node.inputs[0], _reshaped)


def _reshaped(value: Value) -> tuple[Value, Any] | None:
    """The operand of the reshape that a value is, with the shapes before and after; None if it isn't one."""
    node = value.node
    if node is None or not node.op.is_reshape or not _is_static(value) or not _is_static(node.inputs[0]):
        return None
    source = node.inputs[0]
    return source, (source.type.shape, value.type.shape)  # type: ignore[union-attr]


def _transpose(rewrite: Rewrite, node: Node) -> Value | None:
    perm = node.attrs.get("perm")
    if perm is None or len(node.inputs) != 1:
        return None
    if perm == tuple(range(len(perm))):
        return node.inputs[0]
    inner = _common_move(rewrite, node.inputs[0], _transposed)
    if inner is None:
        return None
    before = _before(rewrite, node.inputs[0], _transposed)
    composed = tuple(inner[axis] for axis in perm)
    if composed == tuple(range(len(composed))):
        return before
    return rewrite.emit("transpose", [before], {**node.attrs, "perm": composed})


def _transposed(value: Value) -> tuple[Value, Any] | None:
    """The operand and the permutation of the transpose that a value is; None if it isn't one."""
    node = made_by(value, "transpose")
    if node is None or node.attrs.get("perm") is None or len(node.inputs) != 1:
        return None
    return node.inputs[0], node.attrs["perm"]


def _matmul(rewrite: Rewrite, node: Node) -> Value | None:
    """matmul(transpose(a), b) → matmul(a, b, transpose_a=True), for matrices."""
    inputs, attrs = list(node.inputs), dict(node.attrs)
    for index, key in enumerate(("transpose_a", "transpose_b")):
        if key in attrs and _common_move(rewrite, inputs[index], _transposed) == (1, 0):
            inputs[index] = _before(rewrite, inputs[index], _transposed)
            attrs[key] = not attrs[key]
    return None if inputs == node.inputs else rewrite.emit("matmul", inputs, attrs)


def _is_static(value: Value) -> bool:
    return isinstance(value.type, TensorType) and element_count(value.type.shape) is not None


# --- elementwise ops between moves ------------------------------------------------------------------------------------


def _may_pass(node: Node) -> bool:
    """Whether the op computes each element from those at the same place, and never fails."""
    if not node.op.is_elementwise:
        return False
    return not node.op.checks_numbers(node.outputs[0].dtype)


def _common_move(rewrite: Rewrite, value: Value, moved: Moved, between: int = _BETWEEN) -> Any:
    """How the elements of a value were moved, all alike: before it was made, or the operands of the ops that made it;
    None where they weren't."""
    found = moved(value)
    if found is not None:
        return found[1]
    node = value.node
    if node is None or not between or not _may_pass(node) or not rewrite.is_used_once(value):
        return None
    way = None
    for operand in node.inputs:
        if operand.type.rank == 0:  # type: ignore[union-attr]
            continue
        # Of one shape: an operand that is broadcast lies otherwise.
        if not _is_static(operand) or operand.type.shape != value.type.shape:  # type: ignore[union-attr]
            return None
        mine = _common_move(rewrite, operand, moved, between - 1)
        if mine is None or way not in (None, mine):
            return None
        way = mine
    return way


def _before(rewrite: Rewrite, value: Value, moved: Moved) -> Value:
    """The value computed from operands before the moves that `_common_move` has found."""
    found = moved(value)
    if found is not None:
        return found[0]
    node = value.node
    assert node is not None
    operands = [v if v.type.rank == 0 else _before(rewrite, v, moved) for v in node.inputs]  # type: ignore[union-attr]
    result = rewrite.emit(node.op.name, operands, node.attrs, node.span)
    result.name = value.name
    if result.node is not None:
        result.node.name = node.name
    return result


RULES: dict[str, Rule] = {
    "cast": _unchanged,
    "broadcast_to": _unchanged,
    "sum_to_shape_of": _unchanged,
    "expand_dims": _reshape_like,
    "squeeze": _reshape_like,
    "reshape": _reshape,
    "transpose": _transpose,
    "matmul": _matmul,
}
