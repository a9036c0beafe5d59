"""Elementwise operators."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from autograph.onnx_models.operators.registry import Call, dtype_of, number, operator
from runtime import dtypes
from runtime.ops import api as ops
from runtime.ops.dispatch import call
from runtime.ops.nn import nn_ops

_SAME: dict[str, Callable[..., Any]] = {
    "Abs": ops.abs, "Acos": ops.acos, "Acosh": ops.acosh, "Asin": ops.asin, "Asinh": ops.asinh, "Atan": ops.atan,
    "Atanh": ops.atanh, "Ceil": ops.ceil, "Cos": ops.cos, "Cosh": ops.cosh, "Erf": ops.erf, "Exp": ops.exp,
    "Floor": ops.floor, "Identity": ops.identity, "Log": ops.log, "Neg": ops.negative, "Not": ops.logical_not,
    "Reciprocal": ops.reciprocal, "Relu": ops.relu, "Round": ops.rint, "Sigmoid": ops.sigmoid, "Sign": ops.sign,
    "Sin": ops.sin, "Sinh": ops.sinh, "Softplus": ops.softplus, "Softsign": ops.softsign, "Sqrt": ops.sqrt,
    "Tan": ops.tan, "Tanh": ops.tanh, "IsNaN": ops.is_nan, "BitwiseNot": ops.invert,
    "Add": ops.add, "Sub": ops.subtract, "Mul": ops.multiply, "And": ops.logical_and, "Or": ops.logical_or,
    "Xor": ops.logical_xor, "Equal": ops.equal, "Less": ops.less, "LessOrEqual": ops.less_equal,
    "Greater": ops.greater, "GreaterOrEqual": ops.greater_equal, "BitwiseAnd": ops.bitwise_and,
    "BitwiseOr": ops.bitwise_or, "BitwiseXor": ops.bitwise_xor, "Where": ops.where,
}  # fmt: skip


@operator(*_SAME)
def _same(node: Call, *inputs: Any) -> Any:
    if node.op == "Identity" and not hasattr(inputs[0], "dtype"):
        return (inputs[0],)  # a sequence, or nothing
    return _SAME[node.op](*inputs)


@operator("Div")
def _div(node: Call, x: Any, y: Any) -> Any:
    return ops.divide(x, y) if x.dtype.is_floating or x.dtype.is_complex else call("truncatediv", x, y)


@operator("Mod")
def _mod(node: Call, x: Any, y: Any) -> Any:
    if not node.get("fmod", 0):
        return ops.floormod(x, y)
    return x - y * (ops.trunc(x / y) if x.dtype.is_floating else call("truncatediv", x, y))


@operator("Pow")
def _pow(node: Call, x: Any, y: Any) -> Any:
    wide = y.dtype if y.dtype.is_floating and not x.dtype.is_floating else x.dtype
    return ops.cast(ops.pow(ops.cast(x, wide), ops.cast(y, wide)), x.dtype)


@operator("BitShift")
def _shift(node: Call, x: Any, y: Any) -> Any:
    return (ops.left_shift if node.get("direction") == "LEFT" else ops.right_shift)(x, y)


_FOLDED: dict[str, Callable[..., Any]] = {
    "Sum": ops.add, "Mean": ops.add, "Max": ops.maximum, "Min": ops.minimum,
}  # fmt: skip


@operator(*_FOLDED)
def _folded(node: Call, *inputs: Any) -> Any:
    total = functools.reduce(_FOLDED[node.op], inputs)
    return total / number(len(inputs), total) if node.op == "Mean" else total


@operator("Cast", "CastLike")
def _cast(node: Call, x: Any, like: Any = None) -> Any:
    wanted = dtype_of(node.get("to")) if like is None else like.dtype
    if x.dtype is dtypes.string:
        return x if wanted is dtypes.string else ops.string_ops.to_number(x, wanted)
    if wanted is dtypes.string:
        if x.dtype.is_floating:
            raise node.refuse("floating-point numbers as text depend on the implementation")
        return ops.string_ops.as_string(x)
    if wanted.size == 1 and wanted.is_floating and node.get("saturate", 1) and x.dtype.is_floating:
        x = ops.clip_by_value(x, number(float(wanted.min), x), number(float(wanted.max), x))
    return ops.cast(x, wanted)


@operator("Clip")
def _clip(node: Call, x: Any, low: Any = None, high: Any = None) -> Any:
    low = node.get("min") if low is None else low
    high = node.get("max") if high is None else high
    for limit, pick in ((low, ops.maximum), (high, ops.minimum)):
        if limit is not None:
            x = pick(x, limit if hasattr(limit, "dtype") else number(limit, x))
    return x


@operator("IsInf")
def _is_inf(node: Call, x: Any) -> Any:
    found = ops.is_inf(x)
    if not node.get("detect_positive", 1):
        found = ops.logical_and(found, x < number(0, x))
    if not node.get("detect_negative", 1):
        found = ops.logical_and(found, x > number(0, x))
    return found


# --- activations -----------------------------------------------------------------------------------------------------


def _scaled(x: Any, factor: float) -> Any:
    return x * number(factor, x)


@operator("Elu", "Celu", "Selu")
def _elu(node: Call, x: Any) -> Any:
    selu = node.op == "Selu"
    alpha = node.get("alpha", 1.67326319217681884765625 if selu else 1.0)
    inner = _scaled(x, 1 / alpha) if node.op == "Celu" else x
    below = _scaled(ops.expm1(ops.minimum(inner, number(0, x))), alpha)
    result = ops.where(x < number(0, x), below, x)
    return _scaled(result, node.get("gamma", 1.05070102214813232421875)) if selu else result


@operator("LeakyRelu")
def _leaky_relu(node: Call, x: Any) -> Any:
    return ops.where(x < number(0, x), _scaled(x, node.get("alpha", 0.01)), x)


@operator("PRelu")
def _prelu(node: Call, x: Any, slope: Any) -> Any:
    if node.version < 7 and node.rank(slope) == 1:  # one of each channel
        slope = ops.reshape(slope, [-1, *[1] * (node.rank(x) - 2)])
    return ops.where(x < number(0, x), x * slope, x)


@operator("ThresholdedRelu")
def _thresholded_relu(node: Call, x: Any) -> Any:
    return ops.where(x > number(node.get("alpha", 1.0), x), x, ops.zeros_like(x))


@operator("HardSigmoid")
def _hard_sigmoid(node: Call, x: Any) -> Any:
    return hard_sigmoid(x, node.get("alpha", 0.2), node.get("beta", 0.5))


def hard_sigmoid(x: Any, alpha: float, beta: float) -> Any:
    return ops.maximum(number(0, x), ops.minimum(number(1, x), _scaled(x, alpha) + number(beta, x)))


@operator("HardSwish")
def _hard_swish(node: Call, x: Any) -> Any:
    return x * hard_sigmoid(x, 1 / 6, 0.5)


@operator("Swish")
def _swish(node: Call, x: Any) -> Any:
    return x * ops.sigmoid(_scaled(x, node.get("alpha", 1.0)))


@operator("Mish")
def _mish(node: Call, x: Any) -> Any:
    return x * ops.tanh(ops.softplus(x))


@operator("Gelu")
def _gelu(node: Call, x: Any) -> Any:
    return nn_ops.gelu(x, approximate=node.get("approximate", "none") == "tanh")


@operator("Shrink")
def _shrink(node: Call, x: Any) -> Any:
    lambd, bias, zero = number(node.get("lambd", 0.5), x), number(node.get("bias", 0.0), x), ops.zeros_like(x)
    return ops.where(x < -lambd, x + bias, ops.where(x > lambd, x - bias, zero))


# --- strings ---------------------------------------------------------------------------------------------------------


@operator("StringConcat")
def _string_concat(node: Call, x: Any, y: Any) -> Any:
    return call("string_add", x, y)


@operator("RegexFullMatch")
def _regex_full_match(node: Call, x: Any) -> Any:
    return ops.string_ops.regex_full_match(x, node.get("pattern"))


# --- quantization ----------------------------------------------------------------------------------------------------


def _along(node: Call, x: Any, scale: Any) -> Any:
    """A scale, of each element along an axis, in the rank of x."""
    if node.get("block_size", 0):
        raise node.refuse("scales of blocks aren't translated")
    if node.rank(scale) == 0:
        return scale
    rank, axis = node.rank(x), node.get("axis", 1)
    return ops.reshape(scale, [-1 if k == axis % rank else 1 for k in range(rank)])


@operator("QuantizeLinear")
def _quantize(node: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    wanted = zero.dtype if zero is not None else dtype_of(node.get("output_dtype", 0) or 2)
    if not wanted.is_integer:
        raise node.refuse(f"to {wanted.name} isn't translated")
    limits = np.iinfo(wanted.np)
    steps = ops.rint(x / ops.cast(_along(node, x, scale), x.dtype))
    steps = ops.cast(steps, dtypes.int32)
    if zero is not None:
        steps = steps + ops.cast(_along(node, x, zero), dtypes.int32)
    return ops.cast(ops.clip_by_value(steps, number(limits.min, steps), number(limits.max, steps)), wanted)


@operator("DequantizeLinear")
def _dequantize(node: Call, x: Any, scale: Any, zero: Any = None) -> Any:
    steps = ops.cast(x, dtypes.float32)
    if zero is not None:
        steps = steps - ops.cast(_along(node, x, zero), dtypes.float32)
    return ops.cast(steps * ops.cast(_along(node, x, scale), dtypes.float32), scale.dtype)


@operator("Affine", "Scale")
def _affine(node: Call, x: Any) -> Any:
    return _scaled(x, node.get("alpha", node.get("scale", 1.0))) + number(node.get("beta", 0.0), x)
