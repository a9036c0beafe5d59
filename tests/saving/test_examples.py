"""The programs of `examples`, saved and loaded, and pickled: their results are the same to the last bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import autograph as ag
from examples import dynamic_rnn, implicit_newton, kalman, mandelbrot, ode_gradient, path_gradient, quickstart


def tensors(*values):
    return tuple(map(ag.constant, values))


def ode():
    years, pelts = ode_gradient.read_data()
    return tensors(ode_gradient.START, years, pelts)


def paths():
    series = path_gradient.make_series()
    return *tensors(series[0], series), ag.constant(0.3, ag.float64), ag.constant(path_gradient.BAND)


SQUARE = tensors(np.linspace(-2.2, 0.8, 24), np.linspace(-1.2, 1.2, 16), 60)
NEWTON = tensors(implicit_newton.fuel(), np.float64(1e-10))
PROGRAMS = {
    "quickstart.gradient": (quickstart.gradient, lambda: tensors(30.0, 25.0, 2.0)),
    "mandelbrot.escape_by_pixel": (mandelbrot.escape_by_pixel, lambda: SQUARE),
    "mandelbrot.escape_by_array": (mandelbrot.escape_by_array, lambda: SQUARE),
    "implicit_newton.temperature": (implicit_newton.temperature, lambda: NEWTON),
    "implicit_newton.gradient_by_loop": (implicit_newton.gradient_by_loop, lambda: NEWTON),
    "implicit_newton.gradient_by_theorem": (implicit_newton.gradient_by_theorem, lambda: NEWTON),
    "ode_gradient.solve_compiled": (ode_gradient.solve_compiled, ode),
    "ode_gradient.loss_and_gradient": (ode_gradient.loss_and_gradient, ode),
    "path_gradient.loss_and_gradient": (path_gradient.loss_and_gradient, paths),
    "kalman.maximise": (kalman.maximise, lambda: tensors(np.log([12_000.0, 2_500.0]), kalman.read_data()[1])),
}


def same(found, expected):
    ag.nest.assert_same_structure(found, expected)
    for one, other in zip(ag.nest.flatten(found), ag.nest.flatten(expected)):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", PROGRAMS)
def test_saved_and_pickled(name, tmp_path):
    function, make = PROGRAMS[name]
    arguments = make()
    expected = function(*arguments)
    holder = ag.Module()
    holder.function = function
    ag.saved_model.save(holder, tmp_path)
    loaded = ag.saved_model.load(tmp_path)
    same(loaded.function(*arguments), expected)
    same(pickle.loads(pickle.dumps(function.get_concrete_function(*arguments)))(*arguments), expected)


def test_training_goes_on_in_a_loaded_model(tmp_path):
    random = np.random.default_rng(0)
    trainer = dynamic_rnn.Trainer(dynamic_rnn.DynamicRNN(dynamic_rnn.RNNCell(1, 8, 1, 0)))
    signals, targets = tensors(*dynamic_rnn.batch_of_signals(random, 4, 10))
    trainer.step(signals, targets)
    ag.saved_model.save(trainer, tmp_path)
    loaded = ag.saved_model.load(tmp_path)
    expected = [float(trainer.step(signals, targets)) for _ in range(5)]
    assert [float(loaded.step(signals, targets)) for _ in range(5)] == expected
    assert expected[-1] < expected[0]
