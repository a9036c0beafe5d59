"""The kernel cache across processes, and the end of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import numpy as np
import runtime.ops.operators
from runtime.engine import Executable, kernel_counters
from tests.engine.test_executable import F32, I32, build, logistic

run = Executable(build(logistic, [F32, I32]), jit_compile=True)
print(float(run([np.float32(0.3), np.int32(50)])[0]), kernel_counters().compiled, kernel_counters().loaded)
"""


def run(program: str, cache: Path, timeout: float = 120) -> str:
    environment = {**os.environ, "AUTOGRAPH_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that one process has filled."""
    cache = tmp_path_factory.mktemp("cache")
    assert run(PROGRAM, cache).split()[1:] == ["1", "0"]
    return cache


def test_a_second_process_compiles_nothing(filled: Path) -> None:
    assert run(PROGRAM, filled).split()[1:] == ["0", "1"]


def test_kernels_are_readable_files(filled: Path) -> None:
    (file,) = (filled / "kernels").glob("k_*.py")
    assert "def kernel(x0, x1):" in file.read_text()
    assert not list((filled / "kernels").glob(".*")), "no temporary files stay behind"


@pytest.mark.parametrize("suffix", ["py", "nbi", "nbc", "sum"])
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
def test_damaged_entries_are_built_again(filled: Path, tmp_path: Path, suffix: str, damage: str) -> None:
    import shutil

    cache = tmp_path / "cache"
    shutil.copytree(filled, cache)
    (file,) = (cache / "kernels").rglob(f"k_*.{suffix}")
    content = file.read_bytes()
    if damage == "remove":
        file.unlink()
    elif damage == "cut":
        file.write_bytes(content[: len(content) // 2])
    else:
        middle = len(content) // 2
        file.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    expected = run(PROGRAM, filled).split()[0]
    assert run(PROGRAM, cache).split()[0] == expected
    assert run(PROGRAM, cache).split() == [expected, "0", "1"]


def test_a_folder_that_can_not_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file, not a folder")
    assert run(PROGRAM, blocked).split()[1:] == ["1", "0"]


def test_importing_does_not_load_numba(tmp_path: Path) -> None:
    program = "import runtime.engine, runtime.codegen.lower, sys; print('numba' in sys.modules)"
    assert run(program, tmp_path) == "False"


def test_a_process_ends_while_a_kernel_is_compiled(tmp_path: Path) -> None:
    program = """
import time
import numpy as np
import runtime.ops.api
from runtime.engine import Executable
from runtime.ops.dispatch import call
from tests.codegen.compare import build, typed
from runtime.dtypes import float64

def long(x):
    for _ in range(300):
        x = call("sin", x) + 1.0
    return x

run = Executable(build(long, [typed(float64, None)]))
run([np.arange(3.0)])
time.sleep(DELAY)
"""
    for delay in ("0", "0.7", "1.5", "2.5"):
        run(program.replace("DELAY", delay), tmp_path, timeout=60)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_compiles_on_its_own(tmp_path: Path) -> None:
    program = """
import os, sys, time
import numpy as np
import runtime.ops.api
from runtime.engine import Executable, wait_for_background
from runtime.ops.dispatch import call
from tests.codegen.compare import build, typed
from runtime.dtypes import float64

def program(factor):
    return Executable(build(lambda x: call("exp", x * factor) + x, [typed(float64, None)]))

first, second = program(0.5), program(0.25)
x = np.arange(3.0)
first([x])          # the parent's compiler starts
time.sleep(0.5)
child = os.fork()
second([x])
assert wait_for_background(100)
assert second.is_native
np.testing.assert_allclose(second([x])[0], np.exp(x * 0.25) + x)
sys.stdout.flush()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("both")
"""
    assert run(program, tmp_path) == "both"
