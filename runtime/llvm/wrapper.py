"""The function that Python calls: it reads the arguments from Python objects, runs the kernel, and makes objects of the
results.

It reads the fields of NumPy's arrays and scalars where `layouts.py` has found them. Arguments must match the kernel's
signature, and arrays must be contiguous; a wrong number, class or rank is a TypeError.

An int64 becomes an int, any other number a NumPy scalar. An array owns its memory through a capsule, or is a view of
the argument whose memory it shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.interpreter import IS_FREE_THREADED
from runtime.kernel_ir.types import BOOL, FLOAT64, INT64, Array, Scalar, Tuple, results
from runtime.llvm.function_builder import IS_SIZE, LIKELY, UNLIKELY, UNOPTIMISED, FunctionBuilder, defined
from runtime.llvm.interrupts import SUPPORT as INTERRUPTED
from runtime.llvm.memory import COUNT, OBJECT, argument
from runtime.llvm.memory import SUPPORT as MEMORY
from runtime.llvm.python_objects import (
    ALIGNED,
    C_CONTIGUOUS,
    WRITEABLE,
    ArrayReader,
    exceptions,
    functions,
    new_number,
    number,
    objects,
    set_tuple_item,
    support,
    type_of,
)  # fmt: skip
from runtime.llvm.writer import part_types

__all__ = ["INTERRUPTED", "MEMORY", "SUPPORT", "text"]

_FUNCTIONS = (
    "PyErr_Clear",
    "PyErr_NoMemory",
    "PyErr_Occurred",
    "PyErr_SetString",
    "PyFloat_AsDouble",
    "PyLong_AsLongLong",
    "PyLong_AsUnsignedLongLongMask",
    "PyObject_IsTrue",
    "PyLong_FromLongLong",
    "PyTuple_New",
    "PyType_GenericAlloc",
    "Py_IncRef",
    "Py_DecRef",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
    "PyCapsule_New",
    "PyCapsule_GetPointer",
    "numpy_new_from_descr",
    "numpy_set_base_object",
)


def _release(f: FunctionBuilder) -> None:
    """Gives up a capsule's reference to its array. Without the interpreter lock, other threads may do the same with
    other capsules of that array."""
    owner = f.call("ptr", "@PyCapsule_GetPointer", "ptr %capsule", "ptr null")
    if not IS_FREE_THREADED:
        f.run("@drop", f"ptr {owner}")
        return
    before = f.update("sub", "i64", f.at(owner, COUNT), 1, "acq_rel")
    with f.if_then(f.binary("icmp eq", before, 1)):
        f.run("@drop_last", f"ptr {owner}")


def _new_array(f: FunctionBuilder) -> str:
    """A NumPy array over these elements, which keeps their owner alive: by a capsule, or by the object that it refers
    to. Null if there is no memory."""
    holder = f.load("ptr", f.at("%owner", OBJECT))

    def held() -> str:
        f.run("@Py_IncRef", f"ptr {holder}")
        return holder

    base = f.either(
        f.is_null(holder), "ptr",
        lambda: f.call("ptr", "@PyCapsule_New", "ptr %owner", "ptr null", "ptr @release"),
        held,
    )  # fmt: skip
    f.leave_if(f.is_null(base), "ptr null")
    f.run("@Py_IncRef", "ptr %dtype")
    flags = C_CONTIGUOUS | ALIGNED | WRITEABLE
    given = ["ptr @numpy_array_type", "ptr %dtype", "i32 %rank", "ptr %dims", "ptr null", "ptr %data", f"i32 {flags}"]
    array = f.call("ptr", "@numpy_new_from_descr", *given, "ptr null")
    f.leave_if(f.is_null(array), "ptr null")
    f.call("i32", "@numpy_set_base_object", f"ptr {array}", f"ptr {base}")
    return array


SUPPORT = "\n".join([
    functions(*_FUNCTIONS),
    exceptions("TypeError"),
    objects("numpy_array_type", "numpy_true", "numpy_false"),
    support(),
    r'@wrong = private constant [33 x i8] c"wrong arguments for this kernel\21\00"',
    defined(f"internal void @release(ptr %capsule) {UNOPTIMISED}", _release),
    defined(
        f"internal ptr @array_object(ptr %owner, ptr %data, ptr %dtype, i32 %rank, ptr %dims) {UNOPTIMISED}",
        _new_array,
    ),
])  # fmt: skip


class _Wrapper(FunctionBuilder):
    """The wrapper being written."""

    def __init__(self, head: str) -> None:
        super().__init__(head)
        self.globals: dict[str, None] = {}

    def external(self, name: str) -> str:
        """The address of an object that the linker knows by name."""
        self.globals.setdefault(objects(name))
        return f"@{name}"

    def require(self, condition: str, target: str) -> None:
        """Continues if the condition holds, as it nearly always does, else jumps to the target."""
        self.jump_unless(condition, target, LIKELY)

    def fail_if(self, condition: str) -> None:
        """Returns null if the condition holds: there is no memory, and an error is set."""
        self.jump_if(condition, "failed", UNLIKELY)

    def fail_if_null(self, obj: str) -> None:
        self.fail_if(self.is_null(obj))


def text(symbol: str, callee: Any, parameters: Sequence[Scalar | Array], releases: bool) -> str:
    """The C function for a kernel. releases: whether it releases the interpreter lock while the kernel runs."""
    # Optimised, though it runs once in a call: what LLVM knows of the sizes here it also uses in the kernel, which can
    # make a loop nest twice as fast.
    w = _Wrapper(f"define ptr @{symbol}(ptr %self, ptr %arguments, i64 %count) nounwind")
    w.require(w.binary("icmp eq", "%count", len(parameters)), "bad")
    given: list[str] = []
    for position, type_ in enumerate(parameters):
        obj = w.field("ptr", "%arguments", 8 * position)
        if isinstance(type_, Array):
            given += _array(w, obj, type_)
        else:
            given.append(f"{type_.ir} {_number(w, obj, type_)}")
    result = callee.result
    types = part_types(result)
    found: list[str] = []
    lock = w.call("ptr", "@PyEval_SaveThread") if releases else None
    if not callee.direct:
        slots = [w.stack(type_, align=16) for type_ in types]
        status = w.call("i32", f"@{callee.symbol}", *given, *(f"ptr {slot}" for slot in slots))
    elif types:
        found = [w.call(types[0], f"@{callee.symbol}", *given)]
    else:
        w.run(f"@{callee.symbol}", *given)
    if lock:
        w.run("@PyEval_RestoreThread", f"ptr {lock}")
    if not callee.direct:
        w.require(w.binary("icmp eq", status, 0, "i32"), "memory")
        found = [w.load(type_, slot) for type_, slot in zip(types, slots)]
    _results(w, results(result), found, isinstance(result, Tuple))
    w.begin("bad")
    w.run("@PyErr_SetString", f"ptr {w.load('ptr', '@PyExc_TypeError')}", "ptr @wrong")
    w.end("ret ptr null")
    w.begin("memory")
    w.call("ptr", "@PyErr_NoMemory")
    w.end("ret ptr null")
    w.begin("failed")
    w.end("ret ptr null")
    return "\n".join([*w.globals, w.text()])


def _array(w: _Wrapper, obj: str, type_: Array) -> list[str]:
    """The registers of an array argument, with an owner on the stack that refers to the Python object."""
    w.require(w.is_same(type_of(w, obj), "@numpy_array_type"), "bad")
    array = ArrayReader(w, obj)
    w.require(w.binary("icmp eq", array.rank(), type_.rank, "i32"), "bad")
    owner = argument(w, obj)
    dims = array.sizes()
    sizes = [w.op(f"load i64, ptr {w.at(dims, 8 * axis)}{IS_SIZE}") for axis in range(type_.rank)]
    return [f"ptr {owner}", f"ptr {array.data()}", *(f"i64 {size}" for size in sizes)]


def _number(w: _Wrapper, obj: str, type_: Scalar) -> str:
    """A number's value: read from NumPy's scalar of the type, or asked of any other object; of floats of 16 bits only
    read."""
    same = w.is_same(type_of(w, obj), w.external(f"numpy_{type_.name}_type"))
    if type_.kind == "h":
        w.require(same, "bad")
        return number(w, obj, type_.name, type_.memory)

    def read() -> str:
        value = number(w, obj, type_.name, type_.memory)
        return w.binary("icmp ne", value, 0, "i8") if type_ == BOOL else value

    return w.either(same, type_.ir, read, lambda: _converted(w, obj, type_))


def _converted(w: _Wrapper, obj: str, type_: Scalar) -> str:
    """What Python makes of another object."""
    if type_ == BOOL:
        truth = w.call("i32", "@PyObject_IsTrue", f"ptr {obj}")
        w.require(w.binary("icmp sge", truth, 0, "i32"), "failed")
        return w.binary("icmp ne", truth, 0, "i32")
    if type_.is_float:
        wide = w.call("double", "@PyFloat_AsDouble", f"ptr {obj}")
        suspect = w.binary("fcmp oeq", wide, "-1.0", "double")
    else:
        function = "PyLong_AsUnsignedLongLongMask" if type_.kind == "u" and type_.bits == 64 else "PyLong_AsLongLong"
        wide = w.call("i64", f"@{function}", f"ptr {obj}")
        suspect = w.binary("icmp eq", wide, -1)
    with w.if_then(suspect):
        w.jump_unless(w.is_null(w.call("ptr", "@PyErr_Occurred")), "failed")
    if type_.is_float:
        return wide if type_ == FLOAT64 else w.convert("fptrunc", "double", wide, "float")
    return wide if type_.bits == 64 else w.convert("trunc", "i64", wide, type_.ir)


def _results(w: _Wrapper, items: Sequence[Any], found: Sequence[str], several: bool) -> None:
    made: list[str] = []
    rest = list(found)
    for item in items:
        count = len(part_types(item))
        parts, rest = rest[:count], rest[count:]
        # If one can't be made, those before it leak; there is no memory left anyway.
        obj = _array_object(w, item, parts) if isinstance(item, Array) else _number_object(w, item, parts[0])
        made.append(obj)
    if several:
        result = w.call("ptr", "@PyTuple_New", f"i64 {len(made)}")
        w.fail_if_null(result)
        for position, obj in enumerate(made):
            set_tuple_item(w, result, position, obj)
    elif made:
        (result,) = made
    else:
        result = w.external("_Py_NoneStruct")
        w.run("@Py_IncRef", f"ptr {result}")
    w.end(f"ret ptr {result}")


def _array_object(w: _Wrapper, type_: Array, parts: Sequence[str]) -> str:
    owner, data, *sizes = parts
    dims = w.stack(f"[{type_.rank} x i64]", align=16)
    for axis, size in enumerate(sizes):
        w.store("i64", size, w.at(dims, axis, "i64"))
    dtype = w.external(f"numpy_{type_.element.name}_dtype")
    given = [f"ptr {owner}", f"ptr {data}", f"ptr {dtype}", f"i32 {type_.rank}", f"ptr {dims}"]
    array = w.call("ptr", "@array_object", *given)
    w.fail_if_null(array)
    return array


def _number_object(w: _Wrapper, type_: Scalar, value: str) -> str:
    if type_ == INT64:
        integer = w.call("ptr", "@PyLong_FromLongLong", f"i64 {value}")
        w.fail_if_null(integer)
        return integer
    if type_ == BOOL:
        obj = w.select(value, "@numpy_true", "@numpy_false", "ptr")
        w.run("@Py_IncRef", f"ptr {obj}")
        return obj
    w.external(f"numpy_{type_.name}_type")
    w.external(f"numpy_{type_.name}_dtype")
    return new_number(w, type_.name, type_.ir, value, w.fail_if)
