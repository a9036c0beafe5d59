"""Shortcuts: calls of settled functions in machine code, from the user's tensors to a kernel and back.

    f(x)  →  is x a float32 tensor of shape (3,)? is no tape open?  →  kernel(array of x)  →  tensor

In Python these few questions take ten times as long as in machine code, and longer than many kernels. A shortcut knows
the calls that a function has had (`Plan`); with anything else it calls what it is told to. The machine code
(`engine/fastcall/entry_code.py`) is made once, by the background compiler, and kept with the kernels.
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
from runtime.codegen.kernel.source import KernelSource
from runtime.codegen.passes.parallelize import ThreadCount, thread_count
from runtime.engine import background, settings
from runtime.engine.fastcall import entry_code
from runtime.engine.fastcall import plan_encoding as code
from runtime.tensor import EagerTensor
from runtime.tracebacks import warn

NOTHING = object()  # what makes None of a list of no tensors
_MOST_INPUTS = 1 << 10  # that fit on a thread's stack


class Words:
    """Words of a plan, and the objects that they name."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.kept: list[Any] = []

    def number(self, *values: int) -> None:
        self.words += values

    def object(self, *values: Any) -> None:
        for value in values:
            self.words.append(id(value))
            self.kept.append(value)

    def add(self, other: Words) -> None:
        self.words += other.words
        self.kept += other.kept


class Description:
    """What a call must be like for a plan: its arguments, and what the trace has baked in.

    `same`, `tensor`, `sequence` and `dictionary` describe the next thing; items follow what they are in. `tensors` are
    those described.
    """

    def __init__(self, count: int, names: Sequence[str] = ()) -> None:
        """count: of arguments by position, which come first; names: of the others."""
        self.names = tuple(names)
        self.arguments = Words()
        self.arguments.number(count, len(self.names))
        self.arguments.object(*self.names)
        self.guards = Words()
        self.locks = Words()
        self.variables = Words()
        self.variable_count = 0
        self.tensors: list[EagerTensor] = []
        self._guard_count = 0

    def same(self, thing: Any) -> None:
        """The very same object."""
        self.arguments.number(code.OBJECT)
        self.arguments.object(thing)

    def tensor(self, tensor: EagerTensor, shape: Sequence[int | None]) -> bool:
        """A tensor like this one but for dimensions that are None in `shape`; False for one that no kernel takes."""
        if not _is_plain(tensor._array, tensor.dtype):
            return False
        _value(self.arguments, tensor._array, shape, tensor.dtype)
        self.tensors.append(tensor)
        return True

    def variable(self, variable: Any, attribute: str) -> bool:
        """A variable's value, with any sizes where the variable leaves them open, and which a kernel takes after the
        tensors; False for one that none takes."""
        value = getattr(variable, attribute)
        if not _is_plain(value, variable.dtype) or variable._shape is None:
            return False
        self.variable_count += 1
        self.variables.number(code.ATTRIBUTE)
        self.variables.object(variable, attribute)
        _value(self.variables, value, variable._shape)
        return True

    def lock(self, lock: Any) -> None:
        """What is held while the variables are read, used and assigned."""
        self.locks.object(lock.acquire, lock.release)

    def sequence(self, kind: type, count: int) -> None:
        """A list, a tuple or a named tuple of exactly that type."""
        self.arguments.number(code.LIST if kind is list else code.TUPLE)
        if kind is not list:
            self.arguments.object(kind)
        self.arguments.number(count)

    def dictionary(self, count: int) -> None:
        self.arguments.number(code.DICT, count)

    def key(self, name: str) -> None:
        self.arguments.object(name)

    def asked(self, function: Callable[[], bool]) -> None:
        """What a function says must be true."""
        self._guard_count += 1
        self.guards.number(code.ASKED)
        self.guards.object(function)

    def guard(self, holder: Any, key: str | None, value: Any) -> None:
        """The value that a dictionary has at a key, or a cell (then the key is None)."""
        self._guard_count += 1
        if key is None:
            self.guards.number(code.IN_CELL)
            self.guards.object(holder, value)
        else:
            self.guards.number(code.IN_DICTIONARY)
            self.guards.object(holder, key, value)

    def words(self) -> Words:
        found = Words()
        found.add(self.arguments)
        found.number(self._guard_count)
        found.add(self.guards)
        found.number(len(self.locks.words) // 2)
        found.add(self.locks)
        found.number(self.variable_count)
        found.add(self.variables)
        return found


def _is_plain(value: Any, dtype: Any) -> bool:
    """Whether kernels take a value as it is."""
    if isinstance(value, np.generic):
        return True
    return type(value) is np.ndarray and value.dtype is dtype.np and bool(value.ndim) and value.flags.c_contiguous


def _value(words: Words, value: Any, shape: Sequence[int | None], *dtype: Any) -> None:
    if isinstance(value, np.generic):
        words.number(code.SCALAR)
        words.object(type(value), *dtype)
    else:
        words.number(code.ARRAY)
        words.object(value.dtype, *dtype)
        words.number(value.ndim, *(-1 if size is None else size for size in shape))


class Plan:
    """One kind of call: how it is recognised, which kernel it runs, what its result is made of."""

    def __init__(self, words: Words, values: int, inputs: int) -> None:
        self.words = words
        self.values = values
        self.inputs = inputs


def plan(
    kernel: Kernel,
    description: Description,
    order: Sequence[int],
    extra: Sequence[Any],
    dtypes_: Sequence[Any],
    written: Sequence[Callable[[Any], None]],
    pack: Any,
    otherwise: Callable[..., Any],
    raising: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Plan | None:
    """The plan for calls that fit the description; None for a kernel that takes or gives more than tensors.

    order: which of the description's tensors the kernel takes first, second and so on. extra: what it takes after them,
    before the variables. dtypes_: of its results. written: what the last of these are given to, not as tensors. pack:
    makes the call's result of a list of tensors; None for a single tensor, `tuple` for a tuple of them, NOTHING for
    None. otherwise: the call in Python. raising: makes a function that raises the kernel's errors one whose errors are
    as the user should see them.
    """
    source, tensors = kernel.source, len(description.tensors) + description.variable_count
    variables = range(len(description.tensors), tensors)
    places = [*order, *[None] * len(extra), *variables]
    leading = (1 + source.details) if source.errors else 0
    inputs, outputs = _inputs(source, places, extra), _outputs(source, places, dtypes_, written, leading)
    if inputs is None or outputs is None or source.kept:
        return None
    (input_words, input_count), (output_words, results) = inputs, outputs
    if input_count > _MOST_INPUTS or tensors > _MOST_INPUTS:
        return None
    in_tuple = leading + results > 1
    status = code.NO_STATUS if not source.errors else code.STATUS if in_tuple else code.ONLY_STATUS
    form = code.ONE if pack is None else code.SEVERAL if pack is tuple else code.PACKED
    form = code.NOTHING if pack is NOTHING else form
    body = Words()
    body.number(_address(kernel.entry), input_count, len(dtypes_), status, form + (code.IN_TUPLE if in_tuple else 0))
    body.kept.append(kernel.entry)
    failed, no_memory = _failed(source, otherwise, description.names), functools.partial(_no_memory, source)
    body.object(pack, raising(failed), raising(no_memory))
    body.number(len(dtypes_) - len(written))
    body.add(description.words())
    body.add(input_words)
    body.add(output_words)
    words = Words()
    words.number(1 + len(body.words))
    words.add(body)
    return Plan(words, tensors, input_count)


def _inputs(source: KernelSource, places: Sequence[int | None], extra: Sequence[Any]) -> tuple[Words, int] | None:
    words, count = Words(), 0
    given = iter(extra)
    for index, slot in enumerate(source.inputs):
        place = places[index] if index < len(places) else None
        value = next(given, None) if place is None else None
        if slot.kind == "token":
            continue
        if slot.kind not in ("scalar", "array"):
            return None
        if place is not None:
            words.number(code.TENSOR_INPUT, place)
        else:
            assert slot.dtype is not None
            words.number(code.OBJECT_INPUT)
            words.object(value if slot.kind == "scalar" else np.require(value, slot.dtype.np, ["C", "A"]))
        count += 1
    for constant in source.constants:
        words.number(code.CALLED_INPUT if isinstance(constant, ThreadCount) else code.OBJECT_INPUT)
        words.object(thread_count if isinstance(constant, ThreadCount) else constant)
        count += 1
    return words, count


def _outputs(
    source: KernelSource, places: Sequence[int | None], dtypes_: Sequence[Any], written: Sequence[Any], leading: int
) -> tuple[Words, int] | None:
    """leading: how many of the kernel's results come before the graph's."""
    words, count = Words(), 0
    first_written = len(dtypes_) - len(written)
    if len(source.outputs) != len(dtypes_):
        return None
    for index, (slot, dtype) in enumerate(zip(source.outputs, dtypes_)):
        is_written = index >= first_written
        if slot.kind not in ("scalar", "array"):
            return None
        if index in source.passed:
            kind, place = code.ARGUMENT, places[source.passed[index]]
            if place is None:
                return None
        else:
            integer = slot.kind == "scalar" and slot.dtype is dtypes.int64
            kind, place = code.INTEGER if integer else code.RESULT, leading + count
            count += 1
        words.number(kind + (code.ASSIGNED if is_written else 0), place)
        words.object(written[index - first_written] if is_written else dtype)
    return words, count


def _failed(source: KernelSource, otherwise: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    def failed(result: Any, *args: Any) -> Any:
        status, details = (result[0], result[1 : 1 + source.details]) if isinstance(result, tuple) else (result, ())
        error = failure(source, status, details)
        if error is None:
            count = len(args) - len(names)
            return otherwise(*args[:count], **dict(zip(names, args[count:])))
        raise error from None

    return failed


def _no_memory(source: KernelSource) -> Any:
    raise source.out_of_memory(MemoryError()) from None


def _address(entry: Callable[..., Any]) -> int:
    find = ctypes.pythonapi.PyCFunction_GetFunction
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.py_object]
    return int(find(entry))


# --- the machine code ------------------------------------------------------------------------------------------------


class _Maker:
    """The machine code, asked for once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requested = False
        self.make: Callable[[tuple], Callable[..., Any]] | None = None

    def request(self) -> None:
        """Has it made in the background. Where that fails, which a warning says, calls stay as they are."""
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
        """Makes it now."""
        with compiling:
            if self.make is None:
                self.make = entry_code.methods()


_maker = _Maker()


def ready() -> bool:
    """Whether shortcuts can be made; asked for the first time, it sees to it."""
    if _maker.make is None:
        _maker.request()
        return False
    return True


def prepare() -> bool:
    """Sees to it now; False where there is no machine code for it."""
    _maker.prepare()
    return _maker.make is not None


def function(plans: Sequence[Plan], otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """What takes calls that fit a plan, and has all others answered by `otherwise`."""
    words = Words()
    words.object(otherwise)
    words.number(max(p.values for p in plans), max(p.inputs for p in plans), len(plans))
    for each in plans:
        words.add(each.words)
    assert _maker.make is not None
    return _maker.make((struct.pack(f"{len(words.words)}q", *words.words), *words.kept))
