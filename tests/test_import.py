"""`import autograph` stays light: what only compiling needs isn't loaded by it. (llvmlite is: whoever calls a function
needs it, a loop that waits for its kernel at once.)"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOT_LOADED = [
    "numba", "scipy", "runtime.codegen.lower.lower_graph", "runtime.engine.partition",
    "runtime.llvm.program", "runtime.graph.drawing", "autograph.commands", "doctest", "unittest",
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
