"""Scalar replacement: values that are computed and used in one row stay in registers.

    total = np.empty(n, np.float32)
    for i in range(n):                              for i in range(n):
        sum = 0.0                                       sum = 0.0
        for j in range(m):                              for j in range(m):
            sum = lib.add(sum, x[i * m + j])                sum = lib.add(sum, x[i * m + j])
        total[i] = sum                       →          total_1 = sum
        for j in range(m):                              for j in range(m):
            y[i * m + j] /= total[i]                        y[i * m + j] /= total_1

After neighbouring nests have been fused (`loop_fusion.py`), the value that the first one computes for a row is often
read nowhere else. A variable for it saves an array, and in the inner loops a load that might alias their stores and so
prevent vectorisation. The pass needs the complete kernel to know all reads.
"""

from __future__ import annotations

from runtime.codegen.passes.kernel import Kernel
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses
from runtime.kernel_ir.analysis.uses import mentions


def run(kernel: Kernel) -> None:
    """Replaces arrays whose elements are each written and read in one row of a nest only."""
    for function in kernel.functions:
        statements = list(ir.walk_with_blocks(function.body))
        users = mentions([item for _, item in statements])
        nests = _Nests(statements)
        values: dict[str, str] = {}
        for _, item in statements:
            if isinstance(item, ir.Alloc) and item.name in kernel.own:
                others = [user for user in users[item.name] if user is not item]
                if others and _is_value(item.name, nests, others):
                    values[item.name] = kernel.names.fresh(item.name)
        if values:
            _replace(statements, values)


class _Nests:
    """The loops that statements are in: the one directly around each, and all statements in a loop."""

    def __init__(self, statements: list[tuple[ir.Block, ir.Statement]]) -> None:
        loops = {id(item.body): item for _, item in statements if isinstance(item, ir.For)}
        self.loop_at: dict[ir.Statement, ir.For | None] = {item: loops.get(id(block)) for block, item in statements}
        self._inside: dict[ir.For, set[ir.Statement]] = {}

    def inside(self, loop: ir.For) -> set[ir.Statement]:
        """All statements in a loop, including nested ones."""
        if loop not in self._inside:
            self._inside[loop] = set(ir.walk(loop.body))
        return self._inside[loop]


def _is_value(name: str, nests: _Nests, users: list[ir.Statement]) -> bool:
    """Whether a buffer is used in the body of one loop only, there only at the loop's index, and is written first."""
    first = users[0]
    loop = nests.loop_at[first]
    if loop is None or not isinstance(first, ir.Store) or first.array != ir.Var(name):
        return False
    inside = nests.inside(loop)
    if name in ir.variables(first.value) or not all(user in inside for user in users):
        return False
    if any(isinstance(item, ir.For) and item.index == loop.index for item in inside):
        return False  # another loop has the same index variable
    used = accesses(users)
    if name in used.whole or any(name in ir.targets(user) for user in users):
        return False
    return all(index == ir.Var(loop.index) for index in used.at(name))


def _replace(statements: list[tuple[ir.Block, ir.Statement]], values: dict[str, str]) -> None:
    """Replaces the elements of buffers by variables and removes the allocations. values: buffer -> variable."""

    def change(each: ir.Expr) -> ir.Expr | None:
        if isinstance(each, ir.Load) and isinstance(each.array, ir.Var) and each.array.name in values:
            return ir.Var(values[each.array.name], each.type)
        return None

    changed: dict[ir.Statement, ir.Statement | None] = {}
    for _, item in statements:
        if isinstance(item, ir.Alloc) and item.name in values:
            changed[item] = None
            continue
        if isinstance(item, ir.Store) and isinstance(item.array, ir.Var) and item.array.name in values:
            changed[item] = ir.assign(values[item.array.name], ir.mapped(item.value, change))
        elif not values.keys().isdisjoint(ir.variables(item)):
            ir.map_operands(item, lambda operand: ir.mapped(operand, change))
    for block in {id(block): block for block, item in statements if item in changed}.values():
        block[:] = [new for item in block if (new := changed.get(item, item)) is not None]
