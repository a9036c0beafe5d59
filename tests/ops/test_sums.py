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


@pytest.mark.parametrize("name", ["reduce_max", "reduce_min"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.float16])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 2000, 7), 2), ((5000, 2, 3), (1, 2)), ((300, 64), 1), ((4096, 1), -1)]
)
def test_extremes_of_short_rows(name, shape, axis, dtype):
    """NaN wins, wherever it stands."""
    rng = np.random.default_rng(4)
    x = (rng.normal(size=shape) * 100).astype(dtype)
    if x.dtype.kind == "f":
        x[rng.random(shape) < 0.01] = np.nan
        x[rng.random(shape) < 0.01] = -np.inf
    expected = getattr(np, name.removeprefix("reduce_"))(x, axis)
    np.testing.assert_array_equal(getattr(ag, name)(x, axis), expected)
    np.testing.assert_array_equal(getattr(ag, name)(x, axis, keepdims=True).numpy().reshape(expected.shape), expected)


def test_sums_pass_on_what_is_not_finite():
    x = np.ones([5000, 4], np.float32)
    x[3, 0], x[7, 1], x[9, 2], x[11, 2] = np.nan, np.inf, np.inf, -np.inf
    np.testing.assert_array_equal(ag.reduce_sum(x[:4000], 0), [np.nan, np.inf, np.nan, 4000])
    rows = ag.reduce_sum(x[:4000], 1).numpy()
    assert np.isnan(rows[3]) and rows[7] == rows[9] == np.inf and rows[11] == -np.inf and rows[12] == 4
