"""NumPy's functions on tensors: reductions, sums along axes, sorting, linear algebra, each by ops.

`FUNCTIONS[np.sum]` takes what `np.sum` takes, as far as ops can do it; `protocol.py` falls back on arrays (eager)
or refuses (traced) for other arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.arrays import creation, reduce, scan, shape_ops, sorting
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import name_in_files
from runtime.ops.dispatch import call
from runtime.ops.elementwise import compare, elementary
from runtime.ops.linalg import matrices, matrix_products, solvers, spectral
from runtime.ops.linalg.einsum import einsum
from runtime.ops.linalg.matrix_products import tensordot
from runtime.ops.numpy.ufuncs import common, floating, truth
from runtime.ops.rules import dims, product, shape_attr
from runtime.tensor import Tensor

FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def implements(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers the function for the NumPy functions of these (dotted) names, as far as this NumPy has them."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            name_in_files(f"numpy.{name}", function)
            found: Any = np
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is not None:
                FUNCTIONS[found] = function
        return function

    return register


def numbers(x: Any) -> Tensor:
    """x with bools as the integers that NumPy sums them as."""
    tensor = convert_to_tensor(x)
    return elementary.cast(tensor, dtypes.int64) if tensor.dtype is dtypes.bool_ else tensor


def flat(x: Any) -> Tensor:
    return call("reshape", convert_to_tensor(x), shape=(-1,))


# --- reductions ----------------------------------------------------------------------------------------------------


def _reduction(function: Callable[..., Tensor], prepare: Callable[[Any], Tensor]) -> Callable[..., Tensor]:
    def reduced(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        return function(prepare(a), axis, keepdims)

    return reduced


for _names, _function, _prepare in [
    (("sum",), reduce.reduce_sum, numbers), (("prod",), reduce.reduce_prod, numbers),
    (("mean",), reduce.reduce_mean, floating), (("max", "amax"), reduce.reduce_max, numbers),
    (("min", "amin"), reduce.reduce_min, numbers), (("any",), reduce.reduce_any, truth),
    (("all",), reduce.reduce_all, truth),
]:  # fmt: skip
    implements(*_names)(_reduction(_function, _prepare))


@implements("var")
def var(a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    x = floating(a)
    spread = reduce.reduce_variance(x, axis, keepdims)
    if not ddof:
        return spread
    count = reduce.reduce_sum(call("ones_like", x), axis, keepdims)
    return spread * (count / (count - ddof))


@implements("std")
def std(a: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    return elementary.sqrt(var(a, axis, ddof, keepdims))


def _without_nan(function: Callable[..., Tensor], neutral: float) -> Callable[..., Tensor]:
    def reduced(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
        x = floating(a)
        return function(compare.where(compare.is_nan(x), convert_to_tensor(neutral, x.dtype), x), axis, keepdims)

    return reduced


nansum = implements("nansum")(_without_nan(reduce.reduce_sum, 0.0))
implements("nanprod")(_without_nan(reduce.reduce_prod, 1.0))
implements("nanmax")(_without_nan(reduce.reduce_max, -math.inf))
implements("nanmin")(_without_nan(reduce.reduce_min, math.inf))


@implements("nanmean")
def nanmean(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    x = floating(a)
    there = elementary.cast(compare.logical_not(compare.is_nan(x)), x.dtype)
    return nansum(x, axis, keepdims) / reduce.reduce_sum(there, axis, keepdims)


@implements("average")
def average(a: Any, axis: Any = None, weights: Any = None) -> Tensor:
    x = floating(a)
    if weights is None:
        return reduce.reduce_mean(x, axis)
    w = convert_to_tensor(weights, None if isinstance(weights, Tensor) else x.dtype)
    if axis is not None and known_rank(w, "average") == 1 and known_rank(x, "average") > 1:
        at = axis % known_rank(x, "average")
        w = call("reshape", w, shape=tuple(-1 if i == at else 1 for i in range(known_rank(x, "average"))))
        w = call("broadcast_like", w, x)
    return reduce.reduce_sum(x * w, axis) / reduce.reduce_sum(w, axis)


@implements("ptp")
def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return reduce.reduce_max(a, axis, keepdims) - reduce.reduce_min(a, axis, keepdims)


@implements("count_nonzero")
def count_nonzero(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    return reduce.count_nonzero(a, axis, keepdims)


def _position(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def found(a: Any, axis: int | None = None) -> Tensor:
        x, at = (flat(a), 0) if axis is None else (convert_to_tensor(a), axis)
        place = function(x, at)
        if not x.dtype.is_floating:
            return place
        # NumPy's extreme is the first NaN, if there is one.
        nan = compare.is_nan(x)
        return compare.where(reduce.reduce_any(nan, at), reduce.argmax(nan, at), place)

    return found


implements("argmax")(_position(reduce.argmax))
implements("argmin")(_position(reduce.argmin))


def _running(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def accumulated(a: Any, axis: int | None = None) -> Tensor:
        return function(flat(numbers(a)), 0) if axis is None else function(numbers(a), axis)

    return accumulated


implements("cumsum")(_running(scan.cumsum))
implements("cumprod")(_running(scan.cumprod))


# --- order ---------------------------------------------------------------------------------------------------------


@implements("sort")
def sort(a: Any, axis: int | None = -1, kind: Any = None, stable: Any = None) -> Tensor:
    return sorting.sort(flat(a)) if axis is None else sorting.sort(a, axis)


@implements("argsort")
def argsort(a: Any, axis: int | None = -1, kind: Any = None, stable: Any = None) -> Tensor:
    order = sorting.argsort(flat(a)) if axis is None else sorting.argsort(a, axis)
    return elementary.cast(order, dtypes.int64)


@implements("searchsorted")
def searchsorted(a: Any, v: Any, side: str = "left") -> Tensor:
    sequence, values = common(a, v)
    return sorting.searchsorted(sequence, values, side, dtypes.int64)


@implements("quantile")
def quantile(a: Any, q: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    x = floating(flat(a) if axis is None else a)
    at = 0 if axis is None else axis
    ordered = sorting.sort(x, at)
    size = convert_to_tensor(dims(ordered)[at % known_rank(x, "quantile")])
    place = convert_to_tensor(q, x.dtype) * elementary.cast(size - 1, x.dtype)
    below = elementary.floor(place)
    low = elementary.cast(below, dtypes.int32)
    high = elementary.cast(elementary.ceil(place), dtypes.int32)
    first, second = gather(ordered, low, axis=at), gather(ordered, high, axis=at)
    share = place - below
    if known_rank(share, "quantile"):
        raise TypeError("np.quantile of a tensor takes one quantile at a time")
    result = first + (second - first) * share
    if not keepdims:
        return result
    if axis is None:
        return call("reshape", result, shape=(1,) * known_rank(convert_to_tensor(a), "quantile"))
    return shape_ops.expand_dims(result, axis)


@implements("percentile")
def percentile(a: Any, q: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    return quantile(a, q / 100, axis, keepdims=keepdims)


@implements("median")
def median(a: Any, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    return quantile(a, 0.5, axis, keepdims=keepdims)


@implements("take")
def take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    x, places = (flat(a), indices) if axis is None else (convert_to_tensor(a), indices)
    at = 0 if axis is None else axis % known_rank(x, "take")
    at_tensor = convert_to_tensor(places)
    size = elementary.cast(convert_to_tensor(dims(x)[at]), at_tensor.dtype)
    return gather(x, compare.where(at_tensor < 0, at_tensor + size, at_tensor), axis=at)


@implements("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    return sorting.take_along(flat(arr), indices, 0) if axis is None else sorting.take_along(arr, indices, axis)


# --- products and linear algebra -----------------------------------------------------------------------------------


@implements("dot")
def dot(a: Any, b: Any) -> Tensor:
    x, y = common(a, b)
    left, right = known_rank(x, "dot"), known_rank(y, "dot")
    if left == 0 or right == 0:
        return x * y
    return tensordot(x, y, [[left - 1], [max(right - 2, 0)]])


@implements("inner")
def inner(a: Any, b: Any) -> Tensor:
    x, y = common(a, b)
    left, right = known_rank(x, "inner"), known_rank(y, "inner")
    return x * y if left == 0 or right == 0 else tensordot(x, y, [[left - 1], [right - 1]])


@implements("outer", "linalg.outer")
def outer(a: Any, b: Any) -> Tensor:
    x, y = common(a, b)
    return call("expand_dims", flat(x), axis=(1,)) * flat(y)


@implements("tensordot", "linalg.tensordot")
def np_tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    x, y = common(a, b)
    return tensordot(x, y, axes)


@implements("einsum")
def np_einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Tensor:
    return einsum(subscripts, *common(*operands))


@implements("kron")
def kron(a: Any, b: Any) -> Tensor:
    x, y = common(a, b)
    rank = max(known_rank(x, "kron"), known_rank(y, "kron"))
    for _ in range(rank - known_rank(x, "kron")):
        x = call("expand_dims", x, axis=(0,))
    for _ in range(rank - known_rank(y, "kron")):
        y = call("expand_dims", y, axis=(0,))
    wide = call("expand_dims", x, axis=tuple(range(1, 2 * rank, 2))) * call(
        "expand_dims", y, axis=tuple(range(0, 2 * rank, 2))
    )
    shape, extra = shape_attr([product([m, n]) for m, n in zip(dims(x), dims(y))])
    return call("reshape", wide, *extra, shape=shape)


@implements("cross", "linalg.cross")
def cross(a: Any, b: Any, axis: int = -1) -> Tensor:
    x, y = common(a, b)
    if axis not in (-1, known_rank(x, "cross") - 1):
        return moveaxis(matrices.cross(moveaxis(x, axis, -1), moveaxis(y, axis, -1)), -1, axis)
    return matrices.cross(x, y)


@implements("trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    return reduce.reduce_sum(diagonal(numbers(a), offset, axis1, axis2), -1)


@implements("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    x = convert_to_tensor(a)
    return matrices.diagonal_of(moveaxis(x, (axis1, axis2), (-2, -1)), offset)


@implements("diag")
def diag(v: Any, k: int = 0) -> Tensor:
    x = convert_to_tensor(v)
    return matrices.diagonal_matrix(x, k) if known_rank(x, "diag") == 1 else matrices.diagonal_of(x, k)


implements("tril")(matrices.tril)
implements("triu")(matrices.triu)
implements("linalg.det")(lambda a: solvers.det(floating(a)))
implements("linalg.slogdet")(lambda a: solvers.slogdet(floating(a)))
implements("linalg.inv")(lambda a: solvers.inv(floating(a)))
implements("linalg.pinv")(lambda a: solvers.pinv(floating(a)))
implements("linalg.cholesky")(lambda a: solvers.cholesky(floating(a)))
implements("linalg.eigh")(lambda a: spectral.eigh(floating(a)))
implements("linalg.eigvalsh")(lambda a: spectral.eigvalsh(floating(a)))
implements("linalg.matrix_rank")(lambda A: spectral.matrix_rank(floating(A)))


@implements("linalg.solve")
def solve(a: Any, b: Any) -> Tensor:
    matrix, rhs = (floating(v) for v in common(a, b))
    if known_rank(rhs, "solve") == 1:
        column = solvers.solve(matrix, call("expand_dims", rhs, axis=(1,)))
        return call("squeeze", column, axis=(known_rank(column, "solve") - 1,))
    return solvers.solve(matrix, rhs)


@implements("linalg.svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    x = floating(a)
    if not compute_uv:
        return spectral.svd(x, compute_uv=False)
    s, u, v = spectral.svd(x, full_matrices)
    return u, s, matrix_products.matrix_transpose(v)


@implements("linalg.qr")
def qr(a: Any, mode: str = "reduced") -> Any:
    if mode not in ("reduced", "complete"):
        raise TypeError(f"np.linalg.qr of a tensor supports the modes 'reduced' and 'complete', not {mode!r}")
    return spectral.qr(floating(a), mode == "complete")


@implements("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Tensor:
    tensor = floating(x)
    rank = known_rank(tensor, "norm")
    if axis is None and ord is not None and rank == 2:
        axis = (0, 1)
    return matrices.norm(tensor, "euclidean" if ord is None else ord, axis, keepdims)


@implements("linalg.matrix_power")
def matrix_power(a: Any, n: int) -> Tensor:
    x = convert_to_tensor(a)
    if n < 0:
        x, n = solvers.inv(floating(x)), -n
    result: Any = None
    while n:
        if n & 1:
            result = x if result is None else matrix_products.matmul(result, x)
        x, n = matrix_products.matmul(x, x), n >> 1
    if result is not None:
        return result
    return call("broadcast_like", creation.eye(dims(x)[-1], dtype=x.dtype), x)


def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """`np.moveaxis`."""
    x = convert_to_tensor(a)
    rank = known_rank(x, "moveaxis")
    sources = [s % rank for s in (source if isinstance(source, Sequence) else [source])]
    targets = [d % rank for d in (destination if isinstance(destination, Sequence) else [destination])]
    order = [i for i in range(rank) if i not in sources]
    for target, start in sorted(zip(targets, sources)):
        order.insert(target, start)
    return x if order == list(range(rank)) else call("transpose", x, perm=tuple(order))


implements("moveaxis")(moveaxis)
