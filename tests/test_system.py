"""What depends on the operating system is chosen in one place, and the choices for each system work on this one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from runtime import errors, system
from runtime.codegen.cache import kernel_cache, private_files
from runtime.codegen.export import c_library
from runtime.codegen.native_runtime import allocator, gemm, thread_pool
from runtime.device import emulate_gpus
from runtime.gpu import cublas, cuda
from runtime.llvm import target
from runtime.ops import blas

ROOT = Path(__file__).resolve().parent.parent
# What asks for the system. `supported.py` comes before all imports, and `version.py` prints what it finds.
ASKING = re.compile(
    r"sys\.platform|os\.(name\b|register_at_fork|sched_getaffinity)|platform\.(machine|system)\(|CDLL\(None\)"
)
MAY_ASK = {"runtime/system.py", "autograph/supported.py", "autograph/commands/version.py"}


def test_one_module_asks() -> None:
    found = {
        str(path.relative_to(ROOT).as_posix())
        for room in ("autograph", "runtime")
        for path in (ROOT / room).rglob("*.py")
        if ASKING.search(path.read_text(encoding="utf-8"))
    }
    assert found == MAY_ASK, "ask runtime/system.py instead"


# A loop with products of matrices, its gradient, and what says which compiler made the kernels.
PROGRAM = """
import numpy as np, autograph as ag
from runtime.codegen.backends import driver
from runtime.engine import wait_for_background

@ag.function
def steps(x, w, n):
    while n > 0:
        x = ag.math.tanh(ag.linalg.matmul(x, w)) + 0.1 * x
        n = ag.numpy_function(lambda count: count - 1, [n], ag.int32)  # what a kernel calls Python for
    return ag.math.reduce_sum(x * x)

x = ag.constant(np.linspace(-1.0, 1.0, 40 * 40, dtype=np.float32).reshape(40, 40))
w = ag.constant(np.linspace(0.5, -0.5, 40 * 40, dtype=np.float32).reshape(40, 40))
for _ in range(30):
    with ag.GradientTape() as tape:
        tape.watch(w)
        y = steps(x, w, ag.constant(5))
    slope = tape.gradient(y, w)
    wait_for_background()
print(sorted({each.compiler for each in driver.records.values()}), float(y), float(ag.math.reduce_sum(slope * slope)))
"""


def run_as(name: str, folder: Path, program: str = PROGRAM) -> str:
    environment = {**os.environ, system.VARIABLE: name, "AUTOGRAPH_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    (folder / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "compiler"), [("linux", "llvm"), ("macos", "llvm"), ("windows", "numba")])
def test_a_program_runs_by_the_choices_of_each(name: str, compiler: str, tmp_path: Path) -> None:
    if not system.has_posix_threads() and compiler != "numba":
        pytest.skip("needs POSIX threads")
    found, y, slope = run_as(name, tmp_path).rsplit(maxsplit=2)
    assert found == f"['{compiler}']"
    expected, expected_slope = _by_numpy()
    np.testing.assert_allclose([float(y), float(slope)], [expected, expected_slope], rtol=1e-3)
    run_as(name, tmp_path)  # from the cache


def _by_numpy() -> tuple[float, float]:
    x = np.linspace(-1.0, 1.0, 1600).reshape(40, 40)
    w = np.linspace(0.5, -0.5, 1600).reshape(40, 40)
    inputs = []
    for _ in range(5):
        inputs.append(x)
        x = np.tanh(x @ w) + 0.1 * x
    slope, total = 2 * x, np.zeros_like(w)
    for each in reversed(inputs):
        inner = slope * (1 - np.tanh(each @ w) ** 2)
        total += each.T @ inner
        slope = inner @ w.T + 0.1 * slope
    return float(np.sum(x * x)), float(np.sum(total * total))


def test_an_unknown_system_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="AUTOGRAPH_SYSTEM='beos': it must be one of linux, macos, windows"):
        run_as("beos", tmp_path, "import autograph")


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "NAME", "windows")
    monkeypatch.setattr(target, "available", lambda: False)


@pytest.fixture
def macos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "NAME", "macos")


def test_names_of_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AUTOGRAPH_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", "local")
    found = {}
    for name in system.NAMES:
        monkeypatch.setattr(system, "NAME", name)
        cache = kernel_cache.cache_dir().as_posix().replace(Path.home().as_posix(), "~")
        found[name] = [cache, system.shared_library("f"), *system.cuda_drivers()[:1], system.cublas_libraries()[0]]
    assert found == {
        "linux": ["~/.cache/autograph-numba", "libf.so", "libcuda.so.1", "libcublas.so.13"],
        "macos": ["~/Library/Caches/autograph-numba", "libf.dylib", "libcuda.so.1", "libcublas.so.13"],
        "windows": ["local/autograph-numba", "f.dll", "nvcuda.dll", "cublas64_13.dll"],
    }


def test_the_gpu_libraries_of_windows(windows: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cuda.cuda_driver, "driver", lambda: None)
    assert cuda.why_none() == "no CUDA driver (nvcuda.dll) was found"
    monkeypatch.setenv("CUDA_PATH", str(tmp_path))
    assert tmp_path / "bin" / "cublas64_12.dll" in list(cublas._files(system.cublas_libraries()))
    asked: list[str] = []
    monkeypatch.setattr(cublas, "_opened", lambda name, mode=0: asked.append(name))
    monkeypatch.delattr(os, "RTLD_NOLOAD", raising=False)
    assert cublas.library.__wrapped__() is None
    assert asked[-1] == "cublas64_11.dll" and not any(".so" in each for each in asked)


def test_what_windows_lacks_is_refused_or_left_out(windows: None) -> None:
    with pytest.raises(errors.UnimplementedError, match="run on POSIX threads, which windows doesn't have"):
        emulate_gpus(1)
    with pytest.raises(errors.UnimplementedError, match=r"doesn't run on windows\. Export an ONNX model"):
        c_library.compile_object("f", [])
    assert "declare" not in gemm.code("float32", 16).partition("define")[0], "there is no pool to call"
    allocator.provide_to_kernels.__wrapped__()  # kernels of numba allocate as NumPy does


def test_macos_has_none_of_the_functions_of_linux(macos: None) -> None:
    assert not re.search("sched_getcpu|affinity", thread_pool.code())
    assert not re.search("malloc_usable_size|madvise", allocator.code())


def test_processes_that_cannot_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork", raising=False)
    system.at_fork(after_in_child=list)  # registers nothing
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert system.usable_cores() == os.cpu_count()


def test_a_file_that_windows_does_not_let_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """While a process reads a file there, another one can't replace it. In the cache, the two are the same."""
    folder = private_files.Folder(tmp_path, None)

    def refuse(*paths: str, **folders: None) -> None:
        raise PermissionError(13, "in use")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(PermissionError):
        folder.write("k", b"code")
    (tmp_path / "k").write_bytes(b"code")
    folder.write("k", b"code")
    assert [each.name for each in tmp_path.iterdir()] == ["k"]


def test_openblas_beside_numpy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On Windows a library doesn't show the functions of those that it is linked with."""

    class Library:
        def __init__(self, file: str) -> None:
            if "openblas" in file:
                self.scipy_openblas_get_num_threads64_ = self.scipy_openblas_set_num_threads64_ = file
            for name in list(vars(self)):
                monkeypatch.setattr(Library, "__getitem__", lambda self, name: getattr(self, name), raising=False)

    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy.libs").mkdir()
    (tmp_path / "numpy.libs" / "libscipy_openblas64_-1.dll").touch()
    monkeypatch.setattr(blas.np, "__file__", str(tmp_path / "numpy" / "__init__.py"))
    monkeypatch.setattr(blas.ctypes, "PyDLL", Library)
    assert blas._setting.__wrapped__() == (str(tmp_path / "numpy.libs" / "libscipy_openblas64_-1.dll"),) * 2
