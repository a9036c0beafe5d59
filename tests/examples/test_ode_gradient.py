"""examples/ode_gradient.py: the solver against scipy, its gradient against differences, the fit against the data."""

import numpy as np
import pytest

import autograph as ag
from examples import ode_gradient

LOG_RATES = [ode_gradient.START, np.log([0.44, 0.022, 1.0, 0.034]), np.log([0.7, 0.02, 0.6, 0.01])]


def test_data_is_the_record_of_1900_to_1920():
    years, pelts = ode_gradient.read_data()
    assert years.tolist() == list(range(21))
    assert pelts.shape == (21, 2)
    assert pelts[0].tolist() == [30.0, 4.0]
    assert pelts[-1].tolist() == [24.7, 8.6]
    assert pelts.sum(axis=0) == pytest.approx([715.7, 423.5])


@pytest.mark.parametrize("log_rates", LOG_RATES)
def test_solution_is_scipys(log_rates):
    difference, steps = ode_gradient.against_scipy(log_rates)
    assert difference < 1e-6
    assert 50 < steps < 1000


@pytest.mark.parametrize("log_rates", LOG_RATES)
def test_gradient_is_that_of_central_differences(log_rates):
    gradient, differences = ode_gradient.against_differences(log_rates)
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


def test_both_rejected_steps_and_a_collapsed_step_are_taken():
    years, counts = ode_gradient.read_data()
    stiff = ag.constant(np.log([1e12, 1e9, 1e12, 1e9]))
    path, _ = ode_gradient.solve_compiled(stiff, ag.constant(years), ag.constant(counts))
    assert np.isfinite(path.numpy()[0]).all()
    assert np.isnan(path.numpy()[1:]).all()


def test_fit_converges_in_well_under_a_minute():
    found = ode_gradient.fit()
    assert found.seconds < 60.0
    assert found.losses[0] > 0.5
    assert min(found.losses) < 0.0862  # the minimum, by Nelder-Mead from several starts, is 0.08598
    assert found.gradient_norm < 0.01
    np.testing.assert_allclose(found.rates, [0.44, 0.0225, 1.02, 0.034], rtol=0.05)
