"""Functions of neural networks (`ag.nn`), written with other ops."""

from __future__ import annotations

from typing import Any

from runtime import dtypes, errors
from runtime.ops.arrays import reduce
from runtime.ops.arrays.creation import zeros_like
from runtime.ops.arrays.gather import gather_slices, one_hot
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.control import assert_op
from runtime.ops.convert import check_kind, convert_to_indices, convert_to_tensor, operands
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import call
from runtime.ops.elementwise import arithmetic
from runtime.ops.elementwise.compare import where
from runtime.ops.elementwise.elementary import exp, expm1, log1p, sigmoid
from runtime.ops.linalg.matrices import clip_by_norm
from runtime.ops.random import stateless
from runtime.ops.random.stateful import uniform
from runtime.ops.rules import dims
from runtime.ops.table import OPS
from runtime.tensor import Tensor, TensorLike


def _float_logits(logits: Any) -> Tensor:
    x = convert_to_tensor(logits)
    check_kind(OPS["exp"], x.dtype)
    return x


def _shifted(x: Tensor, axis: Any) -> Tensor:
    """x minus its maximum, a constant for gradients: the result doesn't depend on what is subtracted."""
    top = call("stop_gradient", reduce.reduce_max(x, axis, keepdims=True))
    return x - call("select", call("is_finite", top), top, convert_to_tensor(0, x.dtype))


@deferrable
def softmax(logits: TensorLike, axis: Any = -1, name: str | None = None) -> Tensor:
    """exp(logits) / sum(exp(logits)) along `axis`, without overflow."""
    weights = exp(_shifted(_float_logits(logits), axis))
    return weights / reduce.reduce_sum(weights, axis, keepdims=True)


@deferrable
def log_softmax(logits: TensorLike, axis: Any = -1, name: str | None = None) -> Tensor:
    """The logarithm of `softmax`, without overflow."""
    shifted = _shifted(_float_logits(logits), axis)
    return shifted - call("log", reduce.reduce_sum(exp(shifted), axis, keepdims=True))


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x where x > 0, else alpha * x."""
    x = convert_to_tensor(features)
    if x.dtype.kind in "iu":
        x = call("cast", x, dtype=dtypes.float32)
    return where(x > 0, x, x * alpha)


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """min(max(x, 0), 6). The gradient at 0 and at 6 is 0, as in TensorFlow."""
    x = convert_to_tensor(features)
    inside = call("logical_and", x > 0, x < 6)
    return where(inside, x, arithmetic.clip_by_value(call("stop_gradient", x), 0, 6))


def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """x where x > 0, else exp(x) - 1."""
    x = convert_to_tensor(features)
    # The branch that isn't taken must stay finite, or its gradient would be NaN.
    return where(x > 0, x, expm1(arithmetic.minimum(x, 0)))


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """Scaled exponential linear unit (Klambauer et al., "Self-normalizing neural networks", 2017)."""
    x = convert_to_tensor(features)
    return where(x >= 0, x, expm1(arithmetic.minimum(x, 0)) * 1.6732632423543772) * 1.0507009873554805


def silu(features: TensorLike, beta: Any = 1.0) -> Tensor:
    """x * sigmoid(beta * x), also called swish."""
    x = convert_to_tensor(features)
    return x * sigmoid(x * beta)


swish = silu


def gelu(features: TensorLike, approximate: bool = False, name: str | None = None) -> Tensor:
    """x times the normal distribution function of x; `approximate` uses a tanh formula (Hendrycks & Gimpel, 2016)."""
    x = convert_to_tensor(features)
    if x.dtype.kind != "f":
        raise ValueError(f"`features.dtype` must be a floating point tensor. Received: features.dtype={x.dtype}")
    if approximate:
        # sigmoid(2 z) has all of its digits far below 0, where 1 + tanh(z) has none.
        return x * sigmoid((x + x * x * x * 0.044715) * 1.5957691216057308)
    return x * 0.5 * (call("erf", x * 0.7071067811865476) + 1)


@deferrable
def bias_add(value: TensorLike, bias: Any, data_format: Any = None, name: str | None = None) -> Tensor:
    """value + bias, a vector along the last dimension (the second for data_format "NC...")."""
    x, b = operands("BiasAdd", value, bias)
    if data_format is not None and str(data_format).startswith("NC"):
        b = call("expand_dims", b, axis=tuple(range(1, known_rank(x, "bias_add") - 1)))
    return x + b


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Half the sum of squares."""
    x = convert_to_tensor(t)
    return reduce.reduce_sum(x * x) * 0.5


@deferrable
def l2_normalize(x: TensorLike, axis: Any = None, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """x / sqrt(max(sum(x**2), epsilon)), the sum over `axis`."""
    tensor = convert_to_tensor(x)
    total = reduce.reduce_sum(tensor * tensor, axis, keepdims=True)
    return tensor * call("rsqrt", arithmetic.maximum(total, epsilon))


@deferrable
def moments(
    x: TensorLike, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`."""
    tensor = convert_to_tensor(x)
    if isinstance(axes, (list, tuple)):
        axes = [int(axis) if isinstance(axis, bool) else axis for axis in axes]
    if tensor.dtype.kind in "iu":  # in integers, as TensorFlow counts
        distance = tensor - reduce.reduce_mean(tensor, axes, True)
        return reduce.reduce_mean(tensor, axes, keepdims), reduce.reduce_mean(distance * distance, axes, keepdims)
    mean, variance = reduce.reduce_mean(tensor, axes, True), reduce.reduce_variance(tensor, axes, keepdims)
    # The variance needs the mean of this shape, too: once is enough.
    return mean if keepdims else reduce.reduce_sum(mean, axes), variance


@deferrable
def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: Any = -1, name: str | None = None
) -> Tensor:
    """-sum(labels * log_softmax(logits)) along `axis`; `labels` are probabilities of the shape of `logits`."""
    x = _float_logits(logits)
    targets = convert_to_tensor(labels)
    if targets.dtype is not x.dtype:
        targets = call("cast", targets, dtype=x.dtype)
    return -reduce.reduce_sum(targets * log_softmax(x, axis), axis)


@deferrable
def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Tensor:
    """-log_softmax(logits)[label]: `labels` are class numbers, of the shape of `logits` without its last dimension.

    Raises InvalidArgumentError for a label out of range.
    """
    x = _float_logits(logits)
    classes = convert_to_indices(labels)
    if classes.dtype.kind not in "iu":
        raise errors.DTypeError(
            f"labels must be integers, got {classes.dtype.label} [Op:SparseSoftmaxCrossEntropyWithLogits]"
        )
    if x._shape is not None and classes._shape is not None:
        if len(classes._shape) != len(x._shape) - 1:
            raise ValueError(
                f"`labels.shape.rank` must equal `logits.shape.rank - 1`. Received: labels.shape={classes.shape} of "
                f"rank {len(classes._shape)} and logits.shape={x.shape} of rank {len(x._shape)}"
            )
        if not classes.shape.is_compatible_with(x._shape[:-1]):
            raise ValueError(
                "`labels.shape` must equal `logits.shape` except for the last dimension. Received: "
                f"labels.shape={classes.shape} and logits.shape={x.shape}"
            )
    depth = call("dim", x, axis=known_rank(x, "sparse_softmax_cross_entropy_with_logits") - 1)
    count = (x._shape or (None,))[-1]
    bound = call("cast", depth, dtype=classes.dtype) if count is None else count
    inside = reduce.reduce_all(call("logical_and", classes >= 0, classes < bound))
    assert_op(
        inside, f"Received a label value which is outside the valid range of [0, {'?' if count is None else count})."
        " [Op:SparseSoftmaxCrossEntropyWithLogits]  Label values", data=[classes],
    )  # fmt: skip
    # Selected, not multiplied: other classes may have logits of -inf.
    picked = one_hot(classes, depth if count is None else count, True, False, dtype=dtypes.bool_)
    return -reduce.reduce_sum(where(picked, log_softmax(x), convert_to_tensor(0, x.dtype)), -1)


def sigmoid_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, name: str | None = None) -> Tensor:
    """-labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x)), elementwise and without overflow."""
    x = _float_logits(logits)
    targets = convert_to_tensor(labels, x.dtype)
    if not x.shape.is_compatible_with(targets.shape):
        raise ValueError(f"`logits` and `labels` must have the same shape, received ({x.shape} vs {targets.shape}).")
    # Both kinks, of relu and of abs, are at 0: each branch has the whole of one side's derivatives. The factor of x is
    # exactly 0 for a label of 1 or 0 on its own side, and leaves the slope of the logarithm its digits.
    zero = zeros_like(x)
    positive = x >= zero
    return x * (call("cast", positive, dtype=x.dtype) - targets) + log1p(exp(where(positive, -x, x)))


@deferrable
def dropout(
    x: TensorLike, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """x with each element zeroed with probability `rate`, the others divided by 1 - rate.

    Raises ValueError for a rate outside of [0, 1).
    """
    tensor = _checked_for_dropout(x, rate)
    if isinstance(rate, (int, float)) and rate == 0:
        return tensor
    drawn = uniform(dims(tensor) if noise_shape is None else noise_shape, dtype=tensor.dtype, seed=seed)
    return _dropped(tensor, rate, drawn)


def stateless_dropout(
    x: TensorLike, rate: Any, seed: Any, rng_alg: Any = None, noise_shape: Any = None, name: str | None = None
) -> Tensor:
    """`dropout` whose random numbers depend only on `seed`, two integers.

    rng_alg: accepted; the numbers are those of `random.stateless_uniform`. Raises the errors of `dropout`.
    """
    tensor = _checked_for_dropout(x, rate)
    if isinstance(rate, (int, float)) and rate == 0:
        return tensor
    shape = dims(tensor) if noise_shape is None else noise_shape
    drawn = stateless.uniform(stateless.state_of(seed), shape, 0, None, tensor.dtype)
    return _dropped(tensor, rate, drawn)


def _dropped(tensor: Tensor, rate: Any, drawn: Tensor) -> Tensor:
    share = convert_to_tensor(rate, tensor.dtype)
    return where(drawn >= share, tensor / (1 - share), zeros_like(tensor))


def _checked_for_dropout(x: Any, rate: Any) -> Tensor:
    tensor = convert_to_tensor(x)
    if tensor.dtype.kind != "f":
        raise ValueError(
            f"`x.dtype` must be a floating point tensor as `x` will be scaled. Received: x_dtype={tensor.dtype}"
        )
    if isinstance(rate, (int, float)) and not 0 <= rate < 1:
        raise ValueError(f"`rate` must be a scalar tensor or a float in the range [0, 1). Received: rate={rate}")
    return tensor


@deferrable
def batch_normalization(
    x: TensorLike, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset; `offset` and `scale` may be None. All broadcast."""
    tensor = convert_to_tensor(x)
    factor = call("rsqrt", convert_to_tensor(variance, tensor.dtype) + variance_epsilon)
    if scale is not None:
        factor = factor * convert_to_tensor(scale, tensor.dtype)
    shift = -(convert_to_tensor(mean, tensor.dtype) * factor)
    return tensor * factor + (shift if offset is None else shift + convert_to_tensor(offset, tensor.dtype))


def weighted_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, pos_weight: Any, name: str | None = None
) -> Tensor:
    """`sigmoid_cross_entropy_with_logits` with the positive labels' part multiplied by `pos_weight`."""
    x = _float_logits(logits)
    targets = convert_to_tensor(labels, x.dtype)
    weight = targets * (convert_to_tensor(pos_weight, x.dtype) - 1) + 1
    return (1 - targets) * x + weight * call("softplus", -x)


def log_poisson_loss(
    targets: TensorLike, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """exp(log_input) - log_input * targets; the full loss adds Stirling's approximation of log(targets!)."""
    x = _float_logits(log_input)
    z = convert_to_tensor(targets, x.dtype)
    result = exp(x) - x * z
    if not compute_full_loss:
        return result
    safe = where(z > 1, z, convert_to_tensor(1, x.dtype))
    stirling = safe * call("log", safe) - safe + call("log", safe * 6.283185307179586) * 0.5
    return result + where(z > 1, stirling, zeros_like(z))


@deferrable
def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    """relu(x) and relu(-x) side by side."""
    x = convert_to_tensor(features)
    return concat([call("relu", x), call("relu", -x)], axis)


@deferrable
def weighted_moments(
    x: TensorLike, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance over `axes`, each element counted with its weight; weights broadcast."""
    tensor = convert_to_tensor(x)
    weights = convert_to_tensor(frequency_weights, tensor.dtype) + zeros_like(tensor)
    total = reduce.reduce_sum(weights, axes, keepdims=True)
    mean = reduce.reduce_sum(tensor * weights, axes, keepdims=True) / total
    spread = reduce.reduce_sum(weights * arithmetic.squared_difference(tensor, mean), axes, keepdims=True) / total
    if keepdims:
        return mean, spread
    return reduce.reduce_sum(mean, axes), reduce.reduce_sum(spread, axes)


@deferrable
def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """x / (bias + alpha * (sum of squares over neighbouring channels)) ** beta (Krizhevsky et al., 2012)."""
    x = convert_to_tensor(input)
    rank = known_rank(x, "local_response_normalization")
    size = 2 * depth_radius + 1
    wide = call("pad", x * x, paddings=((0, 0),) * (rank - 1) + ((depth_radius, depth_radius),), constant_values=0)
    channels = dims(x)[-1]
    total: Any = None
    for i in range(size):
        part = wide[..., i : i + channels]
        total = part if total is None else total + part
    return x / (total * alpha + bias) ** beta


@deferrable
def embedding_lookup(params: TensorLike, ids: Any, max_norm: Any = None, name: str | None = None) -> Tensor:
    """The rows of `params` at `ids`, scaled down to the norm `max_norm` if they are longer."""
    rows = gather_slices(convert_to_tensor(params), convert_to_tensor(ids, dtype_hint=dtypes.int32))
    if max_norm is None:
        return rows
    first = known_rank(convert_to_tensor(ids), "embedding_lookup")
    return clip_by_norm(rows, max_norm, axes=list(range(first, known_rank(rows, "embedding_lookup"))))
