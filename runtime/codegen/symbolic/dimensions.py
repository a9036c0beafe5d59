"""The dimensions of a kernel's arrays as atoms: which variable or literal stands for a size."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from runtime.codegen.kernel import spelling
from runtime.codegen.kernel.names import Names, words
from runtime.codegen.kernel.values import Array, Dims, Spread, Vector, Virtual, product
from runtime.codegen.symbolic.polynomial import Polynomial
from runtime.codegen.symbolic.ranges import Known, form_of, known_of, limits
from runtime.codegen.symbolic.shape_env import Extents
from runtime.graph.ir import Value
from runtime.types import TensorType

_INTEGER = re.compile(r"(?:np\.u?int\d+\()?(\d+)\)?")

_LARGEST_SIZE = 2**63 - 1  # of a dimension


class Sizes:
    """What `Lowering` knows of dimensions."""

    names: Names
    region: Any
    scalar: Any
    scalar_name: Any
    assign: Any
    atom: Any
    prologue: dict[str, str]

    def __init__(self, assuming: bool, equal: dict[str, Polynomial]) -> None:
        self.extents = Extents(self, assuming, equal)
        self.constants: list[tuple[str, Any]] = []  # parameter name, value
        self.static: dict[int, str] = {0: "0", 1: "1"}  # dimension -> atom
        self.sizes: dict[str, str] = {}  # scalar text -> the dimension atom that it is a copy of
        self.hidden: set[str] = set()  # names set inside blocks that are closed

    @staticmethod
    def with_dims(ref: Any, dims: Dims) -> Any:
        if ref.dims == dims:
            return ref
        if isinstance(ref, Array):
            return Array(ref.buffer, dims, ref.strides, ref.offset, ref.whole)
        if isinstance(ref, Spread):
            return Spread(ref.source, dims)
        if isinstance(ref, Virtual):
            return Virtual(ref.dtype, dims, ref.element, ref.uniform)
        return Vector(ref.dtype, ref.items, dims)

    def type_dims(self, type_: TensorType, known: Sequence[str]) -> Dims:
        assert type_.shape is not None
        return tuple(atom if d is None else self.static_dim(d) for d, atom in zip(type_.shape, known))

    def static_dim(self, size: int) -> str:
        """The atom of a dimension known while tracing: its value isn't part of the text."""
        atom = self.static.get(size)
        if atom is None:
            atom = self.static[size] = self.names.fresh("n")
            self.constants.append((atom, size))
        return atom

    def static_size(self, atom: str) -> int | None:
        """The size that a dimension atom stands for, if tracing knew it."""
        return next((size for size, name in self.static.items() if name == atom), None)

    def size_of(self, value: Value) -> str:
        """A rank-0 integer as a dimension atom; one that was read off a tensor is that tensor's own."""
        text = self.scalar(value)
        if text in self.sizes:
            return self.sizes[text]
        literal = _INTEGER.fullmatch(spelling.strip(text))
        if literal is not None and int(literal[1]) <= _LARGEST_SIZE:
            return self.static_dim(int(literal[1]))
        form = form_of(known_of(self.region.env[value]))
        if form is not None and self.extents.is_least(form):
            return self.extents.atom(form)
        name = self.scalar_name(value)
        ref = self.region.env[value]
        known = known_of(ref) or Known(*limits(ref.dtype))
        if known.wide is None or not known.wide.isidentifier():
            # Two tensors of this size have one dimension.
            known = replace(known, wide=self.assign(f"np.int64({name})", "n"))
            self.region.env[value] = replace(ref, known=known)
        assert known.wide is not None
        return known.wide

    def is_size(self, atom: str) -> bool:
        """Whether an atom is surely no less than 0, since it is a tensor's dimension."""
        if atom.isdigit() or atom in self.sizes.values() or atom in self.static.values():
            return True
        return self.extents.is_least(self.extents.of(atom), assume=False)

    def count(self, dims: Sequence[str]) -> str:
        """The number of elements of an array with these dimensions, as an atom."""
        return self.extents.atom(self.extents.product(dims), text=self.of_arguments(product(dims)))

    def of_arguments(self, text: str) -> str | None:
        """The text, if all that it names stands before the kernel begins."""
        return text if words(text) <= {*self.prologue, *self.static.values()} else None

    def is_visible(self, atom: str) -> bool:
        """Whether a dimension's variable is set on every path to here, not only inside a block that was printed."""
        return atom not in self.hidden
