"""Where Python's and NumPy's objects keep their fields, found by looking at live objects of this process.

CPython's object layouts differ between versions and builds: since 3.14, the items of a tuple stand 8 bytes further. So
no offset is written down. Each one is the only place at which several objects hold what they are known to hold. A field
that isn't found is None, and machine code calls a function of the C API instead (`python_objects.py`), which takes
longer and is as right. It takes half a millisecond, once in a process.

`AUTOGRAPH_UNKNOWN_LAYOUTS` names kinds of objects whose fields are treated as not found (`tuple,array`, or `all`).
Tests use it, and it is the way out where a layout has been found wrongly.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CellType
from typing import Any, NamedTuple

import ml_dtypes  # noqa: F401  (from here on NumPy knows bfloat16)
import numpy as np

from runtime.interpreter import IS_FREE_THREADED, named_in
from runtime.kernel_ir.types import SCALARS

KINDS = ("object", "tuple", "list", "bytes", "cell", "number", "array", "slot")
VARIABLE = "AUTOGRAPH_UNKNOWN_LAYOUTS"
_WORD = ctypes.sizeof(ctypes.c_void_p)
_LOWEST = 1 << 16  # no object stands below this address


class Items(NamedTuple):
    """Where a tuple or list has its length and its items (a list: the pointer to them)."""

    length: int
    items: int


class ArrayFields(NamedTuple):
    """Where a NumPy array has the address of its elements, its rank (32 bits), the pointer to its sizes, its dtype and
    its flags (32 bits)."""

    data: int
    rank: int
    sizes: int
    dtype: int
    flags: int


class Layouts(NamedTuple):
    """Offsets of fields in bytes; None where one isn't known.

    type     the class of any object
    tuple    length and items
    list     length and the pointer to the items
    bytes    the first byte of a bytes object
    cell     the content of a closure's cell
    number   the value of NumPy's scalars
    array    the fields of a NumPy array
    """

    type: int | None = None
    tuple: Items | None = None
    list: Items | None = None
    bytes: int | None = None
    cell: int | None = None
    number: int | None = None
    array: ArrayFields | None = None


class ArrayInterface(ctypes.Structure):
    """The struct behind `__array_struct__`, by NumPy's array interface protocol: documented, and the same in all
    versions."""

    _fields_ = [
        ("two", ctypes.c_int), ("rank", ctypes.c_int), ("kind", ctypes.c_char), ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int), ("sizes", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("data", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
    ]  # fmt: skip


@functools.cache
def known() -> Layouts:
    """The layouts of this process."""
    unknown = _unknown()
    finders: dict[str, tuple[str, Callable[[], Any]]] = {
        "object": ("type", _of_type),
        "tuple": ("tuple", _of_tuples),
        "list": ("list", _of_lists),
        "bytes": ("bytes", _of_bytes),
        "cell": ("cell", _of_cells),
        "number": ("number", _of_numbers),
        "array": ("array", _of_arrays),
    }
    return Layouts(**{field: find() for kind, (field, find) in finders.items() if kind not in unknown})


def _unknown() -> set[str]:
    """The kinds of objects that aren't looked at."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little":
        return set(KINDS)  # elsewhere `id` needn't be an address
    # Without the lock, another thread may move the items of a list while they are read.
    unsafe = {"list"} if IS_FREE_THREADED else set()
    return named_in(VARIABLE, KINDS, "kinds") | unsafe


def slot(class_: type, name: str) -> int | None:
    """Where instances of a class have the attribute of one of its `__slots__`."""
    if "slot" in _unknown():
        return None
    instances: list[Any] = [object.__new__(class_) for _ in range(2)]
    marks = [object(), object()]
    for instance, mark in zip(instances, marks):
        setattr(instance, name, mark)
    return _only(_common((each, class_.__basicsize__, _address(mark)) for each, mark in zip(instances, marks)))


# --- one kind of object each -----------------------------------------------------------------------------------------


def _of_type() -> int | None:
    samples = [object(), 2.5, (), b"", np.float32(1)]
    return _only(_common((obj, type(obj).__basicsize__, _address(type(obj))) for obj in samples))


def _of_tuples() -> Items | None:
    marks = [object() for _ in range(5)]
    samples = [tuple(marks), tuple(marks[2:])]
    length = _only(_common((each, tuple.__basicsize__, len(each)) for each in samples))
    items = _only(_common((each, tuple.__basicsize__ + len(each) * _WORD, _addresses(each)) for each in samples))
    return None if length is None or items is None else Items(length, items)


def _of_lists() -> Items | None:
    marks = [object() for _ in range(5)]
    samples = [marks[:], marks[2:]]
    samples[0].pop()  # now it has room for more items than it has: a list holds both numbers
    length = _only(_common((obj, list.__basicsize__, len(obj)) for obj in samples))
    items = _pointer([], [(each, list.__basicsize__, _addresses(each)) for each in samples])
    return None if length is None or items is None else Items(length, items)


def _of_bytes() -> int | None:
    samples = [b"autograph looks for this", b"and then looks for that"]
    # Its basic size counts the zero byte at the end.
    found = {_memory(each, bytes.__basicsize__ - 1 + len(each)).find(each) for each in samples}
    return None if -1 in found else _only(found)


def _of_cells() -> int | None:
    marks = [object(), object()]
    return _only(_common((CellType(mark), CellType.__basicsize__, _address(mark)) for mark in marks))


def _of_numbers() -> int | None:
    """One offset for the scalars of all dtypes, or none."""
    wide: list[Any] = [np.int64(0x0123456789ABCDEF), np.float64(-1.2345678901), np.uint64(0xFEDCBA9876543210)]
    offset = _only(_common((each, type(each).__basicsize__, each.tobytes()) for each in wide))
    if offset is None:
        return None
    for name in sorted({scalar.name for scalar in SCALARS.values()}):
        each = np.dtype(name).type(77)
        held = each.tobytes()
        if not _memory(each, type(each).__basicsize__).startswith(held, offset):
            return None
    return offset


def _of_arrays() -> ArrayFields | None:
    samples: list[Any] = [np.ones((2, 3), np.int16), np.ones((3, 4, 5), np.float32), np.ones(7)]
    samples[1].flags.writeable = False
    size = np.ndarray.__basicsize__
    data = _only(_common((each, size, each.__array_interface__["data"][0]) for each in samples))
    dtype = _only(_common((each, size, _address(each.dtype)) for each in samples))
    rank = _only(_common(((each, size, each.ndim) for each in samples), width=4))
    flags = _only(_common(((each, size, each.flags.num) for each in samples), width=4))
    sizes = _pointer(np.zeros(()), [(each, size, each.shape) for each in samples])
    if data is None or dtype is None or rank is None or flags is None or sizes is None:
        return None
    return ArrayFields(data, rank, sizes, dtype, flags)


# --- looking at memory -----------------------------------------------------------------------------------------------


def _address(obj: Any) -> bytes:
    return id(obj).to_bytes(_WORD, "little")


def _addresses(objects: Sequence[Any]) -> bytes:
    return b"".join(map(_address, objects))


def _memory(obj: Any, size: int) -> bytes:
    """The first bytes of an object, which has at least so many."""
    return ctypes.string_at(id(obj), size)


def _common(samples: Iterable[tuple[Any, int, int | bytes]], width: int = _WORD) -> set[int]:
    """The offsets at which each object, of which so many bytes are looked at, holds its value: bytes, or an integer of
    `width` bytes."""
    common: set[int] | None = None
    for obj, size, value in samples:
        memory = _memory(obj, size)
        wanted = value if isinstance(value, bytes) else value.to_bytes(width, "little")
        here = {at for at in range(0, len(memory) - len(wanted) + 1, width) if memory.startswith(wanted, at)}
        common = here if common is None else common & here
    return common or set()


def _only(offsets: set[int]) -> int | None:
    """The only one; None if there are none or several."""
    return next(iter(offsets)) if len(offsets) == 1 else None


def _pointer(empty: Any, samples: Sequence[tuple[Any, int, Sequence[int] | bytes]]) -> int | None:
    """The offset, in an object, of the pointer to a block of memory that holds these words. An object without a block
    has null at the offset: so pointers are told from numbers before any is followed."""
    size = samples[0][1]
    memory = _memory(empty, size)
    candidates = {at for at in range(0, len(memory) - _WORD + 1, _WORD) if not any(memory[at : at + _WORD])}
    for obj, size, words in samples:
        wanted = words if isinstance(words, bytes) else b"".join(each.to_bytes(_WORD, "little") for each in words)
        memory = _memory(obj, size)
        pointers = {at: int.from_bytes(memory[at : at + _WORD], "little") for at in candidates}
        candidates = {
            at
            for at, address in pointers.items()
            if address > _LOWEST and address % _WORD == 0 and ctypes.string_at(address, len(wanted)) == wanted
        }
    return _only(candidates)
