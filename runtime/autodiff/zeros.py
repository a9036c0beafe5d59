"""Zero cotangents."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.context import ctx
from runtime.graph.ir import ConstantArray, Graph, Value
from runtime.graph.structural import CONSTANT
from runtime.ops import stack
from runtime.ops.dispatch import apply
from runtime.ops.table import OPS
from runtime.shapes import is_static
from runtime.types import StackType, TensorType


def zeros_for(tensor: Any) -> Any:
    """Zeros of a tensor's shape, or an empty stack for a stack.

    Where the shape is known the tensor itself isn't used, so that a loop need not save it.
    """
    type_ = tensor.type
    if isinstance(type_, StackType):
        return stack.empty(type_.element)
    if ctx.builder is not None and is_static(type_.shape):
        if type_.shape == ():
            return ctx.builder.constant(np.zeros((), type_.dtype.np))
        zero = ctx.builder.constant(np.zeros((), type_.dtype.np))
        return apply(OPS["broadcast_to"], [zero], {"shape": type_.shape})
    return apply(OPS["zeros_like"], [tensor])


def empty_like_type(graph: Graph, type_: TensorType) -> Value:
    """A constant in `graph` that stands where a value of `type_` is never read."""
    shape = tuple(0 for _ in type_.shape or ())
    attrs = {"value": ConstantArray(np.zeros(shape, type_.dtype.np))}
    return graph.add_node(CONSTANT, (), attrs, CONSTANT.infer((), attrs)).outputs[0]
