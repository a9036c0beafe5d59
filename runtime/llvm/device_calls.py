"""The functions that kernels in SPMD form call (`runtime/codegen/device/spmd.py`), and the function around a kernel,
for two machines: NVIDIA's GPUs, and threads of this computer, which emulate a GPU in tests.

`device_layout.py` describes the memory that threads share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from runtime.kernel_ir.functions import C_FUNCTIONS
from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, results
from runtime.llvm import arithmetic, calls
from runtime.llvm.calls import CallRule
from runtime.llvm.device_layout import (
    BLOCK_PARTIALS,
    BROADCAST,
    DETAILS,
    FIRST_FAILURE,
    MOST_BLOCKS,
    NO_FAILURE,
    STOP,
    STOPPED,
)  # fmt: skip
from runtime.llvm.device_support import MEMORY, PTX, environment, host, is_first
from runtime.llvm.function_builder import FunctionBuilder, defined, definitions
from runtime.llvm.writer import ArrayValue, Value, Writer, part_types

# --- what statements call --------------------------------------------------------------------------------------------


def _number(symbol: str) -> CallRule:
    return CallRule(lambda w, operands, type_: Value(INT64, w.call("i64", f"@{symbol}")))


def _effect(write: Callable[[Writer, Sequence[Any]], None]) -> CallRule:
    return CallRule(lambda w, operands, type_: write(w, operands))


def _barrier(symbol: str) -> CallRule:
    return _effect(lambda w, operands: w.run(f"@{symbol}"))


def _place(w: Writer, offset: int, index: str | None = None) -> str:
    base = w.at(w.call("ptr", "@gpu_environment"), offset)
    return base if index is None else w.at(base, index, "i64")


def _store(w: Writer, address: str, item: Value) -> None:
    text = w.convert("zext", "i1", item.text, "i8") if item.type == BOOL else item.text
    w.store(item.type.memory, text, address)


def _load(w: Writer, address: str, type_: Scalar) -> Value:
    found = w.load(type_.memory, address)
    return Value(type_, w.convert("trunc", "i8", found, "i1") if type_ == BOOL else found)


def _index(w: Writer, item: Value) -> str:
    return arithmetic.cast(w, item, INT64).text


def _bits(w: Writer, item: Value) -> tuple[str, int]:
    """The bits of a number in a 32-bit or 64-bit register, and their number."""
    size = item.type.bits
    if item.type.is_float:
        return w.convert("bitcast", item.type.ir, item.text, f"i{size}"), size
    if size in (32, 64) and item.type != BOOL:
        return item.text, size
    return w.convert("zext", item.type.ir, item.text, "i32"), 32


def _of_bits(w: Writer, bits: str, type_: Scalar) -> Value:
    if type_.is_float:
        return Value(type_, w.convert("bitcast", f"i{type_.bits}", bits, type_.ir))
    if type_.bits in (32, 64) and type_ != BOOL:
        return Value(type_, bits)
    return Value(type_, w.convert("trunc", "i32", bits, type_.ir))


def _of_lane(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
    """The number of another lane of the warp. All lanes of the warp call it."""
    item, lane = operands
    bits, size = _bits(w, item)
    lane = arithmetic.cast(w, lane, INT64).text
    return _of_bits(w, w.call(f"i{size}", f"@gpu_of_lane_{size}", f"i{size} {bits}", f"i64 {lane}"), item.type)


def _fma(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
    """a * b + c, with one rounding if the machine has an instruction for it."""
    return Value(type_, w.multiply_add(type_.ir, *(arithmetic.cast(w, each, type_).text for each in operands)))


def _zero(type_: Scalar) -> str:
    return "0.0" if type_.is_float else "0"


def _address_of_block(w: Writer, buffer: Any, block: Any) -> str:
    half = w.binary("mul", _index(w, buffer), MOST_BLOCKS)
    return _place(w, BLOCK_PARTIALS, w.binary("add", half, _index(w, block)))


def _put_of_block(w: Writer, operands: Sequence[Any]) -> None:
    buffer, block, item = operands
    _store(w, _address_of_block(w, buffer, block), item)


def _got_of_block(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    return _load(w, _address_of_block(w, operands[0], operands[1]), type_)


def _put_at(symbol: str) -> CallRule:
    """Writes the last operand to the address that the function `symbol` gives for the other operands."""

    def write(w: Writer, operands: Sequence[Any]) -> None:
        *at, item = operands
        _store(w, w.call("ptr", f"@{symbol}", *(f"i64 {_index(w, each)}" for each in at)), item)

    return _effect(write)


def _got_at(symbol: str) -> CallRule:
    """Reads from such an address a number of the last operand's type."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        given = (f"i64 {_index(w, each)}" for each in operands[:-1])
        return _load(w, w.call("ptr", f"@{symbol}", *given), type_)

    return CallRule(write)


def _write_at(offset: int) -> CallRule:
    """Writes the second operand to the array at this offset of the environment, at the index in the first one."""

    def write(w: Writer, operands: Sequence[Any]) -> None:
        at, item = operands
        _store(w, _place(w, offset, _index(w, at)), item)

    return _effect(write)


def _read_at(offset: int) -> CallRule:
    """Reads a number of the second operand's type from this array, at the index in the first one."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        return _load(w, _place(w, offset, _index(w, operands[0])), type_)

    return CallRule(write)


def _of_counts(instruction: str) -> CallRule:
    """A rule that applies an integer instruction to two operands: neither is negative, the second isn't 0."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        a, b = (_index(w, each) for each in operands)
        return Value(INT64, w.binary(instruction, a, b))

    return CallRule(write)


def _alignment(array: Array) -> int:
    """The alignment in bytes that one instruction needs to load or store 4 elements, or 16 bytes."""
    return min(4 * array.element.size, 16)


def _address(w: Writer, operands: Sequence[Any]) -> str:
    array, index = operands
    return w.at(array.data, _index(w, index), array.type.element.memory)


def _is_aligned(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    number = w.convert("ptrtoint", "ptr", _address(w, operands), "i64")
    rest = w.binary("and", number, _alignment(operands[0].type) - 1)
    return Value(BOOL, w.binary("icmp eq", rest, 0))


def _ahead(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    """How many elements the next aligned place is ahead of one."""
    number = w.convert("ptrtoint", "ptr", _address(w, operands), "i64")
    bytes_ = w.binary("and", w.binary("sub", 0, number), _alignment(operands[0].type) - 1)
    return Value(INT64, w.binary("udiv", bytes_, operands[0].type.element.size))


def _part(w: Writer, operands: Sequence[Any], type_: Any) -> ArrayValue:
    """The part of an array from an index on."""
    array, index = operands
    size = w.binary("sub", w.size(array), _index(w, index))
    return ArrayValue(array.type, array.owner, _address(w, operands), (size,))


def _aligned_part(w: Writer, operands: Sequence[Any], type_: Any) -> ArrayValue:
    """The same, for loads and stores at multiples of 4 elements."""
    return replace(_part(w, operands, type_), alignment=_alignment(operands[0].type))


def _report(w: Writer, operands: Sequence[Any]) -> None:
    w.update("min", "i64", _place(w, FIRST_FAILURE), _index(w, operands[0]))


def _first_failure(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    return Value(INT64, w.load("i64", _place(w, FIRST_FAILURE)))


def _failed(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    found = _first_failure(w, operands, type_)
    return Value(BOOL, w.binary("icmp ne", found.text, NO_FAILURE))


def _interrupted(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    w.program.need("@interrupted")
    return Value(BOOL, w.call("i1", "@interrupted_together"))


def _told(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    return _load(w, _place(w, DETAILS, _index(w, operands[0])), INT64)


def _c_function(name: str) -> CallRule:
    """A function of the C library, which devices don't have: a formula of ours, or a function of the device library."""

    def write(w: Writer, operands: Sequence[Any], type_: Scalar) -> Any:
        given = [arithmetic.cast(w, operand, type_) for operand in operands]
        if w.program.has_formula(name):
            return w.program.vector_call(w, name, given)
        return w.program.call(w, name, given)  # raises Unsupported where there is none

    return CallRule(write)


_OF_HOSTS = {("lib", "gemm"), ("lib", "indirect_gemm"), ("lib", "in_threads")}
BUILTINS: dict[tuple[str, str], CallRule] = {
    **{("math", name): _c_function(name) for name in C_FUNCTIONS},
    **{key: rule for key, rule in calls.BUILTINS.items() if key not in _OF_HOSTS},
    ("gpu", "thread"): _number("gpu_thread"),
    ("gpu", "threads"): _number("gpu_threads"),
    ("gpu", "thread_in_block"): _number("gpu_place_in_block"),
    ("gpu", "block"): _number("gpu_block"),
    ("gpu", "block_size"): _number("gpu_block_size"),
    ("gpu", "blocks"): _number("gpu_blocks"),
    ("gpu", "barrier"): _barrier("gpu_barrier"),
    ("gpu", "block_barrier"): _barrier("gpu_block_barrier"),
    ("gpu", "warp_barrier"): _barrier("gpu_warp_barrier"),
    ("gpu", "warp_size"): _number("gpu_warp_size"),
    ("gpu", "shuffle"): CallRule(_of_lane),
    ("gpu", "store_warp_partial"): _put_at("gpu_address_of_warp"),
    ("gpu", "load_warp_partial"): _got_at("gpu_address_of_warp"),
    ("gpu", "store_block_partial"): _effect(_put_of_block),
    ("gpu", "load_block_partial"): CallRule(_got_of_block),
    ("gpu", "store_total"): _put_at("gpu_address_of_block_total"),
    ("gpu", "load_total"): _got_at("gpu_address_of_block_total"),
    ("gpu", "store_column_partial"): _put_at("gpu_address_of_column"),
    ("gpu", "load_column_partial"): _got_at("gpu_address_of_column"),
    ("gpu", "store_shared"): _put_at("gpu_address_in_tile"),
    ("gpu", "load_shared"): _got_at("gpu_address_in_tile"),
    ("gpu", "fma"): CallRule(_fma),
    ("gpu", "udiv"): _of_counts("udiv"),
    ("gpu", "urem"): _of_counts("urem"),
    ("gpu", "peel_count"): CallRule(_ahead),
    ("gpu", "is_aligned"): CallRule(_is_aligned),
    ("gpu", "view"): CallRule(_part),
    ("gpu", "aligned_view"): CallRule(_aligned_part),
    ("gpu", "zero_like"): CallRule(lambda w, operands, type_: Value(type_, _zero(type_))),
    ("gpu", "buffer"): _number("gpu_turn"),
    ("gpu", "swap_buffers"): _effect(lambda w, operands: w.run("@gpu_end_turn")),
    ("gpu", "store_broadcast"): _write_at(BROADCAST),
    ("gpu", "load_broadcast"): _read_at(BROADCAST),
    ("gpu", "interrupted"): CallRule(_interrupted),
    ("gpu", "record_failure"): _effect(_report),
    ("gpu", "failed"): CallRule(_failed),
    ("gpu", "first_failure"): CallRule(_first_failure),
    ("gpu", "store_detail"): _write_at(DETAILS),
    ("gpu", "load_detail"): CallRule(_told),
}


# The most registers of a thread. Fewer registers mean spills, rarely in inner loops; more registers mean fewer threads
# to hide the latency of memory: with 64 registers each, a multiprocessor runs 1,024 threads. Estimated for kernels
# whose threads wait for each other or share rows (of 62 rows of the op table, 7 spill registers; with 40 registers 34).
# Others are chains of operations on elements, which need few: measured on an H200, one of 8 operations over 1e8 numbers
# takes 256 us with 40 registers, 265 with 48, 279 with 52; of 105 rows of the op table, one spills 8 bytes.
_REGISTERS, _REGISTERS_ALONE = 64, 40


def _poll(f: FunctionBuilder) -> str:
    word = f.op(f"load atomic volatile i64, ptr {environment(f, STOP)} monotonic, align 8")
    return f.binary("icmp ne", word, 0)


def _poll_together(f: FunctionBuilder) -> str:
    f.run("@gpu_barrier")
    address = environment(f, STOPPED)
    with f.if_then(is_first(f)):
        f.store("i64", f.convert("zext", "i1", f.call("i1", "@interrupted"), "i64"), address)
    f.run("@gpu_barrier")
    return f.binary("icmp ne", f.load("i64", address), 0)


# --- the function around a kernel ------------------------------------------------------------------------------------


class Entry:
    """The function that a launch runs in each thread (see `runtime.llvm.program.Interface`).

    Its parameters: the environment; for each array a pointer and its dimensions; the other arguments; and a pointer to
    which the first thread writes the results, 8 bytes each: 1 if it ran out of memory (the rest is missing then), else
    0; numbers; for arrays the pointer and the dimensions.
    """

    # A thread may poll alone, or all of them together, with the same answer for all.
    INTERRUPTED = definitions(
        {
            "internal i1 @interrupted() noinline cold nounwind": _poll,
            "internal i1 @interrupted_together() noinline cold convergent nounwind": _poll_together,
        }
    )

    def __init__(self, record: str | None = None, work_together: bool = True) -> None:
        """record: on this computer, the function that gives a thread's record; None for a GPU. work_together: whether
        threads wait for each other, or share rows."""
        self.SUPPORT = PTX if record is None else host(record)
        self.MEMORY = MEMORY
        self._convention = "ptx_kernel void" if record is None else "void"
        registers = _REGISTERS if work_together else _REGISTERS_ALONE
        self._attributes = f' "nvvm.maxnreg"="{registers}"' if record is None else ""

    def text(self, symbol: str, callee: Any, parameters: Sequence[Scalar | Array], releases: bool) -> str:
        """The function `symbol`, which calls the kernel."""
        types = part_types(callee.result)
        declared = ["ptr %environment"]
        for number, type_ in enumerate(parameters):
            if isinstance(type_, Array):
                declared += [f"ptr %x{number}", *(f"i64 %x{number}.{axis}" for axis in range(type_.rank))]
            else:
                declared.append(f"{type_.memory} %x{number}")
        head = f"{self._convention} @{symbol}({', '.join([*declared, 'ptr %out'])}){self._attributes}"

        def body(f: FunctionBuilder) -> None:
            f.run("@gpu_begin", "ptr %environment")
            given: list[str] = []
            for number, type_ in enumerate(parameters):
                if isinstance(type_, Array):
                    sizes = (f"i64 %x{number}.{axis}" for axis in range(type_.rank))
                    given += ["ptr null", f"ptr %x{number}", *sizes]
                elif type_ == BOOL:
                    given.append(f"i1 {f.binary('icmp ne', f'%x{number}', 0, 'i8')}")
                else:
                    given.append(f"{type_.ir} %x{number}")
            found = []
            if not callee.direct:
                slots = [f.stack(kind) for kind in types]
                status = f.call("i32", f"@{callee.symbol}", *given, *(f"ptr {slot}" for slot in slots))
            elif types:
                found = [f.call(types[0], f"@{callee.symbol}", *given)]
            else:
                f.run(f"@{callee.symbol}", *given)
            f.leave_unless(is_first(f), "void")
            if callee.direct:
                f.store("i64", 0, "%out")
            else:
                f.store("i64", f.convert("zext", "i32", status, "i64"), "%out")
                f.leave_if(f.binary("icmp ne", status, 0, "i32"), "void")
                found = [f.load(kind, slot) for kind, slot in zip(types, slots)]
            for slot, (kind, text) in enumerate(_returned(callee.result, found), 1):
                if kind == "i1":
                    kind, text = "i8", f.convert("zext", "i1", text, "i8")
                f.store(kind, text, f.at("%out", slot, "i64"))

        return defined(head, body)


def _returned(result: Any, found: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The types and the registers of results that a launch writes: all but the owners of arrays."""
    rest = iter(found)
    for item in results(result):
        for index, kind in enumerate(part_types(item)):
            text = next(rest)
            if not (isinstance(item, Array) and index == 0):
                yield kind, text


def slots(result: Any) -> int:
    """How many numbers a launch writes for results of this type, including the first one."""
    return 1 + sum(1 + item.rank if isinstance(item, Array) else 1 for item in results(result))
