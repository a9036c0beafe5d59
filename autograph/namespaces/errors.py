"""`ag.errors`: what ops raise, under TensorFlow's names, and what conversion and staging raise."""

from __future__ import annotations

from autograph.errors import (
    AutographError,
    ConversionError,
    StagingError,
    StagingTypeError,
    StagingValueError,
    UnsupportedError,
)  # fmt: skip
from runtime.errors import (
    DTypeError,
    FailedPreconditionError,
    InaccessibleTensorError,
    InternalError,
    InvalidArgumentError,
    KernelError,
    NoneValueError,
    NotFoundError,
    OperatorNotAllowedInGraphError,
    OpError,
    OutOfRangeError,
    UnimplementedError,
    UnsetAttributeError,
    UnsetItemError,
    UnsetVariableError,
)  # fmt: skip

__all__ = [
    "AutographError", "ConversionError", "StagingError", "StagingTypeError", "StagingValueError", "DTypeError",
    "FailedPreconditionError", "InaccessibleTensorError", "InternalError", "InvalidArgumentError", "KernelError",
    "NoneValueError", "NotFoundError", "OpError", "OperatorNotAllowedInGraphError", "OutOfRangeError",
    "UnimplementedError", "UnsetAttributeError", "UnsetItemError", "UnsetVariableError",
    "UnsupportedError",
]  # fmt: skip
