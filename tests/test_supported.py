"""An interpreter or processor that can't run the project: `import autograph` says so, and what to use instead."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from autograph import supported

ROOT = Path(__file__).resolve().parent.parent


def imported(pretence: str, *names: str) -> subprocess.CompletedProcess:
    """Imports the project in a Python that pretends to be another one, and prints which of `names` were loaded."""
    program = f"""
import sys
{pretence}
try:
    import autograph
finally:
    print(*[name for name in {names} if name in sys.modules])
"""
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True, timeout=120)


@pytest.mark.parametrize(
    ("pretence", "what", "fix"),
    [
        ("sys.implementation.name = 'pypy'", "the interpreter 'pypy'", "CPython"),
        ("sys.version_info = (3, 9, 18, 'final', 0)", "Python 3.9", "a newer Python"),
        ("sys.maxsize = 2**31 - 1", "a 32-bit Python", "a 64-bit Python"),
        ("sys.byteorder = 'big'", "a big-endian processor", "x86-64 or arm64"),
    ],
    ids=["pypy", "old", "32 bits", "big-endian"],
)
def test_what_an_unsupported_one_is_told(pretence: str, what: str, fix: str) -> None:
    done = imported(pretence, "numpy", "llvmlite", "runtime")
    assert done.returncode == 1
    error, cause, advice = done.stderr.splitlines()[-3:]
    assert error.startswith("ImportError: autograph needs CPython 3.10 or later on a 64-bit little-endian processor")
    assert f"this is {what}" in error
    assert cause.startswith("  cause: ") and advice.startswith("  fix: ") and fix in advice
    assert done.stdout.split() == [], "nothing is imported that could fail first, with another error"


def test_this_one_is_supported() -> None:
    assert imported("", "numpy", "runtime").stdout.split() == ["numpy", "runtime"]
    supported.check()


def test_old_interpreters_can_read_as_far_as_the_check() -> None:
    for name in ("__init__", "supported"):
        text = (ROOT / "autograph" / f"{name}.py").read_text(encoding="utf-8")
        ast.parse(text, feature_version=(3, 7))  # the earliest that `ast` distinguishes from later ones
        assert "from __future__ import annotations" not in text, "Python 3.6 doesn't know it"


def test_the_bound_is_the_metadata_s() -> None:
    said = re.search(r'^requires-python = ">=(\d+)\.(\d+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert said is not None
    assert tuple(map(int, said.groups())) == supported.OLDEST
