"""What kernels call that run on threads (`passes/parallelize.py`), or let Python run a node, for numba. Imported by
kernels only.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from runtime.codegen.native_runtime import thread_pool
from runtime.llvm.threads import ALIGNED, MOST, SHARE


def part(function: Any) -> Any:
    """Decorates the body of a parallel loop. It is called when the kernel's module is executed, compiled or loaded."""
    thread_pool.provide()
    return njit(error_model="numpy", boundscheck=False, nogil=True)(function)


def recursive(function: Any) -> Any:
    """Decorates a function of a kernel that may be recursive."""
    return njit(error_model="numpy", boundscheck=False, nogil=True)(function)


@intrinsic
def here(typing_context: Any) -> Any:
    """The caller's stack pointer."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(cgutils.alloca_once(builder, ir.IntType(8)), _I64)

    return types.int64(), generate


@intrinsic
def call_out(typing_context: Any, address: Any, *arrays: Any) -> Any:
    """Calls a C function by its address with the addresses of arrays' elements (`kernel/call_outs.py`)."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        types_, packed = signature.args[1], values[1]
        given = [
            builder.bitcast(context.make_array(type_)(context, builder, array).data, _POINTER)
            for type_, array in zip(types_, cgutils.unpack_tuple(builder, packed, len(types_)))
        ]
        kind = ir.FunctionType(ir.VoidType(), [_POINTER] * len(given)).as_pointer()
        place = context.cast(builder, values[0], signature.args[0], types.int64)
        builder.call(builder.inttoptr(place, kind), given)
        return context.get_dummy_value()

    return types.void(address, types.StarArgTuple(arrays)), generate


_POINTER = ir.IntType(8).as_pointer()
_I64 = ir.IntType(64)


@intrinsic
def in_threads(typing_context: Any, function: Any, threads: Any, size: Any, arguments: Any) -> Any:
    """Calls function(first, last, *arguments) for parts of range(size), on `threads` threads.

    `function` must not raise. The parts depend on the number of threads; the results must not.
    """
    signature = function.get_call_type(typing_context, (types.int64, types.int64, *arguments.types), {})

    def generate(context: Any, builder: Any, outer: Any, values: Any) -> Any:
        result = function.dispatcher.get_compile_result(signature)
        context.active_code_library.add_linking_library(result.library)
        count = context.cast(builder, values[1], outer.args[1], types.int64)
        total = context.cast(builder, values[2], outer.args[2], types.int64)
        packed = [_I64, _I64, *[context.get_value_type(t) for t in arguments.types]]
        record = ir.LiteralStructType(packed)
        entry = _entry(context, builder.module, result.fndesc, signature, record)
        one, most = _I64(1), _I64(MOST)
        parts = builder.select(builder.icmp_signed(">", count, one), builder.mul(count, _I64(SHARE)), one)
        parts = builder.select(builder.icmp_signed(">", parts, most), most, parts)
        parts = builder.select(builder.icmp_signed("<", total, parts), total, parts)
        parts = builder.select(builder.icmp_signed("<", parts, one), one, parts)
        many = builder.icmp_signed(">=", total, _I64(ALIGNED * MOST))
        mask = builder.select(many, _I64(-ALIGNED), _I64(-1))
        records = cgutils.alloca_once(builder, record, MOST)
        items = cgutils.unpack_tuple(builder, values[3], len(arguments.types))
        with cgutils.for_range(builder, parts) as loop:
            place = builder.gep(records, [loop.index])
            after = builder.add(loop.index, one)
            first = builder.and_(builder.sdiv(builder.mul(total, loop.index), parts), mask)
            last = builder.and_(builder.sdiv(builder.mul(total, after), parts), mask)
            last = builder.select(builder.icmp_signed("==", after, parts), total, last)
            for position, value in enumerate([first, last, *items]):
                builder.store(value, cgutils.gep_inbounds(builder, place, 0, position))
        type_ = ir.FunctionType(ir.VoidType(), [entry.type, _POINTER, _I64, _I64, _I64])
        run = cgutils.get_or_insert_function(builder.module, type_, thread_pool.RUN)
        size_of = _I64(context.get_abi_sizeof(record))
        builder.call(run, [entry, builder.bitcast(records, _POINTER), size_of, parts, count])
        return context.get_dummy_value()

    return types.void(function, threads, size, arguments), generate


def _entry(context: Any, module: Any, description: Any, signature: Any, record: Any) -> Any:
    """What threads call: unpacks its record and calls the function."""
    name = module.get_unique_name(f"part.{description.llvm_func_name}")
    function = ir.Function(module, ir.FunctionType(_POINTER, [_POINTER]), name)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    place = builder.bitcast(function.args[0], record.as_pointer())
    values = [
        builder.load(cgutils.gep_inbounds(builder, place, 0, position)) for position in range(len(record.elements))
    ]
    context.call_internal_no_propagate(builder, description, signature, values)
    builder.ret(ir.Constant(_POINTER, None))
    return function
