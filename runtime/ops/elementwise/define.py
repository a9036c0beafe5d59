"""Defines an elementwise op in one statement: the row of the table and the public function over it.

A value with a method `__ag_elementwise__(function, *operands)`, such as a ragged tensor, applies the function itself.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, overload

from runtime.interpreter import RENAMES, renamed
from runtime.ops.convert import check_kind, convert_to_tensor, mismatch, operands
from runtime.ops.dispatch import apply
from runtime.ops.rules import (
    binary_samples,
    infer_binary,
    infer_same,
    unary_samples,
)
from runtime.ops.table import GradRule, InferRule, OpDef, Sample, ScalarRule, register
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor, TensorLike
from runtime.tracebacks import leaving, mark

Own = TypeVar("Own", bound="AppliesElementwise")


class AppliesElementwise(Protocol):
    """A value that applies elementwise functions to its parts itself, and gives another of its kind."""

    def __ag_elementwise__(self, function: Any, *operands: Any) -> Any: ...


class UnaryFunction(Protocol):
    """The public function of an elementwise op of one operand."""

    @overload
    def __call__(self, x: Own, *, name: str | None = None) -> Own: ...
    @overload
    def __call__(self, x: TensorLike, *, name: str | None = None) -> Tensor: ...


class BinaryFunction(Protocol):
    """The public function of an elementwise op of two operands, which broadcast.

    `name` is by keyword here, so that checkers take `maximum(*pair)`.
    """

    @overload
    def __call__(self, x: Own, y: Own | TensorLike, *, name: str | None = None) -> Own: ...
    @overload
    def __call__(self, x: TensorLike, y: Own, *, name: str | None = None) -> Own: ...
    @overload
    def __call__(self, x: TensorLike, y: TensorLike, *, name: str | None = None) -> Tensor: ...


class NamedOperands(Protocol):
    """The public function of an elementwise op whose operands TensorFlow calls otherwise than `x` and `y`."""

    @overload
    def __call__(self, first: Own, /, *others: Own | TensorLike, name: str | None = None) -> Own: ...
    @overload
    def __call__(self, first: TensorLike, /, *others: TensorLike, name: str | None = None) -> Tensor: ...
    @overload
    def __call__(self, *operands: TensorLike, name: str | None = None, **named: TensorLike) -> Tensor: ...


_TENSORS = (EagerTensor, SymbolicTensor)


def unary(
    name: str,
    kernel: Callable[..., Any],
    scalar: ScalarRule | None,
    doc: str,
    grad: GradRule | None = None,
    kinds: str = "f",
    infer: InferRule = infer_same,
    samples: tuple[Sample, ...] | None = None,
    **facts: Any,
) -> UnaryFunction:
    """Registers `name` and gives its public function `f(x, name=None)`. facts: other fields of the row (`OpDef`)."""
    tried = unary_samples() if samples is None else samples
    row = register(OpDef(name, infer, kernel, scalar, grad, kinds=kinds, doc=doc, samples=tried, **facts))

    def function(x: Any, name: str | None = None) -> Tensor:
        try:
            if x.__class__ is not EagerTensor:
                if hasattr(x, "__ag_elementwise__"):
                    return x.__ag_elementwise__(function, x)
                x = convert_to_tensor(x)
            if x.dtype.kind not in kinds:
                check_kind(row, x.dtype)
            return apply(row, (x,))
        except leaving():
            raise

    return _public(function, row, "x: a tensor, or anything that `convert_to_tensor` accepts.")


def binary(
    name: str,
    kernel: Callable[..., Any],
    scalar: ScalarRule | None,
    doc: str,
    grad: GradRule | None = None,
    kinds: str = "iuf",
    infer: InferRule = infer_binary,
    samples: tuple[Sample, ...] | None = None,
    **facts: Any,
) -> BinaryFunction:
    """Registers `name` and gives its public function `f(x, y, name=None)`, which broadcasts its operands.

    facts: other fields of the row (`OpDef`).
    """
    tried = binary_samples() if samples is None else samples
    row = register(OpDef(name, infer, kernel, scalar, grad, kinds=kinds, doc=doc, samples=tried, **facts))

    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        try:
            if x.__class__ is not y.__class__ or x.__class__ not in _TENSORS:
                foreign = x if hasattr(x, "__ag_elementwise__") else y
                if hasattr(foreign, "__ag_elementwise__"):
                    return foreign.__ag_elementwise__(function, x, y)
                x, y = operands(row.label, x, y)
            dtype = x.dtype
            if dtype is not y.dtype:
                raise mismatch(row.label, 1, dtype, y.dtype)
            if dtype.kind not in kinds:
                check_kind(row, dtype)
            return apply(row, (x, y))
        except leaving():
            raise

    return _public(function, row, "x, y: tensors of one dtype, or values that take the other's dtype; they broadcast.")


def with_operands(function: Any, *names: str) -> NamedOperands:
    """The public function of an op, changed in place where that works, with other names for its operands."""
    changed = dict(zip(function.__code__.co_varnames, names))
    if RENAMES:
        function.__code__ = renamed(function.__code__, changed)
    else:
        function = _with_signature(function, changed)
    function.__annotations__ = {changed.get(key, key): value for key, value in function.__annotations__.items()}
    function.__doc__ = function.__doc__.replace(f"\n    {', '.join(changed)}: ", f"\n    {', '.join(names)}: ")
    return mark(function)


def _with_signature(function: Callable[..., Any], names: dict[str, str]) -> Any:
    """A function that calls another one, with other names for the parameters."""
    own = inspect.signature(function)
    parameters = [each.replace(name=names.get(each.name, each.name)) for each in own.parameters.values()]
    signature = own.replace(parameters=parameters)

    @functools.wraps(function)
    def public(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*signature.bind(*args, **kwargs).args)
        except leaving():
            raise

    public.__signature__ = signature  # type: ignore[attr-defined]
    return public


def _public(function: Callable[..., Any], row: OpDef, arguments: str) -> Any:
    from runtime import dtypes

    names = ", ".join(d.name for d in dtypes.ALL if d.kind in row.kinds)
    # What checkers know by the protocols, for `help` and the reference; in the functions `x` is any of it in turn.
    function.__annotations__.update({each: "TensorLike" for each in ("x", "y") if each in function.__annotations__})
    shapes = ", and for shapes that don't broadcast" if "y" in function.__annotations__ else ""
    function.__name__ = function.__qualname__ = row.name
    raised = f"Raises InvalidArgumentError for other dtypes{shapes}."
    function.__doc__ = f"{row.doc}\n\n    {arguments}\n    Dtypes: {names}. {raised}\n    "
    function.row = row  # type: ignore[attr-defined]
    return mark(function)
