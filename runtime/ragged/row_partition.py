"""`RowPartition`: how the values of a ragged tensor are divided into rows, without the values."""

from __future__ import annotations

from typing import Any

from runtime.ops.api import cast, convert_to_tensor
from runtime.ops.api import range as range_
from runtime.ragged import partition
from runtime.ragged.partition import INT
from runtime.ragged.tensor import RaggedTensor
from runtime.tensor import Tensor


class RowPartition:
    """A division of values into rows; made by a `from_...` method."""

    def __init__(self, row_splits: Any) -> None:
        self._splits = cast(convert_to_tensor(row_splits), INT)

    @classmethod
    def from_row_splits(cls, row_splits: Any, validate: bool = True) -> RowPartition:
        """Row i has the values from `row_splits[i]` to before `row_splits[i + 1]`."""
        return cls(RaggedTensor.from_row_splits(_numbers(row_splits[-1]), row_splits, validate=validate).row_splits)

    @classmethod
    def from_row_lengths(cls, row_lengths: Any, validate: bool = True) -> RowPartition:
        """Row i has `row_lengths[i]` values."""
        return cls(partition.splits_of(cast(convert_to_tensor(row_lengths), INT)))

    @classmethod
    def from_value_rowids(cls, value_rowids: Any, nrows: Any = None, validate: bool = True) -> RowPartition:
        """Value i is in row `value_rowids[i]`; these numbers don't descend."""
        ids = cast(convert_to_tensor(value_rowids), INT)
        return cls(RaggedTensor.from_value_rowids(ids, ids, nrows=nrows, validate=validate).row_splits)

    @classmethod
    def from_uniform_row_length(cls, uniform_row_length: Any, nvals: Any, nrows: Any = None) -> RowPartition:
        """Each row has the same number of values."""
        return cls(RaggedTensor.from_uniform_row_length(_numbers(nvals), uniform_row_length, nrows).row_splits)

    def row_splits(self) -> Tensor:
        """Where each row begins, followed by the number of values: int64, one more entry than rows."""
        return self._splits

    def row_lengths(self) -> Tensor:
        """How many values each row has."""
        return partition.lengths_of(self._splits)

    def row_starts(self) -> Tensor:
        """Where each row begins."""
        return self._splits[:-1]

    def row_limits(self) -> Tensor:
        """Where each row ends: the index after its last value."""
        return self._splits[1:]

    def value_rowids(self) -> Tensor:
        """The row of each value."""
        return partition.ids_of(self._splits)

    def nrows(self) -> Tensor:
        """The number of rows."""
        return cast(convert_to_tensor(partition.rows_in(self._splits)), INT)

    def nvals(self) -> Tensor:
        """The number of values."""
        return self._splits[-1]

    @property
    def dtype(self) -> Any:
        """int64."""
        return INT

    def __repr__(self) -> str:
        return f"RowPartition(row_splits={self._splits})"


def _numbers(count: Any) -> Tensor:
    return range_(cast(convert_to_tensor(count), INT))
