"""Reductions over axes, and the positions of extremes.

A reduction's attributes: `axis`, a sorted tuple of non-negative ints (None: all axes, only for unknown rank), and
`keepdims`.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from runtime import dtypes, errors
from runtime.dtypes import DTypeLike
from runtime.ops.blas import one_thread
from runtime.ops.convert import check_kind, convert_to_tensor, int_list, scalar_int, unknown_now
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.rules import brackets, dims, product, shape_attr
from runtime.ops.table import OPS, OpDef, Sample, register
from runtime.shapes import Shape
from runtime.tensor import Tensor, TensorLike
from runtime.types import TensorType

Axis = tuple[int, ...] | None


def reduced_shape(shape: Shape, axis: Axis, keepdims: bool) -> Shape:
    if axis is None:
        return None if keepdims and shape is None else ()
    if shape is None:
        return None
    if keepdims:
        return tuple(1 if i in axis else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axis)


def _infer(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (TensorType(inputs[0].dtype, reduced_shape(inputs[0].shape, attrs["axis"], attrs["keepdims"])),)


def _expanded(value: Any, op: Any) -> Any:
    """A reduction's result or cotangent with the reduced axes back as size 1."""
    axis = op.attrs["axis"]
    if op.attrs["keepdims"] or not axis:
        return value
    return call("expand_dims", value, axis=axis)


def _spread(value: Any, op: Any) -> Any:
    """A reduction's result or cotangent, broadcast to the shape of the operand."""
    return (
        call("broadcast_like", _expanded(value, op), op.inputs[0])
        if _dynamic(op)
        else call("broadcast_to", _expanded(value, op), shape=op.inputs[0]._shape)
    )


def _dynamic(op: Any) -> bool:
    shape = op.inputs[0]._shape
    return shape is None or None in shape


def _grad_sum(op: Any, dy: Any) -> Sequence[Any]:
    return (_spread(dy, op),)


def _count(op: Any) -> Any:
    """How many elements go into each result: an int or a scalar tensor of the operand's dtype."""
    x, axis = op.inputs[0], op.attrs["axis"]
    if x._shape is None:
        return call("cast", call("size", x, dtype=dtypes.int64), dtype=x.dtype)
    sizes = [d for i, d in enumerate(dims(x)) if i in axis]
    known = int(np.prod([d for d in sizes if isinstance(d, int)], dtype=np.int64))
    total: Any = convert_to_tensor(float(known), x.dtype)
    for size in sizes:
        if not isinstance(size, int):
            total = total * call("cast", size, dtype=x.dtype)
    return total


def _grad_mean(op: Any, dy: Any) -> Sequence[Any]:
    return (_spread(dy / _count(op), op),)


def _grad_extreme(op: Any, dy: Any) -> Sequence[Any]:
    """Shared equally among the elements that are the extreme."""
    x = op.inputs[0]
    hit = call("cast", call("equal", x, _expanded(op.outputs[0], op)), dtype=x.dtype)
    ties = call("reduce_sum", hit, axis=op.attrs["axis"], keepdims=True)
    return (hit / ties * _expanded(dy, op),)


def _grad_prod(op: Any, dy: Any) -> Sequence[Any]:
    """dy times the product of the other elements, from running products on both sides, so that zeros are no harm."""
    x, axis = op.inputs[0], op.attrs["axis"]
    rank = len(x._shape)
    axis = tuple(range(rank)) if axis is None else axis
    kept = [i for i in range(rank) if i not in axis]
    order = (*kept, *axis)
    moved = call("transpose", x, perm=order)
    sizes = dims(moved)
    if not axis:
        return (dy,)
    shape, extra = shape_attr([*sizes[: len(kept)], product(sizes[len(kept) :])])
    flat = call("reshape", moved, *extra, shape=shape)
    last = len(kept)
    left = call("cumprod", flat, axis=last, exclusive=True, reverse=False)
    right = call("cumprod", flat, axis=last, exclusive=True, reverse=True)
    others = left * right
    full, extra = shape_attr(sizes)
    back = call("transpose", call("reshape", others, *extra, shape=full), perm=tuple(int(i) for i in np.argsort(order)))
    return (back * _expanded(dy, op),)


# NumPy's functions `sum`, `max` and so on look at their arguments for longer than these take for a few elements.
_SUM: Any = np.add.reduce
_PROD: Any = np.multiply.reduce
_MAX: Any = np.maximum.reduce
_MIN: Any = np.minimum.reduce
_ANY: Any = np.logical_or.reduce
_ALL: Any = np.logical_and.reduce


# Elements from which NumPy's loops are worth avoiding where they are short. For rows of 8 they take sixteen times as
# long as the other ways here.
_MANY = 1 << 12
# The most terms that are added by a product with ones: BLAS adds them less exactly than NumPy does in pairs.
_TERMS = 1 << 12
_LINE = 1024  # elements that NumPy adds to as many others at a time, in sums of more rows
# The longest rows whose extremes are those of columns of a transposed copy, and how many of these rows are copied at a
# time, so that they stay in the cache.
_ROW, _BLOCK = 64, 1 << 12


def _matrix(x: Any, axis: Axis) -> tuple[Any, bool] | None:
    """A large array as a matrix of which the columns (True), or the rows (False), are reduced. None where the reduced
    axes are neither the first nor the last ones, or NumPy has long loops for them."""
    if x.size < _MANY or not axis or len(axis) == x.ndim or not x.flags.c_contiguous:
        return None
    if axis[-1] == len(axis) - 1:
        row = math.prod(x.shape[len(axis) :])
        return x.reshape(x.size // row, row), True
    if axis[0] == x.ndim - len(axis):
        row = math.prod(x.shape[axis[0] :])
        return x.reshape(x.size // row, row), False
    return None


def _reshaped(reduced: Any, shape: tuple[int, ...], axis: tuple[int, ...], keepdims: bool) -> Any:
    return reduced.reshape([1 if i in axis else d for i, d in enumerate(shape) if keepdims or i not in axis])


@functools.lru_cache(maxsize=8)
def _ones(dtype: Any) -> Any:
    return np.ones(_TERMS, dtype)


def _sum_kernel(x: Any, axis: Axis, keepdims: bool) -> Any:
    found = _matrix(x, axis) if x.dtype.kind in "fc" else None
    total = None if found is None else _sum_of_lines(*found)
    if total is None:
        return _SUM(x, axis, x.dtype, keepdims=keepdims)
    return _reshaped(total, x.shape, axis, keepdims)  # type: ignore[arg-type]


def _sum_of_lines(matrix: Any, of_columns: bool) -> Any:
    """The sums of the columns or rows of a matrix; None where nothing is faster than NumPy."""
    terms = len(matrix) if of_columns else matrix.shape[1]
    if terms <= _TERMS and matrix.dtype.char in "fd":
        ones = _ones(matrix.dtype)[:terms]
        with one_thread:  # a few microseconds
            return ones.dot(matrix) if of_columns else matrix.dot(ones)
    row = matrix.shape[1]
    together = _LINE // row
    if not of_columns or together < 2:
        return None
    main = len(matrix) // together * together
    total = _SUM(_SUM(matrix[:main].reshape(main // together, together * row), 0).reshape(together, row), 0)
    return total + _SUM(matrix[main:], 0) if main < len(matrix) else total


def _prod_kernel(x: Any, axis: Axis, keepdims: bool) -> Any:
    return _PROD(x, axis, x.dtype, keepdims=keepdims)


def _mean_kernel(x: Any, axis: Axis, keepdims: bool) -> Any:
    if x.dtype.kind in "fc" and x.size:
        total = _sum_kernel(x, axis, keepdims)
        return total / x.dtype.type(x.size // total.size)
    if x.dtype.kind in "fc":  # nan where there are no elements, of which NumPy's function warns
        count = math.prod(x.shape if axis is None else [x.shape[a] for a in axis])
        return _SUM(x, axis, x.dtype, keepdims=keepdims) / x.dtype.type(count)
    total = _SUM(x, axis, x.dtype, keepdims=keepdims)
    # TensorFlow divides integers rounding towards zero.
    count = x.size // builtins.max(1, total.size)
    if count == 0:
        raise errors.DivisionByZeroError("Integer division by zero: the mean of no elements [Op:Mean]")
    return np.trunc(total / count).astype(x.dtype)[()]


def _lowest(dtype: Any) -> Any:
    if dtype.kind == "f":
        return dtype.type(-np.inf)
    return False if dtype.kind == "b" else np.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    if dtype.kind == "f":
        return dtype.type(np.inf)
    return True if dtype.kind == "b" else np.iinfo(dtype).max


def _extreme(reduce: Any, x: Any, axis: Axis, keepdims: bool, initial: Any) -> Any:
    found = _matrix(x, axis)
    if found is None or found[1] or found[0].shape[1] > _ROW:
        return reduce(x, axis, keepdims=keepdims, initial=initial)
    matrix = found[0]
    total = np.empty(len(matrix), x.dtype)
    for start in range(0, len(matrix), _BLOCK):
        reduce(matrix[start : start + _BLOCK].T.copy(), 0, out=total[start : start + _BLOCK])
    return _reshaped(total, x.shape, axis, keepdims)  # type: ignore[arg-type]


def _max_kernel(x: Any, axis: Axis, keepdims: bool) -> Any:
    return _extreme(_MAX, x, axis, keepdims, _lowest(x.dtype))


def _min_kernel(x: Any, axis: Axis, keepdims: bool) -> Any:
    return _extreme(_MIN, x, axis, keepdims, _highest(x.dtype))


def _any_kernel(x: Any, axis: Axis, keepdims: bool) -> Any:
    return _ANY(x, axis, keepdims=keepdims)


def _all_kernel(x: Any, axis: Axis, keepdims: bool) -> Any:
    return _ALL(x, axis, keepdims=keepdims)


def _samples(low: float = -3.0, high: float = 3.0, empty: bool = True) -> tuple[Sample, ...]:
    cases = [((3, 4), (0,)), ((3, 4), (1,)), ((3, 4), (0, 1)), ((2, 3, 2), (0, 2)), ((), ()), ((2,), ())]
    if empty:
        cases += [((0, 3), (0,)), ((0, 3), (1,))]
    return tuple(
        Sample((shape,), {"axis": axis, "keepdims": keep}, low=low, high=high)
        for shape, axis in cases
        for keep in (False, True)
    )


def _normalise(axis: Any, shape: Shape, label: str) -> Axis:
    """The attribute for a user's axis argument. Raises InvalidArgumentError for one out of range or given twice."""
    if axis is None:
        return None if shape is None else tuple(range(len(shape)))
    if shape is None:
        raise ValueError("A reduction over given axes needs a tensor of known rank.")
    axes = []
    for entry in int_list(axis, "axis"):
        if not isinstance(entry, int):
            raise unknown_now("axis", axis)
        axes.append(normal_axis(entry, len(shape), label))
    for a in axes:
        if axes.count(a) > 1:
            raise errors.InvalidArgumentError(
                f"Invalid reduction arguments: Axes contains duplicate dimension: {a} [Op:{label}]"
            )
    return tuple(sorted(axes))


def normal_axis(axis: int, rank: int, label: str) -> int:
    """A non-negative axis. Raises InvalidArgumentError when it is out of range."""
    if not -rank <= axis < rank:
        raise errors.InvalidArgumentError(
            f"Invalid reduction dimension {axis} for input with {rank} dimension(s) [Op:{label}]"
        )
    return axis + rank if axis < 0 else axis


class Reduction(Protocol):
    """A public function that takes the elements along axes together."""

    def __call__(
        self, input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
    ) -> Tensor: ...


class ArgReduction(Protocol):
    """A public function that says where along an axis an element lies."""

    def __call__(
        self, input: TensorLike, axis: Any = None, output_type: DTypeLike = dtypes.int64, name: str | None = None
    ) -> Tensor: ...


def _reduction(
    name: str,
    label: str,
    kernel: Callable,
    doc: str,
    grad: Any = None,
    kinds: str = "iuf",
    samples: Any = None,
    by_parts: bool = False,
) -> Reduction:
    row = register(
        OpDef(
            name, _infer, kernel, grad=grad, kinds=kinds, doc=doc, label=label, can_fail=False, is_reduction=True,
            by_parts=by_parts,
            samples=_samples() if samples is None else samples,
        )
    )  # fmt: skip

    def function(input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
        x = convert_to_tensor(input_tensor)
        if x.dtype.kind not in kinds:
            check_kind(row, x.dtype)
        return apply(row, (x,), {"axis": _normalise(axis, x._shape, label), "keepdims": bool(keepdims)})

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{doc}\n\n    axis: an int, several, or None for all. keepdims: keep the reduced axes with size 1.\n"
        "    Raises InvalidArgumentError for an axis out of range and for other dtypes.\n "
    )
    return deferrable(function)


reduce_sum = _reduction("reduce_sum", "Sum", _sum_kernel, "The sum over axes.", _grad_sum, "iufc", by_parts=True)
reduce_prod = _reduction(
    "reduce_prod", "Prod", _prod_kernel, "The product over axes.", _grad_prod, "iufc", samples=_samples(0.5, 2.0)
)
reduce_mean = _reduction(
    "reduce_mean", "Mean", _mean_kernel, "The mean over axes; for integers, rounded towards zero.", _grad_mean,
    "iufc", samples=_samples(empty=False), by_parts=True,
)  # fmt: skip
reduce_max = _reduction("reduce_max", "Max", _max_kernel, "The largest element over axes.", _grad_extreme)
reduce_min = _reduction("reduce_min", "Min", _min_kernel, "The smallest element over axes.", _grad_extreme)
reduce_any = _reduction("reduce_any", "Any", _any_kernel, "Whether any element is true, over axes.", kinds="b")
reduce_all = _reduction("reduce_all", "All", _all_kernel, "Whether all elements are true, over axes.", kinds="b")


@deferrable
def reduce_logsumexp(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """log(sum(exp(x))) over axes, without overflow."""
    x = convert_to_tensor(input_tensor)
    check_kind(OPS["exp"], x.dtype)
    top = call("stop_gradient", reduce_max(x, axis, keepdims=True))
    # An infinite maximum would make inf - inf.
    top = call("select", call("is_finite", top), top, convert_to_tensor(0, x.dtype))
    total = call("log", reduce_sum(call("exp", x - top), axis, keepdims=keepdims))
    if not keepdims:
        top = reduce_sum(top, axis)
    return total + top


@deferrable
def reduce_variance(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The mean squared distance from the mean, over axes (population variance). Floats only."""
    x = convert_to_tensor(input_tensor)
    if x.dtype.kind not in "fc":
        raise TypeError("Input must be either real or complex")
    if x.dtype.is_complex:
        # The squared distances in the complex plane, as TensorFlow and NumPy have it.
        distance = call("complex_abs", x - reduce_mean(x, axis, keepdims=True))
        return reduce_mean(distance * distance, axis, keepdims)
    return reduce_mean(call("squared_difference", x, reduce_mean(x, axis, keepdims=True)), axis, keepdims)


@deferrable
def reduce_std(input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The square root of the variance, over axes. Floats only."""
    return call("sqrt", reduce_variance(input_tensor, axis, keepdims))


@deferrable
def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares, over axes."""
    x = convert_to_tensor(input_tensor)
    total = reduce_sum(x * call("conj", x) if x.dtype.is_complex else x * x, axis, keepdims)
    if x.dtype.kind in "fc":
        return call("sqrt", total)
    return call("cast", call("sqrt", call("cast", total, dtype=dtypes.float64)), dtype=x.dtype)


@deferrable
def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether no element is smaller than the one before it, in row-major order."""
    flat = call("reshape", convert_to_tensor(x), shape=(-1,))
    return reduce_all(flat[1:] >= flat[:-1])


@deferrable
def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether each element is larger than the one before it, in row-major order."""
    flat = call("reshape", convert_to_tensor(x), shape=(-1,))
    return reduce_all(flat[1:] > flat[:-1])


@deferrable
def count_nonzero(
    input: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """How many elements are not zero, over axes."""
    x = convert_to_tensor(input)
    zero: Any = {"O": b"", "b": False}.get(x.dtype.kind, 0)
    hit = call("not_equal", x, convert_to_tensor(zero, x.dtype))
    return reduce_sum(call("cast", hit, dtype=dtypes.as_dtype(dtype)), axis, keepdims)


# --- positions of extremes -----------------------------------------------------------------------------------------


def _infer_arg(inputs: Sequence[Any], attrs: dict) -> tuple:
    shape = inputs[0].shape
    axis = attrs["axis"]
    if shape is not None and shape[axis] == 0:
        raise ValueError(f"Reduction axis {axis} is empty in shape {brackets(shape)}")
    return (TensorType(attrs["output_type"], None if shape is None else shape[:axis] + shape[axis + 1 :]),)


def _arg_kernel(function: Callable, neutral: float) -> Callable:
    def kernel(x: Any, axis: int, output_type: Any) -> Any:
        if x.dtype.kind == "f":
            # NaN is never the extreme, as in TensorFlow; NumPy gives the first NaN.
            x = np.where(np.isnan(x), neutral, x)
        return function(x, axis=axis).astype(output_type._np)

    return kernel


def _arg_rows(name: str, label: str, function: Callable, neutral: float, doc: str) -> ArgReduction:
    samples = tuple(
        Sample((shape,), {"axis": axis, "output_type": dtype})
        for shape, axis in [((3, 4), 0), ((3, 4), 1), ((5,), 0), ((2, 0), 0)]
        for dtype in (dtypes.int64, dtypes.int32)
    )
    row = register(
        OpDef(
            name, _infer_arg, _arg_kernel(function, neutral), grad=lambda op, dy: (None,), kinds="biuf", label=label,
            doc=doc, can_fail=False, is_reduction=True,
            samples=samples,
        )
    )  # fmt: skip

    def public(
        input: TensorLike, axis: Any = None, output_type: DTypeLike = dtypes.int64, name: str | None = None
    ) -> Tensor:
        x = convert_to_tensor(input)
        check_kind(row, x.dtype)
        if x._shape is None:
            raise ValueError(f"{row.name} needs a tensor of known rank.")
        position = 0 if axis is None else scalar_int(axis, "axis")
        if not isinstance(position, int):
            raise TypeError(f"axis must be known while tracing, got {axis!r}")
        if not -len(x._shape) <= position < len(x._shape):
            raise errors.InvalidArgumentError(
                f"Expected dimension in the range [{-len(x._shape)}, {len(x._shape)}), but got {position} [Op:{label}]"
            )
        return apply(row, (x,), {"axis": position % len(x._shape), "output_type": dtypes.as_dtype(output_type)})

    public.__name__ = public.__qualname__ = name
    public.__doc__ = f"{doc} `axis` defaults to 0. If several tie, the first one; NaN doesn't count."
    return deferrable(public)


argmax = _arg_rows("argmax", "ArgMax", np.argmax, -np.inf, "The index of the largest element along an axis.")
argmin = _arg_rows("argmin", "ArgMin", np.argmin, np.inf, "The index of the smallest element along an axis.")
