"""How values are divided into rows. All forms are int64 vectors; `splits` is the one that ragged tensors keep.

    rows [3 1 4 1] [] [5 9]      splits [0 4 4 6]   lengths [4 0 2]   ids [0 0 0 0 2 2]   positions [0 1 2 3 0 1]

Everything is written with public ops, so it works in traced functions too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.api import (
    assert_op,
    cast,
    concat,
    convert_to_tensor,
    cumsum,
    equal,
    gather,
    greater_equal,
    reduce_all,
    reduce_max,
    shape,
    subtract,
)
from runtime.ops.api import range as range_
from runtime.ops.arrays.miscellaneous import repeat
from runtime.ops.arrays.segments import unsorted_segment_sum
from runtime.ops.convert import static_value
from runtime.tensor import Tensor

INT = dtypes.int64


def as_index(value: Any) -> Tensor:
    """A partitioning vector (or number) as int64."""
    return cast(convert_to_tensor(value, dtype_hint=INT), INT)


def count(tensor: Any) -> Any:
    """The size of the first dimension of a tensor, ragged or not: an int where it is known, else an int64 tensor."""
    if not isinstance(tensor, Tensor):
        return rows_in(tensor.row_splits)
    static = tensor._shape
    if static is not None and static and static[0] is not None:
        return static[0]
    return shape(tensor, INT)[0]


def rows_in(splits: Tensor) -> Any:
    """How many rows there are: an int where it is known, else a tensor."""
    return count(splits) - 1


def lengths_of(splits: Tensor) -> Tensor:
    """The length of each row."""
    return subtract(splits[1:], splits[:-1])


def splits_of(lengths: Tensor) -> Tensor:
    """Splits from the lengths of rows."""
    return concat([convert_to_tensor([0], INT), cumsum(lengths)], 0)


def ids_of(splits: Tensor) -> Tensor:
    """For each value the number of its row."""
    splits = convert_to_tensor(splits)
    return repeat(range_(rows_in(splits), dtype=INT), lengths_of(splits))


def positions_of(splits: Tensor) -> Tensor:
    """For each value its place in its row."""
    ids = ids_of(splits)
    return range_(count(ids), dtype=INT) - gather(splits, ids)


def spans(starts: Tensor, lengths: Tensor, step: int = 1) -> Tensor:
    """starts[0], starts[0] + step, ... (lengths[0] of them), starts[1], ..."""
    splits = splits_of(lengths)
    ids = ids_of(splits)
    places = range_(count(ids), dtype=INT) - gather(splits, ids)
    return gather(starts, ids) + places * step


def check(splits: Tensor, values: Any) -> None:
    """Raises InvalidArgumentError (at once, or when the function runs) for splits that don't divide the values."""
    if splits._shape is not None and len(splits._shape) != 1:
        raise ValueError(f"row_splits must be a vector, got shape {splits.shape}")
    known, total = static_value(splits), count(values)
    if known is None or not isinstance(total, int):
        what = "Arguments do not form a valid RaggedTensor: row_splits must"
        assert_op(equal(splits[0], 0), f"{what} start with 0; they are", data=[splits])
        assert_op(reduce_all(greater_equal(lengths_of(splits), 0)), f"{what} not decrease; they are", data=[splits])
        assert_op(equal(splits[-1], total), f"{what} end with the number of values; they are", data=[splits])
        return
    array = np.asarray(known)
    problem = None
    if array.size == 0 or array[0] != 0:
        problem = "they must start with 0"
    elif (np.diff(array) < 0).any():
        problem = "they must not decrease"
    elif array[-1] != total:
        problem = f"they must end with the number of values, {total}"
    if problem:
        raise errors.InvalidArgumentError(
            f"Arguments do not form a valid RaggedTensor: row_splits are {array.tolist()}, but {problem}."
        )


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = INT, name: Any = None
) -> Tensor:
    """Splits from the number of each value's row, in order; `num_segments` rows, or up to the last that has values."""
    ids = as_index(segment_ids)
    if num_segments is None:
        num_segments = reduce_max(concat([convert_to_tensor([-1], INT), ids], 0)) + 1
    return cast(splits_of(unsorted_segment_sum(ids * 0 + 1, ids, num_segments)), out_type)
