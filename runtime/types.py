"""Types of graph values, and of the operands that an op's type rule sees.

type ::= TensorType(dtype, shape)      shape: tuple of int | None, or None for an unknown rank
       | StackType(element)            last-in first-out store of tensors, used by loop adjoints
       | TokenType()                   orders effects (print, assert, host calls)
"""

from __future__ import annotations

from runtime.dataclass import dataclass
from runtime.dtypes import DType
from runtime.shapes import Shape, format_shape


@dataclass(frozen=True)
class TensorType:
    dtype: DType
    shape: Shape

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    def __str__(self) -> str:
        if self.shape is None:
            return f"{self.dtype.name}[?]"
        return f"{self.dtype.name}[{', '.join('?' if d is None else str(d) for d in self.shape)}]"


@dataclass(frozen=True)
class StackType:
    element: TensorType

    def __str__(self) -> str:
        return f"stack<{self.element}>"


@dataclass(frozen=True)
class TokenType:
    def __str__(self) -> str:
        return "token"


Type = TensorType | StackType | TokenType


def describe(type_: TensorType) -> str:
    """`shape=(2, None), dtype=float32`, for messages."""
    return f"shape={format_shape(type_.shape)}, dtype={type_.dtype.name}"
