"""A simulation over 10,000 sets of parameters, as tasks of Dask: how large an epidemic gets, and when it is over.

Each set of parameters runs until hardly anybody is infected any more, which takes more or fewer steps; the loop is a
`while` over all sets of a block, one kernel. `simulate` is an `@ag.function`; Dask sends it to its workers, and builds
the result's shape and dtype from our trace of it, before anything is computed.

    python -m examples.epidemic_sweep        needs `pip install '.[dask]'`
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import autograph as ag


@ag.function(jit_compile=True)
def simulate(parameters):
    """For rows of (transmissions, recoveries) a day: the share that falls ill, the peak, and days until it is over."""
    beta, gamma = parameters[:, 0], parameters[:, 1]
    infected = ag.fill(ag.shape(beta), ag.constant(1e-4, beta.dtype))
    susceptible = 1.0 - infected
    peak = infected
    days = ag.zeros_like(beta)
    step = 0.25
    while ag.reduce_any(infected > 1e-5):
        goes_on = infected > 1e-5
        caught = step * beta * susceptible * infected
        changed = infected + caught - step * gamma * infected
        susceptible = ag.where(goes_on, susceptible - caught, susceptible)
        infected = ag.where(goes_on, changed, infected)
        peak = ag.maximum(peak, infected)
        days = ag.where(goes_on, days + step, days)
    return ag.stack([1.0 - susceptible, peak, days], axis=1)


def parameters(count: int) -> np.ndarray:
    """Random (transmissions, recoveries) a day, float64 of shape (count, 2)."""
    rng = np.random.default_rng(0)
    return np.stack([rng.uniform(0.1, 0.6, count), rng.uniform(0.05, 0.3, count)], axis=1)


def sweep(count: int, block: int) -> Any:
    """The Dask array of the results for so many sets of parameters, in blocks."""
    import dask.array as da

    return ag.distribute.map_blocks(simulate, da.from_array(parameters(count), chunks=(block, 2)))


def main() -> int:
    """Runs the sweep on two local workers."""
    from dask.distributed import Client, LocalCluster

    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1")
    with cluster, Client(cluster):
        results = sweep(10_000, 1_000)
        print("to be computed:", results)
        ill, peak, days = results.compute().T
    print(f"ill in the end: {ill.mean():.1%} on average, {(ill > 0.5).mean():.1%} of the sets more than half")
    print(f"highest peak: {peak.max():.1%}; longest: {days.max():.0f} days")
    return 0


if __name__ == "__main__":
    sys.exit(main())
