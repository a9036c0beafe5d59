"""Forms of a loop that the sizes of a kernel's arguments rule out aren't written.

A kernel's text doesn't depend on sizes, so that traces for many sizes share it. But a trace for known sizes needs only
some of its forms on a GPU; others would take as long to compile:

    if columns > rows * 512:                 while row < rows:      # 8192 rows of 1024 columns
        …                             →          …
    else:
        while row < rows:
            …
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from runtime.codegen.device.given_arrays import evaluated, is_known
from runtime.kernel_ir import ir


class KnownSizes:
    """The numbers of a function that are known before it is compiled."""

    def __init__(self, body: ir.Block, sizes: Mapping[str, int]) -> None:
        """sizes: of variables that are parameters, or dimensions of parameters."""
        assigned: dict[str, list[ir.Statement]] = defaultdict(list)
        for item in ir.walk(body):
            for name in ir.targets(item):
                assigned[name].append(item)
        self._numbers = {
            name: size
            for name, size in sizes.items()
            if all(isinstance(item, ir.Assign) and isinstance(item.value, ir.Dim) for item in assigned[name])
        }
        for item in body:
            if isinstance(item, ir.Assign) and [len(assigned[name]) for name in item.targets] == [1]:
                number = self.number(item.value)
                if number is not None:
                    self._numbers[item.targets[0]] = number

    def number(self, item: ir.Expr) -> int | None:
        """The value of an integer or a condition; None if it isn't known."""
        return evaluated(item, self._numbers) if is_known(item, self._numbers.keys(), ()) else None

    def truth(self, test: ir.Expr) -> bool | None:
        """Whether a condition holds; None if it isn't known."""
        if isinstance(test, ir.Unary) and test.op == "not":
            inner = self.truth(test.operand)
            return None if inner is None else not inner
        if isinstance(test, ir.Logic):
            parts = [self.truth(each) for each in test.operands]
            decides = test.op == "or"
            return decides if decides in parts else None if None in parts else not decides
        number = self.number(test)
        return None if number is None else bool(number)

    def tests(self, body: ir.Block) -> tuple[bool | None, ...]:
        """What is known about each condition of a block."""
        return tuple(self.truth(item.test) for item in ir.walk(body) if isinstance(item, ir.If))

    def taken(self, body: ir.Block) -> ir.Block:
        """A copy of a block without branches that are never taken."""
        found: ir.Block = []
        for item in ir.copied(body):
            known = self.truth(item.test) if isinstance(item, ir.If) else None
            if known is not None:
                assert isinstance(item, ir.If)
                found += self.taken(item.body if known else item.orelse)
                continue
            for inner in ir.blocks(item):
                inner[:] = self.taken(inner)
            found.append(item)
        return found
