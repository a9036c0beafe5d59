"""`tf.raw_ops`: what libraries call by its raw name, each by the public functions that do the same."""

from __future__ import annotations

import collections
import math
from typing import Any

import numpy as np

import autograph as ag
from autograph.facade.tensorflow.recurrent import block_lstm, cudnn_rnn
from runtime.ops.convert import operands
from runtime.ops.dispatch import apply
from runtime.ops.random.stateless import gamma_slope
from runtime.ops.table import OPS

UniqueV2 = collections.namedtuple("UniqueV2", "y idx")
UniqueWithCountsV2 = collections.namedtuple("UniqueWithCountsV2", "y idx count")
FusedBatchNormV2 = collections.namedtuple(
    "FusedBatchNormV2", "y batch_mean batch_variance reserve_space_1 reserve_space_2"
)
FusedBatchNormV3 = collections.namedtuple(
    "FusedBatchNormV3", "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3"
)


def bucketize(input: Any, boundaries: Any, name: str | None = None) -> Any:
    """Of each number, how many boundaries are at most as large: int32."""
    x = ag.convert_to_tensor(input)
    dtype = x.dtype if x.dtype.is_floating else ag.float32
    found = ag.searchsorted(ag.constant(list(boundaries), dtype), ag.reshape(ag.cast(x, dtype), [-1]), side="right")
    return ag.reshape(ag.cast(found, ag.int32), ag.shape(x))


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any,
    variance: Any,
    epsilon: float = 1e-4,
    exponential_avg_factor: float = 1.0,
    data_format: Any = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> Any:
    """Batch normalisation over all but the channels, and the mean and (unbiased) variance of the batch."""
    x = ag.convert_to_tensor(x)
    rank = x.shape.rank
    last = ag.compat.as_text(data_format).endswith("C")
    channel = rank - 1 if last else 1
    axes = [axis for axis in range(rank) if axis != channel]
    if is_training:
        used_mean, used_variance = ag.nn.moments(ag.cast(x, ag.float32) if x.dtype.size < 4 else x, axes)
    else:
        used_mean, used_variance = ag.convert_to_tensor(mean), ag.convert_to_tensor(variance)
    shape = [1 if axis != channel else -1 for axis in range(rank)]
    wide = ag.cast(x, used_mean.dtype)
    at, spread, shift, factor = (ag.reshape(part, shape) for part in (used_mean, used_variance, offset, scale))
    y = ag.cast(ag.nn.batch_normalization(wide, at, spread, shift, factor, epsilon), x.dtype)
    count = ag.cast(ag.size(x) // ag.size(used_mean), used_variance.dtype)
    unbiased = used_variance * count / ag.maximum(count - 1, 1) if is_training else used_variance
    if is_training and exponential_avg_factor != 1.0:
        kept = 1 - exponential_avg_factor
        batch_mean = used_mean * exponential_avg_factor + kept * ag.convert_to_tensor(mean)
        batch_variance = unbiased * exponential_avg_factor + kept * ag.convert_to_tensor(variance)
    else:
        batch_mean, batch_variance = used_mean, unbiased
    return FusedBatchNormV3(y, batch_mean, batch_variance, used_mean, used_variance, used_variance)


def _unique_slices(x: np.ndarray, axis: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The different slices in the order in which they come, for each slice its place among them, and their counts."""
    at = int(np.reshape(axis, -1)[0]) if np.size(axis) else 0
    slices = np.moveaxis(x, at, 0)
    slices = slices.reshape(len(slices), math.prod(slices.shape[1:]))
    if slices.dtype.kind in "fc":  # what has a NaN is like nothing else
        odd = np.isnan(slices).any(axis=1, keepdims=True)
        places = np.arange(len(slices))[:, None]
        slices = np.concatenate([np.nan_to_num(slices), np.where(odd, places, -1)], axis=1)
    _, first, inverse, counts = np.unique(slices, axis=0, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(first)
    places = np.argsort(order)[np.reshape(inverse, -1)]
    return np.take(x, first[order], at), places, counts[order]


def unique_with_counts(x: Any, axis: Any, out_idx: Any = ag.int32, name: str | None = None) -> Any:
    """The different slices of a tensor along an axis, in the order in which they come.

    Gives y, idx and count: the slices, for each slice of x its place in y, and how often each occurs.
    """
    x = ag.convert_to_tensor(x)
    types = [x.dtype, ag.int64, ag.int64]
    y, places, counts = ag.numpy_function(_unique_slices, [x, ag.convert_to_tensor(axis)], types)
    if x.shape.rank is not None:
        y = ag.ensure_shape(y, [None] * x.shape.rank)
    places, counts = (ag.cast(ag.ensure_shape(each, [None]), out_idx) for each in (places, counts))
    return UniqueWithCountsV2(y, places, counts)


def prevent_gradient(input: Any, message: str = "", name: str | None = None) -> Any:
    """The same values; whoever asks for a gradient through them gets a LookupError with the message."""

    @ag.custom_gradient
    def identity(x: Any) -> Any:
        def grad(*upstream: Any) -> Any:
            raise LookupError(f"Gradient explicitly disabled. Reason: {message!r}")

        return ag.identity(x), grad

    return identity(input)


def igamma_grad_a(a: Any, x: Any, name: str | None = None) -> Any:
    """The derivative of `igamma` by its first argument."""
    a, x = operands("igamma_grad_a", a, x)
    return apply(OPS["igamma_derivative"], [a, x], {"order": 1})


def random_gamma_grad(alpha: Any, sample: Any, name: str | None = None) -> Any:
    """The derivative of a gamma-distributed number by the distribution's shape."""
    alpha, sample = operands("random_gamma_grad", alpha, sample)
    return gamma_slope(alpha, sample)


BroadcastGradientArgs = collections.namedtuple("BroadcastGradientArgs", "r0 r1")


def _summed_axes(s0: np.ndarray, s1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rank = max(len(s0), len(s1))
    one, other = (np.concatenate([np.ones(rank - len(s), s.dtype), s]) for s in (s0, s1))
    whole = np.maximum(one, other)
    # Where both are 1, both are summed: that changes nothing.
    return tuple(np.flatnonzero((s == 1) & ((whole != 1) | (rest == 1))).astype(s0.dtype) for s, rest in (
        (one, other), (other, one)
    ))  # type: ignore[return-value]  # fmt: skip


def broadcast_gradient_args(s0: Any, s1: Any, name: str | None = None) -> Any:
    """For two shapes that broadcast, the axes over which the gradient of either is summed."""
    known = [ag.get_static_value(each) for each in (s0, s1)]
    if all(each is not None for each in known):
        return BroadcastGradientArgs(*map(ag.constant, _summed_axes(*[np.asarray(each, np.int32) for each in known])))
    shapes = [ag.convert_to_tensor(each) for each in (s0, s1)]
    return BroadcastGradientArgs(*ag.numpy_function(_summed_axes, shapes, [shapes[0].dtype] * 2))


def _no_cudnn(**options: Any) -> Any:
    """What Keras calls first where there is a GPU: it computes without cuDNN then."""
    raise ag.errors.NotFoundError("No registered 'CudnnRNNV3' OpKernel: recurrent layers don't use cuDNN")


MODULES: dict[str, dict[str, Any]] = {
    "tensorflow.raw_ops": {
        "BlockLSTMV2": block_lstm,
        "BroadcastGradientArgs": broadcast_gradient_args,
        "Bucketize": bucketize,
        "CudnnRNN": cudnn_rnn,
        "CudnnRNNV3": _no_cudnn,
        "FusedBatchNormV2": lambda **options: FusedBatchNormV2(*fused_batch_norm(**options)[:5]),
        "FusedBatchNormV3": fused_batch_norm,
        "IgammaGradA": igamma_grad_a,
        "ImageProjectiveTransformV3": ag.image.projective_transform,
        "MatrixDiagPartV2": ag.linalg.diag_part,
        "PreventGradient": prevent_gradient,
        "RandomGammaGrad": random_gamma_grad,
        "ResourceApplyGradientDescent": lambda var, alpha, delta, **options: var.assign_sub(alpha * delta),
        "UniqueV2": lambda **options: UniqueV2(*unique_with_counts(**options)[:2]),
        "UniqueWithCountsV2": unique_with_counts,
    }
}
