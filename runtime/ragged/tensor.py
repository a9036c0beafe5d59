"""`RaggedTensor`: rows of different lengths.

    values      a tensor, or a ragged tensor where the rows are ragged in their turn
    row_splits  int64, one more than there are rows: row i is values[row_splits[i]:row_splits[i + 1]]

A ragged tensor is a structure of its components (`runtime.nest`), so it goes in and out of traced functions, loops and
branches, and gradients flow to `flat_values`. Indexing is in `indexing.py`, operators in `elementwise.py`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from runtime import errors, shapes
from runtime.dtypes import DType
from runtime.ops.api import (
    boolean_mask,
    cast,
    concat,
    convert_to_tensor,
    gather,
    maximum,
    not_equal,
    reduce_any,
    reduce_max,
    reshape,
    stack,
)
from runtime.ops.api import range as range_
from runtime.ops.arrays.miscellaneous import sequence_mask
from runtime.ops.arrays.segments import unsorted_segment_sum
from runtime.ragged import partition
from runtime.ragged.partition import INT, as_index
from runtime.ragged.spec import RaggedTensorSpec
from runtime.ragged.text import text_of
from runtime.shapes import Shape, TensorShape
from runtime.spec import TensorSpec
from runtime.tensor import EagerTensor, Tensor


class RaggedTensor:
    """A tensor with one or more ragged dimensions; make one with `ag.ragged.constant` or a `from_...` method."""

    __ag_priority__ = 1
    __ag_composite__ = "ragged"
    __ag_tensor__ = True  # for `is_tensor`
    __array_ufunc__ = None  # `numpy_array + ragged` is ours

    def __init__(self, values: Any, row_splits: Tensor, uniform_row_length: int | None = None) -> None:
        self._values = values
        self._splits = row_splits
        self._uniform = uniform_row_length

    # --- made from values and a partition --------------------------------------------------------------------------

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row i is `values[row_splits[i]:row_splits[i + 1]]`.

        Raises InvalidArgumentError for splits that don't begin with 0, descend, or don't end with the number of values.
        """
        parts, splits = _values(values), as_index(row_splits)
        if validate:
            partition.check(splits, parts)
        return cls(parts, splits)

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows of the given lengths."""
        return cls.from_row_splits(values, partition.splits_of(as_index(row_lengths)), validate=validate)

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that begin at the given places."""
        parts = _values(values)
        end = reshape(convert_to_tensor(partition.count(parts), INT), [1])
        return cls.from_row_splits(parts, concat([as_index(row_starts), end], 0), validate=validate)

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Rows that end before the given places."""
        splits = concat([convert_to_tensor([0], INT), as_index(row_limits)], 0)
        return cls.from_row_splits(values, splits, validate=validate)

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """`value_rowids`, which mustn't descend, says for each value which row it belongs to.

        nrows: the number of rows; default: up to the last that has a value.
        """
        parts, ids = _values(values), as_index(value_rowids)
        if nrows is None:
            last = reduce_max(concat([convert_to_tensor([-1], INT), ids], 0))
            nrows = int(last) + 1 if isinstance(last, EagerTensor) else last + 1
        if validate and isinstance(ids, EagerTensor) and (np.diff(ids._array) < 0).any():
            raise errors.InvalidArgumentError(f"value_rowids must not decrease, got {ids.numpy().tolist()}")
        ones = cast(partition.range_(partition.count(ids), dtype=INT) * 0 + 1, INT)
        return cls.from_row_lengths(parts, unsorted_segment_sum(ones, ids, nrows), validate=validate)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: int, nrows: Any = None, validate: bool = True, name: str | None = None
    ) -> RaggedTensor:
        """Rows of one length; `nrows` is needed only if that is 0."""
        parts, length = _values(values), int(uniform_row_length)
        if length < 0:
            raise ValueError(f"uniform_row_length must not be negative, got {length}")
        if nrows is None:
            if length == 0:
                raise ValueError("nrows must be given when uniform_row_length is 0")
            nrows = partition.count(parts) // length
        splits = range_(convert_to_tensor(nrows, INT) + 1) * length
        if validate:
            partition.check(splits, parts)
        return cls(parts, splits, length)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Sequence[Any], name: str | None = None, validate: bool = True
    ) -> Any:
        """Several ragged dimensions, the splits of the outermost first."""
        return _nested(cls.from_row_splits, flat_values, nested_row_splits, validate)

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Sequence[Any], name: str | None = None, validate: bool = True
    ) -> Any:
        """Several ragged dimensions, the lengths of the outermost first."""
        return _nested(cls.from_row_lengths, flat_values, nested_row_lengths, validate)

    @classmethod
    def from_tensor(
        cls, tensor: Any, lengths: Any = None, padding: Any = None, ragged_rank: int = 1, name: str | None = None
    ) -> RaggedTensor:
        """The rows of a tensor of rank 2 or more, cut to `lengths`, or before the `padding` at their ends.

        Raises ValueError when both are given.
        """
        x = convert_to_tensor(tensor)
        shape = x._shape
        if shape is None or len(shape) <= ragged_rank or ragged_rank < 1:
            raise ValueError(
                f"ragged_rank must be at least 1 and below the tensor's rank, got {ragged_rank} for {x.shape}"
            )
        if lengths is not None and padding is not None:
            raise ValueError("Specify lengths or padding, but not both")
        if lengths is None and padding is None:
            if ragged_rank > 1:
                inner = cls.from_tensor(_merge(x), ragged_rank=ragged_rank - 1)
                return cls(inner, range_(_size(x, 0) + 1) * _size(x, 1), shape[1])
            return cls(_merge(x), range_(_size(x, 0) + 1) * _size(x, 1), shape[1])
        if ragged_rank != 1:
            raise ValueError("lengths and padding are for ragged_rank=1")
        width = shape[1] if shape[1] is not None else _size(x, 1)
        if padding is not None:
            kept = not_equal(x, convert_to_tensor(padding, x.dtype))
            if len(shape) > 2:
                kept = reduce_any(kept, axis=list(range(2, len(shape))))
            places = cast(kept, INT) * (range_(width, dtype=INT) + 1)
            lengths = reduce_max(concat([places, _zeros(x)], 1), axis=1)  # no columns: no values
        rows = as_index(lengths)
        return cls.from_row_lengths(boolean_mask(x, sequence_mask(rows, width)), rows)

    # --- facts -------------------------------------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape; ragged dimensions are None."""
        splits = self._splits._shape
        rows = None if splits is None or splits[0] is None else splits[0] - 1
        inner = self._values.shape
        return TensorShape(None if inner.rank is None else [rows, self._uniform, *inner[1:]])

    @property
    def _shape(self) -> Shape:
        return shapes.as_shape(self.shape)

    def get_shape(self) -> TensorShape:
        return self.shape

    @property
    def ragged_rank(self) -> int:
        """How many of the dimensions are partitioned into rows."""
        return 1 + (self._values.ragged_rank if isinstance(self._values, RaggedTensor) else 0)

    @property
    def values(self) -> Any:
        """The rows, one after the other."""
        return self._values

    @property
    def flat_values(self) -> Tensor:
        """The innermost values, as a tensor."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def row_splits(self) -> Tensor:
        return self._splits

    @property
    def uniform_row_length(self) -> int | None:
        """The length of all rows, where they were made with one length."""
        return self._uniform

    @property
    def nested_row_splits(self) -> tuple[Tensor, ...]:
        """The splits of each ragged dimension, outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()
        return (self._splits, *inner)

    def nested_row_lengths(self, name: str | None = None) -> tuple[Tensor, ...]:
        """The lengths of the rows of each ragged dimension, outermost first."""
        return tuple(map(partition.lengths_of, self.nested_row_splits))

    def nrows(self, out_type: Any = INT, name: str | None = None) -> Tensor:
        """The number of rows."""
        return cast(convert_to_tensor(partition.rows_in(self._splits), INT), out_type)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The length of each row along a ragged dimension."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return partition.lengths_of(self._splits)
        if not isinstance(self._values, RaggedTensor):
            raise ValueError(f"axis {axis} isn't ragged: the ragged rank is {self.ragged_rank}")
        return self.with_values(self._values.row_lengths(axis - 1))

    def row_starts(self, name: str | None = None) -> Tensor:
        """Where each row begins in `values`."""
        return self._splits[:-1]

    def row_limits(self, name: str | None = None) -> Tensor:
        """Where each row ends in `values`."""
        return self._splits[1:]

    def value_rowids(self, name: str | None = None) -> Tensor:
        """For each value the number of its row."""
        return partition.ids_of(self._splits)

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = INT) -> Tensor:
        """The smallest shape that all rows fit into; with `axis`, those dimensions of it."""
        zero = convert_to_tensor([0], INT)
        sizes = [convert_to_tensor(partition.rows_in(self._splits), INT)]
        for splits in self.nested_row_splits:
            sizes.append(maximum(reduce_max(concat([partition.lengths_of(splits), zero], 0)), 0))
        flat = self.flat_values
        sizes += [convert_to_tensor(_size(flat, i), INT) for i in range(1, len(flat._shape or ()))]
        shape = cast(stack(sizes), out_type)
        return shape if axis is None else gather(shape, axis)

    # --- other values, other rows --------------------------------------------------------------------------------

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows with other values; their number must be the same."""
        values = _values(new_values)
        mine, theirs = partition.count(self._values), partition.count(values)
        if isinstance(mine, int) and isinstance(theirs, int) and mine != theirs:
            raise ValueError(f"the rows need {mine} values, got {theirs}")
        return RaggedTensor(values, self._splits, self._uniform)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """A ragged tensor with the same row partitions and `new_values` as its innermost values."""
        if isinstance(self._values, RaggedTensor):
            return self.with_values(self._values.with_flat_values(new_values))
        return self.with_values(new_values)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """The dimensions from `outer_axis` to `inner_axis` as one."""
        if not 0 <= outer_axis < inner_axis:
            raise ValueError(f"need 0 <= outer_axis < inner_axis, got {outer_axis} and {inner_axis}")
        if outer_axis > 0:
            inner = self._values
            if isinstance(inner, RaggedTensor):
                if outer_axis == 1:
                    splits = inner._splits
                    joined = RaggedTensor(inner._values, gather(splits, self._splits))
                    return joined if inner_axis == 2 else joined.merge_dims(1, inner_axis - 1)
                return self.with_values(inner.merge_dims(outer_axis - 1, inner_axis - 1))
            raise ValueError(
                "merge_dims merges ragged dimensions only; to merge those after them, apply ag.reshape to flat_values"
            )
        if inner_axis == 1:
            return self._values
        if isinstance(self._values, RaggedTensor):
            return self._values.merge_dims(0, inner_axis - 1)
        return _merge(self._values) if inner_axis == 2 else _merge(_merge(self._values))

    # --- Python values -------------------------------------------------------------------------------------------

    def to_list(self) -> list[Any]:
        """Nested lists of Python numbers (bytes for strings). Raises ValueError while a function is traced."""
        splits = _array(self._splits)
        rows = self._values.to_list() if isinstance(self._values, RaggedTensor) else _array(self._values).tolist()
        return [rows[a:b] for a, b in itertools.pairwise(splits)]

    def numpy(self) -> np.ndarray:
        """An array: of numbers if all rows have one length, else an object array of arrays."""
        splits = _array(self._splits)
        values = self._values.numpy() if isinstance(self._values, RaggedTensor) else _array(self._values)
        rows = [values[a:b] for a, b in itertools.pairwise(splits)]
        if rows and all(len(row) == len(rows[0]) for row in rows):
            return np.stack(rows)
        if not rows:
            return np.zeros((0, self._uniform or 0, *values.shape[1:]), values.dtype)
        result = np.empty(len(rows), object)
        result[:] = rows
        return result

    def __iter__(self) -> Iterator[Any]:
        rows = partition.rows_in(self._splits)
        if not isinstance(rows, int):
            raise errors.OperatorNotAllowedInGraphError(
                "Iterating over a ragged tensor whose number of rows isn't known while the function is traced; use "
                "ag.map_fn outside of it, or ag.ragged.map_flat_values."
            )
        return (self[i] for i in range(rows))  # type: ignore[index]

    def __len__(self) -> int:
        rows = partition.rows_in(self._splits)
        if not isinstance(rows, int):
            raise TypeError("len of a ragged tensor isn't known while the function is traced; use nrows().")
        return rows

    def __bool__(self) -> bool:
        raise TypeError("RaggedTensor may not be used as a boolean.")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.numpy()

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        raise TypeError(
            f"This function doesn't accept ragged tensors: {self}. Use to_tensor() to pad the rows, flat_values for "
            "all values, or ag.ragged.map_flat_values to apply a function to them."
        )

    def __hash__(self) -> int:
        raise TypeError("RaggedTensor is unhashable.")

    # --- as a structure ------------------------------------------------------------------------------------------

    @property
    def _type_spec(self) -> RaggedTensorSpec:
        return RaggedTensorSpec(self.shape, self.dtype, self.ragged_rank)

    def _uniform_lengths(self) -> tuple[int | None, ...]:
        inner = self._values._uniform_lengths() if isinstance(self._values, RaggedTensor) else ()
        return (self._uniform, *inner)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return self._uniform_lengths(), (self.flat_values, *self.nested_row_splits)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        flat, *nested = components
        if isinstance(flat, TensorSpec):
            return RaggedTensorSpec.__tf_unflatten__(metadata, components)
        result: Any = flat
        for splits, uniform in zip(reversed(nested), reversed(metadata)):
            result = cls(result, splits, uniform)
        return result

    def __repr__(self) -> str:
        parts = (self.flat_values, *self.nested_row_splits)
        if all(isinstance(part, EagerTensor) for part in parts):
            return f"<tf.RaggedTensor {text_of(self.numpy())}>"
        return f"tf.RaggedTensor(values={self._values}, row_splits={self._splits})"

    __str__ = __repr__


RaggedTensorSpec.value_type = RaggedTensor


def _nested(make: Callable[..., Any], flat_values: Any, partitions: Sequence[Any], validate: bool) -> Any:
    """Values cut into rows again and again, by the innermost partition first."""
    result = _values(flat_values)
    for rows in reversed(list(partitions)):
        result = make(result, rows, validate=validate)
    return result


def _values(values: Any) -> Any:
    if isinstance(values, RaggedTensor):
        return values
    tensor = convert_to_tensor(values)
    if tensor._shape == ():
        raise ValueError("the values of a ragged tensor need at least one dimension, got a scalar")
    return tensor


def _array(tensor: Tensor) -> np.ndarray:
    if not isinstance(tensor, EagerTensor):
        raise ValueError("a ragged tensor has no values while its function is being traced")
    return np.asarray(tensor._array)


def _size(tensor: Tensor, axis: int) -> Any:
    static = tensor._shape
    if static is not None and static[axis] is not None:
        return convert_to_tensor(static[axis], INT)
    from_shape = partition.shape(tensor, INT)
    return from_shape[axis]


def _merge(tensor: Tensor) -> Tensor:
    """The first two dimensions as one."""
    static = tensor._shape or ()
    return reshape(tensor, concat([[-1], partition.shape(tensor)[2:]], 0) if None in static[2:] else [-1, *static[2:]])


def _zeros(tensor: Tensor) -> Tensor:
    return partition.range_(_size(tensor, 0), dtype=INT)[:, None] * 0
