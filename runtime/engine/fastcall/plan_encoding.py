"""The encoding of plans for the machine code of inline caches.

The callable is a built-in function whose `self` is a tuple; the tuple's first item is a bytes object of 64-bit words,
addresses or numbers:

    fallback, most tensors, most inputs, number of plans, plan...

    plan        its length, kernel, inputs, outputs, status, result kind, pack, failed, no memory, result tensors,
                positional arguments, keyword arguments, name..., argument..., guards, guard..., locks, lock...,
                variables, argument..., input..., output...
    argument    0 object                      this very object
                1 type dtype                  a tensor of rank 0, its value of NumPy's type
                2 descr dtype rank size...    a tensor that is an array; a negative size matches any
                3 type count item...          a tuple, or a named tuple of this type
                4 count item...               a list
                5 count (key item)...         a dictionary
                6 variable name 1 type, or 6 variable name 2 descr rank size...
                                              whatever the call's arguments are, an attribute of a variable
    guard       0 dictionary key object, 1 cell object, or 2 function that returns whether it holds
    lock        function that acquires it, function that releases it
    input       0 tensor, 1 object, or 2 function that returns it
    output      0 result dtype, 1 result dtype (an int64, returned as Python's int), or 2 tensor dtype; with 4 added the
                value isn't wrapped as a tensor, but passed to the function that stands in place of the dtype

Tensors are numbered in the order of the arguments; variables follow. status: 0, the kernel returns none; 1, it returns
nothing else; 2, it is the first of its results. result kind: 0, one tensor; 1, a tuple of tensors; 2, what `pack` makes
of a list of tensors; 3, None; with 4 added if the kernel returns its results in a tuple.
"""

from __future__ import annotations

# Symbols of objects that the machine code refers to.
TENSOR, TENSOR_ARRAY, TENSOR_DTYPE, CONTEXT, STATE, BUILDER, RECORDERS, NUMERICS, EAGERLY, ZERO = (
    f"autograph_{name}"
    for name in (
        "tensor_type", "tensor_array", "tensor_dtype", "context", "state", "builder", "recorders", "numerics",
        "eagerly", "zero",
    )
)  # fmt: skip
# The first words of a plan.
(
    PLAN_LENGTH, PLAN_KERNEL, PLAN_INPUTS, PLAN_OUTPUTS, PLAN_STATUS, PLAN_RESULT_KIND, PLAN_PACK, PLAN_FAILED,
    PLAN_NO_MEMORY, PLAN_TENSORS, PLAN_ARGUMENTS,
) = range(11)  # fmt: skip
OBJECT, SCALAR, ARRAY, TUPLE, LIST, DICT, ATTRIBUTE = range(7)
IN_DICTIONARY, IN_CELL, ASKED = range(3)
TENSOR_INPUT, OBJECT_INPUT, CALLED_INPUT = range(3)
RESULT, INTEGER, ARGUMENT = range(3)
ASSIGNED = 4
NO_STATUS, ONLY_STATUS, STATUS = range(3)
ONE, SEVERAL, PACKED, NOTHING = range(4)
IN_TUPLE = 4
