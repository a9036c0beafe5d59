"""The dimensions of a kernel's arrays as atoms: which variable or literal stands for a size."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from runtime.codegen.kernel.names import Names
from runtime.codegen.kernel.values import Array, Broadcast, Dims, Vector, Virtual, product
from runtime.codegen.symbolic.ranges import Atom, Range, known_range, limits, polynomial_of
from runtime.codegen.symbolic.shape_env import ShapeEnv
from runtime.graph.ir import Value
from runtime.kernel_ir import ir
from runtime.kernel_ir.analysis.polynomial import Polynomial
from runtime.kernel_ir.types import INT64
from runtime.types import TensorType

_LARGEST_SIZE = 2**63 - 1  # of a dimension


class Sizes:
    """The part of `Lowering` that knows dimensions: which variable or literal each size is."""

    names: Names
    graph: Any
    region: Any
    scalar: Any
    scalar_name: Any
    assign: Any
    atom: Any
    prologue: dict[str, ir.Expr]

    def __init__(self, assuming: bool, equal: dict[str, Polynomial]) -> None:
        self.shape_env = ShapeEnv(self, assuming, equal)
        self.constants: list[tuple[str, Any]] = []  # parameter name, value
        self.static: dict[int, Atom] = {0: ir.ZERO, 1: ir.ONE}  # dimension -> atom
        self.numbers: dict[tuple[int, str], ir.Var] = {}  # other numbers and what they are -> variable
        self.sizes: dict[ir.Expr, Atom] = {}  # scalar -> the dimension atom that it is a copy of
        self.hidden: set[str] = set()  # names set inside blocks that are closed

    @staticmethod
    def with_dims(ref: Any, dims: Dims) -> Any:
        if ref.dims == dims:
            return ref
        if isinstance(ref, Array):
            return Array(ref.buffer, dims, ref.strides, ref.offset, ref.whole)
        if isinstance(ref, Broadcast):
            return Broadcast(ref.source, dims)
        if isinstance(ref, Virtual):
            return Virtual(ref.dtype, dims, ref.element, ref.uniform)
        return Vector(ref.dtype, ref.items, dims)

    def type_dims(self, type_: TensorType, known: Sequence[Atom]) -> Dims:
        assert type_.shape is not None
        return tuple(atom if d is None else self.static_dim(d) for d, atom in zip(type_.shape, known))

    def static_dim(self, size: int) -> Atom:
        """The atom of a dimension known while tracing: its value isn't part of the text."""
        atom = self.static.get(size)
        if atom is None:
            name = self.names.fresh("n")
            atom = self.static[size] = ir.size_variable(name)
            self.constants.append((name, size))
        return atom

    def static_number(self, value: int, role: str) -> ir.Var:
        """A number known while tracing whose value isn't part of the text, as with a dimension, but that isn't a
        dimension which happens to be as large."""
        known = self.numbers.get((value, role))
        if known is None:
            name = self.names.fresh(role)
            known = self.numbers[value, role] = ir.size_variable(name)
            self.constants.append((name, value))
        return known

    @functools.cached_property
    def counts(self) -> frozenset[int]:
        """The numbers of elements in parts of arguments that are as long as several of their dimensions."""
        shapes = [getattr(value.type, "shape", None) or () for value in self.graph.inputs]
        parts = [shape[first:last] for shape in shapes for first, last in combinations(range(len(shape) + 1), 2)]
        return frozenset(math.prod(part) for part in parts if len(part) > 1 and None not in part)

    def static_size(self, atom: ir.Expr) -> int | None:
        """The size that a dimension atom stands for, if tracing knew it."""
        return next((size for size, name in self.static.items() if name == atom), None)

    def size_in_check(self, size: Atom) -> Atom:
        """A dimension as the checks of indices use it: in loops as a number, where tracing knew it. A comparison with a
        number is one instruction, and bounds the index for LLVM."""
        number = self.static_size(size) if self.region.in_loop else None
        return size if number is None else ir.as_expr(number)

    def size_of(self, value: Value) -> Atom:
        """A rank-0 integer as a dimension atom. An integer that was read from a tensor's shape is that dimension's
        atom."""
        expr = self.scalar(value)
        if expr in self.sizes:
            return self.sizes[expr]
        if isinstance(expr, ir.Const) and 0 <= expr.value <= _LARGEST_SIZE:
            return self.static_dim(int(expr.value))
        polynomial = polynomial_of(known_range(self.region.env[value]))
        if polynomial is not None and self.shape_env.is_nonnegative(polynomial):
            return self.shape_env.atom(polynomial)
        name = self.scalar_name(value)
        ref = self.region.env[value]
        known = known_range(ref) or Range(*limits(ref.dtype))
        if not isinstance(known.wide, ir.Var):
            # Two tensors of this size have one dimension.
            known = known._replace(wide=self.assign(ir.Convert(INT64, name), "n"))
            self.region.env[value] = replace(ref, range=known)
        assert isinstance(known.wide, ir.Var)
        return known.wide

    def is_size(self, atom: Atom) -> bool:
        """Whether an atom is known not to be negative, because it is a tensor's dimension."""
        if isinstance(atom, ir.Const) or atom in self.sizes.values() or atom in self.static.values():
            return True
        return self.shape_env.is_nonnegative(self.shape_env.of(atom), assume=False)

    def count(self, dims: Sequence[Atom]) -> Atom:
        """The number of elements of an array with these dimensions, as an atom."""
        return self.shape_env.atom(self.shape_env.product(dims), expr=self.of_arguments(product(dims)))

    def of_arguments(self, expr: ir.Expr) -> ir.Expr | None:
        """The expression, if all variables in it are set before the kernel's first statement."""
        static = {atom.name for atom in self.static.values() if isinstance(atom, ir.Var)}
        return expr if ir.variables(expr) <= {*self.prologue, *static} else None

    def is_visible(self, atom: Atom) -> bool:
        """Whether a dimension's variable is set on every path to here, not only inside a block that is closed."""
        return isinstance(atom, ir.Const) or atom.name not in self.hidden
