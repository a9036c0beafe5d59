"""Parsing beside other threads that parse."""

from __future__ import annotations

import ast
import gc
import threading
from typing import Any

import pytest

from runtime.llvm import parsing


class _Finalized:
    """In a circle, so that the collector finds it, in the middle of whatever allocates."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        for _ in range(200):  # Python code, in which a thread may lose its turn
            pass


def test_two_threads_parse_while_finalizers_run(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "\n".join(f"x{i} = [a + {i} * (b - c) for a in y if a > {i}]" for i in range(400))
    done = threading.Event()
    wrong: list[BaseException] = []

    def background() -> None:
        try:
            while not done.is_set():
                parsing.parse("x = 1 + y[2]\nif x:\n    z = f(x, y)\n")
        except BaseException as error:
            wrong.append(error)

    thread = threading.Thread(target=background)
    threshold = gc.get_threshold()
    gc.set_threshold(100, 2, 2)
    thread.start()
    try:
        for _ in range(40):
            garbage: Any = [_Finalized() for _ in range(50)]
            del garbage
            assert len(ast.parse(text).body) == 400
    finally:
        gc.set_threshold(*threshold)
        done.set()
        thread.join()
    assert wrong == []
    assert gc.isenabled()


def test_who_parses_is_known() -> None:
    assert not parsing._somebody_parses()
    inside, seen = threading.Event(), threading.Event()

    class Name:
        def __fspath__(self) -> str:
            inside.set()
            seen.wait(10)
            return "name"

    thread = threading.Thread(target=lambda: ast.parse("x", Name()))  # type: ignore[call-overload]
    thread.start()
    try:
        assert inside.wait(10)
        assert parsing._somebody_parses()
    finally:
        seen.set()
        thread.join()
    assert not parsing._somebody_parses()
