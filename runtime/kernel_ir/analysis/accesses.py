"""Accesses: how statements use arrays.

    n = x.size                    sizes     x
    for i in range(n):
        a[i] = x[i] * 2.0         stores    a at i        loads    x at i
    lib.top_of_row(a, 0, n, v,    read      a, v, p       written  v, p
                   p, 0, k)
    b = a                         others    a

What a function does with arrays stands in its row (`functions.py`). A function without a row may do anything, unless
its text is known (`effects.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field

from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.aliases import sources
from runtime.kernel_ir.functions import Effect, effect_of


@dataclass
class Accesses:
    """The accesses of some statements.

    loads, stores    array → the subscripts at which elements are read, or written
    read, written    the arrays whose elements functions read, or write; or that are accessed through views
    sizes            the arrays that are asked for their size, their dimensions or the type of their elements
    kept             the arrays whose memory the result of a function may be
    others           variables that are used in any other way: numbers, and arrays that get another name
    of_views         whether some are accessed through views
    effect_of        gives what a function does
    """

    effect_of: Callable[[str], Effect] = effect_of
    loads: dict[str, list[ir.Expr]] = field(default_factory=dict)
    stores: dict[str, list[ir.Expr]] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    sizes: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    others: set[str] = field(default_factory=set)
    of_views: bool = False

    @property
    def arrays_read(self) -> set[str]:
        """The arrays whose elements are read, one by one or by functions."""
        return self.read | self.loads.keys()

    @property
    def arrays_written(self) -> set[str]:
        """The arrays whose elements are written, one by one or by functions."""
        return self.written | self.stores.keys()

    @property
    def whole(self) -> set[str]:
        """The variables that are used other than by their elements."""
        return self.read | self.written | self.sizes | self.kept | self.others

    def at(self, array: str) -> list[ir.Expr]:
        """The subscripts at which an array is accessed."""
        return self.loads.get(array, []) + self.stores.get(array, [])

    def add(self, item: ir.Expr) -> None:
        """Adds those of an expression."""
        kind = type(item)
        if kind is ir.Var:
            self.others.add(item.name)  # type: ignore[union-attr]
        elif kind is ir.Binary or kind is ir.Compare:
            self.add(item.left)  # type: ignore[union-attr]
            self.add(item.right)  # type: ignore[union-attr]
        elif isinstance(item, ir.Load):
            self._element(item.array, item.index, self.loads, self.read)
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
            self._element(item.array, item.index, self.stores, self.written)
            self.add(item.value)
        else:
            for operand in ir.operands(item):
                self.add(operand)

    def _element(self, array: ir.Expr, index: ir.Expr, found: dict[str, list[ir.Expr]], of_views: set[str]) -> None:
        if isinstance(array, ir.Var):
            found.setdefault(array.name, []).append(index)
        else:
            of_views |= sources(array)
            self.of_views = True
            self.add(array)
        self.add(index)

    def _call(self, item: ir.Call) -> None:
        effect = self.effect_of(item.function)
        for at, argument in enumerate(item.arguments):
            for each in argument.items if isinstance(argument, ir.Tuple) else (argument,):
                if not isinstance(each, ir.Var):
                    self.add(each)
                    continue
                found = [
                    names
                    for names, positions in (
                        (self.read, effect.reads), (self.written, effect.writes), (self.kept, effect.keeps)
                    )
                    if at in positions
                ]  # fmt: skip
                for names in found or (self.others,):
                    names.add(each.name)


def accesses(items: Iterable[ir.Statement], effect_of: Callable[[str], Effect] = effect_of) -> Accesses:
    """The accesses of statements without their blocks: `accesses(ir.walk(block))` are those of a block."""
    found = Accesses(effect_of)
    for item in items:
        found.add_statement(item)
    return found


def read_by(block: Iterable[ir.Statement]) -> set[str]:
    """The arrays whose elements a block, with all blocks in it, reads."""
    return accesses(ir.walk(block)).arrays_read


def written_by(block: Iterable[ir.Statement]) -> set[str]:
    """The arrays whose elements a block, with all blocks in it, writes."""
    return accesses(ir.walk(block)).arrays_written


def has_memory_reads(item: ir.Expr) -> bool:
    """Whether an expression loads an element or calls a function."""
    return any(isinstance(each, (ir.Load, ir.Call)) for each in ir.subexpressions(item))
