"""`HostArray`: an array that NumPy gives when the program runs, such as random numbers.

Like an array that is there while tracing, it takes the dtype of a tensor that it meets:

    x * np.random.normal(size=3)      in the dtype of x

Everything else is asked of its tensor, which has NumPy's dtype.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from runtime import dtypes, nest
from runtime.ops.convert import convert_to_tensor, is_tensor_like
from runtime.ops.dispatch import call
from runtime.ops.staged_number import StagedNumber, is_number
from runtime.tensor import Tensor


@nest.leaf
class HostArray:
    """A tensor that takes the dtype of another."""

    __slots__ = ("__weakref__", "tensor")
    __ag_number__ = True  # as an operand it has no dtype of its own
    __ag_priority__ = 1  # tensors leave their operators to it

    kind = None  # it is no number of Python's, whose type a `StagedNumber` tells here

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    @property
    def default(self) -> Any:
        """The dtype where nothing else decides."""
        return self.tensor.dtype

    def __tf_tensor__(self, dtype: Any = None, name: str | None = None) -> Tensor:
        wanted = self.tensor.dtype if dtype is None else dtypes.as_dtype(dtype)
        if wanted is self.tensor.dtype:
            return self.tensor
        if wanted.kind not in ("fc" if self.tensor.dtype.is_floating else "iufc"):
            raise TypeError(f"Cannot convert an array of dtype {self.tensor.dtype.label} to dtype {wanted.label}")
        return call("cast", self.tensor, dtype=wanted)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.tensor, name)

    def __getitem__(self, key: Any) -> Any:
        return HostArray(self.tensor[key])

    def __iter__(self) -> Any:
        return iter([HostArray(each) for each in self.tensor])

    def __len__(self) -> int:
        return len(self.tensor)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __repr__(self) -> str:
        return repr(self.tensor)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.tensor.__array__(dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        made = getattr(ufunc, method)(*[each.tensor if type(each) is HostArray else each for each in inputs], **kwargs)
        return HostArray(made) if isinstance(made, Tensor) and made.dtype.is_numeric else made

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = nest.map_structure(lambda v: v.tensor if type(v) is HostArray else v, (args, kwargs))
        return function(*args, **kwargs)


def of_arrays(made: Any, *values: Any) -> Any:
    """Returns `made`, the tensor that an op computed from `values` or chose among them: as a `HostArray` if one of
    these is one and the others are `HostArray`s or numbers."""
    if any(type(each) is HostArray for each in values) and all(
        type(each) is HostArray or is_number(each) for each in values
    ):
        return HostArray(made) if made.dtype.is_numeric else made
    return made


def _binary(name: str) -> tuple[Any, Any]:
    function = getattr(operator, name)

    def operand(self: HostArray, other: Any) -> tuple[Any, Any, bool]:
        """The two as tensors, and whether the result is NumPy's too."""
        if is_tensor_like(other) and not isinstance(other, (HostArray, StagedNumber)):
            tensor = convert_to_tensor(other)
            try:
                return self.__tf_tensor__(tensor.dtype), tensor, False
            except TypeError:
                return self.tensor, tensor, False
        own = self.tensor
        if isinstance(other, HostArray):
            other = other.tensor
        value = other if isinstance(other, (bool, int, float)) else getattr(other, "tensor", other)
        kind = getattr(value, "dtype", None)
        is_float = isinstance(value, float) or (kind is not None and np.dtype(getattr(kind, "np", kind)).kind == "f")
        if own.dtype.is_integer and (is_float or name == "truediv"):
            own = call("cast", own, dtype=dtypes.float64)
        return own, convert_to_tensor(value, own.dtype), True

    def forward(self: HostArray, other: Any) -> Any:
        one, two, is_array = operand(self, other)
        made = function(one, two)
        return HostArray(made) if is_array and made.dtype.is_numeric else made

    def reflected(self: HostArray, other: Any) -> Any:
        one, two, is_array = operand(self, other)
        made = function(two, one)
        return HostArray(made) if is_array and made.dtype.is_numeric else made

    return forward, reflected


def _install() -> None:
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"):
        forward, reflected = _binary(name)
        setattr(HostArray, f"__{name}__", forward)
        setattr(HostArray, f"__r{name}__", reflected)
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):
        setattr(HostArray, f"__{name}__", _binary(name)[0])
    for name in ("neg", "abs"):
        function = getattr(operator, name)
        setattr(HostArray, f"__{name}__", lambda self, function=function: HostArray(function(self.tensor)))


_install()
