"""Average time series that run at different speeds, by differentiating the best alignment: soft dynamic time warping.

Dynamic time warping fills a table cell by cell: the cost of aligning the first i values of one series with the first j
of another is their distance plus the cheapest of three neighbours. With a soft minimum it is differentiable,

    softmin(a, b, c) = -gamma log(exp(-a / gamma) + exp(-b / gamma) + exp(-c / gamma))

and the gradient says how each value should move to be nearer to all series: M. Cuturi and M. Blondel, "Soft-DTW: a
Differentiable Loss Function for Time-Series", ICML 2017. Their gradient is a second recursion that is derived by hand;
here it comes from `GradientTape`. The program is what one would write in Python: two loops, the inner one over a band
around the diagonal (Sakoe and Chiba 1978), branches at the borders, one for the hard minimum at gamma = 0, and a
`break` as soon as a whole row costs more than the best so far: a search for the nearest series gives up early.

Run it: `python examples/path_gradient.py [FILE.png]`. It prints the averages' losses, what the search skipped, and
draws the averages and an alignment, with matplotlib (`python -m pip install matplotlib`).
"""

import sys
import time
from pathlib import Path

import numpy as np

import autograph as ag

LENGTH = 60
COUNT = 6
BAND = 15  # cells on either side of the diagonal
GAMMA = 0.05
FAR = 1e10  # the cost of a cell that no path may enter


def make_series(seed: int = 3) -> np.ndarray:
    """Heartbeat-like curves, each running early here and late there, with noise: shape [COUNT, LENGTH]."""
    rng = np.random.default_rng(seed)
    time_ = np.linspace(0.0, 1.0, LENGTH)
    series = []
    for _ in range(COUNT):
        bend, delay = rng.uniform(-0.16, 0.16), rng.uniform(-0.05, 0.05)
        at = time_ + bend * np.sin(np.pi * time_) + delay * np.sin(2.0 * np.pi * time_)
        wave = 0.25 * bump(at, 0.25, 0.05) - 0.35 * bump(at, 0.44, 0.018) + 1.2 * bump(at, 0.5, 0.025)
        wave += -0.4 * bump(at, 0.56, 0.02) + 0.4 * bump(at, 0.78, 0.06)
        series.append(wave + rng.normal(0.0, 0.02, LENGTH))
    return np.array(series)


def bump(at: np.ndarray, middle: float, width: float) -> np.ndarray:
    return np.exp(-(((at - middle) / width) ** 2) / 2.0)


def cheapest(a, b, c, gamma):
    """The soft minimum, or the minimum where gamma is 0."""
    least = a
    if b < least:
        least = b
    if c < least:
        least = c
    if gamma > 0.0:
        total = ag.exp((least - a) / gamma) + ag.exp((least - b) / gamma) + ag.exp((least - c) / gamma)
        least -= gamma * ag.math.log(total)
    return least


def align(costs, gamma, band, give_up):
    """The cost of the best path from the first cell to the last, and the number of rows that were filled.

    costs: shape [n, m]. A path stays within `band` cells of the diagonal. As soon as a whole row costs more than
    `give_up` the result is infinite: paths only get longer (by a hard minimum; a soft one may be a little below).
    """
    n, m = ag.shape(costs)[0], ag.shape(costs)[1]
    above = ag.fill([m], ag.constant(FAR, ag.float64))
    corner = ag.constant(
        0.0, ag.float64
    )  # above and to the left of the cell; before the first cell a path costs nothing
    rows = 0
    for i in ag.range(n):
        row = ag.TensorArray(ag.float64, size=m, element_shape=[])
        left, lowest = ag.constant(FAR, ag.float64), ag.constant(FAR, ag.float64)
        for j in ag.range(m):
            if ag.abs(i * (m - 1) - j * (n - 1)) <= band * (n - 1):
                left = costs[i, j] + cheapest(corner, above[j], left, gamma)
                lowest = ag.minimum(lowest, left)
            else:
                left = ag.constant(FAR, ag.float64)
            row = row.write(j, left)
            corner = above[j]
        above = row.stack()
        corner = ag.constant(FAR, ag.float64)
        rows += 1
        if lowest > give_up:
            above = ag.fill([m], ag.constant(np.inf, ag.float64))
            break
    return above[m - 1], rows


def distances(x, y):
    """Squared differences of all pairs: shape [len(x), len(y)]."""
    return ag.square(x[:, ag.newaxis] - y[ag.newaxis, :])


@ag.function(jit_compile=True)
def soft_dtw(x, y, gamma, band):
    cost, _ = align(distances(x, y), gamma, band, np.inf)
    return cost


@ag.function(jit_compile=True)
def alignment(x, y, gamma, band):
    """How probable it is that the best path goes through a cell, shape [n, m]: the derivative by the cell's cost."""
    costs = distances(x, y)
    with ag.GradientTape() as tape:
        tape.watch(costs)
        cost, _ = align(costs, gamma, band, np.inf)
    return tape.gradient(cost, costs)


@ag.function(jit_compile=True)
def loss_and_gradient(x, series, gamma, band):
    """The mean cost of aligning `x` with each row of `series`, and its gradient by x."""
    with ag.GradientTape() as tape:
        tape.watch(x)
        total = ag.constant(0.0, ag.float64)
        for y in series:
            cost, _ = align(distances(x, y), gamma, band, np.inf)
            total += cost
        mean = total / ag.cast(ag.shape(series)[0], ag.float64)
    return mean, tape.gradient(mean, x)


@ag.function(jit_compile=True)
def nearest(x, series, band):
    """The nearest row of `series`, its cost, the cost's gradient by x, and how many rows of tables were filled."""
    with ag.GradientTape() as tape:
        tape.watch(x)
        best = ag.constant(np.inf, ag.float64)
        which = -1
        filled = 0
        for k in ag.range(ag.shape(series)[0]):
            cost, rows = align(distances(x, series[k]), ag.constant(0.0, ag.float64), band, best)
            filled += rows
            if cost < best:
                best = cost
                which = k
    return which, best, tape.gradient(best, x), filled


def average(series: np.ndarray, start: np.ndarray, steps: int = 200) -> tuple[np.ndarray, list[float]]:
    """The curve with the least mean soft-DTW cost to all series, by gradient descent with momentum; and its losses."""
    x, speed, losses = start.copy(), np.zeros_like(start), []
    rows, gamma, band = ag.constant(series), ag.constant(GAMMA, ag.float64), ag.constant(BAND)
    for _ in range(steps):
        loss, gradient = loss_and_gradient(ag.constant(x), rows, gamma, band)
        losses.append(float(loss))
        speed = 0.8 * speed - 0.02 * gradient.numpy()
        x += speed
    return x, losses


def mean_cost(x: np.ndarray, series: np.ndarray) -> float:
    """The mean cost of the best alignments of `x` with each row of `series`: with the hard minimum."""
    hard = ag.constant(0.0, ag.float64)
    return float(np.mean([soft_dtw(ag.constant(x), ag.constant(y), hard, ag.constant(BAND)) for y in series]))


def draw(path: Path, series: np.ndarray, found: np.ndarray) -> None:
    """The series with both averages, and where the average is aligned with one of them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    samples = np.arange(LENGTH)
    for row in series:
        left.plot(samples, row, color="0.75", lw=0.8, label="series" if row is series[0] else None)
    left.plot(samples, series.mean(axis=0), color="tab:orange", lw=1.8, ls="--", label="mean at each sample")
    left.plot(samples, found, color="tab:blue", lw=1.8, label="soft-DTW average")
    left.set_xlabel("time (samples)")
    left.set_ylabel("signal (arbitrary units)")
    left.set_title("Averages of curves that run at different speeds", fontsize=10, loc="left")
    left.legend(fontsize=8, frameon=False)

    other = int(np.argmax([np.argmax(row) for row in series]))
    through = alignment(
        ag.constant(found), ag.constant(series[other]), ag.constant(GAMMA, ag.float64), ag.constant(BAND)
    )
    picture = right.imshow(through.numpy(), origin="lower", cmap="Blues", vmin=0.0, vmax=1.0)
    for side in (-1, 1):
        right.plot(samples, samples + side * (BAND + 0.5), color="0.6", lw=0.8, ls=":")
    right.plot([], [], color="0.6", lw=0.8, ls=":", label="band")
    right.set(xlim=(-0.5, LENGTH - 0.5), ylim=(-0.5, LENGTH - 0.5))
    right.set_xlabel("time in the series that runs latest (samples)")
    right.set_ylabel("time in the average (samples)")
    right.set_title("Alignment: derivative of the cost by each cell", fontsize=10, loc="left")
    right.legend(fontsize=8, loc="upper left", frameon=False)
    figure.colorbar(picture, ax=right, label="probability that the path goes through", shrink=0.85)
    figure.savefig(path, dpi=130)


def main() -> None:
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "path_gradient.png")
    series = make_series()
    began = time.perf_counter()
    found, losses = average(series, series.mean(axis=0))
    seconds = time.perf_counter() - began
    before, after = mean_cost(series.mean(axis=0), series), mean_cost(found, series)
    print(f"mean cost of aligning the series with their mean {before:.4f}, with the soft-DTW average {after:.4f}")
    print(f"{len(losses)} gradients, each through {COUNT} tables, in {seconds:.1f} s with compiling")
    which, cost, gradient, filled = nearest(ag.constant(found), ag.constant(series), ag.constant(BAND))
    print(f"nearest to it: series {int(which)}, cost {float(cost):.4f}, gradient's norm {np.linalg.norm(gradient):.4f}")
    print(f"the search filled {int(filled)} of {COUNT * LENGTH} rows")
    try:
        draw(path, series, found)
    except ImportError:
        print("no picture: that needs matplotlib, `python -m pip install matplotlib`")
    else:
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
