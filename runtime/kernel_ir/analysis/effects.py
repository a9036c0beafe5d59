"""Effects of functions on the arrays that they are given.

    def swap(a, i, j):            reads    a
        kept = a[i]               writes   a
        a[i] = a[j]               keeps    nothing
        a[j] = kept               makes no arrays

Those of a function with a row stand there (`functions.py`); those of others follow from their text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses
from runtime.kernel_ir.analysis.aliases import possible_sources, sources
from runtime.kernel_ir.functions import EVERY, row_of


class Effect(NamedTuple):
    """The positions of the arguments that a function reads, writes, or whose memory its result may be; and whether it
    makes arrays."""

    reads: Sequence[int] = ()
    writes: Sequence[int] = ()
    keeps: Sequence[int] = ()
    allocates: bool = False

    @property
    def changes_memory(self) -> bool:
        """Whether it writes arrays, or makes some."""
        return self.allocates or bool(self.writes)


UNKNOWN = Effect(EVERY, EVERY, EVERY, True)


class Effects:
    """The effects of functions by name. functions: those that are known by their text."""

    def __init__(self, functions: Mapping[str, ir.Function]) -> None:
        self._functions = functions
        self._known: dict[str, Effect] = {}

    def of(self, name: str) -> Effect:
        row = row_of(name)
        if row is not None:
            return Effect(row.reads, row.writes, row.keeps, row.allocates)
        found = self._known.get(name)
        if found is None:
            self._known[name] = Effect()  # it may call itself
            function = self._functions.get(name)
            found = self._known[name] = UNKNOWN if function is None else of_text(function, self.of)
        return found


def of_text(function: ir.Function, called: Callable[[str], Effect]) -> Effect:
    """The effect of a function by its text. called: gives those of the functions that it calls."""
    reads: set[str] = set()
    writes: set[str] = set()
    keeps: set[str] = set()
    allocates = False
    for item in ir.walk(function.body):
        allocates |= isinstance(item, ir.Alloc)
        if isinstance(item, ir.Return):
            keeps |= {name for value in item.values for name in sources(value)}
        for call in ir.expressions(item):
            if isinstance(call, ir.Call):
                effect = called(call.function)
                allocates |= effect.allocates
                for at, argument in enumerate(call.arguments):
                    reads |= sources(argument) if at in effect.reads else set()
                    writes |= sources(argument) if at in effect.writes else set()
    own = accesses(ir.walk(function.body))
    reads |= own.loads.keys()
    writes |= own.stores.keys()
    keeps &= reads | writes | own.sizes  # the others are numbers
    places = {name: at for at, name in enumerate(function.parameters)}

    def positions(names: set[str]) -> tuple[int, ...]:
        return tuple(sorted(places[name] for name in possible_sources(function.body, names) if name in places))

    return Effect(positions(reads), positions(writes), positions(keeps), allocates)
