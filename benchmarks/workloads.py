"""The list of workloads, in the order of the page."""

from benchmarks import (
    call,
    collatz,
    conversion,
    edit_distance,
    elementwise,
    gcd,
    kalman,
    life,
    logistic,
    loop_gradients,
    lstm,
    mandelbrot,
    mlp,
    newton,
    ode,
    reductions,
    rnn,
    sieve,
    tracing,
)
from benchmarks.harness import Case

_MODULES = (
    logistic, collatz, gcd, mandelbrot, newton, ode, edit_distance, sieve, life, kalman,
    elementwise, reductions, rnn, lstm, mlp, call, loop_gradients, tracing, conversion,
)  # fmt: skip


def cases() -> dict[str, Case]:
    """All of them by name."""
    return {case.name: case for module in _MODULES for case in module.CASES}
