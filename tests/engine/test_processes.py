"""The engine and processes: their end, forks, and those that multiprocessing starts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engine.test_cache import run


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
