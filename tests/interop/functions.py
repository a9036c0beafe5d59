"""Functions that the tests call from several libraries."""

import autograph as ag


def cube_root(a):
    """A loop whose trip count depends on the data."""
    x = a
    while ag.reduce_any(ag.abs(x * x * x - a) > 1e-12 * a):
        x = x - (x * x * x - a) / (3.0 * x * x)
    return x
