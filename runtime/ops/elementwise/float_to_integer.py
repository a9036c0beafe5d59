"""Floats become integers, whatever they are: the same ones on every processor, and as in kernels.

What lies out of range, and NaN, becomes the smallest integer of the 32 or 64 bits that are converted to, and what is
left of that in fewer bits. C leaves this to the compiler, and NumPy to C. x86 has instructions that do so for signed
integers; those of arm64 give the nearest integer, and 0 for NaN. So NumPy is asked, once for each pair of dtypes, what
it makes of such numbers, in long rows of them and alone: code for vectors may differ from code for one number.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_TRIED = (0.5, -1.5, 3e9, -3e9, 1e10, -1e10, 1e19, -1e19, 1e30, -1e30, np.inf, -np.inf, np.nan)
_ROW = 5  # times all of these, longer than the vectors of any processor, and not a multiple of them


def converted(x: Any, dtype: np.dtype) -> Any:
    """The elements of an array of floats, without their fractions, as integers of this dtype."""
    return x.astype(dtype) if _numpy_does(x.dtype, dtype) else _by_ranges(x, dtype)


@functools.cache
def _numpy_does(source: np.dtype, dtype: np.dtype) -> bool:
    with np.errstate(all="ignore"):
        row = np.array(_TRIED * _ROW).astype(source)
        found = row.astype(dtype)
        alone = [each.astype(dtype) for each in row[: len(_TRIED)]]
    expected = _by_ranges(row, dtype)
    return np.array_equal(found, expected) and np.array_equal(alone, expected[: len(_TRIED)])


def _by_ranges(x: Any, dtype: np.dtype) -> Any:
    """As `to_int32` and its like of `codegen/kernel_library/functions.py` do it."""
    if x.dtype.itemsize <= 2:
        x = x.astype(np.float32)
    if dtype == np.uint64:
        is_high = x >= 2.0**63
        low = _in_range(np.where(is_high, x - x.dtype.type(2.0**63), x), np.int64).astype(dtype)
        # NaN counts as high.
        return np.where(is_high | np.isnan(x), low ^ np.uint64(1 << 63), low)
    return _in_range(x, np.int64 if dtype in (np.int64, np.uint32) else np.int32).astype(dtype)


def _in_range(x: Any, wide: type[np.signedinteger]) -> Any:
    least = np.iinfo(wide).min
    # Of float64, numbers between two integers lose their fraction before it counts: -2147483648.5 is in range.
    is_in = (x > least - 1.0) & (x < -float(least)) if wide is np.int32 else (x >= least) & (x < -float(least))
    return np.where(is_in, x, x.dtype.type(least)).astype(wide)
