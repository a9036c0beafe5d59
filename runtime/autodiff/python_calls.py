"""`py_function` and its gradient: Python functions that compute with eager tensors, called when a program runs.

    y, r = py_function(x)                    r: what a tape recorded of the call, an object in a string tensor
    dx, r' = py_function_gradient(r, x, dy)  asks that tape, and records how it answers

The function itself runs once. `r'` belongs to a copy of the tape that has seen the way back too, so that derivatives
of any order are `py_function_gradient` again, of `(x, dy)`. Only the arguments have gradients: a program doesn't know
which variables a Python function reads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from runtime import dtypes, errors
from runtime.autodiff.calls import is_differentiable
from runtime.autodiff.tape import GradientTape
from runtime.context import ctx, init_scope
from runtime.dataclass import dataclass
from runtime.ops.control import called_later, result_types, results_of
from runtime.ops.convert import convert_to_tensor
from runtime.ops.dispatch import apply
from runtime.ops.elementwise.elementary import cast
from runtime.ops.table import OpDef, register
from runtime.ops.values import returned_array
from runtime.tensor import EagerTensor, Tensor
from runtime.types import TensorType
from runtime.variable import Variable

_RECORD = TensorType(dtypes.string, ())


@dataclass(frozen=True, eq=False)
class _Record:
    """A tape, and the tensors on it that a call took and gave."""

    tape: GradientTape
    inputs: Sequence[EagerTensor]
    outputs: Sequence[EagerTensor]

    def results(self) -> tuple:
        """The arrays of the outputs and, last, the record itself."""
        handle = np.empty((), object)
        handle[()] = self
        return (*[t._array for t in self.outputs], handle)


def _call(function: Callable, inputs: Sequence[Tensor], types: Sequence[TensorType]) -> list[Any]:
    """The function's results as eager tensors of the given dtypes."""
    return [_converted(value, type_) for value, type_ in zip(results_of(function, inputs, len(types)), types)]


def _converted(value: Any, type_: TensorType) -> Any:
    if isinstance(value, (Tensor, Variable)):
        tensor = convert_to_tensor(value)
        return tensor if tensor.dtype is type_.dtype else cast(tensor, type_.dtype)
    if value is None:
        raise errors.InvalidArgumentError(f"a Python function returned None where Tout has {type_.dtype.name}")
    return EagerTensor(returned_array(value, type_.dtype), type_.dtype)


def _kernel(*values: Any, function: Callable, types: tuple) -> tuple:
    with init_scope():
        inputs = [EagerTensor(v) for v in values]
        tape = GradientTape(persistent=True, watch_accessed_variables=False)
        with GradientTape.paused_all(), tape:
            tape.watch([t for t in inputs if t.dtype.is_differentiable])
            outputs = _call(function, inputs, types)
    return _Record(tape, inputs, outputs).results()


def _gradient_kernel(handle: Any, *values: Any, wanted: tuple[int, ...], given: tuple[int, ...]) -> tuple:
    record: _Record = np.asarray(handle, object).item()  # popped from a stack it is the object itself
    with init_scope():
        seeds = [EagerTensor(v) for v in values[len(record.inputs) :]]
        tape = record.tape.copy()
        with GradientTape.paused_all(), tape:
            tape.watch(seeds)
            targets, sources = [record.outputs[i] for i in given], [record.inputs[i] for i in wanted]
            found = tape.gradient(targets, sources, seeds, unconnected_gradients="zero")
    return _Record(tape, [*record.inputs, *seeds], found).results()


def _rule(operands: Sequence[Any], outputs: Sequence[Any], arrived: Sequence[Any]) -> list[Any]:
    """Cotangents of the operands of a call, whose last output is its record."""
    wanted = tuple([i for i, t in enumerate(operands) if is_differentiable(t.type)])
    given = tuple([i for i, dy in enumerate(arrived[:-1]) if dy is not None])
    found: list[Any] = [None] * len(operands)
    if wanted and given:
        seeds = [arrived[i] for i in given]
        attrs = {"wanted": wanted, "given": given}
        for index, cotangent in zip(wanted, apply(GRADIENT, (outputs[-1], *operands, *seeds), attrs)):
            found[index] = cotangent
    return found


PY_FUNCTION = register(
    OpDef(
        "py_function", lambda inputs, attrs: (*attrs["types"], _RECORD), _kernel,
        grad=lambda op, *dy: _rule(op.inputs, op.outputs, dy),
        effect=True, multiple=True, calls_python=True, label="EagerPyFunc",
        doc="Calls a Python function that computes with eager tensors; also returns what a tape recorded.",
        is_quiet=True,
    )
)  # fmt: skip

GRADIENT = register(
    OpDef(
        "py_function_gradient",
        # The record, the operands of the call, and a cotangent for each of `given`.
        lambda inputs, attrs: (*[inputs[1 + i] for i in attrs["wanted"]], _RECORD),
        _gradient_kernel,
        grad=lambda op, *dy: [None, *_rule(op.inputs[1:], op.outputs, dy)],
        multiple=True, calls_python=True, label="EagerPyFuncGrad",
        doc="Cotangents of the operands of a Python function, by what a tape saw of its call.",
        is_quiet=True,
    )
)  # fmt: skip


def py_function(func: Callable | None = None, inp: Any = None, Tout: Any = None, name: str | None = None) -> Any:
    """Calls `func` with eager tensors when the program runs; its results become tensors of dtypes `Tout`.

    Gradients of any order flow from its results to the tensors in `inp`: a tape watches the call. Inside a traced
    function, variables that `func` reads have a gradient only if they are passed as arguments. `@py_function(Tout=...)`
    is a
    decorator: calls of the function go through `py_function`.

    Raises ValueError if `func` can't be called, InvalidArgumentError if the number of results differs from `Tout`.
    """
    if func is None:
        return functools.partial(_decorated, Tout=Tout)
    several, types = result_types(func, Tout)
    tensors = [convert_to_tensor(v) for v in (() if inp is None else inp)]
    if ctx.builder is None:
        outputs = _call(func, tensors, types)  # the tapes that are open see what it does
    else:
        outputs = list(apply(PY_FUNCTION, tensors, {"function": called_later(func), "types": types})[:-1])
    if several:
        return outputs
    return outputs[0] if outputs else None


def _decorated(function: Callable, Tout: Any) -> Callable:
    @functools.wraps(function)
    def called(*inputs: Any) -> Any:
        return py_function(function, inputs, Tout)

    return called
