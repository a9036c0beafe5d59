"""What the functions of images check of their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from runtime import errors
from runtime.ops.arrays.shape_ops import ensure_shape, expand_dims, squeeze
from runtime.ops.control import assert_op
from runtime.ops.convert import is_tensor_like, static_value
from runtime.ops.rules import brackets
from runtime.tensor import Tensor


def known_rank(x: Tensor, what: str) -> int:
    """The rank, 3 or 4. Raises ValueError for another one, and for one that isn't known."""
    if x._shape is None:
        raise ValueError(f"{what} contains no shape.")
    if len(x._shape) not in (3, 4):
        raise ValueError(f"{what} (shape {x.shape}) must have either 3 or 4 dimensions.")
    return len(x._shape)


def of_rank(x: Tensor, rank: int, what: str) -> Tensor:
    """The tensor. Raises InvalidArgumentError if it has another rank, at run time if that isn't known before."""
    if x._shape is None:
        return ensure_shape(x, [None] * rank)
    if len(x._shape) != rank:
        raise errors.InvalidArgumentError(f"{what} must be {rank}-D, got shape {brackets(x._shape)}")
    return x


def batch_of(x: Tensor, what: str) -> tuple[Tensor, bool]:
    """Images of rank 4, and whether there was one image without a batch. Raises ValueError for other ranks."""
    single = known_rank(x, what) == 3
    return (expand_dims(x, 0) if single else x), single


def unbatched(x: Tensor, single: bool) -> Tensor:
    """Undoes `batch_of`: removes the batch dimension if the image came without one (`single`)."""
    return squeeze(x, [0]) if single else x


def at_least_3d(x: Tensor, what: str = "image") -> Tensor:
    """The images. Raises ValueError if the rank is below 3 or a dimension of the images is 0."""
    if x._shape is None:
        raise ValueError(f"'{what}' contains no shape.")
    if len(x._shape) < 3:
        raise ValueError(f"'{what}' (shape {x.shape}) must be at least three-dimensional.")
    if 0 in x._shape[-3:]:
        raise ValueError(f"inner 3 dims of '{what}.shape' must be > 0: {x.shape}")
    return x


def need(value: Any, holds: Callable[[Any], Any], message: str) -> None:
    """Raises ValueError if a condition on a number doesn't hold, InvalidArgumentError if that is found later."""
    known = static_value(value) if isinstance(value, Tensor) else None
    if is_tensor_like(value) and known is None:
        assert_op(holds(value), message)
    elif not holds(value if known is None else known):
        raise ValueError(message)


def need_positive(value: int | Tensor, message: str) -> None:
    """Raises InvalidArgumentError unless a length is positive."""
    if isinstance(value, Tensor):
        assert_op(value > 0, message)
    elif value <= 0:
        raise errors.InvalidArgumentError(f"{message}, got {value}")
