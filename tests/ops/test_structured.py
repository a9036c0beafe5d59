"""Rows that don't work element by element, dtype by dtype: eager, interpreted and compiled against NumPy and SciPy.

The operands are those of the rows' samples, in views that aren't contiguous, with dimensions of length 0 and with NaN,
infinities and the ends of the dtype: see `structured.py`. Compiled, the rows of a dtype are a few functions. The usual
run has the dtypes that differ most; AUTOGRAPH_FULL_TESTS=1 has all, and all samples compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autograph as ag
from runtime import dtypes, errors
from runtime.codegen.lower.lower_graph import is_native
from runtime.dtypes import DType
from runtime.graph.builder import Builder
from runtime.graph.interpreter import interpret
from runtime.graph.ir import Graph
from runtime.ops.dispatch import apply
from runtime.ops.table import OpDef, Sample
from runtime.shapes import covers
from runtime.tensor import EagerTensor
from runtime.types import TensorType
from tests.full import FULL
from tests.ops import structured
from tests.ops.test_pointwise import TOLERANCE, difference

USUAL = ("bool", "int32", "uint8", "bfloat16", "float32", "complex64", "string")
DTYPES = [d for d in dtypes.ALL if d.kind in "biufcO" and (FULL or d.name in USUAL)]
# Operands whose last dimension decides the rank of the result: it is always known.
DEPTHS = {("gather_nd", 1), ("scatter_nd", 0), ("fill", 0), *((f"tensor_scatter_nd_{h}", 1) for h in (
    "update", "add", "max", "min"))}  # fmt: skip
# Rows that take no dimension of length 0.
NEVER_EMPTY = {
    "unstack": "into as many parts as it says",
    "argmax": "of nothing",
    "argmin": "of nothing",
    "reduce_mean": "of no integers",
    "broadcast_to": "to the dimensions that it says",
    "slice_grad": "of a slice that isn't empty",
}
REFUSALS = (errors.OpError, ValueError, TypeError)


def samples(dtype: DType) -> list[tuple[OpDef, Sample]]:
    """Those that have an operand of the dtype; of other dtypes alone they come with the first."""
    found = []
    for row in structured.rows():
        for sample in row.samples or ():
            alone = len(sample.fixed) == len(sample.shapes)
            if (
                dtype is DTYPES[0]
                if alone
                else dtype.kind in row.kinds and not (row.name == "rfftn" and dtype.size < 4)
            ):
                found.append((row, sample))
    return found


def eager(row: OpDef, arrays: list[np.ndarray], attrs: dict[str, Any]) -> list[np.ndarray]:
    result = apply(row, [EagerTensor(a) for a in arrays], attrs)
    return [r._array for r in (result if isinstance(result, tuple) else (result,))]


def compare(row: OpDef, case: str, dtype: DType, found: Any, wanted: Any, loose: float = 1) -> list[str]:
    for number, (part, right) in enumerate(zip(found, wanted, strict=True)):
        part, right = np.asarray(part), np.asarray(right)
        if part.shape != right.shape:
            return [f"{row.name} of {dtype.name}, {case}: shape {part.shape}, expected {right.shape}"]
        with np.errstate(all="ignore"):
            right = right.astype(part.dtype)
            own = TOLERANCE.get(dtypes.as_dtype(part.dtype).name, 0)
            differ = difference(part, right, loose * max(own, TOLERANCE.get(dtype.name, 0)), False)
        if differ.any():
            at = tuple(np.argwhere(differ)[0])
            return [f"{row.name} of {dtype.name}, {case}: result {number} at {at} {part[at]}, expected {right[at]}"]
    return []


def test_every_row_is_covered() -> None:
    for row in structured.rows():
        assert row.samples, f"{row} has no samples: give its row some (`Sample` in runtime/ops/table.py)"
        structured.reference(row)  # fails without one
    rows = {row.name for row in structured.rows()}
    assert rows >= structured.BY_THEMSELVES | structured.ADDING | set(structured.ONLY_ORDINARY)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_against_numpy(dtype: DType) -> None:
    faults: list[str] = []
    empty: dict[str, bool] = {}
    for row, sample in samples(dtype):
        for case, arrays in structured.operands(row, sample, dtype):
            try:
                found = eager(row, arrays, sample.attrs)
            except REFUSALS:
                if case.startswith(("no ", "operand ")):
                    empty.setdefault(row.name, False)
                    continue
                raise
            if case.startswith(("no ", "operand ")):
                empty[row.name] = True
            types = row.infer([TensorType(dtypes.as_dtype(a.dtype), a.shape) for a in arrays], sample.attrs)
            for part, type_ in zip(found, types, strict=True):
                if part.dtype != type_.dtype.np or not covers(type_.shape, part.shape):
                    faults.append(f"{row.name} of {case}: {part.dtype}{part.shape}, its type rule says {type_}")
            faults += compare(row, case, dtype, found, structured.expected(row, case, arrays, sample.attrs), 10)
    assert not faults, "\n".join(faults)
    assert {name for name, taken in empty.items() if not taken} <= set(NEVER_EMPTY)


def graph_of(row: OpDef, attrs: dict[str, Any], arrays: list[np.ndarray]) -> Graph:
    """Of one call, with dimensions that aren't known."""
    builder = Builder(row.name)
    with builder:
        values = []
        for i, array in enumerate(arrays):
            shape: list[int | None] = [None] * array.ndim
            if (row.name, i) in DEPTHS:
                shape[-1] = array.shape[-1]
            values.append(builder.add_input(TensorType(dtypes.as_dtype(array.dtype), tuple(shape))))
        result = apply(row, [builder.tensor(v) for v in values], attrs)
        builder.graph.outputs = [builder.use(r) for r in (result if isinstance(result, tuple) else (result,))]
    return builder.graph


def attempt(function: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            return function()
    except REFUSALS as error:
        return error


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
def test_interpreted(dtype: DType) -> None:
    faults: list[str] = []
    for row, sample in samples(dtype):
        for case, arrays in structured.operands(row, sample, dtype):
            found = attempt(lambda: interpret(graph_of(row, sample.attrs, arrays), arrays))
            wanted = attempt(lambda: eager(row, arrays, sample.attrs))
            if isinstance(found, Exception) or isinstance(wanted, Exception):
                # What a trace says of known lengths is a ValueError, as in TensorFlow.
                if not (isinstance(found, Exception) and isinstance(wanted, Exception)):
                    faults.append(f"{row.name} of {dtype.name}, {case}: {found!r}, eager {wanted!r}")
            else:
                faults += compare(row, case, dtype, found, wanted)
    assert not faults, "\n".join(faults)


COMPILED = [d for d in DTYPES if d.name in ("bool", "float32") or FULL and d.kind in "biuf"]


def to_compile(dtype: DType) -> list[tuple[OpDef, Sample, list[tuple[str, list[np.ndarray]]]]]:
    """Rows that can be compiled, and the operands that they take."""
    found = []
    seen: dict[str, int] = {}
    for row, sample in samples(dtype):
        cases = list(structured.operands(row, sample, dtype))
        if len(cases) == 1 or not all(map(is_native, graph_of(row, sample.attrs, cases[0][1]).nodes)):
            continue
        # One sample of a row, in one dtype, is what compiling leaves time for.
        usual = next(d for d in ("float32", "int32", "bool") if dtypes.as_dtype(d).kind in row.kinds)
        seen[row.name] = seen.get(row.name, 0) + 1
        if not FULL and (seen[row.name] > 1 or usual != dtype.name):
            continue
        first = cases[0][1]
        taken = [
            (case, arrays) for case, arrays in cases
            if not isinstance(attempt(lambda: eager(row, arrays, sample.attrs)), Exception)
            and all((row.name, i) not in DEPTHS or a.shape[-1:] == first[i].shape[-1:] for i, a in enumerate(arrays))
        ]  # fmt: skip
        found.append((row, sample, taken))
    return found


@pytest.mark.parametrize("dtype", COMPILED, ids=lambda d: d.name)
def test_compiled(dtype: DType) -> None:
    every = to_compile(dtype)
    specs = []
    for row, _, cases in every:
        shapes = [[None] * a.ndim for a in cases[0][1]]
        for i, array in enumerate(cases[0][1]):
            if (row.name, i) in DEPTHS:
                shapes[i][-1] = array.shape[-1]
        specs.append([ag.TensorSpec(s, a.dtype) for s, a in zip(shapes, cases[0][1])])

    def call(given: Any) -> Any:
        return [apply(row, own, sample.attrs) for (row, sample, _), own in zip(every, given)]

    function = ag.function(call, [specs], autograph=False, jit_compile=True)
    faults: list[str] = []
    for number in range(max(len(cases) for _, _, cases in every)):
        chosen = [cases[min(number, len(cases) - 1)] for _, _, cases in every]
        results = function([[EagerTensor(a) for a in arrays] for _, arrays in chosen])
        for (row, sample, _), (case, arrays), result in zip(every, chosen, results):
            parts = [r._array for r in (result if isinstance(result, tuple) else (result,))]
            faults += compare(row, case, dtype, parts, eager(row, arrays, sample.attrs))
    assert not faults, "\n".join(sorted(set(faults)))
