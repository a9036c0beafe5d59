"""The Van der Pol oscillator, y'' = μ (1 - y²) y' - y, to time 10 with adaptive steps (Bogacki and Shampine's pair of
orders 3 and 2, Appl. Math. Lett. 2, 1989), tolerance 1e-6, float64; and the derivative of its end in μ.

JAX differentiates no loop in reverse whose trip count the data decide, and TensorFlow none with XLA: they get as many
trips as the problem needs, those past the end standing still.
"""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case

TOLERANCE = 1e-6
TRIPS = 800  # more than any of the sizes takes: 722


def arguments(quick: bool) -> tuple[np.float64, np.float64]:
    return np.float64(1.5), np.float64(1.0 if quick else 10.0)


def integrate(m: Any, mu: Any, end: Any) -> Any:
    """y at time `end`."""
    y, v, time, step = (m.constant(value, m.float64) for value in (2.0, 0.0, 0.0, 0.01))
    while time < end:
        h = m.minimum(step, end - time)
        a1, b1 = v, mu * (1.0 - y * y) * v - y
        y2, v2 = y + 0.5 * h * a1, v + 0.5 * h * b1
        a2, b2 = v2, mu * (1.0 - y2 * y2) * v2 - y2
        y3, v3 = y + 0.75 * h * a2, v + 0.75 * h * b2
        a3, b3 = v3, mu * (1.0 - y3 * y3) * v3 - y3
        new_y, new_v = y + h / 9.0 * (2.0 * a1 + 3.0 * a2 + 4.0 * a3), v + h / 9.0 * (2.0 * b1 + 3.0 * b2 + 4.0 * b3)
        a4, b4 = new_v, mu * (1.0 - new_y * new_y) * new_v - new_y
        off_y = h / 72.0 * (-5.0 * a1 + 6.0 * a2 + 8.0 * a3 - 9.0 * a4)
        off_v = h / 72.0 * (-5.0 * b1 + 6.0 * b2 + 8.0 * b3 - 9.0 * b4)
        off = m.sqrt(off_y * off_y + off_v * off_v) / TOLERANCE
        if off <= 1.0:
            y, v, time = new_y, new_v, time + h
        step = h * m.minimum(m.maximum(0.9 * (off + 1e-12) ** (-1.0 / 3.0), 0.25), 4.0)
    return y


def machine_integrate(mu, end):
    y, v, time, step = 2.0, 0.0, 0.0, 0.01
    while time < end:
        h = min(step, end - time)
        a1, b1 = v, mu * (1.0 - y * y) * v - y
        y2, v2 = y + 0.5 * h * a1, v + 0.5 * h * b1
        a2, b2 = v2, mu * (1.0 - y2 * y2) * v2 - y2
        y3, v3 = y + 0.75 * h * a2, v + 0.75 * h * b2
        a3, b3 = v3, mu * (1.0 - y3 * y3) * v3 - y3
        new_y, new_v = y + h / 9.0 * (2.0 * a1 + 3.0 * a2 + 4.0 * a3), v + h / 9.0 * (2.0 * b1 + 3.0 * b2 + 4.0 * b3)
        a4, b4 = new_v, mu * (1.0 - new_y * new_y) * new_v - new_y
        off_y = h / 72.0 * (-5.0 * a1 + 6.0 * a2 + 8.0 * a3 - 9.0 * a4)
        off_v = h / 72.0 * (-5.0 * b1 + 6.0 * b2 + 8.0 * b3 - 9.0 * b4)
        off = (off_y * off_y + off_v * off_v) ** 0.5 / TOLERANCE
        if off <= 1.0:
            y, v, time = new_y, new_v, time + h
        step = h * min(4.0, max(0.25, 0.9 * (off + 1e-12) ** (-1.0 / 3.0)))
    return y


C_INTEGRATE = """
double run(double mu, double end) {
    double y = 2, v = 0, time = 0, step = 0.01;
    while (time < end) {
        double h = fmin(step, end - time);
        double a1 = v, b1 = mu * (1 - y * y) * v - y;
        double y2 = y + 0.5 * h * a1, v2 = v + 0.5 * h * b1;
        double a2 = v2, b2 = mu * (1 - y2 * y2) * v2 - y2;
        double y3 = y + 0.75 * h * a2, v3 = v + 0.75 * h * b2;
        double a3 = v3, b3 = mu * (1 - y3 * y3) * v3 - y3;
        double new_y = y + h / 9 * (2 * a1 + 3 * a2 + 4 * a3), new_v = v + h / 9 * (2 * b1 + 3 * b2 + 4 * b3);
        double a4 = new_v, b4 = mu * (1 - new_y * new_y) * new_v - new_y;
        double off_y = h / 72 * (-5 * a1 + 6 * a2 + 8 * a3 - 9 * a4);
        double off_v = h / 72 * (-5 * b1 + 6 * b2 + 8 * b3 - 9 * b4);
        double off = sqrt(off_y * off_y + off_v * off_v) / 1e-6;
        if (off <= 1) { y = new_y; v = new_v; time += h; }
        step = h * fmin(4, fmax(0.25, 0.9 * pow(off + 1e-12, -1.0 / 3.0)));
    }
    return y;
}
"""


def trial(m: Any, where: Any, mu: Any, end: Any, state: Any) -> Any:
    """One step in the words of JAX, TensorFlow and torch: taken, rejected, or none at all if the end is reached."""
    y, v, time, step = state
    going = time < end
    h = where(going, m.minimum(step, end - time), step)
    a1, b1 = v, mu * (1.0 - y * y) * v - y
    y2, v2 = y + 0.5 * h * a1, v + 0.5 * h * b1
    a2, b2 = v2, mu * (1.0 - y2 * y2) * v2 - y2
    y3, v3 = y + 0.75 * h * a2, v + 0.75 * h * b2
    a3, b3 = v3, mu * (1.0 - y3 * y3) * v3 - y3
    new_y, new_v = y + h / 9.0 * (2.0 * a1 + 3.0 * a2 + 4.0 * a3), v + h / 9.0 * (2.0 * b1 + 3.0 * b2 + 4.0 * b3)
    a4, b4 = new_v, mu * (1.0 - new_y * new_y) * new_v - new_y
    off_y = h / 72.0 * (-5.0 * a1 + 6.0 * a2 + 8.0 * a3 - 9.0 * a4)
    off_v = h / 72.0 * (-5.0 * b1 + 6.0 * b2 + 8.0 * b3 - 9.0 * b4)
    off = m.sqrt(off_y * off_y + off_v * off_v) / TOLERANCE
    taken = going & (off <= 1.0)
    factor = 0.9 * (off + 1e-12) ** (-1.0 / 3.0)
    factor = where(factor < 0.25, 0.25 * m.ones_like(factor), where(factor > 4.0, 4.0 * m.ones_like(factor), factor))
    return (
        where(taken, new_y, y),
        where(taken, new_v, v),
        where(taken, time + h, time),
        where(going, h * factor, step),
    )


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def solve(mu, end):
        start = tuple(jnp.float64(value) for value in (2.0, 0.0, 0.0, 0.01))
        return jax.lax.while_loop(lambda s: s[2] < end, lambda s: trial(jnp, jnp.where, mu, end, s), start)[0]

    return solve


def make_jax_scan(jax: Any) -> Any:
    jnp = jax.numpy

    def solve(mu, end):
        start = tuple(jnp.float64(value) for value in (2.0, 0.0, 0.0, 0.01))
        step = lambda state, _: (trial(jnp, jnp.where, mu, end, state), None)  # noqa: E731
        return jax.lax.scan(step, start, length=TRIPS)[0][0]

    return solve


def tf_trips(tf: Any, mu: Any, end: Any) -> Any:
    state = tuple(tf.constant(value, tf.float64) for value in (2.0, 0.0, 0.0, 0.01))
    for _ in tf.range(TRIPS):
        state = trial(tf, tf.where, mu, end, state)
    return state[0]


def make_torch(torch: Any) -> Any:
    def torch_integrate(mu, end):
        state = tuple(torch.tensor(value, dtype=torch.float64) for value in (2.0, 0.0, 0.0, 0.01))
        while bool(state[2] < end):
            state = trial(torch, torch.where, mu, end, state)
        return state[0]

    return torch_integrate


CASES = [
    Case(
        "ode",
        "Van der Pol oscillator with adaptive steps, float64",
        {
            peers.AUTOGRAPH: build.ours(integrate, arguments),
            peers.C: native.c(C_INTEGRATE, arguments, lambda mu, end: np.float64(0)),
            peers.NUMBA: build.numba(machine_integrate, arguments),
            peers.PYTHON: build.python(machine_integrate, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(integrate, arguments),
            peers.TF_XLA: build.tensorflow(integrate, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        kind="scalar loop",
    ),
    Case(
        "ode-gradient",
        "Gradient of the oscillator's end in μ, float64",
        {
            peers.AUTOGRAPH: build.ours(build.gradient(integrate, 0), arguments),
            peers.JAX: build.jax(build.jax_gradient(make_jax_scan, 0), arguments),
            peers.TF: build.tensorflow(build.gradient(integrate, 0), arguments),
            peers.TF_XLA: build.tensorflow(build.gradient(tf_trips, 0), arguments, xla=True),
            peers.TORCH: build.torch(build.torch_gradient(make_torch, 0), arguments),
        },
        rtol=1e-3,  # the gradient goes through the choice of steps too, where rounding is amplified
        kind="loop gradient",
    ),
]
