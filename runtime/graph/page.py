"""A graph as one HTML page that needs nothing else: operations on the left, the user's source on the right.

Regions of `while` and `cond` fold. Pointing at an operation marks its source line and what it reads; pointing at a line
marks the operations that came from it.
"""

from __future__ import annotations

import ast
import html
import keyword
import linecache
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runtime.errors import cell_of
from runtime.graph.names import operation_names, value_name
from runtime.graph.page_style import SCRIPT, STYLE
from runtime.graph.printer import attributes, regions, short_span
from runtime.python_text import python_ast

_KINDS = {tokenize.STRING: "text", tokenize.COMMENT: "note"}
# Graphs, nodes and values are known here by their attributes alone, since `ir.py` uses this module.


def to_html(graph: Any, path: Any = None) -> str:
    """The page as text, written to ``path`` too if that is given."""
    text = "".join(_Page(graph).parts())
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def framed(page: str, lines: int) -> str:
    """A page as a part of a notebook. lines: about how many it shows."""
    height = min(120 + 24 * lines, 600)
    return (
        f'<iframe srcdoc="{html.escape(page, quote=True)}" sandbox="allow-scripts" '
        f'style="width: 100%; height: {height}px; border: 1px solid rgba(128, 128, 128, .4)"></iframe>'
    )


class _Page:
    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.names = operation_names(graph)
        self.count = sum(1 for _ in graph.walk())
        self.lines: dict[str, set[int]] = {}  # file -> lines that operations came from
        for node in graph.walk():
            if node.span:
                self.lines.setdefault(node.span[0], set()).add(node.span[1])
        self.files = {filename: f"f{index}" for index, filename in enumerate(self.lines)}

    def parts(self) -> Iterator[str]:
        title = html.escape(self.graph.name)
        yield f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        yield f"<style>{STYLE}</style></head>\n<body>\n"
        yield f"<header><h1>{title}</h1><p>{self.count} operations</p>"
        yield '<p class="buttons"><button id="unfold">unfold all</button> <button id="fold">fold all</button></p>'
        yield "</header>\n<main>\n<section>\n"
        yield from self.block(self.graph)
        yield "</section>\n<aside>\n"
        for filename in self.lines:
            yield from self.source(filename)
        yield f"</aside>\n</main>\n<script>{SCRIPT}</script>\n</body></html>\n"

    # --- operations ----------------------------------------------------------------------------------------------

    def block(self, graph: Any) -> Iterator[str]:
        if graph.inputs:
            shown = ", ".join(map(self.argument, graph.inputs))
            yield f'<div class="row"><span class="kind">arguments</span> {shown}</div>\n'
        for node in graph.nodes:
            attrs = attributes(node, 60)
            row = self.row(self.names[node], node.op.label, node.inputs, node.outputs, attrs, node.span)
            if not node.regions:
                yield row
                continue
            yield f"<details open><summary>{row}</summary>\n"
            for label, region in regions(node):
                size = sum(1 for _ in region.walk())
                plural = "" if size == 1 else "s"
                yield f'<details open class="region"><summary><b>{html.escape(label)}</b> '
                yield f'<span class="faint">{size} operation{plural}</span></summary>\n'
                yield from self.block(region)
                yield "</details>\n"
            yield "</details>\n"
        if graph.outputs:
            yield f'<div class="row"><span class="kind">return</span> {self.links(graph.outputs)}</div>\n'

    def row(self, name: str, kind: str, inputs: Any, outputs: Any, attrs: str, span: Any) -> str:
        types = ", ".join(html.escape(str(value.type)) for value in outputs)
        where = f' data-at="{self.files[span[0]]}-{span[1]}"' if span else ""
        text = f'<div class="row" id="{_identity(name)}"{where}><span class="name">{html.escape(name)}</span> '
        text += f'<span class="kind">{html.escape(kind)}</span>'
        text += f"({self.links(inputs)})"
        if attrs:
            text += f' <span class="attrs">{html.escape(attrs)}</span>'
        text += f' &nbsp;<span class="type">{types}</span>'
        if span:
            text += f'<span class="at">{html.escape(short_span(span))}</span>'
        return text + "</div>\n"

    def argument(self, value: Any) -> str:
        name = self.names[value]
        text = f'<span class="own" id="{_identity(name)}">{html.escape(name)}</span>'
        return f'{text} <span class="type">{html.escape(str(value.type))}</span>'

    def links(self, values: Any) -> str:
        found = []
        for value in values:
            owner = self.names[value.node if value.node is not None else value]
            shown = html.escape(value_name(value, self.names))
            found.append(f'<a href="#{_identity(owner)}">{shown}</a>')
        return ", ".join(found)

    # --- source --------------------------------------------------------------------------------------------------

    def source(self, filename: str) -> Iterator[str]:
        return source_listing(filename, self.files[filename], self.lines[filename])


def source_listing(
    filename: str, key: str, used: set[int], marks: Mapping[int, Sequence[str]] | None = None
) -> Iterator[str]:
    """The functions of a file that hold the lines `used`, numbered; line 7 has the id `{key}-7`.

    marks: texts that stand at the right of a line.
    """
    text = linecache.getlines(filename)
    painted = painted_lines(text)
    yield f"<h2>{html.escape(cell_of(filename) or filename)}</h2>\n"
    if not text:
        yield '<p class="faint">The source is not there any more.</p>\n'
        return
    yield '<pre class="source">'
    last = None
    for number in _shown_lines("".join(text), used):
        if last is not None and number != last + 1:
            yield '<span class="gap">⋯</span>'
        kind = ' class="used"' if number in used else ""
        line = painted[number - 1]
        mark = f"<em>{html.escape(', '.join(marks[number]))}</em>" if marks and number in marks else ""
        yield f'<span id="{key}-{number}"{kind}>{mark}<i>{number}</i>{line}</span>'
        last = number
    yield "</pre>\n"


def painted_lines(text: list[str]) -> list[str]:
    """Lines of Python source in HTML, keywords, strings and comments marked; all plain where they are no Python."""
    lines = [line.rstrip("\n") for line in text]
    marks: list[tuple[int, int, int, str]] = []  # line, columns, kind
    try:
        for token in tokenize.generate_tokens(iter([*text, ""]).__next__):
            kind = _KINDS.get(token.type, "word" if keyword.iskeyword(token.string) else "")
            for line in range(token.start[0], token.end[0] + 1) if kind else ():
                first = token.start[1] if line == token.start[0] else 0
                last = token.end[1] if line == token.end[0] else len(lines[line - 1])
                marks.append((line, first, last, kind))
    except (tokenize.TokenError, SyntaxError):  # a notebook cell with magics
        return [html.escape(line) for line in lines]
    made = [""] * len(lines)
    done = [0] * len(lines)
    for line, first, last, kind in marks:
        source = lines[line - 1]
        plain, marked = source[done[line - 1] : first], source[first:last]
        made[line - 1] += f'{html.escape(plain)}<b class="{kind}">{html.escape(marked)}</b>'
        done[line - 1] = last
    return [begun + html.escape(source[end:]) for begun, source, end in zip(made, lines, done)]


def _identity(name: str) -> str:
    return "op-" + html.escape(name.replace(" ", "_"), quote=True)


def _shown_lines(text: str, used: set[int]) -> list[int]:
    """The lines of the functions that operations came from; a few around a line that is in no function."""
    count = text.count("\n") + 1
    functions: list[tuple[int, int]] = []
    try:
        for node in ast.walk(python_ast(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = min([node.lineno, *[each.lineno for each in node.decorator_list]])
                functions.append((first, node.end_lineno or node.lineno))
    except (SyntaxError, ValueError):  # a notebook cell with magics
        functions = []
    shown: set[int] = set()
    for line in used:
        around = [(first, last) for first, last in functions if first <= line <= last]
        first, last = min(around) if around else (line - 2, line + 2)
        shown.update(range(max(1, first), min(count, last) + 1))
    return sorted(number for number in shown if number <= len(text.splitlines()))
