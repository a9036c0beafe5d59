"""Growable arrays that a loop on the interpreter writes in place (`hot_loops.py`).

A list's buffer that a loop carries has one owner at a time: each trip reads elements of it, writes some, hands it to
branches and inner loops, and carries on the result. If nothing else keeps it, the loop may write into one copy of it.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.dataclass import dataclass
from runtime.graph.ir import Graph, Node, Value
from runtime.graph.python_numbers import number
from runtime.types import TensorType


@dataclass
class _Chain:
    """The values of a region that share one buffer.

    values: all of them. end: the region's output that is one of them; None if there is none.
    """

    end: int | None
    is_written: bool
    values: list[Value]

    @property
    def is_read_only(self) -> bool:
        return self.end is None and not self.is_written


def owned_carries(node: Node) -> Iterator[tuple[int, list[Value]]]:
    """The carries of a `while` node that the loop may update in place, each with the values that share its buffer."""
    test, body = node.regions
    for position in range(node.attrs["carries"]):
        value = body.inputs[position]
        if not _is_buffer(value):
            continue
        asked, chain = _follow(test, test.inputs[position]), _follow(body, value)
        if asked and asked.is_read_only and chain and chain.end == position and chain.is_written:
            yield position, [test.inputs[position], *chain.values, node.outputs[position]]


def _is_buffer(value: Value) -> bool:
    type_ = value.type
    return isinstance(type_, TensorType) and type_.rank == 1 and type_.dtype.kind in "bif" and not type_.dtype.is_narrow


def _follow(region: Graph, value: Value) -> _Chain | None:
    """None where something else may keep the buffer, or a view of it."""
    users = [node for node in region.nodes if value in node.inputs]
    ends = [index for index, output in enumerate(region.outputs) if output is value]
    for index, node in enumerate(users):
        if _only_reads(node, value):
            continue
        is_last = index == len(users) - 1 and not ends
        followed = _passed_on(node, value)
        if followed is None:
            return None
        if followed.is_read_only:
            continue
        if not is_last:
            return None
        if followed.end is None:
            return _Chain(None, True, [value, *followed.values])
        rest = _follow(region, node.outputs[followed.end])
        if rest is None:
            return None
        return _Chain(rest.end, rest.is_written or followed.is_written, [value, *followed.values, *rest.values])
    if len(ends) > 1:
        return None
    return _Chain(ends[0] if ends else None, False, [value])


def _only_reads(node: Node, value: Value) -> bool:
    """Whether a node takes no more than numbers from a buffer."""
    positions = [index for index, operand in enumerate(node.inputs) if operand is value]
    if all(index in node.op.shape_only for index in positions):
        return not node.op.is_view
    if not node.op.reads_part or positions != [0] or node.regions:
        return False
    # An element as `hot_loops.py` reads it: a number of its own, and no view.
    return number(node.outputs[0].type) is not None or node.op.name == "row"


def _passed_on(node: Node, value: Value) -> _Chain | None:
    """What becomes of a buffer that is an operand of a node which writes it, or has regions. end: of its results."""
    positions = [index for index, operand in enumerate(node.inputs) if operand is value]
    if len(positions) != 1:
        return None
    (position,) = positions
    if node.op.name == "array_write":
        return _Chain(0, True, []) if position == 0 and _is_buffer(node.outputs[0]) else None
    if node.op.name == "cond" and position > 0:
        return _joined([_follow(region, region.inputs[position - 1]) for region in node.regions])
    if node.op.name == "while":
        asked, chain = [_follow(region, region.inputs[position]) for region in node.regions]
        if asked is None or chain is None or not asked.is_read_only:
            return None
        if position >= node.attrs["carries"]:
            return chain if chain.is_read_only else None
        is_kept = chain.end == position
        return _Chain(position, chain.is_written, [*asked.values, *chain.values]) if is_kept else None
    return None


def _joined(branches: list[_Chain | None]) -> _Chain | None:
    known = [branch for branch in branches if branch is not None]
    if len(known) < len(branches) or len({branch.end for branch in known}) > 1:
        return None
    written = any(branch.is_written for branch in known)
    return _Chain(known[0].end, written, [value for branch in known for value in branch.values])
