"""Code for other processors and systems compiles, uses their vectors, and needs nothing that isn't there."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from runtime import system
from runtime.llvm import target
from tests.llvm.object_files import undefined

ROOT = Path(__file__).resolve().parents[2]
POSIX = set(
    "clock_gettime getpid sched_yield sigfillset pthread_sigmask pthread_create pthread_detach pthread_mutex_init "
    "pthread_mutex_lock pthread_mutex_unlock pthread_cond_init pthread_cond_wait pthread_cond_broadcast".split()
)
STANDARD = {"malloc", "free", "memcpy", "memmove", "memset", "sin", "cos"}
# What LLVM may call beyond what kernels ask for, by system; and what only Linux has.
EXISTING = {
    "linux": STANDARD
    | POSIX
    | {"malloc_usable_size", "madvise", "sched_getcpu", "sched_getaffinity", "pthread_setaffinity_np", "sincos"},
    "macos": STANDARD | POSIX | {"bzero", "__bzero", "memset_pattern16", "__sincos_stret"},
    "windows": STANDARD | {"__chkstk", "_fltused"},
}


class Machine(NamedTuple):
    system: str
    triple: str
    processor: str
    features: str


MACHINES = {
    "linux-arm64": Machine("linux", "aarch64-unknown-linux-gnu", "generic", "+fp-armv8,+neon"),
    "linux-arm64-sve": Machine("linux", "aarch64-unknown-linux-gnu", "neoverse-v1", "+fp-armv8,+neon,+sve"),
    "linux-x86-64": Machine("linux", "x86_64-unknown-linux-gnu", "x86-64", "+sse2"),
    "macos-arm64": Machine("macos", "arm64-apple-darwin", "apple-m1", "+neon"),
    "macos-x86-64": Machine("macos", "x86_64-apple-darwin", "haswell", "+avx2,+fma,+f16c"),
    "windows-x86-64": Machine("windows", "x86_64-pc-windows-msvc", "x86-64-v4", "+avx2,+fma,+f16c,+avx512f"),
}
KERNELS = ("elementwise", "loop", "newton", "product", "convolution")


@pytest.fixture(scope="module", params=MACHINES)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Machine, Path]:
    """A machine, and the folder with code for it."""
    machine = MACHINES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    environment = {**os.environ, system.VARIABLE: machine.system, "AUTOGRAPH_CACHE_DIR": str(folder / "cache")}
    environment.pop("AUTOGRAPH_PROCESSOR", None)
    done = subprocess.run(
        [sys.executable, "-m", "tests.llvm.other_machine", *machine[1:], str(folder)],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr
    return machine, folder


def test_symbols_from_elsewhere(made: tuple[Machine, Path]) -> None:
    machine, folder = made
    objects = sorted(folder.glob("*.o"))
    assert len(objects) >= 10
    own = {path.stem for path in objects} | {"autograph_blocks", "autograph_pool", "autograph_run_parts"}
    for path in objects:
        names = undefined(path.read_bytes()) - own - target._addresses().keys() - EXISTING[machine.system]
        assert [name for name in names if not hasattr(ctypes.pythonapi, name)] == [], path.name


def test_vectors(made: tuple[Machine, Path]) -> None:
    """The innermost loops of products, and arrays computed element by element, fill the machine's vectors."""
    machine, folder = made

    def counted(stem: str, pattern: str) -> int:
        return len(re.findall(pattern, (folder / f"{stem}.s").read_text()))

    products = ("autograph_product_float32", "autograph_indirect_product_float32")
    if "arm64" in machine.triple or "aarch64" in machine.triple:
        # Multiplied by one element of a vector and added, in 8 rows of two vectors.
        for stem in products:
            assert counted(stem, r"fmla(\.4s)?\tv\d+(\.4s)?, v\d+(\.4s)?, v\d+(\.s)?\[0\]") >= 16, stem
        vectors = r"\bz\d+\.s" if "sve" in machine.features else r"\bfmul(\tv\d+)?\.4s"
        assert counted("elementwise", vectors) > 0
        assert counted("loop", r"\bfmul(\tv\d+)?\.4s") > 4  # exp and sin have a variant of vectors of this length
        assert counted("newton", r"\bfdiv(\tv\d+)?\.4s") > 0
    else:
        register = "zmm" if "avx512f" in machine.features else "ymm" if "avx2" in machine.features else "xmm"
        multiplied = "mulps" if register == "xmm" else r"vfmadd231ps"
        for stem in products:
            assert counted(stem, rf"{multiplied}\t.*%{register}") >= 12, stem
        # For loops, LLVM prefers vectors of half the length to those of AVX-512.
        assert counted("elementwise", rf"(mul|fmadd213)ps\t.*%{register.replace('z', '[yz]')}") > 0


def test_waiting_threads(made: tuple[Machine, Path]) -> None:
    """A thread of the pool that looks for work in vain tells the processor."""
    machine, folder = made
    if machine.system != "windows":
        pause = r"\tyield|\thint\t#1" if machine.triple.startswith(("aarch64", "arm64")) else r"\tpause|rep\s+nop"
        assert re.search(pause, (folder / "thread_pool.s").read_text())
    else:
        assert not (folder / "thread_pool.s").exists()


def test_the_reader_of_object_files_finds_what_this_machine_needs(tmp_path: Path) -> None:
    code = target.machine_code("declare void @elsewhere()\ndefine void @f() { call void @elsewhere() ret void }", ())
    assert undefined(code) - {"_fltused"} == {"elsewhere"}
