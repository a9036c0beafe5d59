"""Arithmetic has the same bits on the interpreter and in native code; what differs is known, and by how little."""

from __future__ import annotations

import pytest

from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.table import OPS
from tests import tier_differences as tiers

KINDS = pytest.mark.parametrize("scalar", [False, True], ids=["arrays", "numbers"])
FLOATS = [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]
DTYPES = pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)


@DTYPES
@KINDS
def test_rows_without_elementary_functions_have_the_same_bits(dtype: DType, scalar: bool) -> None:
    """No product and sum is fused, no division becomes a product, no power a chain of other roundings."""
    chosen = [row for row in tiers.rows(dtype) if row.name not in tiers.ELEMENTARY]
    assert len(chosen) > 30
    assert tiers.pointwise_differences(dtype, scalar, chosen) == []


@DTYPES
@KINDS
def test_elementary_functions_differ_in_their_last_bits_only(dtype: DType, scalar: bool) -> None:
    chosen = [OPS[name] for name in tiers.ELEMENTARY]
    for found in tiers.pointwise_differences(dtype, scalar, chosen):
        bound = tiers.ELEMENTARY[found.name]
        assert bound is None or found.most <= bound, found


@DTYPES
@pytest.mark.parametrize("name", ["reduce_max", "cumsum", "sort", "transpose"])
def test_what_orders_or_sums_one_after_another_has_the_same_bits(name: str, dtype: DType) -> None:
    assert tiers.structured_difference(name, dtype, 40, 300).share == 0


@DTYPES
@pytest.mark.parametrize("name", ["reduce_sum", "reduce_mean", "reduce_sum of rows", "matmul", "norm", "softmax"])
def test_sums_differ_by_rounding(name: str, dtype: DType) -> None:
    """As sums in another order do: by a few units for some hundred numbers."""
    assert tiers.structured_difference(name, dtype, 40, 300).most < 40


def test_polynomials_and_small_powers_have_the_same_bits() -> None:
    import numpy as np

    import autograph as ag

    def arithmetic(x: ag.Tensor) -> list[ag.Tensor]:
        return [((x * 1.1 + 0.3) * x - 0.7) * x + x / 3.0, x**2, x**3, x**5, ag.abs(x) ** 0.5, x * x - x * 0.1, 1.0 / x]

    for dtype in (np.float32, np.float64):
        for shape in ((1000,), ()):
            x = ag.constant(np.random.default_rng(2).normal(size=shape).astype(dtype))
            results = [ag.function(arithmetic, autograph=False, jit_compile=mode)(x) for mode in (False, True)]
            for want, got in zip(*results):
                assert want.numpy().tobytes() == got.numpy().tobytes()
