"""Viterbi's most likely path through 500 observations and 16 states, float32: a maximum and its position for each state
in each step, and a way back through the positions."""

from typing import Any

import numpy as np

from benchmarks import build, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of transitions [states, states], and of the likelihood of each observation [steps, states]."""
    steps, states = (12, 4) if quick else (500, 16)
    random = np.random.default_rng(0)
    return random.normal(size=(states, states)).astype(np.float32), random.normal(size=(steps, states)).astype(
        np.float32
    )


def path(m: Any, transitions: Any, likelihoods: Any) -> Any:
    steps = m.shape(likelihoods)[0]
    score = likelihoods[0]
    pointers = m.TensorArray(m.int32, size=steps, element_shape=[likelihoods.shape[1]], clear_after_read=False)
    for i in m.range(1, steps):
        through = score[:, None] + transitions
        pointers = pointers.write(i, m.argmax(through, axis=0, output_type=m.int32))
        score = m.reduce_max(through, axis=0) + likelihoods[i]
    state = m.argmax(score, output_type=m.int32)
    states = m.TensorArray(m.int32, size=steps, element_shape=[])
    for k in m.range(steps):
        i = steps - 1 - k
        states = states.write(i, state)
        if i > 0:
            state = pointers.read(i)[state]
    return states.stack()


def machine_path(transitions, likelihoods):
    steps, count = likelihoods.shape
    score, following = likelihoods[0].copy(), np.zeros(count, np.float32)
    pointers = np.zeros((steps, count), np.int32)
    for i in range(1, steps):
        for to in range(count):
            best, at = score[0] + transitions[0, to], 0
            for start in range(1, count):
                through = score[start] + transitions[start, to]
                if through > best:
                    best, at = through, start
            following[to] = best + likelihoods[i, to]
            pointers[i, to] = at
        score, following = following, score
    states = np.zeros(steps, np.int32)
    state = np.argmax(score)
    for i in range(steps - 1, -1, -1):
        states[i] = state
        state = pointers[i, state]
    return states


def make_jax(jax: Any) -> Any:
    jnp, lax = jax.numpy, jax.lax

    def jax_path(transitions, likelihoods):
        def step(score, likelihood):
            through = score[:, None] + transitions
            return jnp.max(through, axis=0) + likelihood, jnp.argmax(through, axis=0).astype(jnp.int32)

        def back(state, pointers):
            before = pointers[state]
            return before, before

        score, pointers = lax.scan(step, likelihoods[0], likelihoods[1:])
        last = jnp.argmax(score).astype(jnp.int32)
        _, states = lax.scan(back, last, pointers, reverse=True)
        return jnp.concatenate([states, last[None]])

    return jax_path


def make_torch(torch: Any) -> Any:
    def torch_path(transitions, likelihoods):
        score, pointers = likelihoods[0], []
        for likelihood in likelihoods[1:]:
            best, at = torch.max(score[:, None] + transitions, dim=0)
            score = best + likelihood
            pointers.append(at)
        states = [torch.argmax(score)]
        for at in reversed(pointers):
            states.append(at[states[-1]])
        return torch.stack(states[::-1]).int()

    return torch_path


CASES = [
    Case(
        "viterbi",
        "Viterbi's path, 500 observations, 16 states, float32",
        {
            peers.AUTOGRAPH: build.ours(path, arguments),
            peers.NUMBA: build.numba(machine_path, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(path, arguments),
            peers.TF_XLA: build.tensorflow(path, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        kind="array loop",
    )
]
