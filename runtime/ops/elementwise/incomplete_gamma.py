"""Derivatives of the incomplete gamma function by its first argument, to any order, in double precision.

P(a, x) is expanded in a: each step of its series (Abramowitz and Stegun, 6.5.29), or for x >= a + 1 of Legendre's
continued fraction (6.5.31), runs on truncated Taylor series in a instead of numbers, so nothing is differenced.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise import elementary
from runtime.ops.rules import infer_binary, unbroadcast
from runtime.ops.table import OPS, OpDef, Sample, register

# The coefficients of 1, e, e**2, ... of a function of a + e, each an array.
Series = list[Any]


def _times(f: Series, g: Series) -> Series:
    return [sum(f[i] * g[k - i] for i in range(k + 1)) for k in range(len(f))]


def _divided(f: Series, g: Series) -> Series:
    result: Series = []
    for k in range(len(f)):
        result.append((f[k] - sum(result[i] * g[k - i] for i in range(k))) / g[0])
    return result


def _exponential(f: Series) -> Series:
    result: Series = [np.exp(f[0])]
    for k in range(1, len(f)):
        result.append(sum(i * f[i] * result[k - i] for i in range(1, k + 1)) / k)
    return result


def _linear(constant: Any, slope: Any, order: int) -> Series:
    return [constant, np.broadcast_to(slope, np.shape(constant)), *[np.zeros_like(constant)] * order][: order + 1]


def _weight(a: Any, x: Any, order: int) -> Series:
    """x ** a exp(-x) / gamma(a + 1)."""
    special = importlib.import_module("scipy.special")
    logarithm = [a * np.log(x) - x - special.gammaln(a + 1)]
    for k in range(1, order + 1):
        higher = -special.polygamma(k - 1, a + 1) / math.factorial(k)
        logarithm.append(higher + np.log(x) if k == 1 else higher)
    return _exponential(logarithm)


def _by_series(a: Any, x: Any, order: int) -> Series:
    term = _weight(a, x, order)
    total = list(term)
    for n in range(1, 100_000):
        term = _divided([part * x for part in term], _linear(a + n, 1.0, order))
        total = [part + more for part, more in zip(total, term)]
        if all(np.all(abs(more) <= 1e-17 * abs(part) + 1e-300) for part, more in zip(total, term)):
            break
    return total


def _by_fraction(a: Any, x: Any, order: int) -> Series:
    """The negative of Q: its derivatives are those of P."""
    steps = 100 + int(40 * math.sqrt(float(np.max(a, initial=1.0))))
    tail = _linear(np.zeros_like(a), 0.0, order)
    for n in range(steps, 0, -1):
        below = [p + q for p, q in zip(_linear(x + 2 * n + 1 - a, -1.0, order), tail)]
        tail = _divided(_linear(-n * (n - a), float(n), order), below)
    below = [p + q for p, q in zip(_linear(x + 1 - a, -1.0, order), tail)]
    # gamma(a) is gamma(a + 1) / a.
    return [-part for part in _divided(_times(_weight(a, x, order), _linear(a, 1.0, order)), below)]


def _kernel(a: Any, x: Any, order: int) -> Any:
    first, second = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(x, np.float64))
    result = np.zeros(first.shape)
    result[~((first > 0) & (second >= 0))] = np.nan
    inside = (first > 0) & (second > 0) & np.isfinite(second)
    low = inside & (second < first + 1)
    for where, method in ((low, _by_series), (inside & ~low, _by_fraction)):
        if np.any(where):
            result[where] = method(first[where], second[where], order)[order] * math.factorial(order)
    return result.astype(a.dtype)[()]


def _density_derivative(a: Any, x: Any, order: int) -> Any:
    """The derivative by a, `order` times, of the density x ** (a - 1) exp(-x) / gamma(a)."""
    found = [elementary.exp(call("xlogy", a - 1, x) - x - apply(OPS["lgamma"], [a]))]
    slopes = [elementary.log(x) - apply(OPS["digamma"], [a])] if order else []
    for k in range(1, order):
        slopes.append(-apply(OPS["polygamma"], [apply(OPS["ones_like"], [a]) * k, a]))
    for k in range(1, order + 1):
        found.append(sum(math.comb(k - 1, j) * found[k - 1 - j] * slopes[j] for j in range(k)))
    return found[order]


def _grad(op: Any, dy: Any) -> Sequence[Any]:
    a, x = op.inputs
    order = op.attrs["order"]
    by_a = apply(_ROW, [a, x], {"order": order + 1})
    return unbroadcast(dy * by_a, a, x), unbroadcast(dy * _density_derivative(a, x, order), x, a)


_ROW = register(
    OpDef(
        "igamma_derivative", infer_binary, _kernel, grad=_grad, kinds="f", label="IgammaGradA",
        doc="The derivative of igamma of the given order with respect to its first operand.",
        samples=tuple(
            Sample(shapes, {"order": order}, low=0.3, high=3.0)
            for shapes, order in [
                (((), ()), 1), (((3,), (3,)), 1), (((2, 1), (3,)), 1), (((3,), ()), 2), (((2,), (0, 1)), 1),
            ]
        ),
    )
)  # fmt: skip


def grad_igamma(sign: int) -> Any:
    """The reverse rule of P(a, x) (1) and of Q(a, x) = 1 - P(a, x) (-1)."""

    def grad(op: Any, dy: Any) -> Sequence[Any]:
        by_a, by_x = _grad(_AsDerivative(op.inputs), dy)
        return (by_a, by_x) if sign > 0 else (-by_a, -by_x)

    return grad


class _AsDerivative:
    """P itself is its derivative of order 0."""

    def __init__(self, inputs: Any) -> None:
        self.inputs = inputs
        self.attrs = {"order": 0}
