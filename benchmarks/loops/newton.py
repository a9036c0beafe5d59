"""Roots of scalar equations, float64: Kepler's equation by Newton's method, a cubic by bisection, for many right sides.

tf.function without XLA and torch take one step of all equations at once. The gradient of the mean anomaly of Newton's
roots in the eccentricity goes through its loop, whose trip count the data decide; JAX differentiates no such loop in
reverse, so that it gets a scan with as many trips as any equation needs, and tf.function with XLA the same.
"""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case

TRIPS = 8  # no equation below needs more
TOLERANCE = 1e-10


def kepler_arguments(quick: bool) -> tuple[np.ndarray, np.float64]:
    return np.linspace(0.1, 3.0, 50 if quick else 2_000), np.float64(0.3)


def kepler(m: Any, anomalies: Any, e: Any) -> Any:
    """The sum of the solutions E of E - e sin E = M over all M."""
    total = m.constant(0.0, m.float64)
    for i in m.range(m.shape(anomalies)[0]):
        anomaly = anomalies[i]
        x, change = anomaly, m.constant(1.0, m.float64)
        while m.abs(change) > TOLERANCE:
            change = (x - e * m.sin(x) - anomaly) / (1.0 - e * m.cos(x))
            x = x - change
        total += x
    return total


def machine_kepler(anomalies, e):
    total = 0.0
    for i in range(anomalies.shape[0]):
        x, change = anomalies[i], 1.0
        while abs(change) > TOLERANCE:
            change = (x - e * np.sin(x) - anomalies[i]) / (1.0 - e * np.cos(x))
            x = x - change
        total += x
    return total


def machine_kepler_gradient(anomalies, e):
    total = 0.0
    path = np.empty(64)
    for i in range(anomalies.shape[0]):
        x, change, trips = anomalies[i], 1.0, 0
        while abs(change) > TOLERANCE:
            path[trips] = x
            trips += 1
            change = (x - e * np.sin(x) - anomalies[i]) / (1.0 - e * np.cos(x))
            x = x - change
        adjoint = 1.0
        for trip in range(trips - 1, -1, -1):
            x = path[trip]
            sine, slope = np.sin(x), 1.0 - e * np.cos(x)
            gap = x - e * sine - anomalies[i]
            total += adjoint * (sine / slope - gap * np.cos(x) / (slope * slope))
            adjoint *= gap * e * sine / (slope * slope)
    return [total]


C_KEPLER = """
double run(const double *anomalies, double e) {
    double total = 0;
    for (int i = 0; i < COUNT; i++) {
        double x = anomalies[i], change = 1;
        while (fabs(change) > 1e-10) {
            change = (x - e * sin(x) - anomalies[i]) / (1 - e * cos(x));
            x -= change;
        }
        total += x;
    }
    return total;
}
"""


def c_kepler(quick: bool) -> Any:
    text = f"#define COUNT {kepler_arguments(quick)[0].size}\n{C_KEPLER}"
    return native.c(text, kepler_arguments, lambda anomalies, e: np.float64(0))(quick)


def make_jax_kepler(jax: Any) -> Any:
    jnp = jax.numpy

    def solve(anomaly, e):
        def step(state):
            x, _ = state
            change = (x - e * jnp.sin(x) - anomaly) / (1.0 - e * jnp.cos(x))
            return x - change, change

        return jax.lax.while_loop(lambda state: jnp.abs(state[1]) > TOLERANCE, step, (anomaly, jnp.float64(1.0)))[0]

    return lambda anomalies, e: jnp.sum(jax.lax.map(lambda anomaly: solve(anomaly, e), anomalies))


def make_jax_kepler_scan(jax: Any) -> Any:
    """Always as many trips as any equation needs; those that have ended stand still."""
    jnp = jax.numpy

    def every(anomalies, e):
        def step(state, _):
            x, change = state
            new = (x - e * jnp.sin(x) - anomalies) / (1.0 - e * jnp.cos(x))
            more = jnp.abs(change) > TOLERANCE
            return (jnp.where(more, x - new, x), jnp.where(more, new, change)), None

        state = (anomalies, jnp.ones_like(anomalies))
        (x, _), _ = jax.lax.scan(step, state, length=TRIPS)
        return jnp.sum(x)

    return every


def kepler_arrays(m: Any, anomalies: Any, e: Any) -> Any:
    x, change = anomalies, m.ones_like(anomalies)
    while m.reduce_any(m.abs(change) > TOLERANCE):
        new = (x - e * m.sin(x) - anomalies) / (1.0 - e * m.cos(x))
        more = m.abs(change) > TOLERANCE
        x, change = m.where(more, x - new, x), m.where(more, new, change)
    return m.reduce_sum(x)


def kepler_trips(m: Any, anomalies: Any, e: Any) -> Any:
    x, change = anomalies, m.ones_like(anomalies)
    for _ in m.range(TRIPS):
        new = (x - e * m.sin(x) - anomalies) / (1.0 - e * m.cos(x))
        more = m.abs(change) > TOLERANCE
        x, change = m.where(more, x - new, x), m.where(more, new, change)
    return m.reduce_sum(x)


def make_torch_kepler(torch: Any) -> Any:
    def torch_kepler(anomalies, e):
        x, change = anomalies, torch.ones_like(anomalies)
        while bool((change.abs() > TOLERANCE).any()):
            new = (x - e * torch.sin(x) - anomalies) / (1.0 - e * torch.cos(x))
            more = change.abs() > TOLERANCE
            x, change = torch.where(more, x - new, x), torch.where(more, new, change)
        return x.sum()

    return torch_kepler


def cubic_arguments(quick: bool) -> tuple[np.ndarray]:
    return (np.linspace(0.0, 30.0, 30 if quick else 2_000),)


def bisection(m: Any, rights: Any) -> Any:
    """The sum of the roots of x³ + x = a over all a, halved until an interval is shorter than 1e-9."""
    total = m.constant(0.0, m.float64)
    for i in m.range(m.shape(rights)[0]):
        low, high = m.constant(0.0, m.float64), m.constant(4.0, m.float64)
        while high - low > 1e-9:
            middle = 0.5 * (low + high)
            if middle * middle * middle + middle < rights[i]:
                low = middle
            else:
                high = middle
        total += low
    return total


def machine_bisection(rights):
    total = 0.0
    for i in range(len(rights)):
        low, high = 0.0, 4.0
        while high - low > 1e-9:
            middle = 0.5 * (low + high)
            if middle * middle * middle + middle < rights[i]:
                low = middle
            else:
                high = middle
        total += low
    return total


C_BISECTION = """
double run(const double *rights) {
    double total = 0;
    for (int i = 0; i < COUNT; i++) {
        double low = 0, high = 4;
        while (high - low > 1e-9) {
            double middle = 0.5 * (low + high);
            if (middle * middle * middle + middle < rights[i]) low = middle; else high = middle;
        }
        total += low;
    }
    return total;
}
"""


def c_bisection(quick: bool) -> Any:
    text = f"#define COUNT {cubic_arguments(quick)[0].size}\n{C_BISECTION}"
    return native.c(text, cubic_arguments, lambda rights: np.float64(0))(quick)


def make_jax_bisection(jax: Any) -> Any:
    jnp = jax.numpy

    def solve(right):
        def step(state):
            low, high = state
            middle = 0.5 * (low + high)
            below = middle * middle * middle + middle < right
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        start = (jnp.float64(0.0), jnp.float64(4.0))
        return jax.lax.while_loop(lambda state: state[1] - state[0] > 1e-9, step, start)[0]

    return lambda rights: jnp.sum(jax.lax.map(solve, rights))


def bisection_arrays(m: Any, rights: Any) -> Any:
    low, high = m.zeros_like(rights), 4.0 * m.ones_like(rights)
    while m.reduce_any(high - low > 1e-9):
        middle = 0.5 * (low + high)
        below = middle * middle * middle + middle < rights
        low, high = m.where(below, middle, low), m.where(below, high, middle)
    return m.reduce_sum(low)


def make_torch_bisection(torch: Any) -> Any:
    def torch_bisection(rights):
        low, high = torch.zeros_like(rights), 4.0 * torch.ones_like(rights)
        while bool((high - low > 1e-9).any()):
            middle = 0.5 * (low + high)
            below = middle * middle * middle + middle < rights
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        return low.sum()

    return torch_bisection


CASES = [
    Case(
        "newton",
        "Kepler's equation by Newton's method, 2,000 times, float64",
        {
            peers.AUTOGRAPH: build.ours(kepler, kepler_arguments),
            peers.C: c_kepler,
            peers.NUMBA: build.numba(machine_kepler, kepler_arguments),
            peers.JAX: build.jax(make_jax_kepler, kepler_arguments),
            peers.TF: build.tensorflow(kepler_arrays, kepler_arguments),
            peers.TF_XLA: build.tensorflow(kepler, kepler_arguments, xla=True),
            peers.TORCH: build.torch(make_torch_kepler, kepler_arguments),
        },
        kind="scalar loop",
    ),
    Case(
        "newton-gradient",
        "Gradient of the roots of Kepler's equation in e, float64",
        {
            peers.AUTOGRAPH: build.ours(build.gradient(kepler, 1), kepler_arguments),
            peers.NUMBA: build.numba(machine_kepler_gradient, kepler_arguments),
            peers.JAX: build.jax(build.jax_gradient(make_jax_kepler_scan, 1), kepler_arguments),
            peers.TF: build.tensorflow(build.gradient(kepler_arrays, 1), kepler_arguments),
            peers.TF_XLA: build.tensorflow(build.gradient(kepler_trips, 1), kepler_arguments, xla=True),
            peers.TORCH: build.torch(build.torch_gradient(make_torch_kepler, 1), kepler_arguments),
        },
        kind="loop gradient",
    ),
    Case(
        "bisection",
        "Roots of a cubic by bisection, 2,000 times, float64",
        {
            peers.AUTOGRAPH: build.ours(bisection, cubic_arguments),
            peers.C: c_bisection,
            peers.NUMBA: build.numba(machine_bisection, cubic_arguments),
            peers.PYTHON: build.python(machine_bisection, cubic_arguments),
            peers.JAX: build.jax(make_jax_bisection, cubic_arguments),
            peers.TF: build.tensorflow(bisection_arrays, cubic_arguments),
            peers.TF_XLA: build.tensorflow(bisection, cubic_arguments, xla=True),
            peers.TORCH: build.torch(make_torch_bisection, cubic_arguments),
        },
        kind="scalar loop",
    ),
]
