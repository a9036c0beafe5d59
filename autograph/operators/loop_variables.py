"""What a staged loop carries: the variables it may change, and the tensor-sized parts that they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograph.operators.state import UNSET, Slot
from autograph.operators.structure import flatten, map_leaves
from autograph.operators.symbolic import is_tensorable, type_of
from runtime.ops.convert import is_tensor_like
from runtime.staged_list import StagedList
from runtime.types import TensorType


class Leaf:
    """One tensor-sized part of a variable: ``carried`` by the loop with a ``type``, or a Python value throughout."""

    def __init__(self, label: str, init: Any) -> None:
        self.label = label
        self.init = init
        self.carried = False
        self.flexible = False  # the buffer of a staged list of Python numbers: takes the dtype of what is stored
        self.guessed = False  # a Python number made a carry before anything has shown that it changes
        self.type: TensorType | None = None

    def carry(self, type_: TensorType) -> None:
        self.carried, self.type = True, type_


class Variable:
    """A variable of the loop: a structure of leaves, or None as its structure while it has no value."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.initial: Any = slot.get()
        self.structure = self.initial
        self.born_inside = self.structure is UNSET
        found = [] if self.born_inside else flatten(self.structure, slot.label)
        self.leaves = [Leaf(label, value) for label, value in found]
        if isinstance(self.structure, StagedList) and self.structure.is_weak:
            for leaf in self.leaves[:-1]:
                leaf.flexible = True

    def guess(self) -> None:
        """Chooses what is a carry before any trace."""
        for leaf in self.leaves:
            if is_tensor_like(leaf.init):
                leaf.carry(type_of(leaf.init))
            elif type(leaf.init) in (int, bool):
                # Counters and flags: nearly always changed, and then with this type. A wrong guess costs a trace.
                leaf.carry(type_of(leaf.init))
                leaf.guessed = True

    def adopt(self, value: Any) -> None:
        """Takes the structure of the value that the body gives to a variable born in it."""
        self.structure = value
        self.leaves = [Leaf(label, UNSET) for label, _ in flatten(value, self.slot.label)]
        for leaf, (_, found) in zip(self.leaves, flatten(value)):
            if is_tensorable(found):
                leaf.carry(type_of(found))
            else:
                leaf.init = found

    def assemble(self, values: Sequence[Any]) -> Any:
        if self.structure is UNSET:
            return UNSET
        remaining = iter(values)
        return map_leaves(self.structure, lambda _: next(remaining))
