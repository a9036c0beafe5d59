"""The namespace of the Python array API standard over tensors: what `x.__array_namespace__()` returns.

Version 2025.12 of the standard, https://data-apis.org/array-api. Functions are made of ops, so they are staged,
compiled and differentiated as others are. Tensors are immutable: `x[i] = value` raises. Names that begin with an
underscore aside, everything here is the standard's.
"""

from __future__ import annotations

import sys as _sys

from runtime.array_api import elementwise as _elementwise
from runtime.array_api import fft, linalg
from runtime.array_api.array_object import install as _install
from runtime.array_api.constants import e, inf, nan, newaxis, pi
from runtime.array_api.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)  # fmt: skip
from runtime.array_api.data_types import (
    __array_namespace_info__,
    astype,
    bool,
    can_cast,
    complex64,
    complex128,
    finfo,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    isdtype,
    result_type,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from runtime.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from runtime.array_api.manipulation import (
    argmax,
    argmin,
    argsort,
    concat,
    count_nonzero,
    expand_dims,
    flip,
    isin,
    moveaxis,
    nonzero,
    permute_dims,
    repeat,
    reshape,
    roll,
    searchsorted,
    sort,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
    unstack,
)  # fmt: skip
from runtime.array_api.statistics import (
    all,
    any,
    cumulative_prod,
    cumulative_sum,
    diff,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)  # fmt: skip
from runtime.ops import operators as _operators  # noqa: F401 - tensors get their operators there

__array_api_version__ = "2025.12"
globals().update({name: getattr(_elementwise, name) for name in _elementwise.__all__})

__all__ = [
    "__array_api_version__", "__array_namespace_info__", "e", "inf", "nan", "newaxis", "pi", "fft", "linalg",
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like", "astype", "bool", "can_cast", "complex64",
    "complex128", "finfo", "float32", "float64", "iinfo", "int8", "int16", "int32", "int64", "isdtype", "result_type",
    "uint8", "uint16", "uint32", "uint64", "matmul", "matrix_transpose", "tensordot", "vecdot", "argmax", "argmin",
    "argsort", "concat", "count_nonzero", "expand_dims", "flip", "isin", "moveaxis", "nonzero", "permute_dims",
    "repeat", "reshape", "roll", "searchsorted", "sort", "squeeze", "stack", "take", "take_along_axis", "tile",
    "unique_all", "unique_counts", "unique_inverse", "unique_values", "unstack", "all", "any", "cumulative_prod",
    "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var", *_elementwise.__all__,
]  # fmt: skip

_install(_sys.modules[__name__])
