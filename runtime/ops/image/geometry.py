"""Images turned and mirrored."""

from __future__ import annotations

from typing import Any

from runtime.ops.arrays import shape_ops
from runtime.ops.arrays.rearrange import reverse
from runtime.ops.convert import convert_to_tensor, scalar_int
from runtime.ops.deferred_calls import deferrable
from runtime.ops.image.checks import at_least_3d, known_rank
from runtime.tensor import Tensor, TensorLike


def _image(image: Any) -> tuple[Tensor, int]:
    """The images, and the axis of their height."""
    x = at_least_3d(convert_to_tensor(image))
    return x, known_rank(x, "'image'") - 3


@deferrable
def flip_left_right(image: TensorLike) -> Tensor:
    """Mirrors images left to right. image: shape (batch, height, width, channels) or (height, width, channels).

    Raises ValueError for another rank.
    """
    x, height = _image(image)
    return reverse(x, [height + 1])


@deferrable
def flip_up_down(image: TensorLike) -> Tensor:
    """Flips images upside down. image: shape (batch, height, width, channels) or (height, width, channels).

    Raises ValueError for another rank.
    """
    x, height = _image(image)
    return reverse(x, [height])


@deferrable
def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Exchanges the rows and columns of images. image: shape (batch, height, width, channels) or (height, width,
    channels).

    Raises ValueError for another rank.
    """
    x, height = _image(image)
    return _transposed(x, height)


def _transposed(x: Tensor, height: int) -> Tensor:
    return shape_ops.transpose(x, [0, 2, 1, 3] if height else [1, 0, 2])


@deferrable
def rot90(image: TensorLike, k: Any = 1, name: str | None = None) -> Tensor:
    """Rotates images counterclockwise `k` times by 90 degrees.

    image: shape (batch, height, width, channels) or (height, width, channels). k: an integer or a scalar tensor.
    Raises ValueError for another rank.
    """
    x, height = _image(image)
    times = scalar_int(k, "k")
    if isinstance(times, Tensor):
        raise ValueError("rot90 needs to know k while tracing")  # then it is put off
    turns = times % 4
    if turns == 0:
        return x
    if turns == 2:
        return reverse(x, [height, height + 1])
    if turns == 1:
        return _transposed(reverse(x, [height + 1]), height)
    return reverse(_transposed(x, height), [height + 1])
