"""The library of kernels in SPMD form: that of the processor (`kernel_library`), with some functions for many threads.

`gpu` stands for the functions that identify and synchronise threads (`runtime/llvm/device_calls.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from runtime.codegen import cost_model
from runtime.codegen.backends import llvm_backend
from runtime.codegen.device.factorizations import FACTORS
from runtime.codegen.math import gpu_functions
from runtime.codegen.math.function_table import FORMULAS
from runtime.kernel_ir import ir
from runtime.kernel_ir.parse_python import parse_functions
from runtime.llvm.program import Library

# A function that calls those of `gpu` is in SPMD form: all threads run it, with a barrier before each call and at its
# end.
#
# Products: for large matrices, a block computes one tile at a time. Its threads copy parts of both operands to shared
# memory, and each thread computes several rows and columns of the tile, so that each load serves several products. If
# there are fewer elements than threads, a warp computes an element.
# Sorting: each element of two sorted runs finds its position alone, from the number of elements of the other run before
# it. Logarithms of the gamma function: Lanczos' series with the coefficients of Press and others ("Numerical Recipes",
# 3rd edition, 6.1), with an absolute or relative error of at most 1e-14.
_FUNCTIONS = """
def int_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b):
    for i in range(rows):
        for j in range(columns):
            at = out0 + i * columns + j
            out[at] = 0
            total = out[at]
            for k in range(inner):
                left = a[a0 + k * rows + i] if flip_a else a[a0 + i * inner + k]
                right = b[b0 + j * inner + k] if flip_b else b[b0 + k * columns + j]
                total = total + left * right
            out[at] = total


PRODUCTS


def thread_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b):
    left_step = rows if flip_a else 1
    right_step = 1 if flip_b else columns
    number = gpu.thread()
    while number < rows * columns:
        i = number // columns
        j = number % columns
        left_at = a0 + i if flip_a else a0 + i * inner
        right_at = b0 + j * inner if flip_b else b0 + j
        total = gpu.zero_like(out)
        for _ in range(inner):
            total = total + a[left_at] * b[right_at]
            left_at = left_at + left_step
            right_at = right_at + right_step
        out[out0 + number] = total
        number = number + gpu.threads()
    gpu.barrier()


def warp_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b):
    size = gpu.block_size()
    tid = gpu.thread_in_block()
    width = gpu.warp_size()
    lane = tid % width
    lanes = min(width, size - (tid - lane))
    of_block = (size + width - 1) // width
    number = gpu.block() * of_block + tid // width
    while number < rows * columns:
        i = number // columns
        j = number % columns
        total = gpu.zero_like(out)
        k = lane
        while k < inner:
            left = a[a0 + k * rows + i] if flip_a else a[a0 + i * inner + k]
            right = b[b0 + j * inner + k] if flip_b else b[b0 + k * columns + j]
            total = gpu.fma(left, right, total)
            k = k + lanes
        step = width // 2
        while step > 0:
            other = gpu.shuffle(total, lane + step)
            if lane + step < lanes:
                total = total + other
            step = step // 2
        if lane == 0:
            out[out0 + number] = total
        number = number + gpu.blocks() * of_block
    gpu.barrier()


TILED


FACTORS


def order_of_rows(x, rows, length, descending, positions, keys, other_keys, other_positions):
    size = rows * length
    i = gpu.thread()
    while i < size:
        keys[i] = x[i]
        positions[i] = i % length
        i = i + gpu.threads()
    gpu.barrier()
    width = 1
    swapped = False
    while width < length:
        if swapped:
            merged_runs(other_keys, other_positions, size, length, width, descending, keys, positions)
        else:
            merged_runs(keys, positions, size, length, width, descending, other_keys, other_positions)
        gpu.barrier()
        swapped = not swapped
        width = width * 2
    if swapped:
        i = gpu.thread()
        while i < size:
            positions[i] = other_positions[i]
            i = i + gpu.threads()
        gpu.barrier()


def merged_runs(keys, positions, size, length, width, descending, out_keys, out_positions):
    number = gpu.thread()
    while number < size:
        i = number % length
        begin = number - i
        first = i // (2 * width) * (2 * width)
        middle = min(first + width, length)
        last = min(middle + width, length)
        key = keys[number]
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
        # The position in its own run, and the number of elements of the other run before it.
        to = begin + first + (i - first if is_left else i - middle) + low - skipped
        out_keys[to] = key
        out_positions[to] = positions[number]
        number = number + gpu.threads()


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

# A product of matrices: `matmul`, or `gemm` where the processor has a faster function for large ones.
_PRODUCT = """
def PRODUCT(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b, threads):
    if rows * columns < gpu.threads() and inner >= SHORT:
        warp_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)
    elif min(rows, columns) < NARROW or inner < NARROW:
        thread_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)
    elif rows * columns >= LARGE * gpu.threads():
        tiled_matmul_4(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)
    else:
        tiled_matmul_2(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)
"""

# Joins the numbers of a warp's lanes by a tree of shuffles, whose root is the first lane.
_LANES = """\
    tid = gpu.thread_in_block()
    size = gpu.block_size()
    width = gpu.warp_size()
    lane = tid % width
    step = width // 2
    while step > 0:
        other = gpu.shuffle(value, lane + step)
        if lane + step < width and tid + step < size:
            value = joined(value, other)
        step = step // 2
"""

# Joins the numbers of all threads: of a warp's lanes by a tree of shuffles, then of a block's warps in order, then of
# all blocks by the first warp of each. The order depends only on the number of threads, so the same number gives the
# same bits. It contains barriers, so later reads see all earlier writes. A grid needs only one barrier, because blocks
# use the other half of their memory the next time (`gpu.buffer`), when nobody reads this half any more.
_TOTAL = """
def total(value):
LANES
    if lane == 0:
        gpu.store_warp_partial(tid // width, value)
    gpu.block_barrier()
    whole = gpu.load_warp_partial(0, value)
    for warp in range(1, (size + width - 1) // width):
        other = gpu.load_warp_partial(warp, value)
        whole = joined(whole, other)
    blocks = gpu.blocks()
    if blocks > 1:
        buffer = gpu.buffer()
        if tid == 0:
            gpu.store_block_partial(buffer, gpu.block(), whole)
        gpu.barrier()
        lanes = min(width, size)
        if tid < lanes:
            block = min(lane, blocks - 1)
            whole = gpu.load_block_partial(buffer, block, value)
            block = block + lanes
            while block < blocks:
                other = gpu.load_block_partial(buffer, block, value)
                whole = joined(whole, other)
                block = block + lanes
            step = width // 2
            while step > 0:
                other = gpu.shuffle(whole, lane + step)
                if lane + step < min(lanes, blocks):
                    whole = joined(whole, other)
                step = step // 2
            if lane == 0:
                gpu.store_total(whole)
                gpu.swap_buffers()
        gpu.block_barrier()
        whole = gpu.load_total(value)
    else:
        gpu.block_barrier()
    return whole
"""


# Joins the numbers of a warp's lanes, for all of them.
_WARP_TOTAL = """
def warp_total(value):
LANES
    return gpu.shuffle(value, 0)
"""


# Joins the numbers of each column's threads (`spmd.py`, `_columns`), for all of them: of a block's threads by a tree,
# then of the blocks by a warp for each column. Threads without a column contribute the neutral element.
_COLUMN_TOTAL = """
def column_total(value, column, columns, of_group):
    tid = gpu.thread_in_block()
    size = gpu.block_size()
    width = min(columns, size)
    part = tid // width
    gpu.block_barrier()
    gpu.store_shared(tid, value)
    gpu.block_barrier()
    step = 1
    while 2 * step * width < size:
        step = 2 * step
    while step > 0:
        if part < step and tid + step * width < size:
            other = gpu.load_shared(tid + step * width, value)
            value = joined(value, other)
            gpu.store_shared(tid, value)
        gpu.block_barrier()
        step = step // 2
    first = gpu.block() // of_group * width
    if part == 0 and first + tid < columns:
        gpu.store_column_partial(gpu.block() % of_group * columns + column, value)
    gpu.barrier()
    if of_group > 1:
        warp = gpu.warp_size()
        lane = tid % warp
        lanes = min(warp, size - (tid - lane))
        of_block = (size + warp - 1) // warp
        number = gpu.block() * of_block + tid // warp
        while number < columns:
            block = min(lane, of_group - 1)
            whole = gpu.load_column_partial(block * columns + number, value)
            block = block + lanes
            while block < of_group:
                other = gpu.load_column_partial(block * columns + number, value)
                whole = joined(whole, other)
                block = block + lanes
            step = warp // 2
            while step > 0:
                other = gpu.shuffle(whole, lane + step)
                if lane + step < min(lanes, of_group):
                    whole = joined(whole, other)
                step = step // 2
            if lane == 0:
                gpu.store_column_partial(of_group * columns + number, whole)
            number = number + gpu.blocks() * of_block
        gpu.barrier()
        return gpu.load_column_partial(of_group * columns + column, value)
    return gpu.load_column_partial(column, value)
"""


# Joins the numbers of the threads before each one, in the same way; in a warp by doubling steps.
_PREFIX = """
def prefix(value, nothing):
    tid = gpu.thread_in_block()
    size = gpu.block_size()
    width = gpu.warp_size()
    lane = tid % width
    step = 1
    while step < width:
        other = gpu.shuffle(value, max(lane - step, 0))
        if lane >= step:
            value = joined(other, value)
        step = 2 * step
    if lane == width - 1 or tid == size - 1:
        gpu.store_warp_partial(tid // width, value)
    other = gpu.shuffle(value, max(lane - 1, 0))
    gpu.block_barrier()
    before = nothing
    for warp in range(tid // width):
        left = gpu.load_warp_partial(warp, value)
        before = joined(before, left)
    block = gpu.block()
    if gpu.blocks() > 1:
        buffer = gpu.buffer()
        if tid == size - 1:
            gpu.store_block_partial(buffer, block, joined(before, value))
        gpu.barrier()
        lanes = min(width, size)
        if tid < lanes:
            left = nothing
            other_block = lane
            while other_block < block:
                right = gpu.load_block_partial(buffer, other_block, value)
                left = joined(left, right)
                other_block = other_block + lanes
            step = width // 2
            while step > 0:
                right = gpu.shuffle(left, lane + step)
                if lane + step < lanes:
                    left = joined(left, right)
                step = step // 2
            if lane == 0:
                gpu.store_total(left)
                gpu.swap_buffers()
        gpu.block_barrier()
        left = gpu.load_total(value)
        before = joined(left, before)
    else:
        gpu.block_barrier()
    if lane > 0:
        before = joined(before, other)
    return before
"""

Join = Callable[[ir.Expr, ir.Expr], ir.Expr]


# The functions that join a number of each thread.
#
#   total          of all threads, for all of them
#   warp_total     of a warp's lanes, for all of them
#   column_total   of a column's threads, for all of them
#   prefix         of the threads before each one
JOINING = {"total": _TOTAL, "warp_total": _WARP_TOTAL, "column_total": _COLUMN_TOTAL, "prefix": _PREFIX}


@functools.cache
def _joining_function(kind: str) -> ir.Function:
    (function,) = parse_functions(JOINING[kind].replace("LANES\n", _LANES))
    return function


def joining_function(kind: str, name: str, join: Join) -> ir.Function:
    function = _joining_function(kind)

    def change(item: ir.Expr) -> ir.Expr | None:
        return join(*item.arguments) if isinstance(item, ir.Call) and item.function == "joined" else None

    body = ir.copied(function.body)
    ir.map_block(body, change)
    return ir.Function(name, function.parameters, body, "library")


# Of four angles of float32: few are far, so that their path is a branch for all four. The code of near angles then is
# one block, in which the assembler can interleave the four.
_ANGLES = """
def SIN_of_four(a, b, c, d):
    sa = lib.near_SIN(a)
    sb = lib.near_SIN(b)
    sc = lib.near_SIN(c)
    sd = lib.near_SIN(d)
    if abs(a) > FAR or abs(b) > FAR or abs(c) > FAR or abs(d) > FAR:
        sa = lib.SIN(a)
        sb = lib.SIN(b)
        sc = lib.SIN(c)
        sd = lib.SIN(d)
    return sa, sb, sc, sd
"""


@functools.cache
def library() -> Library:
    """The library's functions, with those above instead of the processor's."""
    text = _FUNCTIONS.replace("TILED\n", f"{_tiled_matmul(4)}\n\n{_tiled_matmul(2)}")
    products = "\n".join(_PRODUCT.replace("PRODUCT", name) for name in ("matmul", "gemm"))
    text = text.replace("FACTORS\n", FACTORS).replace("PRODUCTS\n", products)
    for name, number in _NUMBERS.items():
        text = text.replace(name, str(number))
    text += "".join(_ANGLES.replace("SIN", name).replace("FAR", str(gpu_functions.FAR)) for name in ("sin", "cos"))
    return Library(llvm_backend.library_text() + text, formulas)


_NUMBERS = {
    "SHORT": cost_model.DEVICE_SHORT_PRODUCT, "NARROW": cost_model.DEVICE_NARROW_PRODUCT,
    "LARGE": cost_model.DEVICE_LARGE_PRODUCT,
}  # fmt: skip
_DEPTH = 16  # the depth of the parts of operands that a block copies
_EDGE = 65  # the distance between rows of a copied part: odd, so that threads use different banks


def _tiled_matmul(each: int) -> str:
    """The function that computes matrix products by tiles. A thread computes each x each elements of a tile.

    The number of threads in a block that take part is the square of a power of two: 256 on GPUs.
    """
    tile = [(r, c) for r in range(each) for c in range(each)]
    second = _DEPTH * _EDGE
    lines = [
        f"def tiled_matmul_{each}(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b):",
        "    size = gpu.block_size()",
        "    tid = gpu.thread_in_block()",
        "    side_bits = 4 if size >= 256 else 3 if size >= 64 else 2 if size >= 16 else 1 if size >= 4 else 0",
        "    side = 1 << side_bits",
        f"    edge = side * {each}",
        "    y = tid >> side_bits",
        "    x = tid & side - 1",
        "    computes = tid < side * side",
        "    across = (columns + edge - 1) // edge",
        "    tiles = (rows + edge - 1) // edge * across",
        "    tile = gpu.block()",
        "    zero = gpu.zero_like(out)",
        "    while tile < tiles:",
        "        row = tile // across * edge",
        "        column = tile % across * edge",
        *[f"        total{r}{c} = zero" for r, c in tile],
        "        depth = 0",
        "        while depth < inner:",
        "            gpu.block_barrier()",
        "            number = tid",
        f"            while number < edge * {_DEPTH}:",
        # Neighbouring threads load neighbouring elements.
        f"                i = number & edge - 1 if flip_a else number >> {_DEPTH.bit_length() - 1}",
        f"                k = number >> side_bits + {each.bit_length() - 1} if flip_a else number & {_DEPTH - 1}",
        "                at = (depth + k) * rows + (row + i) if flip_a else (row + i) * inner + (depth + k)",
        "                is_inside = row + i < rows and depth + k < inner",
        "                left = zero",
        "                if is_inside:",
        "                    left = a[a0 + at]",
        f"                gpu.store_shared(k * {_EDGE} + i, left)",
        f"                j = number >> {_DEPTH.bit_length() - 1} if flip_b else number & edge - 1",
        f"                k = number & {_DEPTH - 1} if flip_b else number >> side_bits + {each.bit_length() - 1}",
        "                at = (column + j) * inner + (depth + k) if flip_b else (depth + k) * columns + (column + j)",
        "                is_inside = column + j < columns and depth + k < inner",
        "                right = zero",
        "                if is_inside:",
        "                    right = b[b0 + at]",
        f"                gpu.store_shared({second} + k * {_EDGE} + j, right)",
        "                number = number + size",
        "            gpu.block_barrier()",
        "            if computes:",
        f"                for k in range({_DEPTH}):",
        *[f"                    left{r} = gpu.load_shared(k * {_EDGE} + y + {r} * side, zero)" for r in range(each)],
        *[
            f"                    right{c} = gpu.load_shared({second} + k * {_EDGE} + x + {c} * side, zero)"
            for c in range(each)
        ],
        *[f"                    total{r}{c} = gpu.fma(left{r}, right{c}, total{r}{c})" for r, c in tile],
        f"            depth = depth + {_DEPTH}",
        "        if computes:",
    ]
    for r, c in tile:
        lines += [
            f"            if row + y + {r} * side < rows and column + x + {c} * side < columns:",
            f"                out[out0 + (row + y + {r} * side) * columns + (column + x + {c} * side)] = total{r}{c}",
        ]
    lines += ["        tile = tile + gpu.blocks()", "    gpu.barrier()"]
    return "\n".join(lines) + "\n"


class _Scalar:
    """A formula without its vector versions: for float32 the one for GPUs, if there is one, else the processor's."""

    def __init__(self, formula: Any, narrow: Any) -> None:
        self._formulas = {32: narrow, 64: formula}
        self.symbol = formula.symbol

    @functools.cached_property
    def joined(self) -> Any:
        return _ScalarJoined(self._formulas[64].joined, self._formulas[32].joined)

    def module(self, size: int, lanes: int = 1) -> Any:
        return self._formulas[size].scalar_module(size)

    def attributes(self, size: int, lanes: int = 1) -> str:
        return "nounwind memory(none) willreturn"


class _ScalarJoined(_Scalar):
    def __init__(self, formula: Any, narrow: Any) -> None:
        super().__init__(formula, narrow)
        self.names = formula.names


@functools.cache
def formulas() -> dict[str, Any]:
    """The formulas of functions over floats, by name; those for near angles are for float32 only."""
    found = {name: _Scalar(formula, gpu_functions.FORMULAS.get(name, formula)) for name, formula in FORMULAS.items()}
    return found | {name: _Scalar(formula, formula) for name, formula in gpu_functions.NEAR.items()}
