"""Elementwise functions and operators of ragged tensors, with broadcasting.

Two ragged tensors must have the same rows. A tensor is spread over the rows first: a dimension of size 1 stands for
every place, another must be as long as every row.

    [[10 87 12] [19 53]] + [[1000] [2000]]   =   [[1010 1087 1012] [2019 2053]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.ops.api import assert_op, convert_to_tensor, equal, gather, gather_nd, reduce_all, reshape, shape, stack
from runtime.ops.api import range as range_
from runtime.ops.convert import static_value
from runtime.ops.elementwise import arithmetic, compare
from runtime.ragged import partition
from runtime.ragged.partition import INT
from runtime.ragged.tensor import RaggedTensor
from runtime.tensor import Tensor


def apply_elementwise(function: Callable[..., Any], *args: Any, **kwargs: Any) -> RaggedTensor:
    """`function` of the values of its arguments, which are broadcast, in the rows of the ragged ones.

    Raises InvalidArgumentError for rows and shapes that don't fit.
    """
    given = [*args, *kwargs.values()]
    ragged = [v for v in given if isinstance(v, RaggedTensor)]
    main = max(ragged, key=lambda r: r.ragged_rank)
    for other in ragged:
        if other is not main:
            check_same_rows(main, other)

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return value.flat_values
        if not (isinstance(value, (Tensor, np.ndarray, list, tuple)) or hasattr(type(value), "__tf_tensor__")):
            return value
        tensor = convert_to_tensor(value, dtype_hint=main.dtype)
        return tensor if tensor.shape.rank == 0 else spread(tensor, main)

    result = function(*map(flat, args), **{name: flat(value) for name, value in kwargs.items()})
    return main.with_flat_values(result)


def check_same_rows(x: RaggedTensor, y: RaggedTensor) -> None:
    """Raises InvalidArgumentError (at once, or when the function runs) unless both have the same rows."""
    if x.ragged_rank != y.ragged_rank:
        raise errors.InvalidArgumentError(
            f"ragged tensors with {x.ragged_rank} and {y.ragged_rank} ragged dimensions can't be combined elementwise: "
            f"shapes {x.shape} and {y.shape}"
        )
    sizes = partition.count(x.flat_values), partition.count(y.flat_values)
    for level, (a, b) in enumerate(zip(x.nested_row_splits, y.nested_row_splits), 1):
        if a is b:
            continue
        known_a, known_b = static_value(a), static_value(b)
        if known_a is None or known_b is None:
            message = f"ragged tensors don't have the same rows in dimension {level}: row_splits"
            if all(isinstance(size, int) for size in sizes) and sizes[0] != sizes[1]:
                raise errors.InvalidArgumentError(f"{message} of {sizes[0]} and of {sizes[1]} values")
            assert_op(equal(partition.count(a), partition.count(b)), message, data=[a, b])
            assert_op(reduce_all(equal(a, b)), message, data=[a, b])
        elif not np.array_equal(known_a, known_b):
            raise errors.InvalidArgumentError(
                f"ragged tensors don't have the same rows in dimension {level}: lengths "
                f"{np.diff(known_a).tolist()} and {np.diff(known_b).tolist()}"
            )


def coordinates(x: RaggedTensor) -> list[Tensor]:
    """For each of the flat values its index in the first dimension, and its place in each ragged one."""
    index = range_(convert_to_tensor(partition.count(x.flat_values), INT))
    places: list[Tensor] = []
    for splits in reversed(x.nested_row_splits):
        row = gather(partition.ids_of(splits), index)
        places.insert(0, index - gather(splits, row))
        index = row
    return [index, *places]


def spread(tensor: Tensor, x: RaggedTensor) -> Tensor:
    """A tensor with the element for each of the flat values of x, as broadcasting gives it."""
    rank, full = tensor.shape.rank, x.shape.rank
    if rank is None or full is None or rank > full:
        raise errors.InvalidArgumentError(f"a tensor of shape {tensor.shape} can't be broadcast to {x.shape}")
    outer = 1 + x.ragged_rank
    inner = full - outer
    if rank <= inner:
        return tensor
    if rank < full:
        sizes = [1] * (full - rank) + [d if d is not None else -1 for d in tensor.shape]
        if sizes.count(-1) > 1:
            raise errors.InvalidArgumentError("a tensor with several unknown dimensions can't be broadcast to rows")
        tensor = reshape(tensor, sizes)
    places = coordinates(x)
    lengths: list[Any] = [None, *map(partition.lengths_of, x.nested_row_splits)]
    index = []
    for axis, (place, rows) in enumerate(zip(places, lengths)):
        size = tensor.shape[axis]
        if size == 1:
            index.append(place * 0)
            continue
        _check_size(tensor, axis, x, rows)
        index.append(place)
    return gather_nd(tensor, stack(index, 1))


def _check_size(tensor: Tensor, axis: int, x: RaggedTensor, lengths: Any) -> None:
    """Whether every row is as long as the tensor's dimension (for the first dimension: whether there are as many)."""
    size = tensor.shape[axis] if tensor.shape[axis] is not None else shape(tensor, INT)[axis]
    found = partition.rows_in(x.row_splits) if lengths is None else lengths
    known = found if isinstance(found, int) else static_value(found)
    what = f"a tensor of shape {tensor.shape} can't be broadcast to the ragged shape {x.shape}: dimension {axis}"
    if isinstance(size, int) and known is not None:
        if not np.all(np.asarray(known) == size):
            raise errors.InvalidArgumentError(f"{what} is {size}, but the rows have {np.asarray(known).tolist()}")
        return
    assert_op(reduce_all(equal(found, convert_to_tensor(size, INT))), what, data=[convert_to_tensor(found)])


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Applies `op` to the innermost values of its ragged arguments (also in lists), and keeps the rows.

    Without ragged arguments it is just `op(*args, **kwargs)`. Raises ValueError when the result has another number of
    values, InvalidArgumentError when the rows differ.
    """
    found: list[RaggedTensor] = []

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            found.append(value)
            return value.flat_values
        if isinstance(value, (list, tuple)):
            return type(value)(map(flat, value))
        return value

    new_args, new_kwargs = [flat(a) for a in args], {name: flat(value) for name, value in kwargs.items()}
    for other in found[1:]:
        check_same_rows(found[0], other)
    result = op(*new_args, **new_kwargs)
    if not found:
        return result
    count = convert_to_tensor(result)._shape
    if not count:
        raise ValueError(f"tf.ragged.map_flat_values: op must return a tensor of values, got the scalar {result!r}")
    return found[0].with_flat_values(result)


# --- operators -------------------------------------------------------------------------------------------------------


def _logic(logical: Callable[..., Any], bits: Callable[..., Any]) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        ragged = x if isinstance(x, RaggedTensor) else y
        return apply_elementwise(logical if ragged.dtype.kind == "b" else bits, x, y)

    return function


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: apply_elementwise(function, x, y)


_BINARY: dict[str, Callable[..., Any]] = {
    "add": _plain(arithmetic.add),
    "sub": _plain(arithmetic.subtract),
    "mul": _plain(arithmetic.multiply),
    "truediv": _plain(arithmetic.divide),
    "floordiv": _plain(arithmetic.floordiv),
    "mod": _plain(arithmetic.floormod),
    "pow": _plain(arithmetic.pow),
    "and": _logic(compare.logical_and, compare.bitwise_and),
    "or": _logic(compare.logical_or, compare.bitwise_or),
    "xor": _logic(compare.logical_xor, compare.bitwise_xor),
}
_COMPARISONS = {
    "lt": compare.less, "le": compare.less_equal, "gt": compare.greater, "ge": compare.greater_equal,
    "eq": compare.equal, "ne": compare.not_equal,
}  # fmt: skip


def _install(methods: Sequence[tuple[str, Callable[..., Any]]]) -> None:
    for name, method in methods:
        setattr(RaggedTensor, name, method)


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self, other: function(other, self)


_install([(f"__{name}__", function) for name, function in _BINARY.items()])
_install([(f"__r{name}__", _reflected(function)) for name, function in _BINARY.items()])
_install([(f"__{name}__", _plain(function)) for name, function in _COMPARISONS.items()])
_install(
    [
        ("__neg__", lambda self: apply_elementwise(arithmetic.negative, self)),
        ("__abs__", lambda self: apply_elementwise(arithmetic.abs, self)),
        ("__pos__", lambda self: self),
        ("__invert__", lambda self: apply_elementwise(
            compare.logical_not if self.dtype.kind == "b" else compare.invert, self)),
        # What the functions of `runtime.ops.elementwise.define` call when they meet a ragged tensor.
        ("__ag_elementwise__", staticmethod(apply_elementwise)),
    ]
)  # fmt: skip
