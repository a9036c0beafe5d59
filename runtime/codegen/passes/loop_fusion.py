"""Loop fusion: neighbouring nests over the same rows become one.

    for i in range(n):                              for i in range(n):
        total = 0.0                                     total = 0.0
        for j in range(m):                              for j in range(m):
            total = lib.add(total, x[i * m + j])            total = lib.add(total, x[i * m + j])
        s[i] = total                           →        s[i] = total
    y = np.empty(n * m, np.float32)                     for j in range(m):
    for i in range(n):                                      y[i * m + j] = x[i * m + j] / s[i]
        for j in range(m):
            y[i * m + j] = x[i * m + j] / s[i]

Two loops become one where the second reads of what the first writes only the row that it is at. A softmax or a layer
normalisation then goes over its rows once, while they are in the cache. What stands between the loops goes before them;
it is known not to depend on the first.

Where rows are short, something slow to compute of each row, like a logarithm, stays in a loop of its own, since that
loop is vectorised, and numbers one by one would take longer than the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from runtime.codegen.kernel import spelling
from runtime.codegen.passes import parallelize
from runtime.codegen.passes.recorded import note
from runtime.graph.passes import options
from runtime.kernel_ir import ir

# Statements in a fused body: beyond, registers spill and compiling takes longer.
_LONGEST = 120
_SLOW = frozenset(f"{module}.{name}" for module in ("lib", "math") for name in spelling.OWN)


@dataclass(frozen=True)
class Placed:
    """A loop as it stands in the block `inside`, from `start` to `end`."""

    inside: ir.Block
    start: int
    end: int
    index: str
    size: str
    body: ir.Block
    large: bool
    parts: int  # how many functions for threads there were before it


def place(low: Any, index: str, size: str, body: ir.Block, large: bool) -> None:
    """Adds `for index in range(size): body` to the block, fused with the loop before it where that is possible."""
    before = low.placed
    if (
        before is not None
        and options.get("remapping")
        and _can_join(low, before, index, size, body, large or before.large)
    ):
        between = low.block[before.end :]
        del low.block[before.start :], low.parts[before.parts :]
        low.block += between
        bodies = before.body, body, [*before.body, *body]
        note("loop fusion", lambda: _before_and_after(between, [low.for_each(index, size, each) for each in bodies]))
        body, large = bodies[2], large or before.large
    start, parts = len(low.block), len(low.parts)
    if not (large and parallelize.split(low, index, size, body)):
        low.loop(index, size, body)
    low.placed = Placed(low.block, start, len(low.block), index, size, body, large, parts)


def _before_and_after(between: ir.Block, loops: Sequence[ir.For]) -> tuple[ir.Block, ir.Block]:
    first, second, fused = loops
    return [first, *between, second], [*between, fused]


def _can_join(low: Any, before: Placed, index: str, size: str, body: ir.Block, large: bool) -> bool:
    if before.inside is not low.block or (before.index, before.size) != (index, size) or before.end > len(low.block):
        return False
    between = low.block[before.end :]
    if not all(isinstance(item, (ir.Assign, ir.Alloc)) and len(ir.targets(item)) == 1 for item in between):
        return False
    first, second = _accesses(before.body), _accesses(body)
    if first is None or second is None or first.statements + second.statements > _LONGEST:
        return False
    made = first.assigned | first.stores.keys()
    if large and (first.short or second.short) and (first.slow or second.slow):
        return False
    if any(ir.variables(item).union(ir.targets(item)) & made for item in between):
        return False
    # Only buffers of this kernel's own are known not to be seen under another name.
    stored = first.stores.keys() | second.stores.keys()
    if not stored <= low.fresh or stored & (first.whole | second.whole):
        return False
    shared = (first.stores.keys() & (second.stores.keys() | second.loads.keys())) | (
        first.loads.keys() & second.stores.keys()
    )
    return all(_same_row(index, [item for each in (first, second) for item in each.of(name)]) for name in shared)


def _same_row(index: str, subscripts: Sequence[ir.Expr]) -> bool:
    """Whether all subscripts of a buffer lie in the row that `index` counts: `index`, or `index * stride + column`."""
    if all(item == ir.Var(index) for item in subscripts):
        return True
    strides = set()
    for item in subscripts:
        row = item
        if isinstance(item, ir.Binary) and item.op == "+" and isinstance(item.right, (ir.Var, ir.Const)):
            row = item.left
        if not isinstance(row, ir.Binary) or row.op != "*" or row.left != ir.Var(index):
            return False
        if not isinstance(row.right, (ir.Var, ir.Const)):
            return False
        strides.add(row.right)
    return len(strides) == 1


@dataclass
class _Accesses:
    """Subscripts by buffer, with the variables that are offsets replaced by what they are."""

    loads: dict[str, list[ir.Expr]]
    stores: dict[str, list[ir.Expr]]
    assigned: set[str]
    statements: int
    whole: set[str]  # names that stand somewhere else than in front of a subscript
    short: bool  # it has a loop over a constant number of elements
    slow: bool  # it computes a function once a row

    def of(self, name: str) -> list[ir.Expr]:
        return self.loads.get(name, []) + self.stores.get(name, [])


def _accesses(body: ir.Block) -> _Accesses | None:
    """None where the body leaves the kernel, or does something else than compute."""
    items = list(ir.walk(body))
    if any(isinstance(item, (ir.While, ir.Return, ir.Fail)) for item in items):
        return None
    short = any(isinstance(item, ir.For) and isinstance(item.stop, ir.Const) for item in items)
    once = [
        each for top in body if not isinstance(top, ir.For) for item in ir.walk([top]) for each in ir.expressions(item)
    ]
    slow = any(isinstance(each, ir.Call) and each.function in _SLOW for each in once)
    found = _Accesses({}, {}, ir.assigned(body), len(items), set(), short, slow)
    offsets: dict[str, ir.Expr | None] = {}
    for item in items:
        if isinstance(item, ir.Assign) and len(item.targets) == 1:
            # A name that is assigned twice is no offset.
            offsets[item.targets[0]] = None if item.targets[0] in offsets else item.value

    def offset(index: ir.Expr) -> ir.Expr:
        known = offsets.get(index.name) if isinstance(index, ir.Var) else None
        return index if known is None else known

    def visit(item: ir.Expr) -> bool:
        if isinstance(item, ir.Load):
            if not isinstance(item.array, ir.Var):
                return False
            found.loads.setdefault(item.array.name, []).append(offset(item.index))
            return visit(item.index)
        if isinstance(item, ir.Var):
            found.whole.add(item.name)
        return all(visit(each) for each in ir.operands(item))

    for item in items:
        found.whole.update(ir.targets(item))
        if isinstance(item, ir.Store):
            if not isinstance(item.array, ir.Var):
                return None
            found.stores.setdefault(item.array.name, []).append(offset(item.index))
            parts = [item.index, item.value]
        else:
            parts = list(ir.operands(item))
        if not all(visit(each) for each in parts):
            return None
    return found
