"""`ag.experimental.numpy.random`: random numbers under the names of `numpy.random`."""

from runtime.numpy_random import (
    poisson,
    rand,
    randint,
    randn,
    random,
    seed,
    standard_normal,
    uniform,
)

__all__ = ["poisson", "rand", "randint", "randn", "random", "seed", "standard_normal", "uniform"]
