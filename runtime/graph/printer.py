"""Graphs as text, for people and golden tests.

    graph f(x: float32[], n: int32[]):
      %2 = constant() {value=0}
      %3, %4 = while(%2, %x, %n) {carries=2}
        test(a, b, n): ...

Values are numbered in order of appearance, so the text doesn't depend on what was built before.
"""

from __future__ import annotations

from typing import Any

# Graphs, nodes and values are known here by their attributes alone: `ir.py` imports this module for `str(graph)`.


def as_text(graph: Any, spans: bool = False) -> str:
    """The graph as text; `spans` adds the user's file and line to each node."""
    names: dict[Any, str] = {}
    taken: dict[str, int] = {}
    lines: list[str] = []

    def name(value: Any) -> str:
        if value not in names:
            base = value.name or ""
            if base and base not in taken:
                taken[base] = 0
                names[value] = f"%{base}"
            else:
                names[value] = f"%{len(names)}"
        return names[value]

    def typed(value: Any) -> str:
        return f"{name(value)}: {value.type}"

    def show_attr(value: Any) -> str:
        if hasattr(value, "deref"):  # a reference to a variable
            value = value.deref()
        return str(value) if not hasattr(value, "name") else value.name

    def show(node: Any, indent: str) -> None:
        attrs = ", ".join(f"{k}={show_attr(v)}" for k, v in node.attrs.items() if k != "types")
        left = ", ".join(map(typed, node.outputs))
        right = f"{node.op.name}({', '.join(map(name, node.inputs))})"
        span = f"    # {node.span[0].rsplit('/', 1)[-1]}:{node.span[1]}" if spans and node.span else ""
        lines.append(f"{indent}{left + ' = ' if left else ''}{right}{' {' + attrs + '}' if attrs else ''}{span}")
        labels = {"cond": ("then", "else"), "while": ("test", "body")}.get(node.op.name, ())
        for label, region in zip(labels, node.regions):
            show_graph(region, label, indent + "  ")

    def show_graph(inner: Any, label: str, indent: str) -> None:
        lines.append(f"{indent}{label}({', '.join(map(typed, inner.inputs))}):")
        for node in inner.nodes:
            show(node, indent + "  ")
        lines.append(f"{indent}  return {', '.join(map(name, inner.outputs))}".rstrip())

    show_graph(graph, f"graph {graph.name}", "")
    return "\n".join(lines)
