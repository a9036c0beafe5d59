"""Sufficient statistics, and pooling that says where the largest elements stand."""

import numpy as np
import pytest

import autograph as ag


@pytest.mark.parametrize("shape", [(3, 4), (None, None)])
@pytest.mark.parametrize("shift", [None, 2.0])
def test_sufficient_statistics_give_mean_and_variance(shape, shift):
    x = np.random.default_rng(0).normal(size=(3, 4))

    @ag.function(input_signature=[ag.TensorSpec(shape, ag.float64)], autograph=False)
    def statistics(x):
        parts = ag.nn.sufficient_statistics(x, [0], shift)
        return parts[:3], ag.nn.normalize_moments(*parts)

    (count, total, squares), (mean, variance) = statistics(x)
    moved = x if shift is None else x - shift
    assert float(count) == 3
    np.testing.assert_allclose(total, moved.sum(0))
    np.testing.assert_allclose(squares, (moved**2).sum(0))
    np.testing.assert_allclose(mean, x.mean(0))
    np.testing.assert_allclose(variance, x.var(0))


@pytest.mark.parametrize("padding, size", [("VALID", 2), ("SAME", 2)])
@pytest.mark.parametrize("batch_too", [False, True])
def test_max_pool_with_argmax(padding, size, batch_too):
    x = np.random.default_rng(1).permutation(2 * 3 * 3 * 2).reshape(2, 3, 3, 2).astype(np.float32)
    largest, places = ag.nn.max_pool_with_argmax(x, size, 1, padding, include_batch_in_index=batch_too)
    assert places.dtype is ag.int64
    np.testing.assert_array_equal(largest, ag.nn.max_pool2d(x, size, 1, padding))
    flat = x.reshape(-1) if batch_too else x.reshape(2, -1)
    for b in range(2):
        found = flat[places[b]] if batch_too else flat[b][places[b]]
        np.testing.assert_array_equal(found, largest[b])


def test_max_pool_with_argmax_refuses_other_ranks():
    with pytest.raises(ag.errors.InvalidArgumentError, match=r"\[1,3,3\]"):
        ag.nn.max_pool_with_argmax(np.ones((1, 3, 3)), 2, 1, "VALID")


@pytest.mark.parametrize("dtype", [ag.float16, ag.float32, ag.float64, ag.complex64])
@pytest.mark.filterwarnings("error")
def test_the_mean_of_no_elements_is_no_number(dtype):
    for axis, shape in ((None, ()), (0, (3,)), (1, (0,)), ([0, 1], ())):
        mean = ag.reduce_mean(ag.zeros([0, 3], dtype), axis)
        assert mean.dtype is dtype
        assert mean.shape == shape
        assert np.isnan(mean.numpy()).all()
