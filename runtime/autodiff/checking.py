"""Checks gradients against finite differences, for users' tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from runtime import nest
from runtime.autodiff.tape import GradientTape
from runtime.dataclass import dataclass
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import call


def compute_gradient(f: Callable[..., Any], x: Sequence[Any], delta: float | None = None) -> tuple[list, list]:
    """(theoretical, numerical) Jacobians of `f` at `x`, as `tf.test.compute_gradient`.

    f: takes the tensors of `x`, returns one tensor. delta: the step of the central differences; default 1/1024.
    Each Jacobian is an array of shape (elements of f(*x), elements of the argument).

    Raises TypeError when `x` isn't a list or tuple.
    """
    if not isinstance(x, (list, tuple)):
        raise TypeError("`x` must be a list or tuple of values convertible to a Tensor (arguments to `f`)")
    points = [convert_to_tensor(value) for value in x]
    step = 1.0 / 1024 if delta is None else delta
    return _theoretical(f, points), [_numerical(f, points, i, step) for i in range(len(points))]


def _theoretical(
    f: Callable[..., Any], points: list[Any], filled: Callable[..., Sequence[Any]] = lambda *points: points
) -> list[Any]:
    """Jacobians by `points`. filled: makes f's arguments from them."""
    with GradientTape() as tape:
        tape.watch(points)
        y = f(*filled(*points))
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
    return max((float(np.abs(a - b).max()) for a, b in zip(grad1, grad2) if np.size(a)), default=0.0)


@dataclass(frozen=True)
class Worst:
    """Where a derivative and the differences differ most: (name of what is differentiated, element), element of the
    argument, both numbers, and whether the differences settle when their step gets smaller."""

    target: str
    element: tuple[int, ...]
    derivative: float
    difference: float
    settled: bool

    def __str__(self) -> str:
        text = f"d {self.target} / d element {list(self.element)} is {self.derivative:.6g}"
        text += f", by differences {self.difference:.6g}"
        return (
            text
            if self.settled
            else f"{text} (the differences don't converge with smaller steps; there may be a kink or jump nearby)"
        )


@dataclass
class GradientReport:
    """The result of `check_gradients`: the largest error, relative to the largest entry, per order and argument; and
    for
    those above the tolerance the place where it is largest."""

    errors: dict[tuple[int, int], float]
    tolerance: float
    worst: dict[tuple[int, int], Worst] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return all(e <= self.tolerance for e in self.errors.values())

    def __str__(self) -> str:
        lines = []
        for key, error in sorted(self.errors.items()):
            judged = "ok" if error <= self.tolerance else "WRONG"
            lines.append(f"order {key[0]}, argument {key[1]}: {judged}, error {error:.2e}")
            if key in self.worst:
                lines.append(f"    {self.worst[key]}")
        return "\n".join(lines)


def check_gradients(
    f: Callable[..., Any], args: Sequence[Any], order: int = 2, tolerance: float | None = None
) -> GradientReport:
    """Compares the gradients of `f` at `args` with central differences, up to `order`; raises if they differ.

    f: returns a tensor or a structure of tensors (of any shapes; for higher orders their elements are summed with fixed
    weights).
    args: a list of arrays or tensors; use float64, because float32 leaves few digits to the differences. Arguments that
    aren't floating-point are passed on, but not differentiated.
    tolerance: relative; default 1e-5 for float64, 1e-2 otherwise.

    Raises AssertionError with the report when a gradient is wrong, TypeError when `args` isn't a list or tuple,
    ValueError if no argument is floating-point. Returns the report otherwise.
    """
    if not isinstance(args, (list, tuple)):
        raise TypeError(f"`args` must be a list or tuple of the arguments of `f`, not {type(args).__name__}")
    points = [convert_to_tensor(a) for a in args]
    active = [i for i, p in enumerate(points) if p.dtype.is_floating]
    if not active:
        raise ValueError("check_gradients needs an argument of floating-point numbers to differentiate by")
    exact = all(points[i].dtype.size == 8 for i in active)
    report = GradientReport({}, tolerance if tolerance is not None else (1e-5 if exact else 1e-2))
    step = 1e-5 if exact else 1e-2
    function = _flat(f)
    names: Callable[[int], str] = _name_of_result(f, points)
    for level in range(1, order + 1):
        _compare(function, points, active, step, report, level, names)
        function = _slope(function, active)
        names = _name_of_slope([points[i].shape.as_list() for i in active], active)
    if not report.passed:
        raise AssertionError(f"the gradients of {getattr(f, '__name__', f)!r} are wrong:\n{report}")
    return report


def _compare(
    function: Callable[..., Any],
    points: list[Any],
    active: list[int],
    step: float,
    report: GradientReport,
    level: int,
    names: Callable[[int], str],
) -> None:
    """Adds one order to the report."""
    theoretical = _theoretical(function, [points[i] for i in active], lambda *own: _filled(points, active, own))
    for index, found in zip(active, theoretical):
        numerical = _numerical(function, points, index, step)
        scale = max(1.0, float(np.abs(numerical).max(initial=0.0)))
        gaps = np.abs(found - numerical)
        error = float(gaps.max(initial=0.0)) / scale
        report.errors[level, index] = error
        if error <= report.tolerance:
            continue
        row, column = np.unravel_index(int(np.argmax(np.where(np.isnan(gaps), np.inf, gaps))), gaps.shape)
        again = _numerical(function, points, index, step / 8)[row, column]
        settled = bool(abs(again - numerical[row, column]) <= 1e-2 * max(1.0, abs(again)))
        element = tuple(int(i) for i in np.unravel_index(int(column), points[index].shape.as_list()))
        numbers = float(found[row, column]), float(numerical[row, column])
        report.worst[level, index] = Worst(names(int(row)), element, *numbers, settled)


def _filled(points: list[Any], active: list[int], own: Sequence[Any]) -> list[Any]:
    every = list(points)
    for index, point in zip(active, own):
        every[index] = point
    return every


def _flat(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, its floating-point results as one vector."""

    def flat(*points: Any) -> Any:
        results = [convert_to_tensor(y) for y in nest.flatten(f(*points))]
        parts = [call("reshape", y, shape=(-1,)) for y in results if y.dtype.is_floating]
        if not parts:
            raise ValueError("check_gradients needs a floating-point result to differentiate")
        return parts[0] if len(parts) == 1 else call("concat", *parts, axis=0)

    return flat


def _slope(f: Callable[..., Any], active: list[int]) -> Callable[..., Any]:
    """The gradients of a weighted sum of f's elements by the active arguments, as one vector."""

    def slope(*points: Any) -> Any:
        own = [points[i] for i in active]
        with GradientTape() as tape:
            tape.watch(own)
            y = f(*points)
            weights = np.cos(np.arange(y.shape[0]))
            weighted = y * convert_to_tensor(weights.astype(y.dtype.as_numpy_dtype))
        found = tape.gradient(weighted, own, unconnected_gradients="zero")
        return call("concat", *[call("reshape", g, shape=(-1,)) for g in found], axis=0)

    return slope


def _name_of_result(f: Callable[..., Any], points: list[Any]) -> Callable[[int], str]:
    results = [convert_to_tensor(y) for y in nest.flatten(f(*points))]
    shapes = [y.shape.as_list() for y in results if y.dtype.is_floating]
    labels = ["result" if len(shapes) == 1 else f"result {i}" for i in range(len(shapes))]
    return lambda row: _place(row, shapes, labels)


def _name_of_slope(shapes: list[Any], active: list[int]) -> Callable[[int], str]:
    return lambda row: _place(row, shapes, [f"gradient by argument {i}" for i in active])


def _place(row: int, shapes: list[Any], labels: list[str]) -> str:
    """The name of an element, given its index in the concatenation of several arrays."""
    for shape, label in zip(shapes, labels):
        size = int(np.prod(shape, dtype=np.int64))
        if row < size:
            return f"{label}{[int(i) for i in np.unravel_index(row, shape)] if shape else ''}"
        row -= size
    raise IndexError(row)
