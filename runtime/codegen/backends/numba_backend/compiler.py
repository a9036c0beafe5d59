"""The numba backend. numba is imported when the first kernel is compiled by it."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

from runtime.codegen.cache import kernel_cache
from runtime.codegen.kernel.source import KernelSource, Unreadable
from runtime.codegen.native_runtime import gemm, indirect_gemm

NAME = "numba"
# What unpickling and linking code of another build of numba or LLVM can raise. Digest and versions exclude all but
# builds with the same version number.
_UNREADABLE = (
    pickle.UnpicklingError, AttributeError, ImportError, EOFError, IndexError, KeyError, TypeError, ValueError,
    AssertionError, RuntimeError, MemoryError,
)  # fmt: skip


class Refused(Exception):
    """numba can't compile the text."""


def available() -> bool:
    return True


def compile(
    name: str, source: KernelSource, outside: Callable[[], None] = lambda: None
) -> tuple[Callable[..., Any], bytes | None]:
    """The entry point and the code for the cache; None if numba can't export it."""
    from numba.core.serialize import dumps

    dispatcher = _compiled(kernel_cache.module_of(name, source.text), source)
    # The overload's entry point skips the dispatch on argument types, which are known to be right.
    (overload,) = dispatcher.overloads.values()
    if "@lib.recursive" in source.text:
        # numba's exported code of a recursive function lacks that function, and crashes when loaded.
        return overload.entry_point, None
    try:
        return overload.entry_point, dumps((_version(), overload._reduce()))
    except RuntimeError:
        # llvmlite's object cache hook can miss the object code while another thread frees a module. The kernel is
        # correct; a later process compiles it again.
        return overload.entry_point, None


def text(source: KernelSource, form: str) -> str:
    """What becomes of a kernel, as text (see `Compiler.text`). Raises Refused: numba keeps no LLVM that isn't
    optimised."""
    if form == "llvm":
        raise Refused("numba gives its LLVM text only after optimisation")
    dispatcher = _compiled(kernel_cache.module_in_memory("shown", source.text), source)
    (signature,) = dispatcher.signatures
    return str(dispatcher.inspect_asm(signature) if form == "asm" else dispatcher.inspect_llvm(signature))


def _version() -> str:
    import numba

    return str(numba.__version__)


def _compiled(module: Any, source: KernelSource) -> Any:
    """numba's dispatcher of the kernel in a module. Raises Refused."""
    import numba
    from numba.core.errors import NumbaError

    _provide(source)
    options = {"nogil": True, "error_model": "numpy", "boundscheck": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=numba.NumbaWarning)
        try:
            # numba has no floats of 16 bits: kernels take their bits.
            types = source.signature.replace("bfloat16", "uint16").replace("float16", "uint16")
            return numba.njit(types, **options)(module.kernel)
        except (NumbaError, NotImplementedError, AssertionError, KeyError, TypeError) as error:
            raise Refused(str(error)) from error


def load(name: str, source: KernelSource, code: bytes) -> Callable[..., Any]:
    """The entry point of cached code."""
    import numba
    from numba.core.compiler import CompileResult
    from numba.core.registry import cpu_target

    _provide(source)
    kernel_cache.module_of(name, source.text)  # the code refers to it
    context = cpu_target.target_context
    context.refresh()
    try:
        version, content = pickle.loads(code)
        if version != numba.__version__:
            raise Unreadable(f"numba {version} wrote it, this is {numba.__version__}")
        return CompileResult._rebuild(context, *content).entry_point
    except _UNREADABLE as error:
        raise Unreadable(f"{type(error).__name__}: {error}") from error


def _provide(source: KernelSource) -> None:
    """Defines the symbols that the kernel refers to for numba's linker."""
    import llvmlite.binding

    for products, callers in ((gemm, ("matmul", "gemm")), (indirect_gemm, ("indirect_gemm",))):
        if any(f"lib.{caller}(" in source.text for caller in callers):
            for name, symbol in products.SYMBOLS.items():
                llvmlite.binding.add_symbol(symbol, products.provide(name))
