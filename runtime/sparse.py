"""`SparseTensor`: the coordinates and values of the elements that aren't zero. `ag.sparse` works on it.

    indices      int64, shape (count, rank), in row-major order      values  shape (count,)      dense_shape  (rank,)

It is a structure of these three (`runtime.nest`), so it goes in and out of traced functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors, shapes
from runtime.dtypes import DType
from runtime.ops.api import (
    add,
    boolean_mask,
    cast,
    concat,
    convert_to_tensor,
    cumprod,
    ensure_shape,
    equal,
    expand_dims,
    fill,
    gather,
    gather_nd,
    less,
    logical_and,
    maximum,
    not_equal,
    reduce_all,
    reduce_sum,
    reshape,
    tensor_scatter_nd_update,
    transpose,
    where,
)
from runtime.ops.api import range as range_
from runtime.ops.api import reduce_max as dense_max
from runtime.ops.api import shape as shape_of
from runtime.ops.arrays import sets
from runtime.ops.arrays.segments import unsorted_segment_max, unsorted_segment_sum
from runtime.ops.arrays.sorting import argsort, unique
from runtime.ops.convert import static_value
from runtime.ops.dispatch import call
from runtime.ops.entries import entries
from runtime.spec import TensorSpec
from runtime.tensor import SymbolicTensor, Tensor

_INT = dtypes.int64


class SparseTensor:
    """A tensor that stores only some of its elements; the others are zero.

    indices: the coordinates, shape (count, rank). values: one for each. dense_shape: the shape of the whole tensor.
    Raises ValueError when these don't fit together. Operations expect coordinates in row-major order (`reorder`).
    """

    __ag_priority__ = 1
    __ag_composite__ = "sparse"
    __ag_tensor__ = True  # for `is_tensor`
    _said: shapes.Shape = None  # what `set_shape` has added

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self._indices = cast(convert_to_tensor(indices, dtype_hint=_INT), _INT)
        self._values = convert_to_tensor(values)
        self._dense_shape = cast(convert_to_tensor(dense_shape, dtype_hint=_INT), _INT)
        # What has no known rank here has one when the program runs.
        self._indices, self._values, self._dense_shape = (
            part if part._shape is not None else ensure_shape(part, [None] * rank)
            for part, rank in ((self._indices, 2), (self._values, 1), (self._dense_shape, 1))
        )
        where_, what, whole = self._indices._shape, self._values._shape, self._dense_shape._shape
        if where_ == (0,) and whole is not None:  # an empty list has no second dimension
            self._indices = convert_to_tensor(static_value(self._indices).reshape(0, whole[0]))
            where_ = self._indices._shape
        if where_ is None or len(where_) != 2 or what is None or len(what) != 1 or whole is None or len(whole) != 1:
            raise ValueError(
                f"a SparseTensor needs indices of rank 2, values and dense_shape of rank 1, "
                f"got shapes {where_}, {what} and {whole}"
            )
        shapes.merge((where_[0], where_[1]), (what[0], whole[0]))

    @property
    def indices(self) -> Tensor:
        return self._indices

    @property
    def values(self) -> Tensor:
        return self._values

    @property
    def dense_shape(self) -> Tensor:
        return self._dense_shape

    @property
    def dtype(self) -> DType:
        return self._values.dtype

    @property
    def shape(self) -> shapes.TensorShape:
        """The static shape of the whole."""
        sizes = static_value(self._dense_shape)
        if sizes is None and isinstance(self._dense_shape, SymbolicTensor):
            sizes = entries(self._dense_shape)
        if sizes is not None:
            known = shapes.as_shape([int(d) if isinstance(d, (int, np.integer)) else None for d in sizes])
        else:
            rank = (self._dense_shape._shape or (None,))[0]
            known = None if rank is None else (None,) * rank
        return shapes.TensorShape(shapes.merge(known, self._said))

    def set_shape(self, shape: Any) -> None:
        """Adds knowledge of the static shape. Raises ValueError for a shape that contradicts it."""
        if not self.shape.is_compatible_with(shape):
            raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {shape}")
        self._said = shapes.as_shape(self.shape.merge_with(shape))

    def get_shape(self) -> shapes.TensorShape:
        return self.shape

    def with_values(self, new_values: Any) -> SparseTensor:
        """The same places with other values."""
        return SparseTensor(self._indices, new_values, self._dense_shape)

    @property
    def _type_spec(self) -> SparseTensorSpec:
        return SparseTensorSpec.from_value(self)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        return None, (self._indices, self._values, self._dense_shape)

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        indices, values, dense_shape = components
        if isinstance(values, TensorSpec):
            rank = (dense_shape._shape or (None,))[0]
            return SparseTensorSpec(metadata or (None if rank is None else [None] * rank), values.dtype)
        made = cls.__new__(cls)
        made._indices, made._values, made._dense_shape = indices, values, dense_shape
        made._said = metadata
        return made

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        raise TypeError(
            "This function doesn't accept sparse tensors. Convert them with ag.sparse.to_dense, or use the function "
            "for sparse tensors in ag.sparse."
        )

    def __neg__(self) -> SparseTensor:
        return self.with_values(-self._values)

    def __mul__(self, other: Any) -> SparseTensor:
        return self._scaled(other, lambda x, y: x * y)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self._scaled(other, lambda x, y: x / y)

    def _scaled(self, other: Any, function: Callable[[Any, Any], Any]) -> SparseTensor:
        """With a number, or with a tensor that broadcasts to the shape: the places without values stay zero."""
        factor = convert_to_tensor(other, dtype_hint=self.dtype)
        if factor._shape:
            from_end = -len(factor._shape)
            places = self._indices[:, from_end:]
            sizes = shape_of(factor, _INT)
            factor = gather_nd(factor, where(not_equal(sizes, 1), places, places * 0))
        return self.with_values(function(self._values, factor))

    def __hash__(self) -> int:
        raise TypeError("SparseTensor is unhashable.")

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self._indices!s}, values={self._values!s}, dense_shape={self._dense_shape!s})"


class SparseTensorSpec:
    """Describes a sparse tensor, for `input_signature`."""

    __slots__ = ("_shape", "dtype")
    spec_text = True
    __ag_composite__ = "sparse"
    value_type = SparseTensor

    def __init__(self, shape: Any = None, dtype: Any = dtypes.float32) -> None:
        self._shape = shapes.as_shape(shape)
        self.dtype = dtypes.as_dtype(dtype)

    @property
    def shape(self) -> shapes.TensorShape:
        return shapes.TensorShape(self._shape)

    @classmethod
    def from_value(cls, value: SparseTensor) -> SparseTensorSpec:
        """The spec of a sparse tensor."""
        return cls(value.shape, value.dtype)

    def __tf_flatten__(self) -> tuple[Any, tuple]:
        rank = None if self._shape is None else len(self._shape)
        # What it says of the shape, tensors that are put together by it say too.
        return self._shape, (TensorSpec([None, rank], _INT), TensorSpec([None], self.dtype), TensorSpec([rank], _INT))

    @classmethod
    def __tf_unflatten__(cls, metadata: Any, components: Sequence[Any]) -> Any:
        return SparseTensor.__tf_unflatten__(metadata, components)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SparseTensorSpec) and (self._shape, self.dtype) == (other._shape, other.dtype)

    def __hash__(self) -> int:
        return hash((self._shape, self.dtype))

    def __repr__(self) -> str:
        return f"SparseTensorSpec({self.shape!r}, {self.dtype!r})"


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements that aren't zero (or empty strings)."""
    x = convert_to_tensor(tensor)
    zero = convert_to_tensor("" if x.dtype is dtypes.string else 0, x.dtype)
    places = where(not_equal(x, zero))
    return SparseTensor(places, gather_nd(x, places), shape_of(x, _INT))


def need_sparse(value: Any) -> SparseTensor:
    """The value. Raises TypeError for another than a sparse tensor."""
    if not isinstance(value, SparseTensor):
        raise TypeError(
            f"Input must be a SparseTensor, got {value!r}, a {type(value).__name__}; convert a tensor with "
            "ag.sparse.from_dense"
        )
    return value


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> Tensor:
    """The dense tensor, with `default_value` (0, or an empty string) in the other places."""
    sp_input = need_sparse(sp_input)
    blank = default_value if default_value is not None else ("" if sp_input.dtype is dtypes.string else 0)
    whole = fill(sp_input.dense_shape, convert_to_tensor(blank, sp_input.dtype))
    return tensor_scatter_nd_update(whole, sp_input.indices, sp_input.values)


def linear_places(indices: Tensor, dense_shape: Tensor) -> Tensor:
    """The place of each coordinate in row-major order."""
    strides = cumprod(concat([dense_shape[1:], convert_to_tensor([1], _INT)], 0), reverse=True)
    return reduce_sum(indices * strides, axis=1)


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The coordinates in row-major order."""
    sp_input = need_sparse(sp_input)
    order = argsort(linear_places(sp_input.indices, sp_input.dense_shape), stable=True)
    return SparseTensor(gather(sp_input.indices, order), gather(sp_input.values, order), sp_input.dense_shape)


def sparse_row(sp_input: SparseTensor, index: Any) -> SparseTensor:
    """What has some index, an int or an int64 scalar, in the first dimension, without that dimension."""
    kept = retain(sp_input, equal(sp_input.indices[:, 0], cast(convert_to_tensor(index), _INT)))
    row = SparseTensor(kept.indices[:, 1:], kept.values, sp_input.dense_shape[1:])
    if sp_input.shape.rank is not None:
        row.set_shape(sp_input.shape[1:])
    return row


def sparse_concat(
    axis: int, sp_inputs: Sequence[SparseTensor], expand_nonconcat_dims: bool = False, name: Any = None
) -> Any:
    """Concatenates sparse tensors along an axis.

    expand_nonconcat_dims: enlarge the other dimensions to the largest; otherwise they must be equal.
    """
    sp_inputs = [need_sparse(each) for each in sp_inputs]
    rank = sp_inputs[0].shape.rank or 0
    at = axis % rank
    one = convert_to_tensor([1 if i == at else 0 for i in range(rank)], _INT)
    offset: Any = one * 0
    indices, sizes = [], []
    for part in sp_inputs:
        indices.append(part.indices + offset)
        offset = offset + part.dense_shape * one
        sizes.append(part.dense_shape)
    shapes_ = [s.shape.as_list() for s in sp_inputs]
    for other in shapes_[1:]:
        for i, (a, b) in enumerate(zip(shapes_[0], other)):
            if i != at and not expand_nonconcat_dims and None not in (a, b) and a != b:
                raise ValueError(f"sparse tensors of shapes {shapes_[0]} and {other} can't be joined along axis {at}")
    largest = dense_max(convert_to_tensor(sizes), axis=0)
    total = where(one > 0, offset, largest)
    return reorder(SparseTensor(concat(indices, 0), concat([s.values for s in sp_inputs], 0), total))


def sparse_add(a: Any, b: Any, threshold: Any = 0, name: str | None = None) -> Any:
    """The sum; sparse if both tensors are sparse, else dense. Values at the same place are added."""
    if not (isinstance(a, SparseTensor) and isinstance(b, SparseTensor)):
        parts = [to_dense(x) if isinstance(x, SparseTensor) else convert_to_tensor(x) for x in (a, b)]
        return add(parts[0], parts[1])
    joined = SparseTensor(concat([a.indices, b.indices], 0), concat([a.values, b.values], 0), a.dense_shape)
    ordered = reorder(joined)
    places = linear_places(ordered.indices, ordered.dense_shape)
    ids, count = _groups(places)
    values = unsorted_segment_sum(ordered.values, ids, count)
    indices = unsorted_segment_max(ordered.indices, ids, count)
    return SparseTensor(indices, values, a.dense_shape)


def _groups(places: Tensor) -> tuple[Tensor, Tensor]:
    """For each of some sorted numbers which one of the different ones it is; and how many these are."""
    _, ids = unique(places, _INT)
    return ids, dense_max(concat([ids, convert_to_tensor([-1], _INT)], 0)) + 1


def sparse_reduce_sum(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool = False, output_is_sparse: bool = False, name: Any = None
) -> Any:
    """The sum over axes (all by default)."""
    result = reduce_sum(to_dense(sp_input), axis=axis, keepdims=keepdims)
    return from_dense(result) if output_is_sparse else result


def sparse_reduce_max(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool = False, output_is_sparse: bool = False, name: Any = None
) -> Any:
    """The largest of the stored values, over axes; 0 if there are none."""
    rank = need_sparse(sp_input).shape.rank or 0
    axes = (
        list(range(rank)) if axis is None else [a % rank for a in (axis if isinstance(axis, (list, tuple)) else [axis])]
    )
    kept = [i for i in range(rank) if i not in axes]
    sizes = gather(sp_input.dense_shape, kept) if kept else convert_to_tensor([], _INT)
    places = gather(sp_input.indices, kept, axis=1) if kept else sp_input.indices[:, :0]
    lines = linear_places(places, sizes) if kept else reduce_sum(sp_input.indices * 0, axis=1)
    count = cumprod(sizes)[-1] if kept else convert_to_tensor(1, _INT)
    ones = cast(range_(shape_of(lines)[0]) * 0 + 1, _INT)
    found = unsorted_segment_sum(ones, lines, count) > 0
    result = unsorted_segment_max(sp_input.values, lines, count)
    result = where(found, result, convert_to_tensor(0, result.dtype))
    from_shape = [1 if i in axes else sp_input.shape[i] for i in range(rank) if keepdims or i not in axes]
    result = reshape(result, from_shape)
    return from_dense(result) if output_is_sparse else result


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The product of a sparse matrix and a dense one (in either order). Gradients flow to the values and the matrix."""
    if isinstance(b, SparseTensor):
        if isinstance(sp_a, SparseTensor):
            raise TypeError("sparse_dense_matmul takes one sparse matrix")
        return transpose(sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a))
    sp_a, dense = need_sparse(sp_a), convert_to_tensor(b)
    if adjoint_b:
        dense = transpose(dense)
    rows, columns = (1, 0) if adjoint_a else (0, 1)
    terms = expand_dims(sp_a.values, 1) * call("gather", dense, sp_a.indices[:, columns], axis=0)
    return unsorted_segment_sum(terms, sp_a.indices[:, rows], sp_a.dense_shape[rows])


def sparse_transpose(
    sp_input: SparseTensor, perm: Sequence[int] | None = None, name: str | None = None
) -> SparseTensor:
    """The dimensions in another order (reversed by default)."""
    rank = need_sparse(sp_input).shape.rank or 0
    order = list(perm) if perm is not None else list(range(rank))[::-1]
    indices, sizes = gather(sp_input.indices, order, axis=1), gather(sp_input.dense_shape, order)
    return reorder(SparseTensor(indices, sp_input.values, sizes))


def sparse_expand_dims(sp_input: SparseTensor, axis: Any = None, name: str | None = None) -> SparseTensor:
    """Inserts a dimension of size 1 at `axis` (by default at the end), an int from -rank - 1 to rank.

    Raises InvalidArgumentError for another axis.
    """
    rank = need_sparse(sp_input).shape.rank
    if rank is None:
        raise ValueError("expand_dims needs a sparse tensor of known rank")
    at = -1 if axis is None else int(axis)
    if not -rank - 1 <= at <= rank:
        raise errors.InvalidArgumentError(f"axis {at} is out of range [{-rank - 1}, {rank}] [Op:ExpandDims]")
    at %= rank + 1
    column, sizes = fill(shape_of(sp_input.indices[:, :1]), convert_to_tensor(0, _INT)), sp_input.dense_shape
    indices = concat([sp_input.indices[:, :at], column, sp_input.indices[:, at:]], 1)
    return SparseTensor(indices, sp_input.values, concat([sizes[:at], convert_to_tensor([1], _INT), sizes[at:]], 0))


def retain(sp_input: SparseTensor, to_retain: Any) -> SparseTensor:
    """The elements for which `to_retain`, a vector of bools, is true."""
    kept = convert_to_tensor(to_retain, dtypes.bool_)
    sp_input = need_sparse(sp_input)
    return SparseTensor(boolean_mask(sp_input.indices, kept), boolean_mask(sp_input.values, kept), sp_input.dense_shape)


def sparse_slice(sp_input: SparseTensor, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """A block of the tensor, cut off at its end; empty if it begins beyond the end."""
    sp_input = need_sparse(sp_input)
    low, extent = convert_to_tensor(start, _INT), convert_to_tensor(size, _INT)
    left = maximum(sp_input.dense_shape - low, 0)
    extent = where(less(left, extent), left, extent)
    inside = logical_and(sp_input.indices >= low, less(sp_input.indices, low + extent))
    kept = retain(sp_input, reduce_all(inside, axis=1))
    return SparseTensor(kept.indices - low, kept.values, extent)


def sparse_eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = dtypes.float32, name: Any = None
) -> SparseTensor:
    """Ones on the diagonal."""
    columns = num_rows if num_columns is None else num_columns
    places = range_(min(num_rows, columns), dtype=_INT)
    ones = cast(places * 0 + 1, dtype)
    return SparseTensor(concat([places[:, None], places[:, None]], 1), ones, [num_rows, columns])


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Applies `op` to the values of sparse arguments that have the same places."""
    found = [a for a in [*args, *kwargs.values()] if isinstance(a, SparseTensor)]

    def flat(value: Any) -> Any:
        return value.values if isinstance(value, SparseTensor) else value

    result = op(*map(flat, args), **{name: flat(value) for name, value in kwargs.items()})
    return found[0].with_values(result) if found else result


# --- sets and sequences along the last dimension -------------------------------------------------------------------


def _members(value: Any) -> SparseTensor:
    """A sparse tensor as it is; of a dense one, all elements belong to its sets."""
    if isinstance(value, SparseTensor):
        return value
    x = convert_to_tensor(value)
    indices = cast(where(fill(shape_of(x), True)), _INT)
    return SparseTensor(indices, gather_nd(x, indices), shape_of(x, _INT))


def _sets(a: Any, b: Any, how: str) -> SparseTensor:
    left, right = _members(a).__tf_flatten__()[1], _members(b).__tf_flatten__()[1]
    return SparseTensor(*sets.set_operation(left, right, how))


def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements of both, for the sets in the last dimension of two (dense or sparse) tensors: sorted, sparse.

    Raises InvalidArgumentError when the other dimensions differ.
    """
    return _sets(a, b, "intersection")


def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements of either, for the sets in the last dimension of two (dense or sparse) tensors: sorted, sparse."""
    return _sets(a, b, "union")


def set_difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of a that aren't in b (or of b that aren't in a), for sets in the last dimension: sorted, sparse."""
    return _sets(a, b, "a-b" if aminusb else "b-a")


def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different elements each set in the last dimension of a sparse tensor has, int32.

    Raises TypeError for a dense tensor.
    """
    if not isinstance(a, SparseTensor):
        raise TypeError("Expected `SparseTensor`, got dense tensor.")
    only = set_union(a, a)
    return sparse_reduce_sum(SparseTensor(only.indices, fill(shape_of(only.values), 1), only.dense_shape), -1)


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str | None = None) -> Tensor:
    """Levenshtein's distance between the sequences in the last dimension of two sparse tensors, float32.

    normalize: divide by the length of the truth (infinite if that is empty). Raises TypeError for dense tensors.
    """
    for what, value in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not isinstance(value, SparseTensor):
            raise TypeError(f"{what} must be a SparseTensor.")
    return sets.edit_distance(hypothesis.__tf_flatten__()[1], truth.__tf_flatten__()[1], normalize)
