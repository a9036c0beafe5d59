"""The layout of the memory that the threads of a launch share.

A launch has an environment in the device's memory, of `environment_size(...)` bytes. Its host clears the first bytes
(`head_size`), except for three numbers:

    TOP, END        the first free byte of the heap, and the end of it
    FIRST_FAILURE   the first trip of a shared loop that failed; `NO_FAILURE` at the start

The host writes 1 to STOP to end a running kernel.
"""

from __future__ import annotations

NO_FAILURE = (1 << 63) - 1

# Offsets in bytes from the environment's start.
TOP, END, SHORTFALL, ALLOCATED, BARRIER, FIRST_FAILURE, STOP, STOPPED = range(0, 64, 8)
FREE = 64  # lists of free blocks of the heap
HEAP_HEAD = FREE + 8 * 256
MOST_BLOCKS = 1024
DETAILS = HEAP_HEAD
MOST_DETAILS = 16  # the most integers that accompany a status
BROADCAST = DETAILS + 8 * (1 + MOST_DETAILS)
MOST_BROADCAST = 64  # the most numbers that the first thread broadcasts at a time
# A number for each block, twice: those of one exchange are still read when those of the next are written.
BLOCK_PARTIALS = BROADCAST + 8 * MOST_BROADCAST
# For each column that threads share, the partial results of the blocks and the total.
COLUMN_PARTIALS = BLOCK_PARTIALS + 16 * MOST_BLOCKS
COLUMN_NUMBERS = 1 << 17
# For the emulator: memory for each block and each thread.
EMULATED = COLUMN_PARTIALS
BLOCK_BARRIER, BUFFER_INDEX, BLOCK_TOTAL, IN_TILE = range(0, 32, 8)
TILE = 2080  # numbers of a block for parts of matrices
BLOCK_NUMBERS = IN_TILE + 8 * TILE
WARP_BARRIER, OF_LANE, OF_WARP, THREAD_NUMBERS = range(0, 32, 8)
COLUMN_PARTS = 16  # bytes for columns, of each thread
EMULATED_WARP = 2  # threads


def head_size(emulated: bool, makes_arrays: bool, blocks: int = 0, threads: int = 0) -> int:
    """Bytes of the environment that its host writes before a launch."""
    if emulated:
        return environment_size(blocks, threads)
    return HEAP_HEAD if makes_arrays else FREE


def environment_size(blocks: int = 0, threads: int = 0) -> int:
    """Bytes of the environment of a launch. blocks, threads: of an emulated one."""
    if not threads:
        return COLUMN_PARTIALS + 8 * COLUMN_NUMBERS
    return EMULATED + blocks * BLOCK_NUMBERS + threads * (THREAD_NUMBERS + COLUMN_PARTS)
