"""`ag.types.experimental`: the protocol by which an object says how it counts among a function's arguments."""

from __future__ import annotations

from autograph.function.concrete import ConcreteFunction
from autograph.function.function_type import FunctionType, TraceType, TracingContext
from autograph.function.polymorphic import Function as GenericFunction
from autograph.function.polymorphic import Function as PolymorphicFunction

__all__ = ["ConcreteFunction", "FunctionType", "GenericFunction", "PolymorphicFunction", "TraceType", "TracingContext"]
