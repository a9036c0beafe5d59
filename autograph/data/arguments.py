"""What the methods of datasets are given: functions, counts, shapes."""

from __future__ import annotations

import contextvars
import operator
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from autograph.data.elements import arguments_of, as_element, spec_of
from autograph.data.none_values import holds_none, showing
from autograph.function.polymorphic import function
from autograph.operators.calls import CONVERTING, converted_argument, is_library
from autograph.operators.symbolic import symbolic
from runtime import composites, dtypes, nest
from runtime.context import init_scope
from runtime.errors import InvalidArgumentError
from runtime.ops.convert import convert_to_tensor, static_value
from runtime.shapes import TensorShape, as_shape
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor

_PROBING: contextvars.ContextVar[bool] = contextvars.ContextVar("probing", default=False)


def _as_result(value: Any) -> Any:
    """What a function of elements gives as an element. A list is a tuple, as in TensorFlow: `ag.py_function` and others
    give the parts of an element that way. Deeper in an element it is a tensor."""
    return as_element(tuple(value) if isinstance(value, list) else value)


def traced_function(user_function: Callable[..., Any], as_elements: bool = False) -> Any:
    """A function of elements as an `ag.function`; it is converted, unless `do_not_convert` keeps the caller from it, or
    it belongs to a library, as what is called in a function does.

    as_elements: its arguments or results may hold None, or its results lists.
    """
    if as_elements:

        def converted(*parts: Any) -> Any:
            return converted_argument(user_function)(*parts)

        traced = function(showing(converted, _as_result), autograph=False)
    else:
        of_library = isinstance(user_function, FunctionType) and is_library(user_function)
        traced = function(user_function, autograph=CONVERTING.get() is not False and not of_library)
    traced.may_change_arguments = True
    return traced


def result_spec(traced: Any, *specs: Any) -> Any:
    """The spec of what a traced function returns for arguments of these specs."""
    return traced.get_concrete_function(*specs).structured_outputs


def traced_for(user_function: Callable[..., Any], *specs: Any) -> tuple[Any, Any]:
    """The spec of what a function returns for arguments of these specs, and the traced function."""
    traced = traced_function(user_function, holds_none(specs))
    made = result_spec(traced, *specs)
    if any(leaf is None for leaf in nest.flatten(made)) or _holds_list(made):
        traced = traced_function(user_function, as_elements=True)
        made = result_spec(traced, *specs)
    return made, traced


def _holds_list(structure: Any) -> bool:
    if isinstance(structure, list):
        return True
    return nest.is_nested(structure) and any(map(_holds_list, nest.children(structure)))


def has_datasets(spec: Any) -> bool:
    """Whether elements of a spec hold datasets."""
    return any(hasattr(leaf, "element_spec") for leaf in composites.flatten(spec))


def probed(user_function: Callable[..., Any], *specs: Any) -> Any:
    """The spec of what a function gives that may give datasets: it is called once on symbolic elements."""
    found: list[Any] = []

    def probe(*element: Any) -> Any:
        found.append(spec_of(_as_result(converted_argument(user_function)(*element))))
        return convert_to_tensor(0)

    token = _PROBING.set(True)
    try:
        result_spec(function(probe, autograph=False), *specs)
    finally:
        _PROBING.reset(token)
    return found[-1]


def mapped_spec(user_function: Callable[..., Any], spec: Any) -> tuple[Any, Callable[..., Any]]:
    """The spec of what a function gives for elements of a spec, and what is to be called for them: the traced function,
    or its Python where elements hold datasets."""
    if not has_datasets(spec):
        try:
            return traced_for(user_function, *arguments_of(spec))
        except TypeError:
            with_datasets = False
            try:
                made = probed(user_function, *arguments_of(spec))
                with_datasets = has_datasets(made)
            except TypeError:
                pass
            if not with_datasets:
                raise
            return made, showing(converted_argument(user_function), _as_result)
    return probed(user_function, *arguments_of(spec)), showing(converted_argument(user_function), _as_result)


def flat_shapes(types: Any, shapes: Any) -> list[Any]:
    """The shapes that belong to the leaves of ``types``; a shape may itself be a list."""
    if not nest.is_nested(types):
        return [shapes]
    return [
        shape for kind, part in zip(nest.children(types), nest.children(shapes)) for shape in flat_shapes(kind, part)
    ]


def padded_shapes(spec: Any, shapes: Any) -> list[Any]:
    """For each leaf of elements of a spec the shape that it is filled up to: None is as much as the largest needs.

    Raises ValueError if a shape's rank isn't the leaf's.
    """
    leaves = nest.flatten(spec)
    found = []
    for leaf, shape in zip(leaves, [None] * len(leaves) if shapes is None else flat_shapes(spec, shapes)):
        wanted = as_shape(leaf._shape if shape is None else _without_minus_one(shape))
        if wanted is None or (leaf._shape is not None and len(wanted) != len(leaf._shape)):
            raise ValueError(f"The padded shape {shape} is not compatible with the shape {leaf.shape} of elements")
        found.append(wanted)
    return found


def padding(leaves: list[Any], values: Any) -> list[Any]:
    """For each leaf the scalar tensor that it is filled up with: by default 0 or the empty string; one value may be
    that of all. It is symbolic only where a program computes it."""
    given = [None] * len(leaves) if values is None else nest.flatten(values)
    if len(given) == 1:
        given = given * len(leaves)
    if len(given) != len(leaves):
        raise ValueError(f"padding_values must have {len(leaves)} values, one for each tensor, got {len(given)}")
    fill = [("" if leaf.dtype is dtypes.string else 0) if v is None else v for leaf, v in zip(leaves, given)]
    return [known_tensor(value, leaf.dtype) for leaf, value in zip(leaves, fill)]


def known_tensor(value: Any, dtype: Any = None) -> Tensor:
    """A tensor of a value, with its value also while a function is traced, unless it is computed there."""
    if any(symbolic(leaf) is not None for leaf in nest.flatten(value)):
        tensor = convert_to_tensor(value, dtype)
        known = static_value(tensor)
        return tensor if known is None else EagerTensor(known, tensor.dtype)
    with init_scope():
        return convert_to_tensor(value, dtype)


def _without_minus_one(shape: Any) -> Any:
    if isinstance(shape, TensorShape):
        return shape
    return [None if size in (-1, None) else int(size) for size in shape]


def generated_spec(output_types: Any, output_shapes: Any) -> Any:
    """The specs of what a generator yields, from its dtypes and shapes."""
    if output_types is None:
        raise TypeError("from_generator needs output_signature")
    if output_shapes is None:
        return nest.map_structure(lambda kind: TensorSpec(None, kind), output_types)
    pairs = zip(nest.flatten(output_types), flat_shapes(output_types, output_shapes))
    return nest.pack_sequence_as(output_types, [TensorSpec(shape, kind) for kind, shape in pairs])


class SomeInt(int):
    """Stands for a count that isn't known while a function is called only for the spec of what it gives."""


def static_int(value: Any, what: str) -> int:
    """A count that must be known when the dataset is made."""
    if isinstance(value, SymbolicTensor) and _PROBING.get():
        return SomeInt(1)
    try:
        return operator.index(value)
    except TypeError as error:
        raise TypeError(f"{what} must be an integer that is known when the dataset is made, got {value!r}") from error


def sizes(value: Any, what: str) -> int | list[int]:
    """A count, or a list of them for a list or vector. Raises ValueError for a tensor of higher rank."""
    if isinstance(value, (list, tuple, np.ndarray)) or (isinstance(value, Tensor) and value.shape.rank != 0):
        known = np.asarray(known_value(value, what))
        if known.ndim > 1:
            raise ValueError(f"{what} takes a size or a vector of sizes, got an array of rank {known.ndim}")
        if known.ndim == 1:
            return [static_int(each, what) for each in known]
    return static_int(value, what)


def known_value(value: Any, what: str) -> Any:
    """A tensor's value as NumPy has it, which must be known when the dataset is made."""
    tensor = as_element(value)
    if isinstance(tensor, SymbolicTensor):
        if _PROBING.get():
            return tensor
        raise TypeError(f"{what} must be known when the dataset is made, got {tensor!r}")
    return tensor.numpy()


def positive_int(value: Any, what: str, default: int, automatic: int) -> int:
    """A count of at least 1; the default for None, ``automatic`` for AUTOTUNE (-1). Raises ValueError for others."""
    number = default if value is None else static_int(value, what)
    if number == -1:
        return automatic
    if number < 1:
        raise ValueError(f"{what} must be at least 1, got {number}")
    return number


def shard_numbers(num_shards: Any, index: Any) -> tuple[int, int]:
    """Raises InvalidArgumentError for an index that isn't below the number of shards."""
    count, first = static_int(num_shards, "shard"), static_int(index, "shard")
    if count < 1 or not 0 <= first < count:
        raise InvalidArgumentError(f"index must be between 0 and {count - 1} (currently index = {first}).")
    return count, first
