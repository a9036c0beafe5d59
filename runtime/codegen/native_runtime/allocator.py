"""A caching allocator: large blocks of memory that were freed are kept for arrays of about the same size.

    void *autograph_take_block(size_t bytes)     as malloc
    void autograph_give_block(void *block)       as free

The C library returns large blocks to the system at once, and middle-sized ones soon, so every new array starts with
pages that the system has to map and clear at the first write: 40 MB in 4 KiB pages take 10 ms, more than most kernels
need for as many elements. Up to `KEPT` bytes are cached here instead; a cached block serves requests of at least four
fifths of its size. There is a row of slots for each power of two: a training step keeps dozens of arrays of a size.
When a freed block finds no slot, its row is emptied, and when there are too many bytes, all of the cache: they hold
sizes that are no longer requested. Fresh blocks are advised to use huge pages (Linux), as NumPy's are.

Blocks are malloc's own: a block from here may be freed by `free`, and the other way round. All functions are
thread-safe: a cached block is taken and put by one atomic exchange.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from typing import Any

from runtime.codegen.native_runtime.jit_module import link
from runtime.llvm import memory

TAKE, GIVE = "autograph_take_block", "autograph_give_block"
LEAST = memory.KEPT  # bytes; smaller blocks are left to malloc
KEPT = 256 << 20
_IN_ROW = 64
_SLOTS = _IN_ROW * (KEPT.bit_length() - LEAST.bit_length() + 1)
_HUGE_PAGES = 4 << 20  # bytes from which on huge pages are requested
_MADV_HUGEPAGE = 14

_PLAIN = f"""
declare ptr @malloc(i64)
declare void @free(ptr)
define ptr @{TAKE}(i64 %bytes) {{
  %block = call ptr @malloc(i64 %bytes)
  ret ptr %block
}}
define void @{GIVE}(ptr %block) {{
  call void @free(ptr %block)
  ret void
}}
"""

_KEEPING = f"""
@slots = internal global [{_SLOTS} x ptr] zeroinitializer
@kept = internal global i64 0

declare ptr @malloc(i64)
declare void @free(ptr)
declare i64 @malloc_usable_size(ptr)
declare i32 @madvise(ptr, i64, i32)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)

; The first slot of the row for blocks of %bytes, which are at least {LEAST}; the last row has all larger ones.
define internal i64 @row(i64 %bytes) {{
  %zeros = call i64 @llvm.ctlz.i64(i64 %bytes, i1 true)
  %power = sub i64 {64 - LEAST.bit_length()}, %zeros
  %first = mul i64 %power, {_IN_ROW}
  %row = call i64 @llvm.umin.i64(i64 %first, i64 {_SLOTS - _IN_ROW})
  ret i64 %row
}}

; Takes a cached block for %bytes, or null. Blocks are larger than what they were requested for, so that they may be in
; the next row.
define internal ptr @find(i64 %bytes) {{
start:
  %quarter = lshr i64 %bytes, 2
  %most = add i64 %bytes, %quarter
  %first = call i64 @row(i64 %bytes)
  %both = add i64 %first, {2 * _IN_ROW}
  %end = call i64 @llvm.umin.i64(i64 %both, i64 {_SLOTS})
  br label %each
each:
  %number = phi i64 [ %first, %start ], [ %next, %following ]
  %slot = getelementptr ptr, ptr @slots, i64 %number
  %seen = load atomic ptr, ptr %slot monotonic, align 8
  %empty = icmp eq ptr %seen, null
  br i1 %empty, label %following, label %take
take:
  %block = atomicrmw xchg ptr %slot, ptr null acq_rel
  %gone = icmp eq ptr %block, null
  br i1 %gone, label %following, label %measure
measure:
  %size = call i64 @malloc_usable_size(ptr %block)
  %enough = icmp uge i64 %size, %bytes
  %little = icmp ule i64 %size, %most
  %fits = and i1 %enough, %little
  br i1 %fits, label %out, label %back
back:
  %exchange = cmpxchg ptr %slot, ptr null, ptr %block acq_rel monotonic
  %put = extractvalue {{ ptr, i1 }} %exchange, 1
  br i1 %put, label %following, label %drop
drop:
  %before = atomicrmw sub ptr @kept, i64 %size monotonic
  call void @free(ptr %block)
  br label %following
following:
  %next = add i64 %number, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %each, label %none
out:
  %rest = atomicrmw sub ptr @kept, i64 %size monotonic
  ret ptr %block
none:
  ret ptr null
}}

; Frees the cached blocks in slots from %first to %end.
define internal void @clear(i64 %first, i64 %end) {{
start:
  br label %each
each:
  %number = phi i64 [ %first, %start ], [ %next, %following ]
  %slot = getelementptr ptr, ptr @slots, i64 %number
  %block = atomicrmw xchg ptr %slot, ptr null acq_rel
  %gone = icmp eq ptr %block, null
  br i1 %gone, label %following, label %drop
drop:
  %size = call i64 @malloc_usable_size(ptr %block)
  %before = atomicrmw sub ptr @kept, i64 %size monotonic
  call void @free(ptr %block)
  br label %following
following:
  %next = add i64 %number, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %each, label %out
out:
  ret void
}}

; Puts a block into the cache. Whether there was room: if not, it makes some.
define internal i1 @keep(ptr %block, i64 %size) {{
start:
  %first = call i64 @row(i64 %size)
  %end = add i64 %first, {_IN_ROW}
  %before = atomicrmw add ptr @kept, i64 %size monotonic
  %after = add i64 %before, %size
  %room = icmp ule i64 %after, {KEPT}
  br i1 %room, label %each, label %many
each:
  %number = phi i64 [ %first, %start ], [ %next, %following ]
  %slot = getelementptr ptr, ptr @slots, i64 %number
  %exchange = cmpxchg ptr %slot, ptr null, ptr %block acq_rel monotonic
  %put = extractvalue {{ ptr, i1 }} %exchange, 1
  br i1 %put, label %out, label %following
following:
  %next = add i64 %number, 1
  %more = icmp ult i64 %next, %end
  br i1 %more, label %each, label %full
full:
  call void @clear(i64 %first, i64 %end)
  br label %none
many:
  call void @clear(i64 0, i64 {_SLOTS})
  br label %none
none:
  %again = atomicrmw sub ptr @kept, i64 %size monotonic
  ret i1 false
out:
  ret i1 true
}}

define noalias ptr @{TAKE}(i64 %bytes) {{
  %large = icmp uge i64 %bytes, {LEAST}
  br i1 %large, label %look, label %plain
plain:
  %small = call ptr @malloc(i64 %bytes)
  ret ptr %small
look:
  %found = call ptr @find(i64 %bytes)
  %none = icmp eq ptr %found, null
  br i1 %none, label %fresh, label %out
fresh:
  %first = call ptr @malloc(i64 %bytes)
  %missing = icmp eq ptr %first, null
  br i1 %missing, label %retry, label %advise
retry:
  call void @clear(i64 0, i64 {_SLOTS})
  %second = call ptr @malloc(i64 %bytes)
  %lost = icmp eq ptr %second, null
  br i1 %lost, label %out, label %advise
advise:
  %block = phi ptr [ %first, %fresh ], [ %second, %retry ]
  %huge = icmp uge i64 %bytes, {_HUGE_PAGES}
  br i1 %huge, label %ask, label %out
ask:
  %place = ptrtoint ptr %block to i64
  %end = add i64 %place, %bytes
  %beyond = add i64 %place, 4095
  %begin = and i64 %beyond, -4096
  %page = inttoptr i64 %begin to ptr
  %length = sub i64 %end, %begin
  %asked = call i32 @madvise(ptr %page, i64 %length, i32 {_MADV_HUGEPAGE})
  br label %out
out:
  %result = phi ptr [ %found, %look ], [ null, %retry ], [ %block, %advise ], [ %block, %ask ]
  ret ptr %result
}}

define void @{GIVE}(ptr %block) {{
  %none = icmp eq ptr %block, null
  br i1 %none, label %out, label %measure
measure:
  %size = call i64 @malloc_usable_size(ptr %block)
  %large = icmp uge i64 %size, {LEAST}
  %possible = icmp ule i64 %size, {KEPT}
  %worthwhile = and i1 %large, %possible
  br i1 %worthwhile, label %keep, label %free
keep:
  %kept = call i1 @keep(ptr %block, i64 %size)
  br i1 %kept, label %out, label %room
room:
  %second = call i1 @keep(ptr %block, i64 %size)
  br i1 %second, label %out, label %free
free:
  call void @free(ptr %block)
  br label %out
out:
  ret void
}}
"""


@functools.cache
def provide() -> tuple[int, int]:
    """Defines the symbols of both functions for later linking; their addresses."""
    take, give = link(_KEEPING if sys.platform == "linux" else _PLAIN, TAKE, GIVE)
    return take, give


@functools.cache
def _table() -> Any:
    """The table through which kernels call both functions: the C library's until `provide_to_kernels` replaces them.
    Blocks are malloc's own, so some may be allocated before that and freed after."""
    library = ctypes.CDLL(None)
    plain = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in ("malloc", "free")]
    return (ctypes.c_void_p * 2)(*plain)


def table() -> int:
    """The address of the table."""
    return ctypes.addressof(_table())


@functools.cache
def provide_to_kernels() -> None:
    """Compiles the functions. Kernels run without them until then, so that no running loop waits for this."""
    _table()[:] = provide()
