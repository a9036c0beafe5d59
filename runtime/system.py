"""The operating system: which one this is, and what differs between them. No other module of the project asks.

| | Linux | macOS | Windows |
| --- | --- | --- | --- |
| kernels | our compiler, LLVM's newer linker | the same | numba, LLVM's older linker: that of numba |
| loops on several threads | a pool of POSIX threads | the same | none: NumPy's products have their own |
| C libraries, emulated GPUs | made with the system's threads | the same | refused by an error |
| memory of arrays | kept for the arrays to come | as the C library does it | the same |
| a process that forks | locks and threads start anew in the child | the same | there is no fork |

A system that none of these names are for counts as one with POSIX threads, and with nothing else of Linux.

`AUTOGRAPH_SYSTEM` names another system (`linux`, `macos`, `windows`), whose choices are then made on this one. That is
for tests: `AUTOGRAPH_SYSTEM=windows python -m pytest -p tests.quick`.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIABLE = "AUTOGRAPH_SYSTEM"
NAMES = ("linux", "macos", "windows")
_OWN_NAMES = {"darwin": "macos", "win32": "windows"}  # of the others it is `sys.platform`


def _find() -> str:
    chosen = os.environ.get(VARIABLE)
    if chosen and chosen not in NAMES:
        raise ValueError(f"{VARIABLE}={chosen!r}: it must be one of {', '.join(NAMES)}, or not be set.")
    return chosen or _OWN_NAMES.get(sys.platform, sys.platform)


NAME = _find()
"""The system's name."""


def is_linux() -> bool:
    return NAME == "linux"


def has_posix_threads() -> bool:
    """Whether threads are POSIX threads, and our compiler works: the two go together, since Windows has neither."""
    return NAME != "windows"


def at_fork(**hooks: Callable[[], Any]) -> None:
    """Registers what to call when the process forks (`os.register_at_fork`), where processes can."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    # macOS and Windows have no such sets of cores for a process.
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def c_library() -> Any:
    """The C library in this process, for ctypes; not on Windows, where a process may have several."""
    return ctypes.CDLL(None)


def user_cache_folder() -> Path:
    """The folder for what programs can make again."""
    if NAME == "windows":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if NAME == "macos":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def shared_library(name: str) -> str:
    """The file name of a shared library."""
    return {"macos": f"lib{name}.dylib", "windows": f"{name}.dll"}.get(NAME, f"lib{name}.so")


def cuda_drivers() -> tuple[str, ...]:
    """The names of the library of NVIDIA's driver."""
    return ("nvcuda.dll",) if NAME == "windows" else ("libcuda.so.1", "libcuda.so")


def cublas_libraries() -> tuple[str, ...]:
    """The names of NVIDIA's library of matrix products, that of the newest release first."""
    form = "cublas64_{}.dll" if NAME == "windows" else "libcublas.so.{}"
    return tuple(form.format(version) for version in (13, 12, 11))
