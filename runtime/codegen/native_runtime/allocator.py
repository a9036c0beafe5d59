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
import mmap
from typing import Any

from runtime import system
from runtime.codegen.native_runtime.jit_module import link
from runtime.llvm import memory, target
from runtime.llvm.function_builder import FunctionBuilder, definitions

TAKE, GIVE = "autograph_take_block", "autograph_give_block"
LEAST = memory.KEPT  # bytes; smaller blocks are left to malloc
KEPT = 256 << 20
_IN_ROW = 64
_SLOTS = _IN_ROW * (KEPT.bit_length() - LEAST.bit_length() + 1)
_HUGE_PAGES = 4 << 20  # bytes from which on huge pages are requested
_MADV_HUGEPAGE = 14

_DECLARATIONS = """
declare ptr @malloc(i64)
declare void @free(ptr)
"""


def _plain() -> str:
    """Both functions, where nothing is cached."""
    return "\n".join([
        _DECLARATIONS,
        definitions({
            f"ptr @{TAKE}(i64 %bytes)": lambda f: f.call("ptr", "@malloc", "i64 %bytes"),
            f"void @{GIVE}(ptr %block)": lambda f: f.run("@free", "ptr %block"),
        }),
    ])  # fmt: skip


def _count(f: FunctionBuilder, step: str, size: str) -> str:
    """Adds to the number of cached bytes, or takes away from it; gives what it was."""
    return f.update(step, "i64", "@kept", size)


def _slot(f: FunctionBuilder, number: str) -> str:
    return f.at("@slots", number, "ptr")


def _emptied(f: FunctionBuilder, slot: str) -> str:
    """The block of a slot, which is empty then; null if it was empty."""
    return f.update("xchg", "ptr", slot, "null", "acq_rel")


def _filled(f: FunctionBuilder, slot: str, block: str) -> str:
    """Puts a block into a slot if that is empty; whether it was."""
    return f.replace("ptr", slot, "null", block, "acq_rel monotonic")


def _usable_size(f: FunctionBuilder, block: str) -> str:
    return f.call("i64", "@malloc_usable_size", f"ptr {block}")


def _row(f: FunctionBuilder) -> str:
    """The first slot of the row for blocks of `%bytes`, at least `LEAST`; the last row has all larger ones."""
    zeros = f.leading_zeros("%bytes")
    first = f.binary("mul", f.binary("sub", str(64 - LEAST.bit_length()), zeros), _IN_ROW)
    return f.min(first, _SLOTS - _IN_ROW)


def _find(f: FunctionBuilder) -> str:
    """Takes a cached block for `%bytes`, or null. Blocks are larger than what they were requested for, so that they may
    be in the next row."""
    most = f.binary("add", "%bytes", f.binary("lshr", "%bytes", 2))
    first = f.call("i64", "@row", "i64 %bytes")
    end = f.min(f.binary("add", first, 2 * _IN_ROW), _SLOTS)
    with f.loop(first, end) as loop:
        slot = _slot(f, loop.index)
        with f.if_then(f.negated(f.is_null(f.load_atomic("ptr", slot)))):
            block = _emptied(f, slot)
            with f.if_then(f.negated(f.is_null(block))):
                size = _usable_size(f, block)
                fits = f.all_of(f.binary("icmp uge", size, "%bytes"), f.binary("icmp ule", size, most))
                with f.if_then(fits):
                    _count(f, "sub", size)
                    f.end(f"ret ptr {block}")
                with f.if_then(f.negated(_filled(f, slot, block))):
                    _free(f, block, size)
    return "null"


def _free(f: FunctionBuilder, block: str, size: str) -> None:
    """Frees a block that was cached."""
    _count(f, "sub", size)
    f.run("@free", f"ptr {block}")


def _clear(f: FunctionBuilder) -> None:
    """Frees the cached blocks in slots from `%first` to `%end`."""
    with f.loop("%first", "%end") as loop:
        block = _emptied(f, _slot(f, loop.index))
        with f.if_then(f.negated(f.is_null(block))):
            _free(f, block, _usable_size(f, block))


def _keep(f: FunctionBuilder) -> str:
    """Caches `%block`. Whether there was room: if not, it makes some."""
    first = f.call("i64", "@row", "i64 %size")
    end = f.binary("add", first, _IN_ROW)
    after = f.binary("add", _count(f, "add", "%size"), "%size")
    has_room = f.binary("icmp ule", after, KEPT)
    with f.if_then(has_room), f.loop(first, end) as loop:
        f.leave_if(_filled(f, _slot(f, loop.index), "%block"), "i1 true")
    # Without room in the row the row is emptied, and with too many bytes all of the cache.
    f.run("@clear", f"i64 {f.select(has_room, first, 0)}", f"i64 {f.select(has_room, end, _SLOTS)}")
    _count(f, "sub", "%size")
    return "false"


def _take(f: FunctionBuilder) -> str:
    with f.if_then(f.binary("icmp ult", "%bytes", LEAST)):
        f.end(f"ret ptr {f.call('ptr', '@malloc', 'i64 %bytes')}")
    found = f.call("ptr", "@find", "i64 %bytes")
    f.leave_if(f.negated(f.is_null(found)), f"ptr {found}")
    first = f.call("ptr", "@malloc", "i64 %bytes")

    def retried() -> str:
        f.run("@clear", "i64 0", f"i64 {_SLOTS}")
        return f.call("ptr", "@malloc", "i64 %bytes")

    block = f.either(f.is_null(first), "ptr", retried, lambda: first)
    is_huge = f.all_of(f.negated(f.is_null(block)), f.binary("icmp uge", "%bytes", _HUGE_PAGES))
    with f.if_then(is_huge):
        start = f.convert("ptrtoint", "ptr", block, "i64")
        page = f.binary("and", f.binary("add", start, mmap.PAGESIZE - 1), -mmap.PAGESIZE)
        length = f.binary("sub", f.binary("add", start, "%bytes"), page)
        place = f.convert("inttoptr", "i64", page, "ptr")
        f.call("i32", "@madvise", f"ptr {place}", f"i64 {length}", f"i32 {_MADV_HUGEPAGE}")
    return block


def _give(f: FunctionBuilder) -> None:
    f.leave_if(f.is_null("%block"), "void")
    size = _usable_size(f, "%block")
    is_worthwhile = f.all_of(f.binary("icmp uge", size, LEAST), f.binary("icmp ule", size, KEPT))
    with f.if_then(is_worthwhile):
        for _ in range(2):  # the first try may make room
            f.leave_if(f.call("i1", "@keep", "ptr %block", f"i64 {size}"), "void")
    f.run("@free", "ptr %block")


def _keeping() -> str:
    """Both functions, with the cache."""
    return "\n".join([
        _DECLARATIONS,
        f"""
@slots = internal global [{_SLOTS} x ptr] zeroinitializer
@kept = internal global i64 0
declare i64 @malloc_usable_size(ptr)
declare i32 @madvise(ptr, i64, i32)
""",
        definitions({
            "internal i64 @row(i64 %bytes)": _row,
            "internal ptr @find(i64 %bytes)": _find,
            "internal void @clear(i64 %first, i64 %end)": _clear,
            "internal i1 @keep(ptr %block, i64 %size)": _keep,
            f"noalias ptr @{TAKE}(i64 %bytes)": _take,
            f"void @{GIVE}(ptr %block)": _give,
        }),
    ])  # fmt: skip


def code() -> str:
    """The LLVM code of both functions."""
    return _keeping() if system.is_linux() else _plain()


@functools.cache
def provide() -> tuple[int, int]:
    """Defines the symbols of both functions for later linking; their addresses."""
    take, give = link(code(), TAKE, GIVE)
    return take, give


@functools.cache
def _table() -> Any:
    """The table through which kernels call both functions: the C library's until `provide_to_kernels` replaces them.
    Blocks are malloc's own, so some may be allocated before that and freed after."""
    plain = [ctypes.cast(getattr(system.c_library(), name), ctypes.c_void_p).value for name in ("malloc", "free")]
    return (ctypes.c_void_p * 2)(*plain)


def table() -> int:
    """The address of the table."""
    return ctypes.addressof(_table())


@functools.cache
def provide_to_kernels() -> None:
    """Compiles the functions. Kernels run without them until then, so that no running loop waits for this; those that
    numba compiles always do."""
    if target.available():
        _table()[:] = provide()
