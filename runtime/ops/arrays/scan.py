"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.ops.convert import check_kind, convert_to_tensor, scalar_int, static_value
from runtime.ops.deferred_calls import deferrable
from runtime.ops.dispatch import apply, call
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor, TensorLike


def _running(function: Any, neutral: int) -> Callable:
    def kernel(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
        if reverse:
            x = np.flip(x, axis)
        result = function.accumulate(x, axis=axis, dtype=x.dtype)
        if exclusive:
            shifted = np.full_like(result, neutral)
            into = [slice(None)] * x.ndim
            source = list(into)
            into[axis], source[axis] = slice(1, None), slice(None, -1)
            shifted[tuple(into)] = result[tuple(source)]
            result = shifted
        return np.flip(result, axis) if reverse else result

    return kernel


def _infer_running(inputs: Sequence[Any], attrs: dict) -> tuple:
    return (inputs[0],)


def _grad_cumsum(op: Any, dy: Any) -> Sequence[Any]:
    return (call("cumsum", dy, **{**op.attrs, "reverse": not op.attrs["reverse"]}),)


def _grad_cumprod(op: Any, dy: Any) -> Sequence[Any]:
    """Running sums of dy times the products, over x; for zeros the products without them, instead of a division.

    Only the first zero of a row has a derivative that isn't 0. The next three are done alike, so that derivatives of
    this one by them are right: to fourth order, whatever the number of zeros.
    """
    x = op.inputs[0]
    attrs = {**op.attrs, "reverse": not op.attrs["reverse"]}
    none, one = convert_to_tensor(0, x.dtype), convert_to_tensor(1, x.dtype)
    is_zero = call("equal", x, none)
    order = call("cumsum", call("cast", is_zero, dtype=dtypes.int32), **{**op.attrs, "exclusive": False})

    def without(here: Any) -> Any:
        return call("cumsum", call("cumprod", call("select", here, one, x), **op.attrs) * dy, **attrs)

    found = call("select", is_zero, none, call("cumsum", op.outputs[0] * dy, **attrs) / call("select", is_zero, one, x))
    known = static_value(order)
    for number in range(1, 5 if known is None else min(4, int(np.max(known, initial=0))) + 1):
        here = call("logical_and", is_zero, call("equal", order, convert_to_tensor(number, dtypes.int32)))
        found = call("select", here, without(here), found)
    return (found,)


def _running_samples(low: float, high: float) -> tuple[Sample, ...]:
    return tuple(
        Sample((shape,), {"axis": axis, "exclusive": exclusive, "reverse": reverse}, low=low, high=high)
        for shape, axis in [((3, 4), 0), ((3, 4), 1), ((4,), 0), ((0, 2), 0)]
        for exclusive in (False, True)
        for reverse in (False, True)
    )


CUMSUM = register(
    OpDef(
        "cumsum", _infer_running, _running(np.add, 0), grad=_grad_cumsum, kinds="iufc", complex_rule=True,
        doc="Running sums.",
        samples=_running_samples(-3.0, 3.0),
        by_parts=True,
    )
)  # fmt: skip
CUMPROD = register(
    OpDef(
        "cumprod", _infer_running, _running(np.multiply, 1), grad=_grad_cumprod, kinds="iufc", doc="Running products.",
        samples=_running_samples(0.5, 2.0),
    )
)  # fmt: skip


def _run_along(row: OpDef, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    tensor = convert_to_tensor(x)
    check_kind(row, tensor.dtype)
    position = scalar_int(axis, "axis")
    if not isinstance(position, int) or tensor._shape is None:
        raise TypeError(
            f"{row.name} needs an axis and a rank that are known while tracing, got axis {axis!r} of {tensor!r}. Give "
            "a Python or NumPy value, or a constant; and a TensorSpec with a shape."
        )
    if not -len(tensor._shape) <= position < len(tensor._shape):
        raise errors.InvalidArgumentError(
            f"{row.label}: Expected scan axis in the range [{-len(tensor._shape)}, {len(tensor._shape)}), but got "
            f"{position} [Op:{row.label}]"
        )
    attrs = {"axis": position % len(tensor._shape), "exclusive": bool(exclusive), "reverse": bool(reverse)}
    return apply(row, (tensor,), attrs)


@deferrable
def cumsum(
    x: TensorLike, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running sums along an axis. exclusive: without the element itself; reverse: from the end."""
    return _run_along(CUMSUM, x, axis, exclusive, reverse)


@deferrable
def cumprod(
    x: TensorLike, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running products along an axis. exclusive: without the element itself; reverse: from the end."""
    return _run_along(CUMPROD, x, axis, exclusive, reverse)


# --- running logarithms of sums of exponentials --------------------------------------------------------------------


def _running_logsumexp(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    # A running sum of logarithms needs more digits than float16 has.
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    if reverse:
        wide = np.flip(wide, axis)
    result = np.logaddexp.accumulate(wide, axis)
    if exclusive:
        lines, shifted = np.moveaxis(result, axis, 0), np.full_like(np.moveaxis(result, axis, 0), -np.inf)
        shifted[1:] = lines[:-1]
        result = np.moveaxis(shifted, 0, axis)
    return (np.flip(result, axis) if reverse else result).astype(x.dtype)


def _grad_running_logsumexp(op: Any, dy: Any) -> Sequence[Any]:
    """exp(x) times the running sum of dy * exp(-y) from the other side, in logarithms, for each sign of dy."""
    x, y = op.inputs[0], op.outputs[0]
    attrs = {**op.attrs, "reverse": not op.attrs["reverse"]}
    zero = convert_to_tensor(0, dy.dtype)
    parts = []
    for amount in (dy, -dy):
        some = amount > zero
        logs = call("log", call("select", some, amount, convert_to_tensor(1, dy.dtype)))
        weights = call("select", some, logs - y, convert_to_tensor(float("-inf"), dy.dtype))
        parts.append(call("exp", call("cumulative_logsumexp", weights, **attrs) + x))
    return (parts[0] - parts[1],)


CUMLOGSUMEXP = register(
    OpDef(
        "cumulative_logsumexp", _infer_running, _running_logsumexp, grad=_grad_running_logsumexp, kinds="f",
        doc="Running log(sum(exp(x))).",
        samples=(
            Sample(((3, 4),), {"axis": 1, "exclusive": False, "reverse": False}),
            Sample(((4,),), {"axis": 0, "exclusive": False, "reverse": True}),
            Sample(((4, 2),), {"axis": 0, "exclusive": True, "reverse": False}, gradient=()),
        ),
    )
)  # fmt: skip


@deferrable
def cumulative_logsumexp(
    x: TensorLike, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running log(sum(exp(x))) along an axis, without overflow. exclusive: without the element itself, from -inf."""
    return _run_along(CUMLOGSUMEXP, x, axis, exclusive, reverse)
