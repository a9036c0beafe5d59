"""The stub around a kernel: a function from the values of a graph's inputs to those of its outputs.

Its Python code is generated, since a loop over descriptors of the arguments would take longer than many kernels do:

    def call(arguments):
        x, n = arguments
        status, result = entry(x, n)
        if status:
            error = failure(status)
            if error is None:  # Ctrl-C, and the user's handler wants to go on
                return call(arguments)
            raise error
        return [float32(result)]
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import CodeType
from typing import Any

import numpy as np

from runtime import profiling
from runtime.codegen.backends import llvm_backend
from runtime.codegen.backends.driver import compile_kernel, record_of
from runtime.codegen.backends.numba_backend import compiler as numba_compiler
from runtime.codegen.kernel.call_outs import CallOut, argument, watched
from runtime.codegen.kernel.source import KernelSource, Slot
from runtime.codegen.passes.parallelize import ThreadCount, thread_count
from runtime.context import commit
from runtime.dataclass import dataclass
from runtime.dtypes import NARROW
from runtime.ops.random.stateful import Borrowed
from runtime.ops.stack import Stack, Store

NativeCall = Callable[[Sequence[Any]], "list[Any]"]


def load(source: KernelSource) -> NativeCall:
    """Compiles the kernel, or finds it in the cache, and makes its stub.

    Inputs are arrays, NumPy scalars, stacks and None for tokens, as for the interpreter.
    """
    entry = compile_kernel(source)
    record = record_of(source)
    compiler = record.compiler if record is not None else ""
    return make_stub(source, entry, compiler == llvm_backend.NAME, bits=compiler == numba_compiler.NAME)


def make_device_stub(
    source: KernelSource,
    entry: Callable[..., Any],
    constants: Sequence[Any],
    load_general: Callable[[KernelSource], NativeCall],
) -> NativeCall:
    """The stub for a kernel on a device, which returns NumPy scalars and arrays of the device's.

    constants: those of the source as it takes them. load_general: loads the general version of a kernel that assumes
    something of sizes.
    """
    stub = make_stub(replace(source, constants=tuple(constants)), entry, True, load_general, int64=True)
    if hasattr(stub, "kernel"):
        del stub.kernel  # machine code can't call it
    return stub


def make_stub(
    source: KernelSource,
    entry: Callable[..., Any],
    gives_numpy: bool,
    load_general: Callable[[KernelSource], NativeCall] | None = None,
    int64: bool = False,
    bits: bool = False,
) -> NativeCall:
    """The stub for an entry point. gives_numpy: it returns NumPy scalars, except for int64, which is Python's int
    unless `int64` says so. bits: it takes and returns the bits of float16 and bfloat16. load_general: see
    `make_device_stub`."""
    stub = _Stub(source, entry, gives_numpy, int64, bits)
    code = stub.text(load_general or load)
    exec(_code(code, source.name), stub.space)
    call = stub.space["call"]
    if stub.borrowed is not None:
        call = _with_streams(call, stub.borrowed, stub.space.get("general"))
    elif gives_numpy:
        call.kernel = Kernel(source, entry)
    calls = [each for each in source.constants if isinstance(each, CallOut) and each.node is not None]
    return watched(call, calls) if calls else call


class _Stub:
    """The text of a stub, and in `space` the objects that it names."""

    def __init__(
        self, source: KernelSource, entry: Callable[..., Any], gives_numpy: bool, int64: bool, bits: bool
    ) -> None:  # fmt: skip
        record = record_of(source)
        timed = profiling.timed("kernel", source.name, entry, kernel="" if record is None else record.name)
        self.source = source
        self.how = gives_numpy, int64, bits
        self.bits = bits
        self.borrowed: Borrowed | None = None
        self.space: dict[str, Any] = {
            "entry": entry, "timed": timed, "contiguous": _contiguous, "Stack": Stack, "Store": Store,
            "uint16": np.uint16, "profiling": profiling,
        }  # fmt: skip
        self.names = [f"a{i}" for i in range(len(source.inputs))]

    def text(self, load_general: Callable[[KernelSource], NativeCall]) -> str:
        passed = self.passed()
        targets, results = self.results()
        kept, commits = self.commits()
        targets += kept
        parameters = "arguments" if self.borrowed is None else "arguments, streams"
        lines = [f"def call({parameters}):"]
        if self.names:
            lines.append(f"    {', '.join(self.names)}{',' if len(self.names) == 1 else ''} = arguments")
        call = f"(entry if not profiling.recording else timed)({', '.join(passed)})"
        if targets:
            # An interrupt while numba boxes the results arrives as a SystemError.
            lines += ["    try:", "        results = " + call, "    except SystemError as error:"]
            lines += ["        raise error.__cause__ or error from None", "    except MemoryError as error:"]
            lines += ["        raise out_of_memory(error) from None"]
            self.space["out_of_memory"] = self.source.out_of_memory
            call = "results"
        if self.source.errors:
            details = [f"d{i}" for i in range(self.source.details)]
            lines.append(f"    {', '.join(['status', *details, *targets])} = {call}")
            lines += [*commits, *self.failures(parameters, details, load_general)]
        else:
            lines.append(f"    {', '.join(targets)} = {call}" if targets else f"    {call}")
            lines += commits
        lines.append(f"    return [{', '.join(results)}]")
        return "\n".join(lines)

    def passed(self) -> list[str]:
        """The arguments of the kernel."""
        found: list[str] = []
        for name, slot in zip(self.names, self.source.inputs):
            found += _argument(name, slot, self.space, self.bits)
        for index, constant in enumerate(self.source.constants):
            if isinstance(constant, ThreadCount):
                self.space["thread_count"] = thread_count
                found.append("thread_count()")
            elif isinstance(constant, Borrowed):
                self.borrowed = constant
                found.append("streams")
            else:
                is_narrow = self.bits and isinstance(constant, np.ndarray) and constant.dtype in NARROW
                self.space[f"c{index}"] = constant.view(np.uint16) if is_narrow else argument(constant)
                found.append(f"c{index}")
        return found

    def results(self) -> tuple[list[str], list[str]]:
        """The names for what the kernel returns, and the expressions of the outputs."""
        targets: list[str] = []
        results: list[str] = []
        for index, slot in enumerate(self.source.outputs):
            if index in self.source.passed:
                results.append(self.names[self.source.passed[index]])
                continue
            parts, text = _result(index, slot, self.space, *self.how)
            targets += parts
            results.append(text)
        return targets, results

    def commits(self) -> tuple[list[str], list[str]]:
        """The names for what the kernel has kept for variables, and the statements that assign it to them. These also
        run without an error: the kernel may be part of a graph that fails later."""
        targets: list[str] = []
        lines: list[str] = []
        for index, (variable, slot) in enumerate(self.source.kept.items()):
            self.space[f"variable{index}"], self.space["commit"] = variable, commit
            targets += [f"set{index}", f"kept{index}"]
            value = _result(index, slot, self.space, *self.how, "kept")[1]
            lines += [f"    if set{index}:", f"        commit({value}, variable{index})"]
        return targets, lines

    def failures(
        self, parameters: str, details: Sequence[str], load_general: Callable[[KernelSource], NativeCall]
    ) -> list[str]:  # fmt: skip
        """The statements that raise the error of a status, or pass the call to the general version of the kernel."""
        source, lines = self.source, []
        if source.unfit is not None:
            elsewhere = "general(arguments)" if self.borrowed is None else "None"
            lines += [f"    if status == {source.unfit}:", f"        return {elsewhere}"]
            self.space["general"] = _General(source, load_general)
        self.space["failure"] = lambda status, details: failure(source, status, details)
        return [
            *lines,
            "    if status:",
            f"        error = failure(status, ({''.join(d + ', ' for d in details)}))",
            "        if error is None:",
            f"            return call({parameters})",
            "        raise error",
        ]


@functools.lru_cache(256)
def _code(text: str, name: str) -> CodeType:
    """A stub's code, compiled once for all kernels with such a stub: the parts of a graph need few different ones."""
    # Named after this file, so that tracebacks leave the stub out like the rest of the project.
    return compile(text, f"{__file__}: call of {name}", "exec")


class _General:
    """The general version of a kernel that assumes something of sizes, compiled when a call doesn't fit it."""

    def __init__(self, source: KernelSource, load_it: Callable[[KernelSource], NativeCall]) -> None:
        self._source, self._load = source, load_it
        self._lock = threading.Lock()
        self._call: NativeCall | None = None

    def __call__(self, arguments: Sequence[Any]) -> list[Any]:
        call = self._call
        if call is None:
            with self._lock:
                if self._call is None:
                    assert self._source.general is not None
                    self._call = self._load(self._source.general())
                call = self._call
        return call(arguments)


def _with_streams(call: Callable[..., Any], borrowed: Borrowed, general: _General | None) -> NativeCall:
    """The stub of a kernel that draws random numbers. It is never a fast call, which can't lock streams. Numbers drawn
    before a size was found not to fit are drawn again."""

    def drawing(arguments: Sequence[Any]) -> list[Any]:
        with borrowed.lent() as streams:
            start = None if general is None else streams.copy()
            results = call(arguments, streams)
            if results is None:
                streams[:] = start
        return results if results is not None or general is None else general(arguments)

    # Why there is no fast call, for `explain`.
    drawing.by_python = "since it lends the streams of its random numbers"  # type: ignore[attr-defined]
    return drawing


@dataclass(frozen=True)
class Kernel:
    """What a stub calls, for `engine/fastcall/inline_cache.py`: the stub's attribute `kernel`."""

    source: KernelSource
    entry: Callable[..., Any]


def failure(source: KernelSource, status: int, details: Sequence[int]) -> Exception | None:
    """The exception of a kernel's status; None for Ctrl-C if the user's handler returned: the kernel runs again."""
    return source.errors[status - 1].exception(details)


def _argument(name: str, slot: Slot, space: dict[str, Any], bits: bool) -> list[str]:
    """The expressions of what the kernel takes for an input. bits: of floats of 16 bits these."""
    if slot.kind == "token":
        return []
    assert slot.dtype is not None
    view = ".view(uint16)" if bits and slot.dtype.is_narrow else ""
    if slot.kind == "scalar":
        if not slot.dtype.is_narrow:
            return [name]
        space["ndarray"] = np.ndarray
        return [f"({name}[()] if {name}.__class__ is ndarray else {name}){view}"]
    if slot.kind == "stack":
        parts = [f"{name}.store.data{view}", f"{name}.top"]
        return [*parts, f"{name}.store.dims", f"{name}.dims_top"] if slot.rank else parts
    dtype = f"np_{slot.dtype.name}"
    space[dtype] = slot.dtype.np
    given = f"({name} if {name}.flags.c_contiguous and {name}.dtype is {dtype} else contiguous({name}, {dtype}))"
    return [given + view]


def _result(
    index: int, slot: Slot, space: dict[str, Any], gives_numpy: bool, int64: bool, bits: bool, base: str = "r"
) -> tuple[list[str], str]:
    """The names that a kernel's result is unpacked to, and the expression of the output."""
    name = f"{base}{index}"
    if slot.kind == "token":
        return [], "None"
    assert slot.dtype is not None
    view = ""
    if bits and slot.dtype.is_narrow:
        space[f"np_{slot.dtype.name}"] = slot.dtype.np
        view = f".view(np_{slot.dtype.name})"
    if slot.kind == "array":
        return [name], name + view
    if slot.kind == "scalar":
        if gives_numpy and (int64 or slot.dtype.name != "int64"):
            return [name], name
        kind = "to_uint16" if view else f"to_{slot.dtype.name}"
        space[kind] = np.uint16 if view else slot.dtype.np.type
        return [name], f"{kind}({name}){view}"
    # The buffers may belong to an argument, so a later push must copy: the store says that it is shared.
    if slot.rank:
        parts = [f"{name}_data", f"{name}_top", f"{name}_dims", f"{name}_dims_top"]
        size = f"{parts[3]} // {slot.rank}"
        stack = f"Stack(Store({parts[0]}{view}, {parts[2]}, -1, -1), {parts[1]}, {parts[3]}, {slot.rank}, {size})"
        return parts, stack
    space["no_dims"] = np.empty(0, np.int64)
    stack = f"Stack(Store({name}_data{view}, no_dims, -1, -1), {name}_top, 0, 0, {name}_top)"
    return [f"{name}_data", f"{name}_top"], stack


def _contiguous(array: Any, dtype: np.dtype) -> np.ndarray:
    with profiling.span("copy", "copy of an argument", bytes=array.nbytes):
        return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED"])
