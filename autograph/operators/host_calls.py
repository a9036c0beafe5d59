"""Calls of Python functions that a program makes when it gets there.

The arguments may be tensors, numbers and strings of the program; the result is a number, a string or a tensor, or a
`HostObject`, which stands for an object that exists only while the program runs. What kind of result it has is found
out by a trial.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from autograph.errors import StagingError, user_location
from autograph.operators.arrays import made_by_numpy
from autograph.operators.symbolic import symbolic
from runtime import dtypes, nest
from runtime.dtypes import DType
from runtime.ops.control import HOST_CALL
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.elementary import cast
from runtime.ops.flags import flagged
from runtime.ops.host_array import HostArray
from runtime.ops.staged_number import StagedNumber
from runtime.ops.strings.staged_string import StagedString, decoded
from runtime.ops.values import default_of
from runtime.types import TensorType

GENERATORS = (np.random.Generator, np.random.RandomState, random.Random)
IN_PLACE = frozenset({"shuffle"})


def refuse_in_place(name: str) -> NoReturn:
    """Raises StagingError for a method of a random generator that changes a list."""
    raise StagingError(
        f"{name}() changes a list or array in place in a traced function",
        location=user_location(),
        cause="it would be changed while the function is traced, once, and not when the program runs",
        fix="use ag.random.shuffle(x), or np.random.permutation(n) as indices",
    )


class _Place:
    """The place of a tensor's value in the arguments of a call; is_text: it holds a string of Python's."""

    __slots__ = ("index", "is_text")

    def __init__(self, index: int, is_text: bool) -> None:
        self.index = index
        self.is_text = is_text


class _Call:
    """A call with the values of tensors among its arguments, for `host_call`."""

    def __init__(self, function: Callable[..., Any], arguments: Any, count: int) -> None:
        self.function = function
        self.arguments = arguments
        self.count = count
        self.__name__ = getattr(function, "__name__", "call")

    def __call__(self, *values: Any) -> list[Any]:
        def filled(leaf: Any) -> Any:
            if type(leaf) is not _Place:
                return leaf
            value = values[leaf.index]
            if leaf.is_text:
                return decoded(value)
            return value.item() if value.ndim == 0 else value

        given, options = nest.map_structure(filled, self.arguments)
        result = self.function(*given, **options)
        if not self.count:
            return []
        flat = nest.flatten(result)
        return [_held(each) for each in flat]


def _held(value: Any) -> Any:
    """A result as an array; of an object an array that holds it."""
    if isinstance(value, (bool, int, float, complex, str, bytes, np.ndarray, np.generic)):
        return value
    made = np.empty((), object)
    made[()] = value
    return made


def run_anew(
    function: Callable[..., Any],
    given: Sequence[Any],
    options: dict[str, Any],
    trial: Callable[..., Any] | None = None,
    is_wide: bool = False,
) -> Any:
    """Calls a function whenever the program gets here; gives what stands for its result.

    trial: what tells the kind of the result. is_wide: whether numbers need 64 bits.
    """
    tensors: list[Any] = []
    is_dynamic = False

    def placed(leaf: Any) -> Any:
        nonlocal is_dynamic
        tensor = leaf.handle if type(leaf) is HostObject else symbolic(leaf)
        if tensor is None:
            return leaf
        is_dynamic |= type(leaf) is not HostObject
        tensors.append(tensor)
        return _Place(len(tensors) - 1, type(leaf) is StagedString)

    arguments = nest.map_structure(placed, (tuple(given), options))
    samples = nest.map_structure(_sample_of, (tuple(given), options))
    result = (trial or function)(*samples[0], **samples[1])
    leaves = [] if result is None else nest.flatten(result)
    is_wide = is_wide or any(type(each) is int and abs(each) >= 2**31 for each in nest.flatten(samples))
    kinds = tuple([_type_of(each, is_dynamic) for each in leaves])
    outputs = apply(HOST_CALL, tensors, {"function": _Call(function, arguments, len(leaves)), "types": kinds})
    made = iter([_value(each, sample, is_wide) for each, sample in zip(outputs, leaves)])
    return None if result is None else nest.map_structure(lambda _: next(made), result)


def _sample_of(leaf: Any) -> Any:
    """Something like the value that an argument has when the program runs."""
    if type(leaf) is HostObject:
        # The system's own source of random numbers has no state.
        return leaf.sample if isinstance(leaf.sample, random.SystemRandom) else copy.deepcopy(leaf.sample)
    tensor = symbolic(leaf)
    if tensor is None:
        return leaf
    if tensor.dtype is dtypes.string:
        return ""
    shape = tensor.type.shape
    made = np.ones([size or 1 for size in shape] if shape is not None else [], tensor.dtype.np)
    return made.item() if made.ndim == 0 else made


def _type_of(sample: Any, is_dynamic: bool) -> TensorType:
    """The type of a result. is_dynamic: sizes may depend on tensors."""
    if isinstance(sample, np.ndarray) and sample.dtype == object:  # strings
        return TensorType(dtypes.string, (None,) * sample.ndim)
    if isinstance(sample, (np.ndarray, np.generic)) and sample.dtype.kind in "biufc":
        shape = tuple([None if is_dynamic else size for size in np.shape(sample)])
        return TensorType(dtypes.as_dtype(sample.dtype), shape)
    if type(sample) in (bool, int, float, complex):
        return TensorType(dtypes.as_dtype(np.asarray(sample).dtype) if type(sample) is not int else dtypes.int64, ())
    return TensorType(dtypes.string, ())


def _value(tensor: Any, sample: Any, is_wide: bool) -> Any:
    """What a result is in the trace."""
    number = sample.item() if isinstance(sample, np.generic) else sample
    if type(number) is int or type(number) is float:
        return StagedNumber(_wide(tensor), _default(number, is_wide))
    if type(number) is str:
        return StagedString(tensor)
    if type(number) is bool:
        return flagged(tensor)
    if type(number) in (bytes, complex) or (isinstance(sample, np.ndarray) and sample.dtype == object):
        return tensor
    if isinstance(sample, np.ndarray) and sample.dtype.kind in "biufc":
        return tensor if tensor.dtype.is_bool else made_by_numpy(HostArray(tensor))
    return HostObject(tensor, sample)


def _wide(tensor: Any) -> Any:
    """A number in 64 bits."""
    return cast(tensor, dtypes.float64 if tensor.dtype.is_floating else dtypes.int64)


def _default(number: Any, is_wide: bool) -> DType:
    if is_wide:
        return dtypes.float64 if type(number) is float else dtypes.int64
    return default_of(number)


class HostObject:
    """An object that exists only while the program runs.

    handle   a string tensor that holds it; sample: an object of its kind
    """

    __slots__ = ("handle", "sample")
    __ag_priority__ = 1

    def __init__(self, handle: Any, sample: Any) -> None:
        self.handle = handle
        self.sample = sample

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        if callable(getattr(self.sample, name)):
            return lambda *given, **options: self._called(name, given, options)
        return run_anew(getattr, (self, name), {}, is_wide=True)

    def _called(self, name: str, given: Sequence[Any], options: dict[str, Any]) -> Any:
        if name in IN_PLACE:
            refuse_in_place(name)
        is_wide = "bits" in name or not isinstance(self.sample, GENERATORS)
        return run_anew(_method, (self, name, *given), options, is_wide=is_wide)

    def __repr__(self) -> str:
        return f"<a {type(self.sample).__name__} of the run>"


def _method(owner: Any, name: str, *given: Any, **options: Any) -> Any:
    return getattr(owner, name)(*given, **options)
