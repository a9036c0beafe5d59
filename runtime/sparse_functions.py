"""More of `ag.sparse`: extremes, other shapes, counts, crosses and softmax of sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.api import (
    assert_op,
    cast,
    concat,
    convert_to_tensor,
    cumprod,
    exp,
    expand_dims,
    fill,
    floordiv,
    floormod,
    gather,
    reduce_all,
    reduce_max,
    reduce_sum,
    reshape,
    stack,
    stop_gradient,
    where,
)
from runtime.ops.api import maximum as larger
from runtime.ops.api import minimum as smaller
from runtime.ops.api import range as range_
from runtime.ops.api import shape as shape_of
from runtime.ops.arrays.segments import unsorted_segment_max, unsorted_segment_sum
from runtime.ops.arrays.sorting import argsort, unique
from runtime.ops.convert import static_value
from runtime.ops.entries import entries
from runtime.ops.strings import crosses
from runtime.sparse import SparseTensor, linear_places, need_sparse, reorder, sparse_slice, to_dense
from runtime.tensor import SymbolicTensor, Tensor

_INT = dtypes.int64


def _constant(value: Any) -> Tensor:
    return convert_to_tensor(value, _INT)


def _size(shape: Tensor) -> Tensor:
    """The number of places of a whole tensor."""
    return cumprod(concat([_constant([1]), shape], 0))[-1]


def _coordinates(places: Tensor, shape: Tensor) -> Tensor:
    """The coordinates of places counted in row-major order."""
    steps = cumprod(shape, exclusive=True, reverse=True)
    return floormod(floordiv(expand_dims(places, 1), larger(steps, 1)), larger(shape, 1))


def _count_of(ids: Tensor) -> Tensor:
    """One more than the largest; 0 of none."""
    return reduce_max(concat([ids, _constant([-1])], 0)) + 1


def _extreme(name: str, function: Callable[[Any, Any], Tensor]) -> Callable[..., SparseTensor]:
    def extreme(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
        a, b = need_sparse(sp_a), need_sparse(sp_b)
        shapes = [static_value(x.dense_shape) for x in (a, b)]
        if all(shape is not None for shape in shapes):
            if list(shapes[0]) != list(shapes[1]):
                raise errors.InvalidArgumentError(
                    f"Operands' shapes do not match: got {a.shape} and {b.shape} [Op:SparseSparse{kind}]"
                )
        else:
            assert_op(reduce_all(a.dense_shape == b.dense_shape), "Operands' shapes do not match")
        places = concat([linear_places(x.indices, x.dense_shape) for x in (a, b)], 0)
        order = argsort(places, stable=True)
        _, ids = unique(gather(places, order), _INT)
        count = _count_of(ids)
        # Of each place, what a has there and what b has: 0 where there is nothing.
        blank_a, blank_b = a.values * 0, b.values * 0
        values = [gather(concat(pair, 0), order) for pair in ((a.values, blank_b), (blank_a, b.values))]
        found = function(*[unsorted_segment_sum(each, ids, count) for each in values])
        kept = unsorted_segment_max(gather(places, order), ids, count)
        return SparseTensor(_coordinates(kept, a.dense_shape), found, a.dense_shape)

    kind = name.capitalize()
    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"The {'larger' if name == 'maximum' else 'smaller'} of the values at each place that either has, as if the "
        "other had 0 there.\n\n    Raises InvalidArgumentError for different shapes, TypeError for dense tensors.\n    "
    )
    return extreme


maximum, minimum = _extreme("maximum", larger), _extreme("minimum", smaller)


def sparse_reshape(sp_input: SparseTensor, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in row-major order, in another shape. One dimension may be -1 and is inferred.

    Raises InvalidArgumentError if the number of places differs or several dimensions are -1.
    """
    x = need_sparse(sp_input)
    wanted, old = cast(convert_to_tensor(shape, dtype_hint=_INT), _INT), static_value(x.dense_shape)
    known = static_value(wanted)
    if known is not None:
        sizes = [int(d) for d in known]
        if sizes.count(-1) > 1:
            raise errors.InvalidArgumentError(f"At most one dimension can be inferred (-1). Found: {sizes}")
        if old is not None:
            found = _completed(sizes, math.prod(map(int, old)))
            return SparseTensor(_moved(x, _constant(found)), x.values, found)
    assert_op(reduce_sum(cast(wanted == -1, dtypes.int32)) <= 1, "only one output dimension may be -1")
    total, rest = _size(x.dense_shape), _size(where(wanted == -1, _constant(1), wanted))
    new = where(wanted == -1, floordiv(total, larger(rest, 1)), wanted)
    told = known if known is not None else entries(wanted) if isinstance(wanted, SymbolicTensor) else None
    if told is not None:  # what is known of the shape stays known
        sure = [isinstance(n, (int, np.integer)) and n >= 0 for n in told]
        new = stack([_constant(int(n)) if is_sure else new[i] for i, (n, is_sure) in enumerate(zip(told, sure))])
    assert_op(_size(new) == total, "Input to reshape and the requested shape have different numbers of elements")
    return SparseTensor(_moved(x, new), x.values, new)


def _completed(sizes: list[int], total: int) -> list[int]:
    rest = math.prod(d for d in sizes if d != -1)
    found = [total // max(rest, 1) if d == -1 else d for d in sizes]
    if math.prod(found) != total:
        raise errors.InvalidArgumentError(
            f"Cannot reshape a tensor with {total} elements to shape {sizes} ({rest} elements)."
        )
    return found


def _moved(x: SparseTensor, shape: Tensor) -> Tensor:
    return _coordinates(linear_places(x.indices, x.dense_shape), shape)


def fill_empty_rows(sp_input: SparseTensor, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Tensor]:
    """Puts `default_value` in the first place of each row without elements; also returns which rows these are.

    Raises TypeError for a dense tensor.
    """
    x = need_sparse(sp_input)
    rows = x.dense_shape[0]
    filled = unsorted_segment_sum(cast(x.indices[:, 0] * 0 + 1, _INT), x.indices[:, 0], rows)
    empty = filled == 0
    numbers = range_(rows)
    missing = numbers[empty]
    first = expand_dims(missing, 1) * concat([_constant([1]), x.dense_shape[1:] * 0], 0)
    default = convert_to_tensor(default_value, x.dtype)
    values = concat([x.values, fill(shape_of(missing), default)], 0)
    return reorder(SparseTensor(concat([x.indices, first], 0), values, x.dense_shape)), empty


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """exp(x) / sum(exp(x)) along the last dimension, over the stored elements only.

    Raises ValueError for a rank below 2, TypeError for a dense tensor.
    """
    x = need_sparse(sp_input)
    if (x.shape.rank or 2) < 2:
        raise ValueError(f"softmax needs a sparse tensor of rank 2 or more, got shape {x.shape}")
    lines = linear_places(x.indices[:, :-1], x.dense_shape[:-1])
    count = _size(x.dense_shape[:-1])
    top = stop_gradient(unsorted_segment_max(x.values, lines, count))
    powers = exp(x.values - gather(top, lines))
    return x.with_values(powers / gather(unsorted_segment_sum(powers, lines, count), lines))


def split(
    sp_input: SparseTensor | None = None, num_split: int | None = None, axis: int | None = None, name: str | None = None
) -> list[SparseTensor]:
    """Splits a tensor along an axis; if the length isn't a multiple, the first parts are longer by one.

    Raises ValueError for a number of parts or an axis that is missing or doesn't fit.
    """
    for what, value in (("sp_input", sp_input), ("num_split", num_split), ("axis", axis)):
        if value is None:
            raise ValueError(f"{what} is required")
    x = need_sparse(sp_input)
    rank = x.shape.rank
    if rank is None or not -rank <= axis < rank:  # type: ignore[operator]
        raise ValueError(f"axis {axis} is out of range for a sparse tensor of shape {x.shape}")
    length = x.shape[axis]
    if length is None or not 1 <= num_split <= length:  # type: ignore[operator]
        raise ValueError(f"num_split should be in [1, {length}], got {num_split}")
    parts, start = [], 0
    for i in range(num_split):  # type: ignore[arg-type]
        size = length // num_split + (i < length % num_split)
        at = [0] * rank
        sizes = [x.dense_shape[d] for d in range(rank)]
        at[axis], sizes[axis] = start, _constant(size)  # type: ignore[index]
        parts.append(sparse_slice(x, _constant(at), stack(sizes)))
        start += size
    return parts


def to_indicator(sp_input: SparseTensor, vocab_size: Any, name: str | None = None) -> Tensor:
    """Which numbers below `vocab_size` each row contains: bools, with the last dimension replaced by one of that size.

    sp_input: integers. Raises InvalidArgumentError for numbers out of range.
    """
    x = need_sparse(sp_input)
    if x.dtype.kind not in "iu":
        raise errors.DTypeError(f"to_indicator takes integers, got {x.dtype.name}")
    numbers = cast(x.values, _INT)
    indices = concat([x.indices[:, :-1], expand_dims(numbers, 1)], 1)
    shape = concat([x.dense_shape[:-1], expand_dims(cast(convert_to_tensor(vocab_size), _INT), 0)], 0)
    return to_dense(SparseTensor(indices, cast(numbers * 0 + 1, dtypes.bool_), shape), False)


def reset_shape(sp_input: SparseTensor, new_shape: Any = None) -> SparseTensor:
    """The same elements with another dense shape; by default the smallest that holds them.

    Raises ValueError for a shape that is smaller than the tensor's in a dimension (InvalidArgumentError if that is
    known only at run time).
    """
    x = need_sparse(sp_input)
    if new_shape is None:
        bounds = concat([x.indices, expand_dims(x.dense_shape * 0 - 1, 0)], 0)
        return SparseTensor(x.indices, x.values, reduce_max(bounds, 0) + 1)
    shape = cast(convert_to_tensor(new_shape), _INT)
    old, new = static_value(x.dense_shape), static_value(shape)
    if old is None or new is None:
        assert_op(reduce_all(x.dense_shape <= shape), "Requested new_shape should have dimension sizes >= the input's")
    elif len(old) != len(new) or (old > new).any():
        raise ValueError(
            f"Requested new_shape should have dimension sizes >= sp_input.shape. Found new_shape "
            f"{list(map(int, new))}, sp_input.shape {list(map(int, old))}."
        )
    return SparseTensor(x.indices, x.values, shape)


def bincount(
    values: Any, weights: Any = None, axis: int | None = 0, minlength: int | None = None, maxlength: int | None = None,
    binary_output: bool = False, name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """`ag.sparse.bincount`, of integers that are dense or sparse."""
    if weights is not None and binary_output:
        raise ValueError("Arguments `binary_output` and `weights` are mutually exclusive. Please specify only one.")
    if axis not in (None, 0, -1):
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    if isinstance(weights, SparseTensor):
        weights = weights.values
    shares = None if weights is None else reshape(weights, [-1])
    if isinstance(values, SparseTensor):
        numbers, lines, count = values.values, values.indices[:, 0], values.dense_shape[0]
        rank = values.shape.rank
    else:
        x = convert_to_tensor(values)
        rank = None if x._shape is None else len(x._shape)
        sizes = shape_of(x, _INT)
        numbers, count = reshape(x, [-1]), sizes[0]
        lines = floordiv(cast(range_(shape_of(numbers)[0]), _INT), larger(_size(sizes[1:]), 1))
    kind, numbers = numbers.dtype, cast(numbers, _INT)
    by_row = axis == -1 and rank != 1
    assert_op(reduce_all(numbers >= 0), "Input values must all be non-negative")
    length = _count_of(numbers)
    if minlength is not None:
        length = larger(length, minlength)
    if maxlength is not None:
        length = _constant(maxlength)
        kept = numbers < length
        numbers, lines = numbers[kept], lines[kept]
        shares = None if shares is None else shares[kept]
    keys = lines * length + numbers if by_row else numbers
    order = argsort(keys, stable=True)
    found, ids = unique(gather(keys, order), _INT)
    if binary_output:
        totals = cast(found * 0 + 1, kind)
    else:
        each = cast(keys * 0 + 1, kind) if shares is None else gather(shares, order)
        totals = unsorted_segment_sum(each, ids, _count_of(ids))
    shape = stack([count, length]) if by_row else expand_dims(length, 0)
    return SparseTensor(_coordinates(found, shape), totals, shape)


# --- crosses ---------------------------------------------------------------------------------------------------------

_KEY = 0xDECAFCAFFE


def _features(inputs: Any) -> list[tuple[Tensor, ...]]:
    if not isinstance(inputs, (list, tuple)):
        raise TypeError("Inputs must be a list")
    sparse, dense = [], []
    for each in inputs:
        if isinstance(each, SparseTensor):
            sparse.append((each.indices, _words(each.values), each.dense_shape))
        elif isinstance(each, Tensor):
            dense.append((_words(each),))
        else:
            raise TypeError(f"All inputs must be Tensor or SparseTensor, got {each!r}")
    return [*sparse, *dense]


def _words(values: Tensor) -> Tensor:
    return values if values.dtype is dtypes.string else cast(values, _INT)


def cross(inputs: Sequence[Any], name: str | None = None, separator: str | None = None) -> SparseTensor:
    """All combinations of one value from each feature of an example, as strings joined by `separator` ("_X_").

    inputs: matrices of integers or strings, sparse or dense, with a row for each example; sparse ones come first.
    Raises TypeError for another input, InvalidArgumentError for different numbers of rows.
    """
    return SparseTensor(*crosses.cross(_features(inputs), ("_X_" if separator is None else separator).encode()))


def cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """All combinations of one value from each feature of an example, as numbers in [0, num_buckets): hashes, int64.

    inputs: matrices of integers or strings, sparse or dense, with a row for each example; sparse ones come first.
    num_buckets: 0 for no limit. hash_key: changes the hash.
    Raises TypeError for another input, InvalidArgumentError for different numbers of rows.
    """
    return SparseTensor(*crosses.cross(_features(inputs), None, hash_key or _KEY, num_buckets))
