"""Effects of functions on the arrays that they are given.

    def swap(a, i, j):            reads    a
        kept = a[i]               writes   a
        a[i] = a[j]               keeps    nothing
        a[j] = kept               makes no arrays

Those of a function with a row stand there (`functions.py`); those of others follow from their text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.accesses import accesses
from runtime.kernel_ir.analysis.aliases import possible_sources, sources
from runtime.kernel_ir.analysis.uses import called
from runtime.kernel_ir.functions import UNKNOWN, Effect, row_of


class Effects:
    """The effects of functions by name. functions: those that are known by their text."""

    def __init__(self, functions: Mapping[str, ir.Function]) -> None:
        self._functions = functions
        self._known: dict[str, Effect] = {}

    def of(self, name: str) -> Effect:
        row = row_of(name)
        if row is not None:
            return row.effect
        found = self._known.get(name)
        if found is None:
            self._known[name] = Effect()  # it may call itself
            function = self._functions.get(name)
            found = self._known[name] = UNKNOWN if function is None else of_text(function, self.of)
        return found


def of_text(function: ir.Function, effect_of: Callable[[str], Effect]) -> Effect:
    """The effect of a function by its text. effect_of: gives those of the functions that it calls."""
    items = list(ir.walk(function.body))
    own = accesses(items, effect_of)
    makes_some = any(isinstance(item, ir.Alloc) for item in items)
    allocates = makes_some or any(effect_of(name).allocates for name in called(items))
    returned = {name for item in items if isinstance(item, ir.Return) for each in item.values for name in sources(each)}
    arrays = own.arrays_read | own.arrays_written | own.sizes
    places = {name: at for at, name in enumerate(function.parameters)}

    def positions(names: set[str]) -> tuple[int, ...]:
        return tuple(sorted(places[name] for name in possible_sources(function.body, names) if name in places))

    return Effect(positions(own.arrays_read), positions(own.arrays_written), positions(returned & arrays), allocates)
