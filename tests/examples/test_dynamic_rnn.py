"""examples/dynamic_rnn.py: the forward pass is NumPy's, training lowers the loss, any length is accepted."""

import numpy as np
import pytest

import autograph as ag
from examples import dynamic_rnn


def test_forward_pass_is_numpys():
    assert dynamic_rnn.forward_difference(units=8, batch=3, time_steps=7) < 1e-5


@pytest.mark.parametrize("time_steps", [1, 5])
def test_gradient_is_that_of_central_differences(time_steps):
    network = dynamic_rnn.DynamicRNN(dynamic_rnn.RNNCell(1, 4, 1))
    signals, targets = dynamic_rnn.batch_of_signals(np.random.default_rng(2), 3, time_steps)

    @ag.function(jit_compile=True)
    def loss_and_gradients(signals, targets):
        with ag.GradientTape() as tape:
            outputs, _ = network(signals)
            loss = ag.reduce_mean(ag.square(outputs - targets))
        return loss, tape.gradient(loss, network.cell.variables)

    signals, targets = ag.constant(signals), ag.constant(targets)
    _, gradients = loss_and_gradients(signals, targets)
    for variable, gradient in zip(network.cell.variables, gradients, strict=True):
        values = variable.numpy()
        direction = np.random.default_rng(3).normal(size=values.shape).astype(np.float32)
        variable.assign(values + 1e-2 * direction)
        above = float(loss_and_gradients(signals, targets)[0])
        variable.assign(values - 1e-2 * direction)
        below = float(loss_and_gradients(signals, targets)[0])
        variable.assign(values)
        along = float(np.sum(gradient.numpy() * direction))
        assert along == pytest.approx((above - below) / 2e-2, rel=1e-2, abs=1e-4)


def test_training_learns_to_repeat():
    losses = dynamic_rnn.train(steps=150)
    assert losses[0] > 0.2
    assert np.mean(losses[-5:]) < 0.01
