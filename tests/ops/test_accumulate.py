"""Rows joined at repeated indices: the bits of `ufunc.at` along the axis."""

import numpy as np
import pytest

from runtime.ops.arrays.accumulate import accumulate

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("ufunc", [np.add, np.multiply, np.maximum])
@pytest.mark.parametrize(
    "shape, indices, axis",
    [
        ((5,), (9,), 0), ((5, 3), (), 0), ((5, 3), (2, 7), 0), ((4, 6, 2), (11,), 1), ((2, 3, 6), (4,), 2),
        ((0, 3), (5,), 1),
    ],
)  # fmt: skip
def test_it_joins_in_the_order_of_the_indices(ufunc, shape, indices, axis):
    places = RNG.integers(0, shape[axis], indices)
    values = RNG.normal(size=shape[:axis] + indices + shape[axis + 1 :]).astype(np.float32)
    start = RNG.normal(size=shape).astype(np.float32)
    found, expected = start.copy(), start.copy()
    accumulate(ufunc, found, places, values, axis)
    dimensions = range(axis, axis + len(indices))
    ufunc.at(np.moveaxis(expected, axis, 0), places, np.moveaxis(values, dimensions, range(len(indices))))
    np.testing.assert_array_equal(found, expected)
