"""Zero cotangents of tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from runtime.context import ctx
from runtime.ops.dispatch import call
from runtime.shapes import is_static


def zeros_of(tensor: Any) -> Any:
    """Zeros of a tensor's dtype and shape. Where the shape is known while tracing, the tensor itself isn't used, so
    that a loop need not save it."""
    type_ = tensor.type
    if ctx.builder is not None and is_static(type_.shape):
        zero = ctx.builder.constant(np.zeros((), type_.dtype.np))
        return zero if type_.shape == () else call("broadcast_to", zero, shape=type_.shape)
    return call("zeros_like", tensor)
