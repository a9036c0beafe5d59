"""NaN, infinities, empty, zero-dimensional and strided operands: as in TensorFlow, and alike in all ways to run."""

import numpy as np
import pytest

import autograph as ag

NAN, INF = np.nan, np.inf


def everywhere(function, *arrays):
    """The result of eager, interpreted and compiled code, which must agree, also in NaN and infinities."""
    tensors = [ag.constant(a) for a in arrays]
    results = [function(*tensors)]
    for jit in (False, True):
        results.append(ag.function(function, jit_compile=jit)(*tensors))
    first = np.asarray(results[0])
    for other in results[1:]:
        assert other.dtype is results[0].dtype
        np.testing.assert_allclose(np.asarray(other), first, rtol=3e-7)
    return first


F = np.float32
EXTREMES = {
    "argmax": (ag.argmax, [1, NAN, 3], 2), "argmax first": (ag.argmax, [NAN, 1, 3], 2),
    "argmax all": (ag.argmax, [NAN, NAN], 0), "argmin": (ag.argmin, [NAN, 1, 0], 2),
    "argmin infinite": (ag.argmin, [INF, NAN, INF], 0),
    "reduce_max": (ag.reduce_max, [1, NAN, 3], NAN), "reduce_min": (ag.reduce_min, [INF, NAN], NAN),
    "max of nothing": (ag.reduce_max, [], -INF), "min of nothing": (ag.reduce_min, [], INF),
    "sum of nothing": (ag.reduce_sum, [], 0), "product of nothing": (ag.reduce_prod, [], 1),
    "mean of nothing": (ag.reduce_mean, [], NAN), "logsumexp": (ag.reduce_logsumexp, [-INF, -INF], -INF),
    "logsumexp infinite": (ag.reduce_logsumexp, [INF, 1], INF),
    "cumsum": (ag.cumsum, [INF, -INF, 1], [INF, NAN, NAN]), "sort": (ag.sort, [3, NAN, 1], [1, 3, NAN]),
    "relu": (ag.nn.relu, [NAN, -INF, INF], [NAN, 0, INF]), "sign": (ag.sign, [NAN, -INF, INF], [NAN, -1, 1]),
    "clip": (lambda x: ag.clip_by_value(x, 0, 0.5), [NAN, INF, -INF], [NAN, 0.5, 0]),
    "sigmoid": (ag.sigmoid, [-INF, INF, NAN], [0, 1, NAN]),
    "tanh": (ag.tanh, [-INF, INF, NAN], [-1, 1, NAN]), "exp": (ag.exp, [-INF, INF, 1000], [0, INF, INF]),
    "log": (ag.math.log, [0, -1, INF], [-INF, NAN, INF]), "sqrt": (ag.sqrt, [-1, INF], [NAN, INF]),
    "softplus": (ag.math.softplus, [-INF, INF, 1000], [0, INF, 1000]),
    "divide": (lambda x: x / 0, [1, -1, 0], [INF, -INF, NAN]), "floordiv": (lambda x: x // 0, [5.0], [INF]),
    "floormod": (lambda x: x % 0, [5.0], [NAN]), "power": (lambda x: x**-1.0, [0.0], [INF]),
    "divide_no_nan": (lambda x: ag.math.divide_no_nan(x, 0), [1, NAN, INF], [0, 0, 0]),
    "is_nan": (ag.math.is_nan, [NAN, INF], [True, False]), "round": (ag.round, [NAN, INF, 2.5], [NAN, INF, 2]),
    "equal": (lambda x: x == x, [NAN, INF], [False, True]),
    "maximum": (lambda x: ag.maximum(x, 1), [NAN, INF], [NAN, INF]),
    "where": (lambda x: ag.where(ag.math.is_nan(x), 0.0, x), [NAN, INF], [0, INF]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", EXTREMES)
def test_not_a_number(name, dtype):
    function, values, expected = EXTREMES[name]
    np.testing.assert_array_equal(everywhere(function, np.array(values, dtype)), expected)


def test_numpy_keeps_its_own_rule():
    values = np.array([[1, NAN, 3], [4, 2, 3]], F)
    np.testing.assert_array_equal(ag.function(lambda x: np.argmax(x, axis=1))(ag.constant(values)), [1, 0])
    np.testing.assert_array_equal(ag.function(lambda x: np.argmin(x))(ag.constant(values)), 1)


@pytest.mark.parametrize("function", [ag.exp, ag.abs, lambda x: x + x, lambda x: x * 2, ag.transpose, ag.square])
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 3), ()])
def test_empty_and_zero_dimensional(function, shape):
    result = everywhere(function, np.ones(shape, F))
    assert result.shape in (shape, shape[::-1])


def test_strided_operands():
    base = np.arange(24, dtype=F).reshape(4, 6)
    for view in (base[::2], base.T, base[:, ::-1], base[1:3, 1:5:2], np.broadcast_to(base[0], (3, 6))):
        expected = np.exp(-view) @ np.ones((view.shape[1], 2), F) + view.sum()
        found = everywhere(lambda x: ag.reduce_sum(x) + ag.exp(-x) @ ag.ones([x.shape[1], 2]), view)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_gradients_by_the_first_argument_of_the_incomplete_gamma_functions():
    a, x = ag.constant([0.5, 3.0, 40.0, 2000.0], ag.float64), ag.constant([0.2, 7.0, 35.0, 2010.0], ag.float64)
    with ag.GradientTape() as tape:
        tape.watch(a)
        y = ag.math.igamma(a, x)
    step = 1e-5
    slope = (ag.math.igamma(a + step, x) - ag.math.igamma(a - step, x)) / (2 * step)
    np.testing.assert_allclose(tape.gradient(y, a), slope, rtol=1e-5, atol=1e-9)


def test_pooling_with_dilations_and_nan():
    image = np.arange(16, dtype=F).reshape(1, 4, 4, 1)
    dilated = everywhere(lambda x: ag.nn.pool(x, [2, 2], "MAX", dilations=[2, 2]), image)
    np.testing.assert_array_equal(dilated[0, ..., 0], [[10, 11], [14, 15]])
    means = everywhere(lambda x: ag.nn.pool(x, [2, 2], "AVG", dilations=[2, 2]), image)
    np.testing.assert_array_equal(means[0, ..., 0], [[5, 6], [9, 10]])
    image[0, 0, 0, 0] = NAN
    pooled = everywhere(lambda x: ag.nn.max_pool(x, 2, 2, "VALID"), image)
    np.testing.assert_array_equal(pooled[0, ..., 0], [[NAN, 7], [13, 15]])
