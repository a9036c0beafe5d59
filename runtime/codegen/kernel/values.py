"""What stands for a graph value while a kernel is printed.

    ref ::= Scalar(text)                     rank 0: an expression of exactly the value's machine type
          | Array(buffer, dims, strides)     elements in a flat buffer from `offset` on; strides None: row-major
          | Spread(source, dims)             a row-major array, broadcast to `dims`
          | Virtual(dims, element)           nothing stored: each element is an expression of its indices
          | Vector(items)                    a few scalars, in row-major order; nothing stored
          | StackRef(data, dims, tops)       names of the variables that hold a stack
          | TOKEN                            order tokens leave no trace: text is in program order

A dimension is an *atom*: "1", or the name of a variable (equal names: provably equal dimensions).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runtime.codegen.symbolic.ranges import Known
from runtime.dtypes import DType

Dims = tuple[str, ...]


@dataclass(frozen=True)
class Scalar:
    text: str
    dtype: DType
    known: Known | None = None

    @property
    def is_name(self) -> bool:
        return self.text.isidentifier()


class Buffer:
    """A flat array variable. `owned`: made by this kernel for one value, so that it may be written in place when
    that value (and the views in `values`, and what may be the same memory under another name) is dead."""

    def __init__(self, name: str, dtype: DType, owned: bool = False, outside: Buffer | None = None) -> None:
        self.name = name
        self.dtype = dtype
        self.owned = owned
        self.values: list[Any] = []
        self.outside = outside  # in a region: what the region around it calls this memory
        self._same: set[Buffer] = {self}

    def may_be(self, *others: Buffer) -> None:
        """Says that this may be the memory of `others`: a branch or a loop hands on what it was given."""
        merged = self._same.union(*(other._same for other in others))
        for each in merged:
            each._same = merged

    @property
    def sharers(self) -> set[Buffer]:
        """All buffers of this region that may be the same memory, this one among them."""
        return self._same

    @property
    def origins(self) -> list[Buffer]:
        """The buffers of the region around this one that may be the same memory."""
        return [each.outside for each in self._same if each.outside is not None]


@dataclass(frozen=True, eq=False)
class Array:
    buffer: Buffer
    dims: Dims
    strides: tuple[str, ...] | None = None
    offset: str = "0"
    # The buffer holds nothing else.
    whole: bool = True

    @property
    def dtype(self) -> DType:
        return self.buffer.dtype

    @property
    def is_plain(self) -> bool:
        """Whether the elements are exactly those of the buffer, in its order."""
        return self.strides is None and self.offset == "0" and self.whole


@dataclass(frozen=True, eq=False)
class Spread:
    source: Array
    dims: Dims

    @property
    def dtype(self) -> DType:
        return self.source.dtype


@dataclass(frozen=True, eq=False)
class Virtual:
    dtype: DType
    dims: Dims
    element: Callable[[Sequence[str]], str]
    # The element doesn't depend on its indices.
    uniform: bool = False


@dataclass(frozen=True, eq=False)
class Vector:
    dtype: DType
    items: tuple[str, ...]
    dims: Dims


@dataclass(frozen=True, eq=False)
class StackRef:
    """Variables of a stack. `shared`: an older handle on the same buffers may still be used, so a push must copy."""

    dtype: DType
    rank: int
    data: str
    dims: str
    top: str
    dims_top: str
    shared: bool = False
    reserved: bool = False  # there is room for the one value that this trip of a loop pushes (see passes/strip_mine.py)

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.data, self.top) if self.rank == 0 else (self.data, self.top, self.dims, self.dims_top)


class _Token:
    def __repr__(self) -> str:
        return "TOKEN"


TOKEN = _Token()

Ref = Scalar | Array | Spread | Virtual | Vector | StackRef | _Token


def product(atoms: Sequence[str]) -> str:
    """The text of a product of dimension atoms: `n * m`, or `1`."""
    factors = [a for a in atoms if a != "1"]
    return " * ".join(factors) if factors else "1"
