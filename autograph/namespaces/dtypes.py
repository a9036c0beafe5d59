"""`ag.dtypes`: data types."""

from __future__ import annotations

from autograph.namespaces import dtypes_experimental as experimental
from runtime.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    complex64,
    complex128,
    double,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    string,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from runtime.dtypes import (
    bool_ as bool,
)
from runtime.ops.arrays.miscellaneous import (
    saturate_cast,
)
from runtime.ops.elementwise.complex_numbers import (
    complex,
)
from runtime.ops.elementwise.elementary import (
    cast,
)

__all__ = [
    "DType", "as_dtype", "bfloat16", "bool", "cast", "complex", "complex128", "complex64", "double", "experimental",
    "float16", "float32", "float64", "half", "int16", "int32", "int64", "int8", "saturate_cast", "string", "uint16",
    "uint32", "uint64", "uint8",
]  # fmt: skip
