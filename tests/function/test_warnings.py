"""Warnings point at the user's line, as `warnings` shows it, wherever in this project they come up."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import autograph as ag
from runtime import tracebacks

ROOT = Path(__file__).resolve().parents[2]


def retraced():
    @ag.function
    def f(x, n):
        return x * n

    for n in range(8):
        f(ag.constant(1.0), n)


def retraced_in_a_branch():
    @ag.function
    def inner(x, n):
        return x * n

    @ag.function
    def outer(x):
        if x > 0.0:
            for n in range(9):
                x = inner(x, n)
        return x

    outer(ag.constant(1.0))


def watched():
    with ag.GradientTape() as tape:
        tape.watch(ag.constant(1))


def target():
    x = ag.Variable(1.0)
    with ag.GradientTape() as tape:
        y = ag.cast(x, ag.int32)
    tape.gradient(y, x)


def without_source():
    names = {}
    exec("def f(x):\n    if x > 0:\n        return x\n    return -x\n", names)
    with pytest.raises(TypeError):
        ag.function(lambda x: names["f"](x))(ag.constant(1.0))


def threads():
    ag.config.threading.set_inter_op_parallelism_threads(3)


def own(text):
    tracebacks.warn(text, UserWarning)


@pytest.mark.parametrize(
    ("program", "says", "line"),
    [
        (retraced, "traced 8 times", "f(ag.constant(1.0), n)"),
        (retraced_in_a_branch, "traced 8 times", "x = inner(x, n)"),
        (watched, "must be floating", "tape.watch"),
        (target, "must be floating", "tape.gradient"),
        (without_source, "can't be converted", 'names["f"](x)'),
        (threads, "3 threads were requested", "set_inter"),
        (lambda: own("plain"), "plain", "tracebacks.warn"),
    ],
)  # fmt: skip
def test_where_warnings_point(program, says: str, line: str) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program()
    (found,) = [each for each in caught if says in str(each.message)]
    assert found.filename == __file__
    assert line in Path(__file__).read_text(encoding="utf-8").splitlines()[found.lineno - 1]


def test_a_thread_of_ours_names_no_file_of_ours(tmp_path: Path) -> None:
    """The background compiler's folder can't be used: nobody's line is to blame."""
    program = (
        "import autograph as ag, time\n"
        "f = ag.function(lambda x: ag.exp(x) * 2.0 + x)\n"
        "from runtime.engine import background\n"
        "for _ in range(50):\n    f(ag.zeros([100]))\n"
        "assert background.worker.wait(60)\n"
    )
    (tmp_path / "program.py").write_text(program)
    blocked = tmp_path / "file"
    blocked.write_text("")
    done = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": str(ROOT), "AUTOGRAPH_CACHE_DIR": str(blocked), "AUTOGRAPH_STRICT": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "CacheWarning" in done.stderr
    assert done.stderr.startswith(("sys:1: CacheWarning", "<sys>:0: CacheWarning", f"{tmp_path}/program.py"))
