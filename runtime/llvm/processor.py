"""The processor that code is compiled for: this one, or the part of it that AUTOGRAPH_PROCESSOR names.

The levels of x86-64 are those of its application binary interface: `x86-64` (SSE2), `x86-64-v2` (SSE4.2), `x86-64-v3`
(AVX2, FMA) and `x86-64-v4` (AVX-512). A level shows on one machine what users of other machines get.
"""

from __future__ import annotations

import functools
import os

import llvmlite.binding as llvm

VARIABLE = "AUTOGRAPH_PROCESSOR"
_LEVELS = {
    "x86-64": "64bit cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "cx16 crc32 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}


@functools.cache
def name() -> str:
    """LLVM's name of the processor."""
    return _limit() or llvm.get_host_cpu_name()


@functools.cache
def features() -> dict[str, bool]:
    """Processor features by LLVM's names, and whether this processor has them."""
    found = dict(llvm.get_host_cpu_features())
    limit = _limit()
    if not limit:
        return found
    allowed: set[str] = set()
    for level, names in _LEVELS.items():
        allowed |= set(names.split())
        if level == limit:
            break
    return {feature: there and feature in allowed for feature, there in found.items()}


def flags() -> str:
    """The features as LLVM's target machines take them."""
    return ",".join(f"{'+' if there else '-'}{feature}" for feature, there in sorted(features().items()))


@functools.cache
def has_float16() -> bool:
    """Whether LLVM converts float16 by instructions; else it calls functions that Python's process doesn't have."""
    return llvm.get_process_triple().startswith(("aarch64", "arm64")) or features().get("f16c", False)


def _limit() -> str:
    """The level that the environment names, or ''. Raises ValueError for one that isn't known."""
    level = os.environ.get(VARIABLE, "")
    if level and level not in _LEVELS:
        raise ValueError(f"{VARIABLE}={level!r}: it must be one of {', '.join(_LEVELS)}, or not be set.")
    return level
