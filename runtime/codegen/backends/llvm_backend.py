"""Kernels by way of our own front end (`runtime.llvm`): machine code of an object file, kept as it is."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.kernel.source import KernelSource, Unreadable
from runtime.codegen.native_runtime import allocator, gemm, indirect_gemm, thread_pool
from runtime.llvm import Unsupported as Refused
from runtime.llvm import target

NAME = "llvm"
# The library's functions that are plain Python.
_TEXTS = ("functions.py", "algorithms.py", "philox.py", "windows.py")

__all__ = ["NAME", "Refused", "available", "compile", "load", "text"]


@functools.cache
def _symbols() -> dict[str, Callable[[], int]]:
    """The symbols that kernels refer to besides NumPy's and the C library's, and what gives their addresses."""
    from runtime.llvm import memory, threads

    return {
        memory.BLOCKS: allocator.table,
        threads.POOL: thread_pool.place,
        **{
            symbol: functools.partial(products.provide, name)
            for products in (gemm, indirect_gemm)
            for name, symbol in products.SYMBOLS.items()
        },
    }


def available() -> bool:
    """Whether it supports this machine and this Python."""
    return target.available()


@functools.cache
def _library() -> Any:
    from runtime.llvm.program import Library

    return Library(library_text(), _formulas)


def library_text() -> str:
    """The library's functions that are plain Python."""
    folder = Path(__file__).parents[1] / "kernel_library"
    return "\n".join((folder / name).read_text(encoding="utf-8") for name in _TEXTS)


def _formulas() -> Mapping[str, Any]:
    from runtime.codegen.math.function_table import FORMULAS

    return FORMULAS


def steps(module: Any) -> str:
    """A module of the vector intrinsics that a program's formulas call, to be linked after loop vectorisation."""
    if not module.modules:
        return ""
    from runtime.codegen.math import vector_intrinsics

    return vector_intrinsics.definitions(module.needs)


def program(source: KernelSource) -> Any:
    """A kernel with the library functions that it calls, to be translated. Raises Refused for text outside the kernel
    IR's grammar."""
    from runtime.kernel_ir.parse_python import parse_functions
    from runtime.llvm.program import Program

    # A kernel that comes from the disk is known by its text.
    return Program(source.functions or parse_functions(source.text), _library())


def compile(
    name: str, source: KernelSource, outside: Callable[[], None] = lambda: None
) -> tuple[Callable[..., Any], bytes | None]:
    """The entry point and the object file. Calls `outside` when only LLVM's work is left. Raises Refused for a kernel
    that it doesn't support."""
    module = program(source)
    text = module.text("kernel", source.signature, name)
    outside()
    modules = module.modules.values()
    code = target.machine_code(text, modules, passes=passes(source, module), later=steps(module))
    return target.entry_point(code, name, _symbols()), code


def lanes(source: KernelSource) -> list[int]:
    """The number of lanes of each vectorised outer loop of a kernel."""
    try:
        module = program(source)
        module.text("kernel", source.signature, "kernel")
    except Refused:
        return []
    widths: list[int] = module.lanes
    return widths


def text(source: KernelSource, form: str) -> str:
    """A kernel in a readable form (see `Compiler.text`). Raises Refused."""
    module = program(source)
    written: str = module.text("kernel", source.signature, "kernel")
    if form == "llvm":
        return written
    modules = module.modules.values()
    show = target.assembly if form == "asm" else target.optimised_text
    return show(written, modules, passes=passes(source, module), later=steps(module))


def passes(source: KernelSource, module: Any) -> target.Passes:
    """The passes for a kernel whose text has been written."""
    if source.quick or (module.lanes and not module.vectors):
        # Loops whose trips run side by side are vectors already. LLVM's other passes take half of its time for vectors
        # of so many lanes, and change little.
        return target.Passes("few")
    if not module.vectors:
        return target.Passes("scalar", module.unrolls)
    if module.nests >= cost_model.NESTS_PER_LOOP * module.loops:
        return target.Passes("nests", module.unrolls)
    # Loads of what an earlier loop has stored, which LLVM's first look leaves in a loop's nests, take up to a tenth of
    # the time of a gradient. A single loop gains nothing.
    return target.Passes("twice" if module.loops > 1 else "all", module.unrolls)


def load(name: str, source: KernelSource, code: bytes) -> Callable[..., Any]:
    """The entry point of an object file; the text isn't needed."""
    return entry(name, code)


def entry(name: str, code: bytes) -> Callable[..., Any]:
    """The entry point of an object file. Raises Unreadable for what isn't one."""
    try:
        return target.entry_point(code, name, _symbols())
    except RuntimeError as error:
        raise Unreadable(str(error)) from error
