"""Copy coalescing: an array variable that temporarily replaces another one becomes that one.

    while i < n:                                    while i < n:
        t = s                                           if top + m > s.size:
        if top + m > t.size:                                s = lib.grown(s, top, top + m)
            t = lib.grown(t, top, top + m)              for j in range(m):
        for j in range(m):                  →               s[top + j] = x
            t[top + j] = x                              top = top + m
        s = t                                           i = i + 1
        top = top + m
        i = i + 1

Each assignment of an array changes reference counts, here twice in each trip of the outer loop. If the inner loop has
few trips, that took longer than everything else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict

from runtime.codegen.passes.kernel import Kernel
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.aliases import copied_from


def run(kernel: Kernel) -> None:
    """Coalesces the copies of arrays in all functions."""
    for function in kernel.functions:
        fixed = {*kernel.kept, *kernel.given[function.name], *kernel.starts[function.name]}
        _Coalescing(function.body, fixed).run()


class _Coalescing:
    def __init__(self, body: ir.Block, fixed: set[str]) -> None:
        """fixed: variables that are used outside the body."""
        self.body = body
        self.fixed = fixed
        self.numbers: dict[ir.Statement, int] = {}  # in program order
        self.mentions: dict[str, list[int]] = defaultdict(list)  # variable -> the numbers of statements, ascending
        self.leaving: list[int] = []  # those of `break` and `continue`
        self.left: list[int] = []  # for each of them, the number of the loop that it jumps out of
        self.arrays: set[str] = set()
        self.names: dict[str, str] = {}  # what each coalesced variable has become
        self.dropped: set[ir.Statement] = set()

    def run(self) -> None:
        self.read(self.body, -1)
        for block in reversed(
            list(ir.walk_blocks(self.body))
        ):  # inner ones first: they show which variables are arrays
            self.coalesce(block)
        if not self.names:
            return
        for block in ir.walk_blocks(self.body):
            block[:] = [item for item in block if item not in self.dropped]
        ir.map_block(self.body, lambda each: self.renamed(each) if isinstance(each, ir.Var) else None)
        for item in ir.walk(self.body):
            ir.rename_targets(item, self.name_of)

    def read(self, block: ir.Block, loop: int) -> None:
        """Numbers the statements of a block. loop: the number of the innermost loop around it."""
        for item in block:
            number = self.numbers[item] = len(self.numbers)
            for name in {*ir.variables(item), *ir.targets(item)}:
                self.mentions[name].append(number)
            if isinstance(item, ir.Store) and isinstance(item.array, ir.Var):
                self.arrays.add(item.array.name)
            for each in ir.expressions(item):
                if isinstance(each, (ir.Load, ir.Size)) and isinstance(each.array, ir.Var):
                    self.arrays.add(each.array.name)
            if isinstance(item, (ir.Break, ir.Continue)):
                self.leaving.append(number)
                self.left.append(loop)
            for inner in ir.blocks(item):
                self.read(inner, number if isinstance(item, (ir.While, ir.For)) else loop)

    def coalesce(self, block: ir.Block) -> None:
        handed: dict[str, tuple[str, ir.Statement]] = {}  # variable -> what it is a copy of, and since which statement
        for item in block:
            source = copied_from(item) if isinstance(item, ir.Assign) else None
            if source is None:
                continue
            (target,) = ir.targets(item)
            original, first = handed.get(source, ("", item))
            if original == target and self.may_coalesce(source, target, self.numbers[first], self.numbers[item]):
                self.names[source] = target
                self.arrays.add(target)
                self.dropped |= {first, item}
            handed[target] = source, item

    def may_coalesce(self, name: str, original: str, start: int, stop: int) -> bool:
        """Whether a variable is used only between two statements, and the variable that it copies isn't used there."""
        if name not in self.arrays or name in self.fixed or original in self.fixed:
            return False
        places, others = self.mentions[name], self.mentions[original]
        if places[0] < start or places[-1] > stop or others[bisect_right(others, start)] < stop:
            return False
        exits = range(bisect_right(self.leaving, start), bisect_left(self.leaving, stop))
        return all(self.left[each] >= start for each in exits)

    def renamed(self, variable: ir.Var) -> ir.Var | None:
        name = self.name_of(variable.name)
        return None if name == variable.name else ir.Var(name, variable.type)

    def name_of(self, name: str) -> str:
        while name in self.names:
            name = self.names[name]
        return name
