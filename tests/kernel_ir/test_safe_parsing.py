"""Parsing beside other threads that parse."""

from __future__ import annotations

import ast
import gc
import threading
import time
from collections.abc import Iterator

import pytest

from runtime.kernel_ir import safe_parsing


class Gate:
    """The name of a file, for which `ast.parse` asks, and gets when it is told so."""

    def __init__(self) -> None:
        self.inside, self.leave = threading.Event(), threading.Event()

    def __fspath__(self) -> str:
        self.inside.set()
        self.leave.wait(30)
        return "name"


@pytest.fixture
def gate() -> Iterator[Gate]:
    """Another thread is inside of `ast.parse`."""
    gate = Gate()
    thread = threading.Thread(target=lambda: ast.parse("x", gate))  # type: ignore[call-overload]
    thread.start()
    assert gate.inside.wait(30)
    yield gate
    gate.leave.set()
    thread.join()


def test_who_parses_is_known(gate: Gate) -> None:
    assert safe_parsing._somebody_parses()
    gate.leave.set()
    while safe_parsing._somebody_parses():
        pass


def test_a_kernel_waits_for_who_parses(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_parsing, "_IS_CONCERNED", True)
    monkeypatch.setattr(safe_parsing, "_TIMEOUT", 30.0)
    done = threading.Event()

    def work() -> None:
        assert ast.dump(safe_parsing.parse("y = 1")) == ast.dump(ast.Module([ast.parse("y = 1").body[0]], []))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert not done.wait(0.1)
    gate.leave.set()
    assert done.wait(30)
    thread.join()
    assert gc.isenabled()


def test_nobody_waits_for_ever(gate: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_parsing, "_IS_CONCERNED", True)
    monkeypatch.setattr(safe_parsing, "_TIMEOUT", 0.01)
    assert isinstance(safe_parsing.parse("y = 1"), ast.Module)
    deadline = time.monotonic() + 30
    while not gc.isenabled() and time.monotonic() < deadline:
        time.sleep(0.001)  # a compiler's thread may be parsing, too
    assert gc.isenabled()
