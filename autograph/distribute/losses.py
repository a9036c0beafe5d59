"""Losses of replicas: sums over their rows, divided by what belongs to all replicas together."""

from __future__ import annotations

from typing import Any

from autograph.distribute.contexts import in_cross_replica_context, number_of_replicas
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.arrays.shape_ops import shape
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.tensor import Tensor


def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """The sum of a replica's losses over the size of the whole batch: summed over replicas, the batch's average.

    per_example_loss   a float for each row, with further dimensions if needed
    sample_weight      factors that broadcast to them
    global_batch_size  rows of all replicas; default: this replica's, times the number of replicas

    Raises RuntimeError outside of replicas in a strategy's scope, ValueError for losses without rows.
    """
    losses = convert_to_tensor(per_example_loss)
    if losses._shape == ():
        raise ValueError(
            "per_example_loss must contain a loss for each example, got a scalar: don't reduce over the first dimension"
        )
    if in_cross_replica_context():
        raise RuntimeError(
            "You are calling `compute_average_loss` in cross replica context, while it was expected to be called in "
            "replica context: call it in the function that strategy.run runs"
        )
    if sample_weight is not None:
        losses = losses * cast(convert_to_tensor(sample_weight), losses.dtype)
    if global_batch_size is None:
        global_batch_size = shape(losses)[0] * number_of_replicas()
    return reduce_sum(losses) / cast(convert_to_tensor(global_batch_size), losses.dtype)


def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of a penalty of the weights, divided by the number of replicas, all of which add it to their loss.

    Raises RuntimeError outside of replicas in a strategy's scope.
    """
    if in_cross_replica_context():
        raise RuntimeError(
            "You are calling `scale_regularization_loss` in cross replica context, while it was expected to be called "
            "in replica context: call it in the function that strategy.run runs"
        )
    total = reduce_sum(convert_to_tensor(regularization_loss))
    return total / cast(convert_to_tensor(number_of_replicas()), total.dtype)
