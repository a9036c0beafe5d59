"""NVIDIA's library of matrix products, by ctypes: found where it is installed, by the system, a toolkit, a wheel
(`nvidia-cublas`), or another library in this process. Without it, kernels multiply matrices themselves.

`AUTOGRAPH_CUBLAS` names another library; an empty text keeps it from being used.
"""

from __future__ import annotations

import ctypes
import functools
import os
import site
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, c_double, c_float, c_int, c_longlong, c_void_p
from pathlib import Path
from typing import Any

from runtime import errors, system
from runtime.gpu.interface import Product

_DEFAULT_MATH, _TF32_MATH = 0, 3
_OPERATIONS = (0, 1)  # a matrix as it is, and its transpose
_NUMBERS: dict[int, Any] = {32: c_float, 64: c_double}
_FUNCTIONS = {32: "cublasSgemmStridedBatched", 64: "cublasDgemmStridedBatched"}

_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (POINTER(c_void_p),),
    "cublasDestroy_v2": (c_void_p,),
    "cublasSetMathMode": (c_void_p, c_int),
    # the operations, the sizes, alpha, each operand with its columns' and its matrices' distance, beta, the same of the
    # result, the number of matrices
    **{
        name: (
            c_void_p, *(c_int,) * 5, POINTER(_NUMBERS[bits]), *(c_void_p, c_int, c_longlong) * 2,
            POINTER(_NUMBERS[bits]), c_void_p, c_int, c_longlong, c_int,
        )
        for bits, name in _FUNCTIONS.items()
    },
}  # fmt: skip

_tf32 = False


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Lets products of float32 matrices on GPUs round their operands to 10 bits after the point ("TF32"), which is
    several times as fast. Off at first; in TensorFlow it is on. Products that kernels compute are exact in any case."""
    global _tf32
    _tf32 = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """Whether products of float32 matrices on GPUs may round their operands."""
    return _tf32


@functools.cache
def library() -> Any:
    """The library; None where there is none."""
    chosen = os.environ.get("AUTOGRAPH_CUBLAS")
    if chosen is not None:
        return _opened(chosen) if chosen else None
    names = system.cublas_libraries()
    # One that the process has already fits the other libraries in it. (Windows gives that one by its name anyway.)
    loaded = (_opened(name, os.RTLD_NOLOAD) for name in names if hasattr(os, "RTLD_NOLOAD"))
    others = (_opened(str(name)) for name in (*_files(names), *names))
    return next((each for each in (*loaded, *others) if each is not None), None)


def _files(names: Sequence[str]) -> Iterator[Path]:
    """Where wheels and toolkits put the libraries of these names: in `lib` and `lib64`, on Windows in `bin`."""
    for folder in {sysconfig.get_path("purelib"), *site.getsitepackages()}:
        for name in names:
            for within in ("lib", "bin"):
                yield from sorted(Path(folder).glob(f"nvidia/*/{within}/{name}"), reverse=True)
    for toolkit in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if toolkit:
            yield from (Path(toolkit) / within / name for within in ("lib64", "bin") for name in names)


def _opened(name: str, mode: int = 0) -> Any:
    path = Path(name)
    needed = path.with_name(path.name.replace("cublas", "cublasLt"))
    try:
        if path.is_absolute() and needed != path and needed.exists():
            ctypes.CDLL(str(needed), ctypes.RTLD_GLOBAL)  # which lies where the linker doesn't look
        found = ctypes.CDLL(name, mode | ctypes.DEFAULT_MODE)
        for function, types in _PROTOTYPES.items():
            getattr(found, function).argtypes = types
    except (OSError, AttributeError):
        return None
    return found


class Handle:
    """What products on one GPU are asked for with, in its context. They are in the default stream."""

    def __init__(self, found: Any) -> None:
        """Raises InternalError."""
        self._library, self._math = found, _DEFAULT_MATH
        self._handle = c_void_p()
        self._done("cublasCreate_v2", ctypes.byref(self._handle))

    def prepare(self, product: Product) -> Callable[[int, int, int], None]:
        """A function that multiplies matrices at addresses. It raises InternalError."""
        number = _NUMBERS[product.bits]
        one, zero = ctypes.byref(number(1)), ctypes.byref(number(0))
        rows, inner, columns = product.rows, product.inner, product.columns
        apart_a, apart_b, apart = product.apart
        # It goes by columns: what it takes for a matrix is the transpose, and the product's is that of b and a.
        name, handle = _FUNCTIONS[product.bits], self._handle
        function = getattr(self._library, name)
        operations = _OPERATIONS[product.flip_b], _OPERATIONS[product.flip_a]
        columns_of_b, columns_of_a = inner if product.flip_b else columns, rows if product.flip_a else inner

        def multiply(a: int, b: int, out: int) -> None:
            math = _TF32_MATH if _tf32 else _DEFAULT_MATH
            if math != self._math:
                self._done("cublasSetMathMode", handle, math)
                self._math = math
            status = function(
                handle, *operations, columns, rows, inner, one, b, columns_of_b, apart_b, a, columns_of_a, apart_a,
                zero, out, columns, apart, product.count,
            )  # fmt: skip
            if status:
                raise _failure(name, status)

        return multiply

    def _done(self, function: str, *arguments: Any) -> None:
        status = getattr(self._library, function)(*arguments)
        if status:
            raise _failure(function, status)


def _failure(function: str, status: int) -> errors.InternalError:
    return errors.InternalError(
        f"cuBLAS: {function} failed with status {status}; AUTOGRAPH_CUBLAS= keeps it from being used"
    )
