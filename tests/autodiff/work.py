"""Counts what a kernel does: its text runs as Python, line by line."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

import autograph as ag
from runtime import dtypes
from runtime.codegen.lower.lower_graph import lower
from runtime.engine.function import to_run
from runtime.graph.ir import Graph
from runtime.graph.passes.pipeline import optimize


def lines_run(graph: Graph, *inputs: Any) -> int:
    """How many lines the kernel of a graph runs for these inputs. A copy in a library function counts each element."""
    source = lower(graph)
    library = Library()
    space: dict[str, Any] = {"lib": library, "np": np, "math": math}
    text = "\n".join(line for line in source.text.splitlines() if not line.startswith(("import ", "from ")))
    exec(compile(text, "kernel", "exec"), space)
    kernel, count = space["kernel"], 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    def enter(frame: FrameType, event: str, argument: Any) -> Any:
        return trace if frame.f_code.co_filename == "kernel" else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        with np.errstate(all="ignore"):
            results = kernel(*[_bits(np.array(each))[()] for each in inputs], *source.constants)
    finally:
        sys.settrace(before)
    assert not source.errors or results[0] == 0, "the kernel failed"
    return count + library.elements


def _bits(array: Any) -> Any:
    """What a kernel is given for an array: of narrow floats their bits."""
    return array.view(np.uint16) if array.dtype in dtypes.NARROW else array


def _from_bits(dtype: dtypes.DType) -> Any:
    return staticmethod(lambda bits: np.float32(np.uint16(bits).view(dtype.np)))


def _to_bits(dtype: dtypes.DType) -> Any:
    return staticmethod(lambda value: np.float32(value).astype(dtype.np).view(np.uint16))


class Library:
    """The library of kernels, as far as these need it, in Python."""

    def __init__(self) -> None:
        self.elements = 0  # that were copied

    sin, cos, exp, tanh = np.sin, np.cos, np.exp, np.tanh
    float16 = bfloat16 = np.uint16  # kernels hold the bits of narrow floats

    from_float16, from_bfloat16 = map(_from_bits, (dtypes.float16, dtypes.bfloat16))
    to_float16, to_bfloat16 = map(_to_bits, (dtypes.float16, dtypes.bfloat16))

    @staticmethod
    def flat(array: Any) -> Any:
        return array.reshape(-1)

    @staticmethod
    def shaped(dims: Any, line: Any) -> Any:
        return line[: math.prod(dims)].reshape(dims)

    @staticmethod
    def interrupted() -> bool:
        return False

    @staticmethod
    def recursive(function: Callable[..., Any]) -> Callable[..., Any]:
        return function

    @staticmethod
    def here() -> int:
        return 0

    def scalar_count(self, dims: Any, rank: int, first: int, end: int) -> int:
        self.elements += end - first
        return sum(math.prod(dims[k : k + rank]) for k in range(first, end, rank))

    @staticmethod
    def capacity(rows: int, needed: int, size: int) -> int:
        return size if needed <= size else max(needed, 2 * rows)

    @staticmethod
    def clamped(position: int, size: int) -> int:
        return min(max(position + size if position < 0 else position, 0), size)

    @staticmethod
    def add(total: Any, value: Any) -> Any:
        return total + value

    def copied(self, buffer: Any, used: int) -> Any:
        self.elements += used
        return np.array(buffer[:used])

    def grown(self, buffer: Any, used: int, needed: int) -> Any:
        return self.resized(buffer, used, max(needed, 2 * buffer.size, 16))

    def resized(self, buffer: Any, used: int, size: int) -> Any:
        if size == buffer.size:
            return buffer
        used = min(used, size)
        self.elements += size
        result = np.zeros(size, buffer.dtype)
        result[:used] = buffer[:used]
        return result


def value_and_gradients(function: Callable[[Any], Any], x: Any, orders: int = 1) -> list[int]:
    """The lines that kernels of a function and of its first gradients run. Each order differentiates the sum of the
    squares of the one before."""
    found = []
    for order in range(orders + 1):
        graph = ag.function(_derivative(function, order)).get_concrete_function(x).graph
        found.append(lines_run(to_run(optimize(graph)), x.numpy(), *_state(graph)))
    return found


def _state(graph: Graph) -> list[Any]:
    """The values of what the graph uses from outside."""
    return [np.asarray(outside) for outside in graph.external_captures]


def _derivative(function: Callable[[Any], Any], order: int) -> Callable[[Any], Any]:
    if order == 0:
        return function
    below = _derivative(function, order - 1)

    def derivative(x: Any) -> Any:
        with ag.GradientTape() as tape:
            tape.watch(x)
            y = below(x)
            if order > 1:
                y = ag.reduce_sum(y * y)
        return tape.gradient(y, x)

    return derivative
