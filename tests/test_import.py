"""`import autograph` stays light: what only compiling needs isn't loaded by it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_LOADED = [
    "numba", "llvmlite", "scipy", "runtime.codegen.lower", "runtime.engine.partition",
    "autograph.commands", "doctest", "unittest",
]  # fmt: skip


def test_what_importing_does_not_load():
    script = f"import sys, autograph; print(*[name for name in {NOT_LOADED} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    assert done.stdout.split() == []


def test_what_a_first_call_does_not_load():
    script = (
        "import sys, autograph; from runtime.engine import background; background.QUIET = 60; "
        "autograph.function(autograph.exp)(autograph.constant(1.0)); "
        f"print(*[name for name in {NOT_LOADED} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120, cwd=ROOT
    )
    assert done.stdout.split() == []
