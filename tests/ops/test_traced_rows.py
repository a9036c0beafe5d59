"""Every row inside a traced graph whose dimensions are unknown: the same values and gradients as eager execution.

This is where gradient rules that use shapes must fall back on run-time dimensions.
"""

import numpy as np
import pytest

from runtime import dtypes
from runtime.autodiff.tape import GradientTape
from runtime.graph.builder import Builder
from runtime.graph.interpreter import interpret
from runtime.graph.verify import verify
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS
from runtime.tensor import EagerTensor
from runtime.types import TensorType
from tests.ops.test_table import ROWS, TESTED_ELSEWHERE, differentiable, dtypes_of, operands


def total_of(outputs):
    """A scalar that depends on each element of the outputs in another way, whatever their shapes."""
    total = None
    for output in outputs:
        if output.dtype.is_floating:
            wide = apply(OPS["cast"], [output], {"dtype": dtypes.float64})
            part = apply(OPS["sin"], [wide])
            part = apply(OPS["reduce_sum"], [part], {"axis": tuple(range(part.ndim)), "keepdims": False})
            total = part if total is None else apply(OPS["add"], [total, part])
    return total


def gradients(row, sample, tensors, wanted):
    """Outputs, and gradients of `total_of` them (None where there is none)."""
    with GradientTape() as tape:
        for i in wanted:
            tape.watch(tensors[i])
        result = apply(row, tensors, sample.attrs)
        outputs = result if isinstance(result, tuple) else (result,)
        total = total_of(outputs)
    found = [None] * len(wanted) if total is None else tape.gradient(total, [tensors[i] for i in wanted])
    return list(outputs), found


def cases():
    for row in ROWS:
        for number, sample in enumerate(row.samples or ()):
            if row.name in TESTED_ELSEWHERE or row.name == "cast" and sample.attrs["dtype"].name == "float16":
                continue
            dtype = dtypes.float64 if "f" in row.kinds else dtypes_of(row, sample)[0]
            yield pytest.param(row, sample, dtype, id=f"{row.name}-{number}")


@pytest.mark.parametrize("known", [False, True], ids=["unknown", "known"])
@pytest.mark.parametrize("row, sample, dtype", list(cases()))
def test_traced_equals_eager(row, sample, dtype, known):
    arrays = [np.asarray(a) for a in operands(row, sample, dtype, seed=2)]
    wanted = differentiable(row, sample) if dtype.kind == "f" and row.grad is not None else []
    outputs, found = gradients(row, sample, [EagerTensor(a) for a in arrays], wanted)

    builder = Builder(row.name)
    with builder:
        values = []
        for i, array in enumerate(arrays):
            # The depth of index vectors, or the length of a shape, decides the rank of the result: it is always known.
            depth = (row.name, i) in (("gather_nd", 1), ("fill", 0))
            shape = array.shape if known or depth else (None,) * array.ndim
            values.append(builder.add_input(TensorType(dtypes.as_dtype(array.dtype), shape)))
        traced_outputs, traced = gradients(row, sample, [builder.tensor(v) for v in values], wanted)
        assert [g is None for g in found] == [g is None for g in traced]
        kept = [builder.use(t) for t in [*traced_outputs, *[g for g in traced if g is not None]]]
    builder.graph.outputs = kept
    verify(builder.graph)
    results = interpret(builder.graph, arrays)
    expected = [t._array for t in [*outputs, *[g for g in found if g is not None]]]
    assert len(results) == len(expected)
    for result, value in zip(results, expected):
        if row.keeps_rows and value.ndim:  # a growing list's cotangent may be longer than the list was
            result = result[: len(value)]
        assert np.shape(result) == value.shape
        if value.dtype.kind == "f":
            np.testing.assert_allclose(result, value, 1e-12, 1e-12)
        else:
            np.testing.assert_array_equal(result, value)
