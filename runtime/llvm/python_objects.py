"""Python's and NumPy's objects as machine code sees them: offsets of fields that both keep stable for compiled code,
and the functions of their C interfaces."""

from __future__ import annotations

# Offsets of fields in bytes: the type of any object; the value of NumPy's scalars; elements, rank, dimensions, dtype
# and flags of an array; length and items of a tuple or a list (there: the pointer to them); the bytes of a bytes
# object; the content of a cell.
TYPE, VALUE = 8, 16
DATA, RANK, DIMS, DTYPE, FLAGS = 16, 24, 32, 56, 64
LENGTH, ITEMS = 16, 24
BYTES, CONTENT = 32, 16

# NumPy's flags of arrays.
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400

_FUNCTIONS = {
    "PyCapsule_GetPointer": ("ptr", "ptr, ptr"),
    "PyCapsule_New": ("ptr", "ptr, ptr, ptr"),
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
    "PyList_New": ("ptr", "i64"),
    "PyLong_AsLongLong": ("i64", "ptr"),
    "PyLong_AsUnsignedLongLongMask": ("i64", "ptr"),
    "PyLong_FromLongLong": ("ptr", "i64"),
    "PyOS_InterruptOccurred": ("i32", ""),
    "PyObject_GetAttr": ("ptr", "ptr, ptr"),
    "PyObject_IsTrue": ("i32", "ptr"),
    "PyObject_VectorcallDict": ("ptr", "ptr, ptr, i64, ptr"),
    "PyTuple_New": ("ptr", "i64"),
    "PyType_GenericAlloc": ("ptr", "ptr, i64"),
    "Py_DecRef": ("void", "ptr"),
    "Py_IncRef": ("void", "ptr"),
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
