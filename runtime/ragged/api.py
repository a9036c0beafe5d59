"""Public functions that take ragged tensors as well as tensors, under TensorFlow's names.

The elementwise functions of the op table know by themselves (`runtime.ops.elementwise.define`); the ones here look at
their arguments first, and hand ragged ones to the functions of this room.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, overload
from typing import cast as cast_type

from runtime import composites, dtypes, nest
from runtime.extension_types.values import ExtensionType
from runtime.ops import api
from runtime.ops.arrays import miscellaneous, reduce, segments
from runtime.ops.arrays.scatter import IndexedSlices
from runtime.ops.elementwise import arithmetic
from runtime.ops.elementwise.define import BinaryFunction, UnaryFunction
from runtime.ops.linalg import matrices
from runtime.ops.nn import nn_ops
from runtime.ops.strings import string_ops
from runtime.ragged import arrays, reductions
from runtime.ragged.constant import constant, ragged_range, ragged_stack
from runtime.ragged.convert import from_sparse, to_sparse
from runtime.ragged.elementwise import apply_elementwise, map_flat_values
from runtime.ragged.shape import DynamicRaggedShape
from runtime.ragged.spec import RaggedTensorSpec
from runtime.ragged.tensor import RaggedTensor
from runtime.sparse import SparseTensor, to_dense
from runtime.sparse_functions import bincount as _counts_in_sparse
from runtime.tensor import Tensor
from runtime.tracebacks import leaving, mark

P = ParamSpec("P")
Result = TypeVar("Result", covariant=True)
OfRagged = TypeVar("OfRagged", covariant=True)
Function = TypeVar("Function", bound=Callable[..., Any])
Parts = TypeVar("Parts", RaggedTensor, SparseTensor, IndexedSlices)
Composite = TypeVar("Composite", RaggedTensor, SparseTensor, IndexedSlices, ExtensionType)


class AlsoRagged(Protocol[P, Result, OfRagged]):
    """A public function of tensors that calls another implementation for ragged ones."""

    @overload
    def __call__(self, first: RaggedTensor | Sequence[RaggedTensor], /, *args: Any, **kwargs: Any) -> OfRagged: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Result: ...


class OfComposites(Protocol[P]):
    """A public function of tensors, which changes each tensor of a composite and keeps its kind."""

    @overload
    def __call__(self, first: Composite, /, *args: Any, **kwargs: Any) -> Composite: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...


class OfValues(Protocol[P]):
    """A public function of tensors, which changes the values of ragged and sparse ones and keeps their kind."""

    @overload
    def __call__(self, first: Parts, /, *args: Any, **kwargs: Any) -> Parts: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...


def _holds_ragged(parts: Any) -> bool:
    return any(part.__class__ is RaggedTensor for part in parts)


def also_ragged(dense: Callable[P, Result], ragged: Callable[..., OfRagged]) -> AlsoRagged[P, Result, OfRagged]:
    """`dense`, but `ragged` where an argument (or a part of a list among them) is ragged."""

    @functools.wraps(dense)
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            # Every call of the function pays for this look.
            for value in args:
                kind = value.__class__
                if kind is RaggedTensor or ((kind is list or kind is tuple) and _holds_ragged(value)):
                    return ragged(*args, **kwargs)
            if kwargs:
                for value in kwargs.values():
                    if isinstance(value, RaggedTensor) or (isinstance(value, (list, tuple)) and _holds_ragged(value)):
                        return ragged(*args, **kwargs)
            return dense(*args, **kwargs)
        except leaving():
            raise

    return mark(function)


@overload
def _elementwise(dense: UnaryFunction) -> UnaryFunction: ...  # type: ignore[overload-overlap]
@overload
def _elementwise(dense: BinaryFunction) -> BinaryFunction: ...  # type: ignore[overload-overlap]
@overload
def _elementwise(dense: Callable[P, Tensor]) -> AlsoRagged[P, Tensor, RaggedTensor]: ...
def _elementwise(dense: Any) -> Any:
    return also_ragged(dense, functools.partial(apply_elementwise, dense))


def _on_values(dense: Callable[P, Tensor]) -> AlsoRagged[P, Tensor, RaggedTensor]:
    return also_ragged(dense, functools.partial(map_flat_values, dense))


def _reduction(dense: Callable[P, Tensor]) -> AlsoRagged[P, Tensor, Any]:
    return also_ragged(dense, reductions.reduction(dense))


reduce_sum = _reduction(reduce.reduce_sum)
reduce_prod = _reduction(reduce.reduce_prod)
reduce_max = _reduction(reduce.reduce_max)
reduce_min = _reduction(reduce.reduce_min)
reduce_any = _reduction(reduce.reduce_any)
reduce_all = _reduction(reduce.reduce_all)
reduce_mean = also_ragged(reduce.reduce_mean, reductions.ragged_mean)
reduce_variance = also_ragged(reduce.reduce_variance, reductions.ragged_variance)
reduce_std = also_ragged(reduce.reduce_std, reductions.ragged_std)

concat = also_ragged(api.concat, arrays.ragged_concat)
stack = also_ragged(api.stack, ragged_stack)
tile = also_ragged(api.tile, arrays.ragged_tile)
reverse = also_ragged(api.reverse, arrays.ragged_reverse)
expand_dims = also_ragged(api.expand_dims, arrays.ragged_expand_dims)
gather = also_ragged(api.gather, arrays.ragged_gather)
boolean_mask = also_ragged(api.boolean_mask, arrays.ragged_boolean_mask)


def _rank(input: RaggedTensor, name: str | None = None) -> Any:
    return api.convert_to_tensor(input.shape.rank)


def _size(input: RaggedTensor, out_type: Any = dtypes.int32, name: str | None = None) -> Any:
    return api.size(input.flat_values, out_type)


def _on_kinds(dense: Function, kinds: dict[type, Callable[..., Any]]) -> Function:
    """`dense`, but another function where the first argument is of a certain type."""

    @functools.wraps(dense)
    def function(*args: Any, **kwargs: Any) -> Any:
        kind = (args[0] if args else next(iter(kwargs.values()), None)).__class__
        return kinds.get(kind, dense)(*args, **kwargs)

    return cast_type(Any, function)


def _shape_of_sparse(input: SparseTensor, out_type: Any = dtypes.int32, name: str | None = None) -> Any:
    return api.cast(input.dense_shape, out_type)


def _size_of_sparse(input: SparseTensor, out_type: Any = dtypes.int32, name: str | None = None) -> Any:
    return api.cast(api.reduce_prod(input.dense_shape), out_type)


def _rank_of_sparse(input: SparseTensor, name: str | None = None) -> Any:
    return api.size(input.dense_shape)


def _shape_of_slices(input: IndexedSlices, out_type: Any = dtypes.int32, name: str | None = None) -> Any:
    return api.cast(_whole(input), out_type)


def _size_of_slices(input: IndexedSlices, out_type: Any = dtypes.int32, name: str | None = None) -> Any:
    return api.cast(api.reduce_prod(_whole(input)), out_type)


def _rank_of_slices(input: IndexedSlices, name: str | None = None) -> Any:
    return api.rank(input.values)


def _whole(slices: IndexedSlices) -> Any:
    if slices.dense_shape is None:
        raise ValueError(f"IndexedSlices without dense_shape have no shape: {slices!r}")
    return slices.dense_shape


def _shape_of_ragged(input: RaggedTensor, out_type: Any = dtypes.int32, name: str | None = None) -> Any:
    return DynamicRaggedShape.from_tensor(input, out_type)


def _of_values(dense: Callable[..., Tensor]) -> Callable[..., Any]:
    """`dense`, of the values of a sparse tensor or of slices."""
    name = next(iter(inspect.signature(dense).parameters))

    def of_values(*args: Any, **kwargs: Any) -> Any:
        x, *rest = args or (kwargs.pop(name),)
        return x.with_values(dense(x.values, *rest, **kwargs))

    return of_values


def _values_too(dense: Callable[P, Tensor]) -> OfValues[P]:
    """`dense`, of the values of ragged and sparse tensors and of slices."""
    of_values = _of_values(dense)
    ragged = functools.partial(map_flat_values, dense)
    kinds: dict[type, Callable[..., Any]] = {RaggedTensor: ragged, SparseTensor: of_values, IndexedSlices: of_values}
    return cast_type(Any, _on_kinds(dense, kinds))


shape = _on_kinds(
    api.shape, {RaggedTensor: _shape_of_ragged, SparseTensor: _shape_of_sparse, IndexedSlices: _shape_of_slices}
)


def _of_any_shape(dense: Function) -> Function:
    """`dense`, whose first argument is a shape, which may be that of a ragged tensor."""

    def of_ragged(shape: DynamicRaggedShape, *args: Any, **kwargs: Any) -> Any:
        return shape.with_flat_values(dense(shape.inner_shape, *args, **kwargs))

    return _on_kinds(dense, {DynamicRaggedShape: of_ragged})


fill = _of_any_shape(api.fill)
ones = _of_any_shape(api.ones)
zeros = _of_any_shape(api.zeros)
rank = _on_kinds(api.rank, {RaggedTensor: _rank, SparseTensor: _rank_of_sparse, IndexedSlices: _rank_of_slices})
size = _on_kinds(api.size, {RaggedTensor: _size, SparseTensor: _size_of_sparse, IndexedSlices: _size_of_slices})

abs = _elementwise(api.abs)
add = _elementwise(api.add)
cast = _values_too(api.cast)
clip_by_norm = _on_kinds(matrices.clip_by_norm, {IndexedSlices: _of_values(matrices.clip_by_norm)})
clip_by_value = _on_kinds(_elementwise(api.clip_by_value), {IndexedSlices: _of_values(api.clip_by_value)})
divide = _elementwise(api.divide)
divide_no_nan = _elementwise(api.divide_no_nan)
ones_like = _on_values(api.ones_like)
one_hot = _on_values(api.one_hot)
round = _elementwise(api.round)
saturate_cast = _on_values(miscellaneous.saturate_cast)
sign = _elementwise(api.sign)
squared_difference = _elementwise(api.squared_difference)
stop_gradient = _on_values(api.stop_gradient)
truediv = _elementwise(api.truediv)
where = _elementwise(api.where)
zeros_like = _on_values(api.zeros_like)
dropout = _on_values(nn_ops.dropout)
elu = _elementwise(nn_ops.elu)
embedding_lookup = _on_values(nn_ops.embedding_lookup)
gelu = _elementwise(nn_ops.gelu)
leaky_relu = _elementwise(nn_ops.leaky_relu)
relu6 = _elementwise(nn_ops.relu6)
selu = _elementwise(nn_ops.selu)
silu = _elementwise(nn_ops.silu)

as_string = _on_values(string_ops.as_string)
join = _on_values(api.strings_join)
length = _on_values(string_ops.length)
lower = _on_values(string_ops.lower)
regex_full_match = _on_values(string_ops.regex_full_match)
regex_replace = _on_values(string_ops.regex_replace)
strip = _on_values(string_ops.strip)
substr = _on_values(string_ops.substr)
to_hash_bucket = _on_values(string_ops.to_hash_bucket)
to_hash_bucket_fast = _on_values(string_ops.to_hash_bucket_fast)
to_hash_bucket_strong = _on_values(string_ops.to_hash_bucket_strong)
to_number = _on_values(string_ops.to_number)
upper = _on_values(string_ops.upper)


def _of_parts(dense: Callable[P, Tensor]) -> OfComposites[P]:
    """`dense`, of each tensor of a composite: of ragged and sparse tensors, slices and extension types."""

    @functools.wraps(dense)
    def function(*args: Any, **kwargs: Any) -> Any:
        given = args[0] if args else next(iter(kwargs.values()), None)
        return nest.map_structure(dense, given) if composites.is_composite(given) else dense(*args, **kwargs)

    return cast_type(Any, function)


identity = _of_parts(api.identity)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A number times a tensor or `IndexedSlices`. Raises ValueError when the first operand has dimensions."""
    if isinstance(x, IndexedSlices):
        return x.with_values(arithmetic.scalar_mul(scalar, x.values))
    return arithmetic.scalar_mul(scalar, x)


def bincount(
    arr: Any, weights: Any = None, minlength: Any = None, maxlength: Any = None, dtype: Any = dtypes.int32,
    name: str | None = None, axis: int | None = None, binary_output: bool = False,
) -> Any:  # fmt: skip
    """How often each number from 0 to the largest occurs, or the sum of its weights, in a tensor, also a ragged or
    sparse one; implicit zeros of a sparse tensor don't count.

    minlength, maxlength: bounds of the length; numbers of `maxlength` and more don't count. axis=-1: per row.
    Raises InvalidArgumentError for negative numbers.
    """
    if not isinstance(arr, (RaggedTensor, SparseTensor)):
        return segments.bincount(arr, weights, minlength, maxlength, dtype, name, axis, binary_output)
    counts = sparse_bincount(arr, weights, -1 if axis in (-1, 1) else 0, minlength, maxlength, binary_output)
    dense = to_dense(counts)
    return dense if weights is not None else cast(dense, dtype)


def sparse_bincount(
    values: Any, weights: Any = None, axis: int | None = 0, minlength: int | None = None, maxlength: int | None = None,
    binary_output: bool = False, name: str | None = None,
) -> SparseTensor:  # fmt: skip
    """How often each number occurs, in the dtype of the numbers, or the sum of its weights: for numbers that occur
    only.

    values: integers, dense, sparse or ragged. axis: 0 counts all elements, -1 those of each row of a matrix.
    minlength: the least length of the result. maxlength: its length; larger numbers don't count. binary_output: 1 for
    each number that occurs.
    Raises ValueError for another axis, and for weights with `binary_output`; InvalidArgumentError for negative numbers.
    """
    values, weights = (to_sparse(each) if isinstance(each, RaggedTensor) else each for each in (values, weights))
    return _counts_in_sparse(values, weights, axis, minlength, maxlength, binary_output, name)


__all__ = [
    "abs", "add", "also_ragged", "as_string", "bincount", "boolean_mask", "cast", "clip_by_norm", "clip_by_value",
    "concat", "constant", "divide", "divide_no_nan", "dropout", "elu", "embedding_lookup", "expand_dims", "fill",
    "from_sparse", "gather", "gelu", "identity", "join", "leaky_relu", "length", "lower", "map_flat_values",
    "one_hot", "ones", "ones_like", "ragged_range", "ragged_stack", "rank", "reduce_all", "reduce_any", "reduce_max",
    "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum", "reduce_variance", "regex_full_match",
    "regex_replace", "relu6", "reverse", "round", "saturate_cast", "scalar_mul", "selu", "shape", "sign", "silu",
    "size", "sparse_bincount", "squared_difference", "stack", "stop_gradient", "strip", "substr", "tile",
    "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number", "to_sparse", "truediv", "upper",
    "where", "zeros", "zeros_like", "DynamicRaggedShape", "RaggedTensor", "RaggedTensorSpec",
]  # fmt: skip
