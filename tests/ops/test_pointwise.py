"""Every function of single elements, dtype by dtype: eager, interpreted and compiled against NumPy and SciPy.

The operands broadcast, are empty, zero-dimensional or not contiguous, or are NaN, infinities, zeros with a sign and the
ends of the dtype: see `pointwise.py`. All rows of a dtype are one function, so that compiling it is affordable. The
usual run has the five dtypes that differ most, two of them compiled; AUTOGRAPH_FULL_TESTS=1 has all of them, compiled
for all ranks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS, OpDef
from runtime.tensor import EagerTensor
from tests.full import FULL
from tests.ops import pointwise

USUAL = ("bool", "int32", "uint8", "float32", "float64")
DTYPES = [d for d in dtypes.ALL if d.kind in "biufc" and (FULL or d.name in USUAL)]
TOLERANCE = {
    "float16": 2e-3, "bfloat16": 1.6e-2, "float32": 1e-6, "float64": 1e-13, "complex64": 4e-6, "complex128": 1e-13,
}  # fmt: skip

# Ranks for which the usual run compiles all rows of a dtype, and not two alone: broadcasting is one code for all of
# them, and takes longest to compile.
CHEAP = {
    "bool": [(1, 1), (0, 0)], "int32": [(1, 1), (0, 0)], "uint8": [(0, 0)], "float32": [(1, 1), (0, 0)],
    "float64": [(0, 0)],
}  # fmt: skip
# Rows of which nobody says which of two zeros they give.
ZEROS_ARE_EQUAL = {"maximum", "minimum", "relu", "nextafter"}


def of(dtype: DType) -> list[OpDef]:
    """The rows that take a dtype, those that can be compiled first: a library call ends a kernel."""
    found = sorted((row for row in pointwise.rows() if dtype.kind in row.kinds), key=lambda row: not row.is_elementwise)
    return [row for row in found if not (row.name == "complex" and dtype.name not in ("float32", "float64"))]


def attrs(row: OpDef, dtype: DType) -> dict[str, Any]:
    return {"dtype": dtype} if row.name in ("cast", "narrow") else {}


def test_every_row_is_covered() -> None:
    for row in pointwise.rows():
        pointwise.reference(row)  # fails without one
    assert set(pointwise.ELSEWHERE) <= set(OPS)
    rows = {row.name for row in pointwise.rows()}
    assert set(pointwise.REFERENCES) == rows


def results(rows: list[OpDef], arguments: list[list[Any]], dtype: DType) -> list[Any]:
    return [apply(row, own, attrs(row, dtype)) for row, own in zip(rows, arguments)]


def difference(found: Any, wanted: Any, tolerance: float, signs: bool) -> np.ndarray:
    """Where two arrays differ: by more than the tolerance, in NaN, in an infinity or in the sign of a zero."""
    if found.dtype.kind not in "fcV":
        return np.asarray(found != wanted)
    if np.iscomplexobj(found):
        scale = np.maximum(np.abs(wanted), 1)
        differ = np.abs(found - wanted) > tolerance * scale
        return np.asarray(np.where(np.isfinite(wanted), differ | ~np.isfinite(found), np.isfinite(found)))
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    close = np.abs(found - wanted) <= tolerance * np.maximum(np.abs(wanted), 1)
    zeros = (found == 0) & (wanted == 0) & signs
    close &= ~zeros | (np.signbit(found) == np.signbit(wanted))
    return np.asarray(~(close | (found == wanted) & ~zeros | np.isnan(found) & np.isnan(wanted)))


def compare(row: OpDef, case: str, arrays: list[Any], found: Any, wanted: Any, dtype: DType) -> list[str]:
    """What is wrong, in words."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return [f"{row.name} of {case}: {found.dtype}{found.shape}, expected {wanted.dtype}{wanted.shape}"]
    with np.errstate(all="ignore"):
        differ = difference(found, wanted, TOLERANCE.get(dtype.name, 0), row.name not in ZEROS_ARE_EQUAL)
    spread = np.broadcast_arrays(*arrays)
    return [
        f"{row.name}({', '.join(str(a[i]) for a in spread)}) of {case}: {found[i]}, expected {wanted[i]}"
        for i in map(tuple, np.argwhere(differ)[:6])
    ]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_against_numpy(dtype: DType) -> None:
    faults = []
    for cases in pointwise.operands(dtype).values():
        for case, pair in cases:
            for row in of(dtype):
                arrays = pointwise.arguments(row, dtype, pair)
                result = apply(row, [EagerTensor(a) for a in arrays], attrs(row, dtype))
                wanted = pointwise.expected(row, arrays, result.dtype)
                faults += compare(row, case, arrays, result._array, wanted, dtype)
    assert not faults, "\n".join(faults)


# Compiling takes its time.
COMPILED = [d for d in DTYPES if FULL or d.name in ("float32", "int32")]
TRACED = [(d, False) for d in DTYPES] + [(d, True) for d in COMPILED]


@pytest.mark.parametrize(
    ("dtype", "jit"), TRACED, ids=lambda v: v.name if isinstance(v, DType) else "compiled" if v else "interpreted"
)
def test_traced(dtype: DType, jit: bool) -> None:
    faults = []
    for ranks, cases in pointwise.operands(dtype).items():
        rows = of(dtype)
        if jit and not FULL and ranks not in CHEAP[dtype.name]:
            rows = [row for row in rows if pointwise.arity(row) == 2][:2]
        every = [[pointwise.arguments(row, dtype, pair) for row in rows] for _, pair in cases]
        specs = [[ag.TensorSpec([None] * a.ndim, a.dtype) for a in own] for own in every[0]]
        function = ag.function(lambda given: results(rows, given, dtype), [specs], autograph=False, jit_compile=jit)
        for (case, _), arrays in zip(cases, every):
            tensors = [[EagerTensor(a) for a in own] for own in arrays]
            for row, own, found, wanted in zip(rows, arrays, function(tensors), results(rows, tensors, dtype)):
                faults += compare(row, case, own, found._array, wanted._array, dtype)
    assert not faults, "\n".join(faults)
