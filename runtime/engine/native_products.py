"""Products of matrices by the code that kernels call, for graphs that are interpreted until they are compiled.

Products that take long enough have the background thread compile it, which kernels with products need anyway.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from runtime.engine import background
from runtime.ops.blas import native

_requested: set[str] = set()


def _request(kind: str) -> None:
    """Has the products for a dtype, given by its character, compiled."""
    if kind not in _requested:
        _requested.add(kind)
        background.worker.submit(functools.partial(_provide, kind), urgent=True)


native.request = _request


def _provide(kind: str) -> None:
    from runtime.codegen.backends import llvm_backend  # imports LLVM
    from runtime.codegen.native_runtime import gemm
    from runtime.codegen.passes.parallelize import thread_count

    if llvm_backend.available():
        address = gemm.provide(np.dtype(kind).name)
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 5)(address)
        native.functions[kind] = functools.partial(_product, function, thread_count)


def _product(function: Any, thread_count: Any, a: Any, b: Any) -> Any:
    """The product of two matrices of the dtype of `function`, none of whose sizes is 0."""
    a, flips_a = _stored(a)
    b, flips_b = _stored(b)
    rows, inner = a.shape[::-1] if flips_a else a.shape
    columns = b.shape[0] if flips_b else b.shape[1]
    out = np.empty((rows, columns), a.dtype)
    places = (each.__array_interface__["data"][0] for each in (a, b, out))
    function(*places, rows, inner, columns, flips_a + 2 * flips_b, thread_count())
    return out


def _stored(matrix: Any) -> tuple[Any, bool]:
    """A matrix as it lies in memory, and whether that is the transposed one."""
    if matrix.flags.c_contiguous:
        return matrix, False
    if matrix.flags.f_contiguous:
        return matrix.T, True
    return np.ascontiguousarray(matrix), False
