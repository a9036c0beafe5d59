"""examples/implicit_newton.py: the solution solves the equation, all gradients agree, the errors fall as expected."""

import numpy as np
import pytest
from scipy.integrate import solve_bvp

import autograph as ag
from examples import implicit_newton

TIGHT = ag.constant(1e-10, ag.float64)


def test_solution_is_that_of_the_boundary_value_problem():
    u, steps = implicit_newton.newton(ag.constant(implicit_newton.fuel()), TIGHT)
    reference = solve_bvp(
        lambda x, y: np.vstack([y[1], -(3.0 - 2.0 * x) * np.exp(y[0])]),
        lambda left, right: np.array([left[0], right[0]]),
        np.linspace(0.0, 1.0, 11),
        np.zeros((2, 11)),
        tol=1e-8,
    )
    np.testing.assert_allclose(u, reference.sol(implicit_newton.grid())[0], atol=2e-4)  # the grid's error
    assert int(steps) == 4


def test_gradients_agree():
    k = ag.constant(implicit_newton.fuel())
    exact = implicit_newton.exact_gradient(implicit_newton.fuel())
    np.testing.assert_allclose(implicit_newton.gradient_by_loop(k, TIGHT), exact, rtol=1e-11)
    np.testing.assert_allclose(implicit_newton.gradient_by_theorem(k, TIGHT), exact, rtol=1e-11)
    np.testing.assert_allclose(implicit_newton.gradient_by_differences(k, TIGHT), exact, rtol=1e-6)


def test_the_loop_is_differentiated_as_it_ran():
    """At a loose tolerance the loop's gradient is that of the steps taken: the differences' too, not the theorem's."""
    found = implicit_newton.measure(np.array([1.0, 1e-3]), repeats=1)
    assert found.steps == [1, 3]
    for loop, theorem, differences in zip(*found.errors.values(), strict=True):
        assert loop == pytest.approx(differences, rel=0.05)
        assert theorem < loop / 5.0


def test_without_a_solution_the_loop_ends():
    k = ag.constant(10.0 * implicit_newton.fuel())
    mean, steps = implicit_newton.temperature(k, TIGHT)
    assert int(steps) == 50 or not np.isfinite(float(mean))


def test_draws(tmp_path):
    pytest.importorskip("matplotlib")
    found = implicit_newton.measure(np.array([1.0, 1e-3]), repeats=1)
    implicit_newton.draw(tmp_path / "newton.png", found, np.array([1.0, 1e-3]))
    assert (tmp_path / "newton.png").read_bytes().startswith(b"\x89PNG")
