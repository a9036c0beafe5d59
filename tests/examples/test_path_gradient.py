"""examples/path_gradient.py: costs against a search over all paths, gradients against differences, the early end."""

import numpy as np
import pytest

import autograph as ag
from examples import path_gradient

RNG = np.random.default_rng(5)
X, Y = RNG.normal(size=5), RNG.normal(size=5)


def paths(n, m, band, start=(0, 0)):
    """All monotone paths from `start` to the last cell of a square table that stay within the band."""
    i, j = start
    if abs(i - j) > band or i >= n or j >= m:
        return
    if start == (n - 1, m - 1):
        yield [start]
        return
    for step in ((1, 0), (0, 1), (1, 1)):
        for rest in paths(n, m, band, (i + step[0], j + step[1])):
            yield [start, *rest]


def by_enumeration(x, y, gamma, band):
    costs = np.array([sum((x[i] - y[j]) ** 2 for i, j in path) for path in paths(len(x), len(y), band)])
    return costs.min() if gamma == 0.0 else -gamma * np.log(np.sum(np.exp(-costs / gamma)))


@pytest.mark.parametrize("gamma", [0.0, 0.5])
@pytest.mark.parametrize("band", [0, 1, 4])
def test_cost_is_that_over_all_paths(gamma, band):
    found = path_gradient.soft_dtw(ag.constant(X), ag.constant(Y), ag.constant(gamma, ag.float64), ag.constant(band))
    assert float(found) == pytest.approx(by_enumeration(X, Y, gamma, band), rel=1e-12)


def test_gradient_is_that_of_central_differences():
    series = np.stack([Y, X[::-1]])

    def mean_cost(x):
        return np.mean([by_enumeration(x, y, 0.3, 2) for y in series])

    arguments = ag.constant(series), ag.constant(0.3, ag.float64), ag.constant(2)
    loss, gradient = path_gradient.loss_and_gradient(ag.constant(X), *arguments)
    assert float(loss) == pytest.approx(mean_cost(X), rel=1e-12)
    moves = 1e-5 * np.eye(5)
    differences = [(mean_cost(X + move) - mean_cost(X - move)) / 2e-5 for move in moves]
    np.testing.assert_allclose(gradient, differences, rtol=1e-7)


def test_search_finds_the_nearest_and_gives_up_early():
    series = path_gradient.make_series()
    band = ag.constant(path_gradient.BAND)
    query = series[2] + 0.01
    which, cost, gradient, filled = path_gradient.nearest(ag.constant(query), ag.constant(series), band)
    hard = ag.constant(0.0, ag.float64)
    costs = [float(path_gradient.soft_dtw(ag.constant(query), ag.constant(y), hard, band)) for y in series]
    assert int(which) == int(np.argmin(costs)) == 2
    assert float(cost) == pytest.approx(min(costs), rel=1e-12)
    assert int(filled) < 0.8 * series.size
    move = 1e-6 * np.cos(np.arange(path_gradient.LENGTH))
    above, below = (
        float(path_gradient.soft_dtw(ag.constant(query + sign * move), ag.constant(series[2]), hard, band))
        for sign in (1.0, -1.0)
    )
    assert (above - below) / 2.0 == pytest.approx(float(gradient.numpy() @ move), rel=1e-4)


def test_average_is_nearer_than_the_mean():
    series = path_gradient.make_series()
    mean = series.mean(axis=0)
    found, losses = path_gradient.average(series, mean, steps=60)
    assert losses[-1] < losses[0]
    assert path_gradient.mean_cost(found, series) < 0.5 * path_gradient.mean_cost(mean, series)


def test_draws(tmp_path):
    pytest.importorskip("matplotlib")
    series = path_gradient.make_series()
    path_gradient.draw(tmp_path / "path.png", series, series.mean(axis=0))
    assert (tmp_path / "path.png").read_bytes().startswith(b"\x89PNG")
