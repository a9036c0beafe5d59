"""Boxes of objects chosen by their scores, without those that overlap better ones: non-maximum suppression."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from runtime import dtypes, errors
from runtime.ops.arrays.broadcasting import broadcast_to
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.creation import zeros
from runtime.ops.arrays.gather import gather
from runtime.ops.arrays.joining import concat
from runtime.ops.arrays.reduce import reduce_sum
from runtime.ops.arrays.shape_ops import ensure_shape, expand_dims, reshape, squeeze, transpose
from runtime.ops.arrays.sorting import argsort
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_tensor, scalar_int
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.arithmetic import clip_by_value, maximum, minimum
from runtime.ops.elementwise.compare import less, where
from runtime.ops.elementwise.elementary import cast
from runtime.ops.elementwise.special import nextafter
from runtime.ops.image.checks import of_rank
from runtime.ops.rules import brackets, dims
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

_FLOAT, _INT = dtypes.float32, dtypes.int32


def _need_alike(boxes: tuple[int | None, ...], scores: tuple[int | None, ...], overlaps: bool) -> None:
    """Raises ValueError unless boxes have shape (images, boxes, 4 or boxes) and scores (images, classes, boxes)."""
    if len(boxes) != 3 or len(scores) != 3:
        raise ValueError(f"boxes and scores must have rank 3, got shapes {brackets(boxes)} and {brackets(scores)}")
    expected = (scores[0], scores[2], scores[2] if overlaps else 4)
    if any(a != b and None not in (a, b) for a, b in zip(boxes, expected)):
        raise ValueError(f"boxes must have shape {brackets(expected)}, got {brackets(boxes)}")


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    boxes, scores, limit, *thresholds = inputs
    if len(thresholds) != 3 or not limit.dtype.is_integer:
        raise TypeError("suppress_boxes takes an integer and three thresholds")
    if boxes.shape is not None and scores.shape is not None:
        _need_alike(boxes.shape, scores.shape, attrs["overlaps"])
    shape = (None,) * 3 if scores.shape is None else scores.shape
    return TensorType(_INT, shape), TensorType(scores.dtype, shape), TensorType(_INT, shape[:2])


def _shares(boxes: Any) -> Callable[[int, int], Any]:
    """(one, first) -> how much of their union a box has in common with each from `first` on."""
    y1, x1, y2, x2 = boxes.T
    top, bottom = np.where(y2 < y1, y2, y1), np.where(y2 > y1, y2, y1)
    left, right = np.where(x2 < x1, x2, x1), np.where(x2 > x1, x2, x1)
    area = (bottom - top) * (right - left)

    def shares(one: int, first: int) -> Any:
        height = np.minimum(bottom[first:], bottom[one]) - np.maximum(top[first:], top[one])
        width = np.minimum(right[first:], right[one]) - np.maximum(left[first:], left[one])
        common = np.maximum(height, 0) * np.maximum(width, 0)
        return common / np.where(common > 0, area[first:] + area[one] - common, 1)

    return shares


def _measure(table: Any, overlaps: bool) -> Callable[[int, int], Any]:
    return (lambda one, first: table[first:, one]) if overlaps else _shares(table)


def _first_apart(shares: Callable[[int, int], Any], count: int, limit: int, most: Any) -> list[int]:
    """Of boxes in the order of their scores the first `limit` that don't overlap an earlier one of these."""
    apart, chosen = np.ones(count, bool), []
    for place in range(count):
        if apart[place]:
            chosen.append(place)
            if len(chosen) >= limit:
                break
            apart[place + 1 :] &= shares(place, place + 1) <= most
    return chosen


def _by_rank(table: Any, scores: Any, limit: int, most: Any, least: Any, overlaps: bool) -> Any:
    """The numbers of the chosen, without lowering scores. Few of many boxes are looked at: more if these don't do."""
    ranked = np.argsort(-scores, kind="stable")
    ranked = ranked[scores[ranked] > least]
    width = 4 * limit
    while True:
        window = ranked[:width]
        own = table[np.ix_(window, window)] if overlaps else table[window]
        chosen = _first_apart(_measure(own, overlaps), len(window), limit, most)
        if len(chosen) == limit or len(window) == len(ranked):
            return window[chosen]
        width *= 4


def _lowered(
    table: Any, scores: Any, limit: int, least: Any, sigma: Any, overlaps: bool
) -> tuple[list[int], list[Any]]:
    """The numbers of the chosen and their scores, lowered by those chosen before."""
    shares, left = _measure(table, overlaps), np.where(scores > least, scores, least)
    chosen: list[int] = []
    kept: list[Any] = []
    while len(chosen) < min(limit, left.size):
        best = int(np.argmax(left))
        if not left[best] > least:
            break
        chosen.append(best)
        kept.append(left[best])
        left[best] = least
        common = shares(best, 0)
        left = np.where(left > least, left * np.exp(scores.dtype.type(-0.5) / sigma * common * common), least)
    return chosen, kept


def _kernel(boxes: Any, scores: Any, limit: Any, most: Any, least: Any, sigma: Any, overlaps: bool) -> tuple:
    _need_alike(boxes.shape, scores.shape, overlaps)
    order, kept = np.zeros(scores.shape, np.int32), np.zeros_like(scores)
    counts = np.zeros(scores.shape[:2], np.int32)
    for place in np.ndindex(*counts.shape) if limit > 0 else ():
        table, own = boxes[place[0]], scores[place]
        if sigma > 0:
            chosen, values = _lowered(table, own, int(limit), least, sigma, overlaps)
        else:
            chosen = _by_rank(table, own, int(limit), most, least, overlaps)
            values = own[chosen]
        count = counts[place] = len(chosen)
        order[place][:count], kept[place][:count] = chosen, values
    return order, kept, counts


_BOXES = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [2, 2, 1, 1], [2, 1, 1, 2.2], [3, 3, 3, 4]]] * 2, np.float32)
_SHARES = np.linspace(0, 1, 9, dtype=np.float32).reshape(1, 3, 3)


def _sample(boxes: Any, classes: int, limit: int, sigma: float, overlaps: bool = False) -> Sample:
    shape = (len(boxes), classes, boxes.shape[1])
    scores = np.sin(np.arange(np.prod(shape), dtype=np.float32) * 2.7).reshape(shape)
    numbers = (np.float32(0.4), np.float32(-0.9), np.float32(sigma))
    fixed = dict(enumerate((boxes, scores, np.int32(limit), *numbers)))
    return Sample((boxes.shape, shape, (), (), (), ()), {"overlaps": overlaps}, fixed=fixed)


SUPPRESS = register(
    OpDef(
        "suppress_boxes", _infer, _kernel, multiple=True, kinds="f", label="NonMaxSuppressionV5",
        cuts_gradient="the choice of boxes has no gradient",
        doc="The boxes that don't overlap better ones, their scores, and how many there are in each class.",
        samples=(
            _sample(_BOXES[:1], 1, 3, 0.0), _sample(_BOXES, 3, 9, 0.0), _sample(_BOXES[:1], 2, 5, 0.5),
            _sample(_SHARES, 2, 2, 0.0, overlaps=True),
        ),
    )
)  # fmt: skip


def _chosen(
    boxes: Any, scores: Any, limit: Any, most: Any, least: Any, sigma: Any = 0.0, overlaps: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Applies the row; checks the bounds."""
    numbers = [cast(convert_to_tensor(number), _FLOAT) for number in (most, least, sigma)]
    size = scalar_int(limit, "max_output_size")
    _need(size >= 0, "output size must be non-negative")
    found: tuple[Tensor, Tensor, Tensor] = apply(
        SUPPRESS, (boxes, scores, cast(size, _INT), *numbers), {"overlaps": overlaps}
    )
    return found


def _need(holds: Any, message: str) -> None:
    """Raises InvalidArgumentError unless a condition holds, at run time if that isn't known before."""
    if isinstance(holds, Tensor):
        assert_op(holds, message)
    elif not holds:
        raise errors.InvalidArgumentError(message)


def _need_share(threshold: Any) -> None:
    is_share = (threshold >= 0.0) & (threshold <= 1.0)
    _need(is_share, "iou_threshold must be in [0, 1]")


def _floats(value: Any, what: str, rank: int) -> Tensor:
    """A tensor of this rank. Raises InvalidArgumentError for others, and for float64, which TensorFlow doesn't take."""
    tensor = convert_to_tensor(value, None if isinstance(value, Tensor) else _FLOAT)
    if tensor.dtype not in (_FLOAT, dtypes.float16, dtypes.bfloat16):
        raise errors.InvalidArgumentError(f"{what} must be float32 or float16, got {tensor.dtype.name}: use ag.cast")
    return of_rank(tensor, rank, what)


def _boxes_and_scores(boxes: Any, scores: Any) -> tuple[Tensor, Tensor]:
    """The boxes and scores of one image as a batch of one class, float32: shapes [1, boxes, 4] and [1, 1, boxes]."""
    x, y = _floats(boxes, "boxes", 2), _floats(scores, "scores", 1)
    if x._shape[1] not in (4, None):  # type: ignore[index]
        raise errors.InvalidArgumentError(f"boxes must have 4 columns, got shape {brackets(x._shape)}")
    _need_equal(x, y)
    return expand_dims(cast(x, _FLOAT), 0), expand_dims(expand_dims(cast(y, _FLOAT), 0), 0)


def _need_equal(x: Tensor, y: Tensor) -> None:
    first, second = x._shape[0], y._shape[0]  # type: ignore[index]
    if None not in (first, second) and first != second:
        raise errors.InvalidArgumentError(
            f"scores has incompatible shape (Dimensions must be equal, but are {first} and {second})"
        )


def non_max_suppression(
    boxes: TensorLike, scores: TensorLike, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), name: str | None = None,
) -> Tensor:  # fmt: skip
    """Chooses boxes by their scores, without those that overlap one with a higher score. The indices of the chosen, the
    best first, int32, shape (chosen).

    boxes: float32 or float16, shape (boxes, 4): y1, x1, y2, x2 of two opposite corners. scores: shape (boxes).
    max_output_size: how many are chosen at most. iou_threshold: the part of their union that two boxes may have in
    common (intersection over union), 0 to 1. score_threshold: only boxes with higher scores are chosen.
    No gradient. Raises InvalidArgumentError for other shapes, dtypes, thresholds and a negative size.
    """
    return non_max_suppression_with_scores(boxes, scores, max_output_size, iou_threshold, score_threshold)[0]


def non_max_suppression_with_scores(
    boxes: TensorLike, scores: TensorLike, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), soft_nms_sigma: Any = 0.0, name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`non_max_suppression`, with the scores of the chosen: indices, int32, and scores, both of shape (chosen).

    soft_nms_sigma: if it is positive, overlapping boxes aren't dropped, whatever `iou_threshold` is. Each chosen box
    lowers the scores of the others by the factor exp(-overlap**2 / (2 sigma)) instead (Bodla and others, "Soft-NMS",
    2017).
    """
    _need_share(iou_threshold)
    x, y = _boxes_and_scores(boxes, scores)
    order, kept, counts = _chosen(x, y, max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
    count = counts[0, 0]
    dtype = scores.dtype if isinstance(scores, Tensor) else _FLOAT
    return order[0, 0, :count], cast(kept[0, 0, :count], dtype)


def non_max_suppression_overlaps(
    overlaps: TensorLike, scores: TensorLike, max_output_size: Any, overlap_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), name: str | None = None,
) -> Tensor:  # fmt: skip
    """`non_max_suppression` where it is known how much boxes overlap: any measure.

    overlaps: float32, shape (boxes, boxes). overlap_threshold: boxes that overlap more exclude each other.
    Raises InvalidArgumentError for other shapes and a negative size.
    """
    x, y = _floats(overlaps, "overlaps", 2), _floats(scores, "scores", 1)
    if None not in x._shape and x._shape[0] != x._shape[1]:  # type: ignore[index, operator]
        raise errors.InvalidArgumentError(f"overlaps must be square, got shape {brackets(x._shape)}")
    _need_equal(x, y)
    rows = expand_dims(expand_dims(cast(y, _FLOAT), 0), 0)
    order, _, counts = _chosen(
        expand_dims(cast(x, _FLOAT), 0), rows, max_output_size, overlap_threshold, score_threshold, overlaps=True
    )
    return order[0, 0, : counts[0, 0]]


def _padded(x: Tensor, size: Any) -> Tensor:
    """`size` elements of each row, with zeros behind them."""
    lead = dims(x)[:-1]
    longer = concat([x, zeros([*lead, size], x.dtype)], -1)[..., :size]
    return ensure_shape(longer, [*x._shape[:-1], size if isinstance(size, int) else None])  # type: ignore[index]


@deferrable
def non_max_suppression_padded(
    boxes: TensorLike, scores: TensorLike, max_output_size: Any, iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"), pad_to_max_output_size: bool = False, name: str | None = None,
    sorted_input: bool = False, canonicalized_coordinates: bool = False, tile_size: int = 512,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`non_max_suppression` for each image of a batch: indices, and how many of them are valid.

    boxes: shape (..., boxes, 4), which have an area. scores: shape (..., boxes). Here boxes exclude each other whose
    intersection is `iou_threshold` of their union, or more. pad_to_max_output_size: adds zeros to the indices, which
    then have shape (..., max_output_size). The others are hints about how to compute and have no effect. Numbers of
    valid indices: int32, shape (...). Raises ValueError for a batch without padding.
    """
    x, y = cast(convert_to_tensor(boxes), _FLOAT), cast(convert_to_tensor(scores), _FLOAT)
    rank = len(x._shape or ())
    if rank > 2 and not pad_to_max_output_size:
        raise ValueError(f"'pad_to_max_output_size' (value {pad_to_max_output_size}) must be True for batched input")
    if rank < 2 or len(y._shape or ()) != rank - 1:
        raise errors.InvalidArgumentError(
            f"boxes must have shape [..., boxes, 4] and scores [..., boxes], got {brackets(x._shape)} and "
            f"{brackets(y._shape)}"
        )
    *lead, count = dims(y)
    most = nextafter(cast(convert_to_tensor(iou_threshold), _FLOAT), np.float32(-np.inf))
    order, _, counts = _chosen(
        reshape(x, [-1, count, 4]), reshape(y, [-1, 1, count]), max_output_size, most, score_threshold
    )
    valid = reshape(counts, lead)
    if not pad_to_max_output_size:
        return order[0, 0, :valid], valid
    size = scalar_int(max_output_size, "max_output_size")
    return reshape(_padded(order[:, 0], size), [*lead, size]), valid


class CombinedNonMaxSuppression(NamedTuple):
    """The results of `combined_non_max_suppression`."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def combined_non_max_suppression(
    boxes: TensorLike, scores: TensorLike, max_output_size_per_class: Any, max_total_size: Any,
    iou_threshold: Any = 0.5, score_threshold: Any = float("-inf"), pad_per_class: bool = False,
    clip_boxes: bool = True, name: str | None = None,
) -> CombinedNonMaxSuppression:  # fmt: skip
    """`non_max_suppression` in each class of each image, and the best of all classes.

    boxes: float32, shape (batch, boxes, 1 or classes, 4). scores: float32, shape (batch, boxes, classes).
    max_output_size_per_class, max_total_size: how many are chosen at most. pad_per_class: whether results have
    max_output_size_per_class * classes rows where that is less than max_total_size. clip_boxes: to 0 to 1.
    Returns `nmsed_boxes`, shape (batch, max_total_size, 4), `nmsed_scores` and `nmsed_classes`, float32, shape (batch,
    max_total_size), the best first and zeros behind them, and `valid_detections`, int32, shape (batch).
    Raises InvalidArgumentError for other shapes, thresholds and sizes that aren't positive.
    """
    x, y = _floats(boxes, "boxes", 4), _floats(scores, "scores", 3)
    _need_share(iou_threshold)
    each, total = (
        scalar_int(max_output_size_per_class, "max_output_size_per_class"),
        scalar_int(max_total_size, "max_total_size"),
    )
    _need(each > 0, "max_size_per_class must be positive")
    _need(total > 0, "max_total_size must be > 0")
    batch, count, classes = dims(y)
    own = x._shape[2]  # type: ignore[index]
    if own is None:
        x = broadcast_to(x, [batch, count, classes, 4])
    elif own != 1 and isinstance(classes, int) and own != classes:
        raise errors.InvalidArgumentError(
            f"third dimension of boxes must be either 1 or num classes, got {brackets(x._shape)}"
        )
    by_class = transpose(y, [0, 2, 1])
    if own == 1:
        tables, rows = squeeze(x, [2]), by_class
    else:
        tables = reshape(transpose(x, [0, 2, 1, 3]), [-1, count, 4])
        rows = reshape(by_class, [-1, 1, count])
    order, kept, counts = _chosen(tables, rows, each, iou_threshold, score_threshold)
    # The candidates of all classes in one row, at least one. Those that weren't chosen come last.
    columns = maximum(count * classes, 1)
    sizes = reshape(counts, [batch, classes])
    chosen = reshape(less(range_(count), expand_dims(sizes, -1)), [batch, -1])
    order, kept = (_padded(reshape(each, [batch, -1]), columns) for each in (order, kept))
    chosen = _padded(chosen, columns)
    ranking = argsort(where(chosen, kept, np.float32(-np.inf)), -1, "DESCENDING")
    rows_of_result = minimum(total, each * classes) if pad_per_class else total
    size = scalar_int(rows_of_result, "max_total_size")
    valid = minimum(reduce_sum(sizes, -1), size)
    ranking = _padded(ranking, size)
    there = less(range_(size), expand_dims(valid, -1))
    picked = gather(order, ranking, batch_dims=1)
    of_class = ranking // maximum(count, 1)
    if own == 1:
        table = squeeze(x, [2])
    else:
        table, picked = reshape(x, [batch, -1, 4]), picked * classes + of_class
    found = gather(concat([table, zeros([batch, 1, 4])], 1), picked, batch_dims=1)
    found = clip_by_value(found, 0.0, 1.0) if clip_boxes else found
    empty = np.float32(0.0)
    return CombinedNonMaxSuppression(
        where(expand_dims(there, -1), found, empty),
        where(there, gather(kept, ranking, batch_dims=1), empty),
        where(there, cast(of_class, _FLOAT), empty),
        valid,
    )
