"""Losses over many classes of which few are looked at: the true ones and some drawn at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays.creation import ones_like, zeros_like
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.reduce import reduce_any, reduce_sum
from runtime.ops.arrays.shape_ops import expand_dims, reshape, stop_gradient
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.compare import equal, where
from runtime.ops.elementwise.elementary import cast, log
from runtime.ops.linalg.matrix_products import matmul
from runtime.ops.nn.nn_ops import sigmoid_cross_entropy_with_logits, softmax_cross_entropy_with_logits
from runtime.ops.random.candidates import log_uniform_candidate_sampler
from runtime.ops.rules import brackets, dims
from runtime.tensor import Tensor, TensorLike

_LONG, _FLOAT = dtypes.int64, dtypes.float32
_LOWEST = np.finfo(np.float32).min


class AccidentalHits(NamedTuple):
    """The results of `compute_accidental_hits`."""

    indices: Tensor
    ids: Tensor
    weights: Tensor


def _hits(labels: Tensor, candidates: Tensor) -> Tensor:
    """Whether each candidate is one of a row's classes. bool, shape (batch, classes, candidates)."""
    return equal(expand_dims(labels, 2), candidates)


@deferrable
def compute_accidental_hits(
    true_classes: TensorLike, sampled_candidates: TensorLike, num_true: int, seed: int | None = None,
    name: str | None = None,
) -> AccidentalHits:  # fmt: skip
    """Which of the sampled classes are true ones. For each: `indices`, int32, the row; `ids`, int64, the place among
    the sampled; `weights`, the lowest float32, which takes it out of a softmax where it is added.

    true_classes: int64, shape (batch, num_true). sampled_candidates: int64, shape (sampled). Raises
    InvalidArgumentError for other shapes. `seed` has no effect.
    """
    labels, candidates = _matrix(true_classes, num_true), cast(convert_to_tensor(sampled_candidates), _LONG)
    where_hit = where(_hits(labels, candidates))
    rows, ids = cast(where_hit[:, 0], dtypes.int32), where_hit[:, 2]
    return AccidentalHits(rows, ids, zeros_like(ids, _FLOAT) + _LOWEST)


def _matrix(labels: Any, num_true: int) -> Tensor:
    found = cast(convert_to_tensor(labels), _LONG)
    if len(found._shape or ()) != 2 or found._shape[1] not in (num_true, None):  # type: ignore[index]
        raise errors.InvalidArgumentError(
            f"labels must have shape [batch, num_true] with num_true = {num_true}, got {brackets(found._shape)}"
        )
    return found


def _logits(
    weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int,
    sampled_values: Any, remove: bool, seed: int | None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Logits of true and sampled classes, shape (batch, true + sampled), less the logarithms of how often they are
    drawn; and the labels that they should have."""
    if isinstance(weights, Sequence) and not isinstance(weights, Tensor):
        weights = concat(list(weights), 0)
    known, x = _matrix(labels, num_true), convert_to_tensor(inputs)
    if sampled_values is None:
        sampled_values = log_uniform_candidate_sampler(known, num_true, num_sampled, True, num_classes, seed)
    found, true_expected, expected = (stop_gradient(value) for value in sampled_values)
    found = cast(found, _LONG)
    batch, width = dims(x)
    classes = concat([reshape(known, [-1]), found], 0)
    rows, shifts = gather(weights, classes), gather(biases, classes)
    count = batch * num_true
    true_rows = reshape(rows[:count], [batch, num_true, width])
    true = reduce_sum(expand_dims(x, 1) * true_rows, -1) + reshape(shifts[:count], [batch, num_true])
    sampled = matmul(x, rows[count:], transpose_b=True) + shifts[count:]
    if remove:
        sampled = sampled + where(reduce_any(_hits(known, found), 1), _LOWEST, np.float32(0.0))
    logits = concat([true - log(true_expected), sampled - log(expected)], 1)
    wanted = concat([ones_like(true) / float(num_true), zeros_like(sampled)], 1)
    return logits, stop_gradient(wanted)


@deferrable
def sampled_softmax_loss(
    weights: Any, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = True, seed: int | None = None,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The cross entropy of a softmax over the true classes and some drawn at random: for training with many classes.
    float32, shape (batch).

    weights: shape (num_classes, width), or a list of parts of it. biases: shape (num_classes). labels: the true
    classes, integers, shape (batch, num_true). inputs: shape (batch, width). sampled_values: what one of the samplers
    in `ag.random` returns, by default `log_uniform_candidate_sampler`. remove_accidental_hits: takes sampled classes
    out that are true ones. seed: of the sampler. Raises InvalidArgumentError for labels of another shape.
    """
    logits, wanted = _logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits,
        seed,
    )  # fmt: skip
    return softmax_cross_entropy_with_logits(wanted, logits)


@deferrable
def nce_loss(
    weights: Any, biases: TensorLike, labels: TensorLike, inputs: TensorLike, num_sampled: int, num_classes: int,
    num_true: int = 1, sampled_values: Any = None, remove_accidental_hits: bool = False, name: str = "nce_loss",
) -> Tensor:  # fmt: skip
    """The noise-contrastive estimation loss (Gutmann and Hyvärinen, 2010): the sum of the sigmoid cross entropies of
    the true classes and some drawn at random. float32, shape (batch). The arguments are those of
    `sampled_softmax_loss`."""
    logits, wanted = _logits(
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, remove_accidental_hits,
        None,
    )  # fmt: skip
    return reduce_sum(sigmoid_cross_entropy_with_logits(wanted, logits), 1)
