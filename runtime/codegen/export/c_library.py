"""A C library of graphs: each becomes one kernel with a C function around it, all in one object file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

from runtime import errors, system
from runtime.codegen.backends import llvm_backend
from runtime.codegen.export.c_interface import CInterface, Parameter, Result
from runtime.codegen.export.raising import with_checks
from runtime.codegen.kernel.call_outs import CallOut
from runtime.codegen.kernel.source import KernelSource, NotNative
from runtime.codegen.lower.lower_graph import lower
from runtime.codegen.native_runtime import gemm, indirect_gemm, thread_pool
from runtime.dataclass import dataclass
from runtime.graph.ir import Graph
from runtime.graph.spans import at_span
from runtime.llvm import memory, processor, target, threads
from runtime.llvm.function_builder import FunctionBuilder, defined
from runtime.ops.random.stateful import Borrowed

# The functions by which kernels allocate large arrays: the C library's own, because a library must not keep freed
# memory.
_BLOCKS = f"""
declare ptr @malloc(i64)
declare void @free(ptr)
@{memory.BLOCKS} = global [2 x ptr] [ptr @malloc, ptr @free]
"""
_THREADS = "thread_count"


@dataclass(frozen=True)
class CFunction:
    """A C function to be made of a graph; parameters and results in the graph's order, tokens among them."""

    name: str
    graph: Graph
    parameters: tuple[Parameter, ...]
    results: tuple[Result, ...]
    doc: Sequence[str] = field(default=())

    @property
    def takes_weights(self) -> bool:
        """Whether its first parameter is the weights that were loaded from a file."""
        return any(each.weight is not None for each in self.parameters)

    @property
    def assigns_weights(self) -> bool:
        """Whether it gives weights new values."""
        return any(each.weight is not None for each in self.results)


def compile_object(name: str, functions: Sequence[CFunction]) -> bytes:
    """An object file that defines the functions, `NAME_free` and `NAME_set_threads`.

    Raises UnimplementedError, with the user's line, for a graph with an operation that has no native code.
    """
    if not llvm_backend.available():
        raise errors.UnimplementedError(
            f"C libraries are made by this project's own compiler, which doesn't run on {system.NAME}. Export an ONNX "
            "model (ag.onnx.export), or make the library on Linux or macOS"
        )
    parts: list[tuple[str, Any, str]] = []
    for number, function in enumerate(functions):
        source = _source(function)
        free = f"{name}_free" if number == 0 else None
        interface = CInterface(function.parameters, function.results, source, _THREADS, free)
        program = llvm_backend.program(source)
        text = program.text("kernel", source.signature, function.name, interface)
        parts.append((text, list(program.modules.values()), llvm_backend.steps(program)))
    texts = [text for text, _, _ in parts]
    resident = [(_BLOCKS, 2), (_thread_count(name), 2)]
    products = [
        each.code(kind, processor.vector_bits() // 8)
        for each in (gemm, indirect_gemm)
        for kind, symbol in each.SYMBOLS.items()
        if any(f"@{symbol}(" in text for text in texts)
    ]
    resident += [(code, 0) for code in products]
    if products or any(f"@{threads.POOL} " in text for text in texts):
        resident.append((f"{thread_pool.code()}\n@{threads.POOL} = global ptr @{threads.RUN}\n", 2))
    exported = [*(function.name for function in functions), f"{name}_free", f"{name}_set_threads"]
    return target.library(parts, resident, exported)


def _source(function: CFunction) -> KernelSource:
    try:
        source = lower(with_checks(function.graph), assuming=False)
    except NotNative as reason:
        span = reason.node.span if reason.node is not None else None
        error = errors.UnimplementedError(f"{function.name} can't be compiled as a C function: {reason}")
        raise at_span(error, span) from None
    for each in source.constants:
        if isinstance(each, CallOut) and each.node is not None:
            error = errors.UnimplementedError(
                f"{function.name} can't be compiled as a C function: op '{each.node.op.name}' can't be compiled"
            )
            raise at_span(error, each.node.span)
    if any(isinstance(each, Borrowed) for each in source.constants):
        raise errors.UnimplementedError(
            f"{function.name} can't be compiled as a C function: it draws random numbers from a state of the process; "
            "draw them with ag.random.stateless_uniform or another stateless function, with a seed among the arguments"
        )
    if source.kept:
        raise errors.UnimplementedError(f"{function.name} can't be compiled as a C function: it assigns a variable")
    kinds = {slot.kind for slot in (*source.inputs, *source.outputs)}
    if "stack" in kinds:
        raise errors.UnimplementedError(
            f"{function.name} can't be compiled as a C function: it takes or returns a list that grows; stack it "
            "(ag.stack)"
        )
    return replace(source, name=function.name)


def _thread_count(name: str) -> str:
    def write(f: FunctionBuilder) -> None:
        f.store("i64", f.min(f.max("%count", 1), thread_pool.MOST_THREADS), f"@{_THREADS}")

    return "\n".join([f"@{_THREADS} = global i64 1", defined(f"void @{name}_set_threads(i64 %count)", write)])
