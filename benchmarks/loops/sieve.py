"""The primes below 100,000 by the sieve of Eratosthenes: elements set one by one in an array.

tf.function without XLA, NumPy and torch strike out all multiples of a prime at once.
"""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case


def limit(quick: bool) -> int:
    return 1_000 if quick else 100_000


def arguments(quick: bool) -> tuple[np.ndarray]:
    return (np.ones(limit(quick), np.int32),)


def primes(m: Any, given: Any) -> Any:
    """How many primes are below the length of `given`, which is all 1."""
    n = m.shape(given)[0]
    flags = m.TensorArray(m.int32, size=n, clear_after_read=False).unstack(given)
    count, p = m.constant(0), m.constant(2)
    while p < n:
        if flags.read(p) == 1:
            count += 1
            multiple = p + p
            while multiple < n:
                flags = flags.write(multiple, 0)
                multiple += p
        p += 1
    return count


def machine_primes(flags):
    flags = flags.copy()
    count = 0
    for p in range(2, flags.shape[0]):
        if flags[p] == 1:
            count += 1
            for multiple in range(p + p, flags.shape[0], p):
                flags[multiple] = 0
    return count


def python_primes(flags):
    flags = flags[:]
    count = 0
    for p in range(2, len(flags)):
        if flags[p] == 1:
            count += 1
            flags[2 * p :: p] = [0] * len(range(2 * p, len(flags), p))
    return count


C_PRIMES = """
int32_t run(const int32_t *given) {
    int32_t *flags = malloc(COUNT * sizeof(int32_t)), count = 0;
    memcpy(flags, given, COUNT * sizeof(int32_t));
    for (int32_t p = 2; p < COUNT; p++)
        if (flags[p]) {
            count++;
            for (int32_t multiple = p + p; multiple < COUNT; multiple += p) flags[multiple] = 0;
        }
    free(flags);
    return count;
}
"""


def in_c(quick: bool) -> Any:
    return native.c(f"#define COUNT {limit(quick)}\n{C_PRIMES}", arguments, lambda flags: np.int32(0))(quick)


def numpy_primes(flags):
    flags = flags.copy()
    for p in range(2, int(len(flags) ** 0.5) + 1):
        if flags[p]:
            flags[p * p :: p] = 0
    return flags[2:].sum()


def make_jax(jax: Any) -> Any:
    lax, jnp = jax.lax, jax.numpy

    def jax_primes(flags):
        n = flags.shape[0]

        def strike(p, flags):
            return lax.while_loop(
                lambda state: state[0] < n,
                lambda state: (state[0] + p, state[1].at[state[0]].set(0)),
                (p + p, flags),
            )[1]

        def step(p, state):
            count, flags = state
            prime = flags[p] == 1
            return count + prime, lax.cond(prime, lambda: strike(p, flags), lambda: flags)

        return lax.fori_loop(jnp.int32(2), jnp.int32(n), step, (jnp.int32(0), flags))[0]

    return jax_primes


def tf_primes(tf: Any, flags: Any) -> Any:
    n = tf.shape(flags)[0]
    numbers = tf.range(n)
    p = tf.constant(2)
    while p * p < n:
        if flags[p] == 1:
            flags = tf.where(tf.logical_and(numbers >= p * p, numbers % p == 0), 0, flags)
        p += 1
    return tf.reduce_sum(flags[2:])


def make_torch(torch: Any) -> Any:
    def torch_primes(flags):
        flags = flags.clone()
        for p in range(2, int(len(flags) ** 0.5) + 1):
            if flags[p]:
                flags[p * p :: p] = 0
        return flags[2:].sum(dtype=torch.int32)

    return torch_primes


CASES = [
    Case(
        "sieve",
        "Sieve of Eratosthenes to 100,000",
        {
            peers.AUTOGRAPH: build.ours(primes, arguments),
            peers.C: in_c,
            peers.NUMBA: build.numba(machine_primes, arguments),
            peers.PYTHON: build.python(python_primes, arguments),
            peers.NUMPY: build.plain(numpy_primes, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(tf_primes, arguments),
            peers.TF_XLA: build.tensorflow(tf_primes, arguments, xla=True),
            peers.TORCH: build.torch(make_torch, arguments),
        },
        rtol=0.0,
        kind="scalar loop",
    )
]
