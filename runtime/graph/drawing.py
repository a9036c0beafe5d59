"""Graphs as pictures: Graphviz' language, and SVG where Graphviz is installed.

Operations are boxes, arguments and results ellipses; the regions of `while` and `cond` are clusters. An edge into a
region goes to the argument of the region that takes the value.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

from runtime.graph.names import operation_names
from runtime.graph.printer import attributes, regions, short_span

_HEAD = """\
  graph [fontname="Helvetica", fontsize=11, labeljust=l, nodesep=0.25, ranksep=0.35, bgcolor="white"]
  node [fontname="Helvetica", fontsize=11, shape=box, style="rounded,filled", fillcolor="#eef3fb", color="#7b93b8"]
  edge [fontname="Helvetica", fontsize=9, color="#55606e", fontcolor="#55606e", arrowsize=0.7]"""
_ARGUMENT = 'shape=ellipse, fillcolor="#f3f7ea", color="#8ba36b"'
_RESULT = 'shape=ellipse, fillcolor="#fbf0e4", color="#c49a6c"'
_ORDER = 'style=dashed, color="#b0b7c0"'


def to_dot(graph: Any) -> str:
    """The graph in Graphviz' language."""
    drawing = _Drawing(graph)
    return "\n".join([f"digraph {_label(graph.name)} {{", _HEAD, *drawing.lines, *drawing.edges, "}"]) + "\n"


def to_svg(graph: Any, path: Any = None) -> str:
    """The picture as SVG text, written to ``path`` too. Raises FileNotFoundError without the program `dot`."""
    program = shutil.which("dot")
    if program is None:
        raise FileNotFoundError("to_svg() needs Graphviz' program `dot`, which isn't installed. to_html() doesn't.")
    done = subprocess.run([program, "-Tsvg"], input=to_dot(graph), capture_output=True, text=True, check=True)
    if path is not None:
        Path(path).write_text(done.stdout, encoding="utf-8")
    return done.stdout


class _Drawing:
    def __init__(self, graph: Any) -> None:
        self.names = operation_names(graph)
        self.lines: list[str] = []
        self.edges: list[str] = []
        self.ids: dict[Any, str] = {}
        self.add_graph(graph, "  ", "")

    def id_of(self, key: Any) -> str:
        return self.ids.setdefault(key, f"n{len(self.ids)}")

    def add_graph(self, graph: Any, indent: str, prefix: str) -> None:
        for value in graph.inputs:
            label = _label(self.names[value], str(value.type))
            self.lines.append(f"{indent}{self.id_of(value)} [label={label}, {_ARGUMENT}]")
        for node in graph.nodes:
            self.add_node(node, indent)
        for index, value in enumerate(graph.outputs):
            key = (graph, index)
            label = "result" if len(graph.outputs) == 1 else f"result {index}"
            self.lines.append(f"{indent}{self.id_of(key)} [label={_label(prefix + label)}, {_RESULT}]")
            self.add_edge(value, self.id_of(key))

    def add_node(self, node: Any, indent: str) -> None:
        title = self.names[node]
        kind = node.op.label
        attrs = attributes(node, 32)
        parts = [title if title == kind else f"{title}: {kind}", *([attrs] if attrs else [])]
        if node.span:
            parts.append(short_span(node.span))
        identity, label = self.id_of(node), _label(*parts)
        if not node.regions:
            self.lines.append(f"{indent}{identity} [label={label}]")
        else:
            self.lines.append(f"{indent}subgraph cluster_{identity} {{")
            self.lines.append(f'{indent}  label={label}; style="rounded"; color="#7b93b8"')
            self.lines.append(f'{indent}  {identity} [label={_label(title)}, fillcolor="#dbe6f7"]')
            for label, region in regions(node):
                self.lines.append(f"{indent}  subgraph cluster_{identity}_{label} {{")
                self.lines.append(f'{indent}    label="{label}"; style="rounded,dashed"; color="#b0b7c0"')
                self.add_graph(region, indent + "    ", "")
                self.lines.append(f"{indent}  }}")
                # Invisible: they only place the region below its operation.
                first = [*region.inputs, *[each for each in region.nodes if not each.inputs]]
                self.edges += [f"  {identity} -> {self.id_of(each)} [style=invis]" for each in first]
            self.lines.append(f"{indent}}}")
        for value in node.inputs:
            self.add_edge(value, identity)

    def add_edge(self, value: Any, target: str) -> None:
        source = value.node if value.node is not None else value
        label = ""
        if value.node is not None and len(value.node.outputs) > 1:
            label = str(value.node.outputs.index(value))
        style = f"label={_label(label)}" if hasattr(value.type, "dtype") else _ORDER
        self.edges.append(f"  {self.id_of(source)} -> {target} [{style}]")


def _label(*lines: str) -> str:
    return '"' + "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in lines) + '"'
