"""Ctrl-C ends a native loop, also one that would never end by itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import autograph as ag

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import os, signal, sys, threading, time
import autograph as ag

@ag.function(jit_compile=True)
def f(x, n):
    i = ag.constant(0, ag.int64)
    while i < n:
        x = x * 3.7 * (1.0 - x)
        i += 1
    return x

def interrupt_soon():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

forever = ag.constant(10**15, ag.int64)
x = ag.constant(0.3)
f(x, ag.constant(3, ag.int64))
"""

PLAIN = """
interrupt_soon()
f(x, forever)
"""

GRADIENT = """
def pull_back(n):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = f(x, n)
    return tape.gradient(y, x)

pull_back(ag.constant(3, ag.int64))
interrupt_soon()
while True:
    pull_back(ag.constant(10**7, ag.int64))
"""

LEFT_BY_A_TRIP = """
@ag.function(jit_compile=True)
def search(a, n):
    i = ag.constant(0, ag.int64)
    while i < n and a[i % 4] < 2.0:
        i += 1
    return i

a = ag.zeros([4])
search(a, ag.constant(3, ag.int64))
interrupt_soon()
search(a, forever)
"""

HANDLER = """
hits = []
signal.signal(signal.SIGINT, lambda *arguments: hits.append(1))
expected = float(f(x, ag.constant(10**8, ag.int64)))
interrupt_soon()
while not hits:
    assert float(f(x, ag.constant(10**8, ag.int64))) == expected
print("went on")
"""


def run(text: str, tmp_path: Path) -> subprocess.CompletedProcess:
    environment = {**os.environ, "AUTOGRAPH_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + text)
    command = [sys.executable, str(program)]
    return subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("text", [PLAIN, GRADIENT, LEFT_BY_A_TRIP], ids=["plain", "gradient", "left by a trip"])
def test_interrupt(text, tmp_path):
    done = run(text, tmp_path)
    assert done.returncode in (1, -2, 130)
    assert done.stderr.rstrip().endswith("KeyboardInterrupt"), done.stderr
    assert "SystemError" not in done.stderr


def test_a_handler_that_returns_lets_the_loop_go_on(tmp_path):
    done = run(HANDLER, tmp_path)
    assert done.stdout == "went on\n" and done.returncode == 0, done.stderr


def _unused(x):
    count = 0.0
    while x > 0.0:
        count += 1.0
    return x


def _unused_deep_inside(x):
    count = 0.0
    if x > -9.0:
        for _ in ag.range(3):
            while x > 0.0:
                count += 1.0
    return x


def _with_a_flag(x):
    done, count = False, 0
    while not done and x > 0.0:
        count += 1
    return x


def _result(x):
    count = x * 0.0
    while x > 0.0:
        count += 1.0
    return count


def _differentiated(x):
    with ag.GradientTape() as tape:
        tape.watch(x)
        y = _unused(x) * x
    return tape.gradient(y, x)


@pytest.mark.parametrize("jit", [None, True])
@pytest.mark.parametrize("program", [_unused, _unused_deep_inside, _with_a_flag, _result, _differentiated])
def test_a_loop_whose_test_never_changes(program, jit):
    """It doesn't end in Python, whether or not something needs its results."""
    f = ag.function(program, jit_compile=jit)
    assert float(f(ag.constant(-1.0))) == float(program(ag.constant(-1.0)))
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            f(ag.constant(1.0))
    finally:
        timer.cancel()
