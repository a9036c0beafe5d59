"""Fit a predator-prey model to a century-old record by differentiating an adaptive ODE solver.

The solver below is plain imperative Python: a `while` whose number of steps depends on the data, an `if` that accepts
or rejects a step, a `break` when the step size collapses. `@ag.function` turns it into native code, and `GradientTape`
gives its exact gradient, the step-size control included. Gradient descent then finds the four Lotka-Volterra parameters
that best explain the hare and lynx pelts that the Hudson's Bay Company took in from 1900 to 1920.

    hare' = a hare - b hare lynx          lynx' = d hare lynx - c lynx

Run it: `python examples/ode_gradient.py`. It prints the fit, and checks the solution against scipy's `solve_ivp` and
the gradient against central differences.
"""

import csv
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

import autograph as ag

DATA = Path(__file__).parent / "data" / "hudson_bay.csv"
START = np.log([0.5, 0.025, 0.8, 0.02])  # a, b, c, d, a guess by eye; logarithms keep the rates positive
TOLERANCE = 1e-8


def read_data() -> tuple[np.ndarray, np.ndarray]:
    """Years since 1900, shape [21], and thousands of (hare, lynx) pelts, shape [21, 2]."""
    with DATA.open(encoding="utf-8") as lines:
        rows = [*csv.DictReader(line for line in lines if not line.startswith("#"))]
    years = np.array([float(row["year"]) - 1900.0 for row in rows])
    pelts = np.array([[float(row["hare"]), float(row["lynx"])] for row in rows])
    return years, pelts


def field(y, rates):
    """The right-hand side of the Lotka-Volterra equations: y is (hare, lynx), rates is (a, b, c, d)."""
    eaten = y[0] * y[1]
    return ag.stack([rates[0] * y[0] - rates[1] * eaten, rates[3] * eaten - rates[2] * y[1]])


def try_step(y, k1, h, rates):
    """One Dormand-Prince step: the solution of order 5, its slope there, and the estimated error over the tolerance.

    The tableau is that of Dormand and Prince, J. Comput. Appl. Math. 6 (1980), table 2.
    """
    k2 = field(y + h * (k1 / 5.0), rates)
    k3 = field(y + h * (3.0 / 40.0 * k1 + 9.0 / 40.0 * k2), rates)
    k4 = field(y + h * (44.0 / 45.0 * k1 - 56.0 / 15.0 * k2 + 32.0 / 9.0 * k3), rates)
    slope = 19372.0 / 6561.0 * k1 - 25360.0 / 2187.0 * k2 + 64448.0 / 6561.0 * k3 - 212.0 / 729.0 * k4
    k5 = field(y + h * slope, rates)
    slope = 9017.0 / 3168.0 * k1 - 355.0 / 33.0 * k2 + 46732.0 / 5247.0 * k3 + 49.0 / 176.0 * k4 - 5103.0 / 18656.0 * k5
    k6 = field(y + h * slope, rates)
    slope = 35.0 / 384.0 * k1 + 500.0 / 1113.0 * k3 + 125.0 / 192.0 * k4 - 2187.0 / 6784.0 * k5 + 11.0 / 84.0 * k6
    y_new = y + h * slope
    k7 = field(y_new, rates)
    slope = 71.0 / 57600.0 * k1 - 71.0 / 16695.0 * k3 + 71.0 / 1920.0 * k4 - 17253.0 / 339200.0 * k5 + 22.0 / 525.0 * k6
    gap = h * (slope - k7 / 40.0)
    scale = TOLERANCE + TOLERANCE * ag.maximum(ag.abs(y), ag.abs(y_new))
    error = ag.sqrt(ag.reduce_mean(ag.square(gap / scale)))
    return y_new, k7, ag.where(error < 1e10, error, 1e10)  # a step so long that it overflows is rejected as well


def solve(rates, y, times):
    """The populations at each of `times`, shape [n, 2], from `y` at `times[0]`, and the number of steps tried."""
    n = ag.shape(times)[0]
    path = ag.TensorArray(ag.float64, size=n)
    path = path.write(0, y)
    t = times[0]
    h = ag.constant(0.1, ag.float64)
    slope = field(y, rates)
    steps = ag.constant(0)
    for i in ag.range(1, n):
        while t < times[i]:
            last = t + h >= times[i]
            step = ag.where(last, times[i] - t, h)
            if step < 1e-10:
                y = y * np.nan  # too stiff for an explicit solver: nothing from here on can be trusted
                break
            y_new, slope_new, error = try_step(y, slope, step, rates)
            if error <= 1.0:
                y = y_new
                slope = slope_new
                t = ag.where(last, times[i], t + step)
            h = step * ag.clip_by_value(0.9 * ag.maximum(error, 1e-10) ** -0.2, 0.2, 5.0)
            steps += 1
        path = path.write(i, y)
    return path.stack(), steps


def loss(log_rates, times, pelts):
    """Mean squared error of the logarithms: the counts span a factor of twenty, and their errors are proportional."""
    path, _ = solve(ag.exp(log_rates), pelts[0], times)
    return ag.reduce_mean(ag.square(ag.math.log(path) - ag.math.log(pelts)))


@ag.function(jit_compile=True)
def solve_compiled(log_rates, times, pelts):
    return solve(ag.exp(log_rates), pelts[0], times)


@ag.function(jit_compile=True)
def loss_compiled(log_rates, times, pelts):
    return loss(log_rates, times, pelts)


@ag.function(jit_compile=True)
def loss_and_gradient(log_rates, times, pelts):
    with ag.GradientTape() as tape:
        tape.watch(log_rates)
        value = loss(log_rates, times, pelts)
    return value, tape.gradient(value, log_rates)


def adam(start: np.ndarray, times, pelts, steps: int, rate: float) -> Iterator[tuple[np.ndarray, float]]:
    """Gradient descent with momentum and per-parameter scaling (Kingma and Ba 2015); yields (parameters, loss)."""
    parameters = start.copy()
    mean = np.zeros_like(start)
    square = np.zeros_like(start)
    for i in range(1, steps + 1):
        value, gradient = loss_and_gradient(ag.constant(parameters), times, pelts)
        yield parameters.copy(), float(value)
        mean = 0.9 * mean + 0.1 * gradient.numpy()
        square = 0.99 * square + 0.01 * gradient.numpy() ** 2
        step = rate * 0.5 * (1.0 + np.cos(np.pi * i / steps))
        parameters -= step * (mean / (1.0 - 0.9**i)) / (np.sqrt(square / (1.0 - 0.99**i)) + 1e-12)


class Fit(NamedTuple):
    """What `fit` found: rates (a, b, c, d), the loss before each step, the last gradient's norm, seconds it took."""

    rates: np.ndarray
    losses: list[float]
    gradient_norm: float
    seconds: float


def fit(steps: int = 300, rate: float = 0.05) -> Fit:
    years, counts = read_data()
    times, pelts = ag.constant(years), ag.constant(counts)
    began = time.perf_counter()
    history = [*adam(START, times, pelts, steps, rate)]
    best, _ = min(history, key=lambda entry: entry[1])
    _, gradient = loss_and_gradient(ag.constant(best), times, pelts)
    seconds = time.perf_counter() - began
    return Fit(np.exp(best), [value for _, value in history], float(np.linalg.norm(gradient.numpy())), seconds)


def against_scipy(log_rates: np.ndarray) -> tuple[float, int]:
    """Largest relative difference from `solve_ivp` at ten times tighter tolerance, and the steps that ours tried."""
    years, counts = read_data()
    path, steps = solve_compiled(ag.constant(log_rates), ag.constant(years), ag.constant(counts))
    a, b, c, d = np.exp(log_rates)
    reference = solve_ivp(
        lambda t, y: [a * y[0] - b * y[0] * y[1], d * y[0] * y[1] - c * y[1]],
        (years[0], years[-1]),
        counts[0],
        t_eval=years,
        rtol=TOLERANCE / 10,
        atol=TOLERANCE / 10,
    ).y.T
    return float(np.max(np.abs(path.numpy() - reference) / reference)), int(steps)


def against_differences(log_rates: np.ndarray, width: float = 1e-5) -> tuple[np.ndarray, np.ndarray]:
    """The loss's gradient, shape [4], from the tape and from central differences."""
    years, counts = read_data()
    times, pelts = ag.constant(years), ag.constant(counts)
    _, gradient = loss_and_gradient(ag.constant(log_rates), times, pelts)
    differences = np.empty_like(log_rates)
    for i in range(len(log_rates)):
        shift = np.zeros_like(log_rates)
        shift[i] = width
        above = float(loss_compiled(ag.constant(log_rates + shift), times, pelts))
        below = float(loss_compiled(ag.constant(log_rates - shift), times, pelts))
        differences[i] = (above - below) / (2.0 * width)
    return gradient.numpy(), differences


def main() -> None:
    difference, steps = against_scipy(START)
    print(f"solution: {steps} steps tried, within {difference:.1e} (relative) of scipy's solve_ivp")
    gradient, differences = against_differences(START)
    gap = np.max(np.abs(gradient - differences) / np.abs(differences))
    print(f"gradient: {np.array2string(gradient, precision=6)}, within {gap:.1e} (relative) of central differences")
    found = fit()
    print(
        f"loss:     {found.losses[0]:.4f} at the start, {min(found.losses):.4f} after {len(found.losses)} steps",
        end=", ",
    )
    print(f"{found.seconds:.1f} s with compiling; gradient's norm {found.gradient_norm:.1e}")
    a, b, c, d = found.rates
    print(f"fit:      hare' = {a:.3f} hare - {b:.4f} hare lynx,  lynx' = {d:.4f} hare lynx - {c:.3f} lynx")
    years, counts = read_data()
    path, _ = solve_compiled(ag.constant(np.log(found.rates)), ag.constant(years), ag.constant(counts))
    print("year   hare: seen  model   lynx: seen  model")
    for year, seen, model in zip(years, counts, path.numpy(), strict=True):
        print(f"{1900 + year:.0f}   {seen[0]:10.1f} {model[0]:6.1f}   {seen[1]:10.1f} {model[1]:6.1f}")


if __name__ == "__main__":
    main()
