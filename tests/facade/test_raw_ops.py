"""`tf.raw_ops` beside NumPy."""

import numpy as np
import pytest


@pytest.mark.parametrize("shape", [(5, 3), (0, 3), (3, 0), (0, 3, 2)])
@pytest.mark.parametrize("axis", [0, 1])
def test_unique_slices(tensorflow, shape, axis):
    x = np.random.default_rng(0).integers(0, 2, shape)
    y, index, count = tensorflow.raw_ops.UniqueWithCountsV2(x=x, axis=[axis])
    np.testing.assert_array_equal(np.take(y.numpy(), index.numpy(), axis), x)
    different, counts = np.unique(x, axis=axis, return_counts=True)
    assert y.shape == different.shape
    assert sorted(count.numpy().tolist()) == sorted(counts.tolist())
