"""Rows for the derivatives of special functions that have a removable singularity: regular at it, to every order.

I1 has the slope I0 - I1(x) / x, which is 0 / 0 at 0 and loses its digits beside it. (I0 + I2) / 2 is the same number
without a division; so each derivative of a Bessel function is a sum of Bessel functions of higher orders, the `order`
of a row here. In the same way the derivative of log(x) / (1 - x) is a row that knows how often it is derived.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.ops.dispatch import call
from runtime.ops.rules import infer_same
from runtime.ops.table import OpDef, Sample, register

_ORDERS = (2, 3, 5)


def _scipy(name: str) -> Any:
    return getattr(importlib.import_module("scipy.special"), name)


def _by_place(x: Any, is_near: Callable[[Any], Any], near: Callable[[Any], Any], far: Callable[[Any], Any]) -> Any:
    """near(x) where is_near(x), else far(x), computed in float64; in the dtype of x."""
    wide = np.asarray(x, np.float64)
    result = np.empty_like(wide)
    inside = is_near(wide)
    with np.errstate(all="ignore"):
        result[inside] = near(wide[inside])
        result[~inside] = far(wide[~inside])
    return result.astype(x.dtype)[()]


def _below(order: int) -> Callable[[Any], Any]:
    return lambda x: np.abs(x) < max(4, order)


def _power_series(x: Any, order: int, sign: int) -> Any:
    """The Bessel function J (sign -1) or I (sign 1) of this order, by its power series: for abs(x) below max(4,
    order)."""
    quarter = sign * x * x / 4
    term = (x / 2) ** order / math.factorial(order)
    total = term
    for index in range(1, 20 + order):
        term = term * quarter / (index * (index + order))
        total = total + term
    return total


def _recurrence(x: Any, order: int, sign: int, first: str, second: str) -> Any:
    """The Bessel function of this order, by recurrence from orders 0 and 1 upwards (DLMF 10.6.1 and 10.29.1). It is
    stable if abs(x) is above the order."""
    below, value = _scipy(first)(x), _scipy(second)(x)
    for index in range(1, order):
        below, value = value, sign * (below - 2 * index * (value / x))
    return value


def _bessel_jn(x: Any, order: int) -> Any:
    return _by_place(
        x,
        _below(order),
        lambda near: _power_series(near, order, -1),
        lambda far: _recurrence(far, order, -1, "j0", "j1"),
    )


def _bessel_ine(x: Any, order: int) -> Any:
    return _by_place(
        x,
        _below(order),
        lambda near: _power_series(near, order, 1) * np.exp(-np.abs(near)),
        lambda far: _recurrence(far, order, 1, "i0e", "i1e"),
    )


def _bessel_in(x: Any, order: int) -> Any:
    return _by_place(
        x,
        _below(order),
        lambda near: _power_series(near, order, 1),
        lambda far: _recurrence(far, order, 1, "i0e", "i1e") * np.exp(np.abs(far)),
    )


def bessel(name: str, x: Any, order: int) -> Any:
    """The Bessel function of an order above 0, where `name` is one of j, i and ie."""
    kind, scaled = name[0], name[1:]
    if order == 1:
        return call(f"bessel_{kind}1{scaled}", x)
    return call(f"bessel_{kind}n{scaled}", x, order=order)


def _grad_bessel(name: str, sign: int) -> Callable[..., Sequence[Any]]:
    """DLMF 10.6.1 and 10.29.1; the factor exp(-abs(x)) of `ie` adds a term."""

    def grad(op: Any, dy: Any) -> Sequence[Any]:
        (x,), order = op.inputs, op.attrs["order"]
        lower, higher = bessel(name, x, order - 1), bessel(name, x, order + 1)
        slope = (lower + higher if sign > 0 else lower - higher) * 0.5
        return (dy * (slope - call("sign", x) * op.outputs[0] if name == "ie" else slope),)

    return grad


def _samples(low: float, high: float, orders: Sequence[int]) -> tuple[Sample, ...]:
    return tuple(
        Sample((shape,), {"order": order}, low=low, high=high) for order in orders for shape in [(), (2, 3), (0, 2)]
    )


for _name, _kernel, _letters, _sign, _doc in (
    ("bessel_jn", _bessel_jn, "j", -1, "The Bessel function J of an order above 1."),
    ("bessel_in", _bessel_in, "i", 1, "The modified Bessel function I of an order above 1."),
    ("bessel_ine", _bessel_ine, "ie", 1, "exp(-abs(x)) times the modified Bessel function I of an order above 1."),
):
    register(
        OpDef(
            _name, infer_same, _kernel, grad=_grad_bessel(_letters, _sign), kinds="f", doc=_doc,
            samples=_samples(-6.0, 6.0, _ORDERS),
        )
    )  # fmt: skip


def _spence_derivative(x: Any, order: int) -> Any:
    """Near 1 by the hypergeometric series; elsewhere by parts, for x ** n times the integral from 0 to 1 of
    t ** n / (1 + t (x - 1)) ** (n + 1)."""
    n = order - 1
    scale = (-1) ** order * math.factorial(n)

    def near(point: Any) -> Any:
        return scale / order * _scipy("hyp2f1")(order, order, order + 1, 1 - point)

    def far(point: Any) -> Any:
        value = np.log(point) / (point - 1)
        for index in range(1, n + 1):
            # 0 log(0) is 0.
            value = (np.where(point == 0, 0.0, point * value) - 1 / index) / (point - 1)
        return np.where(point == np.inf, 0.0, scale * (value / point**n))

    return _by_place(x, lambda point: np.abs(point - 1) < 0.5, near, far)


SPENCE_DERIVATIVE = register(
    OpDef(
        "spence_derivative", infer_same, _spence_derivative, kinds="f",
        grad=lambda op, dy: (dy * call("spence_derivative", op.inputs[0], order=op.attrs["order"] + 1),),
        doc="The derivative of this order of `spence`.", samples=_samples(0.2, 3.0, (1, 2, 4)),
    )
)  # fmt: skip
