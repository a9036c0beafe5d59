"""Approximate instructions of GPUs (`codegen/math/vector_builder.py`, `approximate`).

The formulas that use them keep their error bounds if each instruction is off by at most 1 unit in the last place. An
H200's are: `tests/device/test_gpu_functions.py` checks it on a GPU. Subnormal operands and results become 0. On the
host the instructions are emulated, with correctly rounded results.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterable

from runtime.llvm.function_builder import FunctionBuilder, defined

# name -> LLVM's intrinsic, and what computes the same on the host, in float64
_INSTRUCTIONS: dict[str, tuple[str, Callable[[FunctionBuilder, str], str]]] = {
    "rcp": ("nvvm.rcp.approx.ftz.f", lambda f, x: f.binary("fdiv", "1.0", x, "double")),
    "ex2": ("nvvm.ex2.approx.ftz.f", lambda f, x: f.call("double", "@exp2", f"double {x}")),
}
_SMALLEST = "0x3810000000000000"  # the smallest normal float32
_INFINITY = "0x7FF0000000000000"

ERROR = 0  # added to the emulated results, in units in the last place: tests set it to try the bounds


def definitions(needs: Container[str], for_gpu: bool) -> str:
    """LLVM IR that defines the approximate instructions whose symbols are in `needs`; empty if there are none.
    for_gpu: as instructions of the GPU; else as functions for the host."""
    used = [name for name in _INSTRUCTIONS if symbol(name) in needs]
    if not used:
        return ""
    return "\n".join(map(_on_gpu, used)) if for_gpu else _on_host(used)


def symbol(name: str) -> str:
    return f"gpu_{name}"


def _on_gpu(name: str) -> str:
    intrinsic, _ = _INSTRUCTIONS[name]
    return defined(
        f"linkonce_odr float @{symbol(name)}(float %x) alwaysinline nounwind memory(none)",
        lambda f: f.intrinsic(intrinsic, "float", "float %x"),
    )


def _on_host(names: Iterable[str]) -> str:
    texts = ["declare double @exp2(double) nounwind memory(none)"]
    for name in names:
        head = f"linkonce_odr float @{symbol(name)}(float %x) nounwind memory(none)"
        texts.append(defined(head, functools.partial(_emulated, name=name)))
    return "\n".join(texts)


def _emulated(f: FunctionBuilder, name: str) -> str:
    _, compute = _INSTRUCTIONS[name]
    wide = compute(f, f.convert("fpext", "float", _without_subnormals(f, "%x"), "double"))
    right = f.convert("fptrunc", "double", wide, "float")
    bits = f.binary("add", f.convert("bitcast", "float", right, "i32"), ERROR, "i32")
    size = f.fabs("float", right)
    is_inexact = f.all_of(*(f.binary("fcmp one", size, exact, "float") for exact in ("0.0", _INFINITY)))
    near = f.select(is_inexact, f.convert("bitcast", "i32", bits, "float"), right, "float")
    return _without_subnormals(f, near)


def _without_subnormals(f: FunctionBuilder, x: str) -> str:
    is_small = f.binary("fcmp olt", f.fabs("float", x), _SMALLEST, "float")
    return f.select(is_small, f.intrinsic("copysign", "float", "float 0.0", f"float {x}"), x, "float")
