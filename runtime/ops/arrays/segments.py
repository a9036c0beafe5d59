"""Sums and extremes over segments, counts and histograms.

The rows take the segment of each row of the data and the number of segments; the sorted forms (`segment_sum`, ...) are
written with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.arrays.accumulate import accumulate
from runtime.ops.arrays.creation import range as range_
from runtime.ops.arrays.reduce import reduce_all, reduce_max
from runtime.ops.arrays.shape_ops import known_rank
from runtime.ops.control import assert_op
from runtime.ops.convert import convert_to_indices, convert_to_tensor, fill_holes, operands, scalar_int, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise.compare import equal, logical_and, where
from runtime.ops.rules import brackets
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    data, ids = inputs[:2]
    if ids.dtype.kind not in "iu":
        raise TypeError(f"segment_ids must be integers, got {ids.dtype.label}")
    if data.shape is None or ids.shape is None:
        return (TensorType(data.dtype, None),)
    lead = data.shape[: len(ids.shape)]
    if len(lead) < len(ids.shape) or any(a != b and None not in (a, b) for a, b in zip(lead, ids.shape)):
        raise ValueError(
            f"data.shape = {brackets(data.shape)} does not start with segment_ids.shape = {brackets(ids.shape)}"
        )
    return (TensorType(data.dtype, (attrs["num"], *data.shape[len(ids.shape) :])),)


def _lowest(dtype: Any) -> Any:
    return np.finfo(dtype).min if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    return np.finfo(dtype).max if dtype.kind == "f" else np.iinfo(dtype).max


def _kernel(ufunc: Any, neutral: Callable[[Any], Any]) -> Callable[..., Any]:
    def kernel(data: Any, ids: Any, *holes: Any, num: int | None) -> Any:
        (count,) = fill_holes((num,), holes)
        if count < 0:
            raise ValueError(f"Input num_segments == {count} must not be negative.")
        if data.shape[: ids.ndim] != ids.shape:
            raise ValueError("data.shape must start with segment_ids.shape")
        if np.any(ids >= count):
            place = np.argwhere(ids >= count)[0]
            shown = ",".join(map(str, place))
            raise errors.InvalidArgumentError(
                f"segment_ids[{shown}] = {np.asarray(ids)[tuple(place)]} is out of range [0, {count})"
            )
        result = np.full((count, *data.shape[ids.ndim :]), neutral(data.dtype), data.dtype)
        kept = ids >= 0
        accumulate(ufunc, result, ids[kept], data[kept])
        return result

    return kernel


def _spread(values: Any, ids: Any) -> Any:
    """For each row of the data the value of its segment; 0 for dropped rows (negative ids)."""
    zero = convert_to_tensor(0, ids.dtype)
    picked = call("gather", values, call("maximum", ids, zero), axis=0)
    kept = ids >= zero
    extra = len(picked._shape or ()) - len(kept._shape or ())
    if extra:
        rank = len(kept._shape or ())
        kept = call("expand_dims", kept, axis=tuple(range(rank, rank + extra)))
    return call("select", kept, picked, convert_to_tensor(0, picked.dtype))


def _holes(op: Any) -> list[Any]:
    return [None] * (len(op.inputs) - 1)


def _grad_sum(op: Any, dy: Any) -> Sequence[Any]:
    return (_spread(dy, op.inputs[1]), *_holes(op))


def _grad_extreme(op: Any, dy: Any) -> Sequence[Any]:
    """Shared equally among the elements that are the extreme of their segment."""
    data, ids, *rest = op.inputs
    hit = call("cast", equal(data, _spread(op.outputs[0], ids)), dtype=data.dtype)
    ties = call("unsorted_segment_sum", hit, ids, *rest, num=op.attrs["num"])
    share = call("select", ties > 0, dy / call("maximum", ties, convert_to_tensor(1, ties.dtype)), dy)
    return (hit * _spread(share, ids), *_holes(op))


def _grad_prod(op: Any, dy: Any) -> Sequence[Any]:
    """dy times the product of the others: with one zero in a segment only that element has a derivative."""
    data, ids, *rest = op.inputs
    num = op.attrs["num"]
    zero = equal(data, 0)
    zeros_of = call("unsorted_segment_sum", call("cast", zero, dtype=data.dtype), ids, *rest, num=num)
    one = convert_to_tensor(1, data.dtype)
    nonzero = where(zero, one, data)
    product = call("unsorted_segment_prod", nonzero, ids, *rest, num=num)
    count = _spread(zeros_of, ids)
    others = _spread(product, ids) / nonzero
    alive = logical_and(count <= 1, equal(zero, count > 0))
    return (where(alive, others, convert_to_tensor(0, data.dtype)) * _spread(dy, ids), *_holes(op))


_IDS = np.array([2, 0, 2, -1, 1], np.int32)
_TABLE = np.array([[0, 1], [1, 1]], np.int64)


class UnsortedSegments(Protocol):
    """A public function of the rows of each segment, whose ids stand in any order."""

    def __call__(
        self, data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
    ) -> Tensor: ...


class SortedSegments(Protocol):
    """A public function of the rows of each segment, whose ids don't decrease."""

    def __call__(self, data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor: ...


class SegmentsOfRows(Protocol):
    """A public function of the chosen rows of each segment, whose ids don't decrease."""

    def __call__(
        self,
        data: TensorLike,
        indices: TensorLike,
        segment_ids: TensorLike,
        num_segments: TensorLike | None = None,
        name: str | None = None,
    ) -> Tensor: ...


def _row(name: str, ufunc: Any, neutral: Callable[[Any], Any], grad: Any, doc: str) -> UnsortedSegments:
    row = register(
        OpDef(
            name, _infer, _kernel(ufunc, neutral), grad=grad, kinds="iuf", doc=doc,
            samples=(
                Sample(((5, 2), (5,)), {"num": 3}, low=0.5, fixed={1: _IDS}),
                Sample(((2, 2), (2, 2)), {"num": 2}, low=0.5, fixed={1: _TABLE}),
                Sample(((5,), (5,), ()), {"num": None}, low=0.5, fixed={1: _IDS, 2: np.int32(3)}, gradient=(0,)),
            ),
        )
    )  # fmt: skip

    def function(
        data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
    ) -> Tensor:
        x, ids = convert_to_tensor(data), convert_to_indices(segment_ids)
        count = scalar_int(num_segments, "num_segments")
        if isinstance(count, int):
            return apply(row, (x, ids), {"num": count})
        return apply(row, (x, ids, count), {"num": None})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{doc}\n\n    segment_ids: an integer per row of data (its shape is how data's shape starts); negative ones "
        "drop the row.\n    Raises InvalidArgumentError for an id of num_segments or more.\n    "
    )
    return deferrable(function)


unsorted_segment_sum = _row(
    "unsorted_segment_sum", np.add, lambda d: 0, _grad_sum, "The sum of the rows of each segment; 0 if it has none."
)
unsorted_segment_prod = _row(
    "unsorted_segment_prod",
    np.multiply,
    lambda d: 1,
    _grad_prod,
    "The product of the rows of each segment; 1 if it has none.",
)
unsorted_segment_max = _row(
    "unsorted_segment_max", np.maximum, _lowest, _grad_extreme,
    "The maximum of the rows of each segment; the lowest number of the dtype if it has none.",
)  # fmt: skip
unsorted_segment_min = _row(
    "unsorted_segment_min", np.minimum, _highest, _grad_extreme,
    "The minimum of the rows of each segment; the highest number of the dtype if it has none.",
)  # fmt: skip


def _sizes(x: Tensor, ids: Tensor, num: Any) -> Tensor:
    """How many rows each segment has, at least 1, with dimensions to divide by."""
    one = call("cast", call("ones_like", ids), dtype=x.dtype)
    count = call("maximum", unsorted_segment_sum(one, ids, num), convert_to_tensor(1, x.dtype))
    extra = known_rank(x, "segment") - known_rank(ids, "segment")
    return call("expand_dims", count, axis=tuple(range(1, 1 + extra))) if extra else count


@deferrable
def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """The mean of the rows of each segment; 0 of none."""
    x, ids = convert_to_tensor(data), convert_to_indices(segment_ids)
    return unsorted_segment_sum(x, ids, num_segments) / _sizes(x, ids, num_segments)


@deferrable
def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """The sum of the rows of each segment divided by the square root of their number; 0 of none."""
    x, ids = convert_to_tensor(data), convert_to_indices(segment_ids)
    return unsorted_segment_sum(x, ids, num_segments) / call("sqrt", _sizes(x, ids, num_segments))


def _sorted(name: str, unsorted: Callable[..., Tensor], clear: bool, doc: str) -> SortedSegments:
    """The form for ids that don't decrease, whose last says how many segments there are."""

    def function(data: TensorLike, segment_ids: TensorLike, name: str | None = None) -> Tensor:
        x, ids = convert_to_tensor(data), convert_to_indices(segment_ids)
        assert_op(reduce_all(ids[1:] >= ids[:-1]), "segment ids are not increasing [Op:Segment]")
        assert_op(reduce_all(ids >= 0), "segment ids must be >= 0 [Op:Segment]")
        num = call("maximum", reduce_max(ids) + 1, convert_to_tensor(0, ids.dtype))
        result = unsorted(x, ids, num)
        if not clear:
            return result
        present = unsorted_segment_max(call("ones_like", ids), ids, num) > 0
        extra = known_rank(result, "segment") - 1
        if extra:
            present = call("expand_dims", present, axis=tuple(range(1, 1 + extra)))
        return where(present, result, convert_to_tensor(0, result.dtype))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{doc} Raises InvalidArgumentError for ids that decrease or are negative."
    return deferrable(function)


segment_sum = _sorted("segment_sum", unsorted_segment_sum, False, "The sum of the rows of each segment.")
segment_prod = _sorted("segment_prod", unsorted_segment_prod, False, "The product of the rows of each segment.")
segment_mean = _sorted("segment_mean", unsorted_segment_mean, False, "The mean of the rows of each segment.")
segment_max = _sorted("segment_max", unsorted_segment_max, True, "The largest of each segment; 0 of none.")
segment_min = _sorted("segment_min", unsorted_segment_min, True, "The smallest of each segment; 0 of none.")


# --- counts --------------------------------------------------------------------------------------------------------


@deferrable
def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:
    """How often each number from 0 to the largest occurs, or the sum of its weights.

    minlength, maxlength: bounds of the length; numbers of `maxlength` and more don't count. axis=-1: per row.
    Floats lose their fraction first, as in TensorFlow.
    Raises InvalidArgumentError for negative numbers.
    """
    x = convert_to_tensor(arr)
    if x.dtype.kind == "f":
        x = call("cast", x, dtype=dtypes.int32)
    if x.dtype.kind not in "iu":
        raise errors.InvalidArgumentError(f"bincount needs integers, got {x.dtype.name} [Op:Bincount]", "bincount")
    assert_op(reduce_all(x >= 0), "Input arr must be non-negative! [Op:Bincount]")
    length = call("maximum", reduce_max(x) + 1, convert_to_tensor(0, x.dtype))
    static = static_value(length)
    size: Any = int(static) if static is not None else length
    if minlength is not None:
        size = max(size, int(minlength)) if isinstance(size, int) else call(
            "maximum", size, convert_to_tensor(minlength, x.dtype)
        )  # fmt: skip
    if maxlength is not None:
        size = min(size, int(maxlength)) if isinstance(size, int) else call(
            "minimum", size, convert_to_tensor(maxlength, x.dtype)
        )  # fmt: skip
    if x.dtype.kind == "u":
        x = call("cast", x, dtype=dtypes.int64)
        size = size if isinstance(size, int) else call("cast", size, dtype=dtypes.int64)
    ids = call("select", x < convert_to_tensor(size, x.dtype), x, convert_to_tensor(-1, x.dtype))
    if weights is not None:
        data = convert_to_tensor(weights)
    else:
        data = call("cast", call("ones_like", x), dtype=dtypes.as_dtype(dtype))
    if axis is None or axis == 0 or known_rank(x, "bincount") == 1:
        total = unsorted_segment_sum(data, ids, size)
    elif axis in (-1, 1):
        rows = call("dim", x, axis=0)
        wide = call("cast", convert_to_tensor(size), dtype=ids.dtype)
        offset = call("expand_dims", call("cast", range_(rows), dtype=ids.dtype), axis=(1,)) * wide
        moved = call("select", ids >= 0, ids + offset, ids)
        flat = unsorted_segment_sum(data, moved, call("cast", rows, dtype=ids.dtype) * wide)
        total = call("reshape", flat, rows, call("cast", wide, dtype=dtypes.int32), shape=(None, None))
    else:
        raise ValueError(f"Unsupported value for argument axis={axis}. Only 0 and -1 are currently supported.")
    return call("minimum", total, convert_to_tensor(1, total.dtype)) if binary_output else total


@deferrable
def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """The bin of each value, among `nbins` of equal width over `value_range`; values outside the range count in the
    first or last bin."""
    x, bounds = operands("HistogramFixedWidth", values, value_range)
    kind = x.dtype if x.dtype.kind == "f" else dtypes.float64
    low, high = call("cast", bounds[0], dtype=kind), call("cast", bounds[1], dtype=kind)
    assert_op(low < high, "value_range must satisfy value_range[0] < value_range[1] [Op:HistogramFixedWidth]")
    count = convert_to_tensor(nbins, dtypes.int32)
    scaled = call("floor", call("cast", count, dtype=kind) * (call("cast", x, dtype=kind) - low) / (high - low))
    top = call("cast", count - 1, dtype=kind)
    return call(
        "cast", call("maximum", call("minimum", scaled, top), convert_to_tensor(0, kind)),
        dtype=dtypes.as_dtype(dtype),
    )  # fmt: skip


@deferrable
def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many values lie in each of `nbins` bins of equal width over `value_range`."""
    bins = call("reshape", histogram_fixed_width_bins(values, value_range, nbins), shape=(-1,))
    return unsorted_segment_sum(call("cast", call("ones_like", bins), dtype=dtypes.as_dtype(dtype)), bins, nbins)


@deferrable
def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: Any = None,
    weights: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """How often class j (column) was predicted for label i (row), or the sum of the weights.

    Raises InvalidArgumentError for negative numbers and those of `num_classes` or more.
    """
    rows = call("cast", convert_to_tensor(labels), dtype=dtypes.int64)
    columns = call("cast", convert_to_tensor(predictions), dtype=dtypes.int64)
    assert_op(reduce_all(logical_and(rows >= 0, columns >= 0)), "`labels` and `predictions` contain negative values")
    if num_classes is None:
        num_classes = call("cast", call("maximum", reduce_max(rows), reduce_max(columns)) + 1, dtype=dtypes.int32)
    size = scalar_int(num_classes, "num_classes")
    wide = call("cast", convert_to_tensor(size), dtype=dtypes.int64)
    assert_op(reduce_all(logical_and(rows < wide, columns < wide)), "a class is out of bound of `num_classes`")
    kind = dtypes.as_dtype(dtype)
    counted = call("cast", convert_to_tensor(weights), dtype=kind) if weights is not None else call(
        "cast", call("ones_like", rows), dtype=kind
    )  # fmt: skip
    flat = unsorted_segment_sum(counted, rows * wide + columns, wide * wide)
    holes = [] if isinstance(size, int) else [size, size]
    return call("reshape", flat, *holes, shape=(size, size) if isinstance(size, int) else (None, None))


@deferrable
def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The fraction of elements that are zero, a float32 scalar; NaN for an empty tensor."""
    x = convert_to_tensor(value)
    hits = call("cast", equal(x, convert_to_tensor(0, x.dtype)), dtype=dtypes.float32)
    return call("reduce_mean", hits, axis=None if x._shape is None else tuple(range(len(x._shape))), keepdims=False)


# --- segments of chosen rows ---------------------------------------------------------------------------------------


def _of_rows(name: str, form: Callable[..., Tensor], doc: str) -> SegmentsOfRows:
    def function(
        data: TensorLike,
        indices: TensorLike,
        segment_ids: TensorLike,
        num_segments: TensorLike | None = None,
        name: str | None = None,
    ) -> Tensor:
        rows = call("gather", convert_to_tensor(data), convert_to_indices(indices), axis=0)
        ids = convert_to_indices(segment_ids)
        assert_op(reduce_all(ids[1:] >= ids[:-1]), "segment ids are not increasing [Op:SparseSegment]")
        # Ids of no rows at all make no segments.
        least = reduce_max(call("concat", ids, convert_to_tensor([-1], ids.dtype), axis=0)) + 1
        return form(rows, ids, least if num_segments is None else num_segments)

    function.__name__, function.__qualname__ = name, f"sparse_{name}"
    function.__doc__ = (
        f"{doc}\n\n    indices: the rows of data. segment_ids: a number for each, which mustn't decrease.\n    "
        "num_segments: how many there are; by default the last id plus 1.\n Raises InvalidArgumentError "
        "for ids that decrease or don't fit.\n    "
    )
    return deferrable(function)


sparse_segment_sum = _of_rows("segment_sum", unsorted_segment_sum, "The sum of chosen rows by segments.")
sparse_segment_mean = _of_rows("segment_mean", unsorted_segment_mean, "The mean of chosen rows by segments; 0 of none.")
sparse_segment_sqrt_n = _of_rows(
    "segment_sqrt_n", unsorted_segment_sqrt_n,
    "The sum of chosen rows by segments, divided by the square root of their number.",
)  # fmt: skip
