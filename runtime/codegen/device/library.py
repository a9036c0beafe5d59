"""The library of kernels in SPMD form: the processor's (`kernel_library`), with some functions made for many threads.

`gpu` has what tells threads apart and has them meet (`runtime/llvm/device.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runtime.codegen.backends import llvm_backend
from runtime.codegen.math.function_table import FORMULAS
from runtime.kernel_ir import ir
from runtime.kernel_ir.parse_python import parse_functions
from runtime.llvm.program import Library

# Products: each element is a sum in the order in which the processor's plain loops compute it. Logarithms of the gamma
# function: Lanczos' series with the coefficients of Press and others ("Numerical Recipes", 3rd edition, 6.1), off by at
# most 1e-14, absolute or relative.
_FUNCTIONS = """
def int_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b):
    for i in range(rows):
        for j in range(columns):
            place = out0 + i * columns + j
            out[place] = 0
            total = out[place]
            for k in range(inner):
                left = a[a0 + k * rows + i] if flip_a else a[a0 + i * inner + k]
                right = b[b0 + j * inner + k] if flip_b else b[b0 + k * columns + j]
                total = total + left * right
            out[place] = total


def matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b, threads):
    int_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)


def gemm(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b, threads):
    int_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)


def log_gamma(y):
    total = 0.999999999999997092
    total = total + 57.15623566586292 / (y + 1.0)
    total = total - 59.59796035547549 / (y + 2.0)
    total = total + 14.136097974741746 / (y + 3.0)
    total = total - 0.4919138160976202 / (y + 4.0)
    total = total + 3.399464998481189e-05 / (y + 5.0)
    total = total + 4.652362892704858e-05 / (y + 6.0)
    total = total - 9.837447530487956e-05 / (y + 7.0)
    total = total + 0.0001580887032249125 / (y + 8.0)
    total = total - 0.00021026444172410488 / (y + 9.0)
    total = total + 0.00021743961811521265 / (y + 10.0)
    total = total - 0.0001643181065367639 / (y + 11.0)
    total = total + 8.441822398385275e-05 / (y + 12.0)
    total = total - 2.6190838401581408e-05 / (y + 13.0)
    total = total + 3.6899182659531625e-06 / (y + 14.0)
    at = y + 5.2421875
    return (y + 0.5) * lib.log(at) - at + (lib.log(2.5066282746310005 * total) - lib.log(y))


def lgamma(x):
    y = np.float64(x)
    size = abs(y)
    found = size if not np.isfinite(y) else 0.0
    if size < np.inf:
        if y >= 0.5:
            found = log_gamma(y)
        elif size < 1e-20:
            found = -lib.log(size)
        else:
            part = size - np.floor(size)
            if part == 0.0 and y <= 0.0:
                found = np.inf
            else:
                found = 1.1447298858494002 - lib.log(abs(lib.sin(3.141592653589793 * part))) - log_gamma(1.0 - y)
    return found
"""

# What all threads join: in a block as a tree, then block after block, so that as many threads give the same bits.
_TOTAL = """
def total(value):
    gpu.put(gpu.thread(), value)
    gpu.block_barrier()
    place = gpu.place_in_block()
    size = gpu.block_size()
    step = 1
    while step < size:
        if place % (2 * step) == 0 and place + step < size:
            left = gpu.got(gpu.thread(), value)
            right = gpu.got(gpu.thread() + step, value)
            left = joined(left, right)
            gpu.put(gpu.thread(), left)
        gpu.block_barrier()
        step = 2 * step
    if place == 0:
        gpu.put_of_block(gpu.block(), gpu.got(gpu.thread(), value))
    gpu.barrier()
    whole = gpu.got_of_block(0, value)
    for block in range(1, gpu.blocks()):
        other = gpu.got_of_block(block, value)
        whole = joined(whole, other)
    gpu.barrier()
    return whole
"""


def total_function(name: str, join: Callable[[ir.Expr, ir.Expr], ir.Expr]) -> ir.Function:
    """The function that joins a number of each thread, and gives the whole to all."""
    (function,) = parse_functions(_TOTAL)

    def change(item: ir.Expr) -> ir.Expr | None:
        return join(*item.arguments) if isinstance(item, ir.Call) and item.function == "joined" else None

    body = ir.copied(function.body)
    ir.map_block(body, change)
    return ir.Function(name, function.parameters, body, "library")


@functools.cache
def library() -> Library:
    """The library's functions, those above in place of the processor's."""
    return Library(llvm_backend.library_text() + _FUNCTIONS, formulas)


class _Scalar:
    """A formula without its versions for vectors."""

    def __init__(self, formula: Any) -> None:
        self._formula = formula
        self.symbol = formula.symbol

    @functools.cached_property
    def joined(self) -> Any:
        return _ScalarJoined(self._formula.joined)

    def module(self, size: int, lanes: int = 1) -> str:
        text: str = self._formula.scalar_module(size)
        return text

    def attributes(self, size: int, lanes: int = 1) -> str:
        return "nounwind memory(none) willreturn"


class _ScalarJoined(_Scalar):
    def __init__(self, formula: Any) -> None:
        super().__init__(formula)
        self.names = formula.names


@functools.cache
def formulas() -> dict[str, Any]:
    """Functions of floats, by name."""
    return {name: _Scalar(formula) for name, formula in FORMULAS.items()}
