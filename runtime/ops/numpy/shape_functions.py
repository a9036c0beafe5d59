"""NumPy's functions on tensors: shapes, joining and splitting, selection, comparison of arrays, interpolation."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DTypeLike
from runtime.ops.arrays import broadcasting, creation, joining, rearrange, reduce, shape_ops
from runtime.ops.arrays.gather import boolean_mask
from runtime.ops.arrays.segments import bincount as count_of_each
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.arrays.sorting import searchsorted
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call
from runtime.ops.elementwise import arithmetic, compare, elementary
from runtime.ops.elementwise.special import polyval as horner
from runtime.ops.numpy.array_functions import flat, implements, moveaxis, numbers, sort
from runtime.ops.numpy.ufuncs import common, floating, truth
from runtime.ops.rules import dims
from runtime.tensor import Tensor

# --- shapes --------------------------------------------------------------------------------------------------------


def _static_or(x: Tensor, of_static: Callable[[tuple[int, ...]], Any], traced: Callable[[Tensor], Any]) -> Any:
    shape = x._shape
    return of_static(shape) if shape is not None and None not in shape else traced(x)  # type: ignore[arg-type]


@implements("shape")
def shape(a: Any) -> Any:
    """Python ints where all dimensions are known, as NumPy gives them."""
    return _static_or(convert_to_tensor(a), tuple, shape_ops.shape)


@implements("size")
def size(a: Any, axis: int | None = None) -> Any:
    x = convert_to_tensor(a)
    if axis is not None:
        return dims(x)[axis]
    return _static_or(x, lambda s: int(np.prod(s)), shape_ops.size)


implements("ndim")(lambda a: known_rank(convert_to_tensor(a), "ndim"))
implements("copy")(lambda a: shape_ops.identity(a))
implements("ravel")(lambda a, order="C": flat(a))
implements("transpose", "permute_dims")(lambda a, axes=None: shape_ops.transpose(a, axes))
implements("matrix_transpose", "linalg.matrix_transpose")(lambda x: moveaxis(x, -1, -2))
implements("swapaxes")(lambda a, axis1, axis2: _swap(a, axis1, axis2))
implements("squeeze")(lambda a, axis=None: shape_ops.squeeze(a, axis))
implements("broadcast_to")(lambda array, shape: broadcasting.broadcast_to(array, shape))
implements("tile")(lambda A, reps: _tile(A, reps))


@implements("reshape")
def reshape(a: Any, shape: Any = None, newshape: Any = None, order: str = "C") -> Tensor:
    if order != "C":
        raise TypeError(
            "np.reshape of a tensor supports order='C' only; for another order, use the array tensor.numpy()"
        )
    return shape_ops.reshape(a, shape if newshape is None else newshape)


def _swap(a: Any, first: int, second: int) -> Tensor:
    x = convert_to_tensor(a)
    order = list(range(known_rank(x, "swapaxes")))
    order[first], order[second] = order[second], order[first]
    return call("transpose", x, perm=tuple(order))


def _tile(a: Any, reps: Any) -> Tensor:
    x = convert_to_tensor(a)
    counts = [reps] if isinstance(reps, (int, np.integer)) else list(reps)
    rank = known_rank(x, "tile")
    if rank < len(counts):
        x = call("expand_dims", x, axis=tuple(range(len(counts) - rank)))
    return rearrange.tile(x, [1] * (rank - len(counts)) + counts)


@implements("expand_dims")
def expand_dims(a: Any, axis: Any) -> Tensor:
    x = convert_to_tensor(a)
    axes = [axis] if isinstance(axis, int) else list(axis)
    rank = known_rank(x, "expand_dims") + len(axes)
    return call("expand_dims", x, axis=tuple(sorted(i % rank for i in axes)))


def _at_least(rank: int) -> Callable[..., Any]:
    def grown(*arys: Any) -> Any:
        found = []
        for a in arys:
            x = convert_to_tensor(a)
            have = known_rank(x, "atleast")
            if have < rank:
                # NumPy puts the new dimensions in front, but for the third one of a matrix or vector.
                places = {(0, 1): (0,), (0, 2): (0, 1), (0, 3): (0, 1, 2), (1, 2): (0,), (1, 3): (0, 2), (2, 3): (2,)}
                x = call("expand_dims", x, axis=places[have, rank])
            found.append(x)
        return found[0] if len(found) == 1 else tuple(found)

    return grown


atleast_1d, atleast_2d, atleast_3d = (implements(f"atleast_{n}d")(_at_least(n)) for n in (1, 2, 3))


# --- joining and splitting -----------------------------------------------------------------------------------------


def _parts(arrays: Any) -> list[Tensor]:
    return common(*(joining.unstack(arrays) if isinstance(arrays, Tensor) else arrays))


@implements("concatenate", "concat")
def concatenate(arrays: Any, axis: int | None = 0) -> Tensor:
    parts = _parts(arrays)
    return joining.concat([flat(p) for p in parts], 0) if axis is None else joining.concat(parts, axis)


implements("stack")(lambda arrays, axis=0: joining.stack(_parts(arrays), axis))
implements("vstack", "row_stack")(lambda tup: joining.concat([atleast_2d(p) for p in _parts(tup)], 0))
implements("dstack")(lambda tup: joining.concat([atleast_3d(p) for p in _parts(tup)], 2))
implements("append")(lambda arr, values, axis=None: concatenate((arr, values), axis))


@implements("hstack")
def hstack(tup: Any) -> Tensor:
    parts = [atleast_1d(p) for p in _parts(tup)]
    return joining.concat(parts, 0 if known_rank(parts[0], "hstack") == 1 else 1)


@implements("column_stack")
def column_stack(tup: Any) -> Tensor:
    parts = _parts(tup)
    return joining.concat(
        [p if known_rank(p, "stack") > 1 else call("expand_dims", flat(p), axis=(1,)) for p in parts], 1
    )


def _split(what: str, strict: bool) -> Callable[..., list[Tensor]]:
    def parts(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
        x = convert_to_tensor(ary)
        length = dims(x)[axis]
        if isinstance(indices_or_sections, (int, np.integer)):
            if strict:
                return joining.split(x, int(indices_or_sections), axis)
            if not isinstance(length, int):
                raise TypeError(f"{what} needs a dimension that is known while tracing")
            each, more = divmod(length, int(indices_or_sections))
            return joining.split(x, [each + 1] * more + [each] * (int(indices_or_sections) - more), axis)
        key: list[Any] = [slice(None)] * known_rank(x, what)
        edges = [None, *[int(i) for i in indices_or_sections], None]
        found = []
        for start, stop in itertools.pairwise(edges):
            key[axis] = slice(start, stop)
            found.append(x[tuple(key)])
        return found

    return parts


split = implements("split")(_split("np.split", True))
implements("array_split")(_split("np.array_split", False))
implements("dsplit")(lambda ary, indices_or_sections: split(ary, indices_or_sections, 2))
implements("vsplit")(lambda ary, indices_or_sections: split(ary, indices_or_sections, 0))
implements("hsplit")(
    lambda ary, indices_or_sections: split(ary, indices_or_sections, builtins.min(1, len(ary.shape) - 1))
)


@implements("repeat")
def repeat(a: Any, repeats: Any, axis: int | None = None) -> Tensor:
    if not isinstance(repeats, (int, np.integer)):
        raise TypeError("np.repeat of a tensor takes one number of repeats; use ag.repeat for one per element")
    x, at = (flat(a), 0) if axis is None else (convert_to_tensor(a), axis % known_rank(convert_to_tensor(a), "repeat"))
    counts = [1] * (known_rank(x, "repeat") + 1)
    counts[at + 1] = int(repeats)
    tiled = rearrange.tile(call("expand_dims", x, axis=(at + 1,)), counts)
    sizes = dims(x)
    return shape_ops.reshape(tiled, [d if i != at else d * int(repeats) for i, d in enumerate(sizes)])


@implements("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    x = convert_to_tensor(a)
    if axis is None:
        return shape_ops.reshape(rearrange.roll(flat(x), shift, 0), dims(x))
    return rearrange.roll(x, shift, axis)


@implements("flip")
def flip(m: Any, axis: Any = None) -> Tensor:
    x = convert_to_tensor(m)
    axes = list(range(known_rank(x, "flip"))) if axis is None else [axis] if isinstance(axis, int) else list(axis)
    return rearrange.reverse(x, axes)


implements("flipud")(lambda m: flip(m, 0))
implements("fliplr")(lambda m: flip(m, 1))


@implements("rot90")
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Tensor:
    x = convert_to_tensor(m)
    for _ in range(k % 4):
        x = flip(_swap(x, *axes), axes[0])
    return x


@implements("pad")
def pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    x = convert_to_tensor(array)
    if mode not in ("constant", "reflect", "symmetric"):
        raise TypeError(f"np.pad of a tensor supports the modes 'constant', 'reflect' and 'symmetric', not {mode!r}")
    pairs = np.broadcast_to(np.asarray(pad_width), (known_rank(x, "pad"), 2))
    return rearrange.pad(x, pairs, mode, constant_values)


@implements("meshgrid")
def meshgrid(*xi: Any, indexing: str = "xy") -> list[Tensor]:
    return creation.meshgrid(*xi, indexing=indexing)


def _filled(value: Any) -> Callable[..., Tensor]:
    def like(a: Any, dtype: DTypeLike = None) -> Tensor:
        x = convert_to_tensor(a)
        kind = x.dtype if dtype is None else dtypes.as_dtype(dtype)
        return call("broadcast_like", convert_to_tensor(value, kind), x)

    return like


implements("zeros_like", "empty_like")(lambda a, dtype=None: creation.zeros_like(a, dtype))
implements("ones_like")(lambda a, dtype=None: creation.ones_like(a, dtype))
implements("full_like")(lambda a, fill_value, dtype=None: _filled(fill_value)(a, dtype))


@implements("linspace")
def linspace(start: Any, stop: Any, num: Any = 50) -> Tensor:
    first, last = (floating(v) for v in common(start, stop))
    return creation.linspace(first, last, num)


# --- selection and tests -------------------------------------------------------------------------------------------


@implements("where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    flag = truth(condition)
    if x is None and y is None:
        return nonzero(flag)
    first, second = common(x, y)
    return compare.where(flag, first, second)


@implements("nonzero")
def nonzero(a: Any) -> tuple[Tensor, ...]:
    return tuple(joining.unstack(compare.where(truth(a)), axis=1))


@implements("compress")
def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    x, at = (flat(a), 0) if axis is None else (convert_to_tensor(a), axis)
    return call("gather", x, nonzero(truth(condition))[0], axis=at % known_rank(x, "compress"))


@implements("unique")
def unique(ar: Any) -> Tensor:
    """The numbers that differ from the one before them in order; one NaN, as in NumPy."""
    x = sort(flat(ar))
    later, before = x[1:], x[:-1]
    is_new = compare.not_equal(later, before)
    if x.dtype.kind == "f":
        is_new = compare.logical_and(is_new, compare.logical_not(compare.is_nan(before)))
    return boolean_mask(x, joining.concat([call("ones_like", elementary.cast(x[:1], dtypes.bool_)), is_new], 0))


implements("argwhere")(lambda a: compare.where(truth(a)))
implements("flatnonzero")(lambda a: nonzero(flat(a))[0])


@implements("clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None) -> Tensor:
    x = convert_to_tensor(a)
    if a_min is not None:
        x = arithmetic.maximum(*common(x, a_min))
    return x if a_max is None else arithmetic.minimum(*common(x, a_max))


@implements("round", "around", "round_")
def round_(a: Any, decimals: int = 0) -> Tensor:
    x = convert_to_tensor(a)
    if x.dtype.kind in "iu":
        return x
    return elementary.rint(x * 10.0**decimals) / 10.0**decimals if decimals else elementary.rint(x)


@implements("fix")
def fix(x: Any) -> Tensor:
    return elementary.trunc(floating(x))


@implements("nan_to_num")
def nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Tensor:
    t = floating(x)
    limits = np.finfo(t.dtype.np)
    high = convert_to_tensor(float(limits.max) if posinf is None else posinf, t.dtype)
    low = convert_to_tensor(float(limits.min) if neginf is None else neginf, t.dtype)
    t = compare.where(compare.is_nan(t), convert_to_tensor(nan, t.dtype), t)
    return compare.where(compare.is_inf(t), compare.where(t > 0, high, low), t)


@implements("isclose")
def isclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    x, y = (floating(v) for v in common(a, b))
    near = arithmetic.abs(x - y) <= arithmetic.abs(y) * rtol + atol
    near = compare.logical_and(near, compare.logical_and(compare.is_finite(x), compare.is_finite(y)))
    near = compare.logical_or(near, compare.equal(x, y))
    both = compare.logical_and(compare.is_nan(x), compare.is_nan(y))
    return compare.logical_or(near, both) if equal_nan else near


@implements("allclose")
def allclose(a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    return reduce.reduce_all(isclose(a, b, rtol, atol, equal_nan))


@implements("array_equal")
def array_equal(a1: Any, a2: Any) -> Any:
    x, y = common(a1, a2)
    if len(x._shape or ()) != len(y._shape or ()) or any(
        m != n and None not in (m, n) for m, n in zip(x._shape or (), y._shape or ())
    ):
        return convert_to_tensor(False)
    return reduce.reduce_all(compare.equal(x, y))


@implements("select")
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    *choices, result = common(*choicelist, default)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        result = compare.where(truth(condition), choice, result)
    return result


# Where abs(pi x) is below 1: the series of sin(t) / t in t ** 2, to 1e-16 with its first two derivatives.
_SINC_SERIES = [(-1) ** k / math.factorial(2 * k + 1) for k in range(12)]


@implements("sinc")
def sinc(x: Any) -> Tensor:
    t = floating(x) * math.pi
    zero, one = (convert_to_tensor(v, t.dtype) for v in (0, 1))
    is_near = arithmetic.abs(t) < 1
    far, square = compare.where(is_near, one, t), arithmetic.square(compare.where(is_near, t, zero))
    series: Any = convert_to_tensor(_SINC_SERIES[-1], t.dtype)
    for coefficient in reversed(_SINC_SERIES[:-1]):
        series = series * square + coefficient
    return compare.where(is_near, series, elementary.sin(far) / far)


# --- calculus ------------------------------------------------------------------------------------------------------


@implements("diff")
def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    x = numbers(a)
    for _ in range(n):
        key: list[Any] = [slice(None)] * known_rank(x, "diff")
        other = list(key)
        key[axis], other[axis] = slice(1, None), slice(None, -1)
        x = x[tuple(key)] - x[tuple(other)]
    return x


@implements("trapezoid", "trapz")
def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    values = moveaxis(floating(y), axis, -1)
    widths: Any = dx if x is None else diff(moveaxis(floating(x), -1 if len(np.shape(x)) == 1 else axis, -1))
    return reduce.reduce_sum((values[..., 1:] + values[..., :-1]) * 0.5 * widths, -1)


@implements("interp")
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Tensor:
    at, places, values = (floating(v) for v in common(x, xp, fp))
    upper = searchsorted(places, flat(at), "right")
    count = convert_to_tensor(dims(places)[0])
    high = arithmetic.minimum(arithmetic.maximum(upper, 1), count - 1)
    low = high - 1
    x0, x1 = call("gather", places, low, axis=0), call("gather", places, high, axis=0)
    y0, y1 = call("gather", values, low, axis=0), call("gather", values, high, axis=0)
    line = y0 + (y1 - y0) * (flat(at) - x0) / (x1 - x0)
    below, above = flat(at) < places[0], flat(at) > places[-1]
    line = compare.where(below, values[0] if left is None else convert_to_tensor(left, line.dtype), line)
    line = compare.where(above, values[-1] if right is None else convert_to_tensor(right, line.dtype), line)
    return shape_ops.reshape(line, dims(at))


@implements("polyval")
def polyval(p: Any, x: Any) -> Tensor:
    coefficients, point = common(p, x)
    return horner(joining.unstack(coefficients), point)


@implements("bincount")
def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Tensor:
    return count_of_each(x, weights, minlength=minlength or None, dtype=dtypes.int64)


@implements("convolve")
def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    x, y = (flat(t) for t in common(a, v))
    m, n = dims(x)[0], dims(y)[0]
    # Row i of the products is moved by i places: each row of the padded matrix is one number longer than it is read.
    products = rearrange.pad(call("expand_dims", x, axis=(1,)) * y, [[0, 0], [0, m]])
    moved = shape_ops.reshape(flat(products)[: m * (m + n - 1)], [m, m + n - 1])
    full = reduce.reduce_sum(moved, 0)
    if mode == "full":
        return full
    if mode not in ("same", "valid"):
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    least, most = arithmetic.minimum(m, n), arithmetic.maximum(m, n)
    start, count = ((least - 1) // 2, most) if mode == "same" else (least - 1, most - least + 1)
    return full[start : start + count]
