"""The functions that kernels in SPMD form call (`runtime/codegen/device/spmd.py`), and the function around a kernel,
for two machines: NVIDIA's GPUs, and threads of this computer, which emulate a GPU in tests.

`device_layout.py` describes the memory that threads share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from runtime.kernel_ir.result_types import C_FUNCTIONS
from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, results
from runtime.llvm import arithmetic, calls
from runtime.llvm.calls import CallRule
from runtime.llvm.device_layout import (
    DETAILS,
    HANDED_OVER,
    KEY,
    MOST_BLOCKS,
    NO_FAILURE,
    OF_BLOCKS,
    STOP,
    STOPPED,
)  # fmt: skip
from runtime.llvm.device_support import MEMORY, PTX, environment, host, is_first
from runtime.llvm.function_builder import FunctionBuilder, defined
from runtime.llvm.writer import ArrayValue, Value, Writer, part_types

# --- what statements call --------------------------------------------------------------------------------------------


def _number(symbol: str) -> CallRule:
    return CallRule(lambda w, operands, type_: Value(INT64, w.op(f"call i64 @{symbol}()")))


def _effect(write: Callable[[Writer, Sequence[Any]], None]) -> CallRule:
    return CallRule(lambda w, operands, type_: write(w, operands))


def _barrier(symbol: str) -> CallRule:
    return _effect(lambda w, operands: w.line(f"call void @{symbol}()"))


def _place(w: Writer, offset: int, index: str | None = None) -> str:
    base = w.op(f"getelementptr i8, ptr {w.op('call ptr @gpu_environment()')}, i64 {offset}")
    return base if index is None else w.op(f"getelementptr i64, ptr {base}, i64 {index}")


def _store(w: Writer, place: str, item: Value) -> None:
    text = w.op(f"zext i1 {item.text} to i8") if item.type == BOOL else item.text
    w.line(f"store {item.type.memory} {text}, ptr {place}")


def _load(w: Writer, place: str, type_: Scalar) -> Value:
    found = w.op(f"load {type_.memory}, ptr {place}")
    return Value(type_, w.op(f"trunc i8 {found} to i1") if type_ == BOOL else found)


def _index(w: Writer, item: Value) -> str:
    return arithmetic.cast(w, item, INT64).text


def _bits(w: Writer, item: Value) -> tuple[str, int]:
    """The bits of a number in a 32-bit or 64-bit register, and their number."""
    size = item.type.bits
    if item.type.is_float:
        return w.op(f"bitcast {item.type.ir} {item.text} to i{size}"), size
    if size in (32, 64) and item.type != BOOL:
        return item.text, size
    return w.op(f"zext {item.type.ir} {item.text} to i32"), 32


def _of_bits(w: Writer, bits: str, type_: Scalar) -> Value:
    if type_.is_float:
        return Value(type_, w.op(f"bitcast i{type_.bits} {bits} to {type_.ir}"))
    if type_.bits in (32, 64) and type_ != BOOL:
        return Value(type_, bits)
    return Value(type_, w.op(f"trunc i32 {bits} to {type_.ir}"))


def _of_lane(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
    """The number of another lane of the warp. All lanes of the warp call it."""
    item, lane = operands
    bits, size = _bits(w, item)
    lane = arithmetic.cast(w, lane, INT64).text
    return _of_bits(w, w.op(f"call i{size} @gpu_of_lane_{size}(i{size} {bits}, i64 {lane})"), item.type)


def _fma(w: Writer, operands: Sequence[Any], type_: Scalar) -> Value:
    """a * b + c, with one rounding if the machine has an instruction for it."""
    name = f"{type_.ir} @llvm.fmuladd.f{type_.bits}"
    w.program.declare(f"declare {name}({', '.join([type_.ir] * len(operands))})")
    given = ", ".join(f"{type_.ir} {arithmetic.cast(w, each, type_).text}" for each in operands)
    return Value(type_, w.op(f"call {name}({given})"))


def _zero(type_: Scalar) -> str:
    return "0.0" if type_.is_float else "0"


def _place_of_block(w: Writer, turn: Any, block: Any) -> str:
    half = w.op(f"mul i64 {_index(w, turn)}, {MOST_BLOCKS}")
    return _place(w, OF_BLOCKS, w.op(f"add i64 {half}, {_index(w, block)}"))


def _put_of_block(w: Writer, operands: Sequence[Any]) -> None:
    turn, block, item = operands
    _store(w, _place_of_block(w, turn, block), item)


def _got_of_block(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    return _load(w, _place_of_block(w, operands[0], operands[1]), type_)


def _put_at(symbol: str) -> CallRule:
    """Writes the last operand to the address that the function `symbol` gives for the other operands."""

    def write(w: Writer, operands: Sequence[Any]) -> None:
        *at, item = operands
        _store(w, w.op(f"call ptr @{symbol}({', '.join(f'i64 {_index(w, each)}' for each in at)})"), item)

    return _effect(write)


def _got_at(symbol: str) -> CallRule:
    """Reads from such an address a number of the last operand's type."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        given = ", ".join(f"i64 {_index(w, each)}" for each in operands[:-1])
        return _load(w, w.op(f"call ptr @{symbol}({given})"), type_)

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
    """Of two numbers that aren't negative; the second isn't 0."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        a, b = (_index(w, each) for each in operands)
        return Value(INT64, w.op(f"{instruction} i64 {a}, {b}"))

    return CallRule(write)


def _alignment(array: Array) -> int:
    """The alignment in bytes that one instruction needs to load or store 4 elements, or 16 bytes."""
    return min(4 * array.element.size, 16)


def _address(w: Writer, operands: Sequence[Any]) -> str:
    array, index = operands
    return w.op(f"getelementptr {array.type.element.memory}, ptr {array.data}, i64 {_index(w, index)}")


def _is_aligned(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    number = w.op(f"ptrtoint ptr {_address(w, operands)} to i64")
    rest = w.op(f"and i64 {number}, {_alignment(operands[0].type) - 1}")
    return Value(BOOL, w.op(f"icmp eq i64 {rest}, 0"))


def _ahead(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    """How many elements the next aligned place is ahead of one."""
    number = w.op(f"ptrtoint ptr {_address(w, operands)} to i64")
    bytes_ = w.op(f"and i64 {w.op(f'sub i64 0, {number}')}, {_alignment(operands[0].type) - 1}")
    return Value(INT64, w.op(f"udiv i64 {bytes_}, {operands[0].type.element.size}"))


def _part(w: Writer, operands: Sequence[Any], type_: Any) -> ArrayValue:
    """The part of an array from an index on."""
    array, index = operands
    size = w.op(f"sub i64 {w.size(array)}, {_index(w, index)}")
    return ArrayValue(array.type, array.owner, _address(w, operands), (size,))


def _aligned_part(w: Writer, operands: Sequence[Any], type_: Any) -> ArrayValue:
    """The same, for loads and stores at multiples of 4 elements."""
    return replace(_part(w, operands, type_), alignment=_alignment(operands[0].type))


def _report(w: Writer, operands: Sequence[Any]) -> None:
    w.line(f"atomicrmw min ptr {_place(w, KEY)}, i64 {_index(w, operands[0])} monotonic")


def _first_failure(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    return Value(INT64, w.op(f"load i64, ptr {_place(w, KEY)}"))


def _failed(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    found = _first_failure(w, operands, type_)
    return Value(BOOL, w.op(f"icmp ne i64 {found.text}, {NO_FAILURE}"))


def _interrupted(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    w.program.need("@interrupted")
    return Value(BOOL, w.op("call i1 @interrupted_together()"))


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


BUILTINS: dict[tuple[str, str], CallRule] = {
    **{("math", name): _c_function(name) for name in C_FUNCTIONS},
    **{key: rule for key, rule in calls.BUILTINS.items() if key not in {("lib", "gemm"), ("lib", "in_threads")}},
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
    ("gpu", "store_warp_partial"): _put_at("gpu_place_of_warp"),
    ("gpu", "load_warp_partial"): _got_at("gpu_place_of_warp"),
    ("gpu", "store_block_partial"): _effect(_put_of_block),
    ("gpu", "load_block_partial"): CallRule(_got_of_block),
    ("gpu", "store_total"): _put_at("gpu_place_of_block_total"),
    ("gpu", "load_total"): _got_at("gpu_place_of_block_total"),
    ("gpu", "store_column_partial"): _put_at("gpu_place_of_column"),
    ("gpu", "load_column_partial"): _got_at("gpu_place_of_column"),
    ("gpu", "store_shared"): _put_at("gpu_place_in_tile"),
    ("gpu", "load_shared"): _got_at("gpu_place_in_tile"),
    ("gpu", "fma"): CallRule(_fma),
    ("gpu", "udiv"): _of_counts("udiv"),
    ("gpu", "urem"): _of_counts("urem"),
    ("gpu", "peel_count"): CallRule(_ahead),
    ("gpu", "is_aligned"): CallRule(_is_aligned),
    ("gpu", "view"): CallRule(_part),
    ("gpu", "aligned_view"): CallRule(_aligned_part),
    ("gpu", "zero_like"): CallRule(lambda w, operands, type_: Value(type_, _zero(type_))),
    ("gpu", "buffer"): _number("gpu_turn"),
    ("gpu", "swap_buffers"): _effect(lambda w, operands: w.line("call void @gpu_end_turn()")),
    ("gpu", "store_broadcast"): _write_at(HANDED_OVER),
    ("gpu", "load_broadcast"): _read_at(HANDED_OVER),
    ("gpu", "interrupted"): CallRule(_interrupted),
    ("gpu", "record_failure"): _effect(_report),
    ("gpu", "failed"): CallRule(_failed),
    ("gpu", "first_failure"): CallRule(_first_failure),
    ("gpu", "store_detail"): _write_at(DETAILS),
    ("gpu", "load_detail"): CallRule(_told),
}


# The most registers of a thread. Fewer registers mean spills, rarely in inner loops; more registers mean fewer threads
# to hide the latency of memory: with 64 registers each, a multiprocessor runs 1,024 threads. Estimated.
_REGISTERS = 64


def _poll(f: FunctionBuilder) -> str:
    word = f.op(f"load atomic volatile i64, ptr {environment(f, STOP)} monotonic, align 8")
    return f.binary("icmp ne", word, 0)


def _poll_together(f: FunctionBuilder) -> str:
    f.run("@gpu_barrier")
    place = environment(f, STOPPED)
    with f.if_then(is_first(f)):
        f.store("i64", f.op(f"zext i1 {f.call('i1', '@interrupted')} to i64"), place)
    f.run("@gpu_barrier")
    return f.binary("icmp ne", f.load("i64", place), 0)


# --- the function around a kernel ------------------------------------------------------------------------------------


class Entry:
    """The function that a launch runs in each thread (see `runtime.llvm.program.Interface`).

    Its parameters: the environment; for each array a pointer and its dimensions; the other arguments; and a pointer to
    which the first thread writes the results, 8 bytes each: 1 if it ran out of memory (the rest is missing then), else
    0; numbers; for arrays the pointer and the dimensions.
    """

    # A thread may poll alone, or all of them together, with the same answer for all.
    INTERRUPTED = "\n".join([
        defined("internal i1 @interrupted() noinline cold nounwind", _poll),
        defined("internal i1 @interrupted_together() noinline cold convergent nounwind", _poll_together),
    ])  # fmt: skip

    def __init__(self, record: str | None = None) -> None:
        """record: on this computer, the function that gives a thread's record; None for a GPU."""
        self.SUPPORT = PTX if record is None else host(record)
        self.MEMORY = MEMORY
        self._convention = "ptx_kernel void" if record is None else "void"
        self._attributes = f' "nvvm.maxnreg"="{_REGISTERS}"' if record is None else ""

    def text(self, symbol: str, callee: Any, parameters: Sequence[Scalar | Array], releases: bool) -> str:
        """The function `symbol`, which calls the kernel."""
        declared, given, lines = ["ptr %environment"], [], ["  call void @gpu_begin(ptr %environment)"]
        for number, type_ in enumerate(parameters):
            if isinstance(type_, Array):
                sizes = [f"i64 %x{number}.{axis}" for axis in range(type_.rank)]
                declared += [f"ptr %x{number}", *sizes]
                given += ["ptr null", f"ptr %x{number}", *sizes]
            else:
                declared.append(f"{type_.memory} %x{number}")
                if type_ == BOOL:
                    lines.append(f"  %b{number} = icmp ne i8 %x{number}, 0")
                given.append(f"{type_.ir} %{'b' if type_ == BOOL else 'x'}{number}")
        types = part_types(callee.result)
        if callee.direct:
            result = f"%found = call {types[0]}" if types else "call void"
            lines.append(f"  {result} @{callee.symbol}({', '.join(given)})")
        else:
            lines += [f"  %place{position} = alloca {kind}" for position, kind in enumerate(types)]
            places = [f"ptr %place{position}" for position in range(len(types))]
            lines.append(f"  %status = call i32 @{callee.symbol}({', '.join([*given, *places])})")
        lines += ["  %thread = call i64 @gpu_thread()", "  %first = icmp eq i64 %thread, 0"]
        lines += ["  br i1 %first, label %results, label %done", "results:"]
        if callee.direct:
            lines.append("  store i64 0, ptr %out")
        else:
            lines += ["  %wide = zext i32 %status to i64", "  store i64 %wide, ptr %out"]
            lines += ["  %lacking = icmp ne i32 %status, 0", "  br i1 %lacking, label %done, label %found"]
            lines.append("found:")
        part = slot = 0
        for item in results(callee.result):
            for index, kind in enumerate(part_types(item)):
                text = "%found" if callee.direct else f"%part{part}"
                if not callee.direct:
                    lines.append(f"  {text} = load {kind}, ptr %place{part}")
                part += 1
                if isinstance(item, Array) and index == 0:
                    continue  # the owner
                slot += 1
                if kind == "i1":
                    lines.append(f"  %byte{slot} = zext i1 {text} to i8")
                    kind, text = "i8", f"%byte{slot}"
                lines.append(f"  %slot{slot} = getelementptr i64, ptr %out, i64 {slot}")
                lines.append(f"  store {kind} {text}, ptr %slot{slot}")
        lines += ["  br label %done", "done:", "  ret void"]
        head = f"define {self._convention} @{symbol}({', '.join([*declared, 'ptr %out'])}){self._attributes} {{"
        return "\n".join([head, *lines, "}"])


def slots(result: Any) -> int:
    """How many numbers a launch writes for results of this type, including the first one."""
    return 1 + sum(1 + item.rank if isinstance(item, Array) else 1 for item in results(result))
