"""Fusion of neighbouring nests over the same rows.

    for i in range(n):                              for i in range(n):
        total = 0.0                                     total = 0.0
        for j in range(m):                              for j in range(m):
            total = lib.add(total, x[i * m + j])            total = lib.add(total, x[i * m + j])
        s[i] = total                           →        s[i] = total
    y = np.empty(n * m, np.float32)                     for j in range(m):
    for i in range(n):                                      y[i * m + j] = x[i * m + j] / s[i]
        for j in range(m):
            y[i * m + j] = x[i * m + j] / s[i]

Where rows are short, something slow to compute of each row, like a logarithm, stays in a loop of its own, since that is
made of vectors, and numbers one by one would take longer than the rows.

Two loops become one where the second reads of what the first writes only the row that it is at. A softmax or a layer
normalisation then goes over its rows once, while they are in the cache. What stands between the loops is printed before
them; it is known not to depend on the first.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.names import words
from runtime.codegen.passes import parallelize
from runtime.graph.passes import options

# Lines in a fused body: beyond, registers spill and compiling takes longer.
_LONGEST = 120
_SIMPLE = re.compile(r"\w+ = ")


@dataclass(frozen=True)
class Placed:
    """A loop as it stands in the block `inside`, from `start` to `end`."""

    inside: list
    start: int
    end: int
    index: str
    size: str
    body: list
    large: bool
    parts: int  # how many functions for threads there were before it


def place(low: Any, index: str, size: str, body: list, large: bool) -> None:
    """Prints `for index in range(size): body`, together with the loop before it where that is possible."""
    before = low.placed
    if (
        before is not None
        and options.get("remapping")
        and _can_join(low, before, index, size, body, large or before.large)
    ):
        between = low.block[before.end :]
        del low.block[before.start :], low.parts[before.parts :]
        low.block += between
        body, large = [*before.body, *body], large or before.large
    start, parts = len(low.block), len(low.parts)
    if not (large and parallelize.split(low, index, size, body)):
        low.line(f"for {index} in range({size}):")
        low.block.append(body or ["pass"])
    low.placed = Placed(low.block, start, len(low.block), index, size, body, large, parts)


def _can_join(low: Any, before: Placed, index: str, size: str, body: list, large: bool) -> bool:
    if before.inside is not low.block or (before.index, before.size) != (index, size) or before.end > len(low.block):
        return False
    between = low.block[before.end :]
    if not all(isinstance(line, str) and _SIMPLE.match(line) for line in between):
        return False
    first, second = _accesses(before.body), _accesses(body)
    if first is None or second is None or first.lines + second.lines > _LONGEST:
        return False
    made = first.assigned | first.stores.keys()
    if large and (first.short or second.short) and (first.slow or second.slow):
        return False
    if any(words(line) & made for line in between):
        return False
    # Only buffers of this kernel's own are known not to be seen under another name.
    stored = first.stores.keys() | second.stores.keys()
    if not stored <= low.fresh or stored & (first.whole | second.whole):
        return False
    shared = (first.stores.keys() & (second.stores.keys() | second.loads.keys())) | (
        first.loads.keys() & second.stores.keys()
    )
    return all(_same_row(index, [text for each in (first, second) for text in each.of(name)]) for name in shared)


def _same_row(index: str, subscripts: Sequence[str]) -> bool:
    """Whether all subscripts of a buffer lie in the row that `index` counts."""
    if all(text == index for text in subscripts):
        return True
    strides = set()
    for text in subscripts:
        found = re.fullmatch(rf"{index} \* (\w+)( \+ \w+)?", text)
        if found is None:
            return False
        strides.add(found.group(1))
    return len(strides) == 1


@dataclass
class _Accesses:
    """Subscripts by buffer, with the variables that are offsets written out."""

    loads: dict[str, list[str]]
    stores: dict[str, list[str]]
    assigned: set[str]
    lines: int
    whole: set[str]  # names that stand somewhere else than in front of a subscript
    short: bool  # it has a loop over few numbers
    slow: bool  # it computes a function once a row

    def of(self, name: str) -> list[str]:
        return self.loads.get(name, []) + self.stores.get(name, [])


def _accesses(body: list) -> _Accesses | None:
    """None where the body leaves the kernel, or does something else than compute."""
    tree = parallelize.parsed(body)
    if tree is None:
        return None
    lines = sum(isinstance(node, ast.stmt) for node in ast.walk(tree))
    short = any(isinstance(n, ast.For) and isinstance(n.iter.args[0], ast.Constant) for n in ast.walk(tree))  # type: ignore[attr-defined]
    once = [n for statement in tree.body if not isinstance(statement, ast.For) for n in ast.walk(statement)]
    slow = any(isinstance(n, ast.Attribute) and n.attr in spelling.OWN for n in once)
    found = _Accesses({}, {}, set(), lines, set(), short, slow)
    offsets: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            found.assigned.add(name)
            # A name that is assigned twice is no offset.
            offsets[name] = "?" if name in offsets else ast.unparse(node.value)
        elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
            found.assigned.add(node.target.id)
        elif isinstance(node, (ast.While, ast.Return, ast.AugAssign)):
            return None
    subscripted: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            if not isinstance(node.value, ast.Name):
                return None
            subscripted.add(node.value)
            text = ast.unparse(node.slice)
            kind = found.stores if isinstance(node.ctx, ast.Store) else found.loads
            kind.setdefault(node.value.id, []).append(offsets.get(text, text))
    found.whole = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and n not in subscripted}
    return found
