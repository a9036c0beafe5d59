"""Python's operators on tensors and variables: `install` gives a class `+`, `[]`, `@`, comparisons and the others.

`==` and `!=` compare elementwise, as in TensorFlow 2; against None they are False and True, and for shapes that don't
broadcast one False (True).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx
from runtime.ops.arrays.shape_ops import ensure_shape
from runtime.ops.arrays.slicing import getitem
from runtime.ops.convert import convert_to_tensor, is_tensor_like, operands, quick_operand, quick_scalar
from runtime.ops.dispatch import apply, call
from runtime.ops.eager_loops import is_due, look
from runtime.ops.elementwise import arithmetic, compare
from runtime.ops.flags import flag_of, flagged, is_flag
from runtime.ops.linalg import matrix_products
from runtime.ops.numpy import array_methods, protocol
from runtime.ops.numpy.ufuncs import Promotion, common, find
from runtime.ops.staged_number import as_number
from runtime.ops.table import OPS
from runtime.shapes import as_shape, broadcast
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor
from runtime.tracebacks import is_marked, leaving, mark, shows_no_frames


def _is_foreign(value: Any) -> bool:
    """Types that know tensors and want to handle the operator themselves."""
    return getattr(type(value), "__ag_priority__", 0) > 0


def _operator(name: str, function: Callable[..., Tensor], row: str, kinds: str) -> tuple[Callable, Callable]:
    """The operator and its reflected form, with a short way for two tensors of one dtype, and for one and a number.

    name: that of the operator in the module `operator`.
    """
    op, of_numbers = OPS[row], getattr(operator, name)

    def forward(self: Any, other: Any) -> Any:
        try:
            if other.__class__ is self.__class__:
                dtype = self.dtype
                if dtype is other.dtype and dtype.kind in kinds and self.__class__ in _PLAIN:
                    return apply(op, (self, other))
            elif other.__class__ is float or other.__class__ is int:
                scalar = _number(self, other, kinds)
                if scalar is not None:
                    return apply(op, (self, scalar))
            elif _is_foreign(other):
                return NotImplemented
            if flag_of(self) is not None or flag_of(other) is not None:
                return of_numbers(as_number(self), as_number(other))
            return function(*common(self, other)) if Promotion.enabled else function(self, other)
        except leaving():
            raise

    def reflected(self: Any, other: Any) -> Any:
        try:
            if other.__class__ is float or other.__class__ is int:
                scalar = _number(self, other, kinds)
                if scalar is not None:
                    return apply(op, (scalar, self))
            elif _is_foreign(other):
                return NotImplemented
            if flag_of(self) is not None or flag_of(other) is not None:
                return of_numbers(as_number(other), as_number(self))
            return function(*common(other, self)) if Promotion.enabled else function(other, self)
        except leaving():
            raise

    return mark(forward), mark(reflected)


_PLAIN = (EagerTensor, SymbolicTensor)


def _number(tensor: Any, number: float | int, kinds: str) -> Tensor | None:
    """What a number stands for beside a tensor; None where that takes a longer look."""
    if tensor.__class__ not in _PLAIN or tensor.dtype.kind not in kinds:
        return None
    if ctx.builder is not None:
        return quick_operand(number, tensor.dtype) if tensor.__class__ is SymbolicTensor else None
    return quick_scalar(number, tensor.dtype) if tensor.__class__ is EagerTensor else None


def _logic(name: str, logical: Callable[..., Tensor], bitwise: Callable[..., Tensor]) -> tuple[Callable, Callable]:
    """`&`, `|`, `^`: logic on bools, bits on integers."""
    of_numbers = getattr(operator, name)

    def function(x: Any, y: Any) -> Tensor:
        if Promotion.enabled:
            x, y = common(x, y)
        x, y = operands(bitwise.row.label, x, y)  # type: ignore[attr-defined]
        return (logical if x.dtype is dtypes.bool_ else bitwise)(x, y)

    def of_flags(x: Any, y: Any) -> Any:
        if x.__class__ is int or y.__class__ is int:
            return of_numbers(as_number(x), as_number(y))
        return flagged(function(x, y), x, y) if is_flag(x) and is_flag(y) else function(x, y)

    def forward(self: Any, other: Any) -> Any:
        if _is_foreign(other):
            return NotImplemented
        return function(self, other) if flag_of(self) is None else of_flags(self, other)

    def reflected(self: Any, other: Any) -> Any:
        if _is_foreign(other):
            return NotImplemented
        return function(other, self) if flag_of(self) is None else of_flags(other, self)

    return forward, reflected


def _power(forward: Callable, reflected: Callable) -> tuple[Callable, Callable]:
    """`x ** 2` is a square: faster, and differentiable without a logarithm."""

    def power(self: Any, other: Any) -> Any:
        if other.__class__ is int and other == 2 and flag_of(self) is None:
            return arithmetic.square(self)
        return forward(self, other)

    return power, reflected


def _invert(self: Any) -> Tensor:
    x = convert_to_tensor(self)
    return compare.logical_not(x) if x.dtype is dtypes.bool_ else compare.invert(x)


def _negative(self: Any) -> Tensor:
    if flag_of(self) is not None:
        return -as_number(self)
    x = convert_to_tensor(self)
    # Unsigned integers wrap around, as NumPy's do; the op of TensorFlow's name has none.
    return arithmetic.subtract(call("zeros_like", x), x) if x.dtype.is_unsigned else arithmetic.negative(x)


def _absolute(self: Any) -> Tensor:
    if flag_of(self) is not None:
        return as_number(self)
    x = convert_to_tensor(self)
    return x if x.dtype.is_unsigned else arithmetic.abs(x)


def _equality(negated: bool) -> Callable[[Any, Any], Any]:
    function = compare.not_equal if negated else compare.equal
    label = "NotEqual" if negated else "Equal"
    of_numbers = operator.ne if negated else operator.eq

    def compare_elements(self: Any, other: Any) -> Any:
        if other is None:
            return negated
        if _is_foreign(other):
            return NotImplemented
        if flag_of(self) is not None and other.__class__ in (int, float):
            return of_numbers(as_number(self), other)
        if not is_tensor_like(other) and not _comparable(other):
            return NotImplemented
        x, y = common(self, other) if Promotion.enabled else operands(label, self, other)
        try:
            broadcast(x._shape, y._shape)
        except ValueError:
            return convert_to_tensor(negated)
        return flagged(function(x, y), self, other) if is_flag(self) and is_flag(other) else function(x, y)

    return compare_elements


def _comparable(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, str, bytes, list, tuple)) or hasattr(value, "__array__")


def _matmul(x: Any, y: Any) -> Tensor:
    if not Promotion.enabled:
        return matrix_products.matmul(x, y)
    product: Any = find(np.matmul, "__call__")  # vectors, too
    return product(x, y)


def _divmod(x: Any, y: Any) -> tuple[Tensor, Tensor]:
    return arithmetic.floordiv(x, y), arithmetic.floormod(x, y)


def _simple(function: Callable[..., Any]) -> tuple[Callable, Callable]:
    return (lambda self, other: function(self, other)), (lambda self, other: function(other, self))


_ORDERED = "iuf"
_NUMBERS = "iufc"
_BINARY: dict[str, tuple[Callable, Callable]] = {
    "add": _operator("add", arithmetic.add, "add", _NUMBERS),
    "sub": _operator("sub", arithmetic.subtract, "subtract", _NUMBERS),
    "mul": _operator("mul", arithmetic.multiply, "multiply", _NUMBERS),
    "truediv": _operator("truediv", arithmetic.divide, "divide", "fc"),
    "floordiv": _operator("floordiv", arithmetic.floordiv, "floordiv", _ORDERED),
    "mod": _operator("mod", arithmetic.floormod, "floormod", _ORDERED),
    "pow": _power(*_operator("pow", arithmetic.pow, "pow", _NUMBERS)),
    "matmul": _simple(_matmul),
    "divmod": _simple(_divmod),
    "and": _logic("and_", compare.logical_and, compare.bitwise_and),
    "or": _logic("or_", compare.logical_or, compare.bitwise_or),
    "xor": _logic("xor", compare.logical_xor, compare.bitwise_xor),
    "lshift": _operator("lshift", compare.left_shift, "left_shift", "iu"),
    "rshift": _operator("rshift", compare.right_shift, "right_shift", "iu"),
}
_COMPARISONS: dict[str, Callable] = {
    "lt": _operator("lt", compare.less, "less", _ORDERED)[0],
    "le": _operator("le", compare.less_equal, "less_equal", _ORDERED)[0],
    "gt": _operator("gt", compare.greater, "greater", _ORDERED)[0],
    "ge": _operator("ge", compare.greater_equal, "greater_equal", _ORDERED)[0],
    "eq": _equality(False),
    "ne": _equality(True),
}
_UNARY: dict[str, Callable] = {
    "neg": _negative,
    "pos": lambda self: convert_to_tensor(self) if flag_of(self) is None else as_number(self),
    "abs": _absolute,
    "invert": _invert,
}


def install(cls: type) -> None:
    """Gives `cls` the operators, as methods."""
    for name, (forward, reflected) in _BINARY.items():
        setattr(cls, f"__{name}__", _method(forward))
        setattr(cls, f"__r{name}__", _method(reflected))
    for name, function in {**_COMPARISONS, **_UNARY, "getitem": _getitem}.items():
        setattr(cls, f"__{name}__", _method(function))
    protocol.install(cls)
    array_methods.install(cls)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    return function if is_marked(function) else shows_no_frames(function)


@mark
def _getitem(self: Any, key: Any) -> Tensor:
    """Indexing; see `runtime.ops.arrays.slicing.getitem`."""
    if next(is_due):
        look()
    try:
        return getitem(self if isinstance(self, Tensor) else convert_to_tensor(self), key)
    except leaving():
        raise


def _set_shape(self: Tensor, shape: Any) -> None:
    """Adds knowledge of the static shape; a symbolic tensor is checked when the program runs.

    Raises ValueError for a shape that contradicts it.
    """
    if not self.shape.is_compatible_with(shape):
        raise ValueError(f"Tensor's shape {self.shape} is not compatible with supplied shape {as_shape(shape)}.")
    if isinstance(self, SymbolicTensor):
        self.value = ensure_shape(self, self.shape.merge_with(shape)).value  # type: ignore[attr-defined]


install(Tensor)
Tensor.set_shape = _set_shape  # type: ignore[method-assign]
