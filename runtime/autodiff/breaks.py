"""Records where gradient paths break on an eager tape, for `GradientTape.explain`.

A tape records only calls that have a gradient. What leaves its record is marked here, with the user's line: results
that have no gradient (integers), what is computed from them, values that left as NumPy arrays, and values that were
assigned to variables. Marked tensors are held weakly: a tape keeps nothing alive that it doesn't need.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from runtime.dataclass import dataclass
from runtime.graph.callers import user_span
from runtime.ops.table import OPS


@dataclass(frozen=True, eq=False)
class Break:
    """The reason why no gradient flows past a point, its place in the source, and the tracked tensors before it."""

    reason: str
    span: tuple[str, int, str] | None
    before: tuple[Any, ...]


class Breaks:
    """The breaks that one tape has seen."""

    def __init__(self) -> None:
        self._marks: dict[int, tuple[weakref.ref, Break]] = {}
        self._assigned: dict[int, tuple[Any, Break]] = {}
        self.exits: list[Break] = []

    def mark(self, tensor: Any, found: Break) -> None:
        self._marks[id(tensor)] = weakref.ref(tensor), found

    def of(self, tensor: Any) -> Break | None:
        """The break that lies between `tensor` and what the tape tracks."""
        entry = self._marks.get(id(tensor))
        # A new tensor may have the id of one that no longer exists.
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def propagate(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Records for an op without tracked operands that its results are cut off by the same break as its operands."""
        if self._marks:
            for tensor in inputs:
                found = self.of(tensor)
                if found is not None:
                    for output in outputs:
                        if output is not None:
                            self.mark(output, found)
                    return

    def lose(self, op: Any, inputs: Sequence[Any], attrs: dict, output: Any, tracked: Any) -> None:
        """An op with tracked operands returns a tensor without a gradient."""
        before = tuple([t for t in inputs if id(t) in tracked])
        self.mark(output, Break(discrete(op, attrs, output.dtype), user_span(), before))

    def leave(self, tensor: Any) -> None:
        """A tracked tensor becomes a NumPy array or a Python number."""
        reason = "the value leaves as a NumPy array or Python number, and the tape doesn't see what happens to it there"
        self.exits.append(Break(reason, user_span(), (tensor,)))

    def assign(self, variable: Any, value: Any) -> None:
        """A tracked (or lost) value is assigned to a variable."""
        reason = (
            f"the value is assigned to the variable '{variable.name}', and what is read from a variable depends on the "
            "variable alone"
        )
        self._assigned[id(variable)] = variable, Break(reason, user_span(), (value,))

    def read(self, variable: Any, tensor: Any) -> None:
        entry = self._assigned.get(id(variable))
        if entry is not None:
            self.mark(tensor, entry[1])


_silent_rules: set[Any] = set()


def silent_rules() -> set[Any]:
    """The gradient rules in the op table that never return a cotangent."""
    if not _silent_rules:
        names = ("_no_gradient", "_nothing", "_flat")
        _silent_rules.update(row.grad for row in OPS.values() if getattr(row.grad, "__name__", "") in names)
        _silent_rules.update([None, OPS["stop_gradient"].grad, OPS["host_call"].grad])
    return _silent_rules


def discrete(op: Any, attrs: dict, dtype: Any) -> str:
    """Why a result of `op` has no gradient though its operand has one."""
    if op.name == "cast":
        return f"the cast to {dtype.name} has no gradient: only floating-point and complex tensors have"
    label = getattr(op, "label", None) or op.name
    return f"'{label}' returns {dtype.name}, and only floating-point and complex tensors have a gradient"
