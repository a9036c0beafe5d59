"""What generated kernels call: memory helpers, reassociable sums, conversions. Compiled together with the kernel.

Imported by kernel files only, since it needs numba. The intrinsics are single machine operations; everything else is
plain numba code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic


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


@njit(nogil=True)
def copied(buffer: Any, used: int) -> Any:
    """The first `used` elements in a buffer of their own."""
    result = np.empty(max(used, 1), buffer.dtype)
    for i in range(used):
        result[i] = buffer[i]
    return result


@njit(nogil=True)
def grown(buffer: Any, used: int, needed: int) -> Any:
    """A buffer with room for `needed` elements that holds the first `used` ones of `buffer`."""
    result = np.empty(max(needed, 2 * buffer.size, 16), buffer.dtype)
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
