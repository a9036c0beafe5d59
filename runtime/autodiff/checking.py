"""Checks gradients against finite differences, for users' tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from runtime.autodiff.tape import GradientTape
from runtime.ops.convert import convert_to_tensor


def compute_gradient(f: Callable[..., Any], x: Sequence[Any], delta: float | None = None) -> tuple[list, list]:
    """(theoretical, numerical) Jacobians of `f` at `x`, as `tf.test.compute_gradient`.

    f: takes the tensors of `x`, gives one tensor. delta: step of the central differences; default 1/1024.
    Each Jacobian is an array of shape (elements of f(*x), elements of the argument).

    Raises TypeError when `x` isn't a list or tuple.
    """
    if not isinstance(x, (list, tuple)):
        raise TypeError("`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`)")
    points = [convert_to_tensor(value) for value in x]
    step = 1.0 / 1024 if delta is None else delta
    return _theoretical(f, points), [_numerical(f, points, i, step) for i in range(len(points))]


def _theoretical(f: Callable[..., Any], points: list[Any]) -> list[Any]:
    with GradientTape() as tape:
        tape.watch(points)
        y = f(*points)
    found = tape.jacobian(y, points, unconnected_gradients="zero")
    rows = int(np.prod(y.shape.as_list(), dtype=np.int64))
    return [np.reshape(j.numpy(), (rows, -1)) for j in found]


def _numerical(f: Callable[..., Any], points: list[Any], index: int, step: float) -> Any:
    base = np.array(points[index].numpy())
    columns = []
    for position in np.ndindex(base.shape):
        sides = []
        for sign in (step, -step):
            moved = base.copy()
            moved[position] += sign
            arguments = [*points[:index], convert_to_tensor(moved), *points[index + 1 :]]
            sides.append(np.asarray(f(*arguments).numpy(), np.float64).ravel())
        columns.append((sides[0] - sides[1]) / (2 * step))
    rows = np.asarray(f(*points).numpy()).size
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))


def max_error(grad1: Sequence[Any], grad2: Sequence[Any]) -> float:
    """The largest difference between two results of `compute_gradient`."""
    return max((float(np.abs(a - b).max()) for a, b in zip(grad1, grad2) if a.size), default=0.0)


@dataclass
class GradientReport:
    """What `check_gradients` found: the largest error, relative to the largest entry, per order and argument."""

    errors: dict[tuple[int, int], float]
    tolerance: float

    @property
    def passed(self) -> bool:
        return all(e <= self.tolerance for e in self.errors.values())

    def __str__(self) -> str:
        lines = [
            f"order {order}, argument {argument}: {'ok' if e <= self.tolerance else 'WRONG'}, error {e:.2e}"
            for (order, argument), e in sorted(self.errors.items())
        ]
        return "\n".join(lines)


def check_gradients(
    f: Callable[..., Any], args: Sequence[Any], order: int = 2, tolerance: float | None = None
) -> GradientReport:
    """Compares the gradients of `f` at `args` with central differences, up to `order`; raises if they differ.

    f: gives one tensor (of any shape; its elements are summed with fixed weights for the higher orders).
    args: arrays or tensors; use float64, float32 leaves few digits to the differences.
    tolerance: relative; default 1e-5 for float64, 1e-2 otherwise.

    Raises AssertionError with the report when a gradient is wrong. Gives the report otherwise.
    """
    points = [convert_to_tensor(a) for a in args]
    exact = all(p.dtype.size == 8 for p in points)
    report = GradientReport({}, tolerance if tolerance is not None else (1e-5 if exact else 1e-2))
    step = 1e-5 if exact else 1e-2
    function = f
    for level in range(1, order + 1):
        theoretical = _theoretical(function, points)
        for index in range(len(points)):
            numerical = _numerical(function, points, index, step)
            scale = max(1.0, float(np.abs(numerical).max(initial=0.0)))
            report.errors[level, index] = float(np.abs(theoretical[index] - numerical).max(initial=0.0)) / scale
        function = _slope(function)
    if not report.passed:
        raise AssertionError(f"the gradients of {getattr(f, '__name__', f)!r} are wrong:\n{report}")
    return report


def _slope(f: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a weighted sum of f's elements by its first argument."""

    def slope(*points: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(points[0])
            y = f(*points)
            weights = np.cos(np.arange(int(np.prod(y.shape.as_list(), dtype=np.int64)))).reshape(y.shape.as_list())
            weighted = y * convert_to_tensor(weights.astype(y.dtype.as_numpy_dtype))
        return tape.gradient(weighted, points[0], unconnected_gradients="zero")

    return slope
