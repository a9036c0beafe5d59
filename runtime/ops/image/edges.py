"""How images change from one pixel to the next."""

from __future__ import annotations

from runtime import errors
from runtime.ops.arrays.joining import stack
from runtime.ops.arrays.rearrange import pad
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.convert import convert_to_tensor
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.arithmetic import abs as abs_
from runtime.ops.image.checks import known_rank
from runtime.tensor import Tensor, TensorLike


@deferrable
def sobel_edges(image: TensorLike) -> Tensor:
    """The gradients along height and width by Sobel's operators, on images mirrored at their edges.

    image: floats, shape (batch, height, width, channels). Shape of the result: with (dy, dx) as a last dimension.
    Raises InvalidArgumentError for images of another rank, or of less than two rows or columns.
    """
    x = convert_to_tensor(image)
    if known_rank(x, "'image'") != 4:
        raise errors.InvalidArgumentError(f"'image' (shape {x.shape}) must be four-dimensional.", "sobel_edges")
    wide = pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    above, middle, below = wide[:, :-2], wide[:, 1:-1], wide[:, 2:]
    rows = below - above
    smooth = above + middle * 2 + below
    down = rows[:, :, :-2] + rows[:, :, 1:-1] * 2 + rows[:, :, 2:]
    across = smooth[:, :, 2:] - smooth[:, :, :-2]
    return stack([down, across], axis=-1)


@deferrable
def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the absolute differences of neighbouring pixels: one number, or one for each image of a batch.

    images: shape (batch, height, width, channels) or (height, width, channels). Raises ValueError for another rank.
    """
    x = convert_to_tensor(images)
    if x._shape is not None and len(x._shape) not in (3, 4):
        raise ValueError("'images' must be either 3 or 4-dimensional.")
    axes = None if known_rank(x, "'images'") == 3 else [1, 2, 3]
    down = x[..., 1:, :, :] - x[..., :-1, :, :]
    across = x[..., 1:, :] - x[..., :-1, :]
    return reduce_sum(abs_(down), axes) + reduce_sum(abs_(across), axes)


@deferrable
def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """Differences to the next row and to the next column, 0 in the last ones: (dy, dx).

    image: shape (batch, height, width, channels). Raises ValueError for another rank.
    """
    x = convert_to_tensor(image)
    if known_rank(x, "image_gradients expects a 4D tensor [batch_size, h, w, d]: image") != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {x.shape}.")
    down, across = x[:, 1:] - x[:, :-1], x[:, :, 1:] - x[:, :, :-1]
    return pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]]), pad(across, [[0, 0], [0, 0], [0, 1], [0, 0]])
