"""Cross-validation and an ensemble as tasks of Ray: models that are trained side by side on parts of the data.

The data lie in Ray's shared memory once; workers take them without a copy. The penalty is chosen by five-fold
cross-validation, then members of an ensemble are trained on samples with replacement; how far they disagree says how
sure the prediction is.

    python -m examples.ensemble        needs `pip install '.[ray]'`
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import autograph as ag

FOLDS = 5


def data(count: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Points in [-2, 2] and values of a noisy curve, float64."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-2.0, 2.0, count)
    return x, np.sin(3.0 * x) * x + 0.2 * rng.normal(size=count)


def features(x: Any) -> Any:
    """Cosines and sines of six frequencies, shape (points, 12)."""
    angles = ag.expand_dims(x, 1) * ag.cast(ag.range(1, 7), x.dtype)
    return ag.concat([ag.cos(angles), ag.sin(angles)], axis=1)


@ag.function(jit_compile=True)
def fit(x, y, rows, penalty):
    """Weights of a ridge regression on some rows, by gradient descent until the gradient is small."""
    inputs, targets = features(ag.gather(x, rows)), ag.gather(y, rows)
    weights = ag.zeros([12], x.dtype)
    size = ag.constant(1.0, x.dtype)
    while size > 1e-6:
        errors = ag.linalg.matvec(inputs, weights) - targets
        gradient = ag.linalg.matvec(inputs, errors, transpose_a=True) / ag.cast(ag.size(rows), x.dtype)
        gradient += penalty * weights
        weights -= 0.25 * gradient
        size = ag.reduce_max(ag.abs(gradient))
    return weights


@ag.function
def error_on(x, y, rows, weights):
    """The mean squared error on some rows."""
    return ag.reduce_mean((ag.linalg.matvec(features(ag.gather(x, rows)), weights) - ag.gather(y, rows)) ** 2)


def fold_error(x, y, fold, penalty):
    """The error on one fold of a model that is fitted to the others."""
    order = np.random.default_rng(1).permutation(len(x))
    held = order[fold::FOLDS]
    others = np.setdiff1d(order, held)
    return error_on(x, y, held, fit(x, y, others, penalty))


def member(x, y, number):
    """The weights of a member of the ensemble."""
    rows = np.random.default_rng(number).integers(0, len(x), len(x))
    return fit(x, y, rows, 1e-3)


def run(call: Callable[..., Any], gather: Callable[[list], list], x: Any, y: Any, members: int) -> tuple:
    """The error for each penalty, and the members' predictions at 0.5. call: starts a task; gather: waits for them."""
    penalties = [1e-4, 1e-2, 1.0]
    tasks = [call(fold_error, x, y, fold, penalty) for penalty in penalties for fold in range(FOLDS)]
    errors = np.array(gather(tasks)).reshape(len(penalties), FOLDS).mean(axis=1)
    weights = np.array(gather([call(member, x, y, number) for number in range(members)]))
    at = ag.constant([0.5], ag.float64)
    return dict(zip(penalties, errors)), (features(at).numpy() @ weights.T)[0]


def main() -> int:
    """Runs it on two local workers."""
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", object_store_memory=100_000_000)
    x, y = (ray.put(each) for each in data())
    errors, predictions = run(
        lambda function, *args: ray.remote(ag.distribute.task(function)).remote(*args), ray.get, x, y, members=20
    )
    ray.shutdown()
    for penalty, error in errors.items():
        print(f"penalty {penalty:g}: mean squared error {error:.3f}")
    print(f"at 0.5: {predictions.mean():.2f} ± {predictions.std():.2f}, without noise {np.sin(1.5) * 0.5:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
