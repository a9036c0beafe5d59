"""The part of the library that kernels with threads call (see `threads.py`). Imported by kernel files only.

Threads are started and joined for each nest: nothing is left running that a fork could lose or an exit wait for.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

part = njit(error_model="numpy", boundscheck=False, nogil=True)

_MOST = 64  # threads of one nest
_POINTER = ir.IntType(8).as_pointer()
_I64 = ir.IntType(64)


@intrinsic
def in_threads(typing_context: Any, function: Any, threads: Any, size: Any, arguments: Any) -> Any:
    """Calls function(first, last, *arguments) for the parts of range(size), each but the last on a thread of its own.

    `function` must not raise. A thread that can't be started is done without: its part runs here.
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
        one, most = _I64(1), _I64(_MOST)
        count = builder.select(builder.icmp_signed("<", count, one), one, count)
        count = builder.select(builder.icmp_signed(">", count, most), most, count)
        count = builder.select(builder.icmp_signed("<", total, count), builder.add(total, _I64(0)), count)
        count = builder.select(builder.icmp_signed("<", count, one), one, count)
        records = cgutils.alloca_once(builder, record, _MOST)
        handles = cgutils.alloca_once(builder, _I64, _MOST)
        started = cgutils.alloca_once(builder, ir.IntType(32), _MOST)
        items = cgutils.unpack_tuple(builder, values[3], len(arguments.types))
        with cgutils.for_range(builder, count) as loop:
            number = builder.zext(loop.index, _I64) if loop.index.type != _I64 else loop.index
            place = builder.gep(records, [number])
            first = builder.sdiv(builder.mul(total, number), count)
            last = builder.sdiv(builder.mul(total, builder.add(number, one)), count)
            for position, value in enumerate([first, last, *items]):
                builder.store(value, cgutils.gep_inbounds(builder, place, 0, position))
        create = _external(
            builder.module, "pthread_create", ir.IntType(32), [_I64.as_pointer(), _POINTER, entry.type, _POINTER]
        )
        join = _external(builder.module, "pthread_join", ir.IntType(32), [_I64, _POINTER])
        others = builder.sub(count, one)
        null = ir.Constant(_POINTER, None)
        with cgutils.for_range(builder, others) as loop:
            place = builder.bitcast(builder.gep(records, [loop.index]), _POINTER)
            failed = builder.call(create, [builder.gep(handles, [loop.index]), null, entry, place])
            builder.store(failed, builder.gep(started, [loop.index]))
        builder.call(entry, [builder.bitcast(builder.gep(records, [others]), _POINTER)])
        with cgutils.for_range(builder, others) as loop:
            failed = builder.load(builder.gep(started, [loop.index]))
            with builder.if_else(builder.icmp_signed("==", failed, ir.IntType(32)(0))) as (running, missing):
                with running:
                    builder.call(join, [builder.load(builder.gep(handles, [loop.index])), null])
                with missing:
                    builder.call(entry, [builder.bitcast(builder.gep(records, [loop.index]), _POINTER)])
        return context.get_dummy_value()

    return types.void(function, threads, size, arguments), generate


def _entry(context: Any, module: Any, description: Any, signature: Any, record: Any) -> Any:
    """What a thread runs: unpacks its record and calls the function."""
    name = module.get_unique_name(f"thread.{description.llvm_func_name}")
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


def _external(module: Any, name: str, result: Any, arguments: list) -> Any:
    found = module.globals.get(name)
    return found if found is not None else ir.Function(module, ir.FunctionType(result, arguments), name)
