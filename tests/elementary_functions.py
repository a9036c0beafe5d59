"""The accuracy of the kernels' own functions: `python -m tests.elementary_functions [name ...]` goes over all 2**32
float32.

Each number goes through a compiled graph and is compared with NumPy's or SciPy's float64 function; what is printed is
the largest error in units in the last place of the right result. `slice_of` is what the test suite takes of it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.special
from numba import njit

from runtime.codegen.backends.call_stub import load
from runtime.codegen.lower.lower_graph import lower
from runtime.dtypes import DType, float32
from runtime.ops.dispatch import call
from tests.codegen.compare import build, typed

_CHUNK = 2**17  # stays in the cache


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


# Of one number; they take float64 and, but for those of SciPy, longdouble.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "sigmoid": scipy.special.expit, "softplus": _softplus, "erf": scipy.special.erf,
    "erfc": scipy.special.erfc,
}  # fmt: skip


def native(name: str, dtype: DType, operands: int = 1) -> Callable[..., np.ndarray]:
    """The op as a compiled function of flat arrays."""
    kernel = load(lower(build(lambda *xs: call(name, *xs), [typed(dtype, None)] * operands)))
    return lambda *xs: kernel(list(xs))[0]


@njit(error_model="numpy")
def _worst(got: Any, exact: Any) -> tuple[float, int]:
    """The largest error, in units in the last place of the right float32, and where; NaN and infinity must be met."""
    largest, place = 0.0, 0
    for i in range(got.size):
        right = np.float32(exact[i])
        if got[i] == right or (got[i] != got[i] and right != right):
            continue
        size = abs(np.float64(right))
        distance = abs(np.float64(got[i]) - exact[i])
        if distance <= largest * size * 2.0**-24:
            continue  # a unit is at least as large as this, and finding it out takes longer
        gap = 2.0**-149
        if size >= 2.0**-126:
            gap = 2.0 ** (np.floor(np.log2(size)) - 23)
        error = distance / gap
        if not error <= largest:
            largest, place = error if error == error else np.inf, i
    return largest, place


def worst_of(name: str, arrays: Iterator[np.ndarray]) -> tuple[float, float]:
    """The largest error of a float32 function over the numbers, and the number it is at."""
    function, exact = native(name, float32), FUNCTIONS[name]
    largest, place = 0.0, 0.0
    for x in arrays:
        with np.errstate(all="ignore"):
            error, index = _worst(function(x), exact(x.astype(np.float64)))
        if error > largest:
            largest, place = error, float(x[index])
    return largest, place


def everything(step: int = 1) -> Iterator[np.ndarray]:
    for start in range(0, 2**32, _CHUNK * step):
        patterns = np.arange(start, min(start + _CHUNK * step, 2**32), step, dtype=np.uint64)
        yield patterns.astype(np.uint32).view(np.float32)


def slice_of(step: int = 2039) -> Iterator[np.ndarray]:
    """Every `step`th float32: all exponents and signs, infinities and NaN; with the neighbours of thresholds."""
    yield np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32).view(np.float32)
    edges = np.array(
        [
            0.0, 1e-45, 1.1754944e-38, 0.5, 0.625, 0.41421357, 0.70710678, 1.0, 1.4142135, 2.4142135, 4.0, 9.0, 17.0,
            88.72284, 87.33655, 89.415985, 103.97208, 104.0, 32768.0, 3.4028235e38, np.inf,
        ],
        np.float32,
    )  # fmt: skip
    near = (edges.view(np.int32)[:, None] + np.arange(-3, 4)).ravel()
    numbers = near[near >= 0].astype(np.int32).view(np.float32)
    yield np.concatenate([numbers, -numbers])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.elementary_functions", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help="functions, by default all of them")
    parser.add_argument("--step", type=int, default=1, help="take every STEP-th number only")
    options = parser.parse_args(arguments)
    for name in options.names or FUNCTIONS:
        start = time.perf_counter()
        error, place = worst_of(name, everything(options.step))
        print(f"{name:9} {error:.3f} at {place!r} ({time.perf_counter() - start:.0f} s)", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
