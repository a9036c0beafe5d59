"""Sums of cotangents of growable arrays (`runtime.ops.growable`).

A write may make an array longer, and then the cotangent that comes back through the write has more rows than the array
had before. The extra rows are zeros that are never read. Cutting them off would cost a copy at each write, so they stay
until two cotangents of one array are added: then the shorter one is padded with zeros.

    l.append(x)   dl has the rows of the array after the write
    stack(l)      dl has the rows of the array at this point

Which arrays these are is found before the reverse walk: `mark_growing` follows each array that is written to through
loops, branches, functions and stacks, to all values that may be the same array at another point of the program. Copies
of graphs keep the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from runtime.graph.ir import Graph, Node, Value
from runtime.ops import stack
from runtime.ops.dispatch import apply, call
from runtime.ops.growable import ARRAY_WRITE, RESIZE_ROWS
from runtime.ops.table import OPS
from runtime.types import StackType, TensorType


def mark_growing(nodes: Iterable[Node]) -> None:
    """Marks the values in some nodes and their regions whose cotangents may have more rows than the values."""
    same = _Same()
    written: list[Value] = []
    waiting: list[tuple[Iterable[Node], dict[str, Graph]]] = [(nodes, {})]
    while waiting:
        nodes, functions = waiting.pop()  # functions: those of the `letrec` nodes around, which the nodes may call
        for node in nodes:
            for one, other in _may_share_memory(node, functions):
                same.join(one, other)
            if node.op is ARRAY_WRITE:
                written.append(node.outputs[0])
            inside = functions
            if node.op.name == "letrec":
                inside = {**functions, **dict(zip(node.attrs["functions"], node.regions))}
            waiting += [(region.nodes, inside) for region in node.regions]
    if not written:
        return
    classes = {same.first(value) for value in written}
    for value in same.values():
        if same.first(value) in classes:
            value.grows = True


def has_longer_cotangents(value: Value) -> bool:
    """Whether a value is an array of unknown length that was marked."""
    type_ = value.type
    return value.grows and isinstance(type_, TensorType) and (type_.shape is None or type_.shape[:1] == (None,))


def sum_by_rows(one: Any, other: Any) -> Any:
    """`one + other`, with as many rows as the longer one."""
    count = apply(OPS["maximum"], [call("dim", one, axis=0), call("dim", other, axis=0)])
    attrs = {"static": None, "within": False}
    return apply(OPS["add"], [apply(RESIZE_ROWS, (each, count), attrs) for each in (one, other)])


class _Same:
    """Classes of values that may be one array."""

    def __init__(self) -> None:
        self._next: dict[Value, Value] = {}

    def join(self, one: Value, other: Value) -> None:
        if isinstance(one.type, (TensorType, StackType)):
            self._next[self.first(one)] = self.first(other)

    def first(self, value: Value) -> Value:
        """The representative of a value's class."""
        known = self._next
        while (following := known.setdefault(value, value)) is not value:
            known[value] = value = known.setdefault(following, following)
        return value

    def values(self) -> Iterable[Value]:
        return list(self._next)


def _may_share_memory(node: Node, functions: dict[str, Graph]) -> Iterator[tuple[Value, Value]]:
    """Pairs of a node's operands, its results and its regions' values that may be the same array."""
    name = node.op.name
    if name == "cond":
        for region in node.regions:
            yield from zip(region.inputs, node.inputs[1:])
            yield from zip(region.outputs, node.outputs)
    elif name == "while":
        body = node.regions[1]
        yield from zip(body.inputs, node.inputs)
        yield from zip(body.outputs, body.inputs)
        yield from zip(node.outputs, body.inputs)
    elif name == "letrec":
        # Captures come last; functions that use some take them as their last inputs.
        captures = node.attrs["captures"]
        for position, region in enumerate(node.regions):
            if captures:
                yield from zip(region.inputs[-captures:], node.inputs[len(node.inputs) - captures :])
            if position == 0:
                yield from zip(region.inputs, node.inputs[: len(node.inputs) - captures])
                yield from zip(region.outputs, node.outputs)
    elif name == "call":
        called = functions.get(node.attrs["function"])
        if called is not None:
            yield from zip(called.inputs, node.inputs)
            yield from zip(called.outputs, node.outputs)
    elif node.op is stack.PUSH:
        yield node.inputs[0], node.outputs[0]
        yield node.inputs[1], node.outputs[0]
    elif node.op in (stack.POP, stack.SPLIT):
        yield from zip(node.outputs, [node.inputs[0]] * 2)
    elif node.op is stack.JOIN:
        yield from zip(node.inputs, [node.outputs[0]] * 2)
    elif node.op.keeps_rows:
        yield node.inputs[0], node.outputs[0]
