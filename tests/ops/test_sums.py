"""Sums and means over all dimensions but the last few, which the interpreter adds several rows at a time."""

from __future__ import annotations

import numpy as np
import pytest

import autograph as ag


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.int32, np.float16])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((16, 32, 32, 8), (0, 1, 2)), ((5001, 3), 0), ((4096, 1), 0), ((37, 11, 5, 7), (0, 1)), ((9, 600), 0),
     ((8, 16, 64), (0, 2)), ((4, 2000), 1), ((70, 70), None)],
)  # fmt: skip
def test_sums_are_those_of_rows_one_by_one(shape, axis, dtype, keepdims):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, shape).astype(dtype)  # sums in any order are the same
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    total = ag.reduce_sum(x, axis, keepdims).numpy()
    np.testing.assert_allclose(total, wide.sum(axis, keepdims=keepdims), rtol=1e-3 if dtype is np.float16 else 1e-7)
    if x.dtype.kind != "i":
        mean = ag.reduce_mean(x, axis, keepdims).numpy()
        assert mean.dtype == x.dtype
        np.testing.assert_allclose(mean, wide.mean(axis, keepdims=keepdims), rtol=1e-3 if dtype is np.float16 else 1e-6)


def test_a_sum_of_columns_of_an_array_that_is_not_contiguous():
    x = np.arange(60000, dtype=np.float64).reshape(5000, 12)
    np.testing.assert_array_equal(ag.reduce_sum(x[::2, ::3], 0), x[::2, ::3].sum(0))
    np.testing.assert_array_equal(ag.reduce_sum(ag.transpose(x), 0), x.T.sum(0))
