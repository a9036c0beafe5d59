"""How many primes are below 5,000, by trial division, int32: a loop that `break` leaves within a loop."""

from typing import Any

import numpy as np

from benchmarks import build, native, peers
from benchmarks.harness import Case


def arguments(quick: bool) -> tuple[np.int32]:
    return (np.int32(100 if quick else 5000),)


def primes(m: Any, limit: Any) -> Any:
    count = m.constant(0)
    for n in m.range(2, limit):
        is_prime, divisor = m.constant(True), m.constant(2)
        while divisor * divisor <= n:
            if n % divisor == 0:
                is_prime = m.constant(False)
                break
            divisor += 1
        if is_prime:
            count += 1
    return count


def machine_primes(limit):
    count = np.int32(0)
    for n in range(np.int32(2), limit):
        n = np.int32(n)
        is_prime, divisor = True, np.int32(2)
        while np.int32(divisor * divisor) <= n:
            if np.int32(n % divisor) == 0:
                is_prime = False
                break
            divisor = np.int32(divisor + 1)
        if is_prime:
            count = np.int32(count + 1)
    return count


def python_primes(limit):
    count = 0
    for n in range(2, limit):
        divisor = 2
        while divisor * divisor <= n:
            if n % divisor == 0:
                break
            divisor += 1
        else:
            count += 1
    return count


C_PRIMES = """
int32_t run(int32_t limit) {
    int32_t count = 0;
    for (int32_t n = 2; n < limit; n++) {
        int prime = 1;
        for (int32_t divisor = 2; divisor * divisor <= n; divisor++)
            if (n % divisor == 0) { prime = 0; break; }
        count += prime;
    }
    return count;
}
"""


def make_jax(jax: Any) -> Any:
    lax = jax.lax

    def jax_primes(limit):
        def count(n, found):
            test = lambda d: (d * d <= n) & (n % d != 0)  # noqa: E731
            divisor = lax.while_loop(test, lambda d: d + 1, jax.numpy.int32(2))
            return found + (divisor * divisor > n)

        return lax.fori_loop(jax.numpy.int32(2), limit, count, jax.numpy.int32(0))

    return jax_primes


CASES = [
    Case(
        "trial-division",
        "Primes below 5,000 by trial division, int32",
        {
            peers.AUTOGRAPH: build.ours(primes, arguments),
            peers.C: native.c(C_PRIMES, arguments, lambda limit: np.int32(0)),
            peers.NUMBA: build.numba(machine_primes, arguments),
            peers.PYTHON: build.python(python_primes, arguments),
            peers.JAX: build.jax(make_jax, arguments),
            peers.TF: build.tensorflow(primes, arguments),
            peers.TF_XLA: build.tensorflow(primes, arguments, xla=True),
        },
        kind="array loop",
    )
]
