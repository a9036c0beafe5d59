"""Representations of graph values while a kernel is lowered.

    ref ::= Scalar(expr)                     rank 0: an expression of exactly the value's machine type
          | Array(buffer, dims, strides)     elements in a flat buffer from `offset` on; strides None: row-major
          | Broadcast(source, dims)          a row-major array, broadcast to `dims`
          | Virtual(dims, element)           nothing stored: each element is an expression of its indices
          | Vector(items)                    a few scalars, in row-major order; nothing stored
          | StackRef(data, dims, tops)       the variables that hold a stack
          | TOKEN                            an order token: nothing, since statements are in program order

A dimension is an *atom*: the constant 1 or a variable. Two dimensions with the same variable are provably equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.codegen.kernel.scalars import machine_type
from runtime.codegen.symbolic.ranges import Atom, Range
from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.kernel_ir import ir

Dims = tuple[Atom, ...]


@dataclass(frozen=True)
class Scalar:
    expr: ir.Expr
    dtype: DType
    range: Range | None = None

    @property
    def is_name(self) -> bool:
        return isinstance(self.expr, ir.Var)


class Buffer:
    """A variable that holds a flat array. owned: this kernel made it for one value, so it may be overwritten once that
    value, the views in `values` and all aliases are dead."""

    def __init__(self, name: str, dtype: DType, owned: bool = False, outside: Buffer | None = None) -> None:
        self.name = name
        self.variable = ir.array_variable(name, machine_type(dtype))
        self.dtype = dtype
        self.owned = owned
        self.values: list[Any] = []
        self.outside = outside  # in a region: the buffer of this memory in the region around it
        self._same: set[Buffer] = {self}

    def may_be(self, *others: Buffer) -> None:
        """Notes that this may be the same memory as `others`: a branch or a loop may pass an array through."""
        merged = self._same.union(*(other._same for other in others))
        for each in merged:
            each._same = merged

    @property
    def sharers(self) -> set[Buffer]:
        """All buffers of this region that may be the same memory, including this one."""
        return self._same

    @property
    def origins(self) -> list[Buffer]:
        """The buffers of the region around this one that may be the same memory."""
        return [each.outside for each in self._same if each.outside is not None]


@dataclass(frozen=True, eq=False)
class Array:
    buffer: Buffer
    dims: Dims
    strides: tuple[Atom, ...] | None = None
    offset: Atom = ir.ZERO
    # The buffer holds nothing else.
    whole: bool = True

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def is_plain(self) -> bool:
        """Whether the elements are exactly those of the buffer, in its order."""
        return self.strides is None and self.offset == ir.ZERO and self.whole


@dataclass(frozen=True, eq=False)
class Broadcast:
    source: Array
    dims: Dims

    @property
    def dtype(self) -> DType:
        return self.source.dtype


@dataclass(frozen=True, eq=False)
class Virtual:
    dtype: DType
    dims: Dims
    element: Callable[[Sequence[ir.Expr]], ir.Expr]
    # The element doesn't depend on its indices.
    uniform: bool = False


@dataclass(frozen=True, eq=False)
class Vector:
    dtype: DType
    items: tuple[ir.Expr, ...]
    dims: Dims


@dataclass(frozen=True, eq=False)
class StackRef:
    """The variables of a stack; those of the dimensions are `NO_VARIABLE` for rank 0. `shared`: an older handle on the
    same buffers may still be used, so a push must copy."""

    dtype: DType
    rank: int
    data: ir.Var
    dims: ir.Var
    top: ir.Var
    dims_top: ir.Var
    shared: bool = False
    reserved: bool = (
        False  # its capacity suffices for the one value that this trip of a loop pushes (see passes/strip_mine.py)
    )

    @property
    def variables(self) -> tuple[ir.Var, ...]:
        return (self.data, self.top) if self.rank == 0 else (self.data, self.top, self.dims, self.dims_top)


# In place of the variables that a stack of rank 0 doesn't have.
NO_VARIABLE = ir.size_variable("")


class _Token:
    def __repr__(self) -> str:
        return "TOKEN"


TOKEN = _Token()

Ref = Scalar | Array | Broadcast | Virtual | Vector | StackRef | _Token


def product(factors: Sequence[ir.Expr]) -> ir.Expr:
    """The product of dimension atoms or other factors: `n * m`, or 1."""
    first, *others = [each for each in factors if each != ir.ONE] or [ir.ONE]
    for each in others:
        first = ir.Binary("*", first, each)
    return first
