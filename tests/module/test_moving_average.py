"""`ag.train.ExponentialMovingAverage`; the numbers are TensorFlow's."""

import numpy as np
import pytest

import autograph as ag


def test_averages_move_towards_their_variables():
    weights = ag.Variable([1.0, 2.0], name="weights")
    averages = ag.train.ExponentialMovingAverage(0.9)
    averages.apply([weights])
    assert averages.average(weights).numpy().tolist() == [1, 2]
    weights.assign([2.0, 4.0])
    averages.apply([weights])
    np.testing.assert_allclose(averages.average(weights), [1.1, 2.2], rtol=1e-6)
    assert averages.average(weights).name == "weights/ExponentialMovingAverage:0"
    assert averages.average_name(weights) == "weights/ExponentialMovingAverage"
    assert not averages.average(weights).trainable
    assert averages.average(ag.Variable(1.0)) is None


def test_the_decay_is_small_at_first_in_a_function():
    weight, steps = ag.Variable(1.0), ag.Variable(5)
    averages = ag.train.ExponentialMovingAverage(0.99, num_updates=steps)

    @ag.function
    def step(value):
        averages.apply([weight])
        weight.assign(value)
        averages.apply([weight])
        return averages.average(weight).read_value()

    assert float(step(3.0)) == pytest.approx(2.2)  # (1 + 5) / (10 + 5) of the past
    steps.assign(10_000)
    assert float(step(3.0)) == pytest.approx(2.2 + 0.01 * (3 - 2.2) + 0.01 * (3 - 2.208), abs=1e-5)


def test_only_variables_with_floating_point_numbers():
    averages = ag.train.ExponentialMovingAverage(0.9)
    with pytest.raises(TypeError, match="takes averages of variables only"):
        averages.apply([ag.constant(1.0)])
    with pytest.raises(TypeError, match="must be half, float, or double: steps:0"):
        averages.apply([ag.Variable(1, name="steps")])
