"""The function that Python calls: it reads the arguments from Python objects, runs the kernel, and makes objects of the
results.

It reads the fields of NumPy's arrays and scalars directly; NumPy keeps their layout stable for compiled code. Arguments
must match the kernel's signature, and arrays must be contiguous; a wrong number, class or rank is a TypeError.

An int64 becomes an int, any other number a NumPy scalar. An array owns its memory through a capsule, or is a view of
the argument whose memory it shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.kernel_ir.types import BOOL, FLOAT64, INT64, Array, Scalar, Tuple, results
from runtime.llvm.function_text import FunctionText
from runtime.llvm.interrupts import SUPPORT as INTERRUPTED
from runtime.llvm.memory import SUPPORT as MEMORY
from runtime.llvm.writer import part_types

__all__ = ["INTERRUPTED", "MEMORY", "SUPPORT", "text"]

_MANY = 1 << 40  # the reference count of an argument, which never drops to zero
_FLAGS = 0x501  # NumPy's C_CONTIGUOUS, ALIGNED, WRITEABLE

# Offsets of fields in bytes: the type of any object; elements, rank and dimensions of an array; the value of a scalar;
# the items of a tuple.
_TYPE, _DATA, _RANK, _DIMS, _VALUE, _ITEMS = 8, 16, 24, 32, 16, 24

SUPPORT = f"""
declare ptr @PyErr_NoMemory()
declare ptr @PyErr_Occurred()
declare void @PyErr_SetString(ptr, ptr)
declare double @PyFloat_AsDouble(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare i64 @PyLong_AsUnsignedLongLongMask(ptr)
declare i32 @PyObject_IsTrue(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyTuple_New(i64)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare ptr @numpy_new_from_descr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @numpy_set_base_object(ptr, ptr)
@PyExc_TypeError = external global ptr
@numpy_array_type = external global i8
@numpy_true = external global i8
@numpy_false = external global i8
@wrong = private constant [33 x i8] c"wrong arguments for this kernel\\21\\00"

define internal void @release(ptr %capsule) nounwind {{
  %owner = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  call void @drop(ptr %owner)
  ret void
}}

define internal ptr @array_object(ptr %owner, ptr %data, ptr %dtype, i32 %rank, ptr %dims) noinline nounwind {{
  %place = getelementptr %owner, ptr %owner, i64 0, i32 1
  %given = load ptr, ptr %place
  %new = icmp eq ptr %given, null
  br i1 %new, label %capsule, label %argument
capsule:
  %made = call ptr @PyCapsule_New(ptr %owner, ptr null, ptr @release)
  br label %both
argument:
  call void @Py_IncRef(ptr %given)
  br label %both
both:
  %base = phi ptr [ %made, %capsule ], [ %given, %argument ]
  %failed = icmp eq ptr %base, null
  br i1 %failed, label %nothing, label %array
array:
  call void @Py_IncRef(ptr %dtype)
  %result = call ptr @numpy_new_from_descr(
    ptr @numpy_array_type, ptr %dtype, i32 %rank, ptr %dims, ptr null, ptr %data, i32 {_FLAGS}, ptr null
  )
  %missing = icmp eq ptr %result, null
  br i1 %missing, label %nothing, label %right
right:
  %set = call i32 @numpy_set_base_object(ptr %result, ptr %base)
  ret ptr %result
nothing:
  ret ptr null
}}
"""


class _Lines(FunctionText):
    """The wrapper being written."""

    temporaries, labels = "w", "c"

    def __init__(self) -> None:
        super().__init__()
        self.globals: dict[str, None] = {}

    def external(self, name: str) -> str:
        """The address of an object that the linker knows by name."""
        self.globals.setdefault(f"@{name} = external global i8")
        return f"@{name}"

    def field(self, place: str, offset: int, type_: str) -> str:
        return self.op(f"load {type_}, ptr {self.op(f'getelementptr i8, ptr {place}, i64 {offset}')}")

    def unless(self, condition: str, target: str) -> None:
        """Continues if the condition holds, else jumps to the target."""
        following = self.label()
        self.split(condition, following, target, ", !prof !1")
        self.begin(following)


def text(symbol: str, callee: Any, parameters: Sequence[Scalar | Array], releases: bool) -> str:
    """The C function for a kernel. releases: whether it releases the interpreter lock while the kernel runs."""
    w = _Lines()
    w.unless(w.op(f"icmp eq i64 %count, {len(parameters)}"), "bad")
    given: list[str] = []
    for position, type_ in enumerate(parameters):
        thing = w.field("%arguments", 8 * position, "ptr")
        if isinstance(type_, Array):
            given += _array(w, thing, type_)
        else:
            given.append(f"{type_.ir} {_number(w, thing, type_)}")
    result = callee.result
    items = results(result)
    types = part_types(result)
    lock = w.op("call ptr @PyEval_SaveThread()") if releases else None
    if callee.direct:
        called = f"{types[0] if types else 'void'} @{callee.symbol}({', '.join(given)})"
        found = [w.op(f"call {called}")] if types else []
        if not types:
            w.line(f"call {called}")
    else:
        places = [w.stack(type_, align=16) for type_ in types]
        outs = [f"ptr {place}" for place in places]
        status = w.op(f"call i32 @{callee.symbol}({', '.join([*given, *outs])})")
        found = []
    if lock:
        w.line(f"call void @PyEval_RestoreThread(ptr {lock})")
    if not callee.direct:
        w.unless(w.op(f"icmp eq i32 {status}, 0"), "memory")
        found = [w.op(f"load {type_}, ptr {place}") for type_, place in zip(types, places)]
    _results(w, items, found, isinstance(result, Tuple))
    # A kernel with loops takes much longer than its wrapper, so optimising that isn't worth LLVM's time.
    translated = "noinline optnone " if releases else ""
    body = [
        f"define ptr @{symbol}(ptr %self, ptr %arguments, i64 %count) nounwind {translated}{{", *w.entry, *w.lines,
        "bad:", "  %class = load ptr, ptr @PyExc_TypeError", "  call void @PyErr_SetString(ptr %class, ptr @wrong)",
        "  ret ptr null", "memory:", "  %none = call ptr @PyErr_NoMemory()", "  ret ptr null",
        "failed:", "  ret ptr null", "}",
    ]  # fmt: skip
    return "\n".join([*w.globals, *body, '!1 = !{!"branch_weights", i32 2000, i32 1}'])


def _array(w: _Lines, thing: str, type_: Array) -> list[str]:
    """The registers of an array argument, with an owner on the stack that refers to the Python object."""
    w.unless(w.op(f"icmp eq ptr {w.field(thing, _TYPE, 'ptr')}, @numpy_array_type"), "bad")
    w.unless(w.op(f"icmp eq i32 {w.field(thing, _RANK, 'i32')}, {type_.rank}"), "bad")
    owner = w.stack("%owner", align=16)
    w.line(f"store i64 {_MANY}, ptr {owner}")
    w.line(f"store ptr {thing}, ptr {w.op(f'getelementptr %owner, ptr {owner}, i64 0, i32 1')}")
    dims = w.field(thing, _DIMS, "ptr")
    sizes = [w.field(dims, 8 * axis, "i64") for axis in range(type_.rank)]
    return [f"ptr {owner}", f"ptr {w.field(thing, _DATA, 'ptr')}", *(f"i64 {size}" for size in sizes)]


def _number(w: _Lines, thing: str, type_: Scalar) -> str:
    """A number's value: read from NumPy's scalar of the type, or asked of any other object; of floats of 16 bits only
    read."""
    expected = w.external(f"numpy_{type_.name}_type")
    same = w.op(f"icmp eq ptr {w.field(thing, _TYPE, 'ptr')}, {expected}")
    if type_.kind == "h":
        w.unless(same, "bad")
        return w.field(thing, _VALUE, type_.memory)
    known, other, after = w.label(), w.label(), w.label()
    w.split(same, known, other)
    w.begin(known)
    read = w.field(thing, _VALUE, type_.memory)
    if type_ == BOOL:
        read = w.op(f"icmp ne i8 {read}, 0")
    w.jump(after)
    w.begin(other)
    if type_ == BOOL:
        truth = w.op(f"call i32 @PyObject_IsTrue(ptr {thing})")
        w.unless(w.op(f"icmp sge i32 {truth}, 0"), "failed")
        asked = w.op(f"icmp ne i32 {truth}, 0")
    else:
        asked = _converted(w, thing, type_)
    last = w.current
    w.jump(after)
    w.begin(after)
    return w.op(f"phi {type_.ir} [ {read}, %{known} ], [ {asked}, %{last} ]")


def _converted(w: _Lines, thing: str, type_: Scalar) -> str:
    if type_.is_float:
        wide = w.op(f"call double @PyFloat_AsDouble(ptr {thing})")
        suspect = w.op(f"fcmp oeq double {wide}, -1.0")
    else:
        function = "PyLong_AsUnsignedLongLongMask" if type_.kind == "u" and type_.bits == 64 else "PyLong_AsLongLong"
        wide = w.op(f"call i64 @{function}(ptr {thing})")
        suspect = w.op(f"icmp eq i64 {wide}, -1")
    ask, right = w.label(), w.label()
    w.split(suspect, ask, right)
    w.begin(ask)
    raised = w.op("call ptr @PyErr_Occurred()")
    w.split(w.op(f"icmp eq ptr {raised}, null"), right, "failed")
    w.begin(right)
    if type_.is_float:
        return wide if type_ == FLOAT64 else w.op(f"fptrunc double {wide} to float")
    return wide if type_.bits == 64 else w.op(f"trunc i64 {wide} to {type_.ir}")


def _results(w: _Lines, items: Sequence[Any], found: Sequence[str], several: bool) -> None:
    objects: list[str] = []
    rest = list(found)
    for item in items:
        count = len(part_types(item))
        parts, rest = rest[:count], rest[count:]
        # If one can't be made, those before it leak; there is no memory left anyway.
        thing = _array_object(w, item, parts) if isinstance(item, Array) else _number_object(w, item, parts[0])
        w.unless(w.op(f"icmp ne ptr {thing}, null"), "failed")
        objects.append(thing)
    if several:
        result = w.op(f"call ptr @PyTuple_New(i64 {len(objects)})")
        w.unless(w.op(f"icmp ne ptr {result}, null"), "failed")
        for position, thing in enumerate(objects):
            w.line(f"store ptr {thing}, ptr {w.op(f'getelementptr i8, ptr {result}, i64 {_ITEMS + 8 * position}')}")
        w.line(f"ret ptr {result}")
    elif objects:
        w.line(f"ret ptr {objects[0]}")
    else:
        none = w.external("_Py_NoneStruct")
        w.line(f"call void @Py_IncRef(ptr {none})")
        w.line(f"ret ptr {none}")


def _array_object(w: _Lines, type_: Array, parts: Sequence[str]) -> str:
    owner, data, *sizes = parts
    dims = w.stack(f"[{type_.rank} x i64]", align=16)
    for axis, size in enumerate(sizes):
        w.line(f"store i64 {size}, ptr {w.op(f'getelementptr i64, ptr {dims}, i64 {axis}')}")
    dtype = w.external(f"numpy_{type_.element.name}_dtype")
    return w.op(f"call ptr @array_object(ptr {owner}, ptr {data}, ptr {dtype}, i32 {type_.rank}, ptr {dims})")


def _number_object(w: _Lines, type_: Scalar, value: str) -> str:
    if type_ == INT64:
        return w.op(f"call ptr @PyLong_FromLongLong(i64 {value})")
    if type_ == BOOL:
        thing = w.op(f"select i1 {value}, ptr @numpy_true, ptr @numpy_false")
        w.line(f"call void @Py_IncRef(ptr {thing})")
        return thing
    thing = w.op(f"call ptr @PyType_GenericAlloc(ptr {w.external(f'numpy_{type_.name}_type')}, i64 0)")
    w.unless(w.op(f"icmp ne ptr {thing}, null"), "failed")
    w.line(f"store {type_.ir} {value}, ptr {w.op(f'getelementptr i8, ptr {thing}, i64 {_VALUE}')}")
    return thing
