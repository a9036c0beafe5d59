"""Python's and NumPy's objects as machine code sees them: reading and making them, and the functions of their C APIs.

A field is read where `layouts.py` has found it; if it hasn't, the code calls a function of the C API. The functions
below write one or the other, so their callers needn't know.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.kernel_ir.types import BFLOAT16
from runtime.llvm.function_builder import UNOPTIMISED, FunctionBuilder, definitions
from runtime.llvm.layouts import ArrayInterface, known

# NumPy's flags of arrays.
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
_MOST_AXES = 64

_FUNCTIONS = {
    "PyBytes_AsString": ("ptr", "ptr"),
    "PyCapsule_GetPointer": ("ptr", "ptr, ptr"),
    "PyCapsule_New": ("ptr", "ptr, ptr, ptr"),
    "PyCell_Get": ("ptr", "ptr"),
    "PyDict_GetItemWithError": ("ptr", "ptr, ptr"),
    "PyDict_New": ("ptr", ""),
    "PyDict_SetItem": ("i32", "ptr, ptr, ptr"),
    "PyDict_Size": ("i64", "ptr"),
    "PyErr_Clear": ("void", ""),
    "PyErr_ExceptionMatches": ("i32", "ptr"),
    "PyErr_Fetch": ("void", "ptr, ptr, ptr"),
    "PyErr_NoMemory": ("ptr", ""),
    "PyErr_Occurred": ("ptr", ""),
    "PyErr_Restore": ("void", "ptr, ptr, ptr"),
    "PyErr_SetString": ("void", "ptr, ptr"),
    "PyEval_RestoreThread": ("void", "ptr"),
    "PyEval_SaveThread": ("ptr", ""),
    "PyFloat_AsDouble": ("double", "ptr"),
    "PyGILState_Ensure": ("i32", ""),
    "PyGILState_Release": ("void", "i32"),
    "PyList_GetItem": ("ptr", "ptr, i64"),
    "PyList_New": ("ptr", "i64"),
    "PyList_SetItem": ("i32", "ptr, i64, ptr"),
    "PyList_Size": ("i64", "ptr"),
    "PyLong_AsLongLong": ("i64", "ptr"),
    "PyLong_AsUnsignedLongLongMask": ("i64", "ptr"),
    "PyLong_FromLongLong": ("ptr", "i64"),
    "PyOS_InterruptOccurred": ("i32", ""),
    "PyObject_GetAttr": ("ptr", "ptr, ptr"),
    "PyObject_GetAttrString": ("ptr", "ptr, ptr"),
    "PyObject_IsTrue": ("i32", "ptr"),
    "PyObject_SetAttrString": ("i32", "ptr, ptr, ptr"),
    "PyObject_Type": ("ptr", "ptr"),
    "PyObject_VectorcallDict": ("ptr", "ptr, ptr, i64, ptr"),
    "PyTuple_GetItem": ("ptr", "ptr, i64"),
    "PyTuple_New": ("ptr", "i64"),
    "PyTuple_SetItem": ("i32", "ptr, i64, ptr"),
    "PyTuple_Size": ("i64", "ptr"),
    "PyType_GenericAlloc": ("ptr", "ptr, i64"),
    "Py_DecRef": ("void", "ptr"),
    "Py_IncRef": ("void", "ptr"),
    "numpy_number_from": ("ptr", "ptr, ptr, ptr"),
    "numpy_number_to": ("void", "ptr, ptr"),
    "numpy_new_from_descr": ("ptr", "ptr, ptr, i32, ptr, ptr, ptr, i32, ptr"),
    "numpy_set_base_object": ("i32", "ptr, ptr"),
}


def functions(*names: str) -> str:
    """The declarations of functions."""
    return "\n".join("declare {1} @{0}({2})".format(name, *_FUNCTIONS[name]) for name in names)


def objects(*names: str) -> str:
    """The declarations of objects that the linker knows by name."""
    return "\n".join(f"@{name} = external global i8" for name in names)


def exceptions(*names: str) -> str:
    """The declarations of pointers to Python's classes of exceptions."""
    return "\n".join(f"@PyExc_{name} = external global ptr" for name in names)


# --- objects ---------------------------------------------------------------------------------------------------------
#
# Objects that these functions return are borrowed: they live as long as what holds them.


def type_of(f: FunctionBuilder, obj: str) -> str:
    """The class of an object."""
    offset = known().type
    return f.call("ptr", "@type_of", f"ptr {obj}") if offset is None else f.field("ptr", obj, offset)


def tuple_length(f: FunctionBuilder, obj: str) -> str:
    layout = known().tuple
    return f.call("i64", "@PyTuple_Size", f"ptr {obj}") if layout is None else f.field("i64", obj, layout.length)


def tuple_item(f: FunctionBuilder, obj: str, index: str | int) -> str:
    layout = known().tuple
    if layout is None:
        return f.call("ptr", "@PyTuple_GetItem", f"ptr {obj}", f"i64 {index}")
    return f.field("ptr", f.at(obj, layout.items), index, "ptr")


def set_tuple_item(f: FunctionBuilder, obj: str, index: str | int, item: str) -> None:
    """Fills an item of a new tuple, which takes over the reference."""
    layout = known().tuple
    if layout is None:
        f.call("i32", "@PyTuple_SetItem", f"ptr {obj}", f"i64 {index}", f"ptr {item}")
    else:
        f.store("ptr", item, f.at(f.at(obj, layout.items), index, "ptr"))


def list_length(f: FunctionBuilder, obj: str) -> str:
    layout = known().list
    return f.call("i64", "@PyList_Size", f"ptr {obj}") if layout is None else f.field("i64", obj, layout.length)


def list_item(f: FunctionBuilder, obj: str, index: str | int) -> str:
    layout = known().list
    if layout is None:
        return f.call("ptr", "@PyList_GetItem", f"ptr {obj}", f"i64 {index}")
    return f.field("ptr", f.field("ptr", obj, layout.items), index, "ptr")


def set_list_item(f: FunctionBuilder, obj: str, index: str | int, item: str) -> None:
    """Fills an item of a new list, which takes over the reference."""
    layout = known().list
    if layout is None:
        f.call("i32", "@PyList_SetItem", f"ptr {obj}", f"i64 {index}", f"ptr {item}")
    else:
        f.store("ptr", item, f.at(f.field("ptr", obj, layout.items), index, "ptr"))


def first_byte(f: FunctionBuilder, obj: str) -> str:
    """The address of the first byte of a bytes object."""
    offset = known().bytes
    return f.call("ptr", "@PyBytes_AsString", f"ptr {obj}") if offset is None else f.at(obj, offset)


def cell_content(f: FunctionBuilder, obj: str) -> str:
    """What a closure's cell holds, or null."""
    offset = known().cell
    return f.call("ptr", "@cell_content", f"ptr {obj}") if offset is None else f.field("ptr", obj, offset)


def slot(f: FunctionBuilder, obj: str, offset: int | None, name: str) -> str:
    """The attribute of a slot of an object, or null. offset: as `layouts.slot` gives it. name: the symbol of its name
    as a C string."""
    if offset is None:
        return f.call("ptr", "@attribute", f"ptr {obj}", f"ptr @{name}")
    return f.field("ptr", obj, offset)


def set_slot(f: FunctionBuilder, obj: str, offset: int | None, name: str, value: str) -> None:
    """Fills a slot of a new object, which takes over the reference."""
    if offset is not None:
        f.store("ptr", value, f.at(obj, offset))
        return
    f.call("i32", "@PyObject_SetAttrString", f"ptr {obj}", f"ptr @{name}", f"ptr {value}")
    f.run("@Py_DecRef", f"ptr {value}")


# --- NumPy's scalars and arrays --------------------------------------------------------------------------------------


def number(f: FunctionBuilder, obj: str, name: str, type_: str) -> str:
    """The value of a scalar of NumPy's. name: that of its dtype. type_: its type in memory."""
    offset = known().number
    if offset is not None:
        return f.field(type_, obj, offset)
    place = f.stack("i64")
    f.run("@numpy_number_to", f"ptr {obj}", f"ptr {place}")
    # Of a dtype that isn't NumPy's own it gives the address of the value.
    return f.load(type_, f.load("ptr", place) if name == BFLOAT16.name else place)


def new_number(f: FunctionBuilder, name: str, type_: str, value: str, failed: Callable[[str], None]) -> str:
    """A new scalar of NumPy's. name: that of its dtype. failed: jumps away where the condition given to it holds, which
    is that there is no memory."""
    offset = known().number
    if offset is None:
        place = f.stack("i64")
        f.store(type_, value, place)
        obj = f.call("ptr", "@numpy_number_from", f"ptr {place}", f"ptr @numpy_{name}_dtype", "ptr null")
        failed(f.is_null(obj))
        return obj
    obj = f.call("ptr", "@PyType_GenericAlloc", f"ptr @numpy_{name}_type", "i64 0")
    failed(f.is_null(obj))
    f.store(type_, value, f.at(obj, offset))
    return obj


class ArrayReader:
    """Reads the fields of a NumPy array."""

    def __init__(self, f: FunctionBuilder, obj: str) -> None:
        self._f, self._obj, self._fields = f, obj, known().array
        if self._fields is None:
            # A record of the rank, the flags, the address of the elements, and the sizes.
            self._record = f.stack("i64", count=3 + _MOST_AXES)
            f.run("@read_array", f"ptr {obj}", f"ptr {self._record}")

    def rank(self) -> str:
        """Its rank, an i32."""
        return self._f.field("i32", self._obj, self._fields.rank) if self._fields else self._f.load("i32", self._record)

    def flags(self) -> str:
        """Its flags, an i32."""
        if self._fields is None:
            return self._f.field("i32", self._record, 8)
        return self._f.field("i32", self._obj, self._fields.flags)

    def data(self) -> str:
        """The address of its elements."""
        if self._fields is None:
            return self._f.field("ptr", self._record, 16)
        return self._f.field("ptr", self._obj, self._fields.data)

    def sizes(self) -> str:
        """The address of its sizes, i64s."""
        if self._fields is None:
            return self._f.at(self._record, 24)
        return self._f.field("ptr", self._obj, self._fields.sizes)

    def dtype(self) -> str:
        if self._fields is None:
            return self._f.call("ptr", "@attribute", f"ptr {self._obj}", "ptr @dtype_name")
        return self._f.field("ptr", self._obj, self._fields.dtype)


# --- fields whose places aren't known --------------------------------------------------------------------------------


def _borrowed(f: FunctionBuilder, obj: str) -> str:
    """Gives up a new reference to what something else keeps alive."""
    with f.unless(f.is_null(obj)):
        f.run("@Py_DecRef", f"ptr {obj}")
    return obj


def _type_of(f: FunctionBuilder) -> str:
    return _borrowed(f, f.call("ptr", "@PyObject_Type", "ptr %obj"))


def _cell_content(f: FunctionBuilder) -> str:
    return _borrowed(f, f.call("ptr", "@PyCell_Get", "ptr %obj"))


def _attribute(f: FunctionBuilder) -> str:
    found = f.call("ptr", "@PyObject_GetAttrString", "ptr %obj", "ptr %name")
    with f.if_then(f.is_null(found)):
        f.run("@PyErr_Clear")
    return _borrowed(f, found)


def _read_array(f: FunctionBuilder) -> None:
    """Fills the record of an `ArrayReader`, through NumPy's array interface protocol. An array that doesn't answer has
    the rank -1, which no kernel takes."""
    f.store("i64", -1, "%record")
    capsule = f.call("ptr", "@PyObject_GetAttrString", "ptr %obj", "ptr @interface_name")
    with f.if_then(f.is_null(capsule)):
        f.run("@PyErr_Clear")
        f.end("ret void")
    interface = f.call("ptr", "@PyCapsule_GetPointer", f"ptr {capsule}", "ptr null")
    rank = f.convert("sext", "i32", f.field("i32", interface, ArrayInterface.rank.offset), "i64")
    f.store("i64", rank, "%record")
    f.store("i32", f.field("i32", interface, ArrayInterface.flags.offset), f.at("%record", 8))
    f.store("ptr", f.field("ptr", interface, ArrayInterface.data.offset), f.at("%record", 16))
    sizes = f.field("ptr", interface, ArrayInterface.sizes.offset)
    f.copy(f.at("%record", 24), sizes, f.binary("mul", rank, 8))
    f.run("@Py_DecRef", f"ptr {capsule}")


def _c_string(symbol: str, text: str) -> str:
    return f'@{symbol} = private constant [{len(text) + 1} x i8] c"{text}\\00"'


# What the code above calls where a layout isn't known: part of every module that uses it.
_CALLED = (
    "PyBytes_AsString", "PyCell_Get", "PyObject_GetAttrString", "PyObject_SetAttrString", "PyObject_Type",
    "PyList_GetItem", "PyList_SetItem", "PyList_Size", "PyTuple_GetItem", "PyTuple_SetItem", "PyTuple_Size",
    "numpy_number_from", "numpy_number_to",
)  # fmt: skip


def support(*slots: int | None) -> str:
    """Declarations and functions for the fields whose places aren't known. slots: the offsets of slots that the module
    uses; it declares the functions `PyErr_Clear`, `Py_DecRef` and `PyCapsule_GetPointer` itself."""
    if None not in (*known(), *slots):
        return ""
    return "\n".join([
        functions(*_CALLED),
        _c_string("dtype_name", "dtype"),
        _c_string("interface_name", "__array_struct__"),
        definitions({
            f"internal ptr @type_of(ptr %obj) {UNOPTIMISED}": _type_of,
            f"internal ptr @cell_content(ptr %obj) {UNOPTIMISED}": _cell_content,
            f"internal ptr @attribute(ptr %obj, ptr %name) {UNOPTIMISED}": _attribute,
            f"internal void @read_array(ptr %obj, ptr %record) {UNOPTIMISED}": _read_array,
        }),
    ])  # fmt: skip
