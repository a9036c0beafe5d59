"""Elementwise functions: exponentials, trigonometry, rounding, activations, and `cast`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DType, DTypeLike
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise import float_to_integer
from runtime.ops.elementwise.arithmetic import absolute_scale, bounded, multiply_no_nan, square
from runtime.ops.elementwise.define import UnaryFunction, unary, with_operands
from runtime.ops.rules import typed, unary_samples
from runtime.ops.table import OpDef, Sample, register, too_large
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _special(name: str) -> Any:
    """A kernel from scipy.special, imported when first used: the import takes longer than ours."""

    def kernel(x: Any) -> Any:
        function = getattr(importlib.import_module("scipy.special"), name)
        # SciPy widens float16.
        return function(x).astype(x.dtype)

    return kernel


def _expm1(x: Any) -> Any:
    result = np.expm1(x)
    # NumPy's is NaN + NaN j for all complex numbers that aren't finite, where the exponential has limits.
    return result if x.dtype.kind != "c" else np.where(np.isfinite(x), result, np.exp(x) - 1)


_POSITIVE = unary_samples(0.3, 4.0)
_UNIT = unary_samples(-0.9, 0.9)
_TWO_OVER_ROOT_PI = 1.1283791670955126


def _grad_acosh(op: Any, dy: Any) -> Sequence[Any]:
    x = op.inputs[0]
    # x * x - 1 overflows, cancels beside 1, and its root is on the wrong branch in half of the complex plane.
    return (multiply_no_nan(rsqrt(x - 1) * rsqrt(x + 1), dy),)


def _grad_asinh(op: Any, dy: Any) -> Sequence[Any]:
    x = op.inputs[0]
    if x.dtype.is_complex:
        return (dy * rsqrt(x * x + 1),)
    # x * x overflows where the slope doesn't vanish yet.
    x = bounded(x)
    scale = absolute_scale(x, _one(x))
    return (dy * (rsqrt(square(x / scale) + square(1 / scale)) / scale),)


def _grad_atan(op: Any, dy: Any) -> Sequence[Any]:
    x = bounded(op.inputs[0])
    return (dy / (x * x + 1),)


def _grad_tanh(op: Any, dy: Any) -> Sequence[Any]:
    (x,), (y,) = op.inputs, op.outputs
    return (dy * (1 - y * y if x.dtype.is_complex else square(_sech(x))),)


def _grad_sigmoid(op: Any, dy: Any) -> Sequence[Any]:
    (x,), (y,) = op.inputs, op.outputs
    return (dy * (y * (1 - y) if x.dtype.is_complex else square(_sech(x * 0.5)) * 0.25),)


def _bell(x: Any) -> Any:
    """exp(-x * x)."""
    x = bounded(x)
    return exp(-(x * x))


def _one(x: Any) -> Any:
    return convert_to_tensor(1, x.dtype)


exp = unary(
    "exp", np.exp, "math.exp({0})", "e to the power x.", lambda op, dy: (dy * op.outputs[0],), kinds="fc", cost=10
)
expm1 = unary(
    "expm1",
    _expm1,
    "math.expm1({0})",
    "exp(x) - 1, exact for small x.",
    lambda op, dy: (dy * exp(op.inputs[0]),),
    kinds="fc",
    cost=10,
)
log = unary(
    "log",
    np.log,
    "math.log({0})",
    "The natural logarithm.",
    lambda op, dy: (dy / op.inputs[0],),
    samples=_POSITIVE,
    kinds="fc",
    cost=10,
)
log1p = unary(
    "log1p", np.log1p, "math.log1p({0})", "log(1 + x), exact for small x.",
    lambda op, dy: (dy / (op.inputs[0] + 1),), samples=unary_samples(-0.6, 3.0), label="Log1p", kinds="fc", cost=10,
)  # fmt: skip
sqrt = unary(
    "sqrt", np.sqrt, "math.sqrt({0})", "The square root; NaN below zero.",
    lambda op, dy: (multiply_no_nan(0.5 / op.outputs[0], dy),), samples=_POSITIVE, kinds="fc",
)  # fmt: skip
rsqrt = unary(
    "rsqrt", lambda x: (1 / np.sqrt(x)).astype(x.dtype), typed("({T}(1) / math.sqrt({0}))"), "1 / sqrt(x).",
    lambda op, dy: (multiply_no_nan(op.outputs[0] * square(op.outputs[0]) * -0.5, dy),), samples=_POSITIVE, kinds="fc",
)  # fmt: skip

sin = unary(
    "sin", np.sin, "math.sin({0})", "Sine, of radians.", lambda op, dy: (dy * cos(op.inputs[0]),), kinds="fc", cost=10
)
cos: UnaryFunction = unary(
    "cos",
    np.cos,
    "math.cos({0})",
    "Cosine, of radians.",
    lambda op, dy: (-dy * sin(op.inputs[0]),),
    kinds="fc",
    cost=10,
)
tan = unary(
    "tan", np.tan, "math.tan({0})", "Tangent, of radians.",
    lambda op, dy: (dy * (op.outputs[0] * op.outputs[0] + 1),), samples=unary_samples(-1.2, 1.2), kinds="fc", cost=10,
)  # fmt: skip
asin = unary(
    "asin", np.arcsin, "math.asin({0})", "Inverse sine, in radians.",
    lambda op, dy: (multiply_no_nan(rsqrt(1 - op.inputs[0] * op.inputs[0]), dy),), samples=_UNIT, kinds="fc", cost=10,
)  # fmt: skip
acos = unary(
    "acos", np.arccos, "math.acos({0})", "Inverse cosine, in radians.",
    lambda op, dy: (multiply_no_nan(-rsqrt(1 - op.inputs[0] * op.inputs[0]), dy),), samples=_UNIT, kinds="fc", cost=10,
)  # fmt: skip
atan = unary(
    "atan", np.arctan, "math.atan({0})", "Inverse tangent, in radians.",
    _grad_atan, kinds="fc", cost=10,
)  # fmt: skip
sinh = unary(
    "sinh",
    np.sinh,
    "math.sinh({0})",
    "Hyperbolic sine.",
    lambda op, dy: (dy * cosh(op.inputs[0]),),
    kinds="fc",
    cost=10,
)
cosh: UnaryFunction = unary(
    "cosh",
    np.cosh,
    "math.cosh({0})",
    "Hyperbolic cosine.",
    lambda op, dy: (dy * sinh(op.inputs[0]),),
    kinds="fc",
    cost=10,
)
tanh = unary(
    "tanh", np.tanh, "math.tanh({0})", "Hyperbolic tangent.",
    _grad_tanh, kinds="fc", cost=10,
)  # fmt: skip
# Its square is the slope of tanh, and of sigmoid: 1 - tanh(x) ** 2 has no digits left where tanh(x) rounds to 1.
_sech = unary(
    "sech", lambda x: (1 / np.cosh(x)).astype(x.dtype), typed("({T}(1) / math.cosh({0}))"), "1 / cosh(x).",
    lambda op, dy: (-dy * op.outputs[0] * tanh(op.inputs[0]),), cost=10,
)  # fmt: skip
asinh = unary(
    "asinh", np.arcsinh, "math.asinh({0})", "Inverse hyperbolic sine.",
    _grad_asinh, kinds="fc", cost=10,
)  # fmt: skip
acosh = unary(
    "acosh", np.arccosh, "math.acosh({0})", "Inverse hyperbolic cosine.",
    _grad_acosh, samples=unary_samples(1.3, 4.0), kinds="fc", cost=10,
)  # fmt: skip
atanh = unary(
    "atanh", np.arctanh, "math.atanh({0})", "Inverse hyperbolic tangent.",
    lambda op, dy: (dy / (1 - op.inputs[0] * op.inputs[0]),), samples=_UNIT, kinds="fc", cost=10,
)  # fmt: skip

erf = unary(
    "erf", _special("erf"), "math.erf({0})", "The error function.",
    lambda op, dy: (dy * _bell(op.inputs[0]) * _TWO_OVER_ROOT_PI,), cost=10,
)  # fmt: skip
erfc = unary(
    "erfc", _special("erfc"), "math.erfc({0})", "1 - erf(x), exact for large x.",
    lambda op, dy: (dy * _bell(op.inputs[0]) * -_TWO_OVER_ROOT_PI,), cost=10,
)  # fmt: skip


# --- rounding ------------------------------------------------------------------------------------------------------


def _flat(op: Any, dy: Any) -> Sequence[Any]:
    """The gradient of a step function: none, as in TensorFlow."""
    return (None,)


floor = unary("floor", np.floor, "np.floor({0})", "The largest integer not above x.", _flat, cheap=True)
ceil = unary("ceil", np.ceil, "np.ceil({0})", "The smallest integer not below x.", _flat, cheap=True)
rint = unary("rint", np.rint, "np.rint({0})", "The nearest integer, halves to even.", _flat, cheap=True)
trunc = unary("trunc", np.trunc, "np.trunc({0})", "x without its fraction.", _flat, cheap=True)


def round(x: TensorLike, name: str | None = None) -> Tensor:
    """The nearest integer, halves to even (bankers' rounding); integers are unchanged."""
    x = convert_to_tensor(x)
    return x if x.dtype.kind in "iu" else rint(x)


# --- activations ---------------------------------------------------------------------------------------------------


def _sigmoid(x: Any) -> Any:
    if x.ndim == 0:
        return (1 / (1 + np.exp(-x))).astype(x.dtype)
    result = np.negative(x)
    np.exp(result, out=result)
    result += 1
    return np.divide(1, result, out=result)


sigmoid = unary(
    "sigmoid", _sigmoid, "math.sigmoid({0})",
    "1 / (1 + exp(-x)).", _grad_sigmoid, kinds="fc", cost=10,
)  # fmt: skip


def _grad_relu(op: Any, dy: Any) -> Sequence[Any]:
    return (call("select", op.outputs[0] > 0, dy, convert_to_tensor(0, dy.dtype)),)


relu = with_operands(
    unary(
        "relu", lambda x: np.maximum(x, x.dtype.type(0)), typed("({T}(0) if {0} <= {T}(0) else {0})"),
        "max(features, 0); its gradient at 0 is 0.", _grad_relu, kinds="iuf", cheap=True,
    ), "features",
)  # fmt: skip


def _grad_softsign(op: Any, dy: Any) -> Sequence[Any]:
    # As a quotient's it would be a difference, which cancels far out.
    return (dy * square(call("reciprocal", call("abs", op.inputs[0]) + 1)),)


softsign = with_operands(
    unary(
        "softsign", lambda x: x / (np.abs(x) + x.dtype.type(1)), typed("({0} / (abs({0}) + {T}(1)))"),
        "features / (abs(features) + 1).", _grad_softsign, cheap=True,
    ), "features",
)  # fmt: skip
softplus = with_operands(
    unary(
        "softplus", lambda x: np.logaddexp(x, x.dtype.type(0)),
        "math.softplus({0})", "log(exp(features) + 1).",
        lambda op, dy: (dy * sigmoid(op.inputs[0]),), cost=10,
    ), "features",
)  # fmt: skip


# --- cast ----------------------------------------------------------------------------------------------------------


def _infer_cast(inputs: Sequence[Any], attrs: dict) -> tuple:
    (x,) = inputs
    if dtypes.string in (x.dtype, attrs["dtype"]) and x.dtype is not attrs["dtype"]:
        raise errors.UnimplementedError(f"Cast {x.dtype.label} to {attrs['dtype'].label} is not supported [Op:Cast]")
    return (TensorType(attrs["dtype"], x.shape),)


def _cast_kernel(x: Any, dtype: DType) -> Any:
    if x.dtype == object or dtype.kind == "O":
        raise errors.UnimplementedError(
            f"Cast {dtypes.as_dtype(x.dtype).label} to {dtype.label} is not supported [Op:Cast]"
        )
    if x.dtype.kind == "c" and dtype.kind in "iuf":
        x = x.real  # as TensorFlow; NumPy would warn
    if dtype.kind in "iu" and x.dtype.kind not in "iub":
        return float_to_integer.converted(x, dtype._np)
    return x.astype(dtype._np)


def _cast_scalar(arguments: Sequence[str], inputs: Sequence[DType], output: DType) -> str:
    if output.kind == "b" and inputs[0].kind != "b":
        return f"({arguments[0]} != 0)"
    # Generated code converts each result to the output's type; that is the cast.
    return f"({arguments[0]})"


def _grad_cast(op: Any, dy: Any) -> Sequence[Any]:
    source = op.inputs[0].dtype
    return (cast(dy, source) if source.is_differentiable and dy.dtype.is_differentiable else None,)


CAST = register(
    OpDef(
        "cast", _infer_cast, _cast_kernel, _cast_scalar, _grad_cast, cheap=True, kinds="biufc", complex_rule=True,
        converts=True,
        doc="The same values in another dtype; floats lose their fraction when they become integers.",
        samples=tuple(
            Sample((shape,), {"dtype": dtype}, low=0.0, high=3.0)
            for shape in [(), (2, 3), (0, 2)]
            for dtype in dtypes.ALL
            if dtype is not dtypes.string
        ),
        is_quiet=True,
        keeps_rows=True,
    )
)  # fmt: skip


def _narrow_kernel(x: Any, dtype: DType) -> Any:
    least, greatest = dtype.limits
    if not ((x >= least) & (x <= greatest)).all():
        raise errors.InvalidArgumentError(too_large(dtype))
    return x.astype(dtype._np)


NARROW = register(
    OpDef(
        "narrow", _infer_cast, _narrow_kernel, "({0})", lambda op, dy: (None,), cheap=True, kinds="iu", narrows=True,
        doc="The same integers in another integer dtype. Raises InvalidArgumentError for a number that doesn't fit.",
        samples=tuple(
            Sample((shape,), {"dtype": dtype}, low=0.0, high=100.0)
            for shape in [(), (2, 3), (0, 2)]
            for dtype in (dtypes.int32, dtypes.int64, dtypes.uint8)
        ),
    )
)  # fmt: skip


def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """x in another dtype. Floats are truncated to integers; nonzero becomes True.

    Raises UnimplementedError for a cast between strings and numbers, TypeError for an unknown dtype.
    """
    wanted = dtypes.as_dtype(dtype)
    # An int of a trace is cast from its 64 bits: as a Python int, it may be larger than int32.
    tensor = x.wide() if hasattr(type(x), "__ag_number__") and x.kind is int else convert_to_tensor(x)  # type: ignore[union-attr]
    return tensor if tensor.dtype is wanted else apply(CAST, (tensor,), {"dtype": wanted})
