"""Images of another size: `resize` and what pads or crops to keep proportions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays.shape_ops import ensure_shape
from runtime.ops.convert import convert_to_tensor, int_list
from runtime.ops.deferred_calls import deferrable
from runtime.ops.elementwise.arithmetic import maximum, minimum
from runtime.ops.elementwise.elementary import cast, floor
from runtime.ops.elementwise.elementary import round as round_
from runtime.ops.image.boxes import crop_to_bounding_box, pad_to_bounding_box
from runtime.ops.image.checks import batch_of, need, need_positive, unbatched
from runtime.ops.image.resampling import resample
from runtime.ops.rules import dims
from runtime.tensor import Tensor, TensorLike


class ResizeMethod:
    """The names of the methods of `resize`."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


_METHODS = tuple(value for name, value in vars(ResizeMethod).items() if name.isupper())
_FLOAT = dtypes.float32


def _new_size(size: Any) -> list[Any]:
    """Height and width: ints where known. Raises ValueError for what isn't two integers."""
    try:
        entries = int_list(size, "size")
    except (TypeError, errors.OpError):
        raise ValueError(f"'size' must be a 1-D int32 Tensor, got {size!r}") from None
    if len(entries) != 2 or None in entries:
        raise ValueError(f"'size' must be a 1-D Tensor of 2 elements: new_height, new_width; got {size!r}")
    return [cast(e, dtypes.int32) if isinstance(e, Tensor) else e for e in entries]


def _keep_ratio(size: list[Any], old: list[Any]) -> list[Any]:
    """The largest size within `size` in the proportions of `old`, each side rounded."""
    goals, sides = _floats(size), _floats(old)
    factor = _either(minimum, min, goals[0] / sides[0], goals[1] / sides[1])
    return [_integer(_either(round_, np.round, factor * side)) for side in sides]


def _floats(sizes: Sequence[Any]) -> list[Any]:
    """float32 numbers where all sizes are known, else tensors."""
    if all(isinstance(size, int) for size in sizes):
        return [np.float32(size) for size in sizes]
    return [cast(convert_to_tensor(size), _FLOAT) for size in sizes]


def _either(of_tensors: Callable[..., Any], of_numbers: Callable[..., Any], *operands: Any) -> Any:
    """One function or another, as there is a tensor among the operands or not."""
    return (of_tensors if any(isinstance(each, Tensor) for each in operands) else of_numbers)(*operands)


def _integer(value: Any) -> Any:
    return cast(value, dtypes.int32) if isinstance(value, Tensor) else int(value)


@deferrable
def resize(
    images: TensorLike, size: Any, method: str = ResizeMethod.BILINEAR, preserve_aspect_ratio: bool = False,
    antialias: bool = False, name: str | None = None,
) -> Tensor:  # fmt: skip
    """Resizes images to another height and width.

    images: shape (batch, height, width, channels) or (height, width, channels), numbers of any dtype.
    size: the new height and width. method: one of `ResizeMethod`. preserve_aspect_ratio: `size` is an upper bound, the
    proportions stay. antialias: if images shrink, the filter covers all pixels that map to one ("area" always does,
    "nearest" never).

    The result is float32; with "nearest" it has the images' dtype. All methods are differentiable. Raises ValueError
    for images of another rank, a size that isn't two integers or an unknown method, InvalidArgumentError for sizes that
    aren't positive and images without pixels.
    """
    x = convert_to_tensor(images)
    if x.dtype.kind not in "iuf":
        raise errors.DTypeError(f"images must be numbers, got {x.dtype.name} [Op:Resize]", "resize")
    x, single = batch_of(x, "'images'")
    new = _new_size(size)
    if method not in _METHODS:
        raise ValueError(f"Resize method is not implemented: {method}")
    old = dims(x)[1:3]
    if preserve_aspect_ratio:
        new = _keep_ratio(new, old)
    for side in new:
        need_positive(side, "output dimensions must be positive")
    for side in old:
        need_positive(side, "input image must be of non-zero size")
    if method != ResizeMethod.NEAREST_NEIGHBOR:
        x = cast(x, _FLOAT)
    for axis in (1, 2):
        x = resample(x, axis, old[axis - 1], new[axis - 1], method, bool(antialias))
    known = [None, *[side if isinstance(side, int) else None for side in new], None]
    return unbatched(ensure_shape(x, known) if None in (x._shape or (None,)) else x, single)


@deferrable
def resize_with_pad(
    image: TensorLike,
    target_height: Any,
    target_width: Any,
    method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Tensor:
    """Resizes images to fit into a given size, keeping their proportions, and pads the rest with zeros.

    image, method, antialias: as in `resize`. Raises ValueError for images of another rank and targets that aren't
    positive.
    """
    x, single = batch_of(convert_to_tensor(image), "'image'")
    need(target_width, lambda n: n > 0, "target_width must be > 0.")
    need(target_height, lambda n: n > 0, "target_height must be > 0.")
    sides, goals = _floats(dims(x)[1:3]), _floats([target_height, target_width])
    ratio = _either(maximum, max, sides[1] / goals[1], sides[0] / goals[0])
    exact = [side / ratio for side in sides]
    new = [_integer(_either(floor, np.floor, side)) for side in exact]
    margins = [_integer(_either(floor, np.floor, (goal - side) / 2)) for goal, side in zip(goals, exact)]
    before = [_either(maximum, max, margin, 0) for margin in margins]
    resized = resize(x, new, method, antialias=antialias)
    return unbatched(pad_to_bounding_box(resized, before[0], before[1], target_height, target_width), single)


@deferrable
def resize_with_crop_or_pad(image: TensorLike, target_height: Any, target_width: Any) -> Tensor:
    """Crops images to their middle, or pads them with zeros around, to a given size.

    image: shape (batch, height, width, channels) or (height, width, channels). Raises ValueError for images of another
    rank and targets that aren't positive.
    """
    x, single = batch_of(convert_to_tensor(image), "'image'")
    need(target_width, lambda n: n > 0, "target_width must be > 0.")
    need(target_height, lambda n: n > 0, "target_height must be > 0.")
    crops, pads, kept = [], [], []
    for old, target in zip(dims(x)[1:3], (target_height, target_width)):
        more = target - old
        crops.append(_either(maximum, max, -more // 2, 0))
        pads.append(_either(maximum, max, more // 2, 0))
        kept.append(_either(minimum, min, target, old))
    cropped = crop_to_bounding_box(x, *crops, *kept)
    return unbatched(pad_to_bounding_box(cropped, pads[0], pads[1], target_height, target_width), single)
