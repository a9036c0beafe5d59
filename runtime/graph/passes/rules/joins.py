"""Slices go into what is joined: a part of a padded or concatenated tensor is made of parts of its pieces.

    %p = pad(%x) {paddings=((1, 1),)}             %1 = strided_slice(%x) {x[1:]}
    %y = strided_slice(%p) {p[2:]}         →      %y = pad(%1) {paddings=((0, 1),)}
    return %y                                     return %y

What is joined in the end are views of one tensor and constants, which generated code reads where they lie: stencils
written as slices of a padded grid, and grids rolled along several axes, are then one nest. Pieces without elements go,
and so does what joins one piece alone. Of concatenations only those whose pieces are such views themselves are taken
apart, since others would be copied in parts instead of as a whole. All sizes must be known.
"""

from __future__ import annotations

from runtime.graph.ir import Node, Value
from runtime.graph.passes.rules.rewriting import Rewrite, Rule, made_by
from runtime.types import TensorType

_VIEWS = frozenset({"strided_slice", "concat", "pad"})


def _shape(value: Value) -> tuple[int, ...] | None:
    """The shape where all of it is known."""
    shape = value.type.shape if isinstance(value.type, TensorType) else None
    return None if shape is None or None in shape else shape  # type: ignore[return-value]


def _ranges(node: Node) -> list[tuple[int, int]] | None:
    """(start, stop) along each axis of the operand, where the slice only takes ranges of known places."""
    shape, spec = _shape(node.inputs[0]), node.attrs["spec"]
    if shape is None or len(node.inputs) > 1:
        return None
    if any(item[0] != "slice" or "?" in item or item[3] not in (None, 1) for item in spec):
        return None
    found = [slice(*item[1:]).indices(size)[:2] for item, size in zip(spec, shape)]
    return [(begin, max(begin, end)) for begin, end in found] + [(0, size) for size in shape[len(spec) :]]


def _sliced(rewrite: Rewrite, value: Value, ranges: list[tuple[int, int]]) -> Value:
    shape = _shape(value)
    assert shape is not None
    if all((begin, end) == (0, size) for (begin, end), size in zip(ranges, shape)):
        return value
    spec = tuple(
        ("slice", None, None, None) if (begin, end) == (0, size) else ("slice", begin, end, None)
        for (begin, end), size in zip(ranges, shape)
    )
    return rewrite.emit("strided_slice", [value], {"spec": spec})


def _slice(rewrite: Rewrite, node: Node) -> Value | None:
    ranges = _ranges(node)
    if ranges is None or 0 in (_shape(node.outputs[0]) or (0,)):
        return None
    if _shape(node.inputs[0]) == _shape(node.outputs[0]):
        return node.inputs[0]
    if (padded := made_by(node.inputs[0], "pad")) is not None:
        return _slice_of_padded(rewrite, padded, ranges)
    if (joined := made_by(node.inputs[0], "concat")) is not None:
        return _slice_of_joined(rewrite, joined, ranges)
    return None


def _slice_of_padded(rewrite: Rewrite, padded: Node, ranges: list[tuple[int, int]]) -> Value | None:
    source = padded.inputs[0]
    shape = _shape(source)
    if shape is None or len(padded.inputs) > 1:
        return None
    inner, paddings = [], []
    for (begin, end), (before, _), size in zip(ranges, padded.attrs["paddings"], shape):
        first, last = max(begin - before, 0), min(end - before, size)
        if last <= first:
            return None  # nothing but padding
        inner.append((first, last))
        paddings.append((max(before - begin, 0), max(end - before - size, 0)))
    value = _sliced(rewrite, source, inner)
    if not any(map(any, paddings)):
        return value
    return rewrite.emit("pad", [value], {**padded.attrs, "paddings": tuple(paddings)})


def _slice_of_joined(rewrite: Rewrite, joined: Node, ranges: list[tuple[int, int]]) -> Value | None:
    axis = joined.attrs["axis"]
    shapes = [_shape(v) for v in joined.inputs]
    if None in shapes or not all(v.node is not None and v.node.op.name in _VIEWS for v in joined.inputs):
        return None
    begin, end = ranges[axis]
    pieces, start = [], 0
    for value, shape in zip(joined.inputs, shapes):
        assert shape is not None
        first, last = max(begin - start, 0), min(end - start, shape[axis])
        if first < last:
            pieces.append(_sliced(rewrite, value, [*ranges[:axis], (first, last), *ranges[axis + 1 :]]))
        start += shape[axis]
    return pieces[0] if len(pieces) == 1 else rewrite.emit("concat", pieces, joined.attrs)


def _concat(rewrite: Rewrite, node: Node) -> Value | None:
    axis = node.attrs["axis"]
    shapes = [_shape(v) for v in node.inputs]
    if None in shapes:
        return None
    kept = [value for value, shape in zip(node.inputs, shapes) if shape and shape[axis]]
    if len(kept) == 1:
        return kept[0]
    return rewrite.emit("concat", kept, node.attrs) if kept and len(kept) < len(node.inputs) else None


RULES: dict[str, Rule] = {"strided_slice": _slice, "concat": _concat}
