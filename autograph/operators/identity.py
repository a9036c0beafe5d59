"""``is``, ``isinstance`` and ``type`` of values that are known only when the program runs.

What Python says of the value is said of what stands for it: a flag may be True or False, a number of the program is
an int or a float, and a variable that is None on some ways is None there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.errors import StagingTypeError, user_location
from autograph.operators.absence import NONE, absences, none_test, outer_source, plain
from autograph.operators.choices import Alternatives, Choice
from autograph.standard_library.deques import Deque
from runtime import dtypes
from runtime.context import ctx
from runtime.ops.elementwise.compare import equal, logical_and, logical_not, where
from runtime.ops.flags import flag_of, flagged
from runtime.ops.staged_number import StagedNumber, is_number, is_text, kind_of
from runtime.staged_array import WritableArray
from runtime.tensor import SymbolicTensor, Tensor

# Nodes whose results may be Python's on some ways through the program.
_CHOOSING = frozenset({"cond", "while", "letrec", "switch"})


def same_value(left: Any, right: Any) -> Any:
    """``left is right`` of two that aren't one object, of which neither is a container or a choice."""
    for one, other in ((left, right), (right, left)):
        if other is None:
            return none_test(one)
        if type(other) is bool:
            return _is_bool(one, other)
    if flag_of(left) is not None and flag_of(right) is not None:
        return flagged(equal(left, right), left, right)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return _same_tensor(left, right)
    of_numbers = StagedNumber in (type(left), type(right)) and is_number(left) and is_number(right)
    if of_numbers or (is_text(left) and is_text(right)):
        kind = "numbers" if of_numbers else "strings"
        raise StagingTypeError(
            f"`is` between {kind} of which one is known only when the program runs",
            location=user_location(),
            cause=f"whether equal {kind} are one object is up to the Python interpreter",
            fix="compare them with ==",
        )
    return False


def _same_tensor(one: Any, other: Any) -> Any:
    """Whether two tensors are one object: it may have been chosen from two."""
    if one is other:
        return True
    for tensor, another in ((one, other), (other, one)):
        if type(tensor) is SymbolicTensor and tensor.chosen is not None:
            condition, *sides = tensor.chosen
            if condition is None:
                continue
            first, second = (_same_tensor(side, another) for side in sides)
            if first is second:
                return first
            if _is_visible(condition):
                return flagged(where(condition, first, second))
    if any(type(each) is SymbolicTensor and _is_chosen(each) for each in (one, other)):
        raise StagingTypeError(
            "`is` between tensors of which a branch or loop has chosen one",
            location=user_location(),
            cause="which tensor of Python's it is, is known only when the program runs, and the program holds a copy",
            fix="keep a flag or an index beside the tensor, and ask that",
        )
    return False


def _is_visible(tensor: Any) -> bool:
    """Whether the current region can use a tensor."""
    builder = ctx.builder
    while builder is not None and type(tensor) is SymbolicTensor and builder is not tensor.builder:
        builder = builder.parent
    return builder is not None


def _is_bool(value: Any, wanted: bool) -> Any:
    """``value is True`` or ``value is False``."""
    flag = flag_of(value)
    if flag is None:
        if type(value) is SymbolicTensor and value.dtype is dtypes.bool_ and _is_chosen(value):
            raise StagingTypeError(
                f"`is {wanted}` of a boolean tensor that a branch or loop has chosen",
                location=user_location(),
                cause=f"on some ways it is a tensor, which is no Python bool, on others it may be {wanted} itself",
                fix=f"test it with `{'if flag' if wanted else 'if not flag'}`, or compare it with `== {wanted}`",
            )
        return False
    flag.use()
    found = plain(value)
    if not wanted:
        found = flagged(logical_not(found), value)
    for absence in absences(value, ctx.builder):
        if absence.kind == NONE:
            found = flagged(logical_and(absence.present, found), value)
        else:
            absence.demand()
    return found


def _is_chosen(tensor: SymbolicTensor) -> bool:
    """Whether a branch or loop gives a tensor."""
    value, builder = outer_source(ctx.builder, tensor.value)
    if value.node is not None:
        return value.node.op.name in _CHOOSING
    # An input: an argument of the function, or what a loop carries.
    return builder.parent is not None or value.graph is not builder.graph


def is_instance(value: Any, classes: Any) -> Any:
    """``isinstance(value, classes)``: a bool, or a boolean tensor where the value may be None."""
    found = _is_instance(value, classes)
    is_none = False if value is None else none_test(value)
    if type(is_none) is bool:
        return isinstance(None, classes) if is_none else found
    of_none = isinstance(None, classes)
    if type(found) is bool and of_none == found:
        return found
    return flagged(is_none if of_none else logical_not(is_none))


def _is_instance(value: Any, classes: Any) -> Any:
    if type(value) is StagedNumber or is_text(value):
        return issubclass(kind_of(value), classes)
    if isinstance(value, WritableArray):
        return isinstance(value, classes) or isinstance(np.empty(0), classes)
    if type(value) is Deque:
        return isinstance(value, classes) or issubclass(deque, classes)
    flag = flag_of(value)
    if flag is None:
        return _of_either(value, lambda each: _is_instance(each, classes), "isinstance", isinstance(value, classes))
    flag.use()
    return issubclass(bool, classes)


def _of_either(value: Any, function: Callable[[Any], Any], question: str, otherwise: Any) -> Any:
    """What a question about classes gives for a tensor: of which a Python value may be in its place."""
    if type(value) is not SymbolicTensor:
        return otherwise
    value.is_asked = True
    if value.chosen is None:
        return otherwise
    condition, one, other = value.chosen
    first, second = function(one), function(other)
    if first is second:
        return first
    is_told = condition is not None and _is_visible(condition)
    if is_told and isinstance(first, type) and isinstance(second, type):
        return Choice(where(condition, 0, 1), Alternatives.of(first, second))
    if not (is_told and type(first) is type(second) is bool):
        raise StagingTypeError(
            f"`{question}` of a value that is a tensor on some ways through the program and a Python value on others",
            location=user_location(),
            cause="which it is, is known only when the program runs, and the program holds a tensor for both",
            fix="make it a tensor everywhere with ag.constant, or keep a flag beside it that tells what it is",
        )
    return flagged(where(condition, first, second))


def type_of_value(*arguments: Any, **options: Any) -> Any:
    """``type(value)``, or the making of a class: of a value that may be None a choice of classes."""
    if len(arguments) != 1 or options:
        return type(*arguments, **options)
    (value,) = arguments
    found = _type(value)
    is_none = False if value is None else none_test(value)
    if type(is_none) is bool:
        return type(None) if is_none else found
    return Choice(where(is_none, 0, 1), Alternatives.of(type(None), found))


def _type(value: Any) -> type:
    if type(value) is StagedNumber or is_text(value):
        return kind_of(value)
    if type(value) is Deque:
        return deque
    flag = flag_of(value)
    if flag is None:
        return _of_either(value, _type, "type", type(value))
    flag.use()
    return bool
