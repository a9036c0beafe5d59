"""`python -m tests.llvm.other_machine TRIPLE PROCESSOR FEATURES FOLDER`: code for another machine, which isn't run.

Writes, for each kernel below and for the functions that kernels call, an object file and its assembly to the folder.
The kernels are those that our own compiler makes. AUTOGRAPH_SYSTEM names the machine's system.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

import autograph as ag
from runtime import system
from runtime.codegen.backends import llvm_backend
from runtime.codegen.lower.lower_graph import lower
from runtime.codegen.native_runtime import allocator, gemm, indirect_gemm, thread_pool
from runtime.llvm import processor, target


@ag.function
def elementwise(x, y):
    return x * y + y


@ag.function
def loop(x, y, n):
    while n > 0:
        x = ag.math.exp(x) * y + ag.math.sin(x) * ag.math.cos(x) + ag.math.floor(y)
        n -= 1
    return x


@ag.function
def newton(x):
    """A loop with its own number of trips for each element."""
    return ag.map_fn(root, x)


def root(x):
    y = x
    while abs(y * y - x) > 1e-3:
        y = (y + x / y) * 0.5
    return y


@ag.function
def product(x, y):
    return ag.linalg.matmul(x, y)


@ag.function
def convolution(x, w):
    return ag.nn.conv2d(x, w, strides=1, padding="SAME")


def _kernels() -> dict[str, Any]:
    def of(*shape: int | None, dtype: Any = ag.float32) -> Any:
        return ag.TensorSpec(shape, dtype)

    vector, count = of(None), of(dtype=ag.int32)
    return {
        "elementwise": elementwise.get_concrete_function(vector, vector),
        "loop": loop.get_concrete_function(vector, vector, count),
        "newton": newton.get_concrete_function(vector),
        "product": product.get_concrete_function(of(64, 64), of(64, 64)),
        "convolution": convolution.get_concrete_function(of(8, 32, 32, 16), of(3, 3, 16, 32)),
    }


def main(triple: str, name: str, features: str, folder: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    chosen = {each[1:]: each[0] == "+" for each in features.split(",")}
    processor.triple, processor.name, processor.features = lambda: triple, lambda: name, lambda: chosen

    def write(stem: str, text: str, modules: Any = (), **options: Any) -> None:
        code = target.machine_code(text, modules, **options)
        Path(folder, f"{stem}.o").write_bytes(code)
        level, passes, later = options.get("level", 2), options.get("passes", target.ALL), options.get("later", "")
        optimised = target._optimised(text, modules, level, passes, later)
        Path(folder, f"{stem}.s").write_text(target._machine().emit_assembly(optimised))

    for stem, concrete in _kernels().items():
        source = lower(concrete.graph)
        module = llvm_backend.program(source)
        text = module.text("kernel", source.signature, stem)
        passes, later = llvm_backend.passes(source, module), llvm_backend.steps(module)
        write(stem, text, list(module.modules.values()), passes=passes, later=later)
    for products in (gemm, indirect_gemm):
        for kind, symbol in products.SYMBOLS.items():
            write(symbol, products.code(kind, processor.vector_bits() // 8), level=0)
    write("allocator", allocator.code(), level=0)
    if system.has_posix_threads():
        write("thread_pool", thread_pool.code(), level=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
