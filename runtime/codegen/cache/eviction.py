"""Eviction from the kernel cache: its size limit, and what `autograph cache` shows and removes.

A process that writes kernels measures the folder, at its first one and whenever it has written a hundredth of the
limit. Where the folder exceeds `AUTOGRAPH_CACHE_SIZE` (bytes, or with the suffix K, M or G; 512M by default), it
removes the least recently used kernels down to 90% of the limit. Removing a file is atomic: a process that has it open
reads on, one that misses it compiles.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from pathlib import Path

from runtime.codegen.cache import private_files
from runtime.codegen.cache.kernel_cache import FORMAT, KERNELS, cache_dir, kernel_folder
from runtime.dataclass import dataclass

DEFAULT_BOUND = 512 << 20
_LEFT = 0.9  # of the limit, after an eviction
_UNSEEN = 0.01  # of the limit: what a process writes between two looks at all files
_ABANDONED = 3600.0  # seconds after which a temporary file belongs to a process that was killed
_OURS = re.compile(r"\.?[a-z]+_[0-9a-f]{24}\.")
_KERNEL = re.compile(r"\.?(k_[0-9a-f]+)\.")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass
class Entry:
    """The files of one kernel, their size in bytes, and when it was used last (seconds since the epoch)."""

    files: list[str]
    size: int = 0
    used: float = 0.0


def bound() -> int:
    """The size limit in bytes. Raises ValueError if AUTOGRAPH_CACHE_SIZE isn't a size."""
    text = os.environ.get("AUTOGRAPH_CACHE_SIZE", "").strip()
    if not text:
        return DEFAULT_BOUND
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?)(?:i?B)?", text, re.IGNORECASE)
    if found is None:
        raise ValueError(f"AUTOGRAPH_CACHE_SIZE must be a number of bytes, or one like 200M or 2G, got {text!r}")
    return int(float(found[1]) * _UNITS[found[2].upper()])


def entries() -> dict[str, Entry]:
    """The kernels on disk by name, and other files (temporary ones, code shared by kernels) by their file names. Empty
    if there is no folder, or it isn't trusted."""
    try:
        with private_files.folder(cache_dir(), KERNELS) as folder:
            return _entries(folder)
    except OSError:
        return {}


def _entries(folder: private_files.Folder) -> dict[str, Entry]:
    found: dict[str, Entry] = {}
    for name in os.listdir(folder.path if folder.handle is None else folder.handle):
        if not _OURS.match(name):
            continue
        try:
            status = folder.status(name)
        except OSError:
            continue  # another process has removed it
        kernel = None if name.startswith(".") else _KERNEL.match(name)
        entry = found.setdefault(kernel[1] if kernel else name, Entry([]))
        entry.files.append(name)
        entry.size += status.st_size
        entry.used = max(entry.used, status.st_mtime)
    return found


_written: dict[Path, int] = {}  # bytes in a folder that this process has written since its last look at all files


def make_room(keep: str, written: int | None = None) -> int:
    """Evicts kernels above the limit; the number of bytes freed.

    keep: the kernel that has just been written; written: its bytes. Only where they are given, what the process wrote
    before may be little enough to do nothing yet.
    """
    try:
        most = bound()
    except ValueError:
        most = DEFAULT_BOUND  # changed since a call checked it, and a background thread can't raise
    place = kernel_folder()
    if written is not None and place in _written:
        _written[place] += written
        if _written[place] <= most * _UNSEEN:
            return 0
    _written[place] = 0
    try:
        with private_files.folder(cache_dir(), KERNELS) as folder:
            return _made_room(folder, most, keep)
    except OSError:
        return 0  # no folder, or not a trusted one


def _made_room(folder: private_files.Folder, most: int, keep: str) -> int:
    found = _entries(folder)
    total = sum(entry.size for entry in found.values())
    removed = 0
    now = time.time()
    for name, entry in found.items():
        if name.startswith(".") and now - entry.used > _ABANDONED:
            removed += _remove(folder, entry)
    if total - removed <= most:
        return removed
    for name, entry in sorted(found.items(), key=lambda item: item[1].used):
        if total - removed <= most * _LEFT:
            break
        if name != keep and not name.startswith("."):
            removed += _remove(folder, entry)
    return removed


def _remove(folder: private_files.Folder, entry: Entry) -> int:
    gone = 0
    # The code first: a text without code is compiled again, code without text would be useless.
    for name in sorted(entry.files, key=lambda each: not each.endswith(".code")):
        with contextlib.suppress(OSError):
            size = folder.status(name).st_size
            folder.remove(name)
            gone += size
    return gone


def clear() -> tuple[int, int, list[str]]:
    """Removes all kernels: their number and bytes, and what couldn't be removed (path and reason)."""
    kernels = size = 0
    failed: list[str] = []
    try:
        with private_files.folder(cache_dir(), KERNELS) as folder:
            for name, entry in _entries(folder).items():
                whole = True
                for file in entry.files:
                    try:
                        bytes_here = folder.status(file).st_size
                        folder.remove(file)
                        size += bytes_here
                    except FileNotFoundError:
                        continue
                    except OSError as error:
                        failed.append(f"{folder.path / file}: {error.strerror}")
                        whole = False
                kernels += whole and name.startswith("k_")
    except private_files.Untrusted as error:
        return 0, 0, [f"{error.path}: {error.why}"]
    except OSError:
        return 0, 0, []  # there is no folder
    for path in (kernel_folder(), cache_dir()):
        with contextlib.suppress(OSError):  # not empty
            path.rmdir()
    return kernels, size, failed


def versions() -> str:
    """The versions and the processor that kernels of this process are compiled for."""
    import llvmlite
    import numpy

    from runtime.llvm import processor

    python = ".".join(map(str, sys.version_info[:2]))
    return (
        f"cache format {FORMAT}, llvmlite {llvmlite.__version__}, numpy {numpy.__version__}, Python {python}, "
        f"processor {processor.name()}"
    )
