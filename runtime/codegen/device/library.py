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

# A function that calls `gpu.thread` is in SPMD form: all threads run it, and a barrier stands before each call and at
# its end.
#
# Products: each element is a sum in the order in which the processor's plain loops compute it. Of large matrices a
# thread computes 4 x 4 elements at a time, so that what it loads serves four products; neighbours have neighbouring
# columns. Sorting: of two sorted runs each element finds its place by itself, by how many of the other run stand before
# it. Logarithms of the gamma
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
    if (rows + 3) // 4 * ((columns + 3) // 4) >= gpu.threads():
        tiled_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)
    else:
        int_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)


TILED


def order_of_row(x, begin, length, descending, places, keys, other_keys, other_places):
    i = gpu.thread()
    while i < length:
        keys[begin + i] = x[begin + i]
        places[begin + i] = i
        i = i + gpu.threads()
    gpu.barrier()
    width = 1
    swapped = False
    while width < length:
        if swapped:
            merged_runs(other_keys, other_places, begin, length, width, descending, keys, places)
        else:
            merged_runs(keys, places, begin, length, width, descending, other_keys, other_places)
        gpu.barrier()
        swapped = not swapped
        width = width * 2
    if swapped:
        i = gpu.thread()
        while i < length:
            places[begin + i] = other_places[begin + i]
            i = i + gpu.threads()
        gpu.barrier()


def merged_runs(keys, places, begin, length, width, descending, out_keys, out_places):
    i = gpu.thread()
    while i < length:
        first = i // (2 * width) * (2 * width)
        middle = min(first + width, length)
        last = min(middle + width, length)
        key = keys[begin + i]
        is_left = i < middle
        low = middle if is_left else first
        high = last if is_left else middle
        skipped = low
        while low < high:
            half = (low + high) // 2
            held = keys[begin + half]
            if descending:
                before = held > key or held != held and key == key
                behind = key > held or key != key and held == held
            else:
                before = held < key or key != key and held == held
                behind = key < held or held != held and key == key
            if is_left and before or not is_left and not behind:
                low = half + 1
            else:
                high = half
        # Its place among its own, and those of the other run before it.
        to = begin + first + (i - first if is_left else i - middle) + low - skipped
        out_keys[to] = key
        out_places[to] = places[begin + i]
        i = i + gpu.threads()


def gemm(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b, threads):
    matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b, threads)


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

# What all threads join: the lanes of a warp by shuffles, as a tree, then the warps of a block one after the other, then
# the blocks by the first warp of each. The order depends on the number of threads alone, so that as many give the same
# bits. All threads meet in it: nothing that was written before is missed after it. In a grid there is one barrier:
# blocks take the other half of their memory the next time (`gpu.turn`), when nobody reads this half any more.
_TOTAL = """
def total(value):
    place = gpu.place_in_block()
    size = gpu.block_size()
    width = gpu.warp_size()
    lane = place % width
    step = width // 2
    while step > 0:
        other = gpu.of_lane(value, lane + step)
        if lane + step < width and place + step < size:
            value = joined(value, other)
        step = step // 2
    if lane == 0:
        gpu.put_of_warp(place // width, value)
    gpu.block_barrier()
    whole = gpu.got_of_warp(0, value)
    for warp in range(1, (size + width - 1) // width):
        other = gpu.got_of_warp(warp, value)
        whole = joined(whole, other)
    blocks = gpu.blocks()
    if blocks > 1:
        turn = gpu.turn()
        if place == 0:
            gpu.put_of_block(turn, gpu.block(), whole)
        gpu.barrier()
        lanes = min(width, size)
        if place < lanes:
            block = min(lane, blocks - 1)
            whole = gpu.got_of_block(turn, block, value)
            block = block + lanes
            while block < blocks:
                other = gpu.got_of_block(turn, block, value)
                whole = joined(whole, other)
                block = block + lanes
            step = width // 2
            while step > 0:
                other = gpu.of_lane(whole, lane + step)
                if lane + step < min(lanes, blocks):
                    whole = joined(whole, other)
                step = step // 2
            if lane == 0:
                gpu.put_of_block_total(whole)
                gpu.end_turn()
        gpu.block_barrier()
        whole = gpu.got_of_block_total(value)
    else:
        gpu.block_barrier()
    return whole
"""


# What the lanes of a warp join, for all of them.
_WARP_TOTAL = """
def warp_total(value):
    place = gpu.place_in_block()
    size = gpu.block_size()
    width = gpu.warp_size()
    lane = place % width
    step = width // 2
    while step > 0:
        other = gpu.of_lane(value, lane + step)
        if lane + step < width and place + step < size:
            value = joined(value, other)
        step = step // 2
    return gpu.of_lane(value, 0)
"""


# What the threads before each one join, in the same way: in a warp by doubling steps.
_PREFIX = """
def prefix(value, nothing):
    place = gpu.place_in_block()
    size = gpu.block_size()
    width = gpu.warp_size()
    lane = place % width
    step = 1
    while step < width:
        other = gpu.of_lane(value, max(lane - step, 0))
        if lane >= step:
            value = joined(other, value)
        step = 2 * step
    if lane == width - 1 or place == size - 1:
        gpu.put_of_warp(place // width, value)
    other = gpu.of_lane(value, max(lane - 1, 0))
    gpu.block_barrier()
    before = nothing
    for warp in range(place // width):
        left = gpu.got_of_warp(warp, value)
        before = joined(before, left)
    block = gpu.block()
    if gpu.blocks() > 1:
        turn = gpu.turn()
        if place == size - 1:
            gpu.put_of_block(turn, block, joined(before, value))
        gpu.barrier()
        lanes = min(width, size)
        if place < lanes:
            left = nothing
            other_block = lane
            while other_block < block:
                right = gpu.got_of_block(turn, other_block, value)
                left = joined(left, right)
                other_block = other_block + lanes
            step = width // 2
            while step > 0:
                right = gpu.of_lane(left, lane + step)
                if lane + step < lanes:
                    left = joined(left, right)
                step = step // 2
            if lane == 0:
                gpu.put_of_block_total(left)
                gpu.end_turn()
        gpu.block_barrier()
        left = gpu.got_of_block_total(value)
        before = joined(left, before)
    else:
        gpu.block_barrier()
    if lane > 0:
        before = joined(before, other)
    return before
"""

Join = Callable[[ir.Expr, ir.Expr], ir.Expr]


def prefix_function(name: str, join: Join) -> ir.Function:
    """The function that joins the numbers of the threads before each one."""
    return _joining(_PREFIX, name, join)


def total_function(name: str, join: Join) -> ir.Function:
    """The function that joins a number of each thread, and gives the whole to all."""
    return _joining(_TOTAL, name, join)


def warp_total_function(name: str, join: Join) -> ir.Function:
    """The function that joins a number of each lane of a warp, and gives the whole to all of them."""
    return _joining(_WARP_TOTAL, name, join)


def _joining(text: str, name: str, join: Join) -> ir.Function:
    (function,) = parse_functions(text)

    def change(item: ir.Expr) -> ir.Expr | None:
        return join(*item.arguments) if isinstance(item, ir.Call) and item.function == "joined" else None

    body = ir.copied(function.body)
    ir.map_block(body, change)
    return ir.Function(name, function.parameters, body, "library")


@functools.cache
def library() -> Library:
    """The library's functions, those above in place of the processor's."""
    return Library(llvm_backend.library_text() + _FUNCTIONS.replace("TILED\n", _tiled_matmul()), formulas)


def _tiled_matmul() -> str:
    """The function that computes products of matrices by tiles of 4 x 4 elements, each in a variable."""
    tile = [(r, c) for r in range(4) for c in range(4)]
    lines = [
        "def tiled_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b):",
        "    across = (columns + 3) // 4",
        "    tiles = (rows + 3) // 4 * across",
        "    tile = gpu.thread()",
        "    while tile < tiles:",
        "        row = tile // across * 4",
        "        column = tile % across",
        "        out[out0 + row * columns + column] = 0",
        "        zero = out[out0 + row * columns + column]",
        # At the edges some rows and columns are computed twice.
        *[f"        row{r} = min(row + {r}, rows - 1)" for r in range(4)],
        *[f"        column{c} = min(column + {c} * across, columns - 1)" for c in range(4)],
        *[f"        total{r}{c} = zero" for r, c in tile],
        "        for k in range(inner):",
        *[
            f"            left{r} = a[a0 + k * rows + row{r}] if flip_a else a[a0 + row{r} * inner + k]"
            for r in range(4)
        ],
        *[
            f"            right{c} = b[b0 + column{c} * inner + k] if flip_b else b[b0 + k * columns + column{c}]"
            for c in range(4)
        ],
        *[f"            total{r}{c} = total{r}{c} + left{r} * right{c}" for r, c in tile],
        *[f"        out[out0 + row{r} * columns + column{c}] = total{r}{c}" for r, c in tile],
        "        tile = tile + gpu.threads()",
        "    gpu.barrier()",
    ]
    return "\n".join(lines) + "\n"


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
