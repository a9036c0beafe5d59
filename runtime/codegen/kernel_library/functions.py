"""What generated kernels call: memory helpers, reassociable sums, conversions. Compiled together with the kernel.

Imported by kernel files only, since it needs numba. The intrinsics are single machine operations; everything else is
plain numba code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from runtime.codegen.backends.numba_backend.math_intrinsics import INTRINSICS
from runtime.codegen.backends.numba_backend.threading_library import (  # noqa: F401  for kernels
    call_out,
    here,
    in_threads,
    part,
    recursive,
)
from runtime.codegen.kernel_library.algorithms import (  # noqa: F401  for kernels
    cholesky,
    cholesky_of_each,
    distinct,
    hash_width,
    merge_runs,
    order_of_row,
    place_in,
    solve_each,
    solved,
    substitute_each,
    substituted,
    suppress_boxes,
    top_of_row,
)
from runtime.codegen.kernel_library.philox import (  # noqa: F401  for kernels
    draw_classes,
    fill_permutation,
    fill_truncated,
    fill_words,
    random_words,
)
from runtime.codegen.kernel_library.windows import (  # noqa: F401  for kernels
    copy_windows,
    fill_places,
    images_of_strip,
    pad_rows,
    rows_of_strip,
    transpose_matrix,
)
from runtime.llvm.products import INDIRECT_SYMBOLS, SYMBOLS

globals().update(INTRINSICS)  # for kernels: lib.exp and so on

_take_lock = types.ExternalFunction("PyGILState_Ensure", types.int32())
_give_lock = types.ExternalFunction("PyGILState_Release", types.void(types.int32))
_interrupt_occurred = types.ExternalFunction("PyOS_InterruptOccurred", types.int32())


@njit
def interrupted() -> Any:
    """Whether the user has pressed Ctrl-C since the last call; always false outside of the main thread."""
    state = _take_lock()
    occurred = _interrupt_occurred()
    _give_lock(state)
    return occurred != 0


@intrinsic
def flat(typing_context: Any, array: Any) -> Any:
    """A C-contiguous array's elements as one dimension, without a copy."""
    line = types.Array(array.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = context.make_array(signature.args[0])(context, builder, arguments[0])
        return _array_struct(context, builder, line, source, [source.nitems])

    return line(array), generate


@intrinsic
def shaped(typing_context: Any, dims: Any, line: Any) -> Any:
    """A flat buffer as an array of the given dimensions, without a copy."""
    array = types.Array(line.dtype, len(dims), "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source = context.make_array(signature.args[1])(context, builder, arguments[1])
        sizes = [
            context.cast(builder, size, type_, types.intp)
            for size, type_ in zip(cgutils.unpack_tuple(builder, arguments[0]), signature.args[0])
        ]
        return _array_struct(context, builder, array, source, sizes)

    return array(dims, line), generate


def _array_struct(context: Any, builder: Any, type_: Any, source: Any, sizes: list) -> Any:
    target = context.make_array(type_)(context, builder)
    target.data = source.data
    target.itemsize = source.itemsize
    target.meminfo = source.meminfo
    strides = [source.itemsize]
    for size in reversed(sizes[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    count = context.get_constant(types.intp, 1)
    for size in sizes:
        count = builder.mul(count, size)
    target.nitems = count
    target.shape = cgutils.pack_array(builder, sizes)
    target.strides = cgutils.pack_array(builder, strides)
    value = target._getvalue()
    context.nrt.incref(builder, type_, value)
    return value


def _reassociable(instruction: str) -> Any:
    def function(typing_context: Any, total: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            value_ = context.cast(builder, arguments[1], signature.args[1], signature.args[0])
            return getattr(builder, instruction)(arguments[0], value_, flags=("reassoc", "nsz"))

        return total(total, value), generate

    function.__name__ = instruction
    return intrinsic(function)


# Accumulation steps whose order the machine may choose, so that loops over them use vector registers.
add = _reassociable("fadd")
mul = _reassociable("fmul")


def _extreme(name: str) -> Any:
    """llvm.maximum and llvm.minimum: NaN if either is NaN, and the order doesn't matter; of two zeros either."""

    def function(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            element = context.get_value_type(a)
            declared = builder.module.declare_intrinsic(
                f"llvm.{name}", [element], ir.FunctionType(element, [element, element])
            )
            return builder.call(declared, arguments, fastmath=("nsz",))

        return a(a, a), generate

    function.__name__ = name
    return intrinsic(function)


maximum = _extreme("maximum")
minimum = _extreme("minimum")


def _exceeds(operation: str) -> Any:
    """Whether the result of an operation on two int64 needs more bits."""

    def function(typing_context: Any, a: Any, b: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wide = [context.cast(builder, x, given, types.int64) for x, given in zip(arguments, signature.args)]
            return builder.extract_value(getattr(builder, f"{operation}_with_overflow")(*wide), 1)

        return types.boolean(a, b), generate

    function.__name__ = operation
    return intrinsic(function)


sum_exceeds = _exceeds("sadd")
difference_exceeds = _exceeds("ssub")
product_exceeds = _exceeds("smul")


@njit(nogil=True)
def power_exceeds(x: int, y: int) -> bool:
    """Whether x ** y needs more than 64 bits. y isn't negative."""
    result, square = 1, x
    while y > 0:
        if y & 1:
            if product_exceeds(result, square):
                return True
            result = result * square
        y = y >> 1
        if y > 0:
            if product_exceeds(square, square):
                return True
            square = square * square
    return False


@njit(nogil=True)
def shifted_exceeds(x: int, y: int) -> bool:
    """Whether x << y needs more than 64 bits. y isn't negative."""
    if y > 62:
        return x != 0 and (y > 63 or x != -1)
    return (x << y) >> y != x


@njit(nogil=True)
def quotient_exceeds(x: int, y: int) -> bool:
    return y == -1 and x == -9223372036854775808


@njit(nogil=True)
def negative_exceeds(x: int) -> bool:
    return x == -9223372036854775808


@njit(nogil=True)
def float_exceeds(x: float) -> bool:
    """Whether the whole part of a float needs more than 64 bits."""
    return x < -9223372036854775808.0 or x >= 9223372036854775808.0


@intrinsic
def bits(typing_context: Any, value: Any) -> Any:
    """The bits of a float, as float64, in an integer: how a number travels with an error status."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = context.cast(builder, arguments[0], signature.args[0], types.float64)
        return builder.bitcast(wide, ir.IntType(64))

    return types.int64(value), generate


_AS_WIDE = {types.float32: types.int32, types.float64: types.int64}


def _reinterpretation(name: str, found: dict[Any, Any], doc: str) -> Any:
    def function(typing_context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

        return found[value](value), generate

    function.__name__, function.__doc__ = name, doc
    return intrinsic(function)


as_bits = _reinterpretation("as_bits", _AS_WIDE, "The bits of a float as a signed integer of the same width.")
from_bits = _reinterpretation("from_bits", {v: k for k, v in _AS_WIDE.items()}, "The float that has these bits.")


# Floats of 16 bits: kernels hold them by their bits, and compute in float32.
float16 = bfloat16 = np.uint16


@njit(nogil=True)
def from_bfloat16(half: Any) -> Any:
    return from_bits(np.int32(np.uint32(half) << 16))


@njit(nogil=True)
def to_bfloat16(x: Any) -> Any:
    """Rounds to nearest, ties to even; NaN becomes ml_dtypes' NaN."""
    bits = np.uint32(as_bits(x))
    if x != x:
        return np.uint16(bits >> 16 & 0x8000 | 0x7FC0)
    return np.uint16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)


@njit(nogil=True)
def from_float16(half: Any) -> Any:
    """Exponent and mantissa, moved to their position in a float32, are the number times 2 ** -112; also of subnormal
    numbers."""
    bits = np.uint32(half)
    shifted = np.int32((bits & 0x7FFF) << 13)
    if bits & 0x7C00 == 0x7C00:
        return from_bits(np.int32((bits & 0x8000) << 16 | shifted | 0x7F800000))
    size = as_bits(from_bits(shifted) * np.float32(5192296858534827628530496329220096.0))
    return from_bits(np.int32((bits & 0x8000) << 16 | np.uint32(size)))


@njit(nogil=True)
def to_float16(x: Any) -> Any:
    """Rounds to nearest, ties to even."""
    bits = np.uint32(as_bits(x))
    sign, size = bits >> 16 & 0x8000, bits & 0x7FFFFFFF
    if x != x:
        return np.uint16(sign | 0x7E00 | size >> 13)
    if size >= 0x477FF000:  # half of the last place above the largest
        return np.uint16(sign | 0x7C00)
    if size < 0x38800000:  # below the least that isn't subnormal: a sum with 0.5 ends at the right place
        return np.uint16(sign | np.uint32(as_bits(from_bits(np.int32(size)) + np.float32(0.5))) - 0x3F000000)
    return np.uint16(sign | (size - 0x38000000 + 0xFFF + (size >> 13 & 1)) >> 13)


@njit(nogil=True)
def rounded_to_odd(x: Any) -> Any:
    """Rounds a float64 to float32, to odd: an inexact result is the neighbour whose last bit is set. Rounding the
    result once more gives what one rounding would: see S. Boldo and G. Melquiond, Emulation of a FMA and correctly
    rounded sums, 2008."""
    near = np.float32(x)
    if x != x or np.float64(near) == x:
        return near
    bits = as_bits(near)
    if abs(np.float64(near)) > abs(x):
        bits = np.int32(bits - 1)
    return from_bits(np.int32(bits | 1))


@njit(nogil=True)
def all_true(buffer: Any) -> bool:
    for i in range(buffer.size):  # noqa: SIM110  numba has no `all`
        if not buffer[i]:
            return False
    return True


@njit(nogil=True)
def nonfinite_scalar(x: Any) -> int:
    """0: finite; 1: NaN; 2: infinite."""
    return 1 if x != x else 2 if x - x != 0 else 0


@njit(nogil=True)
def nonfinite(buffer: Any) -> int:
    """Which kinds of numbers that aren't finite there are: 0 none, 1 NaN, 2 infinities, 3 both."""
    found = 0
    for i in range(buffer.size):
        x = buffer[i]
        if x - x != 0:
            found |= 1 if x != x else 2
    return found


@njit(nogil=True)
def copied(buffer: Any, used: int) -> Any:
    """The first `used` elements in a buffer of their own."""
    result = np.empty(used, buffer.dtype)
    for i in range(used):
        result[i] = buffer[i]
    return result


@njit(nogil=True)
def scalar_count(dims: Any, rank: int, first: int, end: int) -> int:
    """How many scalars the elements of a stack have whose dimensions are at `first` to `end`."""
    total = 0
    while first < end:
        count = 1
        for axis in range(rank):
            count *= dims[first + axis]
        total += count
        first += rank
    return total


@njit(nogil=True)
def grown(buffer: Any, used: int, needed: int) -> Any:
    """A buffer with room for `needed` elements that holds the first `used` ones of `buffer`."""
    # Large blocks are kept for the next call (`native_runtime/allocator.py`), if a call has only a few sizes of them.
    factor = 4 if buffer.size >= 32768 and buffer.size < 4194304 else 2
    result = np.empty(max(needed, factor * buffer.size, 16), buffer.dtype)
    for i in range(used):
        result[i] = buffer[i]
    return result


# Floats to integers, for every value: what lies out of range, and NaN, becomes the smallest integer of the width that
# the processor converts to, as in NumPy on the same machine.


@njit(nogil=True)
def to_int64(x: Any) -> Any:
    return np.int64(x) if x >= -9223372036854775808.0 and x < 9223372036854775808.0 else np.int64(-(2**63))


@njit(nogil=True)
def to_int32(x: Any) -> Any:
    return np.int32(x) if x > -2147483649.0 and x < 2147483648.0 else np.int32(-(2**31))


@njit(nogil=True)
def to_int16(x: Any) -> Any:
    return np.int16(to_int32(x))


@njit(nogil=True)
def to_int8(x: Any) -> Any:
    return np.int8(to_int32(x))


@njit(nogil=True)
def to_uint8(x: Any) -> Any:
    return np.uint8(to_int32(x))


@njit(nogil=True)
def to_uint16(x: Any) -> Any:
    return np.uint16(to_int32(x))


@njit(nogil=True)
def to_uint32(x: Any) -> Any:
    return np.uint32(to_int64(x))


@njit(nogil=True)
def to_uint64(x: Any) -> Any:
    if x < 9223372036854775808.0:
        return np.uint64(to_int64(x))
    return np.uint64(to_int64(x - 9223372036854775808.0)) + np.uint64(2**63)


@njit(nogil=True)
def _other_size(buffer: Any, used: int, size: int) -> Any:
    result = np.empty(size, buffer.dtype)
    kept = min(used, size)
    for i in range(kept):
        result[i] = buffer[i]
    for i in range(kept, size):
        result[i] = 0
    return result


@njit(nogil=True)
def resized(buffer: Any, used: int, size: int) -> Any:
    """A buffer of `size` elements that starts with the first `used` ones of `buffer`; zeros follow."""
    if size == buffer.size:
        return buffer
    return _other_size(buffer, used, size)


@njit(nogil=True)
def capacity(rows: int, needed: int, size: int) -> int:
    """How many rows a growable array gets: `size` while that is enough, else at least twice as many as before."""
    return size if needed <= size else max(needed, 2 * rows)


# --- slices and ranges -----------------------------------------------------------------------------------------------


@njit(nogil=True)
def clamped(position: int, size: int) -> int:
    """A bound of a forward slice, which may count from the end, as a position in [0, size]."""
    if position < 0:
        position += size
    return min(max(position, 0), size)


@njit(nogil=True)
def slice_start(start: int, missing: bool, step: int, size: int) -> int:
    """Where a slice begins, as Python's `slice.indices` says."""
    low, high = (0, size) if step > 0 else (-1, size - 1)
    if missing:
        return low if step > 0 else high
    if start < 0:
        start += size
    return min(max(start, low), high)


@njit(nogil=True)
def slice_count(start: int, stop: int, missing: bool, step: int, size: int) -> int:
    """How many elements a slice from `start` (as `slice_start` gives it) has."""
    low, high = (0, size) if step > 0 else (-1, size - 1)
    if missing:
        stop = high if step > 0 else low
    else:
        if stop < 0:
            stop += size
        stop = min(max(stop, low), high)
    if step > 0:
        return max((stop - start + step - 1) // step, 0)
    return max((start - stop - step - 1) // -step, 0)


@njit(nogil=True)
def int_range_length(start: Any, limit: Any, delta: Any) -> Any:
    return -((np.int64(start) - np.int64(limit)) // np.int64(delta))


@njit(nogil=True)
def float_range_length(start: Any, limit: Any, delta: Any) -> Any:
    """In the precision of the bounds; -1 where the count isn't finite."""
    count = np.float64(np.ceil(abs((limit - start) / delta)))
    return np.int64(count) if count < 9.2e18 else np.int64(-1)


# --- matrix products -------------------------------------------------------------------------------------------------

# Products with fewer multiplications than this run as plain loops: a call costs more than that.
_SMALL_PRODUCT = 4096
# Numbers that are worth a loop of vectors.
_WIDE = 8


@njit(nogil=True)
def int_matmul(
    a: Any,
    a0: int,
    b: Any,
    b0: int,
    out: Any,
    out0: int,
    rows: int,
    inner: int,
    columns: int,
    flip_a: bool,
    flip_b: bool,
) -> None:
    """out = a @ b for flat row-major matrices from the given places on; `flip`: stored the other way round.

    The loops run along rows of `b` and `out`, so that the innermost one is contiguous.
    """
    if columns == 1 and flip_a and rows >= _WIDE:
        # Along rows of `a`: each sum has its terms in the same order as below.
        for i in range(rows):
            out[out0 + i] = 0
        for k in range(inner):
            factor = b[b0 + k]
            for i in range(rows):
                out[out0 + i] += a[a0 + k * rows + i] * factor
        return
    for i in range(rows):
        for j in range(columns):
            out[out0 + i * columns + j] = 0
        for k in range(inner):
            factor = a[a0 + k * rows + i] if flip_a else a[a0 + i * inner + k]
            if flip_b:
                for j in range(columns):
                    out[out0 + i * columns + j] += factor * b[b0 + j * inner + k]
            else:
                for j in range(columns):
                    out[out0 + i * columns + j] += factor * b[b0 + k * columns + j]


@njit(nogil=True)
def matmul(
    a: Any,
    a0: int,
    b: Any,
    b0: int,
    out: Any,
    out0: int,
    rows: int,
    inner: int,
    columns: int,
    flip_a: bool,
    flip_b: bool,
    threads: int,
) -> None:
    """The product of two matrices of floats, of any sizes: by `gemm`, unless the product is small."""
    if rows * inner * columns < _SMALL_PRODUCT or rows == 0 or columns == 0 or inner == 0:
        int_matmul(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b)
    else:
        gemm(a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b, threads)


@intrinsic
def gemm(
    typing_context: Any, a: Any, a0: Any, b: Any, b0: Any, out: Any, out0: Any, rows: Any, inner: Any, columns: Any,
    flip_a: Any, flip_b: Any, threads: Any,
) -> Any:  # fmt: skip
    """The same for floats, none of the sizes being 0, by tiles (`native_runtime/gemm.py`)."""
    arguments_ = (a, a0, b, b0, out, out0, rows, inner, columns, flip_a, flip_b, threads)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        call = _ProductCall(context, builder, signature, arguments)
        flips = builder.or_(call.integer(9), builder.shl(call.integer(10), context.get_value_type(types.int64)(1)))
        numbers = [call.integer(position) for position in (6, 7, 8)]
        return call.write(
            SYMBOLS[str(out.dtype)], [call.place(0), call.place(2), call.place(4), *numbers, flips, call.integer(11)]
        )

    return types.void(*arguments_), generate


@intrinsic
def indirect_gemm(
    typing_context: Any, a: Any, a0: Any, rows_at: Any, rows_at0: Any, inner_at: Any, b: Any, b0: Any, out: Any,
    out0: Any, rows: Any, inner: Any, columns: Any, add: Any,
) -> Any:  # fmt: skip
    """The product of a matrix whose elements two tables find, none of the sizes being 0
    (`native_runtime/indirect_gemm.py`)."""
    arguments_ = (a, a0, rows_at, rows_at0, inner_at, b, b0, out, out0, rows, inner, columns, add)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        call = _ProductCall(context, builder, signature, arguments)
        arrays = [call.place(0), call.place(2), call.place(4, None), call.place(5), call.place(7)]
        numbers = [call.integer(position) for position in (9, 10, 11, 12)]
        return call.write(INDIRECT_SYMBOLS[str(out.dtype)], [*arrays, *numbers])

    return types.void(*arguments_), generate


class _ProductCall:
    """Writes a call of a product, for numba."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.context, self.builder, self.types, self.values = context, builder, signature.args, arguments

    def place(self, position: int, offset: int | None = 1) -> Any:
        """The address in an array that the argument `offset` positions after it gives, or its first one."""
        array = self.context.make_array(self.types[position])(self.context, self.builder, self.values[position])
        address = array.data
        if offset is not None:
            address = self.builder.gep(address, [self.values[position + offset]])
        return self.builder.bitcast(address, ir.IntType(8).as_pointer())

    def integer(self, position: int) -> Any:
        return self.context.cast(self.builder, self.values[position], self.types[position], types.int64)

    def write(self, symbol: str, operands: list[Any]) -> Any:
        function_type = ir.FunctionType(ir.VoidType(), [operand.type for operand in operands])
        self.builder.call(cgutils.get_or_insert_function(self.builder.module, function_type, symbol), operands)
        return self.context.get_dummy_value()
