"""Inline caches: machine code that answers calls of compiled functions like earlier ones, without running Python.

    f(x)  →  is x a float32 tensor of shape (3,)? is no tape open?  →  kernel(array of x)  →  tensor

In Python these checks take ten times as long as in machine code, and longer than many kernels. A function's inline
cache holds a `Plan` for each kind of call seen so far, and passes all other calls to the fallback, `Function.__call__`.
The machine code (`entry_code.py`) is generic: it interprets plans encoded as in `plan_encoding.py`. It is compiled
once, by the background compiler, and cached with the kernels.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.codegen.backends.call_stub import Kernel, failure
from runtime.codegen.backends.driver import compiling
from runtime.codegen.kernel.call_outs import argument
from runtime.codegen.kernel.source import KernelSource
from runtime.codegen.passes.parallelize import ThreadCount, thread_count
from runtime.engine import background, settings
from runtime.engine.fastcall import entry_code
from runtime.engine.fastcall import plan_encoding as encoding
from runtime.interpreter import IS_FREE_THREADED
from runtime.tensor import EagerTensor
from runtime.tracebacks import warn

NOTHING = object()  # as `pack`: the call returns None
_MOST_INPUTS = 1 << 10  # whose addresses fit on a thread's stack


class Encoding:
    """A part of an encoded plan: 64-bit words, and references to the objects whose addresses are among them."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.references: list[Any] = []

    def put(self, *values: int) -> None:
        self.words += values

    def put_object(self, *values: Any) -> None:
        for value in values:
            self.words.append(id(value))
            self.references.append(value)

    def extend(self, other: Encoding) -> None:
        self.words += other.words
        self.references += other.references


class CallPattern:
    """The calls that a plan answers: their arguments, and the values that the trace depends on (guards).

    `object`, `tensor`, `sequence` and `dictionary` add the next argument or item, containers before their items.
    `tensors` are those added.
    """

    def __init__(self, count: int, names: Sequence[str] = ()) -> None:
        """count: the number of positional arguments, which come first; names: those of the keyword arguments."""
        self.names = tuple(names)
        self.arguments = Encoding()
        self.arguments.put(count, len(self.names))
        self.arguments.put_object(*self.names)
        self.guards = Encoding()
        self.locks = Encoding()
        self.variables = Encoding()
        self.variable_count = 0
        self.tensors: list[EagerTensor] = []
        self.is_mutable = False  # whether an argument is a list or a dictionary
        self._guard_count = 0

    def object(self, obj: Any) -> None:
        """An argument that is this very object."""
        self.arguments.put(encoding.OBJECT)
        self.arguments.put_object(obj)

    def tensor(self, tensor: EagerTensor, shape: Sequence[int | None]) -> bool:
        """A tensor of this dtype and of `shape`, None for any size; False if no kernel takes such a tensor."""
        if not _is_plain(tensor._array, tensor.dtype):
            return False
        _value(self.arguments, tensor._array, shape, tensor.dtype)
        self.tensors.append(tensor)
        return True

    def variable(self, variable: Any, attribute: str) -> bool:
        """A variable, whose value the kernel takes after the tensors; False if no kernel takes such a value."""
        value = getattr(variable, attribute)
        if not _is_plain(value, variable.dtype) or variable._shape is None:
            return False
        self.variable_count += 1
        self.variables.put(encoding.ATTRIBUTE)
        self.variables.put_object(variable, attribute)
        _value(self.variables, value, variable._shape)
        return True

    def lock(self, lock: Any) -> None:
        """A lock to hold while the variables are read, used and assigned."""
        self.locks.put_object(lock.acquire, lock.release)

    def sequence(self, kind: type, count: int) -> None:
        """A list, a tuple or a named tuple of exactly that type."""
        self.is_mutable |= kind is list
        self.arguments.put(encoding.LIST if kind is list else encoding.TUPLE)
        if kind is not list:
            self.arguments.put_object(kind)
        self.arguments.put(count)

    def dictionary(self, count: int) -> None:
        self.is_mutable = True
        self.arguments.put(encoding.DICT, count)

    def key(self, name: str) -> None:
        self.arguments.put_object(name)

    def guard_function(self, function: Callable[[], bool]) -> None:
        """A guard: the function must return True."""
        self._guard_count += 1
        self.guards.put(encoding.ASKED)
        self.guards.put_object(function)

    def guard(self, holder: Any, key: str | None, value: Any) -> None:
        """A guard: a dictionary must have this value at the key, or a cell (key None) must hold it."""
        self._guard_count += 1
        if key is None:
            self.guards.put(encoding.IN_CELL)
            self.guards.put_object(holder, value)
        else:
            self.guards.put(encoding.IN_DICTIONARY)
            self.guards.put_object(holder, key, value)

    def words(self) -> Encoding:
        found = Encoding()
        found.extend(self.arguments)
        found.put(self._guard_count)
        found.extend(self.guards)
        found.put(len(self.locks.words) // 2)
        found.extend(self.locks)
        found.put(self.variable_count)
        found.extend(self.variables)
        return found


def _is_plain(value: Any, dtype: Any) -> bool:
    """Whether kernels take a value without conversion."""
    if isinstance(value, np.generic):
        return True
    return type(value) is np.ndarray and value.dtype is dtype.np and bool(value.ndim) and value.flags.c_contiguous


def _value(words: Encoding, value: Any, shape: Sequence[int | None], *dtype: Any) -> None:
    if isinstance(value, np.generic):
        words.put(encoding.SCALAR)
        words.put_object(type(value), *dtype)
    else:
        words.put(encoding.ARRAY)
        words.put_object(value.dtype, *dtype)
        words.put(value.ndim, *(-1 if size is None else size for size in shape))


class Plan:
    """One kind of call: the pattern, the kernel and how the result is built, encoded."""

    def __init__(self, words: Encoding, values: int, inputs: int) -> None:
        self.words = words
        self.values = values
        self.inputs = inputs


def make_plan(
    kernel: Kernel,
    pattern: CallPattern,
    order: Sequence[int],
    extra: Sequence[Any],
    dtypes_: Sequence[Any],
    written: Sequence[Callable[[Any], None]],
    pack: Any,
    fallback: Callable[..., Any],
    raising: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Plan | None:
    """The plan for calls that match the pattern; None if the kernel takes or gives anything but tensors, or machine
    code can't check the arguments.

    order: the pattern's tensors in the order in which the kernel takes them. extra: its arguments after them, before
    the variables. dtypes_: of its results. written: functions to call with the last of these, which assign them to
    variables. pack: builds the call's result from a list of tensors; None for a single tensor, `tuple` for a tuple,
    NOTHING for None. fallback: the call in Python. raising: wraps a function so that its errors have no frames of this
    project.
    """
    if IS_FREE_THREADED and pattern.is_mutable:
        return None  # another thread may remove an item, and so free it, before the call has its own reference to it
    source, tensors = kernel.source, len(pattern.tensors) + pattern.variable_count
    variables = range(len(pattern.tensors), tensors)
    tensor_numbers = [*order, *[None] * len(extra), *variables]
    leading = (1 + source.details) if source.errors else 0
    inputs, outputs = (
        _inputs(source, tensor_numbers, extra),
        _outputs(source, tensor_numbers, dtypes_, written, leading),
    )
    if inputs is None or outputs is None or source.kept:
        return None
    (input_words, input_count), (output_words, results) = inputs, outputs
    if input_count > _MOST_INPUTS or tensors > _MOST_INPUTS:
        return None
    in_tuple = leading + results > 1
    status = encoding.NO_STATUS if not source.errors else encoding.STATUS if in_tuple else encoding.ONLY_STATUS
    result_kind = encoding.ONE if pack is None else encoding.SEVERAL if pack is tuple else encoding.PACKED
    result_kind = encoding.NOTHING if pack is NOTHING else result_kind
    body = Encoding()
    body.put(
        _address(kernel.entry), input_count, len(dtypes_), status, result_kind + (encoding.IN_TUPLE if in_tuple else 0)
    )
    body.references.append(kernel.entry)
    failed, no_memory = _failed(source, fallback, pattern.names), functools.partial(_no_memory, source)
    body.put_object(pack, raising(failed), raising(no_memory))
    body.put(len(dtypes_) - len(written))
    body.extend(pattern.words())
    body.extend(input_words)
    body.extend(output_words)
    words = Encoding()
    words.put(1 + len(body.words))
    words.extend(body)
    return Plan(words, tensors, input_count)


def _inputs(
    source: KernelSource, tensor_numbers: Sequence[int | None], extra: Sequence[Any]
) -> tuple[Encoding, int] | None:
    words, count = Encoding(), 0
    given = iter(extra)
    for index, slot in enumerate(source.inputs):
        number = tensor_numbers[index] if index < len(tensor_numbers) else None
        value = next(given, None) if number is None else None
        if slot.kind == "token":
            continue
        if slot.kind not in ("scalar", "array"):
            return None
        if number is not None:
            words.put(encoding.TENSOR_INPUT, number)
        else:
            assert slot.dtype is not None
            words.put(encoding.OBJECT_INPUT)
            words.put_object(value if slot.kind == "scalar" else np.require(value, slot.dtype.np, ["C", "A"]))
        count += 1
    for constant in source.constants:
        words.put(encoding.CALLED_INPUT if isinstance(constant, ThreadCount) else encoding.OBJECT_INPUT)
        words.put_object(thread_count if isinstance(constant, ThreadCount) else argument(constant))
        words.references.append(constant)
        count += 1
    return words, count


def _outputs(
    source: KernelSource,
    tensor_numbers: Sequence[int | None],
    dtypes_: Sequence[Any],
    written: Sequence[Any],
    leading: int,
) -> tuple[Encoding, int] | None:
    """leading: the number of the kernel's results (status, details) before those of the graph."""
    words, count = Encoding(), 0
    first_written = len(dtypes_) - len(written)
    if len(source.outputs) != len(dtypes_):
        return None
    for index, (slot, dtype) in enumerate(zip(source.outputs, dtypes_)):
        is_written = index >= first_written
        if slot.kind not in ("scalar", "array"):
            return None
        if index in source.passed:
            kind, number = encoding.ARGUMENT, tensor_numbers[source.passed[index]]
            if number is None:
                return None
        else:
            integer = slot.kind == "scalar" and slot.dtype is dtypes.int64
            kind, number = encoding.INTEGER if integer else encoding.RESULT, leading + count
            count += 1
        words.put(kind + (encoding.ASSIGNED if is_written else 0), number)
        words.put_object(written[index - first_written] if is_written else dtype)
    return words, count


def _failed(source: KernelSource, fallback: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    def failed(result: Any, *args: Any) -> Any:
        status, details = (result[0], result[1 : 1 + source.details]) if isinstance(result, tuple) else (result, ())
        error = failure(source, status, details)
        if error is None:
            count = len(args) - len(names)
            return fallback(*args[:count], **dict(zip(names, args[count:])))
        raise error

    return failed


def _no_memory(source: KernelSource) -> Any:
    raise source.out_of_memory(MemoryError()) from None


def _address(entry: Callable[..., Any]) -> int:
    find = ctypes.pythonapi.PyCFunction_GetFunction
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.py_object]
    return int(find(entry))


# --- the machine code ------------------------------------------------------------------------------------------------


class _Maker:
    """Compiles the machine code, once per process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requested = False
        self.make: Callable[[tuple], Callable[..., Any]] | None = None

    def request(self) -> None:
        """Compiles it in the background. If that fails, with a warning, calls are answered in Python."""
        with self._lock:
            is_first, self._requested = not self._requested, True
        if is_first:
            background.worker.submit(self._prepare_guarded)

    def _prepare_guarded(self) -> None:
        try:
            self.prepare()
        except Exception as error:
            if os.environ.get("AUTOGRAPH_STRICT") == "1":
                settings.note_background_error(error)
                return
            warn(
                f"the machine code that answers calls of compiled functions could not be made ({error}); they are "
                "answered in Python, some microseconds later",
                errors.CompilationWarning,
            )

    def prepare(self) -> None:
        """Compiles it now."""
        with compiling:
            if self.make is None:
                self.make = entry_code.methods()


_maker = _Maker()


def ready() -> bool:
    """Whether the machine code is there; requests it at the first call."""
    if _maker.make is None:
        _maker.request()
        return False
    return True


def prepare() -> bool:
    """Compiles the machine code now; False if this platform has none."""
    _maker.prepare()
    return _maker.make is not None


def make_function(plans: Sequence[Plan], fallback: Callable[..., Any]) -> Callable[..., Any]:
    """The function that answers calls by the plans, and calls `fallback` for all others."""
    words = Encoding()
    words.put_object(fallback)
    words.put(max(p.values for p in plans), max(p.inputs for p in plans), len(plans))
    for each in plans:
        words.extend(each.words)
    assert _maker.make is not None
    return _maker.make((struct.pack(f"{len(words.words)}q", *words.words), *words.references))
