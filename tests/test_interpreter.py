"""What is relied on beyond Python's documentation is tried first, and programs run where a trial fails."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import autograph as ag
from autograph.operators import live, swallowing
from runtime import bytecode, interpreter
from tests import unseen

ROOT = Path(interpreter.__file__).parents[1]
SOURCES = [path for package in ("autograph", "runtime") for path in sorted((ROOT / package).rglob("*.py"))]


def test_this_interpreter_is_known() -> None:
    """Else programs are slower, and more of them are refused, without a word."""
    assert interpreter.ALONE > 0 or interpreter.IS_FREE_THREADED
    assert interpreter.SEES_ITERATORS
    assert interpreter.reads_bytecode()
    assert interpreter.RENAMES
    assert interpreter.doubt() == "" or interpreter.IS_FREE_THREADED


# --- the bytecode ---------------------------------------------------------------------------------------------------

MODULES = ["argparse", "asyncio.base_events", "contextlib", "dataclasses", "inspect", "typing", "unittest.mock"]


@functools.cache
def codes_of(name: str) -> list[types.CodeType]:
    text = inspect.getsource(importlib.import_module(name))
    return list(codes_in(compile(text, name, "exec")))


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from codes_in(each)


@pytest.mark.parametrize("name", MODULES)
def test_every_instruction_is_known(name: str) -> None:
    for code in codes_of(name):
        assert {each.opname for each in bytecode.instructions(code)} <= bytecode.KNOWN, code
        assert interpreter.understands(code)


@pytest.mark.parametrize("name", MODULES)
def test_what_is_set_is_found_without_names(name: str) -> None:
    for code in codes_of(name):
        its = bytecode.instructions(code)
        assert bytecode.attributes_set(code) == {each.argval for each in its if each.opname == "STORE_ATTR"}
        written = {each.argval for each in its if each.opname in ("STORE_DEREF", "DELETE_DEREF")}
        inside = [bytecode.names_written(each) for each in code.co_consts if isinstance(each, types.CodeType)]
        assert bytecode.names_written(code) == written.union(*inside).intersection(code.co_freevars)


def test_an_instruction_of_another_version_is_not_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(x):
        return x.real

    def other(x):
        return x.real

    assert interpreter.understands(known.__code__)
    monkeypatch.setattr(bytecode, "KNOWN", bytecode.KNOWN - {"LOAD_ATTR"})
    assert interpreter.reads_bytecode() and not interpreter.understands(other.__code__)


def handled(x, rows):
    try:
        x = call(x)
    except ValueError:
        return rows
    with x:
        x = "later"
    return x


def test_a_handler_may_follow_what_it_handles() -> None:
    code = handled.__code__
    first, *_ = [each.offset for each in bytecode.instructions(code) if each.argval == "call"]
    later, *_ = [each.offset for each in bytecode.instructions(code) if each.argval == "later"]
    assert bytecode.read_from(code, first, "rows")
    assert not bytecode.read_from(code, later, "rows")


# --- trials that fail -----------------------------------------------------------------------------------------------


def test_counts_that_do_not_tell_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    count = sys.getrefcount
    assert interpreter._count_alone() == interpreter.ALONE
    monkeypatch.setattr(sys, "getrefcount", lambda value: count(value) + 5)
    assert interpreter._count_alone() > interpreter.ALONE  # all that matters is what others add
    monkeypatch.setattr(sys, "getrefcount", lambda value: min(count(value), 3))
    assert interpreter._count_alone() == 0
    monkeypatch.setattr(sys, "getrefcount", count)
    monkeypatch.setattr(interpreter, "IS_FREE_THREADED", True)
    assert interpreter._count_alone() == 0


def test_other_instructions_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is wrong in the rules, the functions whose answers are known tell."""
    for name, value in {
        "_current": lambda code, here: 0,
        "_handlers": lambda code: [],
        "_uses": lambda code: {},
        "_effect": lambda instruction, jump: 1,
        "is_at": lambda code, here, *names: False,
        "_is_subscript": lambda instruction: False,
    }.items():
        with monkeypatch.context() as patch:
            for remembering in ("read_from", "read_in_expression", "successors", "_uses", "places_at", "layout"):
                patch.setattr(bytecode, remembering, getattr(bytecode, remembering).__wrapped__)
            assert interpreter.reads_bytecode.__wrapped__()
            patch.setattr(bytecode, name, value)
            assert not interpreter.reads_bytecode.__wrapped__(), name


def test_the_text_tells_what_a_raise_statement_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def raising(kind: Any) -> None:
        if kind is KeyError:
            raise kind("ä", len(str(kind)))
        raise (
            kind.missing
        )  # fmt: skip

    for kind, expected in ((KeyError, True), (ValueError, False)):
        try:
            raising(kind)
        except (KeyError, AttributeError) as error:
            entry = error.__traceback__
        assert entry is not None and entry.tb_next is not None
        arguments = entry.tb_next.tb_frame.f_code, entry.tb_next.tb_lasti
        assert interpreter.is_raise(*arguments) is expected
        with monkeypatch.context() as patch:
            patch.setattr(interpreter, "reads_bytecode", lambda: False)
            assert interpreter.is_raise(*arguments) is expected
            assert not interpreter.is_raise(raising.__code__, -1)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="since then variables are set in a documented way")
def test_a_variable_that_cannot_be_set_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def grown(x):
        items = other = [x]
        for _ in ag.range(3):
            items.append(x)
        return len(other)

    assert ag.function(grown)(ag.constant(1.0)).numpy() == 4
    monkeypatch.setattr(live, "pythonapi", types.SimpleNamespace(PyFrame_LocalsToFast=lambda *_: None))
    with pytest.raises(ag.errors.StagingError, match="doesn't let the variables of a running function be set"):
        ag.function(grown)(ag.constant(1.0))


def test_a_compiler_that_sets_variables_otherwise_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "_writes_are_right", lambda: False)
    with pytest.raises(RuntimeError, match="which variables a function sets in Python 3.*, whose compiler it doesn't"):
        ag.function(lambda x: x if x > 0 else -x)(ag.constant(1.0))


def test_what_a_context_manager_returns_is_read_from_its_text() -> None:
    def nothing():
        def inner():
            return True

        return None if inner() is True else 1

    def plain():
        if nothing():
            return
        return 0

    def something():
        while True:
            return nothing()

    found = [swallowing._may_return_true(each.__code__) for each in (nothing, plain, something)]
    assert found == [True, False, True]
    assert swallowing._may_return_true(compile("0", "<no such file>", "eval"))


# --- programs -------------------------------------------------------------------------------------------------------

PROGRAM = Path(__file__).with_name("interpreter_program.py")


def printed(unknown: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), interpreter.VARIABLE: unknown}
    run = subprocess.run([sys.executable, PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_programs_run_without_what_is_not_promised() -> None:
    expected = printed("")
    assert expected.count("\n") == 5
    assert printed("all") == expected


def test_only_trials_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(interpreter.VARIABLE, "names, layouts")
    with pytest.raises(ValueError, match="layouts; the trials are references, iterators, bytecode, names, and all"):
        interpreter._is_left_out("names")


TELLING = {
    "opcodes": ["elements_of_staged_lists"],
    "references": ["elements_of_staged_lists", "-p", "tests.quick"],
    "iterators": ["changed_while_shared", "-p", "tests.quick"],
}


@pytest.mark.parametrize("pretended", TELLING)
def test_no_value_is_wrong_on_an_interpreter_never_seen(pretended: str) -> None:
    """Some tests; the command in CONTRIBUTING.md runs more."""
    name, *options = TELLING[pretended]
    plugins = ["-p", "tests.unseen", "--unseen", pretended, "-p", "no:cacheprovider", *options]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, f"tests/operators/test_{name}.py"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert (" xfailed" in run.stdout) is (pretended == "opcodes"), run.stdout


def test_tests_that_are_left_out_are_there() -> None:
    """A test that has another name now would run."""
    for name in [each for names in unseen.LEFT_OUT.values() for each in names]:
        file, _, test = name.partition("::")
        assert f"\ndef {test}(" in (ROOT / file).read_text(encoding="utf-8"), name


# --- who reads what -------------------------------------------------------------------------------------------------


def test_no_other_module_reads_bytecode_or_counts_references() -> None:
    counting = {"runtime/interpreter.py", "runtime/variable.py", "autograph/operators/elements.py"}
    for path in SOURCES:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        reads = re.search(r"^ *(import|from) (dis|opcode)\b|co_code\[", text, re.MULTILINE)
        assert reads is None or name == "runtime/bytecode.py", name
        assert "getrefcount(" not in text or name in counting, name


def call(x):
    return x
