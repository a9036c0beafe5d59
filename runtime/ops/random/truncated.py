"""Normal numbers between bounds, made of uniform ones by the inverse of their distribution function."""

from __future__ import annotations

import math
from typing import Any

from runtime import dtypes
from runtime.dtypes import DTypeLike
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.arithmetic import maximum, minimum
from runtime.ops.elementwise.compare import where
from runtime.ops.elementwise.elementary import cast, erfc, log1p
from runtime.ops.elementwise.special import ndtri
from runtime.ops.random import stateful
from runtime.tensor import Tensor

# Below it the distribution function is too small for float64; the tail is that of an exponential distribution there.
_TAIL = -37.0


def _below(x: Tensor) -> Tensor:
    """The standard normal distribution function."""
    return erfc(x * -math.sqrt(0.5)) * 0.5


def between(u: Tensor, means: Any, stddevs: Any, minvals: Any, maxvals: Any) -> Tensor:
    """Numbers of normal distributions with these means and deviations, cut at these bounds; all of one dtype.

    u: numbers in [0, 1), float64, which decide. The bounds' middle may lie anywhere: what lies above the mean is
    computed as its mirror image, where the distribution function has more digits.
    """
    mean, deviation, low, high = (cast(each, dtypes.float64) for each in (means, stddevs, minvals, maxvals))
    start, end = (low - mean) / deviation, (high - mean) / deviation
    is_above = start > 0.0
    start, end = where(is_above, -end, start), where(is_above, -start, end)
    below = _below(start)
    inner = ndtri(maximum(below + u * (_below(end) - below), 1e-300))
    # From the end down, at the rate that the density falls there.
    rate = minimum(end, _TAIL)
    outer = end - log1p(-u * (1.0 - 2.0**-53)) / rate
    standard = minimum(maximum(where(end < _TAIL, outer, inner), start), end)
    found = where(is_above, -standard, standard) * deviation + mean
    return minimum(maximum(found, low), high)


def parameterized_truncated_normal(
    shape: Any, means: Any = 0.0, stddevs: Any = 1.0, minvals: Any = -2.0, maxvals: Any = 2.0,
    dtype: DTypeLike = dtypes.float32, seed: int | None = None, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Normal numbers between bounds; means, deviations and bounds broadcast to `shape`."""
    u = stateful.uniform(shape, dtype=dtypes.float64, seed=seed)
    return cast(between(u, *[convert_to_tensor(each, dtype) for each in (means, stddevs, minvals, maxvals)]), dtype)
