"""`ag.types.experimental`: types for annotations, and the protocol by which an object says how it counts among a
function's arguments."""

from __future__ import annotations

from autograph.function.concrete import ConcreteFunction
from autograph.function.function_type import FunctionType, TraceType, TracingContext
from autograph.function.polymorphic import Function as GenericFunction
from autograph.function.polymorphic import Function as PolymorphicFunction
from runtime.tensor import TensorLike

__all__ = [
    "ConcreteFunction", "FunctionType", "GenericFunction", "PolymorphicFunction", "TensorLike", "TraceType",
    "TracingContext",
]  # fmt: skip
