"""The words that tell a shortcut (`engine/fastcall/inline_cache.py`) what calls to expect and what to do with them.

A shortcut is a function of Python's whose `self` is a tuple; the tuple's first item is a bytes object full of 64-bit
words, addresses or numbers:

    what to call otherwise, most tensors, most inputs, plans, plan...

    plan        its words, kernel, inputs, outputs, status, form, pack, failed, no memory, tensors in the result,
                arguments by position, names, name..., argument..., guards, guard..., locks, lock..., variables,
                argument..., input..., output...
    argument    0 object                      the very same object
                1 type dtype                  a tensor of rank 0, its value of NumPy's type
                2 descr dtype rank size...    a tensor that is an array; a size below 0 may be any
                3 type count item...          a tuple, or of a type made by `collections.namedtuple`
                4 count item...               a list
                5 count (key item)...         a dictionary
                6 variable name 1 type, or 6 variable name 2 descr rank size...
                                              whatever the call's arguments are, a variable's attribute
    guard       0 dictionary key object, 1 cell object, or 2 function that says whether it holds
    lock        function that takes it, function that gives it back
    input       0 tensor, 1 object, or 2 function that gives it
    output      0 result dtype, 1 result dtype (an int64, which comes as Python's int), or 2 tensor dtype; with 4 added
                it is not a tensor, but what a function in place of the dtype is called with

Tensors are numbered as they stand in the arguments; variables come after them. status: 0, the kernel gives none; 1, it
gives nothing else; 2, it is the first of its results. form: 0, one tensor; 1, a tuple of tensors; 2, what `pack` makes
of a list of tensors; 3, None; with 4 added where the kernel gives its results in a tuple.
"""

from __future__ import annotations

# The objects that the code names.
TENSOR, CONTEXT, STATE, BUILDER, RECORDERS, NUMERICS, EAGERLY, ZERO = (
    f"autograph_{name}"
    for name in ("tensor_type", "context", "state", "builder", "recorders", "numerics", "eagerly", "zero")
)
OBJECT, SCALAR, ARRAY, TUPLE, LIST, DICT, ATTRIBUTE = range(7)
IN_DICTIONARY, IN_CELL, ASKED = range(3)
TENSOR_INPUT, OBJECT_INPUT, CALLED_INPUT = range(3)
RESULT, INTEGER, ARGUMENT = range(3)
ASSIGNED = 4
NO_STATUS, ONLY_STATUS, STATUS = range(3)
ONE, SEVERAL, PACKED, NOTHING = range(4)
IN_TUPLE = 4
