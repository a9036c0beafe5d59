"""Small contracts of TensorFlow's that its libraries rely on."""

import numpy as np
import pytest

import autograph as ag


def test_different_nans_are_different_elements():
    y, idx = ag.unique([1.0, np.nan, 2.0, np.nan, 1.0])
    assert idx.numpy().tolist() == [0, 1, 2, 3, 0]
    assert np.isnan(y.numpy()).tolist() == [False, True, False, True]


@pytest.mark.parametrize("value", [True, False])
def test_where_of_a_scalar(value):
    assert ag.where(value).shape == (int(value), 0)
    assert ag.function(lambda x: ag.where(x))(value).shape == (int(value), 0)


@pytest.mark.parametrize("known", [True, False])
def test_an_empty_batch_keeps_the_other_dimensions(known):
    @ag.function(input_signature=[ag.TensorSpec([None, 3] if known else [None, None]), ag.TensorSpec([], ag.int32)])
    def flat(x, n):
        return ag.reshape(x, [n, -1]), ag.reshape(x, ag.stack([-1, n]))

    for function in (flat, flat.python_function):
        assert [y.shape for y in function(ag.zeros((0, 3)), ag.constant(0))] == [(0, 3), (3, 0)]
        assert [y.shape for y in function(ag.zeros((4, 3)), ag.constant(2))] == [(2, 6), (6, 2)]
        with pytest.raises(ag.errors.InvalidArgumentError):
            function(ag.zeros((4, 3)), ag.constant(0))
    assert ag.reshape(ag.zeros((0, 3)), [-1, 2]).shape == (0, 2)


@pytest.mark.parametrize("dtype", [ag.float32, ag.int16, ag.uint8])
def test_paddings_are_int32_or_int64(dtype):
    paddings = ag.constant([[1, 0], [0, 1]], dtype)
    for pad in (ag.pad, ag.function(lambda x, p: ag.pad(x, p))):
        for mode in (paddings, [[1.0, 0.0], [0.0, 1.0]]):
            with pytest.raises(ag.errors.DTypeError, match="paddings must be int32 or int64"):
                pad([[1.0, 2.0]], mode)
    assert ag.pad([[1.0, 2.0]], paddings.numpy()).numpy().tolist() == [[0, 0, 0], [1, 2, 0]]


def test_one_hot_of_arrays_of_other_numbers():
    assert ag.one_hot(np.array([1.7, 2.0]), 3).numpy().tolist() == [[0, 1, 0], [0, 0, 1]]
    assert ag.one_hot(np.array([True, False]), 2).numpy().tolist() == [[0, 1], [1, 0]]
    with pytest.raises(ag.errors.DTypeError, match="must be integers"):
        ag.one_hot(ag.constant([1.0]), 3)


def test_padding_of_booleans_and_by_ranks():
    assert ag.pad([True], [[1, 1]]).numpy().tolist() == [False, True, False]

    @ag.function(input_signature=[ag.TensorSpec([None, 3]), ag.TensorSpec([])])
    def padded(x, q):
        longer = ag.pad(ag.shape(x), [[0, ag.rank(q) + 1]], constant_values=1)
        result = ag.reshape(x, longer)
        assert result.shape.rank == 3
        return result

    assert padded(ag.ones([2, 3]), 1.0).shape == (2, 3, 1)


def test_steps_of_conv1d():
    x, w = ag.reshape(ag.range(6.0), [1, 6, 1]), ag.ones([2, 1, 1])
    for found in (ag.nn.conv1d(x, w, 2), ag.nn.conv1d(x, w, stride=2), ag.nn.conv1d(x, w, strides=2)):
        assert found.numpy().ravel().tolist() == [1, 5, 9]
    with pytest.raises(ValueError, match="rank 3"):
        ag.nn.conv1d(x, ag.ones([2, 2, 1, 1]), 1)


def test_numbers_of_eager_loops_stay_pythons():
    seen = []
    result = ag.while_loop(lambda i, x: i < 3, lambda i, x: (seen.append(type(i)) or i + 1, x + i), (0, np.array(0)))
    assert set(seen) == {int}
    assert [int(each) for each in result] == [3, 3]
    assert all(isinstance(each, ag.Tensor) for each in result)


def test_fractions_of_floats_in_shapes_are_cut_off():
    assert ag.reshape(ag.range(6), (ag.constant(2.0), 3)).shape == (2, 3)
    assert ag.reshape(ag.range(6), (ag.constant(2.7), 3)).shape == (2, 3)
    with pytest.raises(ag.errors.InvalidArgumentError, match="the requested shape has 4"):
        ag.reshape(ag.range(6), (ag.constant(1.5), 4))


def test_limits_of_dtypes():
    assert ag.experimental.numpy.finfo(ag.float32).eps == np.finfo(np.float32).eps
    assert ag.experimental.numpy.iinfo(ag.int8).max == 127
