"""`DynamicRaggedShape`: what `ag.shape` gives for a ragged tensor.

[[10 87 12] [19 53]]   rows 2, of lengths (3, 2)      shape[0] is 2; shape[1] isn't one number
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.api import cast, convert_to_tensor, equal, logical_and, maximum, pad, reduce_all
from runtime.ops.api import shape as shape_of
from runtime.ops.convert import static_value
from runtime.ragged import partition
from runtime.ragged.tensor import RaggedTensor
from runtime.tensor import Tensor


class DynamicRaggedShape:
    """The shape of a ragged tensor: how its rows are divided, and the shape of its flat values.

    `shape[axis]` is the size of a dimension in which all rows agree, and `shape[:n]` the shape of the first dimensions.
    """

    __ag_composite__ = "ragged shape"

    def __init__(self, splits: Sequence[Tensor], uniform: Sequence[int | None], inner_shape: Tensor) -> None:
        self._splits = tuple(splits)
        self._uniform = tuple(uniform)
        self._inner = inner_shape

    @classmethod
    def from_tensor(cls, t: RaggedTensor, dtype: Any = dtypes.int64) -> DynamicRaggedShape:
        """The shape of a ragged tensor."""
        splits, uniform = [], []
        while isinstance(t, RaggedTensor):
            splits.append(t.row_splits)
            uniform.append(t.uniform_row_length)
            t = t.values
        return cls(splits, uniform, shape_of(t, dtype))

    @classmethod
    def from_lengths(
        cls, lengths: Sequence[Any], num_row_partitions: int | None = None, dtype: Any = dtypes.int64
    ) -> DynamicRaggedShape:
        """The shape with a size for each dimension, or the lengths of its rows, in the form of `static_lengths`.

        lengths: ints, and tuples of ints. num_row_partitions: into how many of the dimensions below the first the
        values are divided; by default up to the last tuple. Raises ValueError for lengths that don't fit together.
        """
        listed = [axis for axis, each in enumerate(lengths) if np.ndim(each)]
        last = max(listed, default=0)
        divided = last if num_row_partitions is None else num_row_partitions
        if 0 in listed or not last <= divided <= max(len(lengths) - 1, 0):
            raise ValueError(
                f"{lengths} can't be divided into {divided} dimensions of rows: the first and all inner dimensions "
                "have one size"
            )
        splits, uniform = [], []
        rows = lengths[0] if lengths else 1
        for axis, each in enumerate(lengths[1 : divided + 1], 1):
            sizes = np.asarray(each) if np.ndim(each) else np.full(rows, each)
            if len(sizes) != rows:
                raise ValueError(
                    f"dimension {axis} of {lengths} has the lengths of {len(sizes)} rows, but there are {rows}"
                )
            splits.append(partition.splits_of(convert_to_tensor(sizes, dtypes.int64)))
            uniform.append(None if np.ndim(each) else each)
            rows = int(sizes.sum())
        inner = [rows, *lengths[divided + 1 :]] if lengths else []
        return cls(splits, uniform, convert_to_tensor(inner, dtype))

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return self._uniform, (*self._splits, self._inner)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> DynamicRaggedShape:
        return cls(components[:-1], metadata, components[-1])

    @property
    def dtype(self) -> DType:
        return self._inner.dtype

    @property
    def num_row_partitions(self) -> int:
        """The number of dimensions below the first that are divided into rows."""
        return len(self._splits)

    @property
    def inner_shape(self) -> Tensor:
        """The shape of the flat values, a vector."""
        return self._inner

    @property
    def inner_rank(self) -> int | None:
        return (self._inner._shape or (None,))[0]

    @property
    def rank(self) -> int | None:
        inner = self.inner_rank
        return None if inner is None else inner + self.num_row_partitions

    def is_uniform(self, axis: int) -> bool:
        """Whether all rows have the same length along an axis. Raises IndexError for an axis out of range."""
        rank = self.rank
        if axis < 0 or (rank is not None and axis >= rank):
            raise IndexError(f"Expected axis={axis} < rank={rank}")
        return not 1 <= axis <= self.num_row_partitions or self._uniform[axis - 1] is not None

    def static_lengths(self, ragged_lengths: bool = True) -> list[Any]:
        """For each dimension its size, or a tuple of its rows' lengths (None without ``ragged_lengths``).

        None where it isn't known while tracing.
        """
        result: list[Any] = []
        if self._splits:
            rows = partition.rows_in(self._splits[0])
            result.append(rows if isinstance(rows, int) else None)
        for splits, uniform in zip(self._splits, self._uniform):
            known = static_value(partition.lengths_of(splits)) if uniform is None and ragged_lengths else None
            result.append(uniform if known is None else tuple(map(int, known)))
        sizes = static_value(self._inner)
        inner = [None] * (self.inner_rank or 0) if sizes is None else [int(size) for size in sizes]
        return result + inner[1 if self._splits else 0 :]

    def __getitem__(self, index: Any) -> Any:
        """The size of a dimension, or the shape of the dimensions of a slice that begins at 0.

        Raises ValueError for a dimension in which rows differ, IndexError for one that isn't there.
        """
        count, rank = self.num_row_partitions, self.rank
        if isinstance(index, slice):
            start, stop, step = index.indices(count + 1 if rank is None else rank)
            if start == 0 and step == 1:
                return self._first(stop)
            return convert_to_tensor([self[axis] for axis in range(start, stop, step)], self.dtype)
        axis = index + (rank or 0) if index < 0 else index
        if not self.is_uniform(axis):
            raise ValueError(f"Index {axis} is not uniform")
        if axis == 0 and self._splits:
            return cast(convert_to_tensor(partition.rows_in(self._splits[0])), self.dtype)
        if axis <= count and self._splits:
            return convert_to_tensor(self._uniform[axis - 1], self.dtype)
        return self._inner[axis - count]

    def _first(self, count: int) -> DynamicRaggedShape:
        """The shape of the first ``count`` dimensions."""
        if count > self.num_row_partitions:
            return DynamicRaggedShape(self._splits, self._uniform, self._inner[: count - self.num_row_partitions])
        kept = max(count - 1, 0)
        if kept == 0:
            sizes = convert_to_tensor([self[0]] if count else [], self.dtype)
        else:
            total = cast(self._splits[kept - 1][-1], self.dtype)
            sizes = convert_to_tensor([total])
        return DynamicRaggedShape(self._splits[:kept], self._uniform[:kept], sizes)

    def with_flat_values(self, values: Tensor) -> Any:
        """The tensor of this shape with given flat values, which are of shape `inner_shape`."""
        for splits, uniform in zip(reversed(self._splits), reversed(self._uniform)):
            values = RaggedTensor(values, splits, uniform)  # type: ignore[assignment]
        return values

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, DynamicRaggedShape):
            return NotImplemented
        if self.num_row_partitions != other.num_row_partitions or self.inner_rank != other.inner_rank:
            return convert_to_tensor(False)
        same: Tensor = convert_to_tensor(True)
        for a, b in zip((*self._splits, self._inner), (*other._splits, other._inner)):
            same = logical_and(same, _same(cast(a, dtypes.int64), cast(b, dtypes.int64)))
        return same

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        lengths = ", ".join(map(str, self.static_lengths()))
        return f"<DynamicRaggedShape lengths=[{lengths}] num_row_partitions={self.num_row_partitions}>"


def _same(a: Tensor, b: Tensor) -> Tensor:
    """Whether two vectors, maybe of different lengths, are equal; their elements are 0 or more."""
    missing_b, missing_a = (maximum(shape_of(x)[0] - shape_of(y)[0], 0) for x, y in ((a, b), (b, a)))
    longer = [pad(x, [[0, n]], constant_values=-1) for x, n in ((a, missing_a), (b, missing_b))]
    return reduce_all(equal(*longer))
