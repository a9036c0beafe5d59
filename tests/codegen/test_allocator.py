"""Large blocks of memory are used again; all that wait together are bounded, and no two callers share one."""

from __future__ import annotations

import ctypes
import mmap
import random
import threading

import pytest

from runtime import system
from runtime.codegen.native_runtime import allocator

MIB = 1 << 20
keeping = pytest.mark.skipif(not system.is_linux(), reason="blocks are kept on Linux only")


@pytest.fixture
def memory():
    take, give = allocator.provide()
    yield ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(take), ctypes.CFUNCTYPE(None, ctypes.c_void_p)(give)


def waiting():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * mmap.PAGESIZE


@keeping
def test_a_block_is_used_again(memory):
    take, give = memory
    first = take(64 * MIB)
    ctypes.memset(first, 1, 64 * MIB)
    give(first)
    assert take(60 * MIB) == first  # a little smaller
    other = take(60 * MIB)
    assert other != first
    give(first)
    give(other)
    few = take(2 * MIB)
    assert few not in (first, other)  # too large for this
    give(few)


@keeping
def test_what_waits_is_bounded(memory):
    take, give = memory
    before = waiting()
    taken = [take(100 * MIB) for _ in range(6)]
    for block in taken:
        ctypes.memset(block, 1, 100 * MIB)
    for block in taken:
        give(block)
    assert waiting() - before <= allocator.KEPT + 16 * MIB
    # Sizes that nobody asks for any more make room.
    small = [take(30 * MIB) for _ in range(9)]
    for block in small:
        give(block)
    assert take(30 * MIB) in small


def test_what_cannot_be(memory):
    take, give = memory
    assert take(1 << 60) is None
    give(None)
    block = take(0)
    give(block)
    give(take(3 * allocator.KEPT))


def test_no_two_callers_share_a_block(memory):
    take, give = memory
    wrong = []

    def work(number):
        source = random.Random(number)
        for turn in range(300):
            size = source.choice([1000, MIB, MIB + 4096, 3 * MIB, 5 * MIB])
            block = take(size)
            mark = number * 1000 + turn
            for place in (0, size - 8):
                ctypes.c_int64.from_address(block + place).value = mark
            threading.Event().wait(source.random() * 1e-4)
            if any(ctypes.c_int64.from_address(block + place).value != mark for place in (0, size - 8)):
                wrong.append(mark)
            give(block)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@keeping
def test_blocks_of_a_training_step_are_all_kept(memory):
    """A step's many arrays of a size, which are freed together, serve the next step."""
    take, give = memory
    size = 256 << 10
    first = [take(size) for _ in range(40)]
    for block in first:
        give(block)
    second = [take(size) for _ in range(40)]
    assert set(first) == set(second)
    for block in second:
        give(block)
