"""`python -m tests.processors [LEVEL ...] [-- pytest's arguments]`: the tests as other processors of x86-64 run them.

The levels are `sse2`, `avx2` and `avx512`; without one all of them run that this machine has. Each limits our code
(AUTOGRAPH_PROCESSOR), numba's, NumPy's (NPY_DISABLE_CPU_FEATURES) and OpenBLAS's (OPENBLAS_CORETYPE), since results may
differ in their last bits from one to the next. Without arguments for pytest the whole suite runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# level → LLVM's name of the processor, and OpenBLAS's
LEVELS = {
    "sse2": ("x86-64", "Prescott"),
    "avx2": ("x86-64-v3", "Haswell"),
    "avx512": ("x86-64-v4", "SkylakeX"),
}
# What NumPy picks code for when it runs, by the words of its releases, beyond AVX2 and beyond what all builds need.
_BEYOND_AVX2 = {"X86_V4", "AVX512F", "AVX512CD", "AVX512_SKX", "AVX512_CLX", "AVX512_CNL", "AVX512_ICL", "AVX512_SPR"}
_BEYOND_AVX512 = {"AVX512_ICL", "AVX512_SPR", "AVX512_CNL", "AVX512_CLX"}


def environment(level: str, cache: str) -> dict[str, str]:
    """What a process of this level has in its environment. `cache` is a folder for its kernels."""
    import numpy as np

    core = np._core if hasattr(np, "_core") else np.core
    module = core._multiarray_umath
    # A feature that the processor lacks, or that NumPy wasn't built with, can't be named: NumPy would warn.
    there = {name for name in module.__cpu_dispatch__ if module.__cpu_features__.get(name)}
    off = {"sse2": there, "avx2": there & _BEYOND_AVX2, "avx512": there & _BEYOND_AVX512}[level]
    processor, blas = LEVELS[level]
    return {
        **os.environ,
        "AUTOGRAPH_PROCESSOR": processor,
        "AUTOGRAPH_CACHE_DIR": cache,
        "NUMBA_CPU_NAME": processor,
        "NUMBA_CPU_FEATURES": "",
        "NPY_DISABLE_CPU_FEATURES": " ".join(sorted(off)),
        "OPENBLAS_CORETYPE": blas,
    }


def available() -> list[str]:
    """The levels that this machine can run."""
    from runtime.llvm import processor

    needs = {"sse2": "sse2", "avx2": "avx2", "avx512": "avx512f"}
    return [level for level, feature in needs.items() if processor.features().get(feature)]


def main() -> int:
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    levels, rest = arguments[:at], arguments[at + 1 :]
    if unknown := [level for level in levels if level not in LEVELS]:
        print(f"unknown level {unknown[0]!r}: they are {', '.join(LEVELS)}")
        return 2
    failed = []
    for level in levels or available():
        print(f"== {level}", flush=True)
        with tempfile.TemporaryDirectory() as cache:
            command = [sys.executable, "-m", "pytest", "-q", *rest]
            if subprocess.run(command, cwd=ROOT, env=environment(level, cache), check=False).returncode:
                failed.append(level)
    print(f"== {'failed: ' + ', '.join(failed) if failed else 'all good'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
