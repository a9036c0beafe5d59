"""Support functions of kernels in SPMD form: memory, and the identification and synchronisation of threads, for
NVIDIA's GPUs and for threads of this computer.

Arrays that a kernel makes are in the heap. Only the first thread manages it and counts references. `@allocate` contains
barriers, so that no thread still reads memory that is reused. Blocks have four sizes for each power of two, so that
freed blocks fit again.
"""

from __future__ import annotations

from collections.abc import Callable

from runtime.llvm.device_layout import (
    ALLOCATED,
    BARRIER,
    BLOCK_BARRIER,
    BLOCK_NUMBERS,
    BLOCK_TOTAL,
    BUFFER_INDEX,
    COLUMN_PARTIALS,
    EMULATED,
    EMULATED_WARP,
    END,
    FREE,
    IN_TILE,
    OF_LANE,
    OF_WARP,
    SHORTFALL,
    THREAD_NUMBERS,
    TILE,
)  # fmt: skip
from runtime.llvm.function_builder import FunctionBuilder, defined, definitions
from runtime.llvm.memory import HEADER, reference_counting

# Writes the code that computes a value, and returns the value.
Value = Callable[[FunctionBuilder], str]


def _number(f: FunctionBuilder, name: str) -> str:
    """What a function without arguments gives: `thread` stands for `@gpu_thread`."""
    return f.call("i64", f"@gpu_{name}")


def environment(f: FunctionBuilder, offset: int) -> str:
    """The address of a field of the launch's environment."""
    return f.at(f.call("ptr", "@gpu_environment"), offset)


def is_first(f: FunctionBuilder) -> str:
    """Whether this is the first of all threads."""
    return f.binary("icmp eq", _number(f, "thread"), 0)


# --- memory ----------------------------------------------------------------------------------------------------------

_MOST = 1 << 46  # bytes: more can't be allocated
_LEAST = 256  # bytes of a block
# Fields of an owner, in bytes from its start: the next block of a list of free ones, and the number of the list.
_NEXT, _LIST = 8, 16


def _free(f: FunctionBuilder) -> None:
    """Puts the block of `%owner` into its list."""
    address = f.at(environment(f, FREE), f.binary("shl", f.load("i64", f.at("%owner", _LIST)), 3))
    f.store("ptr", f.load("ptr", address), f.at("%owner", _NEXT))
    f.store("ptr", "%owner", address)


def _allocate_alone(f: FunctionBuilder) -> str:
    """The first thread's part of `@allocate`: the data of a block, or null."""
    f.leave_if(f.binary("icmp ugt", "%count", _MOST), "ptr null")
    size = f.binary("add", f.binary("mul", "%count", "%size"), HEADER)
    room = f.max(size, _LEAST, is_signed=False)
    below = f.binary("sub", room, 1)
    power = f.binary("sub", "63", f.leading_zeros(below))
    shift = f.binary("sub", power, 2)
    steps = f.binary("lshr", below, shift)
    number = f.binary("add", f.binary("mul", power, 4), f.binary("and", steps, 3))
    rounded = f.binary("shl", f.binary("add", steps, 1), shift)
    address = f.at(environment(f, FREE), f.binary("shl", number, 3))
    waiting = f.load("ptr", address)

    def reused() -> str:
        f.store("ptr", f.load("ptr", f.at(waiting, _NEXT)), address)
        return waiting

    def fresh() -> str:
        top = f.load("i64", environment(f, 0))
        after = f.binary("add", top, rounded)
        with f.if_then(f.binary("icmp ugt", after, f.load("i64", environment(f, END)))):
            f.store("i64", rounded, environment(f, SHORTFALL))
            f.end("ret ptr null")
        f.store("i64", after, environment(f, 0))
        return f.convert("inttoptr", "i64", top, "ptr")

    owner = f.either(f.is_null(waiting), "ptr", fresh, reused)
    f.store("i64", 1, owner)
    f.store("i64", number, f.at(owner, _LIST))
    return f.at(owner, HEADER)


def _allocate(f: FunctionBuilder) -> str:
    f.run("@gpu_barrier")
    address = environment(f, ALLOCATED)
    with f.if_then(is_first(f)):
        f.store("ptr", f.call("ptr", "@allocate_alone", "i64 %count", "i64 %size"), address)
    f.run("@gpu_barrier")
    return f.load("ptr", address)


MEMORY = "\n".join([
    reference_counting("nounwind", "nounwind", _free, counts=is_first),
    defined("internal ptr @allocate_alone(i64 %count, i64 %size) noinline nounwind", _allocate_alone),
    defined("internal ptr @allocate(i64 %count, i64 %size) noinline convergent nounwind", _allocate),
])  # fmt: skip


# --- GPUs ------------------------------------------------------------------------------------------------------------

_SHARED = "ptr addrspace(3)"
_REGISTERS = {"place_in_block": "tid", "block_size": "ntid", "block": "ctaid", "blocks": "nctaid"}


def _register(name: str) -> Value:
    """The number in a special register."""
    return lambda f: f.convert("zext", "i32", f.intrinsic(f"nvvm.read.ptx.sreg.{name}.x", "i32"), "i64")


def _shared(variable: str) -> Value:
    """The address of a variable in the block's shared memory."""
    return lambda f: f.op(f"addrspacecast {_SHARED} {variable} to ptr")


def _shared_element(variable: str, index: str) -> Value:
    """The address of an element of an array in the block's shared memory."""
    return lambda f: _shared(f.op(f"getelementptr i64, {_SHARED} {variable}, i64 {index}"))(f)


def _of_column(f: FunctionBuilder) -> str:
    return f.at(environment(f, COLUMN_PARTIALS), f.binary("shl", "%number", 3))


def _product(a: str, b: str) -> Value:
    return lambda f: f.binary("mul", _number(f, a), _number(f, b))


def _thread(f: FunctionBuilder) -> str:
    place, block, size = (_number(f, name) for name in ("place_in_block", "block", "block_size"))
    return f.binary("add", f.binary("mul", block, size), place)


def _of_lane_32(f: FunctionBuilder) -> str:
    lane = f.convert("trunc", "i64", "%lane", "i32")
    return f.intrinsic("nvvm.shfl.sync.idx.i32", "i32", "i32 -1", "i32 %value", f"i32 {lane}", "i32 31")


def _of_lane_64(f: FunctionBuilder) -> str:
    """Exchanges the two halves one after the other."""
    halves = [f.convert("trunc", "i64", half, "i32") for half in ("%value", f.binary("lshr", "%value", 32))]
    found = [f.call("i32", "@gpu_of_lane_32", f"i32 {half}", "i64 %lane") for half in halves]
    low, high = (f.convert("zext", "i32", half, "i64") for half in found)
    return f.binary("or", f.binary("shl", high, 32), low)


def _end_turn(f: FunctionBuilder) -> None:
    turn = f.op(f"load i64, {_SHARED} @turn")
    f.line(f"store i64 {f.binary('xor', turn, 1)}, {_SHARED} @turn")


def _meet_in_block(f: FunctionBuilder) -> None:
    f.run("@llvm.nvvm.barrier0")  # a name that all LLVMs know: newer ones replace it by theirs when they read it


def _meet(f: FunctionBuilder) -> None:
    """If there are several blocks, which run at the same time, the first thread of each adds to a counter and waits for
    the others. Together they add 2**31, so that the first bit changes when the last one arrives; the counter needs no
    reset."""
    _meet_in_block(f)
    blocks = _number(f, "blocks")
    f.leave_if(f.binary("icmp eq", blocks, 1), "void")
    with f.if_then(f.binary("icmp eq", _number(f, "place_in_block"), 0)):
        word = environment(f, BARRIER)
        fence = 'fence syncscope("device") acq_rel'
        f.line(fence)  # LLVM writes the next instruction as relaxed, whatever its ordering
        leads = f.binary("icmp eq", _number(f, "block"), 0)
        rest = f.binary("sub", str(-(2**31) + 1), f.convert("trunc", "i64", blocks, "i32"), "i32")
        step = f.select(leads, rest, 1, "i32")
        before = f.op(f'atomicrmw add ptr {word}, i32 {step} syncscope("device") monotonic')
        with f.forever() as loop:
            now = f.op(f'load atomic i32, ptr {word} syncscope("device") acquire, align 8')
            f.jump_if(f.binary("icmp slt", f.binary("xor", before, now, "i32"), 0, "i32"), loop.end)
        f.line(fence)
    _meet_in_block(f)


def _begin(f: FunctionBuilder) -> None:
    f.line(f"store ptr %environment, {_SHARED} @environment")
    f.line(f"store i64 0, {_SHARED} @turn")
    _meet_in_block(f)


def _ptx() -> str:
    inline, together = "alwaysinline", "alwaysinline convergent"
    return "\n".join([
        f"""
@environment = internal addrspace(3) global ptr undef
@turn = internal addrspace(3) global i64 undef
@block_total = internal addrspace(3) global i64 undef
@of_warps = internal addrspace(3) global [32 x i64] undef
@tile = internal addrspace(3) global [{TILE} x i64] undef
""",
        definitions({
            f"internal ptr @gpu_environment() {inline}": lambda f: f.op(f"load ptr, {_SHARED} @environment"),
            **{f"internal i64 @gpu_{name}() {inline}": _register(name_) for name, name_ in _REGISTERS.items()},
            f"internal i64 @gpu_thread() {inline}": _thread,
            f"internal i64 @gpu_threads() {inline}": _product("blocks", "block_size"),
            f"internal void @gpu_block_barrier() {together}": _meet_in_block,
            f"internal i64 @gpu_warp_size() {inline}": lambda f: "32",
            f"internal void @gpu_warp_barrier() {together}": lambda f: f.run("@llvm.nvvm.bar.warp.sync", "i32 -1"),
            f"internal i32 @gpu_of_lane_32(i32 %value, i64 %lane) {together}": _of_lane_32,
            f"internal i64 @gpu_of_lane_64(i64 %value, i64 %lane) {together}": _of_lane_64,
            f"internal ptr @gpu_address_of_warp(i64 %warp) {inline}": _shared_element("@of_warps", "%warp"),
            f"internal ptr @gpu_address_in_tile(i64 %number) {inline}": _shared_element("@tile", "%number"),
            f"internal ptr @gpu_address_of_column(i64 %number) {inline}": _of_column,
            f"internal ptr @gpu_address_of_block_total() {inline}": _shared("@block_total"),
            f"internal i64 @gpu_turn() {inline}": lambda f: f.op(f"load i64, {_SHARED} @turn"),
            f"internal void @gpu_end_turn() {inline}": _end_turn,
            "internal void @gpu_barrier() noinline convergent": _meet,
            f"internal void @gpu_begin(ptr %environment) {together}": _begin,
        }),
    ])  # fmt: skip


PTX = _ptx()

# --- threads of this computer ----------------------------------------------------------------------------------------

RECORD = ("environment", "thread", "threads", "place_in_block", "block_size", "block", "blocks")


def _wait(f: FunctionBuilder) -> None:
    """Waits until `%count` threads have reached this counter as often as this thread."""
    before = f.update("add", "i64", "%word", 1, "acq_rel")
    goal = f.binary("mul", f.binary("add", f.binary("udiv", before, "%count"), 1), "%count")
    with f.forever():
        now = f.load_atomic("i64", "%word", "acquire")
        f.leave_if(f.binary("icmp uge", now, goal), "void")
        f.call("i32", "@sched_yield")


def _meet_at(word: Value, count: str) -> Callable[[FunctionBuilder], None]:
    def write(f: FunctionBuilder) -> None:
        f.run("@meet", f"ptr {word(f)}", f"i64 {_number(f, count)}")

    return write


def _of_block(f: FunctionBuilder) -> str:
    """The address of a block's memory."""
    return f.at(environment(f, EMULATED), f.binary("mul", "%block", BLOCK_NUMBERS))


def _of_thread(f: FunctionBuilder) -> str:
    """The address of a thread's memory, which follows that of all blocks."""
    first = f.call("ptr", "@of_block", f"i64 {_number(f, 'blocks')}")
    return f.at(first, f.binary("mul", "%thread", THREAD_NUMBERS))


def _in_block(offset: int) -> Value:
    """The address of a field of this thread's block."""
    return lambda f: f.at(f.call("ptr", "@of_block", f"i64 {_number(f, 'block')}"), offset)


def _of_warp(f: FunctionBuilder) -> str:
    """The value of a warp is in the memory of the thread that has the warp's number in the block."""
    thread = f.binary("add", _product("block", "block_size")(f), "%warp")
    return f.at(f.call("ptr", "@of_thread", f"i64 {thread}"), OF_WARP)


def _in_tile(f: FunctionBuilder) -> str:
    return f.at(_in_block(IN_TILE)(f), f.binary("shl", "%number", 3))


def _of_emulated_column(f: FunctionBuilder) -> str:
    """Behind the numbers of all threads."""
    first = f.call("ptr", "@of_thread", f"i64 {_number(f, 'threads')}")
    return f.at(first, f.binary("shl", "%number", 3))


def _end_emulated_turn(f: FunctionBuilder) -> None:
    address = _in_block(BUFFER_INDEX)(f)
    f.store("i64", f.binary("xor", f.load("i64", address), 1), address)


def _exchange(f: FunctionBuilder) -> str:
    """The threads of a warp exchange values through memory, between two barriers."""
    thread, place, size = (_number(f, name) for name in ("thread", "place_in_block", "block_size"))
    lane = f.binary("urem", place, EMULATED_WARP)
    rest = f.binary("sub", size, f.binary("sub", place, lane))
    count = f.min(rest, EMULATED_WARP, is_signed=False)
    leader = f.binary("sub", thread, lane)
    word = f.call("ptr", "@of_thread", f"i64 {leader}")
    f.store("i64", "%value", f.at(f.call("ptr", "@of_thread", f"i64 {thread}"), OF_LANE))
    f.run("@meet", f"ptr {word}", f"i64 {count}")
    other = f.min("%lane", f.binary("sub", count, 1), is_signed=False)
    found = f.load("i64", f.at(f.call("ptr", "@of_thread", f"i64 {f.binary('add', leader, other)}"), OF_LANE))
    f.run("@meet", f"ptr {word}", f"i64 {count}")
    return found


def _exchange_32(f: FunctionBuilder) -> str:
    wide = f.convert("zext", "i32", "%value", "i64")
    return f.convert("trunc", "i64", f.call("i64", "@gpu_of_lane_64", f"i64 {wide}", "i64 %lane"), "i32")


def _meet_in_warp(f: FunctionBuilder) -> None:
    f.call("i64", "@gpu_of_lane_64", "i64 0", "i64 0")


def host(record: str) -> str:
    """record: the function that gives the thread's record, an array of 64-bit numbers."""

    def number(position: int) -> Value:
        return lambda f: f.load("i64", f.at(f.call("ptr", f"@{record}"), 8 * position))

    return "\n".join([
        f"declare ptr @{record}()",
        "declare i32 @sched_yield()",
        definitions({
            **{f"internal i64 @gpu_{name}()": number(k) for k, name in enumerate(RECORD) if k},
            "internal ptr @gpu_environment()": lambda f: f.load("ptr", f.call("ptr", f"@{record}")),
            "internal void @meet(ptr %word, i64 %count) noinline": _wait,
            "internal void @gpu_barrier()": _meet_at(lambda f: environment(f, BARRIER), "threads"),
            "internal ptr @of_block(i64 %block)": _of_block,
            "internal ptr @of_thread(i64 %thread)": _of_thread,
            "internal i64 @gpu_warp_size()": lambda f: str(EMULATED_WARP),
            "internal ptr @gpu_address_of_warp(i64 %warp)": _of_warp,
            "internal ptr @gpu_address_in_tile(i64 %number)": _in_tile,
            "internal ptr @gpu_address_of_column(i64 %number)": _of_emulated_column,
            "internal ptr @gpu_address_of_block_total()": _in_block(BLOCK_TOTAL),
            "internal i64 @gpu_turn()": lambda f: f.load("i64", _in_block(BUFFER_INDEX)(f)),
            "internal void @gpu_end_turn()": _end_emulated_turn,
            "internal i64 @gpu_of_lane_64(i64 %value, i64 %lane) noinline": _exchange,
            "internal void @gpu_warp_barrier()": _meet_in_warp,
            "internal i32 @gpu_of_lane_32(i32 %value, i64 %lane)": _exchange_32,
            "internal void @gpu_block_barrier()": _meet_at(_in_block(BLOCK_BARRIER), "block_size"),
            "internal void @gpu_begin(ptr %environment)": lambda f: None,
        }),
    ])  # fmt: skip
