"""Ten steps of 300 bodies that attract each other, all pairs in every step, float32."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case

STEPS, STEP, SOFTENING = 10, 0.01, 0.1


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    count = 12 if quick else 300
    random = np.random.default_rng(0)
    place, speed = random.normal(size=(2, count, 3)).astype(np.float32)
    return place, speed, (random.uniform(0.5, 1.5, count) / count).astype(np.float32)


def move(m: Any, place: Any, speed: Any, mass: Any) -> Any:
    for _ in m.range(STEPS):
        gaps = place[None, :, :] - place[:, None, :]
        squares = m.reduce_sum(gaps * gaps, axis=2) + SOFTENING
        pull = mass[None, :] / (squares * m.sqrt(squares))
        speed = speed + STEP * m.reduce_sum(gaps * pull[:, :, None], axis=1)
        place = place + STEP * speed
    return place


def machine_move(place, speed, mass):
    place, speed = place.copy(), speed.copy()
    count, softening, step = len(mass), np.float32(SOFTENING), np.float32(STEP)
    for _ in range(STEPS):
        for i in range(count):
            x, y, z = place[i, 0], place[i, 1], place[i, 2]
            fx = fy = fz = np.float32(0.0)
            for j in range(count):
                dx, dy, dz = place[j, 0] - x, place[j, 1] - y, place[j, 2] - z
                square = dx * dx + dy * dy + dz * dz + softening
                pull = mass[j] / (square * np.sqrt(square))
                fx += dx * pull
                fy += dy * pull
                fz += dz * pull
            speed[i, 0] += step * fx
            speed[i, 1] += step * fy
            speed[i, 2] += step * fz
        place += step * speed
    return place


def make_jax(jax: Any) -> Any:
    jnp = jax.numpy

    def jax_move(place, speed, mass):
        def step(_, carry):
            place, speed = carry
            gaps = place[None, :, :] - place[:, None, :]
            squares = jnp.sum(gaps * gaps, axis=2) + SOFTENING
            pull = mass[None, :] / (squares * jnp.sqrt(squares))
            speed = speed + STEP * jnp.sum(gaps * pull[:, :, None], axis=1)
            return place + STEP * speed, speed

        return jax.lax.fori_loop(0, STEPS, step, (place, speed))[0]

    return jax_move


def make_torch(torch: Any) -> Any:
    def torch_move(place, speed, mass):
        for _ in range(STEPS):
            gaps = place[None, :, :] - place[:, None, :]
            squares = torch.sum(gaps * gaps, dim=2) + SOFTENING
            pull = mass[None, :] / (squares * torch.sqrt(squares))
            speed = speed + STEP * torch.sum(gaps * pull[:, :, None], dim=1)
            place = place + STEP * speed
        return place

    return torch_move


CASES = [
    Case(
        "n-body",
        "Ten steps of 300 bodies, all pairs, float32",
        {
            peers.AUTOGRAPH: build.ours(move, arguments),
            peers.NUMBA: build.numba(machine_move, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(move, arguments),
            peers.TF_XLA: build.tensorflow(move, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=1e-4,
        kind="array program",
    )
]
