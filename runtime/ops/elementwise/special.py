"""Special functions (`ag.math`, `ag.math.special`): kernels from SciPy, imported when one is first used.

Derivatives follow the Digital Library of Mathematical Functions (DLMF); where TensorFlow defines none (the parameters
of the incomplete beta function) there is none here.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime.ops.convert import check_kind, convert_to_tensor, operands
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise import arithmetic, elementary
from runtime.ops.elementwise.define import BinaryFunction, NamedOperands, UnaryFunction, binary, unary, with_operands
from runtime.ops.elementwise.incomplete_gamma import grad_igamma
from runtime.ops.elementwise.special_derivatives import bessel
from runtime.ops.rules import binary_samples, broadcast_types, need_same_dtype, unary_samples, unbroadcast
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def scipy_kernel(name: str, wide: bool = False) -> Callable[..., Any]:
    """A kernel from scipy.special: float16 and float32 keep their dtype; `wide` computes them in float64."""

    @functools.cache
    def function() -> Any:
        return getattr(importlib.import_module("scipy.special"), name)

    def kernel(*arrays: Any) -> Any:
        given = [np.asarray(a, np.float64) for a in arrays] if wide else arrays
        return function()(*given).astype(arrays[0].dtype)

    return kernel


def _with_limits(function: Callable[..., Any], below: float, above: float) -> Callable[..., Any]:
    """A kernel with its limits at the infinities, where SciPy has NaN."""

    def kernel(x: Any) -> Any:
        return np.where(np.isinf(x), np.where(x < 0, below, above), function(x)).astype(x.dtype)[()]

    return kernel


def _row(
    name: str,
    doc: str,
    derivative: Any,
    low: float = 0.3,
    high: float = 3.0,
    scipy: str = "",
    limits: tuple[float, float] | None = None,
) -> Any:
    """A unary row from SciPy; derivative(x, y) of the operand and the result, or None. limits: at the infinities."""
    kernel = scipy_kernel(scipy or name)

    def grad(op: Any, dy: Any) -> Sequence[Any]:
        return (dy * derivative(op.inputs[0], op.outputs[0]),)

    return unary(
        name, kernel if limits is None else _with_limits(kernel, *limits), None, doc,
        grad if derivative is not None else lambda op, dy: (None,), samples=unary_samples(low, high),
    )  # fmt: skip


def _sin(x: Any) -> Any:
    return elementary.sin(x)


def _cos(x: Any) -> Any:
    return elementary.cos(x)


_HALF_PI = math.pi / 2
_ROOT_PI = math.sqrt(math.pi)

lgamma = unary(
    "lgamma", scipy_kernel("gammaln"), "math.lgamma({0})", "The logarithm of the absolute gamma function.",
    lambda op, dy: (dy * digamma(op.inputs[0]),), samples=unary_samples(0.3, 4.0), cost=10,
)  # fmt: skip
digamma: UnaryFunction = _row(
    "digamma", "The derivative of lgamma.", lambda x, y: polygamma(call("ones_like", x), x), scipy="psi"
)
erfinv = _row(
    "erfinv", "The inverse of erf.", lambda x, y: elementary.exp(y * y) * (_ROOT_PI / 2), -0.9, 0.9
)  # fmt: skip
erfcinv = _row(
    "erfcinv", "The inverse of erfc.", lambda x, y: elementary.exp(y * y) * (-_ROOT_PI / 2), 0.1, 1.9
)  # fmt: skip
ndtri = _row(
    "ndtri", "The inverse of the standard normal distribution function.",
    lambda x, y: elementary.exp(y * y * 0.5) * math.sqrt(2 * math.pi), 0.05, 0.95,
)  # fmt: skip
bessel_i0 = _row(
    "bessel_i0", "Modified Bessel function I0.", lambda x, y: bessel_i1(x), -3.0, scipy="i0",
    limits=(math.inf, math.inf),
)  # fmt: skip
# Far out, the slope I1 - I0 has no digits left, and is a row of its own.
bessel_i0e = _row(
    "bessel_i0e", "exp(-abs(x)) * I0(x).",
    lambda x, y: call("bessel_ie_derivative", x, order=0, derivative=1), -3.0, scipy="i0e",
)  # fmt: skip
bessel_i1: UnaryFunction = _row(
    "bessel_i1", "Modified Bessel function I1.", lambda x, y: (bessel_i0(x) + bessel("i", x, 2)) * 0.5, -3.0,
    scipy="i1", limits=(-math.inf, math.inf),
)  # fmt: skip
bessel_i1e: UnaryFunction = _row(
    "bessel_i1e", "exp(-abs(x)) * I1(x).",
    lambda x, y: call("bessel_ie_derivative", x, order=1, derivative=1), -3.0, scipy="i1e",
)  # fmt: skip
bessel_k0: UnaryFunction = _row("bessel_k0", "Modified Bessel function K0.", lambda x, y: -bessel_k1(x), scipy="k0")
# Far out, K0 - K1 has no digits left.
bessel_k0e: UnaryFunction = _row(
    "bessel_k0e", "exp(x) * K0(x).", lambda x, y: call("bessel_ke_derivative", x, order=0, derivative=1), scipy="k0e"
)
bessel_k1: UnaryFunction = _row(
    "bessel_k1", "Modified Bessel function K1.", lambda x, y: -bessel_k0(x) - y / x, scipy="k1"
)
bessel_k1e: UnaryFunction = _row(
    "bessel_k1e", "exp(x) * K1(x).", lambda x, y: call("bessel_ke_derivative", x, order=1, derivative=1), scipy="k1e"
)  # fmt: skip
bessel_j0: UnaryFunction = _row(
    "bessel_j0", "Bessel function J0.", lambda x, y: -bessel_j1(x), -3.0, scipy="j0", limits=(0.0, 0.0)
)
bessel_j1: UnaryFunction = _row(
    "bessel_j1", "Bessel function J1.", lambda x, y: (bessel_j0(x) - bessel("j", x, 2)) * 0.5, -3.0, scipy="j1",
    limits=(0.0, 0.0),
)  # fmt: skip
bessel_y0: UnaryFunction = _row(
    "bessel_y0", "Bessel function Y0.", lambda x, y: -bessel_y1(x), scipy="y0", limits=(math.nan, 0.0)
)
# At 0, Y1(x) / x is infinite, and so is Y0.
bessel_y1: UnaryFunction = _row(
    "bessel_y1", "Bessel function Y1.", lambda x, y: arithmetic.bounded(bessel_y0(x)) - y / x, scipy="y1",
    limits=(math.nan, 0.0),
)  # fmt: skip
# The slope of Dawson's integral has the asymptotic series of -(2 k + 1)!! / (2 x ** 2) ** (k + 1). From 7 on, 21 terms
# are exact to 1e-16, and 1 - 2 x y loses more than two digits. The coefficients are those of (7 / x) ** (2 k).
_DAWSN_FAR = 7
_DAWSN_SERIES = [math.prod(range(1, 2 * k + 2, 2)) / 2 ** (k + 1) / _DAWSN_FAR ** (2 * k) for k in range(21)]


def _dawsn_slope(x: Any, y: Any) -> Any:
    zero, one = (convert_to_tensor(v, x.dtype) for v in (0, 1))
    is_far = arithmetic.abs(x) > convert_to_tensor(_DAWSN_FAR, x.dtype)
    inverse = arithmetic.reciprocal(call("select", is_far, x, one))
    ratio = arithmetic.square(inverse * _DAWSN_FAR)
    series: Any = convert_to_tensor(_DAWSN_SERIES[-1], x.dtype)
    for coefficient in reversed(_DAWSN_SERIES[:-1]):
        series = series * ratio + coefficient
    near = 1 - 2 * call("select", is_far, zero, x) * y
    return call("select", is_far, -(inverse * inverse) * series, near)


dawsn = _row("dawsn", "Dawson's integral.", _dawsn_slope, -3.0)
expint = _row("expint", "The exponential integral Ei.", lambda x, y: call("expint_derivative", x), scipy="expi")
spence = _row(
    "spence", "Spence's integral (the dilogarithm of 1 - x).",
    lambda x, y: call("spence_derivative", x, order=1), 0.2, 3.0, limits=(math.nan, -math.inf),
)  # fmt: skip


def _fresnel(index: int) -> Callable[[Any], Any]:
    pair = _pair_kernel("fresnel")
    return lambda x: pair(x)[index]


def _pair_kernel(name: str) -> Callable[[Any], tuple]:
    def kernel(x: Any) -> tuple:
        function = getattr(importlib.import_module("scipy.special"), name)
        return tuple(part.astype(x.dtype) for part in function(np.asarray(x, np.float64)))

    return kernel


fresnel_sin = unary(
    "fresnel_sin", _fresnel(0), None, "Fresnel's sine integral.",
    lambda op, dy: (dy * _sin(op.inputs[0] * op.inputs[0] * _HALF_PI),),
)  # fmt: skip
fresnel_cos = unary(
    "fresnel_cos", _fresnel(1), None, "Fresnel's cosine integral.",
    lambda op, dy: (dy * _cos(op.inputs[0] * op.inputs[0] * _HALF_PI),),
)  # fmt: skip


# --- of two and three operands -------------------------------------------------------------------------------------


def _pair(
    name: str,
    kernel: Any,
    doc: str,
    grad: Any,
    low: float = 0.3,
    high: float = 3.0,
    text: Any = None,
    reads_bits: bool = False,
) -> Any:
    return binary(name, kernel, text, doc, grad, kinds="f", samples=binary_samples(low, high), reads_bits=reads_bits)


_NO_PAIR: Any = lambda op, dy: (None, None)  # noqa: E731
_POSITIVE_PAIR = binary_samples(0.3, 3.0)

igamma = with_operands(
    binary(
        "igamma", scipy_kernel("gammainc"), None,
        "The lower regularised incomplete gamma function P(a, x).",
        grad_igamma(1), kinds="f", samples=_POSITIVE_PAIR,
    ), "a", "x",
)  # fmt: skip
igammac = with_operands(
    binary(
        "igammac", scipy_kernel("gammaincc"), None,
        "The upper regularised incomplete gamma function Q(a, x).",
        grad_igamma(-1), kinds="f", samples=_POSITIVE_PAIR,
    ), "a", "x",
)  # fmt: skip


def _grad_zeta(op: Any, dy: Any) -> Sequence[Any]:
    x, q = op.inputs
    return None, unbroadcast(dy * -x * zeta(x + 1, q), q, x)


zeta: NamedOperands = with_operands(
    binary(
        "zeta", scipy_kernel("zeta"), None,
        "The Hurwitz zeta function, the sum of (q + n) ** -x; differentiable with respect to q.", _grad_zeta, kinds="f",
        samples=tuple(Sample(s.shapes, low=1.5, high=4.0, gradient=(1,)) for s in binary_samples()),
    ), "x", "q",
)  # fmt: skip


def _polygamma_kernel(n: Any, x: Any) -> Any:
    special = importlib.import_module("scipy.special")
    order = np.asarray(n, np.float64)
    wide = np.asarray(x, np.float64)
    # (-1) ** (n + 1) * n! * zeta(n + 1, x), and psi for n = 0; DLMF 5.15.1
    series = np.where(order % 2 == 1, 1.0, -1.0) * special.gamma(order + 1) * special.zeta(order + 1, wide)
    # At poles of odd orders the sides differ: at 0 its sign says from which one, at -1, -2, ... there is no limit.
    is_pole = (wide <= 0) & (wide % 1 == 0) & (order % 2 == 0)
    series = np.where(is_pole, np.where(wide == 0, np.copysign(series, -wide), np.nan), series)
    whole = (order >= 0) & (order % 1 == 0)
    return np.where(order == 0, special.psi(wide), np.where(whole, series, np.nan)).astype(x.dtype)[()]


def _grad_polygamma(op: Any, dy: Any) -> Sequence[Any]:
    n, x = op.inputs
    return None, unbroadcast(dy * polygamma(n + 1, x), x, n)


polygamma: NamedOperands = with_operands(
    binary(
        "polygamma", _polygamma_kernel, None,
        "The derivative of order a (a whole number; NaN for others) of digamma.", _grad_polygamma, kinds="f",
        samples=(
            # Both operands are drawn, and the order must be a whole number.
            Sample(((3,), (3,)), low=2.0, high=2.0, gradient=(1,)),
            Sample(((), (2, 3)), low=1.0, high=1.0, gradient=(1,)),
        ),
    ), "a", "x",
)  # fmt: skip


def _guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """function(x, y), and 0 where x is 0."""

    def kernel(x: Any, y: Any) -> Any:
        return np.where(x == 0, np.zeros((), x.dtype), function(x, y)).astype(x.dtype)[()]

    return kernel


def _guarded_text(text: str) -> str:
    return f"({text} if {{0}} != 0 else {{0}} - {{0}})"  # 0 and -0 both give 0


def _grad_xlogy(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    return (
        unbroadcast(dy * xlogy(_is_smooth(x, y > 0), y), x, y), unbroadcast(dy * xdivy(x, y), y, x),
    )  # fmt: skip


def _is_smooth(x: Any, is_inside: Any) -> Any:
    """1, and 0 where x is 0 at the end of the domain of the other factor or beyond: the slope is taken as 0 there."""
    return call(
        "cast", call("logical_or", call("not_equal", x, convert_to_tensor(0, x.dtype)), is_inside), dtype=x.dtype
    )


def _grad_xlog1py(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    return (
        unbroadcast(dy * xlog1py(_is_smooth(x, y > -1), y), x, y), unbroadcast(dy * xdivy(x, y + 1), y, x),
    )  # fmt: skip


def _grad_xdivy(op: Any, dy: Any) -> Sequence[Any]:
    x, y = op.inputs
    return (
        unbroadcast(dy * xdivy(_is_smooth(x, call("not_equal", y, convert_to_tensor(0, y.dtype))), y), x, y),
        unbroadcast(dy * xdivy(-op.outputs[0], y), y, x),
    )  # fmt: skip


xlogy: BinaryFunction = _pair(
    "xlogy", _guarded(lambda x, y: x * np.log(y)), "x * log(y), and 0 where x is 0.", _grad_xlogy,
    text=_guarded_text("{0} * math.log({1})"),
)  # fmt: skip
xlog1py: BinaryFunction = _pair(
    "xlog1py", _guarded(lambda x, y: x * np.log1p(y)), "x * log(1 + y), and 0 where x is 0.", _grad_xlog1py,
    text=_guarded_text("{0} * math.log1p({1})"),
)  # fmt: skip
xdivy: BinaryFunction = _pair(
    "xdivy", _guarded(lambda x, y: x / y), "x / y, and 0 where x is 0.", _grad_xdivy,
    text=_guarded_text("{0} / {1}"),
)  # fmt: skip
nextafter = with_operands(
    _pair(
        "nextafter", np.nextafter, "The next number after x1 in the direction of x2.",
        lambda op, dy: (unbroadcast(dy, op.inputs[0], op.inputs[1]), None), reads_bits=True,
    ), "x1", "x2",
)  # fmt: skip


def _infer_three(inputs: Sequence[Any], attrs: dict) -> tuple:
    need_same_dtype(inputs)
    a, b, x = inputs
    both = TensorType(a.dtype, broadcast_types(a, b))
    return (TensorType(a.dtype, broadcast_types(both, x)),)


def _grad_betainc(op: Any, dy: Any) -> Sequence[Any]:
    a, b, x = op.inputs
    log_beta = lgamma(a) + lgamma(b) - lgamma(a + b)
    density = elementary.exp(xlog1py(b - 1, -x) + xlogy(a - 1, x) - log_beta)
    return None, None, unbroadcast(dy * density, x)


BETAINC = register(
    OpDef(
        "betainc", _infer_three, scipy_kernel("betainc", wide=True), grad=_grad_betainc, kinds="f",
        doc="The regularised incomplete beta function I(x; a, b); differentiable with respect to x.",
        samples=tuple(
            Sample(shapes, low=0.1, high=0.9, gradient=(2,)) for shapes in [((), (), ()), ((3,), (3,), (3,)),
                                                                            ((3,), (2, 1), (2, 3))]
        ),
    )
)  # fmt: skip


def betainc(a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The regularised incomplete beta function I(x; a, b); the operands broadcast. Differentiable by x."""
    tensors = operands("Betainc", a, b, x)
    check_kind(BETAINC, tensors[0].dtype)
    return apply(BETAINC, tensors)


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of the absolute beta function of the numbers along the last dimension."""
    tensor = convert_to_tensor(x)
    axis = len(tensor._shape or ()) - 1
    return call("reduce_sum", lgamma(tensor), axis=(axis,), keepdims=False) - lgamma(
        call("reduce_sum", tensor, axis=(axis,), keepdims=False)
    )


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """log(sigmoid(x)), without overflow."""
    return -elementary.softplus(-convert_to_tensor(x))


def polyval(coeffs: Sequence[Any], x: TensorLike, name: str | None = None) -> Tensor:
    """The polynomial with `coeffs` (a list, the highest power first) at x, by Horner's rule; 0 for no coefficients."""
    if not isinstance(coeffs, (list, tuple)):
        raise ValueError(f"Argument coeffs must be list type. Received type {type(coeffs)}.")
    point = convert_to_tensor(x)
    if not coeffs:
        return call("zeros_like", point)
    total: Any = convert_to_tensor(coeffs[0], point.dtype)
    for coefficient in coeffs[1:]:
        total = total * point + convert_to_tensor(coefficient, point.dtype)
    return total if len(coeffs) > 1 else total + call("zeros_like", point)
