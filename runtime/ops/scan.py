"""Running sums and products along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import errors
from runtime.ops.convert import check_kind, convert_to_tensor, scalar_int
from runtime.ops.dispatch import apply, call
from runtime.ops.table import OpDef, Sample, register
from runtime.tensor import Tensor


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
    attrs = {**op.attrs, "reverse": not op.attrs["reverse"]}
    return (call("cumsum", op.outputs[0] * dy, **attrs) / op.inputs[0],)


def _running_samples(low: float, high: float) -> tuple[Sample, ...]:
    return tuple(
        Sample((shape,), {"axis": axis, "exclusive": exclusive, "reverse": reverse}, low=low, high=high)
        for shape, axis in [((3, 4), 0), ((3, 4), 1), ((4,), 0), ((0, 2), 0)]
        for exclusive in (False, True)
        for reverse in (False, True)
    )


CUMSUM = register(
    OpDef(
        "cumsum", _infer_running, _running(np.add, 0), grad=_grad_cumsum, kinds="iuf", doc="Running sums.",
        samples=_running_samples(-3.0, 3.0),
    )
)  # fmt: skip
CUMPROD = register(
    OpDef(
        "cumprod", _infer_running, _running(np.multiply, 1), grad=_grad_cumprod, kinds="iuf", doc="Running products.",
        samples=_running_samples(0.5, 2.0),
    )
)  # fmt: skip


def _run_along(row: OpDef, x: Any, axis: Any, exclusive: bool, reverse: bool) -> Tensor:
    tensor = convert_to_tensor(x)
    check_kind(row, tensor.dtype)
    position = scalar_int(axis, "axis")
    if not isinstance(position, int) or tensor._shape is None:
        raise TypeError(f"{row.name} needs an axis and a rank that are known while tracing")
    if not -len(tensor._shape) <= position < len(tensor._shape):
        raise errors.InvalidArgumentError(
            f"{row.label}: Expected scan axis in the range [{-len(tensor._shape)}, {len(tensor._shape)}), but got "
            f"{position} [Op:{row.label}]"
        )
    attrs = {"axis": position % len(tensor._shape), "exclusive": bool(exclusive), "reverse": bool(reverse)}
    return apply(row, (tensor,), attrs)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running sums along an axis. exclusive: without the element itself; reverse: from the end."""
    return _run_along(CUMSUM, x, axis, exclusive, reverse)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Running products along an axis. exclusive: without the element itself; reverse: from the end."""
    return _run_along(CUMPROD, x, axis, exclusive, reverse)
