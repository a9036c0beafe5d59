"""The checks of inline caches in LLVM IR: that the thread neither traces nor records, that the arguments match a
pattern, and that the guards of the trace hold.
"""

from __future__ import annotations

from runtime.engine.fastcall.plan_encoding import (
    ARRAY,
    ATTRIBUTE,
    BUILDER,
    CONTEXT,
    DICT,
    EAGERLY,
    IN_CELL,
    IN_DICTIONARY,
    LIST,
    NUMERICS,
    RECORDERS,
    SCALAR,
    STATE,
    TENSOR,
    TUPLE,
    ZERO,
)

DECLARATIONS = f"""
declare ptr @PyObject_GetAttr(ptr, ptr)
declare ptr @PyDict_GetItemWithError(ptr, ptr)
declare i64 @PyDict_Size(ptr)
declare ptr @PyDict_New()
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i32 @PyErr_ExceptionMatches(ptr)
declare ptr @PyObject_VectorcallDict(ptr, ptr, i64, ptr)
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyTuple_New(i64)
declare ptr @PyList_New(i64)
declare i64 @PyLong_AsLongLong(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
@PyExc_MemoryError = external global ptr
@PyTuple_Type = external global i8
@PyList_Type = external global i8
@PyDict_Type = external global i8
@_Py_NoneStruct = external global i8
@_Py_TrueStruct = external global i8
@numpy_array_type = external global i8
@numpy_int64_type = external global i8
@{TENSOR} = external global i8
@{CONTEXT} = external global i8
@{STATE} = external global i8
@{BUILDER} = external global i8
@{RECORDERS} = external global i8
@{NUMERICS} = external global i8
@{EAGERLY} = external global i64
@{ZERO} = external global i8

; The word at the cursor, which moves on.
define internal i64 @word(ptr %cursor) alwaysinline {{
  %at = load ptr, ptr %cursor
  %value = load i64, ptr %at
  %next = getelementptr i64, ptr %at, i64 1
  store ptr %next, ptr %cursor
  ret i64 %value
}}

define internal ptr @object(ptr %cursor) alwaysinline {{
  %word = call i64 @word(ptr %cursor)
  %object = inttoptr i64 %word to ptr
  ret ptr %object
}}

define internal ptr @field(ptr %object, i64 %offset) alwaysinline {{
  %place = getelementptr i8, ptr %object, i64 %offset
  %value = load ptr, ptr %place
  ret ptr %value
}}

; Whether this thread neither traces nor records nor checks numbers, and functions aren't run eagerly.
define internal i1 @undisturbed() {{
  %eagerly = load i64, ptr @{EAGERLY}
  %graphs = icmp eq i64 %eagerly, 0
  br i1 %graphs, label %ask, label %no
ask:
  %state = call ptr @PyObject_GetAttr(ptr @{CONTEXT}, ptr @{STATE})
  %failed = icmp eq ptr %state, null
  br i1 %failed, label %error, label %look
look:
  %builder = call i1 @unset(ptr %state, ptr @{BUILDER})
  %numerics = call i1 @unset(ptr %state, ptr @{NUMERICS})
  %recorders = call ptr @PyDict_GetItemWithError(ptr %state, ptr @{RECORDERS})
  %never = icmp eq ptr %recorders, null
  br i1 %never, label %both, label %some
some:
  %size = call ptr @field(ptr %recorders, i64 16)
  %empty = icmp eq ptr %size, null
  br label %both
both:
  %none = phi i1 [ true, %look ], [ %empty, %some ]
  call void @Py_DecRef(ptr %state)
  %a = and i1 %builder, %numerics
  %b = and i1 %a, %none
  ret i1 %b
error:
  call void @PyErr_Clear()
  ret i1 false
no:
  ret i1 false
}}

define internal i1 @unset(ptr %state, ptr %name) alwaysinline {{
  %value = call ptr @PyDict_GetItemWithError(ptr %state, ptr %name)
  %absent = icmp eq ptr %value, null
  %none = icmp eq ptr %value, @_Py_NoneStruct
  %unset = or i1 %absent, %none
  ret i1 %unset
}}

; Takes the references to the values from %values to %end back.
define internal void @let_go(ptr %values, ptr %end) {{
  br label %test
test:
  %at = phi ptr [ %values, %0 ], [ %next, %each ]
  %done = icmp eq ptr %at, %end
  br i1 %done, label %out, label %each
each:
  %value = load ptr, ptr %at
  call void @Py_DecRef(ptr %value)
  %next = getelementptr ptr, ptr %at, i64 1
  br label %test
out:
  ret void
}}
"""


def fits(array: int, dtype: int) -> str:
    return f"""
; Whether the value of a tensor is a scalar or an array as described; what follows of the description is read.
define internal i1 @suits(ptr %cursor, ptr %value, i64 %kind, ptr %of) alwaysinline {{
  %value_type = call ptr @field(ptr %value, i64 8)
  %scalar = icmp eq i64 %kind, {SCALAR}
  br i1 %scalar, label %number, label %array
number:
  %right = icmp eq ptr %value_type, %of
  ret i1 %right
array:
  %wanted = call i64 @word(ptr %cursor)
  %is_array = icmp eq ptr %value_type, @numpy_array_type
  br i1 %is_array, label %measure, label %no
measure:
  %rank_place = getelementptr i8, ptr %value, i64 24
  %rank = load i32, ptr %rank_place
  %wide = sext i32 %rank to i64
  %same_rank = icmp eq i64 %wide, %wanted
  %descr = call ptr @field(ptr %value, i64 56)
  %same_descr = icmp eq ptr %descr, %of
  %flags_place = getelementptr i8, ptr %value, i64 64
  %flags = load i32, ptr %flags_place
  %laid = and i32 %flags, 257
  %is_laid = icmp eq i32 %laid, 257
  %c = and i1 %same_rank, %same_descr
  %d = and i1 %c, %is_laid
  %sizes = call ptr @field(ptr %value, i64 32)
  br i1 %d, label %axes, label %no
axes:
  %axis = phi i64 [ 0, %measure ], [ %next_axis, %axis_fits ]
  %more_axes = icmp slt i64 %axis, %wanted
  br i1 %more_axes, label %one_axis, label %yes
one_axis:
  %size_place = getelementptr i64, ptr %sizes, i64 %axis
  %size = load i64, ptr %size_place
  %wanted_size = call i64 @word(ptr %cursor)
  %any = icmp slt i64 %wanted_size, 0
  %equal = icmp eq i64 %size, %wanted_size
  %fitting = or i1 %any, %equal
  br i1 %fitting, label %axis_fits, label %no
axis_fits:
  %next_axis = add i64 %axis, 1
  br label %axes
yes:
  ret i1 true
no:
  ret i1 false
}}

; Whether an object is as the description at the cursor says, which is read to its end only then. The values of its
; tensors are put where %values points, with references to them.
define internal i1 @fits(ptr %cursor, ptr %thing, ptr %values) {{
  %kind = call i64 @word(ptr %cursor)
  %type = call ptr @field(ptr %thing, i64 8)
  switch i64 %kind, label %same [ i64 {SCALAR}, label %tensor i64 {ARRAY}, label %tensor i64 {TUPLE}, label %tuple
    i64 {LIST}, label %list i64 {DICT}, label %dictionary i64 {ATTRIBUTE}, label %attribute ]
same:
  %expected = call ptr @object(ptr %cursor)
  %is_same = icmp eq ptr %thing, %expected
  ret i1 %is_same
tensor:
  %of = call ptr @object(ptr %cursor)
  %dtype = call ptr @object(ptr %cursor)
  %is_tensor = icmp eq ptr %type, @{TENSOR}
  br i1 %is_tensor, label %look, label %no
look:
  %own = call ptr @field(ptr %thing, i64 {dtype})
  %value = call ptr @field(ptr %thing, i64 {array})
  %is_own = icmp eq ptr %own, %dtype
  %is_set = icmp ne ptr %value, null
  %both = and i1 %is_own, %is_set
  br i1 %both, label %look_more, label %no
look_more:
  %ok_value = call i1 @suits(ptr %cursor, ptr %value, i64 %kind, ptr %of)
  br i1 %ok_value, label %take, label %no
take:
  call void @Py_IncRef(ptr %value)
  %free = load ptr, ptr %values
  store ptr %value, ptr %free
  %next_free = getelementptr ptr, ptr %free, i64 1
  store ptr %next_free, ptr %values
  ret i1 true
attribute:
  %holder = call ptr @object(ptr %cursor)
  %attribute_name = call ptr @object(ptr %cursor)
  %value_kind = call i64 @word(ptr %cursor)
  %value_of = call ptr @object(ptr %cursor)
  %read = call ptr @PyObject_GetAttr(ptr %holder, ptr %attribute_name)
  %not_read = icmp eq ptr %read, null
  br i1 %not_read, label %no_attribute, label %look_at_read
look_at_read:
  %read_suits = call i1 @suits(ptr %cursor, ptr %read, i64 %value_kind, ptr %value_of)
  br i1 %read_suits, label %keep, label %drop
keep:
  %place = load ptr, ptr %values
  store ptr %read, ptr %place
  %next_place = getelementptr ptr, ptr %place, i64 1
  store ptr %next_place, ptr %values
  ret i1 true
drop:
  call void @Py_DecRef(ptr %read)
  ret i1 false
no_attribute:
  call void @PyErr_Clear()
  ret i1 false
tuple:
  %expected_type = call ptr @object(ptr %cursor)
  %is_tuple = icmp eq ptr %type, %expected_type
  %in_tuple = getelementptr i8, ptr %thing, i64 24
  br i1 %is_tuple, label %sequence, label %no
list:
  %is_list = icmp eq ptr %type, @PyList_Type
  br i1 %is_list, label %list_items, label %no
list_items:
  %in_list = call ptr @field(ptr %thing, i64 24)
  br label %sequence
sequence:
  %items = phi ptr [ %in_tuple, %tuple ], [ %in_list, %list_items ]
  %length_place = getelementptr i8, ptr %thing, i64 16
  %length = load i64, ptr %length_place
  %wanted_length = call i64 @word(ptr %cursor)
  %same_length = icmp eq i64 %length, %wanted_length
  br i1 %same_length, label %each, label %no
each:
  %index = phi i64 [ 0, %sequence ], [ %next_index, %item_fits ]
  %more = icmp slt i64 %index, %length
  br i1 %more, label %one, label %yes
one:
  %item_place = getelementptr ptr, ptr %items, i64 %index
  %item = load ptr, ptr %item_place
  %ok = call i1 @fits(ptr %cursor, ptr %item, ptr %values)
  br i1 %ok, label %item_fits, label %no
item_fits:
  %next_index = add i64 %index, 1
  br label %each
dictionary:
  %is_dictionary = icmp eq ptr %type, @PyDict_Type
  br i1 %is_dictionary, label %count, label %no
count:
  %entries = call i64 @PyDict_Size(ptr %thing)
  %wanted_entries = call i64 @word(ptr %cursor)
  %same_entries = icmp eq i64 %entries, %wanted_entries
  br i1 %same_entries, label %keys, label %no
keys:
  %entry = phi i64 [ 0, %count ], [ %next_entry, %entry_fits ]
  %more_keys = icmp slt i64 %entry, %entries
  br i1 %more_keys, label %key, label %yes
key:
  %name = call ptr @object(ptr %cursor)
  %found = call ptr @PyDict_GetItemWithError(ptr %thing, ptr %name)
  %is_found = icmp ne ptr %found, null
  br i1 %is_found, label %look_into, label %no
look_into:
  %entry_ok = call i1 @fits(ptr %cursor, ptr %found, ptr %values)
  br i1 %entry_ok, label %entry_fits, label %no
entry_fits:
  %next_entry = add i64 %entry, 1
  br label %keys
yes:
  ret i1 true
no:
  ret i1 false
}}
"""


GUARDS = f"""
; Takes so many locks; how many it has taken, which are fewer where there is an error.
define internal i64 @take_locks(ptr %cursor, i64 %count) {{
  br label %each
each:
  %index = phi i64 [ 0, %0 ], [ %next, %taken ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %one, label %out
one:
  %take = call ptr @object(ptr %cursor)
  %give = call ptr @object(ptr %cursor)
  %answer = call ptr @PyObject_VectorcallDict(ptr %take, ptr null, i64 0, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %out, label %taken
taken:
  call void @Py_DecRef(ptr %answer)
  %next = add i64 %index, 1
  br label %each
out:
  ret i64 %index
}}

; Gives locks back, of which the first words are at %words, and leaves an error that is set as it is.
define internal void @give_locks(ptr %words, i64 %count) {{
  %any = icmp sgt i64 %count, 0
  br i1 %any, label %keep, label %out
keep:
  %type = alloca ptr
  %value = alloca ptr
  %traceback = alloca ptr
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %traceback)
  br label %each
each:
  %index = phi i64 [ 0, %keep ], [ %next, %given ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %one, label %restore
one:
  %number = mul i64 %index, 2
  %second = add i64 %number, 1
  %place = getelementptr ptr, ptr %words, i64 %second
  %give = load ptr, ptr %place
  %answer = call ptr @PyObject_VectorcallDict(ptr %give, ptr null, i64 0, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %clear, label %drop
clear:
  call void @PyErr_Clear()
  br label %given
drop:
  call void @Py_DecRef(ptr %answer)
  br label %given
given:
  %next = add i64 %index, 1
  br label %each
restore:
  %type_now = load ptr, ptr %type
  %value_now = load ptr, ptr %value
  %traceback_now = load ptr, ptr %traceback
  call void @PyErr_Restore(ptr %type_now, ptr %value_now, ptr %traceback_now)
  br label %out
out:
  ret void
}}

; Whether all that a trace has baked in is still there.
define internal i1 @holds(ptr %cursor) {{
  %count = call i64 @word(ptr %cursor)
  br label %each
each:
  %index = phi i64 [ 0, %0 ], [ %next, %held ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %one, label %yes
one:
  %kind = call i64 @word(ptr %cursor)
  %holder = call ptr @object(ptr %cursor)
  switch i64 %kind, label %ask [ i64 {IN_CELL}, label %cell i64 {IN_DICTIONARY}, label %dictionary ]
ask:
  %answer = call ptr @PyObject_VectorcallDict(ptr %holder, ptr null, i64 0, ptr null)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %no, label %answered
answered:
  call void @Py_DecRef(ptr %answer)
  %yes_it_does = icmp eq ptr %answer, @_Py_TrueStruct
  br i1 %yes_it_does, label %held, label %no
cell:
  %content = call ptr @field(ptr %holder, i64 16)
  br label %compare
dictionary:
  %key = call ptr @object(ptr %cursor)
  %item = call ptr @PyDict_GetItemWithError(ptr %holder, ptr %key)
  br label %compare
compare:
  %now = phi ptr [ %content, %cell ], [ %item, %dictionary ]
  %before = call ptr @object(ptr %cursor)
  %same = icmp eq ptr %now, %before
  br i1 %same, label %held, label %no
held:
  %next = add i64 %index, 1
  br label %each
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
