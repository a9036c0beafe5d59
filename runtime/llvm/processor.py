"""The processor that code is compiled for: this one, or the part of it that AUTOGRAPH_PROCESSOR names.

The levels of x86-64 are those of its application binary interface: `x86-64` (SSE2), `x86-64-v2` (SSE4.2), `x86-64-v3`
(AVX2, FMA) and `x86-64-v4` (AVX-512). A level shows on one machine what users of other machines get.
"""

from __future__ import annotations

import functools
import os

import llvmlite.binding as llvm

VARIABLE = "AUTOGRAPH_PROCESSOR"
_FAMILIES = {"x86_64": "x86-64", "aarch64": "arm64", "arm64": "arm64"}
_LEVELS = {
    "x86-64": "64bit cmov cx8 fxsr mmx sse sse2",
    "x86-64-v2": "cx16 crc32 popcnt sahf sse3 sse4.1 sse4.2 ssse3",
    "x86-64-v3": "avx avx2 bmi bmi2 f16c fma lzcnt movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}


@functools.cache
def triple() -> str:
    """LLVM's name of the kind of machine that code is for: processor, vendor, operating system."""
    return llvm.get_process_triple()


@functools.cache
def family() -> str:
    """What its processor is called in this project: x86-64, arm64, or LLVM's own name of another one."""
    first = triple().partition("-")[0]
    return _FAMILIES.get(first, first)


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
def vector_bits() -> int:
    """The length of the longest vectors that code is made for; 128 bits are SSE2's and NEON's."""
    found = features()
    return 512 if found.get("avx512f") else 256 if found.get("avx2") else 128


@functools.cache
def has_float16() -> bool:
    """Whether LLVM converts float16 by instructions; else it calls functions that Python's process doesn't have."""
    return family() == "arm64" or features().get("f16c", False)


def _limit() -> str:
    """The level that the environment names, or ''. Raises ValueError for one that isn't known, or isn't of this kind
    of processor."""
    level = os.environ.get(VARIABLE, "")
    if level and level not in _LEVELS:
        raise ValueError(f"{VARIABLE}={level!r}: it must be one of {', '.join(_LEVELS)}, or not be set.")
    if level and family() != "x86-64":
        raise ValueError(f"{VARIABLE}={level!r} is a level of x86-64, and this is {family()}: it must not be set.")
    return level
