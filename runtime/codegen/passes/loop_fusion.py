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

Two loops are fused if, of the arrays that the first writes, the second reads only its current row. A softmax or a layer
normalisation then goes over each row while it is in the cache. Statements between the loops move before them; they
don't depend on the first loop.

If rows are short, a slow function of each row, such as a logarithm, stays in a loop of its own: that loop is
vectorised, whereas one call at a time would take longer than the rows themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runtime.codegen import cost_model
from runtime.codegen.passes.kernel import Kernel
from runtime.graph.passes import options
from runtime.kernel_ir import ir
from runtime.kernel_ir.functions import Cost, cost_of


def run(kernel: Kernel) -> None:
    """Fuses the nests of each block with those before them."""
    if not options.get("remapping"):
        return
    for function in kernel.functions:
        for block in ir.walk_blocks(function.body):
            _fuse(kernel, block)


def _fuse(kernel: Kernel, block: ir.Block) -> None:
    last: int | None = None  # the position of the last nest
    position = 0
    while position < len(block):
        item = block[position]
        if isinstance(item, ir.For) and item.nest:
            before = block[last] if last is not None else None
            if isinstance(before, ir.For) and _can_join(kernel, before, block[last + 1 : position], item):  # type: ignore[operator]
                item.body = [*before.body, *item.body]
                item.parallel = (item.parallel or before.parallel) and not ir.may_leave(item.body)
                kernel.fused[before] = item
                del block[last]  # type: ignore[arg-type]
                position -= 1
            last = position
        position += 1


def _can_join(kernel: Kernel, before: ir.For, between: ir.Block, after: ir.For) -> bool:
    if (before.index, before.start, before.stop, before.step) != (after.index, after.start, after.stop, after.step):
        return False
    if not all(isinstance(item, (ir.Assign, ir.Alloc)) and len(ir.targets(item)) == 1 for item in between):
        return False
    first, second = _accesses(before.body), _accesses(after.body)
    if first is None or second is None or first.statements + second.statements > cost_model.LOOP_FUSION_STATEMENTS:
        return False
    made = first.assigned | first.stores.keys()
    if (before.parallel or after.parallel) and (first.short or second.short) and (first.slow or second.slow):
        return False
    if any(ir.variables(item).union(ir.targets(item)) & made for item in between):
        return False
    # Only the kernel's own buffers are known to have no alias.
    stored = first.stores.keys() | second.stores.keys()
    if not stored <= kernel.own or stored & (first.whole | second.whole):
        return False
    shared = (first.stores.keys() & (second.stores.keys() | second.loads.keys())) | (
        first.loads.keys() & second.stores.keys()
    )
    index = ir.size_variable(before.index)
    return all(_same_row(index, [item for each in (first, second) for item in each.of(name)]) for name in shared)


def _same_row(index: ir.Var, subscripts: Sequence[ir.Expr]) -> bool:
    """Whether all subscripts of a buffer lie in the row number `index`: `index`, or `index * stride + column`."""
    if all(item == index for item in subscripts):
        return True
    strides = set()
    for item in subscripts:
        row = item
        if isinstance(item, ir.Binary) and item.op == "+" and isinstance(item.right, (ir.Var, ir.Const)):
            row = item.left
        if not isinstance(row, ir.Binary) or row.op != "*" or row.left != index:
            return False
        if not isinstance(row.right, (ir.Var, ir.Const)):
            return False
        strides.add(row.right)
    return len(strides) == 1


class _Accesses(NamedTuple):
    """The subscripts of each buffer, with variables for offsets replaced by their values."""

    loads: dict[str, list[ir.Expr]]
    stores: dict[str, list[ir.Expr]]
    assigned: set[str]
    statements: int
    whole: set[str]  # names that are used other than with a subscript
    short: bool  # it has a loop over a constant number of elements
    slow: bool  # it calls a slow function once for each row

    def of(self, name: str) -> list[ir.Expr]:
        return self.loads.get(name, []) + self.stores.get(name, [])


def _accesses(body: ir.Block) -> _Accesses | None:
    """The accesses of a body; None if it may leave the kernel or has a `while` loop."""
    items = list(ir.walk(body))
    if any(isinstance(item, (ir.While, ir.Return, ir.Fail)) for item in items):
        return None
    short = any(isinstance(item, ir.For) and isinstance(item.stop, ir.Const) for item in items)
    once = [
        each for top in body if not isinstance(top, ir.For) for item in ir.walk([top]) for each in ir.expressions(item)
    ]
    slow = any(isinstance(each, ir.Call) and cost_of(each.function) is Cost.FORMULA for each in once)
    found = _Accesses({}, {}, ir.assigned(body), len(items), set(), short, slow)
    offsets: dict[str, ir.Expr | None] = {}
    for item in items:
        if isinstance(item, ir.Assign) and len(item.targets) == 1:
            # A variable that is assigned twice isn't an offset.
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
