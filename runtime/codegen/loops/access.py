"""How a loop nest reads and writes operands: along which dimensions it moves, and the offset of an element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.codegen.kernel.values import Array, Broadcast, Dims, Virtual, product
from runtime.codegen.loops.builder import KernelBuilder
from runtime.codegen.symbolic.ranges import Atom
from runtime.dataclass import dataclass
from runtime.kernel_ir import ir


@dataclass(eq=False)
class Loop:
    """One loop over the adjacent dimensions `axes`. index: its variable, or a constant if there is no loop."""

    axes: tuple[int, ...]
    size: ir.Expr
    reduced: bool
    index: Atom = ir.ZERO
    bounds: tuple[ir.Expr, ...] = ()  # if it covers only a part of the dimensions

    @property
    def runs(self) -> bool:
        return isinstance(self.index, ir.Var)

    @property
    def range(self) -> tuple[ir.Expr, ...]:
        """The arguments of the loop's `range`."""
        return self.bounds or (self.size,)


class Access:
    """How a nest over `dims` reads one operand."""

    def __init__(self, low: KernelBuilder, ref: Any, dims: Dims) -> None:
        self.low = low
        self.ref = ref = ref.source if isinstance(ref, Broadcast) else ref
        self.lead = len(dims) - len(ref.dims)
        own: Dims = (ir.ONE,) * self.lead + tuple(ref.dims)
        # full: moves with the nest; one: broadcast; step: which of the two is decided at run time
        self.kinds = ["full" if a == b else "one" if a == ir.ONE else "step" for a, b in zip(own, dims)]
        self.own = own
        self.steps: dict[int, ir.Expr] = {
            axis: low.assign(own[axis].compare("==", 1).choose(0, 1), "step")
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

    def _index(self, loop: Loop, axis: int) -> ir.Expr:
        kind = self.kinds[axis]
        if kind == "one" or loop.index == ir.ZERO:
            return ir.ZERO
        return loop.index if kind == "full" else loop.index * self.steps[axis]

    def element(self, loops: Sequence[Loop], name_offset: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
        """The operand's element in the innermost loop."""
        ref = self.ref
        if isinstance(ref, Virtual):
            by_axis = {axis: loop for loop in loops for axis in loop.axes}
            return ref.element([self._index(by_axis[axis], axis) for axis in range(self.lead, len(self.kinds))])
        return ir.load(ref.buffer.variable, self.offset(loops, name_offset))

    def offset(self, loops: Sequence[Loop], name_offset: Callable[[ir.Expr], ir.Expr]) -> ir.Expr:
        """Where the element lies in the flat buffer."""
        ref = self.ref
        if ref.strides is not None:
            terms = [] if ref.offset == ir.ZERO else [ref.offset]
            for loop in loops:
                if len(loop.axes) > 1:
                    continue  # broadcast: loops over several dimensions are those along which the operand doesn't move
                (axis,) = loop.axes
                index = self._index(loop, axis)
                stride = ref.strides[axis - self.lead] if axis >= self.lead else ir.ZERO
                if index != ir.ZERO and stride != ir.ZERO:
                    terms.append(index if stride == ir.ONE else index * stride)
            return name_offset(total(terms))
        found: ir.Expr = ir.ZERO
        for loop in loops:
            index = self._index(loop, loop.axes[0])
            literals = self.low.fusion.literals
            size = product([literals.get(self.own[axis], self.own[axis]) for axis in loop.axes])
            if found != ir.ZERO and size != ir.ONE:
                found = found * size
            if index != ir.ZERO:
                found = index if found == ir.ZERO else found + index
        if ref.offset != ir.ZERO:
            found = ref.offset if found == ir.ZERO else ref.offset + found
        return name_offset(found)


def total(terms: Sequence[ir.Expr]) -> ir.Expr:
    """The sum of some expressions."""
    first, *others = terms or [ir.ZERO]
    for each in others:
        first = ir.Binary("+", first, each)
    return first
