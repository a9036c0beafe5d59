"""The table of operators, and what a row is called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

from runtime import dtypes
from runtime.dtypes import DType
from runtime.errors import UnimplementedError
from runtime.ops.api import convert_to_tensor
from runtime.ops.convert import static_value

Operator = Callable[..., Any]
OPERATORS: dict[str, Operator] = {}
_NAMES = {
    "FLOAT": "float32", "DOUBLE": "float64", "FLOAT16": "float16", "BFLOAT16": "bfloat16", "INT8": "int8",
    "INT16": "int16", "INT32": "int32", "INT64": "int64", "UINT8": "uint8", "UINT16": "uint16", "UINT32": "uint32",
    "UINT64": "uint64", "BOOL": "bool", "STRING": "string", "COMPLEX64": "complex64", "COMPLEX128": "complex128",
    "FLOAT8E4M3FN": "float8_e4m3fn", "FLOAT8E5M2": "float8_e5m2",
}  # fmt: skip


def operator(*names: str) -> Callable[[Operator], Operator]:
    """Makes a function the meaning of operators: `function(call, *inputs)`, where a missing input is None."""

    def register(function: Operator) -> Operator:
        for name in names:
            if name in OPERATORS:
                raise ValueError(f"{name!r} is registered twice")
            OPERATORS[name] = function
        return function

    return register


def dtype_of(number: int) -> DType:
    """The dtype that ONNX numbers so. Raises UnimplementedError for one that there isn't here."""
    try:
        label = onnx.TensorProto.DataType.Name(number)
    except ValueError:
        label = str(number)
    if label not in _NAMES:
        raise UnimplementedError(f"the ONNX type {label} isn't supported: autograph has no such dtype")
    return dtypes.as_dtype(_NAMES[label])


class Call:
    """One node that is being evaluated: its operator, attributes, operator-set version, and number of outputs."""

    def __init__(
        self, op: str, attrs: dict[str, Any], version: int, outputs: Sequence[str], evaluate: Callable[..., list[Any]]
    ) -> None:
        self.op = op
        self.attrs = attrs
        self.version = version
        self.outputs = outputs
        self.evaluate = evaluate  # runs a subgraph on inputs; it sees the names around it

    def get(self, name: str, usual: Any = None) -> Any:
        """An attribute, texts as str."""
        value = self.attrs.get(name, usual)
        return value.decode() if isinstance(value, bytes) else value

    def refuse(self, reason: str) -> UnimplementedError:
        return UnimplementedError(f"{self.op} of ONNX: {reason}")

    def known(self, tensor: Any, what: str) -> np.ndarray:
        """The value of an operand that must be known while tracing. Raises UnimplementedError."""
        value = None if tensor is None else static_value(convert_to_tensor(tensor))
        if value is None:
            raise self.refuse(f"{what} must be known while a function is traced; call the model eagerly")
        return np.asarray(value)

    def ints(self, tensor: Any, what: str) -> list[int]:
        return [int(each) for each in self.known(tensor, what).reshape(-1)]

    def axes(self, given: Any = None) -> tuple[int, ...] | None:
        """Axes, an attribute in older versions and an operand in newer ones; None where neither is there."""
        axes = self.get("axes") if given is None else self.ints(given, "axes")
        return None if axes is None else tuple(int(each) for each in axes)

    def shape(self, tensor: Any) -> list[int]:
        """The sizes of an operand, which must be known. Raises UnimplementedError."""
        shape = tensor._shape
        if shape is None or None in shape:
            raise self.refuse("the sizes of its operand must be known while a function is traced")
        return list(shape)

    def rank(self, tensor: Any) -> int:
        shape = tensor._shape
        if shape is None:
            raise self.refuse("the rank of its operand must be known while a function is traced")
        return len(shape)


def number(value: Any, like: Any) -> Any:
    """A scalar of a tensor's dtype."""
    return convert_to_tensor(np.asarray(value, like.dtype.np))
