"""`autograph cache`: where compiled kernels lie and what they take, and their removal."""

from __future__ import annotations

import sys
from typing import Any

from autograph.commands.files import UsageError
from runtime.codegen.cache import eviction
from runtime.codegen.cache.kernel_cache import cache_dir, why_unusable


def run(options: Any) -> int:
    """Prints what there is or what was removed; exit code 1 where something could not be removed. Raises UsageError."""
    return _clear() if options.action == "clear" else _info()


def _info() -> int:
    for name, value in facts():
        print(f"{name:9}  {value}")
    return 0


def facts() -> list[tuple[str, str]]:
    """What there is to say of the folder, each with its name. Raises UsageError for a bound that is no size."""
    try:
        bound = eviction.bound()
    except ValueError as error:
        raise UsageError(str(error)) from None
    found = eviction.entries()
    kernels = [entry for name, entry in found.items() if name.startswith("k_")]
    size = sum(entry.size for entry in found.values())
    ready = sum(any(name.endswith(".code") for name in entry.files) for entry in kernels)
    problem = why_unusable()
    return [
        ("folder", f"{cache_dir()}{f' ({problem})' if problem else ''}"),
        ("kernels", f"{len(kernels)} ({ready} with compiled code)"),
        ("size", f"{size} bytes ({_mebibytes(size)} of {_mebibytes(bound)}, AUTOGRAPH_CACHE_SIZE)"),
        ("versions", eviction.versions()),
    ]


def _clear() -> int:
    kernels, size, failed = eviction.clear()
    print(f"removed {kernels} kernel{'' if kernels == 1 else 's'}, {size} bytes, from {cache_dir()}")
    for line in failed:
        print(f"autograph: cannot remove {line}", file=sys.stderr)
    return int(bool(failed))


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:.1f} MiB"
