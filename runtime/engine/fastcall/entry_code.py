"""The machine code of inline caches (`inline_cache.py`): from the arguments of a Python call to a kernel and to
tensors.

It is handwritten LLVM IR since it works on Python objects: like `llvm/wrapper.py` it reads fields whose offsets CPython
and NumPy keep stable for compiled code, and calls their C functions for everything else. It interprets plans
(`plan_encoding.py`): the checks are in `guard_code.py`, the kernel's call in `run_code.py`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any

from runtime.codegen.backends import llvm_backend
from runtime.codegen.native_runtime import jit_module
from runtime.context import ctx, eagerly
from runtime.engine.fastcall.guard_code import DECLARATIONS, GUARDS, fits
from runtime.engine.fastcall.plan_encoding import BUILDER, CONTEXT, EAGERLY, NUMERICS, RECORDERS, STATE, TENSOR, ZERO
from runtime.engine.fastcall.run_code import RUN, tensor
from runtime.tensor import EagerTensor

_NAME = "autograph_shortcut"
_WORD = 8


def text(array: int, dtype: int) -> str:
    """The whole module. array, dtype: the offsets of these fields in a tensor, in bytes."""
    return "\n".join([DECLARATIONS, tensor(array, dtype), fits(array, dtype), GUARDS, RUN, _CALL])


_CALL = f"""
define ptr @{_NAME}(ptr %self, ptr %args, i64 %count, ptr %names) {{
  %cursor = alloca ptr
  %free = alloca ptr
  %data = call ptr @field(ptr %self, i64 24)
  %words = getelementptr i8, ptr %data, i64 32
  store ptr %words, ptr %cursor
  %otherwise = call ptr @object(ptr %cursor)
  %most_values = call i64 @word(ptr %cursor)
  %most_inputs = call i64 @word(ptr %cursor)
  %plans = call i64 @word(ptr %cursor)
  %first = load ptr, ptr %cursor
  %unnamed = icmp eq ptr %names, null
  %name_items = getelementptr i8, ptr %names, i64 24
  br i1 %unnamed, label %ask, label %count_names
count_names:
  %name_count_place = getelementptr i8, ptr %names, i64 16
  %some_names = load i64, ptr %name_count_place
  br label %ask
ask:
  %name_count = phi i64 [ 0, %0 ], [ %some_names, %count_names ]
  %total = add i64 %count, %name_count
  %alone = call i1 @undisturbed()
  br i1 %alone, label %room, label %other
room:
  %values = alloca ptr, i64 %most_values
  %inputs = alloca ptr, i64 %most_inputs
  br label %each
each:
  %number = phi i64 [ 0, %room ], [ %next_number, %next ]
  %plan = phi ptr [ %first, %room ], [ %next_plan, %next ]
  %more = icmp slt i64 %number, %plans
  br i1 %more, label %begin, label %other
begin:
  %descriptions = getelementptr i64, ptr %plan, i64 10
  store ptr %descriptions, ptr %cursor
  store ptr %values, ptr %free
  %wanted = call i64 @word(ptr %cursor)
  %wanted_names = call i64 @word(ptr %cursor)
  %same_count = icmp eq i64 %count, %wanted
  %same_name_count = icmp eq i64 %name_count, %wanted_names
  %same_counts = and i1 %same_count, %same_name_count
  br i1 %same_counts, label %compare_names, label %next
compare_names:
  %name_index = phi i64 [ 0, %begin ], [ %next_name_index, %compare_name ]
  %more_to_compare = icmp slt i64 %name_index, %name_count
  br i1 %more_to_compare, label %compare_name, label %arguments
compare_name:
  %own_name_place = getelementptr ptr, ptr %name_items, i64 %name_index
  %own_name = load ptr, ptr %own_name_place
  %wanted_name = call ptr @object(ptr %cursor)
  %same_name = icmp eq ptr %own_name, %wanted_name
  %next_name_index = add i64 %name_index, 1
  br i1 %same_name, label %compare_names, label %next
arguments:
  %index = phi i64 [ 0, %compare_names ], [ %next_index, %argument_fits ]
  %more_arguments = icmp slt i64 %index, %total
  br i1 %more_arguments, label %one, label %guards
one:
  %place = getelementptr ptr, ptr %args, i64 %index
  %argument = load ptr, ptr %place
  %ok = call i1 @fits(ptr %cursor, ptr %argument, ptr %free)
  br i1 %ok, label %argument_fits, label %unfit
argument_fits:
  %next_index = add i64 %index, 1
  br label %arguments
guards:
  %held = call i1 @holds(ptr %cursor)
  br i1 %held, label %go, label %unfit
go:
  %locks = call i64 @word(ptr %cursor)
  %lock_words = load ptr, ptr %cursor
  %locked = call i64 @take_locks(ptr %cursor, i64 %locks)
  %all_locked = icmp eq i64 %locked, %locks
  br i1 %all_locked, label %read, label %interrupted
interrupted:
  call void @give_locks(ptr %lock_words, i64 %locked)
  %so_far = load ptr, ptr %free
  call void @let_go(ptr %values, ptr %so_far)
  ret ptr null
read:
  %variables = call i64 @word(ptr %cursor)
  br label %each_variable
each_variable:
  %variable = phi i64 [ 0, %read ], [ %next_variable, %variable_fits ]
  %more_variables = icmp slt i64 %variable, %variables
  br i1 %more_variables, label %one_variable, label %run
one_variable:
  %variable_ok = call i1 @fits(ptr %cursor, ptr @_Py_NoneStruct, ptr %free)
  br i1 %variable_ok, label %variable_fits, label %unlock
variable_fits:
  %next_variable = add i64 %variable, 1
  br label %each_variable
unlock:
  call void @give_locks(ptr %lock_words, i64 %locks)
  br label %unfit
run:
  %result = call ptr @run(ptr %plan, ptr %cursor, ptr %values, ptr %inputs, ptr %args, i64 %total)
  call void @give_locks(ptr %lock_words, i64 %locks)
  %end = load ptr, ptr %free
  call void @let_go(ptr %values, ptr %end)
  ret ptr %result
unfit:
  %taken = load ptr, ptr %free
  call void @let_go(ptr %values, ptr %taken)
  br label %next
next:
  %size = load i64, ptr %plan
  %next_plan = getelementptr i64, ptr %plan, i64 %size
  %next_number = add i64 %number, 1
  br label %each
other:
  %error = call ptr @PyErr_Occurred()
  %raised = icmp ne ptr %error, null
  br i1 %raised, label %clear, label %ask_python
clear:
  call void @PyErr_Clear()
  br label %ask_python
ask_python:
  br i1 %unnamed, label %positional, label %named
positional:
  %answer = call ptr @PyObject_VectorcallDict(ptr %otherwise, ptr %args, i64 %count, ptr null)
  ret ptr %answer
named:
  %keywords = call ptr @PyDict_New()
  %none = icmp eq ptr %keywords, null
  br i1 %none, label %out, label %name_them
name_them:
  %named_args = getelementptr ptr, ptr %args, i64 %count
  br label %each_name
each_name:
  %which = phi i64 [ 0, %name_them ], [ %next_which, %set ]
  %more_names = icmp slt i64 %which, %name_count
  br i1 %more_names, label %one_name, label %call
one_name:
  %name_place = getelementptr ptr, ptr %name_items, i64 %which
  %name = load ptr, ptr %name_place
  %named_place = getelementptr ptr, ptr %named_args, i64 %which
  %named_value = load ptr, ptr %named_place
  %done = call i32 @PyDict_SetItem(ptr %keywords, ptr %name, ptr %named_value)
  %not_done = icmp slt i32 %done, 0
  br i1 %not_done, label %drop, label %set
set:
  %next_which = add i64 %which, 1
  br label %each_name
call:
  %named_answer = call ptr @PyObject_VectorcallDict(ptr %otherwise, ptr %args, i64 %count, ptr %keywords)
  call void @Py_DecRef(ptr %keywords)
  ret ptr %named_answer
drop:
  call void @Py_DecRef(ptr %keywords)
  ret ptr null
out:
  ret ptr null
}}
"""


def methods() -> Callable[[tuple], Callable[..., Any]] | None:
    """The function that makes a callable of an encoded plan; None on platforms without machine code. From the kernel
    cache if possible."""
    if not llvm_backend.available():
        return None
    from runtime.llvm import target

    machine_code = jit_module.machine_code("shortcut", text(_offset("_array"), _offset("dtype")))
    named = {
        TENSOR: EagerTensor,
        CONTEXT: ctx,
        STATE: "__dict__",
        BUILDER: "builder",
        RECORDERS: "recorders",
        NUMERICS: "numerics",
        ZERO: 0,
    }
    addresses = {symbol: id(target.kept(thing)) for symbol, thing in named.items()}
    addresses[EAGERLY] = eagerly.__array_interface__["data"][0]
    return target.methods(machine_code, _NAME, addresses)


def _offset(attribute: str) -> int:
    """Where a tensor has one of its attributes, in bytes."""
    mark = object()
    tensor = EagerTensor.__new__(EagerTensor)
    setattr(tensor, attribute, mark)
    size = EagerTensor.__basicsize__ // _WORD
    words = struct.unpack(f"{size}q", ctypes.string_at(id(tensor), size * _WORD))
    return words.index(id(mark)) * _WORD
