"""Fit a Kalman filter to a century of the Nile by maximum likelihood, with exact derivatives through its loop.

The river's flow is a level that drifts from year to year, seen through noise (the local level model):

    flow[t] = level[t] + N(0, noise)          level[t + 1] = level[t] + N(0, drift)

The filter below is a plain `for` over the years with an `if` for those without a measurement. Newton's method finds the
two variances that make the record most likely; its gradients and Hessians go through the filter, and its own loop,
which ends when the data say so, is staged as well: the fit is one function. The record starts without prior knowledge
of the level (a diffuse start), as in J. Durbin and S. J. Koopman, "Time Series Analysis by State Space Methods" (2012),
chapter 2, who find the variances 15099 and 1469.1 and the log-likelihood -632.54.

Run it: `python examples/kalman.py [FILE.png]`. It prints the fit and what it is when forty years are missing, and draws
both, with matplotlib (`python -m pip install matplotlib`).
"""

import csv
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import autograph as ag

DATA = Path(__file__).parent / "data" / "nile.csv"
LOG_2_PI = float(np.log(2.0 * np.pi))
BAND = 1.6449  # standard deviations on either side of the mean that hold 90 % of a normal distribution
# Years that Durbin and Koopman leave out to show what the filter does without data (section 2.7).
GAPS = (slice(20, 40), slice(60, 80))


def read_data() -> tuple[np.ndarray, np.ndarray]:
    """Years and annual flows in 1e8 cubic metres, each of shape [100]."""
    with DATA.open(encoding="utf-8") as lines:
        rows = [*csv.DictReader(line for line in lines if not line.startswith("#"))]
    return np.array([int(row["year"]) for row in rows]), np.array([float(row["flow"]) for row in rows])


def with_gaps(flows: np.ndarray) -> np.ndarray:
    flows = flows.copy()
    for gap in GAPS:
        flows[gap] = np.nan
    return flows


def kalman(log_variances, flows):
    """The level's mean and variance after each year, each of shape [n], and the diffuse log-likelihood of the record.

    log_variances is (log noise, log drift); NaN in `flows` marks a year without a measurement, the first must have one.
    """
    noise, drift = ag.exp(log_variances[0]), ag.exp(log_variances[1])
    n = ag.shape(flows)[0]
    level, variance = flows[0], noise  # a diffuse start: all that is known after a year is that year's flow
    likelihood = ag.constant(0.0, ag.float64)  # of the years after the first, given the first
    levels = ag.TensorArray(ag.float64, size=n).write(0, level)
    variances = ag.TensorArray(ag.float64, size=n).write(0, variance)
    for t in ag.range(1, n):
        variance += drift
        if not ag.math.is_nan(flows[t]):
            surprise = flows[t] - level
            expected = variance + noise
            gain = variance / expected
            level += gain * surprise
            variance *= 1.0 - gain
            likelihood -= 0.5 * (LOG_2_PI + ag.math.log(expected) + surprise * surprise / expected)
        levels = levels.write(t, level)
        variances = variances.write(t, variance)
    return levels.stack(), variances.stack(), likelihood


def derivatives(log_variances, flows):
    """The log-likelihood, its gradient, shape [2], and its Hessian, shape [2, 2]."""
    with ag.GradientTape() as outer:
        outer.watch(log_variances)
        with ag.GradientTape() as inner:
            inner.watch(log_variances)
            _, _, likelihood = kalman(log_variances, flows)
        slope = inner.gradient(likelihood, log_variances)
    return likelihood, slope, outer.jacobian(slope, log_variances)


filtered = ag.function(kalman, jit_compile=True)
likelihood_and_derivatives = ag.function(derivatives, jit_compile=True)


@ag.function(jit_compile=True)
def maximise(start, flows):
    """Newton's method with damping: the maximum, its Hessian, the points on the way, shape [steps + 1, 2]."""
    here = start
    likelihood, slope, hessian = derivatives(here, flows)
    path = ag.TensorArray(ag.float64, size=0, dynamic_size=True, element_shape=[2]).write(0, here)
    damping = ag.constant(1.0, ag.float64)
    steps = 0
    while ag.norm(slope) > 1e-9 and damping < 1e12:
        curvature = damping * ag.eye(2, dtype=ag.float64) - hessian
        there = here + ag.linalg.solve(curvature, slope[:, ag.newaxis])[:, 0]
        value, slope_there, hessian_there = derivatives(there, flows)
        if value >= likelihood:
            here, likelihood, slope, hessian = there, value, slope_there, hessian_there
            damping *= 0.1
            steps += 1
            path = path.write(steps, here)
        else:
            damping *= 10.0  # uphill only: a shorter step, closer to the slope's direction
    return here, hessian, path.stack()


class Fit(NamedTuple):
    """Variances (noise, drift), standard errors of their logarithms, the log-likelihood, and the way there."""

    variances: np.ndarray
    errors: np.ndarray
    likelihood: float
    slope: np.ndarray
    path: np.ndarray
    seconds: float


def fit(flows: np.ndarray) -> Fit:
    began = time.perf_counter()
    start = np.log(np.full(2, np.nanvar(flows) / 2.0))  # half of what varies is noise, half is drift: no knowledge
    best, hessian, path = maximise(ag.constant(start), ag.constant(flows))
    seconds = time.perf_counter() - began
    likelihood, slope, _ = likelihood_and_derivatives(best, ag.constant(flows))
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian.numpy())))
    return Fit(np.exp(best.numpy()), errors, float(likelihood), slope.numpy(), path.numpy(), seconds)


def likelihoods(log_noise: np.ndarray, log_drift: np.ndarray, flows: np.ndarray) -> np.ndarray:
    """The log-likelihood on a grid: shape [len(log_drift), len(log_noise)]."""
    record = ag.constant(flows)
    rows = [[float(filtered(ag.constant([a, b], ag.float64), record)[2]) for a in log_noise] for b in log_drift]
    return np.array(rows)


def draw(path: Path, found: Fit, found_with_gaps: Fit) -> None:
    """The record with the filtered level, whole and with gaps, and the way up the likelihood."""
    from matplotlib.figure import Figure

    years, flows = read_data()
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(3, 2))
    upper = figure.add_subplot(grid[0, 0])
    lower = figure.add_subplot(grid[1, 0], sharex=upper, sharey=upper)
    for axes, record, result, title in (
        (upper, flows, found, "Every year measured"),
        (lower, with_gaps(flows), found_with_gaps, "1891–1910 and 1931–1950 left out"),
    ):
        levels, variances, _ = filtered(ag.constant(np.log(result.variances)), ag.constant(record))
        width = BAND * np.sqrt(variances.numpy())
        axes.fill_between(years, levels - width, levels + width, color="tab:blue", alpha=0.2, lw=0, label="90 % band")
        axes.plot(years, levels, color="tab:blue", lw=1.8, label="filtered level")
        axes.plot(years, record, "o", color="0.25", ms=3, label="measured flow")
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_ylabel("flow (10⁸ m³ a year)")
        axes.set_ylim(400, 1450)
    upper.legend(ncols=3, fontsize=8, frameon=False, loc="upper right")
    upper.tick_params(labelbottom=False)
    lower.set_xlabel("year")

    way = found.path / np.log(10.0)
    noise, drift = np.linspace(3.6, 4.6, 41), np.linspace(2.0, 4.6, 41)
    heights = likelihoods(noise * np.log(10.0), drift * np.log(10.0), flows)
    axes = figure.add_subplot(grid[:, 1])
    depths = [-30, -20, -12, -8, -5, -3, -2, -1, -0.5, 0]
    below = heights - found.likelihood
    axes.contourf(10**noise, 10**drift, below, levels=depths, cmap="Blues", alpha=0.45, extend="min")
    lines = axes.contour(10**noise, 10**drift, below, levels=depths, colors="0.35", linewidths=0.6, linestyles="solid")
    axes.clabel(lines, depths[:-2], fmt="%g", fontsize=8, colors="black")
    axes.plot(*10**way.T, "o-", color="tab:red", ms=4, lw=1.2, label=f"Newton's method, {len(way) - 1} steps")
    axes.plot(*found.variances, "*", color="gold", mec="black", ms=13, label="maximum", linestyle="none")
    axes.set(xscale="log", yscale="log")
    axes.set_xticks([5_000, 10_000, 20_000, 40_000], ["5 000", "10 000", "20 000", "40 000"])
    axes.set_yticks([100, 1_000, 10_000], ["100", "1 000", "10 000"])
    axes.minorticks_off()
    axes.set_xlabel("variance of the noise ((10⁸ m³)²)")
    axes.set_ylabel("variance of a year's drift ((10⁸ m³)²)")
    axes.set_title("Log-likelihood below its maximum", fontsize=10, loc="left")
    axes.legend(fontsize=8, loc="lower left")
    figure.savefig(path, dpi=130)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "kalman.png")
    _, flows = read_data()
    found, found_with_gaps = fit(flows), fit(with_gaps(flows))
    for name, result in (("all years", found), ("with gaps", found_with_gaps)):
        noise, drift = result.variances
        print(f"{name}: noise {noise:.1f}, drift {drift:.2f}, log-likelihood {result.likelihood:.4f}", end="; ")
        print(f"{len(result.path) - 1} steps, gradient {np.abs(result.slope).max():.0e}, {result.seconds:.1f} s")
    print("Durbin and Koopman: noise 15099, drift 1469.1, log-likelihood -632.54")
    for name, variance, error in zip(("noise", "drift"), found.variances, found.errors, strict=True):
        low, high = variance * np.exp(np.array([-1, 1]) * BAND * error)
        print(f"{name}: 90 % between {low:.0f} and {high:.0f}, from the Hessian at the maximum")
    try:
        draw(path, found, found_with_gaps)
    except ImportError:
        print("no picture: that needs matplotlib, `python -m pip install matplotlib`")
    else:
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
