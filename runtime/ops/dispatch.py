"""Running an op: into the builder when one is tracing, else at once with the op's NumPy kernel; tapes see both.

`apply` is the only way an op runs eagerly. Its inputs must be tensors already; `convert.py` makes them so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors, profiling
from runtime.context import ctx, placing
from runtime.ops.table import OPS, OpDef
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor


def apply(op: OpDef, inputs: Sequence[Tensor], attrs: dict[str, Any] | None = None) -> Any:
    """The op's output tensor, or a tuple of them for ops with several.

    Raises InvalidArgumentError if the op's kernel or type rule refuses the inputs.
    """
    builder = ctx.builder
    if builder is not None:
        if attrs is None:
            attrs = {}
        outputs = builder.emit(op, inputs, attrs)
    elif placing and (placed := placing[0].apply(op, inputs, attrs or {})) is not None:
        outputs = placed
    else:
        # This is the hot path of eager code: an op on two scalars should cost about a microsecond.
        try:
            arrays = [t._array for t in inputs]  # type: ignore[attr-defined]
            for t in inputs:
                if t.dtype.is_narrow and op.widens:
                    types = [i.type for i in inputs]  # type: ignore[attr-defined]
                    kernel = widened(op, [found.dtype for found in op.infer(types, attrs or {})])
                    break
            else:
                kernel = op.kernel
            if profiling.recording:
                kernel = profiling.timed("op", op.label, kernel)
            if op.effect:
                result = kernel(*arrays, **(attrs or {}))
            elif attrs:
                result = ctx.quiet(kernel, *arrays, **attrs)
            else:
                result = ctx.quiet(kernel, *arrays)
        except Exception as error:
            result = _recover(op, inputs, attrs or {}, error)
        if op.multiple:
            outputs = tuple([EagerTensor(array) for array in result])
        else:
            outputs = (EagerTensor(result),)
    if ctx.recorders:
        for recorder in ctx.recorders:
            if recorder.builder is builder:
                recorder.record(op, tuple(inputs), attrs or {}, outputs)
    return outputs if op.multiple else outputs[0]


def widened(op: OpDef, output_dtypes: Sequence[Any]) -> Any:
    """The op's kernel for float16, bfloat16 and the like: it runs in float32, and the results are rounded. NumPy adds
    up columns of float16 in float16; SciPy and LAPACK don't compute in any of them."""
    narrow = [dtype._np if getattr(dtype, "is_narrow", False) else None for dtype in output_dtypes]

    def kernel(*arrays: Any, **attrs: Any) -> Any:
        result = op.kernel(*[a.astype(np.float32) if a.dtype in dtypes.NARROW else a for a in arrays], **attrs)
        if op.multiple:
            return tuple([r if down is None else r.astype(down) for r, down in zip(result, narrow)])
        return result if narrow[0] is None else result.astype(narrow[0])

    return kernel


def call(name: str, *inputs: Any, **attrs: Any) -> Any:
    """Runs the row of that name. Gradients use it for rows of families that are built on theirs."""
    return apply(OPS[name], inputs, attrs)


def _recover(op: OpDef, inputs: Sequence[Any], attrs: dict[str, Any], error: Exception) -> Any:
    """Raises the error that the user should see, or runs the kernel again when only the quiet context was in use."""
    if isinstance(error, RuntimeError) and "cannot enter context" in str(error):
        # A finalizer or callback runs an op while a kernel runs, so warnings are off already.
        return op.kernel(*[t._array for t in inputs], **attrs)
    if isinstance(error, AttributeError):
        _refuse_symbolic(inputs)
        refusal = _refusal(op, [t.type for t in inputs], attrs)  # the kernel met objects of another dtype
        if refusal is not None:
            raise refusal from None
    if isinstance(error, errors.OpError) and "[Op:" not in error.message and not op.effect:
        # A matrix that isn't square isn't invertible either: the shape is what the user should hear of.
        refusal = _refusal(op, [t.type for t in inputs], attrs)
        if refusal is not None:
            raise refusal from None
        raise type(error)(f"{error.message} [Op:{op.label}]", op.name) from None
    if isinstance(error, (ValueError, TypeError, IndexError)) and not op.effect:
        raise explain_failure(op, [t.type for t in inputs], attrs, error) from None
    if type(error) is not errors.ResourceExhaustedError and isinstance(error, MemoryError):
        raise out_of_memory(op, error) from error
    raise error


def _refuse_symbolic(inputs: Sequence[Any]) -> None:
    for tensor in inputs:
        if isinstance(tensor, SymbolicTensor):
            raise errors.leaked(tensor.value, tensor.builder.name) from None


def out_of_memory(op: OpDef, error: MemoryError) -> errors.ResourceExhaustedError:
    """What NumPy's MemoryError is called here; its message says how much was wanted."""
    return errors.ResourceExhaustedError(f"Out of memory: {error or 'allocation failed'} [Op:{op.label}]", op.name)


def explain_failure(op: OpDef, types: Sequence[Any], attrs: dict[str, Any], error: Exception) -> Exception:
    """The error a user should see when a kernel refused its inputs: the type rule words it better than NumPy."""
    if isinstance(error, errors.OpError):
        return error
    refusal = _refusal(op, types, attrs)
    return refusal or errors.InvalidArgumentError(f"{error} [Op:{op.label}]", op.name)


def _refusal(op: OpDef, types: Sequence[Any], attrs: dict[str, Any]) -> Exception | None:
    """The error that an op's type rule raises for these input types, as an OpError; None if it accepts them."""
    try:
        op.infer(types, attrs)
    except errors.OpError as refined:
        return refined
    except (ValueError, TypeError) as refined:
        return errors.InvalidArgumentError(f"{refined} [Op:{op.label}]", op.name)
    return None
