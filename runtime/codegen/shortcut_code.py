"""The machine code of shortcuts (`engine/shortcut.py`): from the arguments of a Python call to a kernel and to tensors.

It is written in LLVM's text, by hand, since it works on Python's objects: it reads the fields that CPython and NumPy
keep where they are for compiled code, as `llvm/wrapper.py` does, and asks their functions for all else. What it is to
do stands in words (`shortcut_words.py`); the questions that it asks first are in `shortcut_checks.py`.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Callable
from typing import Any

from runtime.codegen import cache, llvm_compiler
from runtime.codegen.shortcut_checks import DECLARATIONS, GUARDS, fits
from runtime.codegen.shortcut_words import (
    ARGUMENT,
    BUILDER,
    CALLED_INPUT,
    CONTEXT,
    EAGERLY,
    IN_TUPLE,
    INTEGER,
    NUMERICS,
    OBJECT_INPUT,
    ONE,
    ONLY_STATUS,
    PACKED,
    RECORDERS,
    SEVERAL,
    STATE,
    STATUS,
    TENSOR,
    ZERO,
)
from runtime.context import ctx, eagerly
from runtime.tensor import EagerTensor

_NAME = "autograph_shortcut"
_WORD = 8


def text(array: int, dtype: int) -> str:
    """All of it, for tensors that have their array and their dtype at these bytes."""
    return "\n".join(
        [
            DECLARATIONS,
            _tensor(array, dtype),
            fits(array, dtype),
            GUARDS,
            _RUN,
            _CALL,
        ]
    )


def _tensor(array: int, dtype: int) -> str:
    return f"""
; A tensor with this value, whose reference it takes over.
define internal ptr @tensor(ptr %value, ptr %dtype) {{
  %tensor = call ptr @PyType_GenericAlloc(ptr @{TENSOR}, i64 0)
  %failed = icmp eq ptr %tensor, null
  br i1 %failed, label %nothing, label %made
made:
  %array_place = getelementptr i8, ptr %tensor, i64 {array}
  store ptr %value, ptr %array_place
  %dtype_place = getelementptr i8, ptr %tensor, i64 {dtype}
  call void @Py_IncRef(ptr %dtype)
  store ptr %dtype, ptr %dtype_place
  ret ptr %tensor
nothing:
  call void @Py_DecRef(ptr %value)
  ret ptr null
}}
"""


_RUN = f"""
; Runs the plan: %cursor stands at its inputs, %values are the tensors' values.
define internal ptr @run(ptr %plan, ptr %cursor, ptr %values, ptr %inputs, ptr %args, i64 %count) {{
  %kernel_place = getelementptr i64, ptr %plan, i64 1
  %kernel = load ptr, ptr %kernel_place
  %inputs_place = getelementptr i64, ptr %plan, i64 2
  %input_count = load i64, ptr %inputs_place
  %outputs_place = getelementptr i64, ptr %plan, i64 3
  %output_count = load i64, ptr %outputs_place
  %status_place = getelementptr i64, ptr %plan, i64 4
  %status = load i64, ptr %status_place
  %form_place = getelementptr i64, ptr %plan, i64 5
  %form_word = load i64, ptr %form_place
  %form = and i64 %form_word, 3
  %tuple_bit = and i64 %form_word, {IN_TUPLE}
  %in_tuple = icmp ne i64 %tuple_bit, 0
  %made_place = alloca ptr
  store ptr null, ptr %made_place
  br label %each
each:
  %index = phi i64 [ 0, %0 ], [ %next, %put ]
  %more = icmp slt i64 %index, %input_count
  br i1 %more, label %one, label %ready
one:
  %kind = call i64 @word(ptr %cursor)
  switch i64 %kind, label %given [ i64 {OBJECT_INPUT}, label %constant i64 {CALLED_INPUT}, label %called ]
given:
  %number = call i64 @word(ptr %cursor)
  %value_place = getelementptr ptr, ptr %values, i64 %number
  %value = load ptr, ptr %value_place
  br label %put
constant:
  %object = call ptr @object(ptr %cursor)
  br label %put
called:
  %function = call ptr @object(ptr %cursor)
  %made = call ptr @PyObject_VectorcallDict(ptr %function, ptr null, i64 0, ptr null)
  %not_made = icmp eq ptr %made, null
  br i1 %not_made, label %nothing, label %keep
keep:
  store ptr %made, ptr %made_place
  br label %put
put:
  %input = phi ptr [ %value, %given ], [ %object, %constant ], [ %made, %keep ]
  %input_place = getelementptr ptr, ptr %inputs, i64 %index
  store ptr %input, ptr %input_place
  %next = add i64 %index, 1
  br label %each
ready:
  %result = call ptr %kernel(ptr null, ptr %inputs, i64 %input_count)
  %kept = load ptr, ptr %made_place
  %any_kept = icmp ne ptr %kept, null
  br i1 %any_kept, label %drop, label %look
drop:
  call void @Py_DecRef(ptr %kept)
  br label %look
look:
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %no_result, label %check
no_result:
  %class = load ptr, ptr @PyExc_MemoryError
  %memory = call i32 @PyErr_ExceptionMatches(ptr %class)
  %is_memory = icmp ne i32 %memory, 0
  br i1 %is_memory, label %no_memory, label %nothing
no_memory:
  call void @PyErr_Clear()
  %no_memory_place = getelementptr i64, ptr %plan, i64 8
  %no_memory_function = load ptr, ptr %no_memory_place
  %raised = call ptr @PyObject_VectorcallDict(ptr %no_memory_function, ptr null, i64 0, ptr null)
  ret ptr %raised
check:
  %item_place = getelementptr i8, ptr %result, i64 24
  %items = select i1 %in_tuple, ptr %item_place, ptr null
  switch i64 %status, label %outputs [ i64 {ONLY_STATUS}, label %compare i64 {STATUS}, label %first ]
first:
  %first_item = load ptr, ptr %items
  br label %compare
compare:
  %code = phi ptr [ %result, %check ], [ %first_item, %first ]
  %fine = icmp eq ptr %code, @{ZERO}
  br i1 %fine, label %outputs, label %error
error:
  %failed_place = getelementptr i64, ptr %plan, i64 7
  %failed_function = load ptr, ptr %failed_place
  %given_count = add i64 %count, 1
  %room = alloca ptr, i64 %given_count
  store ptr %result, ptr %room
  %rest = getelementptr ptr, ptr %room, i64 1
  %bytes = mul i64 %count, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %rest, ptr %args, i64 %bytes, i1 false)
  %handled = call ptr @PyObject_VectorcallDict(ptr %failed_function, ptr %room, i64 %given_count, ptr null)
  call void @Py_DecRef(ptr %result)
  ret ptr %handled
outputs:
  switch i64 %form, label %in_list [ i64 {ONE}, label %collect i64 {SEVERAL}, label %in_a_tuple ]
in_a_tuple:
  %tuple = call ptr @PyTuple_New(i64 %output_count)
  %no_tuple = icmp eq ptr %tuple, null
  br i1 %no_tuple, label %lost, label %tuple_items
tuple_items:
  %tuple_start = getelementptr i8, ptr %tuple, i64 24
  br label %collect
in_list:
  %list = call ptr @PyList_New(i64 %output_count)
  %no_list = icmp eq ptr %list, null
  br i1 %no_list, label %lost, label %list_items
list_items:
  %list_start = call ptr @field(ptr %list, i64 24)
  br label %collect
collect:
  %whole = phi ptr [ null, %outputs ], [ %tuple, %tuple_items ], [ %list, %list_items ]
  %places = phi ptr [ null, %outputs ], [ %tuple_start, %tuple_items ], [ %list_start, %list_items ]
  br label %each_output
each_output:
  %output = phi i64 [ 0, %collect ], [ %next_output, %store_output ]
  %more_outputs = icmp slt i64 %output, %output_count
  br i1 %more_outputs, label %one_output, label %finished
one_output:
  %output_kind = call i64 @word(ptr %cursor)
  %source = call i64 @word(ptr %cursor)
  %dtype = call ptr @object(ptr %cursor)
  %is_argument = icmp eq i64 %output_kind, {ARGUMENT}
  br i1 %is_argument, label %argument, label %from_result
argument:
  %argument_place = getelementptr ptr, ptr %values, i64 %source
  %argument_value = load ptr, ptr %argument_place
  call void @Py_IncRef(ptr %argument_value)
  br label %wrap
from_result:
  br i1 %in_tuple, label %item, label %alone
item:
  %result_place = getelementptr ptr, ptr %items, i64 %source
  %result_item = load ptr, ptr %result_place
  br label %taken
alone:
  br label %taken
taken:
  %thing = phi ptr [ %result_item, %item ], [ %result, %alone ]
  %is_integer = icmp eq i64 %output_kind, {INTEGER}
  br i1 %is_integer, label %integer, label %plain
plain:
  call void @Py_IncRef(ptr %thing)
  br label %wrap
integer:
  %long = call i64 @PyLong_AsLongLong(ptr %thing)
  %number_object = call ptr @PyType_GenericAlloc(ptr @numpy_int64_type, i64 0)
  %no_number = icmp eq ptr %number_object, null
  br i1 %no_number, label %abandon, label %fill
fill:
  %number_place = getelementptr i8, ptr %number_object, i64 16
  store i64 %long, ptr %number_place
  br label %wrap
wrap:
  %wrapped = phi ptr [ %argument_value, %argument ], [ %thing, %plain ], [ %number_object, %fill ]
  %tensor = call ptr @tensor(ptr %wrapped, ptr %dtype)
  %no_tensor = icmp eq ptr %tensor, null
  br i1 %no_tensor, label %abandon, label %made_tensor
made_tensor:
  %single = icmp eq ptr %places, null
  br i1 %single, label %answer, label %store_output
answer:
  call void @Py_DecRef(ptr %result)
  ret ptr %tensor
store_output:
  %output_place = getelementptr ptr, ptr %places, i64 %output
  store ptr %tensor, ptr %output_place
  %next_output = add i64 %output, 1
  br label %each_output
finished:
  call void @Py_DecRef(ptr %result)
  %packs = icmp eq i64 %form, {PACKED}
  br i1 %packs, label %pack, label %answer_all
answer_all:
  ret ptr %whole
pack:
  %pack_place = getelementptr i64, ptr %plan, i64 6
  %pack_function = load ptr, ptr %pack_place
  %whole_place = alloca ptr
  store ptr %whole, ptr %whole_place
  %packed = call ptr @PyObject_VectorcallDict(ptr %pack_function, ptr %whole_place, i64 1, ptr null)
  call void @Py_DecRef(ptr %whole)
  ret ptr %packed
abandon:
  %any_whole = icmp ne ptr %whole, null
  br i1 %any_whole, label %drop_whole, label %lost
drop_whole:
  call void @Py_DecRef(ptr %whole)
  br label %lost
lost:
  call void @Py_DecRef(ptr %result)
  ret ptr null
nothing:
  ret ptr null
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""

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
  %descriptions = getelementptr i64, ptr %plan, i64 9
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
  %result = call ptr @run(ptr %plan, ptr %cursor, ptr %values, ptr %inputs, ptr %args, i64 %total)
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
    """What makes shortcuts of tuples; None where there is no machine code here. From disk, if it was made before."""
    if not llvm_compiler.available():
        return None
    from runtime.llvm import target

    code = text(_offset("_array"), _offset("dtype"))
    name = f"shortcut_{hashlib.sha256((code + cache.platform_key()).encode()).hexdigest()[:24]}"
    found = cache.read_code(name)
    machine_code = found or target.machine_code(code, ())
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
    make = target.methods(machine_code, _NAME, addresses)
    if found is None:
        cache.write_code(name, machine_code)
    return make


def _offset(attribute: str) -> int:
    """Where a tensor has one of its attributes, in bytes."""
    mark = object()
    tensor = EagerTensor.__new__(EagerTensor)
    setattr(tensor, attribute, mark)
    size = EagerTensor.__basicsize__ // _WORD
    words = struct.unpack(f"{size}q", ctypes.string_at(id(tensor), size * _WORD))
    return words.index(id(mark)) * _WORD
