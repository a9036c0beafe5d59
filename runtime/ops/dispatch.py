"""Running an op: into the builder when one is tracing, else at once with the op's NumPy kernel; tapes see both.

`apply` is the only way an op runs eagerly. Its inputs must be tensors already; `convert.py` makes them so.
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from runtime import errors
from runtime.context import ctx
from runtime.ops.table import OpDef
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor


def apply(op: OpDef, inputs: Sequence[Tensor], attrs: dict[str, Any] | None = None) -> Any:
    """The op's output tensor, or a tuple of them for ops with several.

    Raises InvalidArgumentError where the op's kernel or type rule refuses the inputs.
    """
    if attrs is None:
        attrs = {}
    builder = ctx.builder
    if builder is not None:
        outputs = builder.emit(op, inputs, attrs)
    else:
        outputs = _run(op, inputs, attrs)
    if ctx.recorders:
        for recorder in ctx.recorders:
            if recorder.builder is builder:
                recorder.record(op, tuple(inputs), attrs, outputs)
    return outputs if op.multiple else outputs[0]


def _run(op: OpDef, inputs: Sequence[Any], attrs: dict[str, Any]) -> tuple[Tensor, ...]:
    try:
        result = op.kernel(*[t._array for t in inputs], **attrs)
    except AttributeError:
        _refuse_symbolic(inputs)
        raise
    except (ValueError, TypeError, IndexError) as error:
        raise explain_failure(op, [t.type for t in inputs], attrs, error) from None
    if op.multiple:
        return tuple([EagerTensor(array) for array in result])
    return (EagerTensor(result),)


def _refuse_symbolic(inputs: Sequence[Any]) -> None:
    for tensor in inputs:
        if isinstance(tensor, SymbolicTensor):
            raise errors.InaccessibleTensorError(
                f"{tensor} belongs to the function '{tensor.builder.name}' and can't be used outside it: it has no "
                "value there. Return it from the function instead of storing it in an outer object."
            )


def explain_failure(op: OpDef, types: Sequence[Any], attrs: dict[str, Any], error: Exception) -> Exception:
    """The error a user should see when a kernel refused its inputs: the type rule words it better than NumPy."""
    if isinstance(error, errors.OpError):
        return error
    try:
        op.infer(types, attrs)
    except errors.OpError as refined:
        return refined
    except (ValueError, TypeError) as refined:
        return errors.InvalidArgumentError(f"{refined} [Op:{op.name}]", op.name)
    return errors.InvalidArgumentError(f"{error} [Op:{op.name}]", op.name)


def empty_array(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised array, for kernels that fill it."""
    return np.empty(shape, dtype)
