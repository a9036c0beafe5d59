"""Which dtypes ONNX Runtime's kernels for CPUs take, where that is fewer than ONNX allows.

A model that a runtime refuses is of no use, and a cast costs little: operands of other dtypes are cast to the first of
`_WIDER` that the kernel takes, and the result is cast back. Bits: b bool, 1 2 4 8 bytes of i int, u unsigned, f float.
"""

from __future__ import annotations

import functools

from runtime import dtypes
from runtime.dtypes import DType

_ALL = "b i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 s"
_NUMBERS = "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8"
_FLOATS = "f4 f8"
_REDUCED = "i4 i8 f4 f8"
_TAKEN = {
    **dict.fromkeys(["Add", "Sub", "Mul", "Div", "Abs", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"], _NUMBERS),
    **dict.fromkeys(
        [
            "Sqrt",
            "Exp",
            "Log",
            "Sin",
            "Cos",
            "Tanh",
            "Sigmoid",
            "Floor",
            "Ceil",
            "Round",
            "Reciprocal",
            "Softmax",
            "LogSoftmax",
            "Gemm",
            "DFT",
            "BatchNormalization",
        ],
        _FLOATS,
    ),
    **dict.fromkeys(
        [
            "Tan",
            "Asin",
            "Acos",
            "Atan",
            "Sinh",
            "Cosh",
            "Asinh",
            "Acosh",
            "Atanh",
            "Erf",
            "Softplus",
            "Conv",
            "AveragePool",
            "Det",
            "Col2Im",
            "ConvTranspose",
        ],
        "f4",
    ),
    **dict.fromkeys(["ReduceMean", "ReduceProd", "CumSum", "Einsum", "Pow"], _REDUCED),
    # It adds integers up in float64 and cuts what an int32 can't hold; ours wraps.
    "ReduceSum": "i8 f4 f8",
    **dict.fromkeys(["ReduceMax", "ReduceMin"], "i1 u1 i4 i8 f4 f8"),
    **dict.fromkeys(["ArgMax", "ArgMin"], "i1 u1 i4 i8 f4 f8"),
    **dict.fromkeys(["BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot"], "i1 i2 i4 i8 u1 u2 u4 u8"),
    "Equal": "b i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 s",
    "Expand": _ALL,
    "IsNaN": "f2 f4 f8",
    "IsInf": "f2 f4 f8",
    "MatMul": "i4 i8 f4 f8",
    "Max": "i1 u1 i4 u4 i8 u8 f4 f8",
    "Min": "i1 u1 i4 u4 i8 u8 f4 f8",
    "MaxPool": "i1 u1 f4 f8",
    "Mod": "i1 i2 i4 i8 u1 u2 u4 u8 f4 f8",
    "Neg": "i1 i2 i4 i8 f4 f8",
    "NonZero": "b u1 i4 i8 f4",
    "Pad": "b i1 u1 i4 u4 i8 u8 f4 f8",
    "Range": "i2 i4 i8 f4 f8",
    "Sign": _NUMBERS,
    "Relu": "i1 i4 f4 f8",
    "ScatterND": "b i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 s",
    "ScatterElements": "b i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 s",
    "Tile": "b i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 s",
    "TopK": "i1 i2 i4 i8 u1 f4 f8",
    "Trilu": "b i4 i8 f4 f8",
    "Unique": "i1 i8 f4 f8 s",
    "Where": "i1 u1 i4 u4 i8 f4 f8 s",
}
_WIDER = {
    "bool": ["uint8", "int32", "int64"],
    "int8": ["int16", "int32", "int64", "float32"],
    "int16": ["int32", "int64", "float32"],
    "int32": ["int64", "float64"],
    "int64": ["float64"],
    "uint8": ["int16", "int32", "int64", "float32"],
    "uint16": ["int32", "int64", "float32"],
    "uint32": ["int64", "float64"],
    "uint64": ["int64"],
    "float16": ["float32"],
    "bfloat16": ["float32"],
    "float64": ["float32"],
    "float8_e4m3fn": ["float32"],
    "float8_e5m2": ["float32"],
}


def _code(name: str) -> str:
    dtype = dtypes.as_dtype(name)
    return "s" if dtype is dtypes.string else "b" if dtype is dtypes.bool_ else f"{dtype.kind}{dtype.size}"


@functools.cache
def computing_dtype(op: str, dtype: DType) -> DType:
    """The dtype that a kernel is to compute in, for operands of a dtype."""
    taken = _TAKEN.get(op, _ALL).split()
    if dtype.is_narrow:
        return dtypes.float32
    if _code(dtype.name) in taken:
        return dtype
    for name in _WIDER.get(dtype.name, ()):
        if _code(name) in taken:
            return dtypes.as_dtype(name)
    return dtype
