"""What lowering a graph gives: the text of a kernel and how to call it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from runtime import errors
from runtime.codegen.kernel.reports import NestReport
from runtime.dtypes import DType, as_dtype, uint64
from runtime.graph.spans import at_span, describe_span
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
    """A node that generated code has no form for; the interpreter runs it."""

    def __init__(self, reason: str, node: Any = None) -> None:
        super().__init__(reason)
        self.node = node


class Unreadable(Exception):
    """A compiled form on disk that isn't what this build wrote."""


@dataclass(frozen=True)
class Slot:
    """One argument or result. kind: 'scalar', 'array', 'stack' or 'token'."""

    kind: str
    dtype: DType | None = None
    rank: int = 0


@dataclass(frozen=True)
class ErrorSite:
    """A check in the kernel: the exception it stands for, and the user's span.

    `{0}`, `{1}`, ... in the message are the numbers that the kernel gives with its status; `dtypes` says of which
    scalars they are the bits, where they are not plain integers.
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
        return at_span(error, self.span)

    def _shown(self, index: int, detail: int) -> str:
        if index >= len(self.dtypes):
            return str(detail)
        dtype = self.dtypes[index]
        value = np.int64(detail).view(np.float64) if dtype.is_floating else detail
        return format_tensor(dtype.np.type(value), self.summarize)


class Interruption(ErrorSite):
    """Raises what the user's handler of SIGINT raises (KeyboardInterrupt, by default)."""

    def exception(self, details: Sequence[int]) -> Exception | None:
        """None when the handler returns: the kernel is to run again."""
        assert threading.current_thread() is threading.main_thread()  # the others never see an interrupt
        signal.raise_signal(signal.SIGINT)
        return None


class Unfit(ErrorSite):
    """Sizes of arguments that the kernel wasn't lowered for: another one answers the call."""

    def exception(self, details: Sequence[int]) -> Exception | None:
        """None: the call is to be made once more, by `native.glue`, which asks for the other kernel."""
        return None


@dataclass(frozen=True)
class Kept:
    """Variables of the kernel that hold what was last committed for an `ag.Variable`. flag: whether anything was."""

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
    """A kernel, lowered.

    text         the module text; the function is `kernel`
    signature    numba types of its parameters, as text
    inputs       one slot per graph input; a stack takes 2 (rank 0) or 4 parameters, a token none
    outputs      one slot per graph output
    constants    further arguments: arrays and dimensions that the text must not depend on
    passed       outputs that are graph inputs: output index -> input index; the kernel doesn't return them
    details      numbers that accompany an error status (0..2); `errors` empty: no status is returned
    reports      the elementwise nests in the text, for `explain`
    arrays       the user's lines that make arrays, the largest first
    small        the nodes on tensors of few elements that are lowered element by element, for `explain`
    quick        whether it is to be compiled by few passes, because a running loop waits for it
    unfit        the status of sizes that the kernel wasn't lowered for, or None
    general      lowers the kernel for those
    functions    the kernel IR of the text; none where only the text is known
    kept         variables of which an error returns the value: reference -> slot (see `passes/rewrites/commits.py`)
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

    @property
    def key(self) -> str:
        """What besides its text the machine code depends on here."""
        return f"{self.signature} quick" if self.quick else self.signature

    def hurried(self) -> KernelSource:
        """The same for a running loop that waits for it. Few passes do for loops over numbers (1.8 times the time of
        all for the edit distance of `benchmarks`, 1.2 and mostly 1 for the others); nests over arrays in a loop are
        left to LLVM's vectors."""
        return replace(self, quick=not any(_has_inner_nest(each) for each in self.functions))

    def out_of_memory(self, error: MemoryError) -> Exception:
        """What is raised when the kernel can't allocate an array. error: what says so; a GPU's names sizes itself."""
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
    """Whether a function has loops over elements inside of something else, or is one that threads run."""
    inner = (inside for item in function.body for block in ir.blocks(item) for inside in ir.walk(block))
    return function.kind == "part" or any(isinstance(item, ir.For) for item in inner)


def numba_type(dtype: DType, rank: int) -> str:
    """`float32`, `float32[:,::1]`: how a signature names a C-contiguous array."""
    name = "boolean" if dtype.is_bool else dtype.name
    if rank == 0:
        return name
    return f"{name}[{':,' * (rank - 1)}::1]"


def signature_of(slots: Sequence[Slot], constants: Sequence[Any]) -> str:
    """The parameter types of a kernel as numba reads them."""
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
    """The type of a further argument as numba reads it."""
    if isinstance(constant, np.ndarray):
        return numba_type(as_dtype(constant.dtype), constant.ndim)
    return numba_type(uint64, 1) if isinstance(constant, Borrowed) else "int64"


def constant_variable(name: str, constant: Any) -> ir.Var:
    """The variable of a further argument."""
    return ir.Var(name, parsed(_constant_type(constant)))


def slot_of(type_: Type) -> Slot:
    """How a value of this type crosses the boundary of a kernel. Raises NotNative for types that can't."""
    if isinstance(type_, TokenType):
        return Slot("token")
    element = type_.element if isinstance(type_, StackType) else type_
    if element.dtype.name not in NATIVE_DTYPES:
        raise NotNative(f"dtype {element.dtype.name} has no native form")
    if element.rank is None:
        raise NotNative("a tensor of unknown rank has no native form")
    if isinstance(type_, StackType):
        return Slot("stack", element.dtype, element.rank)
    return Slot("array" if element.rank else "scalar", element.dtype, element.rank)
