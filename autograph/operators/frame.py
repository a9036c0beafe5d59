"""What tracing a block may change, found out by looking: so that nothing of a trace leaks out of it.

A block changes the variables that it names. It may also call functions that change variables of theirs (``nonlocal``)
or attributes of objects (``self.total += x`` in a method). A `Frame` remembers all of these that can be reached from
the block's closure cells, puts them back after a trace, and tells which have changed: they are state like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from autograph.operators.calls import LIBRARIES
from autograph.operators.state import UNSET, Block, CellSlot, Slot, cells, read_cell, write_cell
from autograph.operators.structure import flatten
from autograph.operators.symbolic import is_weak
from runtime.tensor import SymbolicTensor, Tensor

# Objects further away than this, or more of them, belong to no loop's state.
_DEPTH = 4
_MOST_OBJECTS = 500


class AttributeSlot(Slot):
    """An attribute of one object, whatever the way to it."""

    def __init__(self, label: str, attributes: dict[str, Any], name: str) -> None:
        super().__init__(label)
        self.attributes = attributes
        self.name = name

    @property
    def place(self) -> Any:
        return id(self.attributes), self.name

    def get(self) -> Any:
        return self.attributes.get(self.name, UNSET)

    def set(self, value: Any) -> None:
        if value is UNSET:
            self.attributes.pop(self.name, None)
        else:
            self.attributes[self.name] = value


class Frame:
    """The variables and attributes that blocks can reach, as they were when this was made."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        direct = cells(blocks)
        self.before = [(cell, read_cell(cell)) for cell in direct.values()]
        self.far_cells: list[tuple[str, CellType, Any]] = []
        self.objects: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
        self._seen = {id(cell) for cell in direct.values()}
        for name, cell in direct.items():
            self._reach(name, read_cell(cell), _DEPTH)

    def changes(self) -> list[tuple[Slot, Any]]:
        """The state beyond the blocks' own variables that has changed, each with its value now."""
        found = []
        for slot, before in self._far_slots():
            now = slot.get()
            if now is not before and _is_state(before, now):
                found.append((slot, now))
        return found

    def restore(self) -> None:
        """Puts everything back, save what is no state of the program (objects made while tracing stay)."""
        for slot, before in list(self._far_slots()):
            now = slot.get()
            if now is not before and _is_state(before, now):
                slot.set(before)
        for cell, value in self.before:
            if read_cell(cell) is not value:
                write_cell(cell, value)

    def _far_slots(self) -> Iterator[tuple[Slot, Any]]:
        for name, cell, value in self.far_cells:
            yield CellSlot(name, cell), value
        for name, attributes, values in self.objects:
            for key in dict.fromkeys([*values, *attributes]):
                yield AttributeSlot(f"{name}.{key}", attributes, key), values.get(key, UNSET)

    def _reach(self, name: str, value: Any, depth: int) -> None:
        if depth == 0 or len(self._seen) > _MOST_OBJECTS or id(value) in self._seen:
            return
        kind = type(value)
        if kind in (int, float, bool, str, bytes, type(None)) or isinstance(value, (type, ModuleType, Tensor)):
            return
        self._seen.add(id(value))
        if kind is FunctionType:
            if not _is_library(value.__globals__.get("__name__")):
                self._reach_closure(value, depth)
        elif kind is MethodType:
            self._reach(name, value.__self__, depth)
            self._reach(name, value.__func__, depth)
        elif kind in (list, tuple):
            for index, item in enumerate(value):
                self._reach(f"{name}[{index}]", item, depth - 1)
        elif kind is dict:
            for key, item in value.items():
                self._reach(f"{name}[{key!r}]", item, depth - 1)
        elif not _is_library(kind.__module__) and isinstance(getattr(value, "__dict__", None), dict):
            attributes = value.__dict__
            self.objects.append((name, attributes, dict(attributes)))
            for key, item in list(attributes.items()):
                self._reach(f"{name}.{key}", item, depth - 1)

    def _reach_closure(self, function: FunctionType, depth: int) -> None:
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) not in self._seen:
                self._seen.add(id(cell))
                self.far_cells.append((name, cell, read_cell(cell)))
                self._reach(name, read_cell(cell), depth - 1)


def _is_library(module: Any) -> bool:
    return not isinstance(module, str) or module.partition(".")[0] in LIBRARIES or module == "builtins"


def _is_state(before: Any, now: Any) -> bool:
    """Whether a change belongs to the program: a tensor of a trace has come in, or a number or tensor has changed."""
    if any(isinstance(leaf, SymbolicTensor) for _, leaf in flatten(now)):
        return True
    return _is_value(before) and _is_value(now)


def _is_value(value: Any) -> bool:
    return value is not UNSET and (is_weak(value) or isinstance(value, Tensor))
