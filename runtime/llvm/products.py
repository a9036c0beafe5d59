"""Matrix products by BLAS, through the pointers that SciPy offers to other compiled code (as numba does)."""

from __future__ import annotations

import ctypes

SYMBOLS = ("blas_sgemm", "blas_dgemm")


def support(name: str) -> str:
    """A function that calls `gemm` for this type of elements with letters and numbers by reference."""
    ir, one, letter = ("float", "1.0", "s") if name == "float32" else ("double", "1.0", "d")
    return f"""
declare void @blas_{letter}gemm(ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr, ptr)

define internal void @gemm_{name}(
    i1 %ta, i1 %tb, i64 %m, i64 %n, i64 %k, ptr %a, i64 %la, ptr %b, i64 %lb, ptr %c
) noinline nounwind {{
  %letters = alloca [2 x i8]
  %numbers = alloca [6 x i32]
  %factors = alloca [2 x {ir}]
  %l0 = select i1 %ta, i8 116, i8 110
  %l1 = select i1 %tb, i8 116, i8 110
  store i8 %l0, ptr %letters
  %pl1 = getelementptr i8, ptr %letters, i64 1
  store i8 %l1, ptr %pl1
  %m32 = trunc i64 %m to i32
  %n32 = trunc i64 %n to i32
  %k32 = trunc i64 %k to i32
  %la32 = trunc i64 %la to i32
  %lb32 = trunc i64 %lb to i32
  %pn = getelementptr i32, ptr %numbers, i64 1
  %pk = getelementptr i32, ptr %numbers, i64 2
  %pla = getelementptr i32, ptr %numbers, i64 3
  %plb = getelementptr i32, ptr %numbers, i64 4
  store i32 %m32, ptr %numbers
  store i32 %n32, ptr %pn
  store i32 %k32, ptr %pk
  store i32 %la32, ptr %pla
  store i32 %lb32, ptr %plb
  %pzero = getelementptr {ir}, ptr %factors, i64 1
  store {ir} {one}, ptr %factors
  store {ir} 0.0, ptr %pzero
  call void @blas_{letter}gemm(
    ptr %letters, ptr %pl1, ptr %numbers, ptr %pn, ptr %pk, ptr %factors, ptr %a, ptr %pla, ptr %b, ptr %plb,
    ptr %pzero, ptr %c, ptr %numbers
  )
  ret void
}}
"""


def address(symbol: str) -> int:
    """Where `blas_sgemm` or `blas_dgemm` lies."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__[symbol.removeprefix("blas_")]
    get_name = ctypes.pythonapi.PyCapsule_GetName
    get_name.restype, get_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, get_name(capsule)))
