"""Type rules, sample operands and gradient helpers that the rows of several families share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.dtypes import DType
from runtime.ops.dispatch import call
from runtime.ops.table import Sample
from runtime.shapes import Shape, broadcast
from runtime.tensor import EagerTensor
from runtime.types import TensorType


def blanks(shape: Sequence[int], dtype: Any) -> np.ndarray:
    """Zeros; of strings, empty ones."""
    return np.full(shape, b"", object) if np.dtype(dtype).kind == "O" else np.zeros(shape, dtype)


def brackets(shape: Shape) -> str:
    """`[2,3]`, `[?,3]`: how TensorFlow's op errors show a shape."""
    if shape is None:
        return "<unknown>"
    return "[" + ",".join("?" if d is None else str(d) for d in shape) + "]"


def broadcast_types(a: Any, b: Any) -> Shape:
    """The shape of an elementwise op. Raises ValueError in TensorFlow's words."""
    try:
        return broadcast(a.shape, b.shape)
    except ValueError:
        raise ValueError(f"Incompatible shapes: {brackets(a.shape)} vs. {brackets(b.shape)}") from None


def need_same_dtype(inputs: Sequence[Any]) -> None:
    for index, operand in enumerate(inputs):
        if operand.dtype is not inputs[0].dtype:
            raise TypeError(
                f"input #{index} has dtype {operand.dtype.label}, which does not match type "
                f"{inputs[0].dtype.label} of input #0"
            )


def infer_same(inputs: Sequence[Any], attrs: dict) -> tuple:
    """Output type = type of the first operand."""
    return (inputs[0],)


def infer_predicate(inputs: Sequence[Any], attrs: dict) -> tuple:
    """bool, of the operand's shape."""
    return (TensorType(dtypes.bool_, inputs[0].shape),)


def infer_binary(inputs: Sequence[Any], attrs: dict) -> tuple:
    """Both operands' dtype, broadcast shape."""
    need_same_dtype(inputs)
    a, b = inputs
    shape, other = a.shape, b.shape
    if shape is not None and other is not None:
        # The usual cases: one of the operands has the type already.
        if other == shape or other == ():
            return (a,)
        if shape == ():
            return (b,)
    return (TensorType(a.dtype, broadcast_types(a, b)),)


def infer_comparison(inputs: Sequence[Any], attrs: dict) -> tuple:
    """bool, broadcast shape."""
    need_same_dtype(inputs)
    return (TensorType(dtypes.bool_, broadcast_types(*inputs)),)


def typed(template: str) -> Callable[[Sequence[str], Sequence[DType], DType], str]:
    """A scalar rule whose template names the output's NumPy type as `{T}`, so that constants don't widen it."""

    def text(arguments: Sequence[str], inputs: Sequence[DType], output: DType) -> str:
        return template.format(*arguments, T=f"np.{output.name if output.kind != 'b' else 'bool_'}")

    return text


# --- samples -------------------------------------------------------------------------------------------------------


def unary_samples(low: float = -3.0, high: float = 3.0) -> tuple[Sample, ...]:
    return tuple(Sample((shape,), low=low, high=high) for shape in [(), (3,), (2, 3), (0, 2)])


def binary_samples(low: float = -3.0, high: float = 3.0) -> tuple[Sample, ...]:
    shapes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((), ()), ((3,), ()), ((), (2, 3)), ((2, 3), (2, 3)), ((2, 1), (3,)), ((1, 3), (2, 1)), ((0, 3), (3,)),
    ]  # fmt: skip
    return tuple(Sample(pair, low=low, high=high) for pair in shapes)


# --- gradients -----------------------------------------------------------------------------------------------------


def unbroadcast(grad: Any, like: Any, *others: Any) -> Any:
    """Sums `grad`, of the shape that `like` was broadcast to (with `others`), back to the shape of `like`.

    Static where shapes are known; else the row `sum_to_shape_of` decides at run time.
    """
    if grad.__class__ is EagerTensor and like.__class__ is EagerTensor and grad._array.shape == like._array.shape:
        return grad  # the usual case on a tape, without asking further
    shape, target = grad._shape, like._shape
    if target is not None and shape is not None:
        if target == shape and None not in shape:
            return grad
        if None not in target:
            return _sum_to(grad, target)
        if others and len(target) == len(shape) and all(_never_widens(other, target) for other in others):
            return grad
    return call("sum_to_shape_of", grad, like)


def _never_widens(other: Any, target: tuple[int | None, ...]) -> bool:
    """Whether broadcasting `target` with `other` surely gives `target`: `other` is as known, or has only ones."""
    shape = other._shape
    if shape is None or len(shape) > len(target):
        return False
    tail = target[len(target) - len(shape) :]
    return all(o == 1 or (o is not None and o == t) for o, t in zip(shape, tail))


def _sum_to(grad: Any, target: tuple[int, ...]) -> Any:
    shape = grad._shape
    lead = len(shape) - len(target)
    axes = tuple(range(lead)) + tuple(i + lead for i, d in enumerate(target) if d == 1 and shape[i + lead] != 1)
    if axes:
        grad = call("reduce_sum", grad, axis=axes, keepdims=False)
    if grad._shape != target:
        grad = call("reshape", grad, shape=target)
    return grad


def dims(tensor: Any) -> list[Any]:
    """The dimensions of a tensor of known rank: ints where known, scalar int32 tensors elsewhere."""
    if tensor._shape is None:
        raise ValueError("This operation needs a tensor of known rank; give its TensorSpec a shape.")
    return [d if d is not None else call("dim", tensor, axis=i) for i, d in enumerate(tensor._shape)]


def product(sizes: Sequence[Any]) -> Any:
    """The number of elements for dimensions that are ints or scalar tensors."""
    total: Any = 1
    for size in sizes:
        total = size if isinstance(total, int) and total == 1 else total * size
    return total


def shape_attr(sizes: Sequence[Any]) -> tuple[tuple[int | None, ...], list[Any]]:
    """`dims` as attribute and extra inputs."""
    return tuple(d if isinstance(d, int) else None for d in sizes), [d for d in sizes if not isinstance(d, int)]
