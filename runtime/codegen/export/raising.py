"""Errors of C libraries. Python raises objects of any class; a kernel's check has a class of TensorFlow's and a text
with numbers in it.

    raise ValueError(f"{n} of {rows} rows")     assert(n >= rows, n) {message="{0} of <float32[?, 3]> rows", formatted}

The error becomes the nearest class that kernels have, and its text shows the values of scalars, whatever their format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime import errors
from runtime.graph.ir import Graph, Node, Value, copy_graph
from runtime.ops.control import ASSERT, Datum, ErrorTemplate, Message
from runtime.types import TensorType

_MOST = 3  # numbers that a check shows


def with_checks(graph: Graph) -> Graph:
    """The graph with a check in place of each error that only Python can make."""
    if not any(node.op.name == "raise" for node in graph.walk()):
        return graph
    graph = copy_graph(graph)
    for node in graph.walk():
        if node.op.name == "raise":
            _make_check(node)
    return graph


def _make_check(node: Node) -> None:
    condition, *data, token = node.inputs
    template: ErrorTemplate = node.attrs["error"]
    shown: list[Value] = []
    parts = ["".join(_text(piece, data, shown) for piece in _pieces(each)) for each in template.arguments]
    message = parts[0] if len(parts) == 1 else f"({', '.join(parts)})" if parts else ""
    node.op = ASSERT
    node.attrs = {"message": message, "error": _nearest(template.kind), "summarize": 3, "formatted": True}
    node.inputs = [condition, *shown, token]


def _pieces(argument: Any) -> Iterator[Any]:
    """Texts, and the places of operands."""
    if isinstance(argument, Message):
        yield from (each if isinstance(each, str) else each.index for each in argument.pieces)
    else:
        yield argument.index if isinstance(argument, Datum) else str(argument)


def _text(piece: Any, data: list[Value], shown: list[Value]) -> str:
    if isinstance(piece, str):
        return piece
    value = data[piece]
    if not _is_number(value) or (value not in shown and len(shown) == _MOST):
        return f"<{value.type}>"
    if value not in shown:
        shown.append(value)
    return f"{{{shown.index(value)}}}"


def _is_number(value: Value) -> bool:
    type_ = value.type
    return (
        isinstance(type_, TensorType)
        and type_.rank == 0
        and type_.dtype.name != "string"
        and not type_.dtype.is_complex
    )


def _nearest(kind: type[BaseException]) -> str:
    """The name of an error's class, or of the nearest one above it that kernels have."""
    for each in kind.__mro__:
        if errors.BY_NAME.get(each.__name__) is each:
            return each.__name__
    return "AssertionError" if issubclass(kind, AssertionError) else "RuntimeError"
