"""The methods of NumPy's arrays on tensors: `t.sum(axis=0)`, `t.T`, `t.reshape(-1)`, `t.astype("float32")`.

TensorFlow's tensors have them after `experimental_enable_numpy_behavior`; here they always do, so that NumPy code can
be decorated unchanged and the result of `np.abs(t)` can be used as the array it would be for arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.ops.arrays import shape_ops
from runtime.ops.convert import convert_to_tensor
from runtime.ops.elementwise.elementary import cast
from runtime.ops.numpy.array_functions import FUNCTIONS, flat
from runtime.tensor import SymbolicTensor, Tensor
from runtime.tracebacks import shows_no_frames

# Methods that are NumPy's function of the same name with the tensor in front.
_SAME = (
    "sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "argmax", "argmin", "cumsum", "cumprod", "ravel",
    "squeeze", "swapaxes", "clip", "round", "dot", "take", "repeat", "argsort", "diagonal", "trace", "nonzero",
    "searchsorted", "copy",
)  # fmt: skip


def _method(name: str) -> Callable[..., Any]:
    function = FUNCTIONS[getattr(np, name)]

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(convert_to_tensor(self), *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"`np.{name}` of this tensor."
    return method


def _reshape(self: Any, *shape: Any, order: str = "C") -> Tensor:
    """`np.reshape` of this tensor; the shape may be given as several numbers."""
    return FUNCTIONS[np.reshape](self, shape[0] if len(shape) == 1 else shape, order=order)


def _transpose(self: Any, *axes: Any) -> Tensor:
    """Dimensions in another order, reversed by default."""
    perm = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
    return shape_ops.transpose(self, perm)


def _value(self: Any) -> Any:
    tensor = convert_to_tensor(self)
    if isinstance(tensor, SymbolicTensor):
        raise AttributeError(f"{tensor} has no value while its function is being traced.")
    return np.asarray(tensor._array)  # type: ignore[attr-defined]


def _size(self: Any) -> Any:
    """The number of elements: an int if it is known, else a tensor."""
    return FUNCTIONS[np.size](self)


_OWN: dict[str, Any] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "T": property(lambda self: shape_ops.transpose(self), doc="A tensor with its dimensions in reverse order."),
    "size": property(_size),
    "flatten": lambda self: flat(self),
    "astype": lambda self, dtype: cast(self, dtype),
    "tolist": lambda self: _value(self).tolist(),
    "item": lambda self, *index: _value(self).item(*index),
    "itemsize": property(lambda self: self.dtype.size),
    "nbytes": property(lambda self: _value(self).nbytes),
}  # fmt: skip
NAMES = frozenset([*_SAME, *_OWN])


def install(cls: type) -> None:
    """Gives `cls` (tensors, variables) the methods that it doesn't have."""
    for name in _SAME:
        if not hasattr(cls, name):
            setattr(cls, name, shows_no_frames(_method(name)))
    for name, member in _OWN.items():
        if not hasattr(cls, name):
            setattr(cls, name, member if isinstance(member, property) else shows_no_frames(member))
