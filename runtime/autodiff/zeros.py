"""Zero cotangents, and what is known of the shapes of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.graph.ir import ConstantArray, Graph, Value
from runtime.graph.structural import CONSTANT
from runtime.ops import stack
from runtime.ops.arrays.shape_ops import ensure_shape
from runtime.ops.dispatch import apply
from runtime.ops.zeros import zeros_of
from runtime.types import StackType, TensorType, Type


def zeros_for(tensor: Any) -> Any:
    """Zeros of a tensor's shape, or an empty stack for a stack."""
    type_ = tensor.type
    if isinstance(type_, StackType):
        return stack.empty(type_.element)
    return zeros_of(tensor)


def exact_zeros_for(tensor: Any) -> Any:
    """Like `zeros_for`, but of a stack zeros that can be popped and added to: for a stack from outside of a loop or
    branch, which may never pop from it."""
    return apply(stack.ZEROS, [tensor]) if isinstance(tensor.type, StackType) else zeros_for(tensor)


def with_shape(cotangent: Any, type_: Type) -> Any:
    """A cotangent, known to have the shape of its value's type: others that are added to it may tell less."""
    return ensure_shape(cotangent, type_.shape) if isinstance(type_, TensorType) else cotangent


def empty_like_type(graph: Graph, type_: TensorType) -> Value:
    """A constant of zeros in `graph` that stands where a value of `type_` is never read; unknown dimensions are 0."""
    shape = tuple(size or 0 for size in type_.shape or ())
    attrs = {"value": ConstantArray(np.zeros(shape, type_.dtype.np))}
    return graph.add_node(CONSTANT, (), attrs, CONSTANT.infer((), attrs)).outputs[0]
