"""What kernels in SPMD form are linked with: memory, and what tells threads apart and has them meet, on GPUs of
NVIDIA's and on threads of this computer.

Arrays that a kernel makes lie in the heap. The first thread alone manages it, and counts the references to each array;
all threads meet in `@allocate`, so that no thread still reads what is given away. Memory is given in four sizes for
each power of two, so that blocks which were freed fit again.
"""

from __future__ import annotations

from runtime.llvm.device_layout import (
    ALLOCATED,
    BARRIER,
    BLOCK_BARRIER,
    BLOCK_NUMBERS,
    BLOCK_TOTAL,
    EMULATED,
    EMULATED_WARP,
    END,
    FREE,
    IN_TILE,
    LACKING,
    OF_LANE,
    OF_WARP,
    THREAD_NUMBERS,
    TILE,
    TURN,
)  # fmt: skip
from runtime.llvm.memory import HEADER

# --- memory ----------------------------------------------------------------------------------------------------------

_MOST = 1 << 46  # bytes: more can't be allocated

MEMORY = f"""
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
  %lists = getelementptr i8, ptr %environment, i64 {FREE}
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
  %lists = getelementptr i8, ptr %environment, i64 {FREE}
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
PTX = f"""
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32) convergent
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32) convergent
declare void @llvm.nvvm.bar.warp.sync(i32) convergent
@environment = internal addrspace(3) global ptr undef
@turn = internal addrspace(3) global i64 undef
@block_total = internal addrspace(3) global i64 undef
@of_warps = internal addrspace(3) global [32 x i64] undef
@tile = internal addrspace(3) global [{TILE} x i64] undef

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
define internal void @gpu_warp_barrier() alwaysinline convergent {{
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void
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
define internal ptr @gpu_place_in_tile(i64 %number) alwaysinline {{
  %place = getelementptr i64, ptr addrspace(3) @tile, i64 %number
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


def host(record: str) -> str:
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
  %first = getelementptr i8, ptr %environment, i64 {EMULATED}
  %offset = mul i64 %block, {BLOCK_NUMBERS}
  %r = getelementptr i8, ptr %first, i64 %offset
  ret ptr %r
}}
define internal ptr @of_thread(i64 %thread) {{
  %blocks = call i64 @gpu_blocks()
  %first = call ptr @of_block(i64 %blocks)
  %offset = mul i64 %thread, {THREAD_NUMBERS}
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
  ret i64 {EMULATED_WARP}
}}
; A warp's number is kept with the thread of the block that has the warp's number.
define internal ptr @gpu_place_of_warp(i64 %warp) {{
  %block = call i64 @gpu_block()
  %size = call i64 @gpu_block_size()
  %first = mul i64 %block, %size
  %thread = add i64 %first, %warp
  %numbers = call ptr @of_thread(i64 %thread)
  %r = getelementptr i8, ptr %numbers, i64 {OF_WARP}
  ret ptr %r
}}
define internal ptr @gpu_place_in_tile(i64 %number) {{
  %numbers = call ptr @in_block(i64 {IN_TILE})
  %r = getelementptr i64, ptr %numbers, i64 %number
  ret ptr %r
}}
define internal ptr @gpu_place_of_block_total() {{
  %r = call ptr @in_block(i64 {BLOCK_TOTAL})
  ret ptr %r
}}
define internal i64 @gpu_turn() {{
  %place = call ptr @in_block(i64 {TURN})
  %r = load i64, ptr %place
  ret i64 %r
}}
define internal void @gpu_end_turn() {{
  %place = call ptr @in_block(i64 {TURN})
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
  %own.lane = urem i64 %place, {EMULATED_WARP}
  %begin = sub i64 %place, %own.lane
  %rest = sub i64 %size, %begin
  %count = call i64 @llvm.umin.i64(i64 %rest, i64 {EMULATED_WARP})
  %leader = sub i64 %thread, %own.lane
  %word = call ptr @of_thread(i64 %leader)
  %numbers = call ptr @of_thread(i64 %thread)
  %mine = getelementptr i8, ptr %numbers, i64 {OF_LANE}
  store i64 %value, ptr %mine
  call void @meet(ptr %word, i64 %count)
  %last = sub i64 %count, 1
  %other = call i64 @llvm.umin.i64(i64 %lane, i64 %last)
  %its.thread = add i64 %leader, %other
  %its.numbers = call ptr @of_thread(i64 %its.thread)
  %its = getelementptr i8, ptr %its.numbers, i64 {OF_LANE}
  %r = load i64, ptr %its
  call void @meet(ptr %word, i64 %count)
  ret i64 %r
}}
define internal void @gpu_warp_barrier() {{
  %none = call i64 @gpu_of_lane_64(i64 0, i64 0)
  ret void
}}
define internal i32 @gpu_of_lane_32(i32 %value, i64 %lane) {{
  %wide = zext i32 %value to i64
  %found = call i64 @gpu_of_lane_64(i64 %wide, i64 %lane)
  %r = trunc i64 %found to i32
  ret i32 %r
}}
define internal void @gpu_block_barrier() {{
  %word = call ptr @in_block(i64 {BLOCK_BARRIER})
  %count = call i64 @gpu_block_size()
  call void @meet(ptr %word, i64 %count)
  ret void
}}
define internal void @gpu_begin(ptr %environment) {{
  ret void
}}
"""
