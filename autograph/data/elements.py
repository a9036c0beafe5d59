"""Elements of datasets: structures (tuples, dictionaries, ...) of tensors, and the specs that describe them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.data.none_values import NoneTensorSpec
from autograph.data.rows import (
    batch_of_leaves,
    batched_spec_of_leaf,
    dense_argument,
    joined_spec_of_leaves,
    number_of_rows,
    row_of_leaf,
    row_spec_of_leaf,
    spec_of_leaf,
)  # fmt: skip
from runtime import composites, dtypes, nest
from runtime.context import ctx
from runtime.ops.convert import convert_to_tensor
from runtime.spec import TensorSpec
from runtime.tensor import DeviceTensor, EagerTensor, Tensor
from runtime.types import TensorType


def as_element(value: Any) -> Any:
    """``value`` with tensors for leaves, and `NoneTensorSpec` for None.

    A list is a tensor here, as in TensorFlow; other containers are structure. What isn't a tensor yet becomes one on
    the CPU, whatever the `device` block around says: a dataset may be larger than a GPU's memory.
    """
    if type(value) in (EagerTensor, DeviceTensor, NoneTensorSpec):
        return value
    if value is None:
        return NoneTensorSpec()
    if hasattr(value, "element_spec") and hasattr(value, "_as_element"):
        return value._as_element()
    if not isinstance(value, list) and nest.is_nested(value):
        return nest.rebuild(value, [as_element(part) for part in nest.children(value)])
    device, ctx.device = ctx.device, None
    try:
        return convert_to_tensor(value)
    finally:
        ctx.device = device


def spec_of(element: Any) -> Any:
    """The structure of specs of an element."""
    return composites.map_structure(spec_of_leaf, element)


def row_spec(spec: Any) -> Any:
    """The spec of the rows of an element of this spec. Raises ValueError for scalars."""
    return composites.map_structure(row_spec_of_leaf, spec)


def batched_spec(spec: Any, size: int | None) -> Any:
    """The spec of a batch of elements of this spec."""
    return composites.map_structure(lambda leaf: batched_spec_of_leaf(leaf, size), spec)


def joined_spec(first: Any, second: Any) -> Any:
    """The spec that covers both. Raises TypeError or ValueError where structures or dtypes differ."""
    composites.assert_same_structure(first, second)
    return composites.map_structure(joined_spec_of_leaves, first, second)


def row(element: Any, index: Any) -> Any:
    """The row of an element at an index, an int or an int64 scalar."""
    return composites.map_structure(lambda leaf: row_of_leaf(leaf, index), element)


def rows_of(element: Any) -> list[Any]:
    """The rows of an eager element, an element each."""
    first = next(leaf for leaf in composites.flatten(element) if not isinstance(leaf, NoneTensorSpec))
    return [row(element, index) for index in range(int(number_of_rows(first)))]


def stacker(spec: Any) -> Callable[[list[Any]], Any]:
    """A function that stacks a list of eager elements of this spec into a batch."""
    specs = composites.flatten(spec)
    only_tensors = all(isinstance(its, TensorSpec) for its in specs)
    flatten = nest.flatten if only_tensors else composites.flatten
    pack = nest.packer(spec) if only_tensors else functools.partial(composites.pack_sequence_as, spec)

    def stack(elements: list[Any]) -> Any:
        leaves = zip(*map(flatten, elements))
        return pack([batch_of_leaves(list(rows), its) for rows, its in zip(leaves, specs)])

    return stack


def arguments_of(spec: Any) -> tuple:
    """The specs that a traced function is given for elements of this spec: one for each part of a tuple."""
    dense = composites.map_structure(dense_argument, spec)
    return dense if type(dense) is tuple else (dense,)


def call(function: Callable[..., Any], element: Any) -> Any:
    """``function`` of an element: a tuple's parts are arguments of their own."""
    return function(*element) if type(element) is tuple else function(element)


def fitter(spec: Any) -> Callable[[Any], Any]:
    """Returns the function that converts a generator's values to elements of this spec, or raises TypeError."""
    if isinstance(spec, TensorSpec):
        dtype, shape = spec.dtype, spec._shape
        kind = dtype._np

        def fit(value: Any) -> Any:
            if value.__class__ is np.ndarray and value.dtype == kind and value.shape == shape:
                return EagerTensor(value.copy(), dtype)
            tensor = value if isinstance(value, Tensor) else convert_to_tensor(value, dtype)
            if not spec.covers(tensor.dtype, tensor._shape):
                raise TypeError(f"The generator yielded {value!r}, which doesn't match {spec}.")
            return tensor

        return fit
    if isinstance(spec, NoneTensorSpec):
        return _fit_none
    fits = list(map(fitter, nest.children(spec)))

    def fit_parts(value: Any) -> Any:
        parts = value if value.__class__ is tuple else nest.children(value) if nest.is_nested(value) else ()
        if len(parts) != len(fits):
            raise TypeError(f"The generator yielded {value!r}, whose structure differs from {spec}.")
        made = [fit(part) for fit, part in zip(fits, parts)]
        return tuple(made) if spec.__class__ is tuple else nest.rebuild(spec, made)

    return fit_parts


def _fit_none(value: Any) -> Any:
    if value is not None:
        raise TypeError(f"The generator yielded {value!r} where its output_signature says None.")
    return NoneTensorSpec()


def types_of(spec: Any) -> list[TensorType]:
    """The types of the leaves of a spec, in the order of `nest.flatten`."""
    return [leaf.type for leaf in nest.flatten(spec)]


def blank(type_: TensorType) -> np.ndarray:
    """A placeholder array of a type, for a missing element; unknown dimensions are 0."""
    shape = tuple(0 if size is None else size for size in type_.shape or ())
    if type_.dtype is dtypes.string:
        return np.full(shape, b"", dtype=object)
    return np.zeros(shape, type_.dtype._np)
