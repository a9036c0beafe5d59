"""Which values stage, and what Python values become when they must be tensors."""

from __future__ import annotations

import math
from enum import Enum
from types import FunctionType
from typing import Any

import numpy as np

import runtime.ops.operators  # noqa: F401  installs the operators of tensors
from autograph.errors import StagingTypeError, StagingValueError, user_location
from autograph.operators.absence import NONE, absences, plain
from autograph.operators.attributes import attributes_of
from autograph.operators.choices import Choice, truth_of
from autograph.operators.libraries import is_library_module
from autograph.operators.structure import children, flatten, same_structure
from runtime import dtypes
from runtime.context import ctx
from runtime.dtypes import DType
from runtime.extension_types.values import ExtensionType
from runtime.ops.arrays.creation import zeros
from runtime.ops.arrays.shape_ops import reshape
from runtime.ops.convert import convert_to_tensor, has_dtype, is_tensor_like
from runtime.ops.elementwise.compare import logical_and, not_equal
from runtime.ops.staged_number import StagedNumber, is_number, is_text, kind_of, storage
from runtime.ops.strings.staged_string import StagedText, StandsForString
from runtime.ops.values import common_default, default_of
from runtime.ragged.tensor import RaggedTensor
from runtime.sparse import SparseTensor
from runtime.staged_list import StagedList, moved
from runtime.tensor import SymbolicTensor, Tensor
from runtime.types import TensorType

_WEAK = frozenset({bool, int, float, str, bytes, StagedNumber})
# Types of values whose truth Python decides, whatever is being traced.
DECIDED = frozenset({bool, int, float, str, type(None)})
# Types of containers that only Python runs over and looks into; asking a set costs less than asking what stages.
UNSTAGED = frozenset({tuple, dict, set, frozenset, range, str})
# Types of values that are no tensors and hide none.
_PLAIN = DECIDED | UNSTAGED | {bytes}
# Structures of tensors that are none themselves, and say so when they are converted.
_STRUCTURES = frozenset({RaggedTensor, SparseTensor})


def symbolic(value: Any) -> SymbolicTensor | None:
    """The symbolic tensor that a value is (or, for a variable or number in a trace, holds); else None."""
    kind = type(value)
    if kind is SymbolicTensor:
        return value
    if kind in _PLAIN or ctx.builder is None or isinstance(value, Tensor):
        return None
    if kind is list:
        value = moved(value)
        return None if value is None else convert_to_tensor(value)  # type: ignore[return-value]
    if kind in _STRUCTURES or kind is StagedText or not hasattr(kind, "__tf_tensor__"):
        return None
    tensor = convert_to_tensor(value)
    return tensor if type(tensor) is SymbolicTensor else None


def visible(value: Any) -> SymbolicTensor | None:
    """The symbolic tensor whose value a text shows for a value; of a number that with all of its digits."""
    return value.tensor if type(value) is StagedNumber else symbolic(value)


def truth(value: Any) -> SymbolicTensor | None:
    """The symbolic tensor that decides a condition on a value, or None if Python can decide it."""
    kind = type(value)
    if kind is SymbolicTensor:
        return value
    if kind is StagedNumber:
        return value.tensor
    if kind is StagedText:
        return value.wide()
    if kind in _PLAIN or ctx.builder is None:
        return None
    if isinstance(value, Choice):
        decided = truth_of(value)
        return None if type(decided) is bool else decided
    if (size_of := getattr(kind, "__staged_size__", None)) is not None:
        size = size_of(value)
        return None if size is None else size > 0
    staged = value if kind is StagedList else moved(value)
    return symbolic(value) if staged is None else staged.size > 0  # type: ignore[return-value]


def condition(tensor: Any, statement: str) -> Tensor:
    """A scalar tensor as the boolean that a statement tests. Raises StagingValueError for several elements.

    Where the rank isn't known, a tensor of several elements raises InvalidArgumentError when the program runs.
    """
    shape = tensor.type.shape
    if shape != ():
        if shape is not None and any(size != 1 for size in shape):
            raise StagingValueError(
                f"a tensor of shape {tensor.shape} can't decide `{statement}`",
                location=user_location(),
                cause="the truth value of a tensor with several elements is ambiguous",
                fix="use ag.reduce_any(x) or ag.reduce_all(x)",
            )
        tensor = reshape(tensor, ())
    for absence in absences(tensor, ctx.builder):
        if absence.kind == NONE:  # None doesn't hold
            return logical_and(absence.present, condition(plain(tensor), statement))
    if tensor.dtype is dtypes.bool_:
        return tensor
    return not_equal(tensor, "" if tensor.dtype is dtypes.string else 0)


def is_tensorable(value: Any) -> bool:
    """Whether a value can become a tensor beside others: a tensor, a variable, a number, a string, a NumPy array."""
    return type(value) in _WEAK or isinstance(value, (np.ndarray, np.generic)) or is_tensor_like(value)


def has_tensor(value: Any) -> bool:
    """Whether something in a structure can be a tensor."""
    return any(is_tensorable(leaf) for _, leaf in flatten(value))


def is_weak(value: Any) -> bool:
    """Whether a value takes the dtype of the tensors that it meets: a Python or staged number, or a string."""
    return type(value) in _WEAK or isinstance(value, StandsForString)


def same_python_value(one: Any, other: Any) -> bool:
    """Whether two values are interchangeable while tracing; tensors are only if they are the same object."""
    if one is other:
        return True
    if type(one) is not type(other) or is_tensor_like(one) or isinstance(one, Enum):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and bool(np.array_equal(one, other))
    items = None if isinstance(one, (list, dict)) else children(one)
    if items is not None:  # `==` would compute with the tensors in it
        return same_structure(one, other) and all(
            same_python_value(item, another) for (_, item), (_, another) in zip(items, children(other) or ())
        )
    if type(type(one).__eq__) is FunctionType and not is_library_module(type(one).__module__):
        # What a class of the program's takes for equal may differ in what the program reads of it.
        given, others = attributes_of(one), attributes_of(other)
        return (
            given is not None
            and others is not None
            and same_python_value(tuple(given), tuple(others))
            and all(same_python_value(item, others[name]) for name, item in given.items())
        )
    try:
        # Not equal to itself but the same text: a nan. And 0.0 is not -0.0.
        return bool(one == other or one != one) and (not is_weak(one) or repr(one) == repr(other))
    except Exception:
        # A comparison of the user's own that fails here says only that the two can't be taken for the same.
        return False


def number_of(value: Any) -> DType | None:
    """The default dtype of a Python number or string, known or staged; None for everything else."""
    if type(value) in (int, float, StagedNumber):
        return default_of(value)
    return dtypes.string if is_text(value) else None


def type_of(value: Any) -> TensorType:
    """The type that a staged program stores a tensorable value in: numbers in 64 bits."""
    if is_number(value):
        return TensorType(storage(default_of(value)), ())
    if type(value) is bytes or is_text(value):
        return TensorType(dtypes.string, ())
    if isinstance(value, (np.ndarray, np.generic)):
        return TensorType(dtypes.as_dtype(value.dtype), np.shape(value))
    return convert_to_tensor(value).type  # type: ignore[attr-defined]


def tensor_type_of(value: Any) -> TensorType:
    """The type of the tensor that a value becomes by itself, with default dtypes for numbers."""
    return TensorType(default_of(value), ()) if is_number(value) else type_of(value)


def common_dtype(one: Any, other: Any) -> DType | None:
    """The dtype that two tensorable values can share without changing a tensor's; None when there is none.

    Python numbers take the dtype of a tensor that can hold them. Two of them share the default of the wider one: see
    `common_number`.
    """
    if is_weak(one) and is_weak(other):
        if is_number(one) and is_number(other):
            return common_default(default_of(one), default_of(other))
        return None if is_number(one) or is_number(other) else dtypes.string
    if is_weak(one):
        one, other = other, one
    dtype = type_of(one).dtype
    if not is_weak(other):
        return dtype if type_of(other).dtype is dtype else None
    return dtype if accepts(dtype, kind_of(other)) else None


def common_number(one: Any, other: Any) -> DType | None:
    """The default of one of two Python or staged numbers, or of two such strings; None where one is something else.

    Two bools are a boolean tensor.
    """
    if is_text(one) and is_text(other):
        return dtypes.string
    if not (is_number(one) and is_number(other)):
        return None
    dtype = common_default(default_of(one), default_of(other))
    return None if dtype.is_bool else dtype


def accepts(dtype: DType, kind: type) -> bool:
    """Whether a Python value of a type can become a tensor of a dtype without loss of kind."""
    if kind is bool:
        return dtype.is_bool
    if kind is int:
        return dtype.is_integer or dtype.is_floating
    if kind is float:
        return dtype.is_floating
    return dtype is dtypes.string


def placeholder(type_: TensorType) -> Tensor:
    """A tensor of a type for a variable that has no value; nothing reads it."""
    # One of unknown rank has no rows, so that it can be what a growable array starts with.
    sizes = [0] if type_.shape is None else [size or 0 for size in type_.shape]
    if math.prod(sizes) != 1:
        return zeros(sizes, type_.dtype)
    if type_.dtype is dtypes.string:
        return convert_to_tensor(np.full(sizes, "", object), dtypes.string)
    return convert_to_tensor(np.zeros(sizes, type_.dtype.np))


def conflict(label: str, one: Any, other: Any, names: tuple[str, str]) -> StagingTypeError:
    """The error for a variable that would have two different types."""
    first, second = describe(one), describe(other)
    text = f"{label} is {first} {names[0]} and {second} {names[1]}"
    if has_dtype(one) and has_dtype(other):
        kinds = [convert_to_tensor(each).dtype.name for each in (one, other)]
        if kinds[0] != kinds[1]:
            text = f"{label} has dtype {kinds[0]} {names[0]}, but dtype {kinds[1]} {names[1]}: {first} and {second}"
    # Others than tensors and numbers can't be cast.
    can_cast = all(has_dtype(each) or isinstance(each, (bool, int, float, complex)) for each in (one, other))
    return StagingTypeError(
        text,
        location=user_location(),
        cause="a variable set under a condition on tensors, or in a loop on them, needs one type",
        fix=f"{'convert one with ag.cast' if can_cast else 'use values of one type'}, or keep them in two variables",
    )


def describe(value: Any) -> str:
    """A value's type and, for a tensor made in a trace, the line that made it."""
    if isinstance(value, StagedList):  # its elements may belong to a trace that has been dropped
        return "a list whose length is known only at run time"
    if isinstance(value, ExtensionType):
        return repr(value._type_spec)
    if not has_dtype(value):
        return "None" if value is None else f"a Python {kind_of(value).__name__}"
    tensor = convert_to_tensor(value)
    text = f"{dtypes.article(tensor.dtype.name)} tensor of shape {tensor.shape}"
    node = tensor.value.node if isinstance(tensor, SymbolicTensor) else None
    return f"{text} (line {node.span[1]})" if node is not None and node.span else text
