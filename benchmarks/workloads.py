"""The list of workloads, in the order of the page."""

from benchmarks import loop_gradients
from benchmarks.arrays import (
    conjugate_gradient,
    elementwise,
    k_means,
    n_body,
    products,
    reductions,
    sinkhorn,
    spectral_norm,
)
from benchmarks.harness import Case
from benchmarks.loops import (
    collatz,
    edit_distance,
    gcd,
    heat,
    insertion_sort,
    kalman,
    life,
    logistic,
    mandelbrot,
    newton,
    ode,
    sieve,
    trial_division,
    viterbi,
)
from benchmarks.networks import attention, convolution, gru, lstm, mlp, rnn
from benchmarks.overheads import call, conversion, tracing

_MODULES = (
    logistic, collatz, gcd, mandelbrot, newton, ode, edit_distance, sieve, life, kalman,
    viterbi, insertion_sort, heat, trial_division,
    elementwise, reductions, conjugate_gradient, sinkhorn, spectral_norm, products, k_means, n_body,
    rnn, lstm, gru, attention, convolution, mlp, call, loop_gradients, tracing, conversion,
)  # fmt: skip


def cases() -> dict[str, Case]:
    """All of them by name."""
    return {case.name: case for module in _MODULES for case in module.CASES}
