"""Graphs as text, for people and golden tests.

    graph f(%x: float32[], %n: int32[]):
      %i: int32[] = constant() {value=0}
      %while: int32[], %while:1: float32[] = while(%i, %x, %n) {carries=2}
        test(%i_1: int32[], %x_1: float32[], %n_1: int32[]):
          ...

Operations have the names that `names.py` gives them, so the text doesn't depend on what was built before.
"""

from __future__ import annotations

from typing import Any

from runtime.errors import place
from runtime.graph.names import operation_names, value_name

# Graphs, nodes and values are known here by their attributes alone: `ir.py` imports this module for `str(graph)`.


def as_text(graph: Any, spans: bool = False, kept: dict[Any, str] | None = None) -> str:
    """The graph as text; `spans` adds the user's file and line to each node. kept: see `operation_names`."""
    names = operation_names(graph, kept)
    lines: list[str] = []

    def name(value: Any) -> str:
        return f"%{value_name(value, names)}"

    def typed(value: Any) -> str:
        return f"{name(value)}: {value.type}"

    def show(node: Any, indent: str) -> None:
        attrs = attributes(node)
        left = ", ".join(map(typed, node.outputs))
        right = f"{node.op.name}({', '.join(map(name, node.inputs))})"
        span = f"    # {short_span(node.span)}" if spans and node.span else ""
        lines.append(f"{indent}{left + ' = ' if left else ''}{right}{' {' + attrs + '}' if attrs else ''}{span}")
        for label, region in regions(node):
            show_graph(region, label, indent + "  ")

    def show_graph(inner: Any, label: str, indent: str) -> None:
        lines.append(f"{indent}{label}({', '.join(map(typed, inner.inputs))}):")
        for node in inner.nodes:
            show(node, indent + "  ")
        lines.append(f"{indent}  return {', '.join(map(name, inner.outputs))}".rstrip())

    show_graph(graph, f"graph {graph.name}", "")
    return "\n".join(lines)


def regions(node: Any) -> list[tuple[str, Any]]:
    """The regions of a node with what they are to it."""
    labels = node.op.regions or node.attrs.get("functions") or tuple(r.name for r in node.regions)
    return list(zip(labels, node.regions))


def attributes(node: Any, longest: int | None = None) -> str:
    """The attributes of a node as text, without what its outputs show already."""
    return ", ".join(f"{key}={_shown(value, longest)}" for key, value in node.attrs.items() if key != "types")


def _shown(value: Any, longest: int | None) -> str:
    if hasattr(value, "deref"):  # a reference to a variable
        value = value.deref()
    text = str(value) if not hasattr(value, "name") else value.name
    return text if longest is None or len(text) <= longest else text[: longest - 1] + "…"


def short_span(span: Any) -> str:
    """`file.py:12` of a span, or `Cell In[3], line 2`."""
    return place(span[0].replace(chr(92), "/"), span[1]).rpartition("/")[2] if span else ""
