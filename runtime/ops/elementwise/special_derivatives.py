"""Rows for the derivatives of special functions that have a removable singularity: regular at it, to every order.

I1 has the slope I0 - I1(x) / x, which is 0 / 0 at 0 and loses its digits beside it. (I0 + I2) / 2 is the same number
without a division; so each derivative of a Bessel function is a sum of Bessel functions of higher orders, the `order`
of a row here. In the same way the derivative of log(x) / (1 - x) is a row that knows how often it is derived.

So are those of exp(-abs(x)) I(x) and exp(x) K(x), of orders 0 and 1, which the terms of a sum would be far larger than.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.ops.dispatch import call
from runtime.ops.elementwise.arithmetic import bounded
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
        lambda far: np.where(np.isinf(far), 0.0, _recurrence(far, order, -1, "j0", "j1")),
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
        lambda far: np.where(np.isinf(far), far**order, _recurrence(far, order, 1, "i0e", "i1e") * np.exp(np.abs(far))),
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


_FAR = 20  # where an asymptotic series of 40 terms is exact to 1e-17
_ALL_TERMS = 140  # of a power series below


def _watson(x: Any, n: int, sign: int) -> Any:
    """The integral of u ** (n - 1/2) (2 - sign u) ** (-1/2) exp(-x u) by u over small u > 0: Watson's lemma (DLMF
    2.4.1), for x >= _FAR."""
    term = total = np.ones_like(x)
    for k in range(2 * _FAR):
        term = term * (sign * (0.5 + k) * (n + 0.5 + k) / (k + 1)) / (2 * x)
        total = total + term
    return total / x**n / np.sqrt(x) * (math.gamma(n + 0.5) / math.sqrt(2))


def _moment_of_i(x: Any, n: int) -> Any:
    """The integral of (1 - cos(t)) ** n exp(x (cos(t) - 1)) by t from 0 to pi, divided by pi, for x >= 0.

    By u = 1 - cos(t), it is that of u ** (n - 1/2) (2 - u) ** (-1/2) exp(-x u) from 0 to 2. Near 0, the series of
    exp(-2 x) M(1/2, n + 1, 2 x) (DLMF 13.4.1 and 13.2.39) has positive terms.
    """

    def near(point: Any) -> Any:
        term = total = np.ones_like(point)
        for k in range(_ALL_TERMS):
            term = term * ((0.5 + k) / ((n + 1 + k) * (k + 1))) * (2 * point)
            total = total + term
        return total * np.exp(-2 * point) * (2.0**n * math.prod((i + 0.5) / (i + 1) for i in range(n)))

    return _by_place(x, lambda point: point < _FAR, near, lambda far: _watson(far, n, 1) / math.pi)


def _moment_of_k(x: Any, n: int) -> Any:
    """The integral of (cosh(t) - 1) ** n exp(x (1 - cosh(t))) by t from 0 to infinity.

    By u = cosh(t) - 1, it is that of u ** (n - 1/2) (2 + u) ** (-1/2) exp(-x u). Near 0, by the recurrence that the
    derivative of u ** (n + 1/2) (2 + u) ** (1/2) exp(-x u) gives; each step loses a digit or two beside 20.
    """

    def near(point: Any) -> Any:
        below = _scipy("k0e")(point)
        value = _scipy("k1e")(point) - below
        for k in range(n - 1):
            below, value = value, ((2 * k + 1) * below + (k + 1 - 2 * point) * value) / point
        return np.where(point == 0, np.inf, value)

    return _by_place(x, lambda point: point < _FAR, near, lambda far: _watson(far, n, -1))


def _bessel_ie_derivative(x: Any, order: int, derivative: int) -> Any:
    """By moments: the factor of exp(x (cos(t) - 1)) is 1 or cos(t) (DLMF 10.32.3)."""
    wide = np.asarray(x, np.float64)
    size = np.abs(wide)
    value = _moment_of_i(size, derivative)
    if order:
        value = value - _moment_of_i(size, derivative + 1)
    value = (-1) ** derivative * value
    return (value if (order + derivative) % 2 == 0 else np.sign(wide) * value).astype(x.dtype)[()]


def _bessel_ke_derivative(x: Any, order: int, derivative: int) -> Any:
    """By moments: the factor of exp(x (1 - cosh(t))) is 1 or cosh(t) (DLMF 10.32.9)."""
    wide = np.asarray(x, np.float64)
    value = _moment_of_k(wide, derivative)
    if order:
        value = value + _moment_of_k(wide, derivative + 1)
    return ((-1) ** derivative * value).astype(x.dtype)[()]


def _grad_scaled_bessel(name: str) -> Callable[..., Sequence[Any]]:
    def grad(op: Any, dy: Any) -> Sequence[Any]:
        derivative = op.attrs["derivative"] + 1
        return (dy * call(name, op.inputs[0], order=op.attrs["order"], derivative=derivative),)

    return grad


for _name, _scaled, _doc in (
    ("bessel_ie_derivative", _bessel_ie_derivative, "exp(-abs(x)) I(x); at 0 the mean of those from both sides"),
    ("bessel_ke_derivative", _bessel_ke_derivative, "exp(x) K(x)"),
):
    register(
        OpDef(
            _name, infer_same, _scaled, grad=_grad_scaled_bessel(_name), kinds="f",
            doc=f"The derivative, from the first on, of {_doc}. order: of the modified Bessel function, 0 or 1.",
            samples=tuple(
                Sample((shape,), {"order": order, "derivative": derivative}, low=0.5, high=30.0)
                for order, derivative in ((0, 1), (1, 1), (0, 2), (1, 3))
                for shape in [(), (2, 3), (0, 2)]
            ),
        )
    )  # fmt: skip


def _expint_derivative(x: Any) -> Any:
    # exp(x) may overflow where the quotient doesn't.
    root = np.exp(x * 0.5)
    return np.where(x == np.inf, x, root * (root / x)).astype(x.dtype)[()]


def _grad_expint(op: Any, dy: Any) -> Sequence[Any]:
    """exp(x) (x - 1) / x ** 2, which is a difference of infinities at 0 and far out if its parts are taken alone."""
    x = bounded(op.inputs[0])
    return (dy * op.outputs[0] * ((x - 1) / x),)


register(
    OpDef(
        "expint_derivative", infer_same, _expint_derivative, grad=_grad_expint, kinds="f",
        doc="exp(x) / x, the derivative of the exponential integral.",
        samples=tuple(Sample((shape,), low=low, high=high) for shape in [(), (2, 3), (0, 2)]
                      for low, high in ((0.3, 3.0), (-3.0, -0.3))),
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
