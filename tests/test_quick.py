"""`python -m tests --quick`: a subset of the tests, the same one in every run, with some of every file."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests import quick
from tests.__main__ import steps

ROOT = Path(__file__).resolve().parent.parent
NAMES = [
    *[f"tests/a.py::test_{number}" for number in range(100)],
    *[f"tests/b.py::test_cases[{number}]" for number in range(50)],
    *[f"tests/b.py::TestMore::test_cases[{number}]" for number in range(50)],
    "tests/ops/test_decompositions.py::test_lu",
    "tests/ops/test_decompositions.py::test_other",
]


def test_the_choice_is_spread_and_depends_on_names_alone() -> None:
    chosen = quick.chosen(NAMES)
    first = sorted(int(name.rpartition("_")[2]) for name in chosen if name.startswith("tests/a.py"))
    assert len(first) == quick.MOST and all(5 <= b - a <= 6 for a, b in zip(first, first[1:]))
    assert sum(name.startswith("tests/b.py::test_cases") for name in chosen) == 1
    assert sum(name.startswith("tests/b.py::TestMore") for name in chosen) == 1
    assert "tests/ops/test_decompositions.py::test_lu" not in chosen
    assert "tests/ops/test_decompositions.py::test_other" in chosen
    assert quick.chosen(NAMES) == chosen


def test_slow_tests_are_there() -> None:
    """A test that has another name now would run."""
    for file, tests in quick.SLOW.items():
        text = (ROOT / file).read_text(encoding="utf-8")
        assert all(re.search(rf"^def {test}\(", text, re.MULTILINE) for test in tests), file


def test_every_file_has_a_test_and_the_report_says_what_is_left_out() -> None:
    command = [
        sys.executable,
        "-m",
        *steps(["--quick", "--collect-only", "-q", "tests/values", "tests/syntax"])["pytest"],
    ]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:]
    files = {line.partition("::")[0] for line in done.stdout.splitlines() if "::" in line}
    expected = {
        path.relative_to(ROOT).as_posix()
        for room in ("values", "syntax")
        for path in (ROOT / "tests" / room).glob("test_*.py")
    }
    assert files == expected
    assert re.search(r"quick: \d+ of \d+ tests, some of every file\. Left out: \d+ slow tests", done.stdout)


def test_help_runs_nothing() -> None:
    for flag in ("-h", "--help"):
        command = [sys.executable, "-m", "tests", "--quick", flag]
        done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0 and "--quick" in done.stdout and "==" not in done.stdout


def test_other_arguments_go_to_pytest() -> None:
    assert steps(["-k", "x", "--quick"])["pytest"] == ["pytest", "-p", "tests.quick", "-k", "x"]
    assert steps(["-k", "x"])["pytest"] == ["pytest", "-k", "x"]
