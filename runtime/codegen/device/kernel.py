"""A kernel on its way to SPMD form: what the passes of `pipeline.py` rewrite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from runtime.codegen.device.library import library
from runtime.codegen.kernel.source import KernelSource
from runtime.dataclass import dataclass
from runtime.kernel_ir import ir
from runtime.kernel_ir.print_python import function as print_function
from runtime.kernel_ir.types import Scalar, Type, signature
from runtime.llvm.program import Library


class NotOnDevice(Exception):
    """A kernel has no SPMD form."""


Shapes = tuple[tuple[int, ...] | None, ...]

# Results that aren't arrays of the host's: the constant 0, and what only the kernel knows.
ZERO, UNKNOWN = -1, -2


@dataclass
class Given:
    """The arrays that the host allocates for a kernel (`given_arrays.py`).

    parameters   the name that an array has among the kernel's parameters, by the statement that made it
    elements     the types of these arrays, in the same order
    plan         computes, from the kernel's arguments, the numbers of elements of these arrays and the shapes of the
                 results; None for shapes that aren't known
    numbers      the positions of the arguments that are numbers and that it looks at; of arrays it looks at the shapes
    returned     for each result the position of its array among all parameters, ZERO, or UNKNOWN; None if there are
                 several exits, and the host doesn't know which one is taken
    """

    parameters: dict[ir.Statement, ir.Var] = field(default_factory=dict)
    elements: list[Scalar] = field(default_factory=list)
    plan: Callable[..., tuple[list[int], Shapes | None]] = lambda *arguments: ([], None)
    numbers: frozenset[int] = frozenset()
    returned: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Strided:
    """A loop in which a thread takes each trip of its own: the trips first + thread, first + thread + threads, …

    totals        the variables that it adds to
    coordinates   of a loop over rows and columns, whose first statements compute both: their names, and the number of
                  columns
    """

    first: ir.Expr
    thread: ir.Expr
    totals: frozenset[str]
    coordinates: tuple[str, str, ir.Var] | None = None


@dataclass
class Kernel:
    """functions    its functions, the kernel last; after the SPMD form is made, the functions of the library that have
                 one, too
    parameters   the types of the kernel's parameters
    details      the number of integers with a status; -1 if the kernel returns no status
    sizes        the numbers of variables, as far as they are known
    library      the functions that it may call
    given        the arrays that the host allocates for it, after its other arguments
    shared       how many loops threads share
    serial       reason -> how many loops one thread runs for that reason
    waiting      how many loops have a barrier of all threads in each trip
    strided      the loops over a thread's own trips
    """

    functions: list[ir.Function]
    parameters: list[Type]
    details: int
    sizes: Mapping[str, int] = field(default_factory=dict)
    library: Library = field(default_factory=library)
    given: Given = field(default_factory=Given)
    shared: int = 0
    serial: dict[str, int] = field(default_factory=dict)
    waiting: int = 0
    strided: dict[ir.Statement, Strided] = field(default_factory=dict)

    @classmethod
    def of(cls, source: KernelSource) -> Kernel:
        """The kernel of a graph that was lowered for devices; the source isn't changed."""
        functions = [
            ir.Function(each.name, each.parameters, ir.copied(each.body), each.kind, each.returns)
            for each in source.functions
        ]
        parameters: list[Type] = [*signature(source.signature)]
        return cls(functions, parameters, source.details if source.errors else -1, source.sizes)


def fresh_name(base: str, names: set[str]) -> str:
    """A name that isn't among `names`; adds it to them."""
    name, number = base, 0
    while name in names:
        number += 1
        name = f"{base}_{number}"
    names.add(name)
    return name


def names_of(function: ir.Function) -> set[str]:
    """The names that are taken in a function."""
    return ir.mentioned(function.body).union(function.parameters)


FreshSize = Callable[[str], ir.Var]  # makes a variable for a size or an index, with an unused name


def printed(kernel: Kernel, names: dict[Any, Any] | None = None) -> str:
    """The Python text of a kernel; in it, `gpu` stands for the functions that identify and synchronise threads."""
    return "\n\n\n".join(print_function(each) for each in kernel.functions)
