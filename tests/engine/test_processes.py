"""The engine and processes: their end, forks, and those that multiprocessing starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engine.test_kernel_cache import ROOT, run


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
        run(program.replace("DELAY", delay), tmp_path)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_compiles_on_its_own(tmp_path: Path) -> None:
    program = """
import os, sys, time, warnings
warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # from 3.12 on, of any fork beside threads
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


POOL = """
import multiprocessing, sys
import autograph as ag

@ag.function
def f(x, n):
    for _ in ag.range(n):
        x = x * 0.5 + 1.0
    return x

@ag.function(jit_compile=True)
def g(x):
    return x * 3.0

def work(value):
    return float(f(ag.constant(value), ag.constant(40))), float(g(ag.constant(value)))

if __name__ == "__main__":
    expected = [work(float(v)) for v in range(4)]  # the parent's compiler is at work while children are made
    with multiprocessing.get_context(sys.argv[1] if len(sys.argv) > 1 else "METHOD").Pool(2) as pool:
        found = pool.map(work, [float(v) for v in range(4)])
    print(all(abs(a - b) < 1e-5 for one, other in zip(found, expected) for a, b in zip(one, other)))
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_children_of_multiprocessing(tmp_path: Path, method: str) -> None:
    import multiprocessing
    import subprocess
    import sys

    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    program = tmp_path / "program.py"
    program.write_text(POOL)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", str(program), method], cwd=tmp_path, timeout=200,
        env={**os.environ, "AUTOGRAPH_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}, text=True,
        capture_output=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


ENDS = """
import multiprocessing, os, sys, warnings
warnings.filterwarnings("ignore", "This process", DeprecationWarning)  # from 3.12 on, of any fork beside threads
import autograph as ag
from runtime.engine import kernel_counters

def child():
    f = ag.function(lambda x: ag.sin(x) + 1.25, jit_compile=True)
    assert f(ag.constant([0.0])).numpy().tolist() == [1.25]
    print(kernel_counters().compiled, flush=True)

END
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize(
    "end",
    [
        "child()",
        "child(); sys.exit()",
        "process = multiprocessing.get_context('fork').Process(target=child); process.start(); process.join()",
    ],
    ids=["at the end", "exit", "multiprocessing"],
)
def test_a_process_that_ends_after_its_first_result_keeps_the_kernel(tmp_path: Path, end: str) -> None:
    assert [run(ENDS.replace("END", end), tmp_path) for _ in range(2)] == ["1", "0"]


def test_a_signal_while_a_kernel_is_compiled(tmp_path: Path) -> None:
    """Ctrl-C in `jit_compile=True` reaches the user; the next call compiles, and works."""
    program = """
import os, signal, threading
import autograph as ag

@ag.function(jit_compile=True, autograph=False)
def f(x):
    for _ in range(60):
        x = ag.sin(x) + 1.25
    return x

f.get_concrete_function(ag.TensorSpec([3]))
import numba
threading.Timer(DELAY, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for _ in range(10**9):
        f(ag.constant([1.0, 2.0, 3.0]))
except KeyboardInterrupt:
    print("interrupted")
a, b = f(ag.constant([1.0, 2.0, 3.0])), f.python_function(ag.constant([1.0, 2.0, 3.0]))
print(bool(ag.reduce_max(ag.abs(a - b)) < 1e-5))
"""
    for index, delay in enumerate(("0.05", "0.3", "1.0")):  # numba's own modules are loaded late, too
        assert run(program.replace("DELAY", delay), tmp_path / str(index)) == "interrupted\nTrue"


def test_signals_while_llvm_frees_its_objects(tmp_path: Path) -> None:
    """Python only prints what is raised in `__del__`: Ctrl-C there waits until the compiler is done."""
    program = """
import signal, sys
import llvmlite.binding.ffi as ffi
import autograph as ag

free = ffi.ObjectRef.__del__
lost = []

def interrupted_free(self):
    if signal and not sys.is_finalizing():
        signal.raise_signal(signal.SIGINT)
    free(self)

ffi.ObjectRef.__del__ = interrupted_free
sys.unraisablehook = lost.append
f = ag.function(lambda x: ag.sin(x) + 1.25, jit_compile=True)
y = None
for interrupts in range(50):  # every part that was compiled stays, so that one more try gets further
    try:
        y = f(ag.constant([0.0])).numpy().tolist()
        break
    except KeyboardInterrupt:
        pass
ffi.ObjectRef.__del__ = free
print(interrupts > 0, len(lost), y)
"""
    assert run(program, tmp_path) == "True 0 [1.25]"
