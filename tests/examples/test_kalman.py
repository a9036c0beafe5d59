"""examples/kalman.py: the likelihood against a multivariate normal, the fit against the published one, the picture."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import autograph as ag
from examples import kalman

LOG_VARIANCES = np.log([12_000.0, 2_500.0])


def test_data_is_the_record_of_1871_to_1970():
    years, flows = kalman.read_data()
    assert years.tolist() == list(range(1871, 1971))
    assert flows[[0, 42, 99]].tolist() == [1120.0, 456.0, 740.0]
    assert flows.mean() == pytest.approx(919.35)


def test_likelihood_is_that_of_the_differences_from_year_to_year():
    _, flows = kalman.read_data()
    noise, drift = np.exp(LOG_VARIANCES)
    covariance = np.diag(np.full(99, drift + 2.0 * noise)) - noise * (np.eye(99, k=1) + np.eye(99, k=-1))
    expected = multivariate_normal.logpdf(np.diff(flows), np.zeros(99), covariance)
    _, _, likelihood = kalman.filtered(ag.constant(LOG_VARIANCES), ag.constant(flows))
    assert float(likelihood) == pytest.approx(expected, rel=1e-12)


def test_years_without_measurement_leave_the_level_and_widen_the_band():
    _, flows = kalman.read_data()
    levels, variances, _ = kalman.filtered(ag.constant(LOG_VARIANCES), ag.constant(kalman.with_gaps(flows)))
    levels, variances = levels.numpy(), variances.numpy()
    gap = kalman.GAPS[0]
    assert (levels[gap] == levels[gap.start - 1]).all()
    np.testing.assert_allclose(np.diff(variances[gap]), np.exp(LOG_VARIANCES[1]), rtol=1e-9)


def test_derivatives_are_those_of_central_differences():
    _, flows = kalman.read_data()
    record = ag.constant(kalman.with_gaps(flows))
    _, slope, hessian = kalman.likelihood_and_derivatives(ag.constant(LOG_VARIANCES), record)
    for i in range(2):
        move = 1e-5 * np.eye(2)[i]
        above, below = (
            kalman.likelihood_and_derivatives(ag.constant(LOG_VARIANCES + sign * move), record) for sign in (1.0, -1.0)
        )
        assert float(above[0] - below[0]) / 2e-5 == pytest.approx(slope.numpy()[i], rel=1e-6)
        np.testing.assert_allclose((above[1] - below[1]).numpy() / 2e-5, hessian.numpy()[i], rtol=1e-6)


def test_fit_is_the_published_one(tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("sys.argv", ["kalman.py", str(tmp_path / "nile.png")])
    kalman.main()
    assert "all years: noise 15098.5, drift 1469.18, log-likelihood -632.5456; 6 steps" in capsys.readouterr().out
    assert (tmp_path / "nile.png").read_bytes().startswith(b"\x89PNG")


def test_fit_ends_at_the_maximum():
    _, flows = kalman.read_data()
    found = kalman.fit(flows)
    np.testing.assert_allclose(found.variances, [15_098.5, 1_469.2], rtol=1e-4)
    assert found.likelihood == pytest.approx(-632.5456, abs=1e-4)
    assert np.abs(found.slope).max() < 1e-8
    assert len(found.path) < 15
    assert (found.errors > 0).all()
