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

from typing import NamedTuple

from runtime.codegen import cost_model
from runtime.codegen.passes.kernel import Kernel
from runtime.graph.passes import options
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import Accesses, accesses
from runtime.kernel_ir.analysis.subscripts import is_in_row
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
    first, second = _read(before.body), _read(after.body)
    if first is None or second is None or first.statements + second.statements > cost_model.LOOP_FUSION_STATEMENTS:
        return False
    one, other = first.accesses, second.accesses
    made = first.assigned | one.stores.keys()
    if (before.parallel or after.parallel) and (first.short or second.short) and (first.slow or second.slow):
        return False
    if any(ir.variables(item).union(ir.targets(item)) & made for item in between):
        return False
    # Only the kernel's own buffers are known to have no alias.
    stored = one.stores.keys() | other.stores.keys()
    if not stored <= kernel.own or stored & (one.whole | other.whole | first.assigned | second.assigned):
        return False
    shared = (one.stores.keys() & (other.stores.keys() | other.loads.keys())) | (one.loads.keys() & other.stores.keys())
    index = ir.size_variable(before.index)
    return all(is_in_row(first.at(name) + second.at(name), index) for name in shared)


class _Body(NamedTuple):
    """What is known of a loop's body.

    accesses    those of arrays
    assigned    the variables that it assigns
    statements  their number
    short       whether it has a loop over a constant number of elements
    slow        whether it calls a slow function once for each row
    values      what the variables are that it assigns once
    """

    accesses: Accesses
    assigned: set[str]
    statements: int
    short: bool
    slow: bool
    values: dict[str, ir.Expr | None]

    def at(self, name: str) -> list[ir.Expr]:
        """The subscripts of an array, with variables for offsets replaced by their values."""
        return [self._offset(index) for index in self.accesses.at(name)]

    def _offset(self, index: ir.Expr) -> ir.Expr:
        known = self.values.get(index.name) if isinstance(index, ir.Var) else None
        return index if known is None else known


def _read(body: ir.Block) -> _Body | None:
    """A body; None if it may leave the kernel or has a `while` loop."""
    items = list(ir.walk(body))
    if any(isinstance(item, (ir.While, ir.Return, ir.Fail)) for item in items):
        return None
    short = any(isinstance(item, ir.For) and isinstance(item.stop, ir.Const) for item in items)
    once = [
        each for top in body if not isinstance(top, ir.For) for item in ir.walk([top]) for each in ir.expressions(item)
    ]
    slow = any(isinstance(each, ir.Call) and cost_of(each.function) is Cost.FORMULA for each in once)
    values: dict[str, ir.Expr | None] = {}
    for item in items:
        if isinstance(item, ir.Assign) and len(item.targets) == 1:
            values[item.targets[0]] = None if item.targets[0] in values else item.value
    found = accesses(items)
    return None if found.of_views else _Body(found, ir.assigned(body), len(items), short, slow, values)
