"""The result of lowering a graph: a kernel and its calling convention."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from runtime import errors
from runtime.codegen.kernel.reports import NestReport
from runtime.dataclass import dataclass
from runtime.dtypes import DType, as_dtype, uint64
from runtime.graph.spans import at_span, describe_span, note_span
from runtime.kernel_ir import ir
from runtime.kernel_ir.types import parsed
from runtime.ops.random.stateful import Borrowed
from runtime.ops.strings.tensor_format import format_tensor
from runtime.types import StackType, TokenType, Type

_LINES_SHOWN = 3


NATIVE_DTYPES = frozenset(
    [
        "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
        "float16", "bfloat16", "float32", "float64",
    ]
)  # fmt: skip


class NotNative(Exception):
    """A node that can't be lowered; the interpreter runs it."""

    def __init__(self, reason: str, node: Any = None) -> None:
        super().__init__(reason)
        self.node = node


class Unreadable(Exception):
    """A compiled file on disk that this build didn't write."""


@dataclass(frozen=True)
class Slot:
    """One argument or result. kind: 'scalar', 'array', 'stack' or 'token'."""

    kind: str
    dtype: DType | None = None
    rank: int = 0


def scalar_of_bits(dtype: DType, bits: int) -> Any:
    """The NumPy scalar that a kernel gives as an int64: an integer itself, of a float the bits of the float64."""
    value: Any = np.int64(bits).view(np.float64) if dtype.is_floating else np.int64(bits)
    return value if value.dtype is dtype.np else value.astype(dtype.np)


@dataclass(frozen=True)
class ErrorSite:
    """A check in the kernel: the exception it stands for, and the user's span.

    `{0}`, `{1}`, ... in the message stand for the numbers that the kernel returns with its status. dtypes: of the
    scalars whose bits these numbers are, if they aren't plain integers.
    """

    error: str
    message: str
    span: Any
    op: str | None = None
    dtypes: tuple[DType, ...] = ()
    summarize: int = 3

    def exception(self, details: Sequence[int]) -> Exception | None:
        cls = errors.BY_NAME[self.error]
        message = self.message
        for index, detail in enumerate(details):
            message = message.replace(f"{{{index}}}", self._shown(index, detail))
        error = cls(message, self.op) if issubclass(cls, errors.OpError) else cls(*([message] if message else []))
        error.__suppress_context__ = True  # as after `from None`
        return at_span(error, self.span)

    def _shown(self, index: int, detail: int) -> str:
        if index >= len(self.dtypes):
            return str(detail)
        return format_tensor(scalar_of_bits(self.dtypes[index], detail), self.summarize)


@dataclass(frozen=True)
class Raised(ErrorSite):
    """An error of any class, which Python makes of the values of scalars when it is raised."""

    template: Any = None  # an `ErrorTemplate`

    def exception(self, details: Sequence[int]) -> Exception | None:
        values = [scalar_of_bits(dtype, detail) for dtype, detail in zip(self.dtypes, details)]
        error = self.template.made(values)
        note_span(error, self.span)
        return at_span(error, self.span) if isinstance(error, errors.OpError) else error


class Interruption(ErrorSite):
    """Ctrl-C: raises what the user's handler of SIGINT raises (by default KeyboardInterrupt)."""

    def exception(self, details: Sequence[int]) -> Exception | None:
        """None if the handler returns: the kernel has to run again."""
        assert threading.current_thread() is threading.main_thread()  # other threads never see an interrupt
        signal.raise_signal(signal.SIGINT)
        return None


class Unfit(ErrorSite):
    """The sizes of the arguments break an assumption of the kernel; another kernel answers the call."""

    def exception(self, details: Sequence[int]) -> Exception | None:
        """None: the call stub calls the other kernel (`backends/call_stub.py`)."""
        return None


@dataclass(frozen=True)
class Kept:
    """Variables of the kernel that hold the last committed value of an `ag.Variable`. flag: whether there is one."""

    flag: ir.Var
    value: ir.Var
    dims: tuple[ir.Var, ...]
    slot: Slot

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.flag.name, self.value.name, *(dim.name for dim in self.dims))

    def result(self) -> ir.Expr:
        """The value as a kernel returns it."""
        return ir.call("lib.shaped", ir.Tuple(self.dims), self.value) if self.slot.rank > 1 else self.value


@dataclass(frozen=True)
class KernelSource:
    """A lowered kernel.

    text         the module text; the function is `kernel`
    signature    numba types of its parameters, as text
    inputs       one slot per graph input; a stack takes 2 (rank 0) or 4 parameters, a token none
    outputs      one slot per graph output
    constants    further arguments: arrays and dimensions, on which the text must not depend
    passed       outputs that are graph inputs, which the kernel doesn't return: output index -> input index
    details      the number of integers that accompany an error status. Without `errors` there is no status
    reports      the elementwise nests in the text, for `explain`
    arrays       the user's lines that make arrays, the largest array first
    small        the nodes that are lowered element by element, for `explain`
    quick        whether few passes are to compile it, because a running loop waits for it
    unfit        the status for sizes that break an assumption, or None
    general      lowers the kernel without assumptions
    functions    the kernel IR of the text; empty if only the text is known
    sizes        the numbers that variables of the kernel have for the sizes of its graph's inputs
    kept         variables whose values an error returns: reference -> slot (see `graph/passes/rewrites/commits.py`)
    """

    name: str
    text: str
    signature: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    constants: tuple[Any, ...] = ()
    passed: dict[int, int] = field(default_factory=dict)
    errors: tuple[ErrorSite, ...] = ()
    details: int = 0
    kept: dict[Any, Slot] = field(default_factory=dict)
    reports: tuple[NestReport, ...] = ()
    arrays: tuple[Any, ...] = ()
    small: frozenset[Any] = frozenset()
    quick: bool = False
    unfit: int | None = None
    general: Callable[[], KernelSource] | None = field(default=None, compare=False)
    functions: tuple[ir.Function, ...] = field(default=(), compare=False, repr=False)
    sizes: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def key(self) -> str:
        """What the machine code depends on besides the text and the machine."""
        return f"{self.signature} quick" if self.quick else self.signature

    def hurried(self) -> KernelSource:
        """The kernel, compiled with fewer LLVM passes where that costs little: a running loop waits for it. Loops over
        numbers need few passes: their code takes 1.8 times as long without the others for the edit distance of
        `benchmarks`, 1 to 1.2 times for other loops. Nests over arrays in a loop need LLVM's vectorisation, so kernels
        with them are compiled as usual."""
        return replace(self, quick=not any(_has_inner_nest(each) for each in self.functions))

    def out_of_memory(self, error: MemoryError) -> Exception:
        """The exception for an array that can't be allocated. error: the cause; a GPU's names the sizes itself."""
        lines = [describe_span(span) for span in self.arrays[:_LINES_SHOWN]]
        more = f"\n  and {len(self.arrays) - len(lines)} more lines" if len(self.arrays) > len(lines) else ""
        places = "".join(f"\n  at {line}" for line in lines) + more
        if isinstance(error, errors.ResourceExhaustedError):
            return errors.ResourceExhaustedError(f"{error.message}{places}")
        how_much = f" ({error})" if str(error) else ""
        return errors.ResourceExhaustedError(
            f"Out of memory: an array that '{self.name}' makes can't be allocated{how_much}{places}"
        )


def _has_inner_nest(function: ir.Function) -> bool:
    """Whether a function has loops over elements inside other statements, or is one that threads run."""
    inner = (inside for item in function.body for block in ir.blocks(item) for inside in ir.walk(block))
    return function.kind == "part" or any(isinstance(item, ir.For) for item in inner)


def numba_type(dtype: DType, rank: int) -> str:
    """`float32`, `float32[:,::1]`: how a signature names a C-contiguous array."""
    name = "boolean" if dtype.is_bool else dtype.name
    if rank == 0:
        return name
    return f"{name}[{':,' * (rank - 1)}::1]"


def signature_of(slots: Sequence[Slot], constants: Sequence[Any]) -> str:
    """The types of a kernel's parameters in numba's notation."""
    parts: list[str] = []
    for slot in slots:
        if slot.kind == "stack":
            assert slot.dtype is not None
            parts += [numba_type(slot.dtype, 1), "int64"]
            if slot.rank:
                parts += ["int64[::1]", "int64"]
        elif slot.kind != "token":
            assert slot.dtype is not None
            parts.append(numba_type(slot.dtype, slot.rank))
    parts += map(_constant_type, constants)
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def _constant_type(constant: Any) -> str:
    """The type of a further argument in numba's notation."""
    if isinstance(constant, np.ndarray):
        return numba_type(as_dtype(constant.dtype), constant.ndim)
    return numba_type(uint64, 1) if isinstance(constant, Borrowed) else "int64"


def constant_variable(name: str, constant: Any) -> ir.Var:
    """The variable of a further argument."""
    return ir.Var(name, parsed(_constant_type(constant)))


def slot_of(type_: Type) -> Slot:
    """How a value of this type is passed to and returned by a kernel. Raises NotNative for types that can't be."""
    if isinstance(type_, TokenType):
        return Slot("token")
    element = type_.element if isinstance(type_, StackType) else type_
    if element.dtype.name not in NATIVE_DTYPES:
        raise NotNative(f"dtype {element.dtype.name} can't be compiled")
    if element.rank is None:
        raise NotNative("a tensor of unknown rank can't be compiled")
    if isinstance(type_, StackType):
        return Slot("stack", element.dtype, element.rank)
    return Slot("array" if element.rank else "scalar", element.dtype, element.rank)
