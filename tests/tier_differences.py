"""Which operations give other last bits in native code than on the interpreter, and by how much.

    python -m tests.tier_differences

prints a line for each: the share of results that differ, and the largest difference in units in the last place (of
structured operations: relative to the largest result, in units of the dtype's precision). docs/internals.md has the
summary; `tests/codegen/test_same_bits.py` keeps the rest of the op table free of differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import autograph as ag
from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef
from tests.ops import pointwise

# Functions that native code computes by formulas of its own (`runtime/codegen/math/elementary_functions.py`), or by the
# C library's, and the interpreter by NumPy's or SciPy's; and how many units in the last place they may differ by.
ELEMENTARY = {
    "acos": 3, "acosh": 3, "asin": 3, "asinh": 3, "atan": 3, "atan2": 4, "atanh": 3, "cos": 3, "cosh": 3, "erf": 3,
    "exp": 3, "expm1": 3, "hypot": 3, "hypot_slope": 4, "log": 4, "log1p": 3, "pow": 3, "sech": 4,
    "sigmoid": 4, "sin": 3, "sinh": 3, "softplus": 3, "tan": 4,
    "tanh": 3, "xlog1py": 5, "xlogy": 5,
    # SciPy's erfc is some hundred units off where its results are small; next to its zeros lgamma loses digits.
    "erfc": None, "lgamma": None,
}  # fmt: skip
SIZE = 4001


@dataclass
class Difference:
    name: str
    share: float
    most: float


def rows(dtype: DType) -> list[OpDef]:
    """The elementwise rows that take a float dtype, and nothing else."""
    return [
        row
        for row in pointwise.rows()
        if dtype.kind in row.kinds and row.is_elementwise and row.name not in ("cast", "complex", "bitcast", "select")
    ]


def operands(dtype: DType, count: int, scalar: bool, seed: int) -> list[np.ndarray]:
    """Normal numbers of several sizes, the same for all rows."""
    random = np.random.default_rng(seed)
    scale = (1.0, 10.0, 0.1, 0.5)[seed % 4]
    arrays = [np.asarray(random.normal(size=() if scalar else SIZE) * scale).astype(dtype.np) for _ in range(count)]
    return [np.minimum(np.abs(a), dtype.np.type(0.99)) for a in arrays] if seed % 4 == 3 else arrays


def units(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many numbers of the format lie between two."""
    whole = {2: np.int16, 4: np.int32, 8: np.int64}[a.dtype.itemsize]
    low = np.iinfo(whole).min

    def place(x: np.ndarray) -> np.ndarray:
        bits = np.ascontiguousarray(x).view(whole).astype(object if whole is np.int64 else np.int64)
        return np.where(bits < 0, low - bits, bits)

    both = np.isnan(a) & np.isnan(b)
    return np.where(both, 0, np.abs(place(a) - place(b))).astype(float)


def pointwise_differences(dtype: DType, scalar: bool, chosen: Sequence[OpDef], rounds: int = 8) -> list[Difference]:
    """The rows whose interpreted and compiled results differ in some bit."""
    counts = [pointwise.arity(row) for row in chosen]

    def every(*given: Any) -> list[Any]:
        return [apply(row, list(given[:count]), {}) for row, count in zip(chosen, counts)]

    specs = [ag.TensorSpec([] if scalar else [SIZE], dtype)] * max(counts)
    interpreted, compiled = (ag.function(every, specs, autograph=False, jit_compile=mode) for mode in (False, True))
    most, differing = [0.0] * len(chosen), [0] * len(chosen)
    for seed in range(rounds):
        arguments = [ag.constant(a) for a in operands(dtype, max(counts), scalar, seed)]
        for index, (want, got) in enumerate(zip(interpreted(*arguments), compiled(*arguments))):
            a, b = np.atleast_1d(want.numpy()), np.atleast_1d(got.numpy())
            apart = units(a, b) if want.dtype.is_floating else (a != b).astype(float)
            most[index] = max(most[index], float(apart.max()))
            differing[index] += int((apart > 0).sum())
    total = rounds * (1 if scalar else SIZE)
    return [Difference(row.name, count / total, unit) for row, count, unit in zip(chosen, differing, most) if count]


STRUCTURED: dict[str, Callable[[Any], Any]] = {
    "reduce_sum": ag.reduce_sum,
    "reduce_mean": ag.reduce_mean,
    "reduce_sum of rows": lambda x: ag.reduce_sum(x, 1),
    "reduce_sum of columns": lambda x: ag.reduce_sum(x, 0),
    "reduce_prod": lambda x: ag.reduce_prod(x * 0.01 + 1.0),
    "reduce_max": ag.reduce_max,
    "cumsum": ag.cumsum,
    "softmax": ag.nn.softmax,
    "matmul": lambda x: ag.matmul(x, x, transpose_b=True),
    "norm": ag.norm,
    "cholesky": lambda x: ag.linalg.cholesky(ag.matmul(x, x, transpose_b=True) + ag.eye(x.shape[0], dtype=x.dtype)),
    "sort": ag.sort,
    "transpose": ag.transpose,
}


def structured_difference(name: str, dtype: DType, rows: int, columns: int) -> Difference:
    """Of the largest result, in units of the dtype's precision."""
    x = ag.constant(np.random.default_rng(5).normal(size=(rows, columns)).astype(dtype.np))
    both = [ag.function(STRUCTURED[name], autograph=False, jit_compile=mode)(x).numpy() for mode in (False, True)]
    want, got = (np.atleast_1d(each).astype(np.float64) for each in both)
    apart = np.abs(want - got) / np.abs(want).max() / float(dtypes.finfo(dtype).eps)
    return Difference(name, float((apart > 0).mean()), float(apart.max()))


def main() -> None:
    for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
        for scalar in (False, True):
            for found in pointwise_differences(dtype, scalar, rows(dtype)):
                kind = "numbers" if scalar else "arrays"
                print(f"{dtype.name} {kind} {found.name}: {found.share:.0%} differ, by at most {found.most:.0f}")
        for name in STRUCTURED:
            for shape in ((8, 8), (40, 300), (200, 5000)):
                found = structured_difference(name, dtype, *shape)
                print(f"{dtype.name} {shape} {name}: {found.share:.0%} differ, by at most {found.most:.1f}")


if __name__ == "__main__":
    main()
