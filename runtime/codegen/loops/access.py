"""How a nest of loops reads and writes operands: what walks along, what stays, and where an element lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.codegen.kernel.values import Array, Dims, Spread, Virtual, product


@dataclass
class Loop:
    """One printed loop over the neighbouring dimensions `axes`."""

    axes: tuple[int, ...]
    size: str
    reduced: bool
    index: str = "0"
    bounds: str = ""  # of a part of it

    @property
    def range(self) -> str:
        """What Python's `range` takes."""
        return self.bounds or self.size


class Access:
    """How a nest over `dims` reads one operand."""

    def __init__(self, low: Any, ref: Any, dims: Dims) -> None:
        self.low = low
        self.ref = ref = ref.source if isinstance(ref, Spread) else ref
        self.lead = len(dims) - len(ref.dims)
        own = ("1",) * self.lead + tuple(ref.dims)
        # full: walks with the nest; one: stays; step: decided at run time
        self.kinds = ["full" if a == b else "one" if a == "1" else "step" for a, b in zip(own, dims)]
        self.own = own
        self.steps = {
            axis: low.assign(f"0 if {own[axis]} == 1 else 1", "step")
            for axis, kind in enumerate(self.kinds)
            if kind == "step"
        }
        if isinstance(ref, Virtual) and ref.uniform:
            self.kinds = ["one"] * len(dims)
            self.steps = {}
        self.scattered = (isinstance(ref, Virtual) and not ref.uniform) or (
            isinstance(ref, Array) and ref.strides is not None
        )

    def may_merge(self, axis: int) -> bool:
        """Whether dimensions `axis` and `axis + 1` can be one loop."""
        a, b = self.kinds[axis], self.kinds[axis + 1]
        return a == b == "one" or (a == b == "full" and not self.scattered)

    def _index(self, loop: Loop, axis: int) -> str:
        kind = self.kinds[axis]
        if kind == "one" or loop.index == "0":
            return "0"
        return loop.index if kind == "full" else f"{loop.index} * {self.steps[axis]}"

    def text(self, loops: Sequence[Loop], name_offset: Callable[[str], str]) -> str:
        """The operand's element in the innermost loop."""
        ref = self.ref
        if isinstance(ref, Virtual):
            by_axis = {axis: loop for loop in loops for axis in loop.axes}
            return ref.element([self._index(by_axis[axis], axis) for axis in range(self.lead, len(self.kinds))])
        return f"{ref.buffer.name}[{self.offset(loops, name_offset)}]"

    def offset(self, loops: Sequence[Loop], name_offset: Callable[[str], str]) -> str:
        """Where the element lies in the flat buffer."""
        ref = self.ref
        if ref.strides is not None:
            terms = [] if ref.offset == "0" else [ref.offset]
            for loop in loops:
                if len(loop.axes) > 1:
                    continue  # it stays: dimensions along which it walks are never merged
                (axis,) = loop.axes
                index = self._index(loop, axis)
                stride = ref.strides[axis - self.lead] if axis >= self.lead else "0"
                if index != "0" and stride != "0":
                    terms.append(index if stride == "1" else f"{index} * {stride}")
            return name_offset(" + ".join(terms) or "0")
        text = "0"
        for loop in loops:
            index = self._index(loop, loop.axes[0])
            size = product([self.low.fusion.literals.get(self.own[axis], self.own[axis]) for axis in loop.axes])
            if text != "0" and size != "1":
                text = f"{closed(text)} * {closed(size)}"
            if index != "0":
                text = index if text == "0" else f"{text} + {index}"
        if ref.offset != "0":
            text = ref.offset if text == "0" else f"{ref.offset} + {text}"
        return name_offset(text)


def closed(text: str) -> str:
    return text if text.isidentifier() or text.isdigit() else f"({text})"
