"""How inline caches call a kernel and wrap its results as tensors, in LLVM IR."""

from __future__ import annotations

from runtime.engine.fastcall.plan_encoding import (
    ARGUMENT,
    ASSIGNED,
    CALLED_INPUT,
    IN_TUPLE,
    INTEGER,
    NOTHING,
    OBJECT_INPUT,
    ONE,
    ONLY_STATUS,
    PACKED,
    SEVERAL,
    STATUS,
    TENSOR,
    ZERO,
)


def tensor(array: int, dtype: int) -> str:
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


RUN = f"""
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
  %given_place = alloca ptr
  %single_place = alloca ptr
  store ptr null, ptr %single_place
  %tensors_place = getelementptr i64, ptr %plan, i64 9
  %tensor_count = load i64, ptr %tensors_place
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
  switch i64 %form, label %in_list [ i64 {ONE}, label %in_place i64 {NOTHING}, label %in_place
    i64 {SEVERAL}, label %in_a_tuple ]
in_place:
  br label %collect
in_a_tuple:
  %tuple = call ptr @PyTuple_New(i64 %tensor_count)
  %no_tuple = icmp eq ptr %tuple, null
  br i1 %no_tuple, label %lost, label %tuple_items
tuple_items:
  %tuple_start = getelementptr i8, ptr %tuple, i64 24
  br label %collect
in_list:
  %list = call ptr @PyList_New(i64 %tensor_count)
  %no_list = icmp eq ptr %list, null
  br i1 %no_list, label %lost, label %list_items
list_items:
  %list_start = call ptr @field(ptr %list, i64 24)
  br label %collect
collect:
  %whole = phi ptr [ null, %in_place ], [ %tuple, %tuple_items ], [ %list, %list_items ]
  %places = phi ptr [ %single_place, %in_place ], [ %tuple_start, %tuple_items ], [ %list_start, %list_items ]
  br label %each_output
each_output:
  %output = phi i64 [ 0, %collect ], [ %next_output, %handed_out ]
  %more_outputs = icmp slt i64 %output, %output_count
  br i1 %more_outputs, label %one_output, label %finished
one_output:
  %output_word = call i64 @word(ptr %cursor)
  %output_kind = and i64 %output_word, 3
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
  %assigned_bit = and i64 %output_word, {ASSIGNED}
  %is_assigned = icmp ne i64 %assigned_bit, 0
  br i1 %is_assigned, label %assign, label %make
assign:
  store ptr %wrapped, ptr %given_place
  %set = call ptr @PyObject_VectorcallDict(ptr %dtype, ptr %given_place, i64 1, ptr null)
  call void @Py_DecRef(ptr %wrapped)
  %not_set = icmp eq ptr %set, null
  br i1 %not_set, label %abandon, label %was_set
was_set:
  call void @Py_DecRef(ptr %set)
  br label %handed_out
make:
  %tensor = call ptr @tensor(ptr %wrapped, ptr %dtype)
  %no_tensor = icmp eq ptr %tensor, null
  br i1 %no_tensor, label %abandon, label %store_output
store_output:
  %output_place = getelementptr ptr, ptr %places, i64 %output
  store ptr %tensor, ptr %output_place
  br label %handed_out
handed_out:
  %next_output = add i64 %output, 1
  br label %each_output
finished:
  call void @Py_DecRef(ptr %result)
  switch i64 %form, label %answer_all [ i64 {ONE}, label %answer i64 {PACKED}, label %pack i64 {NOTHING}, label %none ]
answer:
  %single = load ptr, ptr %single_place
  ret ptr %single
answer_all:
  ret ptr %whole
none:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  ret ptr @_Py_NoneStruct
pack:
  %pack_place = getelementptr i64, ptr %plan, i64 6
  %pack_function = load ptr, ptr %pack_place
  %whole_place = alloca ptr
  store ptr %whole, ptr %whole_place
  %packed = call ptr @PyObject_VectorcallDict(ptr %pack_function, ptr %whole_place, i64 1, ptr null)
  call void @Py_DecRef(ptr %whole)
  ret ptr %packed
abandon:
  %made_single = load ptr, ptr %single_place
  %any_single = icmp ne ptr %made_single, null
  br i1 %any_single, label %drop_single, label %any
drop_single:
  call void @Py_DecRef(ptr %made_single)
  br label %any
any:
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
