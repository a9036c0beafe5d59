"""Reductions and running totals: the array API standard's statistical and utility functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime import dtypes
from runtime.array_api.data_types import default_dtype
from runtime.array_api.manipulation import _axes, concat
from runtime.dtypes import DType, as_dtype
from runtime.ops.arrays import reduce, scan, shape_ops
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.elementwise import compare, elementary
from runtime.ops.numpy.array_functions import var as np_var
from runtime.ops.numpy.shape_functions import diff as np_diff
from runtime.ops.numpy.ufuncs import floating, truth
from runtime.tensor import Tensor


def _places(x: Tensor, axis: Any, what: str) -> tuple[int, ...] | None:
    return None if axis is None else _axes(axis, known_rank(x, what), what)


def _sum_dtype(x: Tensor, dtype: Any) -> DType:
    """Sums of small integers have the default integer dtype, which overflows later."""
    if dtype is not None:
        return as_dtype(dtype)
    if x.dtype.kind == "b" or (x.dtype.kind == "i" and x.dtype.size < 4):
        return default_dtype(0)
    return dtypes.uint32 if x.dtype.kind == "u" and x.dtype.size < 4 else x.dtype


def _cast(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype is dtype else elementary.cast(x, dtype)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over `axis` (an int or several), or over all axes; integers below 32 bits are summed in 32 bits."""
    tensor = convert_to_tensor(x)
    return reduce.reduce_sum(_cast(tensor, _sum_dtype(tensor, dtype)), _places(tensor, axis, "sum"), keepdims)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over `axis`; integers below 32 bits are multiplied in 32 bits."""
    tensor = convert_to_tensor(x)
    return reduce.reduce_prod(_cast(tensor, _sum_dtype(tensor, dtype)), _places(tensor, axis, "prod"), keepdims)


def _reduction(name: str, function: Callable[..., Tensor], doc: str) -> Any:
    def reduced(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Tensor:
        tensor = convert_to_tensor(x)
        return function(tensor, _places(tensor, axis, name), keepdims)

    reduced.__name__ = reduced.__qualname__ = name
    reduced.__doc__ = doc
    return reduced


max = _reduction("max", reduce.reduce_max, "The largest element over `axis`, or over all axes.")
min = _reduction("min", reduce.reduce_min, "The smallest element over `axis`, or over all axes.")
mean = _reduction(
    "mean",
    lambda x, *rest: reduce.reduce_mean(floating(x), *rest),
    "The mean over `axis`; the mean of integers is float64.",
)
all = _reduction("all", lambda x, *rest: reduce.reduce_all(truth(x), *rest), "Whether all elements are true.")
any = _reduction("any", lambda x, *rest: reduce.reduce_any(truth(x), *rest), "Whether any element is true.")


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over `axis`: the sum of squared deviations, divided by their number minus `correction`."""
    tensor = convert_to_tensor(x)
    return np_var(tensor, _places(tensor, axis, "var"), correction, keepdims)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation over `axis`: the square root of `var`."""
    return elementary.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _running(function: Callable[..., Tensor], initial: int, x: Any, axis: Any, dtype: Any, include: bool) -> Tensor:
    tensor = convert_to_tensor(x)
    rank = known_rank(tensor, "cumulative_sum")
    if axis is None and rank != 1:
        raise ValueError(f"cumulative sums and products of an array of {rank} dimensions need an axis.")
    (at,) = _axes(0 if axis is None else axis, rank, "cumulative_sum")
    made = function(_cast(tensor, _sum_dtype(tensor, dtype)), at)
    if not include:
        return made
    shape = [1 if i == at else n for i, n in enumerate(made.shape)]
    first = call("broadcast_to", convert_to_tensor(initial, made.dtype), shape=tuple(shape))
    return concat([first, made], axis=at)


def cumulative_sum(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Running sums along `axis`, with a 0 in front if `include_initial`."""
    return _running(scan.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Running products along `axis`, with a 1 in front if `include_initial`."""
    return _running(scan.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Tensor:
    """The `n`-th differences of neighbours along `axis`; `prepend` and `append` are joined to `x` first."""
    tensor = convert_to_tensor(x)
    (at,) = _axes(axis, known_rank(tensor, "diff"), "diff")
    parts = [p for p in (prepend, tensor, append) if p is not None]
    joined = concat(parts, axis=at) if len(parts) > 1 else tensor
    if joined.dtype is dtypes.bool_:
        for _ in range(n):
            key: list[Any] = [slice(None)] * known_rank(joined, "diff")
            other = list(key)
            key[at], other[at] = slice(1, None), slice(None, -1)
            joined = compare.not_equal(joined[tuple(key)], joined[tuple(other)])
        return joined
    return np_diff(shape_ops.identity(joined), n, at)


__all__ = [
    "all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var",
]  # fmt: skip
