"""Elements of datasets: structures (tuples, dictionaries, ...) of tensors, and the specs that describe them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes, nest
from runtime.ops.convert import convert_to_tensor
from runtime.ops.joining import stack
from runtime.shapes import widen
from runtime.spec import TensorSpec
from runtime.tensor import Tensor
from runtime.types import TensorType


def as_element(value: Any) -> Any:
    """``value`` with tensors for leaves. A list is a tensor here, as in TensorFlow; other containers are structure."""
    if not isinstance(value, list) and nest.is_nested(value):
        return nest.rebuild(value, [as_element(part) for part in nest.children(value)])
    return convert_to_tensor(value)


def spec_of(element: Any) -> Any:
    """The structure of specs of an element."""
    return nest.map_structure(lambda leaf: TensorSpec(leaf.shape, leaf.dtype), element)


def row_spec(spec: Any) -> Any:
    """The spec of the rows of an element of this spec. Raises ValueError for scalars."""

    def row(leaf: TensorSpec) -> TensorSpec:
        if leaf._shape == ():
            raise ValueError("Slicing needs tensors of rank 1 or more, got a scalar.")
        return TensorSpec(None if leaf._shape is None else leaf._shape[1:], leaf.dtype)

    return nest.map_structure(row, spec)


def batched_spec(spec: Any, size: int | None) -> Any:
    """The spec of a batch of elements of this spec."""
    return nest.map_structure(
        lambda leaf: TensorSpec(None if leaf._shape is None else (size, *leaf._shape), leaf.dtype), spec
    )


def joined_spec(first: Any, second: Any) -> Any:
    """The spec that covers both. Raises TypeError or ValueError where structures or dtypes differ."""
    nest.assert_same_structure(first, second)

    def join(one: TensorSpec, other: TensorSpec) -> TensorSpec:
        if one.dtype is not other.dtype:
            raise TypeError(f"Elements of dtypes {one.dtype.name} and {other.dtype.name} don't go into one dataset.")
        return TensorSpec(widen(one._shape, other._shape), one.dtype)

    return nest.map_structure(join, first, second)


def rows_of(element: Any) -> list[Any]:
    """The rows of an eager element, an element each."""
    leaves = nest.flatten(element)
    return [nest.pack_sequence_as(element, [leaf[i] for leaf in leaves]) for i in range(len(leaves[0]))]


def stacked(elements: list[Any]) -> Any:
    """A batch of eager elements."""
    return nest.map_structure(lambda *leaves: stack(list(leaves)), *elements)


def call(function: Callable[..., Any], element: Any) -> Any:
    """``function`` of an element: a tuple's parts are arguments of their own."""
    return function(*element) if type(element) is tuple else function(element)


def fitted(value: Any, spec: Any) -> Any:
    """What a generator gave as an element of a dataset with this spec. Raises TypeError where it doesn't fit."""
    if isinstance(spec, TensorSpec):
        tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, spec.dtype)
        if not spec.covers(tensor.dtype, tensor._shape):
            raise TypeError(f"The generator gave {value!r}, which doesn't fit {spec}.")
        return tensor
    parts = nest.children(value) if nest.is_nested(value) else []
    specs = nest.children(spec)
    if len(parts) != len(specs):
        raise TypeError(f"The generator gave {value!r}, which doesn't have the structure of {spec}.")
    return nest.rebuild(spec, [fitted(part, its) for part, its in zip(parts, specs)])


def types_of(spec: Any) -> list[TensorType]:
    """The types of the leaves of a spec, in the order of `nest.flatten`."""
    return [leaf.type for leaf in nest.flatten(spec)]


def blank(type_: TensorType) -> np.ndarray:
    """An array of a type, for a place where no element is; unknown dimensions are 0."""
    shape = tuple(0 if size is None else size for size in type_.shape or ())
    if type_.dtype is dtypes.string:
        return np.full(shape, b"", dtype=object)
    return np.zeros(shape, type_.dtype._np)
