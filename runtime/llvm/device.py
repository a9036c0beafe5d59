"""What kernels in SPMD form (`runtime/codegen/device/spmd.py`) call, and the function around them, for two machines:
GPUs of NVIDIA's, by PTX, and threads of this computer, which stand for a GPU's in tests.

A launch has an environment in the device's memory, of `environment_size(threads)` bytes, whose first bytes
(`head_size`) its host clears but for three numbers:

    TOP, END    the first free byte of the heap, and the end of it
    KEY         the first trip of a shared loop that failed; `NO_FAILURE` at the start

The host writes 1 to STOP while the kernel runs, if that is to end.

Arrays that a kernel makes lie in the heap. The first thread alone manages it, and counts the references to each array;
all threads meet in `@allocate`, so that no thread still reads what is given away. Memory is given in four sizes for
each power of two, so that blocks which were freed fit again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.kernel_ir.types import BOOL, INT64, Array, Scalar, Type, results
from runtime.llvm import arithmetic, calls
from runtime.llvm.calls import CallRule
from runtime.llvm.memory import HEADER
from runtime.llvm.writer import Value, Writer, part_types

NO_FAILURE = (1 << 63) - 1

# Bytes from the environment's start.
TOP, END, LACKING, ALLOCATED, BARRIER, KEY, STOP, _STOPPED = range(0, 64, 8)
_FREE = 64  # lists of free blocks of the heap
_HEAP_HEAD = _FREE + 8 * 256
MOST_BLOCKS = 1024
DETAILS = _HEAP_HEAD
MOST_DETAILS = 16  # numbers that come with a status
HANDED_OVER = DETAILS + 8 * (1 + MOST_DETAILS)
MOST_HANDED_OVER = 64  # numbers that the first thread hands over at a time
# Of each block a number, twice: those of one exchange are still read when those of the next one are written.
_OF_BLOCKS = HANDED_OVER + 8 * MOST_HANDED_OVER
# Of the emulator: of each block and of each thread so many numbers.
_EMULATED = _OF_BLOCKS + 16 * MOST_BLOCKS
_BLOCK_BARRIER, _TURN, _BLOCK_TOTAL, _BLOCK_NUMBERS = range(0, 32, 8)
_WARP_BARRIER, _OF_LANE, _OF_WARP, _THREAD_NUMBERS = range(0, 32, 8)
_EMULATED_WARP = 2  # threads


def head_size(emulated: bool, makes_arrays: bool, blocks: int = 0, threads: int = 0) -> int:
    """Bytes of the environment that its host writes before a launch."""
    if emulated:
        return environment_size(blocks, threads)
    return _HEAP_HEAD if makes_arrays else _FREE


def environment_size(blocks: int = 0, threads: int = 0) -> int:
    """Bytes of the environment of a launch. blocks, threads: of an emulated one."""
    return _EMULATED + blocks * _BLOCK_NUMBERS + threads * _THREAD_NUMBERS


# --- what statements call --------------------------------------------------------------------------------------------


def _number(symbol: str) -> CallRule:
    return CallRule(lambda types: INT64, lambda w, operands, type_: Value(INT64, w.op(f"call i64 @{symbol}()")))


def _effect(write: Callable[[Writer, Sequence[Any]], None]) -> CallRule:
    return CallRule(lambda types: None, lambda w, operands, type_: write(w, operands))


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


def _last_type(types: Sequence[Any]) -> Type:
    last: Type = types[-1]
    return last


def _bits(w: Writer, item: Value) -> tuple[str, int]:
    """A number's bits in a register of 32 or 64 bits."""
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
    """What another lane of the warp gives: the whole warp calls it."""
    item, lane = operands
    bits, size = _bits(w, item)
    lane = arithmetic.cast(w, lane, INT64).text
    return _of_bits(w, w.op(f"call i{size} @gpu_of_lane_{size}(i{size} {bits}, i64 {lane})"), item.type)


def _place_of_block(w: Writer, turn: Any, block: Any) -> str:
    half = w.op(f"mul i64 {_index(w, turn)}, {MOST_BLOCKS}")
    return _place(w, _OF_BLOCKS, w.op(f"add i64 {half}, {_index(w, block)}"))


def _put_of_block(w: Writer, operands: Sequence[Any]) -> None:
    turn, block, item = operands
    _store(w, _place_of_block(w, turn, block), item)


def _got_of_block(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
    return _load(w, _place_of_block(w, operands[0], operands[1]), type_)


def _put_in_block(symbol: str) -> CallRule:
    """Writes the last operand to a number of the block's own; `symbol` says where for the operands before."""

    def write(w: Writer, operands: Sequence[Any]) -> None:
        *at, item = operands
        _store(w, w.op(f"call ptr @{symbol}({', '.join(f'i64 {_index(w, each)}' for each in at)})"), item)

    return _effect(write)


def _got_in_block(symbol: str) -> CallRule:
    """Reads such a number, of the type of the last operand."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        given = ", ".join(f"i64 {_index(w, each)}" for each in operands[:-1])
        return _load(w, w.op(f"call ptr @{symbol}({given})"), type_)

    return CallRule(_last_type, write)


def _write_at(offset: int) -> CallRule:
    """Writes the second operand at the number that the first one is."""

    def write(w: Writer, operands: Sequence[Any]) -> None:
        at, item = operands
        _store(w, _place(w, offset, _index(w, at)), item)

    return _effect(write)


def _read_at(offset: int) -> CallRule:
    """Reads a number of the type of the second operand."""

    def write(w: Writer, operands: Sequence[Any], type_: Any) -> Value:
        return _load(w, _place(w, offset, _index(w, operands[0])), type_)

    return CallRule(_last_type, write)


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
    """A function of the C library: a formula of ours, or one of the library for devices, since there is none."""

    def write(w: Writer, operands: Sequence[Any], type_: Scalar) -> Any:
        given = [arithmetic.cast(w, operand, type_) for operand in operands]
        if w.program.has_formula(name):
            return w.program.vector_call(w, name, given)
        return w.program.call(w, name, given)  # raises Unsupported where there is none

    return CallRule(calls.real, write)


BUILTINS: dict[tuple[str, str], CallRule] = {
    **{("math", name): _c_function(name) for name in calls.C_FUNCTIONS},
    **{key: rule for key, rule in calls.BUILTINS.items() if key not in {("lib", "gemm"), ("lib", "in_threads")}},
    ("gpu", "thread"): _number("gpu_thread"),
    ("gpu", "threads"): _number("gpu_threads"),
    ("gpu", "place_in_block"): _number("gpu_place_in_block"),
    ("gpu", "block"): _number("gpu_block"),
    ("gpu", "block_size"): _number("gpu_block_size"),
    ("gpu", "blocks"): _number("gpu_blocks"),
    ("gpu", "barrier"): _barrier("gpu_barrier"),
    ("gpu", "block_barrier"): _barrier("gpu_block_barrier"),
    ("gpu", "warp_size"): _number("gpu_warp_size"),
    ("gpu", "of_lane"): CallRule(lambda types: types[0], _of_lane),
    ("gpu", "put_of_warp"): _put_in_block("gpu_place_of_warp"),
    ("gpu", "got_of_warp"): _got_in_block("gpu_place_of_warp"),
    ("gpu", "put_of_block"): _effect(_put_of_block),
    ("gpu", "got_of_block"): CallRule(_last_type, _got_of_block),
    ("gpu", "put_of_block_total"): _put_in_block("gpu_place_of_block_total"),
    ("gpu", "got_of_block_total"): _got_in_block("gpu_place_of_block_total"),
    ("gpu", "turn"): _number("gpu_turn"),
    ("gpu", "end_turn"): _effect(lambda w, operands: w.line("call void @gpu_end_turn()")),
    ("gpu", "hand_over"): _write_at(HANDED_OVER),
    ("gpu", "handed_over"): _read_at(HANDED_OVER),
    ("gpu", "interrupted"): CallRule(lambda types: BOOL, _interrupted),
    ("gpu", "report"): _effect(_report),
    ("gpu", "failed"): CallRule(lambda types: BOOL, _failed),
    ("gpu", "first_failure"): CallRule(lambda types: INT64, _first_failure),
    ("gpu", "tell"): _write_at(DETAILS),
    ("gpu", "told"): CallRule(lambda types: INT64, _told),
}


# --- memory ----------------------------------------------------------------------------------------------------------

_MOST = 1 << 46  # bytes: more can't be allocated

_MEMORY = f"""
%owner = type {{ i64, ptr, i64, i64 }}
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umax.i64(i64, i64)

define internal void @take(ptr %owner) nounwind {{
  %none = icmp eq ptr %owner, null
  %thread = call i64 @gpu_thread()
  %other = icmp ne i64 %thread, 0
  %nothing = or i1 %none, %other
  br i1 %nothing, label %done, label %some
some:
  %count = load i64, ptr %owner
  %more = add i64 %count, 1
  store i64 %more, ptr %owner
  br label %done
done:
  ret void
}}

define internal void @drop(ptr %owner) nounwind {{
  %none = icmp eq ptr %owner, null
  %thread = call i64 @gpu_thread()
  %other = icmp ne i64 %thread, 0
  %nothing = or i1 %none, %other
  br i1 %nothing, label %done, label %some
some:
  %count = load i64, ptr %owner
  %less = sub i64 %count, 1
  store i64 %less, ptr %owner
  %last = icmp eq i64 %less, 0
  br i1 %last, label %free, label %done
free:
  %environment = call ptr @gpu_environment()
  %lists = getelementptr i8, ptr %environment, i64 {_FREE}
  %kind.place = getelementptr i8, ptr %owner, i64 16
  %kind = load i64, ptr %kind.place
  %list = getelementptr i64, ptr %lists, i64 %kind
  %next = load ptr, ptr %list
  %next.place = getelementptr i8, ptr %owner, i64 8
  store ptr %next, ptr %next.place
  store ptr %owner, ptr %list
  br label %done
done:
  ret void
}}

; What the first thread does in @allocate: the data of a block, or null.
define internal ptr @allocate_alone(i64 %count, i64 %size) noinline nounwind {{
  %environment = call ptr @gpu_environment()
  %bad = icmp ugt i64 %count, {_MOST}
  br i1 %bad, label %fail, label %right
right:
  %bytes = mul i64 %count, %size
  %whole = add i64 %bytes, {HEADER}
  %room = call i64 @llvm.umax.i64(i64 %whole, i64 256)
  %below = sub i64 %room, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %below, i1 true)
  %power = sub i64 63, %zeros
  %shift = sub i64 %power, 2
  %steps = lshr i64 %below, %shift
  %quarter = and i64 %steps, 3
  %four = mul i64 %power, 4
  %kind = add i64 %four, %quarter
  %above = add i64 %steps, 1
  %rounded = shl i64 %above, %shift
  %lists = getelementptr i8, ptr %environment, i64 {_FREE}
  %list = getelementptr i64, ptr %lists, i64 %kind
  %free = load ptr, ptr %list
  %empty = icmp eq ptr %free, null
  br i1 %empty, label %bump, label %pop
pop:
  %next.place = getelementptr i8, ptr %free, i64 8
  %next = load ptr, ptr %next.place
  store ptr %next, ptr %list
  br label %found
bump:
  %top = load i64, ptr %environment
  %end.place = getelementptr i8, ptr %environment, i64 {END}
  %end = load i64, ptr %end.place
  %after = add i64 %top, %rounded
  %full = icmp ugt i64 %after, %end
  br i1 %full, label %lacking, label %new
new:
  store i64 %after, ptr %environment
  %block = inttoptr i64 %top to ptr
  br label %found
found:
  %owner = phi ptr [ %free, %pop ], [ %block, %new ]
  store i64 1, ptr %owner
  %kind.place = getelementptr i8, ptr %owner, i64 16
  store i64 %kind, ptr %kind.place
  %data = getelementptr i8, ptr %owner, i64 {HEADER}
  ret ptr %data
lacking:
  %lacking.place = getelementptr i8, ptr %environment, i64 {LACKING}
  store i64 %rounded, ptr %lacking.place
  br label %fail
fail:
  ret ptr null
}}

define internal ptr @allocate(i64 %count, i64 %size) noinline convergent nounwind {{
  call void @gpu_barrier()
  %environment = call ptr @gpu_environment()
  %place = getelementptr i8, ptr %environment, i64 {ALLOCATED}
  %thread = call i64 @gpu_thread()
  %first = icmp eq i64 %thread, 0
  br i1 %first, label %alone, label %both
alone:
  %data = call ptr @allocate_alone(i64 %count, i64 %size)
  store ptr %data, ptr %place
  br label %both
both:
  call void @gpu_barrier()
  %given = load ptr, ptr %place
  ret ptr %given
}}
"""

# --- GPUs ------------------------------------------------------------------------------------------------------------

_REGISTERS = "".join(
    f"""
declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()
define internal i64 @gpu_{name}() alwaysinline {{
  %narrow = call i32 @llvm.nvvm.read.ptx.sreg.{register}.x()
  %number = zext i32 %narrow to i64
  ret i64 %number
}}
"""
    for name, register in (
        ("place_in_block", "tid"), ("block_size", "ntid"), ("block", "ctaid"), ("blocks", "nctaid"),
    )
)  # fmt: skip
_PTX = f"""
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32) convergent
@environment = internal addrspace(3) global ptr undef
@turn = internal addrspace(3) global i64 undef
@block_total = internal addrspace(3) global i64 undef
@of_warps = internal addrspace(3) global [32 x i64] undef

define internal ptr @gpu_environment() alwaysinline {{
  %found = load ptr, ptr addrspace(3) @environment
  ret ptr %found
}}
{_REGISTERS}
define internal i64 @gpu_thread() alwaysinline {{
  %place = call i64 @gpu_place_in_block()
  %block = call i64 @gpu_block()
  %size = call i64 @gpu_block_size()
  %before = mul i64 %block, %size
  %r = add i64 %before, %place
  ret i64 %r
}}
define internal i64 @gpu_threads() alwaysinline {{
  %blocks = call i64 @gpu_blocks()
  %size = call i64 @gpu_block_size()
  %r = mul i64 %blocks, %size
  ret i64 %r
}}
define internal void @gpu_block_barrier() alwaysinline convergent {{
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}}
define internal i64 @gpu_warp_size() alwaysinline {{
  ret i64 32
}}
define internal i32 @gpu_of_lane_32(i32 %value, i64 %lane) alwaysinline convergent {{
  %narrow = trunc i64 %lane to i32
  %r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 -1, i32 %value, i32 %narrow, i32 31)
  ret i32 %r
}}
define internal i64 @gpu_of_lane_64(i64 %value, i64 %lane) alwaysinline convergent {{
  %low = trunc i64 %value to i32
  %shifted = lshr i64 %value, 32
  %high = trunc i64 %shifted to i32
  %its.low = call i32 @gpu_of_lane_32(i32 %low, i64 %lane)
  %its.high = call i32 @gpu_of_lane_32(i32 %high, i64 %lane)
  %wide.low = zext i32 %its.low to i64
  %wide.high = zext i32 %its.high to i64
  %upper = shl i64 %wide.high, 32
  %r = or i64 %upper, %wide.low
  ret i64 %r
}}
define internal ptr @gpu_place_of_warp(i64 %warp) alwaysinline {{
  %place = getelementptr i64, ptr addrspace(3) @of_warps, i64 %warp
  %r = addrspacecast ptr addrspace(3) %place to ptr
  ret ptr %r
}}
define internal ptr @gpu_place_of_block_total() alwaysinline {{
  %r = addrspacecast ptr addrspace(3) @block_total to ptr
  ret ptr %r
}}
define internal i64 @gpu_turn() alwaysinline {{
  %r = load i64, ptr addrspace(3) @turn
  ret i64 %r
}}
define internal void @gpu_end_turn() alwaysinline {{
  %turn = load i64, ptr addrspace(3) @turn
  %next = xor i64 %turn, 1
  store i64 %next, ptr addrspace(3) @turn
  ret void
}}
; Of several blocks, which run at the same time, each one's first thread counts itself in and waits for the others. All
; of them together add 2**31, so that the word's first bit changes when the last one has come. Nobody need reset it.
define internal void @gpu_barrier() noinline convergent {{
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %blocks = call i64 @gpu_blocks()
  %one = icmp eq i64 %blocks, 1
  br i1 %one, label %done, label %several
several:
  %place = call i64 @gpu_place_in_block()
  %first = icmp eq i64 %place, 0
  br i1 %first, label %arrive, label %meet
arrive:
  %environment = call ptr @gpu_environment()
  %word = getelementptr i8, ptr %environment, i64 {BARRIER}
  fence syncscope("device") acq_rel  ; LLVM writes the next one as relaxed, whatever its ordering
  %block = call i64 @gpu_block()
  %leads = icmp eq i64 %block, 0
  %count = trunc i64 %blocks to i32
  %rest = sub i32 -2147483647, %count
  %step = select i1 %leads, i32 %rest, i32 1
  %old = atomicrmw add ptr %word, i32 %step syncscope("device") monotonic
  br label %wait
wait:
  %now = load atomic i32, ptr %word syncscope("device") acquire, align 8
  %changed = xor i32 %old, %now
  %more = icmp sge i32 %changed, 0
  br i1 %more, label %wait, label %arrived
arrived:
  fence syncscope("device") acq_rel
  br label %meet
meet:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  br label %done
done:
  ret void
}}
define internal void @gpu_begin(ptr %environment) alwaysinline convergent {{
  store ptr %environment, ptr addrspace(3) @environment
  store i64 0, ptr addrspace(3) @turn
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}}
"""

# --- threads of this computer ----------------------------------------------------------------------------------------

RECORD = ("environment", "thread", "threads", "place_in_block", "block_size", "block", "blocks")


def _host(record: str) -> str:
    """record: the function that gives the thread's record, an array of 64-bit numbers."""
    numbers = "".join(
        f"""
define internal i64 @gpu_{name}() {{
  %record = call ptr @{record}()
  %place = getelementptr i64, ptr %record, i64 {position}
  %number = load i64, ptr %place
  ret i64 %number
}}
"""
        for position, name in enumerate(RECORD)
        if position
    )
    return f"""
declare ptr @{record}()
declare i32 @sched_yield()
declare i64 @llvm.umin.i64(i64, i64)
{numbers}
define internal ptr @gpu_environment() {{
  %record = call ptr @{record}()
  %found = load ptr, ptr %record
  ret ptr %found
}}
define internal void @meet(ptr %word, i64 %count) noinline {{
  %old = atomicrmw add ptr %word, i64 1 acq_rel
  %round = udiv i64 %old, %count
  %next = add i64 %round, 1
  %goal = mul i64 %next, %count
  br label %wait
wait:
  %now = load atomic i64, ptr %word acquire, align 8
  %more = icmp ult i64 %now, %goal
  br i1 %more, label %again, label %done
again:
  %none = call i32 @sched_yield()
  br label %wait
done:
  ret void
}}
define internal void @gpu_barrier() {{
  %environment = call ptr @gpu_environment()
  %word = getelementptr i8, ptr %environment, i64 {BARRIER}
  %count = call i64 @gpu_threads()
  call void @meet(ptr %word, i64 %count)
  ret void
}}
; Where the numbers of a block are, and those of a thread.
define internal ptr @of_block(i64 %block) {{
  %environment = call ptr @gpu_environment()
  %first = getelementptr i8, ptr %environment, i64 {_EMULATED}
  %offset = mul i64 %block, {_BLOCK_NUMBERS}
  %r = getelementptr i8, ptr %first, i64 %offset
  ret ptr %r
}}
define internal ptr @of_thread(i64 %thread) {{
  %blocks = call i64 @gpu_blocks()
  %first = call ptr @of_block(i64 %blocks)
  %offset = mul i64 %thread, {_THREAD_NUMBERS}
  %r = getelementptr i8, ptr %first, i64 %offset
  ret ptr %r
}}
define internal ptr @in_block(i64 %offset) {{
  %block = call i64 @gpu_block()
  %numbers = call ptr @of_block(i64 %block)
  %r = getelementptr i8, ptr %numbers, i64 %offset
  ret ptr %r
}}
define internal i64 @gpu_warp_size() {{
  ret i64 {_EMULATED_WARP}
}}
; A warp's number is kept with the thread of the block that has the warp's number.
define internal ptr @gpu_place_of_warp(i64 %warp) {{
  %block = call i64 @gpu_block()
  %size = call i64 @gpu_block_size()
  %first = mul i64 %block, %size
  %thread = add i64 %first, %warp
  %numbers = call ptr @of_thread(i64 %thread)
  %r = getelementptr i8, ptr %numbers, i64 {_OF_WARP}
  ret ptr %r
}}
define internal ptr @gpu_place_of_block_total() {{
  %r = call ptr @in_block(i64 {_BLOCK_TOTAL})
  ret ptr %r
}}
define internal i64 @gpu_turn() {{
  %place = call ptr @in_block(i64 {_TURN})
  %r = load i64, ptr %place
  ret i64 %r
}}
define internal void @gpu_end_turn() {{
  %place = call ptr @in_block(i64 {_TURN})
  %turn = load i64, ptr %place
  %next = xor i64 %turn, 1
  store i64 %next, ptr %place
  ret void
}}
; The threads of a warp meet, exchange what they have in memory, and meet again.
define internal i64 @gpu_of_lane_64(i64 %value, i64 %lane) noinline {{
  %thread = call i64 @gpu_thread()
  %place = call i64 @gpu_place_in_block()
  %size = call i64 @gpu_block_size()
  %own.lane = urem i64 %place, {_EMULATED_WARP}
  %begin = sub i64 %place, %own.lane
  %rest = sub i64 %size, %begin
  %count = call i64 @llvm.umin.i64(i64 %rest, i64 {_EMULATED_WARP})
  %leader = sub i64 %thread, %own.lane
  %word = call ptr @of_thread(i64 %leader)
  %numbers = call ptr @of_thread(i64 %thread)
  %mine = getelementptr i8, ptr %numbers, i64 {_OF_LANE}
  store i64 %value, ptr %mine
  call void @meet(ptr %word, i64 %count)
  %last = sub i64 %count, 1
  %other = call i64 @llvm.umin.i64(i64 %lane, i64 %last)
  %its.thread = add i64 %leader, %other
  %its.numbers = call ptr @of_thread(i64 %its.thread)
  %its = getelementptr i8, ptr %its.numbers, i64 {_OF_LANE}
  %r = load i64, ptr %its
  call void @meet(ptr %word, i64 %count)
  ret i64 %r
}}
define internal i32 @gpu_of_lane_32(i32 %value, i64 %lane) {{
  %wide = zext i32 %value to i64
  %found = call i64 @gpu_of_lane_64(i64 %wide, i64 %lane)
  %r = trunc i64 %found to i32
  ret i32 %r
}}
define internal void @gpu_block_barrier() {{
  %word = call ptr @in_block(i64 {_BLOCK_BARRIER})
  %count = call i64 @gpu_block_size()
  call void @meet(ptr %word, i64 %count)
  ret void
}}
define internal void @gpu_begin(ptr %environment) {{
  ret void
}}
"""


# --- the function around a kernel ------------------------------------------------------------------------------------


class Entry:
    """The function that a launch runs in each thread (see `runtime.llvm.program.Interface`).

    Its parameters: the environment, of each array a pointer and its dimensions, the other arguments, and where the
    first thread writes results, 8 bytes each: 1 if memory was lacking (the rest isn't there then), numbers, and of
    arrays the pointer and the dimensions.
    """

    # One thread may ask for itself, or all of them together, who get one answer.
    INTERRUPTED = f"""
define internal i1 @interrupted() noinline cold nounwind {{
  %environment = call ptr @gpu_environment()
  %place = getelementptr i8, ptr %environment, i64 {STOP}
  %word = load atomic volatile i64, ptr %place monotonic, align 8
  %found = icmp ne i64 %word, 0
  ret i1 %found
}}
define internal i1 @interrupted_together() noinline cold convergent nounwind {{
  call void @gpu_barrier()
  %environment = call ptr @gpu_environment()
  %place = getelementptr i8, ptr %environment, i64 {_STOPPED}
  %thread = call i64 @gpu_thread()
  %first = icmp eq i64 %thread, 0
  br i1 %first, label %alone, label %both
alone:
  %now = call i1 @interrupted()
  %number = zext i1 %now to i64
  store i64 %number, ptr %place
  br label %both
both:
  call void @gpu_barrier()
  %word = load i64, ptr %place
  %found = icmp ne i64 %word, 0
  ret i1 %found
}}
"""

    def __init__(self, record: str | None = None) -> None:
        """record: on this computer, what gives a thread's record; None for a GPU."""
        self.SUPPORT = _PTX if record is None else _host(record)
        self.MEMORY = _MEMORY
        self._convention = "ptx_kernel void" if record is None else "void"

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
        head = f"define {self._convention} @{symbol}({', '.join([*declared, 'ptr %out'])}) {{"
        return "\n".join([head, *lines, "}"])


def slots(result: Any) -> int:
    """How many numbers a launch writes for results of this type, the first among them."""
    return 1 + sum(1 + item.rank if isinstance(item, Array) else 1 for item in results(result))
