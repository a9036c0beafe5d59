"""Shortcuts: calls of settled functions in machine code, from the user's tensors to a kernel and back.

    f(x)  →  is x a float32 tensor of shape (3,)? is no tape open?  →  kernel(array of x)  →  tensor

In Python these few questions take ten times as long as in machine code, and longer than many kernels. A shortcut knows
the calls that a function has had (`Plan`); with anything else it calls what it is told to. The machine code
(`codegen/shortcut_code.py`) is made once, by the background compiler, and kept with the kernels.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.codegen import shortcut_code
from runtime.codegen import shortcut_words as code
from runtime.codegen.compile import compiling
from runtime.codegen.native import Kernel, failure
from runtime.codegen.source import KernelSource
from runtime.codegen.threads import ThreadCount, thread_count
from runtime.engine import background, settings
from runtime.tensor import EagerTensor

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
        self.tensors: list[EagerTensor] = []
        self._guard_count = 0

    def same(self, thing: Any) -> None:
        """The very same object."""
        self.arguments.number(code.OBJECT)
        self.arguments.object(thing)

    def tensor(self, tensor: EagerTensor, shape: Sequence[int | None]) -> bool:
        """A tensor like this one but for dimensions that are None in `shape`; False for one that no kernel takes."""
        value, dtype = tensor._array, tensor.dtype
        if isinstance(value, np.generic):
            self.arguments.number(code.SCALAR)
            self.arguments.object(type(value), dtype)
        elif type(value) is np.ndarray and value.dtype is dtype.np and value.ndim and value.flags.c_contiguous:
            self.arguments.number(code.ARRAY)
            self.arguments.object(value.dtype, dtype)
            self.arguments.number(value.ndim, *(-1 if size is None else size for size in shape))
        else:
            return False
        self.tensors.append(tensor)
        return True

    def sequence(self, kind: type, count: int) -> None:
        self.arguments.number(code.TUPLE if kind is tuple else code.LIST, count)

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
        return found


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
    pack: Callable[[list[Any]], Any] | None,
    otherwise: Callable[..., Any],
    raising: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Plan | None:
    """The plan for calls that fit the description; None for a kernel that takes or gives more than tensors.

    order: which of the description's tensors the kernel takes first, second and so on. extra: what it takes after them.
    dtypes_: of its results. pack: makes the call's result of a list of tensors; None for a single tensor, `tuple` for a
    tuple of them. otherwise: the call in Python. raising: makes a function that raises the kernel's errors one whose
    errors are as the user should see them.
    """
    source, tensors = kernel.source, len(description.tensors)
    inputs = _inputs(source, order, extra)
    outputs = _outputs(source, order, dtypes_)
    if inputs is None or outputs is None or source.kept:
        return None
    (input_words, input_count), (output_words, results) = inputs, outputs
    if input_count > _MOST_INPUTS or tensors > _MOST_INPUTS:
        return None
    leading = (1 + source.details) if source.errors else 0
    in_tuple = leading + results > 1
    status = code.NO_STATUS if not source.errors else code.STATUS if in_tuple else code.ONLY_STATUS
    form = code.ONE if pack is None else code.SEVERAL if pack is tuple else code.PACKED
    body = Words()
    body.number(_address(kernel.entry), input_count, len(dtypes_), status, form + (code.IN_TUPLE if in_tuple else 0))
    body.kept.append(kernel.entry)
    body.object(
        pack, raising(_failed(source, otherwise, description.names)), raising(functools.partial(_no_memory, source))
    )
    body.add(description.words())
    body.add(input_words)
    body.add(output_words)
    words = Words()
    words.number(1 + len(body.words))
    words.add(body)
    return Plan(words, tensors, input_count)


def _inputs(source: KernelSource, order: Sequence[int], extra: Sequence[Any]) -> tuple[Words, int] | None:
    words, count = Words(), 0
    for index, slot in enumerate(source.inputs):
        if slot.kind == "token":
            continue
        if slot.kind not in ("scalar", "array"):
            return None
        if index < len(order):
            words.number(code.TENSOR_INPUT, order[index])
        else:
            value = extra[index - len(order)]
            assert slot.dtype is not None
            words.number(code.OBJECT_INPUT)
            words.object(value if slot.kind == "scalar" else np.require(value, slot.dtype.np, ["C", "A"]))
        count += 1
    for constant in source.constants:
        words.number(code.CALLED_INPUT if isinstance(constant, ThreadCount) else code.OBJECT_INPUT)
        words.object(thread_count if isinstance(constant, ThreadCount) else constant)
        count += 1
    return words, count


def _outputs(source: KernelSource, order: Sequence[int], dtypes_: Sequence[Any]) -> tuple[Words, int] | None:
    words, count = Words(), 0
    leading = (1 + source.details) if source.errors else 0
    for index, (slot, dtype) in enumerate(zip(source.outputs, dtypes_, strict=True)):
        if slot.kind not in ("scalar", "array"):
            return None
        if index in source.passed:
            if source.passed[index] >= len(order):
                return None
            words.number(code.ARGUMENT, order[source.passed[index]])
        else:
            integer = slot.kind == "scalar" and slot.dtype is dtypes.int64
            words.number(code.INTEGER if integer else code.RESULT, leading + count)
            count += 1
        words.object(dtype)
    return words, count


def _failed(source: KernelSource, otherwise: Callable[..., Any], names: Sequence[str]) -> Callable[..., Any]:
    def failed(result: Any, *args: Any) -> Any:
        status, details = (result[0], result[1 : 1 + source.details]) if isinstance(result, tuple) else (result, ())
        error = failure(source, status, details)
        if error is None:
            count = len(args) - len(names)
            return otherwise(*args[:count], **dict(zip(names, args[count:])))
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
            warnings.warn(
                f"the machine code that answers calls of compiled functions could not be made ({error}); they are "
                "answered in Python, some microseconds later",
                errors.CompilationWarning,
                stacklevel=2,
            )

    def prepare(self) -> None:
        """Makes it now."""
        with compiling:
            if self.make is None:
                self.make = shortcut_code.methods()


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
