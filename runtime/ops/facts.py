"""What a value is: a tensor, a symbolic one, known now; and types of one's own that become tensors."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from runtime import dtypes
from runtime.context import ctx
from runtime.ops.control import numpy_function
from runtime.ops.convert import is_tensor_like, static_value
from runtime.ops.entries import known_value
from runtime.shapes import TensorShape
from runtime.tensor import EagerTensor, SymbolicTensor, Tensor


def is_tensor(x: Any) -> bool:
    """Whether x is a tensor, a ragged or sparse one, indexed slices, or a variable, or says that it stands for one.

    Values that only convert to tensors don't count: numbers, arrays, objects with `__tf_tensor__`. An object says that
    it does by an attribute `is_tensor_like` that is true: TensorFlow Probability's deferred tensors have it.
    """
    return is_own_tensor(x) or bool(getattr(x, "is_tensor_like", False))


def is_own_tensor(x: Any) -> bool:
    """Whether x is of one of this project's kinds of tensors, or a variable."""
    return isinstance(x, Tensor) or getattr(type(x), "__ag_tensor__", False)


def is_symbolic_tensor(tensor: Any) -> bool:
    """Whether tensor is a tensor of a function that is being traced. Raises TypeError if tensor is not a tensor."""
    if not is_tensor_like(tensor):
        raise TypeError(f"Expected a tensor or variable, got {tensor!r}")
    return isinstance(tensor, SymbolicTensor)


def inside_function() -> bool:
    """Whether a function is being traced."""
    return ctx.builder is not None


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The value as a NumPy array or scalar if it is known while tracing, else None.

    A variable's isn't, as it may change; what is no tensor is its own value. Besides constants, that holds for integers
    computed from constants and known dimensions, and for their comparisons.
    """
    if not isinstance(tensor, Tensor):
        return None if is_tensor_like(tensor) else tensor
    known = static_value(tensor)
    if known is None:
        known = known_value(tensor)
    return None if known is None else EagerTensor(np.asarray(known), tensor.dtype).numpy()


def constant_value_as_shape(tensor: Any) -> TensorShape:
    """What is known of the shape that a vector of sizes gives; -1 is a size that isn't known."""
    if isinstance(tensor, TensorShape):
        return tensor
    known = get_static_value(tensor)
    if known is not None:
        return TensorShape([None if size == -1 else int(size) for size in np.atleast_1d(known)])
    if not isinstance(tensor, SymbolicTensor) or tensor.shape.rank != 1 or tensor.shape[0] is None:
        return TensorShape(None)
    sizes = [get_static_value(tensor[axis]) for axis in range(tensor.shape[0])]
    return TensorShape([None if size is None or size == -1 else int(size) for size in sizes])


def timestamp(name: str | None = None) -> Tensor:
    """Seconds since 1970, float64, when the program reaches the call."""
    return numpy_function(lambda: np.float64(time.time()), [], dtypes.float64)


def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Registers how `base_type` (a type or a tuple of types) and its subclasses convert to tensors, also as operands of
    ops.

    conversion_func(value, dtype=None, name=None, as_ref=False) returns a tensor. A later registration replaces an
    earlier one; `priority` is without effect. Raises TypeError for Python's and NumPy's own types, which convert
    already.
    """
    if not callable(conversion_func):
        raise TypeError(f"Argument `conversion_func` must be callable. Received {conversion_func}.")

    def convert(self: Any, dtype: Any = None, name: str | None = None) -> Tensor:
        result = conversion_func(self, dtype, name, False)
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"{conversion_func!r} of {type(self).__name__} returned {result!r}, which is not a tensor"
            )
        return result

    for kind in base_type if isinstance(base_type, tuple) else (base_type,):
        if not isinstance(kind, type) or kind.__module__ in ("builtins", "numpy") or issubclass(kind, Tensor):
            raise TypeError(f"Cannot register a conversion for a type of Python or NumPy, or for tensors: {kind!r}")
        kind.__tf_tensor__ = convert  # type: ignore[attr-defined]
