"""What all parts of the machine code of inline caches use: words of plans, calls of Python."""

from __future__ import annotations

from runtime.engine.fastcall.plan_encoding import (
    BUILDER,
    CONTEXT,
    EAGERLY,
    NUMERICS,
    RECORDERS,
    STATE,
    TENSOR,
    TENSOR_ARRAY,
    TENSOR_DTYPE,
    ZERO,
)
from runtime.llvm.function_builder import FunctionBuilder
from runtime.llvm.python_objects import exceptions, functions, objects

DECLARATIONS = "\n".join([
    functions(
        "PyObject_GetAttr", "PyDict_GetItemWithError", "PyDict_Size", "PyDict_New", "PyDict_SetItem", "PyErr_Occurred",
        "PyErr_Clear", "PyErr_Fetch", "PyErr_Restore", "PyErr_ExceptionMatches", "PyObject_VectorcallDict",
        "PyType_GenericAlloc", "PyTuple_New", "PyList_New", "PyLong_AsLongLong", "Py_IncRef", "Py_DecRef",
        "PyCapsule_GetPointer",
    ),
    exceptions("MemoryError"),
    objects("PyTuple_Type", "PyList_Type", "PyDict_Type", "_Py_NoneStruct", "_Py_TrueStruct"),
    objects("numpy_array_type", "numpy_int64_type", "numpy_int64_dtype"),
    objects(TENSOR, TENSOR_ARRAY, TENSOR_DTYPE, CONTEXT, STATE, BUILDER, RECORDERS, NUMERICS, ZERO),
    f"@{EAGERLY} = external global i64",
])  # fmt: skip


def word(f: FunctionBuilder, cursor: str) -> str:
    """The word of a plan that the cursor points to; the cursor moves on."""
    place = f.load("ptr", cursor)
    f.store("ptr", f.at(place, 1, "i64"), cursor)
    return f.load("i64", place)


def pointer(f: FunctionBuilder, cursor: str) -> str:
    """The next word of a plan as the address of an object; the cursor moves on."""
    return f.convert("inttoptr", "i64", word(f, cursor), "ptr")


def retain(f: FunctionBuilder, obj: str) -> None:
    f.run("@Py_IncRef", f"ptr {obj}")


def release(f: FunctionBuilder, obj: str) -> None:
    f.run("@Py_DecRef", f"ptr {obj}")


def called(
    f: FunctionBuilder, function: str, arguments: str = "null", count: str | int = 0, keywords: str = "null"
) -> str:
    """What a Python function returns; null for an error."""
    given = f"ptr {function}", f"ptr {arguments}", f"i64 {count}", f"ptr {keywords}"
    return f.call("ptr", "@PyObject_VectorcallDict", *given)
