"""Functions of neural networks (`ag.nn`), written with other ops."""

from __future__ import annotations

from typing import Any

from runtime import dtypes
from runtime.ops import arithmetic, reduce
from runtime.ops.array import known_rank
from runtime.ops.compare import where
from runtime.ops.control import assert_op
from runtime.ops.convert import check_kind, convert_to_tensor, operands
from runtime.ops.creation import zeros_like
from runtime.ops.dispatch import call
from runtime.ops.elementwise import exp, expm1, log1p, sigmoid
from runtime.ops.gather import one_hot
from runtime.ops.random import uniform
from runtime.ops.rules import dims
from runtime.ops.table import OPS
from runtime.tensor import Tensor


def _float_logits(logits: Any) -> Tensor:
    x = convert_to_tensor(logits)
    check_kind(OPS["exp"], x.dtype)
    return x


def _shifted(x: Tensor, axis: Any) -> Tensor:
    """x minus its maximum, a constant for gradients: the result doesn't depend on what is subtracted."""
    top = call("stop_gradient", reduce.reduce_max(x, axis, keepdims=True))
    return x - call("select", call("is_finite", top), top, convert_to_tensor(0, x.dtype))


def softmax(logits: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """exp(logits) / sum(exp(logits)) along `axis`, without overflow."""
    weights = exp(_shifted(_float_logits(logits), axis))
    return weights / reduce.reduce_sum(weights, axis, keepdims=True)


def log_softmax(logits: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """The logarithm of `softmax`, without overflow."""
    shifted = _shifted(_float_logits(logits), axis)
    return shifted - call("log", reduce.reduce_sum(exp(shifted), axis, keepdims=True))


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x where x > 0, else alpha * x."""
    x = convert_to_tensor(features)
    return where(x > 0, x, x * alpha)


def relu6(features: Any, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6)."""
    return arithmetic.clip_by_value(features, 0, 6)


def elu(features: Any, name: str | None = None) -> Tensor:
    """x where x > 0, else exp(x) - 1."""
    x = convert_to_tensor(features)
    # The branch that isn't taken must stay finite, or its gradient would be NaN.
    return where(x > 0, x, expm1(arithmetic.minimum(x, 0)))


def selu(features: Any, name: str | None = None) -> Tensor:
    """Scaled exponential linear unit (Klambauer et al., "Self-normalizing neural networks", 2017)."""
    x = convert_to_tensor(features)
    return where(x > 0, x, expm1(arithmetic.minimum(x, 0)) * 1.6732632423543772) * 1.0507009873554805


def silu(features: Any, beta: Any = 1.0) -> Tensor:
    """x * sigmoid(beta * x), also called swish."""
    x = convert_to_tensor(features)
    return x * sigmoid(x * beta)


swish = silu


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """x times the normal distribution function of x; `approximate` uses a tanh formula (Hendrycks & Gimpel, 2016)."""
    x = convert_to_tensor(features)
    if approximate:
        return x * 0.5 * (call("tanh", (x + x * x * x * 0.044715) * 0.7978845608028654) + 1)
    return x * 0.5 * (call("erf", x * 0.7071067811865476) + 1)


def softsign(features: Any, name: str | None = None) -> Tensor:
    """x / (abs(x) + 1)."""
    x = convert_to_tensor(features)
    return x / (abs(x) + 1)


def bias_add(value: Any, bias: Any, data_format: Any = None, name: str | None = None) -> Tensor:
    """value + bias, a vector along the last dimension (the second for data_format "NC...")."""
    x, b = operands("BiasAdd", value, bias)
    if data_format is not None and str(data_format).startswith("NC"):
        b = call("expand_dims", b, axis=tuple(range(1, known_rank(x, "bias_add") - 1)))
    return x + b


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of squares."""
    x = convert_to_tensor(t)
    return reduce.reduce_sum(x * x) * 0.5


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """x / sqrt(max(sum(x**2), epsilon)), the sum over `axis`."""
    tensor = convert_to_tensor(x)
    total = reduce.reduce_sum(tensor * tensor, axis, keepdims=True)
    return tensor * call("rsqrt", arithmetic.maximum(total, epsilon))


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`."""
    tensor = convert_to_tensor(x)
    return reduce.reduce_mean(tensor, axes, keepdims), reduce.reduce_variance(tensor, axes, keepdims)


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: Any = -1, name: str | None = None) -> Tensor:
    """-sum(labels * log_softmax(logits)) along `axis`; `labels` are probabilities of the shape of `logits`."""
    x = _float_logits(logits)
    targets = convert_to_tensor(labels, x.dtype)
    return -reduce.reduce_sum(targets * log_softmax(x, axis), axis)


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """-log_softmax(logits)[label]: `labels` are class numbers, of the shape of `logits` without its last dimension.

    Raises InvalidArgumentError for a label out of range.
    """
    x = _float_logits(logits)
    classes = convert_to_tensor(labels)
    depth = call("dim", x, axis=known_rank(x, "sparse_softmax_cross_entropy_with_logits") - 1)
    count = (x._shape or (None,))[-1]
    bound = call("cast", depth, dtype=classes.dtype) if count is None else count
    inside = reduce.reduce_all(call("logical_and", classes >= 0, classes < bound))
    assert_op(
        inside, f"Received a label value which is outside the valid range of [0, {'?' if count is None else count})."
        "  Label values", data=[classes],
    )  # fmt: skip
    picked = one_hot(classes, depth if count is None else count, dtype=x.dtype)
    return -reduce.reduce_sum(picked * log_softmax(x), -1)


def sigmoid_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """-labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x)), elementwise and without overflow."""
    x = _float_logits(logits)
    targets = convert_to_tensor(labels, x.dtype)
    return call("relu", x) - x * targets + log1p(exp(-abs(x)))


def dropout(x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None) -> Tensor:
    """x with each element zeroed with probability `rate`, the others divided by 1 - rate.

    Raises ValueError for a rate outside of [0, 1).
    """
    tensor = convert_to_tensor(x)
    if isinstance(rate, (int, float)):
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
        if rate == 0:
            return tensor
    share = convert_to_tensor(rate, tensor.dtype)
    drawn = uniform(dims(tensor) if noise_shape is None else noise_shape, dtype=tensor.dtype, seed=seed)
    return where(drawn >= share, tensor / (1 - share), zeros_like(tensor))


def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> Tensor:
    """The rows of `params` at `ids`."""
    if max_norm is not None:
        raise NotImplementedError("embedding_lookup with max_norm is not implemented")
    return call("gather", convert_to_tensor(params), convert_to_tensor(ids, dtype_hint=dtypes.int32), axis=0)
