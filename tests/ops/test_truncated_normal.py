"""`ag.random.stateless_parameterized_truncated_normal`: its numbers have the distribution, also far from the mean."""

import numpy as np
import pytest
from scipy import stats

import autograph as ag
from runtime.ops.random.truncated import parameterized_truncated_normal

draw = ag.random.stateless_parameterized_truncated_normal


@pytest.mark.parametrize(
    ("mean", "deviation", "low", "high"),
    [(0.0, 1.0, -2.0, 2.0), (1.0, 2.0, 0.5, 9.0), (0.0, 1.0, 6.0, 7.0), (0.0, 1.0, -9.0, -8.0),
     (3.0, 0.5, -np.inf, 3.0), (0.0, 1.0, 1.0, np.inf), (0.0, 1.0, -0.1, 0.1)],
)  # fmt: skip
def test_the_distribution(mean, deviation, low, high):
    numbers = draw([4000], (3, 4), *(np.float64(each) for each in (mean, deviation, low, high))).numpy()
    known = stats.truncnorm((low - mean) / deviation, (high - mean) / deviation, mean, deviation)
    assert numbers.min() >= low and numbers.max() <= high
    assert stats.kstest(numbers, known.cdf).pvalue > 0.01


def test_beyond_what_float64_holds_of_the_tail():
    numbers = draw([4000], (1, 2), 0.0, 1.0, 50.0, 60.0).numpy()
    assert numbers.min() >= 50 and numbers.max() < 51
    assert np.mean(numbers) - 50 == pytest.approx(1 / 50, rel=0.1)  # nearly exponential, of rate 50
    lower = draw([4000], (1, 2), 0.0, 1.0, -60.0, -50.0).numpy()
    assert lower.max() <= -50 and np.mean(lower) + 50 == pytest.approx(-1 / 50, rel=0.1)


def test_parameters_broadcast():
    means = ag.constant([0.0, 10.0, 20.0])

    def numbers():
        return draw([2, 3], (1, 2), means, 1.0, means - 1.0, means + 1.0)

    assert numbers().shape == (2, 3) and numbers().dtype is ag.float32
    assert np.all(np.abs(numbers().numpy() - [0, 10, 20]) <= 1)
    np.testing.assert_array_equal(numbers(), ag.function(numbers)())


def test_gradients_follow_the_numbers():
    given = [ag.constant(each, ag.float64) for each in (0.3, 1.2, -1.0, 2.0)]
    with ag.GradientTape() as tape:
        tape.watch(given)
        total = ag.reduce_sum(draw([5], (1, 2), *given))
    step = 1e-5
    for place, slope in enumerate(tape.gradient(total, given)):
        up, down = ([each + (way * step if i == place else 0) for i, each in enumerate(given)] for way in (1, -1))
        expected = (ag.reduce_sum(draw([5], (1, 2), *up)) - ag.reduce_sum(draw([5], (1, 2), *down))) / (2 * step)
        assert float(slope) == pytest.approx(float(expected), rel=1e-5)


def test_with_a_stream():
    ag.random.set_seed(1)
    numbers = parameterized_truncated_normal([1000], minvals=-0.5, maxvals=0.25)
    assert numbers.dtype is ag.float32 and -0.5 <= numbers.numpy().min() and numbers.numpy().max() <= 0.25
    assert not np.array_equal(numbers, parameterized_truncated_normal([1000], minvals=-0.5, maxvals=0.25))
