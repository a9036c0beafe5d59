"""What an image's rows or columns become when their number changes: weighted sums of few of the old ones.

    new[i] = sum over k of weights[i, k] * old[places[i, k]]

The tables are made when the lengths are known. Centres of pixels lie at halves: pixel i covers [i, i + 1).

Keys, "Cubic Convolution Interpolation for Digital Image Processing" (1981); Mitchell, Netravali, "Reconstruction
Filters in Computer Graphics" (1988); Duchon, "Lanczos Filtering in One and Two Dimensions" (1979).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.arrays.shape_ops import ensure_shape, expand_dims
from runtime.ops.convert import convert_to_tensor, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.tensor import Tensor

# Rows are gathered one by one, which is fast in kernels, as long as these are few.
_FEW = 8
_Float = np.float32


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def kernel(x: Any) -> Any:
        angle = _Float(np.pi) * np.maximum(x, _Float(1e-3))
        value = radius * np.sin(angle) * np.sin(angle / radius) / (angle * angle)
        return np.where(x > radius, 0, np.where(x <= 1e-3, 1, value))

    return kernel


def _triangle(x: Any) -> Any:
    return np.maximum(1 - x, 0)


def _keys_cubic(x: Any) -> Any:
    near, far = ((1.5 * x - 2.5) * x) * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _mitchell_cubic(x: Any) -> Any:
    near, far = ((7 / 6 * x - 2) * x) * x + 8 / 9, ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0, np.where(x >= 1, far, near))


def _gaussian(x: Any) -> Any:
    return np.where(x >= 1.5, 0, np.exp(-x * x / _Float(2 * 0.5 * 0.5)))


# A kernel weighs a pixel by its distance; it is 0 beyond its radius.
KERNELS: dict[str, tuple[float, Callable[[Any], Any]]] = {
    "bilinear": (1.0, _triangle),
    "bicubic": (2.0, _keys_cubic),
    "gaussian": (1.5, _gaussian),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "mitchellcubic": (2.0, _mitchell_cubic),
}
Table = tuple[np.ndarray, np.ndarray]


def _nearest(length: int, size: int) -> Table:
    at = np.floor((np.arange(size, dtype=_Float) + _Float(0.5)) * (_Float(length) / _Float(size)))
    return np.clip(at, 0, length - 1)[:, None], np.ones((size, 1))


def _bilinear(length: int, size: int) -> Table:
    at = (np.arange(size, dtype=_Float) + _Float(0.5)) * (_Float(length) / _Float(size)) - _Float(0.5)
    floor = np.floor(at)
    upper = np.minimum(np.ceil(at), length - 1)
    lower = np.minimum(np.maximum(floor, 0), upper)
    share = at - floor
    return np.stack([lower, upper], 1), np.stack([1 - share, share], 1)


def _bicubic(length: int, size: int) -> Table:
    """Weights are read from a table of 1024 steps, as TensorFlow does; what lies outside has none."""
    at = (np.arange(size, dtype=_Float) + _Float(0.5)) * (_Float(length) / _Float(size)) - _Float(0.5)
    floor = np.floor(at)
    step = np.round((at - floor) * 1024) / 1024
    places = floor[:, None] + np.arange(-1, 3)
    inside = np.clip(places, 0, length - 1)
    weights = np.where(places == inside, _keys_cubic(np.abs(np.arange(-1, 3) - step[:, None])), 0)
    return inside, _normalised(weights)


def _area(length: int, size: int) -> Table:
    """The mean of what a new pixel covers."""
    scale = _Float(length) / _Float(size)
    start = np.arange(size, dtype=_Float) * scale
    end = np.arange(1, size + 1, dtype=_Float) * scale
    first, last = np.floor(start), np.ceil(end)
    places = first[:, None] + np.arange(int((last - first).max()))
    begin, stop = start[:, None], end[:, None]
    whole = places + 1 <= stop
    covered = np.where(
        places < begin, np.where(whole, places + 1 - begin, scale), np.where(whole, _Float(1), stop - places)
    )
    weights = np.where(places < last[:, None], covered, 0) / scale
    return np.clip(places, 0, length - 1), weights


def _filtered(length: int, size: int, method: str, antialias: bool) -> Table:
    """By a kernel, which is as wide as a new pixel where these are larger and `antialias` is set."""
    radius, kernel = KERNELS[method]
    inverse = _Float(1) / (_Float(size) / _Float(length))
    widening = max(inverse, _Float(1)) if antialias else _Float(1)
    reach = _Float(radius) * widening
    centre = (np.arange(size, dtype=_Float) + _Float(0.5)) * inverse
    first = np.clip(np.ceil(centre - reach - _Float(0.5)), 0, length - 1)
    last = np.clip(np.floor(centre + reach - _Float(0.5)), 0, length - 1)
    places = first[:, None] + np.arange(int((last - first).max()) + 1)
    distance = np.abs(places.astype(_Float) + _Float(0.5) - centre[:, None]) * (_Float(1) / widening)
    weights = np.where(places <= last[:, None], kernel(distance), 0)
    outside = (centre < 0) | (centre > length)
    return np.minimum(places, last[:, None]), np.where(outside[:, None], 0, _normalised(weights))


def _normalised(weights: Any) -> Any:
    total = weights.sum(1, keepdims=True)
    small = np.abs(total) < 1000 * np.finfo(_Float).tiny
    return np.where(small, weights, weights / np.where(small, 1, total))


@functools.lru_cache(256)
def table(length: int, size: int, method: str, antialias: bool) -> Table:
    """Places (int32) and weights (float32), shape (size, count), for an axis of `length` that becomes `size` long."""
    if antialias and method in ("bilinear", "bicubic"):
        places, weights = _filtered(length, size, method, True)
    elif method in KERNELS and method not in ("bilinear", "bicubic"):
        places, weights = _filtered(length, size, method, antialias)
    else:
        places, weights = {"nearest": _nearest, "bilinear": _bilinear, "bicubic": _bicubic, "area": _area}[method](
            length, size
        )
    weights = weights.astype(_Float)
    used = np.flatnonzero(np.any(weights != 0, 0))
    used = used if used.size else np.zeros(1, np.int64)
    return np.ascontiguousarray(places[:, used], np.int32), np.ascontiguousarray(weights[:, used])


@deferrable
def _tables(length: Tensor, size: Tensor, method: str, antialias: bool) -> tuple[Tensor, Tensor]:
    found = [static_value(convert_to_tensor(n)) for n in (length, size)]
    if found[0] is None or found[1] is None:
        raise ValueError("the lengths of an axis that is resized must be known")  # then it is put off
    places, weights = table(max(int(found[0]), 1), max(int(found[1]), 1), method, antialias)
    return convert_to_tensor(places), convert_to_tensor(weights)


def resample(x: Tensor, axis: int, length: int | Tensor, size: int | Tensor, method: str, antialias: bool) -> Tensor:
    """`x` (floats, save for "nearest") with `size` rows along `axis`, which is `length` long. Both are positive."""
    places: Any
    weights: Any
    count: int | None
    if isinstance(length, int) and isinstance(size, int):
        places, weights = table(length, size, method, antialias)
        count = places.shape[1]
        if count == 1 and (weights == 1).all():
            unchanged = length == size and (places[:, 0] == np.arange(length)).all()
            return x if unchanged else gather(x, places[:, 0], axis=axis)
    else:
        rows, shares = _tables(convert_to_tensor(length), convert_to_tensor(size), method, antialias)
        at = size if isinstance(size, int) else None
        count = 1 if method == "nearest" else None
        places, weights = ensure_shape(rows, [at, count]), ensure_shape(shares, [at, count])
        if count == 1:
            return gather(x, places[:, 0], axis=axis)
    trailing = len(x._shape or ()) - axis - 1
    if count is not None and count <= _FEW:
        result: Any = None
        for k in range(count):
            part = gather(x, places[:, k], axis=axis) * weights[:, k].reshape((-1,) + (1,) * trailing)
            result = part if result is None else result + part
        return result
    factors = convert_to_tensor(weights, dtypes.float32)
    for _ in range(trailing):
        factors = expand_dims(factors, -1)
    return reduce_sum(gather(x, places, axis=axis) * factors, axis + 1)
