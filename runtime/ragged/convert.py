"""Ragged tensors from sparse ones, and back."""

from __future__ import annotations

import numpy as np

from runtime import errors
from runtime.ops.api import (
    assert_op,
    concat,
    convert_to_tensor,
    equal,
    ones,
    reduce_all,
    reshape,
    shape,
    stack,
    tile,
    where,
)
from runtime.ops.arrays.miscellaneous import repeat
from runtime.ops.convert import static_value
from runtime.ragged import partition
from runtime.ragged.elementwise import coordinates
from runtime.ragged.partition import INT
from runtime.ragged.tensor import RaggedTensor
from runtime.sparse import SparseTensor


def to_sparse(self: RaggedTensor, name: str | None = None) -> SparseTensor:
    """The values at their places; the shape is the bounding shape."""
    places = stack(coordinates(self), 1)
    flat = self.flat_values
    if flat.shape.rank != 1:
        inner = where(ones(shape(flat)[1:]) > 0)
        count, each = shape(flat, INT)[0], shape(inner, INT)[0]
        places = concat([repeat(places, each, axis=0), tile(inner, stack([count, convert_to_tensor(1, INT)]))], 1)
        flat = reshape(flat, [-1])
    return SparseTensor(places, flat, self.bounding_shape())


def from_sparse(st_input: SparseTensor, name: str | None = None) -> RaggedTensor:
    """The rows of a sparse matrix whose values are at the beginnings of its rows.

    Raises InvalidArgumentError when there are gaps before values, TypeError for something that isn't sparse.
    """
    if not isinstance(st_input, SparseTensor):
        raise TypeError(f"Expected SparseTensor, got {type(st_input).__name__}")
    if st_input.shape.rank != 2:
        raise ValueError(f"from_sparse needs a matrix, got the shape {st_input.shape}")
    rows = RaggedTensor.from_value_rowids(st_input.values, st_input.indices[:, 0], nrows=st_input.dense_shape[0])
    places, found = partition.positions_of(rows.row_splits), st_input.indices[:, 1]
    known_a, known_b = static_value(places), static_value(found)
    message = "SparseTensor is not right-padded: the values of each row must be at its start, in order"
    if known_a is None or known_b is None:
        assert_op(reduce_all(equal(places, found)), message)
    elif not np.array_equal(known_a, known_b):
        raise errors.InvalidArgumentError(message)
    return rows


setattr(RaggedTensor, "to_sparse", to_sparse)  # noqa: B010 - the class knows no conversions
setattr(RaggedTensor, "from_sparse", staticmethod(from_sparse))  # noqa: B010
