"""Accesses: how statements use arrays.

    n = x.size                    sizes     x
    for i in range(n):
        a[i] = x[i] * 2.0         stores    a at i        loads    x at i
    lib.top_of_row(a, 0, n, v,    read      a, v, p       written  v, p
                   p, 0, k)
    b = a                         others    a

What a function does with its arguments is in its row (`functions.py`). A function without a row may do everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.functions import row_of


@dataclass
class Accesses:
    """The accesses of some statements.

    loads, stores    array → the subscripts at which elements are read, or written
    read, written    the arrays whose elements functions read, or write
    sizes            the arrays that are asked for their size, their dimensions or the type of their elements
    others           variables that are used in any other way: numbers, and arrays of which the value, or a function's
                     result, may be another name
    of_views         whether elements are accessed of something else than a variable
    """

    loads: dict[str, list[ir.Expr]] = field(default_factory=dict)
    stores: dict[str, list[ir.Expr]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    of_views: bool = False

    def at(self, array: str) -> list[ir.Expr]:
        """The subscripts at which an array is accessed."""
        return self.loads.get(array, []) + self.stores.get(array, [])

    def add(self, item: ir.Expr) -> None:
        """Adds those of an expression."""
        kind = type(item)
        if kind is ir.Var:
            self.others.add(item.name)  # type: ignore[union-attr]
        elif isinstance(item, ir.Load):
            self._element(item.array, item.index, self.loads)
        elif isinstance(item, ir.Call):
            self._call(item)
        elif isinstance(item, (ir.Size, ir.Dim, ir.ElementType)) and isinstance(item.array, ir.Var):
            self.sizes.add(item.array.name)
        elif kind is not ir.Const:
            for operand in ir.operands(item):
                self.add(operand)

    def add_statement(self, item: ir.Statement) -> None:
        """Adds those of a statement without its blocks."""
        if isinstance(item, ir.Store):
            self._element(item.array, item.index, self.stores)
            self.add(item.value)
        else:
            for operand in ir.operands(item):
                self.add(operand)

    def _element(self, array: ir.Expr, index: ir.Expr, found: dict[str, list[ir.Expr]]) -> None:
        if isinstance(array, ir.Var):
            found.setdefault(array.name, []).append(index)
        else:
            self.of_views = True
            self.add(array)
        self.add(index)

    def _call(self, item: ir.Call) -> None:
        row = row_of(item.function)
        for at, argument in enumerate(item.arguments):
            for each in argument.items if isinstance(argument, ir.Tuple) else (argument,):
                if not isinstance(each, ir.Var):
                    self.add(each)
                    continue
                is_read, is_written = row is None or at in row.reads, row is None or at in row.writes
                if is_read:
                    self.read.add(each.name)
                if is_written:
                    self.written.add(each.name)
                if row is None or at in row.keeps or not (is_read or is_written):
                    self.others.add(each.name)


def accesses(items: Iterable[ir.Statement]) -> Accesses:
    """The accesses of statements without their blocks: `accesses(ir.walk(block))` are those of a block."""
    found = Accesses()
    for item in items:
        found.add_statement(item)
    return found


def written_by(block: Iterable[ir.Statement]) -> set[str]:
    """The arrays that a block, with all blocks in it, writes to."""
    found = accesses(ir.walk(block))
    return found.written | found.stores.keys()


def read_by(*items: ir.Statement) -> set[str]:
    """The arrays whose elements statements, without their blocks, read; or that functions in them write."""
    found = accesses(items)
    return found.read | found.written | found.loads.keys()


def has_memory_reads(item: ir.Expr) -> bool:
    """Whether an expression loads an element or calls a function."""
    return any(isinstance(each, (ir.Load, ir.Call)) for each in ir.subexpressions(item))
