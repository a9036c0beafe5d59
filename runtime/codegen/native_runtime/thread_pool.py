"""The thread pool that parallel loops run on: one per process, which kernels call by the pointer at `place()`.

    void autograph_run_parts(entry, records, size, count, threads)

calls entry(records + k * size) for each k below `count`, on at most `threads` threads including the caller's, and
returns when all calls have. `entry` takes a pointer, returns a pointer that is ignored, and must not raise.

Starting a thread for each loop nest costs 20 us, and a new thread often starts on its creator's processor, where the
two take turns: nests of less than half a millisecond gained nothing. The threads of the pool stay. An idle thread spins
for some 50 us, which bridges the gap to the next nest, then sleeps. It spins less after sleeps that were longer than
that: spinning gained nothing, and took a processor from others. Any free thread takes the next part, so a thread that
wakes up slowly delays nobody, and results don't depend on the assignment since each element is computed by one thread.

- One nest at a time: a caller that finds the pool busy computes its parts itself.
- Where other processes need the processors, a thread that is suspended within a part keeps the caller waiting for
  milliseconds, and threads that are woken come too late to find any part. After either, callers compute alone for a
  while: the longer, the sooner it happens again.
- A forked child has none of the threads. It notices by its process id, and starts with an empty pool.
- Exit waits for nobody: sleeping threads end with the process.
- On Linux the threads avoid the caller's processor. When all others are busy, if only with idle work or another
  library's spinning threads, the system wakes a thread on its waker's processor. There it runs only once the caller has
  computed everything, finds nothing to do and sleeps again: all following nests would then run on one thread.
- Signals stay with Python's threads: those of the pool block them all.

The remaining parts are one atomic integer with a generation, so that a thread that was suspended between reading it and
taking a part can't take a part of a later nest:  generation (32 bits) | threads (8) | parts (12) | next part (12).
"""

from __future__ import annotations

import ctypes
import functools
import signal
import time
from typing import Any

from runtime import system
from runtime.codegen.native_runtime.jit_module import link
from runtime.llvm import processor
from runtime.llvm.function_builder import FunctionBuilder, defined, definitions
from runtime.llvm.threads import RUN

MOST_THREADS = 255
MOST_PARTS = 4095

_LOOKS, _FEWEST_LOOKS = 1500, 50  # iterations that an idle thread spins before it sleeps: at most, at least
_SHORT_SLEEP = 50_000  # nanoseconds, which so many iterations would have bridged
# Nanoseconds that a caller waits for the others' last parts, beyond the time that its own took, before it finds them
# late; and how long it then does without them, at least and at most.
_LATE = 200_000
_SHORTEST_ALONE, _LONGEST_ALONE = 20_000_000, 1_000_000_000
_IN_VAIN = 16  # nests in a row of which no other thread took a part, after which it does the same
# Tells the processor that a thread waits: the intrinsic and its operands.
_PAUSES = {
    "x86-64": ("@llvm.x86.sse2.pause",),
    "arm64": ("@llvm.aarch64.hint", "i32 1"),
}
_MASK_WORDS = 16  # of 64 bits, in a set of signals, or of processors: 1,024 of them

# Clocks: one that only goes forward, and one of the processor time of a thread.
_CLOCK = getattr(time, "CLOCK_MONOTONIC", 0)
_PROCESSOR_TIME = getattr(time, "CLOCK_THREAD_CPUTIME_ID", 0)

_GLOBALS = f"""
@lock = internal global i32 0
@process = internal global i32 -1
@made = internal global i64 0
@handles = internal global [{MOST_THREADS + 1} x i64] zeroinitializer
@sleeping = internal global i32 0
@ticket = internal global i64 0
@done = internal global i64 0
@entry = internal global ptr null
@records = internal global ptr null
@size = internal global i64 0
; Nanoseconds: until when callers compute alone, and how long that was the last time; nests in a row without help.
@alone_until = internal global i64 0
@alone_for = internal global i64 0
@unhelped = internal global i64 0
; larger than a mutex and a condition variable on any system
@mutex = internal global [32 x i64] zeroinitializer
@condition = internal global [32 x i64] zeroinitializer
; the processor of the last caller, and how many threads avoid it
@home = internal global i32 -1
@placed = internal global i64 0

declare i32 @getpid()
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sigfillset(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
"""
_LINUX = """
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
"""


def _pause(f: FunctionBuilder) -> None:
    if processor.family() in _PAUSES:
        f.run(*_PAUSES[processor.family()])


def _now(f: FunctionBuilder) -> str:
    """Nanoseconds of `%clock`."""
    time_ = f.stack("[2 x i64]")
    f.call("i32", "@clock_gettime", "i32 %clock", f"ptr {time_}")
    seconds = f.load("i64", time_)
    return f.binary("add", f.binary("mul", seconds, 1_000_000_000), f.field("i64", time_, 8))


def _time(f: FunctionBuilder, clock: int = _CLOCK) -> str:
    return f.call("i64", "@now", f"i32 {clock}")


def _mask(f: FunctionBuilder) -> str:
    return f.stack(f"[{_MASK_WORDS} x i64]")


# --- parts -----------------------------------------------------------------------------------------------------------


def _is_left(f: FunctionBuilder) -> str:
    """Whether a part is left for thread number `%me`."""
    part = f.binary("and", "%ticket", 4095)
    parts = f.binary("and", f.binary("lshr", "%ticket", 12), 4095)
    threads = f.binary("and", f.binary("lshr", "%ticket", 24), 255)
    return f.all_of(f.binary("icmp ult", part, parts), f.binary("icmp ult", "%me", threads))


def _has_part(f: FunctionBuilder, ticket: str, me: str) -> str:
    return f.call("i1", "@is_left", f"i64 {ticket}", f"i64 {me}")


def _run_part(f: FunctionBuilder, entry: str, records: str, size: str, number: str) -> None:
    f.call("ptr", entry, f"ptr {f.at(records, f.binary('mul', number, size))}")


def _work(f: FunctionBuilder) -> str:
    """Runs parts until none is left for thread `%me`. How many it ran."""
    with f.forever(("i64", "0")) as loop:
        (found,) = loop.values
        ticket = f.load_atomic("i64", "@ticket", "acquire")
        f.jump_unless(_has_part(f, ticket, "%me"), loop.end)
        # Read before the part is taken: afterwards they may be the next nest's.
        entry, records = f.load_atomic("ptr", "@entry"), f.load_atomic("ptr", "@records")
        size = f.load_atomic("i64", "@size")
        is_taken = f.replace("i64", "@ticket", ticket, f.binary("add", ticket, 1))

        def ran() -> str:
            _run_part(f, entry, records, size, f.binary("and", ticket, 4095))
            f.update("add", "i64", "@done", 1, "release")
            return f.binary("add", found, 1)

        loop.following = [f.either(is_taken, "i64", ran, lambda: found)]
    return found


def _alone(f: FunctionBuilder) -> None:
    """Runs all parts."""
    with f.loop(0, "%count") as loop:
        _run_part(f, "%entry", "%records", "%size", loop.index)


# --- threads ---------------------------------------------------------------------------------------------------------


def _live(f: FunctionBuilder) -> str:
    """The main loop of thread `%number` of the pool. Its state: how often it has looked in vain, and after how many
    times it sleeps."""
    me = f.convert("ptrtoint", "ptr", "%number", "i64")

    def slept(patience: str) -> str:
        """Sleeps. Returns the patience from then on."""
        tired = _time(f)
        f.call("i32", "@pthread_mutex_lock", "ptr @mutex")
        f.update("add", "i32", "@sleeping", 1, "seq_cst")
        with f.unless(_has_part(f, f.load_atomic("i64", "@ticket", "seq_cst"), me)):
            f.call("i32", "@pthread_cond_wait", "ptr @condition", "ptr @mutex")
        time_ = f.binary("sub", _time(f), tired)
        is_short = f.binary("icmp slt", time_, _SHORT_SLEEP)
        learnt = f.select(is_short, _LOOKS, f.max(f.binary("lshr", patience, 1), _FEWEST_LOOKS))
        f.update("sub", "i32", "@sleeping", 1, "seq_cst")
        f.call("i32", "@pthread_mutex_unlock", "ptr @mutex")
        return learnt

    with f.forever(("i64", "0"), ("i64", str(_LOOKS))) as loop:
        looks, patience = loop.values
        was_busy = f.binary("icmp sgt", f.call("i64", "@work", f"i64 {me}"), 0)
        _pause(f)
        so_far = f.select(was_busy, 0, f.binary("add", looks, 1))
        is_patient = f.binary("icmp slt", so_far, patience)
        learnt = f.either(is_patient, "i64", lambda: patience, lambda: slept(patience))
        loop.following = [f.select(is_patient, so_far, 0), learnt]
    return "null"


def _is_ready(f: FunctionBuilder) -> str:
    """Whether the pool is initialised in this process; initialises it at first and after a fork. False while another
    thread does."""
    own = f.call("i32", "@getpid")
    known = f.load_atomic("i32", "@process", "acquire")
    f.leave_if(f.binary("icmp eq", own, known, "i32"), "i1 true")
    f.leave_if(f.binary("icmp eq", known, 0, "i32"), "i1 false")
    f.leave_unless(f.replace("i32", "@process", known, 0), "i1 false")
    f.call("i32", "@pthread_mutex_init", "ptr @mutex", "ptr null")
    f.call("i32", "@pthread_cond_init", "ptr @condition", "ptr null")
    f.store("i64", 0, "@made")
    f.store("i64", 0, "@placed")
    f.store_atomic("i32", 0, "@sleeping")
    f.store_atomic("i64", 0, "@ticket")
    f.store_atomic("i32", 0, "@lock")
    f.store_atomic("i32", own, "@process", "release")
    return "true"


def _grow(f: FunctionBuilder) -> None:
    """Starts threads until there are `%wanted` besides the caller, or the system refuses."""
    handle, all_signals, before = f.stack("ptr"), _mask(f), _mask(f)
    some = f.load("i64", "@made")
    f.leave_if(f.binary("icmp sge", some, "%wanted"), "void")
    f.call("i32", "@sigfillset", f"ptr {all_signals}")
    f.call("i32", "@pthread_sigmask", f"i32 {int(signal.SIG_BLOCK)}", f"ptr {all_signals}", f"ptr {before}")
    with f.loop(some, "%wanted") as loop:
        number = f.binary("add", loop.index, 1)
        given = f.convert("inttoptr", "i64", number, "ptr")
        failed = f.call("i32", "@pthread_create", f"ptr {handle}", "ptr null", "ptr @live", f"ptr {given}")
        f.jump_if(f.binary("icmp ne", failed, 0, "i32"), loop.end)
        thread = f.load("ptr", handle)
        f.store("ptr", thread, f.at("@handles", number, "ptr"))
        f.call("i32", "@pthread_detach", f"ptr {thread}")
        f.store("i64", number, "@made")
    f.call("i32", "@pthread_sigmask", f"i32 {int(signal.SIG_SETMASK)}", f"ptr {before}", "ptr null")


def _exclude_callers_processor(f: FunctionBuilder) -> None:
    """Linux: `%others` threads may run on all processors that the caller may use except its own."""
    mask, bytes_ = _mask(f), f"i64 {8 * _MASK_WORDS}"
    processor = f.call("i32", "@sched_getcpu")
    is_home = f.binary("icmp eq", processor, f.load("i32", "@home"), "i32")
    is_done = f.binary("icmp sge", f.load("i64", "@placed"), "%others")
    f.leave_if(f.all_of(is_home, is_done), "void")
    f.store("i32", processor, "@home")
    f.store("i64", "%others", "@placed")
    failed = f.call("i32", "@sched_getaffinity", "i32 0", bytes_, f"ptr {mask}")
    is_counted = f.binary("icmp ult", processor, 64 * _MASK_WORDS, "i32")
    f.leave_unless(f.all_of(f.binary("icmp eq", failed, 0, "i32"), is_counted), "void")
    position = f.convert("zext", "i32", processor, "i64")
    word = f.at(mask, f.binary("lshr", position, 6), "i64")
    bit = f.binary("shl", 1, f.binary("and", position, 63))
    f.store("i64", f.binary("and", f.load("i64", word), f.binary("xor", bit, -1)), word)
    words = f"<{_MASK_WORDS} x i64>"
    others = f.intrinsic("vector.reduce.or", "i64", f"{words} {f.load(words, mask, align=8)}")
    f.leave_if(f.binary("icmp eq", others, 0), "void")
    made = f.load("i64", "@made")
    with f.loop(0, made) as loop:
        thread = f.field("i64", "@handles", f.binary("add", loop.index, 1), "i64")
        f.call("i32", "@pthread_setaffinity_np", f"i64 {thread}", bytes_, f"ptr {mask}")


# --- callers ---------------------------------------------------------------------------------------------------------


def _share(f: FunctionBuilder, threads: str) -> None:
    """Publishes a nest to the threads of the pool, and wakes those that sleep."""
    nest = (
        ("ptr", "%entry", "@entry"),
        ("ptr", "%records", "@records"),
        ("i64", "%size", "@size"),
        ("i64", 0, "@done"),
    )
    for type_, value, place in nest:
        f.store_atomic(type_, value, place)
    generation = f.binary("add", f.binary("lshr", f.load_atomic("i64", "@ticket"), 32), 1)
    fields = ((generation, 32), (threads, 24), ("%count", 12))
    high, middle, low = (f.binary("shl", number, shift) for number, shift in fields)
    f.store_atomic("i64", f.binary("or", f.binary("or", high, middle), low), "@ticket", "seq_cst")
    with f.if_then(f.binary("icmp sgt", f.load_atomic("i32", "@sleeping", "seq_cst"), 0, "i32")):
        f.call("i32", "@pthread_mutex_lock", "ptr @mutex")
        f.call("i32", "@pthread_cond_broadcast", "ptr @condition")
        f.call("i32", "@pthread_mutex_unlock", "ptr @mutex")


def _wait(f: FunctionBuilder) -> str:
    """Waits for the end of all parts. Returns the number of attempts."""
    with f.forever(("i64", "0")) as loop:
        (looks,) = loop.values
        f.jump_if(f.binary("icmp sge", f.load_atomic("i64", "@done", "acquire"), "%count"), loop.end)
        _pause(f)
        loop.following = [f.binary("add", looks, 1)]
        with f.if_then(f.binary("icmp sgt", looks, _LOOKS)):
            f.call("i32", "@sched_yield")
    return looks


def _suspend_workers(f: FunctionBuilder, now: str) -> None:
    """Has callers compute alone for a while."""
    f.store("i64", 0, "@unhelped")
    last, before = f.load("i64", "@alone_until"), f.load("i64", "@alone_for")
    is_repeated = f.binary("icmp slt", f.binary("sub", now, last), f.binary("shl", before, 2))
    longer = f.min(f.binary("shl", before, 1), _LONGEST_ALONE)
    time_ = f.select(is_repeated, longer, _SHORTEST_ALONE)
    f.store("i64", time_, "@alone_for")
    f.store("i64", f.binary("add", now, time_), "@alone_until")


def _run_parts(f: FunctionBuilder) -> None:
    alone = f.label()
    is_worthwhile = f.all_of(f.binary("icmp sgt", "%count", 1), f.binary("icmp sgt", "%threads", 1))
    f.jump_unless(f.all_of(is_worthwhile, f.binary("icmp sle", "%count", MOST_PARTS)), alone)
    f.jump_unless(f.call("i1", "@is_ready"), alone)
    f.jump_unless(f.replace("i32", "@lock", 0, 1), alone)
    until = f.load("i64", "@alone_until")
    with f.if_then(f.binary("icmp ne", until, 0)), f.if_then(f.binary("icmp slt", _time(f), until)):
        f.store_atomic("i32", 0, "@lock", "release")
        f.jump(alone)
    threads = f.min("%threads", MOST_THREADS)
    others = f.binary("sub", threads, 1)
    f.run("@grow", f"i64 {others}")
    if system.is_linux():
        f.run("@keep_off", f"i64 {others}")
    _share(f, threads)
    began = _time(f, _PROCESSOR_TIME)
    by_caller = f.call("i64", "@work", "i64 0")
    finished, ended = _time(f, _PROCESSOR_TIME), _time(f)
    looks = _wait(f)
    is_unhelped = f.binary("icmp eq", by_caller, "%count")
    row = f.select(is_unhelped, f.binary("add", f.load("i64", "@unhelped"), 1), 0)
    f.store("i64", row, "@unhelped")
    in_vain = f.binary("icmp sge", row, _IN_VAIN)
    with f.if_then(f.any_of(in_vain, f.binary("icmp sgt", looks, _LOOKS))):
        now = _time(f)
        expected = f.binary("add", f.binary("sub", finished, began), _LATE)
        is_late = f.binary("icmp sgt", f.binary("sub", now, ended), expected)
        with f.if_then(f.any_of(in_vain, is_late)):
            _suspend_workers(f, now)
    f.store_atomic("i32", 0, "@lock", "release")
    f.end("ret void")
    f.begin(alone)
    f.run("@alone", *_NEST)


_NEST = ("ptr %entry", "ptr %records", "i64 %size", "i64 %count")


def code() -> str:
    """The LLVM code of the pool."""
    nest = ", ".join(_NEST)
    texts = [
        _GLOBALS,
        definitions(
            {
                "internal i64 @now(i32 %clock)": _now,
                "internal i1 @is_left(i64 %ticket, i64 %me) alwaysinline": _is_left,
                "internal i64 @work(i64 %me)": _work,
                "internal ptr @live(ptr %number)": _live,
                "internal i1 @is_ready()": _is_ready,
                "internal void @grow(i64 %wanted)": _grow,
                f"internal void @alone({nest})": _alone,
                f"void @{RUN}({nest}, i64 %threads)": _run_parts,
            }
        ),
    ]
    if system.is_linux():
        texts += [_LINUX, defined("internal void @keep_off(i64 %others)", _exclude_callers_processor)]
    return "\n".join(texts)


@functools.cache
def provide() -> int:
    """Defines the symbol for later linking, and gives its address. For systems with POSIX threads; elsewhere loops
    aren't parallelised."""
    (address,) = link(code(), RUN)
    return address


@functools.cache
def _place() -> Any:
    return ctypes.c_void_p(None)


def place() -> int:
    """The address at which kernels find the pool: null until `provide_to_kernels`."""
    return ctypes.addressof(_place())


def is_awaited() -> bool:
    """Whether kernels run on one thread since the pool hasn't been compiled yet."""
    return _place.cache_info().currsize > 0 and _place().value is None


def provide_to_kernels() -> None:
    """Compiles the pool if it is awaited."""
    if is_awaited():
        _place().value = provide()
