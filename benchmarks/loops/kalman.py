"""A Kalman filter for position and speed over 500 noisy positions, float64: small matrices in a loop; the negative
log-likelihood, and its gradient in the process noise."""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case

NOISE = 0.25  # variance of a measurement
TRANSITION = ((1.0, 0.1), (0.0, 1.0))


def arguments(quick: bool) -> tuple[np.ndarray, np.float64]:
    count = 30 if quick else 500
    random = np.random.default_rng(0)
    speed = np.cumsum(random.normal(size=count) * 0.1)
    return np.cumsum(speed * 0.1) + random.normal(size=count) * 0.5, np.float64(0.05)


def likelihood(m: Any, measured: Any, drift: Any) -> Any:
    transition = m.constant(TRANSITION, m.float64)
    process = drift * m.eye(2, dtype=m.float64)
    state, covariance = m.zeros([2, 1], m.float64), m.eye(2, dtype=m.float64)
    loss = m.constant(0.0, m.float64)
    for i in m.range(m.shape(measured)[0]):
        state = m.linalg.matmul(transition, state)
        covariance = m.linalg.matmul(m.linalg.matmul(transition, covariance), transition, transpose_b=True) + process
        gap = measured[i] - state[0, 0]
        spread = covariance[0, 0] + NOISE
        gain = covariance[:, 0:1] / spread
        loss += m.math.log(spread) + gap * gap / spread
        state = state + gain * gap
        covariance = covariance - m.linalg.matmul(gain, covariance[0:1, :])
    return 0.5 * loss


def machine_likelihood(measured, drift):
    """With the products written out, as by hand."""
    x, v, a, b, d = 0.0, 0.0, 1.0, 0.0, 1.0
    loss = 0.0
    for i in range(len(measured)):
        x = x + 0.1 * v
        a, b, d = a + 0.2 * b + 0.01 * d + drift, b + 0.1 * d, d + drift
        gap, spread = measured[i] - x, a + NOISE
        first, second = a / spread, b / spread
        loss += np.log(spread) + gap * gap / spread
        x, v = x + first * gap, v + second * gap
        a, b, d = a - first * a, b - first * b, d - second * b
    return 0.5 * loss


C_LIKELIHOOD = """
double run(const double *measured, double drift) {
    double x = 0, v = 0, a = 1, b = 0, d = 1, loss = 0;
    for (int i = 0; i < COUNT; i++) {
        x += 0.1 * v;
        a += 0.2 * b + 0.01 * d + drift;
        b += 0.1 * d;
        d += drift;
        double gap = measured[i] - x, spread = a + 0.25, first = a / spread, second = b / spread;
        loss += log(spread) + gap * gap / spread;
        x += first * gap;
        v += second * gap;
        a -= first * a;
        d -= second * b;
        b -= first * b;
    }
    return 0.5 * loss;
}
"""


def in_c(quick: bool) -> Any:
    text = f"#define COUNT {arguments(quick)[0].size}\n{C_LIKELIHOOD}"
    return native.c(text, arguments, lambda measured, drift: np.float64(0))(quick)


def numpy_likelihood(measured, drift):
    transition, process = np.array(TRANSITION), drift * np.eye(2)
    state, covariance, loss = np.zeros(2), np.eye(2), 0.0
    for value in measured:
        state = transition @ state
        covariance = transition @ covariance @ transition.T + process
        gap, spread = value - state[0], covariance[0, 0] + NOISE
        gain = covariance[:, 0] / spread
        loss += np.log(spread) + gap * gap / spread
        state = state + gain * gap
        covariance = covariance - np.outer(gain, covariance[0])
    return 0.5 * loss


def _update(m: Any, transition: Any, process: Any, state: Any, covariance: Any, value: Any) -> Any:
    """A step for JAX and torch: state, covariance and what it adds to the loss."""
    state = transition @ state
    covariance = transition @ covariance @ transition.T + process
    gap, spread = value - state[0], covariance[0, 0] + NOISE
    gain = covariance[:, 0] / spread
    loss = m.log(spread) + gap * gap / spread
    return state + gain * gap, covariance - m.outer(gain, covariance[0]), loss


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_likelihood(measured, drift):
        transition, process = jnp.array(TRANSITION), drift * jnp.eye(2)

        def step(carry, value):
            *carry, loss = _update(jnp, transition, process, *carry, value)
            return tuple(carry), loss

        return 0.5 * jnp.sum(jax.lax.scan(step, (jnp.zeros(2), jnp.eye(2)), measured)[1])

    return jax_likelihood


def make_torch(torch: Any) -> Any:
    def torch_likelihood(measured, drift):
        transition = torch.tensor(TRANSITION, dtype=torch.float64)
        eye = torch.eye(2, dtype=torch.float64)
        state, covariance, loss = torch.zeros(2, dtype=torch.float64), eye, 0.0
        for value in measured:
            state, covariance, part = _update(torch, transition, drift * eye, state, covariance, value)
            loss = loss + part
        return 0.5 * loss

    return torch_likelihood


CASES = [
    Case(
        "kalman",
        "Kalman filter, 500 measurements, float64",
        {
            peers.AUTOGRAPH: build.ours(likelihood, arguments),
            peers.C: in_c,
            peers.NUMBA: build.numba(machine_likelihood, arguments),
            peers.NUMPY: build.plain(numpy_likelihood, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(likelihood, arguments),
            peers.TF_XLA: build.tensorflow(likelihood, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        kind="array loop",
    ),
    Case(
        "kalman-gradient",
        "Gradient of the Kalman filter's likelihood in the process noise, float64",
        {
            peers.AUTOGRAPH: build.ours(build.gradient(likelihood, 1), arguments),
            peers.JAX: build.jax(build.jax_gradient(make_jax, 1), arguments),
            peers.TF: build.tensorflow(build.gradient(likelihood, 1), arguments),
            peers.TF_XLA: build.tensorflow(build.gradient(likelihood, 1), arguments, xla=True),
            peers.TORCH: build.torch(build.torch_gradient(make_torch, 1), arguments),
        },
        kind="loop gradient",
    ),
]
