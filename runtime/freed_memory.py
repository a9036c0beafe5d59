"""Freed memory is kept for the arrays to come.

The C library of Linux (glibc) maps each block of 128 KiB or more anew, and returns what is free at the end of its heap
to the system. So an interpreted step gets most of its arrays in pages that the system has to map and clear at the first
write: 1,900 pages and a third of the time of a small transformer's training step. Once a program frees a large mapped
block, glibc itself takes up to 32 MiB from the heap; it is told to do so from the start.
"""

from __future__ import annotations

import functools
import os

from runtime import system

# Parameters of `mallopt`, from <malloc.h>.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MAPPED = 32 << 20  # bytes: larger blocks are mapped; glibc accepts no more than this
_KEPT = 256 << 20  # bytes that may stay free at the end of the heap
# Where the environment says how glibc allocates, that remains.
_SETTINGS = ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")


@functools.cache
def keep() -> bool:
    """Tells the C library, once per process. Returns whether it can be told and the environment leaves it to us."""
    if not system.is_linux() or any(name in os.environ for name in _SETTINGS):
        return False
    library = system.c_library()
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    return bool(library.mallopt(_M_MMAP_THRESHOLD, _MAPPED) and library.mallopt(_M_TRIM_THRESHOLD, _KEPT))
