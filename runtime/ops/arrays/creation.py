"""Making tensors: zeros, ones, fill, eye, range, linspace, meshgrid."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.context import ctx, placing
from runtime.dtypes import DType, DTypeLike
from runtime.ops.convert import convert_to_tensor, has_dtype, operands, scalar_int, shape_args, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.entries import known_value
from runtime.ops.rules import blanks, infer_same
from runtime.ops.table import OPS, OpDef, Sample, register
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor, TensorLike
from runtime.types import TensorType


def _filled(shape: Any, value: Any, dtype: DType) -> Tensor:
    """A tensor of one Python value, broadcast from a constant while tracing."""
    if _of_unknown_rank(shape):
        return apply(FILL, (shape, convert_to_tensor(value, dtype)))
    attr, holes = shape_args(shape)
    for entry in attr:
        if entry is not None and entry < 0:
            raise errors.InvalidArgumentError(f"Dimension {entry} must be >= 0 [Op:Fill]", "fill")
    if ctx.builder is None and (not placing or placing[0].place_of(()) is None):
        array: Any = np.full(attr, value, dtype._np)
        return EagerTensor(array if attr or dtype.kind == "O" else array[()], dtype)
    return apply(OPS["broadcast_to"], (convert_to_tensor(value, dtype), *holes), {"shape": attr})


def _infer_fill(inputs: Sequence[Any], attrs: dict) -> tuple:
    rank = inputs[0].shape[0] if inputs[0].shape else None
    return (TensorType(inputs[1].dtype, None if rank is None else (None,) * rank),)


def _fill_kernel(dims: Any, value: Any) -> Any:
    if np.any(np.less(dims, 0)):
        raise errors.InvalidArgumentError(f"Dimension {np.min(dims)} must be >= 0 [Op:Fill]", "fill")
    return np.full(tuple(dims), value, np.asarray(value).dtype)


FILL = register(
    OpDef(
        "fill", _infer_fill, _fill_kernel,
        grad=lambda op, dy: (None, call("reduce_sum", dy, axis=None, keepdims=False)),
        doc="One value repeated in a shape whose rank is known only at run time.",
        samples=(Sample(((2,), ()), fixed={0: np.array([2, 3], np.int32)}),),
    )
)  # fmt: skip


def _of_unknown_rank(shape: Any) -> bool:
    return isinstance(shape, SymbolicTensor) and shape._shape in (None, (None,)) and static_value(shape) is None


@deferrable
def zeros(shape: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Zeros (False, empty strings) of a shape. Raises InvalidArgumentError for a negative dimension."""
    kind = dtypes.as_dtype(dtype)
    return _filled(shape, {"b": False, "O": b""}.get(kind.kind, 0), kind)


@deferrable
def ones(shape: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Ones (True) of a shape. Raises InvalidArgumentError for a negative dimension, TypeError for strings."""
    kind = dtypes.as_dtype(dtype)
    if kind is dtypes.string:
        raise TypeError(
            "Cannot convert 1 to EagerTensor of dtype string: ones and ones_like need a numeric or bool dtype"
        )
    return _filled(shape, kind.kind == "b" or 1, kind)


@deferrable
def fill(dims: Any, value: TensorLike, name: str | None = None) -> Tensor:
    """A tensor of shape `dims` with the scalar `value` everywhere.

    Raises InvalidArgumentError for a negative dimension or a value that isn't a scalar.
    """
    scalar = convert_to_tensor(value)
    if scalar._shape not in ((), None):
        raise errors.InvalidArgumentError(f"value must be a scalar, got shape {scalar.shape} [Op:Fill]", "fill")
    if _of_unknown_rank(dims):
        return apply(FILL, (dims, scalar))
    attr, holes = shape_args(dims)
    for entry in attr:
        if entry is not None and entry < 0:
            raise errors.InvalidArgumentError(f"Dimension {entry} must be >= 0 [Op:Fill]", "fill")
    return apply(OPS["broadcast_to"], (scalar, *holes), {"shape": attr})


def _infer_like(inputs: Sequence[Any], attrs: dict) -> tuple:
    return infer_same(inputs, attrs)


def _blank(x: Any) -> Any:
    return blanks(x.shape, x.dtype)


_LIKE = tuple(Sample((shape,)) for shape in [(2, 3), (), (0, 2)])
ZEROS_LIKE = register(
    OpDef(
        "zeros_like", _infer_like, _blank, grad=lambda op, dy: (None,), shape_only=(0,), cheap=True,
        doc="Zeros with the shape and dtype of another tensor.", samples=_LIKE,
        can_fail=False,
        is_quiet=True,
        by_parts=True,
    )
)  # fmt: skip
ONES_LIKE = register(
    OpDef(
        "ones_like", _infer_like, lambda x: np.ones(x.shape, x.dtype), grad=lambda op, dy: (None,), shape_only=(0,),
        cheap=True, kinds="biufc", doc="Ones with the shape and dtype of another tensor.", samples=_LIKE,
        can_fail=False,
        is_quiet=True,
    )
)  # fmt: skip


def _like(row: OpDef, input: Any, dtype: DTypeLike) -> Tensor:
    x = convert_to_tensor(input)
    kind = x.dtype if dtype is None else dtypes.as_dtype(dtype)
    shape = x._shape
    if shape is not None and None not in shape:
        return (zeros if row is ZEROS_LIKE else ones)(shape, kind)
    result = apply(row, (x,))
    return result if kind is x.dtype else call("cast", result, dtype=kind)


def zeros_like(input: TensorLike, dtype: DTypeLike = None, name: str | None = None) -> Tensor:
    """Zeros with the shape of another tensor, and its dtype unless one is given."""
    return _like(ZEROS_LIKE, input, dtype)


def ones_like(input: TensorLike, dtype: DTypeLike = None, name: str | None = None) -> Tensor:
    """Ones with the shape of another tensor, and its dtype unless one is given."""
    return _like(ONES_LIKE, input, dtype)


@deferrable
def eye(
    num_rows: Any, num_columns: Any = None, batch_shape: Any = None, dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:  # fmt: skip
    """The identity matrix, with `num_columns` columns if given; with `batch_shape`, a batch of them."""
    rows = scalar_int(num_rows, "num_rows")
    columns = rows if num_columns is None else scalar_int(num_columns, "num_columns")
    kind = dtypes.as_dtype(dtype)
    if isinstance(rows, int) and isinstance(columns, int):
        if rows < 0 or columns < 0:
            raise errors.InvalidArgumentError("Arguments `num_rows` and `num_columns` must be positive integer values.")
        matrix = convert_to_tensor(np.eye(rows, columns, dtype=kind._np))
    else:
        line = call("expand_dims", range(rows), axis=(1,))
        matrix = call("cast", call("equal", line, range(columns)), dtype=kind)
    if batch_shape is None:
        return matrix
    attr, holes = shape_args(batch_shape)
    sizes, extra = shape_args([rows, columns])
    return apply(OPS["broadcast_to"], (matrix, *holes, *extra), {"shape": (*attr, *sizes)})


# --- ranges --------------------------------------------------------------------------------------------------------


_MOST_NUMBERS = 2**63


def range_length(start: Any, limit: Any, delta: Any) -> int:
    """How many numbers `range` gives. Raises InvalidArgumentError for a step of zero or away from the limit."""
    if delta == 0:
        raise errors.InvalidArgumentError(f"Requires delta != 0: {delta} [Op:Range]", "range")
    if (start > limit) if delta > 0 else (start < limit):
        sign = ("<=", ">") if delta > 0 else (">=", "<")
        raise errors.InvalidArgumentError(
            f"Requires start {sign[0]} limit when delta {sign[1]} 0: {start}/{limit} [Op:Range]", "range"
        )
    first = np.asarray(start)
    if first.dtype.kind in "iu":
        return -((int(start) - int(limit)) // int(delta))
    # In the precision of the bounds, as TensorFlow counts: 0.1, 1.1, 0.1 are 10 numbers of float32, and of float64.
    with np.errstate(all="ignore"):
        count = float(np.ceil(np.abs((np.asarray(limit) - first) / np.asarray(delta))))
    if not count < _MOST_NUMBERS:
        raise errors.InvalidArgumentError(
            f"Requires a finite number of elements: {start} to {limit} by {delta} [Op:Range]", "range"
        )
    return int(count)


def _range_kernel(start: Any, limit: Any, delta: Any, size: int | None) -> Any:
    count = range_length(start, limit, delta)
    return (start + np.arange(count, dtype=start.dtype) * delta).astype(start.dtype)


def _infer_range(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(inputs[0].dtype, (attrs["size"],)),)


_SCALARS = ((), (), ())
RANGE = register(
    OpDef(
        "range", _infer_range, _range_kernel, grad=lambda op, dy: (None, None, None), kinds="iuf",
        doc="The numbers start, start + delta, ... below limit; `size` is their count, if known.",
        samples=(
            Sample(_SCALARS, {"size": None}, fixed={0: np.int32(1), 1: np.int32(8), 2: np.int32(3)}),
            Sample(_SCALARS, {"size": 3}, fixed={0: np.float32(2), 1: np.float32(-1), 2: np.float32(-1)}),
            Sample(_SCALARS, {"size": 0}, fixed={0: np.int64(2), 1: np.int64(2), 2: np.int64(1)}),
        ),
    )
)  # fmt: skip

_HIERARCHY = (dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)


@deferrable
def range(
    start: TensorLike,
    limit: TensorLike | None = None,
    delta: TensorLike = 1,
    dtype: DTypeLike = None,
    name: str | None = None,
) -> Tensor:
    """start, start + delta, ... up to but without `limit`; `range(n)` counts from 0.

    int32 for Python ints, float32 if there is a float, else the widest dtype of the arguments.
    Raises InvalidArgumentError for a delta of 0 or away from the limit.
    """
    if limit is None:
        start, limit = 0, start
    given = (start, limit, delta)
    parts = [convert_to_tensor(p, None if has_dtype(p) else dtype) for p in given]
    if dtype is None:
        known = [p.dtype for p in parts if p.dtype in _HIERARCHY]
        if len(known) < 3:
            kinds = {p.dtype for p, v in zip(parts, given) if has_dtype(v)}
            if len(kinds) != 1:
                raise errors.InvalidArgumentError(f"range can't mix dtypes {[p.dtype.name for p in parts]} [Op:Range]")
            wanted = kinds.pop()
        else:
            wanted = _HIERARCHY[builtins.max(_HIERARCHY.index(d) for d in known)]
    else:
        wanted = dtypes.as_dtype(dtype)
    parts = [p if p.dtype is wanted else call("cast", p, dtype=wanted) for p in parts]
    for part in parts:
        if part._shape not in ((), None):
            raise errors.InvalidArgumentError(f"range needs scalars, got shape {part.shape} [Op:Range]", "range")
    values: list[Any] = [known_value(p) if static_value(p) is None else static_value(p) for p in parts]
    size = None if any(v is None for v in values) else range_length(*[v[()] for v in values])
    return apply(RANGE, parts, {"size": size})


@deferrable
def linspace(start: TensorLike, stop: Any, num: TensorLike, name: str | None = None, axis: int = 0) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, both included. Integers give float64.

    Raises InvalidArgumentError for a negative `num`.
    """
    first, last = operands("LinSpace", start, stop)
    if first.dtype.kind in "iu":
        first, last = call("cast", first, dtype=dtypes.float64), call("cast", last, dtype=dtypes.float64)
    count = scalar_int(num, "num")
    if isinstance(count, int) and count < 0:
        raise errors.InvalidArgumentError(f"Requires num >= 0: {count} [Op:LinSpace]", "linspace")
    if first._shape not in ((), None) or last._shape not in ((), None):
        # Between tensors: the numbers go along a new axis.
        rank = builtins.max(len(first._shape or ()), len(last._shape or ()))
        at = axis % (rank + 1)
        pairs = [(first, last), (last, first)]
        first, last = (call("expand_dims", t + call("zeros_like", other), axis=(at,)) for t, other in pairs)
        trailing = tuple(builtins.range(1, rank + 1 - at))
    else:
        trailing = ()
    steps = call("cast", range(count), dtype=first.dtype)
    if trailing:
        steps = call("expand_dims", steps, axis=trailing)
    span = call("maximum", convert_to_tensor(count, dtypes.int32) - 1, convert_to_tensor(1))
    line = first + (last - first) / call("cast", span, dtype=first.dtype) * steps
    # The last one is `stop` itself, without rounding.
    ends = steps == call("cast", span, dtype=first.dtype)
    return call("select", ends, last, line)


@deferrable
def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Coordinate arrays of a grid over vectors. indexing: "xy" (Cartesian, the default) or "ij" (matrix).

    Raises ValueError for another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    vectors = [call("reshape", convert_to_tensor(a), shape=(-1,)) for a in args]
    count = len(vectors)
    order = list(builtins.range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    expanded = []
    for i, vector in enumerate(vectors):
        axes = tuple(a for a in builtins.range(count) if a != order[i])
        expanded.append(call("expand_dims", vector, axis=axes) if axes else vector)
    total: Any = None
    for e in expanded:
        total = call("zeros_like", e) if total is None else total + call("zeros_like", e)
    return [call("broadcast_like", e, total) for e in expanded]
