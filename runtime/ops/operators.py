"""Python's operators on tensors and variables: `install` gives a class `+`, `[]`, `@`, comparisons and the others.

`==` and `!=` compare elementwise, as in TensorFlow 2; against None they are False and True, and for shapes that don't
broadcast one False (True).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx
from runtime.ops.arrays.shape_ops import ensure_shape
from runtime.ops.arrays.slicing import getitem
from runtime.ops.convert import convert_to_tensor, is_tensor_like, operands, quick_operand, quick_scalar
from runtime.ops.dispatch import apply, call
from runtime.ops.elementwise import arithmetic, compare
from runtime.ops.linalg import matrix_products
from runtime.ops.numpy import array_methods, protocol
from runtime.ops.numpy.ufuncs import Promotion, common, find
from runtime.ops.table import OPS
from runtime.shapes import as_shape, broadcast
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor
from runtime.tracebacks import is_marked, leaving, mark, shows_no_frames


def _is_foreign(value: Any) -> bool:
    """Types that know tensors and want to handle the operator themselves."""
    return getattr(type(value), "__ag_priority__", 0) > 0


def _operator(function: Callable[..., Tensor], row: str, kinds: str) -> tuple[Callable, Callable]:
    """The operator and its reflected form, with a short way for two tensors of one dtype, and for one and a number."""
    op = OPS[row]

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


def _logic(logical: Callable[..., Tensor], bitwise: Callable[..., Tensor]) -> tuple[Callable, Callable]:
    """`&`, `|`, `^`: logic on bools, bits on integers."""

    def function(x: Any, y: Any) -> Tensor:
        if Promotion.enabled:
            x, y = common(x, y)
        x, y = operands(bitwise.row.label, x, y)  # type: ignore[attr-defined]
        return (logical if x.dtype is dtypes.bool_ else bitwise)(x, y)

    def forward(self: Any, other: Any) -> Any:
        return NotImplemented if _is_foreign(other) else function(self, other)

    def reflected(self: Any, other: Any) -> Any:
        return NotImplemented if _is_foreign(other) else function(other, self)

    return forward, reflected


def _power(forward: Callable, reflected: Callable) -> tuple[Callable, Callable]:
    """`x ** 2` is a square: faster, and differentiable without a logarithm."""

    def power(self: Any, other: Any) -> Any:
        if other.__class__ is int and other == 2:
            return arithmetic.square(self)
        return forward(self, other)

    return power, reflected


def _invert(self: Any) -> Tensor:
    x = convert_to_tensor(self)
    return compare.logical_not(x) if x.dtype is dtypes.bool_ else compare.invert(x)


def _negative(self: Any) -> Tensor:
    x = convert_to_tensor(self)
    # Unsigned integers wrap around, as NumPy's do; the op of TensorFlow's name has none.
    return arithmetic.subtract(call("zeros_like", x), x) if x.dtype.is_unsigned else arithmetic.negative(x)


def _absolute(self: Any) -> Tensor:
    x = convert_to_tensor(self)
    return x if x.dtype.is_unsigned else arithmetic.abs(x)


def _equality(negated: bool) -> Callable[[Any, Any], Any]:
    function = compare.not_equal if negated else compare.equal
    label = "NotEqual" if negated else "Equal"

    def compare_elements(self: Any, other: Any) -> Any:
        if other is None:
            return negated
        if _is_foreign(other):
            return NotImplemented
        if not is_tensor_like(other) and not _comparable(other):
            return NotImplemented
        x, y = common(self, other) if Promotion.enabled else operands(label, self, other)
        try:
            broadcast(x._shape, y._shape)
        except ValueError:
            return convert_to_tensor(negated)
        return function(x, y)

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
    "add": _operator(arithmetic.add, "add", _NUMBERS),
    "sub": _operator(arithmetic.subtract, "subtract", _NUMBERS),
    "mul": _operator(arithmetic.multiply, "multiply", _NUMBERS),
    "truediv": _operator(arithmetic.divide, "divide", "fc"),
    "floordiv": _operator(arithmetic.floordiv, "floordiv", _ORDERED),
    "mod": _operator(arithmetic.floormod, "floormod", _ORDERED),
    "pow": _power(*_operator(arithmetic.pow, "pow", _NUMBERS)),
    "matmul": _simple(_matmul),
    "divmod": _simple(_divmod),
    "and": _logic(compare.logical_and, compare.bitwise_and),
    "or": _logic(compare.logical_or, compare.bitwise_or),
    "xor": _logic(compare.logical_xor, compare.bitwise_xor),
    "lshift": _operator(compare.left_shift, "left_shift", "iu"),
    "rshift": _operator(compare.right_shift, "right_shift", "iu"),
}
_COMPARISONS: dict[str, Callable] = {
    "lt": _operator(compare.less, "less", _ORDERED)[0],
    "le": _operator(compare.less_equal, "less_equal", _ORDERED)[0],
    "gt": _operator(compare.greater, "greater", _ORDERED)[0],
    "ge": _operator(compare.greater_equal, "greater_equal", _ORDERED)[0],
    "eq": _equality(False),
    "ne": _equality(True),
}
_UNARY: dict[str, Callable] = {
    "neg": _negative,
    "pos": lambda self: convert_to_tensor(self),
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
