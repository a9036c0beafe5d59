"""Kernels in SPMD form in numba.cuda's simulator, in a process of its own, since a variable of the environment chooses
it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(importlib.util.find_spec("numba.cuda") is None, reason="this numba has no numba.cuda")
def test_programs_in_the_simulator() -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    command = [sys.executable, "-m", "tests.device.simulator"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    names = [line.partition(":")[0] for line in done.stdout.splitlines() if line.endswith(": right")]
    assert names == [
        "chain", "newton", "stencil", "fractal", "recurrence", "own_trips", "totals", "segments", "written", "gathered",
    ]  # fmt: skip
